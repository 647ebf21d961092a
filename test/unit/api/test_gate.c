/* The gate by itself: whose turn it is, and what is refused. */
#include "api/gate.h"
#include "base/metrics.h"
#include "core/bucket.h"
#include "leak_guard.h"
#include <criterion/criterion.h>
#include <stdio.h>

enum { TICKETS = 700, SECOND = 1000 };

static struct gate *gate;
static uint64_t now_ms;
static bool must_turn;
static uint64_t wake_ms; /* 0: none asked for, but for must_turn */
static unsigned spent;
static struct client {
    struct gate_ticket ticket;
    bool is_gone, runs;
    bool is_told;
    enum gate_result told;
} clients[TICKETS];
static char order[TICKETS]; /* the names of those that ran, in turn */
static size_t ran;
static struct id accounts[4], principals[8];

static void wake(void *arg, uint64_t in_ms)
{
    (void)arg;
    must_turn = in_ms == 0;
    wake_ms = now_ms + in_ms;
}

static void note_spent(void *arg)
{
    (void)arg;
    spent++;
}

static bool is_gone(void *arg)
{
    return ((struct client *)arg)->is_gone;
}

static void done(void *arg, enum gate_result result)
{
    struct client *client = arg;

    cr_assert_not(client->is_told, "told twice");
    client->is_told = true;
    client->told = result;
    client->runs = result == GATE_RUN;
    if (client->runs)
        order[ran++] = (char)('a' + (client - clients) % 26);
    else
        gate_leave(&client->ticket, now_ms);
}

static void begin_with(unsigned reads_per_second)
{
    gate = gate_create(&(struct gate_settings){
        .reads_per_second = reads_per_second, .work_per_account = 4, .wake = wake, .spent = note_spent});
}

static void begin(void)
{
    now_ms = 5 * SECOND;
    for (size_t i = 0; i < sizeof accounts / sizeof *accounts; i++)
        accounts[i] = id_mint(ID_ACCOUNT, (int64_t)i + 1);
    for (size_t i = 0; i < sizeof principals / sizeof *principals; i++)
        principals[i] = id_mint(ID_KEY, (int64_t)i + 1);
    for (size_t i = 0; i < TICKETS; i++)
        clients[i].ticket.principal = NULL;
    begin_with(0);
}

static void end(void)
{
    for (size_t i = 0; i < TICKETS; i++)
        gate_leave(&clients[i].ticket, now_ms);
    gate_destroy(gate);
    for (enum metric m = METRIC_GATE_READ_RUNNING; m <= METRIC_GATE_END_WAITING; m++)
        cr_assert_eq(metric_values[m], 0, "the gauges have come back");
    leak_guard();
}

TestSuite(gate, .init = begin, .fini = end);

static void turn(void)
{
    for (unsigned i = 0; must_turn; i++) {
        cr_assert_lt(i, 1000, "turns without end");
        must_turn = false;
        gate_turn(gate, now_ms);
    }
}

/* Sends the n-th client's request. Returns the seconds after which it may come again. */
static uint32_t send(size_t n, enum gate_class class, size_t account, size_t principal, enum gate_rank rank)
{
    struct client *client = &clients[n];
    const struct gate_caller caller = {&accounts[account], &principals[principal], rank};
    uint32_t wait_s;

    *client = (struct client){0};
    wait_s = gate_enter(gate, class, &caller, now_ms, is_gone, done, client, &client->ticket);
    if (wait_s > 0)
        client->ticket.gate = NULL;
    else
        client->runs = gate_wait(&client->ticket, now_ms);
    return wait_s;
}

static void leave(size_t n)
{
    gate_leave(&clients[n].ticket, now_ms);
    clients[n].runs = false;
    turn();
}

static unsigned running(void)
{
    unsigned count = 0;

    for (size_t i = 0; i < TICKETS; i++)
        count += clients[i].runs;
    return count;
}

