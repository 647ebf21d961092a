/* The master key and the keys derived from it (SECURITY.md#at-rest): HKDF-SHA-256 (RFC 5869) derives one key per
 * purpose. Retired master keys still verify; only the first one makes new digests and signatures. All contexts except
 * those of signatures are made once: no other call after keyring_create() fetches from EVP or allocates. Loop thread
 * only. */
#pragma once
#include "base/text.h"

enum { KEYRING_NAME_CHARS = 64, KEYRING_SHORT_NAME_CHARS = 8 };
enum { KEYRING_MASTER_BYTES = 32, KEYRING_DIGEST_BYTES = 32, KEYRING_MAX_GENERATIONS = 8 };

enum keyring_purpose {
    KEYRING_KEY_DIGEST,     /* secrets of API and device keys */
    KEYRING_SESSION_DIGEST, /* session cookies */
    KEYRING_DEVICE_CODE,    /* device codes */
    KEYRING_CSRF,           /* CSRF tokens from session ids */
    KEYRING_THROTTLE,       /* names of throttle counters, so that Redis holds no email in clear there */
    KEYRING_PASSWORD,       /* pepper of password hashes */
    KEYRING_RECORD_MAC,     /* MACs of records in Redis (core/record_mac.h) */
    KEYRING_NAME,           /* names of master keys, which reveal nothing about them */
    KEYRING_TICKET,         /* keys of TLS session tickets */
    KEYRING_AUDIT_LOG,      /* MACs of the audit log's lines (core/audit_line.h) */
    KEYRING_RECOVERY,       /* recovery codes, and the tickets of recoveries */
    KEYRING_LINK,           /* codes of invitations and resets */
    KEYRING_CANARY,         /* secrets of canary keys (core/canary_key.h) */
    KEYRING_PURPOSES
};

struct keyring;

/* masters: generations x 32 bytes, the current one first; copied, the caller wipes its own. */
struct keyring *keyring_create(const uint8_t (*masters)[KEYRING_MASTER_BYTES], size_t generations);
/* Wipes. NULL is fine. */
void keyring_destroy(struct keyring *keyring);
size_t keyring_generations(const struct keyring *keyring);
/* The name of that generation's master key: 64 hex digits that reveal nothing about it. The first 8 are its short name.
 * Not secret; part of the stored format. */
struct text keyring_name(const struct keyring *keyring, size_t generation);
struct text keyring_short_name(const struct keyring *keyring, size_t generation);
/* HMAC-SHA-256 of the text under the key of that purpose and generation; 0 is the current one. */
void keyring_digest(struct keyring *keyring, enum keyring_purpose purpose, size_t generation, struct text t,
                    uint8_t ret_digest[KEYRING_DIGEST_BYTES]);
/* keyring_digest() in its two steps (RFC 2104). The inner hash is already keyed and distinguishes texts as well as the
 * digest does, in half the time. Keep it in this process's memory; store and send only digests. */
void keyring_inner(struct keyring *keyring, enum keyring_purpose purpose, size_t generation, struct text t,
                   uint8_t ret_inner[KEYRING_DIGEST_BYTES]);
/* The digest of the text with that inner hash; ret_digest may overlap it. */
void keyring_outer(struct keyring *keyring, enum keyring_purpose purpose, size_t generation,
                   const uint8_t inner[KEYRING_DIGEST_BYTES], uint8_t ret_digest[KEYRING_DIGEST_BYTES]);

enum { KEYRING_SEAL_OVERHEAD = 1 + 12 + 16 }; /* version, nonce, tag */

/* AES-256-GCM with the bound text as additional data, so that data sealed for one user cannot be moved to another.
 * ret_sealed has room for plain_bytes + KEYRING_SEAL_OVERHEAD. */
void keyring_seal(struct keyring *keyring, struct text bound_to, const uint8_t *plain, size_t plain_bytes,
                  uint8_t *ret_sealed);
/* Tries every generation. False unless one of them sealed it, with the same bound text. ret_plain has room for
 * sealed_bytes - KEYRING_SEAL_OVERHEAD. */
MUST_CHECK bool keyring_open(struct keyring *keyring, struct text bound_to, const uint8_t *sealed, size_t sealed_bytes,
                             uint8_t *ret_plain);
/* Also says which generation sealed it. */
MUST_CHECK bool keyring_open_by(struct keyring *keyring, struct text bound_to, const uint8_t *sealed,
                                size_t sealed_bytes, uint8_t *ret_plain, size_t *ret_generation);

/* Ed25519 (RFC 8032). Each master key has a key pair of its own, whose private half is derived from it. */
enum { KEYRING_PUBLIC_KEY_BYTES = 32, KEYRING_SIGNATURE_BYTES = 64 };
void keyring_public_key(const struct keyring *keyring, size_t generation, uint8_t ret_key[KEYRING_PUBLIC_KEY_BYTES]);
/* With the current master key's. */
void keyring_sign(const struct keyring *keyring, struct text t, uint8_t ret_signature[KEYRING_SIGNATURE_BYTES]);

/* Reads a master key from text: 64 hex digits or base64 of 32 bytes, white space around it ignored. */
MUST_CHECK bool keyring_parse_master(struct text t, uint8_t ret_master[KEYRING_MASTER_BYTES]);
