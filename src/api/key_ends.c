/* The end of a key that is known in advance: /v1/api_keys/{id}/scheduled_revocation and …/replacement, and the same for
 * the console. When the time has come, nodes refuse the key without being told. */
#include "base/clock.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "key_json_internal.h"
#include "key_name_internal.h"
#include "log_revocation_internal.h"
#include "views_internal.h"

enum { OVERLAP_MAX_S = 30 * 24 * 60 * 60, MS_PER_S = 1000 };

static void put_end(struct json_writer *w, const struct key_record *key)
{
    json_object_begin(w);
    JSON_PUT_WORD(w, "id", id_text(&key->id));
    view_put_time_or_null(w, "revoke_at", key->ends_ms);
    view_put_time_or_null(w, "revoked_at", key->revoked_ms);
    json_object_end(w);
}

/* GET */

static void on_found(void *arg, enum store_result result, const struct key_record *key)
{
    if (result == STORE_OK)
        put_end(exchange_answer(arg, 200), key);
    exchange_finish(arg, result);
}

void key_end_show(struct exchange *exchange)
{
    struct key_view view = key_view_of(exchange);
    struct id id;

    if (!exchange_read_id(exchange, ID_KEY, &id))
        return;
    http_request_hold(exchange->request);
    key_store_get(exchange_store(exchange), &view, &id, on_found, exchange);
}

/* PUT and DELETE. Sooner is what whoever may revoke may say; later, or never, is like making a key. */

static bool may_delay(const struct exchange *exchange)
{
    return exchange->session && exchange->session->user.role >= ROLE_DEVELOPER &&
           exchange->session->step_up_expires_ms > 0;
}

static enum problem_code problem_of_delay(const struct exchange *exchange)
{
    if (!exchange->session)
        return PROBLEM_DELAY_NOT_PERMITTED;
    return exchange->session->user.role < ROLE_DEVELOPER ? PROBLEM_ROLE_NOT_PERMITTED : PROBLEM_STEP_UP_REQUIRED;
}

static void refuse_time(struct exchange *exchange, enum key_schedule_refusal why)
{
    switch (why) {
    case KEY_SCHEDULE_PAST:
        exchange_refuse_value(exchange, "revoke_at must be in the future.");
        break;
    case KEY_SCHEDULE_FAR:
        exchange_refuse_value(exchange, "revoke_at must be within 400 days.");
        break;
    case KEY_SCHEDULE_LATER:
        exchange_refuse(exchange, problem_of_delay(exchange));
        break;
    }
}

static void on_withdrawn(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                         enum key_schedule_refusal why, uint32_t retry_after_s)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK) {
        log_revocation_end(exchange, key, said_ms);
        put_end(exchange_answer(exchange, 200), key);
        exchange_reply(exchange);
    } else if (result == STORE_REFUSED) {
        refuse_time(exchange, why);
    } else if (result == STORE_CONFLICT) {
        exchange_refuse(exchange, PROBLEM_ALREADY_REVOKED);
    } else {
        exchange_refuse_change(exchange, result, retry_after_s);
    }
    http_request_release(exchange->request);
}

static void on_scheduled(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                         enum key_schedule_refusal why, uint32_t retry_after_s)
{
    log_revocation_unconfirmed(arg, result, NULL);
    on_withdrawn(arg, result, key, said_ms, why, retry_after_s);
}

/* ends_ms: 0 for never. */
static void schedule(struct exchange *exchange, int64_t ends_ms)
{
    struct key_view view = key_view_of(exchange);
    struct audit_source source = exchange_source(exchange);
    bool is_free = may_delay(exchange);
    struct id id;

    if (!exchange_read_id(exchange, ID_KEY, &id))
        return;
    if (is_free) {
        source.credential.needs_step_up = true;
        source.credential.least_role = ROLE_DEVELOPER;
    }
    http_request_hold(exchange->request);
    key_store_schedule(exchange_store(exchange), &view, &id, ends_ms, is_free, &source,
                       ends_ms > 0 ? on_scheduled : on_withdrawn, exchange);
}

void key_end_set(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {{"revoke_at", JSON_FIELD_TEXT, true, 0}};
    struct text revoke_at;
    int64_t ends_ms;

    if (!exchange_read_body(exchange, FIELDS, 1, &revoke_at))
        return;
    if (clock_read_rfc3339(revoke_at, &ends_ms) && ends_ms > 0)
        schedule(exchange, ends_ms);
    else
        exchange_refuse_member(exchange, "revoke_at");
}

void key_end_withdraw(struct exchange *exchange)
{
    schedule(exchange, 0);
}

/* POST …/replacement: the new key is made like any other, with the mode of the one that it replaces. Make before break:
 * the other key, or a successor whose secret has arrived, is accepted at any time before the end that was asked for. */

struct replacement {
    struct key_grant grant;
    struct id replaced_id;
    struct text name;          /* empty: the replaced key's */
    const struct json *scopes; /* NULL: those of the replaced key */
    int64_t overlap_s;
    struct key_record replaced; /* as it was read; then as it is after the change, which was made at said_ms */
    int64_t said_ms;
};

/* The log outlives the end of a key whose successor did not arrive, so that is not in it. */
static void replacement_delivered(struct key_grant *grant)
{
    const struct replacement *op = (const struct replacement *)grant;

    log_revocation_end(grant->exchange, &op->replaced, op->said_ms);
}

static void refuse_replaced(struct exchange *exchange, struct text successor)
{
    const char *why = exchange_format(exchange, "This key was replaced by %.*s, which is in use.", TEXT_ARG(successor));

    exchange_refuse_saying(exchange, PROBLEM_ALREADY_REPLACED, why);
}

