/* What a node finds with a run's key, and how it goes on with a run of its own. The canary in Redis is faked here; the
 * key is checked as any key is, without a cache. */
#include "auth/canary.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "core/canary_key.h"
#include "records/canary_store.h"

#include "deadline.h"
#include "fake_store.h"
#include "kernel.h"
#include "leak_guard.h"
#include "test_loop.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

static struct {
    uv_loop_t loop;
    struct turn *turn;
    struct store store;
    struct partitions partitions;
    struct keyring *keyring;
    struct key_checker *checker;
    struct canary *canary;

    /* Calls under way; NULL: none. */
    canary_visited *visited;
    canary_began *began;
    store_done *revoked, *stepped;
    void *visit_arg, *begin_arg, *revoke_arg, *step_arg;
    canary_visited *left;
    void *left_arg;

    enum canary_finding told; /* by the visit under way */
    int64_t told_run;
    struct id revoking;
    char step[128]; /* the last one: run, and how it goes on */
    bool is_closed, is_turn_closed;
} w;

bool store_is_ready(const struct store *store)
{
    return store == &w.store;
}

bool store_is_empty(const struct store *store)
{
    return store != &w.store;
}

void canary_store_visit(struct store *store, const struct canary_node *node, int64_t run, enum canary_finding finding,
                        canary_visited *done, void *arg)
{
    cr_assert(store == &w.store && text_equal(node->name, TEXT("north")) && node->interval_ms == 1000);
    if (finding == CANARY_LEFT) {
        w.left = done;
        w.left_arg = arg;
        return;
    }
    cr_assert_null(w.visited, "one visit at a time");
    w.visited = done;
    w.visit_arg = arg;
    w.told = finding;
    w.told_run = run;
}

void canary_store_begin(struct store *store, const struct canary_node *node, const struct canary_key *key,
                        canary_began *done, void *arg)
{
    cr_assert(store == &w.store && node && key->revoke_in_ms == 250);
    cr_assert(!w.began && !w.visited);
    w.began = done;
    w.begin_arg = arg;
}

static void note_step(const char *how, int64_t run, store_done *done, void *arg)
{
    cr_assert_null(w.stepped, "one step at a time");
    snprintf(w.step, sizeof w.step, "%lld %s", (long long)run, how);
    w.stepped = done;
    w.step_arg = arg;
}

void canary_store_ask(struct store *store, const struct canary_node *node, int64_t run, int64_t took_us,
                      store_done *done, void *arg)
{
    cr_assert(store == &w.store && node && took_us >= 0);
    note_step("ask", run, done, arg);
}

void canary_store_end(struct store *store, const struct canary_node *node, int64_t run, const char *why,
                      store_done *done, void *arg)
{
    cr_assert(store == &w.store && node);
    note_step(why ? why : "finished", run, done, arg);
}

void canary_store_revoke(struct store *store, const struct id *key, store_done *done, void *arg)
{
    cr_assert(store == &w.store && !w.revoked);
    w.revoking = *key;
    w.revoked = done;
    w.revoke_arg = arg;
}

static void begin_world(void)
{
    w.keyring = keyring_create((const uint8_t[1][KEYRING_MASTER_BYTES]){{7}}, 1);
    sim_kernel_enter();
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    w.turn = turn_create(&w.loop);
    w.partitions = (struct partitions){{&w.store}, 1};
    w.checker = key_checker_create(w.keyring, &w.partitions, NULL, NULL, NULL, NULL, w.turn);
    w.canary = canary_create(&w.loop, &(struct canary_settings){.interval_ms = 1000, .node = TEXT("north")}, w.keyring,
                             &w.partitions, w.checker);
}

static void set_flag(void *flag)
{
    *(bool *)flag = true;
}

static void leave(void)
{
    canary_visited *left;

    canary_stop(w.canary);
    canary_close(w.canary, set_flag, &w.is_closed);
    w.canary = NULL;
    left = w.left;
    cr_assert(left);
    w.left = NULL;
    left(w.left_arg, STORE_OK, &(struct canary_view){0});
}

static bool has_acted(void *arg)
{
    (void)arg;
    return w.visited || w.began || w.store.find_count > 0;
}

static void await_visit(enum canary_finding told)
{
    cr_assert(test_loop_until(&w.loop, has_acted, NULL, PATIENCE_MS));
    cr_assert(w.visited, "it does something else");
    cr_expect_eq(w.told, told, "it tells %d", (int)w.told);
}

static void answer_visit(enum store_result result, const struct canary_view *view)
{
    canary_visited *visited = w.visited;

    w.visited = NULL;
    visited(w.visit_arg, result, result == STORE_OK ? view : NULL);
}

