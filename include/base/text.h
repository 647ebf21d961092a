/* Byte strings: borrowed views (struct text) and growing buffers with a mandatory maximum (struct buf).
 * This module is the only place that copies into growing memory. */
#pragma once
#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A view of bytes that somebody else owns; not NUL-terminated. ptr may be NULL only if len is 0. */
struct text {
    const char *ptr;
    size_t len;
};

#define TEXT(literal) ((struct text){"" literal, sizeof(literal) - 1})
/* For printf's "%.*s". */
#define TEXT_ARG(t) (int)(t).len, (t).ptr ? (t).ptr : ""

struct text text_of(const char *nul_terminated);
/* Inline, like those below, so that comparing with a literal b needs no call. */
static inline bool text_equal(struct text a, struct text b)
{
    return a.len == b.len && (b.len == 0 || memcmp(a.ptr, b.ptr, b.len) == 0);
}
/* Of ASCII only. */
static inline char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}
static inline bool text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}
/* ASCII case is ignored; for protocol names only, never for secrets. */
bool text_equal_nocase(struct text a, struct text b);
static inline bool text_starts_with(struct text t, struct text prefix)
{
    return t.len >= prefix.len && text_equal((struct text){t.ptr, prefix.len}, prefix);
}
static inline struct text text_skip(struct text t, size_t bytes)
{
    size_t skipped = bytes < t.len ? bytes : t.len;
    return t.ptr ? (struct text){t.ptr + skipped, t.len - skipped} : t;
}
/* The classes (bits of the table's entries) that all characters of t share; all bits if t is empty. Four at a time,
 * because about 200 bytes of each request are classified. */
static inline uint8_t text_classes(struct text t, const uint8_t classes[256])
{
    const unsigned char *at = (const unsigned char *)t.ptr;
    uint8_t common = UINT8_MAX;
    size_t i = 0;
    for (; t.len - i >= 4; i += 4)
        common &= classes[at[i]] & classes[at[i + 1]] & classes[at[i + 2]] & classes[at[i + 3]];
    for (; i < t.len; i++)
        common &= classes[at[i]];
    return common;
}
/* Whether a byte is below ' ', or 0x7f. */
bool text_has_control(struct text t);
static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t';
}
/* Removes blanks and tabs (RFC 9110 OWS) at both ends. */
static inline struct text text_trim(struct text t)
{
    while (t.len > 0 && text_is_blank(t.ptr[t.len - 1]))
        t.len--;
    for (; t.len > 0 && text_is_blank(t.ptr[0]); t.len--)
        t.ptr++;
    return t;
}
/* Takes everything before the first separator off *rest. False: *rest was already exhausted (ptr NULL). */
bool text_next(struct text *rest, char separator, struct text *ret_part);
/* Decimal digits only, no sign, no leading zero unless "0"; at most max. */
MUST_CHECK bool text_to_u64(struct text t, uint64_t max, uint64_t *ret_value);
/* The number of Unicode code points. False: not valid UTF-8 (RFC 3629: no overlong forms, no surrogates). */
MUST_CHECK bool text_count_utf8(struct text t, size_t *ret_count);

/* Guesses which known name was meant by an unknown one. Zero it, set `written`, then offer it each known name; `found`
 * is the nearest, NULL if none is near. */
struct text_guess {
    struct text written;
    const char *found;
    size_t distance; /* insertions, deletions and replacements of bytes between it and `written` */
};
void text_guess_try(struct text_guess *guess, const char *name);

/* The bytes of t's first code point; 0 if t is empty or does not begin with valid UTF-8. */
size_t text_utf8_length(struct text t);

/* A growing buffer. An append beyond max does nothing and sets failed; so does every later one. So a sequence of
 * appends needs one check at its end. */
struct buf {
    char *ptr;
    size_t len;
    size_t capacity;
    size_t max;
    bool failed;
    bool fixed; /* ptr is the caller's storage: never grown, never freed */
};

void buf_init(struct buf *b, size_t max_bytes);
/* The same: struct buf out CLEANUP(buf_finish) = BUF_UP_TO(1024); */
#define BUF_UP_TO(max_bytes) \
    {                        \
        .max = (max_bytes)   \
    }
void buf_init_fixed(struct buf *b, char *storage, size_t bytes);
/* The same with storage in the block where it stands, which lasts as long: struct buf why = BUF_FIXED(1024); */
#define BUF_FIXED(bytes)                                                            \
    {                                                                               \
        .ptr = (char[bytes]){0}, .capacity = (bytes), .max = (bytes), .fixed = true \
    }
/* The same over the caller's storage: struct buf out = BUF_OVER(ret_text, TEXT_BYTES); */
#define BUF_OVER(storage, bytes)                                             \
    {                                                                        \
        .ptr = (storage), .capacity = (bytes), .max = (bytes), .fixed = true \
    }
/* Frees the memory. A zeroed or finished buf is fine. */
void buf_finish(struct buf *b);
/* Wipes the content, then frees: for buffers that held secrets. Growing wipes the old memory as well. */
void buf_wipe(struct buf *b);
/* Empties it for the next use: clears failed, keeps the memory. */
void buf_clear(struct buf *b);
/* Drops the first bytes and moves the rest to the front. */
void buf_consume(struct buf *b, size_t bytes);
/* These are inline while there is room: a response is built from dozens of pieces, most of them constant. */
char *buf_reserve_slowly(struct buf *b, size_t bytes);
void buf_append_slowly(struct buf *b, const void *ptr, size_t bytes);
/* Room for `bytes` more at ptr + len, or NULL (and failed is set). The caller adds what it wrote to len. */
static inline char *buf_reserve(struct buf *b, size_t bytes)
{
    return b->failed || !b->ptr || bytes > b->capacity - b->len ? buf_reserve_slowly(b, bytes) : b->ptr + b->len;
}
static ALWAYS_INLINE void buf_append(struct buf *b, const void *ptr, size_t bytes)
{
    if (bytes == 0)
        return;
    if (b->failed || bytes > b->capacity - b->len) {
        buf_append_slowly(b, ptr, bytes);
        return;
    }
    memcpy(b->ptr + b->len, ptr, bytes);
    b->len += bytes;
}
static ALWAYS_INLINE void buf_append_text(struct buf *b, struct text t)
{
    buf_append(b, t.ptr, t.len);
}
static ALWAYS_INLINE void buf_append_str(struct buf *b, const char *nul_terminated)
{
    buf_append(b, nul_terminated, strlen(nul_terminated));
}
static ALWAYS_INLINE void buf_append_char(struct buf *b, char c)
{
    buf_append(b, &c, 1);
}
void buf_append_u64(struct buf *b, uint64_t value);
/* For terminals: each control character and each byte that is not UTF-8 becomes U+FFFD. */
void buf_append_printable(struct buf *b, struct text t);
PRINTF_LIKE(2, 3) void buf_printf(struct buf *b, const char *format, ...);
struct text buf_text(const struct buf *b);
