/* POST /v1/auth/revoke (RFC 7009): whoever holds the secret of a key may end the key, whatever its scopes.
 *
 * The token in the body is the proof. So no credential is read: a client may send its OAuth client's, another key or a
 * revoked one in Authorization, and the response is the same. (A malformed header is 400 as everywhere.) Origin must
 * match if it is sent: otherwise any web page could let its visitors' browsers use up the limit of their network.
 *
 * Whoever finds a secret in a hurry pastes the line around it, or a whole log. So the token is any text, and every
 * whole secret in it is meant: 200 says that none of them is a valid key any more, also if it was revoked before or is
 * unknown. The start of a secret that is not whole is 400, because the key that it belonged to lives on.
 *
 * Time tells a key from an unknown token, because the barrier takes a round trip to the other nodes. But that is no
 * secret from whoever has the whole token: any route that takes keys tells it, faster, by its 401. */
#include "base/log.h"
#include "core/secret.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "oauth_internal.h"
#include "log_revocation_internal.h"
#include "records/key_holder.h"

/* Two log pages of leaked keys; each secret costs reads of Redis. */
enum { SECRETS_MAX = 100 };
#define TOO_MANY "token must have at most 100 secrets at once. None of them was revoked."
_Static_assert(SECRETS_MAX == 100, "see TOO_MANY");

struct revoke_input {
    struct text token, hint;
};

struct token_revocation {
    struct exchange *exchange;
    char ip_tag[THROTTLE_TAG_CHARS + 1];
    struct text secrets[SECRETS_MAX]; /* each once; they point into the body */
    size_t count, under_way;
    enum store_result failure; /* STORE_OK: none has failed */
    bool has_unknown;          /* at least one that no key has */
};

static void secret_revoked(void *arg, enum store_result result, const struct key_record *key);
static void miss_counted(void *arg, enum store_result result, uint32_t retry_after_s);

static bool has_secret(const struct token_revocation *op, struct text secret)
{
    for (size_t i = 0; i < op->count; i++)
        if (text_equal(op->secrets[i], secret)) /* both are the client's own text */
            return true;
    return false;
}

/* Finds the secrets in the token. False if the exchange has been refused. */
static bool find_secrets(struct token_revocation *op, struct text token)
{
    struct text secret;
    bool is_broken = false;
    enum secret_found found;

    while ((found = secret_find(&token, &secret)) != SECRET_NONE) {
        is_broken |= found == SECRET_BROKEN;
        if (found == SECRET_BROKEN || has_secret(op, secret))
            continue;
        if (op->count == SECRETS_MAX) {
            exchange_refuse_value(op->exchange, TOO_MANY);
            return false;
        }
        op->secrets[op->count++] = secret;
    }
    if (op->count > 0 || !is_broken)
        return true;
    exchange_refuse_value(op->exchange, "token has the start of a key, but no whole one: it was cut, mistyped or "
                                        "wrapped. Nothing was revoked.");
    return false;
}

/* RFC 7009 section 2.1: a hint only says where to look first, and an unknown one is ignored. */
static bool read_secrets(struct token_revocation *op)
{
    static const struct form_field FIELDS[] = {
        {"token", true, offsetof(struct revoke_input, token), true},
        {"token_type_hint", false, offsetof(struct revoke_input, hint), false},
    };
    struct revoke_input input = {0};

    return oauth_read_form(op->exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input) &&
           find_secrets(op, input.token);
}

static void reply_done(struct exchange *exchange)
{
    http_reply(exchange->request, 200, (struct text){0}, (struct text){0});
}

void token_revoke(struct exchange *exchange)
{
    struct token_revocation *op = http_request_alloc(exchange->request, sizeof *op);
    struct audit_source source = exchange_source(exchange);

    op->exchange = exchange;
    op->failure = STORE_OK;
    if (!read_secrets(op))
        return;
    if (op->count == 0) {
        reply_done(exchange);
        return;
    }
    source.actor = ACTOR_HOLDER;
    exchange_network_tag(exchange, TEXT("revoke"), op->ip_tag);
    http_request_hold(exchange->request);
    op->under_way = op->count;
    for (size_t i = 0; i < op->count; i++) {
        struct token_digests digests;

        token_digests_of(exchange->service->keyring, KEYRING_KEY_DIGEST, op->secrets[i], &digests);
        key_holder_revoke(exchange->service->partitions, &digests, &source, secret_revoked, op);
    }
}

/* All have been asked for, whatever became of others: a secret that is unknown or could not be revoked keeps no key
 * alive. */
static void reply_all(struct token_revocation *op)
{
    struct exchange *exchange = op->exchange;

    if (op->failure != STORE_OK)
        exchange_refuse_store(exchange, op->failure);
    else
        reply_done(exchange);
    http_request_release(exchange->request);
}

static void all_revoked(struct token_revocation *op)
{
    if (op->has_unknown)
        key_holder_count_miss(op->exchange->service->partitions, text_of(op->ip_tag), miss_counted, op);
    else
        reply_all(op);
}

/* A key that may live comes before a guess that must wait. */
static void miss_counted(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct token_revocation *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_REFUSED)
        exchange_log(exchange, "revocations by secret throttled", (struct text){0}, (struct text){0}, (struct text){0});
    if (result == STORE_REFUSED && op->failure == STORE_OK) {
        exchange_refuse_throttled(exchange, retry_after_s);
        http_request_release(exchange->request);
        return;
    }
    if (result != STORE_OK && result != STORE_REFUSED && op->failure == STORE_OK)
        op->failure = result;
    reply_all(op);
}

static void secret_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    struct token_revocation *op = arg;

    if (result == STORE_OK && key) {
        log_revocation(op->exchange, key);
    } else if (result == STORE_NOT_FOUND) {
        op->has_unknown = true;
    } else if (result != STORE_OK) {
        op->failure = result;
        if (key)
            log_revocation_unconfirmed(op->exchange, result, key);
    }
    if (--op->under_way == 0)
        all_revoked(op);
}
