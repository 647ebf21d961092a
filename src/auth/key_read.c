#include "base/check.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "core/lease_rules.h"
#include "key_check_internal.h"
#include "engine/alias.h"
#include "records/key_store.h"

#include <stdlib.h>
#include <string.h>

/* Refreshes under way at a time, so that checks need not wait for many of them. */
enum { REFRESHES_MAX = 128 };

/* A read of the store that fills the cache. It decides the checks that began before it was sent. It may decide a later
 * one only if the cache could: between read and reply, the key may have been revoked and the revocation answered before
 * that check began. */
struct key_read {
    struct list node;
    struct checker_part *part; /* of the digest, or that of the account, to which an alias led */
    bool has_followed;         /* an alias */
    uint8_t inner[KEYRING_DIGEST_BYTES], digest[KEY_DIGEST_BYTES];
    enum key_kind kind; /* of the secret, as is the mode */
    enum key_mode mode;
    uint64_t epoch;          /* when it was sent */
    struct list early, late; /* struct key_check */
    bool is_refresh;         /* began for no check */
};

/* For speed, the store checks only an id's prefix and length. But key_pack() needs well-formed ids. */
static bool has_real_ids(const struct key_principal *key)
{
    struct id id;

    return id_parse(key_id_kind(key->kind), id_text(&key->id), &id) &&
           id_parse(ID_ACCOUNT, id_text(&key->account), &id);
}

/* A key's revocation is published in the partition of its account. A tombstone names none, and is not cached. */
static bool hears_of(const struct checker_part *part, const struct key_principal *key)
{
    return !key->account.text[0] || part_of(part->checker, bucket_of_account(&key->account)) == part;
}

/* Rule 3 (src/lease/README.md). The cache knows an entry's partition by its digest, so a key that is found by an alias
 * is read each time. */
static bool remember(const struct key_read *read, enum store_result result, const struct key_principal *key)
{
    const struct checker_part *part = read->part;
    struct key_checker *checker = part->checker;
    struct key_packed packed;
    uint64_t now_ns;

    if (read->has_followed || !membership_may_fill(part->member, read->epoch) ||
        (result == STORE_OK && !hears_of(part, key)))
        return false;
    REQUIRE(part_of(checker, bucket_of_digest(read->digest)) == part); /* whose invalidations drop it */
    bool has_lease = membership_has_lease(part->member, &now_ns);
    if (result == STORE_OK && ((key->is_ending && RULE(RULE_ENDS_SOON)) || key->is_unconfirmed))
        return false; /* so that checks that came meanwhile ask the time again, or find it confirmed */
    if (result == STORE_OK && has_real_ids(key)) {
        key_pack(key, &packed);
        key_cache_store(checker->cache, read->inner, read->digest, &packed);
    } else if (result == STORE_NOT_FOUND) {
        key_cache_store_unknown(checker->cache, read->digest, now_ns);
    }
    metric_set(METRIC_CACHE_ENTRIES, (int64_t)key_cache_count(checker->cache));
    return has_lease;
}

/* Reads under way */

static struct list *reads_of(struct key_checker *checker, const uint8_t digest[KEY_DIGEST_BYTES])
{
    return &checker->reads[(digest[0] | (unsigned)digest[1] << 8) % KEY_READ_LISTS];
}

static struct key_read *find_read(struct key_checker *checker, const uint8_t digest[KEY_DIGEST_BYTES])
{
    const struct text wanted = {(const char *)digest, KEY_DIGEST_BYTES};
    struct list *reads = reads_of(checker, digest);

    for (struct list *node = reads->next; node != reads; node = node->next) {
        struct key_read *read = LIST_ENTRY(node, struct key_read, node);

        if (secure_equal((struct text){(const char *)read->digest, KEY_DIGEST_BYTES}, wanted))
            return read;
    }
    return NULL;
}

static void read_answered(void *arg, enum store_result result, const struct key_record *key);

static void read_send(struct key_read *read)
{
    const struct checker_part *part = read->part;

    ALL_REQUIRE(!find_read(part->checker, read->digest)); /* checks would join either */
    read->epoch = membership_epoch(part->member);
    list_init(&read->early);
    list_init(&read->late);
    list_append(reads_of(part->checker, read->digest), &read->node);
    key_store_find(part->store, read->digest, read_answered, read);
}

static struct key_read *read_begin(struct key_checker *checker, const uint8_t inner[KEYRING_DIGEST_BYTES],
                                   const uint8_t digest[KEY_DIGEST_BYTES], enum key_kind kind, enum key_mode mode)
{
    struct key_read *read = mem_alloc(sizeof *read);

    read->part = part_of(checker, bucket_of_digest(digest));
    memcpy(read->inner, inner, sizeof read->inner);
    memcpy(read->digest, digest, sizeof read->digest);
    read->kind = kind;
    read->mode = mode;
    read_send(read);
    return read;
}

static struct key_read *read_again(const struct key_read *before)
{
    struct key_read *read = mem_alloc(sizeof *read);

