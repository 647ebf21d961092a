#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "conn_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, HOST_BYTES = INET6_ADDRSTRLEN, PORT_MAX = 65535 };

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
    struct http_server *server;
    struct list in_server;
};

/* At most one line in a while, for such errors come in swarms. A node that is out of descriptors does not come here:
 * libuv keeps a spare one, with which it takes and closes what waits, and tells nobody. */
static void complain(struct http_server *server, int error)
{
    metric_add(METRIC_CONNECTIONS_SHED, 1);
    if (!log_pause_is_over(&server->complaint_pause, uv_now(server->loop), COMPLAINT_INTERVAL_MS))
        return;
    LOG(LOG_WARN, "a connection could not be accepted", log_str("error", uv_strerror(error)),
        log_int("connections", (int64_t)server->conn_count));
}

static void listener_on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct http_server *server = listener->server;
    bool is_shed = server->conn_count >= (size_t)server->settings.connections_max;

    if (status != 0) {
        complain(server, status);
        return;
    }
    if (is_shed)
        metric_add(METRIC_CONNECTIONS_SHED, 1);
    conn_accept(server, stream, is_shed);
}

static void listener_on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct http_server *server = listener->server;

    list_remove(&listener->in_server);
    free(listener);
    server_part_ended(server);
}

static void listener_close(struct listener *listener)
{
    if (!uv_is_closing(&listener->io.handle))
        uv_close(&listener->io.handle, listener_on_closed);
}

void listener_close_all(struct http_server *server)
{
    for (struct list *node = server->listeners.next; node != &server->listeners; node = node->next)
        listener_close(LIST_ENTRY(node, struct listener, in_server));
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

static int print_bound(const uv_tcp_t *tcp, char ret_bound[HTTP_ADDRESS_BYTES])
{
    struct sockaddr_storage address;
    int address_bytes = sizeof address, result;
    char host[HOST_BYTES];
    struct buf out;

    result = uv_tcp_getsockname(tcp, (struct sockaddr *)&address, &address_bytes);
    if (result != 0)
        return result;
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

/* SO_REUSEPORT must be set before the socket is bound, so the socket is made here, not by libuv. */
static int open_socket(uv_tcp_t *tcp, int family, bool reuse_port)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1, result;

    if (fd < 0)
        return uv_translate_sys_error(errno);
    if (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
        result = uv_translate_sys_error(errno);
    else
        result = uv_tcp_open(tcp, fd);
    if (result != 0)
        close(fd);
    return result;
}

static int bind_tcp(uv_tcp_t *tcp, struct text address, bool reuse_port)
{
    struct sockaddr_storage parsed = {0};
    int result = http_address_read(address, &parsed);

    if (result == 0)
        result = open_socket(tcp, parsed.ss_family, reuse_port);
    if (result == 0)
        result = uv_tcp_bind(tcp, (const struct sockaddr *)&parsed, 0);
    return result;
}

/* A socket file that nobody listens on is left over from a node that died. */
static bool is_stale(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat file;
    bool is_refused;
    int fd;

    if (strlen(path) >= sizeof address.sun_path || lstat(path, &file) != 0 || !S_ISSOCK(file.st_mode))
        return false;
    memcpy(address.sun_path, path, strlen(path));
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    is_refused = connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

static int bind_unix(uv_pipe_t *pipe, const char *path)
{
    /* libuv cuts a longer path silently. */
    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return UV_ENAMETOOLONG;
    if (is_stale(path) && unlink(path) != 0)
        return uv_translate_sys_error(errno);
    return uv_pipe_bind(pipe, path);
}

int http_server_listen(struct http_server *server, const char *address, bool reuse_port,
                       char ret_bound[HTTP_ADDRESS_BYTES])
{
    bool is_unix = text_starts_with(text_of(address), TEXT("unix:"));
    struct listener *listener = mem_alloc(sizeof *listener);
    char bound[HTTP_ADDRESS_BYTES] = "";
    int result;

    CHECK((is_unix ? uv_pipe_init(server->loop, &listener->io.pipe, 0)
                   : uv_tcp_init(server->loop, &listener->io.tcp)) == 0);
    listener->io.handle.data = listener;
    listener->server = server;
    list_append(&server->listeners, &listener->in_server);
    result = is_unix ? bind_unix(&listener->io.pipe, address + TEXT("unix:").len)
                     : bind_tcp(&listener->io.tcp, text_of(address), reuse_port);
    if (result == 0)
        result = uv_listen(&listener->io.stream, BACKLOG, listener_on_connection);
    if (result == 0 && is_unix)
        memcpy(bound, address, strlen(address));
    else if (result == 0)
        result = print_bound(&listener->io.tcp, bound);
    if (result == 0)
        memcpy(ret_bound, bound, sizeof bound);
    else
        listener_close(listener);
    return result;
}
