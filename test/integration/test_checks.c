/* Checks: what gateways ask gets the verdict of the public listener, whichever way they ask. */
#include "api/routes.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(checks, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum gateway { AUTH_REQUEST, FORWARD_AUTH, EXT_AUTHZ, GATEWAY_COUNT };

static const char *const GATEWAY_NAMES[] = {"auth-request", "forward-auth", "ext-authz"};

/* One request, and what it comes with. */
struct subject {
    const char *method, *target;
    struct http_call credential;
};

/* Asks about it in the way of one gateway. Returns the status. */
static int ask(uint16_t port, enum gateway gateway, const struct subject *subject, struct http_answer *ret_answer)
{
    struct http_call call = subject->credential;
    char target[300], fields[600];

    switch (gateway) {
    case AUTH_REQUEST:
        snprintf(fields, sizeof fields, "X-Original-Method: %s\r\nX-Original-URI: %s\r\n%s", subject->method,
                 subject->target, call.fields ? call.fields : "");
        break;
    case FORWARD_AUTH:
        snprintf(fields, sizeof fields, "X-Forwarded-Method: %s\r\nX-Forwarded-Uri: %s\r\n%s", subject->method,
                 subject->target, call.fields ? call.fields : "");
        break;
    case EXT_AUTHZ:
        snprintf(fields, sizeof fields, "%s", call.fields ? call.fields : "");
        call.method = subject->method;
        break;
    case GATEWAY_COUNT:
        abort();
    }
    snprintf(target, sizeof target, "/check/%s%s", GATEWAY_NAMES[gateway], gateway == EXT_AUTHZ ? subject->target : "");
    call.target = target;
    call.fields = fields;
    return http_call(port, &call, ret_answer);
}

static void expect_field(const struct http_answer *answer, const char *name, const char *wanted, const char *what)
{
    char got[300] = "(none)";

    http_answer_field(answer, name, got, sizeof got);
    cr_expect_str_eq(got, wanted, "%s: %s: %s, not %s", what, name, got, wanted);
}

static void expect_no_field(const struct http_answer *answer, const char *name, const char *what)
{
    char got[300];

    cr_expect_not(http_answer_field(answer, name, got, sizeof got), "%s: %s", what, name);
}

/* Credentials, each with the letter by which a row names it. */

struct credential {
    char letter;
    struct http_call call;
    const char *principal, *kind, *mode, *scopes, *billable; /* where it may pass */
};

#define ALL_SCOPES                                                                                        \
    "exchanges:read exchanges:write patients:read patients:write webhooks:manage keys:manage audit:read " \
    "team:manage org:manage usage:read documents:write sandbox:manage"

struct credentials {
    struct fixture_key test, read, device, revoked, revoked_device;
    struct fixture_session session, stepped;
    struct credential list[16];
    size_t count;
};

static void add(struct credentials *made, struct credential credential)
{
    made->list[made->count++] = credential;
}

static void make_holders(struct fixture *fixture, struct credentials *made)
{
    fixture_add_key(fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &made->test);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &made->read);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->device);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &made->revoked);
    fixture_revoke_key(fixture, &made->revoked);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->revoked_device);
    fixture_revoke_key(fixture, &made->revoked_device);
    fixture_add_session(fixture, NULL, false, &made->session);
    fixture_add_session(fixture, NULL, true, &made->stepped);
}

