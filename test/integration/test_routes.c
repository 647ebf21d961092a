/* Walks the route table: every row against every kind of credential. What a row promises, the guard must keep, also for
 * rows that are added tomorrow. */
#include "api/routes.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(routes, .fini = leak_guard, .timeout = TEST_WITHIN_S);

struct credentials {
    struct fixture_key manager; /* every scope */
    struct fixture_key bare;    /* sandbox:manage alone, which no row of ours asks for */
    struct fixture_key revoked;
    struct fixture_key device;
    struct fixture_session session;
    struct fixture_session stepped;
};

/* One way to ask, and what a row must answer to it. */
struct attempt {
    const char *name;
    struct http_call call; /* method, target and body are the row's */
    int status;            /* 0: whatever comes behind the guard, but neither 401 nor 403 */
    const char *code;
};

static const char *method_name(enum http_method method)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE"};

    cr_assert(method < sizeof NAMES / sizeof *NAMES && NAMES[method]);
    return NAMES[method];
}

/* The row's path with an id that is well-formed and names nothing. */
static void print_target(const struct route *route, char *ret_target, size_t size)
{
    const char *id = strstr(route->path, "{id}");

    if (id)
        snprintf(ret_target, size, "%.*skey_00000000000000000000000000%s", (int)(id - route->path), route->path,
                 id + 4);
    else
        snprintf(ret_target, size, "%s", route->path);
}

static void judge(const struct route *route, const struct attempt *attempt, const struct http_answer *answer)
{
    const char *code = http_answer_code(answer);
    char challenge[200];

    if (attempt->status == 0) {
        cr_expect(answer->status != 403 && (answer->status != 401 || strcmp(code, "invalid_login") == 0),
                  "%s %s, %s: %d %s", method_name(route->method), route->path, attempt->name, answer->status, code);
        cr_expect_lt(answer->status, 500, "%s: %s", route->path, answer->body);
        return;
    }
    bool is_told = route->flags & ROUTE_OAUTH ? strstr(answer->body, "{\"error\":\"invalid_request\",") == answer->body
                                              : strcmp(code, attempt->code) == 0;
    cr_expect(answer->status == attempt->status && is_told, "%s %s, %s: %d %s, not %d %s", method_name(route->method),
              route->path, attempt->name, answer->status, answer->body, attempt->status, attempt->code);
    if (answer->status == 401)
        cr_expect(
            http_answer_field(answer, "WWW-Authenticate", challenge, sizeof challenge) &&
                strstr(challenge, route->who == WHO_API_KEY ? "Bearer realm=\"api\"" : "Session realm=\"console\""),
            "%s, %s: wrong challenge", route->path, attempt->name);
}

static void try_row(const struct fixture *fixture, const struct route *route, const struct attempt *attempt)
{
    struct http_call call = attempt->call;
    struct http_answer answer;
    char target[200];

    print_target(route, target, sizeof target);
    call.method = method_name(route->method);
    call.target = target;
    if (!call.json && (route->flags & ROUTE_JSON))
        call.json = "{}";
    fixture_call(fixture, 0, &call, &answer);
    judge(route, attempt, &answer);
}

static void try_rows(const struct fixture *fixture, enum route_who who, unsigned flags, const struct attempt *attempts,
                     size_t count)
{
    unsigned rows = 0;

    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        if (ROUTES[row].who != who || (ROUTES[row].flags & flags) != flags)
            continue;
        rows++;
        for (size_t i = 0; i < count; i++)
            try_row(fixture, &ROUTES[row], &attempts[i]);
    }
    cr_assert_gt(rows, 0, "no row of that kind");
}

#define TRY_ROWS(fixture, who, flags, attempts) \
    try_rows(fixture, who, flags, attempts, sizeof(attempts) / sizeof *(attempts))

static void make_credentials(struct fixture *fixture, struct credentials *made)
{
    struct fixture_user stepped;

    fixture_start(fixture, 1, NULL);
    made->manager = fixture->manager;
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_SANDBOX_MANAGE, &made->bare);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &made->revoked);
    fixture_revoke_key(fixture, &made->revoked);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->device);
    fixture_add_session(fixture, NULL, false, &made->session);
    /* Of somebody else, because one of the rows ends all other sessions. */
    fixture_add_person(fixture, NULL, "stepped@clinic.test", ROLE_OWNER, &stepped);
    fixture_add_session(fixture, &stepped, true, &made->stepped);
}

#define TWO_AUTHORIZATIONS "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n"

