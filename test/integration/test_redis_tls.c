/* Redis and Sentinels over TLS: a server that is not the wanted one gets no command, and the reason is told where
 * operators look. */
#include "certificates.h"
#include "deadline.h"
#include "free_port.h"
#include "fixture.h"
#include "leak_guard.h"
#include "redis_cluster.h"
#include "sentinels.h"
#include "watched_keys.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(redis_tls, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, LINKS = 5, STEP_MS = 10, URL_BYTES = 96, PATHS_MAX = 16 };

/* A CA, and what it has signed, in a folder that redis_server_options.tls takes. */
struct scene {
    struct fixture fixture;
    struct sentinels sentinels;
    struct certificate ca, client;
    char folder[PROCESS_PATH_BYTES];
    char ca_path[PROCESS_PATH_BYTES + 16], cert_path[PROCESS_PATH_BYTES + 16], key_path[PROCESS_PATH_BYTES + 16];
    char url[URL_BYTES];
};

static struct scene scene;
/* Their changes are repeated on 503: a node's connections come back one by one, and a lease of 1 s can be lost. */
static const struct watched_keys keys = {.fixture = &scene.fixture};

static void put(const char *name, const char *content, char ret_path[PROCESS_PATH_BYTES + 16])
{
    snprintf(ret_path, PROCESS_PATH_BYTES + 16, "%s/%s", scene.folder, name);
    certificate_write(ret_path, content);
}

/* Redis' certificate from now on, at its next start or CONFIG SET. */
static void put_server(const struct certificate_wish *wish)
{
    char path[PROCESS_PATH_BYTES + 16];
    struct certificate server;

    certificate_make(&server, wish);
    put("redis.pem", server.pem, path);
    put("redis.key", server.key_pem, path);
    certificate_free(&server);
}

static void put_usual_server(void)
{
    put_server(&(struct certificate_wish){.name = "redis", .names = "DNS:localhost,IP:127.0.0.1", .issuer = &scene.ca});
}

static void make_certificates(void)
{
    scene = (struct scene){0};
    folder_make(scene.folder);
    certificate_make(&scene.ca, &(struct certificate_wish){.name = "CA", .is_ca = true});
    certificate_make(&scene.client, &(struct certificate_wish){.name = "node", .issuer = &scene.ca});
    put("ca.pem", scene.ca.pem, scene.ca_path);
    put("node.pem", scene.client.pem, scene.cert_path);
    put("node.key", scene.client.key_pem, scene.key_path);
    put_usual_server();
}

/* The fixture reaches its Redis by a Unix socket; nodes and commands by its port. */
static void scene_start(bool asks_for_certificates)
{
    make_certificates();
    fixture_use_one_redis("the addresses and certificates are those of one server");
    fixture_start(&scene.fixture, 0, NULL);
    scene.fixture.redis.options.tls = scene.folder;
    scene.fixture.redis.options.asks_for_certificates = asks_for_certificates;
    scene.fixture.redis.port = free_port();
    redis_server_restart(&scene.fixture.redis);
    snprintf(scene.url, sizeof scene.url, "rediss://localhost:%u", scene.fixture.redis.port);
}

static void scene_stop(void)
{
    fixture_stop(&scene.fixture);
    certificate_free(&scene.ca);
    certificate_free(&scene.client);
    folder_remove(scene.folder);
}

/* Makes Redis read its certificate again. */
static void reload_server(void)
{
    char pem[PROCESS_PATH_BYTES + 16], key[PROCESS_PATH_BYTES + 16];

    snprintf(pem, sizeof pem, "%s/redis.pem", scene.folder);
    snprintf(key, sizeof key, "%s/redis.key", scene.folder);
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "tls-cert-file", pem, "tls-key-file", key, NULL);
}

/* Runs `account list` at that address. Nodes of a cluster have half a second to answer, which may be short on a busy
 * machine: what shall succeed may take several attempts. */
