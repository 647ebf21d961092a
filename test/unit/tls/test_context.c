/* Which certificates are taken, which a client gets, whom a client trusts, and what is resumed. */
#include "base/clock.h"
#include "pair_of_peers.h"

#include <criterion/criterion.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <string.h>

#include "tls/session_internal.h"

static struct tls_pair pair_of(const struct certificate *certificate)
{
    return (struct tls_pair){{"--cert c.pem", text_of(certificate->pem)},
                             {"--key k.pem", text_of(certificate->key_pem)}};
}

/* Checks that the pair is refused, with a sentence that contains the phrase. */
static void check_refused(const struct tls_pair *pair, const char *phrase)
{
    const struct tls_server_settings settings = {.pairs = pair, .pair_count = 1, .service = TEXT("test")};
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage - 1);
    cr_assert_null(tls_context_create_server(&settings, &why));
    storage[why.len] = '\0';
    cr_assert(strstr(storage, phrase), "\"%s\" does not say \"%s\"", storage, phrase);
}

static void check_wish_refused(const struct certificate_wish *wish, const char *phrase)
{
    struct certificate certificate;
    struct tls_pair pair;

    certificate_make(&certificate, wish);
    pair = pair_of(&certificate);
    check_refused(&pair, phrase);
    certificate_free(&certificate);
}

/* Clients decide whether they want such a certificate; a server that refuses to start serves nobody. */
static void check_outdated(const struct certificate_wish *wish, const char *phrase)
{
    struct certificate certificate;
    struct tls_pair pair;
    const struct tls_server_settings server = {.pairs = &pair, .pair_count = 1, .service = TEXT("test")};
    const struct tls_client_settings client = {.pair = &pair};
    struct tls_context *context;
    char storage[512];
    struct buf why;

    certificate_make(&certificate, wish);
    pair = pair_of(&certificate);
    buf_init_fixed(&why, storage, sizeof storage - 1);
    context = tls_context_create_server(&server, &why);
    cr_assert(context);
    cr_expect(tls_context_outdated(context) && strstr(tls_context_outdated(context), phrase));
    tls_context_release(context);
    cr_expect_eq(why.len, 0);
    cr_expect_null(tls_context_create_client(&client, &why), "a client that identifies itself needs a valid one");
    storage[why.len] = '\0';
    cr_expect(strstr(storage, phrase), "%s", storage);
    certificate_free(&certificate);
}

Test(context, tells_that_a_certificate_is_out_of_date)
{
    struct certificate valid;
    struct tls_pair pair;
    struct tls_context *context;

    check_outdated(&(struct certificate_wish){.name = "old", .from_days = -9, .to_days = -1},
                   "--cert c.pem: the certificate expired at 20");
    check_outdated(&(struct certificate_wish){.name = "early", .from_days = 1, .to_days = 9},
                   "--cert c.pem: the certificate is not valid before 20");
    certificate_make(&valid, &(struct certificate_wish){.name = "valid"});
    pair = pair_of(&valid);
    context = tls_context_create_server(
        &(struct tls_server_settings){.pairs = &pair, .pair_count = 1, .service = TEXT("test")}, NULL);
    cr_expect_null(tls_context_outdated(context));
    tls_context_release(context);
    certificate_free(&valid);
}

Test(context, refuses_a_short_key)
{
    check_wish_refused(&(struct certificate_wish){.name = "weak", .key = CERTIFICATE_RSA_1024},
                       "--cert c.pem cannot be used: ");
}

Test(context, refuses_another_ones_key)
{
    struct tls_pair pair = pair_of(test_server_certificate());

    pair.key.content = text_of(test_ca()->key_pem);
    check_refused(&pair, "--key k.pem does not belong to the certificate in --cert c.pem");
}

Test(context, refuses_what_holds_no_certificate)
{
    struct tls_pair pair = pair_of(test_server_certificate());

    pair.certificates.content = pair.key.content;
    check_refused(&pair, "--cert c.pem holds no certificate");
    pair.certificates.content = (struct text){NULL, 0};
    check_refused(&pair, "--cert c.pem holds no certificate");
}

