#include "calm.h"
#include "cluster.h"
#include "faults.h"
#include "http.h"
#include "judge.h"
#include "load.h"
#include "orphans.h"
#include "schedule.h"
#include "trace.h"
#include "trail.h"
#include "uses.h"
#include <signal.h>

/* CALM_S: everybody signs in meanwhile, for which an authenticator needs up to 30 s. FAILOVER_S: one may begin with the
 * last fault. */
enum {
    DOUBT_S = 5,
    WHOLE_S = 4,
    REST_S = 5,
    FAILOVER_S = 5,
    PROOF_S = 3,
    CALM_S = 36,
    PAUSE_S = 2,
    ENDS_WITHIN_S = 40,
    WRITTEN_S = 4
};

#define NS_PER_S UINT64_C(1000000000)

static struct sim_deployment *of;
static bool stops;

/* False: it stops. */
static bool run_for(uint64_t seconds)
{
    const uint64_t until_ns = sim_now_ns() + seconds * NS_PER_S;

    while (sim_step(until_ns))
        if (stops && sim_counts.violations > 0)
            return false;
    return true;
}

/* A cluster's primary that comes back serves after cluster-node-timeout, or two seconds, as Redis does; and one whose
 * calendar was off finds only after a while that it has not heard from others. Only then the last fault has ended. */
static bool await_store(void)
{
    if (of->store != SIM_STORE_CLUSTER)
        return true;
    if (!run_for(DOUBT_S))
        return false;
    for (unsigned i = 0; i < WHOLE_S && !sim_cluster_is_whole(of); i++)
        if (!run_for(1))
            return false;
    if (!sim_cluster_is_whole(of))
        sim_judge_violation("the cluster is not whole %d s after the last fault", WHOLE_S);
    return true;
}

static unsigned rest_s(void)
{
    return of->store == SIM_STORE_SENTINEL ? REST_S + FAILOVER_S : REST_S;
}

static bool see_that_it_lives(void)
{
    const struct sim_counts before = sim_counts;
    uint64_t unanswered;

    if (!run_for(PROOF_S))
        return false;
    unanswered = sim_counts.unavailable + sim_counts.unknown - before.unavailable - before.unknown;
    if (unanswered > 0)
        sim_judge_violation("%llu checks are not answered %u s after the last fault", (unsigned long long)unanswered,
                            rest_s());
    if (sim_counts.accepted == before.accepted)
        sim_judge_violation("nothing is accepted %u s after the last fault", rest_s());
    if (sim_counts.table_accepted == before.table_accepted)
        sim_judge_violation("no table accepts anything %u s after the last fault", rest_s());
    return true;
}

/* It ends by itself, and comes back. */
static bool stop_node(struct sim_node *node)
{
    sim_process_signal(node->process, SIGTERM);
    for (unsigned s = 0; node->process && s < ENDS_WITHIN_S; s++)
        if (!run_for(1))
            return false;
    if (node->process)
        sim_judge_violation("%s does not end %d s after it was told to", node->host->name, ENDS_WITHIN_S);
    else
        sim_node_start(node);
    return true;
}

void sim_calm_run(struct sim_deployment *deployment, bool stops_at_first)
{
    uint64_t since_ns;

    of = deployment;
    stops = stops_at_first;
    sim_faults_stop();
    if (!await_store() || !run_for(rest_s()))
        return;
    sim_http_forget_idle();
    since_ns = sim_now_ns();
    sim_judge_calm(since_ns, UINT64_MAX);
    if (!see_that_it_lives() || !run_for(CALM_S))
        return;
    sim_judge_calm(since_ns, sim_now_ns());
    if (!run_for(PAUSE_S) || !stop_node(&of->nodes[0]))
        return;
    sim_load_stop();
    if (!run_for(WRITTEN_S))
        return;
    sim_uses_judge(of, &of->nodes[of->node_count - 1], since_ns);
    sim_orphans_judge(of, &of->nodes[of->node_count - 1]);
    sim_trail_judge(of, &of->nodes[of->node_count - 1]);
}
