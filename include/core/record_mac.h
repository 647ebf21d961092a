/* MACs of records in Redis: HMAC-SHA-256 under a derived key, cut to 128 bits (RFC 2104 section 5), over what never
 * changes in a record and over the name under which it is stored. Who writes Redis without the master key can't make a
 * record, nor alter or move one. He can still put back an older state of a record, as one from before its
 * revocation: a MAC does not tell which is the last. */
#pragma once
#include "core/keyring.h"

/* Part of the MAC, so that no record passes for one of another kind: never change the order. */
enum record_kind { RECORD_KEY, RECORD_ENROLMENT, RECORD_APPROVAL, RECORD_SESSION, RECORD_USER, RECORD_GRACE };

enum { RECORD_MAC_CHARS = 22, RECORD_PARTS_MAX_BYTES = 2048 };

struct record_mac {
    char text[RECORD_MAC_CHARS + 1];
};

/* What is bound, in an order of the caller's; at most RECORD_PARTS_MAX_BYTES together with 8 bytes a part. */
struct record_parts {
    enum record_kind kind;
    size_t count;
    const struct text *parts;
};

/* Under the current master key. */
void record_mac_make(struct keyring *keyring, const struct record_parts *record, struct record_mac *ret_mac);

enum record_seal {
    RECORD_SEALED,   /* made by who knows one of the master keys */
    RECORD_UNSEALED, /* has no MAC: written before there were any, or by somebody else */
    RECORD_ALTERED,  /* its MAC is another record's, or none at all */
};
/* mac: as it is stored, empty for none. ret_generation (may be NULL): of the master key, where it is sealed. */
enum record_seal record_mac_judge(struct keyring *keyring, const struct record_parts *record, struct text mac,
                                  size_t *ret_generation);
