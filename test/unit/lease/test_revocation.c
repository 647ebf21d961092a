/* Revocations over a real Redis: the node's own membership, and another node that the test plays. */
#include "base/clock.h"
#include "base/histogram.h"
#include "deadline.h"
#include "base/metrics.h"
#include "lease/lease.h"
#include "lease/membership_internal.h"
#include "engine/store.h"
#include "engine/state.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 200, LEASE_LONG_MS = 7000, PEER_BYTES = 32 * 1024, KEYS_MANY = 257 };

#define NS_PER_MS UINT64_C(1000000)
#define PEER "0123456789abcdef0123456789abcdef"
#define STRANGER "99999999999999999999999999999999"

/* Another node. */
struct peer {
    struct redis_link *ears, *mouth;
    bool is_silent;
    const char *writes;                     /* its entry, when it hears of a revocation; NULL: nothing */
    unsigned heard, keys_heard, links_open; /* messages, and keys in them */
    bool is_closed;
};

struct world {
    struct membership *member;
    bool is_member_closed;
    unsigned ended;
    struct peer peer;
    struct id account, key;
};

static struct world w;

static void start(void)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key;

    fixture_start();
    w.account = some_account();
    key = some_key(&w.account, MODE_LIVE, 1, digest);
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    w.key = key.id;
}

TestSuite(revocation, .init = start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

static void until(test_loop_predicate *predicate, void *arg)
{
    cr_assert(test_loop_until(&fixture.loop, predicate, arg, PATIENCE_MS), "%s", store_trouble(fixture.store));
}

static void set(void *flag)
{
    cr_assert_not(*(bool *)flag);
    *(bool *)flag = true;
}

static uint64_t wait_ns(uint64_t lease_ms)
{
    return (lease_ms * 125 / 100 + 50) * NS_PER_MS;
}

static void make_connection_old(void)
{
    lease_fence(store_lease(fixture.store))->connected_ns = 1;
}

static struct redis_target target(void)
{
    struct redis_target target;
    struct buf why;

    buf_init(&why, 1000);
    cr_assert(redis_target_parse(text_of(fixture.server.url), &target, &why));
    buf_finish(&why);
    return target;
}

/* The own membership */

static void on_ended(void *arg)
{
    (void)arg;
    w.ended++;
}

static bool has_lease(void *arg)
{
    uint64_t now_ns;

    (void)arg;
    return membership_has_lease(w.member, &now_ns);
}

static void begin_membership(uint32_t lease_ms)
{
    static const struct membership_events EVENTS = {.on_ended = on_ended};
    const struct redis_target redis = target();

    w.member = lease_join(store_lease(fixture.store), &redis, lease_ms);
    membership_listen(w.member, &EVENTS, NULL);
}

static void join(uint32_t lease_ms)
{
    begin_membership(lease_ms);
    until(has_lease, NULL);
    w.ended = 0; /* on a busy machine, a membership may end before its first lease */
}

static void leave(void)
{
    membership_close(w.member, set, &w.is_member_closed);
    cr_assert(test_loop_until_set(&fixture.loop, &w.is_member_closed, PATIENCE_MS));
}

static void own_name(struct member_name *ret_name)
{
    struct barrier *barrier = barrier_begin(lease_barriers(store_lease(fixture.store)));

    snprintf(ret_name->text, sizeof ret_name->text, "%.*s", TEXT_ARG(barrier_member(barrier)));
    barrier_drop(barrier);
}

static bool has_lost_its_connection(void *arg)
{
    struct member_name name;

    (void)arg;
    own_name(&name);
    return strcmp(name.text, "-") == 0;
}

/* The other node */

static void peer_said(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    (void)arg, (void)outcome, (void)reply;
}

static void peer_publish(const char *revoker, const char *from, const char *barrier)
{
    char channel[PEER_BYTES], payload[PEER_BYTES];

    snprintf(channel, sizeof channel, "t:node:%s", revoker);
    snprintf(payload, sizeof payload, "ack %s %s", from, barrier);
    redis_link_call(w.peer.mouth, 3, (struct text[]){TEXT("PUBLISH"), text_of(channel), text_of(payload)}, peer_said,
                    NULL);
}

static bool peer_heard(void *arg, struct text channel, struct text payload)
{
    char message[PEER_BYTES], *rest = message, *keys, *revoker, *barrier;

    (void)arg, (void)channel;
    w.peer.heard++;
    snprintf(message, sizeof message, "%.*s", TEXT_ARG(payload));
    keys = strsep(&rest, " ");
    cr_assert_eq(strlen(keys) % 65, 64);
    w.peer.keys_heard += (unsigned)(strlen(keys) / 65 + 1);
    revoker = strsep(&rest, " ");
    barrier = strsep(&rest, " ");
    cr_assert(revoker && barrier);
    if (strcmp(revoker, "-") == 0)
        return true;
    peer_publish(revoker, STRANGER, barrier);
    peer_publish(revoker, PEER, "0000000000000000");
    if (!w.peer.is_silent)
        peer_publish(revoker, PEER, barrier);
    if (w.peer.writes)
        redis_link_call(w.peer.mouth, 4,
                        (struct text[]){TEXT("HSET"), TEXT("t:nodes"), TEXT(PEER), text_of(w.peer.writes)}, peer_said,
                        NULL);
    return true;
}

static size_t peer_channels(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX])
{
    (void)arg;
    ret_channels[0] = TEXT("t:inv");
    return 1;
}

