#include "http/call.h"

#include "base/clock.h"
#include "tls/session.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* Records are at most 16 KiB, and decrypted whole. */
enum { INPUT_BYTES = 16 * 1024, PLAIN_BYTES = 40 * 1024, OUTPUT_MAX_BYTES = 256 * 1024 };

struct http_call {
    int fd;
    uint64_t until_ns;
    struct tls_session *tls; /* NULL: plain HTTP */
    struct buf out;          /* what the socket has not taken yet */
    struct http_message *response;
    struct buf *why;
};

static enum http_call_result fail(struct http_call *call, enum http_call_result result, const char *why)
{
    buf_append_str(call->why, why);
    return result;
}

static int left_ms(const struct http_call *call)
{
    uint64_t now_ns = clock_boot_ns();

    return now_ns < call->until_ns ? (int)((call->until_ns - now_ns) / CLOCK_NS_PER_MS) + 1 : 0;
}

/* False: the time is over. */
static bool await(struct http_call *call, short events)
{
    struct pollfd poller = {call->fd, events, 0};
    int ready, patience_ms;

    do {
        patience_ms = left_ms(call);
        ready = poll(&poller, 1, patience_ms);
    } while ((ready < 0 && errno == EINTR) || (ready == 0 && patience_ms > 0));
    return ready != 0;
}

static enum http_call_result reach(struct http_call *call, const struct http_call_peer *peer)
{
    int error = 0;
    socklen_t bytes = sizeof error;

    call->fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (call->fd < 0)
        return fail(call, HTTP_CALL_REFUSED, strerror(errno));
    if (connect(call->fd, (const struct sockaddr *)&peer->address, peer->address_bytes) == 0)
        return HTTP_CALL_ANSWERED;
    if (errno != EINPROGRESS)
        return fail(call, HTTP_CALL_REFUSED, strerror(errno));
    if (!await(call, POLLOUT))
        return fail(call, HTTP_CALL_REFUSED, strerror(ETIMEDOUT));
    if (getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error != 0)
        return fail(call, HTTP_CALL_REFUSED, strerror(error ? error : errno));
    return HTTP_CALL_ANSWERED;
}

/* What the socket takes at once. A peer that has answered already may have closed its side: what it said counts. */
static void send_some(struct http_call *call)
{
    ssize_t sent = send(call->fd, call->out.ptr, call->out.len, MSG_NOSIGNAL);

    if (sent > 0)
        buf_consume(&call->out, (size_t)sent);
    else if (sent < 0 && errno != EAGAIN && errno != EINTR)
        buf_clear(&call->out);
}

static void take_plain(struct http_call *call, struct text bytes)
{
    (void)http_message_feed(call->response, bytes);
}

/* The request leaves once the handshake is complete. */
static bool take_records(struct http_call *call, struct text bytes, struct text *request)
{
    char storage[PLAIN_BYTES];
    struct buf plain;
    enum tls_state state;

    buf_init_fixed(&plain, storage, sizeof storage);
    state = tls_receive(call->tls, bytes, &plain, &call->out);
    if (state == TLS_OPEN && request->len > 0 && !tls_send(call->tls, *request, &call->out))
        state = TLS_FAILED;
    if (state == TLS_OPEN)
        *request = (struct text){NULL, 0};
    take_plain(call, buf_text(&plain));
    if (state == TLS_ENDED)
        (void)http_message_end(call->response);
    return state != TLS_FAILED;
}

/* False: nothing more comes. */
static bool receive_some(struct http_call *call, char input[INPUT_BYTES], struct text *ret_bytes)
{
    ssize_t got = recv(call->fd, input, INPUT_BYTES, 0);

    *ret_bytes = (struct text){input, got > 0 ? (size_t)got : 0};
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static enum http_call_result converse(struct http_call *call, struct text request)
{
    char input[INPUT_BYTES];
    struct text bytes = {NULL, 0};
    bool goes_on = true;

    if (!call->tls)
        buf_append_text(&call->out, request);
    else if (!take_records(call, bytes, &request))
        return fail(call, HTTP_CALL_FAILED, tls_session_reason(call->tls));
    while (call->response->state == HTTP_MESSAGE_MORE && goes_on) {
        if (!await(call, call->out.len > 0 ? POLLIN | POLLOUT : POLLIN))
            return fail(call, HTTP_CALL_SILENT, "no response in time");
        if (call->out.len > 0)
            send_some(call);
        goes_on = receive_some(call, input, &bytes);
        if (!call->tls)
            take_plain(call, bytes);
        else if (bytes.len > 0 && !take_records(call, bytes, &request))
            return fail(call, request.len > 0 ? HTTP_CALL_REFUSED : HTTP_CALL_FAILED, tls_session_reason(call->tls));
    }
    if (http_message_end(call->response) == HTTP_MESSAGE_DONE)
        return HTTP_CALL_ANSWERED;
    return fail(call, HTTP_CALL_FAILED, goes_on ? "the response is not HTTP" : "the connection was closed");
}

enum http_call_result http_call_make(const struct http_call_peer *peer, struct text request, int64_t patience_ms,
                                     struct http_message *response, struct buf *ret_why)
{
    struct http_call call = {.until_ns = clock_boot_ns() + (uint64_t)patience_ms * CLOCK_NS_PER_MS,
                             .tls = peer->tls ? tls_session_connect(peer->tls, peer->host) : NULL,
                             .response = response,
                             .why = ret_why};
    enum http_call_result result;

    buf_init(&call.out, OUTPUT_MAX_BYTES);
    result = reach(&call, peer);
    if (result == HTTP_CALL_ANSWERED)
        result = converse(&call, request);
    if (call.fd >= 0)
        (void)close(call.fd);
    buf_wipe(&call.out);
    tls_session_free(call.tls);
    return result;
}
