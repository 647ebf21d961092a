/* src/api/openapi.json against the code, both ways: the route table, the catalogue of errors, the version. What it says
 * of bodies and headers is held against live answers by contract.test.js. */
#include "api/routes.h"
#include "base/json.h"
#include "base/mem.h"
#include "api/mounts_internal.h"
#include "api/problem_internal.h"
#include "leak_guard.h"
#include "process.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *file;
static struct json *document;

static void read_document(void)
{
    const char *why = NULL;
    char path[512];

    cr_assert(getenv("CHATELAINE_SOURCE"), "CHATELAINE_SOURCE names the source tree");
    snprintf(path, sizeof path, "%s/src/api/openapi.json", getenv("CHATELAINE_SOURCE"));
    file = file_read(path);
    document = json_parse_object(text_of(file), &why);
    cr_assert(document, "%s: %s", path, why);
}

static void free_document(void)
{
    json_free(document);
    free(file);
    leak_guard();
}

TestSuite(openapi, .init = read_document, .fini = free_document);

/* Finding one's way in it */

static const struct json *follow(const struct json *value)
{
    const struct json *reference = json_type(value) == JSON_OBJECT ? json_member(value, "$ref") : NULL;
    struct text rest, part;
    char name[80];

    if (!reference)
        return value;
    rest = text_skip(json_text(reference), strlen("#/"));
    value = document;
    while (text_next(&rest, '/', &part)) {
        snprintf(name, sizeof name, "%.*s", TEXT_ARG(part));
        value = json_member(value, name);
        cr_assert(value, "%.*s leads nowhere", TEXT_ARG(json_text(reference)));
    }
    return value;
}

/* The value at that path, references followed; NULL: none. names up to a NULL. */
__attribute__((sentinel)) static const struct json *get(const struct json *value, ...)
{
    const char *name;
    va_list names;

    va_start(names, value);
    while (value && (name = va_arg(names, const char *))) {
        value = json_member(follow(value), name);
        value = value ? follow(value) : NULL;
    }
    va_end(names);
    return value;
}

static bool has_string(const struct json *array, struct text wanted)
{
    for (const struct json *item = array ? json_first(array) : NULL; item; item = json_next(item))
        if (text_equal(json_text(item), wanted))
            return true;
    return false;
}

static size_t count(const struct json *container)
{
    size_t n = 0;

    for (const struct json *item = container ? json_first(container) : NULL; item; item = json_next(item))
        n++;
    return n;
}

/* The codes that a response names, narrowed as all of ours are: allOf Error and a list or a single one. */
static const struct json *narrowed_codes(const struct json *response)
{
    const struct json *all = get(response, "content", "application/json", "schema", "allOf", NULL);

    return all ? get(json_next(json_first(all)), "properties", "error", "properties", "code", NULL) : NULL;
}

static bool tells_code(const struct json *response, const char *code)
{
    const struct json *codes = response ? narrowed_codes(response) : NULL;
    const struct json *single = codes ? get(codes, "const", NULL) : NULL;

    return single ? text_equal(json_text(single), text_of(code))
                  : codes && has_string(get(codes, "enum", NULL), text_of(code));
}

/* Routes */

static const char *method_name(enum http_method method)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_PATCH] = "patch", [HTTP_DELETE] = "delete"};

    cr_assert(method < sizeof NAMES / sizeof *NAMES && NAMES[method]);
    return NAMES[method];
}

/* "{id}" and "{user_code}" are one: what stands in braces is for readers. */
static bool paths_agree(const char *row, struct text path)
{
    size_t at = 0;

    for (; *row; row++, at++) {
        if (at == path.len || *row != path.ptr[at])
            return false;
        if (*row == '{') {
            row += strcspn(row, "}");
            while (at < path.len && path.ptr[at] != '}')
                at++;
        }
    }
    return at == path.len;
}

static const struct json *find_operation(const struct route *route)
{
    for (const struct json *path = json_first(get(document, "paths", NULL)); path; path = json_next(path))
        if (paths_agree(route->path, json_name(path)))
            return json_member(path, method_name(route->method));
    return NULL;
}

