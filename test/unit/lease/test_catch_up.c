/* A node that reconnects keeps its cache, and drops what was revoked meanwhile. */
#include "base/machine.h"
#include "deadline.h"
#include "leak_guard.h"
#include "lease/membership_internal.h"
#include "lease_world.h"
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(catch_up, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define OTHER_DIGEST "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
/* The time of the store is not known, and nothing is due. */
#define LAST(id, length) "*4\r\n$2\r\nok\r\n:0\r\n:0\r\n$" #length "\r\n" id "\r\n"
#define LIST(count) "*" #count "\r\n"
#define ENTRY(id, kind, length, name) \
    "*2\r\n$3\r\n" id "\r\n*4\r\n$" kind "\r\n$" #length "\r\n" name "\r\n$2\r\nid\r\n$5\r\nkey_0\r\n"
#define KEY_ENTRY(id, digest) ENTRY(id, "3\r\nkey", 64, digest)
#define READ "XRANGE t:inv_log "
#define OTHER_RUN "$133\r\nredis_version:7.0.15\r\nrun_id:0123456789012345678901234567890123456789\r\n"
/* As in open_fake(), of another process. */
#define OTHER_PROCESS OTHER_RUN "slave0:ip=x,state=online,offset=1\r\nslave1:ip=y,state=online,\r\n\r\n"

static void open_unready(const char *last)
{
    join(LEASE_MS);
    rule(w.heartbeat, FAKE_ANSWER, last, 0);
}

static bool knows_an_entry(void *arg)
{
    (void)arg;
    return heard_has_known(w.member->heard);
}

/* With a lease, and the known entry that heartbeats name. */
static void open_with_last(const char *last)
{
    open_fake();
    rule("XRANGE", FAKE_ANSWER, LIST(1) KEY_ENTRY("5-0", OTHER_DIGEST), 0);
    open_unready(last);
    until_first_lease();
    until(knows_an_entry, NULL); /* the reply may come behind the echo */
}

static void hang_up(void)
{
    fake_redis_hang_up(w.fake, "chatelaine-invalidations");
}

static bool is_down(void *arg)
{
    return !is_live(arg);
}

static void reconnect(void)
{
    hang_up();
    until(is_down, NULL);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    until(has_lease_by_echoes, NULL);
}

static unsigned reads(void)
{
    return fake_redis_count(w.fake, READ);
}

Test(catch_up, drops_what_was_revoked_meanwhile_and_keeps_the_rest)
{
    open_with_last(LAST("5-0", 3));
    uint64_t epoch = membership_epoch(w.member);
    rule("XRANGE", FAKE_ANSWER,
         LIST(3) KEY_ENTRY("5-0", OTHER_DIGEST) KEY_ENTRY("6-0", DIGEST)
             ENTRY("7-0", "7\r\naccount", 30, "acct_0123456789012345678901234"),
         0);
    reconnect();
    cr_assert_eq(reads(), 1);
    cr_assert_str_eq(fake_redis_command(w.fake, READ, 0), READ "5-0 + COUNT 10001");
    cr_assert_eq(w.invalidated, 1);
    cr_assert_eq(w.digest[0], 0x00);
    cr_assert_eq(w.digest[1], 0x11);
    cr_assert_eq(w.ended, 0);
    cr_assert_not(may_fill(epoch), "a read from before");
    close_world();
}

Test(catch_up, an_empty_stream_is_read_as_well)
{
    open_with_last(LAST("0-0", 3));
    rule("XRANGE", FAKE_ANSWER, LIST(1) KEY_ENTRY("6-0", DIGEST), 0);
    reconnect();
    cr_assert_eq(w.invalidated, 1);
    cr_assert_eq(w.ended, 0);
    rule("XRANGE", FAKE_ANSWER, LIST(0), 0);
    reconnect();
    cr_assert_eq(w.invalidated, 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

static bool is_reading(void *count)
{
    return reads() >= *(unsigned *)count;
}

static bool is_invalidated(void *arg)
{
    (void)arg;
    return w.invalidated == 1;
}

Test(catch_up, no_membership_begins_before_it_is_done)
{
    unsigned before;

    open_with_last(LAST("5-0", 3));
    uint64_t epoch = membership_epoch(w.member);
    before = heartbeats();
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "XRANGE",
                                                .answer = LIST(1) KEY_ENTRY("5-0", OTHER_DIGEST),
                                                .delay_ms = PATIENCE_MS});
    hang_up();
    until(is_reading, &(unsigned){1});
    before = heartbeats();
    cr_assert_gt(fake_redis_count(w.fake, "SUBSCRIBE " INVALIDATIONS), 1, "only behind the subscription");
    /* What is revoked meanwhile is heard. */
    push(INVALIDATIONS, DIGEST " - -");
    until(is_invalidated, NULL);
    test_loop_for(&w.loop, 125);
    cr_assert_eq(heartbeats(), before);
    cr_assert_not(has_lease(NULL));
    uint64_t epoch_behind = membership_epoch(w.member);
    cr_assert_neq(epoch_behind, epoch);
    cr_assert_not(may_fill(epoch_behind));
    fake_redis_hurry(w.fake);
    until(has_lease_by_echoes, NULL);
    cr_assert_not(may_fill(epoch_behind), "a read from before its beginning");
    cr_assert(may_fill(membership_epoch(w.member)));
    cr_assert_eq(w.ended, 0);
    close_world();
}

/* Answers that tell not all, or nothing. */
static const struct {
    const char *answer;
    enum fake_action action;
} UNKNOWN[] = {
    {LIST(0), FAKE_ANSWER},
    {LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST)
         KEY_ENTRY("6-0", "xyz12233445566778899aabbccddeeff00112233445566778899aabbccddeeff"),
     FAKE_ANSWER},
    {LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST) ENTRY("6-0", "3\r\nnew", 64, DIGEST), FAKE_ANSWER},
    {LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST) "*2\r\n$3\r\n6-0\r\n*0\r\n", FAKE_ANSWER},
    {LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST) "$-1\r\n", FAKE_ANSWER},
    {"-NOPERM this user may not\r\n", FAKE_ANSWER},
    {"$-1\r\n", FAKE_ANSWER},
    {NULL, FAKE_SILENT},
    {NULL, FAKE_CLOSE},
};

