#include "node_tls.h"

static bool is_unix(const char *address)
{
    return text_starts_with(text_of(address), TEXT("unix:"));
}

/* A client CA that is not asked for would let everyone in. */
static bool check_client_ca(const struct settings *s, struct buf *ret_why)
{
    if (!s->internal_client_ca && s->watch_names[0])
        buf_append_str(ret_why, "--watch-names needs --internal-client-ca: only a certificate proves a name");
    if (!s->internal_client_ca)
        return !s->watch_names[0];
    if (is_unix(s->internal_listen))
        buf_printf(ret_why,
                   "--internal-client-ca needs host:port in --internal-listen: %s speaks no TLS; protect it by "
                   "its folder's permissions",
                   s->internal_listen);
    else if (!s->internal_tls_cert)
        buf_append_str(ret_why, "--internal-client-ca needs --internal-tls-cert and --internal-tls-key: clients show "
                                "certificates only over TLS");
    else
        return true;
    return false;
}

static bool open_public(struct node_tls *tls, uv_loop_t *loop, const struct settings *s, struct buf *ret_why)
{
    const struct listener_tls_settings settings = {
        .listener = TEXT("public"),
        .certificates = {"--tls-cert", s->tls_cert},
        .keys = {"--tls-key", s->tls_key},
        .client_ca = {"", NULL},
        .tickets = tls->tickets,
        .not_after = METRIC_CERT_END_PUBLIC,
    };

    if ((!s->tls_cert && !s->tls_key) || is_unix(s->listen))
        return true;
    tls->public = listener_tls_open(loop, &settings, ret_why);
    return tls->public;
}

static bool open_internal(struct node_tls *tls, uv_loop_t *loop, const struct settings *s, struct buf *ret_why)
{
    const struct listener_tls_settings settings = {
        .listener = TEXT("internal"),
        .certificates = {"--internal-tls-cert", s->internal_tls_cert},
        .keys = {"--internal-tls-key", s->internal_tls_key},
        .client_ca = {"--internal-client-ca", s->internal_client_ca},
        .tickets = tls->tickets,
        .not_after = METRIC_CERT_END_INTERNAL,
    };

    if ((!s->internal_tls_cert && !s->internal_tls_key) || is_unix(s->internal_listen))
        return true;
    tls->internal = listener_tls_open(loop, &settings, ret_why);
    return tls->internal;
}

bool node_tls_open(struct node_tls *tls, uv_loop_t *loop, const struct settings *settings, struct keyring *keyring,
                   struct buf *ret_why)
{
    tls->tickets = ticket_keys_create(keyring);
    return check_client_ca(settings, ret_why) && open_public(tls, loop, settings, ret_why) &&
           open_internal(tls, loop, settings, ret_why);
}

void node_tls_begin(struct node_tls *tls, struct http_server *public_server, struct http_server *internal_server)
{
    if (tls->public)
        listener_tls_begin(tls->public, public_server);
    if (tls->internal)
        listener_tls_begin(tls->internal, internal_server);
}

void node_tls_reload(struct node_tls *tls)
{
    if (tls->public)
        listener_tls_reload(tls->public);
    if (tls->internal)
        listener_tls_reload(tls->internal);
}

unsigned node_tls_close(struct node_tls *tls, void (*closed)(void *arg), void *arg)
{
    struct listener_tls *listeners[] = {tls->public, tls->internal};
    unsigned count = 0;

    for (size_t i = 0; i < 2; i++) {
        if (!listeners[i])
            continue;
        listener_tls_close(listeners[i], closed, arg);
        count++;
    }
    tls->public = tls->internal = NULL;
    return count;
}

void node_tls_finish(struct node_tls *tls)
{
    ticket_keys_destroy(tls->tickets);
    tls->tickets = NULL;
}
