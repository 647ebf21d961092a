/* The table of commands: dispatched, listed by --help, and printed as the man page. */
#pragma once
#include "admin/command.h"

extern const struct command COMMANDS[]; /* ends with one without a name */
extern const size_t COMMAND_COUNT;

/* Functions that take commands are handed COMMANDS, because commands call them too. */

/* The command named by the first one or two words; NULL if none. ret_words: the number of words in its name. */
const struct command *command_find(const struct command *commands, int argc, char **argv, int *ret_words);
/* The command that was probably meant; NULL if none has a similar name. */
const struct command *command_suggest(const struct command *commands, const char *word);
/* The same among those with the first word: "key", "lst" is "key list". */
const struct command *command_suggest_in(const struct command *commands, const char *first, const char *second);
/* Fills the line from the environment, settings files and arguments. Returns EXIT_DONE, or EXIT_USAGE after printing
 * every mistake; ret_line is then empty. */
MUST_CHECK int command_read(const struct command *command, int argc, char **argv, struct command_line *ret_line);
/* Frees what the line's texts may point into. */
void command_line_finish(struct command_line *line);

/* Whether the word begins names of two words, as "user" begins "user create". */
bool command_is_group(const struct command *commands, struct text word);
bool groups_have(const struct option_group *groups, const struct option_table *table);

/* group: only the commands that begin with this word; NULL for all. */
void commands_print_help(const struct command *commands, const char *group, struct buf *out);
void command_print_help(const struct command *command, struct buf *out);
/* 'help connection': the groups that command_print_help() folds. */
void connection_print_help(struct buf *out);
int man_run(const struct command_line *line);
