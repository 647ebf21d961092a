/* Enrolment of devices through real nodes: what one node is told the others know, a key comes into being once, and none
 * lives that nobody has. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(devices, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { TEXT_BYTES = 512, CLAIMS = 20 };

struct enrolment {
    char device_code[64], user_code[16];
};

struct scene {
    struct fixture fixture;
    struct fixture_session session; /* stepped up */
};

static void scene_start(struct scene *scene, size_t nodes, const char *const *more)
{
    fixture_start(&scene->fixture, nodes, more);
    fixture_add_session(&scene->fixture, NULL, true, &scene->session);
}

static const char *json_of(const struct http_answer *answer, const char *path)
{
    static char value[TEXT_BYTES];

    if (!http_answer_json(answer, path, value, sizeof value))
        snprintf(value, sizeof value, "(absent)");
    return value;
}

static void begin(const struct scene *scene, size_t node, struct enrolment *ret_enrolment)
{
    struct http_call call = {.method = "POST",
                             .target = "/v1/auth/device_authorization",
                             .form = "client_id=desktop-agent&device_name=Ward+PC"};
    struct http_answer answer;

    cr_assert_eq(fixture_call(&scene->fixture, node, &call, &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "device_code", ret_enrolment->device_code, sizeof ret_enrolment->device_code));
    cr_assert(http_answer_json(&answer, "user_code", ret_enrolment->user_code, sizeof ret_enrolment->user_code));
}

static void print_poll(const struct enrolment *enrolment, char ret_form[256])
{
    snprintf(ret_form, 256,
             "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=%s&client_id=desktop-agent",
             enrolment->device_code);
}

static int ask_token(const struct scene *scene, size_t node, const struct enrolment *enrolment,
                     struct http_answer *ret_answer)
{
    char form[256];
    struct http_call call = {.method = "POST", .target = "/v1/auth/token", .form = form};

    print_poll(enrolment, form);
    return fixture_call(&scene->fixture, node, &call, ret_answer);
}

static void expect_error(const struct scene *scene, size_t node, const struct enrolment *enrolment, const char *error)
{
    struct http_answer answer;

    cr_expect_eq(ask_token(scene, node, enrolment, &answer), 400, "%s: %s", error, answer.body);
    cr_expect_str_eq(json_of(&answer, "error"), error);
}

/* verb: "/approve", "/deny", or "" for GET. */
static void print_enrolment_target(const struct enrolment *enrolment, const char *verb, char ret_target[96])
{
    snprintf(ret_target, 96, "/v1/console/device_enrolments/%s%s", enrolment->user_code, verb);
}

static int ask_enrolment(const struct scene *scene, size_t node, const struct enrolment *enrolment, const char *verb,
                         struct http_answer *ret_answer)
{
    char target[96];
    struct http_call call = {.method = *verb ? "POST" : "GET",
                             .target = target,
                             .cookie = scene->session.token,
                             .csrf = *verb ? scene->session.csrf : NULL};

    print_enrolment_target(enrolment, verb, target);
    return fixture_call(&scene->fixture, node, &call, ret_answer);
}

static void decide(const struct scene *scene, size_t node, const struct enrolment *enrolment, const char *verb)
{
    struct http_answer answer;

    cr_assert_eq(ask_enrolment(scene, node, enrolment, verb, &answer), 200, "%s", answer.body);
}

/* Where Redis has just come back, one link of a node may be there before the other. */
static void list_device_keys(const struct scene *scene, size_t node, const char *query, struct http_answer *ret_answer)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char target[96];
    struct http_call call = {.target = target, .cookie = scene->session.token};

    snprintf(target, sizeof target, "/v1/console/device_keys%s", query);
    while (fixture_call(&scene->fixture, node, &call, ret_answer) == 503 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_assert_eq(ret_answer->status, 200, "%s", ret_answer->body);
}

static int count_device_keys(const struct scene *scene, const char *query)
{
    struct http_answer answer;

    list_device_keys(scene, 0, query, &answer);
    return http_answer_json_count(&answer, "data");
}

