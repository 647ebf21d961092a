#include "auth/key_check.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "chatelaine/check.h"
#include "core/secret.h"

#include "auth/key_cache_internal.h"
#include "deadline.h"
#include "fake_store.h"
#include "leak_guard.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(key_check, .fini = leak_guard);

static const uint8_t MASTERS[2][KEYRING_MASTER_BYTES] = {{1}, {2}};

struct answer {
    int count;
    enum key_verdict verdict;
    const struct key_principal *key;
};

static void on_checked(void *arg, enum key_verdict verdict, const struct key_principal *key)
{
    struct answer *answer = arg;
    answer->count++;
    answer->verdict = verdict;
    answer->key = key;
}

struct fixture {
    uv_loop_t loop;
    struct turn *turn;
    bool is_turn_closed;
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
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    f->turn = turn_create(&f->loop);
    f->checker = key_checker_create(f->keyring, &(struct partitions){{&f->store}, 1}, NULL, NULL, NULL, NULL, f->turn);
    secret_mint(KEY_API, MODE_TEST, &f->secret);
}

static void on_turn_closed(void *is_closed)
{
    *(bool *)is_closed = true;
}

static void tear_down(struct fixture *f)
{
    key_checker_destroy(f->checker);
    keyring_destroy(f->keyring);
    turn_close(f->turn, on_turn_closed, &f->is_turn_closed);
    cr_assert(test_loop_until_set(&f->loop, &f->is_turn_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f->loop));
}

static void begin(struct fixture *f)
{
    key_check_begin(f->checker, &f->check, secret_text(&f->secret), on_checked, &f->answer);
    turn_finish(f->turn);
    cr_assert_eq(f->answer.count, 0);
}

Test(key_check, decides_what_is_malformed_without_the_store)
{
    static const char *const CASES[] = {"", "x", "svc_sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUV0SV0jb"};
    struct fixture f;
    set_up(&f, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        f.answer = (struct answer){.key = &(struct key_principal){.mode = MODE_TEST}};
        key_check_begin(f.checker, &f.check, text_of(CASES[i]), on_checked, &f.answer);
        cr_assert_eq(f.answer.count, 0);
        turn_finish(f.turn);
        cr_assert_eq(f.answer.count, 1);
        cr_assert_eq(f.answer.verdict, KEY_INVALID);
        cr_assert_null(f.answer.key);
    }
    cr_assert_eq(f.store.find_count, 0);
    tear_down(&f);
}

