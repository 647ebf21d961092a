#include "lease/heard.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/machine.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_ID_CHARS = 41, /* "<ms>-<number>", each of at most 20 digits */
    /* More are not worth it: reading them would stall the loop for some 10 ms. It must be far below the number of
     * entries at which Redis cuts the stream (INVALIDATIONS_KEPT in the prelude), or an empty stream would not tell a
     * cut one. */
    MISSED_MAX = 10000,
    COUNT_BYTES = 12,
    LEARNED_MAX = 10000,
    LEARNED_MS = 600 * 1000,
    CHANGE_KEYS_MAX = 1024, /* scripts end fewer keys together */
};

/* Of a stream to which nothing was added yet. */
#define NO_ENTRY "0-0"

/* An entry of the stream of one Redis process. */
struct stream_entry {
    char id[ENTRY_ID_CHARS + 1]; /* empty: none */
    char run_id[REDIS_RUN_ID_CHARS + 1];
};

enum heard_state { HEARD_IDLE, HEARD_CATCHING_UP, HEARD_LEARNING };

static const struct machine MACHINE = {
    .name = "catching up",
    .count = HEARD_LEARNING + 1,
    MACHINE_ROW(HEARD_IDLE, MACHINE_TO(HEARD_CATCHING_UP) | MACHINE_TO(HEARD_LEARNING)),
    MACHINE_ROW(HEARD_CATCHING_UP, MACHINE_TO(HEARD_IDLE)),
    MACHINE_ROW(HEARD_LEARNING, MACHINE_TO(HEARD_IDLE)),
};

struct heard {
    const struct lease_settings *settings;
    struct identity *identity;
    struct heard_events events;
    void *arg;

    struct stream_entry known;
    struct stream_entry named; /* by the reply of the latest heartbeat */
    bool is_echoed;            /* that heartbeat */

    enum heard_state state;
    const struct redis_link *subscribed; /* while catching up; else NULL */
    void (*done)(void *arg, enum caught_up result);
};

struct heard *heard_create(const struct lease_settings *settings, struct identity *identity,
                           const struct heard_events *events, void *arg)
{
    struct heard *heard = mem_alloc(sizeof *heard);

    heard->settings = settings;
    heard->identity = identity;
    heard->events = *events;
    heard->arg = arg;
    return heard;
}

void heard_destroy(struct heard *heard)
{
    REQUIRE(!heard_is_reading(heard));
    free(heard);
}

/* subscribed: see there. */
MUST_CHECK static bool heard_move(struct heard *heard, enum heard_state state, const struct redis_link *subscribed)
{
    if (!machine_allows(&MACHINE, heard->state, state))
        return false;
    heard->state = state;
    heard->subscribed = subscribed;
    INVARIANT((subscribed != NULL) == (state == HEARD_CATCHING_UP));
    return true;
}

/* The known entry */

void heard_on_heartbeat(struct heard *heard)
{
    heard->named.id[0] = '\0';
    heard->is_echoed = false;
}

/* The echo comes behind every invalidation published before the heartbeat, and so behind those up to the entry. */
static void note_known(struct heard *heard)
{
    if (heard->named.id[0] && (heard->is_echoed || !RULE(RULE_HEARD)))
        heard->known = heard->named;
}

void heard_on_reply(struct heard *heard, struct text last)
{
    if (last.len > ENTRY_ID_CHARS)
        last.len = 0;
    snprintf(heard->named.id, sizeof heard->named.id, "%.*s", TEXT_ARG(last));
    snprintf(heard->named.run_id, sizeof heard->named.run_id, "%s", redis_link_run_id(heard->settings->changes));
    note_known(heard);
}

void heard_on_echo(struct heard *heard)
{
    heard->is_echoed = true;
    note_known(heard);
}

bool heard_has_known(const struct heard *heard)
{
    return heard->known.id[0] != '\0';
}

void heard_forget(struct heard *heard)
{
    heard_on_heartbeat(heard);
    heard->known.id[0] = '\0';
}

/* Catching up */

static bool knows_no_entry(const struct heard *heard)
{
    return strcmp(heard->known.id, NO_ENTRY) == 0;
}

/* What one change ended, of which each key has an entry. */
struct heard_change {
    struct change_name name;
    struct heard_ending endings[CHANGE_KEYS_MAX];
    size_t count;
};

static void keep_change(const struct heard *heard, struct heard_change *change)
{
    heard->events.on_endings(heard->arg, change->name, change->endings, change->count);
    change->count = 0;
}

