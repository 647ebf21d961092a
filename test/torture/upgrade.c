#include "upgrade.h"

#include "base/json.h"
#include "gateway.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_BY_SIDE_MS = 4000, LIVE_KEYS = 8, CHAIN_MAX = 2 + 2 * CLUSTER_NODES, EXIT_UNFIT_CODE = 3 };

#define READ_TARGET "/v1/patients/1"
#define DEVICE_TARGET "/v1/documents"

struct enrolment {
    char device_code[64], user_code[16];
};

struct upgrade {
    struct upgrade_plan plan;
    struct gateway *gateway;
    struct fixture_user owner, visitor, leaver;
    struct fixture_session session; /* the owner's, begun at an old node and stepped up there */
    bool is_new[CLUSTER_NODES];
    unsigned made;                       /* keys and devices across versions */
    struct fixture_key chain[CHAIN_MAX]; /* keys that made one another, the first one in the console by the leaver */
    unsigned chain_count;
    struct http_answer answer;
};

void upgrade_begin_with_old(struct cluster *cluster, const char *old_program)
{
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        cluster->programs[node] = old_program;
    cluster->command_programs[0] = old_program;
}

/* One request that must be answered so: nodes that serve have no excuse. */
static void expect(struct upgrade *upgrade, unsigned node, const struct http_call *call, int status, const char *what)
{
    char which[HTTP_ANSWER_HEAD_BYTES];

    if (cluster_call(upgrade->plan.cluster, node, call, &upgrade->answer) == status)
        return;
    snprintf(which, sizeof which, "node %u (%s): %s: %d instead of %d: %.500s", node,
             upgrade->is_new[node] ? upgrade->plan.new_name : upgrade->plan.old_name, call->target,
             upgrade->answer.status, status, upgrade->answer.body);
    history_violation(upgrade->plan.history, what, which);
}

static void read_answer(struct upgrade *upgrade, const char *path, char *ret_value, size_t size)
{
    if (!http_answer_json(&upgrade->answer, path, ret_value, size))
        test_give_up("the answer lacks %s: %s", path, upgrade->answer.body);
}

/* The store that the old version leaves */

/* What commands run from now on; nobody else reads the environment meanwhile. */
static void set_program(const char *program)
{
    if (setenv("CHATELAINE_BINARY", program, 1) != 0)
        abort();
}

static void make_account(struct fixture *fixture)
{
    const char *args[] = {"account", "create", "--name", "South Clinic", "--json", NULL};
    char *out, *err;

    if (fixture_run(fixture, args, NULL, &out, &err) != 0)
        test_give_up("account create: %s", err);
    struct json *answer = json_parse_object(text_of(out), NULL);
    const struct json *id = answer ? json_member(answer, "id") : NULL;
    if (!id || json_type(id) != JSON_STRING)
        test_give_up("account create printed: %s", out);
    snprintf(fixture->account, sizeof fixture->account, "%.*s", TEXT_ARG(json_text(id)));
    json_free(answer);
    free(out);
    free(err);
}

/* The previous code signs in, the present one steps up. */
static void sign_in(struct upgrade *upgrade, const struct fixture_user *user, struct fixture_session *ret_session)
{
    struct cluster *cluster = upgrade->plan.cluster;
    char code[8], body[256];

    fixture_totp(user, -1, code);
    if (fixture_login(&cluster->fixture, 0, user, FIXTURE_PASSWORD, code, ret_session, &upgrade->answer) != 200)
        test_give_up("%s cannot sign in: %s", user->email, upgrade->answer.body);
    fixture_totp(user, 0, code);
    snprintf(body, sizeof body, "{\"password\":\"%s\",\"totp\":\"%s\"}", FIXTURE_PASSWORD, code);
    expect(upgrade, 1,
           &(struct http_call){.method = "POST",
                               .target = "/v1/console/step_up",
                               .cookie = ret_session->token,
                               .csrf = ret_session->csrf,
                               .json = body},
           200, "a step-up");
    if (!fixture_read_cookie(&upgrade->answer, ret_session->token))
        test_give_up("a step-up without a cookie: %s", upgrade->answer.body);
}

