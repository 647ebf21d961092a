/* The audit log's part in calls of scripts. */
#pragma once
#include "redis/reply.h"
#include "store/audit_keeper.h"

/* If the reply is preceded by events (epilogue.lua): those, and *reply becomes what the script returned. Else NULL. */
const struct redis_reply *audit_events_take(const struct redis_reply **reply);
/* Logs these events. done runs once, later. */
void audit_keeper_log(struct audit_keeper *keeper, const struct redis_reply *events, audit_logged *done, void *arg);
const char *audit_keeper_chain(const struct audit_keeper *keeper);
/* As audit_log_trouble(). */
const char *audit_keeper_trouble(const struct audit_keeper *keeper);
