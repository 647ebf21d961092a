#include "redis/link.h"
#include "base/machine.h"
#include "deadline.h"
#include "kernel.h"
#include "fake_redis.h"
#include "leak_guard.h"
#include "redis/link_internal.h"
#include "test_loop.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_MS = 150, BACKOFF_MAX_MS = 200 };

/* One loop, one fake Redis, one link, and the outcomes of calls. */
struct world {
    uv_loop_t loop;
    struct fake_redis *fake;
    struct redis_link *link;
    uint32_t timeout_ms; /* PATIENCE_MS, unless set after open_world() */
    uint32_t quiet_ms;   /* 0: the usual */
    unsigned replied, not_sent, lost, awaited;
    unsigned ups, downs;
    bool is_calling; /* inside redis_link_call() */
    bool to_master;  /* as in redis_link_settings */
    bool calls_again, closes_in_reply, closes_in_ready;
    bool is_closed;
    char replies[256]; /* texts, each followed by a blank */
};

static struct world w;

static void ignore_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(redis_link, .init = ignore_sigpipe, .fini = leak_guard);

static void on_closed(void *arg)
{
    (void)arg;
    cr_assert(!w.is_closed);
    w.is_closed = true;
}

static void on_ready(void *arg, bool ready)
{
    (void)arg;
    cr_assert_eq(redis_link_is_ready(w.link), ready);
    w.ups += ready;
    w.downs += !ready;
    if (ready && w.closes_in_ready)
        redis_link_close(w.link, on_closed, NULL);
}

static void call(const char *verb, struct text argument);

static void on_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg;
    cr_assert(!w.is_calling, "completed inside the call");
    cr_assert_eq(reply != NULL, outcome == REDIS_REPLIED);
    w.replied += outcome == REDIS_REPLIED;
    w.not_sent += outcome == REDIS_NOT_SENT;
    w.lost += outcome == REDIS_LOST;
    w.awaited--;
    if (reply && strlen(w.replies) + reply->text.len + 2 < sizeof w.replies)
        snprintf(w.replies + strlen(w.replies), sizeof w.replies - strlen(w.replies), "%.*s ", TEXT_ARG(reply->text));
    if (reply && w.closes_in_reply) {
        w.closes_in_reply = false;
        redis_link_close(w.link, on_closed, NULL);
    }
    if (w.calls_again)
        call("GET", TEXT("again"));
}

static void call(const char *verb, struct text argument)
{
    w.awaited++;
    w.is_calling = true;
    redis_link_call(w.link, 2, (struct text[]){text_of(verb), argument}, on_done, NULL);
    w.is_calling = false;
}

static bool nothing_awaited(void *arg)
{
    (void)arg;
    return w.awaited == 0;
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

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "trouble: %s", redis_link_trouble(w.link));
}

static void open_link(const struct redis_target *target, size_t calls_max)
{
    const struct redis_link_settings settings = {
        .name = "reads",
        .durations = HISTOGRAM_REDIS_READS,
        .timeout_ms = w.timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .quiet_ms = w.quiet_ms,
        .calls_max = calls_max,
        .to_master = w.to_master,
    };

    w.link = redis_link_create(&w.loop, target, &settings, on_ready, NULL);
}

static struct redis_target fake_target(void)
{
    return (struct redis_target){.host = "127.0.0.1", .port = fake_redis_port(w.fake)};
}

static void open_world(void)
{
    memset(&w, 0, sizeof w);
    w.timeout_ms = PATIENCE_MS;
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.fake = fake_redis_create(&w.loop, NULL);
}

static void open_ready(void)
{
    open_world();
    struct redis_target target = fake_target();
    open_link(&target, 1000);
    until(is_ready, NULL);
}

/* Everything under way ends, and nothing is left in the loop. */
static void close_world(void)
{
    bool was_closed = w.is_closed;

    if (!was_closed && w.link) {
        redis_link_close(w.link, on_closed, NULL);
        cr_assert(!w.is_closed);
    }
    w.calls_again = false;
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert_eq(w.awaited, 0, "closed is last");
    fake_redis_close(w.fake);
    cr_assert(test_loop_finish(&w.loop));
}

static void rule(const char *command, enum fake_action action, const char *answer, unsigned times)
{
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = command, .action = action, .answer = answer, .times = times});
}

