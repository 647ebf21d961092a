/* MACs of records in Redis: HMAC-SHA-256 under a derived key, cut to 128 bits (RFC 2104 section 5), over the parts of a
 * record that never change and the name under which it is stored. Without the master key, nobody who writes to Redis
 * can create, alter or move a record. They can still put back an older state of a record, for example from before its
 * revocation: a MAC does not say which state is the latest. */
#pragma once
#include "core/keyring.h"

/* Part of the MAC, so that no record passes as another kind: never change the order. */
enum record_kind {
    RECORD_KEY,
    RECORD_ENROLMENT,
    RECORD_APPROVAL,
    RECORD_SESSION,
    RECORD_USER, /* an active owner */
    RECORD_GRACE,
    RECORD_PERSON, /* a user with another role, or disabled */
    RECORD_LINK,   /* an invitation or a reset */
    RECORD_TOMBSTONE,
};

enum { RECORD_MAC_CHARS = 22, RECORD_PARTS_MAX_BYTES = 2048 };

struct record_mac {
    char text[RECORD_MAC_CHARS + 1];
};

/* The parts that the MAC binds, in the caller's order; at most RECORD_PARTS_MAX_BYTES, including 8 bytes per part. */
struct record_parts {
    enum record_kind kind;
    size_t count;
    const struct text *parts;
};

/* Under the current master key. */
void record_mac_make(struct keyring *keyring, const struct record_parts *record, struct record_mac *ret_mac);

/* The MAC's first 64 bits under that generation's master key, for a record that has no room for more
 * (core/tombstone.h). */
uint64_t record_mac_number(struct keyring *keyring, size_t generation, const struct record_parts *record);

enum record_seal {
    RECORD_SEALED,   /* made with one of the master keys */
    RECORD_UNSEALED, /* has no MAC: written by an early version, or by somebody else */
    RECORD_ALTERED,  /* its MAC is wrong */
};
/* mac: as stored, empty for none. ret_generation (may be NULL): of the master key, if sealed. */
enum record_seal record_mac_verify(struct keyring *keyring, const struct record_parts *record, struct text mac,
                                   size_t *ret_generation);
