#include "lost_scene.h"
#include "base/clock.h"
#include "deadline.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TARGET_BYTES = 200, BODY_BYTES = 512, FIELDS_BYTES = 160 };

#define NEW_PASSWORD "quite-Another-battery-7"

/* A request, written out. */
struct written {
    struct http_call call;
    char target[TARGET_BYTES], body[BODY_BYTES], fields[FIELDS_BYTES];
};

/* Too large for the stack, and needed one at a time. */
static struct http_answer answer;

static const char *method_name(enum http_method method)
{
    static const char *const NAMES[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE"};

    return NAMES[method];
}

const char *lost_row_name(const struct lost_row *row)
{
    static char name[TARGET_BYTES];

    snprintf(name, sizeof name, "%s %s", method_name(row->method), row->path);
    return name;
}

/* Templates */

struct member {
    const char *name;
    size_t at;
};

#define MEMBER(name, member)                      \
    {                                             \
        name, offsetof(struct lost_scene, member) \
    }

static const struct member MEMBERS[] = {
    MEMBER("key", key.id),
    MEMBER("secret", key.secret),
    MEMBER("device", device.id),
    MEMBER("person", person.id),
    MEMBER("other", other),
    MEMBER("until", until),
    MEMBER("made", made),
    MEMBER("code", code),
    MEMBER("ticket", ticket),
    MEMBER("recovery_code", recovery_code),
    MEMBER("user_code", user_code),
    MEMBER("device_code", device_code),
    MEMBER("self_email", self.email),
    MEMBER("invited_email", invited.email),
};

static bool is_name(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && strncmp(wanted, name, len) == 0;
}

static const char *member_value(const struct lost_scene *scene, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++)
        if (is_name(name, len, MEMBERS[i].name))
            return (const char *)scene + MEMBERS[i].at;
    if (is_name(name, len, "password"))
        return FIXTURE_PASSWORD;
    return is_name(name, len, "new_password") ? NEW_PASSWORD : "";
}

/* <totp> is what the authenticator of self shows, <new_totp> that of whoever gets a new one. */
static void print_value(const struct lost_scene *scene, const char *name, size_t len, char *ret_value, size_t size)
{
    const bool is_new = is_name(name, len, "new_totp");
    char code[8];

    if (is_new || is_name(name, len, "totp")) {
        fixture_totp(is_new ? &scene->renewed : &scene->self, scene->sent > 0, code);
        snprintf(ret_value, size, "%s", code);
        return;
    }
    snprintf(ret_value, size, "%s", member_value(scene, name, len));
    if (!*ret_value)
        test_give_up("%s: there is no %.*s", lost_row_name(scene->row), (int)len, name);
}

static const char *write_text(const struct lost_scene *scene, const char *template, char *ret_text, size_t size)
{
    char value[LOST_VALUE_BYTES];
    size_t len = 0;

    if (!template)
        return NULL;
    while (*template && len < size) {
        size_t plain = strcspn(template, "<");

        len += (size_t)snprintf(ret_text + len, size - len, "%.*s", (int)plain, template);
        template += plain;
        if (!*template || len >= size)
            break;
        size_t name = strcspn(template + 1, ">");

        print_value(scene, template + 1, name, value, sizeof value);
        len += (size_t)snprintf(ret_text + len, size - len, "%s", value);
        template += name + 2;
    }
    if (len >= size)
        test_give_up("%s: a template is too long", lost_row_name(scene->row));
    return ret_text;
}

static void put_session(struct http_call *call, const struct fixture_session *session)
{
    call->cookie = session->token;
    call->csrf = session->csrf;
}

static void put_credential(const struct lost_scene *scene, enum lost_who who, struct http_call *call)
{
    switch (who) {
    case BY_ANYONE:
        break;
    case BY_KEY:
        call->bearer = scene->manager.secret;
        break;
    case BY_OLD_KEY:
        call->bearer = scene->key.secret;
        break;
    case BY_MADE_KEY:
        call->bearer = scene->secret;
        break;
    case BY_OWNER:
        put_session(call, &scene->owner_session);
        break;
    case BY_PERSON:
        put_session(call, &scene->person_session);
        break;
    case BY_SELF:
        put_session(call, &scene->self_session);
        break;
    }
}

/* Each account has a network of its own, so that none is throttled for others. */
static void write_ask(const struct lost_scene *scene, const struct lost_ask *ask, struct written *written)
{
    const unsigned number = (unsigned)strtoul(scene->domain + 1, NULL, 10);
    int len = snprintf(written->fields, sizeof written->fields, "X-Forwarded-For: 10.%u.%u.1\r\n", number / 256,
                       number % 256);

    if (ask->who == BY_ANYONE && scene->renewed.join_cookie[0])
        snprintf(written->fields + len, sizeof written->fields - (size_t)len, "Cookie: __Host-join=%s\r\n",
                 scene->renewed.join_cookie);
    written->call = (struct http_call){.method = ask->method, .fields = written->fields};
    written->call.target = write_text(scene, ask->target, written->target, sizeof written->target);
    written->call.json = write_text(scene, ask->json, written->body, sizeof written->body);
    written->call.form = write_text(scene, ask->form, written->body, sizeof written->body);
    put_credential(scene, ask->who, &written->call);
}

