/* Settings from flags, else from environment variables, by one table that also prints --help and the man page.
 * "--redis-timeout-ms N" is also CHATELAINE_REDIS_TIMEOUT_MS; a row marked secret reads only a file, by
 * "--x-file PATH" or CHATELAINE_X_FILE, never a value from argv or the environment. */
#pragma once
#include "base/text.h"
#include <stdint.h>

enum option_type {
    OPTION_TEXT,    /* const char *   */
    OPTION_INTEGER, /* int64_t        */
    OPTION_FLAG,    /* bool           */
    OPTION_CHOICE,  /* int, an index into choices */
};

struct option_row {
    const char *name; /* "redis-timeout-ms" */
    enum option_type type;
    size_t offset;          /* in the target struct */
    const char *standard;   /* default, as text; NULL: none */
    int64_t min, max;       /* of integers */
    const char *choices;    /* "strict401|full" */
    const char *value_name; /* "URL", for help */
    const char *help;
};

struct option_table {
    const struct option_row *rows;
    size_t count;
};

/* Fills the target: defaults, then environment, then argv. Both "--name value" and "--name=value" are taken. What
 * is no option (or stands behind "--") is moved to the front of argv and counted in *ret_rest. On failure
 * false, and ret_why is a sentence that names the option. Text values point into argv, environment or the table. */
MUST_CHECK bool options_read(const struct option_table *tables, size_t table_count, void *target, int argc, char **argv,
                             int *ret_rest, struct buf *ret_why);
/* One line or two a row. */
void options_print_help(const struct option_table *table, struct buf *out);
/* The same as man page source (mdoc). */
void options_print_man(const struct option_table *table, struct buf *out);
