/* Watching revocations: what gateways and backends with long requests are told, in order, and nothing left out. */
#include "base/clock.h"
#include "cli.h"
#include "leak_guard.h"
#include "leases.h"
#include "watch_stream.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Watchers are told of the canary's keys like of any other; tests count what they are told. */
static void without_canary(void)
{
    setenv("CHATELAINE_CANARY_INTERVAL_MS", "0", 1);
}

TestSuite(watch, .init = without_canary, .fini = leak_guard, .timeout = TEST_WITHIN_S);

static void end_key(const struct fixture *fixture, size_t node, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    cr_assert_eq(fixture_call(fixture, node, &call, &answer), 200, "%s", answer.body);
}

static void add(struct fixture *fixture, const char *account, struct fixture_key *keys, size_t count)
{
    fixture_open_store(fixture);
    for (size_t i = 0; i < count; i++)
        fixture_add_key(fixture, account, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &keys[i]);
    fixture_close_store(fixture);
}

static void change_account(struct fixture *fixture, const char *what)
{
    struct cli_run run;

    RUN(fixture, &run, "account", what, fixture->account);
    cr_assert_eq(run.exit_code, 0, "%s", run.err);
    cli_finish(&run);
}

static void await_watchers(const struct fixture *fixture, size_t node, long wanted)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(fixture, node, "chatelaine_watchers") != wanted) {
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 20);
    }
}

Test(watch, tells_of_keys_devices_lists_and_accounts)
{
    struct fixture fixture;
    struct fixture_key keys[3], device;
    struct watch_stream streams[2];
    struct watch_event event;
    struct http_answer answer;
    char json[256];

    fixture_start(&fixture, 2, NULL);
    add(&fixture, NULL, keys, 3);
    fixture_add_key(&fixture, NULL, KEY_DEVICE, MODE_LIVE, SCOPE_DOCUMENTS_WRITE, &device);
    for (size_t i = 0; i < 2; i++)
        watch_begin_at(&streams[i], &fixture, i, "");
    end_key(&fixture, 0, &keys[0]);
    end_key(&fixture, 1, &keys[0]); /* again: nothing new */
    fixture_revoke_key(&fixture, &device);
    snprintf(json, sizeof json, "{\"ids\":[\"%s\",\"%s\"]}", keys[1].id, keys[2].id);
    struct http_call call = {
        .method = "POST", .target = "/v1/api_keys/revoke", .bearer = fixture.manager.secret, .json = json};
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    change_account(&fixture, "suspend");
    change_account(&fixture, "resume");
    for (size_t i = 0; i < 2; i++) {
        watch_next(&streams[i], &event);
        cr_expect_str_eq(event.name, "revoked");
        snprintf(json, sizeof json, "{\"id\":\"%s\",\"kind\":\"api_key\",\"account\":\"%s\",\"revoked_at\":\"20",
                 keys[0].id, fixture.account);
        cr_expect(strncmp(event.data, json, strlen(json)) == 0, "%s", event.data);
        watch_next(&streams[i], &event);
        cr_expect(strstr(event.data, device.id) && strstr(event.data, "\"kind\":\"device_key\""), "%s", event.data);
        watch_expect(&streams[i], "revoked", keys[1].id);
        watch_expect(&streams[i], "revoked", keys[2].id);
        watch_next(&streams[i], &event);
        cr_expect_str_eq(event.name, "suspended");
        cr_expect(strstr(event.data, "\"kind\":\"account\"") && strstr(event.data, "\"suspended_at\":\"20"), "%s",
                  event.data);
        watch_expect(&streams[i], "resumed", fixture.account);
        watch_await_current(&streams[i]);
        watch_close(&streams[i]);
    }
    await_watchers(&fixture, 0, 0);
    fixture_stop(&fixture);
}

