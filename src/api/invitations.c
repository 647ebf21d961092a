/* Invitations and resets: links by which people set their own password and authenticator. */
#include "base/clock.h"
#include "core/email.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "records/link_store.h"
#include "records/people_store.h"
#include "team_internal.h"
#include "views_internal.h"

#include <stdio.h>
#include <string.h>

enum { URL_MAX_BYTES = 1024 };

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

/* The code is in the fragment, which browsers send to nobody. */
static void put_url(struct json_writer *w, const struct link_op *op)
{
    struct buf url = BUF_FIXED(URL_MAX_BYTES);

    buf_printf(&url, "%.*s/console/join#%s", TEXT_ARG(op->exchange->service->public_origin), op->code.text);
    json_put_member(w, "url", buf_text(&url));
    buf_wipe(&url);
}

/* The members of an object, without its braces. */
static void put_invitation(struct json_writer *w, const struct link_record *link)
{
    json_put_member(w, "id", id_text(&link->id));
    json_put_member(w, "email", text_of(link->email));
    json_put_member(w, "role", role_text(link->role));
    view_put_time(w, "expires_at", link->expires_ms);
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
        exchange_refuse_member(exchange, "role");
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
    struct json_writer *w = exchange_answer(op->exchange, 201);

    json_object_begin(w);
    put_invitation(w, &op->link);
    put_url(w, op);
    json_object_end(w);
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
                              bool has_more)
{
    if (result == STORE_OK) {
        struct json_writer *w = exchange_answer(arg, 200);

        view_list_begin(w);
        for (size_t i = 0; i < count; i++) {
            json_object_begin(w);
            put_invitation(w, &links[i]);
            json_object_end(w);
        }
        view_list_end(w, has_more);
    }
    exchange_finish(arg, result);
}

void invitations_list(struct exchange *exchange)
{
    struct people_query query = {.limit = LIST_LIMIT_DEFAULT};

    if (!exchange_read_query(exchange, &QUERY_INVITATIONS, &query))
        return;
    http_request_hold(exchange->request);
    link_store_list(exchange_store(exchange), exchange_account(exchange), query.limit, &query.starting_after,
                    invitations_found, exchange);
}

/* DELETE /v1/console/invitations/{id} */

static void invitation_withdrawn(void *arg, enum store_result result)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        exchange_log_own(exchange, "invitation withdrawn", exchange->match.id);
    exchange_finish(exchange, result);
}

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

/* POST /v1/console/users/{id}/reset */

static void reset_stored(void *arg, enum store_result result, int64_t sessions_ended)
{
    struct link_op *op = arg;
    struct exchange *exchange = op->exchange;

    if (result == STORE_OK) {
        struct json_writer *w = exchange_answer(exchange, 200);

        json_object_begin(w);
        put_url(w, op);
        view_put_time(w, "expires_at", op->link.expires_ms);
        json_put_number(w, "sessions_ended", sessions_ended);
        json_object_end(w);
        exchange_reply(exchange);
        exchange_log_own(exchange, "user reset", exchange->match.id);
    } else {
        people_refuse(exchange, result);
    }
    http_request_release(exchange->request);
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
