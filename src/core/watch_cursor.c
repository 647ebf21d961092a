#include "core/watch_cursor.h"
#include "base/encode.h"

#include <inttypes.h>
#include <stdio.h>

/* The decoded text: version, store, partitions less one, and for each of them both numbers of its position as LEB128.
 */
enum {
    VERSION = 1,
    HEAD_BYTES = 1 + WATCH_STORE_BYTES + 1,
    NUMBER_MAX_BYTES = 10,
    CURSOR_MAX_BYTES = HEAD_BYTES + PARTITIONS_MAX * 2 * NUMBER_MAX_BYTES,
};
_Static_assert((CURSOR_MAX_BYTES * 4 + 2) / 3 <= WATCH_CURSOR_MAX_CHARS, "the longest cursor has room");

void log_position_print(struct log_position position, char ret_text[LOG_POSITION_BYTES])
{
    snprintf(ret_text, LOG_POSITION_BYTES, "%" PRIu64 "-%" PRIu64, position.ms, position.sequence);
}

bool log_position_parse(struct text t, struct log_position *ret_position)
{
    struct log_position position;
    struct text ms, sequence;

    if (!text_next(&t, '-', &ms) || !text_next(&t, '-', &sequence) || t.ptr ||
        !text_to_u64(ms, UINT64_MAX, &position.ms) || !text_to_u64(sequence, UINT64_MAX, &position.sequence))
        return false;
    *ret_position = position;
    return true;
}

static void put_number(struct buf *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buf_append_char(out, (char)(value | 0x80));
    buf_append_char(out, (char)value);
}

/* Only the shortest form, so that a position has one text. */
static bool take_number(struct text *rest, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < NUMBER_MAX_BYTES && i < rest->len; i++) {
        uint8_t byte = (uint8_t)rest->ptr[i];

        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        if ((i > 0 && byte == 0) || (i == NUMBER_MAX_BYTES - 1 && byte > 1))
            return false;
        *ret_value = value;
        *rest = text_skip(*rest, i + 1);
        return true;
    }
    return false;
}

void watch_cursor_print(const struct watch_cursor *cursor, struct buf *out)
{
    struct buf bytes = BUF_FIXED(CURSOR_MAX_BYTES);

    buf_append_char(&bytes, VERSION);
    buf_append(&bytes, cursor->store, sizeof cursor->store);
    buf_append_char(&bytes, (char)(cursor->count - 1));
    for (unsigned i = 0; i < cursor->count; i++) {
        put_number(&bytes, cursor->at[i].ms);
        put_number(&bytes, cursor->at[i].sequence);
    }
    encode_base64url(out, bytes.ptr, bytes.len);
}

static bool read_bytes(struct text bytes, struct watch_cursor *ret_cursor)
{
    if (bytes.len < HEAD_BYTES || bytes.ptr[0] != VERSION)
        return false;
    memcpy(ret_cursor->store, bytes.ptr + 1, sizeof ret_cursor->store);
    ret_cursor->count = (unsigned)(uint8_t)bytes.ptr[HEAD_BYTES - 1] + 1;
    bytes = text_skip(bytes, HEAD_BYTES);
    for (unsigned i = 0; i < ret_cursor->count; i++)
        if (!take_number(&bytes, &ret_cursor->at[i].ms) || !take_number(&bytes, &ret_cursor->at[i].sequence))
            return false;
    return bytes.len == 0;
}

bool watch_cursor_parse(struct text t, struct watch_cursor *ret_cursor)
{
    char bytes[CURSOR_MAX_BYTES];
    struct watch_cursor cursor = {0};
    size_t count = t.len / 4 * 3 + (t.len % 4 > 0 ? t.len % 4 - 1 : 0);

    if (t.len > WATCH_CURSOR_MAX_CHARS || count > sizeof bytes || !decode_base64url(t, bytes, count) ||
        !read_bytes((struct text){bytes, count}, &cursor))
        return false;
    *ret_cursor = cursor;
    return true;
}

bool watch_cursor_fits(const struct watch_cursor *a, const struct watch_cursor *b)
{
    return a->count == b->count && memcmp(a->store, b->store, sizeof a->store) == 0;
}
