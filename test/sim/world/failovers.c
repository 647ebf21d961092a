#include "failovers_internal.h"
#include "plan.h"
#include "schedule.h"
#include "trace.h"

/* Masters are missed after a second (sentinel.c), and another one serves about two later. */
enum {
    BURST_MOST_MS = 900,
    LAG_MOST_MS = 1500,
    STORE_LAST_MS = 4000,
    BESIDE_MS = 14000,
    LAGGING_MS = 14000,
    HOSTS_MAX = SIM_NODES_MAX + SIM_REDISES_HOSTS,
};

#define NS_PER_MS UINT64_C(1000000)
#define LEAST_DELAY_NS (NS_PER_MS / 32)
#define MOST_DELAY_NS (NS_PER_MS / 2)

struct sim_scene sim_scene;

void sim_failovers_start(struct sim_deployment *deployment)
{
    sim_scene = (struct sim_scene){.of = deployment, .redises = &deployment->redises};
}

/* All hosts but the clients' */
static unsigned hosts(struct sim_host *ret_hosts[HOSTS_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < SIM_WATCHED; i++)
        ret_hosts[count++] = sim_scene.redises->hosts[i];
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        ret_hosts[count++] = sim_scene.redises->sentinel_hosts[i];
    for (unsigned i = 0; i < sim_scene.of->node_count; i++)
        ret_hosts[count++] = sim_scene.of->nodes[i].host;
    return count;
}

void sim_cut(struct sim_host *a, struct sim_host *b, bool is_cut)
{
    sim_link_cut(a, b, is_cut);
    sim_link_cut(b, a, is_cut);
}

void sim_isolate(struct sim_host *host, struct sim_host *const *with)
{
    struct sim_host *all[HOSTS_MAX];
    const unsigned count = hosts(all);

    for (unsigned i = 0; i < count; i++) {
        bool is_with = all[i] == host;

        for (unsigned j = 0; with[j]; j++)
            is_with |= with[j] == all[i];
        if (!is_with)
            sim_cut(host, all[i], true);
    }
}

/* Between commands, which clients give, and the store. */
static void cut_commands(const struct sim_host *host, bool is_cut)
{
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        if (sim_scene.redises->hosts[i] == host)
            sim_cut(sim_scene.redises->hosts[i], sim_scene.of->clients, is_cut);
}

void sim_part(struct sim_host *const *set)
{
    for (unsigned i = 0; set[i]; i++) {
        sim_isolate(set[i], set);
        cut_commands(set[i], true);
    }
}

void sim_heal_all(void)
{
    struct sim_host *all[HOSTS_MAX];
    const unsigned count = hosts(all);

    for (unsigned i = 0; i < count; i++)
        for (unsigned j = 0; j < i; j++)
            sim_cut(all[i], all[j], false);
    for (unsigned i = 0; i < count; i++)
        cut_commands(all[i], false);
}

void sim_heal(struct sim_host *host)
{
    struct sim_host *all[HOSTS_MAX];
    const unsigned count = hosts(all);

    for (unsigned i = 0; i < count; i++)
        if (all[i] != host)
            sim_cut(host, all[i], false);
    cut_commands(host, false);
}

void sim_scene_draw(void)
{
    sim_scene.old = sim_scene.redises->master;
    sim_scene.other = (sim_scene.old + 1 + (unsigned)sim_plan_draw_strength(0, SIM_WATCHED - 2)) % SIM_WATCHED;
}

/* Between a node and the store */

static void node_cut_begins(struct sim_node *node)
{
    for (unsigned i = 0; i < SIM_WATCHED; i++)
        sim_cut(node->host, sim_scene.redises->hosts[i], true);
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        sim_cut(node->host, sim_scene.redises->sentinel_hosts[i], true);
}

static void node_heals(struct sim_node *node)
{
    sim_heal(node->host);
}

static void master_cut_begins(struct sim_node *node)
{
    sim_cut(node->host, sim_scene.redises->hosts[sim_scene.redises->master], true);
}

static void sentinels_cut_begins(struct sim_node *node)
{
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        sim_cut(node->host, sim_scene.redises->sentinel_hosts[i], true);
}

static void deafness_begins(struct sim_node *node)
{
    sim_link_cut(sim_scene.redises->hosts[sim_scene.redises->master], node->host, true);
}

static void muteness_begins(struct sim_node *node)
{
    sim_link_cut(node->host, sim_scene.redises->hosts[sim_scene.redises->master], true);
}

static void reset_begins(struct sim_node *node)
{
    sim_connections_reset(node->host, sim_scene.redises->hosts[sim_scene.redises->master]);
}

static void delay(struct sim_host *host, uint64_t least_ns, uint64_t most_ns)
{
    for (unsigned i = 0; i < SIM_WATCHED; i++) {
        if (sim_scene.redises->hosts[i] == host)
            continue;
        sim_link_delay(host, sim_scene.redises->hosts[i], least_ns, most_ns);
        sim_link_delay(sim_scene.redises->hosts[i], host, least_ns, most_ns);
    }
}

static void burst_begins(struct sim_node *node)
{
    delay(node->host, 0, sim_plan_draw_strength(1, BURST_MOST_MS) * NS_PER_MS);
}

static void burst_ends(struct sim_node *node)
{
    delay(node->host, LEAST_DELAY_NS, MOST_DELAY_NS);
}

/* Of the store */

