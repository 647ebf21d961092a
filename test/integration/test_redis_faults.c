/* Redis crashing, hanging, refusing and lying. The node may answer 503, and must be back soon after Redis is; it must
 * never accept a revoked key, never call a good key bad, and never answer 500. */
#include "fixture.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(redis_faults, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* For a Redis that hangs. */
static const char *const HASTY[] = {"--redis-timeout-ms", "500", NULL};

struct scene {
    struct fixture fixture;
    struct fixture_key revoked;
    struct fixture_session session;
};

static void scene_start(struct scene *scene, const char *const *more)
{
    fixture_start(&scene->fixture, 1, more);
    fixture_add_key(&scene->fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &scene->revoked);
    fixture_revoke_key(&scene->fixture, &scene->revoked);
    fixture_add_session(&scene->fixture, NULL, true, &scene->session);
}

/* One request. Where Redis hangs until the test lets it go on, that an answer comes says that it came in time. */
static int ask(const struct scene *scene, const struct http_call *call, struct http_answer *ret_answer)
{
    return fixture_call(&scene->fixture, 0, call, ret_answer);
}

static void expect_unavailable(const struct http_answer *answer, const char *what)
{
    char value[32];

    cr_expect_eq(answer->status, 503, "%s: %d %s", what, answer->status, answer->body);
    cr_expect_str_eq(http_answer_code(answer), "store_unavailable", "%s", what);
    cr_expect(http_answer_field(answer, "Retry-After", value, sizeof value), "%s", what);
}

static int check(const struct scene *scene, const char *secret, struct http_answer *ret_answer)
{
    return ask(scene, &(struct http_call){.target = "/v1/whoami", .bearer = secret}, ret_answer);
}

static int create(const struct scene *scene, struct http_answer *ret_answer)
{
    return ask(scene,
               &(struct http_call){.method = "POST",
                                   .target = "/v1/api_keys",
                                   .bearer = scene->fixture.manager.secret,
                                   .json = "{\"name\":\"a\",\"mode\":\"test\"}"},
               ret_answer);
}

static int internal_status(const struct scene *scene, const char *target)
{
    struct http_answer answer;

    return http_call(scene->fixture.nodes[0].internal_port, &(struct http_call){.target = target}, &answer);
}

/* What must hold whatever Redis does. */
static void expect_no_wrong_answer(const struct scene *scene)
{
    struct http_answer answer;
    int status;

    status = check(scene, scene->fixture.manager.secret, &answer);
    cr_expect(status == 200 || status == 503, "a good key: %d %s", status, answer.body);
    status = check(scene, scene->revoked.secret, &answer);
    cr_expect(status == 401 || status == 503, "a revoked key: %d %s", status, answer.body);
    status = ask(scene, &(struct http_call){.target = "/v1/console/session", .cookie = scene->session.token}, &answer);
    cr_expect(status == 200 || status == 503, "a session: %d %s", status, answer.body);
    status = create(scene, &answer);
    cr_expect(status == 201 || status == 503, "creating: %d %s", status, answer.body);
    cr_expect_eq(internal_status(scene, "/livez"), 200);
}

/* Each comes back at its own time. */
static void expect_back(const struct scene *scene)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct http_answer answer;

    fixture_await_key(&scene->fixture, 0, scene->fixture.manager.secret, 200);
    fixture_await_key(&scene->fixture, 0, scene->revoked.secret, 401);
    while (create(scene, &answer) != 201 || internal_status(scene, "/readyz") != 200) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "not back: %s", answer.body);
        expect_no_wrong_answer(scene);
        poll(NULL, 0, 20); /* more creations would reach a limit */
    }
    fixture_await_all_ready(&scene->fixture, 0);
}

Test(redis_faults, a_crash_and_a_restart)
{
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, NULL);
    for (size_t i = 0; i < 3; i++) {
        redis_server_kill(&scene.fixture.redis);
        expect_no_wrong_answer(&scene);
        check(&scene, scene.fixture.manager.secret, &answer);
        expect_unavailable(&answer, "a check");
        check(&scene, "svc_sk_live_x", &answer);
        cr_expect_eq(answer.status, 401, "garbage needs no store");
        create(&scene, &answer);
        expect_unavailable(&answer, "creating");
        cr_expect_eq(internal_status(&scene, "/readyz"), 503);
        redis_server_restart(&scene.fixture.redis);
        expect_back(&scene);
    }
    fixture_stop(&scene.fixture);
}

