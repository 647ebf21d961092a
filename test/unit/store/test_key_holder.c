/* Keys by their secrets, in a store of several partitions. */
#include "records/key_holder.h"
#include "engine/alias.h"
#include "deadline.h"
#include "leak_guard.h"
#include "store_fixture.h"
#include "virtual_redis.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 4, MISSES_FREE = 30 };

static const struct audit_source HOLDER = {.actor = {"holder", 6}, .ip = {"192.0.2.1", 9}, .request_id = {"req_1", 5}};
static const struct text ADDRESS = {"0123456789abcdef", 16};

static void start(void)
{
    virtual_redis_begin();
    fixture_start();
    fixture_spread(COUNT);
}

TestSuite(key_holder, .init = start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

/* A key whose digest leads to the partition that many after its account's. Accounts may share a bucket. */
static struct key_record add_key(unsigned partitions_away, enum key_mode mode, struct token_digests *ret_secret)
{
    static uint8_t number;
    struct id account = some_account();
    uint8_t digest[KEY_DIGEST_BYTES];
    struct key_record key = some_key(&account, mode, ++number, digest);

    digest[KEY_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&account) + partitions_away);
    cr_assert_eq(insert_key(&key, digest), STORE_OK);
    ret_secret->count = 1;
    memcpy(ret_secret->of[0], digest, sizeof digest);
    return key;
}

static struct token_digests unknown_secret(uint8_t n)
{
    struct token_digests secret = {.count = 1};

    memset(secret.of[0], n, sizeof secret.of[0]);
    return secret;
}

static enum store_result find_held(const struct token_digests *secret, struct key_answer *answer)
{
    *answer = (struct key_answer){0};
    key_holder_find(fixture.partitions, secret, key_answer_done, answer);
    return answer_wait(&answer->answer);
}

struct revoked {
    struct answer answer;
    bool has_key;
    struct key_record key;
};

static void revoke_done(void *arg, enum store_result result, const struct key_record *key)
{
    struct revoked *revoked = arg;

    revoked->has_key = key != NULL;
    if (key)
        key_copy(&revoked->key, key);
    answer_done(&revoked->answer, result);
}

static enum store_result revoke_held(const struct token_digests *secret, struct revoked *revoked)
{
    *revoked = (struct revoked){0};
    key_holder_revoke(fixture.partitions, secret, &HOLDER, revoke_done, revoked);
    return answer_wait(&revoked->answer);
}

struct miss {
    struct answer answer;
    uint32_t retry_after_s;
};

static void miss_done(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct miss *miss = arg;

    miss->retry_after_s = retry_after_s;
    answer_done(&miss->answer, result);
}

static enum store_result count_miss(struct miss *miss)
{
    *miss = (struct miss){0};
    key_holder_count_miss(fixture.partitions, ADDRESS, miss_done, miss);
    return answer_wait(&miss->answer);
}

/* Digest 1 of 2 is that of a retired master key, which leads elsewhere. */
Test(key_holder, finds_a_key_under_each_master_key)
{
    for (unsigned away = 0; away < COUNT; away++) {
        struct token_digests secret, both = unknown_secret(9);
        struct key_record key = add_key(0, MODE_LIVE, &secret);
        struct key_answer answer;

        both.of[0][KEY_DIGEST_BYTES - 1] = (uint8_t)(bucket_of_account(&key.account) + away);
        memcpy(both.of[both.count++], secret.of[0], sizeof secret.of[0]);
        cr_assert_eq(find_held(&both, &answer), STORE_OK, "%u", away);
        cr_expect(id_equal(&answer.key.id, &key.id));
        both.count = 1;
        cr_expect_eq(find_held(&both, &answer), STORE_NOT_FOUND, "%u", away);
    }
}

static bool has_aliases(void *digest)
{
    return store_has_aliases(partition_of_digest(fixture.partitions, digest));
}

