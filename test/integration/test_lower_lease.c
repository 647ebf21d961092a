/* store lower-lease: revocations wait for shorter leases, and never for one that is shorter than a lease that may be
 * valid.
 */
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"
#include "sentinels.h"

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

/* Revokes a new key on the command line, which always waits. Whether it said for how long at most: it does not if the
 * machine kept it from running meanwhile. */
static bool revoke_and_look(struct fixture *fixture)
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
    return said;
}

static void expect_shorter_wait(struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!revoke_and_look(fixture))
        cr_assert_gt(deadline_left_ms(deadline), 0, "no revocation said for how long it waits");
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

/* more: an argument; NULL: none. */
static void lower_begin(const struct fixture *fixture, const char *lease_ms, const char *more,
                        struct process *ret_process)
{
    const char *argv[] = {node_binary(),
                          "store",
                          "lower-lease",
                          "--lease-ms",
                          lease_ms,
                          "--redis",
                          fixture->redis.url,
                          "--master-key-file",
                          fixture->master_key_path,
                          more,
                          NULL};

    process_start(ret_process, fixture->folder, lease_ms, argv);
}

/* or: what it may say instead; NULL: nothing else. */
static void lower_end(struct process *process, int exit_code, const char *says, const char * or)
{
    cr_assert(process_wait(process, PATIENCE_MS));
    char *out = file_read(process->out_path), *err = file_read(process->err_path);
    cr_expect_eq(process_exit_code(process), exit_code, "%s%s", out, err);
    cr_expect(strstr(out, says) || strstr(err, says) || (or &&strstr(out, or)), "lacks \"%s\": %s%s", says, out, err);
    free(out);
    free(err);
}

/* Both wait for the same nodes, and each marks them. Whichever comes first, each says what Redis holds then. */
Test(lower_lease, two_at_once)
{
    struct fixture fixture;
    struct process half, quarter;

    fixture_use_one_partition("each of several may be lowered by another command first");
    fixture_start(&fixture, 0, NULL);
    fixture_add_node(&fixture, LONG_LEASE);
    fixture_add_node(&fixture, SHORT_LEASE);
    leases_await_all(&fixture);
    node_kill(&fixture.nodes[0]);
    lower_begin(&fixture, "1000", NULL, &half);
    lower_begin(&fixture, "500", NULL, &quarter);
    lower_end(&half, 0, "Lowered from 2000 ms to 1000 ms.", "The longest lease is 500 ms; nothing was changed.");
    lower_end(&quarter, 0, "Lowered from 2000 ms to 500 ms.", "Lowered from 1000 ms to 500 ms.");
    expect_longest(&fixture, "500");
    fixture_stop(&fixture);
}

static bool is_marked(const struct fixture *fixture, unsigned partition)
{
    char entries[TEXT_BYTES];

    redis_server_ask(&fixture->redis, entries, sizeof entries, "HVALS", fixture_name_in(partition, "nodes"), NULL);
    return strchr(entries, '?');
}

static void await_mark(const struct fixture *fixture, unsigned partition)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (!is_marked(fixture, partition)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "nothing is marked in partition %u", partition);
        poll(NULL, 0, 10);
    }
}

static void set_longest(const struct fixture *fixture, unsigned partition, const char *longest)
{
    redis_server_tell(&fixture->redis, "SET", fixture_name_in(partition, "lease_max"), longest, NULL);
}

/* A node that is gone, unless somebody writes its entry again. */
static void add_member(const struct fixture *fixture, unsigned partition, const char *longest)
{
    char held[64];

    snprintf(held, sizeof held, "1 %s 3", longest);
    redis_server_tell(&fixture->redis, "HSET", fixture_name_in(partition, "nodes"), "00000000000000000000000000000001",
                      held, NULL);
    set_longest(fixture, partition, longest);
}

