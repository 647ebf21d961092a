#include "status_internal.h"

#include "base/json.h"
#include "engine/fitness.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct json *first_of(const struct json *report, const char *name)
{
    const struct json *list = json_member(report, name);

    return list && json_type(list) == JSON_ARRAY ? json_first(list) : NULL;
}

/* A newer node may know others; its reasons tell them. */
static void copy_losses(const struct json *report, struct status_node *node)
{
    for (const struct json *name = first_of(report, "losses"); name; name = json_next(name))
        for (enum loss i = 0; i < LOSS_COUNT; i++)
            node->has_lost[i] |= json_type(name) == JSON_STRING && text_equal(json_text(name), text_of(LOSSES[i].name));
}

static void copy_reasons(const struct json *report, struct status_node *node)
{
    const struct json *reason = first_of(report, "degraded");

    for (; reason && node->reason_count < STATUS_REASONS_MAX; reason = json_next(reason)) {
        struct buf out;

        if (json_type(reason) != JSON_STRING)
            continue;
        buf_init_fixed(&out, node->reasons[node->reason_count], STATUS_TEXT_BYTES - 1);
        buf_append_printable(&out, json_text(reason));
        node->reasons[node->reason_count++][out.len] = '\0';
    }
}

void status_read_node(const struct node_row *row, struct status_node *ret_node)
{
    struct json *report = json_parse_object(row->report, NULL);
    struct buf name;

    *ret_node = (struct status_node){.age_ms = row->age_ms, .is_readable = report != NULL};
    buf_init_fixed(&name, ret_node->name, sizeof ret_node->name - 1);
    buf_append_printable(&name, row->name);
    if (!report)
        return;
    status_copy_text(report, "host", ret_node->host, sizeof ret_node->host);
    status_copy_text(report, "address", ret_node->address, sizeof ret_node->address);
    status_copy_text(report, "version", ret_node->version, sizeof ret_node->version);
    status_copy_text(report, "membership", ret_node->memberships, sizeof ret_node->memberships);
    status_copy_text(report, "master_key", ret_node->master_key, sizeof ret_node->master_key);
    ret_node->pid = status_copy_integer(report, "pid");
    ret_node->started_ms = status_copy_integer(report, "started_ms");
    ret_node->lease_ms = status_copy_integer(report, "lease_ms");
    ret_node->lease_since_ms = status_copy_integer(report, "lease_since_ms");
    ret_node->revocations = status_copy_integer(report, "revocations");
    ret_node->barrier_p99_us = status_copy_integer(report, "barrier_p99_us");
    ret_node->is_draining = status_copy_flag(report, "is_draining");
    ret_node->has_lease = status_copy_flag(report, "has_lease");
    ret_node->canary_ms = status_copy_integer(report, "canary_ms");
    ret_node->has_revocation_log = status_copy_flag(report, "has_revocation_log");
    ret_node->is_clock_known = json_member(report, "clock_ahead_ms") != NULL;
    ret_node->clock_ahead_ms = status_copy_integer(report, "clock_ahead_ms");
    copy_losses(report, ret_node);
    status_read_agreements(report, ret_node);
    status_read_certificates(report, ret_node);
    copy_reasons(report, ret_node);
    json_free(report);
}

/* The canary */

enum { CANARY_NEWS_MS = 24 * 60 * 60 * 1000, CANARY_RUNS_MISSED = 5 };

int64_t status_canary_interval_ms(const struct status *status)
{
    int64_t interval_ms = 0;

    for (size_t i = 0; i < status->node_count; i++) {
        const struct status_node *node = &status->nodes[i];

        if (node->age_ms <= STATUS_SILENT_MS && !node->is_draining && node->canary_ms > interval_ms)
            interval_ms = node->canary_ms;
    }
    return interval_ms;
}

/* Judging */

bool status_is_unknown(const struct status *status, const struct fitness_rule *rule)
{
    struct store_facts best = status->facts;

    if (best.config_readable)
        return false;
    best.appendfsync_always = best.no_fsync_on_rewrite_off = true;
    best.replicas_to_write = best.replica_lag_s = 1;
    return !rule->holds(&status->facts) && rule->holds(&best);
}

