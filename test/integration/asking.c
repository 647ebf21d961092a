#include "asking.h"
#include "cli.h"
#include "leases.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static void add(char json[ASKING_BYTES], const char *name, const char *value, bool is_text)
{
    size_t used = strlen(json);
    const char *quote = is_text ? "\"" : "";

    if (value)
        snprintf(json + used, ASKING_BYTES - used, "%s\"%s\":%s%s%s", used > 1 ? "," : "", name, quote, value, quote);
}

void asking_print(const struct asking *asking, char ret_json[ASKING_BYTES])
{
    snprintf(ret_json, ASKING_BYTES, "{");
    add(ret_json, "key", asking->key, true);
    add(ret_json, "method", asking->method, true);
    add(ret_json, "path", asking->path, true);
    add(ret_json, "scopes", asking->scopes, false);
    add(ret_json, "network", asking->network, true);
    snprintf(ret_json + strlen(ret_json), ASKING_BYTES - strlen(ret_json), "}");
}

int asking_post(const struct fixture *fixture, size_t node, const char *target, const char *json,
                struct http_answer *ret_answer)
{
    return http_call(fixture->nodes[node].internal_port,
                     &(struct http_call){.method = "POST", .target = target, .json = json}, ret_answer);
}

int asking_verify(const struct fixture *fixture, size_t node, const struct asking *asking,
                  struct http_answer *ret_answer)
{
    char json[ASKING_BYTES];

    asking_print(asking, json);
    return asking_post(fixture, node, "/check/verify", json, ret_answer);
}

const char *asking_member(const struct http_answer *answer, const char *at, const char *name)
{
    static char values[8][512];
    static size_t next;
    char *value = values[next++ % 8], path[64];

    snprintf(path, sizeof path, "%s%s", at, name);
    if (!http_answer_json(answer, path, value, sizeof values[0]))
        snprintf(value, sizeof values[0], "(none)");
    return value;
}

static const char *field_of(const struct http_answer *checked, const char *name)
{
    static char values[8][512];
    static size_t next;
    char *value = values[next++ % 8];

    if (!http_answer_field(checked, name, value, sizeof values[0]))
        snprintf(value, sizeof values[0], "(none)");
    return value;
}

static void expect_accepted(const struct http_answer *checked, const struct http_answer *answer, const char *at,
                            const char *what)
{
    static const char *const PAIRS[][2] = {
        {"X-Auth-Account", "account_id"}, {"X-Auth-Principal", "id"},  {"X-Auth-Kind", "kind"},
        {"X-Auth-Mode", "mode"},          {"X-Auth-Scopes", "scopes"}, {"X-Auth-Billable", "billable"},
    };

    cr_expect_str_eq(asking_member(answer, at, "valid"), "true", "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "code"), "ok", "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "status"), "(none)", "%s", what);
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++)
        cr_expect_str_eq(asking_member(answer, at, PAIRS[i][1]), field_of(checked, PAIRS[i][0]), "%s", what);
}

static void expect_refused(const struct http_answer *checked, const struct http_answer *answer, const char *at,
                           const char *what)
{
    char status[16];

    snprintf(status, sizeof status, "%d", checked->status);
    cr_expect_str_eq(asking_member(answer, at, "valid"), "false", "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "status"), status, "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "code"), asking_member(checked, "error.", "code"), "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "message"), asking_member(checked, "error.", "message"), "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "required_scopes"), asking_member(checked, "error.", "required_scopes"),
                     "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "www_authenticate"), field_of(checked, "WWW-Authenticate"), "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "id"), "(none)", "%s", what);
    cr_expect_str_eq(asking_member(answer, at, "account_id"), "(none)", "%s", what);
}

void asking_expect_verdict_of_check(const struct fixture *fixture, const struct asking *asking,
                                    const struct http_answer *answer, const char *at)
{
    char fields[600], what[700];
    struct http_answer checked;

    snprintf(fields, sizeof fields, "X-Original-Method: %s\r\nX-Original-URI: %s\r\n",
             asking->method ? asking->method : "GET", asking->path);
    http_call(fixture->nodes[0].internal_port,
              &(struct http_call){.target = "/check/auth-request", .bearer = asking->key, .fields = fields}, &checked);
    snprintf(what, sizeof what, "%.12s %s %s: %d %.200s, not %.200s", asking->key, asking->method, asking->path,
             checked.status, checked.body, answer->body);
    if (checked.status == 200)
        expect_accepted(&checked, answer, at, what);
    else
        expect_refused(&checked, answer, at, what);
}

