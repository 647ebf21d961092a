/* Passwords of Redis and of Sentinels that change under running nodes: no request fails for it, then or at the next
 * failover; and what would fail is told while everything still works. */
#include "base/json.h"
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(secrets, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, RENEWALS = 8, CLUSTER_PRIMARIES = 3, STEP_MS = 20, CLIENTS_BYTES = 64 * 1024, LINKS = 5 };

/* Long leases, so that a busy machine is not what ends them. */
#define PATIENT "--lease-ms", "10s", "--keys-per-day", "1000000", "--changes-per-minute", "100000"

static struct scene {
    struct fixture fixture;
    struct sentinels sentinels;
    struct cluster_servers cluster;
    struct watched_keys keys;
    char path[PROCESS_PATH_BYTES], auth_path[PROCESS_PATH_BYTES]; /* of --redis-file and --sentinel-auth-file */
    struct redis_server *servers[CLUSTER_SERVERS_MAX];            /* that know the nodes' user */
    unsigned server_count;
    long sessions[NODES];
    /* The load. */
    pthread_t thread;
    atomic_bool is_over;
    unsigned requests, failures;
    int failure; /* the status of the last one */
} s;

/* The nodes' user */

static void tell_servers(const char *user, const char *change)
{
    for (unsigned i = 0; i < s.server_count; i++)
        redis_server_tell(s.servers[i], "ACL", "SETUSER", user, "on", change, "~*", "&*", "+@all", NULL);
}

/* At the socket of the only Redis. */
static void write_socket_file(const char *user, const char *password)
{
    char content[PROCESS_PATH_BYTES + 128];

    snprintf(content, sizeof content, "unix:%s?user=%s&password=%s\n", s.fixture.redis.socket_path, user, password);
    file_write(s.path, content);
}

/* How many connections nodes have at a server, of that user; those of commands of the test itself have other names. */
static unsigned count_clients(const struct redis_server *server, const char *user)
{
    static char clients[CLIENTS_BYTES];
    char wanted[64], *rest = clients, *line;
    unsigned count = 0;

    snprintf(wanted, sizeof wanted, " user=%s ", user);
    redis_server_ask(server, clients, sizeof clients, "CLIENT", "LIST", NULL);
    while ((line = strsep(&rest, "\n")))
        count += strstr(line, " name=chatelaine-") && strstr(line, wanted);
    return count;
}

static void await_no_client(const char *user)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (unsigned i = 0; i < s.server_count; i++)
        while (count_clients(s.servers[i], user) > 0) {
            cr_assert_gt(deadline_left_ms(deadline), 0, "%s is in use at server %u", user, i);
            poll(NULL, 0, STEP_MS);
        }
}

/* What nodes say */

static void await_log(size_t node, const char *words)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!file_contains(s.fixture.nodes[node].process.err_path, words)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "node %zu does not log: %s", node, words);
        poll(NULL, 0, STEP_MS);
    }
}

static void await_metric(size_t node, const char *sample, long wanted)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(&s.fixture, node, sample) != wanted) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s is not %ld at node %zu", sample, wanted, node);
        poll(NULL, 0, STEP_MS);
    }
}

static bool status_says(const char *words, int code)
{
    struct cli_run run;

    RUN(&s.fixture, &run, "status");
    bool is_said = strstr(run.out, words) && run.exit_code == code;
    cli_finish(&run);
    return is_said;
}

static void await_status(const char *words, int code)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!status_says(words, code)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "status does not say %s", words);
        poll(NULL, 0, STEP_MS);
    }
}

/* The load */

static void count_answer(int status, int wanted)
{
    s.requests++;
    if (status == wanted)
        return;
    s.failures++;
    s.failure = status;
}

static void *load(void *arg)
{
    struct fixture_key key;

    for (size_t node = 0; !atomic_load(&s.is_over); node = (node + 1) % NODES) {
        int status = fixture_try_create_key(&s.fixture, node, "{\"name\":\"load\",\"mode\":\"test\"}", &key);

        count_answer(status, 201);
        if (status != 201)
            continue;
        count_answer(fixture_try_key(&s.fixture, (node + 1) % NODES, key.secret), 200);
        count_answer(watched_keys_try_revoke(&s.keys, node, &key), 200);
        count_answer(fixture_try_key(&s.fixture, (node + 1) % NODES, key.secret), 401);
    }
    return arg;
}

