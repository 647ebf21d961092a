#include "config/settings_file.h"

#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16], why[2048];
static struct settings_files files;

static void make_folder(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%s/conf", folder);
}

static void end(void)
{
    settings_files_finish(&files);
    folder_remove(folder);
    leak_guard();
}

TestSuite(settings_file, .init = make_folder, .fini = end);

static bool read_paths(const char *paths)
{
    struct buf out;

    settings_files_finish(&files);
    buf_init_fixed(&out, why, sizeof why - 1);
    bool is_read = settings_files_read(&files, paths, &out);
    cr_assert_not(out.failed);
    why[out.len] = '\0';
    cr_assert_eq(is_read, out.len == 0, "sentences on failure, and only then: %s", why);
    return is_read;
}

static bool read_text(const char *text)
{
    file_write(path, text);
    return read_paths(path);
}

static void expect_row(size_t i, const char *name, const char *value, unsigned line)
{
    char where[PROCESS_PATH_BYTES + 32];

    cr_assert_gt(files.assigned.count, i);
    snprintf(where, sizeof where, "%s:%u", path, line);
    cr_expect_str_eq(files.assigned.rows[i].name, name);
    cr_expect_str_eq(files.assigned.rows[i].value, value);
    cr_expect_str_eq(files.assigned.rows[i].where, where);
}

Test(settings_file, comments_and_assignments)
{
    cr_assert(read_text("# a comment = 1\n\n  # another\nCHATELAINE_LEASE_MS=2s\n"
                        "CHATELAINE_AUDIT_LOG=\n \tCHATELAINE_PREFIX=a:b#c=d \t\nCHATELAINE_LEASE_MS=3s"),
              "%s", why);
    cr_assert_eq(files.assigned.count, 4);
    expect_row(0, "CHATELAINE_LEASE_MS", "2s", 4);
    expect_row(1, "CHATELAINE_AUDIT_LOG", "", 5);
    expect_row(2, "CHATELAINE_PREFIX", "a:b#c=d", 6);
    expect_row(3, "CHATELAINE_LEASE_MS", "3s", 7);
    cr_assert(read_text(""));
    cr_expect_eq(files.assigned.count, 0);
}

Test(settings_file, ends_of_lines_and_a_byte_order_mark_are_skipped)
{
    cr_assert(read_text("\xef\xbb\xbf"
                        "CHATELAINE_LEASE_MS=2s\r\n# x\r\n\r\nCHATELAINE_PREFIX=p\r\n"),
              "%s", why);
    cr_assert_eq(files.assigned.count, 2);
    expect_row(0, "CHATELAINE_LEASE_MS", "2s", 1);
    expect_row(1, "CHATELAINE_PREFIX", "p", 4);
}

/* As the head of chatelaine.conf has always said. */
Test(settings_file, a_value_may_be_quoted_as_a_whole)
{
    cr_assert(read_text("CHATELAINE_A='redis://:p$a b\"&c@h'\nCHATELAINE_B=\"a b'c\"\nCHATELAINE_C=''\n"), "%s", why);
    expect_row(0, "CHATELAINE_A", "redis://:p$a b\"&c@h", 1);
    expect_row(1, "CHATELAINE_B", "a b'c", 2);
    expect_row(2, "CHATELAINE_C", "", 3);
}

