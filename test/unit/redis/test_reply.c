#include "redis/reply.h"
#include "leak_guard.h"
#include "redis/reader.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(reply, .fini = leak_guard);

static struct redis_reply of_text(enum reply_type type, const char *text)
{
    return (struct redis_reply){.type = type, .text = text_of(text)};
}

Test(reply, text_is_a_string_or_a_status)
{
    struct redis_reply string = of_text(REPLY_STRING, "a"), status = of_text(REPLY_STATUS, "OK");
    struct redis_reply error = of_text(REPLY_ERROR, "ERR"), nil = {.type = REPLY_NIL};
    struct text t = TEXT("untouched");

    cr_assert(reply_text(&string, &t) && text_equal(t, TEXT("a")));
    cr_assert(reply_text(&status, &t) && text_equal(t, TEXT("OK")));
    cr_assert(!reply_text(&error, &t));
    cr_assert(!reply_text(&nil, &t));
    cr_assert(!reply_text(NULL, &t));
    cr_assert(text_equal(t, TEXT("OK")), "a failure leaves the result alone");
    cr_assert(reply_text_or_nil(&nil, &t) && !t.ptr && t.len == 0);
    cr_assert(!reply_text_or_nil(&error, &t));
    cr_assert(!reply_text_or_nil(NULL, &t));
}

Test(reply, integer_is_an_integer_or_decimal_digits)
{
    static const struct {
        const char *text;
        bool good;
        int64_t value;
    } CASES[] = {
        {"0", true, 0},
        {"17", true, 17},
        {"-3", true, -3},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {"-0", false, 0},
        {"01", false, 0},
        {"1.5", false, 0},
        {" 1", false, 0},
        {"+1", false, 0},
        {"--1", false, 0},
    };
    struct redis_reply integer = {.type = REPLY_INTEGER, .integer = -42}, nil = {.type = REPLY_NIL};
    int64_t value = 99;

    cr_assert(!reply_integer(&nil, &value) && !reply_integer(NULL, &value) && value == 99);
    cr_assert(reply_integer(&integer, &value) && value == -42);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct redis_reply reply = of_text(REPLY_STRING, CASES[i].text);

        value = 0;
        cr_assert_eq(reply_integer(&reply, &value), CASES[i].good, "%s", CASES[i].text);
        cr_assert_eq(value, CASES[i].value, "%s", CASES[i].text);
    }
}

Test(reply, at_is_null_outside)
{
    struct redis_reply a = of_text(REPLY_STRING, "a");
    const struct redis_reply *items[] = {&a};
    struct redis_reply array = {.type = REPLY_ARRAY, .count = 1, .items = items};

    cr_assert_eq(reply_at(&array, 0), &a);
    cr_assert_null(reply_at(&array, 1));
    cr_assert_null(reply_at(&a, 0));
    cr_assert_null(reply_at(NULL, 0));
}

Test(reply, named_values_follow_their_names)
{
    const struct redis_reply texts[] = {{.type = REPLY_STRING, .text = TEXT("id")},
                                        {.type = REPLY_STRING, .text = TEXT("at")},
                                        {.type = REPLY_STRING, .text = TEXT("at")},
                                        {.type = REPLY_NIL}};
    const struct redis_reply *const items[] = {&texts[0], &texts[1], &texts[2], &texts[3]};
    const struct redis_reply pairs = {.type = REPLY_ARRAY, .count = 4, .items = items},
                             odd = {.type = REPLY_ARRAY, .count = 3, .items = items};

    cr_expect_eq(reply_named(&pairs, TEXT("id")), &texts[1]);
    cr_expect_eq(reply_named(&pairs, TEXT("at")), &texts[3], "a value is no name");
    cr_expect_null(reply_named(&pairs, TEXT("i")));
    cr_expect_null(reply_named(&odd, TEXT("at")), "its value is missing");
    cr_expect_null(reply_named(NULL, TEXT("id")));
    cr_expect(text_equal(reply_named_text(&pairs, TEXT("id")), TEXT("at")));
    cr_expect_null(reply_named_text(&pairs, TEXT("at")).ptr, "nil is no text");
    cr_expect_null(reply_named_text(&pairs, TEXT("by")).ptr);
}

Test(reply, error_kind_is_the_first_word)
{
    static const struct {
        enum reply_type type;
        const char *text, *kind;
    } CASES[] = {
        {REPLY_ERROR, "NOSCRIPT No matching script.", "NOSCRIPT"},
        {REPLY_ERROR, "LOADING", "LOADING"},
        {REPLY_ERROR, "", ""},
        {REPLY_STRING, "NOSCRIPT x", ""},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct redis_reply reply = of_text(CASES[i].type, CASES[i].text);

        cr_assert(text_equal(reply_error_kind(&reply), text_of(CASES[i].kind)), "%s", CASES[i].text);
    }
    cr_assert_null(reply_error_kind(NULL).ptr);
}

