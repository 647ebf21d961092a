/* How sessions end: by their connection, by nonsense, by leaving, by closing. */
#include "deadline.h"
#include "leak_guard.h"
#include "session_world.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(node_session_end, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* The end of a session */

static void expect_new_session(const struct session_name *before, uint64_t epoch_before)
{
    struct session_name after;
    char subscribe[64], leave[LEAVE_BYTES];

    cr_assert_gt(node_session_epoch(w.session), epoch_before);
    cr_assert_not(may_fill(epoch_before));
    until(is_live, NULL);
    node_session_name(w.session, &after);
    cr_assert_str_neq(after.text, before->text);
    cr_assert_not(may_fill(epoch_before));
    cr_assert_not(has_lease(NULL));
    snprintf(subscribe, sizeof subscribe, "SUBSCRIBE t:node:%s", after.text);
    until_command(subscribe);
    until(has_lease_by_echoes, NULL);
    cr_assert_str_eq(heartbeat_at(heartbeats() - 1).session, after.text);
    /* Nobody has to wait for the one before. */
    snprintf(leave, sizeof leave, "%s" IN_OUR_STORE "%s ", w.leave, before->text);
    until_command(leave);
}

Test(node_session_end, a_lost_subscription_ends_the_session)
{
    struct session_name before;
    uint64_t epoch;

    open_with_lease(LEASE_MS);
    node_session_name(w.session, &before);
    epoch = node_session_epoch(w.session);
    cr_assert(may_fill(epoch));
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(is_live(NULL));
    cr_assert_not(may_fill(node_session_epoch(w.session)));
    expect_new_session(&before, epoch);
    cr_assert_eq(w.ended, 1);
    close_world();
}

Test(node_session_end, an_echo_of_the_session_before_grants_none)
{
    char payload[64];

    open_fake();
    open_session(LEASE_MS);
    until_heartbeats(1);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    rule(w.heartbeat, FAKE_SILENT, NULL, 0);
    until(is_live, NULL);
    until_heartbeats(2);
    snprintf(payload, sizeof payload, "lease %s", heartbeat_at(0).nonce);
    push_own(payload);
    test_loop_for(&w.loop, 50);
    cr_assert_not(has_lease(NULL));
    cr_assert_str_eq(heartbeat_at(1).number, "1", "a new session counts anew");
    close_world();
}

/* A heartbeat of the old session that is answered late must not be taken for the new one's. */
Test(node_session_end, a_late_answer_of_the_session_before_changes_nothing)
{
    open_fake();
    open_session(LEASE_MS);
    fake_redis_rule(w.fake, &(struct fake_rule){
                                .command = w.heartbeat, .answer = OK_REPLY, .delay_ms = TIMEOUT_MS / 2, .times = 1});
    until_heartbeats(1);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until_ended(1);
    until(is_live, NULL);
    until(has_lease_by_echoes, NULL);
    cr_assert_str_neq(heartbeat_at(heartbeats() - 1).session, heartbeat_at(0).session);
    close_world();
}

