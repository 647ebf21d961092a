/* One node on a loop, from settings to served requests. Teardown reverses the order of setup. */
#pragma once
#include "config/settings.h"
#include "http/server.h"
#include <uv.h>

struct membership;
struct node;
struct store;

struct node_events {
    /* The store has become ready for the first time, so the node serves. */
    void (*serving)(void *arg, struct node *node);
    /* Redis cannot guarantee revocations, or the address is taken meanwhile. The node has printed why: stop it, and
     * exit with that code. */
    void (*unfit)(void *arg, int code);
    /* The node is torn down and freed. Runs once, as the last event. */
    void (*stopped)(void *arg);
    void *arg;
};

struct node *node_create(uv_loop_t *loop, const struct settings *settings, const struct node_events *events);
/* Sets up the node and listens. Returns EXIT_DONE, or an exit code after printing an error. Call node_close() in both
 * cases. */
MUST_CHECK int node_open(struct node *node);
/* Answers requests for at most drain_ms, until nobody sends any, writes pending usage counts, and closes everything. */
void node_close(struct node *node, int64_t drain_ms);
/* Reloads the policy file, and looks whether the logs were renamed. A policy with a mistake is logged, and the old one
 * stays in use. */
void node_reload(struct node *node);
/* A node's present state, for a status line. Pointers are NULL before node_open() and once the node stops. */
struct node_view {
    bool is_serving; /* has been ready once */
    bool is_stopping;
    /* Of one partition: the first that is not ready, or else the first without a lease, or else the first. */
    const struct store *store;
    const struct membership *member;
    unsigned partitions, troubled; /* how many there are, and how many are not ready, or else without a lease */
    size_t connections;            /* of both listeners */
};
struct node_view node_view(const struct node *node);
/* One line without its end, such as "serves; checks are answered from memory". */
void node_view_print(const struct node_view *view, struct buf *out);
/* The listening addresses, with the actual ports. */
const char *node_address(const struct node *node);
const char *node_internal_address(const struct node *node);
