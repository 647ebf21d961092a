/* Receipts of revocations: what they say, to whom, and that they stay the same. */
#include "base/json.h"
#include "cli.h"
#include "clock_file.h"
#include "core/receipt.h"
#include "fixture.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(receipts, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static const char *const LEASE_500[] = {"--lease-ms", "500", NULL};
static const char *const LEASE_1000[] = {"--lease-ms", "1000", NULL};
static const char *const LEASE_4000[] = {"--lease-ms", "4000", NULL};

/* A receipt whose signature has been verified with what the node publishes. */
struct read_receipt {
    struct receipt receipt;
    struct json *claims;
    char jws[RECEIPT_MAX_BYTES];
};

static void read_keys(const struct fixture *fixture, size_t node, struct receipt_keys *ret_keys)
{
    struct http_call call = {.target = "/.well-known/jwks.json"};
    struct http_answer answer;
    const char *why = NULL;

    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 200, "%s", answer.body);
    cr_expect(strstr(answer.head, "application/jwk-set+json"), "%s", answer.head);
    cr_expect(strstr(answer.head, "X-Content-Type-Options: nosniff\r\n"), "%s", answer.head);
    cr_assert(receipt_keys_read(text_of(answer.body), ret_keys, &why), "%s", why);
}

static int ask(const struct fixture *fixture, size_t node, const char *bearer, const char *key,
               struct http_answer *ret_answer)
{
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s/revocation", key);
    struct http_call call = {.target = target, .bearer = bearer};
    return fixture_call(fixture, node, &call, ret_answer);
}

static void verify(const struct fixture *fixture, size_t node, const struct http_answer *answer,
                   struct read_receipt *ret_read)
{
    struct receipt_keys keys;
    const char *why = NULL;

    cr_assert(strstr(answer->head, "Content-Type: application/jose\r\n"), "%s", answer->head);
    cr_assert_lt(answer->body_len, sizeof ret_read->jws);
    memcpy(ret_read->jws, answer->body, answer->body_len + 1);
    read_keys(fixture, node, &keys);
    ret_read->claims = receipt_verify(text_of(ret_read->jws), &keys, &ret_read->receipt, &why);
    cr_assert(ret_read->claims, "%s", why);
}

static void read_receipt(const struct fixture *fixture, size_t node, const char *key, struct read_receipt *ret_read)
{
    struct http_answer answer;

    cr_assert_eq(ask(fixture, node, fixture->manager.secret, key, &answer), 200, "%s", answer.body);
    verify(fixture, node, &answer, ret_read);
    cr_expect(text_equal(ret_read->receipt.key, text_of(key)));
}

/* But for when it was issued. */
static void expect_same(const struct receipt *a, const struct receipt *b)
{
    cr_expect(text_equal(a->issuer, b->issuer) && text_equal(a->store, b->store) && text_equal(a->event, b->event));
    cr_expect_eq(a->revoked_ms, b->revoked_ms);
    cr_expect_eq(a->effective_ms, b->effective_ms);
    cr_expect_eq(a->nodes, b->nodes);
    cr_expect_eq(a->waited_for, b->waited_for);
}

static void revoke_at(const struct fixture *fixture, size_t node, const char *key, struct http_answer *ret_answer)
{
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    cr_assert_eq(fixture_call(fixture, node, &call, ret_answer), 200, "%s", ret_answer->body);
}

/* Revokes a fresh key without waiting for a node. While no process of this machine runs for W, all are waited for; so
 * the answer that tells came sooner. */
static void revoke_unhindered(struct fixture *fixture, struct fixture_key *ret_key, struct http_answer *ret_answer)
{
    enum { W_MS = 1000 * 125 / 100 + 50 };
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int64_t began_ms;

    do {
        cr_assert_gt(deadline_left_ms(deadline), 0, "each revocation waits for a node");
        fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, ret_key);
        fixture_await_key(fixture, 0, ret_key->secret, 200);
        cr_expect_eq(ask(fixture, 0, fixture->manager.secret, ret_key->id, ret_answer), 404);
        cr_expect_str_eq(http_answer_code(ret_answer), "api_key_not_found");
        began_ms = deadline_now_ms();
        revoke_at(fixture, 0, ret_key->id, ret_answer);
    } while (deadline_now_ms() - began_ms >= W_MS);
}

