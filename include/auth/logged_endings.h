/* Revoked keys in the revocation log and the audit log of a node, for comparing them with the store
 * (lease/ending_logs.h). Of each, the file is read from its end, and then the one that was last renamed by logrotate,
 * if it is not compressed. Reading runs on threads. Schedules are left out: which of them count is told only by the
 * logs of all nodes together ('key revoke --from-log'). */
#pragma once
#include "core/keyring.h"
#include "lease/ending_logs.h"

struct logged_endings;

struct logged_endings_settings {
    const char *revocation_log, *audit_log; /* paths; NULL: none */
    struct keyring *keyring;                /* whose audit lines are believed */
    unsigned partitions;
};

/* NULL: there is no log. settings are copied, the paths too. */
struct logged_endings *logged_endings_create(uv_loop_t *loop, const struct logged_endings_settings *settings);
/* After the leases. NULL is fine. */
void logged_endings_destroy(struct logged_endings *logged);
/* Those of one partition. */
const struct ending_logs *logged_endings_of(struct logged_endings *logged, unsigned partition);