static struct change_name name_of(const struct redis_reply *entry)
{
    struct change_name name = {.maker = reply_named_text(reply_at(entry, 1), TEXT("chain"))};

    if (!text_to_u64(reply_named_text(reply_at(entry, 1), TEXT("number")), INT64_MAX, &name.number))
        name.maker = (struct text){0};
    return name;
}

static bool is_same_change(struct change_name a, struct change_name b)
{
    return a.maker.len > 0 && text_equal(a.maker, b.maker) && a.number == b.number;
}

/* Entries of nodes of earlier versions do not say since when a key is revoked, and are not kept. */
static bool read_ending(const struct redis_reply *fields, struct heard_ending *ret_ending)
{
    struct text revoked = reply_named_text(fields, TEXT("revoked")),
                replaced = reply_named_text(fields, TEXT("replaced_at")),
                at = replaced.ptr ? replaced : reply_named_text(fields, TEXT("at")),
                key = reply_named_text(fields, TEXT("id"));
    uint64_t ms = 0, said = 0;

    if ((!id_parse(ID_KEY, key, &ret_ending->subject) && !id_parse(ID_DEVICE, key, &ret_ending->subject)) ||
        !id_parse(ID_ACCOUNT, reply_named_text(fields, TEXT("account")), &ret_ending->account) ||
        (!revoked.ptr && !at.ptr))
        return false;
    ret_ending->what = revoked.ptr ? ENDING_REVOKED : at.len > 0 ? ENDING_SCHEDULED : ENDING_WITHDRAWN;
    if (ret_ending->what != ENDING_WITHDRAWN && !text_to_u64(revoked.ptr ? revoked : at, INT64_MAX, &ms))
        return false;
    if (ret_ending->what != ENDING_REVOKED && !text_to_u64(reply_named_text(fields, TEXT("said")), INT64_MAX, &said))
        return false;
    ret_ending->at_ms = (int64_t)ms;
    ret_ending->said_ms = (int64_t)said;
    ret_ending->by_replacement = replaced.ptr != NULL;
    return true;
}

static void keep_entry(const struct heard *heard, const struct redis_reply *entry, struct heard_change *change)
{
    struct change_name name = name_of(entry);

    if (change->count > 0 && (!is_same_change(name, change->name) || change->count == CHANGE_KEYS_MAX))
        keep_change(heard, change);
    change->name = name;
    INVARIANT(change->count < CHANGE_KEYS_MAX);
    change->count += read_ending(reply_at(entry, 1), &change->endings[change->count]);
}

/* "key", its digest and more; or "account" and more, of which suspensions.c keeps account. */
static bool read_entry(const struct heard *heard, const struct redis_reply *entry, struct heard_change *change)
{
    const struct redis_reply *fields = reply_at(entry, 1);
    uint8_t digest[KEY_DIGEST_BYTES];
    struct text kind, name;

    if (!reply_text(reply_at(fields, 0), &kind) || !reply_text(reply_at(fields, 1), &name))
        return false;
    if (text_equal(kind, TEXT("account")))
        return true;
    if (!text_equal(kind, TEXT("key")) || !decode_hex(name, digest, sizeof digest))
        return false;
    heard->events.on_missed(heard->arg, digest);
    keep_entry(heard, entry, change);
    return true;
}

static bool begins_with_known(const struct heard *heard, const struct redis_reply *entries)
{
    struct text id;

    return reply_text(reply_at(reply_at(entries, 0), 0), &id) && text_equal(id, text_of(heard->known.id));
}

/* Without the known entry the list does not begin where the node stopped hearing. */
static bool read_entries(const struct heard *heard, const struct redis_reply *entries)
{
    bool is_in_front = begins_with_known(heard, entries), is_read = true;
    struct heard_change change;

    if (entries->type != REPLY_ARRAY || entries->count > MISSED_MAX ||
        (!is_in_front && !knows_no_entry(heard) && RULE(RULE_KNOWN)))
        return false;
    change.name = (struct change_name){0};
    change.count = 0;
    for (size_t i = is_in_front; is_read && i < entries->count; i++)
        is_read = read_entry(heard, reply_at(entries, i), &change);
    keep_change(heard, &change);
    return is_read;
}

