#include "auth/key_check.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "core/lease_rules.h"
#include "core/secret.h"
#include "key_check_internal.h"
#include "engine/alias.h"
#include "records/key_store.h"

#include <stdlib.h>

enum { LOG_PAUSE_MS = 1000 };

/* What the cache says about a check. */
enum answer { MISS, NO_LEASE, FOUND, UNKNOWN, MALFORMED };
struct recalled {
    enum answer answer;
    unsigned bucket; /* these three if found */
    struct key_packed packed;
    struct key_principal key;
};

static void on_key_invalidated(void *arg, const uint8_t digest[KEY_DIGEST_BYTES]);
static void on_membership_ended(void *arg);
static void on_lease(void *arg);
static void on_account(void *arg, const struct id *account);
static size_t count_waiting(void *arg);
static void look_up_slice(void *arg);

static void join_members(struct key_checker *checker, struct membership *const *members)
{
    static const struct membership_events EVENTS = {
        .on_invalidated = on_key_invalidated,
        .on_ended = on_membership_ended,
        .on_lease = on_lease,
        .on_account = on_account,
    };

    for (unsigned i = 0; i < checker->part_count; i++) {
        checker->parts[i].member = members[i];
        membership_listen(members[i], &EVENTS, &checker->parts[i]);
    }
}

struct key_checker *key_checker_create(struct keyring *keyring, const struct partitions *partitions,
                                       struct membership *const *members, const struct usage *usage,
                                       const struct key_memory *memory, struct shared_table *table, struct turn *turn)
{
    unsigned count = partitions_count(partitions);
    struct key_checker *checker = mem_alloc(sizeof *checker + count * sizeof *checker->parts);

    checker->keyring = keyring;
    checker->usage = usage;
    list_init(&checker->waiting);
    checker->part = (struct turn_part){.waiting = count_waiting, .slice = look_up_slice, .arg = checker};
    turn_add(turn, &checker->part);
    for (size_t i = 0; i < KEY_READ_LISTS; i++)
        list_init(&checker->reads[i]);
    checker->part_count = count;
    for (unsigned i = 0; i < count; i++)
        checker->parts[i] =
            (struct checker_part){.checker = checker, .store = partitions_at(partitions, i), .number = i};
    if (members && membership_may_cache(members[0])) {
        checker->cache = key_cache_create(memory->entries_max, memory->bytes_max);
        checker->table = table;
        if (table)
            key_cache_share_with(checker->cache, table);
        join_members(checker, members);
    }
    metric_set(METRIC_CACHE_ENABLED, checker->cache != NULL);
    return checker;
}

void key_checker_destroy(struct key_checker *checker)
{
    if (!checker)
        return;
    list_remove(&checker->part.node);
    key_cache_destroy(checker->cache);
    free(checker);
}

bool key_checker_stop(struct key_checker *checker, void (*stopped)(void *arg), void *arg)
{
    REQUIRE(!checker->stopped.run);
    checker->stopped = (struct callback){stopped, arg};
    return checker->refreshes > 0;
}

/* The cache */

static void age_cache(struct key_checker *checker, uint64_t now_ns)
{
    if (key_cache_age(checker->cache, now_ns))
        metric_set(METRIC_CACHE_ENTRIES, (int64_t)key_cache_count(checker->cache));
    if (checker->table)
        key_read_refresh(checker);
}

static void on_key_invalidated(void *arg, const uint8_t digest[KEY_DIGEST_BYTES])
{
    const struct checker_part *part = arg;

    key_cache_drop(part->checker->cache, digest);
    metric_set(METRIC_CACHE_ENTRIES, (int64_t)key_cache_count(part->checker->cache));
}

static void on_membership_ended(void *arg)
{
    const struct checker_part *part = arg;
    struct key_checker *checker = part->checker;

    key_cache_clear_partition(checker->cache, part->number, checker->part_count);
    metric_set(METRIC_CACHE_ENTRIES, (int64_t)key_cache_count(checker->cache));
}

/* The shared table may be used while the cache may, and knows no more than the cache. Its readers call nobody here, so
 * its keys age whenever its lease is renewed. */
