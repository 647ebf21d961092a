#include "admin/startup_gate.h"

#include "base/mem.h"
#include "base/secure.h"
#include "core/bucket.h"
#include "lease/names.h"
#include "redis_files_internal.h"
#include "engine/fitness.h"
#include "records/store_parts.h"

#include <stdlib.h>
#include <string.h>

/* Readiness is polled often at first, so that nodes start fast, and less often while Redis is away. */
enum { LOOK_FIRST_MS = 2, LOOK_MAX_MS = 250 };
/* After the first partition is ready. Links wait up to a second between attempts to connect. */
enum { ALL_WITHIN_MS = 1500 };
enum { MS_PER_DAY = 86400000 };

struct startup_gate {
    struct partitions *partitions;
    unsigned next;           /* the partition to examine */
    unsigned examined;       /* the one being examined */
    uint64_t first_ready_ms; /* 0: none has been */
    bool unsafe_redis;
    startup_gate_done *done; /* NULL once it has run or must not run any more */
    void *arg;
    uv_timer_t timer;
    uint64_t pause_ms;
    bool examining;
    bool timer_closed;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Someone who names certificates counts on encryption. */
static bool read_certificates(const struct settings *settings, struct store_settings *store, struct buf *ret_why)
{
    bool has_files = settings->redis_ca || settings->redis_cert || settings->redis_key;

    if (!store->target.tls && has_files) {
        buf_append_str(ret_why, "--redis-ca, --redis-cert and --redis-key are for TLS, but --redis names no TLS: write "
                                "rediss://, rediss-sentinel:// or rediss-cluster://");
        return false;
    }
    if (store->target.tls)
        store->tls = redis_tls_create(settings, ret_why);
    return !store->target.tls || store->tls;
}

/* given: 0 if --partitions is not. */
static bool read_partitions(unsigned given, struct store_settings *store, struct buf *ret_why)
{
    bool is_cluster = store->target.found == REDIS_BY_CLUSTER;

    store->partitions = given > 0 ? given : is_cluster ? PARTITIONS_OF_CLUSTER : 1;
    if ((given & (given - 1)) != 0)
        buf_printf(ret_why, "--partitions %u is no power of two: 1, 2, 4 up to %u", given, PARTITIONS_MAX);
    else if (is_cluster && strchr(store->prefix, '{'))
        buf_append_str(ret_why, "--prefix must have no braces in a cluster: what is in a name's first braces decides "
                                "its slot");
    else if (prefix_has_tag(store->prefix))
        buf_printf(ret_why, "--prefix must not end like that of a partition: %s", store->prefix);
    else
        return true;
    return false;
}

bool store_settings_read(const struct settings *settings, struct store_settings *ret_store, struct buf *ret_why)
{
    *ret_store = (struct store_settings){
        .parts = STORE_PARTS,
        .timeout_ms = (uint32_t)settings->redis_timeout_ms,
        .prefix = settings->prefix,
        .min_replicas = settings->min_replicas,
        .audit_max = settings->audit_max,
        .keys_max = settings->keys_max,
        .device_keys_max = settings->device_keys_max,
        .keys_per_day = settings->keys_per_day,
        .revoked_key_ms = settings->revoked_key_days * MS_PER_DAY,
        .people_max = settings->people_max,
        .changes_per_minute = settings->changes_per_minute,
        .unsafe_redis = settings->unsafe_redis,
        .durability_asserted = settings->redis_durability == REDIS_DURABILITY_ASSERTED,
    };
    if (!redis_target_read(settings, &ret_store->target, ret_why) ||
        !read_partitions((unsigned)settings->partitions, ret_store, ret_why) ||
        !read_certificates(settings, ret_store, ret_why))
        return false;
    ret_store->target.access = redis_access_create(settings, &ret_store->target, ret_store->tls);
    return true;
}

void store_settings_finish(struct store_settings *store)
{
    redis_access_destroy(store->target.access);
    redis_tls_destroy(store->tls);
    secure_wipe(store, sizeof *store);
}

bool store_settings_survive_failover(const struct store_settings *store, struct buf *ret_why)
{
    if (store->durability_asserted && store->target.found == REDIS_BY_SENTINEL) {
        buf_append_str(ret_why,
                       "--redis-durability asserted is not for redis-sentinel://: grant the user of every Redis "
                       "+config|get, so that nodes can see the settings that a failover depends on");
        return false;
    }
    if (store->target.found == REDIS_AT_HOST || store->unsafe_redis || store->min_replicas > 0 ||
        store->durability_asserted)
        return true;
    buf_printf(ret_why, "%s needs --min-replicas 1 or more: a failover loses changes that no replica has",
               redis_target_scheme(&store->target));
    return false;
}

static void print_seeds(const struct redis_target *target, struct buf *out)
{
    for (unsigned i = 0; i < target->seed_count; i++)
        buf_printf(out, "%s%s:%u", i > 0 ? "," : redis_target_scheme(target), target->seeds[i].host,
                   target->seeds[i].port);
    if (target->found == REDIS_BY_SENTINEL)
        buf_printf(out, "/%s", target->master_name);
}

void store_target_print(const struct redis_target *target, struct buf *out)
{
    if (target->is_unix)
        buf_printf(out, "unix:%s", target->host);
    else if (target->found != REDIS_AT_HOST)
        print_seeds(target, out);
    else
        buf_printf(out, "%s%s:%u", redis_target_scheme(target), target->host, target->port);
    if (target->db > 0)
        buf_printf(out, target->is_unix ? "?db=%u" : "/%u", target->db);
}

static void gate_freed(struct startup_gate *gate)
{
    if (!gate->closed || !gate->timer_closed || gate->examining)
        return;
    void (*closed)(void *arg) = gate->closed;
    void *arg = gate->closed_arg;
    free(gate);
    closed(arg);
}

static void gate_finish(struct startup_gate *gate, enum startup_gate_result result, const char *why)
{
    startup_gate_done *done = gate->done;

    gate->done = NULL;
    if (done)
        done(gate->arg, result, why);
}

static void gate_examined(void *arg, enum store_result result, const struct store_facts *facts)
{
    struct startup_gate *gate = arg;

    gate->examining = false;
    if (gate->closed) {
        gate_freed(gate);
        return;
    }
    struct store *store = partitions_at(gate->partitions, gate->examined);
    if (result == STORE_OK && (facts->partitions_there > 0 || facts->moved[0])) {
        gate_finish(gate, STARTUP_GATE_ELSEWHERE, store_trouble(store));
        return;
    }
    /* If Redis loads its file, or replicas are missing, wait as for a Redis that is down. */
    unsigned kinds = (gate->unsafe_redis ? FITNESS_UNSAFE : FITNESS_ALL) & ~(unsigned)FITNESS_WAITS;
    const char *unfit = result == STORE_OK ? fitness_breach(facts, kinds) : NULL;
    if (unfit && !store_is_ready(store))
        gate_finish(gate, fitness_breach(facts, FITNESS_UNSAFE) ? STARTUP_GATE_UNFIT : STARTUP_GATE_UNSAFE, unfit);
}

/* A store that becomes ready at once need not be examined. */
static void gate_examine(struct startup_gate *gate)
{
    unsigned count = partitions_count(gate->partitions);

    if (gate->pause_ms <= LOOK_FIRST_MS * 8 || gate->examining)
        return;
    while (store_is_ready(partitions_at(gate->partitions, gate->next % count)))
        gate->next++;
    gate->examining = true;
    gate->examined = gate->next++ % count;
    store_examine(partitions_at(gate->partitions, gate->examined), gate_examined, gate);
}

/* Where a primary is down, the partitions of others are not waiting for it. */
static bool is_open(struct startup_gate *gate)
{
    unsigned ready = partitions_ready(gate->partitions);
    uint64_t now_ms = uv_now(gate->timer.loop);

    if (ready > 0 && gate->first_ready_ms == 0)
        gate->first_ready_ms = now_ms;
    return ready == partitions_count(gate->partitions) || (ready > 0 && now_ms - gate->first_ready_ms >= ALL_WITHIN_MS);
}

static void gate_look(uv_timer_t *timer)
{
    struct startup_gate *gate = timer->data;

    if (!gate->done)
        return;
    if (is_open(gate)) {
        gate_finish(gate, STARTUP_GATE_OPEN, NULL);
        return;
    }
    gate->pause_ms = gate->pause_ms * 2 > LOOK_MAX_MS ? LOOK_MAX_MS : gate->pause_ms * 2;
    gate_examine(gate);
    uv_timer_start(&gate->timer, gate_look, gate->pause_ms, 0);
}

struct startup_gate *startup_gate_create(uv_loop_t *loop, struct partitions *partitions, bool unsafe_redis,
                                         startup_gate_done *done, void *arg)
{
    struct startup_gate *gate = mem_alloc(sizeof *gate);

    *gate = (struct startup_gate){.partitions = partitions, .unsafe_redis = unsafe_redis, .done = done, .arg = arg};
    gate->pause_ms = LOOK_FIRST_MS;
    uv_timer_init(loop, &gate->timer);
    gate->timer.data = gate;
    uv_timer_start(&gate->timer, gate_look, LOOK_FIRST_MS, 0);
    return gate;
}

static void gate_timer_closed(uv_handle_t *handle)
{
    struct startup_gate *gate = handle->data;

    gate->timer_closed = true;
    gate_freed(gate);
}

void startup_gate_close(struct startup_gate *gate, void (*closed)(void *arg), void *arg)
{
    gate->done = NULL;
    gate->closed = closed;
    gate->closed_arg = arg;
    uv_close((uv_handle_t *)&gate->timer, gate_timer_closed);
}