Test(context, refuses_a_damaged_certificate)
{
    struct tls_pair pair = pair_of(test_server_certificate());

    pair.certificates.content.len /= 2;
    check_refused(&pair, "--cert c.pem is damaged: ");
}

Test(context, refuses_what_holds_no_key)
{
    struct tls_pair pair = pair_of(test_server_certificate());

    pair.key.content = pair.certificates.content;
    check_refused(&pair, "--key k.pem holds no private key");
}

Test(context, refuses_a_key_with_a_passphrase)
{
    struct tls_pair pair = pair_of(test_server_certificate());
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes;

    cr_assert_eq(
        PEM_write_bio_PKCS8PrivateKey(bio, test_server_certificate()->key, EVP_aes_128_cbc(), "open", 4, NULL, NULL),
        1);
    pair.key.content.len = (size_t)BIO_get_mem_data(bio, &bytes);
    pair.key.content.ptr = bytes;
    check_refused(&pair, "--key k.pem has a passphrase");
    BIO_free(bio);
}

Test(context, knows_when_its_first_certificate_expires)
{
    struct tls_context *context = server_with(test_server_certificate());
    int64_t in_s = tls_context_not_after_s(context) - (int64_t)time(NULL);

    cr_assert(in_s > 29 * 86400 && in_s <= 30 * 86400);
    tls_context_release(context);
}

/* Who gets which certificate. */

static struct tls_context *server_with_pairs(const struct tls_pair *pairs, size_t count)
{
    const struct tls_server_settings settings = {.pairs = pairs, .pair_count = count, .service = TEXT("test")};
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    return tls_context_create_server(&settings, &why);
}

/* The subject of the certificate that a client gets which asks for that name and supports only such signatures. */
static void check_gets(struct tls_context *server, const char *asks_for, const char *signatures, const char *subject)
{
    struct tls_context *client = client_of(test_ca());
    struct peers peers;
    char got[64] = "";

    SSL_CTX_set_verify(client->ssl, SSL_VERIFY_NONE, NULL);
    if (signatures)
        cr_assert_eq(SSL_CTX_set1_sigalgs_list(client->ssl, signatures), 1);
    peers_open(&peers, server, client, asks_for);
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers), "%s: %s", asks_for, tls_session_reason(peers.server.session));
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(peers.client.session->ssl)),
                              NID_commonName, got, sizeof got);
    cr_assert_str_eq(got, subject, "for %s", asks_for);
    peers_close(&peers);
    tls_context_release(client);
}

Test(context, chooses_the_certificate_by_name_and_kind_of_key)
{
    const struct certificate_wish WISHES[] = {
        {.name = "a, P-256", .names = "DNS:a.example", .issuer = test_ca()},
        {.name = "b, P-256", .names = "DNS:b.example,DNS:*.b.example", .issuer = test_ca()},
        {.name = "a, RSA", .names = "DNS:a.example", .issuer = test_ca(), .key = CERTIFICATE_RSA_2048},
        {.name = "b again", .names = "DNS:b.example", .issuer = test_ca()},
    };
    enum { COUNT = sizeof WISHES / sizeof *WISHES };
    struct certificate certificates[COUNT];
    struct tls_pair pairs[COUNT];
    struct tls_context *server;

    for (size_t i = 0; i < COUNT; i++) {
        certificate_make(&certificates[i], &WISHES[i]);
        pairs[i] = pair_of(&certificates[i]);
    }
    server = server_with_pairs(pairs, COUNT);
    check_gets(server, "a.example", NULL, "a, P-256");
    check_gets(server, "a.example", "RSA-PSS+SHA256", "a, RSA");
    check_gets(server, "b.example", NULL, "b, P-256");
    check_gets(server, "c.b.example", NULL, "b, P-256");
    check_gets(server, "unknown.example", NULL, "a, P-256");
    check_gets(server, "192.0.2.1", "RSA-PSS+SHA256", "a, RSA");
    tls_context_release(server);
    for (size_t i = 0; i < COUNT; i++)
        certificate_free(&certificates[i]);
}

/* Whom a client trusts. */

