#include "core/key.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(key, .fini = leak_guard);

static struct text repeat(char *storage, const char *unit, size_t times)
{
    const size_t bytes = strlen(unit);
    for (size_t i = 0; i < times; i++)
        memcpy(storage + i * bytes, unit, bytes);
    return (struct text){storage, times * bytes};
}

Test(key, takes_names_of_1_to_200_code_points)
{
    static const struct {
        const char *unit;
        size_t times;
        bool valid;
    } CASES[] = {
        {"a", 0, false},
        {"a", 1, true},
        {"a", 200, true},
        {"a", 201, false},
        {"\xc3\xa9", 200, true}, /* e acute */
        {"\xc3\xa9", 201, false},
        {"\xf0\x9f\x94\x91", 200, true}, /* four bytes each */
        {"\xf0\x9f\x94\x91", 201, false},
        {"a b", 1, true},
        {" ", 1, false},
        {"\xe2\x80\xae"
         "a",
         1, false},                  /* U+202E reverses the direction */
        {"a\xe2\x80\x8b", 1, false}, /* U+200B has no width */
        {"\xc2\xad"
         "a",
         1, false}, /* U+00AD */
        {"\xef\xbb\xbf"
         "a",
         1, false},                      /* U+FEFF */
        {"a\xe2\x80\xa8", 1, false},     /* U+2028 separates lines */
        {"a\xf3\xa0\x81\x81", 1, false}, /* U+E0041, a tag */
        {"\xe3\x80\x80", 3, false},      /* U+3000, only blanks */
        {"\xe3\x85\xa4", 1, false},      /* U+3164, a letter that looks blank */
        {"\xe3\x80\x80"
         "a",
         1, true},
        {"\xe2\x80\x90", 1, true}, /* U+2010, a hyphen next to the direction marks */
        {"\xd7\x90", 1, true},     /* a letter of a right-to-left alphabet */
        {"a\nb", 1, false},
        {"\x1b[2J", 1, false},
        {"a\x7f", 1, false},
        {"\xc2\x85", 1, false}, /* U+0085, a control character */
        {"a\xc2\xa0", 1, true}, /* U+00A0, not a control character */
        {"\xff", 1, false},
        {"\xc3", 1, false},
        {"\xc0\xaf", 1, false},
        {"\xed\xa0\x80", 1, false}, /* a surrogate */
    };
    char storage[1024];
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct key_record key = {0};
        const struct text name = repeat(storage, CASES[i].unit, CASES[i].times);
        cr_assert_eq(key_set_name(&key, name), CASES[i].valid, "case %zu", i);
        cr_assert_eq(text_equal(key_name(&key), name), CASES[i].valid || name.len == 0, "case %zu", i);
    }
    struct key_record key = {0};
    cr_assert_not(key_set_name(&key, (struct text){"a\0b", 3}));
}

Test(key, keeps_the_last_four_characters)
{
    struct key_record key;
    key_set_last4(&key, TEXT("svc_sk_test_wxyz"));
    cr_assert_str_eq(key.last4, "wxyz");
}

Test(key, copies_what_is_set)
{
    struct key_record from, to;
    memset(&from, 0, sizeof from);
    memset(&to, 0x55, sizeof to);
    from.id = id_mint(ID_KEY, 7);
    from.revoked_ms = 8;
    from.scopes = SCOPE_ALL;
    cr_assert(key_set_name(&from, TEXT("Integration")));
    key_copy(&to, &from);
    cr_assert(id_equal(&to.id, &from.id));
    cr_assert(text_equal(key_name(&to), TEXT("Integration")));
    cr_assert_eq(to.revoked_ms, 8);
    cr_assert_eq(to.scopes, SCOPE_ALL);
    cr_assert_eq(to.name[sizeof to.name - 1], 0x55);
}

#define ID_TEXT "key_01jd0000000000000000000001"
#define DEVICE_TEXT "dev_01jd0000000000000000000001"
#define ACCOUNT_TEXT "acct_01jd0000000000000000000002"
#define USER_TEXT "usr_01jd0000000000000000000003"

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{1}, {2}};
static const uint8_t DIGEST[KEY_DIGEST_BYTES] = {1}, OTHER_DIGEST[KEY_DIGEST_BYTES] = {2};

