/* Nodes that find their Redis by Sentinels, and what a failover does to them: they answer 503 for a while, and then as
 * before; no revoked key is accepted on the way by any of them, and nothing that was acknowledged is lost. */
#include "fixture.h"
#include "leak_guard.h"
#include "sentinels.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sentinel, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, STEP_MS = 10, KEYS = 8 };

static const char *const MORE[] = {"--min-replicas", "1", "--redis-timeout-ms", "500", NULL};

struct scene {
    struct fixture fixture;
    struct sentinels sentinels;
    struct fixture_key kept[KEYS], revoked[KEYS];
};

static void scene_start(struct scene *scene, unsigned replicas)
{
    struct fixture *fixture = &scene->fixture;

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

static int revoke(const struct scene *scene, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    return fixture_call(
        &scene->fixture, node,
        &(struct http_call){.method = "DELETE", .target = target, .bearer = scene->fixture.manager.secret}, &answer);
}

/* What a client does whose change was not answered, for a failover may go on behind the first answers: it takes a while
 * until a replica keeps up with its new master. */
static void revoke_at_last(const struct scene *scene, size_t node, const struct fixture_key *key)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = revoke(scene, node, key)) != 200) {
        cr_assert_eq(status, 503);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "changes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

static void create_at_last(const struct scene *scene, size_t node, const char *json, struct fixture_key *ret_key)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = fixture_try_create_key(&scene->fixture, node, json, ret_key)) != 201) {
        cr_assert_eq(status, 503);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "changes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

static void try_at_last(const struct scene *scene, size_t node, const struct fixture_key *key, int wanted)
{
    int64_t start_ms = deadline_now_ms();
    int status;

    while ((status = fixture_try_key(&scene->fixture, node, key->secret)) != wanted) {
        cr_assert_eq(status, 503, "%d at node %zu in place of %d", status, node, wanted);
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the nodes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

/* Alternately kept and revoked, all of them in every node's memory first. */
static void make_keys(struct scene *scene)
{
    for (unsigned i = 0; i < KEYS; i++) {
        create_at_last(scene, i % NODES, "{\"name\":\"kept\",\"mode\":\"live\"}", &scene->kept[i]);
        create_at_last(scene, i % NODES, "{\"name\":\"revoked\",\"mode\":\"live\"}", &scene->revoked[i]);
        for (unsigned node = 0; node < NODES; node++) {
            try_at_last(scene, node, &scene->kept[i], 200);
            try_at_last(scene, node, &scene->revoked[i], 200);
        }
        revoke_at_last(scene, (i + 1) % NODES, &scene->revoked[i]);
    }
}

/* What may be answered at any moment; true when it was the truth, not 503, for all. */
static bool check_keys(const struct scene *scene)
{
    bool is_known = true;

    for (unsigned i = 0; i < KEYS; i++) {
        for (unsigned node = 0; node < NODES; node++) {
            int kept = fixture_try_key(&scene->fixture, node, scene->kept[i].secret);
            int revoked = fixture_try_key(&scene->fixture, node, scene->revoked[i].secret);

            cr_assert(kept == 200 || kept == 503, "an acknowledged key: %d at node %u", kept, node);
            cr_assert(revoked == 401 || revoked == 503, "a revoked key: %d at node %u", revoked, node);
            is_known = is_known && kept == 200 && revoked == 401;
        }
    }
    return is_known;
}

static void check_until_known(const struct scene *scene, int64_t at_least_ms)
{
    int64_t start_ms = deadline_now_ms();

    while (!check_keys(scene) || deadline_now_ms() - start_ms < at_least_ms) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the nodes do not come back");
        poll(NULL, 0, STEP_MS);
    }
}

/* A change through each node; a revocation counts everywhere once it is answered. */
static void change_everything(struct scene *scene)
{
    for (unsigned node = 0; node < NODES; node++) {
        struct fixture_key key;

        create_at_last(scene, node, "{\"name\":\"new\",\"mode\":\"test\"}", &key);
        for (unsigned i = 0; i < NODES; i++)
            try_at_last(scene, i, &key, 200);
        revoke_at_last(scene, (node + 1) % NODES, &key);
        for (unsigned i = 0; i < NODES; i++)
            try_at_last(scene, i, &key, 401);
    }
}

Test(sentinel, a_master_that_is_killed_is_followed_by_another)
{
    static struct scene scene;

    scene_start(&scene, 2);
    make_keys(&scene);
    unsigned first = sentinels_master(&scene.sentinels);
    redis_server_kill(scene.sentinels.redises[first]);
    check_until_known(&scene, 0);
    cr_assert_neq(sentinels_master(&scene.sentinels), first);
    change_everything(&scene);
    cr_expect(file_contains(scene.fixture.nodes[0].process.err_path, "lease lost: checks are answered 503 until"));
    cr_expect_not(file_contains(scene.fixture.nodes[0].process.err_path, "lease lost: checks read Redis"));
    scene_stop(&scene);
}

/* The worse case: the old one still believes that it is the master when it wakes. */
Test(sentinel, a_master_that_wakes_again_decides_nothing)
{
    static struct scene scene;

    scene_start(&scene, 2);
    make_keys(&scene);
    unsigned first = sentinels_master(&scene.sentinels);
    redis_server_freeze(scene.sentinels.redises[first]);
    check_until_known(&scene, 0);
    revoke_at_last(&scene, 0, &scene.kept[0]);
    scene.revoked[0] = scene.kept[0];
    scene.kept[0] = scene.kept[1];
    redis_server_thaw(scene.sentinels.redises[first]);
    check_until_known(&scene, 3000);
    cr_assert(sentinels_wait_whole(&scene.sentinels, PATIENCE_MS), "the old master becomes a replica");
    cr_assert(check_keys(&scene));
    change_everything(&scene);
    scene_stop(&scene);
}

/* One replica alone, so that nothing is left to acknowledge. */
Test(sentinel, a_change_that_no_replica_takes_is_not_answered)
{
    static struct scene scene;
    struct fixture_key key;

    scene_start(&scene, 1);
    create_at_last(&scene, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    redis_server_freeze(scene.sentinels.redises[1]);
    cr_assert_eq(revoke(&scene, 0, &key), 503, "answered though the replica hangs");
    redis_server_thaw(scene.sentinels.redises[1]);
    int64_t start_ms = deadline_now_ms();
    while (fixture_try_key(&scene.fixture, 1, key.secret) != 401) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "what was not answered may be done, and was");
        poll(NULL, 0, STEP_MS);
    }
    while (revoke(&scene, 1, &key) != 200) {
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

static void expect_auth(struct scene *scene, const char *line, const char *sentence)
{
    char path[PROCESS_PATH_BYTES];
    const char *const args[] = {"account", "list", "--min-replicas", "1", "--sentinel-auth-file", path, NULL};
    char *out, *err;

    snprintf(path, sizeof path, "%.100s/sentinel-auth", scene->fixture.folder);
    file_write(path, line);
    cr_expect_eq(fixture_run(&scene->fixture, args, NULL, &out, &err), sentence ? 1 : 0, "%s", err);
    cr_expect(!sentence || strstr(err, sentence), "%s in %s", sentence, err);
    cr_expect(sentence || strstr(out, "North Clinic"), "%s", out);
    free(out);
    free(err);
}

/* Their users are not those of Redis. */
Test(sentinel, sentinels_ask_for_a_password_of_their_own)
{
    static const char *const NO_AUTH[] = {"account", "list", "--min-replicas", "1", NULL};
    static struct scene scene;
    char path[PROCESS_PATH_BYTES];

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
    make_keys(&scene);
    redis_server_kill(&scene.fixture.redis);
    check_until_known(&scene, 0);
    redis_server_restart(&scene.fixture.redis);
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_tell(&scene.sentinels.servers[i], "ACL", "SETUSER", "watcher", "-sentinel|master", NULL);
    expect_auth(&scene, "watcher:of:watchers\n", ": NOPERM ");
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
    static const char *const DOCTOR[] = {"doctor", "--min-replicas", "1", NULL};
    static struct scene scene;
    char *out;

    fixture_start(&scene.fixture, 0, NULL);
    sentinels_start(&scene.sentinels, &scene.fixture.redis, 1);
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", scene.sentinels.url);
    expect_refusal(&scene.fixture, NO_REPLICAS, 2, "--min-replicas 1 or more");
    expect_refusal(&scene.fixture, STRICT, 2, "--lease-ms above 0");
    cr_expect_eq(fixture_run(&scene.fixture, DOCTOR, NULL, &out, NULL), 0, "%s", out);
    cr_expect_not_null(strstr(out, "3 of 3 know the master, 3 agree; quorum 2 of 3"), "%s", out);
    free(out);
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "min-replicas-max-lag", "10", NULL);
    expect_refusal(&scene.fixture, GOOD, 3, "min-replicas-max-lag 2");
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
    expect_refusal(&scene.fixture, GOOD, 3, "min-replicas-to-write 1");
    cr_expect_eq(fixture_run(&scene.fixture, DOCTOR, NULL, &out, NULL), 3, "%s", out);
    cr_expect_not_null(strstr(out, "\nfail  min-replicas-to-write "), "%s", out);
    free(out);
    scene_stop(&scene);
}
