#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A line feed would end the error too early. */
static void append_line(struct buf *out, char kind, struct text text)
{
    buf_append_char(out, kind);
    for (size_t i = 0; i < text.len; i++)
        buf_append_char(out, text.ptr[i] == '\r' || text.ptr[i] == '\n' ? ' ' : text.ptr[i]);
    buf_append_str(out, "\r\n");
}

void say_error(struct call *call, const char *text)
{
    append_line(call->out, '-', text_of(text));
}

void say_errorf(struct call *call, const char *format, ...)
{
    char text[4096];
    va_list values;

    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    say_error(call, text);
}

void say_status(struct call *call, const char *text)
{
    append_line(call->out, '+', text_of(text));
}

void say_ok(struct call *call)
{
    say_status(call, "OK");
}

void say_nil(struct call *call)
{
    buf_append_str(call->out, "$-1\r\n");
}

void say_nil_array(struct call *call)
{
    buf_append_str(call->out, "*-1\r\n");
}

void out_integer(struct buf *out, int64_t value)
{
    char storage[NUMBER_BYTES];

    buf_append_char(out, ':');
    buf_append_text(out, number_print_i64(storage, value));
    buf_append_str(out, "\r\n");
}

void out_text(struct buf *out, struct text text)
{
    buf_append_char(out, '$');
    buf_append_u64(out, text.len);
    buf_append_str(out, "\r\n");
    buf_append_text(out, text);
    buf_append_str(out, "\r\n");
}

void out_array(struct buf *out, size_t count)
{
    buf_append_char(out, '*');
    buf_append_u64(out, count);
    buf_append_str(out, "\r\n");
}

void say_integer(struct call *call, int64_t value)
{
    out_integer(call->out, value);
}

void say_text(struct call *call, struct text text)
{
    out_text(call->out, text);
}

void say_double(struct call *call, double value)
{
    char storage[NUMBER_BYTES];

    say_text(call, number_print_double(storage, value));
}

void say_array(struct call *call, size_t count)
{
    out_array(call->out, count);
}

void say_wrong_type(struct call *call)
{
    say_error(call, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

void say_syntax(struct call *call)
{
    say_error(call, "ERR syntax error");
}

void say_not_integer(struct call *call)
{
    say_error(call, "ERR value is not an integer or out of range");
}
