/* From settings to a usable store: reads the Redis settings, then waits until the store is ready or Redis turns out to
 * be unfit. Used by nodes and commands. */
#pragma once
#include "config/settings.h"
#include "engine/partitions.h"
#include <uv.h>

enum { STORE_URL_MAX_BYTES = 2048 };

/* On failure, ret_why holds one sentence, without the password. settings must outlive ret_store. */
MUST_CHECK bool store_settings_read(const struct settings *settings, struct store_settings *ret_store,
                                    struct buf *ret_why);
/* Frees and wipes what store_settings_read() has read, also if it failed. Call it when the store is closed. */
void store_settings_finish(struct store_settings *store);
/* False, with one sentence in ret_why, if a failover would lose acknowledged changes. */
MUST_CHECK bool store_settings_survive_failover(const struct store_settings *store, struct buf *ret_why);
/* "redis://host:port/db", "redis-sentinel://host:port,…/name/db", "redis-cluster://host:port,…" or "unix:/path",
 * without user and password. */
void store_target_print(const struct redis_target *target, struct buf *out);

enum startup_gate_result {
    STARTUP_GATE_OPEN,   /* the store is ready, or a part of it that the rest does not follow soon */
    STARTUP_GATE_UNFIT,  /* Redis answers but is unfit, and waiting will not help; why is a sentence with the remedy */
    STARTUP_GATE_UNSAFE, /* likewise, but --unsafe-redis would open the gate */
    STARTUP_GATE_ELSEWHERE, /* the store has another number of partitions or has moved; why says how to reach it */
};
typedef void startup_gate_done(void *arg, enum startup_gate_result result, const char *why);

struct startup_gate;

/* Waits for one of these results, forever if necessary. done runs at most once, and never inside a call of this
 * module. why is valid only during done. Close the gate before the store. */
struct startup_gate *startup_gate_create(uv_loop_t *loop, struct partitions *partitions, bool unsafe_redis,
                                         startup_gate_done *done, void *arg);
/* done does not run after this. closed runs once, later. */
void startup_gate_close(struct startup_gate *gate, void (*closed)(void *arg), void *arg);
