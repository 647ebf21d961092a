/* Shared by the commands of this layer. */
#pragma once
#include "admin/users.h"
#include "config/key_file.h"
#include "core/key.h"

/* ADMIN_OUTPUT_MAX_BYTES: the longest output is a list of accounts or users. */
enum { ADMIN_OUTPUT_MAX_BYTES = 64 * 1024 * 1024, ADMIN_WHY_MAX_BYTES = 1024 };

/* What every command with a store connection takes, so that scripts can pass the same options to all. */
#define CONNECTION_GROUPS       \
    {"Redis", &SETTINGS_STORE}, \
    {                           \
        "Keys", &SETTINGS_KEYS  \
    }
/* Those, and what leads to the store. */
#define ADMIN_OPTIONS(rows)                  \
    {                                        \
        OPTIONS_OF(rows), CONNECTION_GROUPS, \
        {                                    \
            0                                \
        }                                    \
    }
#define ROW_YES                                                                                       \
    {                                                                                                 \
        .name = "yes", A_FLAG(COMMAND_OFFSET(yes)), .letter = 'y', .help = "Do not ask, for scripts." \
    }
#define ROW_SECRET_FILE                                                                                          \
    ROW_TEXT("secret-file", secret_file, "PATH",                                                                 \
             "Read the secrets of keys from this file, whatever else stands in it ('-': standard input). Other " \
             "users of the machine can see arguments, but not this.")
/* Why a secret in place of a file name is refused. */
#define KEY_AS_ARGUMENT                                                                                      \
    "this is a key, not the name of a file with one. Arguments are seen by other users and kept by shells: " \
    "revoke the key unless it was only a test"

/* The actor in audit events of changes made here. */
extern const struct audit_source OPERATOR;

/* Loads the master keys. NULL after printing an error, with the exit code in *ret_code. */
MUST_CHECK struct keyring *command_keyring(const struct command_line *line, int *ret_code);
/* Opens the store with the master keys that the table of commands demands. keyring: those that the caller has loaded,
 * which the store must know whatever the table says; NULL: none, and if the table demands some, they are loaded. Every
 * command opens its store with this. Returns EXIT_DONE, or an exit code after printing an error; nothing is open then.
 */
MUST_CHECK int command_open(const struct command_line *line, struct store_client *client, struct keyring *keyring);
/* audit verify: the file has signed heads (core/audit_signed.h), which must be in the logs. */
struct audit_verifier;
MUST_CHECK int audit_expect_file(struct audit_verifier *verifier, const struct keyring *keyring, struct text name);
/* Of a time that is so many ms ahead of another one (below 0: behind it): "7.2 s ahead of", "7.2 s behind". */
enum { APART_BYTES = 48 };
void apart_print(int64_t ahead_ms, char ret_text[APART_BYTES]);
/* Options that are times, in each form of clock_read_when(); a day is the one that contains it. EXIT_USAGE after
 * printing an error. Any other form than that of the time itself, such as "90d", is printed with what it became to
 * standard error. option: "--unused-since". value of a time NULL: changes nothing. */
MUST_CHECK int time_option_read(const char *option, const char *value, int64_t *ret_ms);
MUST_CHECK int day_option_read(const char *option, const char *value, int64_t *ret_ms);
/* EXIT_USAGE, after printing an error, if the option has no value. */
MUST_CHECK int command_require(const char *value, const char *option);
/* EXIT_USAGE, after printing an error, if --public-origin is missing or no origin. why: what it is needed for. */
MUST_CHECK int command_require_origin(const struct command_line *line, const char *why);

/* A command about the account that its operand names: opens the store and acts. needs_keys: this run needs the master
 * keys, whatever the table of commands says. */
typedef int account_act(const struct command_line *line, struct store_client *client, const struct id *account);
MUST_CHECK int account_run(const struct command_line *line, bool needs_keys, account_act *act);
struct account_suspension;
/* Suspends the account at every node. begins_closing: it can no longer be resumed. */
MUST_CHECK int account_suspend_now(struct store_client *client, const struct id *account, bool begins_closing,
                                   struct account_suspension *ret);
/* Writes what the store holds of the account to a new file, without secrets; removes it again if that fails. */
MUST_CHECK int account_export_to(struct store_client *client, const struct id *account, const char *path);
struct revocation_log;
/* 'key revoke --secret-file'. log: gets the keys that were revoked; NULL: none. */
MUST_CHECK int key_revoke_secrets(const struct command_line *line, struct revocation_log *log);
/* Prints a key that was revoked. */
MUST_CHECK int key_print_revoked(const struct command_line *line, const struct key_record *key);
/* EXIT_FAILED: it was revoked, but not added to the revocation log. */
MUST_CHECK int key_fail_unlogged(const struct command_line *line, int error);
/* Prints a key, which is in the chosen partition, as 'key show' does. */
MUST_CHECK int key_show_by_id(struct store_client *client, const struct command_line *line, const struct id *id);
/* A key's or a device's id. */
MUST_CHECK int key_operand_read(const char *operand, struct id *ret_id);
/* EXIT_DONE if --yes was given, or the question is answered so on the terminal. Without a terminal, --yes is required.
 * question: "All sessions of ada@clinic.example end." */
MUST_CHECK int command_confirm(const struct command_line *line, const char *question);

/* Reads a new password, from a file or twice from the terminal, and checks it. The caller must buf_wipe() it. */
MUST_CHECK int password_obtain(const char *file, const struct password_context *context, struct buf *ret_password);
/* Checks a password against the password rules. */
MUST_CHECK int password_accept(struct text password, const struct password_context *context);

/* 'key revoke --from-log': revokes every key named in the revocation logs that the operands name. */
int revocation_replay_run(const struct command_line *line);

/* operand: an otpauth:// address, a base32 secret, a file name (also as "@FILE"), or "-". */
MUST_CHECK int totp_secret_obtain(const char *operand, struct totp_secret *ret_secret);
