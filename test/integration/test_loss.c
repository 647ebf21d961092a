/* A store that has lost what was answered (src/lease/README.md, rule 13): an older append-only file under running
 * nodes, whichever of them is gone. Every node that heard of a revocation repeats it, and no other decides before. */
#include "deadline.h"
#include "fixture.h"
#include "leak_guard.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(loss, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { NODES = 3, ANSWERED = 0, STEP_MS = 5, LOOKED_MS = 1500, REASON_BYTES = 1024 };

static const char *const LEASE_1000[] = {"--lease-ms", "1000", NULL};

static struct fixture fixture;
static struct fixture_key revoked, kept;

static int readiness(size_t node, char ret_reason[REASON_BYTES])
{
    struct http_answer answer;
    int status = http_call(fixture.nodes[node].internal_port, &(struct http_call){.target = "/readyz"}, &answer);

    snprintf(ret_reason, REASON_BYTES, "%.*s", REASON_BYTES - 1, answer.body);
    return status;
}

static void await_reason(size_t node, const char *part)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);
    char reason[REASON_BYTES];

    while (readiness(node, reason) == 200 || !strstr(reason, part)) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "want %s: %s", part, reason);
        poll(NULL, 0, STEP_MS);
    }
}

static int delete_at(size_t node, const struct fixture_key *key)
{
    struct http_answer answer;
    char target[64];

    snprintf(target, sizeof target, "/v1/api_keys/%s", key->id);
    return fixture_call(&fixture, node,
                        &(struct http_call){.method = "DELETE", .target = target, .bearer = fixture.manager.secret},
                        &answer);
}

/* All nodes have both keys in memory, and an older state of the store is kept. */
static void start(void)
{
    fixture_use_one_redis("the files of one Redis are put back");
    fixture_start(&fixture, NODES, LEASE_1000);
    fixture_create_key(&fixture, ANSWERED, "{\"name\":\"revoked\",\"mode\":\"live\"}", &revoked);
    fixture_create_key(&fixture, ANSWERED, "{\"name\":\"kept\",\"mode\":\"live\"}", &kept);
    for (size_t node = 0; node < NODES; node++) {
        fixture_await_key(&fixture, node, revoked.secret, 200);
        fixture_await_key(&fixture, node, kept.secret, 200);
    }
    redis_server_keep(&fixture.redis);
}

static void revoke(void)
{
    cr_assert_eq(delete_at(ANSWERED, &revoked), 200);
    for (size_t node = 0; node < NODES; node++)
        cr_assert_eq(fixture_try_key(&fixture, node, revoked.secret), 401);
}

/* From `first` on, no node accepts the revoked key, and in the end all accept the other one. */
static void expect_never_accepted(size_t first, size_t nodes)
{
    int64_t start_ms = deadline_now_ms();
    bool is_known = false;

    while (!is_known || deadline_now_ms() - start_ms < LOOKED_MS) {
        cr_assert_lt(deadline_now_ms() - start_ms, PATIENCE_MS, "the nodes do not come back");
        is_known = true;
        for (size_t node = first; node < nodes; node++) {
            int ended = fixture_try_key(&fixture, node, revoked.secret);
            int living = fixture_try_key(&fixture, node, kept.secret);

            cr_assert(ended == 401 || ended == 503, "node %zu: %d", node, ended);
            cr_assert(living == 200 || living == 503, "node %zu: %d", node, living);
            is_known = is_known && ended == 401 && living == 200;
        }
        poll(NULL, 0, STEP_MS);
    }
}

Test(loss, of_a_revocation_whose_node_lives)
{
    start();
    revoke();
    redis_server_put_back(&fixture.redis);
    expect_never_accepted(0, NODES);
    fixture_stop(&fixture);
}

Test(loss, of_a_revocation_whose_node_died)
{
    start();
    revoke();
    node_kill(&fixture.nodes[ANSWERED]);
    redis_server_put_back(&fixture.redis);
    expect_never_accepted(1, NODES);
    fixture_stop(&fixture);
}

