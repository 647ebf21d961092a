/* The remains of a key long after its end: its kind, its mode and the day, in one number, so that it takes Redis about
 * a seventh of the record. It is stored under the digest of the secret (`dead:` in src/engine/README.md) and tells that
 * the secret was a key's and is none any more. A tombstone is never a key that lives: nothing in it can say so. */
#pragma once
#include "core/key.h"

/* A number with 64 bits, as Redis stores in the least memory: 46 of the MAC over the digest and the rest, 16 of the day
 * since 1970, 2 of kind and mode. The MAC is short, because whoever guesses one (in 2^45 attempts, each a write and a
 * request) makes an unknown secret look revoked, which is refused either way. Never change the form. */
enum { TOMBSTONE_TEXT_BYTES = 24 };
/* Its name: the digest's last 27 bytes in base64url, so that Redis needs 64 bytes for it, with the usual prefix and 256
 * partitions. The MAC binds the whole digest. */
enum { TOMBSTONE_NAME_CHARS = 36 };
void tombstone_print_name(const uint8_t digest[KEY_DIGEST_BYTES], struct buf *out);
/* The bucket of such a name's digest (core/bucket.h). False: it is no such name. */
MUST_CHECK bool tombstone_name_bucket(struct text name, uint8_t *ret_bucket);

/* Under the current master key. key: revoked. */
void tombstone_print(const struct key_record *key, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES],
                     struct buf *out);
/* False unless tombstone_print() may have written it. ret_key is a revoked key without ids and name. Does not tell who
 * wrote it: tombstone_verify() does. */
MUST_CHECK bool tombstone_read(struct text t, struct key_record *ret_key);
/* RECORD_SEALED: a holder of a master key made it, for that digest. Else RECORD_ALTERED. */
enum record_seal tombstone_verify(struct text t, struct keyring *keyring, const uint8_t digest[KEY_DIGEST_BYTES]);
/* Whether the key is one that tombstone_read() returned. */
static inline bool key_is_tombstone(const struct key_record *key)
{
    return key->id.text[0] == '\0';
}
