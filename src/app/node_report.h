/* Tells operators about this node: every ten seconds, and within a second of a change, it writes a report to Redis that
 * 'chatelaine status' reads. Losing one changes nothing. */
#pragma once
#include "auth/revocation_log.h"
#include "config/settings.h"
#include "core/route_policy.h"
#include "lease/membership.h"
#include "node_tls.h"
#include "engine/partitions.h"

struct node_report;

/* What the report is about; all outlive it. */
struct node_reported {
    const struct settings *settings;
    const struct partitions *partitions; /* the report is in the first */
    struct membership *const *members;   /* of the partitions, in their order */
    struct keyring *keyring;
    const struct redis_access *access;
    struct route_policy *const *policy;
    const struct node_tls *tls;
    struct revocation_log *revocation_log;  /* NULL: none */
    const char *address, *internal_address; /* as bound */
    void (*look)(void *arg);                /* called each second, to look again at what the node has opened */
    void *arg;
};

struct node_report *node_report_create(uv_loop_t *loop, const struct node_reported *about);
/* The node's name: "<host> <address>". As long as the report. */
const char *node_report_name(const struct node_report *report);
/* The node drains: says so at once. */
void node_report_drain(struct node_report *report);
/* Withdraws the report. closed runs once, later. */
void node_report_close(struct node_report *report, void (*closed)(void *arg), void *arg);
