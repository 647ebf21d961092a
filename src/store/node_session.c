#include "store/node_session.h"

#include "barrier_internal.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "node_session_internal.h"
#include "verb_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEARTBEATS_PER_LEASE = 4,
    HEARTBEAT_MIN_MS = 5,
    ECHOES_MISSED_MAX = 2, /* while Redis answers: then the subscription is dead, though nobody says so */
    NONCE_CHARS = 16,
    BACKOFF_MAX_MS = 1000,
    CHANNEL_BYTES = REDIS_PREFIX_MAX_BYTES + SESSION_NAME_CHARS + 16,
    PAYLOAD_BYTES = 128,
};

struct node_session {
    struct store *store;
    struct redis_link *link; /* NULL once closed */
    struct node_session_events events;
    void *arg;
    uint32_t lease_ms;

    bool is_live;                 /* subscribed */
    struct session_name id;       /* of the connection that is, or is being made */
    struct session_name previous; /* ended, and perhaps still in the registry; empty: none */
    char invalidations[CHANNEL_BYTES], own[CHANNEL_BYTES];
    uint64_t epoch; /* counts whatever makes a read that was sent before it unfit for the cache */

    uint64_t lease_until_ns;
    uint64_t mastery_until_ns; /* the same, but leaving does not end it: until then no other Redis is the master */
    bool has_lease;            /* as last told in the log */
    struct log_pause gain_pause, loss_pause;

    uv_timer_t ticker;
    int64_t heartbeats;      /* of this session */
    uint64_t nonce, sent_ns; /* of the newest heartbeat */
    bool is_awaited;         /* it may still grant a lease: as soon as it is */
    bool is_echoed;          /* on the connection of invalidations */
    bool is_replicated;      /* to as many replicas as must have it */
    bool is_under_way;       /* its script's reply, or WAIT's */
    bool has_too_few;        /* replicas: so the newest that was answered */
    unsigned echoes_missed;  /* in a row, while the script was answered */

    bool is_leaving, is_leave_under_way;
    bool is_closing, is_ticker_closed;
    void (*closed)(void *arg);
    void *closed_arg;
};

static size_t link_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
static bool link_message(void *arg, struct text channel, struct text payload);
static void link_told(void *arg, bool is_up);
static void on_tick(uv_timer_t *ticker);
static void heartbeat_answered(void *arg, enum store_result result, const struct redis_reply *reply);

static const struct redis_subscription SUBSCRIPTION = {link_channels, link_message};

struct node_session *node_session_create(struct store *store, const struct redis_target *target, uint32_t lease_ms)
{
    struct node_session *session = mem_alloc(sizeof *session);
    const struct redis_link_settings link = {
        .name = "invalidations",
        .timeout_ms = store_timeout_ms(store),
        .backoff_max_ms = BACKOFF_MAX_MS,
        .subscription = &SUBSCRIPTION,
        .resolver = store_resolver(store),
        .to_master = true,
    };

    CHECK(lease_ms <= LEASE_MS_MAX);
    session->store = store;
    session->lease_ms = lease_ms;
    CHECK(uv_timer_init(store_loop(store), &session->ticker) == 0);
    session->ticker.data = session;
    session->link = redis_link_create(store_loop(store), target, &link, link_told, session);
    store_add_link(store, session->link);
    store_set_session(store, session);
    return session;
}

void node_session_listen(struct node_session *session, const struct node_session_events *events, void *arg)
{
    session->events = *events;
    session->arg = arg;
}

void node_session_name(const struct node_session *session, struct session_name *ret_name)
{
    *ret_name = session && session->is_live ? session->id : (struct session_name){"-"};
}

uint32_t node_session_lease_ms(const struct node_session *session)
{
    return session ? session->lease_ms : 0;
}

const char *node_session_trouble(const struct node_session *session)
{
    return session->has_too_few ? "Too few replicas acknowledge heartbeats: bring them back, or lower --min-replicas."
                                : "The node has no lease from the master yet.";
}

/* What checks ask */

bool node_session_may_cache(const struct node_session *session)
{
    return session->lease_ms > 0;
}

bool node_session_has_lease(const struct node_session *session, uint64_t *ret_now_ns)
{
    *ret_now_ns = clock_boot_ns();
    return *ret_now_ns < session->lease_until_ns || (!RULE(RULE_USE) && session->lease_ms > 0);
}

