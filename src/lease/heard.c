#include "lease/heard.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ENTRY_ID_CHARS = 41, /* "<ms>-<number>", each of at most 20 digits */
    /* More are not worth it: reading them would stall the loop for some 10 ms. It must be far below the number of
     * entries at which Redis cuts the stream (INVALIDATIONS_KEPT in prelude.lua), or an empty stream would not tell a
     * cut one. */
    MISSED_MAX = 10000,
    COUNT_BYTES = 12,
    CHANGE_MAX = 1024, /* keys that one change ended; scripts end fewer together */
};

/* Of a stream to which nothing was added yet. */
#define NO_ENTRY "0-0"

/* An entry of the stream of one Redis process. */
struct entry {
    char id[ENTRY_ID_CHARS + 1]; /* empty: none */
    char run_id[REDIS_RUN_ID_CHARS + 1];
};

struct heard {
    const struct lease_settings *settings;
    struct identity *identity;
    struct heard_events events;
    void *arg;

    struct entry known;
    struct entry named; /* by the reply of the latest heartbeat */
    bool is_echoed;     /* that heartbeat */

    const struct redis_link *subscribed; /* while reading; NULL: nothing is read */
    void (*done)(void *arg, bool is_whole);
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
    CHECK(!heard->subscribed);
    free(heard);
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

static struct text field_of(const struct redis_reply *fields, struct text wanted)
{
    struct text name, value;

    for (size_t i = 0; fields && i + 1 < fields->count; i += 2)
        if (reply_text(reply_at(fields, i), &name) && text_equal(name, wanted) &&
            reply_text(reply_at(fields, i + 1), &value))
            return value;
    return (struct text){0};
}

/* A change's entries follow each other. */
struct of_change {
    struct change_name change;
    struct heard_ending endings[CHANGE_MAX];
    size_t count;
};

static void keep_change(const struct heard *heard, struct of_change *of)
{
    if (of->count > 0)
        heard->events.on_endings(heard->arg, of->change, of->endings, of->count);
    of->count = 0;
}

/* Entries of nodes of earlier versions do not say since when a key is revoked, and are not kept. */
static void keep_entry(const struct heard *heard, const struct redis_reply *fields, struct of_change *of)
{
    struct text revoked = field_of(fields, TEXT("revoked")), at = field_of(fields, TEXT("at")),
                key = field_of(fields, TEXT("id"));
    struct change_name change = {.maker = field_of(fields, TEXT("chain"))};
    struct heard_ending ending;
    uint64_t ms = 0;

    if ((!id_parse(ID_KEY, key, &ending.subject) && !id_parse(ID_DEVICE, key, &ending.subject)) ||
        !id_parse(ID_ACCOUNT, field_of(fields, TEXT("account")), &ending.account) || (!revoked.ptr && !at.ptr))
        return;
    ending.what = revoked.ptr ? ENDING_REVOKED : at.len > 0 ? ENDING_SCHEDULED : ENDING_WITHDRAWN;
    if (ending.what != ENDING_WITHDRAWN && !text_to_u64(revoked.ptr ? revoked : at, INT64_MAX, &ms))
        return;
    ending.at_ms = (int64_t)ms;
    if (!text_to_u64(field_of(fields, TEXT("number")), INT64_MAX, &change.number))
        change.maker = (struct text){0};
    if (of->count == CHANGE_MAX || change.number != of->change.number || !text_equal(change.maker, of->change.maker))
        keep_change(heard, of);
    of->change = change;
    of->endings[of->count++] = ending;
}

/* "key", its digest and more; or "account" and more, of which suspensions.c keeps account. */
static bool read_entry(const struct heard *heard, const struct redis_reply *entry, struct of_change *of)
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
    keep_entry(heard, fields, of);
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
    bool is_in_front = begins_with_known(heard, entries);
    struct of_change of = {0};

    if (entries->type != REPLY_ARRAY || entries->count > MISSED_MAX ||
        (!is_in_front && !knows_no_entry(heard) && RULE(RULE_KNOWN)))
        return false;
    for (size_t i = is_in_front; i < entries->count; i++)
        if (!read_entry(heard, reply_at(entries, i), &of))
            return false;
    keep_change(heard, &of);
    return true;
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
    bool is_whole = outcome == REDIS_REPLIED && heard_has_known(heard) && is_from_the_same(heard, heard->subscribed) &&
                    read_entries(heard, reply);

    heard->subscribed = NULL;
    heard->done(heard->arg, is_whole);
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

    snprintf(name, sizeof name, "%sinv_log", heard->settings->prefix);
    snprintf(count, sizeof count, "%d", MISSED_MAX + 1);
    identity_witness(heard->identity, reads);
    redis_link_call(reads, 6,
                    (struct text[]){TEXT("XRANGE"), text_of(name), text_of(heard->known.id), TEXT("+"), TEXT("COUNT"),
                                    text_of(count)},
                    on_entries, heard);
}

bool heard_catch_up(struct heard *heard, const struct redis_link *subscribed, void (*done)(void *arg, bool is_whole))
{
    CHECK(!heard->subscribed);
    if (!may_have_known(heard, subscribed)) {
        done(heard->arg, false);
        return true;
    }
    if (!is_from_the_same(heard, subscribed))
        return false;
    heard->subscribed = subscribed;
    heard->done = done;
    ask_entries(heard);
    return true;
}

bool heard_is_reading(const struct heard *heard)
{
    return heard->subscribed != NULL;
}
