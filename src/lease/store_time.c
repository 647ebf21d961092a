#include "lease/store_time.h"
#include "base/check.h"
#include "base/clock.h"
#include <inttypes.h>
#include <string.h>

/* Elapsed time by a clock that runs 10 % fast, and by one that runs 10 % slow. */
enum { FAST_OVER = 11, FAST_UNDER = 10, SLOW_OVER = 9, SLOW_UNDER = 10 };
enum {
    /* The time may be this much later than it can be before a node's cache is in doubt. KEY_ENDS_SOON_MS has room for
     * it. */
    JUMP_MS = 1000,
    /* A node whose last answer is older keeps the time only if no other node does. */
    FRESH_MS = 60000,
    /* Those who know better send a heartbeat within that: every 2.5 s with the longest lease. */
    WAIT_MS = 3000,
    /* An answer that took longer says too little. */
    ROUND_TRIP_MAX_MS = 1000,
};
/* Far beyond any time, and sums of some do not overflow. In Redis, somebody may have edited it. */
static const int64_t TIME_MAX_MS = INT64_C(1) << 53;

static int64_t later_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t sooner_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool was_told(const struct store_time_told *told)
{
    return told->said.clock_ms > 0;
}

/* The answer was right at some moment between question and answer. */
static int64_t least_since(int64_t ms, const struct store_time_told *told, uint64_t now_ns)
{
    ALL_REQUIRE(now_ns >= told->read_ns);
    return ms + (int64_t)((now_ns - told->read_ns) / CLOCK_NS_PER_MS * FAST_UNDER / FAST_OVER);
}

static int64_t most_after(int64_t ms, uint64_t since_ns, uint64_t now_ns)
{
    ALL_REQUIRE(now_ns >= since_ns);
    return ms + (int64_t)((now_ns - since_ns) / CLOCK_NS_PER_MS * SLOW_UNDER / SLOW_OVER) + 1;
}

static int64_t most_since(int64_t ms, const struct store_time_told *told, uint64_t now_ns)
{
    return most_after(ms, told->sent_ns, now_ns);
}

static int64_t latest_of(const struct store_time_said *said)
{
    return later_of(later_of(said->last_ms, said->clock_ms), said->kept_ms);
}

int64_t store_time_least(const struct store_time *time, uint64_t now_ns)
{
    return was_told(&time->known) ? least_since(time->known.said.first_ms, &time->known, now_ns) : 0;
}

int64_t store_time_most(const struct store_time *time, uint64_t now_ns)
{
    return was_told(&time->known) ? most_since(time->known.said.last_ms, &time->known, now_ns) : 0;
}

static bool read_ms(const struct redis_reply *reply, int64_t *ret_ms)
{
    return reply_integer(reply, ret_ms) && *ret_ms <= TIME_MAX_MS && *ret_ms >= -TIME_MAX_MS;
}

bool store_time_read(const struct redis_reply *reply, struct store_time_said *ret_said)
{
    return read_ms(reply_at(reply, 0), &ret_said->first_ms) && read_ms(reply_at(reply, 1), &ret_said->last_ms) &&
           read_ms(reply_at(reply, 2), &ret_said->clock_ms) && read_ms(reply_at(reply, 3), &ret_said->kept_ms) &&
           reply_chars(reply_at(reply, 4), ret_said->settlement, sizeof ret_said->settlement) &&
           ret_said->clock_ms > 0 && ret_said->first_ms <= ret_said->last_ms && ret_said->settlement[0];
}

bool store_time_read_how(const struct redis_reply *reply, enum store_time_how *ret_how)
{
    int64_t how;

    if (!reply_integer(reply_at(reply, 5), &how) || how < STORE_TIME_HEARD || how > STORE_TIME_FREE)
        return false;
    *ret_how = (enum store_time_how)how;
    return true;
}

static bool is_of_one_settlement(const struct store_time_told *a, const struct store_time_told *b)
{
    return strcmp(a->said.settlement, b->said.settlement) == 0;
}

/* Whether Redis' clock went on as clocks do since it was known. If it was set by less than this node can tell, it may
 * be right. */
static bool went_on(const struct store_time_told *known, const struct store_time_told *told)
{
    return told->said.clock_ms >= least_since(known->said.clock_ms, known, told->sent_ns) &&
           told->said.clock_ms <= most_since(known->said.clock_ms, known, told->read_ns);
}

/* Leaves what lies between least and most as well. False, and nothing is changed: none does. */
static bool narrow(struct store_time_said *said, int64_t least_ms, int64_t most_ms)
{
    REQUIRE(said->first_ms <= said->last_ms && least_ms <= most_ms);
    if (said->first_ms > most_ms || said->last_ms < least_ms)
        return false;
    said->first_ms = later_of(said->first_ms, least_ms);
    said->last_ms = sooner_of(said->last_ms, most_ms);
    ENSURE(said->first_ms <= said->last_ms);
    return true;
}

