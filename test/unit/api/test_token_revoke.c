/* POST /v1/auth/revoke: the secret in the body is the proof, and the response tells nothing about it. */
#include "core/secret.h"
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

/* What people paste in a hurry. */
Test(token_revoke, every_secret_in_the_text_is_meant)
{
    static const struct {
        const char *token;
        unsigned secrets;
    } CASES[] = {
        {"curl+-H+'X-API-Key:+" LIVE "'+https://api.example.org", 1},
        {"Authorization:+Bearer+" LIVE, 1},
        {"%22" TEST "%22,", 1},
        {"_" DEVICE "_", 1},
        {"%EF%BB%BF" LIVE "%C2%A0", 1},
        {"%E2%80%8B" LIVE, 1},
        {LIVE "0", 1},
        {LIVE "%200", 1},
        {LIVE "%0A" LIVE "%0A", 1}, /* once */
        {"a;" LIVE "%0Ab;" TEST "%0Ac;" DEVICE, 3},
        {LIVE TEST, 2},
        {"svc_sk_live_wrapped%0A+" DEVICE, 1},
    };
    char body[256];

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world.helds = 0;
        snprintf(body, sizeof body, "token=%s", CASES[i].token);
        expect_empty_200(send_with("", body), CASES[i].token);
        cr_expect_eq(world.helds, CASES[i].secrets, "%s: %u", CASES[i].token, world.helds);
    }
}

Test(token_revoke, what_is_no_secret_asks_nobody)
{
    static const char *const TOKENS[] = {"x", "svc_", "live_000000000000000000000000000000001Z5csm", "%F0%9F%94%91"};
    char body[128];

    for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++) {
        snprintf(body, sizeof body, "token=%s", TOKENS[i]);
        expect_empty_200(send_with("", body), TOKENS[i]);
    }
    cr_expect_eq(world.helds, 0);
}

static void expect_invalid(struct http_request *request, const char *what, const char *says)
{
    cr_expect_eq(answer_status(request), 400, "%s: %d", what, answer_status(request));
    cr_expect_eq(answer_problem(request)->code, PROBLEM_PARAMETER_INVALID, "%s", what);
    cr_expect_str_eq(answer_problem(request)->param, "token", "%s", what);
    cr_expect(strstr(answer_body(request), says), "%s: %s", what, answer_body(request));
    cr_expect_not(strstr(answer_body(request), "svc_"), "%s", what);
    request_forget(request);
}

/* 200 would tell its holder that the key is dead. */
Test(token_revoke, a_secret_that_is_not_whole_is_refused)
{
    static const char *const TOKENS[] = {
        "svc_sk_live_",
        "svc_sk_liv",
        "svc_dk_",
        "X-API-Key:+svc_sk_live_0000000000000000000000000000",
        "svc_sk_live_00000000000000000000%0A0000000000001Z5csm",
        "svc_sk_live_000000000000000000000000000000000000001",
        "svc_sk_test_00000000000000000000000000000000000000",
        "svc_sk_live_0000000000000000000000000000000!000000",
    };
    char body[128];

    for (size_t i = 0; i < sizeof TOKENS / sizeof *TOKENS; i++) {
        snprintf(body, sizeof body, "token=%s", TOKENS[i]);
        expect_invalid(send_with("", body), TOKENS[i], "cut, mistyped or wrapped");
    }
    cr_expect_eq(world.helds, 0);
}

enum { MANY = 101, MANY_BYTES = 8192 };

static void append_secret(char *body, unsigned number)
{
    size_t len = strlen(body);
    uint8_t bytes[SECRET_BYTES];
    struct secret secret;

    memset(bytes, (int)(number % 62), sizeof bytes);
    bytes[0] = (uint8_t)(number / 62);
    cr_assert(secret_from_bytes(KEY_API, MODE_LIVE, bytes, &secret));
    snprintf(body + len, MANY_BYTES - len, "%s+", secret.text);
}

Test(token_revoke, a_hundred_at_once_and_not_one_more)
{
    char body[MANY_BYTES] = "token=";

    for (unsigned i = 0; i < MANY - 1; i++)
        append_secret(body, i);
    expect_empty_200(send_with("", body), "a hundred");
    cr_expect_eq(world.helds, MANY - 1);
    append_secret(body, 0);
    expect_empty_200(send_with("", body), "and one of them again");
    world.helds = 0;
    append_secret(body, MANY - 1);
    expect_invalid(send_with("", body), "one more", "at most 100");
    cr_expect_eq(world.helds, 0);
}

/* The response waits for all, and tells the worst: a key that lives comes before a guess that must wait. */
Test(token_revoke, what_becomes_of_one_keeps_no_other_alive)
{
    static const struct {
        enum store_result results[3], counting;
        int status;
        unsigned misses;
    } CASES[] = {
        {{STORE_OK, STORE_OK, STORE_OK}, STORE_REFUSED, 200, 0},
        {{STORE_NOT_FOUND, STORE_OK, STORE_NOT_FOUND}, STORE_OK, 200, 1},
        {{STORE_NOT_FOUND, STORE_OK, STORE_NOT_FOUND}, STORE_REFUSED, 429, 1},
        {{STORE_NOT_FOUND, STORE_OK, STORE_OK}, STORE_UNKNOWN, 503, 1},
        {{STORE_OK, STORE_UNKNOWN, STORE_OK}, STORE_REFUSED, 503, 0},
        {{STORE_UNAVAILABLE, STORE_NOT_FOUND, STORE_OK}, STORE_REFUSED, 503, 1},
        {{STORE_OK, STORE_NOT_FOUND, STORE_UNAVAILABLE}, STORE_OK, 503, 1},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.helds = world.misses = 0;
        world.held_results = CASES[i].results;
        world.miss_result = CASES[i].counting;
        request = send_with("", "token=" LIVE "+" TEST "+" DEVICE);
        cr_expect_eq(answer_status(request), CASES[i].status, "%zu: %d", i, answer_status(request));
        cr_expect_eq(world.helds, 3);
        cr_expect_eq(world.misses, CASES[i].misses, "%zu: %u", i, world.misses);
        request_forget(request);
    }
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
        enum store_result result, counting;
        int status;
    } CASES[] = {
        {STORE_OK, STORE_OK, 200},
        {STORE_NOT_FOUND, STORE_OK, 200},
        {STORE_NOT_FOUND, STORE_REFUSED, 429},
        {STORE_NOT_FOUND, STORE_UNAVAILABLE, 503},
        {STORE_UNKNOWN, STORE_OK, 503},
        {STORE_UNAVAILABLE, STORE_OK, 503},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.held_result = CASES[i].result;
        world.miss_result = CASES[i].counting;
        request = send_with("", "token=" LIVE);
        cr_expect_eq(answer_status(request), CASES[i].status, "%zu: %d", i, answer_status(request));
        cr_expect(CASES[i].counting != STORE_REFUSED || answer_problem(request)->code == PROBLEM_RATE_LIMITED);
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
