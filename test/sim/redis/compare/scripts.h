/* Random calls of the product's scripts, with the arguments that each declares ("-- ARGV:", see
 * src/engine/lua/embed.c). Aborts if words.def lacks a name, so that no argument of a new script stays without. */
#pragma once
#include "words.h"

/* sources: the repository. */
void scripts_read(const char *sources);
size_t scripts_count(void);
const char *script_name_of(size_t index);
struct text script_body(size_t index);
/* Of its body. */
const char *script_sha(size_t index);
/* Appends EVALSHA with everything, or EVAL. */
void line_add_script(struct line *line, size_t index);
/* The script of that name, which exists. */
size_t script_named(struct text name);
/* The script of that SHA or body; SIZE_MAX: none. */
size_t script_of(struct text sha_or_body);
