/* What the leases need from the store: its connections and its scripts. */
#pragma once
#include "core/id.h"
#include "redis/group.h"

enum lease_answer {
    LEASE_DONE,    /* the script has run, and enough replicas have acknowledged it */
    LEASE_TOO_FEW, /* it has run, but too few replicas acknowledged it in time */
    LEASE_FAILED,  /* no answer in time, or refused */
};
typedef void lease_answered(void *arg, enum lease_answer answer);
/* last: if done, the last entry in the stream of invalidations when the script ran; empty: the stream is not complete.
 */
typedef void lease_heartbeat_answered(void *arg, enum lease_answer answer, struct text last);

/* How a repeated revocation ended. */
enum lease_again {
    LEASE_AGAIN_REVOKED,
    LEASE_AGAIN_NO_KEY, /* the key is lost as well */
    LEASE_AGAIN_FAILED,
};

struct lease_settings {
    uv_loop_t *loop;
    const char *prefix; /* of all names in Redis; this and the pointers below outlive the leases */
    uint32_t timeout_ms;
    int64_t min_replicas;            /* that must acknowledge a heartbeat before it grants a lease; 0: none */
    struct redis_resolver *resolver; /* finds the master; NULL: always the host in --redis */
    struct redis_tls *tls;           /* for a target with tls */
    bool may_be_replaced;            /* another Redis may take over while this one still answers (rule 10) */
    bool accepts_loss;               /* of acknowledged changes: --unsafe-redis */
    struct redis_group *group;       /* all connections to this Redis, including: */
    struct redis_link *reads, *scripts, *changes;
    /* Run node_heartbeat.lua, and node_leave.lua without waiting for replicas. The arguments are copied. done runs
     * once, later. */
    void (*heartbeat)(void *arg, size_t argc, const struct text *argv, lease_heartbeat_answered *done, void *done_arg);
    void (*leave)(void *arg, size_t argc, const struct text *argv, lease_answered *done, void *done_arg);
    /* Run key_revoke.lua again (or key_schedule.lua, if the key was to be revoked at ends_ms), and node_settle.lua
     * under the given change number, even though the store lacks acknowledged changes. done runs once, later. */
    void (*revoke_again)(void *arg, const struct id *key, int64_t ends_ms, struct text actor,
                         void (*done)(void *arg, enum lease_again again), void *done_arg);
    void (*settle)(void *arg, uint64_t number, void (*done)(void *arg, bool is_done), void *done_arg);
    /* Runs account_suspend_again.lua in the same way. The arguments are copied. */
    void (*suspend_again)(void *arg, size_t argc, const struct text *argv, void (*done)(void *arg, bool is_done),
                          void *done_arg);

    void (*on_lease)(void *arg);                       /* the lease was gained or lost */
    void (*on_doubt)(void *arg);                       /* examine soon whether this is our store */
    void (*on_settled)(void *arg);                     /* examine at once: the store now holds everything promised */
    void (*on_malformed)(void *arg, const char *what); /* rate-limited warning about a malformed reply */
    void *arg;
};

enum { LEASE_LOG_PAUSE_MS = 5000 }; /* at most one log line of each kind in this time */
