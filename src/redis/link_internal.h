/* The link's inside, shared by link.c (calls, their outcomes, life) and link_connect.c (from nothing to a connection
 * that is ready, and back). */
#pragma once
#include "base/attr.h"
#include "base/log.h"
#include "redis/link.h"
#include "wire.h"

enum { LINK_TROUBLE_BYTES = 224, LINK_WHERE_BYTES = REDIS_HOST_BYTES + 32 };

enum link_state { LINK_WAITING, LINK_ASKING, LINK_CONNECTING, LINK_GREETING, LINK_READY, LINK_CLOSING };

struct redis_call {
    redis_done *done; /* NULL: it was told REDIS_LOST at its deadline; its reply will be dropped */
    void *arg;
    uint64_t deadline_ms;
    uint64_t begin;   /* of its bytes in all that was appended to the wire */
    bool is_greeting; /* made by the link itself: nobody else waits for it */
};

struct redis_failure {
    redis_done *done;
    void *arg;
    enum redis_outcome outcome;
};

struct redis_link {
    uv_loop_t *loop;
    struct redis_target target;
    char name[32], where[LINK_WHERE_BYTES];
    uint32_t timeout_ms, backoff_max_ms;
    const struct redis_subscription *subscription;
    unsigned unconfirmed; /* channels, in LINK_GREETING */
    void (*ready)(void *arg, bool ready);
    void *arg;

    bool to_master;
    char run_id[REDIS_RUN_ID_CHARS + 1]; /* of the connection that is ready or being greeted */
    bool is_batch_begun;
    uint64_t batch_at; /* in all that was appended to the wire */

    struct redis_resolver *resolver; /* NULL: the target is where it is */
    struct redis_follower follower;

    enum link_state state;
    struct redis_connect *connect; /* in LINK_CONNECTING, and until a cancelled attempt has ended */
    struct redis_wire *wire;       /* in LINK_GREETING and LINK_READY */
    unsigned wires_open;           /* with those that still close */
    unsigned attempts;             /* since a connection last held */
    uint64_t ready_since_ms;
    char trouble[LINK_TROUBLE_BYTES];
    bool is_loss_logged;
    struct log_pause loss_pause;

    /* What awaits replies, a ring. All calls share one timeout, so that they are in order of their deadlines; the
     * first `expired` of them have been told already. */
    struct redis_call *calls;
    size_t calls_max, first, count, expired;

    /* What is to be told from the next turn of the loop on. */
    struct redis_failure *failures;
    size_t failure_count, failures_max;

    /* Reconnecting, the limit of an attempt, deadlines: never two of them at a time. */
    uv_timer_t timer;
    /* Flushes and tells failures. Idle handles run right before the loop would block and keep it from blocking: what
     * was queued in any phase, by whatever handle, leaves at once. */
    uv_idle_t idle;
    unsigned handles_open;
    void (*closed)(void *arg);
    void *closed_arg;
};

/* link.c */

void link_arm(struct redis_link *link, uint64_t ms);
/* on_idle() runs before the loop blocks. */
void link_wake(struct redis_link *link);
/* False where it did not fit. */
MUST_CHECK bool link_send(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg);
void link_take_wire(struct redis_link *link, union redis_stream *stream);
/* Fails its calls, closes it. */
void link_drop_wire(struct redis_link *link);

/* link_connect.c */

void link_attempt(struct redis_link *link);
/* The one way in which an established connection ends while the link lives. */
void link_lose(struct redis_link *link, const char *why);
void link_name_place(struct redis_link *link);
PRINTF_LIKE(2, 3) void link_set_trouble(struct redis_link *link, const char *format, ...);
/* As a redis_follower has them. */
void link_on_master(void *arg, const struct redis_address *master, const char *why);
void link_on_moved(void *arg, const struct redis_address *master);
