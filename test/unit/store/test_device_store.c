#include "store/device_store.h"
#include "base/metrics.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(device_store, .init = fixture_start, .fini = fixture_stop);

static const uint8_t CODE[KEYRING_DIGEST_BYTES] = {1}, USER_CODE[KEYRING_DIGEST_BYTES] = {2};

/* The digests of a code when there is one master key. */
static const struct token_digests *alone(const uint8_t *digest)
{
    static struct token_digests digests;

    digests.count = 1;
    memcpy(digests.of[0], digest, sizeof digests.of[0]);
    return &digests;
}

struct begin_answer {
    struct answer answer;
    uint32_t retry_after_s;
};

static void begin_done(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct begin_answer *begun = arg;

    begun->retry_after_s = retry_after_s;
    answer_done(&begun->answer, result);
}

static enum store_result begin(uint8_t n, struct begin_answer *begun)
{
    struct device_request request = {.client = TEXT("agent"),
                                     .name = TEXT("Ward"),
                                     .scopes = SCOPE_DOCUMENTS_WRITE,
                                     .ip = TEXT("192.0.2.9"),
                                     .ip_tag = TEXT("begin")};

    memcpy(request.code_digest, CODE, sizeof CODE);
    memcpy(request.user_code_digest, USER_CODE, sizeof USER_CODE);
    request.code_digest[1] = request.user_code_digest[1] = n;
    *begun = (struct begin_answer){0};
    device_store_begin(fixture.store, &request, begin_done, begun);
    return answer_wait(&begun->answer);
}

struct poll_answer {
    struct answer answer;
    struct device_poll poll;
    char name[32];
    int approvals;
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
}

static enum store_result poll_device(struct key_record *key, struct text client, struct poll_answer *polled)
{
    static const struct audit_source SOURCE = {.ip = {"192.0.2.9", 9}, .request_id = {"req_9", 5}};

    *key = (struct key_record){.kind = KEY_DEVICE, .mode = MODE_LIVE, .created_ms = 1700000000000};
    key->id = id_mint(ID_DEVICE, key->created_ms);
    *polled = (struct poll_answer){0};
    device_store_poll(fixture.store, alone(CODE), client, TEXT("poll"), key, &SOURCE, poll_approved, poll_done, polled);
    return answer_wait(&polled->answer);
}

struct visit_answer {
    struct answer answer;
    struct device_enrolment enrolment; /* its texts are no longer valid */
    char texts[96];
    uint32_t retry_after_s;
};

static void visit_done(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                       uint32_t retry_after_s)
{
    struct visit_answer *visit = arg;

    cr_assert_eq(enrolment != NULL, result == STORE_OK);
    if (enrolment) {
        visit->enrolment = *enrolment;
        snprintf(visit->texts, sizeof visit->texts, "%.*s %.*s %.*s", TEXT_ARG(enrolment->client),
                 TEXT_ARG(enrolment->name), TEXT_ARG(enrolment->ip));
    }
    visit->retry_after_s = retry_after_s;
    answer_done(&visit->answer, result);
}

static enum store_result find(const struct id *account, const uint8_t *code, struct visit_answer *visit)
{
    *visit = (struct visit_answer){0};
    device_store_find(fixture.store, alone(code), account, TEXT("user"), visit_done, visit);
    return answer_wait(&visit->answer);
}

static enum store_result decide(const struct user_record *user, bool approve, struct visit_answer *visit)
{
    const struct audit_source source = {
        .actor = id_text(&user->id), .ip = TEXT("192.0.2.1"), .request_id = TEXT("req_1")};

    *visit = (struct visit_answer){0};
    device_store_decide(fixture.store, alone(USER_CODE), &user->account, TEXT("user"), approve, &source, visit_done,
                        visit);
    return answer_wait(&visit->answer);
}

