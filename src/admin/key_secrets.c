/* key find, and key revoke --secret-file: keys by their secrets, wherever these stand in a file: one in a line, a log,
 * a spreadsheet's export. Secrets are never arguments, and are wiped once their digests are made. */
#include "admin/commands.h"

#include "admin_internal.h"

#include "auth/revocation_log.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/secure.h"
#include "core/secret.h"
#include "core/tombstone.h"
#include "records/key_holder.h"

#include <stdlib.h>
#include <string.h>

static const struct option_row FIND_ROWS[] = {ROW_SECRET_FILE, ROW_JSON};
const struct option_group KEY_FIND_OPTIONS[] = ADMIN_OPTIONS(FIND_ROWS);

/* A file with more is none with secrets. At once: this program is no node, so nodes cannot acknowledge to it, and each
 * revocation waits until all leases have ended; together they wait once. */
enum { FILE_MAX_BYTES = 1024 * 1024, AT_ONCE = 256 };
/* To find a secret that came before: a power of two, and more than twice as many as a file has room for. */
enum { SLOTS = 64 * 1024 };
_Static_assert(SLOTS > 2 * FILE_MAX_BYTES / SECRET_MIN_CHARS, "a slot is free");

struct held_key {
    struct key_secrets *all;
    size_t line;    /* in the file, from 1 */
    bool is_broken; /* only the start of a secret stands there */
    struct token_digests digests;
    enum store_result result;
    struct key_record key; /* if it was found */
    bool is_found;
    int log_error;
};

struct key_secrets {
    const struct command_line *line;
    struct keyring *keyring;
    struct store_client client;
    struct revocation_log *log; /* NULL: none */
    bool revokes;
    struct held_key *of;
    size_t count, room, next, under_way;
    uint32_t *slots; /* SLOTS: 1 + the number of a whole secret, at its digest or behind; 0: free */
};

/* Reading. A secret that is not whole does not keep the others from being revoked. */

/* Secrets are ASCII, so UTF-16, which spreadsheets and PowerShell write, is read by leaving out its zeros. */
static void drop_zeros(struct buf *content)
{
    size_t kept = 0;

    for (size_t i = 0; i < content->len; i++)
        if (content->ptr[i] != '\0')
            content->ptr[kept++] = content->ptr[i];
    content->len = kept;
}

static size_t count_lines(const char *from, const char *to)
{
    size_t lines = 0;

    while (from < to && (from = memchr(from, '\n', (size_t)(to - from)))) {
        lines++;
        from++;
    }
    return lines;
}

static struct text first_digest(const struct held_key *held)
{
    return (struct text){(const char *)held->digests.of[0], KEYRING_DIGEST_BYTES};
}

/* The slot of an equal secret, or the free one where this one belongs. Digests are as good as random, and a file has
 * too few of them to fill the slots. */
static uint32_t *find_slot(const struct key_secrets *all, const struct held_key *held)
{
    uint32_t at;

    memcpy(&at, held->digests.of[0], sizeof at);
    while (all->slots[at % SLOTS] != 0 &&
           !secure_equal(first_digest(&all->of[all->slots[at % SLOTS] - 1]), first_digest(held)))
        at++;
    return &all->slots[at % SLOTS];
}

/* The second of two equal secrets would say the same again. */
static void add_secret(struct key_secrets *all, const struct held_key *held)
{
    uint32_t *slot = held->is_broken ? NULL : find_slot(all, held);

    if (slot && *slot != 0)
        return;
    all->of = mem_grow(all->of, all->count, &all->room, sizeof *all->of);
    all->of[all->count++] = *held;
    if (slot)
        *slot = (uint32_t)all->count;
}

static int read_secrets(struct key_secrets *all, struct text content)
{
    const char *from = content.ptr;
    size_t line = 1;
    enum secret_found found;
    struct text secret;

    while ((found = secret_find(&content, &secret)) != SECRET_NONE) {
        struct held_key held = {.all = all, .is_broken = found == SECRET_BROKEN};

        line += count_lines(from, secret.ptr);
        from = secret.ptr;
        held.line = line;
        if (found == SECRET_WHOLE)
            token_digests_of(all->keyring, KEYRING_KEY_DIGEST, secret, &held.digests);
        add_secret(all, &held);
    }
    return all->count > 0 ? EXIT_DONE : command_fail(EXIT_FAILED, "%s has no secret", all->line->secret_file);
}

static int read_file(struct key_secrets *all)
{
    const char *path = all->line->secret_file;
    struct buf why = BUF_FIXED(ADMIN_WHY_MAX_BYTES);
    struct buf content CLEANUP(buf_wipe) = BUF_UP_TO(FILE_MAX_BYTES);

    if (secret_has_shape(text_of(path)))
        return command_fail(EXIT_USAGE, KEY_AS_ARGUMENT);
    if (!whole_file_read(path, &content, &why))
        return command_fail(EXIT_FAILED, "%.*s", TEXT_ARG(buf_text(&why)));
    drop_zeros(&content);
    all->slots = mem_alloc(SLOTS * sizeof *all->slots);
    return read_secrets(all, buf_text(&content));
}

/* Asking the store */

