#include "auth/table_listener.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/unix_socket.h"
#include "chatelaine/check.h"

#include <errno.h>
#include <stdlib.h>

enum { TICK_MS = 20, ACCEPTS_AT_ONCE = 16, LOG_PAUSE_MS = 60000 };

struct table_reader {
    struct list node;
    struct table_listener *listener;
    uv_poll_t poll;
    int fd;
};

struct table_listener {
    struct shared_table *table;
    uv_poll_t poll;
    uv_timer_t ticker;
    struct unix_socket socket;
    size_t slots_per_tick;
    struct list readers;
    size_t reader_count;
    struct log_pause pause;
    unsigned open; /* handles that are not closed yet */
    struct callback closed;
};

static void release(struct table_listener *listener)
{
    if (--listener->open > 0)
        return;
    callback_run(listener->closed);
    free(listener);
}

/* Readers */

static void on_reader_closed(uv_handle_t *handle)
{
    struct table_reader *reader = handle->data;
    struct table_listener *listener = reader->listener;

    close(reader->fd);
    free(reader);
    release(listener);
}

static void reader_end(struct table_reader *reader)
{
    struct table_listener *listener = reader->listener;

    list_remove(&reader->node);
    listener->reader_count--;
    metric_set(METRIC_TABLE_READERS, (int64_t)listener->reader_count);
    uv_close((uv_handle_t *)&reader->poll, on_reader_closed);
}

/* It has ended, or says something although it has nothing to say. */
static void on_reader_event(uv_poll_t *poll, UNUSED int status, UNUSED int events)
{
    reader_end(poll->data);
}

static bool greet(const struct table_listener *listener, int fd)
{
    struct chatelaine_greeting greeting = {.magic = CHATELAINE_TABLE_MAGIC, .format = CHATELAINE_TABLE_FORMAT};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec part = {&greeting, sizeof greeting};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fds[2];

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    shared_table_fds(listener->table, &fds[0], &fds[1]);
    memcpy(CMSG_DATA(header), fds, sizeof fds);
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof greeting;
}

static void reader_begin(struct table_listener *listener, int fd)
{
    struct table_reader *reader = mem_alloc(sizeof *reader);

    reader->fd = fd;
    reader->listener = listener;
    reader->poll.data = reader;
    if (listener->reader_count == TABLE_READERS_MAX || !greet(listener, fd) ||
        uv_poll_init(uv_handle_get_loop((uv_handle_t *)&listener->poll), &reader->poll, fd) != 0) {
        if (log_pause_is_over(&listener->pause, uv_now(listener->ticker.loop), LOG_PAUSE_MS))
            LOG(LOG_WARN, "a reader could not get the shared table",
                log_int("readers", (int64_t)listener->reader_count), log_int("suppressed", listener->pause.suppressed));
        close(fd);
        free(reader);
        return;
    }
    listener->open++;
    list_append(&listener->readers, &reader->node);
    listener->reader_count++;
    metric_set(METRIC_TABLE_READERS, (int64_t)listener->reader_count);
    CHECK(uv_poll_start(&reader->poll, UV_READABLE | UV_DISCONNECT, on_reader_event) == 0);
}

static void on_connection(uv_poll_t *poll, UNUSED int status, UNUSED int events)
{
    struct table_listener *listener = poll->data;

    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd = accept4(listener->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0) {
            reader_begin(listener, fd);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            CHECK(uv_poll_stop(poll) == 0); /* no descriptor is left: until the next tick */
        return;
    }
}

static void listen_on(struct table_listener *listener)
{
    CHECK(uv_poll_start(&listener->poll, UV_READABLE, on_connection) == 0);
}

static void on_tick(uv_timer_t *timer)
{
    struct table_listener *listener = timer->data;

    (void)shared_table_count_uses(listener->table, listener->slots_per_tick);
    if (!uv_is_active((uv_handle_t *)&listener->poll))
        listen_on(listener);
}

struct table_listener *table_listener_create(uv_loop_t *loop, struct shared_table *table, const char *path,
                                             uint32_t round_ms, int *ret_error)
{
    struct table_listener *listener = mem_alloc(sizeof *listener);
    uint32_t ticks = round_ms > TICK_MS ? round_ms / TICK_MS : 1;

    listener->table = table;
    listener->slots_per_tick = shared_table_slots(table) / ticks + 1;
    list_init(&listener->readers);
    *ret_error = unix_socket_listen(&listener->socket, path);
    if (*ret_error != 0) {
        free(listener);
        return NULL;
    }
    CHECK(uv_poll_init(loop, &listener->poll, listener->socket.fd) == 0);
    CHECK(uv_timer_init(loop, &listener->ticker) == 0);
    listener->open = 2;
    listener->poll.data = listener->ticker.data = listener;
    listen_on(listener);
    CHECK(uv_timer_start(&listener->ticker, on_tick, TICK_MS, TICK_MS) == 0);
    return listener;
}

void table_listener_look(struct table_listener *listener)
{
    if (listener->closed.run || !unix_socket_is_lost(&listener->socket))
        return;
    CHECK(uv_poll_stop(&listener->poll) == 0);
    unix_socket_listen_again(&listener->socket);
    listen_on(listener);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

void table_listener_close(struct table_listener *listener, void (*closed)(void *arg), void *arg)
{
    struct list *node;

    REQUIRE(!listener->closed.run);
    listener->closed = (struct callback){closed, arg};
    (void)shared_table_count_uses(listener->table, shared_table_slots(listener->table));
    while ((node = list_first(&listener->readers)))
        reader_end(LIST_ENTRY(node, struct table_reader, node));
    uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
    unix_socket_close(&listener->socket);
    uv_close((uv_handle_t *)&listener->ticker, on_handle_closed);
}
