/* The lease that a node's membership has is the one that readers of its shared table see. */
#include "auth/key_check.h"
#include "chatelaine/check.h"
#include "deadline.h"
#include "fake_store.h"
#include "kernel.h"
#include "leak_guard.h"
#include "test_loop.h"

#include <criterion/criterion.h>

enum { INTERVAL_MS = 60000, PARTITIONS = 2, LOST = 1 };

TestSuite(table_lease, .fini = leak_guard);

static const uint8_t MASTERS[1][KEYRING_MASTER_BYTES] = {{1}};
static const uint64_t UNTIL_NS = UINT64_C(1) << 60;

struct world {
    uv_loop_t loop;
    struct turn *turn;
    struct usage *usage;
    bool is_turn_closed, is_usage_closed;
    struct keyring *keyring;
    struct store stores[PARTITIONS];
    struct membership members[PARTITIONS];
    struct shared_table *table;
    struct key_checker *checker;
    struct chatelaine_table reader;
};

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

static void set_up(struct world *w)
{
    struct partitions partitions = {.count = PARTITIONS};
    struct membership *members[PARTITIONS];
    int fds[2];

    *w = (struct world){0};
    for (unsigned i = 0; i < PARTITIONS; i++) {
        partitions.stores[i] = &w->stores[i];
        members[i] = &w->members[i];
        w->members[i].has_lease = true;
    }
    w->keyring = keyring_create(MASTERS, 1);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w->loop), 0);
    w->turn = turn_create(&w->loop);
    w->usage = usage_create(&w->loop, &partitions, INTERVAL_MS);
    w->table = shared_table_create(&(struct shared_table_settings){.keys_max = 64,
                                                                   .partitions = PARTITIONS,
                                                                   .deployment = "",
                                                                   .used = on_used,
                                                                   .in_use = on_in_use,
                                                                   .has_room = has_room});
    cr_assert(w->table);
    w->checker = key_checker_create(w->keyring, &partitions, members, w->usage, &(struct key_memory){64, 1 << 20},
                                    w->table, w->turn);
    shared_table_fds(w->table, &fds[0], &fds[1]);
    fds[0] = dup(fds[0]);
    fds[1] = dup(fds[1]);
    chatelaine_table_init(&w->reader, "", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    cr_assert(chatelaine_accept_table(&w->reader, fds));
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void tear_down(struct world *w)
{
    chatelaine_table_finish(&w->reader);
    key_checker_destroy(w->checker);
    shared_table_destroy(w->table);
    keyring_destroy(w->keyring);
    usage_close(w->usage, on_closed, &w->is_usage_closed);
    turn_close(w->turn, on_closed, &w->is_turn_closed);
    cr_assert(test_loop_until_set(&w->loop, &w->is_usage_closed, PATIENCE_MS));
    cr_assert(test_loop_until_set(&w->loop, &w->is_turn_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&w->loop));
}

/* Tells of the lease of a partition, as a membership does. */
static void tell(struct world *w, unsigned partition, uint64_t until_ns)
{
    struct membership *member = &w->members[partition];

    member->lease_until_ns = until_ns;
    member->events.on_lease(member->arg);
}

static void expect_leases(const struct world *w, uint64_t first_ns, uint64_t second_ns)
{
    cr_expect_eq(atomic_load(&w->reader.header->lease_until_ns[0]), first_ns);
    cr_expect_eq(atomic_load(&w->reader.header->lease_until_ns[1]), second_ns);
}

/* However late it hears of the lease: that began when the heartbeat was sent. */
Test(table_lease, ends_when_the_membership_s_does)
{
    struct world w;

    set_up(&w);
    expect_leases(&w, 0, 0);
    tell(&w, 0, UNTIL_NS);
    expect_leases(&w, UNTIL_NS, 0);
    tell(&w, LOST, 1);
    expect_leases(&w, UNTIL_NS, 1);
    tell(&w, LOST, UNTIL_NS + 1);
    expect_leases(&w, UNTIL_NS, UNTIL_NS + 1);
    tear_down(&w);
}

Test(table_lease, is_given_up_with_all_keys_of_its_partition)
{
    struct world w;

    set_up(&w);
    for (int i = 0; i < 2; i++) {
        tell(&w, 0, UNTIL_NS);
        tell(&w, LOST, UNTIL_NS);
        uint32_t kept = atomic_load(&w.reader.header->epoch[0]), lost = atomic_load(&w.reader.header->epoch[LOST]);
        w.members[LOST].is_ignorant = i == 0; /* of the suspended accounts; or the lease has been given up */
        tell(&w, LOST, i == 0 ? UNTIL_NS : 0);
        expect_leases(&w, UNTIL_NS, 0);
        cr_expect_eq(atomic_load(&w.reader.header->epoch[0]), kept);
        cr_expect_neq(atomic_load(&w.reader.header->epoch[LOST]), lost);
        w.members[LOST].is_ignorant = false;
    }
    tear_down(&w);
}
