/* A subscribed link: when it is ready, what it reports, and when it gives up its connection. */
#include "fake_redis.h"
#include "deadline.h"
#include "kernel.h"
#include "leak_guard.h"
#include "redis/link.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Where a test waits for the time to pass, or is silent for longer. */
enum { LONG_MS = 1000, SHORT_MS = 300 };

#define MESSAGE(channel_len, channel, payload_len, payload) \
    "*3\r\n$7\r\nmessage\r\n$" channel_len "\r\n" channel "\r\n$" payload_len "\r\n" payload "\r\n"
#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$3\r\ninv\r\n:1\r\n"

struct world {
    uv_loop_t loop;
    struct fake_redis *fake;
    struct redis_link *link;
    uint32_t timeout_ms;               /* PATIENCE_MS, unless set after open_world() */
    unsigned ups, downs, lefts, asked; /* asked for channels */
    char own[32];
    char messages[256]; /* "channel=payload ", in order */
    unsigned not_sent;
    bool refuses, closes_in_message, renews_in_message, closes_in_ready;
    bool is_closed;
};

static struct world w;

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(redis_subscription, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void on_closed(void *arg)
{
    (void)arg;
    cr_assert(!w.is_closed);
    w.is_closed = true;
}

static void close_link(void)
{
    redis_link_close(w.link, on_closed, NULL);
    cr_assert(!w.is_closed);
}

static void on_ready(void *arg, bool ready)
{
    (void)arg;
    cr_assert_eq(redis_link_is_ready(w.link), ready);
    w.ups += ready;
    w.downs += !ready;
    if (ready && w.closes_in_ready)
        close_link();
}

/* The first channel differs on each connection. */
static size_t channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    (void)arg;
    snprintf(w.own, sizeof w.own, "own-%u", ++w.asked);
    ret_channels[0] = text_of(w.own);
    ret_channels[1] = TEXT("inv");
    return 2;
}

static bool message(void *arg, struct text channel, struct text payload)
{
    size_t at = strlen(w.messages);

    (void)arg;
    cr_assert(redis_link_is_ready(w.link), "a message before it is ready");
    snprintf(w.messages + at, sizeof w.messages - at, "%.*s=%.*s ", TEXT_ARG(channel), TEXT_ARG(payload));
    if (w.closes_in_message)
        close_link();
    if (w.renews_in_message)
        redis_link_renew(w.link, "the test asks for it");
    w.renews_in_message = false;
    return !w.refuses || !text_equal(payload, TEXT("bad"));
}

static void open_world(void)
{
    memset(&w, 0, sizeof w);
    w.timeout_ms = PATIENCE_MS;
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.fake = fake_redis_create(&w.loop, NULL);
}

static void rule(const char *command, enum fake_action action, const char *answer, unsigned times)
{
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = command, .action = action, .answer = answer, .times = times});
}

static void open_link_for(const struct redis_subscription *subscription)
{
    const struct redis_link_settings settings = {
        .name = "ears", .timeout_ms = w.timeout_ms, .backoff_max_ms = 100, .subscription = subscription};
    const struct redis_target target = {.host = "127.0.0.1", .port = fake_redis_port(w.fake)};

    w.link = redis_link_create(&w.loop, &target, &settings, on_ready, NULL);
}

static void open_link(void)
{
    static const struct redis_subscription SUBSCRIPTION = {.channels = channels, .message = message};

    open_link_for(&SUBSCRIPTION);
}

/* Confirms subscriptions, unless later rules answer differently. */
static void open_confirming(void)
{
    open_world();
    rule("SUBSCRIBE", FAKE_ANSWER, CONFIRMED, 0);
}

static bool is_ready(void *arg)
{
    (void)arg;
    return redis_link_is_ready(w.link);
}

static bool is_down(void *arg)
{
    (void)arg;
    return !redis_link_is_ready(w.link);
}

static bool has_lost_once(void *arg)
{
    (void)arg;
    return w.downs == 1;
}

/* arg: the address of its text */
static bool has_trouble(void *arg)
{
    return strstr(redis_link_trouble(w.link), *(const char **)arg);
}

static bool has_messages(void *arg)
{
    return strcmp(w.messages, *(const char **)arg) == 0;
}

/* arg: how a command begins */
static bool has_asked(void *arg)
{
    return fake_redis_count(w.fake, *(const char **)arg) > 0;
}

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "trouble: %s, messages: %s",
              redis_link_trouble(w.link), w.messages);
}

static void until_trouble(const char *trouble)
{
    until(has_trouble, &trouble);
}

static void until_messages(const char *messages)
{
    until(has_messages, &messages);
}

static void until_asked(const char *command)
{
    until(has_asked, &command);
}