static void make_credentials(struct fixture *fixture, struct credentials *made)
{
    const char *manager = fixture->manager.secret;

    make_holders(fixture, made);
    made->count = 0;
#define KEY(key, kind, mode, scopes, billable) (key).id, kind, mode, scopes, billable
#define PERSON fixture->user.id, "session", "(none)", "", "false"
    add(made, (struct credential){'-', {0}, NULL, NULL, NULL, NULL, NULL});
    add(made, (struct credential){'G', {.bearer = "garbage"}, NULL, NULL, NULL, NULL, NULL});
    add(made, (struct credential){'X', {.bearer = made->revoked.secret}, NULL, NULL, NULL, NULL, NULL});
    add(made, (struct credential){'x', {.bearer = made->revoked_device.secret}, NULL, NULL, NULL, NULL, NULL});
    add(made, (struct credential){'m', {.fields = "Authorization: Bearer\r\n"}, NULL, NULL, NULL, NULL, NULL});
    add(made, (struct credential){'c', {.cookie = "nonsense"}, NULL, NULL, NULL, NULL, NULL});
    add(made,
        (struct credential){'L', {.bearer = manager}, KEY(fixture->manager, "api_key", "live", ALL_SCOPES, "true")});
    add(made, (struct credential){
                  'T', {.bearer = made->test.secret}, KEY(made->test, "api_key", "test", ALL_SCOPES, "false")});
    add(made, (struct credential){
                  'R', {.bearer = made->read.secret}, KEY(made->read, "api_key", "live", "patients:read", "true")});
    add(made, (struct credential){'D',
                                  {.bearer = made->device.secret},
                                  KEY(made->device, "device_key", "live", "documents:write", "true")});
    add(made, (struct credential){'B',
                                  {.bearer = manager, .cookie = made->stepped.token, .csrf = made->stepped.csrf},
                                  KEY(fixture->manager, "api_key", "live", ALL_SCOPES, "true")});
    add(made, (struct credential){'s', {.cookie = made->session.token}, PERSON});
    add(made, (struct credential){'S', {.cookie = made->session.token, .csrf = made->session.csrf}, PERSON});
    add(made, (struct credential){'p', {.cookie = made->stepped.token}, PERSON});
    add(made, (struct credential){
                  'P', {.cookie = made->stepped.token, .csrf = made->stepped.csrf, .origin = NODE_ORIGIN}, PERSON});
    add(made,
        (struct credential){
            'O', {.cookie = made->stepped.token, .csrf = made->stepped.csrf, .origin = "https://e.test"}, PERSON});
}

/* The routes, under test/http/policy.json, and who may pass; "*": anybody, as nobody. */
static const struct family {
    const char *method, *target, *allowed;
} FAMILIES[] = {
    {"GET", "/v1/patients/7?view=full", "LTRB"},
    {"HEAD", "/v1/patients", "LTRB"},
    {"POST", "/v1/patients", "LTB"},
    {"OPTIONS", "/v1/patients", "LTB"},
    {"GET", "/v1/patients/7/notes", "LTRB"},
    {"POST", "/v1/patients/7/notes", ""},
    {"GET", "/v1/documents/7", ""},
    {"POST", "/v1/documents", "LTDB"},
    {"GET", "/v1/documents/types", "*"},
    {"HEAD", "/v1/documents/types/7?of=letters", "*"},
    {"POST", "/v1/documents/types", "LTDB"},
    {"OPTIONS", "/v1/documents/types", "LTDB"},
    {"GET", "/v1/documents/Types", ""},
    {"GET", "/v1/leaflets/7", "*"},
    {"DELETE", "/v1/leaflets/7", ""},
    {"GET", "/v1/usage", "LTB"},
    {"POST", "/v1/usage", ""},
    {"GET", "/v1/nothing", ""},
    {"GET", "/v1/Patients", ""},
    {"GET", "/v1", ""},
    {"GET", "/v1/whoami", "LTRB"},
    {"PUT", "/v1/whoami", ""},
    {"GET", "/v1/api_keys", "LTB"},
    {"DELETE", "/v1/api_keys/key_00000000000000000000000000", "LTB"},
    {"GET", "/v1/api_keys/key_00000000000000000000000000/below", "LTB"},
    {"GET", "/v1/console/session", "sSpPO"},
    {"POST", "/v1/console/step_up", "SP"},
    {"POST", "/v1/console/api_keys", "P"},
    {"PUT", "/v1/console/api_keys", ""},
    {"GET", "/v1/console/patients/7", "sSpPO"},
    {"PATCH", "/v1/console/patients/7", "SP"},
    {"GET", "/v1/console/patients/7/identifier", "pPO"},
    {"HEAD", "/v1/console/patients/8/identifier/all", "pPO"},
    {"POST", "/v1/console/patients/7/identifier", "P"},
    {"GET", "/v1/console/locked", ""},
    {"POST", "/v1/console/locked", ""},
    {"GET", "/v1/console/nothing", ""},
    {"GET", "/v1/auth/login", ""},
    {"POST", "/v1/auth/login", ""},
    {"POST", "/v1/auth/logout", ""},
    {"GET", "/", ""},
    {"GET", "/console/", ""},
    {"GET", "/docs", ""},
    {"GET", "/openapi.json", ""},
};

