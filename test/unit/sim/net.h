/* A network of two hosts for tests: one process, which is the test, with a loop of unmodified libuv, and an actor that
 * notes what it hears. */
#pragma once
#include "actor.h"
#include "network.h"
#include "schedule.h"
#include <stdbool.h>
#include <uv.h>

enum { NET_PORT = 80, NET_MS = 1000 * 1000, NET_BYTES_MAX = 2 * 1024 * 1024 };

/* What one end of a connection has heard. */
struct heard {
    char *bytes;
    size_t len, pieces, least, most; /* least, most: bytes of a piece */
    unsigned connected, ended, closed;
    int error; /* the last one, of libuv */
};

/* Of the test's process: one end of a connection. */
struct net_client {
    uv_tcp_t tcp;
    uv_connect_t connect;
    struct heard heard;
    bool is_open, is_connected;
};

extern uv_loop_t net_loop;
extern struct sim_host *net_near, *net_far; /* near: where the test's process runs at first */
/* Of the actor that listens at net_far: of the connection that came last, and of all. */
extern struct sim_socket *net_accepted;
extern struct heard net_heard;
extern unsigned net_open; /* connections that actors have */
extern bool net_echoes;   /* it sends back what it hears */
extern const struct sim_actor NET_ACTOR;

/* Time begins at the same moment each time. Without latency. */
void net_begin(uint64_t seed);
/* Everything must have been closed: no socket, no descriptor is left. */
void net_end(void);
/* The process' next sockets are of this host. */
void net_be_at(struct sim_host *host);
/* Both directions. */
void net_delay(uint64_t least_ns, uint64_t most_ns);
void net_cut(bool is_cut);
/* The actor listens. */
void net_listen(void);
/* Since it began. */
uint64_t net_now_ns(void);

void net_connect(struct net_client *client, const char *ip, uint16_t port);
void net_send(struct net_client *client, const char *bytes, size_t length);
void net_close(struct net_client *client);

/* A client whose connection the actor has accepted. Latency is 1 to 5 ms. */
extern struct net_client net_client;
void net_begin_connected(uint64_t seed);
/* The actor's side is told, too. */
void net_end_connected(void);
/* No part of it is like another. */
const char *net_pattern(void);
enum { NET_PATTERN_BYTES = 150 * 1024 };

/* Lets the loop, and the network, run until the condition holds, for at most an hour of virtual time. */
#define NET_RUN_UNTIL(condition)                                                     \
    do {                                                                             \
        const uint64_t net_until_ns = net_now_ns() + UINT64_C(3600) * 1000 * NET_MS; \
        while (!(condition) && net_now_ns() < net_until_ns)                          \
            net_run_once();                                                          \
        cr_assert(condition);                                                        \
    } while (0)
void net_run_once(void);
void net_run_for_ms(uint64_t ms);
void net_hear(struct heard *heard, const char *bytes, size_t length);
