#include "records/device_store.h"
#include "base/metrics.h"
#include "deadline.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void start(void)
{
    fixture_start();
    fixture_spread(1);
}

TestSuite(device_store, .init = start, .fini = fixture_stop);

/* Digests of the codes of a device. Their last byte is their bucket. */
struct device {
    uint8_t code[KEYRING_DIGEST_BYTES], user_code[KEYRING_DIGEST_BYTES];
};

static struct device device_at(uint8_t partition, uint8_t n)
{
    return (struct device){{1, n, [KEYRING_DIGEST_BYTES - 1] = partition},
                           {2, n, [KEYRING_DIGEST_BYTES - 1] = partition}};
}

/* As answer_wait(), for a verb that may have completed while another one was awaited. */
static enum store_result answer_wait_next(struct answer *answer)
{
    cr_assert(test_loop_until_set(&fixture.loop, &answer->is_done, PATIENCE_MS));
    cr_assert_eq(answer->calls, 1);
    return answer->result;
}

static const struct device DEVICE = {{1}, {2}};

/* The digests of a code when there is one master key. */
static const struct token_digests *alone(const uint8_t *digest)
{
    static struct token_digests digests;

    digests.count = 1;
    memcpy(digests.of[0], digest, sizeof digests.of[0]);
    return &digests;
}

static enum store_result begin(const struct device *device, struct wait_answer *begun)
{
    struct device_request request = {.client = TEXT("agent"),
                                     .name = TEXT("Ward"),
                                     .scopes = SCOPE_DOCUMENTS_WRITE,
                                     .ip = TEXT("192.0.2.9"),
                                     .ip_tag = TEXT("begin"),
                                     .network_tag = TEXT("network")};

    memcpy(request.code_digest, device->code, sizeof device->code);
    memcpy(request.user_code_digest, device->user_code, sizeof device->user_code);
    *begun = (struct wait_answer){0};
    device_store_begin(fixture.partitions, &request, wait_answer_done, begun);
    return answer_wait(&begun->answer);
}

static struct device some_device(uint8_t partition, uint8_t n)
{
    struct device device = device_at(partition, n);
    struct wait_answer begun;

    cr_assert_eq(begin(&device, &begun), STORE_OK);
    return device;
}

struct poll_answer {
    struct answer answer;
    struct device_poll poll;
    char name[32];
    int approvals;
    uint8_t n; /* of the key */
    struct id approved_for;
};

static void poll_done(void *arg, enum store_result result, const struct device_poll *poll)
{
    struct poll_answer *polled = arg;

    polled->poll = *poll;
    snprintf(polled->name, sizeof polled->name, "%.*s", TEXT_ARG(poll->name));
    answer_done(&polled->answer, result);
}

static void poll_approved(void *arg, struct key_record *key, uint8_t ret_digest[KEY_DIGEST_BYTES])
{
    struct poll_answer *polled = arg;

    polled->approvals++;
    polled->approved_for = key->account;
    key_set_last4(key, TEXT("svc_dk_wxyz"));
    memset(ret_digest, 0, KEY_DIGEST_BYTES);
    ret_digest[0] = 3;
    ret_digest[1] = polled->n;
}

/* n: of the key, if one is created. */
static void start_poll(const struct token_digests *code, struct text client, uint8_t n, struct key_record *key,
                       struct poll_answer *polled)
{
    static const struct audit_source SOURCE = {.ip = {"192.0.2.9", 9}, .request_id = {"req_9", 5}};

    *key = (struct key_record){.kind = KEY_DEVICE, .mode = MODE_LIVE, .created_ms = 1700000000000};
    key->id = id_mint(ID_DEVICE, key->created_ms);
    *polled = (struct poll_answer){.n = n};
    device_store_poll(fixture.partitions, code, client, TEXT("poll"), key, &SOURCE, poll_approved, poll_done, polled);
}

