#include "core/secret.h"
#include "label_internal.h"

#include <stdint.h>

/* Takes the first code point off t, which must be valid UTF-8 and not empty. */
static uint32_t take_code_point(struct text *t)
{
    static const uint8_t LEAD_BITS[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const uint8_t lead = (uint8_t)t->ptr[0];
    const size_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t code = lead & LEAD_BITS[bytes];

    for (size_t i = 1; i < bytes; i++)
        code = code << 6 | ((uint8_t)t->ptr[i] & 0x3f);
    *t = text_skip(*t, bytes);
    return code;
}

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Category Cf of Unicode 15.1, and the line and paragraph separators: invisible characters that reorder, join or break
 * the text around them. */
static bool is_format(uint32_t code)
{
    static const struct range FORMATS[] = {
        {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},
        {0x890, 0x891},     {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
        {0x2060, 0x2064},   {0x2066, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
        {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
        {0xe0020, 0xe007f},
    };

    return is_in(FORMATS, sizeof FORMATS / sizeof *FORMATS, code);
}

/* White space, and letters that look empty: the fillers of Hangul, the blank pattern of Braille. */
static bool is_blank(uint32_t code)
{
    static const struct range BLANKS[] = {
        {0x20, 0x20},     {0xa0, 0xa0},     {0x115f, 0x1160}, {0x1680, 0x1680}, {0x2000, 0x200a}, {0x202f, 0x202f},
        {0x205f, 0x205f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164}, {0xffa0, 0xffa0},
    };

    return is_in(BLANKS, sizeof BLANKS / sizeof *BLANKS, code);
}

bool label_has_control(struct text t)
{
    while (t.len)
        if (is_control(take_code_point(&t)))
            return true;
    return false;
}

bool label_valid(struct text t, size_t max_chars)
{
    bool is_seen = false;
    size_t chars;

    if (!text_count_utf8(t, &chars) || chars > max_chars || secret_within(t))
        return false;
    while (t.len) {
        uint32_t code = take_code_point(&t);

        if (is_control(code) || is_format(code))
            return false;
        is_seen |= !is_blank(code);
    }
    return is_seen;
}
