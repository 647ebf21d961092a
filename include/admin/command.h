/* Commands of the command line: the rows of the table, and what all commands share. A command gets a filled
 * command_line and returns an exit code; a failure is one line on standard error that says what to do. */
#pragma once
#include "config/settings.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNFIT = 3 };

/* Receives the options and operands of every command; no command uses all fields. */
struct command_line {
    struct settings settings; /* first: the rows of config count their offsets from here */
    const char *name;
    const char *account;
    const char *email;
    const char *password_file;
    const char *file;
    const char *dir;
    bool json;
    bool next;
    bool guide;
    bool from_log;
    bool or_empty;
    bool adopt;
    bool forget;
    int operand_count;
    char **operands;
};

struct option_group {
    const char *title; /* "Redis" */
    const struct option_table *table;
};
enum { COMMAND_GROUPS_MAX = 8 };

struct command {
    const char *name;                  /* "account create" */
    const char *operands;              /* "ID", or NULL for none */
    const char *summary;               /* one line */
    const char *text;                  /* more help, in lines of at most 100 characters; NULL for none */
    const struct option_group *groups; /* ends with a NULL table */
    int (*run)(const struct command_line *line);
    bool optional_operand;
    bool many_operands;
    bool logs;   /* logs as its settings say; other commands print one line and exit */
    bool hidden; /* not in the list of commands */
};

/* Prints "chatelaine: …" to standard error and returns the code, so that a command can return it. */
PRINTF_LIKE(2, 3) int command_fail(enum exit_code code, const char *format, ...);
/* Writes to standard output; EXIT_FAILED with a message when that fails (a full disk, a closed pipe). Wipes nothing. */
MUST_CHECK int command_print(struct text out);
