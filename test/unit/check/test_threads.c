/* Readers and a writer at the same time: one slot, in turn for one key and another. */
#include "core/id.h"
#include "deadline.h"
#include "leak_guard.h"
#include "made_table.h"
#include <criterion/criterion.h>
#include <pthread.h>

TestSuite(check_threads, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { READERS = 2, KEYS = 2, ENOUGH = 2000, WRITES = 20000 };

static struct made_table made;
/* Of one set; the slot is in the first set of both. */
static const struct made_key MADE[KEYS] = {
    {.secret = "sk_live_first",
     .scopes = CHATELAINE_PATIENTS_READ,
     .bucket = 1,
     .account = {0x11},
     .principal = {0x12}},
    {.secret = "sk_test_second",
     .scopes = CHATELAINE_EXCHANGES_WRITE,
     .bucket = 2,
     .is_device = true,
     .is_live = true,
     .account = {0xa1},
     .principal = {0xa2}},
};
static _Atomic bool is_over;
static _Atomic uint64_t accepted[READERS][KEYS], torn, missed;

static bool is_of(const struct chatelaine_principal *who, const struct made_key *key)
{
    struct id account, principal;

    id_from_bytes(ID_ACCOUNT, key->account, &account);
    id_from_bytes(key->is_device ? ID_DEVICE : ID_KEY, key->principal, &principal);
    return strcmp(who->account, account.text) == 0 && strcmp(who->principal, principal.text) == 0 &&
           who->scopes == key->scopes && who->is_device == key->is_device && who->is_live == key->is_live;
}

static void *read_keys(void *arg)
{
    _Atomic uint64_t *counts = arg;
    struct chatelaine_table reader;
    struct chatelaine_principal who;

    made_table_lend(&made, &reader);
    for (int turn = 0; !atomic_load(&is_over); turn = !turn) {
        const struct made_key *key = &MADE[turn];

        if (!chatelaine_check(&reader, key->secret, strlen(key->secret), key->scopes, &who))
            atomic_fetch_add(&missed, 1);
        else if (is_of(&who, key))
            atomic_fetch_add(&counts[turn], 1);
        else
            atomic_fetch_add(&torn, 1);
        if (chatelaine_check(&reader, key->secret, strlen(key->secret), MADE[!turn].scopes, &who))
            atomic_fetch_add(&torn, 1); /* one key with the other one's scopes */
    }
    return NULL;
}

static bool have_seen_enough(void)
{
    for (int i = 0; i < READERS; i++)
        for (int key = 0; key < KEYS; key++)
            if (atomic_load(&accepted[i][key]) < ENOUGH)
                return false;
    return true;
}

Test(check_threads, a_slot_that_is_rewritten_is_never_accepted_in_part_and_no_use_is_lost)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    uint64_t counted = 0, total = 0;
    pthread_t threads[READERS];

    made_table_in_memory(&made, 1);
    for (int i = 0; i < READERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_keys, accepted[i]), 0);
    for (int write = 0; write < WRITES || (!have_seen_enough() && deadline_left_ms(deadline) > 0); write++)
        counted += made_table_put(&made, 5, &MADE[write % KEYS]);
    atomic_store(&is_over, true);
    for (int i = 0; i < READERS; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    counted += made_table_uses(&made, 5);
    for (int i = 0; i < READERS; i++)
        for (int key = 0; key < KEYS; key++)
            total += atomic_load(&accepted[i][key]);
    cr_assert_eq(atomic_load(&torn), 0);
    cr_assert(have_seen_enough(), "the readers and the writer did not meet");
    cr_assert_gt(atomic_load(&missed), 0);
    cr_assert_eq(counted, total);
    made_table_finish(&made);
}
