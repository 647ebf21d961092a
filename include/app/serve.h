/* Runs a node until a signal stops it. */
#pragma once
#include "admin/command.h"
#include "app/node.h"
#include "app/notifier.h"

extern const struct option_group SERVE_OPTIONS[];

/* The state of serve_run(). Callers may read node. */
struct serve {
    uv_loop_t *loop;
    struct node *node; /* NULL once it has stopped */
    const struct settings *settings;
    void (*serving)(void *arg, struct node *node);
    void *arg;
    uv_signal_t terminate, interrupt, hangup;
    struct notifier *notifier; /* NULL once it is being closed */
    unsigned open_handles;     /* the signals and the notifier */
    bool is_stopping;
    int code;
};
/* Runs a node until SIGTERM, SIGINT (a second one exits at once) or serve_stop(). The loop may have other handles.
 * serving may be NULL. Returns the exit code, with none of its own handles left on the loop. */
MUST_CHECK int serve_run(struct serve *serve, uv_loop_t *loop, const struct settings *settings,
                         void (*serving)(void *arg, struct node *node), void *arg);
/* Stops the node; serve_run() then returns code. Drains first if code is EXIT_DONE. Does nothing if the node is already
 * stopping. */
void serve_stop(struct serve *serve, int code);

int serve_command(const struct command_line *line);
