/* Is this token a key that is accepted now? The check path of design 5: shape, then what is known of the key: from
 * memory, by the inner hash of its digest, while the node has a lease (design 6), else, if the checksum is right, by
 * one read of the store, which checks of the same key share as far as that is right.
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

/* What may be remembered: as many keys as both bounds allow. */
struct key_memory {
    size_t entries_max, bytes_max;
};

/* key: valid during the call, NULL if the key is not known. A long name may be missing. */
typedef void key_checked(void *arg, enum key_verdict verdict, const struct key_principal *key);

/* One check; the caller's memory (a request's arena), untouched until done has run. */
struct key_check {
    struct key_checker *checker;
    struct list node; /* among those that wait for their slice, or for the same read */
    key_checked *done;
    void *arg;
    struct text token;  /* the caller keeps it */
    bool has_shape;     /* it may be a secret */
    enum key_kind kind; /* these two as the token says, once the store is asked */
    enum key_mode mode;
    size_t generation; /* of the master key that the digest is made with */
    uint8_t inner[KEYRING_DIGEST_BYTES];
    uint8_t digest[KEY_DIGEST_BYTES]; /* made when memory does not know the key */
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
/* The digest under which a new secret is stored. */
void key_checker_digest(struct key_checker *checker, struct text secret, uint8_t ret_digest[KEY_DIGEST_BYTES]);
