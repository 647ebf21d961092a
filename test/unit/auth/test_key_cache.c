#include "auth/key_cache_internal.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

TestSuite(key_cache, .fini = leak_guard);

enum { BYTES_PLENTY = 1 << 26 };
static const uint64_t SECOND_NS = 1000000000, UNKNOWN_NS = 5000000000;
static const uint64_t NOW_NS = UINT64_C(5000) * 1000000000;

struct digest {
    uint8_t bytes[KEY_DIGEST_BYTES];
};

/* The same numbers in every run (splitmix64). */
static uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t number_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(next_number(state) >> 32) % bound;
}

static struct digest digest_from(uint64_t state)
{
    struct digest digest;
    for (size_t i = 0; i < KEY_DIGEST_BYTES; i += sizeof state) {
        const uint64_t part = next_number(&state);
        memcpy(digest.bytes + i, &part, sizeof part);
    }
    return digest;
}

/* The digest of the n-th key, and its inner hash. */
static struct digest digest_of(uint64_t n)
{
    return digest_from(n * 0x10001);
}

static struct digest inner_of(uint64_t n)
{
    return digest_from(~(n * 0x10001));
}

/* Every byte depends on n, so that a key in the wrong place is noticed. */
static struct key_packed key_of(uint64_t n)
{
    uint64_t state = ~n;
    uint8_t bytes[sizeof(struct key_packed)];
    struct key_packed key;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)next_number(&state);
    memcpy(&key, bytes, sizeof key);
    return key;
}

enum answer { MISS, FOUND, UNKNOWN };

static enum answer find(struct key_cache *cache, uint64_t n, uint64_t now_ns, struct key_packed *ret_key)
{
    unsigned bucket;
    memset(ret_key, 0xa5, sizeof *ret_key); /* earlier content must not matter */
    if (key_cache_find(cache, inner_of(n).bytes, ret_key, &bucket)) {
        cr_assert_eq(bucket, bucket_of_digest(digest_of(n).bytes));
        cr_assert(!key_cache_is_unknown(cache, digest_of(n).bytes, now_ns));
        return FOUND;
    }
    return key_cache_is_unknown(cache, digest_of(n).bytes, now_ns) ? UNKNOWN : MISS;
}

static enum answer answer(struct key_cache *cache, uint64_t n, uint64_t now_ns)
{
    struct key_packed key;
    return find(cache, n, now_ns, &key);
}

static bool has(struct key_cache *cache, uint64_t n)
{
    return answer(cache, n, NOW_NS) == FOUND;
}

static void store_key(struct key_cache *cache, uint64_t n, const struct key_packed *key)
{
    key_cache_store(cache, inner_of(n).bytes, digest_of(n).bytes, key);
}

static void store(struct key_cache *cache, uint64_t n)
{
    const struct key_packed key = key_of(n);
    store_key(cache, n, &key);
}

static void drop(struct key_cache *cache, uint64_t n)
{
    key_cache_drop(cache, digest_of(n).bytes);
}

static void store_unknown(struct key_cache *cache, uint64_t n, uint64_t now_ns)
{
    key_cache_store_unknown(cache, digest_of(n).bytes, now_ns);
}

static void assert_kept(const struct key_packed *found, const struct key_packed *stored)
{
    cr_assert_arr_eq((const uint8_t *)found, (const uint8_t *)stored, sizeof *stored);
}

static void assert_found(struct key_cache *cache, uint64_t n, const struct key_packed *stored)
{
    struct key_packed found;
    cr_assert_eq(find(cache, n, NOW_NS, &found), FOUND, "key %llu", (unsigned long long)n);
    assert_kept(&found, stored);
}

Test(key_cache, a_key_comes_back_as_it_was_stored_last)
{
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    for (size_t n = 0; n < 100; n++) {
        const struct key_packed key = key_of(n);
        store_key(cache, 1, &key); /* each replaces the one before */
        assert_found(cache, 1, &key);
        cr_assert_eq(key_cache_count(cache), 1);
    }
    key_cache_destroy(cache);
}

static bool has_inner(struct key_cache *cache, struct digest inner, struct key_packed *ret_key)
{
    unsigned bucket;
    return key_cache_find(cache, inner.bytes, ret_key, &bucket);
}

Test(key_cache, hashes_that_share_their_beginning_are_told_apart)
{
    static const size_t CHANGED[] = {0, 3, 4, 7, 8, 11, 12, 15};
    enum { CHANGED_COUNT = sizeof CHANGED / sizeof CHANGED[0] };
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    const struct key_packed first = key_of(0);
    store(cache, 0);
    for (size_t i = 0; i < CHANGED_COUNT; i++) {
        struct digest inner = inner_of(0), digest = digest_of(100 + i);
        inner.bytes[CHANGED[i]] ^= 1;
        struct key_packed found;
        cr_assert(!has_inner(cache, inner, &found));
        const struct key_packed key = key_of(100 + i);
        key_cache_store(cache, inner.bytes, digest.bytes, &key);
        cr_assert(has_inner(cache, inner, &found));
        assert_kept(&found, &key);
        key_cache_drop(cache, digest.bytes);
        cr_assert(!has_inner(cache, inner, &found));
        assert_found(cache, 0, &first);
    }
    key_cache_destroy(cache);
}

/* Digests that begin alike and lie in different buckets, so that one chain holds all their keys. */
Test(key_cache, drop_takes_its_key_out_of_a_long_chain)
{
    enum { CHAINED = 40, MIDDLE = 17 };
    static const size_t DROPPED[] = {MIDDLE, 0, CHAINED - 1, MIDDLE + 1};
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    struct key_packed found;
    struct digest digests[CHAINED];
    bool is_there[CHAINED];
    for (size_t i = 0; i < CHAINED; i++) {
        const struct key_packed key = key_of(i);
        digests[i] = digest_of(i);
        memset(digests[i].bytes, 0, sizeof(uint32_t));
        digests[i].bytes[KEY_DIGEST_BYTES - 1] = (uint8_t)i;
        key_cache_store(cache, inner_of(i).bytes, digests[i].bytes, &key);
        is_there[i] = true;
    }
    for (size_t i = 0; i < sizeof DROPPED / sizeof *DROPPED; i++) {
        key_cache_drop(cache, digests[DROPPED[i]].bytes);
        is_there[DROPPED[i]] = false;
        for (size_t n = 0; n < CHAINED; n++)
            cr_assert_eq(has_inner(cache, inner_of(n), &found), is_there[n], "key %zu", n);
    }
    key_cache_destroy(cache);
}

