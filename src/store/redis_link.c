#include "store/redis_link.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/secure.h"
#include "redis_command.h"
#include "redis_sentinel.h"
#include "redis_wire.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_STANDARD_MS = 1000,
    RETRY_AT_ONCE_MS = 10, /* after the loss of a connection that had held; jittered, for many nodes lose it together */
    OVERDUE_TIMEOUTS = 3,  /* a call this late says that the connection is dead rather than Redis slow */
    GREETING_CALLS = 5,
    LOG_PAUSE_MS = 10000, /* a link that comes and goes tells it at most this often */
    TROUBLE_BYTES = 224,
    WHERE_BYTES = 288,
    FAILURES_FIRST = 16,
};

enum link_state { LINK_WAITING, LINK_ASKING, LINK_CONNECTING, LINK_GREETING, LINK_READY, LINK_CLOSING };

struct redis_call {
    redis_done *done; /* NULL: it was told REDIS_LOST at its deadline; its reply will be dropped */
    void *arg;
    uint64_t deadline_ms;
    uint64_t begin; /* of its bytes in all that was appended to the wire */
};

struct redis_failure {
    redis_done *done;
    void *arg;
    enum redis_outcome outcome;
};

struct redis_link {
    uv_loop_t *loop;
    struct redis_target target;
    char name[32], where[WHERE_BYTES];
    uint32_t timeout_ms, backoff_max_ms;
    const struct redis_subscription *subscription;
    unsigned unconfirmed; /* channels, in LINK_GREETING */
    void (*ready)(void *arg, bool ready);
    void *arg;

    struct redis_sentinel *sentinel; /* NULL: the target is where it is */
    struct sentinel_follower follower;

    enum link_state state;
    struct redis_connect *connect; /* in LINK_CONNECTING, and until a cancelled attempt has ended */
    struct redis_wire *wire;       /* in LINK_GREETING and LINK_READY */
    unsigned wires_open;           /* with those that still close */
    unsigned attempts;             /* since a connection last held */
    uint64_t ready_since_ms;
    char trouble[TROUBLE_BYTES];
    bool is_loss_logged;
    struct log_pause loss_pause;

    /* What awaits replies, a ring. All calls share one timeout, so that they are in order of their deadlines; the
     * first `expired` of them have been told already. */
    struct redis_call *calls;
    size_t calls_max, first, count, expired;

    /* What is to be told from the next turn of the loop on. */
    struct redis_failure *failures;
    size_t failure_count, failures_max;

