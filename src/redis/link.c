#include "redis/link.h"
#include "base/check.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "base/turn_clock.h"
#include "redis/access.h"
#include "redis/command.h"
#include "link_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_MAX_DEFAULT_MS = 1000,
    QUIET_DEFAULT_MS = 30000,
    OVERDUE_TIMEOUTS = 3, /* a call this late means that the connection is dead, not that Redis is slow */
    GREETING_CALLS = 6,
    CALLS_ROOM = 64, /* at first */
    FAILURES_FIRST = 16,
};

static void on_reply(void *arg, const struct redis_reply *reply);
static void on_broken(void *arg, const char *why);
static void on_wire_closed(void *arg);
static void on_timer(uv_timer_t *timer);
static void on_idle(uv_idle_t *idle);

static const struct redis_wire_events WIRE_EVENTS = {link_greet, on_reply, on_broken};

/* Its states */

#define LOST_OR_CLOSED (MACHINE_TO(LINK_WAITING) | MACHINE_TO(LINK_CLOSING))

static const struct machine MACHINE = {
    .name = "Redis link",
    .count = LINK_CLOSING + 1,
    MACHINE_ROW(LINK_WAITING, MACHINE_TO(LINK_ASKING) | MACHINE_TO(LINK_CONNECTING) | MACHINE_TO(LINK_CLOSING)),
    MACHINE_ROW(LINK_ASKING, MACHINE_TO(LINK_CONNECTING) | LOST_OR_CLOSED),
    MACHINE_ROW(LINK_CONNECTING, MACHINE_TO(LINK_SECURING) | MACHINE_TO(LINK_GREETING) | LOST_OR_CLOSED),
    MACHINE_ROW(LINK_SECURING, MACHINE_TO(LINK_GREETING) | LOST_OR_CLOSED),
    MACHINE_ROW(LINK_GREETING, MACHINE_TO(LINK_READY) | LOST_OR_CLOSED),
    MACHINE_ROW(LINK_READY, LOST_OR_CLOSED),
    MACHINE_ROW(LINK_CLOSING, 0),
};

bool link_move(struct redis_link *link, enum link_state state)
{
    if (!machine_allows(&MACHINE, link->state, state)) {
        redis_link_renew(link, "forbidden change of the link's state");
        if (link->wire && link->state != LINK_CLOSING)
            link_drop_wire(link);
        return false;
    }
    link->state = state;
    INVARIANT(state != LINK_WAITING || (!link->wire && !link->connect));
    INVARIANT(state != LINK_READY || (link->wire && link->unconfirmed == 0));
    INVARIANT(state != LINK_READY || !link->to_master || link->run_id[0]); /* otherwise anybody could be the master */
    return true;
}

/* Timers */

void link_arm(struct redis_link *link, uint64_t ms)
{
    CHECK(uv_timer_start(&link->timer, on_timer, ms, 0) == 0);
}

void link_wake(struct redis_link *link)
{
    CHECK(uv_idle_start(&link->idle, on_idle) == 0);
}

/* Failures: reported later, never inside the call that fails */

static void failure_push(struct redis_link *link, redis_done *done, void *arg, enum redis_outcome outcome)
{
    if (link->failure_count == link->failures_max) {
        link->failures_max = link->failures_max ? 2 * link->failures_max : FAILURES_FIRST;
        link->failures = mem_resize(link->failures, link->failures_max * sizeof *link->failures);
    }
    link->failures[link->failure_count++] = (struct redis_failure){done, arg, outcome};
    if (!uv_is_closing((uv_handle_t *)&link->idle))
        link_wake(link);
}

/* Reports only earlier failures: a callback that calls again must not keep the loop in this turn. */
static void failures_tell(struct redis_link *link)
{
    struct redis_failure *failures = link->failures;
    size_t count = link->failure_count;

    link->failures = NULL;
    link->failure_count = link->failures_max = 0;
    for (size_t i = 0; i < count; i++)
        failures[i].done(failures[i].arg, failures[i].outcome, NULL);
    free(failures);
}

