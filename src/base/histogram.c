#include "base/histogram.h"

#include <inttypes.h>
#include <string.h>

#define US(n) ((n)*UINT64_C(1000))
#define MS(n) ((n)*UINT64_C(1000000))
#define S(n) ((n)*UINT64_C(1000000000))

/* X(bound in ns, the same in seconds) */
#define BOUNDS_TABLE(X)   \
    X(US(50), "0.00005")  \
    X(US(100), "0.0001")  \
    X(US(250), "0.00025") \
    X(US(500), "0.0005")  \
    X(MS(1), "0.001")     \
    X(US(2500), "0.0025") \
    X(MS(5), "0.005")     \
    X(MS(10), "0.01")     \
    X(MS(25), "0.025")    \
    X(MS(50), "0.05")     \
    X(MS(100), "0.1")     \
    X(MS(250), "0.25")    \
    X(MS(500), "0.5")     \
    X(S(1), "1")          \
    X(MS(2500), "2.5")    \
    X(S(5), "5")          \
    X(S(10), "10")

const uint64_t histogram_bounds_ns[HISTOGRAM_BOUNDS] = {
#define BOUND_NS(ns, text) ns,
    BOUNDS_TABLE(BOUND_NS)
#undef BOUND_NS
};
static const char *const bound_texts[HISTOGRAM_BOUNDS + 1] = {
#define BOUND_TEXT(ns, text) text,
    BOUNDS_TABLE(BOUND_TEXT) "+Inf"
#undef BOUND_TEXT
};

struct histogram histograms[HISTOGRAM_COUNT];

static const struct row {
    const char *name, *labels, *help;
} rows[HISTOGRAM_COUNT] = {
#define HISTOGRAM_ROW(id, name, labels, help) [id] = {name, labels, help},
    HISTOGRAMS_TABLE(HISTOGRAM_ROW)
#undef HISTOGRAM_ROW
};

int64_t histogram_count(enum histogram_row h)
{
    int64_t count = 0;

    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        count += histograms[h].counts[i];
    return count;
}

uint64_t histogram_quantile_ns(enum histogram_row h, unsigned percent)
{
    int64_t count = histogram_count(h), wanted = (count * (int64_t)percent + 99) / 100, so_far = 0;

    if (count == 0)
        return 0;
    for (size_t i = 0; i < HISTOGRAM_BOUNDS; i++) {
        so_far += histograms[h].counts[i];
        if (so_far >= wanted)
            return histogram_bounds_ns[i];
    }
    return UINT64_MAX;
}

/* The sum and the number of observations, whose labels have braces of their own. */
static void print_totals(struct buf *out, const struct row *row, const struct histogram *histogram, int64_t count)
{
    const char *open = row->labels[0] ? "{" : "", *close = row->labels[0] ? "}" : "";

    buf_printf(out, "%s_sum%s%s%s %" PRIu64 ".%09" PRIu64 "\n", row->name, open, row->labels, close,
               histogram->sum_ns / S(1), histogram->sum_ns % S(1));
    buf_printf(out, "%s_count%s%s%s %" PRId64 "\n", row->name, open, row->labels, close, count);
}

static void print_histogram(struct buf *out, const struct row *row, const struct histogram *histogram)
{
    const char *comma = row->labels[0] ? "," : "";
    int64_t count = 0;

    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        count += histogram->counts[i];
        buf_printf(out, "%s_bucket{%s%sle=\"%s\"} %" PRId64 "\n", row->name, row->labels, comma, bound_texts[i], count);
    }
    print_totals(out, row, histogram, count);
}

void histograms_print(struct buf *out)
{
    for (size_t i = 0; i < HISTOGRAM_COUNT; i++) {
        if (i == 0 || strcmp(rows[i - 1].name, rows[i].name) != 0)
            buf_printf(out, "# HELP %s %s\n# TYPE %s histogram\n", rows[i].name, rows[i].help, rows[i].name);
        print_histogram(out, &rows[i], &histograms[i]);
    }
}
