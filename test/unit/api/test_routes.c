/* The table itself: whether the guard can enforce every row. */
#include "api/routes.h"
#include "api/mounts_internal.h"
#include "api/routes_internal.h"
#include "api/route_guess_internal.h"
#include "core/path.h"
#include "leak_guard.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(routes, .fini = leak_guard);

static bool lies_under(const struct route *row, const char *folder)
{
    return text_starts_with(text_of(row->path), text_of(folder));
}

Test(routes, paths_are_normalised)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        /* Replaces "{id}" with "x", because a request's path never has braces here. */
        const char *mark = strstr(ROUTES[i].path, "{id}");
        char path[128], normal[128];
        size_t len;

        if (mark)
            snprintf(path, sizeof path, "%.*sx%s", (int)(mark - ROUTES[i].path), ROUTES[i].path, mark + 4);
        else
            snprintf(path, sizeof path, "%s", ROUTES[i].path);
        cr_assert(path_normalise(text_of(path), normal, &len), "%s", ROUTES[i].path);
        cr_assert(text_equal(text_of(path), (struct text){normal, len}), "%s", ROUTES[i].path);
        cr_assert(lies_under(&ROUTES[i], "/v1/") || lies_under(&ROUTES[i], "/.well-known/"), "%s", ROUTES[i].path);
    }
}

/* route_find() compares so many bytes before it looks at anything else. */
Test(routes, what_is_fixed_of_a_path_is_long_enough)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        cr_expect_geq(strcspn(ROUTES[i].path, "{"), ROUTE_HEAD_BYTES, "%s", ROUTES[i].path);
}

/* What bounds a row's requests. Nothing that an account may do often is left to chance. */
Test(routes, every_row_has_a_class)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *row = &ROUTES[i];
        bool reads = row->class == GATE_READ || row->class == GATE_WORK || row->class == GATE_CHECK;

        cr_expect(row->class > GATE_UNKNOWN && row->class < GATE_CLASSES, "%s", row->path);
        cr_expect_eq(row->class == GATE_STRANGER,
                     row->who == WHO_ANYONE && !text_equal(text_of(row->path), TEXT("/v1/auth/revoke")), "%s",
                     row->path);
        if (row->who != WHO_ANYONE)
            cr_expect_eq(reads, row->method == HTTP_GET, "%s", row->path);
        cr_expect(!(row->flags & ROUTE_LARGE) || row->class == GATE_END, "%s", row->path);
    }
}

static bool fits(const struct route *row, struct text path)
{
    struct text pattern = text_of(row->path), wanted, segment;

    while (text_next(&pattern, '/', &wanted)) {
        if (!text_next(&path, '/', &segment))
            return false;
        if (text_equal(wanted, TEXT("{id}")) ? segment.len == 0 : !text_equal(wanted, segment))
            return false;
    }
    return !path.ptr;
}

static void expect_the_first_that_fits(struct text path)
{
    for (enum http_method method = 0; method <= HTTP_OTHER; method++) {
        const struct route *row = NULL;
        bool is_known = false;
        struct route_match match = route_find(method, path);

        for (size_t i = 0; i < ROUTE_COUNT && !row; i++)
            if (fits(&ROUTES[i], path)) {
                is_known = true;
                if (ROUTES[i].method == (method == HTTP_HEAD ? HTTP_GET : method))
                    row = &ROUTES[i];
            }
        cr_assert_eq(match.route, row, "%.*s", TEXT_ARG(path));
        cr_assert_eq(match.sibling != NULL, is_known, "%.*s", TEXT_ARG(path));
    }
}

/* Each row's path, each part of it, and each with another byte anywhere, by each method. */
Test(routes, the_first_row_that_fits_is_found)
{
    static const char OTHERS[] = {'/', 'x', '{', '}'};
    char path[128];

    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        size_t len = (size_t)snprintf(path, sizeof path, "%s", ROUTES[i].path);

        for (size_t at = 0; at < len; at++) {
            const char byte = path[at];

            expect_the_first_that_fits((struct text){path, at});
            for (size_t other = 0; other < sizeof OTHERS; other++) {
                path[at] = OTHERS[other];
                expect_the_first_that_fits((struct text){path, len});
            }
            path[at] = byte;
        }
        expect_the_first_that_fits((struct text){path, len});
    }
}

Test(routes, method_and_path_are_unique)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        for (size_t j = i + 1; j < ROUTE_COUNT; j++)
            cr_assert(ROUTES[i].method != ROUTES[j].method ||
                          !text_equal(text_of(ROUTES[i].path), text_of(ROUTES[j].path)),
                      "%s stands twice", ROUTES[i].path);
}

