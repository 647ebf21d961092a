/* The device's side of the OAuth 2.0 Device Authorization Grant (RFC 8628). A device gets a code for itself and one for
 * a person, who approves it in the console (enrolments.c), and polls until its key is there. Errors follow RFC 6749
 * section 5.2, whoever refuses (ROUTE_OAUTH). */
#include "core/account.h"
#include "core/actor_word.h"
#include "core/address.h"
#include "core/label.h"
#include "exchange_client_internal.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "oauth_internal.h"
#include "views_internal.h"

#include <string.h>

static const scope_set DEVICE_SCOPES = SCOPE_DOCUMENTS_WRITE;

static void refuse_throttled(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_log(exchange, "device throttled", (struct text){0}, (struct text){0}, (struct text){0});
    exchange_refuse_throttled(exchange, retry_after_s);
}

static bool client_is_known(struct exchange *exchange, struct text client)
{
    bool known = device_clients_include(exchange->service->device_clients, client);

    if (!known)
        oauth_refuse(exchange, "invalid_client", "This client_id is unknown.");
    return known;
}

/* GET /.well-known/oauth-authorization-server (RFC 8414) */

enum { HOST_MAX_BYTES = 240 }; /* what exchange_format() has room for; few are longer than 100 */

/* Who reads it at the internal listener may introspect there, by the name under which he has reached it. Neither TLS
 * nor an address leads to a Unix socket, whose callers know the way. */
static struct text asked_at(const struct exchange *exchange)
{
    size_t hosts;
    struct text host = http_request_header(exchange->request, TEXT("Host"), &hosts);
    struct address peer;
    bool is_plain = exchange->service->checks_hosts || !address_parse(http_request_peer(exchange->request), &peer);

    if (!exchange->is_internal || hosts == 0 || host.len > HOST_MAX_BYTES)
        return (struct text){0};
    return text_of(exchange_format(exchange, "%s://%.*s", is_plain ? "http" : "https", TEXT_ARG(host)));
}

void oauth_metadata_show(struct exchange *exchange)
{
    view_authorization_server(exchange_answer(exchange, 200), exchange->service->public_origin, asked_at(exchange));
    exchange_reply(exchange);
}

/* POST /v1/auth/device_authorization */

/* There are 20^8 codes, and at most some thousand are in use. A second try is rare; a fourth would mean that something
 * is wrong. */
enum { CODES_TRIED_MAX = 3 };

struct authorization_input {
    struct text client, scope, name;
};

struct authorization {
    struct exchange *exchange;
    struct device_request request;
    struct token device_code; /* wiped when the request is freed */
    struct user_code user_code;
    char ip_tag[THROTTLE_TAG_CHARS + 1], network_tag[THROTTLE_TAG_CHARS + 1];
    unsigned tries;
};

static bool authorization_read(struct authorization *op);
static void authorization_try(struct authorization *op);
static void authorization_begun(void *arg, enum store_result result, uint32_t retry_after_s);
static void authorization_answer(struct authorization *op);

void device_authorize(struct exchange *exchange)
{
    struct authorization *op = http_request_alloc(exchange->request, sizeof *op);

    op->exchange = exchange;
    if (!authorization_read(op))
        return;
    exchange_network_tag(exchange, TEXT("device"), op->ip_tag);
    op->request.ip = exchange_client_address(exchange);
    op->request.ip_tag = text_of(op->ip_tag);
    throttle_tag(exchange->service->keyring, TEXT("enrolments"), exchange_client_block(exchange, 24, 48),
                 op->network_tag);
    op->request.network_tag = text_of(op->network_tag);
    http_request_defer(exchange->request, token_wipe, &op->device_code);
    http_request_hold(exchange->request);
    authorization_try(op);
}

/* False if the exchange has been refused. */
static bool authorization_read(struct authorization *op)
{
    static const struct form_field FIELDS[] = {
        {"client_id", true, offsetof(struct authorization_input, client), false},
        {"scope", false, offsetof(struct authorization_input, scope), false},
        {"device_name", false, offsetof(struct authorization_input, name), false},
    };
    struct authorization_input input = {0};
    char email[EMAIL_MAX_BYTES + 1];
    struct key_record named;
    struct buf why = BUF_FIXED(LABEL_WHY_BYTES);

    if (!oauth_read_form(op->exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input) ||
        !client_is_known(op->exchange, input.client))
        return false;
    if (input.scope.len && scope_parse(input.scope) != DEVICE_SCOPES) {
        oauth_refuse(op->exchange, "invalid_scope", "Devices can get only the scope documents:write.");
        return false;
    }
    if (input.name.len && !key_set_name(&named, input.name)) {
        label_explain(input.name, "device_name", &why);
        oauth_refuse(op->exchange, "invalid_request", http_request_copy(op->exchange->request, buf_text(&why)).ptr);
        return false;
    }
    /* "ada@laptop" is a user of a machine. */
    if (actor_word_is(input.name) || (account_normalise_email(input.name, email) && strchr(strchr(email, '@'), '.'))) {
        oauth_refuse(op->exchange, "invalid_request",
                     "device_name must be neither an email nor a word for somebody else, such as \"operator\".");
        return false;
    }
    op->request.client = input.client;
    op->request.name = input.name.len ? input.name : input.client;
    op->request.scopes = DEVICE_SCOPES;
    return true;
}

static void authorization_try(struct authorization *op)
{
    const struct service *service = op->exchange->service;

    op->tries++;
    user_code_mint(&op->user_code);
    user_code_digest(service->keyring, &op->user_code, op->request.user_code_digest);
    token_draw(service->keyring, bucket_of_digest(op->request.user_code_digest), KEYRING_DEVICE_CODE, &op->device_code,
               op->request.code_digest);
    device_store_begin(service->partitions, &op->request, authorization_begun, op);
}

