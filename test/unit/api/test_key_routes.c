/* API keys: what may be granted and what may be seen; and no key stays active whose secret nobody received. */
#include "api/routes.h"
#include "base/metrics.h"
#include "core/secret.h"
#include "fake_world.h"
#include "process.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>

TestSuite(key_routes, .init = world_begin, .fini = world_end);

#define BY_KEY GOOD_KEY JSON_TYPE
#define BY_USER SESSION_COOKIE RIGHT_CSRF JSON_TYPE
#define CREATE "{\"name\":\"n\",\"mode\":\"live\"}"

struct refusal {
    const char *body;
    enum problem_code code;
    const char *param;
};

static void expect_refusal(const struct refusal *refusal)
{
    struct http_request *request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, refusal->body);

    cr_assert_eq(answer_problem(request)->code, refusal->code, "%s: %s", refusal->body, answer_body(request));
    cr_assert_str_eq(answer_problem(request)->param, refusal->param, "%s", refusal->body);
    request_forget(request);
}

Test(key_routes, wrong_parameters)
{
    static const struct refusal CASES[] = {
        {"{}", PROBLEM_PARAMETER_MISSING, "name"},
        {"{\"name\":\"n\"}", PROBLEM_PARAMETER_MISSING, "mode"},
        {"{\"name\":1,\"mode\":\"test\"}", PROBLEM_PARAMETER_INVALID, "name"},
        {"{\"name\":\"\",\"mode\":\"test\"}", PROBLEM_PARAMETER_INVALID, "name"},
        {"{\"name\":\"n\",\"mode\":\"TEST\"}", PROBLEM_PARAMETER_INVALID, "mode"},
        {"{\"name\":\"n\",\"mode\":null}", PROBLEM_PARAMETER_INVALID, "mode"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scopes\":null}", PROBLEM_PARAMETER_INVALID, "scopes"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[]}", PROBLEM_PARAMETER_INVALID, "scopes"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scopes\":\"keys:manage\"}", PROBLEM_PARAMETER_INVALID, "scopes"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[\"keys:manage\",\"x\"]}", PROBLEM_PARAMETER_INVALID, "scopes"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[\"keys:manage\",1]}", PROBLEM_PARAMETER_INVALID, "scopes"},
        {"{\"name\":\"n\",\"mode\":\"test\",\"scope\":[]}", PROBLEM_PARAMETER_UNKNOWN, "scope"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect_refusal(&CASES[i]);
    cr_assert_eq(world.inserts, 0);
}

Test(key_routes, creation)
{
    struct http_request *request = request_send(
        HTTP_POST, "/v1/api_keys", BY_KEY,
        "{\"name\":\"n\",\"mode\":\"test\",\"scopes\":[\"patients:read\",\"exchanges:read\",\"patients:read\"]}");
    const char *secret = strstr(answer_body(request), "\"secret\":\"");
    char location[96];
    enum key_kind kind;
    enum key_mode mode;

    cr_assert_eq(answer_status(request), 201);
    cr_assert(secret);
    cr_assert(secret_parse((struct text){secret + 10, 12 + SECRET_RANDOM_CHARS + SECRET_CHECKSUM_CHARS}, &kind, &mode));
    cr_assert(kind == KEY_API && mode == MODE_TEST);
    cr_assert_eq(world.inserted.scopes, SCOPE_PATIENTS_READ | SCOPE_EXCHANGES_READ);
    cr_assert_eq(world.inserted.created_ms, id_time_ms(&world.inserted.id));
    cr_assert(id_equal(&world.inserted.account, &world.key.account));
    snprintf(location, sizeof location, "Location: /v1/api_keys/%s\n", world.inserted.id.text);
    cr_assert(strstr(answer_headers(request), location), "%s", answer_headers(request));
    cr_assert_eq(world.discards, 0);
    cr_assert_eq(world.wipes, 1);
    request_forget(request);
}

Test(key_routes, creation_in_the_console)
{
    struct http_request *request = request_send(HTTP_POST, "/v1/console/api_keys", BY_USER, CREATE);
    char location[96];

    cr_assert_eq(answer_status(request), 201, "%s", answer_body(request));
    cr_assert_eq(world.inserted.scopes, SCOPE_ALL);
    snprintf(location, sizeof location, "Location: /v1/console/api_keys/%s\n", world.inserted.id.text);
    cr_assert(strstr(answer_headers(request), location), "%s", answer_headers(request));
    request_forget(request);
}

#define DECOY "{\"name\":\"n\",\"mode\":\"live\",\"decoy\":true}"

Test(key_routes, a_decoy_is_revoked_from_the_start)
{
    struct http_request *request = request_send(HTTP_POST, "/v1/console/api_keys", BY_USER, DECOY);

    cr_assert_eq(answer_status(request), 201, "%s", answer_body(request));
    cr_assert_eq(world.inserted.revoked_ms, world.inserted.created_ms);
    cr_assert(strstr(answer_body(request), "\"secret\":\"svc_sk_live_"), "%s", answer_body(request));
    cr_assert(strstr(answer_body(request), "\"revoked_at\":\""), "%s", answer_body(request));
    request_forget(request);

    request =
        request_send(HTTP_POST, "/v1/console/api_keys", BY_USER, "{\"name\":\"n\",\"mode\":\"live\",\"decoy\":false}");
    cr_assert_eq(world.inserted.revoked_ms, 0);
    cr_assert(strstr(answer_body(request), "\"revoked_at\":null"), "%s", answer_body(request));
    request_forget(request);
}

Test(key_routes, only_the_console_creates_decoys)
{
    struct http_request *request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, DECOY);

    cr_assert_eq(answer_problem(request)->code, PROBLEM_PARAMETER_UNKNOWN);
    request_forget(request);
    request =
        request_send(HTTP_POST, "/v1/console/api_keys", BY_USER, "{\"name\":\"n\",\"mode\":\"live\",\"decoy\":1}");
    cr_assert_eq(answer_problem(request)->code, PROBLEM_PARAMETER_INVALID);
    request_forget(request);
    cr_assert_eq(world.inserts, 0);
}

Test(key_routes, a_key_grants_what_it_holds)
{
    static const struct refusal MORE = {"{\"name\":\"n\",\"mode\":\"live\",\"scopes\":[\"org:manage\"]}",
                                        PROBLEM_SCOPE_NOT_GRANTABLE, "scopes"};
    static const struct refusal ALL = {CREATE, PROBLEM_SCOPE_NOT_GRANTABLE, "scopes"};
    struct http_request *request;

    world.key.scopes = SCOPE_KEYS_MANAGE | SCOPE_USAGE_READ;
    expect_refusal(&MORE);
    expect_refusal(&ALL);
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_status(request), 403);
    cr_assert_eq(answer_problem(request)->required_scopes, SCOPE_ALL & ~(SCOPE_KEYS_MANAGE | SCOPE_USAGE_READ));
    request_forget(request);
    cr_assert_eq(world.inserts, 0);

    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY,
                           "{\"name\":\"n\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}");
    cr_assert_eq(answer_status(request), 201);
    request_forget(request);
    world.service.grant_any = true;
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_status(request), 201);
    request_forget(request);
}

