#include "pair_of_peers.h"

#include <criterion/criterion.h>

enum { BUFFER_MAX_BYTES = 4 * 1024 * 1024 };

const struct certificate *test_ca(void)
{
    static struct certificate ca;

    if (!ca.pem)
        certificate_make(&ca, &(struct certificate_wish){.name = "Test CA", .is_ca = true});
    return &ca;
}

const struct certificate *test_server_certificate(void)
{
    static struct certificate server;

    if (!server.pem)
        certificate_make(&server, &(struct certificate_wish){
                                      .name = "server", .names = "DNS:localhost,IP:127.0.0.1", .issuer = test_ca()});
    return &server;
}

struct tls_context *server_with(const struct certificate *certificate)
{
    const struct tls_pair pair = {{"--cert c", text_of(certificate->pem)}, {"--key k", text_of(certificate->key_pem)}};
    const struct tls_server_settings settings = {.pairs = &pair, .pair_count = 1, .service = TEXT("test")};
    char storage[512];
    struct buf why;
    struct tls_context *context;

    buf_init_fixed(&why, storage, sizeof storage);
    context = tls_context_create_server(&settings, &why);
    cr_assert(context, "%.*s", TEXT_ARG(buf_text(&why)));
    return context;
}

struct tls_context *client_of(const struct certificate *ca)
{
    const struct tls_client_settings settings = {.ca = {"--ca a", text_of(ca->pem)}};
    char storage[512];
    struct buf why;
    struct tls_context *context;

    buf_init_fixed(&why, storage, sizeof storage);
    context = tls_context_create_client(&settings, &why);
    cr_assert(context, "%.*s", TEXT_ARG(buf_text(&why)));
    return context;
}

static void side_open(struct side *side, struct tls_session *session)
{
    side->session = session;
    buf_init(&side->out, BUFFER_MAX_BYTES);
    buf_init(&side->plain, BUFFER_MAX_BYTES);
}

static void side_close(struct side *side)
{
    tls_session_free(side->session);
    buf_wipe(&side->out);
    buf_wipe(&side->plain);
}

void peers_prepare(struct peers *peers, struct tls_context *server, struct tls_context *client, const char *host)
{
    side_open(&peers->server, tls_session_accept(server));
    side_open(&peers->client, tls_session_connect(client, host));
}

void peers_open(struct peers *peers, struct tls_context *server, struct tls_context *client, const char *host)
{
    peers_prepare(peers, server, client, host);
    peers_begin(peers);
}

void peers_begin(struct peers *peers)
{
    (void)tls_receive(peers->client.session, (struct text){NULL, 0}, &peers->client.plain, &peers->client.out);
}

static void carry(struct side *from, struct side *to)
{
    struct buf bytes = from->out;

    buf_init(&from->out, BUFFER_MAX_BYTES);
    (void)tls_receive(to->session, buf_text(&bytes), &to->plain, &to->out);
    buf_finish(&bytes);
}

void peers_talk(struct peers *peers)
{
    while (peers->client.out.len > 0 || peers->server.out.len > 0) {
        if (peers->client.out.len > 0)
            carry(&peers->client, &peers->server);
        if (peers->server.out.len > 0)
            carry(&peers->server, &peers->client);
    }
}

void peers_close(struct peers *peers)
{
    side_close(&peers->server);
    side_close(&peers->client);
}

bool peers_are_open(const struct peers *peers)
{
    return tls_session_state(peers->server.session) == TLS_OPEN && tls_session_state(peers->client.session) == TLS_OPEN;
}

static void check_one_way(struct peers *peers, struct side *from, struct side *to, struct text text)
{
    buf_clear(&to->plain);
    cr_assert(tls_send(from->session, text, &from->out));
    peers_talk(peers);
    cr_assert(text_equal(buf_text(&to->plain), text));
}

void peers_check_both_ways(struct peers *peers)
{
    check_one_way(peers, &peers->client, &peers->server, TEXT("a question"));
    check_one_way(peers, &peers->server, &peers->client, TEXT("an answer"));
}
