/* Emails: one spelling for one address, and nothing that hides in it. */
#include "core/email.h"

#include "leak_guard.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(email, .fini = leak_guard);

Test(email, one_address_has_one_spelling)
{
    static const struct {
        const char *written, *read;
    } CASES[] = {
        {"ada@clinic.example", "ada@clinic.example"},
        {" Ada.Lovelace+x@Clinic.Example\t", "ada.lovelace+x@clinic.example"},
        {"o'neil_!#$%&*/=?^`{|}~@a-b.example", "o'neil_!#$%&*/=?^`{|}~@a-b.example"},
        {"ada@localhost", "ada@localhost"},
        {"\u00e5sa@klinik.example", "\u00e5sa@klinik.example"},
        {"a\u030asa@klinik.example", "\u00e5sa@klinik.example"},
        {"\u00c5SA@klinik.example", "\u00e5sa@klinik.example"},
        {"\uff21da@clinic.example", "ada@clinic.example"},
        {"\uff76@clinic.example", "\u30ab@clinic.example"},
        {"\u0420\u0423@clinic.example", "\u0440\u0443@clinic.example"},
        {"ada@m\u00fcnchen.example", "ada@xn--mnchen-3ya.example"},
        {"ada@M\u00dcNCHEN.example", "ada@xn--mnchen-3ya.example"},
        {"ada@mu\u0308nchen.example", "ada@xn--mnchen-3ya.example"},
        {"ada@XN--mnchen-3ya.example", "ada@xn--mnchen-3ya.example"},
        {"\u0928\u093f@clinic.example", "\u0928\u093f@clinic.example"},
    };
    char email[EMAIL_MAX_BYTES + 1], again[EMAIL_MAX_BYTES + 1];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_assert(email_read(text_of(CASES[i].written), email), "%zu: %s", i, CASES[i].written);
        cr_expect_str_eq(email, CASES[i].read, "%zu: %s", i, email);
        cr_expect(email_read(text_of(email), again) && strcmp(again, email) == 0, "%s", email);
    }
}

static void expect_refused(const char *written, const char *says)
{
    char email[EMAIL_MAX_BYTES + 1], storage[EMAIL_WHY_BYTES] = "";
    struct buf why;

    cr_expect_not(email_read(text_of(written), email), "%s", written);
    buf_init_fixed(&why, storage, sizeof storage - 1);
    email_explain(text_of(written), &why);
    cr_expect(!why.failed && strncmp(storage, "email ", 6) == 0 && strstr(storage, says), "%s: %s", written, storage);
    cr_expect_not(strstr(storage, "svc_"), "%s", storage);
}

Test(email, what_no_new_user_may_have)
{
    static const struct {
        const char *written, *says;
    } CASES[] = {
        {"", "must be an address"},
        {"ada", "must be an address"},
        {"@clinic.example", "before the @"},
        {"ada@", "domain"},
        {"ada@ada@clinic.example", "domain"},
        {"ada@-clinic.example", "domain"},
        {"ada@clinic-.example", "domain"},
        {"ada@clinic..example", "domain"},
        {"ada@clinic.example.", "domain"},
        {"ada@<clinic>", "domain"},
        {"ada@cli nic.example", "domain"},
        {"ada@clinic\u200b\u2028.example", "domain"},
        {"ada@\u202eclinic.example", "domain"},
        {"ada@xn--a.example", "domain"},
        {"<ada>@clinic.example", "U+003C"},
        {"a da@clinic.example", "U+0020"},
        {"\"ada\"@clinic.example", "U+0022"},
        {"a\nda@clinic.example", "U+000A"},
        {"a\u200bda@clinic.example", "U+200B"},
        {"a\u202eda@clinic.example", "U+202E"},
        {"a\u200dda@clinic.example", "U+200D"},
        {"a\u2028da@clinic.example", "U+2028"},
        {"a\u00addda@clinic.example", "U+00AD"},
        {"a\u034fda@clinic.example", "U+034F"},
        {"a\u0378da@clinic.example", "U+0378"},
        {"\u0301a@clinic.example", "U+0301"},
        {"\ufb01@clinic.example", "U+FB01"},
        {"\U0001f511@clinic.example", "U+1F511"},
        {"\xff@clinic.example", "UTF-8"},
        {"svc_dk_0123456789ABCDEFGHIJKLMNOPQRSTUV3ZASRa@clinic.example", "has an API key"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@clinic.example", "64 bytes"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_refused(CASES[i].written, CASES[i].says);
}

Test(email, no_length_breaks_it)
{
    char written[2 * EMAIL_MAX_BYTES], email[EMAIL_MAX_BYTES + 1];

    for (size_t len = 1; len < sizeof written - 1; len++) {
        memset(written, 'a', len);
        written[len / 4] = '@';
        written[len] = '\0';
        for (size_t at = len / 4 + 40; at < len - 1; at += 40)
            written[at] = '.';
        bool is_read = email_read(text_of(written), email);
        cr_expect_eq(is_read, len >= 4 && len <= EMAIL_MAX_BYTES && len / 4 <= 64, "%zu", len);
    }
}
