/* What the commands of this layer share. */
#pragma once
#include "admin/users.h"
#include "config/key_file.h"

/* Longest output of one command: a list of accounts or users. */
enum { ADMIN_OUTPUT_MAX_BYTES = 64 * 1024 * 1024, ADMIN_WHY_MAX_BYTES = 1024 };

/* The options of a command: its own, and what every command that visits the store takes, so that a script can give
 * all of them the same. */
#define ADMIN_OPTIONS(table)                                                         \
    {                                                                                \
        {"Options", &(table)}, {"Redis", &SETTINGS_STORE}, {"Keys", &SETTINGS_KEYS}, \
        {                                                                            \
            0                                                                        \
        }                                                                            \
    }
#define OPTION_TABLE(rows)                   \
    {                                        \
        rows, sizeof(rows) / sizeof(rows)[0] \
    }
#define COMMAND_OFFSET(field) offsetof(struct command_line, field)
#define ROW_JSON                                                                                                \
    {                                                                                                           \
        .name = "json", .type = OPTION_FLAG, .offset = COMMAND_OFFSET(json), .help = "Print JSON, for scripts." \
    }

/* The author of changes made here, for the audit trail. */
extern const struct audit_source OPERATOR;

/* The keyring of the settings, or NULL with *ret_code of what was told. */
MUST_CHECK struct keyring *command_keyring(const struct command_line *line, int *ret_code);
/* Fails with a usage error unless the option has a value. */
MUST_CHECK int command_require(const char *value, const char *option);

/* A new password, from a file or asked for twice on the terminal, and judged. buf_wipe() it. */
MUST_CHECK int password_obtain(const char *file, const struct password_context *context, struct buf *ret_password);
/* The same judgement alone. */
MUST_CHECK int password_accept(struct text password, const struct password_context *context);

/* 'key revoke --from-log': revokes every key that the operands, revocation logs, name. */
int revocation_replay_run(const struct command_line *line);

/* An otpauth:// address, base32, "@FILE", a file's name, or "-". */
MUST_CHECK int totp_secret_obtain(const char *operand, struct totp_secret *ret_secret);
