/* Estimates how many guesses find a password, if the guesser begins with what people usually choose. The password is
 * cut into the cheapest pieces: known words in any spelling, years, sequences, keyboard walks, single characters. A
 * list of whole passwords cannot keep up with everything that people append to words; this covers millions of such
 * passwords. */
#include "common_passwords_internal.h"

#include <string.h>

/* Costs in tenths of a bit: log2 of how many choices a guesser tries for each piece. */
enum {
    COST_CONTEXT = 20,    /* the user's email, this program, the account's name: tried first */
    COST_WORD = 90,       /* one of about 700 */
    COST_CAPITALS = 10,   /* extra: mostly the first letter or all */
    COST_LEET = 10,       /* extra: "p@ssw0rd" is in every cracker's rules */
    COST_YEAR = 60,       /* one of about 64: recent and near ones are tried first */
    COST_SEQUENCE = 50,   /* 1234, abcd, 4321 */
    COST_WALK = 60,       /* qwertz, 1qaz2wsx */
    COST_REPEATED = 20,   /* extra: again, and how often */
    COST_LETTER = 47,     /* log2 26 */
    COST_CAPITAL = 57,    /* log2 52 */
    COST_DIGIT = 33,      /* log2 10 */
    COST_MARK = 25,       /* one of those appended to satisfy a rule: ! ? . */
    COST_OTHER = 50,      /* log2 32: other signs */
    COST_NOT_ASCII = 100, /* log2 1000: letters of one other alphabet */
    SEQUENCE_MIN = 3,
    WALK_MIN = 4,
    YEAR_CHARS = 4,
};

/* Rows, columns and zigzags on the keyboards of three countries. */
static const char *const WALKS[] = {
    "qwertyuiop[]\\",
    "asdfghjkl;'",
    "zxcvbnm,./",
    "qwertzuiop",
    "yxcvbnm,.-",
    "azertyuiop",
    "qsdfghjklm",
    "wxcvbn,;:!",
    "1234567890-=",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/",
    "zaq1xsw2cde3vfr4bgt5nhy6mju7",
    "1q2w3e4r5t6y7u8i9o0p",
    "qawsedrftgyhujikolp",
    "qazwsxedcrfvtgbyhnujmikolp",
    "147258369",
    "741852963",
    "159357",
    "!\"#$%&/()",
    "!@#$%^&*()_+",
    "1a2s3d4f5g6h7j8k9l0",
    "a1b2c3d4e5f6g7h8i9j0",
};

/* The letters that a sign can replace in "leet". */
static const char *const LEET[256] = {
    ['@'] = "a",  ['4'] = "a", ['8'] = "b", ['3'] = "e", ['6'] = "g", ['9'] = "g", ['1'] = "il", ['!'] = "il",
    ['|'] = "il", ['0'] = "o", ['5'] = "s", ['$'] = "s", ['7'] = "t", ['+'] = "t", ['2'] = "z",
};

/* The cost of the word at the beginning of t; 0: t does not begin with it. */
static unsigned word_cost(struct text t, struct text word, unsigned cost)
{
    bool has_capitals = false, has_leet = false;
    if (word.len == 0 || word.len > t.len)
        return 0;
    for (size_t i = 0; i < word.len; i++) {
        const char given = t.ptr[i], wanted = text_lower(word.ptr[i]), *letters = LEET[(uint8_t)given];
        if (text_lower(given) == wanted)
            has_capitals = has_capitals || given != wanted;
        else if (letters && strchr(letters, wanted))
            has_leet = true;
        else
            return 0;
    }
    return cost + (has_capitals ? COST_CAPITALS : 0) + (has_leet ? COST_LEET : 0);
}

static unsigned char_cost(char c)
{
    if (c >= 'a' && c <= 'z')
        return COST_LETTER;
    if (c >= 'A' && c <= 'Z')
        return COST_CAPITAL;
    if (text_is_digit(c))
        return COST_DIGIT;
    return strchr("!?. ", c) && c ? COST_MARK : COST_OTHER;
}

