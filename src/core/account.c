#include "core/account.h"
#include "common_passwords_internal.h"
#include "label_internal.h"

#include <string.h>

enum { PERIOD_MAX_BYTES = 4 };

static size_t count_char(struct text t, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < t.len; i++)
        count += t.ptr[i] == c;
    return count;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool account_normalise_email(struct text email, char *ret_email)
{
    const struct text t = text_trim(email);
    size_t chars;
    if (t.len < 3 || t.len > EMAIL_MAX_BYTES || !text_count_utf8(t, &chars) || label_has_control(t) ||
        count_char(t, ' ') || count_char(t, '@') != 1 || t.ptr[0] == '@' || t.ptr[t.len - 1] == '@')
        return false;
    for (size_t i = 0; i < t.len; i++)
        ret_email[i] = lower(t.ptr[i]);
    ret_email[t.len] = '\0';
    return true;
}

bool account_name_valid(struct text name)
{
    return label_valid(name, ACCOUNT_NAME_MAX_CHARS);
}

/* Up to four bytes over and over, so one repeated character of any alphabet too. */
static bool repeats_itself(struct text t)
{
    for (size_t period = 1; period <= PERIOD_MAX_BYTES; period++)
        if (t.len > period && text_equal(text_skip(t, period), (struct text){t.ptr, t.len - period}))
            return true;
    return false;
}

static char next_in_run(char c)
{
    return c == '9' ? '0' : c == 'z' ? 'a' : (char)(c + 1);
}

/* "abcdefghijkl", "789012345678", and the same backwards. */
static bool is_run(struct text t)
{
    bool ascending = true, descending = true;
    for (size_t i = 1; i < t.len; i++) {
        const char before = lower(t.ptr[i - 1]), here = lower(t.ptr[i]);
        ascending = ascending && here == next_in_run(before);
        descending = descending && before == next_in_run(here);
    }
    return ascending || descending;
}

static bool is_listed(struct text t)
{
    for (size_t i = 0; i < COMMON_PASSWORD_COUNT; i++)
        if (text_equal_nocase(t, text_of(COMMON_PASSWORDS[i])))
            return true;
    return false;
}

enum password_verdict account_judge_password(struct text password)
{
    size_t chars;
    if (!text_count_utf8(password, &chars) || count_char(password, '\0'))
        return PASSWORD_NOT_TEXT;
    if (chars < PASSWORD_MIN_CHARS)
        return PASSWORD_TOO_SHORT;
    if (chars > PASSWORD_MAX_CHARS)
        return PASSWORD_TOO_LONG;
    return repeats_itself(password) || is_run(password) || is_listed(password) ? PASSWORD_COMMON : PASSWORD_OK;
}

const char *account_explain_password(enum password_verdict verdict)
{
    switch (verdict) {
    case PASSWORD_OK:
        return "The password is fit.";
    case PASSWORD_TOO_SHORT:
        return "The password needs at least 12 characters.";
    case PASSWORD_TOO_LONG:
        return "The password may have at most 256 characters.";
    case PASSWORD_COMMON:
        return "The password is one that many people use, or a simple pattern. Choose another.";
    case PASSWORD_NOT_TEXT:
        break;
    }
    return "The password is not valid UTF-8 text.";
}
