#include "parser_internal.h"

#include "base/check.h"

#include <llhttp.h>

#include <string.h>

static struct text text_between(const char *from, const char *to)
{
    return (struct text){from, (size_t)(to - from)};
}

static int stop(struct http_parser *parser, enum http_error error)
{
    parser->error = error;
    return HPE_USER;
}

/* After the head, llhttp reports trailers through the header callbacks. The framing guard bounds them; they are dropped
 * (H9). */
static int on_field_name(llhttp_t *machine, const char *at, size_t bytes)
{
    struct http_parser *parser = machine->data;

    if (parser->is_head_complete)
        return 0;
    if (parser->head->field_count == parser->field_room)
        return stop(parser, HTTP_ERROR_BAD_REQUEST);
    parser->head->fields[parser->head->field_count++].name = (struct text){at, bytes};
    return 0;
}

static int on_field_value(llhttp_t *machine, const char *at, size_t bytes)
{
    struct http_parser *parser = machine->data;
    struct http_field *field;

    if (parser->is_head_complete)
        return 0;
    CHECK(parser->head->field_count > 0);
    field = &parser->head->fields[parser->head->field_count - 1];
    /* The head is one piece, so each value is too; a second piece would be a folded line. */
    if (field->value.len > 0)
        return stop(parser, HTTP_ERROR_BAD_REQUEST);
    field->value = text_trim((struct text){at, bytes});
    return 0;
}

static int on_head_complete(llhttp_t *machine)
{
    struct http_parser *parser = machine->data;

    machine->upgrade = 0; /* H11: otherwise llhttp would stop parsing HTTP here */
    parser->head->keeps_alive = llhttp_should_keep_alive(machine) != 0;
    parser->is_head_complete = true;
    return 0;
}

static int on_body(llhttp_t *machine, const char *at, size_t bytes)
{
    struct http_parser *parser = machine->data;

    if (parser->head->is_chunked && !framing_validate(&parser->framing, text_between(parser->framing_from, at)))
        return stop(parser, HTTP_ERROR_BAD_REQUEST);
    parser->framing_from = at + bytes;
    parser->body_bytes += bytes;
    if (parser->body_bytes > parser->body_max_bytes)
        return stop(parser, HTTP_ERROR_BODY_TOO_LARGE);
    if (parser->sink)
        buf_append(parser->sink, at, bytes);
    return 0;
}

static int on_message_complete(llhttp_t *machine)
{
    struct http_parser *parser = machine->data;

    parser->is_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t CALLBACKS = {
    .on_header_field = on_field_name,
    .on_header_value = on_field_value,
    .on_headers_complete = on_head_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* llhttp and our own rules must agree on the framing (H7, H8). */
static bool framing_agrees(const struct http_parser *parser)
{
    const llhttp_t *machine = parser->machine;
    bool is_chunked = (machine->flags & F_CHUNKED) != 0;
    bool has_length = (machine->flags & F_CONTENT_LENGTH) != 0;

    return parser->head->is_chunked == is_chunked &&
           (has_length ? machine->content_length : 0) == parser->head->content_length;
}

static enum http_error run_head(struct http_parser *parser, struct text bytes)
{
    llhttp_errno_t result = llhttp_execute(parser->machine, bytes.ptr, bytes.len);

    return parser->is_head_complete && (result == HPE_OK || result == HPE_PAUSED) ? HTTP_ERROR_NONE
                                                                                  : HTTP_ERROR_BAD_REQUEST;
}

enum http_error parser_read_head(struct http_parser *parser, struct http_head *head, struct arena *arena,
                                 struct text bytes, size_t lines, const struct http_settings *settings)
{
    enum http_error error;

    ALL_REQUIRE(lines > 0 && !parser->head);
    parser->head = head;
    parser->body_max_bytes = (uint64_t)settings->limits.body_max_bytes;
    error = head_read_request_line(head, bytes, settings);
    if (error != HTTP_ERROR_NONE)
        return error;
    parser->field_room = lines - 1; /* the first is the request line */
    head->fields = arena_alloc(arena, lines * sizeof head->fields[0]);
    parser->machine = arena_alloc(arena, sizeof *parser->machine);
    llhttp_init(parser->machine, HTTP_REQUEST, &CALLBACKS);
    parser->machine->data = parser;
    error = run_head(parser, bytes);
    if (error == HTTP_ERROR_NONE)
        error = head_validate_fields(head, settings);
    if (error == HTTP_ERROR_NONE && !framing_agrees(parser))
        error = HTTP_ERROR_BAD_REQUEST;
    if (error == HTTP_ERROR_NONE)
        parser->is_complete = !head->is_chunked && head->content_length == 0;
    return error;
}

enum parser_result parser_read_body(struct http_parser *parser, struct text input, struct buf *sink, size_t *ret_used)
{
    llhttp_errno_t result;
    const char *end;

    *ret_used = 0;
    if (parser->is_complete)
        return PARSER_DONE;
    if (input.len == 0)
        return PARSER_MORE;
    parser->sink = sink;
    parser->framing_from = input.ptr;
    result = llhttp_execute(parser->machine, input.ptr, input.len);
    if (result != HPE_OK && !(result == HPE_PAUSED && parser->is_complete)) {
        if (parser->error == HTTP_ERROR_NONE)
            parser->error = HTTP_ERROR_BAD_REQUEST;
        return PARSER_REFUSED;
    }
    end = parser->is_complete ? llhttp_get_error_pos(parser->machine) : input.ptr + input.len;
    CHECK(end >= input.ptr && end <= input.ptr + input.len);
    if (parser->head->is_chunked && !framing_validate(&parser->framing, text_between(parser->framing_from, end))) {
        parser->error = HTTP_ERROR_BAD_REQUEST;
        return PARSER_REFUSED;
    }
    *ret_used = (size_t)(end - input.ptr);
    ALL_ENSURE(!parser->is_complete || parser->head->is_chunked || parser->body_bytes == parser->head->content_length);
    return parser->is_complete ? PARSER_DONE : PARSER_MORE;
}
