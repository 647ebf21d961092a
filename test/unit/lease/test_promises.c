/* What a node keeps of the changes it has acknowledged, and how it repeats them to a store that lacks them. */
#include "deadline.h"
#include "leak_guard.h"
#include "lease_world.h"
#include "store/key_schedule.h"
#include "store/access.h"
#include "store/script.h"
#include "store/state.h"
#include "store/store_examine.h"
#include "store/key_store.h"
#include "base/clock.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(promises, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { REVOCATIONS_KEPT = 65536, OTHERS_KEPT = 1024 };

static char revocation[SCRIPT_BYTES], settle[SCRIPT_BYTES], hash_answer[128];

static bool is_ready(void *arg)
{
    (void)arg;
    return store_is_ready(w.store);
}

static bool has_trouble(void *arg)
{
    return strstr(store_trouble(w.store), *(const char **)arg);
}

static void open_ready_with(struct keyring *keyring)
{
    open_fake();
    w.keyring = keyring;
    rule("CONFIG GET appendonly", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$3\r\nyes\r\n", 0);
    rule("CONFIG GET appendfsync", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$6\r\nalways\r\n", 0);
    rule("CONFIG GET no-appendfsync-on-rewrite", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$2\r\nno\r\n", 0);
    rule("CONFIG GET maxmemory-policy", FAKE_ANSWER, "*2\r\n$1\r\na\r\n$10\r\nnoeviction\r\n", 0);
    w.is_safe = true; /* otherwise every loss is accepted */
    join(0);
    name_script(SCRIPT_key_revoke, revocation);
    rule(revocation, FAKE_ANSWER, REVOKED_REPLY, 0);
    name_script(SCRIPT_node_settle, settle);
    until(is_ready, NULL);
}

static void open_ready(void)
{
    open_ready_with(NULL);
}

static bool is_done;

static void change_done(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)reply;
    cr_assert_eq(result, STORE_OK);
    if (arg)
        store_keep_revocation(w.store, store_take_number(w.store), arg, 0, TEXT("key_of_somebody"));
    is_done = true;
}

/* A change that is acknowledged; key NULL: not a revocation. */
static void change(struct id *key)
{
    is_done = false;
    store_call_script(w.store, SCRIPT_account_list, SCRIPT_CHANGES, 0, NULL, change_done, key);
    cr_assert(test_loop_until_set(&w.loop, &is_done, PATIENCE_MS));
}

static struct id some_key(void)
{
    return id_mint(ID_KEY, clock_wall_ms());
}

/* From now on, the store holds the changes up to that number; the loss of the others was accepted, or not. */
static void hold(unsigned number, bool is_accepted)
{
    char digits[16];
    int length = snprintf(digits, sizeof digits, "%u", number);

    snprintf(hash_answer, sizeof hash_answer, "*6\r\n$32\r\n" FAKE_STORE_ID "\r\n$%d\r\n%s\r\n%s$-1\r\n$-1\r\n$-1\r\n",
             length, digits, is_accepted ? "$40\r\nc0ffee0000000000000000000000000000c0ffee\r\n" : "$-1\r\n");
    rule("HMGET t:store id", FAKE_ANSWER, hash_answer, 0);
}

static void hold_all(void)
{
    rule("HMGET t:store id", FAKE_ANSWER, FAKE_STORE(FAKE_STORE_ID), 0);
}

static void look(void)
{
    examination_start(w.store);
}

static void until_trouble(const char *trouble)
{
    until(has_trouble, &trouble);
    cr_assert(!store_is_ready(w.store));
}

static bool has_settled(void *arg)
{
    (void)arg;
    return fake_redis_count(w.fake, settle) > 0;
}

static void until_count(const char *command, unsigned count)
{
    struct deadline deadline = deadline_in(PATIENCE_MS);

    while (fake_redis_count(w.fake, command) < count) {
        cr_assert_gt(deadline_left_ms(deadline), 0, "%s was called %u times", command,
                     (unsigned)fake_redis_count(w.fake, command));
        test_loop_for(&w.loop, 10);
    }
}

Test(promises, a_change_says_its_number_and_what_was_acknowledged_before)
{
    char expected[256];

    open_ready();
    for (unsigned i = 0; i < 3; i++) {
        char list[SCRIPT_BYTES];

        change(NULL);
        name_script(SCRIPT_account_list, list);
        snprintf(expected, sizeof expected, "%s 1 t:store:" FAKE_STORE_ID ":%s:%u:%u t:", list,
                 promises_maker(lease_promises(store_lease(w.store))), i, i + 1);
        cr_assert_str_eq(fake_redis_command(w.fake, list, i), expected);
    }
    close_world();
}

Test(promises, revocations_that_are_lacking_are_made_again_and_nothing_else_happens)
{
    struct id keys[3];

    open_ready();
    for (size_t i = 0; i < 3; i++) {
        keys[i] = some_key();
        change(&keys[i]);
    }
    hold(1, false);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 2, "the first one is there");
    for (unsigned i = 0; i < 2; i++) {
        const char *command = fake_redis_command(w.fake, revocation, i);

        cr_assert(strstr(command, keys[i + 1].text), "%s", command);
        cr_assert(strstr(command, "key_of_somebody"), "%s", command);
        cr_assert(strstr(command, IN_OUR_STORE), "it has no number, for it says nothing of the others");
    }
    cr_assert(strstr(fake_redis_command(w.fake, settle, 0), ":0:4 t:"));
    hold_all();
    until(is_ready, NULL);
    close_world();
}

static void inserted(void *arg, enum store_result result, uint32_t retry_after_s)
{
    (void)retry_after_s;
    cr_assert_eq(result, STORE_OK);
    *(bool *)arg = true;
}

static struct id insert(bool is_decoy)
{
    static const uint8_t ANY[KEY_DIGEST_BYTES];
    const struct audit_source source = {.actor = TEXT("usr_of_somebody")};
    struct key_record key = {.kind = KEY_API, .mode = MODE_LIVE, .scopes = SCOPE_ALL, .last4 = "wxyz"};
    bool is_inserted = false;

    key.id = some_key();
    key.account = id_mint(ID_ACCOUNT, 1);
    key.by = id_mint(ID_USER, 1);
    key.created_ms = id_time_ms(&key.id);
    key.revoked_ms = is_decoy ? key.created_ms : 0;
    cr_assert(key_set_name(&key, TEXT("n")));
    key_store_insert(w.store, &key, ANY, &source, inserted, &is_inserted);
    cr_assert(test_loop_until_set(&w.loop, &is_inserted, PATIENCE_MS));
    return key.id;
}

/* A decoy that was lost is no loss to wait for: nobody can use what is not there. A key is. */
Test(promises, a_decoy_is_kept_as_a_revocation)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES];
    struct keyring *keyring = keyring_create(MASTER, 1);
    char name[SCRIPT_BYTES];
    struct id decoy;

    open_ready_with(keyring);
    name_script(SCRIPT_key_insert, name);
    rule(name, FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 0);
    decoy = insert(true);
    hold(0, false);
    look();
    until(has_settled, NULL);
    cr_assert(strstr(fake_redis_command(w.fake, revocation, 0), decoy.text));
    cr_assert(strstr(fake_redis_command(w.fake, revocation, 0), "usr_of_somebody"));
    hold_all();
    until(is_ready, NULL);
    insert(false);
    hold(1, false);
    look();
    until_trouble("lost 1 change ");
    close_world();
    keyring_destroy(keyring);
}

