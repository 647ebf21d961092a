#include "tls_peer.h"

#include "certificates.h"
#include "test_loop.h"
#include "tls/session.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct tls_context *server, *client;

bool tls_peer_is_wanted, tls_peer_has_certificate;

bool tls_peer_is_on(void)
{
    return tls_peer_is_wanted || getenv("CHATELAINE_TEST_TLS");
}

void tls_peer_skip(const char *why)
{
    if (tls_peer_is_on())
        cr_skip_test("%s", why);
}

static void make_contexts(void)
{
    struct certificate own;
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    certificate_make(&own, &(struct certificate_wish){.name = "server", .names = "DNS:localhost"});
    const struct tls_pair pair = {{"--cert", text_of(own.pem)}, {"--key", text_of(own.key_pem)}};
    const struct tls_pem trusted = {"--ca", text_of(own.pem)};
    const struct tls_server_settings server_settings = {
        .pairs = &pair,
        .pair_count = 1,
        .client_ca = tls_peer_has_certificate ? trusted : (struct tls_pem){0},
        .service = TEXT("test"),
    };
    const struct tls_client_settings client_settings = {.ca = trusted, .pair = tls_peer_has_certificate ? &pair : NULL};

    server = tls_context_create_server(&server_settings, &why);
    client = tls_context_create_client(&client_settings, &why);
    cr_assert(server && client, "%.*s", TEXT_ARG(buf_text(&why)));
    certificate_free(&own);
}

struct tls_context *tls_peer_server_context(void)
{
    if (!server)
        make_contexts();
    return server;
}

struct tls_context *tls_peer_client_context(void)
{
    if (!client)
        make_contexts();
    return client;
}

void tls_peer_forget_contexts(void)
{
    tls_context_release(server);
    tls_context_release(client);
    server = client = NULL;
}

static void send_records(const struct peer *peer, struct text records)
{
    if (records.len > 0)
        (void)send(peer->fd, records.ptr, records.len, MSG_NOSIGNAL);
}

void tls_peer_take(struct peer *peer, const char *bytes, size_t count)
{
    struct buf plain, out;

    buf_init(&plain, PEER_INPUT_BYTES);
    buf_init(&out, PEER_INPUT_BYTES);
    (void)tls_receive(peer->tls, (struct text){bytes, count}, &plain, &out);
    cr_assert_lt(peer->bytes + plain.len, PEER_INPUT_BYTES);
    memcpy(peer->input + peer->bytes, plain.ptr ? plain.ptr : "", plain.len);
    peer->bytes += plain.len;
    peer->input[peer->bytes] = '\0';
    send_records(peer, buf_text(&out));
    buf_finish(&plain);
    buf_finish(&out);
}

static bool is_settled(void *arg)
{
    const struct peer *peer = arg;

    return peer->is_ended || tls_session_state(peer->tls) != TLS_HANDSHAKING;
}

void tls_peer_begin(struct peer *peer, struct buf *ret_records)
{
    int on = 1;

    /* A request directly behind the handshake would wait for an acknowledgement (Nagle). */
    (void)setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peer->tls = tls_session_connect(tls_peer_client_context(), "localhost");
    (void)tls_receive(peer->tls, (struct text){NULL, 0}, ret_records, ret_records);
}

bool tls_peer_is_open(struct peer *peer)
{
    return test_loop_until(&peer->fixture->loop, is_settled, peer, FIXTURE_TIMEOUT_MS) && !peer->is_ended;
}

void tls_peer_open(struct peer *peer)
{
    struct buf records;

    buf_init(&records, PEER_INPUT_BYTES);
    tls_peer_begin(peer, &records);
    send_records(peer, buf_text(&records));
    buf_finish(&records);
    cr_assert(test_loop_until(&peer->fixture->loop, is_settled, peer, FIXTURE_TIMEOUT_MS));
}

bool tls_peer_seal(struct peer *peer, const char *bytes, size_t count, struct buf *ret_records)
{
    return tls_session_state(peer->tls) == TLS_OPEN && tls_send(peer->tls, (struct text){bytes, count}, ret_records);
}

void tls_peer_end(struct peer *peer)
{
    struct buf out;

    buf_init(&out, PEER_INPUT_BYTES);
    tls_end(peer->tls, &out);
    send_records(peer, buf_text(&out));
    buf_finish(&out);
}
