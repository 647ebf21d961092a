/* What a node keeps of endings, for how long, and in which order it counts. */
#include "base/clock.h"
#include "base/metrics.h"
#include "leak_guard.h"
#include "lease/kept.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(kept, .fini = leak_guard);

#define MAKER "0123456789abcdef0123456789abcdef"

enum { MANY = 70000, FEW = 10, TOGETHER = 3 };
static const uint64_t KEPT_NS = UINT64_C(600) * 1000 * CLOCK_NS_PER_MS;

static struct change_name change(uint64_t number)
{
    return (struct change_name){TEXT(MAKER), number};
}

static struct heard_ending ending_of(const struct id *key, const struct id *account, enum ending_what what,
                                     int64_t at_ms)
{
    return (struct heard_ending){*key, *account, what, at_ms, 0, false};
}

static bool is_any(void *arg, struct change_name name)
{
    (void)arg, (void)name;
    return true;
}

/* What was kept since the last call of a test, as one text: "<what><at><+ if it completes>" each. */
static const char *all_of(struct kept *kept)
{
    static const char WHATS[] = {'r', 'e', 'n', 's', 'a', 'o'};
    static char text[256];
    size_t count, len = 0;
    struct kept_ending *list = kept_list(kept, is_any, NULL, &count);

    text[0] = '\0';
    for (size_t i = 0; i < count && len < sizeof text; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%c%lld%s", i > 0 ? " " : "", WHATS[list[i].what],
                                (long long)list[i].at_ms, list[i].completes ? "+" : "");
    free(list);
    return text;
}

struct one {
    struct kept *kept;
    struct id key, account;
};

static struct one one_begin(void)
{
    return (struct one){kept_create(), id_mint(ID_KEY, 1), id_mint(ID_ACCOUNT, 1)};
}

static void one_hears(struct one *one, uint64_t number, enum ending_what what, int64_t at_ms)
{
    kept_add(one->kept, change(number), &(struct heard_ending){one->key, one->account, what, at_ms, 0, false}, 1);
}

Test(kept, an_ending_is_listed_as_it_was_heard)
{
    struct one one = one_begin();
    size_t count;

    one_hears(&one, 7, ENDING_REVOKED, 99);
    struct kept_ending *list = kept_list(one.kept, is_any, NULL, &count);
    cr_assert_eq(count, 1);
    cr_expect_str_eq(list[0].subject.text, one.key.text);
    cr_expect_str_eq(list[0].maker, MAKER);
    cr_expect_eq(list[0].number, 7);
    cr_expect(list[0].completes);
    free(list);
    cr_expect_str_eq(all_of(one.kept), "r99+");
    kept_destroy(one.kept);
}

static bool is_two(void *arg, struct change_name name)
{
    (void)arg;
    return name.number == 2 && text_equal(name.maker, TEXT(MAKER));
}

Test(kept, only_what_is_wanted_is_listed)
{
    struct one one = one_begin();
    size_t count;

    for (uint64_t number = 1; number <= 3; number++)
        one_hears(&one, number, ENDING_REVOKED, 1);
    struct kept_ending *list = kept_list(one.kept, is_two, NULL, &count);
    cr_assert_eq(count, 1);
    cr_expect_eq(list[0].number, 2);
    free(list);
    kept_destroy(one.kept);
}

Test(kept, nothing_gives_no_list)
{
    struct kept *kept = kept_create();
    size_t count = 1;

    cr_expect_null(kept_list(kept, is_any, NULL, &count));
    cr_expect_eq(count, 0);
    kept_destroy(kept);
}

/* From the message, from its own reply, from the stream. */
Test(kept, what_is_heard_twice_is_kept_once)
{
    struct one one = one_begin();
    const struct heard_ending ending = ending_of(&one.key, &one.account, ENDING_REVOKED, 5);

    for (int i = 0; i < 2; i++) {
        kept_add(one.kept, change(1), &ending, 1);
        kept_add_missed(one.kept, change(1), &ending, 1, clock_boot_ns());
    }
    cr_expect_str_eq(all_of(one.kept), "r5+");
    for (int i = 0; i < 2; i++)
        kept_add(one.kept, (struct change_name){0}, &ending, 1);
    cr_expect_str_eq(all_of(one.kept), "r5+", "whoever repeats it names no change");
    kept_destroy(one.kept);
}

