/* One asynchronous connection to Redis, on libuv, with hiredis' reader for the replies. It owns connecting (names are
 * resolved without blocking), reconnecting with backoff and jitter, the deadline of each call, and the truth about
 * outcomes. Commands of one loop turn leave in one write. Loop thread only. */
#pragma once
#include "redis/reply.h"
#include "redis/resolver.h"
#include <uv.h>

enum redis_outcome {
    REDIS_REPLIED,  /* reply is set (it may be an error reply) */
    REDIS_NOT_SENT, /* surely not executed */
    REDIS_LOST,     /* no answer in time: executed or not, nobody knows */
};
typedef void redis_done(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);

enum { REDIS_RUN_ID_CHARS = 40 };

enum { REDIS_CHANNELS_MAX = 4 };

/* What a link listens to. Such a link takes no calls; it is ready once its subscription is confirmed. */
struct redis_subscription {
    /* The channels of a new connection: asked on each, before it is ready. Returns how many; the texts must live until
     * the call returns. */
    size_t (*channels)(void *arg, struct text ret_channels[REDIS_CHANNELS_MAX]);
    /* One message, in the order of the connection. False: it cannot be, and the connection is given up. */
    bool (*message)(void *arg, struct text channel, struct text payload);
};

struct redis_link_settings {
    const char *name;    /* for log lines and CLIENT SETNAME: "reads", "changes" */
    uint32_t timeout_ms; /* of every call, and of connecting */
    uint32_t backoff_max_ms;
    size_t calls_max;                              /* calls under way; beyond: REDIS_NOT_SENT */
    const struct redis_subscription *subscription; /* NULL: a link for calls */
    struct redis_resolver *resolver;               /* who tells where the target is at present; NULL: at its host */
    bool to_master;                                /* it asks for role and run id, and is not ready with a replica */
};

struct redis_link;

/* Starts connecting at once. ready (may be NULL) runs whenever the link becomes usable (true) or is lost (false), not
 * for redis_link_close(). */
struct redis_link *redis_link_create(uv_loop_t *loop, const struct redis_target *target,
                                     const struct redis_link_settings *settings, void (*ready)(void *arg, bool ready),
                                     void *arg);
/* Fails all calls under way (later), frees. closed runs once, last. Afterwards only callbacks of these calls may still
 * call; they are told REDIS_NOT_SENT. A name that is being resolved is waited for, as long as the resolver takes. */
void redis_link_close(struct redis_link *link, void (*closed)(void *arg), void *arg);
bool redis_link_is_ready(const struct redis_link *link);
/* Gives the connection up, if there is one, and makes another; ready(false) runs inside this call where it was ready.
 */
void redis_link_renew(struct redis_link *link, const char *why);
/* Queues one command; done runs exactly once, never inside this call, within timeout_ms. The arguments are copied. */
void redis_link_call(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg);
/* The same for a command that is already in the Redis protocol's form: the check path. */
void redis_link_call_raw(struct redis_link *link, struct text command, redis_done *done, void *arg);
/* Which process of Redis it speaks to, as that names itself; empty while it is not ready, and without to_master. */
const char *redis_link_run_id(const struct redis_link *link);
/* For what must go in front of other calls, in the same write: true when there is a connection and what was called
 * since this last returned true may have begun to leave. */
MUST_CHECK bool redis_link_begins_batch(struct redis_link *link);
/* Why it is not ready, for log lines and doctor: a constant or the link's own text. */
const char *redis_link_trouble(const struct redis_link *link);
