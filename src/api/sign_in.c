#include "sign_in_internal.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/metrics.h"
#include "core/email.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"
#include "session_cookie_internal.h"

#include <string.h>

static void written_found(void *arg, enum store_result result, const struct user_record *user);
static void begin_attempt(struct sign_in *op);
static void refuse_store(struct sign_in *op, enum store_result result);
static void count_attempt(struct sign_in *op);
static void browser_print_digest(struct sign_in *op);
static void attempt_begun(void *arg, enum store_result result, const struct login_begin *begin);
static void attempt_checked(void *arg, enum user_check_result result);
static void failure_recorded(void *arg, enum store_result result, const struct login_failure *failure);

bool sign_in_read(struct sign_in *op, const struct json_field *fields, size_t count)
{
    if (!exchange_read_body(op->exchange, fields, count, op))
        return false;
    if (account_normalise_email(op->written, op->email))
        return true;
    exchange_refuse_member(op->exchange, "email");
    return false;
}

void sign_in_begin(struct sign_in *op)
{
    struct exchange *exchange = op->exchange;

    op->check.exchange = exchange;
    http_request_defer(exchange->request, token_wipe, &op->browser);
    http_request_hold(exchange->request);
    if (email_read(text_of(op->email), op->meant) && strcmp(op->email, op->meant) != 0)
        account_store_find_user(exchange->service->partitions, text_of(op->email), written_found, op);
    else
        begin_attempt(op);
}

/* Users of versions before 0.4 have their email as it was written then. So that is looked for first, and what is meant
 * by it otherwise; nobody whose email is plain ASCII pays for it. That the former exists shows as one more read of
 * Redis, which a queue for hashes and a hash follow. */
static void written_found(void *arg, enum store_result result, const struct user_record *user UNUSED)
{
    struct sign_in *op = arg;

    if (result != STORE_OK && result != STORE_NOT_FOUND) {
        refuse_store(op, result);
        http_request_release(op->exchange->request);
        return;
    }
    if (result == STORE_NOT_FOUND)
        memcpy(op->email, op->meant, sizeof op->email);
    begin_attempt(op);
}

static void begin_attempt(struct sign_in *op)
{
    struct exchange *exchange = op->exchange;

    if (op->named)
        op->named(op);
    count_attempt(op);

    const struct login_browser browser = {text_of(op->browser_digest), attempt_counters_text(&op->of_browser)};
    session_store_begin_login(exchange->service->partitions, text_of(op->email), &op->attempt, &browser,
                              op->recovery_code, attempt_begun, op);
}

void sign_in_begin_proven(struct sign_in *op, const struct user_record *user, int64_t totp_step)
{
    struct exchange *exchange = op->exchange;

    op->check.exchange = exchange;
    op->check.totp_step = totp_step;
    user_check_know(&op->check, user);
    http_request_defer(exchange->request, token_wipe, &op->browser);
    op->attempt = (struct login_attempt){.id = http_request_id(exchange->request),
                                         .home = partition_of_account(exchange->service->partitions, &user->account)};
    if (browser_cookie_read(exchange, &op->browser))
        browser_print_digest(op);
    op->proven(op);
}

static void browser_print_digest(struct sign_in *op)
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
 * a counter, and their passwords wait in one queue. The email's counter is the first, because it closes sign-in. */
static void count_attempt(struct sign_in *op)
{
    const struct exchange *exchange = op->exchange;
    struct keyring *keyring = exchange->service->keyring;
    struct text email = text_of(op->email), none = {0};
    struct text network = exchange_client_block(exchange, 24, 56), wide = exchange_client_block(exchange, 0, 48);

    attempt_count(&op->of_strangers, keyring, TEXT("email"), email, none);
    attempt_count(&op->of_strangers, keyring, TEXT("pair"), email, network);
    attempt_count(&op->of_strangers, keyring, TEXT("network"), network, none);
    if (wide.len)
        attempt_count(&op->of_strangers, keyring, TEXT("wide"), wide, none);
    op->turn = (struct password_turn){PASSWORD_STRANGER, op->of_strangers.source};
    op->attempt = (struct login_attempt){.id = http_request_id(exchange->request),
                                         .counters = attempt_counters_text(&op->of_strangers)};
    if (browser_cookie_read(exchange, &op->browser)) {
        attempt_count(&op->of_browser, keyring, TEXT("browser"), email, text_of(op->browser.text));
        browser_print_digest(op);
    }
}

