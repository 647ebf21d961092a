/* Calling the embedded scripts. */
#pragma once
#include "lua_scripts.h"
#include "redis/reply.h"
#include "store/types.h"

/* reply is set with STORE_OK alone, and valid during the call. It is the script's reply without its first item: every
 * script returns an array that begins with "ok", "not_found", "conflict" or "refused", told here as the result; items
 * that follow are at reply->items[0], …; with "conflict" and "refused" they are passed too. */
typedef void script_done(void *arg, enum store_result result, const struct redis_reply *reply);

enum script_link {
    SCRIPT_READS,      /* reads other than checks, and writes that need not wait for replicas */
    SCRIPT_CHANGES,    /* changes: durable, and on --min-replicas replicas (WAIT), before done says STORE_OK; too few
                          replicas in time: STORE_UNKNOWN */
    SCRIPT_HEARTBEATS, /* as changes; too few replicas: STORE_REFUSED without a reply, and later changes are tried all
                          the same. Waits no longer than the node's lease, for then it would grant nothing */
    SCRIPT_LEAVES,     /* as changes, but without waiting for replicas: nothing is promised by it */
};
/* Calls a script as EVALSHA sha 0 <prefix> argv…, or EVAL where Redis does not know it. The prefix ("chatelaine:") is
 * ARGV[1]; argv (copied) begins at ARGV[2]. Error replies are logged, rate-limited, and told as STORE_UNAVAILABLE; a
 * reply of a wrong shape is logged and told as STORE_UNAVAILABLE too. */
void store_call_script(struct store *store, enum script script, enum script_link link, size_t argc,
                       const struct text *argv, script_done *done, void *arg);

/* For the store's own parts */

void script_init(struct store *store);
/* Frees what is kept for later calls. */
void script_finish(struct store *store);
void script_tell_refused(struct store *store);
/* A change that is called though the store lacks what was acknowledged. number: as promises_next(), 0 for none. */
void script_call_again(struct store *store, enum script script, size_t argc, const struct text *argv, uint64_t number,
                       script_done *done, void *arg);
/* A script on the link of changes that is called though Redis was not found fit, and does not wait for replicas. */
void script_call_probe(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg);
