/* Masters that Sentinel has replaced and that do not know it: they were frozen together with a node, or cut off
 * together with one, while others promoted a replica and answered a revocation there. Everybody finds the first master
 * through a proxy, so that it can be kept from hearing that its replicas have left. */
#include "clock_file.h"
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"
#include "redis_proxy.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(takeover, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { BESIDE, ELSEWHERE, NODES }; /* the node beside the first master hears of the first Sentinel alone */
enum { REPLICAS = 2, STEP_MS = 10, LOOKED_MS = 3000, CHECKS = 10 };

static const char *const ONE[] = {"--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};
static const char *const ALL_SLOW[] = {"--min-replicas", "2", "--redis-timeout-ms", "5000", NULL};

static struct scene {
    struct fixture fixture;
    struct redis_proxy *proxy; /* in front of the first master */
    struct sentinels sentinels;
    struct watched_keys keys; /* for its functions */
    struct fixture_key key;
} scene;

static void start_fixture(void)
{
    fixture_use_one_redis("Sentinels watch one Redis and its replicas");
    fixture_start(&scene.fixture, 0, NULL);
}

static void scene_begin(void)
{
    scene.keys.fixture = &scene.fixture;
    if (!scene.fixture.redis.process.pid)
        start_fixture();
    scene.proxy = redis_proxy_start(scene.fixture.redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    redis_server_put_behind(&scene.fixture.redis, redis_proxy_port(scene.proxy, 0));
    sentinels_start(&scene.sentinels, &scene.fixture.redis, REPLICAS);
}

static void add_node(const char *url, const char *const *more)
{
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", url);
    fixture_add_node(&scene.fixture, more);
}

static int check(unsigned node)
{
    return fixture_try_key(&scene.fixture, node, scene.key.secret);
}

/* Both nodes remember the key. */
static void scene_start(const char *const *more)
{
    scene_begin();
    add_node(scene.sentinels.url_of_first, more);
    add_node(scene.sentinels.url, more);
    watched_keys_create(&scene.keys, ELSEWHERE, "{\"name\":\"a\",\"mode\":\"live\"}", &scene.key);
    for (unsigned node = 0; node < NODES; node++)
        watched_keys_await(&scene.keys, node, &scene.key, 200);
    redis_server_freeze(&scene.sentinels.servers[0]);
}

static void scene_stop(void)
{
    redis_server_thaw(&scene.sentinels.servers[0]);
    fixture_stop(&scene.fixture);
    redis_proxy_stop(scene.proxy);
    sentinels_stop(&scene.sentinels);
}

/* The first master and whoever is beside it, from replicas, Sentinels and the rest. */
static void cut_off(bool is_cut)
{
    for (unsigned direction = 0; direction < REDIS_PROXY_DIRECTIONS; direction++)
        redis_proxy_hold(scene.proxy, 0, REDIS_PROXY_UNNAMED, direction, is_cut);
}

static void wait_for_takeover(void)
{
    int64_t start_ms = deadline_now_ms();

    while (sentinels_master(&scene.sentinels) == 0) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "nobody takes over");
        poll(NULL, 0, STEP_MS);
    }
}

static void revoke_elsewhere(void)
{
    watched_keys_revoke(&scene.keys, ELSEWHERE, &scene.key);
}

static void expect_not_accepted(void)
{
    int64_t start_ms = deadline_now_ms();
    unsigned checks = 0;

    for (; deadline_now_ms() - start_ms < LOOKED_MS || checks < CHECKS; checks++) {
        int status = check(BESIDE);

        cr_assert(status == 401 || status == 503, "%d after %d ms", status, (int)(deadline_now_ms() - start_ms));
    }
}

/* Meanwhile the frozen master's socket holds what replicas have sent: that they have all they were sent. It will take
 * that for news. */
static void wait_until_missed(void)
{
    int64_t start_ms = deadline_now_ms();
    char reply[4096];

    do {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "nobody misses it");
        poll(NULL, 0, STEP_MS);
        redis_server_ask(&scene.sentinels.servers[1], reply, sizeof reply, "SENTINEL", "MASTER", SENTINELS_MASTER_NAME,
                         NULL);
    } while (!strstr(reply, "s_down") && sentinels_master(&scene.sentinels) == 0);
}

