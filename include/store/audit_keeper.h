/* Keeps a node's audit log: what scripts wrote, what nobody else has logged, and how far the chains of other nodes have
 * come.
 *
 * Each event also stands in Redis as a copy that no log has yet (prelude.lua), until a log is synced. A copy that is
 * left, by a command, by a node that stopped or cannot write, is taken over by some node within about a minute and a
 * half. So each event is in a log at least once; `id` tells whether two lines are the same event. */
#pragma once
#include "store/audit_log.h"
#include "store/store.h"

struct audit_keeper;

/* From now on the store's changes are answered once their events are synced. The log must outlive the store. */
struct audit_keeper *audit_keeper_create(struct store *store, struct audit_log *log);
/* Exchanges heads and takes over events now, as it does each minute. */
void audit_keeper_hurry(struct audit_keeper *keeper);
/* The node is about to stop: tells so in the log, and publishes the chain's last head. ended runs once, later. */
void audit_keeper_end(struct audit_keeper *keeper, void (*ended)(void *arg), void *arg);
/* After the store was closed. */
void audit_keeper_destroy(struct audit_keeper *keeper);

/* Events that no log has, for doctor. */
struct audit_backlog {
    int64_t count, oldest_ms, dropped; /* oldest_ms: age; 0: none */
    bool has_logs;                     /* some node writes a log, or did within 30 days */
};
typedef void audit_backlog_found(void *arg, enum store_result result, const struct audit_backlog *backlog);
void audit_backlog_read(struct store *store, audit_backlog_found *done, void *arg);
