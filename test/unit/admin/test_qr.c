#include "admin/qr.h"

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
