#include "context_internal.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

/* For TLS 1.2: ECDHE and AEAD only. Those of TLS 1.3 are all sound. */
static const char CIPHERS[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
/* OpenSSL before 3.5 does not know the first of the hybrid ones (draft-ietf-tls-ecdhe-mlkem). The list leaves out
 * finite-field groups: with the largest, one handshake takes as long as a hundred ordinary ones. */
static const char GROUPS[] = "X25519:P-256:P-384";
static const char HYBRID_GROUPS[] = "X25519MLKEM768:X25519:P-256:P-384";
/* 112 bits: no SHA-1, no RSA below 2048 bits (RFC 9325, section 4). */
enum { SECURITY_LEVEL = 2 };

static void configure(SSL_CTX *ssl)
{
    const uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                             SSL_OP_PRIORITIZE_CHACHA | SSL_OP_CLEANSE_PLAINTEXT;

    CHECK(SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) == 1);
    CHECK(SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) == 1);
    SSL_CTX_set_security_level(ssl, SECURITY_LEVEL);
    SSL_CTX_set_options(ssl, options);
    CHECK(SSL_CTX_set_cipher_list(ssl, CIPHERS) == 1);
    if (SSL_CTX_set1_groups_list(ssl, HYBRID_GROUPS) != 1)
        CHECK(SSL_CTX_set1_groups_list(ssl, GROUPS) == 1);
    /* An idle connection holds no record buffers. */
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    (void)tls_error_take();
}

struct tls_context *context_create(const SSL_METHOD *method)
{
    struct tls_context *context = mem_alloc(sizeof *context);

    context->holds = 1;
    context->ssl = SSL_CTX_new(method);
    CHECK(context->ssl);
    SSL_CTX_set_app_data(context->ssl, context);
    configure(context->ssl);
    return context;
}

/* OpenSSL judges a pair when a connection gets it: the key may be too short, or the signature too weak. */
static bool is_usable(struct tls_context *context, const struct pair *pair, const char *name, struct buf *ret_why)
{
    SSL *probe = SSL_new(context->ssl);
    bool is_accepted;

    CHECK(probe);
    is_accepted = SSL_use_cert_and_key(probe, pair->leaf, pair->key, pair->chain, 1) == 1;
    SSL_free(probe);
    if (!is_accepted)
        buf_printf(ret_why, "%s cannot be used: %s", name, tls_error_take());
    return is_accepted;
}

bool context_add_pair(struct tls_context *context, const struct tls_pair *pair, struct buf *ret_why)
{
    struct pair *room = &context->pairs[context->pair_count];
    int64_t not_after_s;
    struct buf outdated = BUF_OVER(context->outdated, sizeof context->outdated - 1);

    CHECK(context->pair_count < TLS_PAIRS_MAX);
    if (!pair_read(pair, room, ret_why))
        return false;
    not_after_s = pem_not_after_s(room->leaf);
    if (context->pair_count == 0 || not_after_s < context->not_after_s)
        context->not_after_s = not_after_s;
    context->pair_count++;
    if (context->outdated[0] == '\0' && !pair_is_valid_now(room, &pair->certificates, &outdated))
        context->outdated[outdated.len] = '\0';
    return is_usable(context, room, pair->certificates.name, ret_why);
}

void context_use_pair(struct tls_context *context, size_t index)
{
    const struct pair *pair = &context->pairs[index];

    CHECK(SSL_CTX_use_cert_and_key(context->ssl, pair->leaf, pair->key, pair->chain, 1) == 1);
}

int64_t tls_context_not_after_s(const struct tls_context *context)
{
    return context->not_after_s;
}

const char *tls_context_outdated(const struct tls_context *context)
{
    return context->outdated[0] ? context->outdated : NULL;
}

struct tls_context *tls_context_hold(struct tls_context *context)
{
    context->holds++;
    return context;
}

void tls_context_release(struct tls_context *context)
{
    if (!context || --context->holds > 0)
        return;
    for (size_t i = 0; i < context->pair_count; i++)
        pair_finish(&context->pairs[i]);
    sk_X509_pop_free(context->pinned, X509_free);
    SSL_CTX_free(context->ssl);
    free(context);
}
