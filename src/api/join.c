/* Joining by a link: /v1/auth/join/begin shows what it offers and a new authenticator; /v1/auth/join sets password and
 * authenticator, and signs in. A link that is unknown, used, expired or withdrawn is answered alike. */
#include "base/check.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "login_internal.h"
#include "store/link_store.h"
#include "totp_view_internal.h"
#include "user_check_internal.h"
#include "views_internal.h"

#include <stdio.h>
#include <string.h>

struct join_input {
    struct text code, password, totp;
};

struct join {
    struct exchange *exchange;
    struct text password, totp; /* point into the exchange's body */
    char ip_tag[THROTTLE_TAG_CHARS + 1];
    struct password_turn turn;
    struct link_record link; /* wiped when the request is freed, as is user */
    struct user_record user;
    int64_t totp_step;
};

static void join_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s);
static bool join_check(struct join *op);
static void join_hashed(void *arg, const char *hash);
static void join_used(void *arg, enum store_result result);
static void begin_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s);
static void begin_stored(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s);

static void join_wipe(void *op)
{
    struct join *join = op;

    secure_wipe(&join->link, sizeof join->link);
    secure_wipe(&join->user, sizeof join->user);
}

static void join_refuse(struct join *op, enum store_result result, uint32_t retry_after_s)
{
    struct exchange *exchange = op->exchange;

    if (result == STORE_NOT_FOUND) {
        exchange_refuse(exchange, PROBLEM_LINK_NOT_FOUND);
    } else if (result == STORE_REFUSED) {
        exchange_log(exchange, "links throttled", (struct text){0}, (struct text){0}, (struct text){0});
        exchange_refuse_throttled(exchange, retry_after_s);
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}

/* Looks the code up, in the turn of the address. What has not the form of a code is none. */
static void join_find(struct join *op, struct text code, link_found *found)
{
    struct exchange *exchange = op->exchange;
    struct keyring *keyring = exchange->service->keyring;
    struct token_digests digests;

    http_request_defer(exchange->request, join_wipe, op);
    throttle_tag(keyring, TEXT("join"), exchange_client_network(exchange), op->ip_tag);
    op->turn.part = PASSWORD_STRANGER;
    memcpy(&op->turn.source, op->ip_tag, sizeof op->turn.source);
    http_request_hold(exchange->request);
    if (token_digests(keyring, KEYRING_LINK, code, &digests))
        link_store_find(exchange->service->partitions, &digests, text_of(op->ip_tag), found, op);
    else
        join_refuse(op, STORE_NOT_FOUND, 0);
}

/* POST /v1/auth/join/begin */

void join_begin(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {{"code", JSON_FIELD_TEXT, true, offsetof(struct join_input, code)}};
    struct join *op = http_request_alloc(exchange->request, sizeof *op);
    struct join_input input = {0};

    op->exchange = exchange;
    if (exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        join_find(op, input.code, begin_found);
}

static void begin_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;
    const struct service *service = op->exchange->service;
    uint8_t sealed[TOTP_SEALED_BYTES];
    struct totp_secret secret;

    if (result != STORE_OK || link->has_totp) {
        begin_stored(op, result, link, retry_after_s);
        return;
    }
    op->link = *link;
    totp_secret_mint(&secret);
    keyring_seal(service->keyring, id_text(&link->id), secret.bytes, sizeof secret.bytes, sealed);
    secure_wipe(&secret, sizeof secret);
    link_store_begin(partition_of_account(service->partitions, &link->account), &op->link, sealed, begin_stored, op);
}

static void begin_reply(struct exchange *exchange, const struct link_record *link, const struct totp_secret *secret)
{
    char storage[ANSWER_SMALL_BYTES + VIEW_TOTP_MAX_BYTES];
    struct json_writer w;
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    w = (struct json_writer){.out = &out};
    json_object_begin(&w);
    json_put_member(&w, "purpose", link->user.text[0] ? TEXT("reset") : TEXT("join"));
    json_put_member(&w, "account_name", text_of(link->account_name));
    json_put_member(&w, "email", text_of(link->email));
    json_put_member(&w, "role", role_text(link->role));
    view_put_time(&w, "expires_at", link->expires_ms);
    view_put_totp(&w, secret, text_of(link->email));
    json_object_end(&w);
    http_reply_json(exchange->request, 200, &out);
    secure_wipe(storage, sizeof storage);
}

static bool open_totp(struct exchange *exchange, const struct link_record *link, struct totp_secret *ret_secret)
{
    return link->has_totp && keyring_open(exchange->service->keyring, id_text(&link->id), link->totp_sealed,
                                          sizeof link->totp_sealed, ret_secret->bytes);
}

static void begin_stored(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;
    struct totp_secret secret;

    if (result == STORE_OK && !open_totp(op->exchange, link, &secret))
        result = STORE_NOT_FOUND; /* altered in Redis */
    if (result != STORE_OK) {
        join_refuse(op, result, retry_after_s);
        return;
    }
    begin_reply(op->exchange, link, &secret);
    secure_wipe(&secret, sizeof secret);
    http_request_release(op->exchange->request);
}

/* POST /v1/auth/join */

void join_finish(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {
        {"code", JSON_FIELD_TEXT, true, offsetof(struct join_input, code)},
        {"password", JSON_FIELD_TEXT, true, offsetof(struct join_input, password)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct join_input, totp)},
    };
    struct join *op = http_request_alloc(exchange->request, sizeof *op);
    struct join_input input = {0};

    op->exchange = exchange;
    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return;
    if (!user_check_code_has_form(input.totp)) {
        exchange_refuse_with(exchange, problem_param(PROBLEM_PARAMETER_INVALID, TEXT("totp")));
        return;
    }
    op->password = input.password;
    op->totp = input.totp;
    join_find(op, input.code, join_found);
}