ParameterizedTestParameters(catch_up, the_cache_is_emptied_if_it_cannot_be_known)
{
    static size_t rows[sizeof UNKNOWN / sizeof *UNKNOWN];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i] = i;
    return cr_make_param_array(size_t, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(size_t *row, catch_up, the_cache_is_emptied_if_it_cannot_be_known)
{
    open_with_last(LAST("5-0", 3));
    if (UNKNOWN[*row].action == FAKE_SILENT)
        time_out_soon();
    rule("XRANGE", UNKNOWN[*row].action, UNKNOWN[*row].answer, 0);
    reconnect();
    cr_assert_eq(w.ended, 1, "row %zu", *row);
    close_world();
}

/* It was cut, or has another history. */
Test(catch_up, a_stream_without_the_known_entry_tells_not_all)
{
    open_with_last(LAST("5-0", 3));
    rule("XRANGE", FAKE_ANSWER, LIST(1) KEY_ENTRY("6-0", DIGEST), 0);
    reconnect();
    cr_assert_eq(w.ended, 1);
    close_world();
}

Test(catch_up, the_cache_is_emptied_if_too_much_was_missed)
{
    enum { MISSED = 10000, ENTRY_BYTES = 160 };
    struct buf list;

    open_with_last(LAST("5-0", 3));
    buf_init(&list, (size_t)ENTRY_BYTES * (MISSED + 1));
    buf_printf(&list, "*%d\r\n%s", MISSED + 1, KEY_ENTRY("5-0", OTHER_DIGEST));
    for (int i = 0; i < MISSED; i++)
        buf_printf(&list, KEY_ENTRY("6-0", DIGEST));
    buf_append(&list, "", 1);
    cr_assert_not(list.failed);
    rule("XRANGE", FAKE_ANSWER, list.ptr, 0);
    reconnect();
    cr_assert_eq(w.ended, 1);
    close_world();
    buf_finish(&list);
}

/* The reply of a heartbeat names an entry whose invalidation was lost with the connection. */
Test(catch_up, what_was_not_echoed_was_not_heard)
{
    open_with_last(LAST("5-0", 3));
    rule(w.heartbeat, FAKE_ANSWER, LAST("6-0", 3), 0);
    until_heartbeats(heartbeats() + 1);
    test_loop_for(&w.loop, 20);
    rule("XRANGE", FAKE_ANSWER, LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST) KEY_ENTRY("6-0", DIGEST), 0);
    w.echoed = heartbeats();
    reconnect();
    cr_assert_str_eq(fake_redis_command(w.fake, READ, 0), READ "5-0 + COUNT 10001");
    cr_assert_eq(w.invalidated, 1);
    close_world();
}

