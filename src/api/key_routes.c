/* API keys, for integrations (/v1/api_keys) and for the console (/v1/console/api_keys), and the console's device keys
 * (/v1/console/device_keys): one code for all, which asks the principal what he may see and grant. */
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/secure.h"
#include "call_internal.h"
#include "handlers_internal.h"
#include "key_grant_internal.h"
#include "views_internal.h"

#include <string.h>

/* A full disk fails for every revocation. */
enum { LOG_FAILED_PAUSE_MS = 1000 };

/* A test key sees test keys alone; a live key and a user see both modes. */
static struct key_view visible_keys(const struct call *call, enum key_kind kind)
{
    return (struct key_view){
        .account = *call_account(call),
        .kind = kind,
        .test_only = call->key && call->key->mode == MODE_TEST,
    };
}

/* kind: of the keys that the route is about. */
static void refuse_key(struct call *call, enum key_kind kind, enum store_result result)
{
    if (result == STORE_NOT_FOUND)
        call_refuse(call, kind == KEY_DEVICE ? PROBLEM_DEVICE_KEY_NOT_FOUND : PROBLEM_API_KEY_NOT_FOUND);
    else
        call_refuse_store(call, result);
}

static void reply_key(struct call *call, const struct key_record *key)
{
    char storage[ANSWER_SMALL_BYTES];
    struct buf out;

    buf_init_fixed(&out, storage, sizeof storage);
    view_key(&(struct json_writer){.out = &out}, key, call->session != NULL);
    http_reply_json(call->request, 200, &out);
}

/* POST: mint a key, store only its digest, show the secret once. */

struct key_input {
    struct text name;
    struct text mode;
    const struct json *scopes;
};

static bool key_read(struct call *call, struct key_record *key);
static bool key_may_be_granted(struct call *call, const struct key_record *key);
static void key_stored(void *arg, enum store_result result, uint32_t retry_after_s);
static void key_answered(struct key_grant *grant);

void keys_create(struct call *call)
{
    struct key_grant *grant = http_request_alloc(call->request, sizeof *grant);
    struct audit_source source = call_source(call);

    if (!key_read(call, &grant->key) || !key_may_be_granted(call, &grant->key))
        return;
    grant->key.account = *call_account(call);
    grant->key.by = *call_actor(call);
    key_grant_mint(grant, call);
    http_request_hold(call->request);
    key_store_insert(call->service->store, &grant->key, grant->digest, &source, key_stored, grant);
}

static bool read_scopes(const struct json *list, scope_set *ret_scopes)
{
    scope_set scopes = SCOPE_NONE;

    for (const struct json *item = json_first(list); item; item = json_next(item)) {
        scope_set scope = json_type(item) == JSON_STRING ? scope_parse(json_text(item)) : SCOPE_NONE;

        if (scope == SCOPE_NONE)
            return false;
        scopes |= scope;
    }
    *ret_scopes = scopes;
    return scopes != SCOPE_NONE;
}

/* What they ask for; false: refused. */
static bool key_read(struct call *call, struct key_record *key)
{
    static const struct json_field FIELDS[] = {
        {"name", JSON_FIELD_TEXT, true, offsetof(struct key_input, name)},
        {"mode", JSON_FIELD_TEXT, true, offsetof(struct key_input, mode)},
        {"scopes", JSON_FIELD_ARRAY, false, offsetof(struct key_input, scopes)},
    };
    struct key_input input = {0};
    const char *wrong = NULL;

    if (!call_read_body(call, FIELDS, sizeof FIELDS / sizeof *FIELDS, &input))
        return false;
    key->kind = KEY_API;
    key->scopes = SCOPE_ALL;
    if (!key_set_name(key, input.name))
        wrong = "name must have 1 to 200 characters, and none that controls how text is shown.";
    else if (!key_mode_parse(input.mode, &key->mode))
        wrong = "mode must be \"test\" or \"live\".";
    else if (input.scopes && !read_scopes(input.scopes, &key->scopes))
        wrong = "scopes must be a list of one or more scopes that are known here.";
    if (wrong)
        call_refuse_value(call, wrong);
    return !wrong;
}

/* A key grants only what it holds itself; a user of the console grants all. False: refused. */
static bool key_may_be_granted(struct call *call, const struct key_record *key)
{
    struct problem problem;
    scope_set missing;

    if (!call->key)
        return true;
    if (call->key->mode == MODE_TEST && key->mode == MODE_LIVE) {
        call_refuse_with(call, problem_param(PROBLEM_MODE_NOT_PERMITTED, TEXT("mode")));
        return false;
    }
    missing = key->scopes & ~call->key->scopes;
    if (missing == SCOPE_NONE || call->service->grant_any)
        return true;
    problem = problem_param(PROBLEM_SCOPE_NOT_GRANTABLE, TEXT("scopes"));
    problem.required_scopes = missing;
    problem.has_required_scopes = true;
    call_refuse_with(call, problem);
    return false;
}

static void key_stored(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct key_grant *grant = arg;

    if (key_grant_stored(grant, result)) {
        key_answered(grant);
        return;
    }
    if (result == STORE_LIMITED)
        call_refuse_limited(grant->call, retry_after_s);
    else
        call_refuse_store(grant->call, result);
    http_request_release(grant->call->request);
}

