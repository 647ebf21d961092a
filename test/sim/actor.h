/* Ends of connections that are functions of the simulation, not sockets of a process. They are called by events, one
 * after another, and may do all of this in return. */
#pragma once
#include "network.h"

struct sim_socket;

struct sim_actor {
    /* Of a listener: somebody has connected, with the listener's arg. Else the connection is there. */
    void (*connected)(struct sim_socket *socket, void *arg);
    void (*received)(struct sim_socket *socket, void *arg, const char *bytes, size_t length);
    /* The peer has ended, broken or refused the connection, or its own host has no power: the socket is gone after this
     * call. */
    void (*closed)(struct sim_socket *socket, void *arg);
    /* The peer sends nothing more, but may receive. NULL: then the connection is closed. */
    void (*ended)(struct sim_socket *socket, void *arg);
    /* After a send without room: there is some again. NULL: it does not matter. */
    void (*has_room)(struct sim_socket *socket, void *arg);
};

/* A listener stays until it is closed. */
struct sim_socket *sim_actor_listen(struct sim_host *host, uint16_t port, const struct sim_actor *actor, void *arg);
/* The same of a socket that listens, of the caller's: it ends with its descriptor. */
void sim_actor_take(int fd, const struct sim_actor *actor, void *arg);
/* Its answer comes later. The host has power. */
struct sim_socket *sim_actor_connect(struct sim_host *host, struct in_addr ip, uint16_t port,
                                     const struct sim_actor *actor, void *arg);
/* For the calls that follow. */
void sim_actor_is(struct sim_socket *socket, void *arg);
/* As much as the peer has room for, which it tells; after less than all, has_room is called. To a peer that is gone
 * everything is lost. */
size_t sim_actor_send_some(struct sim_socket *socket, const char *bytes, size_t length);
/* All or nothing, for messages that are shorter than a peer's room (256 KiB, or twice its SO_RCVBUF). */
bool sim_actor_send(struct sim_socket *socket, const char *bytes, size_t length);
/* It sends nothing more. */
void sim_actor_end(struct sim_socket *socket);
/* From now on what arrives waits, so that the peer soon has no room; or not any more. A reset is told nevertheless. */
void sim_actor_hold(struct sim_socket *socket, bool holds);
/* Without a call of `closed`. */
void sim_actor_close(struct sim_socket *socket);
/* The same, with a reset. */
void sim_actor_break(struct sim_socket *socket);
