/* An attack: a process with many connections, each of which sends its request, reads the answer and sends it again, as
 * fast as it can. It has one processor at most, the last one: an attacker's machines are others than the node's. */
#pragma once
#include "http_client.h"

#include <stdatomic.h>
#include <sys/types.h>

enum { POUR_CONNECTIONS = 200, POUR_STATUSES = 600 };

struct pour_counts {
    atomic_uint answers[POUR_STATUSES]; /* by status */
    atomic_uint closed;                 /* requests that the node ended without a whole answer */
};

struct pour {
    pid_t pid; /* 0: ended */
    struct pour_counts *counts;
};

/* calls: one for each connection. */
void pour_start(struct pour *pour, uint16_t port, const struct http_call calls[POUR_CONNECTIONS]);
unsigned pour_answers(const struct pour *pour);
/* "200: 17, 429: 4711" */
void pour_print(const struct pour *pour, char *ret_text, size_t room);
/* Whether it goes on. It ends by itself once nothing listens any more. */
bool pour_lives(const struct pour *pour);
/* All connections at once, in the midst of whatever they do. */
void pour_end(struct pour *pour);
void pour_free(struct pour *pour);
