/* The time that scheduled revocations go by, while Redis' clock is set: never late, never more than 0.2 s early, and
 * what an operator sees of it and can do. */
#include "base/clock.h"
#include "cli.h"
#include "clock_file.h"
#include "fixture.h"
#include "leak_guard.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(store_time, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, STEP_MS = 5, EARLY_MS = 200, S = 1000, CHECKS = 50, CLOCK_LASTS_MS = 300, LAST_MOMENT_MS = 20 };

static struct fixture f;
static struct clock_file redis_clock; /* this machine's is the true time */

static void start_with(const char *const *more)
{
    fixture_use_one_redis("the test sets the clock of one server");
    clock_file_make(&redis_clock, 0);
    clock_file_begin(&redis_clock, NULL);
    fixture_start(&f, 0, NULL);
    clock_file_end();
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&f, more);
}

static void start(void)
{
    start_with(NULL);
}

/* How often to repeat what adds up (scripts/clocks). */
static unsigned cycles(void)
{
    enum { ALWAYS = 2, MOST = 20 };
    const char *text = getenv("CHATELAINE_TEST_CYCLES");
    uint64_t count = ALWAYS;

    cr_assert(!text || text_to_u64(text_of(text), MOST, &count), "CHATELAINE_TEST_CYCLES=%s", text);
    return (unsigned)count;
}

static void stop(void)
{
    fixture_stop(&f);
    clock_file_remove(&redis_clock);
}

/* A key that every node has in its cache, and that ends so many ms later. Returns when. */
static int64_t make_key(int64_t in_ms, struct fixture_key *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int64_t ends_ms;
    struct http_answer answer;
    char at[CLOCK_RFC3339_BYTES], json[64], target[128];

    watched_keys_create(&(struct watched_keys){.fixture = &f}, 0,
                        "{\"name\":\"a\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", key);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, key->secret, 200);
    ends_ms = clock_wall_ms() + in_ms;
    clock_print_rfc3339(ends_ms, at);
    snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
    snprintf(target, sizeof target, "/v1/api_keys/%s/scheduled_revocation", key->id);
    const struct http_call call = {.method = "PUT", .target = target, .bearer = f.manager.secret, .json = json};
    while (fixture_call(&f, 0, &call, &answer) == 503) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
        poll(NULL, 0, STEP_MS);
    }
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    return ends_ms;
}

/* Nodes that have just started wait 3 s for others that may know better. Then they keep the time. */
static void await_nodes_know(void)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char first[64], now[64];

    redis_server_ask(&f.redis, first, sizeof first, "HGET", fixture_name(NULL, "store"), "time", NULL);
    do {
        poll(NULL, 0, STEP_MS);
        redis_server_ask(&f.redis, now, sizeof now, "HGET", fixture_name(NULL, "store"), "time", NULL);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", now);
    } while (strcmp(first, now) == 0);
}

/* One check through each node. Returns how many have refused it. */
static unsigned check(const struct fixture_key *key, int64_t ends_ms)
{
    unsigned refused = 0;

    for (size_t node = 0; node < NODES; node++) {
        int64_t began_ms = clock_wall_ms();
        int status = fixture_try_key(&f, node, key->secret);
        int64_t ended_ms = clock_wall_ms();

        cr_assert(status == 200 || status == 401 || status == 503, "%d", status);
        cr_expect_not(status == 200 && began_ms >= ends_ms, "node %zu: late by %lld ms", node,
                      (long long)(began_ms - ends_ms));
        cr_expect_not(status == 401 && ended_ms < ends_ms - EARLY_MS, "node %zu: early by %lld ms", node,
                      (long long)(ends_ms - ended_ms));
        refused += status == 401;
    }
    return refused;
}

/* Set for a while each, as far as they say, over and over, until the key is refused everywhere. */
static void expect_end_while_clocks_are_set(const struct fixture_key *key, int64_t ends_ms, const int *clocks,
                                            unsigned count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS), lasts = {0};
    unsigned at = 0;

    while (check(key, ends_ms) < NODES) {
        if (deadline_left_ms(lasts) <= 0) {
            clock_file_set(&redis_clock, clocks[at++ % count]);
            lasts = deadline_in(CLOCK_LASTS_MS);
        }
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, STEP_MS);
    }
}

Test(store_time, a_clock_that_is_set_to_and_fro_neither_delays_nor_ends_anything)
{
    static const int CLOCKS[] = {60, 0, -60, 0, 30, -30, 0, 3600, 0, -3600, 7200, 0};
    int64_t ends_ms;
    struct fixture_key key, last;

    start();
    make_key(24 * 3600 * S, &last);
    await_nodes_know();
    for (unsigned i = 0; i < cycles(); i++) {
        ends_ms = make_key(6 * S, &key);
        expect_end_while_clocks_are_set(&key, ends_ms, CLOCKS, sizeof CLOCKS / sizeof *CLOCKS);
    }
    clock_file_set(&redis_clock, 0);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, last.secret, 200);
    stop();
}