/* A node that is killed in between, too: what happened meanwhile comes from the other one. */
Test(watch, resumes_at_any_node)
{
    struct fixture fixture;
    struct fixture_key keys[3];
    struct watch_stream stream;
    char field[WATCH_EVENT_BYTES + 32];

    fixture_start(&fixture, 2, NULL);
    add(&fixture, NULL, keys, 3);
    watch_begin_at(&stream, &fixture, 1, "");
    end_key(&fixture, 0, &keys[0]);
    watch_expect(&stream, "revoked", keys[0].id);
    node_kill(&fixture.nodes[1]);
    watch_expect_end(&stream);
    end_key(&fixture, 0, &keys[1]);
    watch_begin_at(&stream, &fixture, 0, watch_since(&stream));
    watch_expect(&stream, "revoked", keys[1].id);
    watch_close(&stream);
    end_key(&fixture, 0, &keys[2]);
    /* A browser's EventSource repeats the query that it began with. */
    snprintf(field, sizeof field, "Last-Event-ID: %s\r\n", stream.cursor);
    cr_assert_eq(watch_open(&stream, &fixture, 0, "", field), 200);
    struct watch_event event;
    watch_next(&stream, &event);
    cr_expect_str_eq(event.name, "ready");
    watch_expect(&stream, "revoked", keys[2].id);
    watch_await_current(&stream);
    watch_close(&stream);
    fixture_stop(&fixture);
}

/* Each partition has a log of its own. */
Test(watch, covers_all_partitions)
{
    enum { PARTITIONS = 4 };
    struct fixture fixture;
    struct fixture_key keys[PARTITIONS][2];
    struct watch_stream stream;
    char account[ID_TEXT_BYTES];

    if (fixture_in_cluster())
        cr_skip_test("partitions are counted here");
    setenv("CHATELAINE_PARTITIONS", "4", 1);
    fixture_start(&fixture, 1, NULL);
    watch_begin_at(&stream, &fixture, 0, "");
    for (unsigned i = 0; i < PARTITIONS; i++) {
        fixture_add_account_in(&fixture, i, account);
        add(&fixture, account, keys[i], 2);
        fixture_revoke_key(&fixture, &keys[i][0]);
        watch_expect(&stream, "revoked", keys[i][0].id);
    }
    watch_close(&stream);
    for (unsigned i = 0; i < PARTITIONS; i++)
        fixture_revoke_key(&fixture, &keys[i][1]);
    watch_begin_at(&stream, &fixture, 0, watch_since(&stream));
    for (unsigned i = 0, found = 0; i < PARTITIONS; i++) {
        struct watch_event event;

        watch_next(&stream, &event);
        cr_expect_str_eq(event.name, "revoked");
        for (unsigned k = 0; k < PARTITIONS; k++)
            found |= strstr(event.data, keys[k][1].id) ? 1U << k : 0;
        cr_expect(i < PARTITIONS - 1 || found == (1U << PARTITIONS) - 1, "%x", found);
    }
    watch_await_current(&stream);
    watch_close(&stream);
    fixture_stop(&fixture);
}

static void expect_gap(struct watch_stream *stream)
{
    struct watch_event event;

    watch_next(stream, &event);
    cr_expect_str_eq(event.name, "gap");
    cr_expect(event.id[0]);
}

static void expect_gap_then(struct watch_stream *stream, struct fixture *fixture, struct fixture_key *key)
{
    watch_begin_at(stream, fixture, 0, watch_since(stream));
    expect_gap(stream);
    end_key(fixture, 0, key);
    watch_expect(stream, "revoked", key->id);
    watch_close(stream);
}

Test(watch, tells_of_a_gap)
{
    struct fixture fixture;
    struct fixture_key keys[6];
    struct watch_stream before, stream;

    fixture_start(&fixture, 1, NULL);
    add(&fixture, NULL, keys, 6);
    watch_begin_at(&before, &fixture, 0, "");
    watch_close(&before);
    watch_begin_at(&stream, &fixture, 0, "");
    for (size_t i = 0; i < 2; i++) {
        end_key(&fixture, 0, &keys[i]);
        watch_expect(&stream, "revoked", keys[i].id);
    }
    watch_close(&stream);
    end_key(&fixture, 0, &keys[2]);
    /* Both cursors lead to entries that are cut off: one in the log, one from before it. */
    redis_server_tell(&fixture.redis, "XTRIM", fixture_name(fixture.account, "inv_log"), "MAXLEN", "1", NULL);
    expect_gap_then(&stream, &fixture, &keys[3]);
    memcpy(&stream, &before, sizeof stream);
    expect_gap_then(&stream, &fixture, &keys[4]);
    /* Of another store: the first characters are of its id. */
    stream.cursor[4] = stream.cursor[4] == 'A' ? 'B' : 'A';
    expect_gap_then(&stream, &fixture, &keys[5]);
    fixture_stop(&fixture);
}

