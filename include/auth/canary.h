/* The canary (src/auth/README.md#the-canary): again and again, a test key of the deployment's own is made, used by
 * every node, revoked, and asked for everywhere. In each partition by itself, and run by one node at a time. Loop
 * thread only. */
#pragma once
#include "auth/key_check.h"
#include "engine/partitions.h"

enum { CANARY_INTERVAL_MIN_MS = 1000 };

struct canary;

struct canary_settings {
    int64_t interval_ms; /* at least CANARY_INTERVAL_MIN_MS */
    struct text node;    /* its name, as in its report; copied */
};

/* The other parts must outlive it. */
struct canary *canary_create(uv_loop_t *loop, const struct canary_settings *settings, struct keyring *keyring,
                             const struct partitions *partitions, struct key_checker *checker);
/* The node drains: it takes part in no run any more, and says so. */
void canary_stop(struct canary *canary);
/* After canary_stop(). ended runs once, later, when nothing is under way any more and all is freed. */
void canary_close(struct canary *canary, void (*ended)(void *arg), void *arg);
