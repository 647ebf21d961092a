/* Watching revocations (src/api/README.md#watching-revocations): a stream of server-sent events (WHATWG HTML,
 * section 9.2). */
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "exchange_client_internal.h"
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "http/stream.h"
#include "view/view.h"
#include "watch_peers_internal.h"

#include <stdio.h>

enum {
    /* One page of entries: each has a cursor and four texts of an id or a time. */
    PENDING_MAX_BYTES = (INVALIDATIONS_PER_PAGE + 8) * (WATCH_CURSOR_MAX_CHARS + 512),
    RECONNECT_MS = 500, /* what clients are asked to wait */
    LOG_PAUSE_MS = 60000,
};

#define UNIX_PEER "unix" /* of --check-socket, see http_request_peer() */

/* One watcher, from its request until its stream has ended. */
struct watch {
    struct exchange *exchange;
    struct watcher *watcher; /* NULL: it gets no further event, and ends when all is sent */
    struct watch_peer *peer; /* whose it is */
    bool is_waited_for;      /* by revocations */
    struct buf pending;      /* events to send */
    bool is_sending;         /* a piece is on its way */
};

/* Sending */

static void end(struct watch *watch)
{
    struct http_request *request = watch->exchange->request;

    buf_finish(&watch->pending);
    watch->exchange->service->watchers--;
    watch_peer_leave(watch->peer);
    if (watch->pending.failed)
        http_stream_break(request);
    else
        http_stream_end(request);
    http_request_release(request);
}

static void note_broken(struct watch *watch)
{
    if (watch->is_waited_for)
        watch_peer_note_broken(watch->peer, clock_boot_ns());
}

static void give_up(struct watch *watch)
{
    if (watch->watcher) {
        note_broken(watch);
        watcher_remove(watch->watcher);
    }
    watch->watcher = NULL;
}

static void piece_sent(void *arg);

static void send_pending(struct watch *watch)
{
    struct http_request *request = watch->exchange->request;

    if (watch->is_sending)
        return;
    if (http_request_gone(request) || watch->pending.failed)
        give_up(watch);
    else if (watch->pending.len > 0) {
        watch->is_sending = true;
        http_stream_send(request, buf_text(&watch->pending), piece_sent, watch);
        buf_clear(&watch->pending);
        return;
    }
    if (!watch->watcher)
        end(watch);
}

static void piece_sent(void *arg)
{
    struct watch *watch = arg;

    watch->is_sending = false;
    if (watch->watcher && watch->pending.len == 0 && !http_request_gone(watch->exchange->request))
        watcher_resume(watch->watcher);
    else
        send_pending(watch);
}

/* Events */

static void print_begin(struct watch *watch, const char *event, const struct watch_cursor *cursor,
                        struct json_writer *ret_writer)
{
    struct buf *out = &watch->pending;

    buf_printf(out, "event: %s\n", event);
    if (cursor) {
        buf_append_str(out, "id: ");
        watch_cursor_print(cursor, out);
        buf_append_char(out, '\n');
    }
    buf_append_str(out, "data: ");
    *ret_writer = (struct json_writer){.out = out};
    json_object_begin(ret_writer);
}

static void print_end(struct json_writer *w)
{
    json_object_end(w);
    buf_append_str(w->out, "\n\n");
}

static void on_began(void *arg, const struct watch_cursor *cursor)
{
    struct watch *watch = arg;
    struct json_writer w;

    buf_printf(&watch->pending, "retry: %d\n", RECONNECT_MS);
    print_begin(watch, "ready", cursor, &w);
    json_put_member(&w, "watcher", text_of(watcher_id(watch->watcher)));
    json_put_number(&w, "wait_ms", watch_feed_wait_ms(watch->exchange->service->watch_feed));
    json_put_flag(&w, "waited_for", watch->is_waited_for);
    print_end(&w);
}

