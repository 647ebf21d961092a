/* What belongs to a whole partition is added up when partitions become fewer, and is in each when they become more. */
#include "deadline.h"
#include "leak_guard.h"
#include "copy/store_copy.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(store_copy, .init = fixture_start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

#define ID "00112233445566778899aabbccddeeff"
#define PLACE "redis://new.example:6379, --partitions 2"
#define MAKER "ffeeddccbbaa99887766554433221100"
#define ACCOUNT "acct_01m8bdmmmgb83qpwt5fmy72awr" /* in partition 1 of 2, and 3 of 4 */

static struct outcome {
    bool is_done;
    struct store_copied copied;
    char trouble[STORE_COPY_TROUBLE_BYTES];
} outcome;

static void on_copied(void *arg, const struct store_copied *copied)
{
    (void)arg;
    outcome.copied = *copied;
    snprintf(outcome.trouble, sizeof outcome.trouble, "%s", copied->trouble ? copied->trouble : "");
    outcome.is_done = true;
}

/* Both sides are in one Redis. */
static void run(const char *from_prefix, unsigned from_partitions, const char *to_prefix, unsigned to_partitions)
{
    struct store_settings from = {.timeout_ms = 10000, .prefix = from_prefix, .partitions = from_partitions}, to;
    struct buf why;

    buf_init(&why, 200);
    cr_assert(redis_target_parse(text_of(fixture.server.url), &from.target, &why));
    to = from;
    to.prefix = to_prefix;
    to.partitions = to_partitions;
    outcome = (struct outcome){0};
    store_copy(&fixture.loop, &from, &to, PLACE, on_copied, NULL);
    cr_assert(test_loop_until_set(&fixture.loop, &outcome.is_done, PATIENCE_MS));
}

static void undo(const char *prefix)
{
    struct store_settings from = {.timeout_ms = 10000, .prefix = prefix};
    struct buf why;

    buf_init(&why, 200);
    cr_assert(redis_target_parse(text_of(fixture.server.url), &from.target, &why));
    outcome = (struct outcome){0};
    store_copy_undo(&fixture.loop, &from, on_copied, NULL);
    cr_assert(test_loop_until_set(&fixture.loop, &outcome.is_done, PATIENCE_MS));
}

/* Splits at blanks. */
static void ask(char *ret_reply, size_t size, const char *command)
{
    char words[256], *argv[12] = {0}, *rest = words, *word;
    size_t count = 0;

    snprintf(words, sizeof words, "%s", command);
    while (count < 11 && (word = strsep(&rest, " ")))
        argv[count++] = word;
    redis_server_ask(&fixture.server, ret_reply, size, argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], argv[6],
                     argv[7], argv[8], argv[9], argv[10], NULL);
}

static void tell(const char *const *commands)
{
    char reply[256];

    for (; *commands; commands++) {
        ask(reply, sizeof reply, *commands);
        cr_assert_neq(reply[0], '-', "%s: %s", *commands, reply);
    }
}

static void expect(const char *command, const char *expected)
{
    char reply[512];

    ask(reply, sizeof reply, command);
    cr_expect_str_eq(reply, expected, "%s: %s", command, reply);
}

static void make_two_partitions(void)
{
    tell((const char *const[]){
        "HSET s:{0}:store id " ID " partitions 2 partition 0 suspensions 5",
        "HSET s:{0}:store accepted run " MAKER " 7",
        "SET s:{0}:schema 2",
        "SET s:{1}:schema 2",
        "HSET s:{1}:store id " ID " partitions 2 partition 1 suspensions 8",
        "SET s:{0}:lease_max 700",
        "SET s:{1}:lease_max 900",
        "SADD s:{0}:master_keys aa",
        "SADD s:{1}:master_keys aa bb",
        "HSET s:{1}:acct:" ACCOUNT " name North created 1 suspended 3",
        "ZADD s:{1}:accounts 0 " ACCOUNT,
        "HSET s:{0}:suspended version 5",
        "HSET s:{1}:suspended version 8 " ACCOUNT " 3",
        "XADD s:{0}:audit 5-1 type a",
        "XADD s:{0}:audit 7-0 type c",
        "XADD s:{1}:audit 5-1 type b",
        "XADD s:{1}:unlogged:live 9-0 account " ACCOUNT " class live",
        "XADD s:{0}:unlogged:live 8-0 account none class live",
        "SET s:{0}:log_dropped 2",
        "SET s:{1}:log_dropped 3",
        "HSET s:{0}:strangers:counts failures 4",
        "HSET s:{1}:strangers:counts failures 6",
        "HSET s:{0}:log_heads cc head",
        "HSET s:{1}:log_heads cc later dd head",
        "SET s:{0}:throttle:x 1",
        "SET s:{1}:email:gone@clinic.example usr_gone",
        "SET s:{1}:newer 1",
        NULL,
    });
}

