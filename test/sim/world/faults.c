#include "faults.h"
#include "base/check.h"
#include "cluster.h"
#include "failovers.h"
#include "faults_internal.h"
#include "plan.h"
#include "readers.h"
#include "schedule.h"
#include "setback.h"
#include "stall.h"
#include "trace.h"
#include <signal.h>
#include <string.h>

/* Up to LANES faults last at the same time, each of something else. They last up to three leases; clocks run up to 10 %
 * fast or slow, as the product allows them. */
enum {
    LANES = 3,
    FAULTS_MAX = 40,
    REST_MOST_MS = 1500,
    LAST_MOST_MS = 3000,
    LAG_MOST_MS = 9000, /* until it matters that a connection lags, others have gone on for more than a lease */
    PACE_MOST_PPM = 100 * 1000,
    BURST_MOST_MS = 900,
    CALENDAR_MOST_S = 10,
};

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define TROUBLED_NS (UINT64_C(5000) * NS_PER_MS) /* until it is itself again */
#define LEAST_DELAY_NS (NS_PER_MS / 32)
#define MOST_DELAY_NS (NS_PER_MS / 2)

struct lane {
    struct sim_event next;
    uint64_t next_ns;                /* when that is due, whether somebody was busy then or not */
    const struct sim_fault *present; /* NULL: none */
    unsigned number;                 /* of the present one */
    struct sim_node *node;
};

static struct sim_deployment *of;
static struct lane lanes[LANES];
static uint64_t troubled_ns[SIM_NODES_MAX]; /* when each node was last not itself; UINT64_MAX: now */

/* Of a node's process */

static void pause_begins(struct sim_node *node)
{
    sim_process_pause(node->process);
}

static void pause_ends(struct sim_node *node)
{
    sim_process_resume(node->process);
}

static void kill_begins(struct sim_node *node)
{
    sim_node_kill(node);
}

static void kill_ends(struct sim_node *node)
{
    sim_node_start(node);
}

/* It may have ended by itself meanwhile. */
static void drain_begins(struct sim_node *node)
{
    sim_process_signal(node->process, SIGTERM);
}

static void drain_ends(struct sim_node *node)
{
    if (node->process)
        sim_node_kill(node);
    sim_node_start(node);
}

static void hang_up_begins(struct sim_node *node)
{
    sim_process_signal(node->process, SIGHUP);
}

/* Nobody is told that its machine is off. */
static void power_fails(struct sim_node *node)
{
    sim_node_kill(node);
    sim_readers_power(node, false);
    sim_host_power(node->host, false);
}

static void power_returns(struct sim_node *node)
{
    sim_host_power(node->host, true);
    sim_node_start(node);
    sim_readers_power(node, true);
}

/* Between a node and Redis */

static void cut_begins(struct sim_node *node)
{
    sim_link_cut(node->host, of->redis_host, true);
    sim_link_cut(of->redis_host, node->host, true);
}

static void cut_ends(struct sim_node *node)
{
    sim_link_cut(node->host, of->redis_host, false);
    sim_link_cut(of->redis_host, node->host, false);
}

/* What it sends arrives, and it hears nothing. */
static void deafness_begins(struct sim_node *node)
{
    sim_link_cut(of->redis_host, node->host, true);
}

static void muteness_begins(struct sim_node *node)
{
    sim_link_cut(node->host, of->redis_host, true);
}

static void delay(struct sim_node *node, uint64_t least_ns, uint64_t most_ns)
{
    sim_link_delay(node->host, of->redis_host, least_ns, most_ns);
    sim_link_delay(of->redis_host, node->host, least_ns, most_ns);
}

static void burst_begins(struct sim_node *node)
{
    delay(node, 0, sim_plan_draw_strength(1, BURST_MOST_MS) * NS_PER_MS);
}

static void delay_ends(struct sim_node *node)
{
    delay(node, LEAST_DELAY_NS, MOST_DELAY_NS);
}

/* What it hears is late alone. */
static void lateness_begins(struct sim_node *node)
{
    const uint64_t most_ns = sim_plan_draw_strength(1, BURST_MOST_MS) * NS_PER_MS;

    sim_link_delay(of->redis_host, node->host, most_ns / 2, most_ns);
}

/* What is on its way, and late, is lost: whoever asked cannot know what Redis has done. */
static void burst_breaks(struct sim_node *node)
{
    sim_connections_reset(node->host, of->redis_host);
    delay_ends(node);
}

static void stall_begins(struct sim_node *node)
{
    sim_stall_start(of, node);
}

static void reset_begins(struct sim_node *node)
{
    sim_connections_reset(node->host, of->redis_host);
}

/* Between a node and its clients */

