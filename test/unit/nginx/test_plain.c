#include "plain_internal.h"

#include "core/path.h"
#include "http/request.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(plain, .fini = leak_guard);

static const struct text ROW = {"/v1/patients", 12};

Test(plain, targets_below_a_row)
{
    static const struct {
        const char *target;
        bool is_plain;
    } CASES[] = {
        {"/v1/patients", true},
        {"/v1/patients/", true},
        {"/v1/patients/1", true},
        {"/v1/patients/a.b-c_d~E9/x", true},
        {"/v1/patients?", true},
        {"/v1/patients?q=a%20b&at=http://a//b/../c;d|{}\\\"<>^`", true},
        {"/v1/patients/1?%2e%2e%00", true},
        {"", false},
        {"*", false},
        {"/", false},
        {"/v1", false},
        {"/v1/patient", false},
        {"/v1/patientsX", false},
        {"/v1/patients.", false},
        {"/v1/Patients", false},
        {"/v1/exchanges", false},
        {"v1/patients", false},
        {"http://host/v1/patients", false},
        {"//v1/patients", false},
        {"/v1//patients", false},
        {"/v1/patients//1", false},
        {"/v1/patients/1//", false},
        {"/v1/patients/.", false},
        {"/v1/patients/..", false},
        {"/v1/patients/../exchanges", false},
        {"/v1/patients/.hidden", false},
        {"/v1/patients/a./b", false},
        {"/v1/patients/a.", false},
        {"/v1/patients/a.?x", false},
        {"/v1/patients/a;b", false},
        {"/v1/patients/a%2fb", false},
        {"/v1/patients/%61", false},
        {"/v1/patients/a:b", false},
        {"/v1/patients/a\\b", false},
        {"/v1/patients/a b", false},
        {"/v1/patients/\xc3\xa9", false},
        {"/v1/patients#x", false},
        {"/v1/patients?a#b", false},
        {"/v1/patients?a b", false},
        {"/v1/patients?\xc3\xa9", false},
        {"/v1/patients?a\tb", false},
        {"/v1/patients?a\x7f", false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_assert_eq(plain_target(text_of(CASES[i].target), ROW), CASES[i].is_plain, "%s", CASES[i].target);
}

Test(plain, targets_have_a_length_that_every_node_allows)
{
    char target[257] = "/v1/patients/";

    memset(target + 13, 'a', sizeof target - 13);
    cr_assert(plain_target((struct text){target, 256}, ROW));
    cr_assert_not(plain_target((struct text){target, 257}, ROW));
}

/* What a node does with a target that it is asked about. */
static bool node_accepts(struct text target, struct text *ret_path)
{
    struct text query;
    char normal[64];
    size_t len;

    return http_target_read(target, ret_path, &query) && path_normalise(*ret_path, normal, &len) &&
           text_equal(*ret_path, (struct text){normal, len}) && path_is_unambiguous(*ret_path);
}

static void try_target(struct text target)
{
    struct text path;
    bool is_exact;

    if (!plain_target(target, ROW))
        return;
    cr_assert(node_accepts(target, &path), "%.*s", TEXT_ARG(target));
    cr_assert(path_covers(ROW, path, &is_exact) && is_exact, "%.*s", TEXT_ARG(target));
}

/* Every byte at three places, and every sequence of five out of those that mean something. */
Test(plain, nodes_accept_every_plain_target)
{
    static const char SPECIAL[] = {'/', '.', '?', '%', ';', '#', '2', 'e', '\\', ' ', '+'};
    enum { LENGTH = 5, BEGIN = 12 };
    char target[BEGIN + LENGTH] = "/v1/patients";
    size_t count = 1;

    for (int i = 0; i < LENGTH; i++)
        count *= sizeof SPECIAL;
    for (size_t number = 0; number < count; number++) {
        size_t rest = number;

        for (int i = 0; i < LENGTH; i++, rest /= sizeof SPECIAL)
            target[BEGIN + i] = SPECIAL[rest % sizeof SPECIAL];
        for (size_t length = 0; length <= LENGTH; length++)
            try_target((struct text){target, BEGIN + length});
    }
    for (size_t number = 0; number < (size_t)1 << 16; number++) {
        memcpy(target + BEGIN, "/ab", 3);
        target[BEGIN + 1] = (char)number;
        target[BEGIN + 2] = (char)(number >> 8);
        try_target((struct text){target, BEGIN + 3});
        target[BEGIN] = '?';
        try_target((struct text){target, BEGIN + 3});
    }
}

Test(plain, rows_are_those_for_keys)
{
    static const char *const ROWS[] = {"/v1/patients", "/v1/a/b", "/v1/consoles", "/v1/x.y"};
    static const char *const OTHERS[] = {"",          "/",        "/v1",        "/v1/",          "/v2/patients",
                                         "/v1/a/",    "/v1/a//b", "/v1/a/../b", "/v1/console",   "/v1/console/patients",
                                         "/v1/a%20b", "v1/a",     "/v1/a*",     "/v1/patients.", "^/v1/patients"};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        cr_assert(plain_is_row(text_of(ROWS[i])), "%s", ROWS[i]);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        cr_assert_not(plain_is_row(text_of(OTHERS[i])), "%s", OTHERS[i]);
}

Test(plain, methods_are_divided_as_by_nodes)
{
    static const char *const READ[] = {"GET", "HEAD"}, *const WRITE[] = {"POST", "PUT", "PATCH", "DELETE"};
    static const char *const OTHER[] = {"", "get", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "GETX", "POS"};

    for (size_t i = 0; i < sizeof READ / sizeof *READ; i++)
        cr_assert_eq(plain_method(text_of(READ[i])), PLAIN_READ);
    for (size_t i = 0; i < sizeof WRITE / sizeof *WRITE; i++)
        cr_assert_eq(plain_method(text_of(WRITE[i])), PLAIN_WRITE);
    for (size_t i = 0; i < sizeof OTHER / sizeof *OTHER; i++)
        cr_assert_eq(plain_method(text_of(OTHER[i])), PLAIN_OTHER, "%s", OTHER[i]);
}

Test(plain, traces_are_passed_on_as_by_nodes)
{
    char text[TRACEPARENT_CHARS];

    cr_assert(plain_trace(TEXT("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03-more"), text));
    cr_assert(
        text_equal((struct text){text, sizeof text}, TEXT("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")));
    cr_assert_not(plain_trace(TEXT("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"), text));
    cr_assert_not(plain_trace((struct text){NULL, 0}, text));
}

Test(plain, scopes_have_the_names_of_the_policy)
{
    scope_set scope;

    cr_assert(plain_scope(TEXT("patients:read"), &scope) && scope == SCOPE_PATIENTS_READ);
    cr_assert(plain_scope(TEXT("none"), &scope) && scope == SCOPE_NONE);
    cr_assert_not(plain_scope(TEXT("patients"), &scope));
    cr_assert_not(plain_scope(TEXT(""), &scope));
}

Test(plain, headers_that_only_a_gateway_may_set)
{
    static const char *const STEERING[] = {
        "x-auth-account",
        "x-auth-anything",
        "x-auth-",
        "x_auth_account",
        "x-auth_admin",
        "x-authentik-groups",
        "x-webauth-user",
        "remote-user",
        "x-remote-extra-scopes",
        "ssl-client-verify",
        "ssl-client-cert",
        "x-ssl-client-s-dn",
        "client-cert",
        "client-cert-chain",
        "forwarded",
        "x-forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-ssl",
        "x_forwarded_tls_client_cert",
        "x-real-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "cf-connecting-ipv6",
        "x-host",
        "x-original-method",
        "x-original-url",
        "x-rewrite-url",
        "x-http-method",
        "x-http-method-override",
        "x-method-override",
        "http2-settings",
        "front-end-https",
        "proxy",
    };
    static const char *const OTHERS[] = {
        "",
        "x",
        "x-auth",
        "x-author",
        "x-remote",
        "authorization",
        "cookie",
        "host",
        "accept",
        "content-type",
        "proxy-connection",
        "user-agent",
        "traceparent",
        "x-request-id",
        "x-csrf-token",
        "origin",
        "via",
        "x-real-ip-address",
        "forwarded-by",
        "client-certificate",
        "x-http-methods",
        "x-hosts",
        "sec-websocket-key",
        "upgrade",
        "x-forwardedfor",
    };

    for (size_t i = 0; i < sizeof STEERING / sizeof *STEERING; i++)
        cr_assert(plain_steers(text_of(STEERING[i])), "%s", STEERING[i]);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        cr_assert_not(plain_steers(text_of(OTHERS[i])), "%s", OTHERS[i]);
}
