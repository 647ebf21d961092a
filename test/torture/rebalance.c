#include "rebalance.h"
#include "deadline.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MIGRATE blocks its server, so that it must end before that one is taken for dead. */
#define MIGRATE_TIMEOUT_MS "300"
#define BATCH "64"

enum {
    BATCH_KEYS = 64,
    FIRST_KEY = 9,
    ARGS = FIRST_KEY + BATCH_KEYS,
    REPLY_BYTES = 65536,
    AGAIN_MS = 20,
    SETTLE_MS = 200, /* for nodes to follow: so a partition stays for some seconds before it is moved on */
    SYNC_MS = 500,
    ENDS_WITHIN_MS = 60000 /* once nothing disturbs it */
};

struct rebalance {
    struct shards *shards;
    struct history *history;
    unsigned seed;
    pthread_t thread;
    atomic_bool stop;
    /* What was done. */
    size_t moves, resumed, names;
    int64_t longest_ms;
};

/* A move of a partition's slot, and the last answers of its source and its target. */
struct move {
    unsigned partition, from, to; /* shards */
    unsigned source, target;      /* their primaries */
    struct shard_view source_view, target_view;
    bool may_come_late; /* names of a MIGRATE that failed, on a connection that its source has given up */
};

static bool tell(struct rebalance *rebalance, unsigned server, size_t argc, const char *const *argv)
{
    char reply[256];

    return !atomic_load(&rebalance->shards->away[server]) &&
           redis_server_try(&rebalance->shards->servers.servers[server], reply, sizeof reply, argc, argv) &&
           reply[0] != '-';
}

static bool set_slot(struct rebalance *rebalance, unsigned server, const struct move *move, const char *state,
                     unsigned other)
{
    const char *const argv[] = {"CLUSTER", "SETSLOT", rebalance->shards->slots[move->partition], state,
                                rebalance->shards->ids[other]};

    return tell(rebalance, server, 5, argv);
}

/* False: one end has no primary that answers, now. */
static bool look_at(struct rebalance *rebalance, struct move *move)
{
    const struct shards *shards = rebalance->shards;

    return shards_primary(shards, move->from, &move->source) && shards_primary(shards, move->to, &move->target) &&
           shards_view(shards, move->source, shards->slots[move->partition], &move->source_view) &&
           shards_view(shards, move->target, shards->slots[move->partition], &move->target_view);
}

/* Whether the source says that it has none of the slot's names left. */
static bool is_empty(struct rebalance *rebalance, const struct move *move)
{
    char count[64];

    return redis_server_try(
               &rebalance->shards->servers.servers[move->source], count, sizeof count, 3,
               (const char *const[]){"CLUSTER", "COUNTKEYSINSLOT", rebalance->shards->slots[move->partition]}) &&
           strcmp(count, "0") == 0;
}

/* Moves some names; false when there are none, or it failed. Without COPY, MIGRATE deletes them at the source before
 * any replica of the target has them, so that they would be lost with the target. */
static bool move_some(struct rebalance *rebalance, struct move *move)
{
    static char found[REPLY_BYTES];
    const struct redis_server *source = &rebalance->shards->servers.servers[move->source];
    const struct redis_server *target = &rebalance->shards->servers.servers[move->target];
    char port[8], *rest = found, *name;
    const char *argv[ARGS] = {
        "MIGRATE", redis_server_address(target), port, "", "0", MIGRATE_TIMEOUT_MS, "COPY", "REPLACE", "KEYS"};
    size_t argc = FIRST_KEY;

    snprintf(port, sizeof port, "%u", target->port);
    if (!redis_server_try(
            source, found, sizeof found, 4,
            (const char *const[]){"CLUSTER", "GETKEYSINSLOT", rebalance->shards->slots[move->partition], BATCH}) ||
        found[0] == '-')
        return false;
    while (argc < ARGS && (name = strsep(&rest, "\n")) && name[0])
        argv[argc++] = name;
    if (argc == FIRST_KEY)
        return false;
    move->may_come_late = !tell(rebalance, move->source, argc, argv);
    if (move->may_come_late || !redis_server_sync(target, rebalance->shards->names[move->to], SYNC_MS))
        return false;
    argv[FIRST_KEY - 1] = "DEL";
    rebalance->names += argc - FIRST_KEY;
    return tell(rebalance, move->source, argc - (FIRST_KEY - 1), argv + FIRST_KEY - 1);
}

/* If a source is cut off while it sends, MIGRATE fails, and its kernel may deliver what was sent much later. That would
 * replace newer records. So the target closes all connections before the move goes on. */
static bool nothing_comes_late(struct rebalance *rebalance, struct move *move)
{
    if (move->may_come_late)
        move->may_come_late =
            !tell(rebalance, move->target, 4, (const char *const[]){"CLIENT", "KILL", "TYPE", "normal"});
    return !move->may_come_late;
}

