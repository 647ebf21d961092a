#include "server_internal.h"

#include "base/check.h"
#include "base/mem.h"

#include <signal.h>
#include <stdlib.h>

enum { OWN_HANDLES = CONNS_HANDLES + 2 };

static void server_on_accepted(void *arg, int fd, const struct sockaddr *peer, bool is_local)
{
    struct http_server *server = arg;

    server->accepted_ms = uv_now(server->drain_timer.loop);
    conns_accept(&server->conns, fd, peer, is_local);
}

static void server_on_failed(void *arg, int error)
{
    struct http_server *server = arg;

    conns_note_failure(&server->conns, error);
}

static void server_part_ended(void *arg);

static void init_parts(struct http_server *server, uv_loop_t *loop, http_handler *handler, void *handler_arg)
{
    server->requests = (struct requests){
        .loop = loop,
        .settings = &server->settings,
        .handler = handler,
        .handler_arg = handler_arg,
        .answers = &server->answers,
        .want_body = conn_want_body,
        .end_stream = conn_end_stream,
        .reset = conn_reset,
        .none_left = server_part_ended,
        .arg = server,
    };
    server->conns = (struct conns){
        .loop = loop,
        .settings = &server->settings,
        .requests = &server->requests,
        .answers = &server->answers,
        .none_left = server_part_ended,
        .arg = server,
    };
    server->listeners = (struct listeners){
        .loop = loop,
        .accepted = server_on_accepted,
        .failed = server_on_failed,
        .none_left = server_part_ended,
        .arg = server,
    };
    requests_init(&server->requests, conn_settle_delivery);
    answers_init(&server->answers, &server->settings, conn_send_answer);
    conns_init(&server->conns);
    listeners_init(&server->listeners);
}

struct http_server *http_server_create(uv_loop_t *loop, const struct http_settings *settings, http_handler *handler,
                                       void *arg)
{
    struct http_server *server = mem_alloc(sizeof *server);

    /* Writing to a peer that is gone must be an error, not kill the process. */
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(settings->make_id);
    server->settings = *settings;
    init_parts(server, loop, handler, arg);
    CHECK(uv_timer_init(loop, &server->drain_timer) == 0);
    server->drain_timer.data = server;
    return server;
}

int http_server_bind(struct http_server *server, const char *address, bool reuse_port,
                     char ret_bound[HTTP_ADDRESS_BYTES])
{
    return listeners_bind(&server->listeners, address, reuse_port, ret_bound);
}

int http_server_open(struct http_server *server)
{
    return listeners_open(&server->listeners);
}

int http_server_listen(struct http_server *server, const char *address, bool reuse_port,
                       char ret_bound[HTTP_ADDRESS_BYTES])
{
    int result = http_server_bind(server, address, reuse_port, ret_bound);

    return result == 0 ? http_server_open(server) : result;
}

int http_server_listen_socket(struct http_server *server, const char *path)
{
    return listeners_add_socket(&server->listeners, path);
}

void http_server_look(struct http_server *server)
{
    listeners_look(&server->listeners);
}

void http_server_set_tls(struct http_server *server, struct tls_context *tls)
{
    conns_set_tls(&server->conns, tls);
}

size_t http_server_connections(const struct http_server *server)
{
    return server->conns.count;
}

static void tell_drained(struct http_server *server)
{
    void (*drained)(void *arg) = server->drain.drained;

    server->drain.drained = NULL;
    if (drained)
        drained(server->drain.arg);
}

/* Nobody has come for quiet_ms, and a gateway that looks at /readyz that often has seen that the server wanes. */
static bool is_quiet(const struct http_server *server, uint64_t now_ms)
{
    return server->conns.count == 0 && now_ms - server->accepted_ms >= server->quiet_ms &&
           now_ms - server->waned_ms >= 2 * server->quiet_ms;
}

/* Whoever has connected may have sent a request, so nobody who waits to be accepted is left behind. */
static void stop_listening(struct http_server *server)
{
    listeners_accept_waiting(&server->listeners);
    listeners_close(&server->listeners);
}

