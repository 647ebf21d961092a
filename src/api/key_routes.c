/* API keys for integrations (/v1/api_keys) and for the console (/v1/console/api_keys), and device keys for the console
 * (/v1/console/device_keys). The same code serves all three; the principal decides what may be seen and granted. */
#include "base/clock.h"
#include "base/secure.h"
#include "core/label.h"
#include "exchange_internal.h"
#include "exchange_log_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "key_json_internal.h"
#include "key_name_internal.h"
#include "log_revocation_internal.h"
#include "records/key_store.h"

struct key_view key_view_of(const struct exchange *exchange)
{
    return (struct key_view){
        .account = *exchange_account(exchange),
        .kind = exchange->match.route->flags & ROUTE_DEVICE ? KEY_DEVICE : KEY_API,
        .test_only = exchange->key && exchange->key->mode == MODE_TEST,
    };
}

/* POST: draw a key, store only its digest, show the secret once. A decoy is the same, except that it is revoked from
 * the start: no node ever accepts it, and each use of it is an event (refusal.c), as of any revoked key. */

struct key_creation {
    struct key_grant grant;
    bool is_decoy;
};

static void create_named(void *arg);
static void maker_found(void *arg, enum store_result result, const struct key_record *maker);
static void store_key(struct key_grant *grant);
static void key_stored(void *arg, enum store_result result, uint32_t retry_after_s);

void keys_create(struct exchange *exchange)
{
    struct key_creation *op = http_request_alloc(exchange->request, sizeof *op);
    struct key_record *key = &op->grant.key;

    op->grant.exchange = exchange;
    if (!key_json_read(exchange, key, &op->is_decoy) || !key_may_be_granted(exchange, key, op->is_decoy))
        return;
    http_request_hold(exchange->request);
    key_name_judge(exchange, key_name(key), create_named, op);
}

static void create_named(void *arg)
{
    struct key_creation *op = arg;
    struct key_grant *grant = &op->grant;
    struct exchange *exchange = grant->exchange;
    struct key_view view = key_view_of(exchange);

    grant->key.account = *exchange_account(exchange);
    key_grant_begin(grant, exchange);
    if (op->is_decoy)
        grant->key.revoked_ms = grant->key.created_ms;
    if (exchange->key) {
        key_store_get(exchange_store(exchange), &view, exchange_actor(exchange), maker_found, grant);
    } else {
        key_made_by_person(&grant->key, exchange_actor(exchange));
        store_key(grant);
    }
}

/* A key in the cache does not say whom it goes back to. */
static void maker_found(void *arg, enum store_result result, const struct key_record *maker)
{
    struct key_grant *grant = arg;

    if (result == STORE_OK) {
        key_made_by_key(&grant->key, maker);
        store_key(grant);
        return;
    }
    exchange_refuse_store(grant->exchange, result == STORE_NOT_FOUND ? STORE_ACTOR_UNKNOWN : result);
    http_request_release(grant->exchange->request);
}

static void store_key(struct key_grant *grant)
{
    struct exchange *exchange = grant->exchange;
    struct audit_source source = key_grant_source(exchange, grant->key.revoked_ms ? SCOPE_NONE : grant->key.scopes);

    key_grant_draw(grant);
    key_store_insert(exchange_store(exchange), &grant->key, grant->digest, &source, key_stored, grant);
}

bool scopes_may_be_granted(struct exchange *exchange, scope_set scopes, struct text param)
{
    scope_set held = exchange->key ? exchange->key->scopes : role_scopes(exchange->session->user.role);
    struct problem problem = problem_param(PROBLEM_SCOPE_NOT_GRANTABLE, param);

    if (scope_includes(held, scopes))
        return true;
    problem.required_scopes = scopes & ~held;
    problem.has_required_scopes = true;
    exchange_refuse_with(exchange, problem);
    return false;
}

bool key_may_be_granted(struct exchange *exchange, const struct key_record *key, bool is_decoy)
{
    if (exchange->key && exchange->key->mode == MODE_TEST && key->mode == MODE_LIVE) {
        exchange_refuse_with(exchange, problem_param(PROBLEM_MODE_NOT_PERMITTED, TEXT("mode")));
        return false;
    }
    return is_decoy || (exchange->key && exchange->service->grant_any) ||
           scopes_may_be_granted(exchange, key->scopes, TEXT("scopes"));
}

struct audit_source key_grant_source(const struct exchange *exchange, scope_set scopes)
{
    struct audit_source source = exchange_source(exchange);
    enum role least = role_least_for(scopes);

