#include "base/clock.h"
#include "base/histogram.h"
#include "deadline.h"
#include "base/metrics.h"
#include "redis/sentinel.h"
#include "engine/state.h"
#include "records/store_parts.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(key_store, .init = fixture_start, .fini = fixture_stop);

static enum store_result find_key(const uint8_t digest[KEY_DIGEST_BYTES], struct key_answer *answer)
{
    *answer = (struct key_answer){0};
    key_store_find(fixture.store, digest, key_answer_done, answer);
    return answer_wait(&answer->answer);
}

static const struct key_view EVERYTHING = {.any_kind = true};

static enum store_result get_key(const struct key_view *view, const struct id *id, struct key_answer *answer)
{
    *answer = (struct key_answer){0};
    key_store_get(fixture.store, view, id, key_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result revoke_key(const struct key_view *view, const struct id *id, struct key_answer *answer)
{
    *answer = (struct key_answer){0};
    key_store_revoke(fixture.store, view, id, &SOMEBODY, key_answer_done, answer);
    return answer_wait(&answer->answer);
}

static void expect_same_to_check(const struct key_record *got, const struct key_record *want)
{
    cr_expect(id_equal(&got->id, &want->id) && id_equal(&got->account, &want->account));
    cr_expect(got->kind == want->kind && got->mode == want->mode && got->scopes == want->scopes);
    cr_expect(text_equal(key_name(got), key_name(want)));
}

static void expect_same(const struct key_record *got, const struct key_record *want)
{
    expect_same_to_check(got, want);
    cr_expect_eq(got->created_ms, want->created_ms);
    cr_expect_str_eq(got->last4, want->last4);
}

/* Fields that a check does not read are empty. */
static void expect_found(const struct key_record *got, const struct key_record *want)
{
    expect_same_to_check(got, want);
    cr_expect_eq(got->created_ms, want->created_ms);
    cr_expect_eq(got->last_used_ms, 0);
    cr_expect_str_eq(got->last4, want->last4);
}

/* The record's name is built twice: by the scripts' prelude, and in C for the check path. */
Test(key_store, what_was_inserted_is_found)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 0xab, digest);
    struct key_answer answer;

    cr_expect_eq(find_key(digest, &answer), STORE_NOT_FOUND);
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    expect_found(&answer.key, &key);
    cr_expect_eq(answer.key.revoked_ms, 0);
    cr_assert_eq(get_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    expect_same(&answer.key, &key);
    digest[31]++;
    cr_expect_eq(find_key(digest, &answer), STORE_NOT_FOUND);
    expect_newest_event(&account, "api_key.created", 1);
}

Test(key_store, is_found_behind_any_prefix)
{
    static const char *const PREFIXES[] = {
        "", "t:", "%s*8\r\n:", "0123456789012345678901234567890123456789012345678901234567890123"};

    for (size_t i = 0; i < sizeof PREFIXES / sizeof *PREFIXES; i++) {
        uint8_t digest[KEY_DIGEST_BYTES];
        struct key_answer answer;

        fixture_close_store();
        fixture_open_store(PREFIXES[i]);

        struct id account = some_account();
        struct key_record key = some_key(&account, MODE_LIVE, 0xab, digest);

        cr_assert_eq(insert_key(&key, digest), STORE_OK, "%s", PREFIXES[i]);
        cr_assert_eq(find_key(digest, &answer), STORE_OK, "%s", PREFIXES[i]);
        expect_found(&answer.key, &key);
    }
}

Test(key_store_prefix, over_the_maximum_stops_the_node, .signal = SIGABRT)
{
    const struct store_settings settings = {
        .parts = STORE_PARTS,
        .timeout_ms = 1000,
        .prefix = "01234567890123456789012345678901234567890123456789012345678901234{255}:"};
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    store_create(&loop, &settings, NULL, NULL);
}

Test(key_store, longest_name_and_device_key)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    char name[KEY_NAME_MAX_BYTES];
    struct key_answer answer;

