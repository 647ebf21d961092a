/* What a node knows of numbers. */
#include "leak_guard.h"
#include "lease/chains.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(chains, .fini = leak_guard);

enum { MAKERS = 100 };

static void hear(struct chains *chains, unsigned maker, uint64_t ends, uint64_t all)
{
    char name[MAKER_CHARS + 1];

    snprintf(name, sizeof name, "%032x", maker);
    chains_heard(chains, text_of(name), (struct chain_numbers){ends, all});
}

static void expect_chain(const struct chain *chain, const char *maker, uint64_t ends, uint64_t all)
{
    cr_expect_str_eq(chain->maker, maker);
    cr_expect(chain->numbers.ends == ends && chain->numbers.all == all, "%s", maker);
}

Test(chains, each_process_has_a_name_of_its_own)
{
    struct chains *one = chains_create(), *other = chains_create();

    cr_expect_eq(strlen(chains_maker(one)), MAKER_CHARS);
    cr_expect_eq(strspn(chains_maker(one), "0123456789abcdef"), MAKER_CHARS);
    cr_expect_str_neq(chains_maker(one), chains_maker(other));
    chains_destroy(one);
    chains_destroy(other);
}

static void answer(struct chains *chains, uint64_t ends, uint64_t all)
{
    chains_answer(chains, chains_maker(chains), (struct chain_numbers){ends, all});
}

static void expect_answered(const struct chains *chains, uint64_t ends, uint64_t all)
{
    cr_expect(chains_answered(chains).ends == ends && chains_answered(chains).all == all, "%d of %d",
              (int)chains_answered(chains).ends, (int)chains_answered(chains).all);
}

Test(chains, its_own_changes)
{
    struct chains *chains = chains_create();
    size_t count;

    cr_expect_eq(chains_last_change(chains).maker.len, 0);
    expect_answered(chains, 0, 0);
    answer(chains, 1, 1);
    cr_expect_eq(chains_last_change(chains).number, 1);
    cr_expect(text_equal(chains_last_change(chains).maker, text_of(chains_maker(chains))));
    answer(chains, 1, 2);
    expect_answered(chains, 1, 2);
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, 1);
    expect_chain(&all[0], chains_maker(chains), 1, 2);
    chains_destroy(chains);
}

/* One waits for its line in the audit log, the other does not. */
Test(chains, changes_may_be_answered_in_another_order)
{
    struct chains *chains = chains_create();

    answer(chains, 2, 3);
    cr_expect_eq(chains_last_change(chains).number, 2);
    answer(chains, 1, 1);
    cr_expect_eq(chains_last_change(chains).number, 1);
    expect_answered(chains, 2, 3);
    chains_destroy(chains);
}

/* A Redis whose chain of the old name is shorter gives no number twice. */
Test(chains, by_a_new_name_it_begins_anew)
{
    struct chains *chains = chains_create();
    char former[MAKER_CHARS + 1];
    size_t count;

    answer(chains, 2, 3);
    memcpy(former, chains_maker(chains), sizeof former);
    chains_draw_maker(chains);
    cr_expect_str_neq(chains_maker(chains), former);
    cr_expect_eq(strlen(chains_maker(chains)), MAKER_CHARS);
    expect_answered(chains, 0, 0);
    answer(chains, 1, 1);
    expect_answered(chains, 1, 1);
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, 2, "Redis may have lost what was made by the old one");
    expect_chain(&all[strcmp(all[0].maker, former) != 0], former, 2, 3);
    chains_destroy(chains);
}

/* It was sent before the name was drawn. */
Test(chains, a_change_may_be_answered_that_was_made_by_the_old_name)
{
    struct chains *chains = chains_create();
    char former[MAKER_CHARS + 1];
    size_t count;

    memcpy(former, chains_maker(chains), sizeof former);
    chains_draw_maker(chains);
    chains_answer(chains, former, (struct chain_numbers){5, 6});
    cr_expect(text_equal(chains_last_change(chains).maker, text_of(former)));
    cr_expect_eq(chains_last_change(chains).number, 5);
    expect_answered(chains, 0, 0);
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, 1);
    expect_chain(&all[0], former, 5, 6);
    chains_destroy(chains);
}

Test(chains, numbers_only_grow_each_by_itself)
{
    struct chains *chains = chains_create();
    size_t count;

    hear(chains, 1, 5, 9);
    hear(chains, 1, 4, 12);
    hear(chains, 1, 6, 3);
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, 1);
    expect_chain(&all[0], "00000000000000000000000000000001", 6, 12);
    chains_destroy(chains);
}