static void expect_list(const char *url, const char *const *more, const char *why)
{
    const char *args[PATHS_MAX] = {"account", "list"};
    struct redis_server as_admin = scene.fixture.redis;
    char *err;
    size_t argc = 2;

    while (*more)
        args[argc++] = *more++;
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", url);
    if (why) {
        args[argc++] = "--redis-timeout-ms";
        args[argc] = "3000"; /* is waited for twice */
        cr_expect_eq(fixture_run(&scene.fixture, args, NULL, NULL, &err), 1, "%s", err);
        cr_expect(strstr(err, why), "%s in %s", why, err);
        free(err);
    } else {
        fixture_run_until(&scene.fixture, args, "North Clinic");
    }
    scene.fixture.redis = as_admin;
}

static void expect_doctor(const char *url, const char *line)
{
    const char *const args[] = {"doctor",      "--public-origin",    NODE_ORIGIN, "--redis-ca",
                                scene.ca_path, "--redis-timeout-ms", "20000",     NULL};
    struct redis_server as_admin = scene.fixture.redis;
    char *out;

    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", url);
    cr_expect_eq(fixture_run(&scene.fixture, args, NULL, &out, NULL), 0, "%s", out);
    scene.fixture.redis = as_admin;
    cr_expect(strstr(out, line), "%s in %s", line, out);
    free(out);
}

static void add_node(const char *url, const char *const *more)
{
    fixture_start_node(&scene.fixture, scene.fixture.node_count, "tls", url, more);
    scene.fixture.node_count++;
}

static long commands_of_strangers(void)
{
    char reply[4096];
    const char *at;

    redis_server_ask(&scene.fixture.redis, reply, sizeof reply, "INFO", "commandstats", NULL);
    at = strstr(reply, "cmdstat_client|setname:calls=");
    return at ? strtol(at + strlen("cmdstat_client|setname:calls="), NULL, 10) : 0;
}

