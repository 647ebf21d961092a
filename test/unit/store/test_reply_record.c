/* Records that scripts reply by name. */
#include "engine/reply_record.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(reply_record, .fini = leak_guard);

struct thing {
    char name[4];
    int64_t made_ms, ended_ms;
    bool is_old;
};

static const struct reply_field FIELDS[] = {
    REPLY_FIELD("name", value_chars, thing, name),
    REPLY_FIELD("made", value_time, thing, made_ms),
    REPLY_FIELD_OR_NONE("ended", value_count, thing, ended_ms),
    REPLY_FIELD_OR_NONE("old", value_flag, thing, is_old),
};

/* pairs: "name", "value", …, NULL */
static bool read_pairs(const char *const *pairs, struct thing *ret_thing)
{
    struct redis_reply values[16];
    const struct redis_reply *items[16];
    size_t count = 0;

    for (; pairs[count]; count++) {
        values[count] = (struct redis_reply){.type = REPLY_STRING, .text = text_of(pairs[count])};
        items[count] = &values[count];
    }
    const struct redis_reply reply = {.type = REPLY_ARRAY, .count = count, .items = items};
    return REPLY_RECORD(&reply, FIELDS, ret_thing);
}

Test(reply_record, fields_have_any_order_and_unknown_ones_are_skipped)
{
    struct thing thing = {.ended_ms = 7, .is_old = true};

    cr_assert(read_pairs((const char *[]){"made", "5", "colour", "name", "name", "abc", "old", "0", NULL}, &thing));
    cr_expect_str_eq(thing.name, "abc");
    cr_expect_eq(thing.made_ms, 5);
    cr_expect_eq(thing.ended_ms, 7); /* kept */
    cr_expect(!thing.is_old);
}

Test(reply_record, malformed)
{
    static const char *const CASES[][9] = {
        {NULL},
        {"name", "abc"},                               /* made is missing */
        {"made", "5"},                                 /* name is missing */
        {"name", "abcd", "made", "5"},                 /* too long */
        {"name", "abc", "made", "0"},                  /* no time */
        {"name", "abc", "made", "5", "ended", "-1"},   /* below 0 */
        {"name", "abc", "made", "5", "ended", "soon"}, /* no number */
        {"name", "abc", "made"},                       /* no value */
        {"made", "5", "x", "name", "abc"},             /* a value is no name */
    };
    const struct redis_reply text = {.type = REPLY_STRING, .text = TEXT("name")};
    struct thing thing = {0};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_expect(!read_pairs(CASES[i], &thing), "case %zu", i);
    cr_expect(!REPLY_RECORD(NULL, FIELDS, &thing));
    cr_expect(!REPLY_RECORD(&text, FIELDS, &thing));
    cr_expect(!reply_record(&text, NULL, 0, &thing));
}

Test(reply_record, bytes_have_their_length)
{
    uint8_t bytes[3] = {0};
    const struct redis_reply right = {.type = REPLY_STRING, .text = {"a\0b", 3}},
                             wrong = {.type = REPLY_STRING, .text = {"ab", 2}};

    cr_expect(value_bytes(&right, bytes, sizeof bytes));
    cr_expect_arr_eq(bytes, "a\0b", 3);
    cr_expect(!value_bytes(&wrong, bytes, sizeof bytes));
}
