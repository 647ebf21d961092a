/* Rows of comma-separated values. */
#include "view/csv.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(csv, .fini = leak_guard);

Test(csv, cells)
{
    static const char *const CASES[][2] = {
#define CELL(cell, printed) {cell, printed},
#include "csv_cells.def"
#undef CELL
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char storage[128];
        struct buf out;
        struct csv_writer w = {.out = &out};

        buf_init_fixed(&out, storage, sizeof storage);
        csv_put(&w, text_of(CASES[i][0]));
        cr_expect(text_equal(buf_text(&out), text_of(CASES[i][1])), "%s: %.*s", CASES[i][0], TEXT_ARG(buf_text(&out)));
    }
}

Test(csv, rows)
{
    char storage[128];
    struct buf out;
    struct csv_writer w = {.out = &out};

    buf_init_fixed(&out, storage, sizeof storage);
    csv_put(&w, TEXT(""));
    csv_put(&w, TEXT("b"));
    csv_put_integer(&w, 12);
    csv_end_row(&w);
    csv_put(&w, TEXT("c"));
    csv_end_row(&w);
    cr_assert(text_equal(buf_text(&out), TEXT(",b,12\r\nc\r\n")), "%.*s", TEXT_ARG(buf_text(&out)));
}