static void expect_event(const struct fixture *fixture, const struct receipt *receipt)
{
    char target[160], expected[64];
    struct http_answer answer;

    snprintf(target, sizeof target, "/v1/audit?type=api_key.revoked&target=%.*s", TEXT_ARG(receipt->key));
    struct http_call call = {.target = target, .bearer = fixture->manager.secret};
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 200, "%s", answer.body);
    cr_assert_gt(receipt->event.len, 0);
    snprintf(expected, sizeof expected, "\"id\":\"%.*s\"", TEXT_ARG(receipt->event));
    cr_expect(strstr(answer.body, expected), "%s is not in %s", expected, answer.body);
}

Test(receipts, says_when_the_last_node_had_let_go)
{
    struct read_receipt first, second;
    struct http_answer answer;
    struct fixture_key key;
    struct fixture fixture;
    char store[64];

    fixture_start(&fixture, 2, LEASE_1000);
    leases_await_all(&fixture);
    revoke_unhindered(&fixture, &key, &answer);
    struct json *record = json_parse_object(text_of(answer.body), NULL);
    read_receipt(&fixture, 0, key.id, &first);
    read_receipt(&fixture, 1, key.id, &second);
    expect_same(&first.receipt, &second.receipt);
    cr_expect(
        text_equal(json_text(json_member(record, "revoked_at")), json_text(json_member(first.claims, "revoked_at"))));
    cr_expect_eq(first.receipt.nodes, 2);
    cr_expect_eq(first.receipt.waited_for, 0);
    cr_expect_geq(first.receipt.effective_ms, first.receipt.revoked_ms);
    expect_event(&fixture, &first.receipt);
    redis_server_ask(&fixture.redis, store, sizeof store, "HGET", fixture_name(fixture.account, "store"), "id", NULL);
    cr_expect(text_equal(first.receipt.store, text_of(store)), "%s", store);
    json_free(record);
    json_free(first.claims);
    json_free(second.claims);
    fixture_stop(&fixture);
}

Test(receipts, a_node_that_says_nothing_was_waited_for)
{
    struct read_receipt read;
    struct http_answer answer;
    struct fixture_key key;
    struct fixture fixture;

    fixture_start(&fixture, 2, LEASE_4000);
    leases_await_all(&fixture);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    cr_assert_eq(kill(fixture.nodes[1].process.pid, SIGSTOP), 0);
    revoke_at(&fixture, 0, key.id, &answer);
    cr_assert_eq(kill(fixture.nodes[1].process.pid, SIGCONT), 0);
    read_receipt(&fixture, 0, key.id, &read);
    cr_expect_eq(read.receipt.nodes, 2);
    cr_expect_eq(read.receipt.waited_for, 1);
    cr_expect_geq(read.receipt.effective_ms - read.receipt.revoked_ms, 4000, "until its lease had ended");
    json_free(read.claims);
    leases_await_all(&fixture);
    fixture_stop(&fixture);
}

static struct clock_file redis_clock;

static void start_with_clock(struct fixture *fixture, const char *const *more)
{
    fixture_use_one_redis("the test sets the clock of one server");
    clock_file_make(&redis_clock, 0);
    clock_file_begin(&redis_clock, NULL);
    fixture_start(fixture, 0, NULL);
    clock_file_end();
    fixture_add_node(fixture, more);
    fixture_add_node(fixture, more);
    leases_await_all(fixture);
}

/* Until a script has marked it. */
static void await_mark(const struct fixture *fixture, const char *key)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char name[64], noted[64];

    snprintf(name, sizeof name, "acct:%s:key_endings", fixture->account);
    do {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        redis_server_ask(&fixture->redis, noted, sizeof noted, "HEXISTS", fixture_name(fixture->account, name), key,
                         NULL);
    } while (strcmp(noted, "1") != 0);
}

