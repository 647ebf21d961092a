/* Query parameters of the lists. */
#include "api/query_internal.h"
#include "core/limits.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(query, .fini = leak_guard);

#define KEY_A "key_01jd0000000000000000000001"
#define KEY_B "key_01jd0000000000000000000002"
#define EVENT "evt_01jd0000000000000000000001"

enum { STORAGE_BYTES = 512 };

struct refusal {
    const char *query;
    enum problem_code code;
    const char *param;
};

static void expect_refusals(const struct query *parameters, void *target, size_t target_bytes,
                            const struct refusal *cases, size_t count)
{
    char untouched[sizeof(struct usage_query)]; /* the largest of them */

    cr_assert_leq(target_bytes, sizeof untouched);
    memcpy(untouched, target, target_bytes);
    for (size_t i = 0; i < count; i++) {
        char storage[STORAGE_BYTES];
        struct problem problem = {0};

        memcpy(target, untouched, target_bytes);
        cr_assert_not(query_read(parameters, NULL, text_of(cases[i].query), storage, target, &problem), "%s",
                      cases[i].query);
        cr_assert_eq(problem.code, cases[i].code, "%s: %s", cases[i].query, problem_code_text(problem.code));
        cr_assert_str_eq(problem.param, cases[i].param, "%s", cases[i].query);
    }
}

static bool read_keys(const char *query, struct key_query *ret_query)
{
    char storage[STORAGE_BYTES];
    struct problem problem;

    *ret_query = (struct key_query){.limit = LIST_LIMIT_DEFAULT};
    return query_read(&QUERY_KEYS, NULL, text_of(query), storage, ret_query, &problem);
}

Test(query, keys_defaults_stay)
{
    struct key_query query;

    cr_assert(read_keys("", &query));
    cr_assert_eq(query.limit, LIST_LIMIT_DEFAULT);
    cr_assert_not(query.by_mode);
    cr_assert_eq(query.status, KEYS_ANY);
    cr_assert(query.starting_after.text[0] == '\0' && query.ending_before.text[0] == '\0');
}

Test(query, keys_limit)
{
    struct key_query query;

    cr_assert(read_keys("limit=1", &query) && query.limit == 1);
    cr_assert(read_keys("limit=100", &query) && query.limit == 100);
}

Test(query, keys_all_at_once)
{
    struct key_query query;

    cr_assert(read_keys("limit=7&starting_after=" KEY_A "&mode=live&status=revoked", &query));
    cr_assert_eq(query.limit, 7);
    cr_assert_str_eq(query.starting_after.text, KEY_A);
    cr_assert(query.by_mode && query.mode == MODE_LIVE);
    cr_assert_eq(query.status, KEYS_REVOKED);
    cr_assert(read_keys("status=active&mode=test&ending_before=" KEY_B, &query));
    cr_assert_str_eq(query.ending_before.text, KEY_B);
    cr_assert(query.by_mode && query.mode == MODE_TEST);
    cr_assert_eq(query.status, KEYS_ACTIVE);
}

Test(query, keys_escapes_are_decoded)
{
    struct key_query query;

    cr_assert(read_keys("%6dode=%74est", &query) && query.by_mode && query.mode == MODE_TEST);
}

Test(query, keys_refusals)
{
    static const struct refusal CASES[] = {
        {"limit=0", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=101", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=-1", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=01", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=1e1", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=99999999999999999999999", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=5&limit=5", PROBLEM_PARAMETER_INVALID, "limit"},
        {"mode=test&limit=5&mode=live", PROBLEM_PARAMETER_INVALID, "mode"},
        {"mode=", PROBLEM_PARAMETER_INVALID, "mode"},
        {"mode=Test", PROBLEM_PARAMETER_INVALID, "mode"},
        {"status=any", PROBLEM_PARAMETER_INVALID, "status"},
        {"starting_after=", PROBLEM_PARAMETER_INVALID, "starting_after"},
        {"starting_after=" EVENT, PROBLEM_PARAMETER_INVALID, "starting_after"},
        {"starting_after=" KEY_A "0", PROBLEM_PARAMETER_INVALID, "starting_after"},
        {"ending_before=x", PROBLEM_PARAMETER_INVALID, "ending_before"},
        {"starting_after=" KEY_A "&ending_before=" KEY_B, PROBLEM_PARAMETER_INVALID, "ending_before"},
        {"Limit=5", PROBLEM_PARAMETER_UNKNOWN, "Limit"},
        {"limit=5&page=2", PROBLEM_PARAMETER_UNKNOWN, "page"},
        {"access_token=x", PROBLEM_PARAMETER_UNKNOWN, "access_token"},
        {"limit=%zz", PROBLEM_PARAMETER_INVALID, "limit"},
        {"limit=%ff", PROBLEM_PARAMETER_INVALID, "limit"},
        {"mode=%00", PROBLEM_PARAMETER_INVALID, "mode"},
        {"%zz=limit", PROBLEM_PARAMETER_INVALID, ""},
        {"limit=1|2", PROBLEM_PARAMETER_INVALID, "limit"},
        {"=a", PROBLEM_PARAMETER_UNKNOWN, ""},
    };
    struct key_query query = {.limit = LIST_LIMIT_DEFAULT};

    expect_refusals(&QUERY_KEYS, &query, sizeof query, CASES, sizeof CASES / sizeof *CASES);
}

