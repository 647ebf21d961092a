#include "core/keyring.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/secure.h"
#include "sha256_internal.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

enum { SEAL_VERSION = 1, NONCE_BYTES = 12, TAG_BYTES = 16, DERIVED_BYTES = 32, HEX_CHARS = 2 * KEYRING_MASTER_BYTES };

_Static_assert(KEYRING_SEAL_OVERHEAD == 1 + NONCE_BYTES + TAG_BYTES, "the overhead is what is written");

/* HKDF's info, which makes the derived keys differ. Part of the stored format: never change one. */
static const char *const LABELS[KEYRING_PURPOSES] = {
    [KEYRING_KEY_DIGEST] = "chatelaine 1 key digest",   [KEYRING_SESSION_DIGEST] = "chatelaine 1 session digest",
    [KEYRING_DEVICE_CODE] = "chatelaine 1 device code", [KEYRING_CSRF] = "chatelaine 1 csrf token",
    [KEYRING_THROTTLE] = "chatelaine 1 throttle tag",   [KEYRING_PASSWORD] = "chatelaine 1 password pepper",
    [KEYRING_RECORD_MAC] = "chatelaine 1 record MAC",   [KEYRING_NAME] = "chatelaine 1 master key name",
    [KEYRING_TICKET] = "chatelaine 1 session ticket",   [KEYRING_AUDIT_LOG] = "chatelaine 1 audit log",
    [KEYRING_RECOVERY] = "chatelaine 1 recovery code",  [KEYRING_LINK] = "chatelaine 1 link code",
    [KEYRING_CANARY] = "chatelaine 1 canary secret",
};
static const char SEAL_LABEL[] = "chatelaine 1 seal";
static const char SIGNATURE_LABEL[] = "chatelaine 1 signature";
/* Constant: the name is an HMAC of it. */
static const struct text NAME_INPUT = {"name", 4};

/* HMAC (RFC 2104) as its two hashes, each begun with the padded key. OpenSSL's EVP_MAC does the same through more
 * layers, which takes a quarter more time on every check. */
struct mac {
    struct sha256_prefix inner, outer;
};

struct generation {
    struct mac macs[KEYRING_PURPOSES];
    EVP_CIPHER_CTX *opener;
    EVP_PKEY *signer;
    char name[KEYRING_NAME_CHARS + 1];
};

struct keyring {
    size_t count;
    struct generation generations[KEYRING_MAX_GENERATIONS];
    EVP_CIPHER_CTX *sealer; /* of the current generation */
};

static void derive(EVP_KDF *kdf, const uint8_t master[KEYRING_MASTER_BYTES], const char *label,
                   uint8_t ret_key[DERIVED_BYTES])
{
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    CHECK(context);
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)master, KEYRING_MASTER_BYTES),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)label, strlen(label)),
        OSSL_PARAM_construct_end(),
    };
    CHECK(EVP_KDF_derive(context, ret_key, DERIVED_BYTES, parameters) == 1);
    EVP_KDF_CTX_free(context);
}

static void begin_hash(struct sha256_prefix *hash, const uint8_t key[DERIVED_BYTES], uint8_t padding)
{
    uint8_t block[SHA256_BLOCK_BYTES];
    memset(block, padding, sizeof block);
    for (size_t i = 0; i < DERIVED_BYTES; i++)
        block[i] ^= key[i];
    sha256_prefix_init(hash, block, sizeof block);
    secure_wipe(block, sizeof block);
}

static EVP_CIPHER_CTX *make_cipher(const EVP_CIPHER *gcm, const uint8_t key[DERIVED_BYTES], int encrypt)
{
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    CHECK(context && EVP_CipherInit_ex2(context, gcm, key, NULL, encrypt, NULL) == 1);
    return context;
}

struct algorithms {
    EVP_KDF *hkdf;
    EVP_CIPHER *gcm;
};

static void fill_generation(struct keyring *keyring, const struct algorithms *with, size_t index,
                            const uint8_t master[KEYRING_MASTER_BYTES])
{
    struct generation *generation = &keyring->generations[index];
    uint8_t key[DERIVED_BYTES];
    for (int purpose = 0; purpose < KEYRING_PURPOSES; purpose++) {
        derive(with->hkdf, master, LABELS[purpose], key);
        begin_hash(&generation->macs[purpose].inner, key, 0x36);
        begin_hash(&generation->macs[purpose].outer, key, 0x5c);
    }
    derive(with->hkdf, master, SEAL_LABEL, key);
    generation->opener = make_cipher(with->gcm, key, 0);
    if (index == 0)
        keyring->sealer = make_cipher(with->gcm, key, 1);
    derive(with->hkdf, master, SIGNATURE_LABEL, key);
    generation->signer = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key, sizeof key);
    CHECK(generation->signer);
    secure_wipe(key, sizeof key);
}

