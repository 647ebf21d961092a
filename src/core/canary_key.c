#include "core/canary_key.h"
#include "base/check.h"
#include "base/random.h"
#include "base/secure.h"

#include <stdio.h>
#include <string.h>

#define OWNERS "acct_0000000000canary"

enum { NUMBERED_NONCE_BYTES = CANARY_NONCE_CHARS + 2, ACCOUNTS_MAX = 16384 };

/* Any number gives an id whose bucket is as good as random. */
void canary_account(uint8_t bucket, struct id *ret_account)
{
    for (unsigned number = 0; number < ACCOUNTS_MAX; number++) {
        *ret_account = (struct id){0};
        snprintf(ret_account->text, sizeof ret_account->text, OWNERS "%010u", number);
        if (bucket_of_account(ret_account) == bucket)
            return;
    }
    UNREACHABLE();
}

bool canary_owns(const struct id *account)
{
    return text_starts_with(id_text(account), TEXT(OWNERS));
}

/* One digest has too few bytes, so there are two, of the nonce with a number behind it. */
bool canary_secret(struct keyring *keyring, size_t generation, struct text nonce, struct secret *ret_secret)
{
    uint8_t bytes[2 * KEYRING_DIGEST_BYTES];
    char numbered[NUMBERED_NONCE_BYTES];
    bool is_one;

    _Static_assert(sizeof bytes == SECRET_BYTES, "two digests make a secret");
    if (nonce.len != CANARY_NONCE_CHARS)
        return false;
    memcpy(numbered, nonce.ptr, nonce.len);
    numbered[CANARY_NONCE_CHARS] = ' ';
    for (size_t i = 0; i < 2; i++) {
        numbered[CANARY_NONCE_CHARS + 1] = (char)('0' + i);
        keyring_digest(keyring, KEYRING_CANARY, generation, (struct text){numbered, sizeof numbered},
                       bytes + i * KEYRING_DIGEST_BYTES);
    }
    is_one = secret_from_bytes(KEY_API, MODE_TEST, bytes, ret_secret);
    secure_wipe(bytes, sizeof bytes);
    return is_one;
}

void canary_draw(struct keyring *keyring, uint8_t bucket, char ret_nonce[CANARY_NONCE_CHARS + 1],
                 struct secret *ret_secret, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    for (int draws = 0;; draws++) {
        CHECK(draws < BUCKET_DRAWS_MAX);
        random_hex(ret_nonce, CANARY_NONCE_CHARS + 1);
        if (!canary_secret(keyring, 0, text_of(ret_nonce), ret_secret))
            continue;
        keyring_digest(keyring, KEYRING_KEY_DIGEST, 0, secret_text(ret_secret), ret_digest);
        if (bucket_of_digest(ret_digest) == bucket)
            return;
    }
}
