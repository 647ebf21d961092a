#include "lease/membership.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "lease/heard.h"
#include "lease/names.h"
#include "redis/link.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEARTBEATS_PER_LEASE = 4,
    HEARTBEAT_MIN_MS = 5,
    CATCH_UP_MS = 10,       /* until the next attempt to read what was missed */
    CATCH_UP_MAX_MS = 5000, /* until Redis can be read: the other connections may come back a while later */
    ECHOES_MISSED_MAX = 2,  /* in a row while Redis answers: the subscription is dead, although nothing reported it */
    NONCE_CHARS = 16,
    BACKOFF_MAX_MS = 1000,
    CHANNEL_BYTES = REDIS_PREFIX_MAX_BYTES + MEMBER_NAME_CHARS + 16,
    PAYLOAD_BYTES = 128,
    NUMBER_BYTES = 24,
};

enum membership_state {
    MEMBERSHIP_NONE,   /* not subscribed */
    MEMBERSHIP_BEHIND, /* subscribed, but what was missed before is not known */
    MEMBERSHIP_BEGUN,  /* it may have a lease */
};

struct membership {
    const struct lease_settings *settings;
    struct membership_parts with;
    struct heard *heard;
    struct redis_link *link; /* NULL once closed */
    struct membership_events events;
    void *arg;
    const struct membership_watch *watch; /* NULL: nobody watches */
    void *watch_arg;
    uint32_t lease_ms;

    enum membership_state state;
    bool is_silent;              /* this connection was given up because nothing arrived on it */
    uint64_t connections;        /* made or lost so far */
    uint64_t sent_on, asked_on;  /* of them, when the latest heartbeat was sent and what was missed was read */
    uint64_t behind_until_ns;    /* then the cache is emptied instead */
    struct member_name id;       /* of the current connection, or of the one being made */
    struct member_name previous; /* ended, but perhaps still in the registry; empty: none */
    char invalidations[CHANNEL_BYTES], own[CHANNEL_BYTES];
    uint64_t epoch; /* rises with each event that makes earlier reads unfit for the cache */

    uint64_t lease_until_ns;
    uint64_t mastery_until_ns; /* the same, but not ended by leaving: until then no other Redis is the master */
    bool has_lease;            /* as last logged */
    struct log_pause gain_pause, loss_pause;

    uv_timer_t ticker;
    int64_t number;          /* in the registry's entry; 0: no heartbeat since this connection was made */
    bool is_marked;          /* revokers mark the entry, and compare no numbers */
    uint64_t nonce, sent_ns; /* of the latest heartbeat */
    bool is_awaited;         /* it may still grant a lease, once it is: */
    bool is_echoed;          /* received on the `invalidations` connection */
    bool is_replicated;      /* acknowledged by enough replicas */
    bool is_under_way;       /* the reply of its script or of WAIT is pending */
    bool has_too_few;        /* too few replicas acknowledged the last answered heartbeat */
    unsigned echoes_missed;  /* in a row, although the script was answered */

    bool is_leaving, is_leave_under_way;
    bool is_closing, is_ticker_closed;
    void (*on_left)(void *arg);
    void *left_arg;
    void (*closed)(void *arg);
    void *closed_arg;
};

static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
static bool on_message(void *arg, struct text channel, struct text payload);
static void on_link_state(void *arg, bool is_up);
static void on_tick(uv_timer_t *ticker);
static void on_heartbeat_answered(void *arg, enum lease_answer answer, struct text last);

static void try_end(struct membership *member);
static void on_slot_left(void *arg);

static const struct redis_subscription SUBSCRIPTION = {.channels = name_channels, .message = on_message};
static const struct redis_subscription SHARDED_SUBSCRIPTION = {
    .channels = name_channels, .message = on_message, .is_sharded = true, .left = on_slot_left};

/* A node has a membership for each partition of its store, and answers every check from memory only if it holds all
 * leases. */
