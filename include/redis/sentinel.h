/* Where the master is: asks all Sentinels, on connections that stay open, once a second, when one of them tells of a
 * switch, and whenever a link is about to connect. The answer with the highest configuration epoch counts, so that a
 * Sentinel that was cut off or has just come back does not lead to an old master. Links that follow are told when the
 * master moves, so that all of them speak to the same one. Loop thread only. */
#pragma once
#include "redis/resolver.h"
#include <uv.h>

struct redis_sentinel;

/* What the last round of questions brought; for doctor. */
struct sentinel_census {
    unsigned asked;    /* Sentinels that were configured */
    unsigned knowing;  /* that answered and know the master */
    unsigned agreeing; /* of those: that name the one that counts */
    int64_t quorum;    /* as the one that counts has it */
    int64_t others;    /* other Sentinels that this one knows */
};

/* target: of which the Sentinels and the name of the master count. timeout_ms: of a question to one of them. */
struct redis_sentinel *redis_sentinel_create(uv_loop_t *loop, const struct redis_target *target, uint32_t timeout_ms);
/* When nobody follows any more. closed runs once, later. */
void redis_sentinel_close(struct redis_sentinel *sentinel, void (*closed)(void *arg), void *arg);

/* For the links to that master. It lives as long as this does. */
struct redis_resolver *redis_sentinel_resolver(struct redis_sentinel *sentinel);

/* How many replicas there are that could be promoted, also those that are down: as many as any Sentinel knows, by the
 * last word of each. */
int64_t redis_sentinel_replicas(const struct redis_sentinel *sentinel);
struct sentinel_census redis_sentinel_census(const struct redis_sentinel *sentinel);
