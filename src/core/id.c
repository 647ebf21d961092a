#include "core/id.h"
#include "base/check.h"
#include "base/random.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
    PREFIX_CHARS_MAX = 5,
    BITS_PER_CHAR = 5,
    RANDOM_BYTES = 10,
    TIME_BYTES = 6,
    TIME_CHARS = 10,
    SET_BACK_MS = 1000
};
enum { CHUNK_CHARS = sizeof(uint64_t), CHUNK_BITS = CHUNK_CHARS * BITS_PER_CHAR };

static const struct text PREFIXES[] = {
    [ID_NONE] = {NULL, 0},   [ID_KEY] = {"key_", 4},     [ID_DEVICE] = {"dev_", 4}, [ID_ACCOUNT] = {"acct_", 5},
    [ID_USER] = {"usr_", 4}, [ID_REQUEST] = {"req_", 4}, [ID_EVENT] = {"evt_", 4},  [ID_INVITATION] = {"inv_", 4},
};
enum { KIND_COUNT = sizeof PREFIXES / sizeof PREFIXES[0] };

static const char ALPHABET[33] = "0123456789abcdefghjkmnpqrstvwxyz";

_Static_assert(PREFIX_CHARS_MAX + ULID_TEXT_CHARS + 1 == ID_TEXT_BYTES, "an id fits struct id; id_text() relies on it");

/* 0 to 31, or -1. Crockford's aliases (i, l, o, capitals) are refused: an id has one spelling. */
static int value_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char *at = c >= 'a' && c <= 'z' ? strchr(ALPHABET + 10, c) : NULL;
    return at ? (int)(at - ALPHABET) : -1;
}

/* All pairs of digits, in order. A table, because a check that is answered from memory prints three ids. */
#define PAIRS_AFTER(c)                                                                                            \
    c "0" c "1" c "2" c "3" c "4" c "5" c "6" c "7" c "8" c "9" c "a" c "b" c "c" c "d" c "e" c "f" c "g" c "h" c \
      "j" c "k" c "m" c "n" c "p" c "q" c "r" c "s" c "t" c "v" c "w" c "x" c "y" c "z"
static const char PAIRS[] = PAIRS_AFTER("0") PAIRS_AFTER("1") PAIRS_AFTER("2") PAIRS_AFTER("3") PAIRS_AFTER("4")
    PAIRS_AFTER("5") PAIRS_AFTER("6") PAIRS_AFTER("7") PAIRS_AFTER("8") PAIRS_AFTER("9") PAIRS_AFTER("a")
        PAIRS_AFTER("b") PAIRS_AFTER("c") PAIRS_AFTER("d") PAIRS_AFTER("e") PAIRS_AFTER("f") PAIRS_AFTER("g")
            PAIRS_AFTER("h") PAIRS_AFTER("j") PAIRS_AFTER("k") PAIRS_AFTER("m") PAIRS_AFTER("n") PAIRS_AFTER("p")
                PAIRS_AFTER("q") PAIRS_AFTER("r") PAIRS_AFTER("s") PAIRS_AFTER("t") PAIRS_AFTER("v") PAIRS_AFTER("w")
                    PAIRS_AFTER("x") PAIRS_AFTER("y") PAIRS_AFTER("z");

/* The value's last two digits, in the order of memory. */
static uint64_t pair_of(uint64_t value)
{
    uint16_t pair;

    memcpy(&pair, PAIRS + 2 * (value & 1023), sizeof pair);
    return le16toh(pair);
}

/* Prints the value's last eight digits, put together in a register: memory stored in pieces is slow to read as a
 * whole. */
static ALWAYS_INLINE void print_chunk(uint64_t value, char *ret_chars)
{
    const uint64_t chars =
        htole64(pair_of(value >> 30) | pair_of(value >> 20) << 16 | pair_of(value >> 10) << 32 | pair_of(value) << 48);

    memcpy(ret_chars, &chars, sizeof chars);
}

/* 26 characters hold 130 bits, so the first one has only three of the 128. */
static void print_ulid(const uint8_t ulid[ULID_BYTES], char *ret_chars)
{
    uint64_t halves[2];
    memcpy(halves, ulid, sizeof halves);
    const unsigned __int128 value = (unsigned __int128)be64toh(halves[0]) << 64 | be64toh(halves[1]);
    memcpy(ret_chars, PAIRS + 2 * (uint64_t)(value >> 3 * CHUNK_BITS), 2);
    print_chunk((uint64_t)(value >> 2 * CHUNK_BITS), ret_chars + 2);
    print_chunk((uint64_t)(value >> CHUNK_BITS), ret_chars + 2 + CHUNK_CHARS);
    print_chunk((uint64_t)value, ret_chars + 2 + 2 * CHUNK_CHARS);
}

static bool ulid_text_valid(const char *chars)
{
    for (size_t i = 0; i < ULID_TEXT_CHARS; i++)
        if (value_of(chars[i]) < 0)
            return false;
    return chars[0] <= '7';
}

