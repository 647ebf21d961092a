/* The audit log of a node whose store has several partitions, over a real Redis. */
#include "trail/audit_keeper.h"

#include "base/metrics.h"
#include "deadline.h"
#include "process.h"
#include "slow_disk.h"
#include "records/account_state.h"
#include "records/people_store.h"
#include "records/session_store.h"
#include "engine/state.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITIONS = 4 };

/* As far as a log goes. */
struct node {
    struct partitions *partitions;
    struct audit_log *log;
    struct audit_keeper *keeper;
    char path[PROCESS_PATH_BYTES + 16];
    bool is_ended, is_closed;
};

static char folder[PROCESS_PATH_BYTES];
static struct node node;
static struct id accounts[PARTITIONS]; /* one in each partition */

static void node_begin(struct node *n, const char *name, struct partitions *partitions)
{
    char storage[256];
    struct buf why;

    *n = (struct node){.partitions = partitions};
    snprintf(n->path, sizeof n->path, "%s/%s.log", folder, name);
    buf_init_fixed(&why, storage, sizeof storage);
    n->log =
        audit_log_open(&fixture.loop,
                       &(struct audit_log_settings){
                           .path = n->path, .keyring = fixture.keyring, .write_within_ms = AUDIT_LOG_WRITE_WITHIN_MS},
                       &why);
    cr_assert(n->log, "%.*s", TEXT_ARG(buf_text(&why)));
    audit_log_name(n->log, name);
    n->keeper = audit_keeper_create(partitions, n->log);
}

static void set_flag(void *arg)
{
    *(bool *)arg = true;
}

static void end_keeper(struct node *n)
{
    audit_keeper_end(n->keeper, set_flag, &n->is_ended);
    cr_assert(test_loop_until_set(&fixture.loop, &n->is_ended, PATIENCE_MS));
}

static void close_log(struct node *n)
{
    audit_keeper_destroy(n->keeper);
    audit_log_close(n->log, set_flag, &n->is_closed);
    cr_assert(test_loop_until_set(&fixture.loop, &n->is_closed, PATIENCE_MS));
}

static void node_end(struct node *n)
{
    if (n->is_closed)
        return;
    end_keeper(n);
    fixture_close_partitions(n->partitions);
    close_log(n);
}

static void begin(void)
{
    fixture_start();
    fixture_spread(PARTITIONS);
    folder_make(folder);
    for (unsigned found = 0; found < PARTITIONS;) {
        struct id account = some_account();
        unsigned at = bucket_of_account(&account) % PARTITIONS;

        found += !accounts[at].text[0];
        accounts[at] = account;
    }
    node_begin(&node, "a", fixture.partitions);
}

static void end(void)
{
    node_end(&node);
    fixture.is_closed = true;
    folder_remove(folder);
    fixture_stop();
}

TestSuite(audit_keeper, .init = begin, .fini = end);

static size_t count_in_log(const struct node *n, const char *text)
{
    char *content = file_read(n->path);
    size_t count = 0;

    for (const char *at = content; (at = strstr(at, text)); at++)
        count++;
    free(content);
    return count;
}

/* What the command says of that name, in all partitions together. */
static long long sum_of(const char *command, const char *name)
{
    long long sum = 0;

    for (unsigned i = 0; i < PARTITIONS; i++) {
        char whole[64], count[32];

        snprintf(whole, sizeof whole, "t:{%u}:%s", i, name);
        redis_server_ask(&fixture.server, count, sizeof count, command, whole, NULL);
        sum += atoll(count);
    }
    return sum;
}

static long long copies_left(void)
{
    return sum_of("XLEN", "unlogged:people") + sum_of("XLEN", "unlogged:live");
}

static bool no_copy_is_left(void *arg)
{
    (void)arg;
    return copies_left() == 0;
}

static bool is_published(void *arg)
{
    (void)arg;
    return sum_of("HLEN", "log_heads") == PARTITIONS;
}

/* Takes over what is left, until no copy is. */
static bool all_is_taken(void *arg)
{
    audit_keeper_hurry(node.keeper);
    return no_copy_is_left(arg);
}

static struct id try_key(struct partitions *partitions, const struct id *account, uint8_t n,
                         enum store_result *ret_result)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    const struct key_record key = some_key(account, MODE_LIVE, n, digest);
    struct answer answer = {0};

    key_store_insert(partition_of_account(partitions, account), &key, digest, &SOMEBODY, answer_inserted, &answer);
    *ret_result = answer_wait(&answer);
    return key.id;
}

static struct id add_key(struct partitions *partitions, const struct id *account, uint8_t n)
{
    enum store_result result;
    struct id id = try_key(partitions, account, n, &result);

