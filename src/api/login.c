/* Signing in and out of the console. */
#include "base/check.h"
#include "base/encode.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/secure.h"
#include "call_internal.h"
#include "handlers_internal.h"
#include "proof_internal.h"
#include "session_cookie_internal.h"
#include "views_internal.h"

typedef void session_view(struct json_writer *w, const struct session_record *session, struct text csrf_token,
                          int64_t idle_expires_ms);

static void reply_session(struct call *call, const struct session_record *session, session_view *view)
{
    char storage[ANSWER_SMALL_BYTES], csrf[CSRF_TOKEN_CHARS + 1];
    struct buf out;

    csrf_token_print(call->service->keyring, session->sid, csrf);
    buf_init_fixed(&out, storage, sizeof storage);
    view(&(struct json_writer){.out = &out}, session, text_of(csrf),
         http_request_wall_ms(call->request) + call->service->session_limits.idle_ms);
    http_reply_json(call->request, 200, &out);
    secure_wipe(storage, sizeof storage);
    secure_wipe(csrf, sizeof csrf);
}

/* POST /v1/auth/login: count the attempt, look at password and code, take the code's step and make the session. */

struct login_input {
    struct text email, password, totp;
};

struct login {
    struct call *call;
    char email[EMAIL_MAX_BYTES + 1];
    char email_tag[THROTTLE_TAG_CHARS + 1];
    char ip_tag[THROTTLE_TAG_CHARS + 1];
    struct proof proof;
    struct token token; /* wiped when the request is freed */
    uint8_t token_digest[KEYRING_DIGEST_BYTES];
    char sid[ID_TEXT_BYTES];
};

static bool login_read(struct login *op);
static void login_counted(void *arg, enum store_result result, const struct user_record *user, uint32_t retry_after_s);
static void login_proved(void *arg, enum proof_result result);
static void login_stored(void *arg, enum store_result result, const struct session_record *session);
static void login_fail(struct login *op);
static void login_recorded(void *arg, enum store_result result);

void login_begin(struct call *call)
{
    struct login *op = http_request_alloc(call->request, sizeof *op);
    const struct service *service = call->service;

    op->call = call;
    if (!login_read(op))
        return;
    throttle_tag(service->keyring, TEXT("email"), text_of(op->email), op->email_tag);
    throttle_tag(service->keyring, TEXT("ip"), call_client_network(call), op->ip_tag);

    http_request_hold(call->request);
    session_store_begin_login(service->store, text_of(op->email), text_of(op->email_tag), text_of(op->ip_tag),
                              login_counted, op);
}

/* Shapes only: 400 must not tell which emails exist. False: refused. */
static bool login_read(struct login *op)
{
    static const struct json_field FIELDS[] = {
        {"email", JSON_FIELD_TEXT, true, offsetof(struct login_input, email)},
        {"password", JSON_FIELD_TEXT, true, offsetof(struct login_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct login_input, totp)},
    };
    struct login_input input = {0};
    const char *wrong = NULL;

    if (!call_read_body(op->call, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!account_normalise_email(input.email, op->email))
        wrong = "email";
    else if (!proof_code_has_form(input.totp))
        wrong = "totp";
    if (wrong)
        call_refuse_with(op->call, problem_param(PROBLEM_PARAMETER_INVALID, text_of(wrong)));
    op->proof.call = op->call;
    op->proof.password = input.password;
    op->proof.totp = input.totp;
    return !wrong;
}

static void login_counted(void *arg, enum store_result result, const struct user_record *user, uint32_t retry_after_s)
{
    struct login *op = arg;

    if (result == STORE_OK) {
        proof_begin(&op->proof, user, login_proved, op);
        return;
    }
    if (result == STORE_REFUSED) {
        metric_add(METRIC_LOGIN_THROTTLED, 1);
        call_log(op->call, "login throttled", (struct text){0}, (struct text){0}, (struct text){0});
        call_refuse_throttled(op->call, retry_after_s);
    } else {
        call_refuse_store(op->call, result);
    }
    http_request_release(op->call->request);
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

static void login_proved(void *arg, enum proof_result result)
{
    struct login *op = arg;
    const struct service *service = op->call->service;
    struct audit_origin origin = call_origin(op->call);
    struct session_start start = {
        .user = op->proof.user.id,
        .totp_step = op->proof.totp_step,
        .token_digest = op->token_digest,
        .sid = op->sid,
        .email_tag = text_of(op->email_tag),
        .ip_tag = text_of(op->ip_tag),
        .verified = &op->proof.user,
    };

    if (result == PROOF_WRONG) {
        login_fail(op);
        return;
    }
    if (result != PROOF_RIGHT) {
        proof_refuse(&op->proof, result);
        http_request_release(op->call->request);
        return;
    }
    origin.actor = id_text(&op->proof.user.id);
    sid_mint(op->sid);
    token_mint(&op->token);
    http_request_defer(op->call->request, token_wipe, &op->token);
    CHECK(token_digest(service->keyring, KEYRING_SESSION_DIGEST, text_of(op->token.text), op->token_digest));
    session_store_create(service->store, &start, &service->session_limits, &origin, login_stored, op);
}

static void login_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct login *op = arg;

    if (result == STORE_CONFLICT || result == STORE_REFUSED) {
        login_fail(op); /* the code was used before, or the user was reset meanwhile: which is not told */
        return;
    }
    if (result == STORE_OK) {
        metric_add(METRIC_LOGIN_OK, 1);
        session_cookie_set(op->call, &op->token);
        reply_session(op->call, session, view_login);
        call_log(op->call, "login", id_text(&session->user.account), id_text(&session->user.id), text_of(op->sid));
    } else {
        call_refuse_store(op->call, result);
    }
    http_request_release(op->call->request);
}

/* Answers before it records: the event of a known user is written to disk, an unknown email has none, and the time
 * until the answer must not tell the two apart. */
static void login_fail(struct login *op)
{
    struct audit_origin origin = call_origin(op->call);
    const struct user_record *user = &op->proof.user;

    metric_add(METRIC_LOGIN_REFUSED, 1);
    call_refuse(op->call, PROBLEM_INVALID_LOGIN);
    call_log(op->call, "login refused", id_text(&user->account), (struct text){0}, id_text(&user->id));
    session_store_fail_login(op->call->service->store, op->proof.known ? &user->id : NULL, &origin, login_recorded, op);
}

/* The login was wrong, whether or not that could be recorded. */
static void login_recorded(void *arg, enum store_result result)
{
    struct login *op = arg;

    (void)result;
    http_request_release(op->call->request);
}

/* POST /v1/auth/logout */

static void session_ended(void *arg, enum store_result result);

void logout_begin(struct call *call)
{
    struct audit_origin origin = call_origin(call);

    http_request_hold(call->request);
    session_store_end(call->service->store, call->session_digest, &origin, session_ended, call);
}

static void session_ended(void *arg, enum store_result result)
{
    struct call *call = arg;

    if (result == STORE_OK || result == STORE_NOT_FOUND) {
        session_cookie_clear(call);
        http_response_header(call->request, TEXT("Clear-Site-Data"), TEXT("\"cache\"")); /* of a shared computer */
        http_reply(call->request, 204, (struct text){0}, (struct text){0});
        call_log(call, "logout", id_text(call_account(call)), id_text(call_actor(call)), text_of(call->session->sid));
    } else {
        call_refuse_store(call, result);
    }
    http_request_release(call->request);
}

/* GET /v1/console/session */

void session_show(struct call *call)
{
    reply_session(call, call->session, view_session);
}