static void name_generation(struct keyring *keyring, size_t index)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    keyring_digest(keyring, KEYRING_NAME, index, NAME_INPUT, digest);
    encode_hex_text(keyring->generations[index].name, KEYRING_NAME_CHARS + 1, digest, sizeof digest);
}

struct keyring *keyring_create(const uint8_t (*masters)[KEYRING_MASTER_BYTES], size_t generations)
{
    CHECK(generations >= 1 && generations <= KEYRING_MAX_GENERATIONS);
    const struct algorithms with = {
        .hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL),
        .gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL),
    };
    CHECK(with.hkdf && with.gcm);
    struct keyring *keyring = mem_alloc(sizeof *keyring);
    keyring->count = generations;
    for (size_t i = 0; i < generations; i++) {
        fill_generation(keyring, &with, i, masters[i]);
        name_generation(keyring, i);
    }
    EVP_CIPHER_free(with.gcm);
    EVP_KDF_free(with.hkdf);
    return keyring;
}

void keyring_destroy(struct keyring *keyring)
{
    if (!keyring)
        return;
    for (size_t i = 0; i < keyring->count; i++) {
        for (int purpose = 0; purpose < KEYRING_PURPOSES; purpose++) {
            sha256_prefix_finish(&keyring->generations[i].macs[purpose].inner);
            sha256_prefix_finish(&keyring->generations[i].macs[purpose].outer);
        }
        EVP_CIPHER_CTX_free(keyring->generations[i].opener);
        EVP_PKEY_free(keyring->generations[i].signer);
    }
    EVP_CIPHER_CTX_free(keyring->sealer);
    secure_wipe(keyring, sizeof *keyring);
    free(keyring);
}

size_t keyring_generations(const struct keyring *keyring)
{
    return keyring->count;
}

struct text keyring_name(const struct keyring *keyring, size_t generation)
{
    CHECK(generation < keyring->count);
    return (struct text){keyring->generations[generation].name, KEYRING_NAME_CHARS};
}

struct text keyring_short_name(const struct keyring *keyring, size_t generation)
{
    return (struct text){keyring_name(keyring, generation).ptr, KEYRING_SHORT_NAME_CHARS};
}

static const struct mac *mac_of(const struct keyring *keyring, enum keyring_purpose purpose, size_t generation)
{
    CHECK(generation < keyring->count && purpose < KEYRING_PURPOSES);
    return &keyring->generations[generation].macs[purpose];
}

void keyring_inner(struct keyring *keyring, enum keyring_purpose purpose, size_t generation, struct text t,
                   uint8_t ret_inner[KEYRING_DIGEST_BYTES])
{
    sha256_prefix_digest(&mac_of(keyring, purpose, generation)->inner, t.ptr, t.len, ret_inner);
}

void keyring_outer(struct keyring *keyring, enum keyring_purpose purpose, size_t generation,
                   const uint8_t inner[KEYRING_DIGEST_BYTES], uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    sha256_prefix_digest(&mac_of(keyring, purpose, generation)->outer, inner, KEYRING_DIGEST_BYTES, ret_digest);
}

void keyring_digest(struct keyring *keyring, enum keyring_purpose purpose, size_t generation, struct text t,
                    uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    keyring_inner(keyring, purpose, generation, t, ret_digest);
    keyring_outer(keyring, purpose, generation, ret_digest, ret_digest);
}

/* Sets the nonce and feeds the additional data; the key stays from make_cipher(). */
static void begin_message(EVP_CIPHER_CTX *context, const uint8_t *nonce, struct text bound_to)
{
    int written;
    CHECK(bound_to.len <= INT32_MAX);
    CHECK(EVP_CipherInit_ex2(context, NULL, NULL, nonce, -1, NULL) == 1);
    CHECK(EVP_CipherUpdate(context, NULL, &written, (const unsigned char *)bound_to.ptr, (int)bound_to.len) == 1);
}