Test(redis_faults, requests_under_way_when_it_crashes)
{
    enum { CLIENTS = 8 };
    struct http_client clients[CLIENTS];
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, HASTY);
    redis_server_freeze(&scene.fixture.redis);
    for (size_t i = 0; i < CLIENTS; i++) {
        struct http_call call = {.target = "/v1/whoami",
                                 .bearer = i % 2 ? scene.revoked.secret : scene.fixture.manager.secret};

        http_client_connect(&clients[i], scene.fixture.nodes[0].port);
        http_client_send_call(&clients[i], &call);
    }
    redis_server_kill(&scene.fixture.redis);
    for (size_t i = 0; i < CLIENTS; i++) {
        cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        expect_unavailable(&answer, "under way");
        http_client_close(&clients[i]);
    }
    redis_server_restart(&scene.fixture.redis);
    expect_back(&scene);
    fixture_stop(&scene.fixture);
}

Test(redis_faults, it_hangs)
{
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, HASTY);
    redis_server_freeze(&scene.fixture.redis);
    check(&scene, scene.fixture.manager.secret, &answer);
    expect_unavailable(&answer, "a check");
    create(&scene, &answer);
    expect_unavailable(&answer, "creating");
    expect_no_wrong_answer(&scene);
    redis_server_thaw(&scene.fixture.redis);
    expect_back(&scene);
    fixture_stop(&scene.fixture);
}

/* It takes no command to end such a pause. */
Test(redis_faults, it_pauses_its_clients)
{
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, HASTY);
    int64_t until_ms = deadline_now_ms() + 4000;
    redis_server_tell_all(&scene.fixture.redis, "CLIENT", "PAUSE", "4000", "ALL", NULL);
    check(&scene, scene.fixture.manager.secret, &answer);
    if (deadline_now_ms() < until_ms)
        expect_unavailable(&answer, "a check");
    expect_no_wrong_answer(&scene);
    expect_back(&scene);
    fixture_stop(&scene.fixture);
}

/* As a failover that is asked for does. What was used before is written meanwhile, or would be; checks only read. */
Test(redis_faults, it_pauses_writes)
{
    static struct scene scene;
    struct http_answer answer;
    unsigned checks = 0;

    fixture_use_one_redis("in a cluster, no read decides without heartbeats, which are written");
    scene_start(&scene, NULL);
    cr_assert_eq(check(&scene, scene.fixture.manager.secret, &answer), 200);
    redis_server_tell(&scene.fixture.redis, "CLIENT", "PAUSE", "600000", "WRITE", NULL);
    int64_t until_ms = deadline_now_ms() + 4000;
    for (; deadline_now_ms() < until_ms; checks++) {
        cr_assert_eq(check(&scene, scene.fixture.manager.secret, &answer), 200, "check %u: %s", checks, answer.body);
        cr_assert_eq(check(&scene, scene.revoked.secret, &answer), 401, "check %u: %s", checks, answer.body);
        poll(NULL, 0, 10);
    }
    redis_server_tell(&scene.fixture.redis, "CLIENT", "UNPAUSE", NULL);
    fixture_stop(&scene.fixture);
}

Test(redis_faults, it_closes_all_connections_again_and_again)
{
    struct scene scene;

    scene_start(&scene, NULL);
    for (size_t i = 0; i < 10; i++) {
        redis_server_tell_all(&scene.fixture.redis, "CLIENT", "KILL", "TYPE", "normal", NULL);
        expect_no_wrong_answer(&scene);
    }
    expect_back(&scene);
    fixture_stop(&scene.fixture);
}

Test(redis_faults, it_forgets_all_scripts)
{
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, NULL);
    for (size_t i = 0; i < 3; i++) {
        redis_server_tell_all(&scene.fixture.redis, "SCRIPT", "FLUSH", NULL);
        cr_expect_eq(create(&scene, &answer), 201, "%s", answer.body);
        cr_expect_eq(check(&scene, scene.revoked.secret, &answer), 401);
        cr_expect_eq(
            ask(&scene, &(struct http_call){.target = "/v1/console/session", .cookie = scene.session.token}, &answer),
            200);
    }
    fixture_stop(&scene.fixture);
}

