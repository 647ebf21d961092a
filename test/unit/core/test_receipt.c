#include "core/receipt.h"
#include "base/encode.h"
#include "base/json.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(receipt, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {
    {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
     16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
    {0xaa, 0xbb},
};

#define ID "key_01jd8x5pk4n1h7g9e2d6f8s3tv"
#define EVENT "evt_01jd8x5pk4n1h7g9e2d6f8s3tv"
static const struct receipt RECEIPT = {
    .issuer = {"https://console.test", 20},
    .key = {ID, sizeof ID - 1},
    .store = {"00112233445566778899aabbccddeeff", 32},
    .event = {EVENT, sizeof EVENT - 1},
    .revoked_ms = 1700000000123,
    .effective_ms = 1700000000130,
    .nodes = 3,
    .waited_for = 1,
    .issued_s = 1700000100,
};

static struct keyring *ring;
static struct receipt_keys keys;
static char jws[RECEIPT_MAX_BYTES];

static size_t sign(const struct receipt *receipt)
{
    struct buf out;

    buf_init_fixed(&out, jws, sizeof jws);
    receipt_sign(receipt, ring, &out);
    cr_assert_not(out.failed);
    return out.len;
}

static void begin(void)
{
    ring = keyring_create(MASTERS, 2);
    receipt_keys_of(ring, &keys);
}

static void end(void)
{
    keyring_destroy(ring);
    leak_guard();
}

static bool is_accepted(struct text t, const char **ret_why)
{
    struct receipt receipt;
    struct json *claims = receipt_verify(t, &keys, &receipt, ret_why);

    json_free(claims);
    return claims;
}

static void expect_refused(struct text t, const char *why_part)
{
    const char *why = NULL;

    cr_expect_not(is_accepted(t, &why), "%.*s", TEXT_ARG(t));
    cr_expect(why && strstr(why, why_part), "%.*s: %s", TEXT_ARG(t), why ? why : "-");
}

/* A JWS of this header, with the kid in place of "%s", and these claims, with a right signature. */
static struct text forge(const char *header, const char *claims)
{
    uint8_t signature[KEYRING_SIGNATURE_BYTES];
    const char *place = strstr(header, "%s");
    char storage[256];
    struct buf whole, out;

    buf_init_fixed(&whole, storage, sizeof storage);
    buf_append(&whole, header, (size_t)(place - header));
    buf_append_str(&whole, keys.of[0].kid);
    buf_append_str(&whole, place + 2);
    cr_assert_not(whole.failed);
    buf_init_fixed(&out, jws, sizeof jws);
    encode_base64url(&out, whole.ptr, whole.len);
    buf_append_char(&out, '.');
    encode_base64url(&out, claims, strlen(claims));
    keyring_sign(ring, buf_text(&out), signature);
    buf_append_char(&out, '.');
    encode_base64url(&out, signature, sizeof signature);
    cr_assert_not(out.failed);
    return buf_text(&out);
}

