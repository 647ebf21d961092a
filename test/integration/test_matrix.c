/* Every session route × every role × objects of one's own account, oneself, and another account: against a table that
 * is written here a second time, by hand. A route without a row in it fails the test. */
#include "api/routes.h"
#include "leak_guard.h"
#include "people.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(matrix, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum object {
    NOTHING,
    API_KEY,
    REVOKED_API_KEY,
    DEVICE_KEY,
    REVOKED_DEVICE_KEY,
    ENROLMENT,
    USER,
    INVITATION,
    OWN_SESSION
};

/* Who may, by the lowest role. Rows of routes that this version lacks are harmless. */
static const struct expectation {
    enum http_method method;
    const char *path;
    enum role least;
    enum object object;
    const char *json;
} TABLE[] = {
    {HTTP_GET, "/v1/console/session", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_POST, "/v1/console/step_up", ROLE_AUDITOR, NOTHING, "{}"},
    {HTTP_POST, "/v1/auth/logout", ROLE_AUDITOR, OWN_SESSION, NULL},
    {HTTP_GET, "/v1/console/api_keys", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_POST, "/v1/console/api_keys", ROLE_DEVELOPER, NOTHING,
     "{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[\"usage:read\"]}"},
    {HTTP_GET, "/v1/console/api_keys/{id}", ROLE_AUDITOR, API_KEY, NULL},
    {HTTP_PATCH, "/v1/console/api_keys/{id}", ROLE_DEVELOPER, API_KEY, "{\"name\":\"renamed\"}"},
    {HTTP_DELETE, "/v1/console/api_keys/{id}", ROLE_RESPONDER, API_KEY, NULL},
    {HTTP_POST, "/v1/console/api_keys/revoke", ROLE_RESPONDER, NOTHING, "{\"ids\":[]}"},
    {HTTP_GET, "/v1/console/api_keys/{id}/revocation", ROLE_AUDITOR, REVOKED_API_KEY, NULL},
    {HTTP_GET, "/v1/console/api_keys/{id}/scheduled_revocation", ROLE_AUDITOR, API_KEY, NULL},
    {HTTP_PUT, "/v1/console/api_keys/{id}/scheduled_revocation", ROLE_RESPONDER, API_KEY,
     "{\"revoke_at\":\"2000-01-31T12:00:00Z\"}"},
    {HTTP_DELETE, "/v1/console/api_keys/{id}/scheduled_revocation", ROLE_DEVELOPER, API_KEY, NULL},
    {HTTP_POST, "/v1/console/api_keys/{id}/replacement", ROLE_DEVELOPER, API_KEY, "{\"overlap_seconds\":60}"},
    {HTTP_GET, "/v1/console/device_keys", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_DELETE, "/v1/console/device_keys/{id}", ROLE_RESPONDER, DEVICE_KEY, NULL},
    {HTTP_GET, "/v1/console/device_keys/{id}/revocation", ROLE_AUDITOR, REVOKED_DEVICE_KEY, NULL},
    {HTTP_GET, "/v1/console/device_enrolments/{id}", ROLE_AUDITOR, ENROLMENT, NULL},
    {HTTP_POST, "/v1/console/device_enrolments/{id}/approve", ROLE_DEVELOPER, ENROLMENT, NULL},
    {HTTP_POST, "/v1/console/device_enrolments/{id}/deny", ROLE_RESPONDER, ENROLMENT, NULL},
    {HTTP_GET, "/v1/console/audit_events", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/audit_events/heads", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/usage", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/system", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/users", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/users/{id}", ROLE_AUDITOR, USER, NULL},
    {HTTP_DELETE, "/v1/console/users/{id}", ROLE_OWNER, USER, NULL},
    {HTTP_POST, "/v1/console/users/{id}/role", ROLE_OWNER, USER, "{\"role\":\"auditor\"}"},
    {HTTP_POST, "/v1/console/users/{id}/disable", ROLE_OWNER, USER, "{}"},
    {HTTP_POST, "/v1/console/users/{id}/enable", ROLE_OWNER, USER, NULL},
    {HTTP_POST, "/v1/console/users/{id}/reset", ROLE_OWNER, USER, NULL},
    {HTTP_GET, "/v1/console/invitations", ROLE_OWNER, NOTHING, NULL},
    {HTTP_POST, "/v1/console/invitations", ROLE_OWNER, NOTHING, "{\"email\":\"x@x.test\",\"role\":\"owner\"}"},
    {HTTP_DELETE, "/v1/console/invitations/{id}", ROLE_OWNER, INVITATION, NULL},
    {HTTP_POST, "/v1/console/password", ROLE_AUDITOR, NOTHING, "{}"},
    {HTTP_POST, "/v1/console/totp", ROLE_AUDITOR, NOTHING, "{}"},
    {HTTP_POST, "/v1/console/totp/confirm", ROLE_AUDITOR, NOTHING, "{}"},
    {HTTP_GET, "/v1/console/recovery_codes", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_POST, "/v1/console/recovery_codes", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_GET, "/v1/console/sessions", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_DELETE, "/v1/console/sessions", ROLE_AUDITOR, NOTHING, NULL},
    {HTTP_DELETE, "/v1/console/sessions/{id}", ROLE_AUDITOR, OWN_SESSION, NULL},
};
enum { ROWS = sizeof TABLE / sizeof *TABLE };

static const char *method_name(enum http_method method)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE"};

    return NAMES[method];
}

