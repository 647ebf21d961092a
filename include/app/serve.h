/* Running a node until a signal ends it. */
#pragma once
#include "admin/command.h"
#include "app/node.h"

extern const struct option_group SERVE_OPTIONS[];

/* Runs a node on the loop, which may have handles of others, until SIGTERM or SIGINT (a second one exits at once), or
 * *stop is called for by serve_stop(). serving may be NULL. Returns the exit code; nothing of it is left on the loop.
 */
struct serve {
    uv_loop_t *loop;
    struct node *node; /* NULL once it has stopped */
    const struct settings *settings;
    void (*serving)(void *arg, struct node *node);
    void *arg;
    uv_signal_t terminate, interrupt, hangup;
    unsigned open_signals;
    bool is_stopping;
    int code;
};
/* Runs a node on the loop, which may have handles of others, until SIGTERM or SIGINT (a second one exits at once) or
 * serve_stop(). serving may be NULL. Returns the exit code; nothing of its own is left on the loop then. */
MUST_CHECK int serve_run(struct serve *serve, uv_loop_t *loop, const struct settings *settings,
                         void (*serving)(void *arg, struct node *node), void *arg);
/* Drains and stops, with that exit code. Harmless when it is stopping already. */
void serve_stop(struct serve *serve, int code);

int serve_command(const struct command_line *line);
