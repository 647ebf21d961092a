#include "redis/sentinel.h"

#include "base/callback.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "redis/link.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMEOUT_MAX_MS = 500, /* Sentinels do little else, so a slower one counts as down */
    BACKOFF_MAX_MS = 1000,
    CALLS_MAX = 8,
    REFUSAL_BYTES = 160,
    TROUBLE_BYTES = SENTINEL_TROUBLE_BYTES + 32,
};

struct sentinel_peer {
    struct redis_sentinel *sentinel;
    struct redis_link *questions, *events; /* NULL once closed */
    /* Its answers in this round. */
    struct redis_address master; /* port 0: none */
    int64_t epoch, quorum, others;
    bool has_answered, knows_master;
    char refusal[REFUSAL_BYTES]; /* it lets this user not ask: its words */
    int64_t replicas;            /* its latest answer, from this round or an earlier one */
};

struct redis_sentinel {
    struct redis_resolver resolver;
    char master_name[REDIS_MASTER_NAME_BYTES];
    struct sentinel_peer peers[REDIS_SEEDS_MAX];
    unsigned peer_count;

    struct redis_address master; /* port 0: unknown */
    int64_t epoch;               /* of that answer; -1: unknown */

    struct redis_rounds rounds;
    struct sentinel_census census;

    unsigned open; /* links and timer still open while closing */
    bool is_closing;
    struct callback closed;
};

static void on_questions_state(void *arg, bool is_up);
static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
static bool on_event(void *arg, struct text channel, struct text payload);
static void on_master_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void on_address_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void ask_peers(void *arg);
static void round_end(void *arg);
static void ask(struct redis_resolver *resolver);
static int64_t replicas(const struct redis_resolver *resolver);

static const struct redis_subscription EVENTS = {
    .channels = name_channels, .channels_again = name_channels, .message = on_event};

/* Two connections each, because a subscribed one takes no questions. */
static void peer_open(struct sentinel_peer *peer, uv_loop_t *loop, const struct redis_target *all, unsigned index,
                      struct redis_tls *tls, uint32_t timeout_ms)
{
    struct redis_target target = {
        .port = all->seeds[index].port, .tls = all->tls, .login = all->sentinel_login, .access = all->access};
    struct redis_link_settings settings = {
        .name = "sentinel",
        .durations = HISTOGRAM_REDIS_SENTINEL,
        .timeout_ms = timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .calls_max = CALLS_MAX,
        .tls = tls,
        .to_sentinel = true,
        .is_finder = true,
    };

    memcpy(target.host, all->seeds[index].host, sizeof target.host);
    peer->questions = redis_link_create(loop, &target, &settings, on_questions_state, peer);
    settings.name = "sentinel-events";
    settings.subscription = &EVENTS;
    peer->events = redis_link_create(loop, &target, &settings, NULL, peer);
    secure_wipe(&target, sizeof target);
}

struct redis_sentinel *redis_sentinel_create(uv_loop_t *loop, const struct redis_target *target, struct redis_tls *tls,
                                             uint32_t timeout_ms)
{
    struct redis_sentinel *sentinel = mem_alloc(sizeof *sentinel);

    memcpy(sentinel->master_name, target->master_name, sizeof sentinel->master_name);
    sentinel->resolver = (struct redis_resolver){.what = "Sentinel", .ask = ask, .replicas = replicas};
    list_init(&sentinel->resolver.followers);
    snprintf(sentinel->resolver.source, sizeof sentinel->resolver.source, "master %s", sentinel->master_name);
    sentinel->peer_count = target->seed_count;
    sentinel->epoch = -1;
    sentinel->census.asked = target->seed_count;
    redis_rounds_start(&sentinel->rounds, loop, ask_peers, round_end, sentinel);
    for (unsigned i = 0; i < sentinel->peer_count; i++) {
        sentinel->peers[i].sentinel = sentinel;
        peer_open(&sentinel->peers[i], loop, target, i, tls, timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS);
    }
    return sentinel;
}

struct redis_resolver *redis_sentinel_resolver(struct redis_sentinel *sentinel)
{
    return &sentinel->resolver;
}

/* Rounds */

static void ask_peer(struct sentinel_peer *peer)
{
    const struct text name = text_of(peer->sentinel->master_name);

    peer->master.port = 0;
    peer->epoch = -1;
    peer->has_answered = peer->knows_master = false;
    peer->refusal[0] = '\0';
    redis_round_expect(&peer->sentinel->rounds, 2);
    /* The epoch first, so the address that follows is at least as new. SENTINEL MASTER itself names the old master
     * until a failover has ended. */
    redis_link_call(peer->questions, 3, (struct text[]){TEXT("SENTINEL"), TEXT("MASTER"), name}, on_master_answered,
                    peer);
    redis_link_call(peer->questions, 3, (struct text[]){TEXT("SENTINEL"), TEXT("GET-MASTER-ADDR-BY-NAME"), name},
                    on_address_answered, peer);
}

