/* How long a connection waits for a peer that does not answer. */
#include "deadline.h"
#include "net.h"
#include <criterion/criterion.h>

TestSuite(sim_patience, .timeout = TEST_WITHIN_S);

enum { KEEPALIVE_S = 60 };

static uint64_t net_now_s(void)
{
    return net_now_ns() / (1000 * NET_MS);
}

Test(sim_patience, a_connection_to_nobody_is_given_up)
{
    net_begin(1);
    net_connect(&net_client, "10.0.0.3", NET_PORT);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ETIMEDOUT);
    cr_assert_eq(net_now_s(), 127);
    net_end_connected();
}

/* The listener has answered, so it has a connection of which it hears no more. */
Test(sim_patience, a_welcome_that_does_not_arrive_is_given_up)
{
    net_begin(1);
    net_listen();
    sim_link_cut(net_far, net_near, true);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ETIMEDOUT);
    cr_assert_eq(net_now_s(), 127);
    cr_assert_eq(net_heard.connected, 1);
    cr_assert(sim_actor_send(net_accepted, "hello", 5));
    sim_link_cut(net_far, net_near, false);
    NET_RUN_UNTIL(net_heard.closed == 1);
    net_end_connected();
}

/* Both sides have sent: each gives up for itself. */
Test(sim_patience, bytes_that_nobody_acknowledges_are_given_up)
{
    net_begin_connected(1);
    net_cut(true);
    net_send(&net_client, "x", 1);
    cr_assert(sim_actor_send(net_accepted, "y", 1));
    net_run_for_ms(900 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    cr_assert_eq(net_heard.closed, 0);
    NET_RUN_UNTIL(net_client.heard.error && net_heard.closed);
    cr_assert_eq(net_client.heard.error, UV_ETIMEDOUT);
    cr_assert_eq(net_now_s(), 924);
    cr_assert_eq(net_client.heard.len + net_heard.len, 0);
    net_end_connected();
}

/* The one gives up; the other, which has sent nothing, hears of it when it does. */
Test(sim_patience, who_is_given_up_hears_a_reset_when_it_sends)
{
    net_begin_connected(1);
    net_cut(true);
    cr_assert(sim_actor_send(net_accepted, "y", 1));
    NET_RUN_UNTIL(net_heard.closed);
    net_cut(false);
    net_run_for_ms(60 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    cr_assert_eq(net_client.heard.len, 0);
    net_send(&net_client, "x", 1);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    net_end_connected();
}

Test(sim_patience, what_was_acknowledged_does_not_count)
{
    net_begin_connected(1);
    net_send(&net_client, "x", 1);
    net_run_for_ms(900 * 1000);
    net_cut(true);
    net_send(&net_client, "y", 1);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ETIMEDOUT);
    cr_assert_eq(net_now_s(), 900 + 924);
    net_cut(false);
    cr_assert(sim_actor_send(net_accepted, "z", 1));
    net_end_connected();
}

Test(sim_patience, a_link_that_heals_in_time_loses_nothing)
{
    net_begin_connected(1);
    net_echoes = true;
    net_cut(true);
    net_send(&net_client, "x", 1);
    net_run_for_ms(900 * 1000);
    net_cut(false);
    NET_RUN_UNTIL(net_client.heard.len == 1);
    net_run_for_ms(2000 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    net_end_connected();
}

/* libuv asks each second, ten times, or leaves that to the system: nine times, every 75 s. */
Test(sim_patience, who_keeps_a_connection_alive_learns_that_it_is_not)
{
    net_begin_connected(1);
    cr_assert_eq(uv_tcp_keepalive(&net_client.tcp, 1, KEEPALIVE_S), 0);
    net_run_for_ms(3000 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    net_cut(true);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ETIMEDOUT);
    cr_assert_leq(net_now_s(), 3000 + KEEPALIVE_S + 9 * 75);
    /* The other side has not. */
    cr_assert_eq(net_heard.closed, 0);
    net_cut(false);
    cr_assert(sim_actor_send(net_accepted, "y", 1));
    net_end_connected();
}

Test(sim_patience, who_does_not_learns_nothing)
{
    net_begin_connected(1);
    net_cut(true);
    net_run_for_ms(10000 * 1000);
    cr_assert_eq(net_client.heard.error, 0);
    net_cut(false);
    net_end_connected();
}

Test(sim_patience, who_keeps_a_connection_alive_learns_that_the_peer_was_off)
{
    net_begin_connected(1);
    cr_assert_eq(uv_tcp_keepalive(&net_client.tcp, 1, KEEPALIVE_S), 0);
    sim_host_power(net_far, false);
    net_run_for_ms(10 * 1000);
    sim_host_power(net_far, true);
    NET_RUN_UNTIL(net_client.heard.error);
    cr_assert_eq(net_client.heard.error, UV_ECONNRESET);
    cr_assert_leq(net_now_s(), KEEPALIVE_S + 1);
    net_end_connected();
}