Test(redis_tls, a_node_serves_over_tls)
{
    struct fixture_key key;

    scene_start(false);
    const char *const more[] = {"--redis-ca", scene.ca_path, NULL};
    add_node(scene.url, more);
    add_node(scene.url, more);
    fixture_create_key(&scene.fixture, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    cr_expect_eq(fixture_try_key(&scene.fixture, 1, key.secret), 200);
    fixture_revoke_key(&scene.fixture, &key);
    cr_expect_eq(fixture_try_key(&scene.fixture, 0, key.secret), 401);
    cr_expect_eq(fixture_try_key(&scene.fixture, 1, key.secret), 401);
    expect_list(scene.url, more, NULL);
    expect_doctor(scene.url, "TLS, with a verified certificate");
    scene_stop();
}

Test(redis_tls, a_server_that_is_not_the_wanted_one_gets_no_command)
{
    struct certificate stranger;
    char strangers_ca[PROCESS_PATH_BYTES + 16], by_address[URL_BYTES];

    scene_start(false);
    certificate_make(&stranger, &(struct certificate_wish){.name = "another CA", .is_ca = true});
    put("stranger.pem", stranger.pem, strangers_ca);
    snprintf(by_address, sizeof by_address, "rediss://127.0.0.1:%u", scene.fixture.redis.port);
    const char *const more[] = {"--redis-ca", scene.ca_path, NULL};
    const char *const wrong[] = {"--redis-ca", strangers_ca, NULL};
    const char *const systems[] = {NULL};
    expect_list(scene.url, wrong, "its certificate comes from an unknown CA: set --redis-ca");
    expect_list(scene.url, systems, "its certificate comes from an unknown CA: set --redis-ca");
    put_server(&(struct certificate_wish){.name = "b", .names = "DNS:redis-b,IP:127.0.0.2", .issuer = &scene.ca});
    reload_server();
    long before = commands_of_strangers();
    expect_list(scene.url, more, "its certificate is for redis-b, 127.0.0.2, not for localhost");
    expect_list(by_address, more, "its certificate is for redis-b, 127.0.0.2, not for 127.0.0.1");
    put_server(&(struct certificate_wish){
        .name = "old", .names = "DNS:localhost", .issuer = &scene.ca, .from_days = -9, .to_days = -1});
    reload_server();
    expect_list(scene.url, more, "its certificate expired at 20");
    cr_expect_eq(commands_of_strangers(), before, "not one command was sent");
    put_usual_server();
    reload_server();
    expect_list(by_address, more, NULL);
    certificate_free(&stranger);
    scene_stop();
}

Test(redis_tls, plain_and_tls_are_told_apart)
{
    char plain[URL_BYTES], other[URL_BYTES], port[8];

    scene_start(false);
    const char *const more[] = {"--redis-ca", scene.ca_path, NULL};
    const char *const none[] = {NULL};
    snprintf(plain, sizeof plain, "redis://localhost:%u", scene.fixture.redis.port);
    expect_list(plain, none, "use rediss://");
    snprintf(port, sizeof port, "%u", free_port());
    redis_server_tell(&scene.fixture.redis, "CONFIG", "SET", "port", port, NULL);
    snprintf(other, sizeof other, "rediss://localhost:%s", port);
    expect_list(other, more, "TLS"); /* Redis reads the handshake as a command, or waits for its end */
    scene_stop();
}

Test(redis_tls, a_server_asks_for_a_certificate)
{
    scene_start(true);
    const char *const none[] = {"--redis-ca", scene.ca_path, NULL};
    const char *const more[] = {"--redis-ca",   scene.ca_path, "--redis-cert", scene.cert_path, "--redis-key",
                                scene.key_path, NULL};
    expect_list(scene.url, none, "--redis-cert"); /* by an alert, if the end of the connection is not faster */
    expect_list(scene.url, more, NULL);
    scene_stop();
}

static void expect_usage(const char *const *args, const char *url, const char *why)
{
    struct redis_server as_admin = scene.fixture.redis;
    char *err;

    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", url);
    cr_expect_eq(fixture_run(&scene.fixture, args, NULL, NULL, &err), 2, "%s", err);
    scene.fixture.redis = as_admin;
    cr_expect(strstr(err, why), "%s in %s", why, err);
    free(err);
}

Test(redis_tls, files_that_cannot_be_used_are_refused)
{
    struct certificate old;
    char old_pem[PROCESS_PATH_BYTES + 16], old_key[PROCESS_PATH_BYTES + 16];
    struct redis_server plain;

    scene_start(false);
    certificate_make(&old,
                     &(struct certificate_wish){.name = "node", .issuer = &scene.ca, .from_days = -9, .to_days = -1});
    put("old.pem", old.pem, old_pem);
    put("old.key", old.key_pem, old_key);
    expect_usage((const char *const[]){"account", "list", "--redis-ca", "/nonexistent", NULL}, scene.url, "--redis-ca");
    expect_usage((const char *const[]){"account", "list", "--redis-ca", scene.key_path, NULL}, scene.url,
                 "holds no certificate");
    expect_usage((const char *const[]){"account", "list", "--redis-cert", old_pem, "--redis-key", old_key, NULL},
                 scene.url, "expired at");
    expect_usage(
        (const char *const[]){"account", "list", "--redis-cert", scene.cert_path, "--redis-key", old_key, NULL},
        scene.url, "does not belong to");
    expect_usage((const char *const[]){"account", "list", "--redis-cert", scene.cert_path, NULL}, scene.url,
                 "--redis-key");
    plain = scene.fixture.redis;
    expect_usage((const char *const[]){"account", "list", "--redis-ca", scene.ca_path, NULL}, plain.url,
                 "names no TLS");
    certificate_free(&old);
    scene_stop();
}

static void await_log(const char *words)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    bool is_there = false;

    while (!is_there) {
        char *log = node_log(&scene.fixture.nodes[0]);

        is_there = strstr(log, words);
        cr_assert(is_there || deadline_left_ms(deadline) > 0, "%s in %s", words, log);
        free(log);
        poll(NULL, 0, STEP_MS);
    }
}

static void renew_all(void)
{
    char path[PROCESS_PATH_BYTES + 16];

    certificate_free(&scene.ca);
    certificate_free(&scene.client);
    certificate_make(&scene.ca, &(struct certificate_wish){.name = "CA 2", .is_ca = true});
    certificate_make(&scene.client, &(struct certificate_wish){.name = "node", .issuer = &scene.ca});
    put("ca.pem", scene.ca.pem, path);
    put("node.pem", scene.client.pem, path);
    put("node.key", scene.client.key_pem, path);
    put_usual_server();
}