static void create_in_console(struct upgrade *upgrade, const struct fixture_session *session, unsigned node,
                              struct fixture_key *ret_key)
{
    expect(upgrade, node,
           &(struct http_call){.method = "POST",
                               .target = "/v1/console/api_keys",
                               .cookie = session->token,
                               .csrf = session->csrf,
                               .json = "{\"name\":\"in the console\",\"mode\":\"live\"}"},
           201, "a key is created in the console");
    read_answer(upgrade, "id", ret_key->id, sizeof ret_key->id);
    read_answer(upgrade, "secret", ret_key->secret, sizeof ret_key->secret);
}

/* The last key makes another one, as the version at that node records it: an earlier one does not say whom it goes back
 * to. */
static void lengthen_chain(struct upgrade *upgrade, unsigned node)
{
    struct fixture_key *last = &upgrade->chain[upgrade->chain_count - 1],
                       *key = &upgrade->chain[upgrade->chain_count++];

    expect(upgrade, node,
           &(struct http_call){.method = "POST",
                               .target = "/v1/api_keys",
                               .bearer = last->secret,
                               .json = "{\"name\":\"link\",\"mode\":\"live\",\"scopes\":[\"keys:manage\"]}"},
           201, "a key makes another");
    read_answer(upgrade, "id", key->id, sizeof key->id);
    read_answer(upgrade, "secret", key->secret, sizeof key->secret);
}

static void begin_chain(struct upgrade *upgrade)
{
    struct fixture_session session;

    sign_in(upgrade, &upgrade->leaver, &session);
    create_in_console(upgrade, &session, 0, &upgrade->chain[upgrade->chain_count++]);
    lengthen_chain(upgrade, 1);
}

struct upgrade *upgrade_prepare(const struct upgrade_plan *plan, struct fixture_user *ret_users, unsigned user_count)
{
    struct upgrade *upgrade = calloc(1, sizeof *upgrade);
    struct fixture *fixture = &plan->cluster->fixture;
    char *new_program = strdup(node_binary()), email[32];

    if (!upgrade || !new_program)
        abort();
    upgrade->plan = *plan;
    fixture->wrote_names = true; /* an earlier version has: its table of names was another one */
    set_program(plan->old_program);
    make_account(fixture);
    fixture_add_user(fixture, "owner@upgrade.test", &upgrade->owner);
    fixture_add_user(fixture, "visitor@upgrade.test", &upgrade->visitor);
    fixture_add_user(fixture, "leaver@upgrade.test", &upgrade->leaver);
    for (unsigned i = 0; i < user_count; i++) {
        snprintf(email, sizeof email, "user%u@upgrade.test", i);
        fixture_add_user(fixture, email, &ret_users[i]);
    }
    fixture_add_user(fixture, "auditor@upgrade.test", &fixture->user); /* for sessions that the fixture makes itself */
    set_program(new_program);
    free(new_program);
    sign_in(upgrade, &upgrade->owner, &upgrade->session);
    create_in_console(upgrade, &upgrade->session, 2, &fixture->manager);
    begin_chain(upgrade);
    return upgrade;
}

/* Across versions */

static void begin_enrolment(struct upgrade *upgrade, unsigned node, struct enrolment *ret_enrolment)
{
    expect(upgrade, node,
           &(struct http_call){.method = "POST",
                               .target = "/v1/auth/device_authorization",
                               .form = "client_id=desktop-agent&device_name=Ward+PC"},
           200, "a device asks to be enrolled");
    read_answer(upgrade, "device_code", ret_enrolment->device_code, sizeof ret_enrolment->device_code);
    read_answer(upgrade, "user_code", ret_enrolment->user_code, sizeof ret_enrolment->user_code);
}

static void finish_enrolment(struct upgrade *upgrade, unsigned node, const struct enrolment *enrolment)
{
    char target[96], form[256], secret[FIXTURE_TOKEN_BYTES];

    snprintf(target, sizeof target, "/v1/console/device_enrolments/%s/approve", enrolment->user_code);
    snprintf(form, sizeof form,
             "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=%s&client_id=desktop-agent",
             enrolment->device_code);
    expect(upgrade, node,
           &(struct http_call){
               .method = "POST", .target = target, .cookie = upgrade->session.token, .csrf = upgrade->session.csrf},
           200, "an enrolment is approved");
    node = (node + 1) % CLUSTER_NODES;
    expect(upgrade, node, &(struct http_call){.method = "POST", .target = "/v1/auth/token", .form = form}, 200,
           "a device takes its key");
    read_answer(upgrade, "access_token", secret, sizeof secret);
    gateway_add_key(upgrade->gateway, secret, "POST", DEVICE_TARGET);
    upgrade->made++;
}

