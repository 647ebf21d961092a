#include "server_fixture.h"

#include "base/check.h"
#include "base/mem.h"
#include "http/request_internal.h"
#include "http/response.h"
#include "http/stream.h"
#include "kernel.h"
#include "test_loop.h"
#include "tls/session.h"
#include "tls_peer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

bool fixture_needs_system;

/* The handler. */

struct later {
    uv_timer_t timer;
    struct http_request *request;
};

static void reply_hello(struct http_request *request)
{
    http_reply(request, 200, TEXT("text/plain"), http_request_query(request));
}

static void later_closed(uv_handle_t *handle)
{
    struct later *later = handle->data;

    free(later);
}

static void later_due(uv_timer_t *timer)
{
    struct later *later = timer->data;

    reply_hello(later->request);
    http_request_release(later->request);
    uv_close((uv_handle_t *)timer, later_closed);
}

static void handle_later(struct fixture *fixture, struct http_request *request)
{
    struct later *later = mem_alloc(sizeof *later);

    http_request_hold(request);
    later->request = request;
    later->timer.data = later;
    uv_timer_init(&fixture->loop, &later->timer);
    uv_timer_start(&later->timer, later_due, 1, 0);
}

struct body_wait {
    struct fixture *fixture;
    struct http_request *request;
};

static void hold(struct fixture *fixture, struct http_request *request);

static void echo_read(void *arg, enum http_body_result result, struct text body)
{
    struct body_wait *wait = arg;

    if (result == HTTP_BODY_FAILED) {
        cr_assert(wait->request->is_replied || http_request_gone(wait->request));
        wait->fixture->bodies_failed++;
        return;
    }
    if (text_equal(http_request_path(wait->request), TEXT("/echo-held"))) {
        hold(wait->fixture, wait->request);
        return;
    }
    http_reply(wait->request, 200, TEXT("text/plain"), body);
}

static void read_body(struct fixture *fixture, struct http_request *request)
{
    struct body_wait *wait = http_request_alloc(request, sizeof *wait);

    *wait = (struct body_wait){fixture, request};
    http_request_read_body(request, echo_read, wait);
}

static void made_told(void *arg, bool delivered)
{
    struct fixture *fixture = arg;

    cr_assert_eq(fixture->told, TOLD_NOTHING);
    fixture->told = delivered ? TOLD_DELIVERED : TOLD_NOT_DELIVERED;
}

static void reply_big(struct http_request *request)
{
    uint64_t bytes;
    char *memory;

    cr_assert(text_to_u64(http_request_query(request), UINT32_MAX, &bytes));
    memory = mem_alloc(bytes);
    memset(memory, 'x', bytes);
    http_reply(request, 200, TEXT("text/plain"), (struct text){memory, bytes});
    free(memory);
}

char fixture_lasting[FIXTURE_LASTING_BYTES];

static void reply_lasting(struct http_request *request)
{
    uint64_t bytes;

    cr_assert(text_to_u64(http_request_query(request), FIXTURE_LASTING_BYTES, &bytes));
    http_reply_lasting(request, 200, TEXT("text/plain"), (struct text){fixture_lasting, bytes});
}

static void reply_made(struct fixture *fixture, struct http_request *request)
{
    http_response_on_delivered(request, made_told, fixture);
    http_response_header(request, TEXT("Location"), TEXT("/made/1"));
    if (http_request_query(request).len > 0)
        reply_big(request);
    else
        http_reply(request, 201, TEXT("text/plain"), TEXT("secret"));
}

struct streaming {
    struct fixture *fixture;
    struct http_request *request;
    uint64_t left;
    bool is_sending;
};

static void stream_on(void *arg)
{
    struct streaming *s = arg;
    static char piece[FIXTURE_PIECE_BYTES];

    cr_assert_not(s->is_sending, "never told while it sends");
    if (http_request_gone(s->request)) {
        s->fixture->streams_gone++;
        http_request_release(s->request);
        return;
    }
    if (s->left == 0) {
        if (text_equal(http_request_path(s->request), TEXT("/stream")))
            http_stream_end(s->request);
        else
            http_stream_break(s->request);
        http_request_release(s->request);
        return;
    }
    s->left--;
    s->fixture->pieces++;
    memset(piece, 'x', sizeof piece);
    s->is_sending = true;
    http_stream_send(s->request, (struct text){piece, sizeof piece}, stream_on, s);
    s->is_sending = false;
}

