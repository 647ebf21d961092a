#include "store/store.h"
#include "barrier_internal.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "core/limits.h"
#include "core/lease_rules.h"
#include "node_session_internal.h"
#include "redis/sentinel.h"
#include "store_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS_MAX = 64 * 1024,    /* a link's calls under way: a second of full load */
    PROBE_INTERVAL_MS = 5000, /* how soon a Redis that was reconfigured under way is noticed */
    PROBE_AGAIN_MS = 1000,    /* while it is unfit: how soon it is trusted again */
    PROBE_EMPTY_MS = 250,     /* while it waits for the first account */
    PROBE_NEW_MS = 200, /* while it is unfit, for PROBE_NEW_FOR_MS after connecting: a new master gets its replicas */
    PROBE_NEW_FOR_MS = 5000,
    LOG_PAUSE_MS = 5000,
    BACKOFF_MAX_MS = 1000,
    /* min-replicas-max-lag as the rule min-replicas-max-lag of fitness.c allows it, one second more, for Redis counts
     * whole ones, the second and a tick of its timer until a master counts its replicas again; all by a clock 10 %
     * slower than ours. */
    FENCE_MS = ((STORE_REPLICA_LAG_MAX_S + 1) * 1000 + 1000 + 100) * 11 / 10,
};

static const char NOT_EXAMINED[] = "Redis is being examined.";
static const char FULL[] =
    "Redis' memory is full: nothing new can be made, but checks, sign-ins and revocations go on. "
    "Raise maxmemory, or free some.";

static void reads_told(void *arg, bool is_up);
static void scripts_told(void *arg, bool is_up);
static void changes_told(void *arg, bool is_up);
static void on_probe(uv_timer_t *probe);
static void on_idle(uv_idle_t *idle);

/* Readiness */

bool store_may_decide(const struct store *store)
{
    return identity_may_decide(store) && (!store->session || node_session_may_decide(store->session));
}

bool store_is_ready(const struct store *store)
{
    return store->reads_up && store->scripts_up && store->changes_up && !store->unfit && !store->is_closing &&
           store_may_decide(store);
}

const char *store_trouble(const struct store *store)
{
    /* Its text is made on demand; the store is the same for the caller. */
    char *text = (char *)(uintptr_t)store->trouble;
    const struct redis_link *down = !store->changes_up   ? store->changes
                                    : !store->reads_up   ? store->reads
                                    : !store->scripts_up ? store->scripts
                                                         : NULL;

    if (store->is_closing)
        return "The store is closed.";
    if (store->identity.strange)
        return store->identity.strange;
    if (down)
        snprintf(text, sizeof store->trouble, "Redis cannot be reached: %s.", redis_link_trouble(down));
    if (down)
        return text;
    if (store->unfit)
        return store->unfit;
    if (!identity_may_decide(store))
        return NOT_EXAMINED;
    if (!store_may_decide(store))
        return node_session_trouble(store->session);
    return store->is_full ? FULL : "";
}

/* Redis' own word, by which it refuses everything meanwhile. */
bool store_is_loading(const struct store *store)
{
    return !store->is_closing && !store->changes_up && strstr(redis_link_trouble(store->changes), ": LOADING ");
}

static void readiness_tell(struct store *store)
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
        LOG(LOG_WARN, "redis is not fit, changes are refused", log_str("why", unfit));
    else if (!unfit && store->unfit && store->unfit != NOT_EXAMINED)
        LOG(LOG_INFO, "redis is fit again", log_str("link", "changes"));
    store->unfit = unfit;
}

static void probe_in(struct store *store, uint64_t ms)
{
    if (!store->is_closing)
        CHECK(uv_timer_start(&store->probe, on_probe, ms, 0) == 0);
}

static uint64_t probe_pause_ms(const struct store *store)
{
    if (store_is_empty(store))
        return PROBE_EMPTY_MS;
    if (store->unfit && clock_boot_ns() - store->changes_since_ns < PROBE_NEW_FOR_MS * CLOCK_NS_PER_MS)
        return PROBE_NEW_MS;
    return store->unfit || store->identity.strange ? PROBE_AGAIN_MS : PROBE_INTERVAL_MS;
}

void store_doubt(struct store *store, const char *reason)
{
    unfit_set(store, reason);
    probe_in(store, PROBE_AGAIN_MS);
    readiness_tell(store);
}

void store_note_full(struct store *store, bool is_full)
{
    if (is_full && !store->is_full) {
        LOG(LOG_ERROR, "redis is full", log_str("why", FULL));
        probe_in(store, PROBE_AGAIN_MS);
    } else if (!is_full && store->is_full) {
        LOG(LOG_INFO, "redis has memory again", log_str("link", "changes"));
    }
    store->is_full = is_full;
    metric_set(METRIC_REDIS_FULL, is_full);
}

void store_look_again(struct store *store)
{
    probe_in(store, PROBE_AGAIN_MS);
    readiness_tell(store);
}

