/* The wrong Redis: one that was emptied, another one at the same address, a replica, a master that was replaced by
 * hand. Nothing may be decided by it: 503, with the reason; never an acceptance, and never a good key called bad. */
#include "fixture.h"
#include "leak_guard.h"
#include "redis_proxy.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(identity, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { REASON_BYTES = 1024, CONNECTIONS = 4 /* of a node */ };

#define PROXIED "a proxy stands before one Redis"
#define CONNECTS "chatelaine_redis_connects_total"

static const char *const LEASE_1000[] = {"--lease-ms", "1000", NULL};
static const char *const STRICT[] = {"--lease-ms", "0", NULL};

static int readiness(const struct node *node, char ret_reason[REASON_BYTES])
{
    struct http_answer answer;
    int status = http_call(node->internal_port, &(struct http_call){.target = "/readyz"}, &answer);

    snprintf(ret_reason, REASON_BYTES, "%.*s", REASON_BYTES - 1, answer.body);
    return status;
}

/* A reason that is not of all partitions begins with their numbers, and the node serves the others. */
static void await_reason(const struct node *node, const char *part)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reason[REASON_BYTES];

    while ((readiness(node, reason) != 503 && !strstr(reason, "Partition")) || !strstr(reason, part)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "want %s: %s", part, reason);
        poll(NULL, 0, 10);
    }
}

static void await_ready(const struct node *node)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reason[REASON_BYTES];

    while (readiness(node, reason) != 200 || strstr(reason, "Partition")) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", reason);
        poll(NULL, 0, 10);
    }
}

static int try_at(const struct node *node, const char *secret)
{
    struct http_answer answer;

    return http_call(node->port, &(struct http_call){.target = "/v1/whoami", .bearer = secret}, &answer);
}

static int try_delete(const struct fixture *fixture, size_t node, const struct fixture_key *key,
                      struct http_answer *ret_answer)
{
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    return fixture_call(fixture, node,
                        &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture->manager.secret},
                        ret_answer);
}

/* A node with a warm cache, one without, one that never caches, where that is allowed. */
static void open_three(struct fixture *fixture, struct fixture_key *ret_hot)
{
    fixture_start(fixture, 2, LEASE_1000);
    fixture_add_node(fixture, fixture_in_cluster() ? NULL : STRICT);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, ret_hot);
    for (size_t i = 0; i < 3; i++)
        await_ready(&fixture->nodes[i]);
    for (int i = 0; i < 20; i++)
        cr_assert_eq(fixture_try_key(fixture, 0, ret_hot->secret), 200);
}

static void expect_nothing_decided(const struct fixture *fixture, const struct fixture_key *key, int64_t until_ms)
{
    while (deadline_now_ms() < until_ms) {
        for (size_t i = 0; i < fixture->node_count; i++)
            cr_assert_eq(fixture_try_key(fixture, i, key->secret), 503, "node %zu", i);
        poll(NULL, 0, 10);
    }
}

Test(identity, a_store_that_is_emptied_under_its_nodes)
{
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key hot;

    open_three(&fixture, &hot);
    redis_server_tell_all(&fixture.redis, "FLUSHALL", NULL);
    cr_expect_eq(fixture_try_key(&fixture, 1, hot.secret), 503, "not in memory there, and not called unknown");
    cr_expect_eq(fixture_try_key(&fixture, 2, hot.secret), 503);
    cr_expect_eq(try_delete(&fixture, 1, &hot, &answer), 503, "%s", answer.body);
    for (size_t i = 0; i < 3; i++)
        await_reason(&fixture.nodes[i], "lost the store");
    expect_nothing_decided(&fixture, &hot, deadline_now_ms() + 2000);
    cr_expect_eq(try_delete(&fixture, 0, &hot, &answer), 503, "%s", answer.body);

    /* Whoever knew a store does not take a new one for it. */
    fixture_run(&fixture, (const char *const[]){"account", "create", "--name", "New", NULL}, NULL, NULL, NULL);
    await_reason(&fixture.nodes[0], "another store");
    expect_nothing_decided(&fixture, &hot, deadline_now_ms() + 500);
    char exists[16];
    redis_server_ask(&fixture.redis, exists, sizeof exists, "EXISTS", fixture_name(fixture.account, "nodes"), NULL);
    cr_expect_str_eq(exists, "0", "no node has written there");
    fixture_stop(&fixture);
}

static void kill_and_empty(struct redis_server *redis)
{
    redis_server_kill(redis);
    redis_server_forget(redis);
    redis_server_restart(redis);
}

