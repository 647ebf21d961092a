/* A node's audit log: a file of chained lines (core/audit_line.h). A line is on disk before its callback says so. Lines
 * that arrive during a sync share the next one. Writing and syncing run on a thread that ends with them; everything
 * else runs on the loop.
 *
 * The file belongs to one node, which locks it. The chain continues where the file ends. After a failed write, the end
 * is read again: an AUDIT_LINE_TORN follows a line that was cut short, and complete lines stay, confirmed or not.
 *
 *   IDLE -- lines wait -------> WRITING -- synced or failed --> IDLE
 *     |                            +------ takes too long ----> HUNG -- synced or failed --> IDLE
 *     +---- audit_log_close() -> CLOSED
 *
 * If a write hangs, the lines that wait for it are reported as not synced. */
#pragma once
#include "base/attr.h"
#include "core/audit_line.h"
#include <uv.h>

struct audit_log;

struct audit_log_settings {
    const char *path;
    struct keyring *keyring;
    uint32_t write_within_ms; /* a write that takes longer has failed for those who wait for it */
};
enum { AUDIT_LOG_WRITE_WITHIN_MS = 10000 };

/* Opens the file, and creates it (0600) if there is none. NULL with one sentence in ret_why if it cannot be opened, is
 * not a regular file, or is another node's. */
struct audit_log *audit_log_open(uv_loop_t *loop, const struct audit_log_settings *settings, struct buf *ret_why);
/* Call before the first line. node: its name, as 'chatelaine status' shows it; the node knows it once it listens. */
void audit_log_name(struct audit_log *log, const char *node);
/* Until it is allowed to write (why NULL), lines wait (why ""), or fail with that reason as on a full disk. why: a
 * constant. A log that has lines may be a copy of another node's, so it begins with ""; an empty one with NULL. */
void audit_log_hold(struct audit_log *log, const char *why);
const char *audit_log_held(const struct audit_log *log);
/* Whether lines wait for it. */
bool audit_log_waits(const struct audit_log *log);
/* Calls synced after the callbacks of each sync, done or failed. */
void audit_log_watch(struct audit_log *log, void (*synced)(void *arg), void *arg);
/* Waits for a sync under way; nothing may be waiting behind it. closed (may be NULL) runs later. */
void audit_log_close(struct audit_log *log, void (*closed)(void *arg), void *arg);

/* is_synced: the line is on disk. False: it may not be. */
typedef void audit_logged(void *arg, bool is_synced);
/* Copies the line; its node is the log's. done runs once, later. */
void audit_log_append(struct audit_log *log, const struct audit_line *line, audit_logged *done, void *arg);

/* Looks whether the path still leads to the file, as each write does; call it each second, and once the file was
 * renamed. If not, the log goes on in what is there: AUDIT_LINE_CONTINUED names the head in a file that is new because
 * the former was renamed, and AUDIT_LINE_REOPENED names the lines that were lost with one that was removed, replaced or
 * cut. If nothing can be opened there, lines fail as on a full disk. */
void audit_log_look(struct audit_log *log);

/* NULL, or why the last write failed. */
const char *audit_log_trouble(const struct audit_log *log);
/* See append_file_place(). */
const char *audit_log_place(const struct audit_log *log);
/* The name of the chain. */
const char *audit_log_chain(const struct audit_log *log);
/* The end of the chain on disk. */
void audit_log_head(const struct audit_log *log, struct audit_published *ret_published);
