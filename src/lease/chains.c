#include "lease/chains.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS_FIRST = 16 };
/* A week by a clock that runs 10 % fast is longer than five days by one that runs 10 % slow. */
#define DAY_NS (UINT64_C(24) * 3600 * 1000 * CLOCK_NS_PER_MS)
static const uint64_t WEEK_NS = 7 * DAY_NS, FIVE_DAYS_NS = 5 * DAY_NS;

struct chains {
    char maker[MAKER_CHARS + 1];
    struct chain_numbers answered;
    char last_maker[MAKER_CHARS + 1]; /* of the last change that was answered */
    uint64_t last_number;
    struct chain *known; /* sorted by maker */
    size_t count, room;
    uint64_t changes, joined;
    uint64_t complete_ns; /* the last heartbeat that told all chains; 0: none did */
};

struct chains *chains_create(void)
{
    struct chains *chains = mem_alloc(sizeof *chains);

    chains_draw_maker(chains);
    return chains;
}

void chains_draw_maker(struct chains *chains)
{
    random_hex(chains->maker, sizeof chains->maker);
    chains->answered = (struct chain_numbers){0};
}

void chains_destroy(struct chains *chains)
{
    free(chains->known);
    free(chains);
}

const char *chains_maker(const struct chains *chains)
{
    return chains->maker;
}

struct chain_numbers chains_answered(const struct chains *chains)
{
    return chains->answered;
}

struct change_name chains_last_change(const struct chains *chains)
{
    return (struct change_name){text_of(chains->last_maker), chains->last_number};
}

/* Known chains */

