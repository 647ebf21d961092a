/* What a node keeps of its own changes once they are answered, though it did not hear them itself. */
#include "leak_guard.h"
#include "lease_world.h"
#include "records/key_store.h"
#include "engine/state.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(own_endings, .init = ignore_sigpipe, .fini = leak_guard, .timeout = TEST_WITHIN_S);

enum { TOGETHER = 3, ENDS_MS = 1000000, REVOKED_MS = 8, REPLY_BYTES = 2048 };

static const struct key_view EVERYTHING = {.any_kind = true};
static const struct audit_source OPERATOR = {.actor = TEXT("operator")};
static const uint8_t ANY_DIGEST[KEY_DIGEST_BYTES];
#define ANY_DIGEST_HEX "0000000000000000000000000000000000000000000000000000000000000000"

static char reply[REPLY_BYTES];
static enum store_result results[2];
static unsigned answered;

static bool is_ready(void *arg)
{
    (void)arg;
    return store_is_ready(w.store);
}

static bool are_answered(void *arg)
{
    return answered == *(unsigned *)arg;
}

static void open_ready(struct keyring *keyring)
{
    open_fake();
    w.keyring = keyring;
    join(0);
    until(is_ready, NULL);
    answered = 0;
}

static void on_revoked(void *arg, enum store_result result, const struct key_record *key)
{
    (void)key;
    *(enum store_result *)arg = result;
    answered++;
}

static struct id some_key(void)
{
    return id_mint(ID_KEY, 1);
}

static bool is_any(void *arg, struct change_name change)
{
    (void)arg, (void)change;
    return true;
}

/* All that is kept: of this node's change with that number, if one was made. */
static void expect_kept(const struct id *keys, size_t count, enum ending_what what, int64_t at_ms,
                        const uint64_t *numbers)
{
    struct lease *lease = store_lease(w.store);
    size_t kept;
    struct kept_ending *list = kept_list(lease_kept(lease), is_any, NULL, &kept);

    cr_assert_eq(kept, count, "%zu", kept);
    for (size_t i = 0; i < count; i++) {
        cr_expect_str_eq(list[i].subject.text, keys[i].text);
        cr_expect_eq(list[i].what, what);
        cr_expect_eq(list[i].at_ms, at_ms);
        cr_expect_eq(list[i].number, numbers[i]);
        cr_expect_str_eq(list[i].maker, chains_maker(lease_chains(lease)));
        cr_expect_eq(list[i].completes, i + 1 == count || numbers[i] != numbers[i + 1]);
    }
    free(list);
}

/* What the script replies that has revoked these keys. */
static void reply_revoked(const char *script, const struct id *keys, size_t count, unsigned number)
{
    const struct id account = id_mint(ID_ACCOUNT, 1);
    int len = snprintf(reply, sizeof reply, "*4\r\n$8\r\nnumbered\r\n:%u\r\n:%u\r\n*%zu\r\n$2\r\nok\r\n:0\r\n*0\r\n",
                       number, number, 3 + count);

    for (size_t i = 0; i < count; i++) {
        char packed[128];

        snprintf(packed, sizeof packed, "%s %s live wxyz 3 7 %d Name", keys[i].text, account.text, REVOKED_MS);
        len += snprintf(reply + len, sizeof reply - (size_t)len,
                        "*3\r\n$2\r\nok\r\n*3\r\n$%zu\r\n%s\r\n$-1\r\n$1\r\n0\r\n:0\r\n", strlen(packed), packed);
    }
    cr_assert_lt((size_t)len, sizeof reply);
    rule(script, FAKE_ANSWER, reply, 0);
}

static void list_revoked(void *arg, enum store_result result, const struct key_of_list *keys, size_t count)
{
    (void)keys, (void)count;
    on_revoked(arg, result, NULL);
}

