/* GET /v1/console/system. The canary's state is faked here. */
#include "fake_world.h"
#include "auth/canary_summary.h"

#include <criterion/criterion.h>

TestSuite(system, .init = world_begin, .fini = world_end);

static struct canary_summary found;
static enum store_result result;
static struct {
    canary_summed *done;
    void *arg;
} summing;

static void answer(void *arg)
{
    canary_summed *done = summing.done;

    (void)arg;
    summing.done = NULL;
    done(summing.arg, result, result == STORE_OK ? &found : NULL);
}

void canary_sum(const struct partitions *partitions, canary_summed *done, void *arg)
{
    (void)partitions;
    cr_assert_null(summing.done);
    summing.done = done;
    summing.arg = arg;
    world_later(answer, NULL);
}

static void expect_answer(int status, const char *body)
{
    struct http_request *request = request_send(HTTP_GET, "/v1/console/system", SESSION_COOKIE, NULL);

    cr_expect_eq(answer_status(request), status, "%s", answer_body(request));
    if (body)
        cr_expect_str_eq(answer_body(request), body);
    request_forget(request);
}

Test(system, tells_what_the_canary_found)
{
    world.service.canary_interval_ms = 60000;
    world.wall_ms = 1769860805000;
    found = (struct canary_summary){.has_run = true,
                                    .since_run_ms = 5000,
                                    .run_by = "secret.host",
                                    .slowest = "secret.host",
                                    .violated_by = "secret.host",
                                    .took_us = 817,
                                    .refused = 2,
                                    .accepted = 1,
                                    .silent = 3,
                                    .runs = 7,
                                    .unfinished = 4,
                                    .violations = 9,
                                    .since_violation_ms = 1000};
    expect_answer(200, "{\"canary\":{\"interval_ms\":60000,\"runs\":7,\"unfinished_runs\":4,"
                       "\"last_run_at\":\"2026-01-31T12:00:00.000Z\",\"effect_us\":817,"
                       "\"nodes\":{\"asked\":6,\"refused\":2,\"accepted\":1,\"silent\":3},\"violations\":9,"
                       "\"last_violation_at\":\"2026-01-31T12:00:04.000Z\"}}");
}

Test(system, knows_when_there_was_no_run)
{
    found = (struct canary_summary){.since_violation_ms = -1};
    expect_answer(200, "{\"canary\":{\"interval_ms\":0,\"runs\":0,\"unfinished_runs\":0,\"last_run_at\":null,"
                       "\"effect_us\":0,\"nodes\":{\"asked\":0,\"refused\":0,\"accepted\":0,\"silent\":0},"
                       "\"violations\":0,\"last_violation_at\":null}}");
}

Test(system, says_nothing_without_redis)
{
    result = STORE_UNAVAILABLE;
    expect_answer(503, NULL);
}

Test(system, is_for_people)
{
    struct http_request *request = request_send(HTTP_GET, "/v1/console/system", GOOD_KEY, NULL);

    cr_expect_eq(answer_status(request), 401, "%s", answer_body(request));
    cr_expect_null(summing.done);
    request_forget(request);
}
