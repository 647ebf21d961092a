#include "stories.h"

#include "scripts.h"
#include <stdlib.h>

static const struct {
    const char *name, *steps;
    bool is_part;
} STORIES[] = {
#define STORY(name, steps) {name, steps, false},
#define PART(name, steps) {name, steps, true},
#include "stories.def"
#undef STORY
#undef PART
};

enum { STORIES_COUNT = sizeof STORIES / sizeof *STORIES };

/* All steps, with those of other stories in their places; and what is left of them. */
static struct buf told = BUF_UP_TO(64 * 1024);
static struct text left;

static void append_steps(struct text name)
{
    struct text steps = {0}, step;

    for (size_t i = 0; i < STORIES_COUNT; i++)
        if (text_equal(name, text_of(STORIES[i].name)))
            steps = text_of(STORIES[i].steps);
    if (steps.len == 0)
        abort(); /* stories.def names one that it has not */
    while (text_next(&steps, ';', &step)) {
        if (text_starts_with(step, TEXT("@")))
            append_steps(text_skip(step, 1));
        else if (step.len > 0)
            buf_printf(&told, "%.*s;", TEXT_ARG(step));
    }
}

void story_begin(void)
{
    size_t chosen;

    do
        chosen = words_random(STORIES_COUNT);
    while (STORIES[chosen].is_part);
    buf_clear(&told);
    append_steps(text_of(STORIES[chosen].name));
    left = buf_text(&told);
}

static void add_script(struct line *line, struct text step)
{
    struct text name = {0};

    (void)!text_next(&step, ' ', &name);
    line_add(line, TEXT("EVALSHA"));
    line_add(line, text_of(script_sha(script_named(name))));
    line_add(line, TEXT("1"));
    line_add_form(line, TEXT("{story key} t:"));
    if (step.ptr)
        line_add_form(line, step);
}

bool line_add_story(struct line *line)
{
    struct text step;

    if (!text_next(&left, ';', &step) || step.len == 0)
        return false;
    if (step.ptr[0] == '=')
        add_script(line, text_skip(step, 1));
    else
        line_add_form(line, step);
    return true;
}

void stories_finish(void)
{
    buf_finish(&told);
}
