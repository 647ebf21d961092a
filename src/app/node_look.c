/* What a running node looks at again: each second, and on SIGHUP. */
#include "node_internal.h"

#include "base/clock.h"
#include "base/loss.h"
#include "node_settings.h"
#include "redis/access.h"
#include "redis/redis_clock.h"

#include <stdlib.h>

enum { CLOCKS_APART_MS = 2000 };

/* Of the partition whose Redis differs most, of those that are known. False: some are not. */
static bool clock_ahead(const struct node *node, int64_t *ret_most_ms)
{
    bool are_known = true;

    *ret_most_ms = 0;
    for (unsigned i = 0; i < partitions_count(node->partitions); i++) {
        int64_t ahead_ms = 0;

        are_known &= redis_clock_ahead(store_redis_clock(node->parts[i].store), &ahead_ms);
        if (llabs(ahead_ms) > llabs(*ret_most_ms))
            *ret_most_ms = ahead_ms;
    }
    return are_known;
}

/* When this machine's clock is set, Redis' may be set with it: the next heartbeat tells. */
static void look_at_clock(const struct node *node)
{
    int64_t ahead_ms;
    bool are_known = clock_ahead(node, &ahead_ms);
    bool is_apart = llabs(ahead_ms) > CLOCKS_APART_MS + node->settings->redis_timeout_ms / 2;

    if (is_apart == loss_is_told(LOSS_CLOCK) || (!is_apart && !are_known))
        return;
    if (is_apart)
        LOSS_TELL(LOSS_CLOCK, log_int("redis_ahead_ms", ahead_ms),
                  log_int("set_by_ms", clock_zero_ms() - node->clock_zero_ms));
    else
        LOG(LOG_INFO, "this machine's clock and Redis' clock agree again", log_int("redis_ahead_ms", ahead_ms));
    metric_set(METRIC_CLOCK_WRONG, is_apart);
}

void node_look(void *arg)
{
    struct node *node = arg;

    if (node->revocation_log)
        revocation_log_look(node->revocation_log);
    if (node->is_stopping)
        return;
    losses_look();
    look_at_clock(node);
    http_server_look(node->public_server);
    http_server_look(node->internal_server);
    if (node->table_listener)
        table_listener_look(node->table_listener);
}

static void reload_policy(struct node *node)
{
    struct buf why = BUF_FIXED(NODE_WHY_MAX_BYTES);
    struct route_policy *before = node->own.policy;

    struct route_policy *policy = node_policy_load(node->settings->policy_file, &why);
    if (!policy) {
        LOG(LOG_ERROR, "policy file rejected: the policy stays as it was", log_text("why", buf_text(&why)));
        return;
    }
    if (node->table)
        shared_table_set_policy(node->table, route_policy_digest(policy));
    node->own.policy = policy;
    node->service.policy = policy;
    route_policy_destroy(before);
    LOG(LOG_INFO, "policy file reloaded", log_str("path", node->settings->policy_file));
}

void node_reload(struct node *node)
{
    bool has_policy = node->settings->policy_file && !node->is_stopping;

    node_tls_reload(&node->tls);
    if (node->partitions && !node->is_stopping)
        redis_access_renew(node->own.store.target.access);
    if (has_policy)
        reload_policy(node);
    if (node->revocation_log)
        revocation_log_look(node->revocation_log);
    if (node->audit_log && node->audit_keeper && !node->is_stopping) {
        audit_log_look(node->audit_log);
        audit_keeper_hurry(node->audit_keeper);
    }
}
