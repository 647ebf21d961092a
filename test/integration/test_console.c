/* What the console tells a cache, as far as it hangs on digests: see test/http/console.case for the rest, and
 * test/console for what the pages do. */
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { FIELD_BYTES = 256 };

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

TestSuite(console, .init = start, .fini = stop, .timeout = TEST_WITHIN_S);

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

/* The path of a file that the page names. */
static void read_script_path(char ret_path[FIELD_BYTES])
{
    struct http_answer answer;
    const char *src;

    cr_assert_eq(get("/console/", NULL, &answer), 200);
    src = strstr(answer.body, "src=\"/console/");
    cr_assert(src, "%s", answer.body);
    src += strlen("src=\"");
    snprintf(ret_path, FIELD_BYTES, "%.*s", (int)strcspn(src, "\""), src);
}

Test(console, a_file_is_kept_for_ever)
{
    char script[FIELD_BYTES];
    struct http_answer plain, packed;

    read_script_path(script);
    cr_assert_eq(get(script, NULL, &plain), 200);
    cr_expect_str_eq(field(&plain, "Content-Type"), "text/javascript; charset=utf-8");
    cr_expect_str_eq(field(&plain, "Cache-Control"), "public, max-age=31536000, immutable");
    cr_expect_str_eq(field(&plain, "X-Content-Type-Options"), "nosniff");
    cr_expect_str_eq(field(&plain, "Cross-Origin-Resource-Policy"), "same-origin");
    cr_expect_str_eq(field(&plain, "Strict-Transport-Security"), "max-age=63072000; includeSubDomains");
    cr_expect_str_eq(field(&plain, "Vary"), "Accept-Encoding");
    cr_expect_str_empty(field(&plain, "ETag"));
    cr_expect_str_empty(field(&plain, "Content-Encoding"));
    cr_assert_eq(get(script, "Accept-Encoding: gzip\r\n", &packed), 200);
    cr_expect_str_eq(field(&packed, "Content-Encoding"), "gzip");
    cr_expect(packed.body_len > 2 && memcmp(packed.body, "\x1f\x8b", 2) == 0);
    cr_expect_lt(packed.body_len, plain.body_len);
}

/* An ETag between what may stand in front of it and behind it. */
static int ask_again(const char *before, const char *etag, const char *behind)
{
    struct http_answer answer;
    char fields[2 * FIELD_BYTES];

    snprintf(fields, sizeof fields, "If-None-Match: %.60s%.60s%.60s\r\n", before, etag, behind);
    return get("/console/", fields, &answer);
}

Test(console, a_page_that_a_cache_has_is_not_sent_again)
{
    char plain[FIELD_BYTES], gzip[FIELD_BYTES];
    struct http_answer answer;

    (void)get("/console/", NULL, &answer);
    snprintf(plain, sizeof plain, "%s", field(&answer, "ETag"));
    (void)get("/console/", "Accept-Encoding: gzip\r\n", &answer);
    snprintf(gzip, sizeof gzip, "%s", field(&answer, "ETag"));
    cr_assert(plain[0] == '"' && gzip[0] == '"');
    cr_expect_eq(ask_again("", plain, ""), 304);
    cr_expect_eq(ask_again("W/", plain, ""), 304);
    cr_expect_eq(ask_again("\"other\", W/\"more\" , ", plain, ""), 304);
    cr_expect_eq(ask_again("", gzip, "\r\nAccept-Encoding: gzip"), 304);
    cr_expect_eq(ask_again("", plain, "\r\nAccept-Encoding: gzip"), 200, "another form of it");
    cr_expect_eq(ask_again("", plain, "0"), 200);
    cr_expect_eq(ask_again("w/", plain, ""), 200);
}

Test(console, strict_transport_security_is_for_https_alone)
{
    static const char *const PLAIN[] = {"--public-origin", "http://127.0.0.1", NULL};
    struct http_answer answer;
    char script[FIELD_BYTES];

    read_script_path(script);
    fixture_add_node(&fixture, PLAIN);
    for (size_t i = 0; i < 3; i++) {
        const char *const targets[] = {"/console/", script, "/v1/whoami"};

        (void)fixture_call(&fixture, 1, &(struct http_call){.target = targets[i]}, &answer);
        cr_expect_str_empty(field(&answer, "Strict-Transport-Security"), "%s", targets[i]);
        cr_expect_str_eq(field(&answer, "X-Content-Type-Options"), "nosniff", "%s", targets[i]);
    }
}
