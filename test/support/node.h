/* The real binary, named by CHATELAINE_BINARY, serving on free ports of 127.0.0.1. */
#pragma once
#include "process.h"
#include <stdint.h>

struct node {
    struct process process;
    char ready_path[PROCESS_PATH_BYTES];
    uint16_t port;
    uint16_t internal_port;
};

/* The origin that nodes are started with. */
#define NODE_ORIGIN "https://console.test"

const char *node_binary(void);
/* Starts `serve` and returns when it is ready. If it does not become ready, shows its log and aborts the test.
 * redis_url: or the path of a file with it. more: further arguments up to a NULL; may be NULL. */
void node_start(struct node *node, const char *folder, const char *name, const char *redis_url,
                const char *master_key_path, const char *const *more);
/* The same with another program than node_binary(). */
void node_start_program(struct node *node, const char *program, const char *folder, const char *name,
                        const char *redis_url, const char *master_key_path, const char *const *more);
/* Sends SIGTERM. The node must drain and exit with 0, and its log must contain no report of a sanitizer; otherwise the
 * test is aborted. Does nothing if the node has been stopped. */
void node_stop(struct node *node);
/* node_stop() without the signal, for a test that has sent it itself. */
void node_expect_clean_end(struct node *node);
/* SIGKILL: a crash. */
void node_kill(struct node *node);
/* Its log so far; the caller frees it. */
char *node_log(const struct node *node);
