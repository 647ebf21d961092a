#include "admin/commands.h"

#include "admin_internal.h"
#include "key_revoke_many_internal.h"
#include "key_selection_internal.h"

#include "auth/revocation_log.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/secure.h"
#include "records/key_store.h"

#include <string.h>

static const struct option_row REVOKE_ROWS[] = {
    ROW_FLAG("from-log", from_log, "Read the operands as revocation logs, and revoke every key named in them."),
    ROW_SECRET_FILE,
    ROW_FLAG("dry-run", dry_run, "Only print which keys these options select."),
    ROW_YES,
    ROW_JSON,
};
static const struct option_row DEVICE_REVOKE_ROWS[] = {ROW_JSON};
static const struct option_row TOTP_ROWS[] = {
    ROW_TEXT("file", file, "PATH",
             "Read the address or secret from this file ('-': standard input). Other users of the machine can see "
             "arguments, but not this."),
    ROW_FLAG("next", next,
             "Print the code of the next 30 seconds. Nodes already accept it, so you can use two codes in a row; each "
             "works only once."),
};

const struct option_group KEY_REVOKE_OPTIONS[] = {
    OPTIONS_OF(REVOKE_ROWS), KEY_SELECTION_GROUP, {NULL, &SETTINGS_REVOCATIONS}, CONNECTION_GROUPS, {0}};
const struct option_group DEVICE_REVOKE_OPTIONS[] = {
    OPTIONS_OF(DEVICE_REVOKE_ROWS), {NULL, &SETTINGS_REVOCATIONS}, CONNECTION_GROUPS, {0}};
const struct option_group TOTP_OPTIONS[] = {OPTIONS_OF(TOTP_ROWS), {0}};

struct revocation {
    struct store_client *client;
    const struct id *id;
    struct key_record key; /* of STORE_OK */
};

static void key_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    struct revocation *revocation = arg;

    if (result == STORE_OK)
        revocation->key = *key;
    store_client_answer(revocation->client, result);
}

static enum store_result revoke_here(struct store_client *client, void *arg)
{
    static const struct key_view EVERYTHING = {.any_kind = true};
    struct revocation *revocation = arg;

    key_store_revoke(client->store, &EVERYTHING, revocation->id, &OPERATOR, key_revoked, revocation);
    return store_client_result(client);
}

/* Returns EXIT_DONE, or an exit code after printing an error. */
static int revoke_in_store(const struct command_line *line, const struct id *id, struct revocation_log *log,
                           struct key_record *ret_key, int *ret_log_error)
{
    static const struct store_refusals REFUSALS = {.not_found = "there is no key with this id"};
    struct store_client client;
    struct revocation revocation = {.client = &client, .id = id};
    int code = command_open(line, &client, NULL);

    if (code != EXIT_DONE)
        return code;
    code = store_client_explain(&client, store_client_ask_each(&client, revoke_here, &revocation), &REFUSALS);
    if (code == EXIT_DONE && log)
        *ret_log_error = revocation_log_append(log, &revocation.key, store_id(client.store));
    store_client_close(&client);
    *ret_key = revocation.key;
    return code;
}

static int revoke_one(const struct command_line *line, const struct id *id, struct revocation_log *log)
{
    struct key_record key;
    int error = 0, code = revoke_in_store(line, id, log, &key, &error);

    if (code != EXIT_DONE)
        return code;
    code = key_print_revoked(line, &key);
    return error != 0 ? key_fail_unlogged(line, error) : code;
}

/* id NULL: those of --secret-file, or that the options select. */
static int revoke_and_log(const struct command_line *line, const struct id *id)
{
    const char *path = line->settings.revocation_log;
    struct revocation_log *log = NULL;
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (path && !(log = revocation_log_open(path, &why)))
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    int code = id                  ? revoke_one(line, id, log)
               : line->secret_file ? key_revoke_secrets(line, log)
                                   : key_revoke_many_run(line, log);
    revocation_log_close(log);
    return code;
}

