/* Tells systemd about a node: when it serves, what it does, that its loop still turns. The protocol is a datagram of
 * lines to the socket named by NOTIFY_SOCKET (sd_notify(3)). libsystemd would do the same, but brings its compression
 * and cryptography libraries into a process that holds master keys. */
#pragma once
#include "base/text.h"
#include <uv.h>

enum { NOTIFIER_STATUS_BYTES = 256, NOTIFIER_PATIENCE_MS = 30000 };

/* The state to report, as of now. */
struct notifier_view {
    bool is_ready;                      /* it serves, or waits for a person rather than for a while */
    bool is_stopping;                   /* once true, always true */
    char status[NOTIFIER_STATUS_BYTES]; /* one line */
};

struct notifier;

/* look is asked at once, then every second or three times per watchdog period, until notifier_close(). It is told to
 * systemd as ready after patience_ms at the latest: a node that waits for Redis listens and says why it refuses
 * requests, so a start must neither fail nor hold up the boot for it. Without NOTIFY_SOCKET nothing is asked or told.
 * Loop thread only. */
struct notifier *notifier_open(uv_loop_t *loop, uint64_t patience_ms,
                               void (*look)(void *arg, struct notifier_view *ret_view), void *arg);
/* Looks and tells now, for changes that should not wait. */
void notifier_look(struct notifier *notifier);
/* Around a reload. */
void notifier_reload_begins(struct notifier *notifier);
void notifier_reload_ended(struct notifier *notifier);
/* closed runs once, later; by then the notifier is freed. */
void notifier_close(struct notifier *notifier, void (*closed)(void *arg), void *arg);
