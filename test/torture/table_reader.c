#include "table_reader.h"
#include "table_board.h"
#include "table_steps.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, BATCH_MAX = 16, TURN_MAX_MS = 4, REFRESH_MAX_MS = 100, SCOPES = 12 };

/* A check under way. */
struct attempt {
    struct board_key *key;
    uint32_t promise; /* before it began */
    int64_t start_ns;
    struct table_step step;
};

struct reader {
    struct board *board;
    unsigned node, seed;
    bool is_quick;
    struct chatelaine_table table;
    struct table_steps steps;
    int64_t refresh_at_ns;
    struct attempt tries[BATCH_MAX];
    size_t count;
};

static unsigned below(struct reader *reader, unsigned bound)
{
    return (unsigned)rand_r(&reader->seed) % bound;
}

/* Now and then it does not look for long: then its node may be another process by now. */
static void refresh(struct reader *reader)
{
    unsigned most_ms = below(reader, 8) == 0 ? 4 * reader->board->unit_ms : REFRESH_MAX_MS;

    if (history_now_ns() < reader->refresh_at_ns)
        return;
    (void)chatelaine_table_refresh(&reader->table);
    reader->refresh_at_ns = history_now_ns() + (int64_t)below(reader, most_ms) * NS_PER_MS;
}

/* Between two steps of a check: mostly short, or about as long as a lease. */
static void pause_for_a_while(struct reader *reader)
{
    unsigned unit_ms = reader->board->unit_ms, most_ms = below(reader, 2) ? unit_ms / 10 : unit_ms * 3 / 2;

    poll(NULL, 0, (int)below(reader, most_ms + 1));
}

/* Half of them were ended just now. */
static struct board_key *random_key(struct reader *reader)
{
    struct board *board = reader->board;
    const struct {
        _Atomic uint32_t *numbers;
        unsigned used;
    } lists[] = {
        {board->recent, BOARD_RECENT},
        {board->recent, BOARD_RECENT},
        {board->places, atomic_load(&board->places_used)},
        {board->places_of_ends, atomic_load(&board->places_of_ends_used)},
    };
    unsigned which = below(reader, sizeof lists / sizeof *lists), used = lists[which].used;
    uint32_t number = used ? atomic_load_explicit(&lists[which].numbers[below(reader, used)], memory_order_acquire) : 0;

    return number ? &board->keys[number - 1] : NULL;
}

static uint32_t random_scopes(struct reader *reader, const struct board_key *key)
{
    if (!key->scopes)
        return 0;
    return below(reader, 8) == 0 ? 1u << below(reader, SCOPES) : key->scopes & CHATELAINE_PATIENTS_READ;
}

/* What is known is noted first. */
static bool try_begins(struct reader *reader, struct attempt *attempt)
{
    *attempt = (struct attempt){.key = random_key(reader)};
    if (!attempt->key)
        return false;
    attempt->promise = atomic_load_explicit(&attempt->key->promise, memory_order_acquire);
    attempt->step.scopes = random_scopes(reader, attempt->key);
    attempt->start_ns = history_now_ns();
    return true;
}

/* Judging */

static void tell(struct reader *reader, const struct attempt *attempt, enum board_what what)
{
    unsigned at = atomic_fetch_add(&reader->board->found, 1);

    if (at >= BOARD_FINDINGS_MAX)
        return;
    struct board_finding *finding = &reader->board->findings[at];
    finding->start_ns = attempt->start_ns;
    finding->end_ns = history_now_ns();
    finding->number = (uint32_t)(attempt->key - reader->board->keys);
    finding->node = (uint8_t)reader->node;
    finding->what = (uint8_t)what;
    atomic_store_explicit(&finding->is_written, true, memory_order_release);
}

static void judge(struct reader *reader, const struct attempt *attempt)
{
    struct board *board = reader->board;
    const struct board_key *key = attempt->key;

    atomic_fetch_add(&board->after_end, attempt->promise & 1);
    atomic_fetch_add(attempt->step.goes_on ? &board->accepted : &board->not_accepted, 1);
    if (!attempt->step.goes_on)
        return;
    if (!atomic_load(&key->was_accepted))
        atomic_store(&attempt->key->was_accepted, true);
    if ((attempt->promise & 1) && atomic_load_explicit(&key->promise, memory_order_acquire) == attempt->promise)
        tell(reader, attempt, BOARD_ENDED);
    if (strcmp(attempt->step.who.principal, key->id) != 0)
        tell(reader, attempt, BOARD_OTHER_KEY);
    if (key->scopes && (attempt->step.who.scopes != key->scopes || (attempt->step.scopes & ~key->scopes)))
        tell(reader, attempt, BOARD_OTHER_SCOPES);
}

/* As many readers that are stopped at the same moment: each step is done for all checks, with pauses between. */
static void check_in_steps(struct reader *reader, bool has_pauses)
{
    struct table_steps *steps = &reader->steps;

    steps->clock_before_ns = chatelaine_now_ns();
    if (has_pauses && steps->broken == READER_CLOCK)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        if (try_begins(reader, &reader->tries[i]))
            table_steps_find(steps, &reader->tries[i].step, reader->tries[i].key->secret);
    if (has_pauses)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        table_steps_validate(steps, &reader->tries[i].step);
    if (has_pauses)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        table_steps_count(steps, &reader->tries[i].step);
}

static void check_at_once(struct reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        struct attempt *attempt = &reader->tries[i];

        if (try_begins(reader, attempt))
            attempt->step.goes_on = chatelaine_check(&reader->table, attempt->key->secret, strlen(attempt->key->secret),
                                                     attempt->step.scopes, &attempt->step.who);
    }
}

static void turn(struct reader *reader)
{
    bool has_pauses = !reader->is_quick && below(reader, 8) == 0;

    refresh(reader);
    reader->count = has_pauses ? BATCH_MAX : 1 + below(reader, BATCH_MAX);
    if (!reader->table.header) {
        atomic_fetch_add(&reader->board->without_table, 1);
        return;
    }
    if (has_pauses || reader->steps.broken != READER_RULE_COUNT || below(reader, 2))
        check_in_steps(reader, has_pauses);
    else
        check_at_once(reader);
    for (size_t i = 0; i < reader->count; i++)
        if (reader->tries[i].key)
            judge(reader, &reader->tries[i]);
}

int table_reader_run(int argc, char **argv)
{
    static struct reader reader;

    if (argc != 5)
        return EXIT_FAILURE;
    reader.board = board_open(argv[0]);
    reader.node = (unsigned)strtoul(argv[2], NULL, 10);
    reader.seed = (unsigned)strtoul(argv[3], NULL, 10);
    reader.is_quick = strcmp(argv[4], "quick") == 0;
    reader.steps = (struct table_steps){.table = &reader.table, .broken = table_steps_broken()};
    chatelaine_table_init(&reader.table, argv[1], CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    for (;;) {
        turn(&reader);
        poll(NULL, 0, (int)below(&reader, TURN_MAX_MS) + 1);
    }
}
