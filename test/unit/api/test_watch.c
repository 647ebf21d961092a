/* What a watcher of revocations gets, and when its stream ends. */
#include "fake_watch.h"
#include "fake_world.h"

#include "api/watch_peers_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* An address that the fakes only pass on. */
static char feed;

static void begin(void)
{
    world_begin();
    fake_watch = (struct fake_watch){0};
    world.service.watch_feed = (struct watch_feed *)&feed;
    world.service.watchers_max = 1;
}

TestSuite(watch, .init = begin, .fini = world_end);

/* Version 1, no store, one partition at 5-1. */
static const struct watch_cursor CURSOR = {.count = 1, .at = {{5, 1}}};
#define CURSOR_TEXT "AQAAAAAAAAAAAAUB"
#define ID "key_01jd6z9k3m7q4v8x2n5p0r1s6t"
#define ACCOUNT "acct_01jd6z9k3m7q4v8x2n5p0r1s6t"

static struct http_request *watch(const char *target, const char *headers)
{
    return request_check(HTTP_GET, target, headers, NULL);
}

static void expect_sent(const char *text)
{
    fake_watch.events.flush(fake_watch.arg);
    cr_expect_str_eq(world.piece, text);
    world_run();
}

static void end(struct http_request *request)
{
    fake_watch.is_there = false;
    fake_watch.events.ended(fake_watch.arg, WATCH_DRAINING);
    cr_expect_str_eq(world.piece, "event: closing\ndata: {\"reason\":\"draining\"}\n\n");
    world_run();
    cr_expect_eq(world.stream, STREAM_WHOLE);
    cr_expect_eq(world.service.watchers, 0);
    request_forget(request);
}

static void tell(enum invalidation_kind kind, const char *key, int64_t at_ms)
{
    struct invalidation invalidation = {.kind = kind, .at_ms = at_ms, .account = {ACCOUNT}};

    snprintf(invalidation.key.text, sizeof invalidation.key.text, "%s", key);
    fake_watch.events.event(fake_watch.arg, &invalidation, &CURSOR);
}

/* The listener for gateways looks for no secrets, but it must not say one again: neither whole nor in part. */
Test(watch, a_secret_for_a_name_is_not_said_again)
{
    static const char *const TARGETS[] = {
        "/check/watch?svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV36BX0h=1",
        "/check/watch?svc_sk_live_0123456789ABCDEFGHIJ=1",
        "/check/watch?svc%5Fdk_0123456789=%zz",
        "/check/watch?a_name_that_is_longer_than_what_is_said_again_of_it_svc_sk_live_0123456789=1",
    };

    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        struct http_request *request = watch(TARGETS[i], "");

        cr_expect_eq(answer_status(request), 400, "%s", TARGETS[i]);
        cr_expect_not(strstr(answer_body(request), "svc_"), "%s: %s", TARGETS[i], answer_body(request));
        cr_expect_not(strstr(answer_body(request), "param\""), "%s: %s", TARGETS[i], answer_body(request));
        request_forget(request);
    }
}

