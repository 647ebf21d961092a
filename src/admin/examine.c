#include "examine_internal.h"

/* SENTINELS_PAUSE_MS: Sentinels that hang are given up after half a second. */
enum { EXAMINE_TRIES = 3, EXAMINE_PAUSE_MS = 100, SENTINELS_PAUSE_MS = 700 };

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

bool redis_examine(struct store_client *client, struct store_facts *ret_facts)
{
    struct examination examination = {client, STORE_UNAVAILABLE, ret_facts};

    for (int i = 0; i < EXAMINE_TRIES && examination.result != STORE_OK; i++) {
        store_client_pause(client, client->settings.target.sentinel_count > 0 ? SENTINELS_PAUSE_MS : EXAMINE_PAUSE_MS);
        store_examine(client->store, on_examined, &examination);
        store_client_wait(client);
    }
    return examination.result == STORE_OK;
}