bool node_session_may_decide(const struct node_session *session)
{
    return !store_resolver(session->store) || clock_boot_ns() < session->mastery_until_ns || !RULE(RULE_FENCE_READS);
}

uint64_t node_session_epoch(const struct node_session *session)
{
    return session->epoch;
}

bool node_session_may_fill(const struct node_session *session, uint64_t epoch)
{
    return session->is_live && session->epoch == epoch && session->lease_ms > 0 && !session->is_leaving;
}

/* The session */

static void name_channel(char channel[CHANNEL_BYTES], struct text prefix, const char *kind, const char *session)
{
    int length = snprintf(channel, CHANNEL_BYTES, "%.*s%s%s", TEXT_ARG(prefix), kind, session);

    CHECK(length > 0 && length < CHANNEL_BYTES);
}

/* Rule 1: each connection is a session of its own. */
static size_t link_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    struct node_session *session = arg;
    uint8_t bytes[SESSION_NAME_BYTES];
    struct buf out;

    if (session->heartbeats > 0)
        session->previous = session->id;
    session->heartbeats = 0;
    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, session->id.text, SESSION_NAME_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
    name_channel(session->own, store_prefix(session->store), "node:", session->id.text);
    name_channel(session->invalidations, store_prefix(session->store), "inv", "");
    ret_channels[0] = text_of(session->own);
    ret_channels[1] = text_of(session->invalidations);
    return 2;
}

static void tick_in(struct node_session *session, uint64_t ms)
{
    if (session->lease_ms > 0 && !session->is_closing)
        CHECK(uv_timer_start(&session->ticker, on_tick, ms, 0) == 0);
}

static void forget_everything(struct node_session *session)
{
    session->lease_until_ns = 0;
    if (session->events.ended)
        session->events.ended(session->arg);
}

static void link_told(void *arg, bool is_up)
{
    struct node_session *session = arg;

    if (is_up)
        store_link_is_up(session->store, session->link);
    session->is_live = is_up;
    session->epoch += RULE(RULE_FILL_SESSION);
    session->is_awaited = session->has_too_few = false;
    session->echoes_missed = 0;
    if (is_up) {
        metric_add(METRIC_SESSIONS, 1);
        tick_in(session, 0);
    } else if (RULE(RULE_FLUSH)) {
        session->mastery_until_ns = 0;
        forget_everything(session);
    }
}

/* Leases */

static const char *lease_trouble(const struct node_session *session)
{
    if (!session->is_live)
        return redis_link_trouble(session->link);
    return session->has_too_few ? "too few replicas acknowledge heartbeats" : "heartbeats are not echoed in time";
}

static void lease_note(struct node_session *session)
{
    bool has_lease = clock_boot_ns() < session->lease_until_ns;

    if (has_lease == session->has_lease)
        return;
    session->has_lease = has_lease;
    metric_add(METRIC_LEASE_HELD, has_lease ? 1 : -1);
    metric_add(METRIC_LEASES_LOST, !has_lease);
    store_lease_changed(session->store);
    if (session->is_leaving || !store_may_log(session->store, has_lease ? &session->gain_pause : &session->loss_pause))
        return;
    if (has_lease)
        LOG(LOG_INFO, "lease gained: checks are answered from memory", log_str("session", session->id.text),
            log_int("lease_ms", session->lease_ms));
    else
        LOG(LOG_WARN, "lease lost: every check reads Redis", log_str("session", session->id.text),
            log_str("why", lease_trouble(session)), log_int("suppressed", session->loss_pause.suppressed));
}

/* Rule 2: the lease runs from the clock read before the heartbeat was sent. Rule 10: where another Redis may take over,
 * replicas must have the heartbeat as well. A master that was replaced, or froze and wakes, has lost them and can't
 * collect their acknowledgements, whatever it believes of itself. And the Redis that takes over, where it was one of
 * them, knows how long this lease is (lease_max). */
static void lease_try(struct node_session *session)
{
    uint64_t from_ns = RULE(RULE_FROM_SEND) ? session->sent_ns : clock_boot_ns();

    if (!session->is_awaited || !session->is_echoed || !session->is_replicated)
        return;
    session->is_awaited = false;
    session->lease_until_ns = session->mastery_until_ns = from_ns + session->lease_ms * CLOCK_NS_PER_MS;
    lease_note(session);
}

