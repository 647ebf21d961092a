#include "base/loss.h"

#include "base/clock.h"

enum { MS_PER_S = 1000, AUDIT_WAITS_S = 300 };

/* After the sentence: .told and .limit, where the loss does not simply last while the metric is above 0. */
#define ROW(number, word, rule, line, ...)                                                              \
    {                                                                                                   \
        .metric = number, .name = word, .alert = rule, .message = line,                                 \
        .remedy = "Look up the alert " rule " in docker/prometheus/README.md.", .sentence = __VA_ARGS__ \
    }

/* scripts/check-docs holds each row to docker/prometheus, and test/alerts/causes.sh makes the cause happen. */
const struct loss_row LOSSES[LOSS_COUNT] = {
    [LOSS_REVOCATION_LOG] = ROW(METRIC_REVOCATION_LOG_LOST, "lost-revocation-log", "LogLost",
                                "the revocation log was removed, replaced or cut: lines are lost",
                                "The revocation log was removed, replaced or cut since the node started."),
    [LOSS_REVOCATION_LINES] = ROW(METRIC_REVOCATION_LOG_UNWRITTEN, "unwritten-revocations", "RevocationLogIncomplete",
                                  "the revocation log cannot be written: lines wait in memory",
                                  "Revocations are missing from the revocation log; their log lines name them."),
    [LOSS_AUDIT_LOG] = ROW(METRIC_AUDIT_LOG_LOST, "lost-audit-log", "LogLost",
                           "the audit log was removed, replaced or cut: lines are lost",
                           "The audit log was removed, replaced or cut since the node started."),
    [LOSS_AUDIT_WAITS] = ROW(METRIC_AUDIT_UNLOGGED_AGE, "waiting-audit-events", "AuditEventsWait",
                             "audit events wait for an audit log: no node writes them",
                             "Audit events have waited for an audit log for over five minutes.", .told = LOSS_IF_LOOKED,
                             .limit = AUDIT_WAITS_S),
    [LOSS_AUDIT_DROPPED] = ROW(METRIC_AUDIT_DROPPED, "dropped-audit-events", "AuditEventsWait",
                               "audit events were dropped: no audit log will ever have them",
                               "Audit events were dropped: no audit log will ever have them.", .told = LOSS_IF_LOOKED),
    [LOSS_RECORDS] = ROW(METRIC_RECORDS_ALTERED, "altered-records", "RecordsAltered",
                         "altered in Redis: the record's MAC is wrong; record refused",
                         "Records were altered in Redis, and refused; log lines name them."),
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
    [LOSS_PUBLIC_CERTIFICATE] = ROW(METRIC_CERT_END_PUBLIC, "public-certificate", "CertificateExpires",
                                    "a TLS certificate expires within 14 days: renew it",
                                    "The public listener's certificate expires within 14 days, or has expired.",
                                    .told = LOSS_IF_IT_ENDS, .limit = LOSS_CERTIFICATE_S),
    [LOSS_INTERNAL_CERTIFICATE] = ROW(METRIC_CERT_END_INTERNAL, "internal-certificate", "CertificateExpires",
                                      "a TLS certificate expires within 14 days: renew it",
                                      "The internal listener's certificate expires within 14 days, or has expired.",
                                      .told = LOSS_IF_IT_ENDS, .limit = LOSS_CERTIFICATE_S),
};

bool loss_is_told(enum loss loss)
{
    const struct loss_row *row = &LOSSES[loss];
    int64_t value = metric_values[row->metric];

    if (row->told == LOSS_IF_IT_ENDS)
        return value > 0 && value - clock_wall_ms() / MS_PER_S < row->limit;
    return value > row->limit;
}

void losses_look(void)
{
    static bool was_told[LOSS_COUNT];

    for (enum loss i = 0; i < LOSS_COUNT; i++) {
        if (LOSSES[i].told != LOSS_IF_LOOKED)
            continue;
        if (loss_is_told(i) && !was_told[i])
            LOG(LOG_ERROR, LOSSES[i].message, log_int("value", metric_values[LOSSES[i].metric]));
        was_told[i] = loss_is_told(i);
    }
}
