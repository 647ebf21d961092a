#include "shard_faults.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    STEP_MS = 10,
    WHOLE_WITHIN_MS = 60000,
    LOST_FOR_MS = 3000,     /* after its replica took over */
    PAUSE_BETWEEN_MS = 500, /* between two rounds */
    COPY_OLD_MS = 3000,
    ASKED_ENOUGH = 20 /* checks of a partition in a round, for saying that none was answered */
};

/* Which way to lose primaries comes when: kills most often. The last ones need namespaces. */
static const unsigned char TURNS[] = {0, 4, 0, 1, 5, 0, 2, 0, 3};
enum { TURNS_WITHOUT_NAMESPACES = 6, SETBACKS_AT = 4 };

struct round {
    unsigned shard, server; /* whose primary it is at first */
    int64_t start_ms;
    int64_t taken_ms, whole_ms; /* until its replica had taken over; until all was as before */
    struct probe_times times;
    struct availability_count before[SHARDS_PARTITIONS];
};

static void await_promotion(struct shard_faults *faults, struct round *round)
{
    unsigned primary;

    while (!shards_primary(faults->cluster->shards, round->shard, &primary) || primary == round->server) {
        if (probe_since(round->start_ms) > PROBE_GIVE_UP_MS)
            test_give_up("no replica takes over from redis %u", round->server);
        poll(NULL, 0, STEP_MS);
    }
    round->taken_ms = probe_since(round->start_ms);
}

/* The ways to lose a primary; each returns when it is back. With one replica there are no leases before that. */

static void lose_killed(struct shard_faults *faults, struct round *round)
{
    shards_kill(faults->cluster->shards, round->server);
    await_promotion(faults, round);
    shards_restart(faults->cluster->shards, round->server);
}

static void lose_stopped(struct shard_faults *faults, struct round *round)
{
    shards_set_frozen(faults->cluster->shards, round->server, true);
    await_promotion(faults, round);
    poll(NULL, 0, LOST_FOR_MS);
    shards_set_frozen(faults->cluster->shards, round->server, false);
}

static void lose_cut(struct shard_faults *faults, struct round *round, unsigned nodes_reached)
{
    shards_set_cut(faults->cluster->shards, round->server, nodes_reached, true);
    await_promotion(faults, round);
    poll(NULL, 0, LOST_FOR_MS);
    shards_set_cut(faults->cluster->shards, round->server, nodes_reached, false);
}

static void lose_cut_off(struct shard_faults *faults, struct round *round)
{
    lose_cut(faults, round, 0);
}

/* Those nodes go on with the old primary for as long as they may. */
static void lose_cut_but_for_nodes(struct shard_faults *faults, struct round *round)
{
    lose_cut(faults, round, 1 + faults->rounds / (sizeof TURNS * SHARDS) % CLUSTER_NODES);
}

/* The replica of that shard. */
static unsigned find_replica(const struct shard_faults *faults, const struct round *round)
{
    char reply[4096];

    for (unsigned server = 0;; server = (server + 1) % SHARDS_SERVERS) {
        const char *const argv[] = {"CLUSTER", "NODES"};
        const char *own;

        if (server != round->server &&
            redis_server_try(&faults->cluster->shards->servers.servers[server], reply, sizeof reply, 2, argv) &&
            (own = strstr(reply, "myself,slave ")) &&
            strncmp(own + strlen("myself,slave "), faults->cluster->shards->ids[round->server], 40) == 0)
            return server;
        poll(NULL, 0, STEP_MS);
    }
}

/* Primary and replica are lost, in half of the cases with a node, and one of them comes back with an older file. No
 * slot moves meanwhile, because the file would have its names, or lack them, and the cluster knows of no loss. */
