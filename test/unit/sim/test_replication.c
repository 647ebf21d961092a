/* A master and its replicas: the same cases with redis-server and with simredis-server, which replicates as it does. */
#include "base/text.h"
#include "deadline.h"
#include "redis_server.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERVERS = 3, REPLY_BYTES = 8192, STEP_MS = 5, SYNC_WITHIN_MS = PATIENCE_MS };

static struct redis_server servers[SERVERS];
#define MASTER (&servers[0])
#define REPLICA (&servers[1])
#define OTHER (&servers[2])

TestSuite(replication, .timeout = TEST_WITHIN_S);

#define ASK(server, ...) ask(server, (const char *const[]){__VA_ARGS__, NULL})

/* Its reply, until the next call but three. */
static const char *ask(const struct redis_server *server, const char *const *argv)
{
    static char replies[4][REPLY_BYTES];
    static unsigned next;
    char *reply = replies[next++ % 4];
    size_t argc = 0;

    while (argv[argc])
        argc++;
    cr_assert(redis_server_try(server, reply, REPLY_BYTES, argc, argv), "%s is not answered", argv[0]);
    return reply;
}

#define AWAIT(condition)                                                   \
    do {                                                                   \
        struct deadline deadline = deadline_in(PATIENCE_MS);               \
        while (!(condition)) {                                             \
            cr_assert(deadline_left_ms(deadline) > 0, "not: " #condition); \
            poll(NULL, 0, STEP_MS);                                        \
        }                                                                  \
    } while (0)

static bool says(const char *reply, const char *part)
{
    return strstr(reply, part);
}

/* A line of INFO replication. */
static const char *info(const struct redis_server *server, const char *field)
{
    static char values[4][128];
    static unsigned next;
    char *value = values[next++ % 4];
    const char *at = strstr(ASK(server, "INFO", "replication"), field);

    snprintf(value, sizeof values[0], "%.*s", at ? (int)strcspn(at, "\r\n") : 0, at ? at : "");
    return value;
}

static void port_of(const struct redis_server *server, char ret_port[8])
{
    snprintf(ret_port, 8, "%u", server->port);
}

static void follow(const struct redis_server *replica, const struct redis_server *master)
{
    char port[8];

    port_of(master, port);
    cr_assert_str_eq(ASK(replica, "REPLICAOF", "127.0.0.1", port), "OK");
    AWAIT(says(ASK(replica, "ROLE"), "connected"));
    AWAIT(says(info(master, "slave0:"), "state=online"));
}

static void write_synced(void)
{
    cr_assert(redis_server_sync(MASTER, "synced", SYNC_WITHIN_MS));
}

static void with(void (*run_case)(void))
{
    static const struct redis_server_options OPTIONS = {.tcp = true, .allows_debug = true};
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);

    cr_assert(length > 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 32, "/simredis-server");
    for (int is_simulated = 0; is_simulated < 2; is_simulated++) {
        if (is_simulated)
            setenv("CHATELAINE_TEST_REDIS_SERVER", path, 1);
        else
            unsetenv("CHATELAINE_TEST_REDIS_SERVER");
        for (unsigned i = 0; i < SERVERS; i++)
            redis_server_start(&servers[i], &OPTIONS);
        run_case();
        for (unsigned i = 0; i < SERVERS; i++)
            redis_server_stop(&servers[i]);
    }
}

