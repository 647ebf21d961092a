#include "listener_internal.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, ACCEPTS_AT_ONCE = 64, HOST_BYTES = INET6_ADDRSTRLEN, PORT_MAX = 65535 };

struct listener {
    uv_poll_t poll;
    int fd;                  /* that of the socket, if it is one */
    struct unix_socket file; /* its fd is -1 if the listener has a TCP address */
    bool is_local;           /* see http_server_listen_socket() */
    bool is_open;            /* it listens */
    int spare_fd;            /* closed for a moment when no other descriptor is left */
    struct listeners *all;
    struct list in_all;
};

void listeners_init(struct listeners *listeners)
{
    list_init(&listeners->all);
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* When no descriptor is left, accepts a waiting connection with the spare one and closes it. Its peer can turn to
 * another node at once, and the loop does not spin on a connection that it cannot accept. */
static void refuse_waiting(struct listener *listener)
{
    int fd;

    if (listener->spare_fd < 0)
        listener->spare_fd = open_spare();
    if (listener->spare_fd < 0)
        return;
    close(listener->spare_fd);
    fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    listener->spare_fd = open_spare();
}

/* Ignores connections that ended before they were accepted. After any other error, the next turn of the loop goes
 * on. Returns whether more may wait. */
static bool accept_waiting(struct listener *listener)
{
    const struct listeners *all = listener->all;

    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t bytes = sizeof peer;
        int fd = accept4(listener->fd, (struct sockaddr *)&peer, &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK), error = errno;

        if (fd >= 0) {
            all->accepted(all->arg, fd, (const struct sockaddr *)&peer, listener->is_local);
            continue;
        }
        if (error == EAGAIN)
            return false;
        if (error == EINTR || error == ECONNABORTED)
            continue;
        all->failed(all->arg, uv_translate_sys_error(error));
        if (error != EMFILE && error != ENFILE)
            return false;
        refuse_waiting(listener);
    }
    return true;
}

static void listener_on_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
    (void)accept_waiting(poll->data);
}

/* Releases everything but the handle. */
static void give_up(struct listener *listener)
{
    if (listener->file.fd >= 0)
        unix_socket_close(&listener->file);
    else if (listener->fd >= 0)
        close(listener->fd);
    if (listener->spare_fd >= 0)
        close(listener->spare_fd);
}

void listeners_look(struct listeners *listeners)
{
    for (struct list *node = listeners->all.next; node != &listeners->all; node = node->next) {
        struct listener *listener = LIST_ENTRY(node, struct listener, in_all);

        if (listener->file.fd < 0 || !unix_socket_is_lost(&listener->file))
            continue;
        CHECK(uv_poll_stop(&listener->poll) == 0);
        while (accept_waiting(listener))
            continue;
        unix_socket_listen_again(&listener->file);
        CHECK(uv_poll_start(&listener->poll, UV_READABLE, listener_on_ready) == 0);
    }
}

static void listener_on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct listeners *all = listener->all;

    list_remove(&listener->in_all);
    free(listener);
    if (list_empty(&all->all))
        all->none_left(all->arg);
}

static void listener_close(struct listener *listener)
{
    if (uv_is_closing((uv_handle_t *)&listener->poll))
        return;
    uv_close((uv_handle_t *)&listener->poll, listener_on_closed);
    give_up(listener);
}

void listeners_accept_waiting(struct listeners *listeners)
{
    for (struct list *node = listeners->all.next; node != &listeners->all; node = node->next) {
        struct listener *listener = LIST_ENTRY(node, struct listener, in_all);
        int turns = BACKLOG / ACCEPTS_AT_ONCE;

        while (listener->is_open && !uv_is_closing((uv_handle_t *)&listener->poll) && turns-- > 0 &&
               accept_waiting(listener))
            continue;
    }
}

void listeners_close(struct listeners *listeners)
{
    for (struct list *node = listeners->all.next; node != &listeners->all; node = node->next)
        listener_close(LIST_ENTRY(node, struct listener, in_all));
}

int http_address_read(struct text address, struct sockaddr_storage *ret_address)
{
    const char *colon = memrchr(address.ptr, ':', address.len);
    struct text host, port;
    char host_storage[HOST_BYTES];
    uint64_t port_number;

    if (!colon)
        return UV_EINVAL;
    host = (struct text){address.ptr, (size_t)(colon - address.ptr)};
    port = text_skip(address, host.len + 1);
    if (!text_to_u64(port, PORT_MAX, &port_number))
        return UV_EINVAL;
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = (struct text){host.ptr + 1, host.len - 2};
    else if (memchr(host.ptr, ':', host.len))
        return UV_EINVAL;
    if (host.len >= sizeof host_storage)
        return UV_EINVAL;
    memcpy(host_storage, host.ptr, host.len);
    host_storage[host.len] = '\0';
    if (memchr(host.ptr, ':', host.len))
        return uv_ip6_addr(host_storage, (int)port_number, (struct sockaddr_in6 *)ret_address);
    return uv_ip4_addr(host_storage, (int)port_number, (struct sockaddr_in *)ret_address);
}