/* Where the maker is, or where it belongs. */
static size_t place_of(const struct chains *chains, const char *maker, bool *ret_is_known)
{
    size_t from = 0, to = chains->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(chains->known[middle].maker, maker);

        if (order == 0) {
            *ret_is_known = true;
            return middle;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    *ret_is_known = false;
    return from;
}

/* Otherwise the search would not find it, and the node would not miss what Redis has lost of it. */
static bool is_in_order(const struct chains *chains, size_t place)
{
    return (place == 0 || strcmp(chains->known[place - 1].maker, chains->known[place].maker) < 0) &&
           (place + 1 >= chains->count || strcmp(chains->known[place].maker, chains->known[place + 1].maker) < 0);
}

static struct chain *chain_of(struct chains *chains, const char *maker)
{
    bool is_known;
    size_t place = place_of(chains, maker, &is_known);

    if (is_known)
        return &chains->known[place];
    if (chains->count == chains->room) {
        struct chain *known = chains->known;

        chains->room = chains->room ? 2 * chains->room : CHAINS_FIRST;
        chains->known = mem_alloc(chains->room * sizeof *known);
        if (known)
            memcpy(chains->known, known, chains->count * sizeof *known);
        free(known);
    }
    memmove(&chains->known[place + 1], &chains->known[place], (chains->count - place) * sizeof *chains->known);
    chains->count++;
    chains->known[place] = (struct chain){.record.low = UINT64_MAX};
    snprintf(chains->known[place].maker, sizeof chains->known[place].maker, "%s", maker);
    ENSURE(is_in_order(chains, place));
    return &chains->known[place];
}

static void forget_if_away(struct chains *chains)
{
    if (chains->complete_ns == 0 || clock_boot_ns() - chains->complete_ns < FIVE_DAYS_NS)
        return;
    chains->count = 0;
    chains->changes = chains->complete_ns = 0;
    chains_draw_maker(chains);
}

static void set(struct chain *chain, const struct chain_record *record)
{
    chain->record = *record;
    chain->heard_ns = clock_boot_ns();
}

static void grow(struct chain *chain, const struct chain_record *record)
{
    struct chain_record grown = *record;
    const struct chain_numbers *known = &chain->record.numbers;

    grown.numbers.ends = known->ends > grown.numbers.ends ? known->ends : grown.numbers.ends;
    grown.numbers.all = known->all > grown.numbers.all ? known->all : grown.numbers.all;
    if (grown.numbers.ends != known->ends || grown.numbers.all != known->all ||
        grown.is_folded != chain->record.is_folded || grown.low != chain->record.low)
        set(chain, &grown);
}

void chains_answer(struct chains *chains, const char *maker, struct chain_numbers numbers)
{
    struct chain *chain = chain_of(chains, maker);
    const struct chain_record answered = {numbers, chain->record.low, false};

    snprintf(chains->last_maker, sizeof chains->last_maker, "%s", maker);
    chains->last_number = numbers.ends;
    grow(chain, &answered);
    if (strcmp(maker, chains->maker) == 0)
        chains->answered = chain->record.numbers;
}

/* Redis may have forgotten a folded chain, and the same maker may have begun again. */
void chains_heard(struct chains *chains, struct text maker, const struct chain_record *record)
{
    char name[MAKER_CHARS + 1];

    if (maker.len != MAKER_CHARS)
        return;
    snprintf(name, sizeof name, "%.*s", TEXT_ARG(maker));
    struct chain *chain = chain_of(chains, name);
    if (chain->record.is_folded && record->numbers.all < chain->record.numbers.all)
        set(chain, record);
    else
        grow(chain, record);
}

void chains_heard_all(struct chains *chains, uint64_t count)
{
    chains->changes = count;
    chains->complete_ns = clock_boot_ns();
}

uint64_t chains_count(struct chains *chains)
{
    forget_if_away(chains);
    return chains->changes;
}

void chains_ask_all(struct chains *chains)
{
    chains->changes = 0;
}

uint64_t chains_joined(const struct chains *chains)
{
    return chains->joined;
}

void chains_heard_joined(struct chains *chains, uint64_t joined)
{
    chains->joined = joined;
}

void chains_lower(struct chains *chains, const char *maker, struct chain_numbers numbers)
{
    struct chain *chain = chain_of(chains, maker);
    struct chain_numbers *known = &chain->record.numbers;

    if (known->ends > numbers.ends)
        known->ends = numbers.ends;
    if (known->all > numbers.all)
        known->all = numbers.all;
    if (strcmp(maker, chains->maker) == 0)
        chains->answered = *known;
}

const struct chain *chains_all(struct chains *chains, size_t *ret_count)
{
    forget_if_away(chains);
    *ret_count = chains->count;
    return chains->known;
}

/* Folding away */

static bool is_own(const struct chains *chains, const struct chain *chain)
{
    return strcmp(chain->maker, chains->maker) == 0;
}

/* If the mark could not be taken off for days, Redis may soon forget the chain. */
const char *chains_maker_now(struct chains *chains)
{
    bool is_known;
    size_t place;

    forget_if_away(chains);
    place = place_of(chains, chains->maker, &is_known);
    if (is_known && chains->known[place].record.is_folded &&
        clock_boot_ns() - chains->known[place].heard_ns >= FIVE_DAYS_NS)
        chains_draw_maker(chains);
    return chains->maker;
}

static bool is_due(const struct chains *chains, const struct chain *chain)
{
    if (is_own(chains, chain))
        return chain->record.is_folded;
    return clock_boot_ns() - chain->heard_ns >= WEEK_NS;
}

size_t chains_changes_due(const struct chains *chains, struct chain_change *ret_changes, size_t most)
{
    size_t count = 0;

    for (size_t i = 0; i < chains->count && count < most; i++) {
        const struct chain *chain = &chains->known[i];
        bool is_forgotten = chain->record.is_folded && !is_own(chains, chain);

        if (!is_due(chains, chain))
            continue;
        ret_changes[count] = (struct chain_change){*chain, {{0}, UINT64_MAX, false}};
        if (!is_forgotten)
            ret_changes[count].to = (struct chain_record){chain->record.numbers, UINT64_MAX, !is_own(chains, chain)};
        count++;
    }
    return count;
}

void chains_changed(struct chains *chains, const struct chain_change *change)
{
    bool is_known;
    size_t place = place_of(chains, change->chain.maker, &is_known);

    /* A mark is set, or taken off. Whose it was is no longer certain: the node may have a new name by now. */
    REQUIRE(change->to.numbers.all == 0 || change->to.is_folded != change->chain.record.is_folded);
    if (!is_known || chains->known[place].heard_ns != change->chain.heard_ns)
        return;
    if (change->to.numbers.all > 0) {
        set(&chains->known[place], &change->to);
        return;
    }
    chains->count--;
    memmove(&chains->known[place], &chains->known[place + 1], (chains->count - place) * sizeof *chains->known);
}

bool chain_read(struct text text, struct chain_record *ret_record)
{
    struct text ends, all, low;

    *ret_record = (struct chain_record){.low = UINT64_MAX};
    if (!text_next(&text, ' ', &ends) || !text_next(&text, ' ', &all) || !text_next(&text, ' ', &low) || text.ptr ||
        !text_to_u64(ends, INT64_MAX, &ret_record->numbers.ends) ||
        !text_to_u64(all, INT64_MAX, &ret_record->numbers.all))
        return false;
    ret_record->is_folded = text_equal(low, TEXT("f"));
    return ret_record->is_folded || text_equal(low, TEXT("-")) || text_to_u64(low, INT64_MAX, &ret_record->low);
}

void chain_print(const struct chain_record *record, struct buf *out)
{
    buf_printf(out, "%" PRIu64 " %" PRIu64 " ", record->numbers.ends, record->numbers.all);
    if (record->low < UINT64_MAX)
        buf_printf(out, "%" PRIu64, record->low);
    else
        buf_append_str(out, record->is_folded ? "f" : "-");
}
