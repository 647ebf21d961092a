/* Every kind of answer, of both listeners, carries what every answer must carry. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(answers, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { REQUEST_BYTES = 24 * 1024, PATH_BYTES = 256, LONG_BYTES = 17 * 1024 };

/* "%s": the manager's key. */
static const struct kind {
    const char *request;
    int status;
} KINDS[] = {
    {"GET / HTTP/1.1\r\nHost: t\r\n\r\n", 302},
    {"GET /console/ HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"HEAD /console/ HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"GET /console/ HTTP/1.1\r\nHost: t\r\nIf-None-Match: *\r\n\r\n", 304},
    {"GET /console/ HTTP/1.1\r\nHost: t\r\nAccept-Encoding: gzip\r\n\r\n", 200},
    {"GET /console/nothing HTTP/1.1\r\nHost: t\r\n\r\n", 404},
    {"GET /console/no/file HTTP/1.1\r\nHost: t\r\n\r\n", 404},
    {"POST /console/ HTTP/1.1\r\nHost: t\r\n\r\n", 405},
    {"GET /docs HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"HEAD /docs/errors HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"GET /docs/nothing HTTP/1.1\r\nHost: t\r\n\r\n", 404},
    {"POST /docs HTTP/1.1\r\nHost: t\r\n\r\n", 405},
    {"GET /openapi.json HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"HEAD /openapi.json HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", 204},
    {"GET /.well-known/oauth-authorization-server HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"GET /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 200},
    {"HEAD /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 200},
    {"GET /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 200},
    {"POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
     "Content-Length: 28\r\n\r\n{\"name\":\"any\",\"mode\":\"test\"}",
     201},
    {"POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
     "Content-Length: 1\r\n\r\n{",
     400},
    {"GET /v1/whoami?a HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 400},
    {"POST /v1/auth/token HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-www-form-urlencoded\r\n"
     "Content-Length: 3\r\n\r\na=b",
     400},
    {"GET /v1/whoami HTTP/1.1\r\nHost: t\r\n\r\n", 401},
    {"GET /v1/console/session HTTP/1.1\r\nHost: t\r\n\r\n", 401},
    {"GET /v1/documents HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 403},
    {"POST /v1/auth/login HTTP/1.1\r\nHost: t\r\nOrigin: https://evil.test\r\n\r\n", 403},
    {"GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n", 404},
    {"GET /v1/patients HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 404},
    {"DELETE /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 405},
    {"TRACE /v1/whoami HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 405},
    {"CONNECT t:443 HTTP/1.1\r\nHost: t\r\n\r\n", 405},
    {"POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\n"
     "Content-Length: 1\r\n\r\n{",
     415},
    {"POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n", 413},
    {"GET /v1/whoami HTTP/1.1\r\nHost: t\r\nExpect: wonders\r\n\r\n", 417},
    {"BREW /v1/whoami HTTP/1.1\r\nHost: t\r\n\r\n", 501},
    {"GET /v1/whoami HTTP/3.0\r\nHost: t\r\n\r\n", 505},
    {"GET /v1/whoami HTTP/1.0\r\n\r\n", 401},
    {"GET\r\n\r\n", 400},
    /* Unfinished ones. */
    {"GET /v1/whoami HTTP/1.1\r\nHost: t\r\n", 408},
    {"POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
     "Content-Length: 9\r\n\r\n{",
     408},
};

static const struct kind INTERNAL_KINDS[] = {
    {"GET /livez HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"HEAD /readyz HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", 200},
    {"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", 204},
    {"PUT /metrics HTTP/1.1\r\nHost: t\r\n\r\n", 405},
    {"GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n", 404},
    {"GET /check/ext-authz/v1/patients HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer %s\r\n\r\n", 200},
    {"GET /check/ext-authz/v1/patients HTTP/1.1\r\nHost: t\r\n\r\n", 401},
    {"GET /check/ext-authz/v1/patients HTTP/1.1\r\nHost: t\r\nCookie: a\r\nCookie: a\r\n\r\n", 400},
};

static struct fixture fixture;

static void expect_headers(const struct http_answer *answer, const char *request)
{
    static const struct {
        const char *name, *value; /* what it contains */
    } ALWAYS[] = {
        {"Date", "GMT"},
        {"X-Request-Id", "req_"},
        {"Cache-Control", ""},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy", "default-src 'none'; "},
        {"Content-Security-Policy", "frame-ancestors 'none'"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Strict-Transport-Security", "max-age="},
    };
    char value[1024];

    for (size_t i = 0; i < sizeof ALWAYS / sizeof *ALWAYS; i++)
        cr_expect(http_answer_field(answer, ALWAYS[i].name, value, sizeof value) && strstr(value, ALWAYS[i].value),
                  "%s:\n%s\n%s", ALWAYS[i].name, request, answer->head);
    cr_expect_null(strstr(answer->head, "Access-Control-"), "%s", answer->head);
}

static void expect_answer(uint16_t port, const char *request, int status)
{
    struct http_client client;
    struct http_answer answer;

    http_client_connect(&client, port);
    http_client_send(&client, request, strlen(request));
    cr_assert_eq(http_client_read(&client, strncmp(request, "HEAD ", 5) == 0, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER,
                 "%s", request);
    cr_expect_eq(answer.status, status, "%s\n%s%s", request, answer.head, answer.body);
    expect_headers(&answer, request);
    http_client_close(&client);
}

static void expect_all(uint16_t port, const struct kind *kinds, size_t count)
{
    char request[REQUEST_BYTES];

    for (size_t i = 0; i < count; i++) {
        const char *mark = strstr(kinds[i].request, "%s");
        int before = mark ? (int)(mark - kinds[i].request) : 0;

        snprintf(request, sizeof request, "%.*s%s%s", before, kinds[i].request, mark ? fixture.manager.secret : "",
                 mark ? mark + 2 : kinds[i].request);
        expect_answer(port, request, kinds[i].status);
    }
}

/* A file of the console, by the path that its page names. */
static void expect_file(uint16_t port)
{
    struct http_answer page;
    char request[REQUEST_BYTES];
    const char *path;

    cr_assert_eq(http_call(port, &(struct http_call){.target = "/console/"}, &page), 200);
    path = strstr(page.body, "/console/");
    cr_assert(path && strcspn(path, "\"") < PATH_BYTES);
    snprintf(request, sizeof request, "GET %.*s HTTP/1.1\r\nHost: t\r\n\r\n", (int)strcspn(path, "\""), path);
    expect_answer(port, request, 200);
}

static void expect_too_long(uint16_t port, const char *before, int status)
{
    char request[REQUEST_BYTES];
    size_t bytes = strlen(before);

    memcpy(request, before, bytes);
    memset(request + bytes, 'a', LONG_BYTES);
    request[bytes + LONG_BYTES] = '\0';
    expect_answer(port, request, status);
}

Test(answers, carry_what_every_answer_carries)
{
    static const char *const MORE[] = {"--head-timeout-ms", "3000", "--body-timeout-ms", "3000", NULL};

    fixture_start(&fixture, 1, MORE);
    expect_all(fixture.nodes[0].port, KINDS, sizeof KINDS / sizeof *KINDS);
    expect_all(fixture.nodes[0].internal_port, INTERNAL_KINDS, sizeof INTERNAL_KINDS / sizeof *INTERNAL_KINDS);
    expect_file(fixture.nodes[0].port);
    expect_too_long(fixture.nodes[0].port, "GET /", 414);
    expect_too_long(fixture.nodes[0].port, "GET / HTTP/1.1\r\nX: ", 431);
    fixture_stop(&fixture);
}
