/* Which keys the reader accepts, on a table that lies in ordinary memory. */
#include "core/id.h"
#include "leak_guard.h"
#include "made_table.h"
#include <criterion/criterion.h>

enum { SETS = 16, LAST_WAY = CHATELAINE_WAYS - 1 };

static struct made_table made;
static struct chatelaine_table reader;
static struct chatelaine_principal who;
/* The secret's two sets differ (see open_table), so that it can be found by either. */
static const struct made_key KEY = {
    .secret = "sk_live_of_the_patients_service",
    .scopes = CHATELAINE_PATIENTS_READ | CHATELAINE_SANDBOX_MANAGE,
    .bucket = 0xfd,
    .is_live = true,
    .account = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .principal = {0xff, 0xee, 0xdd, 0xcc, 0xbb, 0xaa, 0x99, 0x88, 7, 6, 5, 4, 3, 2, 1, 0}};

static void open_table(void)
{
    made_table_in_memory(&made, SETS);
    while (made_table_slot(&made, KEY.secret, 0, 0) == made_table_slot(&made, KEY.secret, 1, 0))
        made.header->hash_key[0]++;
    made_table_lend(&made, &reader);
    memset(&who, 0, sizeof who);
}

static void close_table(void)
{
    made_table_finish(&made);
    leak_guard();
}

TestSuite(check_table, .init = open_table, .fini = close_table);

static bool check_secret(const char *secret, uint32_t scopes)
{
    return chatelaine_check(&reader, secret, strlen(secret), scopes, &who);
}

static bool check(void)
{
    return check_secret(KEY.secret, CHATELAINE_PATIENTS_READ);
}

static uint32_t put(int which, uint32_t way)
{
    uint32_t slot = made_table_slot(&made, KEY.secret, which, way);

    made_table_put(&made, slot, &KEY);
    return slot;
}

static _Atomic uint64_t *word_of(uint32_t slot, int word)
{
    return &made.sets[slot / CHATELAINE_WAYS].entries[slot % CHATELAINE_WAYS].words[word];
}

static void assert_is(const char *prefix, const uint8_t ulid[ULID_BYTES], const char *id)
{
    struct id expected;

    id_from_bytes(id_kind_of(text_of(id)), ulid, &expected);
    cr_assert_str_eq(id, expected.text);
    cr_assert_eq(strncmp(id, prefix, strlen(prefix)), 0, "%s", id);
}

Test(check_table, accepts_a_key_in_each_way_of_both_sets_and_counts_its_use)
{
    for (int which = 0; which < 2; which++)
        for (uint32_t way = 0; way < CHATELAINE_WAYS; way++) {
            uint32_t slot = put(which, way);

            cr_assert(check(), "set %d, way %u", which, way);
            cr_assert_eq(made_table_uses(&made, slot), 1);
            cr_assert(check());
            cr_assert_eq(made_table_uses(&made, slot), 2);
            atomic_store(word_of(slot, 1), 0);
            atomic_store(&made.sets[slot / CHATELAINE_WAYS].hints[way], 0);
            cr_assert_not(check());
        }
}

Test(check_table, tells_who_asks)
{
    struct made_key device = KEY;

    put(0, 3);
    cr_assert(check());
    assert_is("acct_", KEY.account, who.account);
    assert_is("key_", KEY.principal, who.principal);
    cr_assert_eq(who.scopes, KEY.scopes);
    cr_assert(who.is_live && !who.is_device);

    device.is_device = true;
    device.is_live = false;
    made_table_put(&made, made_table_slot(&made, KEY.secret, 0, 3), &device);
    cr_assert(check());
    assert_is("dev_", KEY.principal, who.principal);
    cr_assert(!who.is_live && who.is_device);
}

Test(check_table, does_not_accept_an_unknown_key)
{
    char long_secret[CHATELAINE_SECRET_MAX + 2];

    cr_assert_not(check());
    put(0, 0);
    cr_assert_not(check_secret("sk_live_of_the_patients_servicf", 0));
    cr_assert_not(check_secret("", 0));
    memset(long_secret, 'x', sizeof long_secret);
    long_secret[sizeof long_secret - 1] = '\0';
    made_table_put(&made, made_table_slot(&made, long_secret, 0, 1), &(struct made_key){.secret = long_secret});
    cr_assert_not(check_secret(long_secret, 0), "longer than any secret");
    long_secret[CHATELAINE_SECRET_MAX] = '\0';
    made_table_put(&made, made_table_slot(&made, long_secret, 0, 1), &(struct made_key){.secret = long_secret});
    cr_assert(check_secret(long_secret, 0));
}