Test(device_store, from_the_codes_to_the_key)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const struct key_view view = {.account = account, .kind = KEY_DEVICE};
    struct begin_answer begun;
    struct poll_answer polled;
    struct visit_answer visit;
    struct key_answer found = {0};
    struct key_record key;

    cr_assert_eq(begin(0, &begun), STORE_OK);
    cr_assert_eq(begin(0, &begun), STORE_CONFLICT);
    cr_assert_eq(poll_device(&key, TEXT("other"), &polled), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_PENDING);
    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_SLOW_DOWN);
    cr_expect_eq(polled.approvals, 0);

    cr_assert_eq(find(&account, USER_CODE, &visit), STORE_OK);
    cr_expect_str_eq(visit.texts, "agent Ward 192.0.2.9");
    cr_expect_eq(visit.enrolment.scopes, SCOPE_DOCUMENTS_WRITE);
    cr_expect_eq(visit.enrolment.expires_ms - visit.enrolment.created_ms, DEVICE_LIFETIME_S * 1000);
    cr_expect_eq(visit.enrolment.status, DEVICE_IS_PENDING);
    cr_assert_eq(decide(&user, true, &visit), STORE_OK);
    cr_expect_eq(visit.enrolment.status, DEVICE_IS_APPROVED);

    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_OK);
    cr_expect(id_equal(&polled.poll.account, &account) && id_equal(&polled.poll.approver, &user.id));
    cr_expect_str_eq(polled.name, "Ward");
    cr_expect(polled.approvals == 1 && id_equal(&polled.approved_for, &account));
    cr_expect_eq(polled.poll.scopes, SCOPE_DOCUMENTS_WRITE);
    expect_newest_event(&account, "device_key.created", 3);
    key_store_get(fixture.store, &view, &key.id, key_answer_done, &found);
    cr_assert_eq(answer_wait(&found.answer), STORE_OK);
    cr_expect(text_equal(key_name(&found.key), TEXT("Ward")) && found.key.kind == KEY_DEVICE);
    cr_expect(found.key.mode == MODE_LIVE && found.key.scopes == SCOPE_DOCUMENTS_WRITE);
    cr_expect_str_eq(found.key.last4, "wxyz");
    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_NOT_FOUND);
    cr_assert_eq(find(&account, USER_CODE, &visit), STORE_NOT_FOUND);
}

Test(device_store, a_denial)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct begin_answer begun;
    struct poll_answer polled;
    struct visit_answer visit;
    struct key_record key;

    cr_assert_eq(begin(0, &begun), STORE_OK);
    cr_assert_eq(decide(&user, false, &visit), STORE_OK);
    cr_expect_eq(visit.enrolment.status, DEVICE_IS_DENIED);
    expect_newest_event(&account, "device.denied", 2);
    cr_assert_eq(decide(&user, true, &visit), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_REFUSED);
    cr_expect_eq(polled.poll.refusal, DEVICE_DENIED);
}

Test(device_store, waits_are_told)
{
    struct id account = some_account();
    struct begin_answer begun;
    struct poll_answer polled;
    struct visit_answer visit;
    struct key_record key;

    for (int i = 0; i < 30; i++)
        cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_NOT_FOUND);
    cr_assert_eq(poll_device(&key, TEXT("agent"), &polled), STORE_REFUSED);
    cr_expect(polled.poll.refusal == DEVICE_THROTTLED && polled.poll.retry_after_s == 30);
    for (uint8_t n = 0; n < 30; n++)
        cr_assert_eq(begin(n, &begun), STORE_OK);
    cr_assert_eq(begin(30, &begun), STORE_REFUSED);
    cr_expect_eq(begun.retry_after_s, 30);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(find(&account, CODE, &visit), STORE_NOT_FOUND);
    cr_assert_eq(find(&account, CODE, &visit), STORE_REFUSED);
    cr_expect_eq(visit.retry_after_s, 30);
}

