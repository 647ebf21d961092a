/* Clients of nodes: plain HTTP/1.1 over connections that are kept. */
#pragma once
#include "network.h"

struct sim_answer {
    int status;       /* 0: none came, so it is unknown what the request did */
    const char *head; /* both end with NUL, and are gone after the call */
    const char *body;
    uint64_t asked_ns, begun_ns, answered_ns; /* begun: its last bytes were sent */
};

struct sim_request {
    struct sim_host *from;
    const struct sim_host *to;
    uint16_t port;
    const char *bytes; /* copied */
    size_t len;
    uint64_t late_ns; /* its last bytes are sent so much later than the others */
    uint64_t within_ns;
    void (*answered)(void *arg, const struct sim_answer *answer);
    void *arg;
};

/* Later requests have new connections: those that wait may have ended without a word. */
void sim_http_forget_idle(void);
void sim_http_ask(const struct sim_request *request);
/* Copies the text between `before` and the next quotation mark. False: there is none. */
bool sim_http_copy_after(const char *text, const char *before, char *ret_value, size_t size);
