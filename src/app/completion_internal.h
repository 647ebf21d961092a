/* What the scripts for all shells are made of. */
#pragma once
#include "base/options.h"

enum completion_value { COMPLETION_NONE, COMPLETION_CHOICE, COMPLETION_PATH, COMPLETION_OTHER };

/* The first word of COMMANDS[command]; false if the command is hidden or one before it has the same first word. */
bool completion_first_word(size_t command, struct text *ret_word);
/* The two words of COMMANDS[command]; false if it is hidden or has only one. */
bool completion_second_word(size_t command, struct text *ret_first, struct text *ret_second);
enum completion_value completion_value_of(const struct option_row *row);
/* What an option does, in one sentence without a full stop, safe within single quotes and brackets. */
void completion_put_summary(const char *help, struct buf *out);
/* "a|b" as "a b" */
void completion_put_words(const char *choices, struct buf *out);

void completion_print_bash(struct buf *out);
void completion_print_zsh(struct buf *out);
void completion_print_fish(struct buf *out);
