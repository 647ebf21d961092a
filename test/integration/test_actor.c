/* A credential that ends while a request's body is on its way: the request changes nothing any more, whichever node
 * ended it. */
#include "cli.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(actor, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { HEAD_BYTES = 1024 };

/* However long the test is held up between head and body. */
static const char *const PATIENT[] = {"--body-timeout-ms", "600000", "--body-total-timeout-ms", "600000", NULL};

#define BODY "{\"name\":\"successor\",\"mode\":\"live\"}"

/* A POST whose head was sent. */
struct slow_post {
    struct http_client client;
    const char *body;
};

static void begin(const struct fixture *fixture, size_t node, const char *target, const char *fields, const char *body,
                  struct slow_post *ret_post)
{
    char bytes[HEAD_BYTES];
    int len = snprintf(bytes, sizeof bytes,
                       "POST %s HTTP/1.1\r\nHost: t\r\n%sContent-Type: application/json\r\nContent-Length: %zu\r\n"
                       "Expect: 100-continue\r\n\r\n",
                       target, fields, strlen(body));
    struct http_answer answer;

    ret_post->body = body;
    cr_assert(len > 0 && (size_t)len < sizeof bytes);
    http_client_connect(&ret_post->client, fixture->nodes[node].port);
    cr_assert(http_client_send(&ret_post->client, bytes, (size_t)len));
    /* The node has looked at the credential, found it right and waits for the body. */
    cr_assert_eq(http_client_read(&ret_post->client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 100, "%s", answer.body);
}

static int finish(struct slow_post *post, struct http_answer *ret_answer)
{
    cr_assert(http_client_send(&post->client, post->body, strlen(post->body)));
    cr_assert_eq(http_client_read(&post->client, false, PATIENCE_MS, ret_answer), HTTP_CLIENT_ANSWER);
    http_client_close(&post->client);
    return ret_answer->status;
}

static void begin_by_key(const struct fixture *fixture, size_t node, const struct fixture_key *key,
                         struct slow_post *ret_post)
{
    char fields[256];

    snprintf(fields, sizeof fields, "Authorization: Bearer %s\r\n", key->secret);
    begin(fixture, node, "/v1/api_keys", fields, BODY, ret_post);
}

static void begin_by_session(const struct fixture *fixture, size_t node, const struct fixture_session *session,
                             struct slow_post *ret_post)
{
    char fields[512];

    snprintf(fields, sizeof fields, "Cookie: __Host-session=%s\r\nX-CSRF-Token: %s\r\n", session->token, session->csrf);
    begin(fixture, node, "/v1/console/api_keys", fields, BODY, ret_post);
}

static void revoke(const struct fixture *fixture, size_t node, const char *bearer, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = bearer};
    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 200, "%s", answer.body);
}

/* Active keys of the account. */
static int count_keys(const struct fixture *fixture)
{
    struct http_answer answer;
    struct http_call call = {.target = "/v1/api_keys?status=active&limit=100", .bearer = fixture->manager.secret};

    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
    return http_answer_json_count(&answer, "data");
}

Test(actor, a_key_that_was_revoked_while_the_body_came_makes_no_other)
{
    struct fixture_key leaked;
    struct slow_post posts[2];
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 2, PATIENT);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &leaked);
    for (size_t node = 0; node < 2; node++)
        begin_by_key(&fixture, node, &leaked, &posts[node]);
    revoke(&fixture, 0, fixture.manager.secret, &leaked);
    for (size_t node = 0; node < 2; node++) {
        char challenge[128];

        cr_expect_eq(finish(&posts[node], &answer), 401, "node %zu: %s", node, answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "api_key_revoked");
        cr_expect(http_answer_field(&answer, "WWW-Authenticate", challenge, sizeof challenge));
    }
    cr_expect_eq(count_keys(&fixture), 1, "but the manager");
    fixture_stop(&fixture);
}

Test(actor, a_key_that_revoked_itself_makes_no_other)
{
    struct fixture_key key;
    struct slow_post post;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, PATIENT);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    begin_by_key(&fixture, 0, &key, &post);
    revoke(&fixture, 0, key.secret, &key);
    cr_expect_eq(finish(&post, &answer), 401, "%s", answer.body);
    cr_expect_eq(count_keys(&fixture), 1);
    fixture_stop(&fixture);
}

Test(actor, a_living_one_may_be_slow)
{
    struct fixture_session session;
    struct slow_post posts[2];
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, PATIENT);
    fixture_add_session(&fixture, NULL, true, &session);
    begin_by_key(&fixture, 0, &fixture.manager, &posts[0]);
    begin_by_session(&fixture, 0, &session, &posts[1]);
    for (size_t i = 0; i < 2; i++)
        cr_expect_eq(finish(&posts[i], &answer), 201, "%s", answer.body);
    cr_expect_eq(count_keys(&fixture), 3);
    fixture_stop(&fixture);
}

Test(actor, a_session_that_ended_while_the_body_came_makes_no_key)
{
    struct fixture_session session;
    struct slow_post posts[2];
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 2, PATIENT);
    fixture_add_session(&fixture, NULL, true, &session);
    for (size_t node = 0; node < 2; node++)
        begin_by_session(&fixture, node, &session, &posts[node]);
    struct http_call logout = {
        .method = "POST", .target = "/v1/auth/logout", .cookie = session.token, .csrf = session.csrf};
    cr_assert_eq(fixture_call(&fixture, 1, &logout, &answer), 204);
    for (size_t node = 0; node < 2; node++) {
        cr_expect_eq(finish(&posts[node], &answer), 401, "node %zu: %s", node, answer.body);
        cr_expect_str_eq(http_answer_code(&answer), "invalid_session");
    }
    cr_expect_eq(count_keys(&fixture), 1);
    fixture_stop(&fixture);
}

/* Whoever may no longer do it is not told in which state a thing is. */
Test(actor, permission_comes_before_state)
{
    struct fixture_key old;
    struct slow_post post;
    struct http_answer answer;
    struct fixture fixture;
    struct cli_run run;
    char target[96], fields[256];

    fixture_start(&fixture, 1, PATIENT);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &old);
    revoke(&fixture, 0, fixture.manager.secret, &old);
    snprintf(target, sizeof target, "/v1/api_keys/%s/replacement", old.id);
    snprintf(fields, sizeof fields, "Authorization: Bearer %s\r\n", fixture.manager.secret);
    begin(&fixture, 0, target, fields, "{\"overlap_seconds\":0}", &post);
    cr_expect_eq(finish(&post, &answer), 409, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "already_revoked");
    begin(&fixture, 0, target, fields, "{\"overlap_seconds\":0}", &post);
    RUN(&fixture, &run, "account", "suspend", fixture.account);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    cr_expect_eq(finish(&post, &answer), 403, "%s", answer.body);
    cr_expect_str_eq(http_answer_code(&answer), "account_suspended");
    fixture_stop(&fixture);
}