/* The guard chooses the class of credential by path, before it looks at the row. */
Test(routes, principal_follows_from_the_path)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *row = &ROUTES[i];

        if (lies_under(row, "/v1/console/"))
            cr_assert_eq(row->who, WHO_SESSION, "%s", row->path);
        else if (lies_under(row, "/v1/auth/"))
            cr_assert_neq(row->who, WHO_API_KEY, "%s", row->path);
        else if (lies_under(row, "/.well-known/"))
            cr_assert_eq(row->who, WHO_ANYONE, "%s", row->path);
        else
            cr_assert_eq(row->who, WHO_API_KEY, "%s", row->path);
        for (size_t j = 0; j < ROUTE_COUNT; j++)
            cr_assert(!text_equal(text_of(row->path), text_of(ROUTES[j].path)) || row->who == ROUTES[j].who,
                      "%s has rows for two kinds of principal", row->path);
    }
}

Test(routes, flags_are_consistent)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        const struct route *row = &ROUTES[i];
        bool mutates = row->method != HTTP_GET;
        bool has_csrf = row->flags & ROUTE_CSRF;

        cr_assert(row->handle, "%s", row->path);
        cr_assert_eq(has_csrf, row->who == WHO_SESSION && mutates, "%s", row->path);
        cr_assert(!(row->flags & ROUTE_ORIGIN) || row->who == WHO_ANYONE, "%s", row->path);
        cr_assert(row->who != WHO_ANYONE || !mutates || (row->flags & ROUTE_ORIGIN), "%s", row->path);
        cr_assert(!(row->flags & ROUTE_STEP_UP) || row->who == WHO_SESSION, "%s", row->path);
        cr_assert(!(row->flags & (ROUTE_JSON | ROUTE_FORM)) || mutates, "%s", row->path);
        cr_assert(!(row->flags & ROUTE_JSON) || !(row->flags & ROUTE_FORM), "%s", row->path);
        cr_assert(!(row->flags & ROUTE_QUERY) || !mutates || row->method == HTTP_DELETE, "%s", row->path);
        cr_assert(row->scope == SCOPE_NONE || row->who == WHO_API_KEY, "%s", row->path);
        cr_assert(!(row->flags & ROUTE_LIVE) || row->who == WHO_API_KEY, "%s", row->path);
    }
}

Test(routes, creating_a_key_in_the_console_needs_step_up)
{
    struct route_match match = route_find(HTTP_POST, TEXT("/v1/console/api_keys"));

    cr_assert(match.route && (match.route->flags & ROUTE_STEP_UP));
}

Test(routes, managing_keys_needs_its_scope)
{
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (lies_under(&ROUTES[i], "/v1/api_keys"))
            cr_assert_eq(ROUTES[i].scope, SCOPE_KEYS_MANAGE, "%s", ROUTES[i].path);
}