static void kill_begins(struct sim_node *node)
{
    (void)node;
    sim_scene_draw();
    sim_server_kill(sim_scene.redises->servers[sim_scene.old]);
}

static void kill_ends(struct sim_node *node)
{
    (void)node;
    sim_server_restart(sim_scene.redises->servers[sim_scene.old], SIM_DISK_WHOLE);
}

static void pause_begins(struct sim_node *node)
{
    (void)node;
    sim_scene_draw();
    sim_trace(sim_scene.redises->hosts[sim_scene.old]->name, "redis is paused");
    sim_server_freeze(sim_scene.redises->servers[sim_scene.old], true);
}

static void pause_ends(struct sim_node *node)
{
    (void)node;
    sim_server_freeze(sim_scene.redises->servers[sim_scene.old], false);
}

/* With a node on its side, and perhaps a Sentinel. */
static void part_begins(struct sim_node *node)
{
    struct sim_host *set[] = {NULL, node->host, NULL, NULL};

    sim_scene_draw();
    set[0] = sim_scene.redises->hosts[sim_scene.old];
    if (sim_plan_draw_strength(0, 1) == 0)
        set[2] = sim_scene.redises->sentinel_hosts[sim_plan_draw_strength(0, SIM_SENTINELS - 1)];
    sim_part(set);
}

static void part_ends(struct sim_node *node)
{
    sim_heal(sim_scene.redises->hosts[sim_scene.old]);
    sim_heal(node->host);
    for (unsigned i = 0; i < SIM_SENTINELS; i++)
        sim_heal(sim_scene.redises->sentinel_hosts[i]);
}

static void replica_kill_begins(struct sim_node *node)
{
    (void)node;
    sim_scene_draw();
    sim_server_kill(sim_scene.redises->servers[sim_scene.other]);
}

static void replica_kill_ends(struct sim_node *node)
{
    (void)node;
    sim_server_restart(sim_scene.redises->servers[sim_scene.other], SIM_DISK_WHOLE);
}

static void replica_cut_begins(struct sim_node *node)
{
    (void)node;
    sim_scene_draw();
    sim_cut(sim_scene.redises->hosts[sim_scene.old], sim_scene.redises->hosts[sim_scene.other], true);
}

static void replica_cut_ends(struct sim_node *node)
{
    (void)node;
    sim_cut(sim_scene.redises->hosts[sim_scene.old], sim_scene.redises->hosts[sim_scene.other], false);
}

static void lag_begins(struct sim_node *node)
{
    (void)node;
    sim_scene_draw();
    delay(sim_scene.redises->hosts[sim_scene.other], 0, sim_plan_draw_strength(1, LAG_MOST_MS) * NS_PER_MS);
}

static void lag_ends(struct sim_node *node)
{
    (void)node;
    delay(sim_scene.redises->hosts[sim_scene.other], LEAST_DELAY_NS, MOST_DELAY_NS);
}

static void failover_begins(struct sim_node *node)
{
    (void)node;
    sim_sentinel_failover(sim_scene.redises->sentinels[sim_plan_draw_strength(0, SIM_SENTINELS - 1)]);
}

static void scripts_begin(struct sim_node *node)
{
    (void)node;
    if (sim_server_is_up(sim_scene.redises->servers[sim_scene.redises->master]))
        sim_server_tell(sim_scene.redises->servers[sim_scene.redises->master], "SCRIPT FLUSH");
}

static const struct sim_fault FAULTS[] = {
    {"cut", NEEDS_LINK, node_cut_begins, node_heals, false, 0},
    {"cut-master", NEEDS_LINK, master_cut_begins, node_heals, false, 0},
    {"cut-sentinels", NEEDS_LINK, sentinels_cut_begins, node_heals, false, 0},
    {"deaf", NEEDS_LINK, deafness_begins, node_heals, false, 0},
    {"mute", NEEDS_LINK, muteness_begins, node_heals, false, 0},
    {"burst", NEEDS_DELAY, burst_begins, burst_ends, false, 0},
    {"reset", NEEDS_LINK, reset_begins, NULL, false, 0},
    {"master-kill", NEEDS_REDIS, kill_begins, kill_ends, false, STORE_LAST_MS},
    {"master-blink", NEEDS_REDIS, kill_begins, kill_ends, false, 0},
    {"master-pause", NEEDS_REDIS, pause_begins, pause_ends, false, STORE_LAST_MS},
    {"master-part", NEEDS_REDIS, part_begins, part_ends, false, STORE_LAST_MS},
    {"replica-kill", NEEDS_REDIS, replica_kill_begins, replica_kill_ends, false, 0},
    {"replica-cut", NEEDS_REDIS, replica_cut_begins, replica_cut_ends, false, 0},
    {"replica-lag", NEEDS_REDIS, lag_begins, lag_ends, false, 0},
    {"failover", NEEDS_REDIS, failover_begins, NULL, false, 0},
    {"scripts", NEEDS_REDIS, scripts_begin, NULL, false, 0},
    {"beside", NEEDS_ALL, sim_beside_begins, sim_plot_ends, false, BESIDE_MS},
    {"lagging", NEEDS_ALL, sim_lagging_begins, sim_plot_ends, false, LAGGING_MS},
};

const struct sim_fault *sim_failovers(size_t *ret_count)
{
    *ret_count = sizeof FAULTS / sizeof *FAULTS;
    return FAULTS;
}