Test(watch, says_what_happened)
{
    static const struct {
        enum invalidation_kind kind;
        const char *key, *sent;
    } CASES[] = {
        {INVALIDATION_REVOKED, ID,
         "event: revoked\nid: " CURSOR_TEXT "\ndata: {\"id\":\"" ID "\",\"kind\":\"api_key\",\"account\":\"" ACCOUNT
         "\",\"revoked_at\":\"2024-11-26T12:00:00.000Z\"}\n\n"},
        {INVALIDATION_SCHEDULED, "dev_01jd6z9k3m7q4v8x2n5p0r1s6t",
         "event: scheduled\nid: " CURSOR_TEXT
         "\ndata: {\"id\":\"dev_01jd6z9k3m7q4v8x2n5p0r1s6t\",\"kind\":\"device_key\",\"account\":\"" ACCOUNT
         "\",\"revoked_at\":\"2024-11-26T12:00:00.000Z\"}\n\n"},
        {INVALIDATION_UNSCHEDULED, ID,
         "event: unscheduled\nid: " CURSOR_TEXT "\ndata: {\"id\":\"" ID "\",\"kind\":\"api_key\",\"account\":\"" ACCOUNT
         "\"}\n\n"},
        {INVALIDATION_SUSPENDED, "",
         "event: suspended\nid: " CURSOR_TEXT "\ndata: {\"id\":\"" ACCOUNT
         "\",\"kind\":\"account\",\"account\":\"" ACCOUNT "\",\"suspended_at\":\"2024-11-26T12:00:00.000Z\"}\n\n"},
        {INVALIDATION_RESUMED, "",
         "event: resumed\nid: " CURSOR_TEXT "\ndata: {\"id\":\"" ACCOUNT
         "\",\"kind\":\"account\",\"account\":\"" ACCOUNT "\",\"resumed_at\":\"2024-11-26T12:00:00.000Z\"}\n\n"},
    };
    struct http_request *request = watch("/check/watch", "");

    cr_expect_eq(answer_status(request), 200);
    cr_expect(!fake_watch.has_since);
    cr_expect_eq(world.service.watchers, 1);
    fake_watch.events.began(fake_watch.arg, &CURSOR);
    expect_sent("retry: 500\nevent: ready\nid: " CURSOR_TEXT
                "\ndata: {\"watcher\":\"0123456789abcdef0123456789abcdef\",\"wait_ms\":1300,\"waited_for\":false}\n\n");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        tell(CASES[i].kind, CASES[i].key, 1732622400000);
        expect_sent(CASES[i].sent);
    }
    fake_watch.events.gap(fake_watch.arg, &CURSOR);
    expect_sent("event: gap\nid: " CURSOR_TEXT
                "\ndata: {\"message\":\"Revocations may be missing here: end or check again all that runs.\"}\n\n");
    fake_watch.events.tick(fake_watch.arg, 730);
    expect_sent("event: current\ndata: {\"valid_ms\":730}\n\n");
    fake_watch.events.tick(fake_watch.arg, 0);
    expect_sent(": not current\n\n");
    end(request);
}

/* It holds what it was told while a piece was on its way, and wants no more until that is sent. */
Test(watch, has_room_once_it_has_sent)
{
    struct http_request *request = watch("/check/watch", "");

    cr_expect(fake_watch.events.has_room(fake_watch.arg));
    tell(INVALIDATION_REVOKED, ID, 1);
    fake_watch.events.flush(fake_watch.arg);
    cr_expect_eq(world.pieces, 1);
    cr_expect(fake_watch.events.has_room(fake_watch.arg));
    tell(INVALIDATION_REVOKED, ID, 2);
    fake_watch.events.flush(fake_watch.arg);
    fake_watch.events.tick(fake_watch.arg, 100);
    cr_expect_eq(world.pieces, 1, "one at a time");
    cr_expect(!fake_watch.events.has_room(fake_watch.arg));
    world_run();
    cr_expect_eq(world.pieces, 2);
    cr_expect(strstr(world.piece, "event: revoked") && !strstr(world.piece, "current"), "%s", world.piece);
    cr_expect_eq(fake_watch.resumptions, 1);
    end(request);
}

Test(watch, goes_on_from_where_it_was)
{
    struct http_request *request = watch("/check/watch?since=AQAAAAAAAAAAAAAA", "Last-Event-ID: " CURSOR_TEXT "\n");

    cr_assert(fake_watch.has_since);
    cr_expect(log_position_equal(fake_watch.since.at[0], CURSOR.at[0]), "the header is the later one");
    end(request);
}

Test(watch, ends_when_its_client_is_gone)
{
    struct http_request *request = watch("/check/watch", "");

    request_leave(request);
    fake_watch.events.tick(fake_watch.arg, 100);
    world_run();
    cr_expect(!fake_watch.is_there);
    cr_expect_eq(world.service.watchers, 0);
    request_forget(request);
}

static void expect_refused(const char *target, const char *headers, int status)
{
    struct http_request *request = watch(target, headers);

    cr_expect_eq(answer_status(request), status, "%s: %d", target, answer_status(request));
    cr_expect(!fake_watch.is_there);
    request_forget(request);
}