static enum store_result poll_device(const struct device *device, struct text client, struct key_record *key,
                                     struct poll_answer *polled)
{
    start_poll(alone(device->code), client, device->code[1], key, polled);
    return answer_wait(&polled->answer);
}

struct verification_answer {
    struct answer answer;
    struct device_enrolment enrolment; /* its texts are no longer valid */
    char texts[96];
    uint32_t retry_after_s;
};

static void verification_done(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                              uint32_t retry_after_s)
{
    struct verification_answer *verification = arg;

    cr_assert_eq(enrolment != NULL, result == STORE_OK);
    if (enrolment) {
        verification->enrolment = *enrolment;
        snprintf(verification->texts, sizeof verification->texts, "%.*s %.*s %.*s", TEXT_ARG(enrolment->client),
                 TEXT_ARG(enrolment->name), TEXT_ARG(enrolment->ip));
    }
    verification->retry_after_s = retry_after_s;
    answer_done(&verification->answer, result);
}

static void start_find(const struct id *account, const struct token_digests *code,
                       struct verification_answer *verification)
{
    *verification = (struct verification_answer){0};
    device_store_find(fixture.partitions, code, account, TEXT("user"), verification_done, verification);
}

static enum store_result find(const struct id *account, const uint8_t *code, struct verification_answer *verification)
{
    start_find(account, alone(code), verification);
    return answer_wait(&verification->answer);
}

/* The user must outlive the call. */
static void start_decide(const struct device *device, const struct user_record *user, bool approve,
                         struct verification_answer *verification)
{
    const struct audit_source source = {
        .actor = id_text(&user->id), .ip = TEXT("192.0.2.1"), .request_id = TEXT("req_1")};

    *verification = (struct verification_answer){0};
    device_store_decide(fixture.partitions, alone(device->user_code), &user->account, TEXT("user"), approve, &source,
                        verification_done, verification);
}

static enum store_result decide(const struct device *device, const struct user_record *user, bool approve,
                                struct verification_answer *verification)
{
    start_decide(device, user, approve, verification);
    return answer_wait(&verification->answer);
}

Test(device_store, from_the_codes_to_the_key)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const struct key_view view = {.account = account, .kind = KEY_DEVICE};
    struct wait_answer begun;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_answer found = {0};
    struct key_record key;

    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    cr_assert_eq(begin(&DEVICE, &begun), STORE_CONFLICT);
    cr_assert_eq(poll_device(&DEVICE, TEXT("other"), &key, &polled), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_PENDING);
    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_SLOW_DOWN);
    cr_expect_eq(polled.approvals, 0);

    cr_assert_eq(find(&account, DEVICE.user_code, &verification), STORE_OK);
    cr_expect_str_eq(verification.texts, "agent Ward 192.0.2.9");
    cr_expect_eq(verification.enrolment.scopes, SCOPE_DOCUMENTS_WRITE);
    cr_expect_eq(verification.enrolment.expires_ms - verification.enrolment.created_ms, DEVICE_LIFETIME_S * 1000);
    cr_expect_eq(verification.enrolment.status, DEVICE_IS_PENDING);
    cr_assert_eq(decide(&DEVICE, &user, true, &verification), STORE_OK);
    cr_expect_eq(verification.enrolment.status, DEVICE_IS_APPROVED);

    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_OK);
    cr_expect(id_equal(&polled.poll.account, &account) && id_equal(&polled.poll.approver, &user.id));
    cr_expect_str_eq(polled.name, "Ward");
    cr_expect(polled.approvals == 1 && id_equal(&polled.approved_for, &account));
    cr_expect_eq(polled.poll.scopes, SCOPE_DOCUMENTS_WRITE);
    expect_newest_event(&account, "device_key.created", 3);
    key_store_get(fixture_home(&account), &view, &key.id, key_answer_done, &found);
    cr_assert_eq(answer_wait(&found.answer), STORE_OK);
    cr_expect(text_equal(key_name(&found.key), TEXT("Ward")) && found.key.kind == KEY_DEVICE);
    cr_expect(found.key.mode == MODE_LIVE && found.key.scopes == SCOPE_DOCUMENTS_WRITE);
    cr_expect_str_eq(found.key.last4, "wxyz");
    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_NOT_FOUND);
    cr_assert_eq(find(&account, DEVICE.user_code, &verification), STORE_NOT_FOUND);
}