/* Such collisions are too rare to matter, and dropping a key needlessly does no harm. But none may stay. */
Test(key_cache, drop_takes_all_of_a_bucket_whose_digests_begin_alike)
{
    enum { KEYS = 3 };
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    struct key_packed found;
    for (size_t dropped = 0; dropped < KEYS; dropped++) {
        struct digest digest = digest_of(0);
        for (size_t n = 0; n < KEYS; n++) {
            const struct key_packed key = key_of(n);
            digest.bytes[KEY_DIGEST_BYTES - 2] = (uint8_t)n;
            key_cache_store(cache, inner_of(n).bytes, digest.bytes, &key);
        }
        digest.bytes[KEY_DIGEST_BYTES - 2] = (uint8_t)dropped;
        key_cache_drop(cache, digest.bytes);
        cr_assert(!has_inner(cache, inner_of(dropped), &found));
        cr_assert_eq(key_cache_count(cache), 0);
    }
    key_cache_destroy(cache);
}

/* Bounds */

Test(key_cache, capacity_is_what_both_bounds_allow)
{
    static const struct {
        size_t entries_max, bytes_max, low, high;
    } CASES[] = {
        {1000, BYTES_PLENTY, 1000, 1000},
        {65, BYTES_PLENTY, 65, 65},
        {64, BYTES_PLENTY, 64, 64},
        {63, BYTES_PLENTY, 64, 64},
        {0, 0, 64, 64},
        {SIZE_MAX, 0, 64, 64},
        {1000000, 10000, 64, 64}, /* less than an empty cache needs */
        {1000000, 2000000, 18000, 20833},
        {1000000, 100663296, 1000000, 1000000}, /* the default settings */
        {SIZE_MAX, 100663296, 1040000, 1048576},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct key_cache *cache = key_cache_create(CASES[i].entries_max, CASES[i].bytes_max);
        const size_t capacity = key_cache_capacity(cache);
        cr_assert(capacity >= CASES[i].low && capacity <= CASES[i].high, "case %zu: %zu", i, capacity);
        cr_assert_eq(key_cache_count(cache), 0);
        if (capacity > 64)
            cr_assert_leq(key_cache_bytes(cache), CASES[i].bytes_max, "case %zu", i);
        key_cache_destroy(cache);
    }
    key_cache_destroy(NULL);
}

Test(key_cache, entry_costs_96_bytes_at_most)
{
    enum { MILLION = 1000000, MORE = MILLION + 12345 };
    struct key_cache *cache = key_cache_create(MILLION, 96 * (size_t)MILLION + (1 << 17));
    struct key_cache *more = key_cache_create(MORE, SIZE_MAX);
    struct key_cache *least = key_cache_create(0, 0);
    cr_assert_eq(key_cache_capacity(cache), MILLION);
    cr_assert_leq(key_cache_bytes(cache), 96 << 20);
    /* Without the part that does not grow, the table of unknown digests. */
    const size_t grown = key_cache_bytes(cache) - key_cache_bytes(least);
    cr_assert_leq((double)grown / (MILLION - 64), (double)KEY_CACHE_ENTRY_BYTES_MAX);
    cr_assert_leq(key_cache_bytes(more) - key_cache_bytes(cache), (MORE - MILLION) * KEY_CACHE_ENTRY_BYTES_MAX);
    key_cache_destroy(cache);
    key_cache_destroy(more);
    key_cache_destroy(least);
}

Test(key_cache, nothing_leaves_before_it_is_full)
{
    static const size_t CAPACITIES[] = {64, 65, 100, 1000, 4099};
    for (size_t i = 0; i < sizeof CAPACITIES / sizeof CAPACITIES[0]; i++) {
        const size_t capacity = CAPACITIES[i];
        struct key_cache *cache = key_cache_create(capacity, BYTES_PLENTY);
        for (size_t n = 0; n < capacity; n++)
            store(cache, n);
        for (size_t n = 0; n < capacity; n++) {
            const struct key_packed key = key_of(n);
            assert_found(cache, n, &key);
        }
        cr_assert_eq(key_cache_count(cache), capacity);
        store(cache, capacity);
        cr_assert(has(cache, capacity));
        cr_assert_eq(key_cache_count(cache), capacity);
        key_cache_destroy(cache);
    }
}

Test(key_cache, storing_again_takes_no_room)
{
    enum { CAPACITY = 64 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t n = 0; n < CAPACITY; n++)
        store(cache, n);
    for (size_t n = 0; n < CAPACITY; n++)
        store(cache, n);
    for (size_t n = 0; n < CAPACITY; n++)
        cr_assert(has(cache, n));
    key_cache_destroy(cache);
}

/* Drop and clear */

Test(key_cache, dropped_room_is_used_again)
{
    enum { CAPACITY = 100, ROUNDS = 50, DROPPED = 33 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t n = 0; n < CAPACITY; n++)
        store(cache, n);
    for (size_t round = 0; round < ROUNDS; round++) {
        const size_t oldest = round * DROPPED;
        for (size_t n = oldest; n < oldest + DROPPED; n++) {
            drop(cache, n);
            drop(cache, n); /* dropping an absent key does nothing */
            cr_assert(!has(cache, n));
        }
        cr_assert_eq(key_cache_count(cache), CAPACITY - DROPPED);
        for (size_t n = oldest + CAPACITY; n < oldest + CAPACITY + DROPPED; n++)
            store(cache, n);
        for (size_t n = oldest + DROPPED; n < oldest + DROPPED + CAPACITY; n++)
            cr_assert(has(cache, n), "round %zu: key %zu was pushed out though there was room", round, n);
    }
    key_cache_destroy(cache);
}