/* One that starts there has heard nothing. */
Test(loss, is_told_to_a_node_that_starts_afterwards)
{
    start();
    revoke();
    node_kill(&fixture.nodes[ANSWERED]);
    node_stop(&fixture.nodes[1]);
    redis_server_put_back(&fixture.redis);
    fixture_start_node(&fixture, ANSWERED, "again", fixture.redis.url, LEASE_1000);
    cr_expect_eq(fixture_try_key(&fixture, ANSWERED, revoked.secret), 401);
    cr_expect_eq(fixture_try_key(&fixture, ANSWERED, kept.secret), 200);
    fixture_await_key(&fixture, 2, revoked.secret, 401); /* it may not have found Redis again yet */
    fixture_stop(&fixture);
}

/* The store goes back twice; those that told it once tell it again. */
Test(loss, is_repaired_as_often_as_it_happens)
{
    start();
    revoke();
    node_kill(&fixture.nodes[ANSWERED]);
    for (int i = 0; i < 3; i++) {
        redis_server_put_back(&fixture.redis);
        expect_never_accepted(1, NODES);
    }
    fixture_stop(&fixture);
}

/* An ending that nobody can repeat: until an operator has decided, nobody guesses. */
Test(loss, of_the_end_of_a_session)
{
    struct fixture_session session;
    struct http_answer answer;
    char *out, *err;

    start();
    fixture_add_session(&fixture, NULL, false, &session);
    cr_assert_eq(
        fixture_call(&fixture, ANSWERED,
                     &(struct http_call){
                         .method = "POST", .target = "/v1/auth/logout", .cookie = session.token, .csrf = session.csrf},
                     &answer),
        204, "%s", answer.body);
    redis_server_put_back(&fixture.redis);
    for (size_t node = 0; node < NODES; node++)
        await_reason(node, "lost 1 change that ended something");
    for (size_t node = 0; node < NODES; node++)
        cr_expect_eq(fixture_try_key(&fixture, node, kept.secret), 503);
    cr_expect_eq(fixture_run(&fixture, (const char *const[]){"store", "accept-loss", NULL}, NULL, &out, &err), 0, "%s",
                 err);
    free(out);
    free(err);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&fixture, node, kept.secret, 200);
    redis_server_restart(&fixture.redis);
    for (size_t node = 0; node < NODES; node++)
        fixture_await_key(&fixture, node, kept.secret, 200);
    fixture_stop(&fixture);
}

/* A key that was created: nobody can bring it back, and nothing is given to anybody by its loss. */
Test(loss, of_a_change_that_ends_nothing)
{
    struct fixture_key made;

    start();
    fixture_create_key(&fixture, ANSWERED, "{\"name\":\"made\",\"mode\":\"live\"}", &made);
    redis_server_put_back(&fixture.redis);
    for (size_t node = 0; node < NODES; node++) {
        fixture_await_key(&fixture, node, kept.secret, 200);
        cr_expect_eq(fixture_try_key(&fixture, node, made.secret), 401);
    }
    fixture_stop(&fixture);
}

/* Nodes that were restarted since have it from the stream. */
Test(loss, of_a_revocation_that_all_nodes_have_only_read_of)
{
    start();
    revoke();
    for (size_t node = 0; node < NODES; node++)
        node_kill(&fixture.nodes[node]);
    fixture.node_count = 0;
    fixture_add_node(&fixture, LEASE_1000);
    struct deadline deadline = deadline_in(PATIENCE_MS);
    while (fixture_metric(&fixture, 0, "chatelaine_kept_endings") == 0) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "it has read of none");
        poll(NULL, 0, STEP_MS);
    }
    redis_server_put_back(&fixture.redis);
    expect_never_accepted(0, 1);
    fixture_stop(&fixture);
}
