#include "core/path.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

TestSuite(path, .fini = leak_guard);

/* Input and output are in blocks of their exact size, so that the sanitizer notices a byte too many. */
static bool normalise(const char *input, size_t len, char **ret_path, size_t *ret_len)
{
    char *exact = malloc(len ? len : 1), *out = malloc(len ? len : 1);
    memcpy(exact, input, len);
    const bool fit = path_normalise((struct text){exact, len}, out, ret_len);
    free(exact);
    if (fit)
        *ret_path = out;
    else
        free(out);
    return fit;
}

Test(path, brings_paths_to_one_form)
{
    static const char *const CASES[][2] = {
        {"/", "/"},
        {"/v1/patients", "/v1/patients"},
        {"/v1/patients/", "/v1/patients/"},
        {"/v1/patients//", "/v1/patients/"},
        {"//v1///patients", "/v1/patients"},
        {"/v1/./patients", "/v1/patients"},
        {"/v1/patients/.", "/v1/patients/"},
        {"/.", "/"},
        {"/v1/documents/../patients", "/v1/patients"},
        {"/v1/documents/..", "/v1/"},
        {"/v1/a/b/../../c", "/v1/c"},
        {"/v1/..", "/"},
        {"/v1/../", "/"},
        {"/a//b/../c", "/a/c"},
        {"/v1/documents/%2e%2e/patients", "/v1/patients"},
        {"/v1/documents/%2E./patients", "/v1/patients"},
        {"/v1/documents/.%2e/patients", "/v1/patients"},
        {"/v1/%2e/patients", "/v1/patients"},
        {"/v1/%70atients", "/v1/patients"},
        {"/%76%31/patients", "/v1/patients"},
        {"/v1/%7Euser%2D_%5F", "/v1/~user-__"},
        {"/v1/a%20b", "/v1/a%20b"},
        {"/v1/a%3ab%3f%23", "/v1/a:b%3F%23"},
        {"/v1/%21%24%26%27%28%29%2a%2b%2c%3b%3d%40%5b%5d", "/v1/!$&'()*+,;=@[]"},
        {"/v1/%22%3c%3e%5e%60%7b%7c%7d", "/v1/%22%3C%3E%5E%60%7B%7C%7D"},
        {"/v1/caf%c3%a9", "/v1/caf%C3%A9"},
        {"/v1/%f0%9f%94%91x", "/v1/%F0%9F%94%91x"},
        {"/v1/%e2%82%ac%e2%82%ac", "/v1/%E2%82%AC%E2%82%AC"},
        {"/v1/a%25b", "/v1/a%25b"},
        {"/v1/%252e%252e/patients", "/v1/%252e%252e/patients"},
        {"/v1/documents/%252fpatients", "/v1/documents/%252fpatients"},
        {"/v1/patients;v=1/x;y", "/v1/patients;v=1/x;y"},
        {"/v1/...", "/v1/..."},
        {"/v1/..a", "/v1/..a"},
        {"/v1/a..", "/v1/a.."},
        {"/v1/...;a", "/v1/...;a"},
        {"/v1/!$&'()*+,;=:@[]", "/v1/!$&'()*+,;=:@[]"},
        {"/V1/Patients", "/V1/Patients"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *path;
        size_t len;
        cr_assert(normalise(CASES[i][0], strlen(CASES[i][0]), &path, &len), "%s", CASES[i][0]);
        cr_assert(text_equal((struct text){path, len}, text_of(CASES[i][1])), "%s became %.*s", CASES[i][0], (int)len,
                  path);
        char *again;
        size_t again_len;
        cr_assert(normalise(path, len, &again, &again_len), "%s", CASES[i][0]);
        cr_assert(text_equal((struct text){path, len}, (struct text){again, again_len}), "%s", CASES[i][0]);
        free(path);
        free(again);
    }
}

Test(path, refuses_what_can_be_read_in_two_ways)
{
    static const char *const CASES[] = {
        "",
        "v1/patients",
        "*",
        "http://t/v1/patients",
        "/..",
        "/../v1",
        "/v1/../..",
        "/v1/../../v1/patients",
        "/%2e%2e/v1",
        "/./../v1",
        "//../v1",
        "/v1/documents//../patients", /* some servers remove the empty segment first, others do not */
        "/v1/a//b/../../c",
        "/v1/documents%2fpatients",
        "/v1/documents%2Fpatients",
        "/v1/..%2fpatients",
        "/v1/documents/..%5cpatients",
        "/v1/documents%5C..%5Cpatients",
        "/v1/documents\\..\\patients",
        "/v1/patients%00",
        "/v1/patients%00.json",
        "/v1/patients%0a",
        "/v1/patients%0d%0aX: y",
        "/v1/patients%09",
        "/v1/patients%1f",
        "/v1/patients%7f",
        "/v1/patients%c2%85",
        "/v1/patients\n",
        "/v1/pat ients",
        "/v1/patients\t",
        "/v1/patients\x7f",
        "/v1/caf\xc3\xa9",
        "/v1/%c0%af",
        "/v1/%c0%ae%c0%ae/patients",
        "/v1/%e0%80%af",
        "/v1/%f0%80%80%af",
        "/v1/%ed%a0%80", /* a surrogate */
        "/v1/%f4%90%80%80",
        "/v1/%ff",
        "/v1/%80",
        "/v1/%c3",
        "/v1/%c3a",
        "/v1/%c3%",
        "/v1/%c3/%a9",
        "/v1/%e2%82",
        "/v1/%",
        "/v1/%2",
        "/v1/%zz",
        "/v1/%2g",
        "/v1/%u002e%u002e/patients",
        "/v1/%%32%65",
        "/v1/documents/..;/patients",
        "/v1/documents/..;a=b/patients",
        "/v1/documents/%2e%2e%3b/patients",
        "/v1/.;/patients",
        "/v1/patients?x",
        "/v1/patients#x",
        "/v1/<x>",
        "/v1/{x}",
        "/v1/a|b",
        "/v1/a\"b",
        "/v1/a^b`",
    };
    char *path;
    size_t len;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(normalise(CASES[i], strlen(CASES[i]), &path, &len), "%s", CASES[i]);
    cr_assert_not(normalise("/v1\0/x", 6, &path, &len));
}

Test(path, knows_what_others_may_read_otherwise)
{
    static const char *const CLEAR[] = {
        "/",
        "/v1/patients",
        "/v1/patients/",
        "/v1/p%61tients",
        "/v1/a%3ab",
        "/v1/a%20b",
        "/v1/caf%c3%a9",
        "/v1/100%25/",
        "/v1/a%252",
        "/v1/a%25zz",
        "/v1/a.b",
        "/v1/.a",
        "/v1/..a",
        "/v1/a..b",
        "/v1/a%2eb",
        "/v1/*",
        "/v1/!$&'()+,=:@",
        "/v1/A",
        /* U+FF21, U+FF0D and U+FF10: a letter, a hyphen and a digit in full width; U+2023 and U+2027 */
        "/v1/%ef%bc%a1%ef%bc%8d%ef%bc%90",
        "/v1/%e2%80%a3%e2%80%a7",
        "/v1/%f0%9f%84%81",
        "/v1/%f0%9f%98%80",
    };
    static const char *const UNCLEAR[] = {
        "//",
        "/v1//a",
        "//v1/a",
        "/v1/a//",
        "/v1/./a",
        "/v1/../a",
        "/v1/a/.",
        "/v1/a/..",
        "/v1/%2e/a",
        "/v1/a/%2e",
        "/v1/%2e%2E/",
        "/v1/.%2e/a",
        "/v1/...",
        "/v1/a./b",
        "/v1/a.",
        "/v1/a%2e",
        "/v1/a;b",
        "/v1/a%3bb/c",
        "/v1/a%3B",
        "/v1/;",
        "/v1/a%252e",
        "/v1/%25%36%31",
        "/v1/%256%31",
        "/v1/%25%361",
        "/v1/%25%2561",
        "/v1/%2561",
        "/v1/a%252Fb",
        "/v1/a%25fF",
        "/v1/%20a",
        "/v1/a%20",
        "/v1/a%20/b",
        "/v1/%20",
        "/v1/a/%20/b",
        "/v1/a%3fb",
        "/v1/a%3Fb",
        "/v1/%3f",
        "/v1/a%23b",
        "/v1/a/%23",
        /* U+FF0E, U+2024, U+2025, U+2026, U+FE52: dots */
        "/v1/%ef%bc%8e%ef%bc%8e/x",
        "/v1/%e2%80%a4/x",
        "/v1/%e2%80%a5/x",
        "/v1/a%E2%80%A6",
        "/v1/%ef%b9%92",
        /* U+FF0F, U+2044, U+2215, U+FF3C, U+FE68, U+2216: slashes */
        "/v1/a%ef%bc%8fb",
        "/v1/a%e2%81%84b",
        "/v1/a%e2%88%95b",
        "/v1/a%ef%bc%bcb",
        "/v1/a%ef%b9%a8b",
        "/v1/a%e2%88%96b",
        /* U+FF05, U+FF1F, U+FF03, U+FF1B, U+037E, U+2105, U+1F100 */
        "/v1/%ef%bc%852e",
        "/v1/a%ef%bc%9fb",
        "/v1/a%ef%bc%83b",
        "/v1/a%ef%bc%9bb",
        "/v1/a%cd%beb",
        "/v1/%e2%84%85",
        "/v1/%f0%9f%84%80",
    };
    for (size_t i = 0; i < sizeof CLEAR / sizeof CLEAR[0]; i++)
        cr_assert(path_is_unambiguous(text_of(CLEAR[i])), "%s", CLEAR[i]);
    for (size_t i = 0; i < sizeof UNCLEAR / sizeof UNCLEAR[0]; i++)
        cr_assert_not(path_is_unambiguous(text_of(UNCLEAR[i])), "%s", UNCLEAR[i]);
}

/* Prints all parameters as "name=value|", and "malformed" if it ends so. */
static void print_parameters(struct text query, struct buf *out)
{
    char *decoded = malloc(query.len ? query.len : 1), *storage = decoded;
    struct text rest = query, name, value;
    enum path_query_result result;
    while ((result = path_next_parameter(&rest, &storage, &name, &value)) == PATH_QUERY_ITEM) {
        buf_append_text(out, name);
        buf_append_char(out, '=');
        buf_append_text(out, value);
        buf_append_char(out, '|');
    }
    if (result == PATH_QUERY_MALFORMED)
        buf_append_str(out, "malformed");
    cr_assert_leq((size_t)(storage - decoded), query.len);
    free(decoded);
}

Test(path, reads_parameters)
{
    static const char *const CASES[][2] = {
        {"", ""},
        {"a=1", "a=1|"},
        {"a=1&b=2", "a=1|b=2|"},
        {"a=1&a=2", "a=1|a=2|"},
        {"&&a=1&", "a=1|"},
        {"a", "a=|"},
        {"a=", "a=|"},
        {"=b", "=b|"},
        {"a=b=c", "a=b=c|"},
        {"a+b=c+d%2Be", "a b=c d+e|"},
        {"n%61me=%c3%a9", "name=\xc3\xa9|"},
        {"a=%26%3D", "a=&=|"},
        {"a=%", "malformed"},
        {"a=%4", "malformed"},
        {"a=%zz", "malformed"},
        {"a=%00", "malformed"},
        {"a=%ff", "malformed"},
        {"a=1&%c3=2", "a=1|malformed"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[128];
        struct buf out;
        buf_init_fixed(&out, storage, sizeof storage);
        print_parameters(text_of(CASES[i][0]), &out);
        cr_assert(text_equal(buf_text(&out), text_of(CASES[i][1])), "%s became %.*s", CASES[i][0],
                  TEXT_ARG(buf_text(&out)));
    }
    struct text rest = {NULL, 0}, name, value;
    char *storage = NULL;
    cr_assert_eq(path_next_parameter(&rest, &storage, &name, &value), PATH_QUERY_END);
}

Test(path, a_pattern_covers_itself_and_all_below)
{
    static const struct {
        const char *pattern, *path;
        bool covers, is_exact;
    } CASES[] = {
        {"/v1/a", "/v1/a", true, true},     {"/v1/a", "/v1/a/", true, true},     {"/v1/a", "/v1/a/b", true, true},
        {"/v1/a", "/v1/A/b", true, false},  {"/v1/a", "/V1/a", true, false},     {"/v1/a", "/v1/ab", false, true},
        {"/v1/a", "/v1", false, true},      {"/v1/a", "", false, true},          {"/v1/*/b", "/v1/a/b", true, true},
        {"/v1/*/b", "/v1//b", false, true}, {"/v1/*/b", "/v1/a/c", false, true}, {"/v1/*/b", "/v1/A/B/c", true, false},
        {"/v1/a", "/v1/*/b", false, true},  {"/v1/*/b", "/v1/*/b", true, true},  {"/v1/*/b", "/v1/*/bc", false, true},
        {"/v1/a/", "/v1/a/", true, true},   {"/v1/a/", "/v1/a//", true, true},   {"/v1/a/", "/v1/a", false, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        bool is_exact;
        cr_assert_eq(path_covers(text_of(CASES[i].pattern), text_of(CASES[i].path), &is_exact), CASES[i].covers,
                     "%s %s", CASES[i].pattern, CASES[i].path);
        cr_assert(!CASES[i].covers || is_exact == CASES[i].is_exact, "%s %s", CASES[i].pattern, CASES[i].path);
    }
}
