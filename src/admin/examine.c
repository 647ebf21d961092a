#include "examine_internal.h"

#include "store/fitness.h"

/* SEEDS_PAUSE_MS: seeds that hang are given up after half a second. */
enum { EXAMINE_TRIES = 3, EXAMINE_PAUSE_MS = 100, SEEDS_PAUSE_MS = 700 };

struct examination {
    struct store_client *client;
    enum store_result result;
    struct store_facts *facts;
};

static void on_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    struct examination *examination = arg;

    examination->result = result;
    if (result == STORE_OK)
        *examination->facts = *facts;
    store_client_done(examination->client);
}

static bool examine_one(struct store_client *client, struct store_facts *ret_facts)
{
    struct examination examination = {client, STORE_UNAVAILABLE, ret_facts};

    for (int i = 0; i < EXAMINE_TRIES && examination.result != STORE_OK; i++) {
        store_client_pause(client, client->settings.target.found != REDIS_AT_HOST ? SEEDS_PAUSE_MS : EXAMINE_PAUSE_MS);
        store_examine(client->store, on_examined, &examination);
        store_client_wait(client);
    }
    return examination.result == STORE_OK;
}

bool redis_examine(struct store_client *client, struct store_facts *ret_facts, unsigned *ret_well)
{
    struct store_facts facts;
    bool is_reachable = false, has_breach = false;

    *ret_well = 0;
    for (unsigned i = 0; i < partitions_count(client->partitions); i++) {
        client->store = partitions_at(client->partitions, i);
        if (!examine_one(client, &facts))
            continue;
        bool breaches = fitness_breach(&facts, FITNESS_ALL) != NULL;
        if (!is_reachable || (breaches && !has_breach))
            *ret_facts = facts;
        is_reachable = true;
        has_breach |= breaches;
        *ret_well += !breaches;
    }
    client->store = partitions_at(client->partitions, 0);
    return is_reachable;
}
