#include "records/session_store.h"
#include "deadline.h"
#include "base/metrics.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(session_store, .init = fixture_start, .fini = fixture_stop);

static const struct session_limits LIMITS = {1800000, 43200000, 300000};

struct login_answer {
    struct answer answer;
    bool is_known, browser_is_known, is_locked;
    struct user_record user;
    uint32_t retry_after_s;
};

static void login_answer_done(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct login_answer *answer = arg;

    answer->is_known = begin->user != NULL;
    if (begin->user)
        answer->user = *begin->user;
    answer->browser_is_known = begin->browser_is_known;
    answer->is_locked = begin->is_locked;
    answer->retry_after_s = begin->retry_after_s;
    answer_done(&answer->answer, result);
}

static struct login_attempt attempt_of(const char *id, const char *counters)
{
    return (struct login_attempt){.id = text_of(id), .counters = text_of(counters), .home = fixture.store};
}

static enum store_result begin_login(const char *email, const char *counters, struct login_answer *answer)
{
    const struct login_attempt attempt = attempt_of("a", counters);

    *answer = (struct login_answer){0};
    session_store_begin_login(fixture.partitions, text_of(email), &attempt, NULL, NULL, login_answer_done, answer);
    return answer_wait(&answer->answer);
}

struct fail_answer {
    struct answer answer;
    struct login_failure failure;
};

static void fail_answer_done(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct fail_answer *answer = arg;

    answer->failure = *failure;
    answer_done(&answer->answer, result);
}

static enum store_result fail_login(const struct id *user, const char *counters, bool only_code_wrong,
                                    struct login_failure *ret_failure)
{
    const struct login_attempt attempt = attempt_of("a", counters);
    const struct audit_source stranger = {.ip = SOMEBODY.ip, .request_id = SOMEBODY.request_id};
    struct fail_answer answer = {0};

    session_store_fail_login(fixture.partitions, user, &attempt, only_code_wrong, &stranger, fail_answer_done, &answer);
    answer_wait(&answer.answer);
    *ret_failure = answer.failure;
    return answer.answer.result;
}

struct session_answer {
    struct answer answer;
    struct session_record session;
};

static void session_answer_done(void *arg, enum store_result result, const struct session_record *session)
{
    struct session_answer *answer = arg;

    cr_assert_eq(session != NULL, result == STORE_OK || result == STORE_REFUSED || result == STORE_CONFLICT);
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
                                        .account = user->account,
                                        .totp_step = step,
                                        .token_digest = digest_of(n),
                                        .sid = "01jd0000000000000000000000",
                                        .attempt = attempt_of("a", "pair:p,network:n,email:e,"),
                                        .browser = "Firefox on Windows",
                                        .verified = user};

    *answer = (struct session_answer){0};
    session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, session_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result load_session(uint8_t n, struct session_answer *answer)
{
    *answer = (struct session_answer){0};
    session_store_load(fixture.store, digest_of(n), &LIMITS, TEXT("192.0.2.7"), session_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result step_up(uint8_t from, uint8_t to, int64_t step, struct session_answer *answer)
{
    struct session_answer before;
    struct session_record loaded = {0};

    if (load_session(from, &before) == STORE_OK)
        loaded = before.session;
    *answer = (struct session_answer){0};
    const struct session_proof proof = {&loaded, digest_of(from), step, attempt_of("a", "session:s,user:u,"), &LIMITS};
    session_store_step_up(fixture.store, &proof, digest_of(to), &SOMEBODY, session_answer_done, answer);
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
    cr_expect_eq(answer.session.totp_step, 7);
    cr_expect_eq(step_up(1, 3, 7, &answer), STORE_CONFLICT);
    cr_expect_eq(answer.session.totp_step, 7);
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
        const struct session_start start = {.user = user.id,
                                            .account = user.account,
                                            .totp_step = 7,
                                            .token_digest = digest_of(i),
                                            .sid = "sid",
                                            .attempt = attempt_of("a", "")};

        session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, session_answer_done, &answers[i]);
    }
    for (size_t i = 0; i < PARALLEL; i++) {
        cr_assert(test_loop_until_set(&fixture.loop, &answers[i].answer.is_done, PATIENCE_MS));
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
    account_store_reset_user(fixture.store, &user.id, "other hash", false, NULL, &SOMEBODY, answer_done, &reset);
    cr_assert_eq(answer_wait(&reset), STORE_OK);
    cr_expect_eq(load_session(1, &answer), STORE_NOT_FOUND);
    /* It was verified against a password that has changed since. */
    cr_expect_eq(create_session(&user, 8, 2, &answer), STORE_NOT_FOUND);
    snprintf(user.password_hash, sizeof user.password_hash, "other hash");
    cr_expect_eq(create_session(&user, 8, 2, &answer), STORE_OK);
}

Test(session_store, login_attempts_tell_the_user)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const struct login_attempt attempt = attempt_of("s1", "session:s,user:u,");
    struct login_answer answer, by_id = {0};

    cr_assert_eq(begin_login("ana@north.test", "pair:p,", &answer), STORE_OK);
    cr_assert(answer.is_known);
    cr_expect(id_equal(&answer.user.id, &user.id));
    cr_expect_str_eq(answer.user.password_hash, user.password_hash);
    cr_expect_arr_eq(answer.user.totp_sealed, user.totp_sealed, TOTP_SEALED_BYTES);
    cr_assert_eq(begin_login("bob@north.test", "pair:q,", &answer), STORE_OK);
    cr_expect_not(answer.is_known);
    session_store_begin_step_up(fixture.store, &user.id, &attempt, login_answer_done, &by_id);
    cr_assert_eq(answer_wait(&by_id.answer), STORE_OK);
    cr_expect(by_id.is_known && id_equal(&by_id.user.id, &user.id));
}

