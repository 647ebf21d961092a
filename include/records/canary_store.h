/* The canary in Redis (src/auth/README.md#the-canary), in each partition by itself. Nothing here is a change that a
 * node promises to keep: what is lost delays a run or ends it. */
#pragma once
#include "core/canary_key.h"
#include "engine/node_store.h"

enum canary_phase { CANARY_NONE, CANARY_USE, CANARY_ASK, CANARY_OVER };

/* A node's findings about a run's key. The node reports each at most once, in this order. */
enum canary_finding {
    CANARY_NOTHING,
    CANARY_USED,     /* accepted */
    CANARY_REFUSED,  /* refused for the first time, before the node was asked */
    CANARY_VIOLATED, /* accepted, although the revocation had been answered before the check began */
    CANARY_ASKED,    /* refused since then */
    CANARY_LEFT,     /* the node stops */
};

/* The node that tells. The texts must live during the call. */
struct canary_node {
    struct text name;    /* as in its report */
    struct text process; /* random: a node that is restarted does not take itself for the one before */
    int64_t interval_ms;
};

/* How the canary stands, as a node sees it. The texts are valid during the call. */
struct canary_view {
    int64_t run; /* 0: none yet */
    enum canary_phase phase;
    struct text nonce, master_key;
    struct id key;             /* empty: none yet */
    int64_t revoke_in_ms;      /* in CANARY_USE: until its key is to be revoked */
    bool is_runner;            /* this node runs it */
    int64_t used, answered;    /* for the runner: nodes that used the key, those of them that answered since */
    int64_t due_in_ms;         /* until the next run may begin */
    bool may_begin;            /* this node may begin one now */
    int64_t since_finished_ms; /* since a run was finished; -1: never */
};
/* view: NULL unless STORE_OK. */
typedef void canary_visited(void *arg, enum store_result result, const struct canary_view *view);
/* Asks how the canary stands, and tells what was found with the key of that run. */
void canary_store_visit(struct store *store, const struct canary_node *node, int64_t run, enum canary_finding finding,
                        canary_visited *done, void *arg);

/* Begins a run, whose key is to be revoked after revoke_in_ms. STORE_REFUSED: another node runs it, or it is not due.
 */
struct canary_key {
    struct id id;
    struct text nonce;
    struct text secret;
    const uint8_t *digest; /* KEY_DIGEST_BYTES */
    int64_t revoke_in_ms;
};
/* has_abandoned: the run before it was left unfinished by a node that stopped. */
typedef void canary_began(void *arg, enum store_result result, bool has_abandoned);
void canary_store_begin(struct store *store, const struct canary_node *node, const struct canary_key *key,
                        canary_began *done, void *arg);

/* For the runner. STORE_REFUSED: another node has taken over. took_us: what the revocation took. */
void canary_store_ask(struct store *store, const struct canary_node *node, int64_t run, int64_t took_us,
                      store_done *done, void *arg);
/* why: NULL if the run was finished. */
void canary_store_end(struct store *store, const struct canary_node *node, int64_t run, const char *why,
                      store_done *done, void *arg);

/* Revokes the key of a run, as any key is revoked. */
void canary_store_revoke(struct store *store, const struct id *key, store_done *done, void *arg);

/* For operators. */
struct canary_state {
    int64_t interval_ms;
    int64_t finished, since_finished_ms; /* runs; since the last one, -1: none */
    struct text finished_by;             /* the rest is of that run */
    int64_t took_us;                     /* from the revocation to its answer */
    int64_t refused, accepted, silent;   /* nodes, when they were asked */
    struct text slowest;                 /* the last node to refuse the key; empty: not known */
    int64_t slowest_ms;
    int64_t unfinished, since_unfinished_ms;
    struct text unfinished_why;
    int64_t violations, since_violation_ms;
    struct text violated_by;
};
/* STORE_NOT_FOUND: no node has ever run it. state: NULL unless STORE_OK. */
typedef void canary_was_read(void *arg, enum store_result result, const struct canary_state *state);
void canary_store_read(struct store *store, canary_was_read *done, void *arg);
