#include "people.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

void people_start(struct people *people, size_t nodes, const char *const *more)
{
    fixture_start(&people->fixture, nodes, more);
    fixture_add_session(&people->fixture, NULL, true, &people->owner);
}

void people_stop(struct people *people)
{
    fixture_stop(&people->fixture);
}

int people_ask(const struct people *people, size_t node, const struct fixture_session *session, const char *method,
               const char *target, const char *json, struct http_answer *ret_answer)
{
    const struct http_call call = {
        .method = method, .target = target, .cookie = session->token, .csrf = session->csrf, .json = json};

    return fixture_call(&people->fixture, node, &call, ret_answer);
}

int people_change(const struct people *people, size_t node, const struct fixture_user *user, const char *method,
                  const char *target, const char *json, struct http_answer *ret_answer)
{
    char whole[160];

    snprintf(whole, sizeof whole, "/v1/console/users/%s%s", user->id, target);
    return people_ask(people, node, &people->owner, method, whole, json, ret_answer);
}

void people_add(struct people *people, const char *email, enum role role, struct fixture_user *ret_user,
                struct fixture_session *ret_session)
{
    fixture_add_person(&people->fixture, NULL, email, role, ret_user);
    fixture_add_session(&people->fixture, ret_user, true, ret_session);
}

void people_read_link(const struct http_answer *answer, char ret_code[FIXTURE_TOKEN_BYTES])
{
    static const char START[] = NODE_ORIGIN "/console/join#";
    char url[256];

    cr_assert(http_answer_json(answer, "url", url, sizeof url), "%s", answer->body);
    cr_assert_eq(strncmp(url, START, sizeof START - 1), 0, "%s", url);
    snprintf(ret_code, FIXTURE_TOKEN_BYTES, "%.*s", FIXTURE_TOKEN_BYTES - 1, url + sizeof START - 1);
    cr_assert_eq(strlen(ret_code), 43);
}

void people_invite(const struct people *people, const char *email, const char *role, char ret_code[FIXTURE_TOKEN_BYTES])
{
    struct http_answer answer;
    char body[320];

    snprintf(body, sizeof body, "{\"email\":\"%s\",\"role\":\"%s\"}", email, role);
    cr_assert_eq(people_ask(people, 0, &people->owner, "POST", "/v1/console/invitations", body, &answer), 201, "%s",
                 answer.body);
    people_read_link(&answer, ret_code);
}

int people_open(const struct people *people, size_t node, const char *code, const char *target,
                struct http_answer *ret_answer)
{
    char body[128];

    snprintf(body, sizeof body, "{\"code\":\"%s\"}", code);
    return fixture_call(&people->fixture, node, &(struct http_call){.method = "POST", .target = target, .json = body},
                        ret_answer);
}

int people_begin(const struct people *people, size_t node, const char *code, struct fixture_user *ret_user,
                 struct http_answer *ret_answer)
{
    struct http_answer started;
    int status = people_open(people, node, code, "/v1/auth/join/begin", ret_answer);

    if (status == 200) {
        *ret_user = (struct fixture_user){0};
        cr_assert(http_answer_json(ret_answer, "email", ret_user->email, sizeof ret_user->email));
        cr_assert_eq(people_open(people, node, code, "/v1/auth/join/start", &started), 200, "%s", started.body);
        cr_assert(http_answer_json(&started, "totp_uri", ret_user->totp_uri, sizeof ret_user->totp_uri) &&
                  fixture_read_cookie_of(&started, "__Host-join", ret_user->join_cookie));
    }
    return status;
}

void people_print_cookie(const struct fixture_user *user, char *ret_field, size_t size)
{
    *ret_field = '\0';
    if (user->join_cookie[0])
        snprintf(ret_field, size, "Cookie: __Host-join=%s\r\n", user->join_cookie);
}

int people_join(const struct people *people, size_t node, const char *code, const struct fixture_user *user,
                const char *password, struct http_answer *ret_answer)
{
    char body[512], totp[8], cookie[128];

    fixture_totp(user, 0, totp);
    snprintf(body, sizeof body, "{\"code\":\"%s\",\"password\":\"%s\",\"totp\":\"%s\"}", code, password, totp);
    people_print_cookie(user, cookie, sizeof cookie);
    return fixture_call(
        &people->fixture, node,
        &(struct http_call){.method = "POST", .target = "/v1/auth/join", .json = body, .fields = cookie}, ret_answer);
}

void people_make_key(const struct people *people, const struct fixture_session *session, const char *mode,
                     struct fixture_key *ret_key)
{
    struct http_answer answer;
    char body[256];

    snprintf(body, sizeof body,
             "{\"name\":\"made\",\"mode\":\"%s\",\"scopes\":[\"exchanges:read\",\"patients:read\",\"patients:write\","
             "\"keys:manage\",\"audit:read\",\"usage:read\",\"documents:write\"]}",
             mode);
    cr_assert_eq(people_ask(people, 0, session, "POST", "/v1/console/api_keys", body, &answer), 201, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "id", ret_key->id, sizeof ret_key->id) &&
              http_answer_json(&answer, "secret", ret_key->secret, sizeof ret_key->secret));
}
