#include "engine/record.h"
#include "engine/access.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/loss.h"
#include "base/mem.h"
#include "core/key.h"
#include "engine/outcome.h"
#include "state.h"
#include "engine/store.h"

#include <stdio.h>
#include <stdlib.h>

struct keyring *store_keyring(const struct store *store)
{
    REQUIRE(store->settings.keyring);
    return store->settings.keyring;
}

/* Master keys */

void record_keys_ask(struct store *store, script_done *done)
{
    bool may_note = store->settings.key_use == STORE_KEY_FITS;
    const struct text argv[] = {keyring_name(store->settings.keyring, 0), may_note ? TEXT("1") : TEXT("0")};

    script_call_probe(store, SCRIPT_master_keys, sizeof argv / sizeof *argv, argv, done, store);
}

static bool has_key(const struct keyring *keyring, struct text name)
{
    for (size_t i = 0; i < keyring_generations(keyring); i++)
        if (text_equal(keyring_name(keyring, i), name))
            return true;
    return false;
}

/* The names begin at items[2]. False: malformed. */
static bool compare_names(const struct keyring *keyring, const struct redis_reply *reply, struct store_facts *facts)
{
    bool has_current = false;

    facts->keys = STORE_KEYS_FIT;
    for (size_t i = 2; i < reply->count; i++) {
        struct text name;

        if (!reply_text(reply->items[i], &name))
            return false;
        has_current |= text_equal(name, keyring_name(keyring, 0));
        if (has_key(keyring, name))
            continue;
        facts->keys = STORE_KEYS_LACKING;
        snprintf(facts->lacking, sizeof facts->lacking, "%.*s", TEXT_ARG(name));
    }
    if (!has_current && reply->count > 2)
        facts->keys = STORE_KEYS_OTHER;
    return true;
}

/* "<until, ms> <MAC>". The MAC proves that the holder of a master key allowed it. 0: not allowed. */
static int64_t read_unsealed(struct keyring *keyring, struct text t)
{
    struct text until;
    uint64_t until_ms;

    if (!text_next(&t, ' ', &until) || !text_to_u64(until, INT64_MAX, &until_ms))
        return 0;
    const struct record_parts record = {RECORD_GRACE, 1, &until};
    return record_mac_verify(keyring, &record, t, NULL) == RECORD_SEALED ? (int64_t)until_ms : 0;
}

static bool read_keys(struct keyring *keyring, const struct redis_reply *reply, struct store_facts *facts)
{
    struct text unsealed;
    int64_t is_older;

    if (!reply_integer(reply_at(reply, 0), &is_older) || !reply_text(reply_at(reply, 1), &unsealed) ||
        !compare_names(keyring, reply, facts))
        return false;
    if (is_older)
        facts->keys = STORE_KEYS_UNNOTED;
    facts->unsealed_until_ms = read_unsealed(keyring, unsealed);
    return true;
}

void record_keys_answered(struct store *store, enum store_result result, const struct redis_reply *reply)
{
    struct store_facts *facts = &store->examination.facts;

    facts->any_key_will_do = store->settings.key_use == STORE_KEY_ROTATES;
    if (result != STORE_OK)
        return;
    if (!read_keys(store->settings.keyring, reply, facts)) {
        store_malformed(store, "master key names");
        facts->keys = STORE_KEYS_UNJUDGED;
    }
    store->keys = facts->keys;
    store->unsealed_until_ms = facts->unsealed_until_ms;
}

/* Records */

int64_t store_clock_ms(const struct store *store)
{
    return redis_clock_ms(&store->clock);
}

const struct redis_clock *store_redis_clock(const struct store *store)
{
    return &store->clock;
}

struct clock_call {
    struct store *store;
    struct redis_clock_question question;
    void (*then)(void *arg);
    void *arg;
};

static void clock_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct clock_call call = *(struct clock_call *)arg;
    struct store_time_said said;

    free(arg);
    if (result == STORE_OK && store_time_read(reply, &said))
        redis_clock_told(&call.store->clock, &call.question, said.clock_ms);
    call.then(call.arg);
}

void store_know_clock(struct store *store, void (*then)(void *arg), void *arg)
{
    struct clock_call *call;

    if (redis_clock_is_known(&store->clock)) {
        then(arg);
        return;
    }
    call = mem_alloc(sizeof *call);
    *call = (struct clock_call){store, redis_clock_question(), then, arg};
    store_call_script(store, SCRIPT_store_time, SCRIPT_READS, 0, NULL, clock_answered, call);
}

bool store_takes_unsealed(const struct store *store)
{
    return !store->settings.keyring || clock_wall_ms() < store->unsealed_until_ms;
}

enum store_result store_absent(const struct store *store)
{
    return !store->settings.keyring || store->keys == STORE_KEYS_FIT ? STORE_NOT_FOUND : STORE_UNAVAILABLE;
}

enum store_result store_altered(struct store *store, const char *what, struct text id)
{
    if (store_absent(store) != STORE_NOT_FOUND)
        return STORE_UNAVAILABLE;
    metric_add(METRIC_RECORDS_ALTERED, 1);
    if (store_may_log(store, &store->altered_pause))
        LOG(LOG_ERROR, LOSSES[LOSS_RECORDS].message, log_str("record", what), log_text("id", id),
            log_int("suppressed", store->altered_pause.suppressed));
    return STORE_NOT_FOUND;
}

static enum store_result believe(struct store *store, enum record_seal seal, const char *what, struct text id)
{
    if (seal == RECORD_SEALED || (seal == RECORD_UNSEALED && store_takes_unsealed(store)))
        return STORE_OK;
    return store_altered(store, what, id);
}

enum store_result store_believe(struct store *store, const struct record_parts *record, struct text mac,
                                const char *what, struct text id)
{
    struct keyring *keyring = store->settings.keyring;

    return keyring ? believe(store, record_mac_verify(keyring, record, mac, NULL), what, id) : STORE_OK;
}

enum store_result store_believe_key(struct store *store, struct text packed, const uint8_t *digest, const struct id *id)
{
    struct keyring *keyring = store->settings.keyring;

    return keyring ? believe(store, key_verify(packed, keyring, digest), "key", id_text(id)) : STORE_OK;
}
