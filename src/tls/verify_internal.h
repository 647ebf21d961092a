/* Why a server's certificate is refused, in words that lead to the remedy. */
#pragma once
#include <openssl/ssl.h>

/* For SSL_CTX_set_verify(). Leaves the first reason in the session's `detail`; decides nothing. */
int verify_explain(int is_good, X509_STORE_CTX *store);
/* For SSL_CTX_set_cert_verify_callback(), with the context that has pinned certificates: decides by them alone. */
int verify_is_pinned(X509_STORE_CTX *store, void *context);