/* Pending calls */

static struct redis_call *call_at(struct redis_link *link, size_t index)
{
    INVARIANT(index < link->count && link->count <= link->calls_room);
    return &link->calls[(link->first + index) % link->calls_room];
}

/* Makes room for one more. Most links never have more than a few calls under way. */
static void calls_grow(struct redis_link *link)
{
    const size_t room = link->calls_room, behind = room - link->first;

    REQUIRE(link->count < link->calls_max);
    if (link->count < room)
        return;
    link->calls_room = 2 * room < link->calls_max ? 2 * room : link->calls_max;
    link->calls = mem_resize(link->calls, link->calls_room * sizeof *link->calls);
    if (link->first > 0) { /* the ring's end is its beginning: what stands before that goes to the new end */
        const size_t first = link->calls_room - behind;
        memmove(&link->calls[first], &link->calls[link->first], behind * sizeof *link->calls);
        link->first = first;
    }
}

static void call_drop_first(struct redis_link *link)
{
    REQUIRE(link->count > 0 && link->expired <= link->count);
    link->first = (link->first + 1) % link->calls_room;
    link->count--;
    link->expired -= link->expired > 0;
}

/* The connection is gone, so no reply will come. */
static void calls_fail(struct redis_link *link)
{
    for (; link->count > 0; call_drop_first(link)) {
        const struct redis_call *call = call_at(link, 0);
        bool is_sent = call->begin < redis_wire_handed(link->wire);

        if (!call->done || call->is_greeting)
            continue;
        metric_add(METRIC_REDIS_LOST, is_sent);
        failure_push(link, call->done, call->arg, is_sent ? REDIS_LOST : REDIS_NOT_SENT);
    }
}

/* Registers a call whose command starts at `begin`. False: the bytes did not all fit and were taken back. */
static bool call_push(struct redis_link *link, uint64_t begin, redis_done *done, void *arg)
{
    struct buf *out = redis_wire_output(link->wire);

    if (out->failed) {
        out->len -= (size_t)(redis_wire_appended(link->wire) - begin);
        out->failed = false;
        return false;
    }
    INVARIANT(link->count == 0 || call_at(link, link->count - 1)->begin < begin); /* replies come in this order */
    calls_grow(link);
    *call_at(link, link->count++) = (struct redis_call){.done = done,
                                                        .arg = arg,
                                                        .deadline_ms = uv_now(link->loop) + link->timeout_ms,
                                                        .called_ns = turn_clock_ns(),
                                                        .begin = begin,
                                                        .is_greeting = link->state == LINK_GREETING};
    link->called_ms = uv_now(link->loop);
    metric_add(METRIC_REDIS_CALLS, 1);
    /* The timer may be set for later, when calls already reported as lost become overdue. */
    if (!uv_is_active((uv_handle_t *)&link->timer) || uv_timer_get_due_in(&link->timer) > link->timeout_ms)
        link_arm(link, link->timeout_ms);
    link_wake(link);
    return true;
}

bool link_send(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg)
{
    uint64_t begin = redis_wire_appended(link->wire);
    struct buf *out = redis_wire_output(link->wire);

    redis_command_begin(out, argc);
    for (size_t i = 0; i < argc; i++)
        redis_command_append(out, argv[i]);
    return call_push(link, begin, done, arg);
}

static bool can_call(const struct redis_link *link)
{
    return link->state == LINK_READY && !link->subscription && link->count < link->calls_max;
}

void redis_link_call(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg)
{
    if (!can_call(link) || !link_send(link, argc, argv, done, arg))
        failure_push(link, done, arg, REDIS_NOT_SENT);
}

void redis_link_call_raw(struct redis_link *link, struct text command, redis_done *done, void *arg)
{
    uint64_t begin = link->wire ? redis_wire_appended(link->wire) : 0;

    if (can_call(link))
        buf_append_text(redis_wire_output(link->wire), command);
    if (!can_call(link) || !call_push(link, begin, done, arg))
        failure_push(link, done, arg, REDIS_NOT_SENT);
}

