/* Settings from flags or environment variables, by a table that also prints --help and the man page.
 * "--redis-timeout-ms N" is also CHATELAINE_REDIS_TIMEOUT_MS. Secrets are given as paths ("--x-file PATH" or
 * CHATELAINE_X_FILE), never as values in argv or the environment. */
#pragma once
#include "base/text.h"
#include <stdint.h>

enum option_type {
    OPTION_TEXT,    /* const char *   */
    OPTION_INTEGER, /* int64_t        */
    OPTION_FLAG,    /* bool           */
    OPTION_CHOICE,  /* int, an index into choices */
    OPTION_TIME,    /* int64_t in ms: 500ms, 30s, 5min, 12h, or a bare number; named "…-ms" */
    OPTION_SIZE,    /* int64_t in bytes: 64KiB, 96MiB, or a bare number; named "…-bytes" */
};

struct option_row {
    const char *name; /* "redis-timeout-ms"; at most 48 bytes */
    enum option_type type;
    size_t offset;            /* in the target struct */
    const char *default_text; /* NULL: none */
    int64_t min, max;         /* range of numbers, in ms or bytes if so; max of texts: bytes, 0: any */
    const char *choices;      /* "strict401|full" */
    const char *value_name;   /* "URL", for help; of numbers NULL: N, TIME or SIZE */
    const char *help;
    char letter;            /* 'f' for "-f"; 0: none */
    const char *instead_of; /* another row of its table, of which it is another form: "redis"; NULL: none */
    bool is_argument_only;  /* neither from the environment nor from files: it says what a command ends */
    bool is_agreed;         /* all nodes of a store must have the same value (config/agreement.h) */
};

/* What a row of each type needs besides its name and help. at: its offset. */
#define A_TEXT(at, value) .type = OPTION_TEXT, .offset = (at), .value_name = (value)
#define A_FLAG(at) .type = OPTION_FLAG, .offset = (at)
#define A_CHOICE(at, usual, all) .type = OPTION_CHOICE, .offset = (at), .default_text = (usual), .choices = (all)
#define A_NUMBER(kind, at, usual, least, most) \
    .type = (kind), .offset = (at), .default_text = (usual), .min = (least), .max = (most)
#define AN_INTEGER(at, usual, least, most) A_NUMBER(OPTION_INTEGER, at, usual, least, most)
#define A_TIME(at, usual, least, most) A_NUMBER(OPTION_TIME, at, usual, least, most)
#define A_SIZE(at, usual, least, most) A_NUMBER(OPTION_SIZE, at, usual, least, most)

enum { OPTION_ROWS_MAX = 256 }; /* in all tables of one call */

/* The further, the nearer to whoever runs the command. */
enum option_origin { OPTION_FROM_DEFAULT, OPTION_FROM_ENVIRONMENT, OPTION_FROM_FILE, OPTION_FROM_ARGUMENT };

struct option_table {
    const struct option_row *rows;
    size_t count;
};

/* Assignments of files to variables, in their order. Of several for one name, the last one counts. */
struct option_assignment {
    const char *name,
        *value;        /* "CHATELAINE_LEASE_MS", "2s"; an empty value means: not set, whatever the environment says */
    const char *where; /* "/etc/chatelaine/chatelaine.conf:12" */
};
struct option_assignments {
    struct option_assignment *rows;
    size_t count;
};

/* Fills the target from the defaults, then the environment (an empty variable counts as unset), then argv, in which the
 * last occurrence wins. Accepts "--name value", "--name=value" and "-letter value"; a flag takes a value (true or
 * false) only in the second form. Operands, and everything after "--", move to the front of argv and are counted in
 * *ret_rest, a program name in argv[0] included. Of two forms of one setting the one that was given nearer wins, and
 * then only that has a value; both from one place fail. False on failure; ret_why then has a sentence for each mistake,
 * each on a line of its own, which names the option. Nothing behind an unknown option is read. Text values point into
 * argv, the environment, `given` or the table. A default that its own row refuses aborts. */
MUST_CHECK bool options_read(const struct option_table *tables, size_t table_count, void *target, int argc, char **argv,
                             int *ret_rest, struct buf *ret_why);
/* The same, with files (given; NULL: none) between environment and argv, and says of each row, in the order of the
 * tables, where its value came from: an enum option_origin. */
MUST_CHECK bool options_read_with_origins(const struct option_table *tables, size_t table_count,
                                          const struct option_assignments *given, void *target, int argc, char **argv,
                                          int *ret_rest, uint8_t *ret_origins, struct buf *ret_why);
/* The files' assignment to the row; NULL: none. */
const struct option_assignment *options_assigned(const struct option_assignments *given, const struct option_row *row);
/* The text that argv, or else the environment, gives the row, before anything is read; NULL: none. */
const char *options_peek(const struct option_row *row, int argc, char **argv);
/* A value that options_read() has put into the target, as text: "1s", "96MiB", "true", "subset". Nothing is printed
 * for a text that is NULL. */
void options_print_value(const struct option_row *row, const void *target, struct buf *out);
/* "CHATELAINE_REDIS_TIMEOUT_MS" */
void options_print_variable(const struct option_row *row, struct buf *out);
/* One or two lines per row. */
void options_print_help(const struct option_table *table, struct buf *out);
/* The table as man page source (mdoc): a whole list, from .Bl to .El. */
void options_print_man(const struct option_table *table, struct buf *out);
/* Text for mdoc, to follow a newline. Escapes what a macro, an escape or a dash would be made of, and begins each
 * sentence on a line of its own, from which the formatter takes the space between sentences. */
void options_print_man_text(const char *text, struct buf *out);
