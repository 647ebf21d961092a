/* POST /check/batch: many questions at once, each answered in its place as if it had come alone. */
#include "asking.h"
#include "leak_guard.h"
#include "leases.h"
#include "redis_proxy.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(batch, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { CHECKS_MAX = 256, BATCH_BYTES = 512 * 1024, AT_BYTES = 32 };
#define ACCEPTED "chatelaine_checks_total{result=\"accepted\"}"
#define GARBAGE "{\"key\":\"garbage\"}"

static char body[BATCH_BYTES];

static void begin_body(void)
{
    snprintf(body, sizeof body, "{\"checks\":[");
}

static void add_text(const char *json)
{
    size_t used = strlen(body);

    snprintf(body + used, sizeof body - used, "%s%s", body[used - 1] == '[' ? "" : ",", json);
}

static void add_asking(const struct asking *asking)
{
    char json[ASKING_BYTES];

    asking_print(asking, json);
    add_text(json);
}

static void end_body(void)
{
    size_t used = strlen(body);

    snprintf(body + used, sizeof body - used, "]}");
}

static int post(const struct fixture *fixture, size_t node, struct http_answer *ret_answer)
{
    end_body();
    return asking_post(fixture, node, "/check/batch", body, ret_answer);
}

static const char *code_at(const struct http_answer *answer, size_t at)
{
    char place[AT_BYTES];

    snprintf(place, sizeof place, "data.%zu.", at);
    return asking_member(answer, place, "code");
}

static void expect_codes(const struct http_answer *answer, size_t count, const char *code)
{
    cr_assert_eq(answer->status, 200, "%s", answer->body);
    cr_assert_eq(http_answer_json_count(answer, "data"), (int)count);
    for (size_t i = 0; i < count; i++)
        cr_assert_str_eq(code_at(answer, i), code, "%zu: %.400s", i, answer->body);
}

/* The same ones stand in it twice. */
Test(batch, each_verdict_is_in_its_place)
{
    struct askings made;
    struct http_answer answer;
    struct fixture fixture;
    char place[AT_BYTES];

    fixture_start(&fixture, 1, NULL);
    askings_make(&fixture, &made);
    begin_body();
    for (size_t i = 0; i < 2 * made.count; i++)
        add_asking(&made.list[i % made.count]);
    cr_assert_eq(post(&fixture, 0, &answer), 200, "%s", answer.body);
    cr_assert_eq(http_answer_json_count(&answer, "data"), (int)(2 * made.count));
    for (size_t i = 0; i < 2 * made.count; i++) {
        snprintf(place, sizeof place, "data.%zu.", i);
        asking_expect_verdict_of_check(&fixture, &made.list[i % made.count], &answer, place);
    }
    fixture_stop(&fixture);
}

Test(batch, each_valid_one_is_a_use_again_and_again)
{
    struct http_answer answer;
    struct fixture fixture;
    long before;

    fixture_start(&fixture, 1, NULL);
    before = fixture_metric(&fixture, 0, ACCEPTED);
    begin_body();
    for (size_t i = 0; i < CHECKS_MAX; i++)
        add_asking(&(struct asking){.key = fixture.manager.secret, .path = "/v1/patients"});
    post(&fixture, 0, &answer);
    expect_codes(&answer, CHECKS_MAX, "ok");
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before + CHECKS_MAX);
    fixture_stop(&fixture);
}