/* Whoever makes a link may do other things before the loop runs, for longer than an attempt may take. */
Test(redis_link, no_time_of_the_first_attempt_passes_before_the_loop_runs)
{
    open_world();
    struct redis_target target = fake_target();
    open_link(&target, 1000);
    cr_assert_eq(w.link->state, LINK_WAITING);
    cr_assert_eq(uv_timer_get_due_in(&w.link->timer), 0);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link, answers_in_order)
{
    open_ready();
    rule("GET a", FAKE_ANSWER, "$1\r\nA\r\n", 0);
    rule("GET b", FAKE_ANSWER, "-ERR B\r\n", 0);
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "GET c", .answer = "$1\r\nC\r\n", .in_pieces = true});
    call("GET", TEXT("a"));
    call("GET", TEXT("b"));
    call("GET", TEXT("c"));
    w.awaited++;
    redis_link_call_raw(w.link, TEXT("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), on_done, NULL);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.replied, 4);
    cr_assert_str_eq(w.replies, "A ERR B C A ");
    cr_assert_eq(w.ups, 1);
    cr_assert_eq(w.downs, 0);
    cr_assert_str_eq(redis_link_trouble(w.link), "");
    close_world();
}

Test(redis_link, greets_with_user_database_and_name)
{
    open_world();
    struct redis_target target = fake_target();
    snprintf(target.login.user, sizeof target.login.user, "app");
    snprintf(target.login.password, sizeof target.login.password, "p w");
    target.db = 3;
    open_link(&target, 10);
    until(is_ready, NULL);
    cr_assert_str_eq(fake_redis_command(w.fake, "", 0), "AUTH app p w");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 1), "SELECT 3");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 2), "CLIENT SETNAME chatelaine-reads");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 3), "PING");
    close_world();
}

Test(redis_link, greets_with_the_password_alone)
{
    open_world();
    struct redis_target target = fake_target();
    snprintf(target.login.password, sizeof target.login.password, "secret");
    rule("CLIENT", FAKE_ANSWER, "-NOPERM no\r\n", 0);
    open_link(&target, 10);
    until(is_ready, NULL);
    cr_assert_str_eq(fake_redis_command(w.fake, "", 0), "AUTH secret");
    cr_assert_str_eq(fake_redis_command(w.fake, "", 1), "CLIENT SETNAME chatelaine-reads");
    close_world();
}

/* arg: the address of its text */
static bool has_trouble(void *arg)
{
    return strstr(redis_link_trouble(w.link), *(const char **)arg);
}

Test(redis_link, waits_until_the_greeting_is_answered_well)
{
    static const struct {
        const char *command;
        enum fake_action action;
        const char *answer, *trouble;
    } CASES[] = {
        {"AUTH", FAKE_ANSWER, "-WRONGPASS invalid\r\n", "WRONGPASS invalid"},
        {"AUTH", FAKE_ANSWER, "-ERR unknown command 'AUTH', with args beginning with: 'secret' \r\n", "command 'AUTH'"},
        {"SELECT", FAKE_ANSWER, "-ERR DB index is out of range\r\n", "out of range"},
        {"PING", FAKE_ANSWER, "-NOAUTH Authentication required.\r\n", "NOAUTH"},
        {"PING", FAKE_ANSWER, "-LOADING Redis is loading\r\n", "LOADING"},
        {"PING", FAKE_ANSWER, ":1\r\n", "not a Redis"},
        {"AUTH", FAKE_ANSWER, "HTTP/1.1 400 Bad Request\r\n\r\n", "invalid or oversized reply"},
        {"CLIENT", FAKE_CLOSE, NULL, "closed the connection"},
        {"PING", FAKE_RESET, NULL, "connection"},
        {"PING", FAKE_SILENT, NULL, "does not answer"},
        {"PING", FAKE_ANSWER, "+PONG\r\n+PONG\r\n", "no command waits for"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_world();
        struct redis_target target = fake_target();
        snprintf(target.login.password, sizeof target.login.password, "secret");
        target.db = 1;
        const char *trouble = CASES[i].trouble;
        if (CASES[i].action == FAKE_SILENT)
            w.timeout_ms = SHORT_MS;
        rule(CASES[i].command, CASES[i].action, CASES[i].answer, 1);
        open_link(&target, 10);
        until(has_trouble, &trouble);
        cr_assert_null(strstr(redis_link_trouble(w.link), "secret"));
        until(is_ready, NULL);
        close_world();
    }
}

Test(redis_link, refuses_calls_until_it_is_ready)
{
    open_world();
    struct redis_target target = fake_target();
    open_link(&target, 10);
    call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.not_sent, 1);
    cr_assert_eq(fake_redis_count(w.fake, "GET"), 0);
    close_world();
}

