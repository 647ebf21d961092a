/* Inside src/engine: one call of a script. */
#pragma once
#include "base/arena.h"
#include "base/list.h"
#include "base/text.h"
#include "engine/script.h"
#include "lease/chains.h"
#include "redis/link.h"

enum script_class {
    SCRIPT_PLAIN,
    SCRIPT_CHANGE,
    SCRIPT_HEARTBEAT,
    SCRIPT_LEAVE,
    SCRIPT_PROBE,
    SCRIPT_AGAIN,
    SCRIPT_REPORT
};

/* One call of a script. Calls are reused. */
struct script_call {
    struct list node; /* in store->refused or store->free_calls */
    struct store *store;
    enum script script;
    enum script_class class;
    void (*replied)(void *arg); /* NULL: has run, or nobody asks */
    script_done *done;
    void *arg;
    struct buf command; /* the prefix and the arguments: the same for EVALSHA and EVAL */
    size_t argument_count;
    char maker[MAKER_CHARS + 1];  /* of a change */
    uint64_t trust;               /* when it was sent */
    struct chain_numbers numbers; /* of the change that was made; zeroed: none */
    bool is_unpromised;           /* a change without numbers */
    bool is_work;                 /* a plain call on the link `work` */
    bool is_eval;                 /* sent with the script's text */
    bool must_eval;               /* Redis did not know the script */
    bool must_repeat;             /* the same, or the script did only a part; sent again once WAIT has been answered */
    unsigned sends;               /* of this part */
    unsigned due;                 /* replies pending, and syncs of the audit log */
    struct arena kept;            /* the script's reply while WAIT is pending */
    enum store_result result;
    const struct redis_reply *reply;
};

/* What an answer says of the call, of its store and of the user's rights. *ret_rest gets the reply's array without its
 * first item, if there is one. */
enum store_result script_result(struct script_call *call, enum redis_outcome outcome, const struct redis_reply *reply,
                                struct redis_reply *ret_rest);
/* Takes the numbers of a change off its reply (epilogue.lua). */
const struct redis_reply *script_take_numbers(struct script_call *call, const struct redis_reply *reply);