static void count_leases(int members, int held)
{
    static int members_now, held_now;

    members_now += members;
    held_now += held;
    metric_set(METRIC_LEASE_HELD, members_now > 0 && held_now == members_now);
}

/* Without leases, one does not count. */
static int weight_of(const struct membership *member)
{
    return member->lease_ms > 0;
}

static void on_missed(void *arg, const uint8_t digest[KEY_DIGEST_BYTES])
{
    const struct membership *member = arg;

    if (member->events.on_invalidated)
        member->events.on_invalidated(member->arg, digest);
}

struct membership *membership_create(const struct lease_settings *settings, const struct membership_parts *parts,
                                     const struct redis_target *target, uint32_t lease_ms, void (*on_left)(void *arg),
                                     void *arg)
{
    struct membership *member = mem_alloc(sizeof *member);
    const struct redis_link_settings link = {
        .name = "invalidations",
        .timeout_ms = settings->timeout_ms,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .subscription = prefix_has_tag(settings->prefix) ? &SHARDED_SUBSCRIPTION : &SUBSCRIPTION,
        .resolver = settings->resolver,
        .tls = settings->tls,
        .to_master = true,
        .about = log_partition(settings->prefix),
    };

    CHECK(lease_ms <= LEASE_MS_MAX);
    member->settings = settings;
    member->with = *parts;
    member->heard = heard_create(settings, parts->identity, on_missed, member);
    member->lease_ms = lease_ms;
    member->on_left = on_left;
    member->left_arg = arg;
    CHECK(uv_timer_init(settings->loop, &member->ticker) == 0);
    member->ticker.data = member;
    member->link = redis_link_create(settings->loop, target, &link, on_link_state, member);
    redis_group_add(settings->group, member->link);
    barriers_set_lease(parts->barriers, lease_ms);
    count_leases(weight_of(member), 0);
    return member;
}

void membership_listen(struct membership *member, const struct membership_events *events, void *arg)
{
    member->events = *events;
    member->arg = arg;
}

void membership_set_watch(struct membership *member, const struct membership_watch *watch, void *arg)
{
    member->watch = watch;
    member->watch_arg = arg;
}

uint32_t membership_lease_ms(const struct membership *member)
{
    return member->lease_ms;
}

const struct member_name *membership_name(const struct membership *member)
{
    return &member->id;
}

const char *membership_trouble(const struct membership *member)
{
    return member->has_too_few ? "Too few replicas acknowledge heartbeats: bring them back, or lower --min-replicas."
                               : "The node has no lease from the master yet.";
}

/* For checks */

bool membership_may_cache(const struct membership *member)
{
    return member->lease_ms > 0;
}

bool membership_has_lease(const struct membership *member, uint64_t *ret_now_ns)
{
    *ret_now_ns = clock_boot_ns();
    return *ret_now_ns < member->lease_until_ns || (!RULE(RULE_USE) && member->lease_ms > 0);
}

uint64_t membership_lease_left_ns(const struct membership *member)
{
    uint64_t now_ns = clock_boot_ns();

    return now_ns < member->lease_until_ns ? member->lease_until_ns - now_ns : 0;
}

bool membership_knows_suspended(const struct membership *member)
{
    return suspensions_are_known(member->with.suspensions);
}

bool membership_suspends(const struct membership *member, const struct id *account)
{
    return suspensions_include(member->with.suspensions, account);
}

bool membership_may_decide(const struct membership *member)
{
    return !member->settings->may_be_replaced || clock_boot_ns() < member->mastery_until_ns || !RULE(RULE_FENCE_READS);
}

uint64_t membership_epoch(const struct membership *member)
{
    return member->epoch;
}

bool membership_may_fill(const struct membership *member, uint64_t epoch)
{
    return member->state == MEMBERSHIP_BEGUN && member->epoch == epoch && member->lease_ms > 0 && !member->is_leaving;
}

/* Connection */

static void name_channel(char channel[CHANNEL_BYTES], const char *prefix, const char *kind, const char *name)
{
    int length = snprintf(channel, CHANNEL_BYTES, "%s%s%s", prefix, kind, name);

    CHECK(length > 0 && length < CHANNEL_BYTES);
}