static void make_keys(struct fixture *fixture, struct askings *made)
{
    char account[ID_TEXT_BYTES];
    struct cli_run run;

    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &made->read);
    fixture_add_key(fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &made->test);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->device);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &made->revoked);
    fixture_revoke_key(fixture, &made->revoked);
    fixture_add_key(fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &made->revoked_device);
    fixture_revoke_key(fixture, &made->revoked_device);
    fixture_add_account(fixture, account);
    fixture_add_key(fixture, account, KEY_API, MODE_LIVE, SCOPE_ALL, &made->suspended);
    RUN(fixture, &run, "account", "suspend", account);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
}

void askings_make(struct fixture *fixture, struct askings *ret_askings)
{
    static const struct asking PATHS[] = {
        {NULL, "GET", "/v1/patients/7?view=full", NULL, NULL},
        {NULL, "POST", "/v1/documents", NULL, NULL},
        {NULL, "GET", "/v1/documents", NULL, NULL}, /* no scope exists */
        {NULL, "GET", "/v1/team", NULL, NULL},      /* of ours, and for live keys */
        {NULL, "DELETE", "/v1/webhooks", NULL, NULL},
        {NULL, "GET", "/v1/console/api_keys", NULL, NULL}, /* of sessions */
    };
    static const struct asking OTHERS[] = {
        {NULL, "GET", "/v1/nothing", NULL, NULL},    {NULL, "GET", "/other", NULL, NULL},
        {NULL, "PUT", "/v1/usage", NULL, NULL},      {NULL, "GET", "/v1/auth/login", NULL, NULL},
        {NULL, "GET", "/v1/x%2f..%2fy", NULL, NULL}, {NULL, "GET", "/v1/patients%", NULL, NULL},
        {NULL, "TRACE", "/v1/patients", NULL, NULL}, {NULL, "BREW", "/v1/patients", NULL, NULL},
    };

    make_keys(fixture, ret_askings);
    const char *const keys[] = {fixture->manager.secret,
                                ret_askings->read.secret,
                                ret_askings->test.secret,
                                ret_askings->device.secret,
                                ret_askings->revoked.secret,
                                ret_askings->revoked_device.secret,
                                ret_askings->suspended.secret,
                                "svc_sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUVwxyzab",
                                "garbage"};

    ret_askings->count = 0;
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
            ret_askings->list[ret_askings->count] = PATHS[i];
            ret_askings->list[ret_askings->count++].key = keys[k];
        }
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        ret_askings->list[ret_askings->count] = OTHERS[i];
        ret_askings->list[ret_askings->count++].key = fixture->manager.secret;
    }
}

enum { CLIENTS = 20, EACH = 50, NODES = 2 };

static void send_all(struct http_client *clients, const struct http_call *call, int times)
{
    for (size_t i = 0; i < CLIENTS; i++)
        for (int n = 0; n < times; n++)
            http_client_send_call(&clients[i], call);
}

static size_t read_one(struct http_client *client, const struct asking_race *race)
{
    struct http_answer answer;

    cr_assert_eq(http_client_read(client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    return race->count_good(&answer);
}

static void start_race(struct fixture *fixture, struct fixture_key *ret_key)
{
    fixture_start(fixture, NODES, NULL);
    fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, ret_key);
    for (size_t node = 0; node < NODES; node++) {
        leases_await(fixture, node);
        fixture_await_key(fixture, node, ret_key->secret, 200);
    }
}

static void revoke(const struct fixture *fixture, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[128];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    fixture_call(fixture, 0,
                 &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture->manager.secret}, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
}

void asking_race(const struct asking_race *race)
{
    static struct http_client clients[CLIENTS];
    struct http_call call = {.method = "POST", .target = race->target};
    struct fixture_key key;
    struct fixture fixture;
    size_t good = 0;

    start_race(&fixture, &key);
    race->prepare(key.secret, fixture.manager.secret, &call);
    for (size_t i = 0; i < CLIENTS; i++)
        http_client_connect(&clients[i], fixture.nodes[i % NODES].internal_port);
    send_all(clients, &call, EACH);
    revoke(&fixture, &key);
    send_all(clients, &call, 1);
    for (size_t i = 0; i < CLIENTS; i++) {
        for (int n = 0; n < EACH; n++)
            good += read_one(&clients[i], race);
        cr_expect_eq(read_one(&clients[i], race), 0);
        http_client_close(&clients[i]);
    }
    cr_expect_gt(good, 0);
    fixture_stop(&fixture);
}

void asking_start_without_store(struct fixture *fixture)
{
    fixture_use_one_redis("it is killed");
    fixture_start(fixture, 1, NULL);
    leases_await(fixture, 0);
    redis_server_kill(&fixture->redis);
    leases_await_end(fixture, 0);
}