static bool peer_is_ready(void *arg)
{
    (void)arg;
    return redis_link_is_ready(w.peer.ears) && redis_link_is_ready(w.peer.mouth);
}

/* The barrier waits for the peer, which has heard of it. */
static bool is_waited_for(void *arg)
{
    (void)arg;
    return w.peer.heard > 0 && metric_values[METRIC_BARRIER_SESSIONS] > 0;
}

static bool has_heard_all(void *arg)
{
    return w.peer.keys_heard >= *(unsigned *)arg;
}

static void peer_register(void)
{
    redis_server_tell(&fixture.server, "HSET", "t:nodes", PEER, "1 300", NULL);
}

static void peer_open(void)
{
    static const struct redis_subscription SUBSCRIPTION = {.channels = peer_channels, .message = peer_heard};
    const struct redis_target redis = target();
    struct redis_link_settings settings = {.name = "mouth", .timeout_ms = PATIENCE_MS, .calls_max = 100};

    w.peer.mouth = redis_link_create(&fixture.loop, &redis, &settings, NULL, NULL);
    settings.name = "ears";
    settings.subscription = &SUBSCRIPTION;
    w.peer.ears = redis_link_create(&fixture.loop, &redis, &settings, NULL, NULL);
    w.peer.links_open = 2;
    until(peer_is_ready, NULL);
    peer_register();
}

static void peer_link_closed(void *arg)
{
    (void)arg;
    w.peer.is_closed = --w.peer.links_open == 0;
}

static void peer_close(void)
{
    redis_link_close(w.peer.ears, peer_link_closed, NULL);
    redis_link_close(w.peer.mouth, peer_link_closed, NULL);
    cr_assert(test_loop_until_set(&fixture.loop, &w.peer.is_closed, PATIENCE_MS));
}

/* arg: the peer's entry in the registry; NULL: none */
static bool peer_is_held_as(void *arg)
{
    char held[64];

    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", PEER, NULL);
    return strcmp(held, arg ? (const char *)arg : "(nil)") == 0;
}

static bool peer_is_marked(void *arg)
{
    char held[64];

    (void)arg;
    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", PEER, NULL);
    return held[0] == '?' && strlen(held) == strlen("?0123456789abcdef 300") && strcmp(held + 17, " 300") == 0;
}

static long long registry_count(void)
{
    char count[32];

    redis_server_ask(&fixture.server, count, sizeof count, "HLEN", "t:nodes", NULL);
    return atoll(count);
}

/* Revoking */

static void revoke_begin(struct key_answer *answer)
{
    static const struct key_view EVERYTHING = {.any_kind = true};

    key_store_revoke(fixture.store, &EVERYTHING, &w.key, &SOMEBODY, key_answer_done, answer);
}

/* Returns how long it took. */
static uint64_t revoke_key(enum store_result expected)
{
    struct key_answer answer = {0};
    uint64_t began_ns = clock_boot_ns();

    revoke_begin(&answer);
    cr_assert_eq(answer_wait(&answer.answer), expected);
    if (expected == STORE_OK)
        cr_assert_gt(answer.key.revoked_ms, 0);
    return clock_boot_ns() - began_ns;
}

Test(revocation, the_only_node_acknowledges_to_itself)
{
    struct member_name name;

    join(LEASE_LONG_MS);
    own_name(&name);
    make_connection_old();
    cr_assert_lt(revoke_key(STORE_OK), wait_ns(LEASE_LONG_MS));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    cr_assert_leq(metric_values[METRIC_BARRIER_SESSIONS], 1, "or it was faster than the reply");
    leave();
}

Test(revocation, all_nodes_acknowledge)
{
    join(LEASE_LONG_MS);
    peer_open();
    make_connection_old();
    for (unsigned i = 1; i <= 3; i++) {
        cr_assert_lt(revoke_key(STORE_OK), wait_ns(LEASE_LONG_MS));
        cr_assert_eq(w.peer.heard, i, "again: the whole barrier");
        cr_assert_leq(metric_values[METRIC_BARRIER_SESSIONS], 2 * i, "or they were faster than the reply");
    }
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    cr_assert(peer_is_held_as((char[]){"1 300"}));
    peer_close();
    leave();
}

