/* store copy: a store of one partition into four, in the same Redis, and back into one. What belongs to an account
 * works after each way. Refusals, and a copy that was killed. */
#include "cli.h"
#include "leak_guard.h"
#include "old_keys.h"
#include "people.h"
#include "redis_cluster.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(store_copy, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { URL_BYTES = sizeof(((struct fixture *)0)->redis.url) + 8 };

/* An account with one of everything, and another one that is suspended. */
struct clinic {
    struct people people;
    char urls[3][URL_BYTES]; /* databases of the same Redis */
    struct fixture_user ada; /* can sign in */
    struct fixture_key key, old_key, device_key, revoked_key, suspended_key;
    struct old_key buried_key; /* 401 days after its end */
    struct fixture_session session, old_session;
    char suspended[ID_TEXT_BYTES];
    char invitation[FIXTURE_TOKEN_BYTES];
    char recovery_code[32];
};

static void run(struct clinic *c, struct cli_run *ret_run, const char *const *args)
{
    cli_run_bare(&c->people.fixture, ret_run, args);
}

/* Nodes, commands and the fixture then use that database, with so many partitions. */
static void turn_to(struct clinic *c, unsigned database, const char *partitions)
{
    const char *url = c->urls[database];

    cr_assert_lt(strlen(url), sizeof c->people.fixture.redis.url);
    memcpy(c->people.fixture.redis.url, url, strlen(url) + 1);
    setenv("CHATELAINE_PARTITIONS", partitions, 1);
}

static void node_begin(struct clinic *c)
{
    c->people.fixture.node_count = 0;
    fixture_add_node(&c->people.fixture, NULL);
}

static void node_end(struct clinic *c)
{
    node_stop(&c->people.fixture.nodes[0]);
}

static void add_keys(struct clinic *c)
{
    struct fixture *fixture = &c->people.fixture;

    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, 0, &c->key);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, 0, &c->device_key);
    fixture_add_key(fixture, NULL, KEY_API, MODE_TEST, 0, &c->revoked_key);
    fixture_revoke_key(fixture, &c->revoked_key);
    old_key_add(fixture, NULL, KEY_API, 401, &c->buried_key);
    fixture_add_session(fixture, NULL, true, &c->session);
    fixture->draws_elsewhere = true;
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, 0, &c->old_key);
    fixture_add_session(fixture, NULL, true, &c->old_session);
    fixture->draws_elsewhere = false;
    fixture_add_account(fixture, c->suspended);
    fixture_add_key(fixture, c->suspended, KEY_API, MODE_LIVE, 0, &c->suspended_key);
}

static void add_what_nodes_make(struct clinic *c)
{
    struct fixture *fixture = &c->people.fixture;
    struct fixture_session adas;
    struct http_answer answer;

    node_begin(c);
    people_invite(&c->people, "grace@clinic.example", "developer", c->invitation);
    fixture_add_session(fixture, &c->ada, true, &adas);
    cr_assert_eq(people_ask(&c->people, 0, &adas, "POST", "/v1/console/recovery_codes", NULL, &answer), 201, "%s",
                 answer.body);
    cr_assert(http_answer_json(&answer, "recovery_codes.0", c->recovery_code, sizeof c->recovery_code));
    cr_assert_eq(fixture_try_key(fixture, 0, c->key.secret), 200);
    cr_assert_eq(fixture_try_key(fixture, 0, c->old_key.secret), 200);
    cr_assert_eq(fixture_try_key(fixture, 0, c->device_key.secret), 403, "known, but not allowed that");
    old_key_await(fixture, NULL, &c->buried_key);
    node_end(c);
}

static void clinic_start(struct clinic *c)
{
    struct cli_run suspension;

    fixture_use_one_partition("copies go between databases of one Redis, with the partitions that a test says");
    people_start(&c->people, 0, NULL);
    for (size_t i = 0; i < 3; i++)
        snprintf(c->urls[i], sizeof c->urls[i], "%s?db=%zu", c->people.fixture.redis.url, i);
    turn_to(c, 0, "1");
    fixture_add_user(&c->people.fixture, "ada@clinic.example", &c->ada);
    add_keys(c);
    add_what_nodes_make(c);
    RUN(&c->people.fixture, &suspension, "account", "suspend", c->suspended);
    cr_assert_eq(suspension.exit_code, 0, "%s", suspension.err);
    cli_finish(&suspension);
}

static void clinic_stop(struct clinic *c)
{
    c->people.fixture.node_count = 0;
    people_stop(&c->people);
}