static void expect_allowed(const struct fixture *fixture, const struct credential *who,
                           const struct http_answer *answer, const char *what)
{
    cr_expect_eq(answer->status, 200, "%s: %d %s", what, answer->status, http_answer_code(answer));
    cr_expect_eq(answer->body_len, 0, "%s", what);
    expect_field(answer, "X-Auth-Account", fixture->account, what);
    expect_field(answer, "X-Auth-Principal", who->principal, what);
    expect_field(answer, "X-Auth-Kind", who->kind, what);
    expect_field(answer, "X-Auth-Mode", who->mode, what);
    expect_field(answer, "X-Auth-Scopes", who->scopes, what);
    expect_field(answer, "X-Auth-Billable", who->billable, what);
    expect_no_field(answer, "X-Auth-Error", what);
    expect_no_field(answer, "Set-Cookie", what);
}

/* Whatever a request brings, except what is no credential in any form. */
static void expect_open(const struct http_answer *answer, const struct credential *who, const char *what)
{
    if (who->letter == 'm') {
        cr_expect_eq(answer->status, 400, "%s: %d", what, answer->status);
        return;
    }
    cr_expect_eq(answer->status, 200, "%s: %d %s", what, answer->status, http_answer_code(answer));
    cr_expect_eq(answer->body_len, 0, "%s", what);
    expect_field(answer, "X-Auth-Kind", "none", what);
    expect_field(answer, "Cache-Control", "no-store", what);
    expect_no_field(answer, "X-Auth-Account", what);
    expect_no_field(answer, "X-Auth-Principal", what);
    expect_no_field(answer, "X-Auth-Mode", what);
    expect_no_field(answer, "X-Auth-Role", what);
    expect_no_field(answer, "X-Auth-Scopes", what);
    expect_no_field(answer, "X-Auth-Billable", what);
    expect_no_field(answer, "X-Auth-Error", what);
    expect_no_field(answer, "Access-Control-Allow-Origin", what);
}

static void expect_denied(const struct http_answer *answer, const char *method, const char *what)
{
    bool has_body = strcmp(method, "HEAD") != 0;

    cr_expect(answer->status >= 400 && answer->status < 500, "%s: %d", what, answer->status);
    if (has_body)
        expect_field(answer, "X-Auth-Error", http_answer_code(answer), what);
    expect_no_field(answer, "X-Auth-Account", what);
    expect_no_field(answer, "X-Auth-Principal", what);
    expect_no_field(answer, "X-Auth-Scopes", what);
}

/* Refusals read the same, but for the id of the request. */
static void expect_same(const struct http_answer *answer, const struct http_answer *other, const char *what)
{
    static const char *const FIELDS[] = {"WWW-Authenticate", "Allow", "Retry-After", "Content-Type"};
    static const char *const MEMBERS[] = {"error.type", "error.code", "error.message", "error.required_scopes"};
    char one[600], two[600];

    cr_expect_eq(answer->status, other->status, "%s: %d, not %d", what, answer->status, other->status);
    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++) {
        one[0] = two[0] = '\0';
        http_answer_field(answer, FIELDS[i], one, sizeof one);
        http_answer_field(other, FIELDS[i], two, sizeof two);
        cr_expect_str_eq(one, two, "%s: %s", what, FIELDS[i]);
    }
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS && answer->body_len > 0; i++) {
        one[0] = two[0] = '\0';
        http_answer_json(answer, MEMBERS[i], one, sizeof one);
        http_answer_json(other, MEMBERS[i], two, sizeof two);
        cr_expect_str_eq(one, two, "%s: %s", what, MEMBERS[i]);
    }
}

