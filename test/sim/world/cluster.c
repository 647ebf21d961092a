#include "cluster.h"
#include "load.h"
#include "mover.h"
#include "plan.h"
#include "schedule.h"
#include "setback.h"
#include "trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16384, CALENDAR_MOST_S = 10, BURST_MOST_MS = 900, ID_CHARS = 40, NODES_BYTES = 1024 };

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

static struct sim_deployment *of;
static struct sim_master *struck; /* by what needs the store; at most one at a time */
static bool was_spared;           /* what has begun did nothing */

/* Making it */

struct sim_host *const *sim_cluster_hosts(struct sim_deployment *deployment, unsigned *ret_count)
{
    static struct sim_host *hosts[SIM_MASTERS];
    char name[SIM_HOST_NAME_BYTES];

    for (unsigned i = 0; i < SIM_MASTERS; i++) {
        struct sim_master *master = &deployment->masters[i];

        snprintf(name, sizeof name, "redis%u", i + 1);
        snprintf(master->ip, sizeof master->ip, "10.0.0.%u", 100 + i);
        memset(master->id, "abc"[i], ID_CHARS);
        master->first_slot = i * SLOTS / SIM_MASTERS;
        master->last_slot = (i + 1) * SLOTS / SIM_MASTERS - 1;
        hosts[i] = master->host = sim_host_new(name, master->ip);
    }
    *ret_count = SIM_MASTERS;
    return hosts;
}

/* Each has an epoch of its own, so that they need not sort that out. */
static void print_nodes(const struct sim_deployment *deployment, const struct sim_master *me, char *ret_nodes)
{
    int len = 0;

    for (const struct sim_master *at = deployment->masters; at < deployment->masters + SIM_MASTERS; at++)
        len += snprintf(
            ret_nodes + len, NODES_BYTES - (size_t)len, "%s %s:6379@16379 %smaster - 0 0 %u connected %u-%u\n", at->id,
            at->ip, at == me ? "myself," : "", (unsigned)(at - deployment->masters) + 1, at->first_slot, at->last_slot);
}

void sim_cluster_start(struct sim_deployment *deployment)
{
    char nodes[NODES_BYTES];

    for (unsigned i = 0; i < SIM_MASTERS; i++) {
        print_nodes(deployment, &deployment->masters[i], nodes);
        deployment->masters[i].server = sim_server_start_member(deployment->masters[i].host, nodes);
    }
}

static bool is_up(struct sim_server *server)
{
    struct buf reply;
    bool is;

    buf_init(&reply, SIZE_MAX / 2);
    is = sim_server_ask(server, (struct text[]){TEXT("CLUSTER"), TEXT("INFO")}, 2, &reply) &&
         memmem(reply.ptr, reply.len, "cluster_state:ok", strlen("cluster_state:ok"));
    buf_finish(&reply);
    return is;
}

bool sim_cluster_is_whole(struct sim_deployment *deployment)
{
    bool is = sim_mover_rests();

    for (unsigned i = 0; i < SIM_MASTERS; i++)
        is &= is_up(deployment->masters[i].server);
    return is;
}

void sim_cluster_faults_begin(struct sim_deployment *deployment)
{
    of = deployment;
    sim_mover_begin(deployment);
}

/* Often the one that has the keys. */
static struct sim_master *draw_master(void)
{
    return sim_plan_draw_strength(0, 1) == 0 ? sim_mover_owner_of(of->accounts[0].id)
                                             : &of->masters[sim_plan_draw_strength(0, SIM_MASTERS - 1)];
}

/* Between a node and primaries */

static void set_cut(struct sim_host *a, struct sim_host *b, bool there, bool back)
{
    sim_link_cut(a, b, there);
    sim_link_cut(b, a, back);
}

/* From one, or from all of them. */
static void cut(const struct sim_node *node, bool there, bool back)
{
    struct sim_master *master = draw_master();
    const bool is_all = sim_plan_draw_strength(0, 2) == 0;

    for (unsigned i = 0; i < SIM_MASTERS; i++)
        if (is_all || &of->masters[i] == master)
            set_cut(node->host, of->masters[i].host, there, back);
}

static void cut_begins(struct sim_node *node)
{
    cut(node, true, true);
}

static void deafness_begins(struct sim_node *node)
{
    cut(node, false, true);
}

static void muteness_begins(struct sim_node *node)
{
    cut(node, true, false);
}

static void cut_ends(struct sim_node *node)
{
    for (unsigned i = 0; i < SIM_MASTERS; i++)
        set_cut(node->host, of->masters[i].host, false, false);
}

static void burst_begins(struct sim_node *node)
{
    struct sim_master *master = draw_master();
    const uint64_t most_ns = sim_plan_draw_strength(1, BURST_MOST_MS) * NS_PER_MS;

    sim_link_delay(node->host, master->host, 0, most_ns);
    sim_link_delay(master->host, node->host, 0, most_ns);
}

static void lateness_begins(struct sim_node *node)
{
    const uint64_t most_ns = sim_plan_draw_strength(1, BURST_MOST_MS) * NS_PER_MS;

    sim_link_delay(draw_master()->host, node->host, most_ns / 2, most_ns);
}

