#include "pem_internal.h"

#include "base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <time.h>

const char *tls_error_take(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    ERR_clear_error();
    return reason ? reason : "unknown error";
}

static BIO *open_pem(const struct tls_pem *pem)
{
    return BIO_new_mem_buf(pem->content.ptr ? pem->content.ptr : "", (int)pem->content.len);
}

/* The error that is left when no further certificate begins. */
static bool is_at_end(void)
{
    unsigned long error = ERR_peek_last_error();
    bool is_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;

    if (is_end)
        ERR_clear_error();
    return is_end;
}

STACK_OF(X509) * pem_read_certificates(const struct tls_pem *pem, struct buf *ret_why)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *bio = open_pem(pem);
    X509 *certificate;

    ERR_clear_error();
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)))
        sk_X509_push(all, certificate);
    BIO_free(bio);
    if (!is_at_end())
        buf_printf(ret_why, "%s is damaged: %s", pem->name, tls_error_take());
    else if (sk_X509_num(all) == 0)
        buf_printf(ret_why,
                   "%s holds no certificate: it must be PEM, with lines that begin with "
                   "-----BEGIN CERTIFICATE-----",
                   pem->name);
    else
        return all;
    sk_X509_pop_free(all, X509_free);
    return NULL;
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts;

    return ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

static void print_time(const ASN1_TIME *time, char ret_text[CLOCK_RFC3339_BYTES])
{
    clock_print_rfc3339(seconds_of(time) * 1000, ret_text);
}

static bool is_valid_now(const struct tls_pem *pem, const X509 *certificate, struct buf *ret_why)
{
    char when[CLOCK_RFC3339_BYTES];

    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
        print_time(X509_get0_notAfter(certificate), when);
        buf_printf(ret_why, "%s: the certificate expired at %s; renew it", pem->name, when);
        return false;
    }
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
        print_time(X509_get0_notBefore(certificate), when);
        buf_printf(ret_why, "%s: the certificate is not valid before %s; check this machine's clock", pem->name, when);
        return false;
    }
    return true;
}

bool pair_is_valid_now(const struct pair *pair, const struct tls_pem *pem, struct buf *ret_why)
{
    if (!is_valid_now(pem, pair->leaf, ret_why))
        return false;
    for (int i = 0; i < sk_X509_num(pair->chain); i++)
        if (!is_valid_now(pem, sk_X509_value(pair->chain, i), ret_why))
            return false;
    return true;
}

/* A service has nobody to ask for a passphrase. OpenSSL would ask on the terminal. */
static int give_no_passphrase(UNUSED char *ret_phrase, UNUSED int room, UNUSED int rwflag, void *was_asked)
{
    *(bool *)was_asked = true;
    return -1;
}

static EVP_PKEY *read_key(const struct tls_pem *pem, struct buf *ret_why)
{
    BIO *bio = open_pem(pem);
    bool was_asked = false;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, give_no_passphrase, &was_asked);

    BIO_free(bio);
    ERR_clear_error();
    if (!key && was_asked)
        buf_printf(ret_why, "%s has a passphrase; write it without one ('openssl pkey'), for this program only",
                   pem->name);
    else if (!key)
        buf_printf(ret_why, "%s holds no private key in PEM", pem->name);
    return key;
}

bool pair_read(const struct tls_pair *from, struct pair *ret_pair, struct buf *ret_why)
{
    *ret_pair = (struct pair){.chain = pem_read_certificates(&from->certificates, ret_why)};
    if (!ret_pair->chain)
        return false;
    ret_pair->leaf = sk_X509_shift(ret_pair->chain);
    ret_pair->key = read_key(&from->key, ret_why);
    if (ret_pair->key && X509_check_private_key(ret_pair->leaf, ret_pair->key) == 1)
        return true;
    if (ret_pair->key)
        buf_printf(ret_why, "%s does not belong to the certificate in %s", from->key.name, from->certificates.name);
    ERR_clear_error();
    pair_finish(ret_pair);
    return false;
}

void pair_finish(struct pair *pair)
{
    X509_free(pair->leaf);
    sk_X509_pop_free(pair->chain, X509_free);
    EVP_PKEY_free(pair->key);
    *pair = (struct pair){0};
}

bool pair_covers(const struct pair *pair, const char *name)
{
    return X509_check_host(pair->leaf, name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) == 1;
}

int64_t pem_not_after_s(const X509 *certificate)
{
    return seconds_of(X509_get0_notAfter(certificate));
}

bool pem_trust(X509_STORE *store, const struct tls_pem *pem, struct buf *ret_why)
{
    STACK_OF(X509) *all = pem_read_certificates(pem, ret_why);
    bool is_added = all;

    for (int i = 0; is_added && i < sk_X509_num(all); i++)
        is_added = X509_STORE_add_cert(store, sk_X509_value(all, i)) == 1;
    if (all && !is_added)
        buf_printf(ret_why, "%s cannot be used: %s", pem->name, tls_error_take());
    sk_X509_pop_free(all, X509_free);
    return is_added;
}
