/* Nodes that find their Redis by Sentinels, and what a failover does to them: they answer 503 for a while, and then as
 * before; no revoked key is accepted on the way by any of them, and nothing that was acknowledged is lost. */
#include "fixture.h"
#include "leak_guard.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sentinel, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, STEP_MS = 10 };

static const char BY_NATURE[] = "Sentinels watch one Redis and its replicas";

static const char *const MORE[] = {"--min-replicas", "1", "--redis-timeout-ms", "500", NULL};

struct scene {
    struct fixture fixture;
    struct sentinels sentinels;
    struct watched_keys keys;
};

static void scene_start(struct scene *scene, unsigned replicas)
{
    struct fixture *fixture = &scene->fixture;

    scene->keys.fixture = fixture;
    fixture_use_one_redis(BY_NATURE);
    fixture_start(fixture, 0, NULL);
    sentinels_start(&scene->sentinels, &fixture->redis, replicas);
    snprintf(fixture->redis.url, sizeof fixture->redis.url, "%s", scene->sentinels.url);
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(fixture, MORE);
}

static void scene_stop(struct scene *scene)
{
    fixture_stop(&scene->fixture);
    sentinels_stop(&scene->sentinels);
}

Test(sentinel, a_master_that_is_killed_is_followed_by_another)
{
    static struct scene scene;

    scene_start(&scene, 2);
    watched_keys_make(&scene.keys);
    unsigned first = sentinels_master(&scene.sentinels);
    redis_server_kill(scene.sentinels.redises[first]);
    watched_keys_check_until_known(&scene.keys, 0);
    cr_assert_neq(sentinels_master(&scene.sentinels), first);
    watched_keys_change_everything(&scene.keys);
    cr_expect(file_contains(scene.fixture.nodes[0].process.err_path, "lease lost: checks are answered 503 until"));
    cr_expect_not(file_contains(scene.fixture.nodes[0].process.err_path, "lease lost: checks read Redis"));
    scene_stop(&scene);
}

/* The worse case: the old one still believes that it is the master when it wakes. */
Test(sentinel, a_master_that_wakes_again_decides_nothing)
{
    static struct scene scene;

    scene_start(&scene, 2);
    watched_keys_make(&scene.keys);
    unsigned first = sentinels_master(&scene.sentinels);
    redis_server_freeze(scene.sentinels.redises[first]);
    watched_keys_check_until_known(&scene.keys, 0);
    watched_keys_revoke(&scene.keys, 0, &scene.keys.kept[0]);
    scene.keys.revoked[0] = scene.keys.kept[0];
    scene.keys.kept[0] = scene.keys.kept[1];
    redis_server_thaw(scene.sentinels.redises[first]);
    watched_keys_check_until_known(&scene.keys, 3000);
    cr_assert(sentinels_wait_whole(&scene.sentinels, PATIENCE_MS), "the old master becomes a replica");
    watched_keys_check_until_known(&scene.keys, 0);
    watched_keys_change_everything(&scene.keys);
    scene_stop(&scene);
}

static long count_events(const struct scene *scene)
{
    char name[64], reply[32];

    snprintf(name, sizeof name, "acct:%s:audit:live", scene->fixture.account);
    redis_server_ask(&scene->fixture.redis, reply, sizeof reply, "XLEN", fixture_name(scene->fixture.account, name),
                     NULL);
    return strtol(reply, NULL, 10);
}

/* What node 0 answers about the key, once it decides. */
static int await_decision(const struct scene *scene, const struct fixture_key *key)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = fixture_try_key(&scene->fixture, 0, key->secret)) == 503) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the node does not come back");
        poll(NULL, 0, STEP_MS);
    }
    return status;
}

/* One replica alone, so that nothing is left to acknowledge. */
Test(sentinel, a_change_that_no_replica_takes_is_not_answered)
{
    static struct scene scene;
    struct fixture_key key;
    long events;

    scene_start(&scene, 1);
    watched_keys_create(&scene.keys, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    events = count_events(&scene);
    int64_t start_ms = deadline_now_ms();
    do { /* again if the lease ended first, on a busy machine: then nothing was sent to the master, or it came late */
        int status = await_decision(&scene, &key);
        cr_assert(status == 200 || (status == 401 && count_events(&scene) > events), "%d", status);
        redis_server_freeze(scene.sentinels.redises[1]);
        cr_assert_eq(watched_keys_try_revoke(&scene.keys, 0, &key), 503, "answered though the replica hangs");
        redis_server_thaw(scene.sentinels.redises[1]);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "nothing is sent to the master");
    } while (count_events(&scene) == events);
    start_ms = deadline_now_ms();
    while (fixture_try_key(&scene.fixture, 1, key.secret) != 401) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "what was not answered may be done, and was");
        poll(NULL, 0, STEP_MS);
    }
    while (watched_keys_try_revoke(&scene.keys, 1, &key) != 200) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "and is answered once the replica is back");
        poll(NULL, 0, STEP_MS);
    }
    scene_stop(&scene);
}

