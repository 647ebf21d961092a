/* Replacements whose answers are lost. Make before break: an integration that repeats what it got no answer to always
 * holds a key that works, and there is never more than one live successor. */
#include "base/clock.h"
#include "deadline.h"
#include "leak_guard.h"
#include "lost_points.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lost_replacements, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum {
    LEAST_MS = 60 * 1000, /* the old key ends no sooner */
    CLOCKS_MS = 5 * 1000, /* how far Redis' time, and what nodes take it for, may be from the test's */
    OVERLAP_MS = 3600 * 1000,
};

#define OVERLAP_0 "{\"overlap_seconds\":0,\"name\":\"successor\"}"
#define OVERLAP_1H "{\"overlap_seconds\":3600,\"name\":\"successor\"}"
#define OVERLAP_2D "{\"overlap_seconds\":172800,\"name\":\"successor\"}"
#define BY_API "/v1/api_keys/{id}/replacement"
#define BY_CONSOLE "/v1/console/api_keys/{id}/replacement"

static const struct lost_ask END_KEY = {
    BY_OWNER, "PUT", "/v1/console/api_keys/<key>/scheduled_revocation", "{\"revoke_at\":\"<until>\"}", NULL, 200};

/* clang-format off */
static const struct lost_row ROWS[] = {
    {HTTP_POST, BY_API, BY_KEY, "<key>", .json = OVERLAP_0, .status = 201, .needs = NEEDS_KEY},
    {HTTP_POST, BY_API, BY_OLD_KEY, "<key>", .json = OVERLAP_0, .status = 201, .needs = NEEDS_KEY},
    {HTTP_POST, BY_CONSOLE, BY_OWNER, "<key>", .json = OVERLAP_0, .status = 201, .needs = NEEDS_KEY},
    {HTTP_POST, BY_API, BY_KEY, "<key>", .json = OVERLAP_1H, .status = 201, .needs = NEEDS_KEY},
    {HTTP_POST, BY_API, BY_OLD_KEY, "<key>", .json = OVERLAP_1H, .status = 201, .needs = NEEDS_KEY},
    {HTTP_POST, BY_CONSOLE, BY_OWNER, "<key>", .json = OVERLAP_1H, .status = 201, .needs = NEEDS_KEY},
};
/* The same keys, with an end of their own a day ahead. */
static const struct lost_row ENDING_ROWS[] = {
    {HTTP_POST, BY_API, BY_KEY, "<key>", .json = OVERLAP_0, .status = 201, .needs = NEEDS_KEY, .first = {&END_KEY}},
    {HTTP_POST, BY_API, BY_OLD_KEY, "<key>", .json = OVERLAP_1H, .status = 201, .needs = NEEDS_KEY,
     .first = {&END_KEY}},
    {HTTP_POST, BY_CONSOLE, BY_OWNER, "<key>", .json = OVERLAP_2D, .status = 201, .needs = NEEDS_KEY,
     .first = {&END_KEY}},
};
/* clang-format on */
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS, ENDING_ROW_COUNT = sizeof ENDING_ROWS / sizeof *ENDING_ROWS };

/* Until when a test waits for what must happen to the scenes that it has started together. */
static struct deadline patience;

static bool ends_by_use(const struct lost_row *row)
{
    return strcmp(row->json, OVERLAP_0) == 0;
}

/* What a failure says of its case. */
static const char *name_of(const struct lost_scene *scene, const char *point)
{
    static const char *const WHO[] = {
        [BY_KEY] = "another key", [BY_OLD_KEY] = "the key itself", [BY_OWNER] = "a person"};
    static char name[200];

    snprintf(name, sizeof name, "replacement by %s, %s, lost %s", WHO[scene->row->who], scene->row->json, point);
    return name;
}

static void start_rows(struct lost_site *site, const struct lost_row *rows, size_t count, size_t node)
{
    patience = deadline_in(PATIENCE_MS);
    site->scene_count = count;
    for (size_t i = 0; i < count; i++) {
        site->scenes[i] = lost_scene_start(&site->fixture, node, &rows[i]);
        lost_scene_read(site->scenes[i], &site->fixture, node);
    }
}

/* What is asked of a node */

/* A node that was without Redis for a moment decides nothing until it is back. */
static int status_of(const struct lost_site *site, size_t node, const char *secret)
{
    int status;

    while ((status = fixture_try_key(&site->fixture, node, secret)) == 503 && deadline_left_ms(patience) > 0)
        poll(NULL, 0, 20);
    return status;
}

