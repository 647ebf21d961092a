#include "status_internal.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { US_PER_MS = 1000 };

/* A silent node's last report still tells who it is. Its state may have changed since. */
static bool is_state_known(const struct status_node *node)
{
    return node->is_readable && node->age_ms <= STATUS_SILENT_MS;
}

static const char *lease_of(const struct status_node *node)
{
    if (!is_state_known(node))
        return "unknown";
    return node->lease_ms == 0 ? "none" : node->has_lease ? "held" : "lost";
}

static const char *keys_of(const struct status *status)
{
    static const char *const KEYS[] = {
        [STORE_KEYS_UNJUDGED] = "not looked at: pass --master-key-file as on the nodes",
        [STORE_KEYS_FIT] = "the given ones made this store",
        [STORE_KEYS_OTHER] = "the given one did not make this store",
        [STORE_KEYS_LACKING] = "one that sealed records is missing",
        [STORE_KEYS_UNNOTED] = "the store does not record which one made it",
    };

    return KEYS[status->facts.keys];
}

static void print_span(struct buf *out, int64_t ms)
{
    char text[STATUS_SPAN_BYTES];

    status_print_span(ms, text);
    buf_append_str(out, text);
}

static void print_barriers(const struct status_node *node, struct buf *out)
{
    if (node->revocations == 0) {
        buf_append_str(out, "no revocation since it started");
        return;
    }
    buf_printf(out, "%" PRId64 " revocation%s, p99 ", node->revocations, node->revocations == 1 ? "" : "s");
    if (node->barrier_p99_us < 0)
        buf_append_str(out, "above 10 s");
    else
        buf_printf(out, "within %g ms", (double)node->barrier_p99_us / US_PER_MS);
}

static void print_membership(const struct status_node *node, struct buf *out)
{
    size_t count = (strlen(node->memberships) + 1) / (MEMBER_NAME_CHARS + 1);

    if (count > 1)
        buf_printf(out, ", %zu memberships (see --json)\n", count);
    else
        buf_printf(out, ", membership %s\n", node->memberships);
}

static void print_node(const struct status_node *node, int64_t now_ms, struct buf *out)
{
    buf_printf(out, "  %s\n", node->name);
    if (!node->is_readable)
        return;
    if (node->age_ms > STATUS_SILENT_MS) {
        buf_append_str(out, "    state unknown, last heard ");
        print_span(out, node->age_ms);
        buf_printf(out, " ago: version %s, pid %" PRId64, node->version, node->pid);
        print_membership(node, out);
        return;
    }
    buf_printf(out, "    version %s, pid %" PRId64 ", up ", node->version, node->pid);
    print_span(out, now_ms - node->started_ms);
    buf_printf(out, "%s, heard ", node->is_draining ? ", draining" : "");
    print_span(out, node->age_ms);
    buf_printf(out, " ago\n    lease %s", lease_of(node));
    if (node->lease_ms > 0) {
        buf_append_str(out, " since ");
        print_time_column(out, node->lease_since_ms, "unknown");
    }
    print_membership(node, out);
    buf_append_str(out, "    ");
    print_barriers(node, out);
    buf_append_char(out, '\n');
    status_print_certificates(node, out);
}

static void print_nodes(const struct status *status, int64_t now_ms, struct buf *out)
{
    if (!status->is_listed) {
        buf_append_str(out, "\nNodes: unknown, because they report to Redis.\n");
        return;
    }
    buf_printf(out, "\nNodes: %zu\n", status->node_count);
    for (size_t i = 0; i < status->node_count; i++)
        print_node(&status->nodes[i], now_ms, out);
    if (status->unnamed > 0)
        buf_printf(out,
                   "  %zu memberships of nodes that do not report: killed ones, which the next revocation waits for "
                   "once,\n  or nodes of an earlier version.\n",
                   status->unnamed);
}

