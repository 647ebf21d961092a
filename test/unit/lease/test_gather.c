/* What a node does at a Redis that it meets (rule 13): it declares what this Redis lacks, repeats what it has kept,
 * says so, and waits for the others. */
#include "base/attr.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "leak_guard.h"
#include "lease_world.h"
#include "engine/access.h"
#include "records/key_store.h"
#include "engine/script.h"
#include "engine/state.h"
#include "engine/store_examine.h"
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(gather, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define MAKER "0123456789abcdef0123456789abcdef"
#define CHAIN(numbers, length) "*2\r\n$32\r\n" MAKER "\r\n$" #length "\r\n" numbers "\r\n"

#define TOLD_REPLY "*5\r\n$2\r\nok\r\n:1\r\n:0\r\n:0\r\n:0\r\n"
#define TOLD_REPLY_SKIPPED "*5\r\n$2\r\nok\r\n:1\r\n:0\r\n:0\r\n:1\r\n"

enum { PORTION = 512, LOOKED_AT = 1024, WAIT_MIN_MS = 3000 };

static char declare[SCRIPT_BYTES], tell[SCRIPT_BYTES], told_by_others[SCRIPT_BYTES], accept_loss[SCRIPT_BYTES];
static char hash_answer[160], gather_answer[512];

static bool is_ready(void *arg)
{
    (void)arg;
    return store_is_ready(w.store);
}

static bool is_unready(void *arg)
{
    return !is_ready(arg);
}

static bool has_trouble(void *arg)
{
    return strstr(store_trouble(w.store), *(const char **)arg);
}

static void until_trouble(const char *trouble)
{
    until(has_trouble, &trouble);
    cr_assert(!store_is_ready(w.store));
}

struct wanted {
    const char *command;
    unsigned count;
};

static bool has_count(void *arg)
{
    const struct wanted *wanted = arg;

    return fake_redis_count(w.fake, wanted->command) >= wanted->count;
}

static void until_count(const char *command, unsigned count)
{
    until(has_count, &(struct wanted){command, count});
}

/* How often it was called, after until_count() or when nothing is under way. */
static void expect_count(const char *command, unsigned count)
{
    cr_expect_eq(fake_redis_count(w.fake, command), count, "%u times", fake_redis_count(w.fake, command));
}

PRINTF_LIKE(3, 4) static void expect_arguments(const char *command, unsigned n, const char *format, ...)
{
    const char *sent = fake_redis_command(w.fake, command, n);
    char expected[512];
    va_list args;

    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    cr_assert_not_null(sent);
    cr_expect_str_eq(strstr(sent, " t: ") + strlen(" t: "), expected, "%s", sent);
    cr_expect_not_null(strstr(sent, IN_OUR_STORE), "it runs whatever was lost: %s", sent);
}

/* What it says of itself when it looks what Redis holds. */
struct look {
    char name[32], membership[64], previous[64], told[32], gives_up[8], joined[32];
};

static struct look look_at(unsigned n)
{
    char words[512], *rest = words;
    struct look look;

    cr_assert_not_null(fake_redis_command(w.fake, w.gather, n));
    snprintf(words, sizeof words, "%s", strstr(fake_redis_command(w.fake, w.gather, n), IN_OUR_STORE));
    rest += strlen(IN_OUR_STORE);
    cr_expect_str_eq(strsep(&rest, " "), "c0ffee0000000000000000000000000000c0ffee");
    for (size_t i = 0; i < 6; i++) {
        static const size_t SIZES[] = {32, 64, 64, 32, 8, 32};
        char *const words_of[] = {look.name, look.membership, look.previous, look.told, look.gives_up, look.joined};
        const char *word = strsep(&rest, " ");

        cr_assert(word && strlen(word) < SIZES[i], "%zu: %s", i, fake_redis_command(w.fake, w.gather, n));
        snprintf(words_of[i], SIZES[i], "%s", word);
    }
    cr_assert_null(rest);
    return look;
}

static struct look last_look(void)
{
    return look_at(fake_redis_count(w.fake, w.gather) - 1);
}

/* Among what the n-th script tells, which begins at some place. */
static void expect_told(unsigned n, const char *subject, const char *rest)
{
    char expected[ID_TEXT_BYTES + 128];

    snprintf(expected, sizeof expected, "%s %s", subject, rest);
    cr_expect(strstr(fake_redis_command(w.fake, tell, n), expected), "%s: %s", expected,
              fake_redis_command(w.fake, tell, n));
}

struct others {
    unsigned absent, telling;
};

/* What node_gather.lua replies from now on. */
static void gather_replies(const char *era, bool is_accepted, unsigned missing, struct others others, const char *chain)
{
    snprintf(gather_answer, sizeof gather_answer, "*%u\r\n$2\r\nok\r\n$%zu\r\n%s\r\n:%d\r\n:%u\r\n:%u\r\n:%u\r\n%s",
             6 + (chain[0] != '\0'), strlen(era), era, is_accepted, missing, others.absent, others.telling, chain);
}

/* And what stands in the store's hash. */
static void hash_says(const char *era, unsigned missing)
{
    char count[32] = "$-1\r\n", digits[16];

    if (missing > 0)
        snprintf(count, sizeof count, "$%d\r\n%s\r\n", snprintf(digits, sizeof digits, "%u", missing), digits);
    snprintf(hash_answer, sizeof hash_answer, "*6\r\n$32\r\n" FAKE_STORE_ID "\r\n%s$%zu\r\n%s\r\n$-1\r\n$-1\r\n$-1\r\n",
             count, strlen(era), era);
}

static void redis_is(const char *era, unsigned missing, unsigned absent, const char *chain)
{
    gather_replies(era, false, missing, (struct others){absent, 0}, chain);
    hash_says(era, missing);
}

static void open_ready_with(bool is_safe, uint32_t lease_ms)
{
    open_fake();
    rule("CONFIG GET appendonly", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$3\r\nyes\r\n", 0);
    rule("CONFIG GET appendfsync", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$6\r\nalways\r\n", 0);
    rule("CONFIG GET no-appendfsync-on-rewrite", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$2\r\nno\r\n", 0);
    rule("CONFIG GET maxmemory-policy", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$10\r\nnoeviction\r\n", 0);
    redis_is("era", 0, 0, "");
    rule("HMGET t:store id", FAKE_ANSWER, hash_answer, 0);
    w.is_safe = is_safe; /* otherwise every loss is accepted */
    join(lease_ms);
    rule(w.gather, FAKE_ANSWER, gather_answer, 0);
    name_script(SCRIPT_chains_declare, declare);
    name_script(SCRIPT_endings_tell, tell);
    name_script(SCRIPT_changes_told, told_by_others);
    name_script(SCRIPT_store_accept_loss, accept_loss);
    rule(declare, FAKE_ANSWER, "*2\r\n$2\r\nok\r\n:1\r\n", 0);
    rule(tell, FAKE_ANSWER, TOLD_REPLY, 0);
    until(is_ready, NULL);
}

static void open_ready(void)
{
    open_ready_with(true, 0);
}

static bool has_echoed_heartbeats(void *count)
{
    echo_all();
    return has_heartbeats(count);
}

/* Each is echoed. */
static void until_more_heartbeats(unsigned count)
{
    unsigned wanted = heartbeats() + count;

    until(has_echoed_heartbeats, &wanted);
}

static void look(void)
{
    examination_start(w.store);
}

/* A new connection, perhaps to another Redis. */
static void meet(void)
{
    fake_redis_hang_up(w.fake, "chatelaine-changes");
    until(is_unready, NULL);
}

static struct chains *the_chains(void)
{
    return lease_chains(store_lease(w.store));
}

static struct id some_key(void)
{
    return id_mint(ID_KEY, 1);
}

static struct id keep(uint64_t number, enum ending_what what, int64_t at_ms)
{
    const struct heard_ending ending = {some_key(),
                                        id_mint(ID_ACCOUNT, 1),
                                        what,
                                        at_ms,
                                        what == ENDING_SCHEDULED || what == ENDING_WITHDRAWN ? 3 : 0,
                                        what == ENDING_SCHEDULED && at_ms == 9};

    kept_add(lease_kept(store_lease(w.store)), (struct change_name){TEXT(MAKER), number}, &ending, 1);
    return ending.subject;
}

static void know(uint64_t ends, uint64_t all)
{
    chains_heard(the_chains(), TEXT(MAKER), &(struct chain_record){{ends, all}, UINT64_MAX, false});
}

static bool is_another(void *arg)
{
    const struct member_name *before = arg;
    struct member_name name;

    own_name(&name);
    return strcmp(name.text, "-") != 0 && strcmp(name.text, before->text) != 0;
}

/* At a Redis that is new to the node */

Test(gather, before_it_decides_for_the_first_time_it_gathers)
{
    struct member_name name;
    struct look first, second;

    open_ready();
    until(is_live, NULL);
    own_name(&name);
    expect_count(w.gather, 2);
    first = look_at(0);
    second = look_at(1);
    cr_expect_str_eq(first.told, "");
    cr_expect_str_eq(second.told, "era");
    cr_expect_eq(strspn(first.name, "0123456789abcdef"), 16, "%s", first.name);
    cr_expect_str_neq(first.name, second.name, "of an era that nobody has named");
    for (int i = 0; i < 2; i++) {
        const struct look look = look_at((unsigned)i);

        cr_expect(look.membership[0] == '\0' || strcmp(look.membership, name.text) == 0, "%s", look.membership);
        cr_expect_str_eq(look.previous, "");
        cr_expect_str_eq(look.gives_up, "0");
        cr_expect_str_eq(look.joined, "0");
    }
    expect_count(declare, 0);
    expect_count(tell, 0);
    close_world();
}

/* So that members know whom they wait for. */
Test(gather, it_says_which_members_it_is_and_was)
{
    struct member_name names[2];

    open_ready_with(true, LEASE_MS);
    until(has_lease_by_echoes, NULL);
    own_name(&names[0]);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(is_another, &names[0]);
    own_name(&names[1]);
    meet();
    until(is_ready, NULL);
    cr_expect_str_eq(last_look().membership, names[1].text);
    cr_expect_str_eq(last_look().previous, names[0].text);
    close_world();
}

Test(gather, it_declares_what_is_lacking_tells_what_it_has_kept_and_says_so)
{
    unsigned asked;

    open_ready();
    know(5, 9);
    const struct id there = keep(3, ENDING_REVOKED, 7), lost = keep(5, ENDING_REVOKED, 8);
    asked = fake_redis_count(w.fake, w.gather);
    redis_is("era2", 0, 0, CHAIN("3 7 -", 5));
    meet();
    until_count(w.gather, asked + 2);
    until(is_ready, NULL);
    expect_count(declare, 1);
    expect_arguments(declare, 0, MAKER " 5 9");
    expect_count(tell, 1);
    expect_arguments(tell, 0, "%s r 8 " MAKER ":5 1", lost.text);
    cr_expect_null(strstr(fake_redis_command(w.fake, tell, 0), there.text), "it is there");
    expect_count(w.gather, asked + 2);
    cr_expect_str_eq(look_at(asked).told, "", "chains are wanted");
    cr_expect_str_eq(look_at(asked + 1).told, "era2");
    close_world();
}

/* A Redis whose history is another one was told nothing yet. */
/* Redis may have forgotten it. */
Test(gather, a_chain_that_is_folded_is_not_declared)
{
    unsigned asked;

    open_ready();
    know(5, 9);
    chains_heard(the_chains(), TEXT(MAKER), &(struct chain_record){{5, 9}, UINT64_MAX, true});
    asked = fake_redis_count(w.fake, w.gather);
    redis_is("era2", 0, 0, "");
    meet();
    until_count(w.gather, asked + 2);
    until(is_ready, NULL);
    expect_count(declare, 0);
    close_world();
}

/* More than one script declares. */
Test(gather, however_many_chains_are_lacking_all_are_declared)
{
    enum { CHAINS = 300, AT_ONCE = 256 };
    unsigned asked;

    open_ready();
    for (unsigned i = 1; i <= CHAINS; i++) {
        char maker[MAKER_CHARS + 1];

        snprintf(maker, sizeof maker, "%032x", i);
        chains_heard(the_chains(), text_of(maker), &(struct chain_record){{i, i}, UINT64_MAX, false});
    }
    asked = fake_redis_count(w.fake, w.gather);
    redis_is("era2", 0, 0, "");
    meet();
    until_count(w.gather, asked + 2);
    until(is_ready, NULL);
    expect_count(declare, 2);
    for (unsigned i = 1; i <= CHAINS; i++) {
        char declared[64];

        snprintf(declared, sizeof declared, " %032x %u %u", i, i, i);
        cr_expect(strstr(fake_redis_command(w.fake, declare, i > AT_ONCE), declared), "%u", i);
    }
    close_world();
}

Test(gather, it_never_says_of_another_era_that_it_has_told)
{
    static const char *const TOLD[2] = {"era", ""};

    open_ready();
    for (unsigned round = 0; round < 2; round++) {
        const char *era = round == 0 ? "era2" : "era3";
        unsigned asked = fake_redis_count(w.fake, w.gather), told = fake_redis_count(w.fake, tell);

        rule(tell, FAKE_SILENT, NULL, 0);
        keep(round + 1, ENDING_REVOKED, 7);
        redis_is(era, 0, 0, "");
        if (round == 0)
            look();
        else
            meet();
        until_count(tell, told + 1);
        cr_expect_str_eq(look_at(asked).told, TOLD[round]);
        for (; asked < fake_redis_count(w.fake, w.gather); asked++)
            cr_expect_str_neq(look_at(asked).told, era);
        rule(tell, FAKE_ANSWER, TOLD_REPLY, 0);
        fake_redis_hang_up(w.fake, "chatelaine-changes"); /* the call that is not answered */
        until_count(tell, told + 2);
        until(is_ready, NULL);
        cr_expect_str_eq(last_look().told, era);
    }
    close_world();
}

Test(gather, kinds_of_endings)
{
    open_ready();
    const struct id revoked = keep(1, ENDING_REVOKED, 7), scheduled = keep(2, ENDING_SCHEDULED, 8),
                    replaced = keep(6, ENDING_SCHEDULED, 9), withdrawn = keep(3, ENDING_WITHDRAWN, 0),
                    suspended = keep(4, ENDING_SUSPENDED, 0), resumed = keep(5, ENDING_RESUMED, 0);
    redis_is("era2", 0, 0, CHAIN("5 5 2", 5));
    meet();
    until_count(tell, 1);
    expect_told(0, scheduled.text, "e 8:3 " MAKER ":2 1");
    expect_told(0, replaced.text, "p 9:3 " MAKER ":6 1");
    expect_told(0, withdrawn.text, "n 0:3 " MAKER ":3 1");
    expect_told(0, suspended.text, "s 0 " MAKER ":4 1");
    expect_told(0, resumed.text, "- 0 " MAKER ":5 1");
    cr_expect_null(strstr(fake_redis_command(w.fake, tell, 0), revoked.text), "it was never missing there");
    until(is_ready, NULL);
    expect_count(declare, 0);
    close_world();
}

Test(gather, what_has_no_place_in_a_chain_is_told)
{
    const struct heard_ending ending = {some_key(), id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, 7, 0, false};

    open_ready();
    kept_add(lease_kept(store_lease(w.store)), (struct change_name){0}, &ending, 1);
    redis_is("era2", 0, 0, "");
    look();
    until_count(tell, 1);
    expect_arguments(tell, 0, "%s r 7  0", ending.subject.text);
    until(is_ready, NULL);
    close_world();
}

/* Each in one script, and only the last one completes it. */
Test(gather, many_are_told_in_portions)
{
    static struct heard_ending endings[PORTION];

    open_ready();
    for (unsigned change = 1; change <= 2; change++) {
        for (size_t i = 0; i < PORTION; i++)
            endings[i] = (struct heard_ending){some_key(), id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, 7, 0, false};
        kept_add(lease_kept(store_lease(w.store)), (struct change_name){TEXT(MAKER), change}, endings, PORTION);
    }
    keep(3, ENDING_REVOKED, 7);
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
    expect_count(tell, 3);
    for (unsigned change = 1; change <= 3; change++) {
        unsigned completed = 0;
        char told[64];

        snprintf(told, sizeof told, " " MAKER ":%u 1", change);
        for (unsigned i = 0; i < 3; i++)
            for (const char *at = fake_redis_command(w.fake, tell, i); (at = strstr(at, told)); at++)
                completed++;
        cr_expect_eq(completed, 1, "%u: %u", change, completed);
    }
    close_world();
}

static unsigned times_named(const char *command, unsigned number)
{
    unsigned times = 0;
    char name[64];

    snprintf(name, sizeof name, " " MAKER ":%u ", number);
    for (; (command = strstr(command, name)); command++)
        times++;
    return times;
}

static void keep_large(unsigned change, size_t endings_each)
{
    struct heard_ending endings[8];

    cr_assert_leq(endings_each, sizeof endings / sizeof *endings);
    for (size_t i = 0; i < endings_each; i++)
        endings[i] = (struct heard_ending){some_key(), id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, 7, 0, false};
    kept_add(lease_kept(store_lease(w.store)), (struct change_name){TEXT(MAKER), change}, endings, endings_each);
}

/* Comes to another Redis with so many kept changes, in which others have told something. Of the changes that the node
 * asks for, they have told the first ones. */
static void come_behind_others(unsigned kept, size_t endings_each, size_t asked, size_t told)
{
    char answer[32 + 4 * LOOKED_AT + 1];
    struct buf out;

    open_ready();
    for (unsigned change = 1; change <= kept; change++)
        keep_large(change, endings_each);
    buf_init_fixed(&out, answer, sizeof answer);
    buf_printf(&out, "*%zu\r\n$2\r\nok\r\n", asked + 1);
    for (size_t i = 0; i < asked; i++)
        buf_append_str(&out, i < told ? ":1\r\n" : ":0\r\n");
    buf_append_char(&out, '\0');
    cr_assert_not(out.failed);
    rule(tell, FAKE_ANSWER, TOLD_REPLY_SKIPPED, 0);
    rule(told_by_others, FAKE_ANSWER, answer, 0);
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
}

Test(gather, what_others_have_told_is_left_out)
{
    enum { LEFT = 24, BEHIND = 10, CHANGES = PORTION + LOOKED_AT + BEHIND };
    unsigned twice = 0, left = 0;

    come_behind_others(CHANGES, 1, LOOKED_AT, LOOKED_AT - LEFT);
    expect_count(tell, 2);
    expect_count(told_by_others, 1);
    const char *first = fake_redis_command(w.fake, tell, 0), *second = fake_redis_command(w.fake, tell, 1);
    const char *looked = fake_redis_command(w.fake, told_by_others, 0);
    for (unsigned change = 1; change <= CHANGES; change++) {
        unsigned is_asked = times_named(looked, change), is_told = times_named(second, change);

        twice += times_named(first, change) && (is_told || is_asked);
        left += is_told;
        cr_expect(is_asked || is_told || times_named(first, change), "%u", change);
    }
    cr_expect_eq(twice, 0);
    cr_expect_eq(left, LEFT + BEHIND);
    close_world();
}

/* The endings of a change are repeated together or skipped together, although the first portion cuts a change. */
Test(gather, what_others_have_told_of_large_changes_is_left_out)
{
    enum { EACH = 3, CHANGES = 400, ASKED = CHANGES - PORTION / EACH, TOLD = 100 };
    unsigned told = 0;

    come_behind_others(CHANGES, EACH, ASKED, TOLD);
    expect_count(tell, 2);
    expect_count(told_by_others, 1);
    const char *first = fake_redis_command(w.fake, tell, 0), *second = fake_redis_command(w.fake, tell, 1);
    const char *at = strstr(fake_redis_command(w.fake, told_by_others, 0), MAKER);
    for (size_t i = 0; i < ASKED; i++, at = strstr(at + 1, MAKER)) {
        unsigned change, here;

        cr_assert_not_null(at);
        change = (unsigned)strtoul(at + strlen(MAKER ":"), NULL, 10);
        here = times_named(second, change);
        cr_expect_eq(here, i < TOLD ? 0 : EACH - times_named(first, change), "%u: %u times", change, here);
        told += here;
    }
    cr_expect_null(at);
    cr_expect_eq(told, (ASKED - TOLD) * EACH);
    close_world();
}

Test(gather, others_may_have_told_all)
{
    come_behind_others(PORTION + 2 * LOOKED_AT, 1, LOOKED_AT, LOOKED_AT);
    expect_count(tell, 1);
    expect_count(told_by_others, 2);
    close_world();
}

Test(gather, an_answer_that_does_not_fit_is_no_answer)
{
    open_ready();
    for (unsigned change = 1; change <= PORTION + 2; change++)
        keep(change, ENDING_REVOKED, 7);
    rule(tell, FAKE_ANSWER, TOLD_REPLY_SKIPPED, 0);
    rule(told_by_others, FAKE_ANSWER, "*4\r\n$2\r\nok\r\n:1\r\n:1\r\n:1\r\n", 0);
    redis_is("era2", 0, 0, "");
    meet();
    until_count(told_by_others, 2);
    cr_expect_not(store_is_ready(w.store));
    rule(told_by_others, FAKE_ANSWER, "*3\r\n$2\r\nok\r\n:1\r\n:1\r\n", 0);
    until(is_ready, NULL);
    close_world();
}

/* They cannot be asked for. */
Test(gather, changes_without_a_number_are_told_by_everybody)
{
    come_behind_others(0, 1, 0, 0);
    for (unsigned i = 0; i < 2 * PORTION; i++) {
        const struct heard_ending ending = {some_key(), id_mint(ID_ACCOUNT, 1), ENDING_REVOKED, 7, 0, false};

        kept_add(lease_kept(store_lease(w.store)), (struct change_name){TEXT(""), 0}, &ending, 1);
    }
    redis_is("era3", 0, 0, "");
    meet();
    until(is_ready, NULL);
    expect_count(tell, 2);
    expect_count(told_by_others, 0);
    close_world();
}

Test(gather, nothing_is_told_twice)
{
    open_ready();
    know(1, 1);
    keep(1, ENDING_REVOKED, 7);
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
    unsigned asked = fake_redis_count(w.fake, w.gather), looked = fake_redis_count(w.fake, "HMGET");
    for (unsigned i = 1; i <= 3; i++) {
        look();
        until_count("HMGET", looked + i);
        until(is_ready, NULL);
    }
    expect_count(declare, 1);
    expect_count(tell, 1);
    expect_count(w.gather, asked);
    close_world();
}

/* Waiting */

Test(gather, it_waits_for_the_others)
{
    open_ready();
    unsigned asked = fake_redis_count(w.fake, w.gather);
    redis_is("era2", 0, 1, "");
    meet();
    until_count(w.gather, asked + 5);
    until_trouble("waits until all nodes have");
    redis_is("era2", 0, 0, "");
    until(is_ready, NULL);
    close_world();
}

Test(gather, but_not_for_ever)
{
    uint64_t began_ns;
    int64_t before = metric_values[METRIC_GATHERINGS_TIMED_OUT];

    open_ready();
    redis_is("era2", 0, 1, "");
    began_ns = clock_boot_ns();
    meet();
    until(is_ready, NULL);
    cr_expect_geq(clock_boot_ns() - began_ns, WAIT_MIN_MS * NS_PER_MS);
    cr_expect_eq(metric_values[METRIC_GATHERINGS_TIMED_OUT], before + 1);
    cr_expect_str_eq(last_look().gives_up, "1", "or each later era would wait for it again");
    cr_expect_str_eq(last_look().told, "era2");
    close_world();
}

static bool has_passed(void *ns)
{
    return clock_boot_ns() >= *(uint64_t *)ns;
}

/* It tells very many, or compares long logs. */
Test(gather, but_longer_for_one_that_has_come)
{
    int64_t before = metric_values[METRIC_GATHERINGS_TIMED_OUT];
    uint64_t later_ns;

    open_ready();
    redis_is("era2", 0, 1, "");
    gather_replies("era2", false, 0, (struct others){1, 1}, "");
    meet();
    later_ns = clock_boot_ns() + 4 * (uint64_t)WAIT_MIN_MS / 3 * NS_PER_MS;
    until(has_passed, &later_ns);
    cr_assert(!store_is_ready(w.store));
    cr_expect_eq(metric_values[METRIC_GATHERINGS_TIMED_OUT], before);
    cr_expect_str_eq(last_look().gives_up, "0");
    redis_is("era2", 0, 1, "");
    until(is_ready, NULL);
    cr_expect_eq(metric_values[METRIC_GATHERINGS_TIMED_OUT], before + 1, "the other one has not come");
    close_world();
}

/* What is missing */

static bool counts_missing(void *count)
{
    return metric_values[METRIC_STORE_MISSING] == *(int64_t *)count;
}

Test(gather, nobody_decides_while_an_ending_is_missing)
{
    char losses[SCRIPT_BYTES];

    open_ready();
    name_script(SCRIPT_store_losses, losses);
    rule(losses, FAKE_ANSWER, "*5\r\n$2\r\nok\r\n:2\r\n:0\r\n:0\r\n:0\r\n", 0);
    redis_is("era", 2, 0, "");
    look();
    until_trouble("lost 2 changes that ended something");
    until_trouble("accept-loss");
    until(counts_missing, &(int64_t){2});
    rule(losses, FAKE_ANSWER, "*5\r\n$2\r\nok\r\n:0\r\n:0\r\n:0\r\n:0\r\n", 0);
    redis_is("era", 1, 0, "");
    until_trouble("lost 1 change that");
    redis_is("era", 0, 0, "");
    until(is_ready, NULL);
    until(counts_missing, &(int64_t){0});
    expect_count(accept_loss, 0);
    close_world();
}

/* The other one knew of a change that this node had no number of when it told what it has kept. */
Test(gather, what_another_node_declares_later_is_told_again)
{
    open_ready();
    const struct id key = keep(1, ENDING_REVOKED, 7);
    redis_is("era2", 0, 1, "");
    meet();
    until_count(tell, 1);
    unsigned asked = fake_redis_count(w.fake, w.gather);
    until_count(w.gather, asked + 1);
    expect_count(tell, 1);
    redis_is("era2", 1, 0, CHAIN("1 1 1", 5));
    until_count(tell, 2);
    expect_arguments(tell, 1, "%s r 7 " MAKER ":1 1", key.text);
    redis_is("era2", 0, 0, CHAIN("1 1 1", 5));
    until(is_ready, NULL);
    close_world();
}

/* Chains were declared since, which this node knows more of; it has told when all that is done again. */
Test(gather, while_an_ending_is_missing_the_whole_is_repeated)
{
    open_ready();
    redis_is("era2", 1, 0, "");
    meet();
    until_trouble("lost 1 change that");
    know(2, 2);
    const struct id key = keep(2, ENDING_REVOKED, 7);
    until_count(tell, 1);
    expect_count(declare, 1);
    expect_arguments(declare, 0, MAKER " 2 2");
    expect_arguments(tell, 0, "%s r 7 " MAKER ":2 1", key.text);
    redis_is("era2", 0, 0, "");
    until(is_ready, NULL);
    cr_expect_str_eq(last_look().told, "era2");
    close_world();
}

Test(gather, without_a_safe_redis_every_loss_is_accepted)
{
    open_ready_with(false, 0);
    rule(accept_loss, FAKE_ANSWER, "*3\r\n$2\r\nok\r\n:1\r\n:0\r\n", 0);
    redis_is("era", 1, 0, "");
    look();
    until_count(accept_loss, 1);
    expect_arguments(accept_loss, 0, "c0ffee0000000000000000000000000000c0ffee");
    redis_is("era", 0, 0, "");
    until(is_ready, NULL);
    close_world();
}

/* An operator has said that this Redis is the truth. That holds for its era. */
Test(gather, after_a_loss_was_accepted_nothing_from_before_is_declared)
{
    open_ready();
    know(5, 9);
    gather_replies("era2", true, 0, (struct others){0}, CHAIN("3 7 -", 5));
    hash_says("era2", 0);
    meet();
    until(is_ready, NULL);
    expect_count(declare, 0);
    redis_is("era3", 0, 0, CHAIN("3 7 -", 5));
    meet();
    until(is_ready, NULL);
    expect_count(declare, 0);
    know(4, 8);
    redis_is("era4", 0, 0, CHAIN("3 7 -", 5));
    meet();
    until_count(declare, 1);
    expect_arguments(declare, 0, MAKER " 4 8");
    close_world();
}

/* A chain that this Redis knows nothing of. */
Test(gather, nor_is_a_chain_that_was_lost_as_a_whole)
{
    open_ready();
    know(5, 9);
    const struct id key = keep(5, ENDING_REVOKED, 7);
    gather_replies("era2", true, 0, (struct others){0}, "");
    hash_says("era2", 0);
    meet();
    until(is_ready, NULL);
    expect_count(declare, 0);
    expect_count(tell, 1);
    expect_arguments(tell, 0, "%s r 7 " MAKER ":5 1", key.text);
    close_world();
}

/* Heartbeats */

#define HEARTBEAT(joined, changes) "*6\r\n$2\r\nok\r\n:1\r\n:0\r\n$3\r\n0-0\r\n:" joined "\r\n:" changes "\r\n"

/* Its count of changes is that of another Redis, where fewer were made. */
Test(gather, at_a_new_redis_heartbeats_ask_for_all_chains)
{
    open_ready_with(true, LEASE_MS);
    rule(w.heartbeat, FAKE_ANSWER, HEARTBEAT("0", "20"), 0);
    until_more_heartbeats(3);
    cr_expect_str_eq(heartbeat_at(heartbeats() - 1).known, "20");
    redis_is("era2", 0, 0, "");
    meet();
    unsigned before = heartbeats();
    until(is_ready, NULL);
    until_more_heartbeats(1);
    cr_expect_str_eq(heartbeat_at(before).known, "0");
    close_world();
}

/* With it, a new membership has told. */
Test(gather, heartbeats_name_the_era_in_which_the_node_has_told)
{
    open_ready_with(true, LEASE_MS);
    until_more_heartbeats(1);
    cr_expect_str_eq(heartbeat_at(heartbeats() - 1).era, "era");
    redis_is("era2", 0, 0, "");
    meet();
    unsigned before = heartbeats();
    until(is_ready, NULL);
    until_more_heartbeats(1);
    cr_expect_str_eq(heartbeat_at(before).era, "era2");
    close_world();
}

/* A Redis that counts fewer members does not know whom to wait for. */
Test(gather, it_says_how_many_members_joined)
{
    open_ready_with(true, LEASE_MS);
    rule(w.heartbeat, FAKE_ANSWER, HEARTBEAT("7", "20"), 0);
    until_more_heartbeats(3);
    cr_expect_eq(chains_joined(the_chains()), 7);
    unsigned asked = fake_redis_count(w.fake, w.gather);
    redis_is("era2", 0, 0, "");
    rule(w.heartbeat, FAKE_ANSWER, OK_REPLY, 0);
    meet();
    until(is_ready, NULL);
    expect_count(w.gather, asked + 2);
    for (unsigned i = 0; i < 2; i++)
        cr_expect_str_eq(look_at(asked + i).joined, "7");
    cr_expect_eq(chains_joined(the_chains()), 0, "the count of another Redis");
    close_world();
}

/* What fails */

Test(gather, what_fails_is_tried_again)
{
    open_ready();
    know(1, 1);
    keep(1, ENDING_REVOKED, 7);
    rule(w.gather, FAKE_ANSWER, "-ERR not now\r\n", 1);
    rule(declare, FAKE_ANSWER, "-ERR not now\r\n", 1);
    rule(tell, FAKE_ANSWER, "-ERR not now\r\n", 1);
    redis_is("era2", 0, 0, "");
    meet();
    until_count(tell, 2);
    until(is_ready, NULL);
    expect_count(declare, 3);
    expect_count(tell, 2);
    close_world();
}

Test(gather, a_malformed_reply_decides_nothing)
{
    static const char *const REPLIES[] = {
        "*6\r\n$2\r\nok\r\n$-1\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
        "*6\r\n$2\r\nok\r\n$4\r\nera2\r\n:-1\r\n:0\r\n:0\r\n:0\r\n",
        "*6\r\n$2\r\nok\r\n$4\r\nera2\r\n:0\r\n:0\r\n:0\r\n:-1\r\n",
        "*5\r\n$2\r\nok\r\n$4\r\nera2\r\n:0\r\n:0\r\n:0\r\n",
        "*7\r\n$2\r\nok\r\n$4\r\nera2\r\n:0\r\n:0\r\n:0\r\n:0\r\n" CHAIN("1 1", 3),
    };

    open_ready();
    for (size_t i = 0; i < sizeof REPLIES / sizeof *REPLIES; i++) {
        unsigned asked = fake_redis_count(w.fake, w.gather);

        snprintf(gather_answer, sizeof gather_answer, "%s", REPLIES[i]);
        hash_says("era2", 0);
        meet();
        until_count(w.gather, asked + 2);
        cr_expect(!store_is_ready(w.store), "%zu", i);
    }
    redis_is("era2", 0, 0, "");
    until(is_ready, NULL);
    close_world();
}

/* Who notices */

static bool is_done;
static enum store_result done_with;

static void change_done(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg, (void)reply;
    done_with = result;
    is_done = true;
}

/* With as many arguments as the script needs, all of them empty. */
static void call_with_nothing(enum script script, enum script_link link)
{
    static const struct text NOTHING[] = {TEXT(""), TEXT(""), TEXT(""), TEXT(""), TEXT("")};

    cr_assert_leq(LUA_SCRIPTS[script].least, sizeof NOTHING / sizeof *NOTHING);
    store_call_script(w.store, script, link, LUA_SCRIPTS[script].least, NOTHING, change_done, NULL);
}

static void key_was_found(void *arg, enum store_result result, const struct key_record *key)
{
    (void)key;
    change_done(arg, result, NULL);
}

static void until_done(void)
{
    cr_assert(test_loop_until_set(&w.loop, &is_done, PATIENCE_MS));
    is_done = false;
}

/* A script, or the witness in front of a read. */
Test(gather, any_script_and_any_read_notices_that_something_is_missing)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};
    char list[SCRIPT_BYTES];

    for (int i = 0; i < 3; i++) {
        open_ready();
        name_script(SCRIPT_account_list, list);
        redis_is("era", 1, 0, "");
        rule(list, FAKE_ANSWER, i == 0 ? "*2\r\n$7\r\nmissing\r\n:1\r\n" : "*2\r\n$6\r\nbehind\r\n:0\r\n", 0);
        if (i < 2)
            store_call_script(w.store, SCRIPT_account_list, SCRIPT_CHANGES, 0, NULL, change_done, NULL);
        else
            key_store_find(w.store, digest, key_was_found, NULL);
        until_done();
        cr_expect(done_with == STORE_UNAVAILABLE || done_with == STORE_UNKNOWN, "%d: %d", i, done_with);
        until_trouble("lost 1 change that");
        redis_is("era", 0, 0, "");
        until(is_ready, NULL);
        close_world();
    }
}

Test(gather, a_heartbeat_notices_too)
{
    open_ready();
    redis_is("era", 1, 0, "");
    rule(w.heartbeat, FAKE_ANSWER, "*2\r\n$7\r\nmissing\r\n:1\r\n", 0);
    until_trouble("lost 1 change that");
    rule(w.heartbeat, FAKE_ANSWER, OK_REPLY, 0);
    redis_is("era", 0, 0, "");
    until(is_ready, NULL);
    close_world();
}

/* On the same connection. Redis has lost nothing of what it had when that was made, unless it says so. */
Test(gather, a_new_era_on_the_same_connection_is_gathered_for)
{
    open_ready();
    unsigned accepted = fake_redis_accepted(w.fake), asked = fake_redis_count(w.fake, w.gather);
    know(1, 1);
    redis_is("era2", 0, 1, "");
    look();
    until_count(declare, 1);
    cr_expect_eq(fake_redis_accepted(w.fake), accepted);
    until_count(w.gather, asked + 3);
    redis_is("era2", 1, 1, CHAIN("1 1 1", 5));
    look();
    until(is_unready, NULL);
    cr_expect_eq(fake_redis_accepted(w.fake), accepted);
    redis_is("era2", 0, 0, CHAIN("1 1 1", 5));
    until(is_ready, NULL);
    close_world();
}

static void hang_up_changes(void)
{
    unsigned asked = fake_redis_count(w.fake, w.gather);

    fake_redis_hang_up(w.fake, "chatelaine-changes");
    until(is_unready, NULL);
    until_count(w.gather, asked + 1);
}

/* It has lost nothing, so nobody is waited for. */
Test(gather, a_new_connection_to_the_same_process_decides_once_the_era_is_known)
{
    open_ready();
    redis_is("era", 0, 1, "");
    hang_up_changes();
    until(is_ready, NULL);
    close_world();
}

/* The hash still has the old one: nobody has gathered there yet. */
Test(gather, unless_it_was_a_replica_meanwhile)
{
    open_ready();
    gather_replies("era2", false, 0, (struct others){.absent = 1}, "");
    hang_up_changes();
    unsigned asked = fake_redis_count(w.fake, w.gather);
    until_count(w.gather, asked + 3);
    cr_expect(!store_is_ready(w.store));
    redis_is("era2", 0, 0, "");
    until(is_ready, NULL);
    close_world();
}

/* Redis may have run it before all nodes had told what it had lost. */
Test(gather, a_read_that_was_sent_before_decides_nothing)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    open_ready();
    fake_redis_rule(
        w.fake, &(struct fake_rule){.command = "GET t:key:", .answer = "$-1\r\n", .delay_ms = PATIENCE_MS, .times = 1});
    key_store_find(w.store, digest, key_was_found, NULL);
    until_command("GET t:key:");
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
    cr_assert_not(is_done);
    fake_redis_hurry(w.fake);
    until_done();
    cr_expect_eq(done_with, STORE_UNAVAILABLE, "%d", done_with);
    rule("GET t:key:", FAKE_ANSWER, "$-1\r\n", 0);
    key_store_find(w.store, digest, key_was_found, NULL);
    until_done();
    cr_expect_eq(done_with, STORE_NOT_FOUND, "%d", done_with);
    close_world();
}

Test(gather, nor_does_a_script_that_only_reads)
{
    char list[SCRIPT_BYTES];

    open_ready();
    name_script(SCRIPT_account_list, list);
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = list, .answer = OK_REPLY, .delay_ms = PATIENCE_MS, .times = 1});
    store_call_script(w.store, SCRIPT_account_list, SCRIPT_READS, 0, NULL, change_done, NULL);
    until_command(list);
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
    cr_assert_not(is_done);
    fake_redis_hurry(w.fake);
    until_done();
    cr_expect_eq(done_with, STORE_UNKNOWN, "%d", done_with);
    store_call_script(w.store, SCRIPT_account_list, SCRIPT_READS, 0, NULL, change_done, NULL);
    until_done();
    cr_expect_eq(done_with, STORE_OK, "%d", done_with);
    close_world();
}