static void load_start(void)
{
    for (size_t node = 0; node < NODES; node++)
        s.sessions[node] = fixture_metric(&s.fixture, node, "chatelaine_sessions_total");
    atomic_store(&s.is_over, false);
    s.requests = s.failures = 0;
    cr_assert_eq(pthread_create(&s.thread, NULL, load, NULL), 0);
}

/* No request has failed, and no lease was lost: each membership has gone on with its new connection. */
static void load_stop(void)
{
    atomic_store(&s.is_over, true);
    cr_assert_eq(pthread_join(s.thread, NULL), 0);
    cr_expect_gt(s.requests, 0);
    cr_expect_eq(s.failures, 0, "%u of %u requests failed, the last with %d", s.failures, s.requests, s.failure);
    for (size_t node = 0; node < NODES; node++) {
        cr_expect_eq(fixture_metric(&s.fixture, node, "chatelaine_sessions_total"), s.sessions[node]);
        cr_expect_eq(fixture_metric(&s.fixture, node, "chatelaine_leases_lost_total"), 0);
    }
}

static void start_nodes(const char *const *more)
{
    char name[16];

    for (size_t node = 0; node < NODES; node++) {
        snprintf(name, sizeof name, "secrets-%zu", node);
        fixture_start_node(&s.fixture, s.fixture.node_count++, name, s.path, more);
    }
}

/* One Redis */

static void start_at_one_redis(void)
{
    s = (struct scene){.server_count = 1, .servers = {&s.fixture.redis}};
    s.keys.fixture = &s.fixture;
    fixture_use_one_redis("its users are changed");
    fixture_start(&s.fixture, 0, NULL);
    snprintf(s.path, sizeof s.path, "%.150s/redis", s.fixture.folder);
    tell_servers("one", ">former-one");
    write_socket_file("one", "former-one");
    start_nodes((const char *const[]){PATIENT, NULL});
}

static void kill_clients(const char *user)
{
    redis_server_tell(&s.fixture.redis, "CLIENT", "KILL", "USER", user, NULL);
}

Test(secrets, another_user_takes_over_and_the_old_one_is_deleted)
{
    start_at_one_redis();
    watched_keys_make(&s.keys);
    load_start();
    tell_servers("two", ">new");
    write_socket_file("two", "new");
    await_no_client("one");
    cr_expect_geq(count_clients(&s.fixture.redis, "two"), NODES * LINKS * fixture_partitions());
    redis_server_tell(&s.fixture.redis, "ACL", "DELUSER", "one", NULL);
    load_stop();
    kill_clients("two");
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    fixture_stop(&s.fixture);
}

/* The file first, then Redis: what is refused is told, and costs nothing. */
Test(secrets, a_refused_password_is_told_and_the_old_connections_stay)
{
    start_at_one_redis();
    watched_keys_make(&s.keys);
    load_start();
    write_socket_file("one", "new");
    for (size_t node = 0; node < NODES; node++) {
        await_log(node, "a connection to Redis cannot be renewed: the old one stays in use");
        await_metric(node, "chatelaine_redis_access_refused", 1);
    }
    await_status("New connections fail, the old ones still work: unix:", 3);
    tell_servers("one", ">new");
    for (size_t node = 0; node < NODES; node++) {
        await_log(node, "all connections to Redis are renewed");
        await_metric(node, "chatelaine_redis_access_refused", 0);
    }
    tell_servers("one", "<former-one");
    load_stop();
    kill_clients("one");
    watched_keys_check_until_known(&s.keys, 0);
    for (size_t node = 0; node < NODES; node++)
        cr_expect_not(file_contains(s.fixture.nodes[node].process.err_path, "former-one"), "the log has a password");
    fixture_stop(&s.fixture);
}

/* Whoever writes a wrong password into the file loses no node, not even when its connections break. */
Test(secrets, a_wrong_file_takes_no_node_down)
{
    static const struct {
        const char *content, *why;
    } WRONG[] = {
        {"redis://one:former-one@127.0.0.1:1\n", "it names another address"},
        {"", "must begin with redis://"},
        {"redis:/", "must begin with redis://"},
    };

    start_at_one_redis();
    watched_keys_make(&s.keys);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        file_write(s.path, WRONG[i].content);
        await_log(0, WRONG[i].why);
        await_metric(0, "chatelaine_redis_access_refused", 1);
        await_status("A file is refused, so what was read before stays in use", 3);
        kill_clients("one");
        watched_keys_check_until_known(&s.keys, 0);
        write_socket_file("one", "former-one");
        await_metric(0, "chatelaine_redis_access_refused", 0);
    }
    write_socket_file("one", "wrong");
    await_metric(0, "chatelaine_redis_access_refused", 1);
    kill_clients("one");
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    await_metric(0, "chatelaine_redis_access_refused", 1);
    fixture_stop(&s.fixture);
}

