/* What a node makes of a key that will be revoked, by what Redis and its heartbeats say of the time. */
#include "leak_guard.h"
#include "lease_world.h"
#include "lease/membership.h"
#include "redis/redis_clock.h"
#include "engine/access.h"
#include "records/key_store.h"
#include "lease/store_time.h"
#include "base/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(key_ends, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NOW_MS = 50000000, SOON_MS = 360000 };

static bool is_found;
static enum store_result find_result;
static struct key_record found;

static void on_found(void *arg, enum store_result result, const struct key_record *key)
{
    (void)arg;
    find_result = result;
    if (key)
        key_copy(&found, key);
    is_found = true;
}

static void answer_key(int64_t ends_ms)
{
    static char reply[256];
    const struct id id = id_mint(ID_KEY, 1), account = id_mint(ID_ACCOUNT, 1);
    char packed[160];

    snprintf(packed, sizeof packed, "%s %s live wxyz 3 7 @%lld Name", id.text, account.text, (long long)ends_ms);
    snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(packed), packed);
    rule("GET t:key:", FAKE_ANSWER, reply, 0);
}

/* Of a Redis whose clock is ahead of the store's time by that much. */
static void answer_time_and_clock(int64_t time_ms, int64_t ahead_ms, uint32_t delay_ms)
{
    static char command[SCRIPT_BYTES], reply[160];

    name_script(SCRIPT_store_time, command);
    snprintf(reply, sizeof reply, "*6\r\n$2\r\nok\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n$1\r\n-\r\n",
             (long long)time_ms, (long long)time_ms, (long long)(time_ms + ahead_ms), (long long)time_ms);
    fake_redis_rule(w.fake, &(struct fake_rule){.command = command, .answer = reply, .delay_ms = delay_ms});
}

static void answer_time(int64_t time_ms, uint32_t delay_ms)
{
    answer_time_and_clock(time_ms, 0, delay_ms);
}

static void answer_heartbeats_due(int64_t time_ms, bool is_due)
{
    static char reply[160];
    unsigned next = heartbeats() + 2; /* its answer, and not only its sending, is certain once another one was sent */

    snprintf(reply, sizeof reply,
             "*3\r\n$2\r\nok\r\n*6\r\n:%lld\r\n:%lld\r\n:%lld\r\n:%lld\r\n$1\r\n-\r\n:1\r\n:%d\r\n", (long long)time_ms,
             (long long)time_ms, (long long)time_ms, (long long)time_ms, is_due);
    rule(w.heartbeat, FAKE_ANSWER, reply, 0);
    while (heartbeats() < next) {
        until_heartbeats(heartbeats() + 1);
        echo_all();
    }
}

static void answer_heartbeats(int64_t time_ms)
{
    answer_heartbeats_due(time_ms, false);
}

static bool is_ready(void *arg)
{
    (void)arg;
    echo_all();
    return store_is_ready(w.store);
}

static void open_ready(void)
{
    open_fake();
    join(LEASE_MS);
    until(has_lease_by_echoes, NULL);
    until(is_ready, NULL);
}

static enum store_result try_find(void)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    is_found = false;
    key_store_find(w.store, digest, on_found, NULL);
    cr_assert(test_loop_until_set(&w.loop, &is_found, PATIENCE_MS));
    return find_result;
}

static void find(void)
{
    cr_assert_eq(try_find(), STORE_OK);
}

Test(key_ends, a_key_is_revoked_from_its_time_on)
{
    open_ready();
    answer_key(NOW_MS);
    answer_time(NOW_MS - 1, 0);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    cr_expect(found.is_ending);
    answer_time(NOW_MS, 0);
    find();
    cr_expect_eq(found.revoked_ms, NOW_MS);
    answer_key(NOW_MS + 2 * SOON_MS);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    cr_expect_not(found.is_ending);
    close_world();
}

/* TIME of the examination said another one. */
Test(key_ends, heartbeats_tell_redis_clock)
{
    open_ready();
    answer_heartbeats(NOW_MS);
    int64_t apart_ms = redis_clock_ms(store_redis_clock(w.store)) - NOW_MS;
    cr_expect(apart_ms >= -1000 && apart_ms < PATIENCE_MS, "%lld ms", (long long)apart_ms);
    close_world();
}

