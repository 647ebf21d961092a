#include "base/json.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(json_write, .fini = leak_guard);

Test(json_write, puts_separators)
{
    struct buf out;
    buf_init(&out, 1000);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    json_put_member(&w, "id", TEXT("key_1"));
    json_key(&w, "scopes");
    json_array_begin(&w);
    json_put_text(&w, TEXT("a"));
    json_put_null(&w);
    json_array_begin(&w);
    json_array_end(&w);
    json_object_begin(&w);
    json_object_end(&w);
    json_array_end(&w);
    json_put_number(&w, "n", -5);
    json_put_flag(&w, "b", true);
    json_put_named(&w, TEXT("\"q"), TEXT("v"));
    json_object_end(&w);
    cr_assert_not(out.failed);
    cr_assert(text_equal(buf_text(&out), TEXT("{\"id\":\"key_1\",\"scopes\":[\"a\",null,[],{}],\"n\":-5,\"b\":true,"
                                              "\"\\\"q\":\"v\"}")));
    buf_finish(&out);
}

Test(json_write, puts_containers_as_members_and_ends_lines)
{
    struct buf out = BUF_FIXED(100);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    json_key_array(&w, "a");
    json_array_end(&w);
    json_key_object(&w, "o");
    json_object_end(&w);
    json_line_end(&w);
    cr_assert(text_equal(buf_text(&out), TEXT("{\"a\":[],\"o\":{}}\n")));
}

Test(json_write, integers_of_all_sizes)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-1, "-1"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf out;
        buf_init(&out, 100);
        json_put_integer(&(struct json_writer){.out = &out}, cases[i].value);
        cr_expect(text_equal(buf_text(&out), text_of(cases[i].text)), "%s", cases[i].text);
        buf_finish(&out);
    }
}

