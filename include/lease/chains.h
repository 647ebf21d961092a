/* The changes that this node knows to be answered (rule 13). Those of each node process, its maker, form a chain; Redis
 * numbers them in the script that makes them, and those that end something (keys, sessions, people, suspensions) apart.
 * A Redis whose numbers are lower than those known here has lost something, whatever came since. One for each
 * partition. Loop thread only. */
#pragma once
#include "lease/kept.h"

struct chain_numbers {
    uint64_t ends, all; /* how many changes that end something, and how many in all */
};

/* A chain as Redis holds it. low: the first of its endings that was ever missing there; UINT64_MAX: none was. */
struct chain_record {
    struct chain_numbers numbers;
    uint64_t low;
    bool is_folded; /* it is dead, and may be forgotten */
};

struct chains;

struct chains *chains_create(void);
void chains_destroy(struct chains *chains);

/* This node's name as a maker: 128 random bits in hex. A new one is drawn when it has come to another Redis, whose
 * chain of the old one may be shorter: no number may be given twice. */
const char *chains_maker(const struct chains *chains);
/* The name for a call that begins now: a new one if Redis may have forgotten the chain of the old one. */
const char *chains_maker_now(struct chains *chains);
void chains_draw_maker(struct chains *chains);
/* Its own changes, by that name, that were answered. */
struct chain_numbers chains_answered(const struct chains *chains);
/* A change of its own was answered that was made by that name, and has these numbers. */
void chains_answer(struct chains *chains, const char *maker, struct chain_numbers numbers);
/* The name of the last change of its own that was answered, which must be one that ended something; call it in the
 * change's callback. */
struct change_name chains_last_change(const struct chains *chains);

/* A heartbeat's reply, acknowledged by enough replicas, told a chain's record; then that these were all chains that
 * changed since chains_count(), up to that count of changes in the store. */
void chains_heard(struct chains *chains, struct text maker, const struct chain_record *record);
void chains_heard_all(struct chains *chains, uint64_t count);
/* The same count; 0: the next heartbeat asks for all chains. */
uint64_t chains_count(struct chains *chains);
/* Counts of changes differ between Redises: the next heartbeat asks for all chains. */
void chains_ask_all(struct chains *chains);

/* Reads "<ends> <all> <low>", as chain_write() in the prelude writes it. */
MUST_CHECK bool chain_read(struct text text, struct chain_record *ret_record);
void chain_print(const struct chain_record *record, struct buf *out);

/* How many members ever joined, as heartbeats said: a Redis that counts fewer does not know of some. At another Redis
 * the count begins anew (0). */
uint64_t chains_joined(const struct chains *chains);
void chains_heard_joined(struct chains *chains, uint64_t joined);
/* An operator has accepted that Redis has no more of this chain. */
void chains_lower(struct chains *chains, const char *maker, struct chain_numbers numbers);

/* Each chain that is known, in the order of its makers. Valid until the next call that may change one. A Redis that has
 * less than that has lost something, unless the chain is folded. */
struct chain {
    char maker[MAKER_CHARS + 1];
    struct chain_record record;
    uint64_t heard_ns; /* when it became what it is, or when that was heard */
};
const struct chain *chains_all(struct chains *chains, size_t *ret_count);

/* Folding away the chains of the dead (src/lease/README.md, rule 13): one that has stood still for a week is marked,
 * and one that has been marked for a week is forgotten. The mark on the own chain is taken off again. A node that has
 * heard no complete heartbeat for five days forgets all chains and its name, since Redis may have done so: as soon as
 * any of chains_maker_now(), chains_count() and chains_all() is called. */
struct chain_change {
    struct chain chain;     /* what Redis must still hold of it */
    struct chain_record to; /* what it shall hold; numbers of 0: nothing */
};
/* The changes to be made, at most so many. Returns their number. */
size_t chains_changes_due(const struct chains *chains, struct chain_change *ret_changes, size_t most);
/* Redis has done that, or holds something else of it. */
void chains_changed(struct chains *chains, const struct chain_change *change);
