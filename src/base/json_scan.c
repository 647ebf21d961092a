#include "json_internal.h"

#include <string.h>

/* cJSON copies a number into 64 bytes, and misreads a longer one. */
enum { JSON_NUMBER_MAX_BYTES = 63 };

static const char NOT_A_VALUE[] = "a value is missing or malformed";

/* Scanning stops at the first error: from then on, at == end, and why stays set. */
struct scan {
    const char *at, *end;
    const char *why, *wrong; /* what, and where it was seen */
    unsigned depth;
};

static void scan_fail(struct scan *s, const char *why)
{
    if (!s->why) {
        s->why = why;
        s->wrong = s->at;
    }
    s->at = s->end;
}

/* The next byte, or NUL at the end; no JSON text contains a NUL. */
static char scan_peek(const struct scan *s)
{
    return s->at < s->end ? *s->at : '\0';
}

static bool scan_take(struct scan *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool scan_take_one_of(struct scan *s, const char *set)
{
    if (s->at == s->end || *s->at == '\0' || !strchr(set, *s->at))
        return false;
    s->at++;
    return true;
}

static void scan_blanks(struct scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static void scan_literal(struct scan *s, struct text literal)
{
    if (text_starts_with((struct text){s->at, (size_t)(s->end - s->at)}, literal))
        s->at += literal.len;
    else
        scan_fail(s, NOT_A_VALUE);
}

static bool scan_digits(struct scan *s)
{
    const char *first = s->at;
    while (scan_take_one_of(s, "0123456789"))
        continue;
    return s->at > first;
}

static void scan_number(struct scan *s)
{
    const char *first = s->at;
    scan_take(s, '-');
    bool is_whole_ok = scan_take(s, '0') || scan_digits(s);
    bool is_fraction_ok = !scan_take(s, '.') || scan_digits(s);
    bool is_exponent_ok = true;
    if (scan_take_one_of(s, "eE")) {
        scan_take_one_of(s, "+-");
        is_exponent_ok = scan_digits(s);
    }
    if (!is_whole_ok || !is_fraction_ok || !is_exponent_ok)
        scan_fail(s, "a number is malformed");
    else if (s->at - first > JSON_NUMBER_MAX_BYTES)
        scan_fail(s, "a number is too long");
}

/* Reads four hexadecimal digits; -1 if they are not. */
static long scan_code_unit(struct scan *s)
{
    long unit = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = memchr(digits, scan_peek(s), sizeof digits - 1);
        if (!digit)
            return -1;
        unit = unit * 16 + (digit - digits) % 16;
        s->at++;
    }
    return unit;
}

static void scan_unicode_escape(struct scan *s)
{
    long unit = scan_code_unit(s);
    bool is_high = unit >= 0xd800 && unit <= 0xdbff;
    bool is_low = unit >= 0xdc00 && unit <= 0xdfff;
    if (unit < 0) {
        scan_fail(s, "an escape in a string is malformed");
    } else if (unit == 0) {
        scan_fail(s, "a string contains \\u0000");
    } else if (is_high && scan_take(s, '\\') && scan_take(s, 'u')) {
        unit = scan_code_unit(s);
        if (unit < 0xdc00 || unit > 0xdfff)
            scan_fail(s, "a string contains half a surrogate pair");
    } else if (is_high || is_low) {
        scan_fail(s, "a string contains half a surrogate pair");
    }
}

/* Nearly all bytes of nearly all strings. */
static void scan_plain(struct scan *s)
{
    while (s->at < s->end && (unsigned char)*s->at >= 0x20 && *s->at != '"' && *s->at != '\\')
        s->at++;
}

static void scan_string(struct scan *s)
{
    s->at++;
    for (scan_plain(s); !scan_take(s, '"'); scan_plain(s)) {
        if (s->at == s->end)
            scan_fail(s, "a string does not end");
        else if ((unsigned char)*s->at < 0x20)
            scan_fail(s, "a string contains a control character");
        else if (!scan_take(s, '\\'))
            s->at++;
        else if (scan_take(s, 'u'))
            scan_unicode_escape(s);
        else if (!scan_take_one_of(s, "\"\\/bfnrt"))
            scan_fail(s, "an escape in a string is malformed");
        if (s->why)
            return;
    }
}

static void scan_value(struct scan *s);

static void scan_member(struct scan *s)
{
    scan_blanks(s);
    if (scan_peek(s) != '"') {
        scan_fail(s, "a member's name is not a string");
        return;
    }
    scan_string(s);
    scan_blanks(s);
    if (scan_take(s, ':'))
        scan_value(s);
    else
        scan_fail(s, "a member's name is not followed by a colon");
}

/* Scans an array or an object; scan_part reads one of its parts. */
static void scan_container(struct scan *s, char close, void (*scan_part)(struct scan *))
{
    if (++s->depth > JSON_DEPTH_MAX) {
        scan_fail(s, "arrays and objects are nested too deeply");
        return;
    }
    s->at++;
    scan_blanks(s);
    if (!scan_take(s, close)) {
        do {
            scan_part(s);
            scan_blanks(s);
        } while (scan_take(s, ','));
        if (!scan_take(s, close))
            scan_fail(s, close == '}' ? "an object does not end" : "an array does not end");
    }
    s->depth--;
}

/* Recursion ends at JSON_DEPTH_MAX. */
static void scan_value(struct scan *s)
{
    scan_blanks(s);
    switch (scan_peek(s)) {
    case '{':
        scan_container(s, '}', scan_member);
        break;
    case '[':
        scan_container(s, ']', scan_value);
        break;
    case '"':
        scan_string(s);
        break;
    case 't':
        scan_literal(s, TEXT("true"));
        break;
    case 'f':
        scan_literal(s, TEXT("false"));
        break;
    case 'n':
        scan_literal(s, TEXT("null"));
        break;
    case '-':
    case '0' ... '9':
        scan_number(s);
        break;
    default:
        scan_fail(s, NOT_A_VALUE);
    }
}

const char *json_scan_object(struct text body, size_t *ret_wrong)
{
    size_t code_points;
    *ret_wrong = 0;
    if (!text_count_utf8(body, &code_points))
        return "the text is not valid UTF-8";

    struct scan s = {.at = body.ptr, .end = body.len ? body.ptr + body.len : body.ptr};
    scan_blanks(&s);
    if (text_starts_with(body, TEXT("\xef\xbb\xbf")))
        return "the text begins with a byte order mark";
    if (scan_peek(&s) != '{') {
        *ret_wrong = (size_t)(s.at - body.ptr);
        return "the text is not a JSON object";
    }
    scan_value(&s);
    scan_blanks(&s);
    if (s.at != s.end)
        scan_fail(&s, "there is text after the object");
    if (s.why)
        *ret_wrong = (size_t)(s.wrong - body.ptr);
    return s.why;
}
