/* Whether a Redis can keep the promise of src/lease/README.md. One rule per row; a serving node, its start and doctor
 * all use this table. */
#pragma once
#include "engine/facts.h"

enum fitness_kind {
    FITNESS_USABLE = 1 << 0,   /* nothing works without it */
    FITNESS_WAITS = 1 << 1,    /* the same, but it may pass without help: Redis is loading, a replica is not back yet */
    FITNESS_KEYS = 1 << 2,     /* the master keys match the store */
    FITNESS_DURABLE = 1 << 3,  /* otherwise a crash loses acknowledged changes; --unsafe-redis ignores this */
    FITNESS_FAILOVER = 1 << 4, /* otherwise a failover breaks the promise (rule 10); --unsafe-redis ignores this */
    FITNESS_WHOLE = 1 << 5,    /* nodes know that the store has lost something; they serve or wait by themselves */
    /* Likewise, but judged only until a store is served for the first time: replicas that come later stop no node. */
    FITNESS_START = 1 << 6,
    FITNESS_UNSAFE = FITNESS_USABLE | FITNESS_WAITS | FITNESS_KEYS,
    FITNESS_ALL = FITNESS_UNSAFE | FITNESS_DURABLE | FITNESS_FAILOVER | FITNESS_START,
};

struct fitness_rule {
    const char *name; /* unique; for a Redis setting, the setting's name */
    enum fitness_kind kind;
    bool (*holds)(const struct store_facts *facts);
    const char *value;  /* the required value of a Redis setting; NULL: the rule is not about a setting */
    const char *remedy; /* sentences: what is wrong, what to do */
};

extern const struct fitness_rule FITNESS_RULES[];
extern const size_t FITNESS_RULE_COUNT;

/* The rule of that name. It must exist. */
const struct fitness_rule *fitness_rule(const char *name);
/* The remedy of the first broken rule of these kinds; NULL if all hold. */
const char *fitness_breach(const struct store_facts *facts, unsigned kinds);
