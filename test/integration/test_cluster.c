/* Nodes at a Redis Cluster, and what happens to them when a replica takes over and when a slot moves: they answer 503
 * for a while, and then as before; no revoked key is accepted on the way by any of them. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"
#include "lease/lease.h"
#include "redis_cluster.h"
#include "engine/partitions.h"
#include "records/store_parts.h"
#include "test_loop.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cluster, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, PRIMARIES = 3 };

#define TAG "{0}" /* of the only partition */

static const char *const MORE[] = {"--partitions", "1", "--min-replicas", "1", "--redis-timeout-ms", "500", NULL};

static struct scene {
    struct fixture fixture;
    struct cluster_servers cluster;
    struct watched_keys keys;
} s;

static void scene_start(void)
{
    fixture_use_one_partition("the test starts a cluster of its own, with one partition");
    cluster_servers_start(&s.cluster, PRIMARIES, true);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 1);
    s.keys.fixture = &s.fixture;
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&s.fixture, MORE);
}

static void scene_stop(void)
{
    fixture_stop(&s.fixture);
    cluster_servers_stop(&s.cluster);
}

static unsigned primary(int frozen)
{
    return cluster_servers_primary_of(&s.cluster, TAG, frozen);
}

static bool has_name(unsigned server, const char *name)
{
    char reply[64];

    redis_server_ask(&s.cluster.servers[server], reply, sizeof reply, "EXISTS", name, NULL);
    return strcmp(reply, "1") == 0;
}

static long channels_at(unsigned server, const char *pattern)
{
    char reply[4096];
    long count = 0;

    redis_server_ask(&s.cluster.servers[server], reply, sizeof reply, "PUBSUB", "SHARDCHANNELS", pattern, NULL);
    for (const char *at = reply; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

/* Revokes a new key. True: without the other node's acknowledgement, which may come too late on a busy machine. */
static bool is_forced(struct fixture_key *ret_key)
{
    long forced = fixture_metric(&s.fixture, 0, "chatelaine_barrier_forced_waits_total");

    watched_keys_create(&s.keys, 0, "{\"name\":\"a\",\"mode\":\"live\"}", ret_key);
    watched_keys_await(&s.keys, 1, ret_key, 200);
    watched_keys_revoke(&s.keys, 0, ret_key);
    return fixture_metric(&s.fixture, 0, "chatelaine_barrier_forced_waits_total") != forced;
}

Test(cluster, nodes_serve_from_the_primary_of_their_slot)
{
    struct deadline deadline;
    struct fixture_key key;

    scene_start();
    watched_keys_make(&s.keys);
    watched_keys_check_until_known(&s.keys, 0);
    cr_expect(has_name(primary(-1), "chatelaine:{0}:store"));
    cr_expect_eq(channels_at(primary(-1), "chatelaine:{0}:inv"), 1);
    cr_expect_eq(channels_at(primary(-1), "chatelaine:{0}:node:*"), NODES, "each membership has its own");
    deadline = deadline_in(PATIENCE_MS);
    while (is_forced(&key))
        cr_assert_gt(deadline_left_ms(deadline), 0, "the other node does not hear it, or does not acknowledge it");
    for (unsigned node = 0; node < NODES; node++)
        watched_keys_await(&s.keys, node, &key, 401);
    scene_stop();
}

Test(cluster, a_primary_that_is_killed_is_followed_by_its_replica)
{
    unsigned first, second;

    scene_start();
    watched_keys_make(&s.keys);
    first = primary(-1);
    redis_server_kill(&s.cluster.servers[first]);
    (void)watched_keys_check(&s.keys);
    second = primary(-1);
    cr_assert_neq(first, second);
    cr_assert_not(watched_keys_check(&s.keys), "no replica acknowledges leases");
    redis_server_restart(&s.cluster.servers[first]);
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    cr_expect(file_contains(s.fixture.nodes[0].process.err_path, "failover: the cluster names another primary"));
    scene_stop();
}

static bool is_replica(unsigned server)
{
    char reply[4096];

    redis_server_ask(&s.cluster.servers[server], reply, sizeof reply, "INFO", "replication", NULL);
    return strstr(reply, "role:slave") != NULL;
}

/* The worse case: it still believes that it is the primary when it wakes. */
Test(cluster, a_primary_that_wakes_again_decides_nothing)
{
    struct deadline deadline;
    unsigned first;

    scene_start();
    watched_keys_make(&s.keys);
    first = primary(-1);
    redis_server_freeze(&s.cluster.servers[first]);
    cr_assert_neq(primary((int)first), first);
    (void)watched_keys_check(&s.keys);
    redis_server_thaw(&s.cluster.servers[first]);
    deadline = deadline_in(PATIENCE_MS);
    while (!is_replica(first)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the old primary stays one");
        (void)watched_keys_check(&s.keys);
    }
    watched_keys_check_until_known(&s.keys, 2000);
    cr_assert(cluster_servers_wait_whole(&s.cluster, PATIENCE_MS));
    watched_keys_change_everything(&s.keys);
    scene_stop();
}

/* Tries to revoke a key through each node while its slot is being moved. What was answered counts at once. */
static void revoke_on_the_way(struct fixture_key *key, bool *is_revoked, size_t node)
{
    if (!*is_revoked) {
        int status = watched_keys_try_revoke(&s.keys, node, key);

        cr_assert(status == 200 || status == 503, "%d", status);
        *is_revoked = status == 200;
    }
    for (size_t i = 0; i < NODES; i++) {
        int status = fixture_try_key(&s.fixture, i, key->secret);

        cr_assert(status == 401 || status == 503 || (!*is_revoked && status == 200), "%d at node %zu", status, i);
    }
}

static void move(unsigned from, unsigned to)
{
    struct fixture_key key;
    bool is_revoked = false;
    unsigned moves = 0;

    watched_keys_create(&s.keys, 0, "{\"name\":\"moving\",\"mode\":\"live\"}", &key);
    for (size_t i = 0; i < NODES; i++)
        watched_keys_await(&s.keys, i, &key, 200);
    cluster_servers_move_begin(&s.cluster, TAG, from, to);
    do {
        revoke_on_the_way(&key, &is_revoked, moves++ % NODES);
        (void)watched_keys_check(&s.keys);
    } while (cluster_servers_move_keys(&s.cluster, TAG, from, to, 4));
    cr_assert(!is_revoked, "while some of its keys are elsewhere, no primary changes anything");
    cluster_servers_move_end(&s.cluster, TAG, from, to);
    while (!is_revoked)
        revoke_on_the_way(&key, &is_revoked, moves++ % NODES);
    watched_keys_check_until_known(&s.keys, 0);
    for (size_t i = 0; i < NODES; i++)
        watched_keys_await(&s.keys, i, &key, 401);
    cr_assert_eq(primary(-1), to);
}

Test(cluster, a_slot_that_moves_takes_everything_with_it)
{
    unsigned home, away;

    scene_start();
    watched_keys_make(&s.keys);
    home = primary(-1);
    away = (home + 1) % PRIMARIES;
    move(home, away);
    cr_expect_eq(channels_at(home, "chatelaine:*"), 0);
    cr_expect_eq(channels_at(away, "chatelaine:{0}:node:*"), NODES);
    watched_keys_change_everything(&s.keys);
    move(away, home);
    watched_keys_change_everything(&s.keys);
    scene_stop();
}

static void await_reason(unsigned node, const char *text)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    while (http_call(s.fixture.nodes[node].internal_port, &(struct http_call){.target = "/readyz"}, &answer) != 503 ||
           !strstr(answer.body, text)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "node %u says '%s'", node, answer.body);
        poll(NULL, 0, 20);
    }
}

