/* Where the master is: asks all Sentinels, on connections that stay open, once a second, when one of them tells of a
 * switch, and whenever a link is about to connect. The answer with the highest configuration epoch counts, so that a
 * Sentinel that was cut off or has just come back does not lead to an old master. Links that follow are told when the
 * master moves, so that all of them speak to the same one. Loop thread only. */
#pragma once
#include "base/list.h"
#include "store/redis_link.h"

struct redis_sentinel;

/* One link; its own memory. Neither callback runs inside a call of this module. */
struct sentinel_follower {
    struct list node;
    /* Once for each redis_sentinel_ask(): master, or NULL and a sentence without its full stop. */
    void (*told)(void *arg, const struct redis_address *master, const char *why);
    /* The master is another one than was told before, or is known for the first time. */
    void (*moved)(void *arg, const struct redis_address *master);
    void *arg;
    bool is_asking;
};

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

void redis_sentinel_follow(struct redis_sentinel *sentinel, struct sentinel_follower *follower);
void redis_sentinel_ask(struct redis_sentinel *sentinel, struct sentinel_follower *follower);
/* Nothing is told any more. */
void redis_sentinel_unfollow(struct sentinel_follower *follower);

/* How many replicas there are that could be promoted, also those that are down: as many as any Sentinel knows, by the
 * last word of each. */
int64_t redis_sentinel_replicas(const struct redis_sentinel *sentinel);
struct sentinel_census redis_sentinel_census(const struct redis_sentinel *sentinel);
