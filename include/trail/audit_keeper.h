/* Fills a node's audit log: with events that scripts wrote, with those that nobody else logged, and with the heads of
 * other nodes' chains.
 *
 * Redis keeps a copy of each event until a log has it on disk (prelude.lua). If a command or a node that stopped or
 * cannot write leaves a copy, some node takes it over within about 90 s. So each event is in a log at least once; two
 * lines with the same `id` are the same event. */
#pragma once
#include "audit/audit_log.h"
#include "engine/partitions.h"

struct audit_keeper;

/* From now on changes in all partitions are answered once their events are synced. The log must outlive the
 * partitions. */
struct audit_keeper *audit_keeper_create(const struct partitions *partitions, struct audit_log *log);
/* Exchanges heads and takes over events now, as it does each minute. */
void audit_keeper_hurry(struct audit_keeper *keeper);
/* The node is about to stop: logs that, and publishes the chain's last head. ended runs once, later. */
void audit_keeper_end(struct audit_keeper *keeper, void (*ended)(void *arg), void *arg);
/* After the partitions were closed. */
void audit_keeper_destroy(struct audit_keeper *keeper);

/* Events that no log has, for doctor. */
struct audit_backlog {
    int64_t count, oldest_ms, dropped; /* oldest_ms: age; 0: none */
    bool has_logs;                     /* some node writes a log, or did within 30 days */
    int64_t refused_ms; /* of a node: another one writes its chain, for so long if it has ended; 0: none */
};
typedef void audit_backlog_found(void *arg, enum store_result result, const struct audit_backlog *backlog);
void audit_backlog_read(struct store *store, audit_backlog_found *done, void *arg);

/* The heads of all chains, as nodes publish them each minute and when they end: chain and what
 * audit_published_read() reads, in turn. NULL unless STORE_OK. */
typedef void audit_heads_found(void *arg, enum store_result result, const struct text *heads, size_t count);
void audit_heads_read(struct store *store, audit_heads_found *done, void *arg);
