#include "app/serve.h"

#include "base/check.h"
#include "engine/store.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { SERVE_TROUBLE_MAX_BYTES = 2048 };

const struct option_group SERVE_OPTIONS[] = {SERVE_GROUPS, {0}};

static void signal_closed(uv_handle_t *handle)
{
    struct serve *serve = handle->data;

    serve->open_handles--;
}

static void notifier_closed(void *arg)
{
    struct serve *serve = arg;

    serve->open_handles--;
}

/* A store without an account waits for a person, so nothing is gained by waiting with it. */
static void serve_look(void *arg, struct notifier_view *ret_view)
{
    const struct serve *serve = arg;
    struct node_view view = node_view(serve->node);
    struct buf line = BUF_FIXED(SERVE_TROUBLE_MAX_BYTES);

    ret_view->is_ready = view.is_serving || (view.store && store_is_empty(view.store));
    ret_view->is_stopping = view.is_stopping;
    if (serve->is_stopping && serve->code != EXIT_DONE)
        buf_printf(&line, "stops: %s", command_failure());
    else
        node_view_print(&view, &line);
    snprintf(ret_view->status, sizeof ret_view->status, "%.*s", TEXT_ARG(buf_text(&line)));
}

static void serve_node_serving(void *arg, struct node *node)
{
    struct serve *serve = arg;

    notifier_look(serve->notifier);
    if (serve->serving)
        serve->serving(serve->arg, node);
}

static void serve_node_unfit(void *arg, int code)
{
    serve_stop(arg, code);
}

static void serve_node_stopped(void *arg)
{
    struct serve *serve = arg;

    serve->node = NULL;
    uv_close((uv_handle_t *)&serve->terminate, signal_closed);
    uv_close((uv_handle_t *)&serve->interrupt, signal_closed);
    uv_close((uv_handle_t *)&serve->hangup, signal_closed);
    notifier_close(serve->notifier, notifier_closed, serve);
    serve->notifier = NULL;
}

void serve_stop(struct serve *serve, int code)
{
    if (serve->is_stopping)
        return;
    serve->is_stopping = true;
    serve->code = code;
    node_close(serve->node, code == EXIT_DONE ? serve->settings->drain_ms : 0);
    notifier_look(serve->notifier);
}

static void serve_signalled(uv_signal_t *handle, int number)
{
    struct serve *serve = handle->data;

    if (serve->is_stopping) {
        LOG(LOG_WARN, "second signal: the node exits at once and drops requests under way", log_int("signal", number));
        _exit(EXIT_FAILED);
    }
    LOG(LOG_INFO, "the node drains", log_int("signal", number), log_int("at_most_ms", serve->settings->drain_ms));
    serve_stop(serve, EXIT_DONE);
}

static void serve_hung_up(uv_signal_t *handle, int number)
{
    struct serve *serve = handle->data;

    (void)number;
    if (!serve->node)
        return;
    notifier_reload_begins(serve->notifier);
    node_reload(serve->node);
    notifier_reload_ended(serve->notifier);
}

static void serve_catch(struct serve *serve, uv_signal_t *handle, uv_signal_cb caught, int number)
{
    CHECK(uv_signal_init(serve->loop, handle) == 0);
    handle->data = serve;
    CHECK(uv_signal_start(handle, caught, number) == 0);
    serve->open_handles++;
}

int serve_run(struct serve *serve, uv_loop_t *loop, const struct settings *settings,
              void (*serving)(void *arg, struct node *node), void *arg)
{
    const struct node_events events = {
        .serving = serve_node_serving, .unfit = serve_node_unfit, .stopped = serve_node_stopped, .arg = serve};

    *serve = (struct serve){.loop = loop, .settings = settings, .serving = serving, .arg = arg};
    serve_catch(serve, &serve->terminate, serve_signalled, SIGTERM);
    serve_catch(serve, &serve->interrupt, serve_signalled, SIGINT);
    serve_catch(serve, &serve->hangup, serve_hung_up, SIGHUP);
    serve->node = node_create(loop, settings, &events);
    serve->notifier = notifier_open(loop, NOTIFIER_PATIENCE_MS, serve_look, serve);
    serve->open_handles++;
    int code = node_open(serve->node);
    if (code != EXIT_DONE)
        serve_stop(serve, code);
    while (serve->node || serve->open_handles > 0)
        uv_run(loop, UV_RUN_ONCE);
    return serve->code;
}

static void warn_of_unknown(const struct unknown_settings *unknown)
{
    for (size_t i = 0; i < unknown->count; i++)
        LOG(LOG_WARN, "unknown setting: it has no effect", log_str("name", unknown->of[i].name),
            log_str("meant", unknown->of[i].meant),
            log_str("where", unknown->of[i].where ? unknown->of[i].where : "environment"));
}

int serve_command(const struct command_line *line)
{
    struct serve serve;
    uv_loop_t loop;

    warn_of_unknown(&line->unknown);

    CHECK(uv_loop_init(&loop) == 0);
    int code = serve_run(&serve, &loop, &line->settings, NULL, NULL);
    CHECK(uv_loop_close(&loop) == 0);
    if (code == EXIT_DONE)
        LOG(LOG_INFO, "the node has stopped", log_int("pid", getpid()));
    return code;
}
