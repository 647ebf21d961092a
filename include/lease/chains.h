/* What this node knows to be answered (rule 13). The changes of each node process, its maker, form a chain; Redis
 * numbers them in the script that makes them, and those that end something (keys, sessions, people, suspensions) apart.
 * A Redis whose numbers are lower than those known here has lost something, whatever came since. One for each
 * partition. Loop thread only. */
#pragma once
#include "lease/kept.h"

struct chain_numbers {
    uint64_t ends, all; /* how many changes that end something, and how many in all */
};

struct chains;

struct chains *chains_create(void);
void chains_destroy(struct chains *chains);

/* This node's name as a maker: 128 random bits in hex. A new one is drawn when it has come to another Redis, whose
 * chain of the old one may be shorter: no number may be given twice. */
const char *chains_maker(const struct chains *chains);
void chains_draw_maker(struct chains *chains);
/* Its own changes, by that name, that were answered. */
struct chain_numbers chains_answered(const struct chains *chains);
/* A change of its own was answered that was made by that name, and has these numbers. */
void chains_answer(struct chains *chains, const char *maker, struct chain_numbers numbers);
/* The name of the last change of its own that was answered, which must be one that ended something; call it in the
 * change's callback. */
struct change_name chains_last_change(const struct chains *chains);

/* A heartbeat's reply, that enough replicas have acknowledged, told a chain's numbers; then that these were all chains
 * up to that count of changes in the store. */
void chains_heard(struct chains *chains, struct text maker, struct chain_numbers numbers);
void chains_heard_all(struct chains *chains, uint64_t count);
/* That count; 0: it has heard of none. */
uint64_t chains_count(const struct chains *chains);

/* Reads "<ends> <all> <low>", as chain_write() in prelude.lua writes it. ret_low: the first number that was ever
 * missing at that store; UINT64_MAX: none was. */
MUST_CHECK bool chain_read(struct text text, struct chain_numbers *ret_numbers, uint64_t *ret_low);

/* How many members ever joined, as heartbeats said: a Redis that counts fewer does not know of some. At another Redis
 * the count begins anew (0). */
uint64_t chains_joined(const struct chains *chains);
void chains_heard_joined(struct chains *chains, uint64_t joined);
/* An operator has accepted that Redis has no more of this chain. */
void chains_lower(struct chains *chains, const char *maker, struct chain_numbers numbers);

/* Each chain that is known, in the order of its makers. Valid until the next call that may change one. */
struct chain {
    char maker[MAKER_CHARS + 1];
    struct chain_numbers numbers;
    uint64_t heard_ns; /* when it last grew */
};
const struct chain *chains_all(struct chains *chains, size_t *ret_count);
