/* The revocation log: a file outside Redis that names every key whose revocation was answered, one line each, for
 * 'key revoke --from-log' to replay after Redis was restored from a backup, which brings revoked keys back.
 *
 *   2026-01-31T12:00:00.000Z key_01… acct_01…
 *
 * A line is one write(2) of some 90 bytes to a local file, made on the loop: it goes into the page cache, and costs
 * less than handing it to a thread would. Do not put the file on a network file system that may hang. Nothing is
 * synced: a power cut may take the last lines, but it takes no revocation from Redis, and one that is answered again is
 * written again. Several nodes of a machine may share a file, as appends of one write do not mix. */
#pragma once
#include "core/key.h"

struct revocation_log;

/* Creates the file (0600) where there is none. NULL with one sentence in ret_why. */
struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why);
/* Opens the path again, for the file may have been moved away (logrotate). False with one sentence in ret_why: lines
 * still go where they went. */
MUST_CHECK bool revocation_log_reopen(struct revocation_log *log, struct buf *ret_why);
/* NULL is fine. */
void revocation_log_close(struct revocation_log *log);

/* A revoked key. 0, or the errno for which the file lacks the line; that must not keep a revocation from being
 * answered. What was written of it is ended before the next line. */
MUST_CHECK int revocation_log_append(struct revocation_log *log, const struct key_record *key);

/* The key that a line (without its newline) names; false when it is none, or torn before the end of the id. */
MUST_CHECK bool revocation_log_read(struct text line, struct id *ret_key);
