/* What clients were told about keys, against the promise: once a revocation is answered, no check that begins later is
 * accepted. What is unknown is 503 or no answer: never 401 for a key that nobody has tried to revoke. */
#pragma once
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

/* A key's life, as clients know it. Zeroed: it lives. Times are of the schedule. */
struct sim_verdict {
    uint64_t revoked_ns; /* from when on it must be refused, as was answered; 0: nothing was */
    bool is_tried;       /* somebody has asked for it */
};

struct sim_counts {
    uint64_t accepted, refused, unavailable, unknown; /* checks: 200, 401, 503, no answer */
    uint64_t table_checks, table_accepted;            /* by readers of shared tables */
    uint64_t created, revoked, revoke_ns_sum, revoke_ns_max;
    uint64_t violations;
};

extern struct sim_counts sim_counts;

/* broken_rule: of the nodes; NULL: none. */
void sim_judge_begin(const char *broken_rule);
void sim_judge_check(const struct sim_verdict *of, const char *key, const char *node, uint64_t begun_ns, int status);
/* A request in the key's name, whether it was done. */
void sim_judge_use(const struct sim_verdict *of, const char *key, const char *node, uint64_t begun_ns, bool is_done);
/* from_ns: from when on it must be refused. */
void sim_judge_revoked(struct sim_verdict *of, uint64_t asked_ns, uint64_t answered_ns, uint64_t from_ns);
/* Nothing is wrong from then until then, and has not been for a while: whatever is asked meanwhile is answered. */
void sim_judge_calm(uint64_t from_ns, uint64_t until_ns);
bool sim_judge_is_calm(uint64_t ns);
/* status: of a request that was asked then; 0: none. */
void sim_judge_answer(const char *what, const char *node, uint64_t asked_ns, int status);
/* Anything else that must not be. */
__attribute__((format(printf, 1, 2))) void sim_judge_violation(const char *format, ...);
