/* Certificates and keys from the content of PEM files. */
#pragma once
#include "tls/context.h"

#include <openssl/ssl.h>

struct pair {
    X509 *leaf;
    STACK_OF(X509) * chain; /* without the leaf; may be empty */
    EVP_PKEY *key;
};

/* Why OpenSSL refused something, from its error queue, which is emptied. */
const char *tls_error_take(void);

/* NULL: with one sentence in ret_why. At least one certificate. */
STACK_OF(X509) * pem_read_certificates(const struct tls_pem *pem, struct buf *ret_why);
/* The key must be that of the first certificate. */
MUST_CHECK bool pair_read(const struct tls_pair *from, struct pair *ret_pair, struct buf *ret_why);
/* Whether all its certificates are valid by this machine's clock. pem: where they come from. */
MUST_CHECK bool pair_is_valid_now(const struct pair *pair, const struct tls_pem *pem, struct buf *ret_why);
void pair_finish(struct pair *pair);
/* Whether the certificate is for that host name. */
bool pair_covers(const struct pair *pair, const char *name);
/* Seconds since 1970. */
int64_t pem_not_after_s(const X509 *certificate);
/* The certificates as trust anchors. */
MUST_CHECK bool pem_trust(X509_STORE *store, const struct tls_pem *pem, struct buf *ret_why);
