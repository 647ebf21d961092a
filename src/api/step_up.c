/* POST /v1/console/step_up: checks password and code again within a valid session. */
#include "exchange_internal.h"
#include "handlers_internal.h"
#include "proof_internal.h"

static void step_up_stored(void *arg, enum store_result result, const struct session_record *session)
{
    proof_finish(arg, result, session, "step-up");
}

static void step_up_store(void *arg)
{
    struct proof *proof = arg;
    const struct exchange *exchange = proof->exchange;
    const struct session_proof given = proof_of_session(proof);
    struct audit_source source = exchange_source(exchange);
    uint8_t new_digest[KEYRING_DIGEST_BYTES];

    proof_draw_token(proof, new_digest);
    session_store_step_up(exchange_store(exchange), &given, new_digest, &source, step_up_stored, proof);
}

static void step_up_given(struct proof *proof)
{
    store_know_clock(exchange_store(proof->exchange), step_up_store, proof);
}

void step_up_begin(struct exchange *exchange)
{
    struct proof *proof = http_request_alloc(exchange->request, sizeof *proof);

    proof->exchange = exchange;
    proof->throttled_line = "step-up throttled";
    proof->refused_line = "step-up refused";
    proof->given = step_up_given;
    if (proof_read(proof, NULL, 0))
        proof_begin(proof);
}
