#include "lease/barrier.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/histogram.h"
#include "base/list.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HELD_BYTES = 40,     /* "<number> <lease ms> …", or marked: "?<barrier> <lease ms> …" */
    HOLDERS_MAX = 16384, /* nodes; a larger registry cannot be right */
    PLACES_FIRST = 32,
    SWEPT_AT_ONCE = 16, /* per call of node_leave.lua */
    NAMED_MAX = 4,      /* in a log line */
    /* W (rule 7): a node's clock may run 10 % slow and the revoker's 10 % fast; plus some slack. */
    WAIT_PERCENT = 125,
    WAIT_SPARE_MS = 50,
};

/* A member that may still cache the key. */
struct holder {
    char member[MEMBER_NAME_CHARS + 1];
    char held[HELD_BYTES];
    bool is_registered, has_acknowledged;
};

enum barrier_state { BARRIER_ASKED, BARRIER_WAITING, BARRIER_OVER, BARRIER_FAILED, BARRIER_DROPPED };

static const struct machine MACHINE = {
    .name = "barrier",
    .count = BARRIER_DROPPED + 1,
    MACHINE_ROW(BARRIER_ASKED, MACHINE_TO(BARRIER_WAITING) | MACHINE_TO(BARRIER_DROPPED)),
    MACHINE_ROW(BARRIER_WAITING, MACHINE_TO(BARRIER_OVER) | MACHINE_TO(BARRIER_FAILED)),
    MACHINE_ROW(BARRIER_OVER, 0),
    MACHINE_ROW(BARRIER_FAILED, 0),
    MACHINE_ROW(BARRIER_DROPPED, 0),
};

struct barrier {
    struct list node;
    struct barriers *kept_by;
    char name[BARRIER_NAME_CHARS + 1];
    struct member_name member; /* others acknowledge to it */
    struct holder *holders;
    size_t count, count_max, missing;
    /* A hash table from member to index in holders, + 1. Open addressing, a power of two, at most half full. With
     * thousands of nodes, a linear search per acknowledgement would stall the loop. */
    uint16_t *places;
    size_t place_count;
    enum barrier_state state;
    bool is_of_change;           /* one that revokes nothing, after a takeover */
    uint64_t made_ns;            /* before the script was sent */
    uint64_t began_ns;           /* when the script's reply was read */
    uint64_t wait_ns;            /* W */
    struct barrier_tally *tally; /* the caller's; NULL: it does not ask */
    void (*done)(void *arg, bool is_over);
    void *arg;
};

struct barriers {
    const struct lease_settings *settings;
    const struct fence *fence;
    struct member_name member; /* this node's; "-": none at present */
    uint32_t lease_ms;         /* of this node, held or not */
    struct list under_way;     /* struct barrier */
    uint64_t next_name;
    uv_timer_t timer; /* for the next barrier that ends by time */
    struct log_pause forced_pause;
    struct callback closed;
};

static void on_timer(uv_timer_t *timer);
static bool is_over(const struct barrier *barrier);

struct barriers *barriers_create(const struct lease_settings *settings, const struct fence *fence)
{
    struct barriers *barriers = mem_alloc(sizeof *barriers);

    barriers->settings = settings;
    barriers->fence = fence;
    barriers_set_member(barriers, NULL);
    list_init(&barriers->under_way);
    /* Starts at random: a late acknowledgement for another membership must not match a barrier here. */
    random_public(&barriers->next_name, sizeof barriers->next_name);
    CHECK(uv_timer_init(settings->loop, &barriers->timer) == 0);
    barriers->timer.data = barriers;
    return barriers;
}

void barriers_set_member(struct barriers *barriers, const struct member_name *name)
{
    barriers->member = name ? *name : (struct member_name){"-"};
}

void barriers_set_lease(struct barriers *barriers, uint32_t lease_ms)
{
    barriers->lease_ms = lease_ms;
}

struct barrier *barrier_begin(struct barriers *barriers)
{
    struct barrier *barrier = mem_alloc(sizeof *barrier);

    barrier->kept_by = barriers;
    snprintf(barrier->name, sizeof barrier->name, "%016" PRIx64, barriers->next_name++);
    barrier->member = barriers->member;
    barrier->made_ns = clock_boot_ns();
    list_append(&barriers->under_way, &barrier->node);
    return barrier;
}