Test(store_copy, fewer_partitions)
{
    make_two_partitions();
    run("s:", 0, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    cr_expect_eq(outcome.copied.from, 2);
    cr_expect_eq(outcome.copied.counts.accounts, 1);
    cr_expect_eq(outcome.copied.counts.suspended, 1);
    cr_expect_eq(outcome.copied.left, 1, "the claim without a user");
    cr_expect_eq(outcome.copied.unknown, 1);
    cr_expect_str_eq(outcome.copied.an_unknown, "newer");
    expect("HMGET d:store id partitions partition suspensions accepted copying " MAKER,
           ID "\n1\n0\n8\n(nil)\n(nil)\n7\n");
    expect("GET d:schema", "2");
    expect("GET d:lease_max", "900");
    expect("SCARD d:master_keys", "2");
    expect("HMGET d:suspended version " ACCOUNT, "8\n3\n");
    expect("ZRANGE d:accounts 0 -1", ACCOUNT "\n");
    expect("XLEN d:audit", "3");
    expect("XRANGE d:audit 5-2 5-2", "5-2\ntype\nb\n\n\n");
    expect("XLEN d:unlogged:live", "2");
    expect("GET d:log_dropped", "5");
    expect("HGET d:strangers:counts failures", "10");
    expect("HMGET d:log_heads cc dd", "head\nhead\n");
    expect("EXISTS d:throttle:x d:email:gone@clinic.example d:newer", "0");
}

Test(store_copy, more_partitions)
{
    make_two_partitions();
    run("s:", 2, "d:", 4);
    cr_assert_str_eq(outcome.trouble, "");
    expect("HMGET d:{2}:store id partitions partition suspensions " MAKER, ID "\n4\n2\n8\n7\n");
    expect("HMGET d:{3}:store id partitions partition suspensions " MAKER, ID "\n4\n3\n8\n(nil)\n");
    expect("HGET d:{3}:suspended " ACCOUNT, "3");
    expect("HGETALL d:{1}:suspended", "version\n8\n");
    expect("GET d:{2}:lease_max", "900");
    expect("SCARD d:{3}:master_keys", "2");
    expect("XLEN d:{0}:audit", "2");
    expect("XLEN d:{1}:audit", "1");
    expect("XLEN d:{3}:unlogged:live", "1");
    expect("XLEN d:{0}:unlogged:live", "1");
    expect("GET d:{1}:log_dropped", "3");
    expect("HMGET d:{3}:log_heads cc dd", "head\nhead\n");
}

#define ZEROS "000000000000000000000000000000000000000000000000000000000000000" /* a digest but for its last digit */

/* Of all that is looked up by a digest. */
Test(store_copy, aliases)
{
    tell((const char *const[]){"HSET s:store id " ID, "SET s:schema 2", "HSET s:acct:" ACCOUNT " name North created 1",
                               "ZADD s:accounts 0 " ACCOUNT, "HSET s:session:" ZEROS "0 account " ACCOUNT,
                               "HSET s:session:" ZEROS "3 account " ACCOUNT, "HSET s:link:" ZEROS "1 account " ACCOUNT,
                               "HSET s:user:usr_x account " ACCOUNT, "SET s:recovery:" ZEROS "2 usr_x", NULL});
    run("s:", 1, "d:", 4);
    cr_assert_str_eq(outcome.trouble, "");
    cr_expect_eq(outcome.copied.aliases, 3);
    expect("GET d:{0}:alias:" ZEROS "0", "7");
    expect("GET d:{1}:alias:" ZEROS "1", "7");
    expect("GET d:{2}:alias:" ZEROS "2", "7");
    expect("EXISTS d:{3}:alias:" ZEROS "3", "0");
    expect("EXISTS d:{3}:session:" ZEROS "0 d:{3}:session:" ZEROS "3 d:{3}:link:" ZEROS "1", "3");
    expect("HGET d:{0}:store aliased", "1");
    expect("HEXISTS d:{3}:store aliased", "0");
}

/* Its key, whose account is nowhere, and its state. A node at the target begins anew. */
Test(store_copy, leaves_the_canary_behind)
{
    tell((const char *const[]){"HSET s:store id " ID, "SET s:schema 2", "HSET s:acct:" ACCOUNT " name North created 1",
                               "ZADD s:accounts 0 " ACCOUNT, "HSET s:canary run 7", "HSET s:canary_nodes n 1",
                               "SET s:canary_runner p", "SET s:id:key_00000000000000000000000001 " ZEROS "6", NULL});
    redis_server_tell(&fixture.server, "SET", "s:key:" ZEROS "6",
                      "key_00000000000000000000000001 acct_0000000000canary0000000006 test abcd 0 1 - canary\nv=2",
                      "PX", "600000", NULL);
    redis_server_tell(&fixture.server, "SET", "s:key:" ZEROS "7",
                      "key_00000000000000000000000002 " ACCOUNT " test abcd 0 1 - other\nv=2", NULL);
    run("s:", 1, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    cr_expect_eq(outcome.copied.unknown, 0);
    cr_expect_eq(outcome.copied.left, 0);
    expect("EXISTS d:canary d:canary_nodes d:canary_runner d:key:" ZEROS "6 d:id:key_00000000000000000000000001", "0");
    expect("EXISTS d:key:" ZEROS "7", "1");
}

/* Sessions of so many fields that their order, and so the bytes, differ at the target. */
static void make_sessions_that_expire_meanwhile(void)
{
    redis_server_tell(
        &fixture.server, "EVAL",
        "for i = 1, 300 do local name, fields = string.format('s:session:%064x', i), {'account', ARGV[1]} "
        "for f = 1, 600 do fields[#fields + 1] = 'f' .. f * i fields[#fields + 1] = f end "
        "redis.call('HSET', name, unpack(fields)) redis.call('PEXPIRE', name, 2 * i) end return 1",
        "0", ACCOUNT, NULL);
}

static bool no_session_is_left(void *arg)
{
    char reply[64];

    (void)arg;
    redis_server_ask(&fixture.server, reply, sizeof reply, "EVAL", "return #redis.call('KEYS', '?:session:*')", "0",
                     NULL);
    return strcmp(reply, "0") == 0;
}

/* They neither make the copy fail nor outlive their time. */
Test(store_copy, records_that_expire_meanwhile)
{
    for (int i = 0; i < 5; i++) {
        tell((const char *const[]){"FLUSHALL", "HSET s:store id " ID, "SET s:schema 2",
                                   "HSET s:acct:" ACCOUNT " name North created 1", "ZADD s:accounts 0 " ACCOUNT, NULL});
        make_sessions_that_expire_meanwhile();
        run("s:", 1, "d:", 1);
        cr_assert_str_eq(outcome.trouble, "");
        cr_expect(test_loop_until(&fixture.loop, no_session_is_left, NULL, PATIENCE_MS));
    }
}

static void expect_left(const char *prefix, unsigned partition)
{
    char command[160];

    snprintf(command, sizeof command, "HMGET %s{%u}:store moved copying moved_schema", prefix, partition);
    expect(command, PLACE "\n" ID "\n2\n");
    snprintf(command, sizeof command, "GET %s{%u}:schema", prefix, partition);
    expect(command, "1000000");
}

static void expect_served(const char *prefix, unsigned partition)
{
    char command[160];

    snprintf(command, sizeof command, "HMGET %s{%u}:store id moved copying moved_schema moved_former", prefix,
             partition);
    expect(command, ID "\n(nil)\n(nil)\n(nil)\n(nil)\n");
    snprintf(command, sizeof command, "GET %s{%u}:schema", prefix, partition);
    expect(command, "2");
}

Test(store_copy, the_source_is_left_and_comes_back)
{
    make_two_partitions();
    run("s:", 2, "d:", 4);
    cr_assert_str_eq(outcome.trouble, "");
    expect_left("s:", 0);
    expect_left("s:", 1);
    run("s:", 2, "e:", 2);
    cr_expect(strstr(outcome.trouble, "The source has moved to " PLACE ": copy from there"), "%s", outcome.trouble);
    cr_expect(outcome.copied.is_refusal);
    run("s:", 2, "d:", 4);
    cr_expect(strstr(outcome.trouble, "it holds this store already"), "%s", outcome.trouble);
    tell((const char *const[]){"HSET d:{1}:store " MAKER " 9", "SET s:{1}:key:stale 1", NULL});
    run("d:", 4, "s:", 2);
    cr_assert_str_eq(outcome.trouble, "");
    expect_served("s:", 0);
    expect_served("s:", 1);
    expect("HGET s:{1}:store " MAKER, "9");
    expect("EXISTS s:{1}:key:stale", "0");
    expect_left("d:", 3);
}

Test(store_copy, a_lost_target_is_undone)
{
    make_two_partitions();
    undo("s:");
    cr_expect(strstr(outcome.trouble, "has not moved"), "%s", outcome.trouble);
    run("s:", 2, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    undo("s:");
    cr_assert_str_eq(outcome.trouble, "");
    expect_served("s:", 0);
    expect_served("s:", 1);
    run("s:", 2, "e:", 2);
    cr_expect_str_eq(outcome.trouble, "");
}

/* Killed while the source was being left: no partition of the target was finished. */
Test(store_copy, only_all_of_the_last_step)
{
    char changes[64], mark[200];

    make_two_partitions();
    run("s:", 2, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    undo("s:");
    tell((const char *const[]){"SET s:{0}:user:usr_x broken", NULL});
    run("s:", 2, "e:", 1);
    cr_assert(strstr(outcome.trouble, "WRONGTYPE"), "%s", outcome.trouble);
    expect_served("s:", 0);
    ask(changes, sizeof changes, "HGET e:store copying_changes");
    tell((const char *const[]){"DEL s:{0}:user:usr_x", NULL});
    redis_server_tell(&fixture.server, "HSET", "s:{0}:store", "moved", PLACE, "copying", ID, "id", "ff", "moved_schema",
                      "2", NULL);
    snprintf(mark, sizeof mark, "HSET d:store copying " ID " copying_changes %s", changes);
    tell((const char *const[]){"SET s:{0}:schema 1000000", "HDEL d:store id", mark, "SET d:schema 1000000", NULL});
    run("s:", 2, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    cr_expect(outcome.copied.was_finished_only);
    expect("HMGET d:store id copying", ID "\n(nil)\n");
    expect_left("s:", 0);
    expect_left("s:", 1);
}

/* Rule 13: a node that comes with what it knows of the source must find it at the target. */
Test(store_copy, chains_go_with_the_store)
{
    make_two_partitions();
    redis_server_tell(&fixture.server, "HSET", "s:{0}:chains", "m1", "3 5 -", NULL);
    redis_server_tell(&fixture.server, "HSET", "s:{1}:chains", "m2", "1 1 2", NULL);
    run("s:", 2, "d:", 1);
    cr_assert_str_eq(outcome.trouble, "");
    expect("HMGET d:chains m1 m2", "3 5 -\n1 1 2\n");
    expect("ZCARD d:chain_order", "2");
    expect("HGET d:store changes", "2");
    run("d:", 1, "e:", 4);
    cr_assert_str_eq(outcome.trouble, "");
    expect("HMGET e:{3}:chains m1 m2", "3 5 -\n1 1 2\n");
}

/* What is missing there would be forgotten at the target. */
Test(store_copy, a_source_that_has_lost_something)
{
    make_two_partitions();
    tell((const char *const[]){"HSET s:{1}:store missing 1", NULL});
    run("s:", 2, "d:", 1);
    cr_expect(strstr(outcome.trouble, "The source has lost changes"), "%s", outcome.trouble);
    cr_expect(outcome.copied.is_refusal);
}

static void change_source(uv_timer_t *timer)
{
    (void)timer;
    redis_server_tell(&fixture.server, "HINCRBY", "s:{1}:store", MAKER, "1", NULL);
}

/* That is found once nothing can change it any more; then nodes serve it again, as nobody serves the target. */
Test(store_copy, a_source_that_changes_is_not_left)
{
    uv_timer_t timer;

    make_two_partitions();
    cr_assert_eq(uv_timer_init(&fixture.loop, &timer), 0);
    uv_timer_start(&timer, change_source, 1, 1);
    run("s:", 2, "d:", 1);
    cr_expect(strstr(outcome.trouble, "Something changes the source"), "%s", outcome.trouble);
    cr_expect_not(outcome.copied.lacks_last_step);
    expect_served("s:", 0);
    expect_served("s:", 1);
    expect("HGET d:store id", "(nil)");
    uv_close((uv_handle_t *)&timer, NULL);
    run("s:", 2, "d:", 1);
    cr_expect_str_eq(outcome.trouble, "");
}

/* As if killed between the last steps of two partitions: one serves, the other has its marker. */
static void copy_but_for_a_last_step(void)
{
    char changes[64], mark[160];

    make_two_partitions();
    tell((const char *const[]){"SET s:{0}:user:usr_x broken", NULL});
    run("s:", 2, "d:", 2);
    cr_assert(strstr(outcome.trouble, "WRONGTYPE"), "%s", outcome.trouble);
    ask(changes, sizeof changes, "HGET d:{1}:store copying_changes");
    tell((const char *const[]){"DEL s:{0}:user:usr_x", NULL});
    run("s:", 2, "d:", 2);
    cr_assert_str_eq(outcome.trouble, "");
    snprintf(mark, sizeof mark, "HSET d:{1}:store copying " ID " copying_changes %s", changes);
    tell((const char *const[]){"HDEL d:{1}:store id", mark, "SET d:{1}:schema 1000000", "SET d:{0}:key:made-since 1",
                               NULL});
}

Test(store_copy, only_its_last_step)
{
    copy_but_for_a_last_step();
    run("s:", 2, "d:", 2);
    cr_assert_str_eq(outcome.trouble, "");
    cr_expect(outcome.copied.was_finished_only);
    expect("HMGET d:{1}:store id copying copying_changes", ID "\n(nil)\n(nil)\n");
    expect("GET d:{1}:schema", "2");
    expect("EXISTS d:{0}:key:made-since", "1");
}

/* Otherwise a key that was revoked there since would be valid again. */
Test(store_copy, not_its_last_step_once_the_source_has_changed)
{
    copy_but_for_a_last_step();
    tell((const char *const[]){"HSET s:{0}:store " MAKER " 8", NULL});
    run("s:", 2, "d:", 2);
    cr_expect(strstr(outcome.trouble, "the source has changed since"), "%s", outcome.trouble);
    cr_expect(outcome.copied.is_refusal);
    expect("HGET d:{1}:store id", "(nil)");
}

Test(store_copy, a_partition_is_missing)
{
    make_two_partitions();
    tell((const char *const[]){"DEL s:{1}:store", NULL});
    run("s:", 0, "d:", 1);
    cr_expect(strstr(outcome.trouble, "not all of it"), "%s", outcome.trouble);
    cr_expect(outcome.copied.is_refusal);
    expect("EXISTS d:store d:schema", "0");
}
