#include "verify_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "session_internal.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <string.h>

enum { DETAIL_BYTES = 256, NAMES_SHOWN = 3 };

/* A name of a stranger's certificate may hold any bytes. */
static bool is_plain(struct text name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.ptr[i] <= ' ' || name.ptr[i] > '~')
            return false;
    return name.len > 0;
}

static struct text read_name(const GENERAL_NAME *name, char storage[INET6_ADDRSTRLEN])
{
    const ASN1_STRING *value = name->type == GEN_DNS ? name->d.dNSName : name->d.iPAddress;
    const unsigned char *bytes = ASN1_STRING_get0_data(value);
    int count = ASN1_STRING_length(value);

    if (name->type == GEN_DNS)
        return (struct text){(const char *)bytes, (size_t)count};
    if (count != sizeof(struct in_addr) && count != sizeof(struct in6_addr))
        return (struct text){NULL, 0};
    return text_of(inet_ntop(count == sizeof(struct in_addr) ? AF_INET : AF_INET6, bytes, storage, INET6_ADDRSTRLEN));
}

/* "redis-a, 10.0.0.1"; "…" for those that are left out. */
static void print_names(const X509 *certificate, struct buf *out)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char storage[INET6_ADDRSTRLEN];
    int shown = 0;

    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        struct text text = {NULL, 0};

        if (name->type == GEN_DNS || name->type == GEN_IPADD)
            text = read_name(name, storage);
        if (!is_plain(text) || shown > NAMES_SHOWN)
            continue;
        buf_append_str(out, shown > 0 ? ", " : "");
        buf_append_text(out, shown < NAMES_SHOWN ? text : TEXT("…"));
        shown++;
    }
    if (shown == 0)
        buf_append_str(out, "no name (it has no subjectAltName)");
    GENERAL_NAMES_free(names);
}

static void print_mismatch(X509_STORE_CTX *store, struct buf *out)
{
    X509_VERIFY_PARAM *wanted = X509_STORE_CTX_get0_param(store);
    char *address = X509_VERIFY_PARAM_get1_ip_asc(wanted);
    const char *host = X509_VERIFY_PARAM_get0_host(wanted, 0);

    buf_append_str(out, "its certificate is for ");
    print_names(X509_STORE_CTX_get_current_cert(store), out);
    buf_printf(out, ", not for %s", address ? address : host ? host : "this server");
    OPENSSL_free(address);
}

static void print_time(const ASN1_TIME *time, const char *what, struct buf *out)
{
    char when[CLOCK_RFC3339_BYTES];
    struct tm parts;

    clock_print_rfc3339(ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) * 1000 : 0, when);
    buf_printf(out, "its certificate %s %s", what, when);
}

static void print_verdict(X509_STORE_CTX *store, struct buf *out)
{
    const X509 *certificate = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store);

    switch (error) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        print_mismatch(store, out);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        print_time(X509_get0_notAfter(certificate), "expired at", out);
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        print_time(X509_get0_notBefore(certificate), "is not valid before", out);
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* another CA of the same name */
        buf_append_str(out, "its certificate comes from an unknown CA");
        break;
    default:
        buf_printf(out, "its certificate is refused: %s", X509_verify_cert_error_string(error));
    }
}

static struct tls_session *session_of(X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());

    return SSL_get_app_data(ssl);
}

int verify_explain(int is_good, X509_STORE_CTX *store)
{
    struct tls_session *session = session_of(store);
    struct buf out = BUF_FIXED(DETAIL_BYTES);

    if (!is_good && !session->detail) {
        print_verdict(store, &out);
        session->detail = mem_copy_text(out.ptr, out.len);
    }
    return is_good;
}

int verify_is_pinned(X509_STORE_CTX *store, void *context)
{
    const STACK_OF(X509) *pinned = ((struct tls_context *)context)->pinned;
    struct tls_session *session = session_of(store);
    X509 *shown = X509_STORE_CTX_get0_cert(store);
    const char *why = "its certificate is not the one expected";

    for (int i = 0; i < sk_X509_num(pinned); i++) {
        if (X509_cmp(shown, sk_X509_value(pinned, i)) == 0)
            return 1;
        if (X509_check_issued(sk_X509_value(pinned, i), shown) == X509_V_OK)
            why = "its certificate is not the one expected, which is that of its CA";
    }
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
    if (!session->detail)
        session->detail = mem_copy_text(why, strlen(why));
    return 0;
}
