/* Names: everything that people write in any script, and nothing that hides. */
#include "core/label.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(label, .fini = leak_guard);

Test(label, takes_what_people_write)
{
    static const char *const NAMES[] = {
        "a",
        " a ",
        "-",
        "\u0915\u094d\u200d\u0937",                                /* Hindi: a joiner behind a virama */
        "\u0915\u094d\u200c\u0937",                                /* and a non-joiner */
        "\u0dc1\u0dca\u200d\u0dbb\u0dd3 \u0dbd\u0d82\u0d9a\u0dcf", /* Sri Lanka, in Sinhala */
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",        /* Persian: a non-joiner between letters that join */
        "\u0646\u064e\u200c\u0647",                                /* with a vowel sign in between */
        "\u06f1\u06f2 \u0600\u06f3",                               /* a number sign, which is seen */
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",              /* a family */
        "\U0001f469\U0001f3fd\u200d\u2695\ufe0f",                  /* a doctor, with a tone of the skin */
        "\U0001f3f3\ufe0f\u200d\U0001f308",                        /* a flag */
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", /* the flag of Scotland */
        "1\ufe0f\u20e3",                                                          /* a keycap */
        "\U0001f1e8\U0001f1ed",                                                   /* the flag of a country */
        "\u05d0\u05d1\u200f!", /* Hebrew, and a mark that keeps the sign at its side */
        "\u200eabc\u200e",
        "\u061c1 \u0627",
        "a\u0301",
        "\u845b\U000e0100",   /* a variant of an ideograph */
        "\u0e01\u0e35\u0e48", /* Thai, two marks */
    };
    char many[200];

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char storage[LABEL_WHY_BYTES] = "";
        struct buf why;

        buf_init_fixed(&why, storage, sizeof storage - 1);
        label_explain(text_of(NAMES[i]), "name", &why);
        cr_expect(label_valid(text_of(NAMES[i])), "%zu: %s: %s", i, NAMES[i], storage);
    }
    snprintf(many, sizeof many, "e");
    for (unsigned i = 0; i < 30; i++)
        snprintf(many + strlen(many), 3, "%s", "\u0301");
    cr_expect(label_valid(text_of(many)), "thirty marks");
}

Test(label, refuses_what_hides_and_says_why)
{
    static const struct {
        const char *name, *says;
    } CASES[] = {
        {"", "1 to 200 characters, not 0"},
        {"\xff", "UTF-8"},
        {" ", "can be seen"},
        {"\u3000\u2800\u3164", "can be seen"},
        {"a\n", "U+000A as character 2, which is a control character"},
        {"a\xc2\x85", "U+0085"},
        {"a\u2028", "breaks the line"},
        {"a\u202eb", "U+202E as character 2, which reorders"},
        {"\u2066a\u2069", "U+2066 as character 1, which reorders"},
        {"a\u200db", "joins or parts nothing"},
        {"\u200d", "joins or parts nothing"},
        {"a\u200cb", "joins or parts nothing"},
        {"\u0627\u200c\u0628", "joins or parts nothing"}, /* alef joins nothing behind it */
        {"\U0001f468\u200d", "joins or parts nothing"},
        {"\U0001f468\u200da", "joins or parts nothing"},
        {"\u200d\U0001f468", "joins or parts nothing"},
        {"\U0001f468\u200d\u200d\U0001f468", "joins or parts nothing"},
        {"\u200e", "no text stands beside it"},
        {"a \u200f", "no text stands beside it"},
        {"a\u200b", "U+200B as character 2, which is invisible"},
        {"\ufeff"
         "a",
         "is invisible"},
        {"a\u00ad", "is invisible"},
        {"a\u2060", "is invisible"},
        {"a\u034f", "is invisible"},
        {"a\U000e0041", "is an invisible tag"},
        {"\U0001f3f4\U000e0067", "is an invisible tag"}, /* without an end */
        {"\U0001f3f4\U000e007f", "is an invisible tag"}, /* or without anything else */
        {"\U000e0001", "is invisible"},
        {"\ufe0f", "selects a variant"},
        {"a \ufe0f", "selects a variant"},
        {"a\ufe0f\ufe0f", "selects a variant"},
        {"\u0301"
         "a",
         "is a combining mark"},
        {"\u0301", "is a combining mark"},
        {" \u0301", "can be seen"},
        {"\ufdd0", "U+FDD0 as character 1, which stands for no character"},
        {"a\U0001ffff", "stands for no character"},
        {"a\u0378", "stands for no character"},
        {"my svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa", "has an API key: it may have leaked"},
    };
    char many[512];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char storage[LABEL_WHY_BYTES] = "";
        struct buf why;

        cr_expect_not(label_valid(text_of(CASES[i].name)), "%zu", i);
        buf_init_fixed(&why, storage, sizeof storage - 1);
        label_explain(text_of(CASES[i].name), "name", &why);
        cr_expect(!why.failed && strncmp(storage, "name ", 5) == 0 && strstr(storage, CASES[i].says), "%zu: %s", i,
                  storage);
        cr_expect_not(strstr(storage, "svc_"), "%s", storage);
    }
    snprintf(many, sizeof many, "e");
    for (unsigned i = 0; i < 31; i++)
        snprintf(many + strlen(many), 3, "%s", "\u0301");
    cr_expect_not(label_valid(text_of(many)), "thirty-one marks");
}

/* No character but those of its kinds is refused between two letters. */
Test(label, every_assigned_letter_is_taken)
{
    static const char *const LETTERS[] = {"A",      "\u00e9", "\u0416",     "\u05d0", "\u0628", "\u0905",
                                          "\u4e2d", "\uac00", "\U0001f511", "\u20ac", "\u00a0"};
    char name[16];

    for (size_t i = 0; i < sizeof LETTERS / sizeof *LETTERS; i++) {
        snprintf(name, sizeof name, "a%sb", LETTERS[i]);
        cr_expect(label_valid(text_of(name)), "%s", name);
    }
}