/* The time of a revocation, its withdrawal, and then the revocation itself. */
Test(watch, tells_of_schedules)
{
    struct fixture fixture;
    struct fixture_key key;
    struct fixture_session session;
    struct watch_stream stream;
    struct http_answer answer;
    char target[128], at[CLOCK_RFC3339_BYTES], json[64];

    fixture_start(&fixture, 1, NULL);
    add(&fixture, NULL, &key, 1);
    fixture_add_session(&fixture, &fixture.user, true, &session);
    watch_begin_at(&stream, &fixture, 0, "");
    snprintf(target, sizeof target, "/v1/console/api_keys/%s/scheduled_revocation", key.id);
    struct http_call call = {
        .method = "PUT", .target = target, .cookie = session.token, .csrf = session.csrf, .json = json};
    clock_print_rfc3339(clock_wall_ms() + (int64_t)30 * 24 * 60 * 60 * 1000, at);
    snprintf(json, sizeof json, "{\"revoke_at\":\"%s\"}", at);
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    struct watch_event event;
    watch_next(&stream, &event);
    cr_expect_str_eq(event.name, "scheduled");
    cr_expect(strstr(event.data, key.id) && strstr(event.data, at), "%s: %s", at, event.data);
    call.method = "DELETE";
    call.json = NULL;
    cr_assert_eq(fixture_call(&fixture, 0, &call, &answer), 200, "%s", answer.body);
    watch_expect(&stream, "unscheduled", key.id);
    fixture_end_soon(&fixture, 0, &key);
    watch_expect(&stream, "scheduled", key.id);
    watch_expect(&stream, "revoked", key.id);
    watch_close(&stream);
    fixture_stop(&fixture);
}

/* What a later version logs may mean anything. */
Test(watch, tells_of_a_gap_for_what_it_cannot_read)
{
    struct fixture fixture;
    struct fixture_key key;
    struct watch_stream stream;

    fixture_start(&fixture, 1, NULL);
    add(&fixture, NULL, &key, 1);
    watch_begin_at(&stream, &fixture, 0, "");
    const char *log = fixture_name(fixture.account, "inv_log");
    redis_server_tell(&fixture.redis, "XADD", log, "*", "account", fixture.account, "state", "sold", NULL);
    redis_server_tell(&fixture.redis, "XADD", log, "*", "key", "00", "id", fixture.manager.id, "account",
                      fixture.account, "at", "4102444800000", NULL);
    end_key(&fixture, 0, &key);
    expect_gap(&stream);
    struct watch_event event;
    watch_next(&stream, &event);
    cr_expect_str_eq(event.name, "scheduled");
    cr_expect(strstr(event.data, fixture.manager.id) &&
                  strstr(event.data, "\"revoked_at\":\"2100-01-01T00:00:00.000Z\""),
              "%s", event.data);
    watch_expect(&stream, "revoked", key.id);
    watch_close(&stream);
    fixture_stop(&fixture);
}

static const char *const FEW[] = {"--watchers-max", "1", "--lease-ms", "500", NULL};

