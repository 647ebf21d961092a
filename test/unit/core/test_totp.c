#include "core/totp.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(totp, .fini = leak_guard);

static const struct totp_secret RFC_SECRET = {"12345678901234567890"};

Test(totp, gives_the_codes_of_rfc_6238)
{
    static const struct {
        int64_t time_s;
        const char *code;
    } CASES[] = {{59, "94287082"},         {1111111109, "07081804"}, {1111111111, "14050471"},
                 {1234567890, "89005924"}, {2000000000, "69279037"}, {20000000000, "65353130"}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char code[9];
        totp_print(RFC_SECRET.bytes, TOTP_SECRET_BYTES, totp_step(CASES[i].time_s * 1000), 8, code);
        cr_assert_str_eq(code, CASES[i].code);
    }
}

Test(totp, gives_the_codes_of_rfc_4226)
{
    static const char *const CODES[] = {"755224", "287082", "359152", "969429", "338314",
                                        "254676", "287922", "162583", "399871", "520489"};
    for (int step = 0; step < 10; step++) {
        char code[7];
        totp_print(RFC_SECRET.bytes, TOTP_SECRET_BYTES, step, 6, code);
        cr_assert_str_eq(code, CODES[step]);
    }
}

Test(totp, accepts_one_step_either_side)
{
    const int64_t step = 37037036, now_ms = step * TOTP_STEP_MS + 12345;
    for (int64_t off = -4; off <= 4; off++) {
        char code[7];
        int64_t found = -1;
        totp_print(RFC_SECRET.bytes, TOTP_SECRET_BYTES, step + off, 6, code);
        const bool near = off >= -1 && off <= 1;
        cr_assert_eq(totp_verify(&RFC_SECRET, text_of(code), now_ms, &found), near, "%d", (int)off);
        cr_assert_eq(found, near ? step + off : -1);
    }
}

Test(totp, steps_change_each_30_s)
{
    cr_assert_eq(totp_step(0), 0);
    cr_assert_eq(totp_step(29999), 0);
    cr_assert_eq(totp_step(30000), 1);
}

Test(totp, tells_when_the_next_code_comes)
{
    static const struct {
        int64_t step, wall_ms;
        uint32_t wait_s;
    } CASES[] = {{2, 60000, 30}, {2, 61000, 29}, {2, 61001, 29}, {2, 89999, 1},  {3, 60000, 60},
                 {3, 89001, 31}, {1, 60000, 1},  {0, 60000, 1},  {9, 60000, 60}, {INT64_MAX, 60000, 60}};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(totp_wait_s(CASES[i].step, CASES[i].wall_ms), CASES[i].wait_s, "case %zu", i);
}

/* Step 1 has the code 287082, step 0 755224. */
Test(totp, wants_exactly_six_ascii_digits)
{
    static const char *const CASES[] = {"",
                                        "28708",
                                        "2870820",
                                        "287082 ",
                                        " 287082",
                                        "28708a",
                                        "+87082",
                                        "-87082",
                                        "287 82",
                                        "94287082",
                                        "\xd9\xa2\xd9\xa8\xd9\xa7"}; /* Arabic digits, six bytes */
    int64_t step = -1;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_not(totp_verify(&RFC_SECRET, text_of(CASES[i]), 30000, &step), "%s", CASES[i]);
    cr_assert_not(totp_verify(&RFC_SECRET, (struct text){NULL, 0}, 30000, &step));
    cr_assert_eq(step, -1);
    cr_assert(totp_verify(&RFC_SECRET, TEXT("287082"), 30000, &step));
    cr_assert_eq(step, 1);
}

Test(totp, keeps_leading_zeros)
{
    int64_t step;
    cr_assert(totp_verify(&RFC_SECRET, TEXT("081804"), INT64_C(1111111109000), &step));
    cr_assert_not(totp_verify(&RFC_SECRET, TEXT("81804"), INT64_C(1111111109000), &step));
}

Test(totp, prints_and_reads_its_address)
{
    char storage[256];
    struct buf out;
    struct totp_secret secret;
    buf_init_fixed(&out, storage, sizeof storage);
    totp_print_uri(&RFC_SECRET, TEXT("Chatelaine"), TEXT("a+b@c.test"), &out);
    cr_assert(text_equal(buf_text(&out), TEXT("otpauth://totp/Chatelaine:a%2Bb%40c.test"
                                              "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Chatelaine")),
              "%.*s", TEXT_ARG(buf_text(&out)));
    cr_assert(totp_parse_uri(buf_text(&out), &secret));
    cr_assert_arr_eq(secret.bytes, RFC_SECRET.bytes, TOTP_SECRET_BYTES);
}

Test(totp, reads_addresses_and_plain_secrets)
{
    static const struct {
        const char *text;
        bool valid;
    } CASES[] = {
        {"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", true},
        {"gezdgnbvgy3tqojqgezdgnbvgy3tqojq", true},
        {"GEZD GNBV GY3T QOJQ GEZD GNBV GY3T QOJQ", true},
        {"otpauth://totp/x?issuer=y&secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", true},
        {"otpauth://totp/x?issuer=y", false},
        {"otpauth://totp/x", false},
        {"otpauth://hotp/x?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", false},
        {"otpauth://totp/x?xsecret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", false},
        {"GEZDGNBVGY3TQOJQ", false},
        {"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBV", false},
        {"GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJ1", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct totp_secret secret;
        cr_assert_eq(totp_parse_uri(text_of(CASES[i].text), &secret), CASES[i].valid, "%s", CASES[i].text);
        if (CASES[i].valid)
            cr_assert_arr_eq(secret.bytes, RFC_SECRET.bytes, TOTP_SECRET_BYTES);
    }
}

Test(totp, mints_secrets_that_differ)
{
    struct totp_secret a, b;
    totp_secret_mint(&a);
    totp_secret_mint(&b);
    cr_assert_arr_neq(a.bytes, b.bytes, TOTP_SECRET_BYTES);
}
