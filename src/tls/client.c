/* A client's context: whom it trusts, and how it identifies itself. */
#include "context_internal.h"
#include "verify_internal.h"

#include "base/check.h"

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
    if (tls_context_outdated(context)) {
        buf_append_text(ret_why, text_of(tls_context_outdated(context)));
        return false;
    }
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

/* The first certificate of a file is the server's own. */
static bool pin(struct tls_context *context, const struct tls_pem *pem, struct buf *ret_why)
{
    STACK_OF(X509) *all = pem_read_certificates(pem, ret_why);

    if (!all)
        return false;
    CHECK(sk_X509_push(context->pinned, sk_X509_shift(all)) > 0);
    sk_X509_pop_free(all, X509_free);
    return true;
}

struct tls_context *tls_context_create_pinned(const struct tls_pem *certificates, size_t count, struct buf *ret_why)
{
    struct tls_context *context = context_create(TLS_client_method());

    context->pinned = sk_X509_new_null();
    CHECK(context->pinned);
    SSL_CTX_set_verify(context->ssl, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(context->ssl, verify_is_pinned, context);
    for (size_t i = 0; i < count; i++)
        if (!pin(context, &certificates[i], ret_why)) {
            tls_context_release(context);
            return NULL;
        }
    return context;
}
