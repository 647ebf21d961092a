/* Is this token a key that is accepted now? A check looks at the shape first. Then it asks the cache, by the inner hash
 * of the key's digest, and uses its answer while the node has a lease of the key's partition. Otherwise, if the
 * checksum is right, it reads the partition that the digest names. Checks of the same key share a read if
 * src/lease/README.md, rule 4, allows it.
 *
 * Checks are looked up in slices of a turn. Each step prefetches what the next step of every check needs, so that they
 * wait for memory in parallel (group prefetching: Chen et al., ICDE 2004). */
#pragma once
#include "auth/shared_table.h"
#include "auth/usage.h"
#include "base/turn.h"
#include "core/key.h"
#include "core/keyring.h"
#include "lease/membership.h"
#include "engine/partitions.h"

struct key_checker;

/* Limits of the cache, which holds as many keys as both allow. */
struct key_memory {
    size_t entries_max, bytes_max;
};

/* key: valid during the call, NULL if the key is not known. A long name may be missing. */
typedef void key_checked(void *arg, enum key_verdict verdict, const struct key_principal *key);

/* One check, in the caller's memory (a request's arena), which must stay untouched until done has run. */
struct key_check {
    struct key_checker *checker;
    struct list node; /* among the checks that wait for their slice, or for the same read */
    key_checked *done;
    void *arg;
    struct text token;  /* the caller keeps it */
    bool has_shape;     /* by its prefix and length, it may be a secret */
    enum key_kind kind; /* from the token, once the store is read */
    enum key_mode mode;
    size_t generation; /* of the master key that made the digest */
    uint8_t inner[KEYRING_DIGEST_BYTES];
    uint8_t digest[KEY_DIGEST_BYTES]; /* computed if the cache does not have the key */
};

/* members: one for each partition, in their order; the checker listens to them. If members is NULL, or they never
 * cache, every check reads the store. The array is copied. usage: where the caller will count accepted checks. table:
 * with whom the cache is shared; NULL: nobody; it outlives the checker. turn: the checker looks up in its slices. */
struct key_checker *key_checker_create(struct keyring *keyring, const struct partitions *partitions,
                                       struct membership *const *members, const struct usage *usage,
                                       const struct key_memory *memory, struct shared_table *table, struct turn *turn);
/* Call it when the checker has stopped, no check is under way, and the memberships are closed. */
void key_checker_destroy(struct key_checker *checker);
/* done runs exactly once, later: in a slice of the turn, or when the store has answered. */
void key_check_begin(struct key_checker *checker, struct key_check *check, struct text token, key_checked *done,
                     void *arg);
/* Whether the key of a check that has accepted it is accepted now, too, by memory. False: it is not, or only another
 * check can tell. */
bool key_check_holds(struct key_check *check);
/* Ends what the checker does of itself; checks go on. True: something is under way, and stopped runs once, later. */
MUST_CHECK bool key_checker_stop(struct key_checker *checker, void (*stopped)(void *arg), void *arg);
/* Readers of the shared table use that owner's key. So that they need not ask for it every few minutes, it is read
 * again before the cache drops it by age. */
void key_checker_in_use(struct key_checker *checker, uint32_t owner);
/* The digest under which the key of an accepted check is stored. Computed here: answers from the cache need none. */
void key_check_digest(const struct key_check *check, uint8_t ret_digest[KEY_DIGEST_BYTES]);
