#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/metrics.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIME "2026-01-31T12:00:00.000Z"

static int reader = -1;
static char line[8192];

static int64_t noon(void)
{
    return 1769860800000;
}

static void replace_stderr(int fd)
{
    cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    close(fd);
}

static void catch_stderr(void)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    replace_stderr(ends[1]);
    reader = ends[0];
    cr_assert_neq(fcntl(reader, F_SETFL, O_NONBLOCK), -1);
    clock_replace_wall_for_test(noon);
    metric_values[METRIC_LOG_DROPPED] = 0;
}

/* Returns what was logged since the last call. */
static const char *logged(void)
{
    ssize_t len = read(reader, line, sizeof line - 1);
    line[len > 0 ? len : 0] = '\0';
    return line;
}

TestSuite(log, .init = catch_stderr, .fini = leak_guard);

Test(log, logfmt_line)
{
    LOG(LOG_INFO, "node serves", log_str("address", "127.0.0.1:80"), log_int("pid", -7));
    cr_assert_str_eq(logged(), "time=" TIME " level=info message=\"node serves\" address=127.0.0.1:80 pid=-7\n");
    LOG(LOG_ERROR, "stopped", log_text("why", TEXT("signal")));
    cr_assert_str_eq(logged(), "time=" TIME " level=error message=stopped why=signal\n");
}

Test(log, an_empty_field_may_be_left_out)
{
    LOG(LOG_INFO, "m", log_given("a", TEXT("1")), log_given("b", TEXT("")), log_text("c", TEXT("")),
        log_given("d", TEXT("4")));
    cr_assert_str_eq(logged(), "time=" TIME " level=info message=m a=1 c=\"\" d=4\n");
    LOG(LOG_INFO, "m", log_given("b", (struct text){0}));
    cr_assert_str_eq(logged(), "time=" TIME " level=info message=m\n");
}

Test(log, json_line)
{
    log_configure(LOG_DEBUG, LOG_JSON);
    LOG(LOG_DEBUG, "node serves", log_str("address", "[::1]:80"), log_int("pid", 7));
    cr_assert_str_eq(logged(), "{\"time\":\"" TIME "\",\"level\":\"debug\",\"message\":\"node serves\","
                               "\"address\":\"[::1]:80\",\"pid\":7}\n");
}

