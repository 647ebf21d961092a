#include "base/json.h"

#include "address_sanitizer.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BODY(literal) ((struct text){"" literal, sizeof(literal) - 1})
#define SIX_DEEP "[[[[[["
#define SIX_UP "]]]]]]"

TestSuite(json, .fini = leak_guard);

/* Parses memory of the exact size, so that the sanitizer finds a read past the end. */
static struct json *parse(struct text body, const char **ret_why)
{
    char *exact = malloc(body.len ? body.len : 1);
    cr_assert_not_null(exact);
    if (body.len)
        memcpy(exact, body.ptr, body.len);
    struct json *document = json_parse_object((struct text){exact, body.len}, ret_why);
    free(exact);
    return document;
}

static struct json *parse_good(const char *body)
{
    const char *why = "";
    struct json *document = parse(text_of(body), &why);
    cr_assert_not_null(document, "%s: %s", body, why);
    return document;
}

Test(json, takes_what_rfc_8259_allows)
{
    static const struct text bodies[] = {
        BODY("{}"),
        BODY(" \t\r\n{ \t\r\n} \t\r\n"),
        BODY("{\"a\":1}"),
        BODY("{ \"a\" : 1 , \"b\" : 2 }"),
        BODY("{\"\":0}"),
        BODY("{\"a\":0}"),
        BODY("{\"a\":-0}"),
        BODY("{\"a\":-1}"),
        BODY("{\"a\":10}"),
        BODY("{\"a\":0.5}"),
        BODY("{\"a\":-0.05}"),
        BODY("{\"a\":1e5}"),
        BODY("{\"a\":1E+05}"),
        BODY("{\"a\":1.25e-2}"),
        BODY("{\"a\":0e0}"),
        BODY("{\"a\":1e999}"),
        BODY("{\"a\":123456789012345678901234567890123456789012345678901234567890123}"),
        BODY("{\"a\":true,\"b\":false,\"c\":null}"),
        BODY("{\"a\":[]}"),
        BODY("{\"a\":[ ]}"),
        BODY("{\"a\":[1,\"x\",null,{},[]]}"),
        BODY("{\"a\":\"\"}"),
        BODY("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}"),
        BODY("{\"a\":\"\\u0001\\u00e4\\u20AC\\uFFFF\"}"),
        BODY("{\"a\":\"\\uD83D\\uDD11\"}"),
        BODY("{\"a\":\"\\\\u0000\"}"),
        BODY("{\"a\":\"\x7f\"}"),
        BODY("{\"a\":\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x94\x91\"}"),
        BODY("{\"a\":\"\xef\xbf\xbf\"}"),
        BODY("{\"a\":{\"a\":{\"a\":1}}}"),
        BODY("{\"a\":1,\"A\":2,\"a \":3}"),
        BODY("{\"a\":[{\"x\":1},{\"x\":2}]}"),
        BODY("{\"a\":" SIX_DEEP SIX_DEEP "[[["
             "]]]" SIX_UP SIX_UP "}"),
    };
    for (size_t i = 0; i < COUNT(bodies); i++) {
        const char *why = "";
        struct json *document = parse(bodies[i], &why);
        cr_expect_not_null(document, "%.*s: %s", TEXT_ARG(bodies[i]), why);
        json_free(document);
    }
}

Test(json, says_where_a_text_stops_being_json)
{
    static const struct {
        struct text body;
        size_t line, column; /* 0: it is JSON, at least for the scanner */
    } CASES[] = {
        {{NULL, 0}, 1, 1},
        {BODY(""), 1, 1},
        {BODY("[]"), 1, 1},
        {BODY("\n  []"), 2, 3},
        {BODY("{\"a\":1}"), 0, 0},
        {BODY("{\"a\":1,\"a\":1}"), 0, 0},
        {BODY("{\"a\":1,}"), 1, 8},
        {BODY("{\r\n  \"a\": 1, // why\r\n}"), 2, 11},
        {BODY("{\"\xc3\xa4\":x}"), 1, 6},
        {BODY("{\n\"a\":1\n"), 3, 1},
        {BODY("{}\n\n{}"), 3, 1},
        {BODY("\xef\xbb\xbf{}"), 1, 1},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        size_t line = 0, column = 0;

        cr_expect_eq(json_find_mistake(CASES[i].body, &line, &column), CASES[i].line > 0, "row %zu", i);
        cr_expect(line == CASES[i].line && column == CASES[i].column, "row %zu: %zu:%zu", i, line, column);
    }
}

