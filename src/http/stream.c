#include "http/stream.h"

#include "base/check.h"
#include "response_internal.h"

/* Sends at once, even if responses wait for the end of a slice: the answer of a stream is no quick one. */
static void send_from(struct http_request *request, size_t from)
{
    struct cork *cork = &request->all->answers->cork;

    ENSURE(!cork->scratch.failed);
    cork_send_now(cork, request->conn, from);
}

bool http_stream_begin(struct http_request *request, int status, struct text content_type)
{
    struct buf *out = &request->all->answers->cork.scratch;
    const size_t from = out->len;
    bool is_chunked = !request->head.is_http_1_0, has_body = request->method != HTTP_HEAD;

    REQUIRE(request->delivery.state == DELIVERY_NONE && content_type.len > 0);
    if (has_body && !is_chunked)
        http_response_close(request);
    if (!response_begin(request, status))
        return false;
    request->stream = (struct stream){.is_open = has_body, .is_chunked = is_chunked};
    response_print_head(request, status, content_type, has_body && is_chunked ? FRAMED_BY_CHUNKS : FRAMED_BY_END, 0,
                        out);
    send_from(request, from);
    return has_body && !request->is_gone;
}

static void print_piece(const struct http_request *request, struct text piece, struct buf *out)
{
    if (request->stream.is_chunked)
        buf_printf(out, "%zx\r\n", piece.len);
    buf_append_text(out, piece);
    if (request->stream.is_chunked)
        buf_append(out, "\r\n", 2);
}

void http_stream_send(struct http_request *request, struct text piece, void (*drained)(void *arg), void *arg)
{
    struct stream *stream = &request->stream;
    struct buf *out = &request->all->answers->cork.scratch;
    const size_t from = out->len;

    REQUIRE(stream->is_open && !stream->drained && piece.len > 0);
    request_pin(request);
    stream->drained = drained;
    stream->arg = arg;
    if (request->is_gone) {
        delivery_lose(&request->all->deliveries, &request->delivery);
        return;
    }
    print_piece(request, piece, out);
    send_from(request, from);
}

void http_stream_end(struct http_request *request)
{
    struct stream *stream = &request->stream;
    struct buf *out = &request->all->answers->cork.scratch;
    const size_t from = out->len;

    REQUIRE(stream->is_open && !stream->drained);
    stream->is_open = false;
    if (request->is_gone)
        return;
    if (!stream->is_chunked) {
        request->all->end_stream(request->conn);
        return;
    }
    buf_append(out, "0\r\n\r\n", 5);
    send_from(request, from);
}

void http_stream_break(struct http_request *request)
{
    REQUIRE(request->stream.is_open && !request->stream.drained);
    request->stream.is_open = false;
    if (!request->is_gone)
        request->all->reset(request->conn);
}