/* RFC 8037 appendix A.4, and the thumbprint of A.3. */
Test(receipt, signature_of_the_rfc)
{
    static const char SET[] = "{\"keys\":[{\"kty\":\"RSA\"},{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
                              "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
    const struct text SIGNED = TEXT("eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
    const struct text SIGNATURE =
        TEXT("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg");
    uint8_t signature[KEYRING_SIGNATURE_BYTES];
    const char *why;

    cr_assert(receipt_keys_read(text_of(SET), &keys, &why), "%s", why);
    cr_assert_eq(keys.count, 1);
    cr_expect_str_eq(keys.of[0].kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    cr_assert(decode_base64url(SIGNATURE, signature, sizeof signature));
    cr_expect(receipt_signature_is_valid(keys.of[0].bytes, SIGNED, signature));
    signature[63] ^= 0x10;
    cr_expect_not(receipt_signature_is_valid(keys.of[0].bytes, SIGNED, signature));
}

/* Computed by another program from RFC 5869 and RFC 8032: receipts depend on it, so it must never change. */
Test(receipt, key_of_a_master_key, .init = begin, .fini = end)
{
    static const char PUBLIC_KEY[] = "8a5e92d1cd17c487f4b2c717f0c32b8433d13eac633eb73a58738118f4e88d72";
    uint8_t expected[KEYRING_PUBLIC_KEY_BYTES];

    cr_assert(decode_hex(text_of(PUBLIC_KEY), expected, sizeof expected));
    cr_expect_arr_eq(keys.of[0].bytes, expected, sizeof expected);
    cr_assert_eq(keys.count, 2);
    cr_expect_str_neq(keys.of[0].kid, keys.of[1].kid);
}

Test(receipt, says_what_was_signed, .init = begin, .fini = end)
{
    struct text t = {jws, sign(&RECEIPT)};
    struct receipt read;
    const char *why = NULL;
    struct json *claims = receipt_verify(t, &keys, &read, &why);

    cr_assert(claims, "%s", why);
    cr_expect(text_equal(read.issuer, RECEIPT.issuer) && text_equal(read.key, RECEIPT.key) &&
              text_equal(read.store, RECEIPT.store) && text_equal(read.event, RECEIPT.event));
    cr_expect_eq(read.revoked_ms, RECEIPT.revoked_ms);
    cr_expect_eq(read.effective_ms, RECEIPT.effective_ms);
    cr_expect_eq(read.nodes, 3);
    cr_expect_eq(read.waited_for, 1);
    cr_expect_eq(read.issued_s, RECEIPT.issued_s);
    json_free(claims);
}

Test(receipt, an_unknown_event_is_null, .init = begin, .fini = end)
{
    struct receipt receipt = RECEIPT, read;
    const char *why;

    receipt.event = (struct text){0};
    struct text t = {jws, sign(&receipt)};
    struct json *claims = receipt_verify(t, &keys, &read, &why);
    cr_assert(claims, "%s", why);
    cr_expect_eq(json_type(json_member(claims, "event")), JSON_NULL);
    cr_expect_eq(read.event.len, 0);
    json_free(claims);
}

Test(receipt, any_changed_bit_is_noticed, .init = begin, .fini = end)
{
    size_t length = sign(&RECEIPT);
    const char *why;

    cr_assert(is_accepted((struct text){jws, length}, &why), "%s", why);
    for (size_t at = 0; at < length; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            jws[at] = (char)(jws[at] ^ (1 << bit));
            cr_expect_not(is_accepted((struct text){jws, length}, &why), "bit %u of byte %zu", bit, at);
            jws[at] = (char)(jws[at] ^ (1 << bit));
        }
    for (size_t less = 0; less < length; less++)
        cr_expect_not(is_accepted((struct text){jws, less}, &why), "the first %zu bytes", less);
    jws[length] = 'A';
    cr_expect_not(is_accepted((struct text){jws, length + 1}, &why));
    jws[length] = '.';
    cr_expect_not(is_accepted((struct text){jws, length + 1}, &why));
}

#define HEADER "{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\"}"
#define CLAIMS(sub, effective, nodes)                                                                           \
    "{\"iss\":\"https://a.test\",\"sub\":" sub ",\"store\":\"00\",\"revoked_at\":\"2026-01-31T12:00:00.000Z\"," \
    "\"effective_at\":" effective ",\"nodes\":" nodes ",\"waited_for\":0,\"event\":null,\"iat\":1}"
#define GOOD CLAIMS("\"key_1\"", "\"2026-01-31T12:00:00.000Z\"", "1")

Test(receipt, a_well_signed_document_must_be_a_receipt, .init = begin, .fini = end)
{
    static const struct {
        const char *header, *claims, *why;
    } CASES[] = {
        {"{\"alg\":\"none\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\"}", GOOD, "EdDSA"},
        {"{\"alg\":\"HS256\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\"}", GOOD, "EdDSA"},
        {"{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"JWT\"}", GOOD, "header"},
        {"{\"alg\":\"EdDSA\",\"kid\":\"%s\"}", GOOD, "header"},
        {"{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\",\"crit\":[\"b64\"],\"b64\":false}", GOOD,
         "header"},
        {"{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\",\"jwk\":{}}", GOOD, "header"},
        {"{\"alg\":\"none\",\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"revocation+jwt\"}", GOOD, ""},
        {"{\"alg\":\"EdDSA\",\"kid\":\"%s.\",\"typ\":\"revocation+jwt\"}", GOOD, "kid"},
        {"[\"%s\"]", GOOD, ""},
        {HEADER, "{}", "claims"},
        {HEADER, "[]", ""},
        {HEADER, CLAIMS("7", "\"2026-01-31T12:00:00.000Z\"", "1"), "claims"},
        {HEADER, CLAIMS("\"key_1\"", "\"yesterday\"", "1"), "claims"},
        {HEADER, CLAIMS("\"key_1\"", "\"2026-01-31T12:00:00.000Z\"", "-1"), "claims"},
        {HEADER, CLAIMS("\"key_1\"", "\"2026-01-31T12:00:00.000Z\"", "1.5"), "claims"},
    };
    const char *why = NULL;

    cr_assert(is_accepted(forge(HEADER, GOOD), &why), "%s", why);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_refused(forge(CASES[i].header, CASES[i].claims), CASES[i].why);
}

/* Retired master keys still verify; one that was given up does not. */
Test(receipt, outlives_a_rotation, .init = begin, .fini = end)
{
    static uint8_t rotated[2][KEYRING_MASTER_BYTES];
    struct text t = {jws, sign(&RECEIPT)};
    const char *why = NULL;

    memcpy(rotated[0], MASTERS[1], KEYRING_MASTER_BYTES);
    memcpy(rotated[1], MASTERS[0], KEYRING_MASTER_BYTES);
    struct keyring *later = keyring_create(rotated, 2), *without = keyring_create(rotated, 1);
    receipt_keys_of(later, &keys);
    cr_expect(is_accepted(t, &why), "%s", why);
    receipt_keys_of(without, &keys);
    expect_refused(t, "kid");
    keyring_destroy(without);
    keyring_destroy(later);
}

Test(receipt, the_set_of_keys_reads_back, .init = begin, .fini = end)
{
    struct receipt_keys read;
    const char *why = NULL;
    struct buf out;

    buf_init(&out, RECEIPT_JWKS_MAX_BYTES);
    receipt_keys_print(&keys, &out);
    cr_assert(receipt_keys_read(buf_text(&out), &read, &why), "%s", why);
    cr_assert_eq(read.count, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_str_eq(read.of[i].kid, keys.of[i].kid);
        cr_expect_arr_eq(read.of[i].bytes, keys.of[i].bytes, KEYRING_PUBLIC_KEY_BYTES);
    }
    buf_finish(&out);
}

Test(receipt, wrong_sets_of_keys)
{
    static const char *const WRONG[] = {
        "",
        "[]",
        "{}",
        "{\"keys\":{}}",
        "{\"keys\":[]}",
        "{\"keys\":[7,{\"kty\":\"RSA\"},{\"kty\":\"OKP\",\"crv\":\"X25519\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}]}",
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AA\"}]}",
    };
    const char *why = NULL;

    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        cr_expect_not(receipt_keys_read(text_of(WRONG[i]), &keys, &why), "%s", WRONG[i]);
        cr_expect(why && why[0], "%s", WRONG[i]);
    }
}