/* Records as the first version wrote them, and what this version makes of them. */
Test(key, decodes_what_it_encodes)
{
    static const char *const CASES[] = {
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 4095 1700000000000 - A name of some words",
        ID_TEXT " " ACCOUNT_TEXT " test 0000 1 1 1 -",
        ID_TEXT " " ACCOUNT_TEXT " test wxyz 0 1700000000000 1700000000001  - ",
        DEVICE_TEXT " " ACCOUNT_TEXT " live wxyz 1024 9007199254740993 9223372036854775807 \xc3\xa9",
    };
    struct keyring *keyring = keyring_create(MASTERS, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[KEY_TEXT_MAX_BYTES];
        struct buf out;
        struct key_record key, again;
        memset(&key, 0xa5, sizeof key);
        cr_assert(key_decode(text_of(CASES[i]), &key), "case %zu", i);
        cr_assert_eq(key.last_used_ms, 0);
        cr_assert_eq(id_text(&key.by).len, 0);
        cr_assert_eq(key_verify(text_of(CASES[i]), keyring, DIGEST), RECORD_UNSEALED);
        if (i % 2)
            cr_assert(id_parse(ID_USER, TEXT(USER_TEXT), &key.by));
        buf_init_fixed(&out, storage, sizeof storage);
        key_encode(&key, keyring, DIGEST, &out);
        cr_assert(!out.failed && text_starts_with(buf_text(&out), text_of(CASES[i])), "case %zu", i);
        cr_assert(text_starts_with(text_skip(buf_text(&out), strlen(CASES[i])), TEXT("\nv=2\n")), "case %zu", i);
        cr_assert_eq(key_verify(buf_text(&out), keyring, DIGEST), RECORD_SEALED);
        memset(&again, 0xa5, sizeof again);
        cr_assert(key_decode(buf_text(&out), &again));
        cr_assert(id_equal(&again.by, &key.by) && id_equal(&again.id, &key.id));
        cr_assert(text_equal(key_name(&again), key_name(&key)) && again.revoked_ms == key.revoked_ms);
    }
    keyring_destroy(keyring);
}

/* Byte for byte as version 2 first wrote it, under MASTERS[0] for DIGEST. Stores are full of such records: changing the
 * form loses keys. */
Test(key, the_stored_form_of_version_2_stays)
{
    static const struct {
        const char *text, *by, *name;
        enum key_kind kind;
        scope_set scopes;
        int64_t revoked_ms;
    } CASES[] = {
        {ID_TEXT " " ACCOUNT_TEXT " live wxyz 4095 1700000000000 - A name of some words\nv=2\nby=" USER_TEXT
                 "\ng=9dda1a4c\nm=GAR8QhOZACSC0wINmCPsFw",
         USER_TEXT, "A name of some words", KEY_API, 4095, 0},
        {DEVICE_TEXT " " ACCOUNT_TEXT " live 0000 1024 1700000000000 1700000000001 Till 7\nv=2"
                     "\ng=9dda1a4c\nm=bde0vx__jLNIpB1y2TbSkw",
         "", "Till 7", KEY_DEVICE, 1024, 1700000000001},
    };
    struct keyring *keyring = keyring_create(MASTERS, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[KEY_TEXT_MAX_BYTES];
        struct buf out;
        struct key_record key;
        memset(&key, 0xa5, sizeof key);
        cr_assert_eq(key_verify(text_of(CASES[i].text), keyring, DIGEST), RECORD_SEALED, "case %zu", i);
        cr_assert(key_decode(text_of(CASES[i].text), &key), "case %zu", i);
        cr_expect_str_eq(key.id.text, CASES[i].kind == KEY_API ? ID_TEXT : DEVICE_TEXT);
        cr_expect_str_eq(key.account.text, ACCOUNT_TEXT);
        cr_expect_str_eq(key.by.text, CASES[i].by);
        cr_expect_str_eq(key.last4, CASES[i].kind == KEY_API ? "wxyz" : "0000");
        cr_expect(text_equal(key_name(&key), text_of(CASES[i].name)));
        cr_expect(key.kind == CASES[i].kind && key.mode == MODE_LIVE && key.scopes == CASES[i].scopes);
        cr_expect(key.created_ms == 1700000000000 && key.revoked_ms == CASES[i].revoked_ms);
        buf_init_fixed(&out, storage, sizeof storage);
        key_encode(&key, keyring, DIGEST, &out);
        cr_expect(text_equal(buf_text(&out), text_of(CASES[i].text)), "case %zu: %.*s", i, TEXT_ARG(buf_text(&out)));
    }
    keyring_destroy(keyring);
}

