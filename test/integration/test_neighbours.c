/* A noisy neighbour: account A does its worst, with a test key that leaked, and B revokes. */
#include "base/clock.h"
#include "leak_guard.h"
#include "route_attack.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(neighbours, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { CONNECTIONS = 200 };

struct scene {
    struct fixture fixture;
    struct attack_scene a;
    struct http_client clients[CONNECTIONS], other;
    struct http_answer answer;
    uint64_t slowest_ns; /* of B's revocations */
    char *ids;           /* as attack_print_unknown_keys() makes them; NULL: not yet */
};

/* The store is opened once, for all that a test makes in it. */
static struct scene *scene_start(enum key_mode mode, const char *const *more)
{
    struct scene *scene = calloc(1, sizeof *scene);

    cr_assert(scene);
    fixture_start(&scene->fixture, 1, more);
    fixture_open_store(&scene->fixture);
    attack_add_tenant(&scene->fixture, mode, &scene->a);
    fixture_await_key(&scene->fixture, 0, scene->a.key.secret, 200);
    fixture_await_key(&scene->fixture, 0, scene->fixture.manager.secret, 200);
    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_connect(&scene->clients[i], scene->fixture.nodes[0].port);
    http_client_connect(&scene->other, scene->fixture.nodes[0].port);
    fixture_await_read(&scene->fixture, 0);
    return scene;
}

/* How long B waited depends on the machine, so it is only told. */
static void scene_stop(struct scene *scene)
{
    if (scene->slowest_ns > 0)
        cr_log_info("the slowest revocation of a neighbour took %llu ms",
                    (unsigned long long)(scene->slowest_ns / CLOCK_NS_PER_MS));
    fixture_close_store(&scene->fixture);
    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_close(&scene->clients[i]);
    http_client_close(&scene->other);
    fixture_stop(&scene->fixture);
    free(scene->ids);
    free(scene);
}

static void other_revokes(struct scene *scene, const char *during)
{
    struct fixture_key key;
    char target[80];
    const struct http_call call = {.method = "DELETE", .target = target, .bearer = scene->fixture.manager.secret};

    fixture_add_key(&scene->fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    const uint64_t began_ns = clock_boot_ns();
    http_client_call(&scene->other, &call, &scene->answer);
    const uint64_t took_ns = clock_boot_ns() - began_ns;
    scene->slowest_ns = took_ns > scene->slowest_ns ? took_ns : scene->slowest_ns;
    cr_expect_eq(scene->answer.status, 200, "during %s: %s", during, scene->answer.body);
}

/* All that A sends lies before the node when it goes on: so it meets all of it at once, however busy the machine is. */
static void flood(struct scene *scene, const struct route *row)
{
    struct attack_call attack;

    cr_assert(attack_make(&scene->a, row, ATTACK_VALID, &attack), "%s", row->path);
    process_signal(&scene->fixture.nodes[0].process, SIGSTOP);
    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_send_call(&scene->clients[i], &attack.call);
    process_signal(&scene->fixture.nodes[0].process, SIGCONT);
    attack_free(&attack);
}

static size_t count_refused(struct scene *scene, const char *path)
{
    size_t refused = 0;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        cr_assert_eq(http_client_read(&scene->clients[i], false, PATIENCE_MS, &scene->answer), HTTP_CLIENT_ANSWER);
        if (scene->answer.status != 429)
            continue;
        refused++;
        cr_expect_str_eq(http_answer_code(&scene->answer), "rate_limited", "%s", path);
        cr_expect(strstr(scene->answer.head, "Retry-After: "), "%s", path);
    }
    return refused;
}

Test(neighbours, it_is_written_down_what_each_route_is_attacked_with)
{
    struct attack_scene scene = {0};
    struct attack_call attack;

    for (size_t i = 0; i < ROUTE_COUNT; i++)
        for (enum attack_shape shape = 0; shape < ATTACK_SHAPES; shape++) {
            cr_expect(attack_make(&scene, &ROUTES[i], shape, &attack), "%s %s", attack_method(&ROUTES[i]),
                      ROUTES[i].path);
            attack_free(&attack);
        }
}