/* The time as this node knows it when Redis says so, from what it knew before: the time was least to most then. If the
 * clock went on, the time is as far ahead of it as it was; what others have found out narrows that. If not, it was set,
 * or another Redis has taken over. Then what Redis says counts, or its clock, which may have been put right, or else
 * what this node knows. In both cases the clock may be right if this node cannot prove it wrong. */
static struct store_time_said find_time(const struct store_time_told *known, const struct store_time_told *told,
                                        int64_t least_ms, int64_t most_ms)
{
    const struct store_time_said *said = &told->said, *before = &known->said;
    struct store_time_said found = *said;

    found.first_ms = said->clock_ms + before->first_ms - before->clock_ms;
    found.last_ms = said->clock_ms + before->last_ms - before->clock_ms;
    if (went_on(known, told) && narrow(&found, least_ms, most_ms)) {
        (void)narrow(&found, said->first_ms, said->last_ms); /* if not, that is of before somebody found out more */
    } else {
        found.first_ms = said->first_ms;
        found.last_ms = said->last_ms;
        if (!narrow(&found, least_ms, most_ms)) {
            bool may_be_clock = said->clock_ms >= least_ms && said->clock_ms <= most_ms;

            found.first_ms = may_be_clock ? said->clock_ms : least_ms;
            found.last_ms = may_be_clock ? said->clock_ms : most_ms;
        }
    }
    if (said->clock_ms >= least_ms && said->clock_ms <= most_ms) {
        found.first_ms = sooner_of(found.first_ms, said->clock_ms);
        found.last_ms = later_of(found.last_ms, said->clock_ms);
    }
    ENSURE(found.first_ms <= found.last_ms && found.first_ms <= most_ms && found.last_ms >= least_ms);
    return found;
}

/* What this node has heard counts if nobody who knows better has come meanwhile. The time was not before what was kept.
 * Redis' clock may have been proved wrong before by others, and put right since. */
static struct store_time_told unopposed(const struct store_time_told *heard)
{
    struct store_time_told told = *heard;
    struct store_time_said *said = &told.said;

    if (said->clock_ms >= said->kept_ms) {
        said->first_ms = sooner_of(said->first_ms, said->clock_ms);
        said->last_ms = later_of(said->last_ms, said->clock_ms);
    }
    said->first_ms = later_of(said->first_ms, said->kept_ms);
    said->last_ms = later_of(said->last_ms, said->kept_ms);
    return told;
}

/* Only now it is certain how long the heartbeat took. What is kept is right: if this node's knowledge excludes it, its
 * machine was frozen together with its clock. */
static void measure(struct store_time *time, const struct store_time_told *told)
{
    const struct store_time known = {.known = was_told(&time->known) ? time->known : unopposed(&time->heard)};
    int64_t least_ms = later_of(store_time_least(&known, told->sent_ns), told->said.kept_ms);
    int64_t most_ms = store_time_most(&known, told->read_ns);

    *time = (struct store_time){0};
    if (least_ms > most_ms)
        time->heard = *told;
    else
        time->known =
            (struct store_time_told){find_time(&known.known, told, least_ms, most_ms), told->sent_ns, told->read_ns};
}

/* Since then somebody who knew the time has kept one as late as what was heard, and that was right then. So what is
 * said now is right, too, if no clock was set in between. */
static bool is_confirmed(const struct store_time_told *heard, const struct store_time_told *told)
{
    return told->said.kept_ms > heard->said.kept_ms && told->said.kept_ms >= heard->said.first_ms &&
           told->said.kept_ms <= told->said.last_ms &&
           told->said.first_ms <= most_since(heard->said.last_ms, heard, told->read_ns) &&
           told->said.last_ms >= least_since(heard->said.first_ms, heard, told->sent_ns);
}

static void hear(struct store_time *time, const struct store_time_told *told)
{
    struct store_time_told *heard = &time->heard;

    if (was_told(&time->known) &&
        (!is_of_one_settlement(&time->known, told) || told->said.kept_ms > store_time_most(time, told->read_ns)))
        time->known = (struct store_time_told){0};
    if (!was_told(heard) || !is_of_one_settlement(heard, told)) {
        *heard = *told;
    } else if (is_confirmed(heard, told)) {
        time->known = *told;
        *heard = (struct store_time_told){0};
    } else if (told->said.kept_ms != heard->said.kept_ms) {
        *heard = *told;
    }
}

static void note(struct store_time *time, const struct store_time_told *told, enum store_time_how how)
{
    if (how == STORE_TIME_HEARD) {
        hear(time, told);
        return;
    }
    if (how == STORE_TIME_FREE)
        *time = (struct store_time){.known = *told};
    else
        measure(time, told);
}

