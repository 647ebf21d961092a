/* What grants a lease and what does not, and how a node hears of revocations. */
#include "base/clock.h"
#include "base/encode.h"
#include "deadline.h"
#include "leak_guard.h"
#include "lease/membership_internal.h"
#include "lease_world.h"
#include "engine/script.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(membership, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* Leases */

Test(membership, a_lease_comes_with_the_echo_and_not_before)
{
    open_fake();
    join(LEASE_LONG_MS);
    cr_assert_not(is_live(NULL));
    until_heartbeats(1);
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL), "answered is not echoed");
    until(has_lease_by_echoes, NULL);
    struct heartbeat first = heartbeat_at(0);
    /* The first may fail on a slow machine: commands use another connection, which may take longer. */
    cr_assert_gt(strtoull(first.number, NULL, 10), 0);
    cr_assert_str_eq(first.lease, "4000");
    cr_assert_eq(strlen(first.nonce), 16);
    cr_assert_eq(w.ended, 0);
    close_world();
    cr_assert_eq(w.ended, 1, "closing forgets too");
}

Test(membership, a_lease_is_counted_from_before_the_heartbeat_was_sent)
{
    uint64_t end_ns;

    open_fake();
    join(LEASE_LONG_MS);
    until_heartbeats(1);
    end_ns = clock_boot_ns() + LEASE_LONG_MS * NS_PER_MS; /* no earlier than the lease ends */
    test_loop_for(&w.loop, 100);
    echo(0);
    until(has_lease, NULL);
    cr_assert_leq(membership_lease_until_ns(w.member), end_ns);
    close_world();
}

static bool may_decide(void *arg)
{
    (void)arg;
    return membership_may_decide(w.member);
}

static void on_script(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)reply;
    *(int *)arg = (int)result;
}

static bool is_answered(void *result)
{
    return *(int *)result >= 0;
}

static enum store_result call_script(void)
{
    int result = -1;

    store_call_script(w.store, SCRIPT_node_list, SCRIPT_READS, 0, NULL, on_script, &result);
    until(is_answered, &result);
    return (enum store_result)result;
}

/* Rule 10. Leaving ends the use of the cache, not the knowledge about the master. */
Test(membership, behind_sentinels_reads_decide_under_a_lease_alone)
{
    enum { LONG_MS = 3000 };

    open_fake();
    open_sentinel();
    join(LONG_MS);
    until_heartbeats(1);
    test_loop_for(&w.loop, 50);
    cr_assert_not(may_decide(NULL));
    cr_assert_not(store_is_ready(w.store));
    cr_assert_str_eq(store_trouble(w.store), "The node has no lease from the master yet.");
    cr_assert_eq(w.store_told, 0);
    cr_assert_eq(call_script(), STORE_UNKNOWN);
    until(has_lease_by_echoes, NULL);
    cr_assert(may_decide(NULL) && store_is_ready(w.store));
    cr_assert_eq(w.store_told, 1);
    cr_assert_eq(call_script(), STORE_OK);
    membership_leave(w.member);
    cr_assert(!has_lease(NULL) && may_decide(NULL));
    uint64_t end_ns = clock_boot_ns() + LONG_MS * NS_PER_MS;
    while (clock_boot_ns() < end_ns)
        test_loop_for(&w.loop, 1);
    cr_assert_not(may_decide(NULL), "no heartbeat since");
    close_world();
}

Test(membership, behind_sentinels_nothing_decides_once_the_membership_is_over)
{
    open_fake();
    open_sentinel();
    join(LEASE_LONG_MS);
    until(has_lease_by_echoes, NULL);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    cr_assert_not(may_decide(NULL));
    close_world();
}

Test(membership, one_redis_decides_without_a_lease)
{
    open_fake();
    join(LEASE_MS);
    until_heartbeats(1);
    cr_assert(!has_lease(NULL) && may_decide(NULL));
    cr_assert_eq(call_script(), STORE_OK);
    close_world();
}

/* The time that the call returns is the one it judged by. */
Test(membership, the_clock_is_read_at_the_question)
{
    uint64_t before_ns, now_ns, lease_end_ns;

    open_with_lease(300);
    lease_end_ns = clock_boot_ns() + 300 * NS_PER_MS;
    /* The loop does not run, so only the clock can end the lease. */
    do {
        before_ns = clock_boot_ns();
        bool holds = membership_has_lease(w.member, &now_ns);
        cr_assert(now_ns >= before_ns && now_ns <= clock_boot_ns());
        cr_assert(!holds || now_ns < lease_end_ns);
    } while (before_ns < lease_end_ns);
    cr_assert_not(has_lease(NULL));
    close_world();
}

