#include "core/account.h"
#include "base/secure.h"
#include "common_passwords_internal.h"
#include "core/label.h"
#include "core/secret.h"

#include <string.h>

enum { PERIOD_MAX_BYTES = 4 };

static size_t count_char(struct text t, char c)
{
    size_t count = 0;
    for (size_t i = 0; i < t.len; i++)
        count += t.ptr[i] == c;
    return count;
}

bool account_normalise_email(struct text email, char *ret_email)
{
    const struct text t = text_trim(email);
    size_t chars;
    if (t.len < 3 || t.len > EMAIL_MAX_BYTES || !text_count_utf8(t, &chars) || label_has_control(t) ||
        secret_within(t) || count_char(t, ' ') || count_char(t, '@') != 1 || t.ptr[0] == '@' || t.ptr[t.len - 1] == '@')
        return false;
    for (size_t i = 0; i < t.len; i++)
        ret_email[i] = text_lower(t.ptr[i]);
    ret_email[t.len] = '\0';
    return true;
}

static const struct text ROLE_NAMES[ROLE_COUNT] = {
    [ROLE_AUDITOR] = {"auditor", 7},
    [ROLE_RESPONDER] = {"responder", 9},
    [ROLE_DEVELOPER] = {"developer", 9},
    [ROLE_OWNER] = {"owner", 5},
};

struct text role_text(enum role role)
{
    return ROLE_NAMES[role];
}

bool role_parse(struct text name, enum role *ret_role)
{
    for (enum role role = ROLE_AUDITOR; role < ROLE_COUNT; role++) {
        if (!text_equal(name, ROLE_NAMES[role]))
            continue;
        *ret_role = role;
        return true;
    }
    return false;
}

/* By scope: the least role whose worth it is. */
static const enum role LEAST_ROLES[SCOPE_COUNT] = {
    ROLE_DEVELOPER, /* exchanges:read */
    ROLE_DEVELOPER, /* exchanges:write */
    ROLE_DEVELOPER, /* patients:read */
    ROLE_DEVELOPER, /* patients:write */
    ROLE_DEVELOPER, /* webhooks:manage */
    ROLE_RESPONDER, /* keys:manage */
    ROLE_AUDITOR,   /* audit:read */
    ROLE_OWNER,     /* team:manage */
    ROLE_OWNER,     /* org:manage */
    ROLE_AUDITOR,   /* usage:read */
    ROLE_DEVELOPER, /* documents:write */
    ROLE_DEVELOPER, /* sandbox:manage */
};

scope_set role_scopes(enum role role)
{
    scope_set scopes = SCOPE_NONE;

    for (unsigned n = 0; n < SCOPE_COUNT; n++)
        if (LEAST_ROLES[n] <= role)
            scopes |= 1U << n;
    return scopes;
}

enum role role_least_for(scope_set scopes)
{
    enum role role = ROLE_AUDITOR;

    while (!scope_includes(role_scopes(role), scopes))
        role++;
    return role;
}

static const struct text STATUSES[] = {
    [ACCOUNT_ACTIVE] = TEXT("active"),
    [ACCOUNT_SUSPENDED] = TEXT("suspended"),
    [ACCOUNT_CLOSING] = TEXT("closing"),
    [ACCOUNT_CLOSED] = TEXT("closed"),
};

struct text account_status_text(enum account_status status)
{
    return STATUSES[status];
}

bool account_status_parse(struct text t, enum account_status *ret_status)
{
    for (size_t i = 0; i < sizeof STATUSES / sizeof *STATUSES; i++) {
        if (!text_equal(t, STATUSES[i]))
            continue;
        *ret_status = (enum account_status)i;
        return true;
    }
    return false;
}

/* One to four bytes, repeated; so also one repeated character of any alphabet. */
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
        const char before = text_lower(t.ptr[i - 1]), here = text_lower(t.ptr[i]);
        ascending = ascending && here == next_in_run(before);
        descending = descending && before == next_in_run(here);
    }
    return ascending || descending;
}

