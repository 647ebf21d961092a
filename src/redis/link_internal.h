/* The internals of a link, shared by link.c (calls, outcomes, life cycle) and link_connect.c (connecting, greeting,
 * losing a connection). */
#pragma once
#include "base/attr.h"
#include "base/callback.h"
#include "base/log.h"
#include "redis/link.h"
#include "wire.h"

enum { LINK_TROUBLE_BYTES = 384, LINK_WHERE_BYTES = REDIS_HOST_BYTES + 32 };

/*   WAITING -> ASKING, with a resolver -> CONNECTING -> SECURING, with TLS -> GREETING -> READY
 *
 * From each of the others to WAITING when it fails or is lost, and to CLOSING, where it stays. */
enum link_state { LINK_WAITING, LINK_ASKING, LINK_CONNECTING, LINK_SECURING, LINK_GREETING, LINK_READY, LINK_CLOSING };

struct redis_call {
    redis_done *done; /* NULL: reported as REDIS_LOST at its deadline; a late reply is dropped */
    void *arg;
    uint64_t deadline_ms;
    uint64_t called_ns; /* by the turn clock */
    uint64_t begin;     /* where its bytes begin, counted over everything appended to the wire */
    bool is_greeting;   /* sent by the link itself */
};

struct redis_failure {
    redis_done *done;
    void *arg;
    enum redis_outcome outcome;
};

/* A link's renewal, as the link sees it; redis/renewal.c. */
struct redis_successor {
    /* The link is closing, or its connection is lost: it is not touched any more. */
    void (*on_gone)(struct redis_successor *successor);
};

struct redis_link {
    uv_loop_t *loop;
    struct redis_target target;        /* with the login of the current connection */
    struct list access_node;           /* in target.access->links */
    struct redis_login proven;         /* what was accepted last, or was given at first */
    bool uses_proven;                  /* the next connection, because Redis refused what the files say */
    struct redis_successor *successor; /* NULL: the link is not being renewed */
    unsigned unsubscribing;            /* channels that the successor is taking over, until Redis confirms each */
    char name[32], where[LINK_WHERE_BYTES];
    enum histogram_row durations;
    uint32_t timeout_ms, backoff_max_ms, quiet_ms;
    uint64_t called_ms; /* when the last command was queued */
    const struct redis_subscription *subscription;
    unsigned channels, unconfirmed; /* of the current connection; of those, not confirmed yet in LINK_GREETING */
    void (*ready)(void *arg, bool ready);
    void *arg;

    struct redis_tls *tls; /* NULL: plain */
    bool to_master, to_sentinel, is_finder, is_trial;
    char run_id[REDIS_RUN_ID_CHARS + 1]; /* of the current connection */
    bool has_broken;                     /* the last connection, by itself */
    bool is_batch_begun;
    uint64_t batch_at; /* counted over everything appended to the wire */

    struct redis_resolver *resolver; /* NULL: connect to target.host */
    const char *misled;              /* why this server is not what the resolver promised: ask it again. NULL: it is */
    struct redis_follower follower;

    enum link_state state;
    struct redis_connect *connect; /* in LINK_CONNECTING, and until a cancelled attempt has ended */
    struct redis_wire *wire;       /* in LINK_SECURING, LINK_GREETING and LINK_READY */
    unsigned wires_open;           /* including those still closing */
    unsigned attempts;             /* since the last connection that held */
    bool has_tried;
    uint64_t ready_since_ms, down_since_ms;
    char trouble[LINK_TROUBLE_BYTES];
    bool is_loss_logged;
    struct log_field about;
    char logged_trouble[LINK_TROUBLE_BYTES]; /* the last one in the log of a loss that lasts */
    struct log_pause loss_pause, change_pause;

    /* A ring of calls that await replies. All have the same timeout, so they are in order of deadline. The first
     * `expired` of them were already reported as lost. It has room for `calls_room`, and grows up to `calls_max`. */
    struct redis_call *calls;
    size_t calls_max, calls_room, first, count, expired;

    /* To report in the next loop turn. */
    struct redis_failure *failures;
    size_t failure_count, failures_max;

    /* The reconnect delay, the timeout of an attempt, the next call's deadline, or the end of quiet: only one applies
     * at a time. */
    uv_timer_t timer;
    /* Flushes output and reports failures. An active idle handle keeps the loop from blocking, so everything queued in
     * this turn leaves at once, whichever handle queued it. */
    uv_idle_t idle;
    unsigned handles_open;
    struct callback closed;
};

/* link.c */

void link_arm(struct redis_link *link, uint64_t ms);
/* Makes on_idle() run before the loop blocks. */
void link_wake(struct redis_link *link);
/* False: the command did not fit into the output buffer. */
MUST_CHECK bool link_send(struct redis_link *link, size_t argc, const struct text *argv, redis_done *done, void *arg);
/* tls: NULL if plain. */
void link_take_wire(struct redis_link *link, union redis_stream *stream, struct tls_session *tls);
/* Ends the renewal, if there is one. */
void link_forget_successor(struct redis_link *link);
/* Ends the renewal, fails the pending calls and closes the wire. */
void link_drop_wire(struct redis_link *link);

/* The only way in which the state changes. False: there is no such move, which was logged, and the connection is lost.
 */
MUST_CHECK bool link_move(struct redis_link *link, enum link_state state);

/* link_connect.c */

void link_attempt(struct redis_link *link);
/* The connection is made, and its TLS handshake complete if it has one. arg: the link. */
void link_greet(void *arg);
/* The only way in which a connection ends while the link lives. */
void link_lose(struct redis_link *link, const char *why);
void link_name_place(struct redis_link *link);
PRINTF_LIKE(2, 3) void link_set_trouble(struct redis_link *link, const char *format, ...);
/* The callbacks of a redis_follower. */
void link_on_master(void *arg, const struct redis_address *master, const char *why);
void link_on_moved(void *arg, const struct redis_address *master);
