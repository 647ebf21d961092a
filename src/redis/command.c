#include "redis/command.h"

static void append_length(struct buf *out, char type, size_t length)
{
    buf_append_char(out, type);
    buf_append_u64(out, length);
    buf_append(out, "\r\n", 2);
}

void redis_command_begin(struct buf *out, size_t argc)
{
    append_length(out, '*', argc);
}

void redis_command_append(struct buf *out, struct text argument)
{
    append_length(out, '$', argument.len);
    buf_append_text(out, argument);
    buf_append(out, "\r\n", 2);
}
