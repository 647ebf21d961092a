#include "lease/ending_logs.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "lease/identity.h"
#include "lease/names.h"
#include "telling_internal.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    ENOUGH = 1000, /* in a row that this Redis has */
    ERA_BYTES = 128,
};

struct comparison {
    const struct lease_settings *settings;
    struct telling *telling;
    const struct ending_logs *logs; /* NULL: none */
    char compared_era[ERA_BYTES];

    /* While it runs: */
    char era[ERA_BYTES];
    char id[STORE_ID_CHARS + 1], former[STORE_ID_CHARS + 1];
    unsigned log;
    size_t under_way; /* that are being told */
    uint64_t in_a_row, lost, unknown, compared;
    bool is_running, is_reading, is_first;
    comparison_done *done;
    void *done_arg;
    struct callback closed;
};

static void read_on(struct comparison *comparison);

struct comparison *comparison_create(const struct lease_settings *settings)
{
    struct comparison *comparison = mem_alloc(sizeof *comparison);

    comparison->settings = settings;
    comparison->telling = telling_create(settings);
    return comparison;
}

void comparison_set_logs(struct comparison *comparison, const struct ending_logs *logs)
{
    CHECK(!logs || logs->count > 0);
    comparison->logs = logs;
}

bool comparison_is_due(const struct comparison *comparison, const char *era)
{
    return comparison->logs && strcmp(comparison->compared_era, era) != 0;
}

bool comparison_is_running(const struct comparison *comparison)
{
    return comparison->is_running;
}

static void finish_close(struct comparison *comparison)
{
    const struct callback closed = comparison->closed;

    telling_destroy(comparison->telling);
    free(comparison);
    callback_run(closed);
}

void comparison_close(struct comparison *comparison, void (*closed)(void *arg), void *arg)
{
    comparison->closed = (struct callback){closed, arg};
    if (!comparison->is_reading)
        finish_close(comparison);
}

static void finish(struct comparison *comparison, bool is_done)
{
    comparison->is_running = false;
    if (is_done) {
        memcpy(comparison->compared_era, comparison->era, sizeof comparison->compared_era);
        LOG(LOG_INFO, "the node's logs were compared with Redis", log_int("revocations", (int64_t)comparison->compared),
            log_int("lost", (int64_t)comparison->lost), log_int("unknown", (int64_t)comparison->unknown),
            log_partition(comparison->settings->prefix));
    }
    comparison->done(comparison->done_arg, is_done, comparison->lost);
}

static void end_log(struct comparison *comparison)
{
    comparison->logs->end(comparison->logs->arg, comparison->log);
    comparison->log++;
    comparison->in_a_row = 0;
    comparison->is_first = true;
}

/* A key that Redis does not know was created after what came back: it says nothing about those before it. */
static void on_told(void *arg, const struct told *told)
{
    struct comparison *comparison = arg;

    comparison->lost += told->lost;
    if (!told->is_done) {
        end_log(comparison);
        finish(comparison, false);
        return;
    }
    comparison->unknown += told->unknown;
    comparison->in_a_row = told->lost > 0 ? 0 : comparison->in_a_row + comparison->under_way - told->unknown;
    if (comparison->in_a_row >= ENOUGH)
        end_log(comparison);
    read_on(comparison);
}

/* Without a place in a chain: whatever became of the chain, a revoked key stays revoked. */
static void tell(struct comparison *comparison, const struct logged_ending *endings, size_t count)
{
    struct kept_ending *list = mem_alloc(count * sizeof *list);

    for (size_t i = 0; i < count; i++)
        list[i] = (struct kept_ending){.subject = endings[i].key, .what = ENDING_REVOKED, .at_ms = endings[i].at_ms};
    comparison->under_way = count;
    comparison->compared += count;
    telling_run(comparison->telling, list, count, on_told, comparison);
}

static void on_read(void *arg, const struct logged_ending *endings, size_t count)
{
    struct comparison *comparison = arg;

    comparison->is_reading = false;
    if (comparison->closed.run) {
        finish_close(comparison);
        return;
    }
    if (count > 0) {
        tell(comparison, endings, count);
        return;
    }
    end_log(comparison);
    read_on(comparison);
}

static void read_on(struct comparison *comparison)
{
    const struct ending_logs *logs = comparison->logs;
    const struct store_names names = {text_of(comparison->id), text_of(comparison->former)};
    bool is_first = comparison->is_first;

    if (comparison->log >= logs->count) {
        finish(comparison, true);
        return;
    }
    comparison->is_first = false;
    comparison->is_reading = true;
    logs->read(logs->arg, comparison->log, &names, is_first, on_read, comparison);
}

void comparison_run(struct comparison *comparison, const char *era, const struct store_names *names,
                    comparison_done *done, void *arg)
{
    comparison->is_running = comparison->is_first = true;
    comparison->log = 0;
    comparison->in_a_row = comparison->lost = comparison->unknown = comparison->compared = 0;
    snprintf(comparison->era, sizeof comparison->era, "%s", era);
    snprintf(comparison->id, sizeof comparison->id, "%.*s", TEXT_ARG(names->id));
    snprintf(comparison->former, sizeof comparison->former, "%.*s", TEXT_ARG(names->former));
    comparison->done = done;
    comparison->done_arg = arg;
    read_on(comparison);
}
