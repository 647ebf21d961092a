/* The console's files and the API's description as a browser or a cache meets them: forms, freshness, headers. What the
 * pages do is tested in a browser, in test/console. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_BYTES = 1024 };

static struct fixture fixture;

static void start(void)
{
    fixture_start(&fixture, 1, NULL);
}

static void stop(void)
{
    fixture_stop(&fixture);
    leak_guard();
}

TestSuite(console, .init = start, .fini = stop, .timeout = 60);

/* fields: more lines of the request, may be NULL. */
static int get(const char *target, const char *fields, struct http_answer *ret_answer)
{
    return fixture_call(&fixture, 0, &(struct http_call){.target = target, .fields = fields}, ret_answer);
}

/* "" where there is none. */
static const char *field(const struct http_answer *answer, const char *name)
{
    static char value[FIELD_BYTES];

    if (!http_answer_field(answer, name, value, sizeof value))
        value[0] = '\0';
    return value;
}

static bool is_gzip(const struct http_answer *answer)
{
    return answer->body_len > 2 && memcmp(answer->body, "\x1f\x8b", 2) == 0;
}

/* The path of a file that the page names. */
static void read_script_path(char *ret_path, size_t size)
{
    struct http_answer answer;
    const char *src;

    cr_assert_eq(get("/console/", NULL, &answer), 200);
    src = strstr(answer.body, "src=\"");
    cr_assert(src, "%s", answer.body);
    src += strlen("src=\"");
    snprintf(ret_path, size, "%.*s", (int)strcspn(src, "\""), src);
    cr_assert(strncmp(ret_path, "/console/", 9) == 0, "%s", ret_path);
}

Test(console, each_path_has_its_answer)
{
    static const struct {
        const char *method, *target;
        int status;
        const char *type;
    } CASES[] = {
        {"GET", "/", 302, ""},
        {"GET", "/console", 302, ""},
        {"GET", "/console?x", 302, ""},
        {"GET", "/console/", 200, "text/html; charset=utf-8"},
        {"GET", "/console/?user_code=BCDF-GHJK", 200, "text/html; charset=utf-8"},
        {"GET", "/console/devices", 200, "text/html; charset=utf-8"},
        {"GET", "/console/activate", 200, "text/html; charset=utf-8"},
        {"GET", "/console/activity", 200, "text/html; charset=utf-8"},
        {"GET", "/console/usage", 200, "text/html; charset=utf-8"},
        {"GET", "/console/session", 200, "text/html; charset=utf-8"},
        {"GET", "/console/session2", 404, "text/html; charset=utf-8"},
        {"GET", "/console/no/such", 404, "application/json"},
        {"GET", "/console//", 404, "application/json"},
        {"GET", "/consoles", 404, "application/json"},
        {"GET", "//console/", 404, "application/json"},
        {"GET", "/openapi.json2", 404, "application/json"},
        {"POST", "/", 405, "application/json"},
        {"DELETE", "/console", 405, "application/json"},
        {"PUT", "/console/", 405, "application/json"},
        {"OPTIONS", "/console/no/such", 405, "application/json"},
        {"POST", "/openapi.json", 405, "application/json"},
    };
    struct http_answer answer;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct http_call call = {.method = CASES[i].method, .target = CASES[i].target};

        cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), CASES[i].status, "%s %s: %d", CASES[i].method,
                     CASES[i].target, answer.status);
        cr_expect_str_eq(field(&answer, "Content-Type"), CASES[i].type, "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "Location"), CASES[i].status == 302 ? "/console/" : "", "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "Allow"), CASES[i].status == 405 ? "GET, HEAD" : "", "%s", CASES[i].target);
    }
}

Test(console, what_a_browser_may_do_with_pages_files_and_the_description)
{
    static const char PAGE[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                               "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
                               "require-trusted-types-for 'script'; trusted-types 'none'";
    static const char ERROR[] = "default-src 'none'; frame-ancestors 'none'";
    static const char FOR_EVER[] = "public, max-age=31536000, immutable";
    static char script[FIELD_BYTES];
    const struct {
        const char *target, *policy, *referrer, *caching;
    } CASES[] = {
        {"/", PAGE, "no-referrer", "no-store"},
        {"/console/", PAGE, "no-referrer", "no-cache"},
        {"/console/nothing", PAGE, "no-referrer", "no-cache"},
        {"/console/no/such", ERROR, "no-referrer", "no-store"},
        {"/v1/whoami", ERROR, "no-referrer", "no-store"},
        {script, "", "", FOR_EVER},
        {"/v1/whoami", ERROR, "no-referrer", "no-store"},
    };
    struct http_answer answer;

    read_script_path(script, sizeof script);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        (void)get(CASES[i].target, NULL, &answer);
        cr_expect_str_eq(field(&answer, "Content-Security-Policy"), CASES[i].policy, "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "Referrer-Policy"), CASES[i].referrer, "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "Cache-Control"), CASES[i].caching, "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "X-Content-Type-Options"), "nosniff", "%s", CASES[i].target);
        cr_expect_str_eq(field(&answer, "Strict-Transport-Security"), "max-age=63072000; includeSubDomains", "%s",
                         CASES[i].target);
        cr_expect_str_neq(field(&answer, "X-Request-Id"), "", "%s", CASES[i].target);
        cr_expect_str_neq(field(&answer, "Date"), "", "%s", CASES[i].target);
    }
}