static void go_back(struct shard_faults *faults, struct round *round, bool takes_over)
{
    struct cluster *cluster = faults->cluster;
    struct shards *shards = cluster->shards;
    unsigned replica = find_replica(faults, round), oldest = takes_over ? replica : round->server;
    unsigned turn = faults->setbacks_done++, node = turn % CLUSTER_NODES, living = (1U << CLUSTER_NODES) - 1;
    bool ends_node = (turn + turn / 2) % 2 == 0;

    /* One node lives all the while. */
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        pthread_mutex_lock(&cluster->node_locks[i]);
    size_t loss = history_loss_begins(faults->history, history_now_ns());
    shards_keep(shards, oldest);
    poll(NULL, 0, (int)(COPY_OLD_MS / 4 + turn * 677 % COPY_OLD_MS));
    if (ends_node) {
        living &= ~(1U << node);
        cluster_node_kill(cluster, node);
    }
    history_loss_strikes(faults->history, loss, history_now_ns());
    shards_kill(shards, round->server);
    shards_kill(shards, replica);
    shards_put_back(shards, oldest);
    if (takes_over)
        shards_take_over(shards, replica);
    setbacks_begin(faults->setbacks, living);
    history_loss_ends(faults->history, loss, history_now_ns());
    shards_restart(shards, takes_over ? round->server : replica);
    if (ends_node)
        cluster_node_start(cluster, node);
    setbacks_await(faults->setbacks);
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        pthread_mutex_unlock(&cluster->node_locks[i]);
}

static void lose_older_file(struct shard_faults *faults, struct round *round)
{
    go_back(faults, round, false);
}

static void lose_taken_over(struct shard_faults *faults, struct round *round)
{
    go_back(faults, round, true);
}

static const struct {
    const char *how;
    void (*lose)(struct shard_faults *faults, struct round *round);
} WAYS[SHARD_FAULT_WAYS] = {{"killed", lose_killed},         {"stopped", lose_stopped},
                            {"cut off", lose_cut_off},       {"cut off from all but nodes", lose_cut_but_for_nodes},
                            {"older file", lose_older_file}, {"replica with an older file", lose_taken_over}};

/* Availability of the other partitions */

static void look_before(struct shard_faults *faults, struct round *round)
{
    struct shards *shards = faults->cluster->shards;
    int moving;

    atomic_store(&shards->disturbed, (int)round->shard);
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++) {
        atomic_store(&shards->ends[i], 1U << atomic_load(&shards->homes[i]));
        round->before[i] = availability_count(faults->availability, i);
    }
    moving = atomic_load(&shards->moving);
    if (moving != SHARDS_NONE)
        atomic_store(&shards->ends[moving], (1U << SHARDS) - 1);
}

static void judge_partition(struct shard_faults *faults, const struct round *round, unsigned partition)
{
    struct availability_count now = availability_count(faults->availability, partition);
    char which[96];

    if (atomic_load(&faults->cluster->shards->ends[partition]) & 1U << round->shard) {
        faults->excused++;
        return;
    }
    if (now.checks - round->before[partition].checks < ASKED_ENOUGH) {
        faults->unasked++;
        return;
    }
    faults->watched++;
    if (now.answered > round->before[partition].answered)
        return;
    snprintf(which, sizeof which, "partition %u, %zu checks in %ld ms without the primary of shard %u", partition,
             now.checks - round->before[partition].checks, (long)probe_since(round->start_ms), round->shard);
    history_violation(faults->history, "no check was answered while another primary was lost", which);
}

static void look_after(struct shard_faults *faults, const struct round *round)
{
    atomic_store(&faults->cluster->shards->disturbed, SHARDS_NONE);
    for (unsigned i = 0; i < SHARDS_PARTITIONS; i++)
        judge_partition(faults, round, i);
}

/* Rounds */

/* An account there, whose times are taken; it may be moved away meanwhile. */
static const struct cluster_account *find_account(const struct shard_faults *faults, unsigned shard)
{
    unsigned partition = 0;

    while (partition < SHARDS_PARTITIONS - 1 && atomic_load(&faults->cluster->shards->homes[partition]) != shard)
        partition++;
    return &faults->cluster->accounts[partition];
}

static void keep_slowest(int64_t *slowest_ms, int64_t ms)
{
    if (ms > *slowest_ms)
        *slowest_ms = ms;
}