static void open_ready(void)
{
    open_confirming();
    open_link();
    until(is_ready, NULL);
}

static void close_world(void)
{
    if (!w.is_closed)
        close_link();
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    fake_redis_close(w.fake);
    cr_assert(test_loop_finish(&w.loop));
}

Test(redis_subscription, is_ready_when_all_channels_are_confirmed)
{
    open_confirming();
    w.timeout_ms = LONG_MS;
    rule("SUBSCRIBE inv", FAKE_SILENT, NULL, 1);
    open_link();
    until_asked("SUBSCRIBE inv");
    test_loop_for(&w.loop, 75);
    cr_assert_eq(w.ups, 0, "one channel is not confirmed");
    until_trouble("it does not answer");
    cr_assert_eq(w.downs, 0, "it was never up");
    until(is_ready, NULL);
    cr_assert_str_eq(fake_redis_command(w.fake, "SUBSCRIBE", 0), "SUBSCRIBE own-1");
    cr_assert_str_eq(fake_redis_command(w.fake, "SUBSCRIBE", 1), "SUBSCRIBE inv");
    cr_assert_str_eq(fake_redis_command(w.fake, "SUBSCRIBE", 2), "SUBSCRIBE own-2");
    cr_assert_eq(w.ups, 1);
    close_world();
}

static void slot_left(void *arg)
{
    (void)arg;
    cr_assert_not(redis_link_is_ready(w.link));
    w.lefts++;
}

/* What it hears of channels of the other kind was not meant for it. */
Test(redis_subscription, channels_of_slots_are_heard_until_their_slot_leaves)
{
    static const struct redis_subscription SHARDED = {
        .channels = channels, .message = message, .is_sharded = true, .left = slot_left};

    open_world();
    rule("SSUBSCRIBE", FAKE_ANSWER, "*3\r\n$10\r\nssubscribe\r\n$3\r\ninv\r\n:1\r\n", 0);
    open_link_for(&SHARDED);
    until(is_ready, NULL);
    cr_assert_eq(fake_redis_count(w.fake, "SUBSCRIBE"), 0);
    fake_redis_blurt(w.fake, "*3\r\n$8\r\nsmessage\r\n$3\r\ninv\r\n$1\r\n1\r\n");
    until_messages("inv=1 ");
    cr_assert_eq(w.downs, 0);
    fake_redis_blurt(w.fake, "*3\r\n$12\r\nsunsubscribe\r\n$3\r\ninv\r\n:1\r\n");
    until(has_lost_once, NULL);
    until_trouble("the slot of its channels has left this server");
    cr_assert_eq(w.lefts, 1);
    until(is_ready, NULL);
    rule("SSUBSCRIBE", FAKE_ANSWER, "-MOVED 1 127.0.0.1:1\r\n", 0);
    fake_redis_blurt(w.fake, MESSAGE("3", "inv", "1", "2"));
    until_trouble("MOVED 1 127.0.0.1:1");
    cr_assert_str_eq(w.messages, "inv=1 ");
    close_world();
}

Test(redis_subscription, asks_behind_the_greeting)
{
    open_ready();
    cr_assert_str_eq(fake_redis_command(w.fake, "", 0), "CLIENT SETNAME chatelaine-ears");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 1), "PING");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 2), "SUBSCRIBE own-1");
    cr_assert_eq(fake_redis_count(w.fake, ""), 4);
    close_world();
}

Test(redis_subscription, messages_before_it_is_ready_are_ignored)
{
    open_confirming();
    rule("SUBSCRIBE own", FAKE_ANSWER,
         CONFIRMED MESSAGE("5", "own-1", "5", "early") "*2\r\n$7\r\nmessage\r\n$1\r\na\r\n", 0);
    open_link();
    until(is_ready, NULL);
    cr_assert_str_eq(w.messages, "");
    fake_redis_blurt(w.fake, MESSAGE("3", "inv", "4", "then"));
    until_messages("inv=then ");
    cr_assert_eq(w.downs, 0);
    close_world();
}

Test(redis_subscription, tells_messages_in_order)
{
    open_ready();
    fake_redis_blurt(w.fake,
                     MESSAGE("3", "inv", "1", "1") MESSAGE("5", "own-1", "1", "2") MESSAGE("3", "inv", "0", ""));
    fake_redis_blurt(w.fake, MESSAGE("3", "inv", "3", "a b"));
    until_messages("inv=1 own-1=2 inv= inv=a b ");
    close_world();
}

