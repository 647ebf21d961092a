/* Counters and gauges, declared in tables, and their Prometheus text form (version 0.0.4). base/histogram.h has
 * histograms. Loop thread only. */
#pragma once
#include "base/text.h"
#include <stdint.h>

/* X(id, type, name, labels, help). Rows with the same name must be adjacent. */
#define METRICS_TABLE(X)                                                                                               \
    X(METRIC_CONNECTIONS_PUBLIC, gauge, "chatelaine_connections", "listener=\"public\"",                               \
      "Open connections, by listener.")                                                                                \
    X(METRIC_CONNECTIONS_INTERNAL, gauge, "chatelaine_connections", "listener=\"internal\"", "")                       \
    X(METRIC_ACCEPTED_PUBLIC, counter, "chatelaine_connections_total", "listener=\"public\"",                          \
      "Accepted connections, by listener.")                                                                            \
    X(METRIC_ACCEPTED_INTERNAL, counter, "chatelaine_connections_total", "listener=\"internal\"", "")                  \
    X(METRIC_CONNECTIONS_SHED, counter, "chatelaine_connections_shed_total", "",                                       \
      "Connections refused or cut for lack of room: connections, memory or open files.")                               \
    X(METRIC_PROXY_UNTRUSTED, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"untrusted\"",              \
      "Connections closed because they did not begin with a PROXY header from a trusted proxy.")                       \
    X(METRIC_PROXY_VERSION_1, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"version_1\"", "")          \
    X(METRIC_PROXY_MISSING, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"missing\"", "")              \
    X(METRIC_PROXY_MALFORMED, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"malformed\"", "")          \
    X(METRIC_PROXY_TOO_LONG, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"too_long\"", "")            \
    X(METRIC_PROXY_INCOMPLETE, counter, "chatelaine_proxy_protocol_refused_total", "reason=\"incomplete\"", "")        \
    X(METRIC_TLS_FULL, counter, "chatelaine_tls_handshakes_total", "result=\"full\"",                                  \
      "TLS handshakes by result. refused: closed because there were too many at once.")                                \
    X(METRIC_TLS_RESUMED, counter, "chatelaine_tls_handshakes_total", "result=\"resumed\"", "")                        \
    X(METRIC_TLS_FAILED, counter, "chatelaine_tls_handshakes_total", "result=\"failed\"", "")                          \
    X(METRIC_TLS_TIMEOUT, counter, "chatelaine_tls_handshakes_total", "result=\"timeout\"", "")                        \
    X(METRIC_TLS_REFUSED, counter, "chatelaine_tls_handshakes_total", "result=\"refused\"", "")                        \
    X(METRIC_TLS_RELOADED, counter, "chatelaine_tls_certificate_reloads_total", "result=\"ok\"",                       \
      "Times that the certificates of a listener were loaded again. failed: the old ones stay in use.")                \
    X(METRIC_TLS_RELOAD_FAILED, counter, "chatelaine_tls_certificate_reloads_total", "result=\"failed\"", "")          \
    X(METRIC_CERT_END_PUBLIC, gauge, "chatelaine_tls_certificate_not_after_seconds", "listener=\"public\"",            \
      "When the listener's first certificate expires, in seconds since 1970; 0: the listener speaks no TLS.")          \
    X(METRIC_CERT_END_INTERNAL, gauge, "chatelaine_tls_certificate_not_after_seconds", "listener=\"internal\"", "")    \
    X(METRIC_REQUESTS, counter, "chatelaine_requests_total", "", "Requests answered.")                                 \
    X(METRIC_CHECK_ACCEPTED, counter, "chatelaine_checks_total", "result=\"accepted\"",                                \
      "Credential checks by result.")                                                                                  \
    X(METRIC_CHECK_INVALID, counter, "chatelaine_checks_total", "result=\"invalid\"", "")                              \
    X(METRIC_CHECK_REVOKED, counter, "chatelaine_checks_total", "result=\"revoked\"", "")                              \
    X(METRIC_CHECK_FORBIDDEN, counter, "chatelaine_checks_total", "result=\"forbidden\"", "")                          \
    X(METRIC_CHECK_UNAVAILABLE, counter, "chatelaine_checks_total", "result=\"unavailable\"", "")                      \
    X(METRIC_RECORDS_ALTERED, counter, "chatelaine_records_altered_total", "",                                         \
      "Records in Redis that were refused because somebody altered or moved them.")                                    \
    X(METRIC_CACHE_HIT, counter, "chatelaine_cache_lookups_total", "result=\"hit\"", "Cache lookups by result.")       \
    X(METRIC_CACHE_UNKNOWN, counter, "chatelaine_cache_lookups_total", "result=\"unknown_key\"", "")                   \
    X(METRIC_CACHE_MISS, counter, "chatelaine_cache_lookups_total", "result=\"miss\"", "")                             \
    X(METRIC_CACHE_NO_LEASE, counter, "chatelaine_cache_lookups_total", "result=\"no_lease\"", "")                     \
    X(METRIC_CACHE_ENABLED, gauge, "chatelaine_cache_enabled", "", "1 with leases (--lease-ms above 0).")              \
    X(METRIC_CACHE_ENTRIES, gauge, "chatelaine_cache_entries", "", "Keys in the cache.")                               \
    X(METRIC_CACHE_SHARED, counter, "chatelaine_cache_shared_reads_total", "",                                         \
      "Checks decided by a read that another check had started.")                                                      \
    X(METRIC_CACHE_REFRESHES, counter, "chatelaine_cache_refreshes_total", "",                                         \
      "Keys read again before they are too old for the cache, because readers of the shared table use them.")          \
    X(METRIC_TABLE_KEYS, gauge, "chatelaine_table_keys", "", "Keys in the shared table (--table).")                    \
    X(METRIC_TABLE_READERS, gauge, "chatelaine_table_readers", "", "Processes that have the shared table.")            \
    X(METRIC_TABLE_USES, counter, "chatelaine_table_uses_total", "", "Checks that readers of the table accepted.")     \
    X(METRIC_TABLE_USES_REFUSED, counter, "chatelaine_table_uses_refused_total", "",                                   \
      "Counts of readers of the table that cannot be right, and were not counted.")                                    \
    X(METRIC_READY, gauge, "chatelaine_ready", "", "1 while the node is ready, as /readyz says.")                      \
    X(METRIC_PARTITIONS, gauge, "chatelaine_partitions", "", "Partitions of the store (--partitions).")                \
    X(METRIC_PARTITIONS_READY, gauge, "chatelaine_partitions_ready", "",                                               \
      "Partitions that the node serves; requests for accounts in others are answered 503.")                            \
    X(METRIC_LEASE_HELD, gauge, "chatelaine_lease_held", "", "1 while checks may be answered from memory.")            \
    X(METRIC_LEASES_LOST, counter, "chatelaine_leases_lost_total", "", "Leases that were not renewed in time.")        \
    X(METRIC_SESSIONS, counter, "chatelaine_sessions_total", "", "Memberships that this node has begun.")              \
    X(METRIC_KEPT, gauge, "chatelaine_kept_endings", "",                                                               \
      "Revocations of the last ten minutes that this node repeats at a Redis that has lost them.")                     \
    X(METRIC_KEPT_PUSHED_OUT, counter, "chatelaine_kept_endings_pushed_out_total", "",                                 \
      "Revocations that this node has heard of and could not keep for ten minutes, because there were too many.")      \
    X(METRIC_GATHERINGS_TIMED_OUT, counter, "chatelaine_gatherings_timed_out_total", "",                               \
      "Times that a node did not come to a new Redis in time to say what it knows of revocations.")                    \
    X(METRIC_STORE_MISSING, gauge, "chatelaine_store_missing_endings", "",                                             \
      "Changes that ended something and that Redis has lost; while there are any, requests are answered 503.")         \
    X(METRIC_STORE_LOST, gauge, "chatelaine_store_lost_changes", "",                                                   \
      "Other changes that Redis has lost since an operator last accepted a loss.")                                     \
    X(METRIC_WATCHERS, gauge, "chatelaine_watchers", "", "Watchers of revocations that are connected.")                \
    X(METRIC_WATCHERS_LATE, counter, "chatelaine_watchers_late_total", "",                                             \
      "Watchers disconnected because they did not acknowledge a revocation in time.")                                  \
    X(METRIC_BARRIER_SESSIONS, counter, "chatelaine_barrier_sessions_total", "",                                       \
      "Members that revocations had to wait for.")                                                                     \
    X(METRIC_BARRIER_FORCED, counter, "chatelaine_barrier_forced_waits_total", "",                                     \
      "Revocations that waited for leases to expire because a node did not acknowledge.")                              \
    X(METRIC_BARRIER_FAILED, counter, "chatelaine_barrier_failed_total", "",                                           \
      "Revocations answered 503 because Redis was lost while they waited.")                                            \
    X(METRIC_CANARY_FINISHED, counter, "chatelaine_canary_runs_total", "result=\"finished\"",                          \
      "Runs of the canary that this node has run, by result.")                                                         \
    X(METRIC_CANARY_UNFINISHED, counter, "chatelaine_canary_runs_total", "result=\"unfinished\"", "")                  \
    X(METRIC_CANARY_VIOLATIONS, counter, "chatelaine_canary_violations_total", "",                                     \
      "Times that this node accepted the canary's key after its revocation had been answered.")                        \
    X(METRIC_CANARY_LAST_RUN, gauge, "chatelaine_canary_last_run_timestamp_seconds", "",                               \
      "When a run of the canary was last finished, by any node, in seconds since 1970; the node's start until then.")  \
    X(METRIC_CANARY_INTERVAL, gauge, "chatelaine_canary_interval_seconds", "",                                         \
      "Time between runs of the canary (--canary-interval-ms); 0: it is off.")                                         \
    X(METRIC_REVOCATION_LOG_FAILED, counter, "chatelaine_revocation_log_failed_total", "",                             \
      "Revocations that were answered but could not be written to the revocation log.")                                \
    X(METRIC_REVOCATION_LOG_UNWRITTEN, gauge, "chatelaine_revocation_log_unwritten", "",                               \
      "Revocations that are not in the revocation log yet, because it could not be written.")                          \
    X(METRIC_REVOCATION_LOG_LOST, counter, "chatelaine_log_losses_total", "log=\"revocation\"",                        \
      "Times that a log's file was found removed, replaced or cut, with lines in it.")                                 \
    X(METRIC_AUDIT_LOG_LOST, counter, "chatelaine_log_losses_total", "log=\"audit\"", "")                              \
    X(METRIC_SOCKETS_LOST, counter, "chatelaine_sockets_lost_total", "",                                               \
      "Times that the file of a Unix socket that the node listens on was found removed or replaced.")                  \
    X(METRIC_CLOCK_WRONG, gauge, "chatelaine_clock_wrong", "",                                                         \
      "1 while this machine's clock and Redis' clock differ by more than 2 s.")                                        \
    X(METRIC_AUDIT_LOG_SHARED, counter, "chatelaine_audit_log_shared_total", "",                                       \
      "Times that another live node was found to write the chain of this node's audit log.")                           \
    X(METRIC_AUDIT_LOG_LINES, counter, "chatelaine_audit_log_lines_total", "", "Lines synced to the audit log.")       \
    X(METRIC_AUDIT_LOG_FAILED, counter, "chatelaine_audit_log_failed_total", "",                                       \
      "Lines that could not be written to the audit log; they follow later, from Redis.")                              \
    X(METRIC_AUDIT_LOG_FAILING, gauge, "chatelaine_audit_log_failing", "", "1 while the audit log cannot be written.") \
    X(METRIC_AUDIT_LOG_TAKEN_OVER, counter, "chatelaine_audit_log_taken_over_total", "",                               \
      "Events that this node logged because no node had: made by commands, or at a node that stopped.")                \
    X(METRIC_AUDIT_UNLOGGED, gauge, "chatelaine_audit_unlogged", "", "Events in Redis that are in no audit log yet.")  \
    X(METRIC_AUDIT_UNLOGGED_AGE, gauge, "chatelaine_audit_unlogged_age_seconds", "",                                   \
      "Age of the oldest event in Redis that is in no audit log yet.")                                                 \
    X(METRIC_AUDIT_DROPPED, gauge, "chatelaine_audit_dropped", "",                                                     \
      "Events that no audit log will ever have, because too many waited for one.")                                     \
    X(METRIC_GATE_READ_RUNNING, gauge, "chatelaine_gate_running", "class=\"read\"",                                    \
      "Requests that run by leave of the gate, by class: read (one script), work (many), end (ends many things).")     \
    X(METRIC_GATE_WORK_RUNNING, gauge, "chatelaine_gate_running", "class=\"work\"", "")                                \
    X(METRIC_GATE_END_RUNNING, gauge, "chatelaine_gate_running", "class=\"end\"", "")                                  \
    X(METRIC_GATE_READ_WAITING, gauge, "chatelaine_gate_waiting", "class=\"read\"",                                    \
      "Requests that wait for a place, by class.")                                                                     \
    X(METRIC_GATE_WORK_WAITING, gauge, "chatelaine_gate_waiting", "class=\"work\"", "")                                \
    X(METRIC_GATE_END_WAITING, gauge, "chatelaine_gate_waiting", "class=\"end\"", "")                                  \
    X(METRIC_GATE_READ_REFUSED, counter, "chatelaine_gate_refused_total", "class=\"read\"",                            \
      "Requests refused with 429 because their account had too much under way, by class.")                             \
    X(METRIC_GATE_WORK_REFUSED, counter, "chatelaine_gate_refused_total", "class=\"work\"", "")                        \
    X(METRIC_GATE_END_REFUSED, counter, "chatelaine_gate_refused_total", "class=\"end\"", "")                          \
    X(METRIC_LOGIN_OK, counter, "chatelaine_logins_total", "result=\"ok\"", "Logins by result.")                       \
    X(METRIC_LOGIN_REFUSED, counter, "chatelaine_logins_total", "result=\"refused\"", "")                              \
    X(METRIC_LOGIN_LOCKED, counter, "chatelaine_logins_total", "result=\"locked\"", "")                                \
    X(METRIC_LOGIN_THROTTLED, counter, "chatelaine_logins_total", "result=\"throttled\"", "")                          \
    X(METRIC_LOGIN_OVERLOADED, counter, "chatelaine_logins_total", "result=\"overloaded\"", "")                        \
    X(METRIC_LOGIN_UNAVAILABLE, counter, "chatelaine_logins_total", "result=\"unavailable\"", "")                      \
    X(METRIC_PASSWORD_QUEUE, gauge, "chatelaine_password_queue", "", "Password hashes waiting or running.")            \
    X(METRIC_PASSWORD_OVERLOADED, counter, "chatelaine_password_overloaded_total", "",                                 \
      "Password hashes refused because the queue was full.")                                                           \
    X(METRIC_PASSWORD_FAILED, counter, "chatelaine_password_failed_total", "",                                         \
      "Password hashes that the machine had no memory or no thread for.")                                              \
    X(METRIC_REDIS_CALLS, counter, "chatelaine_redis_calls_total", "", "Commands sent to Redis.")                      \
    X(METRIC_REDIS_LOST, counter, "chatelaine_redis_lost_total", "", "Commands that Redis did not answer in time.")    \
    X(METRIC_REDIS_DENIED, counter, "chatelaine_redis_denied_total", "",                                               \
      "Scripts that Redis refused to run because its user lacks a right.")                                             \
    X(METRIC_REDIS_CONNECTS, counter, "chatelaine_redis_connects_total", "", "Connections made to Redis.")             \
    X(METRIC_REDIS_SWITCHES, counter, "chatelaine_redis_switches_total", "",                                           \
      "Switches to another master named by Sentinels.")                                                                \
    X(METRIC_REDIS_ACCESS_REFUSED, gauge, "chatelaine_redis_access_refused", "",                                       \
      "1 while Redis refuses what the node's files say for new connections, or such a file cannot be used.")           \
    X(METRIC_REDIS_FINDERS_DOWN, gauge, "chatelaine_redis_finders_down", "",                                           \
      "Sentinels or nodes of the cluster that this node has not reached for ten seconds.")                             \
    X(METRIC_REDIS_FULL, gauge, "chatelaine_redis_full", "",                                                           \
      "1 while Redis' memory is full: nothing new can be created; checks and revocations still work.")                 \
    X(METRIC_REDIS_DURABILITY_ASSERTED, gauge, "chatelaine_redis_durability_asserted", "",                             \
      "1 if an operator asserts that Redis is durable, and the node cannot see it (--redis-durability).")              \
    X(METRIC_USAGE_FLUSHED, counter, "chatelaine_usage_flushed_total", "", "Uses of keys written to Redis.")           \
    X(METRIC_USAGE_DROPPED, counter, "chatelaine_usage_dropped_total", "",                                             \
      "Uses of keys that were not counted because the table was full.")                                                \
    X(METRIC_REFUSALS_DROPPED, counter, "chatelaine_refusals_dropped_total", "",                                       \
      "Refused requests of known keys that were not counted because the table was full.")                              \
    X(METRIC_PROCESS_START, gauge, "process_start_time_seconds", "", "When the process began, in seconds since 1970.") \
    X(METRIC_PROCESS_MEMORY, gauge, "process_resident_memory_bytes", "", "Resident memory.")                           \
    X(METRIC_PROCESS_FILES, gauge, "process_open_fds", "", "Open file descriptors.")                                   \
    X(METRIC_PROCESS_FILES_MAX, gauge, "process_max_fds", "", "Most file descriptors that may be open.")               \
    X(METRIC_LOG_DROPPED, counter, "chatelaine_log_dropped_total", "",                                                 \
      "Log lines dropped because stderr could not take them.")

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
static inline void metric_set(enum metric m, int64_t value)
{
    metric_values[m] = value;
}

