/* Upgrade and undo under load: the nodes of an earlier version are replaced one by one by this one, and back. Nothing
 * may fail meanwhile but the one retry of a gateway, no session may end, devices are enrolled across versions. The
 * clients (clients.h) run beside it. */
#pragma once
#include "cluster.h"
#include "history.h"

struct upgrade_plan {
    struct cluster *cluster;
    struct history *history;
    const char *old_program, *old_name, *new_name;
};

struct upgrade;

/* Before the cluster starts: its nodes, and commands, are the old program. */
void upgrade_begin_with_old(struct cluster *cluster, const char *old_program);
/* Before the clients start. Has the old version make an account, users and the manager key that all use from now on. */
struct upgrade *upgrade_prepare(const struct upgrade_plan *plan, struct fixture_user *ret_users, unsigned user_count);
/* While the clients run: there and back, a line for each set of nodes that served side by side. */
void upgrade_run(struct upgrade *upgrade);
/* After the clients: a store with a newer schema, which both versions must refuse with a reason. */
void upgrade_check_newer_schema(struct upgrade *upgrade);
void upgrade_destroy(struct upgrade *upgrade);