static void try_family(const struct fixture *fixture, const struct family *family, const struct credential *who)
{
    struct subject subject = {family->method, family->target, who->call};
    bool is_open = strcmp(family->allowed, "*") == 0;
    bool allowed = is_open || strchr(family->allowed, who->letter);
    bool is_public = strncmp(family->target, "/v1", 3) == 0 && strncmp(family->target, "/v1/auth", 8) != 0;
    struct http_answer answers[GATEWAY_COUNT], public_answer;
    char what[400];

    for (enum gateway gateway = 0; gateway < GATEWAY_COUNT; gateway++) {
        snprintf(what, sizeof what, "%s %s, %c, %s", family->method, family->target, who->letter,
                 GATEWAY_NAMES[gateway]);
        ask(fixture->nodes[0].internal_port, gateway, &subject, &answers[gateway]);
        if (is_open)
            expect_open(&answers[gateway], who, what);
        else if (allowed)
            expect_allowed(fixture, who, &answers[gateway], what);
        else
            expect_denied(&answers[gateway], gateway == EXT_AUTHZ ? family->method : "GET", what);
        if (strcmp(family->method, "HEAD") != 0)
            expect_same(&answers[gateway], &answers[0], what);
    }
    if (!is_public || allowed)
        return;
    subject.credential.method = family->method;
    subject.credential.target = family->target;
    fixture_call(fixture, 0, &subject.credential, &public_answer);
    snprintf(what, sizeof what, "%s %s, %c, public", family->method, family->target, who->letter);
    expect_same(&answers[EXT_AUTHZ], &public_answer, what);
}

static const char *policy_path(void)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/test/http/policy.json", getenv("CHATELAINE_SOURCE"));
    return path;
}

Test(checks, every_route_and_credential_alike)
{
    const char *const more[] = {"--policy-file", policy_path(), NULL};
    struct credentials made;
    struct fixture fixture;

    fixture_start(&fixture, 1, more);
    make_credentials(&fixture, &made);
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++)
        for (size_t k = 0; k < made.count; k++)
            try_family(&fixture, &FAMILIES[i], &made.list[k]);
    fixture_stop(&fixture);
}

static void expect_open_call(struct fixture *fixture, const char *method, const char *target,
                             struct http_call credential, const char *what)
{
    const struct subject subject = {method, target, credential};
    struct http_answer answer;

    for (enum gateway gateway = 0; gateway < GATEWAY_COUNT; gateway++) {
        ask(fixture->nodes[0].internal_port, gateway, &subject, &answer);
        expect_open(&answer, &(struct credential){'-', {0}, NULL, NULL, NULL, NULL, NULL}, what);
    }
}

