/* Records as clients see them, byte for byte. */
#include "api/exchange_internal.h"
#include "api/key_json_internal.h"
#include "api/views_internal.h"
#include "leak_guard.h"
#include <criterion/criterion.h>

TestSuite(views, .fini = leak_guard);

#define KEY_ID "key_01jd0000000000000000000001"
#define ACCOUNT_ID "acct_01jd0000000000000000000001"
#define USER_ID "usr_01jd0000000000000000000001"

enum { STORAGE_BYTES = 8192 };

static struct id make_id(enum id_kind kind, const char *text)
{
    struct id id;

    cr_assert(id_parse(kind, text_of(text), &id), "%s", text);
    return id;
}

static struct key_record make_key(void)
{
    struct key_record key = {
        .id = make_id(ID_KEY, KEY_ID),
        .account = make_id(ID_ACCOUNT, ACCOUNT_ID),
        .kind = KEY_API,
        .mode = MODE_TEST,
        .scopes = SCOPE_PATIENTS_READ | SCOPE_EXCHANGES_READ,
        .created_ms = 1000,
        .last4 = "ab1Z",
    };

    cr_assert(key_set_name(&key, TEXT("Ward \"3\" \xc3\xa9")));
    return key;
}

struct answer {
    char storage[STORAGE_BYTES];
    struct buf out;
    struct json_writer w;
};

static struct json_writer *answer_begin(struct answer *answer)
{
    buf_init_fixed(&answer->out, answer->storage, sizeof answer->storage);
    answer->w = (struct json_writer){.out = &answer->out};
    return &answer->w;
}

static void expect(const struct answer *answer, const char *json)
{
    cr_assert_not(answer->out.failed);
    cr_assert(text_equal(buf_text(&answer->out), text_of(json)), "%.*s", TEXT_ARG(buf_text(&answer->out)));
}

#define KEY_MEMBERS                                                                                    \
    "\"id\":\"" KEY_ID "\",\"name\":\"Ward \\\"3\\\" \xc3\xa9\",\"last4\":\"ab1Z\",\"mode\":\"test\"," \
    "\"scopes\":[\"exchanges:read\",\"patients:read\"],\"created_at\":\"1970-01-01T00:00:01.000Z\","

Test(views, key_never_used)
{
    struct key_record key = make_key();
    struct answer answer;

    key_json_put(answer_begin(&answer), &key, false);
    expect(&answer, "{" KEY_MEMBERS "\"last_used_at\":null,\"revoked_at\":null}");
}

Test(views, key_used_and_revoked)
{
    struct key_record key = make_key();
    struct answer answer;

    key.last_used_ms = 2000;
    key.revoked_ms = 3000;
    key_json_put(answer_begin(&answer), &key, false);
    expect(&answer, "{" KEY_MEMBERS "\"last_used_at\":\"1970-01-01T00:00:02.000Z\","
                    "\"revoked_at\":\"1970-01-01T00:00:03.000Z\"}");
}

/* Keys do not see who made a key, and devices are approved by people. */
Test(views, people_see_who_made_a_key)
{
    struct key_record key = make_key();
    struct answer answer;

    const struct id user = make_id(ID_USER, USER_ID);
    key_made_by_person(&key, &user);
    key_json_put(answer_begin(&answer), &key, true);
    expect(&answer, "{" KEY_MEMBERS "\"created_by\":\"" USER_ID "\",\"origin\":\"" USER_ID
                    "\",\"last_used_at\":null,\"revoked_at\":null}");
    key_json_put(answer_begin(&answer), &key, false);
    expect(&answer, "{" KEY_MEMBERS "\"last_used_at\":null,\"revoked_at\":null}");
    key.by = key.origin = (struct id){0};
    key_json_put(answer_begin(&answer), &key, true);
    expect(&answer, "{" KEY_MEMBERS "\"created_by\":null,\"origin\":null,\"last_used_at\":null,\"revoked_at\":null}");
}

Test(views, secret_is_in_the_answer_of_creation_alone)
{
    struct key_record key = make_key();
    struct answer answer;

    key_json_put_created(answer_begin(&answer), &key, false, TEXT("svc_sk_test_x"));
    expect(&answer, "{" KEY_MEMBERS "\"last_used_at\":null,\"revoked_at\":null,\"secret\":\"svc_sk_test_x\"}");
}

Test(views, list)
{
    struct key_record key = make_key();
    struct answer answer;

    key_json_put_list(answer_begin(&answer), NULL, 0, false, false);
    expect(&answer, "{\"data\":[],\"has_more\":false}");
    key_json_put_list(answer_begin(&answer), &key, 1, false, true);
    expect(&answer, "{\"data\":[{" KEY_MEMBERS "\"last_used_at\":null,\"revoked_at\":null}],\"has_more\":true}");
}