/* Arguments may be secret. */
Test(reply, error_is_shown_without_its_arguments)
{
    struct redis_reply unknown =
        of_text(REPLY_ERROR, "ERR unknown command 'RESTORE', with args beginning with: 'user:usr_1' '0' 'password' ");
    struct redis_reply other = of_text(REPLY_ERROR, "LOADING wait"), string = of_text(REPLY_STRING, "a, with args b");

    cr_expect(text_equal(reply_error_shown(&unknown), TEXT("ERR unknown command 'RESTORE'")));
    cr_expect(text_equal(reply_error_shown(&other), TEXT("LOADING wait")));
    cr_expect(!reply_error_shown(&string).ptr && !reply_error_shown(NULL).ptr);
}

/* The reader: bytes in, in any pieces; replies out */

static void print(const struct redis_reply *reply, struct buf *out)
{
    static const char MARKS[] = {'_', '$', '+', '-', ':', '*'};

    buf_append_char(out, MARKS[reply->type]);
    if (reply->type == REPLY_INTEGER)
        buf_printf(out, "%lld", (long long)reply->integer);
    buf_append_text(out, reply->text);
    for (size_t i = 0; i < reply->count; i++) {
        buf_append_char(out, i ? ' ' : '(');
        print(reply->items[i], out);
    }
    if (reply->type == REPLY_ARRAY)
        buf_append_str(out, reply->count ? ")" : "()");
}

/* Prints all replies in the bytes, fed in steps, each followed by a blank; "!" if the reader fails. */
static void read_all(const char *bytes, size_t step, struct buf *out)
{
    struct redis_reader *reader = redis_reader_create();
    const struct redis_reply *reply;
    enum redis_reader_result result = READER_MORE;

    for (size_t at = 0; at < strlen(bytes) && result != READER_BROKEN; at += step) {
        size_t count = strlen(bytes) - at < step ? strlen(bytes) - at : step;

        cr_assert(redis_reader_feed(reader, bytes + at, count));
        while ((result = redis_reader_next(reader, &reply)) == READER_REPLY) {
            print(reply, out);
            buf_append_char(out, ' ');
        }
    }
    if (result == READER_BROKEN)
        buf_append_char(out, '!');
    redis_reader_destroy(reader);
}

Test(reply, reader_reads_the_same_in_any_pieces)
{
    static const struct {
        const char *bytes, *replies;
    } CASES[] = {
        {"+OK\r\n:12\r\n$-1\r\n", "+OK :12 _ "},
        {"$5\r\nhe\r\no\r\n-ERR no\r\n", "$he\r\no -ERR no "},
        {"*3\r\n$2\r\nok\r\n*2\r\n:1\r\n$-1\r\n*0\r\n*-1\r\n", "*($ok *(:1 _) *()) _ "},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", "*(*(*(*(*(*(*(:7))))))) "},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n", "!"},
        {"*2\r\n+half\r\n", ""},
        {"+OK\r\nHTTP/1.1 400 Bad Request\r\n", "+OK !"},
        {"*1000000000\r\n", "!"},
        {"$zz\r\n", "!"},
        {",1.5\r\n", "!"},
        {"%1\r\n+a\r\n+b\r\n", "!"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        for (size_t step = 1; step < 64; step += step < 4 ? 1 : 30) {
            struct buf out;

            buf_init(&out, 4096);
            read_all(CASES[i].bytes, step, &out);
            cr_assert(text_equal(buf_text(&out), text_of(CASES[i].replies)), "case %zu, step %zu: %.*s", i, step,
                      TEXT_ARG(buf_text(&out)));
            buf_finish(&out);
        }
    }
}

Test(reply, reader_bounds_what_waits)
{
    enum { PIECE_BYTES = 1024 * 1024 };
    struct redis_reader *reader = redis_reader_create();
    const struct redis_reply *reply;
    char *piece = calloc(1, PIECE_BYTES);
    unsigned fed = 0;

    cr_assert(redis_reader_feed(reader, "$500000000\r\n", strlen("$500000000\r\n")));
    while (fed < 100 && redis_reader_feed(reader, piece, PIECE_BYTES)) {
        cr_assert_eq(redis_reader_next(reader, &reply), READER_MORE);
        fed++;
    }
    cr_assert(fed >= 32 && fed < 100, "%u", fed);
    redis_reader_destroy(reader);
    free(piece);
}