Test(revocation, a_node_that_is_silent_is_waited_for_twice_and_swept)
{
    join(LEASE_MS);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "300", NULL);
    cr_assert_geq(revoke_key(STORE_OK), wait_ns(300), "the longest lease counts");
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 1);
    until(peer_is_marked, NULL);
    cr_assert_geq(revoke_key(STORE_OK), wait_ns(300));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 2);
    until(peer_is_held_as, NULL);
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "10000", NULL); /* time for its own acknowledgement */
    revoke_key(STORE_OK);
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 2, "nobody waits for it a third time");
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "300", NULL);
    /* Back in the registry, the peer is waited for again, although the key was already revoked. */
    peer_register();
    cr_assert_geq(revoke_key(STORE_OK), wait_ns(300));
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 3);
    peer_close();
    leave();
}

/* Neither marked nor swept: the entry is not what the revocation's script returned. */
Test(revocation, an_entry_that_was_written_since_is_left_alone)
{
    static const struct {
        const char *before, *since;
    } ENTRIES[] = {
        {"1 300", "2 300"},
        {"?1111111111111111 300", "1 300"},
        {"?1111111111111111 300", "?2222222222222222 300"}, /* written, and marked by another revocation */
    };

    join(LEASE_MS);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++) {
        redis_server_tell(&fixture.server, "HSET", "t:nodes", PEER, ENTRIES[i].before, NULL);
        w.peer.writes = ENTRIES[i].since;
        cr_assert_geq(revoke_key(STORE_OK), wait_ns(LEASE_MS));
        test_loop_for(&fixture.loop, 200);
        char since[64];
        snprintf(since, sizeof since, "%s", ENTRIES[i].since);
        cr_assert(peer_is_held_as(since), "%zu", i);
    }
    peer_close();
    leave();
}

static bool peer_has_mark(void *arg)
{
    char held[64];

    (void)arg;
    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", PEER, NULL);
    return held[0] == '?';
}

Test(revocation, marks_differ_and_fit)
{
    char first[64], second[64];

    join(LEASE_MS);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    redis_server_tell(&fixture.server, "HSET", "t:nodes", PEER, "1 300 of more words than any version", NULL);
    revoke_key(STORE_OK);
    until(peer_has_mark, NULL);
    redis_server_ask(&fixture.server, first, sizeof first, "HGET", "t:nodes", PEER, NULL);
    redis_server_tell(&fixture.server, "HSET", "t:nodes", PEER, "1 300 of more words than any version", NULL);
    revoke_key(STORE_OK);
    until(peer_has_mark, NULL);
    redis_server_ask(&fixture.server, second, sizeof second, "HGET", "t:nodes", PEER, NULL);
    cr_assert_str_neq(first, second);
    revoke_key(STORE_OK);
    until(peer_is_held_as, NULL);
    peer_close();
    leave();
}

Test(revocation, the_own_lease_counts_where_it_is_longer)
{
    join(400);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "100", NULL);
    cr_assert_geq(revoke_key(STORE_OK), wait_ns(400));
    peer_close();
    leave();
}

Test(revocation, the_command_line_waits_for_leases_to_end)
{
    peer_open();
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "300", NULL);
    make_connection_old();
    cr_assert_geq(revoke_key(STORE_OK), wait_ns(300), "it has no membership that could be told");
    until(peer_is_marked, NULL);
    peer_close();
}

Test(revocation, the_command_line_does_not_wait_where_nobody_ever_had_a_lease)
{
    revoke_key(STORE_OK);
    cr_assert_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    cr_assert_eq(histogram_count(HISTOGRAM_BARRIER), 1);
}

Test(revocation, a_membership_that_is_lost_under_way_costs_time_only)
{
    struct key_answer answer = {0};
    uint64_t began_ns;

    join(LEASE_MS);
    make_connection_old();
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    began_ns = clock_boot_ns();
    revoke_begin(&answer);
    cr_assert_eq(answer_wait(&answer.answer), STORE_OK);
    cr_assert_geq(clock_boot_ns() - began_ns, wait_ns(LEASE_MS));
    leave();
}

Test(revocation, the_link_of_changes_is_lost_while_it_waits)
{
    struct key_answer answer = {0};

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    revoke_begin(&answer);
    until(is_waited_for, NULL);
    cr_assert_not(answer.answer.is_done);
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    cr_assert_eq(answer_wait(&answer.answer), STORE_UNKNOWN);
    cr_assert_eq(metric_values[METRIC_BARRIER_FAILED], 1);
    peer_close();
    leave();
}

Test(revocation, the_store_is_closed_while_it_waits)
{
    struct key_answer answer = {0};

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    revoke_begin(&answer);
    until(is_waited_for, NULL);
    peer_close();
    leave();
    fixture_close_store();
    cr_assert_eq(answer.answer.calls, 1);
    cr_assert_eq(answer.answer.result, STORE_UNKNOWN);
}

