#include "base/text.h"

#include "base/check.h"
#include "base/secure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUF_FIRST_BYTES = 256, BUF_PRINTF_BYTES = 512 };

struct text text_of(const char *nul_terminated)
{
    return (struct text){nul_terminated, nul_terminated ? strlen(nul_terminated) : 0};
}

bool text_equal_nocase(struct text a, struct text b)
{
    if (a.len != b.len)
        return false;
    if (text_equal(a, b)) /* most names are spelled as we spell them */
        return true;
    for (size_t i = 0; i < a.len; i++)
        if (text_lower(a.ptr[i]) != text_lower(b.ptr[i]))
            return false;
    return true;
}

enum { SCAN_BYTES = 16 };

/* A loop of fixed length: compilers turn it into a few instructions for all the bytes. */
static void note_controls(const char bytes[SCAN_BYTES], uint8_t found[SCAN_BYTES])
{
    for (size_t i = 0; i < SCAN_BYTES; i++)
        found[i] |= (uint8_t)bytes[i] < ' ' || bytes[i] == 0x7f;
}

/* Sixteen bytes at a time; the last sixteen may overlap the ones before. */
bool text_has_control(struct text t)
{
    uint8_t found[SCAN_BYTES] = {0};
    uint64_t halves[2];

    if (t.len < SCAN_BYTES) {
        for (size_t i = 0; i < t.len; i++)
            found[0] |= (uint8_t)t.ptr[i] < ' ' || t.ptr[i] == 0x7f;
        return found[0];
    }
    for (size_t at = 0; at + SCAN_BYTES < t.len; at += SCAN_BYTES)
        note_controls(t.ptr + at, found);
    note_controls(t.ptr + t.len - SCAN_BYTES, found);
    memcpy(halves, found, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

bool text_next(struct text *rest, char separator, struct text *ret_part)
{
    if (!rest->ptr)
        return false;

    const char *found = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    if (found) {
        *ret_part = (struct text){rest->ptr, (size_t)(found - rest->ptr)};
        *rest = text_skip(*rest, ret_part->len + 1);
    } else {
        *ret_part = *rest;
        *rest = (struct text){0};
    }
    return true;
}

bool text_to_u64(struct text t, uint64_t max, uint64_t *ret_value)
{
    if (t.len == 0 || (t.len > 1 && t.ptr[0] == '0'))
        return false;

    uint64_t value = 0;
    for (size_t i = 0; i < t.len; i++) {
        if (!text_is_digit(t.ptr[i]))
            return false;
        uint64_t digit = (uint64_t)(t.ptr[i] - '0');
        if (value > max / 10 || digit > max - value * 10)
            return false;
        value = value * 10 + digit;
    }
    *ret_value = value;
    return true;
}

static bool is_continuation(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t text_utf8_length(struct text t)
{
    const unsigned char *at = (const unsigned char *)t.ptr;
    if (t.len == 0)
        return 0;
    if (at[0] < 0x80)
        return 1;

    size_t length = at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (length == 0 || t.len < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!is_continuation(at[i]))
            return 0;

    bool is_overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool is_surrogate = at[0] == 0xed && at[1] > 0x9f;
    bool is_beyond_unicode = at[0] == 0xf4 && at[1] > 0x8f;
    return is_overlong || is_surrogate || is_beyond_unicode ? 0 : length;
}

static bool is_ascii_word(const char *ptr)
{
    uint64_t word;
    memcpy(&word, ptr, sizeof word);
    return (word & UINT64_C(0x8080808080808080)) == 0;
}

bool text_count_utf8(struct text t, size_t *ret_count)
{
    size_t count = 0;
    while (t.len > 0) {
        if (t.len >= sizeof(uint64_t) && is_ascii_word(t.ptr)) {
            count += sizeof(uint64_t);
            t = text_skip(t, sizeof(uint64_t));
            continue;
        }
        size_t length = text_utf8_length(t);
        if (length == 0)
            return false;
        count++;
        t = text_skip(t, length);
    }
    *ret_count = count;
    return true;
}

void buf_init(struct buf *b, size_t max_bytes)
{
    *b = (struct buf){.max = max_bytes};
}

void buf_init_fixed(struct buf *b, char *storage, size_t bytes)
{
    *b = (struct buf){.ptr = storage, .capacity = bytes, .max = bytes, .fixed = true};
}

void buf_finish(struct buf *b)
{
    if (!b->fixed)
        free(b->ptr);
    *b = (struct buf){0};
}

void buf_wipe(struct buf *b)
{
    secure_wipe(b->ptr, b->capacity);
    buf_finish(b);
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->failed = false;
}

void buf_consume(struct buf *b, size_t bytes)
{
    CHECK(bytes <= b->len);
    b->len -= bytes;
    if (b->len)
        memmove(b->ptr, b->ptr + bytes, b->len);
}

/* Not realloc(): that would leave a copy of a secret in freed memory. */
static bool buf_grow(struct buf *b, size_t needed)
{
    size_t capacity = b->capacity ? b->capacity : BUF_FIRST_BYTES;
    while (capacity < needed)
        capacity = capacity > b->max / 2 ? b->max : capacity * 2;
    if (capacity > b->max)
        capacity = b->max;

    char *grown = malloc(capacity ? capacity : 1);
    if (!grown)
        return false;
    if (b->ptr)
        memcpy(grown, b->ptr, b->len);
    secure_wipe(b->ptr, b->capacity);
    free(b->ptr);
    b->ptr = grown;
    b->capacity = capacity;
    return true;
}

char *buf_reserve_slowly(struct buf *b, size_t bytes)
{
    if (b->failed)
        return NULL;
    bool is_full = bytes > b->max - b->len;
    bool must_grow = !b->ptr || bytes > b->capacity - b->len;
    if (is_full || (must_grow && (b->fixed || !buf_grow(b, b->len + bytes)))) {
        b->failed = true;
        return NULL;
    }
    return b->ptr + b->len;
}

void buf_append_slowly(struct buf *b, const void *ptr, size_t bytes)
{
    char *room = buf_reserve(b, bytes);
    if (!room)
        return;
    memcpy(room, ptr, bytes);
    b->len += bytes;
}

void buf_append_u64(struct buf *b, uint64_t value)
{
    size_t digits = 1;
    for (uint64_t rest = value; rest >= 10; rest /= 10)
        digits++;
    char *at = buf_reserve(b, digits);
    if (!at)
        return;
    b->len += digits;
    do {
        at[--digits] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
}

/* Prints into separate space first, because vsnprintf() adds a NUL, for which an exactly full buffer has no room. */
void buf_printf(struct buf *b, const char *format, ...)
{
    char small[BUF_PRINTF_BYTES], *large = NULL;
    va_list args;
    va_start(args, format);
    int printed = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    CHECK(printed >= 0);

    size_t len = (size_t)printed;
    if (b->failed || len > b->max - b->len) {
        b->failed = true;
    } else if (len < sizeof small) {
        buf_append(b, small, len);
    } else if ((large = malloc(len + 1))) {
        va_start(args, format);
        vsnprintf(large, len + 1, format, args);
        va_end(args);
        buf_append(b, large, len);
        secure_wipe(large, len);
        free(large);
    } else {
        b->failed = true;
    }
    secure_wipe(small, len < sizeof small ? len : sizeof small);
}

static bool is_control(const unsigned char *at, size_t length)
{
    return (length == 1 && (at[0] < 0x20 || at[0] == 0x7f)) || (length == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

void buf_append_printable(struct buf *b, struct text t)
{
    for (size_t length; t.len > 0; t = text_skip(t, length ? length : 1)) {
        length = text_utf8_length(t);
        if (length == 0 || is_control((const unsigned char *)t.ptr, length))
            buf_append_text(b, TEXT("\xef\xbf\xbd"));
        else
            buf_append(b, t.ptr, length);
    }
}

struct text buf_text(const struct buf *b)
{
    return (struct text){b->ptr, b->len};
}

enum { GUESS_MAX_BYTES = 64 };

/* Levenshtein distance, row by row of the usual matrix. */
static size_t edit_distance(struct text a, struct text b)
{
    size_t row[GUESS_MAX_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replaced = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            size_t shorter = row[j - 1] < row[j] ? row[j - 1] : row[j];
            diagonal = row[j];
            row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[b.len];
}

/* A short name may have two wrong letters; in a long one, a third of them may be wrong. */
void text_guess_try(struct text_guess *guess, const char *name)
{
    const struct text written = guess->written, other = text_of(name);
    size_t limit = written.len < 6 ? 2 : written.len / 3, distance;
    if (written.len > GUESS_MAX_BYTES || other.len > GUESS_MAX_BYTES)
        return;
    distance = edit_distance(written, other);
    if (distance > limit || distance >= other.len || (guess->found && distance >= guess->distance))
        return;
    guess->found = name;
    guess->distance = distance;
}
