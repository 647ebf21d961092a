#include "throttle.h"

#include "base/check.h"
#include "base/mem.h"
#include "engine/verb.h"
#include <stdio.h>
#include <stdlib.h>

enum { COUNTERS_MAX = 4, COUNTERS_BYTES = 512, ADDRESS_COUNTER_BYTES = 96 };

/* The partitions of an attempt's counters, in the order of the first counter in each. */
struct places {
    size_t count;
    struct store *of[COUNTERS_MAX];
};

/* A counter is "<rule>:<tag>". */
static struct store *place_of_counter(const struct partitions *partitions, struct text counter)
{
    struct text tag = counter, rule;

    CHECK(text_next(&tag, ':', &rule));
    return partition_of_bucket(partitions, bucket_of_text(tag));
}

static void places_add(struct places *places, struct store *store)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->of[i] == store)
            return;
    CHECK(places->count < COUNTERS_MAX);
    places->of[places->count++] = store;
}

static bool next_counter(struct text *rest, struct text *ret_counter)
{
    return text_next(rest, ',', ret_counter) && ret_counter->len > 0;
}

static struct places places_of(const struct partitions *partitions, const struct login_attempt *attempt)
{
    struct text rest = attempt->counters, counter;
    struct places places = {0};

    while (!attempt->counts_at_home && next_counter(&rest, &counter))
        places_add(&places, place_of_counter(partitions, counter));
    return places;
}

/* The tag of the last counter begins like this: of an attempt's IPv6 /48 or IPv4 /24. */
static struct text network_of(struct text counters)
{
    struct text counter, tag = {0}, rule;

    while (next_counter(&counters, &counter)) {
        tag = counter;
        CHECK(text_next(&tag, ':', &rule));
    }
    return (struct text){tag.ptr, tag.len < THROTTLE_NETWORK_CHARS ? tag.len : THROTTLE_NETWORK_CHARS};
}

/* Calls a script for the counters that lie in that partition. */
static void call_place(const struct partitions *partitions, const struct login_attempt *attempt, struct store *place,
                       enum script script, enum script_link link, script_done *done, void *arg)
{
    struct text rest = attempt->counters, counter;
    struct script_args args;
    struct buf here = BUF_FIXED(COUNTERS_BYTES);

    while (next_counter(&rest, &counter))
        if (place_of_counter(partitions, counter) == place)
            buf_printf(&here, "%.*s,", TEXT_ARG(counter));
    CHECK(!here.failed);
    args_begin(&args);
    args_add(&args, attempt->id);
    args_add(&args, buf_text(&here));
    if (script != SCRIPT_throttle_give_back && script != SCRIPT_throttle_succeed)
        args_add_int(&args, attempt->forgiven_ms);
    if (script == SCRIPT_throttle_fail) {
        args_add(&args, network_of(attempt->counters));
        args_add_int(&args, store_strangers_most(place, THROTTLES_MAX));
    }
    store_call_script(place, script, link, args.count, args.argv, done, arg);
}

static void ignore(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg;
    (void)result;
    (void)reply;
}

/* SCRIPT_READS, because a reservation need not wait for replicas. */
static void give_back(const struct partitions *partitions, const struct login_attempt *attempt, struct store *place)
{
    call_place(partitions, attempt, place, SCRIPT_throttle_give_back, SCRIPT_READS, ignore, NULL);
}

struct judging {
    const struct partitions *partitions;
    struct login_attempt attempt;
    enum throttle_step step;
    struct places places;
    size_t left;                         /* of the places */
    char address[ADDRESS_COUNTER_BYTES]; /* the counter of throttle_judge_address() */
    struct throttle_verdict verdict;
    throttle_done *done;
    void *arg;
};

static void place_judged(void *arg, enum store_result result, const struct redis_reply *reply);

static void judging_finish(struct judging *judging, enum store_result result)
{
    judging->done(judging->arg, result, &judging->verdict);
    free(judging);
}

/* From the last place to the first, see struct login_attempt. A check is a change, so that a partition that could not
 * count a wrong attempt lets no right one pass: otherwise the answer would tell them apart without a limit. */