Test(redis_faults, it_becomes_a_replica)
{
    struct http_answer answer;
    struct scene scene;

    fixture_use_one_redis("a cluster does not let REPLICAOF make a replica of its primary");
    scene_start(&scene, NULL);
    redis_server_tell(&scene.fixture.redis, "REPLICAOF", "127.0.0.1", "1", NULL);
    create(&scene, &answer);
    expect_unavailable(&answer, "creating");
    expect_no_wrong_answer(&scene);
    redis_server_tell(&scene.fixture.redis, "REPLICAOF", "NO", "ONE", NULL);
    /* That it is writable again is looked at every few seconds only. */
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (internal_status(&scene, "/readyz") != 200 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 100);
    fixture_await_all_ready(&scene.fixture, 0);
    expect_back(&scene);
    fixture_stop(&scene.fixture);
}

static int status_of(const struct scene *scene, const struct http_call *call)
{
    struct http_answer answer;

    return ask(scene, call, &answer);
}

static int revoke(const struct scene *scene, const struct fixture_key *key)
{
    char path[64];

    snprintf(path, sizeof path, "/v1/api_keys/%s", key->id);
    return status_of(scene,
                     &(struct http_call){.method = "DELETE", .target = path, .bearer = scene->fixture.manager.secret});
}

static int revoke_in_console(const struct scene *scene, const struct fixture_key *key)
{
    char path[64];

    snprintf(path, sizeof path, "/v1/console/api_keys/%s", key->id);
    return status_of(
        scene, &(struct http_call){
                   .method = "DELETE", .target = path, .cookie = scene->session.token, .csrf = scene->session.csrf});
}

static int log_out(const struct scene *scene)
{
    return status_of(scene, &(struct http_call){.method = "POST",
                                                .target = "/v1/auth/logout",
                                                .cookie = scene->session.token,
                                                .csrf = scene->session.csrf});
}

static int revoke_by_command(struct scene *scene, const struct fixture_key *key)
{
    return fixture_run(&scene->fixture, (const char *const[]){"key", "revoke", key->id, NULL}, NULL, NULL, NULL);
}

/* Heartbeats go on: the lease is renewed for longer than one lasts, and checks are answered from memory. */
static void expect_leases(const struct scene *scene)
{
    struct deadline longer = deadline_in(3000);
    struct http_answer answer;

    while (deadline_left_ms(longer) > 0) {
        cr_expect_eq(check(scene, scene->fixture.manager.secret, &answer), 200);
        poll(NULL, 0, 100);
    }
    leases_await(&scene->fixture, 0);
}

/* Any tenant can bring it about. What must go on does: revocations by a key, in the console and by command, ends of
 * sessions, leases. What would make something is refused. */
Test(redis_faults, its_memory_is_full)
{
    struct fixture_key keys[3];
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, NULL);
    for (size_t i = 0; i < 3; i++)
        fixture_add_key(&scene.fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &keys[i]);
    redis_server_tell_all(&scene.fixture.redis, "CONFIG", "SET", "maxmemory", "1", NULL);
    create(&scene, &answer);
    expect_unavailable(&answer, "creating");
    cr_expect(strstr(answer.body, "memory is full"), "whoever asked is told why: %s", answer.body);
    cr_expect_eq(internal_status(&scene, "/readyz"), 200);
    cr_expect_eq(fixture_metric(&scene.fixture, 0, "chatelaine_redis_full"), 1);
    cr_expect_eq(revoke(&scene, &keys[0]), 200);
    cr_expect_eq(revoke(&scene, &keys[0]), 200, "again");
    cr_expect_eq(revoke_in_console(&scene, &keys[1]), 200);
    cr_expect_eq(revoke_by_command(&scene, &keys[2]), 0);
    cr_expect_eq(log_out(&scene), 204);
    for (size_t i = 0; i < 3; i++)
        cr_expect_eq(check(&scene, keys[i].secret, &answer), 401, "key %zu", i);
    expect_leases(&scene);
    /* A node that comes up meanwhile serves as well. */
    fixture_add_node(&scene.fixture, NULL);
    cr_expect_eq(fixture_try_key(&scene.fixture, 1, scene.fixture.manager.secret), 200);
    redis_server_tell_all(&scene.fixture.redis, "CONFIG", "SET", "maxmemory", "0", NULL);
    cr_expect_eq(create(&scene, &answer), 201, "%s", answer.body);
    fixture_stop(&scene.fixture);
}

/* The name of the only key record but the revoked one's; there are two, so that a test spoils both. */
static void spoil_all_records(const struct redis_server *server, const char *names_like, bool whole)
{
    char names[4096], *rest = names, *name;

    redis_server_ask(server, names, sizeof names, "KEYS", names_like, NULL);
    while ((name = strsep(&rest, "\n")) != NULL) {
        if (*name == '\0')
            continue;
        redis_server_tell(server, "DEL", name, NULL);
        if (whole)
            redis_server_tell(server, "HSET", name, "id", "nonsense", NULL);
        else
            redis_server_tell(server, "SET", name, "all of them, yesterday", NULL);
    }
}

