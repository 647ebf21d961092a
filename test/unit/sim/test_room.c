/* Senders that have to wait for room. */
#include "deadline.h"
#include "net.h"
#include <criterion/criterion.h>

TestSuite(sim_room, .timeout = TEST_WITHIN_S);

Test(sim_room, a_sender_waits_for_who_does_not_read)
{
    size_t sent = 0;
    uv_buf_t buf;
    int taken;

    net_begin_connected(1);
    sim_actor_hold(net_accepted, true);
    for (;;) {
        buf = uv_buf_init((char *)(uintptr_t)net_pattern() + sent % 1024, 1000);
        taken = uv_try_write((uv_stream_t *)&net_client.tcp, &buf, 1);
        if (taken <= 0)
            break;
        sent += (size_t)taken;
    }
    cr_assert_eq(taken, UV_EAGAIN);
    net_send(&net_client, net_pattern(), 1000);
    net_run_for_ms(1000);
    cr_assert_eq(net_heard.len, 0);
    cr_assert_eq(uv_stream_get_write_queue_size((uv_stream_t *)&net_client.tcp), 1000);
    sim_actor_hold(net_accepted, false);
    NET_RUN_UNTIL(net_heard.len == sent + 1000);
    cr_assert_arr_eq(net_heard.bytes + sent, net_pattern(), 1000);
    net_end_connected();
}

/* The end comes after what waits, a reset at once. */
Test(sim_room, who_does_not_read_hears_of_the_end_when_he_does)
{
    net_begin_connected(1);
    sim_actor_hold(net_accepted, true);
    net_send(&net_client, "last", 4);
    net_close(&net_client);
    net_run_for_ms(1000);
    cr_assert_eq(net_heard.closed, 0);
    sim_actor_hold(net_accepted, false);
    NET_RUN_UNTIL(net_heard.closed);
    cr_assert_arr_eq(net_heard.bytes, "last", 4);
    net_end();
}

static size_t actor_sent;

static void go_on(struct sim_socket *socket, void *arg)
{
    (void)arg;
    while (actor_sent < NET_BYTES_MAX / 2 && sim_actor_send(socket, net_pattern() + actor_sent % 1024, 1024))
        actor_sent += 1024;
}

/* A client that stops reading, and begins again. */
Test(sim_room, an_actor_is_told_when_there_is_room)
{
    struct sim_actor actor = NET_ACTOR;
    struct sim_socket *listener;

    actor.has_room = go_on;
    net_begin(1);
    net_delay(1 * NET_MS, 5 * NET_MS);
    listener = sim_actor_listen(net_far, NET_PORT, &actor, NULL);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    NET_RUN_UNTIL(net_client.is_connected);
    go_on(net_accepted, NULL);
    cr_assert_lt(actor_sent, NET_BYTES_MAX / 2);
    NET_RUN_UNTIL(net_client.heard.len == NET_BYTES_MAX / 2);
    sim_actor_close(listener);
    net_end_connected();
}

static void send_more(struct sim_socket *socket, void *arg)
{
    (void)arg;
    actor_sent += sim_actor_send_some(socket, net_pattern() + actor_sent, NET_PATTERN_BYTES - actor_sent);
}

/* More than a peer has room for at once. */
Test(sim_room, an_actor_sends_as_much_as_there_is_room_for)
{
    struct sim_actor actor = NET_ACTOR;
    struct sim_socket *listener;
    int room = 4096;

    actor.has_room = send_more;
    net_begin(1);
    listener = sim_actor_listen(net_far, NET_PORT, &actor, NULL);
    net_connect(&net_client, "10.0.0.2", NET_PORT);
    cr_assert_eq(uv_recv_buffer_size((uv_handle_t *)&net_client.tcp, &room), 0);
    NET_RUN_UNTIL(net_client.is_connected);
    send_more(net_accepted, NULL);
    cr_assert_eq(actor_sent, 8192);
    NET_RUN_UNTIL(net_client.heard.len == NET_PATTERN_BYTES);
    cr_assert_arr_eq(net_client.heard.bytes, net_pattern(), NET_PATTERN_BYTES);
    sim_actor_close(listener);
    net_end_connected();
}