static void set_reachable(struct sim_node *node, bool is_reachable)
{
    sim_link_cut(node->host, of->clients, !is_reachable);
    sim_link_cut(of->clients, node->host, !is_reachable);
}

static void unreachable_begins(struct sim_node *node)
{
    set_reachable(node, false);
}

static void unreachable_ends(struct sim_node *node)
{
    set_reachable(node, true);
}

/* Clocks */

static void pace_begins(struct sim_node *node)
{
    sim_host_pace(node->host, (int64_t)sim_plan_draw_strength(0, 2 * PACE_MOST_PPM) - PACE_MOST_PPM);
}

/* The calendar alone, which leases must not ask. */
static void calendar_begins(struct sim_node *node)
{
    sim_host_set_calendar(node->host,
                          ((int64_t)sim_plan_draw_strength(0, 2 * CALENDAR_MOST_S) - CALENDAR_MOST_S) * NS_PER_S);
}

/* Redis */

static void redis_kill_begins(struct sim_node *node)
{
    (void)node;
    sim_server_kill(of->redis);
}

static void redis_kill_ends(struct sim_node *node)
{
    (void)node;
    sim_server_restart(of->redis, SIM_DISK_WHOLE);
}

static void empty_begins(struct sim_node *node)
{
    (void)node;
    sim_server_empty(of->redis);
}

static void empty_ends(struct sim_node *node)
{
    (void)node;
    sim_server_refill(of->redis);
}

static void demotion_begins(struct sim_node *node)
{
    (void)node;
    sim_server_tell(of->redis, "REPLICAOF 10.0.0.99 6379");
}

static void demotion_ends(struct sim_node *node)
{
    (void)node;
    sim_server_tell(of->redis, "REPLICAOF NO ONE");
}

static void scripts_begin(struct sim_node *node)
{
    (void)node;
    sim_server_tell(of->redis, "SCRIPT FLUSH");
}

static void back_begins(struct sim_node *node)
{
    (void)node;
    sim_setback_start(of, of->redis, true);
}

static void back_ends(struct sim_node *node)
{
    (void)node;
    sim_setback_stop();
}

static const struct sim_fault FAULTS[] = {
    {"pause", NEEDS_PROCESS, pause_begins, pause_ends, false, 0},
    {"kill", NEEDS_PROCESS, kill_begins, kill_ends, false, 0},
    {"power", NEEDS_PROCESS, power_fails, power_returns, false, 0},
    {"drain", NEEDS_PROCESS, drain_begins, drain_ends, false, 0},
    {"hang-up", NEEDS_PROCESS, hang_up_begins, NULL, false, 0},
    {"cut", NEEDS_LINK, cut_begins, cut_ends, true, 0},
    {"deaf", NEEDS_LINK, deafness_begins, cut_ends, true, 0},
    {"mute", NEEDS_LINK, muteness_begins, cut_ends, true, 0},
    {"burst", NEEDS_DELAY, burst_begins, delay_ends, true, 0},
    {"torn", NEEDS_DELAY, burst_begins, burst_breaks, true, 0},
    {"late", NEEDS_DELAY, lateness_begins, delay_ends, true, 0},
    {"stall", NEEDS_LAG, stall_begins, sim_stall_stop, true, 0},
    {"reset", NEEDS_LINK, reset_begins, NULL, true, 0},
    {"unreachable", NEEDS_CLIENTS, unreachable_begins, unreachable_ends, false, 0},
    {"pace", NEEDS_CLOCK, pace_begins, NULL, false, 0},
    {"calendar", NEEDS_CLOCK, calendar_begins, NULL, false, 0},
    {"redis-kill", NEEDS_REDIS, redis_kill_begins, redis_kill_ends, true, 0},
    {"redis-empty", NEEDS_REDIS, empty_begins, empty_ends, true, 0},
    {"redis-demoted", NEEDS_REDIS, demotion_begins, demotion_ends, true, 0},
    {"scripts", NEEDS_REDIS, scripts_begin, NULL, true, 0},
    {"goes-back", NEEDS_ALL, back_begins, back_ends, true, SIM_SETBACK_NS / NS_PER_MS},
};

/* Those of this store. */
static const struct sim_fault *usable[FAULTS_MAX];
static size_t usable_count;

static void use(const struct sim_fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        CHECK(usable_count < FAULTS_MAX);
        if (!faults[i].of_one_redis || of->store == SIM_STORE_SINGLE)
            usable[usable_count++] = &faults[i];
    }
}

static void choose_faults(void)
{
    const struct sim_fault *faults;
    size_t count;

    usable_count = 0;
    use(FAULTS, sizeof FAULTS / sizeof *FAULTS);
    if (of->store == SIM_STORE_SINGLE)
        return;
    if (of->store == SIM_STORE_CLUSTER) {
        sim_cluster_faults_begin(of);
        faults = sim_cluster_faults(&count);
    } else {
        sim_failovers_start(of);
        faults = sim_failovers(&count);
    }
    use(faults, count);
}

