#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* PIPE_BUF on Linux: a pipe that poll() reports as writable takes this much at once, in one piece. */
    LOG_LINE_BYTES = 4096,
    LOG_CUT_BYTES = sizeof ",\"cut\":\"true\"}\n",
    LOG_VALUE_BYTES = 1024,
};

enum log_level log_threshold = LOG_INFO;
static enum log_format log_format = LOG_LOGFMT;

void log_configure(enum log_level threshold, enum log_format format)
{
    log_threshold = threshold;
    log_format = format;
}

struct log_field log_text(const char *name, struct text value)
{
    return (struct log_field){.name = name, .text = value};
}

struct log_field log_str(const char *name, const char *value)
{
    return log_text(name, text_of(value));
}

struct log_field log_given(const char *name, struct text value)
{
    return (struct log_field){.name = name, .text = value, .is_absent = value.len == 0};
}

struct log_field log_int(const char *name, int64_t value)
{
    return (struct log_field){.name = name, .integer = value, .is_integer = true};
}

/* Whether logfmt shows it without quotes. */
static bool is_bare(struct text t)
{
    for (size_t i = 0; i < t.len; i++)
        if (t.ptr[i] <= ' ' || t.ptr[i] >= 0x7f || strchr("\"\\=", t.ptr[i]))
            return false;
    return t.len > 0;
}

/* Cuts a long value, between two code points if it is valid UTF-8. */
static struct text cut_value(struct text t)
{
    if (t.len <= LOG_VALUE_BYTES)
        return t;
    size_t len = LOG_VALUE_BYTES;
    while (len > LOG_VALUE_BYTES - 4 && ((unsigned char)t.ptr[len] & 0xc0) == 0x80)
        len--;
    return (struct text){t.ptr, len};
}

static void put_value(struct json_writer *w, const struct log_field *field)
{
    struct text value = cut_value(field->text);
    if (field->is_integer)
        json_put_integer(w, field->integer);
    else if (log_format == LOG_LOGFMT && is_bare(value))
        buf_append_text(w->out, value);
    else
        json_put_text(w, value);
}

/* Writes the whole field. False: it did not fit, and nothing was written. */
static bool put_field(struct json_writer *w, const struct log_field *field)
{
    size_t len_before = w->out->len;
    if (log_format == LOG_JSON) {
        json_key(w, field->name);
    } else {
        buf_append_str(w->out, len_before > 0 ? " " : "");
        buf_append_str(w->out, field->name);
        buf_append_char(w->out, '=');
        w->need_comma = false;
    }
    put_value(w, field);
    if (!w->out->failed)
        return true;
    w->out->failed = false;
    w->out->len = len_before;
    w->need_comma = true;
    return false;
}

static void put_line(struct buf *line, enum log_level level, const char *message, const struct log_field *fields)
{
    static const char *const level_names[] = {"debug", "info", "warn", "error"};
    char now[CLOCK_RFC3339_BYTES];
    clock_print_rfc3339(clock_wall_ms(), now);
    const struct log_field head[] = {
        log_str("time", now),
        log_str("level", level_names[level]),
        log_str("message", message),
    };

    struct json_writer w = {.out = line};
    if (log_format == LOG_JSON)
        json_object_begin(&w);
    bool has_all = true;
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        has_all = has_all && put_field(&w, &head[i]);
    for (; fields->name && has_all; fields++)
        has_all = fields->is_absent || put_field(&w, fields);

    line->max = line->capacity;
    if (!has_all)
        put_field(&w, &(struct log_field){.name = "cut", .text = TEXT("true")});
    if (log_format == LOG_JSON)
        json_object_end(&w);
    buf_append_char(line, '\n');
}

/* Tries once, without waiting. A pipe that poll() reports as ready takes a whole line. A socket may still lack room, so
 * the call must neither block nor raise SIGPIPE. */
static bool write_line(struct text line)
{
    struct pollfd stderr_ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&stderr_ready, 1, 0) != 1 || stderr_ready.revents != POLLOUT)
        return false;
    ssize_t written = send(STDERR_FILENO, line.ptr, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (written < 0 && errno == ENOTSOCK)
        written = write(STDERR_FILENO, line.ptr, line.len);
    return written == (ssize_t)line.len;
}

bool log_pause_is_over(struct log_pause *pause, uint64_t now_ms, uint32_t pause_ms)
{
    if (now_ms < pause->until_ms) {
        pause->counting++;
        return false;
    }
    pause->until_ms = now_ms + pause_ms;
    pause->suppressed = pause->counting;
    pause->counting = 0;
    return true;
}

void log_write(enum log_level level, const char *message, const struct log_field *fields)
{
    char storage[LOG_LINE_BYTES];
    struct buf line = BUF_OVER(storage, sizeof storage);
    line.max -= LOG_CUT_BYTES;
    int saved_errno = errno;
    put_line(&line, level, message, fields);
    if (!write_line(buf_text(&line)))
        metric_add(METRIC_LOG_DROPPED, 1);
    errno = saved_errno;
}
