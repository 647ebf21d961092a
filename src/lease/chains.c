#include "lease/chains.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/random.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS_FIRST = 16 };
/* A chain that stood still for so long is forgotten: nobody keeps what it ended, and Redis folds it away later. */
static const uint64_t REMEMBERED_NS = UINT64_C(12) * 3600 * 1000 * CLOCK_NS_PER_MS;

struct chains {
    char maker[MAKER_CHARS + 1];
    struct chain_numbers answered;
    char last_maker[MAKER_CHARS + 1]; /* of the last change that was answered */
    uint64_t last_number;
    struct chain *known; /* sorted by maker */
    size_t count, room;
    uint64_t changes, joined;
};

struct chains *chains_create(void)
{
    struct chains *chains = mem_alloc(sizeof *chains);

    chains_draw_maker(chains);
    return chains;
}

void chains_draw_maker(struct chains *chains)
{
    uint8_t bytes[MAKER_CHARS / 2];
    struct buf out;

    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, chains->maker, MAKER_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
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
    chains->known[place] = (struct chain){0};
    snprintf(chains->known[place].maker, sizeof chains->known[place].maker, "%s", maker);
    return &chains->known[place];
}

static void grow(struct chains *chains, const char *maker, struct chain_numbers numbers)
{
    struct chain *chain = chain_of(chains, maker);

    if (numbers.ends <= chain->numbers.ends && numbers.all <= chain->numbers.all)
        return;
    if (numbers.ends > chain->numbers.ends)
        chain->numbers.ends = numbers.ends;
    if (numbers.all > chain->numbers.all)
        chain->numbers.all = numbers.all;
    chain->heard_ns = clock_boot_ns();
}

void chains_answer(struct chains *chains, const char *maker, struct chain_numbers numbers)
{
    snprintf(chains->last_maker, sizeof chains->last_maker, "%s", maker);
    chains->last_number = numbers.ends;
    grow(chains, maker, numbers);
    if (strcmp(maker, chains->maker) == 0)
        chains->answered = chain_of(chains, maker)->numbers;
}

void chains_heard(struct chains *chains, struct text maker, struct chain_numbers numbers)
{
    char name[MAKER_CHARS + 1];

    if (maker.len != MAKER_CHARS)
        return;
    snprintf(name, sizeof name, "%.*s", TEXT_ARG(maker));
    grow(chains, name, numbers);
}

void chains_heard_all(struct chains *chains, uint64_t count)
{
    chains->changes = count;
}

uint64_t chains_count(const struct chains *chains)
{
    return chains->changes;
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

    if (chain->numbers.ends > numbers.ends)
        chain->numbers.ends = numbers.ends;
    if (chain->numbers.all > numbers.all)
        chain->numbers.all = numbers.all;
    if (strcmp(maker, chains->maker) == 0)
        chains->answered = chain->numbers;
}

static void forget_old(struct chains *chains)
{
    uint64_t now_ns = clock_boot_ns();
    size_t kept = 0;

    for (size_t i = 0; i < chains->count; i++)
        if (now_ns - chains->known[i].heard_ns < REMEMBERED_NS || strcmp(chains->known[i].maker, chains->maker) == 0)
            chains->known[kept++] = chains->known[i];
    chains->count = kept;
}

const struct chain *chains_all(struct chains *chains, size_t *ret_count)
{
    forget_old(chains);
    *ret_count = chains->count;
    return chains->known;
}

bool chain_read(struct text text, struct chain_numbers *ret_numbers, uint64_t *ret_low)
{
    struct text ends, all, low;

    *ret_low = UINT64_MAX;
    return text_next(&text, ' ', &ends) && text_next(&text, ' ', &all) && text_next(&text, ' ', &low) && !text.ptr &&
           text_to_u64(ends, INT64_MAX, &ret_numbers->ends) && text_to_u64(all, INT64_MAX, &ret_numbers->all) &&
           (text_equal(low, TEXT("-")) || text_to_u64(low, INT64_MAX, ret_low));
}
