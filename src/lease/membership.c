#include "membership_internal.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "lease/names.h"
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
    BACKOFF_MAX_MS = 1000,
    NUMBER_BYTES = 24,
};

static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
static size_t name_channels_again(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
static void on_link_state(void *arg, bool is_up);
static void on_tick(uv_timer_t *ticker);
static void on_heartbeat_answered(void *arg, enum lease_answer answer, struct text last);

static void try_end(struct membership *member);
static void on_slot_left(void *arg);

static const struct machine MACHINE = {
    .name = "membership",
    .count = MEMBERSHIP_CLOSED + 1,
    MACHINE_ROW(MEMBERSHIP_NONE, MACHINE_TO(MEMBERSHIP_BEHIND) | MACHINE_TO(MEMBERSHIP_CLOSED)),
    MACHINE_ROW(MEMBERSHIP_BEHIND,
                MACHINE_TO(MEMBERSHIP_BEGUN) | MACHINE_TO(MEMBERSHIP_NONE) | MACHINE_TO(MEMBERSHIP_CLOSED)),
    MACHINE_ROW(MEMBERSHIP_BEGUN, MACHINE_TO(MEMBERSHIP_NONE) | MACHINE_TO(MEMBERSHIP_CLOSED)),
    MACHINE_ROW(MEMBERSHIP_CLOSED, 0),
};

static const struct redis_subscription SUBSCRIPTION = {
    .channels = name_channels, .channels_again = name_channels_again, .message = membership_on_message};
static const struct redis_subscription SHARDED_SUBSCRIPTION = {.channels = name_channels,
                                                               .channels_again = name_channels_again,
                                                               .message = membership_on_message,
                                                               .is_sharded = true,
                                                               .left = on_slot_left};

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

static void on_endings_missed(void *arg, struct change_name change, const struct heard_ending *endings, size_t count)
{
    const struct membership *member = arg;

    if (RULE(RULE_KEEP))
        kept_add_missed(member->with.kept, change, endings, count, member->subscribed_ns);
}

static void on_learned(void *arg)
{
    try_end(arg);
}

void membership_keep(const struct membership *member, struct change_name change, const struct heard_ending *endings,
                     size_t count)
{
    if (RULE(RULE_KEEP))
        kept_add(member->with.kept, change, endings, count);
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

    REQUIRE(lease_ms <= LEASE_MS_MAX);
    member->settings = settings;
    member->with = *parts;
    member->heard = heard_create(settings, parts->identity,
                                 &(struct heard_events){on_missed, on_endings_missed, on_learned}, member);
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

void membership_names(const struct membership *member, struct text ret_names[2])
{
    ret_names[0] = text_of(member->id.text);
    ret_names[1] = text_of(member->previous.text);
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

uint64_t membership_lease_until_ns(const struct membership *member)
{
    return member->lease_until_ns;
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
    ALL_REQUIRE(epoch <= member->epoch);
    return member->state == MEMBERSHIP_BEGUN && member->epoch == epoch && member->lease_ms > 0 && !member->is_leaving;
}

/* Connection */

void membership_channel(char channel[CHANNEL_BYTES], const char *prefix, const char *kind, const char *name)
{
    int length = snprintf(channel, CHANNEL_BYTES, "%s%s%s", prefix, kind, name);

    CHECK(length > 0 && length < CHANNEL_BYTES);
}

/* Rule 1: each connection is a membership of its own. */
static size_t name_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    struct membership *member = arg;

    if (member->number > 0)
        member->previous = member->id;
    member->number = 0;
    member->is_marked = false;
    random_hex(member->id.text, sizeof member->id.text);
    membership_channel(member->own, member->settings->prefix, "node:", member->id.text);
    membership_channel(member->invalidations, member->settings->prefix, "inv", "");
    return name_channels_again(member, ret_channels);
}

/* Rule 1: a connection that hears everything from before the other one ends continues its membership. An echo that
 * comes a second time is that of the latest heartbeat, or is ignored; an older message drops keys once more. */
static size_t name_channels_again(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    struct membership *member = arg;

    ret_channels[0] = text_of(member->own);
    ret_channels[1] = text_of(member->invalidations);
    return 2;
}

static void tick_in(struct membership *member, uint64_t ms)
{
    if (member->lease_ms > 0 && member->state != MEMBERSHIP_CLOSED)
        CHECK(uv_timer_start(&member->ticker, on_tick, ms, 0) == 0);
}

static void tell_lease(const struct membership *member)
{
    if (member->events.on_lease)
        member->events.on_lease(member->arg);
}

static void give_up_lease(struct membership *member)
{
    member->lease_until_ns = 0;
    suspensions_forget(member->with.suspensions);
    tell_lease(member);
}

static void forget_everything(struct membership *member)
{
    give_up_lease(member);
    heard_forget(member->heard);
    if (member->events.on_ended)
        member->events.on_ended(member->arg);
}

void membership_tell_watch(const struct membership *member)
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

bool membership_is_subscribed(const struct membership *member)
{
    return member->state == MEMBERSHIP_BEHIND || member->state == MEMBERSHIP_BEGUN;
}

/* A member whose state has changed in a forbidden way trusts nothing that it has: it gives up the lease, empties the
 * cache, discards reads under way, and reconnects. */
static void distrust(struct membership *member)
{
    static const char WHY[] = "forbidden change of the membership's state";

    if (member->state == MEMBERSHIP_CLOSED)
        return;
    member->mastery_until_ns = 0;
    member->is_awaited = false;
    membership_forget(member, WHY);
    redis_link_renew(member->link, WHY);
}

/* Acknowledgements arrive as soon as it has subscribed. */
MUST_CHECK static bool membership_move(struct membership *member, enum membership_state state)
{
    if (!machine_allows(&MACHINE, member->state, state)) {
        distrust(member);
        return false;
    }
    member->state = state;
    barriers_set_member(member->with.barriers, membership_is_subscribed(member) ? &member->id : NULL);
    return true;
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
    if (!membership_move(member, MEMBERSHIP_BEGUN))
        return;
    member->epoch += RULE(RULE_FILL_SESSION);
    metric_add(METRIC_SESSIONS, 1);
    membership_tell_watch(member);
    tick_in(member, 0);
}

static void empty_cache(struct membership *member)
{
    LOG(LOG_INFO, "cache emptied: what was revoked while the connection was down cannot be read from Redis",
        log_str("membership", member->id.text), log_partition(member->settings->prefix));
    forget_everything(member);
}

/* The connection for which it was read may be gone. */
static void on_caught_up(void *arg, enum caught_up result)
{
    struct membership *member = arg;

    if (result != CATCH_UP_AGAIN && member->state == MEMBERSHIP_BEHIND && member->asked_on == member->connections) {
        if (result == CANNOT_CATCH_UP)
            empty_cache(member);
        member->has_to_learn |= result == CANNOT_CATCH_UP;
        begin(member);
    }
    try_end(member);
}

/* Rule 1: only behind the confirmed subscription. What is revoked from now on is heard. */
static void catch_up(struct membership *member)
{
    REQUIRE(member->state == MEMBERSHIP_BEHIND);
    if (heard_is_reading(member->heard))
        return;
    member->asked_on = member->connections;
    if (clock_boot_ns() >= member->behind_until_ns)
        on_caught_up(member, CANNOT_CATCH_UP);
    else
        heard_catch_up(member->heard, member->link, on_caught_up);
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
    if (!membership_move(member, MEMBERSHIP_BEHIND))
        return;
    member->subscribed_ns = clock_boot_ns();
    member->behind_until_ns = member->subscribed_ns + CATCH_UP_MAX_MS * CLOCK_NS_PER_MS;
    if (has_to_catch_up(member)) {
        tick_in(member, 0);
    } else {
        member->has_to_learn = true;
        begin(member);
    }
}

/* What was said on a connection that broke can be read from the stream. If this side gave it up, it has reason not to
 * trust what it heard, or whom. */
static void on_lost(struct membership *member)
{
    bool can_catch_up = heard_has_known(member->heard) && (redis_link_has_broken(member->link) || member->is_silent);

    if (!membership_move(member, MEMBERSHIP_NONE) || !RULE(RULE_FLUSH))
        return;
    member->mastery_until_ns = 0;
    if (can_catch_up)
        give_up_lease(member);
    else
        forget_everything(member);
    ENSURE(member->lease_until_ns == 0 && !member->is_awaited);
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
    if (!membership_is_subscribed(member))
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
        LOG(LOG_WARN, "lease lost: checks read Redis until the next one, or get 503 if it does not answer", id, why,
            suppressed, partition);
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
void membership_try_lease(struct membership *member)
{
    uint64_t from_ns = RULE(RULE_FROM_SEND) ? member->sent_ns : clock_boot_ns();

    if (!member->is_awaited || !member->is_echoed || !member->is_replicated)
        return;
    INVARIANT(member->state == MEMBERSHIP_BEGUN && !member->is_leaving);
    INVARIANT(member->sent_on == member->connections);
    INVARIANT(member->lease_until_ns <= from_ns + member->lease_ms * CLOCK_NS_PER_MS); /* the one before is older */
    member->is_awaited = false;
    member->lease_until_ns = member->mastery_until_ns = from_ns + member->lease_ms * CLOCK_NS_PER_MS;
    tell_lease(member);
    lease_note(member);
    if (member->has_to_learn)
        heard_learn(member->heard);
    member->has_to_learn = false;
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

    REQUIRE(member->state == MEMBERSHIP_BEGUN && !member->is_leaving);
    REQUIRE(!member->is_awaited && !member->is_under_way);
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
    INVARIANT(strcmp(member->previous.text, member->id.text) != 0);
    registry_leave(member, &member->previous, on_previous_left);
    member->previous.text[0] = '\0';
}

static void on_heartbeat_answered(void *arg, enum lease_answer answer, struct text last)
{
    struct membership *member = arg;

    REQUIRE(member->is_under_way);
    member->is_under_way = false;
    if (answer == LEASE_DONE && member->sent_on == member->connections) {
        heard_on_reply(member->heard, last);
        member->is_marked = last.len > 0; /* with the schema from which on the stream is complete */
    }
    member->has_too_few = answer == LEASE_TOO_FEW;
    member->is_replicated |= answer == LEASE_DONE;
    member->is_awaited &= answer == LEASE_DONE;
    member->is_echoed |= !RULE(RULE_SAME_CONNECTION);
    membership_try_lease(member);
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
    if (!membership_is_subscribed(member))
        return;
    if (member->echoes_missed >= ECHOES_MISSED_MAX)
        renew_silent(member);
    else if (!member->is_awaited && !member->is_under_way)
        heartbeat_send(member);
}

/* A heartbeat that Redis was not asked yet, because it was not examined, must not cost a quarter of the lease. */
void membership_hurry(struct membership *member)
{
    if (membership_is_subscribed(member) && clock_boot_ns() >= member->lease_until_ns)
        tick_in(member, 0);
}

/* Leaving: the cache first (rule 9) */

/* If the node stays in the registry, the next revoker sweeps it. */
static void on_leave_answered(void *arg, UNUSED enum lease_answer answer)
{
    struct membership *member = arg;

    REQUIRE(member->is_leave_under_way);
    member->is_leave_under_way = false;
    try_end(member);
}

void membership_leave(struct membership *member)
{
    REQUIRE(!member->is_leaving);
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
    const struct callback closed = member->closed;

    if (member->state != MEMBERSHIP_CLOSED || member->link || !member->is_ticker_closed || member->is_under_way ||
        member->is_leave_under_way || heard_is_reading(member->heard))
        return;
    heard_destroy(member->heard);
    free(member);
    callback_run(closed);
}

void membership_close(struct membership *member, void (*closed)(void *arg), void *arg)
{
    bool knows = membership_is_subscribed(member) || heard_has_known(member->heard);

    member->is_awaited = false;
    if (!membership_move(member, MEMBERSHIP_CLOSED))
        return;
    if (knows)
        forget_everything(member);
    ENSURE(member->lease_until_ns == 0 || !RULE(RULE_FLUSH));
    lease_note(member);
    count_leases(-weight_of(member), 0);
    member->is_leaving = true;
    member->closed = (struct callback){closed, arg};
    barriers_set_lease(member->with.barriers, 0);
    member->on_left(member->left_arg);
    redis_group_remove(member->settings->group, member->link);
    redis_link_close(member->link, on_link_closed, member);
    uv_close((uv_handle_t *)&member->ticker, on_ticker_closed);
}
