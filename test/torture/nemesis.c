#include "nemesis.h"
#include "netns.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP_MS = 20,
    COPY_WITHIN_MS = 3000,
    TAKE_WITHIN_MS = 3000,
    OTHERS_WITHIN_MS = 10000, /* as long as clients wait for answers, and a little */
    NOTICED_WITHIN_MS = 10000,
    LINKS = REDIS_PROXY_UNNAMED,
    LINKS_TEXT_BYTES = 48 /* all their names */
};

struct lane {
    struct nemesis *nemesis;
    unsigned seed;
    pthread_t thread;
};

/* What a fault makes of the links of one node: a set of them, and of directions. */
struct target {
    unsigned node;
    unsigned links, directions; /* bits by redis_proxy_link and redis_proxy_direction */
};

struct fault_kind {
    const char *name;
    unsigned weight;
    void (*run)(struct lane *lane);
};

struct nemesis {
    struct nemesis_plan plan;
    atomic_bool mend, end;
    atomic_uint idle;
    atomic_uint busy_links[CLUSTER_NODES]; /* those that some fault has in its hands */
    struct lane lanes[NEMESIS_LANES_MAX];
    atomic_uint *counts;
};

/* Chance */

static unsigned below(struct lane *lane, unsigned bound)
{
    return (unsigned)rand_r(&lane->seed) % bound;
}

/* Between two hundredths of the unit; small ones as likely as large ones. */
static unsigned span_ms(struct lane *lane, unsigned from, unsigned to)
{
    unsigned top = below(lane, 2) ? to : (from + to) / 2;

    return (from + below(lane, top - from + 1)) * lane->nemesis->plan.unit_ms / 100 + 1;
}

static void pause_ms(unsigned ms)
{
    poll(NULL, 0, (int)ms);
}

static void lane_wait(struct lane *lane, unsigned ms)
{
    struct deadline deadline = deadline_in(ms);
    int left;

    while (!lane->nemesis->mend && (left = deadline_left_ms(deadline)) > 0)
        pause_ms((unsigned)(left < STEP_MS ? left : STEP_MS));
}

/* Mostly one link, for the rules are about what happens when one falls behind the others; and of these the one that
 * carries invalidations and echoes. */
static unsigned random_links(struct lane *lane)
{
    static const unsigned CHOICES[] = {1U << REDIS_PROXY_READS,
                                       1U << REDIS_PROXY_SCRIPTS,
                                       1U << REDIS_PROXY_CHANGES,
                                       1U << REDIS_PROXY_INVALIDATIONS,
                                       1U << REDIS_PROXY_INVALIDATIONS,
                                       1U << REDIS_PROXY_INVALIDATIONS,
                                       1U << REDIS_PROXY_READS | 1U << REDIS_PROXY_INVALIDATIONS,
                                       1U << REDIS_PROXY_CHANGES | 1U << REDIS_PROXY_INVALIDATIONS,
                                       (1U << LINKS) - 1};

    return CHOICES[below(lane, sizeof CHOICES / sizeof *CHOICES)];
}

static unsigned random_directions(struct lane *lane)
{
    static const unsigned CHOICES[] = {1U << REDIS_PROXY_TO_NODE, 1U << REDIS_PROXY_TO_NODE, 1U << REDIS_PROXY_TO_REDIS,
                                       1U << REDIS_PROXY_TO_NODE | 1U << REDIS_PROXY_TO_REDIS};

    return CHOICES[below(lane, sizeof CHOICES / sizeof *CHOICES)];
}

/* Taking hold of what a fault is done to: false when another lane has it */

static bool links_take(struct lane *lane, const struct target *target)
{
    atomic_uint *busy = &lane->nemesis->busy_links[target->node];
    unsigned before = atomic_fetch_or(busy, target->links);

    if (before & target->links) {
        atomic_fetch_and(busy, ~(target->links & ~before));
        return false;
    }
    return true;
}

static void links_give_back(struct lane *lane, const struct target *target)
{
    atomic_fetch_and(&lane->nemesis->busy_links[target->node], ~target->links);
}

static bool random_target(struct lane *lane, struct target *ret_target)
{
    *ret_target = (struct target){below(lane, CLUSTER_NODES), random_links(lane), random_directions(lane)};
    return links_take(lane, ret_target);
}

