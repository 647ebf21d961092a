/* Recovery codes: 80 random bits in Crockford's base32, "7K4M-0PXR-9D2E-WQ5T". Redis holds only keyed digests, bound to
 * the user's email, so a digest moved to another user fits nothing. */
#pragma once
#include "core/token.h"

enum { RECOVERY_CODE_CHARS = 16, RECOVERY_CODE_TEXT_BYTES = RECOVERY_CODE_CHARS + 3 + 1 };

/* Without hyphens, in upper case, NUL-terminated. */
struct recovery_code {
    char text[RECOVERY_CODE_CHARS + 1];
};

/* Wipe with recovery_code_wipe(), which fits arena_defer(). */
void recovery_code_mint(struct recovery_code *ret_code);
void recovery_code_wipe(void *code);
/* In groups of four, NUL-terminated. */
void recovery_code_print(const struct recovery_code *code, char ret_text[RECOVERY_CODE_TEXT_BYTES]);
/* Ignores case, hyphens and blanks, and reads O as 0, I and L as 1. False: not a code. */
MUST_CHECK bool recovery_code_parse(struct text typed, struct recovery_code *ret_code);
/* email: in normal form. The digest of a new code is that under the current master key. */
void recovery_code_digest(struct keyring *keyring, struct text email, const struct recovery_code *code,
                          uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
/* Under each master key, the current one's first. */
void recovery_code_digests(struct keyring *keyring, struct text email, const struct recovery_code *code,
                           struct token_digests *ret_digests);
