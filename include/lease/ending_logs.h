/* Revocations in a node's logs on disk (rule 13). They restore a Redis that came back with an older state while no node
 * ran that remembered more. The node compares its newest lines, back to a run of lines that this Redis has, and repeats
 * the missing ones. One for each partition. Loop thread only. */
#pragma once
#include "lease/settings.h"

/* A key that was revoked, and since when. */
struct logged_ending {
    struct id key;
    int64_t at_ms;
};

/* The store that is compared. */
struct store_names {
    struct text id, former; /* the one before its last upgrade; empty: none */
};

/* endings: valid during the call; none: there are no more. */
typedef void ending_logs_read(void *arg, const struct logged_ending *endings, size_t count);

enum { ENDING_LOGS_AT_ONCE = 512 };

/* The files. They outlive the leases. */
struct ending_logs {
    unsigned count;
    /* Reads on in the log of that number, the newest lines first: at most ENDING_LOGS_AT_ONCE of this store and this
     * partition. is_first: from its end. done runs once, later. Lines that cannot be read are logged, and left out. */
    void (*read)(void *arg, unsigned log, const struct store_names *names, bool is_first, ending_logs_read *done,
                 void *done_arg);
    /* No more of that log is needed. */
    void (*end)(void *arg, unsigned log);
    void *arg;
};

struct comparison;

/* settings must outlive it. */
struct comparison *comparison_create(const struct lease_settings *settings);
/* NULL: there are none. Not while one is under way. */
void comparison_set_logs(struct comparison *comparison, const struct ending_logs *logs);
/* Whether logs have not been compared with the Redis of this era yet. */
bool comparison_is_due(const struct comparison *comparison, const char *era);
bool comparison_is_running(const struct comparison *comparison);
/* Compares all. done runs once, later: is_done is false if Redis did not answer; lost: how many revocations it had lost
 * and was told, in either case. */
typedef void comparison_done(void *arg, bool is_done, uint64_t lost);
void comparison_run(struct comparison *comparison, const char *era, const struct store_names *names,
                    comparison_done *done, void *arg);
/* Waits for a read that is under way. closed runs once, at once or later; done of one that is running does not run. */
void comparison_close(struct comparison *comparison, void (*closed)(void *arg), void *arg);
