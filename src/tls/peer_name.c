#include "peer_name_internal.h"

#include "base/encode.h"
#include "base/text.h"

#include <openssl/x509v3.h>
#include <string.h>

enum { FINGERPRINT_BYTES = 32 };

/* A name stands in settings, between commas, and in logs. */
static bool is_usable(struct text name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] < ' ' || name.ptr[i] > '~' || name.ptr[i] == ',')
            return false;
    return name.len > 0 && name.len < TLS_PEER_NAME_BYTES && name.ptr[0] != ' ' && name.ptr[name.len - 1] != ' ';
}

static bool take(const ASN1_STRING *value, char ret_name[TLS_PEER_NAME_BYTES])
{
    const struct text name = {(const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value)};

    if (!is_usable(name))
        return false;
    memcpy(ret_name, name.ptr, name.len);
    ret_name[name.len] = '\0';
    return true;
}

/* The first name that may be one, usable or not. NULL: there is none. */
static const ASN1_STRING *first_alternative(const GENERAL_NAMES *names)
{
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);

        if (name->type == GEN_DNS)
            return name->d.dNSName;
        if (name->type == GEN_URI)
            return name->d.uniformResourceIdentifier;
    }
    return NULL;
}

static const ASN1_STRING *common_name(const X509 *certificate)
{
    const X509_NAME *subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

    return at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
}

static void print_fingerprint(const X509 *certificate, char ret_name[TLS_PEER_NAME_BYTES])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    struct buf out = BUF_OVER(ret_name, TLS_PEER_NAME_BYTES - 1);

    buf_append_str(&out, "sha256:");
    if (X509_digest(certificate, EVP_sha256(), digest, &bytes) == 1 && bytes == FINGERPRINT_BYTES)
        encode_hex(&out, digest, bytes);
    ret_name[out.len] = '\0';
}

void peer_name_read(const X509 *certificate, char ret_name[TLS_PEER_NAME_BYTES])
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    const ASN1_STRING *name = first_alternative(names);

    if (!name)
        name = common_name(certificate);
    if (!name || !take(name, ret_name))
        print_fingerprint(certificate, ret_name);
    GENERAL_NAMES_free(names);
}