Test(batch, mistakes_are_named_by_their_place)
{
    static const struct {
        const char *json;
        const char *code, *param, *says;
    } CASES[] = {
        {"{}", "parameter_missing", "checks", ""},
        {"{\"checks\":{}}", "parameter_invalid", "checks", ""},
        {"{\"checks\":[]}", "parameter_invalid", "checks", "1 to 256 questions, not 0."},
        {"{\"checks\":[" GARBAGE "],\"more\":1}", "parameter_unknown", "more", ""},
        {"{\"checks\":[" GARBAGE "],\"checks\":[]}", "invalid_json", "(none)", ""},
        {"{\"checks\":[" GARBAGE ",7]}", "parameter_invalid", "checks[1]", "must be an object"},
        {"{\"checks\":[" GARBAGE ",[]]}", "parameter_invalid", "checks[1]", "must be an object"},
        {"{\"checks\":[" GARBAGE ",{}]}", "parameter_missing", "checks[1].key", "In checks[1]: "},
        {"{\"checks\":[{\"key\":\"k\",\"key\":\"k\"}]}", "invalid_json", "(none)", ""},
        {"{\"checks\":[{\"key\":1}]}", "parameter_invalid", "checks[0].key", "In checks[0]: "},
        {"{\"checks\":[" GARBAGE ",{\"key\":\"k\",\"pth\":\"/\"}]}", "parameter_unknown", "checks[1].pth",
         "In checks[1]: Unknown parameter: pth. Did you mean path?"},
        {"{\"checks\":[" GARBAGE ",{\"key\":\"k\",\"path\":\"x\"}]}", "parameter_invalid", "checks[1].path",
         "In checks[1]: path must begin with /"},
        {"{\"checks\":[{\"key\":\"k\",\"scopes\":[\"usage:read\",\"usage\"]}]}", "parameter_invalid",
         "checks[0].scopes", "at scopes[1]"},
        {"{\"checks\":[{\"key\":\"k\",\"network\":\"x\"}]}", "parameter_invalid", "checks[0].network", "not \\\"x\\\""},
        {"{\"checks\":[{\"key\":\"\\u0000\"}]}", "invalid_json", "(none)", ""},
    };
    struct http_answer answer;
    struct fixture fixture;
    long before;

    fixture_start(&fixture, 1, NULL);
    before = fixture_metric(&fixture, 0, "chatelaine_checks_total{result=\"invalid\"}");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        cr_expect_eq(asking_post(&fixture, 0, "/check/batch", CASES[i].json, &answer), 400, "%s: %s", CASES[i].json,
                     answer.body);
        cr_expect_str_eq(http_answer_code(&answer), CASES[i].code, "%s: %s", CASES[i].json, answer.body);
        cr_expect_str_eq(asking_member(&answer, "error.", "param"), CASES[i].param, "%s: %s", CASES[i].json,
                         answer.body);
        cr_expect(strstr(answer.body, CASES[i].says), "%s: %s", CASES[i].json, answer.body);
    }
    begin_body();
    for (size_t i = 0; i <= CHECKS_MAX; i++)
        add_text(GARBAGE);
    cr_expect_eq(post(&fixture, 0, &answer), 400, "%s", answer.body);
    cr_expect(strstr(answer.body, "1 to 256 questions, not 257."), "%s", answer.body);
    /* None was asked of a batch that was refused. */
    cr_expect_eq(fixture_metric(&fixture, 0, "chatelaine_checks_total{result=\"invalid\"}"), before);
    fixture_stop(&fixture);
}

/* More than the bodies of other routes, up to what 256 checks with long paths take. */
Test(batch, a_body_may_be_large_but_not_huge)
{
    struct http_answer answer;
    struct fixture fixture;
    char check[2048];

    fixture_start(&fixture, 1, NULL);
    snprintf(check, sizeof check, "{\"key\":\"%s\",\"path\":\"/v1/patients/%01400d\"}", fixture.manager.secret, 7);
    begin_body();
    for (size_t i = 0; i < CHECKS_MAX; i++)
        add_text(check);
    post(&fixture, 0, &answer);
    expect_codes(&answer, CHECKS_MAX, "ok");
    memset(body, ' ', sizeof body - 1);
    cr_expect_eq(asking_post(&fixture, 0, "/check/batch", body, &answer), 413, "%s", answer.body);
    fixture_stop(&fixture);
}

