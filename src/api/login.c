/* Signs users in to the console and out of it. */
#include "attempt_internal.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/secure.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "session_cookie_internal.h"
#include "store/seal_store.h"
#include "user_check_internal.h"
#include "views_internal.h"

#include <stdio.h>

typedef void session_view(struct json_writer *w, const struct session_record *session, struct text csrf_token,
                          int64_t idle_expires_ms);

static void reply_session(struct exchange *exchange, const struct session_record *session, session_view *view)
{
    char storage[ANSWER_SMALL_BYTES], csrf[CSRF_TOKEN_CHARS + 1];
    struct buf out;

    csrf_token_print(exchange->service->keyring, session->sid, csrf);
    buf_init_fixed(&out, storage, sizeof storage);
    view(&(struct json_writer){.out = &out}, session, text_of(csrf),
         http_request_wall_ms(exchange->request) + exchange->service->session_limits.idle_ms);
    http_reply_json(exchange->request, 200, &out);
    secure_wipe(storage, sizeof storage);
    secure_wipe(csrf, sizeof csrf);
}

/* POST /v1/auth/login: count the attempt, check password and code, then mark the code as used and create the
 * session. */

struct login_input {
    struct text email, password, totp;
};

struct login {
    struct exchange *exchange;
    char email[EMAIL_MAX_BYTES + 1];
    struct attempt_counters of_strangers, of_browser;
    struct login_attempt attempt;
    /* Of the cookie that came with the request, or else of the one in the response. */
    char browser_digest[2 * KEYRING_DIGEST_BYTES + 1];
    struct password_turn turn;
    bool is_locked, is_disabled;
    struct user_check check;
    struct token token, browser; /* wiped when the request is freed */
    uint8_t token_digest[KEYRING_DIGEST_BYTES];
    uint8_t presented_digest[KEYRING_DIGEST_BYTES];
    bool is_presented;
    char sid[ID_TEXT_BYTES];
};

static bool login_read(struct login *op);
static void login_count(struct login *op);
static void login_counted(void *arg, enum store_result result, const struct login_begin *begin);
static void login_checked(void *arg, enum user_check_result result);
static void login_create(struct login *op);
static void login_stored(void *arg, enum store_result result, const struct session_record *session);
static void login_renew(struct login *op);
static void login_rehashed(void *arg, const char *hash);
static void login_renewed(void *arg, enum store_result result);
static void login_fail(struct login *op, bool only_code_wrong);
static void login_recorded(void *arg, enum store_result result, const struct login_failure *failure);

void login_begin(struct exchange *exchange)
{
    struct login *op = http_request_alloc(exchange->request, sizeof *op);
    const struct service *service = exchange->service;

    op->exchange = exchange;
    if (!login_read(op))
        return;
    http_request_defer(exchange->request, token_wipe, &op->token);
    http_request_defer(exchange->request, token_wipe, &op->browser);
    op->is_presented = session_cookie_digest(exchange, op->presented_digest);
    login_count(op);

    const struct login_browser browser = {text_of(op->browser_digest), attempt_counters_text(&op->of_browser)};
    http_request_hold(exchange->request);
    session_store_begin_login(service->store, text_of(op->email), &op->attempt, &browser, login_counted, op);
}

/* Checks only the form of the input: a 400 must not reveal which emails exist. False if the exchange has been
 * refused. */