/* The first master goes by the true time, its replicas are half a minute late. */
static void start_with_late_replicas(struct sentinels *sentinels, unsigned replicas)
{
    static const char *const MORE[] = {"--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};

    fixture_use_one_redis("Sentinels watch one Redis and its replicas");
    fixture_start(&f, 0, NULL);
    clock_file_make(&redis_clock, -30);
    clock_file_begin(&redis_clock, NULL);
    sentinels_start(sentinels, &f.redis, replicas);
    clock_file_end();
    snprintf(f.redis.url, sizeof f.redis.url, "%s", sentinels->url);
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&f, MORE);
}

static void fail_over(const struct sentinels *sentinels)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    unsigned before = sentinels_master(sentinels);
    char reply[256];

    do {
        redis_server_ask(&sentinels->servers[0], reply, sizeof reply, "SENTINEL", "FAILOVER", SENTINELS_MASTER_NAME,
                         NULL);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", reply);
        poll(NULL, 0, STEP_MS);
    } while (sentinels_master(sentinels) == before);
}

/* What each failover adds to the time would add up. */
Test(store_time, failovers_between_clocks_that_differ_neither_delay_nor_end_anything)
{
    static struct sentinels sentinels;
    struct fixture_key key, last;

    start_with_late_replicas(&sentinels, 1);
    make_key(24 * 3600 * S, &last);
    for (unsigned i = 0; i < cycles(); i++) {
        int64_t ends_ms = make_key(6 * S, &key);
        fail_over(&sentinels);
        while (check(&key, ends_ms) < NODES)
            poll(NULL, 0, STEP_MS);
        cr_assert(sentinels_wait_whole(&sentinels, PATIENCE_MS), "failover %u: the old master becomes a replica", i);
        for (size_t node = 0; node < NODES; node++)
            fixture_await_key(&f, node, last.secret, 200);
    }
    stop();
    sentinels_stop(&sentinels);
}

/* Nobody can ask the old one. */
Test(store_time, a_failover_from_a_redis_that_died_delays_nothing)
{
    static struct sentinels sentinels;
    int64_t ends_ms;
    struct fixture_key soon, later;

    start_with_late_replicas(&sentinels, 2);
    make_key(3600 * S, &later);
    ends_ms = make_key(8 * S, &soon);
    redis_server_kill(&f.redis);
    while (check(&soon, ends_ms) < NODES)
        poll(NULL, 0, STEP_MS);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&f, node, later.secret, 200);
    stop();
    sentinels_stop(&sentinels);
}

/* Until it gets that status, and then for some checks more: never `not`. */
static void await_status(const struct fixture_key *key, int wanted, int not )
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    unsigned in_a_row = 0;

    while (in_a_row < NODES * CHECKS) {
        int status = fixture_try_key(&f, in_a_row % NODES, key->secret);

        cr_expect_neq(status, not );
        in_a_row = status == wanted ? in_a_row + 1 : 0;
        cr_assert_gt(deadline_left_ms(deadline), 0, "%d, not %d", status, wanted);
        poll(NULL, 0, STEP_MS);
    }
}

/* Just before the key's time, so that hardly ever a heartbeat comes between: each node sends one every second. Young
 * nodes wait 5 s for each other before they answer. */
Test(store_time, a_clock_that_is_set_back_in_the_last_moment_delays_nothing)
{
    static const char *const MORE[] = {"--lease-ms", "4000", NULL};
    int64_t ends_ms;
    struct fixture_key key;

    start_with(MORE);
    ends_ms = make_key(8 * S, &key);
    while (clock_wall_ms() < ends_ms - LAST_MOMENT_MS)
        poll(NULL, 0, 1);
    expect_end_while_clocks_are_set(&key, ends_ms, (const int[]){-3600}, 1);
    clock_file_set(&redis_clock, -7200);
    await_status(&key, 401, 200);
    stop();
}

static void expect_says(const char *const *args, int exit_code, const char *says)
{
    struct cli_run run;

    cli_run(&f, &run, args, NULL);
    cr_expect_eq(run.exit_code, exit_code, "%d: %s%s", run.exit_code, run.out, run.err);
    cr_expect(strstr(run.out, says) || strstr(run.err, says), "no '%s' in %s%s", says, run.out, run.err);
    cli_finish(&run);
}