/* All reads of a batch are at Redis before the first is answered. */
enum { UNREAD = 200, STATS_BYTES = 65536 };

static long reads_at_redis(const struct fixture *fixture)
{
    static char stats[STATS_BYTES];
    const char *at;

    redis_server_ask(&fixture->redis, stats, sizeof stats, "INFO", "commandstats", NULL);
    at = strstr(stats, "cmdstat_get:calls=");
    return at ? strtol(at + strlen("cmdstat_get:calls="), NULL, 10) : 0;
}

static void start_held(struct fixture *fixture, struct redis_proxy **ret_proxy, struct fixture_key keys[UNREAD])
{
    char url[64];

    fixture_use_one_redis("the proxy stands before one Redis");
    fixture_start(fixture, 0, NULL);
    fixture_open_store(fixture);
    for (size_t i = 0; i < UNREAD; i++)
        fixture_add_key(fixture, NULL, KEY_API, MODE_LIVE, SCOPE_ALL, &keys[i]);
    fixture_close_store(fixture);
    *ret_proxy = redis_proxy_start(fixture->redis.socket_path, 1, (const char *const[]){"127.0.0.1"});
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", redis_proxy_port(*ret_proxy, 0));
    fixture_start_node(fixture, 0, "held", url,
                       (const char *const[]){"--lease-ms", "5000", "--redis-timeout-ms", "60000", NULL});
    fixture->node_count = 1;
    leases_await(fixture, 0);
}

Test(batch, misses_go_to_redis_together)
{
    static struct fixture_key keys[UNREAD];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct redis_proxy *proxy;
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;

    start_held(&fixture, &proxy, keys);
    redis_proxy_hold(proxy, 0, REDIS_PROXY_READS, REDIS_PROXY_TO_NODE, true);
    redis_server_tell_all(&fixture.redis, "CONFIG", "RESETSTAT", NULL);
    begin_body();
    for (size_t i = 0; i < UNREAD; i++)
        add_asking(&(struct asking){.key = keys[i].secret});
    end_body();
    http_client_connect(&client, fixture.nodes[0].internal_port);
    http_client_send_call(&client, &(struct http_call){.method = "POST", .target = "/check/batch", .json = body});
    while (reads_at_redis(&fixture) < UNREAD) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "only %ld reads", reads_at_redis(&fixture));
        poll(NULL, 0, 5);
    }
    redis_proxy_hold(proxy, 0, REDIS_PROXY_READS, REDIS_PROXY_TO_NODE, false);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    expect_codes(&answer, UNREAD, "ok");
    http_client_close(&client);
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
}

static void await_read(const struct fixture *fixture)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (reads_at_redis(fixture) < 1) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "nothing is read");
        poll(NULL, 0, 5);
    }
}

