#include "examine_internal.h"

#include "base/mem.h"
#include "engine/fitness.h"

#include <stdlib.h>

/* SEEDS_PAUSE_MS: seeds that hang are given up after half a second. */
enum { EXAMINE_TRIES = 3, EXAMINE_PAUSE_MS = 100, SEEDS_PAUSE_MS = 700 };

struct examined {
    struct redis_examination *examination;
    bool has_facts;
    struct store_facts facts;
};

struct redis_examination {
    struct store_client *client;
    unsigned pending;
    struct examined *parts; /* of the partitions, in their order */
};

static void on_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    struct examined *part = arg;
    struct redis_examination *examination = part->examination;

    part->has_facts = result == STORE_OK;
    if (part->has_facts)
        part->facts = *facts;
    if (--examination->pending == 0)
        store_client_done(examination->client);
}

/* All at once, because each that hangs takes its timeout. */
static void examine_missing(struct redis_examination *examination)
{
    struct partitions *partitions = examination->client->partitions;

    for (unsigned i = 0; i < partitions_count(partitions); i++) {
        if (examination->parts[i].has_facts)
            continue;
        examination->pending++;
        store_examine(partitions_at(partitions, i), on_examined, &examination->parts[i]);
    }
    store_client_wait(examination->client);
}

static bool is_missing(const struct redis_examination *examination)
{
    for (unsigned i = 0; i < partitions_count(examination->client->partitions); i++)
        if (!examination->parts[i].has_facts)
            return true;
    return false;
}

static bool choose(const struct redis_examination *examination, struct store_facts *ret_facts, unsigned *ret_well)
{
    bool is_reachable = false, has_breach = false;
    int64_t ahead_ms = 0;

    *ret_well = 0;
    for (unsigned i = 0; i < partitions_count(examination->client->partitions); i++) {
        const struct examined *part = &examination->parts[i];

        if (!part->has_facts)
            continue;
        bool breaches = fitness_breach(&part->facts, FITNESS_ALL | FITNESS_WHOLE) != NULL;
        if (!is_reachable || (breaches && !has_breach))
            *ret_facts = part->facts;
        is_reachable = true;
        has_breach |= breaches;
        *ret_well += !breaches;
        if (llabs(part->facts.time_ahead_ms) > llabs(ahead_ms))
            ahead_ms = part->facts.time_ahead_ms;
    }
    if (is_reachable)
        ret_facts->time_ahead_ms = ahead_ms;
    return is_reachable;
}

bool redis_examine(struct store_client *client, struct store_facts *ret_facts, unsigned *ret_well)
{
    unsigned count = partitions_count(client->partitions);
    struct redis_examination examination = {.client = client};
    uint64_t pause_ms = client->settings.target.found != REDIS_AT_HOST ? SEEDS_PAUSE_MS : EXAMINE_PAUSE_MS;
    bool is_reachable;

    examination.parts = mem_alloc(count * sizeof *examination.parts);
    for (unsigned i = 0; i < count; i++)
        examination.parts[i] = (struct examined){.examination = &examination};
    for (int tries = 0; tries < EXAMINE_TRIES && is_missing(&examination); tries++) {
        store_client_pause(client, pause_ms);
        examine_missing(&examination);
    }
    is_reachable = choose(&examination, ret_facts, ret_well);
    free(examination.parts);
    return is_reachable;
}