Test(key_routes, a_test_key_stays_in_test)
{
    static const struct refusal LIVE = {CREATE, PROBLEM_MODE_NOT_PERMITTED, "mode"};
    static const char *const TARGETS[] = {"/v1/api_keys", "/v1/api_keys/key_01jd0000000000000000000001"};

    world.key.mode = MODE_TEST;
    world.service.grant_any = true;
    expect_refusal(&LIVE);
    for (size_t i = 0; i < 2; i++) {
        request_forget(request_send(HTTP_GET, TARGETS[i], GOOD_KEY, NULL));
        cr_assert(world.view.test_only && id_equal(&world.view.account, &world.key.account));
    }
    request_forget(request_send(HTTP_DELETE, TARGETS[1], GOOD_KEY, NULL));
    cr_assert(world.view.test_only);
    request_forget(request_send(HTTP_GET, "/v1/console/api_keys", SESSION_COOKIE, NULL));
    cr_assert_not(world.view.test_only);
}

static void create_with(enum store_result result, bool delivered, bool leaves, int status, unsigned discards)
{
    struct http_request *request;

    world.discards = 0;
    world.insert_result = result;
    world.delivered = delivered;
    request = (leaves ? request_send_and_leave : request_send)(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_status(request), status, "%d", answer_status(request));
    cr_assert_eq(world.discards, discards, "%u discards", world.discards);
    request_forget(request);
}

