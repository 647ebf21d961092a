#include "api/problem_internal.h"

#include "leak_guard.h"

#include <criterion/criterion.h>

#include <string.h>

TestSuite(problem, .fini = leak_guard);

enum { STORAGE_BYTES = 1024 };

static void assert_prints(const struct problem *p, const char *expected)
{
    char storage[STORAGE_BYTES];
    struct buf out;
    buf_init_fixed(&out, storage, sizeof storage);
    problem_print(p, TEXT("req_1"), TEXT("https://t.example"), &out);
    cr_assert(text_equal(buf_text(&out), text_of(expected)), "%.*s", TEXT_ARG(buf_text(&out)));
}

static void assert_challenges(const struct problem *p, const char *expected)
{
    char storage[STORAGE_BYTES];
    struct buf out;
    buf_init_fixed(&out, storage, sizeof storage);
    problem_print_challenge(p, &out);
    cr_assert(text_equal(buf_text(&out), text_of(expected)), "%.*s", TEXT_ARG(buf_text(&out)));
}

Test(problem, each_row_has_what_the_contract_asks)
{
    for (int code = PROBLEM_NONE + 1; code < PROBLEM_COUNT; code++) {
        const struct problem p = problem_of((enum problem_code)code);
        const int status = problem_status(p.code);
        const char *type = problem_type(p.code), *expected = "invalid_request_error";
        if (status == 401)
            expected = "authentication_error";
        else if (status == 403)
            expected = "permission_error";
        else if (status == 429)
            expected = "rate_limit_error";
        else if (status >= 500)
            expected = "api_error";
        cr_assert(status >= 400 && status < 600);
        cr_assert_str_eq(type, expected, "%s", problem_code_text(p.code));
        cr_assert_gt(strlen(problem_message(&p)), 10);
        for (int other = PROBLEM_NONE + 1; other < code; other++)
            cr_assert_str_neq(problem_code_text(p.code), problem_code_text((enum problem_code)other));
    }
}

Test(problem, an_error_of_http_keeps_its_status)
{
    static const enum http_error ERRORS[] = {
        HTTP_ERROR_BAD_REQUEST,        HTTP_ERROR_NOT_FOUND,         HTTP_ERROR_METHOD_NOT_ALLOWED,
        HTTP_ERROR_REQUEST_TIMEOUT,    HTTP_ERROR_BODY_TOO_LARGE,    HTTP_ERROR_URI_TOO_LONG,
        HTTP_ERROR_EXPECTATION_FAILED, HTTP_ERROR_HEADERS_TOO_LARGE, HTTP_ERROR_INTERNAL,
        HTTP_ERROR_NOT_IMPLEMENTED,    HTTP_ERROR_OVERLOADED,        HTTP_ERROR_VERSION,
    };

    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        cr_expect_eq(problem_status(problem_code_of(ERRORS[i])), (int)ERRORS[i]);
}

#define DOCS "https://t.example/docs/errors#"

Test(problem, prints_bodies)
{
    struct problem p = problem_of(PROBLEM_API_KEY_REVOKED);
    assert_prints(&p, "{\"error\":{\"type\":\"authentication_error\",\"code\":\"api_key_revoked\","
                      "\"message\":\"This API key has been revoked.\",\"doc_url\":\"" DOCS
                      "api_key_revoked\",\"request_id\":\"req_1\"}}");
    p = problem_param(PROBLEM_PARAMETER_MISSING, TEXT("na\"me"));
    p.message = "Say a name.";
    assert_prints(&p, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"parameter_missing\","
                      "\"message\":\"Say a name.\",\"param\":\"na\\\"me\",\"doc_url\":\"" DOCS
                      "parameter_missing\",\"request_id\":\"req_1\"}}");
    p = problem_param(PROBLEM_PARAMETER_UNKNOWN, TEXT("scope"));
    assert_prints(&p, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"parameter_unknown\","
                      "\"message\":\"Unknown parameter: scope.\",\"param\":\"scope\",\"doc_url\":\"" DOCS
                      "parameter_unknown\",\"request_id\":\"req_1\"}}");
    p.meant = "scopes";
    assert_prints(&p, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"parameter_unknown\","
                      "\"message\":\"Unknown parameter: scope. Did you mean scopes?\",\"param\":\"scope\","
                      "\"doc_url\":\"" DOCS "parameter_unknown\",\"request_id\":\"req_1\"}}");
    p = problem_param(PROBLEM_PARAMETER_UNKNOWN, TEXT(""));
    assert_prints(&p, "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"parameter_unknown\","
                      "\"message\":\"A parameter is unknown.\",\"param\":\"\",\"doc_url\":\"" DOCS
                      "parameter_unknown\",\"request_id\":\"req_1\"}}");
    p = problem_of(PROBLEM_INSUFFICIENT_SCOPE);
    p.has_required_scopes = true;
    assert_prints(&p, "{\"error\":{\"type\":\"permission_error\",\"code\":\"insufficient_scope\","
                      "\"message\":\"The key lacks the scope for this request.\",\"required_scopes\":[],"
                      "\"doc_url\":\"" DOCS "insufficient_scope\",\"request_id\":\"req_1\"}}");
    p.required_scopes = SCOPE_KEYS_MANAGE | SCOPE_ORG_MANAGE;
    assert_prints(&p, "{\"error\":{\"type\":\"permission_error\",\"code\":\"insufficient_scope\","
                      "\"message\":\"The key lacks the scope for this request.\","
                      "\"required_scopes\":[\"keys:manage\",\"org:manage\"],\"doc_url\":\"" DOCS
                      "insufficient_scope\",\"request_id\":\"req_1\"}}");
    p = problem_param(PROBLEM_SCOPE_NOT_GRANTABLE, TEXT("scopes"));
    p.has_required_scopes = true;
    p.required_scopes = SCOPE_KEYS_MANAGE | SCOPE_ORG_MANAGE;
    assert_prints(&p, "{\"error\":{\"type\":\"permission_error\",\"code\":\"scope_not_grantable\","
                      "\"message\":\"This would grant scopes that you do not hold. Missing: keys:manage "
                      "org:manage.\",\"param\":\"scopes\",\"doc_url\":\"" DOCS
                      "scope_not_grantable\",\"request_id\":\"req_1\"}}");
}