/* Its replica knows nothing of the move and has half of the names: nodes leave it alone until the move is finished. */
Test(cluster, half_of_a_slot_serves_nobody_when_the_source_fails)
{
    unsigned home, away, heir;

    scene_start();
    watched_keys_make(&s.keys);
    home = primary(-1);
    away = (home + 1) % PRIMARIES;
    cluster_servers_move_begin(&s.cluster, TAG, home, away);
    cr_assert(cluster_servers_move_keys(&s.cluster, TAG, home, away, 4));
    redis_server_kill(&s.cluster.servers[home]);
    heir = primary(-1);
    cr_assert_eq(heir, home + PRIMARIES);
    redis_server_restart(&s.cluster.servers[home]);
    cr_assert(cluster_servers_wait_whole(&s.cluster, PATIENCE_MS));
    for (unsigned node = 0; node < NODES; node++)
        await_reason(node, "its primary does not know: finish the move");
    cr_assert_not(watched_keys_check(&s.keys), "nothing is decided by half of the names");
    cluster_servers_move_begin(&s.cluster, TAG, heir, away);
    while (cluster_servers_move_keys(&s.cluster, TAG, heir, away, 4))
        ;
    cluster_servers_move_end(&s.cluster, TAG, heir, away);
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    scene_stop();
}

enum { PARTITIONS = 16 };