static void reply_stream(struct fixture *fixture, struct http_request *request)
{
    struct streaming *s = http_request_alloc(request, sizeof *s);

    *s = (struct streaming){.fixture = fixture, .request = request};
    cr_assert(text_to_u64(http_request_query(request), UINT32_MAX, &s->left));
    if (!http_stream_begin(request, 200, TEXT("text/csv")))
        return;
    http_request_hold(request);
    stream_on(s);
}

static void reply_unread(struct http_request *request)
{
    http_reply(request, 401, TEXT("text/plain"), TEXT("who?"));
}

static void hold(struct fixture *fixture, struct http_request *request)
{
    http_request_hold(request);
    fixture->held = request;
}

static void reply_about(struct http_request *request)
{
    size_t count;
    struct text value = http_request_header(request, TEXT("x-a"), &count);
    char *storage = http_request_alloc(request, 1024);
    struct buf out;

    buf_init_fixed(&out, storage, 1024);
    buf_printf(&out, "%d %.*s|%.*s|%.*s|%.*s|", http_request_method(request) == HTTP_DELETE,
               TEXT_ARG(request->head.method), TEXT_ARG(http_request_target(request)),
               TEXT_ARG(http_request_path(request)), TEXT_ARG(http_request_query(request)));
    buf_printf(&out, "%zu %.*s|%.*s|%d", count, TEXT_ARG(value), TEXT_ARG(http_request_peer(request)),
               http_request_has_body(request));
    http_response_header(request, TEXT("X-Same-Id"), http_request_id(request));
    http_reply(request, 200, TEXT("text/plain"), http_request_copy(request, buf_text(&out)));
}

static void reply_json(struct http_request *request, size_t max_bytes)
{
    struct buf json;

    buf_init(&json, max_bytes);
    buf_append_str(&json, "{\"a\":1}");
    http_reply_json(request, 201, &json);
    buf_finish(&json);
}

/* Handlers that must stop the process. */
static bool handle_wrongly(struct http_request *request, struct text path)
{
    if (text_equal(path, TEXT("/mute")))
        return true;
    if (text_equal(path, TEXT("/split")))
        http_response_header(request, TEXT("X-A"), TEXT("a\r\nX-B: b"));
    if (text_equal(path, TEXT("/twice")))
        reply_hello(request);
    return false;
}

static void handle(struct http_request *request, void *arg)
{
    struct fixture *fixture = arg;
    struct text path = http_request_path(request);

    fixture->handled++;
    if (text_equal(path, TEXT("/echo")) || text_equal(path, TEXT("/echo-held")))
        read_body(fixture, request);
    else if (text_equal(path, TEXT("/hold")) || text_equal(path, TEXT("/held-made")) ||
             text_equal(path, TEXT("/held-big")) || text_equal(path, TEXT("/body-later")))
        hold(fixture, request);
    else if (text_equal(path, TEXT("/later")))
        handle_later(fixture, request);
    else if (text_equal(path, TEXT("/big")))
        reply_big(request);
    else if (text_equal(path, TEXT("/lasting")))
        reply_lasting(request);
    else if (text_equal(path, TEXT("/stream")) || text_equal(path, TEXT("/stream-broken")))
        reply_stream(fixture, request);
    else if (text_equal(path, TEXT("/unread")))
        reply_unread(request);
    else if (text_equal(path, TEXT("/made")))
        reply_made(fixture, request);
    else if (text_equal(path, TEXT("/none")))
        http_reply(request, 204, (struct text){NULL, 0}, (struct text){NULL, 0});
    else if (text_equal(path, TEXT("/about")))
        reply_about(request);
    else if (text_equal(path, TEXT("/json")))
        reply_json(request, 100);
    else if (text_equal(path, TEXT("/json-too-large")))
        reply_json(request, 5);
    else if (!handle_wrongly(request, path))
        reply_hello(request);
}