Test(revocation, what_redis_holds_makes_no_sense)
{
    static const struct {
        const char *command[4];
        const char *undo;
    } CASES[] = {
        {{"HSET", "t:nodes", "short", "1 300"}, "t:nodes"},
        {{"HSET", "t:nodes", PEER, "1111111111111111111111111111111111111111111111111111 300"}, "t:nodes"},
        {{"SET", "t:lease_max", "long", NULL}, "t:lease_max"},
        {{"SET", "t:lease_max", "-1", NULL}, "t:lease_max"},
        {{"SET", "t:lease_max", "147573952589676413", NULL}, "t:lease_max"},
    };

    make_connection_old();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const *c = CASES[i].command;

        redis_server_tell(&fixture.server, c[0], c[1], c[2], c[3], NULL);
        revoke_key(STORE_UNKNOWN);
        redis_server_tell(&fixture.server, "DEL", CASES[i].undo, NULL);
    }
    revoke_key(STORE_OK);
}

Test(revocation, an_unknown_key_waits_for_nobody)
{
    struct key_answer answer = {0};
    static const struct key_view NOT_DEVICE = {.kind = KEY_DEVICE};

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    key_store_revoke(fixture.store, &NOT_DEVICE, &w.key, &SOMEBODY, key_answer_done, &answer);
    cr_assert_eq(answer_wait(&answer.answer), STORE_NOT_FOUND);
    cr_assert_eq(w.peer.heard, 0);
    peer_close();
    leave();
}

/* Revocations in groups */

/* Those of a version that reads one key from a message register without the number. */
static void peer_reads_lists(void)
{
    redis_server_tell(&fixture.server, "HSET", "t:nodes", PEER, "1 300 2", NULL);
}

static void keys_make(struct id *ret_ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t digest[KEY_DIGEST_BYTES];
        struct key_record key = some_key(&w.account, MODE_LIVE, 2, digest);

        digest[1] = (uint8_t)i;
        digest[2] = (uint8_t)(i >> 8);
        cr_assert_eq(insert_key(&key, digest), STORE_OK);
        ret_ids[i] = key.id;
    }
}

static void revoke_all(const struct id *ids, size_t count, struct key_answer *ret_answers)
{
    static const struct key_view EVERYTHING = {.any_kind = true};

    for (size_t i = 0; i < count; i++)
        key_store_revoke(fixture.store, &EVERYTHING, &ids[i], &SOMEBODY, key_answer_done, &ret_answers[i]);
}

static enum store_result result_of(struct key_answer *answer)
{
    cr_assert(test_loop_until_set(&fixture.loop, &answer->answer.is_done, PATIENCE_MS));
    return answer->answer.result;
}

static void expect_all(struct key_answer *answers, size_t count, enum store_result expected)
{
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(result_of(&answers[i]), expected, "%zu: %d", i, answers[i].answer.result);
        cr_expect_eq(answers[i].answer.calls, 1);
    }
}

/* The first one leaves at once. The others wait for Redis' reply, then leave together. */
Test(revocation, those_that_come_meanwhile_leave_together)
{
    struct key_answer answers[5] = {0};
    struct id ids[5];

    join(LEASE_LONG_MS);
    peer_open();
    peer_reads_lists();
    make_connection_old();
    keys_make(ids, 4);
    ids[4] = id_mint(ID_KEY, 1);
    revoke_all(ids, 5, answers);
    expect_all(answers, 4, STORE_OK);
    cr_expect_eq(result_of(&answers[4]), STORE_NOT_FOUND);
    cr_expect_eq(w.peer.heard, 2);
    cr_expect_eq(w.peer.keys_heard, 4);
    cr_expect_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    cr_expect_eq(histogram_count(HISTOGRAM_BARRIER), 2);
    for (size_t i = 0; i < 4; i++) {
        cr_expect(id_equal(&answers[i].key.id, &ids[i]));
        cr_expect_gt(answers[i].key.revoked_ms, 0);
    }
    peer_close();
    leave();
}

/* The reply tells how few nodes there are. */
static void join_and_revoke_first(struct id ids[5])
{
    struct key_answer first = {0};

    join(LEASE_LONG_MS);
    peer_open();
    peer_reads_lists();
    make_connection_old();
    keys_make(ids, 5);
    revoke_all(ids, 1, &first);
    expect_all(&first, 1, STORE_OK);
}

/* Those of one turn of the loop; the first one has left when the others come. */
Test(revocation, among_few_nodes_those_of_one_turn_leave_together)
{
    struct key_answer answers[4] = {0};
    struct id ids[5];

    join_and_revoke_first(ids);
    revoke_all(ids + 1, 4, answers);
    expect_all(answers, 4, STORE_OK);
    cr_expect_eq(w.peer.heard, 3);
    cr_expect_eq(w.peer.keys_heard, 5);
    peer_close();
    leave();
}

/* Among few nodes a message costs little, so those of another turn do not wait for a reply of Redis. */
Test(revocation, among_few_nodes_none_waits_for_a_reply)
{
    enum { TURN_MS = 10 };
    struct key_answer answers[4] = {0};
    struct id ids[5];

    join_and_revoke_first(ids);
    redis_server_tell(&fixture.server, "CLIENT", "PAUSE", "60000", "WRITE", NULL);
    for (size_t i = 0; i < 4; i++) {
        revoke_all(ids + 1 + i, 1, &answers[i]);
        test_loop_for(&fixture.loop, TURN_MS);
    }
    redis_server_tell(&fixture.server, "CLIENT", "UNPAUSE", NULL);
    expect_all(answers, 4, STORE_OK);
    cr_expect_eq(w.peer.heard, 5);
    cr_expect_eq(w.peer.keys_heard, 5);
    peer_close();
    leave();
}

