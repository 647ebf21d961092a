/* How the engine runs what other rooms keep for each store (src/engine/README.md#rooms): it registers, so the engine
 * needs none of their symbols. */
#pragma once
#include "redis/reply.h"
#include "engine/types.h"

/* One kind of part. Each store makes one of each. */
struct store_part {
    /* Links and lease exist, but nothing is connected yet. */
    void *(*create)(struct store *store);
    /* Frees what create() returned. All calls of links and scripts have completed, further ones are refused, and the
     * lease still exists. closed runs once, at once or later. */
    void (*close)(void *made, void (*closed)(void *arg), void *arg);
    /* Writes down what takes effect at a time that has come; Redis says so at each heartbeat. NULL: nothing. */
    void (*due)(void *made);
    /* Goes on with what has time, at each heartbeat. NULL: nothing. */
    void (*beat)(void *made);
};

/* The result of create() for this store. It must not be closed yet. */
void *store_part(const struct store *store, const struct store_part *part);

/* The node's audit log. It has the events of a change before the change is answered. */
struct store_log {
    const char *(*chain)(void *arg);
    /* Why it cannot be written; NULL: it can. */
    const char *(*trouble)(void *arg);
    /* Logs the events of one reply (epilogue.lua). done runs once, later. is_synced: they are on disk. */
    void (*append)(void *arg, const struct redis_reply *events, void (*done)(void *arg, bool is_synced),
                   void *done_arg);
    void *arg;
};
/* From now on all scripts return their events to it. It must outlive the store. */
void store_log_to(struct store *store, const struct store_log *log);

/* For the store's own files */

/* Of the log; NULL without one. */
const char *store_log_trouble(const struct store *store);

/* parts ends with NULL. */
void parts_create(struct store *store, const struct store_part *const *parts);
/* At a heartbeat, not while the store is closing. */
void parts_beat(struct store *store, bool is_due);
/* One after the other, in their order. closed runs once, at once or later. */
void parts_close(struct store *store, void (*closed)(struct store *store));
