/* Whether a peer has received its response. */
#include "leak_guard.h"
#include "one_peer.h"
#include "test_loop.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

TestSuite(http_delivery, .fini = leak_guard);

Test(http_delivery, tells_that_an_answer_was_delivered)
{
    start();
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    cr_assert(peer_gets(&peer, "Location: /made/1\r\n"));
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"), "the next request is answered after");
    finish();
}

Test(http_delivery, tells_that_an_answer_was_not_delivered_to_a_client_that_reset)
{
    start();
    peer_send_str(&peer, "GET /held-made HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    peer_reset(&peer);
    cr_assert(fixture_until_connections(&fixture, 0));
    fixture_answer_held(&fixture);
    cr_assert_eq(fixture.told, TOLD_NOTHING, "told within the call");
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

/* Clients with SO_LINGER 0 close like this, and so do some proxies. The connection has been used before, because only
 * then kernels delay acknowledgements. */
static void reset_behind_an_answer(unsigned wait_ms)
{
    start();
    peer_send_str(&peer, HELLO);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
    cr_assert(peer_gets(&peer, "\r\n\r\nsecret"));
    if (wait_ms)
        test_loop_for(&fixture.loop, wait_ms);
    peer_reset(&peer);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    fixture_finish(&fixture);
}

Test(http_delivery, an_answer_that_was_read_is_delivered_though_a_reset_follows_at_once)
{
    for (int i = 0; i < 200; i++)
        reset_behind_an_answer(0);
}

Test(http_delivery, an_answer_that_was_read_is_delivered_though_a_reset_follows)
{
    for (int i = 0; i < 200; i++)
        reset_behind_an_answer(5);
}

Test(http_delivery, an_answer_of_which_a_part_was_acknowledged_is_not_delivered)
{
    start();
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /made?10000000 HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 30);
    cr_assert_eq(fixture.told, TOLD_NOTHING);
    peer_reset(&peer);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

Test(http_delivery, tells_that_an_answer_was_not_delivered_to_a_client_that_closed)
{
    start();
    peer_send_str(&peer, "GET /held-made HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
    peer_close(&peer);
    test_loop_for(&fixture.loop, 20);
    cr_assert_not(http_request_gone(fixture.held), "an end of file is not yet an end");
    fixture_answer_held(&fixture);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_NOT_DELIVERED);
    fixture_finish(&fixture);
}

/* On a Unix socket, the only acknowledgement is that everything was read, and the only reset is one after unread
 * bytes. */
Test(http_delivery, tells_what_was_delivered_to_a_unix_socket_that_is_closed)
{
    static const enum told TOLD[] = {TOLD_NOT_DELIVERED, TOLD_DELIVERED};
    struct http_settings settings = fixture_settings();
    char path[] = "/tmp/http-test-XXXXXX", address[64];

    cr_assert(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    for (size_t reads = 0; reads < 2; reads++) {
        fixture_start(&fixture, &settings, address);
        peer_connect(&peer, &fixture);
        peer_pause(&peer, !reads);
        peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
        if (reads)
            cr_assert(peer_gets(&peer, "secret"));
        else
            test_loop_for(&fixture.loop, 20);
        peer_close(&peer);
        cr_assert(fixture_until(&fixture, is_told, &fixture));
        cr_assert_eq(fixture.told, TOLD[reads]);
        fixture_finish(&fixture);
    }
    rmdir(path);
}

/* On a Unix socket, a response counts as delivered when it is read, so a client that does not read can be tested. */
Test(http_delivery, waits_for_the_delivery_and_only_then_goes_on)
{
    struct http_settings settings = fixture_settings();
    char path[] = "/tmp/http-test-XXXXXX", address[64];

    cr_assert(mkdtemp(path));
    snprintf(address, sizeof address, "unix:%s/s", path);
    fixture_start(&fixture, &settings, address);
    peer_connect(&peer, &fixture);
    peer_pause(&peer, true);
    peer_send_str(&peer, "GET /made HTTP/1.1\r\nHost: t\r\n\r\n");
    test_loop_for(&fixture.loop, 30);
    peer_send_str(&peer, HELLO);
    test_loop_for(&fixture.loop, 30);
    cr_assert_eq(fixture.told, TOLD_NOTHING);
    cr_assert_eq(fixture.handled, 1);
    peer_pause(&peer, false);
    cr_assert(fixture_until(&fixture, is_told, &fixture));
    cr_assert_eq(fixture.told, TOLD_DELIVERED);
    cr_assert(peer_gets(&peer, "\r\n\r\nhi"));
    finish();
    rmdir(path);
}