static bool takes_query(const struct json *operation)
{
    const struct json *parameters = get(operation, "parameters", NULL);

    for (const struct json *item = parameters ? json_first(parameters) : NULL; item; item = json_next(item))
        if (text_equal(json_text(get(item, "in", NULL)), TEXT("query")))
            return true;
    return false;
}

/* The one way in that an operation names: which schemes, and the scope beside the API key. */
static void expect_security(const struct route *route, const struct json *operation, const char *name)
{
    const struct json *ways = get(operation, "security", NULL), *way = ways ? json_first(ways) : NULL;
    const struct json *scopes = way ? get(way, "api_key", NULL) : NULL;
    struct text scope = {0};

    cr_assert(ways, "%s: without security, which would be nobody's decision", name);
    if (route->who == WHO_ANYONE) {
        cr_expect(!way, "%s is for anyone", name);
        return;
    }
    cr_expect_eq(count(ways), 1, "%s: one way in", name);
    cr_assert(way, "%s: no way in", name);
    cr_expect_eq(scopes != NULL, route->who == WHO_API_KEY, "%s: API key", name);
    cr_expect_eq(get(way, "session", NULL) != NULL, route->who == WHO_SESSION, "%s: session", name);
    cr_expect_eq(get(way, "csrf", NULL) != NULL, (route->flags & ROUTE_CSRF) != 0, "%s: CSRF token", name);
    cr_expect_eq(count(way), route->flags & ROUTE_CSRF ? 2 : 1, "%s: nothing else", name);
    if (!scopes)
        return;
    for (unsigned n = 0; n < SCOPE_COUNT; n++)
        if (route->scope >> n & 1)
            scope = scope_name(n);
    cr_expect_eq(count(scopes), scope.len ? 1 : 0, "%s: scopes", name);
    cr_expect(!scope.len || has_string(scopes, scope), "%s asks for %.*s", name, TEXT_ARG(scope));
}

/* Of ROUTE_OAUTH rows: the word of OAuth that stands for the code. */
static bool tells(const struct route *route, const struct json *operation, const char *status, const char *code,
                  const char *word)
{
    const struct json *response = get(operation, "responses", status, NULL);

    if (route->flags & ROUTE_OAUTH)
        return response && get(response, "content", "application/json", "examples", word, NULL);
    return tells_code(response, code);
}

static void expect_body(const struct route *route, const struct json *operation, const char *name)
{
    const struct json *body = get(operation, "requestBody", "content", NULL);

    cr_expect_eq(body && json_member(body, "application/json"), (route->flags & ROUTE_JSON) != 0, "%s: JSON", name);
    cr_expect_eq(body && json_member(body, "application/x-www-form-urlencoded"), (route->flags & ROUTE_FORM) != 0,
                 "%s: form", name);
    cr_expect_eq(tells(route, operation, "415", "unsupported_media_type", "invalid_request"), body != NULL, "%s: 415",
                 name);
    cr_expect_eq(takes_query(operation), (route->flags & ROUTE_QUERY) != 0, "%s: query parameters", name);
}

/* Whether its handler asks for a step-up in some cases: another session than one's own, a later time. */
static bool may_ask_for_step_up(const struct route *route)
{
    return (route->method == HTTP_DELETE && strcmp(route->path, "/v1/console/sessions/{id}") == 0) ||
           (route->method == HTTP_PUT && strcmp(route->path, "/v1/console/api_keys/{id}/scheduled_revocation") == 0);
}

