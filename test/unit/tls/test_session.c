/* A connection in memory: bytes in any pieces, ends, failures. */
#include "pair_of_peers.h"

#include "base/mem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct tls_context *server, *client;
static struct peers peers;

static void open_peers(void)
{
    server = server_with(test_server_certificate());
    client = client_of(test_ca());
    peers_open(&peers, server, client, "localhost");
}

static void close_peers(void)
{
    peers_close(&peers);
    tls_context_release(server);
    tls_context_release(client);
}

TestSuite(session, .init = open_peers, .fini = close_peers);

Test(session, talks_both_ways)
{
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers));
    peers_check_both_ways(&peers);
}

Test(session, an_address_is_a_name)
{
    struct peers by_address;

    peers_open(&by_address, server, client, "127.0.0.1");
    peers_talk(&by_address);
    cr_assert(peers_are_open(&by_address));
    peers_close(&by_address);
}

Test(session, bytes_may_arrive_one_by_one)
{
    struct side *to = &peers.server;
    struct buf flight = peers.client.out;

    for (size_t i = 0; i < flight.len; i++) {
        cr_assert_eq(tls_session_state(to->session), TLS_HANDSHAKING);
        (void)tls_receive(to->session, (struct text){flight.ptr + i, 1}, &to->plain, &to->out);
    }
    buf_clear(&flight);
    peers.client.out = flight;
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers));
}

Test(session, many_records_arrive_at_once)
{
    enum { BYTES = 100 * 1000 };
    char *bytes = mem_alloc(BYTES);

    memset(bytes, 'x', BYTES);
    peers_talk(&peers);
    cr_assert(tls_send(peers.server.session, (struct text){bytes, BYTES}, &peers.server.out));
    peers_talk(&peers);
    cr_assert(text_equal(buf_text(&peers.client.plain), (struct text){bytes, BYTES}));
    free(bytes);
}

Test(session, part_of_a_record_is_held_and_counted)
{
    struct buf *out = &peers.client.out;
    struct side *to = &peers.server;

    peers_talk(&peers);
    cr_assert_eq(tls_session_held_bytes(to->session), 0);
    cr_assert(tls_send(peers.client.session, TEXT("a question"), out));
    cr_assert_eq(tls_receive(to->session, (struct text){out->ptr, 7}, &to->plain, &to->out), TLS_OPEN);
    cr_assert_eq(to->plain.len, 0);
    cr_assert_gt(tls_session_held_bytes(to->session), TLS_RECORD_BYTES);
    buf_consume(out, 7);
    peers_talk(&peers);
    cr_assert(text_equal(buf_text(&to->plain), TEXT("a question")));
    cr_assert_eq(tls_session_held_bytes(to->session), 0);
}

Test(session, an_end_is_told)
{
    peers_talk(&peers);
    cr_assert(tls_send(peers.client.session, TEXT("the last"), &peers.client.out));
    tls_end(peers.client.session, &peers.client.out);
    tls_end(peers.client.session, &peers.client.out);
    peers_talk(&peers);
    cr_assert_eq(tls_session_state(peers.server.session), TLS_ENDED);
    cr_assert(text_equal(buf_text(&peers.server.plain), TEXT("the last")));
    /* The other direction is still open (RFC 8446, section 6.1). */
    cr_assert(tls_send(peers.server.session, TEXT("an answer"), &peers.server.out));
    peers_talk(&peers);
    cr_assert(text_equal(buf_text(&peers.client.plain), TEXT("an answer")));
}

Test(session, an_altered_record_fails_it)
{
    peers_talk(&peers);
    cr_assert(tls_send(peers.client.session, TEXT("a question"), &peers.client.out));
    peers.client.out.ptr[peers.client.out.len - 1] ^= 1;
    peers_talk(&peers);
    cr_assert_eq(tls_session_state(peers.server.session), TLS_FAILED);
    cr_assert_eq(peers.server.plain.len, 0);
    cr_assert_gt(strlen(tls_session_reason(peers.server.session)), 0);
    /* An alert has told the client. */
    cr_assert_eq(tls_session_state(peers.client.session), TLS_FAILED);
}

Test(session, what_is_no_TLS_fails)
{
    struct side *to = &peers.server;

    cr_assert_eq(tls_receive(to->session, TEXT("\x17\x03\x01\x00\x05hello"), &to->plain, &to->out), TLS_FAILED);
}

Test(session, outlives_the_holder_of_its_context)
{
    tls_context_release(server);
    tls_context_release(client);
    peers_talk(&peers);
    peers_check_both_ways(&peers);
    server = client = NULL;
}
