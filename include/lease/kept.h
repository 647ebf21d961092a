/* The endings that this node has heard of in the last ten minutes, answered by itself or not, so that it can repeat
 * them at a Redis that has lost them (rule 13). At most KEPT_MAX, shared between accounts: if there is no room, the
 * account with the most loses its oldest. One for each partition. Loop thread only. */
#pragma once
#include "core/id.h"
#include <stdbool.h>
#include <stddef.h>

enum {
    KEPT_MAX = 70000, /* 65,536 that one account ends at once, and what else ends meanwhile; some 9 MB */
    MAKER_CHARS = 32, /* of the node process that made a change, in hex */
};

enum ending_what {
    ENDING_REVOKED,   /* a key, since at_ms */
    ENDING_SCHEDULED, /* a key, at at_ms */
    ENDING_WITHDRAWN, /* it is not scheduled any more */
    ENDING_SUSPENDED, /* an account */
    ENDING_RESUMED,   /* it is not suspended any more */
    ENDING_OVERTAKEN, /* only in lists: another change of the same subject came later */
};

/* A change's effect on a key or an account. */
struct heard_ending {
    struct id subject, account;
    enum ending_what what;
    int64_t at_ms;       /* by the store's time; 0 where there is none */
    int64_t said_ms;     /* of a schedule and its withdrawal: when it was said. The later counts */
    bool by_replacement; /* that has set the end */
};

/* A change's place in its maker's chain. */
struct change_name {
    struct text maker; /* empty: it has none, because a command made it, or a node of an earlier version */
    uint64_t number;   /* from 1 on, of those that end something */
};

struct kept;

struct kept *kept_create(void);
void kept_destroy(struct kept *kept);
/* Keeps the endings of one change, all at once. Those that are kept already stay as they are. */
void kept_add(struct kept *kept, struct change_name change, const struct heard_ending *endings, size_t count);
/* The same for a change that this node hears of late: it came before all that kept_add() was told since since_ns. */
void kept_add_missed(struct kept *kept, struct change_name change, const struct heard_ending *endings, size_t count,
                     uint64_t since_ns);

/* Reads "<id>/<account>/r<ms>", ".../e<ms>:<said>", ".../p<ms>:<said>" or ".../n:<said>", as keys_publish() in
 * the prelude writes it. */
MUST_CHECK bool ending_read(struct text text, struct heard_ending *ret_ending);

/* A copy of one that is kept. */
struct kept_ending {
    struct id subject;
    enum ending_what what;
    int64_t at_ms;
    int64_t said_ms;
    bool by_replacement;
    char maker[MAKER_CHARS + 1]; /* empty: its change has no place */
    uint64_t number;
    bool completes; /* the last one of its change, of which nothing was pushed out */
};
/* Those that wanted() names, in the order in which they were heard. The caller frees the array; NULL if there are none.
 */
struct kept_ending *kept_list(struct kept *kept, bool (*wanted)(void *arg, struct change_name change), void *arg,
                              size_t *ret_count);