static void on_late(void *arg)
{
    ((struct fixture *)arg)->is_late = true;
}

static void on_drained(void *arg)
{
    ((struct fixture *)arg)->is_drained = true;
}

void fixture_drain(struct fixture *fixture, int64_t grace_ms, int64_t quiet_ms)
{
    http_server_drain(
        fixture->server,
        &(struct http_drain){
            .grace_ms = grace_ms, .quiet_ms = quiet_ms, .late = on_late, .drained = on_drained, .arg = fixture});
}

void fixture_answer_held(struct fixture *fixture)
{
    struct http_request *request = fixture->held;
    struct text path = http_request_path(request);

    fixture->held = NULL;
    if (text_equal(path, TEXT("/body-later")))
        read_body(fixture, request);
    else if (text_equal(path, TEXT("/held-made")))
        reply_made(fixture, request);
    else if (text_equal(path, TEXT("/held-big")))
        reply_big(request);
    else
        reply_hello(request);
    http_request_release(request);
}

/* The fixture. */

static size_t make_id(int64_t wall_ms UNUSED, char ret_id[HTTP_ID_MAX_BYTES])
{
    static unsigned made;

    return (size_t)snprintf(ret_id, HTTP_ID_MAX_BYTES, "req_%026u", ++made);
}

static void print_error(struct http_request *request, enum http_error error, void *arg UNUSED)
{
    char body[32];

    snprintf(body, sizeof body, "error %d.", (int)error);
    http_reply(request, (int)error % 1000, TEXT("text/plain"), text_of(body));
}

/* Tests of timeouts set their own: a busy machine must not run into any other. */
struct http_settings fixture_settings(void)
{
    enum { LONG_MS = 10 * FIXTURE_TIMEOUT_MS };

    return (struct http_settings){
        .limits.head_max_bytes = 16 * 1024,
        .limits.fields_max = 100,
        .limits.target_max_bytes = 8000,
        .limits.body_max_bytes = 64 * 1024,
        .limits.head_timeout_ms = LONG_MS,
        .limits.body_timeout_ms = LONG_MS,
        .limits.body_total_timeout_ms = LONG_MS,
        .limits.body_min_bytes_per_s = 1,
        .limits.idle_timeout_ms = LONG_MS,
        .limits.write_timeout_ms = LONG_MS,
        .limits.write_min_bytes_per_s = 1,
        .limits.waiting_max_bytes = 64 * 1024 * 1024,
        .limits.connections_max = 100,
        .limits.tls_handshakes_max = 100,
        .fixed_headers = TEXT("Cache-Control: no-store\r\n"),
        .make_id = make_id,
        .print_error = print_error,
    };
}

void fixture_start(struct fixture *fixture, const struct http_settings *settings, const char *address)
{
    *fixture = (struct fixture){0};
    if (!fixture_needs_system)
        sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&fixture->loop), 0);
    fixture->server = http_server_create(&fixture->loop, settings, handle, fixture);
    cr_assert_eq(http_server_listen(fixture->server, address, false, fixture->address), 0);
    fixture->has_tls = tls_peer_is_on();
    if (fixture->has_tls)
        http_server_set_tls(fixture->server, tls_peer_server_context());
}

static void on_server_closed(void *arg)
{
    struct fixture *fixture = arg;

    fixture->is_closed = true;
}

void fixture_close(struct fixture *fixture)
{
    http_server_close(fixture->server, on_server_closed, fixture);
    cr_assert_not(fixture->is_closed, "closed within the call");
    if (fixture->held)
        fixture_answer_held(fixture);
    cr_assert(test_loop_until_set(&fixture->loop, &fixture->is_closed, FIXTURE_TIMEOUT_MS));
}

void fixture_finish(struct fixture *fixture)
{
    fixture_close(fixture);
    tls_peer_forget_contexts();
    cr_assert(test_loop_finish(&fixture->loop));
}

bool fixture_until(struct fixture *fixture, bool (*predicate)(void *arg), void *arg)
{
    return test_loop_until(&fixture->loop, predicate, arg, FIXTURE_TIMEOUT_MS);
}

