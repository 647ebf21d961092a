#include "core/audit_signed.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

enum { SALT_BYTES = 16 };

static const struct text TYPE = {"audit-heads+jwt", 15};

void audit_digest_of(struct text salt, struct text chain, uint64_t seq, const char *mac, audit_digest ret_digest)
{
    struct buf out = BUF_FIXED(128);

    buf_printf(&out, "%.*s.%.*s.%" PRIu64 ".%.*s", TEXT_ARG(salt), TEXT_ARG(chain), seq, AUDIT_MAC_PART_CHARS, mac);
    CHECK(!out.failed && SHA256((const unsigned char *)out.ptr, out.len, ret_digest));
}

int audit_digest_compare(const void *left, const void *right)
{
    return memcmp(left, right, AUDIT_DIGEST_BYTES);
}

/* Signing */

static void put_digest(struct json_writer *w, const audit_digest digest)
{
    char text[64];

    encode_base64url_text(text, sizeof text, digest, AUDIT_DIGEST_BYTES);
    json_put_text(w, text_of(text));
}

/* In the order of the digests, which says nothing of that of the chains. */
static void put_heads(const struct audit_signing *signing, struct text salt, struct json_writer *w)
{
    audit_digest *digests = mem_alloc((signing->count + 1) * sizeof *digests);

    for (size_t i = 0; i < signing->count; i++) {
        const struct audit_head *head = &signing->heads[i];

        audit_digest_of(salt, text_of(head->chain), head->seq, head->mac, digests[i]);
    }
    qsort(digests, signing->count, sizeof *digests, audit_digest_compare);
    json_array_begin(w);
    for (size_t i = 0; i < signing->count; i++)
        put_digest(w, digests[i]);
    json_array_end(w);
    free(digests);
}

static void put_claims(const struct audit_signing *signing, struct buf *out)
{
    uint8_t bytes[SALT_BYTES];
    char salt[AUDIT_SALT_CHARS + 1];
    struct json_writer w = {.out = out};

    random_secret(bytes, sizeof bytes);
    encode_base64url_text(salt, sizeof salt, bytes, sizeof bytes);
    json_object_begin(&w);
    json_put_member(&w, "iss", signing->issuer);
    json_put_member(&w, "store", signing->store);
    json_put_member(&w, "jti", text_of(salt));
    json_key(&w, "heads");
    put_heads(signing, text_of(salt), &w);
    json_put_number(&w, "iat", signing->issued_s);
    json_object_end(&w);
}

void audit_signed_print(const struct audit_signing *signing, const struct keyring *keyring, struct buf *out)
{
    struct buf claims CLEANUP(buf_finish);

    CHECK(signing->count <= AUDIT_SIGNED_HEADS_MAX);
    buf_init(&claims, AUDIT_SIGNED_MAX_BYTES);
    put_claims(signing, &claims);
    CHECK(!claims.failed);
    receipt_sign_claims(TYPE, buf_text(&claims), keyring, out);
}

/* Reading */

static bool read_digests(const struct json *heads, struct audit_signed *signed_heads)
{
    for (const struct json *head = json_first(heads); head; head = json_next(head)) {
        if (signed_heads->count == AUDIT_SIGNED_HEADS_MAX || json_type(head) != JSON_STRING ||
            !decode_base64url(json_text(head), signed_heads->digests[signed_heads->count], AUDIT_DIGEST_BYTES))
            return false;
        signed_heads->count++;
    }
    qsort(signed_heads->digests, signed_heads->count, sizeof *signed_heads->digests, audit_digest_compare);
    return true;
}

static bool read_claims(const struct json *claims, struct audit_signed *signed_heads)
{
    const struct json *salt = json_member(claims, "jti"), *heads = json_member(claims, "heads");
    const struct json *issued = json_member(claims, "iat");

    if (!salt || json_type(salt) != JSON_STRING || json_text(salt).len != AUDIT_SALT_CHARS || !heads ||
        json_type(heads) != JSON_ARRAY || !issued || json_type(issued) != JSON_NUMBER ||
        !json_integer(issued, &signed_heads->issued_s))
        return false;
    memcpy(signed_heads->salt, json_text(salt).ptr, AUDIT_SALT_CHARS);
    return read_digests(heads, signed_heads);
}

bool audit_signed_read(struct text jws, const struct receipt_keys *keys, struct audit_signed *ret_signed,
                       const char **ret_why)
{
    struct json *claims = receipt_verify_claims(jws, TYPE, AUDIT_SIGNED_MAX_BYTES, keys, ret_why);

    if (!claims)
        return false;
    *ret_signed = (struct audit_signed){.digests = mem_alloc(AUDIT_SIGNED_HEADS_MAX * sizeof(audit_digest))};
    bool is_read = read_claims(claims, ret_signed);
    json_free(claims);
    if (is_read)
        return true;
    *ret_why = "its claims are not those of signed heads";
    free(ret_signed->digests);
    return false;
}
