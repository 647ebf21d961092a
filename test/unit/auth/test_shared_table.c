#include "auth/shared_table.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chatelaine/check.h"
#include "core/bucket.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

enum { KEYS = 200, PARTITIONS = 4, BUCKET = 7, PARTITION = BUCKET % PARTITIONS };
enum { SECRET_BYTES = 64 };

struct world {
    struct shared_table *table;
    struct chatelaine_table reader;
    uint64_t reported;
    struct key_principal last;
    unsigned in_use; /* reports */
    uint32_t last_owner;
    bool is_full;
};

TestSuite(shared_table, .fini = leak_guard);

static void on_used(void *arg, const struct key_principal *key, uint32_t uses)
{
    struct world *w = arg;

    w->reported += uses;
    w->last = *key;
}

static void on_in_use(void *arg, uint32_t owner)
{
    struct world *w = arg;

    w->in_use++;
    w->last_owner = owner;
}

static bool has_room(void *arg)
{
    const struct world *w = arg;

    return !w->is_full;
}

static void set_up(struct world *w, size_t keys)
{
    int fds[2];

    *w = (struct world){0};
    w->table = shared_table_create(&(struct shared_table_settings){.keys_max = keys,
                                                                   .partitions = PARTITIONS,
                                                                   .deployment = "test",
                                                                   .used = on_used,
                                                                   .in_use = on_in_use,
                                                                   .has_room = has_room,
                                                                   .arg = w});
    cr_assert(w->table);
    shared_table_fds(w->table, &fds[0], &fds[1]);
    fds[0] = dup(fds[0]);
    fds[1] = dup(fds[1]);
    chatelaine_table_init(&w->reader, "/nowhere", "test", CHATELAINE_OWNER_OF_FOLDER);
    cr_assert(chatelaine_accept_table(&w->reader, fds), "%s", chatelaine_trouble_text(w->reader.trouble));
}

static void tear_down(struct world *w)
{
    chatelaine_table_finish(&w->reader);
    shared_table_destroy(w->table);
}

static uint64_t in_an_hour(void)
{
    return clock_boot_ns() + UINT64_C(3600000) * CLOCK_NS_PER_MS;
}

static struct text secret_of(unsigned number, char storage[SECRET_BYTES])
{
    int length = snprintf(storage, SECRET_BYTES, "svc_sk_live_%08x0000000000000000000000000000", number);

    return (struct text){storage, (size_t)length};
}

static struct key_packed packed_of(unsigned number)
{
    struct key_packed packed = {.scopes = SCOPE_PATIENTS_READ, .is_live = true};

    packed.id[0] = packed.account[0] = 1;
    packed.id[15] = (uint8_t)number;
    packed.id[14] = (uint8_t)(number >> 8);
    return packed;
}

static uint32_t put(struct world *w, unsigned number, unsigned bucket)
{
    struct key_packed packed = packed_of(number);
    char storage[SECRET_BYTES];

    return shared_table_put(w->table, number, secret_of(number, storage), bucket, &packed);
}

static bool accepts(const struct world *w, unsigned number)
{
    struct chatelaine_principal who;
    char storage[SECRET_BYTES];
    struct text secret = secret_of(number, storage);

    return chatelaine_check(&w->reader, secret.ptr, secret.len, CHATELAINE_PATIENTS_READ, &who);
}

Test(shared_table, a_key_is_accepted_under_a_lease_until_it_is_removed)
{
    struct world w;
    uint32_t slot;

    set_up(&w, KEYS);
    slot = put(&w, 1, BUCKET);
    cr_expect_not(accepts(&w, 1), "no lease");
    shared_table_set_lease(w.table, (PARTITION + 1) % PARTITIONS, in_an_hour());
    cr_expect_not(accepts(&w, 1), "another partition's");
    shared_table_set_lease(w.table, PARTITION, clock_boot_ns());
    cr_expect_not(accepts(&w, 1), "it has ended");
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    cr_expect(accepts(&w, 1));
    cr_expect_not(accepts(&w, 2));
    cr_expect(shared_table_holds(w.table, slot, 1));
    cr_expect_not(shared_table_holds(w.table, slot, 2));
    shared_table_remove(w.table, slot, 2);
    cr_expect(accepts(&w, 1), "the slot is not that owner's");
    shared_table_remove(w.table, slot, 1);
    cr_expect_not(accepts(&w, 1));
    cr_expect_not(shared_table_holds(w.table, slot, 1));
    cr_expect_eq(shared_table_keys(w.table), 0);
    tear_down(&w);
}