Test(key_cache, clear_forgets_everything)
{
    enum { CAPACITY = 200 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    key_cache_clear(cache);
    for (size_t round = 0; round < 3; round++) {
        for (size_t n = 0; n < 2 * CAPACITY; n++)
            store(cache, n);
        store_unknown(cache, 5000, NOW_NS);
        key_cache_clear(cache);
        cr_assert_eq(key_cache_count(cache), 0);
        for (size_t n = 0; n < 2 * CAPACITY; n++)
            cr_assert_eq(answer(cache, n, NOW_NS), MISS);
        cr_assert_eq(answer(cache, 5000, NOW_NS), MISS);
        for (size_t n = 0; n < CAPACITY; n++)
            store(cache, n);
        for (size_t n = 0; n < CAPACITY; n++)
            cr_assert(has(cache, n));
        cr_assert_eq(key_cache_count(cache), CAPACITY);
    }
    key_cache_destroy(cache);
}

Test(key_cache, clear_forgets_unknown_digests_when_no_record_was_stored)
{
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    store_unknown(cache, 1, NOW_NS);
    key_cache_clear(cache);
    cr_assert_eq(answer(cache, 1, NOW_NS), MISS);
    key_cache_destroy(cache);
}

static bool lies_in(uint64_t n, unsigned partition, unsigned partitions)
{
    return bucket_of_digest(digest_of(n).bytes) % partitions == partition;
}

Test(key_cache, clearing_a_partition_forgets_what_lies_in_it_alone)
{
    static const unsigned COUNTS[] = {1, 2, 16, 256};
    enum { KEYS = 1000, UNKNOWN_FROM = KEYS, UNKNOWN_TO = UNKNOWN_FROM + 200 };
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        const unsigned count = COUNTS[i], cleared = count - 1;
        struct key_cache *cache = key_cache_create(2 * KEYS, BYTES_PLENTY);
        for (size_t n = 0; n < KEYS; n++)
            store(cache, n);
        for (size_t n = UNKNOWN_FROM; n < UNKNOWN_TO; n++)
            store_unknown(cache, n, NOW_NS);
        key_cache_clear_partition(cache, cleared, count);
        for (size_t n = 0; n < KEYS; n++) {
            cr_assert_eq(has(cache, n), !lies_in(n, cleared, count), "key %zu, %u partitions", n, count);
        }
        for (size_t n = UNKNOWN_FROM; n < UNKNOWN_TO; n++)
            cr_assert_eq(answer(cache, n, NOW_NS), lies_in(n, cleared, count) ? MISS : UNKNOWN);
        key_cache_destroy(cache);
    }
}

/* More often than there are generations, with keys of every one. */
Test(key_cache, what_was_cleared_never_comes_back)
{
    enum { KEYS = 400, ROUNDS = 40, COUNT = 2, CLEARED = 1 };
    struct key_cache *cache = key_cache_create(2 * KEYS, BYTES_PLENTY);
    for (size_t n = 0; n < KEYS; n++)
        store(cache, n);
    for (size_t round = 0; round < ROUNDS; round++) {
        key_cache_clear_partition(cache, CLEARED, COUNT);
        for (size_t n = 0; n < KEYS; n++)
            cr_assert_eq(has(cache, n), !lies_in(n, CLEARED, COUNT), "round %zu, key %zu", round, n);
        for (size_t n = round; n < KEYS; n += ROUNDS) {
            const struct key_packed key = key_of(n);
            store(cache, n);
            assert_found(cache, n, &key);
        }
    }
    key_cache_destroy(cache);
}

Test(key_cache, what_was_cleared_leaves_with_the_hand)
{
    enum { KEYS = 400 };
    struct key_cache *cache = key_cache_create(KEYS, BYTES_PLENTY);
    size_t left = 0;
    uint64_t now_ns = NOW_NS;
    key_cache_age(cache, now_ns);
    for (size_t n = 0; n < KEYS; n++) {
        store(cache, n);
        left += !lies_in(n, 0, 2);
    }
    key_cache_clear_partition(cache, 0, 2);
    while (now_ns < NOW_NS + (KEY_CACHE_AGE_MAX_S / 2 - 1) * SECOND_NS)
        key_cache_age(cache, now_ns += SECOND_NS / 10);
    cr_assert_geq(key_cache_count(cache), left);
    cr_assert_lt(key_cache_count(cache), left + KEYS / 20);
    key_cache_destroy(cache);
}

/* Shared with readers of a table */

static void on_used(UNUSED void *arg, UNUSED const struct key_principal *key, UNUSED uint32_t uses)
{
}

static void on_in_use(UNUSED void *arg, UNUSED uint32_t owner)
{
}

static bool has_room(UNUSED void *arg)
{
    return true;
}

static struct shared_table *make_table(void)
{
    struct shared_table *table = shared_table_create(&(struct shared_table_settings){
        .keys_max = 64, .partitions = 1, .deployment = "", .used = on_used, .in_use = on_in_use, .has_room = has_room});
    cr_assert(table);
    return table;
}

/* The cache gives its first key the number 0. */
static void store_and_share(struct key_cache *cache, uint64_t n)
{
    store(cache, n);
    cr_assert(has(cache, n));
    const struct digest secret = digest_of(n);
    key_cache_share(cache, inner_of(n).bytes, (struct text){(const char *)secret.bytes, sizeof secret.bytes}, 0);
}

