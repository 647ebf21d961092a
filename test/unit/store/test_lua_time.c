/* The store's time, in scripts that run at a real Redis whose clock is set. */
#include "base/clock.h"
#include "clock_file.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis_server.h"
#include "engine/lua_scripts.h"

#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { S = 1000, HOUR = 3600 * S, SLACK_MS = 5000, WORDS_MAX = 20 };

static struct redis_server server;
static redisContext *redis;
static struct clock_file redis_clock; /* this machine's is the true time */

static void start(void)
{
    clock_file_make(&redis_clock, 0);
    clock_file_begin(&redis_clock, NULL);
    redis_server_start(&server, NULL);
    clock_file_end();
    redis = redisConnectUnix(server.socket_path);
    cr_assert(redis && !redis->err);
}

static void stop(void)
{
    redisFree(redis);
    redis_server_stop(&server);
    clock_file_remove(&redis_clock);
    leak_guard();
}

TestSuite(lua_time, .init = start, .fini = stop);

static void ask(const char *command)
{
    redisReply *reply = redisCommand(redis, command);

    cr_assert(reply && reply->type != REDIS_REPLY_ERROR, "%s: %s", command, reply ? reply->str : redis->errstr);
    freeReplyObject(reply);
}

static redisReply *call(enum script script, const char *says, size_t argc, const char *const *argv)
{
    const char *words[4 + WORDS_MAX] = {"EVAL", LUA_SCRIPTS[script].body.ptr, "0", "t:"};
    size_t lengths[4 + WORDS_MAX] = {4, LUA_SCRIPTS[script].body.len, 1, 2};
    redisReply *reply;

    for (size_t i = 0; i < argc; i++) {
        words[4 + i] = argv[i];
        lengths[4 + i] = strlen(argv[i]);
    }
    reply = redisCommandArgv(redis, (int)(4 + argc), words, lengths);
    cr_assert(reply && reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[0]->str, says) == 0, "%s",
              reply && reply->str ? reply->str : redis->errstr);
    return reply;
}

#define CALL_SAYS(script, says, ...)                                                      \
    call(script, says, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), \
         (const char *const[]){__VA_ARGS__})
#define CALL(script, ...) CALL_SAYS(script, "ok", __VA_ARGS__)

/* first and last are relative to the true time, which went by by took_ms meanwhile. */
struct said {
    int64_t first_ms, last_ms, took_ms, kept_ms;
    char settlement[32];
    int how;
    bool is_due;
};

/* What a member has measured right before: Redis' clock was clock_s ahead of the true time, and the store's time was
 * least_ms to most_ms ahead of that. */
struct measured {
    int clock_s;
    int64_t least_ms, most_ms;
};
static const struct measured NOTHING = {.least_ms = 1, .most_ms = 0};

/* Its heartbeat. why: NULL for `fresh`, "kept" for what is kept now. */
static struct said beat(struct measured measured, const char *told, const char *why)
{
    char bounds[128] = "0", basis[64], kept[32] = "";
    int64_t began_ms = clock_wall_ms(), now_ms = began_ms;
    redisReply *reply;
    struct said said;

    if (why && strcmp(why, "kept") == 0) {
        reply = redisCommand(redis, "HGET t:store time");
        snprintf(kept, sizeof kept, "%s", reply->str);
        freeReplyObject(reply);
        why = kept;
    }
    now_ms += measured.clock_s * S;
    if (measured.least_ms <= measured.most_ms)
        snprintf(bounds, sizeof bounds, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, now_ms - 23, now_ms + SLACK_MS,
                 measured.least_ms, measured.most_ms);
    snprintf(basis, sizeof basis, "%s %s", told, why ? why : "fresh");
    reply = CALL(SCRIPT_node_heartbeat, "s1", "1", "1000", "n1", bounds, basis, "0", "");
    now_ms = clock_wall_ms();
    const redisReply *time = reply->element[1];
    cr_assert_eq(time->elements, 6);
    said = (struct said){.first_ms = time->element[0]->integer - now_ms,
                         .last_ms = time->element[1]->integer - now_ms,
                         .took_ms = now_ms - began_ms,
                         .kept_ms = time->element[3]->integer,
                         .how = (int)time->element[5]->integer,
                         .is_due = reply->element[2]->integer == 1};
    snprintf(said.settlement, sizeof said.settlement, "%s", time->element[4]->str);
    freeReplyObject(reply);
    return said;
}

