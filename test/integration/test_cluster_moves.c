/* Slots of a cluster that are moved while nodes serve: with half of a partition's names elsewhere nothing of it is
 * decided or written, and a revocation that is under way meanwhile is never answered early. */
#include "fixture.h"
#include "leak_guard.h"
#include "redis_cluster.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(cluster_moves, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, PRIMARIES = 3, COUNT = 4, REPLY_BYTES = 32 * 1024, LEASE_MS = 5000 };

#define LEASE_TEXT "5000"

/* The canary would add names to the slot. */
static const char *const MORE[] = {"--lease-ms", LEASE_TEXT, "--canary-interval-ms", "0", NULL};

static struct scene {
    struct fixture fixture;
    struct cluster_servers cluster;
    struct watched_keys keys; /* for its functions */
    char tag[8];              /* of the partition of the fixture's account */
    unsigned home, to;        /* primaries */
} s;

static void scene_start(void)
{
    setenv("CHATELAINE_PARTITIONS", "4", 1);
    setenv("CHATELAINE_TEST_CLUSTER", "3", 1);
    setenv("CHATELAINE_UNSAFE_REDIS", "1", 1);
    cluster_servers_start(&s.cluster, PRIMARIES, false);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 0);
    s.keys.fixture = &s.fixture;
    for (unsigned i = 0; i < NODES; i++)
        fixture_add_node(&s.fixture, MORE);
    for (unsigned i = 0; i < NODES; i++)
        fixture_await_all_ready(&s.fixture, i);
    snprintf(s.tag, sizeof s.tag, "{%u}", fixture_partition_of(s.fixture.account));
    s.home = cluster_servers_primary_of(&s.cluster, s.tag, -1);
    s.to = (s.home + 1) % PRIMARIES;
}

static void scene_stop(void)
{
    fixture_stop(&s.fixture);
    cluster_servers_stop(&s.cluster);
}

/* A key in a partition whose slot stays. */
static void add_other(struct fixture_key *ret_key)
{
    char account[ID_TEXT_BYTES];

    fixture_add_account_in(&s.fixture, (fixture_partition_of(s.fixture.account) + 1) % COUNT, account);
    fixture_add_key(&s.fixture, account, KEY_API, MODE_LIVE, 0, ret_key);
}

/* The names of that kind in the slot, at both primaries. */
static long count_names(const char *kind)
{
    long count = 0;

    for (unsigned i = 0; i < PRIMARIES; i++) {
        char pattern[64], reply[REPLY_BYTES];

        snprintf(pattern, sizeof pattern, "chatelaine:%s:%s*", s.tag, kind);
        redis_server_ask(&s.cluster.servers[i], reply, sizeof reply, "KEYS", pattern, NULL);
        for (const char *at = reply; (at = strchr(at, '\n')) != NULL; at++)
            count++;
    }
    return count;
}

/* The events of the account, once its slot is whole. */
static long count_events(void)
{
    const char *name = fixture_name(s.fixture.account, "");
    long count = 0;

    for (unsigned i = 0; i < PRIMARIES; i++) {
        char trail[128], reply[64];

        snprintf(trail, sizeof trail, "%sacct:%s:audit:live", name, s.fixture.account);
        redis_server_ask(&s.cluster.servers[i], reply, sizeof reply, "XLEN", trail, NULL);
        count += strtol(reply, NULL, 10);
    }
    return count;
}

static unsigned names_left(unsigned server)
{
    char slot[16], count[16];

    redis_server_ask(&s.cluster.servers[0], slot, sizeof slot, "CLUSTER", "KEYSLOT", s.tag, NULL);
    redis_server_ask(&s.cluster.servers[server], count, sizeof count, "CLUSTER", "COUNTKEYSINSLOT", slot, NULL);
    return (unsigned)strtoul(count, NULL, 10);
}

static void move_half(void)
{
    cluster_servers_move_begin(&s.cluster, s.tag, s.home, s.to);
    cr_assert(cluster_servers_move_keys(&s.cluster, s.tag, s.home, s.to, names_left(s.home) / 2));
    cr_assert(names_left(s.home) > 1 && names_left(s.to) > 1);
}

static void move_rest(unsigned from, unsigned to)
{
    while (cluster_servers_move_keys(&s.cluster, s.tag, from, to, 100))
        ;
    cluster_servers_move_end(&s.cluster, s.tag, from, to);
}

static void move(unsigned from, unsigned to)
{
    cluster_servers_move_begin(&s.cluster, s.tag, from, to);
    move_rest(from, to);
}

/* Until the leases under which it was remembered are over. */
static void await_undecided(const struct fixture_key *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (size_t i = 0; i < NODES; i++) {
        int status;

        while ((status = fixture_try_key(&s.fixture, i, key->secret)) == 200) {
            cr_assert_gt(deadline_left_ms(deadline), 0);
            poll(NULL, 0, 20);
        }
        cr_assert_eq(status, 503, "node %zu", i);
    }
}