    cr_assert_eq(result, STORE_OK);
    return id;
}

Test(audit_keeper, a_change_in_any_partition_is_in_the_log_once_it_is_answered)
{
    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    for (uint8_t i = 0; i < PARTITIONS; i++) {
        struct id key = add_key(fixture.partitions, &accounts[i], i);

        cr_assert_eq(count_in_log(&node, key.text), 1, "partition %u", i);
    }
    cr_assert(test_loop_until(&fixture.loop, no_copy_is_left, NULL, PATIENCE_MS));
}

Test(audit_keeper, what_commands_changed_in_any_partition_is_taken_over)
{
    struct partitions *command = fixture_open_partitions("t:", PARTITIONS);
    struct id keys[PARTITIONS];

    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    for (uint8_t i = 0; i < PARTITIONS; i++)
        keys[i] = add_key(command, &accounts[i], i);
    cr_assert(test_loop_until(&fixture.loop, all_is_taken, NULL, PATIENCE_MS));
    for (unsigned i = 0; i < PARTITIONS; i++)
        cr_assert_geq(count_in_log(&node, keys[i].text), 1, "partition %u", i);
    cr_assert_geq(metric_values[METRIC_AUDIT_LOG_TAKEN_OVER], PARTITIONS);
    fixture_close_partitions(command);
}

static bool has_noted(void *arg)
{
    return count_in_log(arg, "\"log.head\"") > 0;
}

Test(audit_keeper, each_partition_tells_of_another_log_and_it_is_noted_once)
{
    struct node other;

    add_key(fixture.partitions, &accounts[0], 1);
    node_begin(&other, "b", fixture_open_partitions("t:", PARTITIONS));
    node_end(&node);
    cr_assert_eq(sum_of("HLEN", "log_heads") % PARTITIONS, 0, "published in every partition");
    cr_assert(test_loop_until(&fixture.loop, has_noted, &other, PATIENCE_MS));
    node_end(&other);
    cr_assert_eq(count_in_log(&other, "\"log.head\""), 1);
    fixture.partitions = fixture_open_partitions("t:", PARTITIONS);
    node_begin(&node, "c", fixture.partitions);
}

/* A host that was copied with its log */

static void copy_log(const char *from, const char *to)
{
    char path[PROCESS_PATH_BYTES + 16], *content;

    snprintf(path, sizeof path, "%s/%s.log", folder, from);
    content = file_read(path);
    snprintf(path, sizeof path, "%s/%s.log", folder, to);
    file_write(path, content);
    free(content);
}

static bool is_told(void *arg)
{
    audit_keeper_hurry(node.keeper);
    (void)arg;
    return metric_values[METRIC_AUDIT_LOG_SHARED] > 0;
}

static bool has_called(void *calls)
{
    return metric_values[METRIC_REDIS_CALLS] >= *(const int64_t *)calls;
}

/* Whoever copied it before would take the chain over. Both calls of a partition go over one connection, in order. */
Test(audit_keeper, a_new_chain_has_its_writer_before_its_head_is_published)
{
    char name[64];

    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    snprintf(name, sizeof name, "log_writer:%s", audit_log_chain(node.log));
    cr_expect_eq(sum_of("EXISTS", name), PARTITIONS);
}

Test(audit_keeper, a_copy_of_a_live_nodes_log_is_refused)
{
    enum store_result result;
    struct node copy;
    char *before, *after;
    int64_t calls;

    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    add_key(fixture.partitions, &accounts[0], 1);
    copy_log("a", "b");
    add_key(fixture.partitions, &accounts[0], 2);
    node_begin(&copy, "b", fixture_open_partitions("t:", PARTITIONS));
    before = file_read(copy.path);
    cr_assert(test_loop_until(&fixture.loop, is_told, NULL, PATIENCE_MS));
    (void)try_key(copy.partitions, &accounts[0], 3, &result);
    cr_expect_neq(result, STORE_OK);
    add_key(fixture.partitions, &accounts[0], 4);

    /* The other one has published lines that the copy lacks. */
    node_end(&node);
    calls = metric_values[METRIC_REDIS_CALLS] + 8 * PARTITIONS;
    cr_assert(test_loop_until(&fixture.loop, has_called, &calls, PATIENCE_MS));
    cr_expect(audit_log_held(copy.log));
    node_end(&copy);
    after = file_read(copy.path);
    cr_expect_str_eq(after, before);
    cr_expect_eq(metric_values[METRIC_AUDIT_LOG_SHARED], 1);
    free(before);
    free(after);
    fixture.partitions = fixture_open_partitions("t:", PARTITIONS);
    node_begin(&node, "c", fixture.partitions);
}