static bool is_free(const struct sim_fault *fault, const struct sim_node *node)
{
    for (const struct lane *lane = lanes; lane < lanes + LANES; lane++) {
        const struct sim_fault *other = lane->present;

        if (other && (other->need == NEEDS_ALL ||
                      (other->need == fault->need &&
                       (lane->node == node || fault->need == NEEDS_REDIS || fault->need == NEEDS_SLOTS))))
            return false;
    }
    return true;
}

static void note_trouble(const struct sim_fault *fault, const struct sim_node *node, uint64_t until_ns)
{
    if (fault->need == NEEDS_PROCESS || fault->need == NEEDS_CLIENTS)
        troubled_ns[node - of->nodes] = until_ns;
    for (unsigned i = 0; fault->need == NEEDS_ALL && i < of->node_count; i++)
        troubled_ns[i] = until_ns;
}

static void end_present(struct lane *lane)
{
    if (!lane->present)
        return;
    if (sim_plan_happens(lane->number)) {
        sim_trace("faults", "%u: %s of %s ends", lane->number, lane->present->name, lane->node->host->name);
        lane->present->end(lane->node);
        note_trouble(lane->present, lane->node, sim_now_ns());
    }
    lane->present = NULL;
}

/* Often where something is wrong already. */
static struct sim_node *draw_node(void)
{
    const struct lane *lane = &lanes[sim_plan_draw_below(LANES)];

    return lane->present && sim_plan_draw_below(2) == 0 ? lane->node : &of->nodes[sim_plan_draw_below(of->node_count)];
}

static void begin(struct lane *lane, const struct sim_fault *fault, struct sim_node *node)
{
    for (struct lane *other = lanes; fault->need == NEEDS_ALL && other < lanes + LANES; other++)
        end_present(other);
    lane->number = sim_plan_next();
    if (sim_plan_happens(lane->number)) {
        sim_trace("faults", "%u: %s of %s", lane->number, fault->name, node->host->name);
        fault->begin(node);
        note_trouble(fault, node, fault->end ? UINT64_MAX : sim_now_ns());
    }
    lane->node = node;
    lane->present = fault->end ? fault : NULL;
}

static void go_on_in(struct lane *lane, uint64_t ns)
{
    lane->next_ns += ns;
    sim_event_at(&lane->next, lane->next_ns);
}

static void on_next(struct sim_event *event)
{
    struct lane *lane = LIST_ENTRY(event, struct lane, next);
    const struct sim_fault *fault = usable[sim_plan_draw_below(usable_count)];
    struct sim_node *node = draw_node();

    if (lane->present) {
        end_present(lane);
        go_on_in(lane, sim_plan_draw_between(1, REST_MOST_MS) * NS_PER_MS);
        return;
    }
    if (is_free(fault, node))
        begin(lane, fault, node);
    if (lane->present && fault->lasts_ms > 0)
        go_on_in(lane, fault->lasts_ms * NS_PER_MS);
    else
        go_on_in(lane, sim_plan_draw_between(1, fault->need == NEEDS_LAG ? LAG_MOST_MS : LAST_MOST_MS) * NS_PER_MS);
}

bool sim_faults_spared(const struct sim_node *node, uint64_t since_ns)
{
    const uint64_t ns = of ? troubled_ns[node - of->nodes] : 0;

    return ns < UINT64_MAX && ns + TROUBLED_NS < since_ns;
}

/* Lanes never meet at the same moment, at which others' draws would order them. */
void sim_faults_start(struct sim_deployment *deployment, uint64_t seed)
{
    of = deployment;
    sim_plan_begin(seed);
    sim_readers_trouble(true);
    choose_faults();
    memset(troubled_ns, 0, sizeof troubled_ns);
    for (struct lane *lane = lanes; lane < lanes + LANES; lane++) {
        *lane = (struct lane){.next.run = on_next, .next_ns = sim_now_ns() + (uint64_t)(lane - lanes)};
        go_on_in(lane, sim_plan_draw_between(1, REST_MOST_MS) * NS_PER_MS);
    }
}

void sim_faults_stop(void)
{
    sim_readers_trouble(false);
    for (struct lane *lane = lanes; lane < lanes + LANES; lane++) {
        sim_event_cancel(&lane->next);
        end_present(lane);
    }
    for (unsigned i = 0; i < of->node_count; i++) {
        sim_host_pace(of->nodes[i].host, 0);
        sim_host_set_calendar(of->nodes[i].host, 0);
    }
}
