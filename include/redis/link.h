/* One asynchronous connection to Redis, on libuv, with hiredis' reader for replies. It owns connecting (names resolve
 * without blocking), reconnecting with backoff and jitter, the deadline of each call, and the outcome of each call. All
 * commands of one loop turn leave in one write. Loop thread only. */
#pragma once
#include "base/histogram.h"
#include "base/log.h"
#include "redis/reply.h"
#include "redis/resolver.h"
#include "redis/tls.h"
#include <uv.h>

enum redis_outcome {
    REDIS_REPLIED,  /* reply is set (it may be an error reply) */
    REDIS_NOT_SENT, /* not executed */
    REDIS_LOST,     /* no answer in time: it may have been executed */
};
typedef void redis_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);

enum { REDIS_RUN_ID_CHARS = 40 };

enum { REDIS_CHANNELS_MAX = 4 };

/* For a link that listens. It takes no calls, and is ready once its subscription is confirmed. */
struct redis_subscription {
    /* Names the channels of each new connection, before it is ready. Returns their number. The texts must stay valid
     * until the subscribe commands are queued. */
    size_t (*channels)(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
    /* The same channels once more, for a connection that replaces the present one (redis/access.h). Messages that were
     * heard just before come a second time then. */
    size_t (*channels_again)(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
    /* One message, in the order received. False: malformed, so the link reconnects. */
    bool (*message)(void *arg, struct text channel, struct text payload);
    bool is_sharded; /* the channels belong to slots (SSUBSCRIBE); when a slot leaves the server, the link reconnects */
    /* With is_sharded: the slot of the channels has left this server, and the link reconnects. Other links to it would
     * learn that only from their next call. May be NULL. */
    void (*left)(void *arg);
};

struct redis_link_settings {
    const char *name;             /* for log lines and CLIENT SETNAME: "reads", "changes" */
    enum histogram_row durations; /* of its calls */
    uint32_t timeout_ms;          /* for each call and for connecting */
    uint32_t backoff_max_ms;
    uint32_t quiet_ms;                             /* after so long without a command, PING is sent; 0: 30 s */
    size_t calls_max;                              /* pending calls; beyond that REDIS_NOT_SENT */
    const struct redis_subscription *subscription; /* NULL: the link takes calls */
    struct redis_resolver *resolver;               /* finds the target's current address; NULL: always its host */
    bool to_master;                                /* asks for role and run id, and refuses replicas */
    struct redis_tls *tls;                         /* for a target with tls */
    bool to_sentinel;                              /* the server must be one; and what the link says about itself */
    bool is_finder;         /* to a Sentinel or a node of a cluster, to be asked for the master */
    bool is_trial;          /* it is to replace another link: it logs nothing of itself */
    struct log_field about; /* what its log lines say besides; zeroed: nothing */
};

struct redis_link;

/* Starts connecting at once. ready (may be NULL) runs whenever the link becomes usable (true) or is lost (false), but
 * not for redis_link_close(). */
struct redis_link *redis_link_create(uv_loop_t *loop, const struct redis_target *target,
                                     const struct redis_link_settings *settings, void (*ready)(void *arg, bool ready),
                                     void *arg);
/* Fails all pending calls, later, then frees the link. closed runs once, last. Only callbacks of those calls may still
 * call; they get REDIS_NOT_SENT. Waits for a name lookup under way, for as long as the resolver takes. */
void redis_link_close(struct redis_link *link, void (*closed)(void *arg), void *arg);
bool redis_link_is_ready(const struct redis_link *link);
/* It was ready once, or an attempt to connect has failed. */
bool redis_link_has_tried(const struct redis_link *link);
/* Drops the connection, if any, and reconnects. If the link was ready, ready(false) runs inside this call. */
void redis_link_renew(struct redis_link *link, const char *why);
/* While the link is not ready: its last connection was closed by the other side or the network, or became unreadable.
 * False: it was given up by this side. */
bool redis_link_has_broken(const struct redis_link *link);
/* Queues one command and copies its arguments. done runs exactly once, within timeout_ms, never inside this call. With
 * a resolver, the error replies MOVED and CLUSTERDOWN also end the connection: the command was not executed, and the
 * resolver is asked again. Nothing follows a redirection. */
void redis_link_call(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg);
/* The same for a command already in wire format: the check path. */
void redis_link_call_raw(struct redis_link *link, struct text command, redis_done *done, void *arg);
/* The run id of the Redis process; empty if the link is not ready or has no to_master. */
const char *redis_link_run_id(const struct redis_link *link);
/* For a command that must precede others in the same write. True if the link is ready and everything up to the last
 * time this was true may already have left. */
MUST_CHECK bool redis_link_begins_batch(struct redis_link *link);
/* "host:port", "Sentinel host:port" or "unix:/path". As long as the link. */
const char *redis_link_where(const struct redis_link *link);
/* Why the link is not ready, for log lines and doctor; empty if it is. The text belongs to the link and changes with
 * its state. */
const char *redis_link_trouble(const struct redis_link *link);