Test(key_check, tells_what_the_store_knows)
{
    static const struct {
        enum store_result found;
        int64_t revoked_ms;
        enum key_verdict verdict;
        bool has_key;
    } CASES[] = {
        {STORE_OK, 0, KEY_ACCEPTED, true},        {STORE_OK, 1, KEY_REVOKED, true},
        {STORE_NOT_FOUND, 0, KEY_INVALID, false}, {STORE_CONFLICT, 0, KEY_UNDECIDED, false},
        {STORE_REFUSED, 0, KEY_UNDECIDED, false}, {STORE_UNAVAILABLE, 0, KEY_UNDECIDED, false},
        {STORE_UNKNOWN, 0, KEY_UNDECIDED, false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct fixture f;
        const struct key_record key = {.revoked_ms = CASES[i].revoked_ms};
        set_up(&f, 1);
        begin(&f);
        fake_store_answer_find(&f.store, 0, CASES[i].found, CASES[i].has_key ? &key : NULL);
        cr_assert_eq(f.answer.count, 1);
        cr_assert_eq(f.answer.verdict, CASES[i].verdict, "case %zu", i);
        cr_assert_eq(f.answer.key != NULL, CASES[i].has_key);
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
    keyring_digest(f.keyring, KEYRING_KEY_DIGEST, 0, secret_text(&f.secret), digest);
    cr_assert_arr_eq(f.store.finds[0].digest, digest, sizeof digest);
    tear_down(&f);
}

Test(key_check, tries_retired_master_keys)
{
    static const enum store_result SECOND[] = {STORE_OK, STORE_NOT_FOUND, STORE_UNKNOWN};
    static const enum key_verdict RESULTS[] = {KEY_ACCEPTED, KEY_INVALID, KEY_UNDECIDED};
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
        cr_assert_eq(f.answer.verdict, RESULTS[i]);
        cr_assert_eq(f.store.find_count, 2);
        tear_down(&f);
    }
}

/* A secret gives the kind and mode of its key. A record that says otherwise was altered. */
static const struct key_record OTHERS[] = {
    {.kind = KEY_API, .mode = MODE_LIVE},
    {.kind = KEY_DEVICE, .mode = MODE_LIVE},
    {.kind = KEY_API, .mode = MODE_LIVE, .revoked_ms = 7},
};
enum { OTHERS_COUNT = sizeof OTHERS / sizeof *OTHERS };

Test(key_check, a_record_of_another_kind_or_mode_is_no_record_of_the_secret)
{
    for (size_t i = 0; i < OTHERS_COUNT; i++) {
        struct fixture f;
        set_up(&f, 1);
        metric_set(METRIC_RECORDS_ALTERED, 0);
        begin(&f);
        fake_store_answer_find(&f.store, 0, STORE_OK, &OTHERS[i]);
        cr_assert_eq(f.answer.count, 1);
        cr_assert_eq(f.answer.verdict, KEY_INVALID, "case %zu", i);
        cr_assert_null(f.answer.key);
        cr_assert_eq(metric_values[METRIC_RECORDS_ALTERED], 1);
        tear_down(&f);
    }
}

/* A change that is requested with the key carries this digest. */
Test(key_check, tells_the_digest_that_the_store_knows_the_key_by)
{
    uint8_t digest[KEY_DIGEST_BYTES];

    for (size_t i = 0; i < 2; i++) {
        const struct key_record key = {0};
        struct fixture f;

        set_up(&f, 2);
        begin(&f);
        if (i == 1)
            fake_store_answer_find(&f.store, 0, STORE_NOT_FOUND, NULL);
        fake_store_answer_find(&f.store, i, STORE_OK, &key);
        cr_assert_eq(f.answer.verdict, KEY_ACCEPTED);
        key_check_digest(&f.check, digest);
        cr_assert_arr_eq(digest, f.store.finds[i].digest, sizeof digest, "generation %zu", i);
        tear_down(&f);
    }
}

/* "Not found" and "no answer" differ: after no answer, the next master key must not be tried. */
Test(key_check, no_answer_is_no_reason_to_try_the_next_master)
{
    struct fixture f;
    set_up(&f, 2);
    begin(&f);
    fake_store_answer_find(&f.store, 0, STORE_UNAVAILABLE, NULL);
    cr_assert_eq(f.answer.count, 1);
    cr_assert_eq(f.answer.verdict, KEY_UNDECIDED);
    cr_assert_eq(f.store.find_count, 1);
    tear_down(&f);
}

Test(key_check, checks_do_not_mix)
{
    struct fixture f;
    struct secret other;
    struct key_check second;
    struct answer answer = {0};
    const struct key_record active = {0};
    set_up(&f, 1);
    begin(&f);
    secret_mint(KEY_DEVICE, MODE_LIVE, &other);
    key_check_begin(f.checker, &second, secret_text(&other), on_checked, &answer);
    turn_finish(f.turn);
    fake_store_answer_find(&f.store, 1, STORE_NOT_FOUND, NULL);
    cr_assert(answer.count == 1 && answer.verdict == KEY_INVALID);
    cr_assert_eq(f.answer.count, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &active);
    cr_assert(f.answer.count == 1 && f.answer.verdict == KEY_ACCEPTED);
    tear_down(&f);
}

/* With a cache */

enum { CHECKS = 20, INTERVAL_MS = 60000, PARTITIONS = 4 };

struct cached {
    uv_loop_t loop;
    struct turn *turn;
    bool is_turn_closed;
    struct usage *usage;
    bool is_usage_closed;
    struct store store; /* the first partition */
    struct membership member;
    struct store other_stores[PARTITIONS - 1]; /* further ones */
    struct membership other_members[PARTITIONS - 1];
    struct keyring *keyring;
    struct key_checker *checker;
    struct secret secret;
    struct key_record key;
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_check checks[CHECKS];
    struct answer answers[CHECKS];
};

static struct store *store_at(struct cached *f, unsigned partition)
{
    return partition == 0 ? &f->store : &f->other_stores[partition - 1];
}

static struct membership *member_at(struct cached *f, unsigned partition)
{
    return partition == 0 ? &f->member : &f->other_members[partition - 1];
}

static void set_up_partitions(struct cached *f, size_t generations, unsigned count)
{
    struct membership *members[PARTITIONS];
    struct partitions partitions = {.count = count};

    memset(f, 0, sizeof *f);
    for (unsigned i = 0; i < count; i++) {
        partitions.stores[i] = store_at(f, i);
        members[i] = member_at(f, i);
        *members[i] = (struct membership){.has_lease = true, .now_ns = 1};
    }
    f->keyring = keyring_create(MASTERS, generations);
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    f->turn = turn_create(&f->loop);
    f->usage = usage_create(&f->loop, &partitions, INTERVAL_MS);
    f->checker = key_checker_create(f->keyring, &partitions, members, f->usage, &(struct key_memory){64, 1 << 20}, NULL,
                                    f->turn);
    f->key = (struct key_record){.id = id_mint(ID_KEY, 1), .account = id_mint(ID_ACCOUNT, 1), .mode = MODE_LIVE};
    cr_assert(key_set_name(&f->key, TEXT("a key")));
    secret_mint(KEY_API, MODE_LIVE, &f->secret);
    keyring_digest(f->keyring, KEYRING_KEY_DIGEST, 0, secret_text(&f->secret), f->digest);
}

static void set_up_cached(struct cached *f, size_t generations)
{
    set_up_partitions(f, generations, 1);
}

static void on_usage_closed(void *arg)
{
    ((struct cached *)arg)->is_usage_closed = true;
}

static void tear_down_cached(struct cached *f)
{
    key_checker_destroy(f->checker);
    keyring_destroy(f->keyring);
    usage_close(f->usage, on_usage_closed, f);
    turn_close(f->turn, on_turn_closed, &f->is_turn_closed);
    cr_assert(test_loop_until_set(&f->loop, &f->is_usage_closed, PATIENCE_MS));
    cr_assert(test_loop_until_set(&f->loop, &f->is_turn_closed, PATIENCE_MS));
    cr_assert(test_loop_finish(&f->loop));
}

static void begin_nth(struct cached *f, size_t nth)
{
    f->answers[nth] = (struct answer){0};
    key_check_begin(f->checker, &f->checks[nth], secret_text(&f->secret), on_checked, &f->answers[nth]);
}

static void expect_answer(const struct cached *f, size_t nth, enum key_verdict verdict)
{
    cr_assert_eq(f->answers[nth].count, 1);
    cr_assert_eq(f->answers[nth].verdict, verdict);
}

static void expect_at_once(struct cached *f, enum key_verdict expected)
{
    begin_nth(f, 0);
    turn_finish(f->turn);
    expect_answer(f, 0, expected);
}

static void expect_reads(struct cached *f, size_t nth, size_t reads)
{
    size_t before = f->store.find_count;

    begin_nth(f, nth);
    turn_finish(f->turn);
    cr_assert_eq(f->answers[nth].count, 0);
    cr_assert_eq(f->store.find_count, before + reads);
}

static void expect_read(struct cached *f, size_t nth)
{
    expect_reads(f, nth, 1);
}

static void expect_joins(struct cached *f, size_t nth)
{
    expect_reads(f, nth, 0);
}

Test(key_check, what_was_read_is_remembered_under_a_lease)
{
    struct cached f;

    set_up_cached(&f, 1);
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_ACCEPTED);
    expect_at_once(&f, KEY_ACCEPTED);
    cr_assert_eq(metric_values[METRIC_CACHE_NO_LEASE], 0);
    f.member.has_lease = false;
    expect_read(&f, 1);
    cr_assert_eq(metric_values[METRIC_CACHE_NO_LEASE], 1);
    f.member.has_lease = true;
    f.member.events.on_invalidated(f.member.arg, f.digest);
    expect_joins(&f, 2);
    fake_store_answer_find(&f.store, 1, STORE_UNAVAILABLE, NULL);
    expect_answer(&f, 1, KEY_UNDECIDED);
    expect_answer(&f, 2, KEY_UNDECIDED);
    tear_down_cached(&f);
}

/* If Sentinels choose the master, a replaced one still answers reads (rule 10). */
Test(key_check, a_fenced_read_decides_under_a_lease_alone)
{
    static const enum store_result FOUND[] = {STORE_OK, STORE_OK, STORE_NOT_FOUND};

    for (size_t i = 0; i < sizeof FOUND / sizeof *FOUND; i++) {
        struct cached f;

        set_up_cached(&f, 1);
        f.member.is_fenced = true;
        f.member.has_lease = false;
        f.key.revoked_ms = i == 1;
        expect_read(&f, 0);
        expect_joins(&f, 1);
        fake_store_answer_find(&f.store, 0, FOUND[i], FOUND[i] == STORE_OK ? &f.key : NULL);
        expect_answer(&f, 0, KEY_UNDECIDED);
        expect_answer(&f, 1, KEY_UNDECIDED);
        cr_assert_null(f.answers[0].key);
        expect_read(&f, 2);
        f.member.has_lease = true; /* by the time the reply comes */
        fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
        expect_answer(&f, 2, i == 1 ? KEY_REVOKED : KEY_ACCEPTED);
        tear_down_cached(&f);
    }
}

Test(key_check, a_revoked_key_is_remembered_as_such)
{
    struct cached f;

    set_up_cached(&f, 1);
    f.key.revoked_ms = 7;
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_REVOKED);
    expect_at_once(&f, KEY_REVOKED);
    tear_down_cached(&f);
}