static void delay_ends(struct sim_node *node)
{
    for (unsigned i = 0; i < SIM_MASTERS; i++) {
        sim_link_delay(node->host, of->masters[i].host, NS_PER_MS / 32, NS_PER_MS / 2);
        sim_link_delay(of->masters[i].host, node->host, NS_PER_MS / 32, NS_PER_MS / 2);
    }
}

static void reset_begins(struct sim_node *node)
{
    sim_connections_reset(node->host, draw_master()->host);
}

/* Of one primary */

static struct sim_master *strike(void)
{
    struck = draw_master();
    sim_trace("faults", "%s is struck", struck->host->name);
    return struck;
}

static void kill_begins(struct sim_node *node)
{
    (void)node;
    sim_server_kill(strike()->server);
}

static void kill_ends(struct sim_node *node)
{
    (void)node;
    sim_server_restart(struck->server, SIM_DISK_WHOLE);
}

/* Names that come into an empty one, or go from it, are no fault of ours. */
static void empty_begins(struct sim_node *node)
{
    (void)node;
    was_spared = !sim_mover_hold();
    if (!was_spared)
        sim_server_empty(strike()->server);
}

static void empty_ends(struct sim_node *node)
{
    (void)node;
    if (was_spared)
        return;
    sim_server_refill(struck->server);
    sim_mover_release();
}

static void part(struct sim_master *master, bool is_cut)
{
    for (unsigned i = 0; i < SIM_MASTERS; i++)
        if (&of->masters[i] != master)
            set_cut(master->host, of->masters[i].host, is_cut, is_cut);
}

/* Nodes reach it. */
static void apart_begins(struct sim_node *node)
{
    (void)node;
    part(strike(), true);
}

static void apart_ends(struct sim_node *node)
{
    (void)node;
    part(struck, false);
}

/* A node is with it. */
static void alone_begins(struct sim_node *node)
{
    part(strike(), true);
    for (unsigned i = 0; i < of->node_count; i++)
        if (&of->nodes[i] != node)
            set_cut(of->nodes[i].host, struck->host, true, true);
}

static void alone_ends(struct sim_node *node)
{
    (void)node;
    part(struck, false);
    for (unsigned i = 0; i < of->node_count; i++)
        set_cut(of->nodes[i].host, struck->host, false, false);
}

static void calendar_begins(struct sim_node *node)
{
    const int64_t off_s = (int64_t)sim_plan_draw_strength(0, 2 * CALENDAR_MOST_S) - CALENDAR_MOST_S;

    (void)node;
    was_spared = !sim_load_hold_schedules(true);
    if (was_spared)
        return;
    strike()->host->clock.off_ns = off_s * NS_PER_S;
    sim_trace("faults", "its calendar is off by %lld s", (long long)off_s);
}

static void calendar_ends(struct sim_node *node)
{
    (void)node;
    if (was_spared)
        return;
    struck->host->clock.off_ns = 0;
    sim_load_hold_schedules(false);
}

static void scripts_begin(struct sim_node *node)
{
    (void)node;
    sim_server_tell(strike()->server, "SCRIPT FLUSH");
}

static void moves_begin(struct sim_node *node)
{
    (void)node;
    sim_mover_start();
}

static void moves_end(struct sim_node *node)
{
    (void)node;
    sim_mover_stop();
}

static void back_begins(struct sim_node *node)
{
    (void)node;
    was_spared = !sim_mover_hold();
    if (was_spared)
        return;
    strike();
    sim_setback_start(of, struck->server, struck == sim_mover_owner_of(of->accounts[0].id));
}

static void back_ends(struct sim_node *node)
{
    (void)node;
    if (was_spared)
        return;
    sim_setback_stop();
    sim_mover_release();
}

static const struct sim_fault FAULTS[] = {
    {"cut", NEEDS_LINK, cut_begins, cut_ends, false, 0},
    {"deaf", NEEDS_LINK, deafness_begins, cut_ends, false, 0},
    {"mute", NEEDS_LINK, muteness_begins, cut_ends, false, 0},
    {"burst", NEEDS_DELAY, burst_begins, delay_ends, false, 0},
    {"late", NEEDS_DELAY, lateness_begins, delay_ends, false, 0},
    {"reset", NEEDS_LINK, reset_begins, NULL, false, 0},
    {"redis-kill", NEEDS_REDIS, kill_begins, kill_ends, false, 0},
    {"redis-empty", NEEDS_REDIS, empty_begins, empty_ends, false, 0},
    {"redis-apart", NEEDS_REDIS, apart_begins, apart_ends, false, 0},
    {"redis-alone", NEEDS_REDIS, alone_begins, alone_ends, false, 0},
    {"redis-calendar", NEEDS_REDIS, calendar_begins, calendar_ends, false, 0},
    {"scripts", NEEDS_REDIS, scripts_begin, NULL, false, 0},
    {"moves", NEEDS_SLOTS, moves_begin, moves_end, false, 0},
    {"moves-too", NEEDS_SLOTS, moves_begin, moves_end, false, 0}, /* so that it is drawn more often */
    {"goes-back", NEEDS_ALL, back_begins, back_ends, false, SIM_SETBACK_NS / NS_PER_MS},
};

const struct sim_fault *sim_cluster_faults(size_t *ret_count)
{
    *ret_count = sizeof FAULTS / sizeof *FAULTS;
    return FAULTS;
}
