#include "base/json.h"

#include <string.h>

static void begin_value(struct json_writer *w)
{
    char *at = json_begin(w, 0);
    if (at)
        json_end(w, at, true);
}

static void open_container(struct json_writer *w, char c)
{
    char *at = json_begin(w, 1);
    if (!at)
        return;
    *at = c;
    json_end(w, at + 1, false);
}

static void close_container(struct json_writer *w, char c)
{
    buf_append_char(w->out, c);
    w->need_comma = true;
}

void json_object_begin(struct json_writer *w)
{
    open_container(w, '{');
}

void json_object_end(struct json_writer *w)
{
    close_container(w, '}');
}

void json_line_end(struct json_writer *w)
{
    json_object_end(w);
    buf_append_char(w->out, '\n');
}

void json_key_object(struct json_writer *w, const char *name)
{
    json_key(w, name);
    json_object_begin(w);
}

void json_key_array(struct json_writer *w, const char *name)
{
    json_key(w, name);
    json_array_begin(w);
}

void json_array_begin(struct json_writer *w)
{
    open_container(w, '[');
}

void json_array_end(struct json_writer *w)
{
    close_container(w, ']');
}

/* U+0080 to U+009F. RFC 8259 allows them unescaped, but terminals act on them, as they do on DEL. */
static bool is_c1_control(const unsigned char *at, size_t length)
{
    return length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

static void put_escape(struct buf *out, unsigned char code)
{
    static const char short_codes[] = "\"\\\b\f\n\r\t", short_names[] = "\"\\bfnrt";
    static const char hex[] = "0123456789abcdef";
    const char *found = memchr(short_codes, code, sizeof short_codes - 1);
    if (found) {
        const char escape[] = {'\\', short_names[found - short_codes]};
        buf_append(out, escape, sizeof escape);
    } else {
        const char escape[] = {'\\', 'u', '0', '0', hex[code >> 4], hex[code & 15]};
        buf_append(out, escape, sizeof escape);
    }
}

/* Bytes that need no escape: printable ASCII except the quote and the backslash. */
static const uint8_t PLAIN[256] = {[' ' ... '"' - 1] = 1, ['"' + 1 ... '\\' - 1] = 1, ['\\' + 1 ... '~'] = 1};

static bool is_plain(struct text t)
{
    return text_classes(t, PLAIN) & 1;
}

static size_t plain_run(struct text t)
{
    size_t run = 0;
    while (run < t.len && PLAIN[(unsigned char)t.ptr[run]])
        run++;
    return run;
}

/* The common case, copied in one piece. False: something needs an escape, or the buffer would have to grow. */
static bool put_plain_string(struct buf *out, struct text t)
{
    if (out->failed || out->capacity - out->len < 2 || t.len > out->capacity - out->len - 2 || !is_plain(t))
        return false;
    char *at = out->ptr + out->len;
    at[0] = '"';
    if (t.len)
        memcpy(at + 1, t.ptr, t.len);
    at[t.len + 1] = '"';
    out->len += t.len + 2;
    return true;
}

static void put_string(struct buf *out, struct text t)
{
    static const struct text replacement = {"\xef\xbf\xbd", 3};
    if (put_plain_string(out, t))
        return;
    buf_append_char(out, '"');
    for (size_t length; t.len > 0; t = text_skip(t, length)) {
        length = plain_run(t);
        if (length > 0) {
            buf_append(out, t.ptr, length);
            continue;
        }
        const unsigned char *at = (const unsigned char *)t.ptr;
        length = text_utf8_length(t);
        if (length == 0) {
            buf_append_text(out, replacement);
            length = 1;
        } else if (length == 1 || is_c1_control(at, length)) {
            put_escape(out, at[length - 1]);
        } else {
            buf_append(out, t.ptr, length);
        }
    }
    buf_append_char(out, '"');
}

void json_put_text(struct json_writer *w, struct text t)
{
    begin_value(w);
    put_string(w->out, t);
}

void json_put_integer(struct json_writer *w, int64_t value)
{
    begin_value(w);
    if (value < 0)
        buf_append_char(w->out, '-');
    buf_append_u64(w->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_put_bool(struct json_writer *w, bool value)
{
    begin_value(w);
    buf_append_str(w->out, value ? "true" : "false");
}

void json_put_null(struct json_writer *w)
{
    begin_value(w);
    buf_append_str(w->out, "null");
}

void json_put_named(struct json_writer *w, struct text name, struct text value)
{
    json_put_text(w, name);
    buf_append_char(w->out, ':');
    w->need_comma = false;
    json_put_text(w, value);
}

void json_put_member(struct json_writer *w, const char *name, struct text value)
{
    json_key(w, name);
    json_put_text(w, value);
}

void json_put_number(struct json_writer *w, const char *name, int64_t value)
{
    json_key(w, name);
    json_put_integer(w, value);
}

void json_put_flag(struct json_writer *w, const char *name, bool value)
{
    json_key(w, name);
    json_put_bool(w, value);
}