static void put_alias(const struct token_digests *secret, const struct id *account)
{
    unsigned partition = bucket_of_digest(secret->of[0]) % COUNT;
    char name[160], store[32], bucket[8];
    int len = snprintf(name, sizeof name, "t:{%u}:alias:", partition);

    for (size_t i = 0; i < KEY_DIGEST_BYTES; i++)
        len += snprintf(name + len, sizeof name - (size_t)len, "%02x", secret->of[0][i]);
    snprintf(store, sizeof store, "t:{%u}:store", partition);
    snprintf(bucket, sizeof bucket, "%u", bucket_of_account(account));
    redis_server_tell(&fixture.server, "SET", name, bucket, NULL);
    redis_server_tell(&fixture.server, "HSET", store, "aliased", "1", NULL);
}

Test(key_holder, revokes_a_key_that_an_alias_leads_to)
{
    struct token_digests secret;
    struct key_record key = add_key(1, MODE_LIVE, &secret);
    struct key_answer found;
    struct revoked revoked;

    cr_expect_eq(find_held(&secret, &found), STORE_NOT_FOUND, "without an alias");
    put_alias(&secret, &key.account);
    cr_assert(test_loop_until(&fixture.loop, has_aliases, secret.of[0], PATIENCE_MS));
    cr_assert_eq(revoke_held(&secret, &revoked), STORE_OK);
    cr_expect(id_equal(&revoked.key.id, &key.id));
    cr_expect_gt(revoked.key.revoked_ms, 0);
}

static void expect_event(const struct id *account, const char *class, const char *says)
{
    char prefix[16], name[96], reply[2048];

    fixture_prefix(account, prefix);
    snprintf(name, sizeof name, "%sacct:%s:audit:%s", prefix, account->text, class);
    redis_server_ask(&fixture.server, reply, sizeof reply, "XREVRANGE", name, "+", "-", "COUNT", "1", NULL);
    cr_expect(strstr(reply, says), "\"%s\" lacks %s: %s", name, says, reply);
}

Test(key_holder, revokes_once_and_says_who)
{
    static const char *const CLASSES[] = {[MODE_TEST] = "test", [MODE_LIVE] = "live"};

    for (enum key_mode mode = MODE_TEST; mode <= MODE_LIVE; mode++) {
        struct token_digests secret;
        struct key_record key = add_key(0, mode, &secret);
        struct revoked first, again;

        cr_assert_eq(revoke_held(&secret, &first), STORE_OK);
        cr_expect(id_equal(&first.key.id, &key.id));
        expect_event(&key.account, CLASSES[mode], "api_key.revoked");
        expect_event(&key.account, CLASSES[mode], "data:reason");
        expect_event(&key.account, CLASSES[mode], "holder");
        expect_event(&key.account, CLASSES[mode], "192.0.2.1");
        cr_assert_eq(revoke_held(&secret, &again), STORE_OK);
        cr_expect_eq(again.key.revoked_ms, first.key.revoked_ms);
    }
}

Test(key_holder, only_counted_misses_must_wait)
{
    struct token_digests unknown = unknown_secret(5), secret;
    struct revoked revoked;
    struct miss miss;

    add_key(0, MODE_LIVE, &secret);
    for (unsigned i = 0; i < MISSES_FREE + 1; i++) {
        cr_assert_eq(revoke_held(&secret, &revoked), STORE_OK, "%u", i);
        cr_assert_eq(revoke_held(&unknown, &revoked), STORE_NOT_FOUND, "%u", i);
    }
    for (unsigned i = 0; i < MISSES_FREE; i++)
        cr_assert_eq(count_miss(&miss), STORE_OK, "%u", i);
    cr_expect_eq(count_miss(&miss), STORE_REFUSED);
    cr_expect(miss.retry_after_s > 0 && miss.retry_after_s <= 30, "%u", miss.retry_after_s);
    cr_expect_eq(revoke_held(&secret, &revoked), STORE_OK, "a holder does not wait for neighbours who guess");
    cr_expect(revoked.has_key);
}

Test(key_holder, says_nothing_while_redis_is_away)
{
    struct revoked revoked;
    struct token_digests secret;

    add_key(0, MODE_LIVE, &secret);
    redis_server_stop(&fixture.server);
    enum store_result result = revoke_held(&secret, &revoked);
    cr_expect(result == STORE_UNAVAILABLE || result == STORE_UNKNOWN, "%d", (int)result);
}
