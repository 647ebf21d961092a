/* A client as gateways and browsers are, while nodes are replaced: it checks live keys at the nodes in turn, and uses
 * console sessions. A request that finds no node, no answer or 503 is repeated once, at the next node. Any answer that
 * is not 200 after that is a failure. One thread of its own; the functions may be called from any other. */
#pragma once
#include "cluster.h"

enum { GATEWAY_METHOD_BYTES = 8, GATEWAY_TARGET_BYTES = 32, GATEWAY_FAILURES_SHOWN = 5 };

struct gateway_counts {
    size_t checks, pages; /* of keys; of sessions */
    size_t retried;       /* of both */
    size_t failed;        /* of both */
};

struct gateway;

struct gateway *gateway_start(struct cluster *cluster);
/* Checks from now on whether this key may do that request. */
void gateway_add_key(struct gateway *gateway, const char *secret, const char *method, const char *target);
/* Uses the session from now on; it must have been begun. */
void gateway_add_session(struct gateway *gateway, const char *token);
/* So far. The first failures have been printed. */
struct gateway_counts gateway_counts(struct gateway *gateway);
/* Waits until each key and each session was used once more. */
void gateway_await_round(struct gateway *gateway);
void gateway_stop(struct gateway *gateway);