#define REPLICATION_TEST(name)    \
    static void run_##name(void); \
    Test(replication, name)       \
    {                             \
        with(run_##name);         \
    }                             \
    static void run_##name(void)

REPLICATION_TEST(a_replica_has_what_was_written_before_and_since)
{
    char role[64];

    redis_server_tell(MASTER, "SET", "before", "1", NULL);
    redis_server_tell(MASTER, "XADD", "stream", "5-1", "a", "b", NULL);
    follow(REPLICA, MASTER);
    redis_server_tell(MASTER, "EVAL",
                      "redis.call('HSET', KEYS[1], 'a', '1') redis.call('ZADD', KEYS[1] .. 'z', 2, 'm')", "1", "hash",
                      NULL);
    write_synced();
    cr_expect_str_eq(ASK(REPLICA, "GET", "before"), "1");
    cr_expect_str_eq(ASK(REPLICA, "XLEN", "stream"), "1");
    cr_expect_str_eq(ASK(REPLICA, "HGET", "hash", "a"), "1");
    cr_expect_str_eq(ASK(REPLICA, "ZSCORE", "hashz", "m"), "2");
    cr_expect_str_eq(ASK(REPLICA, "SET", "a", "1"), "-READONLY You can't write against a read only replica.");
    cr_expect(says(ASK(REPLICA, "WAIT", "0", "1"), "-ERR WAIT cannot be used with replica instances."));
    snprintf(role, sizeof role, "slave\n127.0.0.1\n%u\nconnected\n", MASTER->port);
    cr_expect(says(ASK(REPLICA, "ROLE"), role));
    snprintf(role, sizeof role, "\n127.0.0.1\n%u\n", REPLICA->port);
    cr_expect(says(ASK(MASTER, "ROLE"), role), "%s", ASK(MASTER, "ROLE"));
    cr_expect_str_eq(info(MASTER, "connected_slaves"), "connected_slaves:1");
    cr_expect_str_eq(info(REPLICA, "master_link_status"), "master_link_status:up");
    AWAIT(strcmp(info(MASTER, "master_repl_offset"), info(REPLICA, "master_repl_offset")) == 0);
}

REPLICATION_TEST(the_first_replica_begins_a_history_and_a_second_joins_it)
{
    char alone[128], followed[128];

    snprintf(alone, sizeof alone, "%s", info(MASTER, "master_replid:"));
    follow(REPLICA, MASTER);
    snprintf(followed, sizeof followed, "%s", info(MASTER, "master_replid:"));
    cr_expect_str_neq(alone, followed);
    cr_expect_str_eq(info(REPLICA, "master_replid:"), followed);
    follow(OTHER, MASTER);
    AWAIT(says(info(MASTER, "slave1:"), "state=online"));
    cr_expect_str_eq(info(MASTER, "master_replid:"), followed);
    cr_expect_str_eq(info(MASTER, "second_repl_offset"), "second_repl_offset:-1");
}

REPLICATION_TEST(a_promoted_replica_goes_on_and_the_old_master_loses_what_it_lacks)
{
    char old[128], promoted[128];

    follow(REPLICA, MASTER);
    write_synced();
    snprintf(old, sizeof old, "%s", info(MASTER, "master_replid:") + strlen("master_replid:"));
    redis_server_tell(REPLICA, "REPLICAOF", "NO", "ONE", NULL);
    snprintf(promoted, sizeof promoted, "%s", info(REPLICA, "master_replid:") + strlen("master_replid:"));
    cr_expect_str_neq(promoted, old);
    cr_expect_str_eq(info(REPLICA, "master_replid2:") + strlen("master_replid2:"), old);
    cr_expect_str_neq(info(REPLICA, "second_repl_offset"), "second_repl_offset:-1");
    cr_expect_str_eq(info(REPLICA, "role"), "role:master");
    redis_server_tell(MASTER, "SET", "lost", "1", NULL);
    redis_server_tell(REPLICA, "SET", "kept", "1", NULL);
    follow(MASTER, REPLICA);
    cr_expect_str_eq(ASK(MASTER, "EXISTS", "lost", "kept", "synced"), "2");
    cr_expect_str_eq(info(MASTER, "master_replid:") + strlen("master_replid:"), promoted);
    redis_server_tell(REPLICA, "SET", "since", "1", NULL);
    AWAIT(says(ASK(MASTER, "EXISTS", "since"), "1"));
}

REPLICATION_TEST(a_key_is_there_until_the_master_says_that_it_has_expired)
{
    redis_server_tell(MASTER, "DEBUG", "SET-ACTIVE-EXPIRE", "0", NULL);
    follow(REPLICA, MASTER);
    redis_server_tell(MASTER, "SET", "short", "1", "PX", "20", NULL);
    write_synced();
    AWAIT(says(ASK(REPLICA, "GET", "short"), "(nil)"));
    cr_expect_str_eq(ASK(REPLICA, "DBSIZE"), "2");
    cr_expect_str_eq(ASK(MASTER, "GET", "short"), "(nil)");
    AWAIT(says(ASK(REPLICA, "DBSIZE"), "1"));
}

REPLICATION_TEST(a_master_without_good_replicas_refuses_writes)
{
    redis_server_tell(MASTER, "CONFIG", "SET", "min-replicas-to-write", "1", "min-replicas-max-lag", "1", NULL);
    cr_expect_str_eq(ASK(MASTER, "SET", "a", "1"), "-NOREPLICAS Not enough good replicas to write.");
    cr_expect(
        says(ASK(MASTER, "EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "a"), "-NOREPLICAS Not enough good"));
    cr_expect(says(ASK(MASTER, "EVAL", "#!lua\nreturn 1", "0"), "-NOREPLICAS Not enough good"));
    cr_expect_str_eq(ASK(MASTER, "EVAL", "#!lua flags=no-writes\nreturn 1", "0"), "1");
    follow(REPLICA, MASTER);
    cr_expect_str_eq(ASK(MASTER, "SET", "a", "1"), "OK");
    cr_expect_str_eq(info(MASTER, "min_slaves_good_slaves"), "min_slaves_good_slaves:1");
    redis_server_freeze(REPLICA);
    AWAIT(says(ASK(MASTER, "SET", "a", "1"), "-NOREPLICAS"));
    cr_expect_str_eq(ASK(MASTER, "WAIT", "2", "1"), "1", "what it had before");
    cr_expect_not(redis_server_sync(MASTER, "b", 1));
    redis_server_thaw(REPLICA);
    AWAIT(says(ASK(MASTER, "SET", "a", "1"), "OK"));
}

REPLICATION_TEST(a_replica_has_replicas_of_its_own)
{
    follow(REPLICA, MASTER);
    follow(OTHER, REPLICA);
    redis_server_tell(MASTER, "SET", "a", "1", NULL);
    AWAIT(says(ASK(OTHER, "EXISTS", "a"), "1"));
    cr_expect_str_eq(info(OTHER, "master_replid:"), info(MASTER, "master_replid:"));
    redis_server_kill(MASTER);
    AWAIT(says(info(REPLICA, "master_link_status"), "down"));
    cr_expect(says(ASK(REPLICA, "ROLE"), "\nconnect"));
    redis_server_restart(MASTER);
    AWAIT(says(ASK(REPLICA, "ROLE"), "connected"));
}

REPLICATION_TEST(who_follows_already_goes_on)
{
    char port[8];

    follow(REPLICA, MASTER);
    port_of(MASTER, port);
    cr_expect_str_eq(ASK(REPLICA, "REPLICAOF", "127.0.0.1", port), "OK Already connected to specified master");
    cr_expect(says(ASK(REPLICA, "CONFIG", "GET", "replicaof"), port));
    cr_expect_str_eq(ASK(MASTER, "REPLICAOF", "NO", "ONE"), "OK");
    cr_expect_str_eq(info(MASTER, "second_repl_offset"), "second_repl_offset:-1");
}
