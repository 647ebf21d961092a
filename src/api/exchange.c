#include "exchange_internal.h"
#include "base/log.h"
#include "core/label.h"
#include "core/limits.h"
#include "core/path.h"
#include "core/secret.h"
#include "exchange_client_internal.h"
#include "exchange_log_internal.h"
#include "mounts_internal.h"
#include "refusal_internal.h"
#include "records/change_missed.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MESSAGE_BYTES = 512 };

/* Nearly every path is in normal form already; the server has refused bytes that are never valid. */
static bool is_normal(struct text path)
{
    if (path.len == 0 || path.ptr[0] != '/')
        return false;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.ptr[i];

        if (c == '%' || (c == '/' && i + 1 < path.len && (path.ptr[i + 1] == '/' || path.ptr[i + 1] == '.')))
            return false;
    }
    return true;
}

bool exchange_read_path(struct exchange *exchange, struct text path)
{
    char *normal;

    exchange->path = path;
    if (is_normal(path))
        return true;
    normal = http_request_alloc(exchange->request, path.len + 1);
    if (!path_normalise(path, normal, &exchange->path.len))
        return false;
    exchange->path.ptr = normal;
    return true;
}

static void refuse_now(struct exchange *exchange, struct problem problem)
{
    problem.session_realm = exchange->mount && (exchange->mount->flags & MOUNT_SESSION_REALM);
    problem.is_oauth =
        !exchange->reply_refusal && exchange->match.sibling && exchange->match.sibling->flags & ROUTE_OAUTH;
    if (exchange->within)
        problem.within = exchange_format(exchange, "%s[%zu]", exchange->within->list, exchange->within->at);
    refusal_note(exchange, problem.code);
    if (exchange->reply_refusal)
        exchange->reply_refusal(exchange, &problem);
    else
        problem_reply(exchange->request, exchange->service->public_origin, &problem);
}

/* A change that changed nothing, because the id is unknown or there is a conflict. */
struct missed {
    struct exchange *exchange;
    struct problem problem;
};

static bool is_missed(const struct exchange *exchange, const struct problem *problem)
{
    const struct route *route = exchange->match.route;
    int status = problem->status ? problem->status : problem_status(problem->code);
    bool changes = route && (route->class == GATE_ONE || route->class == GATE_CHANGE || route->class == GATE_END);

    return changes && (status == 404 || status == 409) && (exchange->key || exchange->session) &&
           !exchange->is_internal;
}

void exchange_count_missed(struct exchange *exchange, unsigned count, bool is_email_taken, store_limited *done,
                           void *arg)
{
    const struct missed_change missed = {
        .actor = exchange_actor(exchange),
        .account = exchange_account(exchange),
        .mode = exchange->key ? key_mode_text(exchange->key->mode) : TEXT(""),
        .count = count,
        .is_email_taken = is_email_taken,
    };

    change_missed(exchange_store(exchange), &missed, done, arg);
}

static void missed_counted(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct missed *missed = arg;
    struct exchange *exchange = missed->exchange;

    if (result == STORE_LIMITED)
        exchange_refuse_limited(exchange, retry_after_s);
    else
        refuse_now(exchange, missed->problem);
    http_request_release(exchange->request);
}

void exchange_refuse_with(struct exchange *exchange, struct problem problem)
{
    struct missed *missed;

    if (!is_missed(exchange, &problem)) {
        refuse_now(exchange, problem);
        return;
    }
    missed = http_request_alloc(exchange->request, sizeof *missed);
    *missed = (struct missed){exchange, problem};
    http_request_hold(exchange->request);
    exchange_count_missed(exchange, 1, problem.code == PROBLEM_USER_EXISTS, missed_counted, missed);
}

void exchange_refuse(struct exchange *exchange, enum problem_code code)
{
    exchange_refuse_with(exchange, problem_of(code));
}

void exchange_refuse_saying(struct exchange *exchange, enum problem_code code, const char *message)
{
    exchange_refuse_with(exchange, (struct problem){.code = code, .message = message});
}

void exchange_refuse_method(struct exchange *exchange, const char *allow)
{
    exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_METHOD_NOT_ALLOWED,
                                                    .message = exchange_format(
                                                        exchange, "This method is not allowed here: send %s.", allow),
                                                    .allow = allow});
}