static bool login_read(struct login *op)
{
    static const struct json_field FIELDS[] = {
        {"email", JSON_FIELD_TEXT, true, offsetof(struct login_input, email)},
        {"password", JSON_FIELD_TEXT, true, offsetof(struct login_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct login_input, totp)},
    };
    struct login_input input = {0};
    const char *wrong = NULL;

    if (!exchange_read_body(op->exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!account_normalise_email(input.email, op->email))
        wrong = "email";
    else if (!user_check_code_has_form(input.totp))
        wrong = "totp";
    if (wrong)
        exchange_refuse_with(op->exchange, problem_param(PROBLEM_PARAMETER_INVALID, text_of(wrong)));
    op->check.exchange = op->exchange;
    op->check.password = input.password;
    op->check.totp = input.totp;
    return !wrong;
}

static void browser_print_digest(struct login *op)
{
    uint8_t digest[KEYRING_DIGEST_BYTES];
    struct buf out;

    CHECK(token_digest(op->exchange->service->keyring, KEYRING_THROTTLE, text_of(op->browser.text), digest));
    buf_init_fixed(&out, op->browser_digest, sizeof op->browser_digest);
    encode_hex(&out, digest, sizeof digest);
    buf_append_char(&out, '\0');
    CHECK(!out.failed);
}

/* Counts a stranger by network, by email, and by both together. An IPv6 /48 has 256 networks of /56, so they also share
 * a counter, and their passwords wait in one queue. */
static void login_count(struct login *op)
{
    const struct exchange *exchange = op->exchange;
    struct keyring *keyring = exchange->service->keyring;
    struct text email = text_of(op->email), none = {0};
    struct text network = exchange_client_block(exchange, 24, 56), wide = exchange_client_block(exchange, 0, 48);

    attempt_count(&op->of_strangers, keyring, TEXT("pair"), email, network);
    attempt_count(&op->of_strangers, keyring, TEXT("email"), email, none);
    attempt_count(&op->of_strangers, keyring, TEXT("network"), network, none);
    if (wide.len)
        attempt_count(&op->of_strangers, keyring, TEXT("wide"), wide, none);
    op->turn = (struct password_turn){PASSWORD_STRANGER, op->of_strangers.source};
    op->attempt = (struct login_attempt){http_request_id(exchange->request), attempt_counters_text(&op->of_strangers)};
    if (browser_cookie_read(exchange, &op->browser)) {
        attempt_count(&op->of_browser, keyring, TEXT("browser"), email, text_of(op->browser.text));
        browser_print_digest(op);
    }
}

static void login_throttle(struct login *op, struct text user, uint32_t retry_after_s)
{
    metric_add(METRIC_LOGIN_THROTTLED, 1);
    exchange_log(op->exchange, "login throttled", (struct text){0}, (struct text){0}, user);
    exchange_refuse_throttled(op->exchange, retry_after_s);
}

static void login_refuse_store(struct login *op, enum store_result result)
{
    metric_add(result == STORE_SUSPENDED ? METRIC_LOGIN_REFUSED : METRIC_LOGIN_UNAVAILABLE, 1);
    exchange_refuse_store(op->exchange, result);
}

static void login_counted(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct login *op = arg;

    if (result == STORE_OK) {
        op->is_locked = begin->is_locked;
        op->is_disabled = begin->user && begin->user->disabled_ms > 0;
        if (begin->browser_is_known) {
            op->attempt.counters = attempt_counters_text(&op->of_browser);
            op->turn = (struct password_turn){PASSWORD_KNOWN, op->of_browser.source};
        }
        user_check_begin(&op->check, begin->user, &op->turn, login_checked, op);
        return;
    }
    if (result == STORE_REFUSED)
        login_throttle(op, begin->throttled_is_known ? id_text(&begin->throttled) : (struct text){0},
                       begin->retry_after_s);
    else
        login_refuse_store(op, result);
    http_request_release(op->exchange->request);
}

static void sid_mint(char ret_sid[ID_TEXT_BYTES])
{
    uint8_t bytes[16];
    struct buf out;

    random_secret(bytes, sizeof bytes);
    buf_init_fixed(&out, ret_sid, ID_TEXT_BYTES - 1);
    encode_base64url(&out, bytes, sizeof bytes);
    ret_sid[out.len] = '\0';
}

/* The response must not reveal that a user is locked or disabled, so their right password and code count as wrong. */
static void login_checked(void *arg, enum user_check_result result)
{
    struct login *op = arg;

    if (result == USER_CHECK_OVERLOADED || result == USER_CHECK_CANCELLED) {
        metric_add(result == USER_CHECK_OVERLOADED ? METRIC_LOGIN_OVERLOADED : METRIC_LOGIN_UNAVAILABLE, 1);
        session_store_give_back(op->exchange->service->store, &op->attempt);
        user_check_refuse(&op->check, result);
        http_request_release(op->exchange->request);
    } else if (result != USER_CHECK_RIGHT || op->is_locked || op->is_disabled) {
        login_fail(op, result == USER_CHECK_WRONG_CODE && !op->is_locked && !op->is_disabled);
    } else {
        login_create(op);
    }
}

/* A browser keeps its token whoever signs in, so that all people who share a workstation are known there. */
static void browser_make_known(struct login *op)
{
    if (op->browser_digest[0])
        return;
    token_mint(&op->browser);
    browser_print_digest(op);
}

static void login_create(struct login *op)
{
    const struct service *service = op->exchange->service;
    struct audit_source source = exchange_source(op->exchange);

    source.actor = id_text(&op->check.user.id);
    sid_mint(op->sid);
    token_mint(&op->token);
    browser_make_known(op);
    CHECK(token_digest(service->keyring, KEYRING_SESSION_DIGEST, text_of(op->token.text), op->token_digest));
    const struct session_start start = {
        .user = op->check.user.id,
        .account = op->check.user.account,
        .totp_step = op->check.totp_step,
        .token_digest = op->token_digest,
        .sid = op->sid,
        .attempt = op->attempt,
        .browser_digest = text_of(op->browser_digest),
        .presented_digest = op->is_presented ? op->presented_digest : NULL,
        .verified = &op->check.user,
    };
    session_store_create(service->store, &start, &service->session_limits, &source, login_stored, op);
}

static void login_reply(struct login *op, const struct session_record *session)
{
    metric_add(METRIC_LOGIN_OK, 1);
    session_cookie_set(op->exchange, &op->token);
    browser_cookie_set(op->exchange, &op->browser);
    reply_session(op->exchange, session, view_login);
    exchange_log(op->exchange, "login", id_text(&session->user.account), id_text(&session->user.id), text_of(op->sid));
}

/* After the response, rehashes a password that was hashed under a retired master key: only here is it available in
 * clear. Not while nodes of an earlier version may serve, because they cannot read the new hash. */
static void login_renew(struct login *op)
{
    const struct service *service = op->exchange->service;
    const struct user_check *check = &op->check;
    size_t generation;

    if (!password_hash_generation(service->keyring, check->user.password_hash, &generation) || generation == 0 ||
        store_takes_unsealed(service->store))
        http_request_release(op->exchange->request);
    else
        password_rehash(service->passwords, &op->turn, check->password, id_text(&check->user.id), login_rehashed, op);
}

static void login_rehashed(void *arg, const char *hash)
{
    struct login *op = arg;
    struct user_record renewed = op->check.user;

    if (hash) {
        snprintf(renewed.password_hash, sizeof renewed.password_hash, "%s", hash);
        seal_store_put_user(op->exchange->service->store, &op->check.user, &renewed, login_renewed, op);
    } else {
        http_request_release(op->exchange->request);
    }
    secure_wipe(&renewed, sizeof renewed);
}

/* If the new hash was not stored, the next sign-in tries again. */
static void login_renewed(void *arg, enum store_result result)
{
    const struct login *op = arg;

    (void)result;
    http_request_release(op->exchange->request);
}

static void login_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct login *op = arg;
    bool is_throttled = result == STORE_REFUSED && session->retry_after_s > 0;

    /* The code was used before, or the user was reset or locked meanwhile. The response does not say which. */
    if (result == STORE_CONFLICT || result == STORE_NOT_FOUND || (result == STORE_REFUSED && !is_throttled)) {
        login_fail(op, false);
        return;
    }
    if (result == STORE_OK) {
        login_reply(op, session);
        login_renew(op);
        return;
    }
    session_store_give_back(op->exchange->service->store, &op->attempt);
    if (is_throttled)
        login_throttle(op, id_text(&op->check.user.id), session->retry_after_s);
    else
        login_refuse_store(op, result);
    http_request_release(op->exchange->request);
}

