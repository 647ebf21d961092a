/* The revocation log: a file outside Redis that names every revoked key, one per line, written before the revocation is
 * answered. Restoring a backup of Redis brings revoked keys back; 'key revoke --from-log' then replays this file.
 *
 *   2026-01-31T12:00:00.000Z key_01… acct_01… store=4f1c…
 *   2026-01-31T12:00:00.000Z scheduled key_01… acct_01… 2026-02-28T12:00:00.000Z store=4f1c…
 *   2026-01-31T12:00:00.000Z withdrawn key_01… acct_01… store=4f1c…
 *
 * The first is revoked, since that time. The others say that a key will be, or no longer, and when this was said, by
 * the store's time; versions that do not know them count them as unreadable. Up to 0.3 lines name no store, and what
 * follows is ignored there.
 *
 * A line is one write(2) of about 130 bytes to a local file, on the loop: it goes into the page cache and costs less
 * than handing it to a thread. Do not put the file on a network file system, which may hang. Nothing is synced. A power
 * cut may lose the last lines, but Redis keeps the revocations, and revoking again writes the line again. Nodes on one
 * machine may share a file, because appends of one write do not mix. */
#pragma once
#include "core/key.h"

struct revocation_log;

/* Opens the file, and creates it (0600) if there is none. On failure NULL, with one sentence in ret_why. */
struct revocation_log *revocation_log_open(const char *path, struct buf *ret_why);
/* Looks whether the path still leads to the file, as each append does, and writes what could not be written; call it
 * each second, and once the file was renamed. If not, the log goes on in what is there, and what
 * was lost or cannot be written is logged. */
void revocation_log_look(struct revocation_log *log);
/* NULL, or a sentence that says why lines wait; valid until the next call. */
const char *revocation_log_trouble(struct revocation_log *log);
/* NULL is fine. */
void revocation_log_close(struct revocation_log *log);

/* Appends a revoked key. store: the id of the store that it belongs to. 0, or an errno if the line could not be
 * written yet, which must not keep a revocation from being answered: it waits in memory, with up to 1 MiB of others. A
 * partial line is terminated before the next one. */
MUST_CHECK int revocation_log_append(struct revocation_log *log, const struct key_record *key, struct text store);

/* The same for a key that will be revoked at ends_ms, or whose scheduled revocation was withdrawn (0), as was said at
 * said_ms. */
MUST_CHECK int revocation_log_append_end(struct revocation_log *log, const struct key_record *key, int64_t said_ms,
                                         struct text store);

/* A line about a key. */
struct revocation_line {
    struct id key;
    int64_t at_ms; /* when it was revoked, or this was said */
    enum { REVOCATION_WITHDRAWN, REVOCATION_SCHEDULED, REVOCATION_DONE } what;
    int64_t ends_ms;   /* of one that is scheduled; else 0 */
    struct id account; /* empty: the line is cut */
    struct text store; /* a view of the line; empty: it names none. A cut line has the beginning of one. */
};
/* Reads a line without its newline; false if it says nothing of a key, or is cut before that. */
MUST_CHECK bool revocation_log_read(struct text line, struct revocation_line *ret_line);
