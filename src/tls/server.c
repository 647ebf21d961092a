/* A server's context: which certificate a client gets, which protocol is spoken, who may connect. */
#include "context_internal.h"
#include "tickets_internal.h"

#include "base/check.h"

#include <openssl/x509v3.h>
#include <string.h>

static const unsigned char PROTOCOL[] = "\x08http/1.1";
enum { PROTOCOL_BYTES = sizeof PROTOCOL - 1 };

/* RFC 7301, section 3.2: no common protocol is an error, so that a client cannot speak another one. */
static int choose_protocol(UNUSED SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_bytes,
                           const unsigned char *offered, unsigned bytes, UNUSED void *arg)
{
    unsigned char *chosen;

    if (SSL_select_next_proto(&chosen, ret_bytes, PROTOCOL, PROTOCOL_BYTES, offered, bytes) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_chosen = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static uint32_t pairs_for(const struct tls_context *context, const char *name)
{
    uint32_t set = 0;

    for (size_t i = 0; i < context->pair_count; i++)
        if (pair_covers(&context->pairs[i], name))
            set |= UINT32_C(1) << i;
    return set;
}

/* The connection begins with the context's pairs. From the last to the first, because of two pairs with the same kind
 * of key, the later call wins. */
static int choose_pairs(SSL *ssl, void *arg)
{
    const struct tls_context *context = arg;
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    uint32_t set = name ? pairs_for(context, name) : 0;

    if (set == 0 || set == context->default_pairs)
        return 1;
    SSL_certs_clear(ssl);
    for (size_t i = context->pair_count; i-- > 0;) {
        const struct pair *pair = &context->pairs[i];

        if (set & UINT32_C(1) << i && SSL_use_cert_and_key(ssl, pair->leaf, pair->key, pair->chain, 1) != 1)
            return 0;
    }
    return 1;
}

/* The first pair, and those that are for its first name too, which have another kind of key. */
static uint32_t find_default_pairs(const struct tls_context *context)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(context->pairs[0].leaf, NID_subject_alt_name, NULL, NULL);
    uint32_t set = 0;

    for (int i = 0; set == 0 && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_DNS)
            set = pairs_for(context, (const char *)ASN1_STRING_get0_data(name->d.dNSName));
    }
    GENERAL_NAMES_free(names);
    return set | 1;
}

static bool read_pairs(struct tls_context *context, const struct tls_server_settings *settings, struct buf *ret_why)
{
    CHECK(settings->pair_count >= 1 && settings->pair_count <= TLS_PAIRS_MAX);
    for (size_t i = 0; i < settings->pair_count; i++)
        if (!context_add_pair(context, &settings->pairs[i], ret_why))
            return false;
    context->default_pairs = find_default_pairs(context);
    for (size_t i = context->pair_count; i-- > 0;)
        if (context->default_pairs & UINT32_C(1) << i)
            context_use_pair(context, i);
    SSL_CTX_set_cert_cb(context->ssl, choose_pairs, context);
    return true;
}

static bool ask_for_certificates(struct tls_context *context, const struct tls_pem *ca, struct buf *ret_why)
{
    STACK_OF(X509) *all = pem_read_certificates(ca, ret_why);
    bool is_trusted = all && pem_trust(SSL_CTX_get_cert_store(context->ssl), ca, ret_why);

    /* Clients with several certificates choose by the CAs' names. */
    for (int i = 0; is_trusted && i < sk_X509_num(all); i++)
        CHECK(SSL_CTX_add_client_CA(context->ssl, sk_X509_value(all, i)) == 1);
    sk_X509_pop_free(all, X509_free);
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
    return is_trusted;
}

/* A session is resumed only by the service and with the client CA that it began with: otherwise a certificate that has
 * lost its CA would count for as long as its tickets. */
static void set_session_scope(struct tls_context *context, const struct tls_server_settings *settings)
{
    uint8_t *scope = context->scope;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    unsigned bytes = 0;

    _Static_assert(sizeof context->scope == 32, "holds SHA-256");
    CHECK(digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1);
    CHECK(EVP_DigestUpdate(digest, settings->service.ptr, settings->service.len) == 1);
    CHECK(EVP_DigestUpdate(digest, "\0", 1) == 1);
    CHECK(EVP_DigestUpdate(digest, settings->client_ca.content.ptr, settings->client_ca.content.len) == 1);
    CHECK(EVP_DigestFinal_ex(digest, scope, &bytes) == 1 && bytes == sizeof context->scope);
    EVP_MD_CTX_free(digest);
    CHECK(SSL_CTX_set_session_id_context(context->ssl, scope, bytes) == 1);
}

struct tls_context *tls_context_create_server(const struct tls_server_settings *settings, struct buf *ret_why)
{
    struct tls_context *context = context_create(TLS_server_method());

    SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, NULL);
    set_session_scope(context, settings);
    tickets_configure(context, settings);
    if (read_pairs(context, settings, ret_why) &&
        (!settings->client_ca.name || ask_for_certificates(context, &settings->client_ca, ret_why)))
        return context;
    tls_context_release(context);
    return NULL;
}
