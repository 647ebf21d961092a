#include "table_readers.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum { READERS_A_NODE = 2, READERS = CLUSTER_NODES * READERS_A_NODE, STEP_MS = 20 };

struct table_readers {
    struct table_readers_plan plan;
    pthread_t thread; /* starts all of them, because processes that a thread has started die with it */
    atomic_bool stop;
    unsigned seed;
    struct process processes[READERS];
    unsigned noted; /* findings */
    unsigned kills, pauses;
};

static unsigned below(struct table_readers *readers, unsigned bound)
{
    return (unsigned)rand_r(&readers->seed) % bound;
}

static void wait_ms(const struct table_readers *readers, unsigned ms)
{
    struct deadline deadline = deadline_in(ms);
    int left;

    while (!readers->stop && (left = deadline_left_ms(deadline)) > 0)
        poll(NULL, 0, left < STEP_MS ? left : STEP_MS);
}

static void start_reader(struct table_readers *readers, unsigned reader)
{
    unsigned node = reader / READERS_A_NODE;
    char name[32], number[16], seed[16];
    const char *const argv[] = {"/proc/self/exe",
                                "--table-reader",
                                readers->plan.board_path,
                                readers->plan.cluster->tables[node],
                                number,
                                seed,
                                reader % READERS_A_NODE ? "quick" : "paused",
                                NULL};

    snprintf(name, sizeof name, "reader%u", reader);
    snprintf(number, sizeof number, "%u", node);
    snprintf(seed, sizeof seed, "%u", below(readers, 1u << 30));
    process_start(&readers->processes[reader], readers->plan.folder, name, argv);
}

static void kill_reader(struct table_readers *readers, unsigned reader)
{
    size_t fault =
        history_fault_begin(readers->plan.history, "reader %u of node %u: kill -9", reader, reader / READERS_A_NODE);

    process_kill(&readers->processes[reader]);
    start_reader(readers, reader);
    history_fault_end(readers->plan.history, fault);
    readers->kills++;
}

/* For up to two leases. */
static void pause_reader(struct table_readers *readers, unsigned reader)
{
    unsigned ms = below(readers, 2 * readers->plan.board->unit_ms) + 1;
    size_t fault = history_fault_begin(readers->plan.history, "reader %u of node %u: paused, %u ms", reader,
                                       reader / READERS_A_NODE, ms);

    process_signal(&readers->processes[reader], SIGSTOP);
    wait_ms(readers, ms);
    process_signal(&readers->processes[reader], SIGCONT);
    history_fault_end(readers->plan.history, fault);
    readers->pauses++;
}

static void find_dead(struct table_readers *readers)
{
    for (unsigned i = 0; i < READERS; i++)
        if (process_wait(&readers->processes[i], 0))
            test_give_up("reader %u ended by itself: %s", i, file_read(readers->processes[i].err_path));
}

static void *run(void *arg)
{
    struct table_readers *readers = arg;

    for (unsigned i = 0; i < READERS; i++)
        start_reader(readers, i);
    while (!readers->stop) {
        unsigned reader = below(readers, READERS);

        wait_ms(readers, below(readers, readers->plan.board->unit_ms) + 1);
        find_dead(readers);
        if (below(readers, 4) == 0)
            kill_reader(readers, reader);
        else
            pause_reader(readers, reader);
    }
    for (unsigned i = 0; i < READERS; i++)
        process_kill(&readers->processes[i]);
    return NULL;
}

struct table_readers *table_readers_start(const struct table_readers_plan *plan)
{
    struct table_readers *readers = calloc(1, sizeof *readers);

    if (!readers)
        abort();
    readers->plan = *plan;
    readers->seed = plan->seed * 13 + 5;
    if (pthread_create(&readers->thread, NULL, run, readers) != 0)
        abort();
    return readers;
}

static void note_end(struct table_readers *readers, const struct board_finding *finding, const struct board_key *key)
{
    const struct event event = {.start_ns = finding->start_ns,
                                .end_ns = finding->end_ns,
                                .key = key->key,
                                .status = 200,
                                .node = finding->node,
                                .kind = EVENT_TABLE};

    /* What is not in the history is of an account that was suspended, or of a person who was removed. */
    if (key->key == HISTORY_NO_KEY || history_add(readers->plan.history, &event))
        history_violation(readers->plan.history, "accepted by the table after its end was answered", key->id);
}

static void note(struct table_readers *readers, const struct board_finding *finding)
{
    static const char *const WHATS[] = {[BOARD_OTHER_KEY] = "accepted by the table as another key",
                                        [BOARD_OTHER_SCOPES] = "accepted by the table with other scopes"};
    const struct board_key *key = &readers->plan.board->keys[finding->number];

    if (finding->what == BOARD_ENDED)
        note_end(readers, finding, key);
    else
        history_violation(readers->plan.history, WHATS[finding->what], key->id);
}

bool table_readers_turn(struct table_readers *readers)
{
    struct board *board = readers->plan.board;
    unsigned before = readers->noted;

    while (readers->noted < BOARD_FINDINGS_MAX &&
           atomic_load_explicit(&board->findings[readers->noted].is_written, memory_order_acquire))
        note(readers, &board->findings[readers->noted++]);
    return readers->noted == before;
}

void table_readers_stop(struct table_readers *readers)
{
    if (!readers)
        return;
    readers->stop = true;
    pthread_join(readers->thread, NULL);
}

void table_readers_print_counts(const struct table_readers *readers)
{
    size_t ended = 0, used = 0;

    if (!readers)
        return;
    struct board *board = readers->plan.board;
    for (uint32_t i = 0; i < board->key_count; i++) {
        const struct board_key *key = &board->keys[i];
        bool is_ended = atomic_load(&key->promise) > 0;

        ended += is_ended;
        used += is_ended && atomic_load(&key->was_accepted);
    }
    printf("by the tables: %llu checks accepted, %llu not; of %zu keys that were ended or suspended, %zu had been "
           "accepted; readers killed %u times, paused %u times\n",
           board->accepted, board->not_accepted, ended, used, readers->kills, readers->pauses);
    printf("checks by the tables that began after their key's end was answered: %llu, %u violations\n",
           board->after_end, board->found);
    if (board->accepted == 0)
        test_give_up("no reader accepted anything: they have found nothing out");
}

void table_readers_destroy(struct table_readers *readers)
{
    free(readers);
}
