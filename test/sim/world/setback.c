#include "setback.h"
#include "load.h"
#include "people.h"
#include "schedule.h"
#include "trace.h"

enum { SETTLE_MS = 2000, PART_MOST_MS = 1500, AWAY_MOST_MS = 800, FIRST_ONE_IN = 4, LAST_ONE_IN = 2 };

#define NS_PER_MS UINT64_C(1000000)

static struct sim_deployment *of;
static struct sim_server *redis;
static bool loses_keys;
static struct sim_event next;
static bool is_on;
static uint64_t copied_ns;
static struct sim_node *first, *last; /* that are ended; NULL: none is */

static void after(void (*run)(struct sim_event *event), uint64_t least_ms, uint64_t most_ms)
{
    next.run = run;
    sim_event_in(&next, sim_draw_between(least_ms, most_ms) * NS_PER_MS);
}

static void come_back(struct sim_event *event)
{
    (void)event;
    sim_node_start(last);
}

static void strike(struct sim_event *event)
{
    (void)event;
    if (last)
        sim_node_kill(last);
    sim_server_kill(redis);
    if (loses_keys)
        sim_load_lost(copied_ns);
    sim_people_lost(copied_ns);
    sim_server_restart(redis, SIM_DISK_COPY);
    if (last)
        after(come_back, 1, AWAY_MOST_MS);
}

static void end_first(struct sim_event *event)
{
    (void)event;
    if (first) {
        sim_node_kill(first);
        sim_node_start(first);
    }
    after(strike, 1, PART_MOST_MS);
}

static void copy(struct sim_event *event)
{
    (void)event;
    sim_trace(sim_server_name(redis), "redis is copied");
    copied_ns = sim_now_ns();
    sim_server_copy(redis);
    after(end_first, 1, PART_MOST_MS);
}

void sim_setback_start(struct sim_deployment *deployment, struct sim_server *server, bool has_keys)
{
    const uint64_t number = sim_draw_below(deployment->node_count);

    of = deployment;
    redis = server;
    loses_keys = has_keys;
    is_on = true;
    first = sim_draw_below(FIRST_ONE_IN) == 0 && of->node_count > 2 ? &of->nodes[number] : NULL;
    last = sim_draw_below(LAST_ONE_IN) == 0 && of->node_count > 1 ? &of->nodes[(number + 1) % of->node_count] : NULL;
    after(copy, SETTLE_MS, SETTLE_MS);
}

bool sim_setback_is_on(void)
{
    return is_on;
}

void sim_setback_stop(void)
{
    const bool is_away = sim_event_waits(&next) && next.run == come_back;

    is_on = false;
    sim_event_cancel(&next);
    if (is_away)
        come_back(&next);
}
