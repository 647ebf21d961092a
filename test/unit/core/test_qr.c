#include "core/qr.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(qr, .fini = leak_guard);

/* Reads what a terminal shows: each row of half blocks is two rows of light and dark modules. */
static size_t read_modules(struct text picture, char modules[128][128])
{
    struct text line;
    size_t rows = 0;

    while (text_next(&picture, '\n', &line) && line.len > 0) {
        size_t column = 0, start = strlen("  \x1b[97;40m"), end = line.len - strlen("\x1b[0m");

        for (size_t at = start; at < end; column++) {
            bool is_block = line.ptr[at] != ' ';
            char last = is_block ? line.ptr[at + 2] : 0;

            modules[rows][column] = !is_block || last == '\x84' ? '#' : '.';
            modules[rows + 1][column] = !is_block || last == '\x80' ? '#' : '.';
            at += is_block ? 3 : 1;
        }
        rows += 2;
    }
    return rows;
}

Test(qr, draws_a_square_with_finder_patterns_in_a_quiet_zone)
{
    static const char FINDER[] = "#######"
                                 "#.....#"
                                 "#.###.#"
                                 "#.###.#"
                                 "#.###.#"
                                 "#.....#"
                                 "#######";
    static char modules[128][128];
    struct buf out;

    buf_init(&out, 64 * 1024);
    cr_assert(qr_print("hello", &out));
    cr_assert_geq(read_modules(buf_text(&out), modules),
                  25); /* version 1 has 21 rows, with two light ones on each side */
    for (size_t i = 0; i < 25; i++) {
        cr_expect_eq(modules[0][i], '.');
        cr_expect_eq(modules[i][1], '.');
    }
    for (size_t row = 0; row < 7; row++) {
        cr_expect_arr_eq(&modules[2 + row][2], &FINDER[row * 7], 7, "row %zu, left", row);
        cr_expect_arr_eq(&modules[2 + row][16], &FINDER[row * 7], 7, "row %zu, right", row);
        cr_expect_arr_eq(&modules[16 + row][2], &FINDER[row * 7], 7, "row %zu, below", row);
    }
    buf_finish(&out);
}

Test(qr, says_when_a_text_is_too_long)
{
    static char text[4000];
    struct buf out;

    memset(text, 'a', sizeof text - 1);
    buf_init(&out, 64 * 1024);
    cr_assert_not(qr_print(text, &out));
    cr_assert_eq(out.len, 0);
    buf_finish(&out);
}

/* The same code as on a terminal, which is checked above. */
Test(qr, gives_pages_the_same_modules_as_a_terminal)
{
    static char modules[128][128];
    struct buf picture, json;
    const struct json *rows, *row;
    size_t y = 2;

    buf_init(&picture, 64 * 1024);
    buf_init(&json, 64 * 1024);
    cr_assert(qr_print("hello", &picture));
    (void)read_modules(buf_text(&picture), modules);
    struct json_writer w = {.out = &json};
    json_object_begin(&w);
    json_key(&w, "rows");
    qr_put_rows(&w, "hello");
    json_object_end(&w);
    struct json *document = json_parse_object(buf_text(&json), NULL);
    cr_assert(document);
    rows = json_member(document, "rows");
    for (row = json_first(rows); row; row = json_next(row), y++) {
        struct text modules_of_row = json_text(row);
        cr_assert_eq(modules_of_row.len, 21);
        for (size_t x = 0; x < 21; x++)
            cr_expect_eq(modules_of_row.ptr[x], modules[y][x + 2] == '#' ? '1' : '0', "row %zu, column %zu", y, x);
    }
    cr_expect_eq(y, 2 + 21);
    json_free(document);
    buf_finish(&json);
    buf_finish(&picture);
}

Test(qr, gives_pages_no_rows_of_what_is_too_long)
{
    static char text[4000];
    struct buf json;

    memset(text, 'a', sizeof text - 1);
    buf_init(&json, 64);
    qr_put_rows(&(struct json_writer){.out = &json}, text);
    cr_assert(text_equal(buf_text(&json), TEXT("[]")));
    buf_finish(&json);
}
