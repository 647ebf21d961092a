/* bench_fill COUNT [ACCOUNT [device|manager]]: mints API keys, device keys, or API keys with all scopes, and prints
 * "secret id" a line. With an account it adds them to the Redis of the environment (CHATELAINE_REDIS,
 * CHATELAINE_PARTITIONS, CHATELAINE_MASTER_KEY_FILE, CHATELAINE_PREFIX), many at a time, which makes a million in some
 * minutes; without one they are keys that nobody knows. For scripts/bench. */
#include "admin/store_client.h"
#include "auth/key_check.h"
#include "base/clock.h"
#include "base/secure.h"
#include "config/key_file.h"
#include "core/secret.h"
#include "records/key_store.h"
#include <stdio.h>
#include <string.h>

enum { IN_FLIGHT = 500, COUNT_MAX = 10000000, FILL_WHY_MAX_BYTES = 1024 };

static const struct audit_source ORIGIN = {.actor = TEXT("operator")};

struct filling {
    struct store_client client;
    struct keyring *keyring;
    struct key_record key; /* what all have in common */
    uint64_t to_start;
    unsigned in_flight;
    enum store_result result; /* the last one that was not STORE_OK */
};

struct insertion {
    struct filling *filling;
    struct id id;
    struct secret secret;
};

static void print_key(const struct secret *secret, const struct id *id)
{
    printf("%s %s\n", secret->text, id->text);
}

static void insertion_done(void *arg, enum store_result result, uint32_t retry_after_s);

static void insertion_begin(struct insertion *insertion)
{
    struct filling *filling = insertion->filling;
    struct key_record *key = &filling->key;
    uint8_t digest[KEY_DIGEST_BYTES];

    filling->to_start--;
    filling->in_flight++;
    secret_draw(filling->keyring, bucket_of_account(&key->account), key->kind, key->mode, &insertion->secret, digest);
    insertion->id = id_mint(key_id_kind(key->kind), clock_wall_ms());
    key->id = insertion->id;
    key->created_ms = id_time_ms(&key->id);
    key_set_last4(key, secret_text(&insertion->secret));
    key_store_insert(filling->client.store, key, digest, &ORIGIN, insertion_done, insertion);
}

/* After a failure no more are begun. */
static void insertion_done(void *arg, enum store_result result, UNUSED uint32_t retry_after_s)
{
    struct insertion *insertion = arg;
    struct filling *filling = insertion->filling;

    filling->in_flight--;
    if (result != STORE_OK) {
        filling->result = result;
        filling->to_start = 0;
    } else {
        print_key(&insertion->secret, &insertion->id);
    }
    if (filling->to_start > 0)
        insertion_begin(insertion);
    else if (filling->in_flight == 0)
        store_client_done(&filling->client);
}

static void fill(struct filling *filling)
{
    static struct insertion insertions[IN_FLIGHT];

    for (size_t i = 0; i < IN_FLIGHT && filling->to_start > 0; i++) {
        insertions[i].filling = filling;
        insertion_begin(&insertions[i]);
    }
    if (filling->in_flight > 0)
        store_client_wait(&filling->client);
    secure_wipe(insertions, sizeof insertions);
}

static int fill_store(const struct settings *settings, const struct key_record *key, uint64_t count)
{
    static const struct store_refusals REFUSALS = {.conflict = "a key exists already", .refused = "no such account"};
    static struct filling filling;
    char storage[FILL_WHY_MAX_BYTES];
    struct buf why;

    filling.key = *key;
    if (!key_set_name(&filling.key, TEXT("bench")))
        return EXIT_FAILED;
    filling.to_start = count;
    buf_init_fixed(&why, storage, sizeof storage);
    filling.keyring = key_file_load(settings, &why);
    if (!filling.keyring)
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    int code = store_client_open(&filling.client, settings, filling.keyring);
    if (code == EXIT_DONE) {
        store_client_choose(&filling.client, &key->account);
        fill(&filling);
        code = store_client_explain(&filling.client, filling.result, &REFUSALS);
        store_client_close(&filling.client);
    }
    keyring_destroy(filling.keyring);
    return code;
}

static void print_unknown(uint64_t count)
{
    for (; count > 0; count--) {
        const struct id id = id_mint(ID_KEY, clock_wall_ms());
        struct secret secret;

        secret_mint(KEY_API, MODE_LIVE, &secret);
        print_key(&secret, &id);
    }
}

static bool read_kind(const char *name, struct key_record *key)
{
    key->kind = strcmp(name, "device") == 0 ? KEY_DEVICE : KEY_API;
    key->scopes = strcmp(name, "manager") == 0 ? SCOPE_ALL : SCOPE_PATIENTS_READ;
    return key->kind == KEY_DEVICE || key->scopes == SCOPE_ALL;
}

int main(int argc, char **argv)
{
    static const char USAGE[] = "usage: bench_fill COUNT [ACCOUNT [device|manager]]";
    const struct option_table tables[] = {SETTINGS_STORE, SETTINGS_KEYS};
    struct key_record key = {.kind = KEY_API, .mode = MODE_LIVE, .scopes = SCOPE_PATIENTS_READ};
    char storage[FILL_WHY_MAX_BYTES];
    struct settings settings = {0};
    struct buf why;
    uint64_t count;
    int rest;

    buf_init_fixed(&why, storage, sizeof storage);
    if (!options_read(tables, sizeof tables / sizeof *tables, &settings, argc, argv, &rest, &why))
        return command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    if (rest < 2 || rest > 4 || !text_to_u64(text_of(argv[1]), COUNT_MAX, &count) ||
        (rest > 2 && !id_parse(ID_ACCOUNT, text_of(argv[2]), &key.account)) || (rest > 3 && !read_kind(argv[3], &key)))
        return command_fail(EXIT_USAGE, "%s", USAGE);
    if (rest > 2)
        return fill_store(&settings, &key, count);
    print_unknown(count);
    return EXIT_DONE;
}