static void on_event(void *arg, const struct invalidation *invalidation, const struct watch_cursor *cursor)
{
    static const struct {
        const char *event, *time;
    } FORMS[] = {
        [INVALIDATION_UNREADABLE] = {"gap", "at"},
        [INVALIDATION_REVOKED] = {"revoked", "revoked_at"},
        [INVALIDATION_SCHEDULED] = {"scheduled", "revoked_at"},
        [INVALIDATION_UNSCHEDULED] = {"unscheduled", NULL},
        [INVALIDATION_SUSPENDED] = {"suspended", "suspended_at"},
        [INVALIDATION_RESUMED] = {"resumed", "resumed_at"},
    };
    bool is_key = invalidation->key.text[0] != '\0';
    bool is_device = is_key && id_kind_of(id_text(&invalidation->key)) == ID_DEVICE;
    struct json_writer w;

    print_begin(arg, FORMS[invalidation->kind].event, cursor, &w);
    json_put_member(&w, "id", id_text(is_key ? &invalidation->key : &invalidation->account));
    json_put_member(&w, "kind", is_key ? key_kind_text(is_device ? KEY_DEVICE : KEY_API) : TEXT("account"));
    json_put_member(&w, "account", id_text(&invalidation->account));
    if (FORMS[invalidation->kind].time)
        view_put_time(&w, FORMS[invalidation->kind].time, invalidation->at_ms);
    print_end(&w);
}

static void on_gap(void *arg, const struct watch_cursor *cursor)
{
    struct json_writer w;

    print_begin(arg, "gap", cursor, &w);
    json_put_member(&w, "message", TEXT("Revocations may be missing here: end or check again all that runs."));
    print_end(&w);
}

static void on_flush(void *arg)
{
    send_pending(arg);
}

static bool has_room(void *arg)
{
    const struct watch *watch = arg;

    return watch->pending.len == 0 && !watch->pending.failed;
}

/* A comment when nothing is certain, because a client that is gone is only noticed by sending. */
static void on_tick(void *arg, uint32_t valid_ms)
{
    struct watch *watch = arg;
    struct json_writer w;

    if (watch->is_sending || watch->pending.len > 0)
        return;
    if (valid_ms > 0) {
        print_begin(watch, "current", NULL, &w);
        json_put_number(&w, "valid_ms", valid_ms);
        print_end(&w);
    } else {
        buf_append_str(&watch->pending, ": not current\n\n");
    }
    send_pending(watch);
}

static void on_ended(void *arg, enum watch_end why)
{
    static const char *const REASONS[] = {[WATCH_DRAINING] = "draining", [WATCH_LATE] = "late"};
    struct watch *watch = arg;
    struct json_writer w;

    if (why == WATCH_LATE)
        LOG(LOG_WARN, "watcher disconnected: it did not acknowledge a revocation in time",
            log_text("ip", exchange_client_address(watch->exchange)), log_str("watcher", watcher_id(watch->watcher)));
    if (why == WATCH_LATE)
        note_broken(watch);
    watch->watcher = NULL;
    print_begin(watch, "closing", NULL, &w);
    json_put_member(&w, "reason", text_of(REASONS[why]));
    print_end(&w);
    send_pending(watch);
}

/* The request */

/* A browser's EventSource repeats its URL when it reconnects, so its Last-Event-ID is the later one. False: the request
 * has been refused. */
static bool read_since(struct exchange *exchange, struct watch_query *query, struct watch_cursor *ret_since)
{
    size_t count;
    struct text last = http_request_header(exchange->request, TEXT("Last-Event-ID"), &count);

    if (last.len > 0)
        query->since = last;
    if (count <= 1 && (query->since.len == 0 || watch_cursor_parse(query->since, ret_since)))
        return true;
    exchange_refuse_value(exchange, "since must be the id of an event of this stream.");
    return false;
}

static bool has_room_for_watcher(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    enum problem_code code = PROBLEM_NONE;

    if (!service->watch_feed)
        code = PROBLEM_NOT_FOUND;
    else if (service->draining)
        code = PROBLEM_SHUTTING_DOWN;
    else if (partitions_ready(service->partitions) < partitions_count(service->partitions))
        code = PROBLEM_STORE_UNAVAILABLE;
    else if (service->watchers >= service->watchers_max)
        code = PROBLEM_OVERLOADED;
    if (code != PROBLEM_NONE)
        exchange_refuse(exchange, code);
    return code == PROBLEM_NONE;
}

/* Without a certificate only the Unix socket has a name here: an address proves nothing. False: the exchange has been
 * refused. */
static bool may_watch(struct exchange *exchange)
{
    struct text name = http_request_client_name(exchange->request), rest = exchange->service->watch_names, one;

    if (rest.len == 0)
        return true;
    if (name.len == 0 && text_equal(http_request_peer(exchange->request), TEXT(UNIX_PEER)))
        name = TEXT(UNIX_PEER);
    while (name.len > 0 && text_next(&rest, ',', &one))
        if (text_equal(text_trim(one), name))
            return true;
    exchange_refuse_saying(exchange, PROBLEM_CLIENT_CERTIFICATE_REQUIRED,
                           "Only clients whose certificates have a name of --watch-names may watch revocations.");
    return false;
}