Test(identity, a_redis_that_comes_back_without_its_data)
{
    struct fixture fixture;
    struct fixture_key hot;
    char *out;

    open_three(&fixture, &hot);
    kill_and_empty(&fixture.redis);
    for (size_t i = 0; i < 3; i++) {
        int status = fixture_try_key(&fixture, i, hot.secret);
        cr_expect_eq(status, 503, "node %zu: %d", i, status);
    }
    for (size_t i = 0; i < 3; i++)
        await_reason(&fixture.nodes[i], "lost the store");
    expect_nothing_decided(&fixture, &hot, deadline_now_ms() + 2000);
    node_stop(&fixture.nodes[0]);

    /* A node that knows nothing cannot tell it from a new one, and waits for the operator. */
    const char *args[] = {
        node_binary(),           "serve",           "--redis",   fixture.redis.url, "--master-key-file",
        fixture.master_key_path, "--public-origin", NODE_ORIGIN, "--listen",        "127.0.0.1:0",
        "--internal-listen",     "127.0.0.1:0",     NULL};
    struct process waiting;
    process_start(&waiting, fixture.folder, "waiting", args);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (!file_contains(waiting.err_path, "create the first account")) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 10);
    }
    int code =
        fixture_run(&fixture, (const char *const[]){"doctor", "--public-origin", NODE_ORIGIN, NULL}, NULL, &out, NULL);
    cr_expect_eq(code, 3, "%d: %s", code, out);
    cr_expect_not_null(strstr(out, "there is no store, and nodes that listen"), "%s", out);
    cr_expect_not_null(strstr(out, "account create"), "%s", out);
    free(out);
    process_signal(&waiting, 15);
    cr_expect(process_wait(&waiting, PATIENCE_MS));
    fixture_stop(&fixture);
}

/* A store as the version before identities left it. */
Test(identity, a_store_without_identity_that_has_accounts_gets_one)
{
    struct fixture fixture;
    char id[64];

    fixture_use_one_partition("such a store is older than partitions");
    fixture_start(&fixture, 0, NULL);
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, "store"), NULL);
    fixture_add_node(&fixture, LEASE_1000);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    redis_server_ask(&fixture.redis, id, sizeof id, "HGET", fixture_name(fixture.account, "store"), "id", NULL);
    cr_expect_eq(strlen(id), 32, "%s", id);
    fixture_add_node(&fixture, LEASE_1000);
    cr_expect_eq(fixture_try_key(&fixture, 1, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

static void replicate(struct redis_server *replica, const struct redis_server *master)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char port[8], info[4096];

    snprintf(port, sizeof port, "%u", master->port);
    redis_server_tell(replica, "REPLICAOF", "127.0.0.1", port, NULL);
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "no replication");
        poll(NULL, 0, 20);
        redis_server_ask(replica, info, sizeof info, "INFO", "replication", NULL);
    } while (!strstr(info, "master_link_status:up"));
}

static void await_copy(const struct redis_server *replica, const char *account, const struct fixture_key *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char name[64], count[16];

    snprintf(name, sizeof name, "%sid:%s", fixture_name(account, ""), key->id);
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the key is not replicated");
        redis_server_ask(replica, count, sizeof count, "EXISTS", name, NULL);
    } while (strcmp(count, "1") != 0);
}

/* Nodes behind a proxy of their own each, whose address moves as a name with two addresses does. */
static void add_behind_proxy(struct fixture *fixture, struct redis_proxy *proxy, unsigned node, const char *const *more)
{
    char url[64], name[16];

    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_proxy_port(proxy, node));
    snprintf(name, sizeof name, "proxied%u", node);
    fixture_start_node(fixture, fixture->node_count++, name, url, more);
}

/* The key was revoked, which node 1 has answered: whatever node 0 knows, it may not accept it. */
static void expect_never_accepted(const struct fixture *fixture, const struct fixture_key *key, int64_t for_ms)
{
    int64_t until_ms = deadline_now_ms() + for_ms;

    while (deadline_now_ms() < until_ms) {
        int status = try_at(&fixture->nodes[0], key->secret);
        cr_assert(status == 401 || status == 503, "%d", status);
        poll(NULL, 0, 5);
    }
}