static void authorization_begun(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct authorization *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_CONFLICT && op->tries < CODES_TRIED_MAX) {
        authorization_try(op);
        return;
    }
    if (result == STORE_OK)
        authorization_answer(op);
    else if (result == STORE_REFUSED)
        refuse_throttled(exchange, retry_after_s);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

static void authorization_answer(struct authorization *op)
{
    struct exchange *exchange = op->exchange;

    view_device_codes(exchange_answer(exchange, 200), &op->device_code, &op->user_code,
                      exchange->service->public_origin);
    oauth_reply(exchange);
    exchange_log(exchange, "device enrolment begun", (struct text){0}, (struct text){0}, (struct text){0});
}

/* POST /v1/auth/token. The secret is drawn only when a poll finds its enrolment approved, because it must lie in the
 * bucket of the approving account. */

struct token_input {
    struct text grant_type, device_code, client;
};

struct token_request {
    struct key_grant grant;
    char ip_tag[THROTTLE_TAG_CHARS + 1];
};

static bool token_read(struct exchange *exchange, struct text *ret_client, struct token_digests *ret_code);
static void token_approved(void *arg, struct key_record *key, uint8_t ret_digest[KEY_DIGEST_BYTES]);
static void token_polled(void *arg, enum store_result result, const struct device_poll *poll);
static void token_answer(struct token_request *op, const struct device_poll *poll);
static void token_refuse(struct exchange *exchange, const struct device_poll *poll);

void device_token(struct exchange *exchange)
{
    struct token_request *op = http_request_alloc(exchange->request, sizeof *op);
    struct audit_source source = exchange_source(exchange);
    struct token_digests code;
    struct text client;

    if (!token_read(exchange, &client, &code))
        return;
    exchange_network_tag(exchange, TEXT("token"), op->ip_tag);
    op->grant.key.kind = KEY_DEVICE;
    op->grant.key.mode = MODE_LIVE;
    key_grant_begin(&op->grant, exchange);
    http_request_hold(exchange->request);
    device_store_poll(exchange->service->partitions, &code, client, text_of(op->ip_tag), &op->grant.key, &source,
                      token_approved, token_polled, op);
}

static void refuse_grant(struct exchange *exchange)
{
    oauth_refuse(exchange, "invalid_grant",
                 "This device_code is unknown, belongs to another client, or has been used.");
}

/* False if the exchange has been refused. */
static bool token_read(struct exchange *exchange, struct text *ret_client, struct token_digests *ret_code)
{
    static const struct form_field FIELDS[] = {
        {"grant_type", true, offsetof(struct token_input, grant_type), false},
        {"device_code", false, offsetof(struct token_input, device_code), false},
        {"client_id", false, offsetof(struct token_input, client), false},
    };
    struct token_input input = {0};

    if (!oauth_read_form(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!text_equal(input.grant_type, DEVICE_GRANT_TYPE)) {
        oauth_refuse(exchange, "unsupported_grant_type", "grant_type must be " DEVICE_GRANT_TYPE_LITERAL ".");
        return false;
    }
    if (!input.device_code.len || !input.client.len) {
        oauth_refuse(exchange, "invalid_request", "device_code and client_id are required.");
        return false;
    }
    if (!client_is_known(exchange, input.client))
        return false;
    if (!token_digests(exchange->service->keyring, KEYRING_DEVICE_CODE, input.device_code, ret_code)) {
        refuse_grant(exchange);
        return false;
    }
    *ret_client = input.client;
    return true;
}

static void token_approved(void *arg, struct key_record *key, uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    struct token_request *op = arg;

    op->grant.key.account = key->account;
    key_grant_draw(&op->grant);
    key_set_last4(key, secret_text(&op->grant.secret));
    memcpy(ret_digest, op->grant.digest, KEY_DIGEST_BYTES);
}

static void token_polled(void *arg, enum store_result result, const struct device_poll *poll)
{
    struct token_request *op = arg;
    struct exchange *exchange = op->grant.exchange;

    if (key_grant_stored(&op->grant, result)) {
        token_answer(op, poll);
        return;
    }
    if (result == STORE_NOT_FOUND)
        refuse_grant(exchange);
    else if (result == STORE_REFUSED)
        token_refuse(exchange, poll);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

static void token_answer(struct token_request *op, const struct device_poll *poll)
{
    struct exchange *exchange = op->grant.exchange;

    view_token(exchange_answer(exchange, 200), secret_text(&op->grant.secret), poll);
    oauth_reply(exchange);
    exchange_log(exchange, "key created", id_text(&poll->account), id_text(&poll->approver),
                 id_text(&op->grant.key.id));
}

static void token_refuse(struct exchange *exchange, const struct device_poll *poll)
{
    switch (poll->refusal) {
    case DEVICE_PENDING:
        oauth_refuse(exchange, "authorization_pending", "Nobody has decided yet. Poll again after the interval.");
        break;
    case DEVICE_SLOW_DOWN:
        oauth_refuse(exchange, "slow_down", "From now on, wait 5 seconds longer between polls.");
        break;
    case DEVICE_DENIED:
        oauth_refuse(exchange, "access_denied", "The request was denied.");
        break;
    case DEVICE_EXPIRED:
        oauth_refuse(exchange, "expired_token", "The codes have expired. Start again.");
        break;
    case DEVICE_THROTTLED:
        refuse_throttled(exchange, poll->retry_after_s);
        break;
    }
}
