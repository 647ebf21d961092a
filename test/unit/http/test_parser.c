#include "http/parser_internal.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(http_parser, .fini = leak_guard);

static struct http_settings settings(void)
{
    return (struct http_settings){.limits.head_max_bytes = 1024,
                                  .limits.fields_max = 5,
                                  .limits.target_max_bytes = 100,
                                  .limits.body_max_bytes = 1000};
}

struct parsed {
    struct arena arena;
    struct http_parser parser;
    struct http_head head;
    enum http_error error;
};

static void parse(struct parsed *parsed, struct text bytes)
{
    struct http_settings limits = settings();
    struct head_scan scan = {0};
    size_t head_bytes = 0;

    memset(parsed, 0, sizeof *parsed);
    arena_init(&parsed->arena, NULL, 0);
    switch (head_scan(&scan, bytes, &limits, &head_bytes, &parsed->error)) {
    case HEAD_REFUSED:
        return;
    case HEAD_PARTIAL:
        parsed->error = HTTP_ERROR_REQUEST_TIMEOUT;
        return;
    case HEAD_WHOLE:
        parsed->error =
            parser_read_head(&parsed->parser, &parsed->head, &parsed->arena,
                             arena_copy(&parsed->arena, (struct text){bytes.ptr, head_bytes}), scan.lines, &limits);
    }
}

#define H "Host: t\r\n"
#define GET(fields) TEXT("GET / HTTP/1.1\r\n" fields "\r\n")
#define TARGET(target) TEXT("GET " target " HTTP/1.1\r\n" H "\r\n")
#define HOST(value) GET("Host:" value "\r\n")
#define CODING(value) GET(H "Transfer-Encoding:" value "\r\n")
#define LENGTH(value) GET(H "Content-Length:" value "\r\n")

#define A16 "aaaaaaaaaaaaaaaa"
#define A64 A16 A16 A16 A16