/* The newest connection that nodes have. */
static long last_id(bool of_oldest)
{
    static char clients[CLIENTS_BYTES];
    char *rest = clients, *line;
    long id, found = of_oldest ? LONG_MAX : 0;

    redis_server_ask(&s.fixture.redis, clients, sizeof clients, "CLIENT", "LIST", NULL);
    while ((line = strsep(&rest, "\n")))
        if (strstr(line, " name=chatelaine-") && strncmp(line, "id=", 3) == 0) {
            id = strtol(line + 3, NULL, 10);
            found = of_oldest == (id < found) ? id : found;
        }
    return found;
}

Test(secrets, sighup_renews_every_connection)
{
    start_at_one_redis();
    watched_keys_make(&s.keys);
    load_start();
    for (unsigned round = 0; round < RENEWALS; round++) {
        struct deadline deadline = deadline_in(PATIENCE_MS);
        long newest = last_id(false);

        for (size_t node = 0; node < NODES; node++)
            process_signal(&s.fixture.nodes[node].process, SIGHUP);
        while (last_id(true) <= newest) {
            cr_assert_gt(deadline_left_ms(deadline), 0, "an old connection is left");
            poll(NULL, 0, STEP_MS);
        }
    }
    load_stop();
    cr_expect(watched_keys_check(&s.keys));
    fixture_stop(&s.fixture);
}

/* A line that says both. */
static bool has_line(size_t node, const char *words, const char *why)
{
    char *log = node_log(&s.fixture.nodes[node]), *rest = log, *line;
    bool is_there = false;

    while (!is_there && (line = strsep(&rest, "\n")))
        is_there = strstr(line, words) && strstr(line, why);
    free(log);
    return is_there;
}

/* Only Redis has the new password: the first reason is that it closed the connection, and the right one comes later. */
Test(secrets, the_reason_that_counts_is_logged)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    start_at_one_redis();
    watched_keys_make(&s.keys);
    redis_server_tell(&s.fixture.redis, "ACL", "SETUSER", "one", "resetpass", ">new", NULL);
    kill_clients("one");
    for (size_t node = 0; node < NODES; node++)
        while (!has_line(node, "Redis connection is down", "WRONGPASS")) {
            cr_assert_gt(deadline_left_ms(deadline), 0, "node %zu does not say why", node);
            poll(NULL, 0, STEP_MS);
        }
    write_socket_file("one", "new");
    watched_keys_check_until_known(&s.keys, 0);
    fixture_stop(&s.fixture);
}

/* Sentinels */

static void tell_sentinels(const char *change)
{
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_tell(&s.sentinels.servers[i], "ACL", "SETUSER", "watcher", change, NULL);
}

static void write_sentinels_file(const char *password)
{
    char content[PROCESS_PATH_BYTES + 128];

    snprintf(content, sizeof content, "redis-sentinel://one:%s@%s\n", password, strstr(s.sentinels.url, "://") + 3);
    file_write(s.path, content);
}

static void start_at_sentinels(void)
{
    s = (struct scene){.server_count = 2};
    s.keys.fixture = &s.fixture;
    fixture_use_one_redis("Sentinels watch one Redis and its replicas");
    fixture_start(&s.fixture, 0, NULL);
    sentinels_start(&s.sentinels, &s.fixture.redis, 1);
    sentinels_demand(&s.sentinels, "sesame", "watcher", "former-one");
    for (unsigned i = 0; i < s.server_count; i++)
        s.servers[i] = s.sentinels.redises[i];
    tell_servers("one", ">former-one");
    snprintf(s.path, sizeof s.path, "%.150s/redis", s.fixture.folder);
    snprintf(s.auth_path, sizeof s.auth_path, "%.150s/sentinels", s.fixture.folder);
    write_sentinels_file("former-one");
    file_write(s.auth_path, "watcher:former-one\n");
    start_nodes((const char *const[]){PATIENT, "--min-replicas", "1", "--sentinel-auth-file", s.auth_path, NULL});
}

static void stop_at_sentinels(void)
{
    fixture_stop(&s.fixture);
    sentinels_stop(&s.sentinels);
}

/* The old master comes back as a replica, which must acknowledge. */
static void fail_over(void)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    redis_server_kill(&s.fixture.redis);
    while (sentinels_master(&s.sentinels) == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "no replica is promoted");
        poll(NULL, 0, STEP_MS);
    }
    redis_server_restart(&s.fixture.redis);
}

