#include "auth/key_check.h"
#include "core/secret.h"

#include "fake_store.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(key_check, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{1}, {2}};

struct answer {
    int count;
    enum key_check_result result;
    const struct key_record *key;
};

static void on_checked(void *arg, enum key_check_result result, const struct key_record *key)
{
    struct answer *answer = arg;
    answer->count++;
    answer->result = result;
    answer->key = key;
}

struct fixture {
    struct store store;
    struct keyring *keyring;
    struct key_checker *checker;
    struct secret secret;
    struct key_check check;
    struct answer answer;
};

static void set_up(struct fixture *f, size_t generations)
{
    memset(f, 0, sizeof *f);
    f->keyring = keyring_create(MASTERS, generations);
    f->checker = key_checker_create(f->keyring, &f->store);
    secret_mint(KEY_API, MODE_TEST, &f->secret);
}

static void tear_down(struct fixture *f)
{
    key_checker_destroy(f->checker);
    keyring_destroy(f->keyring);
}

static void begin(struct fixture *f)
{
    enum key_check_result result;
    const struct key_record *key;
    cr_assert_not(
        key_check_begin(f->checker, &f->check, secret_text(&f->secret), on_checked, &f->answer, &result, &key));
    cr_assert_eq(f->answer.count, 0);
}

Test(key_check, decides_what_is_malformed_without_the_store)
{
    static const char *const CASES[] = {"", "x", "svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0jb"};
    struct fixture f;
    set_up(&f, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        enum key_check_result result = KEY_CHECK_ACCEPTED;
        const struct key_record *key = &(struct key_record){0};
        cr_assert(key_check_begin(f.checker, &f.check, text_of(CASES[i]), on_checked, &f.answer, &result, &key));
        cr_assert_eq(result, KEY_CHECK_INVALID);
        cr_assert_null(key);
    }
    cr_assert_eq(f.store.find_count, 0);
    cr_assert_eq(f.answer.count, 0);
    tear_down(&f);
}

Test(key_check, tells_what_the_store_knows)
{
    static const struct {
        enum store_result found;
        int64_t revoked_ms;
        enum key_check_result result;
        bool has_key;
    } CASES[] = {
        {STORE_OK, 0, KEY_CHECK_ACCEPTED, true},          {STORE_OK, 1, KEY_CHECK_REVOKED, true},
        {STORE_NOT_FOUND, 0, KEY_CHECK_INVALID, false},   {STORE_CONFLICT, 0, KEY_CHECK_UNAVAILABLE, false},
        {STORE_REFUSED, 0, KEY_CHECK_UNAVAILABLE, false}, {STORE_UNAVAILABLE, 0, KEY_CHECK_UNAVAILABLE, false},
        {STORE_UNKNOWN, 0, KEY_CHECK_UNAVAILABLE, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        const struct key_record key = {.revoked_ms = CASES[i].revoked_ms};
        set_up(&f, 1);
        begin(&f);
        fake_store_answer_find(&f.store, 0, CASES[i].found, CASES[i].has_key ? &key : NULL);
        cr_assert_eq(f.answer.count, 1);
        cr_assert_eq(f.answer.result, CASES[i].result, "case %zu", i);
        cr_assert_eq(f.answer.key, CASES[i].has_key ? &key : NULL);
        cr_assert_eq(f.store.find_count, 1);
        tear_down(&f);
    }
}

Test(key_check, asks_for_the_digest_under_which_keys_are_stored)
{
    struct fixture f;
    uint8_t digest[KEY_DIGEST_BYTES];
    set_up(&f, 1);
    begin(&f);
    key_checker_digest(f.checker, secret_text(&f.secret), digest);
    cr_assert_arr_eq(f.store.finds[0].digest, digest, sizeof digest);
    tear_down(&f);
}

Test(key_check, tries_retired_master_keys)
{
    static const enum store_result SECOND[] = {STORE_OK, STORE_NOT_FOUND, STORE_UNKNOWN};
    static const enum key_check_result RESULTS[] = {KEY_CHECK_ACCEPTED, KEY_CHECK_INVALID, KEY_CHECK_UNAVAILABLE};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        uint8_t retired[KEY_DIGEST_BYTES];
        const struct key_record key = {0};
        set_up(&f, 2);
        begin(&f);
        fake_store_answer_find(&f.store, 0, STORE_NOT_FOUND, NULL);
        cr_assert_eq(f.answer.count, 0);
        cr_assert_eq(f.store.find_count, 2);
        keyring_digest(f.keyring, KEYRING_KEY_DIGEST, 1, secret_text(&f.secret), retired);
        cr_assert_arr_eq(f.store.finds[1].digest, retired, sizeof retired);
        fake_store_answer_find(&f.store, 1, SECOND[i], SECOND[i] == STORE_OK ? &key : NULL);
        cr_assert_eq(f.answer.count, 1);
        cr_assert_eq(f.answer.result, RESULTS[i]);
        cr_assert_eq(f.store.find_count, 2);
        tear_down(&f);
    }
}

/* "Not there" and "no answer" are not the same: the second must not be asked again under another master. */
Test(key_check, no_answer_is_no_reason_to_try_the_next_master)
{
    struct fixture f;
    set_up(&f, 2);
    begin(&f);
    fake_store_answer_find(&f.store, 0, STORE_UNAVAILABLE, NULL);
    cr_assert_eq(f.answer.count, 1);
    cr_assert_eq(f.answer.result, KEY_CHECK_UNAVAILABLE);
    cr_assert_eq(f.store.find_count, 1);
    tear_down(&f);
}

Test(key_check, checks_do_not_mix)
{
    struct fixture f;
    struct secret other;
    struct key_check second;
    struct answer answer = {0};
    enum key_check_result result;
    const struct key_record *none, active = {0};
    set_up(&f, 1);
    begin(&f);
    secret_mint(KEY_DEVICE, MODE_LIVE, &other);
    cr_assert_not(key_check_begin(f.checker, &second, secret_text(&other), on_checked, &answer, &result, &none));
    fake_store_answer_find(&f.store, 1, STORE_NOT_FOUND, NULL);
    cr_assert(answer.count == 1 && answer.result == KEY_CHECK_INVALID);
    cr_assert_eq(f.answer.count, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &active);
    cr_assert(f.answer.count == 1 && f.answer.result == KEY_CHECK_ACCEPTED);
    tear_down(&f);
}

Test(key_check, says_which_problem_it_is)
{
    const struct key_record api = {.kind = KEY_API}, device = {.kind = KEY_DEVICE};
    cr_assert_eq(key_check_problem(KEY_CHECK_ACCEPTED, &api), PROBLEM_NONE);
    cr_assert_eq(key_check_problem(KEY_CHECK_INVALID, NULL), PROBLEM_INVALID_API_KEY);
    cr_assert_eq(key_check_problem(KEY_CHECK_REVOKED, &api), PROBLEM_API_KEY_REVOKED);
    cr_assert_eq(key_check_problem(KEY_CHECK_REVOKED, &device), PROBLEM_DEVICE_KEY_REVOKED);
    cr_assert_eq(key_check_problem(KEY_CHECK_UNAVAILABLE, NULL), PROBLEM_STORE_UNAVAILABLE);
}
