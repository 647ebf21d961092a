#include "certificates.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/random.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 86400 };

static EVP_PKEY *make_key(enum certificate_key kind)
{
    switch (kind) {
    case CERTIFICATE_P256:
        return EVP_EC_gen("P-256");
    case CERTIFICATE_RSA_2048:
        return EVP_RSA_gen(2048u);
    case CERTIFICATE_RSA_1024:
        return EVP_RSA_gen(1024u);
    }
    UNREACHABLE();
}

static void add_extension(X509 *x509, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_nconf_nid(NULL, NULL, nid, value);

    CHECK(extension && X509_add_ext(x509, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

static void set_validity(X509 *x509, const struct certificate_wish *wish)
{
    bool is_usual = wish->from_days == 0 && wish->to_days == 0;

    CHECK(X509_gmtime_adj(X509_getm_notBefore(x509), (long)(is_usual ? -1 : wish->from_days) * DAY_S));
    CHECK(X509_gmtime_adj(X509_getm_notAfter(x509), (long)(is_usual ? 30 : wish->to_days) * DAY_S));
}

static X509 *make_x509(const struct certificate_wish *wish, EVP_PKEY *key)
{
    X509 *x509 = X509_new();
    X509_NAME *name = X509_NAME_new();

    CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)wish->name, -1, -1, 0) == 1);
    CHECK(X509_set_version(x509, X509_VERSION_3) == 1 && X509_set_subject_name(x509, name) == 1);
    CHECK(X509_set_issuer_name(x509, wish->issuer ? X509_get_subject_name(wish->issuer->x509) : name) == 1);
    X509_NAME_free(name);
    CHECK(ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), 1 + random_below(INT32_MAX)) == 1);
    set_validity(x509, wish);
    CHECK(X509_set_pubkey(x509, key) == 1);
    add_extension(x509, NID_basic_constraints, wish->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (wish->names)
        add_extension(x509, NID_subject_alt_name, wish->names);
    CHECK(X509_sign(x509, wish->issuer ? wish->issuer->key : key, EVP_sha256()) > 0);
    return x509;
}

static char *take_text(BIO *bio)
{
    char *bytes;
    long count = BIO_get_mem_data(bio, &bytes);
    char *copy = mem_copy_text(bytes, (size_t)count);

    BIO_free(bio);
    return copy;
}

static char *print_key(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_mem());

    CHECK(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    return take_text(bio);
}

static char *print_certificates(X509 *first, X509 *second)
{
    BIO *bio = BIO_new(BIO_s_mem());

    CHECK(PEM_write_bio_X509(bio, first) == 1 && (!second || PEM_write_bio_X509(bio, second) == 1));
    return take_text(bio);
}

void certificate_make(struct certificate *ret_certificate, const struct certificate_wish *wish)
{
    EVP_PKEY *key = make_key(wish->key);
    X509 *x509 = make_x509(wish, key);

    CHECK(key);
    *ret_certificate = (struct certificate){
        .x509 = x509,
        .key = key,
        .pem = print_certificates(x509, NULL),
        .key_pem = print_key(key),
        .full = print_certificates(x509, wish->issuer ? wish->issuer->x509 : NULL),
    };
}

void certificate_free(struct certificate *certificate)
{
    X509_free(certificate->x509);
    EVP_PKEY_free(certificate->key);
    free(certificate->pem);
    free(certificate->key_pem);
    free(certificate->full);
}

void certificate_write(const char *path, const char *text)
{
    char temporary[256];
    int fd;

    CHECK((size_t)snprintf(temporary, sizeof temporary, "%s.new", path) < sizeof temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    CHECK(rename(temporary, path) == 0);
}
