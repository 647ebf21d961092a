#include "ready.h"

#include "http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_S = 2, ANSWER_MAX_BYTES = 4096 };

static const struct option_row READY_ROWS[] = {
    {.name = "internal-listen",
     .type = OPTION_TEXT,
     .offset = offsetof(struct command_line, settings.internal_listen),
     .default_text = SETTINGS_INTERNAL_LISTEN,
     .value_name = "ADDRESS",
     .help = "The --internal-listen address of the node."},
    {.name = "or-empty",
     .type = OPTION_FLAG,
     .offset = offsetof(struct command_line, or_empty),
     .help = "Also accept a node that waits for its first account, so that you can create it from the node's "
             "container. Such a node answers every request with 503."},
};
static const struct option_table READY_TABLE = {READY_ROWS, sizeof READY_ROWS / sizeof READY_ROWS[0]};
const struct option_group READY_OPTIONS[] = {{"Options", &READY_TABLE}, {0}};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
    struct sockaddr_storage storage;
};

static bool read_unix(struct text path, union address *ret_address)
{
    if (path.len == 0 || path.len >= sizeof ret_address->local.sun_path)
        return false;
    ret_address->local.sun_family = AF_UNIX;
    memcpy(ret_address->local.sun_path, path.ptr, path.len);
    return true;
}

/* If the node listens on all addresses, the loopback address is asked. */
static bool read_tcp(struct text text, union address *ret_address)
{
    if (http_address_read(text, &ret_address->storage) != 0)
        return false;
    if (ret_address->any.sa_family == AF_INET6) {
        if (IN6_IS_ADDR_UNSPECIFIED(&ret_address->v6.sin6_addr))
            ret_address->v6.sin6_addr = in6addr_loopback;
        return ret_address->v6.sin6_port != 0;
    }
    if (ret_address->v4.sin_addr.s_addr == htonl(INADDR_ANY))
        ret_address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ret_address->v4.sin_port != 0;
}

static bool read_address(struct text text, union address *ret_address, socklen_t *ret_bytes)
{
    *ret_address = (union address){0};
    if (text_starts_with(text, TEXT("unix:"))) {
        *ret_bytes = sizeof ret_address->local;
        return read_unix(text_skip(text, TEXT("unix:").len), ret_address);
    }
    if (!read_tcp(text, ret_address))
        return false;
    *ret_bytes = ret_address->any.sa_family == AF_INET6 ? sizeof ret_address->v6 : sizeof ret_address->v4;
    return true;
}

static bool send_question(int fd)
{
    static const char QUESTION[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const size_t bytes = sizeof QUESTION - 1;

    return send(fd, QUESTION, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Everything that the node sends before it closes the connection, truncated to the buffer. */
static bool read_answer(int fd, struct buf *ret_answer)
{
    for (;;) {
        char *room = buf_reserve(ret_answer, 1);
        ssize_t got = room ? recv(fd, room, ret_answer->capacity - ret_answer->len, 0) : 0;

        if (got < 0)
            return false;
        if (got == 0)
            return true;
        ret_answer->len += (size_t)got;
    }
}

/* The body, which says why a node is not ready. */
static struct text body_of(struct text answer)
{
    const char *head_end = memmem(answer.ptr, answer.len, "\r\n\r\n", 4);

    return head_end ? text_skip(answer, (size_t)(head_end - answer.ptr) + 4) : answer;
}

static bool waits_for_account(struct text answer)
{
    return text_starts_with(body_of(answer), TEXT("{\"status\":\"empty\""));
}

static int ask(int fd, const char *name, bool or_empty, const union address *address, socklen_t bytes)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char storage[ANSWER_MAX_BYTES];
    struct buf answer;

    buf_init_fixed(&answer, storage, sizeof storage);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, &address->any, bytes) != 0 || !send_question(fd) || !read_answer(fd, &answer))
        return command_fail(EXIT_FAILED, "the node at %s does not answer: %s", name, strerror(errno));
    if (text_starts_with(buf_text(&answer), TEXT("HTTP/1.1 200 ")) ||
        (or_empty && waits_for_account(buf_text(&answer))))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the node at %s is not ready: %.*s", name, TEXT_ARG(body_of(buf_text(&answer))));
}

int ready_run(const struct command_line *line)
{
    const char *name = line->settings.internal_listen;
    union address address;
    socklen_t bytes;
    int fd, code;

    if (!read_address(text_of(name), &address, &bytes))
        return command_fail(EXIT_USAGE, "--internal-listen must be host:port, [v6]:port or unix:/path, not '%s'", name);
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return command_fail(EXIT_FAILED, "cannot create a socket: %s", strerror(errno));
    code = ask(fd, name, line->or_empty, &address, bytes);
    (void)close(fd);
    return code;
}
