/* The clock of a node's machine is set, alone or together with Redis'. Links, sessions and people have times of Redis'
 * clock in their seals, so the node must know it. */
#include "base/clock.h"
#include "cli.h"
#include "deadline.h"
#include "leak_guard.h"
#include "losses.h"
#include "people.h"
#include "records/link_store.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(clocks, .fini = leak_guard, .timeout = TEST_WITHIN_S);

/* STEP_S: more than scripts accept; sessions and step-ups live on. */
enum { HOUR_S = 3600, STEP_S = 60, CODE_S = 30, TURNS = 5, LOOKS = 4 };

static struct clock_file machine; /* of the node, and of Redis after start_on_one_machine() */

static void start_on_one_machine(struct people *people)
{
    fixture_use_one_redis("the test sets the clock of one server");
    clock_file_make(&machine, 0);
    clock_file_begin(&machine, NULL);
    people_start(people, 0, NULL);
    clock_file_end();
    fixture_add_node_by_clock(&people->fixture, &machine, NULL);
}

static void stop(struct fixture *fixture)
{
    fixture_stop(fixture);
    clock_file_remove(&machine);
}

/* The link's times are those of Redis' clock. */
static void expect_made_now(const struct fixture *fixture, const struct http_answer *answer)
{
    char now[64], at[CLOCK_RFC3339_BYTES];
    int64_t expires_ms = 0;

    cr_assert(http_answer_json(answer, "expires_at", at, sizeof at), "%s", answer->body);
    cr_assert(clock_read_rfc3339(text_of(at), &expires_ms), "%s", at);
    redis_server_ask(&fixture->redis, now, sizeof now, "TIME", NULL);
    long long apart_ms = expires_ms - LINK_LIFETIME_MS - strtoll(now, NULL, 10) * 1000;
    cr_expect(llabs(apart_ms) < PATIENCE_MS, "%s: by Redis' clock %lld ms off", at, apart_ms);
}

static void invite(const struct fixture *fixture, int number)
{
    struct http_answer answer;
    char body[80];

    snprintf(body, sizeof body, "{\"email\":\"user%d@north.example\",\"role\":\"auditor\"}", number);
    const struct http_call call = {
        .method = "POST", .target = "/v1/team/invitations", .bearer = fixture->manager.secret, .json = body};
    cr_assert_eq(fixture_call(fixture, 0, &call, &answer), 201, "%s", answer.body);
    expect_made_now(fixture, &answer);
}

static void set_to_and_fro(const struct fixture *fixture)
{
    for (int i = 0; i < TURNS; i++) {
        clock_file_set(&machine, i % 2 ? 0 : -HOUR_S);
        invite(fixture, i);
    }
}

Test(clocks, one_that_is_set_alone_refuses_nobody_and_is_told)
{
    struct fixture fixture;

    fixture_start(&fixture, 0, NULL);
    fixture_add_node_with_clock(&fixture, &machine, 0, NULL);
    set_to_and_fro(&fixture);
    losses_await_status(&fixture, LOSSES[LOSS_CLOCK].sentence);
    char *log = node_log(&fixture.nodes[0]);
    const char *told = strstr(log, LOSSES[LOSS_CLOCK].message);
    cr_expect(told && strstr(told, " set_by_ms=-3"), "%s", log);
    cr_expect_null(strstr(log, "user_script"), "%s", log);
    free(log);
    stop(&fixture);
}

/* The node glances at Redis about as often as it compares the clocks. */
static void await_looks(const struct fixture *fixture)
{
    static const char CALLS[] = "cmdstat_config|get:calls=";
    static char info[1 << 16];
    struct deadline deadline = deadline_in(PATIENCE_MS);
    long first = -1, now = 0;

    while (first < 0 || now < first + LOOKS) {
        redis_server_ask(&fixture->redis, info, sizeof info, "INFO", "commandstats", NULL);
        const char *calls = strstr(info, CALLS);
        cr_assert(calls, "%s", info);
        now = strtol(calls + sizeof CALLS - 1, NULL, 10);
        first = first < 0 ? now : first;
        cr_assert_gt(deadline_left_ms(deadline), 0);
        poll(NULL, 0, 50);
    }
}

static void expect_not_told(const struct fixture *fixture)
{
    char *log = node_log(&fixture->nodes[0]);

    cr_expect_null(strstr(log, LOSSES[LOSS_CLOCK].message), "%s", log);
    free(log);
    cr_expect_eq(fixture_metric(fixture, 0, "chatelaine_clock_wrong"), 0);
}

Test(clocks, set_together_they_refuse_nobody_and_nothing_is_told)
{
    struct people people;

    start_on_one_machine(&people);
    set_to_and_fro(&people.fixture);
    await_looks(&people.fixture);
    expect_not_told(&people.fixture);
    stop(&people.fixture);
}

/* Both are set forward. Returns by how many codes of an authenticator. */
static int step(void)
{
    static int ahead_s;

    ahead_s += STEP_S;
    clock_file_set(&machine, ahead_s);
    return ahead_s / CODE_S;
}

static void sign_in(struct people *people, const struct fixture_user *user, struct fixture_session *ret_session)
{
    struct http_answer answer;
    char code[8];

    fixture_totp(user, step(), code);
    cr_assert_eq(fixture_login(&people->fixture, 0, user, FIXTURE_PASSWORD, code, ret_session, &answer), 200, "%s",
                 answer.body);
}

/* name: how the body calls the password; a new one comes with it if it is the current one. */
static void prove(const struct people *people, const struct fixture_user *user, struct fixture_session *session,
                  const char *target, const char *name)
{
    struct http_answer answer;
    char body[256], code[8];

    fixture_totp(user, step(), code);
    snprintf(body, sizeof body, "{\"%s\":\"" FIXTURE_PASSWORD "\",\"totp\":\"%s\"%s}", name, code,
             strcmp(name, "password") == 0 ? "" : ",\"new_password\":\"quite-Another-battery-7\"");
    cr_assert_eq(people_ask(people, 0, session, "POST", target, body, &answer), 200, "%s: %s", target, answer.body);
    cr_assert(fixture_read_cookie(&answer, session->token));
}

Test(clocks, set_together_they_refuse_no_sign_in_and_no_change_of_people)
{
    struct fixture_user ada, bob, eve;
    struct fixture_session session = {0};
    struct http_answer answer;
    struct people people;

    start_on_one_machine(&people);
    fixture_add_member(&people.fixture, NULL, "ada@north.example", ROLE_DEVELOPER, &ada);
    fixture_add_person(&people.fixture, NULL, "bob@north.example", ROLE_AUDITOR, &bob);
    fixture_add_person(&people.fixture, NULL, "eve@north.example", ROLE_AUDITOR, &eve);
    (void)step();
    cr_expect_eq(people_change(&people, 0, &bob, "POST", "/disable", "{}", &answer), 200, "%s", answer.body);
    (void)step();
    cr_expect_eq(people_change(&people, 0, &eve, "POST", "/reset", NULL, &answer), 200, "%s", answer.body);
    expect_made_now(&people.fixture, &answer);
    sign_in(&people, &ada, &session);
    prove(&people, &ada, &session, "/v1/console/step_up", "password");
    prove(&people, &ada, &session, "/v1/console/password", "current_password");
    cr_expect_eq(people_ask(&people, 0, &session, "GET", "/v1/console/session", NULL, &answer), 200, "%s", answer.body);
    expect_not_told(&people.fixture);
    stop(&people.fixture);
}
