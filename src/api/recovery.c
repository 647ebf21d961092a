/* A lost authenticator: email, password and a recovery code enrol a new one. Nobody is signed in by it. The code is
 * spent only when a code of the new authenticator confirms it, so a lost answer costs none. */
#include "core/recovery_code.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "new_totp_internal.h"
#include "sign_in_internal.h"
#include "views_internal.h"

/* POST /v1/auth/recover */

struct recovery {
    struct sign_in sign_in; /* first, so that a pointer to it is one to this */
    struct text code_text;
    struct recovery_code written; /* wiped when the request is freed */
    struct token_digests code;
    struct token ticket; /* wiped when the request is freed */
    uint8_t ticket_digest[KEYRING_DIGEST_BYTES];
    struct totp_secret secret;
    struct sealed_totp sealed;
};

static bool recovery_read(struct recovery *op);
static void recovery_named(struct sign_in *sign_in);
static void recovery_store(struct sign_in *sign_in);
static void recovery_stored(void *arg, enum store_result result, uint32_t retry_after_s);

static void recovery_wipe(void *op)
{
    recovery_code_wipe(&((struct recovery *)op)->written);
}

void recovery_begin(struct exchange *exchange)
{
    struct recovery *op = http_request_alloc(exchange->request, sizeof *op);

    op->sign_in.exchange = exchange;
    http_request_defer(exchange->request, recovery_wipe, op);
    if (!recovery_read(op))
        return;
    http_request_defer(exchange->request, token_wipe, &op->ticket);
    op->sign_in.named = recovery_named;
    op->sign_in.throttled_line = "recovery throttled";
    op->sign_in.refused_line = "recovery refused";
    op->sign_in.recovery_code = &op->code;
    op->sign_in.check.by_recovery_code = true;
    op->sign_in.proven = recovery_store;
    sign_in_begin(&op->sign_in);
}

/* False if the exchange has been refused. */
static bool recovery_read(struct recovery *op)
{
    static const struct json_field FIELDS[] = {
        {"email", JSON_FIELD_TEXT, true, offsetof(struct recovery, sign_in.written)},
        {"password", JSON_FIELD_TEXT, true, offsetof(struct recovery, sign_in.check.password)},
        {"recovery_code", JSON_FIELD_TEXT, true, offsetof(struct recovery, code_text)},
    };
    struct sign_in *sign_in = &op->sign_in;

    if (!sign_in_read(sign_in, FIELDS, sizeof FIELDS / sizeof *FIELDS))
        return false;
    if (recovery_code_parse(op->code_text, &op->written))
        return true;
    exchange_refuse_member(sign_in->exchange, "recovery_code");
    return false;
}

/* The digests of a user's codes are made with the email. */
static void recovery_named(struct sign_in *sign_in)
{
    struct recovery *op = (struct recovery *)sign_in;

    recovery_code_digests(sign_in->exchange->service->keyring, text_of(sign_in->email), &op->written, &op->code);
    recovery_code_wipe(&op->written);
}

static void recovery_store(struct sign_in *sign_in)
{
    struct recovery *op = (struct recovery *)sign_in;
    struct exchange *exchange = sign_in->exchange;

    token_draw(exchange->service->keyring, bucket_of_account(&sign_in->check.user.account), KEYRING_RECOVERY,
               &op->ticket, op->ticket_digest);
    new_totp_make(exchange, &sign_in->check.user.id, &op->secret, &op->sealed);
    const struct recovery_start start = {
        .user = &sign_in->check.user,
        .attempt = sign_in->attempt,
        .code = &op->code,
        .ticket = op->ticket_digest,
        .totp = &op->sealed,
    };
    factor_store_begin_recovery(exchange->service->partitions, &start, recovery_stored, op);
}

static void reply_ticket(struct recovery *op)
{
    const struct user_record *user = &op->sign_in.check.user;
    struct exchange *exchange = op->sign_in.exchange;
    struct json_writer *w = exchange_answer(exchange, 200);

    json_object_begin(w);
    view_put_totp(w, &op->secret, text_of(op->sign_in.email));
    json_put_member(w, "ticket", text_of(op->ticket.text));
    json_object_end(w);
    exchange_reply(exchange);
    exchange_log(exchange, "recovery begun", id_text(&user->account), (struct text){0}, id_text(&user->id));
}

static void recovery_stored(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct recovery *op = arg;

    if (result == STORE_OK) {
        reply_ticket(op);
        http_request_release(op->sign_in.exchange->request);
    } else if (result == STORE_NOT_FOUND || (result == STORE_REFUSED && retry_after_s == 0)) {
        /* The password was changed, the code spent or the user locked meanwhile. The response does not say which. */
        sign_in_fail(&op->sign_in, false);
    } else {
        sign_in_refuse(&op->sign_in, result, retry_after_s);
    }
}

/* POST /v1/auth/recover/confirm */

struct confirm_input {
    struct text ticket, totp;
};

static void log_recovered(struct exchange *exchange, const struct id *account, const struct id *user)
{
    exchange_log(exchange, "recovery code used", id_text(account), id_text(user), id_text(user));
}

void recovery_confirm(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {
        {"ticket", JSON_FIELD_TEXT, true, offsetof(struct confirm_input, ticket)},
        {"totp", JSON_FIELD_TEXT, true, offsetof(struct confirm_input, totp)},
    };
    struct new_totp_confirm *op = http_request_alloc(exchange->request, sizeof *op);
    struct confirm_input input = {0};
    struct token_digests ticket;

    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input) ||
        !user_check_read_code(exchange, input.totp))
        return;
    exchange->missing = PROBLEM_AUTHENTICATOR_NOT_FOUND;
    if (!token_digests(exchange->service->keyring, KEYRING_RECOVERY, input.ticket, &ticket)) {
        exchange_refuse(exchange, exchange->missing);
        return;
    }
    op->exchange = exchange;
    op->code = input.totp;
    op->source = exchange_source(exchange);
    op->done = log_recovered;
    http_request_hold(exchange->request);
    factor_store_find_recovery(exchange->service->partitions, &ticket, new_totp_found, op);
}
