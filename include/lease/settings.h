/* The leases' needs of a store: its connections and its scripts. */
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

/* Scripts by which nodes agree on what a Redis holds (rule 13); and how an operator lowers the longest lease (rule 7).
 */
enum lease_script {
    LEASE_GATHER,        /* node_gather.lua */
    LEASE_DECLARE,       /* chains_declare.lua */
    LEASE_TELL,          /* endings_tell.lua */
    LEASE_TOLD,          /* changes_told.lua */
    LEASE_SUSPEND_AGAIN, /* account_suspend_again.lua */
    LEASE_ACCEPT_LOSS,   /* store_accept_loss.lua */
    LEASE_LOWER,         /* store_lower_lease.lua */
};
/* reply: behind 'ok', once enough replicas have acknowledged the script; NULL: failed. */
typedef void lease_called(void *arg, const struct redis_reply *reply);

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
    /* Runs a script on the `changes` link even though nothing may be decided by this Redis yet. The arguments are
     * copied. done runs once, later. */
    void (*call)(void *arg, enum lease_script script, size_t argc, const struct text *argv, lease_called *done,
                 void *done_arg);

    void (*on_lease)(void *arg);                       /* the lease was gained or lost */
    void (*on_doubt)(void *arg);                       /* examine soon whether this is our store */
    void (*on_settled)(void *arg);                     /* examine at once: the store now holds what was answered */
    void (*on_malformed)(void *arg, const char *what); /* rate-limited warning about a malformed reply */
    void *arg;
};

enum { LEASE_LOG_PAUSE_MS = 5000 }; /* at most one log line of each kind in this time */