Test(shared_table, a_bucket_is_cleared_with_all_its_keys_and_no_others)
{
    struct world w;
    uint32_t slot;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    slot = put(&w, 1, BUCKET);
    put(&w, 2, BUCKET);
    put(&w, 3, BUCKET + PARTITIONS);
    shared_table_clear_bucket(w.table, BUCKET);
    cr_expect_not(accepts(&w, 1));
    cr_expect_not(accepts(&w, 2));
    cr_expect(accepts(&w, 3));
    cr_expect_not(shared_table_holds(w.table, slot, 1));
    cr_expect_eq(put(&w, 1, BUCKET), slot, "its own slot, so that readers find no older entry");
    cr_expect(accepts(&w, 1));
    tear_down(&w);
}

/* Whichever place they had before. */
Test(shared_table, keys_of_a_cleared_bucket_can_come_back)
{
    struct world w;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    for (unsigned i = 0; i < KEYS; i++)
        put(&w, i, BUCKET);
    shared_table_clear_bucket(w.table, BUCKET);
    for (unsigned i = KEYS; i > 0; i--) {
        put(&w, i - 1, BUCKET);
        cr_expect(accepts(&w, i - 1), "%u", i - 1);
    }
    tear_down(&w);
}

/* The table has so much room that no key pushes another out. */
Test(shared_table, without_a_lease_all_keys_of_the_partition_are_gone)
{
    struct world w;

    set_up(&w, (size_t)8 * KEYS);
    for (unsigned i = 0; i < PARTITIONS; i++)
        shared_table_set_lease(w.table, i, in_an_hour());
    for (unsigned i = 0; i < BUCKETS && i < KEYS; i++)
        put(&w, i, i);
    shared_table_withdraw(w.table, PARTITION);
    for (unsigned i = 0; i < KEYS; i++)
        cr_expect_eq(accepts(&w, i), i % PARTITIONS != PARTITION, "%u", i);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    for (unsigned i = PARTITION; i < KEYS; i += PARTITIONS)
        cr_expect_not(accepts(&w, i), "a new lease is for new keys");
    tear_down(&w);
}

Test(shared_table, as_many_keys_as_promised_find_their_places)
{
    enum { MANY = 5000 };
    struct world w;
    unsigned found = 0;

    set_up(&w, MANY);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    for (unsigned i = 0; i < MANY; i++)
        put(&w, i, BUCKET);
    for (unsigned i = 0; i < MANY; i++)
        found += accepts(&w, i);
    cr_expect_geq(found, MANY - MANY / 1000, "%u", found);
    tear_down(&w);
}

/* Far too many keys push each other out. Whoever is out is not accepted, and its owner knows. */
Test(shared_table, keys_that_lost_their_place_are_not_accepted)
{
    enum { MANY = 2000 };
    struct world w;
    uint32_t slots[MANY];
    unsigned held = 0;

    set_up(&w, 64);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    for (unsigned i = 0; i < MANY; i++)
        slots[i] = put(&w, i, BUCKET);
    for (unsigned i = 0; i < MANY; i++) {
        cr_expect_eq(accepts(&w, i), shared_table_holds(w.table, slots[i], i));
        held += shared_table_holds(w.table, slots[i], i);
    }
    cr_expect_eq(held, shared_table_slots(w.table));
    cr_expect_eq(shared_table_keys(w.table), shared_table_slots(w.table));
    tear_down(&w);
}

static bool count_all(struct world *w)
{
    return shared_table_count_uses(w->table, shared_table_slots(w->table));
}