/* What the guard answers by the row's words alone. */
static void expect_refusals(const struct route *route, const struct json *operation, const char *name)
{
    const struct json *r401 = get(operation, "responses", "401", NULL),
                      *r403 = get(operation, "responses", "403", NULL);
    bool is_key = route->who == WHO_API_KEY, is_session = route->who == WHO_SESSION;

    cr_expect_eq(tells_code(r401, "missing_credentials"), is_key, "%s: missing_credentials", name);
    cr_expect_eq(tells_code(r401, "invalid_api_key"), is_key, "%s: invalid_api_key", name);
    cr_expect_eq(tells_code(r401, "api_key_revoked"), is_key, "%s: api_key_revoked", name);
    cr_expect_eq(tells_code(r401, "device_key_revoked"), is_key, "%s: device_key_revoked", name);
    cr_expect_eq(tells_code(r401, "session_not_accepted"), is_key, "%s: session_not_accepted", name);
    cr_expect_eq(tells_code(r401, "invalid_session"), is_session, "%s: invalid_session", name);
    cr_expect_eq(tells_code(r401, "bearer_not_accepted"), is_session, "%s: bearer_not_accepted", name);
    cr_expect_eq(tells_code(r403, "insufficient_scope"), is_key, "%s: insufficient_scope", name);
    cr_expect_eq(tells(route, operation, "403", "csrf_failed", "invalid_request"),
                 (route->flags & (ROUTE_CSRF | ROUTE_ORIGIN)) != 0, "%s: csrf_failed", name);
    cr_expect_eq(tells_code(r403, "step_up_required"), (route->flags & ROUTE_STEP_UP) || may_ask_for_step_up(route),
                 "%s: step_up_required", name);
    /* Keys manage nobody above a developer. */
    bool has_role =
        is_session ? route->least_role > ROLE_AUDITOR : route->scope == SCOPE_TEAM_MANAGE && route->method != HTTP_GET;
    cr_expect_eq(tells_code(r403, "role_not_permitted"), has_role, "%s: role_not_permitted", name);
    cr_expect(tells(route, operation, "503", "shutting_down", "temporarily_unavailable"), "%s: 503", name);
}

Test(openapi, every_route_is_an_operation)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct json *operation = find_operation(&ROUTES[i]);
        char name[120];

        snprintf(name, sizeof name, "%s %s", method_name(ROUTES[i].method), ROUTES[i].path);
        cr_expect(operation, "%s is not in the document", name);
        if (!operation)
            continue;
        expect_security(&ROUTES[i], operation, name);
        expect_body(&ROUTES[i], operation, name);
        expect_refusals(&ROUTES[i], operation, name);
    }
}

/* What programs read, and the guard does not. */
static const char *const PAGES[] = {"/openapi.json", "/livez", "/readyz"};

static bool is_page(struct text path)
{
    for (size_t i = 0; i < sizeof PAGES / sizeof *PAGES; i++)
        if (text_equal(path, text_of(PAGES[i])))
            return true;
    return false;
}

Test(openapi, every_page_for_programs_is_an_operation)
{
    for (size_t i = 0; i < sizeof PAGES / sizeof *PAGES; i++) {
        const struct json *operation = get(document, "paths", PAGES[i], "get", NULL);
        const struct mount *mount = mount_of_page(text_of(PAGES[i]));

        cr_expect(mount && text_equal(mount->path, text_of(PAGES[i])), "nothing is at %s", PAGES[i]);
        cr_expect(operation, "%s is not in the document", PAGES[i]);
        cr_expect(operation && count(get(operation, "security", NULL)) == 0, "%s needs no credential", PAGES[i]);
    }
}

static bool is_route(struct text path, struct text method)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (paths_agree(ROUTES[i].path, path) && text_equal(text_of(method_name(ROUTES[i].method)), method))
            return true;
    return false;
}

Test(openapi, every_operation_is_a_route)
{
    for (const struct json *path = json_first(get(document, "paths", NULL)); path; path = json_next(path))
        for (const struct json *operation = json_first(path); operation; operation = json_next(operation)) {
            struct text target = json_name(path), method = json_name(operation);

            if (is_page(target) && text_equal(method, TEXT("get")))
                continue;
            cr_expect(is_route(target, method), "%.*s %.*s is no route", TEXT_ARG(method), TEXT_ARG(target));
        }
}

/* Errors */

/* Any code, as a member of the document's own list. */
static enum problem_code find_code(struct text name)
{
    for (enum problem_code code = PROBLEM_NONE + 1; code < PROBLEM_COUNT; code++)
        if (text_equal(text_of(problem_code_text(code)), name))
            return code;
    return PROBLEM_NONE;
}

static void expect_example(enum problem_code code)
{
    const char *name = problem_code_text(code);
    const struct json *error = get(document, "components", "examples", name, "value", "error", NULL);
    const struct problem problem = problem_of(code);

    cr_assert(error, "%s has no example", name);
    cr_expect(text_equal(json_text(get(error, "code", NULL)), text_of(name)), "%s: the example's code", name);
    cr_expect(text_equal(json_text(get(error, "type", NULL)), text_of(problem_type(code))), "%s: the example's type",
              name);
    cr_expect(text_starts_with(json_text(get(error, "message", NULL)), text_of(problem_message(&problem))),
              "%s: the example's message is not the catalogue's", name);
}

