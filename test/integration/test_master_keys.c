/* Master keys and what they bind: a store knows its own, nodes and commands refuse others; keys are rotated while nodes
 * serve; what somebody wrote into Redis is refused. */
#include "fixture.h"
#include "people.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(master_keys, .timeout = TEST_WITHIN_S);

#define OLD_KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define NEW_KEY "aa0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define THIRD_KEY "bb0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static struct fixture fixture;

/* A file in the fixture's folder, which holds keys. */
static const char *key_file(const char *name, const char *keys)
{
    static char paths[8][PROCESS_PATH_BYTES];
    static unsigned count;
    char *path = paths[count++ % 8];

    snprintf(path, PROCESS_PATH_BYTES, "%.150s/%.20s", fixture.folder, name);
    file_write(path, keys);
    return path;
}

/* From now on nodes and commands are started with that. */
static void use_key(const char *path)
{
    snprintf(fixture.master_key_path, sizeof fixture.master_key_path, "%s", path);
}

static int run(const char *const *args, char **ret_out, char **ret_err)
{
    return fixture_run(&fixture, args, NULL, ret_out, ret_err);
}

static void expect_run(const char *const *args, int exit_code, const char *says)
{
    char *out, *err;

    cr_expect_eq(run(args, &out, &err), exit_code, "%s %s: %s%s", args[0], args[1] ? args[1] : "", out, err);
    cr_expect(strstr(out, says) || strstr(err, says), "%s lacks \"%s\": %s%s", args[0], says, out, err);
    free(out);
    free(err);
}

/* In text or in JSON. */
static unsigned count_failures(const char *out)
{
    unsigned count = 0;

    for (const char *at = out; (at = strstr(at, "\nfail ")); at++)
        count++;
    for (const char *at = out; (at = strstr(at, "\"status\":\"fail\"")); at++)
        count++;
    return count;
}

/* doctor finds nothing wrong: in a cluster, nothing but that it has no replicas. */
static void expect_fit(const char *const *doctor, const char *says)
{
    char *out, *err;

    cr_expect_eq(run(doctor, &out, &err), fixture_in_cluster() ? 3 : 0, "%s%s", out, err);
    cr_expect_eq(count_failures(out), fixture_in_cluster() ? 1 : 0, "%s", out);
    cr_expect(!fixture_in_cluster() || strstr(out, "A failover loses changes"), "%s", out);
    cr_expect(strstr(out, says), "doctor lacks \"%s\": %s", says, out);
    free(out);
    free(err);
}

static const char *const SERVE[] = {"serve",       "--listen",        "127.0.0.1:0", "--internal-listen",
                                    "127.0.0.1:0", "--public-origin", NODE_ORIGIN,   NULL};
static const char *const DOCTOR[] = {"doctor", "--public-origin", NODE_ORIGIN, NULL};
static const char *const ROTATE[] = {"master-key", "rotate", NULL};
static const char *const ADOPT[] = {"master-key", "rotate", "--adopt", NULL};

