/* What a membership hears: invalidations, echoes of its heartbeats, acknowledgements. */
#include "membership_internal.h"

#include "base/check.h"
#include "base/encode.h"
#include "core/lease_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAYLOAD_BYTES = 128, ENDINGS_MAX = 1024 /* keys in a message; scripts revoke fewer together */ };

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

    if (!membership_is_subscribed(member) || strcmp(due->member.text, member->id.text) != 0)
        return;
    membership_channel(channel, member->settings->prefix, "node:", due->revoker.text);
    snprintf(payload, sizeof payload, "ack %s %s", due->member.text, due->barrier);
    redis_link_call(member->settings->scripts, 3, (struct text[]){publish, text_of(channel), text_of(payload)},
                    on_acknowledged, NULL);
}

/* At once, unless watchers have to acknowledge before. The next message is read in either case. */
static void acknowledge_or_defer(struct membership *member, struct text revoker, struct text barrier)
{
    struct due_acknowledgement due = {.member = member->id};

    REQUIRE(revoker.len == MEMBER_NAME_CHARS && barrier.len == BARRIER_NAME_CHARS);
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

/* " <maker> <number>", or " - 0" for a change without a place. */
static bool read_change(struct text *rest, struct change_name *ret_change)
{
    struct text maker, number;

    if (!text_next(rest, ' ', &maker) || !text_next(rest, ' ', &number) ||
        !text_to_u64(number, INT64_MAX, &ret_change->number))
        return false;
    if (text_equal(maker, TEXT("-")))
        maker.len = 0;
    ret_change->maker = maker;
    return maker.len == 0 || maker.len == MAKER_CHARS;
}

/* What becomes of the keys of a message. Rule 13: it is kept before the message is acknowledged. */
static bool keep_endings(const struct membership *member, struct text rest)
{
    struct heard_ending endings[ENDINGS_MAX];
    struct change_name change;
    struct text list, item;
    size_t count = 0;

    if (!read_change(&rest, &change) || !text_next(&rest, ' ', &list) || rest.ptr)
        return false;
    for (; text_next(&list, ',', &item); count++)
        if (count == ENDINGS_MAX || !ending_read(item, &endings[count]))
            return false;
    membership_keep(member, change, endings, count);
    return true;
}

static bool keep_account(const struct membership *member, struct text rest, const struct id *account, bool is_suspended)
{
    const struct heard_ending ending = {
        .subject = *account, .account = *account, .what = is_suspended ? ENDING_SUSPENDED : ENDING_RESUMED};
    struct change_name change;

    if (!read_change(&rest, &change) || rest.ptr)
        return false;
    membership_keep(member, change, &ending, 1);
    return true;
}

/* "@<account>", then "suspended" or "resumed", and the version. Nodes of earlier versions publish no more than that. */
static bool note_account(struct membership *member, struct text name, struct text rest)
{
    struct text state, number;
    uint64_t version;
    struct id account;

    if (!id_parse(ID_ACCOUNT, text_skip(name, 1), &account) || !text_next(&rest, ' ', &state) ||
        !text_next(&rest, ' ', &number) || !text_to_u64(number, INT64_MAX, &version))
        return false;
    bool is_suspended = text_equal(state, TEXT("suspended"));
    if ((!is_suspended && !text_equal(state, TEXT("resumed"))) ||
        (rest.ptr && !keep_account(member, rest, &account, is_suspended)))
        return false;
    suspensions_hear(member->with.suspensions, &account, is_suspended, version);
    if (member->events.on_account)
        member->events.on_account(member->arg, &account);
    return true;
}

static bool on_invalidation(struct membership *member, struct text payload)
{
    struct text what, revoker, barrier;

    if (!text_next(&payload, ' ', &what) || !text_next(&payload, ' ', &revoker) || !text_next(&payload, ' ', &barrier))
        return false;
    member->epoch += RULE(RULE_FILL_INVALIDATION);
    bool is_understood =
        text_starts_with(what, TEXT("@")) ? note_account(member, what, payload) : drop_keys(member, what);
    if (is_understood && payload.ptr && !text_starts_with(what, TEXT("@")))
        is_understood = keep_endings(member, payload);
    if (!is_understood)
        return false;
    membership_tell_watch(member);
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
        membership_try_lease(member);
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

bool membership_on_message(void *arg, struct text channel, struct text payload)
{
    struct membership *member = arg;

    if (text_equal(channel, text_of(member->invalidations)))
        return on_invalidation(member, payload);
    return text_equal(channel, text_of(member->own)) && on_own_message(member, payload);
}
