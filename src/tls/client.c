/* A client's context: whom it trusts, and how it identifies itself. */
#include "context_internal.h"
#include "verify_internal.h"

static bool trust(SSL_CTX *ssl, const struct tls_pem *ca, struct buf *ret_why)
{
    if (ca->name)
        return pem_trust(SSL_CTX_get_cert_store(ssl), ca, ret_why);
    if (SSL_CTX_set_default_verify_paths(ssl) == 1)
        return true;
    buf_printf(ret_why, "this system's CA certificates cannot be read: %s", tls_error_take());
    return false;
}

static bool identify(struct tls_context *context, const struct tls_pair *pair, struct buf *ret_why)
{
    if (!context_add_pair(context, pair, ret_why))
        return false;
    context_use_pair(context, 0);
    return true;
}

struct tls_context *tls_context_create_client(const struct tls_client_settings *settings, struct buf *ret_why)
{
    struct tls_context *context = context_create(TLS_client_method());

    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, verify_explain);
    if (trust(context->ssl, &settings->ca, ret_why) && (!settings->pair || identify(context, settings->pair, ret_why)))
        return context;
    tls_context_release(context);
    return NULL;
}

/* The first certificate of a file is the server's own. As an anchor of its own, it needs no CA. */
static bool pin(X509_STORE *store, const struct tls_pem *pem, struct buf *ret_why)
{
    STACK_OF(X509) *all = pem_read_certificates(pem, ret_why);
    bool is_added = all && X509_STORE_add_cert(store, sk_X509_value(all, 0)) == 1;

    sk_X509_pop_free(all, X509_free);
    if (all && !is_added)
        buf_printf(ret_why, "%s cannot be used: %s", pem->name, tls_error_take());
    return is_added;
}

struct tls_context *tls_context_create_pinned(const struct tls_pem *certificates, size_t count, struct buf *ret_why)
{
    struct tls_context *context = context_create(TLS_client_method());
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);

    context->is_pinned = true;
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context->ssl),
                                X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_NO_CHECK_TIME);
    for (size_t i = 0; i < count; i++)
        if (!pin(store, &certificates[i], ret_why)) {
            tls_context_release(context);
            return NULL;
        }
    return context;
}
