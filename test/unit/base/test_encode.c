#include "base/encode.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TestSuite(encode, .fini = leak_guard);

/* The vectors of RFC 4648 section 10, and bytes that reach the last digits. */
static const struct {
    struct text bytes;
    const char *hex, *base64, *base64url, *base32;
} VECTORS[] = {
    {{"", 0}, "", "", "", ""},
    {{"f", 1}, "66", "Zg==", "Zg", "MY"},
    {{"fo", 2}, "666f", "Zm8=", "Zm8", "MZXQ"},
    {{"foo", 3}, "666f6f", "Zm9v", "Zm9v", "MZXW6"},
    {{"foob", 4}, "666f6f62", "Zm9vYg==", "Zm9vYg", "MZXW6YQ"},
    {{"fooba", 5}, "666f6f6261", "Zm9vYmE=", "Zm9vYmE", "MZXW6YTB"},
    {{"foobar", 6}, "666f6f626172", "Zm9vYmFy", "Zm9vYmFy", "MZXW6YTBOI"},
    {{"\0\0", 2}, "0000", "AAA=", "AAA", "AAAA"},
    {{"\xfb\xff\xbf", 3}, "fbffbf", "+/+/", "-_-_", "7P736"},
    {{"\xff\xff\xff\xff\xff", 5}, "ffffffffff", "//////8=", "______8", "77777777"},
};

static void expect_written(void (*encode)(struct buf *, const void *, size_t), struct text bytes, const char *expected)
{
    struct buf out;
    buf_init(&out, 100);
    encode(&out, bytes.ptr, bytes.len);
    cr_expect(text_equal(buf_text(&out), text_of(expected)), "%.*s is not %s", TEXT_ARG(buf_text(&out)), expected);
    buf_finish(&out);
}

static void expect_read(bool (*decode)(struct text, void *, size_t), const char *encoded, struct text expected)
{
    char bytes[16];
    cr_expect(decode(text_of(encoded), bytes, expected.len), "%s", encoded);
    cr_expect(text_equal((struct text){bytes, expected.len}, expected), "%s", encoded);
}

Test(encode, vectors)
{
    for (size_t i = 0; i < COUNT(VECTORS); i++) {
        expect_written(encode_hex, VECTORS[i].bytes, VECTORS[i].hex);
        expect_written(encode_base64url, VECTORS[i].bytes, VECTORS[i].base64url);
        expect_written(encode_base32, VECTORS[i].bytes, VECTORS[i].base32);
    }
}

Test(encode, decodes_vectors)
{
    for (size_t i = 0; i < COUNT(VECTORS); i++) {
        expect_read(decode_hex, VECTORS[i].hex, VECTORS[i].bytes);
        expect_read(decode_base64, VECTORS[i].base64, VECTORS[i].bytes);
        expect_read(decode_base64url, VECTORS[i].base64url, VECTORS[i].bytes);

        char bytes[16];
        size_t count = 99;
        cr_expect(decode_base32(text_of(VECTORS[i].base32), bytes, sizeof bytes, &count));
        cr_expect(text_equal((struct text){bytes, count}, VECTORS[i].bytes), "%s", VECTORS[i].base32);
    }
}

Test(encode, refuses_what_is_not_exact)
{
    static const struct {
        bool (*decode)(struct text, void *, size_t);
        const char *text;
        size_t count;
    } cases[] = {
        {decode_hex, "6", 1},
        {decode_hex, "666", 1},
        {decode_hex, "66", 2},
        {decode_hex, "66", 0},
        {decode_hex, "6g", 1},
        {decode_hex, " 66", 1},
        {decode_hex, "0x66", 2},
        {decode_base64url, "Zh", 1}, /* stray bits */
        {decode_base64url, "Zm9", 2},
        {decode_base64url, "Zg==", 1},
        {decode_base64url, "Z", 1},
        {decode_base64url, "Z", 0},
        {decode_base64url, "Zm9v", 2},
        {decode_base64url, "Zm9v", 4},
        {decode_base64url, "Zm9v\n", 3},
        {decode_base64url, "+/+/", 3},
        {decode_base64url, "Zm v", 3},
        {decode_base64, "Zg", 1},
        {decode_base64, "Zg=", 1},
        {decode_base64, "Zg===", 1},
        {decode_base64, "Zh==", 1},
        {decode_base64, "Zm9=", 2},
        {decode_base64, "Z===", 1},
        {decode_base64, "====", 1},
        {decode_base64, "Zm8=", 3},
        {decode_base64, "Zm9v====", 3},
        {decode_base64, "-_-_", 3},
        {decode_base64, "", 1},
        {decode_base64, "Zm9v", SIZE_MAX},
        {decode_hex, "66", SIZE_MAX / 2 + 2},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[8] = "-------";
        cr_expect_not(cases[i].decode(text_of(cases[i].text), bytes, cases[i].count), "%s", cases[i].text);
        cr_expect_str_eq(bytes, "-------", "%s", cases[i].text);
    }
}

