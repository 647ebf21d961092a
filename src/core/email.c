#include "core/email.h"
#include "core/secret.h"

#include <idn2.h>
#include <utf8proc.h>

enum {
    LOCAL_MAX_BYTES = 64,  /* RFC 5321 section 4.5.3.1.1 */
    DOMAIN_LABEL_MAX = 63, /* RFC 1035 */
    DOMAIN_MAX_BYTES = 253,
    CODE_POINTS_MAX = 4 * EMAIL_MAX_BYTES, /* no code point has a longer decomposition, and each takes a byte */
};

/* What is wrong with an address: with a character, or else with all of it. */
struct email_fault {
    const char *why; /* "email must …"; NULL: code is the fault */
    uint32_t code;
};

static bool refuse(struct email_fault *fault, const char *why)
{
    fault->why = why;
    return false;
}

/* The local part */

static bool is_ascii_atom(uint32_t code)
{
    return code > ' ' && code < 0x7f && !memchr("()<>[]:;@\\,\"", (int)code, 12);
}

/* RFC 8264, IdentifierClass, without joiners: they are as invisible here as anywhere. */
static bool is_identifier(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t)code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND: {
        const utf8proc_property_t *property = utf8proc_get_property((utf8proc_int32_t)code);

        return property->decomp_type == 0 && !property->ignorable;
    }
    default:
        return false;
    }
}

/* Full- and half-width forms are only another look of the same characters. */
static utf8proc_int32_t map_code_point(utf8proc_int32_t code, void *unused UNUSED)
{
    const utf8proc_property_t *property = utf8proc_get_property(code);
    utf8proc_int32_t mapped[4];
    int unused_class = 0;

    if ((property->decomp_type == UTF8PROC_DECOMP_TYPE_WIDE || property->decomp_type == UTF8PROC_DECOMP_TYPE_NARROW) &&
        utf8proc_decompose_char(code, mapped, 4, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, &unused_class) == 1)
        code = mapped[0];
    return utf8proc_tolower(code);
}

static bool read_local(struct text written, struct buf *out, struct email_fault *fault)
{
    utf8proc_int32_t codes[CODE_POINTS_MAX + 1];
    const size_t before = out->len;
    utf8proc_ssize_t count =
        utf8proc_decompose_custom((const utf8proc_uint8_t *)written.ptr, (utf8proc_ssize_t)written.len, codes,
                                  CODE_POINTS_MAX, UTF8PROC_STABLE | UTF8PROC_COMPOSE, map_code_point, NULL);

    if (count <= 0 || count > CODE_POINTS_MAX)
        return refuse(fault, "email must have something before the @.");
    count = utf8proc_normalize_utf32(codes, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        const uint32_t code = (uint32_t)codes[i];
        const utf8proc_category_t of = utf8proc_category(codes[i]);
        const bool is_mark = of == UTF8PROC_CATEGORY_MN || of == UTF8PROC_CATEGORY_MC;
        char bytes[4];

        if (!(code < 0x80 ? is_ascii_atom(code) : is_identifier(code)) || (i == 0 && is_mark)) {
            fault->code = code;
            return false;
        }
        buf_append(out, bytes, (size_t)utf8proc_encode_char(codes[i], (utf8proc_uint8_t *)bytes));
    }
    return out->len - before <= LOCAL_MAX_BYTES || refuse(fault, "email must have at most 64 bytes before the @.");
}

/* The domain */

static bool is_domain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

/* In the form that DNS has. */
static bool is_domain(struct text t)
{
    struct text label;

    if (t.len == 0 || t.len > DOMAIN_MAX_BYTES)
        return false;
    while (text_next(&t, '.', &label)) {
        if (label.len == 0 || label.len > DOMAIN_LABEL_MAX || label.ptr[0] == '-' || label.ptr[label.len - 1] == '-')
            return false;
        for (size_t i = 0; i < label.len; i++)
            if (!is_domain_char(label.ptr[i]))
                return false;
    }
    return true;
}

/* Decoding it, too, shows that an "xn--" label is what a name would become. */
static bool read_domain(struct text written, struct buf *out, struct email_fault *fault)
{
    char domain[EMAIL_MAX_BYTES + 1], *ascii = NULL, *unicode = NULL;
    bool is_good;

    memcpy(domain, written.ptr, written.len);
    domain[written.len] = '\0';
    is_good = idn2_to_ascii_8z(domain, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK &&
              is_domain(text_of(ascii)) && idn2_to_unicode_8z8z(ascii, &unicode, 0) == IDN2_OK;
    if (is_good)
        buf_append_str(out, ascii);
    idn2_free(ascii);
    idn2_free(unicode);
    return is_good || refuse(fault, "email must have a domain after the @, such as clinic.example.");
}

/* The whole */

static bool read_all(struct text written, struct buf *out, struct email_fault *fault)
{
    const struct text t = text_trim(written);
    const char *at = t.len ? memchr(t.ptr, '@', t.len) : NULL;
    size_t chars;

    if (!text_count_utf8(t, &chars) || t.len > EMAIL_MAX_BYTES || memchr(t.len ? t.ptr : "", '\0', t.len))
        return refuse(fault, "email must be at most 254 bytes of text in UTF-8.");
    if (!at)
        return refuse(fault, "email must be an address, such as ada@clinic.example.");
    if (secret_within(t))
        return refuse(fault, "email has an API key: it may have leaked, revoke it (POST /v1/auth/revoke).");
    if (!read_local((struct text){t.ptr, (size_t)(at - t.ptr)}, out, fault))
        return false;
    buf_append_char(out, '@');
    if (!read_domain(text_skip(t, (size_t)(at - t.ptr) + 1), out, fault))
        return false;
    return !out->failed || refuse(fault, "email must be at most 254 bytes of text in UTF-8.");
}

bool email_read(struct text written, char *ret_email)
{
    struct email_fault fault = {0};
    struct buf out = BUF_OVER(ret_email, EMAIL_MAX_BYTES);

    if (!read_all(written, &out, &fault))
        return false;
    ret_email[out.len] = '\0';
    return true;
}

void email_explain(struct text written, struct buf *out)
{
    struct email_fault fault = {0};
    struct buf email = BUF_FIXED(EMAIL_MAX_BYTES);

    if (read_all(written, &email, &fault))
        buf_append_str(out, "email is an address.");
    else if (fault.why)
        buf_append_str(out, fault.why);
    else
        buf_printf(out, "email has U+%04X, which no new address may have there.", (unsigned)fault.code);
}
