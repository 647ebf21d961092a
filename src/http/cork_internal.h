/* Where answers are printed, and how they leave: at once, or together with others. Sending one wakes its reader, mostly
 * on another core: that costs more than printing it, and less where the reader has not had the time to fall asleep
 * again since the one before. */
#pragma once
#include "base/text.h"
#include "base/turn.h"

enum { REPLY_MAX_BYTES = 64 * 1024 * 1024 };

struct conn;

struct cork {
    struct buf scratch; /* empty but for the answers that wait */
    struct corked {
        struct conn *conn; /* NULL: it has gone */
        size_t from, bytes;
    } corked[TURN_SLICE];
    size_t corked_count, uncorked_count; /* the first ones have left */
    bool is_corked;
    struct turn_part part;
    void (*send)(struct conn *conn, struct text answer, struct text lasting);
};

/* Closed during slices of the turn; NULL: never. send writes an answer to its connection, see output_send(); the answer
 * may move or end with that call. */
void cork_init(struct cork *cork, struct turn *turn,
               void (*send)(struct conn *conn, struct text answer, struct text lasting));
void cork_finish(struct cork *cork);
/* Sends the answer that begins there in the scratch and ends with it, or has it wait. lasting: as output_send() has it;
 * such an answer does not wait. */
void cork_send(struct cork *cork, struct conn *conn, size_t from, struct text lasting);
/* The connection will not need its answer. */
void cork_forget(struct cork *cork, const struct conn *conn);
/* Between the two, answers wait, as many as there is room for. As a turn_part has them. */
void cork_close(void *cork);
void cork_open(void *cork);