/* Made at one node, used at all, revoked at another: then no node accepts it. */
static void try_console(struct upgrade *upgrade, unsigned node)
{
    struct fixture_key key;
    char target[96];
    struct http_call check = {.target = "/v1/whoami", .bearer = key.secret};

    create_in_console(upgrade, &upgrade->session, node, &key);
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        expect(upgrade, i, &check, 200, "a key of the console is used");
    snprintf(target, sizeof target, "/v1/console/api_keys/%s", key.id);
    expect(upgrade, (node + 1) % CLUSTER_NODES,
           &(struct http_call){
               .method = "DELETE", .target = target, .cookie = upgrade->session.token, .csrf = upgrade->session.csrf},
           200, "a key is revoked in the console");
    for (unsigned i = 0; i < CLUSTER_NODES; i++)
        expect(upgrade, i, &check, 401, "a key of the console, revoked");
    upgrade->made++;
}

static void sign_in_visitor(struct upgrade *upgrade, unsigned node)
{
    struct fixture_session session;

    if (cluster_login(upgrade->plan.cluster, node, &upgrade->visitor, &session, &upgrade->answer) == 200)
        gateway_add_session(upgrade->gateway, session.token);
    else
        history_violation(upgrade->plan.history, "a sign-in at a new node", upgrade->answer.body);
}

/* There and back */

static void print_nodes(const struct upgrade *upgrade, const struct gateway_counts *before)
{
    struct gateway_counts now = gateway_counts(upgrade->gateway);

    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        printf("%s%s", node > 0 ? " + " : "", upgrade->is_new[node] ? upgrade->plan.new_name : upgrade->plan.old_name);
    printf(": %zu checks and %zu pages through the gateway, %zu repeated, %zu failed\n", now.checks - before->checks,
           now.pages - before->pages, now.retried - before->retried, now.failed - before->failed);
}

static void restart(struct upgrade *upgrade, unsigned node, bool by_new)
{
    struct cluster *cluster = upgrade->plan.cluster;

    pthread_mutex_lock(&cluster->node_locks[node]);
    cluster_node_drain(cluster, node);
    cluster->programs[node] = by_new ? NULL : upgrade->plan.old_program;
    cluster_node_start(cluster, node);
    pthread_mutex_unlock(&cluster->node_locks[node]);
    upgrade->is_new[node] = by_new;
}

static void replace(struct upgrade *upgrade, unsigned node, bool by_new)
{
    struct gateway_counts before = gateway_counts(upgrade->gateway);
    struct enrolment enrolment;
    size_t fault = history_fault_begin(upgrade->plan.history, "node %u becomes %s", node,
                                       by_new ? upgrade->plan.new_name : upgrade->plan.old_name);

    begin_enrolment(upgrade, node, &enrolment);
    restart(upgrade, node, by_new);
    history_fault_end(upgrade->plan.history, fault);

    finish_enrolment(upgrade, (node + 1) % CLUSTER_NODES, &enrolment);
    try_console(upgrade, node);
    lengthen_chain(upgrade, node);
    poll(NULL, 0, SIDE_BY_SIDE_MS);
    gateway_await_round(upgrade->gateway);
    print_nodes(upgrade, &before);
}

