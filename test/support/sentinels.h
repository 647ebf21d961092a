/* A Redis watched by Sentinels: the test's own server as the first master, its replicas, and three Sentinels with a
 * quorum of two. All die with the test. All calls block. */
#pragma once
#include "redis_server.h"

enum { SENTINELS = 3, SENTINELS_REDISES_MAX = 3 };

#define SENTINELS_MASTER_NAME "keys"

struct sentinels {
    struct redis_server *redises[SENTINELS_REDISES_MAX]; /* the first is the caller's */
    struct redis_server replicas[SENTINELS_REDISES_MAX - 1];
    unsigned redis_count;
    struct redis_server servers[SENTINELS]; /* the Sentinels: process, folder, socket and port */
    char url[PROCESS_PATH_BYTES];           /* for --redis */
    char url_of_first[64];                  /* the URL with only the first Sentinel */
};

/* Returns when the replicas are in sync and every Sentinel knows all others. The master gets a port and is guarded. */
void sentinels_start(struct sentinels *sentinels, struct redis_server *master, unsigned replicas);
/* From now on every Sentinel asks for a password, and knows another user with no more rights than nodes need. */
void sentinels_demand(struct sentinels *sentinels, const char *password, const char *user, const char *user_password);
/* The index of the Redis that the second and third Sentinel name as the master. The first Sentinel may be stopped. */
unsigned sentinels_master(const struct sentinels *sentinels);
/* Waits until all replicas follow that master and all Sentinels agree. False after timeout_ms. */
bool sentinels_wait_whole(const struct sentinels *sentinels, unsigned timeout_ms);
/* Stops the Sentinels and the replicas, not the caller's server. */
void sentinels_stop(struct sentinels *sentinels);
