/* Clients of unmodified libuv and actors on two hosts. */
#include "deadline.h"
#include "net.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(sim_network, .timeout = TEST_WITHIN_S);

Test(sim_network, an_actor_answers_a_client_on_another_host)
{
    uint64_t sent_ns;

    net_begin_connected(1);
    net_echoes = true;
    cr_assert_geq(net_now_ns(), 2 * NET_MS);
    cr_assert_leq(net_now_ns(), 11 * NET_MS);
    sent_ns = net_now_ns();
    net_send(&net_client, "hello", 5);
    NET_RUN_UNTIL(net_client.heard.len == 5);
    cr_assert_arr_eq(net_client.heard.bytes, "hello", 5);
    cr_assert_geq(net_now_ns() - sent_ns, 2 * NET_MS);
    net_end_connected();
}

/* Both ways, and some arrives byte by byte. */
Test(sim_network, bytes_arrive_in_order_and_in_pieces_of_any_size)
{
    size_t sent = 0, returned = 0;

    net_begin_connected(1);
    while (net_heard.len < NET_PATTERN_BYTES || net_client.heard.len < NET_PATTERN_BYTES) {
        const size_t part = 1 + (size_t)sim_draw_below(1500);

        if (sent < NET_PATTERN_BYTES) {
            net_send(&net_client, net_pattern() + sent,
                     part < NET_PATTERN_BYTES - sent ? part : NET_PATTERN_BYTES - sent);
            sent += part < NET_PATTERN_BYTES - sent ? part : NET_PATTERN_BYTES - sent;
        }
        if (returned < NET_PATTERN_BYTES &&
            sim_actor_send(net_accepted, net_pattern() + returned,
                           part < NET_PATTERN_BYTES - returned ? part : NET_PATTERN_BYTES - returned))
            returned += part < NET_PATTERN_BYTES - returned ? part : NET_PATTERN_BYTES - returned;
        net_run_once();
    }
    cr_assert_arr_eq(net_heard.bytes, net_pattern(), NET_PATTERN_BYTES);
    cr_assert_arr_eq(net_client.heard.bytes, net_pattern(), NET_PATTERN_BYTES);
    cr_assert_eq(net_heard.least, 1);
    cr_assert_eq(net_client.heard.least, 1);
    cr_assert_gt(net_heard.most, 1000);
    net_end_connected();
}

Test(sim_network, a_connection_to_a_free_port_is_refused)
{
    net_begin(1);
    net_delay(2 * NET_MS, 2 * NET_MS);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNREFUSED);
    cr_assert_geq(net_now_ns(), 4 * NET_MS);
    net_close(&net_client);
    net_end();
}

Test(sim_network, nobody_answers_at_an_address_without_a_host)
{
    net_begin(1);
    net_connect(&net_client, "10.0.0.3", NET_PORT);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    cr_assert_not(net_client.is_connected);
    net_close(&net_client);
    net_end();
}

/* It knocks again and again. */
Test(sim_network, a_host_without_power_answers_once_it_has_some)
{
    net_begin(1);
    net_listen();
    sim_host_power(net_far, false);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    net_run_for_ms(10 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    cr_assert_eq(net_heard.connected, 0);
    sim_host_power(net_far, true);
    NET_RUN_UNTIL(net_client.is_connected);
    cr_assert_eq(net_heard.connected, 1);
    net_end_connected();
}

/* It was about to answer. */
Test(sim_network, a_host_that_loses_power_while_it_answers_is_asked_again)
{
    net_begin(1);
    sim_link_delay(net_far, net_near, 100 * NET_MS, 100 * NET_MS);
    net_listen();
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_heard.connected == 1);
    sim_host_power(net_far, false);
    net_run_for_ms(1000);
    cr_assert_not(net_client.is_connected);
    sim_host_power(net_far, true);
    NET_RUN_UNTIL(net_client.is_connected);
    cr_assert_eq(net_heard.connected, 2);
    net_end_connected();
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    cr_assert_eq(status, 0);
    *(bool *)request->data = true;
}

static void answer_the_end(struct sim_socket *socket, void *arg)
{
    (void)arg;
    net_heard.ended++;
    cr_assert(sim_actor_send(socket, net_heard.bytes, net_heard.len));
    sim_actor_end(socket);
}

