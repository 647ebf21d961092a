#include "base/tail.h"

#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];

static void begin(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%.180s/lines", folder);
}

static void end(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(tail, .init = begin, .fini = end);

/* lines: separated by '|', the last one first. */
static void expect_lines(const char *content, const char *lines)
{
    char got[256] = "";
    struct text line;
    struct tail tail;
    size_t len = 0;
    int error;

    file_write(path, content);
    cr_assert_eq(tail_open(&tail, path), 0);
    while (tail_next(&tail, &line, &error))
        len += (size_t)snprintf(got + len, sizeof got - len, "%.*s|", TEXT_ARG(line));
    cr_expect_eq(error, 0);
    cr_expect_str_eq(got, lines, "%s", content);
    tail_close(&tail);
}

Test(tail, reads_lines_from_the_last_to_the_first)
{
    expect_lines("", "");
    expect_lines("a", "a|");
    expect_lines("a\n", "a|");
    expect_lines("a\nbc\ndef\n", "def|bc|a|");
    expect_lines("a\nbc\nde", "de|bc|a|");
    expect_lines("a\n\n\nb\n", "b|||a|");
}

enum { LINES = 40000, LINE_BYTES = 64 };

/* Wherever a piece begins. */
Test(tail, reads_a_long_file_in_pieces)
{
    struct text line;
    struct tail tail;
    char expected[LINE_BYTES];
    int error, count = LINES;
    FILE *file = fopen(path, "w");

    cr_assert(file);
    for (int i = 0; i < LINES; i++)
        fprintf(file, "%.*s%d\n", i % 41, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i);
    fclose(file);
    cr_assert_eq(tail_open(&tail, path), 0);
    while (tail_next(&tail, &line, &error)) {
        count--;
        snprintf(expected, sizeof expected, "%.*s%d", count % 41, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", count);
        cr_assert(text_equal(line, text_of(expected)), "%d: %.*s", count, TEXT_ARG(line));
    }
    cr_expect_eq(count, 0);
    tail_close(&tail);
}

Test(tail, leaves_out_what_is_no_line)
{
    char *much = malloc(3 * TAIL_LINE_MAX_BYTES);
    struct text line;
    struct tail tail;
    int error;

    cr_assert(much);
    memset(much, 'x', 3 * TAIL_LINE_MAX_BYTES);
    for (int is_torn = 0; is_torn < 2; is_torn++) {
        FILE *file = fopen(path, "w");

        fputs("first\n", file);
        fwrite(much, 1, 3 * TAIL_LINE_MAX_BYTES, file);
        fputs(is_torn ? "" : "\nlast\n", file);
        fclose(file);
        cr_assert_eq(tail_open(&tail, path), 0);
        if (!is_torn) {
            cr_assert(tail_next(&tail, &line, &error));
            cr_expect(text_equal(line, TEXT("last")));
        }
        cr_assert(tail_next(&tail, &line, &error));
        cr_expect(text_equal(line, TEXT("first")));
        cr_expect_not(tail_next(&tail, &line, &error));
        cr_expect_eq(tail.too_long, 1);
        tail_close(&tail);
    }
    free(much);
}

Test(tail, tells_that_a_file_was_cut_meanwhile)
{
    struct text line;
    struct tail tail;
    int error;

    file_write(path, "a\nb\n");
    cr_assert_eq(tail_open(&tail, path), 0);
    cr_assert_eq(truncate(path, 0), 0);
    cr_expect_not(tail_next(&tail, &line, &error));
    cr_expect_eq(error, EIO);
    tail_close(&tail);
}

Test(tail, reads_regular_files_alone)
{
    struct tail tail;

    cr_expect_eq(tail_open(&tail, path), ENOENT);
    tail_close(&tail);
    cr_expect_eq(tail_open(&tail, folder), EINVAL);
    tail_close(&tail);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(tail_open(&tail, path), EINVAL);
    tail_close(&tail);
    cr_expect_eq(tail_open(&tail, "/dev/zero"), EINVAL);
    tail_close(&tail);
}