static void put(struct buf *out, struct text t)
{
    buf_clear(out);
    buf_append_text(out, t);
}

/* `with` may be longer than `what`. */
static void put_replaced(struct buf *out, struct text t, const char *what, const char *with)
{
    const char *at = memmem(t.ptr, t.len, what, strlen(what));
    cr_assert(at, "%s", what);
    put(out, (struct text){t.ptr, (size_t)(at - t.ptr)});
    buf_append_str(out, with);
    buf_append_text(out, text_skip(t, (size_t)(at - t.ptr) + strlen(what)));
}

Test(key, a_record_that_was_altered_is_known)
{
    static const struct {
        const char *what, *with;
        enum record_seal seal;
    } CASES[] = {
        {" test ", " live ", RECORD_ALTERED},
        {" wxyz ", " wxyy ", RECORD_ALTERED},
        {" 3 1700", " 4095 1700", RECORD_ALTERED},
        {" 17000", " 17001", RECORD_ALTERED},
        {"A name", "B name", RECORD_ALTERED},
        {"A name\n", "A nam\ne\n", RECORD_ALTERED},
        {"key_01jd0000000000000000000001", "dev_01jd0000000000000000000001", RECORD_ALTERED},
        {"acct_01jd0000000000000000000002", "acct_01jd0000000000000000000004", RECORD_ALTERED},
        {"by=usr_01jd0000000000000000000003", "by=usr_01jd0000000000000000000004", RECORD_ALTERED},
        {"\nby=usr_01jd0000000000000000000003", "", RECORD_ALTERED},
        {"\nv=2", "\nv=2\nx=1", RECORD_ALTERED},
        {"\nm=", "\nx=1\nm=", RECORD_ALTERED},
        {"\nm=", "\nm=A", RECORD_ALTERED},
        {"\nm=", "\nn=", RECORD_UNSEALED},
        {" - A", " 1700000000007 A", RECORD_SEALED}, /* revoked: scripts set it, so the MAC cannot bind it */
    };
    struct keyring *keyring = keyring_create(MASTERS, 1), *other = keyring_create(MASTERS + 1, 1);
    char storage[KEY_TEXT_MAX_BYTES], altered_storage[KEY_TEXT_MAX_BYTES];
    struct buf out, altered;
    struct key_record key;
    cr_assert(key_decode(TEXT(ID_TEXT " " ACCOUNT_TEXT " test wxyz 3 1700000000000 - A name"), &key));
    cr_assert(id_parse(ID_USER, TEXT(USER_TEXT), &key.by));
    buf_init_fixed(&out, storage, sizeof storage);
    buf_init_fixed(&altered, altered_storage, sizeof altered_storage);
    key_encode(&key, keyring, DIGEST, &out);
    cr_assert_eq(key_verify(buf_text(&out), keyring, DIGEST), RECORD_SEALED);
    cr_expect_eq(key_verify(buf_text(&out), keyring, OTHER_DIGEST), RECORD_ALTERED, "moved");
    cr_expect_eq(key_verify(buf_text(&out), other, DIGEST), RECORD_ALTERED, "another master key");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        put_replaced(&altered, buf_text(&out), CASES[i].what, CASES[i].with);
        cr_expect_eq(key_verify(buf_text(&altered), keyring, DIGEST), CASES[i].seal, "case %zu", i);
    }
    keyring_destroy(keyring);
    keyring_destroy(other);
}

/* Sealed anew under the current master key; one that nobody has sealed gets no seal by it. What stands behind the MAC
 * is neither read nor repeated. */