/* Many guesses that begin before any is judged. */
enum { GUESSES = 1000, SENT_AT_ONCE = 50 };
struct guesses {
    const char *counters;
    char ids[GUESSES][16];
    struct login_answer begun[GUESSES];
    struct fail_answer failed[GUESSES];
};

static void guess_begin(struct guesses *g, size_t i)
{
    snprintf(g->ids[i], sizeof g->ids[i], "%zu", i);
    const struct login_attempt attempt = attempt_of(g->ids[i], g->counters);
    session_store_begin_login(fixture.partitions, TEXT("x@y.test"), &attempt, NULL, NULL, login_answer_done,
                              &g->begun[i]);
    if (i % SENT_AT_ONCE == SENT_AT_ONCE - 1)
        cr_assert(test_loop_until_set(&fixture.loop, &g->begun[i].answer.is_done, PATIENCE_MS));
}

static void guess_fail(struct guesses *g, size_t i)
{
    const struct login_attempt attempt = attempt_of(g->ids[i], g->counters);

    cr_assert(g->begun[i].answer.is_done);
    if (g->begun[i].answer.result == STORE_OK) {
        session_store_fail_login(fixture.partitions, NULL, &attempt, false, &SOMEBODY, fail_answer_done, &g->failed[i]);
        cr_assert(test_loop_until_set(&fixture.loop, &g->failed[i].answer.is_done, PATIENCE_MS));
    } else {
        cr_assert_eq(g->begun[i].answer.result, STORE_REFUSED);
        cr_assert_eq(g->begun[i].retry_after_s, 1);
    }
}

