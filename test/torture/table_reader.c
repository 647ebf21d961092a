#include "table_reader.h"
#include "table_board.h"

#include "chatelaine/check.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, BATCH_MAX = 16, TURN_MAX_MS = 4, REFRESH_MAX_MS = 100, SCOPES = 12 };

enum reader_rule {
#define READER_RULE_ENUM(id, name, without) id,
    TABLE_READER_RULES(READER_RULE_ENUM)
#undef READER_RULE_ENUM
        READER_RULE_COUNT /* none is left out */
};

/* A check under way. */
struct attempt {
    struct board_key *key;
    uint32_t promise; /* before it began */
    int64_t start_ns;
    uint32_t scopes; /* that are asked for */
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];
    uint32_t slot;
    bool goes_on; /* nothing has refused it yet */
    struct chatelaine_principal who;
};

struct reader {
    struct board *board;
    unsigned node, seed;
    bool is_quick;
    enum reader_rule broken;
    struct chatelaine_table table;
    int64_t refresh_at_ns;
    uint64_t clock_before_ns; /* for READER_CLOCK */
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
    attempt->scopes = random_scopes(reader, attempt->key);
    attempt->start_ns = history_now_ns();
    return true;
}

/* The steps of chatelaine_check() */

static void find(struct reader *reader, struct attempt *attempt)
{
    chatelaine_hash(reader->table.hash_key, attempt->key->secret, strlen(attempt->key->secret), attempt->hash);
    attempt->goes_on = chatelaine_find(&reader->table, attempt->hash, &attempt->slot, attempt->words);
}

/* chatelaine_is_valid() but for what this reader leaves out. */
static bool is_nearly_valid(const struct reader *reader, const struct attempt *attempt)
{
    const struct chatelaine_table *table = &reader->table;
    const struct chatelaine_entry *entry =
        &table->sets[attempt->slot / CHATELAINE_WAYS].entries[attempt->slot % CHATELAINE_WAYS];
    uint32_t bucket = (uint32_t)(attempt->words[3] >> 48) & (CHATELAINE_BUCKETS - 1);
    uint64_t until_ns = atomic_load(&table->header->lease_until_ns[bucket & table->partition_mask]);
    uint64_t now_ns = reader->broken == READER_CLOCK ? reader->clock_before_ns : chatelaine_now_ns();

    return (now_ns < until_ns || reader->broken == READER_LEASE) &&
           (atomic_load(&table->header->epoch[bucket]) == (uint32_t)attempt->words[3] ||
            reader->broken == READER_EPOCH) &&
           (atomic_load(&entry->words[0]) == attempt->words[0] || reader->broken == READER_ORDER);
}

static void validate(struct reader *reader, struct attempt *attempt)
{
    attempt->goes_on =
        attempt->goes_on &&
        (reader->broken == READER_RULE_COUNT ? chatelaine_is_valid(&reader->table, attempt->slot, attempt->words)
                                             : is_nearly_valid(reader, attempt)) &&
        (attempt->scopes & ~(uint32_t)(attempt->words[3] >> 32 & 0xffff)) == 0;
}

/* The counter's generation shows, too, that the entry has changed. */
static void count_use(struct reader *reader, struct attempt *attempt)
{
    attempt->goes_on = attempt->goes_on &&
                       (chatelaine_count_use(&reader->table.uses[attempt->slot], (uint32_t)(attempt->words[0] >> 32)) ||
                        reader->broken == READER_ORDER);
    if (attempt->goes_on)
        chatelaine_read_entry(attempt->words, &attempt->who);
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
    atomic_fetch_add(attempt->goes_on ? &board->accepted : &board->not_accepted, 1);
    if (!attempt->goes_on)
        return;
    if (!atomic_load(&key->was_accepted))
        atomic_store(&attempt->key->was_accepted, true);
    if ((attempt->promise & 1) && atomic_load_explicit(&key->promise, memory_order_acquire) == attempt->promise)
        tell(reader, attempt, BOARD_ENDED);
    if (strcmp(attempt->who.principal, key->id) != 0)
        tell(reader, attempt, BOARD_OTHER_KEY);
    if (key->scopes && (attempt->who.scopes != key->scopes || (attempt->scopes & ~key->scopes)))
        tell(reader, attempt, BOARD_OTHER_SCOPES);
}

/* As many readers that are stopped at the same moment: each step is done for all checks, with pauses between. */
static void check_in_steps(struct reader *reader, bool has_pauses)
{
    reader->clock_before_ns = chatelaine_now_ns();
    if (has_pauses && reader->broken == READER_CLOCK)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        if (try_begins(reader, &reader->tries[i]))
            find(reader, &reader->tries[i]);
    if (has_pauses)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        validate(reader, &reader->tries[i]);
    if (has_pauses)
        pause_for_a_while(reader);
    for (size_t i = 0; i < reader->count; i++)
        count_use(reader, &reader->tries[i]);
}

static void check_at_once(struct reader *reader)
{
    for (size_t i = 0; i < reader->count; i++) {
        struct attempt *attempt = &reader->tries[i];

        if (try_begins(reader, attempt))
            attempt->goes_on = chatelaine_check(&reader->table, attempt->key->secret, strlen(attempt->key->secret),
                                                attempt->scopes, &attempt->who);
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
    if (has_pauses || reader->broken != READER_RULE_COUNT || below(reader, 2))
        check_in_steps(reader, has_pauses);
    else
        check_at_once(reader);
    for (size_t i = 0; i < reader->count; i++)
        if (reader->tries[i].key)
            judge(reader, &reader->tries[i]);
}

static enum reader_rule broken_rule(void)
{
    static const char *const NAMES[READER_RULE_COUNT] = {
#define READER_RULE_NAME(id, name, without) [id] = name,
        TABLE_READER_RULES(READER_RULE_NAME)
#undef READER_RULE_NAME
    };
    const char *broken = getenv("CHATELAINE_BREAK");
    enum reader_rule rule = 0;

    while (rule < READER_RULE_COUNT && (!broken || strcmp(broken, NAMES[rule]) != 0))
        rule++;
    return rule;
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
    reader.broken = broken_rule();
    chatelaine_table_init(&reader.table, argv[1], CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    for (;;) {
        turn(&reader);
        poll(NULL, 0, (int)below(&reader, TURN_MAX_MS) + 1);
    }
}