/* Trusts the timer: how late the loop gets to it depends on the machine. */
static void expect_due_in_time(void)
{
    cr_assert_leq(uv_timer_get_due_in(&w.link->timer), w.link->timeout_ms);
}

/* Without the greeting. */
Test(redis_link, measures_each_answered_call)
{
    open_ready();
    rule("GET", FAKE_ANSWER, "$1\r\nx\r\n", 0);
    cr_assert_eq(histogram_count(HISTOGRAM_REDIS_READS), 0);
    call("GET", TEXT("a"));
    call("GET", TEXT("b"));
    until(nothing_awaited, NULL);
    cr_assert_eq(histogram_count(HISTOGRAM_REDIS_READS), 2);
    close_world();
}

static bool has_lost(void *count)
{
    return w.lost >= *(unsigned *)count;
}

Test(redis_link, tells_each_call_at_its_own_deadline_while_redis_stalls)
{
    enum { LONG_MS = 2000 };

    open_ready();
    w.link->timeout_ms = LONG_MS;
    rule("GET", FAKE_ANSWER, "$1\r\nx\r\n", 0);
    fake_redis_rule(w.fake,
                    &(struct fake_rule){.command = "GET slow", .answer = "$4\r\nlate\r\n", .delay_ms = PATIENCE_MS});

    call("GET", TEXT("slow"));
    expect_due_in_time();
    test_loop_for(&w.loop, LONG_MS / 2);
    call("GET", TEXT("second"));
    until(has_lost, &(unsigned){1});
    cr_assert_eq(w.awaited, 1);
    call("GET", TEXT("third"));
    until(has_lost, &(unsigned){2});
    cr_assert_eq(w.awaited, 1);
    fake_redis_hurry(w.fake);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.lost, 2);
    cr_assert_eq(w.replied, 1);
    cr_assert_str_eq(w.replies, "x ", "a late reply is dropped, not given to the next call");
    cr_assert_eq(fake_redis_accepted(w.fake), 1, "the connection survived");
    close_world();
}

/* When every call under way has timed out, the timer waits until the connection is overdue, much later. */
Test(redis_link, keeps_the_deadline_of_a_call_behind_calls_that_were_told)
{
    open_ready();
    w.link->timeout_ms = 500; /* the connection is overdue at 2000 */
    rule("GET", FAKE_SILENT, NULL, 0);
    call("GET", TEXT("first"));
    until(nothing_awaited, NULL);

    call("GET", TEXT("second"));
    expect_due_in_time();
    until(nothing_awaited, NULL);
    cr_assert_eq(w.lost, 2);
    close_world();
}

Test(redis_link, gives_up_a_connection_that_is_long_overdue)
{
    open_ready();
    w.link->timeout_ms = 500;
    rule("GET", FAKE_SILENT, NULL, 1);
    call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.lost, 1);
    cr_assert(redis_link_is_ready(w.link));
    until(is_down, NULL);
    cr_assert(strstr(redis_link_trouble(w.link), "does not answer"));
    w.link->timeout_ms = PATIENCE_MS;
    until(is_ready, NULL);
    cr_assert_eq(fake_redis_accepted(w.fake), 2);
    close_world();
}