static void expect_refusal(struct fixture *fixture, const char *const *args, int code, const char *sentence)
{
    char *err;

    cr_expect_eq(fixture_run(fixture, args, NULL, NULL, &err), code, "%s", err);
    cr_expect_not_null(strstr(err, sentence), "%s", err);
    free(err);
}

#define LIST "account", "list", "--min-replicas", "1"
#define HASTY "--redis-timeout-ms", "3000" /* is waited for twice */

/* Sentinels have half a second to answer, which may be short on a busy machine: what shall succeed may take several
 * attempts. */
static void expect_auth(struct scene *scene, const char *line, const char *sentence)
{
    char path[PROCESS_PATH_BYTES];
    const char *const good[] = {LIST, "--sentinel-auth-file", path, NULL};
    const char *const refused[] = {LIST, "--sentinel-auth-file", path, HASTY, NULL};

    snprintf(path, sizeof path, "%.100s/sentinel-auth", scene->fixture.folder);
    file_write(path, line);
    if (sentence)
        expect_refusal(&scene->fixture, refused, 1, sentence);
    else
        fixture_run_until(&scene->fixture, good, "North Clinic");
}

/* A Redis where a Sentinel is named, whether it asks for a password or not, and the reverse. */
static void expect_the_other_kind(struct scene *scene)
{
    static const char *const ARGS[] = {LIST, HASTY, NULL};
    char *url = scene->fixture.redis.url;
    size_t size = sizeof scene->fixture.redis.url;
    struct redis_server other;

    snprintf(url, size, "redis://:sesame@127.0.0.1:%u", scene->sentinels.servers[0].port);
    expect_refusal(&scene->fixture, ARGS, 1, "this is a Sentinel: write redis-sentinel://");
    redis_server_start(&other, NULL);
    redis_server_open_port(&other);
    snprintf(url, size, "redis-sentinel://127.0.0.1:%u/keys", other.port);
    expect_refusal(&scene->fixture, ARGS, 1, "this is no Sentinel: name Sentinels behind redis-sentinel://");
    redis_server_tell(&other, "CONFIG", "SET", "requirepass", "guarded", NULL);
    expect_refusal(&scene->fixture, ARGS, 1, "this is no Sentinel: name Sentinels behind redis-sentinel://");
    redis_server_kill(&other);
    redis_server_stop(&other);
}

/* Their users are not those of Redis. */
Test(sentinel, sentinels_ask_for_a_password_of_their_own)
{
    static const char *const NO_AUTH[] = {LIST, HASTY, NULL};
    static struct scene scene;
    char path[PROCESS_PATH_BYTES];

    scene.keys.fixture = &scene.fixture;
    fixture_use_one_redis(BY_NATURE);
    fixture_start(&scene.fixture, 0, NULL);
    sentinels_start(&scene.sentinels, &scene.fixture.redis, 2);
    sentinels_demand(&scene.sentinels, "sesame", "watcher", "of:watchers");
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", scene.sentinels.url);
    expect_refusal(&scene.fixture, NO_AUTH, 1, "NOAUTH Authentication required (see --sentinel-auth-file)");
    expect_auth(&scene, "watcher:wrong\n", "Sentinel 127.0.0.1:");
    expect_auth(&scene, "watcher:wrong\n", ": WRONGPASS invalid username-password pair or user is disabled (see");
    expect_auth(&scene, ":sesame", NULL);
    expect_auth(&scene, "watcher:of:watchers\n", NULL);

    snprintf(path, sizeof path, "%.100s/sentinel-auth", scene.fixture.folder);
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&scene.fixture, (const char *const[]){"--min-replicas", "1", "--redis-timeout-ms", "500",
                                                               "--sentinel-auth-file", path, NULL});
    watched_keys_make(&scene.keys);
    redis_server_kill(&scene.fixture.redis);
    watched_keys_check_until_known(&scene.keys, 0);
    redis_server_restart(&scene.fixture.redis);
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_tell(&scene.sentinels.servers[i], "ACL", "SETUSER", "watcher", "-sentinel|master", NULL);
    expect_auth(&scene, "watcher:of:watchers\n", ": NOPERM ");
    expect_the_other_kind(&scene);
    setenv("CHATELAINE_SENTINEL_AUTH_FILE", path, 1);
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "redis://127.0.0.1:1");
    expect_refusal(&scene.fixture, NO_AUTH, 2, "only for Sentinels");
    unsetenv("CHATELAINE_SENTINEL_AUTH_FILE");
    scene_stop(&scene);
}

