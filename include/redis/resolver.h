/* Finds the Redis to connect to. A link asks it before each connection, and hears of it when the master moves. A link
 * without a resolver connects to its target's host. */
#pragma once
#include "base/list.h"
#include "redis/target.h"
#include <uv.h>

/* One link; embedded in it. list_remove(&follower->node) unsubscribes. */
struct redis_follower {
    struct list node;
    /* Once for each redis_resolver_ask(): the master, or NULL and the reason (a sentence without its full stop). */
    void (*on_master)(void *arg, const struct redis_address *master, const char *why);
    /* The master has moved, or is known for the first time. */
    void (*on_moved)(void *arg, const struct redis_address *master);
    void *arg;
    bool is_asking;
};

enum { REDIS_RESOLVER_SOURCE_BYTES = REDIS_MASTER_NAME_BYTES + 16 };

struct redis_resolver {
    struct list followers;                    /* struct redis_follower */
    const char *what;                         /* who names the master, for sentences: "Sentinel" */
    char source[REDIS_RESOLVER_SOURCE_BYTES]; /* whose address it finds: "master keys" */
    /* A follower needs the address. Runs no callback before it returns. */
    void (*ask)(struct redis_resolver *resolver);
    /* How many replicas could take over from the master, including those that are down. */
    int64_t (*replicas)(const struct redis_resolver *resolver);
    /* How many it has as a rule, where replicas move from one master to another by themselves. NULL: they do not. */
    int64_t (*replicas_usual)(const struct redis_resolver *resolver);
};

void redis_resolver_follow(struct redis_resolver *resolver, struct redis_follower *follower);
/* Runs no callback before it returns. */
void redis_resolver_ask(struct redis_resolver *resolver, struct redis_follower *follower);

/* For implementations: tell all followers, or all that are asking. A notified follower may unsubscribe itself or
 * others. */
void redis_resolver_tell_moved(struct redis_resolver *resolver, const struct redis_address *master);
void redis_resolver_tell_master(struct redis_resolver *resolver, const struct redis_address *master);
void redis_resolver_tell_failure(struct redis_resolver *resolver, const char *why);

/* The rounds in which an implementation asks its servers: one a second and whenever one is needed, never two at once.
 */
struct redis_rounds {
    uv_timer_t timer;
    unsigned due;  /* answers pending in this round; 0: no round */
    bool is_asked; /* start another round after this one */
    bool is_over;
    /* Sends the questions, and counts them with redis_round_expect(); then all have been answered. */
    void (*begin)(void *arg);
    void (*end)(void *arg);
    void *arg;
};
void redis_rounds_start(struct redis_rounds *rounds, uv_loop_t *loop, void (*begin)(void *arg), void (*end)(void *arg),
                        void *arg);
/* Begins a round now, or after the one under way. */
void redis_round_begin(struct redis_rounds *rounds);
void redis_round_expect(struct redis_rounds *rounds, unsigned answers);
/* One answer has come, or never will. */
void redis_round_answered(struct redis_rounds *rounds);
/* No round begins or ends any more. closed runs later; answers may still come until then. */
void redis_rounds_stop(struct redis_rounds *rounds, uv_close_cb closed);

MUST_CHECK bool redis_address_equal(const struct redis_address *a, const struct redis_address *b);