static void judge_next(struct judging *judging)
{
    static const struct {
        enum script script;
        enum script_link link;
    } STEPS[] = {
        [THROTTLE_RESERVE] = {SCRIPT_throttle_reserve, SCRIPT_READS},
        [THROTTLE_CHECK] = {SCRIPT_throttle_check, SCRIPT_UNPROMISED},
        [THROTTLE_FAIL] = {SCRIPT_throttle_fail, SCRIPT_UNPROMISED},
    };

    if (judging->left == 0)
        judging_finish(judging, STORE_OK);
    else
        call_place(judging->partitions, &judging->attempt, judging->places.of[--judging->left],
                   STEPS[judging->step].script, STEPS[judging->step].link, place_judged, judging);
}

static void judging_begin(struct judging *judging)
{
    judging->places = places_of(judging->partitions, &judging->attempt);
    judging->left = judging->places.count;
    judge_next(judging);
}

void throttle_judge(const struct partitions *partitions, const struct login_attempt *attempt, enum throttle_step step,
                    throttle_done *done, void *arg)
{
    struct judging *judging = mem_alloc(sizeof *judging);

    *judging = (struct judging){.partitions = partitions, .attempt = *attempt, .step = step, .done = done, .arg = arg};
    judging_begin(judging);
}

void throttle_judge_address(const struct partitions *partitions, struct text ip_tag, enum throttle_step step,
                            throttle_done *done, void *arg)
{
    struct judging *judging = mem_alloc(sizeof *judging);

    *judging = (struct judging){.partitions = partitions, .step = step, .done = done, .arg = arg};
    int len = snprintf(judging->address, sizeof judging->address, "address:%.*s,", TEXT_ARG(ip_tag));
    CHECK(len < ADDRESS_COUNTER_BYTES);
    judging->attempt.counters = text_of(judging->address);
    judging_begin(judging);
}

/* A script that refuses the attempt leaves nothing reserved. */
static bool may_be_reserved(const struct judging *judging, size_t place, enum store_result result)
{
    if (place == judging->left)
        return result != STORE_REFUSED;
    return judging->step == THROTTLE_RESERVE ? place > judging->left : place < judging->left;
}

static void release_rest(const struct judging *judging, enum store_result result)
{
    const struct places *places = &judging->places;

    for (size_t i = 0; i < places->count; i++)
        if (judging->step != THROTTLE_CHECK && may_be_reserved(judging, i, result))
            give_back(judging->partitions, &judging->attempt, places->of[i]);
}

static bool verdict_read(const struct judging *judging, enum store_result result, const struct redis_reply *reply,
                         struct throttle_verdict *verdict)
{
    int64_t closes = 0;

    if (result == STORE_REFUSED)
        return reply_seconds(reply_at(reply, 0), &verdict->retry_after_s);
    if (judging->step == THROTTLE_FAIL && !reply_integer(reply_at(reply, 0), &closes))
        return false;
    verdict->closes = verdict->closes || closes != 0;
    return true;
}

static void place_judged(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct judging *judging = arg;

    if ((result == STORE_OK || result == STORE_REFUSED) && !verdict_read(judging, result, reply, &judging->verdict)) {
        store_malformed(judging->places.of[judging->left], "throttle");
        result = STORE_UNKNOWN;
    }
    if (result == STORE_OK) {
        judge_next(judging);
    } else {
        release_rest(judging, result);
        judging_finish(judging, result);
    }
}

void throttle_succeed(const struct partitions *partitions, const struct login_attempt *attempt)
{
    struct places places = places_of(partitions, attempt);

    for (size_t i = 0; i < places.count; i++)
        call_place(partitions, attempt, places.of[i], SCRIPT_throttle_succeed, SCRIPT_READS, ignore, NULL);
}

void throttle_give_back(const struct partitions *partitions, const struct login_attempt *attempt)
{
    const struct text at_home[] = {attempt->id, attempt->counters};
    struct places places = places_of(partitions, attempt);

    if (attempt->counts_at_home)
        store_call_script(attempt->home, SCRIPT_throttle_give_back, SCRIPT_READS, sizeof at_home / sizeof *at_home,
                          at_home, ignore, NULL);
    for (size_t i = 0; i < places.count; i++)
        give_back(partitions, attempt, places.of[i]);
}

struct text throttle_counters_at_home(const struct login_attempt *attempt)
{
    return attempt->counts_at_home ? attempt->counters : TEXT("");
}
