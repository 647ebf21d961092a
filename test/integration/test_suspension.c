/* Suspended accounts: once the command has ended, no node accepts a key or session of the account, from memory or not,
 * whatever happens to nodes and Redis meanwhile. */
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"
#include "redis_proxy.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(suspension, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, STEP_MS = 10, WATCHED_MS = 1500 };

static const char *const LEASE_500[] = {"--lease-ms", "500", NULL};
static const char *const LEASE_5000[] = {"--lease-ms", "5000", NULL};

/* In memory at the node. */
static void make_hot(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    leases_await(fixture, node);
    for (int times = 0; times < 2; times++)
        fixture_await_key(fixture, node, key->secret, 200);
}

static void start_hot(struct fixture *fixture, const char *const *more)
{
    fixture_start(fixture, NODES, more);
    for (size_t node = 0; node < NODES; node++)
        make_hot(fixture, node, &fixture->manager);
}

static void change(struct fixture *fixture, const char *what, const char *account)
{
    struct cli_run run;

    RUN(fixture, &run, "account", what, account);
    cr_assert_eq(run.exit_code, 0, "%s: %s", what, run.err);
    cli_finish(&run);
}

static void expect_suspended(const struct http_answer *answer)
{
    cr_expect_eq(answer->status, 403, "%s", answer->body);
    cr_expect_str_eq(http_answer_code(answer), "account_suspended");
}

static int check(const struct fixture *fixture, size_t node)
{
    return fixture_try_key(fixture, node, fixture->manager.secret);
}

static void await_status(const struct fixture *fixture, size_t node, int wanted)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;

    while ((status = check(fixture, node)) != wanted) {
        cr_assert_eq(status, 503, "node %zu: %d", node, status);
        cr_assert_gt(deadline_left_ms(deadline), 0, "node %zu does not come to %d", node, wanted);
        poll(NULL, 0, STEP_MS);
    }
}

static void expect_never_accepted(const struct fixture *fixture)
{
    struct deadline deadline = deadline_in(WATCHED_MS);

    do {
        for (size_t node = 0; node < fixture->node_count; node++) {
            int status = check(fixture, node);

            cr_assert(status == 403 || status == 503, "node %zu: %d", node, status);
        }
        poll(NULL, 0, STEP_MS);
    } while (deadline_left_ms(deadline) > 0);
}

/* The command, going on beside the test. */
static void begin_command(const struct fixture *fixture, const char *what, const char *account,
                          struct process *ret_process)
{
    const char *const argv[] = {node_binary(),
                                "account",
                                what,
                                account,
                                "--redis",
                                fixture->redis.url,
                                "--master-key-file",
                                fixture->master_key_path,
                                NULL};

    process_start(ret_process, fixture->folder, "account", argv);
}

static bool is_marked(const struct fixture *fixture)
{
    char since[64];

    redis_server_ask(&fixture->redis, since, sizeof since, "HGET", fixture_name(fixture->account, "suspended"),
                     fixture->account, NULL);
    return strcmp(since, "(nil)") != 0;
}

static void await_mark(const struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!is_marked(fixture)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "the account is not suspended in Redis");
        poll(NULL, 0, 1);
    }
}