/* Answers */

static void learn_members(struct lost_scene *scene)
{
    const struct {
        const char *path;
        char *value;
        size_t size;
    } WHAT[] = {
        {"id", scene->made, sizeof scene->made},
        {"secret", scene->secret, sizeof scene->secret},
        {"access_token", scene->secret, sizeof scene->secret},
        {"ticket", scene->ticket, sizeof scene->ticket},
        {"recovery_codes.0", scene->recovery_code, sizeof scene->recovery_code},
        {"user_code", scene->user_code, sizeof scene->user_code},
        {"device_code", scene->device_code, sizeof scene->device_code},
        {"totp_uri", scene->renewed.totp_uri, sizeof scene->renewed.totp_uri},
        {"csrf_token", scene->self_session.csrf, sizeof scene->self_session.csrf},
    };
    char value[LOST_VALUE_BYTES];

    for (size_t i = 0; i < sizeof WHAT / sizeof *WHAT; i++)
        if (http_answer_json(&answer, WHAT[i].path, value, sizeof value))
            snprintf(WHAT[i].value, WHAT[i].size, "%s", value);
}

static void learn(struct lost_scene *scene)
{
    char url[256];

    if (answer.status >= 300 || answer.body[0] != '{')
        return;
    learn_members(scene);
    if (http_answer_json(&answer, "url", url, sizeof url) && strchr(url, '#'))
        snprintf(scene->code, sizeof scene->code, "%.43s", strchr(url, '#') + 1);
    fixture_read_cookie_of(&answer, "__Host-join", scene->renewed.join_cookie);
    fixture_read_cookie(&answer, scene->self_session.token);
}

static void ask(struct lost_scene *scene, const struct fixture *fixture, size_t node, const struct lost_ask *ask,
                const char *when)
{
    struct written written;

    write_ask(scene, ask, &written);
    fixture_call(fixture, node, &written.call, &answer);
    cr_expect_eq(answer.status, ask->status, "%s, %s, %s %s: %d %s", lost_row_name(scene->row), when, ask->method,
                 written.target, answer.status, answer.status >= 400 ? answer.body : "");
    learn(scene);
}

/* Before */

/* As if the last code had been used long ago. */
static void forget_step(const struct lost_scene *scene, const struct fixture *fixture, const struct fixture_user *user)
{
    char name[96];

    if (!user->id[0])
        return;
    snprintf(name, sizeof name, "%suser:%s", fixture_name(scene->account, ""), user->id);
    redis_server_tell(&fixture->redis, "HDEL", name, "totp_step", NULL);
}

static void print_email(const struct lost_scene *scene, const char *local, char *ret_email, size_t size)
{
    snprintf(ret_email, size, "%s@%s", local, scene->domain);
}

static void make_person(struct lost_scene *scene, struct fixture *fixture, size_t node)
{
    static const struct lost_ask MAKE_KEY = {BY_PERSON,
                                             "POST",
                                             "/v1/console/api_keys",
                                             "{\"name\":\"theirs\",\"mode\":\"test\",\"scopes\":[\"usage:read\"]}",
                                             NULL,
                                             201};
    char email[64];

    print_email(scene, "person", email, sizeof email);
    fixture_add_person(fixture, scene->account, email, ROLE_DEVELOPER, &scene->person);
    fixture_add_session(fixture, &scene->person, true, &scene->person_session);
    ask(scene, fixture, node, &MAKE_KEY, "before");
}

static void make_self(struct lost_scene *scene, struct fixture *fixture, size_t node)
{
    char email[64];

    print_email(scene, "self", email, sizeof email);
    fixture_add_member(fixture, scene->account, email, ROLE_DEVELOPER, &scene->self);
    fixture_add_session(fixture, &scene->self, true, &scene->self_session);
    fixture_add_session(fixture, &scene->self, false, &scene->other_session);
    fixture_call(fixture, node,
                 &(struct http_call){.target = "/v1/console/sessions", .cookie = scene->other_session.token}, &answer);
    for (int i = 0; i < http_answer_json_count(&answer, "data"); i++) {
        char path[32], value[16];

        snprintf(path, sizeof path, "data.%d.current", i);
        if (!http_answer_json(&answer, path, value, sizeof value) || strcmp(value, "true") != 0)
            continue;
        snprintf(path, sizeof path, "data.%d.id", i);
        cr_assert(http_answer_json(&answer, path, scene->other, sizeof scene->other), "%s", answer.body);
    }
}