void exchange_refuse_limited(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_refuse_with(exchange,
                         (struct problem){.code = PROBLEM_RATE_LIMITED,
                                          .message = "Too many changes within a minute. Wait, then try again.",
                                          .retry_after_s = retry_after_s});
    exchange_log_own(exchange, "changes limited", (struct text){0});
}

void exchange_refuse_value(struct exchange *exchange, const char *rule)
{
    struct text rest = text_of(rule), param;
    struct problem problem;

    (void)text_next(&rest, ' ', &param);
    problem = problem_param(PROBLEM_PARAMETER_INVALID, param);
    problem.message = rule;
    exchange_refuse_with(exchange, problem);
}

void exchange_refuse_name(struct exchange *exchange, struct text name)
{
    struct buf why = BUF_FIXED(LABEL_WHY_BYTES);

    label_explain(name, "name", &why);
    exchange_refuse_value(exchange, http_request_copy(exchange->request, buf_text(&why)).ptr);
}

const char *exchange_format(const struct exchange *exchange, const char *format, ...)
{
    char storage[MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(storage, sizeof storage, format, args);
    va_end(args);
    return http_request_copy(exchange->request, text_of(storage)).ptr;
}

void exchange_refuse_throttled(struct exchange *exchange, uint32_t retry_after_s)
{
    exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_RATE_LIMITED, .retry_after_s = retry_after_s});
}

/* The credential ended while the request was on its way. Answers what the guard would answer now. */
static bool refuse_actor(struct exchange *exchange, enum store_result result)
{
    bool is_device = exchange->key && exchange->key->kind == KEY_DEVICE;
    enum problem_code code;

    if (result == STORE_ACTOR_REVOKED)
        code = is_device ? PROBLEM_DEVICE_KEY_REVOKED : PROBLEM_API_KEY_REVOKED;
    else if (result == STORE_ACTOR_UNKNOWN)
        code = exchange->key ? PROBLEM_INVALID_API_KEY : PROBLEM_INVALID_SESSION;
    else if (result == STORE_ACTOR_UNPROVEN)
        code = PROBLEM_STEP_UP_REQUIRED;
    else if (result == STORE_ACTOR_ROLE)
        code = PROBLEM_ROLE_NOT_PERMITTED;
    else
        return false;
    exchange_log_own(exchange, "change refused: its credential ended before it took effect", (struct text){0});
    exchange_refuse(exchange, code);
    return true;
}

static void refuse_unavailable(struct exchange *exchange, enum store_result result)
{
    bool is_read = http_method_is_read(exchange->method);

    exchange_refuse_saying(exchange, PROBLEM_STORE_UNAVAILABLE,
                           is_read ? NULL : partitions_refusal(exchange->service->partitions, result));
}

static void refuse_leaving(struct exchange *exchange)
{
    exchange_refuse_with(exchange, (struct problem){.code = PROBLEM_RATE_LIMITED,
                                                    .message = "A person whom this concerns is just being removed, "
                                                               "disabled or given another role. Repeat the request in "
                                                               "a second.",
                                                    .retry_after_s = 1});
}

void exchange_refuse_store(struct exchange *exchange, enum store_result result)
{
    bool unsure = result == STORE_UNAVAILABLE || result == STORE_UNKNOWN;

    if (result == STORE_NOT_FOUND && exchange->missing != PROBLEM_NONE)
        exchange_refuse(exchange, exchange->missing);
    else if (result == STORE_FULL)
        exchange_refuse(exchange, PROBLEM_KEY_LIMIT_REACHED);
    else if (result == STORE_LEAVING)
        refuse_leaving(exchange);
    else if (result == STORE_SUSPENDED)
        exchange_refuse(exchange, PROBLEM_ACCOUNT_SUSPENDED);
    else if (unsure)
        refuse_unavailable(exchange, result);
    else if (!refuse_actor(exchange, result))
        exchange_refuse(exchange, PROBLEM_INTERNAL_ERROR);
}

