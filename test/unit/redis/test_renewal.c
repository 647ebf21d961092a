/* A link that gets a new connection while it is in use: nothing is lost, repeated out of order or left behind. */
#include "deadline.h"
#include "kernel.h"
#include "fake_redis.h"
#include "leak_guard.h"
#include "redis/access.h"
#include "redis/link.h"
#include "redis/link_internal.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME "chatelaine-renewed" /* of both connections */
#define MESSAGE(payload) "*3\r\n$7\r\nmessage\r\n$3\r\ninv\r\n$1\r\n" payload "\r\n"
#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$3\r\ninv\r\n:1\r\n"
#define LEFT "*3\r\n$11\r\nunsubscribe\r\n$3\r\ninv\r\n:0\r\n"
#define SAME_SERVER "$49\r\n" FAKE_RUN_ID "\r\n"
#define OTHER_SERVER "$49\r\nrun_id:0123456789012345678901234567890123456789\r\n\r\n"
#define REFUSED "-WRONGPASS invalid username-password pair or user is disabled.\r\n"

enum { A_WHILE_MS = 100 }; /* for what must not happen */

static struct world {
    uv_loop_t loop;
    struct fake_redis *fake;
    struct redis_access access;
    struct redis_link *link; /* NULL: closed by the test */
    unsigned ups, downs, replied, failed;
    char heard[64];
    char said[512]; /* the troubles */
    bool is_access_closed, is_link_closed;
} w;

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(redis_renewal, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void look(struct redis_access *access)
{
    (void)access;
}

static void on_ready(void *arg, bool is_up)
{
    (void)arg;
    cr_assert(!w.link || !w.link->successor, "another connection must not take over what it has missed");
    w.ups += is_up;
    w.downs += !is_up;
}

static size_t channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    (void)arg;
    ret_channels[0] = TEXT("inv");
    return 1;
}

static bool message(void *arg, struct text channel, struct text payload)
{
    size_t at = strlen(w.heard);

    (void)arg;
    cr_assert(text_equal(channel, TEXT("inv")));
    cr_assert(redis_link_is_ready(w.link));
    snprintf(w.heard + at, sizeof w.heard - at, "%.*s", TEXT_ARG(payload));
    return true;
}

static const struct redis_subscription SUBSCRIPTION = {
    .channels = channels, .channels_again = channels, .message = message};

static void rule(const char *command, const char *answer, unsigned delay_ms, unsigned times)
{
    fake_redis_rule(
        w.fake, &(struct fake_rule){
                    .command = command, .action = FAKE_ANSWER, .answer = answer, .delay_ms = delay_ms, .times = times});
}

static bool is_ready(void *arg)
{
    (void)arg;
    return redis_link_is_ready(w.link);
}

static void until_with(test_loop_predicate *predicate, void *arg, int line)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "line %d: %s", line,
              w.link ? redis_link_trouble(w.link) : "closed");
}

#define until(predicate, arg) until_with(predicate, (void *)(uintptr_t)(arg), __LINE__)

static void open_world_at(bool master, const struct redis_subscription *subscription)
{
    const struct redis_link_settings settings = {.name = "renewed",
                                                 .timeout_ms = PATIENCE_MS,
                                                 .backoff_max_ms = 50,
                                                 .calls_max = 100,
                                                 .subscription = subscription,
                                                 .to_master = master};
    struct redis_target target = {.host = "127.0.0.1", .login.password = "first", .access = &w.access};

    memset(&w, 0, sizeof w);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.fake = fake_redis_create(&w.loop, NULL);
    target.port = fake_redis_port(w.fake);
    w.access.look = look;
    snprintf(w.access.now[REDIS_PEER_SERVER].password, sizeof w.access.now[0].password, "first");
    redis_access_init(&w.access);
    redis_access_start(&w.access, &w.loop);
    rule("SUBSCRIBE", CONFIRMED, 0, 0);
    w.link = redis_link_create(&w.loop, &target, &settings, on_ready, NULL);
    until(is_ready, NULL);
}

static void open_world(const struct redis_subscription *subscription)
{
    open_world_at(false, subscription);
}

static void renew_with(const char *password)
{
    struct redis_login *now = &w.access.now[REDIS_PEER_SERVER];

    snprintf(now->password, sizeof now->password, "%s", password);
    redis_access_renew(&w.access);
}

static void on_access_closed(void *arg)
{
    (void)arg;
    w.is_access_closed = true;
}

static void on_link_closed(void *arg)
{
    (void)arg;
    w.is_link_closed = true;
}

static bool is_closed(void *arg)
{
    (void)arg;
    return w.is_access_closed && w.is_link_closed;
}

static void close_world(void)
{
    if (!w.access.closed.run)
        redis_access_close(&w.access, on_access_closed, NULL);
    if (w.link)
        redis_link_close(w.link, on_link_closed, NULL);
    w.link = NULL;
    until(is_closed, NULL);
    fake_redis_close(w.fake);
    cr_assert(test_loop_finish(&w.loop));
}

