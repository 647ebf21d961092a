#include "store_fixture.h"
#include "base/clock.h"
#include "deadline.h"
#include "leak_guard.h"
#include "records/store_parts.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store_fixture fixture;

static const uint8_t MASTER[1][KEYRING_MASTER_BYTES] = {{1}};

const struct audit_source SOMEBODY = {
    .actor = {"usr_somebody", 12}, .ip = {"192.0.2.1", 9}, .request_id = {"req_1", 5}};

static bool are_ready(void *arg)
{
    const struct partitions *partitions = arg;

    for (unsigned i = 0; i < partitions_count(partitions); i++)
        if (!store_is_ready(partitions_at(partitions, i)))
            return false;
    return true;
}

static void ready_changed(UNUSED void *arg, UNUSED struct store *store)
{
}

void fixture_start(void)
{
    signal(SIGPIPE, SIG_IGN); /* as the program does: writing to a lost Redis fails with EPIPE */
    redis_server_start(&fixture.server, NULL);
    cr_assert_eq(uv_loop_init(&fixture.loop), 0);
    fixture.keyring = keyring_create(MASTER, 1);
    fixture_open_store("t:");
}

struct partitions *fixture_open_partitions(const char *prefix, unsigned count)
{
    struct store_settings settings = {.parts = STORE_PARTS,
                                      .timeout_ms = 10000,
                                      .prefix = prefix,
                                      .partitions = count,
                                      .audit_max = 1000,
                                      .keyring = fixture.keyring};
    struct partitions *partitions;
    struct buf why;

    buf_init(&why, 1000);
    cr_assert(redis_target_parse(text_of(fixture.server.url), &settings.target, &why));
    buf_finish(&why);
    partitions = partitions_create(&fixture.loop, &settings, ready_changed, NULL);
    cr_assert(test_loop_until(&fixture.loop, are_ready, partitions, PATIENCE_MS), "%s",
              store_trouble(partitions_at(partitions, 0)));
    return partitions;
}

void fixture_open_store(const char *prefix)
{
    fixture.is_closed = false;
    fixture.partitions = fixture_open_partitions(prefix, 1);
    fixture.store = partitions_at(fixture.partitions, 0);
}

static void partitions_closed(void *arg)
{
    *(bool *)arg = true;
}

void fixture_close_partitions(struct partitions *partitions)
{
    bool is_closed = false;

    partitions_close(partitions, partitions_closed, &is_closed);
    cr_assert(test_loop_until_set(&fixture.loop, &is_closed, PATIENCE_MS));
}

void fixture_close_store(void)
{
    fixture_close_partitions(fixture.partitions);
    fixture.is_closed = true;
}

void fixture_spread(unsigned count)
{
    fixture_close_store();
    fixture.is_closed = false;
    fixture.partitions = fixture_open_partitions("t:", count);
    fixture.store = partitions_at(fixture.partitions, 0);
}

struct store *fixture_home(const struct id *account)
{
    return partition_of_account(fixture.partitions, account);
}

void fixture_prefix(const struct id *account, char ret_prefix[16])
{
    unsigned count = partitions_count(fixture.partitions);

    if (count == 1)
        snprintf(ret_prefix, 16, "t:");
    else
        snprintf(ret_prefix, 16, "t:{%u}:", bucket_of_account(account) % count);
}

void fixture_stop(void)
{
    if (!fixture.is_closed)
        fixture_close_store();
    if (!test_loop_finish(&fixture.loop))
        abort(); /* a failed assertion here would not fail the test */
    redis_server_stop(&fixture.server);
    keyring_destroy(fixture.keyring);
    leak_guard();
}

void answer_done(void *arg, enum store_result result)
{
    struct answer *answer = arg;

    answer->calls++;
    answer->result = result;
    answer->is_done = true;
}

void wait_answer_done(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct wait_answer *answer = arg;

    answer->retry_after_s = retry_after_s;
    answer_done(&answer->answer, result);
}

bool is_wait_of(uint32_t wait_s, uint32_t told_s)
{
    return told_s <= wait_s && told_s + 10 > wait_s;
}