Test(query, events)
{
    static const struct refusal CASES[] = {
        {"limit=101", PROBLEM_PARAMETER_INVALID, "limit"},
        {"starting_after=" KEY_A, PROBLEM_PARAMETER_INVALID, "starting_after"},
        {"ending_before=" EVENT, PROBLEM_PARAMETER_UNKNOWN, "ending_before"},
        {"type=", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=.", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=.created", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=api_key..", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=api_key.created.", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=Api_key", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=a%25", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=a&type=b", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=api_key.create", PROBLEM_PARAMETER_INVALID, "type"},
        {"type=keys", PROBLEM_PARAMETER_INVALID, "type"},
        {"actor=", PROBLEM_PARAMETER_INVALID, "actor"},
        {"actor=nobody", PROBLEM_PARAMETER_INVALID, "actor"},
        {"actor=usr_1", PROBLEM_PARAMETER_INVALID, "actor"},
        {"actor=" KEY_A "0", PROBLEM_PARAMETER_INVALID, "actor"},
        {"target=usr_", PROBLEM_PARAMETER_INVALID, "target"},
        {"target=KEY_01jd8x5pk4n1h7g9e2d6f8s3tv", PROBLEM_PARAMETER_INVALID, "target"},
        {"since=2026-01-31T12:00:00Z&until=2026-01-31T11:59:59Z", PROBLEM_PARAMETER_INVALID, "until"},
        {"until=2026-01-31T12:00:00Z&since=2026-01-31T12:00:00Z", PROBLEM_PARAMETER_INVALID, "until"},
        {"target=", PROBLEM_PARAMETER_INVALID, "target"},
        {"ip=", PROBLEM_PARAMETER_INVALID, "ip"},
        {"ip=10.1.2.3/8", PROBLEM_PARAMETER_INVALID, "ip"},
        {"ip=10.0.0.0/33", PROBLEM_PARAMETER_INVALID, "ip"},
        {"ip=10.0.0.0/", PROBLEM_PARAMETER_INVALID, "ip"},
        {"ip=10.0.0.0/8,10.1.0.0/16", PROBLEM_PARAMETER_INVALID, "ip"},
        {"ip=example.org", PROBLEM_PARAMETER_INVALID, "ip"},
        {"since=2026-01-31", PROBLEM_PARAMETER_INVALID, "since"},
        {"since=1769860800", PROBLEM_PARAMETER_INVALID, "since"},
        {"until=yesterday", PROBLEM_PARAMETER_INVALID, "until"},
        {"from=2026-01-31T12:00:00Z", PROBLEM_PARAMETER_UNKNOWN, "from"},
    };
    static const char *const GOOD[] = {"actor=holder",  "actor=system",    "actor=" KEY_A,
                                       "target=" KEY_A, "target=keyboard", "type=login"};
    struct event_query query = {.limit = LIST_LIMIT_DEFAULT};
    char storage[STORAGE_BYTES];
    struct problem problem;

    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        cr_expect(query_read(&QUERY_EVENTS, NULL, text_of(GOOD[i]), storage, &query, &problem), "%s", GOOD[i]);
    cr_assert(query_read(&QUERY_EVENTS, NULL, TEXT("starting_after=" EVENT "&limit=3"), storage, &query, &problem));
    cr_assert_eq(query.limit, 3);
    cr_assert_str_eq(query.starting_after.text, EVENT);
    expect_refusals(&QUERY_EVENTS, &query, sizeof query, CASES, sizeof CASES / sizeof *CASES);
}

