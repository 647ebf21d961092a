#include "connect.h"
#include "base/background.h"
#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEEPALIVE_S = 60, PORT_TEXT_BYTES = 6 };

struct redis_connect {
    uv_loop_t *loop;
    const struct redis_target *target;
    redis_connected *done;
    void *arg;
    struct background resolve;
    uv_timer_t later; /* starts the attempt, so that no failure is reported inside redis_connect_start() */
    uv_connect_t request;
    struct addrinfo *addresses; /* NULL for a Unix socket */
    unsigned rotation;
    unsigned address_count, tried;
    union redis_stream *stream; /* NULL while none is open */
    bool is_cancelled;
    int status;
};

static void on_start(uv_timer_t *later);
static void resolve(struct background *background);
static void on_resolved(struct background *background);
static void try_next(struct redis_connect *connect);
static void on_connected(uv_connect_t *request, int status);
static void on_try_closed(uv_handle_t *handle);
static void finish(struct redis_connect *connect);
static void on_finished(uv_handle_t *later);

struct redis_connect *redis_connect_start(uv_loop_t *loop, const struct redis_target *target, unsigned rotation,
                                          redis_connected *done, void *arg)
{
    struct redis_connect *connect = mem_alloc(sizeof *connect);

    *connect = (struct redis_connect){.loop = loop, .target = target, .rotation = rotation, .done = done, .arg = arg};
    connect->request.data = connect->later.data = connect;
    CHECK(uv_timer_init(loop, &connect->later) == 0);
    CHECK(uv_timer_start(&connect->later, on_start, 0, 0) == 0);
    return connect;
}

static void on_start(uv_timer_t *later)
{
    struct redis_connect *connect = later->data;

    if (connect->is_cancelled || connect->target->is_unix) {
        connect->address_count = 1;
        try_next(connect);
    } else {
        background_start(&connect->resolve, connect->loop, resolve, on_resolved);
    }
}

/* To libuv's error codes. */
static int translate(int error)
{
    switch (error) {
    case 0:
        return 0;
    case EAI_AGAIN:
        return UV_EAI_AGAIN;
    case EAI_MEMORY:
        return UV_EAI_MEMORY;
    case EAI_NODATA:
        return UV_EAI_NODATA;
    case EAI_NONAME:
        return UV_EAI_NONAME;
    case EAI_SYSTEM:
        return errno ? uv_translate_sys_error(errno) : UV_EAI_FAIL; /* 0 would mean success */
    default:
        return UV_EAI_FAIL;
    }
}

/* Runs on its own thread. The target does not change, and nothing else touches the attempt meanwhile. */
static void resolve(struct background *background)
{
    struct redis_connect *connect = LIST_ENTRY(background, struct redis_connect, resolve);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char port[PORT_TEXT_BYTES];

    snprintf(port, sizeof port, "%u", connect->target->port);
    connect->status = translate(getaddrinfo(connect->target->host, port, &hints, &connect->addresses));
}

static void on_resolved(struct background *background)
{
    struct redis_connect *connect = LIST_ENTRY(background, struct redis_connect, resolve);

    if (background->status != 0)
        connect->status = background->status;
    for (const struct addrinfo *a = connect->addresses; a; a = a->ai_next)
        connect->address_count++;
    try_next(connect);
}

static const struct addrinfo *address_at(const struct redis_connect *connect, unsigned index)
{
    const struct addrinfo *address = connect->addresses;

    for (unsigned i = index % connect->address_count; i > 0; i--)
        address = address->ai_next;
    return address;
}

static int start_tcp(struct redis_connect *connect, unsigned index)
{
    uv_tcp_t *tcp = &connect->stream->tcp;
    int status = uv_tcp_connect(&connect->request, tcp, address_at(connect, index)->ai_addr, on_connected);

    /* Both are optional: the connection works without them. */
    if (status == 0) {
        (void)uv_tcp_nodelay(tcp, 1);
        (void)uv_tcp_keepalive(tcp, 1, KEEPALIVE_S);
    }
    return status;
}

static void try_next(struct redis_connect *connect)
{
    if (connect->is_cancelled || connect->tried == connect->address_count) {
        finish(connect);
        return;
    }
    unsigned index = connect->rotation + connect->tried++;
    connect->stream = mem_alloc(sizeof *connect->stream);
    connect->status = 0;
    if (connect->target->is_unix) {
        CHECK(uv_pipe_init(connect->loop, &connect->stream->pipe, 0) == 0);
        connect->stream->handle.data = connect;
        uv_pipe_connect(&connect->request, &connect->stream->pipe, connect->target->host, on_connected);
        return;
    }
    CHECK(uv_tcp_init(connect->loop, &connect->stream->tcp) == 0);
    connect->stream->handle.data = connect;
    connect->status = start_tcp(connect, index);
    if (connect->status != 0)
        uv_close(&connect->stream->handle, on_try_closed);
}

static void on_connected(uv_connect_t *request, int status)
{
    struct redis_connect *connect = request->data;

    connect->status = status;
    if (connect->is_cancelled)
        return; /* the cancel has closed the stream; on_try_closed() continues */
    if (status != 0)
        uv_close(&connect->stream->handle, on_try_closed);
    else
        finish(connect);
}

static void on_try_closed(uv_handle_t *handle)
{
    struct redis_connect *connect = handle->data;

    free(connect->stream);
    connect->stream = NULL;
    try_next(connect);
}

static void finish(struct redis_connect *connect)
{
    if (connect->addresses)
        freeaddrinfo(connect->addresses);
    connect->addresses = NULL;
    uv_close((uv_handle_t *)&connect->later, on_finished);
}

static void tell(struct redis_connect *connect)
{
    connect->done(connect->arg, connect->status, connect->stream);
    free(connect);
}

static void on_dropped(uv_handle_t *handle)
{
    struct redis_connect *connect = handle->data;

    free(connect->stream);
    connect->stream = NULL;
    tell(connect);
}

static void on_finished(uv_handle_t *later)
{
    struct redis_connect *connect = later->data;

    if (connect->is_cancelled)
        connect->status = UV_ECANCELED;
    /* Connected, but cancelled before that was reported. */
    if (connect->is_cancelled && connect->stream)
        uv_close(&connect->stream->handle, on_dropped);
    else
        tell(connect);
}

void redis_connect_cancel(struct redis_connect *connect)
{
    if (connect->is_cancelled)
        return;
    connect->is_cancelled = true;
    if (connect->stream && !uv_is_closing((uv_handle_t *)&connect->later) && !uv_is_closing(&connect->stream->handle))
        uv_close(&connect->stream->handle, on_try_closed);
}
