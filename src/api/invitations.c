/* Invitations and resets: links by which people set their own password and authenticator. */
#include "base/clock.h"
#include "core/email.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "people_view_internal.h"
#include "team_internal.h"

#include <stdio.h>
#include <string.h>

struct link_op {
    struct exchange *exchange;
    char written[EMAIL_MAX_BYTES + 1]; /* the email of an invitation, as versions before 0.4 would keep it */
    struct link_record link;
    struct token code; /* wiped when the request is freed */
};

static struct link_op *link_begin(struct exchange *exchange)
{
    struct link_op *op = http_request_alloc(exchange->request, sizeof *op);

    op->exchange = exchange;
    exchange->missing = PROBLEM_USER_NOT_FOUND;
    http_request_defer(exchange->request, token_wipe, &op->code);
    op->link.id = id_mint(ID_INVITATION, clock_wall_ms());
    op->link.account = *exchange_account(exchange);
    return op;
}

static void link_draw_code(struct link_op *op)
{
    token_draw(op->exchange->service->keyring, bucket_of_account(&op->link.account), KEYRING_LINK, &op->code,
               op->link.digest);
}

static struct text link_url(struct link_op *op)
{
    struct exchange *exchange = op->exchange;
    struct buf url;

    buf_init_fixed(&url, http_request_alloc(exchange->request, LINK_URL_MAX_BYTES), LINK_URL_MAX_BYTES);
    view_print_link(exchange->service->public_origin, &op->code, &url);
    return buf_text(&url);
}

/* POST /v1/console/invitations, /v1/team/invitations */

struct invitation_input {
    struct text email, role;
};

static void invitation_written_found(void *arg, enum store_result result, const struct user_record *user);
static void invitation_store(struct link_op *op);
static void invitation_stored(void *arg, enum store_result result, uint32_t retry_after_s);

static void refuse_email(struct exchange *exchange, struct text email)
{
    struct buf why = BUF_FIXED(EMAIL_WHY_BYTES);

    email_explain(email, &why);
    exchange_refuse_value(exchange, http_request_copy(exchange->request, buf_text(&why)).ptr);
}

/* False if the exchange has been refused. */
static bool invitation_read(struct link_op *op)
{
    struct exchange *exchange = op->exchange;
    struct link_record *link = &op->link;
    static const struct json_field FIELDS[] = {
        {"email", JSON_FIELD_TEXT, true, offsetof(struct invitation_input, email)},
        {"role", JSON_FIELD_TEXT, true, offsetof(struct invitation_input, role)},
    };
    struct invitation_input input = {0};

    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    if (!email_read(input.email, link->email) || !account_normalise_email(input.email, op->written)) {
        refuse_email(exchange, input.email);
        return false;
    }
    if (!role_parse(input.role, &link->role)) {
        exchange_refuse_value(exchange, ROLE_RULE);
        return false;
    }
    if (exchange->key && link->role > ROLE_DEVELOPER) {
        team_refuse_role(exchange);
        return false;
    }
    return !exchange->key || scopes_may_be_granted(exchange, role_scopes(link->role), TEXT("role"));
}

void invitation_create(struct exchange *exchange)
{
    struct link_op *op = link_begin(exchange);

    if (!invitation_read(op))
        return;
    http_request_hold(exchange->request);
    if (strcmp(op->written, op->link.email) != 0)
        account_store_find_user(exchange->service->partitions, text_of(op->written), invitation_written_found, op);
    else
        invitation_store(op);
}

/* The same address may belong to a user of an earlier version, who keeps it as it was written. */
static void invitation_written_found(void *arg, enum store_result result, const struct user_record *user UNUSED)
{
    struct link_op *op = arg;

    if (result == STORE_NOT_FOUND)
        invitation_store(op);
    else
        invitation_stored(op, result == STORE_OK ? STORE_CONFLICT : result, 0);
}