Test(routes, every_key_route_refuses_what_is_no_accepted_key)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    const struct attempt attempts[] = {
        {"nothing", {0}, 401, "missing_credentials"},
        {"garbage", {.bearer = "garbage"}, 401, "invalid_api_key"},
        {"a revoked key", {.bearer = made.revoked.secret}, 401, "api_key_revoked"},
        {"a session", {.cookie = made.stepped.token, .csrf = made.stepped.csrf}, 401, "session_not_accepted"},
        {"garbage beside a session", {.bearer = "garbage", .cookie = made.stepped.token}, 401, "invalid_api_key"},
        {"another scheme", {.fields = "Authorization: Basic YTpi\r\n"}, 401, "missing_credentials"},
        {"no token", {.fields = "Authorization: Bearer\r\n"}, 400, "bad_request"},
        {"two tokens", {.fields = "Authorization: Bearer a b\r\n"}, 400, "bad_request"},
        {"two fields", {.fields = TWO_AUTHORIZATIONS}, 400, "bad_request"},
        {"a device key", {.bearer = made.device.secret}, 403, "insufficient_scope"},
        {"a key with every scope", {.bearer = made.manager.secret}, 0, NULL},
        {"the same beside a session", {.bearer = made.manager.secret, .cookie = made.session.token}, 0, NULL},
    };
    TRY_ROWS(&fixture, WHO_API_KEY, 0, attempts);
    fixture_stop(&fixture);
}

Test(routes, every_key_route_asks_for_its_scope)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        const struct attempt lacking = {
            "a key without the scope", {.bearer = made.bare.secret}, 403, "insufficient_scope"};
        struct fixture_key fitting;
        struct attempt holding = {"a key with just the scope", {0}, 0, NULL};

        if (ROUTES[row].who != WHO_API_KEY || ROUTES[row].scope == SCOPE_NONE)
            continue;
        fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, ROUTES[row].scope, &fitting);
        holding.call.bearer = fitting.secret;
        try_row(&fixture, &ROUTES[row], &lacking);
        try_row(&fixture, &ROUTES[row], &holding);
    }
    fixture_stop(&fixture);
}

Test(routes, every_session_route_refuses_what_is_no_session)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    const struct attempt attempts[] = {
        {"nothing", {0}, 401, "invalid_session"},
        {"an unknown cookie", {.cookie = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}, 401, "invalid_session"},
        {"a malformed cookie", {.cookie = "a"}, 401, "invalid_session"},
        {"a key", {.bearer = made.manager.secret}, 401, "bearer_not_accepted"},
        {"garbage as a key", {.bearer = "garbage"}, 401, "bearer_not_accepted"},
        {"a revoked key", {.bearer = made.revoked.secret}, 401, "bearer_not_accepted"},
        {"a key beside a session",
         {.bearer = made.manager.secret, .cookie = made.stepped.token, .csrf = made.stepped.csrf},
         401,
         "bearer_not_accepted"},
        {"no token", {.fields = "Authorization: Bearer\r\n", .cookie = made.stepped.token}, 400, "bad_request"},
        {"two fields", {.fields = TWO_AUTHORIZATIONS, .cookie = made.stepped.token}, 400, "bad_request"},
    };
    TRY_ROWS(&fixture, WHO_SESSION, 0, attempts);
    fixture_stop(&fixture);
}

Test(routes, every_changing_session_route_asks_for_csrf)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    const struct attempt attempts[] = {
        {"no CSRF token", {.cookie = made.stepped.token}, 403, "csrf_failed"},
        {"another session's CSRF token", {.cookie = made.stepped.token, .csrf = made.session.csrf}, 403, "csrf_failed"},
        {"the cookie as CSRF token", {.cookie = made.stepped.token, .csrf = made.stepped.token}, 403, "csrf_failed"},
        {"a foreign origin",
         {.cookie = made.stepped.token, .csrf = made.stepped.csrf, .origin = "https://elsewhere.test"},
         403,
         "csrf_failed"},
        {"the origin null",
         {.cookie = made.stepped.token, .csrf = made.stepped.csrf, .origin = "null"},
         403,
         "csrf_failed"},
    };
    TRY_ROWS(&fixture, WHO_SESSION, ROUTE_CSRF, attempts);
    fixture_stop(&fixture);
}

Test(routes, a_session_route_that_is_no_get_has_the_csrf_flag)
{
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        if (ROUTES[row].who == WHO_SESSION && ROUTES[row].method != HTTP_GET)
            cr_expect(ROUTES[row].flags & ROUTE_CSRF, "%s", ROUTES[row].path);
        if (ROUTES[row].who == WHO_ANYONE && ROUTES[row].method != HTTP_GET)
            cr_expect(ROUTES[row].flags & ROUTE_ORIGIN, "%s", ROUTES[row].path);
    }
}

Test(routes, every_step_up_route_asks_for_one)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    const struct attempt attempts[] = {
        {"no step-up", {.cookie = made.session.token, .csrf = made.session.csrf}, 403, "step_up_required"},
        {"a fresh step-up", {.cookie = made.stepped.token, .csrf = made.stepped.csrf, .origin = NODE_ORIGIN}, 0, NULL},
    };
    TRY_ROWS(&fixture, WHO_SESSION, ROUTE_STEP_UP, attempts);
    fixture_stop(&fixture);
}

