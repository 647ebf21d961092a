/* Bytes of a connection through the head rules, llhttp and the framing guard. Beyond "does not crash": what is fed
 * whole and what is fed in pieces is understood in the same way, and a request takes its own bytes only. */
#include "base/check.h"
#include "base/mem.h"
#include "http/cookie.h"
#include "http/parser_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

enum { HEAD_MAX_BYTES = 2048, BODY_MAX_BYTES = 1024, REQUESTS_MAX = 8, EVENTS_MAX_BYTES = 64 * 1024 };

static const struct http_settings SETTINGS = {
    .limits.head_max_bytes = HEAD_MAX_BYTES,
    .limits.fields_max = 20,
    .limits.target_max_bytes = 500,
    .limits.body_max_bytes = BODY_MAX_BYTES,
};

/* Gives the input out in pieces: always the bytes so far, as a connection's stash does. */
struct feed {
    struct text input;
    size_t available;
    size_t piece_bytes;
};

static bool feed_more(struct feed *feed)
{
    size_t left = feed->input.len - feed->available;

    feed->available += left < feed->piece_bytes ? left : feed->piece_bytes;
    return left > 0;
}

static struct text feed_from(const struct feed *feed, size_t at)
{
    return text_skip((struct text){feed->input.ptr, feed->available}, at);
}

static void note_head(const struct http_head *head, struct buf *events)
{
    struct text value;

    buf_printf(events, "%.*s %.*s ? %.*s keeps %d expects %d chunked %d length %llu\n", TEXT_ARG(head->method),
               TEXT_ARG(head->path), TEXT_ARG(head->query), head->keeps_alive, head->expects_continue, head->is_chunked,
               (unsigned long long)head->content_length);
    for (size_t i = 0; i < head->field_count; i++) {
        buf_append_text(events, head->fields[i].name);
        buf_append_char(events, ':');
        buf_append_text(events, head->fields[i].value);
        buf_append_char(events, '\n');
        if (text_equal_nocase(head->fields[i].name, TEXT("cookie")))
            buf_append_u64(events, cookie_find(head->fields[i].value, TEXT("s"), &value));
    }
}

static enum parser_result read_body(struct feed *feed, struct http_parser *parser, size_t *at, struct buf *events)
{
    struct buf body;
    enum parser_result result;
    size_t used;

    buf_init(&body, BODY_MAX_BYTES);
    do {
        struct text piece = feed_from(feed, *at);

        result = parser_read_body(parser, piece, &body, &used);
        CHECK(used <= piece.len);
        *at += used;
    } while (result == PARSER_MORE && feed_more(feed));
    CHECK(!body.failed);
    if (result == PARSER_DONE)
        buf_append_text(events, buf_text(&body));
    buf_printf(events, "\nbody ends %d %d\n", result, result == PARSER_REFUSED ? (int)parser->error : 0);
    buf_finish(&body);
    return result;
}

/* True: the next request may follow at *at. */
static bool read_request(struct feed *feed, size_t *at, struct buf *events)
{
    struct head_scan scan = {0};
    struct http_parser parser = {0};
    struct http_head head = {0};
    struct arena arena;
    enum http_error error;
    enum head_scan_result found;
    size_t head_bytes;
    bool is_read;

    while ((found = head_scan(&scan, feed_from(feed, *at), &SETTINGS, &head_bytes, &error)) == HEAD_PARTIAL) {
        if (!feed_more(feed))
            return false;
    }
    if (found == HEAD_REFUSED) {
        buf_printf(events, "head refused %d\n", error);
        return false;
    }
    CHECK(head_bytes <= HEAD_MAX_BYTES);
    arena_init(&arena, NULL, 0);
    error = parser_read_head(&parser, &head, &arena,
                             arena_copy(&arena, (struct text){feed_from(feed, *at).ptr, head_bytes}), scan.lines,
                             &SETTINGS);
    *at += head_bytes;
    buf_printf(events, "head %d\n", error);
    if (error == HTTP_ERROR_NONE)
        note_head(&head, events);
    is_read = error == HTTP_ERROR_NONE && read_body(feed, &parser, at, events) == PARSER_DONE && head.keeps_alive;
    arena_finish(&arena);
    return is_read;
}

static void converse(struct text input, size_t piece_bytes, struct buf *events)
{
    struct feed feed = {.input = input, .piece_bytes = piece_bytes};
    size_t at = 0;

    buf_init(events, EVENTS_MAX_BYTES);
    for (int i = 0; i < REQUESTS_MAX && read_request(&feed, &at, events); i++)
        CHECK(at <= input.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const size_t PIECES[] = {1, 2, 3, 7};
    struct buf whole, pieces;
    char *copy = mem_alloc(count + 1);

    /* A copy of just that size, so that a read beyond it is found. */
    if (count > 0)
        memcpy(copy, bytes, count);
    converse((struct text){copy, count}, SIZE_MAX, &whole);
    for (size_t i = 0; i < sizeof PIECES / sizeof PIECES[0]; i++) {
        converse((struct text){copy, count}, PIECES[i], &pieces);
        CHECK(whole.failed == pieces.failed);
        CHECK(whole.failed || text_equal(buf_text(&whole), buf_text(&pieces)));
        buf_finish(&pieces);
    }
    buf_finish(&whole);
    free(copy);
    return 0;
}