/* Order */

Test(kept, the_latest_change_of_a_schedule_counts)
{
    struct one one = one_begin();

    one_hears(&one, 1, ENDING_SCHEDULED, 50);
    one_hears(&one, 2, ENDING_SCHEDULED, 40);
    one_hears(&one, 3, ENDING_WITHDRAWN, 0);
    cr_expect_str_eq(all_of(one.kept), "o50+ o40+ n0+");
    one_hears(&one, 4, ENDING_SCHEDULED, 60);
    cr_expect_str_eq(all_of(one.kept), "o50+ o40+ o0+ e60+");
    kept_destroy(one.kept);
}

Test(kept, that_a_key_was_revoked_counts_for_ever)
{
    struct one one = one_begin();

    one_hears(&one, 1, ENDING_SCHEDULED, 50);
    one_hears(&one, 2, ENDING_REVOKED, 30);
    one_hears(&one, 3, ENDING_REVOKED, 30);
    cr_expect_str_eq(all_of(one.kept), "o50+ r30+ r30+");
    kept_destroy(one.kept);
}

Test(kept, the_latest_change_of_an_account_counts)
{
    struct one one = one_begin();

    one_hears(&one, 1, ENDING_SUSPENDED, 0);
    cr_expect_str_eq(all_of(one.kept), "s0+");
    one_hears(&one, 2, ENDING_RESUMED, 0);
    cr_expect_str_eq(all_of(one.kept), "o0+ a0+");
    one_hears(&one, 3, ENDING_SUSPENDED, 0);
    cr_expect_str_eq(all_of(one.kept), "o0+ o0+ s0+");
    kept_destroy(one.kept);
}

/* While it catches up, a node hears of a new change before it reads of the older ones. */
Test(kept, what_was_missed_came_before_what_was_heard_since)
{
    struct one one = one_begin();
    const struct heard_ending first = ending_of(&one.key, &one.account, ENDING_SCHEDULED, 90),
                              second = ending_of(&one.key, &one.account, ENDING_SCHEDULED, 80);
    uint64_t since_ns = clock_boot_ns();

    one_hears(&one, 3, ENDING_SCHEDULED, 70);
    kept_add_missed(one.kept, change(1), &first, 1, since_ns);
    kept_add_missed(one.kept, change(2), &second, 1, since_ns);
    cr_expect_str_eq(all_of(one.kept), "e70+ o90+ o80+");
    kept_destroy(one.kept);
}

Test(kept, and_among_it_the_latest_counts)
{
    struct one one = one_begin();
    const struct heard_ending first = ending_of(&one.key, &one.account, ENDING_SCHEDULED, 90),
                              second = ending_of(&one.key, &one.account, ENDING_WITHDRAWN, 0);
    uint64_t since_ns = clock_boot_ns();

    kept_add_missed(one.kept, change(1), &first, 1, since_ns);
    kept_add_missed(one.kept, change(2), &second, 1, since_ns);
    cr_expect_str_eq(all_of(one.kept), "o90+ n0+");
    kept_destroy(one.kept);
}

/* In whatever order it was heard: the key says how often its end was said. */
Test(kept, what_a_key_said_last_counts)
{
    struct one one = one_begin();
    struct heard_ending withdrawn = ending_of(&one.key, &one.account, ENDING_WITHDRAWN, 0),
                        first = ending_of(&one.key, &one.account, ENDING_SCHEDULED, 90);

    withdrawn.said_ms = 2;
    first.said_ms = 1;
    kept_add(one.kept, change(2), &withdrawn, 1);
    kept_add(one.kept, change(1), &first, 1);
    cr_expect_str_eq(all_of(one.kept), "n0+ o90+");
    one_hears(&one, 3, ENDING_REVOKED, 30);
    cr_expect_str_eq(all_of(one.kept), "o0+ o90+ r30+");
    kept_destroy(one.kept);
}

/* Bounds */

