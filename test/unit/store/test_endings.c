/* Right after a failover, what ends something is answered once no lease of the replaced master is left (rule 10). */
#include "records/link_store.h"
#include "base/clock.h"
#include "core/limits.h"
#include "deadline.h"
#include "lease/lease.h"
#include "engine/access.h"
#include "records/factor_store.h"
#include "records/people_store.h"
#include "records/session_store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* W of a lease of 400 ms. */
enum { LEASE_MS = 400, WAIT_MS = 550 };
#define LEASE_TEXT "400"

static const struct session_limits LIMITS = {1800000, 43200000, 300000};
static const uint8_t DIGEST[32] = {1}, NEW_DIGEST[32] = {2};
static const struct login_attempt ATTEMPT = {.id = {"a", 1}, .counters = {"pair:p,network:n,email:e,", 25}};

static struct scene {
    struct id account;
    struct user_record owner, user;
    struct id invitation;
    struct session_record session; /* as loaded */
} scene;

/* Only a new session has notices. */
static void on_session(void *arg, enum store_result result, const struct session_record *session)
{
    cr_assert_eq(session != NULL, result == STORE_OK);
    if (session && session->notices)
        cr_expect_eq(session->notices->failed_sign_ins, 0);
    answer_done(arg, result);
}

/* presented: the session that the browser had before; NULL: none. */
static void sign_in(const uint8_t *digest, int64_t totp_step, const uint8_t *presented, struct answer *answer)
{
    const struct session_start start = {.user = scene.user.id,
                                        .account = scene.account,
                                        .totp_step = totp_step,
                                        .token_digest = digest,
                                        .sid = "01jd0000000000000000000000",
                                        .attempt = ATTEMPT,
                                        .browser = "Firefox on Windows",
                                        .presented_digest = presented,
                                        .verified = &scene.user};

    session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, on_session, answer);
}

