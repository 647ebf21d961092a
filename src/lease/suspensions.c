#include "lease/suspensions.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "lease/names.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOLD_AT_ONCE = 100, /* accounts in a call of account_suspend_again.lua */
    VERSION_BYTES = 24,
};

/* Sorted. */
struct account_set {
    uint8_t (*accounts)[ULID_BYTES];
    size_t count, room;
    uint64_t version;
};

struct suspensions {
    const struct lease_settings *settings;
    struct account_set set;              /* as last known: what this node tells again */
    uint64_t memberships;                /* begun or ended */
    char run_id[REDIS_RUN_ID_CHARS + 1]; /* of the Redis that the set was read from */
    bool is_known;                       /* the set is complete since the membership began */
    bool covers_batch;                   /* and at least as new as the last batch of reads */
    bool is_telling, is_stopped;
    size_t told;
    uint8_t last_told[ULID_BYTES];
};

struct suspensions *suspensions_create(const struct lease_settings *settings)
{
    struct suspensions *suspensions = mem_alloc(sizeof *suspensions);

    suspensions->settings = settings;
    return suspensions;
}

void suspensions_stop(struct suspensions *suspensions)
{
    suspensions->is_stopped = true;
}

void suspensions_destroy(struct suspensions *suspensions)
{
    free(suspensions->set.accounts);
    free(suspensions);
}

/* The set */

static int compare_accounts(const void *a, const void *b)
{
    return memcmp(a, b, ULID_BYTES);
}

/* The account's place, or the place that it would get. */
static size_t place_of(const struct account_set *set, const uint8_t account[ULID_BYTES])
{
    size_t from = 0, to = set->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare_accounts(set->accounts[middle], account) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool is_at(const struct account_set *set, size_t place, const uint8_t account[ULID_BYTES])
{
    return place < set->count && compare_accounts(set->accounts[place], account) == 0;
}

static void make_room(struct account_set *set, size_t count)
{
    if (count <= set->room)
        return;
    set->room = count > 2 * set->room ? count : 2 * set->room;
    set->accounts = mem_resize(set->accounts, set->room * sizeof *set->accounts);
}

/* Otherwise the search would not find a suspended account. */
static bool is_in_order(const struct account_set *set, size_t place)
{
    return (place == 0 || compare_accounts(set->accounts[place - 1], set->accounts[place]) < 0) &&
           (place + 1 >= set->count || compare_accounts(set->accounts[place], set->accounts[place + 1]) < 0);
}

static void put(struct account_set *set, size_t place, const uint8_t account[ULID_BYTES])
{
    make_room(set, set->count + 1);
    memmove(set->accounts + place + 1, set->accounts + place, (set->count - place) * sizeof *set->accounts);
    memcpy(set->accounts[place], account, ULID_BYTES);
    set->count++;
    ENSURE(is_in_order(set, place));
}

static void take_out(struct account_set *set, size_t place)
{
    REQUIRE(place < set->count);
    set->count--;
    memmove(set->accounts + place, set->accounts + place + 1, (set->count - place) * sizeof *set->accounts);
}

bool suspensions_include(const struct suspensions *suspensions, const struct id *account)
{
    const struct account_set *set = &suspensions->set;
    uint8_t bytes[ULID_BYTES];

    if (set->count == 0)
        return false;
    id_to_bytes(account, bytes);
    return is_at(set, place_of(set, bytes), bytes);
}

bool suspensions_are_known(const struct suspensions *suspensions)
{
    return suspensions->is_known;
}

bool suspensions_cover_batch(const struct suspensions *suspensions)
{
    return suspensions->is_known && suspensions->covers_batch;
}

/* Messages */

void suspensions_forget(struct suspensions *suspensions)
{
    suspensions->is_known = false;
}

/* A set may have been read while there was none: nobody told this node what changed from then on. */
void suspensions_on_membership(struct suspensions *suspensions)
{
    suspensions->memberships++;
    suspensions_forget(suspensions);
}

/* A set that is not known is changed as well, because it may have to be told again. */
void suspensions_hear(struct suspensions *suspensions, const struct id *account, bool is_suspended, uint64_t version)
{
    struct account_set *set = &suspensions->set;
    uint8_t bytes[ULID_BYTES];
    size_t place;

    if (version <= set->version || !RULE(RULE_SUSPEND_HEAR))
        return; /* the set was read after this change */
    suspensions->is_known &= version == set->version + 1;
    set->version = version;
    id_to_bytes(account, bytes);
    place = place_of(set, bytes);
    if (is_at(set, place, bytes) == is_suspended)
        return;
    if (is_suspended)
        put(set, place, bytes);
    else
        take_out(set, place);
}

/* Reading the set */

struct asked {
    struct suspensions *suspensions;
    uint64_t memberships; /* when it was sent */
};

static bool read_field(struct account_set *set, const struct redis_reply *name, const struct redis_reply *value)
{
    struct text field, number;
    struct id account;

    if (!reply_text(name, &field) || !reply_text(value, &number))
        return false;
    if (text_equal(field, TEXT("version")))
        return text_to_u64(number, INT64_MAX, &set->version);
    if (!id_parse(ID_ACCOUNT, field, &account))
        return false;
    id_to_bytes(&account, set->accounts[set->count++]);
    return true;
}

static bool read_set(struct account_set *set, const struct redis_reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->count % 2 != 0)
        return false;
    make_room(set, reply->count / 2 + 1);
    ENSURE(set->accounts);
    for (size_t i = 0; i < reply->count; i += 2)
        if (!read_field(set, reply_at(reply, i), reply_at(reply, i + 1)))
            return false;
    qsort(set->accounts, set->count, sizeof *set->accounts, compare_accounts);
    return true;
}