Test(watch, is_refused)
{
    expect_refused("/check/watch?since=A", "", 400);
    expect_refused("/check/watch", "Last-Event-ID: A\n", 400);
    expect_refused("/check/watch?from=1", "", 400);
    world.service.watchers_max = 0;
    expect_refused("/check/watch", "", 503);
    world.service.watchers_max = 1;
    world.service.draining = true;
    expect_refused("/check/watch", "", 503);
    world.service.draining = false;
    world.session_result = STORE_UNAVAILABLE;
    expect_refused("/check/watch", "", 503);
    world.service.watch_feed = NULL;
    expect_refused("/check/watch", "", 404);
}

/* Peers */

static struct service places;

static void leave_all(struct watch_peer *peer)
{
    while (peer->watchers > 0)
        watch_peer_leave(peer);
}

Test(watch, no_peer_takes_more_than_half_of_the_places)
{
    struct watch_peer *peer = NULL;

    places = (struct service){.watchers_max = 5};
    for (int i = 0; i < 3; i++)
        cr_assert((peer = watch_peer_enter(&places, TEXT("192.0.2.1"), 1)));
    cr_expect_null(watch_peer_enter(&places, TEXT("192.0.2.1"), 1));
    cr_expect(watch_peer_enter(&places, TEXT("192.0.2.2"), 1));
    cr_expect(watch_peer_enter(&places, TEXT(""), 1), "a socket");
    watch_peer_leave(peer);
    cr_expect_eq(watch_peer_enter(&places, TEXT("192.0.2.1"), 1), peer);
}

Test(watch, more_peers_than_rows_are_refused_and_rows_are_used_again)
{
    struct watch_peer *first = NULL;
    char name[16];

    places = (struct service){.watchers_max = 1000};
    for (int i = 0; i < SERVICE_WATCH_PEERS; i++) {
        snprintf(name, sizeof name, "192.0.2.%d", i);
        struct watch_peer *peer = watch_peer_enter(&places, text_of(name), 1);

        cr_assert(peer);
        first = first ? first : peer;
    }
    cr_expect_null(watch_peer_enter(&places, TEXT("198.51.100.9"), 1));
    leave_all(first);
    cr_expect_eq(watch_peer_enter(&places, TEXT("198.51.100.9"), 1), first);
}

Test(watch, a_peer_that_breaks_its_subscriptions_is_not_waited_for)
{
    const uint64_t within_ns = WATCH_BROKEN_WITHIN_S * UINT64_C(1000000000);
    struct watch_peer *peer, *other;

    places = (struct service){.watchers_max = 10};
    for (int i = 0; i < WATCH_BROKEN_MAX; i++) {
        cr_assert((peer = watch_peer_enter(&places, TEXT("192.0.2.1"), 5)));
        cr_expect_eq(watch_peer_pause_s(peer, 5), 0);
        watch_peer_note_broken(peer, 5);
        watch_peer_leave(peer);
    }
    peer = watch_peer_enter(&places, TEXT("192.0.2.1"), 6);
    other = watch_peer_enter(&places, TEXT("192.0.2.2"), 6);
    cr_assert(peer && other);
    cr_expect_eq(watch_peer_pause_s(peer, 6), WATCH_BROKEN_WITHIN_S);
    cr_expect_eq(watch_peer_pause_s(other, 6), 0);
    cr_expect_eq(watch_peer_pause_s(peer, within_ns + 4), 1);
    cr_expect_eq(watch_peer_pause_s(peer, within_ns + 5), 0, "it may try again");
    watch_peer_note_broken(peer, within_ns + 5);
    cr_expect_eq(watch_peer_pause_s(peer, within_ns + 5), 0);
}

