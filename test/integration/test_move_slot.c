/* docker/redis/move-slot: interrupted and repeated, with a password; and where no replica of the target answers. */
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

TestSuite(move_slot, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { PRIMARIES = 3, NAMES = 20000 };

#define TAG "{0}" /* of the only partition */

static const char *const MORE[] = {"--partitions", "1", "--min-replicas", "1", "--redis-timeout-ms", "1000", NULL};

static struct scene {
    struct fixture fixture;
    struct cluster_servers cluster;
    struct watched_keys keys;           /* for its functions */
    char slot[16], ends[PRIMARIES][32]; /* addresses of the primaries */
    unsigned from, to;
} s;

/* All names of ours but those that nodes write by themselves. */
static unsigned count_names(unsigned server)
{
    char reply[64];

    redis_server_ask(&s.cluster.servers[server], reply, sizeof reply, "EVAL", "return #redis.call('KEYS', ARGV[1])",
                     "0", "chatelaine:" TAG ":name:*", NULL);
    return (unsigned)strtoul(reply, NULL, 10);
}

static void scene_start(void)
{
    fixture_use_one_partition("the test starts a cluster of its own, with one partition");
    cluster_servers_start(&s.cluster, PRIMARIES, true);
    fixture_start_in_cluster(&s.fixture, s.cluster.url, 1);
    s.keys.fixture = &s.fixture;
    fixture_add_node(&s.fixture, MORE);
    s.from = cluster_servers_primary_of(&s.cluster, TAG, -1);
    s.to = (s.from + 1) % PRIMARIES;
    redis_server_ask(&s.cluster.servers[0], s.slot, sizeof s.slot, "CLUSTER", "KEYSLOT", TAG, NULL);
    for (unsigned i = 0; i < PRIMARIES; i++)
        snprintf(s.ends[i], sizeof s.ends[i], "%s:%u", redis_server_address(&s.cluster.servers[i]),
                 s.cluster.servers[i].port);
    for (unsigned i = 0; i < s.cluster.count; i++)
        redis_server_tell(&s.cluster.servers[i], "ACL", "SETUSER", "mover", "on", ">a \"password", "~*", "-@all",
                          "+cluster", "+migrate", "+restore", "+restore-asking", "+asking", "+select", "+set", "+wait",
                          "+unlink", "+client|kill", NULL);
    redis_server_tell(&s.cluster.servers[s.from], "EVAL",
                      "for i = 1, ARGV[2] do redis.call('SET', ARGV[1] .. i, 'x') end", "1",
                      "chatelaine:" TAG ":name:0", "chatelaine:" TAG ":name:", "20000", NULL);
    setenv("REDIS_USER", "mover", 1);
    setenv("REDISCLI_AUTH", "a \"password", 1);
}

static void scene_stop(void)
{
    fixture_stop(&s.fixture);
    cluster_servers_stop(&s.cluster);
}

static void mover_start(struct process *mover, unsigned from, unsigned to)
{
    char path[PROCESS_PATH_BYTES];

    snprintf(path, sizeof path, "%s/docker/redis/move-slot", getenv("CHATELAINE_SOURCE"));
    process_start(mover, s.fixture.folder, "mover",
                  (const char *const[]){"sh", path, s.slot, s.ends[from], s.ends[to], NULL});
}

static int mover_run(struct process *mover, unsigned from, unsigned to)
{
    mover_start(mover, from, to);
    cr_assert(process_wait(mover, PATIENCE_MS));
    return process_exit_code(mover);
}

/* Once it is interrupted, its last command may still be under way. */
static void interrupt_on_the_way(void)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct process mover;

    mover_start(&mover, s.from, s.to);
    while (count_names(s.to) == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", file_read(mover.err_path));
        poll(NULL, 0, 1);
    }
    process_kill(&mover);
}

