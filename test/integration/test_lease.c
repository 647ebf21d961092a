/* Checks from memory, and revocations that reach every node's memory before they are answered. */
#include "core/secret.h"
#include "fixture.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lease, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* OTHERS_MAX: reads of something else that a few checks may count. */
enum { STATS_BYTES = 32 * 1024, OTHERS_MAX = 5 };

static const char *const LEASE_300[] = {"--lease-ms", "300", NULL};
static const char *const LEASE_500[] = {"--lease-ms", "500", NULL};
static const char *const LEASE_1000[] = {"--lease-ms", "1000", NULL};
/* Without the canary, whose scripts read strings, too. */
static const char *const LEASE_5000[] = {"--lease-ms", "5000", "--canary-interval-ms", "0", NULL};
static const char *const LEASE_5000_HASTY[] = {"--lease-ms", "5000", "--redis-timeout-ms", "2000", NULL};
static const char *const STRICT[] = {"--lease-ms", "0", NULL};

/* How long a revocation waits for a node that says nothing. */
static int wait_ms(int lease_ms)
{
    return lease_ms * 125 / 100 + 50;
}

static long forced_waits(const struct fixture *fixture, size_t node)
{
    return fixture_metric(fixture, node, "chatelaine_barrier_forced_waits_total");
}

static long long sessions(const struct fixture *fixture)
{
    char count[32];

    redis_server_ask(&fixture->redis, count, sizeof count, "HLEN", fixture_name(fixture->account, "nodes"), NULL);
    return strtoll(count, NULL, 10);
}

static void await_sessions(const struct fixture *fixture, long long count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (sessions(fixture) != count && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    cr_assert_eq(sessions(fixture), count);
}

static long calls_of(const char *stats, const char *line)
{
    const char *at = strstr(stats, line);

    return at ? strtol(at + strlen(line), NULL, 10) : 0;
}

/* How many records of keys were read since the last time, as well as that can be known: scripts count as well. Most
 * that run meanwhile read one other string each, and heartbeats two with one MGET. But a node's report reads none, and
 * a look at Redis' fitness reads three with two scripts. */
static long reads_of_keys(const struct fixture *fixture)
{
    static char stats[STATS_BYTES];
    long reads = 0;

    for (const struct redis_server *server = &fixture->redis; server; server = server->next) {
        redis_server_ask(server, stats, sizeof stats, "INFO", "commandstats", NULL);
        reads += calls_of(stats, "cmdstat_get:calls=") + calls_of(stats, "cmdstat_mget:calls=") -
                 calls_of(stats, "cmdstat_evalsha:calls=");
    }
    redis_server_tell_all(&fixture->redis, "CONFIG", "RESETSTAT", NULL);
    return reads;
}

/* A report or a look at Redis' fitness may come between, but not each time. */
static void expect_reads(const struct fixture *fixture, size_t node, unsigned checks, long wanted, const char *why)
{
    enum { TIMES_MAX = 5 };
    long reads = -1;

    for (unsigned times = 0; times < TIMES_MAX && reads != wanted; times++) {
        (void)reads_of_keys(fixture);
        for (unsigned i = 0; i < checks; i++)
            cr_assert_eq(fixture_try_key(fixture, node, fixture->manager.secret), 200);
        reads = reads_of_keys(fixture);
    }
    cr_expect_eq(reads, wanted, "%ld records of keys were read, not %ld: %s", reads, wanted, why);
}

/* In memory at every node. */
static void make_hot(const struct fixture *fixture, const struct fixture_key *key)
{
    for (size_t i = 0; i < fixture->node_count; i++)
        for (int times = 0; times < 2; times++)
            fixture_await_key(fixture, i, key->secret, 200);
}

static void some_hot_key(struct fixture *fixture, struct fixture_key *ret_key)
{
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, ret_key);
    make_hot(fixture, ret_key);
}

/* Returns how long it took. */
static int64_t revoke_key(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    int64_t began_ms = deadline_now_ms();
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 200, "%s", answer.body);
    return deadline_now_ms() - began_ms;
}

static int64_t revoke_in_console(struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    struct fixture_session session;
    struct http_answer answer;
    char target[64];
    int64_t began_ms;

    snprintf(target, sizeof target, "/v1/console/api_keys/%s", key->id);
    fixture_add_session(fixture, NULL, true, &session);
    struct http_call call = {.method = "DELETE", .target = target, .cookie = session.token, .csrf = session.csrf};
    began_ms = deadline_now_ms();
    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 200, "%s", answer.body);
    return deadline_now_ms() - began_ms;
}