static void ask_peers(void *arg)
{
    struct redis_sentinel *sentinel = arg;

    for (unsigned i = 0; i < sentinel->peer_count; i++)
        ask_peer(&sentinel->peers[i]);
}

static bool is_any_ready(const struct redis_sentinel *sentinel)
{
    for (unsigned i = 0; i < sentinel->peer_count; i++)
        if (redis_link_is_ready(sentinel->peers[i].questions))
            return true;
    return false;
}

/* If no Sentinel is connected, the follower waits for the first one or for the next round. */
static void ask(struct redis_resolver *resolver)
{
    struct redis_sentinel *sentinel = LIST_ENTRY(resolver, struct redis_sentinel, resolver);

    if (sentinel->rounds.due == 0 && is_any_ready(sentinel))
        redis_round_begin(&sentinel->rounds);
}

static void on_questions_state(void *arg, bool is_up)
{
    struct sentinel_peer *peer = arg;

    if (is_up)
        redis_round_begin(&peer->sentinel->rounds);
}

static size_t name_channels(UNUSED void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    ret_channels[0] = TEXT("+switch-master");
    return 1;
}

/* "<name> <old host> <old port> <new host> <new port>". It carries no epoch, so it only starts a round. */
static bool on_event(void *arg, UNUSED struct text channel, struct text payload)
{
    struct redis_sentinel *sentinel = ((struct sentinel_peer *)arg)->sentinel;
    struct text name;

    if (text_next(&payload, ' ', &name) && text_equal(name, text_of(sentinel->master_name)))
        redis_round_begin(&sentinel->rounds);
    return true;
}

static void learn(struct redis_sentinel *sentinel, const struct sentinel_peer *peer)
{
    bool is_other = !redis_address_equal(&sentinel->master, &peer->master);
    bool is_first = sentinel->epoch < 0;

    REQUIRE(peer->knows_master && peer->master.port > 0 && peer->epoch >= 0);
    sentinel->master = peer->master;
    sentinel->epoch = peer->epoch;
    if (!is_other)
        return;
    metric_add(METRIC_REDIS_SWITCHES, !is_first);
    if (!is_first)
        LOG(LOG_WARN, "failover: Sentinel names another master", log_str("master", sentinel->master.host),
            log_int("port", sentinel->master.port), log_int("epoch", sentinel->epoch));
    redis_resolver_tell_moved(&sentinel->resolver, &sentinel->master);
}

/* The winning answer of this round: the highest epoch; among equals, the one that keeps the current master. */
static const struct sentinel_peer *find_newest(const struct redis_sentinel *sentinel)
{
    const struct sentinel_peer *newest = NULL;

    for (unsigned i = 0; i < sentinel->peer_count; i++) {
        const struct sentinel_peer *peer = &sentinel->peers[i];

        if (peer->knows_master &&
            (!newest || peer->epoch > newest->epoch ||
             (peer->epoch == newest->epoch && redis_address_equal(&peer->master, &sentinel->master))))
            newest = peer;
    }
    return newest;
}

/* Keeps the first one. */
static void note_trouble(const struct sentinel_peer *peer, struct sentinel_census *census)
{
    if (census->trouble[0] || peer->knows_master)
        return;
    if (peer->refusal[0])
        snprintf(census->trouble, sizeof census->trouble, "%s: %s", redis_link_where(peer->questions), peer->refusal);
    else
        snprintf(census->trouble, sizeof census->trouble, "%s", redis_link_trouble(peer->questions));
}

static void take_census(struct redis_sentinel *sentinel, const struct sentinel_peer *newest)
{
    struct sentinel_census census = {.asked = sentinel->peer_count};

    for (unsigned i = 0; i < sentinel->peer_count; i++) {
        note_trouble(&sentinel->peers[i], &census);
        census.knowing += sentinel->peers[i].knows_master;
        census.agreeing += newest && sentinel->peers[i].knows_master &&
                           redis_address_equal(&sentinel->peers[i].master, &newest->master);
    }
    census.quorum = newest ? newest->quorum : 0;
    census.others = newest ? newest->others : 0;
    sentinel->census = census;
}

static const char *trouble_of(const struct redis_sentinel *sentinel, char ret_text[TROUBLE_BYTES])
{
    for (unsigned i = 0; i < sentinel->peer_count; i++)
        if (sentinel->peers[i].has_answered && !sentinel->peers[i].refusal[0])
            return "no Sentinel knows a master of that name";
    snprintf(ret_text, TROUBLE_BYTES, "no Sentinel answers: %s", sentinel->census.trouble);
    return ret_text;
}