/* As many as a registry of nodes that are gone tells of. */
Test(revocation, among_many_nodes_those_that_come_meanwhile_leave_together)
{
    struct key_answer first = {0}, answers[4] = {0};
    char member[MEMBER_NAME_CHARS + 1];
    struct id ids[5];

    join(LEASE_MS);
    peer_open();
    peer_reads_lists();
    for (int i = 0; i < 100; i++) {
        snprintf(member, sizeof member, "%032d", i);
        redis_server_tell(&fixture.server, "HSET", "t:nodes", member, "1 300 2", NULL);
    }
    keys_make(ids, 5);
    revoke_all(ids, 1, &first);
    expect_all(&first, 1, STORE_OK);
    for (int i = 0; i < 100; i++) {
        snprintf(member, sizeof member, "%032d", i);
        redis_server_tell(&fixture.server, "HSET", "t:nodes", member, "2 300 2", NULL);
    }
    revoke_all(ids + 1, 4, answers);
    expect_all(answers, 4, STORE_OK);
    cr_expect_eq(w.peer.heard, 3);
    cr_expect_eq(w.peer.keys_heard, 5);
    peer_close();
    leave();
}

Test(revocation, a_node_that_reads_no_lists_hears_of_each)
{
    struct key_answer answers[4] = {0};
    struct id ids[4];

    join(LEASE_LONG_MS);
    peer_open();
    make_connection_old();
    keys_make(ids, 4);
    revoke_all(ids, 4, answers);
    expect_all(answers, 4, STORE_OK);
    cr_expect_eq(w.peer.heard, 4);
    cr_expect_eq(w.peer.keys_heard, 4);
    cr_expect_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    peer_close();
    leave();
}

Test(revocation, a_group_is_bounded)
{
    static struct key_answer answers[KEYS_MANY];
    static struct id ids[KEYS_MANY];

    join(LEASE_LONG_MS);
    peer_open();
    peer_reads_lists();
    make_connection_old();
    keys_make(ids, KEYS_MANY);
    revoke_all(ids, KEYS_MANY, answers);
    expect_all(answers, KEYS_MANY, STORE_OK);
    cr_expect_eq(w.peer.heard, 2, "one, then 256");
    cr_expect_eq(w.peer.keys_heard, KEYS_MANY);
    peer_close();
    leave();
}

static bool are_all_noted(UNUSED void *arg)
{
    static const char COUNT[] = "local noted = 0 "
                                "for _, v in ipairs(redis.call('HVALS', KEYS[1])) do "
                                "if v:match('^%S+ %S+ %d+ 1 0$') then noted = noted + 1 end end "
                                "return noted";
    char name[64], noted[32];
    uint64_t count;

    snprintf(name, sizeof name, "t:acct:%s:key_endings", w.account.text);
    redis_server_ask(&fixture.server, noted, sizeof noted, "EVAL", COUNT, "1", name, NULL);
    return text_to_u64(text_of(noted), UINT64_MAX, &count) && count == KEYS_MANY;
}

/* Each group's keys are noted when its barrier is over, and notes wait for one another. */
Test(revocation, the_end_of_each_barrier_is_noted)
{
    static struct key_answer answers[KEYS_MANY];
    static struct id ids[KEYS_MANY];

    join(LEASE_LONG_MS);
    make_connection_old();
    keys_make(ids, KEYS_MANY);
    for (size_t i = 0; i < KEYS_MANY; i++) {
        revoke_all(&ids[i], 1, &answers[i]);
        if (i % 16 == 0)
            expect_all(&answers[i], 1, STORE_OK);
    }
    expect_all(answers, KEYS_MANY, STORE_OK);
    until(are_all_noted, NULL);
    leave();
}

/* The second note waits for its pace, or both are under way: closing drops the one, and frees all. */
Test(revocation, the_store_is_closed_while_notes_wait)
{
    struct key_answer answers[2] = {0};
    struct id ids[2];

    keys_make(ids, 2);
    for (size_t i = 0; i < 2; i++) {
        revoke_all(&ids[i], 1, &answers[i]);
        expect_all(&answers[i], 1, STORE_OK);
    }
    fixture_close_store();
}

/* Each member of a group that was revoked before waits for the barrier too (rule 8). */
Test(revocation, a_group_that_is_repeated_is_waited_for)
{
    struct key_answer answers[3] = {0}, again[3] = {0};
    struct id ids[3];
    uint64_t began_ns;

    join(LEASE_MS);
    keys_make(ids, 3);
    revoke_all(ids, 3, answers);
    expect_all(answers, 3, STORE_OK);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    began_ns = clock_boot_ns();
    revoke_all(ids, 3, again);
    expect_all(again, 3, STORE_OK);
    cr_expect_geq(clock_boot_ns() - began_ns, wait_ns(LEASE_MS));
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(again[i].key.revoked_ms, answers[i].key.revoked_ms);
    peer_close();
    leave();
}