static void on_lease(void *arg)
{
    const struct checker_part *part = arg;
    struct key_checker *checker = part->checker;
    const uint64_t until_ns = membership_lease_until_ns(part->member);
    uint64_t now_ns;

    if (!checker->table)
        return;
    if (until_ns == 0 || !membership_knows_suspended(part->member)) {
        shared_table_withdraw(checker->table, part->number);
    } else if (membership_has_lease(part->member, &now_ns)) {
        age_cache(checker, now_ns);
        shared_table_set_lease(checker->table, part->number,
                               RULE(RULE_TABLE_FROM) ? until_ns
                                                     : now_ns + membership_lease_ms(part->member) * CLOCK_NS_PER_MS);
    }
}

/* Whether it was suspended or resumed: its keys are shared again when they are asked for. If the set of suspended
 * accounts is in doubt, the cache answers nothing, and so neither does the table. */
static void on_account(void *arg, const struct id *account)
{
    const struct checker_part *part = arg;
    struct key_checker *checker = part->checker;

    if (!checker->table || !RULE(RULE_TABLE_ACCOUNT))
        return;
    shared_table_clear_bucket(checker->table, bucket_of_account(account));
    if (!membership_knows_suspended(part->member))
        shared_table_withdraw(checker->table, part->number);
}

void key_checker_in_use(struct key_checker *checker, uint32_t owner)
{
    key_cache_count_use(checker->cache, owner);
}

static void look_again(struct key_checker *checker)
{
    checker->look++;
}

static const struct checker_lease *lease_of(struct checker_part *part)
{
    struct checker_lease *lease = &part->lease;

    if (part->look == part->checker->look)
        return lease;
    part->look = part->checker->look;
    lease->is_held = membership_has_lease(part->member, &lease->now_ns) && membership_knows_suspended(part->member);
    return lease;
}

static void make_inner(struct key_check *check)
{
    keyring_inner(check->checker->keyring, KEYRING_KEY_DIGEST, check->generation, check->token, check->inner);
}

static void make_digest(struct key_check *check)
{
    keyring_outer(check->checker->keyring, KEYRING_KEY_DIGEST, check->generation, check->inner, check->digest);
}

/* Also makes the digest, unless the key is found. A key is cached only if its account's partition is that of its
 * digest (remember() in key_read.c). */
static enum answer recall_key(struct key_check *check, struct recalled *ret)
{
    struct key_checker *checker = check->checker;
    const struct checker_lease *lease;

    if (key_cache_find(checker->cache, check->inner, &ret->packed, &ret->bucket) &&
        lease_of(part_of(checker, ret->bucket))->is_held)
        return FOUND;
    make_digest(check);
    lease = lease_of(part_of(checker, bucket_of_digest(check->digest)));
    if (!lease->is_held)
        return NO_LEASE;
    return key_cache_is_unknown(checker->cache, check->digest, lease->now_ns) ? UNKNOWN : MISS;
}

/* Unpacks a key that the cache found, and shares it with the table's readers if a check accepts it. */
static void unpack_found(struct key_check *check, struct recalled *recalled)
{
    struct key_checker *checker = check->checker;
    struct key_principal *key = &recalled->key;

    key_unpack(&recalled->packed, key);
    key->is_suspended = membership_suspends(part_of(checker, recalled->bucket)->member, &key->account);
    if (checker->table && (key_verdict_of(key) == KEY_ACCEPTED || !RULE(RULE_TABLE_SUSPENDED)))
        key_cache_share(checker->cache, check->inner, check->token, bucket_of_account(&key->account));
}

void key_check_share(struct key_check *check)
{
    struct recalled recalled;

    if (!check->checker->table)
        return;
    look_again(check->checker);
    if (recall_key(check, &recalled) == FOUND)
        unpack_found(check, &recalled);
}

bool key_check_holds(struct key_check *check)
{
    struct recalled recalled;

    if (!check->checker->cache)
        return false;
    look_again(check->checker);
    if (recall_key(check, &recalled) != FOUND)
        return false;
    unpack_found(check, &recalled);
    return key_verdict_of(&recalled.key) == KEY_ACCEPTED;
}