static bool node_take(struct lane *lane, unsigned *ret_node)
{
    *ret_node = below(lane, CLUSTER_NODES);
    return pthread_mutex_trylock(&lane->nemesis->plan.cluster->node_locks[*ret_node]) == 0;
}

static void node_give_back(struct lane *lane, unsigned node)
{
    pthread_mutex_unlock(&lane->nemesis->plan.cluster->node_locks[node]);
}

static bool redis_take(struct lane *lane)
{
    return pthread_mutex_trylock(&lane->nemesis->plan.cluster->redis_lock) == 0;
}

static void redis_give_back(struct lane *lane)
{
    pthread_mutex_unlock(&lane->nemesis->plan.cluster->redis_lock);
}

/* Setting a target's weather */

#define EACH_LINK(link, target)                   \
    for (unsigned link = 0; link < LINKS; link++) \
        if ((target)->links & (1U << link))
#define EACH_DIRECTION(direction, target)                                         \
    for (unsigned direction = 0; direction < REDIS_PROXY_DIRECTIONS; direction++) \
        if ((target)->directions & (1U << direction))

static void set_hold(struct lane *lane, const struct target *target, bool held)
{
    EACH_LINK(link, target)
    EACH_DIRECTION(direction, target)
    redis_proxy_hold(lane->nemesis->plan.cluster->proxy, target->node, link, direction, held);
}

static void set_delay(struct lane *lane, const struct target *target, unsigned ms)
{
    EACH_LINK(link, target)
    EACH_DIRECTION(direction, target)
    redis_proxy_delay(lane->nemesis->plan.cluster->proxy, target->node, link, direction, ms);
}

static void set_refused(struct lane *lane, const struct target *target, bool refused)
{
    EACH_LINK(link, target)
    redis_proxy_refuse(lane->nemesis->plan.cluster->proxy, target->node, link, refused);
}

static void cut(struct lane *lane, const struct target *target)
{
    bool reset = below(lane, 2);

    EACH_LINK(link, target)
    redis_proxy_cut(lane->nemesis->plan.cluster->proxy, target->node, link, reset);
}

static void links_text(unsigned links, char ret_text[LINKS_TEXT_BYTES])
{
    static const char *const NAMES[LINKS] = {[REDIS_PROXY_READS] = "reads",
                                             [REDIS_PROXY_SCRIPTS] = "scripts",
                                             [REDIS_PROXY_CHANGES] = "changes",
                                             [REDIS_PROXY_INVALIDATIONS] = "invalidations"};
    size_t len = 0;

    for (unsigned link = 0; link < LINKS; link++)
        if (links & (1U << link))
            len += (size_t)snprintf(ret_text + len, LINKS_TEXT_BYTES - len, "%s%s", len ? "+" : "", NAMES[link]);
}

static const char *directions_text(unsigned directions)
{
    static const char *const TEXTS[] = {"nowhere", "to redis", "to the node", "both ways"};

    return TEXTS[directions & 3];
}

static size_t note(struct lane *lane, const char *what, const struct target *target, unsigned ms)
{
    char links[LINKS_TEXT_BYTES];

    links_text(target->links, links);
    return history_fault_begin(lane->nemesis->plan.history, "node %u: %s %s %s, %u ms", target->node, what, links,
                               directions_text(target->directions), ms);
}

/* The faults */

static void fault_kill(struct lane *lane)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    unsigned node;
    if (!node_take(lane, &node))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: kill -9", node);

    cluster_node_kill(cluster, node);
    lane_wait(lane, below(lane, 2) ? 0 : span_ms(lane, 0, 200));
    cluster_node_start(cluster, node);
    history_fault_end(lane->nemesis->plan.history, fault);
    node_give_back(lane, node);
}

static void fault_drain(struct lane *lane)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    unsigned node;
    if (!node_take(lane, &node))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: drain", node);

    cluster_node_drain(cluster, node);
    lane_wait(lane, below(lane, 2) ? 0 : span_ms(lane, 0, 200));
    cluster_node_start(cluster, node);
    history_fault_end(lane->nemesis->plan.history, fault);
    node_give_back(lane, node);
}

