/* Usage of a period adds up the same however it is divided. */
#include "base/random.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(usage_groups, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { KEYS = 7 };

struct sums {
    long requests, billable, refused;
};

static long number(const struct http_answer *answer, const char *path)
{
    char value[32] = "";

    cr_assert(http_answer_json(answer, path, value, sizeof value), "%s: %s", path, answer->body);
    return strtol(value, NULL, 10);
}

/* Adds up the rows of all pages; checks that each page has the same total, which it returns. */
static struct sums walk(const struct fixture *fixture, const char *secret, const char *query, struct sums *ret_total)
{
    struct http_answer answer;
    struct sums sums = {0};
    char target[256], after[64] = "", more[8] = "true";

    while (strcmp(more, "true") == 0) {
        snprintf(target, sizeof target, "/v1/usage?%s%s%s", query, after[0] ? "&starting_after=" : "", after);
        cr_assert_eq(fixture_call(fixture, 1, &(struct http_call){.target = target, .bearer = secret}, &answer), 200,
                     "%s", answer.body);
        for (int i = 0; i < http_answer_json_count(&answer, "data"); i++) {
            char path[40];

            snprintf(path, sizeof path, "data.%d.requests", i);
            sums.requests += number(&answer, path);
            snprintf(path, sizeof path, "data.%d.billable", i);
            sums.billable += number(&answer, path);
            snprintf(path, sizeof path, "data.%d.refused", i);
            sums.refused += number(&answer, path);
            snprintf(path, sizeof path, "data.%d.key", i);
            (void)http_answer_json(&answer, path, after, sizeof after);
        }
        *ret_total = (struct sums){number(&answer, "total.requests"), number(&answer, "total.billable"),
                                   number(&answer, "total.refused")};
        cr_assert(http_answer_json(&answer, "has_more", more, sizeof more));
    }
    return sums;
}

static void expect_equal(struct sums got, struct sums wanted, const char *what)
{
    cr_expect_eq(got.requests, wanted.requests, "%s: %ld, not %ld", what, got.requests, wanted.requests);
    cr_expect_eq(got.billable, wanted.billable, "%s: %ld, not %ld", what, got.billable, wanted.billable);
    cr_expect_eq(got.refused, wanted.refused, "%s: %ld, not %ld", what, got.refused, wanted.refused);
}

/* Random days of random keys, as if they had been written on these days. */
static struct sums add_random(const struct fixture *fixture, const struct fixture_key keys[KEYS], bool only_test)
{
    static const char SCRIPT[] =
        "local a = KEYS[1] "
        "redis.call('HINCRBY', a .. ':usage', ARGV[2] .. ':' .. ARGV[3], ARGV[4]) "
        "redis.call('HINCRBY', a .. ':usage:' .. ARGV[2], ARGV[1], ARGV[4]) "
        "redis.call('HINCRBY', a .. ':refused', ARGV[2] .. ':' .. ARGV[3], ARGV[5]) "
        "redis.call('HINCRBY', a .. ':refused:' .. ARGV[2], ARGV[1] .. ':insufficient_scope', ARGV[5]) return 1";
    struct sums sums = {0};
    char account[128];

    snprintf(account, sizeof account, "%sacct:%s", fixture_name(fixture->account, ""), fixture->account);
    for (unsigned i = 0; i < 200; i++) {
        unsigned key = random_below(KEYS), requests = random_below(1000), refused = random_below(9);
        const char *mode = key % 2 ? "live" : "test";
        char date[16], requests_text[16], refused_text[16];

        snprintf(date, sizeof date, "2026-03-%02u", 1 + random_below(31));
        snprintf(requests_text, sizeof requests_text, "%u", requests);
        snprintf(refused_text, sizeof refused_text, "%u", refused);
        redis_server_tell(&fixture->redis, "EVAL", SCRIPT, "1", account, keys[key].id, date, mode, requests_text,
                          refused_text, NULL);
        if (strcmp(date, "2026-03-05") < 0 || strcmp(date, "2026-03-25") > 0 || (only_test && key % 2))
            continue;
        sums.requests += requests;
        sums.billable += key % 2 ? requests : 0;
        sums.refused += refused;
    }
    return sums;
}

Test(usage_groups, every_division_has_the_same_sum)
{
    static const char *const QUERIES[] = {"group_by=day", "group_by=mode", "group_by=key&limit=3",
                                          "group_by=key&limit=1"};
    struct fixture fixture;
    struct fixture_key keys[KEYS], test;

    for (int only_test = 0; only_test <= 1; only_test++) {
        fixture_start(&fixture, 2, NULL);
        fixture.wrote_names = true;
        for (unsigned i = 0; i < KEYS; i++)
            fixture_add_key(&fixture, NULL, i == 1 ? KEY_DEVICE : KEY_API, i % 2 ? MODE_LIVE : MODE_TEST,
                            i == 1 ? SCOPE_DOCUMENTS_WRITE : SCOPE_ALL, &keys[i]);
        fixture_revoke_key(&fixture, &keys[3]);
        fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_USAGE_READ, &test);
        struct sums wanted = add_random(&fixture, keys, only_test), total;
        for (size_t i = 0; i < sizeof QUERIES / sizeof *QUERIES; i++) {
            char query[96];

            snprintf(query, sizeof query, "from=2026-03-05&to=2026-03-25&%s", QUERIES[i]);
            expect_equal(walk(&fixture, only_test ? test.secret : fixture.manager.secret, query, &total), wanted,
                         QUERIES[i]);
            expect_equal(total, wanted, "total");
        }
        fixture_stop(&fixture);
    }
}