static void walk(enum route_who who, const char *name)
{
    /* Few reads, so that each row of the walk finds the bucket empty. */
    struct scene *scene = scene_start(MODE_LIVE, (const char *const[]){"--reads-per-second", "1", NULL});
    size_t rows = 0;

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *row = &ROUTES[i];

        if (row->who != who || !gate_has_places(row->class))
            continue;
        rows++;
        flood(scene, row);
        other_revokes(scene, row->path);
        cr_expect_gt(count_refused(scene, row->path), 0, "%s: nothing bounds it", row->path);
    }
    cr_expect_gt(rows, 5, "%s", name);
    scene_stop(scene);
}

Test(neighbours, no_route_for_keys_takes_revocation_from_others)
{
    walk(WHO_API_KEY, "keys");
}

Test(neighbours, no_route_for_people_takes_revocation_from_others)
{
    walk(WHO_SESSION, "people");
}

/* Work that nobody waits for */

enum { SLICES_OF_ALL = ATTACK_EVENTS / 120 };

static long slices(const struct scene *scene)
{
    return fixture_metric(&scene->fixture, 0, "chatelaine_redis_duration_seconds_count{link=\"work\"}");
}

static void send_searches(struct scene *scene)
{
    const struct http_call call = {.target = "/v1/audit" ATTACK_SEARCH, .bearer = scene->a.key.secret};

    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_send_call(&scene->clients[i], &call);
}

static void await_no_work(const struct scene *scene)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(&scene->fixture, 0, "chatelaine_gate_running{class=\"work\"}") +
               fixture_metric(&scene->fixture, 0, "chatelaine_gate_waiting{class=\"work\"}") >
           0)
        cr_assert_gt(deadline_left_ms(deadline), 0, "work goes on");
}

Test(neighbours, a_search_ends_with_its_client)
{
    struct scene *scene = scene_start(MODE_LIVE, NULL);
    const struct http_call page = {.target = "/v1/audit", .bearer = scene->fixture.manager.secret};

    attack_fill_trail(&scene->fixture, scene->a.account);
    send_searches(scene);
    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_reset(&scene->clients[i]);
    http_client_call(&scene->other, &page, &scene->answer);
    cr_expect_eq(scene->answer.status, 200, "%s", scene->answer.body);
    await_no_work(scene);
    cr_expect_lt(slices(scene), 18 * SLICES_OF_ALL, "what ran and what waited went on for nobody");
    scene_stop(scene);
}

static uint64_t scripts_run(const struct scene *scene)
{
    char reply[32];
    uint64_t count;

    redis_server_ask(&scene->fixture.redis, reply, sizeof reply, "EVAL",
                     "return redis.call('INFO', 'commandstats'):match('cmdstat_evalsha:calls=(%d+)')", "0", NULL);
    cr_assert(text_to_u64(text_of(reply), UINT32_MAX, &count), "%s", reply);
    return count;
}

Test(neighbours, a_search_does_not_keep_a_node_from_stopping)
{
    struct scene *scene = scene_start(MODE_LIVE, (const char *const[]){"--drain-ms", "100", NULL});
    uint64_t before;

    attack_fill_trail(&scene->fixture, scene->a.account);
    send_searches(scene);
    while (slices(scene) == 0)
        continue;
    before = scripts_run(scene);
    process_signal(&scene->fixture.nodes[0].process, SIGTERM);
    node_expect_clean_end(&scene->fixture.nodes[0]);
    cr_expect_lt(scripts_run(scene) - before, 4 * SLICES_OF_ALL, "searches ran to their end");
    scene_stop(scene);
}

/* Passwords that nobody waits for */

#define LOGIN_REFUSED "message=\"login refused\""

static long hashes(const struct scene *scene)
{
    return fixture_metric(&scene->fixture, 0, "chatelaine_password_queue") +
           fixture_metric(&scene->fixture, 0, "chatelaine_password_hash_duration_seconds_count");
}

static size_t count_lines(const struct scene *scene, const char *what)
{
    char *log = node_log(&scene->fixture.nodes[0]);
    size_t count = 0;

    for (const char *at = log; (at = strstr(at, what)); at++)
        count++;
    free(log);
    return count;
}