/* Of a member that was told right before, when the time was Redis' clock and that was right. */
static struct said fresh_beat(void)
{
    return beat((struct measured){0}, "-", NULL);
}

/* Of one that has found Redis' clock wrong by so many seconds. */
static struct said knowing_beat(int clock_s)
{
    return beat((struct measured){clock_s, -clock_s * S - 23, -clock_s * S + 28}, "-", NULL);
}

/* The slower the machine, the more of the true time has gone by. */
#define EXPECT_NEAR(got, wanted)                                                                                     \
    cr_expect((got) <= (wanted) && (got) > (wanted)-SLACK_MS, "%s: %" PRId64 ", not %" PRId64, #got, (int64_t)(got), \
              (int64_t)(wanted))

static void expect_time(struct said said, int64_t first_ms, int64_t last_ms)
{
    EXPECT_NEAR(said.first_ms, first_ms);
    EXPECT_NEAR(said.last_ms, last_ms);
    cr_expect_gt(said.how, 0);
}

/* What the member knows: never early, never late. */
static void expect_truth(struct said said, int64_t most_ms)
{
    cr_expect_leq(said.first_ms, 0, "early by %" PRId64 " ms", said.first_ms);
    cr_expect_geq(said.last_ms, -said.took_ms, "late by %" PRId64 " ms", -said.last_ms);
    cr_expect_leq(said.last_ms, most_ms, "%" PRId64 " ms", said.last_ms);
    cr_expect_eq(said.how, 1);
}

/* From here on something depends on the time, which is right. */
static void schedule(void)
{
    ask("ZADD t:key_ends 99999999999999 key_9");
    expect_time(fresh_beat(), 0, 0);
}

static void expect_field(const char *name, const char *wanted)
{
    redisReply *reply = redisCommand(redis, "HGET t:store %s", name);

    cr_expect_str_eq(reply->str ? reply->str : "(none)", wanted, "%s", name);
    freeReplyObject(reply);
}

Test(lua_time, is_redis_clock_while_nothing_is_scheduled_and_nothing_is_written)
{
    expect_time(beat(NOTHING, "-", "-"), 0, 0);
    clock_file_set(&redis_clock, -60);
    expect_time(fresh_beat(), -60 * S, -60 * S);
    clock_file_set(&redis_clock, 60);
    expect_time(fresh_beat(), 60 * S, 60 * S);
    expect_field("time", "(none)");
    expect_field("settlement", "(none)");
}

/* A heartbeat cannot know how long it is on its way: what it has proved counts with the next one. */
Test(lua_time, changes_only_by_what_was_measured)
{
    static const int CLOCKS[] = {3600, -3600, 60, -60, 7200};

    schedule();
    for (unsigned i = 0; i < 5; i++) {
        clock_file_set(&redis_clock, CLOCKS[i]);
        expect_time(fresh_beat(), CLOCKS[i] * S, CLOCKS[i] * S);
        expect_field("ahead", "0");
        expect_truth(knowing_beat(CLOCKS[i]), 28);
        expect_truth(knowing_beat(CLOCKS[i]), 28);
        clock_file_set(&redis_clock, 0);
        (void)knowing_beat(CLOCKS[i]);
        expect_time(fresh_beat(), 0, 0);
        expect_field("ahead", "0");
        expect_field("unsure", "0");
    }
}

static int64_t kept_now(void);

