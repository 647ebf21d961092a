#include "response_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/metrics.h"

enum { MS_PER_S = 1000, STATUS_MODULUS = 1000 };

void answers_init(struct answers *answers, const struct http_settings *settings,
                  void (*send)(struct conn *conn, struct text answer, struct text lasting))
{
    answers->settings = settings;
    cork_init(&answers->cork, settings->turn, send);
    buf_init(&answers->common_lines, REPLY_MAX_BYTES);
}

void answers_finish(struct answers *answers)
{
    cork_finish(&answers->cork);
    buf_finish(&answers->common_lines);
}

/* RFC 9110 section 15. */
static const struct status_row {
    int status;
    struct text line;
} STATUSES[] = {
    {200, TEXT("HTTP/1.1 200 OK\r\n")},
    {201, TEXT("HTTP/1.1 201 Created\r\n")},
    {202, TEXT("HTTP/1.1 202 Accepted\r\n")},
    {204, TEXT("HTTP/1.1 204 No Content\r\n")},
    {302, TEXT("HTTP/1.1 302 Found\r\n")},
    {303, TEXT("HTTP/1.1 303 See Other\r\n")},
    {304, TEXT("HTTP/1.1 304 Not Modified\r\n")},
    {307, TEXT("HTTP/1.1 307 Temporary Redirect\r\n")},
    {308, TEXT("HTTP/1.1 308 Permanent Redirect\r\n")},
    {400, TEXT("HTTP/1.1 400 Bad Request\r\n")},
    {401, TEXT("HTTP/1.1 401 Unauthorized\r\n")},
    {403, TEXT("HTTP/1.1 403 Forbidden\r\n")},
    {404, TEXT("HTTP/1.1 404 Not Found\r\n")},
    {405, TEXT("HTTP/1.1 405 Method Not Allowed\r\n")},
    {406, TEXT("HTTP/1.1 406 Not Acceptable\r\n")},
    {408, TEXT("HTTP/1.1 408 Request Timeout\r\n")},
    {409, TEXT("HTTP/1.1 409 Conflict\r\n")},
    {410, TEXT("HTTP/1.1 410 Gone\r\n")},
    {412, TEXT("HTTP/1.1 412 Precondition Failed\r\n")},
    {413, TEXT("HTTP/1.1 413 Content Too Large\r\n")},
    {414, TEXT("HTTP/1.1 414 URI Too Long\r\n")},
    {415, TEXT("HTTP/1.1 415 Unsupported Media Type\r\n")},
    {417, TEXT("HTTP/1.1 417 Expectation Failed\r\n")},
    {422, TEXT("HTTP/1.1 422 Unprocessable Content\r\n")},
    {429, TEXT("HTTP/1.1 429 Too Many Requests\r\n")},
    {431, TEXT("HTTP/1.1 431 Request Header Fields Too Large\r\n")},
    {500, TEXT("HTTP/1.1 500 Internal Server Error\r\n")},
    {501, TEXT("HTTP/1.1 501 Not Implemented\r\n")},
    {502, TEXT("HTTP/1.1 502 Bad Gateway\r\n")},
    {503, TEXT("HTTP/1.1 503 Service Unavailable\r\n")},
    {504, TEXT("HTTP/1.1 504 Gateway Timeout\r\n")},
    {505, TEXT("HTTP/1.1 505 HTTP Version Not Supported\r\n")},
};

static struct text status_line(int status)
{
    for (size_t i = 0; i < sizeof STATUSES / sizeof STATUSES[0]; i++) {
        if (STATUSES[i].status == status)
            return STATUSES[i].line;
    }
    UNREACHABLE();
}

void http_response_header(struct http_request *request, struct text name, struct text value)
{
    const size_t bytes = name.len + value.len + 4;
    struct reply_line *line;
    char *out;

    REQUIRE(name.len > 0);
    if (request->is_gone)
        return;
    line = arena_alloc(&request->arena, sizeof *line + bytes);
    out = (char *)(line + 1);
    line->line = (struct text){out, bytes};
    memcpy(out, "\r\n", 2);
    memcpy(out + 2, name.ptr, name.len);
    memcpy(out + 2 + name.len, ": ", 2);
    if (value.len > 0)
        memcpy(out + 4 + name.len, value.ptr, value.len);
    REQUIRE(!text_has_control(text_skip(line->line, 2)));
    *request->last_line = line;
    request->last_line = &line->next;
}

void http_response_fixed_headers(struct http_request *request, struct text lines)
{
    REQUIRE(lines.len > 0);
    request->fixed_headers = lines;
}

void http_response_close(struct http_request *request)
{
    request->must_close = true;
}

void http_response_on_replied(struct http_request *request, void (*replied)(void *arg, int status), void *arg)
{
    struct replied_hook *hook = arena_alloc(&request->arena, sizeof *hook);

    REQUIRE(!request->is_replied);
    *hook = (struct replied_hook){request->replied, replied, arg};
    request->replied = hook;
}

void http_response_on_delivered(struct http_request *request, void (*done)(void *arg, bool delivered), void *arg)
{
    REQUIRE(!request->is_replied);
    request_pin(request);
    delivery_ask(&request->delivery, done, arg);
    if (request->is_gone)
        delivery_lose(&request->all->deliveries, &request->delivery);
}

/* Whether the connection ends with this reply. Either that was asked for, or the client still waits for 100 Continue:
 * it may or may not send its body now, and that body could not be told from the next request. */