Test(key_cache, a_key_stays_shared_while_nothing_about_it_changes)
{
    struct shared_table *table = make_table();
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    const struct key_packed changed = key_of(2);
    key_cache_share_with(cache, table);
    store_and_share(cache, 1);
    store(cache, 1);
    cr_expect_eq(shared_table_keys(table), 1);
    store_key(cache, 1, &changed);
    cr_expect_eq(shared_table_keys(table), 0);
    store_and_share(cache, 1);
    key_cache_clear_partition(cache, bucket_of_digest(digest_of(1).bytes), BUCKETS);
    store(cache, 1);
    cr_expect_eq(shared_table_keys(table), 0, "it was dropped meanwhile");
    store_and_share(cache, 1);
    drop(cache, 1);
    cr_expect_eq(shared_table_keys(table), 0);
    key_cache_destroy(cache);
    shared_table_destroy(table);
}

Test(key_cache, a_shared_key_is_known_by_its_number)
{
    struct shared_table *table = make_table();
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    const struct key_packed stored = key_of(1);
    uint8_t inner[KEYRING_DIGEST_BYTES];
    struct key_packed key;
    key_cache_share_with(cache, table);
    store_and_share(cache, 1);
    key_cache_recall_shared(cache, 0, inner, &key);
    cr_expect_arr_eq(inner, inner_of(1).bytes, sizeof inner);
    assert_kept(&key, &stored);
    cr_expect(key_cache_is_of(cache, 0, digest_of(1).bytes));
    cr_expect_not(key_cache_is_of(cache, 0, digest_of(2).bytes));
    key_cache_destroy(cache);
    shared_table_destroy(table);
}

enum { ROUND_S = KEY_CACHE_AGE_MAX_S / 2 };

/* Lets a second pass, and stores again what is to be: returns how many that were. */
static unsigned age_and_refresh(struct key_cache *cache, uint64_t *now_ns)
{
    unsigned named = 0;
    uint32_t number;
    key_cache_age(cache, *now_ns += SECOND_NS);
    for (; key_cache_next_in_use(cache, &number); named++)
        store(cache, number); /* in these tests, the n-th key has that number */
    return named;
}

static unsigned age_a_round(struct key_cache *cache, uint64_t *now_ns)
{
    unsigned named = 0;
    for (int i = 0; i < ROUND_S; i++)
        named += age_and_refresh(cache, now_ns);
    return named;
}

static struct key_cache *make_shared(struct shared_table *table, uint64_t now_ns, unsigned keys)
{
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    key_cache_share_with(cache, table);
    key_cache_age(cache, now_ns);
    for (unsigned n = 0; n < keys; n++)
        store_and_share(cache, n);
    return cache;
}

/* Once in a round of the hand, one by one, and so it stays. */
Test(key_cache, what_readers_use_is_named_before_it_leaves)
{
    static const unsigned KEYS[] = {1, 2, 40};
    enum { ROUNDS = 10 };
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        struct shared_table *table = make_table();
        uint64_t now_ns = NOW_NS;
        struct key_cache *cache = make_shared(table, now_ns, KEYS[i]);
        unsigned named = 0, most = 0;
        for (int second = 0; second < ROUNDS * ROUND_S; second++) {
            for (uint32_t number = 0; number < KEYS[i]; number++)
                key_cache_count_use(cache, number);
            const unsigned now = age_and_refresh(cache, &now_ns);
            named += now;
            most = now > most ? now : most;
        }
        cr_expect(named >= KEYS[i] * (ROUNDS - 2) && named <= KEYS[i] * ROUNDS, "%u keys: %u times", KEYS[i], named);
        cr_expect_leq(most, KEYS[i] / ROUND_S + 1);
        for (uint64_t n = 0; n < KEYS[i]; n++)
            cr_expect(has(cache, n));
        cr_expect_eq(shared_table_keys(table), KEYS[i]);
        key_cache_destroy(cache);
        shared_table_destroy(table);
    }
}

Test(key_cache, what_readers_do_not_use_or_what_has_left_is_not_named)
{
    enum { YOUNG, DROPPED, CLEARED, USED_LONG_AGO, KEYS };
    struct shared_table *table = make_table();
    uint64_t now_ns = NOW_NS;
    struct key_cache *cache = make_shared(table, now_ns, KEYS);
    key_cache_count_use(cache, USED_LONG_AGO);
    cr_expect_eq(age_a_round(cache, &now_ns), 0, "all are young");
    for (uint32_t number = YOUNG; number <= CLEARED; number++)
        key_cache_count_use(cache, number);
    store(cache, YOUNG); /* a check has read it */
    drop(cache, DROPPED);
    key_cache_clear_partition(cache, bucket_of_digest(digest_of(CLEARED).bytes), BUCKETS);
    cr_expect_eq(age_a_round(cache, &now_ns), 0);
    cr_expect(has(cache, YOUNG));
    cr_expect_not(has(cache, USED_LONG_AGO));
    key_cache_destroy(cache);
    shared_table_destroy(table);
}

Test(key_cache, a_cache_that_was_emptied_names_nothing_of_before)
{
    enum { KEYS = 40 };
    struct shared_table *table = make_table();
    uint64_t now_ns = NOW_NS;
    struct key_cache *cache = make_shared(table, now_ns, KEYS);
    uint32_t number;
    age_a_round(cache, &now_ns);
    for (uint32_t i = 0; i < KEYS; i++)
        key_cache_count_use(cache, i);
    for (int i = 0; i < ROUND_S / 2; i++)
        key_cache_age(cache, now_ns += SECOND_NS);
    cr_assert(key_cache_next_in_use(cache, &number));
    key_cache_clear(cache);
    store(cache, 0);
    cr_expect_not(key_cache_next_in_use(cache, &number));
    for (int i = 0; i < 2; i++)
        cr_expect_eq(age_a_round(cache, &now_ns), 0, "no reader has used it since");
    key_cache_destroy(cache);
    shared_table_destroy(table);
}

