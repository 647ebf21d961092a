#include "core/record_mac.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(record_mac, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{2}, {1}};

static enum record_seal judge(struct keyring *keyring, enum record_kind kind, struct text a, struct text b,
                              struct text mac, size_t *ret_generation)
{
    const struct text parts[] = {a, b};
    const struct record_parts record = {kind, 2, parts};
    return record_mac_verify(keyring, &record, mac, ret_generation);
}

Test(record_mac, binds_kind_parts_and_where_they_part)
{
    const struct text parts[] = {TEXT("ab"), TEXT("c")};
    const struct record_parts record = {RECORD_KEY, 2, parts};
    struct keyring *keyring = keyring_create(MASTERS, 1);
    struct record_mac mac;
    record_mac_make(keyring, &record, &mac);
    const struct text text = text_of(mac.text);
    cr_assert_eq(text.len, RECORD_MAC_CHARS);
    cr_expect_eq(judge(keyring, RECORD_KEY, TEXT("ab"), TEXT("c"), text, NULL), RECORD_SEALED);
    cr_expect_eq(judge(keyring, RECORD_USER, TEXT("ab"), TEXT("c"), text, NULL), RECORD_ALTERED);
    cr_expect_eq(judge(keyring, RECORD_KEY, TEXT("a"), TEXT("bc"), text, NULL), RECORD_ALTERED);
    cr_expect_eq(judge(keyring, RECORD_KEY, TEXT("abc"), TEXT(""), text, NULL), RECORD_ALTERED);
    cr_expect_eq(judge(keyring, RECORD_KEY, TEXT("ab"), TEXT("c"), (struct text){text.ptr, text.len - 1}, NULL),
                 RECORD_ALTERED);
    cr_expect_eq(judge(keyring, RECORD_KEY, TEXT("ab"), TEXT("c"), TEXT(""), NULL), RECORD_UNSEALED);
    keyring_destroy(keyring);
}

Test(record_mac, tells_which_master_key_made_it)
{
    const struct text parts[] = {TEXT("a"), TEXT("b")};
    const struct record_parts record = {RECORD_KEY, 2, parts};
    struct keyring *old = keyring_create(MASTERS + 1, 1), *both = keyring_create(MASTERS, 2);
    struct record_mac mac;
    size_t generation = 7;
    record_mac_make(old, &record, &mac);
    cr_expect_eq(judge(both, RECORD_KEY, TEXT("a"), TEXT("b"), text_of(mac.text), &generation), RECORD_SEALED);
    cr_expect_eq(generation, 1);
    record_mac_make(both, &record, &mac);
    cr_expect_eq(judge(both, RECORD_KEY, TEXT("a"), TEXT("b"), text_of(mac.text), &generation), RECORD_SEALED);
    cr_expect_eq(generation, 0);
    cr_expect_eq(judge(old, RECORD_KEY, TEXT("a"), TEXT("b"), text_of(mac.text), &generation), RECORD_ALTERED);
    keyring_destroy(old);
    keyring_destroy(both);
}

Test(record_mac, what_is_too_long_was_not_written_here)
{
    static char long_part[RECORD_PARTS_MAX_BYTES];
    struct keyring *keyring = keyring_create(MASTERS, 1);
    memset(long_part, 'a', sizeof long_part);
    cr_expect_eq(judge(keyring, RECORD_KEY, (struct text){long_part, sizeof long_part}, TEXT(""),
                       TEXT("AAAAAAAAAAAAAAAAAAAAAA"), NULL),
                 RECORD_ALTERED);
    keyring_destroy(keyring);
}
