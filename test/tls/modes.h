/* What tls_load can do. Each prints one line of "name=value" pairs. False: the arguments make no sense. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORTS_MAX = 16, ARGUMENT_MAX = 10000000 };

struct mode_arguments {
    uint64_t numbers[8]; /* those that the mode wants, in their order */
    uint16_t ports[PORTS_MAX];
    size_t port_count;
};

/* Checks at a steady rate on open connections. */
bool mode_checks(const struct mode_arguments *arguments);
/* A connection for each request, the next with the last one's ticket. */
bool mode_resume(const struct mode_arguments *arguments);
/* A connection for each request, each with a full handshake. */
bool mode_full(const struct mode_arguments *arguments);
/* Connections that make one request each and then are idle until SIGTERM. */
bool mode_idle(const struct mode_arguments *arguments);
/* Handshakes of every kind, as many as possible. */
bool mode_flood(const struct mode_arguments *arguments);
