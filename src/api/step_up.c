/* POST /v1/console/step_up: checks password and code again within a valid session. The session gets a new token, so
 * that a stolen copy of the old one gains nothing. */
#include "attempt_internal.h"
#include "base/check.h"
#include "base/clock.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "session_cookie_internal.h"
#include "user_check_internal.h"
#include "views_internal.h"

struct step_up_input {
    struct text password, totp;
};

struct step_up {
    struct exchange *exchange;
    struct attempt_counters counters;
    struct login_attempt attempt;
    struct password_turn turn;
    bool is_locked;
    struct user_check check;
    struct token token; /* wiped when the request is freed */
};

static bool step_up_read(struct step_up *op);
static void step_up_counted(void *arg, enum store_result result, const struct login_begin *begin);
static void step_up_checked(void *arg, enum user_check_result result);
static void step_up_store(struct step_up *op);
static void step_up_stored(void *arg, enum store_result result, const struct session_record *session);
static void step_up_fail(struct step_up *op, bool only_code_wrong);
static void step_up_failed(void *arg, enum store_result result, const struct login_failure *failure);

static void step_up_log(const struct step_up *op, const char *message)
{
    const struct exchange *exchange = op->exchange;

    exchange_log(exchange, message, id_text(exchange_account(exchange)), id_text(exchange_actor(exchange)),
                 text_of(exchange->session->sid));
}

/* Counts attempts by session and by user, apart from strangers' failures: those must not stop people who are signed
 * in. */
void step_up_begin(struct exchange *exchange)
{
    struct step_up *op = http_request_alloc(exchange->request, sizeof *op);
    const struct service *service = exchange->service;
    struct text user = id_text(exchange_actor(exchange));

    op->exchange = exchange;
    if (!step_up_read(op))
        return;
    attempt_count(&op->counters, service->keyring, TEXT("session"), text_of(exchange->session->sid), (struct text){0});
    attempt_count(&op->counters, service->keyring, TEXT("user"), user, (struct text){0});
    op->attempt = (struct login_attempt){http_request_id(exchange->request), attempt_counters_text(&op->counters)};
    op->turn = (struct password_turn){PASSWORD_KNOWN, op->counters.source};

    http_request_hold(exchange->request);
    session_store_begin_step_up(service->store, exchange_actor(exchange), &op->attempt, step_up_counted, op);
}

/* False if the exchange has been refused. */
static bool step_up_read(struct step_up *op)
{
    static const struct json_field FIELDS[] = {
        {"password", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, totp)},
    };
    struct step_up_input input = {0};

    if (!exchange_read_body(op->exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!user_check_code_has_form(input.totp)) {
        exchange_refuse_with(op->exchange, problem_param(PROBLEM_PARAMETER_INVALID, TEXT("totp")));
        return false;
    }
    op->check.exchange = op->exchange;
    op->check.password = input.password;
    op->check.totp = input.totp;
    return true;
}

static void step_up_throttle(struct step_up *op, uint32_t retry_after_s)
{
    step_up_log(op, "step-up throttled");
    exchange_refuse_throttled(op->exchange, retry_after_s);
}

static void step_up_counted(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct step_up *op = arg;

    if (result == STORE_OK) {
        op->is_locked = begin->is_locked;
        user_check_begin(&op->check, begin->user, &op->turn, step_up_checked, op);
        return;
    }
    if (result == STORE_REFUSED)
        step_up_throttle(op, begin->retry_after_s);
    else
        exchange_refuse_store(op->exchange, result);
    http_request_release(op->exchange->request);
}

static void step_up_checked(void *arg, enum user_check_result result)
{
    struct step_up *op = arg;

    if (result == USER_CHECK_OVERLOADED || result == USER_CHECK_CANCELLED) {
        session_store_give_back(op->exchange->service->store, &op->attempt);
        user_check_refuse(&op->check, result);
        http_request_release(op->exchange->request);
    } else if (result != USER_CHECK_RIGHT || op->is_locked) {
        step_up_fail(op, result == USER_CHECK_WRONG_CODE && !op->is_locked);
    } else {
        step_up_store(op);
    }
}

static void step_up_store(struct step_up *op)
{
    const struct exchange *exchange = op->exchange;
    const struct service *service = exchange->service;
    struct audit_source source = exchange_source(exchange);
    uint8_t new_digest[KEYRING_DIGEST_BYTES];

    token_mint(&op->token);
    http_request_defer(exchange->request, token_wipe, &op->token);
    CHECK(token_digest(service->keyring, KEYRING_SESSION_DIGEST, text_of(op->token.text), new_digest));
    session_store_step_up(service->store, exchange->session, exchange->session_digest, new_digest, op->check.totp_step,
                          &op->attempt, &service->session_limits, &source, step_up_stored, op);
}

static void reply_step_up(struct step_up *op, const struct session_record *session)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    session_cookie_set(op->exchange, &op->token);
    buf_init_fixed(&out, storage, sizeof storage);
    view_step_up(&(struct json_writer){.out = &out}, session);
    http_reply_json(op->exchange->request, 200, &out);
    step_up_log(op, "step-up");
}

/* A sign-in may have used a code that authenticators do not show yet, so Retry-After can be up to a minute. */
static void refuse_used_code(struct exchange *exchange, int64_t last_step)
{
    struct problem problem = problem_of(PROBLEM_TOTP_ALREADY_USED);

    problem.retry_after_s = totp_wait_s(last_step, clock_wall_ms());
    exchange_refuse_with(exchange, problem);
}

/* Refuses a step-up that failed for other reasons than a wrong password or code. */
static void step_up_refuse(struct step_up *op, enum store_result result, const struct session_record *session)
{
    if (result == STORE_CONFLICT)
        refuse_used_code(op->exchange, session->totp_step);
    else if (result == STORE_NOT_FOUND)
        exchange_refuse(op->exchange, PROBLEM_INVALID_SESSION);
    else if (result == STORE_REFUSED)
        step_up_throttle(op, session->retry_after_s);
    else
        exchange_refuse_store(op->exchange, result);
}

static void step_up_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct step_up *op = arg;

    if (result == STORE_REFUSED && session->retry_after_s == 0) { /* locked meanwhile */
        step_up_fail(op, false);
        return;
    }
    if (result == STORE_OK) {
        reply_step_up(op, session);
    } else {
        session_store_give_back(op->exchange->service->store, &op->attempt);
        step_up_refuse(op, result, session);
    }
    http_request_release(op->exchange->request);
}

static void step_up_fail(struct step_up *op, bool only_code_wrong)
{
    struct audit_source source = exchange_source(op->exchange);

    session_store_fail_login(op->exchange->service->store, exchange_actor(op->exchange), &op->attempt, only_code_wrong,
                             &source, step_up_failed, op);
}

static void step_up_failed(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct step_up *op = arg;

    if (result == STORE_OK) {
        step_up_log(op, "step-up refused");
        user_check_report_failure(&op->check, failure);
        exchange_refuse(op->exchange, PROBLEM_INVALID_LOGIN);
    } else if (result == STORE_REFUSED) {
        step_up_throttle(op, failure->retry_after_s);
    } else {
        exchange_refuse_store(op->exchange, result);
    }
    http_request_release(op->exchange->request);
}
