/* Signing in where an email, its counters and its account lie in different partitions. */
#include "base/clock.h"
#include "deadline.h"
#include "lease/lease.h"
#include "engine/alias.h"
#include "records/factor_store.h"
#include "records/link_store.h"
#include "engine/readiness.h"
#include "records/token_search.h"
#include "store_fixture.h"
#include "virtual_redis.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The account lies in HOME, and each of its user's counters in another partition. */
enum { PARTITIONS = 4, HOME = 0, EMAIL_AT = 1, PAIR_AT = 2, NETWORK_AT = 3 };
/* W of a lease of 400 ms. */
enum { WAIT_MS = 550 };
/* A reservation expires by itself after a minute. */
enum { BEFORE_EXPIRY_MS = 30000 };
#define LEASE_TEXT "400"

static const struct session_limits LIMITS = {1800000, 43200000, 300000};
static const struct audit_source STRANGER = {.ip = {"192.0.2.1", 9}, .request_id = {"req_1", 5}};

static struct scene {
    struct id account;
    struct user_record user;
    char email_tag[16], pair_tag[16], network_tag[16];
    char counters[96];
} scene;

static unsigned place_of(const char *t)
{
    return bucket_of_text(text_of(t)) % PARTITIONS;
}

/* "<stem><number>" in that partition. */
static void name_in(unsigned partition, const char *stem, char ret_name[16])
{
    unsigned i = 0;

    do {
        snprintf(ret_name, 16, "%s%u", stem, i++);
    } while (place_of(ret_name) != partition);
}

static struct id account_in(unsigned partition)
{
    struct id account;

    do {
        account = some_account();
    } while (place_of(account.text) != partition);
    return account;
}

/* A user whose email lies in another partition than the account. */
static struct user_record user_in(const struct id *account, const char *stem)
{
    char email[EMAIL_MAX_BYTES + 1], name[EMAIL_MAX_BYTES + 16], owner[2 * ID_TEXT_BYTES];
    unsigned i = 0, at = (place_of(account->text) + 1) % PARTITIONS;

    do {
        snprintf(email, sizeof email, "%s%u@north.test", stem, i++);
    } while (place_of(email) != at);
    struct user_record user = some_user(account, email);
    snprintf(name, sizeof name, "t:{%u}:email:%s", at, email);
    snprintf(owner, sizeof owner, "%s %s", user.id.text, account->text);
    redis_server_tell(&fixture.server, "SET", name, owner, NULL);
    return user;
}

static void use_tags(const char *stem)
{
    char names[3][16];

    snprintf(names[0], sizeof names[0], "%se", stem);
    snprintf(names[1], sizeof names[1], "%sp", stem);
    snprintf(names[2], sizeof names[2], "%sn", stem);
    name_in(EMAIL_AT, names[0], scene.email_tag);
    name_in(PAIR_AT, names[1], scene.pair_tag);
    name_in(NETWORK_AT, names[2], scene.network_tag);
    snprintf(scene.counters, sizeof scene.counters, "email:%s,pair:%s,network:%s,", scene.email_tag, scene.pair_tag,
             scene.network_tag);
}

static void start(void)
{
    virtual_redis_begin();
    fixture_start();
    for (unsigned i = 0; i < PARTITIONS; i++) {
        char name[32];

        snprintf(name, sizeof name, "t:{%u}:lease_max", i);
        redis_server_tell(&fixture.server, "SET", name, LEASE_TEXT, NULL);
    }
    fixture_spread(PARTITIONS);
    scene.account = account_in(HOME);
    scene.user = user_in(&scene.account, "ana");
    use_tags("");
}

