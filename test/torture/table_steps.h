/* A check by a node's shared table in its steps, as chatelaine_check() takes them: so a reader can be stopped between
 * two of them, and can leave out what it has to do. */
#pragma once
#include "chatelaine/check.h"

/* What a reader has to do, and can leave out: CHATELAINE_BREAK=<name>, as for the nodes. The names are those of
 * test/model. X(id, name, what happens without it) */
#define TABLE_READER_RULES(X)                                                                                       \
    X(READER_LEASE, "table-lease", "a reader does not look at the lease")                                           \
    X(READER_ORDER, "table-order", "a reader does not look again, at entry or counter, once it has seen the lease") \
    X(READER_EPOCH, "table-epoch", "a reader does not compare the entry's epoch with its bucket's")                 \
    X(READER_CLOCK, "table-clock", "a reader reads the clock before the request comes")

enum reader_rule {
#define READER_RULE_ENUM(id, name, without) id,
    TABLE_READER_RULES(READER_RULE_ENUM)
#undef READER_RULE_ENUM
        READER_RULE_COUNT /* none is left out */
};

struct table_steps {
    const struct chatelaine_table *table; /* there is one */
    enum reader_rule broken;
    uint64_t clock_before_ns; /* for READER_CLOCK: before the request came */
};

/* One check; zeroed but for the scopes that are asked for. */
struct table_step {
    uint32_t scopes;
    uint64_t hash[2], words[CHATELAINE_ENTRY_WORDS];
    uint32_t slot;
    bool goes_on; /* nothing has refused it yet; in the end: it is accepted */
    struct chatelaine_principal who;
};

/* As the environment says. */
enum reader_rule table_steps_broken(void);
void table_steps_find(const struct table_steps *steps, struct table_step *step, const char *secret);
void table_steps_validate(const struct table_steps *steps, struct table_step *step);
void table_steps_count(const struct table_steps *steps, struct table_step *step);