/* It is only kept, and by no more than what the member knows. */
Test(lua_time, is_kept_by_the_least_when_the_clock_was_set)
{
    schedule();
    ask("HSET t:store time 1");
    clock_file_set(&redis_clock, 3600);
    cr_expect_eq(fresh_beat().how, 1);
    EXPECT_NEAR(kept_now() - clock_wall_ms(), -23);
    ask("HSET t:store time 1");
    clock_file_set(&redis_clock, -3600);
    cr_expect_eq(fresh_beat().how, 1);
    EXPECT_NEAR(kept_now() - clock_wall_ms(), -23);
}

/* Several members know it within different bounds: the narrowest count, whoever comes first. */
Test(lua_time, lies_within_what_all_members_know)
{
    schedule();
    clock_file_set(&redis_clock, 60);
    ask("HSET t:store time 1");
    expect_truth(beat((struct measured){60, -60 * S - 500, -60 * S + 600}, "-", NULL), 600);
    expect_truth(beat((struct measured){60, -60 * S - 20, -60 * S + 300}, "-", NULL), 300);
    expect_truth(beat((struct measured){60, -60 * S - 400, -60 * S + 30}, "-", NULL), 30);
    expect_field("ahead", "-60020");
    expect_field("unsure", "50");
}

static int64_t kept_now(void)
{
    redisReply *reply = redisCommand(redis, "HGET t:store time");
    int64_t ms = strtoll(reply->str, NULL, 10);

    freeReplyObject(reply);
    return ms;
}

/* It may be the first at a Redis that has taken over, and its clock wrong. */
Test(lua_time, is_not_said_by_a_member_that_knows_nothing_while_others_may)
{
    schedule();
    int64_t kept_ms = kept_now();
    clock_file_set(&redis_clock, 30);
    struct said said = beat(NOTHING, "-", "-");
    cr_expect_eq(said.how, 0);
    cr_expect_eq(kept_now(), kept_ms);
    said = beat(NOTHING, "-", "12345");
    cr_expect_eq(said.how, 0, "others have kept a later time than when it began to wait");
    expect_truth(knowing_beat(30), 28);
}

/* It has heard the same for a while, and nobody who knows better has come. */
Test(lua_time, is_what_a_member_has_heard_once_nobody_else_keeps_it)
{
    schedule();
    clock_file_set(&redis_clock, 3600);
    expect_time(beat((struct measured){3600, 0, 0}, "-", "kept"), 3600 * S, 3600 * S);
    expect_field("ahead", "0");
    clock_file_set(&redis_clock, -3600);
    expect_time(beat((struct measured){-3600, 7200 * S, 7200 * S}, "-", "kept"), 3600 * S, 3600 * S);
}

/* Its machine was frozen together with its clock. */
Test(lua_time, is_not_said_by_a_member_whose_knowledge_is_below_what_was_kept)
{
    schedule();
    struct said said = beat((struct measured){0, -HOUR, -HOUR + 50}, "-", NULL);
    cr_expect_eq(said.how, 0);
    expect_time(fresh_beat(), 0, 0);
    expect_field("ahead", "0");
}

/* Only until nothing is scheduled any more. */
Test(lua_time, is_redis_clock_again_once_nothing_is_scheduled)
{
    schedule();
    clock_file_set(&redis_clock, -3600);
    expect_truth(knowing_beat(-3600), 28);
    ask("DEL t:key_ends");
    struct said said = fresh_beat();
    expect_time(said, -HOUR, -HOUR);
    cr_expect_str_eq(said.settlement, "n1");
    cr_expect_eq(said.kept_ms, 0);
    ask("ZADD t:key_ends 99999999999999 key_9");
    said = fresh_beat();
    cr_expect_eq(said.how, 0, "what was told before does not count");
    EXPECT_NEAR(said.first_ms, -HOUR);
}

