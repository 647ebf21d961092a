#include "core/route_policy.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(route_policy, .fini = leak_guard);

struct expectation {
    const char *path;
    bool is_read;
    enum policy_verdict verdict;
    scope_set scope;
    const char *allow;
};

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

/* api.md 4, row by row. */
Test(route_policy, the_standard_is_the_contract)
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
        {"/v1/usage", true, POLICY_SCOPE, SCOPE_USAGE_READ, NULL},
        {"/v1/usage", false, POLICY_METHOD, SCOPE_NONE, "GET, HEAD"},
        {"/v1/audit", true, POLICY_SCOPE, SCOPE_AUDIT_READ, NULL},
        {"/v1/audit", false, POLICY_METHOD, SCOPE_NONE, "GET, HEAD"},
        {"/v1/team", true, POLICY_SCOPE, SCOPE_TEAM_MANAGE, NULL},
        {"/v1/team", false, POLICY_SCOPE, SCOPE_TEAM_MANAGE, NULL},
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
    struct route_policy *policy = route_policy_standard();
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
    route_policy_destroy(NULL);
}

Test(route_policy, a_file_replaces_the_standard)
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
                           &why);
    cr_assert_not_null(policy, "%.*s", TEXT_ARG(buf_text(&why)));
    cr_assert_eq(why.len, 0);
    assert_finds(policy, CASES, sizeof CASES / sizeof CASES[0]);
    route_policy_destroy(policy);
}

#define ONE(path) "{\"version\":1,\"routes\":[{\"path\":\"" path "\",\"read\":\"usage:read\"}]}"

Test(route_policy, refuses_files_with_one_sentence)
{
    static const char *const CASES[][2] = {
        {"", "The policy is not one JSON object"},
        {"[]", "The policy is not one JSON object"},
        {"{\"version\":1,\"version\":1}", "The policy is not one JSON object"},
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
         "\"read\" of \"/v1/a\" names an unknown scope, \"usage:reed\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"write\":\"\"}]}",
         "\"write\" of \"/v1/a\" names an unknown scope, \"\"."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"write\":true}]}",
         "\"write\" of \"/v1/a\" is neither a scope nor null."},
        {"{\"version\":1,\"routes\":[{\"path\":\"/v1/a\",\"read\":null},{\"path\":\"/v1/a\",\"write\":null}]}",
         "The path \"/v1/a\" appears twice."},
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
        {ONE("/v1/api_keys"), "The path \"/v1/api_keys\" is a route of the product itself"},
        {ONE("/v1/api_keys/x"), "The path \"/v1/api_keys/x\" is a route of the product itself"},
        {ONE("/v1/whoami"), "The path \"/v1/whoami\" is a route of the product itself"},
        {ONE("/v1/auth/login"), "The path \"/v1/auth/login\" is a route of the product itself"},
        {ONE("/v1/console/reveal"), "The path \"/v1/console/reveal\" is a route of the product itself"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char storage[512];
        struct buf why;
        buf_init_fixed(&why, storage, sizeof storage);
        cr_assert_null(route_policy_parse(text_of(CASES[i][0]), &why), "%s", CASES[i][0]);
        cr_assert(text_starts_with(buf_text(&why), text_of(CASES[i][1])), "%s: %.*s", CASES[i][0],
                  TEXT_ARG(buf_text(&why)));
        cr_assert_eq(why.ptr[why.len - 1], '.');
    }
}
