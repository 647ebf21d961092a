#include "route_attack.h"
#include "base/clock.h"
#include "core/limits.h"
#include "core/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_OF_A_LIST = 10000,
    SECRETS_OF_A_TEXT = 100,
    BODY_MAX_BYTES = 64 * 1024, /* --body-max-bytes */
    LONG_TARGET_BYTES = 7900,   /* --target-max-bytes is 8000 */
};

static const enum id_kind KINDS[ATTACK_OBJECTS] = {
    [ATTACK_KEY] = ID_KEY,     [ATTACK_DEVICE_KEY] = ID_DEVICE,     [ATTACK_ENROLMENT] = ID_NONE,
    [ATTACK_PERSON] = ID_USER, [ATTACK_INVITATION] = ID_INVITATION, [ATTACK_SESSION] = ID_REQUEST};

/* By the first that the path contains. */
static const struct {
    const char *part;
    enum attack_object object;
} FOLDERS[] = {{"/api_keys/{id}", ATTACK_KEY},
               {"/device_keys/{id}", ATTACK_DEVICE_KEY},
               {"/device_enrolments/{id}", ATTACK_ENROLMENT},
               {"/invitations/{id}", ATTACK_INVITATION},
               {"/sessions/{id}", ATTACK_SESSION},
               {"/users/{id}", ATTACK_PERSON},
               {"/team/{id}", ATTACK_PERSON}};

#define WRONG_PASSWORD "\"wrong-Horse-battery-1\""
#define CODE "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

/* By the first end that the path has. {key}, {email}, {secret} and {tomorrow} stand for what their names say. */
static const struct {
    const char *end, *body;
} BODIES[] = {
    {"/api_keys", "{\"name\":\"n\",\"mode\":\"live\",\"scopes\":[\"usage:read\"]}"},
    {"/api_keys/{id}", "{\"name\":\"renamed\"}"},
    {"/api_keys/revoke", "{\"ids\":[\"{key}\"]}"},
    {"/scheduled_revocation", "{\"revoke_at\":\"{tomorrow}\"}"},
    {"/replacement", "{\"overlap_seconds\":3600}"},
    {"/auth/login", "{\"email\":\"{email}\",\"password\":" WRONG_PASSWORD ",\"totp\":\"000000\"}"},
    {"/auth/recover",
     "{\"email\":\"{email}\",\"password\":" WRONG_PASSWORD ",\"recovery_code\":\"7K4M-0PXR-9D2E-WQ5T\"}"},
    {"/recover/confirm", "{\"ticket\":\"" CODE "\",\"totp\":\"000000\"}"},
    {"/console/step_up", "{\"password\":" WRONG_PASSWORD ",\"totp\":\"000000\"}"},
    {"/console/password",
     "{\"current_password\":" WRONG_PASSWORD ",\"totp\":\"000000\",\"new_password\":\"seven herons read maps\"}"},
    {"/console/totp", "{\"password\":" WRONG_PASSWORD ",\"totp\":\"000000\"}"},
    {"/totp/confirm", "{\"totp\":\"000000\"}"},
    {"/role", "{\"role\":\"auditor\",\"revoke_keys\":\"all\"}"},
    {"/disable", "{\"revoke_keys\":\"all\"}"},
    {"/invitations", "{\"email\":\"{email}\",\"role\":\"auditor\"}"},
    {"/join/begin", "{\"code\":\"" CODE "\"}"},
    {"/join/start", "{\"code\":\"" CODE "\"}"},
    {"/auth/join", "{\"code\":\"" CODE "\",\"password\":" WRONG_PASSWORD ",\"totp\":\"000000\"}"},
    {"/device_authorization", "client_id=desktop-agent"},
    {"/auth/token",
     "grant_type=urn:ietf:params:oauth:grant-type:device_code&client_id=desktop-agent&device_code=" CODE},
    {"/auth/revoke", "token={secret}"},
};

const char *attack_method(const struct route *row)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE"};

    return NAMES[row->method];
}

static bool ends_with(const char *path, const char *end)
{
    const size_t path_len = strlen(path), len = strlen(end);

    return path_len >= len && strcmp(path + path_len - len, end) == 0;
}

static const char *pattern_of(const struct route *row)
{
    for (size_t i = 0; i < sizeof BODIES / sizeof *BODIES; i++)
        if (ends_with(row->path, BODIES[i].end))
            return BODIES[i].body;
    return NULL;
}

static bool has_body(const struct route *row)
{
    return row->flags & (ROUTE_JSON | ROUTE_FORM);
}

bool attack_hashes(const struct route *row)
{
    const char *pattern = has_body(row) ? pattern_of(row) : NULL;

    return pattern && strstr(pattern, "password\":");
}

static void make_unknown(enum attack_object object, char ret_id[FIXTURE_TOKEN_BYTES])
{
    const struct id id = KINDS[object] ? id_mint(KINDS[object], clock_wall_ms()) : (struct id){"BCDF-GHJK"};

    snprintf(ret_id, FIXTURE_TOKEN_BYTES, "%s", id.text);
}