Test(device_store, a_denial)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct wait_answer begun;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    cr_assert_eq(decide(&DEVICE, &user, false, &verification), STORE_OK);
    cr_expect_eq(verification.enrolment.status, DEVICE_IS_DENIED);
    expect_newest_event(&account, "device.denied", 2);
    cr_assert_eq(decide(&DEVICE, &user, true, &verification), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_DENIED);
}

Test(device_store, waits_are_told)
{
    struct id account = some_account();
    struct wait_answer begun;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    for (int i = 0; i < 30; i++)
        cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_REFUSED);
    cr_expect(polled.poll.refusal == DEVICE_THROTTLED && is_wait_of(30, polled.poll.retry_after_s));
    for (uint8_t n = 0; n < 30; n++)
        some_device(0, n);
    cr_assert_eq(begin(&DEVICE, &begun), STORE_REFUSED);
    cr_expect(is_wait_of(30, begun.retry_after_s), "%u", begun.retry_after_s);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(find(&account, DEVICE.code, &verification), STORE_NOT_FOUND);
    cr_assert_eq(find(&account, DEVICE.code, &verification), STORE_REFUSED);
    cr_expect(is_wait_of(30, verification.retry_after_s), "%u", verification.retry_after_s);
}

/* An impossible record is neither a refusal nor a device. */
Test(device_store, records_that_cannot_be)
{
    static const char *const WRONG[][2] = {{"status", "bogus"}, {"scopes", "0"}, {"scopes", "x"}, {"created", "0"}};
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct wait_answer begun;
    struct verification_answer verification;
    char name[128] = "t:device:01";

    memset(name + strlen(name), '0', 62);
    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        char kept[64];

        redis_server_ask(&fixture.server, kept, sizeof kept, "HGET", name, WRONG[i][0], NULL);
        redis_server_tell(&fixture.server, "HSET", name, WRONG[i][0], WRONG[i][1], NULL);
        cr_expect_eq(find(&account, DEVICE.user_code, &verification), STORE_UNAVAILABLE, "%s", WRONG[i][1]);
        redis_server_tell(&fixture.server, "HSET", name, WRONG[i][0], kept, NULL);
    }
    redis_server_tell(&fixture.server, "HSET", name, "ip", "", NULL);
    cr_expect_eq(find(&account, DEVICE.user_code, &verification), STORE_OK);
    redis_server_tell(&fixture.server, "HSET", name, "scopes", "x", NULL);
    cr_expect_eq(decide(&DEVICE, &user, true, &verification), STORE_UNAVAILABLE);
    cr_expect_eq(decide(&DEVICE, &user, false, &verification), STORE_UNAVAILABLE);
}

/* An attacker writes to Redis */

static char enrolment_name[128];

/* The name for the codes that begin() gives to n. */
static const char *name_of_enrolment(const char *kind, int first, uint8_t n)
{
    snprintf(enrolment_name, sizeof enrolment_name, "t:%s:%02x%02x%060d", kind, (unsigned)first, (unsigned)n, 0);
    return enrolment_name;
}

static void set(const char *name, const char *field, const char *value)
{
    redis_server_tell(&fixture.server, "HSET", name, field, value, NULL);
}

static void expect_no_key(enum store_result result, const struct poll_answer *polled, const struct key_record *key)
{
    char there[16], name[64];

    (void)polled;
    cr_expect_eq(result, STORE_NOT_FOUND);
    cr_expect_eq(metric_values[METRIC_RECORDS_ALTERED], 1);
    snprintf(name, sizeof name, "t:id:%s", key->id.text);
    redis_server_ask(&fixture.server, there, sizeof there, "EXISTS", name, NULL);
    cr_expect_str_eq(there, "0");
}

