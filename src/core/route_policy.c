#include "core/route_policy.h"
#include "base/crc32.h"
#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "core/path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    ROUTES_MAX = 1000,
    PATH_MAX_BYTES = 1024,
    ROW_MAX_BYTES = PATH_MAX_BYTES + 512,
    NAMED_MAX_BYTES = 80,
    POLICY_VERSION = 1
};

/* A row's rule for reading or for writing. */
enum access {
    ACCESS_NONE, /* omitted: 405 */
    ACCESS_DENY, /* null: 403 */
    ACCESS_SCOPE,
    ACCESS_SESSION,
    ACCESS_STEP_UP,
    ACCESS_PUBLIC, /* only for reading */
};

struct use {
    enum access access;
    scope_set scope;
};

struct policy_row {
    struct text path;  /* begins with "/v1/", no slash at its end; "*" segments; the policy's own memory */
    struct text group; /* group_of() the path */
    struct use read, write;
    bool takes_preflight;
};

struct route_policy {
    struct policy_row *rows; /* by compare_rows() */
    size_t count;
    uint32_t digest;
    bool has_open_rows;
};

#define WITH(name)         \
    {                      \
        ACCESS_SCOPE, name \
    }
#define PATH(literal)                \
    {                                \
        literal, sizeof(literal) - 1 \
    }

#define ROW(literal, reading, writing)                                  \
    {                                                                   \
        .path = PATH("/v1/" literal), .read = reading, .write = writing \
    }

/* The product's own row, in force whatever the file says. */
static const struct policy_row OWN_ROW = ROW("api_keys", WITH(SCOPE_KEYS_MANAGE), WITH(SCOPE_KEYS_MANAGE));

static const struct policy_row BUILT_IN_ROWS[] = {
    ROW("patients", WITH(SCOPE_PATIENTS_READ), WITH(SCOPE_PATIENTS_WRITE)),
    ROW("exchanges", WITH(SCOPE_EXCHANGES_READ), WITH(SCOPE_EXCHANGES_WRITE)),
    ROW("webhooks", WITH(SCOPE_WEBHOOKS_MANAGE), WITH(SCOPE_WEBHOOKS_MANAGE)),
    ROW("documents", {.access = ACCESS_DENY}, WITH(SCOPE_DOCUMENTS_WRITE)),
    ROW("organisation", WITH(SCOPE_ORG_MANAGE), WITH(SCOPE_ORG_MANAGE)),
    ROW("sandbox", WITH(SCOPE_SANDBOX_MANAGE), WITH(SCOPE_SANDBOX_MANAGE)),
};
enum { BUILT_IN_COUNT = sizeof BUILT_IN_ROWS / sizeof BUILT_IN_ROWS[0] };

static const struct text CONSOLE = PATH("/v1/console/");

static bool is_star(struct text segment)
{
    return text_equal(segment, TEXT("*"));
}

/* Rows are found by the first segment after /v1/, which is a name. */
static struct text group_of(struct text path)
{
    struct text rest, group;
    if (!text_starts_with(path, TEXT("/v1/")))
        return TEXT("");
    rest = text_skip(path, TEXT("/v1/").len);
    return text_next(&rest, '/', &group) ? group : TEXT("");
}