static const struct refused_case {
    struct text head;
    enum http_error error;
} CASES[] = {
    {GET(H), HTTP_ERROR_NONE},
    /* H1 */
    {TEXT("GET / HTTP/1.1\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/1.1\r\nHost: t\n\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/1.1\r\n" H "\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\rb\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\r\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "\rX: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\0b\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X\0: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    /* H2: CVE-2024-27982 */
    {GET(H " Content-Length: 5\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\r\n b\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\r\n\tb\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT(" GET / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    /* H3 */
    {TEXT("\r\nGET / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET /\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET  / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET /  HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/1.1 \r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET\t/ HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET /\tHTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET  HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("G(T / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/2.0\r\n" H "\r\n"), HTTP_ERROR_VERSION},
    {TEXT("GET / HTTP/0.9\r\n" H "\r\n"), HTTP_ERROR_VERSION},
    {TEXT("GET / HTTP/1.2\r\n" H "\r\n"), HTTP_ERROR_VERSION},
    {TEXT("GET / HTTP/11\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / http/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / RTSP/1.0\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("PRI * HTTP/2.0\r\n\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("BREW / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT("get / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT("GETX / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT("DESCRIBE / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT(A16 A16 " / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT(A16 A16 "a / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT(A16 A16 "a"), HTTP_ERROR_BAD_REQUEST}, /* refused without waiting for more */
    {TEXT(A16 A16), HTTP_ERROR_REQUEST_TIMEOUT},
    {TEXT(A16 "\r\n" A16 A16 A16), HTTP_ERROR_REQUEST_TIMEOUT}, /* not yet: decided at the end of the head */
    {TEXT("GET / HTTP/1.1\r\n: a\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/1.1\r\nX : a\r\n" H "\r\n"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("PRI / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED},
    {TEXT("QUERY / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NOT_IMPLEMENTED}, /* known to llhttp 9, not to 8 */
    {TEXT("PROPFIND / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NONE},
    {TEXT("UNSUBSCRIBE / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NONE},
    {TEXT("TRACE / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NONE},
    {TEXT("CONNECT t:443 HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_METHOD_NOT_ALLOWED},
    {TEXT("CONNECT / HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_METHOD_NOT_ALLOWED},
    /* H4 */
    {TARGET("/a/b;c=1?d=e&f:@!$'()*+,[]"), HTTP_ERROR_NONE},
    {TARGET("/%41%7e%c3%bc"), HTTP_ERROR_NONE},
    {TARGET("a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("*"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a#b"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a\\b"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/\"a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/<a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a>"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/^"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/`"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/{"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/|"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/}"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/\x7f"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/\xc3\xbc"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/\x01"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/\f"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%4"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%4g"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%00"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%0a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%1F"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/%7f"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a?b=c|d&{e}=^`\"<>\\&%&%4&%zz&%00%0d%0A&?/"), HTTP_ERROR_NONE},
    {TARGET("/%zz?a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a|b?c"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a?b#c"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a?\xc3\xbc"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a?\x7f"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("/a?b c"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("http://t/a"), HTTP_ERROR_NONE},
    {TARGET("HTTP://T"), HTTP_ERROR_NONE},
    {TARGET("https://t?a"), HTTP_ERROR_NONE},
    {TARGET("http://t/a?b|c"), HTTP_ERROR_NONE},
    {TARGET("http://t|/a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("http://u/a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("http://t:80/a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("http:///a"), HTTP_ERROR_BAD_REQUEST},
    {TARGET("ftp://t/a"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("OPTIONS * HTTP/1.1\r\n" H "\r\n"), HTTP_ERROR_NONE},
    /* H5 */
    {GET(H "X : a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X\t: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H ": a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X(: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X\xfc: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\x01\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\x7f\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\xfc\r\n"), HTTP_ERROR_NONE},
    {GET(H "X_Y: a\tb\r\n"), HTTP_ERROR_NONE},
    {GET(H "X:\r\n"), HTTP_ERROR_NONE},
    {GET(H "Authorization: \xfc\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "Cookie: theirs=\xfc; ours=a\r\n"), HTTP_ERROR_NONE},
    {GET(H "Content-Type: \xfc\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H A64 A64 A64 A64 ": 1\r\n"), HTTP_ERROR_NONE},
    {GET(H A64 A64 A64 A64 "a: 1\r\n"), HTTP_ERROR_BAD_REQUEST},
    /* H6 */
    {GET(""), HTTP_ERROR_BAD_REQUEST},
    {TEXT("GET / HTTP/1.0\r\n\r\n"), HTTP_ERROR_NONE},
    {TEXT("GET / HTTP/1.0\r\nHost: a b\r\n\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H H), HTTP_ERROR_BAD_REQUEST},
    {GET(H "hOST: u\r\n"), HTTP_ERROR_BAD_REQUEST},
    {HOST(""), HTTP_ERROR_BAD_REQUEST},
    {HOST(" "), HTTP_ERROR_BAD_REQUEST},
    {HOST("\t t \t"), HTTP_ERROR_NONE},
    {HOST("a.b-c_d~1:8080"), HTTP_ERROR_NONE},
    {HOST("t:"), HTTP_ERROR_NONE},
    {HOST("[::1]"), HTTP_ERROR_NONE},
    {HOST("[::ffff:1.2.3.4]:80"), HTTP_ERROR_NONE},
    {HOST("[::1"), HTTP_ERROR_BAD_REQUEST},
    {HOST("[]"), HTTP_ERROR_BAD_REQUEST},
    {HOST("[::1]x"), HTTP_ERROR_BAD_REQUEST},
    {HOST("[::g]"), HTTP_ERROR_BAD_REQUEST},
    {HOST(":80"), HTTP_ERROR_BAD_REQUEST},
    {HOST("t:80:80"), HTTP_ERROR_BAD_REQUEST},
    {HOST("t:x"), HTTP_ERROR_BAD_REQUEST},
    {HOST("t:123456"), HTTP_ERROR_BAD_REQUEST},
    {HOST("a,b"), HTTP_ERROR_BAD_REQUEST},
    {HOST("a b"), HTTP_ERROR_BAD_REQUEST},
    {HOST("a/b"), HTTP_ERROR_BAD_REQUEST},
    {HOST("u@a"), HTTP_ERROR_BAD_REQUEST},
    {HOST("\xfc"), HTTP_ERROR_BAD_REQUEST},
    /* H7 */
    {CODING("chunked"), HTTP_ERROR_NONE},
    {CODING(" Chunked  "), HTTP_ERROR_NONE},
    {CODING(""), HTTP_ERROR_BAD_REQUEST},
    {CODING("identity"), HTTP_ERROR_BAD_REQUEST},
    {CODING("gzip, chunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunked, chunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING(",chunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunked,"), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunkedchunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("xchunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("\"chunked\""), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunked;a"), HTTP_ERROR_BAD_REQUEST},
    {CODING("\vchunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunked\r\nTransfer-Encoding: chunked"), HTTP_ERROR_BAD_REQUEST},
    {CODING("chunked\r\nContent-Length: 5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("5\r\nTransfer-Encoding: chunked"), HTTP_ERROR_BAD_REQUEST},
    {TEXT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), HTTP_ERROR_BAD_REQUEST},
    /* H8 */
    {LENGTH("0"), HTTP_ERROR_NONE},
    {LENGTH(" 1000 "), HTTP_ERROR_NONE},
    {LENGTH("1001"), HTTP_ERROR_BODY_TOO_LARGE},
    {LENGTH("18446744073709551615"), HTTP_ERROR_BODY_TOO_LARGE},
    {LENGTH(""), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("00"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("05"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("+5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("-5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("5 5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("5,5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("0x5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("5\r\nContent-Length: 5"), HTTP_ERROR_BAD_REQUEST},
    {LENGTH("5\r\nContent-length: 6"), HTTP_ERROR_BAD_REQUEST},
    /* H10 */
    {GET(H "Expect: 100-Continue\r\n"), HTTP_ERROR_NONE},
    {GET(H "Expect: 200-ok\r\n"), HTTP_ERROR_EXPECTATION_FAILED},
    {GET(H "Expect:\r\n"), HTTP_ERROR_EXPECTATION_FAILED},
    /* H11 */
    {GET(H "Connection: upgrade\r\nUpgrade: websocket\r\n"), HTTP_ERROR_NONE},
    /* H12 */
    {GET(H "Authorization: a\r\nAuthorization: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "Cookie: a\r\ncookie: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "Content-Type: a\r\nContent-Type: a\r\n"), HTTP_ERROR_BAD_REQUEST},
    {GET(H "X: a\r\nX: a\r\n"), HTTP_ERROR_NONE},
    {GET(H "a: 1\r\nb: 1\r\nc: 1\r\nd: 1\r\n"), HTTP_ERROR_NONE},
    {GET(H "a: 1\r\nb: 1\r\nc: 1\r\nd: 1\r\ne: 1\r\n"), HTTP_ERROR_HEADERS_TOO_LARGE},
    /* A whole head or nothing. */
    {TEXT("GET / HTTP/1.1\r\n" H), HTTP_ERROR_REQUEST_TIMEOUT},
};

Test(http_parser, holds_heads_to_the_rules)
{
    struct parsed parsed;

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        parse(&parsed, CASES[i].head);
        cr_expect_eq(parsed.error, CASES[i].error, "%d, not %d: %s", parsed.error, CASES[i].error, CASES[i].head.ptr);
        arena_finish(&parsed.arena);
    }
}

static enum head_scan_result scan_once(struct text input)
{
    struct http_settings limits = settings();
    struct head_scan scan = {0};
    size_t head_bytes;
    enum http_error error;

    return head_scan(&scan, input, &limits, &head_bytes, &error);
}

/* In any place, and before the line is complete. */
Test(http_parser, refuses_a_control_character_as_soon_as_it_is_there)
{
    enum { PLACES = 20 };

    for (int c = 0; c <= UINT8_MAX; c++)
        for (size_t place = 0; place < PLACES; place++) {
            char line[PLACES + 1];
            bool may_go_on = c == '\t' ? place > 0 : c >= ' ';

            memset(line, 'a', sizeof line);
            line[place] = (char)c;
            cr_expect_eq(scan_once((struct text){line, sizeof line}), may_go_on ? HEAD_PARTIAL : HEAD_REFUSED,
                         "0x%02x at %zu", (unsigned)c, place);
        }
    cr_expect_eq(scan_once(TEXT("\r\n")), HEAD_REFUSED);
    cr_expect_eq(scan_once(TEXT("GET / HTTP/1.1\r")), HEAD_PARTIAL);
    cr_expect_eq(scan_once(TEXT("GET / HTTP/1.1\r\r")), HEAD_REFUSED);
    cr_expect_eq(scan_once(TEXT("GET / HTTP/1.1\r\n" H " a\r")), HEAD_PARTIAL, "is judged with its end");
    cr_expect_eq(scan_once(TEXT("GET / HTTP/1.1\r\n" H " a\r\n")), HEAD_REFUSED);
}

/* "GET /aaa… HTTP/1.1" and one long field. */
static enum http_error code_of_sizes(size_t target_bytes, size_t value_bytes)
{
    struct parsed parsed;
    struct buf head;

    buf_init(&head, 4096);
    buf_printf(&head, "GET /%0*d HTTP/1.1\r\n" H "X: ", (int)target_bytes - 1, 0);
    buf_printf(&head, "%0*d\r\n\r\n", (int)value_bytes, 0);
    cr_assert_not(head.failed);
    parse(&parsed, buf_text(&head));
    buf_finish(&head);
    arena_finish(&parsed.arena);
    return parsed.error;
}

Test(http_parser, bounds_target_and_head)
{
    size_t rest = strlen("GET / HTTP/1.1\r\n" H "X: \r\n\r\n");

    cr_assert_eq(code_of_sizes(100, 1), HTTP_ERROR_NONE);
    cr_assert_eq(code_of_sizes(101, 1), HTTP_ERROR_URI_TOO_LONG);
    cr_assert_eq(code_of_sizes(2, 1024 - rest - 1), HTTP_ERROR_NONE);
    cr_assert_eq(code_of_sizes(2, 1024 - rest), HTTP_ERROR_HEADERS_TOO_LARGE);
    cr_assert_eq(code_of_sizes(1100, 1), HTTP_ERROR_URI_TOO_LONG);
}

/* The verdict on a field with a name of that length and a Content-Type, with a wrong byte at those places unless they
 * lie beyond the end. */
static enum http_error code_of_field(size_t name_bytes, size_t name_at, const char *type, size_t type_at)
{
    struct parsed parsed;
    struct buf head;
    size_t name_from;

    buf_init(&head, 4096);
    buf_append_str(&head, "GET / HTTP/1.1\r\n" H);
    name_from = head.len;
    for (size_t i = 0; i < name_bytes; i++)
        buf_append_char(&head, 'n');
    if (name_at < name_bytes)
        head.ptr[name_from + name_at] = '(';
    buf_append_str(&head, ": v\r\nContent-Type: ");
    buf_append_str(&head, type);
    if (type_at < strlen(type))
        head.ptr[head.len - strlen(type) + type_at] = '\xe9';
    buf_append_str(&head, "\r\n\r\n");
    parse(&parsed, buf_text(&head));
    buf_finish(&head);
    arena_finish(&parsed.arena);
    return parsed.error;
}

/* Names and values are scanned several bytes at a time. */
Test(http_parser, sees_the_wrong_byte_in_each_place)
{
    static const char TYPE[] = "abcdefghijklmnopqrstuvwxyz";

    for (size_t bytes = 1; bytes < sizeof TYPE; bytes++) {
        const char *type = TYPE + sizeof TYPE - 1 - bytes;

        cr_assert_eq(code_of_field(bytes, bytes, type, bytes), HTTP_ERROR_NONE);
        for (size_t at = 0; at < bytes; at++) {
            cr_assert_eq(code_of_field(bytes, at, type, bytes), HTTP_ERROR_BAD_REQUEST, "name, %zu of %zu", at, bytes);
            cr_assert_eq(code_of_field(bytes, bytes, type, at), HTTP_ERROR_BAD_REQUEST, "value, %zu of %zu", at, bytes);
        }
    }
}

static void assert_parts(struct text request_line, struct text path, struct text query)
{
    struct parsed parsed;
    struct buf head;

    buf_init(&head, 4096);
    buf_append_text(&head, request_line);
    buf_append_str(&head, "\r\n" H "\r\n");
    parse(&parsed, buf_text(&head));
    cr_assert_eq(parsed.error, HTTP_ERROR_NONE);
    cr_assert(text_equal(parsed.head.path, path), "%.*s", TEXT_ARG(parsed.head.path));
    cr_assert(text_equal(parsed.head.query, query), "%.*s", TEXT_ARG(parsed.head.query));
    buf_finish(&head);
    arena_finish(&parsed.arena);
}

Test(http_parser, splits_targets)
{
    assert_parts(TEXT("GET /a/b?c=d?e HTTP/1.1"), TEXT("/a/b"), TEXT("c=d?e"));
    assert_parts(TEXT("GET /a? HTTP/1.1"), TEXT("/a"), TEXT(""));
    assert_parts(TEXT("GET http://t/a?b HTTP/1.1"), TEXT("/a"), TEXT("b"));
    assert_parts(TEXT("GET http://t?b HTTP/1.1"), TEXT("/"), TEXT("b"));
    assert_parts(TEXT("OPTIONS * HTTP/1.1"), TEXT("*"), TEXT(""));
}

Test(http_parser, fills_the_field_table)
{
    struct parsed parsed;

    parse(&parsed, GET("Host:t\r\nEmpty:\r\nX: \t a b \t\r\n"));
    cr_assert_eq(parsed.error, HTTP_ERROR_NONE);
    cr_assert_eq(parsed.head.field_count, 3);
    cr_assert(text_equal(parsed.head.fields[1].name, TEXT("Empty")));
    cr_assert_eq(parsed.head.fields[1].value.len, 0);
    cr_assert(text_equal(parsed.head.fields[2].value, TEXT("a b")));
    cr_assert(parsed.head.keeps_alive);
    cr_assert(parsed.parser.is_complete);
    arena_finish(&parsed.arena);
}

#define CHUNKED "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n"
#define TEN "aaaaaaaaaa"
#define FIFTY TEN TEN TEN TEN TEN
#define HUNDRED FIFTY FIFTY
#define FIVE_HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED

static const struct body_case {
    const char *head, *body;
    enum parser_result result;
    const char *content;
    const char *rest;
} BODIES[] = {
    {CHUNKED, "0\r\n\r\nrest", PARSER_DONE, "", "rest"},
    {CHUNKED, "2\r\nab\r\n0\r\n\r\nGET", PARSER_DONE, "ab", "GET"},
    {CHUNKED, "2\r\nab\r\n1\r\nc\r\n000\r\n\r\n", PARSER_DONE, "abc", ""},
    {CHUNKED, "2;x=\"y z\"\r\nab\r\n0;x\r\n\r\n", PARSER_DONE, "ab", ""},
    {CHUNKED, "2\r\nab\r\n0\r\nAuthorization: x\r\n\r\nrest", PARSER_DONE, "ab", "rest"},
    {CHUNKED, "2\r\na", PARSER_MORE, "a", ""},
    {CHUNKED, "2\r\nab\r\n0\r\n", PARSER_MORE, "ab", ""},
    {CHUNKED, "2\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nab\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nabXX0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nab\r\n0\r\n\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nab\r\n0\r\nX: y\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nab\r\n0\r\nX: y\r\n z\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nX:\r\nY: a\tb:c \t\r\n\r\n", PARSER_DONE, "", ""},
    {CHUNKED, "0\r\n: y\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nX : y\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nX\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nX: \xc3\xa9\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nX: y\r\nCONTENT-LENGTH: 5\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nTransfer-Encoding: chunked\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nTransfer-Encodings: x\r\nContent-Lengt: 5\r\n\r\n", PARSER_DONE, "", ""},
    {CHUNKED, "2;a=b\r\nab\r\n1;a=\"\"\r\nc\r\n0\r\n\r\n", PARSER_DONE, "abc", ""},
    {CHUNKED, "2;a=b;c\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2\r\nab\r\n0;a=b;\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;a=\"\\b\"\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;a=\"\tb\"\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;a=\"\xc3\xa9\"\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;a\nb\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;\x01\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2 \r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, " 2\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0x2\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "-2\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "\r\n2\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "00000000000000002\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "fffffffffffffffff\r\nab\r\n0\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "2;" HUNDRED "\r\nab\r\n0;" TEN TEN "\r\n\r\n", PARSER_DONE, "ab", ""},
    {CHUNKED, "2;" HUNDRED "\r\nab\r\n0;" TEN TEN TEN "\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {CHUNKED, "0\r\nA: " FIVE_HUNDRED FIVE_HUNDRED "\r\n\r\n", PARSER_DONE, "", ""},
    {CHUNKED, "0\r\nA: " FIVE_HUNDRED FIVE_HUNDRED FIFTY "\r\n\r\n", PARSER_REFUSED, NULL, NULL},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n", "abcd", PARSER_DONE, "abc", "d"},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nConnection: close\r\n\r\n", "abcd", PARSER_DONE, "abc", "d"},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n", "a\n", PARSER_MORE, "a\n", ""},
    {"POST / HTTP/1.1\r\n" H "\r\n", "abc", PARSER_DONE, "", "abc"},
};

/* Sends the body in pieces of that many bytes. */
static void assert_body(const struct body_case *c, size_t piece_bytes)
{
    struct parsed parsed;
    struct buf sink;
    struct text rest = text_of(c->body);
    enum parser_result result = PARSER_MORE;

    parse(&parsed, text_of(c->head));
    cr_assert_eq(parsed.error, HTTP_ERROR_NONE);
    buf_init(&sink, 4096);
    while (rest.len > 0 && result == PARSER_MORE) {
        struct text piece = {rest.ptr, rest.len < piece_bytes ? rest.len : piece_bytes};
        size_t used;

        result = parser_read_body(&parsed.parser, piece, &sink, &used);
        cr_assert(used <= piece.len);
        rest = text_skip(rest, used);
    }
    cr_expect_eq(result, c->result, "%s", c->body);
    if (result == PARSER_REFUSED) {
        cr_expect_eq(parsed.parser.error, HTTP_ERROR_BAD_REQUEST, "%s", c->body);
    } else if (c->content) {
        cr_expect(text_equal(buf_text(&sink), text_of(c->content)), "%s", c->body);
        cr_expect(text_equal(rest, text_of(c->rest)), "%s leaves %.*s", c->body, TEXT_ARG(rest));
    }
    buf_finish(&sink);
    arena_finish(&parsed.arena);
}

Test(http_parser, reads_bodies_in_any_pieces)
{
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        for (size_t piece_bytes = 1; piece_bytes < 9; piece_bytes++)
            assert_body(&BODIES[i], piece_bytes);
        assert_body(&BODIES[i], SIZE_MAX);
    }
}

Test(http_parser, bounds_a_chunked_body)
{
    struct parsed parsed;
    size_t used;
    char body[1100];

    parse(&parsed, TEXT(CHUNKED));
    memset(body, 'a', sizeof body);
    memcpy(body, "3e8\r\n", 5);
    cr_assert_eq(parser_read_body(&parsed.parser, (struct text){body, 1005}, NULL, &used), PARSER_MORE);
    cr_assert_eq(parser_read_body(&parsed.parser, TEXT("\r\n1\r\na"), NULL, &used), PARSER_REFUSED);
    cr_assert_eq(parsed.parser.error, HTTP_ERROR_BODY_TOO_LARGE);
    arena_finish(&parsed.arena);
}