Test(check_table, does_not_accept_by_half_of_the_hash)
{
    uint32_t slot = put(0, 0);

    atomic_fetch_xor(word_of(slot, 2), 1);
    cr_assert_not(check());
    atomic_fetch_xor(word_of(slot, 2), 1);
    cr_assert(check());
    atomic_fetch_xor(word_of(slot, 1), 1); /* the hint alone says nothing */
    cr_assert_not(check());
}

Test(check_table, looks_at_the_second_set_if_the_first_has_another_key_of_that_hint)
{
    uint32_t other = put(0, LAST_WAY), slot = put(1, 0);

    atomic_fetch_xor(word_of(other, 2), 1);
    cr_assert(check());
    cr_assert_eq(made_table_uses(&made, other), 0);
    cr_assert_eq(made_table_uses(&made, slot), 1);
}

Test(check_table, does_not_accept_without_a_table)
{
    struct chatelaine_table none;

    chatelaine_table_init(&none, "/nowhere", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    cr_assert_eq(none.trouble, CHATELAINE_NOT_ASKED_YET);
    cr_assert_not(chatelaine_check(&none, "x", 1, 0, &who));
}

Test(check_table, does_not_accept_an_entry_that_is_being_written)
{
    uint32_t slot = put(0, 0);

    atomic_fetch_add(word_of(slot, 0), 1);
    cr_assert_not(check());
    atomic_fetch_add(word_of(slot, 0), 1);
    cr_assert(check());
}

Test(check_table, does_not_accept_an_entry_that_has_changed_since_it_was_read)
{
    uint32_t slot = put(0, 0), found;
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];

    chatelaine_hash(reader.hash_key, KEY.secret, strlen(KEY.secret), hash);
    cr_assert(chatelaine_find(&reader, hash, &found, words));
    cr_assert_eq(found, slot);
    cr_assert(chatelaine_is_valid(&reader, found, words));
    made_table_put(&made, slot, &KEY); /* the same key, and still it is another entry */
    cr_assert_not(chatelaine_is_valid(&reader, found, words));
    cr_assert(chatelaine_find(&reader, hash, &found, words));
    atomic_fetch_add(word_of(slot, 0), 1); /* begins to be written */
    cr_assert_not(chatelaine_is_valid(&reader, found, words));
}

Test(check_table, accepts_under_the_lease_of_its_partition_alone)
{
    uint64_t day_ns = UINT64_C(86400000000000), later_ns = chatelaine_now_ns() + day_ns;
    uint32_t partition = KEY.bucket & (MADE_TABLE_PARTITIONS - 1);

    put(0, 0);
    made_table_set_leases(&made, chatelaine_now_ns());
    cr_assert_not(check(), "it has ended");
    made_table_set_leases(&made, 0);
    cr_assert_not(check());
    atomic_store(&made.header->lease_until_ns[partition], later_ns);
    cr_assert(check());
    made_table_set_leases(&made, later_ns);
    atomic_store(&made.header->lease_until_ns[partition], 0);
    cr_assert_not(check());
}

Test(check_table, accepts_in_the_epoch_of_its_bucket_alone)
{
    put(0, 0);
    for (int bucket = 0; bucket < CHATELAINE_BUCKETS; bucket++)
        atomic_fetch_add(&made.header->epoch[bucket], bucket != KEY.bucket);
    cr_assert(check());
    atomic_fetch_add(&made.header->epoch[KEY.bucket], 1);
    cr_assert_not(check());
}

Test(check_table, accepts_only_with_all_scopes)
{
    uint32_t slot = put(0, 0);

    cr_assert(check_secret(KEY.secret, 0));
    cr_assert(check_secret(KEY.secret, KEY.scopes));
    for (unsigned bit = 0; bit < 32; bit++) {
        bool is_held = (KEY.scopes & 1u << bit) != 0;

        cr_assert_eq(check_secret(KEY.secret, 1u << bit), is_held, "bit %u", bit);
        cr_assert_eq(check_secret(KEY.secret, 1u << bit | CHATELAINE_PATIENTS_READ), is_held, "bit %u", bit);
    }
    cr_assert_eq(made_table_uses(&made, slot), 2 + 2 * 2, "a check that is not accepted is not counted");
}

Test(check_table, does_not_accept_what_it_cannot_count)
{
    uint32_t slot = put(0, 0);
    uint64_t generation = (uint64_t)made_table_generation(&made, slot) << 32;

    atomic_store(&made.uses[slot], generation + UINT64_C(0x100000000));
    cr_assert_not(check(), "the count is another key's");
    cr_assert_eq(made_table_uses(&made, slot), 0);
    atomic_store(&made.uses[slot], generation | (UINT32_MAX - 1));
    cr_assert(check());
    cr_assert_not(check(), "the counter is full");
    cr_assert_eq(atomic_load(&made.uses[slot]), generation | UINT32_MAX, "it does not count into the generation");
}
