#include "engine/store.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "core/limits.h"
#include "lease/names.h"
#include "lease_host.h"
#include "engine/part.h"
#include "engine/readiness.h"
#include "redis/sentinel.h"
#include "engine/script.h"
#include "state.h"
#include "store_examine.h"
#include "engine/verb.h"
#include <stdlib.h>

enum {
    CALLS_MAX = 64 * 1024, /* pending calls of a link: about a second of full load */
    BACKOFF_MAX_MS = 1000,
};

static void on_reads_state(void *arg, bool is_up)
{
    struct store *store = arg;

    store->reads_up = is_up;
    if (is_up)
        redis_group_on_ready(&store->links, store->reads);
    readiness_tell(store);
}

static void on_scripts_state(void *arg, bool is_up)
{
    struct store *store = arg;

    store->scripts_up = is_up;
    if (is_up)
        redis_group_on_ready(&store->links, store->scripts);
    readiness_tell(store);
}

static void on_work_state(void *arg, bool is_up)
{
    struct store *store = arg;

    store->has_worked = store->has_worked || is_up;
    if (is_up)
        redis_group_on_ready(&store->links, store->work);
    readiness_tell(store);
}

static void on_changes_state(void *arg, bool is_up)
{
    struct store *store = arg;

    store->changes_up = is_up;
    store->has_worked = !store->is_closing && redis_link_is_ready(store->work);
    readiness_begin(store);
    lease_on_connection(store->lease, is_up);
    store_time_reconnected(&store->time);
    if (is_up) {
        redis_group_on_ready(&store->links, store->changes);
        examination_start(store);
    }
    readiness_tell(store);
}

static void make_resolver(struct store *store, const struct redis_target *target)
{
    REQUIRE(target->found != REDIS_BY_CLUSTER || store->settings.resolver);
    store->resolver = store->settings.resolver;
    if (target->found != REDIS_BY_SENTINEL)
        return;
    store->sentinel = redis_sentinel_create(store->loop, target, store->settings.tls, store->settings.timeout_ms);
    store->resolver = redis_sentinel_resolver(store->sentinel);
}

static struct redis_link *make_link(struct store *store, const struct redis_target *target, const char *name,
                                    enum histogram_row durations, void (*on_state)(void *arg, bool is_up))
{
    const struct redis_link_settings settings = {
        .name = name,
        .durations = durations,
        .timeout_ms = store->settings.timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .calls_max = CALLS_MAX,
        .resolver = store->resolver,
        .tls = store->settings.tls,
        .to_master = true,
        .about = log_partition(store->prefix),
    };
    struct redis_link *link = redis_link_create(store->loop, target, &settings, on_state, store);

    redis_group_add(&store->links, link);
    return link;
}

static void make_connections(struct store *store, const struct redis_target *target)
{
    make_resolver(store, target);
    store->reads = make_link(store, target, "reads", HISTOGRAM_REDIS_READS, on_reads_state);
    store->scripts = make_link(store, target, "scripts", HISTOGRAM_REDIS_SCRIPTS, on_scripts_state);
    store->changes = make_link(store, target, "changes", HISTOGRAM_REDIS_CHANGES, on_changes_state);
    store->work = make_link(store, target, "work", HISTOGRAM_REDIS_WORK, on_work_state);
}

struct store *store_create(uv_loop_t *loop, const struct store_settings *settings, void (*ready)(void *arg), void *arg)
{
    struct store *store = mem_alloc(sizeof *store);

    REQUIRE(settings->timeout_ms > 0 && text_of(settings->prefix).len <= REDIS_PREFIX_MAX_BYTES);
    store->loop = loop;
    store->settings = *settings;
    secure_wipe(&store->settings.target, sizeof store->settings.target);
    store->prefix = mem_copy_text(settings->prefix, text_of(settings->prefix).len);
    store->settings.prefix = store->prefix;
    store->ready = ready;
    store->arg = arg;
    readiness_begin(store);
    script_init(store);
    examination_init(store);
    CHECK(uv_timer_init(loop, &store->probe) == 0);
    CHECK(uv_timer_init(loop, &store->examination.timer) == 0);
    CHECK(uv_idle_init(loop, &store->idle) == 0);
    store->probe.data = store->examination.timer.data = store->idle.data = store;
    make_connections(store, &settings->target);
    store->lease = lease_host_create(store);
    parts_create(store, settings->parts);
    return store;
}