static void await_refused(const struct lost_site *site, size_t node, const char *secret, const char *name)
{
    while (status_of(site, node, secret) == 200 && deadline_left_ms(patience) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(status_of(site, node, secret), 401, "%s: the old key outlives the first use of its successor", name);
}

/* When the old key ends, in ms; 0: never, or it has ended. */
static int64_t end_of(const struct lost_site *site, size_t node, const struct lost_scene *scene)
{
    struct http_answer answer;
    char target[128], value[64];
    int64_t ms = 0;

    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", scene->key.id);
    cr_assert_eq(lost_get(&site->fixture, node, &scene->owner_session, target, &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "revoke_at", value, sizeof value), "%s", answer.body);
    cr_assert(strcmp(value, "null") == 0 || clock_read_rfc3339((struct text){value, strlen(value)}, &ms));
    return ms;
}

static size_t count_lines(const struct lost_scene *scene, const char *start, const char *end)
{
    size_t count = 0;

    for (size_t i = 0; i < scene->line_count; i++) {
        const char *line = scene->lines[i];
        size_t len = strlen(line);

        count +=
            strncmp(line, start, strlen(start)) == 0 && len > strlen(end) && strcmp(line + len - strlen(end), end) == 0;
    }
    return count;
}

static size_t live_successors(struct lost_site *site, size_t node, struct lost_scene *scene)
{
    lost_scene_read(scene, &site->fixture, node);
    return count_lines(scene, "key successor ", " active");
}

static void await_successors(struct lost_site *site, size_t node, struct lost_scene *scene, size_t wanted,
                             const char *name)
{
    size_t live;

    while ((live = live_successors(site, node, scene)) != wanted && deadline_left_ms(patience) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(live, wanted, "%s: %zu live successors", name, live);
}

/* The property */

/* began_ms: before the first request; once_ms: the end that it had set before the repetition, or 0. */
static void expect_end(const struct lost_site *site, size_t node, const struct lost_scene *scene, int64_t began_ms,
                       int64_t once_ms, const char *name)
{
    const int64_t overlap_ms = ends_by_use(scene->row) ? LEAST_MS : OVERLAP_MS;
    const int64_t end_ms = end_of(site, node, scene);

    cr_expect(end_ms >= began_ms + overlap_ms - CLOCKS_MS && end_ms <= clock_wall_ms() + overlap_ms + CLOCKS_MS,
              "%s: the old key ends %lld ms after the request", name, (long long)(end_ms - began_ms));
    cr_expect(once_ms == 0 || end_ms == once_ms, "%s: the repetition moves the end by %lld ms", name,
              (long long)(end_ms - once_ms));
}

static void expect_pair(struct lost_site *site, size_t node, struct lost_scene *scene, int64_t began_ms,
                        bool may_be_delivered, const char *point)
{
    const char *name = name_of(scene, point);
    int64_t once_ms;

    cr_expect_eq(status_of(site, node, scene->key.secret), 200, "%s: no key works before the repetition", name);
    once_ms = may_be_delivered ? end_of(site, node, scene) : 0;
    lost_scene_repeat(scene, &site->fixture, node);
    if (!scene->secret[0]) {
        cr_expect(false, "%s: the repetition gives no key", name);
        return;
    }
    cr_expect_eq(status_of(site, node, scene->key.secret), 200, "%s: the old key ended before its successor was used",
                 name);
    expect_end(site, node, scene, began_ms, once_ms, name);
    await_successors(site, node, scene, 1, name);
    cr_expect_eq(status_of(site, node, scene->secret), 200, "%s: the repetition's key is refused", name);
    if (ends_by_use(scene->row))
        for (size_t n = node; n < 2; n++)
            await_refused(site, n, scene->key.secret, name);
    else
        cr_expect_eq(status_of(site, node, scene->key.secret), 200, "%s: the overlap is cut", name);
}

/* Redis knows the scripts from then on: a node that must load one first would be held before it. */
static struct lost_site *start(bool long_leases)
{
    struct lost_site *site = lost_site_start(long_leases);

    start_rows(site, ROWS, 1, 0);
    lost_scene_repeat(site->scenes[0], &site->fixture, 0);
    lost_site_clear(site);
    return site;
}

Test(lost_replacements, whoever_repeats_holds_a_key_wherever_the_answer_was_lost)
{
    struct lost_site *site = start(true);

    for (size_t i = 0; i < LOST_POINT_COUNT; i++) {
        const struct lost_point *point = &LOST_POINTS[i];
        int64_t began_ms;

        start_rows(site, ROWS, ROW_COUNT, 0);
        began_ms = clock_wall_ms();
        lost_site_lose(site, point);
        for (size_t n = 0; n < ROW_COUNT; n++)
            expect_pair(site, 0, site->scenes[n], began_ms, point->may_be_delivered, point->name);
        lost_site_clear(site);
    }
    lost_site_stop(site);
}

Test(lost_replacements, whoever_repeats_holds_a_key_though_the_node_was_killed)
{
    enum { ROUNDS = 3 };
    struct lost_site *site = start(false);

    for (int round = 0; round < ROUNDS; round++) {
        int64_t began_ms;

        start_rows(site, ROWS, ROW_COUNT, 0);
        began_ms = clock_wall_ms();
        lost_site_kill(site);
        for (size_t i = 0; i < ROW_COUNT; i++)
            expect_pair(site, 1, site->scenes[i], began_ms, false, "when the node was killed");
        lost_site_clear(site);
        lost_site_restart(site);
    }
    lost_site_stop(site);
}

/* A client that never gives up: each of its answers is lost. */
Test(lost_replacements, however_often_it_is_repeated_one_successor_lives_and_the_end_stays)
{
    enum { REPETITIONS = 3 };
    struct lost_site *site = start(true);

    start_rows(site, ROWS, ROW_COUNT, 0);
    const int64_t began_ms = clock_wall_ms();
    lost_site_lose(site, &LOST_POINTS[LOST_UNREAD]);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        struct lost_scene *scene = site->scenes[i];
        const char *name = name_of(scene, "again and again");
        const int64_t once_ms = end_of(site, 0, scene);

        for (int n = 0; n < REPETITIONS; n++) {
            lost_scene_repeat(scene, &site->fixture, 0);
            expect_end(site, 0, scene, began_ms, once_ms, name);
            await_successors(site, 0, scene, 1, name);
        }
    }
    lost_site_stop(site);
}

/* A successor that was accepted has arrived: nothing replaces it behind the back of whoever uses it. */
static void expect_conflict(struct lost_site *site, struct lost_scene *scene)
{
    const char *name = name_of(scene, "after its key was used");
    struct http_answer answer;
    int64_t end_ms;

    lost_scene_repeat(scene, &site->fixture, 0);
    cr_assert_eq(status_of(site, 1, scene->secret), 200, "%s", name);
    fixture_await_in_use(&site->fixture, scene->account, scene->made);
    end_ms = end_of(site, 0, scene);
    lost_scene_send(scene, &site->fixture, 0);
    cr_assert_eq(http_client_read(&scene->client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER, "%s", name);
    http_client_close(&scene->client);
    cr_expect(answer.status == 409 && strcmp(http_answer_code(&answer), "already_replaced") == 0, "%s: %d %s", name,
              answer.status, http_answer_code(&answer));
    cr_expect(strstr(answer.body, scene->made), "%s: the answer does not name %s", name, scene->made);
    cr_expect_eq(end_of(site, 0, scene), end_ms, "%s: the end moves", name);
    cr_expect_eq(status_of(site, 0, scene->secret), 200, "%s: the successor ends", name);
    cr_expect_eq(live_successors(site, 0, scene), 1, "%s", name);
}

Test(lost_replacements, a_successor_that_was_accepted_is_not_replaced_behind_its_back)
{
    struct lost_site *site = start(true);

    start_rows(site, ROWS, ROW_COUNT, 0);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (!ends_by_use(site->scenes[i]->row)) /* such a key is revoked by then, and says so */
            expect_conflict(site, site->scenes[i]);
    lost_site_stop(site);
}

/* Nobody repeats */

static void await_end(const struct lost_site *site, const struct lost_scene *scene, int64_t wanted_ms, const char *name)
{
    int64_t end_ms;

    while ((end_ms = end_of(site, 0, scene)) != wanted_ms && deadline_left_ms(patience) > 0)
        poll(NULL, 0, 20);
    cr_expect_eq(end_ms, wanted_ms, "%s: the old key ends at %lld, not %lld", name, (long long)end_ms,
                 (long long)wanted_ms);
}

/* What surely did not arrive leaves nothing: the successor is revoked, and the old key ends as it would have before. */
static void expect_undone(struct lost_site *site, struct lost_scene *scene, bool has_end)
{
    const char *name = name_of(scene, "for sure");
    int64_t until_ms = 0;

    cr_assert(!has_end || clock_read_rfc3339((struct text){scene->until, strlen(scene->until)}, &until_ms));
    await_successors(site, 0, scene, 0, name);
    cr_expect_eq(count_lines(scene, "key successor ", " revoked"), 1, "%s: there was a successor", name);
    await_end(site, scene, until_ms, name);
    cr_expect_eq(status_of(site, 0, scene->key.secret), 200, "%s: the old key is refused", name);
}

static void expect_all_undone(const struct lost_row *rows, size_t count, bool has_end)
{
    struct lost_site *site = start(true);

    start_rows(site, rows, count, 0);
    lost_site_lose(site, &LOST_POINTS[LOST_IN_SCRIPT]);
    for (size_t i = 0; i < count; i++)
        expect_undone(site, site->scenes[i], has_end);
    lost_site_stop(site);
}

Test(lost_replacements, a_successor_that_surely_did_not_arrive_takes_its_end_with_it)
{
    expect_all_undone(ROWS, ROW_COUNT, false);
}

Test(lost_replacements, an_end_that_stood_before_stands_again)
{
    expect_all_undone(ENDING_ROWS, ENDING_ROW_COUNT, true);
}
