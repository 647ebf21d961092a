/* One node on a loop: from settings to served requests, built up in one order and torn down in the opposite one. */
#pragma once
#include "config/settings.h"
#include "http/server.h"
#include <uv.h>

struct node;

struct node_events {
    /* The store is ready for the first time: the node serves. */
    void (*serving)(void *arg, struct node *node);
    /* Redis cannot keep the promise; the node has said so and should be stopped. */
    void (*unfit)(void *arg);
    /* Torn down and freed; runs once, last. */
    void (*stopped)(void *arg);
    void *arg;
};

struct node *node_create(uv_loop_t *loop, const struct settings *settings, const struct node_events *events);
/* Builds and listens. EXIT_DONE, or the exit code after printing an error. Either way node_close() ends it. */
MUST_CHECK int node_open(struct node *node);
/* Accepts no new connections, lets requests finish within drain_ms, writes the counted uses, and closes everything. */
void node_close(struct node *node, int64_t drain_ms);
/* Reloads the policy file and reopens the revocation log. A failure changes nothing and is logged. */
void node_reload(struct node *node);
/* With the actual ports. */
const char *node_address(const struct node *node);
const char *node_internal_address(const struct node *node);