static int revoke(const struct scene *scene, size_t node, const char *id, struct http_answer *ret_answer)
{
    char target[96];
    struct http_call call = {
        .method = "DELETE", .target = target, .cookie = scene->session.token, .csrf = scene->session.csrf};

    snprintf(target, sizeof target, "/v1/console/device_keys/%s", id);
    return fixture_call(&scene->fixture, node, &call, ret_answer);
}

static void expect_use(const struct scene *scene, size_t node, const char *method, const char *target,
                       const char *secret, int status, const char *code)
{
    struct http_call call = {.method = method, .target = target, .bearer = secret};
    struct http_answer answer;

    fixture_call(&scene->fixture, node, &call, &answer);
    cr_expect(answer.status == status && strcmp(http_answer_code(&answer), code) == 0, "%s %s: %d %s", method, target,
              answer.status, answer.body);
}

/* On the public listener a document route has no backend: 404 says that the key was let through. */
static void expect_upload(const struct scene *scene, size_t node, const char *secret)
{
    expect_use(scene, node, "POST", "/v1/documents", secret, 404, "not_found");
}

static void expect_nowhere(const struct scene *scene, const char *secret)
{
    char path[PROCESS_PATH_BYTES + 64];
    const struct redis_server *redis = &scene->fixture.redis;
    bool has_device = false;

    do {
        snprintf(path, sizeof path, "%s/appendonlydir/appendonly.aof.1.incr.aof", redis->folder);
        has_device |= file_contains(path, "device:");
        cr_expect_not(file_contains(path, secret), "Redis has %s", secret);
    } while ((redis = redis->next));
    cr_expect(has_device, "%s", path);
    for (size_t i = 0; i < scene->fixture.node_count; i++) {
        char *log = node_log(&scene->fixture.nodes[i]);

        cr_expect_null(strstr(log, secret), "the log has %s", secret);
        free(log);
    }
}

static void expect_newest_event(const struct scene *scene, const char *type, const char *actor, const char *target)
{
    char path[96];
    struct http_call call = {.target = path, .cookie = scene->session.token};
    struct http_answer answer;

    /* Refusals are told meanwhile, at any time. */
    snprintf(path, sizeof path, "/v1/console/audit_events?limit=1&type=%.*s", (int)strcspn(type, "."), type);
    fixture_call(&scene->fixture, 0, &call, &answer);
    cr_expect_str_eq(json_of(&answer, "data.0.type"), type);
    cr_expect_str_eq(json_of(&answer, "data.0.actor"), actor);
    cr_expect_str_eq(json_of(&answer, "data.0.target"), target);
}