/* A shell, systemd and this reader would not agree on them. */
Test(settings_file, what_is_not_clear_is_refused)
{
    static const struct {
        const char *line, *why;
    } CASES[] = {
        {"export CHATELAINE_X=hidden", "write NAME=value, without export."},
        {"export\tCHATELAINE_X=hidden", "write NAME=value, without export."},
        {"CHATELAINE_X = hidden", "write NAME=value, without blanks around =."},
        {"CHATELAINE_X =hidden", "write NAME=value, without blanks around =."},
        {"CHATELAINE_X=\thidden", "write NAME=value, without blanks around =."},
        {"CHATELAINE_X=hidden # why", "CHATELAINE_X: there is text behind the value"},
        {"CHATELAINE_X=hidden hidden", "CHATELAINE_X: there is text behind the value"},
        {"CHATELAINE_X='hidden' # why", "CHATELAINE_X: the value begins with a quote and does not end with it"},
        {"CHATELAINE_X='hidden", "CHATELAINE_X: the value begins with a quote and does not end with it"},
        {"CHATELAINE_X='", "CHATELAINE_X: the value begins with a quote and does not end with it"},
        {"CHATELAINE_X='hidden'hidden'", "CHATELAINE_X: a value in quotes must not hold that quote"},
        {"CHATELAINE_X='hidden\\'", "CHATELAINE_X: a value in quotes must not hold that quote"},
        {"CHATELAINE_X=\"hidden$\"", "CHATELAINE_X: a value in quotes must not hold that quote"},
        {"CHATELAINE_X=\"hidden`\"", "CHATELAINE_X: a value in quotes must not hold that quote"},
        {"CHATELAINE_X=hid'den", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=hidden$HOME", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=hidden\\", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=hidden`x`", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=hidden;x", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=hidden&x", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X=~/hidden", "CHATELAINE_X: a value with ~ in front or with one of"},
        {"CHATELAINE_X", "this is neither a comment nor NAME=value."},
        {"[section]", "this is neither a comment nor NAME=value."},
        {"CHATELAINE-X=hidden", "in front of = stands no name of a setting."},
        {"--lease-ms=hidden", "in front of = stands no name of a setting."},
        {"=hidden", "in front of = stands no name of a setting."},
        {"CHATELAINE_X: a=hidden", "in front of = stands no name of a setting."},
        {"LEASE_MS=hidden", "LEASE_MS is no setting: only names that begin with CHATELAINE_ stand here."},
        {"chatelaine_lease_ms=hidden", "chatelaine_lease_ms is no setting"},
        {"CHATELAINE_SETTINGS=hidden", "CHATELAINE_SETTINGS names settings files"},
        {"; hidden", "a comment begins with #."},
        {"# hidden\\", "a comment must not end with a backslash"},
        {"CHATELAINE_X=hid\x01"
         "den",
         "there is a control character."},
        {"CHATELAINE_X=hidden\r#", "there is a control character."},
    };
    char text[256], begins[PROCESS_PATH_BYTES + 256];

    for (size_t i = 0; i < COUNT(CASES); i++) {
        snprintf(text, sizeof text, "CHATELAINE_FIRST=1\n%s\nCHATELAINE_LAST=1\n", CASES[i].line);
        cr_expect_not(read_text(text), "%s", CASES[i].line);
        snprintf(begins, sizeof begins, "%s:2: %s", path, CASES[i].why);
        cr_expect_eq(strncmp(why, begins, strlen(begins)), 0, "%s: %s", CASES[i].line, why);
        cr_expect_null(strchr(why, '\n'), "one sentence: %s", why);
        cr_expect_null(strstr(why, "hidden"), "a value may be secret: %s", why);
        cr_expect_eq(files.assigned.count, 2, "%s: the other lines are read", CASES[i].line);
    }
}

Test(settings_file, every_mistake_of_every_file_is_told)
{
    char other[PROCESS_PATH_BYTES + 16], paths[3 * sizeof other], expected[sizeof why];

    snprintf(other, sizeof other, "%s/other", folder);
    file_write(path, "export A=1\nCHATELAINE_A=1\n;\n");
    file_write(other, "CHATELAINE_A=2\nB\n");
    snprintf(paths, sizeof paths, "%s,%s/none,%s", path, folder, other);
    cr_assert_not(read_paths(paths));
    snprintf(expected, sizeof expected,
             "%s:1: write NAME=value, without export.\n%s:3: a comment begins with #.\n"
             "--settings: cannot open %s/none: No such file or directory.\n"
             "%s:2: this is neither a comment nor NAME=value.",
             path, path, folder, other);
    cr_expect_str_eq(why, expected);
    cr_assert_eq(files.assigned.count, 2);
    cr_expect_str_eq(files.assigned.rows[1].value, "2", "in the order of the files");
}

Test(settings_file, another_encoding_is_named)
{
    cr_assert_not(read_text("\xff\xfe"
                            "C"));
    cr_expect(strstr(why, "conf:1: this is UTF-16: save the file as UTF-8."), "%s", why);
}

Test(settings_file, has_room_for_many)
{
    struct buf text;

    buf_init(&text, 65536);
    for (int i = 0; i < 300; i++)
        buf_printf(&text, "CHATELAINE_N=%d\n", i);
    buf_append_char(&text, '\0');
    cr_assert(read_text(text.ptr), "%s", why);
    buf_finish(&text);
    cr_assert_eq(files.assigned.count, 300);
    expect_row(299, "CHATELAINE_N", "299", 300);
}
