/* Where responses are printed, and when they leave: at once, or together with others. Sending one wakes its reader,
 * usually on another core. That costs more than printing it, but less if the reader is still awake from the previous
 * one. */
#pragma once
#include "base/text.h"
#include "base/turn.h"

enum { REPLY_MAX_BYTES = 64 * 1024 * 1024 };

struct conn;

struct cork {
    struct buf scratch; /* holds the responses that wait, and nothing else */
    struct corked {
        struct conn *conn; /* NULL: it has been closed since */
        size_t from, bytes;
    } corked[TURN_SLICE];
    size_t corked_count, uncorked_count; /* the first uncorked_count have left */
    bool is_corked;
    struct turn_part part;
    void (*send)(struct conn *conn, struct text answer, struct text lasting);
};

/* The cork is closed during slices of the turn (NULL: never). send writes a response to its connection, see
 * output_send(); the call may invalidate the response's bytes. */
void cork_init(struct cork *cork, struct turn *turn,
               void (*send)(struct conn *conn, struct text answer, struct text lasting));
void cork_finish(struct cork *cork);
/* Sends or queues the response that lies in the scratch from `from` to the end. lasting: see output_send(); such a
 * response is never queued. */
void cork_send(struct cork *cork, struct conn *conn, size_t from, struct text lasting);
/* Sends it in any case. */
void cork_send_now(struct cork *cork, struct conn *conn, size_t from);
/* The connection is being closed: drops its queued response. */
void cork_forget(struct cork *cork, const struct conn *conn);
/* Between the two, up to TURN_SLICE responses wait; further ones leave at once. Callbacks of a turn_part. */
void cork_close(void *cork);
void cork_open(void *cork);