Test(key, a_renamed_record_is_sealed_as_before)
{
    static const uint8_t ROTATED[2][KEYRING_MASTER_BYTES] = {{2}, {1}};
    struct keyring *before = keyring_create(MASTERS, 1), *after = keyring_create(ROTATED, 2);
    char storage[KEY_TEXT_MAX_BYTES], renamed_storage[KEY_TEXT_MAX_BYTES], other_storage[KEY_TEXT_MAX_BYTES];
    struct key_renaming renaming;
    struct key_record key;
    struct buf out, renamed, other;
    cr_assert(key_decode(TEXT(ID_TEXT " " ACCOUNT_TEXT " test wxyz 3 1700000000000 1700000000009 A name"), &key));
    cr_assert(id_parse(ID_USER, TEXT(USER_TEXT), &key.by));
    buf_init_fixed(&out, storage, sizeof storage);
    buf_init_fixed(&renamed, renamed_storage, sizeof renamed_storage);
    buf_init_fixed(&other, other_storage, sizeof other_storage);
    key_encode(&key, before, DIGEST, &out);
    const size_t bound = out.len;
    buf_append_str(&out, "\nend=7 - - -");
    cr_assert(key_rename(buf_text(&out), after, DIGEST, TEXT("Another name"), &renamed, &renaming));
    cr_expect(renaming.was.ptr + renaming.was.len == out.ptr + bound &&
              text_starts_with(renaming.was, TEXT("A name\n")));
    cr_expect(text_starts_with(renaming.is, TEXT("Another name\n")) &&
              !memmem(renaming.is.ptr, renaming.is.len, "end", 3));
    put(&other, (struct text){out.ptr, (size_t)(renaming.was.ptr - out.ptr)});
    buf_append_text(&other, renaming.is);
    buf_append_str(&other, "\nend=7 - - -");
    cr_expect_eq(key_verify(buf_text(&other), after, DIGEST), RECORD_SEALED);
    cr_expect_eq(key_verify(buf_text(&other), before, DIGEST), RECORD_ALTERED);
    cr_assert(key_decode(buf_text(&other), &key));
    cr_expect(text_equal(key_name(&key), TEXT("Another name")) && key.revoked_ms == 1700000000009);
    cr_expect(text_equal(id_text(&key.by), TEXT(USER_TEXT)) && key.end_said_ms == 7);
    buf_clear(&renamed);
    cr_assert(key_rename(TEXT(ID_TEXT " " ACCOUNT_TEXT " test wxyz 3 1700000000000 - A name\nend=7 - - -"), before,
                         DIGEST, TEXT("B"), &renamed, &renaming));
    cr_expect(text_equal(renaming.was, TEXT("A name")) && text_equal(renaming.is, TEXT("B")));
    cr_expect(!key_rename(TEXT("nonsense"), before, DIGEST, TEXT("B"), &renamed, &renaming));
    keyring_destroy(before);
    keyring_destroy(after);
}

/* Lines after the MAC are for fields that change, of later versions. They are neither bound nor trusted. */
Test(key, what_stands_behind_the_mac_is_not_read)
{
    struct keyring *keyring = keyring_create(MASTERS, 1);
    char storage[KEY_TEXT_MAX_BYTES];
    struct key_record key;
    struct buf out;
    cr_assert(key_decode(TEXT(ID_TEXT " " ACCOUNT_TEXT " test wxyz 3 1700000000000 - A name"), &key));
    buf_init_fixed(&out, storage, sizeof storage);
    key_encode(&key, keyring, DIGEST, &out);
    buf_append_str(&out, "\nby=" USER_TEXT "\nm=AAAAAAAAAAAAAAAAAAAAAA");
    cr_expect_eq(key_verify(buf_text(&out), keyring, DIGEST), RECORD_SEALED);
    cr_assert(key_decode(buf_text(&out), &key));
    cr_expect_eq(id_text(&key.by).len, 0);
    keyring_destroy(keyring);
}

Test(key, a_retired_master_key_verifies_what_it_sealed)
{
    static const uint8_t ROTATED[2][KEYRING_MASTER_BYTES] = {{2}, {1}};
    struct keyring *before = keyring_create(MASTERS, 1), *after = keyring_create(ROTATED, 2);
    char storage[KEY_TEXT_MAX_BYTES];
    struct key_record key;
    struct buf out;
    cr_assert(key_decode(TEXT(ID_TEXT " " ACCOUNT_TEXT " test wxyz 3 1700000000000 - A name"), &key));
    buf_init_fixed(&out, storage, sizeof storage);
    key_encode(&key, before, DIGEST, &out);
    cr_expect_eq(key_verify(buf_text(&out), after, DIGEST), RECORD_SEALED);
    keyring_destroy(before);
    keyring_destroy(after);
}