Test(watch, refuses_what_it_cannot_serve)
{
    static const struct {
        const char *method, *target;
        int status;
    } CASES[] = {
        {"GET", "/check/watch?since=", 400},    {"GET", "/check/watch?since=AAAA", 400},
        {"GET", "/check/watch?sinc=AAAA", 400}, {"GET", "/check/watch?since=Zm9v&since=Zm9v", 400},
        {"POST", "/check/watch", 405},          {"GET", "/check/watch/anything", 404},
    };
    static const char *const OFF[][3] = {{"--lease-ms", "0"}, {"--watchers-max", "0"}};
    struct fixture fixture;
    struct watch_stream first, second;
    struct http_answer answer;

    fixture_start(&fixture, 1, FEW);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct http_call call = {.method = CASES[i].method, .target = CASES[i].target};

        cr_expect_eq(http_call(fixture.nodes[0].internal_port, &call, &answer), CASES[i].status, "%s: %s", call.target,
                     answer.body);
    }
    struct http_call outside = {.target = "/check/watch"};
    cr_expect_eq(fixture_call(&fixture, 0, &outside, &answer), 404);
    watch_begin_at(&first, &fixture, 0, "");
    cr_expect_eq(watch_open(&second, &fixture, 0, "", ""), 503);
    watch_close(&second);
    watch_close(&first);
    await_watchers(&fixture, 0, 0);
    watch_begin_at(&second, &fixture, 0, "");
    watch_close(&second);
    for (size_t i = leases_are_required(); i < 2; i++) {
        fixture_add_node(&fixture, OFF[i]);
        cr_expect_eq(watch_open(&second, &fixture, fixture.node_count - 1, "", ""), 404);
        watch_close(&second);
    }
    fixture_stop(&fixture);
}

/* `current` says that nothing is missing, so there is none while nodes cannot know. */
Test(watch, is_current_only_under_a_lease)
{
    struct fixture fixture;
    struct fixture_key key;
    struct watch_stream stream;
    struct watch_event event;

    fixture_use_one_redis("it is frozen");
    fixture_start(&fixture, 1, (const char *const[]){"--lease-ms", "500", "--redis-timeout-ms", "1s", NULL});
    add(&fixture, NULL, &key, 1);
    watch_begin_at(&stream, &fixture, 0, "");
    do
        cr_assert(watch_try_next(&stream, PATIENCE_MS, &event));
    while (strcmp(event.name, "current") != 0);
    redis_server_freeze(&fixture.redis);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (watch_try_next(&stream, 1500, &event)) {
        cr_assert_str_eq(event.name, "current");
        cr_assert_gt(deadline_left_ms(deadline), 0, "it stays current without a lease");
    }
    redis_server_thaw(&fixture.redis);
    fixture_await_all_ready(&fixture, 0);
    struct http_answer answer;
    char target[96];
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture.manager.secret};
    deadline = deadline_in(PATIENCE_MS);
    while (fixture_call(&fixture, 0, &call, &answer) != 200)
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", answer.body);
    watch_expect(&stream, "revoked", key.id);
    do
        cr_assert(watch_try_next(&stream, PATIENCE_MS, &event));
    while (strcmp(event.name, "current") != 0);
    cr_expect(strncmp(event.data, "{\"valid_ms\":", 12) == 0, "%s", event.data);
    watch_close(&stream);
    fixture_stop(&fixture);
}

/* Its connection is reset. A node without Redis has said nothing wrong meanwhile. */
Test(watch, hears_what_was_revoked_while_its_node_heard_nothing)
{
    struct fixture fixture;
    struct fixture_key key;
    struct watch_stream stream;

    fixture_use_one_redis("connections are counted");
    fixture_start(&fixture, 2, NULL);
    add(&fixture, NULL, &key, 1);
    watch_begin_at(&stream, &fixture, 1, "");
    kill(fixture.nodes[1].process.pid, SIGSTOP);
    redis_server_tell(&fixture.redis, "CLIENT", "KILL", "TYPE", "pubsub", NULL);
    end_key(&fixture, 0, &key);
    kill(fixture.nodes[1].process.pid, SIGCONT);
    watch_expect(&stream, "revoked", key.id);
    watch_close(&stream);
    fixture_stop(&fixture);
}

Test(watch, ends_when_its_node_drains)
{
    struct fixture fixture;
    struct watch_stream stream;
    struct watch_event event;

    fixture_start(&fixture, 1, NULL);
    watch_begin_at(&stream, &fixture, 0, "");
    kill(fixture.nodes[0].process.pid, SIGTERM);
    watch_next(&stream, &event);
    cr_expect_str_eq(event.name, "closing");
    cr_expect_str_eq(event.data, "{\"reason\":\"draining\"}");
    watch_expect_end(&stream);
    node_expect_clean_end(&fixture.nodes[0]);
    fixture_stop(&fixture);
}

