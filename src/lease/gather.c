#include "lease/gather.h"
#include "base/callback.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/random.h"
#include "core/lease_rules.h"
#include "lease/identity.h"
#include "lease/membership.h"
#include "lease/names.h"
#include "telling_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DECLARE_AT_ONCE = 256,
    DECLARE_ARGS = 3,
    LOOK_AGAIN_MS = 50, /* while others have not told yet */
    WAIT_MIN_MS = 3000, /* G: for a member that does not come */
    TELLING_WAITS = 10, /* that many G for one that has come and tells */
    ERA_NAME_CHARS = 16,
    ERA_BYTES = 2 * REDIS_RUN_ID_CHARS + 2 + ERA_NAME_CHARS + 1,
    NUMBER_BYTES = 24,
};

static const char GATHERING[] =
    "The node has come to a Redis that it does not know yet, and waits until all nodes have "
    "repeated there what they know of revocations.";
static const char COMPARING[] = "The node compares its logs of revocations with what this Redis holds.";

/* What a chain is at this Redis. */
struct chain_there {
    char maker[MAKER_CHARS + 1];
    struct chain_record record;
};

/* What Redis said of itself. */
struct facts {
    char era[ERA_BYTES];
    uint64_t is_accepted, missing, absent, telling;
};

struct gathering {
    const struct lease_settings *settings;
    struct chains *chains;
    struct kept *kept;
    const struct fence *fence;
    const struct membership *member;
    struct telling *telling;
    struct comparison *comparison;
    char id[STORE_ID_CHARS + 1], former[STORE_ID_CHARS + 1]; /* as in struct store_names */
    uv_timer_t timer;
    struct callback closed;
    bool is_stopped, is_running;

    uint64_t connection; /* of the `changes` link, counted */
    uint64_t settled_connection;
    char settled_era[ERA_BYTES], settled_run_id[REDIS_RUN_ID_CHARS + 1];

    /* Since `begun_ns`, on this connection and in this era: */
    uint64_t begun_connection, begun_ns;
    struct facts facts;
    bool has_told, has_waited_in_vain;
    struct chain_there *there;
    size_t there_count;
    uint64_t lost;
    char declared[MAKER_CHARS + 1]; /* the chains up to that maker were looked at */
    char trouble[512];
};

static void ask(struct gathering *gathering);
static void declare(struct gathering *gathering);

struct gathering *gathering_create(const struct lease_settings *settings, struct chains *chains, struct kept *kept,
                                   const struct fence *fence)
{
    struct gathering *gathering = mem_alloc(sizeof *gathering);

    gathering->settings = settings;
    gathering->chains = chains;
    gathering->kept = kept;
    gathering->fence = fence;
    gathering->telling = telling_create(settings);
    gathering->comparison = comparison_create(settings);
    CHECK(uv_timer_init(settings->loop, &gathering->timer) == 0);
    gathering->timer.data = gathering;
    return gathering;
}

void gathering_set_member(struct gathering *gathering, const struct membership *member)
{
    gathering->member = member;
}

void gathering_set_logs(struct gathering *gathering, const struct ending_logs *logs)
{
    comparison_set_logs(gathering->comparison, logs);
}

void gathering_stop(struct gathering *gathering)
{
    gathering->is_stopped = true;
}

static void forget_chains(struct gathering *gathering)
{
    free(gathering->there);
    gathering->there = NULL;
    gathering->there_count = 0;
}

static void on_comparison_closed(void *arg)
{
    struct gathering *gathering = arg;
    const struct callback closed = gathering->closed;

    forget_chains(gathering);
    telling_destroy(gathering->telling);
    free(gathering);
    callback_run(closed);
}

static void on_closed(uv_handle_t *timer)
{
    struct gathering *gathering = timer->data;

    comparison_close(gathering->comparison, on_comparison_closed, gathering);
}

