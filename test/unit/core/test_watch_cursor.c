#include "core/watch_cursor.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(watch_cursor, .fini = leak_guard);

static struct text print(const struct watch_cursor *cursor)
{
    static char storage[WATCH_CURSOR_MAX_CHARS];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    watch_cursor_print(cursor, &out);
    cr_assert(!out.failed);
    return buf_text(&out);
}

static void expect_same(const struct watch_cursor *cursor)
{
    struct watch_cursor read;

    cr_assert(watch_cursor_parse(print(cursor), &read));
    cr_assert(watch_cursor_fits(cursor, &read));
    for (unsigned i = 0; i < cursor->count; i++)
        cr_assert(log_position_equal(cursor->at[i], read.at[i]));
}

Test(watch_cursor, is_read_as_it_was_printed)
{
    static const uint64_t NUMBERS[] = {0, 1, 127, 128, 16383, 16384, 1764180000000, INT64_MAX, UINT64_MAX};
    enum { COUNT = sizeof NUMBERS / sizeof *NUMBERS };
    static const unsigned PARTITIONS[] = {1, 2, 16, PARTITIONS_MAX};

    for (size_t p = 0; p < sizeof PARTITIONS / sizeof *PARTITIONS; p++) {
        struct watch_cursor cursor = {.store = "0123456", .count = PARTITIONS[p]};

        for (unsigned i = 0; i < cursor.count; i++)
            cursor.at[i] = (struct log_position){NUMBERS[i % COUNT], NUMBERS[(i / COUNT) % COUNT]};
        expect_same(&cursor);
    }
}

Test(watch_cursor, has_room_for_the_longest)
{
    struct watch_cursor cursor = {.count = PARTITIONS_MAX};

    for (unsigned i = 0; i < PARTITIONS_MAX; i++)
        cursor.at[i] = (struct log_position){UINT64_MAX, UINT64_MAX};
    expect_same(&cursor);
}

/* Every one that differs by a character or a length is refused, or is another cursor that is printed like that. */
Test(watch_cursor, has_one_text)
{
    struct watch_cursor cursor = {.store = "0123456", .count = 2, .at = {{1764180000000, 3}, {128, 0}}}, read;
    char text[128];
    struct text printed = print(&cursor);
    size_t len = printed.len;

    memcpy(text, printed.ptr, len);
    for (size_t cut = 0; cut < len; cut++)
        cr_expect(!watch_cursor_parse((struct text){text, cut}, &read), "%zu", cut);
    text[len] = 'A';
    cr_expect(!watch_cursor_parse((struct text){text, len + 1}, &read));
    for (size_t at = 0; at < len; at++) {
        char before = text[at];

        for (int c = 0; c < 256; c++) {
            text[at] = (char)c;
            if (watch_cursor_parse((struct text){text, len}, &read))
                cr_expect(text_equal(print(&read), (struct text){text, len}), "%.*s", (int)len, text);
        }
        text[at] = before;
    }
}

/* Version 1, no store, one partition, then a number in a longer form, or too large for 64 bits. */
Test(watch_cursor, refuses_what_is_never_printed)
{
    static const char *const CASES[] = {
        "",
        "=",
        "AQAAAAAAAAAAAIAAAA",           /* 80 00, 00 */
        "AQAAAAAAAAAAAP___________wIA", /* ff*9 02, 00 */
        "AgAAAAAAAAAAAAAA",             /* version 2 */
        "AQAAAAAAAAAAAQAA",             /* two partitions, one position */
    };
    struct watch_cursor read;

    cr_assert(watch_cursor_parse(TEXT("AQAAAAAAAAAAAAAA"), &read));
    cr_assert_eq(read.count, 1);
    cr_assert(watch_cursor_parse(TEXT("AQAAAAAAAAAAAP___________wEA"), &read));
    cr_assert_eq(read.at[0].ms, UINT64_MAX);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_expect(!watch_cursor_parse(text_of(CASES[i]), &read), "%s", CASES[i]);
}

Test(watch_cursor, fits_one_store)
{
    struct watch_cursor a = {.store = "0123456", .count = 2}, b = a;

    cr_expect(watch_cursor_fits(&a, &b));
    b.count = 4;
    cr_expect(!watch_cursor_fits(&a, &b));
    b = a;
    b.store[WATCH_STORE_BYTES - 1]++;
    cr_expect(!watch_cursor_fits(&a, &b));
}

Test(watch_cursor, positions_are_those_of_redis)
{
    static const char *const BAD[] = {"", "-", "1", "1-", "-1", "01-0", "1-0-0", "1-0 ", "18446744073709551616-0"};
    struct log_position position;
    char text[LOG_POSITION_BYTES];

    cr_assert(log_position_parse(TEXT("1764180000000-12"), &position));
    log_position_print(position, text);
    cr_expect_str_eq(text, "1764180000000-12");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        cr_expect(!log_position_parse(text_of(BAD[i]), &position), "%s", BAD[i]);
}
