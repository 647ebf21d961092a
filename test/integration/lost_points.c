#include "lost_points.h"
#include "deadline.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WHY_BYTES = 1024 };

#define BEHIND_PROXY "--trusted-proxies", "127.0.0.1", NULL

void lost_site_restart(struct lost_site *site)
{
    char url[64];

    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_proxy_port(site->proxy, 0));
    fixture_start_node(&site->fixture, 0, "asked", url, site->node_args);
}

struct lost_site *lost_site_start(bool long_leases)
{
    static const char *const LONG[] = {"--lease-ms", "5000", BEHIND_PROXY};
    static const char *const USUAL[] = {BEHIND_PROXY};
    struct lost_site *site = calloc(1, sizeof *site);

    cr_assert(site);
    site->node_args = long_leases ? LONG : USUAL;
    fixture_use_one_redis("a proxy is in front of it");
    fixture_start(&site->fixture, 0, NULL);
    redis_server_open_port(&site->fixture.redis);
    site->proxy = redis_proxy_start(site->fixture.redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    site->fixture.node_count = 1;
    lost_site_restart(site);
    fixture_add_node(&site->fixture, site->node_args);
    leases_await_all(&site->fixture);
    fixture_open_store(&site->fixture);
    return site;
}

void lost_site_clear(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++) {
        free(site->scenes[i]);
        site->scenes[i] = NULL;
    }
    site->scene_count = 0;
}

void lost_site_stop(struct lost_site *site)
{
    lost_site_clear(site);
    fixture_close_store(&site->fixture);
    fixture_stop(&site->fixture);
    redis_proxy_stop(site->proxy);
    free(site);
}

/* Points */

static void freeze(struct lost_site *site)
{
    redis_server_freeze(&site->fixture.redis);
}

static void await_read(struct lost_site *site)
{
    fixture_await_read(&site->fixture, 0);
}

/* Here and below, the node has noticed that its clients have left. */
static void thaw(struct lost_site *site)
{
    fixture_await_read(&site->fixture, 0);
    redis_server_thaw(&site->fixture.redis);
}

static void hold(struct lost_site *site)
{
    redis_proxy_hold(site->proxy, 0, REDIS_PROXY_CHANGES, REDIS_PROXY_TO_NODE, true);
}

static void release(struct lost_site *site)
{
    fixture_await_read(&site->fixture, 0);
    redis_proxy_hold(site->proxy, 0, REDIS_PROXY_CHANGES, REDIS_PROXY_TO_NODE, false);
}

static void stop_other(struct lost_site *site)
{
    leases_await(&site->fixture, 1);
    process_signal(&site->fixture.nodes[1].process, SIGSTOP);
}

static void continue_other(struct lost_site *site)
{
    fixture_await_read(&site->fixture, 0);
    process_signal(&site->fixture.nodes[1].process, SIGCONT);
}

/* Until the account is another than it was when the scene was read last. */
static void await_shown(struct lost_scene *scene, const struct fixture *fixture, size_t reader)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    static struct lost_scene before;
    char why[WHY_BYTES];

    before = *scene;
    before.sent = 0; /* nothing is permitted */
    while (lost_scene_read(scene, fixture, reader),
           !lost_scene_differs(&before, scene, false, why, sizeof why) && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 5);
    cr_expect(deadline_left_ms(deadline) > 0, "%s changes nothing", lost_row_name(scene->row));
}

static void await_scripts(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++)
        if (site->scenes[i])
            await_shown(site->scenes[i], &site->fixture, 1);
}

static bool has_answer(const struct lost_scene *scene, int timeout_ms)
{
    struct pollfd readable = {.fd = scene->client.fd, .events = POLLIN};

    return poll(&readable, 1, timeout_ms) == 1;
}

static void await_barriers(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++) {
        const struct lost_scene *scene = site->scenes[i];

        if (!scene)
            continue;
        await_shown(site->scenes[i], &site->fixture, 0);
        cr_expect(!scene->row->waits || !has_answer(scene, 0), "%s waits for no barrier", lost_row_name(scene->row));
    }
}

static void await_answers(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++)
        if (site->scenes[i])
            cr_expect(has_answer(site->scenes[i], PATIENCE_MS), "%s has no answer",
                      lost_row_name(site->scenes[i]->row));
}

static void read_answers(struct lost_site *site)
{
    struct http_answer answer;

    for (size_t i = 0; i < site->scene_count; i++) {
        struct lost_scene *scene = site->scenes[i];

        if (!scene)
            continue;
        cr_assert_eq(http_client_read(&scene->client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER, "%s",
                     lost_row_name(scene->row));
        lost_scene_expect(scene, &answer);
    }
}

const struct lost_point LOST_POINTS[LOST_POINT_COUNT] = {
    [LOST_BEFORE_SCRIPT] = {"while Redis is stopped", freeze, await_read, thaw, false},
    [LOST_IN_SCRIPT] = {"before the node hears of its script", hold, await_scripts, release, false},
    [LOST_IN_BARRIER] = {"before the barrier is over", stop_other, await_barriers, continue_other, false},
    /* The node may be faster than whoever sends and leaves. */
    [LOST_AT_ONCE] = {"as soon as it was asked for", NULL, NULL, NULL, true},
    [LOST_UNREAD] = {"unread", NULL, await_answers, NULL, true},
    [LOST_READ] = {"after it was read", NULL, read_answers, NULL, true},
};

static void send_all(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++)
        if (site->scenes[i])
            lost_scene_send(site->scenes[i], &site->fixture, 0);
}

static void leave_all(struct lost_site *site)
{
    for (size_t i = 0; i < site->scene_count; i++)
        if (site->scenes[i])
            http_client_reset(&site->scenes[i]->client);
}

void lost_site_lose(struct lost_site *site, const struct lost_point *point)
{
    if (point->prepare)
        point->prepare(site);
    send_all(site);
    if (point->await)
        point->await(site);
    leave_all(site);
    if (point->heal)
        point->heal(site);
}

/* It need not be fair: each run is to try others. */
static int random_delay_ms(void)
{
    enum { DELAY_MAX_MS = 12, NS_PER_US = 1000 };
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int)(now.tv_nsec / NS_PER_US % (DELAY_MAX_MS + 1));
}

void lost_site_kill(struct lost_site *site)
{
    send_all(site);
    poll(NULL, 0, random_delay_ms());
    node_kill(&site->fixture.nodes[0]);
    leave_all(site);
}
