#include "node_tls.h"

static bool is_unix(const char *address)
{
    return text_starts_with(text_of(address), TEXT("unix:"));
}

/* A client CA that is not asked for would let everyone in. */
bool node_tls_validate_client_ca(const struct settings *s, struct buf *ret_why)
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

static struct listener_tls_settings public_of(const struct settings *s)
{
    return (struct listener_tls_settings){
        .listener = TEXT("public"),
        .certificates = {"--tls-cert", s->tls_cert},
        .keys = {"--tls-key", s->tls_key},
        .client_ca = {"", NULL},
        .ends = LOSS_PUBLIC_CERTIFICATE,
    };
}

static struct listener_tls_settings internal_of(const struct settings *s)
{
    return (struct listener_tls_settings){
        .listener = TEXT("internal"),
        .certificates = {"--internal-tls-cert", s->internal_tls_cert},
        .keys = {"--internal-tls-key", s->internal_tls_key},
        .client_ca = {"--internal-client-ca", s->internal_client_ca},
        .ends = LOSS_INTERNAL_CERTIFICATE,
    };
}

static bool is_on(const struct listener_tls_settings *settings, const char *address)
{
    return (settings->certificates.paths || settings->keys.paths) && !is_unix(address);
}

static bool validate_files(const struct listener_tls_settings *settings, const char *address, struct buf *ret_why)
{
    const struct tls_server_settings server = {.service = settings->listener};
    struct tls_context *context;

    if (!is_on(settings, address))
        return true;
    context = tls_files_open_server(settings->certificates, settings->keys, settings->client_ca, &server, ret_why);
    if (!context)
        return false;
    tls_context_release(context);
    return true;
}

bool node_tls_validate_public(const struct settings *settings, struct buf *ret_why)
{
    const struct listener_tls_settings listener = public_of(settings);

    return validate_files(&listener, settings->listen, ret_why);
}

bool node_tls_validate_internal(const struct settings *settings, struct buf *ret_why)
{
    const struct listener_tls_settings listener = internal_of(settings);

    return validate_files(&listener, settings->internal_listen, ret_why);
}

/* False: its files cannot be used. */
static bool open_listener(struct listener_tls_settings settings, const struct node_tls *tls, uv_loop_t *loop,
                          const char *address, struct listener_tls **ret_listener, struct buf *ret_why)
{
    if (!is_on(&settings, address))
        return true;
    settings.tickets = tls->tickets;
    *ret_listener = listener_tls_open(loop, &settings, ret_why);
    return *ret_listener;
}

bool node_tls_open(struct node_tls *tls, uv_loop_t *loop, const struct settings *settings, struct keyring *keyring,
                   struct buf *ret_why)
{
    tls->tickets = ticket_keys_create(keyring);
    return open_listener(public_of(settings), tls, loop, settings->listen, &tls->public, ret_why) &&
           open_listener(internal_of(settings), tls, loop, settings->internal_listen, &tls->internal, ret_why);
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

void node_tls_put(const struct node_tls *tls, struct json_writer *w)
{
    json_array_begin(w);
    if (tls->public)
        listener_tls_put(tls->public, w);
    if (tls->internal)
        listener_tls_put(tls->internal, w);
    json_array_end(w);
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