TestSuite(sign_in_partitions, .init = start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

/* The reply to one command on a name of a partition. */
static const char *ask(const char *command, unsigned partition, const char *name, const char *argument)
{
    static char reply[512];
    char whole[128];

    snprintf(whole, sizeof whole, "t:{%u}:%s", partition, name);
    redis_server_ask(&fixture.server, reply, sizeof reply, command, whole, argument, NULL);
    reply[strcspn(reply, "\n")] = '\0';
    return reply;
}

static const char *count_at(unsigned partition, const char *tag)
{
    char name[64];

    snprintf(name, sizeof name, "throttle:%s", tag);
    return ask("HGET", partition, name, "n");
}

/* Sets a counter to n failures, and lets it wait for wait_ms. */
static void set_counter(unsigned partition, const char *tag, const char *n, int64_t wait_ms)
{
    char name[64], now[24], until[24];

    snprintf(name, sizeof name, "t:{%u}:throttle:%s", partition, tag);
    snprintf(now, sizeof now, "%lld", (long long)clock_wall_ms());
    snprintf(until, sizeof until, "%lld", wait_ms ? (long long)(clock_wall_ms() + wait_ms) : 0LL);
    redis_server_tell(&fixture.server, "HSET", name, "n", n, "first", now, "until", until, NULL);
}

static uint64_t under_way_at(unsigned partition, const char *tag)
{
    uint64_t count;
    char name[64];

    snprintf(name, sizeof name, "throttle:%s:under_way", tag);
    cr_assert(text_to_u64(text_of(ask("ZCARD", partition, name, NULL)), INT32_MAX, &count));
    return count;
}

/* Attempts */

struct attempt {
    struct answer begun, failed;
    char id[16];
    struct login_attempt reserved;
    bool is_known, browser_is_known, throttled_is_known;
    uint32_t retry_after_s;
    struct login_failure failure;
};

static void on_begun(void *arg, enum store_result result, const struct login_begin *begin)
{
    struct attempt *attempt = arg;

    attempt->reserved = begin->attempt;
    attempt->is_known = begin->user != NULL;
    attempt->browser_is_known = begin->browser_is_known;
    attempt->throttled_is_known = begin->throttled_is_known;
    attempt->retry_after_s = begin->retry_after_s;
    answer_done(&attempt->begun, result);
}

static void begin_as(struct attempt *attempt, const char *email, const struct login_browser *browser, const char *id)
{
    *attempt = (struct attempt){0};
    snprintf(attempt->id, sizeof attempt->id, "%s", id);
    const struct login_attempt begun = {.id = text_of(attempt->id), .counters = text_of(scene.counters)};
    session_store_begin_login(fixture.partitions, text_of(email), &begun, browser, NULL, on_begun, attempt);
}

static enum store_result begin(struct attempt *attempt, const char *email)
{
    begin_as(attempt, email, NULL, "a");
    return answer_wait(&attempt->begun);
}

static void on_failed(void *arg, enum store_result result, const struct login_failure *failure)
{
    struct attempt *attempt = arg;

    attempt->failure = *failure;
    answer_done(&attempt->failed, result);
}

static enum store_result fail(struct attempt *attempt, const struct id *user)
{
    attempt->failed = (struct answer){0};
    session_store_fail_login(fixture.partitions, user, &attempt->reserved, false, &STRANGER, on_failed, attempt);
    return answer_wait(&attempt->failed);
}

/* Sessions */

static void on_session(void *arg, enum store_result result, const struct session_record *session)
{
    wait_answer_done(arg, result, session ? session->retry_after_s : 0);
}

/* A session of a user has a digest in the bucket of the account. */
static const uint8_t *digest_of(const struct user_record *user, uint8_t n)
{
    static uint8_t digests[256][KEYRING_DIGEST_BYTES];

    digests[n][0] = n;
    digests[n][KEYRING_DIGEST_BYTES - 1] = (uint8_t)bucket_of_account(&user->account);
    return digests[n];
}

static void create_as(const struct user_record *user, uint8_t n, const uint8_t *digest, const uint8_t *presented,
                      struct wait_answer *answer)
{
    const struct session_start start = {.user = user->id,
                                        .account = user->account,
                                        .totp_step = n,
                                        .token_digest = digest,
                                        .sid = "01jd0000000000000000000000",
                                        .attempt = {.id = TEXT("a"), .counters = text_of(scene.counters)},
                                        .browser_digest = TEXT("b1"),
                                        .browser = "Firefox on Windows",
                                        .presented_digest = presented,
                                        .verified = user};

    *answer = (struct wait_answer){0};
    session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, on_session, answer);
}

static void create(const struct user_record *user, uint8_t n, const uint8_t *presented, struct wait_answer *answer)
{
    create_as(user, n, digest_of(user, n), presented, answer);
}

static enum store_result create_session(const struct user_record *user, uint8_t n, const uint8_t *presented)
{
    struct wait_answer answer;

    create(user, n, presented, &answer);
    return answer_wait(&answer.answer);
}

static enum store_result load_by(const struct user_record *user, const uint8_t *digest)
{
    struct wait_answer answer = {0};

