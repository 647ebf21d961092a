#include "session_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "peer_name_internal.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000 };

/* OpenSSL's input and output: what the caller has lent. */

static int lent_read(BIO *bio, char *ret_bytes, size_t room, size_t *ret_count)
{
    struct tls_session *session = BIO_get_data(bio);
    size_t count = session->input.len < room ? session->input.len : room;

    BIO_clear_retry_flags(bio);
    if (count == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(ret_bytes, session->input.ptr, count);
    session->input = text_skip(session->input, count);
    *ret_count = count;
    return 1;
}

static int lent_write(BIO *bio, const char *bytes, size_t count, size_t *ret_count)
{
    struct tls_session *session = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (!session->out)
        return 0;
    buf_append(session->out, bytes, count);
    *ret_count = count;
    return !session->out->failed;
}

static long lent_control(UNUSED BIO *bio, int command, UNUSED long number, UNUSED void *arg)
{
    return command == BIO_CTRL_FLUSH;
}

/* Made once, and lives as long as the program. */
static const BIO_METHOD *lent_method(void)
{
    static BIO_METHOD *method;

    if (!method) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "lent buffers");
        CHECK(method && BIO_meth_set_read_ex(method, lent_read) == 1 &&
              BIO_meth_set_write_ex(method, lent_write) == 1 && BIO_meth_set_ctrl(method, lent_control) == 1);
    }
    return method;
}

/* Beginning and end. */

static struct tls_session *session_create(struct tls_context *context)
{
    struct tls_session *session = mem_alloc(sizeof *session);
    BIO *bio = BIO_new(lent_method());

    session->context = tls_context_hold(context);
    session->ssl = SSL_new(context->ssl);
    session->reason = "";
    CHECK(bio && session->ssl && SSL_set_app_data(session->ssl, session) == 1);
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(session->ssl, bio, bio);
    return session;
}

struct tls_session *tls_session_accept(struct tls_context *context)
{
    struct tls_session *session = session_create(context);

    SSL_set_accept_state(session->ssl);
    session->has_ticket_to_send = context->find_ticket_key;
    return session;
}

static bool is_address(const char *host)
{
    struct in6_addr address;

    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
}

/* An address is not sent as a name (RFC 6066, section 3). */
struct tls_session *tls_session_connect(struct tls_context *context, const char *host)
{
    struct tls_session *session = session_create(context);

    SSL_set_connect_state(session->ssl);
    SSL_set_hostflags(session->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (context->pinned)
        return session;
    if (is_address(host))
        CHECK(X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session->ssl), host) == 1);
    else
        CHECK(SSL_set1_host(session->ssl, host) == 1 && SSL_set_tlsext_host_name(session->ssl, host) == 1);
    return session;
}

void tls_session_free(struct tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    tls_context_release(session->context);
    free(session->detail);
    free(session->peer_name);
    free(session);
}

/* Reading and writing. */

static void fail(struct tls_session *session)
{
    long verdict = SSL_get_verify_result(session->ssl);

    session->state = TLS_FAILED;
    session->reason = verdict == X509_V_OK ? tls_error_take()
                      : session->detail    ? session->detail
                                           : X509_verify_cert_error_string(verdict);
    ERR_clear_error();
}

/* A resumed session brings along the certificate of its full handshake. */
static void note_peer(struct tls_session *session)
{
    const X509 *certificate = SSL_get0_peer_certificate(session->ssl);
    char name[TLS_PEER_NAME_BYTES];

    if (!certificate || SSL_get_verify_result(session->ssl) != X509_V_OK)
        return;
    session->peer_not_after_s = pem_not_after_s(certificate);
    peer_name_read(certificate, name);
    session->peer_name = mem_copy_text(name, strlen(name));
}

static void shake_hands(struct tls_session *session)
{
    int result = SSL_do_handshake(session->ssl);

    if (result == 1) {
        session->state = TLS_OPEN;
        note_peer(session);
    } else if (SSL_get_error(session->ssl, result) != SSL_ERROR_WANT_READ) {
        fail(session);
    }
}