/* Sends `count` requests, the first one by the client `from`. Returns how many were not refused. */
static unsigned flood(size_t from, size_t count, enum gate_class class, size_t account, enum gate_rank rank)
{
    unsigned taken = 0;

    for (size_t i = 0; i < count; i++)
        taken += send(from + i, class, account, rank, rank) == 0;
    turn();
    return taken;
}

Test(gate, an_account_has_some_places_and_some_room_to_wait)
{
    cr_assert_eq(flood(0, 100, GATE_WORK, 0, GATE_PERSON), 4 + 32);
    cr_assert_eq(running(), 4);
    leave(0);
    cr_assert_eq(running(), 4, "the next one runs");
    cr_assert_eq(clients[4].told, GATE_RUN);
}

Test(gate, a_node_has_twice_the_work_of_an_account)
{
    for (size_t account = 0; account < 3; account++)
        flood(10 * account, 10, GATE_WORK, account, GATE_PERSON);
    cr_assert_eq(running(), 8);
}

Test(gate, ends_have_two_places_an_account_and_four_a_node)
{
    flood(0, 3, GATE_END, 0, GATE_PERSON);
    cr_assert_eq(running(), 2);
    flood(10, 3, GATE_END, 1, GATE_PERSON);
    flood(20, 3, GATE_END, 2, GATE_PERSON);
    cr_assert_eq(running(), 4);
}

Test(gate, classes_take_no_places_from_each_other)
{
    flood(0, 36, GATE_WORK, 0, GATE_PERSON);
    flood(100, 4, GATE_WORK, 1, GATE_PERSON);
    cr_assert_eq(send(200, GATE_END, 2, 0, GATE_TEST_KEY), 0);
    cr_assert(clients[200].runs);
    cr_assert_eq(send(201, GATE_READ, 2, 0, GATE_TEST_KEY), 0);
    cr_assert(clients[201].runs);
}

Test(gate, keys_get_half_of_the_places)
{
    cr_assert_eq(flood(0, 100, GATE_END, 0, GATE_TEST_KEY), 1 + 16, "only one that waits seventeenth is refused");
    cr_assert_eq(running(), 1);
    cr_assert_eq(send(200, GATE_END, 0, 5, GATE_PERSON), 0);
    turn();
    cr_assert(clients[200].runs, "people find a place at once, whatever keys do");
    cr_assert_eq(flood(300, 100, GATE_WORK, 1, GATE_TEST_KEY), 2 + 16);
}

Test(gate, a_better_rank_finds_room_in_a_full_queue)
{
    cr_assert_eq(flood(0, 17, GATE_END, 0, GATE_TEST_KEY), 17);
    cr_assert_eq(send(17, GATE_END, 0, 2, GATE_TEST_KEY), 1);
    for (size_t i = 0; i < 16; i++) {
        cr_assert_eq(send(100 + i, GATE_END, 0, 1, GATE_LIVE_KEY), 0);
        cr_assert(clients[16 - i].is_told && clients[16 - i].told == GATE_LATE, "the last one first");
    }
    cr_assert_gt(send(200, GATE_END, 0, 1, GATE_LIVE_KEY), 0, "none of a lower rank is left");
    cr_assert_eq(send(201, GATE_END, 0, 5, GATE_PERSON), 0);
}

Test(gate, many_accounts_that_wait_to_end_something_refuse_no_other)
{
    size_t n = 0;

    for (int64_t i = 0; i < 20; i++) {
        accounts[1] = id_mint(ID_ACCOUNT, i + 10);
        cr_assert_eq(flood(n, 16, GATE_END, 1, GATE_TEST_KEY), 16);
        n += 16;
    }
    cr_assert_eq(send(n, GATE_END, 2, 0, GATE_TEST_KEY), 0);
}