/* Nothing is counted yet when all of them begin. Even so, no more of them get a verdict than the limit allows. */
Test(session_store, parallel_guesses_cannot_pass_the_limit)
{
    const struct {
        const char *counters;
        unsigned under_way, told;
    } cases[] = {
        {"pair:p,", 10, 5}, {"network:n,", 100, 20}, {"wide:w,", 300, 60}, {"pair:q,network:m,email:e,", 10, 5}};

    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct guesses *g = calloc(1, sizeof *g);
        unsigned allowed = 0, told = 0;

        g->counters = cases[c].counters;
        for (size_t i = 0; i < GUESSES; i++)
            guess_begin(g, i);
        for (size_t i = 0; i < GUESSES; i++) {
            guess_fail(g, i);
            allowed += g->begun[i].answer.result == STORE_OK;
            told += g->failed[i].answer.is_done && g->failed[i].answer.result == STORE_OK;
            cr_assert(g->failed[i].answer.result == STORE_OK || g->failed[i].answer.result == STORE_REFUSED);
        }
        cr_expect_eq(allowed, cases[c].under_way, "case %zu: %u", c, allowed);
        cr_expect_eq(told, cases[c].told, "case %zu: %u", c, told);
        free(g);
    }
}

/* 26 people at a clinic sign in at the same moment, from one network. */
Test(session_store, right_logins_in_parallel_hold_up_nobody)
{
    enum { PEOPLE = 26 };
    struct id account = some_account();
    struct user_record users[PEOPLE];
    struct login_answer begun[PEOPLE] = {0};
    struct session_answer made[PEOPLE] = {0};
    char ids[PEOPLE][16], counters[PEOPLE][64];

    for (size_t i = 0; i < PEOPLE; i++) {
        char email[32];

        snprintf(email, sizeof email, "p%zu@north.test", i);
        users[i] = some_user(&account, email);
        snprintf(ids[i], sizeof ids[i], "a%zu", i);
        snprintf(counters[i], sizeof counters[i], "pair:p%zu,email:e%zu,network:n,wide:w,", i, i);
    }
    for (size_t i = 0; i < PEOPLE; i++) {
        const struct login_attempt attempt = attempt_of(ids[i], counters[i]);
        session_store_begin_login(fixture.partitions, text_of(users[i].email), &attempt, NULL, NULL, login_answer_done,
                                  &begun[i]);
    }
    for (size_t i = 0; i < PEOPLE; i++)
        cr_expect(test_loop_until_set(&fixture.loop, &begun[i].answer.is_done, PATIENCE_MS) &&
                      begun[i].answer.result == STORE_OK,
                  "%zu", i);
    for (uint8_t i = 0; i < PEOPLE; i++) {
        const struct session_start start = {.user = users[i].id,
                                            .account = users[i].account,
                                            .totp_step = 7,
                                            .token_digest = digest_of(i),
                                            .sid = "sid",
                                            .attempt = attempt_of(ids[i], counters[i])};
        session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, session_answer_done, &made[i]);
    }
    for (size_t i = 0; i < PEOPLE; i++)
        cr_expect(test_loop_until_set(&fixture.loop, &made[i].answer.is_done, PATIENCE_MS) &&
                      made[i].answer.result == STORE_OK,
                  "%zu", i);
}

/* Even the right guess gets no verdict if it ends after the limit was reached. */
Test(session_store, a_right_guess_behind_the_limit_is_refused)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_answer login;
    struct session_answer session;
    struct login_failure failure;

    cr_assert_eq(begin_login("ana@north.test", "pair:p,", &login), STORE_OK);
    for (size_t i = 0; i < 5; i++)
        cr_assert_eq(fail_login(&user.id, "pair:p,", false, &failure), STORE_OK);
    cr_expect_eq(create_session(&user, 7, 1, &session), STORE_REFUSED);
    cr_expect(is_wait_of(30, session.session.retry_after_s), "%u", session.session.retry_after_s);
    cr_expect_eq(load_session(1, &session), STORE_NOT_FOUND);
}

Test(session_store, attempts_without_a_verdict_are_given_back)
{
    struct login_answer login;

    for (size_t i = 0; i < 40; i++) {
        char id[16];

        snprintf(id, sizeof id, "b%zu", i);
        const struct login_attempt attempt = attempt_of(id, "pair:p,network:n,");
        login = (struct login_answer){0};
        session_store_begin_login(fixture.partitions, TEXT("x@y.test"), &attempt, NULL, NULL, login_answer_done,
                                  &login);
        cr_assert_eq(answer_wait(&login.answer), STORE_OK, "%zu", i);
        session_store_give_back(fixture.partitions, &attempt);
    }
}