/* A node with another key would answer 401 to every good key, and seal what no other node believes. */
Test(master_keys, another_key_is_refused_by_all)
{
    fixture_start(&fixture, 1, NULL);
    const char *const create[] = {"user",    "create",       "--account",       fixture.account,
                                  "--email", "x@north.test", "--password-file", fixture.password_path,
                                  NULL};
    const char *right = key_file("right.key", OLD_KEY);

    use_key(key_file("wrong.key", NEW_KEY));
    expect_run(SERVE, 3, "not the one that this store was created with");
    expect_run(create, 3, "not the one that this store was created with");
    expect_run(DOCTOR, 3, "master-key");
    use_key(right);
    const char *const serve_with_next[] = {
        "doctor", "--public-origin", NODE_ORIGIN, "--retired-master-key-file", key_file("next.key", NEW_KEY), NULL};
    expect_fit(serve_with_next, fixture_in_cluster() ? "\nNot fit: 1 check failed, with " : "\nFit, with ");
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

/* Rotated twice, and the first key left out: its keys would be 401. */
Test(master_keys, a_key_that_is_still_needed_may_not_be_left_out)
{
    fixture_start(&fixture, 0, NULL);
    const char *const first[] = {"master-key", "rotate", "--retired-master-key-file", key_file("1.key", OLD_KEY), NULL};
    const char *const second[] = {"master-key", "rotate", "--retired-master-key-file", key_file("2.key", NEW_KEY),
                                  NULL};
    const char *const both[] = {
        "master-key", "rotate", "--forget", "--retired-master-key-file", key_file("12.key", NEW_KEY "\n" OLD_KEY "\n"),
        NULL};

    use_key(key_file("new.key", NEW_KEY));
    expect_run(ROTATE, 3, "is missing");
    expect_run(first, 0, "current");
    use_key(key_file("third.key", THIRD_KEY));
    expect_run(second, 3, "is missing");
    expect_run(both, 0, "1 master keys forgotten"); /* NEW_KEY has made nothing; OLD_KEY has made the manager's key */
    expect_run(SERVE, 3, "pass it as --retired-master-key-file");
    fixture_add_node(&fixture, (const char *const[]){"--retired-master-key-file", key_file("1.key", OLD_KEY), NULL});
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    fixture_stop(&fixture);
}

static void restart(size_t i, const char *current, const char *retired)
{
    char name[32];
    static unsigned starts;

    node_stop(&fixture.nodes[i]);
    snprintf(name, sizeof name, "again%u", starts++);
    node_start(&fixture.nodes[i], fixture.folder, name, fixture.redis.url, current,
               (const char *const[]){"--redis-timeout-ms", "10000", "--retired-master-key-file", retired, NULL});
}

struct holders {
    struct fixture_key keys[8];
    size_t key_count;
    struct fixture_session sessions[8];
    size_t session_count;
};

static void make_key(struct holders *holders, size_t node)
{
    fixture_create_key(&fixture, node, "{\"name\":\"k\",\"mode\":\"live\"}", &holders->keys[holders->key_count++]);
}

/* A session that may change something: its CSRF token counts as well. */
static int try_session(size_t node, const struct fixture_session *session)
{
    struct http_answer answer;
    struct http_call call = {.method = "POST",
                             .target = "/v1/console/api_keys",
                             .cookie = session->token,
                             .csrf = session->csrf,
                             .json = "{\"name\":\"s\",\"mode\":\"test\"}"};

    return fixture_call(&fixture, node, &call, &answer);
}

/* Nobody notices: at each node each key is known, and each session. */
static void expect_all_known(const struct holders *holders, const char *when)
{
    for (size_t node = 0; node < 2; node++) {
        for (size_t i = 0; i < holders->key_count; i++)
            cr_expect_eq(fixture_try_key(&fixture, node, holders->keys[i].secret), 200, "%s: key %zu at node %zu", when,
                         i, node);
        for (size_t i = 0; i < holders->session_count; i++)
            cr_expect_eq(try_session(node, &holders->sessions[i]), 201, "%s: session %zu at node %zu", when, i, node);
    }
}

Test(master_keys, are_rotated_while_two_nodes_serve)
{
    struct holders holders = {0};

    fixture_start(&fixture, 2, NULL);
    const char *old_path = key_file("old.key", OLD_KEY), *new_path = key_file("new.key", NEW_KEY);
    const char *const rotate[] = {"master-key", "rotate", "--retired-master-key-file", old_path, NULL};
    const char *const forget[] = {"master-key", "rotate", "--forget", "--retired-master-key-file", old_path, NULL};
    const char *const doctor[] = {"doctor", "--public-origin", NODE_ORIGIN, "--retired-master-key-file", old_path,
                                  NULL};

    make_key(&holders, 0);
    fixture_add_session(&fixture, &fixture.user, true, &holders.sessions[holders.session_count++]);
    /* First every node gets the new key as one that verifies, */
    for (size_t node = 0; node < 2; node++) {
        restart(node, old_path, new_path);
        expect_all_known(&holders, "the new key verifies");
    }
    make_key(&holders, 0);
    /* then the store, */
    use_key(new_path);
    expect_run(rotate, 0, "records resealed");
    expect_all_known(&holders, "the store knows the new key");
    /* then every node as the one that makes. */
    for (size_t node = 0; node < 2; node++) {
        restart(node, new_path, old_path);
        make_key(&holders, node);
        expect_all_known(&holders, "the new key makes");
    }
    expect_run(rotate, 0, "current");
    expect_run(forget, 0, "0 master keys forgotten");
    expect_fit(doctor, "needed by");
    fixture_stop(&fixture);
}

/* Until the line of the retired key says so: a sign-in stores its new hash after it is answered. */
static void await_retired(const char *const *rotate, const char *says)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char *out = NULL;

    do {
        free(out);
        cr_assert_eq(run(rotate, &out, NULL), 0);
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", out);
    } while (!(strstr(out, "retired") && strstr(strstr(out, "retired"), says)));
    free(out);
}

