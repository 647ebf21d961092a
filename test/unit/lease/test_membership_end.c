/* How memberships end: by losing the connection, by nonsense, by leaving, by closing. */
#include "base/machine.h"
#include "base/metrics.h"
#include "deadline.h"
#include "leak_guard.h"
#include "lease/membership_internal.h"
#include "lease_world.h"
#include "redis/link_internal.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(membership_end, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* The end of a membership */

static void expect_new_membership(const struct member_name *before, uint64_t epoch_before)
{
    struct member_name after;
    char subscribe[64], leave[LEAVE_BYTES];

    cr_assert_gt(membership_epoch(w.member), epoch_before);
    cr_assert_not(may_fill(epoch_before));
    until(is_live, NULL);
    own_name(&after);
    cr_assert_str_neq(after.text, before->text);
    cr_assert_not(may_fill(epoch_before));
    cr_assert_not(has_lease(NULL));
    snprintf(subscribe, sizeof subscribe, "SUBSCRIBE t:node:%s", after.text);
    until_command(subscribe);
    until(has_lease_by_echoes, NULL);
    cr_assert_str_eq(heartbeat_at(heartbeats() - 1).membership, after.text);
    /* Nobody has to wait for the previous membership. */
    snprintf(leave, sizeof leave, "%s" IN_OUR_STORE "%s ", w.leave, before->text);
    until_command(leave);
}

Test(membership_end, a_lost_subscription_ends_the_membership)
{
    struct member_name before;
    uint64_t epoch;

    open_with_lease(LEASE_MS);
    own_name(&before);
    epoch = membership_epoch(w.member);
    cr_assert(may_fill(epoch));
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(is_live(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    expect_new_membership(&before, epoch);
    cr_assert_eq(w.ended, 1);
    close_world();
}

static bool have_all_connected(void *times)
{
    static const char *const LINKS[] = {"reads", "scripts", "changes"};
    char command[64];

    for (size_t i = 0; i < sizeof LINKS / sizeof *LINKS; i++) {
        snprintf(command, sizeof command, "CLIENT SETNAME chatelaine-%s", LINKS[i]);
        if (fake_redis_count(w.fake, command) < *(unsigned *)times)
            return false;
    }
    return true;
}

static bool is_ready_and_live(void *arg)
{
    return store_is_ready(w.store) && is_live(arg);
}

/* The slot may come back before these links call again, with a registry that another primary has lost. */
Test(membership_end, all_connections_end_when_the_slot_leaves)
{
    open_fake();
    w.prefix = "t:{0}:";
    rule("HMGET", FAKE_ANSWER, FAKE_STORE(FAKE_STORE_ID), 0);
    rule("SSUBSCRIBE", FAKE_ANSWER, "*3\r\n$10\r\nssubscribe\r\n$1\r\nx\r\n:1\r\n", 0);
    join(LEASE_MS);
    until(is_ready_and_live, NULL);
    fake_redis_push(w.fake, "chatelaine-invalidations", "*3\r\n$12\r\nsunsubscribe\r\n$1\r\nx\r\n:0\r\n");
    until_ended(1);
    until(have_all_connected, &(unsigned){2});
    until(is_ready_and_live, NULL);
    close_world();
}

static bool no_lease_is_told(void *arg)
{
    (void)arg;
    return metric_values[METRIC_LEASE_HELD] == 0;
}

Test(membership_end, a_lease_that_is_lost_is_counted)
{
    open_with_lease(LEASE_MS);
    int64_t lost = metric_values[METRIC_LEASES_LOST];
    cr_assert_eq(metric_values[METRIC_LEASE_HELD], 1);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(no_lease_is_told, NULL);
    cr_expect_eq(metric_values[METRIC_LEASES_LOST], lost + 1);
    close_world();
}

Test(membership_end, an_echo_of_the_membership_before_grants_none)
{
    char payload[64];

    open_fake();
    join(LEASE_LONG_MS);
    until_heartbeats(1);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    time_out_soon(); /* closing waits for the heartbeat */
    rule(w.heartbeat, FAKE_SILENT, NULL, 0);
    until(is_live, NULL);
    until_heartbeats(2);
    snprintf(payload, sizeof payload, "lease %s", heartbeat_at(0).nonce);
    push_own(payload);
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL));
    cr_assert_str_eq(heartbeat_at(1).number, "1", "a new membership counts anew");
    close_world();
}

/* A late answer to the old membership's heartbeat must not count for the new one. */
Test(membership_end, a_late_answer_of_the_membership_before_changes_nothing)
{
    open_fake();
    join(LEASE_MS);
    fake_redis_rule(w.fake, &(struct fake_rule){
                                .command = w.heartbeat, .answer = OK_REPLY, .delay_ms = TIMEOUT_MS / 2, .times = 1});
    until_heartbeats(1);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    until(is_live, NULL);
    until(has_lease_by_echoes, NULL);
    cr_assert_str_neq(heartbeat_at(heartbeats() - 1).membership, heartbeat_at(0).membership);
    close_world();
}