    for (size_t i = 0; i < sizeof name; i += 4)
        memcpy(name + i, "\xf0\x9f\x94\x91", 4);
    cr_assert(key_set_name(&key, (struct text){name, sizeof name}));
    key.kind = KEY_DEVICE;
    key.id = id_mint(ID_DEVICE, key.created_ms);
    key.scopes = SCOPE_DOCUMENTS_WRITE;
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    expect_found(&answer.key, &key);
    cr_assert_eq(get_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    expect_same(&answer.key, &key);
    expect_newest_event(&account, "device_key.created", 1);
}

/* A node that is cut off may hold a lease from the replaced master, and would ask that one. */
Test(key_store, an_insertion_waits_for_leases_of_a_replaced_master)
{
    enum { LEFT_MS = 300, FENCE_MS = 4510, LEASES_MS = 1300 };
    const struct redis_target target = {.master_name = "keys", .seed_count = 1, .seeds = {{"127.0.0.1", 1}}};
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);

    struct fence *fence = lease_fence(store_lease(fixture.store));

    fixture.store->sentinel = redis_sentinel_create(&fixture.loop, &target, NULL, 100);
    fixture.store->resolver = redis_sentinel_resolver(fixture.store->sentinel);
    fence->resolver = fixture.store->resolver;
    fence->may_be_replaced = true;
    cr_assert_eq(uv_timer_stop(&fixture.store->probe), 0);
    fence->replicas_listed = 1;
    uint64_t began_ns = clock_boot_ns();
    fence->connected_ns = began_ns - (FENCE_MS + LEASES_MS - LEFT_MS) * UINT64_C(1000000);
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_geq(clock_boot_ns() - began_ns, LEFT_MS * UINT64_C(1000000));
    /* And no longer. A busy machine may delay one of these, but the wait would delay each. */
    uint64_t least_ns = UINT64_MAX;
    for (uint8_t n = 2; n < 6; n++) {
        began_ns = clock_boot_ns();
        key = some_key(&account, MODE_LIVE, n, digest);
        cr_assert_eq(insert_key(&key, digest), STORE_OK);
        uint64_t took_ns = clock_boot_ns() - began_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    cr_assert_lt(least_ns, LEASES_MS * UINT64_C(1000000));
    cr_assert_eq(histogram_count(HISTOGRAM_BARRIER), 0, "nothing was revoked");
}

Test(key_store, insertion_needs_an_account_and_a_new_key)
{
    struct id account = some_account(), nowhere = id_mint(ID_ACCOUNT, 1);
    uint8_t digest[KEY_DIGEST_BYTES], other_digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_record other = some_key(&nowhere, MODE_LIVE, 2, other_digest);

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_expect_eq(insert_key(&key, digest), STORE_CONFLICT);
    cr_expect_eq(insert_key(&key, other_digest), STORE_CONFLICT);
    cr_expect_eq(insert_key(&other, other_digest), STORE_REFUSED);
}

Test(key_store, revocation_is_terminal)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_answer answer;
    int64_t revoked_ms;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    expect_same(&answer.key, &key);
    revoked_ms = answer.key.revoked_ms;
    cr_expect_geq(revoked_ms, key.created_ms);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    cr_expect_eq(answer.key.revoked_ms, revoked_ms);
    cr_assert_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    cr_expect_eq(answer.key.revoked_ms, revoked_ms);
    expect_newest_event(&account, "api_key.revoked", 2);
}

Test(key_store, views_hide)
{
    struct id account = some_account(), other = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_answer answer;
    const struct {
        struct key_view view;
        bool is_seen;
    } cases[] = {
        {EVERYTHING, true},
        {{.account = account, .kind = KEY_API}, true},
        {{.account = account, .any_kind = true}, true},
        {{.account = other, .kind = KEY_API}, false},
        {{.account = account, .kind = KEY_DEVICE}, false},
        {{.account = account, .kind = KEY_API, .test_only = true}, false},
    };

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(get_key(&cases[i].view, &key.id, &answer), cases[i].is_seen ? STORE_OK : STORE_NOT_FOUND, "%zu",
                     i);
    for (size_t i = sizeof cases / sizeof *cases; i-- > 0;)
        cr_expect_eq(revoke_key(&cases[i].view, &key.id, &answer), cases[i].is_seen ? STORE_OK : STORE_NOT_FOUND, "%zu",
                     i);
}