static void fault_pause(struct lane *lane)
{
    struct process *process;
    unsigned node, ms = span_ms(lane, 20, 400);
    if (!node_take(lane, &node))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: paused, %u ms", node, ms);

    process = &lane->nemesis->plan.cluster->fixture.nodes[node].process;
    process_signal(process, SIGSTOP);
    lane_wait(lane, ms);
    process_signal(process, SIGCONT);
    history_fault_end(lane->nemesis->plan.history, fault);
    node_give_back(lane, node);
}

/* Short pauses one after the other: each stops the node between two other instructions. */
static void fault_limp(struct lane *lane)
{
    struct process *process;
    unsigned node, times = 3 + below(lane, 10);
    if (!node_take(lane, &node))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: paused %u times", node, times);

    process = &lane->nemesis->plan.cluster->fixture.nodes[node].process;
    for (unsigned i = 0; i < times && !lane->nemesis->mend; i++) {
        process_signal(process, SIGSTOP);
        lane_wait(lane, span_ms(lane, 1, 60));
        process_signal(process, SIGCONT);
        lane_wait(lane, span_ms(lane, 0, 30));
    }
    history_fault_end(lane->nemesis->plan.history, fault);
    node_give_back(lane, node);
}

static void fault_redis_kill(struct lane *lane)
{
    struct redis_server *redis = &lane->nemesis->plan.cluster->fixture.redis;
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: kill -9");

    redis_server_kill(redis);
    lane_wait(lane, below(lane, 2) ? 0 : span_ms(lane, 0, 200));
    redis_server_restart(redis);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

static void fault_redis_pause(struct lane *lane)
{
    struct redis_server *redis = &lane->nemesis->plan.cluster->fixture.redis;
    unsigned ms = span_ms(lane, 10, 250);
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: paused, %u ms", ms);

    redis_server_freeze(redis);
    lane_wait(lane, ms);
    redis_server_thaw(redis);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

static void fault_redis_drop_subscribers(struct lane *lane)
{
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: CLIENT KILL TYPE pubsub");
    redis_server_tell(&lane->nemesis->plan.cluster->fixture.redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

static void fault_redis_forget_scripts(struct lane *lane)
{
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: SCRIPT FLUSH");
    redis_server_tell(&lane->nemesis->plan.cluster->fixture.redis, "SCRIPT", "FLUSH", NULL);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

/* FLUSHALL that can be taken back: the data change places with an empty database, and later with it again. */
static void fault_redis_emptied(struct lane *lane)
{
    const struct redis_server *redis = &lane->nemesis->plan.cluster->fixture.redis;
    unsigned ms = span_ms(lane, 20, 300);
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: emptied, %u ms", ms);

    redis_server_tell(redis, "SWAPDB", "0", "1", NULL);
    lane_wait(lane, ms);
    redis_server_tell(redis, "SWAPDB", "0", "1", NULL);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

/* Its memory is full: nothing is made, while revocations, heartbeats and leaving go on. */
static void fault_redis_full(struct lane *lane)
{
    const struct redis_server *redis = &lane->nemesis->plan.cluster->fixture.redis;
    unsigned ms = span_ms(lane, 20, 300);
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: its memory is full, %u ms", ms);

    redis_server_tell(redis, "CONFIG", "SET", "maxmemory", "1", NULL);
    lane_wait(lane, ms);
    redis_server_tell(redis, "CONFIG", "SET", "maxmemory", "0", NULL);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

/* It becomes a replica, of nobody, under connections that live on. */
static void fault_redis_demoted(struct lane *lane)
{
    const struct redis_server *redis = &lane->nemesis->plan.cluster->fixture.redis;
    unsigned ms = span_ms(lane, 20, 300);
    if (!redis_take(lane))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: demoted, %u ms", ms);

    redis_server_tell(redis, "REPLICAOF", "127.0.0.1", "1", NULL);
    lane_wait(lane, ms);
    redis_server_tell(redis, "REPLICAOF", "NO", "ONE", NULL);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
}

/* How far its data reach, as the master counts; -1 while a replica has no link to it. */
static long long replication_offset(const struct redis_server *redis, const char *name)
{
    char info[4096];

    redis_server_ask(redis, info, sizeof info, "INFO", "replication", NULL);
    const char *at = strstr(info, name);
    return at && !strstr(info, "master_link_status:down") ? strtoll(at + strlen(name), NULL, 10) : -1;
}

/* A replica of nobody. While it loads what it has been sent, it refuses to be. */
static void unfollow(const struct redis_server *redis)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reply[128] = "";

    while (strcmp(reply, "OK") != 0) {
        if (deadline_left_ms(deadline) == 0)
            test_give_up("a replica goes on: %s", reply);
        redis_server_ask(redis, reply, sizeof reply, "REPLICAOF", "127.0.0.1", "1", NULL);
        pause_ms(STEP_MS);
    }
}

/* A copy of Redis that follows it no more, and still is a replica. True: of all that there was when this began. */
static bool copy_elsewhere(struct lane *lane)
{
    const struct cluster *cluster = lane->nemesis->plan.cluster;
    long long wanted = replication_offset(&cluster->fixture.redis, "master_repl_offset:");
    struct deadline deadline = deadline_in(COPY_WITHIN_MS);
    bool has_all = false;
    char port[8];

    snprintf(port, sizeof port, "%u", cluster->fixture.redis.port);
    redis_server_tell(&cluster->elsewhere, "REPLICAOF", "127.0.0.1", port, NULL);
    while (!has_all && deadline_left_ms(deadline) > 0) {
        pause_ms(STEP_MS);
        has_all = replication_offset(&cluster->elsewhere, "slave_repl_offset:") >= wanted;
    }
    unfollow(&cluster->elsewhere);
    return has_all;
}

/* A master that holds nothing: a volume that was lost, another database. */
static bool empty_elsewhere(struct lane *lane)
{
    const struct cluster *cluster = lane->nemesis->plan.cluster;

    redis_server_tell(&cluster->elsewhere, "REPLICAOF", "NO", "ONE", NULL);
    redis_server_tell(&cluster->elsewhere, "FLUSHALL", NULL);
    return true;
}

/* The node's address leads to another Redis for a while: those of its connections that are made anew end there. */
static void lead_elsewhere(struct lane *lane, const char *what, bool (*prepare)(struct lane *lane))
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    struct target all = {below(lane, CLUSTER_NODES), (1U << LINKS) - 1, 3};
    struct target some = {all.node, below(lane, 2) ? all.links : random_links(lane), 3};
    unsigned ms = span_ms(lane, 50, 400);
    if (!cluster->elsewhere.port || !links_take(lane, &all))
        return;
    if (!redis_take(lane)) {
        links_give_back(lane, &all);
        return;
    }
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: %s, %u ms", all.node, what, ms);

    (void)prepare(lane);
    redis_proxy_redirect(cluster->proxy, all.node, cluster->elsewhere.socket_path);
    cut(lane, &some);
    lane_wait(lane, ms);
    redis_proxy_redirect(cluster->proxy, all.node, cluster->fixture.redis.socket_path);
    cut(lane, &all);
    history_fault_end(lane->nemesis->plan.history, fault);
    redis_give_back(lane);
    links_give_back(lane, &all);
}

static void fault_replica(struct lane *lane)
{
    lead_elsewhere(lane, "its address leads to a replica that lags", copy_elsewhere);
}

static void fault_empty_redis(struct lane *lane)
{
    lead_elsewhere(lane, "its address leads to an empty redis", empty_elsewhere);
}

static struct target all_links(unsigned node)
{
    return (struct target){node, (1U << LINKS) - 1, 3};
}

/* What a lane holds that wants everything. */
struct everything {
    bool has_redis, has_nodes[CLUSTER_NODES], has_links[CLUSTER_NODES];
};

static void everything_give_back(struct lane *lane, const struct everything *everything)
{
    for (unsigned node = 0; node < CLUSTER_NODES; node++) {
        struct target links = all_links(node);

        if (everything->has_links[node])
            links_give_back(lane, &links);
        if (everything->has_nodes[node])
            node_give_back(lane, node);
    }
    if (everything->has_redis)
        redis_give_back(lane);
}

/* It may wait for the other lanes, for none of them waits: but for Redis, without which it holds nothing. */
static bool everything_take(struct lane *lane, struct everything *ret_everything)
{
    struct deadline deadline = deadline_in(TAKE_WITHIN_MS);
    struct everything *e = ret_everything;
    bool has_all;

    *e = (struct everything){.has_redis = redis_take(lane)};
    if (!e->has_redis)
        return false;
    do {
        has_all = true;
        for (unsigned node = 0; node < CLUSTER_NODES; node++) {
            pthread_mutex_t *lock = &lane->nemesis->plan.cluster->node_locks[node];
            struct target links = all_links(node);

            e->has_nodes[node] = e->has_nodes[node] || pthread_mutex_trylock(lock) == 0;
            e->has_links[node] = e->has_links[node] || links_take(lane, &links);
            has_all = has_all && e->has_nodes[node] && e->has_links[node];
        }
        if (!has_all)
            lane_wait(lane, STEP_MS);
    } while (!has_all && !lane->nemesis->mend && deadline_left_ms(deadline) > 0);
    if (!has_all)
        everything_give_back(lane, e);
    return has_all;
}

static void set_reachable(struct lane *lane, unsigned node, bool is_reachable)
{
    struct target all = all_links(node);

    set_refused(lane, &all, !is_reachable);
    if (!is_reachable)
        cut(lane, &all);
}

static bool await_status(struct lane *lane, unsigned node, int status)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    const struct http_call call = {.target = "/v1/whoami", .bearer = cluster->fixture.manager.secret};
    struct deadline deadline = deadline_in(NOTICED_WITHIN_MS);
    struct http_answer answer;

    while (cluster_call(cluster, node, &call, &answer) != status) {
        if (deadline_left_ms(deadline) <= 0)
            return false;
        pause_ms(STEP_MS);
    }
    return true;
}

/* The node has noticed the loss before it meets the other one, and decides again when this returns. */
static bool move_node(struct lane *lane, unsigned node, const struct redis_server *redis)
{
    set_reachable(lane, node, false);
    bool has_noticed = await_status(lane, node, 503);
    redis_proxy_redirect(lane->nemesis->plan.cluster->proxy, node, redis->socket_path);
    set_reachable(lane, node, true);
    return has_noticed && await_status(lane, node, 200);
}

/* What clients have begun, but for checks and revocations, has ended. */
static bool await_others(struct lane *lane)
{
    struct deadline deadline = deadline_in(OTHERS_WITHIN_MS);

    while (atomic_load(&lane->nemesis->plan.cluster->others_open) > 0) {
        if (deadline_left_ms(deadline) <= 0)
            return false;
        pause_ms(STEP_MS);
    }
    return true;
}

/* The node has everything to itself: it answers revocations, then its master is replaced by a copy from before them,
 * and later that one by the first. It must not accept those keys at either, and makes the revocations again. Others
 * cannot know of them until it has: so they are kept out. Creations would be lost for good, so that there are none. */
static void replace_master(struct lane *lane, unsigned node)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;

    if (!await_others(lane))
        return;
    for (unsigned other = 0; other < CLUSTER_NODES; other++)
        if (other != node)
            set_reachable(lane, other, false);
    if (copy_elsewhere(lane)) {
        lane_wait(lane, span_ms(lane, 150, 300));
        redis_server_tell(&cluster->elsewhere, "REPLICAOF", "NO", "ONE", NULL);
        if (!move_node(lane, node, &cluster->elsewhere))
            history_violation(lane->nemesis->plan.history, "a node does not serve by a master that it told again", "");
        lane_wait(lane, span_ms(lane, 150, 300));
        if (!move_node(lane, node, &cluster->fixture.redis))
            history_violation(lane->nemesis->plan.history, "a node does not serve by its master of before", "");
    }
    for (unsigned other = 0; other < CLUSTER_NODES; other++)
        set_reachable(lane, other, true);
}

static void fault_master_that_lacks(struct lane *lane)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    struct everything everything;
    unsigned node = below(lane, CLUSTER_NODES);
    if (!cluster->elsewhere.port || !everything_take(lane, &everything))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history,
                                       "node %u alone: its master replaced by one that lacks, and back", node);

    atomic_store(&cluster->only_revocations, true);
    replace_master(lane, node);
    atomic_store(&cluster->only_revocations, false);
    history_fault_end(lane->nemesis->plan.history, fault);
    everything_give_back(lane, &everything);
}

/* In some cases one node is ended between the copy and the loss, and in half of them another one at the same time as
 * Redis. So one lives all the while, and has heard of what others answered. */
static void go_back(struct lane *lane)
{
    struct cluster *cluster = lane->nemesis->plan.cluster;
    unsigned first = below(lane, CLUSTER_NODES), last = (first + 1 + below(lane, 2)) % CLUSTER_NODES;
    unsigned living = (1U << CLUSTER_NODES) - 1;
    bool ends_first = below(lane, 4) == 0, ends_last = below(lane, 2), is_killed = below(lane, 3) > 0;
    size_t loss = history_loss_begins(lane->nemesis->plan.history, history_now_ns());

    redis_server_keep(&cluster->fixture.redis);
    lane_wait(lane, span_ms(lane, 20, 300));
    if (ends_first) {
        cluster_node_kill(cluster, first);
        cluster_node_start(cluster, first);
        living &= ~(1U << first);
    }
    lane_wait(lane, span_ms(lane, 20, 300));
    if (ends_last) {
        living &= ~(1U << last);
        (is_killed ? cluster_node_kill : cluster_node_drain)(cluster, last);
    }
    history_loss_strikes(lane->nemesis->plan.history, loss, history_now_ns());
    redis_server_put_back(&cluster->fixture.redis);
    setbacks_begin(lane->nemesis->plan.setbacks, living);
    history_loss_ends(lane->nemesis->plan.history, loss, history_now_ns());
    if (ends_last) {
        lane_wait(lane, below(lane, 2) ? 0 : span_ms(lane, 0, 200));
        cluster_node_start(cluster, last);
    }
    setbacks_await(lane->nemesis->plan.setbacks);
}

static void fault_store_goes_back(struct lane *lane)
{
    struct everything everything;
    if (!everything_take(lane, &everything))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "redis: its store goes back to a copy");

    go_back(lane);
    history_fault_end(lane->nemesis->plan.history, fault);
    everything_give_back(lane, &everything);
}