Test(suspension, refuses_at_every_node_on_open_connections_at_once)
{
    static struct http_client clients[NODES];
    struct fixture_key other, device;
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    char account[ID_TEXT_BYTES];

    start_hot(&fixture, LEASE_500);
    fixture_add_account(&fixture, account);
    fixture_add_key(&fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &other);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    fixture_add_session(&fixture, NULL, true, &session);
    struct http_call call = {.target = "/v1/whoami", .bearer = fixture.manager.secret};
    for (size_t node = 0; node < NODES; node++) {
        make_hot(&fixture, node, &other);
        http_client_connect(&clients[node], fixture.nodes[node].port);
        http_client_call(&clients[node], &call, &answer);
        cr_assert_eq(answer.status, 200, "%s", answer.body);
    }
    change(&fixture, "suspend", fixture.account);
    for (size_t node = 0; node < NODES; node++) {
        struct http_call asked = {.target = "/check/auth-request",
                                  .bearer = fixture.manager.secret,
                                  .fields = "X-Original-Method: GET\r\nX-Original-URI: /v1/patients\r\n"};
        struct http_call uploaded = {.method = "POST", .target = "/v1/documents", .bearer = device.secret};
        struct http_call seen = {.target = "/v1/console/api_keys", .cookie = session.token};
        char code[64];

        http_client_call(&clients[node], &call, &answer);
        expect_suspended(&answer);
        http_client_close(&clients[node]);
        http_call(fixture.nodes[node].internal_port, &asked, &answer);
        expect_suspended(&answer);
        cr_expect(http_answer_field(&answer, "X-Auth-Error", code, sizeof code));
        cr_expect_str_eq(code, "account_suspended");
        (void)fixture_call(&fixture, node, &uploaded, &answer);
        expect_suspended(&answer);
        (void)fixture_call(&fixture, node, &seen, &answer);
        expect_suspended(&answer);
        cr_expect_eq(fixture_try_key(&fixture, node, other.secret), 200, "another account's key");
    }
    change(&fixture, "resume", fixture.account);
    for (size_t node = 0; node < NODES; node++) {
        struct http_call seen = {.target = "/v1/console/api_keys", .cookie = session.token};

        fixture_await_resumed(&fixture, node, fixture.manager.secret, 200);
        cr_expect_eq(fixture_call(&fixture, node, &seen, &answer), 200, "%s", answer.body);
    }
    fixture_stop(&fixture);
}

Test(suspension, a_node_that_starts_later_refuses_too)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, LEASE_500);
    change(&fixture, "suspend", fixture.account);
    fixture_add_node(&fixture, LEASE_500);
    fixture_add_node(&fixture, leases_none());
    for (size_t node = 0; node < fixture.node_count; node++)
        cr_expect_eq(check(&fixture, node), 403, "node %zu", node);
    change(&fixture, "resume", fixture.account);
    for (size_t node = 0; node < fixture.node_count; node++)
        fixture_await_resumed(&fixture, node, fixture.manager.secret, 200);
    change(&fixture, "suspend", fixture.account);
    for (size_t node = 0; node < fixture.node_count; node++)
        cr_expect_eq(check(&fixture, node), 403, "node %zu", node);
    fixture_stop(&fixture);
}

/* The node is stopped while the command runs, and the request waits in its socket when it goes on. */
Test(suspension, a_node_that_was_stopped_refuses_what_was_sent_after_the_end)
{
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;
    int64_t began_ms;

    start_hot(&fixture, LEASE_500);
    struct http_call call = {.target = "/v1/whoami", .bearer = fixture.manager.secret};
    http_client_connect(&client, fixture.nodes[1].port);
    http_client_call(&client, &call, &answer);
    cr_assert_eq(answer.status, 200);
    process_signal(&fixture.nodes[1].process, SIGSTOP);
    began_ms = deadline_now_ms();
    change(&fixture, "suspend", fixture.account);
    cr_expect_geq(deadline_now_ms() - began_ms, 500 * 125 / 100 + 50, "ended before the node's lease had");
    http_client_send_call(&client, &call);
    process_signal(&fixture.nodes[1].process, SIGCONT);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    if (!leases_are_required() || answer.status != 503)
        expect_suspended(&answer);
    http_client_close(&client);
    await_status(&fixture, 1, 403);
    fixture_stop(&fixture);
}

