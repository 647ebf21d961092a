/* Requests that gateways ask about climb the same ladder of gates. This tests what is special about them. */
#include "api/routes.h"
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include <string.h>

TestSuite(check, .init = world_begin, .fini = world_end);

#define PAIR(method, target) "X-Original-Method: " method "\nX-Original-URI: " target "\n"

static struct http_request *ask(const char *headers)
{
    return request_check(HTTP_GET, "/check/auth-request", headers, NULL);
}

static void expect(const char *headers, int status, const char *code)
{
    struct http_request *request = ask(headers);
    char line[80];

    snprintf(line, sizeof line, "X-Auth-Error: %s\n", code ? code : "");
    cr_expect_eq(answer_status(request), status, "%s: %d %s", headers, answer_status(request), answer_body(request));
    cr_expect_eq(strstr(answer_headers(request), line) != NULL, code != NULL, "%s: %s", headers,
                 answer_headers(request));
    cr_expect_eq(strstr(answer_headers(request), "X-Auth-Account:") != NULL, code == NULL, "%s: %s", headers,
                 answer_headers(request));
    request_forget(request);
}

static void allow_patients(void)
{
    expect(GOOD_KEY PAIR("GET", "/v1/patients/7"), 200, NULL);
    cr_expect_eq(world.uses, 1);
}

Test(check, keys_known_at_once)
{
    allow_patients();
}

Test(check, with_a_ca_for_clients_only_probes_need_no_certificate)
{
    const struct {
        const char *path;
        bool is_refused;
    } PATHS[] = {{"/check/auth-request", true},
                 {"/metrics", true},
                 {"/nothing", true},
                 {"/livez/", true},
                 {"/livez", false},
                 {"/readyz", false}};

    world.service.needs_client_certificate = true;
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        struct http_request *request = request_check(HTTP_GET, PATHS[i].path, GOOD_KEY, NULL);
        bool is_refused = strstr(answer_body(request), "client_certificate_required") != NULL;

        cr_expect_eq(is_refused, PATHS[i].is_refused, "%s: %d %s", PATHS[i].path, answer_status(request),
                     answer_body(request));
        cr_expect_eq(answer_status(request) == 403, is_refused, "%s", PATHS[i].path);
        request_forget(request);
    }
    world.has_client_certificate = true;
    allow_patients();
}

Test(check, keys_looked_up)
{
    world.checks_at_once = false;
    allow_patients();
}

Test(check, what_a_key_is_told_by)
{
    struct http_request *request = ask(GOOD_KEY PAIR("DELETE", "/v1/patients/7"));

    cr_expect_str_eq(answer_headers(request),
                     "X-Auth-Account: acct_01jd0000000000000000000001\n"
                     "X-Auth-Principal: key_01jd0000000000000000000001\n"
                     "X-Auth-Kind: api_key\n"
                     "X-Auth-Mode: live\n"
                     "X-Auth-Scopes: exchanges:read exchanges:write patients:read patients:write webhooks:manage "
                     "keys:manage audit:read team:manage org:manage usage:read documents:write sandbox:manage\n"
                     "X-Auth-Billable: true\n");
    cr_expect_str_eq(answer_body(request), "");
    request_forget(request);
    world.key.mode = MODE_TEST;
    world.key.scopes = SCOPE_PATIENTS_READ;
    request = ask(GOOD_KEY PAIR("GET", "/v1/patients"));
    cr_expect(
        strstr(answer_headers(request), "X-Auth-Mode: test\nX-Auth-Scopes: patients:read\nX-Auth-Billable: false"));
    request_forget(request);
}

Test(check, what_a_session_is_told_by)
{
    struct http_request *request;

    world.session.user.role = ROLE_DEVELOPER;
    request = ask(SESSION_COOKIE PAIR("GET", "/v1/console/session"));

    cr_expect_str_eq(answer_headers(request), "X-Auth-Account: acct_01jd0000000000000000000001\n"
                                              "X-Auth-Principal: usr_01jd0000000000000000000001\n"
                                              "X-Auth-Kind: session\n"
                                              "X-Auth-Role: developer\n"
                                              "X-Auth-Scopes: \n"
                                              "X-Auth-Billable: false\n");
    request_forget(request);
    cr_expect_eq(world.uses, 0);
}

/* Rows for the public, and preflights */

static struct route_policy *open_policy;

