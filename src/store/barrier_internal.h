/* The barrier (design 6, rules 5 to 8): when a revocation may be answered. It is over when every session in the
 * registry that the script returned has acknowledged, or when W has passed since the script's reply: then every lease
 * that ran when the key was marked has ended, whatever became of its node. */
#pragma once
#include "session_name_internal.h"
#include "redis/reply.h"
#include "store_internal.h"

struct barrier;

struct barriers *barriers_create(struct store *store);
/* Those under way are told false; then frees. closed runs once, later. */
void barriers_close(struct barriers *barriers, void (*closed)(void *arg), void *arg);
/* The link of changes is down: Redis may be another one now, nothing more can be promised. */
void barriers_fail(struct barriers *barriers);

/* Before the script is called, for acknowledgements can overtake its reply. */
struct barrier *barrier_begin(struct barriers *barriers);
/* What the script publishes: whom to acknowledge to, and which barrier. Valid until done or barrier_drop(). */
struct text barrier_session(const struct barrier *barrier);
struct text barrier_name(const struct barrier *barrier);
/* The script changed nothing: frees. */
void barrier_drop(struct barrier *barrier);
/* The script has answered: lease_max_ms and the registry (session, what it holds, session, ...). done runs once,
 * perhaps inside this call: true where no node accepts the key any more. False at once where these can't be. */
MUST_CHECK bool barrier_wait(struct barrier *barrier, int64_t lease_max_ms, const struct redis_reply *registry,
                             void (*done)(void *arg, bool is_over), void *arg);

/* A key was made: done runs once, perhaps inside this call, when no lease runs any more that another Redis granted
 * which was replaced by this one (rule 10). A node that has one asks that Redis, and would call the new key unknown.
 * False: the link of changes was lost meanwhile; the key is made all the same. */
void barriers_settle(struct barriers *barriers, void (*done)(void *arg, bool is_over), void *arg);

/* A node has let go. */
void barriers_acknowledge(struct barriers *barriers, struct text session, struct text barrier);