    session_store_load(partition_of_account(fixture.partitions, &user->account), digest, &LIMITS, TEXT(""), on_session,
                       &answer);
    return answer_wait(&answer.answer);
}

static enum store_result load_session(const struct user_record *user, uint8_t n)
{
    return load_by(user, digest_of(user, n));
}

Test(sign_in_partitions, a_user_is_found_by_the_email_in_another_partition)
{
    struct attempt attempt;

    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    cr_expect(attempt.is_known);
    cr_expect_eq(attempt.reserved.home, partitions_at(fixture.partitions, HOME));
    cr_expect_eq(under_way_at(EMAIL_AT, scene.email_tag), 1);
    cr_expect_eq(under_way_at(PAIR_AT, scene.pair_tag), 1);
    cr_expect_eq(under_way_at(NETWORK_AT, scene.network_tag), 1);
    cr_expect_eq(create_session(&scene.user, 1, NULL), STORE_OK);
    cr_expect_eq(load_session(&scene.user, 1), STORE_OK);
}

/* Five wrong ones for an email from a network, wherever they are counted. */
Test(sign_in_partitions, limits_hold_in_all_partitions)
{
    struct wait_answer made;
    struct attempt attempt, late;

    cr_assert_eq(begin(&late, scene.user.email), STORE_OK);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK, "%d", i);
        cr_assert_eq(fail(&attempt, &scene.user.id), STORE_OK, "%d", i);
    }
    cr_expect_str_eq(count_at(EMAIL_AT, scene.email_tag), "5");
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "5");
    cr_expect_str_eq(count_at(NETWORK_AT, scene.network_tag), "5");

    cr_expect_eq(begin(&attempt, scene.user.email), STORE_REFUSED);
    cr_expect(is_wait_of(30, attempt.retry_after_s), "%u", attempt.retry_after_s);
    cr_expect(attempt.throttled_is_known && !attempt.is_known);
    /* Neither wrong nor right is told. */
    cr_expect_eq(fail(&late, &scene.user.id), STORE_REFUSED);
    cr_expect(is_wait_of(30, late.failure.retry_after_s), "%u", late.failure.retry_after_s);
    create(&scene.user, 1, NULL, &made);
    cr_expect_eq(answer_wait(&made.answer), STORE_REFUSED);
    cr_expect(is_wait_of(30, made.retry_after_s), "%u", made.retry_after_s);
    cr_expect_eq(load_session(&scene.user, 1), STORE_NOT_FOUND);
}

/* As a partition is whose Redis was found unfit. */
static void make_unfit(unsigned partition)
{
    store_doubt(partitions_at(fixture.partitions, partition), "A test says so.");
}

/* Otherwise the two answers would tell right from wrong, and nothing would be counted. */
Test(sign_in_partitions, nothing_is_right_where_nothing_can_be_wrong)
{
    struct wait_answer made;
    struct attempt attempt;

    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    make_unfit(NETWORK_AT);
    cr_expect_eq(fail(&attempt, &scene.user.id), STORE_UNAVAILABLE);
    cr_expect_str_eq(count_at(NETWORK_AT, scene.network_tag), "(nil)");
    make_unfit(NETWORK_AT);
    create(&scene.user, 1, NULL, &made);
    cr_expect_eq(answer_wait(&made.answer), STORE_UNAVAILABLE);
    cr_expect_eq(load_session(&scene.user, 1), STORE_NOT_FOUND);
}

static bool is_given_back(void *arg)
{
    (void)arg;
    return under_way_at(PAIR_AT, scene.pair_tag) == 0 && under_way_at(NETWORK_AT, scene.network_tag) == 0;
}

static bool is_reserved(void *arg)
{
    (void)arg;
    return under_way_at(NETWORK_AT, scene.network_tag) == 1;
}

Test(sign_in_partitions, a_reservation_refused_in_one_partition_is_given_back_in_the_others)
{
    struct attempt attempt;

    set_counter(EMAIL_AT, scene.email_tag, "30", 60000);
    begin_as(&attempt, scene.user.email, NULL, "a");
    cr_assert(test_loop_until(&fixture.loop, is_reserved, NULL, PATIENCE_MS));
    cr_assert(test_loop_until_set(&fixture.loop, &attempt.begun.is_done, PATIENCE_MS));
    cr_expect_eq(attempt.begun.result, STORE_REFUSED);
    cr_expect(is_wait_of(60, attempt.retry_after_s), "%u", attempt.retry_after_s);
    cr_assert(test_loop_until(&fixture.loop, is_given_back, NULL, BEFORE_EXPIRY_MS));
    cr_expect_eq(under_way_at(EMAIL_AT, scene.email_tag), 0);
}