void store_judged(struct store *store, const char *unfit)
{
    /* Facts of a connection that is gone say nothing of the next. */
    if (store->changes_up)
        unfit_set(store, unfit);
    probe_in(store, probe_pause_ms(store));
    readiness_tell(store);
}

static void reads_told(void *arg, bool is_up)
{
    struct store *store = arg;

    store->reads_up = is_up;
    if (is_up)
        store_link_is_up(store, store->reads);
    readiness_tell(store);
}

static void scripts_told(void *arg, bool is_up)
{
    struct store *store = arg;

    store->scripts_up = is_up;
    if (is_up)
        store_link_is_up(store, store->scripts);
    readiness_tell(store);
}

static void changes_told(void *arg, bool is_up)
{
    struct store *store = arg;

    store->changes_up = is_up;
    store->changes_since_ns = is_up ? clock_boot_ns() : 0;
    store->followed_since_ns = 0;
    store->unfit = NOT_EXAMINED;
    if (is_up) {
        store_link_is_up(store, store->changes);
        examination_start(store);
    } else {
        barriers_fail(store->barriers);
    }
    readiness_tell(store);
}

static void on_probe(uv_timer_t *probe)
{
    struct store *store = probe->data;

    if (store->changes_up)
        examination_start(store);
}

static void on_idle(uv_idle_t *idle)
{
    CHECK(uv_idle_stop(idle) == 0);
    script_tell_refused(idle->data);
}

/* What verbs use */

struct redis_link *store_reads(struct store *store)
{
    return store->reads;
}

struct redis_link *store_scripts(struct store *store)
{
    return store->scripts;
}

uv_loop_t *store_loop(struct store *store)
{
    return store->loop;
}

struct text store_prefix(const struct store *store)
{
    return text_of(store->prefix);
}

const struct store_settings *store_limits(const struct store *store)
{
    return &store->settings;
}

int64_t store_audit_max(const struct store *store)
{
    return store->settings.audit_max;
}

struct key_discards **store_discards(struct store *store)
{
    return &store->discards;
}

uint32_t store_timeout_ms(const struct store *store)
{
    return store->settings.timeout_ms;
}

int64_t store_min_replicas(const struct store *store)
{
    return store->settings.min_replicas;
}

struct redis_resolver *store_resolver(const struct store *store)
{
    return store->sentinel ? redis_sentinel_resolver(store->sentinel) : NULL;
}

void store_followed(struct store *store)
{
    if (store->followed_since_ns == 0)
        store->followed_since_ns = clock_boot_ns();
}

/* A master lists the replicas that are connected to it, which another one may not be that is promoted next. Sentinel
 * goes on to count those that are down, and knows of none that it would promote and does not count. */
int64_t store_replicas_known(const struct store *store)
{
    int64_t told = store->sentinel ? redis_sentinel_replicas(store->sentinel) : 0;

    return told > store->replicas_listed ? told : store->replicas_listed;
}

enum store_takeover store_takeover(int64_t replicas_known, int64_t min_replicas)
{
    if (min_replicas >= replicas_known)
        return STORE_TAKEOVER_ALL;
    return 2 * min_replicas >= replicas_known ? STORE_TAKEOVER_MOST : STORE_TAKEOVER_FENCE;
}

/* What a master grants it grants before it was replaced (rule 10), by the kind of takeover:
 * ALL    Each heartbeat was acknowledged by the replica that was promoted since. So it was sent before the promotion,
 *        hence before we connected to the new master.
 * MOST   Of N replicas that this master has, the old one among them, R follow it. Any other master has N - 1 - R left
 * at most, which is less than R. So what it grants was sent before R were first seen to follow this one. FENCE  Some
 * may still follow the old one then. When they are moved its own count of replicas stops it, late by the lag that it
 * allows. Without Sentinels the second is all that can be said: nobody tells how many replicas could be promoted by
 * hand. */
uint64_t store_sole_since_ns(const struct store *store)
{
    enum store_takeover takeover = store_takeover(store_replicas_known(store), store->settings.min_replicas);

    if (store->sentinel && !RULE(RULE_FENCE))
        return 1;
    if (store->sentinel && takeover == STORE_TAKEOVER_FENCE) {
        uint64_t since_ns = store->settings.min_replicas > 0 ? store->followed_since_ns : store->changes_since_ns;

        return since_ns > 0 ? since_ns + FENCE_MS * CLOCK_NS_PER_MS : 0;
    }
    if (store->settings.min_replicas == 0 || (store->sentinel && takeover == STORE_TAKEOVER_ALL))
        return store->changes_since_ns;
    return store->followed_since_ns;
}

/* Where all replicas have a heartbeat, whichever is promoted knows how long its lease is. Elsewhere one may be promoted
 * that was cut off when a node came with a longer lease than any before; the rule lease-ms bounds those. */
uint64_t store_lease_unknown_ms(const struct store *store)
{
    bool is_unknown = store->sentinel && RULE(RULE_FENCE) &&
                      store_takeover(store_replicas_known(store), store->settings.min_replicas) != STORE_TAKEOVER_ALL;

    return is_unknown ? STORE_LEASE_UNKNOWN_MAX_MS : 0;
}