/* Messages reach the node only much later: its lease ends, and it reads Redis for each check. */
Test(suspension, a_node_that_hears_nothing_compares_versions)
{
    struct fixture_key unread;
    struct redis_proxy *proxy;
    struct fixture fixture;
    char url[64];

    fixture_use_one_redis("in a cluster, a node that hears nothing has no lease and decides nothing");
    fixture_start(&fixture, 0, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &unread);
    proxy = redis_proxy_start(fixture.redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_proxy_port(proxy, 0));
    fixture_start_node(&fixture, 0, "slow", url, LEASE_500);
    fixture.node_count = 1;
    make_hot(&fixture, 0, &fixture.manager);
    redis_proxy_hold(proxy, 0, REDIS_PROXY_INVALIDATIONS, REDIS_PROXY_TO_NODE, true);
    change(&fixture, "suspend", fixture.account);
    for (int times = 0; times < 10; times++) {
        cr_expect_eq(check(&fixture, 0), 403);
        cr_expect_eq(fixture_try_key(&fixture, 0, unread.secret), 403);
    }
    change(&fixture, "resume", fixture.account);
    cr_expect_eq(check(&fixture, 0), 200);
    redis_proxy_hold(proxy, 0, REDIS_PROXY_INVALIDATIONS, REDIS_PROXY_TO_NODE, false);
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
}

Test(suspension, redis_frozen_while_the_command_waits)
{
    struct process command;
    struct fixture fixture;

    start_hot(&fixture, LEASE_500);
    begin_command(&fixture, "suspend", fixture.account, &command);
    await_mark(&fixture);
    redis_server_freeze(&fixture.redis);
    cr_assert(process_wait(&command, PATIENCE_MS));
    if (process_exit_code(&command) == 0)
        expect_never_accepted(&fixture);
    redis_server_thaw(&fixture.redis);
    for (size_t node = 0; node < NODES; node++)
        await_status(&fixture, node, 403);
    fixture_stop(&fixture);
}

Test(suspension, the_store_lost_while_the_command_waits)
{
    struct process command;
    struct fixture fixture;

    start_hot(&fixture, LEASE_5000);
    begin_command(&fixture, "suspend", fixture.account, &command);
    await_mark(&fixture);
    redis_server_kill(&fixture.redis);
    redis_server_forget(&fixture.redis);
    redis_server_restart(&fixture.redis);
    cr_assert(process_wait(&command, PATIENCE_MS));
    cr_expect_eq(process_exit_code(&command), 1, "the command must not say that it is done");
    for (size_t node = 0; node < NODES; node++)
        node_kill(&fixture.nodes[node]);
    fixture_stop(&fixture);
}

/* Redis comes back with what it held before the suspension. The nodes know better. */
Test(suspension, is_repeated_at_a_redis_that_lost_it)
{
    struct fixture fixture;
    char name[64];

    start_hot(&fixture, LEASE_500);
    change(&fixture, "suspend", fixture.account);
    for (size_t node = 0; node < NODES; node++)
        cr_assert_eq(check(&fixture, node), 403);
    snprintf(name, sizeof name, "%sacct:%s", fixture_name(fixture.account, ""), fixture.account);
    redis_server_tell(&fixture.redis, "HDEL", name, "suspended", NULL);
    redis_server_tell(&fixture.redis, "HDEL", fixture_name(fixture.account, "store"), "suspensions", NULL);
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, "suspended"), NULL);
    redis_server_restart(&fixture.redis);
    expect_never_accepted(&fixture);
    for (size_t node = 0; node < NODES; node++)
        await_status(&fixture, node, 403);
    cr_expect(is_marked(&fixture));
    change(&fixture, "resume", fixture.account);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_resumed(&fixture, node, fixture.manager.secret, 200);
    fixture_stop(&fixture);
}

Test(suspension, keys_created_meanwhile_are_refused)
{
    /* One key may change more than that until the command has begun. */
    static const char *const MORE[] = {"--lease-ms", "500", "--changes-per-minute", "1000000", NULL};
    enum { KEYS_MAX = 5000 };
    static struct fixture_key keys[KEYS_MAX];
    struct process command;
    struct fixture fixture;
    size_t count = 0;
    int status;

    start_hot(&fixture, MORE);
    begin_command(&fixture, "suspend", fixture.account, &command);
    while ((status = fixture_try_create_key(&fixture, count % NODES, "{\"name\":\"a\",\"mode\":\"live\"}",
                                            &keys[count])) == 201) {
        cr_assert_lt(++count, KEYS_MAX);
        poll(NULL, 0, STEP_MS);
    }
    cr_assert_eq(status, 403);
    cr_assert(process_wait(&command, PATIENCE_MS));
    cr_assert_eq(process_exit_code(&command), 0);
    for (size_t i = 0; i < count; i++)
        for (size_t node = 0; node < NODES; node++)
            cr_assert_eq(fixture_try_key(&fixture, node, keys[i].secret), 403, "key %zu at node %zu", i, node);
    change(&fixture, "resume", fixture.account);
    if (count > 0)
        fixture_await_resumed(&fixture, 0, keys[count - 1].secret, 200);
    fixture_stop(&fixture);
}