Test(sign_in_partitions, an_attempt_without_a_verdict_is_given_back)
{
    struct attempt attempt;

    cr_assert_eq(begin(&attempt, "nobody@north.test"), STORE_OK);
    cr_assert(is_reserved(NULL));
    session_store_give_back(fixture.partitions, &attempt.reserved);
    cr_assert(test_loop_until(&fixture.loop, is_given_back, NULL, BEFORE_EXPIRY_MS));
}

/* Nothing is counted yet when all of them begin. All that may end do so at once. */
Test(sign_in_partitions, parallel_guesses_cannot_pass_the_limit)
{
    enum { GUESSES = 100 };
    struct attempt *guesses = calloc(GUESSES, sizeof *guesses);
    unsigned allowed = 0, told = 0;

    for (unsigned i = 0; i < GUESSES; i++) {
        char id[16];

        snprintf(id, sizeof id, "a%u", i);
        begin_as(&guesses[i], scene.user.email, NULL, id);
    }
    for (unsigned i = 0; i < GUESSES; i++) {
        cr_assert(test_loop_until_set(&fixture.loop, &guesses[i].begun.is_done, PATIENCE_MS));
        allowed += guesses[i].begun.result == STORE_OK;
    }
    cr_expect_eq(allowed, 10, "%u", allowed);
    for (unsigned i = 0; i < GUESSES; i++)
        if (guesses[i].begun.result == STORE_OK)
            session_store_fail_login(fixture.partitions, &scene.user.id, &guesses[i].reserved, false, &STRANGER,
                                     on_failed, &guesses[i]);
    for (unsigned i = 0; i < GUESSES; i++) {
        if (guesses[i].begun.result == STORE_OK)
            cr_assert(test_loop_until_set(&fixture.loop, &guesses[i].failed.is_done, PATIENCE_MS));
        told += guesses[i].failed.is_done && guesses[i].failed.result == STORE_OK;
    }
    cr_expect_eq(told, 5, "%u", told);
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "5");
    free(guesses);
}

/* Otherwise the owner would not hear of it. */
Test(sign_in_partitions, sign_in_closes_only_if_all_else_is_counted)
{
    struct attempt attempt;
    char user[64];

    snprintf(user, sizeof user, "user:%s", scene.user.id.text);
    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    set_counter(EMAIL_AT, scene.email_tag, "29", 0);
    set_counter(NETWORK_AT, scene.network_tag, "20", 60000);
    cr_expect_eq(fail(&attempt, &scene.user.id), STORE_REFUSED);
    cr_expect_str_eq(count_at(EMAIL_AT, scene.email_tag), "29");
    cr_expect_str_eq(ask("HGET", HOME, user, "attacked"), "(nil)");
    cr_assert(test_loop_until(&fixture.loop, is_given_back, NULL, BEFORE_EXPIRY_MS));

    set_counter(NETWORK_AT, scene.network_tag, "1", 0);
    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    cr_expect_eq(fail(&attempt, &scene.user.id), STORE_OK);
    cr_expect(attempt.failure.closes);
    cr_expect_str_neq(ask("HGET", HOME, user, "attacked"), "(nil)");
}

Test(sign_in_partitions, success_forgives_the_email_at_its_network)
{
    struct attempt attempt;

    set_counter(EMAIL_AT, scene.email_tag, "4", 0);
    set_counter(PAIR_AT, scene.pair_tag, "4", 0);
    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    cr_assert_eq(create_session(&scene.user, 1, NULL), STORE_OK);
    cr_assert(test_loop_until(&fixture.loop, is_given_back, NULL, BEFORE_EXPIRY_MS));
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "(nil)");
    cr_expect_str_eq(count_at(EMAIL_AT, scene.email_tag), "4");
}

/* An operator clears what was counted against a user, in partitions where the user's record is not. */
Test(sign_in_partitions, unlocking_clears_what_is_counted)
{
    struct store *home = partitions_at(fixture.partitions, HOME);
    struct answer unlocked = {0};
    struct attempt attempt;

    set_counter(PAIR_AT, scene.pair_tag, "5", 60000);
    cr_expect_eq(begin(&attempt, scene.user.email), STORE_REFUSED);
    account_store_unlock_user(home, &scene.user.id, &SOMEBODY, answer_done, &unlocked);
    cr_assert_eq(answer_wait(&unlocked), STORE_OK);
    cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK);
    cr_assert_eq(fail(&attempt, &scene.user.id), STORE_OK);
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "1");
}

