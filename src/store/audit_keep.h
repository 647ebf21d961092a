/* The audit log's part in calls of scripts. */
#pragma once
#include "redis/reply.h"
#include "store/audit_keeper.h"

/* If the reply is preceded by events (epilogue.lua): those, and *reply becomes what the script returned. Else NULL. */
const struct redis_reply *audit_events_take(const struct redis_reply **reply);
/* What the keeper does for one store. */
struct audit_part;
/* Logs these events. done runs once, later. */
void audit_part_log(struct audit_part *part, const struct redis_reply *events, audit_logged *done, void *arg);
const char *audit_part_chain(const struct audit_part *part);
/* As audit_log_trouble(). */
const char *audit_part_trouble(const struct audit_part *part);
