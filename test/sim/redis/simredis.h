/* A Redis server as a library: no socket, no thread, no clock of its own. It answers as Redis 7.0 does, and what Redis
 * leaves open (the order of a hash, a random choice) is the same in each run. README.md says what is there.
 * Nothing here may be called from within a function of its host. Single-threaded. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct simredis;
struct simredis_client;

/* What the server asks of its surroundings. context: of this struct; client: of simredis_connect(). */
struct simredis_host {
    void *context;
    /* The clock, which may be set back. It is read once for each command that a client sends. */
    uint64_t (*unix_us)(void *context);
    uint64_t (*random)(void *context);
    /* The bytes are the callee's to copy. */
    void (*send)(void *client, const char *bytes, size_t length);
    /* The server closes the connection (QUIT, CLIENT KILL, garbage): whatever was sent before still reaches the client.
     * Afterwards the struct simredis_client is gone: simredis_disconnect() must not be called. */
    void (*close)(void *client);
    /* What a write did, as commands that do the same whenever they are run: those of a script in one call. NULL: nobody
     * wants to know. Called before the reply is sent, as with appendfsync always. */
    void (*log)(void *context, const char *bytes, size_t length);
    /* A replica's connection to its master: the host's name for it, which `send` and `close` get as theirs. Later the
     * host calls simredis_master_up(), or simredis_master_lost(). NULL: there is none; it asks again in a second. dial
     * NULL: REPLICAOF changes what the server says of itself, and nothing arrives. */
    void *(*dial)(void *context, const char *host, uint16_t port);
};

/* host is copied. */
struct simredis *simredis_new(const struct simredis_host *host);
/* Without a word to its clients. */
void simredis_free(struct simredis *server);

/* As in redis.conf or CONFIG SET; false: no such setting, or not that value. Settings that this server does not act
 * upon are kept and shown. */
bool simredis_configure(struct simredis *server, const char *name, const char *value);

/* Its value, until it is set again; NULL: no such setting. */
const char *simredis_setting(const struct simredis *server, const char *name);

/* client: the host's name for it. Freed by simredis_disconnect(), simredis_free(), or when the server closes it. */
struct simredis_client *simredis_connect(struct simredis *server, void *client);
/* Any piece of the stream, of any size. Replies come by host->send before it returns, except those of commands that
 * wait (WAIT) and of what CLIENT PAUSE holds back. The client may be gone when it returns: see host->close. */
void simredis_receive(struct simredis_client *client, const char *bytes, size_t length);
/* The connection broke or was closed at the other end. */
void simredis_disconnect(struct simredis_client *client);

/* The connection that host->dial began is there; bytes have come; it broke, or never came about. */
void simredis_master_up(struct simredis *server);
void simredis_master_receive(struct simredis *server, const char *bytes, size_t length);
void simredis_master_lost(struct simredis *server);

/* When the server next has something to do by itself, in us of host->unix_us; UINT64_MAX: never. */
uint64_t simredis_next_us(const struct simredis *server);
/* Does what is due. Called earlier, it does nothing. */
void simredis_run(struct simredis *server);

/* All that it holds, as commands that a new server may load: what is on a disk. The caller frees it. */
char *simredis_save(struct simredis *server, size_t *ret_length);
/* Runs commands from simredis_save() and host->log, in a server that has no data; nothing is answered or logged. A
 * command that is cut off at the end is left out, with all of its script. False: they are not that. */
bool simredis_load(struct simredis *server, const char *bytes, size_t length);