Test(shared_table, each_use_is_reported_once)
{
    struct world w;
    struct key_packed packed = packed_of(1);
    uint8_t id[ULID_BYTES];
    uint32_t slot;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    slot = put(&w, 1, BUCKET);
    for (int i = 0; i < 3; i++)
        cr_assert(accepts(&w, 1));
    w.is_full = true;
    cr_expect_not(count_all(&w));
    cr_expect_eq(w.reported, 0);
    w.is_full = false;
    cr_expect(count_all(&w));
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 3);
    id_to_bytes(&w.last.id, id);
    cr_expect_arr_eq(id, packed.id, ULID_BYTES);
    cr_expect(w.last.kind == KEY_API && w.last.mode == MODE_LIVE);
    cr_assert(accepts(&w, 1));
    shared_table_remove(w.table, slot, 1);
    cr_expect_eq(w.reported, 4, "before it is gone");
    put(&w, 1, BUCKET);
    cr_assert(accepts(&w, 1));
    shared_table_clear_bucket(w.table, BUCKET);
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 5, "its bucket was cleared, but it was used");
    tear_down(&w);
}

/* Once in a round, and not while it leaves. */
Test(shared_table, its_owner_hears_that_a_key_is_in_use)
{
    struct world w;
    uint32_t slot;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    put(&w, 1, BUCKET);
    slot = put(&w, 5, BUCKET);
    cr_assert(count_all(&w));
    cr_expect_eq(w.in_use, 0);
    for (int i = 0; i < 3; i++)
        cr_assert(accepts(&w, 5));
    cr_assert(count_all(&w));
    cr_assert(count_all(&w));
    cr_expect_eq(w.in_use, 1);
    cr_expect_eq(w.last_owner, 5);
    cr_assert(accepts(&w, 5));
    shared_table_remove(w.table, slot, 5);
    cr_expect_eq(w.reported, 4);
    put(&w, 1, BUCKET);
    cr_assert(accepts(&w, 1));
    shared_table_clear_bucket(w.table, BUCKET);
    cr_assert(count_all(&w));
    cr_expect_eq(w.reported, 5);
    cr_expect_eq(w.in_use, 1, "its place may be given away");
    tear_down(&w);
}

/* A reader that was paused between its decision and its count. */
Test(shared_table, a_use_of_an_earlier_key_is_not_counted_for_the_next)
{
    struct world w;
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];
    char storage[SECRET_BYTES];
    struct text secret = secret_of(1, storage);
    uint32_t slot;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    put(&w, 1, BUCKET);
    chatelaine_hash(w.reader.hash_key, secret.ptr, secret.len, hash);
    cr_assert(chatelaine_find(&w.reader, hash, &slot, words) && chatelaine_is_valid(&w.reader, slot, words));
    shared_table_remove(w.table, slot, 1);
    cr_expect_not(chatelaine_is_valid(&w.reader, slot, words));
    cr_expect_not(chatelaine_count_use(&w.reader.uses[slot], (uint32_t)(words[0] >> 32)));
    put(&w, 1, BUCKET);
    cr_expect_not(chatelaine_is_valid(&w.reader, slot, words));
    cr_expect_not(chatelaine_count_use(&w.reader.uses[slot], (uint32_t)(words[0] >> 32)));
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 0);
    tear_down(&w);
}

Test(shared_table, garbage_in_the_counters_is_not_reported)
{
    struct world w;
    uint32_t slot;

    set_up(&w, KEYS);
    shared_table_set_lease(w.table, PARTITION, in_an_hour());
    slot = put(&w, 1, BUCKET);
    for (uint32_t i = 0; i < shared_table_slots(w.table); i++)
        w.reader.uses[i] = i == slot ? w.reader.uses[i] | UINT32_MAX : UINT64_C(0x123456789abcdef);
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 0);
    for (uint32_t i = 0; i < shared_table_slots(w.table); i++)
        cr_expect_eq((uint32_t)w.reader.uses[i], 0);
    cr_assert(accepts(&w, 1), "the counter is right again");
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 1);
    for (uint32_t i = 0; i < shared_table_slots(w.table); i++)
        w.reader.uses[i] += i != slot;
    cr_expect(count_all(&w));
    cr_expect_eq(w.reported, 1, "nobody's");
    cr_expect_eq(w.in_use, 1);
    tear_down(&w);
}

