#include "listener_tls.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

enum {
    WHY_MAX_BYTES = 1024,
    WATCH_MS = 2000,
    /* Certificate and key change one after the other. They are loaded once nothing has changed for this long. */
    SETTLE_MS = 1000,
    DAY_S = 24 * 60 * 60,
    FILES_TOLD_BYTES = 200,
    WATCHES_MAX = 2 * TLS_PAIRS_MAX + 1,
    MS_PER_S = 1000,
};

struct listener_tls {
    uv_loop_t *loop;
    struct listener_tls_settings settings;
    struct tls_context *context;
    struct http_server *server; /* NULL until it begins */
    bool has_rejected;          /* the files as they are now */
    uv_timer_t settle_timer, day_timer;
    uv_fs_poll_t watches[WATCHES_MAX];
    size_t watch_count;
    size_t open_handles; /* while closing */
    void (*closed)(void *arg);
    void *closed_arg;
};

static struct tls_context *load(const struct listener_tls *tls, struct buf *ret_why)
{
    const struct listener_tls_settings *settings = &tls->settings;
    const struct tls_server_settings server = {
        .service = settings->listener,
        .find_ticket_key = ticket_keys_find,
        .arg = settings->tickets,
    };

    return tls_files_open_server(settings->certificates, settings->keys, settings->client_ca, &server, ret_why);
}

static int64_t left_s(const struct tls_context *context)
{
    return tls_context_not_after_s(context) - clock_wall_ms() / MS_PER_S;
}

/* NULL: its certificates are valid. */
static const char *why_invalid(const struct tls_context *context)
{
    const char *outdated = tls_context_outdated(context);

    return outdated || left_s(context) >= 0 ? outdated : "it has expired";
}

static void warn_of_expiry(const struct listener_tls *tls)
{
    if (why_invalid(tls->context))
        LOG(LOG_ERROR, "a TLS certificate is not valid now: clients refuse this listener",
            log_text("listener", tls->settings.listener), log_str("why", why_invalid(tls->context)));
    else if (left_s(tls->context) < LOSS_CERTIFICATE_S)
        LOG(LOG_WARN, LOSSES[tls->settings.ends].message, log_text("listener", tls->settings.listener),
            log_str("files", tls->settings.certificates.paths), log_int("days", left_s(tls->context) / DAY_S));
}

/* Takes over the context. */
static void use(struct listener_tls *tls, struct tls_context *context)
{
    tls_context_release(tls->context);
    tls->context = context;
    metric_set(LOSSES[tls->settings.ends].metric, tls_context_not_after_s(context));
    if (tls->server)
        http_server_set_tls(tls->server, context);
    warn_of_expiry(tls);
}

struct listener_tls *listener_tls_open(uv_loop_t *loop, const struct listener_tls_settings *settings,
                                       struct buf *ret_why)
{
    struct listener_tls *tls = mem_alloc(sizeof *tls);
    struct tls_context *context;

    tls->loop = loop;
    tls->settings = *settings;
    context = load(tls, ret_why);
    if (!context) {
        free(tls);
        return NULL;
    }
    CHECK(uv_timer_init(loop, &tls->settle_timer) == 0 && uv_timer_init(loop, &tls->day_timer) == 0);
    tls->settle_timer.data = tls->day_timer.data = tls;
    use(tls, context);
    return tls;
}

void listener_tls_reload(struct listener_tls *tls)
{
    struct buf why = BUF_FIXED(WHY_MAX_BYTES);
    struct tls_context *context;

    context = load(tls, &why);
    if (context && why_invalid(context) && !why_invalid(tls->context)) {
        buf_append_text(&why, text_of(why_invalid(context)));
        tls_context_release(context);
        context = NULL;
    }
    tls->has_rejected = !context;
    if (!context) {
        metric_add(METRIC_TLS_RELOAD_FAILED, 1);
        LOG(LOG_ERROR, "TLS certificates rejected: the old ones stay in use",
            log_text("listener", tls->settings.listener), log_text("why", buf_text(&why)));
        return;
    }
    metric_add(METRIC_TLS_RELOADED, 1);
    LOG(LOG_INFO, "TLS certificates reloaded", log_text("listener", tls->settings.listener),
        log_int("not_after_s", tls_context_not_after_s(context)));
    use(tls, context);
}

void listener_tls_put(const struct listener_tls *tls, struct json_writer *w)
{
    struct text files = text_of(tls->settings.certificates.paths);

    json_object_begin(w);
    json_put_member(w, "listener", tls->settings.listener);
    files.len = files.len > FILES_TOLD_BYTES ? FILES_TOLD_BYTES : files.len;
    json_put_member(w, "files", files);
    json_put_number(w, "not_after_s", tls_context_not_after_s(tls->context));
    json_put_flag(w, "has_rejected", tls->has_rejected);
    json_object_end(w);
}

/* Watching. */

static void on_settled(uv_timer_t *timer)
{
    listener_tls_reload(timer->data);
}

static void on_day(uv_timer_t *timer)
{
    warn_of_expiry(timer->data);
}

static void on_change(uv_fs_poll_t *watch, int status UNUSED, const uv_stat_t *before UNUSED,
                      const uv_stat_t *after UNUSED)
{
    struct listener_tls *tls = watch->data;

    uv_timer_start(&tls->settle_timer, on_settled, SETTLE_MS, 0);
}

/* Looks at the files rather than at events of their folders: it sees through chains of symbolic links, as Kubernetes
 * makes them, and works on every file system. */
static void watch(struct listener_tls *tls, struct tls_file_option files)
{
    struct text rest = text_of(files.paths ? files.paths : ""), part;

    while (files.paths && text_next(&rest, ',', &part)) {
        char *path = mem_copy_text(part.ptr, part.len);
        uv_fs_poll_t *handle = &tls->watches[tls->watch_count++];

        CHECK(tls->watch_count <= WATCHES_MAX && uv_fs_poll_init(tls->loop, handle) == 0);
        handle->data = tls;
        CHECK(uv_fs_poll_start(handle, on_change, path, WATCH_MS) == 0);
        free(path);
    }
}

void listener_tls_begin(struct listener_tls *tls, struct http_server *server)
{
    tls->server = server;
    http_server_set_tls(server, tls->context);
    watch(tls, tls->settings.certificates);
    watch(tls, tls->settings.keys);
    watch(tls, tls->settings.client_ca);
    uv_timer_start(&tls->day_timer, on_day, (uint64_t)DAY_S * MS_PER_S, (uint64_t)DAY_S * MS_PER_S);
}

/* Its end. */

static void on_handle_closed(uv_handle_t *handle)
{
    struct listener_tls *tls = handle->data;
    void (*closed)(void *arg) = tls->closed;
    void *arg = tls->closed_arg;

    if (--tls->open_handles > 0)
        return;
    tls_context_release(tls->context);
    free(tls);
    closed(arg);
}

void listener_tls_close(struct listener_tls *tls, void (*closed)(void *arg), void *arg)
{
    tls->closed = closed;
    tls->closed_arg = arg;
    tls->open_handles = 2 + tls->watch_count;
    uv_close((uv_handle_t *)&tls->settle_timer, on_handle_closed);
    uv_close((uv_handle_t *)&tls->day_timer, on_handle_closed);
    for (size_t i = 0; i < tls->watch_count; i++)
        uv_close((uv_handle_t *)&tls->watches[i], on_handle_closed);
}