Test(session_store, success_forgives)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_answer login;
    struct session_answer session;
    struct login_failure failure;

    for (int64_t i = 0; i < 12; i++) {
        cr_expect_eq(begin_login("ana@north.test", "pair:p,", &login), STORE_OK, "attempt %d", (int)i);
        if (i % 2)
            cr_assert_eq(create_session(&user, 7 + i, (uint8_t)i, &session), STORE_OK);
        else
            cr_assert_eq(fail_login(&user.id, "pair:p,", false, &failure), STORE_OK);
    }
}

/* "name:calls=n" for each command since the statistics were reset, without times, so that two runs can be compared. */
static void read_command_counts(char *ret_counts, size_t size)
{
    char reply[16384];
    struct text lines, line, part;
    struct buf out;

    redis_server_ask(&fixture.server, reply, sizeof reply, "INFO", "commandstats", NULL);
    redis_server_tell(&fixture.server, "CONFIG", "RESETSTAT", NULL);
    buf_init_fixed(&out, ret_counts, size - 1);
    lines = text_of(reply);
    while (text_next(&lines, '\n', &line))
        if (text_starts_with(line, TEXT("cmdstat_")) && text_next(&line, ',', &part))
            buf_printf(&out, "%.*s\n", TEXT_ARG(part));
    cr_assert_not(out.failed);
    ret_counts[out.len] = '\0';
}

/* The same number of commands of each kind, whoever it is: neither timing nor a later request may give it away. */
Test(session_store, a_wrong_login_is_the_same_work_for_known_and_unknown)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_failure failure;
    char counts[8192], known[8192], unknown[8192];

    cr_assert_eq(fail_login(&user.id, "pair:p,email:e,network:n,", false, &failure), STORE_OK);
    cr_assert_eq(fail_login(NULL, "pair:q,email:f,network:n,", false, &failure), STORE_OK);
    expect_newest_refusal(&account, "login.failed", 1);
    read_command_counts(counts, sizeof counts);
    cr_assert_eq(fail_login(&user.id, "pair:p,email:e,network:n,", false, &failure), STORE_OK);
    read_command_counts(known, sizeof known);
    cr_assert_eq(fail_login(NULL, "pair:q,email:f,network:n,", false, &failure), STORE_OK);
    read_command_counts(unknown, sizeof unknown);
    cr_expect_str_eq(known, unknown);
    cr_expect_not_null(strstr(known, "cmdstat_xadd:calls=1\n"), "%s", known);
    expect_newest_refusal(&account, "login.failed", 2);
}

Test(session_store, a_hundred_wrong_codes_behind_a_right_password_lock_the_user)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct login_answer login;
    struct session_answer session;
    struct login_failure failure;
    struct answer unlocked = {0};

    for (int i = 1; i <= 100; i++) {
        char counters[32];

        snprintf(counters, sizeof counters, "pair:p%d,", i); /* each from another network */
        cr_assert_eq(fail_login(&user.id, counters, false, &failure), STORE_OK, "wrong passwords lock nobody");
        cr_assert_eq(fail_login(&user.id, counters, true, &failure), STORE_OK);
        cr_expect_eq(failure.locks, i == 100, "%d", i);
    }
    cr_assert_eq(begin_login("ana@north.test", "pair:r,", &login), STORE_OK);
    cr_expect(login.is_locked);
    cr_expect_eq(create_session(&user, 7, 1, &session), STORE_REFUSED);
    cr_expect_eq(session.session.retry_after_s, 0);
    expect_newest_event(&account, "user.locked", 2);
    expect_newest_refusal(&account, "login.failed", 200);

    account_store_unlock_user(fixture.store, &user.id, &SOMEBODY, answer_done, &unlocked);
    cr_assert_eq(answer_wait(&unlocked), STORE_OK);
    expect_newest_event(&account, "user.unlocked", 3);
    cr_assert_eq(begin_login("ana@north.test", "pair:r,", &login), STORE_OK);
    cr_expect_not(login.is_locked);
    cr_expect_eq(create_session(&user, 7, 1, &session), STORE_OK);
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