int http_address_socket(struct sockaddr_storage *address, int type)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
    int fd = socket(address->ss_family, type, 0);

    if (fd < 0 && errno == EAFNOSUPPORT && address->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) {
        *(struct sockaddr_in *)(void *)address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = v6->sin6_port};
        fd = socket(AF_INET, type, 0);
    }
    return fd;
}

static int print_bound(int fd, char ret_bound[HTTP_ADDRESS_BYTES])
{
    struct sockaddr_storage address;
    socklen_t address_bytes = sizeof address;
    char host[HOST_BYTES];
    struct buf out;

    memset(&address, 0, sizeof address);
    if (getsockname(fd, (struct sockaddr *)&address, &address_bytes) != 0)
        return uv_translate_sys_error(errno);
    buf_init_fixed(&out, ret_bound, HTTP_ADDRESS_BYTES);
    if (address.ss_family == AF_INET6) {
        uv_ip6_name((const struct sockaddr_in6 *)&address, host, sizeof host);
        buf_printf(&out, "[%s]:%d", host, ntohs(((const struct sockaddr_in6 *)&address)->sin6_port));
    } else {
        uv_ip4_name((const struct sockaddr_in *)&address, host, sizeof host);
        buf_printf(&out, "%s:%d", host, ntohs(((const struct sockaddr_in *)&address)->sin_port));
    }
    buf_append_char(&out, '\0');
    return out.failed ? UV_ENAMETOOLONG : 0;
}

static bool set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/* An address in TIME_WAIT can be bound again. "[::]" accepts IPv4 too, whatever net.ipv6.bindv6only says. */
static int bind_tcp(struct listener *listener, struct text address, bool reuse_port)
{
    struct sockaddr_storage parsed = {0};
    int result = http_address_read(address, &parsed), fd;
    bool is_ipv6;

    if (result != 0)
        return result;
    fd = listener->fd = http_address_socket(&parsed, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK);
    is_ipv6 = parsed.ss_family == AF_INET6;
    if (fd < 0 || !set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1) ||
        (is_ipv6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) ||
        (reuse_port && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
        bind(fd, (const struct sockaddr *)&parsed,
             is_ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) != 0)
        return uv_translate_sys_error(errno);
    return 0;
}

/* libuv's errors are negative ones of the system. */
static int listen_unix(struct listener *listener, const char *path)
{
    int result = unix_socket_listen(&listener->file, path);

    listener->fd = listener->file.fd;
    return result;
}

static int begin_tcp(struct listener *listener, const char *address, bool reuse_port,
                     char ret_bound[HTTP_ADDRESS_BYTES])
{
    int result = bind_tcp(listener, text_of(address), reuse_port);

    return result == 0 ? print_bound(listener->fd, ret_bound) : result;
}

static int listener_open(struct listener *listener)
{
    if (listener->is_open)
        return 0;
    if (listener->file.fd < 0 && listen(listener->fd, BACKLOG) != 0)
        return uv_translate_sys_error(errno);
    listener->is_open = true;
    CHECK(uv_poll_start(&listener->poll, UV_READABLE, listener_on_ready) == 0);
    return 0;
}

static struct listener *listener_create(void)
{
    struct listener *listener = mem_alloc(sizeof *listener);

    listener->fd = listener->file.fd = listener->spare_fd = -1;
    return listener;
}

/* Takes a listener that is bound, or could not be: the libuv error is returned, and it is freed. */
static int listener_begin(struct listeners *listeners, struct listener *listener, int result)
{
    if (result == 0)
        result = uv_poll_init(listeners->loop, &listener->poll, listener->fd);
    if (result != 0) {
        give_up(listener);
        free(listener);
        return result;
    }
    listener->poll.data = listener;
    listener->spare_fd = open_spare();
    listener->all = listeners;
    list_append(&listeners->all, &listener->in_all);
    /* A Unix socket listens already. */
    return listener->file.fd >= 0 ? listener_open(listener) : 0;
}

int listeners_bind(struct listeners *listeners, const char *address, bool reuse_port,
                   char ret_bound[HTTP_ADDRESS_BYTES])
{
    struct listener *listener = listener_create();
    char bound[HTTP_ADDRESS_BYTES] = "";
    bool is_unix = text_starts_with(text_of(address), TEXT("unix:"));
    int result =
        is_unix ? listen_unix(listener, address + TEXT("unix:").len) : begin_tcp(listener, address, reuse_port, bound);

    if (result == 0 && is_unix)
        memcpy(bound, address, strlen(address) + 1);
    result = listener_begin(listeners, listener, result);
    if (result == 0)
        memcpy(ret_bound, bound, sizeof bound);
    return result;
}

int listeners_add_socket(struct listeners *listeners, const char *path)
{
    struct listener *listener = listener_create();

    listener->is_local = true;
    return listener_begin(listeners, listener, listen_unix(listener, path));
}

int listeners_open(struct listeners *listeners)
{
    int result = 0;

    for (struct list *node = listeners->all.next; node != &listeners->all && result == 0; node = node->next)
        result = listener_open(LIST_ENTRY(node, struct listener, in_all));
    return result;
}