void attack_add_tenant(struct fixture *fixture, enum key_mode mode, struct attack_scene *ret_scene)
{
    struct attack_scene *scene = ret_scene;

    fixture_add_account(fixture, scene->account);
    fixture_add_person(fixture, scene->account, "a@clinic.example", ROLE_OWNER, &scene->owner);
    fixture_add_person(fixture, scene->account, "b@clinic.example", ROLE_AUDITOR, &scene->other_person);
    fixture_add_session(fixture, &scene->owner, true, &scene->session);
    fixture_add_key(fixture, scene->account, KEY_API, mode, SCOPE_ALL, &scene->key);
    fixture_add_key(fixture, scene->account, KEY_API, mode, SCOPE_USAGE_READ, &scene->victim);
    for (enum attack_object object = ATTACK_KEY; object < ATTACK_OBJECTS; object++)
        make_unknown(object, scene->ids[object]);
    snprintf(scene->ids[ATTACK_KEY], sizeof scene->ids[0], "%s", scene->victim.id);
    snprintf(scene->ids[ATTACK_PERSON], sizeof scene->ids[0], "%s", scene->other_person.id);
}

static enum attack_object object_of(const struct route *row)
{
    for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++)
        if (strstr(row->path, FOLDERS[i].part))
            return FOLDERS[i].object;
    return ATTACK_NOTHING;
}

/* The query that makes a row work hardest. */
static void print_query(const struct route *row, enum attack_shape shape, char *ret_query, size_t room)
{
    const bool is_usage = strstr(row->path, "/usage") != NULL;
    char from[CLOCK_DATE_BYTES], to[CLOCK_DATE_BYTES];
    const char *query = "?limit=100";

    if (!(row->flags & ROUTE_QUERY))
        query = "";
    else if (row->class == GATE_END)
        query = shape == ATTACK_MALFORMED ? "?revoke_keys=some" : "?revoke_keys=all";
    else if (shape == ATTACK_MALFORMED)
        query = "?limit=0";
    else if (row->class == GATE_WORK && shape == ATTACK_UNKNOWN && !is_usage)
        query = ATTACK_SEARCH;
    else if (row->class == GATE_WORK && shape == ATTACK_LARGE && !is_usage)
        query = ""; /* an export */
    clock_print_date(clock_wall_ms() - INT64_C(89) * 86400000, from);
    clock_print_date(clock_wall_ms(), to);
    if (is_usage && shape != ATTACK_MALFORMED)
        snprintf(ret_query, room, "?from=%s&to=%s&group_by=key&limit=100", from, to);
    else
        snprintf(ret_query, room, "%s", query);
}

static bool print_target(const struct attack_scene *scene, const struct route *row, enum attack_shape shape,
                         struct attack_call *attack)
{
    const char *mark = strstr(row->path, "{id}");
    const enum attack_object object = object_of(row);
    const size_t room = sizeof attack->target;
    char unknown[FIXTURE_TOKEN_BYTES];
    const char *id = shape == ATTACK_MALFORMED ? "x" : shape == ATTACK_UNKNOWN ? unknown : scene->ids[object];
    const int path_len = (int)(mark ? mark - row->path : (long)strlen(row->path));
    char query[128];
    size_t len;

    if (mark && object == ATTACK_NOTHING)
        return false;
    make_unknown(object, unknown);
    print_query(row, shape, query, sizeof query);
    len = (size_t)snprintf(attack->target, room, "%.*s%s%s%s", path_len, row->path, mark ? id : "",
                           mark ? mark + strlen("{id}") : "", query);
    if (shape == ATTACK_LARGE && !has_body(row) && row->class != GATE_WORK && row->class != GATE_END) {
        snprintf(attack->target + len, room - len, "%sstarting_after=", strchr(attack->target, '?') ? "&" : "?");
        len = strlen(attack->target);
        memset(attack->target + len, 'x', LONG_TARGET_BYTES - len);
        attack->target[LONG_TARGET_BYTES] = '\0';
    }
    return true;
}

char *attack_print_unknown_keys(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    fputs("{\"ids\":[", out);
    for (int i = 0; i < KEYS_OF_A_LIST; i++)
        fprintf(out, "%s\"key_01m8fc37gbeg9zs0wvjyy0%04d\"", i ? "," : "", i);
    fputs("]}", out);
    fclose(out);
    return text;
}

/* So many secrets that no key has, each of which is looked for. */
static char *print_unknown_secrets(void)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct secret secret;

    fputs("token=", out);
    for (int i = 0; i < SECRETS_OF_A_TEXT; i++) {
        secret_mint(KEY_API, MODE_LIVE, &secret);
        fprintf(out, "%s%s", i ? "+" : "", secret.text);
    }
    fclose(out);
    return text;
}