/* By name if it has one, because many gateways may come from one address. No certificate can have the name of a peer
 * without one. NULL: the exchange has been refused. */
static struct watch_peer *enter_peer(struct exchange *exchange)
{
    const struct text name = http_request_client_name(exchange->request);
    struct buf out = BUF_FIXED(SERVICE_PEER_CHARS - 1);

    buf_append_str(&out, name.len > 0 ? "certificate:" : "");
    buf_append_text(&out, name.len > 0 ? name : http_request_peer(exchange->request));
    CHECK(!out.failed);
    struct watch_peer *peer = watch_peer_enter(exchange->service, buf_text(&out), clock_boot_ns());
    if (!peer)
        exchange_refuse(exchange, PROBLEM_OVERLOADED);
    return peer;
}

/* A watcher that asks to be waited for and would not be relies on what nobody does: so it gets no stream. False: the
 * exchange has been refused. */
static bool may_be_waited_for(struct exchange *exchange, const struct watch_peer *peer)
{
    struct problem problem = problem_of(PROBLEM_OVERLOADED);
    struct log_pause *pause = &exchange->service->watch_peers_pause;

    problem.retry_after_s = watch_peer_pause_s(peer, clock_boot_ns());
    if (problem.retry_after_s == 0)
        return true;
    if (log_pause_is_over(pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_PAUSE_MS))
        LOG(LOG_WARN, "watcher not waited for: its peer has left or been late too often", log_str("peer", peer->name),
            log_int("suppressed", pause->suppressed));
    problem.message = "Revocations do not wait for this peer now: its watchers have left or been late too often.";
    exchange_refuse_with(exchange, problem);
    return false;
}

void watch_begin(struct exchange *exchange)
{
    static const struct watch_events EVENTS = {on_began, on_event, on_gap, on_flush, has_room, on_tick, on_ended};
    struct http_request *request = exchange->request;
    struct watch_query query = {0};
    struct watch_cursor since;
    struct watch_peer *peer;
    struct watch *watch;

    if (!may_watch(exchange) || !exchange_read_query(exchange, &QUERY_WATCH, &query) ||
        !read_since(exchange, &query, &since) || !has_room_for_watcher(exchange) || !(peer = enter_peer(exchange)))
        return;
    if ((query.acknowledges && !may_be_waited_for(exchange, peer)) ||
        !http_stream_begin(request, 200, TEXT("text/event-stream"))) {
        watch_peer_leave(peer);
        return;
    }
    watch = http_request_alloc(request, sizeof *watch);
    watch->exchange = exchange;
    watch->peer = peer;
    watch->is_waited_for = query.acknowledges;
    buf_init(&watch->pending, PENDING_MAX_BYTES);
    http_request_hold(request);
    exchange->service->watchers++;
    watch->watcher = watcher_add(exchange->service->watch_feed, query.since.len > 0 ? &since : NULL,
                                 watch->is_waited_for, &EVENTS, watch);
}

static bool read_acknowledgement(struct exchange *exchange, struct acknowledgement_query *ret_query)
{
    if (!exchange_read_query(exchange, &QUERY_ACKNOWLEDGEMENT, ret_query))
        return false;
    if (ret_query->watcher.len > 0 && ret_query->cursor.len > 0)
        return true;
    exchange_refuse_with(exchange,
                         problem_missing(NULL, ret_query->watcher.len > 0 ? TEXT("cursor") : TEXT("watcher")));
    return false;
}

/* At the node that has the watcher: no other one waits for it. */
void watch_acknowledge(struct exchange *exchange)
{
    struct watch_feed *feed = exchange->service->watch_feed;
    struct acknowledgement_query query = {0};
    struct watch_cursor cursor;

    if (exchange->method != HTTP_POST) {
        exchange_refuse_method(exchange, "POST");
        return;
    }
    if (!read_acknowledgement(exchange, &query))
        return;
    struct watcher *watcher = feed ? watcher_find(feed, query.watcher) : NULL;
    if (!watcher)
        exchange_refuse(exchange, PROBLEM_NOT_FOUND);
    else if (!watch_cursor_parse(query.cursor, &cursor) || !watcher_acknowledge(watcher, &cursor))
        exchange_refuse_value(exchange, CURSOR_RULE);
    else
        http_reply(exchange->request, 204, (struct text){0}, (struct text){0});
}
