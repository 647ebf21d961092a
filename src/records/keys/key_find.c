#include "engine/access.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "core/tombstone.h"
#include "key_parts.h"
#include "lease/lease.h"
#include "lease/store_time.h"
#include "engine/outcome.h"
#include "engine/readiness.h"
#include "engine/record.h"
#include "engine/script.h"
#include "records/key_store.h"
#include <stdlib.h>
#include <string.h>

struct find_call {
    struct key_finder *finder;
    key_found *done;
    void *arg;
    uint8_t digest[KEY_DIGEST_BYTES];
    unsigned reads;
    uint64_t trust;                 /* when the last of them was sent */
    struct key_record *ending;      /* a key that will be revoked, while Redis is asked whether it is time; else NULL */
    struct store_time_bounds asked; /* what this node knew of the store's time when it began to ask */
    struct find_call *next_free;
};

/* Each read but the first needs a suspension since the one before. More of them are a store that contradicts itself. */
enum { READS_MAX = 8 };

struct key_finder {
    struct store *store;
    /* The prepared command. Only the digest's hex digits change; they begin at digits_at. */
    size_t command_len, digits_at;
    char command[96 + REDIS_PREFIX_MAX_BYTES];
    struct find_call *free_calls;
    size_t under_way;
};

/* This and ask_dead() are the only places outside the prelude that know names of keys in Redis. */
static void prepare_command(struct key_finder *finder, struct text prefix)
{
    static const uint8_t NO_DIGEST[KEY_DIGEST_BYTES];
    const struct text record = TEXT("key:");
    struct buf out;

    CHECK(prefix.len <= REDIS_PREFIX_MAX_BYTES);
    buf_init_fixed(&out, finder->command, sizeof finder->command);
    buf_append_text(&out, TEXT("*2\r\n$3\r\nGET\r\n$"));
    buf_append_u64(&out, prefix.len + record.len + 2 * KEY_DIGEST_BYTES);
    buf_append_text(&out, TEXT("\r\n"));
    buf_append_text(&out, prefix);
    buf_append_text(&out, record);
    finder->digits_at = out.len;
    encode_hex(&out, NO_DIGEST, KEY_DIGEST_BYTES);
    buf_append_text(&out, TEXT("\r\n"));
    CHECK(!out.failed);
    finder->command_len = out.len;
}

/* Valid until the next call. */
static struct text command_for(struct key_finder *finder, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct buf digits;

    buf_init_fixed(&digits, finder->command + finder->digits_at, 2 * KEY_DIGEST_BYTES);
    encode_hex(&digits, digest, KEY_DIGEST_BYTES);
    return (struct text){finder->command, finder->command_len};
}

static void *finder_create(struct store *store)
{
    struct key_finder *finder = mem_alloc(sizeof *finder);

    finder->store = store;
    prepare_command(finder, store_prefix(store));
    return finder;
}

static void finder_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct key_finder *finder = made;
    struct find_call *call;

    CHECK(finder->under_way == 0);
    while ((call = finder->free_calls)) {
        finder->free_calls = call->next_free;
        free(call);
    }
    free(finder);
    closed(arg);
}

const struct store_part KEY_FINDER = {.create = finder_create, .close = finder_close};

static struct find_call *call_take(struct key_finder *finder)
{
    struct find_call *call = finder->free_calls;

    if (call)
        finder->free_calls = call->next_free;
    else
        call = mem_alloc(sizeof *call);
    call->finder = finder;
    finder->under_way++;
    return call;
}

static void call_give_back(struct find_call *call)
{
    struct key_finder *finder = call->finder;

    call->next_free = finder->free_calls;
    finder->free_calls = call;
    finder->under_way--;
}

static enum store_result read_key(struct store *store, const uint8_t *digest, const struct redis_reply *reply,
                                  struct key_record *ret_key)
{
    struct text packed;

    if (reply->type == REPLY_NIL)
        return store_absent(store);
    if (reply_text(reply, &packed) && key_decode(packed, ret_key))
        return store_believe_key(store, packed, digest, &ret_key->id);
    store_malformed(store, "key");
    return STORE_UNAVAILABLE;
}

static enum store_result read_tombstone(struct store *store, const uint8_t *digest, const struct redis_reply *reply,
                                        struct key_record *ret_key)
{
    struct text t;

    if (reply->type == REPLY_NIL)
        return store_absent(store);
    if (!reply_text(reply, &t) || !tombstone_read(t, ret_key)) {
        store_malformed(store, "tombstone");
        return STORE_UNAVAILABLE;
    }
    if (store_limits(store)->keyring && tombstone_verify(t, store_keyring(store), digest) != RECORD_SEALED)
        return store_altered(store, "tombstone", TEXT(""));
    return STORE_OK;
}

static void on_replied(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);