static void check_distrusted(struct tls_context *client, const struct certificate *certificate, const char *host,
                             const char *reason)
{
    struct tls_context *server = server_with(certificate);
    struct peers peers;

    peers_open(&peers, server, client, host);
    peers_talk(&peers);
    cr_assert_eq(tls_session_state(peers.client.session), TLS_FAILED);
    cr_assert_str_eq(tls_session_reason(peers.client.session), reason);
    cr_assert_eq(tls_session_state(peers.server.session), TLS_FAILED);
    peers_close(&peers);
    tls_context_release(server);
}

Test(context, a_client_verifies_names_and_issuers)
{
    struct certificate other_ca;
    struct tls_context *client = client_of(test_ca()), *stranger;

    certificate_make(&other_ca, &(struct certificate_wish){.name = "Other CA", .is_ca = true});
    stranger = client_of(&other_ca);
    check_distrusted(client, test_server_certificate(), "other.example",
                     "its certificate is for localhost, 127.0.0.1, not for other.example");
    check_distrusted(client, test_server_certificate(), "127.0.0.2",
                     "its certificate is for localhost, 127.0.0.1, not for 127.0.0.2");
    check_distrusted(stranger, test_server_certificate(), "localhost", "its certificate comes from an unknown CA");
    tls_context_release(client);
    tls_context_release(stranger);
    certificate_free(&other_ca);
}

Test(context, a_pinned_client_accepts_one_certificate_only)
{
    const struct tls_pem pem = {"--cert c", text_of(test_server_certificate()->full)};
    struct tls_context *client, *server = server_with(test_server_certificate());
    struct certificate sibling;
    struct peers peers;
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    client = tls_context_create_pinned(&pem, 1, &why);
    cr_assert(client);
    peers_open(&peers, server, client, "whatever its name");
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers), "%s", tls_session_reason(peers.client.session));
    peers_close(&peers);
    certificate_make(&sibling,
                     &(struct certificate_wish){.name = "sibling", .names = "DNS:localhost", .issuer = test_ca()});
    check_distrusted(client, &sibling, "localhost", "its certificate is not the one expected");
    certificate_free(&sibling);
    tls_context_release(client);
    tls_context_release(server);
}

/* A CA has signed those of other servers too. */
Test(context, a_pinned_certificate_is_no_ca)
{
    const struct tls_pem pem = {"--cert c", text_of(test_ca()->pem)};
    struct tls_context *client;
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    client = tls_context_create_pinned(&pem, 1, &why);
    cr_assert(client);
    check_distrusted(client, test_server_certificate(), "localhost",
                     "its certificate is not the one expected, which is that of its CA");
    tls_context_release(client);
}

Test(context, a_pinned_certificate_may_be_any_of_several_and_signed_by_itself)
{
    struct certificate self;
    struct tls_context *client, *server;
    struct peers peers;
    char storage[512];
    struct buf why;

    certificate_make(&self, &(struct certificate_wish){.name = "self", .from_days = -20, .to_days = 20});
    const struct tls_pem pems[] = {{"--cert ca", text_of(test_ca()->pem)}, {"--cert self", text_of(self.pem)}};
    buf_init_fixed(&why, storage, sizeof storage);
    client = tls_context_create_pinned(pems, 2, &why);
    cr_assert(client);
    server = server_with(&self);
    peers_open(&peers, server, client, "whatever its name");
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers), "%s", tls_session_reason(peers.client.session));
    peers_close(&peers);
    tls_context_release(server);
    tls_context_release(client);
    certificate_free(&self);
}

/* Protocols. */

static bool opens_with(struct tls_context *server, const char *alpn, size_t alpn_bytes, int version)
{
    struct tls_context *client = client_of(test_ca());
    struct peers peers;
    bool is_open;

    SSL_CTX_set_min_proto_version(client->ssl, version);
    SSL_CTX_set_max_proto_version(client->ssl, version);
    SSL_CTX_set_security_level(client->ssl, 0);
    if (alpn)
        SSL_CTX_set_alpn_protos(client->ssl, (const unsigned char *)alpn, (unsigned)alpn_bytes);
    peers_open(&peers, server, client, "localhost");
    peers_talk(&peers);
    is_open = peers_are_open(&peers);
    if (is_open)
        peers_check_both_ways(&peers);
    peers_close(&peers);
    tls_context_release(client);
    return is_open;
}

