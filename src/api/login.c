/* Signs users in to the console and out of it. */
#include "base/encode.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/secure.h"
#include "exchange_client_internal.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "login_internal.h"
#include "session_cookie_internal.h"
#include "sign_in_internal.h"
#include "records/seal_store.h"
#include "views_internal.h"

#include <stdio.h>

typedef void session_view(struct json_writer *w, const struct session_answer *answer);

static void put_session(struct exchange *exchange, const struct session_record *session,
                        const struct session_notices *notices, session_view *view)
{
    char csrf[CSRF_TOKEN_CHARS + 1];

    csrf_token_print(exchange->service->keyring, session->sid, csrf);
    const struct session_answer answer = {
        .session = session,
        .notices = notices,
        .csrf_token = text_of(csrf),
        .idle_expires_ms = http_request_wall_ms(exchange->request) + exchange->service->session_limits.idle_ms,
    };
    view(exchange_answer(exchange, 200), &answer);
    secure_wipe(csrf, sizeof csrf);
}

/* POST /v1/auth/login: count the attempt, check password and code, then mark the code as used and create the
 * session. */

struct login {
    struct sign_in sign_in; /* first, so that a pointer to it is one to this */
    struct token token;     /* wiped when the request is freed */
    uint8_t token_digest[KEYRING_DIGEST_BYTES];
    uint8_t presented_digest[KEYRING_DIGEST_BYTES];
    bool is_presented;
    char sid[ID_TEXT_BYTES], browser[BROWSER_NAME_BYTES];
};

static bool login_read(struct sign_in *op);
static void login_create(struct sign_in *op);
static void login_stored(void *arg, enum store_result result, const struct session_record *session);
static void login_renew(struct login *op);
static void login_rehashed(void *arg, const char *hash);
static void login_renewed(void *arg, enum store_result result);

static struct login *login_new(struct exchange *exchange)
{
    struct login *op = http_request_alloc(exchange->request, sizeof *op);

    http_request_defer(exchange->request, token_wipe, &op->token);
    op->is_presented = session_cookie_digest(exchange, op->presented_digest);
    op->sign_in.exchange = exchange;
    op->sign_in.throttled_line = "login throttled";
    op->sign_in.refused_line = "login refused";
    op->sign_in.proven = login_create;
    return op;
}

void login_begin(struct exchange *exchange)
{
    struct login *op = login_new(exchange);

    if (login_read(&op->sign_in))
        sign_in_begin(&op->sign_in);
}