struct page {
    struct answer answer;
    size_t count;
    bool has_more;
    struct id ids[LIST_LIMIT_MAX];
    int64_t last_used_ms;
};

static void page_listed(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct page *page = arg;

    for (size_t i = 0; i < count; i++)
        page->ids[i] = keys[i].id;
    page->last_used_ms = count > 0 ? keys[0].last_used_ms : 0;
    page->count = count;
    page->has_more = has_more;
    answer_done(&page->answer, result);
}

static void list(const struct key_query *query, struct page *page)
{
    *page = (struct page){0};
    key_store_list(fixture.store, query, page_listed, page);
    cr_assert_eq(answer_wait(&page->answer), STORE_OK);
}

enum { KEYS = 7 };

/* Odd ones are in test mode; every third is revoked. */
static void make_keys(const struct id *account, struct id ret_ids[KEYS])
{
    for (uint8_t i = 0; i < KEYS; i++) {
        uint8_t digest[KEY_DIGEST_BYTES];
        struct key_record key = some_key(account, i % 2 ? MODE_TEST : MODE_LIVE, i, digest);
        struct key_answer answer;

        cr_assert_eq(insert_key(&key, digest), STORE_OK);
        if (i % 3 == 0)
            cr_assert_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
        ret_ids[i] = key.id;
    }
}

static void expect_page(const struct page *page, const struct id *ids, const char *digits, bool has_more,
                        const char *what)
{
    cr_assert_eq(page->count, strlen(digits), "%s: %zu", what, page->count);
    cr_expect_eq(page->has_more, has_more, "%s", what);
    for (size_t i = 0; i < page->count; i++)
        cr_expect(id_equal(&page->ids[i], &ids[digits[i] - '0']), "%s: item %zu", what, i);
}

