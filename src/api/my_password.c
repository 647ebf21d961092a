/* POST /v1/console/password: people choose a new password. The old one and a code are judged like a step-up, and count
 * as one. All other sessions end. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "proof_internal.h"

#include <stdio.h>

struct password_change {
    struct proof proof; /* first, so that a pointer to it is one to this */
    struct text new_password;
    char hash[PASSWORD_HASH_BYTES]; /* of the new password */
};

/* Whether both are one password, however they were typed. */
static bool is_same(struct text a, struct text b)
{
    struct buf forms[2] = {BUF_FIXED(PASSWORD_FORM_MAX_BYTES), BUF_FIXED(PASSWORD_FORM_MAX_BYTES)};
    bool same;

    if (a.len > PASSWORD_MAX_BYTES || b.len > PASSWORD_MAX_BYTES)
        return false;
    account_prepare_password(a, &forms[0]);
    account_prepare_password(b, &forms[1]);
    same = text_equal(buf_text(&forms[0]), buf_text(&forms[1]));
    buf_wipe(&forms[0]);
    buf_wipe(&forms[1]);
    return same;
}

/* Judges the new password before anything is counted: that depends only on what was sent and who sent it. */
static bool refuse_new(struct password_change *op)
{
    const struct user_record *user = &op->proof.exchange->session->user;
    const struct password_context context = {text_of(user->email), text_of(user->account_name)};
    enum password_verdict verdict = account_check_password(op->new_password, &context);
    struct problem problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("new_password"));

    if (verdict != PASSWORD_OK)
        problem.message = account_explain_password(verdict);
    else if (is_same(op->new_password, op->proof.check.password))
        problem.message = "new_password must not be the current one.";
    else
        return false;
    exchange_refuse_with(op->proof.exchange, problem);
    return true;
}

/* False if the exchange has been refused. */
static bool change_read(struct password_change *op)
{
    static const struct json_field FIELDS[] = {
        {"current_password", JSON_FIELD_TEXT, true, offsetof(struct password_change, proof.check.password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct password_change, proof.check.totp)},
        {"new_password", JSON_FIELD_TEXT, true, offsetof(struct password_change, new_password)},
    };

    return proof_read(&op->proof, FIELDS, sizeof FIELDS / sizeof *FIELDS) && !refuse_new(op);
}

static void change_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct password_change *op = arg;

    proof_finish(&op->proof, result, session, "password changed");
}

static void change_store(void *arg)
{
    struct password_change *op = arg;
    struct proof *proof = &op->proof;
    const struct exchange *exchange = proof->exchange;
    const struct session_proof given = proof_of_session(proof);
    struct audit_source source = exchange_source(exchange);
    uint8_t new_digest[KEYRING_DIGEST_BYTES];

    proof_draw_token(proof, new_digest);
    session_store_change_password(exchange_store(exchange), &given, new_digest, proof->check.user.password_hash,
                                  op->hash, &source, change_stored, op);
}

static void change_hashed(void *arg, const char *hash)
{
    struct password_change *op = arg;
    const struct exchange *exchange = op->proof.exchange;

    if (!hash) {
        proof_give_up(&op->proof, problem_of(exchange->service->draining ? PROBLEM_SHUTTING_DOWN : PROBLEM_OVERLOADED));
        return;
    }
    snprintf(op->hash, sizeof op->hash, "%s", hash);
    store_know_clock(exchange_store(exchange), change_store, op);
}

static void change_hash(struct proof *proof)
{
    struct password_change *op = (struct password_change *)proof;

    password_rehash(proof->exchange->service->passwords, &proof->turn, op->new_password, id_text(&proof->check.user.id),
                    change_hashed, op);
}

void password_change(struct exchange *exchange)
{
    struct password_change *op = http_request_alloc(exchange->request, sizeof *op);

    op->proof.exchange = exchange;
    op->proof.throttled_line = "password change throttled";
    op->proof.refused_line = "password change refused";
    op->proof.given = change_hash;
    if (change_read(op))
        proof_begin(&op->proof);
}