Test(revocation, the_link_of_changes_is_lost_while_a_group_waits)
{
    struct key_answer answers[4] = {0};
    struct id ids[4];

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    keys_make(ids, 4);
    revoke_all(ids, 4, answers);
    until(has_heard_all, &(unsigned){4});
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "normal", NULL);
    expect_all(answers, 4, STORE_UNKNOWN);
    peer_close();
    leave();
}

/* One group is under way and the rest waits when the store closes: each still completes once. */
Test(revocation, the_store_is_closed_while_revocations_wait_for_their_group)
{
    static struct key_answer answers[KEYS_MANY];
    static struct id ids[KEYS_MANY];

    keys_make(ids, KEYS_MANY);
    redis_server_tell(&fixture.server, "CLIENT", "PAUSE", "60000", "WRITE", NULL);
    revoke_all(ids, KEYS_MANY, answers);
    fixture_close_store();
    for (size_t i = 0; i < KEYS_MANY; i++) {
        cr_expect_eq(answers[i].answer.calls, 1, "%zu", i);
        cr_expect_neq(answers[i].answer.result, STORE_OK);
    }
}

/* Lists of keys */

static void cut_link(void)
{
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "normal", NULL);
}

struct list_answer {
    struct answer answer;
    struct key_of_list keys[KEYS_MANY + 1];
    size_t count;
    unsigned marked, cut_at; /* loses the link of changes when so many are marked; 0: never */
    unsigned unwanted_at;    /* likewise: nobody wants the rest */
};

static void list_marked(void *arg, const struct key_record *key)
{
    struct list_answer *list = arg;

    cr_assert_gt(key->revoked_ms, 0);
    cr_assert_not(list->answer.is_done);
    if (++list->marked == list->cut_at)
        cut_link();
}

static bool list_is_wanted(void *arg)
{
    const struct list_answer *list = arg;

    return list->unwanted_at == 0 || list->marked < list->unwanted_at;
}

static void list_done(void *arg, enum store_result result, const struct key_of_list *keys, size_t count)
{
    struct list_answer *list = arg;

    if (result == STORE_OK)
        memcpy(list->keys, keys, count * sizeof *keys);
    list->count = count;
    answer_done(&list->answer, result);
}

static void list_begin(const struct id *ids, size_t count, const struct audit_source *source, struct list_answer *list)
{
    const struct key_view view = {.account = w.account, .kind = KEY_API};
    const struct keys_observer observer = {list_marked, list_done, list, list_is_wanted};

    memset(list, 0, sizeof *list);
    key_store_revoke_list(fixture.store, &view, ids, count, source, &observer);
}

static enum store_result revoke_list(const struct id *ids, size_t count, struct list_answer *ret_list)
{
    list_begin(ids, count, &SOMEBODY, ret_list);
    return answer_wait(&ret_list->answer);
}

static unsigned count_outcome(const struct list_answer *list, enum key_outcome outcome)
{
    unsigned count = 0;

    for (size_t i = 0; i < list->count; i++)
        count += list->keys[i].outcome == outcome;
    return count;
}

/* One message for each portion, and one more with the barrier of all. */
Test(revocation, a_list_has_one_barrier)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY + 1];

    join(LEASE_LONG_MS);
    peer_open();
    peer_reads_lists();
    make_connection_old();
    keys_make(ids, KEYS_MANY);
    ids[KEYS_MANY] = id_mint(ID_KEY, 1);
    cr_assert_eq(revoke_list(ids, KEYS_MANY + 1, &list), STORE_OK);
    cr_expect_eq(w.peer.keys_heard, KEYS_MANY + 1, "one of them twice");
    cr_expect_eq(w.peer.heard, 4);
    cr_expect_eq(histogram_count(HISTOGRAM_BARRIER), 1);
    cr_expect_eq(metric_values[METRIC_BARRIER_FORCED], 0);
    cr_expect_eq(list.marked, KEYS_MANY);
    cr_expect_eq(list.count, KEYS_MANY + 1);
    cr_expect_eq(count_outcome(&list, KEY_WAS_REVOKED), KEYS_MANY);
    cr_expect_eq(list.keys[KEYS_MANY].outcome, KEY_WAS_NOT_FOUND);
    cr_assert_eq(revoke_list(ids, 3, &list), STORE_OK);
    cr_expect_eq(count_outcome(&list, KEY_WAS_REVOKED_BEFORE), 3);
    cr_expect_eq(w.peer.heard, 5, "a short list is one script");
    cr_expect_eq(histogram_count(HISTOGRAM_BARRIER), 2);
    peer_close();
    leave();
}