Test(membership, an_echo_that_comes_after_its_lease_grants_none)
{
    enum { SHORT_MS = 200 };

    open_fake();
    join(SHORT_MS);
    until_heartbeats(1);
    test_loop_for(&w.loop, SHORT_MS + 20);
    echo(0);
    for (unsigned i = 0; i < 10; i++) {
        test_loop_for(&w.loop, 5);
        cr_assert_not(has_lease(NULL));
    }
    close_world();
}

Test(membership, the_echo_of_a_heartbeat_that_was_given_up_grants_none)
{
    open_fake();
    join(LEASE_MS);
    until_heartbeats(2); /* the first was not echoed for as long as its lease would have lasted */
    echo(0);
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL));
    /* On a slow machine, one between the two may get lost. */
    cr_assert_gt(strtoull(heartbeat_at(1).number, NULL, 10), strtoull(heartbeat_at(0).number, NULL, 10));
    cr_assert_str_neq(heartbeat_at(1).nonce, heartbeat_at(0).nonce);
    until(has_lease_by_echoes, NULL);
    close_world();
}

Test(membership, a_wrong_nonce_grants_none)
{
    open_fake();
    join(LEASE_LONG_MS);
    until_heartbeats(1);
    push_own("lease 0123456789abcdef");
    push_own("lease 0000000000000000");
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL));
    cr_assert_eq(subscriptions(), 1, "it is no reason to end the membership");
    until(has_lease_by_echoes, NULL);
    close_world();
}

static bool has_lease_or_heartbeats(void *count)
{
    return has_lease(NULL) || has_heartbeats(count);
}

Test(membership, one_echo_grants_one_lease)
{
    unsigned sent;

    open_fake();
    join(300);
    until_heartbeats(1);
    do { /* an echo that comes too late grants none */
        sent = heartbeats();
        echo(sent - 1);
        until(has_lease_or_heartbeats, &(unsigned){sent + 1});
    } while (!has_lease(NULL));
    uint64_t end_ns = membership_lease_until_ns(w.member);
    while (clock_boot_ns() < end_ns) {
        echo(sent - 1);
        test_loop_for(&w.loop, 20);
    }
    cr_assert_not(has_lease(NULL), "the same echo again prolongs nothing");
    close_world();
}

static bool has_heartbeats_by_echoes(void *count)
{
    echo_all();
    return has_heartbeats(count);
}

Test(membership, a_lease_is_kept_up_by_heartbeats)
{
    uint64_t first_ns;

    open_with_lease(LEASE_MS);
    first_ns = membership_lease_until_ns(w.member);
    cr_assert_leq(uv_timer_get_due_in(&w.member->ticker), LEASE_MS / 4);
    until(has_heartbeats_by_echoes, &(unsigned){heartbeats() + 6});
    until(has_lease_by_echoes, NULL);
    cr_assert_geq(membership_lease_until_ns(w.member), first_ns + LEASE_MS * NS_PER_MS);
    cr_assert_eq(w.ended, 0);
    close_world();
}