void gathering_close(struct gathering *gathering, void (*closed)(void *arg), void *arg)
{
    gathering->is_stopped = true;
    gathering->closed = (struct callback){closed, arg};
    uv_close((uv_handle_t *)&gathering->timer, on_closed);
}

void gathering_on_connection(struct gathering *gathering)
{
    gathering->connection++;
    gathering->has_told = false;
}

const char *gathering_era(const struct gathering *gathering)
{
    return gathering->settled_era;
}

/* Ends */

static void end(struct gathering *gathering)
{
    forget_chains(gathering);
    gathering->is_running = false;
}

static void fail(struct gathering *gathering)
{
    gathering->has_told = false;
    end(gathering);
    if (!gathering->is_stopped)
        gathering->settings->on_doubt(gathering->settings->arg);
}

static void settle(struct gathering *gathering)
{
    const struct lease_settings *settings = gathering->settings;

    REQUIRE(gathering->is_running && (gathering->facts.missing == 0 || !RULE(RULE_REASSERT)));
    INVARIANT(gathering->begun_connection == gathering->connection);
    if (gathering->lost > 0)
        LOG(LOG_WARN, "lost revocations were repeated at Redis", log_int("revocations", (int64_t)gathering->lost),
            log_partition(settings->prefix));
    gathering->lost = 0;
    gathering->trouble[0] = '\0';
    if (strcmp(gathering->facts.era, gathering->settled_era) != 0)
        chains_heard_joined(gathering->chains, 0);
    chains_ask_all(gathering->chains);
    gathering->settled_connection = gathering->connection;
    memcpy(gathering->settled_era, gathering->facts.era, sizeof gathering->settled_era);
    snprintf(gathering->settled_run_id, sizeof gathering->settled_run_id, "%s", redis_link_run_id(settings->changes));
    end(gathering);
    settings->on_settled(settings->arg);
}

static void say_missing(struct gathering *gathering)
{
    char trouble[sizeof gathering->trouble];
    uint64_t missing = gathering->facts.missing;

    snprintf(trouble, sizeof trouble,
             "Redis has lost %" PRIu64
             " change%s that ended something (a key, a session, a person, an account) and that "
             "nodes acknowledged: bring back the Redis that has %s. If there is none, run 'chatelaine key revoke "
             "--from-log' with the revocation logs of all nodes, then 'chatelaine store accept-loss'.",
             missing, missing == 1 ? "" : "s", missing == 1 ? "it" : "them");
    if (strcmp(trouble, gathering->trouble) == 0)
        return;
    memcpy(gathering->trouble, trouble, sizeof trouble);
    LOG(LOG_ERROR, "Redis lost changes that nodes acknowledged", log_str("why", trouble),
        log_partition(gathering->settings->prefix));
}

/* Redis: what it says of itself */

enum { CHAINS_AT = 5 }; /* in node_gather.lua's reply, behind 'ok' */

static bool read_facts(const struct redis_reply *reply, struct facts *ret_facts)
{
    return reply_chars(reply_at(reply, 0), ret_facts->era, sizeof ret_facts->era) &&
           reply_count(reply_at(reply, 1), &ret_facts->is_accepted) &&
           reply_count(reply_at(reply, 2), &ret_facts->missing) &&
           reply_count(reply_at(reply, 3), &ret_facts->absent) && reply_count(reply_at(reply, 4), &ret_facts->telling);
}

static int compare_chains(const void *a, const void *b)
{
    return strcmp(((const struct chain_there *)a)->maker, ((const struct chain_there *)b)->maker);
}

static bool read_chain(const struct redis_reply *reply, struct chain_there *ret_there)
{
    struct text numbers;

    return reply_chars(reply_at(reply, 0), ret_there->maker, sizeof ret_there->maker) &&
           reply_text(reply_at(reply, 1), &numbers) && chain_read(numbers, &ret_there->record);
}