Test(routes, every_session_route_asks_for_its_role)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    for (enum role role = ROLE_AUDITOR; role < ROLE_COUNT; role++) {
        struct fixture_user user;
        struct fixture_session session;
        char email[64];
        unsigned rows = 0;

        snprintf(email, sizeof email, "%s@clinic.test", role_text(role).ptr);
        fixture_add_person(&fixture, NULL, email, role, &user);
        fixture_add_session(&fixture, &user, true, &session);
        const struct http_call call = {.cookie = session.token, .csrf = session.csrf};
        const struct attempt lacking = {email, call, 403, "role_not_permitted"}, fitting = {email, call, 0, NULL};
        for (size_t row = 0; row < ROUTE_COUNT; row++) {
            if (ROUTES[row].who != WHO_SESSION || strstr(ROUTES[row].path, "logout"))
                continue;
            try_row(&fixture, &ROUTES[row], role < ROUTES[row].least_role ? &lacking : &fitting);
            rows += role < ROUTES[row].least_role;
        }
        cr_expect(rows > 0 || role >= ROLE_DEVELOPER, "%s may do everything", email);
    }
    fixture_stop(&fixture);
}

Test(routes, every_json_route_refuses_other_types_and_unknown_members)
{
    struct credentials made;
    struct fixture fixture;

    make_credentials(&fixture, &made);
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        bool takes_key = ROUTES[row].who == WHO_API_KEY;
        struct http_call call = {.bearer = takes_key ? made.manager.secret : NULL,
                                 .cookie = takes_key ? NULL : made.stepped.token,
                                 .csrf = takes_key ? NULL : made.stepped.csrf};
        struct attempt unknown = {"an unknown member", call, 400, "parameter_unknown"};
        struct attempt broken = {"no JSON", call, 400, "invalid_json"};
        struct attempt array = {"an array", call, 400, "invalid_json"};

        if (!(ROUTES[row].flags & ROUTE_JSON))
            continue;
        unknown.call.json = "{\"no_such_member\":1}";
        broken.call.json = "{";
        array.call.json = "[]";
        try_row(&fixture, &ROUTES[row], &unknown);
        try_row(&fixture, &ROUTES[row], &broken);
        try_row(&fixture, &ROUTES[row], &array);
    }
    fixture_stop(&fixture);
}

Test(routes, every_form_route_refuses_other_types_and_bad_forms)
{
    const struct attempt json = {"JSON", {.json = "{}"}, 415, "unsupported_media_type"};
    const struct attempt foreign = {
        "a foreign origin", {.form = "a=b", .origin = "https://elsewhere.test"}, 403, "csrf_failed"};
    struct fixture fixture;
    unsigned rows = 0;

    fixture_start(&fixture, 1, NULL);
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        static const char *const FORMS[] = {"", "a=%", "a=%00", "a=%ff", "client_id=a&client_id=a"};

        if (!(ROUTES[row].flags & ROUTE_FORM))
            continue;
        rows++;
        try_row(&fixture, &ROUTES[row], &json);
        try_row(&fixture, &ROUTES[row], &foreign);
        for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
            struct http_call call = {.method = "POST", .target = ROUTES[row].path, .form = FORMS[i]};
            struct http_answer answer;
            char error[64];

            cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 400, "%s: %s", FORMS[i], answer.body);
            cr_expect(http_answer_json(&answer, "error", error, sizeof error) && strcmp(error, "invalid_request") == 0,
                      "%s: %s", FORMS[i], answer.body);
        }
    }
    cr_assert_gt(rows, 0);
    fixture_stop(&fixture);
}

/* The table itself: what an API key opens lies outside of the console, what a session opens inside. */
Test(routes, rows_lie_where_their_credential_is_accepted)
{
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        bool console = strncmp(ROUTES[row].path, "/v1/console/", 12) == 0;
        bool auth = strncmp(ROUTES[row].path, "/v1/auth/", 9) == 0;

        bool well_known = strncmp(ROUTES[row].path, "/.well-known/", 13) == 0;

        cr_expect(well_known || strncmp(ROUTES[row].path, "/v1/", 4) == 0, "%s", ROUTES[row].path);
        if (ROUTES[row].who == WHO_API_KEY)
            cr_expect(!console && !auth, "%s", ROUTES[row].path);
        if (ROUTES[row].who == WHO_SESSION)
            cr_expect(console || auth, "%s", ROUTES[row].path);
        if (ROUTES[row].who == WHO_ANYONE)
            cr_expect(auth || (well_known && ROUTES[row].method == HTTP_GET), "%s", ROUTES[row].path);
        if (ROUTES[row].flags & ROUTE_STEP_UP)
            cr_expect_eq(ROUTES[row].who, WHO_SESSION, "%s", ROUTES[row].path);
    }
}