static void print_log_writers(const struct status *status, struct buf *out)
{
    size_t writers = 0, known = 0;

    for (size_t i = 0; i < status->node_count; i++) {
        bool is_known = status->nodes[i].is_readable && status->nodes[i].age_ms <= STATUS_SILENT_MS;

        known += is_known;
        writers += is_known && status->nodes[i].has_revocation_log;
    }
    if (known > 0)
        buf_printf(out, "\nRevocation log: written by %zu of %zu nodes\n", writers, known);
}

static void print_time_ahead(int64_t ahead_ms, struct buf *out)
{
    char apart[APART_BYTES];

    apart_print(ahead_ms, apart);
    buf_printf(out, "  time of scheduled revocations: %s%sRedis' clock\n",
               llabs(ahead_ms) <= STORE_TIME_APART_MS ? "" : apart, llabs(ahead_ms) <= STORE_TIME_APART_MS ? "" : " ");
}

static void print_unknown(const struct status *status, struct buf *out)
{
    size_t from = out->len;

    for (size_t i = 0; i < FITNESS_RULE_COUNT; i++)
        if (status_is_unknown(status, &FITNESS_RULES[i]))
            buf_printf(out, "%s%s", out->len > from ? ", " : "  unknown without +config|get: ", FITNESS_RULES[i].name);
    if (out->len > from)
        buf_append_char(out, '\n');
}

/* If all members of the registry report, the longest lease of theirs; otherwise -1. */
static int64_t lease_in_use_ms(const struct status *status)
{
    int64_t longest_ms = status->unnamed == 0 && status->node_count > 0 ? 0 : -1;

    for (size_t i = 0; i < status->node_count && longest_ms >= 0; i++) {
        const struct status_node *node = &status->nodes[i];

        if (!node->is_readable || node->age_ms > STATUS_SILENT_MS)
            longest_ms = -1;
        else if (node->lease_ms > longest_ms)
            longest_ms = node->lease_ms;
    }
    return longest_ms;
}

static void print_longest_lease(const struct status *status, struct buf *out)
{
    int64_t in_use_ms = status->is_listed ? lease_in_use_ms(status) : -1;

    if (!status->is_listed) {
        buf_append_str(out, ", longest lease unknown\n");
        return;
    }
    buf_printf(out, ", longest lease %" PRId64 " ms\n", status->lease_max_ms);
    if (in_use_ms >= 0 && in_use_ms < status->lease_max_ms)
        buf_printf(out,
                   "  no node's lease is longer than %" PRId64 " ms: 'chatelaine store lower-lease --lease-ms %" PRId64
                   "ms' lets revocations wait less\n",
                   in_use_ms, in_use_ms);
}

static void print_redis(const struct status *status, struct buf *out)
{
    const struct store_facts *facts = &status->facts;

    buf_printf(out, "Redis: %s\n", status->target);
    if (!status->is_reachable)
        return;
    buf_printf(out, "  version %s, schema %" PRId64, facts->redis_version, facts->schema);
    if (facts->replication_hidden)
        buf_append_str(out, ", replicas unknown");
    else
        buf_printf(out, ", %" PRId64 " replicas", facts->replicas);
    print_longest_lease(status, out);
    print_unknown(status, out);
    if (status->partitions > 1)
        buf_printf(out, "  partitions: %u of %u can be reached and are fit\n", status->partitions_well,
                   status->partitions);
    if (facts->durability_asserted)
        buf_append_str(out, "  durability: asserted by the operator, not observed\n");
    if (facts->missing_endings > 0 || facts->lost_changes > 0)
        buf_printf(out, "  lost changes: %" PRId64 " that ended something, %" PRId64 " others\n",
                   facts->missing_endings, facts->lost_changes);
    buf_printf(out, "  master keys: %s\n", keys_of(status));
    print_time_ahead(facts->time_ahead_ms, out);
}

