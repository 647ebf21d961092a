#include "core/lease_rules.h"

#ifdef CHATELAINE_BREAKABLE

#include <stdlib.h>
#include <string.h>

bool lease_rule_holds(enum lease_rule rule)
{
    static const char *const NAMES[LEASE_RULE_COUNT] = {
#define LEASE_RULE_NAME(id, name, without) [id] = name,
        LEASE_RULES_TABLE(LEASE_RULE_NAME)
#undef LEASE_RULE_NAME
    };
    const char *broken = getenv("CHATELAINE_BREAK");

    return !broken || strcmp(broken, NAMES[rule]) != 0;
}

#endif
