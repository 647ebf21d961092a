/* The store's inside, shared by store.c (life, readiness), store_examine.c (what Redis is), store_identity.c (which
 * store it is) and script.c (calls). */
#pragma once
#include "base/list.h"
#include "store_internal.h"

enum {
    STORE_SCHEMA = 1,
    SCRIPT_SHA1_HEX_BYTES = 40,
    CONFIG_SETTING_COUNT = 8,
    STORE_LINKS_MAX = 4,
};

struct config_read {
    struct store *store;
    unsigned row; /* of the table in store_examine.c */
};

/* Looking at Redis; one at a time. */
struct examination {
    bool is_running, has_failed;
    unsigned due; /* replies */
    int64_t sent_wall_ms;
    struct store_facts facts;
    const char *refusal; /* Redis' own reason not to write, as a sentence; NULL: none of the known */
    struct config_read config_reads[CONFIG_SETTING_COUNT];
    struct list waiting; /* struct examiner: who asked by store_examine() */
    uv_timer_t timer;    /* gives up on those who wait for a connection */
};

/* Which store this is, and which Redis (rule 11). */
struct identity {
    char id[STORE_ID_CHARS + 1];         /* of the store that is known; empty: none yet */
    char offered[STORE_ID_CHARS + 1];    /* for a store that has none */
    char run_id[REDIS_RUN_ID_CHARS + 1]; /* of the Redis that was last found to hold that store */
    const char *strange;                 /* why nothing is decided by what is there; NULL: it is our store */
    struct redis_link *links[STORE_LINKS_MAX];
    size_t link_count;
};

struct promises; /* store_promise.c */

struct store {
    uv_loop_t *loop;
    struct store_settings settings; /* target wiped, prefix our own copy */
    char *prefix;
    struct redis_link *reads, *scripts, *changes; /* NULL once closed */
    struct redis_sentinel *sentinel;              /* NULL: Redis is where the target says */
    void (*ready)(void *arg);
    void *arg;
    bool is_ready;                         /* as last told */
    bool reads_up, scripts_up, changes_up; /* the links, as they told */
    const char *unfit;                     /* why changes are refused; NULL: they are not */
    bool is_full;                          /* Redis itself refuses those that make something */
    char trouble[256];

    struct identity identity;
    struct promises *promises;
    struct examination examination;
    uv_timer_t probe; /* the next examination */

    char script_sha1[SCRIPT_COUNT][SCRIPT_SHA1_HEX_BYTES];
    struct list refused;    /* struct script_call: to be told from the next turn on */
    struct list free_calls; /* struct script_call */
    uv_idle_t idle;         /* tells the refused */
    struct log_pause error_pause, malformed_pause, altered_pause;

    struct key_discards *discards;
    struct barriers *barriers;
    struct node_session *session; /* NULL: none */
    uint64_t changes_since_ns;    /* when the link of changes came up; 0 while it is down */
    uint64_t followed_since_ns;   /* when on that connection min_replicas replicas first acknowledged; 0: not yet */
    int64_t replicas_listed;      /* by the master in the last examination, in any state */
    enum store_keys keys;         /* as last found */
    int64_t unsealed_until_ms;
    int64_t clock_ahead_ms; /* Redis' of ours, as last found */
    bool is_closing;
    unsigned closing; /* parts that have not ended yet */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* store.c */

/* Changes are refused from now on, until an examination finds Redis fit. reason: a constant sentence. */
void store_doubt(struct store *store, const char *reason);
/* Redis has no memory left, or has again. It is asked all the same, for what ends something it still does. */
void store_note_full(struct store *store, bool is_full);
/* After an examination: unfit as above, or NULL. */
void store_judged(struct store *store, const char *unfit);

/* What store_is_ready() goes by has changed otherwise; Redis is examined again soon. */
void store_look_again(struct store *store);
/* WAIT was answered: enough replicas follow the Redis that the link of changes is connected to. */
void store_followed(struct store *store);
/* Replicas that may be promoted: store_facts' replicas_known. */
int64_t store_replicas_known(const struct store *store);

/* The refused are told in the next turn of the loop. */
void store_wake(struct store *store);

/* store_examine.c */

void examination_init(struct store *store);
/* Does nothing while one runs. The link of changes must be up. */
void examination_start(struct store *store);
/* Everyone who waits is told STORE_UNAVAILABLE; on store_close(), after the links have failed their calls. */
void examination_give_up(struct store *store);

/* store_identity.c */

void identity_init(struct store *store);
/* Asks on the link of changes for the store's id; identity_answered() is to be called with the reply, and is false
 * where that says nothing. */
void identity_ask(struct store *store, redis_done *done);
MUST_CHECK bool identity_answered(struct store *store, enum redis_outcome outcome, const struct redis_reply *reply);
/* What a script or a read met: the id that is there, empty for none. False: it is another store than ours, and from now
 * on nothing is decided by it. */
bool identity_found(struct store *store, struct text id);
/* The store holds, of this node's changes, those up to that number, when `answered` had been acknowledged. */
bool identity_holds(struct store *store, uint64_t held, uint64_t answered);
/* Redis has become a replica. */
void identity_demoted(struct store *store);
/* Whether what the link of reads brings says anything. */
bool identity_may_decide(const struct store *store);

/* record.c */

/* Asks which master keys made this store's records; done runs as a script's. */
void record_keys_ask(struct store *store, script_done *done);
/* Takes the reply in: the store's own verdicts, and the facts'. */
void record_keys_answered(struct store *store, enum store_result result, const struct redis_reply *reply);

/* store_promise.c */

void promises_create(struct store *store);
void promises_destroy(struct store *store);
/* How the store names this node; the number of the last change that it acknowledged (0: none), and of the next one. */
const char *promises_maker(const struct store *store);
uint64_t promises_answered(const struct store *store);
uint64_t promises_next(struct store *store);
/* The change of that number was acknowledged. */
void promises_note(struct store *store, uint64_t number);
/* NULL, or why a store that holds `held` decides nothing, since `answered` had been acknowledged when it was asked. */
const char *promises_compare(struct store *store, uint64_t held, uint64_t answered);
/* To the Redis that the link of changes leads to, which holds `held`; an operator may have accepted what it lacks. */
void promises_tell_again(struct store *store, uint64_t held, bool is_accepted);

/* script.c */

void script_init(struct store *store);
/* Frees what is kept for later calls. */
void script_finish(struct store *store);
void script_tell_refused(struct store *store);
/* A change that is called though the store lacks what was acknowledged. number: as promises_next(), 0 for none. */
void script_call_again(struct store *store, enum script script, size_t argc, const struct text *argv, uint64_t number,
                       script_done *done, void *arg);
/* A script on the link of changes that is called though Redis was not found fit, and does not wait for replicas. */
void script_call_probe(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg);
