#include "base/clock.h"
#include "records/seal_store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

TestSuite(account_store, .init = fixture_start, .fini = fixture_stop);

struct user_answer {
    struct answer answer;
    struct user_record user;
};

static void user_answer_done(void *arg, enum store_result result, const struct user_record *user)
{
    struct user_answer *answer = arg;

    cr_assert_eq(user != NULL, result == STORE_OK);
    if (user)
        answer->user = *user;
    answer_done(&answer->answer, result);
}

static enum store_result find_user(const char *email, struct user_answer *answer)
{
    *answer = (struct user_answer){0};
    account_store_find_user(fixture.partitions, text_of(email), user_answer_done, answer);
    return answer_wait(&answer->answer);
}

static enum store_result reset_user(const struct id *user, const char *password_hash, const uint8_t *totp_sealed)
{
    struct answer answer = {0};

    account_store_reset_user(fixture.store, user, password_hash, false, totp_sealed, &SOMEBODY, answer_done, &answer);
    return answer_wait(&answer);
}

static void expect_same(const struct user_record *got, const struct user_record *want)
{
    cr_expect(id_equal(&got->id, &want->id) && id_equal(&got->account, &want->account));
    cr_expect_str_eq(got->email, want->email);
    cr_expect_str_eq(got->account_name, "North Clinic");
    cr_expect_eq(got->created_ms, want->created_ms);
    cr_expect_eq(got->role, want->role);
    cr_expect_eq(got->disabled_ms, want->disabled_ms);
}

Test(account_store, users_are_found_by_email)
{
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct user_answer answer;

    cr_assert_eq(find_user("ana@north.test", &answer), STORE_OK);
    expect_same(&answer.user, &user);
    cr_expect_str_eq(answer.user.password_hash, user.password_hash);
    cr_expect_arr_eq(answer.user.totp_sealed, user.totp_sealed, TOTP_SEALED_BYTES);
    cr_expect_eq(find_user("bob@north.test", &answer), STORE_NOT_FOUND);
    expect_newest_event(&account, "user.created", 1);
}

Test(account_store, a_user_needs_an_account_and_an_email_of_his_own)
{
    struct id account = some_account(), nowhere = id_mint(ID_ACCOUNT, 1);
    struct user_record user = some_user(&account, "ana@north.test");
    struct answer taken = {0}, homeless = {0}, twice = {0};

    user.id = id_mint(ID_USER, 1);
    account_store_add_user(fixture.partitions, &user, &SOMEBODY, answer_done, &taken);
    cr_expect_eq(answer_wait(&taken), STORE_CONFLICT);
    user.account = nowhere;
    snprintf(user.email, sizeof user.email, "bob@north.test");
    account_store_add_user(fixture.partitions, &user, &SOMEBODY, answer_done, &homeless);
    cr_expect_eq(answer_wait(&homeless), STORE_REFUSED);
    account_store_create(fixture.store, &account, TEXT("Again"), answer_done, &twice);
    cr_expect_eq(answer_wait(&twice), STORE_CONFLICT);
}

Test(account_store, reset_replaces_what_is_given)
{
    struct id account = some_account(), nobody = id_mint(ID_USER, 1);
    struct user_record user = some_user(&account, "ana@north.test");
    uint8_t sealed[TOTP_SEALED_BYTES] = {9, 0, 8};
    struct user_answer answer;

    cr_assert_eq(reset_user(&user.id, "other hash", NULL), STORE_OK);
    cr_assert_eq(find_user(user.email, &answer), STORE_OK);
    cr_expect_str_eq(answer.user.password_hash, "other hash");
    cr_expect_arr_eq(answer.user.totp_sealed, user.totp_sealed, TOTP_SEALED_BYTES);
    expect_newest_event(&account, "user.password_reset", 2);

    cr_assert_eq(reset_user(&user.id, NULL, sealed), STORE_OK);
    cr_assert_eq(find_user(user.email, &answer), STORE_OK);
    cr_expect_str_eq(answer.user.password_hash, "other hash");
    cr_expect_arr_eq(answer.user.totp_sealed, sealed, TOTP_SEALED_BYTES);
    expect_newest_event(&account, "user.totp_reset", 3);

    cr_expect_eq(reset_user(&nobody, "hash", sealed), STORE_NOT_FOUND);
}

Test(account_store, users_that_cannot_be_are_never_answered)
{
    static const struct {
        const char *field, *value;
    } cases[] = {
        {"account", "acct_1"}, {"email", NULL}, {"password", NULL}, {"totp", "short"},
        {"created", "x"},      {"created", ""}, {"role", "admin"},  {"role", ""},
    };
    struct id account = some_account();
    struct user_record user = some_user(&account, "ana@north.test");
    struct user_answer answer;
    char name[64];

    snprintf(name, sizeof name, "t:user:%s", user.id.text);
    redis_server_tell(&fixture.server, "COPY", name, "sound", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].value)
            redis_server_tell(&fixture.server, "HSET", name, cases[i].field, cases[i].value, NULL);
        else
            redis_server_tell(&fixture.server, "HDEL", name, cases[i].field, NULL);
        cr_expect_eq(find_user(user.email, &answer), STORE_UNAVAILABLE, "case %zu", i);
        redis_server_tell(&fixture.server, "COPY", "sound", name, "REPLACE", NULL);
    }
    cr_expect_eq(find_user(user.email, &answer), STORE_OK);
}

