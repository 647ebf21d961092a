/* POST /v1/console/step_up: password and code again, on top of a valid session. It gets a new token, so that a copy of
 * the old one does not rise with it. */
#include "base/check.h"
#include "call_internal.h"
#include "handlers_internal.h"
#include "proof_internal.h"
#include "session_cookie_internal.h"
#include "views_internal.h"

struct step_up_input {
    struct text password, totp;
};

struct step_up {
    struct call *call;
    char user_tag[THROTTLE_TAG_CHARS + 1];
    char ip_tag[THROTTLE_TAG_CHARS + 1];
    struct proof proof;
    struct token token; /* wiped when the request is freed */
};

static bool step_up_read(struct step_up *op);
static void step_up_counted(void *arg, enum store_result result, const struct user_record *user,
                            uint32_t retry_after_s);
static void step_up_proved(void *arg, enum proof_result result);
static void step_up_stored(void *arg, enum store_result result, const struct session_record *session);
static void step_up_failed(void *arg, enum store_result result);

static void step_up_log(const struct step_up *op, const char *message)
{
    const struct call *call = op->call;

    call_log(call, message, id_text(call_account(call)), id_text(call_actor(call)), text_of(call->session->sid));
}

void step_up_begin(struct call *call)
{
    struct step_up *op = http_request_alloc(call->request, sizeof *op);
    const struct service *service = call->service;

    op->call = call;
    if (!step_up_read(op))
        return;
    throttle_tag(service->keyring, TEXT("user"), id_text(call_actor(call)), op->user_tag);
    throttle_tag(service->keyring, TEXT("ip"), call_client_network(call), op->ip_tag);

    http_request_hold(call->request);
    session_store_begin_step_up(service->store, call_actor(call), text_of(op->user_tag), text_of(op->ip_tag),
                                step_up_counted, op);
}

/* False: refused. */
static bool step_up_read(struct step_up *op)
{
    static const struct json_field FIELDS[] = {
        {"password", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct step_up_input, totp)},
    };
    struct step_up_input input = {0};

    if (!call_read_body(op->call, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!proof_code_has_form(input.totp)) {
        call_refuse_with(op->call, problem_param(PROBLEM_PARAMETER_INVALID, TEXT("totp")));
        return false;
    }
    op->proof.call = op->call;
    op->proof.password = input.password;
    op->proof.totp = input.totp;
    return true;
}

static void step_up_counted(void *arg, enum store_result result, const struct user_record *user, uint32_t retry_after_s)
{
    struct step_up *op = arg;

    if (result == STORE_OK) {
        proof_begin(&op->proof, user, step_up_proved, op);
        return;
    }
    if (result == STORE_REFUSED) {
        step_up_log(op, "step-up throttled");
        call_refuse_throttled(op->call, retry_after_s);
    } else {
        call_refuse_store(op->call, result);
    }
    http_request_release(op->call->request);
}

static void step_up_proved(void *arg, enum proof_result result)
{
    struct step_up *op = arg;
    const struct call *call = op->call;
    const struct service *service = call->service;
    struct audit_origin origin = call_origin(call);
    uint8_t new_digest[KEYRING_DIGEST_BYTES];

    if (result == PROOF_WRONG) {
        session_store_fail_login(service->store, call_actor(call), &origin, step_up_failed, op);
        return;
    }
    if (result != PROOF_RIGHT) {
        proof_refuse(&op->proof, result);
        http_request_release(call->request);
        return;
    }
    token_mint(&op->token);
    http_request_defer(call->request, token_wipe, &op->token);
    CHECK(token_digest(service->keyring, KEYRING_SESSION_DIGEST, text_of(op->token.text), new_digest));
    session_store_step_up(service->store, call->session_digest, new_digest, op->proof.totp_step, text_of(op->user_tag),
                          text_of(op->ip_tag), &service->session_limits, &origin, step_up_stored, op);
}

static void reply_step_up(struct step_up *op, const struct session_record *session)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    session_cookie_set(op->call, &op->token);
    buf_init_fixed(&out, storage, sizeof storage);
    view_step_up(&(struct json_writer){.out = &out}, session);
    http_reply_json(op->call->request, 200, &out);
    step_up_log(op, "step-up");
}

static void step_up_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct step_up *op = arg;

    switch (result) {
    case STORE_OK:
        reply_step_up(op, session);
        break;
    case STORE_CONFLICT:
        call_refuse(op->call, PROBLEM_TOTP_ALREADY_USED);
        break;
    case STORE_NOT_FOUND:
        call_refuse(op->call, PROBLEM_INVALID_SESSION);
        break;
    case STORE_REFUSED:
    case STORE_ACTOR_REVOKED:
    case STORE_ACTOR_UNKNOWN:
    case STORE_ACTOR_UNPROVEN:
    case STORE_FULL:
    case STORE_LIMITED:
    case STORE_UNAVAILABLE:
    case STORE_UNKNOWN:
        call_refuse_store(op->call, result);
        break;
    }
    http_request_release(op->call->request);
}

/* The proof was wrong, whether or not that could be recorded. */
static void step_up_failed(void *arg, enum store_result result)
{
    struct step_up *op = arg;

    (void)result;
    step_up_log(op, "step-up refused");
    call_refuse(op->call, PROBLEM_INVALID_LOGIN);
    http_request_release(op->call->request);
}