/* All places of a node are taken by two accounts; a third one's request is the next. */
Test(gate, accounts_run_in_turn)
{
    flood(0, 30, GATE_WORK, 0, GATE_PERSON);
    flood(100, 30, GATE_WORK, 1, GATE_PERSON);
    send(200, GATE_WORK, 2, 0, GATE_TEST_KEY);
    send(201, GATE_WORK, 2, 0, GATE_TEST_KEY);
    turn();
    cr_assert_not(clients[200].runs);
    leave(0);
    leave(1);
    cr_assert(clients[200].runs || clients[201].runs, "not behind all that others have in their queues");
    leave(100);
    leave(101);
    leave(2);
    cr_assert(clients[200].runs && clients[201].runs, "of three places that become free, each account gets one");
}

Test(gate, people_come_before_live_keys_before_test_keys)
{
    flood(0, 4, GATE_WORK, 0, GATE_PERSON);
    send(4, GATE_WORK, 0, 2, GATE_TEST_KEY);
    send(5, GATE_WORK, 0, 1, GATE_LIVE_KEY);
    send(6, GATE_WORK, 0, 0, GATE_PERSON);
    turn();
    for (size_t i = 0; i < 3; i++)
        leave(i);
    cr_assert_str_eq(order, "gfe");
}

Test(gate, principals_of_a_rank_run_in_turn)
{
    flood(0, 4, GATE_WORK, 0, GATE_PERSON);
    for (size_t i = 4; i < 8; i++)
        send(i, GATE_WORK, 0, 1, GATE_PERSON);
    send(8, GATE_WORK, 0, 2, GATE_PERSON);
    turn();
    for (size_t i = 0; i < 3; i++)
        leave(i);
    cr_assert_str_eq(order, "eif");
}

Test(gate, waiting_ends_when_it_takes_too_long)
{
    flood(0, 5, GATE_WORK, 0, GATE_PERSON);
    cr_assert_eq(wake_ms, now_ms + 10 * SECOND);
    now_ms += 10 * SECOND - 1;
    gate_turn(gate, now_ms);
    cr_assert_not(clients[4].is_told);
    now_ms++;
    gate_turn(gate, now_ms);
    cr_assert(clients[4].is_told && clients[4].told == GATE_LATE);
    cr_assert_gt(metric_values[METRIC_GATE_WORK_REFUSED], 0);
}

Test(gate, who_has_gone_holds_neither_place_nor_room)
{
    flood(0, 36, GATE_WORK, 0, GATE_PERSON);
    cr_assert_gt(send(36, GATE_WORK, 0, 0, GATE_PERSON), 0);
    for (size_t i = 4; i < 36; i++)
        clients[i].is_gone = true;
    cr_assert_eq(send(36, GATE_WORK, 0, 0, GATE_PERSON), 0);
    cr_assert(clients[4].is_told && clients[4].told == GATE_CLOSED);
    leave(0);
    cr_assert(clients[36].runs);
}

Test(gate, one_that_is_still_being_read_holds_nothing)
{
    const struct gate_caller test_key = {&accounts[0], &principals[0], GATE_TEST_KEY};
    const struct gate_caller live_key = {&accounts[0], &principals[1], GATE_LIVE_KEY};

    for (size_t i = 0; i < TICKETS; i++)
        cr_assert(gate_has_room(gate, GATE_END, &test_key, now_ms));
    cr_assert_eq(flood(0, 100, GATE_END, 0, GATE_TEST_KEY), 17);
    cr_assert_not(gate_has_room(gate, GATE_END, &test_key, now_ms));
    cr_assert(gate_has_room(gate, GATE_END, &live_key, now_ms), "it gets that of a test key");
    clients[1].is_gone = true;
    cr_assert(gate_has_room(gate, GATE_END, &test_key, now_ms));
}