/* Records the failure before it answers, in the same way for known users and unknown emails. So the time of neither
 * this response nor a following one reveals which it was. */
static void login_fail(struct login *op, bool only_code_wrong)
{
    struct audit_source source = exchange_source(op->exchange);

    session_store_fail_login(op->exchange->service->store, op->check.known ? &op->check.user.id : NULL, &op->attempt,
                             only_code_wrong, &source, login_recorded, op);
}

/* Does not tell a wrong code from a wrong password: whoever reads the log must not learn that a guess was right. */
static const char *login_refusal_reason(const struct login *op)
{
    if (!op->check.known)
        return "unknown_email";
    if (op->is_disabled)
        return "disabled";
    return op->is_locked ? "locked" : "password_or_code";
}

/* Says that a login is wrong only if it was counted. */
static void login_recorded(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct login *op = arg;
    const struct user_record *user = &op->check.user;

    if (result == STORE_OK) {
        metric_add(op->is_locked ? METRIC_LOGIN_LOCKED : METRIC_LOGIN_REFUSED, 1);
        exchange_log_reason(op->exchange, "login refused", login_refusal_reason(op), id_text(&user->account),
                            (struct text){0}, id_text(&user->id));
        user_check_report_failure(&op->check, failure);
        exchange_refuse(op->exchange, PROBLEM_INVALID_LOGIN);
    } else if (result == STORE_REFUSED) {
        login_throttle(op, id_text(&user->id), failure->retry_after_s);
    } else {
        login_refuse_store(op, result);
    }
    http_request_release(op->exchange->request);
}

/* POST /v1/auth/logout */

static void session_ended(void *arg, enum store_result result);

void logout_begin(struct exchange *exchange)
{
    struct audit_source source = exchange_source(exchange);

    http_request_hold(exchange->request);
    session_store_end(exchange->service->store, exchange->session_digest, &source, session_ended, exchange);
}

static void session_ended(void *arg, enum store_result result)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK || result == STORE_NOT_FOUND) {
        session_cookie_clear(exchange);
        http_response_header(exchange->request, TEXT("Clear-Site-Data"), TEXT("\"cache\"")); /* for shared computers */
        http_reply(exchange->request, 204, (struct text){0}, (struct text){0});
        exchange_log(exchange, "logout", id_text(exchange_account(exchange)), id_text(exchange_actor(exchange)),
                     text_of(exchange->session->sid));
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}

/* GET /v1/console/session */

void session_show(struct exchange *exchange)
{
    reply_session(exchange, exchange->session, view_session);
}
