/* The two servers, with the same clients: simredis in this process, and a redis-server. Both read the clock of
 * sides_set_clock(), which stands still otherwise. */
#pragma once
#include "words.h"

enum { CLIENTS = 4 };

/* in_cluster: each is the only member of a cluster, and has all slots. */
void sides_start(uint64_t unix_us, uint64_t seed, bool in_cluster);
void sides_set_clock(uint64_t unix_us);
/* Sends it to both as that client, and waits for all that either answers. Replies of before are forgotten. False: only
 * one of them has closed the connection. */
bool sides_send(size_t client, const struct line *line);
/* What has come for that client since: of simredis (0) or of Redis (1), with a PONG at the end. */
struct text sides_replies(size_t client, size_t side);
/* Waits for what has come to a client that asked nothing, if simredis has sent something; or always. Returns whether
 * it did. */
bool sides_hear(size_t client, bool always);
/* simredis after a restart: it has what its log says, or what simredis_save() does. */
void sides_restart(bool from_log);
void sides_stop(void);
