/* A redis-server of the test's own, on a Unix socket in a new folder, as durable as in production (appendonly, fsync on
 * every write, noeviction). It dies with the test. All calls block. */
#pragma once
#include "process.h"
#include <stddef.h>
#include <stdint.h>

struct redis_server_options {
    bool tcp;               /* also listens on a free port of 127.0.0.1 */
    const char *password;   /* requirepass; NULL: none */
    bool not_durable;       /* appendonly no, which serve and doctor must refuse */
    bool guarded;           /* min-replicas-to-write 1, min-replicas-max-lag 2, as a master behind Sentinels needs */
    bool allows_debug;      /* DEBUG */
    unsigned load_delay_us; /* for each command that it loads from its file; then redis_server_start() does not wait */
    bool behind_proxy;      /* it has no port of its own; others find it at a proxy's port */
    const char *tls;        /* a folder with ca.pem, redis.pem, redis.key: the port speaks TLS; NULL: plain */
    uint16_t tls_port;      /* with tls: it is this port that speaks TLS, beside the plain one; 0: the only port */
    bool asks_for_certificates;  /* with tls: of clients, from the same CA */
    uint16_t cluster_port;       /* with tcp: it is a node of a cluster, whose others reach it there; 0: it is not */
    unsigned cluster_timeout_ms; /* then: after which others are taken for dead; 0: half a minute */
    bool serves_part;            /* then: also while slots of others are not served */
    const char *address;         /* with tcp: where it listens; NULL: 127.0.0.1 */
};

struct redis_server {
    struct process process;
    struct redis_server_options options;
    char folder[PROCESS_PATH_BYTES];
    char socket_path[PROCESS_PATH_BYTES];
    char url[PROCESS_PATH_BYTES + 64]; /* for --redis: unix:/path[?password=…] */
    uint16_t port;                     /* 0 without tcp */
    struct redis_server *next;         /* another primary of the same cluster, which the calls below act on too; NULL */
};

/* Returns when it answers PING; aborts the test if it does not. options may be NULL. */
void redis_server_start(struct redis_server *server, const struct redis_server_options *options);
/* The same, but it has only a folder and a port: redis_server_restart() starts it. */
void redis_server_prepare(struct redis_server *server, const struct redis_server_options *options);
/* CHATELAINE_TEST_REDIS_SERVER (valkey-server), or redis-server. Sentinels are the same program. */
const char *redis_server_binary(void);
/* Waits until it answers PING; aborts the test if it does not. */
void redis_server_wait_up(struct redis_server *server);
/* Makes a server that was started without tcp listen on a port too, now and after restarts. */
void redis_server_open_port(struct redis_server *server);
/* For a server that was started without tcp: from now on it announces this port of 127.0.0.1 as its own. */
void redis_server_put_behind(struct redis_server *server, uint16_t proxy_port);
/* Where others reach it, with its port. */
const char *redis_server_address(const struct redis_server *server);
/* Sends SIGKILL. The data stays. */
void redis_server_kill(struct redis_server *server);
/* Starts the server again on the same data; kills it first if it runs. */
void redis_server_restart(struct redis_server *server);
/* Deletes its data. Call it between kill and restart. */
void redis_server_forget(struct redis_server *server);
/* Copies its data as they are now, under a running server; and puts that copy back: the server is killed, and runs
 * again with the older data. */
void redis_server_keep(struct redis_server *server);
void redis_server_put_back(struct redis_server *server);
/* SIGSTOP and SIGCONT: a frozen Redis accepts connections and never answers. */
void redis_server_freeze(struct redis_server *server);
void redis_server_thaw(struct redis_server *server);
/* Ends it and removes its folder. */
void redis_server_stop(struct redis_server *server);

/* Sends one command over a connection of its own; arguments up to a NULL. The reply as text: strings as they are,
 * integers in decimal, "(nil)", errors with a leading "-", each element of an array followed by a newline. Cut to size
 * - 1 bytes. Of several primaries, the one that holds the name answers, or else the first. */
__attribute__((sentinel)) void redis_server_ask(const struct redis_server *server, char *ret_reply, size_t size, ...);
/* The same of this server alone; false when it cannot be reached or goes away meanwhile. */
bool redis_server_try(const struct redis_server *server, char *ret_reply, size_t size, size_t argc,
                      const char *const *argv);
/* Writes that name, and waits until a replica has it and everything from before. False: none has within that time. */
bool redis_server_sync(const struct redis_server *server, const char *name, unsigned timeout_ms);
/* Sends one command and aborts on an error reply. */
__attribute__((sentinel)) void redis_server_tell(const struct redis_server *server, ...);
/* The same to every primary: settings, FLUSHALL. */
__attribute__((sentinel)) void redis_server_tell_all(const struct redis_server *server, ...);