Test(query, events_filters)
{
    struct event_query query = {.limit = LIST_LIMIT_DEFAULT};
    char storage[STORAGE_BYTES];
    struct problem problem;

    cr_assert(query_read(&QUERY_EVENTS, NULL,
                         TEXT("type=api_key.&actor=operator&target=My%20PC&ip=192.0.2.0/24&"
                              "since=2026-01-31T12:00:00Z&until=2026-01-31T14:00:00.5%2B01:00"),
                         storage, &query, &problem));
    cr_expect(text_equal(query.filter.type, TEXT("api_key.")));
    cr_expect(text_equal(query.filter.actor, TEXT("operator")));
    cr_expect(text_equal(query.filter.target, TEXT("My PC")));
    cr_expect(query.filter.by_address);
    cr_expect_eq(query.filter.address_bits, 120);
    cr_expect_eq(query.filter.address.bytes[12], 192);
    cr_expect_eq(query.filter.since_ms, 1769860800000);
    cr_expect_eq(query.filter.until_ms, 1769864400500);
    query.filter.since_ms = 0;
    cr_assert(query_read(&QUERY_EVENTS, NULL, TEXT("type=api_key&until=1970-01-01T00:00:00Z&ip=2001:db8::1"), storage,
                         &query, &problem));
    cr_expect_eq(query.filter.until_ms, 1, "not 0, which means any");
    cr_expect_eq(query.filter.address_bits, 128);
}

Test(query, usage)
{
    static const struct refusal CASES[] = {
        {"days=0", PROBLEM_PARAMETER_INVALID, "days"},
        {"days=367", PROBLEM_PARAMETER_INVALID, "days"},
        {"days=7&days=7", PROBLEM_PARAMETER_INVALID, "days"},
        {"days=7&group_by=day", PROBLEM_PARAMETER_INVALID, "days"},
        {"group_by=week", PROBLEM_PARAMETER_INVALID, "group_by"},
        {"from=2026-02-30", PROBLEM_PARAMETER_INVALID, "from"},
        {"key_ids=", PROBLEM_PARAMETER_INVALID, "key_ids"},
        {"key_ids=" KEY_A ",", PROBLEM_PARAMETER_INVALID, "key_ids"},
        {"key_ids=" EVENT, PROBLEM_PARAMETER_INVALID, "key_ids"},
    };
    struct usage_query query = {.days = 30};
    char storage[STORAGE_BYTES];
    struct problem problem;

    cr_assert(query_read(&QUERY_USAGE, NULL, TEXT("days=366"), storage, &query, &problem));
    cr_assert_eq(query.days, USAGE_DAYS_MAX);
    cr_assert(query_read(&QUERY_USAGE, NULL, TEXT("key_ids=" KEY_A "," KEY_B), storage, &query, &problem));
    cr_assert_eq(query.key_count, 2);
    cr_assert_str_eq(query.key_ids[1].text, KEY_B);
    query.key_count = 0;
    expect_refusals(&QUERY_USAGE, &query, sizeof query, CASES, sizeof CASES / sizeof *CASES);
}

/* As much as one response can hold. */
Test(query, usage_of_few_keys_for_long_or_of_many_for_a_while)
{
    enum { ID_BYTES = sizeof KEY_A, KEYS = LIST_LIMIT_MAX + 1 };
    static const struct {
        size_t keys;
        unsigned days;
        bool is_read;
    } CASES[] = {{24, 366, true}, {25, 366, false}, {100, 90, true}, {100, 91, false}, {101, 1, false}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct usage_query query = {.days = CASES[i].days};
        char text[16 + KEYS * ID_BYTES], storage[sizeof text];
        struct problem problem;
        struct buf out;

        buf_init_fixed(&out, text, sizeof text);
        buf_append_str(&out, "key_ids=" KEY_A);
        for (size_t n = 1; n < CASES[i].keys; n++)
            buf_append_str(&out, "," KEY_A);
        cr_assert_not(out.failed);
        cr_expect_eq(query_read(&QUERY_USAGE, NULL, buf_text(&out), storage, &query, &problem), CASES[i].is_read,
                     "%zu keys, %u days", CASES[i].keys, CASES[i].days);
    }
}

Test(query, routes_without_parameters_know_none)
{
    char storage[STORAGE_BYTES];
    struct problem problem = {0};

    cr_assert(query_read(&QUERY_NOTHING, NULL, TEXT(""), storage, NULL, &problem));
    cr_assert_not(query_read(&QUERY_NOTHING, NULL, TEXT("a=b"), storage, NULL, &problem));
    cr_assert_eq(problem.code, PROBLEM_PARAMETER_UNKNOWN);
    cr_assert_str_eq(problem.param, "a");
}