/* Whoever writes to Redis promotes nobody, and enables nobody. */
Test(account_store, a_role_is_what_a_node_sealed)
{
    struct id account = some_account();
    struct user_record user = some_person(&account, "ana@north.test", ROLE_RESPONDER);
    struct user_answer answer;
    char name[64];

    snprintf(name, sizeof name, "t:user:%s", user.id.text);
    cr_assert_eq(find_user(user.email, &answer), STORE_OK);
    expect_same(&answer.user, &user);
    for (enum role role = ROLE_AUDITOR; role < ROLE_COUNT; role++) {
        redis_server_tell(&fixture.server, "HSET", name, "role", role_text(role).ptr, NULL);
        cr_expect_eq(find_user(user.email, &answer), role == ROLE_RESPONDER ? STORE_OK : STORE_NOT_FOUND, "role %d",
                     (int)role);
    }
    redis_server_tell(&fixture.server, "HDEL", name, "role", NULL);
    cr_expect_eq(find_user(user.email, &answer), STORE_NOT_FOUND, "an owner, by leaving out the role");
    redis_server_tell(&fixture.server, "HSET", name, "role", "responder", "disabled", "1", NULL);
    cr_expect_eq(find_user(user.email, &answer), STORE_NOT_FOUND, "disabled");
    redis_server_tell(&fixture.server, "HSET", name, "disabled", "0", NULL);
    cr_expect_eq(find_user(user.email, &answer), STORE_OK);
}

/* A node without roles verifies these four parts, and takes each user that it finds sealed for one who may do all. */
Test(account_store, versions_without_roles_know_owners_alone)
{
    static const enum role ROLES[] = {ROLE_OWNER, ROLE_DEVELOPER, ROLE_OWNER};
    static const int64_t DISABLED[] = {0, 0, 5};
    struct id account = some_account();

    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++) {
        struct user_record user = {.id = id_mint(ID_USER, clock_wall_ms()), .account = account, .created_ms = 1234};
        const struct text parts[] = {id_text(&user.id), id_text(&account), TEXT("a@b.test"), TEXT("1234")};
        const struct record_parts known = {RECORD_USER, 4, parts};

        snprintf(user.email, sizeof user.email, "a@b.test");
        user.role = ROLES[i];
        user.disabled_ms = DISABLED[i];
        user_record_seal(fixture.keyring, &user);
        cr_expect_eq(record_mac_verify(fixture.keyring, &known, text_of(user.mac.text), NULL),
                     i == 0 ? RECORD_SEALED : RECORD_ALTERED, "case %zu", i);
        cr_expect_eq(user_record_verify(fixture.keyring, &user, NULL), RECORD_SEALED);
    }
}

struct rows {
    struct answer answer;
    size_t count;
    struct user_record users[4];
    struct account_row accounts[4];
};

static void rows_of_users(void *arg, enum store_result result, const struct user_record *users, size_t count)
{
    struct rows *rows = arg;

    cr_assert_leq(count, 4);
    memcpy(rows->users, users, count * sizeof *users);
    rows->count = count;
    answer_done(&rows->answer, result);
}

static void rows_of_accounts(void *arg, enum store_result result, const struct account_row *accounts, size_t count)
{
    struct rows *rows = arg;

    cr_assert_leq(count, 4);
    memcpy(rows->accounts, accounts, count * sizeof *accounts);
    rows->count = count;
    answer_done(&rows->answer, result);
}

static size_t list_users(const struct id *account, const struct id *behind, struct rows *rows)
{
    *rows = (struct rows){0};
    seal_store_list_users(fixture.store, account, behind, rows_of_users, rows);
    cr_assert_eq(answer_wait(&rows->answer), STORE_OK);
    return rows->count;
}

Test(account_store, lists)
{
    const struct id from_the_first = {0};
    struct id north = some_account(), south = some_account();
    struct user_record ana = some_user(&north, "ana@north.test");
    struct rows rows = {0}, rest;

    some_user(&south, "bob@south.test");
    some_user(&south, "eve@south.test");
    cr_expect_eq(list_users(&south, &from_the_first, &rows), 2);
    cr_expect_eq(list_users(&south, &rows.users[0].id, &rest), 1);
    cr_expect_str_eq(rest.users[0].email, rows.users[1].email);
    cr_expect_eq(list_users(&north, &from_the_first, &rows), 1);
    expect_same(&rows.users[0], &ana);
    cr_expect_str_eq(rows.users[0].password_hash, ana.password_hash);

    rows = (struct rows){0};
    account_store_list(fixture.store, rows_of_accounts, &rows);
    cr_assert_eq(answer_wait(&rows.answer), STORE_OK);
    cr_assert_eq(rows.count, 2);
    cr_expect_str_eq(rows.accounts[0].name, "North Clinic");
}