static void print_round(const struct shard_faults *faults, const struct round *round, const char *how)
{
    printf("round %3u: shard %u, redis %u %-26s its replica took over after %5ld ms, checks %5ld ms, writes %5ld ms, "
           "revocations %5ld ms, whole %5ld ms\n",
           faults->rounds, round->shard, round->server, how, (long)round->taken_ms, (long)round->times.checks_ms,
           (long)round->times.writes_ms, (long)round->times.revokes_ms, (long)round->whole_ms);
}

static void begin_round(struct shard_faults *faults, struct round *round)
{
    *round = (struct round){.shard = faults->rounds % SHARDS};
    while (!shards_primary(faults->cluster->shards, round->shard, &round->server))
        poll(NULL, 0, STEP_MS);
}

static void end_round(struct shard_faults *faults, struct round *round, const char *how)
{
    if (!cluster_servers_wait_whole(&faults->cluster->shards->servers, WHOLE_WITHIN_MS))
        history_violation(faults->history, "the cluster does not become whole", how);
    round->whole_ms = probe_since(round->start_ms);
    look_after(faults, round);
    keep_slowest(&faults->slowest.checks_ms, round->times.checks_ms);
    keep_slowest(&faults->slowest.writes_ms, round->times.writes_ms);
    keep_slowest(&faults->slowest.revokes_ms, round->times.revokes_ms);
    keep_slowest(&faults->slowest_taken_ms, round->taken_ms);
    keep_slowest(&faults->slowest_whole_ms, round->whole_ms);
    print_round(faults, round, how);
}

static unsigned way_of(const struct shard_faults *faults)
{
    unsigned turns = faults->cluster->netns ? sizeof TURNS : TURNS_WITHOUT_NAMESPACES, turn = faults->rounds / SHARDS;

    return faults->only_setbacks ? SETBACKS_AT + turn % (SHARD_FAULT_WAYS - SETBACKS_AT) : TURNS[turn % turns];
}

void shard_faults_run(struct shard_faults *faults)
{
    unsigned way = way_of(faults);
    const struct cluster_account *account;
    char probe_id[ID_TEXT_BYTES];
    struct round round;

    if (way >= SETBACKS_AT)
        pthread_mutex_lock(&faults->cluster->shards->move_lock);
    begin_round(faults, &round);
    account = find_account(faults, round.shard);
    probe_make(faults->cluster, account, probe_id);
    look_before(faults, &round);
    size_t fault = history_fault_begin(faults->history, "shard %u: redis %u, the primary: %s", round.shard,
                                       round.server, WAYS[way].how);
    round.start_ms = deadline_now_ms();
    WAYS[way].lose(faults, &round);
    if (way >= SETBACKS_AT)
        pthread_mutex_unlock(&faults->cluster->shards->move_lock);
    probe_measure(faults->cluster, account, 0, probe_id, round.start_ms, &round.times);
    faults->done[way][round.shard]++;
    faults->rounds++;
    end_round(faults, &round, WAYS[way].how);
    history_fault_end(faults->history, fault);
    poll(NULL, 0, PAUSE_BETWEEN_MS);
}

void shard_faults_print_counts(const struct shard_faults *faults)
{
    for (unsigned way = 0; way < SHARD_FAULT_WAYS; way++)
        printf("primaries %s: %u, %u, %u\n", WAYS[way].how, faults->done[way][0], faults->done[way][1],
               faults->done[way][2]);
    printf("slowest: replica %ld ms, checks %ld ms, writes %ld ms, revocations %ld ms, whole %ld ms\n",
           (long)faults->slowest_taken_ms, (long)faults->slowest.checks_ms, (long)faults->slowest.writes_ms,
           (long)faults->slowest.revokes_ms, (long)faults->slowest_whole_ms);
    printf(
        "partitions while another primary was lost: %zu watched, %zu excused for being moved from or to it, or on it, "
        "%zu hardly asked\n",
        faults->watched, faults->excused, faults->unasked);
}