Test(views, whoami)
{
    const struct key_record record = make_key();
    const struct key_principal key = key_principal_of(&record);
    struct answer answer;

    key_json_put_principal(answer_begin(&answer), &key);
    expect(&answer, "{\"id\":\"" KEY_ID "\",\"kind\":\"api_key\",\"account_id\":\"" ACCOUNT_ID
                    "\",\"name\":\"Ward \\\"3\\\" \xc3\xa9\",\"mode\":\"test\","
                    "\"scopes\":[\"exchanges:read\",\"patients:read\"]}");
}

Test(views, longest_name_fits_a_small_answer)
{
    struct key_record key = make_key();
    struct answer answer;
    char name[KEY_NAME_MAX_BYTES];

    for (size_t i = 0; i < sizeof name; i += 4)
        memcpy(name + i, "\xf0\x9f\x94\x91", 4);
    cr_assert(key_set_name(&key, (struct text){name, sizeof name}));
    key.scopes = SCOPE_ALL;
    key.last_used_ms = key.revoked_ms = 1;
    key_json_put_created(answer_begin(&answer), &key, false,
                         TEXT("svc_sk_test_01234567890123456789012345678901012345"));
    cr_assert(!answer.out.failed && answer.out.len < 4096);
}

static struct session_record make_session(void)
{
    struct session_record session = {
        .sid = "sid",
        .user = {.id = make_id(ID_USER, USER_ID),
                 .account = make_id(ID_ACCOUNT, ACCOUNT_ID),
                 .email = "a@b.test",
                 .role = ROLE_RESPONDER,
                 .account_name = "North",
                 .password_hash = "scrypt$hash"},
        .expires_ms = 5000,
    };

    return session;
}

#define LOGIN_MEMBERS                                                                                             \
    "\"user\":{\"id\":\"" USER_ID "\",\"email\":\"a@b.test\",\"role\":\"responder\",\"account_id\":\"" ACCOUNT_ID \
    "\",\"account_name\":\"North\"},\"csrf_token\":\"csrf\",\"expires_at\":\"1970-01-01T00:00:05.000Z\","         \
    "\"idle_expires_at\":\"1970-01-01T00:00:03.000Z\",\"password_change_required\":false,"                        \
    "\"notices\":{\"last_sign_in_at\":null,\"last_sign_in_ip\":null,\"failed_sign_ins\":0,\"new_browsers\":[],"   \
    "\"recovery_used_at\":null,\"attacked_at\":null}"

Test(views, login_and_session)
{
    static const struct session_notices NOTHING = {0};
    struct session_record session = make_session();
    const struct session_answer about = {&session, &NOTHING, TEXT("csrf"), 3000};
    struct answer answer;

    view_login(answer_begin(&answer), &about);
    expect(&answer, "{" LOGIN_MEMBERS ",\"attacked_at\":null}");
    session.attacked_ms = 1000;
    view_login(answer_begin(&answer), &about);
    expect(&answer, "{" LOGIN_MEMBERS ",\"attacked_at\":\"1970-01-01T00:00:01.000Z\"}");
    view_session(answer_begin(&answer), &about);
    expect(&answer, "{" LOGIN_MEMBERS ",\"step_up_expires_at\":null}");
    session.step_up_expires_ms = 4000;
    view_session(answer_begin(&answer), &about);
    expect(&answer, "{" LOGIN_MEMBERS ",\"step_up_expires_at\":\"1970-01-01T00:00:04.000Z\"}");
    session.expires_ms = 2000;
    view_login(answer_begin(&answer), &about);
    cr_expect(strstr(answer.out.ptr, "\"idle_expires_at\":\"1970-01-01T00:00:02.000Z\""), "never after its end");
    view_step_up(answer_begin(&answer), &session);
    expect(&answer, "{\"step_up_expires_at\":\"1970-01-01T00:00:04.000Z\"}");
}

Test(views, notices)
{
    struct session_record session = make_session();
    const struct session_notices notices = {
        .last_sign_in_ms = 1000,
        .last_sign_in_ip = "192.0.2.1",
        .failed_sign_ins = 3,
        .attacked_ms = 2000,
        .recovered_ms = 3000,
        .browser_count = 1,
        .browsers = {{.at_ms = 4000, .ip = "192.0.2.2", .name = "Firefox on Windows"}},
    };
    struct answer answer;

    session.password_expired = true;
    view_login(answer_begin(&answer), &(struct session_answer){&session, &notices, TEXT("csrf"), 3000});
    cr_expect(
        strstr(answer.out.ptr,
               "\"password_change_required\":true,\"notices\":{\"last_sign_in_at\":\"1970-01-01T00:00:01.000Z\","
               "\"last_sign_in_ip\":\"192.0.2.1\",\"failed_sign_ins\":3,\"new_browsers\":[{\"browser\":"
               "\"Firefox on Windows\",\"ip\":\"192.0.2.2\",\"signed_in_at\":\"1970-01-01T00:00:04.000Z\"}],"
               "\"recovery_used_at\":\"1970-01-01T00:00:03.000Z\",\"attacked_at\":\"1970-01-01T00:00:02.000Z\"}"));
}