/* The wire */

void link_take_wire(struct redis_link *link, union redis_stream *stream, struct tls_session *tls)
{
    REQUIRE(!link->wire && link->count == 0); /* nobody gets the reply to another connection's call */
    link->wire = redis_wire_create(stream, tls, &WIRE_EVENTS, link);
    link->wires_open++;
    link->run_id[0] = '\0';
    link->has_broken = false;
    link->is_batch_begun = false;
    link->misled = NULL;
    link->unsubscribing = 0;
}

void link_forget_successor(struct redis_link *link)
{
    struct redis_successor *successor = link->successor;

    link->successor = NULL;
    if (successor)
        successor->on_gone(successor);
}

void link_drop_wire(struct redis_link *link)
{
    link_forget_successor(link);
    calls_fail(link);
    ENSURE(link->count == 0);
    redis_wire_close(link->wire, on_wire_closed, link);
    link->wire = NULL;
}

static bool is_push(const struct redis_reply *reply, struct text wanted)
{
    struct text kind;

    return reply_text(reply_at(reply, 0), &kind) && text_equal(kind, wanted);
}

static bool is_message(const struct redis_link *link, const struct redis_reply *reply)
{
    return is_push(reply, link->subscription->is_sharded ? TEXT("smessage") : TEXT("message"));
}

/* Messages on a channel that is already confirmed can arrive before the link is ready. They are dropped. */
static void on_message(struct redis_link *link, const struct redis_reply *reply)
{
    struct text channel, payload;

    if (link->state != LINK_READY)
        return;
    if (!reply_text(reply_at(reply, 1), &channel) || !reply_text(reply_at(reply, 2), &payload) ||
        !link->subscription->message(link->arg, channel, payload))
        redis_link_renew(link, "it sent a malformed message");
}

/* The primary of our slot is another one now, or cannot be told. Other replies that have arrived are still taken. */
static void note_error(struct redis_link *link, const struct redis_reply *reply)
{
    struct text kind = reply_error_kind(reply);

    if (link->resolver && text_equal(kind, TEXT("MOVED")))
        link->misled = "it does not serve the slot of our names now";
    else if (link->resolver && text_equal(kind, TEXT("CLUSTERDOWN")))
        link->misled = "it says that the cluster is down: see CLUSTER INFO, and cluster-require-full-coverage if slots "
                       "have no primary";
    else
        return;
    link_wake(link);
}

/* Of one of the channels that a successor has taken over. */
static bool is_farewell(const struct redis_link *link, const struct redis_reply *reply)
{
    return link->subscription && link->unsubscribing > 0 &&
           is_push(reply, link->subscription->is_sharded ? TEXT("sunsubscribe") : TEXT("unsubscribe"));
}

static void on_reply(void *arg, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    if (link->subscription && is_message(link, reply)) {
        on_message(link, reply);
        return;
    }
    if (is_farewell(link, reply)) {
        link->unsubscribing--;
        return;
    }
    if (link->subscription && is_push(reply, TEXT("sunsubscribe"))) {
        link_lose(link, "the slot of its channels has left this server");
        if (link->subscription->left)
            link->subscription->left(link->arg);
        return;
    }
    if (link->count == 0 || call_at(link, 0)->begin >= redis_wire_handed(link->wire)) {
        link_lose(link, "it sent a reply that no command waits for");
        return;
    }
    struct redis_call call = *call_at(link, 0);
    call_drop_first(link);
    if (!call.is_greeting)
        histogram_observe(link->durations, turn_clock_ns() - call.called_ns);
    if (reply->type == REPLY_ERROR && link->state == LINK_READY)
        note_error(link, reply);
    if (call.done)
        call.done(call.arg, REDIS_REPLIED, reply);
}