struct text barrier_member(const struct barrier *barrier)
{
    return text_of(barrier->member.text);
}

struct text barrier_name(const struct barrier *barrier)
{
    return text_of(barrier->name);
}

MUST_CHECK static bool barrier_move(struct barrier *barrier, enum barrier_state state)
{
    if (!machine_allows(&MACHINE, barrier->state, state))
        return false;
    barrier->state = state;
    INVARIANT(barrier->missing <= barrier->count && barrier->count <= HOLDERS_MAX);
    INVARIANT(state != BARRIER_OVER || is_over(barrier));
    return true;
}

static void barrier_free(struct barrier *barrier)
{
    list_remove(&barrier->node);
    free(barrier->holders);
    free(barrier->places);
    free(barrier);
}

/* It is freed even if somebody waits, who is not told then: certainly not that it is over. */
void barrier_drop(struct barrier *barrier)
{
    (void)!barrier_move(barrier, BARRIER_DROPPED);
    barrier_free(barrier);
}

static void finish(struct barrier *barrier, enum barrier_state end)
{
    bool is_over = barrier_move(barrier, end) && end == BARRIER_OVER;
    void (*done)(void *arg, bool is_over) = barrier->done;
    void *arg = barrier->arg;

    barrier_free(barrier);
    done(arg, is_over);
}

/* Holders */