static const struct route *find_route(const struct expectation *row)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (ROUTES[i].method == row->method && strcmp(ROUTES[i].path, row->path) == 0)
            return &ROUTES[i];
    return NULL;
}

Test(matrix, every_session_route_has_a_row)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct expectation *found = NULL;

        if (ROUTES[i].who != WHO_SESSION)
            continue;
        for (size_t row = 0; row < ROWS; row++)
            if (TABLE[row].method == ROUTES[i].method && strcmp(TABLE[row].path, ROUTES[i].path) == 0)
                found = &TABLE[row];
        cr_expect(found, "%s %s: write down here who may", method_name(ROUTES[i].method), ROUTES[i].path);
        cr_expect(!found || found->least == ROUTES[i].least_role, "%s %s: the route table has another role",
                  method_name(ROUTES[i].method), ROUTES[i].path);
    }
}

/* Two accounts: the people's own, and one with an owner. */
struct accounts {
    struct people people;
    char other[ID_TEXT_BYTES];
    struct fixture_user other_owner;
    struct fixture_session other_session;
    unsigned made;
};

static void accounts_start(struct accounts *accounts)
{
    people_start(&accounts->people, 1, NULL);
    fixture_add_account(&accounts->people.fixture, accounts->other);
    fixture_add_person(&accounts->people.fixture, accounts->other, "far@south.test", ROLE_OWNER,
                       &accounts->other_owner);
    fixture_add_session(&accounts->people.fixture, &accounts->other_owner, true, &accounts->other_session);
    accounts->made = 0;
}

/* An enrolment; of another account once its user has denied it. */
static void make_enrolment(struct accounts *accounts, bool is_other, char ret_id[64])
{
    struct http_answer answer;
    char target[128];

    cr_assert_eq(fixture_call(&accounts->people.fixture, 0,
                              &(struct http_call){.method = "POST",
                                                  .target = "/v1/auth/device_authorization",
                                                  .form = "client_id=desktop-agent"},
                              &answer),
                 200, "%s", answer.body);
    cr_assert(http_answer_json(&answer, "user_code", ret_id, 64));
    snprintf(target, sizeof target, "/v1/console/device_enrolments/%s/deny", ret_id);
    if (is_other)
        cr_assert_eq(people_ask(&accounts->people, 0, &accounts->other_session, "POST", target, NULL, &answer), 200);
}

static void make_invitation(struct accounts *accounts, bool is_other, char ret_id[64])
{
    const struct fixture_session *session = is_other ? &accounts->other_session : &accounts->people.owner;
    struct http_answer answer;
    char body[96];

    snprintf(body, sizeof body, "{\"email\":\"invited%u@x.test\",\"role\":\"auditor\"}", accounts->made++);
    cr_assert_eq(people_ask(&accounts->people, 0, session, "POST", "/v1/console/invitations", body, &answer), 201, "%s",
                 answer.body);
    cr_assert(http_answer_json(&answer, "id", ret_id, 64));
}

static void make_key(struct fixture *fixture, const char *account, enum object object, char ret_id[64])
{
    bool is_api_key = object == API_KEY || object == REVOKED_API_KEY;
    struct fixture_key key;

    fixture_add_key(fixture, account, is_api_key ? KEY_API : KEY_DEVICE, MODE_LIVE,
                    is_api_key ? SCOPE_USAGE_READ : SCOPE_DOCUMENTS_WRITE, &key);
    if (object == REVOKED_API_KEY || object == REVOKED_DEVICE_KEY)
        fixture_revoke_key(fixture, &key);
    snprintf(ret_id, 64, "%s", key.id);
}

static void make_object(struct accounts *accounts, enum object object, bool is_other, char ret_id[64])
{
    const char *account = is_other ? accounts->other : NULL;
    struct fixture *fixture = &accounts->people.fixture;
    struct fixture_user user;
    char email[64];

    ret_id[0] = '\0';
    if (object >= API_KEY && object <= REVOKED_DEVICE_KEY) {
        make_key(fixture, account, object, ret_id);
    } else if (object == USER) {
        snprintf(email, sizeof email, "object%u@x.test", accounts->made++);
        fixture_add_person(fixture, account, email, ROLE_DEVELOPER, &user);
        snprintf(ret_id, 64, "%s", user.id);
    } else if (object == ENROLMENT) {
        make_enrolment(accounts, is_other, ret_id);
    } else if (object == INVITATION) {
        make_invitation(accounts, is_other, ret_id);
    }
}

