/* TLS contexts from the files that options name. Keys are read by the same rules as master keys (config/key_file.h).
 * Each function returns NULL on failure, with one sentence in ret_why that names option, file and reason. A file that
 * should hold certificates and holds none is such a failure, whichever option names it. */
#pragma once
#include "tls/context.h"

/* An option and what it was given: a path, or paths separated by commas; NULL: nothing. */
struct tls_file_option {
    const char *option; /* such as "--tls-cert" */
    const char *paths;
};

/* settings: pairs and client_ca are filled from the files, the rest is the caller's. certificates and keys name equally
 * many files, the n-th key being that of the n-th certificate. */
struct tls_context *tls_files_open_server(struct tls_file_option certificates, struct tls_file_option keys,
                                          struct tls_file_option client_ca, const struct tls_server_settings *settings,
                                          struct buf *ret_why);

/* Any of the three may have no path, but certificate and key only together. */
struct tls_context *tls_files_open_client(struct tls_file_option ca, struct tls_file_option certificate,
                                          struct tls_file_option key, struct buf *ret_why);

/* See tls_context_create_pinned(). */
struct tls_context *tls_files_open_pinned(struct tls_file_option certificates, struct buf *ret_why);