Test(membership_end, a_message_that_makes_no_sense_ends_the_membership)
{
    static const char *const INVALIDATION_CASES[] = {
        "",
        " ",
        "nonsense",
        DIGEST,
        DIGEST " ",
        DIGEST ", " REVOKER " " BARRIER,
        "," DIGEST " " REVOKER " " BARRIER,
        DIGEST "," DIGEST "00 " REVOKER " " BARRIER,
        DIGEST "," DIGEST "," REVOKER " " REVOKER " " BARRIER,
        DIGEST " -",
        DIGEST " " REVOKER,
        DIGEST " " REVOKER " " BARRIER " ",
        DIGEST " " REVOKER " " BARRIER " more",
        DIGEST " " REVOKER " short",
        DIGEST " " REVOKER "00 " BARRIER,
        DIGEST " short " BARRIER,
        DIGEST "00 " REVOKER " " BARRIER,
        "0" DIGEST " " REVOKER " " BARRIER,
        "zz112233445566778899aabbccddeeff00112233445566778899aabbccddeeff " REVOKER " " BARRIER,
    };
    static const char *const OWN_CASES[] = {"",
                                            "lease",
                                            "lease 0123",
                                            "lease 0123456789abcdef more",
                                            "ack",
                                            "ack " REVOKER,
                                            "lease ",
                                            "ack " REVOKER " " BARRIER " more",
                                            "hello you",
                                            "hello",
                                            "ack2 " REVOKER " 1"};
    enum { INVALIDATIONS_COUNT = sizeof INVALIDATION_CASES / sizeof *INVALIDATION_CASES };

    for (size_t i = 0; i < INVALIDATIONS_COUNT + sizeof OWN_CASES / sizeof *OWN_CASES; i++) {
        const char *payload = i < INVALIDATIONS_COUNT ? INVALIDATION_CASES[i] : OWN_CASES[i - INVALIDATIONS_COUNT];
        unsigned publishes;

        open_with_lease(LEASE_MS);
        if (i < INVALIDATIONS_COUNT)
            push(INVALIDATIONS, payload);
        else
            push_own(payload);
        cr_assert(test_loop_until(&w.loop, has_ended, &(unsigned){1}, PATIENCE_MS), "went on after '%s'", payload);
        publishes = fake_redis_count(w.fake, "PUBLISH");
        cr_expect_eq(publishes, 0, "acknowledged '%s'", payload);
        until(is_live, NULL);
        close_world();
    }
}

Test(membership_end, a_message_on_another_channel_ends_the_membership)
{
    open_with_lease(LEASE_MS);
    push("t:other", DIGEST " " REVOKER " " BARRIER);
    until_ended(1);
    cr_assert_eq(w.invalidated, 0);
    close_world();
}

/* Redis answers heartbeats but does not echo them: the subscription is dead. If Redis does not answer heartbeats, that
 * says nothing about the subscription. */

Test(membership_end, heartbeats_that_are_answered_but_not_echoed_renew_the_connection)
{
    open_with_lease(100);
    until(has_subscribed_again, NULL);
    cr_assert_eq(w.ended, 1);
    until(has_lease_by_echoes, NULL);
    close_world();
}

Test(membership_end, heartbeats_that_are_not_answered_leave_the_connection)
{
    open_fake();
    w.timeout_ms = TIMEOUT_MS;
    join(100);
    rule(w.heartbeat, FAKE_SILENT, NULL, 0);
    until_heartbeats(1);
    unsigned before = subscriptions();
    test_loop_for(&w.loop, 2 * TIMEOUT_MS);
    cr_assert_eq(subscriptions(), before);
    cr_assert_eq(w.ended, 0);
    close_world();
}

/* Leaving */

static void until_left(const char *membership)
{
    char leave[LEAVE_BYTES];

    snprintf(leave, sizeof leave, "%s" IN_OUR_STORE "%s ", w.leave, membership);
    until_command(leave);
}

Test(membership_end, leaving_gives_the_lease_up_for_good)
{
    enum { SHORT_MS = 400 };
    struct member_name name;
    unsigned sent;

    open_with_lease(SHORT_MS);
    own_name(&name);
    membership_leave(w.member);
    cr_assert_eq(w.ended, 1, "inside the call");
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    sent = heartbeats();
    until_left(name.text);
    for (unsigned i = 0; i < 3 * SHORT_MS / 10; i++) {
        echo(heartbeats() - 1);
        test_loop_for(&w.loop, 10);
        cr_assert_not(has_lease(NULL));
    }
    cr_assert_leq(heartbeats(), sent + 1, "one was on its way perhaps");
    cr_assert_str_eq(heartbeat_at(heartbeats() - 1).membership, name.text);
    close_world();
}

Test(membership_end, an_echo_that_was_awaited_when_it_left_grants_none)
{
    open_fake();
    join(LEASE_MS);
    until_heartbeats(1);
    membership_leave(w.member);
    echo(0);
    test_loop_for(&w.loop, 100);
    cr_assert_not(has_lease(NULL));
    close_world();
}

