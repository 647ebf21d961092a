/* The set of suspended accounts in a node's memory: what it may decide, by messages and by versions. */
#include "leak_guard.h"
#include "lease_world.h"
#include "records/key_store.h"
#include "engine/readiness.h"
#include "engine/state.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(suspensions, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define ACCOUNT "acct_01jd8x4v2m7q9c3t5r6w8y0zab"
#define OTHER "acct_01jd8x4v2m7q9c3t5r6w8y0zac"
#define KEY_RECORD "$95\r\nkey_01jd8x4v2m7q9c3t5r6w8y0zab " ACCOUNT " live wxyz 3 1700000000000 - Ward\r\n"
#define SAYS(account, state, version) "@" account " - - " state " " version

static char hash_answer[160], set_answer[256];

/* What Redis holds from now on: the version in the store's hash, and the set. */
static void hold(const char *version, const char *set)
{
    snprintf(hash_answer, sizeof hash_answer,
             "*6\r\n$32\r\n" FAKE_STORE_ID "\r\n$-1\r\n$3\r\nera\r\n$-1\r\n$%zu\r\n%s\r\n$-1\r\n", strlen(version),
             version);
    snprintf(set_answer, sizeof set_answer, "%s", set);
    rule("HMGET t:store id", FAKE_ANSWER, hash_answer, 0);
    rule("HGETALL t:suspended", FAKE_ANSWER, set_answer, 0);
}

#define SET_1 "*4\r\n$31\r\n" ACCOUNT "\r\n$1\r\n9\r\n$7\r\nversion\r\n$1\r\n1\r\n"
#define SET_2 "*2\r\n$7\r\nversion\r\n$1\r\n2\r\n"
#define NOBODY "*0\r\n"

static struct suspensions *the_set(void)
{
    return lease_suspensions(store_lease(w.store));
}

static bool is_suspended(const char *account)
{
    struct id id;

    cr_assert(id_parse(ID_ACCOUNT, text_of(account), &id));
    return suspensions_include(the_set(), &id);
}

static bool is_found, found_suspended;
static enum store_result found;

static void on_found(void *arg, enum store_result result, const struct key_record *key)
{
    (void)arg;
    is_found = true;
    found = result;
    found_suspended = key && key->is_suspended;
}

static void read_key(void)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    is_found = false;
    key_store_find(w.store, digest, on_found, NULL);
    cr_assert(test_loop_until_set(&w.loop, &is_found, PATIENCE_MS));
}

static bool is_ready(void *arg)
{
    (void)arg;
    echo_all();
    return store_is_ready(w.store);
}

static void open_ready(void)
{
    open_with_lease(LEASE_MS);
    rule("GET t:key:", FAKE_ANSWER, KEY_RECORD, 0);
    until(is_ready, NULL);
}

/* Without heartbeats, whose missing echoes would end the membership. */
static void open_strict(void)
{
    open_fake();
    join(0);
    rule("GET t:key:", FAKE_ANSWER, KEY_RECORD, 0);
    until(is_live, NULL);
    until(is_ready, NULL);
    w.ended = 0;
}

static bool has_version(void *version)
{
    return suspensions_version(the_set()) == *(uint64_t *)version;
}

static void until_version(uint64_t version)
{
    until(has_version, &version);
}

Test(suspensions, the_set_is_read_with_the_first_batch)
{
    open_ready();
    cr_expect_not(membership_knows_suspended(w.member));
    hold("1", SET_1);
    read_key();
    cr_expect_eq(found, STORE_OK);
    cr_expect(found_suspended);
    cr_expect(membership_knows_suspended(w.member));
    cr_expect(is_suspended(ACCOUNT));
    cr_expect_not(is_suspended(OTHER));
    cr_expect_eq(fake_redis_count(w.fake, "GET t:key:"), 1, "no further round trip");
    read_key();
    cr_expect_eq(fake_redis_count(w.fake, "HGETALL"), 1, "nor is it read again");
    close_world();
}

Test(suspensions, messages_change_the_set)
{
    open_ready();
    read_key();
    cr_expect_not(found_suspended);
    push(INVALIDATIONS, SAYS(ACCOUNT, "suspended", "1"));
    until_version(1);
    cr_expect(is_suspended(ACCOUNT));
    push(INVALIDATIONS, SAYS(OTHER, "suspended", "2"));
    push(INVALIDATIONS, SAYS(ACCOUNT, "resumed", "3"));
    until_version(3);
    cr_expect(is_suspended(OTHER));
    cr_expect_not(is_suspended(ACCOUNT));
    cr_expect(membership_knows_suspended(w.member));
    /* Older than what the set holds. */
    push(INVALIDATIONS, SAYS(OTHER, "resumed", "2"));
    push(INVALIDATIONS, SAYS(ACCOUNT, "suspended", "4"));
    until_version(4);
    cr_expect(is_suspended(OTHER));
    cr_expect(is_suspended(ACCOUNT));
    cr_expect(membership_knows_suspended(w.member));
    close_world();
}

