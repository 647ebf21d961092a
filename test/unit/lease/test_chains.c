/* What a node knows of numbers. */
#include "base/clock.h"
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
    chains_heard(chains, text_of(name), &(struct chain_record){{ends, all}, UINT64_MAX, false});
}

static void expect_chain(const struct chain *chain, const char *maker, uint64_t ends, uint64_t all)
{
    cr_expect_str_eq(chain->maker, maker);
    cr_expect(chain->record.numbers.ends == ends && chain->record.numbers.all == all, "%s", maker);
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
        cr_expect_eq(all[(i * 37) % MAKERS].record.numbers.ends, i + 1);
    chains_destroy(chains);
}

Test(chains, who_has_no_name_is_not_heard)
{
    static const struct chain_record ONE = {{1, 1}, UINT64_MAX, false};
    struct chains *chains = chains_create();
    size_t count;

    chains_heard(chains, TEXT(""), &ONE);
    chains_heard(chains, TEXT("0123"), &ONE);
    chains_heard(chains, TEXT("0123456789abcdef0123456789abcdef0"), &ONE);
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
        bool is_folded;
    } CASES[] = {
        {"1 2 -", true, 1, 2, UINT64_MAX, false},
        {"0 9223372036854775807 3", true, 0, INT64_MAX, 3, false},
        {"1 2 f", true, 1, 2, UINT64_MAX, true},
        {"", false, 0, 0, 0, false},
        {"1", false, 0, 0, 0, false},
        {"1 2", false, 0, 0, 0, false},
        {"1 2 ", false, 0, 0, 0, false},
        {"1 2 x", false, 0, 0, 0, false},
        {"1 2 - ", false, 0, 0, 0, false},
        {"1 2 - 4", false, 0, 0, 0, false},
        {"-1 2 -", false, 0, 0, 0, false},
        {" 1 2 -", false, 0, 0, 0, false},
        {"1 9223372036854775808 -", false, 0, 0, 0, false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct chain_record record;
        char storage[64];
        struct buf out;
        bool is_one = chain_read(text_of(CASES[i].text), &record);

        cr_expect_eq(is_one, CASES[i].is_one, "%s", CASES[i].text);
        if (!is_one)
            continue;
        cr_expect(record.numbers.ends == CASES[i].ends && record.numbers.all == CASES[i].all &&
                      record.low == CASES[i].low && record.is_folded == CASES[i].is_folded,
                  "%s", CASES[i].text);
        buf_init_fixed(&out, storage, sizeof storage);
        chain_print(&record, &out);
        cr_expect(text_equal(buf_text(&out), text_of(CASES[i].text)), "%s", CASES[i].text);
    }
}

/* Folding away. Another node's chain is maker 1. */

enum { DAY_S = 24 * 60 * 60, DUE_MAX = 8 };

static bool days_pass;
static uint64_t days;

uint64_t __real_clock_boot_ns(void);
uint64_t __wrap_clock_boot_ns(void);

uint64_t __wrap_clock_boot_ns(void)
{
    return days_pass ? (100 + days) * DAY_S * 1000 * CLOCK_NS_PER_MS : __real_clock_boot_ns();
}

static struct chains *begin_days(void)
{
    days_pass = true;
    return chains_create();
}

static void end_days(struct chains *chains)
{
    chains_destroy(chains);
    days_pass = false;
}

static void hear_folded(struct chains *chains, const char *maker, uint64_t ends, uint64_t all)
{
    chains_heard(chains, text_of(maker), &(struct chain_record){{ends, all}, UINT64_MAX, true});
}

static bool is_first_folded(struct chains *chains)
{
    size_t count;
    const struct chain *all = chains_all(chains, &count);

    cr_assert_geq(count, 1);
    return all[0].record.is_folded;
}

Test(chains, of_the_dead_are_marked_after_a_week_and_forgotten_after_another)
{
    static const char MAKER[] = "00000000000000000000000000000001";
    struct chains *chains = begin_days();
    struct chain_change due[DUE_MAX];
    size_t count;

    hear(chains, 1, 5, 9);
    for (days = 1; days < 7; days++)
        chains_heard_all(chains, 9);
    days = 6;
    cr_expect_eq(chains_changes_due(chains, due, DUE_MAX), 0);
    days = 7;
    cr_assert_eq(chains_changes_due(chains, due, DUE_MAX), 1);
    cr_expect(due[0].to.is_folded && due[0].to.numbers.ends == 5 && due[0].to.numbers.all == 9);
    chains_changed(chains, &due[0]);
    cr_expect(is_first_folded(chains));
    hear_folded(chains, MAKER, 5, 9);
    days = 13;
    cr_expect_eq(chains_changes_due(chains, due, DUE_MAX), 0);
    days = 14;
    cr_assert_eq(chains_changes_due(chains, due, DUE_MAX), 1);
    cr_expect(due[0].chain.record.is_folded && due[0].to.numbers.all == 0);
    chains_changed(chains, &due[0]);
    chains_all(chains, &count);
    cr_expect_eq(count, 0);
    end_days(chains);
}

