/* Which store and which Redis: a node decides nothing by a store other than its own, by one that lost data, by a
 * replica, or by two servers at a time. */
#include "deadline.h"
#include "leak_guard.h"
#include "redis_server.h"
#include "lease_world.h"
#include "records/key_store.h"
#include "engine/state.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(identity, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define ASK_ID "HMGET t:store id"
#define NO_ID "*6\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n"
#define MOVED_HASH "*6\r\n$32\r\n" FAKE_STORE_ID "\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$12\r\nredis://b:63\r\n"
#define MOVED "*2\r\n$5\r\nmoved\r\n$12\r\nredis://b:63\r\n"
#define OTHER_ID FAKE_STORE("00000000000000000000000000000000")
#define OTHER_STORE "*2\r\n$11\r\nother_store\r\n$32\r\n00000000000000000000000000000000\r\n"
#define LOST_STORE "*2\r\n$11\r\nother_store\r\n$0\r\n\r\n"
#define OTHER_RUN "$71\r\nrun_id:0000000000000000000000000000000000000002\r\nredis_version:7.0.15\r\n\r\n"

static bool is_ready(void *arg)
{
    (void)arg;
    echo_all();
    return store_is_ready(w.store);
}

static bool has_trouble(void *arg)
{
    return strstr(store_trouble(w.store), *(const char **)arg);
}

static void until_trouble(const char *trouble)
{
    until(has_trouble, &trouble);
    cr_assert(!store_is_ready(w.store));
}

static bool is_found;
static enum store_result found;

static void on_found(void *arg, enum store_result result, const struct key_record *key)
{
    (void)arg, (void)key;
    is_found = true;
    found = result;
}

/* A check's read. */
static enum store_result read_key(void)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    is_found = false;
    key_store_find(w.store, digest, on_found, NULL);
    cr_assert(test_loop_until_set(&w.loop, &is_found, PATIENCE_MS));
    return found;
}

/* Answered 503: what was read, or was under way, proves nothing. */
static bool is_undecided(void)
{
    enum store_result result = read_key();

    return result == STORE_UNAVAILABLE || result == STORE_UNKNOWN;
}

static void open_ready(void)
{
    open_with_lease(LEASE_MS);
    rule("GET t:key:", FAKE_ANSWER, "$-1\r\n", 0);
    until(is_ready, NULL);
}

Test(identity, heartbeats_and_changes_say_which_store_they_mean)
{
    open_ready();
    cr_assert(strstr(fake_redis_command(w.fake, w.heartbeat, 0), in_our_store(0, "")));
    close_world();
}

Test(identity, a_heartbeat_that_meets_another_store_ends_the_membership)
{
    static const struct {
        const char *reply, *id, *trouble;
    } CASES[] = {{OTHER_STORE, OTHER_ID, "another store"},
                 {LOST_STORE, NO_ID, "has lost the store"},
                 {MOVED, MOVED_HASH, "This store has moved to redis://b:63: give"}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        open_ready();
        rule(ASK_ID, FAKE_ANSWER, CASES[i].id, 0);
        rule(w.heartbeat, FAKE_ANSWER, CASES[i].reply, 0);
        until_ended(1);
        cr_assert_not(has_lease(NULL));
        until_trouble(CASES[i].trouble);
        unsigned beats = heartbeats();
        test_loop_for(&w.loop, 300);
        cr_assert(is_undecided(), "nothing is decided by it");
        cr_assert_eq(heartbeats(), beats, "and nothing is written");
        cr_assert_not(has_lease(NULL));

        rule(w.heartbeat, FAKE_ANSWER, OK_REPLY, 0);
        rule(ASK_ID, FAKE_ANSWER, FAKE_STORE(FAKE_STORE_ID), 0);
        until(is_ready, NULL);
        cr_assert_eq(read_key(), STORE_NOT_FOUND);
        until(has_lease_by_echoes, NULL);
        close_world();
    }
}

/* Also at a node without heartbeats. */
Test(identity, a_read_is_not_believed_in_another_store)
{
    static const char *const IDS[] = {NO_ID, OTHER_ID, MOVED_HASH};

    for (size_t i = 0; i < sizeof IDS / sizeof *IDS; i++) {
        open_fake();
        join(0);
        until(is_ready, NULL);
        rule("GET t:key:", FAKE_ANSWER, "$-1\r\n", 0);
        cr_assert_eq(read_key(), STORE_NOT_FOUND);
        rule(ASK_ID, FAKE_ANSWER, IDS[i], 0);
        cr_assert(is_undecided());
        cr_assert(!store_is_ready(w.store));
        close_world();
    }
}

Test(identity, a_read_is_not_believed_of_a_master_that_was_demoted)
{
    open_fake();
    join(0);
    until(is_ready, NULL);
    rule("GET t:key:", FAKE_ANSWER, "$-1\r\n", 0);
    rule("ROLE", FAKE_ANSWER, FAKE_REPLICA, 0);
    cr_assert(is_undecided());
    until_trouble("replica: point --redis at the master");
    cr_assert(is_undecided());
    rule("ROLE", FAKE_ANSWER, FAKE_MASTER, 0);
    until(is_ready, NULL);
    cr_assert_eq(read_key(), STORE_NOT_FOUND);
    close_world();
}