/* By a clock that is ahead of those where the counters lie. */
Test(sign_in_partitions, limits_hold_before_the_time_of_unlocking)
{
    struct attempt attempt;
    char user[96], time[24];

    snprintf(user, sizeof user, "t:{%u}:user:%s", HOME, scene.user.id.text);
    snprintf(time, sizeof time, "%lld", (long long)(clock_wall_ms() + 3600000));
    redis_server_tell(&fixture.server, "HSET", user, "forgiven", time, NULL);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(begin(&attempt, scene.user.email), STORE_OK, "%d", i);
        cr_assert_eq(fail(&attempt, &scene.user.id), STORE_OK, "%d", i);
    }
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "5");
    cr_expect_eq(begin(&attempt, scene.user.email), STORE_REFUSED);
}

/* A known browser's counter lies with the user. */
Test(sign_in_partitions, a_known_browser_is_counted_at_home)
{
    const struct login_browser browser = {TEXT("b1"), TEXT("browser:b,")};
    struct attempt attempt;

    cr_assert_eq(create_session(&scene.user, 1, NULL), STORE_OK);
    set_counter(EMAIL_AT, scene.email_tag, "30", 60000);
    begin_as(&attempt, scene.user.email, &browser, "a");
    cr_assert_eq(answer_wait(&attempt.begun), STORE_OK);
    cr_expect(attempt.browser_is_known && attempt.reserved.counts_at_home);
    cr_expect_eq(under_way_at(HOME, "b"), 1);
    cr_expect_eq(fail(&attempt, &scene.user.id), STORE_OK);
    cr_expect_str_eq(count_at(HOME, "b"), "1");
    cr_expect_eq(under_way_at(HOME, "b"), 0);
    cr_expect_str_eq(count_at(EMAIL_AT, scene.email_tag), "30");
}

/* The scripts called since the last count. */
static long long calls_since(void)
{
    char reply[16384];
    const char *found;

    redis_server_ask(&fixture.server, reply, sizeof reply, "INFO", "commandstats", NULL);
    redis_server_tell(&fixture.server, "CONFIG", "RESETSTAT", NULL);
    found = strstr(reply, "cmdstat_evalsha:calls=");
    return found ? atoll(found + strlen("cmdstat_evalsha:calls=")) : 0;
}

/* Of a wrong attempt. The least of some, because the stores also call scripts of their own. */
static long long calls_of(const char *email, const struct id *user, const char *stem)
{
    long long least = 1000;

    for (int i = 0; i < 4; i++) {
        struct attempt attempt;
        long long calls;
        char tags[16];

        snprintf(tags, sizeof tags, "%s%d", stem, i);
        use_tags(tags);
        calls_since();
        cr_assert_eq(begin(&attempt, email), STORE_OK);
        cr_assert_eq(fail(&attempt, user), STORE_OK);
        calls = calls_since();
        if (i > 0 && calls < least) /* the first loads the scripts */
            least = calls;
    }
    return least;
}

/* Neither the time of an answer nor a trail gives it away. */
Test(sign_in_partitions, unknown_and_known_emails_take_as_many_calls)
{
    const char *unknown = "nobody@north.test";
    long long of_known = calls_of(scene.user.email, &scene.user.id, "k");

    cr_expect_eq(of_known, 9, "%lld", of_known);
    cr_expect_eq(calls_of(unknown, NULL, "u"), of_known);
    cr_expect_str_eq(ask("XLEN", place_of(unknown), "strangers", NULL), "4");
}

/* A sign-in is answered once what it ends is over everywhere: a replaced master of that partition may still grant
 * leases. */
static void expect_waits_for(unsigned partition, uint8_t n, const uint8_t *presented)
{
    struct fence *fence = lease_fence(store_lease(partitions_at(fixture.partitions, partition)));
    struct wait_answer answer;

    fence->may_be_replaced = true;
    fence->connected_ns = clock_boot_ns();
    create(&scene.user, n, presented, &answer);
    cr_assert_eq(answer_wait(&answer.answer), STORE_OK);
    cr_expect_geq(clock_boot_ns() - fence->connected_ns, WAIT_MS * CLOCK_NS_PER_MS);
    fence->may_be_replaced = false;
}

