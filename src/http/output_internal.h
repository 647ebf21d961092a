/* The way out of a connection: what its socket takes at once, and what waits until the peer reads on. */
#pragma once
#include "base/list.h"
#include "socket_internal.h"

struct output {
    struct socket *socket;
    struct list waiting;  /* pieces that the socket has not taken yet */
    size_t waiting_bytes; /* of them */
    size_t memory_bytes;  /* what they occupy */
    uint64_t taken_bytes; /* by the socket, since the connection began */
};

/* WAITING: the socket has no room for the rest, so output_go_on() is to be called when it has. FAILED: the connection
 * is to be closed. */
enum output_result { OUTPUT_TAKEN, OUTPUT_WAITING, OUTPUT_FAILED };

void output_init(struct output *output, struct socket *socket);
/* Of what waits, a copy is kept. lasting: the end of the bytes once more, as it lies in memory that is never freed, and
 * need not be copied; or {NULL, 0}. */
enum output_result output_send(struct output *output, struct text bytes, struct text lasting);
/* The socket has room. */
enum output_result output_go_on(struct output *output);
/* Wipes what waits. */
void output_drop(struct output *output);
