/* Opaque tokens: 256 random bits as base64url. A session's cookie and a device's code are such; at rest there is only
 * their digest, under the key of their purpose. */
#pragma once
#include "core/keyring.h"

enum { TOKEN_CHARS = 43 };

struct token {
    char text[TOKEN_CHARS + 1];
};

/* Wipe with token_wipe(), which fits arena_defer(). */
void token_mint(struct token *ret_token);
void token_wipe(void *token);
/* False if it has not the form of a token. One that was made under a retired master key is unknown: signing in again,
 * or enrolling again, is cheap. */
MUST_CHECK bool token_digest(struct keyring *keyring, enum keyring_purpose purpose, struct text token,
                             uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