void keyring_seal(struct keyring *keyring, struct text bound_to, const uint8_t *plain, size_t plain_bytes,
                  uint8_t *ret_sealed)
{
    uint8_t *nonce = ret_sealed + 1, *body = nonce + NONCE_BYTES;
    int written;
    CHECK(plain_bytes <= INT32_MAX);
    ret_sealed[0] = SEAL_VERSION;
    random_secret(nonce, NONCE_BYTES);
    begin_message(keyring->sealer, nonce, bound_to);
    CHECK(EVP_CipherUpdate(keyring->sealer, body, &written, plain, (int)plain_bytes) == 1);
    CHECK(EVP_CipherFinal_ex(keyring->sealer, body + plain_bytes, &written) == 1);
    CHECK(EVP_CIPHER_CTX_ctrl(keyring->sealer, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, body + plain_bytes) == 1);
}

/* Any failure here means that the bytes were not sealed with this key and text. ret_plain then holds unverified
 * bytes. */
static bool open_with(EVP_CIPHER_CTX *opener, struct text bound_to, const uint8_t *sealed, size_t plain_bytes,
                      uint8_t *ret_plain)
{
    const uint8_t *nonce = sealed + 1, *body = nonce + NONCE_BYTES;
    uint8_t tag[TAG_BYTES];
    int written;
    memcpy(tag, body + plain_bytes, TAG_BYTES);
    begin_message(opener, nonce, bound_to);
    return EVP_CipherUpdate(opener, ret_plain, &written, body, (int)plain_bytes) == 1 &&
           EVP_CIPHER_CTX_ctrl(opener, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) == 1 &&
           EVP_CipherFinal_ex(opener, ret_plain + plain_bytes, &written) == 1;
}

bool keyring_open(struct keyring *keyring, struct text bound_to, const uint8_t *sealed, size_t sealed_bytes,
                  uint8_t *ret_plain)
{
    size_t generation;
    return keyring_open_by(keyring, bound_to, sealed, sealed_bytes, ret_plain, &generation);
}

bool keyring_open_by(struct keyring *keyring, struct text bound_to, const uint8_t *sealed, size_t sealed_bytes,
                     uint8_t *ret_plain, size_t *ret_generation)
{
    if (sealed_bytes < KEYRING_SEAL_OVERHEAD || sealed_bytes > INT32_MAX || sealed[0] != SEAL_VERSION)
        return false;
    const size_t plain_bytes = sealed_bytes - KEYRING_SEAL_OVERHEAD;
    for (size_t i = 0; i < keyring->count; i++)
        if (open_with(keyring->generations[i].opener, bound_to, sealed, plain_bytes, ret_plain)) {
            *ret_generation = i;
            return true;
        }
    secure_wipe(ret_plain, plain_bytes);
    return false;
}

void keyring_public_key(const struct keyring *keyring, size_t generation, uint8_t ret_key[KEYRING_PUBLIC_KEY_BYTES])
{
    size_t bytes = KEYRING_PUBLIC_KEY_BYTES;
    CHECK(generation < keyring->count);
    CHECK(EVP_PKEY_get_raw_public_key(keyring->generations[generation].signer, ret_key, &bytes) == 1);
    CHECK(bytes == KEYRING_PUBLIC_KEY_BYTES);
}

void keyring_sign(const struct keyring *keyring, struct text t, uint8_t ret_signature[KEYRING_SIGNATURE_BYTES])
{
    size_t bytes = KEYRING_SIGNATURE_BYTES;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    CHECK(context && EVP_DigestSignInit(context, NULL, NULL, NULL, keyring->generations[0].signer) == 1);
    CHECK(EVP_DigestSign(context, ret_signature, &bytes, (const unsigned char *)t.ptr, t.len) == 1);
    CHECK(bytes == KEYRING_SIGNATURE_BYTES);
    EVP_MD_CTX_free(context);
}

static struct text trim_lines(struct text t)
{
    while (t.len && strchr(" \t\r\n", t.ptr[0]) && t.ptr[0])
        t = text_skip(t, 1);
    while (t.len && strchr(" \t\r\n", t.ptr[t.len - 1]) && t.ptr[t.len - 1])
        t.len--;
    return t;
}

bool keyring_parse_master(struct text t, uint8_t ret_master[KEYRING_MASTER_BYTES])
{
    const struct text key = trim_lines(t);
    return key.len == HEX_CHARS ? decode_hex(key, ret_master, KEYRING_MASTER_BYTES)
                                : decode_base64(key, ret_master, KEYRING_MASTER_BYTES);
}
