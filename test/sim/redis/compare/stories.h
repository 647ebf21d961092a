/* Stories (stories.def): steps in which each script finds what it needs. */
#pragma once
#include "words.h"

/* Begins one of them, by chance. */
void story_begin(void);
/* Appends the next step of it. False: it is over, or none was begun. */
bool line_add_story(struct line *line);
void stories_finish(void);
