/* What operators are told of a store that has lost something: by 'doctor', 'status', 'store accept-loss' and /metrics.
 */
#include "cli.h"
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

TestSuite(loss_told, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { STEP_MS = 20 };

static struct fixture fixture;

static void start(void)
{
    fixture_use_one_redis("the files of one Redis are put back");
    fixture_start(&fixture, 1, (const char *const[]){"--lease-ms", "1000", NULL});
}

/* A command's exit status, and what it prints among the rest. */
static void expect(const char *const *args, int exit_code, const char *says, bool is_said)
{
    struct cli_run run;

    cli_run(&fixture, &run, args, NULL);
    cr_expect_eq(run.exit_code, exit_code, "%s: %d: %s%s", args[0], run.exit_code, run.out, run.err);
    cr_expect_eq(strstr(run.out, says) != NULL, is_said, "%s: %s: %s", args[0], says, run.out);
    cli_finish(&run);
}
#define EXPECT(exit_code, says, is_said, ...) expect((const char *const[]){__VA_ARGS__, NULL}, exit_code, says, is_said)

static void await_metric(const char *sample, long value)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fixture_metric(&fixture, 0, sample) != value) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s is not %ld", sample, value);
        poll(NULL, 0, STEP_MS);
    }
}

Test(loss_told, of_nothing)
{
    start();
    EXPECT(0, "0 missing", true, "doctor", "--public-origin", NODE_ORIGIN);
    fixture_run_until(&fixture, (const char *const[]){"status", "--json", NULL},
                      "\"missing_endings\":0,\"lost_changes\":0,\"members_of_earlier_versions\":0");
    EXPECT(0, "Accepted. Missing changes that ended something: 0, other lost changes: 0.", true, "store",
           "accept-loss");
    fixture_stop(&fixture);
}

Test(loss_told, of_changes_that_gave_something)
{
    struct fixture_key key;

    start();
    redis_server_keep(&fixture.redis);
    fixture_create_key(&fixture, 0, "{\"name\":\"a\",\"mode\":\"live\"}", &key);
    fixture_create_key(&fixture, 0, "{\"name\":\"b\",\"mode\":\"live\"}", &key);
    redis_server_put_back(&fixture.redis);
    fixture_await_key(&fixture, 0, fixture.manager.secret, 200);
    await_metric("chatelaine_store_lost_changes", 2);
    EXPECT(3, "2 lost", true, "doctor", "--public-origin", NODE_ORIGIN);
    EXPECT(3, "\"lost_changes\":2", true, "status", "--json");
    EXPECT(3, "lost changes: 0 that ended something, 2 others", true, "status");
    EXPECT(0, "{\"accepted\":true,\"missing_endings\":0,\"lost_changes\":2}", true, "store", "accept-loss", "--json");
    EXPECT(0, "0 lost", true, "doctor", "--public-origin", NODE_ORIGIN);
    await_metric("chatelaine_store_lost_changes", 0);
    fixture_stop(&fixture);
}

Test(loss_told, of_an_ending_that_nobody_can_repeat)
{
    struct fixture_session session;
    struct http_answer answer;

    start();
    fixture_add_session(&fixture, NULL, false, &session);
    redis_server_keep(&fixture.redis);
    cr_assert_eq(
        fixture_call(&fixture, 0,
                     &(struct http_call){
                         .method = "POST", .target = "/v1/auth/logout", .cookie = session.token, .csrf = session.csrf},
                     &answer),
        204, "%s", answer.body);
    redis_server_put_back(&fixture.redis);
    await_metric("chatelaine_store_missing_endings", 1);
    EXPECT(3, "1 missing", true, "doctor", "--public-origin", NODE_ORIGIN);
    EXPECT(3, "\"missing_endings\":1", true, "status", "--json");
    EXPECT(0, "Accepted. Missing changes that ended something: 1, other lost changes: 0.", true, "store",
           "accept-loss");
    fixture_await_key(&fixture, 0, fixture.manager.secret, 200);
    await_metric("chatelaine_store_missing_endings", 0);
    EXPECT(0, "0 missing", true, "doctor", "--public-origin", NODE_ORIGIN);
    fixture_stop(&fixture);
}

/* Everything that knew of the loss went with the store, but the node listens still. */
Test(loss_told, of_a_store_that_was_emptied_under_a_node)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    struct cli_run run;

    start();
    redis_server_tell_all(&fixture.redis, "FLUSHALL", NULL);
    for (;;) {
        RUN(&fixture, &run, "doctor", "--public-origin", NODE_ORIGIN);
        if (run.exit_code == 3 && strstr(run.out, "there is no store, and nodes that listen: 1"))
            break;
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s", run.out);
        cli_finish(&run);
    }
    cli_finish(&run);
    node_stop(&fixture.nodes[0]);
    EXPECT(0, "nodes that listen", false, "doctor", "--public-origin", NODE_ORIGIN);
    fixture_stop(&fixture);
}

/* As a node of 0.3.0 registers itself. */
Test(loss_told, while_a_member_of_an_earlier_version_is_registered)
{
    start();
    redis_server_tell(&fixture.redis, "HSET", fixture_name(NULL, "nodes"), "00112233445566778899aabbccddeeff",
                      "1 1000 2", NULL);
    EXPECT(0, "1 registered", true, "doctor", "--public-origin", NODE_ORIGIN);
    EXPECT(3, "\"members_of_earlier_versions\":1", true, "status", "--json");
    fixture_stop(&fixture);
}
