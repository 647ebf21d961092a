/* Scopes as a bit set. Bit n is row n of the table, the order in which responses list them. */
#pragma once
#include "base/text.h"
#include <stdint.h>

typedef uint32_t scope_set;

enum scope_bits {
    SCOPE_NONE = 0,
    SCOPE_EXCHANGES_READ = 1 << 0,
    SCOPE_EXCHANGES_WRITE = 1 << 1,
    SCOPE_PATIENTS_READ = 1 << 2,
    SCOPE_PATIENTS_WRITE = 1 << 3,
    SCOPE_WEBHOOKS_MANAGE = 1 << 4,
    SCOPE_KEYS_MANAGE = 1 << 5,
    SCOPE_AUDIT_READ = 1 << 6,
    SCOPE_TEAM_MANAGE = 1 << 7,
    SCOPE_ORG_MANAGE = 1 << 8,
    SCOPE_USAGE_READ = 1 << 9,
    SCOPE_DOCUMENTS_WRITE = 1 << 10,
    SCOPE_SANDBOX_MANAGE = 1 << 11,
    SCOPE_COUNT = 12,
    SCOPE_ALL = (1 << SCOPE_COUNT) - 1,
};

/* One scope by its exact name; 0 when there is none. */
scope_set scope_parse(struct text name);
/* The name of the n-th scope, n < SCOPE_COUNT. */
struct text scope_name(unsigned n);
/* Names in table order with the separator between them; for headers and messages. */
void scope_print(scope_set scopes, char separator, struct buf *out);
static inline bool scope_includes(scope_set held, scope_set wanted)
{
    return (wanted & ~held) == 0;
}
