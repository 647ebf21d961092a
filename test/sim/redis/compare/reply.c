#include "reply.h"

#include "base/mem.h"
#include <stdlib.h>

/* The line that begins it, without its end. */
static bool take_line(struct text *rest, struct text *ret_line)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, '\n', rest->len) : NULL;

    if (!end)
        return false;
    *ret_line = (struct text){rest->ptr, (size_t)(end - rest->ptr)};
    *rest = text_skip(*rest, ret_line->len + 1);
    if (ret_line->len > 0 && ret_line->ptr[ret_line->len - 1] == '\r')
        ret_line->len--;
    return ret_line->len > 0;
}

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = len > 0 ? memcmp(left->ptr, right->ptr, len) : 0;

    return order ? order : (left->len > right->len) - (left->len < right->len);
}

static bool print_one(struct buf *out, struct text *rest, enum order order);

/* Each element by itself, or with the one behind it, and then in their order. */
static bool print_array(struct buf *out, struct text *rest, size_t count, enum order order)
{
    size_t each = order == ORDER_ANY_PAIRS && count % 2 == 0 ? 2 : 1, groups = count / each;
    struct text *printed = mem_alloc((groups + 1) * sizeof *printed);
    bool is_whole = true;

    buf_printf(out, "*%zu\n", count);
    for (size_t i = 0; i < groups; i++) {
        struct buf one = BUF_UP_TO(SIZE_MAX / 2);

        for (size_t part = 0; part < each; part++)
            is_whole = is_whole && print_one(&one, rest, order);
        printed[i] = buf_text(&one);
    }
    if (order != ORDER_GIVEN && order != ORDER_KIND && groups > 0)
        qsort(printed, groups, sizeof *printed, compare_texts);
    for (size_t i = 0; i < groups; i++) {
        buf_append_text(out, printed[i]);
        free((char *)(uintptr_t)printed[i].ptr);
    }
    free(printed);
    return is_whole;
}

static bool print_one(struct buf *out, struct text *rest, enum order order)
{
    struct text line = {0};
    uint64_t count;

    if (!take_line(rest, &line))
        return false;
    if (!text_to_u64(text_skip(line, 1), SIZE_MAX / 2, &count) || (line.ptr[0] != '*' && line.ptr[0] != '$')) {
        buf_append_text(out, line);
        buf_append_char(out, '\n');
        return true;
    }
    if (line.ptr[0] == '*')
        return print_array(out, rest, (size_t)count, order);
    if (rest->len < count + 2)
        return false;
    buf_append_char(out, '$');
    if (order != ORDER_CHOICE)
        buf_append(out, rest->ptr, (size_t)count);
    buf_append_char(out, '\n');
    *rest = text_skip(*rest, (size_t)count + 2);
    return true;
}

bool replies_print(struct buf *out, struct text replies, enum order order)
{
    enum { FRAMES_MAX = 1000 };
    struct text *frames = mem_alloc(FRAMES_MAX * sizeof *frames);
    size_t count = 0;
    bool is_whole = true;

    while (replies.len > 0 && is_whole && count < FRAMES_MAX) {
        struct buf frame = BUF_UP_TO(SIZE_MAX / 2);

        is_whole = print_one(&frame, &replies, order == ORDER_FRAMES ? ORDER_GIVEN : order);
        frames[count++] = buf_text(&frame);
    }
    if (order == ORDER_FRAMES && count > 0)
        qsort(frames, count, sizeof *frames, compare_texts);
    for (size_t i = 0; i < count; i++) {
        buf_append(out, frames[i].ptr, order == ORDER_KIND && frames[i].len > 0 ? 1 : frames[i].len);
        free((char *)(uintptr_t)frames[i].ptr);
    }
    free(frames);
    return is_whole && replies.len == 0;
}

void replies_visit(struct text replies, void (*visit)(struct text text))
{
    struct text line = {0};
    uint64_t count;

    while (take_line(&replies, &line)) {
        if (line.ptr[0] != '$' || !text_to_u64(text_skip(line, 1), SIZE_MAX / 2, &count) || replies.len < count + 2)
            continue;
        visit((struct text){replies.ptr, (size_t)count});
        replies = text_skip(replies, (size_t)count + 2);
    }
}
