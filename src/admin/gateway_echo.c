/* gateway-echo: a backend that tells each request as it arrived, head, body and trailers, as message/http (RFC 9112,
 * section 10.1), for 'doctor --gateway'. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "base/mem.h"
#include "http/message.h"
#include "http/server.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum { REQUEST_MAX_BYTES = 64 * 1024, INPUT_BYTES = 16 * 1024, HEAD_BYTES = 256, CONNECTIONS_MAX = 256, BACKLOG = 64 };

struct echo {
    uv_loop_t loop;
    uv_tcp_t listener;
    unsigned connections;
    char input[INPUT_BYTES];
};

struct echo_connection {
    struct echo *echo;
    uv_tcp_t socket;
    uv_write_t write;
    struct http_message request;
    struct buf raw; /* the bytes of the request */
    char head[HEAD_BYTES];
};

static void on_closed(uv_handle_t *handle)
{
    struct echo_connection *connection = handle->data;

    connection->echo->connections--;
    http_message_finish(&connection->request);
    buf_wipe(&connection->raw);
    free(connection);
}

static void end(struct echo_connection *connection)
{
    if (!uv_is_closing((uv_handle_t *)&connection->socket))
        uv_close((uv_handle_t *)&connection->socket, on_closed);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    end(write->data);
}

static void answer(struct echo_connection *connection)
{
    int bytes = snprintf(connection->head, sizeof connection->head,
                         "HTTP/1.1 200 OK\r\nContent-Type: message/http\r\nCache-Control: no-store\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                         connection->raw.len);
    const uv_buf_t parts[] = {uv_buf_init(connection->head, (unsigned)bytes),
                              uv_buf_init(connection->raw.ptr, (unsigned)connection->raw.len)};

    uv_read_stop((uv_stream_t *)&connection->socket);
    connection->write.data = connection;
    if (uv_write(&connection->write, (uv_stream_t *)&connection->socket, parts, 2, on_written) != 0)
        end(connection);
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    struct echo_connection *connection = handle->data;

    (void)suggested;
    *ret_buf = uv_buf_init(connection->echo->input, INPUT_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct echo_connection *connection = stream->data;
    struct text bytes = {buf->base, count > 0 ? (size_t)count : 0};

    if (count < 0) {
        end(connection);
        return;
    }
    buf_append_text(&connection->raw, bytes);
    switch (http_message_feed(&connection->request, bytes)) {
    case HTTP_MESSAGE_MORE:
        if (connection->raw.failed)
            end(connection);
        break;
    case HTTP_MESSAGE_DONE:
        answer(connection);
        break;
    case HTTP_MESSAGE_BAD:
        end(connection);
        break;
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct echo *echo = listener->data;
    struct echo_connection *connection;

    if (status != 0)
        return;
    connection = mem_alloc(sizeof *connection);
    connection->echo = echo;
    connection->socket.data = connection;
    http_message_init(&connection->request, HTTP_MESSAGE_REQUEST, REQUEST_MAX_BYTES);
    buf_init(&connection->raw, REQUEST_MAX_BYTES);
    echo->connections++;
    uv_tcp_init(&echo->loop, &connection->socket);
    if (uv_accept(listener, (uv_stream_t *)&connection->socket) != 0 || echo->connections > CONNECTIONS_MAX ||
        uv_read_start((uv_stream_t *)&connection->socket, lend, on_read) != 0)
        end(connection);
}

static int tell_address(const struct echo *echo)
{
    struct sockaddr_storage bound;
    int bytes = sizeof bound;
    char host[INET6_ADDRSTRLEN];
    struct buf out = BUF_FIXED(ADMIN_WHY_MAX_BYTES);

    if (uv_tcp_getsockname(&echo->listener, (struct sockaddr *)&bound, &bytes) != 0 ||
        uv_ip_name((const struct sockaddr *)&bound, host, sizeof host) != 0)
        return command_fail(EXIT_FAILED, "cannot tell the address");
    buf_printf(&out,
               bound.ss_family == AF_INET6 ? "Listens on [%s]:%u. It tells whoever asks what it gets, keys too.\n"
                                           : "Listens on %s:%u. It tells whoever asks what it gets, keys too.\n",
               host, (unsigned)ntohs(((const struct sockaddr_in *)(const void *)&bound)->sin_port));
    return command_print(buf_text(&out));
}

static int listen_at(struct echo *echo, const char *name, const struct sockaddr_storage *address)
{
    int error = uv_tcp_init(&echo->loop, &echo->listener);

    echo->listener.data = echo;
    if (error == 0)
        error = uv_tcp_bind(&echo->listener, (const struct sockaddr *)address, 0);
    if (error == 0)
        error = uv_listen((uv_stream_t *)&echo->listener, BACKLOG, on_connection);
    if (error != 0)
        return command_fail(EXIT_FAILED, "cannot listen on %s: %s", name, uv_strerror(error));
    return tell_address(echo);
}

int gateway_echo_run(const struct command_line *line)
{
    const char *name = line->operands[0];
    struct echo *echo = mem_alloc(sizeof *echo);
    struct sockaddr_storage address;
    int code = EXIT_DONE;

    if (http_address_read(text_of(name), &address) != 0)
        code = command_fail(EXIT_USAGE, "ADDRESS must be host:port or [v6]:port, the host being an address, not '%s'",
                            name);
    if (code == EXIT_DONE && uv_loop_init(&echo->loop) != 0)
        code = command_fail(EXIT_FAILED, "cannot create a loop");
    else if (code == EXIT_DONE && (code = listen_at(echo, name, &address)) == EXIT_DONE)
        code = uv_run(&echo->loop, UV_RUN_DEFAULT) == 0 ? EXIT_DONE : EXIT_FAILED;
    free(echo);
    return code;
}
