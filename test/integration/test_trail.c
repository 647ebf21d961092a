/* The audit trail as files: whole from any node, and broken off once the credential has ended. */
#include "fixture.h"
#include "leak_guard.h"
#include "leases.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

TestSuite(trail, .fini = leak_guard, .timeout = TEST_WITHIN_S);

#define NDJSON "Accept: application/x-ndjson\r\n"

/* Writes that many events of live keys, far more than sockets hold. */
static void add_many(const struct fixture *fixture, unsigned count)
{
    static const char SCRIPT[] =
        "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], i .. '-0', 'type', 'api_key.created', 'actor', 'operator', "
        "'target', ('x'):rep(300), 'ip', '', 'request_id', '') end return 1";
    char name[96], count_text[16];

    snprintf(name, sizeof name, "%sacct:%s:audit:live", fixture_name(fixture->account, ""), fixture->account);
    snprintf(count_text, sizeof count_text, "%u", count);
    redis_server_tell(&fixture->redis, "EVAL", SCRIPT, "1", name, count_text, NULL);
    leases_await_all(fixture); /* they may have ended meanwhile */
}

/* Begins an export and reads its head. Returns the status. */
static int begin_export(const struct fixture *fixture, size_t node, const struct fixture_key *key,
                        struct http_client *client)
{
    struct http_answer answer;

    http_client_connect(client, fixture->nodes[node].port);
    http_client_send_call(client, &(struct http_call){.target = "/v1/audit", .bearer = key->secret, .fields = NDJSON});
    cr_assert_eq(http_client_read(client, true, PATIENCE_MS, &answer), HTTP_CLIENT_ANSWER);
    return answer.status;
}

/* Reads to the end of the connection; whether a last chunk came before it. */
static bool ends_whole(struct http_client *client)
{
    static char bytes[65536];
    char end[5] = "";
    ssize_t got;

    while ((got = recv(client->fd, bytes, sizeof bytes, 0)) > 0)
        if (got >= 5)
            memcpy(end, bytes + got - 5, 5);
    return got == 0 && memcmp(end, "0\r\n\r\n", 5) == 0;
}

/* It may have been told to keep fewer than the nodes keep, or nothing. */
Test(trail, a_command_drops_no_events)
{
    enum { EVENTS = 1000 };
    static const char SCRIPT[] =
        "for i = 1, 1000 do redis.call('XADD', KEYS[1], '*', 'type', 'user.login') end return 1";
    struct fixture fixture;
    struct fixture_key key;
    char trail[96];

    fixture_start(&fixture, 1, NULL);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_PATIENTS_READ, &key);
    snprintf(trail, sizeof trail, "acct:%s:audit", fixture.account);
    redis_server_tell(&fixture.redis, "EVAL", SCRIPT, "1", fixture_name(fixture.account, trail), NULL);
    cr_assert_geq(fixture_sum(&fixture, "XLEN", trail), EVENTS);
    cr_assert_eq(fixture_run(&fixture, (const char *const[]){"key", "revoke", "--audit-max", "100", key.id, NULL}, NULL,
                             NULL, NULL),
                 0);
    cr_expect_gt(fixture_sum(&fixture, "XLEN", trail), EVENTS, "the command's own event is there, too");
    fixture_stop(&fixture);
}

Test(trail, an_export_from_another_node_has_everything_once)
{
    enum { EVENTS = 350 };
    struct http_answer answer;
    struct fixture fixture;
    size_t lines = 0;
    char *previous = NULL;

    fixture_start(&fixture, 2, NULL);
    add_many(&fixture, EVENTS);
    cr_assert_eq(fixture_call(&fixture, 1,
                              &(struct http_call){.target = "/v1/audit?until=2000-01-01T00:00:00Z",
                                                  .bearer = fixture.manager.secret,
                                                  .fields = "Accept: text/csv\r\n"},
                              &answer),
                 200);
    for (char *rest = strstr(answer.body, "\r\n") + 2, *line; (line = strsep(&rest, "\n")) && *line; lines++) {
        cr_assert_eq(strncmp(line, "evt_", 4), 0, "%s", line);
        cr_assert(!previous || strncmp(previous, line, ID_TEXT_BYTES - 2) > 0, "newest first, none twice: %s", line);
        previous = line;
    }
    cr_expect_eq(lines, EVENTS);
    fixture_stop(&fixture);
}

Test(trail, names_are_no_formulas)
{
    struct http_answer answer;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    cr_assert_eq(fixture_call(&fixture, 0,
                              &(struct http_call){.method = "POST",
                                                  .target = "/v1/api_keys",
                                                  .bearer = fixture.manager.secret,
                                                  .json = "{\"name\":\"=1+1,\\\"\",\"mode\":\"test\"}"},
                              &answer),
                 201);
    cr_assert_eq(fixture_call(&fixture, 0,
                              &(struct http_call){.target = "/v1/audit",
                                                  .bearer = fixture.manager.secret,
                                                  .fields = "Accept: text/csv\r\n"},
                              &answer),
                 200);
    cr_expect(strstr(answer.body, ",api_key,\"'=1+1,\"\"\","), "%s", answer.body);
    fixture_stop(&fixture);
}

Test(trail, an_export_breaks_off_once_its_key_is_revoked)
{
    static struct http_client client;
    struct http_answer answer;
    struct fixture fixture;
    struct fixture_key key;
    char target[64];

    fixture_start(&fixture, 2, NULL);
    add_many(&fixture, 30000);
    fixture_add_key(&fixture, NULL, KEY_API, MODE_LIVE, SCOPE_AUDIT_READ, &key);
    cr_assert_eq(begin_export(&fixture, 1, &key, &client), 200);
    snprintf(target, sizeof target, "/v1/api_keys/%s", key.id);
    cr_assert_eq(
        fixture_call(&fixture, 0,
                     &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret},
                     &answer),
        200);
    cr_expect_not(ends_whole(&client));
    http_client_close(&client);
    fixture_stop(&fixture);
}

Test(trail, an_export_breaks_off_when_redis_is_lost)
{
    static struct http_client client;
    struct fixture fixture;

    fixture_start(&fixture, 1, NULL);
    add_many(&fixture, 30000);
    cr_assert_eq(begin_export(&fixture, 0, &fixture.manager, &client), 200);
    redis_server_kill(&fixture.redis);
    cr_expect_not(ends_whole(&client));
    http_client_close(&client);
    fixture_stop(&fixture);
}

/* Exports that nobody reads keep their places. */
Test(trail, an_account_has_two_exports_at_a_time)
{
    static struct http_client clients[3];
    struct http_answer answer;
    struct fixture fixture;
    struct deadline deadline = deadline_in(PATIENCE_MS);
    int status;

    fixture_start(&fixture, 1, NULL);
    add_many(&fixture, 30000);
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(begin_export(&fixture, 0, &fixture.manager, &clients[i]), 200);
    cr_expect_eq(begin_export(&fixture, 0, &fixture.manager, &clients[2]), 429);
    cr_expect_eq(fixture_call(&fixture, 0, &(struct http_call){.target = "/v1/audit", .bearer = fixture.manager.secret},
                              &answer),
                 200, "pages are served meanwhile");
    http_client_close(&clients[2]);
    http_client_reset(&clients[0]);
    do {
        status = begin_export(&fixture, 0, &fixture.manager, &clients[2]);
        if (status != 200)
            http_client_close(&clients[2]);
    } while (status != 200 && deadline_left_ms(deadline) > 0);
    cr_expect_eq(status, 200, "a place is given back");
    for (size_t i = 0; i < 3; i++)
        http_client_close(&clients[i]);
    fixture_stop(&fixture);
}