/* Between the scout, which has passed its number, and the hand. */
Test(key_cache, a_key_at_the_number_of_one_that_readers_used_is_not_named)
{
    struct shared_table *table = make_table();
    uint64_t now_ns = NOW_NS;
    struct key_cache *cache = make_shared(table, now_ns, 1);
    for (int i = 0; i < ROUND_S - 1; i++)
        age_and_refresh(cache, &now_ns);
    key_cache_count_use(cache, 0);
    key_cache_clear(cache);
    store(cache, 0);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(age_a_round(cache, &now_ns), 0);
    key_cache_destroy(cache);
    shared_table_destroy(table);
}

/* Each report counts as one use of the key. */
Test(key_cache, keys_that_readers_use_are_not_evicted_by_others_that_are_used_once)
{
    enum { CAPACITY = 64, OTHERS = 1000 };
    for (int is_used = 0; is_used < 2; is_used++) {
        struct shared_table *table = make_table();
        struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
        key_cache_share_with(cache, table);
        store_and_share(cache, 1);
        for (uint64_t n = 2; n < OTHERS; n++) {
            if (is_used)
                key_cache_count_use(cache, 0);
            store(cache, n);
        }
        cr_expect_eq(has(cache, 1), is_used);
        key_cache_destroy(cache);
        shared_table_destroy(table);
    }
}

/* Unknown digests */

Test(key_cache, unknown_is_known_for_five_seconds)
{
    static const struct {
        uint64_t stored_ns, asked_ns;
        enum answer answer;
    } CASES[] = {
        {0, 0, UNKNOWN}, /* a machine that has just booted */
        {0, 4999999999, UNKNOWN},
        {0, 5000000000, MISS},
        {7000000000, 7000000000, UNKNOWN},
        {7000000000, 11999999999, UNKNOWN},
        {7000000000, 12000000000, MISS},
        {7000000000, 12000000001, MISS},
        {7000000000, UINT64_MAX, MISS},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
        cr_assert_eq(answer(cache, 1, CASES[i].stored_ns), MISS);
        store_unknown(cache, 1, CASES[i].stored_ns);
        cr_assert_eq(key_cache_count(cache), 0);
        cr_assert_eq(answer(cache, 1, CASES[i].asked_ns), CASES[i].answer, "case %zu", i);
        cr_assert_eq(answer(cache, 2, CASES[i].stored_ns), MISS);
        key_cache_destroy(cache);
    }
}

Test(key_cache, unknown_is_renewed_by_storing_it_again)
{
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    store_unknown(cache, 1, NOW_NS);
    store_unknown(cache, 1, NOW_NS + SECOND_NS);
    cr_assert_eq(answer(cache, 1, NOW_NS + UNKNOWN_NS), UNKNOWN);
    cr_assert_eq(answer(cache, 1, NOW_NS + UNKNOWN_NS + SECOND_NS), MISS);
    key_cache_destroy(cache);
}

Test(key_cache, last_knowledge_wins)
{
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    store_unknown(cache, 1, NOW_NS);
    store(cache, 1);
    cr_assert(has(cache, 1));
    drop(cache, 1);
    cr_assert_eq(answer(cache, 1, NOW_NS), MISS, "storing the record ended its being unknown");

    store(cache, 1);
    store_unknown(cache, 1, NOW_NS);
    cr_assert_eq(answer(cache, 1, NOW_NS), UNKNOWN);
    cr_assert_eq(key_cache_count(cache), 0);
    drop(cache, 1);
    cr_assert_eq(answer(cache, 1, NOW_NS), MISS);
    key_cache_destroy(cache);
}

Test(key_cache, drop_spares_unknown_digests_in_the_same_places)
{
    enum { MANY = 100000 };
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    store_unknown(cache, 0, NOW_NS);
    for (size_t n = 1; n <= MANY; n++)
        drop(cache, n);
    for (size_t n = 1; n <= MANY; n++)
        store(cache, n);
    cr_assert_eq(answer(cache, 0, NOW_NS), UNKNOWN);
    key_cache_destroy(cache);
}

/* If two shared one place and were used alternately, each use would read the store. */
Test(key_cache, unknown_digests_do_not_push_each_other_out)
{
    enum { MANY = 400 };
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    for (size_t round = 0; round < 2; round++)
        for (size_t n = 0; n < MANY; n++)
            store_unknown(cache, n, NOW_NS + n);
    for (size_t n = 0; n < MANY; n++)
        cr_assert_eq(answer(cache, n, NOW_NS + MANY), UNKNOWN, "number %zu", n);
    key_cache_destroy(cache);
}

Test(key_cache, the_newest_unknown_digests_of_a_flood_are_kept)
{
    enum { FLOOD = 100000, NEWEST = 1000, KEPT_WANTED = 980 };
    struct key_cache *cache = key_cache_create(64, BYTES_PLENTY);
    size_t kept = 0;
    for (size_t n = 0; n < FLOOD; n++)
        store_unknown(cache, n, NOW_NS + n);
    for (size_t n = FLOOD - NEWEST; n < FLOOD; n++)
        kept += answer(cache, n, NOW_NS + FLOOD) == UNKNOWN;
    cr_assert_geq(kept, KEPT_WANTED, "%zu", kept);
    key_cache_destroy(cache);
}

/* Replacement */

enum { HOT_SHARE = 10, SCAN_FACTOR = 10, HITS_WANTED_PERCENT = 95 };

/* Uses one hot key as a check does: finds it, or reads and stores it. */
static bool use(struct key_cache *cache, uint64_t n)
{
    if (has(cache, n))
        return true;
    store(cache, n);
    return false;
}

/* A scan runs while a tenth of the capacity is used over and over, one hot use after each `scanned_a_use` keys of the
 * scan. */
static void assert_scan_resisted(size_t capacity, size_t scanned_a_use)
{
    struct key_cache *cache = key_cache_create(capacity, BYTES_PLENTY);
    const size_t hot = capacity / HOT_SHARE;
    for (size_t i = 0; i < 4 * hot; i++)
        use(cache, i % hot);
    size_t hits = 0, uses = 0;
    for (size_t i = 0; i < SCAN_FACTOR * capacity; i++) {
        use(cache, 1000000 + i);
        if (i % scanned_a_use == 0)
            hits += use(cache, uses++ % hot);
    }
    cr_assert_geq(100 * hits, HITS_WANTED_PERCENT * uses, "capacity %zu: %zu hits of %zu", capacity, hits, uses);
    cr_assert_eq(key_cache_count(cache), capacity);
    key_cache_destroy(cache);
}

