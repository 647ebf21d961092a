/* Certificates made while a test runs. */
#pragma once
#include <stdbool.h>

enum certificate_key { CERTIFICATE_P256, CERTIFICATE_RSA_2048, CERTIFICATE_RSA_1024 };

struct certificate {
    void *x509, *key;           /* of OpenSSL */
    char *pem, *key_pem, *full; /* full: the certificate and its issuer's */
};

struct certificate_wish {
    const char *name;  /* the subject's */
    const char *names; /* "DNS:localhost,IP:127.0.0.1"; NULL: none */
    enum certificate_key key;
    int from_days, to_days;           /* from now; both 0: from yesterday until in 30 days */
    const struct certificate *issuer; /* NULL: itself */
    bool is_ca;
};

/* Aborts on failure. */
void certificate_make(struct certificate *ret_certificate, const struct certificate_wish *wish);
void certificate_free(struct certificate *certificate);
/* Writes text to the file, replacing it by a rename, as tools that renew certificates do; mode as for a secret. */
void certificate_write(const char *path, const char *text);