static void on_changed(void *arg, struct store *store)
{
    (void)arg, (void)store;
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static bool are_all_ready(void *partitions)
{
    for (unsigned i = 0; i < PARTITIONS; i++)
        if (!store_is_ready(partitions_at(partitions, i)))
            return false;
    return true;
}

static unsigned count_set(unsigned bits)
{
    return bits == 0 ? 0 : (bits & 1) + count_set(bits >> 1);
}

static struct partitions *open_partitions(uv_loop_t *loop, bool is_durability_asserted)
{
    struct store_settings settings = {.parts = STORE_PARTS,
                                      .timeout_ms = PATIENCE_MS,
                                      .prefix = "a:",
                                      .partitions = PARTITIONS,
                                      .durability_asserted = is_durability_asserted};
    struct partitions *partitions;
    struct buf why;

    buf_init(&why, 200);
    cr_assert(redis_target_parse(text_of(s.cluster.url), &settings.target, &why));
    buf_finish(&why);
    partitions = partitions_create(loop, &settings, on_changed, NULL);
    cr_assert(test_loop_until(loop, are_all_ready, partitions, PATIENCE_MS), "%s",
              store_trouble(partitions_at(partitions, 0)));
    return partitions;
}

static void close_partitions(uv_loop_t *loop, struct partitions *partitions)
{
    bool is_closed = false;

    partitions_close(partitions, on_closed, &is_closed);
    cr_assert(test_loop_until_set(loop, &is_closed, PATIENCE_MS));
}

static const struct fence *fence_of(const struct partitions *partitions)
{
    return lease_fence(store_lease(partitions_at(partitions, 0)));
}

Test(cluster, partitions_are_spread_over_the_primaries)
{
    struct partitions *partitions;
    unsigned primaries = 0;
    uv_loop_t loop;

    cluster_servers_start(&s.cluster, PRIMARIES, false);
    cr_assert_eq(uv_loop_init(&loop), 0);
    partitions = open_partitions(&loop, false);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        char name[32];

        snprintf(name, sizeof name, "a:{%u}:schema", i);
        primaries |= 1U << cluster_servers_primary_of(&s.cluster, name, -1);
        cr_expect(has_name(cluster_servers_primary_of(&s.cluster, name, -1), name), "%s", name);
    }
    cr_expect_eq(count_set(primaries), PRIMARIES);
    cr_expect(fence_of(partitions)->is_cluster && fence_of(partitions)->resolver);
    cr_expect_eq(fence_of(partitions)->stop_ms, 50600, "by its cluster-node-timeout of 30 s");
    close_partitions(&loop, partitions);
    partitions = open_partitions(&loop, true);
    cr_expect_null(fence_of(partitions)->resolver, "whichever takes over knows what was acknowledged");
    close_partitions(&loop, partitions);
    cr_assert(test_loop_finish(&loop));
    cluster_servers_stop(&s.cluster);
}

static void expect_refusal(const char *const *args, int code, const char *sentence)
{
    char *err;

    cr_expect_eq(fixture_run(&s.fixture, args, NULL, NULL, &err), code, "%s", err);
    cr_expect_not_null(strstr(err, sentence), "%s", err);
    free(err);
}

#define SERVE "serve", "--listen", "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", "--public-origin", NODE_ORIGIN

Test(cluster, what_a_failover_would_break_is_refused)
{
    static const char *const NO_REPLICAS[] = {SERVE, NULL};
    static const char *const NO_LEASE[] = {SERVE, "--min-replicas", "1", "--lease-ms", "0", NULL};
    static const char *const BRACES[] = {SERVE, "--min-replicas", "1", "--prefix", "a{b}:", NULL};
    static const char *const LIST[] = {"account", "list", "--min-replicas", "1", "--partitions", "1", NULL};
    static struct redis_server single;

    fixture_use_one_partition("the settings of a cluster are given here");
    redis_server_start(&single, &(struct redis_server_options){.tcp = true});
    memset(&s, 0, sizeof s);
    fixture_start(&s.fixture, 0, NULL);
    snprintf(s.fixture.redis.url, sizeof s.fixture.redis.url, "redis-cluster://127.0.0.1:%u", single.port);
    expect_refusal(NO_REPLICAS, 2, "redis-cluster:// needs --min-replicas 1 or more");
    expect_refusal(NO_LEASE, 2, "redis-cluster:// needs leases");
    expect_refusal(BRACES, 2, "--prefix must have no braces in a cluster");
    expect_refusal(LIST, 1, "it is not part of a cluster: use redis://");
    redis_server_tell(&single, "ACL", "SETUSER", "default", "-cluster", NULL);
    expect_refusal(LIST, 1, "its ACL forbids CLUSTER NODES: grant this user +cluster|nodes");
    fixture_stop(&s.fixture);
    redis_server_stop(&single);
}

#define DOCTOR "doctor", "--public-origin", NODE_ORIGIN, "--min-replicas", "1", NULL

Test(cluster, doctor_looks_at_every_primary)
{
    static const char *const ARGS[] = {DOCTOR};
    char *out;

    fixture_use_one_redis("the cluster is the test's own");
    setenv("CHATELAINE_PARTITIONS", "16", 1);
    cluster_servers_start(&s.cluster, PRIMARIES, true);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 1);
    /* In a new cluster, a primary may not know yet whose replicas others are: then they could be its own. */
    fixture_run_until(&s.fixture, ARGS, "16 of 16 can be reached and are fit");
    redis_server_tell(&s.cluster.servers[PRIMARIES - 1], "CONFIG", "SET", "appendfsync", "everysec", NULL);
    cr_expect_eq(fixture_run(&s.fixture, ARGS, NULL, &out, NULL), 3, "%s", out);
    cr_expect(strstr(out, "set appendfsync always"), "%s", out);
    cr_expect_null(strstr(out, "16 of 16 can be"), "%s", out);
    cr_expect(strstr(out, "of 16 can be reached and are fit"), "%s", out);
    free(out);
    scene_stop();
}