/* One script has revoked several keys, so one number stands for all of them. */
Test(promises, repeats_each_revocation_of_a_group)
{
    struct id keys[3] = {some_key(), some_key(), some_key()};

    open_ready();
    struct promises *promises = lease_promises(store_lease(w.store));
    promises_note(promises, promises_next(promises), "some_change");
    uint64_t number = promises_take(promises);
    cr_assert_eq(number, 1);
    cr_assert_eq(promises_take(promises), 0);
    for (size_t i = 0; i < 3; i++)
        promises_keep_revocation(promises, number, &keys[i], 0, TEXT("operator"));
    hold(0, false);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 3);
    for (unsigned i = 0; i < 3; i++)
        cr_assert(strstr(fake_redis_command(w.fake, revocation, i), keys[i].text));
    hold_all();
    until(is_ready, NULL);
    close_world();
}

static const struct key_view EVERYTHING = {.any_kind = true};
static const struct audit_source OPERATOR = {.actor = TEXT("operator")};
static enum store_result results[2];
static unsigned answered;

static void on_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    (void)key;
    *(enum store_result *)arg = result;
    answered++;
}

static bool are_answered(void *arg)
{
    return answered == *(unsigned *)arg;
}

/* What the script replies that has revoked these keys. */
static void reply_revoked(const struct id *keys, size_t count)
{
    static char reply[1024];
    const struct id account = id_mint(ID_ACCOUNT, 1);
    int len = snprintf(reply, sizeof reply, "*%zu\r\n$2\r\nok\r\n:0\r\n*0\r\n", 3 + count);

    for (size_t i = 0; i < count; i++) {
        char packed[128];

        snprintf(packed, sizeof packed, "%s %s live wxyz 3 7 8 Name", keys[i].text, account.text);
        len += snprintf(reply + len, sizeof reply - (size_t)len,
                        "*3\r\n$2\r\nok\r\n*3\r\n$%zu\r\n%s\r\n$-1\r\n$1\r\n0\r\n:0\r\n", strlen(packed), packed);
    }
    cr_assert_lt((size_t)len, sizeof reply);
    rule(revocation, FAKE_ANSWER, reply, 0);
}

