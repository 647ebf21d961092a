#include "engine/readiness.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "lease/names.h"
#include "engine/part.h"
#include "state.h"
#include "engine/store.h"
#include <stdio.h>
#include <string.h>

enum {
    PROBE_INTERVAL_MS = 5000, /* between examinations */
    PROBE_GLANCE_MS = 1000,   /* meanwhile: notices a Redis that was reconfigured while running */
    PROBE_AGAIN_MS = 1000,    /* while Redis is not fit */
    PROBE_EMPTY_MS = 250,     /* while the store waits for its first account */
    /* The same for PROBE_NEW_FOR_MS after connecting: a new master is still getting its replicas, or what it lost. */
    PROBE_NEW_MS = 200,
    PROBE_NEW_FOR_MS = 5000,
};

static const char NOT_EXAMINED[] = "Redis is being examined.";
static const char FULL[] = "Redis' memory is full: nothing new can be created, but checks, sign-ins and revocations "
                           "still work. Raise maxmemory or free memory.";

static const char UNLOGGED[] =
    "The audit log cannot be written: nothing new can be created, and revocations and other ends take effect but are "
    "answered 503 once. Checks and sign-ins still work. Free disk space; the node's log says what failed.";

bool store_may_decide(const struct store *store)
{
    return identity_may_decide(lease_identity(store->lease)) && lease_may_decide(store->lease);
}

bool store_is_ready(const struct store *store)
{
    return store->reads_up && store->scripts_up && store->changes_up && store->has_worked && !store->unfit &&
           !store->is_closing && store_may_decide(store);
}

const char *store_trouble(const struct store *store)
{
    /* The text is built on demand. The store stays logically const. */
    char *text = (char *)(uintptr_t)store->trouble;
    const struct redis_link *down = !store->changes_up   ? store->changes
                                    : !store->reads_up   ? store->reads
                                    : !store->scripts_up ? store->scripts
                                    : !store->has_worked ? store->work
                                                         : NULL;

    if (store->is_closing)
        return "The store is closed.";

    const struct identity *identity = lease_identity(store->lease);
    if (identity_strange(identity))
        return identity_strange(identity);
    if (down)
        snprintf(text, sizeof store->trouble, "Redis cannot be reached: %s.", redis_link_trouble(down));
    if (down)
        return text;
    if (store->unfit)
        return store->unfit;
    if (!identity_may_decide(identity))
        return NOT_EXAMINED;
    if (!store_may_decide(store))
        return membership_trouble(lease_member(store->lease));
    if (store->is_full)
        return FULL;
    return store_log_trouble(store) ? UNLOGGED : "";
}

const char *store_refusal(const struct store *store, enum store_result result)
{
    if (!store_is_ready(store))
        return NULL;
    if (store->is_full && result == STORE_UNAVAILABLE)
        return "The store's memory is full: nothing new can be created until the operator raises or frees it. Checks, "
               "sign-ins and revocations still work.";
    if (store->is_short && result == STORE_UNAVAILABLE)
        return "The store's memory is nearly full: no device can begin to enrol until the operator raises or frees it.";
    if (store_log_trouble(store) && (result == STORE_UNAVAILABLE || result == STORE_UNKNOWN))
        return "The audit log cannot be written: nothing new can be created until the operator repairs that. "
               "Revocations and other ends take effect, but only their repetition is confirmed.";
    return NULL;
}

/* While loading, Redis refuses everything with this error. */
bool store_is_loading(const struct store *store)
{
    return !store->is_closing && !store->changes_up && strstr(redis_link_trouble(store->changes), ": LOADING ");
}

void readiness_tell(struct store *store)
{
    bool is_ready = store_is_ready(store);

    if (store->is_ready == is_ready || store->is_closing)
        return;
    store->is_ready = is_ready;
    if (store->ready)
        store->ready(store->arg);
}

static void unfit_set(struct store *store, const char *unfit)
{
    if (unfit && unfit != store->unfit && unfit != NOT_EXAMINED)
        LOG(LOG_WARN, "Redis is not fit: changes are refused", log_str("why", unfit), log_partition(store->prefix));
    else if (!unfit && store->unfit && store->unfit != NOT_EXAMINED)
        LOG(LOG_INFO, "Redis is fit again", log_str("link", "changes"), log_partition(store->prefix));
    store->unfit = unfit;
}

static void probe_in(struct store *store, uint64_t ms)
{
    if (!store->is_closing)
        CHECK(uv_timer_start(&store->probe, store->on_probe, ms, 0) == 0);
}

/* While something is wrong. */
static uint64_t probe_again_ms(const struct store *store)
{
    uint64_t connected_ns = clock_boot_ns() - lease_fence(store->lease)->connected_ns;

    return connected_ns < PROBE_NEW_FOR_MS * CLOCK_NS_PER_MS ? PROBE_NEW_MS : PROBE_AGAIN_MS;
}

static uint64_t probe_pause_ms(const struct store *store)
{
    if (store_is_empty(store))
        return PROBE_EMPTY_MS;
    return store->unfit || identity_strange(lease_identity(store->lease)) ? probe_again_ms(store) : PROBE_GLANCE_MS;
}

static void examine_in(struct store *store, uint64_t ms)
{
    store->examination.glance_until_ms = 0;
    probe_in(store, ms);
}

void store_glance_later(struct store *store)
{
    probe_in(store, PROBE_GLANCE_MS);
}

void store_doubt(struct store *store, const char *reason)
{
    unfit_set(store, reason);
    examine_in(store, PROBE_AGAIN_MS);
    readiness_tell(store);
}

/* How many of the partitions that this process has open are full. One that is closed while it is full stays counted,
 * because then the process ends. */
static int stores_full;

void store_note_full(struct store *store, bool is_full)
{
    if (is_full && !store->is_full) {
        LOG(LOG_ERROR, "Redis' memory is full", log_str("why", FULL), log_partition(store->prefix));
        examine_in(store, PROBE_AGAIN_MS);
    } else if (!is_full && store->is_full) {
        LOG(LOG_INFO, "Redis has free memory again", log_str("link", "changes"), log_partition(store->prefix));
    }
    stores_full += is_full - store->is_full;
    store->is_full = is_full;
    metric_set(METRIC_REDIS_FULL, stores_full > 0);
}

void store_look_again(struct store *store)
{
    examine_in(store, probe_again_ms(store));
    readiness_tell(store);
}

void store_judged(struct store *store, const char *unfit)
{
    /* Facts of a lost connection say nothing about the next one. */
    if (store->changes_up)
        unfit_set(store, unfit);
    store->examination.glance_until_ms = uv_now(store->loop) + PROBE_INTERVAL_MS - PROBE_GLANCE_MS / 2;
    probe_in(store, probe_pause_ms(store));
    if (!store->unfit && lease_member(store->lease))
        membership_hurry(lease_member(store->lease));
    readiness_tell(store);
}

bool store_is_empty(const struct store *store)
{
    return identity_is_empty(lease_identity(store->lease));
}

void readiness_begin(struct store *store)
{
    store->unfit = NOT_EXAMINED;
}
