#include "core/path.h"

#include <string.h>

enum byte_class {
    BYTE_REFUSED, /* raw: not allowed in a path, or servers read it differently; escaped: stays escaped */
    BYTE_PLAIN,   /* means the same escaped and raw, so it is always decoded. RFC 3986 says so of unreserved characters
                   * only, but no router tells "a%3Ab" from "a:b", and an escape must not bypass a policy's row */
};

/* Refused: control characters, blanks, bytes beyond ASCII, and # \ " < > ^ ` { | } ? as in the request line. */
static const uint8_t CLASSES[256] = {
    ['a' ... 'z'] = BYTE_PLAIN, ['A' ... 'Z'] = BYTE_PLAIN, ['0' ... '9'] = BYTE_PLAIN, ['-'] = BYTE_PLAIN,
    ['.'] = BYTE_PLAIN,         ['_'] = BYTE_PLAIN,         ['~'] = BYTE_PLAIN,         ['!'] = BYTE_PLAIN,
    ['$'] = BYTE_PLAIN,         ['&'] = BYTE_PLAIN,         ['\''] = BYTE_PLAIN,        ['('] = BYTE_PLAIN,
    [')'] = BYTE_PLAIN,         ['*'] = BYTE_PLAIN,         ['+'] = BYTE_PLAIN,         [','] = BYTE_PLAIN,
    [';'] = BYTE_PLAIN,         ['='] = BYTE_PLAIN,         [':'] = BYTE_PLAIN,         ['@'] = BYTE_PLAIN,
    ['['] = BYTE_PLAIN,         [']'] = BYTE_PLAIN,
};

