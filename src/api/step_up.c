/* POST /v1/console/step_up: checks password and code again within a valid session. The session gets a new token, so
 * that a stolen copy of the old one gains nothing. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "proof_internal.h"
#include "session_cookie_internal.h"
#include "views_internal.h"

struct step_up_input {
    struct text password, totp;
};

struct step_up {
    struct proof proof; /* first, so that a pointer to it is one to this */
    struct token token; /* wiped when the request is freed */
};

static bool step_up_read(struct step_up *op);
static void step_up_given(struct proof *proof);
static void step_up_store(void *arg);
static void step_up_stored(void *arg, enum store_result result, const struct session_record *session);

void step_up_begin(struct exchange *exchange)
{
    struct step_up *op = http_request_alloc(exchange->request, sizeof *op);

    op->proof.exchange = exchange;
    op->proof.throttled_line = "step-up throttled";
    op->proof.refused_line = "step-up refused";
    op->proof.given = step_up_given;
    if (step_up_read(op))
        proof_begin(&op->proof);
}

/* False if the exchange has been refused. */
static bool step_up_read(struct step_up *op)
{
    static const struct json_field FIELDS[] = {
        {"password", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, totp)},
    };
    struct step_up_input input = {0};

    return exchange_read_body(op->proof.exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input) &&
           proof_read(&op->proof, input.password, input.totp);
}

static void step_up_given(struct proof *proof)
{
    store_know_clock(exchange_store(proof->exchange), step_up_store, proof);
}

static void step_up_store(void *arg)
{
    struct step_up *op = arg;
    struct proof *proof = &op->proof;
    const struct exchange *exchange = proof->exchange;
    const struct session_proof given = proof_of_session(proof);
    struct audit_source source = exchange_source(exchange);
    uint8_t new_digest[KEYRING_DIGEST_BYTES];

    http_request_defer(exchange->request, token_wipe, &op->token);
    token_draw(exchange->service->keyring, bucket_of_account(exchange_account(exchange)), KEYRING_SESSION_DIGEST,
               &op->token, new_digest);
    session_store_step_up(exchange_store(exchange), &given, new_digest, &source, step_up_stored, op);
}

void step_up_reply(struct proof *proof, const struct token *token, const struct session_record *session)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    session_cookie_set(proof->exchange, token);
    buf_init_fixed(&out, storage, sizeof storage);
    view_step_up(&(struct json_writer){.out = &out}, session);
    http_reply_json(proof->exchange->request, 200, &out);
}

static void step_up_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct step_up *op = arg;

    if (result != STORE_OK) {
        proof_refuse(&op->proof, result, session);
        return;
    }
    step_up_reply(&op->proof, &op->token, session);
    proof_log(&op->proof, "step-up");
    http_request_release(op->proof.exchange->request);
}
