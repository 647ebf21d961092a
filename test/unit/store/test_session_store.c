#include "store/session_store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(session_store, .init = fixture_start, .fini = fixture_stop);

static const struct session_limits LIMITS = {1800000, 43200000, 300000};

struct login_answer {
    struct answer answer;
    bool is_known;
    struct user_record user;
    uint32_t retry_after_s;
};

static void login_answer_done(void *arg, enum store_result result, const struct user_record *user,
                              uint32_t retry_after_s)
{
    struct login_answer *answer = arg;

    answer->is_known = user != NULL;
    if (user)
        answer->user = *user;
    answer->retry_after_s = retry_after_s;
    answer_done(&answer->answer, result);
}

static enum store_result begin_login(const char *email, const char *email_tag, const char *ip_tag,
                                     struct login_answer *answer)
{
    *answer = (struct login_answer){0};
    session_store_begin_login(fixture.store, text_of(email), text_of(email_tag), text_of(ip_tag), login_answer_done,
                              answer);
    return answer_wait(&answer->answer);
}

struct session_answer {
    struct answer answer;
    struct session_record session;
};

static void session_answer_done(void *arg, enum store_result result, const struct session_record *session)
{
    struct session_answer *answer = arg;

    cr_assert_eq(session != NULL, result == STORE_OK);
    if (session)
        answer->session = *session;
    answer_done(&answer->answer, result);
}

static const uint8_t *digest_of(uint8_t n)
{
    static uint8_t digests[256][32];

    digests[n][0] = n;
    return digests[n];
}

static enum store_result create_session(const struct user_record *user, int64_t step, uint8_t n,
                                        struct session_answer *answer)
{
    const struct session_start start = {.user = user->id,
                                        .totp_step = step,
                                        .token_digest = digest_of(n),
                                        .sid = "01jd0000000000000000000000",
                                        .email_tag = TEXT("e"),
                                        .ip_tag = TEXT("i"),
                                        .verified = user};

    *answer = (struct session_answer){0};
    session_store_create(fixture.store, &start, &LIMITS, &SOMEBODY, session_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result load_session(uint8_t n, struct session_answer *answer)
{
    *answer = (struct session_answer){0};
    session_store_load(fixture.store, digest_of(n), &LIMITS, session_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result step_up(uint8_t from, uint8_t to, int64_t step, struct session_answer *answer)
{
    *answer = (struct session_answer){0};
    session_store_step_up(fixture.store, digest_of(from), digest_of(to), step, TEXT("u"), TEXT("i"), &LIMITS, &SOMEBODY,
                          session_answer_done, answer);
    return answer_wait(&answer->answer);
}

Test(session_store, life_of_a_session)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct session_answer made, answer;
    struct answer ended = {0}, ended_again = {0};

    cr_assert_eq(create_session(&user, 7, 1, &made), STORE_OK);
    cr_expect_str_eq(made.session.sid, "01jd0000000000000000000000");
    cr_expect_eq(made.session.expires_ms, made.session.created_ms + LIMITS.absolute_ms);
    cr_expect_eq(made.session.step_up_expires_ms, 0);
    expect_newest_event(&account, "session.created", 2);

    cr_assert_eq(load_session(1, &answer), STORE_OK);
    cr_expect(id_equal(&answer.session.user.id, &user.id) && id_equal(&answer.session.user.account, &account));
    cr_expect_str_eq(answer.session.user.email, "ana@north.test");
    cr_expect_str_eq(answer.session.user.account_name, "North Clinic");
    cr_expect_str_empty(answer.session.user.password_hash);
    cr_expect_eq(answer.session.created_ms, made.session.created_ms);

    cr_assert_eq(step_up(1, 2, 8, &answer), STORE_OK);
    cr_expect_geq(answer.session.step_up_expires_ms, made.session.created_ms + LIMITS.step_up_ms);
    cr_expect_str_eq(answer.session.sid, made.session.sid);
    cr_expect_eq(load_session(1, &answer), STORE_NOT_FOUND);
    cr_assert_eq(load_session(2, &answer), STORE_OK);
    cr_expect_gt(answer.session.step_up_expires_ms, 0);
    expect_newest_event(&account, "session.step_up", 3);

    session_store_end(fixture.store, digest_of(2), &SOMEBODY, answer_done, &ended);
    cr_expect_eq(answer_wait(&ended), STORE_OK);
    cr_expect_eq(load_session(2, &answer), STORE_NOT_FOUND);
    session_store_end(fixture.store, digest_of(2), &SOMEBODY, answer_done, &ended_again);
    cr_expect_eq(answer_wait(&ended_again), STORE_NOT_FOUND);
    expect_newest_event(&account, "session.ended", 4);
}

Test(session_store, a_code_is_taken_once)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct session_answer answer;

    cr_assert_eq(create_session(&user, 7, 1, &answer), STORE_OK);
    cr_expect_eq(create_session(&user, 7, 2, &answer), STORE_CONFLICT);
    cr_expect_eq(create_session(&user, 6, 2, &answer), STORE_CONFLICT);
    cr_expect_eq(step_up(1, 3, 7, &answer), STORE_CONFLICT);
    cr_expect_eq(load_session(1, &answer), STORE_OK);
    cr_expect_eq(load_session(2, &answer), STORE_NOT_FOUND);
    cr_expect_eq(load_session(3, &answer), STORE_NOT_FOUND);
}

Test(session_store, of_parallel_sessions_with_one_code_one_is_made)
{
    enum { PARALLEL = 50 };
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct session_answer *answers = calloc(PARALLEL, sizeof *answers);
    unsigned made = 0;

    for (uint8_t i = 0; i < PARALLEL; i++) {
        const struct session_start start = {user.id, 7, digest_of(i), "sid", TEXT("e"), TEXT("i"), NULL};

        session_store_create(fixture.store, &start, &LIMITS, &SOMEBODY, session_answer_done, &answers[i]);
    }
    for (size_t i = 0; i < PARALLEL; i++) {
        cr_assert(test_loop_until_set(&fixture.loop, &answers[i].answer.is_done, 10000));
        made += answers[i].answer.result == STORE_OK;
        cr_expect(answers[i].answer.result == STORE_OK || answers[i].answer.result == STORE_CONFLICT);
    }
    cr_expect_eq(made, 1);
    free(answers);
}

Test(session_store, a_reset_ends_sessions_and_those_about_to_be_made)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct session_answer answer;
    struct answer reset = {0};

    cr_assert_eq(create_session(&user, 7, 1, &answer), STORE_OK);
    account_store_reset_user(fixture.store, &user.id, "other hash", NULL, &SOMEBODY, answer_done, &reset);
    cr_assert_eq(answer_wait(&reset), STORE_OK);
    cr_expect_eq(load_session(1, &answer), STORE_NOT_FOUND);
    /* It was verified against what is no more. */
    cr_expect_eq(create_session(&user, 8, 2, &answer), STORE_REFUSED);
    snprintf(user.password_hash, sizeof user.password_hash, "other hash");
    cr_expect_eq(create_session(&user, 8, 2, &answer), STORE_OK);
}

Test(session_store, login_attempts_tell_the_user)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_answer answer, by_id = {0};

