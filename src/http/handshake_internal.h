/* TLS handshakes in progress: how many there are, and what share of the loop's time they get. A full one costs about
 * as much as twenty checks, and anyone can ask for one. So those that have work to do wait in a queue, and each turn of
 * the loop works on it for a moment only: a flood delays handshakes, not requests of open connections. */
#pragma once
#include "base/list.h"
#include <stdbool.h>
#include <uv.h>

/* Embedded in its connection. */
struct handshake {
    struct list node; /* in one of the two lists */
    bool is_begun, is_queued;
};

struct handshakes {
    uv_idle_t idle;
    struct list queued;  /* their peers have sent something; first come, first served */
    struct list awaited; /* wait for their peers, the longest first */
    size_t count, max;
    void (*work)(struct handshake *handshake);
};

/* work takes what the peer has sent. By then the handshake is in neither list. It calls handshake_await(),
 * handshake_queue() or handshake_end(). */
void handshakes_init(struct handshakes *handshakes, uv_loop_t *loop, size_t max,
                     void (*work)(struct handshake *handshake));
/* Closes the handle; closed gets it, with arg as its data. */
void handshakes_close(struct handshakes *handshakes, uv_close_cb closed, void *arg);

void handshake_init(struct handshake *handshake);
/* The handshake that has waited longest for its peer, if another one would exceed the bound; else NULL. */
struct handshake *handshakes_to_close(struct handshakes *handshakes);
/* False: there are as many as there may be. Awaits the peer. */
bool handshake_begin(struct handshakes *handshakes, struct handshake *handshake);
/* The peer has sent something. May be repeated. */
void handshake_queue(struct handshakes *handshakes, struct handshake *handshake);
/* Nothing can be done until the peer sends more. */
void handshake_await(struct handshakes *handshakes, struct handshake *handshake);
/* It is over, one way or the other. May be repeated. */
void handshake_end(struct handshakes *handshakes, struct handshake *handshake);