static void judge_redis(struct status *status)
{
    const char *trouble = status->trouble[0] || status->is_reachable ? status->trouble : "no answer.";

    for (size_t i = 0; i < FITNESS_RULE_COUNT && status->is_reachable; i++) {
        const struct fitness_rule *rule = &FITNESS_RULES[i];

        if (rule->holds(&status->facts) || status_is_unknown(status, rule))
            continue;
        status_add(status, "Redis, %s: %s", rule->name, rule->remedy);
        if (strcmp(trouble, rule->remedy) == 0)
            trouble = "";
    }
    if (trouble[0])
        status_add(status, "Redis: %s", trouble);
    if (status->is_reachable && status->facts.full)
        status_add(status,
                   "Redis, memory: it is full, so nothing new can be created. Raise maxmemory, or free memory.");
    if (status->is_reachable && llabs(status->facts.time_ahead_ms) > STORE_TIME_APART_MS)
        status_add(
            status, "Redis, store-time: %s. Run 'chatelaine doctor'.",
            status->facts.time_ahead_ms < 0
                ? "its clock is ahead of the time that scheduled revocations go by, and keys that end in between are "
                  "answered 503"
                : "its clock is behind the time that scheduled revocations go by");
}

static void judge_node(struct status *status, const struct status_node *node)
{
    if (node->age_ms > STATUS_SILENT_MS)
        status_add(status,
                   "%s: silent for %" PRId64 " s, so its state is unknown: it was killed or paused, or Redis takes no "
                   "reports from it. Its log says which.",
                   node->name, node->age_ms / 1000);
    else if (!node->is_readable)
        status_add(status, "%s: its report cannot be read.", node->name);
    for (size_t i = 0; i < node->reason_count && node->age_ms <= STATUS_SILENT_MS; i++)
        status_add(status, "%s: %s", node->name, node->reasons[i]);
    if (node->age_ms <= STATUS_SILENT_MS)
        status_judge_certificates(status, node);
}

/* Nodes serve side by side with different versions and keys only while somebody upgrades or rotates. */
static void judge_differences(struct status *status)
{
    const struct status_node *first = NULL;

    for (size_t i = 0; i < status->node_count; i++) {
        const struct status_node *node = &status->nodes[i];

        if (!node->is_readable || node->age_ms > STATUS_SILENT_MS)
            continue;
        if (first && strcmp(first->master_key, node->master_key) != 0)
            status_add(status, "%s makes keys with master key %s, and %s with %s: finish the rotation.", first->name,
                       first->master_key, node->name, node->master_key);
        if (first && first->has_revocation_log != node->has_revocation_log)
            status_add(status, "%s writes no revocation log: set --revocation-log on all nodes, or on none.",
                       first->has_revocation_log ? node->name : first->name);
        if (!first)
            first = node;
    }
}

static void judge_agreement(struct status *status)
{
    for (size_t i = 0; i < status->node_count; i++) {
        struct buf names = BUF_FIXED(STATUS_TEXT_BYTES);

        if (status_print_differences(status, &status->nodes[i], &names))
            status_add(status, "%s differs from the others in %.*s: give all nodes the same settings.",
                       status->nodes[i].name, TEXT_ARG(buf_text(&names)));
    }
}

/* A deployment that has just been started has not had time for a run. */
static bool has_had_time(const struct status *status, int64_t time_ms)
{
    for (size_t i = 0; i < status->node_count; i++)
        if (status->nodes[i].canary_ms > 0 && status->now_ms - status->nodes[i].started_ms > time_ms)
            return true;
    return false;
}

/* Why there was no run since the last one that was finished; empty: not known. */
static const char *why_unfinished(const struct canary_summary *canary)
{
    bool is_later = !canary->has_run || canary->since_unfinished_ms < canary->since_run_ms;

    return canary->since_unfinished_ms >= 0 && is_later ? canary->unfinished_why : "";
}

static void judge_canary(struct status *status)
{
    const struct canary_summary *canary = &status->canary;
    int64_t late_ms = CANARY_RUNS_MISSED * status_canary_interval_ms(status);
    const char *why = why_unfinished(canary);

    if (!status->has_canary)
        return;
    if (canary->since_violation_ms >= 0 && canary->since_violation_ms < CANARY_NEWS_MS)
        status_add(status,
                   "Canary: %s accepted a key %" PRId64
                   " s ago, after its revocation was answered. Stop that node, and keep "
                   "its log.",
                   canary->violated_by, canary->since_violation_ms / 1000);
    if (late_ms > 0 && (!canary->has_run || canary->since_run_ms > late_ms) && has_had_time(status, late_ms))
        status_add(status, "Canary: no run was finished for %" PRId64 " s%s%s: the promise is not measured.",
                   canary->has_run ? canary->since_run_ms / 1000 : late_ms / 1000,
                   why[0] ? "; the last one was given up because " : "", why);
}

void status_judge(struct status *status)
{
    status->problem_count = 0;
    judge_redis(status);
    if (status->is_listed && status->node_count == 0)
        status_add(status, "No node reports: none runs, or all are cut off from Redis.");
    for (size_t i = 0; i < status->node_count; i++)
        judge_node(status, &status->nodes[i]);
    judge_differences(status);
    judge_agreement(status);
    judge_canary(status);
}
