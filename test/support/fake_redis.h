/* A Redis that misbehaves on request, on the test's own loop: on a free port of 127.0.0.1, or on a Unix socket. It
 * reads and records commands and answers by rules. Without rules it is a master that holds a store (FAKE_STORE_ID); it
 * answers PONG to PING and OK to everything else. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "tls/session.h"
#include <uv.h>

struct fake_redis;

#define FAKE_STORE_ID "5707e5707e5707e5707e5707e5707e57"
/* The content of the store's hash: an id, nothing is missing, the era of FAKE_GATHERED, no former id, and nobody was
 * ever suspended, and it has not moved. */
#define FAKE_STORE(id) "*6\r\n$32\r\n" id "\r\n$-1\r\n$3\r\nera\r\n$-1\r\n$-1\r\n$-1\r\n"
/* The answer to node_gather.lua: its era, no accepted loss, nothing is missing, nobody is absent or telling, and no
 * chains. */
#define FAKE_GATHERED "*6\r\n$2\r\nok\r\n$3\r\nera\r\n:0\r\n:0\r\n:0\r\n:0\r\n"
/* A line of INFO, for rules that answer it, because a greeting asks for it too. */
#define FAKE_RUN_ID "run_id:c0ffee0000000000000000000000000000c0ffee\r\n"
/* The answer to ROLE. */
#define FAKE_MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
#define FAKE_REPLICA "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"

enum fake_action {
    FAKE_ANSWER, /* sends `answer` */
    FAKE_NUL,    /* the same, with NUL in place of each '~' */
    FAKE_SILENT, /* never answers */
    FAKE_CLOSE,  /* sends `answer` (may be NULL), then closes the connection */
    FAKE_RESET,  /* closes the connection with a TCP reset */
};

struct fake_rule {
    const char *command; /* how the command begins, its arguments joined by blanks; "" for all */
    enum fake_action action;
    const char *answer; /* bytes as Redis would send them; with two replies, it answers twice */
    unsigned delay_ms;  /* before the answer; later commands of the connection wait too, as with Redis */
    unsigned times;     /* how often the rule applies; 0: always */
    bool in_pieces;     /* one byte per write */
};

/* path: of a Unix socket; NULL for TCP. */
struct fake_redis *fake_redis_create(uv_loop_t *loop, const char *path);
/* Closes everything. Its memory is freed once the loop has run. */
void fake_redis_close(struct fake_redis *fake);
/* Connections that it accepts from now on begin with a TLS handshake; NULL: no longer. Holds the context. */
void fake_redis_secure(struct fake_redis *fake, struct tls_context *tls);
uint16_t fake_redis_port(const struct fake_redis *fake);

/* The newest rule that matches applies. The strings must outlive it. */
void fake_redis_rule(struct fake_redis *fake, const struct fake_rule *rule);
/* Closes the listener and all connections; later listens again on the same address. */
void fake_redis_go_away(struct fake_redis *fake);
void fake_redis_come_back(struct fake_redis *fake);
/* Gives delayed answers at once. A test that delays one by PATIENCE_MS decides when it comes. */
void fake_redis_hurry(struct fake_redis *fake);
/* Sends unsolicited bytes on every connection. */
void fake_redis_blurt(struct fake_redis *fake, const char *bytes);
/* Sends them only on connections with that name (CLIENT SETNAME); closes those connections. */
void fake_redis_push(struct fake_redis *fake, const char *name, const char *bytes);
void fake_redis_hang_up(struct fake_redis *fake, const char *name);
/* Closes the newest of them. */
void fake_redis_hang_up_newest(struct fake_redis *fake, const char *name);
/* Stops reading from its connections, or goes on. */
void fake_redis_stop_reading(struct fake_redis *fake, bool stop);

/* The number of commands read that begin like this. */
unsigned fake_redis_count(const struct fake_redis *fake, const char *command);
/* The n-th of them, or NULL. */
const char *fake_redis_command(const struct fake_redis *fake, const char *command, unsigned n);
/* Connections accepted so far. */
unsigned fake_redis_accepted(const struct fake_redis *fake);