Test(key_routes, a_key_whose_secret_nobody_got_is_discarded)
{
    create_with(STORE_OK, true, false, 201, 0);
    create_with(STORE_OK, false, false, 201, 1);
    create_with(STORE_OK, false, true, 0, 1);
    create_with(STORE_UNKNOWN, true, false, 503, 1);
    create_with(STORE_UNKNOWN, true, true, 0, 1);
    create_with(STORE_UNAVAILABLE, true, false, 503, 0);
}

/* The response that the guard would give by now. Nothing was created, so nothing is discarded. */
Test(key_routes, a_credential_that_ended_meanwhile)
{
    static const struct {
        enum store_result result;
        const char *target, *credential;
        enum problem_code code;
    } CASES[] = {
        {STORE_ACTOR_REVOKED, "/v1/api_keys", BY_KEY, PROBLEM_API_KEY_REVOKED},
        {STORE_ACTOR_UNKNOWN, "/v1/api_keys", BY_KEY, PROBLEM_INVALID_API_KEY},
        {STORE_ACTOR_UNKNOWN, "/v1/console/api_keys", BY_USER, PROBLEM_INVALID_SESSION},
        {STORE_ACTOR_UNPROVEN, "/v1/console/api_keys", BY_USER, PROBLEM_STEP_UP_REQUIRED},
        {STORE_ACTOR_ROLE, "/v1/console/api_keys", BY_USER, PROBLEM_ROLE_NOT_PERMITTED},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        bool by_user = strcmp(CASES[i].credential, BY_USER) == 0;
        struct http_request *request;

        world.insert_result = CASES[i].result;
        request = request_send(HTTP_POST, CASES[i].target, CASES[i].credential, CREATE);
        cr_assert_eq(answer_problem(request)->code, CASES[i].code, "case %zu: %s", i, answer_body(request));
        cr_assert_eq(answer_problem(request)->session_realm, by_user);
        cr_assert_eq(world.needs_step_up, by_user);
        request_forget(request);
    }
    cr_assert_eq(world.discards, 0);
}

static enum problem_code create_named(const char *name)
{
    char body[128];
    struct http_request *request;
    enum problem_code code;

    snprintf(body, sizeof body, "{\"name\":\"%s\",\"mode\":\"test\",\"scopes\":[\"keys:manage\"]}", name);
    world.email_asked[0] = '\0';
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, body);
    code = answer_status(request) == 201 ? PROBLEM_COUNT : answer_problem(request)->code;
    request_forget(request);
    return code;
}

/* In the trail it would look like that person, or like the operator. */
Test(key_routes, no_key_is_called_as_somebody_else)
{
    static const char *const TAKEN[] = {"operator", "You", " the  SERVICE ", "Operator, command line"};

    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        cr_assert_eq(create_named(TAKEN[i]), PROBLEM_PARAMETER_INVALID, "%s", TAKEN[i]);
    cr_assert_eq(create_named("Operator’s key"), PROBLEM_COUNT);
    cr_assert_str_eq(world.email_asked, "", "nobody is asked about it");
    cr_assert_eq(create_named("Ada@Example.org"), PROBLEM_COUNT, "nobody has it");
    cr_assert_str_eq(world.email_asked, "ada@example.org");
    world.email_account = id_mint(ID_ACCOUNT, 1);
    cr_assert_eq(create_named("ada@example.org"), PROBLEM_COUNT, "an account of others must not show");
    world.email_account = world.key.account;
    world.inserts = 0;
    cr_assert_eq(create_named("ada@example.org"), PROBLEM_PARAMETER_INVALID);
    world.owner_result = STORE_UNAVAILABLE;
    cr_assert_eq(create_named("ada@example.org"), PROBLEM_STORE_UNAVAILABLE);
    cr_assert_eq(world.inserts, 0);
}