/* An attacker writes to Redis */

static void set_in_session(uint8_t n, const char *field, const char *value)
{
    char name[128];

    snprintf(name, sizeof name, "t:session:%02x%062d", n, 0);
    redis_server_tell(&fixture.server, "HSET", name, field, value, NULL);
}

static void expect_altered(enum store_result result)
{
    cr_expect_eq(result, STORE_NOT_FOUND);
    cr_expect_geq(metric_values[METRIC_RECORDS_ALTERED], 1);
    metric_set(METRIC_RECORDS_ALTERED, 0);
}

/* Only nodes decide what a session is and how far it is trusted. */
Test(session_store, who_writes_redis_promotes_no_session)
{
    struct id account = some_account(), other_account = some_account();
    struct user_record user = some_user(&account, "ana@north.test"), other = some_user(&account, "eve@north.test");
    struct user_record far = some_user(&other_account, "far@south.test");
    struct session_answer made, answer;
    char now[24], until[24];

    cr_assert_eq(create_session(&user, 7, 1, &made), STORE_OK);
    snprintf(now, sizeof now, "%lld", (long long)made.session.created_ms);
    snprintf(until, sizeof until, "%lld", (long long)made.session.ends_ms + 1);
    const struct {
        const char *field, *altered, *was;
    } CASES[] = {
        {"step_up", now, "0"},
        {"user", other.id.text, user.id.text},
        {"user", far.id.text, user.id.text},
        {"account", other_account.text, account.text},
        {"sid", "01jd0000000000000000000009", "01jd0000000000000000000000"},
        {"expires", until, NULL},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        set_in_session(1, CASES[i].field, CASES[i].altered);
        expect_altered(load_session(1, &answer));
        if (!CASES[i].was)
            break;
        set_in_session(1, CASES[i].field, CASES[i].was);
        cr_expect_eq(load_session(1, &answer), STORE_OK, "%s", CASES[i].field);
    }
}

Test(session_store, who_writes_redis_moves_no_session)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test"), other = some_user(&account, "eve@north.test");
    struct session_answer made, answer;
    char from[128], to[128];

    cr_assert_eq(create_session(&user, 7, 1, &made), STORE_OK);
    cr_assert_eq(create_session(&other, 7, 2, &made), STORE_OK);
    snprintf(from, sizeof from, "t:session:%02x%062d", 1, 0);
    snprintf(to, sizeof to, "t:session:%02x%062d", 2, 0);
    redis_server_tell(&fixture.server, "RENAME", from, to, NULL);
    expect_altered(load_session(2, &answer));
    cr_assert_eq(create_session(&user, 8, 3, &made), STORE_OK);
    cr_assert_eq(step_up(3, 4, 9, &made), STORE_OK);
    cr_expect_eq(load_session(4, &answer), STORE_OK);
    cr_expect_gt(answer.session.step_up_expires_ms, 0);
}

/* An altered record, or an email that leads to another user's record, belongs to nobody. */
Test(session_store, who_writes_redis_signs_in_as_nobody_else)
{
    struct id account = some_account(), other_account = some_account();
    struct user_record eve = some_user(&other_account, "eve@south.test");
    struct login_answer answer;
    char name[128];

    redis_server_tell(&fixture.server, "SET", "t:email:ana@north.test", eve.id.text, NULL);
    cr_assert_eq(begin_login("ana@north.test", "pair:p,", &answer), STORE_OK);
    cr_expect_not(answer.is_known);
    expect_altered(STORE_NOT_FOUND);
    snprintf(name, sizeof name, "t:user:%s", eve.id.text);
    redis_server_tell(&fixture.server, "HSET", name, "account", account.text, NULL);
    cr_assert_eq(begin_login("eve@south.test", "pair:p,", &answer), STORE_OK);
    cr_expect_not(answer.is_known);
    expect_altered(STORE_NOT_FOUND);
}