/* Rule 1: each connection is a membership of its own. */
static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    struct membership *member = arg;
    uint8_t bytes[MEMBER_NAME_BYTES];
    struct buf out;

    if (member->number > 0)
        member->previous = member->id;
    member->number = 0;
    member->is_marked = false;
    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, member->id.text, MEMBER_NAME_CHARS);
    encode_hex(&out, bytes, sizeof bytes);
    CHECK(!out.failed);
    name_channel(member->own, member->settings->prefix, "node:", member->id.text);
    name_channel(member->invalidations, member->settings->prefix, "inv", "");
    ret_channels[0] = text_of(member->own);
    ret_channels[1] = text_of(member->invalidations);
    return 2;
}

static void tick_in(struct membership *member, uint64_t ms)
{
    if (member->lease_ms > 0 && !member->is_closing)
        CHECK(uv_timer_start(&member->ticker, on_tick, ms, 0) == 0);
}

static void give_up_lease(struct membership *member)
{
    member->lease_until_ns = 0;
    suspensions_forget(member->with.suspensions);
}

static void forget_everything(struct membership *member)
{
    give_up_lease(member);
    heard_forget(member->heard);
    if (member->events.on_ended)
        member->events.on_ended(member->arg);
}

static void tell_watch(const struct membership *member)
{
    if (member->watch)
        member->watch->heard(member->watch_arg);
}

void membership_forget(struct membership *member, const char *why)
{
    member->epoch++;
    suspensions_on_membership(member->with.suspensions);
    forget_everything(member);
    LOG(LOG_WARN, "cache emptied: each key is read from Redis again", log_str("why", why),
        log_partition(member->settings->prefix));
}

/* Acknowledgements arrive as soon as it has subscribed. */
static void set_state(struct membership *member, enum membership_state state)
{
    member->state = state;
    barriers_set_member(member->with.barriers, state != MEMBERSHIP_NONE ? &member->id : NULL);
}

/* The slot may come back with a registry that the server between has lost. A link that stayed all the while would be
 * old enough to believe it. */
static void on_slot_left(void *arg)
{
    const struct membership *member = arg;

    redis_group_renew_others(member->settings->group, "", "the slot of its names has left this server");
}

static void begin(struct membership *member)
{
    set_state(member, MEMBERSHIP_BEGUN);
    member->epoch += RULE(RULE_FILL_SESSION);
    metric_add(METRIC_SESSIONS, 1);
    tell_watch(member);
    tick_in(member, 0);
}

static void empty_cache(struct membership *member)
{
    LOG(LOG_INFO, "cache emptied: what was revoked while the connection was down cannot be read from Redis",
        log_str("membership", member->id.text), log_partition(member->settings->prefix));
    forget_everything(member);
}

/* The connection for which it was read may be gone. */
static void on_caught_up(void *arg, bool is_whole)
{
    struct membership *member = arg;

    if (member->state == MEMBERSHIP_BEHIND && member->asked_on == member->connections) {
        if (!is_whole)
            empty_cache(member);
        begin(member);
    }
    try_end(member);
}

/* Rule 1: only behind the confirmed subscription. What is revoked from now on is heard. */
static void catch_up(struct membership *member)
{
    if (heard_is_reading(member->heard))
        return;
    member->asked_on = member->connections;
    if (!heard_catch_up(member->heard, member->link, on_caught_up) && clock_boot_ns() >= member->behind_until_ns)
        on_caught_up(member, false);
}

/* False: the cache is empty. */
static bool has_to_catch_up(const struct membership *member)
{
    bool is_flushed = !heard_has_known(member->heard) || !RULE(RULE_FLUSH);

    return !is_flushed && RULE(RULE_CATCH_UP);
}

