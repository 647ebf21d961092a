/* Random commands. What a word may be is in words.def, by its name: forms between "|", one of which is chosen. In a
 * form, {name} stands for a word of that name, {3-7} for a number, {clock} for the time in ms, {now} for one near it,
 * {later} for one within the next hour, {kept} for something that was in a reply, {X=name} for a word that {X} repeats,
 * X being any capital; (: and :) are braces. A line is words between blanks; one that begins with * may be several
 * words, or none. */
#pragma once
#include "base/text.h"

enum { LINE_WORDS_MAX = 128 };

struct line {
    size_t argc;
    struct text argv[LINE_WORDS_MAX]; /* each its own, freed by line_finish() */
};

void words_seed(uint64_t seed);
/* Below that bound, which is above 0. */
uint64_t words_random(uint64_t below);
/* The time that {now} is near. */
void words_set_clock(uint64_t unix_us);
/* Remembers a few. */
void words_keep(struct text word);
void words_finish(void);

bool words_have(const char *name);
void line_add(struct line *line, struct text word);
/* A word of that name; with luck another one. */
void line_add_word(struct line *line, const char *name);
/* A line of that form. */
void line_add_form(struct line *line, struct text form);
/* Any of words.def's lines for commands. */
void line_add_command(struct line *line);
void line_finish(struct line *line);