Test(devices, a_device_is_enrolled_uses_its_key_and_is_locked_out)
{
    char secret[TEXT_BYTES], id[TEXT_BYTES];
    struct enrolment enrolment;
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, 2, NULL);
    begin(&scene, 0, &enrolment);
    expect_error(&scene, 1, &enrolment, "authorization_pending");
    cr_expect_eq(ask_enrolment(&scene, 1, &enrolment, "", &answer), 200, "%s", answer.body);
    cr_expect_str_eq(json_of(&answer, "user_code"), enrolment.user_code);
    cr_expect_str_eq(json_of(&answer, "device_name"), "Ward PC");
    cr_expect_str_eq(json_of(&answer, "ip"), "127.0.0.1");
    cr_expect_str_eq(json_of(&answer, "status"), "pending");
    cr_expect_eq(count_device_keys(&scene, ""), 0, "the key is made when it is claimed");
    cr_expect_eq(ask_enrolment(&scene, 1, &enrolment, "/approve", &answer), 200);
    cr_expect_str_eq(json_of(&answer, "status"), "approved");
    cr_expect_eq(ask_enrolment(&scene, 0, &enrolment, "/approve", &answer), 200);
    cr_expect_eq(count_device_keys(&scene, ""), 0, "the key is made when it is claimed");

    cr_assert_eq(ask_token(&scene, 0, &enrolment, &answer), 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "access_token", secret, sizeof secret));
    cr_expect_eq(strncmp(secret, "svc_dk_", 7), 0);
    expect_error(&scene, 0, &enrolment, "invalid_grant");
    expect_error(&scene, 1, &enrolment, "invalid_grant");
    cr_expect_eq(ask_enrolment(&scene, 0, &enrolment, "", &answer), 404);
    cr_expect_eq(ask_enrolment(&scene, 0, &enrolment, "/deny", &answer), 404);

    list_device_keys(&scene, 1, "?status=active", &answer);
    cr_expect_eq(http_answer_json_count(&answer, "data"), 1);
    cr_expect_str_eq(json_of(&answer, "data.0.name"), "Ward PC");
    cr_expect_str_eq(json_of(&answer, "data.0.last4"), secret + strlen(secret) - 4);
    cr_expect_str_eq(json_of(&answer, "data.0.scopes"), "documents:write");
    snprintf(id, sizeof id, "%s", json_of(&answer, "data.0.id"));
    expect_newest_event(&scene, "device_key.created", scene.fixture.user.id, id);

    for (size_t node = 0; node < 2; node++) {
        expect_upload(&scene, node, secret);
        expect_use(&scene, node, "GET", "/v1/documents", secret, 403, "insufficient_scope");
        expect_use(&scene, node, "GET", "/v1/whoami", secret, 403, "insufficient_scope");
        expect_use(&scene, node, "GET", "/v1/api_keys", secret, 403, "insufficient_scope");
        expect_use(&scene, node, "GET", "/v1/patients", secret, 403, "insufficient_scope");
        expect_use(&scene, node, "GET", "/v1/console/device_keys", secret, 401, "bearer_not_accepted");
    }
    cr_expect_eq(revoke(&scene, 0, id, &answer), 200, "%s", answer.body);
    expect_use(&scene, 1, "POST", "/v1/documents", secret, 401, "device_key_revoked");
    expect_use(&scene, 0, "POST", "/v1/documents", secret, 401, "device_key_revoked");
    expect_newest_event(&scene, "device_key.revoked", scene.fixture.user.id, id);
    cr_expect_eq(count_device_keys(&scene, "?status=active"), 0);
    expect_nowhere(&scene, secret);
    expect_nowhere(&scene, enrolment.device_code);
    expect_nowhere(&scene, enrolment.user_code);
    fixture_stop(&scene.fixture);
}

Test(devices, a_revocation_holds_at_every_node_once_it_is_answered)
{
    struct http_answer answer;
    struct fixture_key key;
    struct scene scene;

    scene_start(&scene, 2, NULL);
    for (size_t i = 0; i < 20; i++) {
        fixture_add_key(&scene.fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &key);
        expect_upload(&scene, 0, key.secret);
        expect_upload(&scene, 1, key.secret);
        cr_assert_eq(revoke(&scene, i % 2, key.id, &answer), 200, "%s", answer.body);
        expect_use(&scene, 1 - i % 2, "POST", "/v1/documents", key.secret, 401, "device_key_revoked");
    }
    fixture_stop(&scene.fixture);
}

Test(devices, keys_of_other_accounts_and_of_the_other_kind_do_not_exist)
{
    struct fixture_key foreign, device;
    char account[ID_TEXT_BYTES], target[96];
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, 1, NULL);
    fixture_add_account(&scene.fixture, account);
    fixture_add_key(&scene.fixture, account, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &foreign);
    fixture_add_key(&scene.fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    cr_expect_eq(revoke(&scene, 0, foreign.id, &answer), 404);
    cr_expect_str_eq(http_answer_code(&answer), "device_key_not_found");
    cr_expect_eq(revoke(&scene, 0, scene.fixture.manager.id, &answer), 404);
    cr_expect_eq(count_device_keys(&scene, ""), 1);
    snprintf(target, sizeof target, "/v1/api_keys/%s", device.id);
    expect_use(&scene, 0, "DELETE", target, scene.fixture.manager.secret, 404, "api_key_not_found");
    expect_upload(&scene, 0, foreign.secret);
    expect_upload(&scene, 0, device.secret);
    fixture_stop(&scene.fixture);
}