/* A key that replaces another one. Only what a node accepts proves that the secret arrived. */
Test(key_check, the_first_use_of_a_successor_is_told_and_nothing_remembered_before)
{
    struct cached f;

    set_up_cached(&f, 1);
    f.key.is_unconfirmed = true;
    f.key.revoked_ms = 7;
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_REVOKED);
    cr_expect_eq(f.store.confirm_count, 0);
    f.key.revoked_ms = 0;
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    expect_answer(&f, 1, KEY_ACCEPTED);
    cr_expect_eq(f.store.confirm_count, 1);
    cr_expect_str_eq(f.store.confirmed.text, f.key.id.text);
    f.key.is_unconfirmed = false;
    expect_read(&f, 2);
    fake_store_answer_find(&f.store, 2, STORE_OK, &f.key);
    expect_answer(&f, 2, KEY_ACCEPTED);
    expect_at_once(&f, KEY_ACCEPTED);
    cr_expect_eq(f.store.confirm_count, 1);
    tear_down_cached(&f);
}

/* Suspended and resumed without a word about the key, which stays in memory. */
Test(key_check, a_remembered_key_of_a_suspended_account_is_refused)
{
    struct cached f;

    set_up_cached(&f, 1);
    f.key.is_suspended = true;
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_SUSPENDED);
    expect_at_once(&f, KEY_ACCEPTED);
    f.member.suspended = f.key.account;
    expect_at_once(&f, KEY_SUSPENDED);
    f.member.suspended = (struct id){0};
    expect_at_once(&f, KEY_ACCEPTED);
    /* A node that does not know who is suspended answers nothing from memory. */
    f.member.is_ignorant = true;
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    expect_answer(&f, 1, KEY_SUSPENDED);
    tear_down_cached(&f);
}

Test(key_check, a_record_of_another_kind_or_mode_is_not_remembered)
{
    for (size_t i = 0; i < OTHERS_COUNT; i++) {
        struct cached f;

        set_up_cached(&f, 1);
        secret_mint(KEY_API, MODE_TEST, &f.secret);
        f.key.kind = OTHERS[i].kind;
        f.key.mode = OTHERS[i].mode;
        f.key.revoked_ms = OTHERS[i].revoked_ms;
        expect_read(&f, 0);
        expect_joins(&f, 1);
        fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
        expect_answer(&f, 0, KEY_INVALID);
        expect_answer(&f, 1, KEY_INVALID);
        expect_at_once(&f, KEY_INVALID);
        f.member.now_ns += UINT64_C(3600) * 1000 * CLOCK_NS_PER_MS;
        expect_read(&f, 2);
        fake_store_answer_find(&f.store, 1, STORE_NOT_FOUND, NULL);
        tear_down_cached(&f);
    }
}

/* Records that somebody else wrote into Redis. */
Test(key_check, a_record_whose_ids_are_none_is_not_remembered)
{
    struct cached f;

    set_up_cached(&f, 1);
    f.key.id.text[10] = 'U';
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_ACCEPTED);
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    tear_down_cached(&f);
}

Test(key_check, an_unknown_key_is_remembered_for_a_moment)
{
    struct cached f;

    set_up_cached(&f, 1);
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_NOT_FOUND, NULL);
    expect_answer(&f, 0, KEY_INVALID);
    expect_at_once(&f, KEY_INVALID);
    f.member.has_lease = false;
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_NOT_FOUND, NULL);
    f.member.has_lease = true;
    expect_at_once(&f, KEY_INVALID);
    f.member.now_ns += UINT64_C(5000000000);
    expect_read(&f, 2);
    fake_store_answer_find(&f.store, 2, STORE_OK, &f.key);
    expect_at_once(&f, KEY_ACCEPTED);
    tear_down_cached(&f);
}

Test(key_check, a_read_that_an_invalidation_overtook_fills_nothing)
{
    struct cached f;

    set_up_cached(&f, 1);
    expect_read(&f, 0);
    f.member.epoch++;
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_ACCEPTED);
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    tear_down_cached(&f);
}

Test(key_check, the_end_of_a_membership_forgets_everything)
{
    struct cached f;

    set_up_cached(&f, 1);
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    f.member.events.on_ended(f.member.arg);
    expect_read(&f, 1);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    tear_down_cached(&f);
}

Test(key_check, checks_of_one_key_share_a_read)
{
    struct cached f;

    set_up_cached(&f, 1);
    expect_read(&f, 0);
    expect_joins(&f, 1);
    expect_joins(&f, 2);
    fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
    for (size_t i = 0; i < 3; i++)
        expect_answer(&f, i, KEY_ACCEPTED);
    tear_down_cached(&f);
}

/* A revocation may have been answered between a read and a check that joined it. So the read decides that check only if
 * the cache could. */
Test(key_check, who_came_after_a_read_is_not_decided_by_it_without_lease_or_after_an_invalidation)
{
    for (int case_number = 0; case_number < 2; case_number++) {
        struct cached f;

        set_up_cached(&f, 1);
        expect_read(&f, 0);
        expect_joins(&f, 1);
        expect_joins(&f, 2);
        if (case_number == 0)
            f.member.has_lease = false;
        else
            f.member.epoch++;
        fake_store_answer_find(&f.store, 0, STORE_OK, &f.key);
        expect_answer(&f, 0, KEY_ACCEPTED);
        cr_assert_eq(f.answers[1].count + f.answers[2].count, 0);
        cr_assert_eq(f.store.find_count, 2, "one read more, for both");
        expect_joins(&f, 3);
        f.member.has_lease = true;
        f.key.revoked_ms = 7;
        fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
        for (size_t i = 1; i <= 3; i++)
            expect_answer(&f, i, KEY_REVOKED);
        expect_at_once(&f, KEY_REVOKED);
        tear_down_cached(&f);
    }
}

Test(key_check, what_is_unknown_under_one_master_key_is_looked_up_under_the_older)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    struct cached f;

    set_up_cached(&f, 2);
    expect_read(&f, 0);
    fake_store_answer_find(&f.store, 0, STORE_NOT_FOUND, NULL);
    cr_assert_eq(f.answers[0].count, 0);
    cr_assert_eq(f.store.find_count, 2);
    fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
    expect_answer(&f, 0, KEY_ACCEPTED);
    expect_at_once(&f, KEY_ACCEPTED);
    key_check_digest(&f.checks[0], digest);
    cr_assert_arr_eq(digest, f.store.finds[1].digest, sizeof digest);
    tear_down_cached(&f);
}

static void remember(struct cached *f)
{
    expect_read(f, 0);
    fake_store_answer_find(&f->store, f->store.find_count - 1, STORE_OK, &f->key);
}

Test(key_check, checks_wait_for_company_and_are_all_answered)
{
    struct cached f;

    set_up_cached(&f, 1);
    remember(&f);
    for (size_t i = 0; i < CHECKS; i++)
        begin_nth(&f, i);
    for (size_t i = 0; i < CHECKS; i++)
        cr_assert_eq(f.answers[i].count, 0, "none inside the call that begins it, nor another one");
    turn_offer(f.turn);
    cr_assert_eq(f.answers[0].count, 1);
    cr_assert_eq(f.answers[CHECKS - 1].count, 0, "what is no whole slice waits for the turn's end");
    turn_finish(f.turn);
    for (size_t i = 0; i < CHECKS; i++)
        expect_answer(&f, i, KEY_ACCEPTED);
    cr_assert_eq(f.store.find_count, 1);
    tear_down_cached(&f);
}