static void on_subscribed(struct membership *member)
{
    redis_group_on_ready(member->settings->group, member->link);
    set_state(member, MEMBERSHIP_BEHIND);
    member->behind_until_ns = clock_boot_ns() + CATCH_UP_MAX_MS * CLOCK_NS_PER_MS;
    if (has_to_catch_up(member))
        tick_in(member, 0);
    else
        begin(member);
}

/* What was said on a connection that broke can be read from the stream. If this side gave it up, it has reason not to
 * trust what it heard, or whom. */
static void on_lost(struct membership *member)
{
    bool can_catch_up = heard_has_known(member->heard) && (redis_link_has_broken(member->link) || member->is_silent);

    set_state(member, MEMBERSHIP_NONE);
    if (!RULE(RULE_FLUSH))
        return;
    member->mastery_until_ns = 0;
    if (can_catch_up)
        give_up_lease(member);
    else
        forget_everything(member);
}

static void on_link_state(void *arg, bool is_up)
{
    struct membership *member = arg;

    member->connections++;
    member->epoch += RULE(RULE_FILL_SESSION);
    suspensions_on_membership(member->with.suspensions);
    heard_on_heartbeat(member->heard);
    member->is_awaited = member->has_too_few = false;
    member->echoes_missed = 0;
    if (is_up)
        on_subscribed(member);
    else
        on_lost(member);
}

/* Leases */

static const char *lease_trouble(const struct membership *member)
{
    if (member->state == MEMBERSHIP_NONE)
        return redis_link_trouble(member->link);
    return member->has_too_few ? "too few replicas acknowledge heartbeats" : "heartbeats are not echoed in time";
}

static bool may_log(const struct membership *member, struct log_pause *pause)
{
    return log_pause_is_over(pause, uv_now(member->settings->loop), LEASE_LOG_PAUSE_MS);
}

/* A busy machine loses leases now and then, so the line says what that means. Without a lease, only a Redis that can
 * not be replaced may decide (membership_may_decide()). */
static void log_loss(const struct membership *member)
{
    const struct log_field id = log_str("membership", member->id.text), why = log_str("why", lease_trouble(member)),
                           suppressed = log_int("suppressed", member->loss_pause.suppressed),
                           partition = log_partition(member->settings->prefix);

    if (member->settings->may_be_replaced)
        LOG(LOG_WARN, "lease lost: checks are answered 503 until the next one", id, why, suppressed, partition);
    else
        LOG(LOG_WARN, "lease lost: checks read Redis until the next one (slower, still correct)", id, why, suppressed,
            partition);
}

static void lease_note(struct membership *member)
{
    bool has_lease = clock_boot_ns() < member->lease_until_ns;

    if (has_lease == member->has_lease)
        return;
    member->has_lease = has_lease;
    count_leases(0, has_lease ? 1 : -1);
    metric_add(METRIC_LEASES_LOST, !has_lease);
    member->settings->on_lease(member->settings->arg);
    if (member->is_leaving || !may_log(member, has_lease ? &member->gain_pause : &member->loss_pause))
        return;
    if (has_lease)
        LOG(LOG_INFO, "lease gained: checks are answered from memory", log_str("membership", member->id.text),
            log_int("lease_ms", member->lease_ms), log_partition(member->settings->prefix));
    else
        log_loss(member);
}

/* Rule 2: the lease runs from the clock read before the heartbeat was sent. Rule 10: where another Redis may take over,
 * replicas must acknowledge the heartbeat too. A replaced master, or one that froze and woke up, has lost its replicas
 * and cannot collect their acknowledgements, whatever it believes about itself. And if one of those replicas takes
 * over, it knows the length of this lease (lease_max). */
static void lease_try(struct membership *member)
{
    uint64_t from_ns = RULE(RULE_FROM_SEND) ? member->sent_ns : clock_boot_ns();

    if (!member->is_awaited || !member->is_echoed || !member->is_replicated)
        return;
    member->is_awaited = false;
    member->lease_until_ns = member->mastery_until_ns = from_ns + member->lease_ms * CLOCK_NS_PER_MS;
    lease_note(member);
}

