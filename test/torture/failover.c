#include "failover.h"
#include "probe.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    STEP_MS = 10,
    WHOLE_WITHIN_MS = 60000, /* Sentinels wait some ten seconds before they tell a master of old that it is none */
    STOPPED_FOR_MS = 6000,   /* long enough for a failover, and a little into what follows it */
    UNHEARD_FOR_MS = 10000,  /* some time in which revocations are answered that the first node cannot hear of */
    LAGS_MAX_MS = 3000,      /* Sentinels mend a replica that follows somebody else after 8 s */
    AWAKE_FOR_MS = 4000, /* as long as a master can go on by the count of its replicas that it remembers, and a lease */
};

static void await_promotion(struct cluster *cluster, int64_t start_ms, struct failover *ret_failover)
{
    while (sentinels_master(&cluster->sentinels) == ret_failover->from) {
        if (probe_since(start_ms) > PROBE_GIVE_UP_MS)
            test_give_up("the Sentinels name no other master");
        poll(NULL, 0, STEP_MS);
    }
    ret_failover->to = sentinels_master(&cluster->sentinels);
    ret_failover->named_ms = probe_since(start_ms);
}

static void measure(struct cluster *cluster, unsigned first_node, const char *probe_id, int64_t start_ms,
                    struct failover *ret_failover)
{
    probe_measure(cluster, &cluster->accounts[0], first_node, probe_id, start_ms, &ret_failover->times);
}

static void wait_until(int64_t start_ms, int64_t ms)
{
    if (probe_since(start_ms) < ms)
        poll(NULL, 0, (int)(ms - probe_since(start_ms)));
}

/* The ways to lose a master; each returns when it is back. */

/* Then the new master has too few replicas until the lost one is back. */
static bool must_be_whole(const struct cluster *cluster)
{
    return cluster->min_replicas + 1 >= cluster->sentinels.redis_count;
}

static void lose_killed(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover)
{
    struct redis_server *lost = cluster->sentinels.redises[ret_failover->from];

    redis_server_kill(lost);
    await_promotion(cluster, start_ms, ret_failover);
    if (must_be_whole(cluster))
        redis_server_restart(lost);
    measure(cluster, 0, probe_id, start_ms, ret_failover);
    if (!must_be_whole(cluster))
        redis_server_restart(lost);
}

static void lose_stopped(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover)
{
    struct redis_server *lost = cluster->sentinels.redises[ret_failover->from];

    redis_server_freeze(lost);
    await_promotion(cluster, start_ms, ret_failover);
    if (must_be_whole(cluster))
        redis_server_thaw(lost);
    measure(cluster, 0, probe_id, start_ms, ret_failover);
    wait_until(start_ms, STOPPED_FOR_MS);
    redis_server_thaw(lost);
}

/* By a Sentinel: so the socket of the stopped one holds what replicas have sent it meanwhile, which it will take for
 * news. */
static void await_missed(struct cluster *cluster, int64_t start_ms)
{
    char reply[4096];

    do {
        if (probe_since(start_ms) > PROBE_GIVE_UP_MS)
            test_give_up("no Sentinel misses the master");
        poll(NULL, 0, STEP_MS);
        redis_server_ask(&cluster->sentinels.servers[1], reply, sizeof reply, "SENTINEL", "MASTER",
                         SENTINELS_MASTER_NAME, NULL);
    } while (!strstr(reply, "s_down"));
}

/* From replicas and Sentinels: whoever has not named himself as a link of a node. */
static void hold_first_redis(struct cluster *cluster, bool is_held)
{
    for (unsigned direction = 0; direction < REDIS_PROXY_DIRECTIONS; direction++)
        redis_proxy_hold(cluster->proxy, 0, REDIS_PROXY_UNNAMED, direction, is_held);
}

/* A host with the master and a node on it freezes and thaws; its clock goes on. */
static void lose_beside(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover)
{
    struct redis_server *lost = cluster->sentinels.redises[ret_failover->from];
    const struct process *node = &cluster->fixture.nodes[0].process;

    pthread_mutex_lock(&cluster->node_locks[0]);
    redis_server_freeze(&cluster->sentinels.servers[0]);
    process_signal(node, SIGSTOP);
    redis_server_freeze(lost);
    await_missed(cluster, start_ms);
    hold_first_redis(cluster, ret_failover->from == 0 && !must_be_whole(cluster));
    await_promotion(cluster, start_ms, ret_failover);
    if (!must_be_whole(cluster))
        measure(cluster, 1, probe_id, start_ms, ret_failover);
    redis_server_thaw(lost);
    process_signal(node, SIGCONT);
    if (must_be_whole(cluster))
        measure(cluster, 1, probe_id, start_ms, ret_failover);
    poll(NULL, 0, AWAKE_FOR_MS);
    hold_first_redis(cluster, false);
    redis_server_thaw(&cluster->sentinels.servers[0]);
    pthread_mutex_unlock(&cluster->node_locks[0]);
}

/* The first node keeps its connections, for the old master wakes before they count as dead. */
static void lose_unheard(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover)
{
    redis_server_freeze(&cluster->sentinels.servers[0]);
    redis_server_freeze(cluster->sentinels.redises[ret_failover->from]);
    await_promotion(cluster, start_ms, ret_failover);
    redis_server_thaw(cluster->sentinels.redises[ret_failover->from]);
    measure(cluster, 1, probe_id, start_ms, ret_failover);
    wait_until(start_ms, UNHEARD_FOR_MS);
    redis_server_thaw(&cluster->sentinels.servers[0]);
}