Test(chains, are_sorted_however_many_there_are)
{
    struct chains *chains = chains_create();
    size_t count;

    for (unsigned i = 0; i < MAKERS; i++)
        hear(chains, (i * 37) % MAKERS, i + 1, i + 1);
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, MAKERS);
    for (size_t i = 0; i + 1 < count; i++)
        cr_expect_lt(strcmp(all[i].maker, all[i + 1].maker), 0);
    for (unsigned i = 0; i < MAKERS; i++)
        cr_expect_eq(all[(i * 37) % MAKERS].numbers.ends, i + 1);
    chains_destroy(chains);
}

Test(chains, who_has_no_name_is_not_heard)
{
    struct chains *chains = chains_create();
    size_t count;

    chains_heard(chains, TEXT(""), (struct chain_numbers){1, 1});
    chains_heard(chains, TEXT("0123"), (struct chain_numbers){1, 1});
    chains_heard(chains, TEXT("0123456789abcdef0123456789abcdef0"), (struct chain_numbers){1, 1});
    chains_all(chains, &count);
    cr_expect_eq(count, 0);
    chains_destroy(chains);
}

Test(chains, an_accepted_loss_lowers_each_by_itself)
{
    struct chains *chains = chains_create();
    size_t count;

    hear(chains, 1, 5, 9);
    hear(chains, 2, 5, 9);
    chains_heard_all(chains, 77);
    chains_lower(chains, "00000000000000000000000000000001", (struct chain_numbers){3, 12});
    chains_lower(chains, "00000000000000000000000000000002", (struct chain_numbers){0, 0});
    const struct chain *all = chains_all(chains, &count);
    cr_assert_eq(count, 2);
    expect_chain(&all[0], "00000000000000000000000000000001", 3, 9);
    expect_chain(&all[1], "00000000000000000000000000000002", 0, 0);
    cr_expect_eq(chains_count(chains), 77);
    hear(chains, 1, 4, 10);
    expect_chain(&chains_all(chains, &count)[0], "00000000000000000000000000000001", 4, 10);
    chains_destroy(chains);
}

/* Or each of its scripts would say that Redis lacks it. */
Test(chains, an_accepted_loss_lowers_what_it_was_answered)
{
    struct chains *chains = chains_create();

    answer(chains, 5, 9);
    chains_lower(chains, chains_maker(chains), (struct chain_numbers){3, 7});
    expect_answered(chains, 3, 7);
    answer(chains, 4, 8);
    expect_answered(chains, 4, 8);
    chains_destroy(chains);
}

/* Each heartbeat says it; at another Redis there may have been fewer. */
Test(chains, how_many_members_joined_and_changes_there_were_is_what_was_heard_last)
{
    static const uint64_t HEARD[] = {7, 5, 0};
    struct chains *chains = chains_create();

    cr_expect_eq(chains_joined(chains), 0);
    cr_expect_eq(chains_count(chains), 0);
    for (size_t i = 0; i < sizeof HEARD / sizeof *HEARD; i++) {
        chains_heard_joined(chains, HEARD[i]);
        chains_heard_all(chains, 2 * HEARD[i]);
        cr_expect_eq(chains_joined(chains), HEARD[i]);
        cr_expect_eq(chains_count(chains), 2 * HEARD[i]);
    }
    chains_destroy(chains);
}

Test(chains, as_redis_writes_them)
{
    static const struct {
        const char *text;
        bool is_one;
        uint64_t ends, all, low;
    } CASES[] = {
        {"1 2 -", true, 1, 2, UINT64_MAX},
        {"0 9223372036854775807 3", true, 0, INT64_MAX, 3},
        {"", false, 0, 0, 0},
        {"1", false, 0, 0, 0},
        {"1 2", false, 0, 0, 0},
        {"1 2 ", false, 0, 0, 0},
        {"1 2 x", false, 0, 0, 0},
        {"1 2 - ", false, 0, 0, 0},
        {"1 2 - 4", false, 0, 0, 0},
        {"-1 2 -", false, 0, 0, 0},
        {" 1 2 -", false, 0, 0, 0},
        {"1 9223372036854775808 -", false, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct chain_numbers numbers;
        uint64_t low;
        bool is_one = chain_read(text_of(CASES[i].text), &numbers, &low);

        cr_expect_eq(is_one, CASES[i].is_one, "%s", CASES[i].text);
        if (is_one)
            cr_expect(numbers.ends == CASES[i].ends && numbers.all == CASES[i].all && low == CASES[i].low, "%s",
                      CASES[i].text);
    }
}
