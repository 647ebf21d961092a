#include "records/usage_store.h"
#include "base/clock.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_DAY = 86400000 };
static const int64_t NOON = 1769860800000; /* 2026-01-31T12:00:00Z */

static int64_t wall_at_noon(void)
{
    return NOON;
}

static void start_at_noon(void)
{
    fixture_start();
    clock_replace_wall_for_test(wall_at_noon);
}

TestSuite(usage_store, .init = start_at_noon, .fini = fixture_stop);

static enum store_result flush(const char *sender, uint64_t sequence, const struct usage_entry *entries, size_t count)
{
    struct answer answer = {0};

    usage_store_flush(fixture.store, text_of(sender), sequence,
                      &(struct usage_batch){.entries = entries, .count = count}, answer_done, &answer);
    return answer_wait(&answer);
}

static struct usage_entry entry_of(struct id key, struct id account, enum key_mode mode, uint32_t uses,
                                   int64_t last_used_ms)
{
    struct usage_entry entry = {
        .uses = uses,
        .last_used_ms = (uint64_t)last_used_ms & INT64_MAX >> 1,
        .is_device = id_kind_of(id_text(&key)) == ID_DEVICE,
        .is_live = mode == MODE_LIVE,
    };

    memcpy(entry.key, id_chars(&key), ULID_TEXT_CHARS);
    memcpy(entry.account, id_chars(&account), ULID_TEXT_CHARS);
    return entry;
}

struct usage {
    struct answer answer;
    size_t day_count, key_count;
    struct usage_day days[USAGE_DAYS_MAX];
    struct usage_key keys[USAGE_KEYS_LISTED]; /* without their texts */
    int64_t by_day[USAGE_DAYS_MAX];           /* of the first key, if it was asked for */
    char first_name[64];
};

static void usage_done(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                       const struct usage_key *keys, size_t key_count)
{
    struct usage *usage = arg;

    if (day_count > 0)
        memcpy(usage->days, days, day_count * sizeof *days);
    if (key_count > 0)
        memcpy(usage->keys, keys, key_count * sizeof *keys);
    for (size_t i = 0; key_count > 0 && keys[0].by_day && i < day_count; i++)
        usage->by_day[i] = keys[0].by_day[i];
    if (key_count > 0)
        snprintf(usage->first_name, sizeof usage->first_name, "%.*s %.*s", TEXT_ARG(keys[0].name),
                 TEXT_ARG(keys[0].mode));
    usage->day_count = day_count;
    usage->key_count = key_count;
    answer_done(&usage->answer, result);
}

static enum store_result read_usage_of(const struct id *account, const struct usage_wanted *wanted, struct usage *usage)
{
    *usage = (struct usage){0};
    usage_store_read(fixture.store, account, wanted, usage_done, usage);
    return answer_wait(&usage->answer);
}

static enum store_result read_usage(const struct id *account, unsigned days, struct usage *usage)
{
    return read_usage_of(account, &(struct usage_wanted){.days = days}, usage);
}

static void expect_day(const struct usage_day *day, const char *date, int64_t test, int64_t live)
{
    cr_expect_str_eq(day->date, date);
    cr_expect(day->test_requests == test && day->live_requests == live, "%s: %d test, %d live", date,
              (int)day->test_requests, (int)day->live_requests);
}