/* What was marked stays so. */
Test(revocation, a_list_that_nobody_wants_any_more_ends_with_its_portion)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];

    join(LEASE_LONG_MS);
    keys_make(ids, KEYS_MANY);
    list_begin(ids, KEYS_MANY, &SOMEBODY, &list);
    list.unwanted_at = 1;
    cr_assert_eq(answer_wait(&list.answer), STORE_UNKNOWN);
    cr_expect_gt(list.marked, 0);
    cr_expect_lt(list.marked, KEYS_MANY);
    cr_assert_eq(revoke_list(ids, KEYS_MANY, &list), STORE_OK, "repeating is safe");
    cr_expect_gt(count_outcome(&list, KEY_WAS_REVOKED_BEFORE), 0);
    leave();
}

Test(revocation, a_list_waits_for_a_node_that_is_silent)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];
    uint64_t began_ns;

    join(LEASE_MS);
    keys_make(ids, KEYS_MANY);
    peer_open();
    w.peer.is_silent = true;
    make_connection_old();
    for (size_t count = 2; count <= KEYS_MANY; count += KEYS_MANY - 2) {
        peer_register();
        began_ns = clock_boot_ns();
        cr_assert_eq(revoke_list(ids, count, &list), STORE_OK);
        cr_expect_geq(clock_boot_ns() - began_ns, wait_ns(LEASE_MS), "%zu keys", count);
        until(peer_is_marked, NULL);
    }
    peer_close();
    leave();
}

static void lose_link_while_list_waits(size_t count)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    keys_make(ids, count);
    list_begin(ids, count, &SOMEBODY, &list);
    until(is_waited_for, NULL);
    cr_expect_not(list.answer.is_done);
    cut_link();
    cr_expect_eq(answer_wait(&list.answer), STORE_UNKNOWN);
    peer_close();
    leave();
}

Test(revocation, the_link_of_changes_is_lost_while_a_list_waits)
{
    lose_link_while_list_waits(2);
}

Test(revocation, the_link_of_changes_is_lost_while_a_list_of_several_portions_waits)
{
    lose_link_while_list_waits(KEYS_MANY);
}

static bool store_serves(void *arg)
{
    (void)arg;
    return store_is_ready(fixture.store);
}

/* After the first portion, and after the last, when only the barrier is missing. */
Test(revocation, the_link_of_changes_is_lost_between_the_scripts_of_a_list)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];

    keys_make(ids, KEYS_MANY);
    for (unsigned cut_at = 128; cut_at <= KEYS_MANY; cut_at += KEYS_MANY - 128) {
        until(store_serves, NULL);
        list_begin(ids, KEYS_MANY, &SOMEBODY, &list);
        list.cut_at = cut_at;
        cr_expect_neq(answer_wait(&list.answer), STORE_OK, "%u", cut_at);
        cr_expect_eq(list.marked, cut_at);
    }
}

Test(revocation, a_list_of_unknown_keys_waits_for_nobody)
{
    static struct list_answer list;
    struct id ids[2] = {id_mint(ID_KEY, 1), id_mint(ID_KEY, 2)};

    join(10000);
    peer_open();
    w.peer.is_silent = true;
    cr_assert_eq(revoke_list(ids, 2, &list), STORE_OK);
    cr_expect_eq(count_outcome(&list, KEY_WAS_NOT_FOUND), 2);
    cr_expect_eq(w.peer.heard, 0);
    peer_close();
    leave();
}

/* A key that is in its own list comes last, although the list has several portions. One that is revoked already may
 * revoke nothing. */
Test(revocation, a_key_revokes_a_list_that_names_itself)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];
    uint8_t digest[KEY_DIGEST_BYTES] = {2, 0, 0};
    struct audit_source itself = {.ip = TEXT("192.0.2.1"), .request_id = TEXT("req_1")};

    keys_make(ids, KEYS_MANY);
    itself.actor = id_text(&ids[0]);
    itself.credential.kind = CREDENTIAL_KEY;
    memcpy(itself.credential.digest, digest, sizeof digest);
    list_begin(ids, KEYS_MANY, &itself, &list);
    cr_assert_eq(answer_wait(&list.answer), STORE_OK);
    cr_expect_eq(count_outcome(&list, KEY_WAS_REVOKED), KEYS_MANY);
    cr_expect(id_equal(&list.keys[KEYS_MANY - 1].id, &ids[0]));
    list_begin(ids, KEYS_MANY, &itself, &list);
    cr_assert_eq(answer_wait(&list.answer), STORE_ACTOR_REVOKED);
}

/* The other keys of the list are revoked, but the result promises nothing. */
Test(revocation, a_list_with_a_malformed_record)
{
    static struct list_answer list;
    struct id ids[3];
    char name[80];

    keys_make(ids, 3);
    snprintf(name, sizeof name, "t:id:%s", ids[1].text);
    redis_server_tell(&fixture.server, "SET", name, "elsewhere", NULL);
    cr_assert_eq(revoke_list(ids, 3, &list), STORE_UNKNOWN);
    cr_expect_eq(list.marked, 2);
}