static int64_t revoke_on_the_command_line(struct fixture *fixture, const struct fixture_key *key)
{
    const char *args[] = {"key", "revoke", key->id, NULL};
    int64_t began_ms = deadline_now_ms();
    char *err;

    cr_assert_eq(fixture_run(fixture, args, NULL, NULL, &err), 0, "%s", err);
    free(err);
    return deadline_now_ms() - began_ms;
}

static void expect_revoked(const struct fixture *fixture, const struct fixture_key *key)
{
    for (size_t i = 0; i < fixture->node_count; i++) {
        struct http_call call = {.target = "/v1/whoami", .bearer = key->secret};
        struct http_answer answer;

        if (fixture->nodes[i].process.pid == 0)
            continue;
        if (leases_are_required())
            fixture_await_key(fixture, i, key->secret, 401);
        cr_expect_eq(fixture_call(fixture, i, &call, &answer), 401, "node %zu: %s", i, answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked");
    }
}

static void expect_waited(int64_t took_ms, int lease_ms)
{
    cr_expect_geq(took_ms, wait_ms(lease_ms), "answered before the leases had ended");
}

/* Reads of Redis */

Test(lease, a_key_that_is_remembered_costs_redis_nothing)
{
    enum { CHECKS = 40, UNKNOWN_MS = 1000 };
    struct fixture fixture;
    struct secret unknown;
    int64_t began_ms;

    fixture_start(&fixture, 1, LEASE_5000);
    leases_await(&fixture, 0);
    make_hot(&fixture, &fixture.manager);
    expect_reads(&fixture, 0, CHECKS, 0, "it is remembered");
    cr_expect_geq(fixture_metric(&fixture, 0, "chatelaine_cache_lookups_total{result=\"hit\"}"), CHECKS);
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_cache_entries"), 1);

    secret_mint(KEY_API, MODE_LIVE, &unknown);
    began_ms = deadline_now_ms();
    for (int i = 0; i < CHECKS; i++)
        cr_assert_eq(fixture_try_key(&fixture, 0, unknown.text), 401);
    cr_expect_leq(reads_of_keys(&fixture), 1 + (deadline_now_ms() - began_ms) / UNKNOWN_MS + OTHERS_MAX,
                  "unknown keys are remembered too");
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_cache_enabled"), 1);
    fixture_stop(&fixture);
}

Test(lease, a_strict_node_reads_redis_each_time)
{
    enum { CHECKS = 40 };
    struct fixture fixture;

    fixture_use_one_redis("a cluster refuses nodes without leases");
    fixture_start(&fixture, 1, LEASE_5000);
    fixture_add_node(&fixture, STRICT);
    leases_await(&fixture, 0);
    make_hot(&fixture, &fixture.manager);
    expect_reads(&fixture, 1, CHECKS, CHECKS, "strict mode remembers nothing");
    cr_expect_eq(fixture_metric(&fixture, 1, "chatelaine_lease_held"), 0);
    cr_expect_eq(fixture_metric(&fixture, 1, "chatelaine_cache_enabled"), 0);
    cr_expect_eq(sessions(&fixture), 1, "a strict node is waited for by nobody");
    fixture_stop(&fixture);
}

Test(lease, a_name_that_is_too_long_to_be_remembered_is_shown_all_the_same)
{
    enum { CODE_POINTS = 200, BYTES = 4 * CODE_POINTS };
    char name[BYTES + 1], json[BYTES + 64], shown[BYTES + 64];
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 1, LEASE_1000);
    leases_await_all(&fixture);
    for (size_t i = 0; i < CODE_POINTS; i++)
        memcpy(name + 4 * i, "\xf0\x9f\x90\xa2", 4);
    name[BYTES] = '\0';
    snprintf(json, sizeof json, "{\"name\":\"%s\",\"mode\":\"live\"}", name);
    fixture_create_key(&fixture, 0, json, &key);
    for (int i = 0; i < 3; i++) {
        struct http_call call = {.target = "/v1/whoami", .bearer = key.secret};

        cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
        cr_expect(http_answer_json(&answer, "name", shown, sizeof shown), "%s", answer.body);
        cr_expect_str_eq(shown, name);
    }
    revoke_key(&fixture, 0, &key);
    expect_revoked(&fixture, &key);
    fixture_stop(&fixture);
}

/* Revocations */