/* Whoever signs in brings his password along: it is peppered by the current key from then on. */
Test(master_keys, a_password_moves_to_the_new_key_when_its_user_signs_in)
{
    struct fixture_user user;
    struct http_answer answer;

    fixture_start(&fixture, 0, NULL);
    fixture_add_user(&fixture, "ada@north.test", &user);
    const char *old_path = key_file("old.key", OLD_KEY);
    const char *const rotate[] = {"master-key", "rotate", "--retired-master-key-file", old_path, NULL};
    use_key(key_file("new.key", NEW_KEY));
    expect_run(rotate, 0, "1 passwords");
    fixture_add_node(&fixture, (const char *const[]){"--retired-master-key-file", old_path, NULL});
    cr_assert_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, NULL, NULL, &answer), 200);
    await_retired(rotate, "0 passwords");
    char code[8];
    fixture_totp(&user, 1, code);
    cr_expect_eq(fixture_login(&fixture, 0, &user, FIXTURE_PASSWORD, code, NULL, &answer), 200);
    fixture_stop(&fixture);
}

/* People: roles, links, recovery codes, an authenticator that waits, a suspended account. Everything is made with the
 * old key. */

struct belongings {
    struct people people;
    struct fixture_user ada, auditor;
    struct fixture_session adas, auditors;
    char invitation[FIXTURE_TOKEN_BYTES], ticket[FIXTURE_TOKEN_BYTES], recovery_codes[2][32], account[32];
    struct fixture_key suspended;
};

static void make_codes(struct belongings *b)
{
    struct http_answer answer;

    cr_assert_eq(people_ask(&b->people, 0, &b->adas, "POST", "/v1/console/recovery_codes", NULL, &answer), 201, "%s",
                 answer.body);
    cr_assert(http_answer_json(&answer, "recovery_codes.0", b->recovery_codes[0], sizeof b->recovery_codes[0]) &&
              http_answer_json(&answer, "recovery_codes.1", b->recovery_codes[1], sizeof b->recovery_codes[1]));
}

static int recover(struct belongings *b, const char *recovery_code)
{
    struct http_call call = {.method = "POST", .target = "/v1/auth/recover"};
    struct http_answer answer;
    char json[512];

    snprintf(json, sizeof json, "{\"email\":\"%s\",\"password\":\"" FIXTURE_PASSWORD "\",\"recovery_code\":\"%s\"}",
             b->ada.email, recovery_code);
    call.json = json;
    if (fixture_call(&fixture, 0, &call, &answer) == 200)
        cr_assert(http_answer_json(&answer, "ticket", b->ticket, sizeof b->ticket) &&
                  http_answer_json(&answer, "totp_uri", b->ada.totp_uri, sizeof b->ada.totp_uri));
    return answer.status;
}

static int confirm_recovery(const struct belongings *b, char totp[8])
{
    struct http_call call = {.method = "POST", .target = "/v1/auth/recover/confirm"};
    struct http_answer answer;
    char json[256];

    fixture_totp(&b->ada, 0, totp);
    snprintf(json, sizeof json, "{\"ticket\":\"%s\",\"totp\":\"%s\"}", b->ticket, totp);
    call.json = json;
    return fixture_call(&fixture, 0, &call, &answer);
}