/* The other half brings the answer; then both have ended, and each closes. */
Test(sim_network, half_of_a_connection_goes_on)
{
    struct sim_actor actor = NET_ACTOR;
    struct sim_socket *listener;
    uv_shutdown_t shutdown;
    bool is_shut = false;

    actor.ended = answer_the_end;
    net_begin(1);
    net_delay(1 * NET_MS, 5 * NET_MS);
    listener = sim_actor_listen(net_far, NET_PORT, &actor, NULL);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_client.is_connected);
    net_send(&net_client, net_pattern(), 5000);
    shutdown.data = &is_shut;
    cr_assert_eq(uv_shutdown(&shutdown, (uv_stream_t *)&net_client.tcp, on_shutdown), 0);
    NET_RUN_UNTIL(net_client.heard.ended);
    cr_assert(is_shut);
    cr_assert_eq(net_heard.ended, 1);
    cr_assert_eq(net_client.heard.len, 5000);
    cr_assert_arr_eq(net_client.heard.bytes, net_pattern(), 5000);
    cr_assert_eq(net_heard.closed, 0);
    sim_actor_close(net_accepted);
    net_open--;
    sim_actor_close(listener);
    net_close(&net_client);
    net_end();
}

Test(sim_network, an_actor_breaks_a_connection_with_bytes_on_their_way)
{
    net_begin_connected(1);
    net_send(&net_client, net_pattern(), 1000);
    cr_assert(sim_actor_send(net_accepted, "last", 4));
    sim_actor_break(net_accepted);
    net_open--;
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    cr_assert_eq(net_client.heard.len, 4);
    cr_assert_eq(net_heard.len, 0);
    net_end_connected();
}

/* What it has not read any more is answered by a reset, after the end. */
Test(sim_network, an_actor_closes_with_bytes_on_their_way_to_it)
{
    net_begin_connected(1);
    net_send(&net_client, net_pattern(), 1000);
    net_run_once();
    sim_actor_close(net_accepted);
    net_open--;
    NET_RUN_UNTIL(net_client.heard.ended);
    cr_assert_eq(net_client.heard.error, 0);
    net_run_for_ms(20);
    net_send(&net_client, "x", 1);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert(net_client.heard.error == UV_ECONNRESET || net_client.heard.error == UV_EPIPE);
    net_end_connected();
}

Test(sim_network, a_client_breaks_a_connection_with_bytes_on_their_way)
{
    net_begin_connected(1);
    cr_assert(sim_actor_send(net_accepted, net_pattern(), 1000));
    cr_assert_eq(uv_tcp_close_reset(&net_client.tcp, NULL), 0);
    NET_RUN_UNTIL(net_heard.closed == 1);
    cr_assert_eq(net_open, 0);
    net_end();
}

/* By and by, as it is sent again. */
Test(sim_network, what_was_sent_over_a_cut_link_arrives_once_it_has_healed)
{
    uint64_t healed_ns;

    net_begin_connected(1);
    net_send(&net_client, "before", 6);
    net_cut(true);
    net_send(&net_client, "after", 5);
    cr_assert(sim_actor_send(net_accepted, "answer", 6));
    net_run_for_ms(30 * 1000);
    cr_assert_eq(net_heard.len + net_client.heard.len, 0);
    net_cut(false);
    healed_ns = net_now_ns();
    NET_RUN_UNTIL(net_heard.len > 0 && net_client.heard.len > 0);
    cr_assert_gt(net_now_ns() - healed_ns, 15 * NET_MS);
    cr_assert_leq(net_now_ns() - healed_ns, 211 * NET_MS);
    NET_RUN_UNTIL(net_heard.len == 11 && net_client.heard.len == 6);
    cr_assert_arr_eq(net_heard.bytes, "beforeafter", 11);
    cr_assert_arr_eq(net_client.heard.bytes, "answer", 6);
    net_end_connected();
}

/* One direction: what it asks arrives, and no answer. */
Test(sim_network, a_link_is_cut_in_one_direction)
{
    net_begin_connected(1);
    net_echoes = true;
    sim_link_cut(net_far, net_near, true);
    net_send(&net_client, "ask", 3);
    net_run_for_ms(1000);
    cr_assert_eq(net_heard.len, 3);
    cr_assert_eq(net_client.heard.len, 0);
    sim_link_cut(net_far, net_near, false);
    NET_RUN_UNTIL(net_client.heard.len == 3);
    net_end_connected();
}

/* A reset is said once. Who has not heard it hears of it when he sends. */
Test(sim_network, a_reset_over_a_cut_link_is_lost)
{
    net_begin_connected(1);
    net_cut(true);
    sim_actor_break(net_accepted);
    net_open--;
    net_cut(false);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    net_send(&net_client, "still there?", 12);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    net_end_connected();
}

