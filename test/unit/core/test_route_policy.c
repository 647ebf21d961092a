#include "core/route_policy.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

TestSuite(route_policy, .fini = leak_guard);

struct expectation {
    const char *path;
    bool is_read;
    enum policy_verdict verdict;
    scope_set scope;
    const char *allow;
};

static bool is_ours(struct text path)
{
    return text_equal(path, TEXT("/v1/ours"));
}

static void assert_finds(const struct route_policy *policy, const struct expectation *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        scope_set scope = SCOPE_NONE;
        const char *allow = NULL;
        cr_assert_eq(route_policy_find(policy, text_of(cases[i].path), cases[i].is_read, &scope, &allow),
                     cases[i].verdict, "%s", cases[i].path);
        cr_assert_eq(scope, cases[i].scope, "%s", cases[i].path);
        if (cases[i].allow)
            cr_assert_str_eq(allow, cases[i].allow);
        else
            cr_assert_null(allow);
    }
}

/* src/api/README.md#the-route-policy, row by row. */
Test(route_policy, the_built_in_one_is_the_contract)
{
    static const struct expectation CASES[] = {
        {"/v1/api_keys", true, POLICY_SCOPE, SCOPE_KEYS_MANAGE, NULL},
        {"/v1/api_keys", false, POLICY_SCOPE, SCOPE_KEYS_MANAGE, NULL},
        {"/v1/patients", true, POLICY_SCOPE, SCOPE_PATIENTS_READ, NULL},
        {"/v1/patients", false, POLICY_SCOPE, SCOPE_PATIENTS_WRITE, NULL},
        {"/v1/exchanges", true, POLICY_SCOPE, SCOPE_EXCHANGES_READ, NULL},
        {"/v1/exchanges", false, POLICY_SCOPE, SCOPE_EXCHANGES_WRITE, NULL},
        {"/v1/webhooks", true, POLICY_SCOPE, SCOPE_WEBHOOKS_MANAGE, NULL},
        {"/v1/webhooks", false, POLICY_SCOPE, SCOPE_WEBHOOKS_MANAGE, NULL},
        {"/v1/documents", true, POLICY_DENY, SCOPE_NONE, NULL},
        {"/v1/documents", false, POLICY_SCOPE, SCOPE_DOCUMENTS_WRITE, NULL},
        {"/v1/usage", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/audit", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/team", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/organisation", true, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/organisation", false, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/sandbox", true, POLICY_SCOPE, SCOPE_SANDBOX_MANAGE, NULL},
        {"/v1/sandbox", false, POLICY_SCOPE, SCOPE_SANDBOX_MANAGE, NULL},
        {"/v1/patients/", true, POLICY_SCOPE, SCOPE_PATIENTS_READ, NULL},
        {"/v1/patients/pat_1/notes", false, POLICY_SCOPE, SCOPE_PATIENTS_WRITE, NULL},
        {"/v1/patients2", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/patient", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/Patients", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/patients;x", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/whoami", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/session", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
    };
    struct route_policy *policy = route_policy_built_in();
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
    route_policy_destroy(NULL);
}

Test(route_policy, a_file_replaces_the_built_in_one)
{
    static const struct expectation CASES[] = {
        {"/v1/a", true, POLICY_SCOPE, SCOPE_PATIENTS_READ, NULL},
        {"/v1/a/b", true, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/a/b/c", true, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/a/bc", true, POLICY_SCOPE, SCOPE_PATIENTS_READ, NULL},
        {"/v1/a/b/c", false, POLICY_DENY, SCOPE_NONE, NULL},
        {"/v1/a", false, POLICY_METHOD, SCOPE_NONE, "GET, HEAD"},
        {"/v1/w", true, POLICY_METHOD, SCOPE_NONE, "POST, PUT, PATCH, DELETE"},
        {"/v1/w", false, POLICY_SCOPE, SCOPE_TEAM_MANAGE, NULL},
        {"/v1/patients", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/api_keys", true, POLICY_SCOPE, SCOPE_KEYS_MANAGE, NULL},
        {"/v1/api_keys_of_ours", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
    };
    char storage[256];
    struct buf why;
    buf_init_fixed(&why, storage, sizeof storage);
    struct route_policy *policy =
        route_policy_parse(TEXT("{\"version\": 1, \"routes\": ["
                                "{\"path\": \"/v1/a/b\", \"read\": \"org:manage\", \"write\": null},"
                                "{\"path\": \"/v1/a\", \"read\": \"patients:read\"},"
                                "{\"path\": \"/v1/api_keys_of_ours\", \"read\": \"usage:read\"},"
                                "{\"path\": \"/v1/w\", \"write\": \"team:manage\"}]}"),
                           is_ours, &why);
    cr_assert_not_null(policy, "%.*s", TEXT_ARG(buf_text(&why)));
    cr_assert_eq(why.len, 0);
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
}

static struct route_policy *parse(const char *json)
{
    char storage[256];
    struct buf why;
    buf_init_fixed(&why, storage, sizeof storage);
    struct route_policy *policy = route_policy_parse(text_of(json), is_ours, &why);
    cr_assert_not_null(policy, "%.*s", TEXT_ARG(buf_text(&why)));
    return policy;
}

Test(route_policy, has_a_number_that_changes_with_it)
{
    static const char *const FILES[] = {
        "{\"version\": 1, \"routes\": [{\"path\": \"/v1/a\", \"read\": \"org:manage\"}]}",
        "{\"version\": 1, \"routes\": [{\"path\": \"/v1/a\", \"read\": \"usage:read\"}]}"};
    struct route_policy *built_in = route_policy_built_in(), *one = parse(FILES[0]), *again = parse(FILES[0]),
                        *other = parse(FILES[1]);

    cr_expect_neq(route_policy_digest(built_in), 0);
    cr_expect_neq(route_policy_digest(one), 0);
    cr_expect_neq(route_policy_digest(one), route_policy_digest(built_in));
    cr_expect_eq(route_policy_digest(one), route_policy_digest(again));
    cr_expect_neq(route_policy_digest(one), route_policy_digest(other));
    route_policy_destroy(built_in);
    route_policy_destroy(one);
    route_policy_destroy(again);
    route_policy_destroy(other);
}

/* So a release with another built-in table has another number. The first file is that table, in another order. */
Test(route_policy, the_number_of_the_built_in_one_is_that_of_its_rows)
{
#define ROWS                                                                                       \
    "{\"path\": \"/v1/exchanges\", \"read\": \"exchanges:read\", \"write\": \"exchanges:write\"}," \
    "{\"path\": \"/v1/patients\", \"read\": \"patients:read\", \"write\": \"patients:write\"},"    \
    "{\"path\": \"/v1/webhooks\", \"read\": \"webhooks:manage\", \"write\": \"webhooks:manage\"}," \
    "{\"path\": \"/v1/sandbox\", \"read\": \"sandbox:manage\", \"write\": \"sandbox:manage\"},"    \
    "{\"path\": \"/v1/organisation\", \"read\": \"org:manage\", \"write\": \"org:manage\"},"
    static const char *const CHANGED[] = {
        ROWS "{\"path\": \"/v1/documents\", \"write\": \"documents:write\"}",
        ROWS "{\"path\": \"/v1/documents\", \"read\": null, \"write\": \"patients:write\"}",
        ROWS "{\"path\": \"/v1/document\", \"read\": null, \"write\": \"documents:write\"}",
        ROWS "{\"path\": \"/v1/documents\", \"read\": null, \"write\": \"documents:write\"}, {\"path\": \"/v1/a\", "
             "\"read\": null}",
    };
    struct route_policy *built_in = route_policy_built_in(), *same, *other;
    char json[1024];

    same = parse("{\"version\": 1, \"routes\": [" ROWS
                 "{\"path\": \"/v1/documents\", \"read\": null, \"write\": \"documents:write\"}]}");
    cr_expect_eq(route_policy_digest(same), route_policy_digest(built_in));
    for (size_t i = 0; i < sizeof CHANGED / sizeof *CHANGED; i++) {
        snprintf(json, sizeof json, "{\"version\": 1, \"routes\": [%s]}", CHANGED[i]);
        other = parse(json);
        cr_expect_neq(route_policy_digest(other), route_policy_digest(built_in), "%zu", i);
        route_policy_destroy(other);
    }
    route_policy_destroy(built_in);
    route_policy_destroy(same);
}

Test(route_policy, sessions_have_rows_below_the_console)
{
    static const struct expectation CASES[] = {
        {"/v1/console/patients", true, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/console/patients/", true, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/console/patients/7", false, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/console/patients/7/identifier", false, POLICY_STEP_UP, SCOPE_NONE, NULL},
        {"/v1/console/patients/7/identifier/x", false, POLICY_STEP_UP, SCOPE_NONE, NULL},
        {"/v1/console/patients/*/identifier", false, POLICY_STEP_UP, SCOPE_NONE, NULL},
        {"/v1/console/patients/7/identifier", true, POLICY_METHOD, SCOPE_NONE, "POST, PUT, PATCH, DELETE"},
        {"/v1/console/patients/7/8/identifier", false, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/console/patients//identifier", false, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/console/locked", true, POLICY_DENY, SCOPE_NONE, NULL},
        {"/v1/console", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/session", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/patient", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
    };
    struct route_policy *policy =
        parse("{\"version\": 1, \"routes\": ["
              "{\"path\": \"/v1/console/patients\", \"read\": \"session\", \"write\": \"session\"},"
              "{\"path\": \"/v1/console/locked\", \"read\": null},"
              "{\"path\": \"/v1/console/patients/*/identifier\", \"write\": \"step_up\"}]}");
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
}

#define OPEN_ROWS                                                                                      \
    "{\"version\": 1, \"routes\": ["                                                                   \
    "{\"path\": \"/v1/a\", \"read\": \"usage:read\", \"write\": \"org:manage\", \"preflight\": true}," \
    "{\"path\": \"/v1/a/open\", \"read\": \"public\", \"write\": \"org:manage\"},"                     \
    "{\"path\": \"/v1/a/open/*/private\", \"read\": \"usage:read\", \"preflight\": false},"            \
    "{\"path\": \"/v1/a/null\", \"read\": null, \"write\": \"org:manage\", \"preflight\": true},"      \
    "{\"path\": \"/v1/open\", \"read\": \"public\", \"preflight\": true}]}"

Test(route_policy, the_public_may_read_below_its_rows)
{
    static const struct expectation CASES[] = {
        {"/v1/open", true, POLICY_PUBLIC, SCOPE_NONE, NULL},
        {"/v1/open/", true, POLICY_PUBLIC, SCOPE_NONE, NULL},
        {"/v1/open/1/2", true, POLICY_PUBLIC, SCOPE_NONE, NULL},
        {"/v1/open", false, POLICY_METHOD, SCOPE_NONE, "GET, HEAD"},
        {"/v1/Open", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/opened", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/a", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
        {"/v1/a/opened", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
        {"/v1/a/open/1", true, POLICY_PUBLIC, SCOPE_NONE, NULL},
        {"/v1/a/open/1", false, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/a/OPEN/1", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/a/open/1/private", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
        {"/v1/a/open/1/PRIVATE", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
    };
    struct route_policy *policy = parse(OPEN_ROWS);
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        if (CASES[i].is_read)
            cr_expect_eq(route_policy_is_public(policy, text_of(CASES[i].path)), CASES[i].verdict == POLICY_PUBLIC,
                         "%s", CASES[i].path);
    route_policy_destroy(policy);
}

Test(route_policy, a_preflight_is_for_what_a_row_allows_to_somebody)
{
    static const struct {
        const char *path;
        bool for_reading, for_writing;
    } CASES[] = {
        {"/v1/a", true, true},
        {"/v1/a/b", true, true},
        {"/v1/A", false, false},
        {"/v1/a/open", false, false}, /* a row of its own, which does not say it */
        {"/v1/a/open/1/private", false, false},
        {"/v1/a/null", false, true},
        {"/v1/open", true, false},
        {"/v1/nothing", false, false},
        {"/v1/api_keys", false, false},
    };
    struct route_policy *policy = parse(OPEN_ROWS);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct text path = text_of(CASES[i].path);
        cr_expect_eq(route_policy_takes_preflight(policy, path, true), CASES[i].for_reading, "%s", path.ptr);
        cr_expect_eq(route_policy_takes_preflight(policy, path, false), CASES[i].for_writing, "%s", path.ptr);
    }
    route_policy_destroy(policy);
}

Test(route_policy, tells_whether_any_row_is_open)
{
#define ROW(rest) "{\"version\": 1, \"routes\": [{\"path\": \"/v1/a\", " rest "}]}"
    static const struct {
        const char *json;
        bool is_open;
    } CASES[] = {
        {ROW("\"read\": \"usage:read\""), false},
        {ROW("\"read\": null"), false},
        {ROW("\"read\": \"usage:read\", \"preflight\": false"), false},
        {ROW("\"read\": \"usage:read\", \"preflight\": true"), true},
        {ROW("\"read\": \"public\""), true},
    };
    struct route_policy *policy = route_policy_built_in();
    uint32_t digests[sizeof CASES / sizeof CASES[0]];

    cr_expect_not(route_policy_has_open_rows(policy));
    route_policy_destroy(policy);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        policy = parse(CASES[i].json);
        cr_expect_eq(route_policy_has_open_rows(policy), CASES[i].is_open, "%s", CASES[i].json);
        digests[i] = route_policy_digest(policy);
        route_policy_destroy(policy);
    }
    cr_expect_eq(digests[2], digests[0], "a row that takes no preflights is the same whether it says so or not");
    cr_expect_neq(digests[3], digests[0]);
    cr_expect_neq(digests[4], digests[0]);
    cr_expect_neq(digests[4], digests[1]);
#undef ROW
}

/* Rows are recognised by their scopes. */
Test(route_policy, the_most_specific_row_counts)
{
    static const struct expectation CASES[] = {
        {"/v1/a", true, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/a/x", true, POLICY_SCOPE, SCOPE_TEAM_MANAGE, NULL},
        {"/v1/a/b", true, POLICY_SCOPE, SCOPE_AUDIT_READ, NULL},
        {"/v1/a/x/y", true, POLICY_SCOPE, SCOPE_TEAM_MANAGE, NULL},
        {"/v1/a/x/c", true, POLICY_SCOPE, SCOPE_PATIENTS_READ, NULL},
        {"/v1/a/b/x", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
        {"/v1/a/b/c", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},       /* a name beats a star, from the left */
        {"/v1/a/b/c/d", true, POLICY_SCOPE, SCOPE_EXCHANGES_READ, NULL}, /* but the longest comes first */
        {"/v1/a/", true, POLICY_SCOPE, SCOPE_ORG_MANAGE, NULL},
        {"/v1/ab", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
    };
    struct route_policy *policy = parse("{\"version\": 1, \"routes\": ["
                                        "{\"path\": \"/v1/a/*/c\", \"read\": \"patients:read\"},"
                                        "{\"path\": \"/v1/a/*/*/d\", \"read\": \"exchanges:read\"},"
                                        "{\"path\": \"/v1/a\", \"read\": \"org:manage\"},"
                                        "{\"path\": \"/v1/a/b/*\", \"read\": \"usage:read\"},"
                                        "{\"path\": \"/v1/a/*\", \"read\": \"team:manage\"},"
                                        "{\"path\": \"/v1/a/b\", \"read\": \"audit:read\"}]}");
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
}

/* A backend that ignores case must not be reached under a wider row. */
Test(route_policy, another_case_of_letters_is_unknown)
{
    static const struct expectation CASES[] = {
        {"/v1/console/people/7/identifier", true, POLICY_STEP_UP, SCOPE_NONE, NULL},
        {"/v1/console/people/X/identifier", true, POLICY_STEP_UP, SCOPE_NONE, NULL},
        {"/v1/console/people/7/Identifier", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/people/7/IDENTIFIER/x", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/People/7", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/Console/people/7", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
        {"/v1/console/people/Seven", true, POLICY_SESSION, SCOPE_NONE, NULL},
        {"/v1/API_KEYS", true, POLICY_UNKNOWN, SCOPE_NONE, NULL},
    };
    struct route_policy *policy =
        parse("{\"version\": 1, \"routes\": [{\"path\": \"/v1/console/people\", \"read\": \"session\"},"
              "{\"path\": \"/v1/console/people/*/identifier\", \"read\": \"step_up\"}]}");
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
}

Test(route_policy, a_row_anywhere_in_a_folder_sets_the_folder)
{
    static const struct {
        const char *path;
        bool is_set;
    } CASES[] = {
        {"/v1/b", true},        {"/v1/b/x/y", true},   {"/v1/B", true},  {"/v1/d", true},    {"/v1/D/z", true},
        {"/v1/api_keys", true}, {"/v1/console", true}, {"/v1/a", false}, {"/v1/c/b", false}, {"/v1/e", false},
        {"/v1/zz", false},      {"/v1/", false},       {"/b", false},    {"", false},
    };
    struct route_policy *policy = parse("{\"version\": 1, \"routes\": [{\"path\": \"/v1/D/x/y\", \"read\": null},"
                                        "{\"path\": \"/v1/console/e\", \"read\": null},"
                                        "{\"path\": \"/v1/b\", \"read\": \"usage:read\"}]}");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(route_policy_has_folder(policy, text_of(CASES[i].path)), CASES[i].is_set, "%s", CASES[i].path);
    route_policy_destroy(policy);
}

/* Enough rows that each is found only if they are sorted. */
Test(route_policy, finds_each_of_many)
{
    char name[32];
    struct buf json CLEANUP(buf_finish);
    buf_init(&json, 100000);
    buf_append_str(&json, "{\"version\":1,\"routes\":[");
    for (unsigned i = 0; i < 1000; i++)
        buf_printf(&json, "%s{\"path\":\"/v1/%x%s\",\"read\":\"%s\"}", i ? "," : "", i * 7919u % 1000u,
                   i % 2 ? "/b" : "", i % 3 ? "usage:read" : "audit:read");
    buf_append_str(&json, "]}");
    buf_append_char(&json, '\0');
    struct route_policy *policy = parse(json.ptr);
    for (unsigned i = 0; i < 1000; i++) {
        scope_set scope = SCOPE_NONE;
        const char *allow;
        snprintf(name, sizeof name, "/v1/%x%s", i * 7919u % 1000u, i % 2 ? "/b/c" : "/c");
        cr_assert_eq(route_policy_find(policy, text_of(name), true, &scope, &allow), POLICY_SCOPE, "%s", name);
        cr_assert_eq(scope, i % 3 ? SCOPE_USAGE_READ : SCOPE_AUDIT_READ, "%s", name);
    }
    route_policy_destroy(policy);
}

#define ONE(path) "{\"version\":1,\"routes\":[{\"path\":\"" path "\",\"read\":\"usage:read\"}]}"

Test(route_policy, refuses_files_with_one_sentence)
{
    static const char *const CASES[][2] = {
        {"", "The policy is not a JSON object (line 1, column 1)."},
        {"\n []", "The policy is not a JSON object (line 2, column 2)."},
        {"{\n  // ours\n  \"version\": 1}",
         "The policy is not a JSON object (line 2, column 3): a member's name is not a string."},
        {"{\"version\":1,\"version\":1}",
         "The policy is not a JSON object: an object has two members with the same name."},
        {"{}", "\"version\" must be 1."},
        {"{\"version\":2,\"routes\":[]}", "\"version\" must be 1."},
        {"{\"version\":\"1\",\"routes\":[]}", "\"version\" must be 1."},
        {"{\"version\":1}", "\"routes\" must be a list"},
        {"{\"version\":1,\"routes\":{}}", "\"routes\" must be a list"},
        {"{\"version\":1,\"routes\":[]}", "\"routes\" must be a list"},
        {"{\"version\":1,\"routes\":[1]}", "Each of \"routes\""},
        {"{\"version\":1,\"routes\":[{}]}", "Each of \"routes\""},
        {"{\"version\":1,\"routes\":[{\"path\":1}]}", "Each of \"routes\""},
        {"{\"version\":1,\"routes\":[],\"rules\":[]}", "The policy has an unknown member, \"rules\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"reed\":\"usage:read\"}]}",
         "A route has an unknown member, \"reed\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\"}]}", "The path \"/v1/a\" has neither \"read\" nor \"write\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":\"usage:reed\"}]}",
         "\"read\" of \"/v1/a\" is \"usage:reed\"; it must be the name of a scope, or \"public\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":\"session\"}]}",
         "\"read\" of \"/v1/a\" is \"session\"; it must be the name of a scope, or \"public\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/console/a\",\"read\":\"usage:read\"}]}",
         "\"read\" of \"/v1/console/a\" is \"usage:read\"; it must be \"session\" or \"step_up\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"write\":\"\"}]}",
         "\"write\" of \"/v1/a\" is \"\"; it must be the name of a scope."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":\"Public\"}]}",
         "\"read\" of \"/v1/a\" is \"Public\"; it must be the name of a scope, or \"public\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"write\":\"public\"}]}",
         "\"write\" of \"/v1/a\" is \"public\"; it must be the name of a scope."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/console/a\",\"read\":\"public\"}]}",
         "\"read\" of \"/v1/console/a\" is \"public\"; it must be \"session\" or \"step_up\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"preflight\":true}]}",
         "The path \"/v1/a\" has neither \"read\" nor \"write\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":null,\"preflight\":\"true\"}]}",
         "The path \"/v1/a\" has a \"preflight\" that is neither true nor false."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":null,\"preflight\":null}]}",
         "The path \"/v1/a\" has a \"preflight\" that is neither true nor false."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/console/a\",\"read\":\"session\",\"preflight\":true}]}",
         "The path \"/v1/console/a\" cannot take preflights, because sessions are for pages of our own origin."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"write\":true}]}",
         "\"write\" of \"/v1/a\" is neither a string nor null."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":null},{\"path\":\"/v1/a\",\"write\":null}]}",
         "The path \"/v1/a\" appears twice."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a/*/b\",\"read\":null},{\"path\":\"/v1/z\",\"read\":null},"
         "{\"path\":\"/v1/A/*/B\",\"write\":null}]}",
         "The path \"/v1/"},
        {ONE("v1/a"), "The path \"v1/a\" does not name a route below /v1/."},
        {ONE("/v2/a"), "The path \"/v2/a\" does not name a route below /v1/."},
        {ONE("/v1/"), "The path \"/v1/\" does not name a route below /v1/."},
        {ONE("/v1"), "The path \"/v1\" does not name a route below /v1/."},
        {ONE("/v1/a/"), "The path \"/v1/a/\" ends in a slash"},
        {ONE("/v1//a"), "The path \"/v1//a\" is not in its normalised form."},
        {ONE("/v1/../a"), "The path \"/v1/../a\" is not in its normalised form."},
        {ONE("/v1/%61"), "The path \"/v1/%61\" is not in its normalised form."},
        {ONE("/v1/a%2fb"), "The path \"/v1/a%2fb\" is not in its normalised form."},
        {ONE("/v1/a?b"), "The path \"/v1/a?b\" is not in its normalised form."},
        {ONE("/v1/ours"), "The path \"/v1/ours\" is a route of the product itself"},
        {ONE("/v1/api_keys"), "The path \"/v1/api_keys\" appears twice."},
        {ONE("/v1/*"), "The path \"/v1/*\" may have \"*\" only as a whole segment"},
        {ONE("/v1/*/a"), "The path \"/v1/*/a\" may have \"*\" only as a whole segment"},
        {ONE("/v1/a*"), "The path \"/v1/a*\" may have \"*\" only as a whole segment"},
        {ONE("/v1/a/b*"), "The path \"/v1/a/b*\" may have \"*\" only as a whole segment"},
        {ONE("/v1/a/**"), "The path \"/v1/a/**\" may have \"*\" only as a whole segment"},
        {ONE("/v1/console/*"), "The path \"/v1/console/*\" may have \"*\" only as a whole segment"},
        {ONE("/v1/a;b"), "The path \"/v1/a;b\" is one that every check refuses"},
        {ONE("/v1/a./b"), "The path \"/v1/a./b\" is one that every check refuses"},
        {ONE("/v1/a%3Ab"), "The path \"/v1/a%3Ab\" is not in its normalised form."},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[512];
        struct buf why;
        buf_init_fixed(&why, storage, sizeof storage);
        cr_assert_null(route_policy_parse(text_of(CASES[i][0]), is_ours, &why), "%s", CASES[i][0]);
        cr_assert(text_starts_with(buf_text(&why), text_of(CASES[i][1])), "%s: %.*s", CASES[i][0],
                  TEXT_ARG(buf_text(&why)));
        cr_assert_eq(why.ptr[why.len - 1], '.');
    }
}
