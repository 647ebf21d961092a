/* Teardown: each step starts closing a part and counts it in pending. node_part_ended() continues with the next
 * step. */
#include "node_internal.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    INTERNAL_DRAIN_MS = 1000, /* short, because checks, probes and metrics are answered at once */
    QUIET_MS = 1000,          /* a connection that was not used for so long is closed; a gateway has seen /readyz */
    QUIET_SHARE = 4,          /* of a shorter drain */
};

static void node_next_step(struct node *node);

static void node_part_ended(void *arg)
{
    struct node *node = arg;

    if (--node->pending == 0)
        node_next_step(node);
}

/* A step that closes a part of the node, if there is one. */
#define STEP(step, part, close)                   \
    static void step(struct node *node)           \
    {                                             \
        if (!node->part)                          \
            return;                               \
        node->pending++;                          \
        close(node->part, node_part_ended, node); \
    }

STEP(step_close_gate, gate, startup_gate_close)

static unsigned part_count(const struct node *node)
{
    return node->partitions ? partitions_count(node->partitions) : 0;
}

/* At once, so that watchers go on at another node before this one is gone. */
static void step_end_watchers(struct node *node)
{
    watch_feed_drain(node->watch_feed);
}

static void step_tell(struct node *node)
{
    if (node->report)
        node_report_drain(node->report);
    if (node->canary)
        canary_stop(node->canary);
}

static int64_t quiet_ms(int64_t grace_ms)
{
    return grace_ms / QUIET_SHARE < QUIET_MS ? grace_ms / QUIET_SHARE : QUIET_MS;
}

static void on_late(void *arg)
{
    struct node *node = arg;

    node->service.refuses_new = true;
}

static void drain(struct node *node, struct http_server *server, int64_t grace_ms)
{
    node->pending++;
    http_server_drain(server, &(struct http_drain){.grace_ms = grace_ms,
                                                   .quiet_ms = quiet_ms(grace_ms),
                                                   .late = on_late,
                                                   .drained = node_part_ended,
                                                   .arg = node});
}

/* Both begin to wane: gateways keep connections to each. */
static void step_drain_public(struct node *node)
{
    if (node->internal_server)
        http_server_wane(node->internal_server, quiet_ms(node->drain_ms));
    if (node->public_server)
        drain(node, node->public_server, node->drain_ms);
}

/* Stops listening after the public listener, so that probes can see that the node is draining. */
static void step_drain_internal(struct node *node)
{
    if (node->internal_server)
        drain(node, node->internal_server, node->drain_ms < INTERNAL_DRAIN_MS ? node->drain_ms : INTERNAL_DRAIN_MS);
}

static void step_close_tls(struct node *node)
{
    node->pending += node_tls_close(&node->tls, node_part_ended, node);
}

/* Until now requests were answered with a good lease. Nothing waits for Redis to answer this; should it fail, the next
 * revocations wait as for a node that crashed. */
static void step_leave(struct node *node)
{
    for (unsigned i = 0; i < part_count(node); i++)
        membership_leave(node->members[i]);
}

/* The memberships have left, so no reader accepts anything any more. */
STEP(step_close_table, table_listener, table_listener_close)

static void step_drain_usage(struct node *node)
{
    if (!node->usage)
        return;
    node->pending++;
    usage_drain(node->usage, node->own.store.timeout_ms, node_part_ended, node);
}

/* The drain's time is over: nobody waits for what waits at the gate, or for its password to be hashed. The servers
 * close once all requests are released. */
static void step_shut_queues(struct node *node)
{
    if (node->work_gate)
        node_gate_shut(node->work_gate);
    if (node->passwords)
        password_pool_shut(node->passwords);
}

static void step_close_work_gate(struct node *node)
{
    if (!node->work_gate)
        return;
    node->pending++;
    node_gate_close(node->work_gate, node_part_ended, node);
    node->work_gate = NULL;
}

/* A closed server has freed all its requests, so nothing calls the parts that are closed next. */
static void step_close_http(struct node *node)
{
    struct http_server *servers[] = {node->internal_server, node->public_server};

    for (size_t i = 0; i < 2; i++) {
        if (!servers[i])
            continue;
        node->pending++;
        http_server_close(servers[i], node_part_ended, node);
    }
    node->public_server = node->internal_server = NULL;
}

STEP(step_close_usage, usage, usage_close)
STEP(step_close_watch_feed, watch_feed, watch_feed_close)
STEP(step_close_passwords, passwords, password_pool_close)

static void step_close_canary(struct node *node)
{
    if (!node->canary)
        return;
    node->pending++;
    canary_close(node->canary, node_part_ended, node);
    node->canary = NULL;
}

STEP(step_close_report, report, node_report_close)
STEP(step_end_audit, audit_keeper, audit_keeper_end)

static void step_close_audit(struct node *node)
{
    if (!node->audit_log)
        return;
    audit_keeper_destroy(node->audit_keeper);
    node->pending++;
    audit_log_close(node->audit_log, node_part_ended, node);
}

static void step_close_access(struct node *node)
{
    if (!node->partitions)
        return;
    node->pending++;
    redis_access_close(node->own.store.target.access, node_part_ended, node);
}

/* Its reads of the store ask the memberships. */
static void step_stop_checker(struct node *node)
{
    if (node->checker)
        node->pending += key_checker_stop(node->checker, node_part_ended, node);
}

static void step_close_members(struct node *node)
{
    node->pending += part_count(node);
    for (unsigned i = 0; i < part_count(node); i++)
        membership_close(node->members[i], node_part_ended, node);
}

STEP(step_close_store, partitions, partitions_close)

static void node_finish(void *arg)
{
    struct node *node = arg;
    struct node_events events = node->events;

    node_tls_finish(&node->tls);
    logged_endings_destroy(node->logged_endings);
    revocation_log_close(node->revocation_log);
    node_settings_finish(&node->own);
    free(node->parts);
    free(node->members);
    free(node);
    events.stopped(events.arg);
}

static void (*const TEARDOWN[])(struct node *node) = {
    step_end_watchers,     step_tell,         step_close_gate,      step_drain_public,
    step_drain_internal,   step_leave,        step_close_table,     step_drain_usage,
    step_close_tls,        step_shut_queues,  step_close_http,      step_close_work_gate,
    step_close_watch_feed, step_close_usage,  step_close_passwords, step_end_audit,
    step_close_canary,     step_close_report, step_close_access,    step_stop_checker,
    step_close_members,    step_close_store,  step_close_audit,
};

static void node_next_step(struct node *node)
{
    while (node->pending == 0) {
        if (node->step == sizeof TEARDOWN / sizeof *TEARDOWN) {
            key_checker_destroy(node->checker);
            shared_table_destroy(node->table);
            turn_close(node->turn, node_finish, node);
            return;
        }
        TEARDOWN[node->step++](node);
    }
}

void node_close(struct node *node, int64_t drain_ms)
{
    if (node->is_stopping)
        return;
    node->is_stopping = true;
    node->drain_ms = drain_ms;
    node->service.draining = true;
    if (node->is_serving && node->settings->ready_file)
        unlink(node->settings->ready_file);
    node_next_step(node);
}
