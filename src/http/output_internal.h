/* A connection's output: what its socket takes at once, and what waits until the peer reads. */
#pragma once
#include "base/list.h"
#include "socket_internal.h"

struct output {
    struct socket *socket;
    struct list waiting;  /* pieces that the socket has not taken yet */
    size_t waiting_bytes; /* in these pieces */
    size_t memory_bytes;  /* allocated for them */
    uint64_t taken_bytes; /* taken by the socket since the connection began */
};

/* WAITING: the socket has no room for the rest; call output_go_on() when it has. FAILED: close the connection. */
enum output_result { OUTPUT_TAKEN, OUTPUT_WAITING, OUTPUT_FAILED };

void output_init(struct output *output, struct socket *socket);
/* Copies what has to wait. lasting: the tail of `bytes` again, in memory that is never freed, so it need not be copied;
 * or {NULL, 0}. */
enum output_result output_send(struct output *output, struct text bytes, struct text lasting);
/* The socket has room again. */
enum output_result output_go_on(struct output *output);
/* Wipes and drops what waits. */
void output_drop(struct output *output);