Test(kept, for_ten_minutes)
{
    struct one one = one_begin();
    const struct heard_ending ending = ending_of(&one.key, &one.account, ENDING_REVOKED, 5);

    kept_add_missed(one.kept, change(1), &ending, 1, clock_boot_ns() - KEPT_NS + 60 * UINT64_C(1000000000));
    cr_expect_str_eq(all_of(one.kept), "r5+");
    kept_destroy(one.kept);
    one.kept = kept_create();
    kept_add_missed(one.kept, change(1), &ending, 1, clock_boot_ns() - KEPT_NS);
    cr_expect_str_eq(all_of(one.kept), "");
    kept_destroy(one.kept);
}

static size_t count_of(struct kept *kept, const struct id *keys, size_t count)
{
    size_t listed, found = 0;
    struct kept_ending *list = kept_list(kept, is_any, NULL, &listed);

    cr_assert_leq(listed, KEPT_MAX);
    for (size_t i = 0; i < listed; i++)
        for (size_t k = 0; k < count; k++)
            found += strcmp(list[i].subject.text, keys[k].text) == 0;
    free(list);
    return found;
}

/* A tenant that ends very many keys does not push out what others ended before. */
Test(kept, accounts_share_the_room)
{
    const struct id many = id_mint(ID_ACCOUNT, 1), few = id_mint(ID_ACCOUNT, 1);
    struct kept *kept = kept_create();
    struct id keys[FEW];
    int64_t before = metric_values[METRIC_KEPT_PUSHED_OUT];
    size_t count;

    for (uint64_t i = 0; i < FEW; i++) {
        keys[i] = id_mint(ID_KEY, 1);
        kept_add(kept, change(i + 1), (struct heard_ending[]){ending_of(&keys[i], &few, ENDING_REVOKED, 1)}, 1);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        const struct id key = id_mint(ID_KEY, 1);

        kept_add(kept, change(FEW + i + 1), (struct heard_ending[]){ending_of(&key, &many, ENDING_REVOKED, 1)}, 1);
    }
    cr_expect_eq(count_of(kept, keys, FEW), FEW);
    free(kept_list(kept, is_any, NULL, &count));
    cr_expect_eq(metric_values[METRIC_KEPT_PUSHED_OUT] - before, (int64_t)(MANY + FEW - count));
    cr_expect_gt(count, KEPT_MAX * 15 / 16);
    kept_destroy(kept);
}

/* Changes of several keys */

Test(kept, the_last_ending_of_a_change_completes_it)
{
    struct heard_ending endings[TOGETHER];
    struct kept *kept = kept_create();

    for (int i = 0; i < TOGETHER; i++)
        endings[i] = (struct heard_ending){id_mint(ID_KEY, 1), id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, i, 0, false};
    kept_add(kept, change(1), endings, TOGETHER);
    kept_add(kept, change(2), endings, TOGETHER);
    kept_add(kept, (struct change_name){0},
             &(struct heard_ending){endings[0].subject, endings[0].account, ENDING_REVOKED, 9, 0, false}, 1);
    cr_expect_str_eq(all_of(kept), "r0 r1 r2+ r0 r1 r2+ r9");
    kept_destroy(kept);
}

static void fill_up(struct kept *kept, const struct id *account, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct id key = id_mint(ID_KEY, 1);

        kept_add(kept, change(1000 + i), (struct heard_ending[]){ending_of(&key, account, ENDING_REVOKED, 1)}, 1);
    }
}

