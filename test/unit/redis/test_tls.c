/* Links over TLS, to a server on the test's own loop. */
#include "redis/tls.h"
#include "certificates.h"
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

/* A handshake takes a busy machine a while; SHORT_MS where a test waits for the time to pass. */
enum { TIMEOUT_MS = 20000, SHORT_MS = 150, CALLS_MAX = 64, BIG_BYTES = 1024 * 1024, FLOOD_BYTES = 15 * 1024 * 1024 };

static struct world {
    uv_loop_t loop;
    struct fake_redis *fake;
    struct redis_link *link;
    struct certificate ca, server, other;
    struct redis_tls tls;
    struct tls_context *client, *served;
    unsigned replied, not_sent, lost, awaited, downs;
    bool is_closed;
} w;

static struct tls_context *give_context(struct redis_tls *tls)
{
    (void)tls;
    return tls_context_hold(w.client);
}

static struct tls_pem pem(const char *content)
{
    return (struct tls_pem){"test.pem", text_of(content)};
}

static struct tls_context *client_of(const struct certificate *ca, const struct certificate *own)
{
    struct tls_pair pair = {0};
    struct tls_client_settings settings = {.ca = pem(ca->pem), .pair = own ? &pair : NULL};
    struct tls_context *context;
    struct buf why;

    if (own)
        pair = (struct tls_pair){pem(own->pem), pem(own->key_pem)};
    buf_init(&why, 1024);
    context = tls_context_create_client(&settings, &why);
    cr_assert(context, "%.*s", TEXT_ARG(buf_text(&why)));
    buf_finish(&why);
    return context;
}

static struct tls_context *server_with(const struct certificate *own)
{
    const struct tls_pair pair = {pem(own->pem), pem(own->key_pem)};
    const struct tls_server_settings settings = {.pairs = &pair, .pair_count = 1, .service = TEXT("redis")};
    struct tls_context *context;
    struct buf why;

    buf_init(&why, 1024);
    context = tls_context_create_server(&settings, &why);
    cr_assert(context, "%.*s", TEXT_ARG(buf_text(&why)));
    buf_finish(&why);
    return context;
}

static void serve(const struct certificate *own)
{
    tls_context_release(w.served);
    w.served = server_with(own);
    fake_redis_secure(w.fake, w.served);
}

static void trust(const struct certificate *ca)
{
    tls_context_release(w.client);
    w.client = client_of(ca, NULL);
}

static void open_world(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(&w, 0, sizeof w);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    certificate_make(&w.ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&w.server,
                     &(struct certificate_wish){.name = "redis", .names = "DNS:redis-a,IP:127.0.0.1", .issuer = &w.ca});
    certificate_make(&w.other, &(struct certificate_wish){.name = "other", .names = "DNS:redis-b", .issuer = &w.ca});
    w.tls = (struct redis_tls){give_context};
    w.fake = fake_redis_create(&w.loop, NULL);
    serve(&w.server);
    trust(&w.ca);
}

static void on_closed(void *arg)
{
    (void)arg;
    w.is_closed = true;
}

static void on_ready(void *arg, bool is_up)
{
    (void)arg;
    w.downs += !is_up;
}

static void open_link_within(uint32_t timeout_ms, bool tls)
{
    const struct redis_link_settings settings = {
        .name = "reads", .timeout_ms = timeout_ms, .backoff_max_ms = 100, .calls_max = CALLS_MAX, .tls = &w.tls};
    const struct redis_target target = {
        .host = "127.0.0.1", .port = fake_redis_port(w.fake), .tls = tls, .login.password = "secret"};

    w.link = redis_link_create(&w.loop, &target, &settings, on_ready, NULL);
}

static void open_link(void)
{
    open_link_within(TIMEOUT_MS, true);
}