/* Reads a record, if a whole one has arrived. */
static void read_record(struct tls_session *session, struct buf *plain)
{
    char *room = buf_reserve(plain, TLS_RECORD_BYTES);
    size_t count = 0;

    if (!room) {
        session->state = TLS_FAILED;
        session->reason = "more plaintext than there is room for";
    } else if (SSL_read_ex(session->ssl, room, plain->capacity - plain->len, &count) == 1) {
        plain->len += count;
    } else {
        int error = SSL_get_error(session->ssl, 0);

        if (error == SSL_ERROR_ZERO_RETURN)
            session->state = TLS_ENDED;
        else if (error != SSL_ERROR_WANT_READ)
            fail(session);
    }
}

/* OpenSSL keeps what has arrived of an incomplete record, so the input is always used up. */
enum tls_state tls_receive(struct tls_session *session, struct text input, struct buf *plain, struct buf *out)
{
    session->input = input;
    session->out = out;
    ERR_clear_error();
    if (session->state == TLS_HANDSHAKING)
        shake_hands(session);
    while (session->state == TLS_OPEN && (session->input.len > 0 || SSL_pending(session->ssl) > 0))
        read_record(session, plain);
    session->input = (struct text){NULL, 0};
    session->out = NULL;
    return session->state;
}

/* With TLS 1.3, OpenSSL would send tickets at the end of the handshake, in a segment of their own directly before the
 * first answer. Here they come with it. The client gets one segment instead of two, and its kernel does not take the
 * answer's beginning for the second small segment that it acknowledges at once (src/http/delivery.c). Connections
 * without a request cost no ticket. */
static bool add_ticket(struct tls_session *session)
{
    bool is_added = session->has_ticket_to_send && SSL_version(session->ssl) == TLS1_3_VERSION &&
                    SSL_new_session_ticket(session->ssl) == 1;

    session->has_ticket_to_send = false;
    return is_added;
}

/* A handshake message allocates both record buffers, even if it only sends. An attempt to read, with nothing to be
 * read, releases the one for reading. SSL_free_buffers() cannot be used: with SSL_OP_CLEANSE_PLAINTEXT, OpenSSL 3.5
 * wipes a buffer that it has released already. */
static void release_read_buffer(struct tls_session *session)
{
    char byte;
    size_t count;

    (void)SSL_peek_ex(session->ssl, &byte, sizeof byte, &count);
    ERR_clear_error();
}

bool tls_send(struct tls_session *session, struct text bytes, struct buf *out)
{
    bool has_ticket;
    size_t count;

    CHECK(session->state == TLS_OPEN || session->state == TLS_ENDED);
    CHECK(!session->is_ended_by_us);
    if (bytes.len == 0)
        return true;
    session->out = out;
    ERR_clear_error();
    has_ticket = add_ticket(session);
    if (SSL_write_ex(session->ssl, bytes.ptr, bytes.len, &count) != 1)
        fail(session);
    else if (has_ticket)
        release_read_buffer(session);
    session->out = NULL;
    return session->state != TLS_FAILED;
}

void tls_end(struct tls_session *session, struct buf *out)
{
    if (session->is_ended_by_us || session->state == TLS_HANDSHAKING || session->state == TLS_FAILED)
        return;
    session->is_ended_by_us = true;
    session->out = out;
    (void)SSL_shutdown(session->ssl);
    ERR_clear_error();
    session->out = NULL;
}

/* What is known of it. */

enum tls_state tls_session_state(const struct tls_session *session)
{
    return session->state;
}

const char *tls_session_reason(const struct tls_session *session)
{
    return session->reason;
}

bool tls_session_is_resumed(const struct tls_session *session)
{
    return SSL_session_reused(session->ssl) == 1;
}

enum tls_peer tls_session_peer(const struct tls_session *session, const struct tls_context *current)
{
    if (session->peer_not_after_s == 0)
        return TLS_PEER_UNKNOWN;
    if (!current || clock_wall_ms() / MS_PER_S > session->peer_not_after_s ||
        memcmp(session->context->scope, current->scope, sizeof current->scope) != 0)
        return TLS_PEER_ENDED;
    return TLS_PEER_VERIFIED;
}

struct text tls_session_peer_name(const struct tls_session *session)
{
    return text_of(session->peer_name ? session->peer_name : "");
}

size_t tls_session_held_bytes(const struct tls_session *session)
{
    return SSL_has_pending(session->ssl) ? TLS_RECORD_BYTES + TLS_RECORD_OVERHEAD_BYTES : 0;
}