Test(json, refuses_everything_else)
{
    static const struct {
        struct text body;
        const char *why; /* part of the reason */
    } cases[] = {
        {{NULL, 0}, "not a JSON object"},
        {BODY(""), "not a JSON object"},
        {BODY("   "), "not a JSON object"},
        {BODY("[]"), "not a JSON object"},
        {BODY("\"a\""), "not a JSON object"},
        {BODY("1"), "not a JSON object"},
        {BODY("null"), "not a JSON object"},
        {BODY("\xef\xbb\xbf{}"), "byte order mark"},
        {BODY("\f{}"), "not a JSON object"},
        {BODY("\0{}"), "not a JSON object"},
        {BODY("{"), "not a string"},
        {BODY("}"), "not a JSON object"},
        {BODY("{}}"), "after the object"},
        {BODY("{}x"), "after the object"},
        {BODY("{}{}"), "after the object"},
        {BODY("{},"), "after the object"},
        {BODY("{}\0"), "after the object"},
        {BODY("{}//"), "after the object"},
        {BODY("{/**/}"), "not a string"},
        {BODY("{\"a\":1,}"), "not a string"},
        {BODY("{,\"a\":1}"), "not a string"},
        {BODY("{\"a\":1 \"b\":2}"), "object does not end"},
        {BODY("{\"a\":1"), "object does not end"},
        {BODY("{\"a\":1]"), "object does not end"},
        {BODY("{\"a\"}"), "colon"},
        {BODY("{\"a\" 1}"), "colon"},
        {BODY("{\"a\""), "colon"},
        {BODY("{\"a\":}"), "value"},
        {BODY("{\"a\":"), "value"},
        {BODY("{\"a\":,}"), "value"},
        {BODY("{\"a\"::1}"), "value"},
        {BODY("{a:1}"), "not a string"},
        {BODY("{'a':1}"), "not a string"},
        {BODY("{1:1}"), "not a string"},
        {BODY("{null:1}"), "not a string"},
        {BODY("{\"a\":[1,]}"), "value"},
        {BODY("{\"a\":[,1]}"), "value"},
        {BODY("{\"a\":[1 2]}"), "array does not end"},
        {BODY("{\"a\":[1}"), "array does not end"},
        {BODY("{\"a\":["), "value"},
        {BODY("{\"a\":01}"), "object does not end"},
        {BODY("{\"a\":-01}"), "object does not end"},
        {BODY("{\"a\":00}"), "object does not end"},
        {BODY("{\"a\":+1}"), "value"},
        {BODY("{\"a\":.5}"), "value"},
        {BODY("{\"a\":-.5}"), "number"},
        {BODY("{\"a\":1.}"), "number"},
        {BODY("{\"a\":2.e3}"), "number"},
        {BODY("{\"a\":1e}"), "number"},
        {BODY("{\"a\":1e+}"), "number"},
        {BODY("{\"a\":1e1.5}"), "object does not end"},
        {BODY("{\"a\":-}"), "number"},
        {BODY("{\"a\":--1}"), "number"},
        {BODY("{\"a\":0x10}"), "object does not end"},
        {BODY("{\"a\":1_000}"), "object does not end"},
        {BODY("{\"a\":NaN}"), "value"},
        {BODY("{\"a\":-Infinity}"), "number"},
        {BODY("{\"a\":1234567890123456789012345678901234567890123456789012345678901234}"), "too long"},
        {BODY("{\"a\":True}"), "value"},
        {BODY("{\"a\":tru}"), "value"},
        {BODY("{\"a\":truex}"), "object does not end"},
        {BODY("{\"a\":nul"), "value"},
        {BODY("{\"a\":undefined}"), "value"},
        {BODY("{\"a\":'x'}"), "value"},
        {BODY("{\"a\":\"x}"), "does not end"},
        {BODY("{\"a\":\"x\\\"}"), "does not end"},
        {BODY("{\"a\":\"x\\"), "escape"},
        {BODY("{\"a\":\"\\x41\"}"), "escape"},
        {BODY("{\"a\":\"\\a\"}"), "escape"},
        {BODY("{\"a\":\"\\U0041\"}"), "escape"},
        {BODY("{\"a\":\"\\\0\"}"), "escape"},
        {BODY("{\"a\":\"\\u\"}"), "escape"},
        {BODY("{\"a\":\"\\u004\"}"), "escape"},
        {BODY("{\"a\":\"\\u00g0\"}"), "escape"},
        {BODY("{\"a\":\"\\u+041\"}"), "escape"},
        {BODY("{\"a\":\"\\u00"), "escape"},
        {BODY("{\"a\":\"x\\u0000y\"}"), "u0000"},
        {BODY("{\"a\\u0000\":1}"), "u0000"},
        {BODY("{\"a\":\"\\ud800\"}"), "surrogate"},
        {BODY("{\"a\":\"\\udc00\"}"), "surrogate"},
        {BODY("{\"a\":\"\\udc00\\ud800\"}"), "surrogate"},
        {BODY("{\"a\":\"\\ud800\\ud800\"}"), "surrogate"},
        {BODY("{\"a\":\"\\ud800\\u0041\"}"), "surrogate"},
        {BODY("{\"a\":\"\\ud800\\n\"}"), "surrogate"},
        {BODY("{\"a\":\"\\ud800x\"}"), "surrogate"},
        {BODY("{\"a\":\"\\ud800\\u"), "surrogate"},
        {BODY("{\"a\":\"x\0y\"}"), "control"},
        {BODY("{\"a\":\"x\ny\"}"), "control"},
        {BODY("{\"a\":\"x\ty\"}"), "control"},
        {BODY("{\"a\":\"\x1f\"}"), "control"},
        {BODY("{\"a\tb\":1}"), "control"},
        {BODY("{\"a\":\v1}"), "value"},
        {BODY("{\"a\":\xc2\xa0"
              "1}"),
         "value"},
        {BODY("{\"a\":\"\xff\xfe\"}"), "UTF-8"},
        {BODY("{\"a\":\"\xc0\x80\"}"), "UTF-8"},
        {BODY("{\"a\":\"\xed\xa0\x80\"}"), "UTF-8"},
        {BODY("{\"a\":\"\xf4\x90\x80\x80\"}"), "UTF-8"},
        {BODY("{\"a\":\"\xe2\x82\"}"), "UTF-8"},
        {BODY("{}\xff"), "UTF-8"},
        {BODY("{\"a\":1,\"a\":1}"), "same name"},
        {BODY("{\"scope\":\"read\",\"x\":[],\"scope\":\"admin\"}"), "same name"},
        {BODY("{\"a\":1,\"\\u0061\":2}"), "same name"},
        {BODY("{\"\":1,\"\":2}"), "same name"},
        {BODY("{\"a\":[0,{\"b\":{\"c\":1,\"c\":2}}]}"), "same name"},
        {BODY("{\"a\":" SIX_DEEP SIX_DEEP "[[[["
              "]]]]" SIX_UP SIX_UP "}"),
         "nested"},
        {BODY("{\"a\":" SIX_DEEP SIX_DEEP "[[[{\"b\":1}"
              "]]]" SIX_UP SIX_UP "}"),
         "nested"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *why = NULL;
        struct json *document = parse(cases[i].body, &why);
        cr_expect_null(document, "%.*s", TEXT_ARG(cases[i].body));
        cr_expect(why && strstr(why, cases[i].why), "%.*s: %s", TEXT_ARG(cases[i].body), why ? why : "no reason");
        json_free(document);
    }
    cr_assert_null(json_parse_object(BODY("x"), NULL), "the reason may be left out");
}

Test(json, depth_counts_what_is_open_not_what_was)
{
    struct buf body;
    buf_init(&body, 64 * 1024);
    buf_append_str(&body, "{\"a\":[[]");
    for (int i = 0; i < 1000; i++)
        buf_append_str(&body, ",[[]],{}");
    buf_append_str(&body, "]}");
    struct json *document = parse(buf_text(&body), NULL);
    cr_assert_not_null(document);
    json_free(document);
    buf_finish(&body);
}

Test(json, very_deep_nesting_is_refused_without_following_it)
{
    static char body[1024 * 1024];
    memset(body, '[', sizeof body);
    memcpy(body, "{\"a\":", 5);
    cr_assert_null(json_parse_object((struct text){body, sizeof body}, NULL));
}

/* If each name were compared with each other one, 200,000 would take minutes. */
Test(json, many_members_cost_no_square, .timeout = 60)
{
    struct buf body;
    buf_init(&body, 8 * 1024 * 1024);
    buf_append_char(&body, '{');
    for (int i = 0; i < 200000; i++)
        buf_printf(&body, "\"%d\":0,", i);
    buf_append_str(&body, "\"x\":0}");
    struct json *document = json_parse_object(buf_text(&body), NULL);
    cr_assert_not_null(document);
    json_free(document);

    const char *why = "";
    body.len -= strlen("\"x\":0}");
    buf_append_str(&body, "\"77\":0}");
    cr_assert_null(json_parse_object(buf_text(&body), &why));
    cr_assert(strstr(why, "same name"), "%s", why);
    buf_finish(&body);
}

/* Few names are compared in pairs, many are sorted: a twin is found wherever it stands. */
Test(json, twins_among_few_and_among_many)
{
    for (int count = 2; count <= 12; count++)
        for (int first = 0; first < count; first++)
            for (int second = first; second < count; second++) {
                struct buf body = BUF_FIXED(256);
                struct json *document;
                const char *why = NULL;

                buf_append_char(&body, '{');
                for (int i = 0; i < count; i++)
                    buf_printf(&body, "%s\"m%d\":%d", i ? "," : "", i == second ? first : i, i);
                buf_append_char(&body, '}');
                document = json_parse_object(buf_text(&body), &why);
                cr_assert_eq(document != NULL, first == second, "%.*s: %s", TEXT_ARG(buf_text(&body)), why);
                json_free(document);
            }
}

/* Documents and their long strings are in blocks of their own, however many live at once and whichever ends first. */
Test(json, documents_share_no_memory)
{
    enum { DOCUMENTS = 5, LONG = 100000 };
    struct json *documents[DOCUMENTS];
    struct buf body;

    for (int i = 0; i < DOCUMENTS; i++) {
        buf_init(&body, 2 * LONG);
        buf_printf(&body, "{\"n\":%d,\"long\":\"%0*d\",\"after\":\"%d\"}", i, LONG, i, i);
        documents[i] = parse_good(body.ptr);
        buf_finish(&body);
    }
    for (int i = DOCUMENTS - 1; i >= 0; i--) {
        const int which = (i + 2) % DOCUMENTS;
        int64_t number;

        cr_assert(json_integer(json_member(documents[which], "n"), &number) && number == which);
        cr_assert_eq(json_text(json_member(documents[which], "long")).len, (size_t)LONG);
        cr_assert_eq(json_text(json_member(documents[which], "after")).ptr[0], '0' + which);
        json_free(documents[which]);
    }
}

/* However a good body is cut or changed, the parser does not crash, and no prefix of it is accepted. */
Test(json, every_prefix_and_every_changed_byte)
{
    static const struct text body =
        BODY("{\"a\":[1,-2.5e+3,\"\\ud83d\\udd11\\n\xe2\x82\xac\",{\"b\":null}],\"c\":true}");
    for (size_t len = 0; len < body.len; len++) {
        struct json *document = parse((struct text){body.ptr, len}, NULL);
        cr_expect_null(document, "%zu bytes", len);
        json_free(document);
    }
    char changed[128];
    for (size_t at = 0; at < body.len; at++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(changed, body.ptr, body.len);
            changed[at] = (char)byte;
            json_free(parse((struct text){changed, body.len}, NULL));
        }
    }
}