Test(move_slot, moves_everything_even_if_it_is_interrupted)
{
    struct fixture_key key, revoked;
    struct process mover;

    scene_start();
    watched_keys_create(&s.keys, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    watched_keys_create(&s.keys, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &revoked);
    fixture_revoke_key(&s.fixture, &revoked);
    interrupt_on_the_way();
    for (unsigned round = 0; round < 2; round++) { /* the second finds it done */
        cr_assert_eq(mover_run(&mover, s.from, s.to), 0, "%s", file_read(mover.err_path));
        cr_expect_eq(count_names(s.from), 0);
        cr_expect_eq(count_names(s.to), NAMES);
        cr_expect_eq(count_names(s.to + PRIMARIES), NAMES, "its replica");
        fixture_await_key(&s.fixture, 0, key.secret, 200);
        fixture_await_key(&s.fixture, 0, revoked.secret, 401);
    }
    cr_expect(file_contains(mover.out_path, "0 names were moved"));
    scene_stop();
}

Test(move_slot, leaves_with_the_source_what_no_replica_of_the_target_has)
{
    struct process mover;

    scene_start();
    redis_server_freeze(&s.cluster.servers[s.to + PRIMARIES]);
    cr_assert_eq(mover_run(&mover, s.from, s.to), 1);
    cr_expect(file_contains(mover.err_path, "no replica has the names"), "%s", file_read(mover.err_path));
    cr_expect_eq(count_names(s.from), NAMES);
    redis_server_thaw(&s.cluster.servers[s.to + PRIMARIES]);
    cr_assert(cluster_servers_wait_whole(&s.cluster, PATIENCE_MS));
    cr_assert_eq(mover_run(&mover, s.from, s.to), 0, "%s", file_read(mover.err_path));
    cr_expect_eq(count_names(s.to + PRIMARIES), NAMES);
    scene_stop();
}

/* The source answers everything but that: as when it goes down between two commands, and comes back. */
Test(move_slot, an_unanswered_list_of_names_is_no_empty_slot)
{
    char path[PROCESS_PATH_BYTES], command[PROCESS_PATH_BYTES + 8];
    struct process mover;

    scene_start();
    snprintf(path, sizeof path, "%.150s/cli", s.fixture.folder);
    snprintf(command, sizeof command, "sh %s", path);
    file_write(path, "words=$(cat)\n"
                     "case $words in *GETKEYSINSLOT*) exit 1 ;; esac\n"
                     "printf '%s\\n' \"$words\" | redis-cli \"$@\"\n");
    setenv("REDIS_CLI", command, 1);
    cr_assert_eq(mover_run(&mover, s.from, s.to), 1);
    cr_expect(file_contains(mover.err_path, "COUNTKEYSINSLOT"), "%s", file_read(mover.err_path));
    unsetenv("REDIS_CLI");
    cr_assert_eq(mover_run(&mover, s.from, s.to), 0, "%s", file_read(mover.err_path));
    cr_expect_eq(count_names(s.to), NAMES);
    scene_stop();
}

Test(move_slot, says_what_went_wrong)
{
    struct process mover;

    scene_start();
    setenv("REDISCLI_AUTH", "another password", 1);
    cr_assert_eq(mover_run(&mover, s.from, s.to), 1);
    cr_expect(file_contains(mover.err_path, "WRONGPASS") || file_contains(mover.err_path, "NOAUTH") ||
                  file_contains(mover.err_path, "no answer"),
              "%s", file_read(mover.err_path));
    cr_expect_not(file_contains(mover.err_path, "another password"));
    setenv("REDISCLI_AUTH", "a \"password", 1);
    redis_server_kill(&s.cluster.servers[s.to]);
    cr_assert_eq(mover_run(&mover, s.from, s.to), 1);
    cr_expect(file_contains(mover.err_path, s.ends[s.to]), "%s", file_read(mover.err_path));
    cr_expect_eq(count_names(s.from), NAMES);
    scene_stop();
}