static void on_replaced(void *arg, enum store_result result, const struct key_record *replaced, int64_t said_ms,
                        struct text successor, uint32_t retry_after_s)
{
    struct replacement *op = arg;
    struct exchange *exchange = op->grant.exchange;

    log_revocation_unconfirmed(exchange, result, NULL);
    if (result == STORE_OK)
        key_copy(&op->replaced, replaced);
    op->said_ms = said_ms;
    op->grant.delivered = replacement_delivered;
    if (key_grant_stored(&op->grant, result)) {
        key_grant_reply(&op->grant);
        return;
    }
    if (result == STORE_REFUSED && text_equal(successor, TEXT("again")))
        exchange_refuse(exchange, PROBLEM_OVERLOADED);
    else if (result == STORE_REFUSED && successor.len > 0)
        refuse_replaced(exchange, successor);
    else if (result == STORE_REFUSED)
        exchange_refuse(exchange, PROBLEM_ALREADY_REVOKED);
    else
        exchange_refuse_change(exchange, result, retry_after_s);
    http_request_release(exchange->request);
}

static bool narrow_scopes(struct replacement *op, const struct key_record *replaced)
{
    struct problem problem = problem_param(PROBLEM_SCOPE_NOT_GRANTABLE, TEXT("scopes"));
    scope_set *scopes = &op->grant.key.scopes;

    if (!key_json_read_scopes(op->grant.exchange, op->scopes, scopes))
        return false;
    if (scope_includes(replaced->scopes, *scopes))
        return true;
    problem.message = "A replacement has the scopes of the key that it replaces, or some of them.";
    problem.required_scopes = *scopes & ~replaced->scopes;
    problem.has_required_scopes = true;
    exchange_refuse_with(op->grant.exchange, problem);
    return false;
}

static bool make_key(struct replacement *op, const struct key_record *replaced)
{
    struct exchange *exchange = op->grant.exchange;
    struct key_record *key = &op->grant.key;

    key_replace_by(key, replaced, exchange_actor(exchange));
    if (op->scopes && !narrow_scopes(op, replaced))
        return false;
    if (op->name.ptr && !key_set_name(key, op->name)) {
        exchange_refuse_name(exchange, op->name);
        return false;
    }
    return key_may_be_granted(exchange, key, false);
}

static void replace_named(void *arg)
{
    struct replacement *op = arg;
    struct exchange *exchange = op->grant.exchange;
    struct audit_source source = key_grant_source(exchange, op->grant.key.scopes);

    key_grant_begin(&op->grant, exchange);
    key_grant_draw(&op->grant);
    key_store_replace(exchange_store(exchange),
                      &(struct key_replacement){.key = &op->grant.key,
                                                .digest = op->grant.digest,
                                                .view = key_view_of(exchange),
                                                .replaced = op->replaced_id,
                                                .replaced_by = op->replaced.replaced_by,
                                                .overlap_ms = op->overlap_s * MS_PER_S},
                      &source, on_replaced, op);
}

static void replace_made(struct replacement *op)
{
    if (op->name.ptr) /* otherwise it has the name of the key that it replaces */
        key_name_judge(op->grant.exchange, op->name, replace_named, op);
    else
        replace_named(op);
}

/* A key in the cache does not say whom it goes back to. */
static void replacer_found(void *arg, enum store_result result, const struct key_record *actor)
{
    struct replacement *op = arg;

    if (result == STORE_OK) {
        key_replace_with(&op->grant.key, actor);
        replace_made(op);
        return;
    }
    exchange_refuse_store(op->grant.exchange, result == STORE_NOT_FOUND ? STORE_ACTOR_UNKNOWN : result);
    http_request_release(op->grant.exchange->request);
}

static void on_found_to_replace(void *arg, enum store_result result, const struct key_record *replaced)
{
    struct replacement *op = arg;
    struct exchange *exchange = op->grant.exchange;

    /* Nobody waits for the secret, and perhaps the request was repeated and answered elsewhere. */
    if (http_request_gone(exchange->request)) {
        http_request_release(exchange->request);
        return;
    }
    /* Whether it is revoked is for the script to say, once it has found that the actor may still do this. */
    if (result != STORE_OK) {
        exchange_refuse_store(exchange, result);
    } else if (make_key(op, replaced)) {
        const struct key_view view = key_view_of(exchange);

        key_copy(&op->replaced, replaced);
        if (op->grant.key.via.text[0])
            key_store_get(exchange_store(exchange), &view, exchange_actor(exchange), replacer_found, op);
        else
            replace_made(op);
        return;
    }
    http_request_release(exchange->request);
}

void key_replace(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {
        {"overlap_seconds", JSON_FIELD_INTEGER, true, offsetof(struct replacement, overlap_s)},
        {"name", JSON_FIELD_TEXT, false, offsetof(struct replacement, name)},
        {"scopes", JSON_FIELD_ARRAY, false, offsetof(struct replacement, scopes)},
    };
    struct replacement *op = http_request_alloc(exchange->request, sizeof *op);
    struct key_view view = key_view_of(exchange);

    op->grant.exchange = exchange;
    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, op) ||
        !exchange_read_id(exchange, ID_KEY, &op->replaced_id))
        return;
    if (op->overlap_s < 0 || op->overlap_s > OVERLAP_MAX_S) {
        exchange_refuse_member(exchange, "overlap_seconds");
        return;
    }
    http_request_hold(exchange->request);
    key_store_get(exchange_store(exchange), &view, &op->replaced_id, on_found_to_replace, op);
}