static void list_revoked(void *arg, enum store_result result, const struct key_of_list *keys, size_t count)
{
    (void)keys;
    (void)count;
    on_revoked(arg, result, NULL);
}

enum { TOGETHER = 3 };

static void revoke_list(const struct id *keys)
{
    const struct keys_observer observer = {NULL, list_revoked, &results[0]};

    key_store_revoke_list(w.store, &EVERYTHING, keys, TOGETHER, &OPERATOR, &observer);
    until(are_answered, &(unsigned){1});
    cr_assert_eq(results[0], STORE_OK);
}

static void revoke_each(const struct id *keys)
{
    for (unsigned i = 0; i < TOGETHER; i++) {
        reply_revoked(&keys[i], 1);
        key_store_revoke(w.store, &EVERYTHING, &keys[i], &OPERATOR, on_revoked, &results[0]);
        until(are_answered, &(unsigned){i + 1});
        cr_assert_eq(results[0], STORE_OK);
    }
}

/* The store loses the newest revocations; each is repeated by a script of its own. */
static void expect_repeated(const struct id *keys, unsigned held, unsigned lost)
{
    unsigned before = fake_redis_count(w.fake, revocation);

    hold(held, false);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, revocation), before + lost);
    for (unsigned i = 0; i < lost; i++) {
        const char *command = fake_redis_command(w.fake, revocation, before + i);

        cr_expect(strstr(command, keys[TOGETHER - lost + i].text), "%s", command);
        cr_expect(strstr(command, " operator "), "%s", command);
    }
    hold_all();
    until(is_ready, NULL);
}

Test(promises, keeps_each_key_of_a_list)
{
    const struct id keys[TOGETHER] = {some_key(), some_key(), some_key()};

    open_ready();
    reply_revoked(keys, TOGETHER);
    revoke_list(keys);
    expect_repeated(keys, 0, TOGETHER);
    close_world();
}

Test(promises, keeps_keys_that_are_revoked_one_by_one)
{
    const struct id keys[TOGETHER] = {some_key(), some_key(), some_key()};

    open_ready();
    revoke_each(keys);
    expect_repeated(keys, 1, TOGETHER - 1);
    close_world();
}

/* Schedules */

enum { ENDS_MS = 1000000 };

static char schedule[SCRIPT_BYTES], replace[SCRIPT_BYTES];

static void on_scheduled(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                         enum key_schedule_refusal why, uint32_t retry_after_s)
{
    (void)said_ms;
    (void)why;
    (void)retry_after_s;
    on_revoked(arg, result, key);
}

static void on_key_replaced(void *arg, enum store_result result, const struct key_record *replaced, int64_t said_ms,
                            uint32_t retry_after_s)
{
    (void)said_ms;
    (void)retry_after_s;
    on_revoked(arg, result, replaced);
}

static const uint8_t ANY_DIGEST[KEY_DIGEST_BYTES];
#define ANY_DIGEST_HEX "0000000000000000000000000000000000000000000000000000000000000000"