static void heartbeat_send(struct node_session *session)
{
    struct script_args args;
    char nonce[NONCE_CHARS + 1];

    random_secret(&session->nonce, sizeof session->nonce);
    snprintf(nonce, sizeof nonce, "%016" PRIx64, session->nonce);
    args_begin(&args);
    args_add(&args, text_of(session->id.text));
    args_add_int(&args, ++session->heartbeats);
    args_add_int(&args, session->lease_ms);
    args_add(&args, text_of(nonce));
    session->is_awaited = session->is_under_way = true;
    session->is_echoed = false;
    session->is_replicated = store_min_replicas(session->store) == 0;
    session->sent_ns = clock_boot_ns();
    store_call_script(session->store, SCRIPT_node_heartbeat,
                      RULE(RULE_HEARTBEAT_WAIT) ? SCRIPT_HEARTBEATS : SCRIPT_LEAVES, args.count, args.argv,
                      heartbeat_answered, session);
}

static void registry_leave(struct node_session *session, const struct session_name *id, script_done *done)
{
    const struct text argv[] = {text_of(id->text), TEXT("")};

    store_call_script(session->store, SCRIPT_node_leave, SCRIPT_LEAVES, 2, argv, done, session);
}

static void previous_left(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg, (void)result, (void)reply; /* one that stays in the registry is swept by the next revoker */
}

/* A session whose cache was emptied need not be waited for: out of the registry with it, as in rule 9. */
static void previous_leave(struct node_session *session)
{
    if (!session->previous.text[0])
        return;
    registry_leave(session, &session->previous, previous_left);
    session->previous.text[0] = '\0';
}

static void try_end(struct node_session *session);

static void heartbeat_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct node_session *session = arg;

    session->is_under_way = false;
    session->has_too_few = result == STORE_REFUSED && !reply;
    session->is_replicated |= result == STORE_OK;
    session->is_awaited &= result == STORE_OK;
    session->is_echoed |= !RULE(RULE_SAME_CONNECTION);
    lease_try(session);
    if (result == STORE_OK)
        previous_leave(session);
    if (!RULE(RULE_REGISTER))
        registry_leave(session, &session->id, previous_left);
    try_end(session);
}

/* A heartbeat that is older than its lease would be is given up: its echo grants nothing any more. */
static void heartbeat_expire(struct node_session *session)
{
    uint64_t age_ns = clock_boot_ns() - session->sent_ns;

    if (!session->is_awaited || age_ns < session->lease_ms * CLOCK_NS_PER_MS)
        return;
    session->is_awaited = false;
    if (!session->is_under_way && !session->is_echoed)
        session->echoes_missed++;
}

static void on_tick(uv_timer_t *ticker)
{
    struct node_session *session = ticker->data;
    uint32_t interval_ms = session->lease_ms / HEARTBEATS_PER_LEASE;

    heartbeat_expire(session);
    lease_note(session);
    tick_in(session, interval_ms > HEARTBEAT_MIN_MS ? interval_ms : HEARTBEAT_MIN_MS);
    if (!session->is_live || session->is_leaving)
        return;
    if (session->echoes_missed >= ECHOES_MISSED_MAX)
        redis_link_renew(session->link, "heartbeats are answered but not echoed");
    else if (!session->is_awaited && !session->is_under_way)
        heartbeat_send(session);
}

/* Messages */

/* Rule 6: what is remembered is dropped first, then acknowledged: not on the link of changes, which may wait for
 * replicas, nor on that of checks, for Redis may hold up what publishes (CLIENT PAUSE). Nobody needs the reply. */
static void acknowledged(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)outcome, (void)reply; /* a lost acknowledgement costs time only */
}

static void acknowledge(struct node_session *session, struct text revoker, struct text barrier)
{
    char channel[CHANNEL_BYTES], payload[PAYLOAD_BYTES], revoker_name[SESSION_NAME_CHARS + 1];

    snprintf(revoker_name, sizeof revoker_name, "%.*s", TEXT_ARG(revoker));
    name_channel(channel, store_prefix(session->store), "node:", revoker_name);
    snprintf(payload, sizeof payload, "ack %s %.*s", session->id.text, TEXT_ARG(barrier));
    redis_link_call(store_scripts(session->store), 3,
                    (struct text[]){TEXT("PUBLISH"), text_of(channel), text_of(payload)}, acknowledged, NULL);
}