/* A request lives until its password is judged, whoever waits for it. */
Test(neighbours, passwords_do_not_keep_a_node_from_stopping)
{
    enum { LOGINS = 20 };
    struct scene *scene;
    char json[128];
    const struct http_call call = {.method = "POST", .target = "/v1/auth/login", .json = json};

    setenv("CHATELAINE_TEST_PASSWORD_COST", "17", 1); /* the true one, so that they wait */
    scene = scene_start(MODE_LIVE, (const char *const[]){"--drain-ms", "100", "--password-parallel", "1", NULL});
    for (int i = 0; i < LOGINS; i++) {
        snprintf(json, sizeof json, "{\"email\":\"n%d@clinic.example\",\"password\":\"wrong-one\",\"totp\":\"000000\"}",
                 i);
        http_client_send_call(&scene->clients[i], &call);
    }
    while (hashes(scene) < LOGINS || count_lines(scene, LOGIN_REFUSED) == 0)
        continue;
    process_signal(&scene->fixture.nodes[0].process, SIGTERM);
    node_expect_clean_end(&scene->fixture.nodes[0]);
    cr_expect_lt(count_lines(scene, LOGIN_REFUSED), LOGINS, "all were hashed");
    scene_stop(scene);
}

/* Lists of keys to revoke */

/* A sanitizer has a shadow of all addresses: terabytes, most of which stay untouched. */
static bool has_sanitizer(int pid)
{
    char path[64], line[512];
    unsigned long kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    file = fopen(path, "r");
    cr_assert(file);
    while (kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "VmSize:", 7) == 0)
            kib = strtoul(line + 7, NULL, 10);
    fclose(file);
    cr_assert_gt(kib, 0);
    return kib >> 30 > 0;
}

/* A sanitizer takes a multiple of it, and keeps what was freed. */
static void expect_little_memory(const struct scene *scene)
{
    const struct node *node = &scene->fixture.nodes[0];
    const unsigned long kib = attack_peak_kib(node);

    cr_expect(has_sanitizer((int)node->process.pid) || kib < ATTACK_NODE_MAX_KIB, "%lu KiB", kib);
}

Test(neighbours, long_lists_of_one_account_take_revocation_from_nobody)
{
    struct scene *scene = scene_start(MODE_TEST, NULL);
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/api_keys/revoke",
                                   .bearer = scene->a.key.secret,
                                   .json = scene->ids = attack_print_unknown_keys()};
    size_t refused = 0;

    for (size_t i = 0; i < CONNECTIONS; i++) {
        http_client_send_call(&scene->clients[i], &call);
        if (i % 20 == 0)
            other_revokes(scene, "long lists");
    }
    refused = count_refused(scene, call.target);
    cr_expect_gt(refused, 0, "nothing bounds them");
    cr_expect_lt(refused, CONNECTIONS, "the first is not refused");
    expect_little_memory(scene);
    scene_stop(scene);
}

/* Bodies that never come to their end keep no place, neither from a live key of the account nor from other accounts. */
Test(neighbours, bodies_that_are_still_coming_hold_no_place)
{
    enum { SLOW = 40 };
    struct scene *scene = scene_start(MODE_TEST, NULL);
    struct fixture_key live, victim;
    char begun[512], json[128];
    const struct http_call ends = {.method = "POST", .target = "/v1/api_keys/revoke", .json = json};
    struct http_call call = ends;

    fixture_add_key(&scene->fixture, scene->a.account, KEY_API, MODE_LIVE, SCOPE_ALL, &live);
    fixture_add_key(&scene->fixture, scene->a.account, KEY_API, MODE_LIVE, SCOPE_ALL, &victim);
    snprintf(begun, sizeof begun,
             "POST /v1/api_keys/revoke HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer %s\r\n"
             "Content-Type: application/json\r\nContent-Length: 60\r\nExpect: 100-continue\r\n\r\n",
             scene->a.key.secret);
    for (size_t i = 0; i < SLOW; i++) {
        cr_assert(http_client_send(&scene->clients[i], begun, strlen(begun)));
        cr_assert_eq(http_client_read(&scene->clients[i], false, PATIENCE_MS, &scene->answer), HTTP_CLIENT_ANSWER);
        cr_assert_eq(scene->answer.status, 100, "%zu: %s", i, scene->answer.body);
    }
    snprintf(json, sizeof json, "{\"ids\":[\"%s\"]}", victim.id);
    call.bearer = live.secret;
    http_client_call(&scene->other, &call, &scene->answer);
    cr_expect_eq(scene->answer.status, 200, "%s", scene->answer.body);
    call.bearer = scene->a.key.secret;
    http_client_call(&scene->other, &call, &scene->answer);
    cr_expect_eq(scene->answer.status, 200, "its own key neither: %s", scene->answer.body);
    scene_stop(scene);
}