Test(suspensions, a_message_that_was_missed_makes_the_set_unknown)
{
    open_ready();
    read_key();
    push(INVALIDATIONS, SAYS(ACCOUNT, "suspended", "2"));
    until_version(2);
    cr_expect_not(membership_knows_suspended(w.member));
    close_world();
}

Test(suspensions, a_message_makes_reads_under_way_unfit_for_the_cache)
{
    uint64_t epoch;

    open_ready();
    epoch = membership_epoch(w.member);
    cr_assert(may_fill(epoch));
    push(INVALIDATIONS, SAYS(ACCOUNT, "suspended", "1"));
    until_version(1);
    cr_expect_not(may_fill(epoch));
    close_world();
}

Test(suspensions, it_is_acknowledged_like_a_revocation)
{
    open_ready();
    push(INVALIDATIONS, "@" ACCOUNT " " REVOKER " " BARRIER " suspended 1");
    until_command("PUBLISH t:node:" REVOKER " ack ");
    cr_expect(is_suspended(ACCOUNT));
    close_world();
}

Test(suspensions, a_message_that_makes_no_sense_ends_the_membership)
{
    static const char *const CASES[] = {
        "@" ACCOUNT " - - suspended",
        "@" ACCOUNT " - - suspended x",
        "@" ACCOUNT " - - suspended 1 2",
        "@" ACCOUNT " - - paused 1",
        "@" ACCOUNT " - -",
        "@acct_1 - - suspended 1",
        "@ - - suspended 1",
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        open_strict();
        push(INVALIDATIONS, CASES[i]);
        until_ended(1);
        cr_expect_not(is_suspended(ACCOUNT), "case %zu", i);
        cr_expect_eq(suspensions_version(the_set()), 0, "case %zu", i);
        close_world();
    }
}

/* The message has not come yet, or never will. */
Test(suspensions, a_read_with_a_higher_version_reads_the_set_first)
{
    open_ready();
    read_key();
    cr_assert_not(found_suspended);
    hold("1", SET_1);
    read_key();
    cr_expect_eq(found, STORE_OK);
    cr_expect(found_suspended);
    hold("2", SET_2);
    read_key();
    cr_expect_not(found_suspended);
    cr_expect_eq(fake_redis_count(w.fake, "HGETALL"), 3);
    close_world();
}

/* The set of the batch before is not good enough. */
Test(suspensions, a_batch_without_a_version_decides_nothing)
{
    open_ready();
    hold("1", SET_1);
    read_key();
    cr_assert_eq(found, STORE_OK);
    rule("HMGET t:store id", FAKE_ANSWER, "-ERR no\r\n", 0);
    read_key();
    cr_expect_eq(found, STORE_UNAVAILABLE);
    rule("HMGET t:store id", FAKE_ANSWER, hash_answer, 0);
    read_key();
    cr_expect_eq(found, STORE_OK);
    close_world();
}

/* Rule 3: the reply is from before the message. */
Test(suspensions, a_set_that_is_older_than_a_message_is_not_kept)
{
    open_ready();
    push(INVALIDATIONS, SAYS(ACCOUNT, "suspended", "1"));
    until_version(1);
    hold("1", NOBODY);
    read_key();
    cr_expect_eq(found, STORE_UNAVAILABLE, "a store that contradicts itself decides nothing");
    cr_expect_not(membership_knows_suspended(w.member));
    cr_expect(is_suspended(ACCOUNT), "what was heard is remembered");
    hold("1", SET_1);
    read_key();
    cr_expect_eq(found, STORE_OK);
    cr_expect(found_suspended);
    close_world();
}

Test(suspensions, a_set_that_makes_no_sense_decides_nothing)
{
    static const char *const CASES[] = {
        "+OK\r\n",
        "*1\r\n$7\r\nversion\r\n",
        "*2\r\n$7\r\nversion\r\n$1\r\nx\r\n",
        "*2\r\n$3\r\nfoo\r\n$1\r\n1\r\n",
        "-ERR no\r\n",
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        open_ready();
        hold("0", CASES[i]);
        read_key();
        cr_expect_eq(found, STORE_UNAVAILABLE, "case %zu", i);
        close_world();
    }
}

Test(suspensions, a_new_membership_begins_without_the_set)
{
    open_strict();
    hold("1", SET_1);
    read_key();
    cr_assert(membership_knows_suspended(w.member));
    push(INVALIDATIONS, "nonsense");
    until_ended(1);
    cr_expect_not(membership_knows_suspended(w.member));
    until(is_live, NULL);
    until(is_ready, NULL);
    read_key();
    cr_expect(membership_knows_suspended(w.member));
    cr_expect_eq(fake_redis_count(w.fake, "HGETALL"), 2);
    close_world();
}