static const struct route_policy *open_rows(void)
{
    char storage[200];
    struct buf why;

    buf_init_fixed(&why, storage, sizeof storage);
    open_policy = route_policy_parse(
        TEXT("{\"version\":1,\"routes\":["
             "{\"path\":\"/v1/patients\",\"read\":\"patients:read\",\"write\":\"patients:write\",\"preflight\":true},"
             "{\"path\":\"/v1/patients/open\",\"read\":\"public\",\"write\":\"patients:write\"},"
             "{\"path\":\"/v1/leaflets\",\"read\":\"public\",\"preflight\":true},"
             "{\"path\":\"/v1/console/patients\",\"read\":\"session\"}]}"),
        api_owns_path, &why);
    cr_assert_not_null(open_policy, "%.*s", TEXT_ARG(buf_text(&why)));
    return open_policy;
}

/* Nobody is told, nothing is counted, no key is asked for: an unknown one has no answer in this world. */
static void expect_anybody(const char *headers)
{
    struct http_request *request = ask(headers);

    cr_expect_eq(answer_status(request), 200, "%s: %d %s", headers, answer_status(request), answer_body(request));
    cr_expect_str_eq(answer_headers(request), "X-Auth-Kind: none\n", "%s", headers);
    cr_expect_str_eq(answer_body(request), "");
    request_forget(request);
    cr_expect_eq(world.uses, 0, "%s", headers);
    for (size_t reason = 0; reason < USAGE_REASONS; reason++)
        cr_expect_eq(world.refusals[reason], 0, "%s", headers);
}

Test(check, the_public_may_read_whatever_it_brings)
{
    static const char *const CREDENTIALS[] = {"",
                                              GOOD_KEY,
                                              "Authorization: Bearer revoked\n",
                                              "Authorization: Bearer away\n",
                                              "Authorization: Bearer nobody\n",
                                              "Authorization: Basic YTpi\n",
                                              SESSION_COOKIE,
                                              GOOD_KEY SESSION_COOKIE,
                                              "X-Auth-Kind: api_key\nX-Auth-Account: acct_other\n",
                                              "Origin: https://elsewhere.test\nX-CSRF-Token: wrong\n"};
    static const char *const SUBJECTS[] = {PAIR("GET", "/v1/patients/open/7?a=b"), PAIR("HEAD", "/v1/leaflets")};
    char headers[400];

    world.service.policy = open_rows();
    world.session_result = STORE_UNAVAILABLE;
    for (size_t i = 0; i < sizeof CREDENTIALS / sizeof *CREDENTIALS; i++)
        for (size_t k = 0; k < 2; k++) {
            snprintf(headers, sizeof headers, "%s%s", CREDENTIALS[i], SUBJECTS[k]);
            expect_anybody(headers);
        }
    route_policy_destroy(open_policy);
}

#define PREFLIGHT(origin, method) "Origin: " origin "\nAccess-Control-Request-Method: " method "\n"

Test(check, browsers_may_ask_first)
{
    static const char *const METHODS[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"};
    char headers[300];

    world.service.policy = open_rows();
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        snprintf(headers, sizeof headers,
                 "Origin: null\nAccess-Control-Request-Method: %s\nAccess-Control-Request-Headers: authorization\n%s",
                 METHODS[i], PAIR("OPTIONS", "/v1/patients/7"));
        expect_anybody(headers);
    }
    expect_anybody("Authorization: Bearer revoked\n" PREFLIGHT("https://a.test", "GET")
                       PAIR("OPTIONS", "/v1/leaflets/1"));
    route_policy_destroy(open_policy);
}

