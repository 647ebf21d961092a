/* States of a connection that may not follow each other. */
#include "base/machine.h"
#include "http/conn_parts_internal.h"
#include "http/request_internal.h"

#include "leak_guard.h"
#include "one_peer.h"

#include <criterion/criterion.h>
#include <signal.h>

TestSuite(http_moves, .fini = leak_guard);

static void hold_one(void)
{
    start();
    peer_send_str(&peer, "GET /hold HTTP/1.1\r\nHost: t\r\n\r\n");
    fixture_run_until_held(&fixture);
}

Test(http_moves, a_forbidden_move_ends_the_process, .signal = SIGABRT)
{
    hold_one();
    conn_enter(fixture.held->conn, CONN_PROXY);
}

Test(http_moves, after_its_end_a_connection_does_not_move, .signal = SIGABRT)
{
    struct conn *conn;

    hold_one();
    conn = fixture.held->conn;
    conn_disconnect(conn);
    conn_enter(conn, CONN_IDLE);
}

Test(http_moves, in_a_release_a_forbidden_move_ends_the_connection_without_an_answer)
{
    struct peer other;

    machine_set_fatal(false);
    hold_one();
    conn_enter(fixture.held->conn, CONN_PROXY);
    fixture_answer_held(&fixture);
    cr_assert(peer_is_ended(&peer));
    cr_assert_eq(peer.bytes, 0, "%s", peer.input);
    peer_connect(&other, &fixture);
    peer_send_str(&other, HELLO);
    cr_assert(peer_gets(&other, "200 OK"));
    peer_close(&other);
    finish();
}

/* It may be the rest of a body. */
Test(http_moves, in_a_release_nothing_is_read_after_a_forbidden_move)
{
    struct conn *conn;

    machine_set_fatal(false);
    start();
    peer_send_at_once(&peer, "GET /hold HTTP/1.1\r\nHost: t\r\n\r\n" HELLO);
    fixture_run_until_held(&fixture);
    conn = fixture.held->conn;
    cr_assert_gt(conn->stash.len, 0, "what follows waits");
    conn_enter(conn, CONN_PROXY);
    conn_enter(conn, CONN_IDLE);
    conn_resume(&conn->in_ready);
    fixture_answer_held(&fixture);
    cr_assert(peer_is_ended(&peer));
    cr_expect_eq(fixture.handled, 1);
    cr_expect_eq(peer.bytes, 0, "%s", peer.input);
    finish();
}

Test(http_moves, in_a_release_a_connection_stays_closed)
{
    struct conn *conn;

    machine_set_fatal(false);
    hold_one();
    conn = fixture.held->conn;
    conn_disconnect(conn);
    conn_enter(conn, CONN_IDLE);
    cr_assert_eq(conn->state, CONN_CLOSED);
    cr_assert(peer_is_ended(&peer));
    fixture_answer_held(&fixture);
    finish();
}
