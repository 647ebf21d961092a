/* A Redis (redis/simredis.h) on a host, at port 6379, alone or in a cluster; or where there are no hosts, at sockets of
 * the caller. */
#pragma once
#include "base/text.h"
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
/* As a member of a cluster, which answers at its host's calendar. nodes: its nodes.conf. */
struct sim_server *sim_server_start_member(struct sim_host *host, const char *nodes);
/* Its host's. */
const char *sim_server_name(const struct sim_server *server);
/* As in redis.conf, also when it starts again. On hosts, whom it follows is kept as well. */
void sim_server_configure(struct sim_server *server, const char *name, const char *value);
/* Whether it runs. */
bool sim_server_is_up(const struct sim_server *server);
/* Whether it has that key; false: it does not run. */
bool sim_server_has(struct sim_server *server, const char *key);
void sim_server_copy(struct sim_server *server);
/* Its connections end. */
void sim_server_kill(struct sim_server *server);
/* Under connections that live on, all data are away, until they are there again, as they were. */
void sim_server_empty(struct sim_server *server);
void sim_server_refill(struct sim_server *server);
/* Somebody sends it a command of one line, and does not look at the reply. Nothing if it is killed. */
void sim_server_tell(struct sim_server *server, const char *command);
/* The same, and the reply is appended, as Redis sends it. False: it is down. */
bool sim_server_ask(struct sim_server *server, const struct text *argv, size_t argc, struct buf *ret_reply);
void sim_server_restart(struct sim_server *server, enum sim_disk disk);

/* Without hosts */

enum { SIM_SERVER_LISTENERS = 2 };
/* listeners: descriptors of sockets that listen, which the server closes; count: of them. file: where it keeps its
 * data, as appendonly says, and finds them. NULL: nowhere. */
struct sim_server *sim_server_start_here(const int *listeners, size_t count, const char *file);
/* It reads nothing, and does nothing, until it goes on. */
void sim_server_freeze(struct sim_server *server, bool is_frozen);
/* Its connections end, and it is gone. */
void sim_server_end(struct sim_server *server);
