#include "core/token.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/random.h"
#include "base/secure.h"

enum { TOKEN_BYTES = 32 };

static void mint_from(struct random_ahead *random, struct token *ret_token)
{
    uint8_t bytes[TOKEN_BYTES];
    random_ahead_take(random, bytes, sizeof bytes);
    encode_base64url_text(ret_token->text, sizeof ret_token->text, bytes, sizeof bytes);
    secure_wipe(bytes, sizeof bytes);
}

void token_mint(struct token *ret_token)
{
    struct random_ahead random = {0};
    mint_from(&random, ret_token);
    random_ahead_wipe(&random);
}

void token_draw(struct keyring *keyring, uint8_t bucket, enum keyring_purpose purpose, struct token *ret_token,
                uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    struct random_ahead random = {0};
    int draws = 0;
    do {
        CHECK(draws++ < BUCKET_DRAWS_MAX);
        mint_from(&random, ret_token);
        keyring_digest(keyring, purpose, 0, text_of(ret_token->text), ret_digest);
    } while (bucket_of_digest(ret_digest) != bucket);
    random_ahead_wipe(&random);
}

void token_wipe(void *token)
{
    secure_wipe(token, sizeof(struct token));
}

static bool has_form(struct text token)
{
    uint8_t bytes[TOKEN_BYTES];
    if (token.len != TOKEN_CHARS || !decode_base64url(token, bytes, sizeof bytes))
        return false;
    secure_wipe(bytes, sizeof bytes);
    return true;
}

bool token_digest(struct keyring *keyring, enum keyring_purpose purpose, struct text token,
                  uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    if (!has_form(token))
        return false;
    keyring_digest(keyring, purpose, 0, token, ret_digest);
    return true;
}

void token_digests_of(struct keyring *keyring, enum keyring_purpose purpose, struct text t,
                      struct token_digests *ret_digests)
{
    ret_digests->count = keyring_generations(keyring);
    for (size_t i = 0; i < ret_digests->count; i++)
        keyring_digest(keyring, purpose, i, t, ret_digests->of[i]);
}

bool token_digests(struct keyring *keyring, enum keyring_purpose purpose, struct text token,
                   struct token_digests *ret_digests)
{
    if (!has_form(token))
        return false;
    token_digests_of(keyring, purpose, token, ret_digests);
    return true;
}
