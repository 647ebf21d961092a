#include "auth/watch_waits_internal.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(watch_waits, .fini = leak_guard);

static struct watch_waits waits;
static char seen[256];

static void add(unsigned partition, uint64_t heard, uint64_t watchers)
{
    struct watch_wait wait = {.partition = partition, .heard = heard, .watchers = watchers};

    snprintf(wait.due.barrier, sizeof wait.due.barrier, "%u/%u", partition, (unsigned)heard);
    watch_waits_add(&waits, &wait);
}

static bool is_placed(void *arg, const struct watch_wait *wait)
{
    (void)arg;
    return wait->is_placed;
}

static void note(void *arg, const struct watch_wait *wait)
{
    struct buf *out = arg;

    buf_printf(out, "%s@%u ", wait->due.barrier, (unsigned)wait->position.ms);
}

static const char *take(bool (*is_over)(void *arg, const struct watch_wait *wait))
{
    struct buf out;

    buf_init_fixed(&out, seen, sizeof seen - 1);
    watch_waits_remove(&waits, is_over, note, &out);
    seen[out.len] = '\0';
    return seen;
}

static bool all(void *arg, const struct watch_wait *wait)
{
    (void)arg;
    (void)wait;
    return true;
}

/* Only a read that was sent after the message is sure to find what the message told of. */
Test(watch_waits, are_placed_by_a_later_read_of_their_partition)
{
    add(0, 5, 1);
    add(1, 5, 1);
    add(0, 6, 1);
    watch_waits_place(&waits, 0, 4, (struct log_position){40, 0});
    cr_expect_str_eq(take(is_placed), "");
    watch_waits_place(&waits, 0, 5, (struct log_position){50, 0});
    cr_expect_str_eq(take(is_placed), "0/5@50 ");
    add(0, 7, 1);
    watch_waits_place(&waits, 0, 8, (struct log_position){80, 0});
    watch_waits_place(&waits, 0, 9, (struct log_position){90, 0});
    cr_expect_str_eq(take(is_placed), "0/6@80 0/7@80 ", "the first place counts");
    cr_expect_str_eq(take(all), "1/5@0 ");
    cr_expect_eq(waits.count, 0);
}

Test(watch_waits, are_covered_by_an_acknowledgement_of_their_place)
{
    struct watch_wait wait = {.watchers = 3};

    cr_expect(!watch_wait_covers(&wait, 3, (struct log_position){UINT64_MAX, 0}), "it has no place yet");
    cr_expect(watch_wait_covers(&wait, 4, (struct log_position){0, 0}), "this one began later");
    wait.is_placed = true;
    wait.position = (struct log_position){7, 2};
    cr_expect(!watch_wait_covers(&wait, 3, (struct log_position){7, 1}));
    cr_expect(!watch_wait_covers(&wait, 3, (struct log_position){6, 9}));
    cr_expect(watch_wait_covers(&wait, 3, (struct log_position){7, 2}));
    cr_expect(watch_wait_covers(&wait, 1, (struct log_position){8, 0}));
}

Test(watch_waits, are_bounded)
{
    for (unsigned i = 0; i < WATCH_WAITS_MAX + 10; i++)
        add(0, i, 1);
    cr_expect_eq(waits.count, WATCH_WAITS_MAX);
    cr_expect_str_eq(waits.items[WATCH_WAITS_MAX - 1].due.barrier, "0/255");
}
