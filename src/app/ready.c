#include "ready.h"

#include "config/tls_files.h"
#include "http/server.h"
#include "tls/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Records are at most 16 KiB, and decrypted whole. */
enum { PATIENCE_S = 2, ANSWER_MAX_BYTES = 40 * 1024, RECORDS_BYTES = 20 * 1024, WHY_MAX_BYTES = 1024 };

#define QUESTION TEXT("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

static const struct option_row READY_ROWS[] = {
    {.name = "internal-listen",
     .type = OPTION_TEXT,
     .offset = offsetof(struct command_line, settings.internal_listen),
     .default_text = SETTINGS_INTERNAL_LISTEN,
     .value_name = "ADDRESS",
     .help = "The --internal-listen address of the node."},
    {.name = "internal-tls-cert",
     .type = OPTION_TEXT,
     .offset = offsetof(struct command_line, settings.internal_tls_cert),
     .value_name = "PATH,…",
     .help = "The --internal-tls-cert of the node, if it has one. The node must show one of these certificates."},
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

static bool send_all(int fd, struct text bytes)
{
    return send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL) == (ssize_t)bytes.len;
}

/* Appends what comes next, up to the buffer's end. False: failed; *ret_count is 0 at the end. */
static bool receive_some(int fd, struct buf *ret_bytes, size_t *ret_count)
{
    char *room = buf_reserve(ret_bytes, 1);
    ssize_t got = room ? recv(fd, room, ret_bytes->capacity - ret_bytes->len, 0) : 0;

    *ret_count = got > 0 ? (size_t)got : 0;
    ret_bytes->len += *ret_count;
    return got >= 0;
}

/* Everything that the node sends before it closes the connection, truncated to the buffer. */
static bool talk_plainly(int fd, struct buf *ret_answer)
{
    size_t count = 1;
    bool is_fine = send_all(fd, QUESTION);

    while (is_fine && count > 0)
        is_fine = receive_some(fd, ret_answer, &count);
    return is_fine;
}

static bool send_records(int fd, struct buf *out)
{
    bool is_sent = out->len == 0 || send_all(fd, buf_text(out));

    buf_clear(out);
    return is_sent;
}

/* The same over TLS. */
static bool talk_in_records(int fd, struct tls_session *session, struct buf *ret_answer)
{
    char records[RECORDS_BYTES], out_storage[RECORDS_BYTES];
    struct buf in, out;
    size_t count = 1;
    bool is_asked = false;
    enum tls_state state;

    buf_init_fixed(&in, records, sizeof records);
    buf_init_fixed(&out, out_storage, sizeof out_storage);
    do {
        state = tls_receive(session, buf_text(&in), ret_answer, &out);
        buf_clear(&in);
        if (state == TLS_OPEN && !is_asked)
            is_asked = tls_send(session, QUESTION, &out);
        if (!send_records(fd, &out))
            return false;
    } while ((state == TLS_OPEN || state == TLS_HANDSHAKING) && count > 0 && receive_some(fd, &in, &count));
    return state == TLS_ENDED || (state == TLS_OPEN && count == 0);
}

/* On failure, *ret_why is a constant. */
static bool talk(int fd, struct tls_context *tls, struct buf *ret_answer, const char **ret_why)
{
    struct tls_session *session;
    bool is_answered;

    if (!tls) {
        is_answered = talk_plainly(fd, ret_answer);
        *ret_why = strerror(errno);
        return is_answered;
    }
    session = tls_session_connect(tls, "");
    is_answered = talk_in_records(fd, session, ret_answer);
    *ret_why = tls_session_state(session) == TLS_FAILED ? tls_session_reason(session) : strerror(errno);
    tls_session_free(session);
    return is_answered;
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

static int ask(int fd, struct tls_context *tls, const char *name, bool or_empty, const union address *address,
               socklen_t bytes)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char storage[ANSWER_MAX_BYTES];
    const char *why;
    struct buf answer;

    buf_init_fixed(&answer, storage, sizeof storage);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, &address->any, bytes) != 0)
        return command_fail(EXIT_FAILED, "the node at %s does not answer: %s", name, strerror(errno));
    if (!talk(fd, tls, &answer, &why))
        return command_fail(EXIT_FAILED, "the node at %s does not answer: %s", name, why);
    if (text_starts_with(buf_text(&answer), TEXT("HTTP/1.1 200 ")) ||
        (or_empty && waits_for_account(buf_text(&answer))))
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "the node at %s is not ready: %.*s", name, TEXT_ARG(body_of(buf_text(&answer))));
}

/* NULL in *ret_tls: the node speaks plain HTTP. */
static bool read_certificates(const struct command_line *line, struct tls_context **ret_tls)
{
    const char *paths = line->settings.internal_tls_cert;
    char storage[WHY_MAX_BYTES];
    struct buf why;

    *ret_tls = NULL;
    if (!paths || text_starts_with(text_of(line->settings.internal_listen), TEXT("unix:")))
        return true;
    buf_init_fixed(&why, storage, sizeof storage);
    *ret_tls = tls_files_open_pinned((struct tls_file_option){"--internal-tls-cert", paths}, &why);
    if (!*ret_tls)
        (void)command_fail(EXIT_USAGE, "%.*s", TEXT_ARG(buf_text(&why)));
    return *ret_tls;
}

int ready_run(const struct command_line *line)
{
    const char *name = line->settings.internal_listen;
    struct tls_context *tls;
    union address address;
    socklen_t bytes;
    int fd, code;

    if (!read_address(text_of(name), &address, &bytes))
        return command_fail(EXIT_USAGE, "--internal-listen must be host:port, [v6]:port or unix:/path, not '%s'", name);
    if (!read_certificates(line, &tls))
        return EXIT_USAGE;
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    code = fd < 0 ? command_fail(EXIT_FAILED, "cannot create a socket: %s", strerror(errno))
                  : ask(fd, tls, name, line->or_empty, &address, bytes);
    if (fd >= 0)
        (void)close(fd);
    tls_context_release(tls);
    return code;
}