Test(log, logfmt_quotes_where_needed)
{
    static const struct {
        struct text value;
        const char *shown;
    } cases[] = {
        {TEXT("a-b_c/d:1,{}"), "a-b_c/d:1,{}"},
        {TEXT(""), "\"\""},
        {{NULL, 0}, "\"\""},
        {TEXT("a b"), "\"a b\""},
        {TEXT("a=b"), "\"a=b\""},
        {TEXT("a\"b"), "\"a\\\"b\""},
        {TEXT("a\\b"), "\"a\\\\b\""},
        {TEXT("a\r\nlevel=error"), "\"a\\r\\nlevel=error\""},
        {TEXT("\x1b[2J"), "\"\\u001b[2J\""},
        {TEXT("\xc2\x9b"
              "2J"),
         "\"\\u009b2J\""},
        {TEXT("a\0b"), "\"a\\u0000b\""},
        {TEXT("\xc3\xa4"), "\"\xc3\xa4\""},
        {TEXT("\xff"), "\"\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        LOG(LOG_WARN, "x", log_text("v", cases[i].value));
        const char *shown = strstr(logged(), " v=");
        cr_assert_not_null(shown, "case %zu", i);
        cr_expect_eq(strlen(shown), strlen(cases[i].shown) + 4, "case %zu", i);
        cr_expect_eq(strncmp(shown + 3, cases[i].shown, strlen(cases[i].shown)), 0, "case %zu: %s", i, shown);
    }
}

Test(log, below_the_threshold_nothing_is_written)
{
    log_configure(LOG_WARN, LOG_LOGFMT);
    LOG(LOG_INFO, "x", log_int("v", 1));
    cr_assert_str_eq(logged(), "");
    LOG(LOG_WARN, "x", log_int("v", 1));
    cr_assert_str_neq(logged(), "");
}

Test(log, a_long_value_is_cut_between_code_points)
{
    char value[3000];
    for (size_t i = 0; i < sizeof value; i += 3)
        memcpy(value + i, "\xe2\x82\xac", 3);
    LOG(LOG_INFO, "x", log_text("v", (struct text){value, sizeof value}), log_int("after", 1));
    const char *shown = strstr(logged(), "v=\"") + 3;
    const char *end = strchr(shown, '"');
    cr_assert_eq(end - shown, 1023);
    cr_assert_str_eq(end, "\" after=1\n");
}

static void log_too_much(void)
{
    char escaped[1000];
    memset(escaped, '\x01', sizeof escaped);
    struct text value = {escaped, 600};
    LOG(LOG_INFO, "x", log_text("a", value), log_text("b", value), log_int("c", 1));
}

Test(log, a_line_that_is_too_long_says_that_it_was_cut)
{
    log_too_much();
    const char *shown = logged();
    size_t len = strlen(shown);
    cr_assert_leq(len, 4096);
    cr_assert_not_null(strstr(shown, " a=\"\\u0001"));
    cr_assert_null(strstr(shown, " b="));
    cr_assert_str_eq(shown + len - strlen("\" cut=true\n"), "\" cut=true\n");

    log_configure(LOG_INFO, LOG_JSON);
    log_too_much();
    len = strlen(logged());
    struct json *document = json_parse_object((struct text){line, len}, NULL);
    cr_assert_not_null(document, "%s", line);
    cr_assert(text_equal(json_text(json_member(document, "cut")), TEXT("true")));
    json_free(document);
}

static void log_and_expect_drop(void)
{
    errno = EBADMSG;
    LOG(LOG_INFO, "x", log_int("v", 1));
    cr_assert_eq(errno, EBADMSG);
    cr_assert_eq(metric_values[METRIC_LOG_DROPPED], 1);
}

/* A blocking pipe that nobody reads: if the line were written anyway, this test would never end. */
Test(log, a_full_pipe_drops_the_line, .timeout = TEST_WITHIN_S)
{
    cr_assert_neq(fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK), -1);
    while (write(STDERR_FILENO, line, sizeof line) > 0)
        continue;
    cr_assert_neq(fcntl(STDERR_FILENO, F_SETFL, 0), -1);
    log_and_expect_drop();
    cr_assert_eq(read(reader, line, sizeof line), (ssize_t)sizeof line);
    LOG(LOG_INFO, "x", log_int("v", 2));
    cr_assert_eq(metric_values[METRIC_LOG_DROPPED], 1, "there is room again");
}

/* SIGPIPE would end the test. */
Test(log, a_pipe_without_reader_drops_the_line)
{
    close(reader);
    log_and_expect_drop();
}

Test(log, a_closed_stderr_drops_the_line)
{
    close(STDERR_FILENO);
    log_and_expect_drop();
}

Test(log, a_full_device_drops_the_line)
{
    replace_stderr(open("/dev/full", O_WRONLY));
    log_and_expect_drop();
}

Test(log, a_socket_takes_lines_until_it_is_full_or_gone, .timeout = TEST_WITHIN_S)
{
    int ends[2];
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    replace_stderr(ends[0]);
    LOG(LOG_INFO, "x", log_int("v", 1));
    cr_assert_gt(read(ends[1], line, sizeof line), 0);
    while (send(STDERR_FILENO, line, sizeof line, MSG_DONTWAIT) > 0)
        continue;
    log_and_expect_drop();
    close(ends[1]);
    LOG(LOG_INFO, "x", log_int("v", 1));
    cr_assert_eq(metric_values[METRIC_LOG_DROPPED], 2);
}

Test(log, a_pause_counts_what_it_keeps_back)
{
    struct log_pause pause = {0};

    cr_assert(log_pause_is_over(&pause, 7, 100));
    cr_assert_eq(pause.suppressed, 0);
    cr_assert_not(log_pause_is_over(&pause, 7, 100));
    cr_assert_not(log_pause_is_over(&pause, 106, 100));
    cr_assert(log_pause_is_over(&pause, 107, 100));
    cr_assert_eq(pause.suppressed, 2);
    cr_assert(log_pause_is_over(&pause, 207, 100));
    cr_assert_eq(pause.suppressed, 0);
}