/* Writes an id except its ULID; returns where that goes. */
static char *begin(enum id_kind kind, struct id *ret_id)
{
    CHECK(kind > ID_NONE && (int)kind < KIND_COUNT);
    *ret_id = (struct id){{0}};
    memcpy(ret_id->text, PREFIXES[kind].ptr, PREFIX_CHARS_MAX); /* of a shorter one, also its NUL */
    return ret_id->text + PREFIXES[kind].len;
}

/* The digit after this one; '0' after the last. */
static char digit_after(char c)
{
    switch (c) {
    case '9':
        return 'a';
    case 'h':
    case 'k':
    case 'n':
    case 't': /* i, l, o and u are not digits */
        return (char)(c + 2);
    case 'z':
        return '0';
    default:
        return (char)(c + 1);
    }
}

/* Adds one to the random part. */
static void count_on(char chars[ULID_TEXT_CHARS])
{
    size_t i = ULID_TEXT_CHARS;
    do {
        i--;
        chars[i] = digit_after(chars[i]);
    } while (chars[i] == '0' && i > TIME_CHARS);
}

static void print_new(int64_t wall_ms, char ret_chars[ULID_TEXT_CHARS])
{
    uint8_t ulid[ULID_BYTES];
    for (size_t i = 0; i < TIME_BYTES; i++)
        ulid[i] = (uint8_t)((uint64_t)wall_ms >> (8 * (TIME_BYTES - 1 - i)));
    random_public(ulid + TIME_BYTES, RANDOM_BYTES);
    ulid[TIME_BYTES] &= 0x7f; /* room to count */
    print_ulid(ulid, ret_chars);
}

/* Within one millisecond, the random part is counted up, so that the ids of one process sort in the order of their
 * creation. The time does not go back either, because some callers read the clock a while ago; a clock that was really
 * set back is followed. The next id is kept and counted up as text: every request has an id, and printing one costs
 * more than the rest of making it. */
void id_mint_to(enum id_kind kind, int64_t wall_ms, struct id *ret_id)
{
    static char next[ULID_TEXT_CHARS];
    static int64_t next_ms = INT64_MIN;
    if (wall_ms > next_ms || next_ms - wall_ms >= SET_BACK_MS) {
        print_new(wall_ms, next);
        next_ms = wall_ms;
    }
    memcpy(begin(kind, ret_id), next, sizeof next);
    count_on(next);
}

void id_from_bytes(enum id_kind kind, const uint8_t ulid[ULID_BYTES], struct id *ret_id)
{
    print_ulid(ulid, begin(kind, ret_id));
}

void id_from_chars(enum id_kind kind, const char chars[ULID_TEXT_CHARS], struct id *ret_id)
{
    memcpy(begin(kind, ret_id), chars, ULID_TEXT_CHARS);
}

bool id_parse(enum id_kind kind, struct text t, struct id *ret_id)
{
    if (kind == ID_NONE || id_kind_of(t) != kind)
        return false;
    struct id id = {{0}};
    memcpy(id.text, t.ptr, t.len);
    *ret_id = id;
    return true;
}

enum id_kind id_kind_of(struct text t)
{
    for (int kind = ID_KEY; kind < KIND_COUNT; kind++)
        if (text_starts_with(t, PREFIXES[kind]))
            return t.len == PREFIXES[kind].len + ULID_TEXT_CHARS && ulid_text_valid(t.ptr + PREFIXES[kind].len)
                       ? (enum id_kind)kind
                       : ID_NONE;
    return ID_NONE;
}

void id_to_bytes(const struct id *id, uint8_t ret_ulid[ULID_BYTES])
{
    enum id_kind kind = id_kind_of(id_text(id));
    CHECK(kind != ID_NONE);
    const char *chars = id->text + PREFIXES[kind].len;
    unsigned __int128 bits = 0;
    for (size_t i = 0; i < ULID_TEXT_CHARS; i++)
        bits = bits << BITS_PER_CHAR | (unsigned)value_of(chars[i]);
    for (size_t i = ULID_BYTES; i-- > 0; bits >>= 8)
        ret_ulid[i] = (uint8_t)bits;
}

int64_t id_time_ms(const struct id *id)
{
    uint8_t ulid[ULID_BYTES];
    id_to_bytes(id, ulid);
    int64_t ms = 0;
    for (size_t i = 0; i < TIME_BYTES; i++)
        ms = ms << 8 | ulid[i];
    return ms;
}

bool id_equal(const struct id *a, const struct id *b)
{
    return strncmp(a->text, b->text, ID_TEXT_BYTES) == 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct id *)a)->text, ((const struct id *)b)->text);
}

size_t id_sort_unique(struct id *ids, size_t count)
{
    size_t kept = 0;

    if (count > 0)
        qsort(ids, count, sizeof *ids, compare);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !id_equal(&ids[kept - 1], &ids[i]))
            ids[kept++] = ids[i];
    return kept;
}
