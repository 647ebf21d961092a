/* Has the peer received the response? An acknowledgement by its kernel is the best answer available without its help.
 * While somebody waits, the number of acknowledged bytes is polled, and read once more as the connection ends, because
 * a client may read the response and reset the connection at once. */
#pragma once
#include "output_internal.h"

enum delivery_state {
    DELIVERY_NONE,
    DELIVERY_ASKED,   /* the response is not written yet */
    DELIVERY_WRITTEN, /* the response is written, but not acknowledged yet */
};

/* Embedded in its request. */
struct delivery {
    struct list in_polled;
    enum delivery_state state;
    const struct output *output; /* from when the response is written until its connection ends */
    bool was_acknowledged;       /* when the connection ended */
    void (*done)(void *arg, bool delivered);
    void *arg;
};

struct deliveries {
    uv_timer_t timer;
    struct list polled;
    void (*settled)(struct delivery *delivery, bool is_delivered);
};

/* settled is called when the peer has acknowledged the response or no longer can, and for each lost delivery. It calls
 * delivery_end(), or disconnects, which loses the delivery. */
void deliveries_init(struct deliveries *deliveries, uv_loop_t *loop,
                     void (*settled)(struct delivery *delivery, bool is_delivered));
/* Closes the timer; closed gets it, with arg as its data. */
void deliveries_close(struct deliveries *deliveries, uv_close_cb closed, void *arg);

void delivery_init(struct delivery *delivery);
/* Call it before the response is sent. done runs exactly once. */
void delivery_ask(struct delivery *delivery, void (*done)(void *arg, bool delivered), void *arg);
/* Sends a response whose delivery was asked for. */
enum output_result delivery_send(struct output *output, struct text answer);
/* The response is written: starts polling for its acknowledgement. */
void delivery_begin(struct deliveries *deliveries, struct delivery *delivery, const struct output *output);
/* Polls now instead of at the next tick. */
void delivery_poll(struct deliveries *deliveries, struct delivery *delivery);
/* The request has lost its connection; if delivery->output is set, its socket is still open. settled is called at the
 * next tick, never inside the call that caused this. */
void delivery_lose(struct deliveries *deliveries, struct delivery *delivery);
/* Calls done. False: nobody had asked. */
bool delivery_end(struct delivery *delivery, bool is_delivered);