void answer_inserted(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct answer *answer = arg;

    cr_assert_eq(retry_after_s > 0, result == STORE_LIMITED);
    answer_done(answer, result);
}

enum store_result answer_wait(struct answer *answer)
{
    cr_assert(!answer->is_done, "completed inside the call");
    cr_assert(test_loop_until_set(&fixture.loop, &answer->is_done, PATIENCE_MS));
    cr_assert_eq(answer->calls, 1);
    return answer->result;
}

void key_answer_done(void *arg, enum store_result result, const struct key_record *key)
{
    struct key_answer *answer = arg;

    cr_assert_eq(key != NULL, result == STORE_OK);
    if (key)
        key_copy(&answer->key, key);
    answer_done(&answer->answer, result);
}

struct id some_account(void)
{
    struct id account = id_mint(ID_ACCOUNT, clock_wall_ms());
    struct answer answer = {0};

    account_store_create(partition_of_account(fixture.partitions, &account), &account, TEXT("North Clinic"),
                         answer_done, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    return account;
}

struct user_record some_user(const struct id *account, const char *email)
{
    return some_person(account, email, ROLE_OWNER);
}

struct user_record some_person(const struct id *account, const char *email, enum role role)
{
    struct user_record user = {
        .id = id_mint(ID_USER, clock_wall_ms()), .account = *account, .role = role, .created_ms = 1234};
    struct answer answer = {0};

    snprintf(user.email, sizeof user.email, "%s", email);
    snprintf(user.password_hash, sizeof user.password_hash, "hash of %s", email);
    for (uint8_t i = 0; i < TOTP_SEALED_BYTES; i++)
        user.totp_sealed[i] = (uint8_t)(i * 7); /* any bytes, NUL among them */
    account_store_add_user(fixture.partitions, &user, &SOMEBODY, answer_done, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    return user;
}

struct key_record some_key(const struct id *account, enum key_mode mode, uint8_t n,
                           uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    struct key_record key = {.account = *account, .kind = KEY_API, .mode = mode, .scopes = SCOPE_KEYS_MANAGE};

    key.created_ms = clock_wall_ms() - 1000 + n;
    key.id = id_mint(ID_KEY, key.created_ms);
    cr_assert(key_set_name(&key, TEXT("Front d\xc3\xa4sk")));
    key_set_last4(&key, TEXT("svc_sk_wxyz"));
    memset(ret_digest, 0, KEY_DIGEST_BYTES);
    ret_digest[0] = n;
    return key;
}

enum store_result insert_key(const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct answer answer = {0};

    key_store_insert(fixture_home(&key->account), key, digest, &SOMEBODY, answer_inserted, &answer);
    return answer_wait(&answer);
}

static void expect_newest(const struct id *account, const char *class, const char *type, long long count)
{
    char prefix[16], name[64], entry[512], length[32], expected[64];

    fixture_prefix(account, prefix);
    snprintf(name, sizeof name, "%sacct:%s:audit%s", prefix, account->text, class);
    redis_server_ask(&fixture.server, entry, sizeof entry, "XREVRANGE", name, "+", "-", "COUNT", "1", NULL);
    redis_server_ask(&fixture.server, length, sizeof length, "XLEN", name, NULL);
    snprintf(expected, sizeof expected, "type\n%s\n", type);
    cr_expect(strstr(entry, expected), "want %s in %s", type, entry);
    cr_expect_eq(atoll(length), count, "%s events", length);
}

void expect_newest_event(const struct id *account, const char *type, long long count)
{
    expect_newest(account, "", type, count);
}

void expect_newest_refusal(const struct id *account, const char *type, long long count)
{
    expect_newest(account, ":refused", type, count);
}

unsigned scripts_run(void)
{
    static char stats[16384];
    const char *calls;

    redis_server_ask(&fixture.server, stats, sizeof stats, "INFO", "commandstats", NULL);
    calls = strstr(stats, "cmdstat_evalsha:calls=");
    return calls ? (unsigned)strtoul(calls + strlen("cmdstat_evalsha:calls="), NULL, 10) : 0;
}
