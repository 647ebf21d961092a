/* The store's time (store_times() in prelude.lua) as a node knows it from its heartbeats. Between heartbeats it counts
 * on by its own clock, which may run 10 % fast or slow and need not be right. So it notices when Redis' clock was set
 * (src/lease/README.md, Scheduled revocations). All times are in ms by the store's time, or in ns by clock_boot_ns().
 */
#pragma once
#include "base/text.h"
#include "redis/reply.h"
#include <stdbool.h>
#include <stdint.h>

enum {
    STORE_SETTLEMENT_BYTES = 40,
    /* How much too early a scheduled revocation may take effect. */
    STORE_EARLY_MAX_MS = 200,
};

/* As Redis said it, or as this node knows better. The time is between first and last, unless Redis' clock was set since
 * a heartbeat came. */
struct store_time_said {
    int64_t first_ms, last_ms, clock_ms;     /* clock: Redis' own */
    int64_t kept_ms;                         /* it was surely reached; 0: nothing is scheduled, and nothing is kept */
    char settlement[STORE_SETTLEMENT_BYTES]; /* what was told under another one does not count; "-": there is none */
};

/* An answer, and the moments between which it was right. */
struct store_time_told {
    struct store_time_said said;
    uint64_t sent_ns, read_ns; /* before the question was sent, and when the answer was read */
};

/* Zero: it was told nothing. */
struct store_time {
    struct store_time_told known;
    /* The first answer while `known` is empty or old. It counts once other nodes have kept a time as late as that, or
     * after a while in which no node kept any. */
    struct store_time_told heard;
};

/* The lower and the upper bound of the store's time at now_ns; 0: this node does not know. */
int64_t store_time_least(const struct store_time *time, uint64_t now_ns);
int64_t store_time_most(const struct store_time *time, uint64_t now_ns);

/* The last item of what keep_time() in node_heartbeat.lua returns. */
enum store_time_how {
    STORE_TIME_HEARD, /* this node does not say what the time is, because others may know better */
    STORE_TIME_OWN,   /* it does */
    STORE_TIME_FREE,  /* nothing depends on it: it is Redis' clock */
};
/* Reads what keep_time() returns; store_time.lua returns the same without the last item. False if malformed. */
MUST_CHECK bool store_time_read(const struct redis_reply *reply, struct store_time_said *ret_said);
MUST_CHECK bool store_time_read_how(const struct redis_reply *reply, enum store_time_how *ret_how);
/* Notes an answer to a heartbeat. Returns whether the time, or Redis' clock, is much later than it can be: that clock
 * was set. */
MUST_CHECK bool store_time_told(struct store_time *time, const struct store_time_told *told, enum store_time_how how);
/* The next answer may come from another Redis process: a node that waits for others begins again. */
void store_time_reconnected(struct store_time *time);
/* Arguments of node_heartbeat.lua: "<from> <to> <least> <most>", and "<settlement> <why>". */
void store_time_print(const struct store_time *time, uint64_t now_ns, struct buf *ret_measured, struct buf *ret_basis);

/* "<least> <most> <settlement>", or "0": this node does not know. */
void store_time_print_known(const struct store_time *time, uint64_t now_ns, struct buf *out);
/* How far the time is ahead of Redis' clock (below 0: behind it), because that was set or another Redis took over. */
int64_t store_time_ahead(const struct store_time_said *said);

/* A node's knowledge at the moment when it asks whether a key's time has come. */
struct store_time_bounds {
    bool is_known;
    uint64_t asked_ns;
    int64_t least_ms, most_ms; /* if it is known */
    int64_t latest_ms;         /* as most_ms, or what Redis' clock is at most; also of what it has only heard */
    char settlement[STORE_SETTLEMENT_BYTES]; /* empty: it was told nothing */
};
struct store_time_bounds store_time_bounds(const struct store_time *time, uint64_t now_ns);

/* first_ms: the first that the time can have been when it was asked for. latest_ms: the last, or Redis' clock,
 * whichever is later; latest_now_ms: the same at now_ns, when the answer is used. waits: while this node knows nothing,
 * only what is kept has surely come; else Redis is believed. */
struct store_time_span {
    int64_t first_ms, latest_ms, latest_now_ms;
};
struct store_time_span store_time_span(const struct store_time_bounds *asked, const struct store_time_said *said,
                                       bool waits, uint64_t now_ns);
