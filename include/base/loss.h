/* What a node once opened, read or measured, its promise rests on, and was found gone or wrong later. One table says
 * how each kind is told, in four places: a log line, a metric with an alert, 'status' (which exits with 3) and
 * 'doctor'; the last two read it from the node's report. Loop thread only. */
#pragma once
#include "base/log.h"
#include "base/metrics.h"

enum loss {
    LOSS_REVOCATION_LOG,
    LOSS_AUDIT_LOG,
    LOSS_SOCKET,
    LOSS_IDENTITY,
    LOSS_CLOCK,
    LOSS_HASH_MEMORY,
    LOSS_RIGHTS,
    LOSS_COUNT
};

struct loss_row {
    enum metric metric;   /* above 0: status and doctor tell it; a counter is that until the node ends */
    const char *name;     /* in reports, and of doctor's check */
    const char *alert;    /* in docker/prometheus/alerts.yml; its expression has the metric */
    const char *message;  /* of the log line */
    const char *sentence; /* of status and doctor */
    const char *remedy;   /* of doctor */
};
extern const struct loss_row LOSSES[LOSS_COUNT];

/* Tells it: LOSS_TELL(LOSS_SOCKET, log_str("path", path)); at least one field. */
#define LOSS_TELL(loss, ...)                               \
    do {                                                   \
        metric_add(LOSSES[loss].metric, 1);                \
        LOG(LOG_ERROR, LOSSES[loss].message, __VA_ARGS__); \
    } while (0)

static inline bool loss_is_told(enum loss loss)
{
    return metric_values[LOSSES[loss].metric] > 0;
}
