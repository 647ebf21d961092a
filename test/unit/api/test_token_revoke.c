/* POST /v1/auth/revoke: the secret in the body is the proof, and the response tells nothing about it. */
#include "fake_world.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(token_revoke, .init = world_begin, .fini = world_end);

#define ROUTE "/v1/auth/revoke"
#define LIVE "svc_sk_live_000000000000000000000000000000001Z5csm"
#define TEST "svc_sk_test_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA4FXCzn"
#define DEVICE "svc_dk_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz1uMtjb"

static struct http_request *send_with(const char *headers, const char *body)
{
    char all[256];

    snprintf(all, sizeof all, "%s%s", FORM_TYPE, headers);
    return request_send(HTTP_POST, ROUTE, all, body);
}

static void expect_empty_200(struct http_request *request, const char *what)
{
    cr_expect_eq(answer_status(request), 200, "%s: %d %s", what, answer_status(request), answer_body(request));
    cr_expect_str_eq(answer_body(request), "", "%s", what);
    request_forget(request);
}

Test(token_revoke, every_kind_of_key)
{
    static const char *const BODIES[] = {
        "token=" LIVE, "token=" TEST "&token_type_hint=access_token",
        "token_type_hint=anything&unknown=1&token=" DEVICE,
        "token=%20" LIVE "%0D%0A", /* as a file with a secret is sent */
    };

    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        expect_empty_200(send_with("", BODIES[i]), BODIES[i]);
        cr_expect_eq(world.helds, i + 1, "%s", BODIES[i]);
    }
}

Test(token_revoke, the_digest_is_that_of_the_secret_alone)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];

    expect_empty_200(send_with("", "token=+" LIVE "%0A"), "trimmed");
    keyring_digest(world.service.keyring, KEYRING_KEY_DIGEST, 0, TEXT(LIVE), digest);
    cr_expect_arr_eq(world.held_secret.of[0], digest, sizeof digest);
}

Test(token_revoke, what_is_no_secret_asks_nobody)
{
    static const char *const TOKENS[] = {
        "x",
        "svc_sk_live_",
        "svc_sk_live_000000000000000000000000000000000000001",
        LIVE "0",
        LIVE "%200",
        "svc_sk_test_00000000000000000000000000000000000000",
        "svc_sk_live_0000000000000000000000000000000!000000",
        "%F0%9F%94%91",
    };
    char body[128];

    for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++) {
        snprintf(body, sizeof body, "token=%s", TOKENS[i]);
        expect_empty_200(send_with("", body), TOKENS[i]);
    }
    cr_expect_eq(world.helds, 0);
}

Test(token_revoke, a_request_without_one_token)
{
    static const char *const BODIES[] = {
        "",
        "token=",
        "token_type_hint=access_token",
        "token=" LIVE "&token=" LIVE,
        "token=" LIVE "&token_type_hint=a&token_type_hint=b",
        "token=" LIVE "%00",
        "token=%ff",
        "token=%zz",
    };

    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct http_request *request = send_with("", BODIES[i]);

        cr_expect_eq(answer_status(request), 400, "%s: %d", BODIES[i], answer_status(request));
        cr_expect(strstr(answer_body(request), "{\"error\":\"invalid_request\","), "%s: %s", BODIES[i],
                  answer_body(request));
        request_forget(request);
    }
    cr_expect_eq(world.helds, 0);
}

/* The fake check knows "good" and "revoked". A cookie comes from a browser by itself, and has no part in it either. */
Test(token_revoke, no_credential_matters)
{
    static const char *const HEADERS[] = {
        GOOD_KEY,
        "Authorization: Bearer revoked\n",
        "Authorization: Bearer unknown\n",
        "Authorization: Basic Y2xpZW50OnNlY3JldA==\n",
        SESSION_COOKIE,
    };

    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++)
        expect_empty_200(send_with(HEADERS[i], "token=" LIVE), HEADERS[i]);
    cr_expect_eq(world.helds, sizeof HEADERS / sizeof *HEADERS);
    cr_expect_eq(world.uses, 0);
}

Test(token_revoke, what_the_store_says)
{
    static const struct {
        enum store_result result;
        int status;
    } CASES[] = {
        {STORE_OK, 200}, {STORE_NOT_FOUND, 200}, {STORE_REFUSED, 429}, {STORE_UNKNOWN, 503}, {STORE_UNAVAILABLE, 503},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.held_result = CASES[i].result;
        request = send_with("", "token=" LIVE);
        cr_expect_eq(answer_status(request), CASES[i].status, "%zu: %d", i, answer_status(request));
        cr_expect(CASES[i].result != STORE_REFUSED || answer_problem(request)->code == PROBLEM_RATE_LIMITED);
        request_forget(request);
    }
}

/* Otherwise any page could let its visitors' browsers use up the limit of their network. */
Test(token_revoke, pages_elsewhere_cannot_guess)
{
    struct http_request *request = send_with("Origin: https://elsewhere.test\n", "token=" LIVE);

    cr_assert_eq(answer_problem(request)->code, PROBLEM_CSRF_FAILED);
    request_forget(request);
    cr_expect_eq(world.helds, 0);
}

Test(token_revoke, other_types_are_refused)
{
    struct http_request *request = request_send(HTTP_POST, ROUTE, JSON_TYPE, "{\"token\":\"" LIVE "\"}");

    cr_assert_eq(answer_problem(request)->code, PROBLEM_UNSUPPORTED_MEDIA_TYPE);
    request_forget(request);
    cr_expect_eq(world.helds, 0);
}

Test(token_revoke, a_client_that_leaves)
{
    request_forget(request_send_and_leave(HTTP_POST, ROUTE, FORM_TYPE, "token=" LIVE));
    cr_expect_eq(world.helds, 1);
}
