#include "core/label.h"
#include "core/secret.h"
#include "joining_type_internal.h"

#include <utf8proc.h>

enum { COMBINING_MAX = 30, VIRAMA = 9 };
enum { NON_JOINER = 0x200c, JOINER = 0x200d, TAG_END = 0xe007f };

_Static_assert((int)LABEL_MAX_CHARS == (int)ACCOUNT_NAME_MAX_CHARS, "all names have the same rule");

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

struct label_range {
    uint32_t first, last;
};
#define IS_IN(ranges, code) is_in(ranges, sizeof(ranges) / sizeof *(ranges), code)

static bool is_in(const struct label_range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/* Classes of code points */

static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

static utf8proc_category_t category(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

static bool is_combining(uint32_t code)
{
    const utf8proc_category_t of = category(code);

    return of == UTF8PROC_CATEGORY_MN || of == UTF8PROC_CATEGORY_MC || of == UTF8PROC_CATEGORY_ME;
}

/* Of category Cf, and yet they are seen: signs that are drawn under or around the digits behind them. */
static bool is_prepended(uint32_t code)
{
    static const struct label_range SIGNS[] = {{0x600, 0x605}, {0x6dd, 0x6dd},     {0x70f, 0x70f},    {0x890, 0x891},
                                               {0x8e2, 0x8e2}, {0x110bd, 0x110bd}, {0x110cd, 0x110cd}};

    return IS_IN(SIGNS, code);
}

/* White space, and letters that look empty: the fillers of Hangul, the blank pattern of Braille. */
static bool is_blank(uint32_t code)
{
    static const struct label_range FILLERS[] = {
        {0x115f, 0x1160}, {0x2800, 0x2800}, {0x3164, 0x3164}, {0xffa0, 0xffa0}};

    return category(code) == UTF8PROC_CATEGORY_ZS || IS_IN(FILLERS, code);
}

static bool is_selector(uint32_t code)
{
    static const struct label_range SELECTORS[] = {
        {0x180b, 0x180d}, {0x180f, 0x180f}, {0xfe00, 0xfe0f}, {0xe0100, 0xe01ef}};

    return IS_IN(SELECTORS, code);
}

static bool is_tag(uint32_t code)
{
    return code >= 0xe0020 && code <= TAG_END;
}

/* Embeddings, overrides and isolates, and what ends them. */
static bool is_reordering(uint32_t code)
{
    return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static bool is_direction_mark(uint32_t code)
{
    return code == 0x200e || code == 0x200f || code == 0x61c;
}

/* Marks that no font draws: the grapheme joiner, and inherent vowels of Khmer. */
static bool is_unseen_mark(uint32_t code)
{
    return code == 0x34f || code == 0x17b4 || code == 0x17b5;
}

static bool is_seen(uint32_t code)
{
    const utf8proc_category_t of = category(code);

    if (of == UTF8PROC_CATEGORY_CF)
        return is_prepended(code);
    return of != UTF8PROC_CATEGORY_CC && of != UTF8PROC_CATEGORY_CN && of != UTF8PROC_CATEGORY_ZL &&
           of != UTF8PROC_CATEGORY_ZP && !is_combining(code) && !is_blank(code);
}

static bool is_pictograph(uint32_t code)
{
    return utf8proc_get_property((utf8proc_int32_t)code)->boundclass == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

/* What may stand between a pictograph and a joiner or tag: the tone of the skin, a variation selector, a keycap. */
static bool is_modifier(uint32_t code)
{
    return (code >= 0x1f3fb && code <= 0x1f3ff) || code == 0xfe0f || code == 0x20e3;
}

/* A text as code points, with 0 on both sides: no character that is allowed. */

struct label {
    size_t count;
    uint32_t padded[LABEL_MAX_CHARS + 2];
};

static uint32_t code_at(const struct label *label, size_t i)
{
    return label->padded[i + 1];
}
static uint32_t code_before(const struct label *label, size_t i)
{
    return label->padded[i];
}
static uint32_t code_after(const struct label *label, size_t i)
{
    return label->padded[i + 2];
}

/* What is invisible, by its context */

static bool is_transparent(uint32_t code)
{
    const utf8proc_category_t of = category(code);

    return of == UTF8PROC_CATEGORY_MN || of == UTF8PROC_CATEGORY_ME ||
           (of == UTF8PROC_CATEGORY_CF && code != NON_JOINER && code != JOINER);
}

static bool follows_virama(const struct label *label, size_t i)
{
    return utf8proc_get_property((utf8proc_int32_t)code_before(label, i))->combining_class == VIRAMA;
}

/* RFC 5892 appendix A.1: between two letters that would join. */
static bool parts_letters(const struct label *label, size_t i)
{
    size_t before = i, after = i;

    while (is_transparent(code_before(label, before)))
        before--;
    while (is_transparent(code_after(label, after)))
        after++;
    return joins_the_next(code_before(label, before)) && joins_the_one_before(code_after(label, after));
}

/* Behind a pictograph and what modifies it. */
static bool follows_pictograph(const struct label *label, size_t i)
{
    while (is_modifier(code_before(label, i)))
        i--;
    return is_pictograph(code_before(label, i));
}

static bool joiner_fits(const struct label *label, size_t i)
{
    if (follows_virama(label, i))
        return true;
    if (code_at(label, i) == NON_JOINER)
        return parts_letters(label, i);
    return follows_pictograph(label, i) && is_pictograph(code_after(label, i));
}

/* A flag of a region: a pictograph, tags, the one that ends them. */
static bool tag_fits(const struct label *label, size_t i)
{
    const uint32_t before = code_before(label, i);

    if (before == TAG_END || (code_at(label, i) != TAG_END && !is_tag(code_after(label, i))))
        return false;
    return is_tag(before) || (code_at(label, i) != TAG_END && follows_pictograph(label, i));
}

static bool mark_fits(const struct label *label, size_t i)
{
    const uint32_t before = code_before(label, i), after = code_after(label, i);

    return is_seen(before) || is_combining(before) || is_seen(after);
}

/* What is wrong with a character of category Cf; NULL: nothing. */
static const char *judge_format(const struct label *label, size_t i)
{
    const uint32_t code = code_at(label, i);

    if (is_prepended(code))
        return NULL;
    if (is_reordering(code))
        return "reorders the text around it";
    if (is_direction_mark(code))
        return mark_fits(label, i) ? NULL : "is invisible, and no text stands beside it";
    if (code == NON_JOINER || code == JOINER)
        return joiner_fits(label, i) ? NULL : "is invisible, and joins or parts nothing here";
    if (is_tag(code))
        return tag_fits(label, i) ? NULL : "is an invisible tag, and belongs to no emoji here";
    return "is invisible";
}

static size_t count_combining(const struct label *label, size_t i)
{
    size_t count = 0;

    while (is_combining(label->padded[i + 1 - count]))
        count++;
    return count;
}

static const char *judge_combining(const struct label *label, size_t i)
{
    const uint32_t code = code_at(label, i), before = code_before(label, i);

    if (is_unseen_mark(code))
        return "is invisible";
    if (is_selector(code))
        return (is_seen(before) || is_combining(before)) && !is_selector(before)
                   ? NULL
                   : "selects a variant of the character before it, and there is none";
    if (i == 0)
        return "is a combining mark, and no letter stands before it";
    return count_combining(label, i) <= COMBINING_MAX ? NULL : "is one combining mark too many: 30 may follow a letter";
}

static const char *judge_character(const struct label *label, size_t i)
{
    switch (category(code_at(label, i))) {
    case UTF8PROC_CATEGORY_CC:
        return "is a control character";
    case UTF8PROC_CATEGORY_CN:
        return "stands for no character";
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return "breaks the line";
    case UTF8PROC_CATEGORY_CF:
        return judge_format(label, i);
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
        return judge_combining(label, i);
    default:
        return NULL;
    }
}

/* The whole */

static bool read_label(struct text t, struct label *ret_label)
{
    size_t chars;

    if (!text_count_utf8(t, &chars) || chars == 0 || chars > LABEL_MAX_CHARS)
        return false;
    *ret_label = (struct label){.count = chars};
    for (size_t i = 0; i < chars; i++)
        ret_label->padded[i + 1] = take_code_point(&t);
    return true;
}

/* The number of the first character that is refused; label->count: none is. */
static size_t find_wrong(const struct label *label, const char **ret_why)
{
    size_t i = 0;

    while (i < label->count && !(*ret_why = judge_character(label, i)))
        i++;
    return i;
}

static bool shows_something(const struct label *label)
{
    for (size_t i = 0; i < label->count; i++)
        if (is_seen(code_at(label, i)))
            return true;
    return false;
}

bool label_valid(struct text t)
{
    struct label label;
    const char *why;

    return read_label(t, &label) && !secret_within(t) && find_wrong(&label, &why) == label.count &&
           shows_something(&label);
}

void label_explain(struct text t, const char *what, struct buf *out)
{
    struct label label;
    const char *why;
    size_t chars, wrong;

    if (!text_count_utf8(t, &chars)) {
        buf_printf(out, "%s must be text in UTF-8.", what);
    } else if (!read_label(t, &label)) {
        buf_printf(out, "%s must have 1 to %d characters, not %zu.", what, LABEL_MAX_CHARS, chars);
    } else if (secret_within(t)) {
        buf_printf(out, "%s has an API key: it may have leaked, revoke it (POST /v1/auth/revoke).", what);
    } else {
        wrong = find_wrong(&label, &why);
        if (wrong < label.count)
            buf_printf(out, "%s has U+%04X as character %zu, which %s.", what, (unsigned)code_at(&label, wrong),
                       wrong + 1, why);
        else
            buf_printf(out, "%s must have a character that can be seen.", what);
    }
}

bool label_has_control(struct text t)
{
    while (t.len)
        if (is_control(take_code_point(&t)))
            return true;
    return false;
}
