/* Uses of keys, as clients know them, against what the product counts: at most once; and at least once, but for a
 * crash. */
#pragma once
#include "deployment.h"

/* Of one key. Lives until the end. */
struct sim_uses;

void sim_uses_begin(void);
struct sim_uses *sim_uses_of(const char *id, const char *name);
/* status: of a request with the key; 0: no answer came. */
void sim_uses_note(struct sim_uses *uses, int status, uint64_t asked_ns);
/* Reads what the product counts, page by page, and judges it. since_ns: of keys that were used first at that time or
 * later, every use must be there. */
void sim_uses_judge(struct sim_deployment *deployment, struct sim_node *node, uint64_t since_ns);