void exchange_refuse_change(struct exchange *exchange, enum store_result result, uint32_t retry_after_s)
{
    if (result == STORE_LIMITED)
        exchange_refuse_limited(exchange, retry_after_s);
    else
        exchange_refuse_store(exchange, result);
}

/* Answers */

struct exchange_answer {
    struct json_writer writer;
    struct buf json;
    int status;
};

static void answer_wipe(void *answer)
{
    buf_wipe(&((struct exchange_answer *)answer)->json);
}

struct json_writer *exchange_answer(struct exchange *exchange, int status)
{
    struct exchange_answer *answer = http_request_alloc(exchange->request, sizeof *answer);

    *answer = (struct exchange_answer){.writer = {.out = &answer->json}, .status = status};
    buf_init(&answer->json, ANSWER_MAX_BYTES);
    http_request_defer(exchange->request, answer_wipe, answer);
    exchange->answer = answer;
    return &answer->writer;
}

void exchange_reply(struct exchange *exchange)
{
    struct exchange_answer *answer = exchange->answer;

    if (answer) {
        http_reply_json(exchange->request, answer->status, &answer->json);
        answer_wipe(answer);
    } else {
        http_reply(exchange->request, 204, (struct text){0}, (struct text){0});
    }
}

void exchange_finish(struct exchange *exchange, enum store_result result)
{
    if (result == STORE_OK)
        exchange_reply(exchange);
    else
        exchange_refuse_store(exchange, result);
    http_request_release(exchange->request);
}

/* Reading the request */

/* It is no id, and it may be a secret: so it is not repeated. */
static struct problem malformed_id(const struct exchange *exchange, enum id_kind kind)
{
    static const char *const BEGIN[] = {
        [ID_KEY] = "key_", [ID_DEVICE] = "dev_", [ID_USER] = "usr_", [ID_INVITATION] = "inv_"};
    struct problem problem = problem_of(exchange->missing);

    if (secret_begins_within(exchange->match.id))
        problem.instead =
            "An id is wanted here, not the secret, which now stands in logs. POST /v1/auth/revoke takes secrets.";
    else
        problem.instead = exchange_format(exchange, "Its id begins with %s and has %d more characters.", BEGIN[kind],
                                          (int)ULID_TEXT_CHARS);
    return problem;
}

bool exchange_read_id(struct exchange *exchange, enum id_kind kind, struct id *ret_id)
{
    static const enum problem_code MISSING[] = {
        [ID_KEY] = PROBLEM_API_KEY_NOT_FOUND,
        [ID_DEVICE] = PROBLEM_DEVICE_KEY_NOT_FOUND,
        [ID_USER] = PROBLEM_USER_NOT_FOUND,
        [ID_INVITATION] = PROBLEM_INVITATION_NOT_FOUND,
    };

    exchange->missing = MISSING[kind];
    if (id_parse(kind, exchange->match.id, ret_id))
        return true;
    exchange_refuse_with(exchange, malformed_id(exchange, kind));
    return false;
}

/* What the internal listener takes has no rule but its type. */
static const struct param_rule *rule_of(const struct exchange *exchange, const struct json_field *fields, size_t count,
                                        struct text name)
{
    static const struct param_rule TYPES[] = {
        [JSON_FIELD_TEXT] = {.must = "a string"},      [JSON_FIELD_ARRAY] = {.must = "an array"},
        [JSON_FIELD_BOOL] = {.must = "true or false"}, [JSON_FIELD_INTEGER] = {.must = "a whole number"},
        [JSON_FIELD_WORD] = {.must = "a string"},
    };
    const struct param_rule *rule = param_rule_find(exchange->match.route, PARAM_IN_BODY, name);

    for (size_t i = 0; i < count && !rule; i++)
        if (text_equal(text_of(fields[i].name), name))
            rule = &TYPES[fields[i].type];
    return rule;
}

static struct problem unknown_member(const struct exchange *exchange, const struct json_field *fields, size_t count,
                                     struct text name)
{
    struct problem problem = problem_param(PROBLEM_PARAMETER_UNKNOWN, name);
    struct text_guess guess = {.written = name};

