/* Which Redis serves: asked before each connection, and told when another one does. A link without a resolver connects
 * to its target's host. */
#pragma once
#include "base/list.h"
#include "redis/target.h"

/* One link, in its own memory. It stops to follow by list_remove(&follower->node). */
struct redis_follower {
    struct list node;
    /* Once for each ask(): master, or NULL and a sentence without its full stop. */
    void (*on_master)(void *arg, const struct redis_address *master, const char *why);
    /* The master is another one than was told before, or is known for the first time. */
    void (*on_moved)(void *arg, const struct redis_address *master);
    void *arg;
    bool is_asking;
};

/* Neither callback of a follower runs inside these. */
struct redis_resolver {
    void (*follow)(struct redis_resolver *resolver, struct redis_follower *follower);
    void (*ask)(struct redis_resolver *resolver, struct redis_follower *follower);
};
