#include "renewal.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "link_internal.h"
#include "redis/access.h"
#include "redis/command.h"
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 10,                 /* whether it can go on */
    ATTEMPTS = 3,                 /* to connect; then it counts as refused */
    HELD_MAX_BYTES = 1024 * 1024, /* messages of the few milliseconds in which both connections hear them */
};

struct redis_renewal {
    struct redis_successor successor;
    struct redis_link *link; /* NULL: it is gone, or has the new connection */
    struct redis_link *next; /* first the new connection, then the old one */
    enum { RENEWAL_CONNECTS, RENEWAL_TAKES_LEAVE, RENEWAL_DRAINS, RENEWAL_ENDS } state;
    struct redis_subscription subscription; /* of next */
    struct buf held;                        /* messages on the new connection: two lengths, channel, payload */
    uv_timer_t timer;
    uint64_t until_ms; /* for the present state */
    bool is_next_deaf; /* it was lost while it had to hear everything, even if it is back */
    unsigned open;     /* next and the timer */
    struct redis_renewal_result result;
    void (*ended)(void *arg, const struct redis_renewal_result *result);
    void *arg;
};

struct held_lengths {
    size_t channel, payload;
};

/* The end */

static void part_closed(void *arg)
{
    struct redis_renewal *renewal = arg;

    INVARIANT(renewal->state == RENEWAL_ENDS && renewal->open > 0 && !renewal->link);
    if (--renewal->open > 0)
        return;
    renewal->ended(renewal->arg, &renewal->result);
    buf_wipe(&renewal->held);
    free(renewal);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

static void end(struct redis_renewal *renewal)
{
    if (renewal->state == RENEWAL_ENDS)
        return;
    renewal->state = RENEWAL_ENDS;
    if (renewal->link)
        renewal->link->successor = NULL;
    renewal->link = NULL;
    redis_link_close(renewal->next, part_closed, renewal);
    uv_close((uv_handle_t *)&renewal->timer, on_timer_closed);
}

/* If the old connection hears nothing more, the link must be connected in the ordinary way, which catches up. */
static void give_up(struct redis_renewal *renewal)
{
    struct redis_link *link = renewal->state == RENEWAL_TAKES_LEAVE ? renewal->link : NULL;

    end(renewal);
    if (link)
        redis_link_renew(link, "its new connection was lost while it took over");
}

void redis_renewal_cancel(struct redis_renewal *renewal)
{
    if (renewal->state != RENEWAL_TAKES_LEAVE)
        end(renewal);
}

/* A link that is lost reconnects by itself, with what the files say. */
static void on_link_gone(struct redis_successor *successor)
{
    struct redis_renewal *renewal = LIST_ENTRY(successor, struct redis_renewal, successor);

    renewal->link = NULL;
    end(renewal);
}

/* Taking over */

static void swap(void *a, void *b, size_t bytes)
{
    char kept[sizeof(struct redis_target)];

    REQUIRE(bytes <= sizeof kept);
    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
    secure_wipe(kept, bytes);
}

/* With another connection: its calls have deadlines, and what is queued must leave. */
static void resume(struct redis_link *link)
{
    redis_wire_hand_over(link->wire, link);
    link->is_batch_begun = false;
    link_name_place(link);
    CHECK(uv_timer_stop(&link->timer) == 0);
    if (link->count > 0)
        link_arm(link, 0);
    link_wake(link);
}

/* Calls that await replies stay with the connection on which they were sent. */
static void swap_connections(struct redis_link *link, struct redis_link *next)
{
    REQUIRE(link->state == LINK_READY && next->state == LINK_READY && link->calls_max == next->calls_max);
    REQUIRE(strcmp(link->run_id, next->run_id) == 0 && link->unsubscribing == 0);
    swap(&link->target, &next->target, sizeof link->target);
    swap(&link->proven, &next->proven, sizeof link->proven);
    swap(&link->run_id, &next->run_id, sizeof link->run_id);
    swap(&link->misled, &next->misled, sizeof link->misled);
    swap(&link->channels, &next->channels, sizeof link->channels);
    swap(&link->ready_since_ms, &next->ready_since_ms, sizeof link->ready_since_ms);
    swap(&link->wire, &next->wire, sizeof(struct redis_wire *));
    swap(&link->calls, &next->calls, sizeof(struct redis_call *));
    swap(&link->calls_room, &next->calls_room, sizeof link->calls_room);
    swap(&link->first, &next->first, sizeof link->first);
    swap(&link->count, &next->count, sizeof link->count);
    swap(&link->expired, &next->expired, sizeof link->expired);
    link->uses_proven = false;
    resume(link);
    resume(next);
}

static bool deliver_next(struct redis_link *link, struct text *held)
{
    struct held_lengths lengths;

    INVARIANT(held->len >= sizeof lengths);
    memcpy(&lengths, held->ptr, sizeof lengths);
    *held = text_skip(*held, sizeof lengths);
    INVARIANT(lengths.channel <= held->len && lengths.payload <= held->len - lengths.channel);
    struct text channel = {held->ptr, lengths.channel}, payload = {held->ptr + lengths.channel, lengths.payload};
    *held = text_skip(*held, lengths.channel + lengths.payload);
    return link->subscription->message(link->arg, channel, payload);
}

/* What both connections heard comes twice, in order each time. Whoever listens must bear that. */
static void deliver(struct redis_renewal *renewal, struct redis_link *link)
{
    struct text held = buf_text(&renewal->held);

    while (held.len > 0 && link->state == LINK_READY)
        if (!deliver_next(link, &held))
            redis_link_renew(link, "it sent a malformed message");
}

static void take_over(struct redis_renewal *renewal)
{
    struct redis_link *link = renewal->link;

    swap_connections(link, renewal->next);
    renewal->result.is_renewed = true;
    renewal->state = RENEWAL_DRAINS;
    renewal->link = NULL;
    link->successor = NULL;
    deliver(renewal, link);
}

static void refuse(struct redis_renewal *renewal, const char *why)
{
    renewal->result.is_refused = true;
    snprintf(renewal->result.why, sizeof renewal->result.why, "%s", why);
    end(renewal);
}

/* A subscribed link first takes leave on its old connection: what was published before that comes there, all that is
 * published later is held. */
static void begin_take_over(struct redis_renewal *renewal)
{
    struct redis_link *link = renewal->link;

    if (strcmp(link->run_id, renewal->next->run_id) != 0) {
        refuse(renewal, "a new connection reached another server: Redis was restarted, or the address leads to several "
                        "servers");
        return;
    }
    if (!link->subscription) {
        take_over(renewal);
        return;
    }
    struct buf *out = redis_wire_output(link->wire);
    redis_command_begin(out, 1);
    redis_command_append(out, link->subscription->is_sharded ? TEXT("SUNSUBSCRIBE") : TEXT("UNSUBSCRIBE"));
    link->unsubscribing = link->channels;
    renewal->state = RENEWAL_TAKES_LEAVE;
    renewal->until_ms = uv_now(link->loop) + link->timeout_ms;
    link_wake(link);
}

/* Never inside an event of a wire, which would go on with the link that has given it away. */
static void on_timer(uv_timer_t *timer)
{
    struct redis_renewal *renewal = timer->data;
    bool is_ready = redis_link_is_ready(renewal->next), is_late = uv_now(timer->loop) >= renewal->until_ms;

    if (renewal->state == RENEWAL_DRAINS) {
        if (!is_ready || renewal->next->count == 0)
            end(renewal);
    } else if (renewal->state == RENEWAL_TAKES_LEAVE) {
        if (renewal->is_next_deaf || is_late)
            give_up(renewal);
        else if (renewal->link->unsubscribing == 0)
            take_over(renewal);
    } else if (is_ready) {
        begin_take_over(renewal);
    } else if (is_late || renewal->next->attempts >= ATTEMPTS) {
        refuse(renewal, redis_link_trouble(renewal->next));
    }
}

/* Listening */

static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    const struct redis_renewal *renewal = arg;

    return renewal->link ? renewal->link->subscription->channels_again(renewal->link->arg, ret_channels) : 0;
}

