#include "auth/revocation_log.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY "key_01jd0000000000000000000000"
#define DEVICE "dev_01jd0000000000000000000001"
#define ACCOUNT "acct_01jd0000000000000000000002"
#define TIME "2026-01-31T12:00:00.000Z"
#define KEY_LINE TIME " " KEY " " ACCOUNT "\n"

static char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];
static char why_storage[512];
static struct buf why;
static const struct key_record REVOKED = {.id = {KEY}, .account = {ACCOUNT}, .revoked_ms = 1769860800000};

static void begin(void)
{
    folder_make(folder);
    snprintf(path, sizeof path, "%.180s/revocations", folder);
    buf_init_fixed(&why, why_storage, sizeof why_storage);
}

static void end(void)
{
    folder_remove(folder);
    leak_guard();
}

TestSuite(revocation_log, .init = begin, .fini = end);

static struct revocation_log *open_log(const char *which)
{
    struct revocation_log *log = revocation_log_open(which, &why);

    cr_assert(log, "%.*s", TEXT_ARG(buf_text(&why)));
    return log;
}

static void expect_content(const char *which, const char *expected)
{
    char *content = file_read(which);

    cr_expect_str_eq(content, expected);
    free(content);
}

static void append_once(const char *expected)
{
    struct revocation_log *log = open_log(path);

    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    revocation_log_close(log);
    expect_content(path, expected);
}

Test(revocation_log, has_a_line_for_each_revocation)
{
    struct revocation_log *log = open_log(path);
    struct key_record device = REVOKED;
    struct stat about;

    cr_assert_eq(stat(path, &about), 0);
    cr_expect_eq(about.st_mode & 07777, 0600);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    expect_content(path, KEY_LINE);
    snprintf(device.id.text, sizeof device.id.text, "%s", DEVICE);
    cr_expect_eq(revocation_log_append(log, &device, TEXT("")), 0);
    expect_content(path, KEY_LINE TIME " " DEVICE " " ACCOUNT "\n");
    revocation_log_close(log);
    revocation_log_close(NULL);
}

Test(revocation_log, goes_on_where_it_ended)
{
    append_once(KEY_LINE);
    append_once(KEY_LINE KEY_LINE);
}

Test(revocation_log, ends_a_line_that_a_crash_tore)
{
    file_write(path, KEY_LINE TIME " key_01j");
    append_once(KEY_LINE TIME " key_01j\n" KEY_LINE);
    append_once(KEY_LINE TIME " key_01j\n" KEY_LINE KEY_LINE);
}

Test(revocation_log, tells_that_the_disk_is_full)
{
    struct revocation_log *log = open_log("/dev/full");

    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), ENOSPC);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), ENOSPC);
    revocation_log_close(log);
}

Test(revocation_log, does_not_wait_for_a_pipe_that_nobody_reads)
{
    unsigned lines = 0;
    int error;

    cr_assert_eq(mkfifo(path, 0600), 0);
    struct revocation_log *log = open_log(path);
    while ((error = revocation_log_append(log, &REVOKED, TEXT(""))) == 0)
        lines++;
    cr_expect_eq(error, EAGAIN);
    cr_expect_gt(lines, 10);
    revocation_log_close(log);
}

Test(revocation_log, goes_on_at_its_path_after_it_was_moved_away)
{
    struct revocation_log *log = open_log(path);
    char moved[PROCESS_PATH_BYTES + 16];

    snprintf(moved, sizeof moved, "%.180s/revocations.1", folder);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    cr_assert_eq(rename(path, moved), 0);
    revocation_log_look(log);
    expect_content(path, "");
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    revocation_log_close(log);
    expect_content(moved, KEY_LINE);
    expect_content(path, KEY_LINE);
}

Test(revocation_log, what_cannot_be_written_waits)
{
    struct revocation_log *log = open_log(path);
    char moved[PROCESS_PATH_BYTES + 16];

    snprintf(moved, sizeof moved, "%.180s/revocations.1", folder);
    cr_assert_eq(rename(path, moved), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), EISDIR);
    cr_expect_not_null(strstr(revocation_log_trouble(log), "Is a directory"));
    cr_assert_eq(rmdir(path), 0);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    cr_expect_null(revocation_log_trouble(log));
    revocation_log_close(log);
    expect_content(path, KEY_LINE KEY_LINE);
    expect_content(moved, "");
}

/* Beyond its memory, lines are only counted; those in it are still written. */
Test(revocation_log, waits_with_bounded_memory)
{
    enum { LINES = 20000 };
    struct revocation_log *log = open_log(path);
    struct stat about;

    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    for (size_t i = 0; i < LINES; i++)
        cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), EISDIR);
    cr_expect_eq(metric_values[METRIC_REVOCATION_LOG_UNWRITTEN], LINES);
    cr_assert_eq(rmdir(path), 0);
    cr_expect_eq(revocation_log_append(log, &REVOKED, TEXT("")), 0);
    cr_assert_eq(stat(path, &about), 0);
    off_t written = about.st_size / (off_t)(sizeof KEY_LINE - 1);
    cr_expect_eq(metric_values[METRIC_REVOCATION_LOG_UNWRITTEN], LINES + 1 - written);
    cr_expect_gt(written, 8000);
    cr_expect_leq(about.st_size, 1024 * 1024 + (off_t)sizeof KEY_LINE);
    revocation_log_close(log);
}

Test(revocation_log, needs_a_file_that_can_be_opened)
{
    snprintf(path, sizeof path, "%.180s/missing/revocations", folder);
    cr_assert_null(revocation_log_open(path, &why));
    cr_expect(memmem(why.ptr, why.len, "missing/revocations: No such file", 33), "%.*s", TEXT_ARG(buf_text(&why)));
}

