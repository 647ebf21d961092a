/* What this node has promised, told again where it was lost (rule 13). Each of its changes has a number, which the
 * change's script writes into the store beside what it changes: so the store tells how much of what this node answered
 * it holds, whatever others have changed there since. A store that holds less lost it (a replica that lagged was
 * promoted, a backup was restored). Nothing is decided by it until the revocations among the lost changes have been
 * made again, and nothing else is missing, or an operator has accepted that. */
#pragma once
#include "lease/settings.h"

struct promises;

struct promises *promises_create(const struct lease_settings *settings);
/* The links are about to close: nothing is told again any more. */
void promises_stop(struct promises *promises);
void promises_destroy(struct promises *promises);

/* How the store names this node; the number of the last change that it acknowledged (0: none), and of the next one. */
const char *promises_maker(const struct promises *promises);
uint64_t promises_answered(const struct promises *promises);
uint64_t promises_next(struct promises *promises);
/* The change of that number was acknowledged. */
void promises_note(struct promises *promises, uint64_t number);
/* In the callback of a revocation that was done: it is told again to a Redis that lacks it. For ten minutes, and not
 * for more than the newest 16384. */
void promises_keep_revocation(struct promises *promises, const struct id *key, struct text actor);

/* NULL, or why a store that holds `held` decides nothing, since `answered` had been acknowledged when it was asked. */
const char *promises_compare(struct promises *promises, uint64_t held, uint64_t answered);
/* To the Redis that the link of changes leads to, which holds `held`; an operator may have accepted what it lacks. */
void promises_tell_again(struct promises *promises, uint64_t held, bool is_accepted);