static void make_belongings(struct belongings *b)
{
    static const char *const create[] = {"account", "create", "--name", "South Clinic", "--json", NULL};
    char *out;

    *b = (struct belongings){.people.fixture = fixture};
    fixture_add_session(&fixture, NULL, true, &b->people.owner);
    fixture_add_user(&fixture, "ada@north.test", &b->ada);
    fixture_add_session(&fixture, &b->ada, true, &b->adas);
    people_add(&b->people, "bob@north.test", ROLE_AUDITOR, &b->auditor, &b->auditors);
    people_invite(&b->people, "eve@north.test", "developer", b->invitation);
    make_codes(b);
    cr_assert_eq(recover(b, b->recovery_codes[0]), 200);
    cr_assert_eq(run(create, &out, NULL), 0);
    cr_assert_not_null(strstr(out, "acct_"), "%s", out);
    snprintf(b->account, sizeof b->account, "%s", strstr(out, "acct_"));
    free(out);
    fixture_add_key(&fixture, b->account, KEY_API, MODE_LIVE, SCOPE_ALL, &b->suspended);
    expect_run((const char *const[]){"account", "suspend", b->account, NULL}, 0, "suspended");
}

Test(master_keys, roles_links_and_codes_outlive_a_rotation)
{
    struct belongings b;
    struct http_answer answer;
    struct fixture_user invited, recovered;
    char totp[8], next[8];

    fixture_start(&fixture, 1, NULL);
    make_belongings(&b);
    const char *old_path = key_file("old.key", OLD_KEY), *new_path = key_file("new.key", NEW_KEY);
    const char *const rotate[] = {"master-key", "rotate", "--retired-master-key-file", old_path, NULL};
    const char *const resume[] = {"account", "resume", b.account, "--retired-master-key-file", old_path, NULL};
    const char *const doctor[] = {"doctor", "--json", "--public-origin", NODE_ORIGIN, "--retired-master-key-file",
                                  old_path, NULL};

    use_key(new_path);
    expect_run(rotate, 0, "1 passwords, recovery codes of 1 users");
    restart(0, new_path, old_path);
    b.people.fixture = fixture;
    cr_expect_eq(people_ask(&b.people, 0, &b.auditors, "GET", "/v1/console/users", NULL, &answer), 200);
    cr_expect_eq(people_ask(&b.people, 0, &b.auditors, "POST", "/v1/console/invitations",
                            "{\"email\":\"x@north.test\",\"role\":\"owner\"}", &answer),
                 403);
    cr_expect_str_eq(http_answer_code(&answer), "role_not_permitted");
    cr_expect_eq(people_begin(&b.people, 0, b.invitation, &invited, &answer), 200, "%s", answer.body);
    cr_expect_eq(people_join(&b.people, 0, b.invitation, &invited, FIXTURE_PASSWORD, &answer), 200, "%s", answer.body);
    cr_expect_eq(fixture_try_key(&fixture, 0, b.suspended.secret), 403);
    expect_run(resume, 0, "active again");
    fixture_await_resumed(&fixture, 0, b.suspended.secret, 200);
    cr_expect_eq(confirm_recovery(&b, totp), 204, "what waited");
    recovered = b.ada;
    cr_expect_eq(recover(&b, b.recovery_codes[0]), 401, "spent");
    cr_expect_eq(recover(&b, b.recovery_codes[1]), 200, "not spent");
    fixture_totp(&recovered, 1, next);
    cr_expect_eq(fixture_login(&fixture, 0, &recovered, FIXTURE_PASSWORD, next, NULL, &answer), 200, "%s", answer.body);
    expect_fit(doctor, "recovery codes of 1 users");
    fixture_stop(&fixture);
}