    /* Reconnecting, the limit of an attempt, deadlines: never two of them at a time. */
    uv_timer_t timer;
    /* Flushes and tells failures. Idle handles run right before the loop would block and keep it from blocking: what
     * was queued in any phase, by whatever handle, leaves at once. */
    uv_idle_t idle;
    unsigned handles_open;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void lose(struct redis_link *link, const char *why);
static void subscribe(struct redis_link *link);
static void attempt_begin(struct redis_link *link);
static void connect_begin(struct redis_link *link);
static void attempt_connected(void *arg, int status, union redis_stream *stream);
static void greeting_begin(struct redis_link *link);
static void greeting_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void name_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void role_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void ping_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void subscribe_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void wire_replied(void *arg, const struct redis_reply *reply);
static void wire_broken(void *arg, const char *why);
static void wire_closed(void *arg);
static void on_timer(uv_timer_t *timer);
static void on_idle(uv_idle_t *idle);

static const struct redis_wire_events WIRE_EVENTS = {wire_replied, wire_broken};

/* Timers */

static void arm(struct redis_link *link, uint64_t ms)
{
    CHECK(uv_timer_start(&link->timer, on_timer, ms, 0) == 0);
}

static void wake(struct redis_link *link)
{
    CHECK(uv_idle_start(&link->idle, on_idle) == 0);
}

/* Failures: told later, never inside the call that fails */

static void failure_push(struct redis_link *link, redis_done *done, void *arg, enum redis_outcome outcome)
{
    if (link->failure_count == link->failures_max) {
        link->failures_max = link->failures_max ? 2 * link->failures_max : FAILURES_FIRST;
        link->failures = mem_resize(link->failures, link->failures_max * sizeof *link->failures);
    }
    link->failures[link->failure_count++] = (struct redis_failure){done, arg, outcome};
    if (!uv_is_closing((uv_handle_t *)&link->idle))
        wake(link);
}

/* Tells only what failed before: a callback that calls again must not keep the loop in this turn. */
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

/* Calls under way */

static struct redis_call *call_at(struct redis_link *link, size_t index)
{
    return &link->calls[(link->first + index) % link->calls_max];
}

static void call_drop_first(struct redis_link *link)
{
    link->first = (link->first + 1) % link->calls_max;
    link->count--;
    link->expired -= link->expired > 0;
}

static bool is_greeting(redis_done *done)
{
    return done == greeting_answered || done == name_answered || done == role_answered || done == ping_answered ||
           done == subscribe_answered;
}

/* The connection is gone: nobody will answer. */
static void calls_fail(struct redis_link *link)
{
    for (; link->count > 0; call_drop_first(link)) {
        const struct redis_call *call = call_at(link, 0);
        bool is_sent = call->begin < redis_wire_handed(link->wire);

        if (!call->done || is_greeting(call->done))
            continue;
        metric_add(METRIC_REDIS_LOST, is_sent);
        failure_push(link, call->done, call->arg, is_sent ? REDIS_LOST : REDIS_NOT_SENT);
    }
}

/* Registers a call whose command was appended behind `begin`; false, and the bytes taken back, where they did not all
 * fit. */
static bool call_push(struct redis_link *link, uint64_t begin, redis_done *done, void *arg)
{
    struct buf *out = redis_wire_output(link->wire);

    if (out->failed) {
        out->len -= (size_t)(redis_wire_appended(link->wire) - begin);
        out->failed = false;
        return false;
    }
    *call_at(link, link->count++) = (struct redis_call){done, arg, uv_now(link->loop) + link->timeout_ms, begin};
    metric_add(METRIC_REDIS_CALLS, 1);
    /* The timer may be set to a later moment, when calls that were told already would be overdue. */
    if (!uv_is_active((uv_handle_t *)&link->timer) || uv_timer_get_due_in(&link->timer) > link->timeout_ms)
        arm(link, link->timeout_ms);
    wake(link);
    return true;
}

static bool call_send(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg)
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
    if (!can_call(link) || !call_send(link, argc, argv, done, arg))
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

/* Log lines: one when the link is lost or cannot be made, one when it is back */

static void log_loss(struct redis_link *link)
{
    if (link->is_loss_logged || !log_pause_is_over(&link->loss_pause, uv_now(link->loop), LOG_PAUSE_MS))
        return;
    link->is_loss_logged = true;
    LOG(LOG_WARN, "redis link is down", log_str("link", link->name), log_str("why", link->trouble));
}

static void log_ready(struct redis_link *link)
{
    if (link->is_loss_logged)
        LOG(LOG_INFO, "redis link is up again", log_str("link", link->name), log_str("redis", link->where));
    link->is_loss_logged = false;
}

/* Connecting */

static void retry_later(struct redis_link *link)
{
    uint64_t backoff_ms = RETRY_AT_ONCE_MS;

    for (unsigned i = 1; i <= link->attempts && backoff_ms < link->backoff_max_ms; i++)
        backoff_ms = i == 1 ? BACKOFF_FIRST_MS : backoff_ms * 2;
    if (backoff_ms > link->backoff_max_ms)
        backoff_ms = link->backoff_max_ms;
    link->attempts++;
    link->state = LINK_WAITING;
    arm(link, backoff_ms / 2 + random_below((uint32_t)(backoff_ms / 2) + 1));
}

PRINTF_LIKE(2, 3) static void set_trouble(struct redis_link *link, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(link->trouble, sizeof link->trouble, format, args);
    va_end(args);
}

/* The one way in which an established connection ends while the link lives. */
static void lose(struct redis_link *link, const char *why)
{
    bool was_ready = link->state == LINK_READY;

    if (was_ready && uv_now(link->loop) - link->ready_since_ms >= link->backoff_max_ms)
        link->attempts = 0;
    calls_fail(link);
    redis_wire_close(link->wire, wire_closed, link);
    link->wire = NULL;
    set_trouble(link, "%s: %s", link->where, why);
    retry_later(link);
    log_loss(link);
    if (was_ready && link->ready)
        link->ready(link->arg, false);
}

static void name_place(struct redis_link *link)
{
    const struct redis_target *t = &link->target;

    if (link->sentinel && !t->port)
        snprintf(link->where, sizeof link->where, "master %s", t->master_name);
    else
        snprintf(link->where, sizeof link->where, t->is_unix ? "unix:%s" : "%s:%u", t->host, t->port);
}

/* Sentinel is asked before each attempt, for the master may be another one by now. */
static void attempt_begin(struct redis_link *link)
{
    if (!link->sentinel) {
        connect_begin(link);
        return;
    }
    link->state = LINK_ASKING;
    redis_sentinel_ask(link->sentinel, &link->follower);
}

static void master_told(void *arg, const struct redis_address *master, const char *why)
{
    struct redis_link *link = arg;

    if (master) {
        memcpy(link->target.host, master->host, sizeof link->target.host);
        link->target.port = master->port;
        name_place(link);
        connect_begin(link);
        return;
    }
    set_trouble(link, "master %s: %s", link->target.master_name, why);
    retry_later(link);
    log_loss(link);
}

/* What is connected, or about to be, to another one is given up at once, also where it would still answer. */
static void master_moved(void *arg, const struct redis_address *master)
{
    struct redis_link *link = arg;
    bool is_same = link->target.port == master->port && strcmp(link->target.host, master->host) == 0;

    switch (link->state) {
    case LINK_WAITING:
        link->attempts = 0;
        arm(link, 0);
        break;
    case LINK_CONNECTING:
        link->attempts = 0;
        if (!is_same)
            redis_connect_cancel(link->connect);
        break;
    case LINK_GREETING:
    case LINK_READY:
        link->attempts = 0;
        if (!is_same)
            lose(link, "the Sentinels name another master");
        break;
    case LINK_ASKING:
    case LINK_CLOSING:
        break;
    }
}

static void connect_begin(struct redis_link *link)
{
    link->state = LINK_CONNECTING;
    link->connect = redis_connect_start(link->loop, &link->target, link->attempts, attempt_connected, link);
    arm(link, link->timeout_ms);
}

static void attempt_connected(void *arg, int status, union redis_stream *stream)
{
    struct redis_link *link = arg;

    link->connect = NULL;
    if (link->state == LINK_CLOSING) {
        /* The close cancelled the attempt, so that there is no stream. */
        wake(link);
        return;
    }
    if (status != 0) {
        const char *why = status == UV_ECANCELED ? "no connection in time" : uv_strerror(status);

        set_trouble(link, "%s: %s", link->where, why);
        retry_later(link);
        log_loss(link);
        return;
    }
    link->wire = redis_wire_create(stream, &WIRE_EVENTS, link);
    link->wires_open++;
    metric_add(METRIC_REDIS_CONNECTS, 1);
    greeting_begin(link);
}

/* Pipelined; the last call is a PING, for the others are answered by a Redis that still loads its data. */
static void greeting_begin(struct redis_link *link)
{
    const struct redis_target *t = &link->target;
    char text[64];
    bool is_sent = true;

    link->state = LINK_GREETING;
    if (t->password[0]) {
        struct text auth[] = {TEXT("AUTH"), text_of(t->user), text_of(t->password)};
        struct text auth_standard_user[] = {TEXT("AUTH"), text_of(t->password)};

        is_sent = t->user[0] ? call_send(link, 3, auth, greeting_answered, link)
                             : call_send(link, 2, auth_standard_user, greeting_answered, link);
    }
    if (t->db) {
        snprintf(text, sizeof text, "%u", t->db);
        is_sent &= call_send(link, 2, (struct text[]){TEXT("SELECT"), text_of(text)}, greeting_answered, link);
    }
    snprintf(text, sizeof text, "chatelaine-%s", link->name);
    is_sent &= call_send(link, 3, (struct text[]){TEXT("CLIENT"), TEXT("SETNAME"), text_of(text)}, name_answered, link);
    if (link->sentinel)
        is_sent &= call_send(link, 1, (struct text[]){TEXT("ROLE")}, role_answered, link);
    is_sent &= call_send(link, 1, (struct text[]){TEXT("PING")}, ping_answered, link);
    if (!is_sent)
        lose(link, "out of memory");
}

/* False, and the connection is given up, where Redis refused. */
static bool greeting_is_good(struct redis_link *link, const struct redis_reply *reply)
{
    char why[TROUBLE_BYTES];

    if (reply->type == REPLY_STATUS)
        return true;
    /* Redis' own words: WRONGPASS, NOAUTH, LOADING, NOPERM, … name the cause. They do not repeat the password. */
    snprintf(why, sizeof why, "%.*s", TEXT_ARG(reply->type == REPLY_ERROR ? reply->text : TEXT("not a Redis")));
    lose(link, why);
    return false;
}

static void greeting_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)outcome;
    (void)greeting_is_good(arg, reply);
}