static struct key_record some_record(const struct id *id)
{
    struct key_record key = {.id = *id, .kind = KEY_API, .mode = MODE_LIVE, .scopes = SCOPE_ALL, .last4 = "wxyz"};

    key.account = id_mint(ID_ACCOUNT, 1);
    key.created_ms = id_time_ms(&key.id);
    cr_assert(key_set_name(&key, TEXT("n")));
    return key;
}

/* What a script replies after which the key ends then (0: never). */
static void reply_scheduled(const char *script, const struct id *id, int ends_ms, bool is_later)
{
    static char reply[1024];
    const struct key_record key = some_record(id);
    char storage[KEY_TEXT_MAX_BYTES], ends[32] = "";
    struct buf packed;

    buf_init_fixed(&packed, storage, sizeof storage);
    if (w.keyring)
        key_encode(&key, w.keyring, ANY_DIGEST, &packed);
    else
        buf_printf(&packed, "%s %s live wxyz 3 7 - Name", id->text, key.account.text);
    if (ends_ms > 0)
        snprintf(ends, sizeof ends, "$7\r\n%07d\r\n", ends_ms);
    int len = snprintf(reply, sizeof reply,
                       "*6\r\n$2\r\nok\r\n*%d\r\n$%zu\r\n%.*s\r\n$-1\r\n$64\r\n" ANY_DIGEST_HEX
                       "\r\n%s:0\r\n*0\r\n:%d\r\n:0\r\n",
                       ends_ms > 0 ? 4 : 3, packed.len, (int)packed.len, packed.ptr, ends, is_later);
    cr_assert_lt((size_t)len, sizeof reply);
    rule(script, FAKE_ANSWER, reply, 0);
}

static void open_to_schedule(struct keyring *keyring)
{
    open_ready_with(keyring);
    name_script(SCRIPT_key_schedule, schedule);
    name_script(SCRIPT_key_replace, replace);
    answered = 0;
}

static void set_end(const struct id *key, int ends_ms, bool is_later)
{
    unsigned wanted = answered + 1;

    reply_scheduled(schedule, key, ends_ms, is_later);
    key_store_schedule(w.store, &EVERYTHING, key, ends_ms, is_later, &OPERATOR, on_scheduled, &results[0]);
    until(are_answered, &wanted);
    cr_assert_eq(results[0], STORE_OK);
}

static void expect_scheduled_again(unsigned at, const struct id *key)
{
    const char *command = fake_redis_command(w.fake, schedule, at);

    cr_expect(strstr(command, key->text), "%s", command);
    cr_expect(strstr(command, " operator "), "%s", command);
    cr_expect(strstr(command, " 1000000 "), "%s", command);
    cr_expect(strstr(command, " again"), "whatever the store has, it is not delayed: %s", command);
    cr_expect(strstr(command, IN_OUR_STORE), "%s", command);
}

Test(promises, a_schedule_that_is_lacking_is_made_again_and_is_no_revocation_at_once)
{
    const struct id key = some_key();

    open_to_schedule(NULL);
    set_end(&key, ENDS_MS, false);
    hold(0, false);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, schedule), 2);
    expect_scheduled_again(1, &key);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 0);
    hold_all();
    until(is_ready, NULL);
    close_world();
}

/* It ends sooner then, but nobody is told that nothing was lost. */
Test(promises, that_a_key_may_be_used_for_longer_is_missing_once_it_is_lost)
{
    const struct id key = some_key();

    open_to_schedule(NULL);
    set_end(&key, ENDS_MS, true);
    hold(0, false);
    look();
    until_trouble("lost 1 change ");
    cr_assert_eq(fake_redis_count(w.fake, schedule), 2);
    expect_scheduled_again(1, &key);
    close_world();
}

Test(promises, a_withdrawal_that_is_lost_is_missing_and_repeats_nothing)
{
    const struct id key = some_key();

    open_to_schedule(NULL);
    set_end(&key, 0, true);
    hold(0, false);
    look();
    until_trouble("lost 1 change ");
    cr_assert_eq(fake_redis_count(w.fake, schedule), 1);
    close_world();
}

/* Whoever has lost that it was written down finds again what is due. Redis replies in order. */
static void on_unpromised(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)reply;
    cr_assert_eq(result, STORE_OK);
    *(bool *)arg = true;
}