static bool hold(void *arg, struct text channel, struct text payload)
{
    struct redis_renewal *renewal = arg;
    const struct held_lengths lengths = {channel.len, payload.len};

    buf_append(&renewal->held, &lengths, sizeof lengths);
    buf_append_text(&renewal->held, channel);
    buf_append_text(&renewal->held, payload);
    return !renewal->held.failed;
}

/* From the leave on, only the new connection hears everything. It may be back before anybody looks. Before the leave,
 * the old one does, and the next new one begins with what it hears itself: the last message held may be cut. */
static void on_next_state(void *arg, bool is_up)
{
    struct redis_renewal *renewal = arg;

    renewal->is_next_deaf |= !is_up && renewal->state == RENEWAL_TAKES_LEAVE;
    if (!is_up && renewal->state == RENEWAL_CONNECTS)
        buf_clear(&renewal->held);
}

/* Beginning */

static void open_next(struct redis_renewal *renewal)
{
    const struct redis_link *link = renewal->link;
    const struct redis_link_settings settings = {
        .name = link->name,
        .durations = link->durations,
        .timeout_ms = link->timeout_ms,
        .backoff_max_ms = link->backoff_max_ms,
        .calls_max = link->calls_max,
        .subscription = link->subscription ? &renewal->subscription : NULL,
        .resolver = link->resolver,
        .to_master = link->to_master,
        .tls = link->tls,
        .to_sentinel = link->to_sentinel,
        .is_trial = true,
        .about = link->about,
    };

    if (link->subscription)
        renewal->subscription = (struct redis_subscription){
            .channels = name_channels, .message = hold, .is_sharded = link->subscription->is_sharded};
    renewal->next = redis_link_create(link->loop, &link->target, &settings, on_next_state, renewal);
}

struct redis_renewal *redis_renewal_begin(struct redis_link *link,
                                          void (*ended)(void *arg, const struct redis_renewal_result *result),
                                          void *arg)
{
    struct redis_renewal *renewal = mem_alloc(sizeof *renewal);

    REQUIRE(link->state == LINK_READY && !link->successor);
    *renewal = (struct redis_renewal){.successor = {on_link_gone}, .link = link, .open = 2, .ended = ended, .arg = arg};
    buf_init(&renewal->held, HELD_MAX_BYTES);
    link->successor = &renewal->successor;
    CHECK(uv_timer_init(link->loop, &renewal->timer) == 0);
    renewal->timer.data = renewal;
    open_next(renewal);
    renewal->until_ms = uv_now(link->loop) + 2 * (uint64_t)link->timeout_ms;
    CHECK(uv_timer_start(&renewal->timer, on_timer, 0, LOOK_MS) == 0);
    return renewal;
}
