/* Connections of a random walk over a network: each end is a client of libuv or an actor, and checks what it hears. Who
 * connects says first, in 4 bytes, which connection it is. Every byte tells connection, direction and place, so none
 * can be lost, doubled or exchanged unseen. */
#pragma once
#include "net.h"

enum { WALK_ENDS_MAX = 2000, WALK_PORT = 81 };

struct walk_pair;

struct walk_end {
    struct walk_pair *pair; /* NULL: it has accepted, and not yet heard which one */
    unsigned number, side;  /* side: 0 has connected, 1 has accepted */
    bool is_actor, is_connected, is_open, holds;
    bool has_ended, knows_of_end; /* it has said so, has heard so */
    struct sim_socket *socket;    /* of an actor */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_shutdown_t shutdown;
    size_t sent, heard;
    unsigned char id[4];
};

struct walk_pair {
    struct walk_end *ends[2]; /* the second: NULL until it knows */
};

/* What has happened in all walks so far. */
struct walk_counts {
    unsigned opened, refused, welcomed, pieces, ends, resets, timeouts, full;
};

extern struct walk_end *walk_ends[WALK_ENDS_MAX];
extern unsigned walk_end_count;
extern struct walk_counts walk_counts;
/* Of everything that was heard, and when. */
extern uint64_t walk_digest;

/* Listeners of actors on the host, or of the process. */
struct sim_socket *walk_listen(struct sim_host *host);
void walk_listen_here(uv_tcp_t *listener);
/* From the process if host is NULL. */
void walk_connect(struct sim_host *host, const char *ip);

/* Of an end that is open. As much as there is room for; nothing before it knows its connection. */
void walk_send(struct walk_end *end, size_t count);
void walk_hold(struct walk_end *end, bool holds);
void walk_say_end(struct walk_end *end);
void walk_close(struct walk_end *end, bool breaks);
/* Frees all, which must have been closed. */
void walk_forget(void);