/* Its clock goes on, as with a virtual machine that is stunned or moved. */
static void freeze_first_master_and_node(bool is_frozen)
{
    if (is_frozen)
        process_signal(&scene.fixture.nodes[BESIDE].process, SIGSTOP);
    process_signal(&scene.fixture.redis.process, is_frozen ? SIGSTOP : SIGCONT);
    if (!is_frozen)
        process_signal(&scene.fixture.nodes[BESIDE].process, SIGCONT);
}

/* The old master has counted its replicas before it froze, and is asked for a lease before it counts again. */
Test(takeover, a_master_that_froze_with_a_node_grants_nothing_when_they_wake)
{
    scene_start(ONE);
    freeze_first_master_and_node(true);
    wait_until_missed();
    cut_off(true);
    wait_for_takeover();
    revoke_elsewhere();
    freeze_first_master_and_node(false);
    expect_not_accepted();
    cut_off(false);
    expect_not_accepted();
    scene_stop();
}

/* Leases that were granted before end before the revocation is answered, though the new master knows nothing of the
 * node's present session. */
Test(takeover, a_master_that_is_cut_off_with_a_node)
{
    scene_start(ONE);
    cut_off(true);
    wait_for_takeover();
    revoke_elsewhere();
    expect_not_accepted();
    cut_off(false);
    scene_stop();
}

/* Redis tells by its wall clock since when a replica is silent: one that is set back hides it. */
Test(takeover, a_master_whose_clock_is_set_back_as_it_is_cut_off)
{
    struct clock_file redis_clock;
    char before[64], after[64];

    clock_file_make(&redis_clock, 0);
    clock_file_begin(&redis_clock, NULL);
    start_fixture();
    clock_file_end();
    scene_start(ONE);
    redis_server_ask(&scene.fixture.redis, before, sizeof before, "TIME", NULL);
    cut_off(true);
    clock_file_set(&redis_clock, -20);
    redis_server_ask(&scene.fixture.redis, after, sizeof after, "TIME", NULL);
    cr_assert_lt(strtoll(after, NULL, 10), strtoll(before, NULL, 10) - 10, "the clock is shifted");
    wait_for_takeover();
    revoke_elsewhere();
    expect_not_accepted();
    cut_off(false);
    scene_stop();
    clock_file_remove(&redis_clock);
}

static void expect_refusal(const char *const *args, const char *sentence)
{
    char *err;

    cr_expect_eq(fixture_run(&scene.fixture, args, NULL, NULL, &err), 3, "%s", err);
    cr_expect_not_null(strstr(err, sentence), "%s", err);
    free(err);
}

#define SERVE "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--public-origin", NODE_ORIGIN

/* One of two acknowledges: the other may be promoted that has never heard of this lease. */
Test(takeover, serve_refuses_what_a_replica_may_not_know_of)
{
    static const char *const LONG_LEASE[] = {SERVE,  "--min-replicas", "1",    "--redis-timeout-ms",
                                             "1000", "--lease-ms",     "1001", NULL};
    static const char *const LONG_TIMEOUT[] = {SERVE, "--min-replicas", "1", "--redis-timeout-ms", "1001", NULL};

    scene_begin();
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", scene.sentinels.url);
    expect_refusal(LONG_LEASE, "lower --lease-ms to 1000");
    expect_refusal(LONG_TIMEOUT, "lower --redis-timeout-ms to 1000");
    /* Replicas that are down count as well, for they may be up again when one is promoted. */
    redis_server_kill(&scene.sentinels.replicas[0]);
    expect_refusal(LONG_LEASE, "lower --lease-ms to 1000");
    scene_stop();
}

/* Where all acknowledge a node may stay as long as it likes with a master that freezes: it gets nothing from it. */
Test(takeover, a_master_that_froze_alone_grants_nothing_when_it_wakes)
{
    scene_start(ALL_SLOW);
    redis_server_freeze(&scene.fixture.redis);
    wait_until_missed();
    cut_off(true);
    wait_for_takeover();
    int64_t start_ms = deadline_now_ms();
    for (int64_t sent_ms = start_ms; check(BESIDE) == 200; sent_ms = deadline_now_ms())
        cr_assert_lt(sent_ms - start_ms, 2000, "a lease ends");
    redis_server_thaw(&scene.fixture.redis);
    expect_not_accepted();
    cut_off(false);
    revoke_elsewhere();
    expect_not_accepted();
    scene_stop();
}