static bool was_asked(void *command)
{
    return fake_redis_count(w.fake, command) > 0;
}

static bool uses(const char *password)
{
    return redis_link_is_ready(w.link) && strcmp(w.link->target.login.password, password) == 0;
}

static bool uses_second(void *arg)
{
    (void)arg;
    return uses("second");
}

static bool is_renewed(void *arg)
{
    return uses_second(arg) && !w.access.renewal;
}

static bool is_refused(void *arg)
{
    (void)arg;
    return w.access.refused_login[0] && !w.access.renewal;
}

static bool is_accepted(void *arg)
{
    return is_renewed(arg) && !w.access.refused_login[0];
}

static void on_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)reply;
    w.replied += outcome == REDIS_REPLIED;
    w.failed += outcome != REDIS_REPLIED;
}

static void call(const char *verb)
{
    redis_link_call(w.link, 1, (struct text[]){text_of(verb)}, on_done, NULL);
}

static bool are_answered(void *count)
{
    return w.replied + w.failed == (uintptr_t)count;
}

static bool all_are_answered(void *count)
{
    return are_answered(count) && !w.access.renewal;
}

static bool has_heard(void *all)
{
    return strcmp(w.heard, all) == 0;
}

/* What waits for its reply stays with the old connection, which is closed behind it. Both have more calls than a new
 * link has room for. */
Test(redis_renewal, calls_keep_their_connection)
{
    enum { BEHIND = 90, QUICK = 70 };

    open_world(NULL);
    rule("SLOW", "+OK\r\n", PATIENCE_MS, 0);
    call("SLOW");
    for (unsigned i = 0; i < BEHIND; i++)
        call("BEHIND");
    renew_with("second");
    until(uses_second, NULL);
    for (unsigned i = 0; i < QUICK; i++)
        call("QUICK");
    until(are_answered, QUICK);
    test_loop_for(&w.loop, A_WHILE_MS);
    cr_assert(w.access.renewal, "the old connection has ended without its reply");
    fake_redis_hurry(w.fake);
    until(all_are_answered, 1 + BEHIND + QUICK);
    cr_expect_eq(w.replied, 1 + BEHIND + QUICK);
    cr_expect_eq(w.downs, 0);
    close_world();
}

/* Until Redis has confirmed that the old connection hears no more, both hear everything, and the old one counts. */
Test(redis_renewal, messages_are_heard_in_order)
{
    open_world(&SUBSCRIPTION);
    rule("UNSUBSCRIBE", LEFT, PATIENCE_MS, 0);
    renew_with("second");
    until(was_asked, "UNSUBSCRIBE");
    fake_redis_push(w.fake, NAME, MESSAGE("1"));
    fake_redis_push(w.fake, NAME, MESSAGE("2"));
    until(has_heard, "12");
    cr_expect_not(uses("second"));
    fake_redis_hurry(w.fake);
    until(is_renewed, NULL);
    fake_redis_push(w.fake, NAME, MESSAGE("3"));
    until(has_heard, "12123");
    cr_expect_eq(w.ups, 1);
    cr_expect_eq(w.downs, 0);
    close_world();
}

/* If both connections are lost on the way, the link knows that it was deaf. */
Test(redis_renewal, lost_while_it_takes_leave)
{
    open_world(&SUBSCRIPTION);
    rule("UNSUBSCRIBE", LEFT, PATIENCE_MS, 0);
    renew_with("second");
    until(was_asked, "UNSUBSCRIBE");
    fake_redis_hang_up(w.fake, NAME);
    until(is_renewed, NULL);
    cr_expect_eq(w.downs, 1);
    cr_expect_eq(w.ups, 2);
    fake_redis_push(w.fake, NAME, MESSAGE("1"));
    until(has_heard, "1");
    close_world();
}

static bool is_back(void *arg)
{
    (void)arg;
    return w.ups == 2;
}

/* Only the old one is lost. */
Test(redis_renewal, the_link_is_lost_while_it_takes_leave)
{
    open_world(&SUBSCRIPTION);
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "UNSUBSCRIBE", .action = FAKE_CLOSE, .times = 1});
    renew_with("second");
    until(is_back, NULL);
    until(is_renewed, NULL);
    cr_expect_eq(w.downs, 1);
    cr_expect_eq(fake_redis_count(w.fake, "SUBSCRIBE inv"), 3, "the second was given up");
    close_world();
}

/* The new one is lost, and is back before anybody looks: what was published in between, neither has heard. */
Test(redis_renewal, the_new_connection_is_lost_for_a_moment_while_it_takes_over)
{
    enum { ROUNDS = 10 }; /* now and then it takes longer to come back */

    open_world(&SUBSCRIPTION);
    rule("UNSUBSCRIBE", LEFT, 0, 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        char password[16];

        snprintf(password, sizeof password, "password %u", round);
        renew_with(password);
        while (fake_redis_count(w.fake, "UNSUBSCRIBE") < round)
            uv_run(&w.loop, UV_RUN_ONCE);
        fake_redis_hang_up_newest(w.fake, NAME);
        while (!uses(password) || w.access.renewal)
            uv_run(&w.loop, UV_RUN_ONCE);
        cr_assert_eq(w.downs, round, "round %u: the link does not know that it was deaf", round);
    }
    close_world();
}