/* Nor is any refused key noted: what the public may read says nothing about a key. */
Test(checks, what_is_public_needs_no_store_and_counts_nothing)
{
    const char *const more[] = {"--policy-file", policy_path(), NULL};
    struct http_call preflight = {.origin = "https://app.test", .fields = "Access-Control-Request-Method: DELETE\r\n"};
    static const char *const COUNTED[] = {"chatelaine_checks_total{result=\"accepted\"}",
                                          "chatelaine_checks_total{result=\"revoked\"}",
                                          "chatelaine_checks_total{result=\"unavailable\"}"};
    long counts[sizeof COUNTED / sizeof *COUNTED];
    struct fixture_key revoked;
    struct fixture fixture;

    fixture_start(&fixture, 1, more);
    fixture_open_store(&fixture);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &revoked);
    fixture_revoke_key(&fixture, &revoked);
    fixture_close_store(&fixture);
    for (size_t i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++)
        counts[i] = fixture_metric(&fixture, 0, COUNTED[i]);
    expect_open_call(&fixture, "GET", "/v1/leaflets", (struct http_call){.bearer = revoked.secret}, "revoked");
    expect_open_call(&fixture, "GET", "/v1/leaflets", (struct http_call){.bearer = fixture.manager.secret}, "good");
    for (size_t i = 0; i < sizeof COUNTED / sizeof *COUNTED; i++)
        cr_expect_eq(fixture_metric(&fixture, 0, COUNTED[i]), counts[i], "%s", COUNTED[i]);
    cr_expect_not(file_contains(fixture.nodes[0].process.err_path, "request refused"));
    redis_server_kill(&fixture.redis);
    expect_open_call(&fixture, "GET", "/v1/leaflets/7", (struct http_call){0}, "no store");
    expect_open_call(&fixture, "GET", "/v1/leaflets/7", (struct http_call){.bearer = "svc_sk_live_x"}, "no store");
    expect_open_call(&fixture, "OPTIONS", "/v1/patients/7", preflight, "a preflight");
    preflight.bearer = revoked.secret;
    expect_open_call(&fixture, "OPTIONS", "/v1/patients/7", preflight, "a preflight with a key");
    fixture_stop(&fixture);
}

/* The table of routes, whoever asks. */

/* Ids of nobody, so that nothing ends. */
static void print_path(const struct route *row, char ret_path[128])
{
    static const struct {
        const char *folder, *id;
    } IDS[] = {{"/api_keys/", "key_00000000000000000000000000"},
               {"/device_keys/", "dev_00000000000000000000000000"},
               {"/device_enrolments/", "BCDF-GHJK"},
               {"/users/", "usr_00000000000000000000000000"},
               {"/team/", "usr_00000000000000000000000000"},
               {"/invitations/", "inv_00000000000000000000000000"},
               {"/sessions/", "sess_AAAAAAAAAAAAAAAAAAAAAA"}};
    const char *mark = strstr(row->path, "{id}"), *id = NULL;

    for (size_t i = 0; mark && i < sizeof IDS / sizeof *IDS; i++)
        id = strstr(row->path, IDS[i].folder) ? IDS[i].id : id;
    cr_assert_eq(mark != NULL, id != NULL, "%s", row->path);
    snprintf(ret_path, 128, "%.*s%s%s", mark ? (int)(mark - row->path) : 127, row->path, id ? id : "",
             mark ? mark + strlen("{id}") : "");
}

static const char *method_name(enum http_method method)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE"};

    return NAMES[method];
}

/* A refusal is the same on both listeners. What a gateway may let pass, the node does not refuse for want of a
 * permission; its handler may still miss something, or not like the body. */
static void expect_one_verdict(const struct fixture *fixture, const struct route *row, enum http_method method,
                               const struct http_call *who, const char *name)
{
    struct http_answer checked, answer;
    struct http_call call = *who;
    char path[128], what[600];

    print_path(row, path);
    struct subject subject = {method_name(method), path, *who};
    ask(fixture->nodes[0].internal_port, AUTH_REQUEST, &subject, &checked);
    call.method = subject.method;
    call.target = path;
    call.json = method == row->method && (row->flags & ROUTE_JSON) ? "{}" : NULL;
    call.form = method == row->method && (row->flags & ROUTE_FORM) ? "" : NULL;
    fixture_call(fixture, 0, &call, &answer);
    snprintf(what, sizeof what, "%s %s, %s: a gateway is told %d, the client %d %.120s", subject.method, row->path,
             name, checked.status, answer.status, answer.body);
    if (checked.status == 200 && answer.status == 403 && strcmp(row->path, "/v1/console/sessions/{id}") == 0)
        cr_expect_str_eq(http_answer_code(&answer), "step_up_required", "another session than one's own: %s", what);
    else if (checked.status == 200)
        cr_expect(answer.status != 401 && answer.status != 403 && answer.status != 405, "%s", what);
    else if (row->who != WHO_ANYONE && strncmp(row->path, "/v1/auth/", 9) != 0) /* no gateway passes those on */
        expect_same(&checked, &answer, what);
}

