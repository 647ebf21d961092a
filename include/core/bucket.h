/* Buckets: accounts, and everything that is found without knowing its account, fall into 256 of them. They are the unit
 * in which a store can be spread over several Redis primaries: the records of an account all lie in its bucket, and a
 * digest tells by itself in which bucket its record lies, because secrets and tokens are drawn to fit
 * (secret_draw(), token_draw()). Secrets, tokens and codes made before that rule lie in any bucket and stay valid.
 *
 * Fixed for ever: digests in stores, and secrets in the hands of clients, were drawn by these functions. */
#pragma once
#include "core/id.h"
#include "core/keyring.h"

enum { BUCKETS = 256, PARTITIONS_MAX = BUCKETS, PARTITIONS_OF_CLUSTER = 16 /* unless given */ };

/* Each draw fits with a chance of 1 in BUCKETS, so one needs 256 on average. No run of luck reaches this limit:
 * (255/256)^16384 is 10^-28. Reaching it means that digests are not random, and ends the process. */
enum { BUCKET_DRAWS_MAX = 16384 };

/* The low byte of the CRC-32 of the id's text. The id must not be empty. */
uint8_t bucket_of_account(const struct id *account);
/* The digest's last byte. */
static inline uint8_t bucket_of_digest(const uint8_t digest[KEYRING_DIGEST_BYTES])
{
    return digest[KEYRING_DIGEST_BYTES - 1];
}
/* Of what is looked up before its account is known, by a text such as an email or a throttle's tag: the low byte of its
 * CRC-32. Not keyed: a change of master key moves nothing. */
uint8_t bucket_of_text(struct text t);