Test(key_store, lists_are_filtered_and_paged)
{
    struct id account = some_account(), ids[KEYS];
    struct page page;

    make_keys(&account, ids);

    const struct key_view view = {.account = account, .kind = KEY_API};
    const struct {
        const char *what;
        struct key_query query;
        const char *expected;
        bool has_more;
    } cases[] = {
        {"all", {.view = view, .limit = 20}, "6543210", false},
        {"exactly all", {.view = view, .limit = KEYS}, "6543210", false},
        {"first page", {.view = view, .limit = 3}, "654", true},
        {"after", {.view = view, .limit = 3, .starting_after = ids[4]}, "321", true},
        {"after, last", {.view = view, .limit = 3, .starting_after = ids[1]}, "0", false},
        {"before", {.view = view, .limit = 2, .ending_before = ids[2]}, "43", true},
        {"before, to the newest", {.view = view, .limit = 4, .ending_before = ids[2]}, "6543", false},
        {"test", {.view = view, .limit = 20, .by_mode = true, .mode = MODE_TEST}, "531", false},
        {"live", {.view = view, .limit = 2, .by_mode = true, .mode = MODE_LIVE}, "64", true},
        {"active", {.view = view, .limit = 20, .status = KEYS_ACTIVE}, "5421", false},
        {"revoked", {.view = view, .limit = 20, .status = KEYS_REVOKED}, "630", false},
        {"revoked, test",
         {.view = view, .limit = 20, .status = KEYS_REVOKED, .by_mode = true, .mode = MODE_TEST},
         "3",
         false},
        {"any kind", {.view = {.account = account, .any_kind = true}, .limit = 20}, "6543210", false},
        {"test only", {.view = {.account = account, .test_only = true}, .limit = 20}, "531", false},
        {"test only, live",
         {.view = {.account = account, .test_only = true}, .limit = 20, .by_mode = true, .mode = MODE_LIVE},
         "",
         false},
        {"devices", {.view = {.account = account, .kind = KEY_DEVICE}, .limit = 20}, "", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        list(&cases[i].query, &page);
        expect_page(&page, ids, cases[i].expected, cases[i].has_more, cases[i].what);
    }
}

Test(key_store, pages_show_older_keys_once_while_keys_are_made)
{
    struct id account = some_account(), ids[KEYS];
    struct key_query query = {.view = {.account = account}, .limit = 2};
    char seen[KEYS + 1] = "";
    struct page page;

    make_keys(&account, ids);
    do {
        uint8_t digest[KEY_DIGEST_BYTES];
        struct key_record newer = some_key(&account, MODE_LIVE, (uint8_t)(100 + strlen(seen)), digest);

        list(&query, &page);
        for (size_t i = 0; i < page.count; i++)
            for (size_t n = 0; n < KEYS; n++)
                if (id_equal(&page.ids[i], &ids[n]))
                    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%zu", n);
        query.starting_after = page.ids[page.count - 1];
        cr_assert_eq(insert_key(&newer, digest), STORE_OK);
    } while (page.has_more);
    cr_expect_str_eq(seen, "6543210");
}

Test(key_store, last_use_is_told_by_id_and_in_lists)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_query query = {.view = {.account = account}, .limit = 2};
    struct key_answer answer;
    struct page page;
    char name[64];

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    snprintf(name, sizeof name, "t:acct:%s:key_uses", account.text);
    redis_server_tell(&fixture.server, "EVAL",
                      "redis.call('HSET', KEYS[1], ARGV[1], struct.pack('<I6I6c10I6', 4711, 2, '2026-01-31', 1))", "1",
                      name, key.id.text, NULL);
    cr_assert_eq(get_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    cr_expect_eq(answer.key.last_used_ms, 4711);
    list(&query, &page);
    cr_expect_eq(page.last_used_ms, 4711);
}

/* core validates records; this tests that no invalid one is ever returned. */
Test(key_store, records_that_cannot_be_are_never_answered)
{
    static const char *const cases[] = {
        "",
        "x",
        "key_01jd0000000000000000000001 acct_01jd0000000000000000000002 live wxyz 4096 7 - Name",
        "dev_01jd0000000000000000000001 acct_01jd0000000000000000000002 live wxyz 4095 7 - Name",
        "key_01jd0000000000000000000001 acct_01jd0000000000000000000002 live wxyz 3 7 no Name",
    };
    struct id account = some_account();
    const char *name = "t:key:0700000000000000000000000000000000000000000000000000000000000000";
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 7, digest);
    struct key_answer answer;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redis_server_tell(&fixture.server, "SET", name, cases[i], NULL);
        cr_expect_eq(find_key(digest, &answer), STORE_UNAVAILABLE, "find, case %zu", i);
        cr_expect_neq(get_key(&EVERYTHING, &key.id, &answer), STORE_OK, "get, case %zu", i);
        cr_expect_neq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK, "revoke, case %zu", i);
    }
    redis_server_tell(&fixture.server, "DEL", name, NULL);
    redis_server_tell(&fixture.server, "HSET", name, "id", key.id.text, NULL);
    cr_expect_eq(find_key(digest, &answer), STORE_UNAVAILABLE);
}

Test(key_store, many_finds_at_once)
{
    enum { FINDS = 3000 };
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_answer *answers = calloc(FINDS, sizeof *answers);

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    for (size_t i = 0; i < FINDS; i++) {
        digest[0] = i % 2; /* every second one exists */
        key_store_find(fixture.store, digest, key_answer_done, &answers[i]);
    }
    for (size_t i = 0; i < FINDS; i++) {
        cr_assert(test_loop_until_set(&fixture.loop, &answers[i].answer.is_done, PATIENCE_MS));
        cr_expect_eq(answers[i].answer.result, i % 2 ? STORE_OK : STORE_NOT_FOUND);
        cr_expect_eq(answers[i].answer.calls, 1);
    }
    free(answers);
}