Test(membership, there_is_no_heartbeat_without_a_subscription)
{
    open_fake();
    rule("SUBSCRIBE " INVALIDATIONS, FAKE_SILENT, NULL, 0);
    join(200);
    until_command("SUBSCRIBE " INVALIDATIONS);
    test_loop_for(&w.loop, 150);
    cr_assert_eq(heartbeats(), 0);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(is_live(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    close_world();
    cr_assert_eq(w.ended, 0, "there was none");
}

Test(membership, there_is_no_lease_from_a_redis_that_is_unfit)
{
    open_fake();
    rule("INFO", FAKE_ANSWER, "$70\r\nredis_version:6.2.7\r\n" FAKE_RUN_ID "\r\n", 0);
    join(200);
    until(is_live, NULL);
    test_loop_for(&w.loop, 300);
    cr_assert_eq(heartbeats(), 0);
    cr_assert_not(has_lease(NULL));
    close_world();
}

Test(membership, a_heartbeat_that_redis_refuses_grants_none)
{
    open_fake();
    join(200);
    rule(w.heartbeat, FAKE_ANSWER, "-ERR no\r\n", 0);
    until_heartbeats(3);
    echo(heartbeats() - 1);
    test_loop_for(&w.loop, 10);
    cr_assert_not(has_lease(NULL));
    close_world();
}

static bool is_refused_a_heartbeat(void *arg)
{
    (void)arg;
    return w.member->number > 0 && !w.member->is_under_way;
}

/* With a long lease, the next heartbeat is seconds away. */
Test(membership, a_heartbeat_is_sent_as_soon_as_redis_was_examined)
{
    open_fake();
    fake_redis_rule(
        w.fake, &(struct fake_rule){
                    .command = "TIME", .answer = "*2\r\n$1\r\n1\r\n$1\r\n0\r\n", .delay_ms = PATIENCE_MS, .times = 1});
    join(LEASE_LONG_MS);
    until(is_refused_a_heartbeat, NULL);
    cr_assert_eq(heartbeats(), 0, "not by a Redis that nobody knows yet");
    uv_timer_stop(&w.member->ticker);
    fake_redis_hurry(w.fake);
    until(has_lease_by_echoes, NULL);
    close_world();
}

/* Where replicas must have a heartbeat (rule 10) */

static void open_with_replicas(int64_t min_replicas, uint32_t lease_ms)
{
    open_fake();
    w.min_replicas = min_replicas;
    join(lease_ms);
}

static void wait_rule(enum fake_action action, const char *answer, unsigned delay_ms)
{
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = "WAIT", .action = action, .answer = answer, .delay_ms = delay_ms});
}

static unsigned waits(void)
{
    return fake_redis_count(w.fake, "WAIT");
}

/* Echoes every heartbeat; none may grant a lease. */
static void expect_no_lease_for(unsigned ms)
{
    uint64_t until_ns = clock_boot_ns() + ms * NS_PER_MS;

    while (clock_boot_ns() < until_ns) {
        test_loop_for(&w.loop, 5);
        echo_all();
        cr_assert_not(has_lease(NULL));
    }
}

Test(membership, one_redis_is_not_asked_for_replicas)
{
    open_with_lease(LEASE_MS);
    cr_assert_eq(waits(), 0);
    close_world();
}

Test(membership, a_heartbeat_is_followed_by_wait)
{
    open_fake();
    w.timeout_ms = 2 * LEASE_MS;
    w.min_replicas = 2;
    join(LEASE_LONG_MS);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(waits(), heartbeats(), "and nothing else is, so far");
    cr_assert_str_eq(fake_redis_command(w.fake, "WAIT", 0), "WAIT 2 1500", "within three quarters of the timeout");
    membership_leave(w.member);
    until_command(w.leave);
    cr_assert_eq(waits(), heartbeats(), "leaving promises nothing");
    close_world();
}

/* A longer wait could grant nothing, and changes wait behind it. */
Test(membership, wait_ends_with_the_lease)
{
    open_with_replicas(1, 40);
    until_command("WAIT");
    cr_assert_str_eq(fake_redis_command(w.fake, "WAIT", 0), "WAIT 1 40");
    close_world();
}

Test(membership, too_few_replicas_grant_none)
{
    open_with_replicas(2, 200);
    wait_rule(FAKE_ANSWER, ":1\r\n", 0);
    until_heartbeats(1);
    expect_no_lease_for(500);
    until_heartbeats(2); /* it is tried again */
    cr_assert_str_eq(membership_trouble(w.member),
                     "Too few replicas acknowledge heartbeats: bring them back, or lower --min-replicas.");
    cr_assert(store_is_ready(w.store), "changes may find enough of them: %s", store_trouble(w.store));
    cr_assert_eq(w.ended, 0);
    wait_rule(FAKE_ANSWER, ":2\r\n", 0);
    until(has_lease_by_echoes, NULL);
    close_world();
}

static bool is_ready(void *arg)
{
    (void)arg;
    echo_all();
    return store_is_ready(w.store);
}

Test(membership, behind_sentinels_readiness_tells_of_too_few_replicas)
{
    open_fake();
    open_sentinel();
    w.min_replicas = 2;
    join(200);
    wait_rule(FAKE_ANSWER, ":0\r\n", 0);
    until_heartbeats(2);
    cr_assert_not(store_is_ready(w.store));
    cr_assert_str_eq(store_trouble(w.store),
                     "Too few replicas acknowledge heartbeats: bring them back, or lower --min-replicas.");
    wait_rule(FAKE_ANSWER, ":3\r\n", 0);
    until(is_ready, NULL);
    close_world();
}

