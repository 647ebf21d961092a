/* usage export: what operators bill by is what the API tells. */
#include "base/clock.h"
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

TestSuite(cli_usage, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static const char HEAD[] = "account,date,mode,requests,billable,refused\r\n";

enum { USES_TEST = 3, USES_LIVE = 2 };

static int64_t number_of(const struct http_answer *answer, const char *path)
{
    char value[32];

    cr_assert(http_answer_json(answer, path, value, sizeof value), "%s", answer->body);
    return strtoll(value, NULL, 10);
}

struct sums {
    int64_t requests, billable, refused;
};

static int64_t take_number(struct text *line)
{
    struct text cell;
    uint64_t value;

    cr_assert(text_next(line, ',', &cell) && text_to_u64(cell, INT64_MAX, &value), "%.*s", TEXT_ARG(*line));
    return (int64_t)value;
}

/* Of the rows of that account in that mode; both "": all. */
static struct sums sums_of_csv(const char *csv, const char *account, const char *mode)
{
    struct text rest = text_of(csv), line, of, day, in;
    struct sums sums = {0};

    cr_assert(text_starts_with(rest, text_of(HEAD)), "%s", csv);
    rest = text_skip(rest, strlen(HEAD));
    while (rest.len > 0 && text_next(&rest, '\r', &line)) {
        rest = text_skip(rest, 1);
        cr_assert(text_next(&line, ',', &of) && text_next(&line, ',', &day) && text_next(&line, ',', &in), "%s", csv);
        const int64_t requests = take_number(&line), billable = take_number(&line), refused = take_number(&line);
        cr_assert_eq(line.len, 0, "%s", csv);
        if ((*account && !text_equal(of, text_of(account))) || (*mode && !text_equal(in, text_of(mode))))
            continue;
        sums.requests += requests;
        sums.billable += billable;
        sums.refused += refused;
    }
    return sums;
}

static struct sums sums_of_api(const struct fixture *fixture, const struct fixture_session *session, const char *target,
                               const char *path)
{
    struct http_call call = {.method = "GET", .target = target, .cookie = session->token};
    struct http_answer answer;
    char member[64];
    struct sums sums;

    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
    snprintf(member, sizeof member, "%s.requests", path);
    sums.requests = number_of(&answer, member);
    snprintf(member, sizeof member, "%s.billable", path);
    sums.billable = number_of(&answer, member);
    snprintf(member, sizeof member, "%s.refused", path);
    sums.refused = number_of(&answer, member);
    return sums;
}

static bool are_equal(struct sums a, struct sums b)
{
    return a.requests == b.requests && a.billable == b.billable && a.refused == b.refused;
}

/* Uses of a test key and a live one, and a refused request of the live one. */
static void use_keys(struct fixture *fixture)
{
    struct fixture_key test, live;

    fixture_create_key(fixture, 0, "{\"name\":\"t\",\"mode\":\"test\",\"scopes\":[\"patients:read\"]}", &test);
    fixture_create_key(fixture, 0, "{\"name\":\"l\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &live);
    for (int i = 0; i < USES_TEST; i++)
        cr_assert_eq(fixture_try_key(fixture, 0, test.secret), 200);
    for (int i = 0; i < USES_LIVE; i++)
        cr_assert_eq(fixture_try_key(fixture, 0, live.secret), 200);
    struct http_call refused = {.method = "GET", .target = "/v1/api_keys", .bearer = live.secret};
    struct http_answer answer;
    cr_assert_eq(fixture_call(fixture, 0, &refused, &answer), 403);
}

/* Of all accounts, of which one has no usage; the days about today, because a day may end meanwhile. */
Test(cli_usage, usage_export_agrees_with_the_api)
{
    enum { DAY_MS = 86400000 };
    char target[128], from[CLOCK_DATE_BYTES], to[CLOCK_DATE_BYTES], other[FIXTURE_TOKEN_BYTES];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct fixture_session session;
    struct fixture fixture;
    struct sums before, test, after;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_account(&fixture, other);
    fixture_add_session(&fixture, NULL, false, &session);
    use_keys(&fixture);
    clock_print_date(clock_wall_ms() - DAY_MS, from);
    clock_print_date(clock_wall_ms() + DAY_MS, to);
    snprintf(target, sizeof target, "/v1/console/usage?from=%s&to=%s&group_by=mode", from, to);
    do { /* until nodes have reported everything */
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", "usage is not reported");
        before = sums_of_api(&fixture, &session, target, "total");
        test = sums_of_api(&fixture, &session, target, "data.0");
        RUN(&fixture, &run, "usage", "export", "--from", from, "--to", to);
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        after = sums_of_api(&fixture, &session, target, "total");
        if (are_equal(before, after) && test.requests == USES_TEST && after.billable >= USES_LIVE && after.refused == 1)
            break;
        cli_finish(&run);
    } while (true);
    cr_expect(are_equal(sums_of_csv(run.out, "", ""), after), "%s", run.out);
    cr_expect(are_equal(sums_of_csv(run.out, fixture.account, ""), after), "%s", run.out);
    cr_expect(are_equal(sums_of_csv(run.out, fixture.account, "test"), (struct sums){USES_TEST, 0, 0}), "%s", run.out);
    cr_expect_null(strstr(run.out, other), "%s", run.out);
    cli_finish(&run);

    RUN(&fixture, &run, "usage", "export", "--from", from, "--to", to, "--account", other);
    cr_expect_eq(run.exit_code, 0);
    cr_expect(strstr(run.err, "No usage in this period.") && strcmp(run.out, HEAD) == 0, "%s%s", run.err, run.out);
    cli_finish(&run);
    RUN(&fixture, &run, "usage", "export", "--from", from);
    cli_expect_refusal(&run, 2, "or neither", "half a period");
    RUN(&fixture, &run, "usage", "export", "--from", to, "--to", from);
    cli_expect_refusal(&run, 2, "must not be later", "a period that ends first");
    RUN(&fixture, &run, "usage", "export", "--from", "2026-02-30", "--to", to);
    cli_expect_refusal(&run, 2, "is not a day", "a day that is none");
    RUN(&fixture, &run, "usage", "export", "--from", "2020-01-01", "--to", "2021-01-01");
    cli_expect_refusal(&run, 2, "more than 366 days", "a leap year and a day");
    fixture_stop(&fixture);
}

/* The first day of a month, so many months from this one, and so many days from it. */
static void print_month(int months, int days, char ret_date[CLOCK_DATE_BYTES])
{
    const time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm day;

    cr_assert(gmtime_r(&now, &day));
    day.tm_mon += months;
    day.tm_mday = 1 + days;
    clock_print_date((int64_t)timegm(&day) * 1000, ret_date);
}

static void add_usage(struct fixture *fixture, const char *date)
{
    char name[96], field[32];

    snprintf(name, sizeof name, "acct:%s:usage", fixture->account);
    snprintf(field, sizeof field, "%s:live", date);
    redis_server_tell(&fixture->redis, "HSET", fixture_name(fixture->account, name), field, "7", NULL);
}

Test(cli_usage, usage_export_is_of_last_month_unless_told)
{
    enum { BEFORE, FIRST, LAST, AFTER, DAYS };
    char days[DAYS][CLOCK_DATE_BYTES], first[CLOCK_DATE_BYTES];
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    for (;;) { /* again if the month ends meanwhile */
        print_month(-1, -1, days[BEFORE]);
        print_month(-1, 0, days[FIRST]);
        print_month(0, -1, days[LAST]);
        print_month(0, 0, days[AFTER]);
        for (int i = 0; i < DAYS; i++)
            add_usage(&fixture, days[i]);
        RUN(&fixture, &run, "usage", "export");
        cr_assert_eq(run.exit_code, 0, "%s", run.err);
        print_month(-1, 0, first);
        if (strcmp(first, days[FIRST]) == 0)
            break;
        cli_finish(&run);
    }
    cr_expect(strstr(run.out, days[FIRST]) && strstr(run.out, days[LAST]), "%s", run.out);
    cr_expect(are_equal(sums_of_csv(run.out, fixture.account, "live"), (struct sums){14, 14, 0}), "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}