/* Redis' clock was set back since the last heartbeat, and will be put right by the next one. */
Test(key_ends, an_answer_below_what_the_node_knows_delays_nothing)
{
    open_ready();
    answer_heartbeats(NOW_MS);
    answer_key(NOW_MS);
    answer_time(NOW_MS - 3600000, 0);
    find();
    cr_expect_eq(found.revoked_ms, NOW_MS);
    answer_key(NOW_MS + 2 * SOON_MS);
    find();
    cr_expect_eq(found.revoked_ms, 0, "an hour later");
    close_world();
}

/* What the last heartbeat told, so long ago. */
static void know_time(int64_t told_ms, unsigned ago_ms)
{
    const uint64_t then_ns = clock_boot_ns() - ago_ms * CLOCK_NS_PER_MS;

    *(struct store_time *)store_known_time(w.store) =
        (struct store_time){.known = {{told_ms, told_ms, told_ms, told_ms, "-"}, then_ns, then_ns}};
}

/* It was set back by so little, or so soon after the last heartbeat, that the answer may be right. */
Test(key_ends, an_answer_that_may_be_too_early_delays_nothing)
{
    open_ready();
    know_time(NOW_MS, 1000);
    answer_time(NOW_MS + 1000, 0);
    answer_key(NOW_MS + 1050);
    find();
    cr_expect_eq(found.revoked_ms, NOW_MS + 1050, "it may be 1111 ms later by now");
    know_time(NOW_MS, 100000);
    answer_time(NOW_MS + 95000, 0);
    answer_key(NOW_MS + 95190);
    find();
    cr_expect_eq(found.revoked_ms, NOW_MS + 95190);
    know_time(NOW_MS, 100000);
    answer_key(NOW_MS + 95300);
    cr_expect_eq(try_find(), STORE_UNAVAILABLE, "that may be more than 200 ms too early, or too late");
    know_time(NOW_MS, 100000);
    answer_key(NOW_MS + 112000);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    close_world();
}

/* Redis' clock was set forward since the last heartbeat, or a heartbeat has proved it wrong: but it may be right. */
Test(key_ends, a_clock_that_is_not_believed_neither_ends_a_key_nor_lets_it_be_accepted)
{
    open_ready();
    know_time(NOW_MS, 100);
    answer_time(NOW_MS + 3600000, 0);
    answer_key(NOW_MS + 60);
    find();
    cr_expect_eq(found.revoked_ms, NOW_MS + 60, "as the node knows by itself");
    know_time(NOW_MS, 100);
    answer_key(NOW_MS + 1800000);
    cr_expect_eq(try_find(), STORE_UNAVAILABLE);
    know_time(NOW_MS, 100);
    answer_time_and_clock(NOW_MS + 100, 3600000, 0);
    cr_expect_eq(try_find(), STORE_UNAVAILABLE);
    know_time(NOW_MS, 100);
    answer_key(NOW_MS + 3600000 + 2 * SOON_MS);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    cr_expect_not(found.is_ending);
    know_time(NOW_MS, 100);
    answer_key(NOW_MS + 3600000 + SOON_MS);
    find();
    cr_expect(found.is_ending, "the cache must not outlive it by that clock");
    close_world();
}

/* As if the process had been paused between the answer and its reading. */
Test(key_ends, an_answer_that_is_read_late_counts_for_as_old_as_it_is)
{
    open_ready();
    answer_key(NOW_MS + SOON_MS + 100);
    answer_time(NOW_MS, 0);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    answer_time(NOW_MS, 200);
    find();
    cr_expect_eq(found.revoked_ms, 0);
    cr_expect(found.is_ending);
    close_world();
}

Test(key_ends, a_clock_that_was_set_forward_empties_the_cache)
{
    uint64_t epoch;

    open_ready();
    answer_heartbeats(NOW_MS);
    w.ended = 0;
    epoch = membership_epoch(w.member);
    answer_heartbeats(NOW_MS + 3600000);
    cr_expect_gt(w.ended, 0);
    cr_expect_not(may_fill(epoch), "by a read that was sent before");
    close_world();
}

/* Due is what the store says, so one of its nodes writes it down. */
Test(key_ends, what_is_due_is_written_down)
{
    char due[SCRIPT_BYTES];

    open_ready();
    name_script(SCRIPT_key_end_due, due);
    rule(due, FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 0);
    answer_heartbeats(NOW_MS);
    cr_expect_eq(fake_redis_count(w.fake, due), 0);
    answer_heartbeats_due(NOW_MS + 1, true);
    until_command(due);
    close_world();
}
