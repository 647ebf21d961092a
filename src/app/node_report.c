#include "node_report.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/json.h"
#include "base/mem.h"
#include "config/agreement.h"
#include "base/loss.h"
#include "redis/redis_clock.h"
#include "engine/node_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A report has room for all else beside these. */
enum { TROUBLE_BYTES = 256, UNKNOWN_SETTINGS_TOLD = 2 };
enum { LOOK_MS = 1000, LOOKS_PER_REPORT = 10, US_PER_NS = 1000 };

struct node_report {
    struct node_reported about;
    uv_timer_t timer;
    char host[NODE_NAME_MAX_BYTES / 2];
    char name[NODE_NAME_MAX_BYTES];
    int64_t started_ms, lease_since_ms;
    bool has_lease, is_draining;
    char trouble[TROUBLE_BYTES]; /* the store's, as last seen */
    int64_t other_troubles;      /* the same, as count_troubles() */
    unsigned looks;              /* until the next report */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* The same after a restart, so that a node has one report. Nodes that share an address (--reuse-port) need another
 * distinction. */
static void make_name(struct node_report *report)
{
    const char *address = report->about.address;

    if (gethostname(report->host, sizeof report->host) != 0)
        report->host[0] = '\0';
    report->host[sizeof report->host - 1] = '\0';
    if (report->about.settings->reuse_port)
        snprintf(report->name, sizeof report->name, "%s %.100s #%d", report->host, address, (int)getpid());
    else
        snprintf(report->name, sizeof report->name, "%s %.100s", report->host, address);
}

static void put_losses(struct json_writer *w, const struct node_report *report)
{
    struct revocation_log *log = report->about.revocation_log;

    if (log && revocation_log_trouble(log))
        json_put_text(w, text_of(revocation_log_trouble(log)));
    for (enum loss i = 0; i < LOSS_COUNT; i++)
        if (loss_is_told(i) && LOSSES[i].told != LOSS_IF_IT_ENDS)
            json_put_text(w, text_of(LOSSES[i].sentence));
}

static void put_sentence(void *arg, struct text sentence)
{
    json_put_text(arg, sentence);
}

static void put_unknown_settings(struct json_writer *w, const struct unknown_settings *unknown)
{
    for (size_t i = 0; unknown && i < unknown->count && i < UNKNOWN_SETTINGS_TOLD; i++) {
        struct buf out = BUF_FIXED(TROUBLE_BYTES);

        unknown_setting_print(&unknown->of[i], &out);
        json_put_text(w, buf_text(&out));
    }
}

/* What others must know to judge this node. */
static void put_degraded(struct json_writer *w, const struct node_report *report)
{
    const struct node_reported *about = &report->about;

    json_key_array(w, "degraded");
    if (report->trouble[0])
        json_put_text(w, text_of(report->trouble));
    if (!report->has_lease && membership_may_cache(about->members[0]) && !report->is_draining)
        json_put_text(w, partitions_count(about->partitions) == 1
                             ? TEXT("No lease: checks read Redis.")
                             : TEXT("No lease in some partitions: their checks read Redis."));
    put_losses(w, report);
    redis_access_troubles(about->access, put_sentence, w);
    if (about->settings->unsafe_redis)
        json_put_text(w, TEXT("--unsafe-redis: Redis may lose acknowledged changes."));
    put_unknown_settings(w, about->settings->unknown);
    json_array_end(w);
}

static void put_settings(struct json_writer *w, const struct node_reported *about)
{
    json_key_object(w, "settings");
    agreement_put(w, about->settings);
    json_put_number(w, "policy", route_policy_digest(*about->policy));
    json_object_end(w);
}

/* For doctor. */
static void put_names_of_losses(struct json_writer *w)
{
    json_key_array(w, "losses");
    for (enum loss i = 0; i < LOSS_COUNT; i++)
        if (loss_is_told(i))
            json_put_text(w, text_of(LOSSES[i].name));
    json_array_end(w);
}

/* Of all partitions in their order, separated by spaces. */
static void put_memberships(struct json_writer *w, const struct node_reported *about)
{
    enum { NAMES_MAX_BYTES = PARTITIONS_MAX * (MEMBER_NAME_CHARS + 1) };
    struct buf names = BUF_FIXED(NAMES_MAX_BYTES);

    for (unsigned i = 0; i < partitions_count(about->partitions); i++)
        buf_printf(&names, "%s%s", i > 0 ? " " : "", membership_name(about->members[i])->text);
    json_put_member(w, "membership", buf_text(&names));
}

static void print(const struct node_report *report, struct buf *out)
{
    const struct node_reported *about = &report->about;
    uint64_t p99_ns = histogram_quantile_ns(HISTOGRAM_BARRIER, 99);
    int64_t ahead_ms;
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_put_member(&w, "host", text_of(report->host));
    json_put_member(&w, "address", text_of(about->address));
    json_put_member(&w, "internal_address", text_of(about->internal_address));
    json_put_member(&w, "version", TEXT(CHATELAINE_VERSION));
    json_put_number(&w, "pid", getpid());
    json_put_number(&w, "started_ms", report->started_ms);
    json_put_flag(&w, "is_draining", report->is_draining);
    put_memberships(&w, about);
    json_put_number(&w, "lease_ms", membership_lease_ms(about->members[0]));
    json_put_flag(&w, "has_lease", report->has_lease);
    json_put_number(&w, "lease_since_ms", report->lease_since_ms);
    json_put_number(&w, "revocations", histogram_count(HISTOGRAM_BARRIER));
    json_put_number(&w, "barrier_p99_us", p99_ns == UINT64_MAX ? -1 : (int64_t)(p99_ns / US_PER_NS));
    json_put_member(&w, "master_key", keyring_short_name(about->keyring, 0));
    json_put_flag(&w, "has_revocation_log", about->settings->revocation_log);
    json_put_flag(&w, "has_audit_log", about->settings->audit_log);
    put_names_of_losses(&w);
    json_key(&w, "certificates");
    node_tls_put(about->tls, &w);
    if (redis_clock_ahead(store_redis_clock(partitions_at(about->partitions, 0)), &ahead_ms))
        json_put_number(&w, "clock_ahead_ms", ahead_ms);
    put_settings(&w, about);
    json_put_number(&w, "canary_ms", about->settings->canary_interval_ms);
    put_degraded(&w, report);
    json_object_end(&w);
}

static void report_send(struct node_report *report)
{
    struct buf out = BUF_FIXED(NODE_REPORT_MAX_BYTES);

    print(report, &out);
    report->looks = LOOKS_PER_REPORT;
    if (!out.failed)
        node_store_report(partitions_at(report->about.partitions, 0), text_of(report->name), buf_text(&out));
}

static bool has_all_leases(const struct node_reported *about)
{
    uint64_t now_ns;

    for (unsigned i = 0; i < partitions_count(about->partitions); i++)
        if (!membership_has_lease(about->members[i], &now_ns))
            return false;
    return true;
}

/* If this number changes, so has what the report says about losses, the revocation log and connections to Redis. */
static int64_t count_troubles(struct revocation_log *log)
{
    int64_t count = (log && revocation_log_trouble(log)) + metric_values[METRIC_REDIS_ACCESS_REFUSED] +
                    metric_values[METRIC_REDIS_FINDERS_DOWN];

    for (enum loss i = 0; i < LOSS_COUNT; i++)
        count = 2 * count + loss_is_told(i);
    return count;
}

/* Notes what has changed since the last look. */
static bool look(struct node_report *report)
{
    bool has_lease = has_all_leases(&report->about), has_changed = false;
    int64_t troubles = count_troubles(report->about.revocation_log);
    char trouble[TROUBLE_BYTES] = "";
    struct buf all;

    buf_init_fixed(&all, trouble, sizeof trouble - 1);
    partitions_trouble(report->about.partitions, &all);
    trouble[all.len] = '\0';
    if (has_lease != report->has_lease) {
        report->has_lease = has_lease;
        report->lease_since_ms = clock_wall_ms();
        has_changed = true;
    }
    if (strcmp(trouble, report->trouble) != 0) {
        memcpy(report->trouble, trouble, sizeof trouble);
        has_changed = true;
    }
    has_changed |= troubles != report->other_troubles;
    report->other_troubles = troubles;
    return has_changed;
}

static void on_look(uv_timer_t *timer)
{
    struct node_report *report = timer->data;

    report->about.look(report->about.arg);
    if (look(report) || --report->looks == 0)
        report_send(report);
}

struct node_report *node_report_create(uv_loop_t *loop, const struct node_reported *about)
{
    struct node_report *report = mem_alloc(sizeof *report);

    *report = (struct node_report){.about = *about, .looks = 1};
    report->started_ms = report->lease_since_ms = clock_wall_ms();
    make_name(report);
    CHECK(uv_timer_init(loop, &report->timer) == 0);
    report->timer.data = report;
    CHECK(uv_timer_start(&report->timer, on_look, LOOK_MS, LOOK_MS) == 0);
    return report;
}

const char *node_report_name(const struct node_report *report)
{
    return report->name;
}

void node_report_drain(struct node_report *report)
{
    report->is_draining = true;
    report_send(report);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct node_report *report = handle->data;
    void (*closed)(void *arg) = report->closed;
    void *arg = report->closed_arg;

    free(report);
    closed(arg);
}

void node_report_close(struct node_report *report, void (*closed)(void *arg), void *arg)
{
    report->closed = closed;
    report->closed_arg = arg;
    node_store_report(partitions_at(report->about.partitions, 0), text_of(report->name), TEXT(""));
    uv_close((uv_handle_t *)&report->timer, on_timer_closed);
}