static void make_account(struct lost_scene *scene, struct fixture *fixture)
{
    static unsigned scenes;
    char email[64];

    snprintf(scene->domain, sizeof scene->domain, "s%u.test", ++scenes);
    fixture_add_account(fixture, scene->account);
    print_email(scene, "owner", email, sizeof email);
    print_email(scene, "invited", scene->invited.email, sizeof scene->invited.email);
    fixture_add_person(fixture, scene->account, email, ROLE_OWNER, &scene->owner);
    fixture_add_session(fixture, &scene->owner, true, &scene->owner_session);
    fixture_add_key(fixture, scene->account, KEY_API, MODE_LIVE, SCOPE_ALL, &scene->manager);
}

/* A node that has never seen a key need not acknowledge its revocation. */
static void use_everywhere(const struct lost_scene *scene, const struct fixture *fixture)
{
    const char *const secrets[] = {scene->key.secret, scene->device.secret, scene->secret};

    for (size_t node = 0; node < fixture->node_count; node++)
        for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
            if (*secrets[i])
                fixture_try_key(fixture, node, secrets[i]);
}

struct lost_scene *lost_scene_start(struct fixture *fixture, size_t node, const struct lost_row *row)
{
    struct lost_scene *scene = calloc(1, sizeof *scene);
    enum { END_AHEAD_MS = 24 * 60 * 60 * 1000 };

    cr_assert(scene);
    scene->row = row;
    scene->client.fd = -1;
    clock_print_rfc3339(clock_wall_ms() + END_AHEAD_MS, scene->until);
    make_account(scene, fixture);
    if (row->needs & NEEDS_KEY)
        fixture_add_key(fixture, scene->account, KEY_API, MODE_LIVE, SCOPE_KEYS_MANAGE, &scene->key);
    if (row->needs & NEEDS_DEVICE)
        fixture_add_key(fixture, scene->account, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &scene->device);
    if (row->needs & NEEDS_PERSON)
        make_person(scene, fixture, node);
    if (row->needs & NEEDS_SELF)
        make_self(scene, fixture, node);
    for (size_t i = 0; i < LOST_FIRST_MAX && row->first[i]; i++)
        ask(scene, fixture, node, row->first[i], "before");
    use_everywhere(scene, fixture);
    forget_step(scene, fixture, &scene->self);
    return scene;
}

/* The request */

static void write_row(const struct lost_scene *scene, struct written *written)
{
    const struct lost_row *row = scene->row;
    const char *brace = strstr(row->path, "{id}");
    char target[TARGET_BYTES];

    snprintf(target, sizeof target, "%.*s%s%s%s", (int)(brace ? (size_t)(brace - row->path) : strlen(row->path)),
             row->path, brace ? row->id : "", brace ? brace + 4 : "", row->query ? row->query : "");
    write_ask(scene,
              &(struct lost_ask){.who = row->who,
                                 .method = method_name(row->method),
                                 .target = target,
                                 .json = row->json,
                                 .form = row->form},
              written);
}

void lost_scene_send(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    struct written written;

    write_row(scene, &written);
    http_client_connect(&scene->client, fixture->nodes[node].port);
    http_client_send_call(&scene->client, &written.call);
    scene->sent++;
}

void lost_scene_expect(const struct lost_scene *scene, const struct http_answer *given)
{
    const struct lost_row *row = scene->row;
    const char *code = given->status >= 400 ? http_answer_code(given) : "";
    char error[64];

    if (given->status >= 400 && !*code && http_answer_json(given, "error", error, sizeof error))
        code = error;
    cr_expect(given->status == row->status || (scene->sent > 1 && given->status == row->again &&
                                               (!row->again_code || strcmp(code, row->again_code) == 0)),
              "%s: request %u is answered %d %s", lost_row_name(row), scene->sent, given->status,
              given->status >= 400 ? given->body : "");
}

void lost_scene_repeat(struct lost_scene *scene, const struct fixture *fixture, size_t node)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct written written;
    bool is_refused;

    do {
        write_row(scene, &written);
        fixture_call(fixture, node, &written.call, &answer);
        scene->sent++;
        is_refused = answer.status == 503 || answer.status == 429;
        if (is_refused)
            poll(NULL, 0, 20);
    } while (is_refused && deadline_left_ms(deadline) > 0);
    lost_scene_expect(scene, &answer);
    learn(scene);
}

/* Afterwards */

void lost_scene_finish(struct lost_scene *scene, struct fixture *fixture, size_t node)
{
    if (!scene->row->then)
        return;
    scene->sent = 0;
    forget_step(scene, fixture, &scene->self);
    forget_step(scene, fixture, &scene->invited);
    ask(scene, fixture, node, scene->row->then, "afterwards");
}