/* Without a cache, every token with the right shape is a miss. */
static void recall(struct key_check *check, struct recalled *ret)
{
    static const enum metric METRICS[] = {
        [MISS] = METRIC_CACHE_MISS,
        [NO_LEASE] = METRIC_CACHE_NO_LEASE,
        [FOUND] = METRIC_CACHE_HIT,
        [UNKNOWN] = METRIC_CACHE_UNKNOWN,
    };
    struct key_checker *checker = check->checker;

    if (!check->has_shape) {
        ret->answer = MALFORMED;
        return;
    }
    if (!checker->cache) {
        make_digest(check);
        ret->answer = MISS;
        return;
    }
    ret->answer = recall_key(check, ret);
    if (ret->answer == FOUND)
        unpack_found(check, ret);
    metric_add(METRICS[ret->answer], 1);
}

/* Looking up */

enum key_verdict key_check_verdict(enum store_result result, const struct key_principal *key)
{
    if (result == STORE_OK)
        return key_verdict_of(key);
    return result == STORE_NOT_FOUND ? KEY_INVALID : KEY_UNDECIDED;
}

static void finish(struct key_check *check, enum store_result result, const struct key_principal *key)
{
    ALL_REQUIRE(key || result != STORE_OK);
    check->done(check->arg, key_check_verdict(result, key), result == STORE_OK ? key : NULL);
}

enum store_result key_check_compare(struct key_checker *checker, enum key_kind kind, enum key_mode mode,
                                    enum store_result result, const struct key_principal *key)
{
    if (result != STORE_OK || (key->kind == kind && key->mode == mode))
        return result;
    metric_add(METRIC_RECORDS_ALTERED, 1);
    if (log_pause_is_over(&checker->altered_pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_PAUSE_MS))
        LOG(LOG_ERROR, "altered in Redis: the key's kind or mode does not match its secret; key refused",
            log_text("id", id_text(&key->id)), log_text("account", id_text(&key->account)),
            log_int("suppressed", checker->altered_pause.suppressed));
    return STORE_NOT_FOUND;
}

void key_check_confirm(struct key_checker *checker, enum store_result result, const struct key_principal *key)
{
    if (result == STORE_OK && key->is_unconfirmed && key_verdict_of(key) == KEY_ACCEPTED)
        key_store_confirm(part_of(checker, bucket_of_account(&key->account))->store, &key->id);
}

/* A digest that is unknown may be known under an older master key. */
static bool has_older_key(const struct key_check *check)
{
    return check->generation + 1 < keyring_generations(check->checker->keyring);
}

static void read_alone(void *arg, enum store_result result, const struct key_record *key);

static void ask_store(struct key_check *check)
{
    if (!secret_parse(check->token, &check->kind, &check->mode))
        finish(check, STORE_NOT_FOUND, NULL);
    else if (check->checker->cache)
        key_read_for(check);
    else
        key_store_find(part_of(check->checker, bucket_of_digest(check->digest))->store, check->digest, read_alone,
                       check);
}

/* Without a cache. */

static void found_alone(void *arg, enum store_result result, const struct key_record *record)
{
    struct key_check *check = arg;
    struct key_principal key = {0};

    if (result == STORE_OK)
        key = key_principal_of(record);
    result = key_check_compare(check->checker, check->kind, check->mode, result, &key);
    key_check_confirm(check->checker, result, &key);
    key_check_found(check, result, &key);
}

static void followed_alone(void *arg, enum store_result result, unsigned bucket)
{
    struct key_check *check = arg;

    if (result == STORE_OK)
        key_store_find(part_of(check->checker, bucket)->store, check->digest, found_alone, check);
    else
        found_alone(check, result, NULL);
}

static void read_alone(void *arg, enum store_result result, const struct key_record *record)
{
    struct key_check *check = arg;
    struct store *store = part_of(check->checker, bucket_of_digest(check->digest))->store;

    if (result == STORE_NOT_FOUND && store_has_aliases(store))
        alias_find(store, check->digest, followed_alone, check);
    else
        found_alone(check, result, record);
}