/* Their digests cannot be made again, so nobody may forget the key before its people have new ones. */
Test(master_keys, recovery_codes_keep_their_master_key)
{
    struct belongings b = {0};
    struct http_answer answer;

    fixture_start(&fixture, 1, NULL);
    b.people.fixture = fixture;
    fixture_add_session(&fixture, NULL, true, &b.people.owner);
    fixture_add_user(&fixture, "ada@north.test", &b.ada);
    fixture_add_session(&fixture, &b.ada, true, &b.adas);
    make_codes(&b);
    expect_run((const char *const[]){"key", "revoke", fixture.manager.id, NULL}, 0, "revoked");
    const char *old_path = key_file("old.key", OLD_KEY), *new_path = key_file("new.key", NEW_KEY);
    const char *const rotate[] = {"master-key", "rotate", "--retired-master-key-file", old_path, NULL};
    const char *const forget[] = {"master-key", "rotate", "--forget", "--retired-master-key-file", old_path, NULL};

    use_key(new_path);
    expect_run(rotate, 0, "current");
    restart(0, new_path, old_path);
    b.people.fixture = fixture;
    cr_assert_eq(fixture_login(&fixture, 0, &b.ada, FIXTURE_PASSWORD, NULL, NULL, &answer), 200, "%s", answer.body);
    await_retired(rotate, "0 active keys, 0 passwords, recovery codes of 1 users, 0 seals");
    expect_run(forget, 0, "0 master keys forgotten");
    make_codes(&b);
    expect_run(forget, 0, "1 master keys forgotten");
    /* A user who must first use a link needs no key, and none is missing. The fixture's own user has no secrets. */
    cr_assert_eq(people_change(&b.people, 0, &b.ada, "POST", "/reset", NULL, &answer), 200, "%s", answer.body);
    expect_fit(DOCTOR, "1 of 2 users have secrets made with a missing master key");
    fixture_stop(&fixture);
}

Test(master_keys, a_rotation_fails_if_users_cannot_be_read)
{
    char users[128];

    fixture_start(&fixture, 1, NULL);
    snprintf(users, sizeof users, "%sacct:%s:users", fixture_name(fixture.account, ""), fixture.account);
    redis_server_tell(&fixture.redis, "SADD", users, "usr_01jd8x4v2m7q9c3t5r6w8y0zab", NULL); /* has no record */
    expect_run(ROTATE, 1, "Not done: ");
    fixture_stop(&fixture);
}

/* A store of the version before: no name of a master key, no seals. */

static void take_seal_from_key(const char *secret_id)
{
    char name[128], digest[80], record[2048];

    snprintf(name, sizeof name, "%sid:%s", fixture_name(fixture.account, ""), secret_id);
    redis_server_ask(&fixture.redis, digest, sizeof digest, "GET", name, NULL);
    snprintf(name, sizeof name, "%skey:%s", fixture_name(fixture.account, ""), digest);
    redis_server_ask(&fixture.redis, record, sizeof record, "GET", name, NULL);
    record[strcspn(record, "\n")] = '\0';
    redis_server_tell(&fixture.redis, "SET", name, record, NULL);
}

static void take_seal_from_user(const char *id)
{
    char name[128];

    snprintf(name, sizeof name, "%suser:%s", fixture_name(fixture.account, ""), id);
    redis_server_tell(&fixture.redis, "HDEL", name, "mac", NULL);
}

static void make_older(const struct fixture_user *user)
{
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, "master_keys"), NULL);
    take_seal_from_key(fixture.manager.id);
    take_seal_from_user(fixture.user.id);
    take_seal_from_user(user->id);
}

Test(master_keys, an_older_store_is_taken_over_once)
{
    struct fixture_user user;
    struct fixture_key late;

    fixture_start(&fixture, 0, NULL);
    fixture_add_user(&fixture, "ada@north.test", &user);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &late);
    make_older(&user);
    expect_run(SERVE, 3, "master-key rotate --adopt");
    const char *right = key_file("right.key", OLD_KEY);
    use_key(key_file("wrong.key", NEW_KEY));
    expect_run(ADOPT, 3, "is missing");
    use_key(right);
    expect_run(ADOPT, 0, "7 days");
    fixture_add_node(&fixture, NULL);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 200);
    /* What a node of that version still makes is taken, */
    take_seal_from_key(late.id);
    cr_expect_eq(fixture_try_key(&fixture, 0, late.secret), 200);
    expect_fit(DOCTOR, "1 records without a seal");
    /* and sealed at last. From then on no record without a seal is. */
    expect_run(ROTATE, 0, "1 records resealed");
    node_stop(&fixture.nodes[0]);
    fixture.node_count = 0;
    fixture_add_node(&fixture, NULL);
    cr_expect_eq(fixture_try_key(&fixture, 0, late.secret), 200);
    take_seal_from_key(fixture.manager.id);
    cr_expect_eq(fixture_try_key(&fixture, 0, fixture.manager.secret), 401);
    /* Nor is a store taken for an older one by what somebody takes out of it. */
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, "master_keys"), NULL);
    expect_run(SERVE, 3, "master-key rotate --adopt");
    fixture_stop(&fixture);
}