Test(json, strings_are_decoded)
{
    struct json *document = parse_good("{\"a\\n\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u20ac\\ud83d\\udd11\"}");
    cr_assert(
        text_equal(json_text(json_member(document, "a\n")), TEXT("\"\\/\b\f\n\r\tA\xe2\x82\xac\xf0\x9f\x94\x91")));
    json_free(document);
}

Test(json, types_and_values)
{
    struct json *document = parse_good("{\"n\":null,\"t\":true,\"f\":false,\"i\":7,\"s\":\"x\",\"a\":[],\"o\":{}}");
    static const struct {
        const char *name;
        enum json_type type;
    } cases[] = {
        {"n", JSON_NULL},   {"t", JSON_BOOL},  {"f", JSON_BOOL},   {"i", JSON_NUMBER},
        {"s", JSON_STRING}, {"a", JSON_ARRAY}, {"o", JSON_OBJECT},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        cr_expect_eq(json_type(json_member(document, cases[i].name)), cases[i].type, "%s", cases[i].name);
    cr_expect_eq(json_type(document), JSON_OBJECT);
    cr_expect(json_bool(json_member(document, "t")));
    cr_expect_not(json_bool(json_member(document, "f")));
    cr_expect_null(json_member(document, "T"), "names are compared with their case");
    cr_expect_null(json_member(document, "x"));
    json_free(document);
}

Test(json, integers_are_exact_or_refused)
{
    static const struct {
        const char *number;
        bool is_integer;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-7", true, -7},
        {"1.0", true, 1},
        {"12e2", true, 1200},
        {"9007199254740991", true, INT64_C(9007199254740991)},
        {"-9007199254740991", true, -INT64_C(9007199254740991)},
        {"9007199254740992", false, 0},
        {"9007199254740993", false, 0},
        {"-9007199254740992", false, 0},
        {"9223372036854775808", false, 0},
        {"1e300", false, 0},
        {"1e999", false, 0},
        {"-1e999", false, 0},
        {"0.5", false, 0},
        {"-1.5", false, 0},
        {"1e-3", false, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char body[64];
        snprintf(body, sizeof body, "{\"a\":%s}", cases[i].number);
        struct json *document = parse_good(body);
        int64_t value = 42;
        cr_expect_eq(json_integer(json_member(document, "a"), &value), cases[i].is_integer, "%s", cases[i].number);
        cr_expect_eq(value, cases[i].is_integer ? cases[i].value : 42, "%s", cases[i].number);
        json_free(document);
    }
}

Test(json, reading_a_string_as_another_type_aborts, .signal = SIGABRT)
{
    struct json *document = parse_good("{\"a\":1}");
    json_text(json_member(document, "a"));
}

Test(json, iterates_in_document_order)
{
    struct json *document = parse_good("{\"b\":[10,20],\"a\":{}}");
    const struct json *value = json_first(document);
    cr_assert(text_equal(json_name(value), TEXT("b")));
    int64_t sum = 0, part;
    for (const struct json *item = json_first(value); item; item = json_next(item)) {
        cr_assert(json_integer(item, &part));
        sum = sum * 100 + part;
    }
    cr_assert_eq(sum, 1020);
    value = json_next(value);
    cr_assert(text_equal(json_name(value), TEXT("a")));
    cr_assert_null(json_first(value));
    cr_assert_null(json_next(value));
    json_free(document);
}

Test(json, free_wipes_strings_and_takes_null)
{
    json_free(NULL);
#ifndef HAS_ADDRESS_SANITIZER
    struct json *document = parse_good("{\"a\":\"an old password, long enough\"}");
    const volatile char *freed = json_text(json_member(document, "a")).ptr;
    json_free(document);
    cr_assert_neq(freed[20], 'o'); /* after what the allocator writes into free memory */
#endif
}

struct draft {
    struct text name, mode;
    const struct json *scopes;
};

static const struct json_field FIELDS[] = {
    {"name", JSON_FIELD_TEXT, true, offsetof(struct draft, name)},
    {"mode", JSON_FIELD_TEXT, false, offsetof(struct draft, mode)},
    {"scopes", JSON_FIELD_ARRAY, true, offsetof(struct draft, scopes)},
};

Test(json, reads_by_a_table)
{
    struct json *document = parse_good("{\"scopes\":[\"a\"],\"name\":\"North\"}");
    struct draft draft = {.mode = TEXT("left as it was")};
    struct text name;
    cr_assert_eq(json_read(document, FIELDS, COUNT(FIELDS), &draft, &name), JSON_READ_OK);
    cr_assert(text_equal(draft.name, TEXT("North")));
    cr_assert(text_equal(draft.mode, TEXT("left as it was")));
    cr_assert(text_equal(json_text(json_first(draft.scopes)), TEXT("a")));
    json_free(document);
}

Test(json, reading_by_a_table_refuses)
{
    static const struct {
        const char *body;
        enum json_read_result result;
        const char *name;
    } cases[] = {
        {"{}", JSON_READ_MISSING, "name"},
        {"{\"name\":\"x\"}", JSON_READ_MISSING, "scopes"},
        {"{\"name\":1,\"scopes\":[]}", JSON_READ_WRONG_TYPE, "name"},
        {"{\"name\":null,\"scopes\":[]}", JSON_READ_WRONG_TYPE, "name"},
        {"{\"name\":\"x\",\"mode\":null,\"scopes\":[]}", JSON_READ_WRONG_TYPE, "mode"},
        {"{\"name\":\"x\",\"scopes\":\"*\"}", JSON_READ_WRONG_TYPE, "scopes"},
        {"{\"name\":\"x\",\"scopes\":{}}", JSON_READ_WRONG_TYPE, "scopes"},
        {"{\"name\":\"x\",\"scope\":[]}", JSON_READ_UNKNOWN, "scope"},
        {"{\"Name\":\"x\",\"scopes\":[]}", JSON_READ_UNKNOWN, "Name"},
        {"{\"name\":\"x\",\"scopes\":[],\"\":0}", JSON_READ_UNKNOWN, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json *document = parse_good(cases[i].body);
        struct draft draft = {0};
        struct text name = {0};
        cr_expect_eq(json_read(document, FIELDS, COUNT(FIELDS), &draft, &name), cases[i].result, "%s", cases[i].body);
        cr_expect(text_equal(name, text_of(cases[i].name)), "%s: %.*s", cases[i].body, TEXT_ARG(name));
        json_free(document);
    }
}