Test(sim_network, who_loses_power_says_nothing)
{
    net_begin_connected(1);
    sim_host_power(net_far, false);
    cr_assert_eq(net_heard.closed, 1);
    net_run_for_ms(60 * 1000);
    sim_host_power(net_far, true);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    cr_assert_eq(net_client.heard.ended, 0);
    net_send(&net_client, "still there?", 12);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    cr_assert_eq(net_heard.len, 0);
    net_end_connected();
}

/* A process that dies of it, neither. */
Test(sim_network, who_ends_at_the_moment_when_power_goes_says_nothing)
{
    net_begin_connected(1);
    cr_assert(sim_actor_send(net_accepted, "lost", 4));
    sim_actor_close(net_accepted);
    net_open--;
    sim_host_power(net_far, false);
    sim_host_power(net_far, true);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.len, 0);
    cr_assert_eq(net_client.heard.ended, 0);
    cr_assert_eq(net_client.heard.error, 0);
    net_end_connected();
}

/* The client sends it again and again, and hears a reset as soon as somebody can say so. */
Test(sim_network, what_was_on_its_way_to_who_lost_power_is_answered_by_a_reset)
{
    net_begin_connected(1);
    net_send(&net_client, "question", 8);
    net_run_once();
    sim_host_power(net_far, false);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    sim_host_power(net_far, true);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    cr_assert_eq(net_heard.len, 0);
    net_end_connected();
}

Test(sim_network, many_connections_are_answered)
{
    enum { CLIENTS = 300 };
    static struct net_client clients[CLIENTS];
    char name[16];
    unsigned answered;

    net_begin(1);
    net_delay(0, 50 * NET_MS);
    net_listen();
    net_echoes = true;
    for (unsigned i = 0; i < CLIENTS; i++)
        net_connect(&clients[i], "10.0.0.2", NET_PORT);
    do {
        answered = 0;
        net_run_once();
        for (unsigned i = 0; i < CLIENTS; i++) {
            const size_t len = (size_t)snprintf(name, sizeof name, "client %u", i);

            if (clients[i].heard.connected == 1) {
                clients[i].heard.connected++;
                net_send(&clients[i], name, len);
            }
            answered += clients[i].heard.len == len && memcmp(clients[i].heard.bytes, name, len) == 0;
        }
    } while (answered < CLIENTS && net_now_ns() < UINT64_C(60) * 1000 * NET_MS);
    cr_assert_eq(answered, CLIENTS);
    for (unsigned i = 0; i < CLIENTS; i++)
        net_close(&clients[i]);
    NET_RUN_UNTIL(net_open == 0);
    net_end();
}

Test(sim_network, each_connection_between_two_hosts_breaks)
{
    struct net_client second;

    net_begin_connected(1);
    sim_link_delay(net_far, net_near, 100 * NET_MS, 100 * NET_MS);
    net_connect(&second, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_heard.connected == 2);
    /* The second one's answer is still on its way. */
    cr_assert_not(second.is_connected);
    sim_connections_reset(net_near, net_far);
    NET_RUN_UNTIL(net_client.heard.error && second.heard.error && net_open == 0);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    cr_assert_eq(second.heard.error, UV_ECONNREFUSED);
    net_close(&second);
    net_end_connected();
}