/* A node comes while the command waits: as its heartbeat leaves it. */
Test(lower_lease, raised_meanwhile)
{
    struct fixture fixture;
    struct process process;

    fixture_start(&fixture, 0, NULL);
    for (unsigned i = 0; i < fixture_partitions(); i++)
        add_member(&fixture, i, "4000");
    lower_begin(&fixture, "500", NULL, &process);
    await_mark(&fixture, 0);
    add_member(&fixture, 0, "5000");
    lower_end(&process, 1, "a lease of up to 5000 ms is still in use", NULL);
    char longest[32];
    redis_server_ask(&fixture.redis, longest, sizeof longest, "GET", fixture_name_in(0, "lease_max"), NULL);
    cr_expect_str_eq(longest, "5000");
    fixture_stop(&fixture);
}

/* By another command, as that leaves it. */
Test(lower_lease, lowered_meanwhile)
{
    struct fixture fixture;
    struct process process;

    fixture_use_one_partition("the command sees one that was lowered while it waits");
    fixture_start(&fixture, 0, NULL);
    add_member(&fixture, 0, "4000");
    lower_begin(&fixture, "2000", "--json", &process);
    await_mark(&fixture, 0);
    redis_server_tell(&fixture.redis, "DEL", fixture_name_in(0, "nodes"), NULL);
    set_longest(&fixture, 0, "1000");
    lower_end(&process, 0, "{\"lowered\":false,\"from_ms\":1000,\"longest_lease_ms\":1000}", NULL);
    expect_longest(&fixture, "1000");
    fixture_stop(&fixture);
}

/* The last of four is refused. The second was not lowered by this command. */
Test(lower_lease, some_partitions_are_lowered)
{
    struct fixture fixture;
    struct process process;
    char *err;

    setenv("CHATELAINE_PARTITIONS", "4", 1);
    fixture_use_one_redis("its partitions are looked at");
    fixture_start(&fixture, 0, NULL);
    add_member(&fixture, 0, "1000");
    set_longest(&fixture, 1, "500");
    add_member(&fixture, 2, "1000");
    add_member(&fixture, 3, "4000");
    lower_begin(&fixture, "500", NULL, &process);
    await_mark(&fixture, 3);
    add_member(&fixture, 3, "4000");
    lower_end(&process, 1, "Done in partitions 0 to 2 of 4. Partition 3 failed:\n", NULL);
    err = file_read(process.err_path);
    cr_expect(strstr(err, "Not lowered, because a lease of up to 4000 ms is still in use"), "%s", err);
    free(err);
    fixture_stop(&fixture);
}

Test(lower_lease, what_redis_holds_makes_no_sense)
{
    static const char *const LONGEST[] = {"long", "-1", "10001"};
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    for (size_t i = 0; i < sizeof LONGEST / sizeof *LONGEST; i++) {
        set_longest(&fixture, 0, LONGEST[i]);
        lower(&fixture, 1, "Not lowered: Redis holds no lease of 0 to 10000 ms in chatelaine:");
    }
    set_longest(&fixture, 0, "10000");
    fixture_stop(&fixture);
}

/* Another master takes over between the mark and the second call. The next Redis need not know of the mark, and the one
 * before may have granted leases since. */
Test(lower_lease, the_master_changes_while_it_waits)
{
    static struct sentinels sentinels;
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture fixture;
    struct process process;
    char longest[32];

    fixture_use_one_partition("Sentinels watch one Redis and its replicas");
    fixture_start(&fixture, 0, NULL);
    add_member(&fixture, 0, "10000");
    sentinels_start(&sentinels, &fixture.redis, 2);
    snprintf(fixture.redis.url, sizeof fixture.redis.url, "%s", sentinels.url);
    setenv("CHATELAINE_MIN_REPLICAS", "2", 1);
    lower_begin(&fixture, "500", NULL, &process);
    await_mark(&fixture, 0);
    redis_server_kill(&fixture.redis);
    lower_end(&process, 1, "the change may or may not have been made", NULL);
    while (sentinels_master(&sentinels) == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "nobody takes over");
        poll(NULL, 0, 10);
    }
    redis_server_ask(sentinels.redises[sentinels_master(&sentinels)], longest, sizeof longest, "GET",
                     fixture_name_in(0, "lease_max"), NULL);
    cr_expect_str_eq(longest, "10000");
    fixture_stop(&fixture);
    sentinels_stop(&sentinels);
}