Test(usage_store, batches_are_counted_once)
{
    struct id account = id_mint(ID_ACCOUNT, 1), a = id_mint(ID_KEY, 2), b = id_mint(ID_DEVICE, 3);
    const struct usage_entry entries[] = {
        entry_of(a, account, MODE_LIVE, 5, NOON),
        entry_of(b, account, MODE_TEST, 7, NOON - 1),
    };
    const struct usage_entry day_before = entry_of(a, account, MODE_LIVE, 2, NOON - MS_PER_DAY);
    struct usage usage;

    cr_assert_eq(flush("node", 1, &day_before, 1), STORE_OK);
    cr_assert_eq(flush("node", 2, entries, 2), STORE_OK);
    cr_assert_eq(flush("node", 2, entries, 2), STORE_OK);
    cr_assert_eq(read_usage(&account, 3, &usage), STORE_OK);
    cr_assert_eq(usage.day_count, 3);
    expect_day(&usage.days[0], "2026-01-29", 0, 0);
    expect_day(&usage.days[1], "2026-01-30", 0, 2);
    expect_day(&usage.days[2], "2026-01-31", 7, 5);
    cr_assert_eq(usage.key_count, 2);
    cr_expect_eq(usage.keys[0].requests, 7);
    cr_expect_eq(usage.keys[1].requests, 7);

    cr_assert_eq(flush("node", 3, entries, 1), STORE_OK);
    cr_assert_eq(flush("other", 1, entries, 1), STORE_OK);
    cr_assert_eq(read_usage(&account, 1, &usage), STORE_OK);
    expect_day(&usage.days[0], "2026-01-31", 7, 15);
    cr_expect(id_equal(&usage.keys[0].key, &a) && usage.keys[0].requests == 17);
}

Test(usage_store, days_of_the_keys_that_are_asked_for)
{
    struct id account = id_mint(ID_ACCOUNT, 1), a = id_mint(ID_KEY, 2), unused = id_mint(ID_KEY, 3);
    const struct usage_entry entries[] = {
        entry_of(a, account, MODE_LIVE, 5, NOON),
        entry_of(a, account, MODE_LIVE, 2, NOON - 2 * MS_PER_DAY),
    };
    const struct id asked[] = {a, unused};
    struct usage usage;

    cr_assert_eq(flush("node", 1, entries, 1), STORE_OK);
    cr_assert_eq(flush("node", 2, entries + 1, 1), STORE_OK);
    cr_assert_eq(read_usage_of(&account, &(struct usage_wanted){.days = 3, .keys = asked, .key_count = 2}, &usage),
                 STORE_OK);
    cr_assert_eq(usage.key_count, 2);
    cr_expect(id_equal(&usage.keys[0].key, &a) && usage.keys[0].requests == 7);
    cr_expect(usage.by_day[0] == 2 && usage.by_day[1] == 0 && usage.by_day[2] == 5);
    cr_expect(id_equal(&usage.keys[1].key, &unused) && usage.keys[1].requests == 0);
    cr_expect_str_eq(usage.first_name, " ", "the account has no record of it");
    cr_assert_eq(read_usage_of(&account, &(struct usage_wanted){.days = 3, .keys = asked, .key_count = 0}, &usage),
                 STORE_OK);
    cr_expect_null(usage.keys[0].by_day);
}

/* As many cells as one answer may have: Redis must not be blocked by them, and nothing may count twice or be left. */
Test(usage_store, many_days_of_many_keys_are_read_in_slices)
{
    enum { KEYS = 24, DAYS = USAGE_DAYS_MAX, CELLS_PER_SCRIPT = 250 };
    struct id account = id_mint(ID_ACCOUNT, 1), asked[KEYS];
    struct usage *usage = calloc(1, sizeof *usage);
    unsigned before;

    for (size_t k = 0; k < KEYS; k++)
        asked[k] = id_mint(ID_KEY, 2 + (int64_t)k);
    for (int day = DAYS - 1; day >= 0; day--) {
        const struct usage_entry entries[] = {
            entry_of(asked[0], account, MODE_LIVE, 1 + (uint32_t)day, NOON - day * (int64_t)MS_PER_DAY),
            entry_of(asked[KEYS - 1], account, MODE_TEST, 1, NOON - day * (int64_t)MS_PER_DAY)};

        cr_assert_eq(flush("node", DAYS - (uint64_t)day, entries, 2), STORE_OK);
    }
    before = scripts_run();
    cr_assert_eq(read_usage_of(&account, &(struct usage_wanted){.days = DAYS, .keys = asked, .key_count = KEYS}, usage),
                 STORE_OK);
    cr_expect_geq(scripts_run() - before, KEYS * DAYS / CELLS_PER_SCRIPT);
    cr_assert_eq(usage->key_count, KEYS);
    for (int day = 0; day < DAYS; day++) {
        cr_expect_eq(usage->by_day[DAYS - 1 - day], 1 + day);
        cr_expect(usage->days[DAYS - 1 - day].live_requests == 1 + day && usage->days[day].test_requests == 1);
    }
    cr_expect_eq(usage->keys[0].requests, DAYS * (DAYS + 1) / 2);
    cr_expect_eq(usage->keys[1].requests, 0);
    cr_expect_eq(usage->keys[KEYS - 1].requests, DAYS);
    free(usage);
}