/* More than the buffers of a connection hold, and fewer than the log keeps. */
#define FLOOD "for i = 1, 95000 do redis.call('XADD', KEYS[1], '*', 'key', '00', 'id', ARGV[1], 'account', ARGV[2]) end"

Test(watch, cuts_off_a_watcher_that_does_not_read)
{
    struct fixture fixture;
    struct fixture_key key;
    struct watch_stream slow, quick;

    fixture_start(&fixture, 1, (const char *const[]){"--write-timeout-ms", "5s", NULL});
    add(&fixture, NULL, &key, 1);
    watch_begin_at(&slow, &fixture, 0, "");
    watch_begin_at(&quick, &fixture, 0, "");
    int bytes = 4096;
    cr_assert_eq(setsockopt(slow.client.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes), 0);
    redis_server_tell(&fixture.redis, "EVAL", FLOOD, "1", fixture_name(fixture.account, "inv_log"), fixture.manager.id,
                      fixture.account, NULL);
    end_key(&fixture, 0, &key);
    for (size_t i = 0; i < 95000; i++)
        watch_expect(&quick, "revoked", fixture.manager.id);
    watch_expect(&quick, "revoked", key.id);
    await_watchers(&fixture, 0, 1);
    watch_close(&quick);
    watch_close(&slow);
    fixture_stop(&fixture);
}

/* Acknowledging */

/* So long that a revocation that waits for it is told from one that does not. */
static const char *const LEASE_4000[] = {"--lease-ms", "4000", NULL};
/* The same for a test that lets much happen before it acknowledges. */
static const char *const LEASE_8000[] = {"--lease-ms", "8000", NULL};

static int acknowledge(const struct fixture *fixture, size_t node, const char *watcher, const char *cursor)
{
    struct http_answer answer;
    char target[2 * WATCH_EVENT_BYTES];

    snprintf(target, sizeof target, "/check/watch/acknowledge?watcher=%s&cursor=%s", watcher, cursor);
    struct http_call call = {.method = "POST", .target = target};
    return http_call(fixture->nodes[node].internal_port, &call, &answer);
}

/* DELETE without waiting for the answer. */
static void begin_end(struct http_client *client, const struct fixture *fixture, size_t node,
                      const struct fixture_key *key)
{
    char target[96];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    struct http_call call = {.method = "DELETE", .target = target, .bearer = fixture->manager.secret};
    http_client_connect(client, fixture->nodes[node].port);
    http_client_send_call(client, &call);
}