Test(own_endings, each_key_of_a_list)
{
    const struct id keys[TOGETHER] = {some_key(), some_key(), some_key()};
    const struct keys_observer observer = {NULL, list_revoked, &results[0], NULL};
    char script[SCRIPT_BYTES];

    open_ready(NULL);
    name_script(SCRIPT_key_revoke, script);
    reply_revoked(script, keys, TOGETHER, 1);
    key_store_revoke_list(w.store, &EVERYTHING, keys, TOGETHER, &OPERATOR, &observer);
    until(are_answered, &(unsigned){1});
    cr_expect_eq(results[0], STORE_OK);
    expect_kept(keys, TOGETHER, ENDING_REVOKED, REVOKED_MS, (const uint64_t[]){1, 1, 1});
    close_world();
}

Test(own_endings, keys_that_are_revoked_one_by_one)
{
    const struct id keys[TOGETHER] = {some_key(), some_key(), some_key()};
    char script[SCRIPT_BYTES];

    open_ready(NULL);
    name_script(SCRIPT_key_revoke, script);
    for (unsigned i = 0; i < TOGETHER; i++) {
        reply_revoked(script, &keys[i], 1, i + 1);
        key_store_revoke(w.store, &EVERYTHING, &keys[i], &OPERATOR, on_revoked, &results[0]);
        until(are_answered, &(unsigned){i + 1});
        cr_expect_eq(results[0], STORE_OK);
    }
    expect_kept(keys, TOGETHER, ENDING_REVOKED, REVOKED_MS, (const uint64_t[]){1, 2, 3});
    close_world();
}

/* Two are asked for, and Redis does not reply to the first one. Nobody waits for a second timeout. */
Test(own_endings, a_revocation_that_waited_for_a_timeout_is_not_sent)
{
    const struct id keys[2] = {some_key(), some_key()};
    char script[SCRIPT_BYTES];

    open_ready(NULL);
    time_out_soon();
    name_script(SCRIPT_key_revoke, script);
    rule(script, FAKE_SILENT, NULL, 0);
    for (size_t i = 0; i < 2; i++)
        key_store_revoke(w.store, &EVERYTHING, &keys[i], &OPERATOR, on_revoked, &results[i]);
    until(are_answered, &(unsigned){2});
    cr_expect_eq(results[0], STORE_UNKNOWN);
    cr_expect_eq(results[1], STORE_UNAVAILABLE);
    cr_expect_eq(fake_redis_count(w.fake, script), 1);
    expect_kept(keys, 0, ENDING_REVOKED, 0, NULL);
    close_world();
}

/* Schedules */

static void on_scheduled(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                         enum key_schedule_refusal why, uint32_t retry_after_s)
{
    (void)said_ms, (void)why, (void)retry_after_s;
    on_revoked(arg, result, key);
}

static void on_replaced(void *arg, enum store_result result, const struct key_record *key, int64_t said_ms,
                        struct text successor, uint32_t retry_after_s)
{
    (void)said_ms, (void)successor, (void)retry_after_s;
    on_revoked(arg, result, key);
}

/* What a script replies after which the key ends then (0: never). */
static void reply_scheduled(const char *script, const struct id *id, int ends_ms)
{
    char packed[128], ends[32] = "";

    snprintf(packed, sizeof packed, "%s %s live wxyz 3 7 - Name", id->text, id_mint(ID_ACCOUNT, 1).text);
    if (ends_ms > 0)
        snprintf(ends, sizeof ends, "$7\r\n%07d\r\n", ends_ms);
    int len = snprintf(
        reply, sizeof reply,
        "*4\r\n$8\r\nnumbered\r\n:1\r\n:1\r\n*5\r\n$2\r\nok\r\n*%d\r\n$%zu\r\n%s\r\n$-1\r\n$64\r\n" ANY_DIGEST_HEX
        "\r\n%s:0\r\n*0\r\n:5\r\n",
        ends_ms > 0 ? 4 : 3, strlen(packed), packed, ends);
    cr_assert_lt((size_t)len, sizeof reply);
    rule(script, FAKE_ANSWER, reply, 0);
}

