/* POST /check/introspect (RFC 7662): a question about a key alone, in the terms of OAuth, whose servers of resources
 * can ask it without code of their own. It is a check: each answer that says "active" counts as one use of the key.
 *
 * With Accept: application/token-introspection+jwt the answer is signed (RFC 9701) by the key of receipts, for those
 * who must prove later what they were told. Its audience is the client_id of the form. No caller proves that name: all
 * that may ask have the same rights. Without one it is the issuer. */
#include "accept_internal.h"
#include "base/clock.h"
#include "core/receipt.h"
#include "handlers_internal.h"
#include "oauth_internal.h"
#include "question_internal.h"

#define JWT_TYPE "token-introspection+jwt"

enum { MS_PER_S = 1000, CLIENT_MAX_BYTES = 255, CLAIMS_MAX_BYTES = 4096, JWS_MAX_BYTES = 8192, SCOPES_MAX_BYTES = 256 };

struct introspect_input {
    struct text token, hint, client;
};

struct introspection {
    struct key_question question;
    struct exchange *asking;
    struct text audience;
};

enum { PLAIN, SIGNED };

static bool is_signed(const struct exchange *asking)
{
    static const struct accept_row FORMS[] = {{TEXT("application/json"), PLAIN},
                                              {TEXT("application/" JWT_TYPE), SIGNED}};
    int form;

    return accept_choose(asking->request, FORMS, sizeof FORMS / sizeof *FORMS, &form) && form == SIGNED;
}

/* RFC 7662 section 2.2. iat: when the key was made, which its id says. */
static void put_key(struct json_writer *w, const struct key_principal *key, struct text issuer)
{
    struct buf scopes = BUF_FIXED(SCOPES_MAX_BYTES);

    scope_print(key->scopes, ' ', &scopes);
    json_put_member(w, "scope", buf_text(&scopes));
    JSON_PUT_WORD(w, "client_id", id_text(&key->id));
    JSON_PUT_WORD(w, "sub", id_text(&key->account));
    JSON_PUT_WORD(w, "token_type", TEXT("Bearer"));
    json_put_number(w, "iat", id_time_ms(&key->id) / MS_PER_S);
    if (key->ends_ms > 0)
        json_put_number(w, "exp", key->ends_ms / MS_PER_S);
    json_put_member(w, "iss", issuer);
    JSON_PUT_WORD(w, "mode", key_mode_text(key->mode));
    JSON_PUT_WORD(w, "kind", key_kind_text(key->kind));
}

/* Of a key that is not good nothing is said (RFC 7662 section 2.2), not even why. */
static void put_introspection(struct json_writer *w, const struct introspection *op)
{
    const struct key_principal *key = op->question.exchange.key;
    bool is_active = op->question.refusal.code == PROBLEM_NONE;

    json_object_begin(w);
    json_put_flag(w, "active", is_active);
    if (is_active)
        put_key(w, key, op->asking->service->public_origin);
    json_object_end(w);
}

/* RFC 9701 section 5. */
static void reply_signed(const struct introspection *op)
{
    struct exchange *asking = op->asking;
    struct buf claims = BUF_FIXED(CLAIMS_MAX_BYTES), jws = BUF_FIXED(JWS_MAX_BYTES);
    struct json_writer w = {.out = &claims};

    json_object_begin(&w);
    json_put_member(&w, "iss", asking->service->public_origin);
    json_put_member(&w, "aud", op->audience);
    json_put_number(&w, "iat", http_request_wall_ms(asking->request) / MS_PER_S);
    json_key(&w, "token_introspection");
    put_introspection(&w, op);
    json_object_end(&w);
    if (!claims.failed)
        receipt_sign_claims(TEXT(JWT_TYPE), buf_text(&claims), asking->service->keyring, &jws);
    if (claims.failed || jws.failed)
        exchange_refuse(asking, PROBLEM_INTERNAL_ERROR);
    else
        http_reply(asking->request, 200, TEXT("application/" JWT_TYPE), buf_text(&jws));
}

static void introspected(struct key_question *question)
{
    const struct introspection *op = question->arg;
    struct exchange *asking = op->asking;

    if (!question_is_decided(question)) {
        exchange_refuse_with(asking, question->refusal);
        return;
    }
    asking->key = question->exchange.key; /* for the access log */
    if (is_signed(asking)) {
        reply_signed(op);
    } else {
        put_introspection(exchange_answer(asking, 200), op);
        oauth_reply(asking);
    }
}

void introspect(struct exchange *exchange)
{
    static const struct form_field FIELDS[] = {
        {"token", true, offsetof(struct introspect_input, token), true},
        {"token_type_hint", false, offsetof(struct introspect_input, hint), false},
        {"client_id", false, offsetof(struct introspect_input, client), false},
    };
    struct introspection *op = http_request_alloc(exchange->request, sizeof *op);
    struct introspect_input input = {0};

    if (!oauth_read_form(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return;
    if (input.client.len > CLIENT_MAX_BYTES) {
        oauth_refuse(exchange, "invalid_request", "client_id must have at most 255 bytes.");
        return;
    }
    op->asking = exchange;
    op->audience = input.client.len > 0 ? input.client : exchange->service->public_origin;
    op->question.key = input.token;
    question_ask(exchange, &op->question, introspected, op);
}
