/* Finds the master. Asks all Sentinels over persistent connections: once a second, when one announces a switch, and
 * whenever a link is about to connect. The answer with the highest configuration epoch wins, so a Sentinel that was cut
 * off or has just returned cannot lead back to an old master. When the master moves, all following links are notified,
 * so they all reach the same one. Loop thread only. */
#pragma once
#include "redis/resolver.h"
#include "redis/tls.h"
#include <uv.h>

struct redis_sentinel;

enum { SENTINEL_TROUBLE_BYTES = 320 };

/* The result of the last round, for doctor. */
struct sentinel_census {
    unsigned asked;    /* configured Sentinels */
    unsigned knowing;  /* of those, the ones that answered and know the master */
    unsigned agreeing; /* of those, the ones that name the winning master */
    int64_t quorum;    /* configured in the winning Sentinel */
    int64_t others;    /* how many more Sentinels it knows */
    /* Why one of those that do not know the master could not be asked; empty: there is none */
    char trouble[SENTINEL_TROUBLE_BYTES];
};

/* target: only its Sentinels, their user and password, the master's name and tls are used. tls: needed for a target
 * with tls. timeout_ms: for each question. */
struct redis_sentinel *redis_sentinel_create(uv_loop_t *loop, const struct redis_target *target, struct redis_tls *tls,
                                             uint32_t timeout_ms);
/* Call when no follower is left. closed runs once, later. */
void redis_sentinel_close(struct redis_sentinel *sentinel, void (*closed)(void *arg), void *arg);

/* For links to that master. Lives as long as the Sentinel object. */
struct redis_resolver *redis_sentinel_resolver(struct redis_sentinel *sentinel);

struct sentinel_census redis_sentinel_census(const struct redis_sentinel *sentinel);
