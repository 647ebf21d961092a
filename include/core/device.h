/* Codes and clients of device enrolment (RFC 8628). The device code is a struct token, a secret between the device and
 * us. The user code is short enough to be read from a screen and typed, so it lives for minutes and guesses are
 * throttled. */
#pragma once
#include "core/id.h"
#include "core/keyring.h"
#include "core/limits.h"
#include "core/token.h"

enum { USER_CODE_CHARS = 9, CLIENT_ID_MAX_BYTES = 64 };

#define DEVICE_GRANT_TYPE_LITERAL "urn:ietf:params:oauth:grant-type:device_code"
#define DEVICE_GRANT_TYPE TEXT(DEVICE_GRANT_TYPE_LITERAL)

/* "XXXX-XXXX" of BCDFGHJKLMNPQRSTVWXZ: no vowels, so no words, and no characters that look alike; 34 bits. */
struct user_code {
    char text[USER_CODE_CHARS + 1];
};

void user_code_mint(struct user_code *ret_code);
/* Reads a code as people type it: letters of either case, hyphens and blanks anywhere (also "%20", as in a path).
 * ret_code is in the form above. */
MUST_CHECK bool user_code_parse(struct text t, struct user_code *ret_code);
void user_code_digest(struct keyring *keyring, const struct user_code *code, uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
/* The digests that a typed code may be stored under. */
void user_code_digests(struct keyring *keyring, const struct user_code *code, struct token_digests *ret_digests);

/* A list of client ids, separated by commas: each 1 to 64 of A-Z a-z 0-9 . _ -, at least one. */
MUST_CHECK bool device_clients_valid(struct text list);
bool device_clients_include(struct text list, struct text client);
