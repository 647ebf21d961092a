/* What connections to Redis and Sentinels need from files that settings name: addresses, passwords, certificates. All
 * are read again when they have changed. */
#pragma once
#include "config/settings.h"
#include "engine/settings.h"

/* The address of --redis-file or --redis, and --sentinel-auth-file. On failure false, with one sentence in ret_why. */
MUST_CHECK bool redis_target_read(const struct settings *settings, struct redis_target *ret_target,
                                  struct buf *ret_why);

/* NULL, with one sentence in ret_why: the files cannot be used. settings must outlive it. */
struct redis_tls *redis_tls_create(const struct settings *settings, struct buf *ret_why);
/* Reads the files again if they have changed. Returns how often that gave other certificates. */
unsigned redis_tls_look(struct redis_tls *tls);
/* Why the files as they are now cannot be used; empty: they can. As long as tls. */
const char *redis_tls_trouble(const struct redis_tls *tls);
/* NULL is fine. */
void redis_tls_destroy(struct redis_tls *tls);

/* target: what redis_target_read() gave. tls: NULL if it has none; settings and tls must outlive it. */
struct redis_access *redis_access_create(const struct settings *settings, const struct redis_target *target,
                                         struct redis_tls *tls);
/* NULL is fine. */
void redis_access_destroy(struct redis_access *access);