static void invitation_store(struct link_op *op)
{
    struct audit_source source = exchange_source(op->exchange);

    link_draw_code(op);
    link_store_invite(op->exchange->service->partitions, &op->link, &source, invitation_stored, op);
}

static void invitation_reply(struct link_op *op)
{
    view_invitation(exchange_answer(op->exchange, 201), &op->link, link_url(op));
    exchange_reply(op->exchange);
    exchange_log_own(op->exchange, "user invited", id_text(&op->link.id));
}

static void invitation_stored(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct link_op *op = arg;

    if (result == STORE_OK)
        invitation_reply(op);
    else if (result == STORE_CONFLICT)
        exchange_refuse(op->exchange, PROBLEM_USER_EXISTS);
    else if (result == STORE_LIMITED)
        exchange_refuse_limited(op->exchange, retry_after_s);
    else
        people_refuse(op->exchange, result);
    http_request_release(op->exchange->request);
}

/* GET /v1/console/invitations */

static void invitations_found(void *arg, enum store_result result, const struct link_record *links, size_t count,
                              bool has_more);

void invitations_list(struct exchange *exchange)
{
    struct people_query query = {.limit = LIST_LIMIT_DEFAULT};

    if (!exchange_read_query(exchange, &QUERY_INVITATIONS, &query))
        return;
    http_request_hold(exchange->request);
    link_store_list(exchange_store(exchange), exchange_account(exchange), query.limit, &query.starting_after,
                    invitations_found, exchange);
}

static void invitations_found(void *arg, enum store_result result, const struct link_record *links, size_t count,
                              bool has_more)
{
    if (result == STORE_OK)
        view_invitations(exchange_answer(arg, 200), links, count, has_more);
    exchange_finish(arg, result);
}

/* DELETE /v1/console/invitations/{id} */

static void invitation_withdrawn(void *arg, enum store_result result);

void invitation_withdraw(struct exchange *exchange)
{
    struct audit_source source = exchange_source(exchange);
    struct id id;

    if (!exchange_read_id(exchange, ID_INVITATION, &id))
        return;
    http_request_hold(exchange->request);
    link_store_withdraw(exchange_store(exchange), exchange_account(exchange), &id, &source, invitation_withdrawn,
                        exchange);
}

static void invitation_withdrawn(void *arg, enum store_result result)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        exchange_log_own(exchange, "invitation withdrawn", exchange->match.id);
    exchange_finish(exchange, result);
}

/* POST /v1/console/users/{id}/reset */

static void reset_found(void *arg, enum store_result result, const struct person *person);
static void reset_stored(void *arg, enum store_result result, int64_t sessions_ended);

void person_reset(struct exchange *exchange)
{
    struct id id;
    struct link_op *op;

    if (!exchange_read_id(exchange, ID_USER, &id))
        return;
    op = link_begin(exchange);
    http_request_hold(exchange->request);
    people_store_find(exchange_store(exchange), exchange_account(exchange), &id, false, reset_found, op);
}

static void reset_found(void *arg, enum store_result result, const struct person *person)
{
    struct link_op *op = arg;
    struct exchange *exchange = op->exchange;
    struct audit_source source = exchange_source(exchange);

    if (result != STORE_OK) {
        exchange_finish(exchange, result);
        return;
    }
    op->link.user = person->user.id;
    op->link.role = person->user.role;
    snprintf(op->link.email, sizeof op->link.email, "%s", person->user.email);
    link_draw_code(op);
    link_store_reset(exchange_store(exchange), &op->link, &source, reset_stored, op);
}

static void reset_stored(void *arg, enum store_result result, int64_t sessions_ended)
{
    struct link_op *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_OK) {
        view_reset(exchange_answer(exchange, 200), &op->link, link_url(op), sessions_ended);
        exchange_reply(exchange);
        exchange_log_own(exchange, "user reset", exchange->match.id);
    } else {
        people_refuse(exchange, result);
    }
    http_request_release(exchange->request);
}