/* Messages may have been missed in between. */
Test(suspensions, a_set_asked_for_before_the_membership_is_not_kept)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    open_strict();
    hold("1", SET_1);
    fake_redis_rule(
        w.fake,
        &(struct fake_rule){.command = "HGETALL t:suspended", .answer = SET_1, .delay_ms = PATIENCE_MS, .times = 1});
    is_found = false;
    key_store_find(w.store, digest, on_found, NULL);
    until_command("HGETALL t:suspended");
    push(INVALIDATIONS, "nonsense");
    until_ended(1);
    until(is_live, NULL); /* else each further read is of no membership either */
    cr_assert_not(is_found);
    fake_redis_hurry(w.fake);
    cr_assert(test_loop_until_set(&w.loop, &is_found, PATIENCE_MS));
    cr_expect_eq(found, STORE_OK);
    cr_expect(found_suspended);
    cr_expect_eq(fake_redis_count(w.fake, "HGETALL"), 2, "it is read again");
    close_world();
}

/* Nobody has told what changed between that read and the subscription. */
Test(suspensions, a_set_that_was_read_before_the_membership_is_not_kept)
{
    open_strict();
    rule("SUBSCRIBE", FAKE_SILENT, NULL, 0);
    push(INVALIDATIONS, "nonsense");
    until_ended(1);
    hold("0", NOBODY);
    read_key();
    cr_assert_eq(found, STORE_OK);
    cr_assert_not(is_live(NULL));
    hold("1", SET_1);
    rule("SUBSCRIBE", FAKE_ANSWER, "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n", 0);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(is_live, NULL);
    cr_expect_not(membership_knows_suspended(w.member));
    read_key();
    cr_expect(found_suspended);
    cr_expect(membership_knows_suspended(w.member));
    close_world();
}

#define OTHER_RUN "$71\r\nrun_id:0000000000000000000000000000000000000002\r\nredis_version:7.0.15\r\n\r\n"
#define SET_1_ELSEWHERE "*4\r\n$31\r\n" OTHER "\r\n$1\r\n9\r\n$7\r\nversion\r\n$1\r\n1\r\n"

/* It may have given the same number to another suspension. No membership begins meanwhile, which would forget the set.
 */
Test(suspensions, a_version_of_another_run_says_nothing)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    open_strict();
    rule("SUBSCRIBE", FAKE_SILENT, NULL, 0);
    push(INVALIDATIONS, "nonsense");
    until_ended(1);
    hold("1", SET_1);
    read_key();
    cr_assert(found_suspended);
    hold("1", SET_1_ELSEWHERE);
    rule("INFO server", FAKE_ANSWER, OTHER_RUN, 0);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "nothing is decided again");
        test_loop_for(&w.loop, 10);
        read_key();
    } while (found != STORE_OK);
    cr_expect_not(found_suspended);
    cr_expect(is_suspended(OTHER));
    close_world();
}

/* Waits for the n-th call that tells suspensions again. */
static const char *told(unsigned n)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char again[SCRIPT_BYTES];

    name_script(SCRIPT_account_suspend_again, again);
    store_look_again(w.store);
    while (fake_redis_count(w.fake, again) <= n) {
        test_loop_for(&w.loop, 10);
        cr_assert_gt(deadline_left_ms(deadline), 0, "nothing is told");
    }
    return fake_redis_command(w.fake, again, n);
}

/* Rule 13. Until it has been told, nothing is decided. */
Test(suspensions, what_redis_lost_is_told_again)
{
    open_ready();
    hold("1", SET_1);
    read_key();
    cr_assert(is_suspended(ACCOUNT));
    hold("0", NOBODY);
    cr_expect(strstr(told(0), " t: 1 " ACCOUNT), "%s", told(0));
    cr_expect_not(store_is_ready(w.store));
    hold("1", SET_1);
    until(is_ready, NULL);
    read_key();
    cr_expect(found_suspended);
    close_world();
}

enum { MANY = 150, FIELD_BYTES = 64 };

static unsigned accounts_in(const char *command)
{
    unsigned count = 0;

    while ((command = strstr(command, " acct_"))) {
        command++;
        count++;
    }
    return count;
}

/* Until the last call the store counts as lacking something, so that nobody trusts it in between. */
Test(suspensions, many_are_told_again_in_portions)
{
    static char set[MANY * FIELD_BYTES];
    int len = snprintf(set, sizeof set, "*%d\r\n$7\r\nversion\r\n$3\r\n150\r\n", 2 * MANY + 2);

    for (unsigned i = 0; i < MANY; i++)
        len +=
            snprintf(set + len, sizeof set - (size_t)len, "$31\r\nacct_01jd8x4v2m7q9c3t5r6w8y0%03u\r\n$1\r\n9\r\n", i);
    open_ready();
    hold("150", NOBODY);
    rule("HGETALL t:suspended", FAKE_ANSWER, set, 1);
    read_key();
    cr_assert_eq(suspensions_version(the_set()), MANY);
    hold("0", NOBODY);
    cr_expect(strstr(told(0), " t: 0 acct_") && strstr(told(1), " t: 150 acct_"), "%s", told(1));
    cr_expect_eq(accounts_in(told(0)), 100);
    cr_expect_eq(accounts_in(told(1)), MANY - 100);
    cr_expect_not(store_is_ready(w.store));
    close_world();
}