Test(check, nobody_may_more_than_that)
{
#define ANY_ORIGIN "Origin: https://a.test\n"
    world.service.policy = open_rows();
    expect(PAIR("POST", "/v1/patients/open/7"), 401, "missing_credentials");
    expect(GOOD_KEY PAIR("POST", "/v1/leaflets"), 405, "method_not_allowed");
    expect("X-HTTP-Method-Override: GET\n" PAIR("DELETE", "/v1/leaflets"), 401, "missing_credentials");
    expect(PAIR("TRACE", "/v1/leaflets"), 405, "method_not_allowed");
    expect(PAIR("GET", "/v1/patients"), 401, "missing_credentials");
    expect(PAIR("GET", "/v1/patients/opened"), 401, "missing_credentials");
    expect(PAIR("GET", "/v1/patients/OPEN"), 401, "missing_credentials");
    expect(PAIR("GET", "/v1/patients/open/../7"), 400, "bad_request");
    expect(PAIR("GET", "/v1/patients/open;/../7"), 400, "bad_request");
    expect(PAIR("GET", "/v1/patients/open%2f..%2f7"), 400, "bad_request");
    expect(PAIR("GET", "/v1/whoami"), 401, "missing_credentials");
    expect("Authorization: Bearer\n" PAIR("GET", "/v1/leaflets"), 400, "bad_request");

    expect(PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(ANY_ORIGIN PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect("Access-Control-Request-Method: GET\n" PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(ANY_ORIGIN PREFLIGHT("https://a.test", "GET") PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("https://a.test,https://b.test", "GET") PAIR("OPTIONS", "/v1/patients"), 401,
           "missing_credentials");
    expect("Origin:\nAccess-Control-Request-Method: GET\n" PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect("Access-Control-Request-Method: GET\n" PREFLIGHT("null", "GET") PAIR("OPTIONS", "/v1/patients"), 401,
           "missing_credentials");
    expect(PREFLIGHT("null", "GET, GET") PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "get") PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "TRACE") PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "CONNECT") PAIR("OPTIONS", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "POST") PAIR("OPTIONS", "/v1/leaflets"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "GET") PAIR("OPTIONS", "/v1/patients/open"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "GET") PAIR("OPTIONS", "/v1/nothing"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "GET") PAIR("OPTIONS", "/v1/console/patients"), 401, "invalid_session");
    expect(PREFLIGHT("null", "GET") PAIR("POST", "/v1/patients"), 401, "missing_credentials");
    expect(PREFLIGHT("null", "GET") PAIR("GET", "/v1/patients"), 401, "missing_credentials");
    expect("Authorization: Bearer revoked\n" PAIR("OPTIONS", "/v1/patients"), 401, "api_key_revoked");
    expect(GOOD_KEY PAIR("OPTIONS", "/v1/patients"), 200, NULL); /* a write, as before */
    cr_expect_eq(world.uses, 1);
    route_policy_destroy(open_policy);
}

/* The key was asked for under another policy: it is not told to a backend that everybody reads from. */
Test(check, a_row_may_become_public_while_its_key_is_looked_up)
{
    static const char HEADERS[] = GOOD_KEY PAIR("GET", "/v1/leaflets");
    struct http_request *request;

    world.checks_at_once = false;
    world.policy_later = open_rows();
    request = ask(HEADERS);
    cr_expect_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_expect_str_eq(answer_headers(request), "X-Auth-Kind: none\n");
    cr_expect_eq(world.uses, 0);
    request_forget(request);
    route_policy_destroy(open_policy);
}

/* No backend is behind the public listener. */
Test(check, the_public_listener_has_nothing_to_show_to_the_public)
{
    struct http_request *request;

    world.service.policy = open_rows();
    request = request_send(HTTP_GET, "/v1/leaflets", "", NULL);
    cr_expect_eq(answer_status(request), 404);
    cr_expect_null(strstr(answer_headers(request), "X-Auth"));
    request_forget(request);
    request = request_send(HTTP_OPTIONS, "/v1/patients", PREFLIGHT("null", "GET"), NULL);
    cr_expect_eq(answer_status(request), 404);
    cr_expect_null(strstr(answer_headers(request), "Access-Control"));
    request_forget(request);
    route_policy_destroy(open_policy);
}

Test(check, refusals)
{
    expect(PAIR("GET", "/v1/patients"), 401, "missing_credentials");
    expect(SESSION_COOKIE PAIR("GET", "/v1/patients"), 401, "session_not_accepted");
    expect("Authorization: Bearer revoked\n" PAIR("GET", "/v1/patients"), 401, "api_key_revoked");
    expect("Authorization: Bearer away\n" PAIR("GET", "/v1/patients"), 503, "store_unavailable");
    expect(GOOD_KEY PAIR("GET", "/v1/documents"), 403, "insufficient_scope");
    expect(GOOD_KEY PAIR("GET", "/v1/nothing"), 404, "not_found");
    expect(GOOD_KEY PAIR("POST", "/v1/usage"), 405, "method_not_allowed");
    expect(GOOD_KEY PAIR("TRACE", "/v1/patients"), 405, "method_not_allowed");
    expect(GOOD_KEY PAIR("GET", "/v1//patients"), 400, "bad_request");
    expect(GOOD_KEY PAIR("GET", "/v1/patients%2f7"), 400, "bad_request");
    expect(GOOD_KEY PAIR("GET", "*"), 400, "bad_request");
    expect(GOOD_KEY PAIR("GET", ""), 400, "bad_request");
    expect(GOOD_KEY PAIR("BREW", "/v1/patients"), 501, "not_implemented");
    world.session_result = STORE_NOT_FOUND;
    expect(SESSION_COOKIE PAIR("GET", "/v1/console/session"), 401, "invalid_session");
    cr_expect_eq(world.uses, 0);
}

/* nginx knows only 401 and 403. An answer that is not a verdict stays a failure. */
Test(check, refusals_with_two_statuses)
{
    world.service.strict401 = true;
    expect(PAIR("GET", "/v1/patients"), 401, "missing_credentials");
    expect("Authorization: Bearer revoked\n" PAIR("GET", "/v1/patients"), 401, "api_key_revoked");
    expect(GOOD_KEY PAIR("GET", "/v1/documents"), 403, "insufficient_scope");
    expect(GOOD_KEY PAIR("GET", "/v1/nothing"), 403, "not_found");
    expect(GOOD_KEY PAIR("POST", "/v1/usage"), 403, "method_not_allowed");
    expect(GOOD_KEY PAIR("GET", "/v1//patients"), 403, "bad_request");
    expect(GOOD_KEY PAIR("BREW", "/v1/patients"), 403, "not_implemented");
    expect(GOOD_KEY, 403, "bad_request");
    expect("Authorization: Bearer away\n" PAIR("GET", "/v1/patients"), 503, "store_unavailable");
    expect(GOOD_KEY PAIR("GET", "/v1/patients"), 200, NULL);
    world.session_result = STORE_CONFLICT; /* an answer that no session gets */
    expect(SESSION_COOKIE PAIR("GET", "/v1/console/session"), 500, "internal_error");
    world.service.draining = true;
    expect(GOOD_KEY PAIR("GET", "/v1/patients"), 200, NULL);
    world.service.refuses_new = true;
    expect(GOOD_KEY PAIR("GET", "/v1/patients"), 503, "shutting_down");
}

Test(check, the_public_listener_is_never_strict)
{
    struct http_request *request;

    world.service.strict401 = true;
    request = request_send(HTTP_GET, "/v1/nothing", GOOD_KEY, NULL);
    cr_expect_eq(answer_status(request), 404);
    cr_expect_null(strstr(answer_headers(request), "X-Auth"));
    request_forget(request);
}

Test(check, a_body_that_is_announced_ends_the_connection)
{
    struct http_request *request =
        request_check(HTTP_GET, "/check/auth-request", GOOD_KEY PAIR("POST", "/v1/documents"), "half");

    cr_expect_eq(answer_status(request), 200);
    cr_expect(answer_closes(request));
    request_forget(request);
    request = ask(GOOD_KEY PAIR("POST", "/v1/documents"));
    cr_expect_not(answer_closes(request));
    request_forget(request);
    request = request_check(HTTP_GET, "/livez", "", "body");
    cr_expect(answer_closes(request));
    request_forget(request);
}

/* Otherwise an operator could set rows that have no effect. A route that yields then has none. */
Test(check, no_policy_names_a_route_of_ours)
{
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        const char *id = strchr(ROUTES[row].path, '{');
        size_t bytes = id ? (size_t)(id - ROUTES[row].path) - 1 : strlen(ROUTES[row].path);
        const char *word = strncmp(ROUTES[row].path, "/v1/console/", 12) == 0 ? "session" : "usage:read";
        struct buf json CLEANUP(buf_finish), why CLEANUP(buf_finish);
        struct route_policy *policy;

        buf_init(&json, 1000);
        buf_init(&why, 1000);
        buf_printf(&json, "{\"version\":1,\"routes\":[{\"path\":\"%.*s\",\"read\":\"%s\"}]}", (int)bytes,
                   ROUTES[row].path, word);
        policy = route_policy_parse(buf_text(&json), api_owns_path, &why);
        cr_expect_eq(policy != NULL, (ROUTES[row].flags & ROUTE_YIELDS) != 0, "%s", ROUTES[row].path);
        route_policy_destroy(policy);
    }
}