static void expect_spoilt_records_are_refused(bool whole)
{
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, NULL);
    for (const struct redis_server *server = &scene.fixture.redis; server; server = server->next)
        spoil_all_records(server, fixture_name(scene.fixture.account, "key:*"), whole);
    check(&scene, scene.fixture.manager.secret, &answer);
    expect_unavailable(&answer, "a record that is nonsense");
    check(&scene, scene.revoked.secret, &answer);
    expect_unavailable(&answer, "a record that is nonsense");
    fixture_stop(&scene.fixture);
}

Test(redis_faults, a_record_of_the_wrong_type)
{
    expect_spoilt_records_are_refused(true);
}

Test(redis_faults, a_record_with_nonsense_in_its_fields)
{
    expect_spoilt_records_are_refused(false);
}

Test(redis_faults, serve_refuses_a_redis_that_is_not_durable)
{
    struct redis_server_options options = {.not_durable = true};
    struct fixture fixture;
    struct redis_server unfit;
    char *out, *err;

    fixture_use_one_redis("it starts another Redis, and none that belongs to a cluster");
    fixture_start(&fixture, 0, NULL);
    redis_server_start(&unfit, &options);
    const char *args[] = {"serve",       "--public-origin",   NODE_ORIGIN,   "--listen",
                          "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", NULL};
    struct redis_server durable = fixture.redis;
    fixture.redis = unfit;
    cr_expect_eq(fixture_run(&fixture, args, NULL, &out, &err), 3, "%s", err);
    cr_expect_not_null(strstr(err, "appendonly"), "it names what to change: %s", err);
    fixture.redis = durable;
    free(out);
    free(err);
    redis_server_stop(&unfit);
    fixture_stop(&fixture);
}

/* Each from an address of its own, so that none is throttled. */
static int begin_enrolment(const struct scene *scene, unsigned nth, struct http_answer *ret_answer)
{
    char fields[64];

    snprintf(fields, sizeof fields, "X-Forwarded-For: 2001:db8:%x::1\r\n", nth);
    struct http_call call = {.method = "POST",
                             .target = "/v1/auth/device_authorization",
                             .form = "client_id=desktop-agent",
                             .fields = fields};
    return fixture_call(&scene->fixture, 0, &call, ret_answer);
}

static void await_enrolments(const struct scene *scene, unsigned *nth, int status, struct http_answer *ret_answer)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (begin_enrolment(scene, ++*nth, ret_answer) != status) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%d %s", ret_answer->status, ret_answer->body);
        poll(NULL, 0, 100);
    }
}

/* The last tenth of its memory is not for strangers: what they write is refused, and counters of theirs go. Whoever has
 * a key or signs in does not notice. */
Test(redis_faults, its_memory_runs_short)
{
    static const char *const BEHIND_PROXY[] = {"--trusted-proxies", "127.0.0.0/8", NULL};
    struct http_answer answer;
    struct scene scene;
    unsigned nth = 0;

    scene_start(&scene, BEHIND_PROXY);
    cr_assert_eq(begin_enrolment(&scene, ++nth, &answer), 200, "%s", answer.body);
    for (const struct redis_server *server = &scene.fixture.redis; server; server = server->next) {
        char info[4096], most[32], *used;

        redis_server_ask(server, info, sizeof info, "INFO", "memory", NULL);
        used = strstr(info, "used_memory:");
        cr_assert(used);
        snprintf(most, sizeof most, "%lld", strtoll(used + strlen("used_memory:"), NULL, 10) / 20 * 21);
        redis_server_tell(server, "CONFIG", "SET", "maxmemory", most, NULL);
    }
    await_enrolments(&scene, &nth, 503, &answer);
    cr_expect(strstr(answer.body, "nearly full"), "%s", answer.body);
    cr_expect_eq(create(&scene, &answer), 201, "%s", answer.body);
    cr_expect_eq(internal_status(&scene, "/readyz"), 200);
    redis_server_tell_all(&scene.fixture.redis, "CONFIG", "SET", "maxmemory", "0", NULL);
    await_enrolments(&scene, &nth, 200, &answer);
    fixture_stop(&scene.fixture);
}
