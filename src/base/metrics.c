#include "base/metrics.h"

#include "base/check.h"
#include "base/histogram.h"

#include <stdio.h>
#include <string.h>

struct metric_row {
    const char *type, *name, *labels, *help;
};

static const struct metric_row rows[METRIC_COUNT] = {
#define METRIC_ROW(id, type, name, labels, help) [id] = {#type, name, labels, help},
    METRICS_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

int64_t metric_values[METRIC_COUNT];

static void print_head(struct buf *out, const struct metric_row *row)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, row->type);
}

static void print_sample(struct buf *out, const struct metric_row *row, int64_t value)
{
    bool has_labels = row->labels[0] != '\0';

    buf_printf(out, "%s%s%s%s %lld\n", row->name, has_labels ? "{" : "", row->labels, has_labels ? "}" : "",
               (long long)value);
}

/* Counters by label */

static const struct by_label {
    const char *name, *label, *help;
} by_labels[METRICS_BY_LABEL_COUNT] = {
#define METRIC_ROW(id, name, label, help) [id] = {name, label, help},
    METRICS_BY_LABEL_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

static int64_t label_counts[METRICS_BY_LABEL_COUNT][METRIC_LABELS_MAX];

void metric_count_label(enum metrics_by_label metrics, size_t i)
{
    CHECK(i < METRIC_LABELS_MAX);
    label_counts[metrics][i]++;
}

void metrics_print_by_label(struct buf *out, enum metrics_by_label metrics, size_t count,
                            const char *(*value_of)(size_t i))
{
    const struct by_label *by = &by_labels[metrics];

    print_head(out, &(struct metric_row){"counter", by->name, "", by->help});
    for (size_t i = 1; i < count; i++)
        buf_printf(out, "%s{%s=\"%s\"} %lld\n", by->name, by->label, value_of(i), (long long)label_counts[metrics][i]);
}

/* Counters by user */

enum { USERS_MAX = 32, USER_MAX_BYTES = 48 };

static const struct metric_row rows_of_users[METRIC_OF_USERS_COUNT] = {
#define METRIC_ROW(id, name, help) [id] = {"counter", name, "", help},
    METRICS_OF_USERS_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

struct of_user {
    char user[USER_MAX_BYTES];
    int64_t value;
};

/* The last one counts all further users. */
static struct of_user of_users[METRIC_OF_USERS_COUNT][USERS_MAX + 1];

void metric_count_user(enum metric_of_users m, const char *user)
{
    struct of_user *entry = of_users[m], *const other = &of_users[m][USERS_MAX];
    while (entry < other && entry->value && strcmp(entry->user, user) != 0)
        entry++;
    snprintf(entry->user, sizeof entry->user, "%s", entry == other ? "other" : user);
    entry->value++;
}

static void print_of_users(struct buf *out)
{
    for (int m = 0; m < METRIC_OF_USERS_COUNT; m++) {
        print_head(out, &rows_of_users[m]);
        for (const struct of_user *entry = of_users[m]; entry <= &of_users[m][USERS_MAX]; entry++)
            if (entry->value)
                buf_printf(out, "%s{user=\"%s\"} %lld\n", rows_of_users[m].name, entry->user, (long long)entry->value);
    }
}

void metrics_print(struct buf *out, const char *version)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        if (i == 0 || strcmp(rows[i - 1].name, rows[i].name) != 0)
            print_head(out, &rows[i]);
        print_sample(out, &rows[i], metric_values[i]);
    }
    histograms_print(out);
    print_of_users(out);
    print_head(out, &(struct metric_row){"gauge", "chatelaine_build_info", "", "The running version; always 1."});
    buf_printf(out, "chatelaine_build_info{version=\"%s\"} 1\n", version);
}
