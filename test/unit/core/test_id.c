#include "core/id.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(id, .fini = leak_guard);

Test(id, mints_each_kind_under_its_prefix)
{
    static const struct {
        enum id_kind kind;
        const char *prefix;
    } CASES[] = {{ID_KEY, "key_"},  {ID_DEVICE, "dev_"},  {ID_ACCOUNT, "acct_"},
                 {ID_USER, "usr_"}, {ID_REQUEST, "req_"}, {ID_EVENT, "evt_"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct id id = id_mint(CASES[i].kind, 1769860800000);
        struct id parsed;
        cr_assert(text_starts_with(id_text(&id), text_of(CASES[i].prefix)));
        cr_assert_eq(id_text(&id).len, strlen(CASES[i].prefix) + ULID_TEXT_CHARS);
        cr_assert_eq(id_kind_of(id_text(&id)), CASES[i].kind);
        cr_assert_eq(id_time_ms(&id), 1769860800000);
        cr_assert(id_parse(CASES[i].kind, id_text(&id), &parsed));
        cr_assert(id_equal(&id, &parsed));
    }
}

Test(id, prints_a_known_ulid)
{
    /* The example of the ULID specification, 01ARZ3NDEKTSV4RRFFQ69G5FAV, in lower case. */
    static const uint8_t BYTES[ULID_BYTES] = {0x01, 0x56, 0x3e, 0x3a, 0xb5, 0xd3, 0xd6, 0x76,
                                              0x4c, 0x61, 0xef, 0xb9, 0x93, 0x02, 0xbd, 0x5b};
    struct id id;
    uint8_t back[ULID_BYTES];
    id_from_bytes(ID_EVENT, BYTES, &id);
    cr_assert_str_eq(id.text, "evt_01arz3ndektsv4rrffq69g5fav");
    id_to_bytes(&id, back);
    cr_assert_arr_eq(back, BYTES, ULID_BYTES);
}

Test(id, none_is_an_empty_text)
{
    const struct id none = {{0}};
    cr_assert_eq(id_text(&none).len, 0);
    cr_assert_eq(id_kind_of(id_text(&none)), ID_NONE);
}

Test(id, the_largest_ulid_survives)
{
    uint8_t bytes[ULID_BYTES], back[ULID_BYTES];
    memset(bytes, 0xff, sizeof bytes);
    struct id id;
    id_from_bytes(ID_KEY, bytes, &id);
    cr_assert_str_eq(id.text, "key_7zzzzzzzzzzzzzzzzzzzzzzzzz");
    id_to_bytes(&id, back);
    cr_assert_arr_eq(back, bytes, ULID_BYTES);
}

Test(id, sorts_by_creation)
{
    for (int64_t ms = 1; ms < (INT64_C(1) << 47); ms = ms * 3 + 1) {
        const struct id older = id_mint(ID_KEY, ms - 1), newer = id_mint(ID_KEY, ms);
        cr_assert_lt(strncmp(older.text, newer.text, ID_TEXT_BYTES), 0);
    }
}

Test(id, sorts_in_the_order_of_making_within_a_millisecond)
{
    struct id older = id_mint(ID_KEY, 5);
    for (int i = 0; i < 70000; i++) {
        const struct id newer = id_mint(ID_KEY, 5);
        cr_assert_lt(strncmp(older.text, newer.text, ID_TEXT_BYTES), 0);
        cr_assert_eq(id_kind_of(id_text(&newer)), ID_KEY, "%s", newer.text);
        older = newer;
    }
}

/* Requests' ids have the time of the loop's turn, keys' ids the time when they are made. */
Test(id, sorts_in_the_order_of_making_though_some_callers_clock_lags)
{
    struct id older = id_mint(ID_KEY, 5000);
    for (int i = 0; i < 1000; i++) {
        (void)id_mint(ID_REQUEST, 4999 - i % 900);
        const struct id newer = id_mint(ID_KEY, 5000);
        cr_assert_lt(strncmp(older.text, newer.text, ID_TEXT_BYTES), 0);
        cr_assert_eq(id_time_ms(&newer), 5000);
        older = newer;
    }
}

Test(id, follows_a_clock_that_is_set_back)
{
    (void)id_mint(ID_KEY, 500000);
    struct id id = id_mint(ID_KEY, 499001);
    cr_assert_eq(id_time_ms(&id), 500000);
    id = id_mint(ID_KEY, 499000);
    cr_assert_eq(id_time_ms(&id), 499000);
}

Test(id, begins_anew_in_each_millisecond)
{
    const struct id a = id_mint(ID_KEY, 5), b = id_mint(ID_KEY, 6);
    cr_assert_neq(strncmp(a.text + strlen("key_") + 10, b.text + strlen("key_") + 10, 12), 0);
}

Test(id, refuses_what_is_no_canonical_id)
{
    static const char *const CASES[] = {
        "",
        "key_",
        "key",
        "key_01arz3ndektsv4rrffq69g5fa",   /* too short */
        "key_01arz3ndektsv4rrffq69g5favv", /* too long */
        "key_01ARZ3NDEKTSV4RRFFQ69G5FAV",  /* capitals */
        "key_01arz3ndektsv4rrffq69g5fai",  /* not in the alphabet: i, l, o, u */
        "key_01arz3ndektsv4rrffq69g5fal",
        "key_01arz3ndektsv4rrffq69g5fao",
        "key_01arz3ndektsv4rrffq69g5fau",
        "key_81arz3ndektsv4rrffq69g5fav", /* more than 128 bits */
        "key-01arz3ndektsv4rrffq69g5fav",
        "dev_01arz3ndektsv4rrffq69g5fav", /* another kind */
        "KEY_01arz3ndektsv4rrffq69g5fav",
        " key_01arz3ndektsv4rrffq69g5fa",
        "key_01arz3ndektsv4rrffq69g5fa\n",
        "key_01arz3ndektsv4rrffq69g5fa\xff",
    };
    struct id id = {"untouched"};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(id_parse(ID_KEY, text_of(CASES[i]), &id), "%s", CASES[i]);
    cr_assert_not(id_parse(ID_KEY, (struct text){"key_01arz3ndektsv4rrffq69g5fa\0", 30}, &id));
    cr_assert_not(id_parse(ID_NONE, TEXT(""), &id));
    cr_assert_str_eq(id.text, "untouched");
}