Test(problem, cuts_long_parameters)
{
    char name[200];
    memset(name, 'x', sizeof name);
    const struct problem p = problem_param(PROBLEM_PARAMETER_UNKNOWN, (struct text){name, sizeof name});
    cr_assert_eq(strlen(p.param), PROBLEM_PARAM_BYTES - 1);
    cr_assert_eq(strlen(problem_param(PROBLEM_PARAMETER_UNKNOWN, (struct text){NULL, 0}).param), 0);
}

Test(problem, challenges_as_rfc_6750_asks)
{
    static const struct {
        enum problem_code code;
        bool session_realm;
        scope_set scopes;
        const char *expected;
    } CASES[] = {
        {PROBLEM_MISSING_CREDENTIALS, false, 0, "Bearer realm=\"api\""},
        {PROBLEM_INVALID_API_KEY, false, 0, "Bearer realm=\"api\", error=\"invalid_token\""},
        {PROBLEM_API_KEY_REVOKED, false, 0, "Bearer realm=\"api\", error=\"invalid_token\""},
        {PROBLEM_SESSION_NOT_ACCEPTED, false, 0, "Bearer realm=\"api\", error=\"invalid_token\""},
        {PROBLEM_INSUFFICIENT_SCOPE, false, SCOPE_KEYS_MANAGE | SCOPE_ORG_MANAGE,
         "Bearer realm=\"api\", error=\"insufficient_scope\", scope=\"keys:manage org:manage\""},
        {PROBLEM_INSUFFICIENT_SCOPE, false, 0, "Bearer realm=\"api\", error=\"insufficient_scope\""},
        {PROBLEM_INSUFFICIENT_SCOPE, true, 0, ""},
        {PROBLEM_INVALID_SESSION, true, 0, "Session realm=\"console\""},
        {PROBLEM_BEARER_NOT_ACCEPTED, true, 0, "Session realm=\"console\""},
        {PROBLEM_INVALID_LOGIN, true, 0, "Session realm=\"console\""},
        {PROBLEM_CSRF_FAILED, true, 0, ""},
        {PROBLEM_SCOPE_NOT_GRANTABLE, false, SCOPE_ORG_MANAGE, ""},
        {PROBLEM_NOT_FOUND, false, 0, ""},
        {PROBLEM_STORE_UNAVAILABLE, false, 0, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct problem p = problem_of(CASES[i].code);
        p.session_realm = CASES[i].session_realm;
        p.required_scopes = CASES[i].scopes;
        assert_challenges(&p, CASES[i].expected);
    }
}

Test(problem, says_how_a_verdict_on_a_key_is_answered)
{
    static const struct {
        enum key_verdict verdict;
        enum problem_code api_key, device_key;
    } CASES[] = {
        {KEY_ACCEPTED, PROBLEM_NONE, PROBLEM_NONE},
        {KEY_REVOKED, PROBLEM_API_KEY_REVOKED, PROBLEM_DEVICE_KEY_REVOKED},
        {KEY_INVALID, PROBLEM_INVALID_API_KEY, PROBLEM_INVALID_API_KEY},
        {KEY_UNDECIDED, PROBLEM_STORE_UNAVAILABLE, PROBLEM_STORE_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(problem_of_verdict(CASES[i].verdict, KEY_API), CASES[i].api_key, "case %zu", i);
        cr_expect_eq(problem_of_verdict(CASES[i].verdict, KEY_DEVICE), CASES[i].device_key, "case %zu", i);
    }
}