static void begin_session(void)
{
    struct answer answer = {0};

    sign_in(DIGEST, 7, NULL, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
}

static struct link_record some_link(const char *email, const struct user_record *user)
{
    struct link_record link = {
        .id = id_mint(ID_INVITATION, clock_wall_ms()), .account = scene.account, .role = ROLE_OWNER};

    if (user)
        link.user = user->id;
    snprintf(link.email, sizeof link.email, "%s", email);
    link.digest[0] = user ? 2 : 1;
    return link;
}

static void invite(void)
{
    const struct audit_source source = {.actor = id_text(&scene.owner.id)};
    struct link_record link = some_link("new@north.test", NULL);
    struct answer answer = {0};

    link_store_invite(fixture.partitions, &link, &source, answer_inserted, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    scene.invitation = link.id;
}

/* A store that knows, from Redis, how long leases may be. */
static void start(void)
{
    fixture_start();
    fixture_close_store();
    redis_server_tell(&fixture.server, "SET", "t:lease_max", LEASE_TEXT, NULL);
    fixture_open_store("t:");
    scene.account = some_account();
    scene.owner = some_user(&scene.account, "owner@north.test");
    scene.user = some_user(&scene.account, "ana@north.test");
    begin_session();
    invite();
}

TestSuite(endings, .init = start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

/* Ends the session that the browser had. */
static void sign_in_again(struct answer *answer)
{
    sign_in(NEW_DIGEST, 8, DIGEST, answer);
}

static void on_loaded(void *arg, enum store_result result, const struct session_record *session)
{
    if (session)
        scene.session = *session;
    answer_done(arg, result);
}

static struct session_proof proof_of_session(void)
{
    struct answer answer = {0};

    session_store_load(fixture.store, DIGEST, &LIMITS, TEXT(""), on_loaded, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    return (struct session_proof){&scene.session, DIGEST, 8, ATTEMPT, &LIMITS};
}

/* Ends the session's token. */
static void step_up(struct answer *answer)
{
    const struct session_proof proof = proof_of_session();

    session_store_step_up(fixture.store, &proof, NEW_DIGEST, &SOMEBODY, on_session, answer);
}

static void change_password(struct answer *answer)
{
    const struct session_proof proof = proof_of_session();

    session_store_change_password(fixture.store, &proof, NEW_DIGEST, scene.user.password_hash, "another hash",
                                  &SOMEBODY, on_session, answer);
}

static void end_session(struct answer *answer)
{
    session_store_end(fixture.store, DIGEST, &SOMEBODY, answer_done, answer);
}

static void on_stopped(void *arg, enum store_result result, int64_t count)
{
    cr_expect_eq(count, result == STORE_OK);
    answer_done(arg, result);
}

static void stop_sessions(struct answer *answer)
{
    session_store_stop(fixture.store, &scene.user.id, TEXT(""), NULL, &SOMEBODY, on_stopped, answer);
}

static void reset_password(struct answer *answer)
{
    account_store_reset_user(fixture.store, &scene.user.id, "another hash", true, NULL, &SOMEBODY, answer_done, answer);
}

static void replace_recovery_codes(struct answer *answer)
{
    static uint8_t codes[RECOVERY_CODES][KEYRING_DIGEST_BYTES];
    const struct audit_source source = {.actor = id_text(&scene.user.id)};

    for (size_t i = 0; i < RECOVERY_CODES; i++)
        codes[i][0] = (uint8_t)i;
    factor_store_set_recovery_codes(fixture.store, &scene.account, (const uint8_t(*)[KEYRING_DIGEST_BYTES])codes,
                                    &source, answer_done, answer);
}

static void withdraw_invitation(struct answer *answer)
{
    link_store_withdraw(fixture.store, &scene.account, &scene.invitation, &SOMEBODY, answer_done, answer);
}

static void reset_by_link(struct answer *answer)
{
    static struct link_record link;

    link = some_link(scene.user.email, &scene.user);
    link_store_reset(fixture.store, &link, &SOMEBODY, on_stopped, answer);
}

static void on_changed(void *arg, enum store_result result, const struct person_changed *changed)
{
    (void)changed;
    answer_done(arg, result);
}

static void change_person(struct answer *answer, enum person_change_kind kind)
{
    people_store_change(fixture.partitions, &scene.account, &scene.user.id,
                        &(struct person_change){.kind = kind, .role = ROLE_AUDITOR}, &SOMEBODY,
                        &(struct person_observer){NULL, on_changed, answer});
}

static void lower_role(struct answer *answer)
{
    change_person(answer, PERSON_ROLE);
}

static void remove_person(struct answer *answer)
{
    change_person(answer, PERSON_REMOVE);
}

static void fail_over(void)
{
    struct fence *fence = lease_fence(store_lease(fixture.store));

    fence->may_be_replaced = true;
    fence->connected_ns = clock_boot_ns();
}

static void expect_waits(void (*end)(struct answer *answer))
{
    const struct fence *fence = lease_fence(store_lease(fixture.store));
    struct answer answer = {0};

    fail_over();
    end(&answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    cr_assert_geq(clock_boot_ns() - fence->connected_ns, WAIT_MS * CLOCK_NS_PER_MS);
}

Test(endings, sign_in)
{
    expect_waits(sign_in_again);
}

Test(endings, step_up)
{
    expect_waits(step_up);
}

Test(endings, password)
{
    expect_waits(change_password);
}

Test(endings, logout)
{
    expect_waits(end_session);
}

Test(endings, sessions_of_a_user)
{
    expect_waits(stop_sessions);
}

Test(endings, reset_by_command)
{
    expect_waits(reset_password);
}

Test(endings, recovery_codes)
{
    expect_waits(replace_recovery_codes);
}

Test(endings, invitation)
{
    expect_waits(withdraw_invitation);
}

Test(endings, reset)
{
    expect_waits(reset_by_link);
}

Test(endings, role)
{
    expect_waits(lower_role);
}

Test(endings, removal)
{
    expect_waits(remove_person);
}

static bool has_no_session(void *arg)
{
    char reply[64];

    (void)arg;
    redis_server_ask(&fixture.server, reply, sizeof reply, "KEYS", "t:session:*", NULL);
    return reply[0] == '\0';
}

/* Closing does not wait: nobody knows then whether the end is in effect. */
Test(endings, the_store_closes_while_a_lease_may_be_left)
{
    struct answer answer = {0};

    fail_over();
    lease_fence(store_lease(fixture.store))->lease_max_ms = LEASE_MS_MAX; /* few stalls outlast it */
    end_session(&answer);
    cr_assert(test_loop_until(&fixture.loop, has_no_session, NULL, PATIENCE_MS));
    fixture_close_store();
    cr_assert_eq(answer.calls, 1);
    cr_assert_eq(answer.result, STORE_UNKNOWN);
}
