/* Has the peer got the answer? Its kernel's acknowledgement is the most that can be known without its help: while
 * somebody waits, the connection is polled for how many of its bytes were acknowledged, and once more as it ends: a
 * client may take its answer and reset the connection at once. */
#pragma once
#include "output_internal.h"

enum delivery_state {
    DELIVERY_NONE,
    DELIVERY_ASKED,   /* the answer is not yet written */
    DELIVERY_WRITTEN, /* and not yet acknowledged */
};

/* Of one request, a member of it. */
struct delivery {
    struct list in_polled;
    enum delivery_state state;
    const struct output *output; /* once the answer is written, while its connection is open */
    bool was_acknowledged;       /* as the connection ended */
    void (*done)(void *arg, bool delivered);
    void *arg;
};

struct deliveries {
    uv_timer_t timer;
    struct list polled;
    void (*settled)(struct delivery *delivery, bool is_delivered);
};

/* settled is called when the peer has acknowledged the answer or cannot any more, and for each delivery that was lost.
 * It calls delivery_end(). */
void deliveries_init(struct deliveries *deliveries, uv_loop_t *loop,
                     void (*settled)(struct delivery *delivery, bool is_delivered));
/* Closes the timer: closed gets it, and its data is arg. */
void deliveries_close(struct deliveries *deliveries, uv_close_cb closed, void *arg);

void delivery_init(struct delivery *delivery);
/* Somebody wants to know, before the answer is sent: done runs once. */
void delivery_ask(struct delivery *delivery, void (*done)(void *arg, bool delivered), void *arg);
/* Sends an answer whose delivery was asked for. */
enum output_result delivery_send(struct output *output, struct text answer);
/* The answer is written: from now on its acknowledgement is polled. */
void delivery_begin(struct deliveries *deliveries, struct delivery *delivery, const struct output *output);
/* Looks now instead of at the next tick. */
void delivery_poll(struct deliveries *deliveries, struct delivery *delivery);
/* The request has lost its connection, whose socket is still open if it had one: settled is called at the next tick,
 * so not inside the call that caused it. */
void delivery_lose(struct deliveries *deliveries, struct delivery *delivery);
/* Tells whoever has asked. False: nobody had. */
bool delivery_end(struct delivery *delivery, bool is_delivered);