static bool read_chains(struct gathering *gathering, const struct redis_reply *reply)
{
    forget_chains(gathering);
    gathering->there = mem_alloc((reply->count + 1) * sizeof *gathering->there);
    for (size_t i = CHAINS_AT; i < reply->count; i++)
        if (!read_chain(reply_at(reply, i), &gathering->there[gathering->there_count++]))
            return false;
    qsort(gathering->there, gathering->there_count, sizeof *gathering->there, compare_chains);
    return true;
}

static const struct chain_there *chain_at(const struct gathering *gathering, const char *maker)
{
    struct chain_there like;

    snprintf(like.maker, sizeof like.maker, "%s", maker);
    return bsearch(&like, gathering->there, gathering->there_count, sizeof like, compare_chains);
}

/* Waiting */

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

static uint64_t wait_ns(const struct gathering *gathering)
{
    uint64_t ms = gathering->fence->lease_max_ms * 5 / 4 + 50;

    return (ms > WAIT_MIN_MS ? ms : WAIT_MIN_MS) * CLOCK_NS_PER_MS;
}

static void note_absent(struct gathering *gathering)
{
    if (gathering->has_waited_in_vain)
        return;
    gathering->has_waited_in_vain = true;
    metric_add(METRIC_GATHERINGS_TIMED_OUT, 1);
    LOG(LOG_WARN, "nodes have not come to this Redis in time: it is used without what they know",
        log_int("nodes", (int64_t)(gathering->facts.absent + gathering->facts.telling)),
        log_partition(gathering->settings->prefix));
}

static bool has_waited(struct gathering *gathering)
{
    uint64_t waited_ns = clock_boot_ns() - gathering->begun_ns, g_ns = wait_ns(gathering);
    bool is_awaited = (gathering->facts.absent > 0 && waited_ns < g_ns) ||
                      (gathering->facts.telling > 0 && waited_ns < TELLING_WAITS * g_ns);

    if (!RULE(RULE_GATHER))
        return true;
    if (!is_awaited && gathering->facts.absent + gathering->facts.telling > 0)
        note_absent(gathering);
    return !is_awaited;
}

static void on_accepted(void *arg, const struct redis_reply *reply)
{
    struct gathering *gathering = arg;

    if (reply && !gathering->is_stopped)
        ask(gathering);
    else
        fail(gathering);
}

static void judge(struct gathering *gathering)
{
    const struct lease_settings *settings = gathering->settings;
    bool has_said_so = gathering->has_waited_in_vain;

    REQUIRE(gathering->has_told);
    if (!has_waited(gathering)) {
        CHECK(uv_timer_start(&gathering->timer, on_timer, LOOK_AGAIN_MS, 0) == 0);
    } else if (gathering->has_waited_in_vain && !has_said_so) {
        ask(gathering); /* so that nobody waits for them again in a later era */
    } else if (gathering->facts.missing == 0 || !RULE(RULE_REASSERT)) {
        settle(gathering);
    } else if (settings->accepts_loss) {
        settings->call(settings->arg, LEASE_ACCEPT_LOSS, 1,
                       (struct text[]){text_of(redis_link_run_id(settings->changes))}, on_accepted, gathering);
    } else {
        say_missing(gathering);
        gathering->has_told = false; /* others may have declared since what this node can tell */
        end(gathering);
        settings->on_doubt(settings->arg);
    }
}

/* Telling */

/* Whether Redis may lack the change, or has missed it once: that may have been accepted before this node came. */
static bool is_wanted(void *arg, struct change_name change)
{
    const struct gathering *gathering = arg;
    char maker[MAKER_CHARS + 1];
    const struct chain_there *there;

    if (change.maker.len == 0)
        return true;
    snprintf(maker, sizeof maker, "%.*s", TEXT_ARG(change.maker));
    there = chain_at(gathering, maker);
    return !there || change.number > there->record.numbers.ends || change.number >= there->record.low;
}

