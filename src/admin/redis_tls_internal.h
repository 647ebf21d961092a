/* The TLS contexts of connections to Redis and Sentinels, made of the files that settings name. */
#pragma once
#include "config/settings.h"
#include "store/settings.h"

/* NULL, with one sentence in ret_why: the files cannot be used. settings must outlive it. */
struct redis_tls *redis_tls_create(const struct settings *settings, struct buf *ret_why);
/* NULL is fine. */
void redis_tls_destroy(struct redis_tls *tls);
