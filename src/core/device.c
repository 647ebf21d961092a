#include "core/device.h"
#include "base/check.h"
#include "base/random.h"
#include "base/secure.h"

#include <string.h>

enum { USER_CODE_LETTERS = 8, USER_CODE_GROUP = 4, LETTERS = 20, RANDOM_BATCH_BYTES = 16 };

static const char ALPHABET[LETTERS + 1] = "BCDFGHJKLMNPQRSTVWXZ";

/* letters: USER_CODE_LETTERS of the alphabet. */
static void print_user_code(const char *letters, struct user_code *ret_code)
{
    memcpy(ret_code->text, letters, USER_CODE_GROUP);
    ret_code->text[USER_CODE_GROUP] = '-';
    memcpy(ret_code->text + USER_CODE_GROUP + 1, letters + USER_CODE_GROUP, USER_CODE_LETTERS - USER_CODE_GROUP);
    ret_code->text[USER_CODE_CHARS] = '\0';
}

/* Discards bytes of the last, incomplete cycle through the alphabet, so that each letter is equally likely. */
void user_code_mint(struct user_code *ret_code)
{
    uint8_t bytes[RANDOM_BATCH_BYTES];
    char letters[USER_CODE_LETTERS];
    size_t drawn = 0;
    while (drawn < sizeof letters) {
        random_secret(bytes, sizeof bytes);
        for (size_t i = 0; i < sizeof bytes && drawn < sizeof letters; i++)
            if (bytes[i] < 256 / LETTERS * LETTERS)
                letters[drawn++] = ALPHABET[bytes[i] % LETTERS];
    }
    print_user_code(letters, ret_code);
    secure_wipe(bytes, sizeof bytes);
    secure_wipe(letters, sizeof letters);
}

static struct text skip_separators(struct text t)
{
    const struct text escaped_blank = TEXT("%20");
    for (;;) {
        if (t.len && (t.ptr[0] == '-' || t.ptr[0] == ' '))
            t = text_skip(t, 1);
        else if (text_starts_with(t, escaped_blank))
            t = text_skip(t, escaped_blank.len);
        else
            return t;
    }
}

bool user_code_parse(struct text t, struct user_code *ret_code)
{
    char letters[USER_CODE_LETTERS];
    size_t count = 0;
    while ((t = skip_separators(t)).len) {
        char letter = t.ptr[0] >= 'a' && t.ptr[0] <= 'z' ? (char)(t.ptr[0] - 'a' + 'A') : t.ptr[0];
        if (count == sizeof letters || !memchr(ALPHABET, letter, LETTERS))
            return false;
        letters[count++] = letter;
        t = text_skip(t, 1);
    }
    if (count != sizeof letters)
        return false;
    print_user_code(letters, ret_code);
    return true;
}

/* No device code has the same text, because they are longer. */
void user_code_digest(struct keyring *keyring, const struct user_code *code, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    keyring_digest(keyring, KEYRING_DEVICE_CODE, 0, text_of(code->text), ret_digest);
}

void user_code_digests(struct keyring *keyring, const struct user_code *code, struct token_digests *ret_digests)
{
    token_digests_of(keyring, KEYRING_DEVICE_CODE, text_of(code->text), ret_digests);
}

static bool client_valid(struct text client)
{
    for (size_t i = 0; i < client.len; i++) {
        const char c = client.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return false;
    }
    return client.len >= 1 && client.len <= CLIENT_ID_MAX_BYTES;
}

bool device_clients_valid(struct text list)
{
    struct text client;
    size_t count = 0;
    for (; text_next(&list, ',', &client); count++)
        if (!client_valid(client))
            return false;
    return count > 0;
}

bool device_clients_include(struct text list, struct text client)
{
    struct text known;
    while (text_next(&list, ',', &known))
        if (client.len && text_equal(known, client))
            return true;
    return false;
}
