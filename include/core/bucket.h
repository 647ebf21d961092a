/* The bucket of what is stored. Each belongs to one of 256, and a partition of a store holds some of them
 * (store/partitions.h). Everything that an account owns is in the account's bucket; what is known before its account is
 * known, such as an email, is in a bucket of its own. Stores depend on these numbers, so they never change. */
#pragma once
#include "base/crc32.h"
#include "core/id.h"
#include "core/keyring.h"

enum { BUCKETS = 256, PARTITIONS_MAX = BUCKETS };

/* Of an email, a throttle's tag, or an id in text form. */
static inline unsigned bucket_of_text(struct text t)
{
    return crc32_of(t) % BUCKETS;
}

static inline unsigned bucket_of_account(const struct id *account)
{
    return bucket_of_text(id_text(account));
}

/* Of what a keyed digest names: secrets, session tokens and other tokens are drawn so that this is the bucket of their
 * account. */
static inline unsigned bucket_of_digest(const uint8_t digest[KEYRING_DIGEST_BYTES])
{
    return digest[KEYRING_DIGEST_BYTES - 1];
}
