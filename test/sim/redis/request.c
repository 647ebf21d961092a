#include "request.h"

#include "internal.h"
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 1024 * 1024 };

void request_finish(struct request *request)
{
    free(request->argv);
    free(request->copy);
    *request = (struct request){0};
}

static enum request_state bad(struct request *request, const char *trouble)
{
    request_finish(request);
    request->trouble = trouble;
    return REQUEST_BAD;
}

/* Its arguments, which are pieces of what has arrived, become pieces of a copy, each with a NUL behind it: there is
 * a space or the end of a line. */
static enum request_state own(struct request *request, struct text in, size_t bytes)
{
    request->copy = mem_copy_text(in.ptr, bytes);
    for (size_t i = 0; i < request->argc; i++) {
        char *argument = request->copy + (request->argv[i].ptr - in.ptr);

        argument[request->argv[i].len] = '\0';
        request->argv[i].ptr = argument;
    }
    request->bytes = bytes;
    return REQUEST_WHOLE;
}

/* The line at *at, without its end. False: it is not whole. */
static bool take_line(struct text in, size_t *at, struct text *ret_line)
{
    const char *end = *at < in.len ? memchr(in.ptr + *at, '\n', in.len - *at) : NULL;

    if (!end)
        return false;
    *ret_line = (struct text){in.ptr + *at, (size_t)(end - in.ptr) - *at};
    *at += ret_line->len + 1;
    if (ret_line->len > 0 && ret_line->ptr[ret_line->len - 1] == '\r')
        ret_line->len--;
    return true;
}

static enum request_state read_line(struct text in, struct request *request)
{
    struct text line, word;
    size_t at = 0;

    if (!take_line(in, &at, &line))
        return REQUEST_PART;
    request->argv = mem_alloc((line.len + 1) * sizeof *request->argv);
    while (text_next(&line, ' ', &word))
        if (word.len > 0)
            request->argv[request->argc++] = word;
    return own(request, in, at);
}

static enum request_state read_argument(struct text in, size_t *at, struct text *ret_argument)
{
    struct text line;
    uint64_t len;

    if (!take_line(in, at, &line))
        return REQUEST_PART;
    if (line.len == 0 || line.ptr[0] != '$' || !text_to_u64(text_skip(line, 1), SIM_BULK_MAX_BYTES, &len))
        return REQUEST_BAD;
    if (in.len - *at < len + 2)
        return REQUEST_PART;
    *ret_argument = (struct text){in.ptr + *at, (size_t)len};
    *at += (size_t)len + 2;
    return REQUEST_WHOLE;
}

enum request_state request_read(struct text in, struct request *ret_request)
{
    struct text line, argument;
    size_t at = 0;
    int64_t count;

    *ret_request = (struct request){0};
    if (in.len == 0)
        return REQUEST_PART;
    if (in.ptr[0] != '*')
        return read_line(in, ret_request);
    if (!take_line(in, &at, &line))
        return REQUEST_PART;
    if (!number_parse_i64(text_skip(line, 1), &count) || count > ARGS_MAX)
        return bad(ret_request, "invalid multibulk length");
    ret_request->argv = mem_alloc((size_t)(count > 0 ? count : 1) * sizeof *ret_request->argv);
    for (int64_t i = 0; i < count; i++) {
        enum request_state state = read_argument(in, &at, &argument);

        if (state == REQUEST_BAD)
            return bad(ret_request, "invalid bulk length");
        if (state == REQUEST_PART) {
            request_finish(ret_request);
            return REQUEST_PART;
        }
        ret_request->argv[ret_request->argc++] = argument;
    }
    return own(ret_request, in, at);
}
