/* Calls the embedded scripts. */
#pragma once
#include "engine/lua_scripts.h"
#include "redis/reply.h"
#include "engine/types.h"

/* Every script replies with an array whose first item is the result's name: "ok", "not_found", "conflict", "refused",
 * "full", "limited" or "actor_…". reply is the array without that item, valid during the call. It is set with STORE_OK,
 * STORE_CONFLICT, STORE_REFUSED (but see SCRIPT_HEARTBEATS) and STORE_LIMITED; else NULL. */
typedef void script_done(void *arg, enum store_result result, const struct redis_reply *reply);

enum script_link {
    SCRIPT_READS,      /* reads other than checks, and writes that need not wait for replicas */
    SCRIPT_WORK,       /* lists, searches and exports: reads that nothing else shall wait behind */
    SCRIPT_CHANGES,    /* STORE_OK only after --min-replicas have it (WAIT); too few in time: STORE_UNKNOWN */
    SCRIPT_UNPROMISED, /* like changes, but a Redis that loses it has lost nothing that must be brought back */
    SCRIPT_HEARTBEATS, /* WAIT for at most the lease; too few: STORE_REFUSED, reply NULL, and changes go on */
    SCRIPT_LEAVES,     /* like changes, but without WAIT, and to any Redis of our store: it promises nothing */
    SCRIPT_REPORTS,    /* on the link of SCRIPT_READS, also to a Redis that is not fit; its reply decides nothing */
};
/* Calls a script by EVALSHA. If Redis does not know it, one of the calls under way sends its text (EVAL) and the others
 * follow. ARGV[1] is the prefix ("chatelaine:"); argv, which is copied, begins at ARGV[2]. Aborts unless the script
 * declares that many arguments. Error replies and malformed replies are logged, rate-limited, and reported as
 * STORE_UNAVAILABLE. done runs once, later. */
void store_call_script(struct store *store, enum script script, enum script_link link, size_t argc,
                       const struct text *argv, script_done *done, void *arg);
/* The same for a change. replied runs once, before done, with the same arg: when Redis has replied, or the call has
 * failed. done may have to wait for a disk, because events are also in an audit log before they are answered. */
void store_call_change(struct store *store, enum script script, size_t argc, const struct text *argv,
                       void (*replied)(void *arg), script_done *done, void *arg);
/* Calls none: STORE_UNAVAILABLE, later. For a verb that finds before its first call that another partition is away. */
void store_refuse(struct store *store, script_done *done, void *arg);

/* For the store's own files */

void script_init(struct store *store);
/* Frees the calls kept for reuse. */
void script_finish(struct store *store);
void script_tell_refused(struct store *store);
/* A change that runs even though the store lacks acknowledged changes, or nobody knows whether it does. */
void script_call_again(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg);
/* A script on the `changes` link that runs even if Redis was not found fit, without WAIT. */
void script_call_probe(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg);