/* Revokes it while the second node stands still, and sets Redis' clock back by an hour as soon as the key is marked. */
static void revoke_while_the_clock_goes_back(const struct fixture *fixture, const char *key)
{
    struct http_answer answer;
    struct http_client client;
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key);
    http_client_connect(&client, fixture->nodes[0].port);
    cr_assert_eq(kill(fixture->nodes[1].process.pid, SIGSTOP), 0);
    http_client_send_call(&client,
                          &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture->manager.secret});
    await_mark(fixture, key);
    clock_file_set(&redis_clock, -3600);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    cr_assert_eq(kill(fixture->nodes[1].process.pid, SIGCONT), 0);
    http_client_close(&client);
}

/* The other node accepted the key until its lease ended, whatever Redis' clock said meanwhile. */
Test(receipts, a_clock_that_goes_back_while_a_node_is_waited_for_is_not_believed)
{
    struct read_receipt read;
    struct fixture_key key;
    struct fixture fixture;
    char name[64];

    start_with_clock(&fixture, LEASE_4000);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    revoke_while_the_clock_goes_back(&fixture, key.id);
    read_receipt(&fixture, 0, key.id, &read);
    cr_expect_eq(read.receipt.waited_for, 1);
    cr_expect_geq(read.receipt.effective_ms - read.receipt.revoked_ms, 4000, "until its lease had ended");
    json_free(read.claims);

    /* How long the first barrier took is lost with its note. */
    snprintf(name, sizeof name, "acct:%s:key_endings", fixture.account);
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, name), NULL);
    leases_await_all(&fixture);
    read_receipt(&fixture, 0, key.id, &read);
    cr_expect_geq(read.receipt.effective_ms - read.receipt.revoked_ms, 4000, "no lease was longer than W");
    json_free(read.claims);
    fixture_stop(&fixture);
    clock_file_remove(&redis_clock);
}

/* By a node that died before it noted the end, or by an earlier version. */
Test(receipts, a_barrier_whose_end_is_not_known_runs_again)
{
    struct read_receipt before, first, second;
    struct http_answer answer;
    struct fixture_key key;
    struct fixture fixture;
    char name[64];

    fixture_start(&fixture, 1, NULL);
    leases_await_all(&fixture);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    revoke_at(&fixture, 0, key.id, &answer);
    read_receipt(&fixture, 0, key.id, &before);
    snprintf(name, sizeof name, "acct:%s:key_endings", fixture.account);
    redis_server_tell(&fixture.redis, "DEL", fixture_name(fixture.account, name), NULL);
    read_receipt(&fixture, 0, key.id, &first);
    read_receipt(&fixture, 0, key.id, &second);
    cr_expect_eq(first.receipt.revoked_ms, before.receipt.revoked_ms);
    cr_expect_gt(first.receipt.effective_ms, before.receipt.effective_ms);
    cr_expect_eq(first.receipt.event.len, 0, "nothing is invented");
    cr_expect_eq(first.receipt.nodes, 1);
    expect_same(&first.receipt, &second.receipt);
    json_free(before.claims);
    json_free(first.claims);
    json_free(second.claims);
    fixture_stop(&fixture);
}

Test(receipts, of_a_command_that_waits_for_all_leases)
{
    struct read_receipt read;
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, LEASE_500);
    leases_await_all(&fixture);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    RUN(&fixture, &run, "key", "revoke", key.id);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
    read_receipt(&fixture, 0, key.id, &read);
    cr_expect_eq(read.receipt.nodes, 1);
    cr_expect_leq(read.receipt.waited_for, 1);
    cr_expect_geq(read.receipt.effective_ms, read.receipt.revoked_ms);
    expect_event(&fixture, &read.receipt);
    json_free(read.claims);
    fixture_stop(&fixture);
}

static void write_file(const struct fixture *fixture, const char *name, const char *content, char ret_path[256])
{
    FILE *file;

    snprintf(ret_path, 256, "%.200s/%.40s", fixture->folder, name);
    file = fopen(ret_path, "we");
    cr_assert(file && fputs(content, file) >= 0 && fclose(file) == 0, "%s", ret_path);
}

