/* An account's people: /v1/console/users for owners in the console, and /v1/team for keys with team:manage, which
 * manage nobody above a developer. */
#include "base/clock.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "log_revocation_internal.h"
#include "team_internal.h"
#include "views_internal.h"
#include "records/people_store.h"

void people_refuse(struct exchange *exchange, enum store_result result)
{
    if (result == STORE_REFUSED)
        exchange_refuse(exchange, PROBLEM_LAST_OWNER);
    else if (result == STORE_FULL)
        exchange_refuse(exchange, PROBLEM_USER_LIMIT_REACHED);
    else
        exchange_refuse_store(exchange, result);
}

/* GET */

static void put_person(struct json_writer *w, const struct person *person)
{
    json_object_begin(w);
    view_put_person(w, person, VIEW_SESSION);
    json_object_end(w);
}

static void people_found(void *arg, enum store_result result, const struct person *people, size_t count, bool has_more)
{
    if (result == STORE_OK) {
        struct json_writer *w = exchange_answer(arg, 200);

        view_list_begin(w);
        for (size_t i = 0; i < count; i++)
            put_person(w, &people[i]);
        view_list_end(w, has_more);
    }
    exchange_finish(arg, result);
}

void people_list(struct exchange *exchange)
{
    struct people_query query = {.limit = LIST_LIMIT_DEFAULT};

    if (!exchange_read_query(exchange, &QUERY_PEOPLE, &query))
        return;
    http_request_hold(exchange->request);
    people_store_list(exchange_store(exchange), exchange_account(exchange), query.limit, &query.starting_after,
                      people_found, exchange);
}

static void person_found_to_show(void *arg, enum store_result result, const struct person *person)
{
    if (result == STORE_OK)
        put_person(exchange_answer(arg, 200), person);
    exchange_finish(arg, result);
}

void person_show(struct exchange *exchange)
{
    struct id id;

    if (!exchange_read_id(exchange, ID_USER, &id))
        return;
    http_request_hold(exchange->request);
    people_store_find(exchange_store(exchange), exchange_account(exchange), &id, false, person_found_to_show, exchange);
}

/* Changes: answered once they are in effect on every node. */

static person_was_changed person_enabled, person_role_changed, person_disabled, person_removed;

static void change_person(struct exchange *exchange, const struct person_change *change, person_was_changed *done)
{
    const struct person_observer observer = {log_revocation, done, exchange};
    struct audit_source source = exchange_source(exchange);
    struct id id;

    if (!exchange_read_id(exchange, ID_USER, &id))
        return;
    http_request_hold(exchange->request);
    people_store_change(exchange->service->partitions, exchange_account(exchange), &id, change, &source, &observer);
}

struct change_input {
    struct text revoke_keys, role;
};

/* has_role: only then the body has one, and must. False if the exchange has been refused. */
static bool read_change(struct exchange *exchange, bool has_role, struct person_change *change)
{
    static const struct json_field FIELDS[] = {
        {"revoke_keys", JSON_FIELD_WORD, false, offsetof(struct change_input, revoke_keys)},
        {"role", JSON_FIELD_TEXT, true, offsetof(struct change_input, role)},
    };
    struct change_input input = {0};

    if (!exchange_read_body(exchange, FIELDS, has_role ? 2 : 1, &input))
        return false;
    if (has_role && !role_parse(input.role, &change->role))
        exchange_refuse_member(exchange, "role");
    else if (input.revoke_keys.ptr && !key_fate_parse(input.revoke_keys, &change->keys))
        exchange_refuse_member(exchange, "revoke_keys");
    else
        return true;
    return false;
}

void person_set_role(struct exchange *exchange)
{
    struct person_change change = {.kind = PERSON_ROLE};

    if (read_change(exchange, true, &change))
        change_person(exchange, &change, person_role_changed);
}

void person_enable(struct exchange *exchange)
{
    change_person(exchange, &(struct person_change){.kind = PERSON_ENABLE}, person_enabled);
}

void person_disable(struct exchange *exchange)
{
    struct person_change change = {.kind = PERSON_DISABLE};

    if (read_change(exchange, false, &change))
        change_person(exchange, &change, person_disabled);
}

void person_remove(struct exchange *exchange)
{
    struct person_change change = {.kind = PERSON_REMOVE};

    if (exchange_read_query(exchange, &QUERY_REMOVAL, &change.keys))
        change_person(exchange, &change, person_removed);
}

static void finish_change(struct exchange *exchange, enum store_result result, const char *done)
{
    if (result == STORE_OK) {
        exchange_reply(exchange);
        exchange_log_own(exchange, done, exchange->match.id);
    } else {
        people_refuse(exchange, result);
    }
    http_request_release(exchange->request);
}

static void person_enabled(void *arg, enum store_result result, const struct person_changed *changed)
{
    if (result == STORE_OK)
        put_person(exchange_answer(arg, 200), &changed->person);
    finish_change(arg, result, "user changed");
}

static void put_ids(struct json_writer *w, const char *name, const struct id *ids, size_t count)
{
    json_key(w, name);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++)
        json_put_text(w, id_text(&ids[i]));
    json_array_end(w);
}

static void put_changed(struct json_writer *w, const struct person_changed *changed)
{
    json_object_begin(w);
    json_key(w, "user");
    put_person(w, &changed->person);
    json_put_number(w, "sessions_ended", changed->sessions_ended);
    put_ids(w, "keys_revoked", changed->revoked, changed->revoked_count);
    put_ids(w, "keys_kept", changed->kept, changed->kept_count);
    json_object_end(w);
}

static void reply_changed(struct exchange *exchange, enum store_result result, const struct person_changed *changed,
                          const char *done)
{
    if (result == STORE_OK)
        put_changed(exchange_answer(exchange, 200), changed);
    else
        log_revocation_unconfirmed(exchange, result, NULL);
    finish_change(exchange, result, done);
}

static void person_role_changed(void *arg, enum store_result result, const struct person_changed *changed)
{
    reply_changed(arg, result, changed, "user changed");
}

static void person_disabled(void *arg, enum store_result result, const struct person_changed *changed)
{
    reply_changed(arg, result, changed, "user disabled");
}

static void person_removed(void *arg, enum store_result result, const struct person_changed *changed)
{
    reply_changed(arg, result, changed, "user removed");
}

/* /v1/team */

void team_refuse_role(struct exchange *exchange)
{
    exchange_refuse_saying(exchange, PROBLEM_ROLE_NOT_PERMITTED,
                           "API keys can manage developers and below, not owners.");
}

static void team_ended(void *arg, enum store_result result, const struct person_changed *changed)
{
    struct exchange *exchange = arg;

    if (result != STORE_ACTOR_ROLE) {
        person_removed(exchange, result, changed);
        return;
    }
    team_refuse_role(exchange);
    http_request_release(exchange->request);
}

void team_remove(struct exchange *exchange)
{
    struct person_change change = {.kind = PERSON_REMOVE, .spares_owners = true};

    if (exchange_read_query(exchange, &QUERY_REMOVAL, &change.keys))
        change_person(exchange, &change, team_ended);
}