/* A browser that another account's user was signed in from. */
Test(sign_in_partitions, a_sign_in_ends_the_session_of_another_account)
{
    struct id other_account = account_in(PAIR_AT);
    struct user_record other = user_in(&other_account, "bob");

    cr_assert_eq(create_session(&other, 1, NULL), STORE_OK);
    cr_assert_eq(create_session(&scene.user, 1, NULL), STORE_OK);
    /* A refused sign-in ends no session. */
    cr_expect_eq(create_session(&scene.user, 1, digest_of(&other, 1)), STORE_CONFLICT);
    cr_expect_eq(load_session(&other, 1), STORE_OK);
    expect_waits_for(PAIR_AT, 2, digest_of(&other, 1));
    cr_expect_eq(load_session(&other, 1), STORE_NOT_FOUND);
    /* One that is gone, and one of the same account. */
    expect_waits_for(HOME, 3, digest_of(&other, 1));
    cr_expect_eq(create_session(&scene.user, 4, digest_of(&scene.user, 3)), STORE_OK);
    cr_expect_eq(load_session(&scene.user, 3), STORE_NOT_FOUND);
    cr_expect_eq(load_session(&scene.user, 4), STORE_OK);
}

/* As 'store copy' leaves it for what was not drawn to lie with its account. */
static void put_alias(const uint8_t digest[KEYRING_DIGEST_BYTES], const struct id *account)
{
    const unsigned at = bucket_of_digest(digest) % PARTITIONS;
    char name[128], store[32], bucket[8];
    int len = snprintf(name, sizeof name, "t:{%u}:alias:", at);

    for (size_t i = 0; i < KEYRING_DIGEST_BYTES; i++)
        len += snprintf(name + len, sizeof name - (size_t)len, "%02x", digest[i]);
    snprintf(store, sizeof store, "t:{%u}:store", at);
    snprintf(bucket, sizeof bucket, "%u", bucket_of_account(account));
    redis_server_tell(&fixture.server, "SET", name, bucket, NULL);
    redis_server_tell(&fixture.server, "HSET", store, "aliased", "1", NULL);
}

static bool has_aliases(void *digest)
{
    return store_has_aliases(partition_of_digest(fixture.partitions, digest));
}

static void await_alias(uint8_t digest[KEYRING_DIGEST_BYTES], const struct id *account)
{
    put_alias(digest, account);
    cr_assert(test_loop_until(&fixture.loop, has_aliases, digest, PATIENCE_MS));
}

/* A session that lies with its account, while its digest leads to the partition of emails. */
static void expect_end_of_one_elsewhere(const struct user_record *user, uint8_t n)
{
    uint8_t old[KEYRING_DIGEST_BYTES] = {n, [KEYRING_DIGEST_BYTES - 1] = EMAIL_AT};
    struct wait_answer answer;

    create_as(user, n, old, NULL, &answer);
    cr_assert_eq(answer_wait(&answer.answer), STORE_OK);
    await_alias(old, &user->account);
    cr_expect_eq(load_by(user, old), STORE_OK);
    cr_assert_eq(create_session(&scene.user, (uint8_t)(n + 1), old), STORE_OK);
    cr_expect_eq(load_by(user, old), STORE_NOT_FOUND);
}

Test(sign_in_partitions, a_sign_in_ends_a_session_that_is_found_by_an_alias)
{
    struct id other_account = account_in(PAIR_AT);
    struct user_record other = user_in(&other_account, "bob");

    expect_end_of_one_elsewhere(&other, 1);
    expect_end_of_one_elsewhere(&scene.user, 3);
}

static bool is_away(void *store)
{
    return !store_is_ready(store);
}

/* Otherwise that session could not be ended, and would live on. */
Test(sign_in_partitions, a_sign_in_waits_for_the_partition_of_the_session_that_it_ends)
{
    struct id other_account = account_in(PAIR_AT);
    struct user_record other = user_in(&other_account, "bob");

    cr_assert_eq(create_session(&other, 1, NULL), STORE_OK);
    redis_server_tell(&fixture.server, "HSET", "t:{2}:store", "id", "00112233445566778899aabbccddeeff", "partitions",
                      "8", NULL);
    cr_assert(test_loop_until(&fixture.loop, is_away, partitions_at(fixture.partitions, PAIR_AT), PATIENCE_MS));
    scene.counters[0] = '\0'; /* none lies there */
    cr_expect_eq(create_session(&scene.user, 2, digest_of(&other, 1)), STORE_UNAVAILABLE);
    cr_expect_eq(load_session(&scene.user, 2), STORE_NOT_FOUND);
    cr_expect_eq(create_session(&scene.user, 2, NULL), STORE_OK, "the code was not spent");
}

