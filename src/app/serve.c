#include "app/serve.h"

#include "base/check.h"

#include <signal.h>
#include <unistd.h>

const struct option_group SERVE_OPTIONS[] = {SERVE_GROUPS, {0}};

static void signal_closed(uv_handle_t *handle)
{
    struct serve *serve = handle->data;

    serve->open_signals--;
}

static void serve_node_serving(void *arg, struct node *node)
{
    struct serve *serve = arg;

    if (serve->serving)
        serve->serving(serve->arg, node);
}

static void serve_node_unfit(void *arg)
{
    serve_stop(arg, EXIT_UNFIT);
}

static void serve_node_stopped(void *arg)
{
    struct serve *serve = arg;

    serve->node = NULL;
    uv_close((uv_handle_t *)&serve->terminate, signal_closed);
    uv_close((uv_handle_t *)&serve->interrupt, signal_closed);
    uv_close((uv_handle_t *)&serve->hangup, signal_closed);
}

void serve_stop(struct serve *serve, int code)
{
    if (serve->is_stopping)
        return;
    serve->is_stopping = true;
    serve->code = code;
    node_close(serve->node, code == EXIT_DONE ? serve->settings->drain_ms : 0);
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
    if (serve->node)
        node_reload(serve->node);
}

static void serve_catch(struct serve *serve, uv_signal_t *handle, uv_signal_cb caught, int number)
{
    CHECK(uv_signal_init(serve->loop, handle) == 0);
    handle->data = serve;
    CHECK(uv_signal_start(handle, caught, number) == 0);
    serve->open_signals++;
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
    int code = node_open(serve->node);
    if (code != EXIT_DONE)
        serve_stop(serve, code);
    while (serve->node || serve->open_signals > 0)
        uv_run(loop, UV_RUN_ONCE);
    return serve->code;
}

int serve_command(const struct command_line *line)
{
    struct serve serve;
    uv_loop_t loop;

    CHECK(uv_loop_init(&loop) == 0);
    int code = serve_run(&serve, &loop, &line->settings, NULL, NULL);
    CHECK(uv_loop_close(&loop) == 0);
    if (code == EXIT_DONE)
        LOG(LOG_INFO, "the node has stopped", log_int("pid", getpid()));
    return code;
}