Test(redis_subscription, reads_messages_and_confirmations_in_pieces)
{
    static const char MESSAGES[] = MESSAGE("3", "inv", "3", "one") MESSAGE("3", "inv", "3", "two");

    open_world();
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "SUBSCRIBE", .answer = CONFIRMED, .in_pieces = true});
    open_link();
    until(is_ready, NULL);
    for (size_t i = 0; i < sizeof MESSAGES - 1; i++) {
        fake_redis_blurt(w.fake, (char[]){MESSAGES[i], '\0'});
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    until_messages("inv=one inv=two ");
    close_world();
}

Test(redis_subscription, gives_the_connection_up_over_what_makes_no_sense)
{
    static const struct {
        const char *bytes, *trouble;
    } CASES[] = {
        {MESSAGE("3", "inv", "3", "bad"), "malformed message"},
        {"*2\r\n$7\r\nmessage\r\n$3\r\ninv\r\n", "malformed message"},
        {"*1\r\n$7\r\nmessage\r\n", "malformed message"},
        {"*3\r\n$7\r\nmessage\r\n$3\r\ninv\r\n:1\r\n", "malformed message"},
        {"*3\r\n$7\r\nmessage\r\n$3\r\ninv\r\n$-1\r\n", "malformed message"},
        {"*3\r\n$7\r\nmessage\r\n:3\r\n$1\r\na\r\n", "malformed message"},
        {"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$3\r\ninv\r\n$1\r\na\r\n", "no command waits for"},
        {"*3\r\n$11\r\nunsubscribe\r\n$3\r\ninv\r\n:1\r\n", "no command waits for"},
        {CONFIRMED, "no command waits for"},
        {"*0\r\n", "no command waits for"},
        {"*-1\r\n", "no command waits for"},
        {"+OK\r\n", "no command waits for"},
        {":1\r\n", "no command waits for"},
        {"-ERR no\r\n", "no command waits for"},
        {"$7\r\nmessage\r\n", "no command waits for"},
        {"message\r\n", "invalid or oversized reply"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_ready();
        w.refuses = true;
        fake_redis_blurt(w.fake, CASES[i].bytes);
        fake_redis_blurt(w.fake, MESSAGE("3", "inv", "5", "after"));
        until(has_lost_once, NULL);
        cr_expect_not_null(strstr(redis_link_trouble(w.link), CASES[i].trouble), "%zu: %s", i,
                           redis_link_trouble(w.link));
        cr_expect_null(strstr(w.messages, "after"), "%zu: nothing is told behind it", i);
        until(is_ready, NULL);
        cr_expect_eq(w.asked, 2, "%zu", i);
        cr_expect_str_eq(fake_redis_command(w.fake, "SUBSCRIBE", 2), "SUBSCRIBE own-2");
        w.messages[0] = '\0';
        fake_redis_blurt(w.fake, MESSAGE("5", "own-2", "4", "good"));
        until_messages("own-2=good ");
        close_world();
    }
}

Test(redis_subscription, tells_nothing_behind_a_refused_message_of_the_same_packet)
{
    open_ready();
    w.refuses = true;
    fake_redis_blurt(w.fake,
                     MESSAGE("3", "inv", "1", "a") MESSAGE("3", "inv", "3", "bad") MESSAGE("3", "inv", "1", "c"));
    until(has_lost_once, NULL);
    until(is_ready, NULL);
    cr_assert_str_eq(w.messages, "inv=a inv=bad ");
    close_world();
}

Test(redis_subscription, names_why_redis_refuses)
{
    static const struct {
        const char *command, *answer, *trouble;
    } CASES[] = {
        {"SUBSCRIBE own", "-NOPERM this user has no permissions to access one of the channels\r\n", "NOPERM this user"},
        {"SUBSCRIBE inv", "-NOPERM this user has no permissions to access one of the channels\r\n", "NOPERM this user"},
        {"SUBSCRIBE own", "+OK\r\n", "not a Redis"},
        {"SUBSCRIBE inv", ":1\r\n", "not a Redis"},
        {"SUBSCRIBE inv", "*0\r\n", "not a Redis"},
        {"SUBSCRIBE inv", "$9\r\nsubscribe\r\n", "not a Redis"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_confirming();
        rule(CASES[i].command, FAKE_ANSWER, CASES[i].answer, 1);
        open_link();
        until_trouble(CASES[i].trouble);
        cr_expect_eq(w.ups, 0, "%zu", i);
        until(is_ready, NULL);
        cr_expect_eq(w.asked, 2, "%zu", i);
        close_world();
    }
}

static void on_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)reply;
    w.not_sent += outcome == REDIS_NOT_SENT;
}

static bool two_not_sent(void *arg)
{
    (void)arg;
    return w.not_sent == 2;
}