static void close_world(void)
{
    redis_link_close(w.link, on_closed, NULL);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    cr_assert_eq(w.awaited, 0);
    fake_redis_close(w.fake);
    cr_assert(test_loop_finish(&w.loop));
    tls_context_release(w.client);
    tls_context_release(w.served);
    certificate_free(&w.ca);
    certificate_free(&w.server);
    certificate_free(&w.other);
}

TestSuite(redis_link_tls, .fini = leak_guard);

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

static bool is_accepted(void *arg)
{
    (void)arg;
    return fake_redis_accepted(w.fake) > 0;
}

static bool nothing_awaited(void *arg)
{
    (void)arg;
    return w.awaited == 0;
}

static bool has_trouble(void *words)
{
    return strstr(redis_link_trouble(w.link), words);
}

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&w.loop, predicate, arg, PATIENCE_MS), "trouble: %s", redis_link_trouble(w.link));
}

static void until_trouble(const char *words)
{
    until(has_trouble, (void *)(uintptr_t)words);
}

static void on_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg;
    (void)reply;
    w.replied += outcome == REDIS_REPLIED;
    w.not_sent += outcome == REDIS_NOT_SENT;
    w.lost += outcome == REDIS_LOST;
    w.awaited--;
}

static void call_with(size_t bytes)
{
    char *argument = malloc(bytes);

    cr_assert(argument);
    memset(argument, 'x', bytes);
    w.awaited++;
    redis_link_call(w.link, 2, (struct text[]){TEXT("ECHO"), {argument, bytes}}, on_done, NULL);
    free(argument);
}

Test(redis_link_tls, commands_and_replies_of_every_size)
{
    open_world();
    open_link();
    until(is_ready, NULL);
    cr_assert_eq(fake_redis_count(w.fake, "AUTH secret"), 1);
    call_with(1);
    call_with(TLS_RECORD_BYTES);
    call_with(BIG_BYTES);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.replied, 3);
    cr_assert_eq(strlen(fake_redis_command(w.fake, "ECHO", 2)), strlen("ECHO ") + BIG_BYTES);
    static char answer[BIG_BYTES + 32];
    int head = snprintf(answer, sizeof answer, "$%d\r\n", BIG_BYTES);
    memset(answer + head, 'y', BIG_BYTES);
    snprintf(answer + head + BIG_BYTES, 3, "\r\n");
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "ECHO", .answer = answer});
    call_with(1);
    until(nothing_awaited, NULL);
    fake_redis_rule(w.fake, &(struct fake_rule){.command = "ECHO", .answer = "$5\r\nhello\r\n", .in_pieces = true});
    for (unsigned i = 0; i < 20; i++)
        call_with(i + 1);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.replied, 24);
    cr_assert_eq(w.downs, 0);
    close_world();
}

/* Not one byte of a command reaches a server that is not the wanted one. */
Test(redis_link_tls, a_server_with_another_name_gets_nothing)
{
    open_world();
    serve(&w.other);
    open_link();
    until_trouble("its certificate is for redis-b, not for 127.0.0.1");
    cr_assert_eq(fake_redis_count(w.fake, ""), 0);
    serve(&w.server);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link_tls, a_server_of_an_unknown_ca_gets_nothing)
{
    struct certificate stranger, forged;

    open_world();
    certificate_make(&stranger, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&forged,
                     &(struct certificate_wish){.name = "redis", .names = "IP:127.0.0.1", .issuer = &stranger});
    serve(&forged);
    open_link();
    until_trouble("its certificate comes from an unknown CA: set --redis-ca");
    cr_assert_eq(fake_redis_count(w.fake, ""), 0);
    trust(&stranger); /* the next connection takes the next context */
    until(is_ready, NULL);
    certificate_free(&stranger);
    certificate_free(&forged);
    close_world();
}

Test(redis_link_tls, a_server_that_does_not_answer_the_handshake)
{
    open_world();
    fake_redis_stop_reading(w.fake, true);
    open_link_within(SHORT_MS, true);
    until_trouble("the TLS handshake timed out");
    close_world();
}