/* Keys that --secret-file has, or that options select. */
static int revoke_several(const struct command_line *line)
{
    const char *source = line->secret_file ? "--secret-file" : "options that select keys";

    if (line->secret_file && key_selection_is_given(line))
        return command_fail(EXIT_USAGE, "give either --secret-file, or options that select keys");
    if (line->from_log || line->operand_count > 0)
        return command_fail(EXIT_USAGE, "give either %s, or %s", source,
                            line->from_log ? "--from-log with files" : "the id of one key");
    if (line->secret_file && line->dry_run)
        return command_fail(EXIT_USAGE, "--dry-run needs options that select keys: see also 'chatelaine key find'");
    return revoke_and_log(line, NULL);
}

int key_revoke_run(const struct command_line *line)
{
    struct id id;

    if (line->secret_file || key_selection_is_given(line))
        return revoke_several(line);
    if (line->mode > 0)
        return command_fail(EXIT_USAGE, "--mode needs another option that selects keys, such as --account");
    if (line->operand_count == 0)
        return command_fail(EXIT_USAGE, "give the id of a key, options that select keys, --secret-file, or --from-log "
                                        "with files");
    if (line->dry_run)
        return command_fail(EXIT_USAGE, "--dry-run needs an option that selects keys, such as --account");
    if (line->from_log)
        return revocation_replay_run(line);
    if (line->operand_count > 1)
        return command_fail(EXIT_USAGE, "unexpected argument '%s': give one key id, or --from-log with files",
                            line->operands[1]);
    int code = key_operand_read(line->operands[0], &id);
    return code == EXIT_DONE ? revoke_and_log(line, &id) : code;
}

int device_revoke_run(const struct command_line *line)
{
    struct id id;
    int code = key_operand_read(line->operands[0], &id);

    if (code == EXIT_DONE && id_kind_of(id_text(&id)) != ID_DEVICE)
        return command_fail(EXIT_USAGE, "%s is not a device: 'chatelaine key revoke' revokes API keys", id.text);
    return code == EXIT_DONE ? revoke_and_log(line, &id) : code;
}

static int totp_read_file(const char *path, struct totp_secret *ret_secret)
{
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(TOTP_URI_MAX_BYTES);

    if (!secret_file_read(path, &content, &why))
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    if (!totp_parse_uri(text_trim(buf_text(&content)), ret_secret))
        return command_fail(EXIT_FAILED, "%s contains neither an otpauth:// address nor a base32 secret of %d bytes",
                            path, TOTP_SECRET_BYTES);
    return EXIT_DONE;
}

int totp_secret_obtain(const char *operand, struct totp_secret *ret_secret)
{
    struct text t = text_of(operand);

    if (totp_parse_uri(t, ret_secret))
        return EXIT_DONE;
    if (text_starts_with(t, TEXT("otpauth:")))
        return command_fail(EXIT_USAGE, "this otpauth:// address has no secret of %d bytes", TOTP_SECRET_BYTES);
    return totp_read_file(text_starts_with(t, TEXT("@")) ? operand + 1 : operand, ret_secret);
}

int totp_run(const struct command_line *line)
{
    char code_text[TOTP_DIGITS + 2];
    struct totp_secret secret;
    int code;

    if (!line->file && line->operand_count == 0)
        return command_fail(EXIT_USAGE, "'totp' needs an otpauth:// address, a base32 secret, a file name, or --file");
    code = line->file ? totp_read_file(line->file, &secret) : totp_secret_obtain(line->operands[0], &secret);
    if (code != EXIT_DONE)
        return code;
    totp_print(secret.bytes, TOTP_SECRET_BYTES, totp_step(clock_wall_ms()) + (line->next ? 1 : 0), TOTP_DIGITS,
               code_text);
    secure_wipe(&secret, sizeof secret);
    code_text[TOTP_DIGITS] = '\n';
    return command_print((struct text){code_text, TOTP_DIGITS + 1});
}