Test(membership, no_answer_to_wait_grants_none)
{
    open_fake();
    w.timeout_ms = TIMEOUT_MS;
    w.min_replicas = 1;
    join(2 * TIMEOUT_MS);
    wait_rule(FAKE_SILENT, NULL, 0);
    until_heartbeats(1);
    expect_no_lease_for(TIMEOUT_MS + TIMEOUT_MS / 2);
    close_world();
}

Test(membership, an_error_of_wait_grants_none)
{
    open_with_replicas(1, 200);
    wait_rule(FAKE_ANSWER, "-ERR no\r\n", 0);
    until_heartbeats(1);
    expect_no_lease_for(300);
    close_world();
}

/* The echo comes first, and only one heartbeat is under way, however slow the replicas are. */
Test(membership, an_echo_waits_for_replicas)
{
    uint64_t end_ns;

    open_with_replicas(1, LEASE_LONG_MS);
    wait_rule(FAKE_ANSWER, ":1\r\n", PATIENCE_MS);
    until_command("WAIT");
    end_ns = clock_boot_ns() + LEASE_LONG_MS * NS_PER_MS; /* no earlier than the lease ends */
    echo_all();
    test_loop_for(&w.loop, 350);
    cr_assert_not(has_lease(NULL));
    fake_redis_hurry(w.fake);
    until(has_lease, NULL);
    cr_assert_eq(heartbeats(), 1);
    cr_assert_leq(membership_lease_until_ns(w.member), end_ns);
    close_world();
}

Test(membership, replicas_wait_for_the_echo)
{
    open_with_replicas(1, LEASE_LONG_MS);
    until_command("WAIT");
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL));
    cr_assert_eq(heartbeats(), 1);
    echo(0);
    until(has_lease, NULL);
    cr_assert_eq(heartbeats(), 1);
    close_world();
}

Test(membership, replicas_that_are_slower_than_the_lease_grant_none)
{
    open_with_replicas(1, 100);
    wait_rule(FAKE_ANSWER, ":1\r\n", 130);
    until_heartbeats(1);
    expect_no_lease_for(600);
    cr_assert_leq(heartbeats(), 6, "one at a time");
    cr_assert_eq(w.ended, 0, "the subscription is not blamed for it");
    close_world();
}

static void expect_numbers_to_rise(long long by)
{
    unsigned first;

    rule(w.heartbeat, FAKE_ANSWER, "*4\r\n$2\r\nok\r\n:0\r\n:0\r\n$3\r\n5-0\r\n", 0);
    until(has_heartbeats_by_echoes, &(unsigned){3});
    first = heartbeats() - 1;
    until(has_heartbeats_by_echoes, &(unsigned){first + 3});
    cr_assert_eq(strtoll(heartbeat_at(first + 2).number, NULL, 10), strtoll(heartbeat_at(first).number, NULL, 10) + by);
    close_world();
}

/* The entry in the registry stays the same, unless the heartbeat must be a write. */
Test(membership, one_redis_need_not_write_at_each_heartbeat)
{
    open_fake();
    join(LEASE_MS);
    expect_numbers_to_rise(0);
}

Test(membership, what_replicas_acknowledge_is_a_write)
{
    open_fake();
    w.min_replicas = 1;
    join(LEASE_MS);
    expect_numbers_to_rise(2);
}

Test(membership, behind_sentinels_each_heartbeat_is_a_write)
{
    open_fake();
    open_sentinel();
    join(LEASE_MS);
    expect_numbers_to_rise(2);
}

Test(membership, the_shortest_lease_has_one_heartbeat_under_way)
{
    open_with_replicas(1, 5);
    wait_rule(FAKE_ANSWER, ":1\r\n", 50);
    until_heartbeats(3);
    test_loop_for(&w.loop, 300);
    cr_assert_leq(heartbeats(), waits() + 1);
    cr_assert_leq(heartbeats(), 12, "one at a time");
    cr_assert_str_eq(fake_redis_command(w.fake, "WAIT", 0), "WAIT 1 5");
    close_world();
}

/* When a membership ends, its heartbeat can no longer grant anything. */
Test(membership, replicas_of_an_earlier_memberships_heartbeat_grant_none)
{
    unsigned twice = 2;

    open_with_replicas(1, LEASE_MS);
    wait_rule(FAKE_ANSWER, ":1\r\n", 300);
    until_heartbeats(1);
    echo_all();
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    until(has_heartbeats, &twice);
    cr_assert_not(has_lease(NULL));
    until(has_lease_by_echoes, NULL);
    close_world();
}

/* Invalidations */