Test(views, sessions)
{
    static const struct session_row ROWS[] = {
        {.sid = "here", .created_ms = 1000, .seen_ms = 2000, .ip = "192.0.2.1", .browser = "Firefox on Linux"},
        {.sid = "there", .created_ms = 3000, .seen_ms = 4000},
    };
    struct answer answer;

    view_sessions(answer_begin(&answer), ROWS, 2, "here");
    expect(&answer,
           "{\"data\":[{\"id\":\"sess_here\",\"created_at\":\"1970-01-01T00:00:01.000Z\",\"last_seen_at\":"
           "\"1970-01-01T00:00:02.000Z\",\"ip\":\"192.0.2.1\",\"browser\":\"Firefox on Linux\",\"current\":true},"
           "{\"id\":\"sess_there\",\"created_at\":\"1970-01-01T00:00:03.000Z\",\"last_seen_at\":"
           "\"1970-01-01T00:00:04.000Z\",\"ip\":null,\"browser\":\"Unknown browser\",\"current\":false}],"
           "\"has_more\":false}");
}

Test(views, events)
{
    struct audit_event event = {
        .id = make_id(ID_EVENT, "evt_01jd0000000000000000000001"),
        .type = TEXT("login.failed"),
        .created_ms = 1000,
        .target = TEXT(USER_ID),
        .target_name = TEXT("a@b.test"),
        .target_kind = TEXT("user"),
        .ip = TEXT("192.0.2.1"),
    };
    struct answer answer;

    view_events(answer_begin(&answer), &(struct audit_page){.events = &event, .count = 1});
    expect(&answer,
           "{\"data\":[{\"id\":\"evt_01jd0000000000000000000001\",\"type\":\"login.failed\","
           "\"created_at\":\"1970-01-01T00:00:01.000Z\",\"actor\":null,\"actor_kind\":null,\"actor_name\":null,"
           "\"target\":\"" USER_ID
           "\",\"target_name\":\"a@b.test\",\"target_kind\":\"user\",\"ip\":\"192.0.2.1\",\"request_id\":null}],\"has_"
           "more\":false,\"next_starting_after\":null}");
    event.count = 3;
    event.data[0] = (struct audit_datum){TEXT("role"), TEXT("auditor")};
    event.data[1] = (struct audit_datum){TEXT("a\"b"), TEXT("\n")};
    event.data_count = 2;
    view_events(answer_begin(&answer), &(struct audit_page){.events = &event, .count = 1});
    cr_expect(strstr(answer.out.ptr, "\"count\":3,\"data\":{\"role\":\"auditor\",\"a\\\"b\":\"\\n\"}}],"));
}

Test(views, actors_are_of_a_kind)
{
    static const char *const CASES[][2] = {
        {USER_ID, "\"user\""},
        {KEY_ID, "\"api_key\""},
        {"dev_01jd0000000000000000000001", "\"device_key\""},
        {"operator", "\"operator\""},
        {"system", "\"system\""},
        {"acct_01jd0000000000000000000001", "null"},
        {"", "null"},
    };

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct audit_event event = {.actor = text_of(CASES[i][0])};
        struct answer answer;
        char member[64];

        snprintf(member, sizeof member, "\"actor_kind\":%s,", CASES[i][1]);
        view_event(answer_begin(&answer), NULL, &event);
        buf_append_char(&answer.out, '\0');
        cr_expect(strstr(answer.out.ptr, member), "%s: %s", CASES[i][0], answer.out.ptr);
    }
}

Test(views, a_page_of_events_tells_where_the_next_begins)
{
    struct audit_page page = {.has_more = true, .next = make_id(ID_EVENT, "evt_01jd0000000000000000000001")};
    struct answer answer;

    view_events(answer_begin(&answer), &page);
    expect(&answer, "{\"data\":[],\"has_more\":true,\"next_starting_after\":\"evt_01jd0000000000000000000001\"}");
}