    for (size_t i = 0; i < count; i++)
        text_guess_try(&guess, fields[i].name);
    problem.meant = guess.found;
    problem.instead = param_rule_instead(exchange->match.route, PARAM_IN_BODY, name);
    return problem;
}

/* False, with the reason in *ret_problem, if a member is not what its rule allows. */
static bool rules_hold(const struct exchange *exchange, struct problem *ret_problem)
{
    for (const struct json *value = json_first(exchange->body); value; value = json_next(value)) {
        const struct param_rule *rule = param_rule_find(exchange->match.route, PARAM_IN_BODY, json_name(value));

        if (!rule || param_rule_allows_json(rule, value))
            continue;
        *ret_problem = problem_value_json(rule, json_name(value), value, false);
        return false;
    }
    return true;
}

bool exchange_read_body(struct exchange *exchange, const struct json_field *fields, size_t count, void *target)
{
    struct text name = {0};
    struct problem problem = {0};

    switch (json_read(exchange->body, fields, count, target, &name)) {
    case JSON_READ_OK:
        if (rules_hold(exchange, &problem))
            return true;
        break;
    case JSON_READ_MISSING:
        problem = problem_missing(rule_of(exchange, fields, count, name), name);
        break;
    case JSON_READ_WRONG_TYPE:
        problem = problem_value_json(rule_of(exchange, fields, count, name), name,
                                     json_member(exchange->body, name.ptr), true);
        break;
    case JSON_READ_UNKNOWN:
        problem = unknown_member(exchange, fields, count, name);
        break;
    }
    exchange_refuse_with(exchange, problem);
    return false;
}

void exchange_refuse_member(struct exchange *exchange, const char *name)
{
    const struct param_rule *rule = param_rule_find(exchange->match.route, PARAM_IN_BODY, text_of(name));

    exchange_refuse_with(exchange, problem_value_json(rule, text_of(name), json_member(exchange->body, name), false));
}

bool exchange_read_query(struct exchange *exchange, const struct query *parameters, void *target)
{
    struct text query = http_request_query(exchange->request);
    struct problem problem;

    if (query.len == 0 || query_read(parameters, exchange->match.route, query,
                                     http_request_alloc(exchange->request, query.len), target, &problem))
        return true;
    exchange_refuse_with(exchange, problem);
    return false;
}

bool exchange_is_wanted(void *arg)
{
    return !http_request_gone(((const struct exchange *)arg)->request);
}

const struct id *exchange_account(const struct exchange *exchange)
{
    return exchange->key ? &exchange->key->account : &exchange->session->user.account;
}

struct store *exchange_store(const struct exchange *exchange)
{
    return partition_of_account(exchange->service->partitions, exchange_account(exchange));
}

const struct id *exchange_actor(const struct exchange *exchange)
{
    return exchange->key ? &exchange->key->id : &exchange->session->user.id;
}

static struct credential read_credential(const struct exchange *exchange)
{
    const struct route *route = exchange->match.route;
    struct credential credential = {.kind = CREDENTIAL_NONE};

    if (exchange->key) {
        credential.kind = CREDENTIAL_KEY;
        key_check_digest(&exchange->check, credential.digest);
    } else if (exchange->session) {
        credential.kind = CREDENTIAL_SESSION;
        memcpy(credential.digest, exchange->session_digest, sizeof credential.digest);
        credential.limits = &exchange->service->session_limits;
        credential.needs_step_up = route && (route->flags & ROUTE_STEP_UP);
        credential.least_role = route ? route->least_role : ROLE_OWNER;
    }
    return credential;
}

struct audit_source exchange_source(const struct exchange *exchange)
{
    bool known = exchange->key || exchange->session;

    return (struct audit_source){
        .actor = known ? id_text(exchange_actor(exchange)) : (struct text){0},
        .ip = exchange_client_address(exchange),
        .request_id = http_request_id(exchange->request),
        .credential = read_credential(exchange),
    };
}

size_t api_make_request_id(int64_t wall_ms, char ret_id[HTTP_ID_MAX_BYTES])
{
    struct id id;
    struct text text;

    id_mint_to(ID_REQUEST, wall_ms, &id);
    text = id_text(&id);
    memcpy(ret_id, text.ptr, text.len);
    return text.len;
}
