/* Repeats this node's answered revocations at a Redis that lost them (rule 13). Each of the node's changes has a
 * number, which the change's script stores in the same step. So the store shows how many of this node's changes it
 * holds, whatever other nodes changed since. A lower number means loss: a lagging replica was promoted, or a backup was
 * restored. Such a store decides nothing until the lost revocations are repeated and nothing else is missing, or an
 * operator has accepted the loss. */
#pragma once
#include "lease/settings.h"

struct promises;

struct promises *promises_create(const struct lease_settings *settings);
/* The links are about to close: stops repeating. */
void promises_stop(struct promises *promises);
void promises_destroy(struct promises *promises);

/* This node's name in the store; its last acknowledged change (0: none); a number for its next change. */
const char *promises_maker(const struct promises *promises);
uint64_t promises_answered(const struct promises *promises);
uint64_t promises_next(struct promises *promises);
/* The change with that number was acknowledged. what: its name for operators, which outlives this. */
void promises_note(struct promises *promises, uint64_t number, const char *what);
/* Takes over the number of the last change that was noted, for the revocations that it made; 0: there is none. Call it
 * in the callback of the change. */
MUST_CHECK uint64_t promises_take(struct promises *promises);
/* The same number, for a change that cannot be repeated as a whole: if it is lost, the revocation is repeated, and the
 * node says that a change is missing. */
MUST_CHECK uint64_t promises_last(const struct promises *promises);
/* Keeps a revocation for repeating: for ten minutes, and at most the newest 65,536. number: from promises_take(); that
 * of several revocations if one change made them. ends_ms: when the key is to be revoked; 0: at once. */
void promises_keep_revocation(struct promises *promises, uint64_t number, const struct id *key, int64_t ends_ms,
                              struct text actor);

/* NULL, or why a store that holds changes up to `held` decides nothing. `answered`: the last change acknowledged when
 * the store was asked. */
const char *promises_compare(struct promises *promises, uint64_t held, uint64_t answered);
/* Repeats lost revocations on the `changes` link, at a Redis that holds changes up to `held`. is_accepted: an operator
 * has accepted the loss of the rest. */
void promises_tell_again(struct promises *promises, uint64_t held, bool is_accepted);