static void answer_check(enum store_result result, int64_t revoked_ms)
{
    w.store.find_count = 0;
    w.store.finds[0].done(w.store.finds[0].arg, result, &(struct key_record){.revoked_ms = revoked_ms});
}

static void answer_beginning(enum store_result result)
{
    canary_began *began = w.began;

    w.began = NULL;
    began(w.begin_arg, result, false);
}

static void answer_step(enum store_result result)
{
    store_done *stepped = w.stepped;

    w.stepped = NULL;
    stepped(w.step_arg, result);
}

static void answer_revocation(enum store_result result)
{
    store_done *revoked = w.revoked;

    w.revoked = NULL;
    revoked(w.revoke_arg, result);
}

/* Whatever is under way is lost. */
static void end_world(void)
{
    if (w.canary)
        leave();
    if (w.visited)
        answer_visit(STORE_UNAVAILABLE, NULL);
    if (w.store.find_count > 0)
        answer_check(STORE_UNAVAILABLE, 0);
    if (w.began)
        answer_beginning(STORE_UNAVAILABLE);
    if (w.revoked)
        answer_revocation(STORE_UNKNOWN);
    if (w.stepped)
        answer_step(STORE_UNKNOWN);
    cr_assert(test_loop_until_set(&w.loop, &w.is_closed, PATIENCE_MS));
    key_checker_destroy(w.checker);
    turn_close(w.turn, set_flag, &w.is_turn_closed);
    cr_assert(test_loop_until_set(&w.loop, &w.is_turn_closed, PATIENCE_MS));
    keyring_destroy(w.keyring);
    cr_assert(test_loop_finish(&w.loop));
    leak_guard();
}

TestSuite(canary, .init = begin_world, .fini = end_world);

#define NONCE TEXT("00112233445566778899aabbccddeeff")
#define KEY_ID ((struct id){.text = "key_00000000000000000000000007"})

static struct canary_view view_of(enum canary_phase phase)
{
    return (struct canary_view){.run = 7,
                                .phase = phase,
                                .nonce = NONCE,
                                .master_key = keyring_short_name(w.keyring, 0),
                                .key = KEY_ID,
                                .revoke_in_ms = phase == CANARY_USE ? 50 : 0,
                                .due_in_ms = 50,
                                .since_finished_ms = -1};
}

static void tell(enum canary_phase phase)
{
    struct canary_view view = view_of(phase);

    answer_visit(STORE_OK, &view);
}

/* With the key of that nonce. */
static void await_check_of(struct text nonce)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    struct secret secret;

    cr_assert(canary_secret(w.keyring, 0, nonce, &secret));
    keyring_digest(w.keyring, KEYRING_KEY_DIGEST, 0, secret_text(&secret), digest);
    cr_assert(test_loop_until(&w.loop, has_acted, NULL, PATIENCE_MS));
    cr_assert_eq(w.store.find_count, 1, "it checks no key");
    cr_expect_arr_eq(w.store.finds[0].digest, digest, sizeof digest);
}

static void key_is_accepted(void)
{
    await_check_of(NONCE);
    answer_check(STORE_OK, 0);
}

static void key_is_refused(void)
{
    await_check_of(NONCE);
    answer_check(STORE_OK, 1);
}

/* The node hears of the run, and uses its key. */
static void use_key(void)
{
    await_visit(CANARY_NOTHING);
    tell(CANARY_USE);
    key_is_accepted();
    await_visit(CANARY_USED);
    cr_expect_eq(w.told_run, 7);
}

static void expect_violations(int64_t count)
{
    cr_expect_eq(metric_values[METRIC_CANARY_VIOLATIONS], count);
}

/* Deciding */

/* When it was asked, it has nothing more to do in this run. */
Test(canary, uses_the_key_and_refuses_it_when_it_is_asked)
{
    use_key();
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    tell(CANARY_ASK);
    await_visit(CANARY_NOTHING);
    expect_violations(0);
}

/* It has not used the key, so it can tell nothing. */
Test(canary, hears_of_the_run_when_the_key_is_revoked)
{
    struct canary_view view = view_of(CANARY_USE);

    await_visit(CANARY_NOTHING);
    tell(CANARY_ASK);
    await_visit(CANARY_NOTHING);
    view.run = 8;
    view.revoke_in_ms = 0;
    answer_visit(STORE_OK, &view);
    await_visit(CANARY_NOTHING);
    view.run = 9;
    view.phase = CANARY_OVER;
    answer_visit(STORE_OK, &view);
    await_visit(CANARY_NOTHING);
}

Test(canary, could_not_use_the_key_in_time)
{
    await_visit(CANARY_NOTHING);
    tell(CANARY_USE);
    await_check_of(NONCE);
    answer_check(STORE_UNAVAILABLE, 0);
    await_visit(CANARY_NOTHING);
    tell(CANARY_ASK);
    await_visit(CANARY_NOTHING);
}

