/* TLS of links: where they get their contexts from, and what their failures mean. */
#pragma once
#include "tls/context.h"

/* The owner of the files implements it. Outlives the links. */
struct redis_tls {
    /* For the next connection, so that certificates are renewed without a restart. Held for the caller; never NULL. */
    struct tls_context *(*context)(struct redis_tls *tls);
};

/* Turns the reason of a failed session into a phrase for operators, such as "it does not speak TLS". */
const char *redis_tls_explain(const char *reason);