/* Closing in steps: the links fail their pending calls; the resolver ends; then the parts, which give up what this made
 * them begin, the leases and our own handles. */

static void on_link_closed(void *arg);
static void on_log_quiet(struct store *store);
static void on_sentinel_closed(void *arg);
static void on_parts_closed(struct store *store);
static void on_lease_closed(void *arg);
static void on_handle_closed(uv_handle_t *handle);

void store_close(struct store *store, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!store->is_closing);
    store->is_closing = true;
    store->closed = closed;
    store->closed_arg = arg;
    store->on_log_quiet = store->logging > 0 ? on_log_quiet : NULL;
    struct redis_link *const links[] = {store->reads, store->scripts, store->changes, store->work};

    store->closing = sizeof links / sizeof *links + (store->on_log_quiet != NULL);
    gathering_stop(lease_gathering(store->lease));
    suspensions_stop(lease_suspensions(store->lease));
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        redis_group_remove(&store->links, links[i]);
        redis_link_close(links[i], on_link_closed, store);
    }
}

static void on_link_closed(void *arg)
{
    struct store *store = arg;

    INVARIANT(store->is_closing && store->closing > 0);
    if (--store->closing > 0)
        return;
    store->reads = store->scripts = store->changes = store->work = NULL;
    if (store->sentinel)
        redis_sentinel_close(store->sentinel, on_sentinel_closed, store);
    else
        on_sentinel_closed(store);
}

static void on_log_quiet(struct store *store)
{
    store->on_log_quiet = NULL;
    on_link_closed(store);
}

static void on_sentinel_closed(void *arg)
{
    struct store *store = arg;

    store->sentinel = NULL;
    lease_fence(store->lease)->resolver = store->resolver = NULL;
    /* All calls complete before the parts end: for one, a create that cannot deliver its key discards it. */
    while (!list_empty(&store->refused))
        script_tell_refused(store);
    examination_give_up(store);
    barriers_fail(lease_barriers(store->lease));
    parts_close(store, on_parts_closed);
}

static void on_parts_closed(struct store *store)
{
    lease_close(store->lease, on_lease_closed, store);
}

static void on_lease_closed(void *arg)
{
    struct store *store = arg;
    uv_handle_t *handles[] = {
        (uv_handle_t *)&store->probe,
        (uv_handle_t *)&store->examination.timer,
        (uv_handle_t *)&store->idle,
    };

    store->lease = NULL;
    store->closing = sizeof handles / sizeof handles[0];
    for (size_t i = 0; i < sizeof handles / sizeof handles[0]; i++)
        uv_close(handles[i], on_handle_closed);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct store *store = handle->data;

    if (--store->closing > 0)
        return;
    while (!list_empty(&store->refused))
        script_tell_refused(store);
    script_finish(store);
    ENSURE(!store->lease && !store->reads && store->logging == 0 && list_empty(&store->refused));

    void (*closed)(void *arg) = store->closed;
    void *arg = store->closed_arg;
    free(store->prefix);
    free(store);
    if (closed)
        closed(arg);
}

/* Not as a change: a node that starts has promised nothing, so it must not refuse to serve because a Redis that takes
 * over lacks its note. */
void store_note_durability(struct store *store, store_done *done, void *arg)
{
    const struct text argv[] = {store->settings.durability_asserted ? TEXT("asserted") : TEXT("observed"),
                                TEXT("operator")};

    verb_call(store, SCRIPT_store_durability, SCRIPT_REPORTS, sizeof argv / sizeof *argv, argv, done, arg);
}

static void loss_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct store_loss loss;

    if (result == STORE_OK &&
        (!reply_integer(reply_at(reply, 0), &loss.endings) || !reply_integer(reply_at(reply, 1), &loss.others))) {
        store_malformed(asked->store, "accepted loss");
        result = STORE_UNKNOWN;
    }
    ((store_loss_accepted *)asked->done)(asked->arg, result, result == STORE_OK ? &loss : NULL);
}

void store_accept_loss(struct store *store, store_loss_accepted *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, text_of(redis_link_run_id(store->changes)));
    verb_ask(store, SCRIPT_store_accept_loss, SCRIPT_CHANGES, &args, loss_answer, (verb_done *)done, arg);
}
