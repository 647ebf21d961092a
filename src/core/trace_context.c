#include "core/trace_context.h"

enum { VERSION_CHARS = 2, TRACE_ID_CHARS = 32, SPAN_ID_CHARS = 16, FLAGS_CHARS = 2, FLAG_SAMPLED = 1 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static int digit_of(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/* The next field, which is that long and followed by a hyphen or the end. */
static bool read_field(struct text *rest, size_t chars, struct text *ret_field)
{
    if (!text_next(rest, '-', ret_field) || ret_field->len != chars)
        return false;
    for (size_t i = 0; i < chars; i++)
        if (!is_hex(ret_field->ptr[i]))
            return false;
    return true;
}

static bool is_zero(struct text digits)
{
    for (size_t i = 0; i < digits.len; i++)
        if (digits.ptr[i] != '0')
            return false;
    return true;
}

bool trace_context_parse(struct text traceparent, struct trace_context *ret_context)
{
    struct trace_context context;
    struct text rest = traceparent, version, flags;

    if (!read_field(&rest, VERSION_CHARS, &version) || !read_field(&rest, TRACE_ID_CHARS, &context.trace_id) ||
        !read_field(&rest, SPAN_ID_CHARS, &context.span_id) || !read_field(&rest, FLAGS_CHARS, &flags))
        return false;
    if (text_equal(version, TEXT("ff")) || is_zero(context.trace_id) || is_zero(context.span_id))
        return false;
    if (text_equal(version, TEXT("00")) && traceparent.len != TRACEPARENT_CHARS)
        return false;
    context.is_sampled = digit_of(flags.ptr[1]) & FLAG_SAMPLED;
    *ret_context = context;
    return true;
}

void trace_context_print(const struct trace_context *context, struct buf *out)
{
    buf_append_str(out, "00-");
    buf_append_text(out, context->trace_id);
    buf_append_char(out, '-');
    buf_append_text(out, context->span_id);
    buf_append_str(out, context->is_sampled ? "-01" : "-00");
}