static int run_offline(const struct fixture *fixture, struct cli_run *run, const char *const *arguments)
{
    cli_run_bare(fixture, run, arguments);
    return run->exit_code;
}

/* Nobody is asked: the command gets no address. */
Test(receipts, verified_offline)
{
    char receipt[256], keys[256], changed[256], foreign[256];
    struct http_answer answer, set;
    struct fixture_key key;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    revoke_at(&fixture, 0, key.id, &answer);
    cr_assert_eq(ask(&fixture, 0, fixture.manager.secret, key.id, &answer), 200, "%s", answer.body);
    struct http_call call = {.target = "/.well-known/jwks.json"};
    cr_assert_eq(fixture_call(&fixture, 0, &call, &set), 200);
    write_file(&fixture, "receipt", answer.body, receipt);
    write_file(&fixture, "jwks.json", set.body, keys);
    write_file(&fixture, "foreign.json",
               "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
               "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}",
               foreign);
    char *claims = strchr(answer.body, '.') + 20;
    *claims = *claims == 'A' ? 'B' : 'A';
    write_file(&fixture, "changed", answer.body, changed);

    const char *const by_set[] = {"receipt", "verify", "--jwks", keys, receipt, NULL};
    const char *const by_master[] = {"receipt", "verify", "--json", "--master-key-file", fixture.master_key_path,
                                     receipt,   NULL};
    const char *const of_changed[] = {"receipt", "verify", "--jwks", keys, changed, NULL};
    const char *const by_foreign[] = {"receipt", "verify", "--jwks", foreign, receipt, NULL};
    const char *const by_nothing[] = {"receipt", "verify", "--jwks", receipt, receipt, NULL};
    const char *const print_keys[] = {"receipt", "keys", "--master-key-file", fixture.master_key_path, NULL};

    cr_expect_eq(run_offline(&fixture, &run, by_set), 0, "%s", run.err);
    cr_expect(strstr(run.out, key.id) && strstr(run.out, "effective at"), "%s", run.out);
    cli_finish(&run);
    cr_expect_eq(run_offline(&fixture, &run, by_master), 0, "%s", run.err);
    struct json *said = json_parse_object(text_of(run.out), NULL);
    cr_assert(said, "%s", run.out);
    cr_expect(text_equal(json_text(json_member(said, "sub")), text_of(key.id)));
    json_free(said);
    cli_finish(&run);
    run_offline(&fixture, &run, of_changed);
    cli_expect_refusal(&run, 1, "signature is wrong", "a changed receipt");
    run_offline(&fixture, &run, by_foreign);
    cli_expect_refusal(&run, 1, "no known key has its kid", "by another key");
    run_offline(&fixture, &run, by_nothing);
    cli_expect_refusal(&run, 1, "has no keys for receipts", "no set of keys");
    cr_expect_eq(run_offline(&fixture, &run, print_keys), 0, "%s", run.err);
    cr_expect(strncmp(run.out, set.body, strlen(set.body)) == 0, "%s", run.out);
    cli_finish(&run);
    fixture_stop(&fixture);
}

Test(receipts, whoever_sees_no_key_sees_no_receipt)
{
    struct fixture_key key, device, test;
    struct fixture_session session, stranger_session;
    struct fixture_user stranger;
    struct http_answer answer;
    struct read_receipt read;
    struct fixture fixture;
    char other[ID_TEXT_BYTES], target[96];

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_TEST, SCOPE_ALL, &test);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    fixture_add_account(&fixture, other);
    fixture_add_person(&fixture, other, "stranger@clinic.test", ROLE_OWNER, &stranger);
    fixture_add_session(&fixture, NULL, false, &session);
    fixture_add_session(&fixture, &stranger, false, &stranger_session);
    fixture_revoke_key(&fixture, &key);
    fixture_revoke_key(&fixture, &device);
    cr_expect_eq(ask(&fixture, 0, fixture.manager.secret, key.id, &answer), 200, "%s", answer.body);
    cr_expect_eq(ask(&fixture, 0, test.secret, key.id, &answer), 404);
    cr_expect_eq(ask(&fixture, 0, fixture.manager.secret, device.id, &answer), 404);
    cr_expect_eq(ask(&fixture, 0, fixture.manager.secret, "key_x", &answer), 404);
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/revocation", key.id);
    struct http_call call = {.target = target, .cookie = session.token};
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    call.cookie = stranger_session.token;
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 404, "%s", answer.body);
    snprintf(target, sizeof target, "/v1/console/device_keys/%s/revocation", device.id);
    cr_expect_eq(fixture_call(&fixture, 0, &call, &answer), 404);
    cr_expect_str_eq(http_answer_code(&answer), "device_key_not_found");
    call.cookie = session.token;
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    verify(&fixture, 0, &answer, &read);
    cr_expect(text_equal(read.receipt.key, text_of(device.id)));
    json_free(read.claims);
    fixture_stop(&fixture);
}