Test(redis_link, loses_what_was_sent_when_the_connection_breaks)
{
    static const struct {
        enum fake_action action;
        const char *answer;
    } CASES[] = {
        {FAKE_CLOSE, NULL},
        {FAKE_CLOSE, "$100\r\nha"},
        {FAKE_RESET, NULL},
        {FAKE_ANSWER, "no reply\r\n"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_ready();
        rule("GET", CASES[i].action, CASES[i].answer, 1);
        call("GET", TEXT("a"));
        call("GET", TEXT("b"));
        until(nothing_awaited, NULL);
        cr_assert_eq(w.lost, 2, "case %zu", i);
        cr_assert_eq(w.downs, 1, "case %zu", i);
        until(is_ready, NULL);
        rule("GET", FAKE_ANSWER, "$1\r\nx\r\n", 0);
        call("GET", TEXT("a"));
        until(nothing_awaited, NULL);
        cr_assert_str_eq(w.replies, "x ", "case %zu", i);
        close_world();
    }
}

static bool was_lost_once(void *arg)
{
    (void)arg;
    return w.downs == 1;
}

Test(redis_link, reconnects_after_bytes_that_nobody_asked_for)
{
    open_ready();
    fake_redis_blurt(w.fake, "+OK\r\n");
    until(was_lost_once, NULL);
    cr_assert(strstr(redis_link_trouble(w.link), "no command waits for"));
    until(is_ready, NULL);
    close_world();
}

Test(redis_link, reconnects_after_an_answer_that_came_twice)
{
    open_ready();
    rule("GET", FAKE_ANSWER, "+a\r\n+a\r\n", 1);
    call("GET", TEXT("a"));
    until(was_lost_once, NULL);
    cr_assert_eq(w.replied, 1);
    until(is_ready, NULL);
    close_world();
}

static bool says_that_there_is_no_run_id(void *arg)
{
    (void)arg;
    return strstr(redis_link_trouble(w.link), "no run_id");
}

/* A run id that is as long as one, but that no C string can hold: all such servers would be the same one. */
Test(redis_link, a_run_id_with_a_nul_is_none)
{
    static const char *const INFO = "$49\r\nrun_id:~123456789012345678901234567890123456789\r\n\r\n";

    open_world();
    struct redis_target target = fake_target();
    w.to_master = true;
    rule("INFO", FAKE_NUL, INFO, 0);
    open_link(&target, 10);
    until(says_that_there_is_no_run_id, NULL);
    cr_assert_eq(w.ups, 0);
    close_world();
}

static bool two_are_done(void *arg)
{
    (void)arg;
    return w.replied + w.not_sent + w.lost >= 2;
}

/* Whose command has not even been sent. */
Test(redis_link, an_answer_that_came_twice_is_not_that_of_the_next_call)
{
    open_ready();
    rule("GET", FAKE_ANSWER, "+a\r\n+a\r\n", 1);
    w.calls_again = true;
    call("GET", TEXT("a"));
    until(two_are_done, NULL);
    w.calls_again = false;
    cr_assert_eq(w.replied, 1);
    cr_assert_eq(w.not_sent, 1);
    cr_assert(strstr(redis_link_trouble(w.link), "no command waits for"));
    until(is_ready, NULL);
    close_world();
}

static bool is_refused(void *arg)
{
    (void)arg;
    return w.link->state == LINK_WAITING && strstr(redis_link_trouble(w.link), "connection refused");
}

Test(redis_link, is_back_soon_after_redis_is)
{
    open_ready();
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.not_sent, 1);
    test_loop_for(&w.loop, 500);
    until(is_refused, NULL);
    cr_assert_leq(uv_timer_get_due_in(&w.link->timer), BACKOFF_MAX_MS);
    fake_redis_come_back(w.fake);
    until(is_ready, NULL);
    cr_assert_eq(w.ups, 2);
    cr_assert_eq(w.downs, 1);
    close_world();
}

static bool has_been_up(void *times)
{
    return w.ups >= *(unsigned *)times;
}

Test(redis_link, does_not_hammer_a_redis_that_hangs_up_on_it)
{
    open_world();
    struct redis_target target = fake_target();
    rule("PING", FAKE_CLOSE, "+PONG\r\n", 0);
    open_link(&target, 10);
    test_loop_for(&w.loop, 800);
    cr_assert_lt(fake_redis_accepted(w.fake), 15);
    until(has_been_up, &(unsigned){3});
    close_world();
}

static bool exceeds_one(void *count)
{
    return *(unsigned *)count > 1;
}

Test(redis_link, callbacks_that_call_again_do_not_hold_the_loop)
{
    open_ready();
    w.calls_again = true;
    call("GET", TEXT("a"));
    until(exceeds_one, &w.replied);
    fake_redis_go_away(w.fake);
    until(exceeds_one, &w.not_sent);
    close_world();
}