Test(key_routes, as_many_as_there_may_be)
{
    struct http_request *request;

    world.insert_result = STORE_FULL;
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_KEY_LIMIT_REACHED);
    cr_assert_eq(answer_status(request), 409);
    request_forget(request);
    world.insert_result = STORE_LIMITED;
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_RATE_LIMITED);
    cr_assert_eq(answer_problem(request)->retry_after_s, 17);
    request_forget(request);
    cr_assert_eq(world.discards, 0);
}

/* A store that is ready may refuse a change. A read that fails has another reason. */
Test(key_routes, whoever_asks_for_a_change_is_told_why_it_was_refused)
{
    struct http_request *request;

    world.store_refusal = "It is full.";
    world.insert_result = STORE_UNAVAILABLE;
    request = request_send(HTTP_POST, "/v1/api_keys", BY_KEY, CREATE);
    cr_assert_eq(answer_problem(request)->code, PROBLEM_STORE_UNAVAILABLE);
    cr_assert_str_eq(problem_message(answer_problem(request)), "It is full.");
    request_forget(request);
    world.session_result = STORE_UNAVAILABLE;
    request = request_send(HTTP_GET, "/v1/console/session", SESSION_COOKIE, "");
    cr_assert_eq(answer_problem(request)->code, PROBLEM_STORE_UNAVAILABLE);
    cr_assert_str_eq(problem_message(answer_problem(request)), "The store did not answer. You may repeat the request.");
    request_forget(request);
}

#define ONE_KEY "/v1/api_keys/key_01jd0000000000000000000001"

Test(key_routes, renaming)
{
    struct http_request *request = request_send(HTTP_PATCH, ONE_KEY, BY_KEY, "{\"name\":\"Another\"}");

    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_expect(strstr(answer_body(request), "\"name\":\"Another\""), "%s", answer_body(request));
    cr_expect(world.view.kind == KEY_API && id_equal(&world.view.account, &world.key.account));
    request_forget(request);
    /* A malformed name is told of before an id that is none. */
    request = request_send(HTTP_PATCH, "/v1/api_keys/x", BY_KEY, "{\"name\":\"\"}");
    cr_expect_eq(answer_problem(request)->code, PROBLEM_PARAMETER_INVALID);
    request_forget(request);
    request = request_send(HTTP_PATCH, "/v1/api_keys/x", BY_KEY, "{\"name\":\"Another\"}");
    cr_expect_eq(answer_problem(request)->code, PROBLEM_API_KEY_NOT_FOUND);
    request_forget(request);
    world.insert_result = STORE_LIMITED;
    request = request_send(HTTP_PATCH, ONE_KEY, BY_KEY, "{\"name\":\"Another\"}");
    cr_expect_eq(answer_problem(request)->code, PROBLEM_RATE_LIMITED);
    request_forget(request);
    world.insert_result = STORE_UNKNOWN;
    request = request_send(HTTP_PATCH, ONE_KEY, BY_KEY, "{\"name\":\"Another\"}");
    cr_expect_eq(answer_problem(request)->code, PROBLEM_STORE_UNAVAILABLE);
    request_forget(request);
}

