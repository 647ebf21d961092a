/* From settings to a usable store: reads where Redis is, and waits until the store is ready or Redis is certainly not
 * fit. For nodes and commands alike. */
#pragma once
#include "config/settings.h"
#include "store/store.h"
#include <uv.h>

enum { STORE_URL_MAX_BYTES = 2048 };

/* False with one sentence in ret_why, without the password. */
MUST_CHECK bool store_settings_read(const struct settings *settings, struct store_settings *ret_store,
                                    struct buf *ret_why);
/* False with one sentence in ret_why if a failover would lose acknowledged changes. */
MUST_CHECK bool store_settings_survive_failover(const struct store_settings *store, struct buf *ret_why);
/* "redis://host:port/db", "redis-sentinel://host:port,…/name/db" or "unix:/path", without user and password. */
void store_target_print(const struct redis_target *target, struct buf *out);

enum store_gate_result {
    STORE_GATE_OPEN,  /* the store is ready */
    STORE_GATE_UNFIT, /* Redis answers, and waiting will not make it fit; why is a sentence with the remedy */
};
typedef void store_gate_done(void *arg, enum store_gate_result result, const char *why);

struct store_gate;

/* Waits until one of the two is known, forever if necessary. done runs once at most, never inside a call of this
 * module; why is valid during it. Close the gate before the store. */
struct store_gate *store_gate_create(uv_loop_t *loop, struct store *store, bool unsafe_redis, store_gate_done *done,
                                     void *arg);
/* After this, done does not run. closed runs once, later. */
void store_gate_close(struct store_gate *gate, void (*closed)(void *arg), void *arg);