static bool has_held(void *arg)
{
    return ((struct fixture *)arg)->held;
}

void fixture_run_until_held(struct fixture *fixture)
{
    cr_assert(fixture_until(fixture, has_held, fixture));
}

struct connections_awaited {
    struct fixture *fixture;
    size_t count;
};

static bool has_connections(void *arg)
{
    struct connections_awaited *awaited = arg;

    return http_server_connections(awaited->fixture->server) == awaited->count;
}

bool fixture_until_connections(struct fixture *fixture, size_t count)
{
    struct connections_awaited awaited = {fixture, count};

    return fixture_until(fixture, has_connections, &awaited);
}

/* Peers. */

/* False: nothing more has arrived, or the connection has ended. */
static bool peer_read(struct peer *peer)
{
    ssize_t got;

    if (peer->tls) {
        static char records[64 * 1024];

        got = recv(peer->fd, records, sizeof records, MSG_DONTWAIT);
        if (got > 0)
            tls_peer_take(peer, records, (size_t)got);
    } else {
        got = recv(peer->fd, peer->input + peer->bytes, PEER_INPUT_BYTES - 1 - peer->bytes, MSG_DONTWAIT);
        if (got > 0) {
            peer->bytes += (size_t)got;
            peer->input[peer->bytes] = '\0';
        }
    }
    if (got > 0 || (got < 0 && errno == EAGAIN))
        return got > 0;
    peer->is_ended = true;
    peer->is_reset = got < 0;
    uv_poll_stop(&peer->poll);
    return false;
}

/* With an error, libuv stops polling, though bytes may have come before it. */
static void peer_on_readable(uv_poll_t *poll, int status, int events)
{
    struct peer *peer = poll->data;

    (void)events;
    cr_assert(status == 0 || status == UV_EBADF);
    while (peer_read(peer) && status == UV_EBADF)
        ;
}

static int connect_to(const char *address)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    char host[HTTP_ADDRESS_BYTES];
    const char *colon = strrchr(address, ':');
    const struct sockaddr *target = (const struct sockaddr *)&v4;
    socklen_t bytes = sizeof v4;
    int fd, receive_bytes = 64 * 1024;

    if (strncmp(address, "unix:", 5) == 0) {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", address + 5);
        target = (const struct sockaddr *)&local;
        bytes = sizeof local;
    } else if (address[0] == '[') {
        snprintf(host, sizeof host, "%.*s", (int)(colon - address) - 2, address + 1);
        cr_assert_eq(uv_ip6_addr(host, (int)strtol(colon + 1, NULL, 10), &v6), 0);
        target = (const struct sockaddr *)&v6;
        bytes = sizeof v6;
    } else {
        snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
        cr_assert_eq(uv_ip4_addr(host, (int)strtol(colon + 1, NULL, 10), &v4), 0);
    }
    fd = socket(target->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* Small, so that a large response must wait for its reader. */
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    cr_assert(fd >= 0 && connect(fd, target, bytes) == 0, "%s: %s", address, strerror(errno));
    return fd;
}

void peer_connect(struct peer *peer, struct fixture *fixture)
{
    peer_connect_plainly(peer, fixture);
    if (fixture->has_tls)
        tls_peer_open(peer);
}

void peer_connect_plainly(struct peer *peer, struct fixture *fixture)
{
    *peer = (struct peer){.fixture = fixture, .input = mem_alloc(PEER_INPUT_BYTES)};
    peer->fd = connect_to(fixture->address);
    cr_assert_eq(uv_poll_init(&fixture->loop, &peer->poll, peer->fd), 0);
    peer->poll.data = peer;
    uv_poll_start(&peer->poll, UV_READABLE, peer_on_readable);
}

/* Lets the server read what the socket's buffer cannot hold. */
void peer_send_raw(struct peer *peer, const char *bytes, size_t count)
{
    uint64_t give_up_ms;

    uv_update_time(&peer->fixture->loop); /* the loop may not have run for a while */
    give_up_ms = uv_now(&peer->fixture->loop) + FIXTURE_TIMEOUT_MS;
    while (count > 0) {
        ssize_t sent = send(peer->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno != EAGAIN)
            return;
        if (sent > 0) {
            bytes += sent;
            count -= (size_t)sent;
        }
        uv_run(&peer->fixture->loop, UV_RUN_NOWAIT);
        cr_assert(uv_now(&peer->fixture->loop) < give_up_ms);
    }
}

