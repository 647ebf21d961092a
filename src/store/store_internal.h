/* What the verbs of the store share: calling a script, or a plain command on the link of reads. */
#pragma once
#include "base/log.h"
#include "core/record_mac.h"
#include "lua_scripts.h"
#include "store/store.h"

/* reply is set with STORE_OK alone, and valid during the call. It is the script's reply without its first item: every
 * script returns an array that begins with "ok", "not_found", "conflict" or "refused", told here as the result; items
 * that follow are at reply->items[0], …; with "conflict" and "refused" they are passed too. */
typedef void script_done(void *arg, enum store_result result, const struct redis_reply *reply);

enum script_link {
    SCRIPT_READS,      /* reads other than checks, and writes that need not wait for replicas */
    SCRIPT_CHANGES,    /* changes: durable, and on --min-replicas replicas (WAIT), before done says STORE_OK; too few
                          replicas in time: STORE_UNKNOWN */
    SCRIPT_HEARTBEATS, /* as changes; too few replicas: STORE_REFUSED without a reply, and later changes are tried all
                          the same. Waits no longer than the session's lease, for then it would grant nothing */
    SCRIPT_LEAVES,     /* as changes, but without waiting for replicas: nothing is promised by it */
};
/* Calls a script as EVALSHA sha 0 <prefix> argv…, or EVAL where Redis does not know it. The prefix ("chatelaine:") is
 * ARGV[1]; argv (copied) begins at ARGV[2]. Error replies are logged, rate-limited, and told as STORE_UNAVAILABLE; a
 * reply of a wrong shape is logged and told as STORE_UNAVAILABLE too. */
void store_call_script(struct store *store, enum script script, enum script_link link, size_t argc,
                       const struct text *argv, script_done *done, void *arg);
/* Checks, and nothing that Redis could hold up (a script, a publication): then they would be held up as well. */
struct redis_link *store_reads(struct store *store);
struct redis_link *store_scripts(struct store *store);
/* Before each read on one of them, so that what it brings is known to be ours. */
void store_witness(struct store *store, struct redis_link *link);
uint32_t store_timeout_ms(const struct store *store);
/* How many replicas must have a change before it is answered, and a heartbeat before it grants a lease; 0: none. */
int64_t store_min_replicas(const struct store *store);
/* Who tells which Redis serves; NULL: the one that the target names, for good. */
struct redis_resolver *store_resolver(const struct store *store);
/* From when on no other Redis grants leases (rules 7 and 10), by clock_boot_ns(): it may lie ahead. 0: not known yet.
 */
uint64_t store_sole_since_ns(const struct store *store);
/* The longest lease that may run though this Redis knows nothing of it (its lease_max is shorter); 0: none. */
uint64_t store_lease_unknown_ms(const struct store *store);
/* Whether what is read decides anything: Redis is the one that was found to hold our store (rule 11), and as
 * node_session_may_decide() has it; a store without a session, as commands have it, needs no lease. */
bool store_may_decide(const struct store *store);
/* All connections of a store speak to one process of Redis: each is added when it is made, told of whenever it is
 * ready, before it is used, and removed before it is closed. One that differs ends the others. */
void store_add_link(struct store *store, struct redis_link *link);
void store_link_is_up(struct store *store, const struct redis_link *link);
void store_remove_link(struct store *store, const struct redis_link *link);
/* In the callback of a revocation that was done: it is told again to a Redis that lacks it. For ten minutes, and not
 * for more than the newest 16384. */
void store_keep_revocation(struct store *store, const struct id *key, struct text actor);
/* What becomes the id of a store that has none. */
struct text store_offered_id(const struct store *store);
/* The session has gained or lost its lease. */
void store_lease_changed(struct store *store);
/* True at most once in a few seconds. */
bool store_may_log(struct store *store, struct log_pause *pause);
/* The node's session; NULL for a store without, as commands have it. */
struct node_session;
struct node_session *store_session(const struct store *store);
void store_set_session(struct store *store, struct node_session *session);
/* barrier.c keeps its revocations under way here. */
struct barriers;
struct barriers *store_barriers(struct store *store);
uv_loop_t *store_loop(struct store *store);
struct text store_prefix(const struct store *store);
int64_t store_audit_max(const struct store *store);
/* Among them: what somebody may make. */
const struct store_settings *store_limits(const struct store *store);
/* Maps a plain command's outcome; logs error replies. STORE_OK alone: the reply may be read. */
enum store_result store_outcome(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply);
/* One rate-limited warning that Redis answered something that can't be. */
void store_malformed(struct store *store, const char *what);
/* key_store.c keeps its discards here: called on store_close(); done when all are finished. */
struct key_discards;
struct key_discards **store_discards(struct store *store);
/* In key_store.c: frees them (timers included); closed runs once, later or at once; NULL discards: at once. */
void key_discards_close(struct key_discards *discards, void (*closed)(void *arg), void *arg);

/* In record.c. */

/* The keyring that seals; the store must have one. */
struct keyring *store_keyring(const struct store *store);
/* Whether what was read may be used: STORE_OK; STORE_NOT_FOUND: it was made by nobody who knows a master key, and is
 * counted and logged; STORE_UNAVAILABLE: that can't be told, for the master keys here are not those of the store, or
 * not yet known to be. what: "key"; id: what the record says it is. A store without a keyring takes everything. */
enum store_result store_believe(struct store *store, const struct record_parts *record, struct text mac,
                                const char *what, struct text id);
enum store_result store_believe_key(struct store *store, struct text packed, const uint8_t *digest,
                                    const struct id *id);
/* The same of what can be told without a MAC: never STORE_OK. */
enum store_result store_altered(struct store *store, const char *what, struct text id);
/* What a digest that is not there means: STORE_NOT_FOUND, or STORE_UNAVAILABLE as above. */
enum store_result store_absent(const struct store *store);
/* What Redis' clock says now, as far as is known: for times that a node seals. */
int64_t store_clock_ms(const struct store *store);