/* The first one, in the middle and at the end: nothing is complete of which something is lacking. */
Test(kept, a_change_of_which_something_was_pushed_out_is_not_complete)
{
    for (int lost = 0; lost < TOGETHER; lost++) {
        const struct id many = id_mint(ID_ACCOUNT, 1);
        struct heard_ending endings[TOGETHER];
        struct kept *kept = kept_create();
        struct kept_ending *list;
        size_t count, of_change = 0;

        for (int i = 0; i < TOGETHER; i++)
            endings[i] = (struct heard_ending){
                id_mint(ID_KEY, 1), i == lost ? many : id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, i, 0, false};
        kept_add(kept, change(1), endings, TOGETHER);
        fill_up(kept, &many, KEPT_MAX);
        list = kept_list(kept, is_any, NULL, &count);
        for (size_t i = 0; i < count && list[i].number == 1; i++, of_change++)
            cr_expect_not(list[i].completes, "%d", lost);
        cr_expect_eq(of_change, TOGETHER - 1);
        free(list);
        /* Heard again, it may be whole again. */
        if (lost == 0) {
            size_t completes = 0;

            kept_add(kept, change(1), endings, TOGETHER);
            list = kept_list(kept, is_any, NULL, &count);
            for (size_t i = 0; i < count; i++)
                completes += list[i].number == 1 && list[i].completes;
            cr_expect_eq(completes, 1);
            cr_expect(list[count - 1].completes && list[count - 1].number == 1);
            free(list);
        }
        kept_destroy(kept);
    }
}

/* Messages */

#define KEY "key_01jd8x4v2m7q9c3t5r6w8y0zab"
#define DEVICE "dev_01jd8x4v2m7q9c3t5r6w8y0zab"
#define ACCOUNT "acct_01jd8x4v2m7q9c3t5r6w8y0zab"

Test(kept, what_a_message_says_of_a_key)
{
    static const struct {
        const char *text;
        enum ending_what what;
        int64_t at_ms;
        int64_t said_ms;
        bool by_replacement;
    } CASES[] = {
        {KEY "/" ACCOUNT "/r1700000000000", ENDING_REVOKED, 1700000000000, 0, false},
        {DEVICE "/" ACCOUNT "/r7", ENDING_REVOKED, 7, 0, false},
        {KEY "/" ACCOUNT "/e1700000000001:1", ENDING_SCHEDULED, 1700000000001, 1, false},
        {KEY "/" ACCOUNT "/p1700000000001:1700000000000", ENDING_SCHEDULED, 1700000000001, 1700000000000, true},
        {KEY "/" ACCOUNT "/n:9223372036854775807", ENDING_WITHDRAWN, 0, INT64_MAX, false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct heard_ending ending;

        cr_assert(ending_read(text_of(CASES[i].text), &ending), "%s", CASES[i].text);
        cr_expect_eq(ending.what, CASES[i].what);
        cr_expect_eq(ending.at_ms, CASES[i].at_ms);
        cr_expect_eq(ending.said_ms, CASES[i].said_ms);
        cr_expect_eq(ending.by_replacement, CASES[i].by_replacement);
        cr_expect_eq(strncmp(ending.subject.text, CASES[i].text, strlen(KEY)), 0);
        cr_expect_str_eq(ending.account.text, ACCOUNT);
    }
}

Test(kept, what_no_message_says)
{
    static const char *const CASES[] = {
        "",
        "/",
        "//",
        KEY,
        KEY "/" ACCOUNT,
        KEY "/" ACCOUNT "/",
        KEY "/" ACCOUNT "/r",
        KEY "/" ACCOUNT "/r-1",
        KEY "/" ACCOUNT "/r 1",
        KEY "/" ACCOUNT "/r1x",
        KEY "/" ACCOUNT "/r9223372036854775808",
        KEY "/" ACCOUNT "/r1:1",
        KEY "/" ACCOUNT "/e",
        KEY "/" ACCOUNT "/e1",
        KEY "/" ACCOUNT "/e:1",
        KEY "/" ACCOUNT "/e1:",
        KEY "/" ACCOUNT "/e1:1:1",
        KEY "/" ACCOUNT "/e1:9223372036854775808",
        KEY "/" ACCOUNT "/n",
        KEY "/" ACCOUNT "/n1",
        KEY "/" ACCOUNT "/n1:1",
        KEY "/" ACCOUNT "/x1",
        KEY "/" ACCOUNT "/1",
        KEY "/" ACCOUNT "/r1/",
        KEY "/" ACCOUNT "/r1/n",
        KEY "/" KEY "/r1",
        ACCOUNT "/" ACCOUNT "/r1",
        "key_x/" ACCOUNT "/r1",
        "/" ACCOUNT "/r1",
        KEY "//r1",
    };
    struct heard_ending ending;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_expect_not(ending_read(text_of(CASES[i]), &ending), "%s", CASES[i]);
}