/* A node calls it because it was told that something is due; since then Redis' clock was set forward. */
Test(lua_time, what_is_written_down_as_due_is_due_by_what_the_node_knows)
{
    char known[64];
    redisReply *reply;

    ask("SET t:key:d1 stand-in");
    schedule();
    int64_t now_ms = clock_wall_ms();
    reply =
        redisCommand(redis, "ZADD t:key_ends %lld key_8 %lld key_7", (long long)now_ms + HOUR, (long long)now_ms - S);
    freeReplyObject(reply);
    clock_file_set(&redis_clock, 7200);
    snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", now_ms - 23, now_ms + 28);
    freeReplyObject(CALL(SCRIPT_key_end_due, "100", known));
    reply = redisCommand(redis, "ZRANGE t:key_ends 0 -1");
    cr_expect_eq(reply->elements, 2, "only what has no record was taken off the list");
    cr_expect_str_eq(reply->element[0]->str, "key_8");
    freeReplyObject(reply);
}

static void make_key(void)
{
    ask("HSET t:acct:acct_A name North created 1");
    freeReplyObject(
        CALL(SCRIPT_key_insert, "d1", "key_1 acct_A live wxyz 3 7 - Name", "usr_U", "", "", "100", "", "0", "0"));
}

/* Hours from now; 0: never. */
static void schedule_key(int hours)
{
    char at[32] = "";

    if (hours > 0)
        snprintf(at, sizeof at, "%" PRId64, clock_wall_ms() + (int64_t)hours * HOUR);
    freeReplyObject(CALL(SCRIPT_key_schedule, "key_1", "acct_A", "api_key", "0", "usr_U", "", "", "100", "", "-", "-",
                         at, "99999999999", "any", "0"));
}

/* The clock was set back since the last heartbeat: the record says @END, and END has come. */
Test(lua_time, what_is_due_by_what_the_node_knows_is_written_down_although_the_clock_is_behind)
{
    char known[64];
    redisReply *reply;

    make_key();
    schedule_key(2);
    int64_t now_ms = clock_wall_ms() + 3 * HOUR;
    snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", now_ms - 23, now_ms + 28);
    freeReplyObject(CALL_SAYS(SCRIPT_key_schedule, "conflict", "key_1", "acct_A", "api_key", "0", "usr_U", "", "",
                              "100", "", "-", "-", "", "99999999999", "any", "0", known));
    freeReplyObject(CALL_SAYS(SCRIPT_key_replace, "refused", "d2", "key_2 acct_A live wxyz 3 7 - Name", "usr_U", "", "",
                              "100", "", "100", "100", "key_1", "acct_A", "api_key", "0", "-", "-", "60000", known));
    reply = CALL(SCRIPT_key_end_due, "100", known);
    cr_expect_eq(reply->elements, 2, "it was written down");
    freeReplyObject(reply);
    reply = redisCommand(redis, "GET t:key:d1");
    cr_expect_null(strchr(reply->str, '@'), "%s", reply->str);
    freeReplyObject(reply);
    reply = redisCommand(redis, "ZCARD t:key_ends");
    cr_expect_eq(reply->integer, 0);
    freeReplyObject(reply);
}

/* It is not due, whatever a clock says that was set forward: nobody must hear that it is revoked. */
Test(lua_time, what_is_not_due_by_what_the_node_knows_can_end_sooner)
{
    int64_t now_ms = clock_wall_ms();
    char known[64], at[32];
    redisReply *reply;

    make_key();
    schedule_key(1);
    clock_file_set(&redis_clock, 7200);
    snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", now_ms - 23, now_ms + 28);
    snprintf(at, sizeof at, "%" PRId64, now_ms + HOUR / 2);
    freeReplyObject(CALL(SCRIPT_key_schedule, "key_1", "acct_A", "api_key", "0", "usr_U", "", "", "100", "", "-", "-",
                         at, "99999999999", "sooner", "0", known));
    reply = redisCommand(redis, "ZSCORE t:key_ends key_1");
    cr_expect_str_eq(reply->str, at);
    freeReplyObject(reply);
}