/* Both at the server that holds our store. */
static bool is_from_the_same(const struct heard *heard, const struct redis_link *subscribed)
{
    const char *run_id = redis_link_run_id(heard->settings->reads);

    return identity_may_decide(heard->identity) &&
           (strcmp(run_id, redis_link_run_id(subscribed)) == 0 || !RULE(RULE_RUN_ID));
}

static void on_entries(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct heard *heard = arg;
    enum caught_up result = CANNOT_CATCH_UP;

    if (outcome == REDIS_REPLIED && heard_has_known(heard)) {
        if (!is_from_the_same(heard, heard->subscribed))
            result = CATCH_UP_AGAIN;
        else if (read_entries(heard, reply))
            result = CAUGHT_UP;
    }
    if (!heard_move(heard, HEARD_IDLE, NULL))
        result = CANNOT_CATCH_UP;
    heard->done(heard->arg, result);
}

/* Another process may hold another history. If another Redis may take over, two of them may have written at the same
 * time, so that an entry's id does not tell them apart. */
static bool may_have_known(const struct heard *heard, const struct redis_link *subscribed)
{
    bool is_same_process = strcmp(heard->known.run_id, redis_link_run_id(subscribed)) == 0;

    return heard_has_known(heard) && (is_same_process || (!heard->settings->may_be_replaced && !knows_no_entry(heard)));
}

static void ask_entries(struct heard *heard)
{
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "inv_log"], count[COUNT_BYTES];
    struct redis_link *reads = heard->settings->reads;

    REQUIRE(heard_has_known(heard));
    snprintf(name, sizeof name, "%sinv_log", heard->settings->prefix);
    snprintf(count, sizeof count, "%d", MISSED_MAX + 1);
    identity_witness(heard->identity, reads);
    redis_link_call(reads, 6,
                    (struct text[]){TEXT("XRANGE"), text_of(name), text_of(heard->known.id), TEXT("+"), TEXT("COUNT"),
                                    text_of(count)},
                    on_entries, heard);
}

void heard_catch_up(struct heard *heard, const struct redis_link *subscribed,
                    void (*done)(void *arg, enum caught_up result))
{
    if (may_have_known(heard, subscribed) && !is_from_the_same(heard, subscribed))
        return;
    if (!may_have_known(heard, subscribed) || !heard_move(heard, HEARD_CATCHING_UP, subscribed)) {
        done(heard->arg, CANNOT_CATCH_UP);
        return;
    }
    heard->done = done;
    ask_entries(heard);
}

bool heard_is_reading(const struct heard *heard)
{
    return heard->state != HEARD_IDLE;
}

/* Learning */

static uint64_t ms_of(const struct redis_reply *entry)
{
    struct text id, ms;
    uint64_t value = 0;

    if (!reply_text(reply_at(entry, 0), &id) || !text_next(&id, '-', &ms) || !text_to_u64(ms, INT64_MAX, &value))
        return 0;
    return value;
}

/* The newest entry comes first. If there are more than these, the oldest change may not be whole and is left out. */
static void learn(const struct heard *heard, const struct redis_reply *entries)
{
    uint64_t newest_ms = ms_of(reply_at(entries, 0));
    struct heard_change change = {.count = 0};
    size_t count = entries->count;

    while (entries->count == LEARNED_MAX && count > 0 &&
           is_same_change(name_of(reply_at(entries, count - 1)), name_of(reply_at(entries, entries->count - 1))))
        count--;
    for (size_t i = count; i-- > 0;)
        if (newest_ms - ms_of(reply_at(entries, i)) <= LEARNED_MS)
            keep_entry(heard, reply_at(entries, i), &change);
    keep_change(heard, &change);
}

static void on_learned(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct heard *heard = arg;

    if (heard_move(heard, HEARD_IDLE, NULL) && outcome == REDIS_REPLIED && reply->type == REPLY_ARRAY &&
        reply->count > 0)
        learn(heard, reply);
    heard->events.on_learned(heard->arg);
}

void heard_learn(struct heard *heard)
{
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "inv_log"], count[COUNT_BYTES];

    if (heard_is_reading(heard) || !heard_move(heard, HEARD_LEARNING, NULL))
        return;
    snprintf(name, sizeof name, "%sinv_log", heard->settings->prefix);
    snprintf(count, sizeof count, "%d", LEARNED_MAX);
    redis_link_call(
        heard->settings->scripts, 6,
        (struct text[]){TEXT("XREVRANGE"), text_of(name), TEXT("+"), TEXT("-"), TEXT("COUNT"), text_of(count)},
        on_learned, heard);
}