static void on_broken(void *arg, const char *why)
{
    struct redis_link *link = arg;

    link->has_broken = true;
    link_lose(link, why);
}

/* Deadlines */

/* What stands between may forget a quiet connection without a word; the next check would wait for its deadline. */
static void break_quiet(struct redis_link *link)
{
    uint64_t quiet_ms = uv_now(link->loop) - link->called_ms;

    if (quiet_ms < link->quiet_ms)
        link_arm(link, link->quiet_ms - quiet_ms);
    else if (!link_send(link, 1, (struct text[]){TEXT("PING")}, NULL, NULL))
        link_lose(link, "out of memory");
}

static void calls_expire(struct redis_link *link)
{
    uint64_t now_ms = uv_now(link->loop);

    while (link->expired < link->count && call_at(link, link->expired)->deadline_ms <= now_ms) {
        struct redis_call *call = call_at(link, link->expired++);
        redis_done *done = call->done;

        call->done = NULL;
        metric_add(METRIC_REDIS_LOST, 1);
        if (done)
            done(call->arg, REDIS_LOST, NULL);
        if (link->state != LINK_READY)
            return;
    }
    if (link->count == 0) {
        break_quiet(link);
        return;
    }
    uint64_t overdue_ms = call_at(link, 0)->deadline_ms + (uint64_t)OVERDUE_TIMEOUTS * link->timeout_ms;
    if (overdue_ms <= now_ms) {
        link_lose(link, "it does not answer");
        return;
    }
    uint64_t next_ms = overdue_ms;
    if (link->expired < link->count && call_at(link, link->expired)->deadline_ms < next_ms)
        next_ms = call_at(link, link->expired)->deadline_ms;
    link_arm(link, next_ms - now_ms);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;

    switch (link->state) {
    case LINK_WAITING:
        link_attempt(link);
        break;
    case LINK_CONNECTING:
        redis_connect_cancel(link->connect);
        break;
    case LINK_SECURING:
        link_lose(link, "the TLS handshake timed out: does it speak TLS at this port?");
        break;
    case LINK_GREETING:
        link_lose(link, "it does not answer");
        break;
    case LINK_READY:
        calls_expire(link);
        break;
    case LINK_ASKING:
    case LINK_CLOSING:
        break;
    }
}

/* Life cycle */

struct redis_link *redis_link_create(uv_loop_t *loop, const struct redis_target *target,
                                     const struct redis_link_settings *settings, void (*ready)(void *arg, bool ready),
                                     void *arg)
{
    struct redis_link *link = mem_alloc(sizeof *link);

    REQUIRE(!target->tls || settings->tls);
    link->loop = loop;
    link->target = *target;
    link->proven = target->login;
    link->durations = settings->durations;
    link->timeout_ms = settings->timeout_ms;
    link->backoff_max_ms = settings->backoff_max_ms ? settings->backoff_max_ms : BACKOFF_MAX_DEFAULT_MS;
    link->quiet_ms = settings->quiet_ms ? settings->quiet_ms : QUIET_DEFAULT_MS;
    link->subscription = settings->subscription;
    link->ready = ready;
    link->arg = arg;
    link->calls_max = settings->calls_max > GREETING_CALLS ? settings->calls_max : GREETING_CALLS;
    link->calls_room = link->calls_max < CALLS_ROOM ? link->calls_max : CALLS_ROOM;
    link->calls = mem_alloc(link->calls_room * sizeof *link->calls);
    snprintf(link->name, sizeof link->name, "%s", settings->name);
    link->resolver = settings->resolver;
    link->tls = target->tls ? settings->tls : NULL;
    link->to_master = settings->to_master;
    link->to_sentinel = settings->to_sentinel;
    link->is_finder = settings->is_finder;
    link->is_trial = settings->is_trial;
    link->down_since_ms = uv_now(loop);
    list_init(&link->access_node);
    if (target->access && !settings->is_trial)
        list_append(&target->access->links, &link->access_node);
    link->about = settings->about;
    link_name_place(link);
    link_set_trouble(link, "%s: not connected yet", link->where);
    CHECK(uv_timer_init(loop, &link->timer) == 0);
    CHECK(uv_idle_init(loop, &link->idle) == 0);
    link->timer.data = link->idle.data = link;
    link->handles_open = 2;
    link->follower = (struct redis_follower){.on_master = link_on_master, .on_moved = link_on_moved, .arg = link};
    if (link->resolver)
        redis_resolver_follow(link->resolver, &link->follower);
    link_arm(link, 0); /* deadlines count from the loop's time, which stands still until it runs */
    return link;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct redis_link *link = handle->data;

    if (--link->handles_open > 0)
        return;
    /* Some calls may have failed after the last idle turn. */
    while (link->failure_count > 0)
        failures_tell(link);

    ENSURE(link->count == 0 && !link->wire && !link->connect && !link->successor);
    const struct callback closed = link->closed;
    secure_wipe(&link->target, sizeof link->target);
    secure_wipe(&link->proven, sizeof link->proven);
    free(link->calls);
    free(link->failures);
    free(link);
    callback_run(closed);
}