Test(catch_up, an_echo_alone_tells_nothing)
{
    open_fake();
    join(LEASE_MS);
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = w.heartbeat, .answer = LAST("5-0", 3), .delay_ms = PATIENCE_MS});
    until_first_lease();
    hang_up();
    until_ended(1);
    rule(w.heartbeat, FAKE_ANSWER, LAST("5-0", 3), 0);
    fake_redis_hurry(w.fake);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(reads(), 0);
    close_world();
}

Test(catch_up, without_a_complete_stream_nothing_is_kept)
{
    open_fake();
    open_unready(LAST("", 0));
    until_first_lease();
    hang_up();
    until_ended(1);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(reads(), 0);
    close_world();
}

Test(catch_up, nothing_is_kept_after_a_message_that_makes_no_sense)
{
    open_with_last(LAST("5-0", 3));
    push(INVALIDATIONS, "@nobody - - vanished 1");
    until_ended(1);
    until(is_live, NULL);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(reads(), 0);
    close_world();
}

Test(catch_up, nothing_is_kept_if_redis_is_not_trusted)
{
    open_with_last(LAST("5-0", 3));
    identity_demoted(lease_identity(store_lease(w.store)));
    until_ended(1);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(reads(), 0);
    close_world();
}

Test(catch_up, a_connection_that_fell_silent_is_caught_up)
{
    open_with_last(LAST("5-0", 3));
    until(has_subscribed_again, NULL); /* without echoes */
    until(is_live, NULL);
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(reads(), 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

static void restart(void)
{
    rule("INFO", FAKE_ANSWER, OTHER_PROCESS, 0);
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    fake_redis_come_back(w.fake);
    until(has_lease_by_echoes, NULL);
}

Test(catch_up, after_a_restart_the_known_entry_is_still_there)
{
    open_with_last(LAST("5-0", 3));
    restart();
    cr_assert_eq(reads(), 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

Test(catch_up, after_a_restart_an_empty_stream_proves_nothing)
{
    open_with_last(LAST("0-0", 3));
    restart();
    cr_assert_eq(reads(), 0);
    cr_assert_eq(w.ended, 1);
    close_world();
}

Test(catch_up, behind_sentinels_another_process_proves_nothing)
{
    open_fake();
    open_sentinel();
    rule("XRANGE", FAKE_ANSWER, LIST(1) KEY_ENTRY("5-0", OTHER_DIGEST), 0);
    open_unready(LAST("5-0", 3));
    until_first_lease();
    until(knows_an_entry, NULL);
    reconnect();
    cr_assert_eq(reads(), 1);
    cr_assert_eq(w.ended, 0);
    restart();
    cr_assert_eq(reads(), 1);
    cr_assert_eq(w.ended, 1);
    close_world();
}

/* Until then it waits: checks could not read Redis either. */
Test(catch_up, the_cache_is_emptied_if_nothing_can_be_read_for_long)
{
    open_with_last(LAST("5-0", 3));
    rule("CLIENT SETNAME chatelaine-reads", FAKE_CLOSE, NULL, 0);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    hang_up();
    test_loop_for(&w.loop, 1000);
    cr_assert_eq(w.ended, 0);
    reconnect();
    cr_assert_eq(reads(), 0);
    cr_assert_eq(w.ended, 1);
    close_world();
}

Test(catch_up, waits_until_redis_can_be_read)
{
    open_with_last(LAST("5-0", 3));
    rule("CLIENT SETNAME chatelaine-reads", FAKE_CLOSE, NULL, 3);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    reconnect();
    cr_assert_eq(reads(), 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

Test(catch_up, begins_again_if_the_connection_breaks_meanwhile)
{
    open_with_last(LAST("5-0", 3));
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "XRANGE",
                                                .answer = LIST(1) KEY_ENTRY("5-0", OTHER_DIGEST),
                                                .delay_ms = 250,
                                                .times = 1});
    hang_up();
    until(is_reading, &(unsigned){1});
    rule("XRANGE", FAKE_ANSWER, LIST(2) KEY_ENTRY("5-0", OTHER_DIGEST) KEY_ENTRY("6-0", DIGEST), 0);
    reconnect();
    cr_assert_eq(reads(), 2);
    cr_assert_eq(w.invalidated, 1);
    cr_assert_eq(w.ended, 0);
    close_world();
}

/* After a break of all connections, each comes back at its own time: Redis is perhaps examined, and nodes repeat what
 * they know, while this one reads what it missed. */
Test(catch_up, reads_again_if_redis_was_examined_meanwhile)
{
    open_with_last(LAST("5-0", 3));
    const struct fake_rule slow_read = {
        .command = "XRANGE", .answer = LIST(1) KEY_ENTRY("5-0", OTHER_DIGEST), .delay_ms = 250, .times = 1};
    const struct fake_rule other_era = {.command = "HMGET",
                                        .answer = "*6\r\n$32\r\n" FAKE_STORE_ID
                                                  "\r\n$-1\r\n$4\r\nera2\r\n$-1\r\n$-1\r\n$-1\r\n",
                                        .times = 1};
    const struct fake_rule slow_gathering = {.command = w.gather, .answer = FAKE_GATHERED, .delay_ms = 750, .times = 1};
    fake_redis_rule(w.fake, &slow_read);
    hang_up();
    until(is_reading, &(unsigned){1});
    fake_redis_rule(w.fake, &other_era);
    fake_redis_rule(w.fake, &slow_gathering);
    fake_redis_hang_up(w.fake, "chatelaine-changes");
    until(has_lease_by_echoes, NULL);
    cr_assert_eq(w.ended, 0);
    close_world();
}

Test(catch_up, leaving_empties_the_cache_for_good)
{
    open_with_last(LAST("5-0", 3));
    time_out_soon();
    rule("XRANGE", FAKE_SILENT, NULL, 0);
    hang_up();
    until(is_reading, &(unsigned){1});
    membership_leave(w.member);
    cr_assert_eq(w.ended, 1);
    test_loop_for(&w.loop, TIMEOUT_MS + 100);
    cr_assert_not(has_lease(NULL));
    cr_assert_not(may_fill(membership_epoch(w.member)));
    close_world();
}

Test(catch_up, closes_while_it_reads)
{
    open_with_last(LAST("5-0", 3));
    time_out_soon(); /* closing waits for it */
    rule("XRANGE", FAKE_SILENT, NULL, 0);
    hang_up();
    until(is_reading, &(unsigned){1});
    close_world();
}

/* Forbidden moves */

static void open_reading(void)
{
    open_with_last(LAST("5-0", 3));
    time_out_soon(); /* closing waits for it */
    rule("XRANGE", FAKE_SILENT, NULL, 0);
    hang_up();
    until(is_reading, &(unsigned){1});
}

static unsigned told_again;

static void cannot(void *arg, enum caught_up result)
{
    (void)arg;
    cr_assert_eq(result, CANNOT_CATCH_UP);
    told_again++;
}

Test(catch_up, a_second_read_ends_the_process, .signal = SIGABRT)
{
    open_reading();
    heard_catch_up(w.member->heard, w.member->link, cannot);
}

Test(catch_up, in_a_release_a_second_read_empties_the_cache)
{
    machine_set_fatal(false);
    open_reading();
    heard_catch_up(w.member->heard, w.member->link, cannot);
    cr_assert_eq(told_again, 1);
    cr_assert(heard_is_reading(w.member->heard), "the first one goes on");
    close_world();
}