/* Goes on with the cache's answer. */
static void look_further(struct key_check *check, struct recalled *recalled)
{
    while (recalled->answer == UNKNOWN && has_older_key(check)) {
        check->generation++;
        make_inner(check);
        ALL_ENSURE(check->generation < keyring_generations(check->checker->keyring));
        look_again(check->checker);
        recall(check, recalled);
    }
    switch (recalled->answer) {
    case FOUND:
        finish(check, STORE_OK, &recalled->key);
        break;
    case UNKNOWN:
    case MALFORMED:
        finish(check, STORE_NOT_FOUND, NULL);
        break;
    case MISS:
    case NO_LEASE:
        ask_store(check);
        break;
    }
}

/* Before a slice is looked up. */
static void prepare_cache(struct key_checker *checker, const struct key_check *last)
{
    look_again(checker);
    if (!checker->cache)
        return;
    if (last->has_shape)
        key_cache_prefetch_entry(checker->cache, last->inner);
    age_cache(checker, lease_of(&checker->parts[0])->now_ns); /* any partition's clock will do */
}

/* Each loop prefetches what the next one reads; the entries of all checks but the last were prefetched when the next
 * check joined. All are recalled before any completes, because a completion may begin other checks. */
static void look_up(struct key_checker *checker, struct key_check *const *checks, size_t count)
{
    struct recalled recalled[TURN_SLICE];

    prepare_cache(checker, checks[count - 1]);
    for (size_t i = 0; i < count; i++) {
        recall(checks[i], &recalled[i]);
        if (recalled[i].answer == FOUND)
            usage_prefetch_first(checker->usage, recalled[i].bucket, &recalled[i].key.id);
    }
    for (size_t i = 0; i < count; i++)
        if (recalled[i].answer == FOUND)
            usage_prefetch_second(checker->usage, recalled[i].bucket, &recalled[i].key.id);
    for (size_t i = 0; i < count; i++)
        look_further(checks[i], &recalled[i]);
}

static size_t count_waiting(void *arg)
{
    const struct key_checker *checker = arg;

    return checker->waiting_count;
}

static void look_up_slice(void *arg)
{
    struct key_checker *checker = arg;
    struct key_check *checks[TURN_SLICE];
    struct list *node;
    size_t count = 0;

    while (count < TURN_SLICE && (node = list_take(&checker->waiting)))
        checks[count++] = LIST_ENTRY(node, struct key_check, node);
    ALL_INVARIANT(checker->waiting_count >= count);
    checker->waiting_count -= count;
    if (count > 0)
        look_up(checker, checks, count);
}

static void prefetch(struct key_checker *checker, const struct key_check *check)
{
    const struct key_check *before = LIST_ENTRY(checker->waiting.prev, struct key_check, node);

    key_cache_prefetch_slot(checker->cache, check->inner);
    if (checker->waiting_count > 0 && before->has_shape)
        key_cache_prefetch_entry(checker->cache, before->inner);
}

void key_check_begin(struct key_checker *checker, struct key_check *check, struct text token, key_checked *done,
                     void *arg)
{
    *check = (struct key_check){.checker = checker, .done = done, .arg = arg, .token = token};
    check->has_shape = secret_has_shape(token);
    if (check->has_shape) {
        make_inner(check);
        if (checker->cache)
            prefetch(checker, check);
    }
    list_append(&checker->waiting, &check->node);
    checker->waiting_count++;
}

void key_check_found(struct key_check *check, enum store_result result, const struct key_principal *key)
{
    struct recalled recalled;

    if (result != STORE_NOT_FOUND || !has_older_key(check)) {
        finish(check, result, key);
        return;
    }
    check->generation++;
    make_inner(check);
    look_again(check->checker);
    recall(check, &recalled);
    look_further(check, &recalled);
}

void key_check_digest(const struct key_check *check, uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    keyring_outer(check->checker->keyring, KEYRING_KEY_DIGEST, check->generation, check->inner, ret_digest);
}