Test(device_store, who_writes_redis_approves_nothing)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const char *name = name_of_enrolment("device", 1, 0);
    struct wait_answer begun;
    struct poll_answer polled;
    struct key_record key;

    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    set(name, "status", "approved");
    set(name, "account", account.text);
    set(name, "user", user.id.text);
    enum store_result result = poll_device(&DEVICE, TEXT("agent"), &key, &polled);
    expect_no_key(result, &polled, &key);
}

Test(device_store, an_approval_is_of_one_device_and_what_it_asked_for)
{
    static const char *const ALTERED[][2] = {
        {"name", "Theatre"}, {"scopes", "1"}, {"user", "usr_01jd0000000000000000000003"}};
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const char *name = name_of_enrolment("device", 1, 0);
    struct wait_answer begun;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    cr_assert_eq(decide(&DEVICE, &user, true, &verification), STORE_OK);
    for (size_t i = 0; i < sizeof ALTERED / sizeof *ALTERED; i++) {
        char kept[64];

        metric_set(METRIC_RECORDS_ALTERED, 0);
        redis_server_ask(&fixture.server, kept, sizeof kept, "HGET", name, ALTERED[i][0], NULL);
        set(name, ALTERED[i][0], ALTERED[i][1]);
        enum store_result result = poll_device(&DEVICE, TEXT("agent"), &key, &polled);
        expect_no_key(result, &polled, &key);
        set(name, ALTERED[i][0], kept);
    }
    cr_expect_eq(poll_device(&DEVICE, TEXT("agent"), &key, &polled), STORE_OK);
}

/* Otherwise a person would read a code from one device and let in another. */
Test(device_store, a_user_code_is_of_one_device)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct wait_answer begun;
    struct verification_answer verification;
    char other[65];

    cr_assert_eq(begin(&DEVICE, &begun), STORE_OK);
    some_device(0, 1);
    snprintf(other, sizeof other, "0101%060d", 0);
    redis_server_tell(&fixture.server, "SET", name_of_enrolment("user_code", 2, 0), other, NULL);
    cr_expect_eq(find(&account, DEVICE.user_code, &verification), STORE_NOT_FOUND);
    cr_expect_eq(decide(&DEVICE, &user, true, &verification), STORE_NOT_FOUND);
    cr_expect_eq(metric_values[METRIC_RECORDS_ALTERED], 2);
}

/* Four partitions: the codes are in one, the account in another. */

enum { PARTITIONS = 4 };

static void start_four(void)
{
    fixture_start();
    fixture_spread(PARTITIONS);
}

TestSuite(device_partitions, .init = start_four, .fini = fixture_stop);

static struct user_record owner_in(unsigned partition, const char *email)
{
    struct id account = some_account();

    while (bucket_of_account(&account) % PARTITIONS != partition)
        account = some_account();
    return some_user(&account, email);
}

static const char *name_of_device(const struct device *device)
{
    snprintf(enrolment_name, sizeof enrolment_name, "t:{%u}:device:01%02x%058d%02x",
             device->code[KEYRING_DIGEST_BYTES - 1] % PARTITIONS, device->code[1], 0,
             device->code[KEYRING_DIGEST_BYTES - 1]);
    return enrolment_name;
}

/* An enrolment, put back as it was before a step whose node was killed. */
struct kept_enrolment {
    char status[16], account[ID_TEXT_BYTES], user[ID_TEXT_BYTES], mac[32];
};

static struct kept_enrolment keep_enrolment(const struct device *device)
{
    const char *name = name_of_device(device);
    struct kept_enrolment kept;