/* The member's place, or the empty place for it. Names are random, so any part of one is a hash. */
static uint16_t *find_place(const struct barrier *barrier, struct text member)
{
    uint64_t hash;

    memcpy(&hash, member.ptr, sizeof hash);
    hash = (hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
    for (size_t at = hash & (barrier->place_count - 1);; at = (at + 1) & (barrier->place_count - 1)) {
        uint16_t *place = &barrier->places[at];

        if (*place == 0 || text_equal(member, (struct text){barrier->holders[*place - 1].member, MEMBER_NAME_CHARS}))
            return place;
    }
}

static void places_make(struct barrier *barrier, size_t count)
{
    free(barrier->places);
    barrier->places = mem_alloc(count * sizeof *barrier->places);
    barrier->place_count = count;
    for (size_t i = 0; i < barrier->count; i++)
        *find_place(barrier, (struct text){barrier->holders[i].member, MEMBER_NAME_CHARS}) = (uint16_t)(i + 1);
}

static struct holder *find_holder(struct barrier *barrier, struct text member)
{
    uint16_t place = 0;

    if (barrier->place_count > 0 && member.len == MEMBER_NAME_CHARS)
        place = *find_place(barrier, member);
    return place ? &barrier->holders[place - 1] : NULL;
}

static struct holder *add_holder(struct barrier *barrier, struct text member)
{
    struct holder *holder;

    if (barrier->count == HOLDERS_MAX || member.len != MEMBER_NAME_CHARS)
        return NULL;
    if (barrier->count == barrier->count_max) {
        barrier->count_max = barrier->count_max ? 2 * barrier->count_max : 16;
        barrier->holders = mem_resize(barrier->holders, barrier->count_max * sizeof *barrier->holders);
    }
    if (2 * barrier->count >= barrier->place_count)
        places_make(barrier, barrier->place_count ? 2 * barrier->place_count : PLACES_FIRST);
    holder = &barrier->holders[barrier->count++];
    *holder = (struct holder){0};
    memcpy(holder->member, member.ptr, MEMBER_NAME_CHARS);
    *find_place(barrier, member) = (uint16_t)barrier->count;
    return holder;
}

static bool read_registry(struct barrier *barrier, const struct redis_reply *registry)
{
    if (!registry || registry->type != REPLY_ARRAY || registry->count % 2 != 0)
        return false;
    for (size_t i = 0; i < registry->count; i += 2) {
        struct holder *holder;
        struct text member;

        if (!reply_text(reply_at(registry, i), &member))
            return false;
        holder = find_holder(barrier, member); /* its acknowledgement overtook the script's reply */
        if (!holder)
            holder = add_holder(barrier, member);
        if (!holder || !reply_chars(reply_at(registry, i + 1), holder->held, sizeof holder->held))
            return false;
        barrier->missing += !holder->has_acknowledged && !holder->is_registered;
        holder->is_registered = true;
    }
    return true;
}

/* Deciding */

/* When the barrier ends by time. If every holder has acknowledged, that is W after the moment from which no other Redis
 * grants leases; usually it has passed. Before then a restarted Redis may have forgotten members with valid leases
 * (rule 7), or a replaced master may have granted leases that this one does not know of (rule 10). */
static uint64_t over_at_ns(const struct barrier *barrier)
{
    uint64_t sole_ns = fence_sole_since_ns(barrier->kept_by->fence);
    bool is_told_by_all = barrier->missing == 0 && sole_ns > 0;

    return (is_told_by_all || sole_ns > barrier->began_ns ? sole_ns : barrier->began_ns) + barrier->wait_ns;
}

/* The loop's cached time may lag, so the timer can fire early. It is then set again. */
static void arm_at(struct barriers *barriers, uint64_t at_ns)
{
    uint64_t now_ns = clock_boot_ns();
    uint64_t in_ms = (at_ns > now_ns ? at_ns - now_ns : 0) / CLOCK_NS_PER_MS + 1;

    if (!uv_is_active((uv_handle_t *)&barriers->timer) || uv_timer_get_due_in(&barriers->timer) > in_ms)
        CHECK(uv_timer_start(&barriers->timer, on_timer, in_ms, 0) == 0);
}

static void arm_for_first(struct barriers *barriers)
{
    uint64_t first_ns = UINT64_MAX;

    for (struct list *node = barriers->under_way.next; node != &barriers->under_way; node = node->next) {
        const struct barrier *barrier = LIST_ENTRY(node, struct barrier, node);
        uint64_t at_ns = barrier->state == BARRIER_WAITING ? over_at_ns(barrier) : UINT64_MAX;

        first_ns = at_ns < first_ns ? at_ns : first_ns;
    }
    if (first_ns < UINT64_MAX)
        arm_at(barriers, first_ns);
}

uint64_t barriers_left_ns(const struct barriers *barriers)
{
    uint64_t now_ns = clock_boot_ns(), last_ns = now_ns;

    for (const struct list *node = barriers->under_way.next; node != &barriers->under_way; node = node->next) {
        const struct barrier *barrier = LIST_ENTRY(node, struct barrier, node);
        uint64_t at_ns = barrier->state == BARRIER_WAITING ? over_at_ns(barrier) : 0;

        last_ns = at_ns > last_ns ? at_ns : last_ns;
    }
    return last_ns - now_ns;
}

/* Members that stay are swept by the next revoker. */
static void on_swept(UNUSED void *arg, UNUSED enum lease_answer answer)
{
}

static bool is_marked(const struct holder *holder)
{
    return holder->held[0] == '?';
}

/* The mark is in place of the number. No other barrier has this name, so no other mark is the same. */
static struct text mark_of(const struct barrier *barrier, const struct holder *holder, char ret_held[HELD_BYTES])
{
    const char *rest = strchr(holder->held, ' ');
    int room = HELD_BYTES - 1 - (int)sizeof "?" - BARRIER_NAME_CHARS;

    snprintf(ret_held, HELD_BYTES, "?%s%.*s", barrier->name, room, rest ? rest : "");
    return text_of(ret_held);
}

/* Rule 9: W has passed, and these members have not acknowledged. Those that were marked before the script ran have had
 * no lease since, and leave the registry, unless they have written their entry. The others are marked. */
static void sweep(struct barrier *barrier)
{
    const struct lease_settings *settings = barrier->kept_by->settings;
    char marked[SWEPT_AT_ONCE][HELD_BYTES];
    struct text argv[3 * SWEPT_AT_ONCE];
    size_t at = 0;

    REQUIRE(is_over(barrier)); /* otherwise a member could still have a lease that nobody waits for */
    while (at < barrier->count) {
        size_t argc = 0;

        for (; at < barrier->count && argc < sizeof argv / sizeof *argv; at++) {
            const struct holder *holder = &barrier->holders[at];

            if (!holder->is_registered || holder->has_acknowledged)
                continue;
            char *instead = marked[argc / 3];
            argv[argc++] = text_of(holder->member);
            argv[argc++] = text_of(holder->held);
            argv[argc++] = is_marked(holder) ? TEXT("") : mark_of(barrier, holder, instead);
        }
        if (argc > 0)
            settings->leave(settings->arg, argc, argv, on_swept, NULL);
    }
}

/* The first members that did not acknowledge. 'chatelaine status' tells which nodes they are. */
static struct text name_missing(const struct barrier *barrier, struct buf *out)
{
    size_t named = 0;

    for (size_t i = 0; i < barrier->count && named < NAMED_MAX; i++) {
        const struct holder *holder = &barrier->holders[i];

        if (!holder->is_registered || holder->has_acknowledged)
            continue;
        buf_printf(out, named++ > 0 ? ",%s" : "%s", holder->member);
    }
    return buf_text(out);
}

void barrier_tell(struct barrier *barrier, struct barrier_tally *ret_tally)
{
    barrier->tally = ret_tally;
}

static void fill_tally(struct barrier *barrier)
{
    *barrier->tally = (struct barrier_tally){.waited_for = (unsigned)barrier->missing,
                                             .took_ns = clock_boot_ns() - barrier->made_ns,
                                             .wait_ns = barrier->wait_ns};
    for (size_t i = 0; i < barrier->count; i++)
        barrier->tally->registered += barrier->holders[i].is_registered;
}

static void finish_over(struct barrier *barrier)
{
    struct barriers *barriers = barrier->kept_by;
    uint64_t took_ns = clock_boot_ns() - barrier->began_ns;
    struct buf names = BUF_FIXED(NAMED_MAX * (MEMBER_NAME_CHARS + 1) + 1);

    if (barrier->tally)
        fill_tally(barrier);
    if (!barrier->is_of_change)
        histogram_observe(HISTOGRAM_BARRIER, took_ns);
    if (barrier->missing > 0) {
        metric_add(METRIC_BARRIER_FORCED, 1);
        if (log_pause_is_over(&barriers->forced_pause, uv_now(barriers->settings->loop), LEASE_LOG_PAUSE_MS))
            LOG(LOG_WARN, "revocation waited for leases to expire: nodes did not acknowledge it",
                log_int("nodes", (int64_t)barrier->missing), log_text("memberships", name_missing(barrier, &names)),
                log_int("waited_ms", (int64_t)(took_ns / CLOCK_NS_PER_MS)),
                log_int("suppressed", barriers->forced_pause.suppressed));
        sweep(barrier);
    }
    finish(barrier, BARRIER_OVER);
}

static bool is_over(const struct barrier *barrier)
{
    return clock_boot_ns() >= over_at_ns(barrier) || !RULE(RULE_WAIT);
}

/* Rule 7: the longest of what any node has registered, of this node's own, which lease_max may lack (it has not
 * registered here yet, or this Redis went back), and of what a replaced master may have granted. Too long only costs
 * time; too short breaks the promise. */
static uint64_t longest_lease_ms(const struct barriers *barriers, uint64_t lease_max_ms)
{
    uint64_t own_ms = barriers->lease_ms, unknown_ms = fence_lease_unknown_ms(barriers->fence);
    uint64_t longest_ms = own_ms > lease_max_ms ? own_ms : lease_max_ms;

    return unknown_ms > longest_ms ? unknown_ms : longest_ms;
}

uint32_t barrier_wait_ms(uint32_t lease_ms)
{
    uint64_t percent = RULE(RULE_MARGIN) ? WAIT_PERCENT : WAIT_PERCENT / 3;

    return lease_ms > 0 ? (uint32_t)(lease_ms * percent / 100 + WAIT_SPARE_MS) : 0;
}

static uint64_t wait_of(uint64_t lease_ms)
{
    return barrier_wait_ms((uint32_t)lease_ms) * CLOCK_NS_PER_MS;
}

bool barrier_wait(struct barrier *barrier, int64_t lease_max_ms, const struct redis_reply *registry,
                  void (*done)(void *arg, bool is_over), void *arg)
{
    struct barriers *barriers = barrier->kept_by;

    REQUIRE(done);
    barrier->began_ns = clock_boot_ns();
    if (lease_max_ms < 0 || lease_max_ms > LEASE_MS_MAX || !read_registry(barrier, registry))
        return false;
    if (!barrier_move(barrier, BARRIER_WAITING))
        return false;
    barrier->done = done;
    barrier->arg = arg;
    barrier->wait_ns = wait_of(longest_lease_ms(barriers, (uint64_t)lease_max_ms));
    ENSURE(barrier->wait_ns > barriers->lease_ms * CLOCK_NS_PER_MS || barriers->lease_ms == 0 || !RULE(RULE_MARGIN));
    metric_add(METRIC_BARRIER_SESSIONS, (int64_t)barrier->missing);
    if (is_over(barrier))
        finish_over(barrier);
    else
        arm_at(barriers, over_at_ns(barrier));
    return true;
}

void barriers_settle(struct barriers *barriers, void (*done)(void *arg, bool is_over), void *arg)
{
    static const struct redis_reply NOBODY = {.type = REPLY_ARRAY};
    uint64_t sole_ns = fence_sole_since_ns(barriers->fence);
    uint64_t lease_max_ms = barriers->fence->lease_max_ms;
    uint64_t wait_ns = wait_of(longest_lease_ms(barriers, lease_max_ms));

    if (!barriers->fence->may_be_replaced || (sole_ns > 0 && clock_boot_ns() >= sole_ns + wait_ns)) {
        done(arg, true);
        return;
    }
    struct barrier *barrier = barrier_begin(barriers);
    barrier->is_of_change = true;
    ENSURE(barrier_wait(barrier, (int64_t)lease_max_ms, &NOBODY, done, arg));
}

static void on_timer(uv_timer_t *timer)
{
    struct barriers *barriers = timer->data;
    struct list *node = barriers->under_way.next;

    while (node != &barriers->under_way) {
        struct barrier *barrier = LIST_ENTRY(node, struct barrier, node);

        if (barrier->state == BARRIER_WAITING && is_over(barrier)) {
            finish_over(barrier);
            node = barriers->under_way.next; /* its callback may have ended other barriers */
        } else {
            node = node->next;
        }
    }
    arm_for_first(barriers);
}

void barriers_acknowledge(struct barriers *barriers, struct text member, struct text name)
{
    for (struct list *node = barriers->under_way.next; node != &barriers->under_way; node = node->next) {
        struct barrier *barrier = LIST_ENTRY(node, struct barrier, node);
        struct holder *holder;

        if (!text_equal(name, (struct text){barrier->name, BARRIER_NAME_CHARS}))
            continue;
        holder = find_holder(barrier, member);
        if (!holder)
            holder = barrier->state == BARRIER_WAITING ? NULL : add_holder(barrier, member);
        if (holder && !holder->has_acknowledged) {
            INVARIANT(!holder->is_registered || barrier->missing > 0);
            holder->has_acknowledged = true;
            barrier->missing -= holder->is_registered;
        }
        if (barrier->state != BARRIER_WAITING || barrier->missing > 0)
            return;
        if (is_over(barrier))
            finish_over(barrier);
        else
            arm_at(barriers, over_at_ns(barrier));
        return;
    }
}

/* Ending without a promise */

void barriers_fail(struct barriers *barriers)
{
    struct list failed, *node, *next;

    list_init(&failed);
    for (node = barriers->under_way.next; node != &barriers->under_way; node = next) {
        next = node->next;
        if (LIST_ENTRY(node, struct barrier, node)->state != BARRIER_WAITING)
            continue; /* the script's call still reports */
        list_remove(node);
        list_append(&failed, node);
    }
    while ((node = list_first(&failed))) {
        struct barrier *barrier = LIST_ENTRY(node, struct barrier, node);

        metric_add(METRIC_BARRIER_FAILED, !barrier->is_of_change);
        finish(barrier, BARRIER_FAILED);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct barriers *barriers = handle->data;
    const struct callback closed = barriers->closed;

    REQUIRE(list_empty(&barriers->under_way));
    free(barriers);
    callback_run(closed);
}

void barriers_close(struct barriers *barriers, void (*closed)(void *arg), void *arg)
{
    barriers_fail(barriers);
    barriers->closed = (struct callback){closed, arg};
    uv_close((uv_handle_t *)&barriers->timer, on_closed);
}