Test(gate, a_stream_gives_its_place_back_between_two_pieces)
{
    flood(0, 5, GATE_WORK, 0, GATE_PERSON);
    gate_rest(&clients[0].ticket, now_ms);
    turn();
    cr_assert(clients[4].runs);
    cr_assert_not(gate_wait(&clients[0].ticket, now_ms), "it waits for its turn like others");
    now_ms += 29 * SECOND;
    gate_turn(gate, now_ms);
    cr_assert_not(clients[0].is_told, "but longer");
    leave(1);
    cr_assert(clients[0].is_told && clients[0].told == GATE_RUN);
}

Test(gate, tokens_come_back_at_their_rate)
{
    unsigned taken = 0;

    end();
    begin_with(10);
    for (size_t i = 0; i < 30; i++) {
        taken += send(i, GATE_READ, 0, 2, GATE_TEST_KEY) == 0;
        leave(i);
    }
    cr_assert_eq(taken, 20, "twice as many at once");
    cr_assert_eq(send(0, GATE_READ, 0, 2, GATE_TEST_KEY), 1, "a second to wait");
    cr_assert_eq(send(1, GATE_READ, 0, 1, GATE_LIVE_KEY), 0, "live keys have their own");
    cr_assert_eq(send(2, GATE_READ, 0, 0, GATE_PERSON), 0, "and people");
    cr_assert_eq(send(3, GATE_READ, 1, 2, GATE_TEST_KEY), 0, "and other accounts");
    cr_assert_eq(send(4, GATE_WORK, 0, 2, GATE_TEST_KEY), 0, "work costs none");
    now_ms += 100;
    cr_assert_eq(send(5, GATE_READ, 0, 2, GATE_TEST_KEY), 0);
    cr_assert_gt(send(6, GATE_READ, 0, 2, GATE_TEST_KEY), 0);
    now_ms += 1000 * SECOND;
    for (size_t i = 10; i < 30; i++) {
        cr_assert_eq(send(i, GATE_READ, 0, 2, GATE_TEST_KEY), 0);
        leave(i);
    }
    cr_assert_gt(send(30, GATE_READ, 0, 2, GATE_TEST_KEY), 0, "no more than that is saved");
}

/* The leak guard sees that accounts are not kept for ever; this sees that they are not forgotten too early. */
Test(gate, many_accounts_do_not_wash_away_what_one_has_used)
{
    struct id other = accounts[1];

    end();
    begin_with(1);
    cr_assert_eq(send(0, GATE_READ, 0, 0, GATE_PERSON), 0);
    cr_assert_eq(send(1, GATE_READ, 0, 0, GATE_PERSON), 0);
    cr_assert_gt(send(2, GATE_READ, 0, 0, GATE_PERSON), 0);
    leave(0);
    leave(1);
    for (int64_t i = 0; i < 5000; i++) {
        accounts[1] = id_mint(ID_ACCOUNT, i + 10);
        cr_assert_eq(send(3, GATE_READ, 1, 0, GATE_PERSON), 0);
        leave(3);
    }
    cr_assert_gt(send(2, GATE_READ, 0, 0, GATE_PERSON), 0);
    accounts[1] = other;
}

Test(gate, closing_ends_all_waiting)
{
    flood(0, 10, GATE_WORK, 0, GATE_PERSON);
    gate_close(gate);
    for (size_t i = 4; i < 10; i++)
        cr_assert(clients[i].is_told && clients[i].told == GATE_CLOSED);
    gate_rest(&clients[0].ticket, now_ms);
    cr_assert_not(gate_wait(&clients[0].ticket, now_ms));
    turn();
    cr_assert(clients[0].is_told && clients[0].told == GATE_CLOSED);
}

Test(gate, memory_goes_back_when_a_burst_is_over)
{
    flood(0, 3, GATE_END, 0, GATE_PERSON);
    for (size_t i = 0; i < 3; i++)
        leave(i);
    cr_assert_eq(spent, 0);
    now_ms += SECOND;
    gate_turn(gate, now_ms);
    cr_assert_eq(spent, 1);
    now_ms += SECOND;
    gate_turn(gate, now_ms);
    cr_assert_eq(spent, 1, "once");
}