/* Among others, and alone. */
Test(key_check, what_is_no_secret_waits_as_well)
{
    struct answer malformed = {0};
    struct key_check check;
    struct cached f;

    set_up_cached(&f, 1);
    remember(&f);
    for (int round = 0; round < 2; round++) {
        malformed = (struct answer){0};
        if (round == 0)
            begin_nth(&f, 1);
        key_check_begin(f.checker, &check, TEXT("ak_live_x"), on_checked, &malformed);
        if (round == 0)
            begin_nth(&f, 2);
        cr_assert_eq(malformed.count, 0);
        turn_finish(f.turn);
        cr_assert_eq(malformed.count, 1);
        cr_assert_eq(malformed.verdict, KEY_INVALID);
    }
    expect_answer(&f, 1, KEY_ACCEPTED);
    expect_answer(&f, 2, KEY_ACCEPTED);
    cr_assert_eq(f.store.find_count, 1);
    tear_down_cached(&f);
}

/* A revocation may be answered as soon as the node has dropped the key or lost its lease. */
Test(key_check, what_was_revoked_while_a_check_waited_for_company_is_read_again)
{
    for (int case_number = 0; case_number < 3; case_number++) {
        struct cached f;

        set_up_cached(&f, 1);
        remember(&f);
        begin_nth(&f, 1);
        if (case_number == 0)
            f.member.events.on_invalidated(f.member.arg, f.digest);
        else if (case_number == 1)
            f.member.events.on_ended(f.member.arg);
        else
            f.member.has_lease = false;
        turn_finish(f.turn);
        cr_assert_eq(f.answers[1].count, 0);
        cr_assert_eq(f.store.find_count, 2);
        f.key.revoked_ms = 7;
        fake_store_answer_find(&f.store, 1, STORE_OK, &f.key);
        expect_answer(&f, 1, KEY_REVOKED);
        tear_down_cached(&f);
    }
}

Test(key_check, a_wrong_checksum_is_not_asked_for)
{
    struct cached f;
    char *last;

    set_up_cached(&f, 1);
    last = &f.secret.text[secret_text(&f.secret).len - 1];
    *last = *last == '0' ? '1' : '0';
    for (int round = 0; round < 2; round++) {
        expect_at_once(&f, KEY_INVALID);
        cr_assert_null(f.answers[0].key);
        f.member.has_lease = false;
    }
    cr_assert_eq(f.store.find_count, 0);
    tear_down_cached(&f);
}

struct row {
    struct cached *f;
    size_t next, told;
};

static void told_in_row(void *arg, enum key_verdict verdict, const struct key_principal *key);

static void begin_next(struct row *row)
{
    struct cached *f = row->f;

    if (row->next < CHECKS)
        key_check_begin(f->checker, &f->checks[row->next++], secret_text(&f->secret), told_in_row, row);
}

/* Like a connection whose next request is already waiting. */
static void told_in_row(void *arg, enum key_verdict verdict, const struct key_principal *key)
{
    struct row *row = arg;

    cr_assert(verdict == KEY_ACCEPTED && key && text_equal(key->name, TEXT("a key")));
    row->told++;
    begin_next(row);
}

Test(key_check, who_is_answered_may_begin_another_check)
{
    struct cached f;
    struct row row = {.f = &f};

    set_up_cached(&f, 1);
    remember(&f);
    while (row.next < CHECKS / 2) /* more than one group */
        begin_next(&row);
    for (size_t i = 0; i < CHECKS; i++)
        turn_finish(f.turn);
    cr_assert_eq(row.told, CHECKS);
    tear_down_cached(&f);
}

/* Several partitions */

struct placed {
    struct secret secret;
    struct key_record key;
    uint8_t digest[KEY_DIGEST_BYTES];
};

static struct id account_in(unsigned partition)
{
    struct id account;

    do
        account = id_mint(ID_ACCOUNT, 1);
    while (bucket_of_account(&account) % PARTITIONS != partition);
    return account;
}

/* A key whose digests, under the first `generations` master keys, lie in these partitions, as does its account in the
 * last of them. */
static struct placed place_key(const struct cached *f, size_t generations, const unsigned *partitions)
{
    struct placed placed = {.key = {.id = id_mint(ID_KEY, 1), .mode = MODE_LIVE}};
    bool fits;

    placed.key.account = account_in(partitions[generations - 1]);
    do {
        fits = true;
        secret_mint(KEY_API, MODE_LIVE, &placed.secret);
        for (size_t i = 0; i < generations; i++) {
            keyring_digest(f->keyring, KEYRING_KEY_DIGEST, i, secret_text(&placed.secret), placed.digest);
            fits &= bucket_of_digest(placed.digest) % PARTITIONS == partitions[i];
        }
    } while (!fits);
    return placed;
}

static struct placed place_in(const struct cached *f, unsigned partition)
{
    return place_key(f, 1, &partition);
}

/* Several partitions, with a key that lies in that one. */
static struct placed set_up_placed(struct cached *f, unsigned partition)
{
    set_up_partitions(f, 1, PARTITIONS);
    return place_in(f, partition);
}

static void begin_placed(struct cached *f, size_t nth, const struct placed *placed)
{
    f->answers[nth] = (struct answer){0};
    key_check_begin(f->checker, &f->checks[nth], secret_text(&placed->secret), on_checked, &f->answers[nth]);
}

static size_t finds_of_all(struct cached *f)
{
    size_t finds = 0;

    for (unsigned i = 0; i < PARTITIONS; i++)
        finds += store_at(f, i)->find_count;
    return finds;
}

/* Answers the newest find of that partition. */
static void answer_newest(struct cached *f, unsigned partition, enum store_result result, const struct key_record *key)
{
    struct store *store = store_at(f, partition);

    fake_store_answer_find(store, store->find_count - 1, result, key);
}

/* Expects a read in that partition and in no other, and answers it. */
static void answer_read(struct cached *f, unsigned partition, const struct placed *placed, enum store_result result)
{
    size_t before = finds_of_all(f);

    begin_placed(f, 0, placed);
    turn_finish(f->turn);
    cr_assert_eq(f->answers[0].count, 0);
    cr_assert_eq(finds_of_all(f), before + 1);
    answer_newest(f, partition, result, result == STORE_OK ? &placed->key : NULL);
}

static void expect_cached(struct cached *f, const struct placed *placed, enum key_verdict verdict)
{
    begin_placed(f, 0, placed);
    turn_finish(f->turn);
    expect_answer(f, 0, verdict);
}