static bool has_waited, has_begun;

static bool begins_after_waiting(void *arg)
{
    (void)arg;
    has_waited |= audit_log_trouble(node.log) != NULL;
    has_begun = count_in_log(&node, "\"log.started\"") == 2;
    cr_assert(!has_begun || has_waited);
    return has_begun && !audit_log_trouble(node.log);
}

/* As after a crash of its machine: no other lives. */
Test(audit_keeper, a_log_from_another_place_is_written_once_that_is_silent)
{
    char name[64], place[] = "another boot", chain[AUDIT_CHAIN_CHARS + 1];

    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    add_key(fixture.partitions, &accounts[0], 1);
    snprintf(chain, sizeof chain, "%s", audit_log_chain(node.log));
    node_end(&node);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        snprintf(name, sizeof name, "t:{%u}:log_writer:%s", i, chain);
        redis_server_tell(&fixture.server, "SET", name, place, "PX", "1500", NULL);
    }
    fixture.partitions = fixture_open_partitions("t:", PARTITIONS);
    node_begin(&node, "a", fixture.partitions);
    cr_assert(test_loop_until(&fixture.loop, begins_after_waiting, NULL, PATIENCE_MS));
    cr_expect_eq(metric_values[METRIC_AUDIT_LOG_SHARED], 0);
    add_key(fixture.partitions, &accounts[0], 2);
}

/* As after a crash of the process: nothing waits. */
Test(audit_keeper, a_log_at_its_own_place_is_written_at_once)
{
    char name[64], place[512], chain[AUDIT_CHAIN_CHARS + 1];

    cr_assert(test_loop_until(&fixture.loop, is_published, NULL, PATIENCE_MS));
    snprintf(place, sizeof place, "%s", audit_log_place(node.log));
    snprintf(chain, sizeof chain, "%s", audit_log_chain(node.log));
    node_end(&node);
    for (unsigned i = 0; i < PARTITIONS; i++) {
        snprintf(name, sizeof name, "t:{%u}:log_writer:%s", i, chain);
        redis_server_tell(&fixture.server, "SET", name, place, "PX", "35000", NULL);
    }
    fixture.partitions = fixture_open_partitions("t:", PARTITIONS);
    node_begin(&node, "a", fixture.partitions);
    has_waited = true;
    cr_assert(test_loop_until(&fixture.loop, begins_after_waiting, NULL, PATIENCE_MS));
    cr_expect_null(audit_log_trouble(node.log));
}

/* Closing while a change is being logged: its partition waits for that, but the others do not, and are gone. */

static struct answer changed;

static void on_changed(void *arg, enum store_result result, const struct person_changed *what)
{
    (void)what;
    answer_done(arg, result);
}

static void change(const struct user_record *user, enum person_change_kind kind)
{
    const struct person_change change = {.kind = kind};
    const struct person_observer observer = {.done = on_changed, .arg = &changed};

    changed = (struct answer){0};
    people_store_change(fixture.partitions, &user->account, &user->id, &change, &SOMEBODY, &observer);
}

static bool is_logging(void *account)
{
    return fixture_home(account)->logging > 0;
}

/* Their emails lie elsewhere. */
static struct user_record person_apart(const struct id *account)
{
    char email[32];
    unsigned i = 0;

    do
        snprintf(email, sizeof email, "ana%u@north.test", i++);
    while ((bucket_of_text(text_of(email)) ^ bucket_of_account(account)) % PARTITIONS == 0);
    return some_person(account, email, ROLE_DEVELOPER);
}

/* From now on, what changes cannot be logged. */
static void hang(void)
{
    end_keeper(&node);
    atomic_store(&disk_hangs, true);
    changed = (struct answer){0};
}

/* While what was begun for that account is being logged. */
static void expect_unknown(struct id *account)
{
    bool is_closed = false;

    cr_assert(test_loop_until(&fixture.loop, is_logging, account, PATIENCE_MS));
    partitions_close(fixture.partitions, set_flag, &is_closed);
    test_loop_for(&fixture.loop, 500);
    cr_expect_not(is_closed, "one waits for its event");
    atomic_store(&disk_hangs, false);
    cr_assert(test_loop_until_set(&fixture.loop, &is_closed, PATIENCE_MS));
    close_log(&node);
    cr_expect(changed.is_done);
    cr_expect_eq(changed.result, STORE_UNKNOWN, "nothing followed in the others");
}

