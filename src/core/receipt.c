#include "core/receipt.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/mem.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdlib.h>

/* Says what the claims are, so that no other JWT of an issuer passes as a receipt (RFC 8725 section 3.11). */
static const struct text TYPE = {"revocation+jwt", 14};

/* Keys */

/* RFC 7638: the required members in the order of their names, without white space (RFC 8037 section 2). */
static void name_key(struct receipt_key *key)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    struct buf out = BUF_FIXED(128);

    buf_append_str(&out, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"");
    encode_base64url(&out, key->bytes, sizeof key->bytes);
    buf_append_str(&out, "\"}");
    CHECK(!out.failed && SHA256((const unsigned char *)out.ptr, out.len, digest));
    encode_base64url_text(key->kid, sizeof key->kid, digest, sizeof digest);
}

void receipt_keys_of(const struct keyring *keyring, struct receipt_keys *ret_keys)
{
    _Static_assert((int)KEYRING_MAX_GENERATIONS <= (int)RECEIPT_KEYS_MAX, "each master key has a public key");
    ret_keys->count = keyring_generations(keyring);
    for (size_t i = 0; i < ret_keys->count; i++) {
        keyring_public_key(keyring, i, ret_keys->of[i].bytes);
        name_key(&ret_keys->of[i]);
    }
}

static void put_key(struct json_writer *w, const struct receipt_key *key)
{
    char x[64];

    encode_base64url_text(x, sizeof x, key->bytes, sizeof key->bytes);
    json_object_begin(w);
    JSON_PUT_WORD(w, "kty", TEXT("OKP"));
    JSON_PUT_WORD(w, "crv", TEXT("Ed25519"));
    JSON_PUT_WORD(w, "alg", TEXT("EdDSA"));
    JSON_PUT_WORD(w, "use", TEXT("sig"));
    JSON_PUT_WORD(w, "kid", text_of(key->kid));
    JSON_PUT_WORD(w, "x", text_of(x));
    json_object_end(w);
}

void receipt_keys_print(const struct receipt_keys *keys, struct buf *out)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_key(&w, "keys");
    json_array_begin(&w);
    for (size_t i = 0; i < keys->count; i++)
        put_key(&w, &keys->of[i]);
    json_array_end(&w);
    json_object_end(&w);
}

/* The text of a member; false unless it is there and a string. */
static bool member_text(const struct json *object, const char *name, struct text *ret_text)
{
    const struct json *value = json_member(object, name);

    if (!value || json_type(value) != JSON_STRING)
        return false;
    *ret_text = json_text(value);
    return true;
}

static bool member_is(const struct json *object, const char *name, struct text expected)
{
    struct text value;

    return member_text(object, name, &value) && text_equal(value, expected);
}

static bool read_keys(const struct json *set, struct receipt_keys *ret_keys, const char **ret_why)
{
    const struct json *keys = json_member(set, "keys");
    struct text x;

    *ret_why = "the set has no array \"keys\"";
    if (!keys || json_type(keys) != JSON_ARRAY)
        return false;
    ret_keys->count = 0;
    for (const struct json *key = json_first(keys); key; key = json_next(key)) {
        struct receipt_key *into = &ret_keys->of[ret_keys->count];

        if (json_type(key) != JSON_OBJECT || !member_is(key, "kty", TEXT("OKP")) ||
            !member_is(key, "crv", TEXT("Ed25519")))
            continue;
        *ret_why = "the set has too many keys";
        if (ret_keys->count == RECEIPT_KEYS_MAX)
            return false;
        *ret_why = "an Ed25519 key of the set is malformed";
        if (!member_text(key, "x", &x) || !decode_base64url(x, into->bytes, sizeof into->bytes))
            return false;
        name_key(into); /* by its bytes, so a wrong kid in the file misleads nobody */
        ret_keys->count++;
    }
    *ret_why = "the set has no Ed25519 key";
    return ret_keys->count > 0;
}

bool receipt_keys_read(struct text t, struct receipt_keys *ret_keys, const char **ret_why)
{
    struct json *set = json_parse_object(t, ret_why);
    bool is_read = set && read_keys(set, ret_keys, ret_why);

    json_free(set);
    return is_read;
}