bool store_time_told(struct store_time *time, const struct store_time_told *told, enum store_time_how how)
{
    REQUIRE(told->read_ns >= told->sent_ns && told->said.first_ms <= told->said.last_ms);
    const struct store_time_told *before = was_told(&time->heard) ? &time->heard : &time->known;
    bool knew = was_told(before), was_slow = told->read_ns - told->sent_ns > ROUND_TRIP_MAX_MS * CLOCK_NS_PER_MS;
    int64_t latest_ms = knew ? most_since(latest_of(&before->said), before, told->read_ns) : 0;

    if (!was_slow)
        note(time, told, how);
    /* What Redis says may be of before its clock was set, if this node knows better. */
    const struct store_time_said *found =
        how != STORE_TIME_HEARD && !was_slow && was_told(&time->known) ? &time->known.said : &told->said;
    return knew && latest_of(found) > latest_ms + JUMP_MS;
}

void store_time_reconnected(struct store_time *time)
{
    time->heard = (struct store_time_told){0};
}

static bool is_over(const struct store_time_told *told, uint64_t now_ns, uint64_t ms)
{
    return was_told(told) && now_ns - told->read_ns > ms * CLOCK_NS_PER_MS;
}

void store_time_print(const struct store_time *time, uint64_t now_ns, struct buf *ret_measured, struct buf *ret_basis)
{
    bool is_known = was_told(&time->known), has_waited = is_over(&time->heard, now_ns, WAIT_MS);
    const struct store_time_told told = is_known ? time->known : unopposed(&time->heard);

    if (is_known || has_waited)
        buf_printf(ret_measured, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
                   least_since(told.said.clock_ms, &told, now_ns), most_since(told.said.clock_ms, &told, now_ns),
                   told.said.first_ms - told.said.clock_ms, told.said.last_ms - told.said.clock_ms);
    else
        buf_append_text(ret_measured, TEXT("0"));
    buf_printf(ret_basis, "%s ", was_told(&told) ? told.said.settlement : "-");
    if (is_known && !is_over(&told, now_ns, FRESH_MS))
        buf_append_text(ret_basis, TEXT("fresh"));
    else if (has_waited)
        buf_printf(ret_basis, "%" PRId64, time->heard.said.kept_ms);
    else
        buf_append_text(ret_basis, TEXT("-"));
}

void store_time_print_known(const struct store_time *time, uint64_t now_ns, struct buf *out)
{
    if (was_told(&time->known))
        buf_printf(out, "%" PRId64 " %" PRId64 " %s", store_time_least(time, now_ns), store_time_most(time, now_ns),
                   time->known.said.settlement);
    else
        buf_append_text(out, TEXT("0"));
}

int64_t store_time_ahead(const struct store_time_said *said)
{
    int64_t first_ms = later_of(said->first_ms, said->kept_ms);

    if (first_ms > said->clock_ms)
        return first_ms - said->clock_ms;
    return said->last_ms < said->clock_ms ? said->last_ms - said->clock_ms : 0;
}

struct store_time_bounds store_time_bounds(const struct store_time *time, uint64_t now_ns)
{
    bool is_known = was_told(&time->known);
    const struct store_time_told *told = is_known ? &time->known : &time->heard;
    struct store_time_bounds bounds = {.is_known = is_known, .asked_ns = now_ns};

    if (!was_told(told))
        return bounds;
    bounds.least_ms = store_time_least(time, now_ns);
    bounds.most_ms = store_time_most(time, now_ns);
    bounds.latest_ms = most_since(latest_of(&told->said), told, now_ns);
    memcpy(bounds.settlement, told->said.settlement, sizeof bounds.settlement);
    return bounds;
}

/* Redis' clock may have been set since the last heartbeat: if the answer is later than the time can have been, it is
 * not believed, and if it is below the least, time has gone by all the same. */
struct store_time_span store_time_span(const struct store_time_bounds *asked, const struct store_time_said *said,
                                       bool waits, uint64_t now_ns)
{
    bool was_told = strcmp(asked->settlement, said->settlement) == 0;
    struct store_time_span span = {.first_ms = later_of(said->first_ms, said->kept_ms), .latest_ms = latest_of(said)};

    if (was_told)
        span.latest_ms = later_of(span.latest_ms, asked->latest_ms);
    if (was_told && asked->is_known) {
        if (span.first_ms > asked->most_ms || span.first_ms < asked->least_ms)
            span.first_ms = asked->least_ms;
    } else if (waits) {
        span.first_ms = said->kept_ms;
    }
    span.latest_now_ms = most_after(span.latest_ms, asked->asked_ns, now_ns);
    return span;
}