Test(audit_keeper, a_removal_that_is_logged_while_the_store_closes_goes_no_further)
{
    struct user_record user = person_apart(&accounts[1]);

    change(&user, PERSON_DISABLE);
    cr_assert_eq(answer_wait(&changed), STORE_OK);
    hang();
    change(&user, PERSON_REMOVE);
    expect_unknown(&user.account);
}

static void revoke_begin(struct key_answer *ret_answer, uint8_t n)
{
    static const struct key_view EVERYTHING = {.any_kind = true};
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&accounts[1], MODE_LIVE, n, digest);

    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    atomic_store(&disk_hangs, true);
    key_store_revoke(fixture_home(&accounts[1]), &EVERYTHING, &key.id, &SOMEBODY, key_answer_done, ret_answer);
}

/* arg: how many of the account's keys are revoked in Redis */
static bool are_revoked(void *arg)
{
    char name[96], prefix[16], count[32];

    fixture_prefix(&accounts[1], prefix);
    snprintf(name, sizeof name, "%sacct:%s:keys:ak-live:revoked", prefix, accounts[1].text);
    redis_server_ask(&fixture.server, count, sizeof count, "ZCARD", name, NULL);
    return strtol(count, NULL, 10) == *(int *)arg;
}

/* A revocation whose event waits for a disk is not answered, but it does not keep the next one from its effect. */
Test(audit_keeper, a_disk_that_hangs_does_not_hold_up_the_next_revocation)
{
    struct key_answer answers[2] = {0};
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record other = some_key(&accounts[1], MODE_LIVE, 7, digest);
    static const struct key_view EVERYTHING = {.any_kind = true};

    cr_assert_eq(insert_key(&other, digest), STORE_OK);
    revoke_begin(&answers[0], 1);
    cr_assert(test_loop_until(&fixture.loop, are_revoked, &(int){1}, PATIENCE_MS));
    cr_assert(test_loop_until(&fixture.loop, is_logging, &accounts[1], PATIENCE_MS));
    key_store_revoke(fixture_home(&accounts[1]), &EVERYTHING, &other.id, &SOMEBODY, key_answer_done, &answers[1]);
    cr_assert(test_loop_until(&fixture.loop, are_revoked, &(int){2}, PATIENCE_MS));
    cr_expect_not(answers[0].answer.is_done);
    cr_expect_not(answers[1].answer.is_done);
    atomic_store(&disk_hangs, false);
    for (size_t i = 0; i < 2; i++) {
        cr_assert(test_loop_until_set(&fixture.loop, &answers[i].answer.is_done, PATIENCE_MS));
        cr_expect_eq(answers[i].answer.result, STORE_OK);
    }
}

static void on_suspended(void *arg, enum store_result result, const struct account_suspension *suspension)
{
    (void)suspension;
    answer_done(arg, result);
}

static void on_closed_some(void *arg, enum store_result result, const struct account_close_step *step)
{
    (void)step;
    answer_done(arg, result);
}

Test(audit_keeper, an_account_that_is_closed_while_the_store_closes_too)
{
    struct user_record user = person_apart(&accounts[2]);
    struct answer answer = {0};

    account_store_suspend(fixture_home(&user.account), &user.account, true, &SOMEBODY, on_suspended, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    hang();
    account_store_close_people(fixture.partitions, &user.account, &SOMEBODY, on_closed_some, &changed);
    expect_unknown(&user.account);
}

static void on_session(void *arg, enum store_result result, const struct session_record *session)
{
    (void)session;
    answer_done(arg, result);
}

/* Its counter lies elsewhere, and would be told next that it was right. */
Test(audit_keeper, a_sign_in_that_is_logged_while_the_store_closes_goes_no_further)
{
    static const struct session_limits LIMITS = {1800000, 43200000, 300000};
    struct user_record user = person_apart(&accounts[0]);
    uint8_t digest[KEYRING_DIGEST_BYTES] = {1};
    char counters[32];
    unsigned tag = 0;

    do
        snprintf(counters, sizeof counters, "pair:t%u,", ++tag);
    while (bucket_of_text((struct text){counters + 5, strlen(counters) - 6}) % PARTITIONS == 0);
    const struct session_start start = {.user = user.id,
                                        .account = user.account,
                                        .totp_step = 1,
                                        .token_digest = digest,
                                        .sid = "01jd0000000000000000000000",
                                        .attempt = {.id = TEXT("a"), .counters = text_of(counters)},
                                        .browser_digest = TEXT("b1"),
                                        .browser = "Firefox on Windows",
                                        .verified = &user};
    hang();
    session_store_create(fixture.partitions, &start, &LIMITS, &SOMEBODY, on_session, &changed);
    expect_unknown(&user.account);
}