/* False if the exchange has been refused. */
static bool login_read(struct sign_in *op)
{
    static const struct json_field FIELDS[] = {
        {"email", JSON_FIELD_TEXT, true, offsetof(struct sign_in, written)},
        {"password", JSON_FIELD_TEXT, true, offsetof(struct sign_in, check.password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct sign_in, check.totp)},
    };

    return sign_in_read(op, FIELDS, sizeof FIELDS / sizeof *FIELDS) &&
           user_check_read_code(op->exchange, op->check.totp);
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

static void login_create(struct sign_in *sign_in)
{
    struct login *op = (struct login *)sign_in;
    const struct service *service = sign_in->exchange->service;
    const struct user_record *user = &sign_in->check.user;
    struct audit_source source = exchange_source(sign_in->exchange);

    source.actor = id_text(&user->id);
    sid_mint(op->sid);
    sign_in_know_browser(sign_in);
    exchange_browser(sign_in->exchange, op->browser);
    token_draw(service->keyring, bucket_of_account(&user->account), KEYRING_SESSION_DIGEST, &op->token,
               op->token_digest);
    const struct session_start start = {
        .user = user->id,
        .account = user->account,
        .totp_step = sign_in->check.totp_step,
        .token_digest = op->token_digest,
        .sid = op->sid,
        .attempt = sign_in->attempt,
        .browser_digest = text_of(sign_in->browser_digest),
        .browser = op->browser,
        .presented_digest = op->is_presented ? op->presented_digest : NULL,
        .verified = user,
    };
    session_store_create(service->partitions, &start, &service->session_limits, &source, login_stored, op);
}

void login_enter(struct exchange *exchange, const struct user_record *user, int64_t totp_step)
{
    struct login *op = login_new(exchange);

    sign_in_begin_proven(&op->sign_in, user, totp_step);
}

static void login_reply(struct login *op, const struct session_record *session)
{
    struct exchange *exchange = op->sign_in.exchange;

    metric_add(METRIC_LOGIN_OK, 1);
    session_cookie_set(exchange, &op->token);
    browser_cookie_set(exchange, &op->sign_in.browser);
    put_session(exchange, session, session->notices, view_login);
    exchange_reply(exchange);
    exchange_log(exchange, "login", id_text(&session->user.account), id_text(&session->user.id), text_of(op->sid));
}

/* After the response, rehashes a password that was hashed under a retired master key: only here is it available in
 * clear. Not while nodes of an earlier version may serve, because they cannot read the new hash. */
static void login_renew(struct login *op)
{
    const struct service *service = op->sign_in.exchange->service;
    const struct user_check *check = &op->sign_in.check;
    size_t generation;

    if (!password_hash_generation(service->keyring, check->user.password_hash, &generation) || generation == 0 ||
        store_takes_unsealed(partition_of_account(service->partitions, &check->user.account)))
        http_request_release(op->sign_in.exchange->request);
    else
        password_rehash(service->passwords, &op->sign_in.turn, check->password, id_text(&check->user.id),
                        login_rehashed, op);
}

static void login_rehashed(void *arg, const char *hash)
{
    struct login *op = arg;
    const struct exchange *exchange = op->sign_in.exchange;
    const struct user_record *user = &op->sign_in.check.user;
    struct user_record renewed = *user;

    if (hash) {
        snprintf(renewed.password_hash, sizeof renewed.password_hash, "%s", hash);
        seal_store_put_user(partition_of_account(exchange->service->partitions, &user->account), user, &renewed,
                            login_renewed, op);
    } else {
        http_request_release(exchange->request);
    }
    secure_wipe(&renewed, sizeof renewed);
}

/* If the new hash was not stored, the next sign-in tries again. */
static void login_renewed(void *arg, enum store_result result)
{
    const struct login *op = arg;

    (void)result;
    http_request_release(op->sign_in.exchange->request);
}

static void login_stored(void *arg, enum store_result result, const struct session_record *session)
{
    struct login *op = arg;
    bool is_throttled = result == STORE_REFUSED && session->retry_after_s > 0;

    if (result == STORE_OK) {
        login_reply(op, session);
        login_renew(op);
        return;
    }
    /* The code was used before, or the user was reset or locked meanwhile. The response does not say which. */
    if (result == STORE_CONFLICT || result == STORE_NOT_FOUND || (result == STORE_REFUSED && !is_throttled))
        sign_in_fail(&op->sign_in, false);
    else
        sign_in_refuse(&op->sign_in, result, is_throttled ? session->retry_after_s : 0);
}

/* POST /v1/auth/logout */

static void session_ended(void *arg, enum store_result result)
{
    struct exchange *exchange = arg;

    if (result == STORE_NOT_FOUND)
        result = STORE_OK;
    if (result == STORE_OK) {
        session_cookie_clear(exchange);
        http_response_header(exchange->request, TEXT("Clear-Site-Data"), TEXT("\"cache\"")); /* for shared computers */
        exchange_log_own(exchange, "logout", text_of(exchange->session->sid));
    }
    exchange_finish(exchange, result);
}

void logout_begin(struct exchange *exchange)
{
    struct audit_source source = exchange_source(exchange);

    http_request_hold(exchange->request);
    session_store_end(exchange_store(exchange), exchange->session_digest, &source, session_ended, exchange);
}

/* GET /v1/console/session */

static void notices_were_read(void *arg, enum store_result result, const struct session_notices *notices)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        put_session(exchange, exchange->session, notices, view_session);
    exchange_finish(exchange, result);
}

void session_show(struct exchange *exchange)
{
    http_request_hold(exchange->request);
    session_store_read_notices(exchange_store(exchange), exchange_actor(exchange), exchange->session_digest,
                               notices_were_read, exchange);
}
