/* How exports of the trail end, and how many there are at a time. */
#include "base/clock.h"
#include "fake_world.h"
#include <criterion/criterion.h>
#include <string.h>

TestSuite(trail_export, .init = world_begin, .fini = world_end);

#define CSV_TYPE GOOD_KEY "Accept: text/csv\n"
#define MINUTE_NS (UINT64_C(60) * 1000 * CLOCK_NS_PER_MS)

static size_t places_taken(void)
{
    size_t taken = 0;

    for (size_t i = 0; i < SERVICE_EXPORTS; i++)
        taken += world.service.exports[i].text[0] != '\0';
    return taken;
}

static void expect_export(enum http_method method, int status, unsigned pieces, enum stream_end end)
{
    struct http_request *request = request_send(method, "/v1/audit", CSV_TYPE, NULL);

    cr_expect_eq(answer_status(request), status);
    cr_expect_eq(world.pieces, pieces, "%u pieces", world.pieces);
    cr_expect_eq(world.stream, end);
    cr_expect_eq(places_taken(), 0, "its place is given back");
    request_forget(request);
}

Test(trail_export, has_every_page)
{
    world.trail_pages = 3;
    expect_export(HTTP_GET, 200, 3, STREAM_WHOLE);
}

Test(trail_export, of_a_head_request_has_no_body)
{
    world.trail_pages = 3;
    expect_export(HTTP_HEAD, 200, 0, STREAM_UNENDED);
}

Test(trail_export, breaks_off_after_an_hour)
{
    world.trail_pages = 100;
    world.piece_takes_ns = 25 * MINUTE_NS;
    expect_export(HTTP_GET, 200, 3, STREAM_BROKEN);
}

/* The hour is for what is left, not for the last piece. */
Test(trail_export, is_whole_if_only_its_last_piece_is_late)
{
    world.trail_pages = 3;
    world.piece_takes_ns = 25 * MINUTE_NS;
    expect_export(HTTP_GET, 200, 3, STREAM_WHOLE);
}

Test(trail_export, is_refused_without_redis)
{
    world.trail_pages = 3;
    world.search_fails_at = 1;
    expect_export(HTTP_GET, 503, 0, STREAM_UNENDED);
}

Test(trail_export, breaks_off_without_redis)
{
    world.trail_pages = 3;
    world.search_fails_at = 3;
    expect_export(HTTP_GET, 200, 2, STREAM_BROKEN);
}

Test(trail_export, ends_with_its_client)
{
    struct http_request *request;

    world.trail_pages = 100;
    request = request_send_and_leave(HTTP_GET, "/v1/audit", CSV_TYPE, NULL);
    cr_expect_leq(world.searches, 1);
    cr_expect_eq(places_taken(), 0);
    request_forget(request);
}

static void take_place_of(size_t place, const char *account)
{
    cr_assert(id_parse(ID_ACCOUNT, text_of(account), &world.service.exports[place]));
}

static void expect_status(int status, const char *why)
{
    struct http_request *request;

    world.searches = 0;
    world.stream = STREAM_UNENDED;
    request = request_send(HTTP_GET, "/v1/audit", CSV_TYPE, NULL);
    cr_expect_eq(answer_status(request), status, "%s", why);
    request_forget(request);
}

Test(trail_export, does_not_begin_when_the_node_stops)
{
    struct http_request *request;

    world.trail_pages = 3;
    gate_close(world.service.gate);
    request = request_send(HTTP_GET, "/v1/audit", CSV_TYPE, NULL);
    cr_expect_eq(answer_status(request), 503);
    cr_expect_eq(answer_problem(request)->code, PROBLEM_SHUTTING_DOWN);
    cr_expect_eq(world.searches, 0);
    request_forget(request);
}

Test(trail_export, a_node_has_many_places_and_an_account_two_of_them)
{
    world.trail_pages = 1;
    for (size_t i = 0; i + 1 < SERVICE_EXPORTS; i++)
        take_place_of(i, "acct_01jd0000000000000000000002");
    expect_status(200, "one is left");
    take_place_of(SERVICE_EXPORTS - 1, "acct_01jd0000000000000000000003");
    expect_status(503, "none is left");
    take_place_of(0, world.key.account.text);
    world.service.exports[2].text[0] = '\0';
    expect_status(200, "its second");
    take_place_of(1, world.key.account.text);
    expect_status(429, "not a third, although a place is left");
}
