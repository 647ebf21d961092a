/* What the reader computes by itself: hashes, ids, scopes. */
#include "base/random.h"
#include "chatelaine/check.h"
#include "core/id.h"
#include "core/scope.h"
#include "leak_guard.h"
#include <criterion/criterion.h>
#include <endian.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>

TestSuite(check_values, .fini = leak_guard);

enum { HASH_BYTES = 16, RANDOM_IDS = 10000 };

static void hash_by_openssl(const uint64_t key[2], const uint8_t *bytes, size_t count, uint64_t ret_hash[2])
{
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
    EVP_MAC_CTX *context = EVP_MAC_CTX_new(mac);
    size_t size = HASH_BYTES;
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size), OSSL_PARAM_construct_end()};
    uint64_t key_bytes[2] = {htole64(key[0]), htole64(key[1])};

    cr_assert_eq(EVP_MAC_init(context, (const unsigned char *)key_bytes, sizeof key_bytes, parameters), 1);
    cr_assert_eq(EVP_MAC_update(context, bytes, count), 1);
    cr_assert_eq(EVP_MAC_final(context, (unsigned char *)ret_hash, &size, HASH_BYTES), 1);
    cr_assert_eq(size, HASH_BYTES);
    ret_hash[0] = le64toh(ret_hash[0]);
    ret_hash[1] = le64toh(ret_hash[1]);
    EVP_MAC_CTX_free(context);
    EVP_MAC_free(mac);
}

Test(check_values, hashes_are_those_of_openssl)
{
    uint8_t bytes[CHATELAINE_SECRET_MAX];
    uint64_t key[2], hash[2], expected[2];

    for (size_t count = 0; count <= sizeof bytes; count++) {
        random_public(bytes, sizeof bytes);
        random_public(key, sizeof key);
        chatelaine_hash(key, (const char *)bytes, count, hash);
        hash_by_openssl(key, bytes, count, expected);
        cr_assert(hash[0] == expected[0] && hash[1] == expected[1], "%zu bytes", count);
    }
}

static void assert_prints_as_core_does(const uint8_t ulid[ULID_BYTES])
{
    static const struct {
        const char *prefix;
        enum id_kind kind;
    } KINDS[] = {{"acct_", ID_ACCOUNT}, {"key_", ID_KEY}, {"dev_", ID_DEVICE}};
    uint64_t halves[2];
    char printed[32];
    struct id id;

    memcpy(halves, ulid, sizeof halves);
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        id_from_bytes(KINDS[i].kind, ulid, &id);
        chatelaine_print_id(KINDS[i].prefix, be64toh(halves[0]), be64toh(halves[1]), printed);
        cr_assert_str_eq(printed, id.text);
    }
}

Test(check_values, ids_print_as_those_of_the_node)
{
    uint8_t ulid[ULID_BYTES] = {0};

    assert_prints_as_core_does(ulid);
    for (size_t i = 0; i < 8 * sizeof ulid; i++) { /* each bit alone, so that none is lost between two digits */
        memset(ulid, 0, sizeof ulid);
        ulid[i / 8] = (uint8_t)(1 << i % 8);
        assert_prints_as_core_does(ulid);
    }
    for (int i = 0; i < RANDOM_IDS; i++) {
        random_public(ulid, sizeof ulid);
        assert_prints_as_core_does(ulid);
    }
    memset(ulid, 0xff, sizeof ulid);
    assert_prints_as_core_does(ulid);
}

Test(check_values, scopes_are_those_of_the_node)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } SCOPES[] = {
        {CHATELAINE_EXCHANGES_READ, "exchanges:read"},   {CHATELAINE_EXCHANGES_WRITE, "exchanges:write"},
        {CHATELAINE_PATIENTS_READ, "patients:read"},     {CHATELAINE_PATIENTS_WRITE, "patients:write"},
        {CHATELAINE_WEBHOOKS_MANAGE, "webhooks:manage"}, {CHATELAINE_KEYS_MANAGE, "keys:manage"},
        {CHATELAINE_AUDIT_READ, "audit:read"},           {CHATELAINE_TEAM_MANAGE, "team:manage"},
        {CHATELAINE_ORG_MANAGE, "org:manage"},           {CHATELAINE_USAGE_READ, "usage:read"},
        {CHATELAINE_DOCUMENTS_WRITE, "documents:write"}, {CHATELAINE_SANDBOX_MANAGE, "sandbox:manage"},
    };

    cr_assert_eq(sizeof SCOPES / sizeof SCOPES[0], SCOPE_COUNT);
    for (size_t i = 0; i < SCOPE_COUNT; i++)
        cr_assert_eq(SCOPES[i].bit, scope_parse(text_of(SCOPES[i].name)), "%s", SCOPES[i].name);
    cr_assert_leq(SCOPE_COUNT, 16, "an entry has room for 16 scopes");
}