static void send_read(struct find_call *call)
{
    struct store *store = call->finder->store;

    call->reads++;
    call->trust = identity_trust(lease_identity(store_lease(store)));
    identity_witness(lease_identity(store_lease(store)), store_reads(store));
    redis_link_call_raw(store_reads(store), command_for(call->finder, call->digest), on_replied, call);
}

static void find_done(struct find_call *call, enum store_result result, struct key_record *key)
{
    const struct suspensions *suspensions = lease_suspensions(store_lease(call->finder->store));

    if (result == STORE_OK && !key_is_tombstone(key))
        key->is_suspended = suspensions_include(suspensions, &key->account);
    call->done(call->arg, result, result == STORE_OK ? key : NULL);
    free(call->ending);
    call_give_back(call);
}

/* Redis' clock may have been set since the last heartbeat. So the key is revoked once the first that the time can be
 * has come within what may be too early, and accepted until the last has come. In between nobody knows. The reply may
 * have waited while this process was paused, and an entry of the cache is only as old as the reply's reading: so what
 * counts for the cache is the last that the time can be by now. */
static enum store_result judge_end(struct find_call *call, const struct store_time_said *said, struct key_record *key)
{
    bool waits = lease_member_ms(store_lease(call->finder->store)) > 0;
    struct store_time_span span = store_time_span(&call->asked, said, waits, clock_boot_ns());

    if (key->ends_ms > span.latest_ms) {
        key->is_ending = key->ends_ms - span.latest_now_ms < KEY_ENDS_SOON_MS;
        return STORE_OK;
    }
    if (key->ends_ms > span.first_ms + STORE_EARLY_MAX_MS)
        return STORE_UNAVAILABLE;
    key->revoked_ms = key->ends_ms > key->created_ms ? key->ends_ms : key->created_ms;
    key->ends_ms = 0;
    return STORE_OK;
}

static void on_time(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call *call = arg;
    struct store_time_said said;

    if (result == STORE_OK && !store_time_read(reply, &said)) {
        store_malformed(call->finder->store, "time");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = judge_end(call, &said, call->ending);
    find_done(call, result, call->ending);
}

static void ask_time(struct find_call *call, const struct key_record *key)
{
    call->ending = mem_alloc(sizeof *call->ending);
    *call->ending = *key;
    call->asked = store_time_bounds(store_known_time(call->finder->store), clock_boot_ns());
    store_call_script(call->finder->store, SCRIPT_store_time, SCRIPT_READS, 0, NULL, on_time, call);
}

static bool may_decide(const struct find_call *call)
{
    struct store *store = call->finder->store;
    uint64_t trust = identity_trust(lease_identity(store_lease(store)));

    return store_may_decide(store) && (call->trust == trust || !RULE(RULE_GATHER));
}

/* The key does not live: one that was revoked long ago, or none. So this read only decides how it is refused. */
static void on_dead(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct find_call *call = arg;
    struct store *store = call->finder->store;
    struct key_record key = {.id = {{0}}};
    enum store_result result = store_outcome(store, outcome, reply);

    if (result == STORE_OK)
        result = may_decide(call) ? read_tombstone(store, call->digest, reply, &key) : STORE_UNAVAILABLE;
    find_done(call, result, &key);
}

static void ask_dead(struct find_call *call)
{
    struct store *store = call->finder->store;
    char storage[REDIS_PREFIX_MAX_BYTES + 64];
    struct buf name;

    buf_init_fixed(&name, storage, sizeof storage);
    buf_append_text(&name, store_prefix(store));
    buf_append_text(&name, TEXT("dead:"));
    tombstone_print_name(call->digest, &name);
    CHECK(!name.failed);
    identity_witness(lease_identity(store_lease(store)), store_reads(store));
    redis_link_call(store_reads(store), 2, (struct text[]){TEXT("GET"), buf_text(&name)}, on_dead, call);
}

/* Without the set of suspended accounts, or with one that is older than this read, the key is read again: the set is
 * then read before it. */
static void on_replied(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct find_call *call = arg;
    struct store *store = call->finder->store;
    const struct suspensions *suspensions = lease_suspensions(store_lease(store));
    struct key_record key = {0};
    enum store_result result = store_outcome(store, outcome, reply);

    if (result == STORE_OK)
        result = may_decide(call) ? read_key(store, call->digest, reply, &key) : STORE_UNAVAILABLE;
    if (result == STORE_NOT_FOUND && reply->type == REPLY_NIL) {
        ask_dead(call);
        return;
    }
    if (result == STORE_OK && !suspensions_cover_batch(suspensions)) {
        if (call->reads < READS_MAX) {
            send_read(call);
            return;
        }
        store_malformed(store, "version of suspended accounts");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK && key.ends_ms > 0)
        ask_time(call, &key);
    else
        find_done(call, result, &key);
}

void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg)
{
    struct find_call *call = call_take(store_part(store, &KEY_FINDER));

    call->done = done;
    call->arg = arg;
    call->reads = 0;
    call->ending = NULL;
    memcpy(call->digest, digest, sizeof call->digest);
    send_read(call);
}