/* The answer waits for the second key. */
Test(batch, a_key_that_is_revoked_before_the_answer_is_not_good)
{
    static struct fixture_key keys[UNREAD];
    struct redis_proxy *proxy;
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;
    char target[128];

    start_held(&fixture, &proxy, keys);
    asking_verify(&fixture, 0, &(struct asking){.key = fixture.manager.secret}, &answer);
    asking_verify(&fixture, 0, &(struct asking){.key = keys[0].secret}, &answer);
    redis_proxy_hold(proxy, 0, REDIS_PROXY_READS, REDIS_PROXY_TO_NODE, true);
    redis_server_tell_all(&fixture.redis, "CONFIG", "RESETSTAT", NULL);
    begin_body();
    add_asking(&(struct asking){.key = keys[0].secret});
    add_asking(&(struct asking){.key = keys[1].secret});
    end_body();
    http_client_connect(&client, fixture.nodes[0].internal_port);
    http_client_send_call(&client, &(struct http_call){.method = "POST", .target = "/check/batch", .json = body});
    await_read(&fixture);
    snprintf(target, sizeof target, "/v1/api_keys/%s", keys[0].id);
    fixture_call(&fixture, 0,
                 &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret}, &answer);
    cr_assert_eq(answer.status, 200, "%s", answer.body);
    redis_proxy_hold(proxy, 0, REDIS_PROXY_READS, REDIS_PROXY_TO_NODE, false);
    cr_assert_eq(http_client_read(&client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_str_eq(code_at(&answer, 0), "api_key_revoked", "%s", answer.body);
    cr_expect_str_eq(code_at(&answer, 1), "ok", "%s", answer.body);
    http_client_close(&client);
    fixture_stop(&fixture);
    redis_proxy_stop(proxy);
}

/* Without a cache, it asks about each good key twice. */
Test(batch, what_is_asked_again_is_one_use)
{
    struct http_answer answer;
    struct fixture fixture;
    long before;

    fixture_start(&fixture, 1, (const char *const[]){"--lease-ms", "0", NULL});
    before = fixture_metric(&fixture, 0, ACCEPTED);
    begin_body();
    for (int i = 0; i < 3; i++)
        add_asking(&(struct asking){.key = fixture.manager.secret});
    cr_expect_eq(post(&fixture, 0, &answer), 200, "%s", answer.body);
    expect_codes(&answer, 3, "ok");
    cr_expect_eq(fixture_metric(&fixture, 0, ACCEPTED), before + 3);
    fixture_stop(&fixture);
}

/* What needs no store is decided all the same. */
Test(batch, a_lookup_that_fails_is_null_in_its_place)
{
    struct http_answer answer;
    struct fixture fixture;

    asking_start_without_store(&fixture);
    begin_body();
    add_text(GARBAGE);
    add_asking(&(struct asking){.key = fixture.manager.secret});
    add_asking(&(struct asking){.key = fixture.manager.secret, .path = "/other"});
    cr_expect_eq(post(&fixture, 0, &answer), 200, "%s", answer.body);
    cr_expect_str_eq(code_at(&answer, 0), "invalid_api_key");
    cr_expect(strstr(answer.body, ",{\"valid\":null,\"code\":\"store_unavailable\"},"), "%s", answer.body);
    cr_expect_str_eq(code_at(&answer, 2), "not_found");
    redis_server_restart(&fixture.redis);
    fixture_stop(&fixture);
}

enum { IN_BATCH = 8 };

static void prepare(const char *secret, const char *other, struct http_call *call)
{
    begin_body();
    for (size_t i = 0; i < IN_BATCH; i++)
        add_asking(&(struct asking){.key = i % 2 == 0 ? secret : other, .path = "/v1/patients"});
    end_body();
    call->json = body;
}

static size_t count_good(const struct http_answer *answer)
{
    size_t good = 0;

    for (size_t i = 0; i < IN_BATCH; i++) {
        const char *code = code_at(answer, i);

        cr_assert(strcmp(code, "ok") == 0 || (i % 2 == 0 && strcmp(code, "api_key_revoked") == 0), "%zu: %s", i, code);
        good += i % 2 == 0 && strcmp(code, "ok") == 0;
    }
    return good;
}

Test(batch, none_is_accepted_once_the_revocation_is_answered)
{
    asking_race(&(struct asking_race){"/check/batch", prepare, count_good});
}

/* A caller that has left is neither answered nor counted on; the node goes on. */
Test(batch, a_caller_may_leave)
{
    struct http_client client;
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    begin_body();
    for (size_t i = 0; i < CHECKS_MAX; i++)
        add_asking(&(struct asking){.key = fixture.manager.secret});
    end_body();
    for (int times = 0; times < 20; times++) {
        http_client_connect(&client, fixture.nodes[0].internal_port);
        http_client_send_call(&client, &(struct http_call){.method = "POST", .target = "/check/batch", .json = body});
        http_client_reset(&client);
    }
    cr_expect_eq(asking_post(&fixture, 0, "/check/batch", body, &answer), 200, "%s", answer.body);
    fixture_stop(&fixture);
}