Test(key_cache, scan_leaves_keys_in_use)
{
    assert_scan_resisted(64, 1);
    assert_scan_resisted(1000, 1);
    assert_scan_resisted(1000, 4);
    assert_scan_resisted(20000, 1);
    assert_scan_resisted(20000, 8);
}

/* Keys that come into use while a scan is running must get in. */
Test(key_cache, keys_in_use_get_in_during_a_scan)
{
    enum { CAPACITY = 2000, HOT = CAPACITY / HOT_SHARE };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    uint64_t scanned = 1000000;
    for (size_t i = 0; i < 3 * CAPACITY; i++)
        use(cache, scanned++);
    for (size_t i = 0; i < 10 * HOT; i++) {
        use(cache, scanned++);
        use(cache, i % HOT);
    }
    size_t hits = 0;
    for (size_t i = 0; i < 10 * HOT; i++) {
        use(cache, scanned++);
        hits += use(cache, i % HOT);
    }
    cr_assert_geq(100 * hits, HITS_WANTED_PERCENT * 10 * HOT, "%zu hits", hits);
    key_cache_destroy(cache);
}

enum { SETTLED_CAPACITY = 1000, SETTLED_TRIAL = SETTLED_CAPACITY / 10, SCAN_FIRST = 1000000, SCAN_NEXT = 2000000 };

/* A cache whose main queue has its nine tenths, of keys that were used and no longer are, with a tenth on trial. */
static struct key_cache *create_settled(void)
{
    struct key_cache *cache = key_cache_create(SETTLED_CAPACITY, BYTES_PLENTY);
    for (size_t i = 0; i < 3 * SETTLED_CAPACITY; i++)
        use(cache, SCAN_FIRST + i % SETTLED_CAPACITY);
    for (size_t i = SETTLED_CAPACITY; i < 3 * SETTLED_CAPACITY; i++)
        use(cache, SCAN_FIRST + i);
    return cache;
}

Test(key_cache, trial_lasts_a_tenth_of_the_capacity)
{
    struct key_cache *cache = create_settled();
    store(cache, 1);
    for (size_t i = 0; i < SETTLED_TRIAL - 2; i++)
        store(cache, SCAN_NEXT + i);
    store(cache, 2);
    cr_assert(has(cache, 1));
    for (size_t i = 0; i < SETTLED_TRIAL + 1; i++)
        store(cache, SCAN_NEXT + SETTLED_TRIAL + i);
    cr_assert(!has(cache, 1), "one use in its trial is not enough");
    cr_assert(!has(cache, 2));
    key_cache_destroy(cache);
}

/* Keys used longer ago than a trial lasts: only the ghosts show that they came back. */
Test(key_cache, key_that_comes_back_soon_is_kept)
{
    enum { KEYS = 50, SCANNED = 4 * SETTLED_TRIAL, ROUNDS = 8 };
    struct key_cache *cache = create_settled();
    size_t hits = 0, scanned = 0;
    for (size_t round = 0; round < ROUNDS; round++) {
        hits = 0;
        for (size_t i = 0; i < KEYS; i++)
            hits += use(cache, i);
        for (size_t i = 0; i < SCANNED; i++)
            use(cache, SCAN_NEXT + scanned++);
        cr_assert(round > 0 || hits == 0);
    }
    cr_assert_geq(100 * hits, HITS_WANTED_PERCENT * KEYS, "%zu hits in the last round", hits);
    key_cache_destroy(cache);
}

/* Keys that are used a few times and never again pass their trial, so the main queue must recognise them too. */
Test(key_cache, short_lived_keys_leave_those_in_use)
{
    enum { HOT = SETTLED_CAPACITY / HOT_SHARE, SHORT_LIVED = 10 * SETTLED_CAPACITY };
    struct key_cache *cache = create_settled();
    for (size_t i = 0; i < 4 * HOT; i++)
        use(cache, i % HOT);
    size_t hits = 0;
    for (size_t i = 0; i < SHORT_LIVED; i++) {
        for (size_t uses = 0; uses < 3; uses++)
            use(cache, SCAN_NEXT + i);
        hits += use(cache, i % HOT);
    }
    cr_assert_geq(100 * hits, HITS_WANTED_PERCENT * SHORT_LIVED, "%zu hits", hits);
    key_cache_destroy(cache);
}

/* Storing takes bounded time: if all are in use, it spares the oldest few and does not visit all. */
Test(key_cache, eviction_looks_at_few_entries)
{
    enum { CAPACITY = 10000, OLDEST = 64 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t i = 0; i < 4 * CAPACITY; i++)
        use(cache, i % CAPACITY);
    store(cache, CAPACITY);
    cr_assert(has(cache, 0));
    size_t kept = 0;
    for (size_t i = 0; i < OLDEST; i++)
        kept += has(cache, i);
    cr_assert_eq(kept, OLDEST - 1);
    key_cache_destroy(cache);
}

Test(key_cache, uses_are_not_inherited)
{
    enum { CAPACITY = 100 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t i = 0; i < 4; i++)
        use(cache, 0);
    drop(cache, 0);
    store(cache, 1);
    for (size_t i = 0; i < 2 * CAPACITY; i++)
        store(cache, SCAN_FIRST + i);
    cr_assert(!has(cache, 1));
    key_cache_destroy(cache);
}