static bool is_listed(struct text t)
{
    struct text rest = COMMON_PASSWORDS, listed;

    while (text_next(&rest, ',', &listed))
        if (text_equal_nocase(t, listed))
            return true;
    return false;
}

enum { CONTEXT_WORDS_MAX = 24, CONTEXT_WORD_MIN = 3, COMMON_BELOW_BITS = 30 };

struct context_words {
    struct text words[CONTEXT_WORDS_MAX];
    size_t count;
};

static void add_word(struct context_words *context, struct text word)
{
    if (word.len >= CONTEXT_WORD_MIN && context->count < CONTEXT_WORDS_MAX)
        context->words[context->count++] = word;
}

static bool is_separator(char c)
{
    return (unsigned char)c < 0x80 && !text_is_digit(c) && !(text_lower(c) >= 'a' && text_lower(c) <= 'z');
}

/* Adds the whole text and each of its words. */
static void add_words(struct context_words *context, struct text t)
{
    size_t begin = 0;
    add_word(context, t);
    for (size_t i = 0; i <= t.len; i++) {
        if (i < t.len && !is_separator(t.ptr[i]))
            continue;
        if (i - begin < t.len)
            add_word(context, (struct text){t.ptr + begin, i - begin});
        begin = i + 1;
    }
}

/* Repeating a password hardly makes it stronger, so only its first period is judged. */
static struct text first_period(struct text t)
{
    for (size_t period = 1; period <= t.len / 2; period++)
        if (text_equal(text_skip(t, period), (struct text){t.ptr, t.len - period}))
            return (struct text){t.ptr, period};
    return t;
}

static bool is_guessed(struct text t, const struct password_context *context)
{
    struct context_words words = {0};
    add_words(&words, TEXT("chatelaine"));
    if (context) {
        add_words(&words, context->email);
        add_words(&words, context->account_name);
    }
    return password_guess_bits(first_period(t), words.words, words.count) < COMMON_BELOW_BITS;
}

static enum password_verdict judge_prepared(struct text t, const struct password_context *context)
{
    size_t chars;
    if (!text_count_utf8(t, &chars) || chars > PASSWORD_MAX_CHARS)
        return PASSWORD_TOO_LONG;
    if (chars < PASSWORD_MIN_CHARS)
        return PASSWORD_TOO_SHORT;
    return repeats_itself(t) || is_run(t) || is_listed(t) || is_guessed(t, context) ? PASSWORD_COMMON : PASSWORD_OK;
}

enum password_verdict account_check_password(struct text password, const struct password_context *context)
{
    char storage[PASSWORD_FORM_MAX_BYTES];
    enum password_verdict verdict;
    struct buf prepared = BUF_OVER(storage, sizeof storage);
    size_t chars;
    if (!text_count_utf8(password, &chars) || count_char(password, '\0'))
        return PASSWORD_NOT_TEXT;
    if (password.len > PASSWORD_MAX_BYTES)
        return PASSWORD_TOO_LONG;
    account_prepare_password(password, &prepared);
    verdict = judge_prepared(buf_text(&prepared), context);
    secure_wipe(storage, sizeof storage);
    return verdict;
}

const char *account_explain_password(enum password_verdict verdict)
{
    switch (verdict) {
    case PASSWORD_OK:
        return "The password is acceptable.";
    case PASSWORD_TOO_SHORT:
        return "The password needs at least 12 characters.";
    case PASSWORD_TOO_LONG:
        return "The password may have at most 256 characters.";
    case PASSWORD_COMMON:
        return "The password is too easy to guess: widely used, a simple pattern, or made of common words, years or "
               "your own names. Choose another; four or more uncommon words work well.";
    case PASSWORD_NOT_TEXT:
        break;
    }
    return "The password is not valid UTF-8 text.";
}
