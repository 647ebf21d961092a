/* Counters and gauges, declared in one table, and their Prometheus text form (version 0.0.4). Loop thread only. */
#pragma once
#include "base/text.h"
#include <stdint.h>

/* X(id, type, name, labels, help): rows of one name stand together. */
#define METRICS_TABLE(X)                                                                                     \
    X(METRIC_CONNECTIONS, gauge, "chatelaine_connections", "", "Open client connections.")                   \
    X(METRIC_CONNECTIONS_TOTAL, counter, "chatelaine_connections_total", "", "Accepted connections.")        \
    X(METRIC_CONNECTIONS_SHED, counter, "chatelaine_connections_shed_total", "",                             \
      "Connections closed at once because the node had no room for them.")                                   \
    X(METRIC_REQUESTS, counter, "chatelaine_requests_total", "", "Requests answered.")                       \
    X(METRIC_CHECK_ACCEPTED, counter, "chatelaine_checks_total", "result=\"accepted\"",                      \
      "Credential checks by result.")                                                                        \
    X(METRIC_CHECK_INVALID, counter, "chatelaine_checks_total", "result=\"invalid\"", "")                    \
    X(METRIC_CHECK_REVOKED, counter, "chatelaine_checks_total", "result=\"revoked\"", "")                    \
    X(METRIC_CHECK_FORBIDDEN, counter, "chatelaine_checks_total", "result=\"forbidden\"", "")                \
    X(METRIC_CHECK_UNAVAILABLE, counter, "chatelaine_checks_total", "result=\"unavailable\"", "")            \
    X(METRIC_LOGIN_OK, counter, "chatelaine_logins_total", "result=\"ok\"", "Logins by result.")             \
    X(METRIC_LOGIN_REFUSED, counter, "chatelaine_logins_total", "result=\"refused\"", "")                    \
    X(METRIC_LOGIN_THROTTLED, counter, "chatelaine_logins_total", "result=\"throttled\"", "")                \
    X(METRIC_PASSWORD_QUEUE, gauge, "chatelaine_password_queue", "", "Password hashes waiting or running.")  \
    X(METRIC_PASSWORD_OVERLOADED, counter, "chatelaine_password_overloaded_total", "",                       \
      "Password hashes refused because the queue was full.")                                                 \
    X(METRIC_REDIS_CALLS, counter, "chatelaine_redis_calls_total", "", "Commands sent to Redis.")            \
    X(METRIC_REDIS_LOST, counter, "chatelaine_redis_lost_total", "", "Commands without an answer in time.")  \
    X(METRIC_REDIS_CONNECTS, counter, "chatelaine_redis_connects_total", "", "Connections made to Redis.")   \
    X(METRIC_USAGE_FLUSHED, counter, "chatelaine_usage_flushed_total", "", "Uses of keys written to Redis.") \
    X(METRIC_USAGE_DROPPED, counter, "chatelaine_usage_dropped_total", "",                                   \
      "Uses of keys that were not counted because the table was full.")                                      \
    X(METRIC_LOG_DROPPED, counter, "chatelaine_log_dropped_total", "", "Log lines that stderr did not take.")

enum metric {
#define METRIC_ENUM(id, type, name, labels, help) id,
    METRICS_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_COUNT
};

extern int64_t metric_values[METRIC_COUNT];

static inline void metric_add(enum metric m, int64_t delta)
{
    metric_values[m] += delta;
}
/* Appends all metrics, and chatelaine_build_info{version="…"} 1. */
void metrics_print(struct buf *out, const char *version);