/* Rule 9: a heartbeat changes the entry if that is how revokers know that it came. Rule 10: or if it must be a write,
 * to be acknowledged by replicas, or by a Redis that was not replaced. */
static bool must_write(const struct membership *member)
{
    const struct lease_settings *settings = member->settings;

    return !member->is_marked || settings->may_be_replaced || settings->min_replicas > 0;
}

static void heartbeat_send(struct membership *member)
{
    const struct lease_settings *settings = member->settings;
    char number[NUMBER_BYTES], lease[NUMBER_BYTES], nonce[NONCE_CHARS + 1];

    random_secret(&member->nonce, sizeof member->nonce);
    member->number += must_write(member);
    snprintf(number, sizeof number, "%" PRId64, member->number);
    snprintf(lease, sizeof lease, "%" PRIu32, member->lease_ms);
    snprintf(nonce, sizeof nonce, "%016" PRIx64, member->nonce);
    const struct text argv[] = {text_of(member->id.text), text_of(number), text_of(lease), text_of(nonce)};
    member->is_awaited = member->is_under_way = true;
    member->is_echoed = false;
    member->is_replicated = settings->min_replicas == 0;
    member->sent_ns = clock_boot_ns();
    member->sent_on = member->connections;
    heard_on_heartbeat(member->heard);
    settings->heartbeat(settings->arg, sizeof argv / sizeof *argv, argv, on_heartbeat_answered, member);
}

static void registry_leave(struct membership *member, const struct member_name *id, lease_answered *done)
{
    const struct text argv[] = {text_of(id->text), TEXT(""), TEXT("")};

    member->settings->leave(member->settings->arg, sizeof argv / sizeof *argv, argv, done, member);
}

/* If it stays in the registry, the next revoker sweeps it. */
static void on_previous_left(UNUSED void *arg, UNUSED enum lease_answer answer)
{
}

/* Nobody needs to wait for a membership that has ended once its successor has caught up or has an empty cache, and is
 * registered: so it leaves the registry (rule 9). */
static void previous_leave(struct membership *member)
{
    if (!member->previous.text[0])
        return;
    registry_leave(member, &member->previous, on_previous_left);
    member->previous.text[0] = '\0';
}

static void on_heartbeat_answered(void *arg, enum lease_answer answer, struct text last)
{
    struct membership *member = arg;

    member->is_under_way = false;
    if (answer == LEASE_DONE && member->sent_on == member->connections) {
        heard_on_reply(member->heard, last);
        member->is_marked = last.len > 0; /* with the schema from which on the stream is complete */
    }
    member->has_too_few = answer == LEASE_TOO_FEW;
    member->is_replicated |= answer == LEASE_DONE;
    member->is_awaited &= answer == LEASE_DONE;
    member->is_echoed |= !RULE(RULE_SAME_CONNECTION);
    lease_try(member);
    if (answer == LEASE_DONE)
        previous_leave(member);
    if (!RULE(RULE_REGISTER))
        registry_leave(member, &member->id, on_previous_left);
    try_end(member);
}

/* Gives up a heartbeat older than its lease would be: its echo can no longer grant anything. */
static void heartbeat_expire(struct membership *member)
{
    uint64_t age_ns = clock_boot_ns() - member->sent_ns;

    if (!member->is_awaited || age_ns < member->lease_ms * CLOCK_NS_PER_MS)
        return;
    member->is_awaited = false;
    if (!member->is_under_way && !member->is_echoed)
        member->echoes_missed++;
}

static void renew_silent(struct membership *member)
{
    member->is_silent = true;
    redis_link_renew(member->link, "heartbeats are answered but not echoed");
    member->is_silent = false;
}