void peer_send(struct peer *peer, const char *bytes, size_t count)
{
    struct buf records;

    if (!peer->tls) {
        peer_send_raw(peer, bytes, count);
        return;
    }
    buf_init(&records, PEER_INPUT_BYTES);
    if (tls_peer_seal(peer, bytes, count, &records))
        peer_send_raw(peer, records.ptr, records.len);
    buf_finish(&records);
}

void peer_send_str(struct peer *peer, const char *bytes)
{
    peer_send(peer, bytes, strlen(bytes));
}

void peer_send_at_once(struct peer *peer, const char *bytes)
{
    struct buf out;

    buf_init(&out, PEER_INPUT_BYTES);
    if (peer->tls)
        cr_assert(tls_peer_seal(peer, bytes, strlen(bytes), &out));
    else
        buf_append_str(&out, bytes);
    cr_assert_eq(send(peer->fd, out.ptr, out.len, 0), (ssize_t)out.len);
    buf_finish(&out);
}

void peer_half_close(struct peer *peer)
{
    if (peer->tls)
        tls_peer_end(peer);
    shutdown(peer->fd, SHUT_WR);
}

void peer_pause(struct peer *peer, bool is_paused)
{
    if (is_paused)
        uv_poll_stop(&peer->poll);
    else
        uv_poll_start(&peer->poll, UV_READABLE, peer_on_readable);
}

static void peer_on_poll_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;

    peer->is_poll_closed = true;
}

void peer_close(struct peer *peer)
{
    if (!peer->input)
        return;
    uv_close((uv_handle_t *)&peer->poll, peer_on_poll_closed);
    close(peer->fd);
    cr_assert(test_loop_until_set(&peer->fixture->loop, &peer->is_poll_closed, FIXTURE_TIMEOUT_MS));
    tls_session_free(peer->tls);
    free(peer->input);
    peer->input = NULL;
}

void peer_reset(struct peer *peer)
{
    struct linger linger = {.l_onoff = 1};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    peer_close(peer);
}

struct awaited_text {
    struct peer *peer;
    const char *text;
    size_t count;
};

/* Continues where the last call stopped: scanning thousands of responses on each call would take seconds. */
size_t peer_count(struct peer *peer, const char *text)
{
    size_t length = strlen(text);
    const char *at;

    if (!peer->counted || strcmp(peer->counted, text) != 0) {
        peer->counted = text;
        peer->counted_bytes = peer->count = 0;
    }
    while ((at = strstr(peer->input + peer->counted_bytes, text))) {
        peer->count++;
        peer->counted_bytes = (size_t)(at - peer->input) + length;
    }
    if (peer->bytes >= peer->counted_bytes + length)
        peer->counted_bytes = peer->bytes - (length - 1);
    return peer->count;
}

static bool has_come(void *arg)
{
    struct awaited_text *awaited = arg;

    return peer_count(awaited->peer, awaited->text) >= awaited->count;
}

/* Or never will. */
static bool has_come_or_ended(void *arg)
{
    const struct awaited_text *awaited = arg;

    return awaited->peer->is_ended || has_come(arg);
}

bool peer_gets_count(struct peer *peer, const char *text, size_t count)
{
    struct awaited_text awaited = {peer, text, count};

    return fixture_until(peer->fixture, has_come_or_ended, &awaited) && has_come(&awaited);
}

bool peer_gets(struct peer *peer, const char *text)
{
    return peer_gets_count(peer, text, 1);
}

bool peer_is_ended(struct peer *peer)
{
    return test_loop_until_set(&peer->fixture->loop, &peer->is_ended, FIXTURE_TIMEOUT_MS);
}

void peer_forget(struct peer *peer)
{
    peer->bytes = 0;
    peer->counted = NULL;
    peer->input[0] = '\0';
}