    redis_server_ask(&fixture.server, kept.status, sizeof kept.status, "HGET", name, "status", NULL);
    redis_server_ask(&fixture.server, kept.account, sizeof kept.account, "HGET", name, "account", NULL);
    redis_server_ask(&fixture.server, kept.user, sizeof kept.user, "HGET", name, "user", NULL);
    redis_server_ask(&fixture.server, kept.mac, sizeof kept.mac, "HGET", name, "mac", NULL);
    return kept;
}

static void put_back(const struct device *device, const struct kept_enrolment *kept)
{
    const char *name = name_of_device(device);

    redis_server_tell(&fixture.server, "HSET", name, "status", kept->status, "mac", kept->mac, NULL);
    if (strcmp(kept->account, "(nil)") != 0)
        redis_server_tell(&fixture.server, "HSET", name, "account", kept->account, "user", kept->user, NULL);
    else
        redis_server_tell(&fixture.server, "HDEL", name, "account", "user", NULL);
}

static void expect_keys(const struct id *account, int count)
{
    char prefix[16], name[96], found[16], expected[16];

    fixture_prefix(account, prefix);
    snprintf(name, sizeof name, "%sacct:%s:keys:dk:active", prefix, account->text);
    snprintf(expected, sizeof expected, "%d", count);
    redis_server_ask(&fixture.server, found, sizeof found, "ZCARD", name, NULL);
    cr_expect_str_eq(found, expected);
}

static void expect_refusal(const struct device *device, enum device_refusal refusal)
{
    struct poll_answer polled;
    struct key_record key;

    cr_expect_eq(poll_device(device, TEXT("agent"), &key, &polled), STORE_REFUSED, "%d", polled.answer.result);
    cr_expect_eq(polled.poll.refusal, refusal, "%d", polled.poll.refusal);
}

Test(device_partitions, from_the_codes_to_the_key)
{
    struct user_record user = owner_in(2, "ana@north.test");
    const struct key_view view = {.account = user.account, .kind = KEY_DEVICE};

    for (uint8_t p = 0; p < PARTITIONS; p++) {
        struct device device = some_device(p, p);
        struct key_answer found = {0};
        struct wait_answer begun;
        struct poll_answer polled;
        struct verification_answer verification;
        struct key_record key;

        cr_assert_eq(begin(&device, &begun), STORE_CONFLICT);
        expect_refusal(&device, DEVICE_PENDING);
        expect_refusal(&device, DEVICE_SLOW_DOWN);
        cr_assert_eq(find(&user.account, device.user_code, &verification), STORE_OK);
        cr_expect_str_eq(verification.texts, "agent Ward 192.0.2.9");
        cr_assert_eq(decide(&device, &user, true, &verification), STORE_OK);
        expect_newest_event(&user.account, "device.approved", 2 + 2 * p);
        cr_assert_eq(decide(&device, &user, true, &verification), STORE_OK);
        cr_expect_eq(verification.enrolment.status, DEVICE_IS_APPROVED);
        cr_assert_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_OK);
        cr_expect(id_equal(&polled.poll.account, &user.account) && id_equal(&polled.poll.approver, &user.id));
        cr_expect_str_eq(polled.poll.account_name, "North Clinic");
        expect_newest_event(&user.account, "device_key.created", 3 + 2 * p);
        key_store_get(fixture_home(&user.account), &view, &key.id, key_answer_done, &found);
        cr_expect_eq(answer_wait(&found.answer), STORE_OK);
        cr_expect_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_NOT_FOUND);
        cr_expect_eq(find(&user.account, device.user_code, &verification), STORE_NOT_FOUND);
        cr_expect_eq(decide(&device, &user, true, &verification), STORE_NOT_FOUND);
        cr_expect_eq(decide(&device, &user, false, &verification), STORE_NOT_FOUND);
        expect_keys(&user.account, p + 1);
    }
}

