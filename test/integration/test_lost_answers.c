/* Answers that are lost. Each mutating route, its answer lost at each point, the request repeated by whoever sent it:
 * the end is compared with that of the same request, sent once and answered. Of replacements more is promised:
 * test_lost_replacements.c. */
#include "deadline.h"
#include "leak_guard.h"
#include "lost_points.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lost_answers, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { WHY_BYTES = 1024 };

static const struct lost_row *find_row(const struct route *route)
{
    for (size_t i = 0; i < LOST_ROW_COUNT; i++)
        if (LOST_ROWS[i].method == route->method && strcmp(LOST_ROWS[i].path, route->path) == 0)
            return &LOST_ROWS[i];
    return NULL;
}

Test(lost_answers, every_mutating_route_has_a_row)
{
    size_t routes = 0;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (ROUTES[i].method == HTTP_GET)
            continue;
        routes++;
        cr_expect(find_row(&ROUTES[i]), "%s (method %d): write down in lost_rows.c what a lost answer leaves",
                  ROUTES[i].path, (int)ROUTES[i].method);
    }
    cr_expect_eq(routes, LOST_ROW_COUNT, "a row of no route");
}

/* By row; what each ends in without a loss. */
static struct lost_scene *answered[LOST_SCENES_MAX];

static void answer_rows(struct lost_site *site, size_t node)
{
    cr_assert_leq(LOST_ROW_COUNT, LOST_SCENES_MAX);
    for (size_t i = 0; i < LOST_ROW_COUNT; i++) {
        answered[i] = lost_scene_start(&site->fixture, node, &LOST_ROWS[i]);
        lost_scene_repeat(answered[i], &site->fixture, node);
        lost_scene_read(answered[i], &site->fixture, node);
    }
}

static void stop(struct lost_site *site)
{
    for (size_t i = 0; i < LOST_ROW_COUNT; i++)
        free(answered[i]);
    lost_site_stop(site);
}

/* Makes scenes of up to so many rows (0: all) from *next on. False: there are no more. */
static bool start_rows(struct lost_site *site, bool (*takes)(const struct lost_row *row), size_t at_once, size_t *next)
{
    size_t count = 0;

    site->scene_count = LOST_ROW_COUNT;
    for (; *next < LOST_ROW_COUNT && (at_once == 0 || count < at_once); (*next)++) {
        if (!takes(&LOST_ROWS[*next]))
            continue;
        site->scenes[*next] = lost_scene_start(&site->fixture, 0, &LOST_ROWS[*next]);
        lost_scene_read(site->scenes[*next], &site->fixture, 0);
        count++;
    }
    return count > 0;
}

/* What a lost request still does, such as the revocation of its key, may come after the answer to its repetition. */
static void settle(struct lost_site *site, size_t row, size_t node, bool may_be_delivered, const char *point,
                   struct deadline deadline)
{
    struct lost_scene *scene = site->scenes[row];
    char why[WHY_BYTES];
    bool differs;

    while (lost_scene_read(scene, &site->fixture, node),
           differs = lost_scene_differs(scene, answered[row], may_be_delivered, why, sizeof why),
           differs && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 20);
    cr_expect_not(differs, "%s, answer lost %s:%s", lost_row_name(scene->row), point, why);
    lost_scene_finish(scene, &site->fixture, node);
}

static void repeat_rows(struct lost_site *site, size_t node, bool may_be_delivered, const char *point)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    for (size_t i = 0; i < LOST_ROW_COUNT; i++)
        if (site->scenes[i])
            lost_scene_repeat(site->scenes[i], &site->fixture, node);
    for (size_t i = 0; i < LOST_ROW_COUNT; i++)
        if (site->scenes[i])
            settle(site, i, node, may_be_delivered, point, deadline);
    lost_site_clear(site);
}

static bool row_any(const struct lost_row *row)
{
    return row != NULL;
}

static bool row_shows(const struct lost_row *row)
{
    return row->shows;
}

static bool row_waits(const struct lost_row *row)
{
    return row->waits;
}

static bool row_killed(const struct lost_row *row)
{
    return row->killed;
}

/* The gate lets so many lists of keys and changes of people run on a node. Revocations wait for each other's scripts.
 * Without a barrier, the node answers as soon as it hears of its script: such rows have one point less. */
enum { ENDS_AT_ONCE = 4 };
static const struct {
    bool (*takes)(const struct lost_row *row);
    size_t at_once;
} ROWS_AT[LOST_POINT_COUNT] = {
    [LOST_BEFORE_SCRIPT] = {row_any, 0},
    [LOST_IN_SCRIPT] = {row_shows, 1},
    [LOST_IN_BARRIER] = {row_waits, ENDS_AT_ONCE},
    [LOST_AT_ONCE] = {row_any, 0},
    [LOST_UNREAD] = {row_any, 0},
    [LOST_READ] = {row_any, 0},
};

Test(lost_answers, repeated_requests_end_as_if_they_had_been_answered_once)
{
    struct lost_site *site = lost_site_start(true);

    answer_rows(site, 0);
    for (size_t i = 0; i < LOST_POINT_COUNT; i++) {
        size_t next = 0;

        while (start_rows(site, ROWS_AT[i].takes, ROWS_AT[i].at_once, &next)) {
            lost_site_lose(site, &LOST_POINTS[i]);
            repeat_rows(site, 0, LOST_POINTS[i].may_be_delivered, LOST_POINTS[i].name);
        }
    }
    stop(site);
}

/* A node that is killed revokes nothing for clients that it has not answered: one key more may live, as after an answer
 * that was read. */
Test(lost_answers, requests_repeated_after_a_kill_end_as_if_they_had_been_answered_once)
{
    enum { ROUNDS = 3 };
    struct lost_site *site = lost_site_start(false);

    answer_rows(site, 1);
    for (int i = 0; i < ROUNDS; i++) {
        size_t next = 0;

        start_rows(site, row_killed, 0, &next);
        lost_site_kill(site);
        repeat_rows(site, 1, true, "when the node was killed");
        lost_site_restart(site);
    }
    stop(site);
}
