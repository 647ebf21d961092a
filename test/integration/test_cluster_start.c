/* Nodes and commands at a Redis Cluster that is not what they need: each says what is wrong, and nothing is decided by
 * it. */
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis_cluster.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cluster_start, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { PRIMARIES = 3, LOST = 3 };

#define PARTITIONS "4"

static struct scene {
    struct fixture fixture;
    struct cluster_servers cluster, other;
} s;

static void scene_start(void)
{
    setenv("CHATELAINE_PARTITIONS", PARTITIONS, 1);
    setenv("CHATELAINE_TEST_CLUSTER", "1", 1);
    setenv("CHATELAINE_UNSAFE_REDIS", "1", 1);
    cluster_servers_start(&s.cluster, PRIMARIES, false);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 0);
}

static void scene_stop(void)
{
    fixture_stop(&s.fixture);
    cluster_servers_stop(&s.cluster);
}

static void list_at(const char *url, struct cli_run *ret_run)
{
    cli_run_bare(&s.fixture, ret_run, (const char *const[]){"account", "list", "--redis", url, NULL});
}

static void expect_refused(const char *url, int code, const char *says)
{
    struct cli_run run;

    list_at(url, &run);
    cli_expect_refusal(&run, code, says, url);
}

static void ask_ready(struct http_answer *ret_answer)
{
    http_call(s.fixture.nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, ret_answer);
}

static void await_ready(int status, const char *says)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    for (ask_ready(&answer); answer.status != status || !strstr(answer.body, says); ask_ready(&answer)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%d %s", answer.status, answer.body);
        poll(NULL, 0, 20);
    }
}

/* Until each node of the cluster says so. */
static void await_state(const char *state)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char info[2048] = "";

    for (unsigned i = 0; i < PRIMARIES; i++, info[0] = '\0')
        while (!strstr(info, state)) {
            cr_assert_gt(deadline_left_ms(deadline), 0, "%s", info);
            poll(NULL, 0, 20);
            redis_server_ask(&s.cluster.servers[i], info, sizeof info, "CLUSTER", "INFO", NULL);
        }
}

static void lose_slot(const char *full_coverage, const char *state)
{
    char slot[16];

    redis_server_ask(&s.cluster.servers[0], slot, sizeof slot, "CLUSTER", "KEYSLOT", "{3}", NULL);
    for (unsigned i = 0; i < PRIMARIES; i++)
        redis_server_tell(&s.cluster.servers[i], "CONFIG", "SET", "cluster-require-full-coverage", full_coverage, NULL);
    for (unsigned i = 0; i < PRIMARIES; i++)
        redis_server_tell(&s.cluster.servers[i], "CLUSTER", "DELSLOTS", slot, NULL);
    await_state(state);
}

/* Of an account that lies there. */
static void add_key_in(unsigned partition, struct fixture_key *ret_key)
{
    char account[ID_TEXT_BYTES];

    fixture_add_account_in(&s.fixture, partition, account);
    fixture_add_key(&s.fixture, account, KEY_API, MODE_LIVE, 0, ret_key);
}

/* The others are served, if the cluster serves the slots that are left. */
Test(cluster_start, a_slot_that_nobody_serves_costs_its_partition_alone)
{
    struct fixture_key lost, other;

    scene_start();
    add_key_in(LOST, &lost);
    add_key_in(LOST - 1, &other);
    lose_slot("no", "cluster_state:ok");
    /* The fixture's own way waits for all partitions. */
    node_start(&s.fixture.nodes[s.fixture.node_count++], s.fixture.folder, "node0", s.cluster.url,
               s.fixture.master_key_path, NULL);
    await_ready(200, "Partition 3: Redis cannot be reached: the cluster: no node serves slot 1584.");
    fixture_await_key(&s.fixture, 0, other.secret, 200);
    cr_expect_eq(fixture_try_key(&s.fixture, 0, lost.secret), 503);
    cr_expect(file_contains(s.fixture.nodes[0].process.err_path, "no node serves slot 1584\" partition=3"));
    expect_refused(s.cluster.url, 1,
                   "Not done. Partition 3: Redis cannot be reached: the cluster: no node serves slot 1584.");
    scene_stop();
}

Test(cluster_start, a_cluster_that_wants_all_slots_serves_none)
{
    struct fixture_key key;

    scene_start();
    add_key_in(LOST - 1, &key);
    fixture_add_node(&s.fixture, NULL);
    fixture_await_key(&s.fixture, 0, key.secret, 200);
    lose_slot("yes", "cluster_state:fail");
    await_ready(503, "it says that the cluster is down: see CLUSTER INFO");
    expect_refused(s.cluster.url, 1, "it says that the cluster is down: see CLUSTER INFO");
    scene_stop();
}

Test(cluster_start, seeds_and_addresses_of_the_wrong_kind)
{
    char both[2 * PROCESS_PATH_BYTES], plain[PROCESS_PATH_BYTES], says[128];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct cli_run run;

    scene_start();
    cluster_servers_start(&s.other, 1, false);
    snprintf(both, sizeof both, "%s,127.0.0.1:%u", s.cluster.url, s.other.servers[0].port);
    snprintf(says, sizeof says, "127.0.0.1:%u and 127.0.0.1:%u belong to different clusters: name the nodes of one",
             s.cluster.servers[0].port, s.other.servers[0].port);
    list_at(both, &run);
    while (run.exit_code == 0 && deadline_left_ms(deadline) > 0) { /* a busy machine: one seed did not answer in time */
        cli_finish(&run);
        list_at(both, &run);
    }
    cli_expect_refusal(&run, 1, says, both);
    snprintf(plain, sizeof plain, "redis://127.0.0.1:%u", s.cluster.servers[0].port);
    expect_refused(plain, 3, "This Redis is a node of a Redis Cluster: write redis-cluster:// in --redis.");
    list_at(s.other.url, &run);
    cr_expect(run.exit_code == 0 && strstr(run.err, "There are no accounts"), "%d %s", run.exit_code, run.err);
    cli_finish(&run);
    cluster_servers_stop(&s.other);
    scene_stop();
}

/* A node that served one store never takes another for it. */
Test(cluster_start, another_cluster_at_the_same_addresses_is_another_store)
{
    struct fixture_key key;

    scene_start();
    add_key_in(0, &key);
    fixture_add_node(&s.fixture, NULL);
    fixture_await_key(&s.fixture, 0, key.secret, 200);
    for (unsigned i = 0; i < PRIMARIES; i++)
        redis_server_tell(&s.cluster.servers[i], "FLUSHALL", NULL);
    await_ready(503, "Redis has lost the store that this node served");
    for (unsigned i = 0; i < fixture_partitions(); i++) {
        const char *store = fixture_name_in(i, "store");
        unsigned primary = cluster_servers_primary_of(&s.cluster, store, -1);

        redis_server_tell(&s.cluster.servers[primary], "HSET", store, "id", "00112233445566778899aabbccddeeff",
                          "partitions", PARTITIONS, "partition", (char[]){(char)('0' + i), '\0'}, NULL);
    }
    await_ready(503, "Redis holds another store, not the one that this node served");
    cr_expect_eq(fixture_try_key(&s.fixture, 0, key.secret), 503);
    scene_stop();
}
