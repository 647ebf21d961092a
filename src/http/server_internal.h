/* The server's inside, shared by its listener, its connections and its requests. */
#pragma once
#include "base/list.h"
#include "base/log.h"
#include "http/server.h"

enum {
    READ_BUFFER_BYTES = 64 * 1024,
    /* A client may send ahead so much while its request is handled; beyond, we stop reading. */
    STASH_STOP_BYTES = 16 * 1024,
    FREE_REQUESTS_MAX = 64,
    /* Replies larger than this give their memory back. */
    SCRATCH_KEPT_BYTES = 256 * 1024,
    REPLY_MAX_BYTES = 64 * 1024 * 1024,
    LINGER_MS = 2000,
    LINGER_MAX_BYTES = 256 * 1024,
    DELIVERY_LIMIT_MS = 10 * 1000,
    DELIVERY_POLL_MS = 10,
    /* Connections beyond connections_max that are answered 503; still more are closed without a word. */
    SHED_ANSWERED_MAX = 64,
    COMPLAINT_INTERVAL_MS = 10 * 1000,
    MS_PER_S = 1000,
    /* A body is looked at so often within its shortest limit, but each second: so much late at most it is refused. */
    BODY_LOOKS = 8,
    BODY_LOOK_MAX_MS = 1000,
    /* As many checks are told together (auth/key_check.c). */
    CORKED_MAX = 8,
};

enum deadline_class {
    DEADLINE_NONE,
    DEADLINE_HEAD,
    DEADLINE_BODY, /* how often a body is looked at, see conn.c */
    DEADLINE_DISCARD,
    DEADLINE_IDLE,
    DEADLINE_WRITE,
    DEADLINE_DELIVERY,
    DEADLINE_LINGER,
    DEADLINE_CLASSES
};

/* burden.c: what is held for peers that are slow to send, or to read. */
enum burden_kind { BURDEN_INPUT, BURDEN_OUTPUT, BURDEN_KINDS };
enum { BURDEN_CLASSES = 32 };
struct burden {
    size_t bytes;
    struct list
        by_size[BURDEN_CLASSES]; /* connections by the logarithm of what they hold, the first ones for longest */
    struct log_pause pause;      /* of the complaint about it */
};
/* A connection's part of it. */
struct load {
    size_t bytes;
    struct list in_class;
};

enum server_state { SERVER_OPEN, SERVER_DRAINING, SERVER_CLOSING };

struct conn;

/* An answer that waits in the server's scratch. */
struct corked {
    struct conn *conn; /* NULL: it has gone */
    size_t from, bytes;
};

struct http_server {
    uv_loop_t *loop;
    struct http_settings settings;
    http_handler *handler;
    void *handler_arg;
    enum server_state state;

    struct list listeners;
    struct list conns;
    size_t conn_count;
    size_t request_count;             /* not yet freed, connected or not: a handler may outlive its connection */
    struct log_pause complaint_pause; /* of the listener */
    struct burden burdens[BURDEN_KINDS];
    struct log_pause eviction_pause; /* of the complaint about too many connections */

    /* All of a class have one timeout, so append order is deadline order, and one timer serves all. */
    struct list deadlines[DEADLINE_CLASSES];
    uint64_t timeouts_ms[DEADLINE_CLASSES];
    uv_timer_t deadline_timer;
    uint64_t deadline_due_ms; /* what the timer is set to; UINT64_MAX: it is not */

    struct list ready; /* connections with input to go on with outside of any callback of theirs */
    uv_idle_t ready_idle;

    struct list deliveries;
    uv_timer_t delivery_timer;

    char *read_buffer;  /* lent to one read at a time */
    struct buf scratch; /* where replies are formatted; empty but for those that are corked */
    struct corked corked[CORKED_MAX];
    size_t corked_count, uncorked_count; /* the first ones have left */
    bool is_corked;
    struct list free_requests;
    size_t free_request_count;
    struct buf common_lines;
    int64_t common_lines_s; /* the second that its Date tells */
    int64_t wall_ms;        /* as of the loop's turn that began at wall_read_ms of the loop's own clock */
    uint64_t wall_read_ms;

    uv_timer_t drain_timer;
    void (*drained)(void *arg);
    void *drained_arg;
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned open_handles; /* timers and the idle handle, while closing */
};

/* The handles of listeners are kept by listener.c. */
void listener_close_all(struct http_server *server);

void deadline_init(struct http_server *server);
/* Leaves the class it was in. */
void deadline_set(struct http_server *server, struct conn *conn, enum deadline_class class);

/* To be told when a connection's handle is closed, or a request is freed: the server may now be done. */
void server_part_ended(struct http_server *server);
/* The wall clock, read once in a turn of the loop: a request needs it several times, and none of them more exactly. */
int64_t server_wall_ms(struct http_server *server);
/* What every answer begins with after its status: "Date: …\r\n", the fixed headers (own ones, or {NULL, 0}: the
 * server's), and "X-Request-Id: ". Made once a second, with own ones each time. */
struct text server_common_lines(struct http_server *server, struct text own_headers);
/* Wipes what is behind the first bytes of the scratch. */
void server_cut_scratch(struct http_server *server, size_t bytes);

/* cork.c. Has an answer wait that begins there in the scratch and ends with it; false: it is to be sent now. */
bool cork_hold(struct conn *conn, size_t from);
/* The connection will not need its answer. */
void cork_forget(struct conn *conn);
/* Puts the connection on the list of those that go on in the next turn. */
void server_schedule(struct http_server *server, struct conn *conn);