/* It was set forward since the last heartbeat. */
Test(lua_time, the_first_schedule_keeps_what_the_node_knows)
{
    int64_t now_ms = clock_wall_ms();
    char known[64], at[32];

    make_key();
    clock_file_set(&redis_clock, 3600);
    snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", now_ms - 23, now_ms + 28);
    snprintf(at, sizeof at, "%" PRId64, now_ms + 2 * HOUR);
    freeReplyObject(CALL(SCRIPT_key_schedule, "key_1", "acct_A", "api_key", "0", "usr_U", "", "", "100", "", "-", "-",
                         at, "99999999999", "any", "0", known));
    cr_expect_eq(kept_now(), now_ms - 23);
}

/* From the first moment on: no heartbeat may come before the clock goes back. */
Test(lua_time, is_kept_while_a_revocation_is_scheduled)
{
    make_key();
    schedule_key(2);
    EXPECT_NEAR(kept_now() - clock_wall_ms(), 0);
    ask("HSET t:store time 5");
    expect_time(fresh_beat(), 0, 0);
    EXPECT_NEAR(kept_now() - clock_wall_ms(), 0);
    schedule_key(0);
    ask("HSET t:store time 5");
    expect_time(fresh_beat(), 0, 0);
    expect_field("time", "5");
}

/* A key is replaced right after the clock was set, by a node that knows better. */
Test(lua_time, an_overlap_is_as_long_as_it_was_asked_for_whatever_the_clock)
{
    static const int CLOCKS[] = {3600, -3600};
    static const char *const OLD[] = {"key_1", "key_2"}, *const NEW[] = {"key_2", "key_3"},
                             *const DIGESTS[] = {"d2", "d3"};

    make_key();
    schedule();
    for (unsigned i = 0; i < 2; i++) {
        char known[64], record[64];
        int64_t now_ms = clock_wall_ms();
        redisReply *reply;

        clock_file_set(&redis_clock, CLOCKS[i]);
        snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", now_ms - 23, now_ms + 28);
        snprintf(record, sizeof record, "%s acct_A live wxyz 3 7 - Name", NEW[i]);
        freeReplyObject(CALL(SCRIPT_key_replace, DIGESTS[i], record, "usr_U", "", "", "100", "", "100", "100", OLD[i],
                             "acct_A", "api_key", "0", "-", "-", "60000", known));
        reply = redisCommand(redis, "ZSCORE t:key_ends %s", OLD[i]);
        cr_assert(reply->str);
        cr_expect_geq(strtoll(reply->str, NULL, 10), now_ms + 60 * S);
        cr_expect_leq(strtoll(reply->str, NULL, 10), now_ms + 28 + 60 * S);
        freeReplyObject(reply);
    }
}

/* The time is what it was when the node sent that, or later. */
Test(lua_time, an_overlap_is_not_shorter_because_the_call_was_long_on_its_way)
{
    enum { LATE_MS = 800, APART_MS = 250 };
    int64_t sent_ms = clock_wall_ms() - LATE_MS;
    char known[64];
    redisReply *reply;

    make_key();
    schedule();
    snprintf(known, sizeof known, "%" PRId64 " %" PRId64 " -", sent_ms - APART_MS, sent_ms + APART_MS);
    freeReplyObject(CALL(SCRIPT_key_replace, "d2", "key_2 acct_A live wxyz 3 7 - Name", "usr_U", "", "", "100", "",
                         "100", "100", "key_1", "acct_A", "api_key", "0", "-", "-", "60000", known));
    reply = redisCommand(redis, "ZSCORE t:key_ends key_1");
    cr_assert(reply->str);
    cr_expect_geq(strtoll(reply->str, NULL, 10), sent_ms + 60 * S);
    cr_expect_leq(strtoll(reply->str, NULL, 10), clock_wall_ms() + 60 * S);
    freeReplyObject(reply);
}