static void try_keys(struct fixture *fixture, const struct route *row)
{
    static struct fixture_key keys[4];
    static const char *const NAMES[] = {"a live key", "a test key", "a key without scopes", "a device"};
    const struct http_call nobody = {0};

    if (!keys[0].id[0]) {
        fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &keys[0]);
        fixture_add_key(fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &keys[1]);
        fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_NONE, &keys[2]);
        fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &keys[3]);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct http_call who = {.bearer = keys[i].secret};

        expect_one_verdict(fixture, row, row->method, &who, NAMES[i]);
        expect_one_verdict(fixture, row, HTTP_PATCH, &who, NAMES[i]);
    }
    expect_one_verdict(fixture, row, row->method, &nobody, "nobody");
}

/* Each time with a new session, because the request may end it. */
static void try_people(struct fixture *fixture, const struct route *row)
{
    static struct fixture_user users[ROLE_COUNT];
    char email[64];

    for (enum role role = 0; role < ROLE_COUNT; role++) {
        snprintf(email, sizeof email, "%s@north.test", role_text(role).ptr);
        if (!users[role].id[0])
            fixture_add_person(fixture, NULL, email, role, &users[role]);
        for (int step_up = 0; step_up < 2; step_up++) {
            struct fixture_session session;

            fixture_add_session(fixture, &users[role], step_up, &session);
            expect_one_verdict(fixture, row, row->method, &(struct http_call){.cookie = session.token}, email);
            expect_one_verdict(fixture, row, row->method,
                               &(struct http_call){.cookie = session.token, .csrf = session.csrf}, email);
        }
    }
}

Test(checks, every_route_of_ours_has_one_verdict)
{
    struct fixture fixture;

    fixture_start(&fixture, 1, (const char *const[]){"--changes-per-minute", "100000", NULL});
    fixture_open_store(&fixture);
    for (size_t row = 0; row < ROUTE_COUNT; row++) {
        try_keys(&fixture, &ROUTES[row]);
        if (ROUTES[row].who == WHO_SESSION)
            try_people(&fixture, &ROUTES[row]);
    }
    fixture_close_store(&fixture);
    fixture_stop(&fixture);
}

/* Both nodes know the key from memory when it is revoked. */
Test(checks, the_first_check_after_a_revocation_is_refused)
{
    static const char *const NO_MORE[] = {NULL};
    struct fixture fixture;

    fixture_start(&fixture, 2, NO_MORE);
    for (int round = 0; round < 10; round++) {
        struct subject subject = {"GET", "/v1/patients/7", {0}};
        struct http_answer answer;
        struct fixture_key key;
        char target[100];

        fixture_create_key(&fixture, 0, "{\"name\":\"n\",\"mode\":\"live\"}", &key);
        subject.credential.bearer = key.secret;
        for (enum gateway gateway = 0; gateway < GATEWAY_COUNT; gateway++)
            for (size_t node = 0; node < 2; node++)
                cr_expect_eq(ask(fixture.nodes[node].internal_port, gateway, &subject, &answer), 200);
        snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
        cr_assert_eq(
            fixture_call(&fixture, (size_t)round % 2,
                         &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret},
                         &answer),
            200);
        for (size_t node = 0; node < 2; node++)
            cr_expect_eq(
                ask(fixture.nodes[node].internal_port, (enum gateway)(round % GATEWAY_COUNT), &subject, &answer), 401);
        expect_field(&answer, "X-Auth-Error", "api_key_revoked", "revoked");
    }
    fixture_stop(&fixture);
}