/* Signing */

static void put_time(struct json_writer *w, const char *name, int64_t ms)
{
    char printed[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(ms, printed);
    json_put_member(w, name, text_of(printed));
}

static void put_claims(const struct receipt *receipt, struct buf *out)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_put_member(&w, "iss", receipt->issuer);
    json_put_member(&w, "sub", receipt->key);
    json_put_member(&w, "store", receipt->store);
    put_time(&w, "revoked_at", receipt->revoked_ms);
    put_time(&w, "effective_at", receipt->effective_ms);
    json_put_number(&w, "nodes", receipt->nodes);
    json_put_number(&w, "waited_for", receipt->waited_for);
    if (receipt->event.len > 0) {
        json_put_member(&w, "event", receipt->event);
    } else {
        json_key(&w, "event");
        json_put_null(&w);
    }
    json_put_number(&w, "iat", receipt->issued_s);
    json_object_end(&w);
}

static void put_header(const char *kid, struct text type, struct buf *out)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    JSON_PUT_WORD(&w, "alg", TEXT("EdDSA"));
    JSON_PUT_WORD(&w, "kid", text_of(kid));
    JSON_PUT_WORD(&w, "typ", type);
    json_object_end(&w);
}

void receipt_sign_claims(struct text type, struct text claims, const struct keyring *keyring, struct buf *out)
{
    uint8_t signature[KEYRING_SIGNATURE_BYTES];
    struct receipt_key key;
    struct buf header = BUF_FIXED(256);
    size_t began = out->len;

    keyring_public_key(keyring, 0, key.bytes);
    name_key(&key);
    put_header(key.kid, type, &header);
    CHECK(!header.failed);
    encode_base64url(out, header.ptr, header.len);
    buf_append_char(out, '.');
    encode_base64url(out, claims.ptr, claims.len);
    if (out->failed)
        return;
    keyring_sign(keyring, text_skip(buf_text(out), began), signature);
    buf_append_char(out, '.');
    encode_base64url(out, signature, sizeof signature);
}

void receipt_sign(const struct receipt *receipt, const struct keyring *keyring, struct buf *out)
{
    struct buf claims = BUF_FIXED(RECEIPT_MAX_BYTES);

    put_claims(receipt, &claims);
    CHECK(!claims.failed);
    receipt_sign_claims(TYPE, buf_text(&claims), keyring, out);
}

/* Verifying */

bool receipt_signature_is_valid(const uint8_t key[KEYRING_PUBLIC_KEY_BYTES], struct text t,
                                const uint8_t signature[KEYRING_SIGNATURE_BYTES])
{
    EVP_PKEY *verifier = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, KEYRING_PUBLIC_KEY_BYTES);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_valid;

    CHECK(context);
    is_valid = verifier && EVP_DigestVerifyInit(context, NULL, NULL, NULL, verifier) == 1 &&
               EVP_DigestVerify(context, signature, KEYRING_SIGNATURE_BYTES, (const unsigned char *)t.ptr, t.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(verifier);
    return is_valid;
}

/* A part of the JWS as the JSON object that it encodes. */
static struct json *read_part(struct text part, const char **ret_why)
{
    size_t count = part.len / 4 * 3 + (part.len % 4 * 3) / 4;
    uint8_t *bytes = mem_alloc(count + 1);
    struct json *document = NULL;

    *ret_why = "a part of it is not base64url without padding";
    if (part.len % 4 != 1 && decode_base64url(part, bytes, count))
        document = json_parse_object((struct text){(const char *)bytes, count}, ret_why);
    free(bytes);
    return document;
}

struct header {
    struct text alg, kid, type;
};

static const struct json_field HEADER[] = {
    {"alg", JSON_FIELD_TEXT, true, offsetof(struct header, alg)},
    {"kid", JSON_FIELD_TEXT, true, offsetof(struct header, kid)},
    {"typ", JSON_FIELD_TEXT, true, offsetof(struct header, type)},
};