/* The address or network that a limit counts. */

struct limited {
    const char *target, *headers, *body;
};

static const struct limited ENROLMENT = {"/v1/auth/device_authorization", FORM_TYPE, "client_id=desktop-agent"};

static void tag_of(const struct limited *what, const char *peer, const char *forwarded,
                   char ret_tag[THROTTLE_TAG_CHARS + 1])
{
    char headers[600];

    world.peer = peer;
    snprintf(headers, sizeof headers, "%s%s", what->headers, forwarded);
    world.ip_tag[0] = '\0';
    request_forget(request_send(HTTP_POST, what->target, headers, what->body));
    cr_assert_neq(world.ip_tag[0], '\0');
    memcpy(ret_tag, world.ip_tag, THROTTLE_TAG_CHARS + 1);
}

struct client {
    const char *peer, *forwarded;
};

static void expect_one_client(struct client one, struct client other, bool same)
{
    char tags[2][THROTTLE_TAG_CHARS + 1];

    tag_of(&ENROLMENT, one.peer, one.forwarded, tags[0]);
    tag_of(&ENROLMENT, other.peer, other.forwarded, tags[1]);
    cr_expect_eq(strcmp(tags[0], tags[1]) == 0, same, "%s %s, %s %s", one.peer, one.forwarded, other.peer,
                 other.forwarded);
}

