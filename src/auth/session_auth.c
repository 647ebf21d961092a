#include "auth/session_auth.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/secure.h"

#include <string.h>

enum { THROTTLE_KIND_MAX_BYTES = 32 };

static void print_token_by(struct keyring *keyring, size_t generation, const char *sid,
                           char ret_token[CSRF_TOKEN_CHARS + 1])
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_CSRF, generation, text_of(sid), digest);
    encode_base64url_text(ret_token, CSRF_TOKEN_CHARS + 1, digest, sizeof digest);
    secure_wipe(digest, sizeof digest);
}

void csrf_token_print(struct keyring *keyring, const char *sid, char ret_token[CSRF_TOKEN_CHARS + 1])
{
    print_token_by(keyring, 0, sid, ret_token);
}

bool csrf_token_matches(struct keyring *keyring, const char *sid, struct text token)
{
    char expected[CSRF_TOKEN_CHARS + 1];
    bool matches = false;
    for (size_t i = 0; i < keyring_generations(keyring); i++) {
        print_token_by(keyring, i, sid, expected);
        matches |= secure_equal(token, (struct text){expected, CSRF_TOKEN_CHARS});
    }
    secure_wipe(expected, sizeof expected);
    return matches;
}

bool csrf_origin_matches(struct text origin, bool present, struct text public_origin)
{
    return !present || (public_origin.len && text_equal(origin, public_origin));
}

/* The value goes in as a digest, so it may have any length, and no two pairs of kind and value give the same input. */
void throttle_tag(struct keyring *keyring, struct text kind, struct text value, char ret_tag[THROTTLE_TAG_CHARS + 1])
{
    uint8_t bytes[KEYRING_DIGEST_BYTES + THROTTLE_KIND_MAX_BYTES];
    uint8_t tag[KEYRING_DIGEST_BYTES];
    REQUIRE(kind.len && kind.len <= THROTTLE_KIND_MAX_BYTES);
    keyring_digest(keyring, KEYRING_THROTTLE, 0, value, bytes);
    memcpy(bytes + KEYRING_DIGEST_BYTES, kind.ptr, kind.len);
    keyring_digest(keyring, KEYRING_THROTTLE, 0, (struct text){(char *)bytes, KEYRING_DIGEST_BYTES + kind.len}, tag);
    encode_hex_text(ret_tag, THROTTLE_TAG_CHARS + 1, tag, sizeof tag);
}