static void print_target(const struct expectation *row, const char *id, char *ret_target, size_t size)
{
    const char *brace = strstr(row->path, "{id}");

    if (brace)
        snprintf(ret_target, size, "%.*s%s%s", (int)(brace - row->path), row->path, id, brace + 4);
    else
        snprintf(ret_target, size, "%s", row->path);
}

/* outcome: "may", "may not" (403), or "none" (404). */
static void expect(const struct people *people, const struct expectation *row, enum role role,
                   const struct fixture_session *session, const char *id, const char *whose, const char *outcome)
{
    struct http_answer answer;
    char target[160];
    const char *code;

    print_target(row, id, target, sizeof target);
    people_ask(people, 0, session, method_name(row->method), target, row->json, &answer);
    code = answer.status >= 400 ? http_answer_code(&answer) : "";
    if (strcmp(outcome, "may not") == 0)
        cr_expect(answer.status == 403 && strcmp(code, "role_not_permitted") == 0, "%s %s, %s, %s: %d %s",
                  method_name(row->method), row->path, role_text(role).ptr, whose, answer.status, code);
    else if (strcmp(outcome, "none") == 0)
        cr_expect(answer.status == 404, "%s %s, %s, %s: %d %s", method_name(row->method), row->path,
                  role_text(role).ptr, whose, answer.status, code);
    else
        cr_expect(answer.status != 403 && answer.status != 404 && answer.status < 500 &&
                      (answer.status != 401 || strcmp(code, "invalid_login") == 0),
                  "%s %s, %s, %s: %d %s", method_name(row->method), row->path, role_text(role).ptr, whose,
                  answer.status, code);
}

static void try_row(struct accounts *accounts, const struct expectation *row, enum role role)
{
    bool may = role >= row->least;
    struct fixture_session session;
    struct fixture_user user;
    char email[64], id[64];

    /* Somebody new each time: what is asked may end a session, or change a role. */
    snprintf(email, sizeof email, "asker%u@x.test", accounts->made++);
    people_add(&accounts->people, email, role, &user, &session);
    make_object(accounts, row->object, false, id);
    expect(&accounts->people, row, role, &session, id, "one's own account's", may ? "may" : "may not");
    if (row->object == NOTHING || row->object == OWN_SESSION)
        return;
    fixture_add_session(&accounts->people.fixture, &user, true, &session);
    make_object(accounts, row->object, true, id);
    expect(&accounts->people, row, role, &session, id, "another account's", may ? "none" : "may not");
    if (row->object == USER)
        expect(&accounts->people, row, role, &session, user.id, "oneself", may ? "may" : "may not");
}

/* A test for each role: there are hundreds of cases, each with accounts' objects of its own. */
static void try_all_rows(enum role role)
{
    static struct accounts accounts;

    accounts_start(&accounts);
    for (size_t row = 0; row < ROWS; row++) {
        const struct route *route = find_route(&TABLE[row]);

        /* Ends of sessions are tested where they belong; these only need a row. */
        if (route && !strstr(TABLE[row].path, "/sessions/{id}"))
            try_row(&accounts, &TABLE[row], role);
    }
    people_stop(&accounts.people);
}

Test(matrix, every_route_and_every_object_for_auditors)
{
    try_all_rows(ROLE_AUDITOR);
}

Test(matrix, every_route_and_every_object_for_responders)
{
    try_all_rows(ROLE_RESPONDER);
}

Test(matrix, every_route_and_every_object_for_developers)
{
    try_all_rows(ROLE_DEVELOPER);
}

Test(matrix, every_route_and_every_object_for_owners)
{
    _Static_assert(ROLE_OWNER + 1 == ROLE_COUNT, "another role needs another test");
    try_all_rows(ROLE_OWNER);
}

/* Keys: who lacks team:manage manages nobody, whatever else the key may. */
Test(matrix, only_team_manage_opens_the_team)
{
    static const struct {
        const char *method, *target, *json;
    } WAYS[] = {
        {"GET", "/v1/team", NULL},
        {"POST", "/v1/team/invitations", "{\"email\":\"n@x.test\",\"role\":\"auditor\"}"},
        {"DELETE", "/v1/team/usr_00000000000000000000000000", NULL},
    };
    struct people people;

    people_start(&people, 1, NULL);
    for (unsigned n = 0; n < SCOPE_COUNT; n++) {
        scope_set scope = 1U << n;
        struct fixture_key key;

        fixture_add_key(&people.fixture, NULL, KEY_API, MODE_LIVE, scope | SCOPE_AUDIT_READ | SCOPE_USAGE_READ, &key);
        for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
            const struct http_call call = {
                .method = WAYS[i].method, .target = WAYS[i].target, .json = WAYS[i].json, .bearer = key.secret};
            struct http_answer answer;

            fixture_call(&people.fixture, 0, &call, &answer);
            cr_expect_eq(answer.status == 403, scope != SCOPE_TEAM_MANAGE, "scope %u, %s: %d %s", n, WAYS[i].target,
                         answer.status, answer.body);
        }
    }
    people_stop(&people);
}