/* More than it holds, before anybody looks: that connection is given up, and the next one begins with what it hears. */
Test(redis_renewal, a_flood_on_the_new_connection_is_not_delivered_in_part)
{
    enum { MESSAGES = 4, PAYLOAD_BYTES = 300000 };
    struct buf flood;

    buf_init(&flood, 2 * MESSAGES * PAYLOAD_BYTES);
    buf_append_str(&flood, CONFIRMED);
    for (unsigned i = 0; i < MESSAGES; i++) {
        buf_printf(&flood, "*3\r\n$7\r\nmessage\r\n$3\r\ninv\r\n$%d\r\n", PAYLOAD_BYTES);
        for (unsigned at = 0; at < PAYLOAD_BYTES; at++)
            buf_append_char(&flood, 'x');
        buf_append_str(&flood, "\r\n");
    }
    buf_append_char(&flood, '\0');
    cr_assert_not(flood.failed);
    open_world(&SUBSCRIPTION);
    rule("UNSUBSCRIBE", LEFT, 0, 0);
    rule("SUBSCRIBE", flood.ptr, 0, 1);
    renew_with("second");
    until(is_renewed, NULL);
    cr_expect_eq(fake_redis_count(w.fake, "SUBSCRIBE inv"), 3);
    cr_expect_eq(w.downs, 0, "the old one has heard everything");
    cr_expect_str_eq(w.heard, "", "from a connection that was given up");
    fake_redis_push(w.fake, NAME, MESSAGE("1"));
    until(has_heard, "1");
    close_world();
    buf_finish(&flood);
}

static void note_trouble(void *arg, struct text sentence)
{
    (void)arg;
    snprintf(w.said, sizeof w.said, "%.*s", TEXT_ARG(sentence));
}

Test(redis_renewal, a_refused_password_is_told_until_it_is_accepted)
{
    open_world(NULL);
    rule("AUTH second", REFUSED, 0, 0);
    renew_with("second");
    until(is_refused, NULL);
    redis_access_troubles(&w.access, note_trouble, NULL);
    cr_expect(strstr(w.said, "New connections fail, the old ones still work: 127.0.0.1:"), "%s", w.said);
    cr_expect(strstr(w.said, "WRONGPASS") && !strstr(w.said, "second"), "%s", w.said);
    call("QUICK");
    until(are_answered, 1);
    cr_expect_eq(w.replied, 1);
    cr_expect_eq(w.downs, 0);
    rule("AUTH second", "+OK\r\n", 0, 0);
    until(is_accepted, NULL);
    cr_expect_eq(w.downs, 0);
    close_world();
}

/* Two servers must not be taken for one. */
Test(redis_renewal, another_server_does_not_take_over)
{
    open_world_at(true, NULL);
    rule("INFO", OTHER_SERVER, 0, 0);
    renew_with("second");
    until(is_refused, NULL);
    cr_expect(strstr(w.access.refused_login, "a new connection reached another server"), "%s", w.access.refused_login);
    cr_expect(uses("first"));
    rule("INFO", SAME_SERVER, 0, 0);
    until(is_accepted, NULL);
    cr_expect_eq(w.downs, 0);
    close_world();
}

Test(redis_renewal, a_link_that_is_lost_falls_back_to_what_was_accepted)
{
    open_world(NULL);
    rule("AUTH second", REFUSED, 0, 0);
    renew_with("second");
    until(is_refused, NULL);
    fake_redis_hang_up(w.fake, NAME);
    until(is_back, NULL);
    cr_expect(uses("first"));
    rule("AUTH second", "+OK\r\n", 0, 0);
    until(is_accepted, NULL);
    cr_expect_eq(w.downs, 1);
    close_world();
}

/* Link and access may be closed at any moment, in either order. */
static void close_at(const char *slow_command, const struct redis_subscription *subscription, bool link_first)
{
    open_world(subscription);
    rule(slow_command, "+OK\r\n", PATIENCE_MS, 0);
    if (!subscription)
        call("SLOW");
    renew_with("second");
    until(was_asked, slow_command);
    if (strcmp(slow_command, "SLOW") == 0)
        until(uses_second, NULL);
    if (!link_first)
        redis_access_close(&w.access, on_access_closed, NULL);
    redis_link_close(w.link, on_link_closed, NULL);
    w.link = NULL;
    fake_redis_hurry(w.fake);
    close_world();
}

Test(redis_renewal, closes_at_any_moment)
{
    for (int link_first = 0; link_first <= 1; link_first++) {
        close_at("AUTH second", NULL, link_first);
        close_at("SUBSCRIBE", &SUBSCRIPTION, link_first);
        close_at("UNSUBSCRIBE", &SUBSCRIPTION, link_first);
        close_at("SLOW", NULL, link_first);
    }
}