static void say_told(struct gathering *gathering)
{
    gathering->has_told = true;
    ask(gathering);
}

static void on_compared(void *arg, bool is_done, uint64_t lost)
{
    struct gathering *gathering = arg;

    gathering->lost += lost;
    if (is_done && !gathering->is_stopped)
        say_told(gathering);
    else
        fail(gathering);
}

static void compare_logs(struct gathering *gathering)
{
    const struct store_names names = {text_of(gathering->id), text_of(gathering->former)};

    if (comparison_is_due(gathering->comparison, gathering->facts.era) && RULE(RULE_REASSERT))
        comparison_run(gathering->comparison, gathering->facts.era, &names, on_compared, gathering);
    else
        say_told(gathering);
}

static void on_told(void *arg, const struct told *told)
{
    struct gathering *gathering = arg;

    gathering->lost += told->lost;
    if (told->is_done && !gathering->is_stopped)
        compare_logs(gathering);
    else
        fail(gathering);
}

static void begin_telling(struct gathering *gathering)
{
    size_t count = 0;
    struct kept_ending *list = RULE(RULE_REASSERT) ? kept_list(gathering->kept, is_wanted, gathering, &count) : NULL;

    telling_run(gathering->telling, list, count, on_told, gathering);
}

/* Declaring */

static void on_declared(void *arg, const struct redis_reply *reply)
{
    struct gathering *gathering = arg;

    if (reply && !gathering->is_stopped)
        declare(gathering);
    else
        fail(gathering);
}

static bool lacks(const struct gathering *gathering, const struct chain *chain)
{
    const struct chain_there *there = chain_at(gathering, chain->maker);
    const struct chain_numbers numbers = there ? there->record.numbers : (struct chain_numbers){0};

    if (chain->record.is_folded)
        return false;
    return numbers.ends < chain->record.numbers.ends || numbers.all < chain->record.numbers.all;
}

/* The chains that Redis has less of, some at a time. */
static void declare(struct gathering *gathering)
{
    const struct lease_settings *settings = gathering->settings;
    struct text argv[DECLARE_AT_ONCE * DECLARE_ARGS];
    char numbers[2 * DECLARE_AT_ONCE][NUMBER_BYTES];
    size_t count, argc = 0;
    const struct chain *chains = chains_all(gathering->chains, &count);

    for (size_t i = 0; i < count && argc < sizeof argv / sizeof *argv; i++) {
        const struct chain *chain = &chains[i];
        char(*of_chain)[NUMBER_BYTES] = &numbers[argc / DECLARE_ARGS * 2];

        if (strcmp(chain->maker, gathering->declared) <= 0)
            continue;
        memcpy(gathering->declared, chain->maker, sizeof gathering->declared);
        if (!lacks(gathering, chain))
            continue;
        snprintf(of_chain[0], sizeof of_chain[0], "%" PRIu64, chain->record.numbers.ends);
        snprintf(of_chain[1], sizeof of_chain[1], "%" PRIu64, chain->record.numbers.all);
        argv[argc++] = text_of(chain->maker);
        argv[argc++] = text_of(of_chain[0]);
        argv[argc++] = text_of(of_chain[1]);
    }
    ENSURE(argc % DECLARE_ARGS == 0);
    if (argc > 0 && RULE(RULE_REASSERT))
        settings->call(settings->arg, LEASE_DECLARE, argc, argv, on_declared, gathering);
    else
        begin_telling(gathering);
}

/* What an operator has accepted to be lost, in this era, is not asked for. */
static void lower_chains(struct gathering *gathering)
{
    size_t count;
    const struct chain *chains = chains_all(gathering->chains, &count);

    for (size_t i = 0; i < count; i++) {
        const struct chain_there *there = chain_at(gathering, chains[i].maker);

        chains_lower(gathering->chains, chains[i].maker, there ? there->record.numbers : (struct chain_numbers){0});
    }
}