/* Recovery */

static bool is_forgiven(void *arg)
{
    (void)arg;
    return strcmp(count_at(PAIR_AT, scene.pair_tag), "(nil)") == 0;
}

static void on_waiting(void *arg, enum store_result result, const struct waiting_totp *waiting)
{
    cr_assert_eq(waiting != NULL, result == STORE_OK);
    cr_assert(!waiting || id_equal(&waiting->user.id, &scene.user.id));
    answer_done(arg, result);
}

static enum store_result find_recovery(const struct token_digests *ticket)
{
    struct answer answer = {0};

    factor_store_find_recovery(fixture.partitions, ticket, on_waiting, &answer);
    return answer_wait(&answer);
}

static enum store_result begin_recovery(const struct token_digests *code, const uint8_t *ticket)
{
    static const struct sealed_totp totp = {{7}};
    const struct recovery_start start = {.user = &scene.user,
                                         .attempt = {.id = TEXT("a"), .counters = text_of(scene.counters)},
                                         .code = code,
                                         .ticket = ticket,
                                         .totp = &totp};
    struct wait_answer answer = {0};

    factor_store_begin_recovery(fixture.partitions, &start, wait_answer_done, &answer);
    answer_wait(&answer.answer);
    cr_expect_eq(answer.retry_after_s > 0, answer.answer.result == STORE_REFUSED);
    return answer.answer.result;
}

static void add_recovery_code(void)
{
    char name[128], digest[65];

    snprintf(name, sizeof name, "t:{%u}:user:%s:recovery_codes", HOME, scene.user.id.text);
    snprintf(digest, sizeof digest, "09%062d", 0);
    redis_server_tell(&fixture.server, "SADD", name, digest, NULL);
}

/* Its ticket may have been made with a retired master key, whose digest names another partition. */
Test(sign_in_partitions, a_recovery_is_throttled_and_found)
{
    const struct token_digests code = {1, {{9}}};
    struct token_digests ticket = {2, {{1}, {2}}};

    ticket.of[0][KEYRING_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&scene.account) + 1);
    ticket.of[1][KEYRING_DIGEST_BYTES - 1] = (uint8_t)bucket_of_account(&scene.account);
    add_recovery_code();
    cr_expect_eq(find_recovery(&ticket), STORE_NOT_FOUND);
    set_counter(NETWORK_AT, scene.network_tag, "20", 60000);
    cr_expect_eq(begin_recovery(&code, ticket.of[1]), STORE_REFUSED);
    cr_expect_eq(find_recovery(&ticket), STORE_NOT_FOUND);
    set_counter(NETWORK_AT, scene.network_tag, "1", 0);
    set_counter(PAIR_AT, scene.pair_tag, "4", 0);
    cr_assert_eq(begin_recovery(&code, ticket.of[1]), STORE_OK);
    cr_expect_eq(find_recovery(&ticket), STORE_OK);
    cr_assert(test_loop_until(&fixture.loop, is_forgiven, NULL, PATIENCE_MS));
    cr_expect_str_eq(count_at(NETWORK_AT, scene.network_tag), "1");
}

/* Links */

static void on_link(void *arg, enum store_result result, const struct link_record *link, uint32_t retry_after_s)
{
    cr_assert_eq(link != NULL, result == STORE_OK);
    wait_answer_done(arg, result, retry_after_s);
}

static enum store_result find_link(const struct token_digests *code, const char *tag)
{
    struct wait_answer answer = {0};

    link_store_find(fixture.partitions, code, text_of(tag), on_link, &answer);
    answer_wait(&answer.answer);
    cr_expect_eq(answer.retry_after_s > 0, answer.answer.result == STORE_REFUSED);
    return answer.answer.result;
}