static void expect_shown(struct fixture *fixture, const char *id)
{
    struct receipt_keys keys;
    struct receipt receipt;
    struct cli_run run;
    const char *why = "";
    char path[256];

    read_keys(fixture, 0, &keys);
    RUN(fixture, &run, "receipt", "show", id, "--public-origin", "https://exchange.example.org");
    cr_assert_eq(run.exit_code, 0, "%s: %s", id, run.err);
    struct text out = text_of(run.out), jws;
    cr_assert(text_next(&out, '\n', &jws));
    struct json *claims = receipt_verify(jws, &keys, &receipt, &why);
    cr_assert(claims, "%s", why);
    cr_expect(text_equal(receipt.key, text_of(id)));
    cr_expect(text_equal(receipt.issuer, TEXT("https://exchange.example.org")));
    cr_expect_gt(receipt.event.len, 0);
    cr_expect_geq(receipt.nodes, 1);
    cr_expect_geq(receipt.effective_ms, receipt.revoked_ms);
    json_free(claims);
    write_file(fixture, "shown", run.out, path);
    cli_finish(&run);
    const char *const offline[] = {"receipt", "verify", "--master-key-file", fixture->master_key_path, path, NULL};
    cr_expect_eq(run_offline(fixture, &run, offline), 0, "%s", run.err);
    cr_expect(strstr(run.out, id), "%s", run.out);
    cli_finish(&run);
}

static void account_command(struct fixture *fixture, const char *command, const char *option)
{
    struct cli_run run;

    RUN(fixture, &run, "account", command, fixture->account, option);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
}

/* Its keys and people are refused, so the operator gets the certificates: of the suspension, and of each key. */
Test(receipts, of_a_suspended_and_of_a_closed_account)
{
    struct http_answer answer;
    struct fixture_key key, other;
    struct fixture fixture;
    struct cli_run run;

    fixture_start(&fixture, 1, LEASE_500);
    leases_await_all(&fixture);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &key);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &other);
    revoke_at(&fixture, 0, key.id, &answer);
    RUN(&fixture, &run, "receipt", "show", fixture.account, "--public-origin", "https://exchange.example.org");
    cli_expect_refusal(&run, 1, "There is no account with this id, or it is active", "active");
    RUN(&fixture, &run, "receipt", "show", other.id, "--public-origin", "https://exchange.example.org");
    cli_expect_refusal(&run, 1, "There is no key with this id, or it is active", "active");
    RUN(&fixture, &run, "receipt", "show", key.id);
    cli_expect_refusal(&run, 2, "the nodes' public origin: set --public-origin", "no origin");
    account_command(&fixture, "suspend", NULL);
    cr_expect_eq(ask(&fixture, 0, fixture.manager.secret, key.id, &answer), 403);
    expect_shown(&fixture, key.id);
    expect_shown(&fixture, fixture.account);
    account_command(&fixture, "resume", NULL);
    RUN(&fixture, &run, "receipt", "show", fixture.account, "--public-origin", "https://exchange.example.org");
    cli_expect_refusal(&run, 1, "There is no account with this id, or it is active", "resumed");
    account_command(&fixture, "close", "--yes");
    expect_shown(&fixture, fixture.account);
    expect_shown(&fixture, other.id);
    fixture_stop(&fixture);
}