Test(context, speaks_http_1_1_over_TLS_1_2_and_1_3)
{
    struct tls_context *server = server_with(test_server_certificate());

    cr_assert(opens_with(server, NULL, 0, TLS1_2_VERSION));
    cr_assert(opens_with(server, NULL, 0, TLS1_3_VERSION));
    cr_assert(opens_with(server, "\x02h2\x08http/1.1", 12, TLS1_3_VERSION));
    cr_assert_not(opens_with(server, "\x02h2", 3, TLS1_3_VERSION));
    cr_assert_not(opens_with(server, "\x02h2", 3, TLS1_2_VERSION));
    cr_assert_not(opens_with(server, NULL, 0, TLS1_1_VERSION));
    tls_context_release(server);
}

Test(context, an_open_connection_is_not_renegotiated)
{
    struct tls_context *server = server_with(test_server_certificate()), *client = client_of(test_ca());
    struct peers peers;

    SSL_CTX_set_max_proto_version(client->ssl, TLS1_2_VERSION);
    SSL_CTX_clear_options(client->ssl, SSL_OP_NO_RENEGOTIATION);
    peers_open(&peers, server, client, "localhost");
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers));
    cr_assert_eq(SSL_renegotiate(peers.client.session->ssl), 1);
    peers.client.session->out = &peers.client.out;
    cr_assert_neq(SSL_do_handshake(peers.client.session->ssl), 1);
    peers.client.session->out = NULL;
    cr_assert_eq(tls_receive(peers.server.session, buf_text(&peers.client.out), &peers.server.plain, &peers.server.out),
                 TLS_OPEN);
    buf_clear(&peers.client.out);
    peers_talk(&peers);
    cr_assert_eq(tls_session_state(peers.client.session), TLS_FAILED);
    cr_assert_str_eq(tls_session_reason(peers.client.session), "no renegotiation");
    peers_close(&peers);
    tls_context_release(server);
    tls_context_release(client);
}

/* Certificates of clients. */

static struct tls_context *server_that_asks(const struct certificate *client_ca)
{
    const struct tls_pair pair = pair_of(test_server_certificate());
    const struct tls_server_settings settings = {
        .pairs = &pair, .pair_count = 1, .client_ca = {"--ca", text_of(client_ca->pem)}, .service = TEXT("test")};
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    return tls_context_create_server(&settings, &why);
}

static struct tls_context *client_with(const struct certificate *certificate)
{
    const struct tls_pair pair = pair_of(certificate);
    const struct tls_client_settings settings = {.ca = {"--ca", text_of(test_ca()->pem)}, .pair = &pair};
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    return tls_context_create_client(&settings, &why);
}

Test(context, a_client_may_prove_who_it_is)
{
    struct certificate other_ca, good, wrong;
    struct tls_context *server = server_that_asks(test_ca()), *clients[3];
    struct peers peers[3];

    certificate_make(&other_ca, &(struct certificate_wish){.name = "Other CA", .is_ca = true});
    certificate_make(&good, &(struct certificate_wish){.name = "gateway", .issuer = test_ca()});
    certificate_make(&wrong, &(struct certificate_wish){.name = "gateway", .issuer = &other_ca});
    clients[0] = client_with(&good);
    clients[1] = client_of(test_ca());
    clients[2] = client_with(&wrong);
    for (int i = 0; i < 3; i++) {
        peers_open(&peers[i], server, clients[i], "localhost");
        peers_talk(&peers[i]);
    }
    cr_assert(peers_are_open(&peers[0]) && tls_session_peer(peers[0].server.session, server) == TLS_PEER_VERIFIED);
    cr_assert(peers_are_open(&peers[1]) && tls_session_peer(peers[1].server.session, server) == TLS_PEER_UNKNOWN);
    cr_assert_eq(tls_session_state(peers[2].server.session), TLS_FAILED);
    for (int i = 0; i < 3; i++) {
        peers_close(&peers[i]);
        tls_context_release(clients[i]);
    }
    tls_context_release(server);
    certificate_free(&other_ca);
    certificate_free(&good);
    certificate_free(&wrong);
}