/* Readers compiled with an earlier check.h would get no table until the node is started again. */
Test(shared_table, the_header_of_the_uses_is_written_again)
{
    struct chatelaine_uses_header before;
    struct world w;

    set_up(&w, KEYS);
    before = *w.reader.uses_header;
    memset(w.reader.uses_header, 0xff, CHATELAINE_HEADER_BYTES);
    cr_expect(count_all(&w));
    cr_expect_arr_eq(w.reader.uses_header, &before, sizeof before);
    tear_down(&w);
}

Test(shared_table, readers_can_neither_write_nor_shrink_what_they_get)
{
    struct world w;
    int table, uses;

    set_up(&w, KEYS);
    shared_table_fds(w.table, &table, &uses);
    cr_expect_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, table, 0), MAP_FAILED);
    cr_expect_lt(pwrite(table, "x", 1, 0), 0);
    cr_expect_lt(ftruncate(table, 0), 0);
    cr_expect_lt(ftruncate(uses, 0), 0);
    cr_expect_lt(ftruncate(uses, 1 << 30), 0);
    cr_expect_lt(fcntl(table, F_ADD_SEALS, F_SEAL_WRITE), 0);
    cr_expect_lt(fcntl(uses, F_ADD_SEALS, F_SEAL_WRITE), 0, "a reader could stop the others from counting");
    tear_down(&w);
}

/* What is left in a reader's hands when the node stops. */
Test(shared_table, nothing_is_accepted_once_it_is_destroyed)
{
    struct world w;

    set_up(&w, KEYS);
    for (unsigned i = 0; i < PARTITIONS; i++)
        shared_table_set_lease(w.table, i, in_an_hour());
    put(&w, 1, BUCKET);
    cr_expect(accepts(&w, 1));
    shared_table_destroy(w.table);
    cr_expect_not(accepts(&w, 1));
    chatelaine_table_finish(&w.reader);
}

/* Each slot claims what one reader could have counted, and all of them more than all readers could. */
Test(shared_table, all_slots_together_claim_no_more_than_readers_can_do)
{
    enum { SLOT_KEYS = 50000, CLAIM = 20000 };
    const uint64_t begun_ns = clock_boot_ns(), processors = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    int64_t refused = metric_values[METRIC_TABLE_USES_REFUSED];
    uint64_t claimed = 0, possible;
    struct world w;

    set_up(&w, SLOT_KEYS);
    for (unsigned i = 0; i < SLOT_KEYS; i++) {
        uint32_t slot = put(&w, i, BUCKET);

        cr_assert_neq(slot, SHARED_TABLE_NONE);
        if ((uint32_t)atomic_load(&w.reader.uses[slot]) == 0)
            claimed += CLAIM;
        atomic_store(&w.reader.uses[slot], (atomic_load(&w.reader.uses[slot]) >> 32 << 32) + CLAIM);
    }
    cr_assert(shared_table_count_uses(w.table, shared_table_slots(w.table)));
    possible = ((clock_boot_ns() - begun_ns) / CLOCK_NS_PER_MS + 2) * CLAIM * processors;
    cr_expect_gt(w.reported, 0);
    cr_expect(w.reported <= possible, "%llu of %llu, %llu are possible", (unsigned long long)w.reported,
              (unsigned long long)claimed, (unsigned long long)possible);
    cr_expect(w.reported == claimed || metric_values[METRIC_TABLE_USES_REFUSED] > refused);
    tear_down(&w);
}

Test(shared_table, tells_which_policy_the_node_has)
{
    struct world w;

    set_up(&w, KEYS);
    cr_expect_eq(chatelaine_table_policy(&w.reader), 0, "not known");
    shared_table_set_policy(w.table, 7);
    cr_expect_eq(chatelaine_table_policy(&w.reader), 7);
    tear_down(&w);
}
