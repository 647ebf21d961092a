#include "tickets_internal.h"

#include "base/attr.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

enum { IV_BYTES = 16, MS_PER_S = 1000 };
/* What OpenSSL wants to know of a ticket's key (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)). */
enum ticket_verdict { TICKET_ERROR = -1, TICKET_UNKNOWN = 0, TICKET_USABLE = 1, TICKET_RENEWED = 2 };

static bool set_mac_key(EVP_MAC_CTX *mac, const struct tls_ticket_key *key)
{
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->mac_key, sizeof key->mac_key),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };

    return EVP_MAC_CTX_set_params(mac, parameters) == 1;
}

static int seal(const struct tls_ticket_key *key, unsigned char *ret_name, unsigned char *ret_iv,
                EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    memcpy(ret_name, key->name, sizeof key->name);
    random_secret(ret_iv, IV_BYTES);
    if (EVP_EncryptInit_ex2(cipher, EVP_aes_256_cbc(), key->cipher_key, ret_iv, NULL) != 1 || !set_mac_key(mac, key))
        return TICKET_ERROR;
    return TICKET_USABLE;
}

static int unseal(const struct tls_ticket_key *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
    if (EVP_DecryptInit_ex2(cipher, EVP_aes_256_cbc(), key->cipher_key, iv, NULL) != 1 || !set_mac_key(mac, key))
        return TICKET_ERROR;
    return TICKET_USABLE;
}

/* Only TLS 1.3: a ticket of TLS 1.2 holds the keys of the connections that use it, so whoever has recorded one and
 * later gets the key of the ticket reads it. */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                     int is_new)
{
    const struct tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const struct tls_ticket_key *key = NULL;

    if (SSL_version(ssl) == TLS1_3_VERSION)
        key = context->find_ticket_key(context->arg, is_new ? NULL : name);
    if (!key)
        return TICKET_UNKNOWN;
    return is_new ? seal(key, name, iv, cipher, mac) : unseal(key, iv, cipher, mac);
}

/* A client whose certificate has expired shakes hands in full, so that it shows the one it has got since. */
static SSL_TICKET_RETURN on_opened(SSL *ssl UNUSED, SSL_SESSION *session, const unsigned char *name UNUSED,
                                   size_t name_bytes UNUSED, SSL_TICKET_STATUS status, void *arg UNUSED)
{
    const X509 *certificate;

    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    certificate = SSL_SESSION_get0_peer(session);
    if (certificate && clock_wall_ms() / MS_PER_S > pem_not_after_s(certificate))
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

void tickets_configure(struct tls_context *context, const struct tls_server_settings *settings)
{
    context->find_ticket_key = settings->find_ticket_key;
    context->arg = settings->arg;
    SSL_CTX_set_timeout(context->ssl, TLS_TICKET_LIFETIME_S);
    SSL_CTX_set_num_tickets(context->ssl, 0); /* of its own accord, see add_ticket() */
    if (!settings->find_ticket_key) {
        SSL_CTX_set_options(context->ssl, SSL_OP_NO_TICKET);
        return;
    }
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context->ssl, on_ticket);
    CHECK(SSL_CTX_set_session_ticket_cb(context->ssl, NULL, on_opened, NULL) == 1);
}
