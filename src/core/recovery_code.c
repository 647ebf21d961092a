#include "core/recovery_code.h"
#include "base/check.h"
#include "base/random.h"
#include "base/secure.h"
#include "core/limits.h"

#include <string.h>

enum { CODE_BYTES = 10, BITS_PER_CHAR = 5, GROUP_CHARS = 4 };

static const char ALPHABET[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void recovery_code_mint(struct recovery_code *ret_code)
{
    uint8_t bytes[CODE_BYTES];
    uint32_t bits = 0;
    unsigned count = 0;
    size_t at = 0;
    random_secret(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bits = bits << 8 | bytes[i];
        for (count += 8; count >= BITS_PER_CHAR; count -= BITS_PER_CHAR)
            ret_code->text[at++] = ALPHABET[bits >> (count - BITS_PER_CHAR) & 31];
    }
    CHECK(at == RECOVERY_CODE_CHARS);
    ret_code->text[at] = '\0';
    secure_wipe(bytes, sizeof bytes);
    secure_wipe(&bits, sizeof bits);
}

void recovery_code_wipe(void *code)
{
    secure_wipe(code, sizeof(struct recovery_code));
}

void recovery_code_print(const struct recovery_code *code, char ret_text[RECOVERY_CODE_TEXT_BYTES])
{
    size_t at = 0;
    for (size_t i = 0; i < RECOVERY_CODE_CHARS; i++) {
        if (i > 0 && i % GROUP_CHARS == 0)
            ret_text[at++] = '-';
        ret_text[at++] = code->text[i];
    }
    ret_text[at] = '\0';
}

/* The character of the alphabet that is meant; '\0': none. */
static char meant(char typed)
{
    char c = typed >= 'a' && typed <= 'z' ? (char)(typed - ('a' - 'A')) : typed;
    if (c == 'O')
        c = '0';
    if (c == 'I' || c == 'L')
        c = '1';
    return c && strchr(ALPHABET, c) ? c : '\0';
}

bool recovery_code_parse(struct text typed, struct recovery_code *ret_code)
{
    size_t at = 0;
    for (size_t i = 0; i < typed.len; i++) {
        if (typed.ptr[i] == '-' || typed.ptr[i] == ' ')
            continue;
        const char c = meant(typed.ptr[i]);
        if (!c || at == RECOVERY_CODE_CHARS)
            return false;
        ret_code->text[at++] = c;
    }
    ret_code->text[at] = '\0';
    return at == RECOVERY_CODE_CHARS;
}

/* No email contains a NUL, so no two pairs of email and code give the same input. */
void recovery_code_digests(struct keyring *keyring, struct text email, const struct recovery_code *code,
                           struct token_digests *ret_digests)
{
    char storage[EMAIL_MAX_BYTES + 1 + RECOVERY_CODE_CHARS];
    struct buf bound = BUF_OVER(storage, sizeof storage);
    buf_append_text(&bound, email);
    buf_append_char(&bound, '\0');
    buf_append(&bound, code->text, RECOVERY_CODE_CHARS);
    CHECK(!bound.failed);
    token_digests_of(keyring, KEYRING_RECOVERY, buf_text(&bound), ret_digests);
    secure_wipe(storage, sizeof storage);
}

void recovery_code_digest(struct keyring *keyring, struct text email, const struct recovery_code *code,
                          uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    struct token_digests digests;
    recovery_code_digests(keyring, email, code, &digests);
    memcpy(ret_digest, digests.of[0], KEYRING_DIGEST_BYTES);
}