static void expect_ended(struct http_client *client)
{
    struct http_answer answer;

    cr_assert_eq(http_client_read(client, false, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    cr_expect_eq(answer.status, 200, "%s", answer.body);
    http_client_close(client);
}

static bool is_answered(const struct http_client *client, int within_ms)
{
    struct pollfd readable = {.fd = client->fd, .events = POLLIN};

    return poll(&readable, 1, within_ms) > 0;
}

static long forced_waits(const struct fixture *fixture, size_t node)
{
    return fixture_metric(fixture, node, "chatelaine_barrier_forced_waits_total");
}

/* Barriers wait in full as long as their node's connections are younger than W, so they tell nothing before. */
static void start_two(struct fixture *fixture, const char *const *more, struct fixture_key *keys, size_t count)
{
    struct fixture_key first;

    fixture_start(fixture, 2, more);
    leases_await_all(fixture);
    add(fixture, NULL, &first, 1);
    add(fixture, NULL, keys, count);
    long before;
    struct deadline deadline = deadline_in(PATIENCE_MS);
    do {
        before = forced_waits(fixture, 0);
        end_key(fixture, 0, &first);
        cr_assert_gt(deadline_left_ms(deadline), 0);
    } while (forced_waits(fixture, 0) > before);
}

Test(watch, is_waited_for_until_it_acknowledges)
{
    struct fixture fixture;
    struct fixture_key keys[3];
    struct http_client clients[2];
    struct watch_stream stream, other;

    start_two(&fixture, LEASE_8000, keys, 3);
    watch_begin_at(&stream, &fixture, 1, "acknowledge=1");
    watch_begin_at(&other, &fixture, 1, "");
    long before = forced_waits(&fixture, 0);
    begin_end(&clients[0], &fixture, 0, &keys[0]);
    watch_expect(&stream, "revoked", keys[0].id);
    watch_expect(&other, "revoked", keys[0].id);
    begin_end(&clients[1], &fixture, 0, &keys[1]);
    watch_expect(&stream, "revoked", keys[1].id);
    cr_expect(!is_answered(&clients[0], 300) && !is_answered(&clients[1], 0), "it has not acknowledged");
    cr_expect_eq(fixture_try_key(&fixture, 1, keys[1].secret), 401, "the node itself has dropped the key at once");
    cr_expect_eq(acknowledge(&fixture, 1, other.watcher, other.cursor), 400, "this one was not asked to");
    cr_expect_eq(acknowledge(&fixture, 0, stream.watcher, stream.cursor), 404, "another node has it");
    cr_expect(!is_answered(&clients[0], 0));
    cr_expect_eq(acknowledge(&fixture, 1, stream.watcher, other.cursor), 204);
    expect_ended(&clients[0]);
    cr_expect(!is_answered(&clients[1], 300), "only the first was acknowledged");
    cr_expect_eq(acknowledge(&fixture, 1, stream.watcher, stream.cursor), 204);
    expect_ended(&clients[1]);
    end_key(&fixture, 0, &keys[0]); /* again: there is nothing to acknowledge */
    cr_expect_eq(forced_waits(&fixture, 0), before, "none waited for a lease");
    watch_await_current(&stream);
    watch_close(&other);
    watch_close(&stream);
    fixture_stop(&fixture);
}

static const char *const LEASE_500[] = {"--lease-ms", "500", NULL};

/* A watcher is late only if its node has told it in time. If not, there will be other revocations. */
static void await_late(struct fixture *fixture, struct watch_stream *stream)
{
    enum { STEP_MS = 100, LATE_MS = 3000 };
    struct deadline deadline = deadline_in(PATIENCE_MS), late = deadline_in(LATE_MS);
    struct fixture_key another;
    struct watch_event event;

    while (!watch_try_next(stream, STEP_MS, &event) || strcmp(event.name, "closing") != 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "it is never late");
        if (deadline_left_ms(late) > 0)
            continue;
        add(fixture, NULL, &another, 1);
        end_key(fixture, 0, &another);
        late = deadline_in(LATE_MS);
    }
    cr_expect_str_eq(event.data, "{\"reason\":\"late\"}");
}

Test(watch, is_waited_for_at_most_as_a_node_is)
{
    struct fixture fixture;
    struct fixture_key keys[3];
    struct watch_stream stream;

    start_two(&fixture, LEASE_500, keys, 3);
    watch_begin_at(&stream, &fixture, 1, "acknowledge=1");
    long before = forced_waits(&fixture, 0);
    end_key(&fixture, 0, &keys[0]);
    cr_expect_eq(forced_waits(&fixture, 0), before + 1);
    watch_expect(&stream, "revoked", keys[0].id);
    await_late(&fixture, &stream);
    watch_expect_end(&stream);
    cr_expect_eq(fixture_metric(&fixture, 1, "chatelaine_watchers_late_total"), 1);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    do {
        before = forced_waits(&fixture, 0);
        end_key(&fixture, 0, &keys[1]);
        cr_assert_gt(deadline_left_ms(deadline), 0, "it still holds up revocations");
    } while (forced_waits(&fixture, 0) > before);
    fixture_stop(&fixture);
}

/* Nobody knows what it still holds: neither of what it was told, nor of what is revoked after it has gone. */
Test(watch, that_is_gone_is_waited_for_like_a_node)
{
    struct fixture fixture;
    struct fixture_key keys[2];
    struct http_client client;
    struct watch_stream stream;

    start_two(&fixture, LEASE_4000, keys, 2);
    watch_begin_at(&stream, &fixture, 1, "acknowledge=1");
    long before = forced_waits(&fixture, 0);
    http_client_reset(&stream.client);
    await_watchers(&fixture, 1, 0);
    end_key(&fixture, 0, &keys[0]);
    cr_expect_eq(forced_waits(&fixture, 0), before + 1);
    watch_begin_at(&stream, &fixture, 1, "acknowledge=1");
    begin_end(&client, &fixture, 0, &keys[1]);
    watch_expect(&stream, "revoked", keys[1].id);
    http_client_reset(&stream.client);
    expect_ended(&client);
    cr_expect_eq(forced_waits(&fixture, 0), before + 2);
    fixture_stop(&fixture);
}

Test(watch, acknowledges_in_each_partition)
{
    struct fixture fixture;
    struct fixture_key keys[2];
    struct http_client client;
    struct watch_stream stream;
    char json[256];

    if (fixture_in_cluster())
        cr_skip_test("partitions are counted here");
    setenv("CHATELAINE_PARTITIONS", "4", 1);
    start_two(&fixture, LEASE_8000, keys, 2);
    watch_begin_at(&stream, &fixture, 1, "acknowledge=1");
    long before = forced_waits(&fixture, 0);
    snprintf(json, sizeof json, "{\"ids\":[\"%s\",\"%s\"]}", keys[0].id, keys[1].id);
    struct http_call call = {
        .method = "POST", .target = "/v1/api_keys/revoke", .bearer = fixture.manager.secret, .json = json};
    http_client_connect(&client, fixture.nodes[0].port);
    http_client_send_call(&client, &call);
    watch_expect(&stream, "revoked", keys[0].id);
    watch_expect(&stream, "revoked", keys[1].id);
    cr_expect(!is_answered(&client, 300));
    cr_expect_eq(acknowledge(&fixture, 1, stream.watcher, stream.cursor), 204);
    expect_ended(&client);
    cr_expect_eq(forced_waits(&fixture, 0), before);
    watch_close(&stream);
    fixture_stop(&fixture);
}

Test(watch, takes_no_acknowledgement_of_what_it_was_not_told)
{
    static const struct {
        const char *query;
        int status;
    } CASES[] = {
        {"", 400},
        {"?watcher=0123456789abcdef0123456789abcdef", 400},
        {"?watcher=0123456789abcdef0123456789abcdef&cursor=AQAAAAAAAAAAAAAA", 404},
        {"?watcher=0123456789abcdef0123456789abcdef&cursor=AQAAAAAAAAAAAAAA&more=1", 400},
    };
    struct fixture fixture;
    struct fixture_key key;
    struct watch_stream stream, ahead;
    struct http_answer answer;
    char target[160];

    fixture_start(&fixture, 1, LEASE_500);
    add(&fixture, NULL, &key, 1);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        snprintf(target, sizeof target, "/check/watch/acknowledge%s", CASES[i].query);
        struct http_call call = {.method = "POST", .target = target};
        cr_expect_eq(http_call(fixture.nodes[0].internal_port, &call, &answer), CASES[i].status, "%s: %s", target,
                     answer.body);
    }
    struct http_call get = {.target = "/check/watch/acknowledge"};
    cr_expect_eq(http_call(fixture.nodes[0].internal_port, &get, &answer), 405);
    cr_expect_eq(watch_open(&ahead, &fixture, 0, "acknowledge=2", ""), 400);
    watch_close(&ahead);
    watch_begin_at(&stream, &fixture, 0, "acknowledge=1");
    cr_expect_eq(acknowledge(&fixture, 0, stream.watcher, stream.cursor), 204, "again");
    cr_expect_eq(acknowledge(&fixture, 0, stream.watcher, "AQAAAAAAAAAAAAAA"), 400, "of another store");
    memcpy(ahead.cursor, stream.cursor, sizeof ahead.cursor);
    size_t last = strlen(ahead.cursor) - 1;
    ahead.cursor[last] = 'B'; /* the sequence of its last position */
    cr_expect_eq(acknowledge(&fixture, 0, stream.watcher, ahead.cursor), 400, "%s", ahead.cursor);
    watch_close(&stream);
    fixture_stop(&fixture);
}