Test(node_session_end, a_message_that_makes_no_sense_ends_the_session)
{
    static const char *const INVALIDATION_CASES[] = {
        "",
        " ",
        "nonsense",
        DIGEST,
        DIGEST " ",
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

Test(node_session_end, a_message_on_another_channel_ends_the_session)
{
    open_with_lease(LEASE_MS);
    push("t:other", DIGEST " " REVOKER " " BARRIER);
    until_ended(1);
    cr_assert_eq(w.invalidated, 0);
    close_world();
}

/* Two ways in which the subscription is dead though Redis answers: the one is seen by its missing echoes; the other,
 * that Redis does not answer heartbeats, says nothing of the subscription. */

Test(node_session_end, heartbeats_that_are_answered_but_not_echoed_renew_the_connection)
{
    open_with_lease(100);
    until(has_subscribed_twice, NULL);
    cr_assert_eq(w.ended, 1);
    until(has_lease_by_echoes, NULL);
    close_world();
}

Test(node_session_end, heartbeats_that_are_not_answered_leave_the_connection)
{
    open_fake();
    open_session(100);
    rule(w.heartbeat, FAKE_SILENT, NULL, 1);
    until_heartbeats(1);
    test_loop_for(&w.loop, TIMEOUT_MS);
    cr_assert_eq(fake_redis_count(w.fake, "SUBSCRIBE " INVALIDATIONS), 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

/* Leaving */

static void until_left(const char *session)
{
    char leave[LEAVE_BYTES];

    snprintf(leave, sizeof leave, "%s" IN_OUR_STORE "%s ", w.leave, session);
    until_command(leave);
}

Test(node_session_end, leaving_gives_the_lease_up_for_good)
{
    enum { SHORT_MS = 400 };
    struct session_name name;
    unsigned sent;

    open_with_lease(SHORT_MS);
    node_session_name(w.session, &name);
    node_session_leave(w.session);
    cr_assert_eq(w.ended, 1, "inside the call");
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(node_session_epoch(w.session)));
    sent = heartbeats();
    until_left(name.text);
    for (unsigned i = 0; i < 3 * SHORT_MS / 10; i++) {
        echo(heartbeats() - 1);
        test_loop_for(&w.loop, 10);
        cr_assert_not(has_lease(NULL));
    }
    cr_assert_leq(heartbeats(), sent + 1, "one was on its way perhaps");
    cr_assert_str_eq(heartbeat_at(heartbeats() - 1).session, name.text);
    close_world();
}

Test(node_session_end, an_echo_that_was_awaited_when_it_left_grants_none)
{
    open_fake();
    open_session(LEASE_MS);
    until_heartbeats(1);
    node_session_leave(w.session);
    echo(0);
    test_loop_for(&w.loop, 100);
    cr_assert_not(has_lease(NULL));
    close_world();
}

Test(node_session_end, one_that_left_still_acknowledges_and_begins_no_other)
{
    open_with_lease(100);
    node_session_leave(w.session);
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    until_command("PUBLISH");
    until_command(w.leave);
    unsigned sent = heartbeats();
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(has_subscribed_twice, NULL);
    until(is_live, NULL);
    test_loop_for(&w.loop, 200);
    cr_assert_eq(heartbeats(), sent);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(node_session_epoch(w.session)));
    close_world();
}

/* The entry of the session that was lost is still in the registry: nobody must have to wait for it. */
Test(node_session_end, leaving_takes_the_session_before_along)
{
    struct session_name name;

    open_with_lease(LEASE_MS);
    node_session_name(w.session, &name);
    rule("SUBSCRIBE " INVALIDATIONS, FAKE_SILENT, NULL, 0);
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
    until(has_subscribed_twice, NULL);
    node_session_leave(w.session);
    until_left(name.text);
    close_world();
}

Test(node_session_end, leaving_without_redis_ends_all_the_same)
{
    open_with_lease(LEASE_MS);
    fake_redis_go_away(w.fake);
    node_session_leave(w.session);
    cr_assert_eq(w.ended, 1);
    cr_assert_not(has_lease(NULL));
    until_ended(2); /* the connection too */
    close_world();
}

Test(node_session_end, leaving_before_there_is_a_session)
{
    open_fake();
    open_session(LEASE_MS);
    node_session_leave(w.session);
    until(is_live, NULL);
    test_loop_for(&w.loop, 100);
    cr_assert_eq(heartbeats(), 0);
    cr_assert_not(has_lease(NULL));
    close_world();
}

/* Closing at every moment of its life */

Test(node_session_end, closes_before_the_loop_ran)
{
    open_fake();
    open_session(LEASE_MS);
    close_world();
    cr_assert_eq(w.ended, 0);
}

Test(node_session_end, closes_while_it_subscribes)
{
    open_fake();
    rule("SUBSCRIBE", FAKE_SILENT, NULL, 0);
    open_session(LEASE_MS);
    until_command("SUBSCRIBE");
    close_world();
}

Test(node_session_end, closes_while_a_heartbeat_is_under_way)
{
    open_fake();
    open_session(LEASE_MS);
    rule(w.heartbeat, FAKE_SILENT, NULL, 0);
    until_heartbeats(1);
    close_world();
    cr_assert_eq(w.ended, 1);
}

Test(node_session_end, closes_while_it_leaves)
{
    open_with_lease(LEASE_MS);
    rule(w.leave, FAKE_SILENT, NULL, 0);
    node_session_leave(w.session);
    close_world();
}

Test(node_session_end, closes_while_redis_is_away)
{
    open_with_lease(LEASE_MS);
    fake_redis_go_away(w.fake);
    until_ended(1);
    close_world();
    cr_assert_eq(w.ended, 1);
}

Test(node_session_end, closes_with_messages_on_their_way)
{
    open_with_lease(LEASE_MS);
    push(INVALIDATIONS, DIGEST " " REVOKER " " BARRIER);
    push_own("ack " REVOKER " " BARRIER);
    close_world();
    cr_assert_eq(w.invalidated, 0);
}
