/* Finds the Redis to connect to. A link asks it before each connection, and hears of it when the master moves. A link
 * without a resolver connects to its target's host. */
#pragma once
#include "base/list.h"
#include "redis/target.h"

/* One link; embedded in it. list_remove(&follower->node) unsubscribes. */
struct redis_follower {
    struct list node;
    /* Once for each ask(): the master, or NULL and the reason (a sentence without its full stop). */
    void (*on_master)(void *arg, const struct redis_address *master, const char *why);
    /* The master has moved, or is known for the first time. */
    void (*on_moved)(void *arg, const struct redis_address *master);
    void *arg;
    bool is_asking;
};

/* Neither function runs a callback before it returns. */
struct redis_resolver {
    void (*follow)(struct redis_resolver *resolver, struct redis_follower *follower);
    void (*ask)(struct redis_resolver *resolver, struct redis_follower *follower);
};