Test(canary, cannot_use_a_key_of_another_master_key)
{
    struct canary_view view = view_of(CANARY_USE);

    view.master_key = TEXT("00000000");
    await_visit(CANARY_NOTHING);
    answer_visit(STORE_OK, &view);
    await_visit(CANARY_NOTHING);
}

/* The key is accepted again and again, but that is one violation, told at once. */
Test(canary, counts_a_violation_once)
{
    use_key();
    tell(CANARY_ASK);
    key_is_accepted();
    await_visit(CANARY_VIOLATED);
    expect_violations(1);
    for (int times = 0; times < 2; times++) {
        tell(CANARY_ASK);
        key_is_accepted();
        await_visit(CANARY_NOTHING);
    }
    expect_violations(1);
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    expect_violations(1);
}

/* In the next run it is another one. */
Test(canary, counts_a_violation_in_each_run)
{
    struct canary_view view = view_of(CANARY_USE);

    use_key();
    tell(CANARY_ASK);
    key_is_accepted();
    await_visit(CANARY_VIOLATED);
    view.run = 8;
    answer_visit(STORE_OK, &view);
    key_is_accepted();
    await_visit(CANARY_USED);
    cr_expect_eq(w.told_run, 8);
    view = view_of(CANARY_ASK);
    view.run = 8;
    answer_visit(STORE_OK, &view);
    key_is_accepted();
    await_visit(CANARY_VIOLATED);
    expect_violations(2);
}

/* If Redis does not hear of it, the node tells it once more, before it checks anything. */
Test(canary, tells_a_violation_until_redis_has_heard)
{
    use_key();
    tell(CANARY_ASK);
    key_is_accepted();
    await_visit(CANARY_VIOLATED);
    answer_visit(STORE_UNAVAILABLE, NULL);
    await_visit(CANARY_VIOLATED);
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    expect_violations(1);
}

/* The revocation may have been answered while the check was under way, or before the node hears of that. Neither is a
 * violation: only a check that begins afterwards must refuse. */
Test(canary, accepts_before_it_hears_of_the_answer)
{
    use_key();
    tell(CANARY_USE);
    key_is_accepted();
    await_visit(CANARY_NOTHING);
    expect_violations(0);
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    expect_violations(0);
}

/* That tells how soon the revocation was heard of here, but is no answer: it was not asked yet. */
Test(canary, refuses_before_it_hears_of_the_answer)
{
    use_key();
    tell(CANARY_USE);
    key_is_refused();
    await_visit(CANARY_REFUSED);
    tell(CANARY_USE);
    key_is_refused();
    await_visit(CANARY_NOTHING);
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    expect_violations(0);
}

/* A key that has expired, or was removed, is refused, too; an error is no answer. */
Test(canary, takes_an_error_for_no_answer)
{
    use_key();
    tell(CANARY_ASK);
    await_check_of(NONCE);
    answer_check(STORE_UNAVAILABLE, 0);
    await_visit(CANARY_NOTHING);
    tell(CANARY_ASK);
    await_check_of(NONCE);
    answer_check(STORE_NOT_FOUND, 0);
    await_visit(CANARY_ASKED);
    expect_violations(0);
}

/* As after a failover to a Redis that did not know the run. */
Test(canary, takes_part_in_another_run_of_the_same_number)
{
    struct canary_view view = view_of(CANARY_USE);

    use_key();
    view.nonce = TEXT("ffeeddccbbaa99887766554433221100");
    view.key = (struct id){.text = "key_00000000000000000000000008"};
    answer_visit(STORE_OK, &view);
    await_check_of(view.nonce);
    answer_check(STORE_OK, 0);
    await_visit(CANARY_USED);
}

/* Running */

static struct canary_view view_of_mine(enum canary_phase phase, int64_t used, int64_t answered)
{
    struct canary_view view = view_of(phase);

    view.is_runner = true;
    view.used = used;
    view.answered = answered;
    return view;
}

static void tell_runner(enum canary_phase phase, int64_t used, int64_t answered)
{
    struct canary_view view = view_of_mine(phase, used, answered);

    answer_visit(STORE_OK, &view);
}

static void begin_run(enum store_result result)
{
    struct canary_view view = {.may_begin = true, .since_finished_ms = -1};

    await_visit(CANARY_NOTHING);
    answer_visit(STORE_OK, &view);
    cr_assert(w.began);
    answer_beginning(result);
    await_visit(CANARY_NOTHING);
}

/* Begins a run of its own, and uses its key like any other node. */
static void run(void)
{
    begin_run(STORE_OK);
    tell_runner(CANARY_USE, 0, 0);
    key_is_accepted();
    await_visit(CANARY_USED);
}