static void expect_a_replica_is_not_believed(const char *const *more)
{
    static const char *const ADDRESSES[] = {"127.0.0.1", "127.0.0.1"};
    struct redis_server replica;
    struct redis_proxy *proxy;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_use_one_redis(PROXIED);
    fixture_start(&fixture, 0, NULL);
    redis_server_open_port(&fixture.redis);
    redis_server_start(&replica, &(struct redis_server_options){.tcp = true});
    replicate(&replica, &fixture.redis);
    proxy = redis_proxy_start(fixture.redis.socket_path, 2, ADDRESSES);
    add_behind_proxy(&fixture, proxy, 0, more);
    add_behind_proxy(&fixture, proxy, 1, more);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    await_ready(&fixture.nodes[0]);
    await_ready(&fixture.nodes[1]);
    cr_assert_eq(fixture_try_key(&fixture, 0, key.secret), 200);

    /* Replication stalls, and the connection that reads is the one that ends at the replica. */
    redis_server_tell(&replica, "REPLICAOF", "127.0.0.1", "1", NULL);
    redis_proxy_redirect(proxy, 0, replica.socket_path);
    redis_proxy_cut(proxy, 0, REDIS_PROXY_READS, false);
    await_reason(&fixture.nodes[0], "it is a replica");
    cr_assert_eq(try_delete(&fixture, 1, &key, &answer), 200, "%s", answer.body);
    expect_never_accepted(&fixture, &key, 1500);
    redis_proxy_redirect(proxy, 0, fixture.redis.socket_path);
    await_ready(&fixture.nodes[0]);
    cr_expect_eq(fixture_try_key(&fixture, 0, key.secret), 401);
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
    redis_server_stop(&replica);
}

Test(identity, a_replica_behind_the_same_name)
{
    expect_a_replica_is_not_believed(LEASE_1000);
}

Test(identity, a_replica_behind_the_same_name_of_a_node_that_does_not_cache)
{
    expect_a_replica_is_not_believed(STRICT);
}

/* Another master of another store, when one connection is made anew. */
Test(identity, another_store_behind_the_same_name)
{
    static const char *const ADDRESSES[] = {"127.0.0.1"};
    struct fixture fixture, other;
    struct redis_proxy *proxy;
    int status;

    fixture_use_one_redis(PROXIED);
    fixture_start(&other, 0, NULL);
    fixture_start(&fixture, 0, NULL);
    proxy = redis_proxy_start(fixture.redis.socket_path, 1, ADDRESSES);
    add_behind_proxy(&fixture, proxy, 0, LEASE_1000);
    await_ready(&fixture.nodes[0]);
    cr_assert_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    redis_proxy_redirect(proxy, 0, other.redis.socket_path);
    redis_proxy_cut(proxy, 0, REDIS_PROXY_READS, false);
    await_reason(&fixture.nodes[0], "another store");
    status = fixture_try_key(&fixture, 0, other.manager.secret);
    cr_expect_eq(status, 503, "a good key there is none here: %d", status);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 503);
    redis_proxy_redirect(proxy, 0, fixture.redis.socket_path);
    redis_server_tell(&other.redis, "CLIENT", "KILL", "TYPE", "normal", NULL);
    redis_server_tell(&other.redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    await_ready(&fixture.nodes[0]);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
    fixture_stop(&other);
}

/* The operator promotes the replica, and node 0 still names the Redis that was the master: its connections live on. */
static void expect_a_demoted_master_is_not_believed(const char *const *more)
{
    struct redis_server promoted;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_use_one_redis("a cluster promotes replicas by itself");
    fixture_start(&fixture, 1, more);
    redis_server_open_port(&fixture.redis);
    redis_server_start(&promoted, &(struct redis_server_options){.tcp = true});
    replicate(&promoted, &fixture.redis);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    cr_assert_eq(fixture_try_key(&fixture, 0, key.secret), 200);
    await_copy(&promoted, fixture.account, &key);
    redis_server_tell(&promoted, "REPLICAOF", "NO", "ONE", NULL);
    redis_server_tell(&fixture.redis, "REPLICAOF", "127.0.0.1", "1", NULL);
    fixture_start_node(&fixture, fixture.node_count++, "moved", promoted.url, more);
    await_ready(&fixture.nodes[1]);
    cr_assert_eq(try_delete(&fixture, 1, &key, &answer), 200, "%s", answer.body);
    expect_never_accepted(&fixture, &key, 1500);
    await_reason(&fixture.nodes[0], "replica: point --redis at the master");
    fixture_stop(&fixture);
    redis_server_stop(&promoted);
}

Test(identity, a_master_that_was_replaced_by_hand)
{
    expect_a_demoted_master_is_not_believed(LEASE_1000);
}

Test(identity, a_master_that_was_replaced_by_hand_of_a_node_that_does_not_cache)
{
    expect_a_demoted_master_is_not_believed(STRICT);
}

/* What was answered is told again */

/* A master, a replica that lags for ever from some moment on, and node 0, which can be led to either. */
struct lagging {
    struct fixture fixture;
    struct redis_server replica;
    struct redis_proxy *proxy;
    struct fixture_key key; /* both have it */
};

