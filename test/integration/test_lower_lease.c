/* store lower-lease: revocations wait for shorter leases, and never for one that is shorter than a lease that may be
 * valid.
 */
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lower_lease, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { LONG_MS = 2000, SHORT_MS = 500, TEXT_BYTES = 4096 };

static const char *const LONG_LEASE[] = {"--lease-ms", "2000", NULL};
static const char *const SHORT_LEASE[] = {"--lease-ms", "500", NULL};

/* How long a revocation waits for a node that says nothing. */
static int wait_ms(int lease_ms)
{
    return lease_ms * 125 / 100 + 50;
}

static void expect_longest(const struct fixture *fixture, const char *wanted)
{
    char found[32];

    for (unsigned i = 0; i < fixture_partitions(); i++) {
        redis_server_ask(&fixture->redis, found, sizeof found, "GET", fixture_name_in(i, "lease_max"), NULL);
        cr_expect_str_eq(found, wanted, "partition %u", i);
    }
}

/* Runs the command, and returns how long it took. */
static int64_t lower(struct fixture *fixture, int exit_code, const char *says)
{
    struct cli_run run;
    int64_t began_ms = deadline_now_ms();

    RUN(fixture, &run, "store", "lower-lease", "--lease-ms", "500");
    cr_expect_eq(run.exit_code, exit_code, "%s%s", run.out, run.err);
    cr_expect(strstr(run.out, says) || strstr(run.err, says), "lacks \"%s\": %s%s", says, run.out, run.err);
    cli_finish(&run);
    return deadline_now_ms() - began_ms;
}

/* Revokes a new key on the command line, which always waits. */
static void expect_shorter_wait(struct fixture *fixture)
{
    struct fixture_key key;
    struct cli_run run;
    int64_t began_ms;

    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    began_ms = deadline_now_ms();
    RUN(fixture, &run, "key", "revoke", key.id);
    cr_expect_eq(run.exit_code, 0, "%s", run.err);
    cr_expect_geq(deadline_now_ms() - began_ms, wait_ms(SHORT_MS));
    const char *said = strstr(run.err, "every node: ");
    cr_expect(!said || strtod(said + strlen("every node: "), NULL) * 1000 < wait_ms(SHORT_MS) + 100, "%s", run.err);
    cli_finish(&run);
}

Test(lower_lease, refused_while_a_node_with_a_longer_one_lives)
{
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    lower(&fixture, 0, "The longest lease is 0 ms; nothing was changed.");
    fixture_add_node(&fixture, LONG_LEASE);
    fixture_add_node(&fixture, SHORT_LEASE);
    leases_await_all(&fixture);
    cr_expect_geq(lower(&fixture, 1, "a lease of up to 2000 ms is still in use"), wait_ms(LONG_MS));
    expect_longest(&fixture, "2000");
    leases_await_all(&fixture); /* its entry is as it was */
    lower(&fixture, 1, "a lease of up to 2000 ms is still in use");
    node_stop(&fixture.nodes[0]);
    lower(&fixture, 0, "Lowered from 2000 ms to 500 ms. Revocations wait for 675 ms at most.");
    expect_longest(&fixture, "500");
    lower(&fixture, 0, "The longest lease is 500 ms; nothing was changed.");
    expect_shorter_wait(&fixture);
    fixture_stop(&fixture);
}

Test(lower_lease, waits_until_the_lease_of_a_killed_node_is_over)
{
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    fixture_add_node(&fixture, LONG_LEASE);
    fixture_add_node(&fixture, SHORT_LEASE);
    leases_await_all(&fixture);
    node_kill(&fixture.nodes[0]);
    cr_expect_geq(lower(&fixture, 0, "Lowered from 2000 ms to 500 ms."), wait_ms(LONG_MS));
    expect_longest(&fixture, "500");
    expect_shorter_wait(&fixture);
    fixture_stop(&fixture);
}