/* The name is for people who look at CLIENT LIST; a Redis that forbids it serves all the same. */
static void name_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)outcome, (void)reply;
}

/* Sentinel's word may be old, and a master that comes back becomes a replica. */
static void role_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;
    struct text role;

    (void)outcome;
    if (!reply_text(reply_at(reply, 0), &role))
        (void)greeting_is_good(link, reply->type == REPLY_ERROR ? reply : &(struct redis_reply){.type = REPLY_NIL});
    else if (!text_equal(role, TEXT("master")))
        lose(link, "it is a replica, though the Sentinels name it as the master");
}

static void become_ready(struct redis_link *link)
{
    CHECK(uv_timer_stop(&link->timer) == 0);
    link->state = LINK_READY;
    link->ready_since_ms = uv_now(link->loop);
    link->trouble[0] = '\0';
    log_ready(link);
    if (link->ready)
        link->ready(link->arg, true);
}

static void ping_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    (void)outcome;
    if (!greeting_is_good(link, reply))
        return;
    if (link->subscription)
        subscribe(link);
    else
        become_ready(link);
}

/* Listening */

/* One command a channel, so that each has one reply. */
static void subscribe(struct redis_link *link)
{
    struct text channels[REDIS_CHANNELS_MAX];
    bool is_sent = true;

    link->unconfirmed = (unsigned)link->subscription->channels(link->arg, channels);
    for (unsigned i = 0; i < link->unconfirmed; i++)
        is_sent &= call_send(link, 2, (struct text[]){TEXT("SUBSCRIBE"), channels[i]}, subscribe_answered, link);
    if (!is_sent)
        lose(link, "out of memory");
}

