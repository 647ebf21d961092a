/* Puts tombstones (core/tombstone.h) in place of keys that were revoked long ago. A node makes them, because scripts
 * cannot make MACs: one script finds keys, another one puts in place what the node has made of them. Each call does a
 * bounded amount of work. What is lost on the way is found again in the next pass over all accounts. */
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/tombstone.h"
#include "key_parts.h"
#include "lease/store_time.h"
#include "engine/verb.h"
#include <stdlib.h>

enum { PAUSE_MS = 10000, PORTION = 100 /* as in key_burials.lua */, ARGS_EACH = 4 };

struct burials {
    struct store *store;
    bool is_under_way;
    uint64_t next_ns;
};

/* The arguments of key_bury.lua. What is found lives as long as its reply. */
struct portion {
    size_t argc;
    struct text argv[PORTION * ARGS_EACH];
    char texts[PORTION][TOMBSTONE_NAME_CHARS + TOMBSTONE_TEXT_BYTES];
};

static void *burials_create(struct store *store)
{
    struct burials *burials = mem_alloc(sizeof *burials);

    *burials = (struct burials){.store = store};
    return burials;
}

static void burials_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct burials *burials = made;

    CHECK(!burials->is_under_way);
    free(burials);
    closed(arg);
}

static void on_buried(void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct burials *burials = arg;

    burials->is_under_way = false;
}

/* A record that cannot be believed stays: it is not known what it was. */
static void add_key(struct portion *portion, struct store *store, const struct redis_reply *found)
{
    char *texts = portion->texts[portion->argc / ARGS_EACH];
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key;
    struct text hex, packed;
    struct buf out;

    if (!reply_text(reply_at(found, 0), &hex) || !decode_hex(hex, digest, sizeof digest) ||
        !reply_text(reply_at(found, 1), &packed) || !key_decode(packed, &key) || key.revoked_ms == 0) {
        store_malformed(store, "key to bury");
        return;
    }
    if (store_believe_key(store, packed, digest, &key.id) != STORE_OK)
        return;
    buf_init_fixed(&out, texts, sizeof portion->texts[0]);
    tombstone_print_name(digest, &out);
    const struct text name = buf_text(&out);
    tombstone_print(&key, store_keyring(store), digest, &out);
    CHECK(!out.failed);
    for (size_t i = 0; i < ARGS_EACH; i++)
        portion->argv[portion->argc++] = (struct text[]){hex, packed, name, text_skip(buf_text(&out), name.len)}[i];
}

static void bury(struct burials *burials, const struct redis_reply *reply)
{
    struct portion *portion = mem_alloc(sizeof *portion);

    portion->argc = 0;
    for (size_t i = 1; i < reply->count && i <= PORTION; i++)
        add_key(portion, burials->store, reply_at(reply, i));
    if (portion->argc > 0) {
        burials->is_under_way = true;
        store_call_script(burials->store, SCRIPT_key_bury, SCRIPT_UNPROMISED, portion->argc, portion->argv, on_buried,
                          burials);
    }
    free(portion);
}

static void on_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct burials *burials = arg;
    int64_t has_more = 0;

    burials->is_under_way = false;
    if (result != STORE_OK)
        return;
    if (!reply_integer(reply_at(reply, 0), &has_more))
        store_malformed(burials->store, "keys to bury");
    if (has_more)
        burials->next_ns = 0;
    bury(burials, reply);
}

/* A node that does not know the time cannot say how long ago a key was revoked. */
static void burials_go_on(void *made)
{
    struct burials *burials = made;
    const struct store_settings *settings = store_limits(burials->store);
    uint64_t now_ns = clock_boot_ns();
    struct script_args args;

    if (burials->is_under_way || now_ns < burials->next_ns || settings->revoked_key_ms == 0 || !settings->keyring ||
        store_time_most(store_known_time(burials->store), now_ns) == 0)
        return;
    burials->is_under_way = true;
    burials->next_ns = now_ns + PAUSE_MS * CLOCK_NS_PER_MS;
    args_begin(&args);
    args_add_int(&args, settings->revoked_key_ms);
    args_add_store_time(&args, burials->store);
    store_call_script(burials->store, SCRIPT_key_burials, SCRIPT_UNPROMISED, args.count, args.argv, on_found, burials);
}

const struct store_part KEY_BURIALS = {.create = burials_create, .close = burials_close, .beat = burials_go_on};
