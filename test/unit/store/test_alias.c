/* Records that lie in another partition than their digest says. */
#include "engine/alias.h"
#include "core/bucket.h"
#include "deadline.h"
#include "leak_guard.h"
#include "redis_server.h"
#include "records/account_store.h"
#include "engine/partitions.h"
#include "records/store_parts.h"
#include "store_fixture.h"
#include "virtual_redis.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 4 };

static struct partitions *partitions;

static void on_changed(void *arg, struct store *store)
{
    (void)arg, (void)store;
}

static bool all_ready(void *arg)
{
    (void)arg;
    return partitions_ready(partitions) == COUNT;
}

static void open_partitions(void)
{
    struct store_settings settings = {
        .parts = STORE_PARTS, .timeout_ms = PATIENCE_MS, .prefix = "t:", .partitions = COUNT, .audit_max = 100};
    struct answer answer = {0};
    struct buf why;

    buf_init(&why, 200);
    settings.keyring = fixture.keyring;
    cr_assert(redis_target_parse(text_of(fixture.server.url), &settings.target, &why));
    partitions = partitions_create(&fixture.loop, &settings, on_changed, NULL);
    cr_assert(test_loop_until(&fixture.loop, all_ready, NULL, PATIENCE_MS));
    partitions_found(partitions, answer_done, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void close_partitions(void)
{
    bool is_closed = false;

    partitions_close(partitions, on_closed, &is_closed);
    cr_assert(test_loop_until_set(&fixture.loop, &is_closed, PATIENCE_MS));
}

static void start(void)
{
    virtual_redis_begin();
    fixture_start();
    open_partitions();
}

static void stop(void)
{
    close_partitions();
    fixture_stop();
}

TestSuite(alias, .init = start, .fini = stop, .timeout = TEST_WITHIN_S);

/* A key whose digest leads to the partition after its account's. */
static struct key_record insert_elsewhere(uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    struct id account = id_mint(ID_ACCOUNT, 1);
    struct store *store = partition_of_account(partitions, &account);
    struct answer answer = {0};
    struct key_record key;

    account_store_create(store, &account, TEXT("North"), answer_done, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    key = some_key(&account, MODE_LIVE, 7, ret_digest);
    ret_digest[KEY_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&account) + 1);
    answer = (struct answer){0};
    key_store_insert(store, &key, ret_digest, &SOMEBODY, answer_inserted, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    return key;
}

static const char *alias_of(const uint8_t digest[KEY_DIGEST_BYTES])
{
    static char name[160];
    int len = snprintf(name, sizeof name, "t:{%u}:alias:", bucket_of_digest(digest) % COUNT);

    for (size_t i = 0; i < KEY_DIGEST_BYTES; i++)
        len += snprintf(name + len, sizeof name - (size_t)len, "%02x", digest[i]);
    return name;
}

static void put_alias(const uint8_t digest[KEY_DIGEST_BYTES], const char *value)
{
    char store[32];

    snprintf(store, sizeof store, "t:{%u}:store", bucket_of_digest(digest) % COUNT);
    redis_server_tell(&fixture.server, "SET", alias_of(digest), value, NULL);
    redis_server_tell(&fixture.server, "HSET", store, "aliased", "1", NULL);
}

struct alias_answer {
    struct answer answer;
    unsigned bucket;
};

static void on_alias(void *arg, enum store_result result, unsigned bucket)
{
    ((struct alias_answer *)arg)->bucket = bucket;
    answer_done(arg, result);
}

/* As a check does. */
static enum store_result find(const uint8_t digest[KEY_DIGEST_BYTES], struct key_record *ret_key)
{
    struct store *store = partition_of_digest(partitions, digest);
    struct alias_answer alias = {0};
    struct key_answer found = {0};

    key_store_find(store, digest, key_answer_done, &found);
    if (answer_wait(&found.answer) != STORE_NOT_FOUND || !store_has_aliases(store))
        return found.answer.result;
    alias_find(store, digest, on_alias, &alias);
    if (answer_wait(&alias.answer) != STORE_OK)
        return alias.answer.result;
    found = (struct key_answer){0};
    key_store_find(partition_of_bucket(partitions, alias.bucket), digest, key_answer_done, &found);
    answer_wait(&found.answer);
    *ret_key = found.key;
    return found.answer.result;
}

static bool has_aliases(void *digest)
{
    return store_has_aliases(partition_of_digest(partitions, digest));
}

Test(alias, leads_to_the_partition_of_the_account)
{
    uint8_t digest[KEY_DIGEST_BYTES], unknown[KEY_DIGEST_BYTES] = {0};
    struct key_record key, found;
    char bucket[8];

    key = insert_elsewhere(digest);
    cr_expect_eq(find(digest, &found), STORE_NOT_FOUND, "without an alias");
    snprintf(bucket, sizeof bucket, "%u", bucket_of_account(&key.account));
    put_alias(digest, bucket);
    /* The next examination reads that there are aliases. */
    cr_assert(test_loop_until(&fixture.loop, has_aliases, digest, PATIENCE_MS));
    cr_assert_eq(find(digest, &found), STORE_OK);
    cr_expect(id_equal(&found.id, &key.id));
    memcpy(unknown, digest, sizeof unknown);
    unknown[0] ^= 1;
    cr_expect_eq(find(unknown, &found), STORE_NOT_FOUND, "no alias of that digest");
}

Test(alias, malformed)
{
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record found;

    insert_elsewhere(digest);
    put_alias(digest, "256");
    cr_assert(test_loop_until(&fixture.loop, has_aliases, digest, PATIENCE_MS));
    cr_expect_eq(find(digest, &found), STORE_UNAVAILABLE);
}