    cr_assert_eq(begin_login("ana@north.test", "e1", "i", &answer), STORE_OK);
    cr_assert(answer.is_known);
    cr_expect(id_equal(&answer.user.id, &user.id));
    cr_expect_str_eq(answer.user.password_hash, user.password_hash);
    cr_expect_arr_eq(answer.user.totp_sealed, user.totp_sealed, TOTP_SEALED_BYTES);
    cr_assert_eq(begin_login("bob@north.test", "e2", "i", &answer), STORE_OK);
    cr_expect_not(answer.is_known);
    session_store_begin_step_up(fixture.store, &user.id, TEXT("u"), TEXT("i"), login_answer_done, &by_id);
    cr_assert_eq(answer_wait(&by_id.answer), STORE_OK);
    cr_expect(by_id.is_known && id_equal(&by_id.user.id, &user.id));
}

Test(session_store, parallel_attempts_cannot_pass_the_limit)
{
    enum { PARALLEL = 50 };
    const struct {
        const char *email_tag, *ip_tag; /* NULL: another one each time */
        unsigned free;
    } cases[] = {{"e", NULL, 5}, {NULL, "i", 20}, {"e2", "i2", 5}};
    struct login_answer *answers = calloc(PARALLEL, sizeof *answers);

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned allowed = 0;

        memset(answers, 0, PARALLEL * sizeof *answers);
        for (size_t i = 0; i < PARALLEL; i++) {
            char other[32];

            snprintf(other, sizeof other, "other-%zu-%zu", c, i);
            session_store_begin_login(
                fixture.store, TEXT("x@y.test"), text_of(cases[c].email_tag ? cases[c].email_tag : other),
                text_of(cases[c].ip_tag ? cases[c].ip_tag : other), login_answer_done, &answers[i]);
        }
        for (size_t i = 0; i < PARALLEL; i++) {
            cr_assert(test_loop_until_set(&fixture.loop, &answers[i].answer.is_done, 10000));
            allowed += answers[i].answer.result == STORE_OK;
            if (answers[i].answer.result == STORE_REFUSED)
                cr_expect_eq(answers[i].retry_after_s, 30);
        }
        cr_expect_eq(allowed, cases[c].free, "case %zu: %u", c, allowed);
    }
    free(answers);
}

Test(session_store, success_forgives)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_answer login;
    struct session_answer session;

    for (int64_t i = 0; i < 12; i++) {
        cr_expect_eq(begin_login("ana@north.test", "e", "i", &login), STORE_OK, "attempt %d", (int)i);
        if (i % 2)
            cr_assert_eq(create_session(&user, 7 + i, (uint8_t)i, &session), STORE_OK);
    }
}

Test(session_store, failed_logins_are_recorded_where_there_is_an_account)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct answer known = {0}, unknown = {0};

    session_store_fail_login(fixture.store, &user.id, &SOMEBODY, answer_done, &known);
    cr_expect_eq(answer_wait(&known), STORE_OK);
    expect_newest_event(&account, "login.failed", 2);
    session_store_fail_login(fixture.store, NULL, &SOMEBODY, answer_done, &unknown);
    cr_expect_eq(answer_wait(&unknown), STORE_OK);
    expect_newest_event(&account, "login.failed", 2);
}

Test(session_store, sessions_that_cannot_be_are_never_answered)
{
    static const struct {
        const char *field, *value;
    } cases[] = {
        {"sid", "a-name-that-is-longer-than-any-id-can-be"},
        {"user", "usr_1"},
        {"created", "0"},
        {"created", "x"},
        {"expires", "x"},
    };
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const char *name = "t:session:0100000000000000000000000000000000000000000000000000000000000000";
    struct session_answer answer;

    cr_assert_eq(create_session(&user, 7, 1, &answer), STORE_OK);
    redis_server_tell(&fixture.server, "COPY", name, "sound", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        redis_server_tell(&fixture.server, "HSET", name, cases[i].field, cases[i].value, NULL);
        cr_expect_neq(load_session(1, &answer), STORE_OK, "case %zu", i);
        redis_server_tell(&fixture.server, "COPY", "sound", name, "REPLACE", NULL);
    }
    cr_expect_eq(load_session(1, &answer), STORE_OK);
}