Test(key_check, a_miss_reads_the_partition_that_the_digest_names)
{
    struct cached f;

    set_up_partitions(&f, 2, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        const struct placed current = place_in(&f, i);
        const struct placed retired = place_key(&f, 2, (const unsigned[]){i, (i + 1) % PARTITIONS});

        answer_read(&f, i, &current, STORE_OK);
        expect_answer(&f, 0, KEY_ACCEPTED);
        expect_cached(&f, &current, KEY_ACCEPTED);
        answer_read(&f, i, &retired, STORE_NOT_FOUND);
        cr_assert_eq(f.answers[0].count, 0);
        answer_newest(&f, (i + 1) % PARTITIONS, STORE_OK, &retired.key);
        expect_answer(&f, 0, KEY_ACCEPTED);
        expect_cached(&f, &retired, KEY_ACCEPTED);
    }
    tear_down_cached(&f);
}

Test(key_check, without_a_cache_too_the_digest_names_the_partition)
{
    struct cached f;

    set_up_partitions(&f, 1, PARTITIONS);
    key_checker_destroy(f.checker);
    f.checker = key_checker_create(
        f.keyring,
        &(struct partitions){{store_at(&f, 0), store_at(&f, 1), store_at(&f, 2), store_at(&f, 3)}, PARTITIONS}, NULL,
        NULL, NULL, NULL, f.turn);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        const struct placed placed = place_in(&f, i);

        answer_read(&f, i, &placed, STORE_OK);
        expect_answer(&f, 0, KEY_ACCEPTED);
    }
    tear_down_cached(&f);
}

/* Of four checks in one slice, those of the partition without a lease are read. */
Test(key_check, a_cached_key_is_used_under_the_lease_of_its_partition_alone)
{
    enum { LOST = 2 };
    struct placed placed[PARTITIONS];
    struct cached f;

    set_up_partitions(&f, 1, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        placed[i] = place_in(&f, i);
        answer_read(&f, i, &placed[i], STORE_OK);
    }
    member_at(&f, LOST)->has_lease = false;
    for (unsigned i = 0; i < PARTITIONS; i++)
        begin_placed(&f, i, &placed[i]);
    turn_finish(f.turn);
    for (unsigned i = 0; i < PARTITIONS; i++)
        cr_assert_eq(f.answers[i].count, i == LOST ? 0 : 1, "partition %u", i);
    fake_store_answer_find(store_at(&f, LOST), 1, STORE_OK, &placed[LOST].key);
    expect_answer(&f, LOST, KEY_ACCEPTED);

    /* Nor does that lease serve the others. */
    for (unsigned i = 0; i < PARTITIONS; i++)
        member_at(&f, i)->has_lease = i == LOST;
    expect_cached(&f, &placed[LOST], KEY_ACCEPTED);
    for (unsigned i = 0; i < PARTITIONS; i++)
        if (i != LOST)
            answer_read(&f, i, &placed[i], STORE_OK);
    tear_down_cached(&f);
}

Test(key_check, an_unknown_digest_is_known_under_the_lease_of_its_partition_alone)
{
    struct cached f;
    struct placed placed = set_up_placed(&f, 3);

    answer_read(&f, 3, &placed, STORE_NOT_FOUND);
    expect_cached(&f, &placed, KEY_INVALID);
    member_at(&f, 3)->has_lease = false;
    answer_read(&f, 3, &placed, STORE_NOT_FOUND);
    for (unsigned i = 0; i < PARTITIONS; i++)
        member_at(&f, i)->has_lease = i == 3;
    expect_cached(&f, &placed, KEY_INVALID);
    tear_down_cached(&f);
}

Test(key_check, each_lease_is_looked_at_once_a_slice_if_at_all)
{
    enum { UNUSED_PARTITION = 1 };
    int looks[PARTITIONS] = {0};
    struct placed placed[PARTITIONS];
    struct cached f;

    set_up_partitions(&f, 1, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        placed[i] = place_in(&f, i);
        answer_read(&f, i, &placed[i], STORE_OK);
        member_at(&f, i)->looks = &looks[i];
    }
    memset(looks, 0, sizeof looks);
    for (size_t n = 0; n < TURN_SLICE; n++)
        begin_placed(&f, n, &placed[n % 2 ? 2 : 3]);
    turn_offer(f.turn);
    for (size_t n = 0; n < TURN_SLICE; n++)
        expect_answer(&f, n, KEY_ACCEPTED);
    cr_assert_eq(looks[UNUSED_PARTITION], 0);
    cr_assert_eq(looks[2], 1);
    cr_assert_eq(looks[3], 1);
    expect_cached(&f, &placed[2], KEY_ACCEPTED);
    cr_assert_eq(looks[2], 2, "the next slice looks again");
    tear_down_cached(&f);
}

Test(key_check, the_end_of_a_membership_forgets_its_partition_alone)
{
    enum { ENDED = 1 };
    struct placed known[PARTITIONS], unknown[PARTITIONS];
    struct cached f;

    set_up_partitions(&f, 1, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        known[i] = place_in(&f, i);
        unknown[i] = place_in(&f, i);
        answer_read(&f, i, &known[i], STORE_OK);
        answer_read(&f, i, &unknown[i], STORE_NOT_FOUND);
    }
    member_at(&f, ENDED)->events.on_ended(member_at(&f, ENDED)->arg);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        if (i == ENDED) {
            answer_read(&f, i, &known[i], STORE_OK);
            answer_read(&f, i, &unknown[i], STORE_NOT_FOUND);
        }
        expect_cached(&f, &known[i], KEY_ACCEPTED);
        expect_cached(&f, &unknown[i], KEY_INVALID);
    }
    tear_down_cached(&f);
}

Test(key_check, every_partition_invalidates_its_keys)
{
    struct cached f;

    set_up_partitions(&f, 1, PARTITIONS);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        const struct placed placed = place_in(&f, i);

        answer_read(&f, i, &placed, STORE_OK);
        member_at(&f, i)->events.on_invalidated(member_at(&f, i)->arg, placed.digest);
        answer_read(&f, i, &placed, STORE_OK);
    }
    tear_down_cached(&f);
}

Test(key_check, an_invalidation_in_another_partition_lets_a_read_fill)
{
    struct cached f;
    struct placed placed = set_up_placed(&f, 2);

    for (unsigned i = 0; i < PARTITIONS; i++) {
        begin_placed(&f, 1, &placed);
        turn_finish(f.turn);
        member_at(&f, i)->epoch++;
        fake_store_answer_find(store_at(&f, 2), i, STORE_OK, &placed.key);
        expect_answer(&f, 1, KEY_ACCEPTED);
        if (i != 2)
            expect_cached(&f, &placed, KEY_ACCEPTED);
        member_at(&f, 2)->events.on_ended(member_at(&f, 2)->arg);
    }
    cr_assert_eq(store_at(&f, 2)->find_count, PARTITIONS);

    begin_placed(&f, 1, &placed);
    turn_finish(f.turn);
    member_at(&f, 2)->epoch++;
    fake_store_answer_find(store_at(&f, 2), PARTITIONS, STORE_OK, &placed.key);
    answer_read(&f, 2, &placed, STORE_OK);
    tear_down_cached(&f);
}