static void copy(struct clinic *c, unsigned from, unsigned to, const char *to_partitions)
{
    struct cli_run done;

    run(c, &done,
        (const char *const[]){"store", "copy", "--from", c->urls[from], "--to", c->urls[to], "--to-partitions",
                              to_partitions, "--json", NULL});
    cr_assert_eq(done.exit_code, 0, "%s%s", done.out, done.err);
    cr_expect_str_empty(done.err);
    cr_expect(strstr(done.out, "\"accounts\":2,\"keys\":6,\"users\":2,") && strstr(done.out, "\"suspended\":1") &&
                  strstr(done.out, "\"links\":1,\"emails\":2,") && strstr(done.out, "\"unknown\":0"),
              "%s", done.out);
    cli_finish(&done);
}

/* Everything that the store tells of an account. */
static char *export_of(struct clinic *c, const char *account)
{
    struct cli_run told;
    char *out;

    RUN(&c->people.fixture, &told, "account", "export", account);
    cr_assert_eq(told.exit_code, 0, "%s", told.err);
    out = strdup(told.out);
    cli_finish(&told);
    return out;
}

static int try_session(struct clinic *c, const struct fixture_session *session)
{
    struct http_answer answer;

    return people_ask(&c->people, 0, session, "GET", "/v1/console/users", NULL, &answer);
}

static void expect_sessions(struct clinic *c)
{
    cr_expect_eq(try_session(c, &c->session), 200);
    cr_expect_eq(try_session(c, &c->old_session), 200, "made before sessions were drawn");
    cr_expect_eq(try_session(c, &c->people.owner), 200);
}