static void on_tick(uv_timer_t *ticker)
{
    struct membership *member = ticker->data;
    uint32_t interval_ms = member->lease_ms / HEARTBEATS_PER_LEASE;

    heartbeat_expire(member);
    lease_note(member);
    tick_in(member, interval_ms > HEARTBEAT_MIN_MS ? interval_ms : HEARTBEAT_MIN_MS);
    if (member->is_leaving)
        return;
    if (member->state == MEMBERSHIP_BEHIND) {
        tick_in(member, CATCH_UP_MS);
        catch_up(member);
        return;
    }
    if (member->state == MEMBERSHIP_NONE)
        return;
    if (member->echoes_missed >= ECHOES_MISSED_MAX)
        renew_silent(member);
    else if (!member->is_awaited && !member->is_under_way)
        heartbeat_send(member);
}

/* Messages */

/* Rule 6: the entry is dropped first, then acknowledged. Not on the `changes` link, which may wait for replicas, nor on
 * the `reads` link, because Redis may delay PUBLISH (CLIENT PAUSE). Nobody needs the reply. */
static void on_acknowledged(UNUSED void *arg, UNUSED enum redis_outcome outcome, UNUSED const struct redis_reply *reply)
{
    /* a lost acknowledgement only costs time */
}

void membership_acknowledge(struct membership *member, const struct due_acknowledgement *due)
{
    const struct text publish = prefix_has_tag(member->settings->prefix) ? TEXT("SPUBLISH") : TEXT("PUBLISH");
    char channel[CHANNEL_BYTES], payload[PAYLOAD_BYTES];

    if (member->state == MEMBERSHIP_NONE || strcmp(due->member.text, member->id.text) != 0)
        return;
    name_channel(channel, member->settings->prefix, "node:", due->revoker.text);
    snprintf(payload, sizeof payload, "ack %s %s", due->member.text, due->barrier);
    redis_link_call(member->settings->scripts, 3, (struct text[]){publish, text_of(channel), text_of(payload)},
                    on_acknowledged, NULL);
}

/* At once, unless watchers have to acknowledge before. The next message is read in either case. */
static void acknowledge_or_defer(struct membership *member, struct text revoker, struct text barrier)
{
    struct due_acknowledgement due = {.member = member->id};

    snprintf(due.revoker.text, sizeof due.revoker.text, "%.*s", TEXT_ARG(revoker));
    snprintf(due.barrier, sizeof due.barrier, "%.*s", TEXT_ARG(barrier));
    if (!member->watch || !member->watch->defers(member->watch_arg, &due))
        membership_acknowledge(member, &due);
}

/* "<digest>[,<digest>]...", of the keys that were revoked. Their number is bounded by whoever publishes them
 * (REVOKED_TOGETHER_MAX); each takes less than a microsecond to drop. All are dropped before the acknowledgement. A
 * message that cannot be parsed ends the membership, which drops every key. */
static bool drop_keys(struct membership *member, struct text digests)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    struct text digest_hex;

    while (text_next(&digests, ',', &digest_hex)) {
        if (!decode_hex(digest_hex, digest, sizeof digest))
            return false;
        if (member->events.on_invalidated)
            member->events.on_invalidated(member->arg, digest);
        if (!RULE(RULE_DROP_ALL))
            break;
    }
    return true;
}

/* "@<account>", then "suspended" or "resumed", and the version. */
static bool note_account(struct membership *member, struct text name, struct text rest)
{
    struct text state, number;
    uint64_t version;
    struct id account;

    if (!id_parse(ID_ACCOUNT, text_skip(name, 1), &account) || !text_next(&rest, ' ', &state) ||
        !text_next(&rest, ' ', &number) || rest.ptr || !text_to_u64(number, INT64_MAX, &version))
        return false;
    bool is_suspended = text_equal(state, TEXT("suspended"));
    if (!is_suspended && !text_equal(state, TEXT("resumed")))
        return false;
    suspensions_hear(member->with.suspensions, &account, is_suspended, version);
    return true;
}