Test(revocation_log, lines_are_read)
{
    static const struct {
        const char *line, *id; /* NULL: unreadable */
    } CASES[] = {
        {TIME " " KEY " " ACCOUNT, KEY},
        {TIME " " DEVICE " " ACCOUNT, DEVICE},
        {TIME " " KEY " acct_01j", KEY},
        {TIME " " KEY, KEY},
        {TIME " key_01jd000000000000000000000", NULL},
        {TIME " key_01jd00000000000000000000000", NULL},
        {TIME " key_01JD0000000000000000000000", NULL},
        {TIME " " ACCOUNT " " KEY, NULL},
        {TIME "  " KEY, NULL},
        {TIME " ", NULL},
        {TIME, NULL},
        {"2026-01-31T12:00", NULL},
        {KEY, NULL},
        {KEY " " ACCOUNT, NULL},
        {" " KEY " " ACCOUNT, NULL},
        {"2026-01-31T12:00:00Z " KEY " " ACCOUNT, NULL},
        {"2026-01-31T12:00:00.000+ " KEY " " ACCOUNT, NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct revocation_line line;
        bool is_read = revocation_log_read(text_of(CASES[i].line), &line);

        cr_expect_eq(is_read, CASES[i].id != NULL, "%s", CASES[i].line);
        if (!is_read || !CASES[i].id)
            continue;
        cr_expect_str_eq(line.key.text, CASES[i].id);
        cr_expect_eq(line.what, REVOCATION_DONE);
        cr_expect_eq(line.at_ms, REVOKED.revoked_ms);
    }
}

#define LATER "2027-02-28T12:00:00.000Z"

Test(revocation_log, has_a_line_for_what_is_scheduled_and_for_what_is_withdrawn)
{
    struct revocation_log *log = open_log(path);
    struct key_record key = REVOKED;

    key.revoked_ms = 0;
    cr_assert(clock_read_rfc3339(TEXT(LATER), &key.ends_ms));
    cr_expect_eq(revocation_log_append_end(log, &key, REVOKED.revoked_ms, TEXT("")), 0);
    key.ends_ms = 0;
    cr_expect_eq(revocation_log_append_end(log, &key, REVOKED.revoked_ms, TEXT("")), 0);
    expect_content(path, TIME " scheduled " KEY " " ACCOUNT " " LATER "\n" TIME " withdrawn " KEY " " ACCOUNT "\n");
    revocation_log_close(log);
}

/* A line that lacks its time says nothing: to revoke the key at once would be too soon. */
Test(revocation_log, lines_about_schedules_are_read_whole)
{
    static const char WHOLE[] = TIME " scheduled " KEY " " ACCOUNT " " LATER;
    struct revocation_line line;

    cr_assert(revocation_log_read(text_of(WHOLE), &line));
    cr_expect_eq(line.what, REVOCATION_SCHEDULED);
    cr_expect_str_eq(line.key.text, KEY);
    cr_expect_eq(line.at_ms, REVOKED.revoked_ms);
    cr_expect_eq(line.ends_ms, 1803816000000);
    for (size_t len = 0; len < sizeof WHOLE - 1; len++)
        cr_expect_not(revocation_log_read((struct text){WHOLE, len}, &line), "%zu", len);
    cr_assert(revocation_log_read(TEXT(TIME " withdrawn " KEY " " ACCOUNT), &line));
    cr_expect_eq(line.what, REVOCATION_WITHDRAWN);
    cr_expect_eq(line.ends_ms, 0);
    cr_expect_not(revocation_log_read(TEXT(TIME " withdrawn " ACCOUNT), &line));
    cr_expect_not(revocation_log_read(TEXT(TIME " postponed " KEY " " ACCOUNT), &line));
}

#define STORE "4f1c00000000000000000000000000ab"

/* Nodes of 0.3 read such lines too: what follows the account is ignored there. */
Test(revocation_log, lines_say_to_which_store_they_belong)
{
    struct revocation_log *log = open_log(path);
    struct key_record key = REVOKED;
    struct revocation_line line;

    cr_expect_eq(revocation_log_append(log, &key, TEXT(STORE)), 0);
    key.revoked_ms = 0;
    cr_assert(clock_read_rfc3339(TEXT(LATER), &key.ends_ms));
    cr_expect_eq(revocation_log_append_end(log, &key, REVOKED.revoked_ms, TEXT(STORE)), 0);
    key.ends_ms = 0;
    cr_expect_eq(revocation_log_append_end(log, &key, REVOKED.revoked_ms, TEXT(STORE)), 0);
    expect_content(path, TIME " " KEY " " ACCOUNT " store=" STORE "\n" TIME " scheduled " KEY " " ACCOUNT " " LATER
                              " store=" STORE "\n" TIME " withdrawn " KEY " " ACCOUNT " store=" STORE "\n");
    revocation_log_close(log);

    cr_assert(revocation_log_read(TEXT(TIME " " KEY " " ACCOUNT " store=" STORE), &line));
    cr_expect_str_eq(line.account.text, ACCOUNT);
    cr_expect(text_equal(line.store, TEXT(STORE)));
    cr_assert(revocation_log_read(TEXT(TIME " scheduled " KEY " " ACCOUNT " " LATER " store=" STORE), &line));
    cr_expect(text_equal(line.store, TEXT(STORE)));
    cr_expect_eq(line.ends_ms, 1803816000000);
    cr_assert(revocation_log_read(TEXT(TIME " " KEY " " ACCOUNT), &line));
    cr_expect_eq(line.store.len, 0);
    cr_expect_str_eq(line.account.text, ACCOUNT);
    cr_assert(revocation_log_read(TEXT(TIME " " KEY " acct_01j"), &line));
    cr_expect_str_empty(line.account.text);
}