Test(sign_in_partitions, links_are_found_and_wrong_codes_counted)
{
    struct link_record link = {.id = id_mint(ID_INVITATION, clock_wall_ms()),
                               .account = scene.account,
                               .role = ROLE_OWNER,
                               .email = "n@n.test"};
    struct token_digests right = {2, {{1}, {2}}};
    const struct token_digests wrong = {1, {{3}}};
    struct answer invited = {0};

    right.of[0][KEYRING_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&scene.account) + 1);
    right.of[1][KEYRING_DIGEST_BYTES - 1] = (uint8_t)bucket_of_account(&scene.account);
    memcpy(link.digest, right.of[1], sizeof link.digest);
    link_store_invite(fixture.partitions, &link, &(struct audit_source){.actor = TEXT("operator")}, answer_inserted,
                      &invited);
    cr_assert_eq(answer_wait(&invited), STORE_OK);

    cr_expect_eq(find_link(&right, scene.pair_tag), STORE_OK);
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "(nil)");
    for (int i = 0; i < 30; i++)
        cr_assert_eq(find_link(&wrong, scene.pair_tag), STORE_NOT_FOUND, "%d", i);
    cr_expect_str_eq(count_at(PAIR_AT, scene.pair_tag), "30");
    cr_expect_eq(find_link(&wrong, scene.pair_tag), STORE_REFUSED);
    cr_expect_eq(find_link(&right, scene.pair_tag), STORE_OK, "who has a link does not wait for neighbours who guess");
    cr_expect_eq(find_link(&right, scene.network_tag), STORE_OK);
}

/* Of two master keys: the older one made them. Both digests name the same partition, not that of the account. */
static struct token_digests digests_elsewhere(void)
{
    struct token_digests digests = {2, {{1}, {2}}};

    for (size_t i = 0; i < digests.count; i++)
        digests.of[i][KEYRING_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&scene.account) + 1);
    return digests;
}

Test(sign_in_partitions, links_are_found_by_an_alias)
{
    struct token_digests code = digests_elsewhere();
    struct link_record link = {.id = id_mint(ID_INVITATION, clock_wall_ms()),
                               .account = scene.account,
                               .role = ROLE_OWNER,
                               .email = "n@n.test"};
    struct answer invited = {0};

    memcpy(link.digest, code.of[1], sizeof link.digest);
    link_store_invite(fixture.partitions, &link, &(struct audit_source){.actor = TEXT("operator")}, answer_inserted,
                      &invited);
    cr_assert_eq(answer_wait(&invited), STORE_OK);
    cr_expect_eq(find_link(&code, scene.pair_tag), STORE_NOT_FOUND);
    await_alias(code.of[1], &scene.account);
    cr_expect_eq(find_link(&code, scene.pair_tag), STORE_OK);
    code.of[1][0] = 3;
    cr_expect_eq(find_link(&code, scene.pair_tag), STORE_NOT_FOUND, "no alias of that digest");
}

Test(sign_in_partitions, recoveries_are_found_by_an_alias)
{
    const struct token_digests code = {1, {{9}}};
    struct token_digests ticket = digests_elsewhere();

    add_recovery_code();
    cr_assert_eq(begin_recovery(&code, ticket.of[1]), STORE_OK);
    cr_expect_eq(find_recovery(&ticket), STORE_NOT_FOUND);
    await_alias(ticket.of[1], &scene.account);
    cr_expect_eq(find_recovery(&ticket), STORE_OK);
    ticket.of[1][0] = 3;
    cr_expect_eq(find_recovery(&ticket), STORE_NOT_FOUND, "no alias of that digest");
}

/* One call for each partition, however many digests are there. */
Test(sign_in_partitions, partitions_are_searched_in_turn)
{
    const uint8_t buckets[] = {6, 1, 2, 5};
    struct token_search search;
    struct token_digests all = {.count = 4};

    for (size_t i = 0; i < all.count; i++)
        all.of[i][KEYRING_DIGEST_BYTES - 1] = buckets[i];
    token_search_begin(&search, fixture.partitions, &all);
    cr_assert(token_search_next(&search));
    cr_expect_eq(search.store, partitions_at(fixture.partitions, 2));
    cr_assert_eq(search.digests.count, 2);
    cr_expect(search.digests.of[0][31] == 6 && search.digests.of[1][31] == 2);
    cr_assert(token_search_next(&search));
    cr_expect_eq(search.store, partitions_at(fixture.partitions, 1));
    cr_assert_eq(search.digests.count, 2);
    cr_expect(search.digests.of[0][31] == 1 && search.digests.of[1][31] == 5);
    cr_expect_not(token_search_next(&search));
}
