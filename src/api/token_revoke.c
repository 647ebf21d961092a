/* POST /v1/auth/revoke (RFC 7009): whoever holds the secret of a key may end the key, whatever its scopes.
 *
 * The token in the body is the proof. So no credential is read: a client may send its OAuth client's, another key or a
 * revoked one in Authorization, and the response is the same. (A malformed header is 400 as everywhere.) Origin must
 * match if it is sent: otherwise any web page could let its visitors' browsers use up the limit of their network.
 *
 * The response is 200 for every token that is not a valid key afterwards: revoked now or before, unknown, malformed.
 * Time tells a key from an unknown token, because the barrier takes a round trip to the other nodes. But that is no
 * secret from whoever has the whole token: any route that takes keys tells it, faster, by its 401. */
#include "base/log.h"
#include "core/secret.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "oauth_internal.h"
#include "revocation_note_internal.h"
#include "store/key_holder.h"

struct revoke_input {
    struct text token, hint;
};

struct token_revocation {
    struct exchange *exchange;
    char ip_tag[THROTTLE_TAG_CHARS + 1];
};

static void token_revoked(void *arg, enum store_result result, const struct key_record *key, uint32_t retry_after_s);

static void reply_done(struct exchange *exchange)
{
    http_reply(exchange->request, 200, (struct text){0}, (struct text){0});
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A file with a secret usually ends with a newline. Its token must not count as malformed: the response would be 200,
 * and the key still valid. */
static struct text trim(struct text token)
{
    while (token.len > 0 && is_space(token.ptr[token.len - 1]))
        token.len--;
    while (token.len > 0 && is_space(token.ptr[0]))
        token = text_skip(token, 1);
    return token;
}

/* RFC 7009 section 2.1: a hint only says where to look first, and an unknown one is ignored. */
static bool read_token(struct exchange *exchange, struct text *ret_token)
{
    static const struct form_field FIELDS[] = {
        {"token", true, offsetof(struct revoke_input, token)},
        {"token_type_hint", false, offsetof(struct revoke_input, hint)},
    };
    struct revoke_input input = {0};

    if (!oauth_read_form(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    *ret_token = trim(input.token);
    return true;
}

void token_revoke(struct exchange *exchange)
{
    struct keyring *keyring = exchange->service->keyring;
    struct audit_source source = exchange_source(exchange);
    struct token_digests digests;
    struct token_revocation *op;
    enum key_kind kind;
    enum key_mode mode;
    struct text token;

    if (!read_token(exchange, &token))
        return;
    if (!secret_parse(token, &kind, &mode)) {
        reply_done(exchange);
        return;
    }
    op = http_request_alloc(exchange->request, sizeof *op);
    op->exchange = exchange;
    source.actor = ACTOR_HOLDER;
    throttle_tag(keyring, TEXT("revoke"), exchange_client_network(exchange), op->ip_tag);
    token_digests_of(keyring, KEYRING_KEY_DIGEST, token, &digests);
    http_request_hold(exchange->request);
    key_holder_revoke(exchange->service->partitions, &digests, text_of(op->ip_tag), &source, token_revoked, op);
}

static void token_revoked(void *arg, enum store_result result, const struct key_record *key, uint32_t retry_after_s)
{
    const struct token_revocation *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_OK) {
        revocation_note(exchange, key, ACTOR_HOLDER);
        reply_done(exchange);
    } else if (result == STORE_NOT_FOUND) {
        reply_done(exchange);
    } else if (result == STORE_REFUSED) {
        exchange_log(exchange, "revocations by secret throttled", (struct text){0}, (struct text){0}, (struct text){0});
        exchange_refuse_throttled(exchange, retry_after_s);
    } else {
        if (key)
            revocation_note_unconfirmed(exchange, result, id_text(&key->account), ACTOR_HOLDER, id_text(&key->id));
        exchange_refuse_store(exchange, result);
    }
    http_request_release(exchange->request);
}
