#include "leaked_secret_internal.h"
#include "core/path.h"
#include "core/secret.h"
#include "mounts_internal.h"

static bool header_has_secret(const struct exchange *exchange, struct text name)
{
    size_t count;

    http_request_header(exchange->request, name, &count);
    while (count > 0)
        if (secret_within(http_request_header_at(exchange->request, name, --count)))
            return true;
    return false;
}

static bool has_header(const struct exchange *exchange, struct text name)
{
    size_t count;

    http_request_header(exchange->request, name, &count);
    return count > 0;
}

static bool query_has_secret(const struct exchange *exchange, struct text query)
{
    struct text name, value;
    char *storage;
    enum path_query_result result = PATH_QUERY_ITEM;
    bool has_secret = false;

    if (query.len < SECRET_MIN_CHARS)
        return false;
    storage = http_request_alloc(exchange->request, query.len);
    while (result == PATH_QUERY_ITEM && !has_secret) {
        result = path_next_parameter(&query, &storage, &name, &value);
        has_secret = result == PATH_QUERY_ITEM && (secret_within(name) || secret_within(value));
    }
    return has_secret || (result == PATH_QUERY_MALFORMED && secret_within(name));
}

/* param: NULL: none is at fault, or its name is the secret. */
static bool refuse(struct exchange *exchange, const char *message, const char *param)
{
    struct problem problem =
        param ? problem_param(PROBLEM_SECRET_IN_TEXT, text_of(param)) : problem_of(PROBLEM_SECRET_IN_TEXT);

    problem.message = message;
    exchange_refuse_with(exchange, problem);
    return true;
}

#define REVOKE_IT ": it may have leaked, revoke it (POST /v1/auth/revoke)."

bool leaked_secret_refuse_head(struct exchange *exchange)
{
    struct text query = http_request_query(exchange->request);

    if (header_has_secret(exchange, TEXT("X-Request-Id")))
        return refuse(exchange, "X-Request-Id has an API key" REVOKE_IT, NULL);
    return query.len > 0 && query_has_secret(exchange, query) &&
           refuse(exchange, "The query has an API key" REVOKE_IT, NULL);
}

static bool text_has_secret(const struct json *value)
{
    return json_type(value) == JSON_STRING && secret_within(json_text(value));
}

static bool value_has_secret(const struct json *value)
{
    if (json_type(value) != JSON_ARRAY)
        return text_has_secret(value);
    for (const struct json *item = json_first(value); item; item = json_next(item))
        if (text_has_secret(item))
            return true;
    return false;
}

static bool is_password(struct text name)
{
    const struct text ending = TEXT("password");

    return name.len >= ending.len && text_equal(text_skip(name, name.len - ending.len), ending);
}

bool leaked_secret_refuse_json(struct exchange *exchange, const struct json *body)
{
    for (const struct json *member = json_first(body); member; member = json_next(member)) {
        struct text name = json_name(member);

        if (secret_within(name))
            return refuse(exchange, NULL, NULL);
        if (!is_password(name) && value_has_secret(member))
            return refuse(exchange, NULL, http_request_copy(exchange->request, name).ptr);
    }
    return false;
}

const char *leaked_secret_hint(const struct exchange *exchange)
{
    const bool is_session = exchange->mount && (exchange->mount->flags & MOUNT_SESSION_REALM);

    if (exchange->is_internal)
        return NULL;
    if (is_session ? header_has_secret(exchange, TEXT("X-API-Key")) : has_header(exchange, TEXT("X-API-Key")))
        return "The API key came as X-API-Key. Send it as Authorization: Bearer <API_KEY>.";
    if (header_has_secret(exchange, TEXT("Authorization")))
        return "The API key came without the word Bearer. Send it as Authorization: Bearer <API_KEY>.";
    if (header_has_secret(exchange, TEXT("X-Request-Id")) ||
        query_has_secret(exchange, http_request_query(exchange->request)))
        return "An API key came where none belongs" REVOKE_IT " Keys go into Authorization: Bearer <API_KEY>.";
    if (!is_session && has_header(exchange, TEXT("Authorization")))
        return "Authorization has another scheme than Bearer. Send Authorization: Bearer <API_KEY>.";
    return NULL;
}