/* The name comes with the first slice, refusals with each. */
Test(usage_store, slices_have_one_name_and_all_refusals)
{
    enum { DAYS = 300 };
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, MODE_LIVE, 1, digest);
    struct usage *usage = calloc(1, sizeof *usage);
    static const int AGO[] = {0, 150, DAYS - 1};

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    for (size_t i = 0; i < 3; i++) {
        struct usage_refusal refusal = {.reason = USAGE_SCOPE,
                                        .is_live = true,
                                        .count = 1 + (uint32_t)i,
                                        .first_ms = NOON - AGO[i] * (int64_t)MS_PER_DAY};
        struct answer answer = {0};

        memcpy(refusal.account, id_chars(&account), ULID_TEXT_CHARS);
        memcpy(refusal.key, id_chars(&key.id), ULID_TEXT_CHARS);
        usage_store_flush(fixture.store, TEXT("node"), 1 + i,
                          &(struct usage_batch){.refusals = &refusal, .refusal_count = 1}, answer_done, &answer);
        cr_assert_eq(answer_wait(&answer), STORE_OK);
    }
    cr_assert_eq(read_usage_of(&account, &(struct usage_wanted){.days = DAYS, .keys = &key.id, .key_count = 1}, usage),
                 STORE_OK);
    cr_expect_eq(usage->keys[0].refused[USAGE_SCOPE], 6);
    cr_expect_eq(usage->keys[0].refused[USAGE_REVOKED], 0);
    cr_expect(strncmp(usage->first_name, " ", 1) != 0, "%s", usage->first_name);
    free(usage);
}

Test(usage_store, full_batches_and_long_reads)
{
    struct id account = id_mint(ID_ACCOUNT, 1), tenth;
    struct usage_entry *entries = calloc(USAGE_BATCH_MAX, sizeof *entries);
    struct usage *usage = calloc(1, sizeof *usage);
    char name[64], use[64];

    for (uint32_t i = 0; i < USAGE_BATCH_MAX; i++)
        entries[i] = entry_of(id_mint(ID_KEY, 1 + i), account, MODE_LIVE, 1 + i, NOON - i);
    cr_assert_eq(flush("node", UINT32_MAX, entries, USAGE_BATCH_MAX), STORE_OK);
    snprintf(name, sizeof name, "t:acct:%s:key_uses", account.text);
    id_from_chars(ID_KEY, entries[9].key, &tenth);
    redis_server_ask(&fixture.server, use, sizeof use, "EVAL",
                     "return (struct.unpack('<I6', redis.call('HGET', KEYS[1], ARGV[1])))", "1", name, tenth.text,
                     NULL);
    cr_expect_eq(strtoll(use, NULL, 10), NOON - 9);
    cr_assert_eq(read_usage(&account, USAGE_DAYS_MAX, usage), STORE_OK);
    cr_assert_eq(usage->day_count, USAGE_DAYS_MAX);
    expect_day(&usage->days[USAGE_DAYS_MAX - 1], "2026-01-31", 0, USAGE_BATCH_MAX * (USAGE_BATCH_MAX + 1) / 2);
    cr_assert_eq(usage->key_count, USAGE_KEYS_LISTED);
    for (size_t i = 0; i < USAGE_KEYS_LISTED; i++)
        cr_expect_eq(usage->keys[i].requests, (int64_t)(USAGE_BATCH_MAX - i));
    cr_assert_eq(flush("node", UINT64_C(1) << 40, entries, 1), STORE_OK);
    free(usage);
    free(entries);
}

