/* Whether a Redis is fit to keep the promise: a rule a row, the same for a node that serves, for its start and for
 * doctor. */
#pragma once
#include "store/facts.h"

enum fitness_kind {
    FITNESS_USABLE = 1 << 0,   /* nothing works without it */
    FITNESS_WAITS = 1 << 1,    /* likewise, but it may come by itself: Redis loads its data, a replica is still away */
    FITNESS_KEYS = 1 << 2,     /* the master keys are the store's */
    FITNESS_DURABLE = 1 << 3,  /* else a crash loses what was acknowledged; --unsafe-redis does without */
    FITNESS_FAILOVER = 1 << 4, /* else a failover by Sentinel breaks the promise (rule 10); likewise */
    FITNESS_UNSAFE = FITNESS_USABLE | FITNESS_WAITS | FITNESS_KEYS,
    FITNESS_ALL = FITNESS_UNSAFE | FITNESS_DURABLE | FITNESS_FAILOVER,
};

struct fitness_rule {
    const char *name; /* unique; of a setting of Redis, its name */
    enum fitness_kind kind;
    bool (*holds)(const struct store_facts *facts);
    const char *value;  /* of a setting of Redis: what fits; NULL: the rule is about something else */
    const char *remedy; /* a sentence: what is wrong, and what to do */
};

extern const struct fitness_rule FITNESS_RULES[];
extern const size_t FITNESS_RULE_COUNT;

/* The rule of that name; there must be one. */
const struct fitness_rule *fitness_rule(const char *name);
/* The remedy of the first rule of these kinds that does not hold; NULL: they all do. */
const char *fitness_breach(const struct store_facts *facts, unsigned kinds);
