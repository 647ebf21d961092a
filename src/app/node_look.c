/* What a running node looks at again: each second, and on SIGHUP. */
#include "node_internal.h"

#include "base/log.h"

void node_look(void *arg)
{
    struct node *node = arg;

    if (node->revocation_log)
        revocation_log_look(node->revocation_log);
    if (node->is_stopping)
        return;
    http_server_look(node->public_server);
    http_server_look(node->internal_server);
    if (node->table_listener)
        table_listener_look(node->table_listener);
}

static void reload_policy(struct node *node)
{
    char storage[NODE_WHY_MAX_BYTES];
    struct buf why;
    struct route_policy *before = node->policy;

    buf_init_fixed(&why, storage, sizeof storage);
    struct route_policy *policy = node_load_policy(node->settings->policy_file, &why);
    if (!policy) {
        LOG(LOG_ERROR, "policy file rejected: the policy stays as it was", log_text("why", buf_text(&why)));
        return;
    }
    if (node->table)
        shared_table_set_policy(node->table, route_policy_digest(policy));
    node->policy = policy;
    node->service.policy = policy;
    route_policy_destroy(before);
    LOG(LOG_INFO, "policy file reloaded", log_str("path", node->settings->policy_file));
}

void node_reload(struct node *node)
{
    bool has_policy = node->settings->policy_file && !node->is_stopping;

    if (!node_tls_reload(&node->tls) && !has_policy && !node->revocation_log && !node->audit_log)
        LOG(LOG_INFO, "nothing to reload", log_str("signal", "SIGHUP"));
    if (has_policy)
        reload_policy(node);
    if (node->revocation_log)
        revocation_log_look(node->revocation_log);
    if (node->audit_log && node->audit_keeper && !node->is_stopping) {
        audit_log_look(node->audit_log);
        audit_keeper_hurry(node->audit_keeper);
    }
}