/* As many accounts as entries, and the longest numbers. */
Test(usage_store, a_full_batch_of_as_many_accounts)
{
    struct usage_entry *entries = calloc(USAGE_BATCH_MAX, sizeof *entries);
    struct id account = {{0}}, device = {{0}};
    struct usage usage;

    for (uint32_t i = 0; i < USAGE_BATCH_MAX; i++) {
        account = id_mint(ID_ACCOUNT, 1);
        device = id_mint(ID_DEVICE, 2);
        entries[i] = entry_of(device, account, MODE_TEST, UINT32_MAX, NOON);
    }
    cr_assert_eq(flush("node", UINT64_C(9007199254740991), entries, USAGE_BATCH_MAX), STORE_OK);
    cr_assert_eq(read_usage(&account, 1, &usage), STORE_OK);
    expect_day(&usage.days[0], "2026-01-31", UINT32_MAX, 0);
    cr_assert_eq(usage.key_count, 1);
    cr_expect(id_equal(&usage.keys[0].key, &device) && usage.keys[0].requests == UINT32_MAX);
    free(entries);
}

/* A group takes a fixed number of commands in Redis, however many keys it has. */
Test(usage_store, what_goes_to_one_place_is_one_group_in_any_order)
{
    enum { STATS_BYTES = 16384 };
    struct id one = id_mint(ID_ACCOUNT, 1), other = id_mint(ID_ACCOUNT, 2);
    struct usage_entry entries[8];
    char *stats = calloc(1, STATS_BYTES);
    struct usage usage;

    for (uint32_t i = 0; i < 8; i++)
        entries[i] =
            entry_of(id_mint(ID_KEY, 3 + i), i % 2 ? one : other, i % 4 < 2 ? MODE_LIVE : MODE_TEST, 1 + i, NOON);
    redis_server_tell(&fixture.server, "CONFIG", "RESETSTAT", NULL);
    cr_assert_eq(flush("node", 1, entries, 8), STORE_OK);
    redis_server_ask(&fixture.server, stats, STATS_BYTES, "INFO", "commandstats", NULL);
    cr_expect(strstr(stats, "cmdstat_hincrby:calls=4,"), "two accounts, two modes:\n%s", stats);
    cr_assert_eq(read_usage(&one, 1, &usage), STORE_OK);
    expect_day(&usage.days[0], "2026-01-31", 4 + 8, 2 + 6);
    cr_assert_eq(read_usage(&other, 1, &usage), STORE_OK);
    expect_day(&usage.days[0], "2026-01-31", 3 + 7, 1 + 5);
    free(stats);
}

Test(usage_store, counters_that_cannot_be_are_never_answered)
{
    struct id account = id_mint(ID_ACCOUNT, 1);
    struct usage usage;
    char name[64], keys[64];

    snprintf(name, sizeof name, "t:acct:%s:usage", account.text);
    snprintf(keys, sizeof keys, "t:acct:%s:usage_keys", account.text);
    redis_server_tell(&fixture.server, "HSET", name, "2026-01-31:live", "-1", NULL);
    cr_expect_eq(read_usage(&account, 1, &usage), STORE_UNAVAILABLE);
    redis_server_tell(&fixture.server, "HSET", name, "2026-01-31:live", "many", NULL);
    cr_expect_eq(read_usage(&account, 1, &usage), STORE_UNAVAILABLE);
    redis_server_tell(&fixture.server, "DEL", name, NULL);
    redis_server_tell(&fixture.server, "ZADD", keys, "3", "not an id", NULL);
    cr_expect_eq(read_usage(&account, 1, &usage), STORE_UNAVAILABLE);
}
