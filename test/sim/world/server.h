/* A Redis (redis/simredis.h) on a host, at port 6379; or where there are no hosts, at sockets of the caller. */
#pragma once
#include "network.h"
#include <stdbool.h>
#include <stddef.h>

struct sim_server;

/* What a Redis finds when it starts again. */
enum sim_disk {
    SIM_DISK_WHOLE, /* what it has answered, as with appendfsync always */
    SIM_DISK_COPY,  /* what it was at sim_server_copy() */
};

struct sim_server *sim_server_start(struct sim_host *host);
void sim_server_copy(struct sim_server *server);
/* Its connections end. */
void sim_server_kill(struct sim_server *server);
/* Under connections that live on, all data are away, until they are there again, as they were. */
void sim_server_empty(struct sim_server *server);
void sim_server_refill(struct sim_server *server);
/* Somebody sends it a command of one line, and does not look at the reply. */
void sim_server_tell(struct sim_server *server, const char *command);
void sim_server_restart(struct sim_server *server, enum sim_disk disk);

/* Without hosts */

enum { SIM_SERVER_LISTENERS = 2 };
/* listeners: descriptors of sockets that listen, which the server closes; count: of them. file: where it keeps its
 * data, as appendonly says, and finds them. NULL: nowhere. */
struct sim_server *sim_server_start_here(const int *listeners, size_t count, const char *file);
/* As in redis.conf. */
void sim_server_configure(struct sim_server *server, const char *name, const char *value);
/* It reads nothing, and does nothing, until it goes on. */
void sim_server_freeze(struct sim_server *server, bool is_frozen);
/* Its connections end, and it is gone. */
void sim_server_end(struct sim_server *server);