#define SERVE "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--public-origin", NODE_ORIGIN

Test(sentinel, serve_refuses_what_a_failover_would_break)
{
    static const char *const NO_REPLICAS[] = {SERVE, NULL};
    static const char *const STRICT[] = {SERVE, "--min-replicas", "1", "--lease-ms", "0", NULL};
    static const char *const GOOD[] = {SERVE, "--min-replicas", "1", NULL};
    static const char *const DOCTOR[] = {"doctor", "--public-origin", NODE_ORIGIN, "--min-replicas", "1", NULL};
    static struct scene scene;
    char *out;

    fixture_use_one_redis(BY_NATURE);
    fixture_start(&scene.fixture, 0, NULL);
    sentinels_start(&scene.sentinels, &scene.fixture.redis, 1);
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", scene.sentinels.url);
    expect_refusal(&scene.fixture, NO_REPLICAS, 2, "--min-replicas 1 or more");
    expect_refusal(&scene.fixture, STRICT, 2, "--lease-ms above 0");
    /* It waits half a second for each Sentinel, which may be short on a busy machine. */
    fixture_run_until(&scene.fixture, DOCTOR, "3 of 3 know the master, 3 agree; quorum 2 of 3");
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "min-replicas-max-lag", "10", NULL);
    expect_refusal(&scene.fixture, GOOD, 3, "min-replicas-max-lag 2");
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
    expect_refusal(&scene.fixture, GOOD, 3, "min-replicas-to-write 1");
    cr_expect_eq(fixture_run(&scene.fixture, DOCTOR, NULL, &out, NULL), 3, "%s", out);
    cr_expect_not_null(strstr(out, "\nfail  min-replicas-to-write "), "%s", out);
    free(out);
    scene_stop(&scene);
}

static void add_replica(const struct scene *scene, struct redis_server *replica)
{
    char port[8];

    redis_server_start(replica, &(struct redis_server_options){.tcp = true, .guarded = true});
    snprintf(port, sizeof port, "%u", scene->fixture.redis.port);
    redis_server_tell(replica, "REPLICAOF", "127.0.0.1", port, NULL);
}

/* A replica too many: whoever starts is refused, and whoever serves goes on and says so. */
Test(sentinel, more_than_twice_as_many_replicas_as_must_acknowledge)
{
    static const char *const GOOD[] = {SERVE, "--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};
    static const char *const DOCTOR[] = {"doctor", "--public-origin",    NODE_ORIGIN, "--min-replicas",
                                         "1",      "--redis-timeout-ms", "1000",      NULL};
    static const char *const MOST[] = {"doctor", "--public-origin",    NODE_ORIGIN, "--min-replicas",
                                       "2",      "--redis-timeout-ms", "1000",      NULL};
    static const char *const LISTING[] = {"account", "list", "--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};
    static struct scene scene;
    struct redis_server third;
    struct fixture_key key;
    char *out;

    scene_start(&scene, 2);
    add_replica(&scene, &third);
    while (!file_contains(scene.fixture.nodes[0].process.err_path, "fewer than half of the replicas acknowledge"))
        poll(NULL, 0, STEP_MS);
    fixture_create_key(&scene.fixture, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    cr_expect_eq(fixture_try_key(&scene.fixture, 0, key.secret), 200);
    expect_refusal(&scene.fixture, GOOD, 3, "raise --min-replicas to half the number of replicas");
    expect_refusal(&scene.fixture, LISTING, 3, "raise --min-replicas to half the number of replicas");
    cr_expect_eq(fixture_run(&scene.fixture, DOCTOR, NULL, &out, NULL), 3, "%s", out);
    cr_expect_not_null(strstr(out, "\nfail  leases "), "%s", out);
    free(out);
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "min-replicas-to-write", "2", NULL);
    fixture_run_until(&scene.fixture, MOST, "\nok    leases ");
    fixture_add_node(&scene.fixture,
                     (const char *const[]){"--min-replicas", "1", "--redis-timeout-ms", "500", "--unsafe-redis", NULL});
    scene_stop(&scene);
    redis_server_stop(&third);
}