/* It holds the key, so it has all from before. */
static void await_key(const struct redis_server *redis, const char *id)
{
    struct deadline deadline = deadline_in(PROBE_GIVE_UP_MS);
    char name[64], reply[16] = "";

    snprintf(name, sizeof name, "chatelaine:id:%s", id);
    while (strcmp(reply, "1") != 0) {
        if (deadline_left_ms(deadline) <= 0)
            test_give_up("a replica does not get %s", name);
        redis_server_ask(redis, reply, sizeof reply, "EXISTS", name, NULL);
        poll(NULL, 0, STEP_MS);
    }
}

/* A replica lags; the master and the other replica, which acknowledged everything, are lost at once, in half of the
 * cases with a node. So the store goes back. The replica is promoted by the Sentinels, or at a person's word. */
static void lose_to_lagging(struct cluster *cluster, const char *probe_id, struct failover *ret_failover, bool by_hand)
{
    struct sentinels *sentinels = &cluster->sentinels;
    unsigned lagging = (ret_failover->from + 1 + ret_failover->turn / 4 % 2) % sentinels->redis_count;
    unsigned other = SENTINELS_REDISES_MAX - ret_failover->from - lagging, node = ret_failover->turn % CLUSTER_NODES;
    unsigned living = (1U << CLUSTER_NODES) - 1;
    bool ends_node = (ret_failover->turn + ret_failover->turn / 2) % 2 == 0;
    char reply[256] = "";

    await_key(sentinels->redises[lagging], probe_id);
    size_t loss = history_loss_begins(ret_failover->history, history_now_ns());
    redis_server_tell(sentinels->redises[lagging], "REPLICAOF", "127.0.0.1", "1", NULL);
    poll(NULL, 0, LAGS_MAX_MS / 2 + (int)(ret_failover->turn * 677 % (LAGS_MAX_MS / 2)));
    int64_t start_ms = deadline_now_ms();
    pthread_mutex_lock(&cluster->node_locks[node]);
    if (ends_node) {
        living &= ~(1U << node);
        cluster_node_kill(cluster, node);
    }
    history_loss_strikes(ret_failover->history, loss, history_now_ns());
    redis_server_kill(sentinels->redises[ret_failover->from]);
    redis_server_kill(sentinels->redises[other]);
    while (by_hand && strcmp(reply, "OK") != 0 && probe_since(start_ms) < PROBE_GIVE_UP_MS) {
        redis_server_ask(&sentinels->servers[1], reply, sizeof reply, "SENTINEL", "FAILOVER", SENTINELS_MASTER_NAME,
                         NULL);
        poll(NULL, 0, STEP_MS);
    }
    await_promotion(cluster, start_ms, ret_failover);
    setbacks_begin(ret_failover->setbacks, living);
    history_loss_ends(ret_failover->history, loss, history_now_ns());
    redis_server_restart(sentinels->redises[other]);
    if (ends_node)
        cluster_node_start(cluster, node);
    pthread_mutex_unlock(&cluster->node_locks[node]);
    setbacks_await(ret_failover->setbacks);
    measure(cluster, 0, probe_id, start_ms, ret_failover);
    redis_server_restart(sentinels->redises[ret_failover->from]);
}

static void lose_lagging(struct cluster *cluster, const char *probe_id, UNUSED int64_t start_ms,
                         struct failover *ret_failover)
{
    lose_to_lagging(cluster, probe_id, ret_failover, false);
}

static void lose_lagging_by_hand(struct cluster *cluster, const char *probe_id, UNUSED int64_t start_ms,
                                 struct failover *ret_failover)
{
    lose_to_lagging(cluster, probe_id, ret_failover, true);
}

static const struct {
    const char *how;
    void (*lose)(struct cluster *cluster, const char *probe_id, int64_t start_ms, struct failover *ret_failover);
} WAYS[] = {{"beside", lose_beside},   {"killed", lose_killed},   {"stopped", lose_stopped},
            {"unheard", lose_unheard}, {"lagging", lose_lagging}, {"lagging, by hand", lose_lagging_by_hand}};

enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS, SETBACKS_AT = WAY_COUNT - 2 };

/* If all replicas acknowledge everything, none lags. */
static size_t way_of(const struct cluster *cluster, unsigned round, bool only_setbacks)
{
    if (only_setbacks)
        return SETBACKS_AT + round % 2;
    return round % (must_be_whole(cluster) ? SETBACKS_AT : WAY_COUNT);
}

void failover_run(const struct failover_plan *plan, unsigned round, struct failover *ret_failover)
{
    struct cluster *cluster = plan->cluster;
    struct history *history = plan->history;
    size_t way = way_of(cluster, round, plan->only_setbacks);
    char probe_id[ID_TEXT_BYTES];

    *ret_failover = (struct failover){.how = WAYS[way].how,
                                      .from = sentinels_master(&cluster->sentinels),
                                      .turn = plan->only_setbacks ? round : round / WAY_COUNT * 2 + way % 2,
                                      .history = history,
                                      .setbacks = plan->setbacks};
    probe_make(cluster, &cluster->accounts[0], probe_id);
    size_t fault = history_fault_begin(history, "redis %u, the master: %s", ret_failover->from, ret_failover->how);
    WAYS[way].lose(cluster, probe_id, deadline_now_ms(), ret_failover);
    int64_t back_ms = deadline_now_ms();
    if (!sentinels_wait_whole(&cluster->sentinels, WHOLE_WITHIN_MS))
        history_violation(history, "the lost master does not become a replica", ret_failover->how);
    ret_failover->returned_ms = probe_since(back_ms);
    history_fault_end(history, fault);
    if (way < SETBACKS_AT &&
        ret_failover->times.writes_ms > (must_be_whole(cluster) ? FAILOVER_LIMIT_WHOLE_MS : FAILOVER_LIMIT_MS))
        history_violation(history, "writes took too long to resume", ret_failover->how);
}