Test(redis_link_tls, a_server_that_ends_in_the_middle_of_the_handshake)
{
    open_world();
    fake_redis_stop_reading(w.fake, true);
    open_link();
    until(is_accepted, NULL);
    fake_redis_go_away(w.fake);
    until_trouble("TLS handshake");
    fake_redis_stop_reading(w.fake, false);
    fake_redis_come_back(w.fake);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link_tls, garbage_in_place_of_a_handshake)
{
    static const char *const GARBAGE[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "-ERR unknown command\r\n",
                                          "\x15\x03\x03\x00\x02\x02\x28", "\x16\x03\x03\xff\xff zzzzzzz"};

    open_world();
    fake_redis_stop_reading(w.fake, true);
    open_link();
    for (unsigned i = 0; i < sizeof GARBAGE / sizeof *GARBAGE; i++) {
        unsigned before = fake_redis_accepted(w.fake);

        while (fake_redis_accepted(w.fake) == before)
            test_loop_for(&w.loop, 5);
        fake_redis_blurt(w.fake, GARBAGE[i]);
    }
    cr_assert_eq(w.downs, 0);
    fake_redis_stop_reading(w.fake, false);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link_tls, a_server_without_tls_is_told_from_others)
{
    open_world();
    fake_redis_stop_reading(w.fake, true);
    open_link();
    until(is_accepted, NULL);
    fake_redis_blurt(w.fake, "-ERR unknown command '\x16\x03\x01'\r\n");
    until_trouble("it does not speak TLS at this port");
    close_world();
}

Test(redis_link_tls, a_plain_link_to_a_server_with_tls)
{
    open_world();
    open_link_within(TIMEOUT_MS, false);
    until_trouble("use rediss://");
    cr_assert_eq(fake_redis_count(w.fake, ""), 0);
    close_world();
}

/* A command may have been sent as soon as it was encrypted. One that was not is certain not to have been. */
Test(redis_link_tls, what_was_encrypted_may_have_been_executed)
{
    open_world();
    open_link();
    until(is_ready, NULL);
    fake_redis_stop_reading(w.fake, true);
    call_with(FLOOD_BYTES); /* more than the kernel takes: the rest is under way */
    test_loop_for(&w.loop, 20);
    call_with(1); /* waits for that */
    test_loop_for(&w.loop, 20);
    cr_assert_eq(w.awaited, 2);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    until(is_down, NULL);
    until(nothing_awaited, NULL);
    cr_assert_eq(w.lost, 1);
    cr_assert_eq(w.not_sent, 1);
    fake_redis_stop_reading(w.fake, false);
    until(is_ready, NULL);
    close_world();
}

Test(redis_link_tls, a_link_closes_in_every_state)
{
    open_world();
    open_link();
    close_world();
    open_world();
    fake_redis_stop_reading(w.fake, true);
    open_link();
    until(is_accepted, NULL);
    cr_assert_eq(w.link->state, LINK_SECURING);
    close_world();
    open_world();
    open_link();
    until(is_ready, NULL);
    call_with(1);
    close_world();
    cr_assert_eq(w.replied + w.lost + w.not_sent, 1);
}

Test(redis_link_tls, reasons_are_explained)
{
    static const char *const SAME[] = {"its certificate is for a, not for b", "its certificate expired at x", ""};

    for (size_t i = 0; i < sizeof SAME / sizeof *SAME; i++)
        cr_assert_str_eq(redis_tls_explain(SAME[i]), SAME[i]);
    cr_assert(strstr(redis_tls_explain("tlsv13 alert certificate required"), "--redis-cert"));
    cr_assert(strstr(redis_tls_explain("ssl/tls alert handshake failure"), "--redis-cert"));
    cr_assert(strstr(redis_tls_explain("wrong version number"), "does not speak TLS"));
}