/* Its time has come. Visits go on while the revocation is under way. */
static void begin_revocation(void)
{
    struct canary_view view = view_of_mine(CANARY_USE, 2, 0);

    view.revoke_in_ms = 0;
    answer_visit(STORE_OK, &view);
    cr_assert(w.revoked);
    cr_expect(id_equal(&w.revoking, &KEY_ID));
    key_is_accepted();
    await_visit(CANARY_NOTHING);
    answer_visit(STORE_OK, &view);
    key_is_accepted();
    await_visit(CANARY_NOTHING);
}

Test(canary, runs_it)
{
    run();
    begin_revocation();
    answer_revocation(STORE_OK);
    cr_expect_str_eq(w.step, "7 ask");
    answer_step(STORE_OK);
    tell_runner(CANARY_ASK, 2, 0);
    key_is_refused();
    await_visit(CANARY_ASKED);
    tell_runner(CANARY_ASK, 2, 1);
    cr_expect_null(w.stepped, "the other node has not answered");
    await_visit(CANARY_NOTHING);
    tell_runner(CANARY_ASK, 2, 2);
    cr_expect_str_eq(w.step, "7 finished");
    answer_step(STORE_OK);
    cr_expect_eq(metric_values[METRIC_CANARY_FINISHED], 1);
    await_visit(CANARY_NOTHING);
    tell(CANARY_OVER);
    await_visit(CANARY_NOTHING);
    cr_expect_null(w.stepped);
}

Test(canary, ends_a_run_whose_revocation_was_not_answered)
{
    run();
    begin_revocation();
    answer_revocation(STORE_UNKNOWN);
    cr_expect_str_eq(w.step, "7 its revocation was not answered");
    answer_step(STORE_OK);
    cr_expect_eq(metric_values[METRIC_CANARY_UNFINISHED], 1);
    cr_expect_eq(metric_values[METRIC_CANARY_FINISHED], 0);
}

/* Others have used its key. Nobody else can go on with it while this node asks. */
Test(canary, goes_on_with_a_run_that_it_does_not_know_to_have_begun)
{
    struct canary_view view = view_of_mine(CANARY_USE, 2, 0);

    begin_run(STORE_UNKNOWN);
    view.revoke_in_ms = 0;
    answer_visit(STORE_OK, &view);
    cr_assert(w.revoked);
    await_visit(CANARY_NOTHING);
    answer_revocation(STORE_OK);
    cr_expect_str_eq(w.step, "7 ask");
    answer_step(STORE_OK);
    tell_runner(CANARY_ASK, 2, 2);
    cr_expect_str_eq(w.step, "7 finished");
    answer_step(STORE_OK);
}

/* What it has begun when another node takes over goes on, but not the run. */
Test(canary, does_not_go_on_with_a_run_of_another_node)
{
    run();
    begin_revocation();
    answer_revocation(STORE_OK);
    cr_expect_str_eq(w.step, "7 ask");
    answer_step(STORE_REFUSED);
    tell(CANARY_USE);
    key_is_accepted();
    await_visit(CANARY_NOTHING);
    tell(CANARY_ASK);
    key_is_refused();
    await_visit(CANARY_ASKED);
    w.step[0] = '\0';
    tell(CANARY_ASK);
    cr_expect_str_eq(w.step, "");
    cr_expect_null(w.revoked);
    cr_expect_eq(metric_values[METRIC_CANARY_UNFINISHED], 0);
}

Test(canary, hears_during_the_revocation_that_another_node_has_taken_over)
{
    run();
    begin_revocation();
    tell(CANARY_USE);
    answer_revocation(STORE_OK);
    cr_expect_null(w.stepped);
    key_is_accepted();
    await_visit(CANARY_NOTHING);
}

/* Closing: whatever is under way is waited for, and nothing follows it. */

static void expect_closing(void)
{
    test_loop_for(&w.loop, 200);
    cr_expect_not(w.is_closed);
}

Test(canary, is_closed_during_a_visit)
{
    await_visit(CANARY_NOTHING);
    leave();
    expect_closing();
    tell(CANARY_USE);
    cr_expect_eq(w.store.find_count, 0);
}

Test(canary, is_closed_during_a_check)
{
    await_visit(CANARY_NOTHING);
    tell(CANARY_USE);
    await_check_of(NONCE);
    leave();
    expect_closing();
    answer_check(STORE_OK, 0);
    cr_expect_null(w.visited);
}

Test(canary, is_closed_during_a_revocation)
{
    run();
    begin_revocation();
    leave();
    answer_visit(STORE_UNAVAILABLE, NULL);
    expect_closing();
    answer_revocation(STORE_OK);
    cr_expect_null(w.stepped, "another node ends the run");
}

Test(canary, is_closed_when_nothing_is_under_way)
{
    leave();
}