void store_lease_changed(struct store *store)
{
    readiness_tell(store);
}

struct node_session *store_session(const struct store *store)
{
    return store->session;
}

void store_set_session(struct store *store, struct node_session *session)
{
    store->session = session;
}

struct barriers *store_barriers(struct store *store)
{
    return store->barriers;
}

bool store_may_log(struct store *store, struct log_pause *pause)
{
    return log_pause_is_over(pause, uv_now(store->loop), LOG_PAUSE_MS);
}

/* Life */

struct store *store_create(uv_loop_t *loop, const struct store_settings *settings, void (*ready)(void *arg), void *arg)
{
    struct store *store = mem_alloc(sizeof *store);
    struct redis_link_settings link = {
        .name = "reads",
        .timeout_ms = settings->timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .calls_max = CALLS_MAX,
        .to_master = true,
    };

    CHECK(settings->timeout_ms > 0 && text_of(settings->prefix).len <= REDIS_PREFIX_MAX_BYTES);
    store->loop = loop;
    store->settings = *settings;
    secure_wipe(&store->settings.target, sizeof store->settings.target);
    store->prefix = mem_copy_text(settings->prefix, text_of(settings->prefix).len);
    store->settings.prefix = store->prefix;
    store->ready = ready;
    store->arg = arg;
    store->unfit = NOT_EXAMINED;
    script_init(store);
    examination_init(store);
    identity_init(store);
    promises_create(store);
    CHECK(uv_timer_init(loop, &store->probe) == 0);
    CHECK(uv_timer_init(loop, &store->examination.timer) == 0);
    CHECK(uv_idle_init(loop, &store->idle) == 0);
    store->probe.data = store->examination.timer.data = store->idle.data = store;
    store->barriers = barriers_create(store);
    if (settings->target.sentinel_count > 0)
        store->sentinel = redis_sentinel_create(loop, &settings->target, settings->timeout_ms);
    link.resolver = store_resolver(store);
    store->reads = redis_link_create(loop, &settings->target, &link, reads_told, store);
    link.name = "scripts";
    store->scripts = redis_link_create(loop, &settings->target, &link, scripts_told, store);
    link.name = "changes";
    store->changes = redis_link_create(loop, &settings->target, &link, changes_told, store);
    store_add_link(store, store->reads);
    store_add_link(store, store->scripts);
    store_add_link(store, store->changes);
    return store;
}

void store_wake(struct store *store)
{
    if (!uv_is_closing((uv_handle_t *)&store->idle))
        CHECK(uv_idle_start(&store->idle, on_idle) == 0);
}

/* Closing goes in steps: the links fail what is under way, then who told where Redis is ends, then the discards that
 * this stopped are freed, then the barriers, then our own handles. */

static void link_closed(void *arg);
static void sentinel_closed(void *arg);
static void discards_closed(void *arg);
static void barriers_closed(void *arg);
static void handle_closed(uv_handle_t *handle);

void store_close(struct store *store, void (*closed)(void *arg), void *arg)
{
    CHECK(!store->is_closing);
    store->is_closing = true;
    store->closed = closed;
    store->closed_arg = arg;
    store->closing = 3;
    store_remove_link(store, store->reads);
    store_remove_link(store, store->scripts);
    store_remove_link(store, store->changes);
    redis_link_close(store->reads, link_closed, store);
    redis_link_close(store->scripts, link_closed, store);
    redis_link_close(store->changes, link_closed, store);
}

static void link_closed(void *arg)
{
    struct store *store = arg;

    if (--store->closing > 0)
        return;
    store->reads = store->scripts = store->changes = NULL;
    if (store->sentinel)
        redis_sentinel_close(store->sentinel, sentinel_closed, store);
    else
        sentinel_closed(store);
}

static void sentinel_closed(void *arg)
{
    struct store *store = arg;

    store->sentinel = NULL;
    /* All completions come before the discards end, for one that cannot tell of its key discards it. */
    while (!list_empty(&store->refused))
        script_tell_refused(store);
    examination_give_up(store);
    barriers_fail(store->barriers);
    key_discards_close(store->discards, discards_closed, store);
}

static void discards_closed(void *arg)
{
    struct store *store = arg;

    store->discards = NULL;
    barriers_close(store->barriers, barriers_closed, store);
}

static void barriers_closed(void *arg)
{
    struct store *store = arg;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&store->probe,
        (uv_handle_t *)&store->examination.timer,
        (uv_handle_t *)&store->idle,
    };

    store->barriers = NULL;
    store->closing = sizeof handles / sizeof handles[0];
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        uv_close(handles[i], handle_closed);
}

static void handle_closed(uv_handle_t *handle)
{
    struct store *store = handle->data;

    if (--store->closing > 0)
        return;
    while (!list_empty(&store->refused))
        script_tell_refused(store);
    script_finish(store);
    promises_destroy(store);

    void (*closed)(void *arg) = store->closed;
    void *arg = store->closed_arg;
    free(store->prefix);
    free(store);
    if (closed)
        closed(arg);
}