/* The links are cut, and refused for a while. */
static void fault_cut(struct lane *lane)
{
    struct target target;
    unsigned ms = below(lane, 3) ? span_ms(lane, 1, 250) : 0;
    if (!random_target(lane, &target))
        return;
    size_t fault = note(lane, "cut", &target, ms);

    set_refused(lane, &target, ms > 0);
    cut(lane, &target);
    lane_wait(lane, ms);
    set_refused(lane, &target, false);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

/* Nothing comes through for a while; then all of it, or (black hole) nothing ever. */
static void hold_for_a_while(struct lane *lane, bool is_black_hole)
{
    struct target target;
    unsigned ms = span_ms(lane, 30, 400);
    if (!random_target(lane, &target))
        return;
    size_t fault = note(lane, is_black_hole ? "black hole" : "hold", &target, ms);

    set_hold(lane, &target, true);
    lane_wait(lane, ms);
    if (is_black_hole)
        cut(lane, &target);
    set_hold(lane, &target, false);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

static void fault_hold(struct lane *lane)
{
    hold_for_a_while(lane, false);
}

static void fault_black_hole(struct lane *lane)
{
    hold_for_a_while(lane, true);
}

static void fault_delay(struct lane *lane)
{
    struct target target;
    unsigned ms = span_ms(lane, 5, 250);
    if (!random_target(lane, &target))
        return;
    size_t fault = note(lane, "delay", &target, ms);

    set_delay(lane, &target, ms);
    lane_wait(lane, span_ms(lane, 150, 600));
    set_delay(lane, &target, 0);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

/* A delay that changes: what a heartbeat or a revocation sets off may take much longer than what came just before. */
static void fault_drift(struct lane *lane)
{
    struct target target;
    unsigned times = 3 + below(lane, 8);
    if (!random_target(lane, &target))
        return;
    size_t fault = note(lane, "drift", &target, times);

    for (unsigned i = 0; i < times && !lane->nemesis->mend; i++) {
        set_delay(lane, &target, i % 2 == 0 ? span_ms(lane, 20, 120) : span_ms(lane, 120, 300));
        lane_wait(lane, span_ms(lane, 30, 250));
    }
    set_delay(lane, &target, 0);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

/* A busy Redis: what it publishes comes late at every node, now less than a lease, now more. */
static void fault_late_echoes(struct lane *lane)
{
    struct target targets[CLUSTER_NODES];
    unsigned taken = 0, times = 2 + below(lane, 6);

    for (; taken < CLUSTER_NODES; taken++) {
        targets[taken] = (struct target){taken, 1U << REDIS_PROXY_INVALIDATIONS, 1U << REDIS_PROXY_TO_NODE};
        if (!links_take(lane, &targets[taken]))
            break;
    }
    if (taken == 0)
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "late echoes at nodes 0 to %u", taken - 1);
    for (unsigned i = 0; i < times && !lane->nemesis->mend; i++) {
        unsigned ms = i % 2 == 0 ? span_ms(lane, 40, 90) : span_ms(lane, 140, 230);
        for (unsigned node = 0; node < taken; node++)
            set_delay(lane, &targets[node], ms);
        lane_wait(lane, span_ms(lane, 60, 300));
    }
    for (unsigned node = 0; node < taken; node++) {
        set_delay(lane, &targets[node], 0);
        links_give_back(lane, &targets[node]);
    }
    history_fault_end(lane->nemesis->plan.history, fault);
}

/* What came while the link was held arrives at once, what follows is held again: a delay that changes. */
static void fault_stutter(struct lane *lane)
{
    struct target target;
    unsigned times = 2 + below(lane, 6);
    if (!random_target(lane, &target))
        return;
    size_t fault = note(lane, "stutter", &target, times);

    for (unsigned i = 0; i < times && !lane->nemesis->mend; i++) {
        set_hold(lane, &target, true);
        lane_wait(lane, span_ms(lane, 10, 180));
        set_hold(lane, &target, false);
        lane_wait(lane, below(lane, 2) ? 1 : span_ms(lane, 1, 30));
    }
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

/* The subscription is lost, and others' revocations go past this node, while its reads are slow. */
static void fault_rejoin(struct lane *lane)
{
    struct target target = {below(lane, CLUSTER_NODES), 1U << REDIS_PROXY_READS | 1U << REDIS_PROXY_INVALIDATIONS,
                            1U << REDIS_PROXY_TO_NODE};
    struct target reads = {target.node, 1U << REDIS_PROXY_READS, 1U << REDIS_PROXY_TO_NODE};
    struct target invalidations = {target.node, 1U << REDIS_PROXY_INVALIDATIONS, 1U << REDIS_PROXY_TO_NODE};
    unsigned ms = span_ms(lane, 10, 250);
    if (!links_take(lane, &target))
        return;
    size_t fault = note(lane, "rejoin with slow", &reads, ms);

    set_delay(lane, &reads, ms);
    for (unsigned i = 0; i < 4 && !lane->nemesis->mend; i++) {
        set_refused(lane, &invalidations, true);
        cut(lane, &invalidations);
        lane_wait(lane, span_ms(lane, 10, 300));
        set_refused(lane, &invalidations, false);
        lane_wait(lane, span_ms(lane, 50, 200));
    }
    set_delay(lane, &reads, 0);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

static void fault_partition(struct lane *lane)
{
    const struct netns *netns = lane->nemesis->plan.cluster->netns;
    struct target target = {below(lane, CLUSTER_NODES), (1U << LINKS) - 1, 3};
    unsigned ms = span_ms(lane, 20, 400);
    if (!netns || !links_take(lane, &target))
        return;
    size_t fault = history_fault_begin(lane->nemesis->plan.history, "node %u: partition, %u ms", target.node, ms);

    netns_set_link(netns, target.node, false);
    lane_wait(lane, ms);
    netns_set_link(netns, target.node, true);
    history_fault_end(lane->nemesis->plan.history, fault);
    links_give_back(lane, &target);
}

/* The first ones need neither the proxy nor a Redis behind it. */
enum { KINDS_OF_NODES = 4 };

static const struct fault_kind KINDS[] = {
    {"kill", 3, fault_kill},
    {"drain", 3, fault_drain},
    {"pause", 4, fault_pause},
    {"limp", 2, fault_limp},
    {"redis-kill", 2, fault_redis_kill},
    {"redis-pause", 2, fault_redis_pause},
    {"redis-drop-subscribers", 2, fault_redis_drop_subscribers},
    {"redis-forget-scripts", 1, fault_redis_forget_scripts},
    {"redis-emptied", 1, fault_redis_emptied},
    {"redis-full", 2, fault_redis_full},
    {"redis-demoted", 1, fault_redis_demoted},
    {"replica", 2, fault_replica},
    {"empty-redis", 1, fault_empty_redis},
    {"master-that-lacks", 1, fault_master_that_lacks},
    {"store-goes-back", 1, fault_store_goes_back},
    {"cut", 5, fault_cut},
    {"hold", 8, fault_hold},
    {"black-hole", 3, fault_black_hole},
    {"delay", 8, fault_delay},
    {"drift", 10, fault_drift},
    {"late-echoes", 9, fault_late_echoes},
    {"stutter", 4, fault_stutter},
    {"rejoin", 4, fault_rejoin},
    {"partition", 4, fault_partition},
};

enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

/* The lanes */

static bool is_wanted(const struct nemesis *nemesis, size_t kind)
{
    const struct cluster *cluster = nemesis->plan.cluster;
    bool is_possible =
        kind < KINDS_OF_NODES || (cluster->proxy && (KINDS[kind].run != fault_partition || cluster->netns));

    return is_possible && (!nemesis->plan.focus || strcmp(nemesis->plan.focus, KINDS[kind].name) == 0);
}

static size_t random_kind(struct lane *lane)
{
    unsigned total = 0;

    for (size_t i = 0; i < KIND_COUNT; i++)
        total += is_wanted(lane->nemesis, i) ? KINDS[i].weight : 0;
    unsigned dice = below(lane, total);
    for (size_t i = 0; i < KIND_COUNT; i++) {
        unsigned weight = is_wanted(lane->nemesis, i) ? KINDS[i].weight : 0;
        if (dice < weight)
            return i;
        dice -= weight;
    }
    return 0;
}

static void *lane_run(void *arg)
{
    struct lane *lane = arg;
    struct nemesis *nemesis = lane->nemesis;

    lane_wait(lane, 1000);
    while (!nemesis->mend) {
        size_t kind = random_kind(lane);
        KINDS[kind].run(lane);
        atomic_fetch_add(&nemesis->counts[kind], 1);
        lane_wait(lane, 100 + span_ms(lane, 10, 200));
    }
    atomic_fetch_add(&nemesis->idle, 1);
    while (!nemesis->end)
        pause_ms(STEP_MS);
    return NULL;
}

struct nemesis *nemesis_start(const struct nemesis_plan *plan)
{
    struct nemesis *nemesis = calloc(1, sizeof *nemesis);
    bool is_any_wanted = false;

    if (!nemesis)
        abort();
    nemesis->plan = *plan;
    for (size_t i = 0; i < KIND_COUNT; i++)
        is_any_wanted = is_any_wanted || is_wanted(nemesis, i);
    nemesis->counts = calloc(KIND_COUNT, sizeof *nemesis->counts);
    if (!is_any_wanted) {
        free(nemesis->counts);
        free(nemesis);
        return NULL;
    }
    for (unsigned i = 0; i < plan->lanes; i++) {
        struct lane *lane = &nemesis->lanes[i];
        *lane = (struct lane){.nemesis = nemesis, .seed = plan->seed * 31 + i};
        if (pthread_create(&lane->thread, NULL, lane_run, lane) != 0)
            abort();
    }
    return nemesis;
}

void nemesis_mend(struct nemesis *nemesis)
{
    nemesis->mend = true;
    while (nemesis->idle < nemesis->plan.lanes)
        pause_ms(STEP_MS);
}

void nemesis_end(struct nemesis *nemesis)
{
    nemesis->end = true;
    for (unsigned i = 0; i < nemesis->plan.lanes; i++)
        pthread_join(nemesis->lanes[i].thread, NULL);
    free(nemesis->counts);
    free(nemesis);
}

void nemesis_print_counts(const struct nemesis *nemesis)
{
    const char *separator = "faults:";

    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (nemesis->counts[i] > 0)
            printf("%s %u %s", separator, nemesis->counts[i], KINDS[i].name);
        separator = nemesis->counts[i] > 0 ? "," : separator;
    }
    printf("\n");
}