/* Its revocation would be published in the partition of its account. */
Test(key_check, a_key_whose_account_lies_elsewhere_is_answered_but_not_remembered)
{
    struct cached f;
    struct placed placed = set_up_placed(&f, 0);

    placed.key.account = account_in(1);
    answer_read(&f, 0, &placed, STORE_OK);
    expect_answer(&f, 0, KEY_ACCEPTED);
    begin_placed(&f, 1, &placed);
    begin_placed(&f, 2, &placed);
    turn_finish(f.turn);
    fake_store_answer_find(&f.store, 1, STORE_OK, &placed.key);
    expect_answer(&f, 1, KEY_ACCEPTED);
    cr_assert_eq(f.answers[2].count, 0, "it came later than the read");
    placed.key.revoked_ms = 7;
    fake_store_answer_find(&f.store, 2, STORE_OK, &placed.key);
    expect_answer(&f, 2, KEY_REVOKED);
    tear_down_cached(&f);
}

/* Its digest leads to partition 0, which does not know it but may have an alias. */
static struct placed set_up_aliased(struct cached *f)
{
    struct placed placed = set_up_placed(f, 0);

    store_at(f, 0)->has_aliases = true;
    return placed;
}

/* It names the partition of the account. */
Test(key_check, an_alias_is_followed_and_nothing_remembered)
{
    struct cached f;
    struct placed placed = set_up_aliased(&f);

    placed.key.account = account_in(1);
    for (size_t i = 0; i < 2; i++) {
        begin_placed(&f, 0, &placed);
        turn_finish(f.turn);
        answer_newest(&f, 0, STORE_NOT_FOUND, NULL);
        begin_placed(&f, 1, &placed);
        turn_finish(f.turn);
        fake_store_answer_alias(store_at(&f, 0), STORE_OK, 1);
        cr_assert_eq(f.answers[0].count, 0);
        answer_newest(&f, 1, STORE_OK, &placed.key);
        expect_answer(&f, 0, KEY_ACCEPTED);
        expect_answer(&f, 1, KEY_ACCEPTED);
    }
    tear_down_cached(&f);
}

Test(key_check, without_an_alias_a_key_is_unknown)
{
    struct cached f;
    struct placed placed = set_up_aliased(&f);

    answer_read(&f, 0, &placed, STORE_NOT_FOUND);
    cr_assert_eq(f.answers[0].count, 0);
    fake_store_answer_alias(store_at(&f, 0), STORE_NOT_FOUND, 0);
    expect_answer(&f, 0, KEY_INVALID);
    expect_cached(&f, &placed, KEY_INVALID);
    tear_down_cached(&f);
}

/* A read that an alias led to and found nothing. */
Test(key_check, an_alias_that_leads_nowhere)
{
    struct cached f;
    struct placed placed = set_up_aliased(&f);

    store_at(&f, 1)->has_aliases = true;
    answer_read(&f, 0, &placed, STORE_NOT_FOUND);
    fake_store_answer_alias(store_at(&f, 0), STORE_OK, 1);
    answer_newest(&f, 1, STORE_NOT_FOUND, NULL);
    expect_answer(&f, 0, KEY_INVALID);
    tear_down_cached(&f);
}

Test(key_check, suspensions_are_those_of_the_partition)
{
    struct cached f;
    struct placed placed = set_up_placed(&f, 2);

    answer_read(&f, 2, &placed, STORE_OK);
    member_at(&f, 0)->is_ignorant = true;
    expect_cached(&f, &placed, KEY_ACCEPTED);
    member_at(&f, 2)->suspended = placed.key.account;
    expect_cached(&f, &placed, KEY_SUSPENDED);
    member_at(&f, 2)->is_ignorant = true;
    answer_read(&f, 2, &placed, STORE_OK);
    tear_down_cached(&f);
}

Test(key_check, where_a_master_may_be_replaced_reads_decide_under_the_lease_of_their_partition)
{
    struct cached f;
    struct placed placed = set_up_placed(&f, 1);

    for (unsigned i = 0; i < PARTITIONS; i++)
        member_at(&f, i)->is_fenced = true;
    member_at(&f, 1)->has_lease = false;
    answer_read(&f, 1, &placed, STORE_OK);
    expect_answer(&f, 0, KEY_UNDECIDED);
    for (unsigned i = 0; i < PARTITIONS; i++)
        member_at(&f, i)->has_lease = i == 1;
    answer_read(&f, 1, &placed, STORE_OK);
    expect_answer(&f, 0, KEY_ACCEPTED);
    tear_down_cached(&f);
}

/* With a shared table: readers accept what the checker would accept from its cache, and nothing else. */

enum { TABLE_KEYS = 256 };

struct sharing {
    struct cached f;
    struct shared_table *table;
    struct chatelaine_table reader;
};

static void on_used(void *arg, const struct key_principal *key, uint32_t uses)
{
    (void)arg, (void)key, (void)uses;
}

static void on_in_use(void *arg, uint32_t owner);

static bool has_room(void *arg)
{
    (void)arg;
    return true;
}

static void renew_lease(struct sharing *s)
{
    s->f.member.lease_until_ns = clock_boot_ns() + UINT64_C(60000) * CLOCK_NS_PER_MS;
    s->f.member.events.on_lease(s->f.member.arg);
}

static bool reader_accepts(const struct sharing *s)
{
    struct chatelaine_principal who;
    struct text secret = secret_text(&s->f.secret);

    return chatelaine_check(&s->reader, secret.ptr, secret.len, 0, &who);
}

/* With a read of the key under way. */
static void set_up_reading_under(struct sharing *s, size_t generations)
{
    struct partitions partitions = {.stores = {&s->f.store}, .count = 1};
    struct membership *members[] = {&s->f.member};
    int fds[2];

    set_up_cached(&s->f, generations);
    key_checker_destroy(s->f.checker);
    s->table = shared_table_create(&(struct shared_table_settings){.keys_max = TABLE_KEYS,
                                                                   .partitions = 1,
                                                                   .deployment = "",
                                                                   .used = on_used,
                                                                   .in_use = on_in_use,
                                                                   .has_room = has_room,
                                                                   .arg = s});
    s->f.checker = key_checker_create(s->f.keyring, &partitions, members, s->f.usage,
                                      &(struct key_memory){TABLE_KEYS, 1 << 20}, s->table, s->f.turn);
    shared_table_fds(s->table, &fds[0], &fds[1]);
    fds[0] = dup(fds[0]);
    fds[1] = dup(fds[1]);
    chatelaine_table_init(&s->reader, "/nowhere", CHATELAINE_ANY_DEPLOYMENT, CHATELAINE_OWNER_OF_FOLDER);
    cr_assert(chatelaine_accept_table(&s->reader, fds));
    renew_lease(s);
    expect_read(&s->f, 0);
    cr_assert_not(reader_accepts(s));
}

static void set_up_reading(struct sharing *s)
{
    set_up_reading_under(s, 1);
}