static void join_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;

    if (result != STORE_OK) {
        join_refuse(op, result, retry_after_s);
        return;
    }
    op->link = *link;
    if (!join_check(op)) {
        http_request_release(op->exchange->request);
        return;
    }
    op->user = (struct user_record){.account = link->account, .role = link->role};
    op->user.id = link->user.text[0] ? link->user : id_mint(ID_USER, clock_wall_ms());
    op->user.created_ms = id_time_ms(&op->user.id);
    snprintf(op->user.email, sizeof op->user.email, "%s", link->email);
    password_rehash(op->exchange->service->passwords, &op->turn, op->password, id_text(&op->user.id), join_hashed, op);
}

static bool code_is_right(struct join *op, struct totp_secret *ret_secret)
{
    return open_totp(op->exchange, &op->link, ret_secret) &&
           totp_verify(ret_secret, op->totp, http_request_wall_ms(op->exchange->request), &op->totp_step);
}

/* False if the exchange has been refused. */
static bool join_check(struct join *op)
{
    const struct password_context context = {text_of(op->link.email), text_of(op->link.account_name)};
    enum password_verdict verdict = account_check_password(op->password, &context);
    struct totp_secret secret = {0};
    bool is_right = code_is_right(op, &secret);
    struct problem problem;

    secure_wipe(&secret, sizeof secret);
    if (verdict != PASSWORD_OK) {
        problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("password"));
        problem.message = account_explain_password(verdict);
        exchange_refuse_with(op->exchange, problem);
    } else if (!is_right) {
        problem = problem_of(PROBLEM_INVALID_LOGIN);
        problem.message = "The code is wrong. Enter the one that your authenticator app shows now.";
        exchange_refuse_with(op->exchange, problem);
    }
    return verdict == PASSWORD_OK && is_right;
}

static void refuse_overloaded(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct problem problem = problem_of(service->draining ? PROBLEM_SHUTTING_DOWN : PROBLEM_OVERLOADED);

    if (!service->draining)
        problem.retry_after_s = password_pool_retry_after_s(service->passwords);
    exchange_refuse_with(exchange, problem);
    http_request_release(exchange->request);
}

static void join_hashed(void *arg, const char *hash)
{
    struct join *op = arg;
    struct exchange *exchange = op->exchange;
    struct audit_source source = exchange_source(exchange);
    struct totp_secret secret = {0};

    if (!hash) {
        refuse_overloaded(exchange);
        return;
    }
    snprintf(op->user.password_hash, sizeof op->user.password_hash, "%s", hash);
    CHECK(open_totp(exchange, &op->link, &secret));
    keyring_seal(exchange->service->keyring, id_text(&op->user.id), secret.bytes, sizeof secret.bytes,
                 op->user.totp_sealed);
    secure_wipe(&secret, sizeof secret);
    link_store_use(exchange->service->partitions, &op->link, &op->user, &source, join_used, op);
}

static void join_used(void *arg, enum store_result result)
{
    struct join *op = arg;

    if (result != STORE_OK) {
        join_refuse(op, result, 0);
        return;
    }
    exchange_log(op->exchange, "user joined", id_text(&op->user.account), id_text(&op->user.id), id_text(&op->link.id));
    login_enter(op->exchange, &op->user, op->totp_step);
}