static int compare_names(struct text a, struct text b)
{
    const int order = strncasecmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_segments(struct text a, struct text b)
{
    return is_star(a) || is_star(b) ? is_star(a) - is_star(b) : compare_names(a, b);
}

static size_t count_segments(struct text path)
{
    struct text segment;
    size_t count = 0;
    while (text_next(&path, '/', &segment))
        count++;
    return count;
}

/* By group, then by precedence. 0: equal if case is ignored. */
static int compare_rows(const void *left, const void *right)
{
    const struct policy_row *one = left, *other = right;
    struct text a = one->path, b = other->path, in_a, in_b;
    const size_t a_segments = count_segments(a), b_segments = count_segments(b);
    int order = compare_names(one->group, other->group);
    if (order)
        return order;
    if (a_segments != b_segments)
        return a_segments > b_segments ? -1 : 1;
    while (!order && text_next(&a, '/', &in_a) && text_next(&b, '/', &in_b))
        order = compare_segments(in_a, in_b);
    return order;
}

static void print_use(struct use use, struct buf *out)
{
    static const char *const WORDS[] = {
        [ACCESS_NONE] = "none",       [ACCESS_DENY] = "deny",       [ACCESS_SCOPE] = "scope ",
        [ACCESS_SESSION] = "session", [ACCESS_STEP_UP] = "step_up", [ACCESS_PUBLIC] = "public"};

    buf_append_char(out, '\n');
    buf_append_str(out, WORDS[use.access]);
    if (use.access == ACCESS_SCOPE)
        scope_print(use.scope, ' ', out);
}

/* Of the rows in their order, so that a table built into another release has another one. */
static uint32_t digest_of(const struct route_policy *policy)
{
    uint32_t digest = POLICY_VERSION;

    for (size_t i = 0; i < policy->count; i++) {
        struct buf out = BUF_FIXED(ROW_MAX_BYTES);

        buf_printf(&out, "%" PRIu32 "\n", digest);
        buf_append_text(&out, policy->rows[i].path);
        print_use(policy->rows[i].read, &out);
        print_use(policy->rows[i].write, &out);
        if (policy->rows[i].takes_preflight)
            buf_append_str(&out, "\npreflight");
        CHECK(!out.failed);
        digest = crc32_of(buf_text(&out));
    }
    return digest > 0 ? digest : 1;
}

static void complete(struct route_policy *policy)
{
    qsort(policy->rows, policy->count, sizeof *policy->rows, compare_rows);
    policy->digest = digest_of(policy);
}

static void add_row(struct route_policy *policy, struct policy_row row)
{
    row.path.ptr = mem_copy_text(row.path.ptr, row.path.len);
    row.group = group_of(row.path);
    policy->has_open_rows |= row.takes_preflight || row.read.access == ACCESS_PUBLIC;
    policy->rows[policy->count++] = row;
}

static struct route_policy *create_with_room(size_t rows)
{
    struct route_policy *policy = mem_alloc(sizeof *policy);
    policy->rows = mem_alloc((rows + 1) * sizeof *policy->rows);
    add_row(policy, OWN_ROW);
    return policy;
}

struct route_policy *route_policy_built_in(void)
{
    struct route_policy *policy = create_with_room(BUILT_IN_COUNT);
    for (size_t i = 0; i < BUILT_IN_COUNT; i++)
        add_row(policy, BUILT_IN_ROWS[i]);
    complete(policy);
    return policy;
}

void route_policy_destroy(struct route_policy *policy)
{
    if (!policy)
        return;
    for (size_t i = 0; i < policy->count; i++)
        free((char *)policy->rows[i].path.ptr);
    free(policy->rows);
    free(policy);
}

/* How many bytes of a text an error quotes. */
static int quoted_bytes(struct text t)
{
    return (int)(t.len < NAMED_MAX_BYTES ? t.len : NAMED_MAX_BYTES);
}

static bool refuse_path(struct buf *ret_why, struct text path, const char *what)
{
    buf_printf(ret_why, "The path \"%.*s\" %s.", quoted_bytes(path), path.ptr, what);
    return false;
}

static bool stars_valid(struct text path)
{
    struct text rest = text_skip(path, text_starts_with(path, CONSOLE) ? CONSOLE.len : TEXT("/v1/").len), segment;
    bool is_first = true;
    while (text_next(&rest, '/', &segment)) {
        if (memchr(segment.ptr, '*', segment.len) && (is_first || !is_star(segment)))
            return false;
        is_first = false;
    }
    return true;
}

static bool path_valid(struct text path, route_policy_is_own *is_own, struct buf *ret_why)
{
    char normal[PATH_MAX_BYTES];
    size_t len;
    if (path.len > PATH_MAX_BYTES)
        return refuse_path(ret_why, path, "is longer than 1,024 bytes");
    if (!text_starts_with(path, TEXT("/v1/")) || path.len == TEXT("/v1/").len)
        return refuse_path(ret_why, path, "does not name a route below /v1/");
    if (!path_normalise(path, normal, &len) || !text_equal(path, (struct text){normal, len}))
        return refuse_path(ret_why, path, "is not in its normalised form");
    if (path.ptr[path.len - 1] == '/')
        return refuse_path(ret_why, path, "ends in a slash; without it, the row covers everything below too");
    if (!path_is_unambiguous(path))
        return refuse_path(ret_why, path, "is one that every check refuses, because servers read it differently");
    if (!stars_valid(path))
        return refuse_path(ret_why, path, "may have \"*\" only as a whole segment, and not as the first one");
    return !is_own(path) || refuse_path(ret_why, path, "is a route of the product itself and cannot be set");
}

static bool read_session_use(struct text value, struct use *ret_use)
{
    *ret_use = (struct use){ACCESS_SESSION, SCOPE_NONE};
    if (text_equal(value, TEXT("step_up")))
        ret_use->access = ACCESS_STEP_UP;
    return ret_use->access == ACCESS_STEP_UP || text_equal(value, TEXT("session"));
}

static bool read_key_use(struct text value, bool is_read, struct use *ret_use)
{
    *ret_use = (struct use){ACCESS_SCOPE, scope_parse(value)};
    if (is_read && text_equal(value, TEXT("public")))
        ret_use->access = ACCESS_PUBLIC;
    return ret_use->scope != SCOPE_NONE || ret_use->access == ACCESS_PUBLIC;
}

static bool read_use(const struct json *value, struct text path, bool is_read, struct use *ret_use, struct buf *ret_why)
{
    const char *name = is_read ? "read" : "write";
    const bool is_console = text_starts_with(path, CONSOLE);
    const char *of_keys = is_read ? "the name of a scope, or \"public\"" : "the name of a scope";
    const char *known = is_console ? "\"session\" or \"step_up\"" : of_keys;
    struct text word;
    if (json_type(value) == JSON_NULL) {
        *ret_use = (struct use){ACCESS_DENY, SCOPE_NONE};
        return true;
    }
    if (json_type(value) != JSON_STRING) {
        buf_printf(ret_why, "\"%s\" of \"%.*s\" is neither a string nor null.", name, quoted_bytes(path), path.ptr);
        return false;
    }
    word = json_text(value);
    if (is_console ? read_session_use(word, ret_use) : read_key_use(word, is_read, ret_use))
        return true;
    buf_printf(ret_why, "\"%s\" of \"%.*s\" is \"%.*s\"; it must be %s.", name, quoted_bytes(path), path.ptr,
               quoted_bytes(word), word.ptr, known);
    return false;
}

static bool read_preflight(const struct json *value, struct policy_row *row, struct buf *ret_why)
{
    if (json_type(value) != JSON_BOOL)
        return refuse_path(ret_why, row->path, "has a \"preflight\" that is neither true nor false");
    row->takes_preflight = json_bool(value);
    return !row->takes_preflight || !text_starts_with(row->path, CONSOLE) ||
           refuse_path(ret_why, row->path, "cannot take preflights, because sessions are for pages of our own origin");
}

static bool members_known(const struct json *object, const char *const *names, size_t count, const char *where,
                          struct buf *ret_why)
{
    for (const struct json *member = json_first(object); member; member = json_next(member)) {
        const struct text name = json_name(member);
        bool known = false;
        for (size_t i = 0; i < count; i++)
            known |= text_equal(name, text_of(names[i]));
        if (known)
            continue;
        buf_printf(ret_why, "%s has an unknown member, \"%.*s\".", where, quoted_bytes(name), name.ptr);
        return false;
    }
    return true;
}

static bool read_row(const struct json *value, route_policy_is_own *is_own, struct policy_row *ret_row,
                     struct buf *ret_why)
{
    static const char *const NAMES[] = {"path", "read", "write", "preflight"};
    const struct json *path = json_type(value) == JSON_OBJECT ? json_member(value, "path") : NULL;
    if (!path || json_type(path) != JSON_STRING) {
        buf_append_str(ret_why, "Each of \"routes\" must be an object with a \"path\".");
        return false;
    }
    *ret_row = (struct policy_row){.path = json_text(path)};
    if (!path_valid(ret_row->path, is_own, ret_why) || !members_known(value, NAMES, 4, "A route", ret_why))
        return false;
    const struct json *read = json_member(value, "read"), *write = json_member(value, "write"),
                      *preflight = json_member(value, "preflight");
    if (!read && !write)
        return refuse_path(ret_why, ret_row->path, "has neither \"read\" nor \"write\"");
    return (!read || read_use(read, ret_row->path, true, &ret_row->read, ret_why)) &&
           (!write || read_use(write, ret_row->path, false, &ret_row->write, ret_why)) &&
           (!preflight || read_preflight(preflight, ret_row, ret_why));
}

static bool read_rows(const struct json *routes, route_policy_is_own *is_own, struct route_policy *policy,
                      struct buf *ret_why)
{
    for (const struct json *value = json_first(routes); value; value = json_next(value)) {
        struct policy_row row;
        if (!read_row(value, is_own, &row, ret_why))
            return false;
        add_row(policy, row);
    }
    complete(policy);
    for (size_t i = 1; i < policy->count; i++)
        if (compare_rows(&policy->rows[i - 1], &policy->rows[i]) == 0)
            return refuse_path(ret_why, policy->rows[i].path, "appears twice");
    return true;
}

static struct route_policy *read_document(const struct json *document, route_policy_is_own *is_own, struct buf *ret_why)
{
    static const char *const NAMES[] = {"version", "routes"};
    const struct json *version = json_member(document, "version"), *routes = json_member(document, "routes");
    int64_t number;
    if (!members_known(document, NAMES, 2, "The policy", ret_why))
        return NULL;
    if (!version || json_type(version) != JSON_NUMBER || !json_integer(version, &number) || number != POLICY_VERSION) {
        buf_append_str(ret_why, "\"version\" must be 1.");
        return NULL;
    }
    size_t count = 0;
    if (routes && json_type(routes) == JSON_ARRAY)
        for (const struct json *value = json_first(routes); value; value = json_next(value))
            count++;
    if (count == 0 || count > ROUTES_MAX) {
        buf_append_str(ret_why, "\"routes\" must be a list of 1 to 1,000 routes.");
        return NULL;
    }
    struct route_policy *policy = create_with_room(count);
    if (read_rows(routes, is_own, policy, ret_why))
        return policy;
    route_policy_destroy(policy);
    return NULL;
}

/* One sentence, in which "not a JSON object" stands once. */
static void refuse_text(struct text json, const char *why, struct buf *ret_why)
{
    size_t line, column;
    buf_append_str(ret_why, "The policy is not a JSON object");
    if (json_find_mistake(json, &line, &column))
        buf_printf(ret_why, " (line %zu, column %zu)", line, column);
    if (!strstr(why, "not a JSON object"))
        buf_printf(ret_why, ": %s", why);
    buf_append_char(ret_why, '.');
}

struct route_policy *route_policy_parse(struct text json, route_policy_is_own *is_own, struct buf *ret_why)
{
    const char *why = "";
    struct json *document = json_parse_object(json, &why);
    if (!document) {
        refuse_text(json, why, ret_why);
        return NULL;
    }
    struct route_policy *policy = read_document(document, is_own, ret_why);
    json_free(document);
    return policy;
}

uint32_t route_policy_digest(const struct route_policy *policy)
{
    return policy->digest;
}

static ALWAYS_INLINE size_t find_group(const struct route_policy *policy, struct text group)
{
    size_t low = 0, high = policy->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_names(policy->rows[middle].group, group) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct policy_row *find_row(const struct route_policy *policy, struct text path)
{
    const struct text group = group_of(path);
    for (size_t i = find_group(policy, group); i < policy->count; i++) {
        const struct policy_row *row = &policy->rows[i];
        bool is_exact;
        if (path_covers(row->path, path, &is_exact))
            return is_exact ? row : NULL;
        if (compare_names(row->group, group) != 0)
            break;
    }
    return NULL;
}

bool route_policy_has_folder(const struct route_policy *policy, struct text path)
{
    const struct text folder = group_of(path);
    const size_t i = find_group(policy, folder);
    return i < policy->count && compare_names(policy->rows[i].group, folder) == 0;
}

struct text route_policy_row(const struct route_policy *policy, struct text path)
{
    const struct policy_row *row = find_row(policy, path);
    return row ? row->path : (struct text){0};
}

bool route_policy_has_open_rows(const struct route_policy *policy)
{
    return policy->has_open_rows;
}

bool route_policy_is_public(const struct route_policy *policy, struct text path)
{
    const struct policy_row *row = find_row(policy, path);
    return row && row->read.access == ACCESS_PUBLIC;
}

bool route_policy_takes_preflight(const struct route_policy *policy, struct text path, bool is_read)
{
    const struct policy_row *row = find_row(policy, path);
    if (!row || !row->takes_preflight)
        return false;
    const enum access access = is_read ? row->read.access : row->write.access;
    return access == ACCESS_SCOPE || access == ACCESS_PUBLIC;
}

enum policy_verdict route_policy_find(const struct route_policy *policy, struct text path, bool is_read,
                                      scope_set *ret_scope, const char **ret_allow)
{
    const struct policy_row *row = find_row(policy, path);
    if (!row)
        return POLICY_UNKNOWN;
    const struct use *use = is_read ? &row->read : &row->write;
    switch (use->access) {
    case ACCESS_NONE:
        *ret_allow = is_read ? "POST, PUT, PATCH, DELETE" : "GET, HEAD";
        return POLICY_METHOD;
    case ACCESS_DENY:
        return POLICY_DENY;
    case ACCESS_SCOPE:
        *ret_scope = use->scope;
        return POLICY_SCOPE;
    case ACCESS_SESSION:
        return POLICY_SESSION;
    case ACCESS_STEP_UP:
        return POLICY_STEP_UP;
    case ACCESS_PUBLIC:
        return POLICY_PUBLIC;
    }
    UNREACHABLE();
}