Test(encode, hex_of_either_case)
{
    unsigned char bytes[3];
    cr_assert(decode_hex(TEXT("aBCdeF"), bytes, 3));
    cr_assert_arr_eq(bytes, "\xab\xcd\xef", 3);
}

Test(encode, base32_as_people_type_it)
{
    static const struct {
        const char *text;
        size_t max_bytes;
        const char *expected; /* NULL: refused */
    } cases[] = {
        {"mzxw6ytboi", 6, "foobar"},
        {"MZXW 6YTB OI", 6, "foobar"},
        {"  MZXW6YTBOI======  ", 6, "foobar"},
        {"MY======", 6, "f"},
        {"", 6, ""},
        {"MZXW6YTBOI", 5, NULL},
        {"MZ=XW6", 6, NULL},
        {"M", 6, NULL},
        {"MZX", 6, NULL},
        {"MZXW6Y", 6, NULL},
        {"MZ", 6, NULL}, /* stray bits */
        {"MZXW1", 6, NULL},
        {"MZXW-6", 6, NULL},
        {"MZXW\t6", 6, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char bytes[8] = "-------";
        size_t count = 99;
        bool is_decoded = decode_base32(text_of(cases[i].text), bytes, cases[i].max_bytes, &count);
        cr_expect_eq(is_decoded, cases[i].expected != NULL, "%s", cases[i].text);
        if (is_decoded)
            cr_expect(text_equal((struct text){bytes, count}, text_of(cases[i].expected)), "%s", cases[i].text);
        else
            cr_expect_str_eq(bytes, "-------", "%s", cases[i].text);
    }
}

Test(encode, every_byte_survives_a_round_trip)
{
    unsigned char bytes[256], read_back[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (unsigned char)(255 - i);
    for (size_t count = 0; count <= sizeof bytes; count++) {
        struct buf out;
        buf_init(&out, 1000);
        encode_base64url(&out, bytes, count);
        cr_assert(decode_base64url(buf_text(&out), read_back, count));
        cr_assert_arr_eq(read_back, bytes, count);
        buf_clear(&out);
        encode_base32(&out, bytes, count);
        size_t read_count;
        cr_assert(decode_base32(buf_text(&out), read_back, sizeof read_back, &read_count));
        cr_assert_eq(read_count, count);
        cr_assert_arr_eq(read_back, bytes, count);
        buf_finish(&out);
    }
}

Test(encode, texts_end_with_a_nul_and_fill_their_room)
{
    char hex[5], base64url[4];

    encode_hex_text(hex, sizeof hex, "\x01\xff", 2);
    cr_expect_str_eq(hex, "01ff");
    encode_base64url_text(base64url, sizeof base64url, "\x01\xff", 2);
    cr_expect_str_eq(base64url, "Af8");
}

Test(encode, a_hex_text_without_room_for_its_nul_aborts, .signal = SIGABRT)
{
    char hex[4];

    encode_hex_text(hex, sizeof hex, "\x01\xff", 2);
}

Test(encode, a_base64url_text_without_room_for_its_nul_aborts, .signal = SIGABRT)
{
    char base64url[3];

    encode_base64url_text(base64url, sizeof base64url, "\x01\xff", 2);
}

Test(encode, percent)
{
    struct buf out;
    buf_init(&out, 100);
    encode_percent(&out, TEXT("aZ09-._~ /?%\xc3\xa4\0+"));
    cr_assert(text_equal(buf_text(&out), TEXT("aZ09-._~%20%2F%3F%25%C3%A4%00%2B")));
    buf_finish(&out);
}
