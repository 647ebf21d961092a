#include "base/loss.h"

#define ROW(metric, name, alert, message, sentence)                                                      \
    {                                                                                                    \
        metric, name, alert, message, sentence, "OPERATIONS.md says what to do, at the alert " alert "." \
    }

/* scripts/check-docs holds each row to docker/prometheus/alerts.yml, test/alerts/causes.sh and OPERATIONS.md. */
const struct loss_row LOSSES[LOSS_COUNT] = {
    [LOSS_REVOCATION_LOG] = ROW(METRIC_REVOCATION_LOG_LOST, "lost-revocation-log", "LogLost",
                                "the revocation log was removed, replaced or cut: lines are lost",
                                "The revocation log was removed, replaced or cut since the node started."),
    [LOSS_AUDIT_LOG] = ROW(METRIC_AUDIT_LOG_LOST, "lost-audit-log", "LogLost",
                           "the audit log was removed, replaced or cut: lines are lost",
                           "The audit log was removed, replaced or cut since the node started."),
    [LOSS_SOCKET] = ROW(METRIC_SOCKETS_LOST, "lost-socket", "SocketLost",
                        "the file of a Unix socket was removed or replaced: nobody could connect",
                        "The file of a Unix socket was removed or replaced since the node started."),
    [LOSS_IDENTITY] =
        ROW(METRIC_AUDIT_LOG_SHARED, "shared-identity", "HostCopied",
            "another live node writes the chain of this node's audit log: nothing is written here",
            "Its audit log is a copy of another live node's, or was since the node started: its host was copied."),
    [LOSS_CLOCK] = ROW(METRIC_CLOCK_WRONG, "wrong-clock", "ClockWrong",
                       "this machine's clock and Redis' clock differ: one of them is wrong",
                       "Its clock and Redis' clock differ by more than 2 s."),
    [LOSS_HASH_MEMORY] = ROW(METRIC_PASSWORD_FAILED, "no-hash-memory", "PasswordsFail",
                             "a password could not be hashed: this machine has no memory or no thread for it",
                             "Passwords could not be hashed since the node started: no memory, or no thread."),
    [LOSS_RIGHTS] = ROW(METRIC_REDIS_DENIED, "lost-rights", "RedisDenies",
                        "Redis denies the node a command that it needs: changes are answered 503",
                        "Redis has denied the node commands since it started: its user lacks rights."),
};