Test(key, longest_record_fits)
{
    char storage[KEY_TEXT_MAX_BYTES];
    struct buf out;
    struct key_record key = {.kind = KEY_DEVICE,
                             .mode = MODE_LIVE,
                             .scopes = SCOPE_DOCUMENTS_WRITE,
                             .created_ms = INT64_MAX,
                             .revoked_ms = INT64_MAX,
                             .last4 = "wxyz"};
    struct keyring *keyring = keyring_create(MASTERS, 1);
    key.id = id_mint(ID_DEVICE, 7);
    key.account = id_mint(ID_ACCOUNT, 7);
    key.by = id_mint(ID_USER, 7);
    key.name_len = KEY_NAME_MAX_BYTES;
    memset(key.name, 'n', key.name_len);
    buf_init_fixed(&out, storage, sizeof storage);
    key_encode(&key, keyring, DIGEST, &out);
    cr_assert(!out.failed);
    cr_assert(key_decode(buf_text(&out), &key));
    cr_assert_eq(key_verify(buf_text(&out), keyring, DIGEST), RECORD_SEALED);
    keyring_destroy(keyring);
}

Test(key, refuses_records_that_are_none)
{
    static const char *const CASES[] = {
        "",
        "nonsense",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 -",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - ",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7",
        ID_TEXT "0 " ACCOUNT_TEXT " live wxyz 3 7 - n",
        "usr_01jd0000000000000000000001 " ACCOUNT_TEXT " live wxyz 3 7 - n",
        ID_TEXT " " ID_TEXT " live wxyz 3 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " Live wxyz 3 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " 7 wxyz 3 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxy 3 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 4096 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz -1 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 0 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 -7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 0 n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 6 n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 yesterday n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7  n",
        DEVICE_TEXT " " ACCOUNT_TEXT " test wxyz 1024 7 - n",
        DEVICE_TEXT " " ACCOUNT_TEXT " live wxyz 1025 7 - n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - \nv=2",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\n",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\nv=1",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\nv=3",
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\nby=" USER_TEXT,
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\nv=2\nby=" ACCOUNT_TEXT,
        ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - n\nv=2\nby=",
    };
    struct key_record key;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(key_decode(text_of(CASES[i]), &key), "%s", CASES[i]);
    char too_long[KEY_TEXT_MAX_BYTES] = ID_TEXT " " ACCOUNT_TEXT " live wxyz 3 7 - ";
    const size_t name_at = strlen(too_long);
    memset(too_long + name_at, 'n', KEY_NAME_MAX_BYTES + 1);
    cr_assert_not(key_decode((struct text){too_long, name_at + KEY_NAME_MAX_BYTES + 1}, &key));
    cr_assert(key_decode((struct text){too_long, name_at + KEY_NAME_MAX_BYTES}, &key));
}

/* Principals */

static struct key_record record_with(enum key_kind kind, const uint8_t ulid[ULID_BYTES], size_t name_len)
{
    struct key_record key = {.kind = kind, .mode = MODE_LIVE, .scopes = SCOPE_ALL, .name_len = (uint16_t)name_len};
    id_from_bytes(key_id_kind(kind), ulid, &key.id);
    id_from_bytes(ID_ACCOUNT, ulid, &key.account);
    for (size_t i = 0; i < name_len; i++)
        key.name[i] = (char)('A' + i % 50);
    return key;
}

static void assert_comes_back(const struct key_record *record, bool has_name)
{
    const struct key_principal key = key_principal_of(record);
    struct key_principal again;
    struct key_packed packed, same;
    memset(&packed, 0xa5, sizeof packed); /* earlier content must not matter */
    memset(&same, 0x5a, sizeof same);
    memset(&again, 0xa5, sizeof again);
    key_pack(&key, &packed);
    key_pack(&key, &same);
    cr_assert_eq(memcmp(&packed, &same, sizeof packed), 0);
    key_unpack(&packed, &again);
    cr_assert(id_equal(&again.id, &record->id) && id_equal(&again.account, &record->account));
    cr_assert(again.kind == record->kind && again.mode == record->mode && again.scopes == record->scopes);
    cr_assert_eq(again.is_revoked, record->revoked_ms != 0);
    cr_assert_eq(again.ends_ms, record->ends_ms);
    cr_assert(text_equal(key.name, key_name(record)));
    cr_assert(text_equal(again.name, has_name ? key_name(record) : (struct text){0}), "%zu", key.name.len);
}

