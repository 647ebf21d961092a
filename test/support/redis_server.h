/* A redis-server of the test's own: on a unix socket in a new folder, as durable as production asks for (appendonly,
 * fsync on every write, noeviction). It dies with the test. All calls block. */
#pragma once
#include "process.h"
#include <stddef.h>
#include <stdint.h>

struct redis_server_options {
    bool tcp;               /* listens on a free port of 127.0.0.1 too */
    const char *password;   /* requirepass; NULL: none */
    bool not_durable;       /* appendonly no: what serve and doctor must refuse */
    bool guarded;           /* min-replicas-to-write 1, min-replicas-max-lag 2: what Sentinels' masters need */
    unsigned load_delay_us; /* for each command of its file that it reads back: then a start is not waited for */
    bool behind_proxy;      /* it has no port of its own; the port is a proxy's, by which others are to find it */
};

struct redis_server {
    struct process process;
    struct redis_server_options options;
    char folder[PROCESS_PATH_BYTES];
    char socket_path[PROCESS_PATH_BYTES];
    char url[PROCESS_PATH_BYTES + 64]; /* for --redis: unix:/path[?password=…] */
    uint16_t port;                     /* 0 without tcp */
};

/* Returns when it answers PING; aborts the test when it does not. options may be NULL. */
void redis_server_start(struct redis_server *server, const struct redis_server_options *options);
/* A port of 127.0.0.1 that was free a moment ago. */
uint16_t redis_server_free_port(void);
/* Waits until it answers PING; aborts the test when it does not. */
void redis_server_wait_up(struct redis_server *server);
/* Lets one that was started without tcp listen on a port too, now and whenever it is started again. */
void redis_server_open_port(struct redis_server *server);
/* For one that was started without tcp: from now on others are told to find it at this port of 127.0.0.1. */
void redis_server_put_behind(struct redis_server *server, uint16_t proxy_port);
/* SIGKILL; its data stays. */
void redis_server_kill(struct redis_server *server);
/* The same server again on the same data, once more killed before if it runs. */
void redis_server_restart(struct redis_server *server);
/* Its data are lost: to be called between kill and restart. */
void redis_server_forget(struct redis_server *server);
/* SIGSTOP and SIGCONT: a Redis that takes connections and never answers. */
void redis_server_freeze(struct redis_server *server);
void redis_server_thaw(struct redis_server *server);
/* Ends it and removes its folder. */
void redis_server_stop(struct redis_server *server);

/* One command over a connection of its own, arguments up to a NULL. The reply as text: strings as they are, integers in
 * decimal, "(nil)", errors with a leading "-", the elements of arrays each ended by a newline. Cut to size - 1 bytes.
 */
__attribute__((sentinel)) void redis_server_ask(const struct redis_server *server, char *ret_reply, size_t size, ...);
/* The same where only success matters: aborts on an error reply. */
__attribute__((sentinel)) void redis_server_tell(const struct redis_server *server, ...);
