/* The parts of a node: node.c starts them, node_close.c ends them. */
#pragma once
#include "app/node.h"
#include "node_gate.h"
#include "node_report.h"
#include "node_settings.h"
#include "node_tls.h"

#include "api/service.h"
#include "auth/canary.h"
#include "auth/logged_endings.h"
#include "auth/table_listener.h"
#include "console/console.h"
#include "lease/lease.h"
#include "trail/audit_keeper.h"

enum { FIXED_HEADERS_MAX_BYTES = 512, NODE_WHY_MAX_BYTES = 1024 };

/* One partition of the store. */
struct node_part {
    struct node *node;
    struct store *store;
    enum { DURABILITY_NOT_NOTED, DURABILITY_IS_NOTED, DURABILITY_NOTED } durability; /* in the store, by this node */
};

struct node {
    uv_loop_t *loop;
    const struct settings *settings;
    struct node_events events;
    int64_t clock_zero_ms; /* clock_zero_ms() when it was created */
    struct turn *turn;     /* closed last, so that stopped() always runs later, even if node_open() failed */

    struct node_settings own; /* made of the settings */
    struct partitions *partitions;
    struct node_part *parts;     /* of the partitions, in their order; NULL before there are any, as are members */
    struct membership **members; /* of the same */
    struct startup_gate *gate;
    struct key_checker *checker;
    struct password_pool *passwords;
    struct usage *usage;
    struct node_gate *work_gate;
    struct shared_table *table;            /* NULL: none */
    struct table_listener *table_listener; /* the same */
    struct watch_feed *watch_feed;         /* NULL: none */
    struct node_report *report;            /* for operators; NULL until the node listens */
    struct canary *canary;                 /* NULL: none, or closed */
    struct revocation_log *revocation_log; /* NULL: none */
    struct audit_log *audit_log;           /* NULL: none */
    struct logged_endings *logged_endings; /* NULL: neither of these logs */
    struct audit_keeper *audit_keeper;     /* the same */
    struct service service;
    struct console console;
    struct http_server *public_server, *internal_server;
    struct node_tls tls;

    char fixed_headers[FIXED_HEADERS_MAX_BYTES];
    char address[HTTP_ADDRESS_BYTES], internal_address[HTTP_ADDRESS_BYTES];
    bool is_serving; /* has been ready once */
    bool is_stopping;
    int64_t drain_ms;
    size_t step;      /* of the teardown */
    unsigned pending; /* completions that the step waits for */
};

/* In node_table.c: nothing without --table. Returns EXIT_DONE, or the exit status when it has told why not. */
MUST_CHECK int node_create_table(struct node *node);
MUST_CHECK int node_serve_table(struct node *node);
/* In node_look.c: looks again at what the node (arg) has opened, and does what is needed; call each second. */
void node_look(void *arg);