Test(key, a_principal_is_packed_without_a_long_name)
{
    static const struct {
        enum key_kind kind;
        enum key_mode mode;
        scope_set scopes;
        int64_t revoked_ms;
        size_t name_len;
        int64_t ends_ms;
    } CASES[] = {
        {KEY_API, MODE_TEST, SCOPE_NONE, 0, 1, 0},
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, KEY_PACKED_NAME_BYTES - 1, 0},
        {KEY_API, MODE_LIVE, SCOPE_SANDBOX_MANAGE, 1, KEY_PACKED_NAME_BYTES, 0},
        {KEY_DEVICE, MODE_TEST, SCOPE_EXCHANGES_READ, INT64_MAX, KEY_PACKED_NAME_BYTES + 1, 0},
        {KEY_DEVICE, MODE_LIVE, SCOPE_USAGE_READ | SCOPE_KEYS_MANAGE, 1700000000000, 32, 0},
        {KEY_DEVICE, MODE_LIVE, SCOPE_ALL, 0, 260, 0}, /* a length whose lower bits look short */
        {KEY_API, MODE_TEST, SCOPE_NONE, 0, KEY_NAME_MAX_BYTES, 0},
        /* The end takes room from the name. */
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, 0, 1},
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, 1, 1700000000001},
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, KEY_PACKED_NAME_BYTES - KEY_PACKED_END_BYTES, 0xfedcba987654},
        {KEY_DEVICE, MODE_LIVE, SCOPE_ALL, 0, KEY_PACKED_NAME_BYTES - KEY_PACKED_END_BYTES + 1, 0xffffffffffff},
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, KEY_PACKED_NAME_BYTES, 1700000000001},
        {KEY_API, MODE_LIVE, SCOPE_ALL, 0, 260, 1700000000001},
    };
    static const uint8_t ULID[ULID_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct key_record key = record_with(CASES[i].kind, ULID, CASES[i].name_len);
        key.mode = CASES[i].mode;
        key.scopes = CASES[i].scopes;
        key.revoked_ms = CASES[i].revoked_ms;
        key.ends_ms = CASES[i].ends_ms;
        assert_comes_back(&key,
                          CASES[i].name_len + (CASES[i].ends_ms ? KEY_PACKED_END_BYTES : 0) <= KEY_PACKED_NAME_BYTES);
    }
}

Test(key, packed_ids_keep_every_bit)
{
    for (size_t bit = 0; bit <= 8 * ULID_BYTES; bit++) {
        uint8_t ulid[ULID_BYTES] = {0};
        if (bit < 8 * ULID_BYTES)
            ulid[bit / 8] = (uint8_t)(1U << bit % 8);
        else
            memset(ulid, 0xff, sizeof ulid);
        const struct key_record key = record_with(KEY_API, ulid, 1);
        assert_comes_back(&key, true);
    }
}

Test(key, is_refused_once_it_is_revoked)
{
    cr_assert_eq(key_verdict_of(&(struct key_principal){.kind = KEY_API}), KEY_ACCEPTED);
    cr_assert_eq(key_verdict_of(&(struct key_principal){.kind = KEY_API, .is_revoked = true}), KEY_REVOKED);
    cr_assert_eq(key_verdict_of(&(struct key_principal){.kind = KEY_API, .is_suspended = true}), KEY_SUSPENDED);
    cr_assert_eq(key_verdict_of(&(struct key_principal){.is_suspended = true, .is_revoked = true}), KEY_REVOKED);
}

Test(key, names_modes_and_kinds)
{
    enum key_mode mode = MODE_LIVE;
    cr_assert(key_mode_parse(TEXT("test"), &mode) && mode == MODE_TEST);
    cr_assert(key_mode_parse(TEXT("live"), &mode) && mode == MODE_LIVE);
    cr_assert_not(key_mode_parse(TEXT("Test"), &mode));
    cr_assert_not(key_mode_parse(TEXT("live "), &mode));
    cr_assert_not(key_mode_parse(TEXT(""), &mode));
    cr_assert_eq(mode, MODE_LIVE);
    cr_assert(text_equal(key_mode_text(MODE_TEST), TEXT("test")));
    cr_assert(text_equal(key_mode_text(MODE_LIVE), TEXT("live")));
    cr_assert(text_equal(key_kind_text(KEY_API), TEXT("api_key")));
    cr_assert(text_equal(key_kind_text(KEY_DEVICE), TEXT("device_key")));
    cr_assert_eq(key_id_kind(KEY_API), ID_KEY);
    cr_assert_eq(key_id_kind(KEY_DEVICE), ID_DEVICE);
}