Test(check, nobody_escapes_a_limit_by_what_he_sends)
{
    static const struct {
        struct client one, other;
        bool same;
    } CASES[] = {
        {{"192.0.2.1", ""}, {"192.0.2.1", "X-Forwarded-For: 203.0.113.1\n"}, true},
        {{"192.0.2.1", ""}, {"192.0.2.2", ""}, false},
        {{"10.0.0.1", "X-Forwarded-For: 203.0.113.1\n"}, {"203.0.113.1", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: 1.2.3.4, 203.0.113.1\n"}, {"203.0.113.1", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: 1.2.3.4\nX-Forwarded-For: 203.0.113.1\n"}, {"203.0.113.1", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: 203.0.113.1\nX-Forwarded-For: 10.0.0.2\n"}, {"203.0.113.1", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: 203.0.113.1, x\n"}, {"10.0.0.1", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: 203.0.113.1\n"}, {"10.0.0.1", "X-Forwarded-For: 203.0.113.2\n"}, false},
        {{"2001:db8:1:2::1", ""}, {"2001:db8:1:2:ffff:ffff:ffff:ffff", ""}, true},
        {{"2001:db8:1:2::1", ""}, {"2001:db8:1:3::1", ""}, false},
        {{"10.0.0.1", "X-Forwarded-For: 2001:db8:1:2::1\n"}, {"2001:db8:1:2::ff", ""}, true},
        {{"10.0.0.1", "X-Forwarded-For: ::ffff:203.0.113.1\n"}, {"203.0.113.1", ""}, true},
        {{"unix", ""}, {"unix", "X-Forwarded-For: 203.0.113.1\n"}, true},
        {{"unix", ""}, {"", ""}, false},
    };
    char storage[100];
    struct buf why;
    struct address_ranges *proxies;

    buf_init_fixed(&why, storage, sizeof storage);
    proxies = address_ranges_parse(TEXT("10.0.0.0/8"), &why);
    cr_assert_not_null(proxies);
    world.service.trusted_proxies = proxies;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_one_client(CASES[i].one, CASES[i].other, CASES[i].same);
    cr_expect(world.service.has_warned_of_proxy, "192.0.2.1 sent a header that was ignored");
    world.service.trusted_proxies = NULL;
    expect_one_client((struct client){"10.0.0.1", "X-Forwarded-For: 203.0.113.1\n"}, (struct client){"10.0.0.1", ""},
                      true);
    address_ranges_destroy(proxies);
}

Test(check, every_limit_counts_the_network_of_a_client)
{
    static const struct limited OTHERS[] = {
        {"/v1/auth/device_authorization", FORM_TYPE, "client_id=desktop-agent"},
        {"/v1/auth/token", FORM_TYPE,
         "grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=desktop-agent"
         "&device_code=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
        {"/v1/auth/revoke", FORM_TYPE, "token=svc_sk_live_000000000000000000000000000000001Z5csm"},
    };
    char tags[3][THROTTLE_TAG_CHARS + 1];

    world.held_result = STORE_NOT_FOUND;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        tag_of(&OTHERS[i], "2001:db8:1:2::1", "", tags[0]);
        tag_of(&OTHERS[i], "2001:db8:1:2:ffff:ffff:ffff:ffff", "", tags[1]);
        tag_of(&OTHERS[i], "2001:db8:1:3::1", "", tags[2]);
        cr_expect_str_eq(tags[0], tags[1], "%s", OTHERS[i].target);
        cr_expect_str_neq(tags[0], tags[2], "%s", OTHERS[i].target);
    }
}