static void compare(struct gathering *gathering)
{
    if (gathering->facts.is_accepted)
        lower_chains(gathering);
    gathering->declared[0] = '\0';
    declare(gathering);
}

/* Asking */

static bool is_begun(const struct gathering *gathering, const struct facts *facts)
{
    return gathering->begun_connection == gathering->connection && strcmp(gathering->facts.era, facts->era) == 0;
}

/* It has gathered there: only the connection is new. */
static bool is_known_era(const struct gathering *gathering)
{
    return gathering->facts.missing == 0 && strcmp(gathering->facts.era, gathering->settled_era) == 0;
}

static void on_facts(void *arg, const struct redis_reply *reply)
{
    struct gathering *gathering = arg;
    bool has_asked_for_chains = !gathering->has_told;
    struct facts facts = {0};

    if (!reply || !read_facts(reply, &facts) || gathering->is_stopped) {
        fail(gathering);
        return;
    }
    if (!is_begun(gathering, &facts)) {
        gathering->begun_connection = gathering->connection;
        gathering->begun_ns = clock_boot_ns();
        gathering->has_told = gathering->has_waited_in_vain = false;
        if (strcmp(facts.era, gathering->settled_era) != 0)
            chains_draw_maker(gathering->chains);
    }
    gathering->facts = facts;
    if (is_known_era(gathering))
        settle(gathering);
    else if (gathering->has_told)
        judge(gathering);
    else if (!has_asked_for_chains)
        ask(gathering);
    else if (read_chains(gathering, reply))
        compare(gathering);
    else
        fail(gathering);
}

static void ask(struct gathering *gathering)
{
    const struct lease_settings *settings = gathering->settings;
    char name[ERA_NAME_CHARS + 1], joined[NUMBER_BYTES];
    struct text members[2] = {TEXT(""), TEXT("")};
    uint64_t random;

    if (gathering->is_stopped || !redis_link_is_ready(settings->changes)) {
        fail(gathering);
        return;
    }
    if (gathering->member)
        membership_names(gathering->member, members);
    random_secret(&random, sizeof random);
    snprintf(name, sizeof name, "%016" PRIx64, random);
    snprintf(joined, sizeof joined, "%" PRIu64, chains_joined(gathering->chains));
    const struct text argv[] = {
        text_of(redis_link_run_id(settings->changes)),
        text_of(name),
        members[0],
        members[1],
        gathering->has_told ? text_of(gathering->facts.era) : TEXT(""),
        gathering->has_waited_in_vain ? TEXT("1") : TEXT("0"),
        text_of(joined),
    };
    settings->call(settings->arg, LEASE_GATHER, sizeof argv / sizeof *argv, argv, on_facts, gathering);
}

const char *gathering_look(struct gathering *gathering, const struct store_names *names, struct text era,
                           uint64_t missing)
{
    const struct lease_settings *settings = gathering->settings;
    bool is_same_run = strcmp(gathering->settled_run_id, redis_link_run_id(settings->changes)) == 0;
    bool is_settled = is_same_run && missing == 0 && gathering->settled_connection == gathering->connection &&
                      text_equal(era, text_of(gathering->settled_era));

    if (is_settled)
        return NULL;
    if (!gathering->is_running && !gathering->is_stopped) {
        snprintf(gathering->id, sizeof gathering->id, "%.*s", TEXT_ARG(names->id));
        snprintf(gathering->former, sizeof gathering->former, "%.*s", TEXT_ARG(names->former));
        gathering->is_running = true;
        ask(gathering);
    }
    /* Of what it had when this connection was made, Redis has lost nothing. */
    if (is_same_run && missing == 0 && gathering->settled_connection == gathering->connection)
        return NULL;
    if (gathering->trouble[0] && missing > 0)
        return gathering->trouble;
    return comparison_is_running(gathering->comparison) ? COMPARING : GATHERING;
}