Test(key_store, closing_completes_what_is_under_way)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_query query = {.view = {.account = account}, .limit = 2};
    struct key_answer found = {0}, got = {0}, revoked = {0};
    struct answer inserted = {0};
    struct page page = {0};

    redis_server_freeze(&fixture.server);
    key_store_find(fixture.store, digest, key_answer_done, &found);
    key_store_get(fixture.store, &EVERYTHING, &key.id, key_answer_done, &got);
    key_store_revoke(fixture.store, &EVERYTHING, &key.id, &SOMEBODY, key_answer_done, &revoked);
    key_store_list(fixture.store, &query, page_listed, &page);
    key_store_insert(fixture.store, &key, digest, &SOMEBODY, answer_inserted, &inserted);
    key_store_discard(fixture.store, &key.id, &SOMEBODY);
    fixture_close_store();
    redis_server_thaw(&fixture.server);
    cr_expect(found.answer.calls == 1 && got.answer.calls == 1 && revoked.answer.calls == 1);
    cr_expect(page.answer.calls == 1 && inserted.calls == 1);
    cr_expect_neq(found.answer.result, STORE_OK);
    cr_expect_neq(inserted.result, STORE_OK);
}

static bool no_discards(void *store)
{
    return key_store_discards(store) == 0;
}

Test(key_store, discards_outlive_an_outage)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES], late_digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct key_record late = some_key(&account, MODE_LIVE, 2, late_digest);
    char actor[16] = "usr_1";
    const struct audit_source source = {.actor = text_of(actor)};
    struct key_answer answer;
    bool is_ready = false;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    redis_server_kill(&fixture.server);
    key_store_discard(fixture.store, &key.id, &source);
    key_store_discard(fixture.store, &late.id, &source);
    memset(actor, 'x', sizeof actor); /* the caller's texts may end */
    test_loop_for(&fixture.loop, 600);
    cr_expect_eq(key_store_discards(fixture.store), 2);

    redis_server_restart(&fixture.server);
    cr_assert(test_loop_until(&fixture.loop, no_discards, fixture.store, PATIENCE_MS));
    while (!is_ready) {
        is_ready = store_is_ready(fixture.store);
        test_loop_for(&fixture.loop, 10);
    }
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    cr_expect_gt(answer.key.revoked_ms, 0);
    expect_newest_event(&account, "api_key.revoked", 2);
    /* An insertion that arrives after its discard makes no key. */
    cr_expect_eq(insert_key(&late, late_digest), STORE_CONFLICT);
}

/* An attacker writes to Redis */

static void name_of_key(const uint8_t digest[KEY_DIGEST_BYTES], char ret_name[80])
{
    snprintf(ret_name, 80, "t:key:%02x%062d", digest[0], 0);
}

static void expect_refused(const uint8_t digest[KEY_DIGEST_BYTES], const struct id *id)
{
    struct key_answer answer;

    metric_set(METRIC_RECORDS_ALTERED, 0);
    cr_expect_eq(find_key(digest, &answer), STORE_NOT_FOUND);
    cr_expect_eq(metric_values[METRIC_RECORDS_ALTERED], 1);
    cr_expect_eq(get_key(&EVERYTHING, id, &answer), STORE_NOT_FOUND);
}

Test(key_store, a_record_that_somebody_altered_is_not_found)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES], other_digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_TEST, 1, digest),
                      other = some_key(&account, MODE_LIVE, 2, other_digest);
    char name[80], other_name[80], stored[KEY_TEXT_MAX_BYTES], altered[KEY_TEXT_MAX_BYTES];
    struct key_answer answer;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_eq(insert_key(&other, other_digest), STORE_OK);
    name_of_key(digest, name);
    name_of_key(other_digest, other_name);
    redis_server_ask(&fixture.server, stored, sizeof stored, "GET", name, NULL);
    char *scopes = strstr(stored, " wxyz ") + strlen(" wxyz ");

    /* with all scopes */
    snprintf(altered, sizeof altered, "%.*s4095%s", (int)(scopes - stored), stored, strchr(scopes, ' '));
    redis_server_tell(&fixture.server, "SET", name, altered, NULL);
    expect_refused(digest, &key.id);
    /* at another secret's digest */
    redis_server_tell(&fixture.server, "SET", other_name, stored, NULL);
    cr_expect_eq(find_key(other_digest, &answer), STORE_NOT_FOUND);
    /* it can still be revoked */
    cr_expect_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    redis_server_tell(&fixture.server, "SET", name, stored, NULL);
    cr_expect_eq(find_key(digest, &answer), STORE_OK);
}