Test(secrets, passwords_of_redis_and_sentinels_change_before_a_failover)
{
    start_at_sentinels();
    watched_keys_make(&s.keys);
    load_start();
    tell_servers("one", ">new");
    tell_sentinels(">new");
    write_sentinels_file("new");
    file_write(s.auth_path, "watcher:new\n");
    for (size_t node = 0; node < NODES; node++)
        await_log(node, "new user or password for Redis");
    tell_servers("one", "<former-one");
    tell_sentinels("<former-one");
    for (unsigned i = 0; i < SENTINELS; i++)
        redis_server_tell(&s.sentinels.servers[i], "CLIENT", "KILL", "USER", "watcher", NULL);
    load_stop();
    fail_over();
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    for (size_t node = 0; node < NODES; node++) {
        cr_expect_not(file_contains(s.fixture.nodes[node].process.err_path, "WRONGPASS"));
        cr_expect_eq(fixture_metric(&s.fixture, node, "chatelaine_redis_access_refused"), 0);
    }
    stop_at_sentinels();
}

/* Two are enough for a failover, so nothing fails: it must be told all the same. */
Test(secrets, a_sentinel_that_is_down_is_told)
{
    start_at_sentinels();
    redis_server_freeze(&s.sentinels.servers[0]);
    for (size_t node = 0; node < NODES; node++) {
        await_log(node, "a Sentinel or a node of the cluster has not been reached for 10 s: a failover may fail");
        await_metric(node, "chatelaine_redis_finders_down", 1);
    }
    snprintf(s.fixture.redis.url, sizeof s.fixture.redis.url, "unix:%s", s.fixture.redis.socket_path);
    await_status("Down for 10 s, 1 of those who name the master: Sentinel 127.0.0.1:", 3);
    redis_server_thaw(&s.sentinels.servers[0]);
    for (size_t node = 0; node < NODES; node++)
        await_metric(node, "chatelaine_redis_finders_down", 0);
    stop_at_sentinels();
}

/* A cluster */

static void write_cluster_file(const char *user, const char *password)
{
    char content[PROCESS_PATH_BYTES + 128];

    snprintf(content, sizeof content, "redis-cluster://%s:%s@%s\n", user, password, strstr(s.cluster.url, "://") + 3);
    file_write(s.path, content);
}

static void start_in_cluster(void)
{
    s = (struct scene){.server_count = 2 * CLUSTER_PRIMARIES};
    s.keys.fixture = &s.fixture;
    fixture_use_one_redis("the cluster is the test's own");
    setenv("CHATELAINE_PARTITIONS", "4", 1);
    cluster_servers_start(&s.cluster, CLUSTER_PRIMARIES, true);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 1);
    for (unsigned i = 0; i < s.server_count; i++)
        s.servers[i] = &s.cluster.servers[i];
    tell_servers("one", ">former-one");
    snprintf(s.path, sizeof s.path, "%.150s/redis", s.fixture.folder);
    write_cluster_file("one", "former-one");
    start_nodes((const char *const[]){PATIENT, "--min-replicas", "1", NULL});
}

/* Every node of the cluster must know the new user: one that does not is told of before it is a primary. */
Test(secrets, a_cluster_takes_another_user)
{
    start_in_cluster();
    watched_keys_make(&s.keys);
    load_start();
    s.server_count--; /* the last one is a replica, and does not know the new user yet */
    tell_servers("two", ">new");
    write_cluster_file("two", "new");
    s.server_count++;
    await_metric(0, "chatelaine_redis_access_refused", 1);
    await_log(0, "a connection to Redis cannot be renewed: the old one stays in use");
    tell_servers("two", ">new");
    await_no_client("one");
    for (size_t node = 0; node < NODES; node++)
        await_metric(node, "chatelaine_redis_access_refused", 0);
    for (unsigned i = 0; i < s.server_count; i++)
        redis_server_tell(s.servers[i], "ACL", "DELUSER", "one", NULL);
    load_stop();
    for (unsigned i = 0; i < s.server_count; i++)
        redis_server_tell(s.servers[i], "CLIENT", "KILL", "USER", "two", NULL);
    watched_keys_check_until_known(&s.keys, 0);
    watched_keys_change_everything(&s.keys);
    fixture_stop(&s.fixture);
    cluster_servers_stop(&s.cluster);
    unsetenv("CHATELAINE_PARTITIONS");
}
