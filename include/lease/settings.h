/* What leases stand on: the connections of a store, and the scripts that it runs for them. */
#pragma once
#include "core/id.h"
#include "redis/group.h"

enum lease_answer {
    LEASE_DONE,    /* the script has run, and as many replicas have acknowledged it as must */
    LEASE_TOO_FEW, /* it has run, but fewer have in time */
    LEASE_FAILED,  /* nobody knows, or it was refused */
};
typedef void lease_answered(void *arg, enum lease_answer answer);

/* How a revocation that was told again ended. */
enum lease_again {
    LEASE_AGAIN_REVOKED,
    LEASE_AGAIN_NO_KEY, /* that key is lost as well */
    LEASE_AGAIN_FAILED,
};

struct lease_settings {
    uv_loop_t *loop;
    const char *prefix; /* of all names in Redis; outlives the leases, as do the pointers that follow */
    uint32_t timeout_ms;
    int64_t min_replicas;            /* that must have a heartbeat before it grants a lease; 0: none */
    struct redis_resolver *resolver; /* who tells which Redis serves; NULL: the target names it, for good */
    bool accepts_loss;               /* of what was acknowledged: --unsafe-redis */
    struct redis_group *group;       /* all connections to that Redis; these among them: */
    struct redis_link *reads, *scripts, *changes;
    /* Run node_heartbeat.lua, or node_leave.lua, which waits for no replica, with these arguments (copied). done runs
     * once, later. */
    void (*heartbeat)(void *arg, size_t argc, const struct text *argv, lease_answered *done, void *done_arg);
    void (*leave)(void *arg, size_t argc, const struct text *argv, lease_answered *done, void *done_arg);
    /* Runs key_revoke.lua once more, and node_settle.lua as the change of that number; though the store lacks what was
     * acknowledged. done runs once, later. */
    void (*revoke_again)(void *arg, const struct id *key, struct text actor,
                         void (*done)(void *arg, enum lease_again again), void *done_arg);
    void (*settle)(void *arg, uint64_t number, void (*done)(void *arg, bool is_done), void *done_arg);

    void (*on_lease)(void *arg);                       /* it was gained or lost */
    void (*on_doubt)(void *arg);                       /* whether the store is ours is to be looked at again soon */
    void (*on_settled)(void *arg);                     /* at once: it holds all that was promised */
    void (*on_malformed)(void *arg, const char *what); /* an answer that can't be */
    void *arg;
};

enum { LEASE_LOG_PAUSE_MS = 5000 }; /* each kind of line at most this often */
