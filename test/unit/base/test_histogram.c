#include "base/histogram.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(histogram, .fini = leak_guard);

static struct buf out;

static void print(void)
{
    buf_init(&out, 1 << 20);
    histograms_print(&out);
    cr_assert_not(out.failed);
    buf_append_char(&out, '\0');
}

static void expect_line(const char *line)
{
    cr_expect_not_null(strstr(out.ptr, line), "%s", line);
}

/* A bucket includes its bound. */
Test(histogram, durations_fall_into_their_buckets)
{
    static const struct {
        uint64_t took_ns;
        size_t bucket;
    } CASES[] = {
        {0, 0},
        {50 * 1000, 0},
        {50 * 1000 + 1, 1},
        {100 * 1000, 1},
        {2500 * 1000, 5},
        {2500 * 1000 + 1, 6},
        {UINT64_C(10000000000), HISTOGRAM_BOUNDS - 1},
        {UINT64_C(10000000001), HISTOGRAM_BOUNDS},
        {UINT64_C(3600000000000), HISTOGRAM_BOUNDS},
    };
    int64_t wanted[HISTOGRAM_BOUNDS + 1] = {0};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        histogram_observe(HISTOGRAM_BARRIER, CASES[i].took_ns);
        wanted[CASES[i].bucket]++;
        cr_expect_arr_eq(histograms[HISTOGRAM_BARRIER].counts, wanted, sizeof wanted, "case %zu", i);
    }
    cr_expect_eq(histogram_count(HISTOGRAM_BARRIER), 9);
    cr_expect_eq(histogram_count(HISTOGRAM_LOOP_LAG), 0);
}

Test(histogram, bounds_rise_from_50_us_to_10_s)
{
    cr_expect_eq(histogram_bounds_ns[0], 50 * 1000);
    cr_expect_eq(histogram_bounds_ns[HISTOGRAM_BOUNDS - 1], UINT64_C(10000000000));
    for (size_t i = 1; i < HISTOGRAM_BOUNDS; i++)
        cr_expect_gt(histogram_bounds_ns[i], histogram_bounds_ns[i - 1]);
}

/* Each bucket counts the smaller ones too, and its printed bound is the one that is compared. */
Test(histogram, prints_cumulated_buckets_sum_and_count)
{
    histogram_observe(HISTOGRAM_CHECK_REVOKED, 60 * 1000);
    histogram_observe(HISTOGRAM_CHECK_REVOKED, 1500 * 1000);
    histogram_observe(HISTOGRAM_CHECK_REVOKED, UINT64_C(11000000007));
    print();
    expect_line("# TYPE chatelaine_check_duration_seconds histogram\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"0.00005\"} 0\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"0.0001\"} 1\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"0.001\"} 1\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"0.0025\"} 2\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"10\"} 2\n");
    expect_line("\nchatelaine_check_duration_seconds_bucket{result=\"revoked\",le=\"+Inf\"} 3\n");
    expect_line("\nchatelaine_check_duration_seconds_sum{result=\"revoked\"} 11.001560007\n");
    expect_line("\nchatelaine_check_duration_seconds_count{result=\"revoked\"} 3\n");
    expect_line("\nchatelaine_barrier_duration_seconds_bucket{le=\"+Inf\"} 0\n");
    expect_line("\nchatelaine_barrier_duration_seconds_sum 0.000000000\n");
    buf_finish(&out);
}

Test(histogram, printed_bounds_are_those_that_are_compared)
{
    struct text rest, line, bound;
    char seconds[32];
    size_t bucket = 0;

    print();
    rest = text_of(strstr(out.ptr, "chatelaine_loop_lag_seconds_bucket"));
    for (; bucket < HISTOGRAM_BOUNDS && text_next(&rest, '\n', &line); bucket++) {
        cr_assert(text_next(&line, '"', &bound) && text_next(&line, '"', &bound));
        snprintf(seconds, sizeof seconds, "%.9f", (double)histogram_bounds_ns[bucket] / 1e9);
        cr_expect_eq(strncmp(seconds, bound.ptr, bound.len), 0, "%.*s is not %s", TEXT_ARG(bound), seconds);
        cr_expect_eq(strspn(seconds + bound.len, ".0"), strlen(seconds) - bound.len, "%.*s is not %s", TEXT_ARG(bound),
                     seconds);
    }
    cr_expect_eq(bucket, (size_t)HISTOGRAM_BOUNDS);
    buf_finish(&out);
}

Test(histogram, quantiles_are_bounds_of_buckets)
{
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 99), 0, "nothing was observed");
    for (int i = 0; i < 99; i++)
        histogram_observe(HISTOGRAM_BARRIER, 1500000);
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 99), 2500000);
    histogram_observe(HISTOGRAM_BARRIER, 900000000);
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 99), 2500000, "99 of 100");
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 100), 1000000000);
    histogram_observe(HISTOGRAM_BARRIER, UINT64_C(20000000000));
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 99), 1000000000);
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 100), UINT64_MAX);
    cr_expect_eq(histogram_quantile_ns(HISTOGRAM_BARRIER, 1), 2500000);
}