static bool on_invalidation(struct membership *member, struct text payload)
{
    struct text what, revoker, barrier;

    if (!text_next(&payload, ' ', &what) || !text_next(&payload, ' ', &revoker) || !text_next(&payload, ' ', &barrier))
        return false;
    member->epoch += RULE(RULE_FILL_INVALIDATION);
    bool is_understood = text_starts_with(what, TEXT("@")) ? note_account(member, what, payload)
                                                           : !payload.ptr && drop_keys(member, what);
    if (!is_understood)
        return false;
    tell_watch(member);
    if (text_equal(revoker, TEXT("-")))
        return true;
    if (revoker.len != MEMBER_NAME_CHARS || barrier.len != BARRIER_NAME_CHARS)
        return false;
    acknowledge_or_defer(member, revoker, barrier);
    return true;
}

/* Only the latest heartbeat counts. Its echo may arrive before or after the replies of its script and of WAIT. */
static bool on_echo(struct membership *member, struct text nonce_hex)
{
    char newest[NONCE_CHARS + 1];

    if (nonce_hex.len != NONCE_CHARS)
        return false;
    snprintf(newest, sizeof newest, "%016" PRIx64, member->nonce);
    if ((text_equal(nonce_hex, text_of(newest)) || !RULE(RULE_NONCE)) && RULE(RULE_SAME_CONNECTION)) {
        member->is_echoed = true;
        member->echoes_missed = 0;
        heard_on_echo(member->heard);
        lease_try(member);
    }
    return true;
}

static bool on_own_message(struct membership *member, struct text payload)
{
    struct text kind, name, barrier;

    if (!text_next(&payload, ' ', &kind) || !text_next(&payload, ' ', &name))
        return false;
    if (text_equal(kind, TEXT("lease")) && !payload.ptr)
        return on_echo(member, name);
    if (!text_equal(kind, TEXT("ack")) || !text_next(&payload, ' ', &barrier) || payload.ptr)
        return false;
    barriers_acknowledge(member->with.barriers, name, barrier);
    return true;
}

static bool on_message(void *arg, struct text channel, struct text payload)
{
    struct membership *member = arg;

    if (text_equal(channel, text_of(member->invalidations)))
        return on_invalidation(member, payload);
    return text_equal(channel, text_of(member->own)) && on_own_message(member, payload);
}

/* Leaving: the cache first (rule 9) */

/* If the node stays in the registry, the next revoker sweeps it. */
static void on_leave_answered(void *arg, UNUSED enum lease_answer answer)
{
    struct membership *member = arg;

    member->is_leave_under_way = false;
    try_end(member);
}

void membership_leave(struct membership *member)
{
    CHECK(!member->is_leaving);
    member->is_leaving = member->is_leave_under_way = true;
    member->is_awaited = false;
    forget_everything(member);
    lease_note(member);
    previous_leave(member);
    registry_leave(member, &member->id, on_leave_answered);
}

static void on_link_closed(void *arg)
{
    struct membership *member = arg;

    member->link = NULL;
    try_end(member);
}

static void on_ticker_closed(uv_handle_t *handle)
{
    struct membership *member = handle->data;

    member->is_ticker_closed = true;
    try_end(member);
}

static void try_end(struct membership *member)
{
    void (*closed)(void *arg) = member->closed;
    void *arg = member->closed_arg;

    if (!member->is_closing || member->link || !member->is_ticker_closed || member->is_under_way ||
        member->is_leave_under_way || heard_is_reading(member->heard))
        return;
    heard_destroy(member->heard);
    free(member);
    closed(arg);
}

void membership_close(struct membership *member, void (*closed)(void *arg), void *arg)
{
    CHECK(!member->is_closing);
    if (member->state != MEMBERSHIP_NONE || heard_has_known(member->heard))
        forget_everything(member);
    set_state(member, MEMBERSHIP_NONE);
    lease_note(member);
    count_leases(-weight_of(member), 0);
    member->is_leaving = member->is_closing = true;
    member->closed = closed;
    member->closed_arg = arg;
    barriers_set_lease(member->with.barriers, 0);
    member->on_left(member->left_arg);
    redis_group_remove(member->settings->group, member->link);
    redis_link_close(member->link, on_link_closed, member);
    uv_close((uv_handle_t *)&member->ticker, on_ticker_closed);
}
