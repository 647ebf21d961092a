/* The revocation log: a file outside Redis that names every revoked key, one per line, written before the revocation is
 * answered. Restoring a backup of Redis brings revoked keys back; 'key revoke --from-log' then replays this file.
 *
 *   2026-01-31T12:00:00.000Z key_01… acct_01…
 *
 * A line is one write(2) of about 90 bytes to a local file, on the loop: it goes into the page cache and costs less
 * than handing it to a thread. Do not put the file on a network file system, which may hang. Nothing is synced. A power
 * cut may lose the last lines, but Redis keeps the revocations, and revoking again writes the line again. Nodes on one
 * machine may share a file, because appends of one write do not mix. */
#pragma once
#include "core/key.h"

struct revocation_log;

/* Opens the file, and creates it (0600) if there is none. On failure NULL, with one sentence in ret_why. */
struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why);
/* Reopens the path, because the file may have been moved away (logrotate). On failure false, with one sentence in
 * ret_why; lines still go to the old file. */
MUST_CHECK bool revocation_log_reopen(struct revocation_log *log, struct buf *ret_why);
/* NULL is fine. */
void revocation_log_close(struct revocation_log *log);

/* Appends a revoked key. 0, or an errno if the line could not be written, which must not keep a revocation from being
 * answered. A partial line is terminated before the next one. */
MUST_CHECK int revocation_log_append(struct revocation_log *log, const struct key_record *key);

/* The key that a line (without its newline) names; false if it names none, or is cut before the end of the id. */
MUST_CHECK bool revocation_log_read(struct text line, struct id *ret_key);
