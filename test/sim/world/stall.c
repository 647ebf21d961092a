#include "stall.h"
#include "base/list.h"
#include "schedule.h"
#include "trace.h"

enum { TURN_MOST_MS = 2000, BREAK_ONE_IN = 2, CUT_ONE_IN = 4, BACK_ONE_IN = 4 };

#define NS_PER_MS UINT64_C(1000000)
/* Before, a stream may be empty: a node that knows no entry misses none that is cut. */
#define FIRST_CUT_NS (UINT64_C(30000) * NS_PER_MS)

static struct stall {
    struct sim_event turn;
    struct sim_node *node;
} stalls[SIM_NODES_MAX];

static struct sim_deployment *of;

/* About as long as nodes take to hear each other, as a lease, or as a revocation waits for nodes and more. */
static uint64_t draw_lag(void)
{
    static const uint64_t MOST_MS[] = {100, 1500, 3000, 3000};

    return MOST_MS[sim_draw_below(sizeof MOST_MS / sizeof *MOST_MS)] * NS_PER_MS;
}

static void break_one(const struct sim_node *node)
{
    if (sim_draw_below(CUT_ONE_IN) == 0 && sim_spent_ns() > FIRST_CUT_NS)
        sim_server_tell(of->redis, "XTRIM chatelaine:inv_log MAXLEN 1");
    sim_trace("faults", "a connection of %s breaks", node->host->name);
    sim_connection_reset(node->host, of->redis_host);
}

static void on_turn(struct sim_event *event)
{
    const struct sim_node *node = LIST_ENTRY(event, struct stall, turn)->node;

    if (sim_draw_below(BREAK_ONE_IN) == 0)
        break_one(node);
    sim_connections_lag(of->redis_host, node->host, draw_lag());
    if (sim_draw_below(BACK_ONE_IN) == 0)
        sim_connections_lag(node->host, of->redis_host, draw_lag());
    sim_event_in(event, sim_draw_between(1, TURN_MOST_MS) * NS_PER_MS);
}

void sim_stall_start(struct sim_deployment *deployment, struct sim_node *node)
{
    struct stall *stall = &stalls[node - deployment->nodes];

    of = deployment;
    *stall = (struct stall){.turn.run = on_turn, .node = node};
    sim_event_in(&stall->turn, 1);
}

void sim_stall_stop(struct sim_node *node)
{
    sim_event_cancel(&stalls[node - of->nodes].turn);
    sim_connections_lag(of->redis_host, node->host, 0);
    sim_connections_lag(node->host, of->redis_host, 0);
}