/* Numbers */

/* A change says its kind and what was answered before; the reply brings its numbers. */
Test(gather, a_change_is_numbered_by_redis)
{
    static const char *const REPLIES[] = {
        "*4\r\n$8\r\nnumbered\r\n:0\r\n:1\r\n*2\r\n$2\r\nok\r\n:1\r\n",
        "*4\r\n$8\r\nnumbered\r\n:1\r\n:2\r\n*2\r\n$2\r\nok\r\n:1\r\n",
        "*4\r\n$8\r\nnumbered\r\n:1\r\n:3\r\n*2\r\n$2\r\nok\r\n:1\r\n",
    };
    static const enum script SCRIPTS[] = {SCRIPT_account_list, SCRIPT_session_end, SCRIPT_account_list};
    static const uint64_t ANSWERED[] = {0, 0, 1};

    open_ready();
    for (size_t i = 0; i < 3; i++) {
        char name[SCRIPT_BYTES];
        const char *sent;

        name_script(SCRIPTS[i], name);
        rule(name, FAKE_ANSWER, REPLIES[i], 1);
        call_with_nothing(SCRIPTS[i], SCRIPT_CHANGES);
        until_done();
        cr_expect_eq(done_with, STORE_OK);
        sent = fake_redis_command(w.fake, name, (unsigned)i / 2);
        cr_expect_eq(strncmp(sent + strlen(name), in_our_store(ANSWERED[i], i == 1 ? ":ends" : ":other"),
                             strlen(in_our_store(ANSWERED[i], i == 1 ? ":ends" : ":other")) - 1),
                     0, "%s", sent);
        if (i == 1)
            cr_expect_eq(chains_last_change(the_chains()).number, 1);
        cr_expect_eq(chains_answered(the_chains()).all, i + 1);
    }
    close_world();
}