/* With the key in the cache and in the table. */
static void set_up_sharing(struct sharing *s)
{
    set_up_reading(s);
    fake_store_answer_find(&s->f.store, 0, STORE_OK, &s->f.key);
    cr_assert(reader_accepts(s));
}

static void tear_down_sharing(struct sharing *s)
{
    chatelaine_table_finish(&s->reader);
    tear_down_cached(&s->f);
    shared_table_destroy(s->table);
}

static void lose_lease(struct sharing *s)
{
    s->f.member.has_lease = false;
}

static void miss_a_message(struct sharing *s)
{
    s->f.member.epoch++;
}

static void forget_suspended(struct sharing *s)
{
    s->f.member.is_ignorant = true;
}

static void suspend(struct sharing *s)
{
    s->f.member.suspended = s->f.key.account;
}

static void revoke_key(struct sharing *s)
{
    s->f.key.revoked_ms = 1;
}

Test(key_check, a_read_shares_only_what_a_check_would)
{
    static void (*const HAPPEN[])(struct sharing *) = {lose_lease, miss_a_message, forget_suspended, suspend,
                                                       revoke_key};

    for (size_t i = 0; i < sizeof HAPPEN / sizeof *HAPPEN; i++) {
        struct sharing s;

        set_up_reading(&s);
        HAPPEN[i](&s);
        fake_store_answer_find(&s.f.store, 0, STORE_OK, &s.f.key);
        cr_expect_not(reader_accepts(&s), "case %zu", i);
        cr_expect_eq(shared_table_keys(s.table), 0, "case %zu", i);
        tear_down_sharing(&s);
    }
}

Test(key_check, an_invalidated_key_is_shared_no_more)
{
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.events.on_invalidated(s.f.member.arg, s.f.digest);
    cr_expect_not(reader_accepts(&s));
    tear_down_sharing(&s);
}

Test(key_check, a_lease_that_was_given_up_shares_nothing)
{
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.lease_until_ns = 0;
    s.f.member.events.on_lease(s.f.member.arg);
    cr_expect_not(reader_accepts(&s));
    renew_lease(&s);
    cr_expect_not(reader_accepts(&s), "perhaps something was missed");
    expect_at_once(&s.f, KEY_ACCEPTED);
    cr_expect(reader_accepts(&s), "the checker still has it, so that it was not");
    s.f.member.events.on_ended(s.f.member.arg);
    cr_expect_not(reader_accepts(&s));
    tear_down_sharing(&s);
}

Test(key_check, keys_of_an_account_that_is_suspended_are_shared_no_more)
{
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.suspended = s.f.key.account;
    s.f.member.events.on_account(s.f.member.arg, &s.f.key.account);
    cr_expect_not(reader_accepts(&s));
    expect_at_once(&s.f, KEY_SUSPENDED);
    cr_expect_not(reader_accepts(&s));
    s.f.member.suspended = (struct id){0};
    s.f.member.events.on_account(s.f.member.arg, &s.f.key.account);
    expect_at_once(&s.f, KEY_ACCEPTED);
    cr_expect(reader_accepts(&s));
    tear_down_sharing(&s);
}

Test(key_check, without_knowing_who_is_suspended_nothing_is_shared)
{
    struct id other = id_mint(ID_ACCOUNT, 2);
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.is_ignorant = true;
    renew_lease(&s);
    cr_expect_not(reader_accepts(&s));
    s.f.member.is_ignorant = false;
    renew_lease(&s);
    expect_at_once(&s.f, KEY_ACCEPTED);
    cr_assert(reader_accepts(&s));
    s.f.member.is_ignorant = true;
    s.f.member.events.on_account(s.f.member.arg, &other);
    cr_expect_not(reader_accepts(&s));
    renew_lease(&s);
    cr_expect_not(reader_accepts(&s));
    expect_read(&s.f, 1);
    s.f.member.is_ignorant = false;
    renew_lease(&s);
    cr_expect_not(reader_accepts(&s), "it was put in before the set was unknown");
    fake_store_answer_find(&s.f.store, 1, STORE_UNAVAILABLE, NULL);
    tear_down_sharing(&s);
}

/* Nobody checks anything here: readers have it. */
Test(key_check, shared_keys_age_with_each_renewal)
{
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.now_ns += KEY_CACHE_AGE_MAX_S * UINT64_C(1000) * CLOCK_NS_PER_MS;
    renew_lease(&s);
    cr_expect_not(reader_accepts(&s));
    tear_down_sharing(&s);
}

/* Keys that readers use are read again before they are too old for the cache. */

static void on_in_use(void *arg, uint32_t owner)
{
    struct sharing *s = arg;

    key_checker_in_use(s->f.checker, owner);
}

/* A round of the uses, after readers accepted the key. */
static void use(struct sharing *s)
{
    cr_assert(reader_accepts(s));
    cr_assert(shared_table_count_uses(s->table, shared_table_slots(s->table)));
}

/* A key that is alone in the cache is met by the clock hand at the end of a round, and refreshed an eighth of a round
 * before its second end. */
enum { ROUND_S = KEY_CACHE_AGE_MAX_S / 2, LEAD_S = ROUND_S / 8 };

static void let_pass(struct sharing *s, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        s->f.member.now_ns += UINT64_C(1000) * CLOCK_NS_PER_MS;
        renew_lease(s);
    }
}

/* With a refresh under way: the store's second read. */
static void set_up_refreshing(struct sharing *s)
{
    set_up_sharing(s);
    renew_lease(s);
    use(s);
    let_pass(s, ROUND_S);
    use(s);
    cr_assert_eq(s->f.store.find_count, 1, "it was young");
    let_pass(s, ROUND_S - LEAD_S);
    cr_assert_eq(s->f.store.find_count, 2);
    cr_assert_arr_eq(s->f.store.finds[1].digest, s->f.digest, KEY_DIGEST_BYTES);
}

Test(key_check, a_key_in_use_is_read_again_and_stays)
{
    struct sharing s;

    set_up_refreshing(&s);
    for (size_t i = 1; i < 4; i++) {
        cr_assert_eq(s.f.store.find_count, i + 1);
        use(&s);
        fake_store_answer_find(&s.f.store, i, STORE_OK, &s.f.key);
        let_pass(&s, ROUND_S);
    }
    fake_store_answer_find(&s.f.store, 4, STORE_OK, &s.f.key);
    let_pass(&s, ROUND_S);
    cr_expect_eq(s.f.store.find_count, 5, "nobody used it");
    cr_expect(reader_accepts(&s));
    let_pass(&s, LEAD_S);
    cr_expect_not(reader_accepts(&s));
    tear_down_sharing(&s);
}