static bool ends_connection(const struct http_request *request)
{
    bool is_body_in_doubt =
        request->head.expects_continue && !request->has_sent_continue && !request->parser.is_complete;

    return request->must_close || !request->head.keeps_alive || is_body_in_doubt || request->all->answers->are_last;
}

static bool status_has_body(int status)
{
    return status != 204 && status != 304;
}

static void make_common_lines(struct buf *lines, int64_t now_ms, struct text fixed_headers)
{
    char date[CLOCK_HTTP_DATE_BYTES];

    clock_print_http_date(now_ms, date);
    buf_clear(lines);
    buf_append_text(lines, TEXT("Date: "));
    buf_append_str(lines, date);
    buf_append_text(lines, TEXT("\r\n"));
    buf_append_text(lines, fixed_headers);
    buf_append_text(lines, TEXT("X-Request-Id: "));
    ENSURE(!lines->failed);
}

/* The start of every response after its status line: "Date: …\r\n", the fixed headers, and "X-Request-Id: ". Made once
 * a second, and for each request that has fixed headers of its own. */
static struct text common_lines(const struct http_request *request)
{
    struct answers *answers = request->all->answers;
    const int64_t now_ms = http_request_wall_ms(request);

    if (request->fixed_headers.len > 0) {
        make_common_lines(&answers->common_lines, now_ms, request->fixed_headers);
        answers->common_lines_s = -1;
    } else if (now_ms / MS_PER_S != answers->common_lines_s || answers->common_lines.len == 0) {
        make_common_lines(&answers->common_lines, now_ms, answers->settings->fixed_headers);
        answers->common_lines_s = now_ms / MS_PER_S;
    }
    return buf_text(&answers->common_lines);
}

void response_print_head(const struct http_request *request, int status, struct text content_type,
                         enum response_framing framing, size_t body_bytes, struct buf *out)
{
    buf_append_text(out, status_line(status));
    buf_append_text(out, common_lines(request));
    buf_append_text(out, http_request_id(request));
    for (const struct reply_line *line = request->first_line; line; line = line->next)
        buf_append_text(out, line->line);
    if (content_type.len > 0) {
        buf_append_text(out, TEXT("\r\nContent-Type: "));
        buf_append_text(out, content_type);
    }
    if (framing == FRAMED_BY_LENGTH) {
        buf_append_text(out, TEXT("\r\nContent-Length: "));
        buf_append_u64(out, body_bytes);
    } else if (framing == FRAMED_BY_CHUNKS) {
        buf_append_text(out, TEXT("\r\nTransfer-Encoding: chunked"));
    }
    if (request->must_close)
        buf_append_text(out, TEXT("\r\nConnection: close"));
    else if (request->head.is_http_1_0)
        buf_append_text(out, TEXT("\r\nConnection: keep-alive"));
    buf_append_text(out, TEXT("\r\n\r\n"));
}

bool response_begin(struct http_request *request, int status)
{
    REQUIRE(!request->is_replied);
    REQUIRE(!request->body_done || request->is_gone);
    request->is_replied = true;
    if (request->is_gone)
        return false;
    metric_add(METRIC_REQUESTS, 1);
    for (const struct replied_hook *hook = request->replied; hook; hook = hook->next)
        hook->run(hook->arg, status);
    request->must_close = ends_connection(request);
    return true;
}

static void reply(struct http_request *request, int status, struct text content_type, struct text body,
                  bool is_body_lasting)
{
    struct cork *cork = &request->all->answers->cork;
    struct buf *out = &cork->scratch;
    const size_t from = out->len;
    struct text lasting = {NULL, 0};

    if (!response_begin(request, status))
        return;
    if (content_type.len == 0)
        body.len = 0;
    response_print_head(request, status, content_type, status_has_body(status) ? FRAMED_BY_LENGTH : FRAMED_BY_END,
                        body.len, out);
    if (request->method != HTTP_HEAD && status_has_body(status)) {
        buf_append_text(out, body);
        if (is_body_lasting)
            lasting = body;
    }
    ENSURE(!out->failed);
    cork_send(cork, request->conn, from, lasting); /* may free the request */
}

void http_reply(struct http_request *request, int status, struct text content_type, struct text body)
{
    reply(request, status, content_type, body, false);
}

void http_reply_lasting(struct http_request *request, int status, struct text content_type, struct text body)
{
    reply(request, status, content_type, body, true);
}

void http_reply_json(struct http_request *request, int status, const struct buf *json)
{
    if (json->failed)
        http_refuse(request, HTTP_ERROR_INTERNAL);
    else
        http_reply(request, status, TEXT("application/json"), buf_text(json));
}

void http_refuse(struct http_request *request, enum http_error error)
{
    const struct requests *all = request->all;

    if (all->settings->print_error)
        all->settings->print_error(request, error, all->handler_arg);
    else
        http_reply(request, (int)error % STATUS_MODULUS, (struct text){NULL, 0}, (struct text){NULL, 0});
}

void response_refuse(struct http_request *request, enum http_error error)
{
    if (error == HTTP_ERROR_METHOD_NOT_ALLOWED)
        http_response_header(request, TEXT("Allow"), TEXT(HTTP_METHODS_ALLOWED));
    http_response_close(request);
    http_refuse(request, error);
}

void response_answer_options(struct http_request *request)
{
    http_response_header(request, TEXT("Allow"), TEXT(HTTP_METHODS_ALLOWED));
    http_reply(request, 204, (struct text){NULL, 0}, (struct text){NULL, 0});
}