Test(key_routes, revocation)
{
    static const struct {
        enum store_result result;
        int status;
        enum problem_code code;
    } CASES[] = {
        {STORE_OK, 200, PROBLEM_NONE},
        {STORE_NOT_FOUND, 404, PROBLEM_API_KEY_NOT_FOUND},
        {STORE_UNAVAILABLE, 503, PROBLEM_STORE_UNAVAILABLE},
        {STORE_UNKNOWN, 503, PROBLEM_STORE_UNAVAILABLE},
        {STORE_ACTOR_REVOKED, 401, PROBLEM_API_KEY_REVOKED},
        {STORE_ACTOR_UNKNOWN, 401, PROBLEM_INVALID_API_KEY},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.revoke_result = CASES[i].result;
        request = request_send(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL);
        cr_assert_eq(answer_status(request), CASES[i].status);
        cr_assert_eq(answer_problem(request)->code, CASES[i].code);
        request_forget(request);
    }
}

#define LISTED(n) "\"key_01jd000000000000000000000" n "\""
#define LIST_OF(ids) "{\"ids\":[" ids "]}"
#define REVOKE_LIST "/v1/api_keys/revoke"

Test(key_routes, a_list_is_revoked)
{
    struct http_request *request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY,
                                                LIST_OF(LISTED("3") "," LISTED("2") "," LISTED("1") "," LISTED("3")));

    cr_assert_eq(answer_status(request), 200);
    cr_assert_str_eq(answer_body(request), "{\"revoked\":[" LISTED("1") "],\"already_revoked\":[" LISTED(
                                               "2") "],\"not_found\":[" LISTED("3") "]}");
    cr_assert_eq(world.list_count, 3, "each once");
    cr_assert_not(world.view.test_only);
    cr_assert_eq(world.view.kind, KEY_API);
    cr_assert_eq(world.body_raised_to, API_BODY_RAISED_MAX_BYTES);
    request_forget(request);
    world.key.mode = MODE_TEST;
    request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, LIST_OF(LISTED("1")));
    cr_assert(world.view.test_only);
    request_forget(request);
    request = request_send(HTTP_POST, "/v1/console/api_keys/revoke", BY_USER, LIST_OF(LISTED("1")));
    cr_assert_eq(answer_status(request), 200, "%s", answer_body(request));
    cr_assert_not(world.view.test_only);
    cr_assert_not(world.needs_step_up);
    request_forget(request);
}

/* A revocation that is made never waits for this. */
Test(key_routes, unknown_keys_count_as_changes)
{
    struct http_request *request;

    for (unsigned limited = 0; limited < 2; limited++) {
        world.missed_result = limited ? STORE_LIMITED : STORE_UNAVAILABLE;
        world.revoke_result = STORE_NOT_FOUND;
        request = request_send(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL);
        cr_expect_eq(answer_status(request), limited ? 429 : 404);
        cr_expect_eq(world.missed, 4 * limited + 1);
        cr_expect_not(world.misses_email);
        request_forget(request);
        world.revoke_result = STORE_OK;
        request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, LIST_OF(LISTED("3") "," LISTED("4") "," LISTED("5")));
        cr_expect_eq(answer_status(request), limited ? 429 : 200);
        cr_expect_eq(world.missed, 4 * limited + 4);
        request_forget(request);
    }
    request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, LIST_OF(LISTED("1") "," LISTED("4") "," LISTED("5")));
    cr_expect_eq(answer_status(request), 200, "what was revoked is always said");
    cr_expect_eq(world.missed, 10);
    request_forget(request);
    request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, LIST_OF(LISTED("1") "," LISTED("4")));
    cr_expect_eq(answer_status(request), 200);
    request_forget(request);
    request = request_send(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL);
    cr_expect_eq(answer_status(request), 200);
    request_forget(request);
    world.revoke_result = STORE_NOT_FOUND;
    request = request_send_and_leave(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL);
    cr_expect_eq(answer_status(request), 0);
    cr_expect_eq(world.missed, 11, "also without a client");
    request_forget(request);
}