/* Scheduling another key right after the clock was set must not keep a time that no member believes. */
Test(lua_time, is_not_kept_by_a_second_schedule)
{
    make_key();
    schedule();
    int64_t kept_ms = kept_now();
    clock_file_set(&redis_clock, 3600);
    schedule_key(2);
    cr_expect_eq(kept_now(), kept_ms);
}

Test(lua_time, is_told_whole_to_a_check)
{
    redisReply *reply;
    int64_t now_ms;

    schedule();
    clock_file_set(&redis_clock, -3600);
    expect_truth(knowing_beat(-3600), 28);
    now_ms = clock_wall_ms();
    reply = call(SCRIPT_store_time, "ok", 0, NULL);
    cr_assert_eq(reply->elements, 6);
    cr_expect_leq(reply->element[1]->integer, clock_wall_ms());
    cr_expect_geq(reply->element[2]->integer, now_ms);
    EXPECT_NEAR(reply->element[3]->integer - clock_wall_ms(), -HOUR);
    cr_expect_eq(reply->element[4]->integer, kept_now());
    cr_expect_str_eq(reply->element[5]->str, "-");
    freeReplyObject(reply);
}

static redisReply *settle(const char *says, const char *settlement)
{
    return CALL_SAYS(SCRIPT_store_settle_time, says, settlement, "operator");
}

Test(lua_time, is_settled_once_what_is_due_was_written_down)
{
    redisReply *reply;

    freeReplyObject(settle("not_found", "n9"));
    ask("HSET t:store id aa");
    reply = settle("ok", "n9");
    cr_expect_eq(reply->element[2]->integer, 0, "it is the clock");
    freeReplyObject(reply);
    make_key();
    schedule_key(1);
    schedule();
    ask("HSET t:store ahead 7200000");
    reply = settle("ok", "");
    EXPECT_NEAR(reply->element[1]->integer, 2 * HOUR);
    cr_expect_eq(reply->element[2]->integer, 1);
    freeReplyObject(reply);
    expect_field("settlement", "(none)");
    reply = settle("conflict", "n9");
    cr_expect_eq(reply->element[1]->integer, 1);
    freeReplyObject(reply);
    freeReplyObject(CALL(SCRIPT_key_end_due, "100", "0"));
    freeReplyObject(settle("ok", "n9"));
    expect_field("settlement", "n9");
    expect_field("ahead", "0");
    EXPECT_NEAR(kept_now() - clock_wall_ms(), 0);
}

/* A clock that is ahead and right: what lies between ends at once. */
Test(lua_time, says_how_many_end_when_it_is_settled)
{
    redisReply *reply;

    ask("HSET t:store id aa");
    make_key();
    schedule_key(1);
    schedule();
    ask("HSET t:store ahead -7200000 time 5");
    clock_file_set(&redis_clock, 7200);
    reply = settle("ok", "n9");
    EXPECT_NEAR(reply->element[1]->integer, -2 * HOUR);
    cr_expect_eq(reply->element[3]->integer, 1);
    freeReplyObject(reply);
    reply = CALL(SCRIPT_key_end_due, "100", "0");
    cr_expect_eq(reply->elements, 2);
    freeReplyObject(reply);
}

/* A reader that saw the file empty went by the true time for a moment, and Redis dropped what had a short life. */
Test(lua_time, a_clock_that_is_set_is_never_seen_empty)
{
    enum { SETS = 2000 };
    pid_t reader = fork();
    int status;

    while (reader == 0) {
        char *text = file_read(redis_clock.path);

        if (strcmp(text, "-7200\n") == 0)
            _exit(0);
        if (strcmp(text, "0\n") != 0)
            _exit(1);
        free(text);
    }
    for (unsigned i = 0; i < SETS; i++)
        clock_file_set(&redis_clock, 0);
    clock_file_set(&redis_clock, -7200);
    cr_assert_eq(waitpid(reader, &status, 0), reader);
    cr_expect_eq(status, 0);
}