/* Such as the count of a wrong password. */
Test(promises, what_nobody_was_told_is_not_missing)
{
    char fail[SCRIPT_BYTES];
    bool is_counted = false;

    open_ready();
    name_script(SCRIPT_throttle_fail, fail);
    rule(fail, FAKE_ANSWER, "*2\r\n$2\r\nok\r\n:0\r\n", 0);
    store_call_script(w.store, SCRIPT_throttle_fail, SCRIPT_UNPROMISED, 0, NULL, on_unpromised, &is_counted);
    cr_assert(test_loop_until_set(&w.loop, &is_counted, PATIENCE_MS));
    cr_assert(strstr(fake_redis_command(w.fake, fail, 0), " 1 t:store:" FAKE_STORE_ID " t:"), "no number: %s",
              fake_redis_command(w.fake, fail, 0));
    close_world();
}

Test(promises, what_was_due_and_is_written_down_is_no_promise)
{
    struct id key = some_key();
    char due[SCRIPT_BYTES];

    open_ready();
    name_script(SCRIPT_key_end_due, due);
    rule(due, FAKE_ANSWER, "*1\r\n$2\r\nok\r\n", 0);
    key_ends_due(w.store);
    until_command(due);
    change(&key);
    hold(0, false);
    look();
    until(has_settled, NULL);
    close_world();
}

/* The new key cannot be made again: only its digest is known. But the old one ends. */
Test(promises, a_replacement_that_is_lost_is_missing_and_ends_the_old_key)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES];
    struct keyring *keyring = keyring_create(MASTER, 1);
    const struct id old = some_key(), new = some_key();
    const struct key_record key = some_record(&new);
    const struct key_replacement replacement = {&key, ANY_DIGEST, EVERYTHING, old, ENDS_MS};

    open_to_schedule(keyring);
    reply_scheduled(replace, &old, ENDS_MS, false);
    key_store_replace(w.store, &replacement, &OPERATOR, on_key_replaced, &results[0]);
    until(are_answered, &(unsigned){1});
    cr_assert_eq(results[0], STORE_OK);
    reply_scheduled(schedule, &old, ENDS_MS, false);
    hold(0, false);
    look();
    until_trouble("lost 1 change ");
    cr_assert_eq(fake_redis_count(w.fake, replace), 1);
    cr_assert_eq(fake_redis_count(w.fake, schedule), 1);
    expect_scheduled_again(0, &old);
    close_world();
    keyring_destroy(keyring);
}

/* Two are asked for, and Redis does not reply to the first one. Nobody waits for a second timeout. */
Test(promises, a_revocation_that_waited_for_a_timeout_is_not_sent)
{
    struct id keys[2] = {some_key(), some_key()};

    open_ready();
    time_out_soon();
    rule(revocation, FAKE_SILENT, NULL, 0);
    for (size_t i = 0; i < 2; i++)
        key_store_revoke(w.store, &EVERYTHING, &keys[i], &OPERATOR, on_revoked, &results[i]);
    until(are_answered, &(unsigned){2});
    cr_assert_eq(results[0], STORE_UNKNOWN);
    cr_assert_eq(results[1], STORE_UNAVAILABLE);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 1);
    close_world();
}

Test(promises, what_cannot_be_made_again_is_waited_for)
{
    struct id key = some_key();

    open_ready();
    change(NULL);
    change(&key);
    change(NULL);
    hold(0, false);
    look();
    until_trouble("lost 2 changes that this node acknowledged (the last one: account_list): bring back");
    cr_assert_eq(fake_redis_count(w.fake, revocation), 1);
    cr_assert_eq(fake_redis_count(w.fake, settle), 0);
    hold(2, false);
    until_trouble("lost 1 change that this node acknowledged (account_list): bring back");
    hold_all();
    until(is_ready, NULL);
    cr_assert_eq(fake_redis_count(w.fake, settle), 0, "nothing was lost");
    close_world();
}