Test(key_routes, a_list_that_is_none)
{
    static const char *const BODIES[] = {
        LIST_OF(""),
        LIST_OF("1"),
        LIST_OF("null"),
        LIST_OF(LISTED("1") ",\"x\""),
        LIST_OF("\"dev_01jd0000000000000000000001\""),
        LIST_OF("\"KEY_01JD0000000000000000000001\""),
    };

    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++) {
        struct http_request *request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, BODIES[i]);

        cr_assert_eq(answer_problem(request)->code, PROBLEM_PARAMETER_INVALID, "%s", BODIES[i]);
        cr_assert_str_eq(answer_problem(request)->param, "ids");
        request_forget(request);
    }
    cr_assert_eq(world.list_count, 0);
}

/* 10,000, and one more. */
Test(key_routes, a_list_is_bounded)
{
    static char body[(REVOKE_LIST_MAX + 1) * 40];

    for (size_t count = REVOKE_LIST_MAX; count <= REVOKE_LIST_MAX + 1; count++) {
        struct http_request *request;
        struct buf out;

        buf_init_fixed(&out, body, sizeof body - 1);
        buf_append_str(&out, "{\"ids\":[");
        for (size_t i = 0; i < count; i++)
            buf_printf(&out, "%s\"key_01jd%022zu\"", i > 0 ? "," : "", i);
        buf_append_str(&out, "]}");
        body[out.len] = '\0';
        cr_assert_not(out.failed);
        cr_assert_leq(out.len, API_BODY_RAISED_MAX_BYTES);
        request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, body);
        cr_assert_eq(answer_status(request), count == REVOKE_LIST_MAX ? 200 : 400, "%zu", count);
        request_forget(request);
    }
    cr_assert_eq(world.list_count, REVOKE_LIST_MAX);
}

Test(key_routes, a_list_that_is_not_known_to_be_revoked)
{
    static const struct {
        enum store_result result;
        int status;
    } CASES[] = {{STORE_UNAVAILABLE, 503},
                 {STORE_UNKNOWN, 503},
                 {STORE_ACTOR_REVOKED, 401},
                 {STORE_SUSPENDED, 403},
                 {STORE_LEAVING, 429}};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_request *request;

        world.revoke_result = CASES[i].result;
        request = request_send(HTTP_POST, REVOKE_LIST, BY_KEY, LIST_OF(LISTED("1")));
        cr_assert_eq(answer_status(request), CASES[i].status, "%zu: %d", i, answer_status(request));
        request_forget(request);
    }
}

Test(key_routes, what_is_no_id_names_no_key)
{
    static const char *const TARGETS[] = {"/v1/api_keys/x", "/v1/api_keys/dev_01jd0000000000000000000001",
                                          "/v1/api_keys/KEY_01JD0000000000000000000001"};

    for (size_t i = 0; i < sizeof TARGETS / sizeof *TARGETS; i++) {
        struct http_request *request = request_send(HTTP_DELETE, TARGETS[i], GOOD_KEY, NULL);

        cr_assert_eq(answer_problem(request)->code, PROBLEM_API_KEY_NOT_FOUND, "%s", TARGETS[i]);
        request_forget(request);
    }
    cr_assert_eq(world.revokes, 0);
}

static void expect_revocation_answered(void)
{
    struct http_request *request =
        request_send(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL);

    cr_assert_eq(answer_status(request), 200);
    request_forget(request);
}

static void open_log(const char *path)
{
    char why_storage[512];
    struct buf why;

    buf_init_fixed(&why, why_storage, sizeof why_storage);
    world.service.revocation_log = revocation_log_open(path, &why);
    cr_assert(world.service.revocation_log);
}

static void open_log_in(char folder[PROCESS_PATH_BYTES], char path[PROCESS_PATH_BYTES + 16])
{
    folder_make(folder);
    snprintf(path, PROCESS_PATH_BYTES + 16, "%.180s/revocations", folder);
    open_log(path);
}

