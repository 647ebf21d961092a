#include "watch_stream.h"
#include "base/text.h"
#include "process.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* More of the text. HTTP/1.0 has no chunks: the body ends with the connection. */
static bool receive(struct watch_stream *stream, struct deadline deadline)
{
    struct pollfd readable = {.fd = stream->client.fd, .events = POLLIN};

    cr_assert_lt(stream->len, sizeof stream->text - 1, "an event is too long");
    if (stream->client.fd < 0 || poll(&readable, 1, deadline_left_ms(deadline)) <= 0)
        return false;
    ssize_t got = recv(stream->client.fd, stream->text + stream->len, sizeof stream->text - 1 - stream->len, 0);

    if (got <= 0)
        return false;
    stream->len += (size_t)got;
    stream->text[stream->len] = '\0';
    return true;
}

/* Takes everything up to and with this end off the text. */
static bool take(struct watch_stream *stream, const char *end, struct deadline deadline, char *ret_text, size_t size)
{
    const char *at;

    while (!(at = strstr(stream->text, end)))
        if (!receive(stream, deadline))
            return false;
    size_t len = (size_t)(at - stream->text), whole = len + strlen(end);

    cr_assert_lt(len, size, "%.200s", stream->text);
    memcpy(ret_text, stream->text, len);
    ret_text[len] = '\0';
    stream->len -= whole;
    memmove(stream->text, stream->text + whole, stream->len + 1);
    return true;
}

int watch_open(struct watch_stream *stream, const struct fixture *fixture, size_t node, const char *query,
               const char *more)
{
    char text[2 * WATCH_EVENT_BYTES], head[2048];
    uint64_t status;
    int length = snprintf(text, sizeof text, "GET /check/watch%s%s HTTP/1.0\r\nHost: t\r\n%s\r\n", query[0] ? "?" : "",
                          query, more);

    memset(stream, 0, sizeof *stream);
    http_client_connect(&stream->client, fixture->nodes[node].internal_port);
    cr_assert(http_client_send(&stream->client, text, (size_t)length));
    cr_assert(take(stream, "\r\n\r\n", deadline_in(PATIENCE_MS), head, sizeof head), "no answer");
    cr_assert(text_starts_with(text_of(head), TEXT("HTTP/1.1 ")), "%s", head);
    cr_assert(text_to_u64((struct text){head + 9, 3}, 999, &status), "%s", head);
    cr_assert(status != 200 || strstr(head, "Content-Type: text/event-stream"), "%s", head);
    return (int)status;
}

void watch_begin_at(struct watch_stream *stream, const struct fixture *fixture, size_t node, const char *query)
{
    struct watch_event event;
    struct http_answer answer = {0};

    cr_assert_eq(watch_open(stream, fixture, node, query, ""), 200);
    watch_next(stream, &event);
    cr_assert_str_eq(event.name, "ready");
    cr_assert(event.id[0]);
    answer.body_len = (size_t)snprintf(answer.body, sizeof answer.body, "%s", event.data);
    cr_assert(http_answer_json(&answer, "watcher", stream->watcher, sizeof stream->watcher), "%s", event.data);
}

void watch_close(struct watch_stream *stream)
{
    http_client_close(&stream->client);
}

static void keep(struct text t, char *ret_text, size_t size)
{
    cr_assert_lt(t.len, size);
    memcpy(ret_text, t.ptr, t.len);
    ret_text[t.len] = '\0';
}

static void read_line(struct text line, struct watch_event *ret_event)
{
    if (text_starts_with(line, TEXT("event: ")))
        keep(text_skip(line, 7), ret_event->name, sizeof ret_event->name);
    else if (text_starts_with(line, TEXT("id: ")))
        keep(text_skip(line, 4), ret_event->id, sizeof ret_event->id);
    else if (text_starts_with(line, TEXT("data: ")))
        keep(text_skip(line, 6), ret_event->data, sizeof ret_event->data);
    else
        cr_assert(text_starts_with(line, TEXT(":")) || text_starts_with(line, TEXT("retry: ")), "%.*s", TEXT_ARG(line));
}

static void read_lines(struct watch_stream *stream, struct text lines, struct watch_event *ret_event)
{
    struct text line;

    *ret_event = (struct watch_event){0};
    while (text_next(&lines, '\n', &line))
        read_line(line, ret_event);
    if (ret_event->id[0])
        memcpy(stream->cursor, ret_event->id, sizeof stream->cursor);
}

bool watch_try_next(struct watch_stream *stream, int within_ms, struct watch_event *ret_event)
{
    struct deadline deadline = deadline_in(within_ms);
    char text[2 * WATCH_EVENT_BYTES];

    do {
        if (!take(stream, "\n\n", deadline, text, sizeof text))
            return false;
        read_lines(stream, text_of(text), ret_event);
    } while (!ret_event->name[0]);
    return true;
}

void watch_next(struct watch_stream *stream, struct watch_event *ret_event)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    do
        cr_assert(watch_try_next(stream, deadline_left_ms(deadline), ret_event), "no event");
    while (strcmp(ret_event->name, "current") == 0);
}

void watch_expect(struct watch_stream *stream, const char *name, const char *id)
{
    struct watch_event event;
    char wanted[80];

    watch_next(stream, &event);
    snprintf(wanted, sizeof wanted, "{\"id\":\"%s\",", id);
    cr_assert_str_eq(event.name, name, "%s: %s", id, event.data);
    cr_assert(strncmp(event.data, wanted, strlen(wanted)) == 0, "%s: %s", wanted, event.data);
    cr_assert(event.id[0]);
}

void watch_await_current(struct watch_stream *stream)
{
    struct watch_event event;

    cr_assert(watch_try_next(stream, PATIENCE_MS, &event));
    cr_assert_str_eq(event.name, "current", "%s", event.data);
}

const char *watch_since(const struct watch_stream *stream)
{
    static char query[WATCH_EVENT_BYTES + 8];

    snprintf(query, sizeof query, "since=%s", stream->cursor);
    return query;
}

void watch_expect_end(struct watch_stream *stream)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    stream->len = 0;
    stream->text[0] = '\0';
    while (receive(stream, deadline))
        stream->len = 0;
    cr_assert_gt(deadline_left_ms(deadline), 0, "the stream goes on");
    watch_close(stream);
}
