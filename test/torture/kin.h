/* The keys that go back to one person: the one that was made in the console, what such keys make, and what replaces
 * them, also while the person is being removed. With the person go all of them, or those of the person's making:
 * replacements go with what they replace, and what a key made stays. Each is a key of the history, which judges it. Of
 * the clients' thread. */
#pragma once
#include "cluster.h"
#include "core/key.h"
#include "history.h"
#include "table_board.h"

enum { KIN_MAX = 8 };

/* What all families share. */
struct kinship {
    struct cluster *cluster;
    struct history *history;
    struct board *board;  /* NULL: no tables are shared */
    unsigned board_place; /* the first of theirs */
    unsigned seed;
    unsigned unit_ms;
    size_t made, gone; /* keys: by what was answered */
    bool found;        /* a violation */
};

struct kin {
    uint32_t key;     /* in the history */
    uint32_t number;  /* on the board */
    bool is_made;     /* of the person's making */
    bool is_replaced; /* that was asked for: once, because a repetition ends a successor that nobody has used */
    int64_t check_at_ns[CLUSTER_NODES];
};

/* HISTORY_NEVER: not yet. */
struct kin_removal {
    int64_t tried_ns;          /* the first attempt began */
    int64_t asked_ns, told_ns; /* the first that was told to have had its effect */
};

struct family {
    struct kinship *of;
    size_t count;
    struct kin keys[KIN_MAX];
    unsigned open; /* requests that make a key */
    int64_t make_at_ns;
    struct kin_removal removals[KEYS_ALL + 1]; /* by which keys go with the person */
};

void family_begin(struct family *family, struct kinship *of);
/* A key whose creation was asked for and answered. */
void family_add(struct family *family, const struct fixture_key *key, bool is_made, int64_t asked_ns,
                int64_t answered_ns);
/* An attempt to remove the person begins; and one was told to have had its effect. Keys that are added later go, too.
 */
void family_removal_begins(struct family *family, enum key_fate fate, int64_t at_ns);
void family_removal_told(struct family *family, enum key_fate fate, int64_t asked_ns, int64_t told_ns);
/* Checks keys, and makes others with them. */
void family_turn(struct family *family, struct exchange *exchange);