/* By its own requests. It would take a stream that is not waited for as one that is. */
Test(watch, a_watcher_that_would_not_be_waited_for_is_refused)
{
    for (int i = 0; i < WATCH_BROKEN_MAX; i++) {
        world.stream = STREAM_UNENDED;
        struct http_request *request = watch("/check/watch?acknowledge=1", "");

        cr_expect(fake_watch.acknowledges);
        fake_watch.events.began(fake_watch.arg, &CURSOR);
        fake_watch.events.flush(fake_watch.arg);
        cr_expect(strstr(world.piece, "\"waited_for\":true"), "%s", world.piece);
        world_run();
        fake_watch.is_there = false;
        fake_watch.events.ended(fake_watch.arg, WATCH_LATE);
        world_run();
        cr_expect_eq(world.service.watchers, 0, "run %d", i);
        request_forget(request);
    }
    struct http_request *request = watch("/check/watch?acknowledge=1", "");
    cr_expect_eq(answer_status(request), 503);
    cr_expect_eq(answer_problem(request)->code, PROBLEM_OVERLOADED);
    cr_expect(answer_problem(request)->retry_after_s > WATCH_BROKEN_WITHIN_S / 2, "%u",
              answer_problem(request)->retry_after_s);
    request_forget(request);
    cr_expect_eq(world.service.watchers, 0);
    world.stream = STREAM_UNENDED;
    request = watch("/check/watch", "");
    fake_watch.events.began(fake_watch.arg, &CURSOR);
    fake_watch.events.flush(fake_watch.arg);
    cr_expect(strstr(world.piece, "\"waited_for\":false"), "%s", world.piece);
    world_run();
    end(request);
}

static int ask(const char *peer, const char *client_name)
{
    struct http_request *request;
    int status;

    world.peer = peer;
    world.client_name = client_name;
    world.stream = STREAM_UNENDED;
    fake_watch = (struct fake_watch){0};
    request = watch("/check/watch?acknowledge=1", "");
    status = answer_status(request);
    if (fake_watch.is_there) {
        end(request);
        return 200;
    }
    request_forget(request);
    return status;
}

Test(watch, only_those_that_are_named_may_watch)
{
    world.service.watch_names = TEXT("gateway-1, spiffe://clinic.example/gateway,unix");
    cr_expect_eq(ask("192.0.2.1", "gateway-1"), 200);
    cr_expect_eq(ask("192.0.2.1", "spiffe://clinic.example/gateway"), 200);
    cr_expect_eq(ask("unix", ""), 200);
    cr_expect_eq(ask("192.0.2.1", ""), 403);
    cr_expect_eq(ask("192.0.2.1", "gateway-2"), 403);
    cr_expect_eq(ask("192.0.2.1", "gateway"), 403);
    cr_expect_eq(ask("192.0.2.1", "Gateway-1"), 403);
    cr_expect_eq(ask("unix", "gateway-2"), 403);
    world.service.watch_names = TEXT("gateway-1");
    cr_expect_eq(ask("unix", ""), 403);
    world.service.watch_names = TEXT("");
    cr_expect_eq(ask("192.0.2.1", "gateway-2"), 200);
    cr_expect_eq(ask("192.0.2.1", ""), 200);
}

/* Behind one address. */
Test(watch, peers_are_told_apart_by_the_names_of_their_certificates)
{
    for (int i = 0; i < WATCH_BROKEN_MAX; i++) {
        fake_watch = (struct fake_watch){0};
        world.peer = "192.0.2.1";
        world.client_name = "gateway-1";
        world.stream = STREAM_UNENDED;
        struct http_request *request = watch("/check/watch?acknowledge=1", "");

        fake_watch.is_there = false;
        fake_watch.events.ended(fake_watch.arg, WATCH_LATE);
        world_run();
        request_forget(request);
    }
    cr_expect_eq(ask("192.0.2.1", "gateway-1"), 503);
    cr_expect_eq(ask("192.0.2.9", "gateway-1"), 503, "wherever it comes from");
    cr_expect_eq(ask("192.0.2.1", "gateway-2"), 200);
    cr_expect_eq(ask("gateway-1", ""), 200, "a peer without a certificate has another name");
    cr_expect_eq(ask("192.0.2.1", "192.0.2.1"), 200);
}