Test(revocation, the_store_is_closed_while_a_list_is_under_way)
{
    static struct list_answer list;
    static struct id ids[KEYS_MANY];

    keys_make(ids, KEYS_MANY);
    list_begin(ids, KEYS_MANY, &SOMEBODY, &list);
    fixture_close_store();
    cr_expect_eq(list.answer.calls, 1);
    cr_expect_neq(list.answer.result, STORE_OK);
}

/* The registry */

/* arg: a membership's name */
static bool is_registered(void *arg)
{
    char held[64];

    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", (const char *)arg, NULL);
    return strcmp(held, "(nil)") != 0;
}

static bool is_alone_in_the_registry(void *arg)
{
    return is_registered(arg) && registry_count() == 1;
}

static bool is_registry_empty(void *arg)
{
    (void)arg;
    return registry_count() == 0;
}

Test(revocation, a_swept_membership_registers_again)
{
    struct member_name name;

    join(LEASE_MS);
    own_name(&name);
    cr_assert(is_registered(name.text));
    redis_server_tell(&fixture.server, "DEL", "t:nodes", NULL);
    until(is_registered, name.text);
    cr_assert_eq(w.ended, 0);
    leave();
}

/* arg: its entry */
static bool is_not_held_as(void *arg)
{
    struct member_name name;
    char held[64];

    own_name(&name);
    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", name.text, NULL);
    return strcmp(held, arg) != 0;
}

Test(revocation, a_marked_membership_writes_its_entry_again)
{
    struct member_name name;
    char held[64], marked[] = "?0123456789abcdef 200 2";

    join(LEASE_MS);
    own_name(&name);
    redis_server_tell(&fixture.server, "HSET", "t:nodes", name.text, marked, NULL);
    until(is_not_held_as, marked);
    redis_server_ask(&fixture.server, held, sizeof held, "HGET", "t:nodes", name.text, NULL);
    cr_assert_neq(held[0], '?');
    for (int i = 0; i < 10; i++) {
        test_loop_for(&fixture.loop, LEASE_MS / 4);
        cr_assert_not(is_not_held_as(held), "then it is left alone");
    }
    /* Revokers of earlier versions know no marks. */
    redis_server_tell(&fixture.server, "SET", "t:schema", "1", NULL);
    until(is_not_held_as, held);
    leave();
}

static bool knows_an_entry(void *arg)
{
    (void)arg;
    return heard_has_known(w.member->heard);
}

Test(revocation, a_membership_after_a_reconnect_takes_the_old_one_out)
{
    struct member_name before, after;

    join(LEASE_MS);
    until(knows_an_entry, NULL); /* the reply may come behind the echo */
    own_name(&before);
    redis_server_tell(&fixture.server, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    until(has_lost_its_connection, NULL);
    until(has_lease, NULL);
    own_name(&after);
    cr_assert_str_neq(after.text, before.text);
    until(is_alone_in_the_registry, after.text);
    cr_assert_eq(w.ended, 0, "it has caught up");
    leave();
}

Test(revocation, a_membership_that_leaves_is_not_waited_for)
{
    join(LEASE_MS);
    membership_leave(w.member);
    until(is_registry_empty, NULL);
    for (unsigned i = 0; i < 20; i++) {
        test_loop_for(&fixture.loop, LEASE_MS / 10);
        cr_assert_not(has_lease(NULL));
        cr_assert_eq(registry_count(), 0);
    }
    leave();
}

Test(revocation, redis_is_started_again)
{
    struct member_name before, after;

    join(LEASE_MS);
    own_name(&before);
    redis_server_kill(&fixture.server);
    until(has_lost_its_connection, NULL);
    cr_assert_not(has_lease(NULL));
    redis_server_restart(&fixture.server);
    until(has_lease, NULL);
    cr_assert_eq(w.ended, 1, "it was another process, and nothing was revoked before that could be compared");
    own_name(&after);
    until(is_alone_in_the_registry, after.text);
    /* Its connection is young, so it waits, whoever is registered. */
    uint64_t since_ns = fence_sole_since_ns(lease_fence(store_lease(fixture.store)));
    revoke_key(STORE_OK);
    cr_assert_geq(clock_boot_ns(), since_ns + wait_ns(LEASE_MS));
    leave();
}

static bool is_longest_lease(void *ms)
{
    char lease_max[32];

    redis_server_ask(&fixture.server, lease_max, sizeof lease_max, "GET", "t:lease_max", NULL);
    return strcmp(lease_max, ms) == 0;
}

Test(revocation, the_longest_lease_only_grows)
{
    redis_server_tell(&fixture.server, "SET", "t:lease_max", "700", NULL);
    join(LEASE_MS);
    cr_assert(is_longest_lease((char[]){"700"}));
    redis_server_tell(&fixture.server, "DEL", "t:lease_max", NULL);
    until(is_longest_lease, (char[]){"200"});
    leave();
}