Test(json_write, escapes_what_must_not_stand_as_it_is)
{
    static const struct {
        struct text value;
        const char *text;
    } cases[] = {
        {{NULL, 0}, "\"\""},
        {TEXT("plain /text'"), "\"plain /text'\""},
        {TEXT("\"\\"), "\"\\\"\\\\\""},
        {TEXT("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
        {TEXT("\0\x01\x1b\x1f"), "\"\\u0000\\u0001\\u001b\\u001f\""},
        {TEXT("\x7f\xc2\x80\xc2\x9f\xc2\xa0"), "\"\\u007f\\u0080\\u009f\xc2\xa0\""},
        {TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x91"), "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x94\x91\""},
        {TEXT("a\xff"
              "b"),
         "\"a\xef\xbf\xbd"
         "b\""},
        {TEXT("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {TEXT("x\xe2\x82"), "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buf out;
        buf_init(&out, 100);
        json_put_text(&(struct json_writer){.out = &out}, cases[i].value);
        cr_expect(text_equal(buf_text(&out), text_of(cases[i].text)), "case %zu: %.*s", i, TEXT_ARG(buf_text(&out)));
        buf_finish(&out);
    }
}

/* Every code point is read back as it was written, except NUL, which the reader refuses. */
Test(json_write, the_reader_reads_it_back)
{
    for (unsigned first = 1; first < 0x110000; first += 997) {
        char text[4];
        unsigned c = first >= 0xd800 && first < 0xe000 ? 'x' : first;
        size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char leads[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
        for (size_t i = len; i-- > 1; c >>= 6)
            text[i] = (char)(0x80 | (c & 0x3f));
        text[0] = (char)(leads[len] | c);

        struct buf out;
        buf_init(&out, 100);
        struct json_writer w = {.out = &out};
        json_object_begin(&w);
        json_put_member(&w, "a", (struct text){text, len});
        json_object_end(&w);
        struct json *document = json_parse_object(buf_text(&out), NULL);
        cr_assert_not_null(document, "U+%04X", first);
        cr_assert(text_equal(json_text(json_first(document)), (struct text){text, len}), "U+%04X", first);
        json_free(document);
        buf_finish(&out);
    }
}

/* Strings are scanned several bytes at a time. So each character, in each place of each length, must come back, and be
 * escaped if it has to be. */
static void assert_read_back(unsigned c, size_t at, size_t len)
{
    char value[20];
    struct buf out;
    memset(value, 'a', sizeof value);
    value[at] = (char)c;
    buf_init(&out, 200);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    json_put_member(&w, "v", (struct text){value, len});
    json_object_end(&w);

    struct json *read = json_parse_object(buf_text(&out), NULL);
    cr_assert_not_null(read, "character %u at %zu of %zu: %.*s", c, at, len, TEXT_ARG(buf_text(&out)));
    cr_assert(text_equal(json_text(json_member(read, "v")), (struct text){value, len}));
    const bool is_escaped = c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
    cr_assert_eq(out.len > strlen("{\"v\":\"\"}") + len, is_escaped, "character %u at %zu of %zu", c, at, len);
    json_free(read);
    buf_finish(&out);
}

Test(json_write, every_ascii_character_in_every_place)
{
    for (unsigned c = 1; c < 0x80; c++)
        for (size_t len = 1; len <= 20; len++)
            for (size_t at = 0; at < len; at++)
                assert_read_back(c, at, len);
}

Test(json_write, words_are_members_like_any_other)
{
    char storage[64];
    struct buf out;
    buf_init_fixed(&out, storage, sizeof storage);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    JSON_PUT_WORD(&w, "a", TEXT("x"));
    JSON_PUT_WORD(&w, "b", TEXT(""));
    json_put_member(&w, "c", TEXT("\""));
    JSON_PUT_WORD(&w, "d", TEXT("y"));
    json_object_end(&w);
    cr_assert(text_equal(buf_text(&out), TEXT("{\"a\":\"x\",\"b\":\"\",\"c\":\"\\\"\",\"d\":\"y\"}")));
}

/* A string that just fits, and one that is one byte too long. */
Test(json_write, fills_a_buffer_to_its_end)
{
    for (size_t room = 14; room <= 15; room++) {
        char storage[15];
        struct buf out;
        buf_init_fixed(&out, storage, room);
        json_put_member(&(struct json_writer){.out = &out}, "key", TEXT("1234567"));
        cr_assert_eq(out.failed, room < 15);
        cr_assert(out.failed || text_equal(buf_text(&out), TEXT("\"key\":\"1234567\"")));
    }
}

/* Each piece with its comma, in storage of exactly the room, so that a sanitizer notices a write past it. */
Test(json_write, never_writes_past_its_room)
{
    static const char WHOLE[] = "{\"a\":1,\"id\":\"x\",\"of\":[\"y\",\"z\",{}],\"b\":null}";
    for (size_t room = 0; room < sizeof WHOLE; room++) {
        char *storage = malloc(room + 1);
        struct buf out;
        struct json_writer w = {.out = &out};
        buf_init_fixed(&out, storage + 1, room);
        json_object_begin(&w);
        json_key(&w, "a");
        json_put_integer(&w, 1);
        JSON_PUT_WORD(&w, "id", TEXT("x"));
        json_key(&w, "of");
        json_array_begin(&w);
        JSON_PUT_WORD_ELEMENT(&w, TEXT("y"));
        JSON_PUT_WORD_ELEMENT(&w, TEXT("z"));
        json_object_begin(&w);
        json_object_end(&w);
        json_array_end(&w);
        json_key(&w, "b");
        json_put_null(&w);
        json_object_end(&w);
        cr_assert_eq(out.failed, room < sizeof WHOLE - 1);
        cr_assert(out.failed || text_equal(buf_text(&out), text_of(WHOLE)));
        free(storage);
    }
}

Test(json_write, what_does_not_fit_is_told)
{
    struct buf out;
    buf_init(&out, 10);
    struct json_writer w = {.out = &out};
    json_object_begin(&w);
    json_put_member(&w, "a", TEXT("0123456789"));
    json_object_end(&w);
    cr_assert(out.failed);
    buf_finish(&out);
}