static void go_on(struct key_secrets *all);
static void key_found_by_secret(void *arg, enum store_result result, const struct key_record *key);
static void key_revoked_by_secret(void *arg, enum store_result result, const struct key_record *key);

static void ask_all(struct key_secrets *all)
{
    go_on(all);
    store_client_wait(&all->client);
}

static void go_on(struct key_secrets *all)
{
    while (all->under_way < AT_ONCE && all->next < all->count) {
        struct held_key *held = &all->of[all->next++];

        if (held->is_broken)
            continue;
        all->under_way++;
        key_holder_find(all->client.partitions, &held->digests, key_found_by_secret, held);
    }
    if (all->under_way == 0)
        store_client_done(&all->client);
}

static void held_finish(struct held_key *held, enum store_result result)
{
    held->result = result;
    held->all->under_way--;
    go_on(held->all);
}

static void key_found_by_secret(void *arg, enum store_result result, const struct key_record *key)
{
    struct held_key *held = arg;
    const struct key_view view = {.any_kind = true};

    held->is_found = result == STORE_OK;
    if (result == STORE_OK)
        held->key = *key;
    if (result == STORE_OK && !key_is_tombstone(key) && held->all->revokes)
        key_store_revoke(partition_of_account(held->all->client.partitions, &key->account), &view, &held->key.id,
                         &OPERATOR, key_revoked_by_secret, held);
    else
        held_finish(held, result);
}

static int log_revoked(const struct key_secrets *all, const struct key_record *key)
{
    return revocation_log_append(all->log, key, store_id(partition_of_account(all->client.partitions, &key->account)));
}

static void key_revoked_by_secret(void *arg, enum store_result result, const struct key_record *key)
{
    struct held_key *held = arg;

    if (result == STORE_OK) {
        held->key = *key;
        held->log_error = held->all->log ? log_revoked(held->all, key) : 0;
    }
    held_finish(held, result);
}

/* Reporting, in the order of the lines */

static int report_revoked(const struct held_key *held)
{
    const struct command_line *line = held->all->line;
    int code = key_print_revoked(line, &held->key);

    if (held->log_error != 0)
        return key_fail_unlogged(line, held->log_error);
    return code;
}

/* A tombstone, whether it was to be found or revoked. */
static int report_buried(const struct held_key *held)
{
    char revoked[CLOCK_RFC3339_BYTES];
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    clock_print_rfc3339(held->key.revoked_ms, revoked);
    buf_printf(&out,
               held->all->line->json ? "{\"id\":null,\"revoked_on\":\"%.10s\"}\n"
                                     : "A key that was revoked on %.10s; no node accepts it. Its record is gone.\n",
               revoked);
    return command_print(buf_text(&out));
}

static int report(struct held_key *held)
{
    struct key_secrets *all = held->all;
    static const struct store_refusals REFUSALS = {0};

    if (held->is_broken)
        return command_fail(
            EXIT_FAILED, "line %zu: the start of a key, but no whole one: it was cut, mistyped or wrapped", held->line);
    if (held->result == STORE_NOT_FOUND)
        return command_fail(EXIT_FAILED, "line %zu: no key of this store has this secret", held->line);
    if (held->result != STORE_OK) {
        command_fail(EXIT_FAILED, "line %zu: %s %s", held->line,
                     held->is_found ? held->key.id.text : "the key with this secret",
                     all->revokes ? "may still be accepted" : "could not be looked up");
        return store_client_explain(&all->client, held->result, &REFUSALS);
    }
    if (key_is_tombstone(&held->key))
        return report_buried(held);
    if (all->revokes)
        return report_revoked(held);
    store_client_choose(&all->client, &held->key.account);
    return key_show_by_id(&all->client, all->line, &held->key.id);
}

static int report_all(struct key_secrets *all)
{
    int code = EXIT_DONE;

    for (size_t i = 0; i < all->count; i++) {
        int one = EXIT_DONE;

        if (i > 0 && !all->revokes && !all->line->json)
            one = command_print(TEXT("\n"));
        if (one == EXIT_DONE)
            one = report(&all->of[i]);
        code = one != EXIT_DONE ? one : code;
    }
    return code;
}

static int ask_store(struct key_secrets *all)
{
    int code = command_open(all->line, &all->client, all->keyring);

    if (code != EXIT_DONE)
        return code;
    ask_all(all);
    code = report_all(all);
    store_client_close(&all->client);
    return code;
}

static int run(struct key_secrets *all)
{
    int code = command_require(all->line->secret_file, "--secret-file");

    if (code == EXIT_DONE)
        all->keyring = command_keyring(all->line, &code);
    if (code == EXIT_DONE)
        code = read_file(all);
    if (code == EXIT_DONE)
        code = ask_store(all);
    free(all->of);
    free(all->slots);
    keyring_destroy(all->keyring);
    return code;
}

int key_find_run(const struct command_line *line)
{
    struct key_secrets all = {.line = line};

    return run(&all);
}

int key_revoke_secrets(const struct command_line *line, struct revocation_log *log)
{
    struct key_secrets all = {.line = line, .log = log, .revokes = true};

    return run(&all);
}