static void expect_keys(struct clinic *c)
{
    struct fixture *fixture = &c->people.fixture;

    cr_expect_eq(fixture_try_key(fixture, 0, c->key.secret), 200);
    cr_expect_eq(fixture_try_key(fixture, 0, c->old_key.secret), 200);
    cr_expect_eq(fixture_try_key(fixture, 0, c->device_key.secret), 403, "known, but not allowed that");
    cr_expect_eq(fixture_try_key(fixture, 0, c->revoked_key.secret), 401);
    cr_expect_eq(fixture_try_key(fixture, 0, c->suspended_key.secret), 403);
    struct http_call call = {.target = "/v1/whoami", .bearer = c->buried_key.key.secret};
    struct http_answer answer;
    cr_expect_eq(fixture_call(fixture, 0, &call, &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked", "a tombstone");
}

static void expect_people(struct clinic *c)
{
    struct fixture_user grace = {.email = "grace@clinic.example"};
    struct http_answer answer;
    char json[256];

    snprintf(json, sizeof json, "{\"email\":\"%s\",\"password\":\"%s\",\"recovery_code\":\"%s\"}", c->ada.email,
             FIXTURE_PASSWORD, c->recovery_code);
    cr_expect_eq(fixture_call(&c->people.fixture, 0,
                              &(struct http_call){.method = "POST", .target = "/v1/auth/recover", .json = json},
                              &answer),
                 200, "%s", answer.body);
    char next[8];
    fixture_totp(&c->ada, 1, next);
    cr_expect_eq(fixture_login(&c->people.fixture, 0, &c->ada, FIXTURE_PASSWORD, next, NULL, &answer), 200, "%s",
                 answer.body);
    cr_assert_eq(people_begin(&c->people, 0, c->invitation, &grace, &answer), 200, "%s", answer.body);
    cr_expect_eq(people_join(&c->people, 0, c->invitation, &grace, FIXTURE_PASSWORD, &answer), 200, "%s", answer.body);
}

static void expect_export(struct clinic *c, const char *account, const char *expected, const char *where)
{
    char *now = export_of(c, account);

    cr_expect_str_eq(now, expected, "%s", where);
    free(now);
}

Test(store_copy, there_and_back)
{
    static struct clinic c;
    char *exports[2];

    clinic_start(&c);
    exports[0] = export_of(&c, c.people.fixture.account);
    exports[1] = export_of(&c, c.suspended);
    copy(&c, 0, 0, "4");
    turn_to(&c, 0, "4");
    expect_export(&c, c.people.fixture.account, exports[0], "four partitions");
    expect_export(&c, c.suspended, exports[1], "four partitions");
    copy(&c, 0, 1, "1");
    turn_to(&c, 1, "1");
    expect_export(&c, c.people.fixture.account, exports[0], "back again");
    expect_export(&c, c.suspended, exports[1], "back again");
    node_begin(&c);
    expect_sessions(&c);
    expect_keys(&c);
    expect_people(&c);
    node_end(&c);
    free(exports[0]);
    free(exports[1]);
    clinic_stop(&c);
}

Test(store_copy, nodes_serve_the_partitions)
{
    static struct clinic c;

    clinic_start(&c);
    copy(&c, 0, 1, "4");
    turn_to(&c, 1, "4");
    node_begin(&c);
    expect_sessions(&c);
    expect_keys(&c);
    expect_people(&c);
    node_end(&c);
    clinic_stop(&c);
}

static void expect_link(struct clinic *c)
{
    struct fixture_user grace = {.email = "grace@clinic.example"};
    struct http_answer answer;

    cr_expect_eq(people_begin(&c->people, 0, c->invitation, &grace, &answer), 200, "%s", answer.body);
}

/* With three primaries, which hold the partitions among them. */
Test(store_copy, into_a_cluster_and_back)
{
    static struct clinic c;
    static struct cluster_servers cluster;
    char *exported;

    clinic_start(&c);
    setenv("CHATELAINE_UNSAFE_REDIS", "1", 1);
    setenv("CHATELAINE_LEASE_MS", "3000", 1); /* as in the fixture's own clusters */
    exported = export_of(&c, c.people.fixture.account);
    cluster_servers_start(&cluster, 3, false);
    snprintf(c.urls[1], sizeof c.urls[1], "%s", cluster.url);
    copy(&c, 0, 1, "4");
    setenv("CHATELAINE_TEST_CLUSTER", "3", 1);
    turn_to(&c, 1, "4");
    expect_export(&c, c.people.fixture.account, exported, "in the cluster");
    node_begin(&c);
    fixture_await_all_ready(&c.people.fixture, 0);
    expect_sessions(&c);
    expect_keys(&c);
    expect_link(&c);
    node_end(&c);
    copy(&c, 1, 2, "1");
    unsetenv("CHATELAINE_TEST_CLUSTER");
    turn_to(&c, 2, "1");
    node_begin(&c);
    expect_sessions(&c);
    expect_keys(&c);
    expect_people(&c);
    node_end(&c);
    free(exported);
    cluster_servers_stop(&cluster);
    clinic_stop(&c);
}

/* Refusals */

static void expect_refused(struct clinic *c, const char *const *options, int code, const char *says)
{
    const char *args[12] = {"store", "copy"};
    struct cli_run refused;

    for (size_t i = 2; (args[i] = *options) != NULL && i < 11; i++)
        options++;
    run(c, &refused, args);
    cli_expect_refusal(&refused, code, says, says);
}

#define REFUSED(c, code, says, ...) expect_refused(c, (const char *const[]){__VA_ARGS__, NULL}, code, says)

static void await_registration(const struct clinic *c)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char nodes[64] = "";

    while (strtol(nodes, NULL, 10) == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        redis_server_ask(&c->people.fixture.redis, nodes, sizeof nodes, "HLEN", "chatelaine:nodes", NULL);
    }
}

static void expect_untouched(const struct clinic *c)
{
    char names[64];

    redis_server_ask(&c->people.fixture.redis, names, sizeof names, "EVAL",
                     "redis.call('SELECT', 1) return #redis.call('KEYS', '*:store')", "0", NULL);
    cr_expect_str_eq(names, "0");
}

static void undo_copy(struct clinic *c)
{
    struct cli_run undone;

    run(c, &undone, (const char *const[]){"store", "copy", "--undo", "--yes", "--json", "--from", c->urls[0], NULL});
    cr_assert_eq(undone.exit_code, 0, "%s", undone.err);
    cr_expect_str_eq(undone.out, "{\"undone\":true}\n");
    cli_finish(&undone);
}

Test(store_copy, refusals)
{
    static struct clinic c;

    clinic_start(&c);
    REFUSED(&c, 2, "--to or --to-file is required", "--from", c.urls[0]);
    REFUSED(&c, 2, "no power of two", "--from", c.urls[0], "--to", c.urls[1], "--to-partitions", "3");
    REFUSED(&c, 1, "The source holds no store", "--from", c.urls[0], "--from-partitions", "4", "--to", c.urls[1]);
    REFUSED(&c, 1, "The source holds no store", "--from", c.urls[2], "--to", c.urls[1]);
    REFUSED(&c, 1, "it holds this store already", "--from", c.urls[0], "--to", c.urls[0]);
    redis_server_tell(&c.people.fixture.redis, "SET", "chatelaine:schema", "3", NULL);
    REFUSED(&c, 1, "a newer chatelaine", "--from", c.urls[0], "--to", c.urls[1]);
    redis_server_tell(&c.people.fixture.redis, "SET", "chatelaine:schema", "2", NULL);
    node_begin(&c);
    await_registration(&c);
    REFUSED(&c, 1, "Nodes serve the source", "--from", c.urls[0], "--to", c.urls[1]);
    expect_untouched(&c);
    node_kill(&c.people.fixture.nodes[0]);
    copy(&c, 0, 1, "4");
    REFUSED(&c, 1, "The source has moved to unix:", "--from", c.urls[0], "--to", c.urls[2]);
    REFUSED(&c, 2, "--undo copies nothing", "--undo", "--from", c.urls[0], "--to", c.urls[2]);
    REFUSED(&c, 2, "needs --yes", "--undo", "--from", c.urls[0]);
    REFUSED(&c, 1, "has not moved", "--undo", "--yes", "--from", c.urls[1]);
    undo_copy(&c);
    redis_server_tell(&c.people.fixture.redis, "HSET", "chatelaine:store", "id", "00112233445566778899aabbccddeeff",
                      NULL);
    REFUSED(&c, 1, "The target is not empty: choose", "--from", c.urls[0], "--to", c.urls[1], "--to-partitions", "4");
    clinic_stop(&c);
}

/* A copy that is killed once it has begun. */

#define MANY "20000"

static void add_many_accounts(const struct clinic *c)
{
    redis_server_tell(&c->people.fixture.redis, "EVAL",
                      "for i = 1, tonumber(ARGV[1]) do local id = string.format('acct_01m8bdmm%018d', i) "
                      "redis.call('HSET', 'chatelaine:acct:' .. id, 'name', 'n', 'created', 1) "
                      "redis.call('ZADD', 'chatelaine:accounts', 0, id) end return 1",
                      "0", MANY, NULL);
}

static void ask_target(const struct clinic *c, char *ret_reply, size_t size, const char *command)
{
    char script[200];

    snprintf(script, sizeof script, "redis.call('SELECT', 1) return redis.call(%s)", command);
    redis_server_ask(&c->people.fixture.redis, ret_reply, size, "EVAL", script, "0", NULL);
}

static void begin_and_kill(struct clinic *c)
{
    const char *const argv[] = {node_binary(), "store",           "copy", "--from", c->urls[0], "--to",
                                c->urls[1],    "--to-partitions", "4",    NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct process process;
    char accounts[64] = "";

    process_start(&process, c->people.fixture.folder, "copy", argv);
    while (strtol(accounts, NULL, 10) == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        ask_target(c, accounts, sizeof accounts, "'ZCARD', 'chatelaine:{0}:accounts'");
    }
    process_kill(&process);
}

static bool is_copying(const struct clinic *c)
{
    char reply[64];

    ask_target(c, reply, sizeof reply, "'HEXISTS', 'chatelaine:{0}:store', 'copying'");
    return strcmp(reply, "1") == 0;
}

Test(store_copy, starts_over_after_a_kill)
{
    enum { TIMES_MAX = 5 };
    static struct clinic c;
    struct cli_run refused;
    char reply[64];

    clinic_start(&c);
    add_many_accounts(&c);
    begin_and_kill(&c);
    for (unsigned times = 1; !is_copying(&c); times++) {
        cr_assert_lt(times, TIMES_MAX, "the copy was killed too late each time");
        ask_target(&c, reply, sizeof reply, "'FLUSHDB'");
        begin_and_kill(&c);
    }
    ask_target(&c, reply, sizeof reply, "'HSET', 'chatelaine:{0}:user:usr_gone', 'account', 'stale'");
    turn_to(&c, 1, "4");
    RUN(&c.people.fixture, &refused, "account", "create", "--name", "South");
    cli_expect_refusal(&refused, 3, "newer chatelaine", "a command at the target");
    REFUSED(&c, 1, "A copy into the source is under way", "--from", c.urls[1], "--to", c.urls[2]);
    run(&c, &refused,
        (const char *const[]){"store", "copy", "--from", c.urls[0], "--to", c.urls[1], "--to-partitions", "4", NULL});
    cr_assert_eq(refused.exit_code, 0, "%s", refused.err);
    cr_expect(strstr(refused.out, "20002 accounts, 6 keys"), "%s", refused.out);
    cli_finish(&refused);
    ask_target(&c, reply, sizeof reply, "'EXISTS', 'chatelaine:{0}:user:usr_gone'");
    cr_expect_str_eq(reply, "0");
    cr_expect_not(is_copying(&c));
    node_begin(&c);
    expect_sessions(&c);
    node_end(&c);
    clinic_stop(&c);
}

/* A node that finds a copy under way says so, and serves once it is done. */
Test(store_copy, a_node_waits_for_the_copy)
{
    static struct clinic c;
    struct http_answer answer;
    struct deadline deadline = deadline_in(PATIENCE_MS);

    clinic_start(&c);
    node_begin(&c);
    redis_server_tell(&c.people.fixture.redis, "HSET", "chatelaine:store", "copying", "aa", NULL);
    redis_server_tell(&c.people.fixture.redis, "SET", "chatelaine:schema", "1000000", NULL);
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
        poll(NULL, 0, 20);
        http_call(c.people.fixture.nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, &answer);
    } while (answer.status != 503);
    cr_expect(strstr(answer.body, "A copy into this store is under way"), "%s", answer.body);
    redis_server_tell(&c.people.fixture.redis, "HDEL", "chatelaine:store", "copying", NULL);
    redis_server_tell(&c.people.fixture.redis, "SET", "chatelaine:schema", "2", NULL);
    fixture_await_key(&c.people.fixture, 0, c.key.secret, 200);
    node_end(&c);
    clinic_stop(&c);
}

/* After the copy, with a node that has its old settings */

/* Its connections are cut while it stands still, as if its cable was pulled. */
static void node_cut_off(struct clinic *c)
{
    process_signal(&c->people.fixture.nodes[0].process, SIGSTOP);
    redis_server_tell(&c->people.fixture.redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    redis_server_tell(&c->people.fixture.redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
}

static int try_revocation(struct clinic *c, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[128];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    return fixture_call(
        &c->people.fixture, 0,
        &(struct http_call){.method = "DELETE", .target = target, .bearer = c->people.fixture.manager.secret}, &answer);
}

/* Until then, and after it, nothing is decided there. */
static void await_sent_away(struct clinic *c, const char *place)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
        cr_expect_eq(try_revocation(c, &c->key), 503);
        cr_expect_eq(fixture_try_key(&c->people.fixture, 0, c->key.secret), 503);
        http_call(c->people.fixture.nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, &answer);
    } while (answer.status != 503 || !strstr(answer.body, place));
    cr_expect_eq(try_revocation(c, &c->key), 503);
    cr_expect_eq(fixture_try_key(&c->people.fixture, 0, c->key.secret), 503);
    cr_expect_eq(try_session(c, &c->session), 503);
    cr_expect(file_contains(c->people.fixture.nodes[0].process.err_path, place));
}

static void expect_commands_sent_away(struct clinic *c, const char *place)
{
    static const char *const SERVE[] = {"serve",       "--listen",        "127.0.0.1:0", "--internal-listen",
                                        "127.0.0.1:0", "--public-origin", NODE_ORIGIN,   NULL};
    struct cli_run refused;

    RUN(&c->people.fixture, &refused, "account", "list");
    cli_expect_refusal(&refused, 3, place, "account list");
    RUN(&c->people.fixture, &refused, "key", "revoke", c->key.id);
    cli_expect_refusal(&refused, 3, place, "key revoke");
    cli_run(&c->people.fixture, &refused, SERVE, NULL);
    cli_expect_refusal(&refused, 3, place, "serve");
    RUN(&c->people.fixture, &refused, "doctor", "--public-origin", NODE_ORIGIN);
    cr_expect_eq(refused.exit_code, 3);
    cr_expect(strstr(refused.out, "\nfail  store "), "%s", refused.out);
    cr_expect(strstr(refused.out, " has moved to unix:"), "%s", refused.out);
    cr_expect_null(strstr(refused.out, "newer chatelaine"), "%s", refused.out);
    cli_finish(&refused);
    RUN(&c->people.fixture, &refused, "status");
    cr_expect(refused.exit_code == 3 && strstr(refused.out, place), "%s", refused.out);
    cli_finish(&refused);
}

Test(store_copy, a_node_that_was_cut_off_is_sent_away)
{
    static struct clinic c;
    char place[URL_BYTES + 64];

    clinic_start(&c);
    snprintf(place, sizeof place, "has moved to %s, --partitions 4", c.urls[1]);
    node_begin(&c);
    fixture_await_key(&c.people.fixture, 0, c.key.secret, 200);
    node_cut_off(&c);
    copy(&c, 0, 1, "4");
    process_signal(&c.people.fixture.nodes[0].process, SIGCONT);
    await_sent_away(&c, place);
    expect_commands_sent_away(&c, place);
    copy(&c, 1, 0, "1");
    fixture_await_key(&c.people.fixture, 0, c.key.secret, 200);
    cr_expect_eq(try_revocation(&c, &c.key), 200);
    cr_expect_eq(fixture_try_key(&c.people.fixture, 0, c.key.secret), 401);
    node_end(&c);
    clinic_stop(&c);
}