static bool invalidation_came(struct node_session *session, struct text payload)
{
    struct text digest_hex, revoker, barrier;
    uint8_t digest[KEY_DIGEST_BYTES];

    if (!text_next(&payload, ' ', &digest_hex) || !decode_hex(digest_hex, digest, sizeof digest) ||
        !text_next(&payload, ' ', &revoker) || !text_next(&payload, ' ', &barrier) || payload.ptr)
        return false;
    session->epoch += RULE(RULE_FILL_INVALIDATION);
    if (session->events.invalidated)
        session->events.invalidated(session->arg, digest);
    if (text_equal(revoker, TEXT("-")))
        return true;
    if (revoker.len != SESSION_NAME_CHARS || barrier.len != BARRIER_NAME_CHARS)
        return false;
    acknowledge(session, revoker, barrier);
    return true;
}

/* Only the newest heartbeat counts. Its echo may come before its script's reply, or WAIT's, and after them. */
static bool echo_came(struct node_session *session, struct text nonce_hex)
{
    char newest[NONCE_CHARS + 1];

    if (nonce_hex.len != NONCE_CHARS)
        return false;
    snprintf(newest, sizeof newest, "%016" PRIx64, session->nonce);
    if ((text_equal(nonce_hex, text_of(newest)) || !RULE(RULE_NONCE)) && RULE(RULE_SAME_CONNECTION)) {
        session->is_echoed = true;
        session->echoes_missed = 0;
        lease_try(session);
    }
    return true;
}

static bool own_message_came(struct node_session *session, struct text payload)
{
    struct text kind, name, barrier;

    if (!text_next(&payload, ' ', &kind) || !text_next(&payload, ' ', &name))
        return false;
    if (text_equal(kind, TEXT("lease")) && !payload.ptr)
        return echo_came(session, name);
    if (!text_equal(kind, TEXT("ack")) || !text_next(&payload, ' ', &barrier) || payload.ptr)
        return false;
    barriers_acknowledge(store_barriers(session->store), name, barrier);
    return true;
}

static bool link_message(void *arg, struct text channel, struct text payload)
{
    struct node_session *session = arg;

    if (text_equal(channel, text_of(session->invalidations)))
        return invalidation_came(session, payload);
    return text_equal(channel, text_of(session->own)) && own_message_came(session, payload);
}

/* Leaving: rule 9, the cache first */

static void leave_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct node_session *session = arg;

    (void)result, (void)reply; /* one that stays in the registry is swept by the next revoker */
    session->is_leave_under_way = false;
    try_end(session);
}

void node_session_leave(struct node_session *session)
{
    CHECK(!session->is_leaving);
    session->is_leaving = session->is_leave_under_way = true;
    session->is_awaited = false;
    forget_everything(session);
    lease_note(session);
    previous_leave(session);
    registry_leave(session, &session->id, leave_answered);
}

static void link_closed(void *arg)
{
    struct node_session *session = arg;

    session->link = NULL;
    try_end(session);
}

static void on_ticker_closed(uv_handle_t *handle)
{
    struct node_session *session = handle->data;

    session->is_ticker_closed = true;
    try_end(session);
}

static void try_end(struct node_session *session)
{
    void (*closed)(void *arg) = session->closed;
    void *arg = session->closed_arg;

    if (!session->is_closing || session->link || !session->is_ticker_closed || session->is_under_way ||
        session->is_leave_under_way)
        return;
    free(session);
    closed(arg);
}

void node_session_close(struct node_session *session, void (*closed)(void *arg), void *arg)
{
    CHECK(!session->is_closing);
    if (session->is_live)
        forget_everything(session);
    session->is_live = false;
    lease_note(session);
    session->is_leaving = session->is_closing = true;
    session->closed = closed;
    session->closed_arg = arg;
    store_set_session(session->store, NULL);
    store_remove_link(session->store, session->link);
    redis_link_close(session->link, link_closed, session);
    uv_close((uv_handle_t *)&session->ticker, on_ticker_closed);
}
