/* Histograms of durations, in Prometheus' classic form: fixed buckets. Observing takes nanoseconds, because every check
 * does. Loop thread only. */
#pragma once
#include "base/text.h"
#include <stdint.h>

/* X(id, name, labels, help). Rows with the same name must be adjacent. All have the same buckets: 1, 2.5 and 5 of each
 * power of ten, from 50 µs to 10 s. */
#define HISTOGRAMS_TABLE(X)                                                                                           \
    X(HISTOGRAM_CHECK_ACCEPTED, "chatelaine_check_duration_seconds", "result=\"accepted\"",                           \
      "Time from the complete head of a request until its credential was decided.")                                   \
    X(HISTOGRAM_CHECK_INVALID, "chatelaine_check_duration_seconds", "result=\"invalid\"", "")                         \
    X(HISTOGRAM_CHECK_REVOKED, "chatelaine_check_duration_seconds", "result=\"revoked\"", "")                         \
    X(HISTOGRAM_CHECK_FORBIDDEN, "chatelaine_check_duration_seconds", "result=\"forbidden\"", "")                     \
    X(HISTOGRAM_CHECK_UNAVAILABLE, "chatelaine_check_duration_seconds", "result=\"unavailable\"", "")                 \
    X(HISTOGRAM_REDIS_READS, "chatelaine_redis_duration_seconds", "link=\"reads\"",                                   \
      "Time from a command until Redis' reply, by connection.")                                                       \
    X(HISTOGRAM_REDIS_SCRIPTS, "chatelaine_redis_duration_seconds", "link=\"scripts\"", "")                           \
    X(HISTOGRAM_REDIS_CHANGES, "chatelaine_redis_duration_seconds", "link=\"changes\"", "")                           \
    X(HISTOGRAM_REDIS_WORK, "chatelaine_redis_duration_seconds", "link=\"work\"", "")                                 \
    X(HISTOGRAM_REDIS_SENTINEL, "chatelaine_redis_duration_seconds", "link=\"sentinel\"", "")                         \
    X(HISTOGRAM_REDIS_CLUSTER, "chatelaine_redis_duration_seconds", "link=\"cluster\"", "")                           \
    X(HISTOGRAM_BARRIER, "chatelaine_barrier_duration_seconds", "",                                                   \
      "Time from a revocation's write until no node accepts the key.")                                                \
    X(HISTOGRAM_CANARY, "chatelaine_canary_effect_seconds", "",                                                       \
      "Time from the revocation of the canary's key until its answer, which says that no node accepts it.")           \
    X(HISTOGRAM_PASSWORD_QUEUE, "chatelaine_password_queue_duration_seconds", "",                                     \
      "Time that a password waited to be hashed.")                                                                    \
    X(HISTOGRAM_PASSWORD_HASH, "chatelaine_password_hash_duration_seconds", "", "Time that hashing a password took.") \
    X(HISTOGRAM_LOOP_LAG, "chatelaine_loop_lag_seconds", "",                                                          \
      "Length of the event loop's turns: whatever arrives during one waits for its end.")

enum histogram_row {
#define HISTOGRAM_ENUM(id, name, labels, help) id,
    HISTOGRAMS_TABLE(HISTOGRAM_ENUM)
#undef HISTOGRAM_ENUM
        HISTOGRAM_COUNT
};

enum { HISTOGRAM_BOUNDS = 17 };
extern const uint64_t histogram_bounds_ns[HISTOGRAM_BOUNDS];

extern struct histogram {
    int64_t counts[HISTOGRAM_BOUNDS + 1]; /* per bucket, not cumulated; the last is above all bounds */
    uint64_t sum_ns;
} histograms[HISTOGRAM_COUNT];

static inline void histogram_observe(enum histogram_row h, uint64_t took_ns)
{
    size_t bucket = 0;

    while (bucket < HISTOGRAM_BOUNDS && took_ns > histogram_bounds_ns[bucket])
        bucket++;
    histograms[h].counts[bucket]++;
    histograms[h].sum_ns += took_ns;
}
/* The number of observations. */
int64_t histogram_count(enum histogram_row h);

/* The bound of the bucket that holds this share of all observations: at most so long did percent of 100 take. 0: there
 * is none yet; UINT64_MAX: above the last bound. */
uint64_t histogram_quantile_ns(enum histogram_row h, unsigned percent);

/* Appends all of them; see metrics_print(). */
void histograms_print(struct buf *out);
