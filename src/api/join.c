/* Joining by a link: /v1/auth/join/begin shows what it offers; /v1/auth/join/start gives this browser a new
 * authenticator; /v1/auth/join sets password and authenticator, and signs in. Whoever only opens the link (a scanner of
 * mails, whoever forwarded or made it) learns no second factor. A link that is unknown, used, expired or withdrawn is
 * answered alike. */
#include "base/clock.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "exchange_client_internal.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "login_internal.h"
#include "session_cookie_internal.h"
#include "records/link_store.h"
#include "user_check_internal.h"
#include "views_internal.h"

#include <stdio.h>
#include <string.h>

struct join {
    struct exchange *exchange;
    struct text code, password, totp; /* point into the exchange's body */
    char ip_tag[THROTTLE_TAG_CHARS + 1];
    struct password_turn turn;
    struct link_record link; /* wiped when the request is freed, as are the next three */
    struct user_record user;
    struct token cookie;
    struct totp_secret secret;
    int64_t totp_step;
};

static void join_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s);
static bool join_check(struct join *op);
static void join_hashed(void *arg, const char *hash);
static void join_used(void *arg, enum store_result result);

static void join_wipe(void *op)
{
    struct join *join = op;

    secure_wipe(&join->link, sizeof join->link);
    secure_wipe(&join->user, sizeof join->user);
    token_wipe(&join->cookie);
    secure_wipe(&join->secret, sizeof join->secret);
}

static void join_refuse(struct join *op, enum store_result result, uint32_t retry_after_s)
{
    struct exchange *exchange = op->exchange;

    if (result == STORE_REFUSED) {
        exchange_log(exchange, "links throttled", (struct text){0}, (struct text){0}, (struct text){0});
        exchange_refuse_throttled(exchange, retry_after_s);
    } else {
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}

/* Looks the code up, in the turn of the address. What has not the form of a code is none. */
static void join_find(struct join *op, link_found *found)
{
    struct exchange *exchange = op->exchange;
    struct keyring *keyring = exchange->service->keyring;
    struct token_digests digests;

    exchange->missing = PROBLEM_LINK_NOT_FOUND;
    http_request_defer(exchange->request, join_wipe, op);
    exchange_network_tag(exchange, TEXT("join"), op->ip_tag);
    op->turn.part = PASSWORD_STRANGER;
    memcpy(&op->turn.source, op->ip_tag + THROTTLE_NETWORK_CHARS, sizeof op->turn.source);
    http_request_hold(exchange->request);
    if (token_digests(keyring, KEYRING_LINK, op->code, &digests))
        link_store_find(exchange->service->partitions, &digests, text_of(op->ip_tag), found, op);
    else
        join_refuse(op, STORE_NOT_FOUND, 0);
}

static const struct json_field JOIN_FIELDS[] = {
    {"code", JSON_FIELD_TEXT, true, offsetof(struct join, code)},
    {"password", JSON_FIELD_TEXT, true, offsetof(struct join, password)},
    {"totp", JSON_FIELD_TEXT, true, offsetof(struct join, totp)},
};

/* The body has a code alone. */
static void join_by_code(struct exchange *exchange, link_found *found)
{
    struct join *op = http_request_alloc(exchange->request, sizeof *op);

    op->exchange = exchange;
    if (exchange_read_body(exchange, JOIN_FIELDS, 1, op))
        join_find(op, found);
}

/* POST /v1/auth/join/begin */

static void put_openings(struct json_writer *w, const struct link_opening *openings, size_t count)
{
    json_key(w, "opened");
    json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        json_object_begin(w);
        view_put_time(w, "time", openings[i].at_ms);
        json_put_member(w, "network", text_of(openings[i].network));
        json_put_member(w, "browser", text_of(openings[i].browser));
        json_object_end(w);
    }
    json_array_end(w);
}

static void begin_opened(void *arg, enum store_result result, const struct link_record *link,
                         const struct link_opening *earlier, size_t count)
{
    struct join *op = arg;
    struct json_writer *w;

    if (result != STORE_OK) {
        join_refuse(op, result, 0);
        return;
    }
    w = exchange_answer(op->exchange, 200);
    json_object_begin(w);
    json_put_member(w, "purpose", link->user.text[0] ? TEXT("reset") : TEXT("join"));
    json_put_member(w, "account_name", text_of(link->account_name));
    json_put_member(w, "email", text_of(link->email));
    json_put_member(w, "role", role_text(link->role));
    view_put_time(w, "expires_at", link->expires_ms);
    put_openings(w, earlier, count);
    json_object_end(w);
    exchange_finish(op->exchange, STORE_OK);
}