static void print_last_run(const struct canary_summary *canary, struct buf *out)
{
    buf_append_str(out, "last run ");
    print_span(out, canary->since_run_ms);
    buf_printf(out, " ago by %s\n  revocation answered after %g ms, asked %" PRId64 " nodes: %" PRId64 " refused",
               canary->run_by, (double)canary->took_us / US_PER_MS, canary->refused + canary->accepted + canary->silent,
               canary->refused);
    if (canary->accepted > 0)
        buf_printf(out, ", %" PRId64 " ACCEPTED", canary->accepted);
    if (canary->silent > 0)
        buf_printf(out, ", %" PRId64 " did not answer", canary->silent);
    if (canary->slowest_ms >= 0)
        buf_printf(out, ", the last within %" PRId64 " ms (%s)", canary->slowest_ms, canary->slowest);
    buf_append_char(out, '\n');
}

static void print_canary(const struct status *status, struct buf *out)
{
    const struct canary_summary *canary = &status->canary;

    if (!status->has_canary)
        return;
    buf_append_str(out, "\nCanary: ");
    if (status_canary_interval_ms(status) == 0) {
        buf_append_str(out, "off\n");
        return;
    }
    if (canary->has_run)
        print_last_run(canary, out);
    else
        buf_append_str(out, "no run was finished yet\n");
    buf_printf(out, "  %" PRId64 " runs, %" PRId64 " unfinished, %" PRId64 " violation%s\n", canary->runs,
               canary->unfinished, canary->violations, canary->violations == 1 ? "" : "s");
}

void status_print(const struct status *status, struct buf *out)
{
    print_redis(status, out);
    print_nodes(status, status->now_ms, out);
    print_log_writers(status, out);
    print_canary(status, out);
    if (status->problem_count > 0)
        buf_append_str(out, "\nProblems:\n");
    for (size_t i = 0; i < status->problem_count; i++)
        buf_printf(out, "  %s\n", status->problems[i]);
    if (status->problem_count == 0)
        buf_append_str(out, "\nAll is well.\n");
    else
        buf_printf(out, "\nDegraded: %zu problem%s.\n", status->problem_count, status->problem_count == 1 ? "" : "s");
}

/* JSON */

/* null: unknown */
static void put_known(struct json_writer *w, const char *name, int64_t value, bool is_known)
{
    json_key(w, name);
    if (is_known)
        json_put_integer(w, value);
    else
        json_put_null(w);
}

static void put_known_flag(struct json_writer *w, const char *name, bool value, bool is_known)
{
    json_key(w, name);
    if (is_known)
        json_put_bool(w, value);
    else
        json_put_null(w);
}

/* The first one by itself, too: the only one without partitions. */
static void put_memberships(struct json_writer *w, struct text names)
{
    struct text rest = names, name = {0};

    (void)text_next(&rest, ' ', &name);
    view_put_text_or_null(w, "membership", name);
    json_key_array(w, "memberships");
    while (text_next(&names, ' ', &name))
        json_put_text(w, name);
    json_array_end(w);
}

static void put_node(struct json_writer *w, const struct status *status, const struct status_node *node)
{
    bool is_known = is_state_known(node);
    struct buf names = BUF_FIXED(STATUS_TEXT_BYTES);

    json_object_begin(w);
    json_put_member(w, "name", text_of(node->name));
    view_put_text_or_null(w, "host", text_of(node->host));
    view_put_text_or_null(w, "address", text_of(node->address));
    view_put_text_or_null(w, "version", text_of(node->version));
    put_known(w, "pid", node->pid, node->is_readable);
    view_put_time_or_null(w, "started_at", node->started_ms);
    json_put_number(w, "heard_ms_ago", node->age_ms);
    json_put_flag(w, "silent", node->age_ms > STATUS_SILENT_MS);
    put_known_flag(w, "draining", node->is_draining, is_known);
    json_put_member(w, "lease", text_of(lease_of(node)));
    view_put_time_or_null(w, "lease_since", is_known ? node->lease_since_ms : 0);
    put_known(w, "lease_ms", node->lease_ms, is_known);
    put_memberships(w, text_of(node->memberships));
    put_known(w, "revocations", node->revocations, is_known);
    put_known(w, "barrier_p99_us", node->barrier_p99_us, is_known);
    view_put_text_or_null(w, "master_key", text_of(is_known ? node->master_key : ""));
    put_known_flag(w, "revocation_log", node->has_revocation_log, is_known);
    put_known(w, "clock_ahead_ms", node->clock_ahead_ms, is_known && node->is_clock_known);
    status_put_certificates(node, is_known, w);
    view_put_text_or_null(w, "differs_in",
                          status_print_differences(status, node, &names) ? buf_text(&names) : TEXT(""));
    json_object_end(w);
}