Test(membership_end, one_that_left_still_acknowledges_and_begins_no_other)
{
    open_with_lease(100);
    membership_leave(w.member);
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    until_command("PUBLISH");
    until_command(w.leave);
    unsigned sent = heartbeats();
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(has_subscribed_again, NULL);
    until(is_live, NULL);
    test_loop_for(&w.loop, 200);
    cr_assert_eq(heartbeats(), sent);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    close_world();
}

/* The lost membership is still in the registry. Nobody must have to wait for it. */
Test(membership_end, leaving_takes_the_membership_before_along)
{
    struct member_name name;

    open_with_lease(LEASE_MS);
    own_name(&name);
    rule("SUBSCRIBE " INVALIDATIONS, FAKE_SILENT, NULL, 0);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(has_subscribed_again, NULL);
    membership_leave(w.member);
    until_left(name.text);
    close_world();
}

Test(membership_end, leaving_without_redis_ends_all_the_same)
{
    open_with_lease(LEASE_MS);
    fake_redis_go_away(w.fake);
    membership_leave(w.member);
    cr_assert_eq(w.ended, 1);
    cr_assert_not(has_lease(NULL));
    until_ended(2); /* the connection too */
    close_world();
}

Test(membership_end, leaving_before_there_is_a_membership)
{
    open_fake();
    join(LEASE_MS);
    membership_leave(w.member);
    until(is_live, NULL);
    test_loop_for(&w.loop, 100);
    cr_assert_eq(heartbeats(), 0);
    cr_assert_not(has_lease(NULL));
    close_world();
}

/* Closing at every moment of its life */

Test(membership_end, closes_before_the_loop_ran)
{
    open_fake();
    join(LEASE_MS);
    close_world();
    cr_assert_eq(w.ended, 0);
}

Test(membership_end, closes_while_it_subscribes)
{
    open_fake();
    rule("SUBSCRIBE", FAKE_SILENT, NULL, 0);
    join(LEASE_MS);
    until_command("SUBSCRIBE");
    close_world();
}

Test(membership_end, closes_while_a_heartbeat_is_under_way)
{
    open_fake();
    w.timeout_ms = TIMEOUT_MS; /* closing waits for it */
    join(LEASE_MS);
    rule(w.heartbeat, FAKE_SILENT, NULL, 0);
    until_heartbeats(1);
    close_world();
    cr_assert_eq(w.ended, 1);
}

Test(membership_end, closes_while_it_leaves)
{
    open_with_lease(LEASE_MS);
    time_out_soon();
    rule(w.leave, FAKE_SILENT, NULL, 0);
    membership_leave(w.member);
    close_world();
}

Test(membership_end, closes_while_redis_is_away)
{
    open_with_lease(LEASE_MS);
    fake_redis_go_away(w.fake);
    until_ended(1);
    close_world();
    cr_assert_eq(w.ended, 1);
}

Test(membership_end, closes_with_messages_on_their_way)
{
    open_with_lease(LEASE_MS);
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    push_own("ack " REVOKER " " BARRIER);
    close_world();
    cr_assert_eq(w.invalidated, 0);
}

static unsigned leases_told;

static bool is_echoed(void *arg)
{
    (void)arg;
    return w.member->is_echoed;
}

static void on_member_closed(void *arg)
{
    (void)arg;
    w.is_member_closed = true;
}

static void on_lease_told(void *arg)
{
    (void)arg;
    leases_told++;
}

/* The echo has come, the acknowledgement of the replica comes when it is closed. */
Test(membership_end, a_heartbeat_that_is_under_way_grants_none_to_one_that_is_closed)
{
    static const struct membership_events EVENTS = {.on_lease = on_lease_told};

    open_fake();
    w.min_replicas = 1;
    join(LEASE_LONG_MS);
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "WAIT", .answer = ":1\r\n", .delay_ms = PATIENCE_MS});
    until_command("WAIT");
    echo_all();
    until(is_echoed, NULL);
    membership_listen(w.member, &EVENTS, NULL);
    membership_close(w.member, on_member_closed, NULL);
    leases_told = 0;
    fake_redis_hurry(w.fake);
    cr_assert(test_loop_until_set(&w.loop, &w.is_member_closed, PATIENCE_MS));
    close_world();
    cr_assert_eq(leases_told, 0);
}

/* Forbidden moves */

Test(membership_end, a_second_subscription_ends_the_process, .signal = SIGABRT)
{
    open_with_lease(LEASE_LONG_MS);
    w.member->link->ready(w.member, true);
}

Test(membership_end, in_a_release_a_second_subscription_ends_the_membership)
{
    struct member_name before, after;

    machine_set_fatal(false);
    open_with_lease(LEASE_LONG_MS);
    own_name(&before);
    w.member->link->ready(w.member, true);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(is_live(NULL));
    cr_assert_geq(w.ended, 1, "the cache is emptied");
    until(has_lease_by_echoes, NULL);
    own_name(&after);
    cr_assert_str_neq(after.text, before.text);
    close_world();
}

Test(membership_end, closing_twice_ends_the_process, .signal = SIGABRT)
{
    open_with_lease(LEASE_LONG_MS);
    membership_close(w.member, NULL, NULL);
    membership_close(w.member, NULL, NULL);
}