/* A leaked test key keeps its account's people from nothing. */
Test(neighbours, people_end_their_keys_while_a_key_of_theirs_does_its_worst)
{
    struct scene *scene = scene_start(MODE_TEST, NULL);
    const struct http_call flood_call = {.method = "POST",
                                         .target = "/v1/api_keys/revoke",
                                         .bearer = scene->a.key.secret,
                                         .json = scene->ids = attack_print_unknown_keys()};
    char json[128];
    const struct http_call ends = {.method = "POST",
                                   .target = "/v1/console/api_keys/revoke",
                                   .cookie = scene->a.session.token,
                                   .csrf = scene->a.session.csrf,
                                   .json = json};

    for (size_t i = 0; i < 30; i++)
        http_client_send_call(&scene->clients[i], &flood_call);
    snprintf(json, sizeof json, "{\"ids\":[\"%s\"]}", scene->a.key.id);
    http_client_call(&scene->other, &ends, &scene->answer);
    cr_expect_eq(scene->answer.status, 200, "%s", scene->answer.body);
    cr_expect(strstr(scene->answer.body, "\"revoked\":[\"key_"), "%s", scene->answer.body);
    fixture_await_key(&scene->fixture, 0, scene->a.key.secret, 401);
    scene_stop(scene);
}

/* Conflicts and unknown ids */

static int invite(struct scene *scene, const char *email)
{
    char json[128];
    const struct http_call call = {
        .method = "POST", .target = "/v1/team/invitations", .bearer = scene->a.key.secret, .json = json};

    snprintf(json, sizeof json, "{\"email\":\"%s\",\"role\":\"auditor\"}", email);
    http_client_call(&scene->clients[0], &call, &scene->answer);
    return scene->answer.status;
}

Test(neighbours, emails_of_others_cannot_be_asked_for_without_end)
{
    struct scene *scene = scene_start(MODE_LIVE, NULL);
    struct fixture_user theirs;

    fixture_add_person(&scene->fixture, NULL, "theirs@clinic.example", ROLE_OWNER, &theirs);
    cr_expect_eq(invite(scene, "free@clinic.example"), 201, "%s", scene->answer.body);
    for (int i = 0; i < 20; i++)
        cr_expect_eq(invite(scene, theirs.email), 409, "%d: %s", i, scene->answer.body);
    cr_expect_eq(invite(scene, theirs.email), 429, "%s", scene->answer.body);
    cr_expect_eq(invite(scene, "free2@clinic.example"), 429, "a refusal tells nothing: %s", scene->answer.body);
    scene_stop(scene);
}

Test(neighbours, unknown_ids_count_as_changes_and_keys_can_still_be_revoked)
{
    struct scene *scene = scene_start(MODE_LIVE, (const char *const[]){"--changes-per-minute", "5", NULL});
    struct fixture_key mine;
    char target[80] = "/v1/api_keys/key_01m8fc37gbeg9zs0wvjyy00000";
    const struct http_call call = {.method = "DELETE", .target = target, .bearer = scene->a.key.secret};

    fixture_add_key(&scene->fixture, scene->a.account, KEY_API, MODE_LIVE, SCOPE_ALL, &mine);
    for (int i = 0; i < 5; i++) {
        http_client_call(&scene->clients[0], &call, &scene->answer);
        cr_expect_eq(scene->answer.status, 404, "%s", scene->answer.body);
    }
    http_client_call(&scene->clients[0], &call, &scene->answer);
    cr_expect_eq(scene->answer.status, 429, "%s", scene->answer.body);
    snprintf(target, sizeof target, "/v1/api_keys/%s", mine.id);
    http_client_call(&scene->clients[0], &call, &scene->answer);
    cr_expect_eq(scene->answer.status, 200, "%s", scene->answer.body);
    scene_stop(scene);
}