Test(redis_link, bounds_the_calls_under_way)
{
    open_world();
    struct redis_target target = fake_target();
    open_link(&target, 8);
    until(is_ready, NULL);
    for (unsigned i = 0; i < 20; i++)
        call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.replied, 8);
    cr_assert_eq(w.not_sent, 12);
    for (unsigned i = 0; i < 8; i++)
        call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.replied, 16);
    close_world();
}

static unsigned in_order; /* calls that were answered, each when it was its turn */

static void on_next(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    const unsigned *number = arg;

    (void)reply;
    cr_assert_eq(outcome, REDIS_REPLIED);
    cr_assert_eq(*number, in_order);
    in_order++;
    w.awaited--;
}

/* Its calls are a ring, with room for 64 at first. */
Test(redis_link, has_room_for_more_calls_while_many_are_under_way)
{
    enum { EARLIER = 40, AT_ONCE = 300 };
    unsigned numbers[AT_ONCE];

    open_ready();
    for (unsigned i = 0; i < EARLIER; i++)
        call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    for (unsigned round = 0; round < 2; round++) {
        in_order = 0;
        for (unsigned i = 0; i < AT_ONCE; i++) {
            numbers[i] = i;
            w.awaited++;
            redis_link_call(w.link, 2, (struct text[]){TEXT("GET"), TEXT("a")}, on_next, &numbers[i]);
        }
        until(nothing_awaited, NULL);
        cr_assert_eq(in_order, AT_ONCE);
    }
    close_world();
}

Test(redis_link, bounds_its_output_and_stays_in_step)
{
    enum { PIECE_BYTES = 3 * 1024 * 1024 };
    char *piece = calloc(1, PIECE_BYTES);

    memset(piece, 'x', PIECE_BYTES);
    open_ready();
    rule("PUT", FAKE_ANSWER, "+put\r\n", 0);
    for (unsigned i = 0; i < 8; i++)
        call("PUT", (struct text){piece, PIECE_BYTES});
    call("GET", TEXT("a"));
    until(nothing_awaited, NULL);
    cr_assert_eq(w.not_sent, 3);
    cr_assert_eq(w.replied, 6);
    cr_assert_eq(fake_redis_count(w.fake, "GET a"), 1, "what did not fit left no bytes behind");
    close_world();
    free(piece);
}

Test(redis_link, knows_what_was_surely_not_sent)
{
    enum { PIECE_BYTES = 1024 * 1024, PIECES = 12 };
    char *piece = calloc(1, PIECE_BYTES);

    memset(piece, 'x', PIECE_BYTES);
    open_ready();
    fake_redis_stop_reading(w.fake, true);
    /* More than the kernel takes: libuv keeps the rest, and we keep what comes after it. */
    for (unsigned i = 0; i < PIECES; i++)
        call("PUT", (struct text){piece, PIECE_BYTES});
    test_loop_for(&w.loop, 50);
    call("GET", TEXT("a"));
    call("GET", TEXT("b"));
    test_loop_for(&w.loop, 30);
    fake_redis_go_away(w.fake);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.not_sent, 2);
    cr_assert_eq(w.lost, PIECES);
    cr_assert_eq(fake_redis_count(w.fake, "GET"), 0);
    close_world();
    free(piece);
}

Test(redis_link, tries_every_address_of_a_name)
{
    open_world();
    struct redis_target target = fake_target();
    /* May resolve to ::1 first, where nobody listens. */
    snprintf(target.host, sizeof target.host, "localhost");
    open_link(&target, 10);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link, names_what_does_not_resolve)
{
    open_world();
    struct redis_target target = fake_target();
    snprintf(target.host, sizeof target.host, "no-such-host.invalid");
    open_link(&target, 10);
    until(has_trouble, &(const char *){"no-such-host.invalid:"});
    cr_assert_eq(w.ups, 0);
    close_world();
}

Test(redis_link, speaks_over_a_unix_socket)
{
    char path[64];

    memset(&w, 0, sizeof w);
    w.timeout_ms = PATIENCE_MS;
    snprintf(path, sizeof path, "/tmp/fake-redis-%d.sock", (int)getpid());
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.fake = fake_redis_create(&w.loop, path);
    struct redis_target target = {.is_unix = true};
    snprintf(target.host, sizeof target.host, "%s", path);
    open_link(&target, 10);
    until(is_ready, NULL);
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    fake_redis_come_back(w.fake);
    until(is_ready, NULL);
    close_world();
}