Test(devices, a_denied_device_gets_nothing)
{
    struct enrolment enrolment;
    struct http_answer answer;
    struct scene scene;

    scene_start(&scene, 2, NULL);
    begin(&scene, 0, &enrolment);
    decide(&scene, 1, &enrolment, "/deny");
    expect_newest_event(&scene, "device.denied", scene.fixture.user.id, "Ward PC");
    expect_error(&scene, 0, &enrolment, "access_denied");
    cr_expect_eq(ask_enrolment(&scene, 0, &enrolment, "/approve", &answer), 404);
    expect_error(&scene, 1, &enrolment, "access_denied");

    begin(&scene, 0, &enrolment);
    decide(&scene, 0, &enrolment, "/approve");
    decide(&scene, 1, &enrolment, "/deny");
    expect_error(&scene, 0, &enrolment, "access_denied");
    cr_expect_eq(count_device_keys(&scene, ""), 0);
    fixture_stop(&scene.fixture);
}

/* One that comes so late after another, because the machine was busy, is not too fast. */
static void poll_too_fast(const struct scene *scene, size_t node, const struct enrolment *enrolment, int64_t *sent_ms)
{
    enum { LATE_MS = 4000 }; /* the interval is 5 s, and a little sooner will do */
    struct http_answer answer;
    int64_t before_ms;
    bool is_late;

    do {
        before_ms = *sent_ms;
        *sent_ms = deadline_now_ms();
        cr_expect_eq(ask_token(scene, node, enrolment, &answer), 400, "%s", answer.body);
        is_late = deadline_now_ms() - before_ms >= LATE_MS;
    } while (is_late && strcmp(json_of(&answer, "error"), "authorization_pending") == 0);
    cr_expect_str_eq(json_of(&answer, "error"), "slow_down");
}

Test(devices, polling_too_fast_slows_down_at_every_node)
{
    struct enrolment enrolment;
    struct scene scene;
    int64_t sent_ms;

    scene_start(&scene, 2, NULL);
    begin(&scene, 0, &enrolment);
    sent_ms = deadline_now_ms();
    expect_error(&scene, 0, &enrolment, "authorization_pending");
    poll_too_fast(&scene, 1, &enrolment, &sent_ms);
    poll_too_fast(&scene, 0, &enrolment, &sent_ms);
    decide(&scene, 0, &enrolment, "/deny");
    expect_error(&scene, 1, &enrolment, "access_denied");
    fixture_stop(&scene.fixture);
}