Test(identity, a_heartbeat_that_a_replica_refuses_ends_the_membership)
{
    open_ready();
    rule("ROLE", FAKE_ANSWER, FAKE_REPLICA, 0);
    rule(w.heartbeat, FAKE_ANSWER, "-READONLY You can't write against a read only replica.\r\n", 1);
    until_ended(1);
    cr_assert_not(has_lease(NULL));
    until_trouble("replica");
    rule("ROLE", FAKE_ANSWER, FAKE_MASTER, 0);
    until(has_lease_by_echoes, NULL);
    close_world();
}

Test(identity, reads_of_one_turn_share_one_look_at_the_store)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    open_ready();
    unsigned asked = fake_redis_count(w.fake, ASK_ID);
    for (int i = 0; i < 5; i++)
        key_store_find(w.store, digest, on_found, NULL);
    cr_assert_eq(read_key(), STORE_NOT_FOUND);
    cr_assert_eq(fake_redis_count(w.fake, ASK_ID), asked + 2, "for their records, and for their tombstones");
    cr_assert_eq(read_key(), STORE_NOT_FOUND);
    cr_assert_eq(fake_redis_count(w.fake, ASK_ID), asked + 4);
    close_world();
}

static bool is_on_the_other_run(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < w.store->links.count; i++)
        if (strcmp(redis_link_run_id(w.store->links.links[i]), "0000000000000000000000000000000000000002") != 0)
            return false;
    return true;
}

/* The name leads to another server when one connection is made again. */
Test(identity, one_link_at_another_server_ends_the_membership)
{
    open_ready();
    rule("INFO server", FAKE_ANSWER, OTHER_RUN, 0);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    until_ended(1);
    cr_assert_not(has_lease(NULL));
    until(is_on_the_other_run, NULL);
    until(is_ready, NULL);
    until(has_lease_by_echoes, NULL);
    close_world();
}

static bool are_reads_ready(void *arg)
{
    (void)arg;
    return redis_link_is_ready(w.store->reads);
}

Test(identity, reads_elsewhere_decide_nothing_until_that_redis_was_examined)
{
    open_ready();
    time_out_soon();
    rule("PING", FAKE_SILENT, NULL, 0);
    fake_redis_hang_up(w.fake, "chatelaine-changes");
    test_loop_for(&w.loop, 50);
    rule("PING", FAKE_ANSWER, "+PONG\r\n", 0);
    rule("CLIENT SETNAME chatelaine-changes", FAKE_CLOSE, NULL, 0);
    rule("INFO server", FAKE_ANSWER, OTHER_RUN, 0);
    fake_redis_hang_up(w.fake, "chatelaine-reads");
    until_ended(1);
    test_loop_for(&w.loop, 200);
    until(are_reads_ready, NULL);
    cr_assert(is_undecided());
    rule("CLIENT SETNAME", FAKE_ANSWER, "+OK\r\n", 0);
    until(is_ready, NULL);
    cr_assert_eq(read_key(), STORE_NOT_FOUND);
    close_world();
}

Test(identity, a_node_waits_for_the_first_account)
{
    open_fake();
    rule(ASK_ID, FAKE_ANSWER, NO_ID, 0);
    join(200);
    until_trouble("create the first account");
    cr_assert(store_is_empty(w.store));
    test_loop_for(&w.loop, 300);
    cr_assert_eq(heartbeats(), 0);
    cr_assert(is_undecided());
    rule(ASK_ID, FAKE_ANSWER, FAKE_STORE(FAKE_STORE_ID), 0);
    until(is_ready, NULL);
    cr_assert_not(store_is_empty(w.store));
    until(has_lease_by_echoes, NULL);
    close_world();
}

/* Greetings */

Test(identity, a_redis_that_does_not_tell_what_it_is_is_not_used)
{
    static const struct {
        const char *command, *answer, *trouble;
    } CASES[] = {
        {"ROLE", "-NOPERM this user has no permissions to run the 'role' command\r\n", "+role"},
        {"INFO server", "-NOPERM this user has no permissions to run the 'info' command\r\n", "+info"},
        {"ROLE", "*0\r\n", "not a Redis"},
        {"INFO server", "$2\r\nab\r\n", "run_id"},
        {"ROLE", FAKE_REPLICA, "it is a replica: point --redis at the master"},
        {"ROLE", "*2\r\n$8\r\nsentinel\r\n*0\r\n", "this is a Sentinel: write redis-sentinel://HOST:PORT/MASTER-NAME"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        open_fake();
        rule(CASES[i].command, FAKE_ANSWER, CASES[i].answer, 0);
        join(200);
        until_trouble(CASES[i].trouble);
        close_world();
    }
}

/* "ok", schema, time, not full, no longest lease, and the number of partitions. */
#define CLAIMED(partitions) "*8\r\n$2\r\nok\r\n:2\r\n:1\r\n:0\r\n:0\r\n:" partitions "\r\n:0\r\n:0\r\n"

/* Between the claim and the question for its id: how many partitions it has was not seen. */
Test(identity, a_store_that_is_founded_while_it_is_examined)
{
    char claim[SCRIPT_BYTES];

    open_fake();
    join(0);
    name_script(SCRIPT_schema_claim, claim);
    rule(claim, FAKE_ANSWER, CLAIMED("8"), 0);
    rule(claim, FAKE_ANSWER, CLAIMED("0"), 1);
    until_trouble("The store has 8 partitions, not 1");
    cr_expect_eq(w.store_told, 0, "it was not ready before");
    close_world();
}