/* Under the current key a code would be in another partition. */
Test(device_partitions, codes_of_a_retired_master_key)
{
    struct user_record user = owner_in(2, "ana@north.test");
    struct device device = some_device(1, 0), other = device_at(3, 9);
    struct token_digests code = {.count = 2}, user_code = {.count = 2};
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;
    char counted[16];

    memcpy(code.of[0], other.code, sizeof other.code);
    memcpy(code.of[1], device.code, sizeof device.code);
    memcpy(user_code.of[0], other.user_code, sizeof other.user_code);
    memcpy(user_code.of[1], device.user_code, sizeof device.user_code);
    start_find(&user.account, &user_code, &verification);
    cr_assert_eq(answer_wait(&verification.answer), STORE_OK);
    cr_assert_eq(decide(&device, &user, true, &verification), STORE_OK);
    start_poll(&code, TEXT("agent"), 0, &key, &polled);
    cr_assert_eq(answer_wait(&polled.answer), STORE_OK);
    redis_server_ask(&fixture.server, counted, sizeof counted, "EXISTS", "t:{2}:throttle:user", "t:{0}:throttle:poll",
                     "t:{1}:throttle:poll", "t:{2}:throttle:poll", "t:{3}:throttle:poll", NULL);
    cr_expect_str_eq(counted, "0");
}

Test(device_partitions, of_two_accounts_one_gets_the_device)
{
    const struct user_record users[] = {owner_in(2, "ana@north.test"), owner_in(3, "bo@south.test")};

    for (uint8_t n = 0; n < 8; n++) {
        struct device device = some_device(n % PARTITIONS, n);
        struct verification_answer answers[2];
        struct poll_answer polled;
        struct key_record key;

        start_decide(&device, &users[n % 2], true, &answers[n % 2]);
        start_decide(&device, &users[1 - n % 2], true, &answers[1 - n % 2]);
        enum store_result results[] = {answer_wait(&answers[0].answer), answer_wait_next(&answers[1].answer)};
        size_t winner = results[0] == STORE_OK ? 0 : 1;
        cr_expect_eq(results[winner], STORE_OK);
        cr_expect_eq(results[1 - winner], STORE_NOT_FOUND);
        cr_assert_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_OK);
        cr_expect(id_equal(&polled.poll.account, &users[winner].account));
        cr_expect(id_equal(&polled.poll.approver, &users[winner].id));
    }
}

/* Runs until the account's partition has a decision, whose reply the node has not read yet. */
static void run_until_decided(const struct device *device, const struct id *account)
{
    char prefix[16], name[160], there[16] = "0";
    struct deadline deadline = deadline_in(PATIENCE_MS);

    fixture_prefix(account, prefix);
    snprintf(name, sizeof name, "%sacct:%s:%s", prefix, account->text, name_of_device(device) + strlen("t:{0}:"));
    while (strcmp(there, "1") != 0 && deadline_left_ms(deadline) > 0) {
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
        redis_server_ask(&fixture.server, there, sizeof there, "EXISTS", name, NULL);
    }
    cr_assert_str_eq(there, "1");
}

Test(device_partitions, an_approval_that_came_too_late_is_withdrawn)
{
    const struct user_record ana = owner_in(2, "ana@north.test"), bo = owner_in(3, "bo@south.test");
    struct device device = some_device(1, 0);
    struct verification_answer verification, late;
    struct poll_answer polled;
    struct key_record key;

    start_decide(&device, &bo, true, &late);
    run_until_decided(&device, &bo.account);
    expect_newest_event(&bo.account, "device.approved", 2);
    struct kept_enrolment pending = keep_enrolment(&device);
    redis_server_tell(&fixture.server, "HSET", name_of_device(&device), "status", "denied", "account", ana.account.text,
                      NULL);
    cr_expect_eq(answer_wait_next(&late.answer), STORE_NOT_FOUND);
    expect_newest_event(&bo.account, "device.denied", 3);
    put_back(&device, &pending);
    cr_expect_eq(decide(&device, &bo, true, &verification), STORE_NOT_FOUND);
    cr_expect_eq(decide(&device, &ana, true, &verification), STORE_OK);
    cr_expect_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_OK);
    expect_keys(&ana.account, 1);
    expect_keys(&bo.account, 0);
}

