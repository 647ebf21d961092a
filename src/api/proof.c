#include "proof_internal.h"
#include "base/clock.h"
#include "exchange_log_internal.h"
#include "session_cookie_internal.h"
#include "views_internal.h"

static void proof_counted(void *arg, enum store_result result, const struct login_begin *begin);
static void proof_checked(void *arg, enum user_check_result result);
static void proof_fail(struct proof *proof, bool only_code_wrong);
static void proof_failed(void *arg, enum store_result result, const struct login_failure *failure);

void proof_log(const struct proof *proof, const char *message)
{
    exchange_log_own(proof->exchange, message, text_of(proof->exchange->session->sid));
}

bool proof_read(struct proof *proof, const struct json_field *fields, size_t count)
{
    static const struct json_field FIELDS[] = {
        {"password", JSON_FIELD_TEXT, true, offsetof(struct proof, check.password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct proof, check.totp)},
    };

    proof->check.exchange = proof->exchange;
    return exchange_read_body(proof->exchange, fields ? fields : FIELDS, fields ? count : 2, proof) &&
           user_check_read_code(proof->exchange, proof->check.totp);
}

void proof_begin(struct proof *proof)
{
    struct exchange *exchange = proof->exchange;
    const struct service *service = exchange->service;
    struct text user = id_text(exchange_actor(exchange));

    attempt_count(&proof->counters, service->keyring, TEXT("session"), text_of(exchange->session->sid),
                  (struct text){0});
    attempt_count(&proof->counters, service->keyring, TEXT("user"), user, (struct text){0});
    proof->attempt = (struct login_attempt){.id = http_request_id(exchange->request),
                                            .counters = attempt_counters_text(&proof->counters)};
    proof->turn = (struct password_turn){PASSWORD_KNOWN, proof->counters.source};

    http_request_hold(exchange->request);
    session_store_begin_step_up(exchange_store(exchange), exchange_actor(exchange), &proof->attempt, proof_counted,
                                proof);
}

static void throttle(struct proof *proof, uint32_t retry_after_s)
{
    proof_log(proof, proof->throttled_line);
    exchange_refuse_throttled(proof->exchange, retry_after_s);
}

static void proof_counted(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct proof *proof = arg;

    if (result == STORE_OK) {
        proof->attempt = begin->attempt;
        proof->is_locked = begin->is_locked;
        user_check_begin(&proof->check, begin->user, &proof->turn, proof_checked, proof);
        return;
    }
    if (result == STORE_REFUSED)
        throttle(proof, begin->retry_after_s);
    else
        exchange_refuse_store(proof->exchange, result);
    http_request_release(proof->exchange->request);
}

static void proof_checked(void *arg, enum user_check_result result)
{
    struct proof *proof = arg;

    if (result == USER_CHECK_OVERLOADED || result == USER_CHECK_CANCELLED) {
        session_store_give_back(proof->exchange->service->partitions, &proof->attempt);
        user_check_refuse(proof->exchange, result == USER_CHECK_CANCELLED);
        http_request_release(proof->exchange->request);
    } else if (result != USER_CHECK_RIGHT || proof->is_locked) {
        proof_fail(proof, result == USER_CHECK_WRONG_CODE && !proof->is_locked);
    } else {
        proof->given(proof);
    }
}

struct session_proof proof_of_session(const struct proof *proof)
{
    return (struct session_proof){
        .session = proof->exchange->session,
        .digest = proof->exchange->session_digest,
        .totp_step = proof->check.totp_step,
        .attempt = proof->attempt,
        .limits = &proof->exchange->service->session_limits,
    };
}

void proof_draw_token(struct proof *proof, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    const struct exchange *exchange = proof->exchange;

    http_request_defer(exchange->request, token_wipe, &proof->token);
    token_draw(exchange->service->keyring, bucket_of_account(exchange_account(exchange)), KEYRING_SESSION_DIGEST,
               &proof->token, ret_digest);
}

void proof_finish(struct proof *proof, enum store_result result, const struct session_record *session,
                  const char *message)
{
    struct exchange *exchange = proof->exchange;

    if (result != STORE_OK) {
        proof_refuse(proof, result, session);
        return;
    }
    session_cookie_set(exchange, &proof->token);
    view_step_up(exchange_answer(exchange, 200), session);
    proof_log(proof, message);
    exchange_finish(exchange, STORE_OK);
}

/* A sign-in may have used a code that authenticators do not show yet, so Retry-After can be up to a minute. */
static void refuse_used_code(struct exchange *exchange, int64_t last_step)
{
    exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_TOTP_ALREADY_USED,
                                                    .retry_after_s = totp_wait_s(last_step, clock_wall_ms())});
}

void proof_refuse(struct proof *proof, enum store_result result, const struct session_record *session)
{
    if (result == STORE_REFUSED && session->retry_after_s == 0) { /* locked meanwhile */
        proof_fail(proof, false);
        return;
    }
    session_store_give_back(proof->exchange->service->partitions, &proof->attempt);
    if (result == STORE_CONFLICT)
        refuse_used_code(proof->exchange, session->totp_step);
    else if (result == STORE_NOT_FOUND)
        exchange_refuse(proof->exchange, PROBLEM_INVALID_SESSION);
    else if (result == STORE_REFUSED)
        throttle(proof, session->retry_after_s);
    else
        exchange_refuse_store(proof->exchange, result);
    http_request_release(proof->exchange->request);
}

void proof_give_up(struct proof *proof, struct problem problem)
{
    session_store_give_back(proof->exchange->service->partitions, &proof->attempt);
    exchange_refuse_with(proof->exchange, problem);
    http_request_release(proof->exchange->request);
}

static void proof_fail(struct proof *proof, bool only_code_wrong)
{
    struct audit_source source = exchange_source(proof->exchange);

    session_store_fail_login(proof->exchange->service->partitions, exchange_actor(proof->exchange), &proof->attempt,
                             only_code_wrong, &source, proof_failed, proof);
}

static void proof_failed(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct proof *proof = arg;

    if (result == STORE_OK) {
        proof_log(proof, proof->refused_line);
        user_check_report_failure(&proof->check, failure);
        exchange_refuse(proof->exchange, PROBLEM_INVALID_LOGIN);
    } else if (result == STORE_REFUSED) {
        throttle(proof, failure->retry_after_s);
    } else {
        exchange_refuse_store(proof->exchange, result);
    }
    http_request_release(proof->exchange->request);
}