static void lagging_start(struct lagging *l, const char *const *more)
{
    static const char *const ADDRESSES[] = {"127.0.0.1", "127.0.0.1"};

    fixture_use_one_redis(PROXIED);
    fixture_start(&l->fixture, 0, NULL);
    redis_server_open_port(&l->fixture.redis);
    redis_server_start(&l->replica, &(struct redis_server_options){.tcp = true});
    replicate(&l->replica, &l->fixture.redis);
    fixture_add_key(&l->fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &l->key);
    await_copy(&l->replica, l->fixture.account, &l->key);
    l->proxy = redis_proxy_start(l->fixture.redis.socket_path, 2, ADDRESSES);
    add_behind_proxy(&l->fixture, l->proxy, 0, more);
    await_ready(&l->fixture.nodes[0]);
    cr_assert_eq(fixture_try_key(&l->fixture, 0, l->key.secret), 200);
    redis_server_tell(&l->replica, "REPLICAOF", "NO", "ONE", NULL);
}

static void lagging_stop(struct lagging *l)
{
    fixture_stop(&l->fixture);
    redis_proxy_stop(l->proxy);
    redis_server_stop(&l->replica);
}

static void lead_to(struct lagging *l, const struct redis_server *redis)
{
    redis_proxy_redirect(l->proxy, 0, redis->socket_path);
    for (int link = 0; link < REDIS_PROXY_LINKS; link++)
        redis_proxy_cut(l->proxy, 0, (enum redis_proxy_link)link, true);
}

static void await_log(const struct node *node, const char *part)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!file_contains(node->process.err_path, part)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s is not logged", part);
        poll(NULL, 0, 10);
    }
}

static void expect_delete(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;

    cr_assert_eq(try_delete(fixture, node, key, &answer), 200, "%s", answer.body);
}

/* In the trails of all classes. */
static int count_revocations(const struct redis_server *redis, const struct fixture *fixture)
{
    static const char *const CLASSES[] = {"", ":live", ":test", ":refused"};
    char name[96];
    static char events[65536];
    int count = 0;

    for (size_t i = 0; i < sizeof CLASSES / sizeof *CLASSES; i++) {
        snprintf(name, sizeof name, "%sacct:%s:audit%s", fixture_name(fixture->account, ""), fixture->account,
                 CLASSES[i]);
        redis_server_ask(redis, events, sizeof events, "XRANGE", name, "-", "+", NULL);
        for (const char *at = events; (at = strstr(at, "api_key.revoked")); at++)
            count++;
    }
    return count;
}

static void expect_a_lost_revocation_is_told_again(const char *const *more)
{
    struct lagging l;

    lagging_start(&l, more);
    expect_delete(&l.fixture, 0, &l.key);
    lead_to(&l, &l.replica);
    expect_never_accepted(&l.fixture, &l.key, 1500);
    await_ready(&l.fixture.nodes[0]);
    cr_expect_eq(fixture_try_key(&l.fixture, 0, l.key.secret), 401);
    cr_expect_eq(count_revocations(&l.replica, &l.fixture), 1);
    cr_expect_eq(fixture_try_key(&l.fixture, 0, l.fixture.manager.secret), 200);

    /* The first one again, which has had it all the time. */
    lead_to(&l, &l.fixture.redis);
    expect_never_accepted(&l.fixture, &l.key, 300);
    await_ready(&l.fixture.nodes[0]);
    cr_expect_eq(count_revocations(&l.fixture.redis, &l.fixture), 1, "it was revoked there: nothing is added");
    lagging_stop(&l);
}

/* Else a takeover just after a start would stop a node that has answered nothing yet. */
Test(identity, a_node_that_starts_has_changed_nothing)
{
    struct fixture fixture;
    struct fixture_key key;
    char values[256];

    fixture_start(&fixture, 1, LEASE_1000);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    redis_server_ask(&fixture.redis, values, sizeof values, "HVALS", fixture_name(fixture.account, "chains"), NULL);
    cr_expect_str_eq(values, "0 1 -\n", "the key is the first change");
    fixture_stop(&fixture);
}

Test(identity, a_revocation_that_the_new_master_lacks)
{
    expect_a_lost_revocation_is_told_again(LEASE_1000);
}

Test(identity, a_revocation_that_the_new_master_lacks_of_a_node_that_does_not_cache)
{
    expect_a_lost_revocation_is_told_again(STRICT);
}