/* All are in use: one must go anyway, so that the newest gets in. */
Test(key_cache, newcomer_gets_in_when_all_are_in_use)
{
    enum { CAPACITY = 500, ROUNDS = 2000 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t i = 0; i < 4 * CAPACITY; i++)
        use(cache, i % CAPACITY);
    for (size_t i = 0; i < ROUNDS; i++) {
        store(cache, CAPACITY + i);
        cr_assert(has(cache, CAPACITY + i));
        for (size_t n = i; n < i + CAPACITY; n++)
            has(cache, n);
        cr_assert_eq(key_cache_count(cache), CAPACITY);
    }
    key_cache_destroy(cache);
}

Test(key_cache, flood_of_unknown_digests_pushes_no_record_out)
{
    enum { CAPACITY = 1000 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (size_t n = 0; n < CAPACITY; n++)
        store(cache, n);
    for (size_t i = 0; i < SCAN_FACTOR * CAPACITY; i++)
        store_unknown(cache, 1000000 + i, NOW_NS);
    cr_assert_eq(answer(cache, 1000000 + SCAN_FACTOR * CAPACITY - 1, NOW_NS), UNKNOWN);
    for (size_t n = 0; n < CAPACITY; n++)
        cr_assert(has(cache, n));
    key_cache_destroy(cache);
}

/* Compared with a naive model: what was stored last under each digest, and when it was stored as unknown */

enum { KEYS_MAX = 600, CLEARED_ONE_IN = 3000, UNKNOWN_ONE_IN = 20 };

struct model {
    struct key_cache *cache;
    uint64_t random, now_ns, versions;
    size_t keys;
    size_t count;                  /* records stored and not dropped */
    uint64_t version[KEYS_MAX];    /* the record's number; 0: none */
    uint64_t unknown_ns[KEYS_MAX]; /* when it was stored as unknown; 0: it was not */
    bool is_exact;                 /* there is room for all keys: nothing may be missing */
    bool has_stale;                /* keys of a cleared partition may still take room */
};

static void model_forget(struct model *m, size_t n)
{
    m->count -= m->version[n] != 0;
    m->version[n] = m->unknown_ns[n] = 0;
}

static void model_store(struct model *m, size_t n)
{
    const struct key_packed key = key_of(++m->versions);
    store_key(m->cache, n, &key);
    model_forget(m, n);
    m->version[n] = m->versions;
    m->count++;
}

static void model_store_unknown(struct model *m, size_t n)
{
    store_unknown(m->cache, n, m->now_ns);
    model_forget(m, n);
    m->unknown_ns[n] = m->now_ns;
}

static void model_drop(struct model *m, size_t n)
{
    drop(m->cache, n);
    model_forget(m, n);
}

static void model_clear(struct model *m)
{
    key_cache_clear(m->cache);
    m->has_stale = false;
    for (size_t n = 0; n < m->keys; n++)
        model_forget(m, n);
}

static void model_clear_partition(struct model *m)
{
    const unsigned count = 1U << number_below(&m->random, 4), cleared = number_below(&m->random, count);
    m->has_stale = true;
    key_cache_clear_partition(m->cache, cleared, count);
    for (size_t n = 0; n < m->keys; n++)
        if (lies_in(n, cleared, count))
            model_forget(m, n);
}

static bool model_check(struct model *m, size_t n)
{
    struct key_packed found;
    const enum answer answer = find(m->cache, n, m->now_ns, &found);
    if (answer == FOUND) {
        cr_assert_neq(m->version[n], 0, "found after it was dropped");
        const struct key_packed stored = key_of(m->version[n]);
        assert_kept(&found, &stored);
        return true;
    }
    if (answer == UNKNOWN) {
        cr_assert_neq(m->unknown_ns[n], 0);
        cr_assert_lt(m->now_ns - m->unknown_ns[n], UNKNOWN_NS);
    }
    cr_assert(!m->is_exact || m->version[n] == 0, "a record is missing");
    return false;
}

static void model_check_all(struct model *m)
{
    size_t found = 0;
    for (size_t n = 0; n < m->keys; n++)
        found += model_check(m, n);
    cr_assert(m->has_stale ? key_cache_count(m->cache) >= found : key_cache_count(m->cache) == found);
    cr_assert_leq(found, key_cache_capacity(m->cache));
    if (m->is_exact)
        cr_assert_eq(found, m->count);
}

static void model_step(struct model *m)
{
    /* The smaller of two draws, so that some keys are used more than others. */
    const size_t a = number_below(&m->random, (uint32_t)m->keys), b = number_below(&m->random, (uint32_t)m->keys);
    const size_t n = a < b ? a : b;
    m->now_ns += number_below(&m->random, 10000000);
    if (key_cache_age(m->cache, m->now_ns))
        m->is_exact = false;
    const uint32_t dice = number_below(&m->random, 100);
    if (dice < 35) {
        model_store(m, n);
        cr_assert(model_check(m, n));
    } else if (dice < 80) {
        model_check(m, n);
    } else if (dice < 100 - 100 / UNKNOWN_ONE_IN) {
        model_drop(m, n);
        cr_assert(!model_check(m, n));
    } else {
        model_store_unknown(m, n);
        cr_assert_eq(answer(m->cache, n, m->now_ns), UNKNOWN);
    }
    if (number_below(&m->random, CLEARED_ONE_IN) == 0)
        model_clear(m);
    if (number_below(&m->random, CLEARED_ONE_IN) == 0)
        model_clear_partition(m);
}

/* Age */

enum { AGE_MAX_S = 300, AGED_KEYS = 500 };

/* Counts what is there, looking every `step` seconds from `from` to `to`. */
static size_t count_left(struct key_cache *cache, uint64_t *now_ns, uint64_t until_ns, uint64_t step_ns)
{
    size_t left = 0;

    while (*now_ns < until_ns) {
        *now_ns += step_ns;
        key_cache_age(cache, *now_ns);
    }
    for (uint64_t n = 0; n < AGED_KEYS; n++)
        left += answer(cache, n, *now_ns) == FOUND;
    cr_assert_eq(key_cache_count(cache), left);
    return left;
}

Test(key_cache, nothing_is_older_than_five_minutes)
{
    static const uint64_t STEPS_NS[] = {7000000, 100000000, 1700000000, UINT64_C(40000000000)};

    for (size_t i = 0; i < sizeof STEPS_NS / sizeof STEPS_NS[0]; i++) {
        /* With and without free room, and from any moment of a round. */
        struct key_cache *cache = key_cache_create(i % 2 ? AGED_KEYS : 4096, BYTES_PLENTY);
        uint64_t now_ns = NOW_NS, began_ns;

        key_cache_age(cache, now_ns);
        count_left(cache, &now_ns, NOW_NS + (60 + 30 * i) * SECOND_NS, STEPS_NS[i]);
        for (uint64_t n = 0; n < AGED_KEYS; n++)
            store(cache, n);
        began_ns = now_ns;
        const size_t stored = count_left(cache, &now_ns, began_ns + SECOND_NS, STEPS_NS[i]);
        if (i % 2 == 0)
            cr_assert_eq(stored, AGED_KEYS);
        cr_assert_gt(count_left(cache, &now_ns, began_ns + (AGE_MAX_S / 2 - 45) * SECOND_NS, STEPS_NS[i]), 0);
        cr_assert_eq(count_left(cache, &now_ns, began_ns + AGE_MAX_S * SECOND_NS, STEPS_NS[i]), 0, "case %zu", i);
        key_cache_destroy(cache);
    }
}

Test(key_cache, entries_leave_one_by_one_and_those_stored_again_stay)
{
    struct key_cache *cache = key_cache_create(4096, BYTES_PLENTY);
    uint64_t now_ns = NOW_NS;
    size_t most = 0, before = AGED_KEYS;

    key_cache_age(cache, now_ns);
    for (uint64_t n = 0; n < AGED_KEYS; n++)
        store(cache, n);
    for (int i = 0; i < AGE_MAX_S; i++) {
        const size_t left = count_left(cache, &now_ns, now_ns + SECOND_NS, SECOND_NS / 10);
        most = before - left > most ? before - left : most;
        before = left;
    }
    cr_assert_eq(before, 0);
    cr_assert_leq(most, 2 * AGED_KEYS / (AGE_MAX_S / 2) + 1, "in one second: %zu", most);

    for (int i = 0; i < 10; i++) {
        for (uint64_t n = 0; n < AGED_KEYS; n++)
            store(cache, n);
        cr_assert_eq(count_left(cache, &now_ns, now_ns + 100 * SECOND_NS, SECOND_NS / 10), AGED_KEYS, "round %d", i);
    }
    key_cache_destroy(cache);
}

Test(key_cache, nothing_outlives_a_time_without_checks)
{
    static const uint64_t PAUSES_S[] = {150, 299, 300, 301, 100000};

    for (size_t i = 0; i < sizeof PAUSES_S / sizeof PAUSES_S[0]; i++) {
        struct key_cache *cache = key_cache_create(4096, BYTES_PLENTY);
        uint64_t now_ns = NOW_NS;

        key_cache_age(cache, now_ns);
        now_ns += 149 * SECOND_NS;
        key_cache_age(cache, now_ns);
        for (uint64_t n = 0; n < AGED_KEYS; n++)
            store(cache, n);
        now_ns += PAUSES_S[i] * SECOND_NS;
        key_cache_age(cache, now_ns);
        const size_t left = count_left(cache, &now_ns, now_ns, SECOND_NS);
        cr_assert(left == 0 || PAUSES_S[i] < AGE_MAX_S, "%zu", left);
        key_cache_destroy(cache);
    }
}

/* Ghosts outlive a clear, so the index can grow again with keys in both queues. */
Test(key_cache, growing_index_keeps_both_queues)
{
    enum { CAPACITY = 4096, ENOUGH_TO_GROW = CAPACITY - CAPACITY / 4 };
    struct key_cache *cache = key_cache_create(CAPACITY, BYTES_PLENTY);
    for (uint64_t n = 0; n < 2 * CAPACITY; n++)
        store(cache, n);
    key_cache_clear(cache);
    for (uint64_t n = 0; n < ENOUGH_TO_GROW; n++)
        store(cache, n);
    for (uint64_t n = 0; n < ENOUGH_TO_GROW; n++)
        cr_assert(has(cache, n), "%d", (int)n);
    key_cache_destroy(cache);
}

Test(key_cache, random_operations_agree_with_a_model)
{
    enum { STEPS = 40000, CHECKED_EACH = 200 };
    static const struct {
        size_t capacity, keys;
    } CASES[] = {{64, 64}, {64, 65}, {64, 80}, {64, 600}, {100, 400}, {257, 600}, {600, 600}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct model m = {.random = i, .now_ns = NOW_NS, .keys = CASES[i].keys};
        m.is_exact = CASES[i].keys <= CASES[i].capacity;
        m.cache = key_cache_create(CASES[i].capacity, BYTES_PLENTY);
        for (size_t step = 0; step < STEPS; step++) {
            model_step(&m);
            if (step % CHECKED_EACH == 0)
                model_check_all(&m);
        }
        key_cache_destroy(m.cache);
    }
}

/* Asked just before the end of a round, and again almost a round later: by then its second half is over, too. */
Test(key_cache, the_hand_stays_within_the_entries)
{
    enum { KEYS = 16384 }; /* as many as there is room for, in whole pages */
    const uint64_t round_ns = ROUND_S * SECOND_NS, moment_ns = SECOND_NS / 50;
    struct key_cache *cache = key_cache_create(KEYS, BYTES_PLENTY);

    key_cache_age(cache, NOW_NS);
    for (size_t n = 0; n < KEYS; n++)
        store(cache, n);
    cr_assert_eq(key_cache_count(cache), KEYS);
    key_cache_age(cache, NOW_NS + round_ns - moment_ns);
    key_cache_age(cache, NOW_NS + 2 * round_ns + moment_ns);
    cr_expect_eq(key_cache_count(cache), 0);
    key_cache_destroy(cache);
}