Test(lease, the_first_request_after_a_revocation_is_denied_at_every_node)
{
    enum { KEYS = 200, NODES = 3 };
    static struct fixture_key keys[KEYS];
    static struct http_client clients[NODES];
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, NODES, LEASE_1000);
    leases_await_all(&fixture);
    for (size_t node = 0; node < NODES; node++)
        http_client_connect(&clients[node], fixture.nodes[node].port);
    for (size_t i = 0; i < KEYS; i++) {
        struct http_call create = {.method = "POST",
                                   .target = "/v1/api_keys",
                                   .bearer = fixture.manager.secret,
                                   .json = "{\"name\":\"hot\",\"mode\":\"live\"}"};

        http_client_call(&clients[i % NODES], &create, &answer);
        cr_assert_eq(answer.status, 201, "%s", answer.body);
        http_answer_json(&answer, "id", keys[i].id, sizeof keys[i].id);
        http_answer_json(&answer, "secret", keys[i].secret, sizeof keys[i].secret);
    }
    for (size_t i = 0; i < KEYS; i++) {
        struct http_call check = {.target = "/v1/whoami", .bearer = keys[i].secret};
        char target[64];

        for (size_t node = 0; node < NODES; node++) {
            http_client_call(&clients[node], &check, &answer);
            cr_assert_eq(answer.status, 200, "%s", answer.body);
        }
        snprintf(target, sizeof target, "/v1/api_keys/%s", keys[i].id);
        struct http_call revocation = {.method = "DELETE", .target = target, .bearer = fixture.manager.secret};
        http_client_call(&clients[i % NODES], &revocation, &answer);
        cr_assert_eq(answer.status, 200, "%s", answer.body);
        for (size_t node = 0; node < NODES; node++) {
            http_client_call(&clients[(i + 1 + node) % NODES], &check, &answer);
            cr_assert_eq(answer.status, 401, "key %zu at node %zu", i, (i + 1 + node) % NODES);
        }
    }
    for (size_t node = 0; node < NODES; node++)
        http_client_close(&clients[node]);
    fixture_stop(&fixture);
}

/* 503, where a node without a lease decides nothing. */
static void expect_denied(const struct http_answer *answer)
{
    cr_expect(answer->status == 401 || (leases_are_required() && answer->status == 503), "%s", answer->body);
}