Test(device_partitions, who_denies_wins_against_who_approves)
{
    const struct user_record ana = owner_in(2, "ana@north.test");
    const struct user_record bo = some_user(&ana.account, "bo@north.test");

    for (uint8_t n = 0; n < 8; n++) {
        struct device device = some_device(n % PARTITIONS, n);
        struct verification_answer approval, denial;

        if (n % 2)
            start_decide(&device, &ana, true, &approval);
        start_decide(&device, &bo, false, &denial);
        if (n % 2 == 0)
            start_decide(&device, &ana, true, &approval);
        cr_expect_eq(answer_wait(&denial.answer), STORE_OK);
        enum store_result approved = answer_wait_next(&approval.answer);
        cr_expect(approved == STORE_OK || approved == STORE_NOT_FOUND, "%d", approved);
        expect_refusal(&device, DEVICE_DENIED);
    }
    expect_keys(&ana.account, 0);
}

Test(device_partitions, of_two_claims_one_makes_the_key)
{
    const struct user_record ana = owner_in(2, "ana@north.test");

    for (uint8_t n = 0; n < 8; n++) {
        struct device device = some_device(n % PARTITIONS, n);
        struct poll_answer polls[2];
        struct verification_answer verification;
        struct key_record keys[2];

        cr_assert_eq(decide(&device, &ana, true, &verification), STORE_OK);
        start_poll(alone(device.code), TEXT("agent"), (uint8_t)(2 * n), &keys[0], &polls[0]);
        start_poll(alone(device.code), TEXT("agent"), (uint8_t)(2 * n + 1), &keys[1], &polls[1]);
        enum store_result results[] = {answer_wait(&polls[0].answer), answer_wait_next(&polls[1].answer)};
        cr_expect(results[0] == STORE_OK ? results[1] == STORE_NOT_FOUND
                                         : results[0] == STORE_NOT_FOUND && results[1] == STORE_OK);
        expect_keys(&ana.account, n + 1);
    }
}

/* Steps whose node was killed before the next */

Test(device_partitions, an_approval_that_was_not_marked_is_completed_by_repeating)
{
    const struct user_record ana = owner_in(2, "ana@north.test");
    const struct user_record bo = some_user(&ana.account, "bo@north.test");
    struct device device = some_device(1, 0), denied = some_device(3, 1);
    struct kept_enrolment pending = keep_enrolment(&device);
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    cr_assert_eq(decide(&device, &ana, true, &verification), STORE_OK);
    put_back(&device, &pending);
    expect_refusal(&device, DEVICE_PENDING);
    cr_assert_eq(decide(&device, &bo, true, &verification), STORE_OK);
    expect_newest_event(&ana.account, "device.approved", 3);
    cr_assert_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_OK);
    cr_expect(id_equal(&polled.poll.approver, &ana.id));

    pending = keep_enrolment(&denied);
    cr_assert_eq(decide(&denied, &ana, true, &verification), STORE_OK);
    put_back(&denied, &pending);
    cr_assert_eq(decide(&denied, &bo, false, &verification), STORE_OK);
    expect_refusal(&denied, DEVICE_DENIED);
    expect_keys(&ana.account, 1);
}

Test(device_partitions, a_claim_that_was_not_marked_makes_no_second_key)
{
    const struct user_record ana = owner_in(2, "ana@north.test");
    struct device device = some_device(1, 0);
    struct kept_enrolment pending = keep_enrolment(&device), approved;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    cr_assert_eq(decide(&device, &ana, true, &verification), STORE_OK);
    approved = keep_enrolment(&device);
    cr_assert_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_OK);
    put_back(&device, &approved);
    start_poll(alone(device.code), TEXT("agent"), 99, &key, &polled);
    cr_expect_eq(answer_wait(&polled.answer), STORE_NOT_FOUND);
    cr_expect_eq(decide(&device, &ana, true, &verification), STORE_NOT_FOUND);
    cr_expect_eq(decide(&device, &ana, false, &verification), STORE_NOT_FOUND);
    /* A slow approver still believes this. */
    put_back(&device, &pending);
    cr_expect_eq(decide(&device, &ana, true, &verification), STORE_NOT_FOUND);
    expect_keys(&ana.account, 1);
    expect_newest_event(&ana.account, "device_key.created", 3);
}