Test(own_endings, a_schedule_and_its_withdrawal)
{
    for (int i = 0; i < 2; i++) {
        const struct id key = some_key();
        int ends_ms = i == 0 ? ENDS_MS : 0;
        char script[SCRIPT_BYTES];

        open_ready(NULL);
        name_script(SCRIPT_key_schedule, script);
        reply_scheduled(script, &key, ends_ms);
        key_store_schedule(w.store, &EVERYTHING, &key, ends_ms, true, &OPERATOR, on_scheduled, &results[0]);
        until(are_answered, &(unsigned){1});
        cr_expect_eq(results[0], STORE_OK);
        expect_kept(&key, 1, i == 0 ? ENDING_SCHEDULED : ENDING_WITHDRAWN, ends_ms, (const uint64_t[]){1});
        close_world();
    }
}

/* The new key cannot be made again: only its digest is known. But the old one ends. */
Test(own_endings, the_end_of_a_key_that_is_replaced)
{
    static const uint8_t MASTER[1][KEYRING_MASTER_BYTES];
    struct keyring *keyring = keyring_create(MASTER, 1);
    const struct id old = some_key();
    struct key_record key = {
        .kind = KEY_API, .mode = MODE_LIVE, .scopes = SCOPE_ALL, .last4 = "wxyz", .id = some_key()};
    const struct key_replacement replacement = {&key, ANY_DIGEST, EVERYTHING, old, {.text = ""}, ENDS_MS};
    char script[SCRIPT_BYTES];

    key.account = id_mint(ID_ACCOUNT, 1);
    key.created_ms = id_time_ms(&key.id);
    cr_assert(key_set_name(&key, TEXT("n")));
    open_ready(keyring);
    name_script(SCRIPT_key_replace, script);
    reply_scheduled(script, &old, ENDS_MS);
    key_store_replace(w.store, &replacement, &OPERATOR, on_replaced, &results[0]);
    w.store->settings.keyring = NULL; /* the record in the reply has no MAC */
    until(are_answered, &(unsigned){1});
    cr_expect_eq(results[0], STORE_OK);
    expect_kept(&old, 1, ENDING_SCHEDULED, ENDS_MS, (const uint64_t[]){1});
    close_world();
    keyring_destroy(keyring);
}

/* A successor that reached nobody, with the end that it has set */

static struct {
    struct id key;
    int64_t ends_ms, said_ms;
    const char *why;
} ended;

static void on_key_ended(void *arg, const struct key_record *key, int64_t said_ms, const char *why)
{
    (void)arg;
    ended.key = key->id;
    ended.ends_ms = key->ends_ms;
    ended.said_ms = said_ms;
    ended.why = why;
}

static bool is_told_to_the_log(void *arg)
{
    (void)arg;
    return ended.why != NULL;
}

Test(own_endings, an_end_that_is_withdrawn_with_a_successor_is_told_to_the_log)
{
    const struct id successor = some_key(), old = some_key(), account = id_mint(ID_ACCOUNT, 1);
    char script[SCRIPT_BYTES], records[2][128];

    open_ready(NULL);
    w.store->settings.on_key_ended = on_key_ended;
    name_script(SCRIPT_key_revoke, script);
    snprintf(records[0], sizeof records[0], "%s %s live wxyz 3 7 9 Name", successor.text, account.text);
    snprintf(records[1], sizeof records[1], "%s %s live wxyz 3 7 - Name", old.text, account.text);
    int len = snprintf(reply, sizeof reply,
                       "*4\r\n$8\r\nnumbered\r\n:1\r\n:1\r\n*4\r\n$2\r\nok\r\n:0\r\n*0\r\n*5\r\n$2\r\nok\r\n"
                       "*3\r\n$%zu\r\n%s\r\n$-1\r\n$64\r\n" ANY_DIGEST_HEX "\r\n:0\r\n"
                       "*3\r\n$%zu\r\n%s\r\n$-1\r\n$64\r\n" ANY_DIGEST_HEX "\r\n:77\r\n",
                       strlen(records[0]), records[0], strlen(records[1]), records[1]);
    cr_assert_lt((size_t)len, sizeof reply);
    rule(script, FAKE_ANSWER, reply, 0);
    key_store_discard(w.store, &successor, &OPERATOR);
    until(is_told_to_the_log, NULL);
    cr_expect_str_eq(ended.key.text, old.text);
    cr_expect_eq(ended.ends_ms, 0);
    cr_expect_eq(ended.said_ms, 77);
    cr_expect_str_eq(ended.why, "not delivered");
    close_world();
}
