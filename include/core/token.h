/* Opaque tokens: 256 random bits as base64url, for session cookies and device codes. Redis holds only their digest,
 * under the key of their purpose. */
#pragma once
#include "core/bucket.h"
#include "core/keyring.h"

enum { TOKEN_CHARS = 43 };

struct token {
    char text[TOKEN_CHARS + 1];
};

/* Wipe with token_wipe(), which fits arena_defer(). */
void token_mint(struct token *ret_token);
/* As token_mint(), until the digest under the current master key lies in the bucket. Each token that does not fit is
 * overwritten by the next. Takes some 256 digests. */
void token_draw(struct keyring *keyring, uint8_t bucket, enum keyring_purpose purpose, struct token *ret_token,
                uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
void token_wipe(void *token);
/* The digest under the current master key. False unless it has the form of a token. */
MUST_CHECK bool token_digest(struct keyring *keyring, enum keyring_purpose purpose, struct text token,
                             uint8_t ret_digest[KEYRING_DIGEST_BYTES]);

/* The digests under which a presented token may be stored: one per master key, the current one's first. */
struct token_digests {
    size_t count;
    uint8_t of[KEYRING_MAX_GENERATIONS][KEYRING_DIGEST_BYTES];
};
/* False unless it has the form of a token. */
MUST_CHECK bool token_digests(struct keyring *keyring, enum keyring_purpose purpose, struct text token,
                              struct token_digests *ret_digests);
/* The digests of any text. */
void token_digests_of(struct keyring *keyring, enum keyring_purpose purpose, struct text t,
                      struct token_digests *ret_digests);