/* An impossible record is neither a refusal nor a device. */
Test(device_store, records_that_cannot_be)
{
    static const char *const WRONG[][2] = {{"status", "bogus"}, {"scopes", "0"}, {"scopes", "x"}, {"created", "0"}};
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct begin_answer begun;
    struct visit_answer visit;
    char name[128] = "t:device:01";

    memset(name + strlen(name), '0', 62);
    cr_assert_eq(begin(0, &begun), STORE_OK);
    for (size_t i = 0; i < sizeof WRONG / sizeof *WRONG; i++) {
        char kept[64];

        redis_server_ask(&fixture.server, kept, sizeof kept, "HGET", name, WRONG[i][0], NULL);
        redis_server_tell(&fixture.server, "HSET", name, WRONG[i][0], WRONG[i][1], NULL);
        cr_expect_eq(find(&account, USER_CODE, &visit), STORE_UNAVAILABLE, "%s", WRONG[i][1]);
        redis_server_tell(&fixture.server, "HSET", name, WRONG[i][0], kept, NULL);
    }
    redis_server_tell(&fixture.server, "HSET", name, "ip", "", NULL);
    cr_expect_eq(find(&account, USER_CODE, &visit), STORE_OK);
    redis_server_tell(&fixture.server, "HSET", name, "scopes", "x", NULL);
    cr_expect_eq(decide(&user, true, &visit), STORE_UNAVAILABLE, "nothing was done");
    cr_expect_eq(decide(&user, false, &visit), STORE_UNKNOWN, "it was done");
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
    struct begin_answer begun;
    struct poll_answer polled;
    struct key_record key;

    cr_assert_eq(begin(0, &begun), STORE_OK);
    set(name, "status", "approved");
    set(name, "account", account.text);
    set(name, "user", user.id.text);
    enum store_result result = poll_device(&key, TEXT("agent"), &polled);
    expect_no_key(result, &polled, &key);
}

Test(device_store, an_approval_is_of_one_device_and_what_it_asked_for)
{
    static const char *const ALTERED[][2] = {
        {"name", "Theatre"}, {"scopes", "1"}, {"user", "usr_01jd0000000000000000000003"}};
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    const char *name = name_of_enrolment("device", 1, 0);
    struct begin_answer begun;
    struct poll_answer polled;
    struct visit_answer visit;
    struct key_record key;

    cr_assert_eq(begin(0, &begun), STORE_OK);
    cr_assert_eq(decide(&user, true, &visit), STORE_OK);
    for (size_t i = 0; i < sizeof ALTERED / sizeof *ALTERED; i++) {
        char kept[64];

        metric_set(METRIC_RECORDS_ALTERED, 0);
        redis_server_ask(&fixture.server, kept, sizeof kept, "HGET", name, ALTERED[i][0], NULL);
        set(name, ALTERED[i][0], ALTERED[i][1]);
        enum store_result result = poll_device(&key, TEXT("agent"), &polled);
        expect_no_key(result, &polled, &key);
        set(name, ALTERED[i][0], kept);
    }
    cr_expect_eq(poll_device(&key, TEXT("agent"), &polled), STORE_OK);
}

/* Otherwise a person would read a code from one device and let in another. */
Test(device_store, a_user_code_is_of_one_device)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct begin_answer begun;
    struct visit_answer visit;
    char other[65];

    cr_assert_eq(begin(0, &begun), STORE_OK);
    cr_assert_eq(begin(1, &begun), STORE_OK);
    snprintf(other, sizeof other, "0101%060d", 0);
    redis_server_tell(&fixture.server, "SET", name_of_enrolment("user_code", 2, 0), other, NULL);
    cr_expect_eq(find(&account, USER_CODE, &visit), STORE_NOT_FOUND);
    cr_expect_eq(decide(&user, true, &visit), STORE_NOT_FOUND);
    cr_expect_eq(metric_values[METRIC_RECORDS_ALTERED], 2);
}
