/* A Redis (redis/simredis.h) on a host, at port 6379. */
#pragma once
#include "network.h"

struct sim_server;

/* What a Redis finds when it starts again. */
enum sim_disk {
    SIM_DISK_WHOLE, /* what it has answered, as with appendfsync always */
    SIM_DISK_COPY,  /* what it was at sim_server_copy() */
    SIM_DISK_EMPTY, /* nothing; and it forgets what it is told from then on, when it is killed again */
};

struct sim_server *sim_server_start(struct sim_host *host);
void sim_server_copy(struct sim_server *server);
/* Its connections end. */
void sim_server_kill(struct sim_server *server);
void sim_server_restart(struct sim_server *server, enum sim_disk disk);
