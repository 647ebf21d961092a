/* Requests to the nodes, many at once, from one thread that never waits for a single one: a node that is stopped must
 * not keep the others from being asked. Connections are kept alive, a few dozen a node. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXCHANGE_NODES_MAX = 3, EXCHANGE_REQUEST_BYTES = 4096, EXCHANGE_ANSWER_BYTES = 8192 };

struct exchange_answer {
    int status;       /* 0: no answer came, it is not known what became of the request */
    int64_t start_ns; /* before the request's last bytes were sent */
    int64_t end_ns;
    const char *head; /* NUL-terminated, valid during the call; "" without an answer */
    const char *body;
};

typedef void exchange_done(void *arg, const struct exchange_answer *answer);

struct exchange_request {
    unsigned node;
    const char *bytes; /* copied */
    size_t len;
    unsigned late_ms;    /* the last bytes are sent so much later; 0: all at once */
    unsigned timeout_ms; /* then the connection is closed; counted from the last bytes */
    exchange_done *done; /* runs exactly once, in exchange_turn() or exchange_destroy() */
    void *arg;
};

struct exchange;

/* Opens a socket from which the node can be reached, and tells its port; -1 where the node is away. */
typedef int exchange_socket(void *arg, unsigned node, uint16_t *ret_port);

struct exchange *exchange_create(exchange_socket *open_socket, void *arg);
/* What is under way ends with status 0. */
void exchange_destroy(struct exchange *exchange);
/* False, and nothing happened, when all connections to that node are in use or none can be made. */
bool exchange_send(struct exchange *exchange, const struct exchange_request *request);
/* Waits at most timeout_ms and handles what came. */
void exchange_turn(struct exchange *exchange, int timeout_ms);
/* Requests under way. */
size_t exchange_open(const struct exchange *exchange);
/* Copies the id or token that follows the mark in an answer's head or body; false without the mark. */
bool exchange_copy_after(const char *text, const char *mark, char *ret_value, size_t size);