/* What was told to a master again says nothing of what others have acknowledged since. */
Test(promises, a_master_that_comes_back_is_told_what_it_missed_meanwhile)
{
    struct id first = some_key(), second = some_key(), third = some_key();

    open_ready();
    change(&first);
    hold(0, false);
    look();
    until(has_settled, NULL);
    hold_all(); /* another master, which has everything */
    until(is_ready, NULL);
    change(&second);
    hold(2, false); /* the first one again */
    look();
    until_count(settle, 2);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 2);
    cr_assert(strstr(fake_redis_command(w.fake, revocation, 1), second.text));
    hold_all();
    until(is_ready, NULL);

    change(NULL);
    hold(4, false);
    look();
    until_trouble("lost 1 change ");
    hold_all();
    until(is_ready, NULL);
    change(&third);
    hold(4, false);
    look();
    until_trouble("lost 1 change ");
    until_count(revocation, 3);
    cr_assert(strstr(fake_redis_command(w.fake, revocation, 2), third.text));
    close_world();
}

Test(promises, or_until_its_loss_is_accepted)
{
    open_ready();
    change(NULL);
    hold(0, false);
    look();
    until_trouble("accept-loss");
    hold(0, true);
    until(has_settled, NULL);
    hold_all();
    until(is_ready, NULL);
    hold(2, false);
    look();
    test_loop_for(&w.loop, 100);
    cr_assert(store_is_ready(w.store), "what was accepted is not missed again");
    close_world();
}

Test(promises, telling_again_is_tried_again)
{
    struct id key = some_key();

    open_ready();
    change(&key);
    hold(0, false);
    rule(revocation, FAKE_ANSWER, "-ERR not now\r\n", 1);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 2);
    cr_assert(!store_is_ready(w.store));
    hold_all();
    until(is_ready, NULL);
    close_world();
}

static void change_refused(void *arg, enum store_result result, const struct redis_reply *reply)
{
    (void)arg, (void)reply;
    cr_assert(result == STORE_UNAVAILABLE || result == STORE_UNKNOWN);
    is_done = true;
}

static void key_undecided(void *arg, enum store_result result, const struct key_record *key)
{
    (void)key;
    change_refused(arg, result, NULL);
}

/* A script that finds less than was acknowledged, or a read's look at the store. */
Test(promises, any_script_and_any_read_notices)
{
    const uint8_t digest[KEY_DIGEST_BYTES] = {1};

    for (int i = 0; i < 2; i++) {
        char list[SCRIPT_BYTES];

        open_ready();
        name_script(SCRIPT_account_list, list);
        change(NULL);
        hold(0, false);
        is_done = false;
        rule(list, FAKE_ANSWER, "*2\r\n$6\r\nbehind\r\n:0\r\n", 0);
        if (i == 0)
            store_call_script(w.store, SCRIPT_account_list, SCRIPT_CHANGES, 0, NULL, change_refused, NULL);
        else
            key_store_find(w.store, digest, key_undecided, NULL);
        cr_assert(test_loop_until_set(&w.loop, &is_done, PATIENCE_MS));
        until_trouble("lost 1 change ");
        hold_all();
        until(is_ready, NULL);
        close_world();
    }
}

Test(promises, keeps_the_newest_revocations)
{
    struct id key = some_key();

    open_ready();
    struct promises *promises = lease_promises(store_lease(w.store));
    for (int i = 0; i < REVOCATIONS_KEPT + 10; i++) {
        promises_note(promises, promises_next(promises), "some_change");
        promises_keep_revocation(promises, promises_take(promises), &key, 0, TEXT("operator"));
    }
    hold(REVOCATIONS_KEPT + 7, false);
    look();
    until(has_settled, NULL);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 3);
    hold_all();
    until(is_ready, NULL);
    close_world();
}

Test(promises, beyond_its_bounds_it_says_at_most_how_many)
{
    struct id key = some_key();

    open_ready();
    struct promises *promises = lease_promises(store_lease(w.store));
    change(&key);
    for (int i = 0; i < OTHERS_KEPT + 10; i++)
        promises_note(promises, promises_next(promises), "some_change");
    hold(0, false);
    look();
    until_trouble("lost up to 1035 changes");
    test_loop_for(&w.loop, 1500);
    cr_assert_eq(fake_redis_count(w.fake, revocation), 1, "told once, while the rest is waited for");
    hold(12, false);
    until_trouble("lost 1023 changes");
    hold_all();
    until(is_ready, NULL);
    close_world();
}
