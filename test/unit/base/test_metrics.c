#include "base/metrics.h"

#include "base/clock.h"
#include "base/process_metrics.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(metrics, .fini = leak_guard);

static int count_of(struct text t, const char *needle)
{
    int count = 0;
    size_t len = strlen(needle);
    for (; t.len >= len; t = text_skip(t, 1))
        count += text_starts_with(t, text_of(needle));
    return count;
}

static void print(struct buf *out)
{
    buf_init(out, 64 * 1024);
    metrics_print(out, "1.2.3");
    cr_assert_not(out->failed);
}

Test(metrics, samples_show_their_values)
{
    metric_add(METRIC_CONNECTIONS_INTERNAL, 5);
    metric_add(METRIC_CONNECTIONS_INTERNAL, -2);
    metric_add(METRIC_CHECK_REVOKED, INT64_C(9000000000));
    struct buf out;
    print(&out);
    cr_assert_eq(count_of(buf_text(&out), "\nchatelaine_connections{listener=\"internal\"} 3\n"), 1);
    cr_assert_eq(count_of(buf_text(&out), "\nchatelaine_checks_total{result=\"revoked\"} 9000000000\n"), 1);
    cr_assert_eq(count_of(buf_text(&out), "\nchatelaine_checks_total{result=\"accepted\"} 0\n"), 1);
    cr_assert_eq(count_of(buf_text(&out), "\nchatelaine_build_info{version=\"1.2.3\"} 1\n"), 1);
    buf_finish(&out);
}

static const char *color_of(size_t i)
{
    static const char *const COLORS[] = {"none", "red", "blue"};

    return COLORS[i];
}

Test(metrics, counters_by_label_leave_out_the_first)
{
    struct buf out;

    buf_init(&out, 1024);
    metric_count_label(METRICS_REFUSALS, 0);
    for (int i = 0; i < 3; i++)
        metric_count_label(METRICS_REFUSALS, 2);
    metrics_print_by_label(&out, METRICS_REFUSALS, 3, color_of);
    cr_assert_eq(count_of(buf_text(&out), "# TYPE chatelaine_refusals_total counter\n"
                                          "chatelaine_refusals_total{code=\"red\"} 0\n"
                                          "chatelaine_refusals_total{code=\"blue\"} 3\n"),
                 1);
    cr_assert_eq(count_of(buf_text(&out), "none"), 0);
    buf_finish(&out);
}

Test(metrics, the_form_is_that_of_prometheus)
{
    struct buf out;
    print(&out);
    struct text rest = buf_text(&out), line, type_name = {0};
    char head[100];
    cr_assert_eq(out.ptr[out.len - 1], '\n');
    rest.len--;
    while (text_next(&rest, '\n', &line)) {
        struct text words = line, word;
        cr_assert(text_next(&words, ' ', &word));
        if (text_equal(word, TEXT("#"))) {
            text_next(&words, ' ', &word);
            bool is_type = text_equal(word, TEXT("TYPE"));
            cr_assert(is_type || text_equal(word, TEXT("HELP")));
            text_next(&words, ' ', &type_name);
            snprintf(head, sizeof head, "# %.*s %.*s ", TEXT_ARG(word), TEXT_ARG(type_name));
            cr_expect_eq(count_of(buf_text(&out), head), 1, "%s stands once", head);
            if (is_type)
                cr_expect(text_equal(words, TEXT("counter")) || text_equal(words, TEXT("gauge")) ||
                          text_equal(words, TEXT("histogram")));
            else
                cr_expect_gt(words.len, 10, "%s needs help", head);
        } else {
            cr_expect(text_starts_with(line, type_name), "%.*s has the name of its group", TEXT_ARG(line));
        }
    }
    buf_finish(&out);
}

Test(metrics, a_process_is_measured)
{
    int64_t files, now_s = clock_wall_ms() / 1000;
    int fd;

    process_metrics_begin();
    process_metrics_measure();
    files = metric_values[METRIC_PROCESS_FILES];
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    process_metrics_measure();
    cr_expect_eq(metric_values[METRIC_PROCESS_FILES], files + 1);
    close(fd);
    process_metrics_measure();
    cr_expect_eq(metric_values[METRIC_PROCESS_FILES], files);
    cr_expect_gt(metric_values[METRIC_PROCESS_FILES_MAX], files);
    cr_expect_gt(metric_values[METRIC_PROCESS_MEMORY], 1024 * 1024);
    cr_expect(metric_values[METRIC_PROCESS_START] >= now_s && metric_values[METRIC_PROCESS_START] <= now_s + 60);
}