    if (source.credential.kind == CREDENTIAL_SESSION && source.credential.least_role < least)
        source.credential.least_role = least;
    return source;
}

static void key_stored(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct key_grant *grant = arg;

    if (result == STORE_OK && grant->key.revoked_ms)
        log_revocation(grant->exchange, &grant->key);
    if (key_grant_stored(grant, result)) {
        key_grant_reply(grant);
        return;
    }
    exchange_refuse_change(grant->exchange, result, retry_after_s);
    http_request_release(grant->exchange->request);
}

/* GET: list keys */

static void keys_found(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        key_json_put_list(exchange_answer(exchange, 200), keys, count, exchange->session != NULL, has_more);
    exchange_finish(exchange, result);
}

void keys_list(struct exchange *exchange)
{
    struct key_query query = {.view = key_view_of(exchange), .limit = LIST_LIMIT_DEFAULT};

    if (!exchange_read_query(exchange, query.view.kind == KEY_DEVICE ? &QUERY_DEVICE_KEYS : &QUERY_KEYS, &query))
        return;
    http_request_hold(exchange->request);
    key_store_list(exchange_store(exchange), &query, keys_found, exchange);
}

/* GET: show one key */

static void show_key(void *arg, enum store_result result, const struct key_record *key)
{
    struct exchange *exchange = arg;

    if (result == STORE_OK)
        key_json_put(exchange_answer(exchange, 200), key, exchange->session != NULL);
    exchange_finish(exchange, result);
}

void keys_show(struct exchange *exchange)
{
    struct key_view view = key_view_of(exchange);
    struct id id;

    if (!exchange_read_id(exchange, ID_KEY, &id))
        return;
    http_request_hold(exchange->request);
    key_store_get(exchange_store(exchange), &view, &id, show_key, exchange);
}

/* PATCH: give a key another name. Also a revoked one: in an incident, and of a decoy, the name says what people know of
 * it. Nothing that is checked changes. */

struct key_rename_input {
    struct text name;
    struct exchange *exchange;
    struct id id;
};

static void renamed(void *arg, enum store_result result, const struct key_record *key, uint32_t retry_after_s)
{
    struct exchange *exchange = arg;

    if (result != STORE_LIMITED) {
        show_key(exchange, result, key);
        return;
    }
    exchange_refuse_limited(exchange, retry_after_s);
    http_request_release(exchange->request);
}

static void rename_named(void *arg)
{
    struct key_rename_input *input = arg;
    struct exchange *exchange = input->exchange;
    struct key_view view = key_view_of(exchange);
    struct audit_source source = exchange_source(exchange);

    key_store_rename(exchange_store(exchange), &view, &input->id, input->name, &source, renamed, exchange);
}

void keys_rename(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {
        {"name", JSON_FIELD_TEXT, true, offsetof(struct key_rename_input, name)}};
    struct key_rename_input *input = http_request_alloc(exchange->request, sizeof *input);

    input->exchange = exchange;
    if (!exchange_read_body(exchange, FIELDS, 1, input))
        return;
    if (!label_valid(input->name)) {
        exchange_refuse_name(exchange, input->name);
        return;
    }
    if (!exchange_read_id(exchange, ID_KEY, &input->id))
        return;
    http_request_hold(exchange->request);
    key_name_judge(exchange, input->name, rename_named, input);
}

/* DELETE: once this is answered with 200, no node accepts the key. Any other response promises nothing, but a
 * revocation that was written stays. */

static void key_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    if (result == STORE_OK)
        log_revocation(arg, key);
    else
        log_revocation_unconfirmed(arg, result, NULL);
    show_key(arg, result, key);
}

void keys_revoke(struct exchange *exchange)
{
    struct key_view view = key_view_of(exchange);
    struct audit_source source = exchange_source(exchange);
    struct id id;

    if (!exchange_read_id(exchange, key_id_kind(view.kind), &id))
        return;
    http_request_hold(exchange->request);
    key_store_revoke(exchange_store(exchange), &view, &id, &source, key_revoked, exchange);
}

/* POST …/revoke: a list of keys. Once this is answered with 200, no node accepts any of them. Any other response
 * promises nothing, but what was written stays, and repeating is safe. */

_Static_assert(REVOKE_LIST_MAX *(ID_TEXT_BYTES + 3) + 256 < ANSWER_MAX_BYTES, "with quotes, commas and names");