/* All requests are under way before the first answer is read. */
static void claim_at_once(const struct scene *scene, const struct enrolment *enrolment, char ret_secret[TEXT_BYTES])
{
    struct http_client clients[CLAIMS];
    struct http_answer answer;
    char form[256];
    struct http_call call = {.method = "POST", .target = "/v1/auth/token", .form = form};
    unsigned keys = 0;

    print_poll(enrolment, form);
    for (size_t i = 0; i < CLAIMS; i++)
        http_client_connect(&clients[i], scene->fixture.nodes[i % 2].port);
    for (size_t i = 0; i < CLAIMS; i++)
        http_client_send_call(&clients[i], &call);
    for (size_t i = 0; i < CLAIMS; i++) {
        cr_assert_eq(http_client_read(&clients[i], false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
        http_client_close(&clients[i]);
        if (answer.status == 200) {
            cr_assert(http_answer_json(&answer, "access_token", ret_secret, TEXT_BYTES));
            keys++;
        } else {
            cr_expect_str_eq(json_of(&answer, "error"), "invalid_grant");
        }
    }
    cr_assert_eq(keys, 1, "%u keys", keys);
}

Test(devices, parallel_claims_make_one_key)
{
    char secret[TEXT_BYTES];
    struct enrolment enrolment;
    struct scene scene;

    scene_start(&scene, 2, NULL);
    for (int round = 1; round <= 5; round++) {
        begin(&scene, 0, &enrolment);
        decide(&scene, 1, &enrolment, "/approve");
        claim_at_once(&scene, &enrolment, secret);
        expect_upload(&scene, 0, secret);
        cr_expect_eq(count_device_keys(&scene, ""), round);
    }
    fixture_stop(&scene.fixture);
}

static void send_decision(const struct scene *scene, struct http_client *client, size_t node,
                          const struct enrolment *enrolment, const char *verb)
{
    char target[96];
    struct http_call call = {
        .method = "POST", .target = target, .cookie = scene->session.token, .csrf = scene->session.csrf};

    print_enrolment_target(enrolment, verb, target);
    http_client_connect(client, scene->fixture.nodes[node].port);
    http_client_send_call(client, &call);
}

static void send_poll(const struct scene *scene, struct http_client *client, size_t node,
                      const struct enrolment *enrolment)
{
    char form[256];
    struct http_call call = {.method = "POST", .target = "/v1/auth/token", .form = form};

    print_poll(enrolment, form);
    http_client_connect(client, scene->fixture.nodes[node].port);
    http_client_send_call(client, &call);
}

static int read_status(struct http_client *client)
{
    struct http_answer answer;

    cr_assert_eq(http_client_read(client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    http_client_close(client);
    return answer.status;
}

Test(devices, who_denies_wins_against_who_approves)
{
    struct http_client approver, denier;
    struct enrolment enrolment;
    struct scene scene;

    scene_start(&scene, 2, NULL);
    for (size_t round = 0; round < 10; round++) {
        begin(&scene, 0, &enrolment);
        send_decision(&scene, &approver, round % 2, &enrolment, "/approve");
        send_decision(&scene, &denier, 1 - round % 2, &enrolment, "/deny");
        cr_expect_eq(read_status(&denier), 200);
        int approved = read_status(&approver);
        cr_expect(approved == 200 || approved == 404, "%d", approved);
        expect_error(&scene, 0, &enrolment, "access_denied");
    }
    cr_expect_eq(count_device_keys(&scene, ""), 0);
    fixture_stop(&scene.fixture);
}

/* Either the device has its key and it is too late to deny it, or it was denied and there is none. */
Test(devices, a_denial_that_was_answered_came_before_the_claim)
{
    struct http_client device, denier;
    struct enrolment enrolment;
    struct scene scene;
    int keys = 0;

    scene_start(&scene, 2, NULL);
    for (size_t round = 0; round < 20; round++) {
        begin(&scene, 0, &enrolment);
        decide(&scene, 0, &enrolment, "/approve");
        if (round % 2)
            send_poll(&scene, &device, 0, &enrolment);
        send_decision(&scene, &denier, 1, &enrolment, "/deny");
        if (round % 2 == 0)
            send_poll(&scene, &device, 0, &enrolment);
        bool has_key = read_status(&device) == 200;
        cr_expect_eq(read_status(&denier), has_key ? 404 : 200);
        keys += has_key;
    }
    cr_expect_eq(count_device_keys(&scene, "?status=active"), keys);
    fixture_stop(&scene.fixture);
}

static void await_keys(const struct scene *scene, const char *query, int count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int found;

    while ((found = count_device_keys(scene, query)) != count && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_expect_eq(found, count, "%d keys %s", found, query);
}

Test(devices, a_claim_that_was_not_confirmed_in_time_leaves_no_key)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "2000", NULL};
    struct enrolment enrolment;
    struct http_answer answer;
    struct http_client client;
    struct scene scene;

    scene_start(&scene, 1, MORE);
    begin(&scene, 0, &enrolment);
    decide(&scene, 0, &enrolment, "/approve");
    redis_server_freeze(&scene.fixture.redis);
    send_poll(&scene, &client, 0, &enrolment);
    cr_expect_eq(read_status(&client), 503);
    redis_server_thaw(&scene.fixture.redis);
    await_keys(&scene, "?status=active", 0);
    /* Where the key was discarded before Redis got to make it, the device may still have one. */
    cr_expect_eq(ask_token(&scene, 0, &enrolment, &answer) == 200, count_device_keys(&scene, "?status=active") == 1);
    cr_expect(answer.status == 200 || strcmp(json_of(&answer, "error"), "invalid_grant") == 0, "%s", answer.body);
    fixture_stop(&scene.fixture);
}

Test(devices, a_device_that_left_before_its_key_came_leaves_none)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "60000", NULL};
    struct enrolment enrolment;
    struct http_client client;
    struct scene scene;

    scene_start(&scene, 1, MORE);
    begin(&scene, 0, &enrolment);
    decide(&scene, 0, &enrolment, "/approve");
    redis_server_freeze(&scene.fixture.redis);
    send_poll(&scene, &client, 0, &enrolment);
    fixture_await_read(&scene.fixture, 0);
    http_client_reset(&client);
    fixture_await_read(&scene.fixture, 0);
    redis_server_thaw(&scene.fixture.redis);
    /* It is made first, by a second step of the claim, and then revoked: there is nobody who has its secret. */
    await_keys(&scene, "?status=revoked", 1);
    cr_expect_eq(count_device_keys(&scene, ""), 1);
    fixture_stop(&scene.fixture);
}

/* An approval that was answered is on disk; a claim that Redis did not live to see can be made again. */
Test(devices, a_claim_that_died_with_redis_is_made_later)
{
    static const char *const MORE[] = {"--redis-timeout-ms", "2000", NULL};
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct enrolment enrolment;
    struct http_answer answer;
    struct http_client client;
    struct scene scene;

    scene_start(&scene, 1, MORE);
    begin(&scene, 0, &enrolment);
    decide(&scene, 0, &enrolment, "/approve");
    redis_server_freeze(&scene.fixture.redis);
    send_poll(&scene, &client, 0, &enrolment);
    fixture_await_read(&scene.fixture, 0);
    redis_server_kill(&scene.fixture.redis);
    cr_expect_eq(read_status(&client), 503);
    redis_server_restart(&scene.fixture.redis);
    while (ask_token(&scene, 0, &enrolment, &answer) == 503 && deadline_left_ms(deadline) > 0)
        poll(NULL, 0, 50);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    cr_expect_eq(count_device_keys(&scene, "?status=active"), 1);
    fixture_stop(&scene.fixture);
}

static void expect_slow_down(const struct http_answer *answer)
{
    char value[32];

    cr_expect_eq(answer->status, 400, "%d %s", answer->status, answer->body);
    cr_expect_str_eq(json_of(answer, "error"), "slow_down");
    cr_expect(http_answer_field(answer, "Retry-After", value, sizeof value));
}

static void expect_throttled(const struct http_answer *answer)
{
    char value[32];

    cr_expect_eq(answer->status, 429, "%d %s", answer->status, answer->body);
    cr_expect_str_eq(http_answer_code(answer), "rate_limited");
    cr_expect(http_answer_field(answer, "Retry-After", value, sizeof value));
}

Test(devices, guessing_is_throttled_at_every_node)
{
    struct enrolment enrolment, wrong = {.user_code = "BBBB-BBBB"};
    struct http_answer answer;
    struct scene scene;

    memset(wrong.device_code, 'A', 43);
    scene_start(&scene, 2, NULL);
    begin(&scene, 0, &enrolment);
    for (size_t i = 0; i < 5; i++)
        cr_expect_eq(ask_enrolment(&scene, i % 2, &wrong, "", &answer), 404);
    ask_enrolment(&scene, 0, &wrong, "", &answer);
    expect_throttled(&answer);
    ask_enrolment(&scene, 1, &enrolment, "/approve", &answer);
    expect_throttled(&answer);

    for (size_t i = 0; i < 30; i++)
        expect_error(&scene, i % 2, &wrong, "invalid_grant");
    ask_token(&scene, 0, &wrong, &answer);
    expect_slow_down(&answer);
    expect_error(&scene, 1, &enrolment, "authorization_pending");
    for (size_t i = 1; i < 30; i++)
        begin(&scene, i % 2, &enrolment);
    struct http_call call = {
        .method = "POST", .target = "/v1/auth/device_authorization", .form = "client_id=desktop-agent"};
    fixture_call(&scene.fixture, 0, &call, &answer);
    expect_slow_down(&answer);
    fixture_stop(&scene.fixture);
}

/* What is refused before any handler: clients of OAuth end the sign-in over an error that is no text. */
Test(devices, what_the_server_refuses_speaks_oauth)
{
    static const char *const TARGETS[] = {"/v1/auth/device_authorization", "/v1/auth/token"};
    static char large[5000];
    const struct {
        struct http_call call;
        int status;
    } CASES[] = {
        {{.method = "POST", .form = large}, 413},
        {{.method = "POST", .form = "client_id=x", .fields = "Expect: 200-maybe\r\n"}, 417},
        {{.method = "POST", .form = "client_id=x", .fields = "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"},
         400},
        {{.method = "PUT", .form = "client_id=x"}, 405},
        {{.method = "POST", .json = "{}"}, 415},
    };
    struct http_answer answer;
    struct fixture fixture;

    memset(large, 'a', sizeof large - 1);
    fixture_start(&fixture, 1, NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (size_t t = 0; t < 2; t++) {
            struct http_call call = CASES[i].call;

            call.target = TARGETS[t];
            fixture_call(&fixture, 0, &call, &answer);
            cr_expect_eq(answer.status, CASES[i].status, "%zu: %d %s", i, answer.status, answer.body);
            cr_expect_str_eq(json_of(&answer, "error"), "invalid_request", "%zu: %s", i, answer.body);
        }
    fixture_stop(&fixture);
}

/* What strangers write counts for their IPv6 /48, so that nobody with one displaces others. */
Test(devices, networks_are_counted_by_48)
{
    static const char *const BEHIND_PROXY[] = {"--trusted-proxies", "127.0.0.0/8", NULL};
    static const char *const FROM[] = {"2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:2:1::1", "192.0.2.1",
                                       "192.0.2.2"};
    struct http_answer answer;
    struct fixture fixture;
    char scores[256], fields[64];

    fixture_use_one_partition("each partition counts what it holds");
    fixture_start(&fixture, 1, BEHIND_PROXY);
    for (size_t i = 0; i < sizeof FROM / sizeof *FROM; i++) {
        snprintf(fields, sizeof fields, "X-Forwarded-For: %s\r\n", FROM[i]);
        struct http_call call = {.method = "POST",
                                 .target = "/v1/auth/device_authorization",
                                 .form = "client_id=desktop-agent",
                                 .fields = fields};
        cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    }
    for (size_t i = 0; i < 2; i++) {
        const char *list = i == 0 ? "addresses" : "enrolments",
                   *networks = i == 0 ? "address_networks" : "enrolment_networks";

        cr_expect_eq(fixture_sum(&fixture, "ZCARD", list), 5, "%s", list);
        cr_expect_eq(fixture_sum(&fixture, "ZCARD", networks), 3, "%s", networks);
        redis_server_ask(&fixture.redis, scores, sizeof scores, "ZCOUNT", fixture_name_in(0, networks), "2", "2", NULL);
        cr_expect_str_eq(scores, "2", "%s", networks);
    }
    fixture_stop(&fixture);
}

Test(devices, clients_are_those_that_the_operator_names)
{
    static const char *const MORE[] = {"--device-clients", "ward-scanner,other", NULL};
    struct http_call call = {.method = "POST", .target = "/v1/auth/device_authorization"};
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, MORE);
    call.form = "client_id=desktop-agent";
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 400);
    cr_expect_str_eq(json_of(&answer, "error"), "invalid_client");
    call.form = "client_id=ward-scanner";
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 200);
    fixture_stop(&fixture);
}