Test(chains, that_were_marked_and_go_on_count_again)
{
    struct chains *chains = begin_days();
    struct chain_change due[DUE_MAX];

    hear(chains, 1, 5, 9);
    hear_folded(chains, "00000000000000000000000000000001", 5, 9);
    cr_expect(is_first_folded(chains));
    hear(chains, 1, 5, 10);
    cr_expect_not(is_first_folded(chains));
    days = 6;
    cr_expect_eq(chains_changes_due(chains, due, DUE_MAX), 0);
    end_days(chains);
}

/* Between what is due and Redis' answer. */
Test(chains, that_have_grown_meanwhile_are_not_marked)
{
    struct chains *chains = begin_days();
    struct chain_change due[DUE_MAX];

    hear(chains, 1, 5, 9);
    days = 7;
    cr_assert_eq(chains_changes_due(chains, due, DUE_MAX), 1);
    hear(chains, 1, 6, 10);
    chains_changed(chains, &due[0]);
    cr_expect_not(is_first_folded(chains));
    end_days(chains);
}

Test(chains, its_own_is_not_marked_and_a_mark_is_taken_off)
{
    struct chains *chains = begin_days();
    struct chain_change due[DUE_MAX];

    answer(chains, 5, 9);
    days = 30;
    chains_heard_all(chains, 9);
    cr_expect_eq(chains_changes_due(chains, due, DUE_MAX), 0);
    hear_folded(chains, chains_maker(chains), 5, 9);
    cr_assert_eq(chains_changes_due(chains, due, DUE_MAX), 1);
    cr_expect(due[0].chain.record.is_folded && !due[0].to.is_folded && due[0].to.numbers.ends == 5);
    chains_changed(chains, &due[0]);
    cr_expect_eq(chains_changes_due(chains, due, DUE_MAX), 0);
    expect_answered(chains, 5, 9);
    cr_expect_not(is_first_folded(chains));
    end_days(chains);
}

/* A failover comes between Redis' answer and what was due: then the mark was on the chain of another time. */
Test(chains, of_which_the_mark_is_taken_off_may_not_be_its_own_by_then)
{
    struct chains *chains = begin_days();
    char former[MAKER_CHARS + 1];
    struct chain_change due[DUE_MAX];

    answer(chains, 5, 9);
    snprintf(former, sizeof former, "%s", chains_maker(chains));
    hear_folded(chains, former, 5, 9);
    cr_assert_eq(chains_changes_due(chains, due, DUE_MAX), 1);
    chains_draw_maker(chains);
    cr_assert_str_neq(chains_maker(chains), former);
    chains_changed(chains, &due[0]);
    cr_expect_not(is_first_folded(chains));
    end_days(chains);
}

/* Redis may have forgotten chains meanwhile, so it must not miss them afterwards either. */
Test(chains, who_was_away_for_days_forgets_all_and_takes_a_new_name)
{
    struct chains *chains = begin_days();
    char former[MAKER_CHARS + 1];
    size_t count;

    answer(chains, 5, 9);
    hear(chains, 1, 5, 9);
    chains_heard_all(chains, 18);
    memcpy(former, chains_maker(chains), sizeof former);
    days = 4;
    cr_expect_str_eq(chains_maker_now(chains), former);
    chains_all(chains, &count);
    cr_expect_eq(count, 2);
    cr_expect_eq(chains_count(chains), 18);
    days = 5;
    cr_expect_eq(chains_count(chains), 0, "it asks for all");
    cr_expect_str_neq(chains_maker_now(chains), former);
    expect_answered(chains, 0, 0);
    hear(chains, 2, 1, 1);
    chains_heard_all(chains, 20);
    expect_chain(chains_all(chains, &count), "00000000000000000000000000000002", 1, 1);
    cr_expect_eq(count, 1);
    cr_expect_str_eq(chains_maker_now(chains), chains_maker(chains));
    end_days(chains);
}

Test(chains, whose_mark_stays_takes_a_new_name)
{
    struct chains *chains = begin_days();
    char former[MAKER_CHARS + 1];

    answer(chains, 5, 9);
    memcpy(former, chains_maker(chains), sizeof former);
    hear_folded(chains, former, 5, 9);
    for (days = 1; days < 5; days++)
        chains_heard_all(chains, 9);
    days = 4;
    cr_expect_str_eq(chains_maker_now(chains), former);
    days = 5;
    cr_expect_str_neq(chains_maker_now(chains), former);
    end_days(chains);
}

/* It was forgotten, and the same name begins anew: commands share one. */
Test(chains, that_begin_anew_count_from_there)
{
    struct chains *chains = begin_days();
    size_t count;

    hear(chains, 1, 5, 9);
    hear_folded(chains, "00000000000000000000000000000001", 5, 9);
    hear(chains, 1, 1, 1);
    expect_chain(chains_all(chains, &count), "00000000000000000000000000000001", 1, 1);
    cr_expect_not(is_first_folded(chains));
    end_days(chains);
}