static void close_handles_when_done(struct redis_link *link)
{
    bool is_over = link->failure_count == 0 && link->wires_open == 0 && !link->connect;

    if (link->state != LINK_CLOSING || !is_over || uv_is_closing((uv_handle_t *)&link->idle))
        return;
    uv_close((uv_handle_t *)&link->timer, on_handle_closed);
    uv_close((uv_handle_t *)&link->idle, on_handle_closed);
}

static void on_idle(uv_idle_t *idle)
{
    struct redis_link *link = idle->data;

    CHECK(uv_idle_stop(idle) == 0);
    if (link->misled && link->state == LINK_READY)
        link_lose(link, link->misled);
    failures_tell(link);
    if (link->wire)
        redis_wire_flush(link->wire);
    close_handles_when_done(link);
}

static void on_wire_closed(void *arg)
{
    struct redis_link *link = arg;

    INVARIANT(link->wires_open > 0);
    link->wires_open--;
    if (link->state == LINK_CLOSING)
        link_wake(link);
}

void redis_link_close(struct redis_link *link, void (*closed)(void *arg), void *arg)
{
    if (!link_move(link, LINK_CLOSING))
        return;
    list_remove(&link->access_node);
    link_forget_successor(link);
    if (link->resolver)
        list_remove(&link->follower.node);
    if (link->wire)
        calls_fail(link);
    link->closed = (struct callback){closed, arg};
    link_set_trouble(link, "%s: closed", link->where);
    CHECK(uv_timer_stop(&link->timer) == 0);
    if (link->connect)
        redis_connect_cancel(link->connect);
    if (link->wire) {
        redis_wire_close(link->wire, on_wire_closed, link);
        link->wire = NULL;
    }
    link_wake(link);
}

void redis_link_renew(struct redis_link *link, const char *why)
{
    if (link->state == LINK_SECURING || link->state == LINK_GREETING || link->state == LINK_READY)
        link_lose(link, why);
}

bool redis_link_has_broken(const struct redis_link *link)
{
    return link->has_broken;
}

bool redis_link_is_ready(const struct redis_link *link)
{
    return link->state == LINK_READY;
}

const char *redis_link_run_id(const struct redis_link *link)
{
    return link->state == LINK_READY ? link->run_id : "";
}

bool redis_link_begins_batch(struct redis_link *link)
{
    if (link->state != LINK_READY || (link->is_batch_begun && redis_wire_handed(link->wire) <= link->batch_at))
        return false;
    link->is_batch_begun = true;
    link->batch_at = redis_wire_appended(link->wire);
    return true;
}

const char *redis_link_where(const struct redis_link *link)
{
    return link->where;
}

bool redis_link_has_tried(const struct redis_link *link)
{
    return link->has_tried;
}

const char *redis_link_trouble(const struct redis_link *link)
{
    return link->trouble;
}