/* The length of the sequence at the beginning of t, in steps of 0, 1 or -1: "aaaa", "1234", "dcba". */
static size_t sequence_length(struct text t, int step)
{
    size_t len = 1;
    while (len < t.len && text_lower(t.ptr[len]) == text_lower(t.ptr[len - 1]) + step)
        len++;
    return len;
}

/* The length of the longest beginning of t that walks along the row, in steps of 1 or -1. */
static size_t walk_length(struct text t, const char *row, int step)
{
    const size_t row_len = strlen(row);
    size_t longest = 0;
    for (size_t from = 0; from < row_len; from++) {
        size_t len = 0, at = from;
        while (len < t.len && at < row_len && text_lower(t.ptr[len]) == row[at]) {
            len++;
            at += (size_t)step; /* below 0 it wraps beyond the end */
        }
        longest = len > longest ? len : longest;
    }
    return longest;
}

static bool is_year(struct text t)
{
    return t.len >= YEAR_CHARS && (text_starts_with(t, TEXT("19")) || text_starts_with(t, TEXT("20"))) &&
           text_is_digit(t.ptr[2]) && text_is_digit(t.ptr[3]);
}

/* best[i]: the cost of the cheapest way to cut the first i bytes. */
struct pieces {
    struct text password;
    unsigned best[PASSWORD_JUDGED_BYTES + 1];
};

static void offer(struct pieces *pieces, size_t from, size_t len, unsigned cost)
{
    const unsigned sum = pieces->best[from] + cost;
    if (cost && sum < pieces->best[from + len])
        pieces->best[from + len] = sum;
}

static void offer_patterns(struct pieces *pieces, size_t from)
{
    const struct text rest = text_skip(pieces->password, from);
    for (int step = -1; step <= 1; step++) {
        const size_t len = sequence_length(rest, step);
        if (len >= SEQUENCE_MIN)
            offer(pieces, from, len, step ? COST_SEQUENCE : char_cost(rest.ptr[0]) + COST_REPEATED);
    }
    for (size_t i = 0; i < sizeof WALKS / sizeof WALKS[0]; i++)
        for (int step = -1; step <= 1; step += 2) {
            const size_t len = walk_length(rest, WALKS[i], step);
            if (len >= WALK_MIN)
                offer(pieces, from, len, COST_WALK);
        }
    if (is_year(rest))
        offer(pieces, from, YEAR_CHARS, COST_YEAR);
}

static void offer_words(struct pieces *pieces, size_t from, const struct text *context, size_t context_count)
{
    const struct text rest = text_skip(pieces->password, from);
    struct text words = COMMON_WORDS, word;

    while (text_next(&words, ',', &word))
        offer(pieces, from, word.len, word_cost(rest, word, COST_WORD));
    for (size_t i = 0; i < context_count; i++)
        offer(pieces, from, context[i].len, word_cost(rest, context[i], COST_CONTEXT));
}

unsigned password_guess_bits(struct text password, const struct text *context, size_t context_count)
{
    struct pieces pieces = {.password = password};
    if (password.len > PASSWORD_JUDGED_BYTES)
        pieces.password.len = PASSWORD_JUDGED_BYTES;
    for (size_t i = 1; i <= pieces.password.len; i++)
        pieces.best[i] = UINT32_MAX / 2;
    for (size_t i = 0; i < pieces.password.len; i++) {
        const size_t bytes = text_utf8_length(text_skip(pieces.password, i));
        if (bytes > 1 || bytes == 0) {
            offer(&pieces, i, bytes ? bytes : 1, COST_NOT_ASCII);
            continue;
        }
        offer(&pieces, i, 1, char_cost(pieces.password.ptr[i]));
        offer_patterns(&pieces, i);
        offer_words(&pieces, i, context, context_count);
    }
    return pieces.best[pieces.password.len] / 10;
}