static bool is_push(const struct redis_reply *reply, struct text kind)
{
    struct text t;

    return reply_text(reply_at(reply, 0), &t) && text_equal(t, kind);
}

static void subscribe_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    (void)outcome;
    if (!is_push(reply, TEXT("subscribe"))) {
        (void)greeting_is_good(link, reply->type == REPLY_ERROR ? reply : &(struct redis_reply){.type = REPLY_NIL});
        return;
    }
    if (--link->unconfirmed == 0)
        become_ready(link);
}

/* Messages of channels that are confirmed already come before the link is ready: nobody waits for those. */
static void message_came(struct redis_link *link, const struct redis_reply *reply)
{
    struct text channel, payload;

    if (link->state != LINK_READY)
        return;
    if (!reply_text(reply_at(reply, 1), &channel) || !reply_text(reply_at(reply, 2), &payload) ||
        !link->subscription->message(link->arg, channel, payload))
        redis_link_renew(link, "it sent a message that makes no sense");
}

/* Replies */

static void wire_replied(void *arg, const struct redis_reply *reply)
{
    struct redis_link *link = arg;

    if (link->subscription && is_push(reply, TEXT("message"))) {
        message_came(link, reply);
        return;
    }
    if (link->count == 0) {
        lose(link, "it sent a reply to nothing");
        return;
    }
    struct redis_call call = *call_at(link, 0);
    call_drop_first(link);
    if (call.done)
        call.done(call.arg, REDIS_REPLIED, reply);
}

static void wire_broken(void *arg, const char *why)
{
    lose(arg, why);
}

/* Deadlines */

static void calls_expire(struct redis_link *link)
{
    uint64_t now_ms = uv_now(link->loop);

    while (link->expired < link->count && call_at(link, link->expired)->deadline_ms <= now_ms) {
        struct redis_call *call = call_at(link, link->expired++);
        redis_done *done = call->done;

        call->done = NULL;
        metric_add(METRIC_REDIS_LOST, 1);
        done(call->arg, REDIS_LOST, NULL);
        if (link->state != LINK_READY)
            return;
    }
    if (link->count == 0)
        return;

    uint64_t overdue_ms = call_at(link, 0)->deadline_ms + (uint64_t)OVERDUE_TIMEOUTS * link->timeout_ms;
    if (overdue_ms <= now_ms) {
        lose(link, "it does not answer");
        return;
    }
    uint64_t next_ms = overdue_ms;
    if (link->expired < link->count && call_at(link, link->expired)->deadline_ms < next_ms)
        next_ms = call_at(link, link->expired)->deadline_ms;
    arm(link, next_ms - now_ms);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;

    switch (link->state) {
    case LINK_WAITING:
        attempt_begin(link);
        break;
    case LINK_CONNECTING:
        redis_connect_cancel(link->connect);
        break;
    case LINK_GREETING:
        lose(link, "it does not answer");
        break;
    case LINK_READY:
        calls_expire(link);
        break;
    case LINK_ASKING:
    case LINK_CLOSING:
        break;
    }
}