static int log_out(const struct fixture *fixture, const struct fixture_session *session)
{
    struct http_answer answer;

    return fixture_call(
        fixture, 0,
        &(struct http_call){
            .method = "POST", .target = "/v1/auth/logout", .cookie = session->token, .csrf = session->csrf},
        &answer);
}

Test(identity, an_end_that_the_new_master_lacks_and_nobody_can_tell_again)
{
    struct fixture_session session;
    struct lagging l;
    char *out, *err;

    lagging_start(&l, LEASE_1000);
    fixture_add_session(&l.fixture, NULL, false, &session);
    cr_assert_eq(log_out(&l.fixture, &session), 204);
    expect_delete(&l.fixture, 0, &l.key);
    lead_to(&l, &l.replica);
    await_reason(&l.fixture.nodes[0], "lost 1 change ");
    for (int i = 0; i < 20; i++) {
        cr_expect_eq(fixture_try_key(&l.fixture, 0, l.key.secret), 503);
        cr_expect_eq(fixture_try_key(&l.fixture, 0, l.fixture.manager.secret), 503);
    }
    cr_expect_eq(count_revocations(&l.replica, &l.fixture), 1, "the revocation was told all the same");

    /* The Redis that has it is brought back. */
    lead_to(&l, &l.fixture.redis);
    await_ready(&l.fixture.nodes[0]);
    cr_expect_eq(fixture_try_key(&l.fixture, 0, l.fixture.manager.secret), 200);

    lead_to(&l, &l.replica);
    await_reason(&l.fixture.nodes[0], "store accept-loss");
    struct redis_server master = l.fixture.redis;
    l.fixture.redis = l.replica;
    cr_expect_eq(fixture_run(&l.fixture, (const char *const[]){"store", "accept-loss", NULL}, NULL, &out, &err), 0,
                 "%s", err);
    l.fixture.redis = master;
    free(out);
    free(err);
    await_ready(&l.fixture.nodes[0]);
    cr_expect_eq(fixture_try_key(&l.fixture, 0, l.key.secret), 401);
    cr_expect_eq(fixture_try_key(&l.fixture, 0, l.fixture.manager.secret), 200);
    lagging_stop(&l);
}

/* {A, node 0} | {B, node 1}: both take changes, and then all meet at B. More was changed there than node 0 ever
 * answered. */
Test(identity, a_partition_that_heals)
{
    struct fixture_key made;
    struct lagging l;

    lagging_start(&l, LEASE_1000);
    redis_proxy_redirect(l.proxy, 1, l.replica.socket_path);
    add_behind_proxy(&l.fixture, l.proxy, 1, LEASE_1000);
    await_ready(&l.fixture.nodes[1]);
    cr_assert_eq(fixture_try_key(&l.fixture, 1, l.key.secret), 200);
    for (int i = 0; i < 5; i++)
        fixture_create_key(&l.fixture, 1, "{\"name\":\"a\",\"mode\":\"live\"}", &made);
    expect_delete(&l.fixture, 0, &l.key);
    cr_assert_eq(fixture_try_key(&l.fixture, 1, l.key.secret), 200, "the other side cannot know");
    lead_to(&l, &l.replica);
    await_log(&l.fixture.nodes[0], "lost revocations were repeated");
    for (size_t i = 0; i < 2; i++) {
        await_ready(&l.fixture.nodes[i]);
        cr_expect_eq(fixture_try_key(&l.fixture, i, l.key.secret), 401, "node %zu", i);
        cr_expect_eq(fixture_try_key(&l.fixture, i, made.secret), 200, "node %zu", i);
    }
    lagging_stop(&l);
}

Test(identity, a_redis_that_was_only_started_again_is_told_nothing)
{
    struct fixture fixture;
    struct fixture_key key;
    char *log;

    fixture_start(&fixture, 1, LEASE_1000);
    for (int i = 0; i < 3; i++) {
        fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
        expect_delete(&fixture, 0, &key);
        long connects = fixture_metric(&fixture, 0, CONNECTS);
        redis_server_restart(&fixture.redis);
        struct deadline deadline = deadline_in(PATIENCE_MS);
        while (fixture_metric(&fixture, 0, CONNECTS) < connects + CONNECTIONS * (long)fixture_partitions()) {
            cr_assert_gt(deadline_left_ms(deadline), 0, "not connected again");
            poll(NULL, 0, 10);
        }
        await_ready(&fixture.nodes[0]);
        cr_expect_eq(fixture_try_key(&fixture, 0, key.secret), 401);
    }
    log = node_log(&fixture.nodes[0]);
    cr_expect_null(strstr(log, "Redis lost changes"), "%s", log);
    free(log);
    fixture_stop(&fixture);
}