Test(device_partitions, a_denial_that_was_not_marked_holds)
{
    const struct user_record ana = owner_in(2, "ana@north.test");
    struct device device = some_device(1, 0);
    struct kept_enrolment approved;
    struct poll_answer polled;
    struct verification_answer verification;
    struct key_record key;

    cr_assert_eq(decide(&device, &ana, true, &verification), STORE_OK);
    approved = keep_enrolment(&device);
    cr_assert_eq(decide(&device, &ana, false, &verification), STORE_OK);
    put_back(&device, &approved);
    cr_expect_eq(poll_device(&device, TEXT("agent"), &key, &polled), STORE_NOT_FOUND);
    cr_expect_eq(decide(&device, &ana, true, &verification), STORE_NOT_FOUND);
    cr_expect_eq(decide(&device, &ana, false, &verification), STORE_OK);
    expect_refusal(&device, DEVICE_DENIED);
    expect_keys(&ana.account, 0);
    expect_newest_event(&ana.account, "device.denied", 3);
}

/* Limits */

Test(device_partitions, requests_of_an_address_count_wherever_their_codes_are)
{
    struct device one_more = device_at(1, 200);
    struct wait_answer begun;
    struct poll_answer polled;
    struct key_record key;

    for (uint8_t n = 0; n < 30; n++)
        some_device(n % PARTITIONS, n);
    cr_expect_eq(begin(&one_more, &begun), STORE_REFUSED);
    cr_expect(is_wait_of(30, begun.retry_after_s), "%u", begun.retry_after_s);
    for (uint8_t n = 0; n < 30; n++) {
        struct device unknown = device_at(n % PARTITIONS, 100 + n);

        cr_expect_eq(poll_device(&unknown, TEXT("agent"), &key, &polled), STORE_NOT_FOUND);
    }
    expect_refusal(&one_more, DEVICE_THROTTLED);
    for (uint8_t n = 0; n < PARTITIONS; n++) {
        struct device device = device_at(n, n);

        expect_refusal(&device, DEVICE_PENDING);
        expect_refusal(&device, DEVICE_THROTTLED);
    }
}

Test(device_partitions, guesses_in_parallel_get_no_more_replies_than_others)
{
    enum { GUESSES = 20, FREE = 5 };
    const struct user_record ana = owner_in(2, "ana@north.test");
    struct device device = some_device(1, 0);
    struct verification_answer answers[GUESSES], verification;
    unsigned wrong = 0;

    for (int i = 0; i < 2 * FREE; i++)
        cr_expect_eq(find(&ana.account, device.user_code, &verification), STORE_OK, "right codes do not count");
    for (uint8_t n = 0; n < GUESSES; n++) {
        struct device unknown = device_at(n % PARTITIONS, 100 + n);

        start_find(&ana.account, alone(unknown.user_code), &answers[n]);
    }
    for (uint8_t n = 0; n < GUESSES; n++) {
        enum store_result result = answer_wait_next(&answers[n].answer);

        cr_expect(result == STORE_NOT_FOUND || (result == STORE_REFUSED && is_wait_of(30, answers[n].retry_after_s)));
        wrong += result == STORE_NOT_FOUND;
    }
    cr_expect_eq(wrong, FREE, "%u", wrong);
    cr_expect_eq(decide(&device, &ana, true, &verification), STORE_REFUSED);
    cr_expect_eq(decide(&device, &ana, false, &verification), STORE_REFUSED);
}