/* Both ends, and whoever else is a primary, so that nobody sends nodes to the old one. */
static void tell_all(struct rebalance *rebalance, const struct move *move)
{
    if (!set_slot(rebalance, move->target, move, "NODE", move->target))
        return;
    set_slot(rebalance, move->source, move, "NODE", move->target);
    for (unsigned server = 0; server < SHARDS_SERVERS; server++)
        if (server != move->source && server != move->target)
            set_slot(rebalance, server, move, "NODE", move->target);
}

/* Whatever was done before, by servers that have failed since. The source holds what it has not handed over, and nobody
 * has changed what it has: while a slot is being moved, nodes change nothing. Where neither end says that it has the
 * slot, the target's replica has taken over before it heard of its end. */
static void move_on(struct rebalance *rebalance, struct move *move)
{
    bool is_owned = move->source_view.has_slot;

    if (!nothing_comes_late(rebalance, move))
        return;
    /* A target that imported from a primary that has failed knows of no owner, and takes no names. */
    if ((is_owned && !set_slot(rebalance, move->target, move, "NODE", move->source)) ||
        !set_slot(rebalance, move->target, move, "IMPORTING", move->source) ||
        (is_owned && !set_slot(rebalance, move->source, move, "MIGRATING", move->target)))
        return;
    while (move_some(rebalance, move))
        ;
    if (!move->may_come_late && is_empty(rebalance, move))
        tell_all(rebalance, move);
}

static bool is_done(const struct move *move)
{
    return move->target_view.has_slot && !move->source_view.has_slot;
}

/* Nothing but what is said now counts. */
static void run_move(struct rebalance *rebalance, struct move *move)
{
    int64_t calm_ms = deadline_now_ms(); /* since when no fault may hold it up */
    bool is_begun = false;

    while (!look_at(rebalance, move) || !is_done(move)) {
        bool can_move = look_at(rebalance, move) && !move->target_view.has_slot;

        if (can_move) {
            rebalance->resumed += is_begun;
            is_begun = true;
            move_on(rebalance, move);
        }
        if (!rebalance->stop)
            calm_ms = deadline_now_ms();
        if (deadline_now_ms() - calm_ms > ENDS_WITHIN_MS) {
            history_violation(rebalance->history, "a slot cannot be moved", rebalance->shards->slots[move->partition]);
            return;
        }
        poll(NULL, 0, can_move ? 1 : AGAIN_MS);
    }
}

/* While a primary is lost, moves from and to its shard are rare, for each holds up all others until it can go on. */
static bool choose_target(struct rebalance *rebalance, struct move *move)
{
    int disturbed = atomic_load(&rebalance->shards->disturbed);
    unsigned dice = (unsigned)rand_r(&rebalance->seed);
    bool is_spared = dice % 8 > 0;

    move->to = (move->from + 1 + dice / 8 % 2) % SHARDS;
    if (is_spared && disturbed == (int)move->to)
        move->to = SHARDS - move->from - move->to;
    return !is_spared || disturbed != (int)move->from;
}

static void move_next(struct rebalance *rebalance, unsigned partition)
{
    struct shards *shards = rebalance->shards;
    struct move move = {.partition = partition, .from = atomic_load(&shards->homes[partition])};
    int64_t start_ms = deadline_now_ms();

    if (!choose_target(rebalance, &move))
        return;
    size_t fault = history_fault_begin(rebalance->history, "partition %u: moved from shard %u to %u", partition,
                                       move.from, move.to);
    pthread_mutex_lock(&shards->move_lock);
    atomic_store(&shards->moving, (int)partition);
    atomic_fetch_or(&shards->ends[partition], 1U << move.from | 1U << move.to);
    run_move(rebalance, &move);
    atomic_store(&shards->homes[partition], move.to);
    atomic_store(&shards->moving, SHARDS_NONE);
    pthread_mutex_unlock(&shards->move_lock);
    history_fault_end(rebalance->history, fault);
    rebalance->moves++;
    if (deadline_now_ms() - start_ms > rebalance->longest_ms)
        rebalance->longest_ms = deadline_now_ms() - start_ms;
}

static void *run(void *arg)
{
    struct rebalance *rebalance = arg;

    for (unsigned i = 0; !rebalance->stop; i++) {
        move_next(rebalance, i % SHARDS_PARTITIONS);
        poll(NULL, 0, SETTLE_MS);
    }
    return NULL;
}

struct rebalance *rebalance_start(struct shards *shards, struct history *history, unsigned seed)
{
    struct rebalance *rebalance = calloc(1, sizeof *rebalance);

    if (!rebalance)
        abort();
    *rebalance = (struct rebalance){.shards = shards, .history = history, .seed = seed * 31 + 11};
    if (pthread_create(&rebalance->thread, NULL, run, rebalance) != 0)
        abort();
    return rebalance;
}

void rebalance_stop(struct rebalance *rebalance)
{
    rebalance->stop = true;
    pthread_join(rebalance->thread, NULL);
}

void rebalance_print_counts(const struct rebalance *rebalance)
{
    printf("%zu slots moved with %zu names, the longest in %ld ms; %zu times a move was resumed\n", rebalance->moves,
           rebalance->names, (long)rebalance->longest_ms, rebalance->resumed);
}

void rebalance_destroy(struct rebalance *rebalance)
{
    free(rebalance);
}
