#include "base/text.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define NONE ((struct text){NULL, 0})

TestSuite(text, .fini = leak_guard);

static bool reads(struct text t, const char *expected)
{
    return text_equal(t, text_of(expected));
}

Test(text, of_measures)
{
    cr_assert_eq(text_of("abc").len, 3);
    cr_assert_eq(text_of("").len, 0);
    cr_assert_eq(text_of(NULL).len, 0);
    cr_assert_null(text_of(NULL).ptr);
    cr_assert_eq(TEXT("a\0b").len, 3);
}

Test(text, equal)
{
    cr_assert(text_equal(TEXT("abc"), TEXT("abc")));
    cr_assert(text_equal(NONE, TEXT("")));
    cr_assert_not(text_equal(TEXT("abc"), TEXT("abC")));
    cr_assert_not(text_equal(TEXT("abc"), TEXT("ab")));
    cr_assert_not(text_equal(TEXT("a\0b"), TEXT("a\0c")));
}

Test(text, equal_nocase_folds_ascii_letters_only)
{
    cr_assert(text_equal_nocase(TEXT("Content-TYPE"), TEXT("content-type")));
    cr_assert(text_equal_nocase(NONE, TEXT("")));
    cr_assert_not(text_equal_nocase(TEXT("a"), TEXT("ab")));
    cr_assert_not(text_equal_nocase(TEXT("@"), TEXT("`")));
    cr_assert_not(text_equal_nocase(TEXT("["), TEXT("{")));
    cr_assert_not(text_equal_nocase(TEXT("\xc4"), TEXT("\xe4")));
}

Test(text, starts_with)
{
    cr_assert(text_starts_with(TEXT("Bearer x"), TEXT("Bearer ")));
    cr_assert(text_starts_with(TEXT("abc"), TEXT("")));
    cr_assert(text_starts_with(NONE, NONE));
    cr_assert_not(text_starts_with(TEXT("ab"), TEXT("abc")));
    cr_assert_not(text_starts_with(TEXT("abc"), TEXT("abd")));
}

Test(text, skip_stops_at_the_end)
{
    cr_assert(reads(text_skip(TEXT("abc"), 1), "bc"));
    cr_assert(reads(text_skip(TEXT("abc"), 3), ""));
    cr_assert(reads(text_skip(TEXT("abc"), 4), ""));
    cr_assert_eq(text_skip(NONE, 9).len, 0);
}

