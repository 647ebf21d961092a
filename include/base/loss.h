/* Losses: things that a node's promise rests on, found gone or wrong after the node opened, read or measured them. One
 * table says how each kind is reported, in four places: a log line, a metric with an alert, 'status' (which exits with
 * 3) and 'doctor'; the last two read it from the node's report. Loop thread only. */
#pragma once
#include "base/log.h"
#include "base/metrics.h"

enum loss {
    LOSS_REVOCATION_LOG,
    LOSS_REVOCATION_LINES,
    LOSS_AUDIT_LOG,
    LOSS_AUDIT_WAITS,
    LOSS_AUDIT_DROPPED,
    LOSS_RECORDS,
    LOSS_SOCKET,
    LOSS_IDENTITY,
    LOSS_CLOCK,
    LOSS_HASH_MEMORY,
    LOSS_RIGHTS,
    LOSS_PUBLIC_CERTIFICATE,
    LOSS_INTERNAL_CERTIFICATE,
    LOSS_COUNT
};

/* How long before it expires a certificate counts as a loss. */
enum { LOSS_CERTIFICATE_DAYS = 14, LOSS_CERTIFICATE_S = LOSS_CERTIFICATE_DAYS * 24 * 60 * 60 };

struct loss_row {
    enum metric metric; /* status and doctor tell it as "told" says; a counter is above 0 until the node ends */
    enum {
        LOSS_IF_ABOVE,   /* the metric is above this limit */
        LOSS_IF_LOOKED,  /* likewise; losses_look() logs it */
        LOSS_IF_IT_ENDS, /* the metric is when a certificate expires; status tells that from the report's certificates
                          */
    } told;
    int64_t limit;
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

bool loss_is_told(enum loss loss);
/* Each second: logs those that only their metrics tell, once each time. */
void losses_look(void);