/* requests and billable in one mode, of two days together: midnight may come between. */
static void read_usage(const struct fixture *fixture, const struct fixture_session *session, const char *mode,
                       char ret_counts[64])
{
    struct http_answer answer;
    char path[40], row_mode[16] = "", count[16];
    long requests = 0, billable = 0;

    fixture_call(fixture, 0, &(struct http_call){.target = "/v1/console/usage?days=2", .cookie = session->token},
                 &answer);
    for (int row = 0; row < http_answer_json_count(&answer, "data"); row++) {
        snprintf(path, sizeof path, "data.%d.mode", row);
        http_answer_json(&answer, path, row_mode, sizeof row_mode);
        if (strcmp(row_mode, mode) != 0)
            continue;
        snprintf(path, sizeof path, "data.%d.requests", row);
        requests += http_answer_json(&answer, path, count, sizeof count) ? strtol(count, NULL, 10) : 0;
        snprintf(path, sizeof path, "data.%d.billable", row);
        billable += http_answer_json(&answer, path, count, sizeof count) ? strtol(count, NULL, 10) : 0;
    }
    snprintf(ret_counts, 64, "%ld %ld", requests, billable);
}

static void expect_usage(const struct fixture *fixture, const struct fixture_session *session, const char *mode,
                         const char *wanted)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char counts[64];

    do {
        read_usage(fixture, session, mode, counts);
    } while (strcmp(counts, wanted) != 0 && deadline_left_ms(deadline) > 0);
    cr_expect_str_eq(counts, wanted, "%s: %s", mode, counts);
}

Test(checks, accepted_checks_are_counted_and_no_others)
{
    static const char *const SOON[] = {"--usage-flush-ms", "20", NULL};
    struct fixture_key live, test;
    struct fixture_session session;
    struct http_answer answer;
    struct fixture fixture;
    char used[64];

    fixture_start(&fixture, 1, SOON);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &live);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_PATIENTS_READ, &test);
    fixture_add_session(&fixture, NULL, false, &session);
    for (int i = 0; i < 4; i++)
        for (enum gateway gateway = 0; gateway < GATEWAY_COUNT; gateway++) {
            const struct subject accepted[] = {{"GET", "/v1/patients", {.bearer = live.secret}},
                                               {"GET", "/v1/patients", {.bearer = test.secret}}};
            const struct subject refused[] = {{"POST", "/v1/patients", {.bearer = live.secret}},
                                              {"GET", "/v1/nothing", {.bearer = live.secret}},
                                              {"GET", "/v1//patients", {.bearer = live.secret}},
                                              {"GET", "/v1/auth/login", {.bearer = live.secret}}};

            if (i < 2)
                cr_expect_eq(ask(fixture.nodes[0].internal_port, gateway, &accepted[1], &answer), 200);
            cr_expect_eq(ask(fixture.nodes[0].internal_port, gateway, &accepted[0], &answer), 200);
            cr_expect_neq(ask(fixture.nodes[0].internal_port, gateway, &refused[i], &answer), 200);
        }
    expect_usage(&fixture, &session, "live", "12 12");
    expect_usage(&fixture, &session, "test", "6 0");
    fixture_call(&fixture, 0, &(struct http_call){.target = "/v1/console/api_keys", .cookie = session.token}, &answer);
    cr_expect(http_answer_json(&answer, "data.0.last_used_at", used, sizeof used) && strcmp(used, "null") != 0,
              "last_used_at: %s", used);
    fixture_stop(&fixture);
}