static void put_redis(struct json_writer *w, const struct status *status)
{
    json_key_object(w, "redis");
    json_put_member(w, "address", text_of(status->target));
    json_put_flag(w, "reachable", status->is_reachable);
    view_put_text_or_null(w, "version", text_of(status->facts.redis_version));
    put_known(w, "schema", status->facts.schema, status->is_reachable);
    put_known(w, "replicas", status->facts.replicas, status->is_reachable && !status->facts.replication_hidden);
    put_known_flag(w, "durability_asserted", status->facts.durability_asserted, status->is_reachable);
    json_put_number(w, "partitions", status->partitions);
    json_put_number(w, "partitions_fit", status->partitions_well);
    put_known(w, "longest_lease_ms", status->lease_max_ms, status->is_listed);
    put_known(w, "missing_endings", status->facts.missing_endings, status->is_reachable);
    put_known(w, "lost_changes", status->facts.lost_changes, status->is_reachable);
    put_known(w, "members_of_earlier_versions", status->facts.earlier_members, status->is_reachable);
    json_put_member(w, "master_keys", text_of(keys_of(status)));
    put_known(w, "time_ahead_ms", status->facts.time_ahead_ms, status->is_reachable);
    json_object_end(w);
}

static void put_age(struct json_writer *w, const char *name, int64_t since_ms)
{
    put_known(w, name, since_ms, since_ms >= 0);
}

static void put_canary(struct json_writer *w, const struct status *status)
{
    const struct canary_summary *canary = &status->canary;

    json_key_object(w, "canary");
    json_put_number(w, "interval_ms", status_canary_interval_ms(status));
    json_put_number(w, "runs", canary->runs);
    put_age(w, "last_run_ms_ago", canary->has_run ? canary->since_run_ms : -1);
    view_put_text_or_null(w, "last_run_by", text_of(canary->run_by));
    json_put_number(w, "effect_us", canary->took_us);
    json_put_number(w, "nodes_refused", canary->refused);
    json_put_number(w, "nodes_accepted", canary->accepted);
    json_put_number(w, "nodes_silent", canary->silent);
    view_put_text_or_null(w, "last_node_to_refuse", text_of(canary->slowest));
    put_age(w, "last_node_refused_within_ms", canary->has_run ? canary->slowest_ms : -1);
    json_put_number(w, "unfinished_runs", canary->unfinished);
    view_put_text_or_null(w, "unfinished_because", text_of(canary->unfinished_why));
    json_put_number(w, "violations", canary->violations);
    put_age(w, "last_violation_ms_ago", canary->violations > 0 ? canary->since_violation_ms : -1);
    view_put_text_or_null(w, "last_violation_by", text_of(canary->violated_by));
    json_object_end(w);
}

void status_print_json(const struct status *status, struct buf *out)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_put_flag(&w, "degraded", status->problem_count > 0);
    json_key_array(&w, "problems");
    for (size_t i = 0; i < status->problem_count; i++)
        json_put_text(&w, text_of(status->problems[i]));
    json_array_end(&w);
    put_redis(&w, status);
    json_key_array(&w, "nodes");
    for (size_t i = 0; i < status->node_count; i++)
        put_node(&w, status, &status->nodes[i]);
    json_array_end(&w);
    json_put_number(&w, "unnamed_memberships", (int64_t)status->unnamed);
    put_canary(&w, status);
    json_line_end(&w);
}
