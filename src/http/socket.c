#include "socket_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system calls themselves. glibc's recv() and send() are cancellation points; once a process has started a thread,
 * each call pays for that twice. */
static ssize_t receive(int fd, char *ret_bytes, size_t room)
{
    return syscall(SYS_recvfrom, fd, ret_bytes, room, MSG_DONTWAIT, NULL, NULL);
}

static ssize_t send_now(int fd, struct text bytes)
{
    return syscall(SYS_sendto, fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

int socket_open(struct socket *socket, uv_loop_t *loop, int fd)
{
    socket->fd = fd;
    socket->awaited = 0;
    socket->is_edge_triggered = false;
    return uv_poll_init(loop, &socket->poll, fd);
}

void socket_close(struct socket *socket, uv_close_cb closed)
{
    uv_close((uv_handle_t *)&socket->poll, closed);
    close(socket->fd);
    socket->fd = -1;
}

int socket_await(struct socket *socket, bool input, bool room, uv_poll_cb ready)
{
    const int events = (input ? UV_READABLE | UV_DISCONNECT : 0) | (room ? UV_WRITABLE : 0);

    if (events == socket->awaited)
        return 0;
    socket->awaited = events;
    socket->is_edge_triggered = false; /* libuv registers the socket again */
    return events ? uv_poll_start(&socket->poll, events, ready) : uv_poll_stop(&socket->poll);
}

/* Changes EPOLLET in libuv's own registration, and nothing else. The call makes the kernel check the socket again, so
 * input that has arrived meanwhile is reported. If it fails, nothing has changed. */
static void set_trigger(struct socket *socket, bool edge)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLRDHUP | (edge ? (uint32_t)EPOLLET : 0), .data.fd = socket->fd, /* as libuv sets it */
    };

    if (epoll_ctl(uv_backend_fd(socket->poll.loop), EPOLL_CTL_MOD, socket->fd, &event) == 0)
        socket->is_edge_triggered = edge;
}

/* A read that does not fill the room has emptied the socket (epoll(7)). But the end of input may follow those bytes,
 * and if it arrived with them (UV_DISCONNECT), no edge would report it. */
ssize_t socket_receive(struct socket *socket, int events, char *ret_bytes, size_t room)
{
    bool is_used_up;
    ssize_t taken;

    do {
        taken = receive(socket->fd, ret_bytes, room);
    } while (taken < 0 && errno == EINTR);
    if (taken < 0)
        return uv_translate_sys_error(errno);
    is_used_up = (size_t)taken < room && !(events & UV_DISCONNECT);
    if (is_used_up != socket->is_edge_triggered && !(socket->awaited & UV_WRITABLE))
        set_trigger(socket, is_used_up);
    return taken;
}

ssize_t socket_send(const struct socket *socket, struct text bytes)
{
    ssize_t taken;

    do {
        taken = send_now(socket->fd, bytes);
    } while (taken < 0 && errno == EINTR);
    return taken < 0 ? uv_translate_sys_error(errno) : taken;
}
