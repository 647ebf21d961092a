/* Rows of the command table, and what all commands share. A command receives a filled command_line and returns an exit
 * code. When it fails, it prints one line to standard error that says what to do. */
#pragma once
#include "config/settings.h"
#include "config/settings_file.h"

enum exit_code { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_UNFIT = 3, EXIT_UNPROVEN = 3 };

enum { COMMAND_GROUPS_MAX = 16 };

/* A command's need of the master keys, by the names that the store keeps of those that made its records. Enforced in
 * command_open(). */
enum command_keys {
    COMMAND_KEYS_UNSAID, /* it opens no store */
    COMMAND_KEYS_ANY,    /* reads what no key sealed, or ends something: possible with any master key, or with none */
    COMMAND_KEYS_KNOWN, /* begins something, or opens what is sealed: refused with a key that the store does not know */
    COMMAND_KEYS_ROTATE, /* makes keys known */
    COMMAND_KEYS_JUDGED, /* says itself what is wrong with them: doctor, status */
};

struct command;
struct command_line;
typedef int command_run(const struct command_line *line); /* returns an exit code */

/* Options and operands of every command. Each command uses only some fields. */
struct command_line {
    struct settings settings; /* must be first: option rows in config/ use offsets into struct settings */
    const struct command *command, *commands; /* commands: the table, for those that print it */
    const char *name;
    const char *account;
    const char *email;
    const char *password_file;
    const char *file;
    const char *secret_file;
    const char *dir;
    const char *write;
    const char *created_by, *created_before, *unused_since, *scope; /* of key list and key revoke */
    const char *expect;                                             /* of audit verify */
    const char *from, *to, *from_file, *to_file; /* of store copy; the first two also of usage export */
    int64_t from_partitions, to_partitions;
    const char *gateway, *gateway_ca, *key_file, *revoked_key_file; /* of doctor */
    bool undo;
    bool json;
    bool next;
    bool guide;
    bool cluster;
    bool from_log;
    bool or_empty;
    bool adopt;
    bool forget;
    bool erase;
    bool dry_run;
    bool descendants; /* of key revoke --created-by */
    bool device;
    bool follow;
    bool yes;
    bool revoke_keys;
    bool revoke_made_keys;
    bool permanent_password;
    bool trust_clock;
    int mode;   /* an index into "any|test|live" */
    int status; /* enum key_status_filter */
    int role;   /* enum role */
    int64_t lines;
    int operand_count;
    char **operands;
    uint8_t origins[OPTION_ROWS_MAX]; /* an enum option_origin per row, in the order of the command's groups */
    struct settings_files files;      /* of --settings */
    struct unknown_settings unknown;  /* what settings.unknown points at */
};

struct option_group {
    const char *title; /* "Redis" */
    const struct option_table *table;
};

/* Rows of the options of a command, and its own group of them. */
#define COMMAND_OFFSET(field) offsetof(struct command_line, field)
#define ROW_TEXT(option, field, value, text)                                   \
    {                                                                          \
        .name = (option), A_TEXT(COMMAND_OFFSET(field), value), .help = (text) \
    }
#define ROW_FLAG(option, field, text)                                   \
    {                                                                   \
        .name = (option), A_FLAG(COMMAND_OFFSET(field)), .help = (text) \
    }
#define ROW_JSON ROW_FLAG("json", json, "Print JSON, for scripts.")
#define OPTION_TABLE(rows)                   \
    {                                        \
        rows, sizeof(rows) / sizeof(rows)[0] \
    }
#define OPTIONS_OF(rows)                                          \
    {                                                             \
        "Options", &(const struct option_table)OPTION_TABLE(rows) \
    }

/* The settings of a node, also for commands that look at them. */
#define SERVE_GROUPS                                                                                           \
    {"Node", &SETTINGS_NODE}, {NULL, &SETTINGS_ORIGIN}, {"TLS", &SETTINGS_TLS}, {NULL, &SETTINGS_REVOCATIONS}, \
        {NULL, &SETTINGS_AUDIT}, {"Keys", &SETTINGS_KEYS}, {"Redis", &SETTINGS_STORE}, {"Log", &SETTINGS_LOG}, \
    {                                                                                                          \
        "Limits", &SETTINGS_LIMITS                                                                             \
    }

struct command {
    const char *name;                  /* "account create" */
    const char *operands;              /* "ID"; NULL if none */
    const char *summary;               /* one line */
    const char *text;                  /* more help, in lines of at most 100 characters; NULL if none */
    const char *examples;              /* whole command lines, one per line, each of which parses; NULL if none */
    const struct option_group *groups; /* ends with a NULL table */
    command_run *run;
    /* Adds a line for each further mistake to the settings' own, so that one run lists them all; NULL: the command has
     * nothing else to judge. */
    void (*judge)(const struct settings *settings, struct buf *mistakes);
    enum command_keys keys;
    bool shows_connection; /* --help lists the connection options; otherwise it refers to 'help connection' */
    int operand_count;     /* how many there must be; 0: one */
    bool optional_operand;
    bool many_operands;
    bool logs;   /* logs at the level and in the format of its settings; other commands log errors only */
    bool hidden; /* not in the list of commands */
};

/* Prints "chatelaine: …" to standard error and returns code, so a command can end with `return command_fail(…)`. The
 * message is printed as a sentence: a first word of small letters gets a capital, and a full stop ends it. Control
 * characters, which may come from an operand, are replaced. */
PRINTF_LIKE(2, 3) int command_fail(enum exit_code code, const char *format, ...);
/* The first sentence that command_fail() has printed, cut if it is long; empty: none. For whoever shows why a node
 * ended. */
const char *command_failure(void);
/* Prints each line of a text as command_fail() does. Returns EXIT_USAGE. */
int command_refuse(struct text mistakes);
/* Writes to standard output. Returns EXIT_FAILED, after a message, if that fails (full disk, closed pipe). Does not
 * wipe out. */
MUST_CHECK int command_print(struct text out);