Test(cluster_moves, with_half_of_its_names_elsewhere_a_partition_decides_and_writes_nothing)
{
    struct fixture_key key, other, refused;
    long keys, events;

    scene_start();
    add_other(&other);
    watched_keys_create(&s.keys, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    keys = count_names("key:") + count_names("id:");
    events = count_events();
    cr_assert(keys > 0 && events > 0);
    move_half();
    await_undecided(&key);
    await_undecided(&s.fixture.manager);
    for (size_t i = 0; i < NODES; i++) {
        cr_expect_eq(fixture_try_create_key(&s.fixture, i, "{\"name\":\"b\",\"mode\":\"live\"}", &refused), 503);
        cr_expect_eq(watched_keys_try_revoke(&s.keys, i, &key), 503);
        fixture_await_key(&s.fixture, i, other.secret, 200); /* its slot stays */
        cr_expect_eq(fixture_try_key(&s.fixture, i, key.secret), 503);
    }
    cr_expect_eq(count_names("key:") + count_names("id:"), keys);
    move_rest(s.home, s.to);
    for (size_t i = 0; i < NODES; i++)
        fixture_await_key(&s.fixture, i, key.secret, 200);
    cr_expect_eq(count_names("key:") + count_names("id:"), keys);
    cr_expect_eq(count_events(), events);
    cr_expect_eq(names_left(s.home), 0);
    watched_keys_revoke(&s.keys, 0, &key);
    for (size_t i = 0; i < NODES; i++)
        fixture_await_key(&s.fixture, i, key.secret, 401);
    scene_stop();
}

/* A move of a whole slot there and back, at some moment of a revocation. */
enum moment { BEFORE_IT_IS_SENT, ONCE_IT_IS_SENT, WHILE_IT_WAITS };

static void move_there_and_back(void)
{
    move(s.home, s.to);
    move(s.to, s.home);
}

/* The script has marked the key: the barrier waits for the frozen node. */
static void await_marked(long events)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (count_events() == events) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 2);
    }
}

/* Node 1 is frozen with the key in its memory, under a lease that it holds. */
static int revoke_around(enum moment moment, const struct fixture_key *key)
{
    static struct http_client client;
    struct http_answer answer;
    const long events = count_events();
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    http_client_connect(&client, s.fixture.nodes[0].port);
    if (moment == BEFORE_IT_IS_SENT)
        cluster_servers_move_begin(&s.cluster, s.tag, s.home, s.to);
    http_client_send_call(
        &client, &(struct http_call){.method = "DELETE", .target = target, .bearer = s.fixture.manager.secret});
    if (moment == WHILE_IT_WAITS)
        await_marked(events);
    if (moment == BEFORE_IT_IS_SENT) {
        move_rest(s.home, s.to);
        move(s.to, s.home);
    } else {
        move_there_and_back();
    }
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    http_client_close(&client);
    return answer.status;
}

static void expect_never_early(enum moment moment)
{
    struct fixture_key key;
    int64_t frozen_ms;
    int status;

    for (size_t i = 0; i < NODES; i++)
        fixture_await_all_ready(&s.fixture, i);
    watched_keys_create(&s.keys, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    for (size_t i = 0; i < NODES; i++)
        fixture_await_key(&s.fixture, i, key.secret, 200);
    cr_assert_eq(fixture_try_key(&s.fixture, 1, key.secret), 200);
    process_signal(&s.fixture.nodes[1].process, SIGSTOP);
    frozen_ms = deadline_now_ms();
    status = revoke_around(moment, &key);
    cr_assert(status == 200 || status == 503, "%d", status);
    if (status != 200)
        watched_keys_revoke(&s.keys, 0, &key);
    cr_expect_geq(deadline_now_ms() - frozen_ms, LEASE_MS, "moment %d: answered while a lease may be held",
                  (int)moment);
    process_signal(&s.fixture.nodes[1].process, SIGCONT);
    cr_expect_neq(fixture_try_key(&s.fixture, 1, key.secret), 200, "moment %d", (int)moment);
    cr_expect_neq(fixture_try_key(&s.fixture, 0, key.secret), 200, "moment %d", (int)moment);
    for (size_t i = 0; i < NODES; i++)
        fixture_await_key(&s.fixture, i, key.secret, 401);
}

Test(cluster_moves, a_revocation_around_a_move_there_and_back_is_never_answered_early)
{
    scene_start();
    expect_never_early(BEFORE_IT_IS_SENT);
    expect_never_early(ONCE_IT_IS_SENT);
    expect_never_early(WHILE_IT_WAITS);
    scene_stop();
}