/* A new CA, and new certificates of both sides, without a restart of the node. */
Test(redis_tls, renewed_files_are_used_by_the_next_connection)
{
    struct fixture_key key;
    char path[PROCESS_PATH_BYTES + 16];

    scene_start(true);
    const char *const more[] = {"--redis-ca",   scene.ca_path, "--redis-cert", scene.cert_path, "--redis-key",
                                scene.key_path, NULL};
    add_node(scene.url, more);
    fixture_create_key(&scene.fixture, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    put("node.pem", "not a certificate", path);
    redis_server_tell(&scene.fixture.redis, "CLIENT", "KILL", "TYPE", "normal", NULL);
    await_log("certificates for Redis not reloaded: the old ones stay in use");
    renew_all();
    redis_server_restart(&scene.fixture.redis);
    await_log("certificates for Redis reloaded");
    fixture_await_key(&scene.fixture, 0, key.secret, 200);
    watched_keys_create(&keys, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    scene_stop();
}

/* Redis asks for certificates, and will have none but the new one at the next failover. */
Test(redis_tls, a_new_client_certificate_is_shown_at_once)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_key key;

    scene_start(true);
    const char *const more[] = {"--redis-ca",   scene.ca_path, "--redis-cert", scene.cert_path, "--redis-key",
                                scene.key_path, NULL};
    add_node(scene.url, more);
    fixture_create_key(&scene.fixture, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    long sessions = fixture_metric(&scene.fixture, 0, "chatelaine_sessions_total");
    long lost = fixture_metric(&scene.fixture, 0, "chatelaine_redis_lost_total");
    long connects = fixture_metric(&scene.fixture, 0, "chatelaine_redis_connects_total");
    certificate_free(&scene.client);
    certificate_make(&scene.client, &(struct certificate_wish){.name = "node", .issuer = &scene.ca});
    put("node.key", scene.client.key_pem, scene.key_path);
    put("node.pem", scene.client.pem, scene.cert_path);
    await_log("certificates for Redis reloaded");
    while (fixture_metric(&scene.fixture, 0, "chatelaine_redis_connects_total") < connects + LINKS ||
           fixture_metric(&scene.fixture, 0, "chatelaine_redis_access_refused") != 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the links are not renewed");
        poll(NULL, 0, STEP_MS);
    }
    cr_expect_eq(fixture_metric(&scene.fixture, 0, "chatelaine_sessions_total"), sessions, "the membership goes on");
    cr_expect_eq(fixture_metric(&scene.fixture, 0, "chatelaine_redis_lost_total"), lost);
    cr_expect_eq(fixture_try_key(&scene.fixture, 0, key.secret), 200);
    scene_stop();
}

/* The system's CAs do not take its place, so each new connection still trusts the right one. */
Test(redis_tls, an_empty_ca_leaves_the_old_one)
{
    struct fixture_key key;
    char path[PROCESS_PATH_BYTES + 16];

    scene_start(false);
    const char *const more[] = {"--redis-ca", scene.ca_path, NULL};
    add_node(scene.url, more);
    fixture_create_key(&scene.fixture, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &key);
    put("ca.pem", "", path);
    expect_usage((const char *const[]){"account", "list", "--redis-ca", scene.ca_path, NULL}, scene.url,
                 "ca.pem holds no certificate");
    redis_server_tell(&scene.fixture.redis, "CLIENT", "KILL", "TYPE", "normal", NULL);
    await_log("certificates for Redis not reloaded: the old ones stay in use");
    await_log("ca.pem holds no certificate");
    fixture_await_key(&scene.fixture, 0, key.secret, 200);
    scene_stop();
}

/* Nothing is decided by half a connection. */
Test(redis_tls, redis_is_killed_again_and_again)
{
    struct fixture_key kept, revoked;

    scene_start(false);
    const char *const more[] = {"--redis-ca", scene.ca_path, "--redis-timeout-ms", "2000", NULL};
    add_node(scene.url, more);
    watched_keys_create(&keys, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &kept);
    watched_keys_create(&keys, 0, "{\"name\":\"r\",\"mode\":\"live\"}", &revoked);
    fixture_revoke_key(&scene.fixture, &revoked);
    for (unsigned i = 0; i < 8; i++) {
        redis_server_restart(&scene.fixture.redis);
        poll(NULL, 0, (int)(i * 7)); /* some of its connections are in the middle of the handshake */
        redis_server_kill(&scene.fixture.redis);
        cr_expect_neq(fixture_try_key(&scene.fixture, 0, revoked.secret), 200);
        int status = fixture_try_key(&scene.fixture, 0, kept.secret);
        cr_expect(status == 200 || status == 503, "%d", status);
    }
    redis_server_restart(&scene.fixture.redis);
    fixture_await_key(&scene.fixture, 0, kept.secret, 200);
    fixture_await_key(&scene.fixture, 0, revoked.secret, 401);
    scene_stop();
}

/* The master is verified by the address that Sentinels name. */
Test(redis_tls, a_failover_over_tls)
{
    static struct fixture_key kept, revoked;

    scene_start(false);
    sentinels_start(&scene.sentinels, &scene.fixture.redis, 2);
    const char *const more[] = {"--redis-ca", scene.ca_path, "--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};
    snprintf(scene.fixture.redis.url, sizeof scene.fixture.redis.url, "%s", scene.sentinels.url);
    add_node(scene.sentinels.url, more);
    add_node(scene.sentinels.url, more);
    watched_keys_create(&keys, 0, "{\"name\":\"k\",\"mode\":\"live\"}", &kept);
    watched_keys_create(&keys, 1, "{\"name\":\"r\",\"mode\":\"live\"}", &revoked);
    fixture_await_key(&scene.fixture, 0, revoked.secret, 200);
    watched_keys_revoke(&keys, 1, &revoked);
    redis_server_kill(&scene.fixture.redis);
    for (unsigned node = 0; node < 2; node++) {
        fixture_await_key(&scene.fixture, node, kept.secret, 200);
        fixture_await_key(&scene.fixture, node, revoked.secret, 401);
    }
    cr_expect_neq(sentinels_master(&scene.sentinels), 0);
    scene_stop();
    sentinels_stop(&scene.sentinels);
}

/* Each primary is verified by the address that the cluster names. */
Test(redis_tls, a_cluster_over_tls)
{
    static struct cluster_servers cluster;
    static struct fixture_key kept[NODES], revoked[NODES];

    make_certificates();
    fixture_use_one_redis("the cluster is the test's own");
    setenv("CHATELAINE_PARTITIONS", "4", 1);
    cluster_servers_start_tls(&cluster, 3, true, scene.folder);
    fixture_start_in_cluster(&scene.fixture, cluster.url, 1);
    const char *const more[] = {"--redis-ca", scene.ca_path, "--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};
    const char *const no_ca[] = {"--min-replicas", "1", NULL};
    const char *const for_list[] = {"--redis-ca", scene.ca_path, "--min-replicas", "1", NULL};
    expect_list(cluster.tls_url, no_ca, "its certificate comes from an unknown CA");
    for (unsigned node = 0; node < NODES; node++) {
        add_node(cluster.tls_url, more);
        watched_keys_create(&keys, node, "{\"name\":\"k\",\"mode\":\"live\"}", &kept[node]);
        watched_keys_create(&keys, node, "{\"name\":\"r\",\"mode\":\"live\"}", &revoked[node]);
        watched_keys_revoke(&keys, node, &revoked[node]);
    }
    const char *name = fixture_name(scene.fixture.account, "store");
    unsigned primary = cluster_servers_primary_of(&cluster, name, -1);
    redis_server_kill(&cluster.servers[primary]);
    cr_expect_neq(cluster_servers_primary_of(&cluster, name, -1), primary);
    redis_server_restart(&cluster.servers[primary]); /* nobody else could acknowledge to the new one */
    for (unsigned node = 0; node < NODES; node++) {
        for (unsigned i = 0; i < NODES; i++) {
            fixture_await_key(&scene.fixture, node, kept[i].secret, 200);
            fixture_await_key(&scene.fixture, node, revoked[i].secret, 401);
        }
    }
    expect_list(cluster.tls_url, for_list, NULL);
    scene_stop();
    cluster_servers_stop(&cluster);
}
