#include "http/server.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/secure.h"
#include "request_internal.h"

#include <signal.h>
#include <stdlib.h>

enum { OWN_HANDLES = 4 };

static void ready_on_idle(uv_idle_t *idle)
{
    struct http_server *server = idle->data;
    struct list batch, *node;

    /* What is scheduled meanwhile is for the next turn, so that nobody starves the others. */
    list_init(&batch);
    list_append(&server->ready, &batch);
    list_remove(&server->ready);
    while ((node = list_first(&batch))) {
        list_remove(node);
        conn_resume(LIST_ENTRY(node, struct conn, in_ready));
    }
    if (list_empty(&server->ready))
        uv_idle_stop(idle);
}

void server_schedule(struct http_server *server, struct conn *conn)
{
    list_remove(&conn->in_ready);
    list_append(&server->ready, &conn->in_ready);
    uv_idle_start(&server->ready_idle, ready_on_idle);
}

int64_t server_wall_ms(struct http_server *server)
{
    const uint64_t turn_ms = uv_now(server->loop);

    if (turn_ms != server->wall_read_ms || server->wall_ms == 0) {
        server->wall_ms = clock_wall_ms();
        server->wall_read_ms = turn_ms;
    }
    return server->wall_ms;
}

static void make_common_lines(struct http_server *server, int64_t now_ms, struct text fixed_headers)
{
    struct buf *lines = &server->common_lines;
    char date[CLOCK_HTTP_DATE_BYTES];

    clock_print_http_date(now_ms, date);
    buf_clear(lines);
    buf_append_text(lines, TEXT("Date: "));
    buf_append_str(lines, date);
    buf_append_text(lines, TEXT("\r\n"));
    buf_append_text(lines, fixed_headers);
    buf_append_text(lines, TEXT("X-Request-Id: "));
    CHECK(!lines->failed);
}

struct text server_common_lines(struct http_server *server, struct text own_headers)
{
    const int64_t now_ms = server_wall_ms(server);

    if (own_headers.len > 0) {
        make_common_lines(server, now_ms, own_headers);
        server->common_lines_s = -1;
    } else if (now_ms / MS_PER_S != server->common_lines_s || server->common_lines.len == 0) {
        make_common_lines(server, now_ms, server->settings.fixed_headers);
        server->common_lines_s = now_ms / MS_PER_S;
    }
    return buf_text(&server->common_lines);
}

void server_cut_scratch(struct http_server *server, size_t bytes)
{
    struct buf *scratch = &server->scratch;

    if (bytes == 0 && scratch->capacity > SCRATCH_KEPT_BYTES) {
        buf_wipe(scratch);
        buf_init(scratch, REPLY_MAX_BYTES);
        return;
    }
    secure_wipe(scratch->ptr + bytes, scratch->len - bytes);
    scratch->len = bytes;
}

static void init_handles(struct http_server *server)
{
    uv_timer_t *timers[] = {&server->deadline_timer, &server->delivery_timer, &server->drain_timer};

    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        CHECK(uv_timer_init(server->loop, timers[i]) == 0);
        timers[i]->data = server;
    }
    CHECK(uv_idle_init(server->loop, &server->ready_idle) == 0);
    server->ready_idle.data = server;
}

struct http_server *http_server_create(uv_loop_t *loop, const struct http_settings *settings, http_handler *handler,
                                       void *arg)
{
    struct http_server *server = mem_alloc(sizeof *server);

    /* A peer that has gone must be an error of write(), not the end of the process. */
    signal(SIGPIPE, SIG_IGN);
    server->loop = loop;
    server->settings = *settings;
    server->handler = handler;
    server->handler_arg = arg;
    list_init(&server->listeners);
    list_init(&server->conns);
    list_init(&server->ready);
    list_init(&server->deliveries);
    list_init(&server->free_requests);
    server->read_buffer = mem_alloc(READ_BUFFER_BYTES);
    buf_init(&server->scratch, REPLY_MAX_BYTES);
    buf_init(&server->common_lines, REPLY_MAX_BYTES);
    burden_init(server);
    deadline_init(server);
    init_handles(server);
    return server;
}

size_t http_server_connections(const struct http_server *server)
{
    return server->conn_count;
}

/* Safe while connections leave the list: conn_disconnect() only marks them, they leave when their handle is closed. */
static void end_connections(struct http_server *server, bool only_idle)
{
    for (struct list *node = server->conns.next; node != &server->conns; node = node->next) {
        struct conn *conn = LIST_ENTRY(node, struct conn, in_server);

        if (!only_idle || conn->state == CONN_IDLE)
            conn_disconnect(conn);
    }
}

static void tell_drained(struct http_server *server)
{
    void (*drained)(void *arg) = server->drained;

    server->drained = NULL;
    if (drained)
        drained(server->drained_arg);
}

static void server_on_drain_timer(uv_timer_t *timer)
{
    struct http_server *server = timer->data;

    if (server->conn_count == 0)
        tell_drained(server);
    else
        end_connections(server, false);
}

void http_server_drain(struct http_server *server, int64_t grace_ms, void (*drained)(void *arg), void *arg)
{
    CHECK(server->state == SERVER_OPEN);
    server->state = SERVER_DRAINING;
    server->drained = drained;
    server->drained_arg = arg;
    listener_close_all(server);
    end_connections(server, true);
    uv_timer_start(&server->drain_timer, server_on_drain_timer, server->conn_count == 0 ? 0 : (uint64_t)grace_ms, 0);
}

static void server_free(struct http_server *server)
{
    void (*closed)(void *arg) = server->closed;
    void *closed_arg = server->closed_arg;
    struct list *node;

    tell_drained(server);
    while ((node = list_first(&server->free_requests))) {
        list_remove(node);
        free(LIST_ENTRY(node, struct http_request, in_server));
    }
    buf_wipe(&server->scratch);
    buf_finish(&server->common_lines);
    secure_wipe(server->read_buffer, READ_BUFFER_BYTES);
    free(server->read_buffer);
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
    uv_handle_t *handles[OWN_HANDLES] = {
        (uv_handle_t *)&server->deadline_timer,
        (uv_handle_t *)&server->delivery_timer,
        (uv_handle_t *)&server->drain_timer,
        (uv_handle_t *)&server->ready_idle,
    };

    server->open_handles = OWN_HANDLES;
    for (size_t i = 0; i < OWN_HANDLES; i++)
        uv_close(handles[i], server_on_handle_closed);
}

/* Handlers may hold requests longer than their connections live: the server waits for both. */
void server_part_ended(struct http_server *server)
{
    if (server->conn_count > 0)
        return;
    if (server->state == SERVER_DRAINING && server->drained)
        uv_timer_start(&server->drain_timer, server_on_drain_timer, 0, 0);
    if (server->state == SERVER_CLOSING && server->request_count == 0 && list_empty(&server->listeners) &&
        server->open_handles == 0)
        close_own_handles(server);
}

void http_server_close(struct http_server *server, void (*closed)(void *arg), void *arg)
{
    CHECK(server->state != SERVER_CLOSING);
    server->state = SERVER_CLOSING;
    server->closed = closed;
    server->closed_arg = arg;
    uv_timer_stop(&server->drain_timer);
    listener_close_all(server);
    end_connections(server, false);
    server_part_ended(server);
}