Test(openapi, every_error_is_listed_with_its_status_and_an_example)
{
    const struct json *codes = get(document, "components", "schemas", "ErrorCode", "enum", NULL);
    const struct json *words = get(document, "info", "description", NULL);

    cr_assert(codes && words);
    for (enum problem_code code = PROBLEM_NONE + 1; code < PROBLEM_COUNT; code++) {
        char row[80];

        snprintf(row, sizeof row, "\n| %d | `%s` | ", problem_status(code), problem_code_text(code));
        cr_expect(has_string(codes, text_of(problem_code_text(code))), "%s is not in ErrorCode",
                  problem_code_text(code));
        cr_expect(memmem(json_text(words).ptr, json_text(words).len, row, strlen(row)), "the table lacks%s", row);
        expect_example(code);
    }
    cr_expect_eq(count(codes), PROBLEM_COUNT - 1, "ErrorCode names codes that do not exist");
    cr_expect_eq(count(get(document, "components", "examples", NULL)), PROBLEM_COUNT - 1, "an example of no error");
}

static bool told[PROBLEM_COUNT];

static void expect_code(struct text name, int status, const char *where)
{
    enum problem_code code = find_code(name);

    cr_expect(code != PROBLEM_NONE, "%s tells of %.*s, which does not exist", where, TEXT_ARG(name));
    cr_expect(status == 0 || problem_status(code) == status, "%s tells of %.*s under %d", where, TEXT_ARG(name),
              status);
    told[code] = true;
}

static void expect_codes(const struct json *response, int status, const char *where)
{
    const struct json *codes = narrowed_codes(response);
    const struct json *single = codes ? get(codes, "const", NULL) : NULL;

    if (single)
        expect_code(json_text(single), status, where);
    else if (codes)
        for (const struct json *code = json_first(get(codes, "enum", NULL)); code; code = json_next(code))
            expect_code(json_text(code), status, where);
}

static void expect_responses(const struct json *operation, const char *where)
{
    for (const struct json *r = json_first(get(operation, "responses", NULL)); r; r = json_next(r)) {
        uint64_t status = 0;
        bool is_rest = text_equal(json_name(r), TEXT("default"));

        cr_assert(is_rest || text_to_u64(json_name(r), 599, &status), "%s: %.*s", where, TEXT_ARG(json_name(r)));
        expect_codes(follow(r), (int)status, where);
    }
}

Test(openapi, every_error_is_told_by_some_operation_under_its_status)
{
    memset(told, 0, sizeof told);
    for (const struct json *path = json_first(get(document, "paths", NULL)); path; path = json_next(path))
        for (const struct json *operation = json_first(path); operation; operation = json_next(operation)) {
            char where[120];

            snprintf(where, sizeof where, "%.*s %.*s", TEXT_ARG(json_name(operation)), TEXT_ARG(json_name(path)));
            expect_responses(operation, where);
        }
    for (enum problem_code code = PROBLEM_NONE + 1; code < PROBLEM_COUNT; code++)
        cr_expect(told[code], "no operation tells of %s", problem_code_text(code));
}

/* The rest */

Test(openapi, scopes_are_all_and_in_order)
{
    const struct json *scope = json_first(get(document, "components", "schemas", "Scope", "enum", NULL));

    for (unsigned n = 0; n < SCOPE_COUNT; n++, scope = json_next(scope)) {
        cr_assert(scope, "a scope is missing");
        cr_expect(text_equal(json_text(scope), scope_name(n)), "%.*s", TEXT_ARG(scope_name(n)));
    }
    cr_expect(!scope, "a scope too many");
}

Test(openapi, the_version_is_the_program_s)
{
    cr_expect(text_equal(json_text(get(document, "info", "version", NULL)), TEXT(CHATELAINE_VERSION)));
    cr_expect(text_equal(json_text(get(document, "openapi", NULL)), TEXT("3.1.0")));
}