Test(routes, rows_are_found)
{
    static const struct {
        enum http_method method;
        const char *path;
        const char *row; /* NULL: no row for that method */
        bool known;
        const char *id;
    } CASES[] = {
        {HTTP_GET, "/v1/whoami", "/v1/whoami", true, ""},
        {HTTP_HEAD, "/v1/whoami", "/v1/whoami", true, ""},
        {HTTP_POST, "/v1/whoami", NULL, true, ""},
        {HTTP_GET, "/v1/whoami/", NULL, false, ""},
        {HTTP_GET, "/v1/whoam", NULL, false, ""},
        {HTTP_GET, "/v1/whoamix", NULL, false, ""},
        {HTTP_GET, "/V1/whoami", NULL, false, ""},
        {HTTP_GET, "/v1/api_keys", "/v1/api_keys", true, ""},
        {HTTP_GET, "/v1/api_keys/", NULL, false, ""},
        {HTTP_GET, "/v1/api_keys/key_1", "/v1/api_keys/{id}", true, "key_1"},
        {HTTP_DELETE, "/v1/api_keys/key_1", "/v1/api_keys/{id}", true, "key_1"},
        {HTTP_HEAD, "/v1/api_keys/key_1", "/v1/api_keys/{id}", true, "key_1"},
        {HTTP_PUT, "/v1/api_keys/key_1", NULL, true, "key_1"},
        {HTTP_DELETE, "/v1/api_keys", NULL, true, ""},
        {HTTP_GET, "/v1/api_keys/key_1/x", NULL, false, ""},
        {HTTP_GET, "/v1/api_keys/key_1/", NULL, false, ""},
        {HTTP_DELETE, "/v1/console/api_keys/key_1", "/v1/console/api_keys/{id}", true, "key_1"},
        {HTTP_POST, "/v1/console/device_enrolments/A-B/deny", "/v1/console/device_enrolments/{id}/deny", true, "A-B"},
        {HTTP_GET, "/v1/console/device_enrolments/A-B", "/v1/console/device_enrolments/{id}", true, "A-B"},
        {HTTP_GET, "/v1/console/device_enrolments/A-B/deny", NULL, true, "A-B"},
        {HTTP_POST, "/v1/console/device_enrolments//deny", NULL, false, ""},
        {HTTP_POST, "/v1/console/device_enrolments/A/B/deny", NULL, false, ""},
        {HTTP_POST, "/v1/console/device_enrolments/A/deny/", NULL, false, ""},
        {HTTP_POST, "/v1/console/device_enrolments/A/denyx", NULL, false, ""},
        {HTTP_OTHER, "/v1/auth/login", NULL, true, ""},
        {HTTP_GET, "/", NULL, false, ""},
        {HTTP_GET, "", NULL, false, ""},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct route_match match = route_find(CASES[i].method, text_of(CASES[i].path));

        cr_assert_eq(match.sibling != NULL, CASES[i].known, "%s", CASES[i].path);
        cr_assert(text_equal(match.id, text_of(CASES[i].id)), "%s", CASES[i].path);
        if (CASES[i].row)
            cr_assert(match.route && text_equal(text_of(match.route->path), text_of(CASES[i].row)), "%s",
                      CASES[i].path);
        else
            cr_assert_null(match.route, "%s", CASES[i].path);
    }
}