/* Unknown fields and a revocation leave the seal valid. */
Test(key_store, a_revoked_record_is_sealed_as_before)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_TEST, 1, digest);
    struct key_answer answer;

    cr_assert(id_parse(ID_USER, TEXT("usr_01jd0000000000000000000003"), &key.by));
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    cr_assert_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    cr_expect(answer.key.revoked_ms && id_equal(&answer.key.by, &key.by));
    cr_assert_eq(get_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    cr_expect(id_equal(&answer.key.by, &key.by));
}

static void on_renamed(void *arg, enum store_result result, const struct key_record *key, uint32_t retry_after_s UNUSED)
{
    key_answer_done(arg, result, key);
}

static void rename_begin(const struct id *id, struct text name, struct key_answer *ret_answer)
{
    *ret_answer = (struct key_answer){0};
    key_store_rename(fixture.store, &EVERYTHING, id, name, &SOMEBODY, on_renamed, ret_answer);
}

/* Renamings that overlap: each reads again what the other has written, and no seal is lost. */
Test(key_store, renamings_at_the_same_time_leave_one_sealed_record)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_TEST, 1, digest);
    struct key_answer renamed[3];
    struct key_answer answer;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    rename_begin(&key.id, TEXT("One"), &renamed[0]);
    rename_begin(&key.id, TEXT("Two"), &renamed[1]);
    rename_begin(&key.id, TEXT("Three"), &renamed[2]);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(answer_wait(&renamed[i].answer), STORE_OK);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    cr_expect(text_equal(key_name(&answer.key), TEXT("One")) || text_equal(key_name(&answer.key), TEXT("Two")) ||
              text_equal(key_name(&answer.key), TEXT("Three")));
    cr_assert_eq(revoke_key(&EVERYTHING, &key.id, &answer), STORE_OK);
    rename_begin(&key.id, TEXT("Leaked"), &renamed[0]);
    cr_expect_eq(answer_wait(&renamed[0].answer), STORE_OK);
    cr_expect_eq(renamed[0].key.revoked_ms, answer.key.revoked_ms);
    cr_assert_eq(find_key(digest, &answer), STORE_OK);
    cr_expect(answer.key.revoked_ms && text_equal(key_name(&answer.key), TEXT("Leaked")));
}

/* Renaming seals nothing that somebody else has written. */
Test(key_store, an_altered_record_cannot_be_renamed)
{
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_TEST, 1, digest);
    char name[80], stored[KEY_TEXT_MAX_BYTES], altered[KEY_TEXT_MAX_BYTES], after[KEY_TEXT_MAX_BYTES];
    struct key_answer renamed;

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    name_of_key(digest, name);
    redis_server_ask(&fixture.server, stored, sizeof stored, "GET", name, NULL);
    char *scopes = strstr(stored, " wxyz ") + strlen(" wxyz ");
    snprintf(altered, sizeof altered, "%.*s4095%s", (int)(scopes - stored), stored, strchr(scopes, ' '));
    redis_server_tell(&fixture.server, "SET", name, altered, NULL);
    rename_begin(&key.id, TEXT("Mine"), &renamed);
    cr_expect_eq(answer_wait(&renamed.answer), STORE_NOT_FOUND);
    redis_server_ask(&fixture.server, after, sizeof after, "GET", name, NULL);
    cr_expect_str_eq(after, altered);
}