/* Rule 3: not a set that is older than a message, and none if messages may have been missed since it was asked for. */
static void on_set(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct asked asked = *(struct asked *)arg;
    struct suspensions *suspensions = asked.suspensions;
    const struct lease_settings *settings = suspensions->settings;
    struct account_set set = {0};

    free(arg);
    if (outcome != REDIS_REPLIED || asked.memberships != suspensions->memberships)
        return;
    bool is_read = read_set(&set, reply);
    if (!is_read)
        settings->on_malformed(settings->arg, "suspended accounts");
    if (!is_read || (set.version < suspensions->set.version && RULE(RULE_REASSERT))) {
        free(set.accounts);
        return;
    }
    free(suspensions->set.accounts);
    suspensions->set = set;
    suspensions->is_known = true;
    snprintf(suspensions->run_id, sizeof suspensions->run_id, "%s", redis_link_run_id(settings->reads));
}

void suspensions_ask(struct suspensions *suspensions)
{
    const struct lease_settings *settings = suspensions->settings;
    char name[REDIS_PREFIX_MAX_BYTES + sizeof "suspended"];
    struct asked *asked;

    if (suspensions_cover_batch(suspensions))
        return;
    asked = mem_alloc(sizeof *asked);
    *asked = (struct asked){suspensions, suspensions->memberships};
    snprintf(name, sizeof name, "%ssuspended", settings->prefix);
    redis_link_call(settings->reads, 2, (struct text[]){TEXT("HGETALL"), text_of(name)}, on_set, asked);
}

/* Versions count only within one run of Redis: another one may lack changes, and give their numbers to others. */
void suspensions_on_batch(struct suspensions *suspensions, uint64_t version)
{
    bool is_same_run = strcmp(suspensions->run_id, redis_link_run_id(suspensions->settings->reads)) == 0;

    suspensions->covers_batch = (suspensions->set.version >= version && is_same_run) || !RULE(RULE_SUSPEND_VERSION);
}

/* Telling again */

uint64_t suspensions_version(const struct suspensions *suspensions)
{
    return suspensions->set.version;
}

static void tell_on(struct suspensions *suspensions);

/* The place behind the last account told. Messages may have changed the set since. */
static size_t next_to_tell(const struct suspensions *suspensions)
{
    const struct account_set *set = &suspensions->set;
    size_t place = suspensions->told > 0 ? place_of(set, suspensions->last_told) : 0;

    return place + (suspensions->told > 0 && is_at(set, place, suspensions->last_told));
}

static void on_told(void *arg, const struct redis_reply *reply)
{
    struct suspensions *suspensions = arg;
    const struct lease_settings *settings = suspensions->settings;
    bool is_done = reply != NULL;

    REQUIRE(suspensions->is_telling);
    if (is_done && next_to_tell(suspensions) < suspensions->set.count && !suspensions->is_stopped) {
        tell_on(suspensions);
        return;
    }
    suspensions->is_telling = false;
    if (!is_done) {
        settings->on_doubt(settings->arg);
        return;
    }
    LOG(LOG_WARN, "lost suspensions were repeated at Redis", log_int("accounts", (int64_t)suspensions->told),
        log_partition(settings->prefix));
    settings->on_settled(settings->arg);
}

/* Only the last call raises the version: until then the store counts as lacking something. */
static void tell_on(struct suspensions *suspensions)
{
    const struct lease_settings *settings = suspensions->settings;
    const struct account_set *set = &suspensions->set;
    struct id accounts[TOLD_AT_ONCE];
    struct text argv[TOLD_AT_ONCE + 1];
    char version[VERSION_BYTES] = "0";
    size_t at = next_to_tell(suspensions), argc = 1;

    for (; argc <= TOLD_AT_ONCE && at < set->count; argc++, at++, suspensions->told++) {
        memcpy(suspensions->last_told, set->accounts[at], ULID_BYTES);
        id_from_bytes(ID_ACCOUNT, set->accounts[at], &accounts[argc - 1]);
        argv[argc] = id_text(&accounts[argc - 1]);
    }
    if (at == set->count)
        snprintf(version, sizeof version, "%" PRIu64, set->version);
    argv[0] = text_of(version);
    settings->call(settings->arg, LEASE_SUSPEND_AGAIN, argc, argv, on_told, suspensions);
}

void suspensions_tell_again(struct suspensions *suspensions)
{
    if (suspensions->is_telling || suspensions->is_stopped)
        return;
    suspensions->is_telling = true;
    suspensions->told = 0;
    tell_on(suspensions);
}