Test(text, trim_removes_blanks_and_tabs_only)
{
    static const char *const cases[][2] = {
        {"abc", "abc"}, {" \tabc\t ", "abc"}, {"a b", "a b"}, {"", ""}, {" \t ", ""}, {"\nabc\r", "\nabc\r"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect(reads(text_trim(text_of(cases[i][0])), cases[i][1]), "case %zu", i);
    cr_assert_eq(text_trim(NONE).len, 0);
}

Test(text, next_splits)
{
    static const struct {
        const char *text;
        size_t count;
        const char *parts[4];
    } cases[] = {
        {"a,b,c", 3, {"a", "b", "c"}}, {"abc", 1, {"abc"}}, {"", 1, {""}}, {",", 2, {"", ""}},
        {"a,,", 3, {"a", "", ""}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text rest = text_of(cases[i].text), part;
        size_t count = 0;
        for (; text_next(&rest, ',', &part); count++) {
            cr_assert_lt(count, cases[i].count, "case %zu", i);
            cr_expect(reads(part, cases[i].parts[count]), "case %zu part %zu", i, count);
        }
        cr_expect_eq(count, cases[i].count, "case %zu", i);
    }
    struct text rest = NONE, part;
    cr_assert_not(text_next(&rest, ',', &part));
}

Test(text, to_u64_takes_plain_decimals_within_max)
{
    static const struct {
        const char *text;
        uint64_t max;
        bool is_taken;
        uint64_t value;
    } cases[] = {
        {"0", 0, true, 0},
        {"7", 9, true, 7},
        {"9", 9, true, 9},
        {"10", 9, false, 0},
        {"1", 0, false, 0},
        {"65535", 65535, true, 65535},
        {"65536", 65535, false, 0},
        {"18446744073709551615", UINT64_MAX, true, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, false, 0},
        {"99999999999999999999999999", UINT64_MAX, false, 0},
        {"", 9, false, 0},
        {"00", 9, false, 0},
        {"01", 9, false, 0},
        {"+1", 9, false, 0},
        {"-1", 9, false, 0},
        {" 1", 9, false, 0},
        {"1 ", 9, false, 0},
        {"0x1", 99, false, 0},
        {"1a", 99, false, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t value = 42;
        bool is_taken = text_to_u64(text_of(cases[i].text), cases[i].max, &value);
        cr_expect_eq(is_taken, cases[i].is_taken, "%s", cases[i].text);
        cr_expect_eq(value, is_taken ? cases[i].value : 42, "%s", cases[i].text);
    }
}

Test(text, count_utf8)
{
    static const struct {
        struct text text;
        int count; /* -1: not UTF-8 */
    } cases[] = {
        {{NULL, 0}, 0},
        {{"abcdefgh", 8}, 8},
        {{"abcdefghi\0", 10}, 10},
        {{"\x7f", 1}, 1},
        {{"\x80", 1}, -1},
        {{"\xbf", 1}, -1},
        {{"\xc0\x80", 2}, -1},
        {{"\xc1\xbf", 2}, -1},
        {{"\xc2\x80", 2}, 1},
        {{"\xdf\xbf", 2}, 1},
        {{"\xc2", 1}, -1},
        {{"\xc2\x41", 2}, -1},
        {{"\xe0\x9f\xbf", 3}, -1},
        {{"\xe0\xa0\x80", 3}, 1},
        {{"\xe2\x82", 2}, -1},
        {{"\xe2\x82\xac", 3}, 1},
        {{"\xe2\x82\x41", 3}, -1},
        {{"\xed\x9f\xbf", 3}, 1},
        {{"\xed\xa0\x80", 3}, -1},
        {{"\xed\xbf\xbf", 3}, -1},
        {{"\xee\x80\x80", 3}, 1},
        {{"\xef\xbf\xbf", 3}, 1},
        {{"\xf0\x8f\xbf\xbf", 4}, -1},
        {{"\xf0\x90\x80\x80", 4}, 1},
        {{"\xf0\x9f\x94\x91", 4}, 1},
        {{"\xf0\x9f\x94", 3}, -1},
        {{"\xf4\x8f\xbf\xbf", 4}, 1},
        {{"\xf4\x90\x80\x80", 4}, -1},
        {{"\xf5\x80\x80\x80", 4}, -1},
        {{"\xff", 1}, -1},
        {{"abcdefgh\xc3\xa4"
          "abcdefgh\xff",
          19},
         -1},
        {{"abcdefgh\xc3\xa4"
          "abcdefgh!",
          19},
         18},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t count = 99;
        bool is_valid = text_count_utf8(cases[i].text, &count);
        cr_expect_eq(is_valid, cases[i].count >= 0, "case %zu", i);
        cr_expect_eq(count, is_valid ? (size_t)cases[i].count : 99, "case %zu", i);
    }
}

Test(text, utf8_length_never_looks_behind_the_end)
{
    cr_assert_eq(text_utf8_length(NONE), 0);
    cr_assert_eq(text_utf8_length((struct text){"\xe2\x82\xac", 3}), 3);
    cr_assert_eq(text_utf8_length((struct text){"\xe2\x82\xac", 2}), 0);
    cr_assert_eq(text_utf8_length(TEXT("a\xff")), 1);
}

TestSuite(buf, .fini = leak_guard);

Test(buf, appends_of_all_kinds)
{
    struct buf b;
    buf_init(&b, 1000);
    buf_append(&b, "ab", 2);
    buf_append_text(&b, TEXT("cd"));
    buf_append_text(&b, NONE);
    buf_append_str(&b, "ef");
    buf_append_char(&b, '-');
    buf_append_u64(&b, 0);
    buf_append_u64(&b, UINT64_MAX);
    buf_printf(&b, " %d %s", -5, "x");
    cr_assert(reads(buf_text(&b), "abcdef-018446744073709551615 -5 x"));
    cr_assert_not(b.failed);
    buf_finish(&b);
}

Test(buf, prints_numbers_of_each_length)
{
    char expected[24];
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10)
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            struct buf b;
            buf_init(&b, 24);
            buf_append_u64(&b, value);
            snprintf(expected, sizeof expected, "%" PRIu64, value);
            cr_assert(reads(buf_text(&b), expected), "%s", expected);
            buf_finish(&b);
        }
}

Test(buf, takes_exactly_its_maximum)
{
    struct buf b;
    buf_init(&b, 700);
    for (int i = 0; i < 700; i++)
        buf_append_char(&b, 'x');
    cr_assert_not(b.failed);
    cr_assert_eq(b.len, 700);
    buf_append_char(&b, 'y');
    cr_assert(b.failed);
    cr_assert_eq(b.len, 700);
    buf_finish(&b);
}

Test(buf, stays_failed_until_cleared)
{
    struct buf b;
    buf_init(&b, 4);
    buf_append_str(&b, "abc");
    buf_append_str(&b, "de");
    buf_append_char(&b, 'f'); /* would fit, but a piece before it is missing */
    cr_assert(b.failed);
    cr_assert(reads(buf_text(&b), "abc"));
    cr_assert_null(buf_reserve(&b, 1));
    buf_printf(&b, "%d", 1);
    cr_assert(reads(buf_text(&b), "abc"));

    buf_clear(&b);
    buf_append_str(&b, "defg");
    cr_assert_not(b.failed);
    cr_assert(reads(buf_text(&b), "defg"));
    buf_finish(&b);
}

Test(buf, refuses_a_size_that_overflows)
{
    struct buf b;
    buf_init(&b, SIZE_MAX);
    buf_append_str(&b, "abc");
    cr_assert_null(buf_reserve(&b, SIZE_MAX));
    cr_assert(b.failed);
    buf_finish(&b);
}

Test(buf, printf_of_any_length)
{
    static const size_t lengths[] = {0, 1, 510, 511, 512, 513, 5000};
    char source[5001];
    memset(source, 'x', sizeof source - 1);
    source[sizeof source - 1] = '\0';
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const char *tail = source + 5000 - lengths[i];
        struct buf b;
        buf_init(&b, lengths[i]);
        buf_printf(&b, "%s", tail);
        cr_expect_not(b.failed, "length %zu", lengths[i]);
        cr_expect(reads(buf_text(&b), tail), "length %zu", lengths[i]);
        buf_printf(&b, "%c", 'y');
        cr_expect(b.failed, "length %zu", lengths[i]);
        buf_finish(&b);
    }
}

Test(buf, fixed_storage_is_used_to_its_last_byte_and_never_left)
{
    char storage[] = "----!";
    struct buf b;
    buf_init_fixed(&b, storage, 4);
    buf_printf(&b, "%s", "abcd");
    cr_assert_not(b.failed);
    cr_assert_eq(b.ptr, storage);
    buf_append_char(&b, 'e');
    cr_assert(b.failed);
    cr_assert_str_eq(storage, "abcd!");
    buf_finish(&b);
    cr_assert_str_eq(storage, "abcd!");
}

Test(buf, initialisers_set_the_same_bounds)
{
    struct buf fixed = BUF_FIXED(4), grown = BUF_UP_TO(4);

    buf_append_str(&fixed, "abcd");
    buf_append_str(&grown, "abcd");
    cr_expect(reads(buf_text(&fixed), "abcd"));
    cr_expect(reads(buf_text(&grown), "abcd"));
    cr_expect_not(fixed.failed || grown.failed);
    buf_append_char(&fixed, 'e');
    buf_append_char(&grown, 'e');
    cr_expect(fixed.failed && grown.failed);
    buf_finish(&fixed);
    buf_finish(&grown);
}

Test(buf, reserve_then_add)
{
    struct buf b;
    buf_init(&b, 10000);
    buf_append_str(&b, "ab");
    char *room = buf_reserve(&b, 5000);
    cr_assert_not_null(room);
    memset(room, 'c', 5000);
    b.len += 5000;
    cr_assert_eq(b.len, 5002);
    cr_assert_eq(b.ptr[1], 'b');
    cr_assert_eq(b.ptr[5001], 'c');
    buf_finish(&b);
}

Test(buf, consume_moves_the_rest_to_the_front)
{
    struct buf b;
    buf_init(&b, 100);
    buf_append_str(&b, "abcdef");
    buf_consume(&b, 0);
    buf_consume(&b, 4);
    cr_assert(reads(buf_text(&b), "ef"));
    buf_consume(&b, 2);
    cr_assert_eq(b.len, 0);
    buf_finish(&b);
}

Test(buf, consuming_more_than_there_is_aborts, .signal = SIGABRT)
{
    struct buf b;
    buf_init(&b, 100);
    buf_append_str(&b, "ab");
    buf_consume(&b, 3);
}

Test(buf, wipe_clears_fixed_storage_behind_the_content_too)
{
    char storage[4] = {'x', 'x', 'x', 'x'};
    struct buf b;
    buf_init_fixed(&b, storage, sizeof storage);
    buf_append_str(&b, "ab");
    buf_wipe(&b);
    cr_assert_arr_eq(storage, "\0\0\0\0", 4);
}

Test(buf, finish_twice_and_of_nothing)
{
    struct buf b = {0};
    buf_finish(&b);
    buf_init(&b, 10);
    buf_append_char(&b, 'a');
    buf_finish(&b);
    buf_finish(&b);
    buf_wipe(&b);
    cr_assert_null(b.ptr);
}

Test(text, printable_text_has_no_control_characters)
{
    static const struct {
        struct text given, printed;
    } CASES[] = {
        {TEXT(""), TEXT("")},
        {TEXT("S\303\274d"), TEXT("S\303\274d")},
        {TEXT("a\x1b[31mb\n\t"), TEXT("a\xef\xbf\xbd[31mb\xef\xbf\xbd\xef\xbf\xbd")},
        {TEXT("\x7f\xc2\x9b"), TEXT("\xef\xbf\xbd\xef\xbf\xbd")},
        {TEXT("\xc2\xa0\xff\xc3"), TEXT("\xc2\xa0\xef\xbf\xbd\xef\xbf\xbd")},
        {TEXT("a\0b"), TEXT("a\xef\xbf\xbd"
                            "b")},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char storage[64];
        struct buf out;

        buf_init_fixed(&out, storage, sizeof storage);
        buf_append_printable(&out, CASES[i].given);
        cr_expect(text_equal(buf_text(&out), CASES[i].printed), "case %zu: %.*s", i, TEXT_ARG(buf_text(&out)));
    }
}

/* Each byte at each place of each length, from less than one step of the search to more than two. */
Test(text, control_characters_are_found_wherever_they_stand)
{
    static const char AROUND[] = {' ', '~', '!', (char)0x80, (char)0xff};
    char bytes[35];

    cr_expect_not(text_has_control((struct text){NULL, 0}));
    for (size_t around = 0; around < sizeof AROUND; around++)
        for (size_t len = 1; len <= sizeof bytes; len++)
            for (size_t at = 0; at < len; at++)
                for (unsigned byte = 0; byte <= UINT8_MAX; byte++) {
                    memset(bytes, AROUND[around], len);
                    bytes[at] = (char)byte;
                    if (text_has_control((struct text){bytes, len}) != (byte < ' ' || byte == 0x7f))
                        cr_assert_fail("%#x at %zu of %zu", byte, at, len);
                }
}

Test(text, guesses_what_was_meant)
{
    static const char *const NAMES[] = {"name", "mode", "scopes", "starting_after"};
    static const struct {
        const char *written, *meant;
    } CASES[] = {
        {"scope", "scopes"},
        {"Mode", "mode"},
        {"nmae", "name"},
        {"startingAfter", "starting_after"},
        {"", NULL},
        {"ip", NULL},
        {"description", NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text_guess guess = {.written = text_of(CASES[i].written)};
        for (size_t n = 0; n < sizeof NAMES / sizeof *NAMES; n++)
            text_guess_try(&guess, NAMES[n]);
        if (CASES[i].meant)
            cr_expect(guess.found && strcmp(guess.found, CASES[i].meant) == 0, "%s", CASES[i].written);
        else
            cr_expect_null(guess.found, "%s: %s", CASES[i].written, guess.found);
    }
}