/* A request under way keeps the node open. Its lease is good, so gateways may go on asking. */
Test(checks, a_node_that_drains_still_answers)
{
    static const char *const PATIENT[] = {"--body-timeout-ms", "60000", "--drain-ms", "60000", NULL};
    static const char HEAD[] = "POST /v1/api_keys HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                               "Content-Length: 10\r\nAuthorization: Bearer ";
    struct subject subject = {"GET", "/v1/patients", {0}};
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;

    fixture_start(&fixture, 2, PATIENT);
    fixture_create_key(&fixture, 0, "{\"name\":\"k\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
    subject.credential.bearer = key.secret;
    http_client_connect(&client, fixture.nodes[0].port);
    http_client_send(&client, HEAD, strlen(HEAD));
    http_client_send(&client, fixture.manager.secret, strlen(fixture.manager.secret));
    http_client_send(&client, "\r\n\r\n{", 5);
    cr_expect_eq(ask(fixture.nodes[0].internal_port, AUTH_REQUEST, &subject, &answer), 200);
    process_signal(&fixture.nodes[0].process, SIGTERM);
    while (http_call(fixture.nodes[0].internal_port, &(struct http_call){.target = "/readyz"}, &answer) != 503)
        poll(NULL, 0, 5);
    cr_expect_eq(ask(fixture.nodes[0].internal_port, AUTH_REQUEST, &subject, &answer), 200);
    expect_field(&answer, "Connection", "close", "draining");
    fixture_revoke_key(&fixture, &key);
    cr_expect_eq(ask(fixture.nodes[0].internal_port, AUTH_REQUEST, &subject, &answer), 401, "its lease is a lease");
    http_client_close(&client);
    node_expect_clean_end(&fixture.nodes[0]);
    fixture.nodes[0] = fixture.nodes[1];
    fixture.node_count = 1;
    fixture_stop(&fixture);
}

/* Who a client is, behind proxies. */

static void create_from(const struct fixture *fixture, size_t node, const char *fields)
{
    struct http_answer answer;
    const struct http_call call = {.method = "POST",
                                   .target = "/v1/api_keys",
                                   .bearer = fixture->manager.secret,
                                   .json = "{\"name\":\"n\",\"mode\":\"live\"}",
                                   .fields = fields};

    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 201);
}

static void expect_last_event_from(const struct fixture *fixture, const struct fixture_session *session,
                                   const char *address)
{
    struct http_answer answer;
    char ip[64] = "";

    fixture_call(fixture, 0,
                 &(struct http_call){.target = "/v1/console/audit_events?limit=1", .cookie = session->token}, &answer);
    http_answer_json(&answer, "data.0.ip", ip, sizeof ip);
    cr_expect_str_eq(ip, address, "%s, not %s", ip, address);
}

Test(checks, only_trusted_proxies_tell_who_the_client_is)
{
    static const char *const TRUSTED[] = {"--trusted-proxies", "127.0.0.0/8, 10.0.0.0/8", NULL};
    static const char *const ELSEWHERE[] = {"--trusted-proxies", "10.0.0.0/8", NULL};
    static const struct {
        size_t node;
        const char *fields, *client;
    } CASES[] = {
        {0, "X-Forwarded-For: 203.0.113.9\r\n", "203.0.113.9"},
        {0, "X-Forwarded-For: 198.51.100.1, 203.0.113.9, 10.0.0.2\r\n", "203.0.113.9"},
        {0, "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: 10.0.0.2\r\n", "203.0.113.9"},
        {0, "X-Forwarded-For: 198.51.100.1\r\nx-forwarded-for: 2001:db8::9\r\n", "2001:db8::9"},
        {0, "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-For: garbage\r\n", "127.0.0.1"},
        {0, "", "127.0.0.1"},
        {1, "X-Forwarded-For: 203.0.113.9\r\n", "127.0.0.1"},
        {1, "X-Forwarded-For: 203.0.113.9, 10.0.0.2\r\n", "127.0.0.1"},
    };
    struct fixture_session session;
    struct fixture fixture;

    fixture_start(&fixture, 1, TRUSTED);
    fixture_add_node(&fixture, ELSEWHERE);
    fixture_add_session(&fixture, NULL, false, &session);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        create_from(&fixture, CASES[i].node, CASES[i].fields);
        expect_last_event_from(&fixture, &session, CASES[i].client);
    }
    fixture_stop(&fixture);
}
