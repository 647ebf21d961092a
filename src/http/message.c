#include "http/message.h"

#include "base/mem.h"

#include <llhttp.h>
#include <stdlib.h>

enum { STATUS_INTERIM_MAX = 199, STATUS_CONTINUE = 100, STATUS_SWITCHED = 101 };

static struct buf *field_lines(struct http_message *message)
{
    return message->head_complete ? &message->trailers : &message->fields;
}

/* llhttp ends with an error if a callback does not return 0. */
static int append(struct buf *out, const char *at, size_t bytes)
{
    buf_append(out, at, bytes);
    return out->failed ? HPE_USER : 0;
}

static int on_target(llhttp_t *machine, const char *at, size_t bytes)
{
    return append(&((struct http_message *)machine->data)->target, at, bytes);
}

static int on_field(llhttp_t *machine, const char *at, size_t bytes)
{
    return append(field_lines(machine->data), at, bytes);
}

static int on_field_name_end(llhttp_t *machine)
{
    return append(field_lines(machine->data), ": ", 2);
}

static int on_field_end(llhttp_t *machine)
{
    return append(field_lines(machine->data), "\n", 1);
}

static int on_head_complete(llhttp_t *machine)
{
    struct http_message *message = machine->data;

    message->head_complete = true;
    message->status = machine->status_code;
    return 0;
}

static int on_body(llhttp_t *machine, const char *at, size_t bytes)
{
    return append(&((struct http_message *)machine->data)->body, at, bytes);
}

static int on_message_complete(llhttp_t *machine)
{
    struct http_message *message = machine->data;

    if (machine->type != HTTP_RESPONSE || message->status > STATUS_INTERIM_MAX || message->status == STATUS_SWITCHED) {
        message->state = HTTP_MESSAGE_DONE;
        return HPE_PAUSED;
    }
    message->asked_for_body |= message->status == STATUS_CONTINUE;
    message->head_complete = false;
    message->status = 0;
    buf_clear(&message->fields);
    return 0;
}

static const llhttp_settings_t CALLBACKS = {
    .on_url = on_target,
    .on_header_field = on_field,
    .on_header_field_complete = on_field_name_end,
    .on_header_value = on_field,
    .on_header_value_complete = on_field_end,
    .on_headers_complete = on_head_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http_message_init(struct http_message *message, enum http_message_kind kind, size_t max_bytes)
{
    *message = (struct http_message){.machine = mem_alloc(sizeof *message->machine)};
    buf_init(&message->target, max_bytes);
    buf_init(&message->fields, max_bytes);
    buf_init(&message->trailers, max_bytes);
    buf_init(&message->body, max_bytes);
    llhttp_init(message->machine, kind == HTTP_MESSAGE_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE, &CALLBACKS);
    message->machine->data = message;
}

void http_message_finish(struct http_message *message)
{
    buf_wipe(&message->target);
    buf_wipe(&message->fields);
    buf_wipe(&message->trailers);
    buf_wipe(&message->body);
    free(message->machine);
    message->machine = NULL;
}

static enum http_message_state judge(struct http_message *message, llhttp_errno_t result)
{
    if (message->state == HTTP_MESSAGE_MORE && result != HPE_OK)
        message->state = HTTP_MESSAGE_BAD;
    return message->state;
}

enum http_message_state http_message_feed(struct http_message *message, struct text bytes)
{
    if (message->state != HTTP_MESSAGE_MORE || bytes.len == 0)
        return message->state;
    return judge(message, llhttp_execute(message->machine, bytes.ptr, bytes.len));
}

enum http_message_state http_message_end(struct http_message *message)
{
    if (message->state != HTTP_MESSAGE_MORE)
        return message->state;
    (void)judge(message, llhttp_finish(message->machine));
    if (message->state == HTTP_MESSAGE_MORE)
        message->state = HTTP_MESSAGE_BAD;
    return message->state;
}

struct text http_message_field(const struct buf *fields, struct text name, size_t *ret_count)
{
    struct text rest = buf_text(fields), line, found = {NULL, 0};
    size_t count = 0;

    while (text_next(&rest, '\n', &line)) {
        if (line.len <= name.len || line.ptr[name.len] != ':' ||
            !text_equal_nocase((struct text){line.ptr, name.len}, name))
            continue;
        if (count++ == 0)
            found = text_trim(text_skip(line, name.len + 1));
    }
    if (ret_count)
        *ret_count = count;
    return found;
}
