#include "base/random.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(random, .fini = leak_guard);

Test(random, draws_differ_across_refills)
{
    unsigned char seen[1000][16];
    for (int i = 0; i < 1000; i++)
        random_public(seen[i], sizeof seen[i]);
    for (int i = 0; i < 1000; i++)
        for (int j = 0; j < i; j++)
            cr_assert_neq(memcmp(seen[i], seen[j], 16), 0);
}

Test(random, draws_larger_than_the_pool_are_filled_to_the_end)
{
    static unsigned char bytes[10001];
    random_public(bytes, sizeof bytes - 1);
    int zeroes = 0;
    for (size_t i = 0; i < sizeof bytes - 1; i++)
        zeroes += bytes[i] == 0;
    cr_assert_lt(zeroes, 150, "of 10000 bytes about 39 are zero");
    cr_assert_eq(bytes[10000], 0);
}

Test(random, secrets_differ)
{
    unsigned char a[32] = {0}, b[32] = {0};
    random_secret(a, sizeof a);
    random_secret(b, sizeof b);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    random_secret(NULL, 0);
}

Test(random, hex_fills_its_room_and_differs)
{
    char one[RANDOM_HEX_SIZE_MAX], other[RANDOM_HEX_SIZE_MAX];

    random_hex(one, sizeof one);
    random_hex(other, sizeof other);
    cr_expect_eq(strspn(one, "0123456789abcdef"), sizeof one - 1);
    cr_expect_eq(strlen(other), sizeof other - 1);
    cr_expect_str_neq(one, other);
}

Test(random, what_is_fetched_ahead_is_taken_once)
{
    enum { TAKEN = 100, BYTES = 24 }; /* 1,024 bytes have an odd rest */
    static uint8_t taken[TAKEN][BYTES];
    static const struct random_ahead WIPED;
    struct random_ahead ahead = {0};
    for (size_t i = 0; i < TAKEN; i++) {
        random_ahead_take(&ahead, taken[i], BYTES);
        for (size_t j = 0; j < i; j++)
            cr_assert_arr_neq(taken[i], taken[j], BYTES, "%zu and %zu", i, j);
    }
    random_ahead_wipe(&ahead);
    cr_assert_arr_eq(&ahead, &WIPED, sizeof ahead);
    random_ahead_take(&ahead, taken[0], BYTES);
    cr_assert_arr_neq(taken[0], WIPED.bytes, BYTES);
}

Test(random, ahead_of_more_than_fits_aborts, .signal = SIGABRT)
{
    static uint8_t bytes[RANDOM_AHEAD_BYTES + 1];
    struct random_ahead ahead = {0};
    random_ahead_take(&ahead, bytes, sizeof bytes);
}

Test(random, a_child_does_not_repeat_its_parent)
{
    unsigned char mine[16], childs[16];
    int pipe_ends[2];
    random_public(mine, sizeof mine); /* the pool is full now, and a child would inherit it */
    cr_assert_eq(pipe(pipe_ends), 0);

    pid_t child = fork();
    if (child == 0) {
        random_public(childs, sizeof childs);
        _exit(write(pipe_ends[1], childs, sizeof childs) == sizeof childs ? 0 : 1);
    }
    random_public(mine, sizeof mine);
    cr_assert_eq(read(pipe_ends[0], childs, sizeof childs), (ssize_t)sizeof childs);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    cr_assert_neq(memcmp(mine, childs, sizeof mine), 0);
}

Test(random, below_stays_below_and_reaches_all)
{
    int counts[6] = {0};
    for (int i = 0; i < 6000; i++) {
        uint32_t value = random_below(6);
        cr_assert_lt(value, 6);
        counts[value]++;
    }
    for (int i = 0; i < 6; i++)
        cr_assert(counts[i] > 750 && counts[i] < 1250, "%d came %d times of 6000", i, counts[i]);
    cr_assert_eq(random_below(1), 0);
}

/* With this bound, a plain remainder would make the lower third twice as likely as the rest. */
Test(random, below_is_uniform_for_awkward_bounds)
{
    const uint32_t bound = UINT32_C(3) << 30;
    int low = 0;
    for (int i = 0; i < 6000; i++)
        low += random_below(bound) < bound / 3;
    cr_assert(low > 1800 && low < 2200, "%d of 6000", low);
}

Test(random, below_nothing_aborts, .signal = SIGABRT)
{
    random_below(0);
}