static void begin_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;
    struct exchange *exchange = op->exchange;
    struct audit_source source = exchange_source(exchange);
    struct link_opening opening = {0};

    if (result != STORE_OK) {
        join_refuse(op, result, retry_after_s);
        return;
    }
    snprintf(opening.network, sizeof opening.network, "%.*s", TEXT_ARG(exchange_client_network(exchange)));
    exchange_browser(exchange, opening.browser);
    link_store_open(partition_of_account(exchange->service->partitions, &link->account), link, &opening, &source,
                    begin_opened, op);
}

void join_begin(struct exchange *exchange)
{
    join_by_code(exchange, begin_found);
}

/* POST /v1/auth/join/start: the secret of a new authenticator is sealed with the cookie that the browser gets, so that
 * nobody else can go on with it, and what others were shown is void. */

enum { BOUND_BYTES = ID_TEXT_BYTES + TOKEN_CHARS + 1 };

static struct text bound_to(const struct link_record *link, const struct token *cookie, char storage[BOUND_BYTES])
{
    snprintf(storage, BOUND_BYTES, "%s %s", link->id.text, cookie->text);
    return text_of(storage);
}

static void start_stored(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;
    struct json_writer *w;

    if (result != STORE_OK) {
        join_refuse(op, result, retry_after_s);
        return;
    }
    w = exchange_answer(op->exchange, 200);
    json_object_begin(w);
    view_put_totp(w, &op->secret, text_of(link->email));
    json_object_end(w);
    join_cookie_set(op->exchange, &op->cookie);
    exchange_finish(op->exchange, STORE_OK);
}

static void start_found(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    struct join *op = arg;
    const struct service *service = op->exchange->service;
    uint8_t sealed[TOTP_SEALED_BYTES];
    char storage[BOUND_BYTES];

    if (result != STORE_OK) {
        join_refuse(op, result, retry_after_s);
        return;
    }
    totp_secret_mint(&op->secret);
    token_mint(&op->cookie);
    keyring_seal(service->keyring, bound_to(link, &op->cookie, storage), op->secret.bytes, sizeof op->secret.bytes,
                 sealed);
    secure_wipe(storage, sizeof storage);
    link_store_start(partition_of_account(service->partitions, &link->account), link, sealed, start_stored, op);
}

void join_start(struct exchange *exchange)
{
    join_by_code(exchange, start_found);
}

/* POST /v1/auth/join */

void join_finish(struct exchange *exchange)
{
    struct join *op = http_request_alloc(exchange->request, sizeof *op);

    op->exchange = exchange;
    if (exchange_read_body(exchange, JOIN_FIELDS, sizeof JOIN_FIELDS / sizeof *JOIN_FIELDS, op) &&
        user_check_read_code(exchange, op->totp))
        join_find(op, join_found);
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

/* False if the link's authenticator is not this browser's. */
static bool open_secret(struct join *op)
{
    char storage[BOUND_BYTES];
    bool is_open = op->link.has_totp && join_cookie_read(op->exchange, &op->cookie) &&
                   keyring_open(op->exchange->service->keyring, bound_to(&op->link, &op->cookie, storage),
                                op->link.totp_sealed, sizeof op->link.totp_sealed, op->secret.bytes);

    secure_wipe(storage, sizeof storage);
    return is_open;
}

/* False if the exchange has been refused. */
static bool join_check(struct join *op)
{
    const struct password_context context = {text_of(op->link.email), text_of(op->link.account_name)};
    enum password_verdict verdict = account_check_password(op->password, &context);
    struct problem problem;
    bool is_right;

    if (!open_secret(op)) {
        exchange_refuse(op->exchange, PROBLEM_LINK_NOT_STARTED);
        return false;
    }
    is_right = totp_verify(&op->secret, op->totp, http_request_wall_ms(op->exchange->request), &op->totp_step);
    if (verdict != PASSWORD_OK) {
        problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("password"));
        problem.message = account_explain_password(verdict);
        exchange_refuse_with(op->exchange, problem);
    } else if (!is_right) {
        exchange_refuse_saying(op->exchange, PROBLEM_INVALID_LOGIN,
                               "The code is wrong. Enter the one that your authenticator app shows now.");
    }
    return verdict == PASSWORD_OK && is_right;
}

static void join_hashed(void *arg, const char *hash)
{
    struct join *op = arg;
    struct exchange *exchange = op->exchange;
    struct audit_source source = exchange_source(exchange);

    if (!hash) {
        user_check_refuse(exchange, exchange->service->draining);
        http_request_release(exchange->request);
        return;
    }
    snprintf(op->user.password_hash, sizeof op->user.password_hash, "%s", hash);
    keyring_seal(exchange->service->keyring, id_text(&op->user.id), op->secret.bytes, sizeof op->secret.bytes,
                 op->user.totp_sealed);
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