enum { ESCAPE_CHARS = 3, UTF8_MAX_BYTES = 4 };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that an escape at the beginning of t decodes to, or -1. */
static int read_escape(struct text t)
{
    if (t.len < ESCAPE_CHARS || t.ptr[0] != '%')
        return -1;
    const int high = hex_value(t.ptr[1]), low = hex_value(t.ptr[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

struct path_output {
    char *bytes;
    size_t len;
};

static void put(struct path_output *out, char c)
{
    out->bytes[out->len++] = c;
}

static void put_escape(struct path_output *out, int byte)
{
    put(out, '%');
    put(out, "0123456789ABCDEF"[byte >> 4]);
    put(out, "0123456789ABCDEF"[byte & 15]);
}

/* Escapes beyond ASCII must together be one UTF-8 character, but not a control character (U+0080 to U+009F). */
static bool put_character(struct text *rest, struct path_output *out)
{
    char bytes[UTF8_MAX_BYTES];
    size_t count = 0;
    int byte;
    while (count < UTF8_MAX_BYTES && (byte = read_escape(text_skip(*rest, count * ESCAPE_CHARS))) >= 0x80)
        bytes[count++] = (char)byte;
    const size_t length = text_utf8_length((struct text){bytes, count});
    if (length == 0 || (length == 2 && (uint8_t)bytes[0] == 0xc2 && (uint8_t)bytes[1] < 0xa0))
        return false;
    for (size_t i = 0; i < length; i++)
        put_escape(out, (uint8_t)bytes[i]);
    *rest = text_skip(*rest, length * ESCAPE_CHARS);
    return true;
}

static bool put_escaped(struct text *rest, struct path_output *out)
{
    const int byte = read_escape(*rest);
    if (byte >= 0x80)
        return put_character(rest, out);
    if (byte < 0x20 || byte == 0x7f || byte == '/' || byte == '\\')
        return false;
    if (CLASSES[byte] == BYTE_PLAIN)
        put(out, (char)byte);
    else
        put_escape(out, byte);
    *rest = text_skip(*rest, ESCAPE_CHARS);
    return true;
}

/* One segment, up to the next '/' or the end. */
static bool put_segment(struct text *rest, struct path_output *out)
{
    while (rest->len && rest->ptr[0] != '/') {
        if (rest->ptr[0] == '%') {
            if (!put_escaped(rest, out))
                return false;
            continue;
        }
        if (CLASSES[(uint8_t)rest->ptr[0]] == BYTE_REFUSED)
            return false;
        put(out, rest->ptr[0]);
        *rest = text_skip(*rest, 1);
    }
    return true;
}

/* "..;x" is a dot segment to servers that first cut off path parameters, and a name to all others. */
static bool is_dots_with_parameter(struct text segment)
{
    size_t dots = 0;
    while (dots < segment.len && segment.ptr[dots] == '.')
        dots++;
    const struct text behind = text_skip(segment, dots);
    return (dots == 1 || dots == 2) && (text_starts_with(behind, TEXT(";")));
}

static void drop_last_segment(struct path_output *out)
{
    while (out->bytes[--out->len] != '/')
        continue;
}

/* out holds "/a/b", without a slash at its end; a segment is judged once it is in there. floor is the length at which
 * slashes were last folded. Nothing may climb past it, because "/a//../b" is "/a/b" to servers that remove dot segments
 * first and "/b" to those that fold first. floor begins at 0, which is the rule against climbing above the root. */
bool path_normalise(struct text path, char *ret_path, size_t *ret_len)
{
    struct path_output out = {ret_path, 0};
    struct text rest = path;
    size_t floor = 0;
    bool ends_in_slash = false;
    if (path.len == 0 || path.ptr[0] != '/')
        return false;
    while (rest.len) {
        const size_t before = out.len;
        rest = text_skip(rest, 1);
        put(&out, '/');
        if (!put_segment(&rest, &out))
            return false;
        const struct text segment = {out.bytes + before + 1, out.len - before - 1};
        const bool is_up = text_equal(segment, TEXT(".."));
        if (is_dots_with_parameter(segment) || (is_up && before <= floor))
            return false;
        ends_in_slash = segment.len == 0 || is_up || text_equal(segment, TEXT("."));
        if (!ends_in_slash)
            continue;
        if (segment.len == 0 && rest.len)
            floor = before;
        out.len = before;
        if (is_up)
            drop_last_segment(&out);
    }
    if (ends_in_slash)
        put(&out, '/');
    *ret_len = out.len;
    return true;
}

/* Takes the next byte, decoded if it is escaped; -1 at the end. */
static int take_byte(struct text *rest)
{
    const int escaped = read_escape(*rest), byte = escaped >= 0 || rest->len == 0 ? escaped : (uint8_t)rest->ptr[0];
    *rest = text_skip(*rest, escaped < 0 ? 1 : ESCAPE_CHARS);
    return byte;
}

static bool begins_with_hex_digits(struct text rest)
{
    const int first = take_byte(&rest), second = take_byte(&rest);
    return hex_value((char)first) >= 0 && hex_value((char)second) >= 0;
}

/* Characters that NFKC turns into "." "/" "\\" "%" "?" "#" or ";", or into text that contains one of them (Unicode 16);
 * and fraction slash, division slash and set minus, which conversions to 8-bit character sets turn into slashes.
 * Letters that fold into others are allowed: they change a name, not where it ends. */
static const struct {
    uint32_t from, to;
} FOLDED[] = {
    {0x037e, 0x037e}, {0x2024, 0x2026}, {0x2044, 0x2044}, {0x2047, 0x2049},   {0x2100, 0x2101}, {0x2105, 0x2106},
    {0x2215, 0x2216}, {0x2488, 0x249b}, {0x33c2, 0x33c2}, {0x33c7, 0x33c7},   {0x33d8, 0x33d8}, {0xfe14, 0xfe14},
    {0xfe16, 0xfe16}, {0xfe19, 0xfe19}, {0xfe30, 0xfe30}, {0xfe52, 0xfe52},   {0xfe54, 0xfe54}, {0xfe56, 0xfe56},
    {0xfe5f, 0xfe5f}, {0xfe68, 0xfe68}, {0xfe6a, 0xfe6a}, {0xff03, 0xff03},   {0xff05, 0xff05}, {0xff0e, 0xff0f},
    {0xff1b, 0xff1b}, {0xff1f, 0xff1f}, {0xff3c, 0xff3c}, {0x1f100, 0x1f100},
};

/* The character beyond ASCII that begins with this byte, in valid UTF-8; 0 in the middle of one. */
static uint32_t read_character(int first, struct text behind)
{
    const unsigned more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint32_t character = more ? (uint32_t)first & (0x3fU >> more) : 0;
    for (unsigned i = 0; i < more; i++)
        character = character << 6 | ((uint32_t)take_byte(&behind) & 0x3f);
    return character;
}

static bool folds_to_delimiter(uint32_t character)
{
    for (size_t i = 0; i < sizeof FOLDED / sizeof *FOLDED; i++)
        if (character >= FOLDED[i].from && character <= FOLDED[i].to)
            return true;
    return false;
}

/* The bytes at the beginning that mean themselves wherever they stand: nearly all. */
static size_t plain_span(struct text t)
{
    static const bool IS_PLAIN[256] = {
        ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['-'] = true, ['_'] = true, ['~'] = true};
    size_t span = 0;
    while (span < t.len && IS_PLAIN[(uint8_t)t.ptr[span]])
        span++;
    return span;
}

bool path_is_unambiguous(struct text path)
{
    int before = 0, byte;
    while ((byte = take_byte(&path)) >= 0) {
        if (byte >= 0x80 && folds_to_delimiter(read_character(byte, path)))
            return false;
        if (byte == ';' || byte == '?' || byte == '#' ||
            (byte == '/' && (before == '/' || before == '.' || before == ' ')))
            return false;
        if ((byte == ' ' && before == '/') || (byte == '%' && begins_with_hex_digits(path)))
            return false;
        const size_t plain = plain_span(path);
        before = plain ? (uint8_t)path.ptr[plain - 1] : byte;
        path = text_skip(path, plain);
    }
    return before != '.' && before != ' ';
}

bool path_covers(struct text pattern, struct text path, bool *ret_exact)
{
    struct text wanted, segment;
    *ret_exact = true;
    /* Nearly always they are spelled alike; a "*" covers a "*" as well. */
    if (text_starts_with(path, pattern) && (path.len == pattern.len || path.ptr[pattern.len] == '/'))
        return true;
    while (text_next(&pattern, '/', &wanted)) {
        if (!text_next(&path, '/', &segment))
            return false;
        if (text_equal(wanted, TEXT("*")) ? segment.len > 0 : text_equal(wanted, segment))
            continue;
        if (!text_equal_nocase(wanted, segment))
            return false;
        *ret_exact = false;
    }
    return true;
}

/* Decodes into *storage and advances it. */
static bool decode_part(struct text part, char **storage, struct text *ret_decoded)
{
    char *const start = *storage;
    while (part.len) {
        int byte = part.ptr[0] == '+' ? ' ' : (uint8_t)part.ptr[0];
        const bool is_escape = byte == '%';
        if (is_escape && (byte = read_escape(part)) < 0)
            return false;
        if (byte == 0)
            return false;
        *(*storage)++ = (char)byte;
        part = text_skip(part, is_escape ? ESCAPE_CHARS : 1);
    }
    size_t chars;
    *ret_decoded = (struct text){start, (size_t)(*storage - start)};
    return text_count_utf8(*ret_decoded, &chars);
}

enum path_query_result path_next_parameter(struct text *rest, char **storage, struct text *ret_name,
                                           struct text *ret_value)
{
    struct text item, name;
    do {
        if (!text_next(rest, '&', &item))
            return PATH_QUERY_END;
    } while (item.len == 0);
    const bool has_value = text_next(&item, '=', &name) && item.ptr;
    const struct text value = has_value ? item : (struct text){"", 0};
    const bool is_named = decode_part(name, storage, ret_name);
    if (is_named && decode_part(value, storage, ret_value))
        return PATH_QUERY_ITEM;
    if (!is_named)
        *ret_name = (struct text){NULL, 0};
    return PATH_QUERY_MALFORMED;
}