Test(redis_subscription, takes_no_calls)
{
    open_ready();
    redis_link_call(w.link, 1, (struct text[]){TEXT("PING")}, on_done, NULL);
    redis_link_call_raw(w.link, TEXT("*1\r\n$4\r\nPING\r\n"), on_done, NULL);
    cr_assert_eq(w.not_sent, 0, "completed inside the call");
    until(two_not_sent, NULL);
    test_loop_for(&w.loop, 20);
    cr_assert_eq(fake_redis_count(w.fake, "PING"), 1, "the greeting's alone");
    cr_assert_eq(w.downs, 0);
    close_world();
}

/* No calls are under way, so silence is fine. */
Test(redis_subscription, silence_is_fine)
{
    open_confirming();
    w.timeout_ms = SHORT_MS;
    open_link();
    until(is_ready, NULL);
    unsigned accepted = fake_redis_accepted(w.fake);
    test_loop_for(&w.loop, 5 * SHORT_MS);
    cr_assert_eq(w.downs, 0);
    cr_assert_eq(fake_redis_accepted(w.fake), accepted);
    close_world();
}

/* Renewing in each state */

Test(redis_subscription, renews_when_ready)
{
    open_ready();
    redis_link_renew(w.link, "heard too little");
    cr_assert_eq(w.downs, 1, "told inside the call");
    cr_assert_not_null(strstr(redis_link_trouble(w.link), "heard too little"));
    redis_link_renew(w.link, "once more");
    cr_assert_eq(w.downs, 1);
    cr_assert_not_null(strstr(redis_link_trouble(w.link), "heard too little"), "it waits already");
    until(is_ready, NULL);
    cr_assert_eq(w.asked, 2);
    cr_assert_eq(fake_redis_accepted(w.fake), 2);
    close_world();
}

Test(redis_subscription, renews_while_it_greets)
{
    open_confirming();
    rule("SUBSCRIBE inv", FAKE_SILENT, NULL, 1);
    open_link();
    until_asked("SUBSCRIBE inv");
    redis_link_renew(w.link, "heard too little");
    until(is_ready, NULL);
    cr_assert_eq(w.downs, 0, "it was not up");
    cr_assert_eq(w.asked, 2);
    close_world();
}

Test(redis_subscription, renewing_without_a_connection_changes_nothing)
{
    open_confirming();
    open_link();
    redis_link_renew(w.link, "too early");
    until(is_ready, NULL);
    cr_assert_eq(fake_redis_accepted(w.fake), 1);
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    redis_link_renew(w.link, "it is down");
    cr_assert_eq(w.downs, 1);
    fake_redis_come_back(w.fake);
    until(is_ready, NULL);
    cr_assert_eq(w.asked, 2);
    close_world();
}

Test(redis_subscription, renews_inside_a_message)
{
    open_ready();
    w.renews_in_message = true;
    fake_redis_blurt(w.fake, MESSAGE("3", "inv", "1", "a") MESSAGE("3", "inv", "1", "b"));
    until(has_lost_once, NULL);
    until(is_ready, NULL);
    cr_assert_str_eq(w.messages, "inv=a ", "b came on the connection that was given up");
    close_world();
}

/* Closing in each state */

Test(redis_subscription, closes_before_the_loop_ran)
{
    open_confirming();
    open_link();
    close_world();
    cr_assert_eq(w.asked, 0);
}

Test(redis_subscription, closes_while_it_subscribes)
{
    open_confirming();
    rule("SUBSCRIBE", FAKE_SILENT, NULL, 0);
    open_link();
    until_asked("SUBSCRIBE inv");
    close_world();
    cr_assert_eq(w.ups, 0);
    cr_assert_eq(w.downs, 0);
}

Test(redis_subscription, closes_when_ready)
{
    open_ready();
    fake_redis_blurt(w.fake, MESSAGE("3", "inv", "1", "a"));
    close_world();
    cr_assert_eq(w.downs, 0, "its owner knows");
    cr_assert_str_eq(w.messages, "");
}

Test(redis_subscription, closes_while_it_waits_to_connect_again)
{
    open_ready();
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    close_world();
}

Test(redis_subscription, closes_inside_ready)
{
    open_confirming();
    w.closes_in_ready = true;
    open_link();
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    close_world();
}

Test(redis_subscription, closes_inside_a_message)
{
    for (int refuses = 0; refuses <= 1; refuses++) {
        open_ready();
        w.closes_in_message = true;
        w.refuses = refuses;
        fake_redis_blurt(w.fake, MESSAGE("3", "inv", "3", "bad") MESSAGE("3", "inv", "1", "b"));
        cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
        cr_assert_str_eq(w.messages, "inv=bad ");
        cr_assert_eq(w.downs, 0);
        close_world();
    }
}
