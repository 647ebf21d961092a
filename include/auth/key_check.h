/* Is this token a key that is accepted now? The check path: shape first. Then, while the node has a lease, the cache,
 * by the inner hash of the key's digest. Otherwise, if the checksum is right, one read of the store, which checks of
 * the same key share if src/lease/README.md, rule 4, allows it.
 *
 * Checks are looked up in slices of a turn: step by step the processor fetches what the next step of each of them
 * needs, so that they wait for memory side by side, not one after the other (group prefetching: Chen et al., ICDE
 * 2004).
 */
#pragma once
#include "auth/usage.h"
#include "base/turn.h"
#include "core/key.h"
#include "core/keyring.h"
#include "lease/membership.h"

struct key_checker;

/* Limits of the cache: as many keys as both allow. */
struct key_memory {
    size_t entries_max, bytes_max;
};

/* key: valid during the call, NULL if the key is not known. A long name may be missing. */
typedef void key_checked(void *arg, enum key_verdict verdict, const struct key_principal *key);

/* One check, in the caller's memory (a request's arena), which must stay untouched until done has run. */
struct key_check {
    struct key_checker *checker;
    struct list node; /* among those that wait for their slice, or for the same read */
    key_checked *done;
    void *arg;
    struct text token;  /* the caller keeps it */
    bool has_shape;     /* it may be a secret */
    enum key_kind kind; /* from the token, once the store is asked */
    enum key_mode mode;
    size_t generation; /* of the master key that made the digest */
    uint8_t inner[KEYRING_DIGEST_BYTES];
    uint8_t digest[KEY_DIGEST_BYTES]; /* computed if the cache does not know the key */
};

/* member: NULL, or one that never caches: every check reads the store. Else the checker listens to it. usage: where
 * accepted checks will be counted. turn: in whose slices it looks up. */
struct key_checker *key_checker_create(struct keyring *keyring, struct store *store, struct membership *member,
                                       const struct usage *usage, const struct key_memory *memory, struct turn *turn);
/* When no check is under way, and the membership is closed. */
void key_checker_destroy(struct key_checker *checker);
/* done runs exactly once, later: in a slice of the turn, or when the store has answered. */
void key_check_begin(struct key_checker *checker, struct key_check *check, struct text token, key_checked *done,
                     void *arg);
/* The digest under which the key of a check that was accepted is stored. Answers from memory need none: it is made
 * here. */
void key_check_digest(const struct key_check *check, uint8_t ret_digest[KEY_DIGEST_BYTES]);
/* The digest under which a new secret is to be stored. */
void key_checker_digest(struct key_checker *checker, struct text secret, uint8_t ret_digest[KEY_DIGEST_BYTES]);