Test(key_routes, revocations_that_are_known_to_be_done_are_logged)
{
    int64_t failed = metric_values[METRIC_REVOCATION_LOG_FAILED];
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];

    open_log_in(folder, path);
    world.revoke_result = STORE_UNKNOWN;
    request_forget(request_send(HTTP_DELETE, "/v1/api_keys/key_01jd0000000000000000000001", GOOD_KEY, NULL));
    world.revoke_result = STORE_OK;
    char *content = file_read(path);
    cr_expect_str_empty(content, "not done, not logged");
    free(content);
    expect_revocation_answered();
    content = file_read(path);
    cr_expect_not_null(strstr(content, world.key.id.text), "%s", content);
    cr_expect_not_null(strstr(content, "5707e5707e5707e5707e5707e5707e57"), "of which store: %s", content);
    free(content);
    cr_expect_eq(metric_values[METRIC_REVOCATION_LOG_FAILED], failed);
    revocation_log_close(world.service.revocation_log);
    folder_remove(folder);
}

/* The end is withdrawn with a new key that was not delivered: a replay of the log would leave neither. */
Test(key_routes, a_replaced_key_is_logged_once_the_new_one_is_delivered)
{
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];

    open_log_in(folder, path);
    world.key.ends_ms = 5000;
    request_forget(request_send_and_leave(HTTP_POST, "/v1/api_keys/key_01jd0000000000000000000001/replacement", BY_KEY,
                                          "{\"overlap_seconds\":60}"));
    cr_expect_eq(world.discards, 0, "nobody waits for it: it may have been repeated elsewhere");
    world.delivered = false;
    request_forget(request_send(HTTP_POST, "/v1/api_keys/key_01jd0000000000000000000001/replacement", BY_KEY,
                                "{\"overlap_seconds\":60}"));
    cr_expect_eq(world.discards, 1);
    char *content = file_read(path);
    cr_expect_str_empty(content);
    free(content);
    world.delivered = true;
    request_forget(request_send(HTTP_POST, "/v1/api_keys/key_01jd0000000000000000000001/replacement", BY_KEY,
                                "{\"overlap_seconds\":60}"));
    cr_expect_eq(world.discards, 1);
    content = file_read(path);
    cr_expect_not_null(strstr(content, " scheduled key_"), "%s", content);
    free(content);
    revocation_log_close(world.service.revocation_log);
    folder_remove(folder);
}

/* Ends that no request has changed: a replay goes by the last line of a key. */
Test(key_routes, ends_that_change_by_themselves_are_logged)
{
    char folder[PROCESS_PATH_BYTES], path[PROCESS_PATH_BYTES + 16];
    const char *withdrawn, *scheduled, *revoked;

    open_log_in(folder, path);
    world.key.revoked_ms = world.key.ends_ms = 0;
    api_log_ended_key(&world.service, &world.key, 7000, "not delivered");
    world.key.ends_ms = 9000;
    api_log_ended_key(&world.service, &world.key, 8000, "not delivered");
    world.key.ends_ms = 0;
    world.key.revoked_ms = 10000;
    api_log_ended_key(&world.service, &world.key, 0, "replaced");
    char *content = file_read(path);
    withdrawn = strstr(content, "1970-01-01T00:00:07.000Z withdrawn key_");
    scheduled = strstr(content, "1970-01-01T00:00:08.000Z scheduled key_");
    revoked = strstr(content, "1970-01-01T00:00:10.000Z key_");
    cr_expect(withdrawn && scheduled > withdrawn && revoked > scheduled, "%s", content);
    free(content);
    revocation_log_close(world.service.revocation_log);
    folder_remove(folder);
}

Test(key_routes, a_full_disk_stops_no_revocation)
{
    int64_t failed = metric_values[METRIC_REVOCATION_LOG_FAILED];

    open_log("/dev/full");
    expect_revocation_answered();
    expect_revocation_answered();
    cr_expect_eq(metric_values[METRIC_REVOCATION_LOG_FAILED], failed + 2);
    revocation_log_close(world.service.revocation_log);
}