/* Life */

struct redis_link *redis_link_create(uv_loop_t *loop, const struct redis_target *target,
                                     const struct redis_link_settings *settings, void (*ready)(void *arg, bool ready),
                                     void *arg)
{
    struct redis_link *link = mem_alloc(sizeof *link);

    link->loop = loop;
    link->target = *target;
    link->timeout_ms = settings->timeout_ms;
    link->backoff_max_ms = settings->backoff_max_ms ? settings->backoff_max_ms : BACKOFF_MAX_STANDARD_MS;
    link->subscription = settings->subscription;
    link->ready = ready;
    link->arg = arg;
    link->calls_max = settings->calls_max > GREETING_CALLS ? settings->calls_max : GREETING_CALLS;
    link->calls = mem_alloc(link->calls_max * sizeof *link->calls);
    snprintf(link->name, sizeof link->name, "%s", settings->name);
    link->sentinel = settings->sentinel;
    name_place(link);
    set_trouble(link, "%s: not connected yet", link->where);
    CHECK(uv_timer_init(loop, &link->timer) == 0);
    CHECK(uv_idle_init(loop, &link->idle) == 0);
    link->timer.data = link->idle.data = link;
    link->handles_open = 2;
    link->follower = (struct sentinel_follower){.told = master_told, .moved = master_moved, .arg = link};
    if (link->sentinel)
        redis_sentinel_follow(link->sentinel, &link->follower);
    attempt_begin(link);
    return link;
}

static void handle_closed(uv_handle_t *handle)
{
    struct redis_link *link = handle->data;

    if (--link->handles_open > 0)
        return;
    /* Called by someone between the last idle turn and now. */
    while (link->failure_count > 0)
        failures_tell(link);

    void (*closed)(void *arg) = link->closed;
    void *arg = link->closed_arg;
    secure_wipe(&link->target, sizeof link->target);
    free(link->calls);
    free(link->failures);
    free(link);
    if (closed)
        closed(arg);
}

static void close_handles_when_done(struct redis_link *link)
{
    bool is_over = link->failure_count == 0 && link->wires_open == 0 && !link->connect;

    if (link->state != LINK_CLOSING || !is_over || uv_is_closing((uv_handle_t *)&link->idle))
        return;
    uv_close((uv_handle_t *)&link->timer, handle_closed);
    uv_close((uv_handle_t *)&link->idle, handle_closed);
}

static void on_idle(uv_idle_t *idle)
{
    struct redis_link *link = idle->data;

    CHECK(uv_idle_stop(idle) == 0);
    failures_tell(link);
    if (link->wire)
        redis_wire_flush(link->wire);
    close_handles_when_done(link);
}

static void wire_closed(void *arg)
{
    struct redis_link *link = arg;

    link->wires_open--;
    if (link->state == LINK_CLOSING)
        wake(link);
}

void redis_link_close(struct redis_link *link, void (*closed)(void *arg), void *arg)
{
    CHECK(link->state != LINK_CLOSING);
    if (link->sentinel)
        redis_sentinel_unfollow(&link->follower);
    if (link->wire)
        calls_fail(link);
    link->state = LINK_CLOSING;
    link->closed = closed;
    link->closed_arg = arg;
    set_trouble(link, "%s: closed", link->where);
    CHECK(uv_timer_stop(&link->timer) == 0);
    if (link->connect)
        redis_connect_cancel(link->connect);
    if (link->wire) {
        redis_wire_close(link->wire, wire_closed, link);
        link->wire = NULL;
    }
    wake(link);
}

void redis_link_renew(struct redis_link *link, const char *why)
{
    if (link->state == LINK_GREETING || link->state == LINK_READY)
        lose(link, why);
}

bool redis_link_is_ready(const struct redis_link *link)
{
    return link->state == LINK_READY;
}

const char *redis_link_trouble(const struct redis_link *link)
{
    return link->trouble;
}