static const struct receipt_key *key_of_header(const struct json *document, struct text type,
                                               const struct receipt_keys *keys, const char **ret_why)
{
    struct header header;
    struct text name;

    *ret_why = text_equal(type, TYPE) ? "its header is not that of a receipt" : "its header is not that of such a JWS";
    if (json_read(document, HEADER, sizeof HEADER / sizeof *HEADER, &header, &name) != JSON_READ_OK ||
        !text_equal(header.type, type))
        return NULL;
    *ret_why = "its algorithm is not EdDSA";
    if (!text_equal(header.alg, TEXT("EdDSA")))
        return NULL;
    *ret_why = "no known key has its kid: it was signed with another master key";
    for (size_t i = 0; i < keys->count; i++)
        if (text_equal(header.kid, text_of(keys->of[i].kid)))
            return &keys->of[i];
    return NULL;
}

static const struct receipt_key *find_key(struct text part, struct text type, const struct receipt_keys *keys,
                                          const char **ret_why)
{
    struct json *document = read_part(part, ret_why);
    const struct receipt_key *key = document ? key_of_header(document, type, keys, ret_why) : NULL;

    json_free(document);
    return key;
}

static bool member_time(const struct json *object, const char *name, int64_t *ret_ms)
{
    struct text printed;

    return member_text(object, name, &printed) && clock_read_rfc3339(printed, ret_ms);
}

static bool member_count(const struct json *object, const char *name, int64_t *ret_count)
{
    const struct json *value = json_member(object, name);

    return value && json_type(value) == JSON_NUMBER && json_integer(value, ret_count) && *ret_count >= 0;
}

static bool member_event(const struct json *object, struct text *ret_event)
{
    const struct json *value = json_member(object, "event");

    *ret_event = (struct text){0};
    return value && (json_type(value) == JSON_NULL || member_text(object, "event", ret_event));
}

static bool read_claims(const struct json *claims, struct receipt *ret_receipt)
{
    return member_text(claims, "iss", &ret_receipt->issuer) && member_text(claims, "sub", &ret_receipt->key) &&
           member_text(claims, "store", &ret_receipt->store) && member_event(claims, &ret_receipt->event) &&
           member_time(claims, "revoked_at", &ret_receipt->revoked_ms) &&
           member_time(claims, "effective_at", &ret_receipt->effective_ms) &&
           member_count(claims, "nodes", &ret_receipt->nodes) &&
           member_count(claims, "waited_for", &ret_receipt->waited_for) &&
           member_count(claims, "iat", &ret_receipt->issued_s);
}

struct json *receipt_verify_claims(struct text jws, struct text type, size_t max_bytes, const struct receipt_keys *keys,
                                   const char **ret_why)
{
    struct text rest = jws, parts[3] = {{0}}, more;
    uint8_t signature[KEYRING_SIGNATURE_BYTES];

    *ret_why = "it is not a JWS in compact form: three parts with full stops between them";
    for (size_t i = 0; i < 3; i++)
        if (!text_next(&rest, '.', &parts[i]))
            return NULL;
    if (text_next(&rest, '.', &more) || jws.len > max_bytes)
        return NULL;
    const struct receipt_key *key = find_key(parts[0], type, keys, ret_why);
    if (!key)
        return NULL;
    *ret_why = "its signature is wrong: it was changed, or not signed with this key";
    if (!decode_base64url(parts[2], signature, sizeof signature) ||
        !receipt_signature_is_valid(key->bytes, (struct text){jws.ptr, parts[0].len + 1 + parts[1].len}, signature))
        return NULL;
    return read_part(parts[1], ret_why);
}

struct json *receipt_verify(struct text jws, const struct receipt_keys *keys, struct receipt *ret_receipt,
                            const char **ret_why)
{
    struct json *claims = receipt_verify_claims(jws, TYPE, RECEIPT_MAX_BYTES, keys, ret_why);

    if (claims && !read_claims(claims, ret_receipt)) {
        *ret_why = "its claims are not those of a receipt";
        json_free(claims);
        return NULL;
    }
    return claims;
}
