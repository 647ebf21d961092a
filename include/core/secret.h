/* The secrets of API and device keys (src/api/README.md#secrets): "svc_sk_test_", "svc_sk_live_" or "svc_dk_", 32
 * random base62 characters, then 6 base62 characters of the CRC-32 of everything before them. */
#pragma once
#include "base/text.h"
#include "core/bucket.h"
#include "core/key.h"

enum {
    SECRET_RANDOM_CHARS = 32,
    SECRET_CHECKSUM_CHARS = 6,
    SECRET_MIN_CHARS = 7 + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS, /* a device key's */
    SECRET_MAX_CHARS = 12 + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS,
};

struct secret {
    char text[SECRET_MAX_CHARS + 1];
};

/* A new secret; the caller wipes it with secret_wipe(). */
void secret_mint(enum key_kind kind, enum key_mode mode, struct secret *ret_secret);
/* As secret_mint(), until the digest under the current master key lies in the bucket, which is that of the account.
 * Each secret that does not fit is overwritten by the next. Takes some 256 digests. */
void secret_draw(struct keyring *keyring, uint8_t bucket, enum key_kind kind, enum key_mode mode,
                 struct secret *ret_secret, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
/* The secret whose random characters are those that random bytes stand for: the same bytes always give the same one.
 * False: too few of them stand for one, once in 10^31 times. */
enum { SECRET_BYTES = 64 };
MUST_CHECK bool secret_from_bytes(enum key_kind kind, enum key_mode mode, const uint8_t bytes[SECRET_BYTES],
                                  struct secret *ret_secret);
void secret_wipe(void *secret); /* fits arena_defer() */
struct text secret_text(const struct secret *secret);
/* Prefix and length only. */
MUST_CHECK bool secret_has_shape(struct text t);
/* Shape and checksum only: a token that fails here is refused without asking Redis. */
MUST_CHECK bool secret_parse(struct text t, enum key_kind *ret_kind, enum key_mode *ret_mode);

/* Secrets in text: a pasted line, a log, a name. */
enum secret_found {
    SECRET_NONE,
    SECRET_WHOLE,
    SECRET_BROKEN, /* a prefix, and no whole secret behind it: cut, mistyped or wrapped */
};
/* The next one in *rest, and *rest is what follows it. A secret is whole if its checksum is right, whatever stands next
 * to it: by chance that is so once in four billion times. ret_secret: the whole secret, or the beginning of a broken
 * one. */
MUST_CHECK enum secret_found secret_find(struct text *rest, struct text *ret_secret);
/* Whether t has a whole secret. */
bool secret_within(struct text t);
/* Whether t has a secret, or the start of one: it must not be said again. */
bool secret_begins_within(struct text t);
