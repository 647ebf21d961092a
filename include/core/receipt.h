/* The certificate of a revocation: a JWS in compact form (RFC 7515) that a node signs with Ed25519 (RFC 8037), and the
 * JWK set (RFC 7517) that verifies it. Anyone who has the set can verify one offline. */
#pragma once
#include "core/id.h"
#include "core/keyring.h"

struct json;

enum {
    RECEIPT_KID_CHARS = 43,         /* a JWK thumbprint (RFC 7638) in base64url */
    RECEIPT_MAX_BYTES = 4096,       /* of the JWS; an origin is at most 1024 bytes */
    RECEIPT_JWKS_MAX_BYTES = 16384, /* of a JWK set that is read */
};

/* Texts are borrowed. */
struct receipt {
    struct text issuer; /* iss: the public origin */
    struct text key;    /* sub: the id of the revoked key, or of the suspended account */
    struct text store;  /* the id of the store that has the key */
    struct text event;  /* of the trail; empty: not known, null in the claims */
    int64_t revoked_ms, effective_ms;
    int64_t nodes, waited_for;
    int64_t issued_s; /* iat, a NumericDate (RFC 7519); the other times are RFC 3339 */
};

struct receipt_key {
    uint8_t bytes[KEYRING_PUBLIC_KEY_BYTES];
    char kid[RECEIPT_KID_CHARS + 1];
};
/* Larger than a keyring, because a file may have been kept for many rotations. */
enum { RECEIPT_KEYS_MAX = 32 };
struct receipt_keys {
    size_t count;
    struct receipt_key of[RECEIPT_KEYS_MAX];
};

/* The public keys of all master keys, the current one first. */
void receipt_keys_of(const struct keyring *keyring, struct receipt_keys *ret_keys);
void receipt_keys_print(const struct receipt_keys *keys, struct buf *out);
/* Reads a JWK set. Keys of other kinds are skipped. On refusal false, and *ret_why is a constant sentence without a
 * full stop. */
MUST_CHECK bool receipt_keys_read(struct text t, struct receipt_keys *ret_keys, const char **ret_why);

/* Appends the JWS, signed with the current master key's key. */
void receipt_sign(const struct receipt *receipt, const struct keyring *keyring, struct buf *out);

/* Verifies a JWS and reads its claims. Strict: the header has exactly alg (EdDSA), kid (one of the keys) and typ, and
 * base64url has one form. Claims that are not known are ignored, because they are signed and a later version may add
 * some. The texts of *ret_receipt point into the document, which the caller frees with json_free(). On refusal NULL,
 * and *ret_why is as above. */
MUST_CHECK struct json *receipt_verify(struct text jws, const struct receipt_keys *keys, struct receipt *ret_receipt,
                                       const char **ret_why);
/* Documents of other types that the same keys sign. type: the header's typ. */
void receipt_sign_claims(struct text type, struct text claims, const struct keyring *keyring, struct buf *out);
/* As receipt_verify(), but leaves the claims to the caller. max_bytes: of the JWS. */
MUST_CHECK struct json *receipt_verify_claims(struct text jws, struct text type, size_t max_bytes,
                                              const struct receipt_keys *keys, const char **ret_why);
/* Whether the key signed the text. */
MUST_CHECK bool receipt_signature_is_valid(const uint8_t key[KEYRING_PUBLIC_KEY_BYTES], struct text t,
                                           const uint8_t signature[KEYRING_SIGNATURE_BYTES]);