/* Node 0 is new and finds whom each goes back to, whatever version made it; then all of them go with the person. */
static void remove_leaver(struct upgrade *upgrade)
{
    const struct fixture_session *session = &upgrade->session;
    char target[128], origin[ID_TEXT_BYTES];

    for (unsigned i = 0; i < upgrade->chain_count; i++) {
        snprintf(target, sizeof target, "/v1/console/api_keys/%s", upgrade->chain[i].id);
        expect(upgrade, 0, &(struct http_call){.target = target, .cookie = session->token}, 200, "a key is shown");
        read_answer(upgrade, i > 0 ? "origin" : "created_by", origin, sizeof origin);
        if (strcmp(origin, upgrade->leaver.id) != 0)
            history_violation(upgrade->plan.history, "a key goes back to somebody else", upgrade->answer.body);
    }
    snprintf(target, sizeof target, "/v1/console/users/%s?revoke_keys=all", upgrade->leaver.id);
    expect(upgrade, 0,
           &(struct http_call){.method = "DELETE", .target = target, .cookie = session->token, .csrf = session->csrf},
           200, "a person is removed");
    int revoked = http_answer_json_count(&upgrade->answer, "keys_revoked");
    if (revoked != (int)upgrade->chain_count || http_answer_json_count(&upgrade->answer, "keys_kept") != 0)
        history_violation(upgrade->plan.history, "not all keys go with their person", upgrade->answer.body);
    for (unsigned i = 0; i < upgrade->chain_count * CLUSTER_NODES; i++)
        expect(upgrade, i % CLUSTER_NODES,
               &(struct http_call){.target = "/v1/whoami", .bearer = upgrade->chain[i / CLUSTER_NODES].secret}, 401,
               "a key of a person who was removed");
    printf("%d keys of both versions, each made by the one before, went with their person\n", revoked);
}

static void add_live_keys(struct upgrade *upgrade)
{
    struct fixture_key key;

    for (unsigned i = 0; i < LIVE_KEYS; i++) {
        fixture_create_key(&upgrade->plan.cluster->fixture, i % CLUSTER_NODES,
                           "{\"name\":\"steady\",\"mode\":\"live\",\"scopes\":[\"patients:read\"]}", &key);
        gateway_add_key(upgrade->gateway, key.secret, "GET", READ_TARGET);
    }
}

void upgrade_run(struct upgrade *upgrade)
{
    upgrade->gateway = gateway_start(upgrade->plan.cluster);
    gateway_add_session(upgrade->gateway, upgrade->session.token);
    add_live_keys(upgrade);
    gateway_await_round(upgrade->gateway);
    print_nodes(upgrade, &(struct gateway_counts){0});
    for (unsigned node = 0; node < CLUSTER_NODES; node++)
        replace(upgrade, node, true);
    sign_in_visitor(upgrade, 0);
    for (unsigned node = CLUSTER_NODES; node-- > 0;)
        replace(upgrade, node, false);

    struct gateway_counts counts = gateway_counts(upgrade->gateway);
    gateway_stop(upgrade->gateway);
    printf("through the gateway: %zu checks and %zu pages, %zu repeated, %zu failed; %u keys and devices made across "
           "versions\n",
           counts.checks, counts.pages, counts.retried, counts.failed, upgrade->made);
    if (counts.failed > 0)
        history_violation(upgrade->plan.history, "a request failed in spite of a retry", "see above");
    /* The checks that follow ask node 0. An older version cannot list every audit event (CHANGELOG.md). */
    restart(upgrade, 0, true);
    remove_leaver(upgrade);
}

/* A newer schema */

static void expect_refusal(struct upgrade *upgrade, const char *program, const char *name)
{
    const char *args[] = {"serve",       "--public-origin",   NODE_ORIGIN,   "--listen",
                          "127.0.0.1:0", "--internal-listen", "127.0.0.1:0", NULL};
    char *err;

    set_program(program);
    int code = fixture_run(&upgrade->plan.cluster->fixture, args, NULL, NULL, &err);
    if (code != EXIT_UNFIT_CODE || !strstr(err, "written by a newer chatelaine"))
        history_violation(upgrade->plan.history, "a store with a newer schema is not refused", err);
    else
        printf("%s refuses a store with a newer schema: exit status %d\n", name, code);
    free(err);
}

void upgrade_check_newer_schema(struct upgrade *upgrade)
{
    const struct redis_server *redis = &upgrade->plan.cluster->fixture.redis;
    char *new_program = strdup(node_binary()), version[16];

    if (!new_program)
        abort();
    redis_server_ask(redis, version, sizeof version, "GET", "chatelaine:schema", NULL);
    redis_server_tell(redis, "SET", "chatelaine:schema", "999", NULL);
    expect_refusal(upgrade, upgrade->plan.old_program, upgrade->plan.old_name);
    expect_refusal(upgrade, new_program, upgrade->plan.new_name);
    redis_server_tell(redis, "SET", "chatelaine:schema", version, NULL);
    free(new_program);
}

void upgrade_destroy(struct upgrade *upgrade)
{
    free(upgrade);
}