/* An epoch lower than one seen before is accepted only if most Sentinels answered and none has a higher one: they were
 * set up afresh. */
static void round_end(void *arg)
{
    struct redis_sentinel *sentinel = arg;
    const struct sentinel_peer *newest = find_newest(sentinel);
    char text[TROUBLE_BYTES];

    take_census(sentinel, newest);
    if (newest && 2 * sentinel->census.knowing > sentinel->peer_count)
        learn(sentinel, newest);
    if (newest)
        redis_resolver_tell_master(&sentinel->resolver, &sentinel->master);
    else
        redis_resolver_tell_failure(&sentinel->resolver, trouble_of(sentinel, text));
}

static int64_t field_of(const struct redis_reply *reply, struct text name, int64_t otherwise)
{
    int64_t value;

    return reply_integer(reply_named(reply, name), &value) ? value : otherwise;
}

/* reply: NULL if there is none. */
static void note_refusal(struct sentinel_peer *peer, const struct redis_reply *reply)
{
    if (reply && text_equal(reply_error_kind(reply), TEXT("NOPERM")))
        snprintf(peer->refusal, sizeof peer->refusal, "%.*s", TEXT_ARG(reply->text));
}

static void on_master_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct sentinel_peer *peer = arg;

    peer->has_answered = outcome == REDIS_REPLIED;
    note_refusal(peer, reply);
    if (outcome == REDIS_REPLIED && reply->type == REPLY_ARRAY) {
        peer->epoch = field_of(reply, TEXT("config-epoch"), -1);
        peer->quorum = field_of(reply, TEXT("quorum"), 0);
        peer->others = field_of(reply, TEXT("num-other-sentinels"), 0);
        peer->replicas = field_of(reply, TEXT("num-slaves"), peer->replicas);
    }
    redis_round_answered(&peer->sentinel->rounds);
}

static bool address_read(const struct redis_reply *reply, struct redis_address *ret_address)
{
    struct text host;
    int64_t port;

    if (!reply_text(reply_at(reply, 0), &host) || !reply_integer(reply_at(reply, 1), &port) || host.len == 0 ||
        host.len >= sizeof ret_address->host || memchr(host.ptr, '\0', host.len) || port < 1 || port > UINT16_MAX)
        return false;
    snprintf(ret_address->host, sizeof ret_address->host, "%.*s", TEXT_ARG(host));
    ret_address->port = (uint16_t)port;
    return true;
}

static void on_address_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct sentinel_peer *peer = arg;
    struct redis_sentinel *sentinel = peer->sentinel;

    note_refusal(peer, reply);
    peer->knows_master = outcome == REDIS_REPLIED && peer->epoch >= 0 && address_read(reply, &peer->master);
    if (peer->knows_master && !sentinel->is_closing) {
        if (peer->epoch > sentinel->epoch)
            learn(sentinel, peer);
        redis_resolver_tell_master(&sentinel->resolver, &sentinel->master);
    }
    redis_round_answered(&sentinel->rounds);
}

/* The highest of the Sentinels' latest counts. */
static int64_t replicas(const struct redis_resolver *resolver)
{
    const struct redis_sentinel *sentinel = LIST_ENTRY(resolver, const struct redis_sentinel, resolver);
    int64_t most = 0;

    for (unsigned i = 0; i < sentinel->peer_count; i++)
        most = sentinel->peers[i].replicas > most ? sentinel->peers[i].replicas : most;
    return most;
}

struct sentinel_census redis_sentinel_census(const struct redis_sentinel *sentinel)
{
    return sentinel->census;
}

/* Closing */

static void part_closed(void *arg)
{
    struct redis_sentinel *sentinel = arg;
    const struct callback closed = sentinel->closed;

    if (--sentinel->open > 0)
        return;
    free(sentinel);
    callback_run(closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    part_closed(((struct redis_rounds *)handle->data)->arg);
}

void redis_sentinel_close(struct redis_sentinel *sentinel, void (*closed)(void *arg), void *arg)
{
    REQUIRE(!sentinel->is_closing && list_empty(&sentinel->resolver.followers));
    sentinel->is_closing = true;
    sentinel->closed = (struct callback){closed, arg};
    sentinel->open = 2 * sentinel->peer_count + 1;
    for (unsigned i = 0; i < sentinel->peer_count; i++) {
        redis_link_close(sentinel->peers[i].questions, part_closed, sentinel);
        redis_link_close(sentinel->peers[i].events, part_closed, sentinel);
    }
    redis_rounds_stop(&sentinel->rounds, on_timer_closed);
}
