/* Receipts of revocations and JWK sets. The input's first line is a JWS; the rest is a set. Nobody without the key
 * makes a receipt that is accepted, and a set that is read prints to itself. */
#include "base/check.h"
#include "base/json.h"
#include "core/receipt.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const uint8_t MASTERS[1][KEYRING_MASTER_BYTES] = {{1}};

/* The corpus has one receipt that was signed with this key, and only that one may pass. */
static void try_receipt(const struct keyring *keyring, struct text jws)
{
    struct receipt_keys keys;
    struct receipt receipt;
    const char *why = NULL;
    struct buf again;

    receipt_keys_of(keyring, &keys);
    struct json *claims = receipt_verify(jws, &keys, &receipt, &why);
    if (!claims) {
        CHECK(why);
        return;
    }
    buf_init(&again, RECEIPT_MAX_BYTES);
    receipt_sign(&receipt, keyring, &again);
    CHECK(text_equal(buf_text(&again), jws));
    buf_finish(&again);
    json_free(claims);
}

static void try_keys(struct text t)
{
    struct receipt_keys keys, again;
    const char *why = NULL;
    struct buf out;

    if (!receipt_keys_read(t, &keys, &why)) {
        CHECK(why);
        return;
    }
    buf_init(&out, RECEIPT_JWKS_MAX_BYTES);
    receipt_keys_print(&keys, &out);
    CHECK(!out.failed && receipt_keys_read(buf_text(&out), &again, &why) && again.count == keys.count);
    for (size_t i = 0; i < keys.count; i++)
        CHECK(strcmp(keys.of[i].kid, again.of[i].kid) == 0);
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct keyring *keyring = keyring_create(MASTERS, 1);
    struct text rest = {(const char *)bytes, count}, jws;

    if (text_next(&rest, '\n', &jws)) {
        try_receipt(keyring, jws);
        try_keys(rest);
    }
    keyring_destroy(keyring);
    return 0;
}