Test(console, strict_transport_security_is_for_https_alone)
{
    static const char *const PLAIN[] = {"--public-origin", "http://127.0.0.1", NULL};
    struct http_answer answer;
    char script[FIELD_BYTES];

    read_script_path(script, sizeof script);
    fixture_add_node(&fixture, PLAIN);
    for (size_t i = 0; i < 3; i++) {
        const char *const targets[] = {"/console/", script, "/v1/whoami"};

        (void)fixture_call(&fixture, 1, &(struct http_call){.target = targets[i]}, &answer);
        cr_expect_str_eq(field(&answer, "Strict-Transport-Security"), "", "%s", targets[i]);
        cr_expect_str_eq(field(&answer, "X-Content-Type-Options"), "nosniff", "%s", targets[i]);
    }
}

Test(console, compresses_for_who_takes_gzip)
{
    static const struct {
        const char *fields;
        bool takes_gzip;
    } CASES[] = {
        {"", false},
        {"Accept-Encoding: gzip\r\n", true},
        {"Accept-Encoding: GZip\r\n", true},
        {"Accept-Encoding: br, gzip ;q=0.001, *;q=0\r\n", true},
        {"Accept-Encoding: gzip;q=1\r\n", true},
        {"Accept-Encoding: gzip;q=0.0, br\r\n", false},
        {"Accept-Encoding: gzip; Q=0\r\n", false},
        {"Accept-Encoding: gzip;q=0.\r\n", false},
        {"Accept-Encoding: br, gzipped, x-gzip\r\n", false},
        {"Accept-Encoding: gzip\r\nAccept-Encoding: gzip\r\n", false}, /* which one counts is nobody's guess */
    };
    char script[FIELD_BYTES];
    struct http_answer answer;

    read_script_path(script, sizeof script);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *const targets[] = {"/console/", script};

        for (size_t t = 0; t < 2; t++) {
            cr_expect_eq(get(targets[t], CASES[i].fields, &answer), 200);
            cr_expect_eq(is_gzip(&answer), CASES[i].takes_gzip, "%s %s", targets[t], CASES[i].fields);
            cr_expect_str_eq(field(&answer, "Content-Encoding"), CASES[i].takes_gzip ? "gzip" : "", "%s",
                             CASES[i].fields);
            cr_expect_str_eq(field(&answer, "Vary"), "Accept-Encoding");
        }
    }
}

/* An ETag between what may stand in front of it and behind it. */
static int ask_again(const char *target, const char *before, const char *etag, const char *behind,
                     struct http_answer *ret_answer)
{
    char fields[256];

    snprintf(fields, sizeof fields, "If-None-Match: %s%s%s\r\n", before, etag, behind);
    return get(target, fields, ret_answer);
}

Test(console, what_a_cache_has_is_not_sent_again)
{
    static const struct {
        const char *before, *behind; /* of the plain document's ETag */
        int status;
    } CASES[] = {
        {"", "", 304},
        {"W/", "", 304},
        {"\"other\", W/\"more\" , ", "", 304},
        {"*, ", "0", 304},
        {"", "0", 200},
        {"w/", "", 200},
        {"", "\r\nIf-None-Match: \"other\"", 200},
        {"", "\r\nAccept-Encoding: gzip", 200}, /* another form of it */
    };
    char plain[64], gzip[64];
    struct http_answer answer;

    (void)get("/console/", NULL, &answer);
    snprintf(plain, sizeof plain, "%s", field(&answer, "ETag"));
    (void)get("/console/", "Accept-Encoding: gzip\r\n", &answer);
    snprintf(gzip, sizeof gzip, "%s", field(&answer, "ETag"));
    cr_assert(plain[0] == '"' && gzip[0] == '"');
    cr_expect_str_neq(plain, gzip);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(ask_again("/console/", CASES[i].before, plain, CASES[i].behind, &answer), CASES[i].status,
                     "%zu: %d", i, answer.status);
        cr_expect_str_eq(field(&answer, "Vary"), "Accept-Encoding", "%zu", i);
        cr_expect_str_eq(field(&answer, "Cache-Control"), "no-cache", "%zu", i);
    }
    cr_expect_eq(ask_again("/console/", "", gzip, "\r\nAccept-Encoding: gzip", &answer), 304);
    cr_expect_str_eq(field(&answer, "ETag"), gzip);
    cr_expect_eq(ask_again("/console/nothing", "", plain, "", &answer), 404, "an error is no page that anybody has");
}

Test(console, head_tells_the_length_of_either_form)
{
    static const char *const FIELDS[] = {"", "Accept-Encoding: gzip\r\n"};
    struct http_answer whole, head;
    struct http_client client;
    char length[16];

    http_client_connect(&client, fixture.nodes[0].port);
    for (size_t i = 0; i < 2; i++) {
        struct http_call call = {.target = "/console/", .fields = FIELDS[i]};

        http_client_call(&client, &call, &whole);
        call.method = "HEAD";
        http_client_send_call(&client, &call);
        cr_assert_eq(http_client_read(&client, true, 10000, &head), HTTP_CLIENT_ANSWER);
        snprintf(length, sizeof length, "%zu", whole.body_len);
        cr_expect_str_eq(field(&head, "Content-Length"), length);
    }
    http_client_close(&client);
}

Test(console, needs_no_store)
{
    struct http_answer answer;

    redis_server_freeze(&fixture.redis);
    cr_expect_eq(get("/console/", NULL, &answer), 200);
    redis_server_thaw(&fixture.redis);
}