    *read = *before;
    read->is_refresh = false;
    read_send(read);
    return read;
}

void key_read_for(struct key_check *check)
{
    struct key_read *read = find_read(check->checker, check->digest);

    if (read) {
        list_append(&read->late, &check->node);
        return;
    }
    read = read_begin(check->checker, check->inner, check->digest, check->kind, check->mode);
    list_append(&read->early, &check->node);
}

/* False only for a key that the cache has with a digest that is not its own, which cannot be. */
static bool find_digest(const struct key_checker *checker, uint32_t number, const uint8_t inner[KEYRING_DIGEST_BYTES],
                        uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    for (size_t i = 0; i < keyring_generations(checker->keyring); i++) {
        keyring_outer(checker->keyring, KEYRING_KEY_DIGEST, i, inner, ret_digest);
        if (key_cache_is_of(checker->cache, number, ret_digest))
            return true;
    }
    return false;
}

static void refresh(struct key_checker *checker, uint32_t number)
{
    uint8_t inner[KEYRING_DIGEST_BYTES], digest[KEY_DIGEST_BYTES];
    struct key_packed key;
    struct key_read *read;
    uint64_t now_ns;

    key_cache_recall_shared(checker->cache, number, inner, &key);
    if (!find_digest(checker, number, inner, digest) || find_read(checker, digest) ||
        !membership_has_lease(part_of(checker, bucket_of_digest(digest))->member, &now_ns))
        return;
    read =
        read_begin(checker, inner, digest, key.is_device ? KEY_DEVICE : KEY_API, key.is_live ? MODE_LIVE : MODE_TEST);
    read->is_refresh = true;
    checker->refreshes++;
    metric_add(METRIC_CACHE_REFRESHES, 1);
}

void key_read_refresh(struct key_checker *checker)
{
    uint32_t number;

    while (!checker->stopped.run && checker->refreshes < REFRESHES_MAX &&
           key_cache_next_in_use(checker->cache, &number))
        refresh(checker, number);
}

/* A store that does not answer is not asked for the next ones at once. */
static void refreshed(struct key_checker *checker, bool is_failure)
{
    INVARIANT(checker->refreshes > 0 && checker->refreshes <= REFRESHES_MAX);
    checker->refreshes--;
    if (!checker->stopped.run && !is_failure)
        key_read_refresh(checker);
    else if (checker->stopped.run && checker->refreshes == 0)
        callback_run(checker->stopped);
}

static void read_decided(struct key_read *read, enum store_result result, const struct key_principal *key)
{
    bool is_fresh = remember(read, result, key) || !RULE(RULE_JOIN);
    bool is_failure = key_check_verdict(result, key) == KEY_UNDECIDED;
    struct list *node;

    list_remove(&read->node);
    key_check_confirm(read->part->checker, result, key);
    /* Late checks that this read may not decide all began before the next one, which decides them. */
    if (!is_fresh && !is_failure && !list_empty(&read->late))
        list_append_all(&read_again(read)->early, &read->late);
    for (node = read->late.next; node != &read->late; node = node->next)
        metric_add(METRIC_CACHE_SHARED, 1);
    list_append_all(&read->early, &read->late);
    if (is_fresh && result == STORE_OK && (node = list_first(&read->early)))
        key_check_share(LIST_ENTRY(node, struct key_check, node));
    while ((node = list_take(&read->early)))
        key_check_found(LIST_ENTRY(node, struct key_check, node), result, key);
    if (read->is_refresh)
        refreshed(read->part->checker, is_failure);
    ENSURE(list_empty(&read->early) && list_empty(&read->late)); /* no check is left without an answer */
    free(read);
}

/* All checks so far began before the read that is sent now. */
static void alias_answered(void *arg, enum store_result result, unsigned bucket)
{
    struct key_read *read = arg;
    struct key_principal none = {0};

    REQUIRE(!read->has_followed);
    if (!membership_may_decide(read->part->member))
        result = STORE_UNAVAILABLE;
    if (result != STORE_OK) {
        read_decided(read, result, &none);
        return;
    }
    read->part = part_of(read->part->checker, bucket);
    read->has_followed = true;
    read->epoch = membership_epoch(read->part->member);
    list_append_all(&read->early, &read->late);
    key_store_find(read->part->store, read->digest, read_answered, read);
}

static void read_answered(void *arg, enum store_result result, const struct key_record *record)
{
    struct key_read *read = arg;
    struct key_principal key = {0};

    if (!membership_may_decide(read->part->member))
        result = STORE_UNAVAILABLE;
    if (result == STORE_NOT_FOUND && !read->has_followed && store_has_aliases(read->part->store)) {
        alias_find(read->part->store, read->digest, alias_answered, read);
        return;
    }
    if (result == STORE_OK)
        key = key_principal_of(record);
    read_decided(read, key_check_compare(read->part->checker, read->kind, read->mode, result, &key), &key);
}
