/* A store with a newer schema: nodes and commands that do not know it decide nothing and change nothing, and say why.
 */
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

TestSuite(schema, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 2, EXIT_UNFIT_CODE = 3 };

#define SENTENCE "written by a newer chatelaine"

static void set_schema(const struct fixture *fixture, const char *version)
{
    for (unsigned i = 0; i < fixture_partitions(); i++)
        redis_server_tell(&fixture->redis, "SET", fixture_name_in(i, "schema"), version, NULL);
}

static void await_readiness(const struct node *node, int status, const char *part)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    while (http_call(node->internal_port, &(struct http_call){.target = "/readyz"}, &answer) != status ||
           !strstr(answer.body, part)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "want %d %s: %s", status, part, answer.body);
        poll(NULL, 0, 10);
    }
}

static void expect_refusal(struct fixture *fixture, const char *const *args, int code)
{
    char *out, *err;
    int got = fixture_run(fixture, args, NULL, &out, &err);

    cr_expect_eq(got, code, "%s: %d: %s%s", args[0], got, out, err);
    cr_expect(strstr(out, SENTENCE) || strstr(err, SENTENCE), "%s: %s%s", args[0], out, err);
    free(out);
    free(err);
}

Test(schema, newer_than_a_program_that_starts)
{
    struct fixture fixture;
    char version[8];

    fixture_start(&fixture, 0, NULL);
    set_schema(&fixture, "3");
    expect_refusal(&fixture,
                   (const char *const[]){"serve", "--public-origin", NODE_ORIGIN, "--listen", "127.0.0.1:0",
                                         "--internal-listen", "127.0.0.1:0", NULL},
                   EXIT_UNFIT_CODE);
    expect_refusal(&fixture, (const char *const[]){"account", "create", "--name", "South", NULL}, EXIT_UNFIT_CODE);
    expect_refusal(&fixture, (const char *const[]){"key", "revoke", fixture.manager.id, NULL}, EXIT_UNFIT_CODE);
    expect_refusal(&fixture, (const char *const[]){"doctor", "--public-origin", NODE_ORIGIN, NULL}, EXIT_UNFIT_CODE);
    cr_expect_eq(fixture_sum(&fixture, "ZCARD", "accounts"), 1);
    redis_server_ask(&fixture.redis, version, sizeof version, "GET", fixture_name(fixture.account, "schema"), NULL);
    cr_expect_str_eq(version, "3");
    fixture_stop(&fixture);
}

static void expect_nothing_decided(const struct fixture *fixture, const struct fixture_key *key)
{
    struct deadline deadline = deadline_in(2000);
    struct fixture_key made;

    while (deadline_left_ms(deadline) > 0) {
        for (size_t i = 0; i < NODES; i++) {
            int status = fixture_try_key(fixture, i, key->secret);
            cr_assert_eq(status, 503, "node %zu: %d", i, status);
        }
        poll(NULL, 0, 10);
    }
    for (size_t i = 0; i < NODES; i++) {
        int status = fixture_try_create_key(fixture, i, "{\"name\":\"a\",\"mode\":\"test\"}", &made);
        cr_expect_eq(status, 503, "node %zu: %d", i, status);
    }
}

/* One node answers from memory, the other reads Redis. */
Test(schema, raised_under_nodes_that_serve)
{
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 1, NULL);
    fixture_add_node(&fixture, leases_none());
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    for (size_t i = 0; i < NODES; i++)
        cr_assert_eq(fixture_try_key(&fixture, i, key.secret), 200);

    set_schema(&fixture, "3");
    for (size_t i = 0; i < NODES; i++)
        await_readiness(&fixture.nodes[i], 503, SENTENCE);
    expect_nothing_decided(&fixture, &key);

    set_schema(&fixture, "2");
    for (size_t i = 0; i < NODES; i++) {
        fixture_await_all_ready(&fixture, i);
        fixture_await_key(&fixture, i, key.secret, 200);
    }
    fixture_stop(&fixture);
}

/* Upgraded under nodes that serve: they go on, from memory and by Redis, and take the new id over. */
Test(schema, upgraded_by_the_operator)
{
    struct fixture fixture;
    struct fixture_key key;
    struct cli_run run;
    char before[64], after[64];

    fixture_start(&fixture, 0, NULL);
    set_schema(&fixture, "1");
    fixture_add_node(&fixture, NULL);
    fixture_add_node(&fixture, leases_none());
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    redis_server_ask(&fixture.redis, before, sizeof before, "HGET", fixture_name(fixture.account, "store"), "id", NULL);
    RUN(&fixture, &run, "account", "suspend", fixture.account);
    cli_expect_refusal(&run, 1, "chatelaine store upgrade", "suspend");
    RUN(&fixture, &run, "store", "upgrade");
    cli_expect_refusal(&run, 2, "needs --yes", "upgrade");
    RUN(&fixture, &run, "store", "upgrade", "--yes");
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect(strstr(run.out, "Upgraded."), "%s", run.out);
    cli_finish(&run);
    redis_server_ask(&fixture.redis, after, sizeof after, "HGET", fixture_name(fixture.account, "store"), "id", NULL);
    cr_expect_str_neq(before, after);
    for (int times = 0; times < 20; times++)
        for (size_t i = 0; i < NODES; i++)
            cr_assert_eq(fixture_try_key(&fixture, i, key.secret), 200, "node %zu", i);
    fixture_revoke_key(&fixture, &key);
    fixture_create_key(&fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &key);
    RUN(&fixture, &run, "store", "upgrade", "--yes", "--json");
    cr_expect_str_eq(run.out, "{\"upgraded\":false}\n");
    cli_finish(&run);
    RUN(&fixture, &run, "account", "suspend", fixture.account);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    for (size_t i = 0; i < NODES; i++)
        cr_expect_eq(fixture_try_key(&fixture, i, key.secret), 403, "node %zu", i);
    fixture_stop(&fixture);
}

/* Redis cannot write the event in the last of four partitions. */
Test(schema, upgraded_in_some_partitions)
{
    struct fixture fixture;
    struct cli_run run;

    setenv("CHATELAINE_PARTITIONS", "4", 1);
    fixture_use_one_redis("its partitions are looked at");
    fixture_start(&fixture, 0, NULL);
    set_schema(&fixture, "1");
    redis_server_tell(&fixture.redis, "DEL", fixture_name_in(3, "audit"), NULL);
    redis_server_tell(&fixture.redis, "SET", fixture_name_in(3, "audit"), "no stream", NULL);
    RUN(&fixture, &run, "store", "upgrade", "--yes");
    cr_expect_eq(run.exit_code, 1);
    cr_expect(strstr(run.err, "Done in partitions 0 to 2 of 4. Partition 3 failed:\n"), "%s", run.err);
    cli_finish(&run);
    redis_server_tell(&fixture.redis, "DEL", fixture_name_in(3, "audit"), NULL);
    fixture_stop(&fixture);
}
