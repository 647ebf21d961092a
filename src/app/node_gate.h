/* The gate on the node's loop: its clock, its timer, and what happens when its work is over. */
#pragma once
#include "api/gate.h"
#include "config/settings.h"
#include <uv.h>

struct node_gate;

struct node_gate *node_gate_create(uv_loop_t *loop, const struct settings *settings);
struct gate *node_gate_of(struct node_gate *host);
/* From now on nothing passes; what waits is ended. Before the servers close. */
void node_gate_shut(struct node_gate *host);
/* After them, when no ticket is left. */
void node_gate_close(struct node_gate *host, void (*closed)(void *arg), void *arg);