/* A node that is stopped while a key is revoked, with the request already in its socket when it goes on. */
Test(lease, a_node_that_was_stopped_denies_what_was_sent_after_the_answer)
{
    struct http_client known, fresh;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 2, LEASE_1000);
    leases_await_all(&fixture);
    some_hot_key(&fixture, &key);
    struct http_call check = {.target = "/v1/whoami", .bearer = key.secret};
    http_client_connect(&known, fixture.nodes[1].port);
    http_client_call(&known, &check, &answer);
    cr_assert_eq(answer.status, 200);

    process_signal(&fixture.nodes[1].process, SIGSTOP);
    expect_waited(revoke_key(&fixture, 0, &key), 1000);
    http_client_connect(&fresh, fixture.nodes[1].port);
    http_client_send_call(&known, &check);
    http_client_send_call(&fresh, &check);
    process_signal(&fixture.nodes[1].process, SIGCONT);
    cr_assert_eq(http_client_read(&known, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    expect_denied(&answer);
    cr_assert_eq(http_client_read(&fresh, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    expect_denied(&answer);
    http_client_close(&known);
    http_client_close(&fresh);
    cr_expect_eq(forced_waits(&fixture, 0), 1);
    leases_await_all(&fixture);
    expect_revoked(&fixture, &key);
    fixture_stop(&fixture);
}

Test(lease, the_console_and_the_command_line_take_the_same_barrier)
{
    struct fixture_key by_console, by_command, stopped_console, stopped_command;
    struct fixture fixture;

    fixture_start(&fixture, 2, LEASE_500);
    leases_await_all(&fixture);
    some_hot_key(&fixture, &by_console);
    some_hot_key(&fixture, &by_command);
    some_hot_key(&fixture, &stopped_console);
    some_hot_key(&fixture, &stopped_command);
    revoke_in_console(&fixture, 0, &by_console);
    expect_revoked(&fixture, &by_console);
    expect_waited(revoke_on_the_command_line(&fixture, &by_command), 500);
    expect_revoked(&fixture, &by_command);

    process_signal(&fixture.nodes[1].process, SIGSTOP);
    expect_waited(revoke_in_console(&fixture, 0, &stopped_console), 500);
    expect_waited(revoke_on_the_command_line(&fixture, &stopped_command), 500);
    process_signal(&fixture.nodes[1].process, SIGCONT);
    expect_revoked(&fixture, &stopped_console);
    expect_revoked(&fixture, &stopped_command);
    fixture_stop(&fixture);
}

Test(lease, nodes_of_different_leases_wait_for_the_longest)
{
    enum { SHORT, LONG, NONE };
    struct fixture_key first, second, third;
    struct fixture fixture;

    fixture_start(&fixture, 1, LEASE_300);
    fixture_add_node(&fixture, LEASE_1000);
    fixture_add_node(&fixture, leases_are_required() ? LEASE_300 : STRICT);
    leases_await(&fixture, SHORT);
    leases_await(&fixture, LONG);
    some_hot_key(&fixture, &first);
    some_hot_key(&fixture, &second);
    some_hot_key(&fixture, &third);
    revoke_key(&fixture, NONE, &first);
    expect_revoked(&fixture, &first);

    process_signal(&fixture.nodes[LONG].process, SIGSTOP);
    expect_waited(revoke_key(&fixture, SHORT, &second), 1000);
    process_signal(&fixture.nodes[LONG].process, SIGCONT);
    expect_revoked(&fixture, &second);
    leases_await(&fixture, LONG);
    await_sessions(&fixture, leases_are_required() ? 3 : 2);
    cr_assert_eq(fixture_try_key(&fixture, LONG, third.secret), 200);

    process_signal(&fixture.nodes[LONG].process, SIGSTOP);
    expect_waited(revoke_key(&fixture, NONE, &third), 1000);
    process_signal(&fixture.nodes[LONG].process, SIGCONT);
    expect_revoked(&fixture, &third);
    fixture_stop(&fixture);
}

/* The registry */

Test(lease, who_drains_is_not_waited_for_and_who_crashed_only_twice)
{
    struct fixture_key first, second, third;
    struct fixture fixture;

    fixture_start(&fixture, 3, LEASE_5000);
    leases_await_all(&fixture);
    await_sessions(&fixture, 3);
    some_hot_key(&fixture, &first);
    some_hot_key(&fixture, &second);
    some_hot_key(&fixture, &third);
    node_stop(&fixture.nodes[1]);
    cr_assert_eq(sessions(&fixture), 2, "gone when the node has ended");
    revoke_key(&fixture, 0, &first);
    cr_expect_eq(forced_waits(&fixture, 0), 0);

    node_kill(&fixture.nodes[2]);
    cr_assert_eq(sessions(&fixture), 2);
    expect_waited(revoke_key(&fixture, 0, &second), 5000);
    cr_expect_eq(forced_waits(&fixture, 0), 1);
    expect_waited(revoke_key(&fixture, 0, &second), 5000);
    cr_expect_eq(forced_waits(&fixture, 0), 2);
    await_sessions(&fixture, 1);
    revoke_key(&fixture, 0, &third);
    cr_expect_eq(forced_waits(&fixture, 0), 2, "it was swept");
    expect_revoked(&fixture, &first);
    expect_revoked(&fixture, &second);
    expect_revoked(&fixture, &third);
    fixture_stop(&fixture);
}

/* Connections break */

enum { KEYS_MANY = 60 };

static void add_hot_keys(struct fixture *fixture, struct fixture_key ret_keys[KEYS_MANY])
{
    fixture_open_store(fixture);
    for (size_t i = 0; i < KEYS_MANY; i++)
        fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &ret_keys[i]);
    fixture_close_store(fixture);
    for (size_t i = 0; i < KEYS_MANY; i++)
        make_hot(fixture, &ret_keys[i]);
}

/* All but the first key, which was revoked, are answered from memory. */
static void expect_kept(const struct fixture *fixture, size_t node, const struct fixture_key keys[KEYS_MANY])
{
    (void)reads_of_keys(fixture);
    fixture_await_key(fixture, node, keys[0].secret, 401);
    for (size_t i = 1; i < KEYS_MANY; i++)
        cr_assert_eq(fixture_try_key(fixture, node, keys[i].secret), 200, "key %zu", i);
    long reads = reads_of_keys(fixture);
    cr_expect_leq(reads, OTHERS_MAX, "the cache was kept: %ld records of keys were read", reads);
}

/* Its connections come back at their own time. */
static void revoke_in_the_end(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;
    char target[64];
    int status;

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    while ((status = fixture_call(fixture, node, &call, &answer)) != 200) {
        cr_assert_eq(status, 503, "%s", answer.body);
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 10);
    }
}

static void kill_connections(const struct fixture *fixture)
{
    redis_server_tell_all(&fixture->redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    redis_server_tell_all(&fixture->redis, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

Test(lease, a_node_that_reconnects_keeps_all_but_what_was_revoked_meanwhile)
{
    struct fixture_key keys[KEYS_MANY];
    struct fixture fixture;

    fixture_start(&fixture, 2, LEASE_5000);
    leases_await_all(&fixture);
    add_hot_keys(&fixture, keys);
    make_hot(&fixture, &fixture.manager);
    process_signal(&fixture.nodes[1].process, SIGSTOP);
    kill_connections(&fixture);
    revoke_in_the_end(&fixture, 0, &keys[0]);
    process_signal(&fixture.nodes[1].process, SIGCONT);
    for (size_t node = 0; node < 2; node++) {
        fixture_await_key(&fixture, node, fixture.manager.secret, 200);
        leases_await(&fixture, node);
        expect_kept(&fixture, node, keys);
    }
    fixture_stop(&fixture);
}

/* Each heartbeat's script, and nothing else here, asks once for the last entry. A node sends the next one only when it
 * has the last one's reply and echo. So behind the second from now on each membership knows the entry that is now the
 * last.
 */
static void await_known_entry(const struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    static char stats[STATS_BYTES];
    long sent = -1, enough = -1;

    do {
        redis_server_ask(&fixture->redis, stats, sizeof stats, "INFO", "commandstats", NULL);
        sent = calls_of(stats, "cmdstat_xrevrange:calls=");
        enough = enough < 0 ? sent + 3 * (long)fixture_partitions() : enough;
        cr_assert_gt(deadline_left_ms(deadline), 0, "no heartbeats");
        poll(NULL, 0, 10);
    } while (sent < enough);
}

Test(lease, a_redis_that_was_restarted_is_asked_for_few_keys)
{
    struct fixture_key keys[KEYS_MANY];
    struct fixture fixture;

    fixture_use_one_redis("in a cluster another process may be another Redis");
    fixture_start(&fixture, 1, LEASE_5000);
    leases_await_all(&fixture);
    add_hot_keys(&fixture, keys);
    revoke_key(&fixture, 0, &keys[0]);
    await_known_entry(&fixture);
    redis_server_kill(&fixture.redis);
    leases_await_end(&fixture, 0);
    redis_server_restart(&fixture.redis);
    fixture_await_key(&fixture, 0, fixture.manager.secret, 200);
    leases_await(&fixture, 0);
    expect_kept(&fixture, 0, keys);
    fixture_stop(&fixture);
}

/* Redis goes away */

/* Asks both nodes for a while; nothing that is sent after the end may be answered 200. */
static void expect_no_answers_from_memory_after(const struct fixture *fixture, int64_t end_ms, int64_t until_ms)
{
    while (deadline_now_ms() < until_ms) {
        for (size_t i = 0; i < fixture->node_count; i++) {
            int64_t sent_ms = deadline_now_ms();
            int status = fixture_try_key(fixture, i, fixture->manager.secret);

            cr_assert(status == 503 || (status == 200 && sent_ms <= end_ms), "%d, %lld ms after the last lease", status,
                      (long long)(sent_ms - end_ms));
        }
        poll(NULL, 0, 10);
    }
}

/* Each of a node's connections comes back at its own time. */
static void await_service(const struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;

    for (size_t i = 0; i < fixture->node_count; i++) {
        while ((status = fixture_try_key(fixture, i, fixture->manager.secret)) != 200) {
            cr_assert_eq(status, 503);
            cr_assert_gt(deadline_left_ms(deadline), 0, "node %zu is not back", i);
            poll(NULL, 0, 10);
        }
    }
}

Test(lease, redis_hangs_and_then_dies_and_comes_back)
{
    enum { SURELY_HELD_MS = 3000 }; /* the oldest lease is one heartbeat old */
    struct fixture fixture;
    struct fixture_key key;
    int64_t now_ms;

    fixture_start(&fixture, 2, LEASE_5000_HASTY);
    leases_await_all(&fixture);
    some_hot_key(&fixture, &key);
    make_hot(&fixture, &fixture.manager);
    redis_server_freeze(&fixture.redis);
    now_ms = deadline_now_ms();
    int status = fixture_try_key(&fixture, 0, fixture.manager.secret);
    cr_expect(status == 200 || deadline_now_ms() - now_ms > SURELY_HELD_MS, "a lease outlives Redis for a while");
    expect_no_answers_from_memory_after(&fixture, now_ms + 5000, now_ms + 6500);
    redis_server_kill(&fixture.redis);
    now_ms = deadline_now_ms();
    expect_no_answers_from_memory_after(&fixture, now_ms, now_ms + 300);

    redis_server_restart(&fixture.redis);
    await_service(&fixture);
    leases_await_all(&fixture);
    await_service(&fixture);
    await_sessions(&fixture, 2);
    revoke_in_the_end(&fixture, 0, &key);
    expect_revoked(&fixture, &key);
    fixture_stop(&fixture);
}