static void keep_maker(char ret_maker[MAKER_CHARS + 1])
{
    memcpy(ret_maker, chains_maker(the_chains()), MAKER_CHARS + 1);
}

/* Whose chain of the old name may be shorter: it would give a number twice. */
Test(gather, in_each_era_a_node_numbers_its_changes_by_a_new_name)
{
    char makers[3][MAKER_CHARS + 1];

    open_ready();
    keep_maker(makers[0]);
    chains_answer(the_chains(), makers[0], (struct chain_numbers){1, 2});
    redis_is("era", 0, 0, "");
    meet();
    until(is_ready, NULL);
    keep_maker(makers[1]);
    cr_expect_str_eq(makers[1], makers[0], "only the connection is new");
    cr_expect_eq(chains_answered(the_chains()).ends, 1);
    redis_is("era2", 0, 0, "");
    meet();
    until(is_ready, NULL);
    keep_maker(makers[2]);
    cr_expect_str_neq(makers[2], makers[1]);
    cr_expect_eq(chains_answered(the_chains()).ends, 0);
    expect_count(declare, 1);
    expect_arguments(declare, 0, "%s 1 2", makers[0]);
    close_world();
}

/* Such as the count of a wrong password. */
Test(gather, what_nobody_was_told_has_no_number)
{
    char fail[SCRIPT_BYTES];

    open_ready();
    name_script(SCRIPT_throttle_fail, fail);
    rule(fail, FAKE_ANSWER, "*2\r\n$2\r\nok\r\n:0\r\n", 0);
    call_with_nothing(SCRIPT_throttle_fail, SCRIPT_UNPROMISED);
    until_done();
    cr_expect_null(strstr(fake_redis_command(w.fake, fail, 0), ":other"), "%s", fake_redis_command(w.fake, fail, 0));
    cr_expect_eq(chains_answered(the_chains()).all, 0);
    close_world();
}

/* What is kept */

Test(gather, what_a_message_says_is_kept_before_it_is_acknowledged)
{
    const struct id keys[2] = {some_key(), some_key()}, account = id_mint(ID_ACCOUNT, 1);
    char message[512], expected[2][ID_TEXT_BYTES + 64];

    open_ready_with(true, LEASE_MS);
    until(has_lease_by_echoes, NULL);
    snprintf(message, sizeof message, DIGEST "," DIGEST " " REVOKER " " BARRIER " " MAKER " 4 %s/%s/r77,%s/%s/e88:2",
             keys[0].text, account.text, keys[1].text, account.text);
    push(INVALIDATIONS, message);
    until_command("PUBLISH");
    redis_is("era2", 0, 0, CHAIN("3 3 -", 5));
    look();
    until_count(tell, 1);
    snprintf(expected[0], sizeof expected[0], "%s r 77 " MAKER ":4 0", keys[0].text);
    snprintf(expected[1], sizeof expected[1], "%s e 88:2 " MAKER ":4 1", keys[1].text);
    expect_arguments(tell, 0, "%s %s", expected[0], expected[1]);
    close_world();
}