/* Blanks behind the first bracket of JSON, or a further field of a form, up to the bound of the row. */
static char *print_padded(const struct route *row, const char *body)
{
    const size_t room = row->who == WHO_ANYONE ? STRANGER_BODY_MAX_BYTES : BODY_MAX_BYTES, len = strlen(body);
    const size_t head = row->flags & ROUTE_JSON ? 1 : len;
    char *text = malloc(room + 1);

    if (!text || len + 3 > room)
        test_give_up("no room for a body of %s", row->path);
    memcpy(text, body, head);
    memset(text + head, row->flags & ROUTE_JSON ? ' ' : 'x', room - head);
    if (row->flags & ROUTE_FORM)
        memcpy(text + head, "&x=", 3);
    memcpy(text + room - (len - head), body + head, len - head);
    text[room] = '\0';
    return text;
}

static char *print_body(const struct attack_scene *scene, const char *pattern, bool is_known)
{
    char tomorrow[CLOCK_RFC3339_BYTES], unknown[FIXTURE_TOKEN_BYTES];
    struct secret secret;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    clock_print_rfc3339(clock_wall_ms() + INT64_C(86400000), tomorrow);
    make_unknown(ATTACK_KEY, unknown);
    secret_mint(KEY_API, MODE_LIVE, &secret);
    const struct {
        const char *mark, *value;
    } VALUES[] = {{"{key}", is_known ? scene->ids[ATTACK_KEY] : unknown},
                  {"{email}", is_known ? scene->owner.email : "nobody@clinic.example"},
                  {"{secret}", is_known ? scene->victim.secret : secret.text},
                  {"{tomorrow}", tomorrow}};
    for (size_t i; *pattern; pattern += i < 4 ? strlen(VALUES[i].mark) : 1) {
        for (i = 0; i < 4 && strncmp(pattern, VALUES[i].mark, strlen(VALUES[i].mark)) != 0;)
            i++;
        i < 4 ? fputs(VALUES[i].value, out) : fputc(*pattern, out);
    }
    fclose(out);
    return text;
}

static char *make_body(const struct attack_scene *scene, const struct route *row, enum attack_shape shape)
{
    const char *pattern = pattern_of(row);
    char *body, *padded;

    if (!pattern)
        return NULL;
    if (shape == ATTACK_LARGE && (row->flags & ROUTE_LARGE))
        return attack_print_unknown_keys();
    if (shape == ATTACK_LARGE && (row->flags & ROUTE_TEXT))
        return print_unknown_secrets();
    if (shape == ATTACK_MALFORMED)
        return strdup(row->flags & ROUTE_JSON ? "{\"\":{" : "%%");
    body = print_body(scene, pattern, shape != ATTACK_UNKNOWN);
    if (shape != ATTACK_LARGE)
        return body;
    padded = print_padded(row, body);
    free(body);
    return padded;
}

bool attack_make(const struct attack_scene *scene, const struct route *row, enum attack_shape shape,
                 struct attack_call *ret_attack)
{
    struct http_call *call = &ret_attack->call;

    ret_attack->body = has_body(row) ? make_body(scene, row, shape) : NULL;
    *call = (struct http_call){.method = attack_method(row),
                               .target = ret_attack->target,
                               .json = row->flags & ROUTE_JSON ? ret_attack->body : NULL,
                               .form = row->flags & ROUTE_FORM ? ret_attack->body : NULL};
    if (row->class == GATE_WORK && shape == ATTACK_LARGE && !strstr(row->path, "/usage"))
        call->fields = "Accept: text/csv\r\n"; /* the whole trail */
    if (row->who == WHO_API_KEY)
        call->bearer = scene->key.secret;
    if (row->who == WHO_SESSION) {
        call->cookie = scene->session.token;
        call->csrf = scene->session.csrf;
    }
    return print_target(scene, row, shape, ret_attack) && (!has_body(row) || ret_attack->body);
}

void attack_free(struct attack_call *attack)
{
    free(attack->body);
    attack->body = NULL;
}

void attack_fill_trail(const struct fixture *fixture, const char *account)
{
    static const char SCRIPT[] = "local e = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1][2] "
                                 "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', unpack(e)) end return 'done'";
    char name[128], reply[64], count[16];

    snprintf(name, sizeof name, "%sacct:%s:audit", fixture_name(account, ""), account);
    snprintf(count, sizeof count, "%d", ATTACK_EVENTS);
    redis_server_ask(&fixture->redis, reply, sizeof reply, "EVAL", SCRIPT, "1", name, count, NULL);
    if (strcmp(reply, "done") != 0)
        test_give_up("the trail cannot be filled: %s", reply);
}

unsigned long attack_peak_kib(const struct node *node)
{
    char path[64], line[128];
    uint64_t kib = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/status", (int)node->process.pid);
    file = fopen(path, "re");
    while (file && kib == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0 &&
            !text_to_u64(text_trim((struct text){line + 6, strcspn(line, "k") - 6}), UINT32_MAX, &kib))
            break;
    if (kib == 0)
        test_give_up("%s tells no VmHWM", path);
    fclose(file);
    return kib;
}