static void key_answered(struct key_grant *grant)
{
    struct call *call = grant->call;
    char storage[ANSWER_SMALL_BYTES], location_storage[64];
    struct buf out, location;

    buf_init_fixed(&location, location_storage, sizeof location_storage);
    buf_append_text(&location, call->path);
    buf_append_char(&location, '/');
    buf_append_text(&location, id_text(&grant->key.id));
    http_response_header(call->request, TEXT("Location"), buf_text(&location));

    buf_init_fixed(&out, storage, sizeof storage);
    view_key_created(&(struct json_writer){.out = &out}, &grant->key, call->session != NULL,
                     secret_text(&grant->secret));
    http_reply_json(call->request, 201, &out);
    secure_wipe(storage, sizeof storage);
    call_log(call, "key created", id_text(call_account(call)), id_text(call_actor(call)), id_text(&grant->key.id));
}

/* GET, the list */

static void keys_found(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more);

static void list_keys(struct call *call, enum key_kind kind)
{
    struct key_query query = {.view = visible_keys(call, kind), .limit = LIST_LIMIT_STANDARD};

    if (!call_read_query(call, kind == KEY_DEVICE ? query_read_device_keys : query_read_keys, &query))
        return;
    http_request_hold(call->request);
    key_store_list(call->service->store, &query, keys_found, call);
}

void keys_list(struct call *call)
{
    list_keys(call, KEY_API);
}

void device_keys_list(struct call *call)
{
    list_keys(call, KEY_DEVICE);
}

static void keys_found(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct call *call = arg;
    struct buf out CLEANUP(buf_finish);

    buf_init(&out, ANSWER_MAX_BYTES);
    if (result == STORE_OK) {
        view_keys(&(struct json_writer){.out = &out}, keys, count, call->session != NULL, has_more);
        http_reply_json(call->request, 200, &out);
    } else {
        call_refuse_store(call, result);
    }
    http_request_release(call->request);
}

/* GET, one */

static void key_found_to_show(void *arg, enum store_result result, const struct key_record *key);

/* What is no id of a key of that kind names no key. */
static bool read_id(struct call *call, enum key_kind kind, struct id *ret_id)
{
    bool valid = id_parse(key_id_kind(kind), call->match.id, ret_id);

    if (!valid)
        refuse_key(call, kind, STORE_NOT_FOUND);
    return valid;
}

void keys_show(struct call *call)
{
    struct key_view view = visible_keys(call, KEY_API);
    struct id id;

    if (!read_id(call, KEY_API, &id))
        return;
    http_request_hold(call->request);
    key_store_get(call->service->store, &view, &id, key_found_to_show, call);
}

static void key_found_to_show(void *arg, enum store_result result, const struct key_record *key)
{
    struct call *call = arg;

    if (result == STORE_OK)
        reply_key(call, key);
    else
        refuse_key(call, KEY_API, result);
    http_request_release(call->request);
}

/* DELETE: once this is answered with 200, no node accepts the key. Otherwise the answer promises nothing, and a
 * revocation that was written stays. */

struct key_revocation {
    struct call *call;
    enum key_kind kind;
};

static void key_revoked(void *arg, enum store_result result, const struct key_record *key);

static void revoke_key(struct call *call, enum key_kind kind)
{
    struct key_view view = visible_keys(call, kind);
    struct audit_source source = call_source(call);
    struct key_revocation *op;
    struct id id;

    if (!read_id(call, kind, &id))
        return;
    op = http_request_alloc(call->request, sizeof *op);
    *op = (struct key_revocation){call, kind};
    http_request_hold(call->request);
    key_store_revoke(call->service->store, &view, &id, &source, key_revoked, op);
}

void keys_revoke(struct call *call)
{
    revoke_key(call, KEY_API);
}

void device_keys_revoke(struct call *call)
{
    revoke_key(call, KEY_DEVICE);
}

/* What the file does not take is told, and answered all the same: the key is revoked. */
static void write_revocation(struct call *call, const struct key_record *key)
{
    struct service *service = call->service;
    int error = service->revocation_log ? revocation_log_append(service->revocation_log, key) : 0;

    if (error == 0)
        return;
    metric_add(METRIC_REVOCATION_LOG_FAILED, 1);
    if (!log_pause_is_over(&service->revocation_log_pause, clock_boot_ns() / CLOCK_NS_PER_MS, LOG_FAILED_PAUSE_MS))
        return;
    LOG(LOG_ERROR, "the revocation log did not take a revocation: 'key revoked' lines name those that it lacks",
        log_str("why", strerror(error)), log_text("key", id_text(&key->id)));
}

static void key_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    const struct key_revocation *op = arg;
    struct call *call = op->call;

    if (result == STORE_OK) {
        write_revocation(call, key);
        reply_key(call, key);
        call_log(call, "key revoked", id_text(call_account(call)), id_text(call_actor(call)), id_text(&key->id));
    } else {
        refuse_key(call, op->kind, result);
    }
    http_request_release(call->request);
}