/* Counters by user, for events that operators must follow up. X(id, name, help) */
#define METRICS_OF_USERS_TABLE(X)                                               \
    X(METRIC_USER_ATTACKED, "chatelaine_login_attacks_total",                   \
      "Times that wrong attempts closed sign-in to unknown browsers, by user.") \
    X(METRIC_USER_LOCKED, "chatelaine_users_locked_total",                      \
      "Users locked after 100 wrong codes with the right password.")

enum metric_of_users {
#define METRIC_ENUM(id, name, help) id,
    METRICS_OF_USERS_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRIC_OF_USERS_COUNT
};

/* Counts the first 32 users of each metric since the start with user="…", all others with user="other". */
void metric_count_user(enum metric_of_users m, const char *user);

/* Counters by a label whose values another layer has. X(id, name, label, help) */
#define METRICS_BY_LABEL_TABLE(X) \
    X(METRICS_REFUSALS, "chatelaine_refusals_total", "code", "Requests answered with an error, by its code.")

enum metrics_by_label {
#define METRIC_ENUM(id, name, label, help) id,
    METRICS_BY_LABEL_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
        METRICS_BY_LABEL_COUNT
};
enum { METRIC_LABELS_MAX = 128 };
/* i: less than METRIC_LABELS_MAX. */
void metric_count_label(enum metrics_by_label metrics, size_t i);
/* Appends the count of each i from 1 to count - 1, with the label value_of(i). */
void metrics_print_by_label(struct buf *out, enum metrics_by_label metrics, size_t count,
                            const char *(*value_of)(size_t i));
/* Appends all metrics but those of METRICS_BY_LABEL_TABLE, and chatelaine_build_info{version="…"} 1. */
void metrics_print(struct buf *out, const char *version);
