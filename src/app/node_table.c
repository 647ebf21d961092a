/* The shared table of a node with --table, and what its readers use. */
#include "node_internal.h"
#include "admin/command.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chatelaine/check.h"

#include <inttypes.h>

static void on_table_used(void *arg, const struct key_principal *key, uint32_t uses)
{
    struct node *node = arg;

    usage_count(node->usage, key, uses, clock_wall_ms());
    metric_add(METRIC_TABLE_USES, uses);
}

static void on_table_in_use(void *arg, uint32_t owner)
{
    struct node *node = arg;

    key_checker_in_use(node->checker, owner);
}

static bool has_room_for_uses(void *arg)
{
    const struct node *node = arg;

    return usage_has_room(node->usage);
}

int node_create_table(struct node *node)
{
    const struct settings *s = node->settings;

    if (!s->table)
        return EXIT_DONE;
    node->table = shared_table_create(&(struct shared_table_settings){
        .keys_max = (size_t)s->table_keys,
        .partitions = partitions_count(node->partitions),
        .deployment = s->table_deployment,
        .used = on_table_used,
        .in_use = on_table_in_use,
        .has_room = has_room_for_uses,
        .arg = node,
    });
    if (node->table)
        shared_table_set_policy(node->table, route_policy_digest(node->own.policy));
    return node->table ? EXIT_DONE
                       : command_fail(EXIT_FAILED, "no memory for --table-keys %" PRId64 ": %s", s->table_keys,
                                      strerror(errno));
}

int node_serve_table(struct node *node)
{
    const struct settings *s = node->settings;
    int error = 0;

    if (!s->table)
        return EXIT_DONE;
    node->table_listener =
        table_listener_create(node->loop, node->table, s->table, (uint32_t)s->usage_flush_ms, &error);
    return node->table_listener
               ? EXIT_DONE
               : command_fail(EXIT_FAILED,
                              "can't listen on --table %s: %s; it must be a path of at most 107 bytes, "
                              "in a folder where the node may write",
                              s->table, uv_strerror(error));
}