Test(views, test_usage_is_never_billable)
{
    struct usage_day day = {
        .date = "2026-01-31", .test_requests = 7, .live_requests = 3, .test_refused = 5, .live_refused = 2};
    const int64_t by_day[] = {4, 6};
    struct usage_key key = {.key = make_id(ID_KEY, KEY_ID), .requests = 10, .refused = {4, 2, 1}};
    struct answer answer;

    view_usage(answer_begin(&answer), &day, 1, &key, 1);
    expect(&answer,
           "{\"data\":[{\"date\":\"2026-01-31\",\"mode\":\"test\",\"requests\":7,\"billable\":0,\"refused\":5},"
           "{\"date\":\"2026-01-31\",\"mode\":\"live\",\"requests\":3,\"billable\":3,\"refused\":2}],"
           "\"keys\":[{\"id\":\"" KEY_ID "\",\"name\":null,\"mode\":null,\"requests\":10,"
           "\"refused\":7,\"refused_reasons\":{\"revoked\":4,\"insufficient_scope\":2,\"mode_not_permitted\":1,"
           "\"account_suspended\":0}}]}");
    key = (struct usage_key){.key = key.key, .requests = 10, .name = TEXT("n"), .mode = TEXT("live"), .by_day = by_day};
    view_usage(answer_begin(&answer), (struct usage_day[2]){day, day}, 2, &key, 1);
    cr_expect(strstr(answer.out.ptr, "\"name\":\"n\",\"mode\":\"live\",\"requests\":10,\"refused\":0,"));
    cr_expect(strstr(answer.out.ptr, "},\"by_day\":[4,6]}]}"));
}

/* The longest possible name, none of whose characters is escaped. */
static struct text longest_name(void)
{
    static char name[KEY_NAME_MAX_BYTES];

    memset(name, 'n', sizeof name);
    return (struct text){name, sizeof name};
}

Test(views, the_longest_list_of_events_fits_an_answer)
{
    const struct audit_event event = {.id = make_id(ID_EVENT, "evt_01jd0000000000000000000001"),
                                      .type = TEXT("device_key.created"),
                                      .created_ms = 1,
                                      .actor = TEXT(USER_ID),
                                      .target = TEXT(KEY_ID),
                                      .ip = TEXT("2001:db8:1111:2222:3333:4444:5555:6666"),
                                      .request_id = TEXT("req_01jd0000000000000000000001"),
                                      .actor_name = longest_name(),
                                      .target_name = longest_name(),
                                      .target_kind = TEXT("device_key")};
    struct audit_event events[LIST_LIMIT_MAX];
    struct buf out CLEANUP(buf_finish);

    for (size_t i = 0; i < LIST_LIMIT_MAX; i++)
        events[i] = event;
    buf_init(&out, ANSWER_MAX_BYTES);
    view_events(&(struct json_writer){.out = &out},
                &(struct audit_page){.events = events, .count = LIST_LIMIT_MAX, .has_more = true, .next = event.id});
    cr_assert_not(out.failed);
    cr_assert_lt(out.len, 210 * 1024, "%zu", out.len);
}

/* Each with a thousand million uses a day. */
Test(views, the_longest_usage_fits_an_answer)
{
    enum { DAYS = USAGE_CELLS_MAX / LIST_LIMIT_MAX };
    struct usage_day days[DAYS];
    struct usage_key keys[LIST_LIMIT_MAX];
    int64_t by_day[DAYS];
    struct buf out CLEANUP(buf_finish);

    for (size_t i = 0; i < DAYS; i++) {
        by_day[i] = 1000000000;
        days[i] = (struct usage_day){.date = "2026-01-31",
                                     .test_requests = by_day[i],
                                     .live_requests = by_day[i],
                                     .test_refused = by_day[i],
                                     .live_refused = by_day[i]};
    }
    for (size_t i = 0; i < LIST_LIMIT_MAX; i++)
        keys[i] = (struct usage_key){.key = make_id(ID_KEY, KEY_ID),
                                     .name = longest_name(),
                                     .mode = TEXT("live"),
                                     .requests = INT64_MAX,
                                     .refused = {INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4},
                                     .by_day = by_day};
    buf_init(&out, ANSWER_MAX_BYTES);
    view_usage(&(struct json_writer){.out = &out}, days, DAYS, keys, LIST_LIMIT_MAX);
    cr_assert_not(out.failed);
    cr_assert_lt(out.len, 224 * 1024, "%zu", out.len);
}

/* Longest when each byte of the email is escaped. */
Test(views, a_new_authenticator_fits_whatever_the_email)
{
    static const struct totp_secret SECRET = {{1}};
    char email[EMAIL_MAX_BYTES], storage[12 * 1024];
    struct buf out;

    memset(email, '+', sizeof email);
    buf_init_fixed(&out, storage, sizeof storage);
    view_put_totp(&(struct json_writer){.out = &out}, &SECRET, (struct text){email, sizeof email});
    buf_append_char(&out, '\0');
    cr_assert_not(out.failed);
    cr_assert(strstr(storage, "&issuer=Chatelaine\",\"totp_qr\":[\"1111111"));
}
