/* A person's new authenticator: POST /v1/console/totp, judged like a step-up, then POST /v1/console/totp/confirm with a
 * code of the new one. Until then the old one counts, so that nobody locks themselves out. */
#include "base/clock.h"
#include "base/secure.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "new_totp_internal.h"
#include "proof_internal.h"
#include "views_internal.h"

static void secret_wipe(void *secret)
{
    secure_wipe(secret, sizeof(struct totp_secret));
}

void new_totp_make(struct exchange *exchange, const struct id *user, struct totp_secret *ret_secret,
                   struct sealed_totp *ret_sealed)
{
    http_request_defer(exchange->request, secret_wipe, ret_secret);
    totp_secret_mint(ret_secret);
    keyring_seal(exchange->service->keyring, id_text(user), ret_secret->bytes, sizeof ret_secret->bytes,
                 ret_sealed->bytes);
}

struct totp_begin {
    struct proof proof; /* first, so that a pointer to it is one to this */
    struct totp_secret secret;
};

static void begin_stored(void *arg, enum store_result result, const struct session_record *refused)
{
    struct totp_begin *op = arg;
    struct exchange *exchange = op->proof.exchange;
    struct json_writer *w;

    if (result != STORE_OK) {
        proof_refuse(&op->proof, result, refused);
        return;
    }
    w = exchange_answer(exchange, 200);
    json_object_begin(w);
    view_put_totp(w, &op->secret, text_of(exchange->session->user.email));
    json_object_end(w);
    proof_log(&op->proof, "new authenticator begun");
    exchange_finish(exchange, STORE_OK);
}

static void begin_store(struct proof *proof)
{
    struct totp_begin *op = (struct totp_begin *)proof;
    struct exchange *exchange = proof->exchange;
    const struct session_proof given = proof_of_session(proof);
    struct sealed_totp sealed;

    new_totp_make(exchange, exchange_actor(exchange), &op->secret, &sealed);
    factor_store_begin_totp(exchange_store(exchange), &given, &sealed, begin_stored, op);
}

void new_totp_begin(struct exchange *exchange)
{
    struct totp_begin *op = http_request_alloc(exchange->request, sizeof *op);

    op->proof.exchange = exchange;
    op->proof.throttled_line = "new authenticator throttled";
    op->proof.refused_line = "new authenticator refused";
    op->proof.given = begin_store;
    if (proof_read(&op->proof, NULL, 0))
        proof_begin(&op->proof);
}

/* Confirming, for sessions and for recoveries */

static void confirm_stored(void *arg, enum store_result result)
{
    struct new_totp_confirm *op = arg;

    if (result == STORE_OK)
        op->done(op->exchange, &op->waiting.user.account, &op->waiting.user.id);
    exchange_finish(op->exchange, result);
}

static bool code_is_right(const struct new_totp_confirm *op, int64_t *ret_step)
{
    struct totp_secret secret = {0};
    bool opened = keyring_open(op->exchange->service->keyring, id_text(&op->waiting.user.id), op->waiting.totp.bytes,
                               sizeof op->waiting.totp.bytes, secret.bytes);
    bool matches = opened && totp_verify(&secret, op->code, clock_wall_ms(), ret_step);

    secure_wipe(&secret, sizeof secret);
    return matches;
}

void new_totp_found(void *arg, enum store_result result, const struct waiting_totp *waiting)
{
    struct new_totp_confirm *op = arg;
    struct exchange *exchange = op->exchange;
    int64_t step = 0;

    if (result == STORE_OK)
        op->waiting = *waiting;
    if (result == STORE_OK && code_is_right(op, &step)) {
        factor_store_confirm_totp(partition_of_account(exchange->service->partitions, &op->waiting.user.account),
                                  &op->waiting, step, op->session, &op->source, confirm_stored, op);
        return;
    }
    if (result != STORE_OK) {
        exchange_finish(exchange, result);
        return;
    }
    exchange_refuse_value(exchange, "totp is not a code that the new authenticator shows now.");
    http_request_release(exchange->request);
}

/* POST /v1/console/totp/confirm */

static void log_changed(struct exchange *exchange, const struct id *account, const struct id *user)
{
    exchange_log(exchange, "authenticator changed", id_text(account), id_text(user), text_of(exchange->session->sid));
}

void new_totp_confirm(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct new_totp_confirm, code)},
    };
    struct new_totp_confirm *op = http_request_alloc(exchange->request, sizeof *op);

    op->exchange = exchange;
    op->session = exchange->session_digest;
    op->done = log_changed;
    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, op) ||
        !user_check_read_code(exchange, op->code))
        return;
    exchange->missing = PROBLEM_AUTHENTICATOR_NOT_FOUND;
    op->source = exchange_source(exchange);
    http_request_hold(exchange->request);
    factor_store_find_totp(exchange_store(exchange), exchange->session, new_totp_found, op);
}