/* It was paused for longer than its lease. Back again, it knows what was revoked, and revocations wait for it. */
Test(lower_lease, a_node_that_comes_back_raises_it_again)
{
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 0, NULL);
    fixture_add_node(&fixture, LONG_LEASE);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    leases_await_all(&fixture);
    for (int times = 0; times < 2; times++)
        fixture_await_key(&fixture, 0, key.secret, 200);
    process_signal(&fixture.nodes[0].process, SIGSTOP);
    lower(&fixture, 0, "Lowered from 2000 ms to 500 ms.");
    fixture_revoke_key(&fixture, &key);
    process_signal(&fixture.nodes[0].process, SIGCONT);
    fixture_await_key(&fixture, 0, key.secret, 401);
    leases_await_all(&fixture);
    expect_longest(&fixture, "2000");
    fixture_stop(&fixture);
}

static void lower_begin(const struct fixture *fixture, const char *name, struct process *ret_process)
{
    const char *argv[] = {node_binary(),
                          "store",
                          "lower-lease",
                          "--lease-ms",
                          "500",
                          "--redis",
                          fixture->redis.url,
                          "--master-key-file",
                          fixture->master_key_path,
                          NULL};

    process_start(ret_process, fixture->folder, name, argv);
}

static void lower_end(struct process *process, int exit_code, const char *says)
{
    cr_assert(process_wait(process, PATIENCE_MS));
    char *out = file_read(process->out_path), *err = file_read(process->err_path);
    cr_expect_eq(process_exit_code(process), exit_code, "%s%s", out, err);
    cr_expect(strstr(out, says) || strstr(err, says), "lacks \"%s\": %s%s", says, out, err);
    free(out);
    free(err);
}

/* Both wait for the same nodes, and each marks them. */
Test(lower_lease, two_at_once)
{
    struct fixture fixture;
    struct process processes[2];

    fixture_start(&fixture, 0, NULL);
    fixture_add_node(&fixture, LONG_LEASE);
    fixture_add_node(&fixture, SHORT_LEASE);
    leases_await_all(&fixture);
    node_kill(&fixture.nodes[0]);
    lower_begin(&fixture, "one", &processes[0]);
    lower_begin(&fixture, "two", &processes[1]);
    for (size_t i = 0; i < 2; i++)
        lower_end(&processes[i], 0, " ms");
    expect_longest(&fixture, "500");
    fixture_stop(&fixture);
}

static bool is_marked(const struct fixture *fixture, unsigned partition)
{
    char entries[TEXT_BYTES];

    redis_server_ask(&fixture->redis, entries, sizeof entries, "HVALS", fixture_name_in(partition, "nodes"), NULL);
    return strchr(entries, '?');
}

/* A node comes while the command waits: as its heartbeat leaves it. */
Test(lower_lease, raised_meanwhile)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture fixture;
    struct process process;

    fixture_start(&fixture, 0, NULL);
    for (unsigned i = 0; i < fixture_partitions(); i++) {
        redis_server_tell(&fixture.redis, "SET", fixture_name_in(i, "lease_max"), "4000", NULL);
        redis_server_tell(&fixture.redis, "HSET", fixture_name_in(i, "nodes"), "00000000000000000000000000000001",
                          "1 4000 3", NULL);
    }
    lower_begin(&fixture, "raised", &process);
    while (!is_marked(&fixture, 0) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 10);
    redis_server_tell(&fixture.redis, "HSET", fixture_name_in(0, "nodes"), "00000000000000000000000000000002",
                      "1 5000 3", NULL);
    redis_server_tell(&fixture.redis, "SET", fixture_name_in(0, "lease_max"), "5000", NULL);
    lower_end(&process, 1, "a lease of up to 5000 ms is still in use");
    char longest[32];
    redis_server_ask(&fixture.redis, longest, sizeof longest, "GET", fixture_name_in(0, "lease_max"), NULL);
    cr_expect_str_eq(longest, "5000");
    fixture_stop(&fixture);
}