static void throttle(struct sign_in *op, struct text user, uint32_t retry_after_s)
{
    metric_add(METRIC_LOGIN_THROTTLED, 1);
    exchange_log(op->exchange, op->throttled_line, (struct text){0}, (struct text){0}, user);
    exchange_refuse_throttled(op->exchange, retry_after_s);
}

static void refuse_store(struct sign_in *op, enum store_result result)
{
    metric_add(result == STORE_SUSPENDED ? METRIC_LOGIN_REFUSED : METRIC_LOGIN_UNAVAILABLE, 1);
    exchange_refuse_store(op->exchange, result);
}

static void attempt_begun(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct sign_in *op = arg;

    if (result == STORE_OK) {
        op->is_locked = begin->is_locked;
        op->is_disabled = begin->user && begin->user->disabled_ms > 0;
        op->check.recovery_code_fits = begin->recovery_code_fits;
        op->attempt = begin->attempt;
        if (begin->browser_is_known)
            op->turn = (struct password_turn){PASSWORD_KNOWN, op->of_browser.source};
        user_check_begin(&op->check, begin->user, &op->turn, attempt_checked, op);
        return;
    }
    if (result == STORE_REFUSED)
        throttle(op, begin->throttled_is_known ? id_text(&begin->throttled) : (struct text){0}, begin->retry_after_s);
    else
        refuse_store(op, result);
    http_request_release(op->exchange->request);
}

/* The response must not reveal that a user is locked or disabled, so their right password and code count as wrong. */
static void attempt_checked(void *arg, enum user_check_result result)
{
    struct sign_in *op = arg;

    if (result == USER_CHECK_OVERLOADED || result == USER_CHECK_CANCELLED) {
        metric_add(result == USER_CHECK_OVERLOADED ? METRIC_LOGIN_OVERLOADED : METRIC_LOGIN_UNAVAILABLE, 1);
        session_store_give_back(op->exchange->service->partitions, &op->attempt);
        user_check_refuse(op->exchange, result == USER_CHECK_CANCELLED);
        http_request_release(op->exchange->request);
    } else if (result != USER_CHECK_RIGHT || op->is_locked || op->is_disabled) {
        sign_in_fail(op, result == USER_CHECK_WRONG_CODE && !op->is_locked && !op->is_disabled);
    } else {
        op->proven(op);
    }
}

/* A browser keeps its token whoever signs in, so that all people who share a workstation are known there. */
void sign_in_know_browser(struct sign_in *op)
{
    if (op->browser_digest[0])
        return;
    token_mint(&op->browser);
    browser_print_digest(op);
}

/* Records the failure before it answers, in the same way for known users and unknown emails. So the time of neither
 * this response nor a following one reveals which it was. */
void sign_in_fail(struct sign_in *op, bool only_code_wrong)
{
    struct audit_source source = exchange_source(op->exchange);

    session_store_fail_login(op->exchange->service->partitions, op->check.known ? &op->check.user.id : NULL,
                             &op->attempt, only_code_wrong, &source, failure_recorded, op);
}

void sign_in_refuse(struct sign_in *op, enum store_result result, uint32_t retry_after_s)
{
    session_store_give_back(op->exchange->service->partitions, &op->attempt);
    if (result == STORE_REFUSED)
        throttle(op, id_text(&op->check.user.id), retry_after_s);
    else
        refuse_store(op, result);
    http_request_release(op->exchange->request);
}

/* Does not tell a wrong code from a wrong password: whoever reads the log must not learn that a guess was right. */
static const char *refusal_reason(const struct sign_in *op)
{
    if (!op->check.known)
        return "unknown_email";
    if (op->is_disabled)
        return "disabled";
    return op->is_locked ? "locked" : "password_or_code";
}

/* Says that an attempt is wrong only if it was counted. */
static void failure_recorded(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct sign_in *op = arg;
    const struct user_record *user = &op->check.user;

    if (result == STORE_OK) {
        metric_add(op->is_locked ? METRIC_LOGIN_LOCKED : METRIC_LOGIN_REFUSED, 1);
        exchange_log_with(op->exchange, op->refused_line, log_str("reason", refusal_reason(op)),
                          id_text(&user->account), (struct text){0}, id_text(&user->id));
        user_check_report_failure(&op->check, failure);
        exchange_refuse(op->exchange, PROBLEM_INVALID_LOGIN);
    } else if (result == STORE_REFUSED) {
        throttle(op, id_text(&user->id), failure->retry_after_s);
    } else {
        refuse_store(op, result);
    }
    http_request_release(op->exchange->request);
}