static void put_ids(struct json_writer *w, const char *name, const struct key_of_list *keys, size_t count,
                    enum key_outcome outcome)
{
    json_key(w, name);
    json_array_begin(w);
    for (size_t i = 0; i < count; i++)
        if (keys[i].outcome == outcome)
            JSON_PUT_WORD_ELEMENT(w, id_text(&keys[i].id));
    json_array_end(w);
}

/* The response always lists the keys that were revoked. */
static void list_counted(void *arg, enum store_result result UNUSED, uint32_t retry_after_s UNUSED)
{
    exchange_finish(arg, STORE_OK);
}

static void unknown_list_counted(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct exchange *exchange = arg;

    if (result != STORE_LIMITED) {
        exchange_finish(exchange, STORE_OK);
        return;
    }
    exchange_refuse_limited(exchange, retry_after_s);
    http_request_release(exchange->request);
}

static unsigned count_unknown(const struct key_of_list *keys, size_t count)
{
    unsigned unknown = 0;

    for (size_t i = 0; i < count; i++)
        unknown += keys[i].outcome == KEY_WAS_NOT_FOUND;
    return unknown;
}

/* Ids are paid for if more than half of them are unknown. Then the answer waits for that. */
static void reply_list(struct exchange *exchange, const struct key_of_list *keys, size_t count)
{
    struct json_writer *w = exchange_answer(exchange, 200);
    const unsigned unknown = count_unknown(keys, count);

    json_object_begin(w);
    put_ids(w, "revoked", keys, count, KEY_WAS_REVOKED);
    put_ids(w, "already_revoked", keys, count, KEY_WAS_REVOKED_BEFORE);
    put_ids(w, "not_found", keys, count, KEY_WAS_NOT_FOUND);
    json_object_end(w);
    if (2 * unknown > count)
        exchange_count_missed(exchange, unknown, false, unknown == count ? unknown_list_counted : list_counted,
                              exchange);
    else
        exchange_finish(exchange, STORE_OK);
}

static void list_revoked(void *arg, enum store_result result, const struct key_of_list *keys, size_t count)
{
    if (result == STORE_OK) {
        reply_list(arg, keys, count);
        return;
    }
    log_revocation_unconfirmed(arg, result, NULL);
    exchange_finish(arg, result);
}

struct ids_input {
    const struct json *ids;
};

static void refuse_ids(struct exchange *exchange, const struct json *item, size_t at)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_INVALID, TEXT("ids"));
    struct text shown = json_type(item) == JSON_STRING ? json_text(item) : (struct text){0};

    if (!problem_may_repeat(shown))
        shown = (struct text){0};
    problem.message =
        exchange_format(exchange, "ids[%zu] is not the id of an API key (key_…)%s%.*s%s. None was revoked.", at,
                        shown.ptr ? ": \"" : "", TEXT_ARG(shown), shown.ptr ? "\"" : "");
    exchange_refuse_with(exchange, problem);
}

/* Sorted, each once. 0: the exchange has been refused. */
static size_t read_ids(struct exchange *exchange, const struct json *list, struct id **ret_ids)
{
    size_t count = 0;

    for (const struct json *item = json_first(list); item; item = json_next(item))
        count++;
    if (count == 0 || count > REVOKE_LIST_MAX) {
        exchange_refuse_member(exchange, "ids");
        return 0;
    }
    *ret_ids = http_request_alloc(exchange->request, (count + 1) * sizeof **ret_ids);
    count = 0;
    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        if (json_type(item) != JSON_STRING || !id_parse(ID_KEY, json_text(item), &(*ret_ids)[count])) {
            refuse_ids(exchange, item, count);
            return 0;
        }
        count++;
    }
    return id_sort_unique(*ret_ids, count);
}

void keys_revoke_list(struct exchange *exchange)
{
    static const struct json_field FIELDS[] = {{"ids", JSON_FIELD_ARRAY, true, offsetof(struct ids_input, ids)}};
    const struct keys_observer observer = {log_revocation, list_revoked, exchange, exchange_is_wanted};
    struct key_view view = key_view_of(exchange);
    struct audit_source source = exchange_source(exchange);
    struct ids_input input = {0};
    struct id *ids = NULL;
    size_t count;

    if (!exchange_read_body(exchange, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return;
    count = read_ids(exchange, input.ids, &ids);
    if (count == 0)
        return;
    http_request_hold(exchange->request);
    key_store_revoke_list(exchange_store(exchange), &view, ids, count, &source, &observer);
}