Test(sim_network, connections_lag_by_times_of_their_own)
{
    struct net_client second;
    uint64_t late = 0, soon = 0;

    net_begin_connected(1);
    net_echoes = true;
    net_connect(&second, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(second.is_connected);
    for (size_t i = 1; i <= 50; i++) {
        sim_connections_lag(net_far, net_near, 1000 * NET_MS);
        const uint64_t sent_ns = net_now_ns();

        net_send(&net_client, "!", 1);
        net_send(&second, "!", 1);
        NET_RUN_UNTIL(net_client.heard.len == i || second.heard.len == i);
        soon += net_now_ns() - sent_ns <= 20 * NET_MS;
        NET_RUN_UNTIL(net_client.heard.len == i && second.heard.len == i);
        cr_assert_leq(net_now_ns() - sent_ns, 1010 * NET_MS);
        late += net_now_ns() - sent_ns > 20 * NET_MS;
    }
    cr_assert_gt(late, 10);
    cr_assert_gt(soon, 10);
    net_close(&second);
    NET_RUN_UNTIL(net_open == 1);
    net_end_connected();
}

Test(sim_network, what_lags_arrives_soon_once_nothing_lags)
{
    size_t sent = 0;

    net_begin_connected(1);
    net_echoes = true;
    sim_connections_lag(net_far, net_near, UINT64_C(3600) * 1000 * NET_MS);
    while (net_client.heard.len == sent && sent < 50) {
        sim_connections_lag(net_far, net_near, UINT64_C(3600) * 1000 * NET_MS);
        net_send(&net_client, "!", 1);
        sent++;
        net_run_for_ms(20);
    }
    cr_assert_lt(net_client.heard.len, sent);
    sim_connections_lag(net_far, net_near, 0);
    net_run_for_ms(210);
    cr_assert_eq(net_client.heard.len, sent);
    net_end_connected();
}

Test(sim_network, one_connection_between_two_hosts_breaks)
{
    struct net_client second;

    net_begin_connected(1);
    net_connect(&second, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(second.is_connected);
    sim_connection_reset(net_near, net_far);
    NET_RUN_UNTIL(net_open == 1);
    net_run_for_ms(100);
    cr_assert_eq((net_client.heard.error == UV_ECONNRESET) + (second.heard.error == UV_ECONNRESET), 1);
    sim_connection_reset(net_near, net_far);
    NET_RUN_UNTIL(net_open == 0);
    net_run_for_ms(100);
    cr_assert_eq((net_client.heard.error == UV_ECONNRESET) + (second.heard.error == UV_ECONNRESET), 2);
    sim_connection_reset(net_near, net_far);
    net_close(&second);
    net_end_connected();
}

static void on_second_timer(uv_timer_t *timer)
{
    *(uint64_t *)timer->data = net_now_ns();
}

/* When a timer of 1,000 s runs off, and what the clock of the host says then. */
static void time_at_pace(int64_t ppm, uint64_t *ret_ran_ns, uint64_t *ret_clock_ns)
{
    uint64_t ran_ns = 0, before_ns;
    uv_timer_t timer;

    net_begin(1);
    net_run_for_ms(500 * 1000);
    before_ns = uv_hrtime();
    sim_host_pace(net_near, ppm);
    cr_assert_lt(uv_hrtime() - before_ns, 10 * 1000); /* it does not jump */
    uv_update_time(&net_loop);
    uv_timer_init(&net_loop, &timer);
    timer.data = &ran_ns;
    uv_timer_start(&timer, on_second_timer, 1000 * 1000, 0);
    NET_RUN_UNTIL(ran_ns > 0);
    *ret_ran_ns = ran_ns - UINT64_C(500) * 1000 * NET_MS;
    *ret_clock_ns = uv_hrtime() - before_ns;
    uv_close((uv_handle_t *)&timer, NULL);
    net_end();
}

Test(sim_network, a_host_has_clocks_of_its_own_pace)
{
    uint64_t ran_ns, clock_ns;

    time_at_pace(100 * 1000, &ran_ns, &clock_ns); /* 10 % fast */
    cr_assert_float_eq((double)ran_ns, 1000e9 / 1.1, 1e9);
    cr_assert_float_eq((double)clock_ns, 1000e9, 1e9);
    time_at_pace(-100 * 1000, &ran_ns, &clock_ns);
    cr_assert_float_eq((double)ran_ns, 1000e9 / 0.9, 1e9);
    cr_assert_float_eq((double)clock_ns, 1000e9, 1e9);
}

/* What arrived when, of a client and an actor that both send now and then. */
static size_t take_trace(uint64_t seed, char *ret_trace, size_t room)
{
    size_t len = 0, before = 0;

    net_heard = (struct heard){0};
    net_begin_connected(seed);
    net_echoes = true;
    for (unsigned i = 0; i < 50; i++) {
        net_send(&net_client, net_pattern(), 1 + (size_t)sim_draw_below(3000));
        net_run_for_ms(sim_draw_below(4));
        if (net_client.heard.len + net_heard.len != before)
            len += (size_t)snprintf(ret_trace + len, room - len, "%lu: %zu, %zu\n", (unsigned long)net_now_ns(),
                                    net_heard.len, net_client.heard.len);
        before = net_client.heard.len + net_heard.len;
    }
    net_end_connected();
    return len;
}

Test(sim_network, a_seed_repeats_a_run)
{
    static char first[8192], again[8192], other[8192];

    cr_assert_gt(take_trace(5, first, sizeof first), 100);
    take_trace(5, again, sizeof again);
    take_trace(6, other, sizeof other);
    cr_assert_str_eq(first, again);
    cr_assert_str_neq(first, other);
}