static void expect_name(const char *common_name, const char *names, const char *expected)
{
    struct certificate certificate;
    struct tls_context *server = server_that_asks(test_ca()), *client;
    struct peers peers;
    char storage[TLS_PEER_NAME_BYTES];
    struct text name;

    certificate_make(&certificate,
                     &(struct certificate_wish){.name = common_name, .names = names, .issuer = test_ca()});
    client = client_with(&certificate);
    peers_open(&peers, server, client, "localhost");
    peers_talk(&peers);
    name = tls_session_peer_name(peers.server.session);
    snprintf(storage, sizeof storage, "%.*s", TEXT_ARG(name));
    if (strcmp(expected, "sha256:") == 0)
        cr_expect(name.len == 7 + 64 && strncmp(storage, expected, 7) == 0, "%s", storage);
    else
        cr_expect_str_eq(storage, expected);
    peers_close(&peers);
    tls_context_release(server);
    tls_context_release(client);
    certificate_free(&certificate);
}

Test(context, the_name_of_a_client)
{
    char longest[4 + TLS_PEER_NAME_BYTES + 1] = "URI:x:";

    memset(longest + 6, 'a', TLS_PEER_NAME_BYTES - 3);
    expect_name("gateway", NULL, "gateway");
    expect_name("Gateway 1", NULL, "Gateway 1");
    expect_name("cn", "DNS:first.example,DNS:second.example", "first.example");
    expect_name("cn", "IP:127.0.0.1,URI:spiffe://clinic/gateway,DNS:second.example", "spiffe://clinic/gateway");
    expect_name("cn", "IP:127.0.0.1", "cn");
    expect_name("one,two", NULL, "sha256:");
    expect_name("one\ttwo", NULL, "sha256:");
    expect_name(" one", NULL, "sha256:");
    expect_name("cn", "URI:x:y z", "x:y z");
    expect_name("cn", longest, longest + 4);
    longest[strlen(longest)] = 'a';
    expect_name("cn", longest, "sha256:");
}

static int64_t in_31_days(void)
{
    return (time(NULL) + INT64_C(31) * 24 * 60 * 60) * 1000;
}

Test(context, what_a_client_has_proved_ends_with_its_certificate_and_its_ca)
{
    struct certificate other_ca, good;
    struct tls_context *server = server_that_asks(test_ca()), *renewed = server_that_asks(test_ca()), *other, *client;
    struct peers peers;

    certificate_make(&other_ca, &(struct certificate_wish){.name = "Other CA", .is_ca = true});
    certificate_make(&good, &(struct certificate_wish){.name = "gateway", .issuer = test_ca()});
    other = server_that_asks(&other_ca);
    client = client_with(&good);
    peers_open(&peers, server, client, "localhost");
    peers_talk(&peers);
    cr_expect_eq(tls_session_peer(peers.server.session, renewed), TLS_PEER_VERIFIED);
    cr_expect_eq(tls_session_peer(peers.server.session, other), TLS_PEER_ENDED);
    cr_expect_eq(tls_session_peer(peers.server.session, NULL), TLS_PEER_ENDED);
    clock_replace_wall_for_test(in_31_days);
    cr_expect_eq(tls_session_peer(peers.server.session, server), TLS_PEER_ENDED);
    clock_replace_wall_for_test(NULL);
    peers_close(&peers);
    tls_context_release(server);
    tls_context_release(renewed);
    tls_context_release(other);
    tls_context_release(client);
    certificate_free(&other_ca);
    certificate_free(&good);
}

/* Session tickets. */

static struct tls_ticket_key keys[2] = {{"name of the 1st", {1}, {1}}, {"name of the 2nd", {2}, {2}}};
static size_t current, oldest;

static const struct tls_ticket_key *find_key(void *arg, const uint8_t *name)
{
    cr_assert_null(arg);
    if (!name)
        return &keys[current];
    for (size_t i = oldest; i <= current; i++)
        if (memcmp(keys[i].name, name, sizeof keys[i].name) == 0)
            return &keys[i];
    return NULL;
}