Test(suspension, sign_in_tells_only_who_has_password_and_code)
{
    struct fixture_user user;
    struct http_answer answer;
    struct fixture fixture;
    char code[8];

    fixture_start(&fixture, 1, LEASE_500);
    fixture_add_user(&fixture, "ada@clinic.example", &user);
    change(&fixture, "suspend", fixture.account);
    cr_expect_eq(fixture_login(&fixture, 0, &user, "not-the-password-1", NULL, NULL, &answer), 401);
    cr_expect_str_eq(http_answer_code(&answer), "invalid_login");
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, "000000", NULL, &answer), 401);
    fixture_totp(&user, 0, code);
    (void)fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer);
    expect_suspended(&answer);
    change(&fixture, "resume", fixture.account);
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer), 401, "the code is used up");
    fixture_stop(&fixture);
}

Test(suspension, needs_a_store_that_earlier_versions_refuse)
{
    struct cli_run run;
    struct fixture fixture;

    fixture_start(&fixture, 1, LEASE_500);
    redis_server_tell(&fixture.redis, "SET", fixture_name(fixture.account, "schema"), "1", NULL);
    RUN(&fixture, &run, "account", "suspend", fixture.account);
    cli_expect_refusal(&run, 1, "store upgrade", "suspend");
    cr_expect_eq(check(&fixture, 0), 200);
    cr_expect_not(is_marked(&fixture));
    fixture_stop(&fixture);
}

Test(suspension, refuses_what_is_no_account)
{
    struct cli_run run;
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "account", "suspend", "acct_01jd8x4v2m7q9c3t5r6w8y0zab");
    cli_expect_refusal(&run, 1, "no such account", "unknown");
    RUN(&fixture, &run, "account", "suspend", fixture.manager.id);
    cli_expect_refusal(&run, 2, "not an account id", "a key");
    RUN(&fixture, &run, "account", "resume", fixture.account);
    cr_expect_eq(run.exit_code, 0);
    cr_expect(strstr(run.out, "was not suspended"), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

static int count_waits(const char *said)
{
    int count = 0;

    for (const char *at = strstr(said, "Waiting"); at; at = strstr(at + 1, "Waiting"))
        count++;
    return count;
}

/* A command is no node, so no node can confirm to it: it waits for their leases. */
Test(suspension, commands_say_what_they_wait_for)
{
    struct fixture_key keys[2];
    struct fixture fixture;
    struct cli_run run;

    fixture_use_one_redis("where another may take over, changes wait for the leases of the one before");
    fixture_start(&fixture, 0, NULL);
    RUN(&fixture, &run, "account", "suspend", fixture.account);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_waits(run.err), 0, "nobody ever had a lease: %s", run.err);
    cli_finish(&run);
    change(&fixture, "resume", fixture.account);

    fixture_add_node(&fixture, NULL);
    leases_await(&fixture, 0);
    for (size_t i = 0; i < 2; i++)
        fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &keys[i]);
    RUN(&fixture, &run, "key", "revoke", keys[0].id);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_waits(run.err), 1, "%s", run.err);
    cli_finish(&run);
    RUN(&fixture, &run, "key", "revoke", keys[1].id, "--json");
    cr_expect_eq(run.out[0], '{', "%s", run.out);
    cr_expect_eq(count_waits(run.err), 1, "%s", run.err);
    cli_finish(&run);
    RUN(&fixture, &run, "account", "close", fixture.account, "--yes");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_eq(count_waits(run.err), 1, "once, although it waits twice: %s", run.err);
    cli_finish(&run);
    fixture_stop(&fixture);
}
