#include "tls_client.h"

#include "base/check.h"
#include "base/mem.h"
#include "process.h"
#include "tls/session_internal.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_BYTES = 4 * 1024 * 1024, READ_BYTES = 64 * 1024 };

struct tls_layer {
    struct http_client_layer layer;
    struct tls_session *session;
    struct buf plain;
    char server[64];
};

static char why[256];

static struct tls_layer *layer_of(const struct http_client *client)
{
    return (struct tls_layer *)client->layer;
}

static bool send_records(struct http_client *client, struct buf *records)
{
    bool is_sent = records->len == 0 || http_client_send_raw(client, records->ptr, records->len);

    buf_finish(records);
    return is_sent;
}

static bool tls_layer_send(struct http_client *client, const char *bytes, size_t len)
{
    struct tls_layer *tls = layer_of(client);
    struct buf records;

    buf_init(&records, MAX_BYTES);
    return tls->session->state == TLS_OPEN && tls_send(tls->session, (struct text){bytes, len}, &records) &&
           send_records(client, &records);
}

/* Takes what has arrived, waiting for it. */
static enum http_client_result take_some(struct http_client *client, struct deadline deadline)
{
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};
    static char input[READ_BYTES];
    struct tls_layer *tls = layer_of(client);
    struct buf records;
    ssize_t got;

    if (poll(&readable, 1, deadline_left_ms(deadline)) <= 0)
        return HTTP_CLIENT_TIMEOUT;
    got = recv(client->fd, input, sizeof input, 0);
    if (got <= 0)
        return HTTP_CLIENT_CLOSED;
    buf_init(&records, MAX_BYTES);
    (void)tls_receive(tls->session, (struct text){input, (size_t)got}, &tls->plain, &records);
    (void)send_records(client, &records);
    return HTTP_CLIENT_ANSWER;
}

static enum http_client_result tls_layer_fill(struct http_client *client, struct deadline deadline)
{
    struct tls_layer *tls = layer_of(client);
    size_t room = sizeof client->buffer - client->end, count;

    while (tls->plain.len == 0) {
        if (tls->session->state == TLS_ENDED || tls->session->state == TLS_FAILED)
            return HTTP_CLIENT_CLOSED;
        enum http_client_result result = take_some(client, deadline);

        if (result != HTTP_CLIENT_ANSWER)
            return result;
    }
    count = tls->plain.len < room ? tls->plain.len : room;
    memcpy(client->buffer + client->end, tls->plain.ptr, count);
    client->end += count;
    buf_consume(&tls->plain, count);
    return HTTP_CLIENT_ANSWER;
}

static void tls_layer_close(struct http_client *client)
{
    struct tls_layer *tls = layer_of(client);

    /* OpenSSL does not offer a session again that broke off. */
    SSL_set_shutdown(tls->session->ssl, SSL_SENT_SHUTDOWN);
    tls_session_free(tls->session);
    buf_finish(&tls->plain);
    free(tls);
    client->layer = NULL;
}

static struct tls_context *make_context(const struct tls_wish *wish)
{
    struct tls_client_settings settings = {.ca = {"ca", text_of(wish->ca->pem)}};
    struct tls_pair pair;
    struct tls_context *context;
    char storage[512];
    struct buf said;

    if (wish->own) {
        pair = (struct tls_pair){{"own", text_of(wish->own->pem)}, {"own key", text_of(wish->own->key_pem)}};
        settings.pair = &pair;
    }
    buf_init_fixed(&said, storage, sizeof storage);
    context = tls_context_create_client(&settings, &said);
    CHECK(context);
    if (wish->version) {
        int version = wish->version == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;

        SSL_CTX_set_min_proto_version(context->ssl, version);
        SSL_CTX_set_max_proto_version(context->ssl, version);
    }
    return context;
}

static void apply(SSL *ssl, const struct tls_wish *wish)
{
    if (wish->session)
        CHECK(SSL_set_session(ssl, wish->session) == 1);
    if (wish->protocol) {
        unsigned char list[32];
        size_t bytes = strlen(wish->protocol);

        CHECK(bytes < sizeof list);
        list[0] = (unsigned char)bytes;
        memcpy(list + 1, wish->protocol, bytes);
        CHECK(SSL_set_alpn_protos(ssl, list, (unsigned)bytes + 1) == 0);
    }
}

static void note_server(struct tls_layer *tls)
{
    const X509 *certificate = SSL_get0_peer_certificate(tls->session->ssl);

    if (certificate)
        X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, tls->server, sizeof tls->server);
}

bool tls_client_begin(struct http_client *client, const struct tls_wish *wish)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct tls_context *context = make_context(wish);
    struct tls_layer *tls = mem_alloc(sizeof *tls);
    struct buf records;

    tls->layer = (struct http_client_layer){tls_layer_send, tls_layer_fill, tls_layer_close};
    tls->session = tls_session_connect(context, wish->name ? wish->name : "localhost");
    tls_context_release(context);
    apply(tls->session->ssl, wish);
    buf_init(&tls->plain, MAX_BYTES);
    client->layer = &tls->layer;
    buf_init(&records, MAX_BYTES);
    (void)tls_receive(tls->session, (struct text){NULL, 0}, &tls->plain, &records);
    why[0] = '\0';
    if (send_records(client, &records))
        while (tls->session->state == TLS_HANDSHAKING && take_some(client, deadline) == HTTP_CLIENT_ANSWER)
            ;
    note_server(tls);
    if (tls->session->state == TLS_OPEN)
        return true;
    snprintf(why, sizeof why, "%s", tls->session->state == TLS_FAILED ? tls_session_reason(tls->session) : "closed");
    http_client_close(client);
    return false;
}

bool tls_client_connect(struct http_client *client, uint16_t port, const struct tls_wish *wish)
{
    http_client_connect(client, port);
    return tls_client_begin(client, wish);
}

const char *tls_client_why(void)
{
    return why;
}

const char *tls_client_server(const struct http_client *client)
{
    return layer_of(client)->server;
}

bool tls_client_is_resumed(const struct http_client *client)
{
    return tls_session_is_resumed(layer_of(client)->session);
}

struct ssl_session_st *tls_client_session(const struct http_client *client)
{
    return SSL_get1_session(layer_of(client)->session->ssl);
}

void tls_client_end(struct http_client *client)
{
    struct buf records;

    buf_init(&records, MAX_BYTES);
    tls_end(layer_of(client)->session, &records);
    (void)send_records(client, &records);
}