static struct tls_context *server_with_tickets(struct text service)
{
    const struct tls_pair pair = pair_of(test_server_certificate());
    const struct tls_server_settings settings = {.pairs = &pair,
                                                 .pair_count = 1,
                                                 .client_ca = {"--ca", text_of(test_ca()->pem)},
                                                 .service = service,
                                                 .find_ticket_key = find_key};
    char storage[512];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    return tls_context_create_server(&settings, &why);
}

/* Connects with the session, if any, and returns the next one. */
static SSL_SESSION *visit(struct tls_context *server, struct tls_context *client, SSL_SESSION *with, bool *ret_resumed)
{
    struct peers peers;
    SSL_SESSION *next;

    peers_prepare(&peers, server, client, "localhost");
    if (with)
        cr_assert_eq(SSL_set_session(peers.client.session->ssl, with), 1);
    peers_begin(&peers);
    peers_talk(&peers);
    cr_assert(peers_are_open(&peers), "%s", tls_session_reason(peers.server.session));
    peers_check_both_ways(&peers);
    *ret_resumed = tls_session_is_resumed(peers.server.session);
    next = SSL_get1_session(peers.client.session->ssl);
    tls_end(peers.client.session, &peers.client.out); /* OpenSSL's client does not use a session that broke off */
    peers_close(&peers);
    SSL_SESSION_free(with);
    return next;
}

Test(context, tickets_are_accepted_by_all_who_have_their_key)
{
    struct tls_context *one = server_with_tickets(TEXT("a")), *another = server_with_tickets(TEXT("a")),
                       *elsewhere = server_with_tickets(TEXT("b")), *client = client_of(test_ca());
    SSL_SESSION *session;
    bool is_resumed;

    current = oldest = 0;
    session = visit(one, client, NULL, &is_resumed);
    cr_assert_not(is_resumed);
    session = visit(another, client, session, &is_resumed);
    cr_assert(is_resumed, "another server with the same keys resumes");
    current = 1;
    session = visit(one, client, session, &is_resumed);
    cr_assert(is_resumed, "the previous key is still accepted");
    session = visit(elsewhere, client, session, &is_resumed);
    cr_assert_not(is_resumed, "another service does not resume");
    current = oldest = 0;
    session = visit(one, client, session, &is_resumed);
    current = oldest = 1;
    session = visit(one, client, session, &is_resumed);
    cr_assert_not(is_resumed, "an old key is no longer accepted");
    SSL_SESSION_free(session);
    tls_context_release(one);
    tls_context_release(another);
    tls_context_release(elsewhere);
    tls_context_release(client);
}

/* So that a gateway shows the certificate that it has got since. */
Test(context, a_ticket_ends_with_its_clients_certificate)
{
    struct tls_context *server = server_with_tickets(TEXT("a")), *client;
    struct certificate gateway;
    SSL_SESSION *session;
    bool is_resumed;

    certificate_make(&gateway, &(struct certificate_wish){.name = "gateway", .issuer = test_ca()});
    client = client_with(&gateway);
    current = oldest = 0;
    session = visit(server, client, NULL, &is_resumed);
    session = visit(server, client, session, &is_resumed);
    cr_expect(is_resumed);
    clock_replace_wall_for_test(in_31_days);
    session = visit(server, client, session, &is_resumed);
    cr_expect_not(is_resumed);
    clock_replace_wall_for_test(NULL);
    SSL_SESSION_free(session);
    tls_context_release(server);
    tls_context_release(client);
    certificate_free(&gateway);
}

/* Whoever recorded such a connection and later got the ticket's key could read it. */
Test(context, no_session_of_tls_1_2_is_resumed)
{
    struct tls_context *server = server_with_tickets(TEXT("a")), *client = client_of(test_ca());
    SSL_SESSION *session;
    bool is_resumed;

    current = oldest = 0;
    SSL_CTX_set_max_proto_version(client->ssl, TLS1_2_VERSION);
    session = visit(server, client, NULL, &is_resumed);
    cr_expect_not(SSL_SESSION_has_ticket(session));
    session = visit(server, client, session, &is_resumed);
    cr_expect_not(is_resumed);
    SSL_SESSION_free(session);
    tls_context_release(server);
    tls_context_release(client);
}
