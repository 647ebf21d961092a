/* What goes wrong in several steps, and needs everything for itself: ways to break the promise, if a rule does not keep
 * it. */
#include "failovers_internal.h"
#include "schedule.h"
#include "trace.h"
#include <stdio.h>

enum { AGAIN_MS = 10, GIVE_UP_MS = 6000 };

#define NS_PER_MS UINT64_C(1000000)

struct step {
    uint64_t least_ms, most_ms; /* before it */
    bool (*run)(void);          /* false: again soon */
};

static struct {
    const struct step *step; /* NULL: all are done */
    struct sim_event next;
    uint64_t since_ns; /* the last step was done */
    struct sim_node *node;
} plot;

static void go_on(struct sim_event *next)
{
    const bool is_done = plot.step->run() || sim_now_ns() > plot.since_ns + GIVE_UP_MS * NS_PER_MS;

    plot.step += is_done;
    plot.since_ns = is_done ? sim_now_ns() : plot.since_ns;
    if (plot.step->run)
        sim_event_in(next,
                     (is_done ? sim_draw_between(plot.step->least_ms, plot.step->most_ms) : AGAIN_MS) * NS_PER_MS);
}

static void plot_begin(const struct step *steps, struct sim_node *node)
{
    plot.step = steps;
    plot.since_ns = sim_now_ns();
    plot.node = node;
    plot.next.run = go_on;
    sim_event_in(&plot.next, sim_draw_between(steps->least_ms, steps->most_ms) * NS_PER_MS);
}

void sim_plot_ends(struct sim_node *node)
{
    (void)node;
    sim_event_cancel(&plot.next);
    sim_heal_all();
    for (unsigned i = 0; i < SIM_WATCHED; i++) {
        if (!sim_server_is_up(sim_scene.redises->servers[i]))
            sim_server_restart(sim_scene.redises->servers[i], SIM_DISK_WHOLE);
        else
            sim_server_freeze(sim_scene.redises->servers[i], false);
    }
    for (unsigned i = 0; i < sim_scene.of->node_count; i++) {
        if (!sim_scene.of->nodes[i].process)
            sim_node_start(&sim_scene.of->nodes[i]);
        else
            sim_process_resume(sim_scene.of->nodes[i].process);
    }
}

static void end_node(struct sim_node *node)
{
    if (node->process)
        sim_node_kill(node);
}

static bool is_replaced(void)
{
    return sim_scene.redises->master != sim_scene.old;
}

/* A machine with the master and a node freezes, and its clock goes on. It thaws when others have answered revocations,
 * and does not hear them: the old master goes on by the replicas that it remembers. */

static bool freeze_both(void)
{
    sim_scene_draw();
    sim_trace(sim_scene.redises->hosts[sim_scene.old]->name, "redis is paused, with %s", plot.node->host->name);
    sim_server_freeze(sim_scene.redises->servers[sim_scene.old], true);
    sim_process_pause(plot.node->process);
    return true;
}

static bool part_both(void)
{
    sim_part((struct sim_host *const[]){sim_scene.redises->hosts[sim_scene.old], plot.node->host,
                                        sim_scene.redises->sentinel_hosts[0], NULL});
    return true;
}

static bool thaw_both(void)
{
    sim_trace(sim_scene.redises->hosts[sim_scene.old]->name, "redis goes on, with %s", plot.node->host->name);
    sim_server_freeze(sim_scene.redises->servers[sim_scene.old], false);
    sim_process_resume(plot.node->process);
    return true;
}

void sim_beside_begins(struct sim_node *node)
{
    static const struct step STEPS[] = {
        {1500, 2500, freeze_both}, {600, 900, part_both}, {1, 1, is_replaced}, {1500, 3500, thaw_both}, {0, 0, NULL}};

    plot_begin(STEPS, node);
}

/* A replica lags; the master and the other replica, who acknowledged, are lost at once. One node has not heard what was
 * ended meanwhile, and is the first at the new master. */

static bool cut_laggard(void)
{
    sim_scene_draw();
    const unsigned lag = SIM_WATCHED - sim_scene.old - sim_scene.other;
    sim_isolate(sim_scene.redises->hosts[lag],
                (struct sim_host *const[]){sim_scene.redises->sentinel_hosts[0], sim_scene.redises->sentinel_hosts[1],
                                           sim_scene.redises->sentinel_hosts[2], NULL});
    end_node(plot.node);
    return true;
}

static bool lose_both(void)
{
    const unsigned lag = SIM_WATCHED - sim_scene.old - sim_scene.other;

    sim_server_kill(sim_scene.redises->servers[sim_scene.old]);
    sim_server_kill(sim_scene.redises->servers[sim_scene.other]);
    sim_cut(sim_scene.redises->hosts[lag], plot.node->host, false);
    sim_cut(sim_scene.redises->hosts[lag], sim_scene.redises->hosts[sim_scene.other], false);
    return true;
}

/* Somebody has the other one follow the new master. */
static bool bring_other(void)
{
    char master[32];

    if (!is_replaced())
        return false;
    snprintf(master, sizeof master, "10.0.0.%u 6379", 100 + sim_scene.redises->master);
    sim_server_configure(sim_scene.redises->servers[sim_scene.other], "replicaof", master);
    sim_server_restart(sim_scene.redises->servers[sim_scene.other], SIM_DISK_WHOLE);
    sim_node_start(plot.node);
    return true;
}

static bool heal_everything(void)
{
    sim_heal_all();
    return true;
}

static bool bring_old(void)
{
    sim_server_restart(sim_scene.redises->servers[sim_scene.old], SIM_DISK_WHOLE);
    return true;
}

void sim_lagging_begins(struct sim_node *node)
{
    static const struct step STEPS[] = {{1500, 2500, cut_laggard},     {600, 2000, lose_both}, {1, 1, bring_other},
                                        {1000, 2500, heal_everything}, {500, 2000, bring_old}, {0, 0, NULL}};

    plot_begin(STEPS, node);
}