Test(membership, a_revocation_is_told_and_then_acknowledged)
{
    uint8_t expected[KEY_DIGEST_BYTES];
    struct member_name name;
    char publish[160];
    uint64_t epoch;

    open_with_lease(LEASE_LONG_MS);
    cr_assert(decode_hex(TEXT(DIGEST), expected, sizeof expected));
    own_name(&name);
    epoch = membership_epoch(w.member);
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    until_command("PUBLISH");
    cr_assert_eq(w.invalidated, 1);
    cr_assert_arr_eq(w.digest, expected, sizeof expected);
    snprintf(publish, sizeof publish, "PUBLISH t:node:" REVOKER " ack %s " BARRIER, name.text);
    cr_assert_str_eq(fake_redis_command(w.fake, "PUBLISH", 0), publish);
    cr_assert_not(may_fill(epoch), "a read that was sent before may bring the key back");
    cr_assert_gt(w.epoch_when_told, epoch, "the callback sees the new epoch");
    cr_assert(may_fill(membership_epoch(w.member)));
    cr_assert(has_lease(NULL), "the lease goes on");
    cr_assert_eq(w.ended, 0);
    close_world();
}

static bool were_invalidated(void *count)
{
    return w.invalidated >= *(unsigned *)count;
}

Test(membership, a_revoker_without_a_membership_gets_no_acknowledgement)
{
    uint64_t epoch;

    open_with_lease(LEASE_LONG_MS);
    epoch = membership_epoch(w.member);
    push(INVALIDATIONS, DIGEST " - " BARRIER);
    until(were_invalidated, &(unsigned){1});
    push(INVALIDATIONS, DIGEST " - -");
    until(were_invalidated, &(unsigned){2});
    test_loop_for(&w.loop, 50);
    cr_assert_eq(w.invalidated, 2);
    cr_assert_eq(fake_redis_count(w.fake, "PUBLISH"), 0);
    cr_assert_not(may_fill(epoch));
    cr_assert_eq(w.ended, 0);
    close_world();
}

#define OTHER_DIGEST "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static unsigned dropped;

static void on_dropped(void *arg, const uint8_t digest[KEY_DIGEST_BYTES])
{
    (void)arg, (void)digest;
    dropped++;
    cr_assert_eq(fake_redis_count(w.fake, "PUBLISH"), 0, "acknowledged before all were dropped");
}

static void on_ended_too(void *arg)
{
    (void)arg;
    w.ended++;
}

/* Keys that were revoked together come in one message. */
Test(membership, all_keys_of_a_message_are_dropped_and_then_acknowledged)
{
    static const struct membership_events EVENTS = {.on_invalidated = on_dropped, .on_ended = on_ended_too};

    open_with_lease(LEASE_LONG_MS);
    membership_listen(w.member, &EVENTS, NULL);
    push(INVALIDATIONS, DIGEST "," OTHER_DIGEST "," DIGEST " " REVOKER " " BARRIER);
    until_command("PUBLISH");
    cr_assert_eq(dropped, 3);
    test_loop_for(&w.loop, 50);
    cr_assert_eq(fake_redis_count(w.fake, "PUBLISH"), 1, "once for all of them");
    cr_assert_eq(w.ended, 0);
    close_world();
}

Test(membership, acknowledgements_of_nothing_are_ignored)
{
    open_with_lease(LEASE_LONG_MS);
    push_own("ack " REVOKER " " BARRIER);
    push_own("ack x y");
    test_loop_for(&w.loop, 50);
    cr_assert_eq(w.ended, 0);
    cr_assert(is_live(NULL));
    close_world();
}

Test(membership, strict_mode_acknowledges_without_ever_having_a_lease)
{
    open_fake();
    join(0);
    until(is_live, NULL);
    until(is_ready, NULL);
    cr_assert_not(membership_may_cache(w.member));
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    until_command("PUBLISH");
    test_loop_for(&w.loop, 100);
    cr_assert_eq(heartbeats(), 0);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    close_world();
}

Test(membership, only_a_membership_that_lives_may_fill)
{
    uint64_t epoch;

    open_fake();
    join(LEASE_MS);
    cr_assert(membership_may_cache(w.member));
    epoch = membership_epoch(w.member);
    cr_assert_not(may_fill(epoch));
    until(is_live, NULL);
    cr_assert_not(may_fill(epoch), "it began since");
    cr_assert(may_fill(membership_epoch(w.member)), "whether or not it has a lease");
    close_world();
}
