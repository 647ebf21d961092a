/* TLS of one listener: loads its certificates, watches their files, and replaces them without cutting a connection. */
#pragma once
#include "base/json.h"
#include "base/loss.h"
#include "config/tls_files.h"
#include "http/server.h"
#include "ticket_keys.h"

struct listener_tls;

struct listener_tls_settings {
    struct text listener; /* "public", "internal" */
    struct tls_file_option certificates, keys, client_ca;
    struct ticket_keys *tickets; /* must outlive it */
    enum loss ends;              /* its metric says when the first certificate expires */
};

/* NULL: the files cannot be used, with one sentence in ret_why. A certificate that is not valid by this machine's clock
 * is used, with an error in the log: an expired one of one listener must not stop the other. */
struct listener_tls *listener_tls_open(uv_loop_t *loop, const struct listener_tls_settings *settings,
                                       struct buf *ret_why);
/* From now on the server's new connections speak TLS, and changes of the files are noticed. */
void listener_tls_begin(struct listener_tls *tls, struct http_server *server);
/* Loads the files again. If they cannot be used, or a valid certificate would become one that is not, the certificates
 * stay as they are, and an error is logged. */
void listener_tls_reload(struct listener_tls *tls);
/* What a report says of it: an object with the listener, its files, when the first certificate expires, and whether
 * changed ones were rejected. */
void listener_tls_put(const struct listener_tls *tls, struct json_writer *w);
/* closed runs once, later; by then it is freed. Call it before the server is freed. */
void listener_tls_close(struct listener_tls *tls, void (*closed)(void *arg), void *arg);