/* What it says, or that it may say nothing. */
Test(key_check, a_refresh_decides_no_more_than_a_read)
{
    static const struct {
        void (*happens)(struct sharing *); /* before the answer; NULL: nothing */
        enum store_result result;
        bool stays, grows_old;
    } CASES[] = {
        {NULL, STORE_OK, true, false},          {NULL, STORE_NOT_FOUND, false, true},
        {NULL, STORE_UNAVAILABLE, true, true},  {revoke_key, STORE_OK, false, true},
        {miss_a_message, STORE_OK, true, true}, {lose_lease, STORE_OK, true, false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct sharing s;

        set_up_refreshing(&s);
        if (CASES[i].happens)
            CASES[i].happens(&s);
        fake_store_answer_find(&s.f.store, 1, CASES[i].result, &s.f.key);
        cr_expect_eq(reader_accepts(&s), CASES[i].stays, "case %zu", i);
        s.f.member.has_lease = true;
        let_pass(&s, LEAD_S);
        cr_expect_eq(reader_accepts(&s), !CASES[i].grows_old, "case %zu", i);
        tear_down_sharing(&s);
    }
}

Test(key_check, a_key_of_an_older_master_key_is_refreshed_by_its_own_digest)
{
    struct sharing s;

    set_up_reading_under(&s, 2);
    fake_store_answer_find(&s.f.store, 0, STORE_NOT_FOUND, NULL);
    fake_store_answer_find(&s.f.store, 1, STORE_OK, &s.f.key);
    renew_lease(&s);
    let_pass(&s, ROUND_S);
    use(&s);
    let_pass(&s, ROUND_S - LEAD_S);
    cr_assert_eq(s.f.store.find_count, 3);
    cr_expect_arr_eq(s.f.store.finds[2].digest, s.f.store.finds[1].digest, KEY_DIGEST_BYTES);
    fake_store_answer_find(&s.f.store, 2, STORE_OK, &s.f.key);
    let_pass(&s, LEAD_S);
    cr_expect(reader_accepts(&s));
    tear_down_sharing(&s);
}

static void count_stopped(void *arg)
{
    ++*(int *)arg;
}

/* One that began before the revocation decides no check that begins after it. */
Test(key_check, a_check_that_joins_a_refresh_is_decided_by_a_later_read)
{
    struct sharing s;
    int stopped = 0;

    set_up_refreshing(&s);
    s.f.member.epoch++;
    s.f.member.events.on_invalidated(s.f.member.arg, s.f.digest);
    expect_joins(&s.f, 1);
    fake_store_answer_find(&s.f.store, 1, STORE_OK, &s.f.key);
    cr_assert_eq(s.f.answers[1].count, 0);
    cr_assert_eq(s.f.store.find_count, 3);
    s.f.key.revoked_ms = 1;
    fake_store_answer_find(&s.f.store, 2, STORE_OK, &s.f.key);
    expect_answer(&s.f, 1, KEY_REVOKED);
    cr_expect_not(reader_accepts(&s));
    cr_expect_not(key_checker_stop(s.f.checker, count_stopped, &stopped), "the later read was no refresh");
    tear_down_sharing(&s);
}

Test(key_check, a_refresh_joins_a_read)
{
    struct sharing s;

    set_up_sharing(&s);
    renew_lease(&s);
    let_pass(&s, ROUND_S);
    use(&s);
    s.f.member.has_lease = false;
    expect_read(&s.f, 1);
    s.f.member.has_lease = true;
    let_pass(&s, ROUND_S - LEAD_S);
    cr_expect_eq(s.f.store.find_count, 2);
    fake_store_answer_find(&s.f.store, 1, STORE_OK, &s.f.key);
    let_pass(&s, LEAD_S);
    cr_expect(reader_accepts(&s));
    tear_down_sharing(&s);
}

static void share_more(struct sharing *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t nth = s->f.store.find_count;

        s->f.key.id = id_mint(ID_KEY, 1);
        secret_mint(KEY_API, MODE_LIVE, &s->f.secret);
        begin_nth(&s->f, 0);
        turn_finish(s->f.turn);
        fake_store_answer_find(&s->f.store, nth, STORE_OK, &s->f.key);
        cr_assert(reader_accepts(s));
    }
}

/* Some at a time; the next ones when these are answered, but not while the store does not answer. */
Test(key_check, many_keys_are_refreshed_in_turn)
{
    enum { MORE = 200, AT_A_TIME = 128 };
    struct sharing s;
    int stopped = 0;

    set_up_sharing(&s);
    renew_lease(&s);
    share_more(&s, MORE);
    let_pass(&s, ROUND_S - LEAD_S - 1);
    for (uint32_t owner = 0; owner <= MORE; owner++)
        key_checker_in_use(s.f.checker, owner);
    let_pass(&s, ROUND_S);
    const size_t first = 1 + MORE;
    cr_assert_eq(s.f.store.find_count, first + AT_A_TIME);
    fake_store_answer_find(&s.f.store, first, STORE_NOT_FOUND, NULL);
    cr_expect_eq(s.f.store.find_count, first + AT_A_TIME + 1);
    fake_store_answer_find(&s.f.store, first + 1, STORE_UNAVAILABLE, NULL);
    cr_expect_eq(s.f.store.find_count, first + AT_A_TIME + 1);
    s.f.member.now_ns += UINT64_C(1000) * CLOCK_NS_PER_MS;
    renew_lease(&s);
    cr_expect_eq(s.f.store.find_count, first + AT_A_TIME + 2);
    cr_expect(key_checker_stop(s.f.checker, count_stopped, &stopped));
    for (size_t i = first + 2; i < s.f.store.find_count; i++) {
        cr_expect_eq(stopped, 0);
        let_pass(&s, 1);
        fake_store_answer_find(&s.f.store, i, STORE_NOT_FOUND, NULL);
    }
    cr_expect_eq(stopped, 1);
    cr_expect_eq(s.f.store.find_count, first + AT_A_TIME + 2, "no new one");
    tear_down_sharing(&s);
}

/* Checks of what is no key let the cache age. */
Test(key_check, nothing_is_refreshed_without_a_lease)
{
    struct sharing s;
    int stopped = 0;

    set_up_sharing(&s);
    renew_lease(&s);
    let_pass(&s, ROUND_S);
    use(&s);
    s.f.member.has_lease = false;
    for (int i = 0; i < ROUND_S - LEAD_S; i++) {
        s.f.member.now_ns += UINT64_C(1000) * CLOCK_NS_PER_MS;
        key_check_begin(s.f.checker, &s.f.checks[0], TEXT("no key"), on_checked, &s.f.answers[0]);
        turn_finish(s.f.turn);
    }
    cr_expect_eq(s.f.store.find_count, 1);
    cr_expect_not(key_checker_stop(s.f.checker, count_stopped, &stopped));
    tear_down_sharing(&s);
    cr_expect_eq(stopped, 0);
}

Test(key_check, a_key_that_was_read_again_is_shared_as_it_is_now)
{
    struct sharing s;

    set_up_sharing(&s);
    s.f.member.has_lease = false;
    expect_read(&s.f, 1);
    s.f.key.revoked_ms = 1;
    fake_store_answer_find(&s.f.store, 1, STORE_OK, &s.f.key);
    expect_answer(&s.f, 1, KEY_REVOKED);
    cr_expect_not(reader_accepts(&s));
    tear_down_sharing(&s);
}