Test(routes, allow_lists_all_methods_of_a_path)
{
    static const struct {
        const char *path, *allow;
    } CASES[] = {
        {"/v1/whoami", "GET, HEAD"},
        {"/v1/api_keys", "GET, HEAD, POST"},
        {"/v1/api_keys/x", "GET, HEAD, PATCH, DELETE"},
        {"/v1/auth/login", "POST"},
        {"/v1/console/usage", "GET, HEAD"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct route_match match = route_find(HTTP_OTHER, text_of(CASES[i].path));
        char storage[64];
        struct buf out;

        cr_assert(match.sibling, "%s", CASES[i].path);
        buf_init_fixed(&out, storage, sizeof storage);
        route_print_allow(match.sibling, &out);
        cr_assert(!out.failed && text_equal(buf_text(&out), text_of(CASES[i].allow)), "%s: %.*s", CASES[i].path,
                  TEXT_ARG(buf_text(&out)));
    }
}

Test(routes, a_path_leads_to_one_mount)
{
    static const struct {
        const struct mount *(*find)(struct text path);
        const char *path, *mount; /* NULL: none */
    } CASES[] = {
        {mount_of_page, "/", "/"},
        {mount_of_page, "/console", "/console"},
        {mount_of_page, "/console/x/app.js", "/console"},
        {mount_of_page, "/console/../v1/whoami", "/console"},
        {mount_of_page, "/consoles", NULL},
        {mount_of_page, "/docs", "/docs"},
        {mount_of_page, "/docs/errors", "/docs"},
        {mount_of_page, "/docsx", NULL},
        {mount_of_page, "/openapi.json", "/openapi.json"},
        {mount_of_page, "/openapi.json/x", NULL},
        {mount_of_page, "/livez", "/livez"},
        {mount_of_page, "/readyz", "/readyz"},
        {mount_of_page, "/readyz/x", NULL},
        {mount_of_page, "/metrics", NULL},
        {mount_of_page, "/v1/whoami", NULL},
        {mount_of_api, "/", NULL},
        {mount_of_api, "/console/", NULL},
        {mount_of_api, "/v1", "/v1"},
        {mount_of_api, "/v1/whoami", "/v1"},
        {mount_of_api, "/v12/whoami", NULL},
        {mount_of_api, "/V1/whoami", NULL},
        {mount_of_api, "/v1/authority", "/v1"},
        {mount_of_api, "/v1/auth", "/v1/auth"},
        {mount_of_api, "/v1/auth/login", "/v1/auth"},
        {mount_of_api, "/v1/console", "/v1/console"},
        {mount_of_api, "/v1/console/x", "/v1/console"},
        {mount_of_api, "/v1/consoles", "/v1"},
        {mount_of_api, "/livez", NULL},
        {mount_of_internal, "/livez", "/livez"},
        {mount_of_internal, "/livez/", NULL},
        {mount_of_internal, "/check/auth-request", "/check/auth-request"},
        {mount_of_internal, "/check/auth-request/", "/check"},
        {mount_of_internal, "/check/ext-authz/v1/x", "/check/ext-authz"},
        {mount_of_internal, "/check/ext-authzx", "/check"},
        {mount_of_internal, "/checks", NULL},
        {mount_of_internal, "/v1/whoami", NULL},
        {mount_of_internal, "", NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct mount *mount = CASES[i].find(text_of(CASES[i].path));

        cr_assert_eq(mount != NULL, CASES[i].mount != NULL, "%s", CASES[i].path);
        cr_assert(!mount || text_equal(mount->path, text_of(CASES[i].mount)), "%s", CASES[i].path);
    }
}

/* No policy may set the paths of our rows or the folders without other backends, in any spelling. */
Test(routes, our_own_paths_are_known)
{
    static const struct {
        const char *path;
        bool is_own;
    } CASES[] = {
        {"/v1/api_keys", true},
        {"/v1/api_keys/x", true},
        {"/v1/API_keys/x", true},
        {"/v1/api_keys_of_ours", false},
        {"/v1/whoami", true},
        {"/v1/whoami/x", true},
        {"/v1/auth", true},
        {"/v1/auth/anything", true},
        {"/v1/Auth/anything", true},
        {"/v1/authority", false},
        {"/v1/console", true},
        {"/v1/Console", true},
        {"/v1/Console/patients", true},
        {"/v1/console/patients", false},
        {"/v1/console/session", true},
        {"/v1/console/Session", true},
        {"/v1/console/api_keys/*", true},
        {"/v1/console/device_enrolments/x/approve", true},
        {"/v1/console/device_enrolments", true},
        {"/v1/audit", false}, /* yields */
        {"/v1/patients", false},
        {"/v1/patients/*/whoami", false},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        cr_assert_eq(api_owns_path(text_of(CASES[i].path)), CASES[i].is_own, "%s", CASES[i].path);
}

Test(routes, some_rows_yield_to_a_policy_that_has_their_folder)
{
    static const struct {
        const char *path;
        unsigned flags;
        bool yields;
    } CASES[] = {
        {"/v1/sandbox", ROUTE_YIELDS, true},
        {"/v1/sandbox/{id}", ROUTE_YIELDS | ROUTE_QUERY, true},
        {"/v1/sandboxes", ROUTE_YIELDS, false},
        {"/v1/sandbox", ROUTE_QUERY, false},
    };
    struct route_policy *policy = route_policy_built_in();

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct route row = {HTTP_GET,   CASES[i].path, NULL,           WHO_API_KEY,
                            SCOPE_NONE, ROLE_AUDITOR,  CASES[i].flags, GATE_CHECK};

        cr_assert_eq(route_yields(&row, policy), CASES[i].yields, "%s", CASES[i].path);
    }
    route_policy_destroy(policy);
}

/* What others call it, and where it is here. */
Test(routes, a_path_that_is_none_of_ours_leads_to_the_nearest)
{
    static const struct {
        enum http_method method;
        const char *path, *meant, *instead; /* NULL: nothing is said */
    } CASES[] = {
        {HTTP_GET, "/v1/keys", "/v1/api_keys", NULL},
        {HTTP_GET, "/v1/api_keys/", "/v1/api_keys", NULL},
        {HTTP_GET, "/api/v1/API-Keys", "/v1/api_keys", NULL},
        {HTTP_GET, "/v1/console/user", "/v1/console/users", NULL},
        {HTTP_PUT, "/v1/api_keys/key_1/schedule_revocation", "/v1/api_keys/{id}/scheduled_revocation", NULL},
        {HTTP_POST, "/v1/api_keys/key_1/revoke", NULL, "To revoke one key: DELETE /v1/api_keys/{id}."},
        {HTTP_GET, "/v1/users", NULL, NULL}, /* of the console, which no key may ask */
        {HTTP_GET, "/v1/patients", NULL, NULL},
        {HTTP_GET, "/", NULL, NULL},
        {HTTP_GET, "", NULL, NULL},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct problem problem = route_guess(CASES[i].method, text_of(CASES[i].path));

        cr_expect_eq(problem.code, PROBLEM_NOT_FOUND);
        cr_expect_str_eq(problem.meant ? problem.meant : "", CASES[i].meant ? CASES[i].meant : "", "%s", CASES[i].path);
        cr_expect_str_eq(problem.instead ? problem.instead : "", CASES[i].instead ? CASES[i].instead : "", "%s",
                         CASES[i].path);
    }
}
