#include "core/scope.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

TestSuite(scope, .fini = leak_guard);

/* Every scope, in the order in which responses list them. */
static const char *const NAMES[] = {"exchanges:read",  "exchanges:write", "patients:read",   "patients:write",
                                    "webhooks:manage", "keys:manage",     "audit:read",      "team:manage",
                                    "org:manage",      "usage:read",      "documents:write", "sandbox:manage"};

static void assert_prints(scope_set scopes, char separator, const char *expected)
{
    char storage[256];
    struct buf out;
    buf_init_fixed(&out, storage, sizeof storage);
    scope_print(scopes, separator, &out);
    cr_assert(text_equal(buf_text(&out), text_of(expected)), "%.*s", TEXT_ARG(buf_text(&out)));
}

Test(scope, has_the_names_of_the_specification_in_their_order)
{
    cr_assert_eq(sizeof NAMES / sizeof NAMES[0], SCOPE_COUNT);
    for (unsigned n = 0; n < SCOPE_COUNT; n++) {
        cr_assert(text_equal(scope_name(n), text_of(NAMES[n])), "%s", NAMES[n]);
        cr_assert_eq(scope_parse(text_of(NAMES[n])), 1u << n);
    }
    cr_assert_eq(scope_parse(TEXT("documents:write")), SCOPE_DOCUMENTS_WRITE);
    cr_assert_eq(scope_parse(TEXT("keys:manage")), SCOPE_KEYS_MANAGE);
}

Test(scope, knows_exact_names_alone)
{
    static const char *const CASES[] = {"", "keys", "keys:", "keys:manage ", "Keys:manage", "keys:manage,", "*", "all"};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(scope_parse(text_of(CASES[i])), SCOPE_NONE, "%s", CASES[i]);
}

Test(scope, prints_in_table_order)
{
    assert_prints(SCOPE_NONE, ' ', "");
    assert_prints(SCOPE_SANDBOX_MANAGE, ' ', "sandbox:manage");
    assert_prints(SCOPE_USAGE_READ | SCOPE_EXCHANGES_READ, ' ', "exchanges:read usage:read");
    assert_prints(SCOPE_USAGE_READ | SCOPE_EXCHANGES_READ, ',', "exchanges:read,usage:read");
}

Test(scope, includes_subsets_alone)
{
    cr_assert(scope_includes(SCOPE_ALL, SCOPE_ALL));
    cr_assert(scope_includes(SCOPE_KEYS_MANAGE, SCOPE_NONE));
    cr_assert(scope_includes(SCOPE_KEYS_MANAGE | SCOPE_ORG_MANAGE, SCOPE_ORG_MANAGE));
    cr_assert_not(scope_includes(SCOPE_KEYS_MANAGE, SCOPE_ORG_MANAGE));
    cr_assert_not(scope_includes(SCOPE_NONE, SCOPE_ORG_MANAGE));
    cr_assert_not(scope_includes(SCOPE_KEYS_MANAGE, SCOPE_ALL));
}
