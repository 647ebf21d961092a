/* Hosts and what lies between them. Sockets of a host's processes and actors (actor.h) reach those of others by its
 * address. What is sent arrives later, by a time that the seed draws for each piece, in pieces of any size, and in
 * order within a connection. A socket without a host, as in unit tests, is told at once. */
#pragma once
#include "kernel_internal.h"
#include <netinet/in.h>

enum { SIM_HOSTS_MAX = 32, SIM_HOST_NAME_BYTES = 32 };

struct sim_host {
    char name[SIM_HOST_NAME_BYTES];
    struct in_addr ip;
    struct sim_clock clock;
    bool is_off; /* nothing it sends arrives, and nothing arrives at it */
    /* Private. */
    unsigned number;
    uint16_t next_port;
    struct list sockets;
};

/* From now on there are no hosts. Their sockets must have ended. */
void sim_network_begin(void);
/* Owned by the network. ip: of IPv4, in dots, and no other host's. */
struct sim_host *sim_host_new(const char *name, const char *ip);
/* NULL: there is none. */
struct sim_host *sim_host_at(struct in_addr ip);

/* How long what one sends takes to the other; at first, no time. */
void sim_link_delay(const struct sim_host *from, const struct sim_host *to, uint64_t least_ns, uint64_t most_ns);
/* What is sent while the link is cut arrives once it has healed, as if it had been sent again and again. */
void sim_link_cut(const struct sim_host *from, const struct sim_host *to, bool is_cut);
/* Off: its connections end without a word to their peers, which only hear of it once what they send arrives when it is
 * on again. Its processes must have ended before; its actors' connections are closed, its actors' listeners wait. */
void sim_host_power(struct sim_host *host, bool is_on);
/* From now on each connection between the two lags by a time of its own, as one does whose pieces are lost: what `from`
 * sends takes so much longer, drawn below most_ns, or no longer for half of them. Drawn again with each call. 0: none
 * lags any more, and what is late arrives soon. */
void sim_connections_lag(const struct sim_host *from, const struct sim_host *to, uint64_t most_ns);
/* Each connection between the two breaks, on both sides. */
void sim_connections_reset(const struct sim_host *a, const struct sim_host *b);
/* One of them, if there is one: mostly that over which the most lags what is sent to a, or else one that is drawn. */
void sim_connection_reset(const struct sim_host *a, const struct sim_host *b);
/* The clocks of the host go by so many millionths faster from now on. */
void sim_host_pace(struct sim_host *host, int64_t ppm);
/* By how much its calendar is wrong, which only that changes. */
int64_t sim_host_calendar(const struct sim_host *host);
void sim_host_set_calendar(struct sim_host *host, int64_t wrong_ns);