static void drain_go_on(struct http_server *server, uint64_t now_ms)
{
    uint64_t left_ms = server->drain_ends_ms > now_ms ? server->drain_ends_ms - now_ms : 0;

    if (left_ms <= server->quiet_ms && !server->is_late) {
        server->is_late = true;
        server->drain.late(server->drain.arg);
    }
    if (left_ms <= server->quiet_ms / 2 || is_quiet(server, now_ms))
        stop_listening(server);
    if (left_ms == 0)
        conns_disconnect(&server->conns);
    if (list_empty(&server->listeners.all) && server->conns.count == 0)
        tell_drained(server);
}

static void server_on_drain_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now_ms = uv_now(timer->loop);

    if (now_ms - server->waned_ms >= server->quiet_ms)
        conns_end_quiet(&server->conns, now_ms - server->quiet_ms);
    if (server->state == SERVER_DRAINING)
        drain_go_on(server, now_ms);
}

/* The timer looks this often within quiet_ms. */
enum { LOOKS = 8 };

static void look_often(struct http_server *server, uint64_t first_ms)
{
    uint64_t each_ms = server->quiet_ms / LOOKS;

    uv_timer_start(&server->drain_timer, server_on_drain_timer, first_ms, each_ms > 0 ? each_ms : 1);
}

void http_server_wane(struct http_server *server, int64_t quiet_ms)
{
    REQUIRE(server->state == SERVER_OPEN);
    server->state = SERVER_WANING;
    server->answers.are_last = true;
    server->quiet_ms = (uint64_t)quiet_ms;
    server->waned_ms = uv_now(server->drain_timer.loop);
    server->drain_ends_ms = UINT64_MAX;
    look_often(server, server->quiet_ms);
}

void http_server_drain(struct http_server *server, const struct http_drain *drain)
{
    if (server->state == SERVER_OPEN)
        http_server_wane(server, drain->quiet_ms);
    REQUIRE(server->state == SERVER_WANING);
    server->state = SERVER_DRAINING;
    server->drain = *drain;
    server->quiet_ms = (uint64_t)drain->quiet_ms;
    server->drain_ends_ms = uv_now(server->drain_timer.loop) + (uint64_t)drain->grace_ms;
    look_often(server, 0);
}

static void server_free(struct http_server *server)
{
    void (*closed)(void *arg) = server->closed;
    void *closed_arg = server->closed_arg;

    tell_drained(server);
    answers_finish(&server->answers);
    conns_finish(&server->conns);
    free(server);
    closed(closed_arg);
}

static void server_on_handle_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;

    if (--server->open_handles == 0)
        server_free(server);
}

static void close_own_handles(struct http_server *server)
{
    server->open_handles = OWN_HANDLES;
    conns_close(&server->conns, server_on_handle_closed, server);
    deliveries_close(&server->requests.deliveries, server_on_handle_closed, server);
    uv_close((uv_handle_t *)&server->drain_timer, server_on_handle_closed);
}

/* A handler may hold a request longer than its connection lives, so the server waits for both. */
static void server_part_ended(void *arg)
{
    struct http_server *server = arg;

    if (server->conns.count > 0)
        return;
    if (server->state == SERVER_DRAINING && server->drain.drained)
        look_often(server, 0);
    if (server->state == SERVER_CLOSING && server->requests.count == 0 && list_empty(&server->listeners.all) &&
        server->open_handles == 0)
        close_own_handles(server);
}

void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg)
{
    REQUIRE(server->state != SERVER_CLOSING);
    server->state = SERVER_CLOSING;
    server->answers.are_last = true;
    requests_keep_none(&server->requests);
    server->closed = closed;
    server->closed_arg = arg;
    uv_timer_stop(&server->drain_timer);
    listeners_close(&server->listeners);
    conns_disconnect(&server->conns);
    server_part_ended(server);
}