#define EXPECT_SAYS(exit_code, says, ...) expect_says((const char *const[]){__VA_ARGS__, NULL}, exit_code, says)

/* It may be right, or wrong: nobody accepts the key, and nobody ends it. */
Test(store_time, a_clock_that_is_set_forward_ends_nothing_and_a_key_that_ends_before_it_is_not_accepted)
{
    struct fixture_key key, later;

    start();
    make_key(3600 * S, &key);
    make_key(4 * 3600 * S, &later);
    await_nodes_know();
    clock_file_set(&redis_clock, 7200);
    await_status(&key, 503, 401);
    cr_expect_eq(fixture_sum(&f, "ZCARD", "key_ends"), 2);
    await_status(&later, 200, 401);
    EXPECT_SAYS(3, "Redis' clock was set forward", "doctor", "--public-origin", NODE_ORIGIN);
    EXPECT_SAYS(3, "s behind Redis' clock", "status");
    EXPECT_SAYS(3, "\"time_ahead_ms\":-7", "status", "--json");
    clock_file_set(&redis_clock, 0);
    await_status(&key, 200, 401);
    EXPECT_SAYS(0, "scheduled revocations go by Redis' clock", "doctor", "--public-origin", NODE_ORIGIN);
    stop();
}

Test(store_time, an_operator_says_that_a_clock_that_was_set_forward_is_right)
{
    struct fixture_key key, later;
    char events[4096];

    start();
    EXPECT_SAYS(0, "go by Redis' clock; nothing was changed", "store", "settle-time");
    make_key(3600 * S, &key);
    make_key(4 * 3600 * S, &later);
    await_nodes_know();
    clock_file_set(&redis_clock, 7200);
    await_status(&key, 503, 401);
    EXPECT_SAYS(0, "1 of them take effect at once", "store", "settle-time", "--dry-run");
    EXPECT_SAYS(1, "one of the two is wrong", "store", "settle-time", "--yes");
    EXPECT_SAYS(2, "1 of them take effect at once", "store", "settle-time", "--trust-clock");
    await_status(&key, 503, 401);
    EXPECT_SAYS(0, "{\"settled\":true,\"ahead_ms\":-7", "store", "settle-time", "--trust-clock", "--yes", "--json");
    await_status(&key, 401, 200);
    await_status(&later, 200, 401);
    EXPECT_SAYS(0, "nothing was changed", "store", "settle-time");
    redis_server_ask(&f.redis, events, sizeof events, "XRANGE", fixture_name(NULL, "audit"), "-", "+", NULL);
    cr_expect(strstr(events, "store.time_settled"), "%s", events);
    stop();
}

/* What has ended before stays so. */
Test(store_time, an_operator_says_that_a_clock_that_was_set_back_is_right)
{
    int64_t ends_ms;
    struct fixture_key key, later;

    start();
    make_key(3600 * S, &later);
    await_nodes_know();
    ends_ms = make_key(4 * S, &key);
    expect_end_while_clocks_are_set(&key, ends_ms, (const int[]){-7200}, 1);
    EXPECT_SAYS(3, "Redis' clock was set back", "doctor", "--public-origin", NODE_ORIGIN);
    EXPECT_SAYS(0, "{\"settled\":true,\"ahead_ms\":7", "store", "settle-time", "--trust-clock", "--yes", "--json");
    await_status(&later, 200, 401);
    await_status(&key, 401, 200);
    /* The nodes' clocks are the ones that are wrong now. */
    EXPECT_SAYS(3, "clock and Redis' clock differ", "status");
    EXPECT_SAYS(3, "of scheduled revocations: Redis' clock", "status");
    stop();
}

/* It goes by what it was told first, although that does not count for more than others know. */
Test(store_time, nodes_that_have_just_started_are_not_late_and_not_early)
{
    static const int CLOCKS[] = {-3600, 60, 0};

    for (unsigned i = 0; i < 3; i++) {
        struct fixture_key key;
        int64_t ends_ms;

        start();
        ends_ms = make_key(3 * S, &key);
        expect_end_while_clocks_are_set(&key, ends_ms, &CLOCKS[i], 1);
        stop();
    }
}

/* Nobody is there who knows better. */
Test(store_time, a_clock_that_was_set_while_no_node_ran_is_believed)
{
    struct fixture_key key, later;

    start();
    make_key(3600 * S, &key);
    make_key(4 * 3600 * S, &later);
    for (unsigned i = 0; i < NODES; i++)
        node_stop(&f.nodes[i]);
    f.node_count = 0;
    clock_file_set(&redis_clock, 7200);
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&f, NULL);
    await_status(&later, 200, 401);
    await_status(&key, 401, 200);
    stop();
}