/* Closing at every moment of a link's life: close_world() asserts that everything under way ends. */

static bool is_resolving(void *arg)
{
    (void)arg;
    return w.loop.active_reqs.count > 0;
}

static bool is_accepted(void *arg)
{
    (void)arg;
    return fake_redis_accepted(w.fake) > 0;
}

Test(redis_link, closes_before_the_loop_ran)
{
    open_world();
    struct redis_target target = fake_target();
    open_link(&target, 10);
    call("GET", TEXT("a"));
    close_world();
    cr_assert_eq(w.not_sent, 1);
}

Test(redis_link, closes_while_it_resolves_or_connects)
{
    open_world();
    struct redis_target target = fake_target();
    snprintf(target.host, sizeof target.host, "localhost");
    open_link(&target, 10);
    until(is_resolving, NULL);
    close_world();
}

Test(redis_link, closes_while_it_greets)
{
    open_world();
    struct redis_target target = fake_target();
    rule("PING", FAKE_SILENT, NULL, 0);
    open_link(&target, 10);
    until(is_accepted, NULL);
    close_world();
    cr_assert_eq(w.ups, 0);
}

Test(redis_link, closes_while_it_waits_to_connect_again)
{
    open_ready();
    fake_redis_go_away(w.fake);
    until(is_down, NULL);
    call("GET", TEXT("a"));
    close_world();
    cr_assert_eq(w.not_sent, 1);
}

Test(redis_link, closes_with_calls_queued_and_sent)
{
    open_ready();
    rule("GET", FAKE_SILENT, NULL, 0);
    call("GET", TEXT("sent"));
    test_loop_for(&w.loop, 20);
    call("GET", TEXT("queued"));
    close_world();
    cr_assert_eq(w.lost, 1);
    cr_assert_eq(w.not_sent, 1);
    cr_assert_eq(w.downs, 0, "its owner knows");
}

Test(redis_link, closes_inside_a_reply)
{
    open_ready();
    w.closes_in_reply = true;
    for (unsigned i = 0; i < 3; i++)
        call("GET", TEXT("a"));
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert_eq(w.replied, 1);
    cr_assert_eq(w.lost, 2);
    close_world();
}

Test(redis_link, closes_inside_ready)
{
    open_world();
    struct redis_target target = fake_target();
    w.closes_in_ready = true;
    open_link(&target, 10);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    close_world();
}

Test(redis_link, closes_while_much_is_being_written)
{
    enum { PIECE_BYTES = 8 * 1024 * 1024 };
    char *piece = calloc(1, PIECE_BYTES);

    open_ready();
    fake_redis_stop_reading(w.fake, true);
    call("PUT", (struct text){piece, PIECE_BYTES});
    test_loop_for(&w.loop, 20);
    close_world();
    cr_assert_eq(w.lost, 1);
    free(piece);
}

static bool was_pinged_twice(void *arg)
{
    (void)arg;
    return fake_redis_count(w.fake, "PING") >= 3; /* one is of the greeting */
}

static void open_quiet(uint32_t timeout_ms)
{
    open_world();
    w.timeout_ms = timeout_ms;
    w.quiet_ms = 30;
    struct redis_target target = fake_target();
    open_link(&target, 1000);
    until(is_ready, NULL);
}

Test(redis_link, breaks_the_quiet)
{
    open_quiet(1000);
    until(was_pinged_twice, NULL);
    cr_expect_eq(w.downs, 0);
    close_world();
}

/* No call is needed to learn it, and none is lost. */
Test(redis_link, learns_in_the_quiet_that_redis_is_gone)
{
    open_quiet(100);
    rule("PING", FAKE_SILENT, NULL, 1);
    until(is_down, NULL);
    until(is_ready, NULL);
    cr_expect_eq(w.lost + w.not_sent, 0);
    close_world();
}

/* Forbidden moves */

Test(redis_link, greeting_twice_ends_the_process, .signal = SIGABRT)
{
    open_ready();
    link_greet(w.link);
}

Test(redis_link, in_a_release_greeting_twice_ends_the_connection)
{
    machine_set_fatal(false);
    open_ready();
    link_greet(w.link);
    cr_assert_not(redis_link_is_ready(w.link));
    cr_assert_eq(w.downs, 1);
    until(is_ready, NULL);
    cr_assert_eq(w.ups, 2);
    close_world();
}
