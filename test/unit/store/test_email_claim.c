/* Emails that belong to one user each, in a store of one partition and in one of four. */
#include "records/people/email_claim.h"
#include "base/clock.h"
#include "core/limits.h"
#include "deadline.h"
#include "records/account_state.h"
#include "records/link_store.h"
#include "records/people_store.h"
#include "store_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 400, EMAILS = 12 };

/* Two nodes at one store: fixture.partitions and another. */
static struct scene {
    unsigned count;
    struct partitions *other;
    struct id north, south; /* in different partitions, if there are several */
    unsigned emails;        /* made so far */
} scene;

TestSuite(email_claim, .init = fixture_start, .fini = fixture_stop, .timeout = TEST_WITHIN_S);

static void begin(unsigned count)
{
    fixture_close_store();
    redis_server_tell(&fixture.server, "FLUSHALL", NULL);
    fixture.is_closed = false;
    fixture.partitions = fixture_open_partitions("t:", count);
    fixture.store = partitions_at(fixture.partitions, 0);
    scene = (struct scene){.count = count, .other = fixture_open_partitions("t:", count), .north = some_account()};
    do
        scene.south = some_account();
    while (count > 1 && (bucket_of_account(&scene.north) ^ bucket_of_account(&scene.south)) % count == 0);
}

static void in_each_store(void (*scenario)(void))
{
    static const unsigned COUNTS[] = {1, 4};

    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        begin(COUNTS[i]);
        scenario();
        fixture_close_partitions(scene.other);
    }
}

/* A new email, with the account or, where that is possible, apart from it. */
static struct user_record new_user(const struct id *account, bool is_apart)
{
    struct user_record user = {
        .id = id_mint(ID_USER, clock_wall_ms()), .account = *account, .role = ROLE_OWNER, .created_ms = 1234};
    unsigned distance;

    do {
        snprintf(user.email, sizeof user.email, "ana%u@north.test", scene.emails++);
        distance = (bucket_of_text(text_of(user.email)) ^ bucket_of_account(account)) % scene.count;
    } while (scene.count > 1 && is_apart != (distance > 0));
    snprintf(user.password_hash, sizeof user.password_hash, "some hash");
    return user;
}

static struct user_record rival_of(const struct user_record *user, const struct id *account)
{
    struct user_record rival = *user;

    rival.id = id_mint(ID_USER, clock_wall_ms());
    rival.account = *account;
    return rival;
}

static enum store_result add(struct partitions *partitions, const struct user_record *user)
{
    struct answer answer = {0};

    account_store_add_user(partitions, user, &SOMEBODY, answer_done, &answer);
    return answer_wait(&answer);
}

static enum store_result claim(const struct user_record *user)
{
    const struct email_owner owner = {user->id, user->account};
    struct answer answer = {0};

    email_claim(fixture.partitions, &owner, text_of(user->email), answer_done, &answer);
    return answer_wait(&answer);
}

static void release(const struct user_record *user)
{
    struct answer answer = {0};

    email_release(fixture.partitions, &user->id, text_of(user->email), answer_done, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
}

/* What is in Redis */

static const char *name_in(unsigned bucket, const char *kind, const char *rest)
{
    static char name[NAME_BYTES];

    if (scene.count > 1)
        snprintf(name, sizeof name, "t:{%u}:%s:%s", bucket % scene.count, kind, rest);
    else
        snprintf(name, sizeof name, "t:%s:%s", kind, rest);
    return name;
}

static const char *claim_name(const char *email)
{
    return name_in(bucket_of_text(text_of(email)), "email", email);
}

static bool exists(const char *name)
{
    char reply[16];

    redis_server_ask(&fixture.server, reply, sizeof reply, "EXISTS", name, NULL);
    return strcmp(reply, "1") == 0;
}

static bool has_record(const struct user_record *user)
{
    return exists(name_in(bucket_of_account(&user->account), "user", user->id.text));
}

static bool is_void(const struct user_record *user)
{
    return exists(name_in(bucket_of_account(&user->account), "void", user->id.text));
}

static void set_claim(const char *email, const char *value)
{
    redis_server_tell(&fixture.server, "SET", claim_name(email), value, NULL);
}

static void expect_claim(const char *email, const char *value)
{
    char reply[NAME_BYTES];

    redis_server_ask(&fixture.server, reply, sizeof reply, "GET", claim_name(email), NULL);
    cr_expect_str_eq(reply, value);
}

struct user_answer {
    struct answer answer;
    struct user_record user;
};

static void user_came(void *arg, enum store_result result, const struct user_record *user)
{
    struct user_answer *answer = arg;

    cr_assert_eq(user != NULL, result == STORE_OK);
    if (user)
        answer->user = *user;
    answer_done(&answer->answer, result);
}

/* user: NULL: nobody. */
static void expect_user(const char *email, const struct user_record *user)
{
    struct user_answer answer = {0};

    account_store_find_user(fixture.partitions, text_of(email), user_came, &answer);
    cr_expect_eq(answer_wait(&answer.answer), user ? STORE_OK : STORE_NOT_FOUND);
    if (user)
        cr_expect(id_equal(&answer.user.id, &user->id) && id_equal(&answer.user.account, &user->account));
}

/* Creations */

static void claims_are_written(void)
{
    struct user_record user = new_user(&scene.north, true);
    char pair[2 * ID_TEXT_BYTES];

    cr_assert_eq(add(fixture.partitions, &user), STORE_OK);
    snprintf(pair, sizeof pair, "%s %s", user.id.text, user.account.text);
    expect_claim(user.email, scene.count > 1 ? pair : user.id.text);
    expect_user(user.email, &user);
}

/* Nodes of an earlier version read a store of one partition too. */
Test(email_claim, names_the_account_where_there_are_partitions)
{
    in_each_store(claims_are_written);
}

static void create_twice_at_once(void)
{
    for (unsigned i = 0; i < EMAILS; i++) {
        const struct user_record first = new_user(&scene.north, i % 2);
        const struct user_record users[] = {first, rival_of(&first, &scene.south)};
        struct partitions *const nodes[] = {fixture.partitions, scene.other};
        struct answer answers[2] = {0};
        unsigned winner;

        for (unsigned j = 0; j < 2; j++)
            account_store_add_user(nodes[j], &users[j], &SOMEBODY, answer_done, &answers[j]);
        cr_assert(test_loop_until_set(&fixture.loop, &answers[0].is_done, PATIENCE_MS));
        cr_assert(test_loop_until_set(&fixture.loop, &answers[1].is_done, PATIENCE_MS));
        winner = answers[0].result == STORE_OK ? 0 : 1;
        cr_expect_eq(answers[winner].result, STORE_OK);
        cr_expect_eq(answers[1 - winner].result, STORE_CONFLICT);
        expect_user(users[winner].email, &users[winner]);
        cr_expect(has_record(&users[winner]) && !has_record(&users[1 - winner]));
    }
}

Test(email_claim, of_two_at_once_one_wins)
{
    in_each_store(create_twice_at_once);
}

static void create_after_a_claim(void)
{
    struct user_record ended = new_user(&scene.north, true), next = rival_of(&ended, &scene.south);

    cr_assert_eq(claim(&ended), STORE_OK);
    expect_user(ended.email, NULL);
    cr_expect_eq(add(scene.other, &next), STORE_OK);
    expect_user(next.email, &next);
    cr_expect(is_void(&ended) && !is_void(&next));
    cr_expect_eq(add(fixture.partitions, &ended), STORE_CONFLICT);
    expect_user(next.email, &next);
}

Test(email_claim, without_a_user_hinders_nobody)
{
    in_each_store(create_after_a_claim);
}

static void come_back_void(void)
{
    struct user_record slow = new_user(&scene.north, true), next = rival_of(&slow, &scene.south);
    struct user_record last = rival_of(&slow, &scene.south);

    cr_assert_eq(claim(&slow), STORE_OK);
    cr_assert_eq(claim(&next), STORE_OK);
    cr_expect_eq(add(fixture.partitions, &slow), STORE_CONFLICT);
    cr_expect(!has_record(&slow) && !exists(claim_name(slow.email)));
    cr_expect_eq(add(fixture.partitions, &next), STORE_CONFLICT, "slow has voided it");
    cr_expect_eq(add(fixture.partitions, &last), STORE_OK);
    expect_user(last.email, &last);
}

Test(email_claim, of_a_void_user_creates_nobody)
{
    in_each_store(come_back_void);
}

static void create_again(void)
{
    struct user_record user = new_user(&scene.north, true), other = rival_of(&user, &scene.south);
    char name[NAME_BYTES], length[16];

    for (unsigned i = 0; i < 2; i++) {
        cr_expect_eq(add(fixture.partitions, &user), STORE_OK);
        cr_expect_eq(claim(&user), STORE_OK);
        cr_expect_eq(claim(&other), STORE_CONFLICT);
        release(&other);
        expect_user(user.email, &user);
    }
    snprintf(name, sizeof name, "%s:audit", name_in(bucket_of_account(&user.account), "acct", user.account.text));
    redis_server_ask(&fixture.server, length, sizeof length, "XLEN", name, NULL);
    cr_expect_str_eq(length, "1");
}

Test(email_claim, repeated_steps_change_nothing)
{
    in_each_store(create_again);
}

static void create_in_no_account(void)
{
    const struct id nowhere = id_mint(ID_ACCOUNT, 1);
    struct user_record user = new_user(&nowhere, true);

    cr_expect_eq(add(fixture.partitions, &user), STORE_REFUSED);
    cr_expect(!exists(claim_name(user.email)));
}

Test(email_claim, is_released_when_the_creation_is_refused)
{
    in_each_store(create_in_no_account);
}

static void read_both_forms(void)
{
    struct user_record user = new_user(&scene.north, false), other = rival_of(&user, &scene.south);
    char pair[2 * ID_TEXT_BYTES];

    cr_assert_eq(add(fixture.partitions, &user), STORE_OK);
    snprintf(pair, sizeof pair, "%s %s", user.id.text, user.account.text);
    for (unsigned i = 0; i < 2; i++) {
        set_claim(user.email, i == 0 ? user.id.text : pair);
        expect_user(user.email, &user);
        cr_expect_eq(add(fixture.partitions, &other), STORE_CONFLICT);
        cr_expect(!is_void(&user) && !has_record(&other));
    }
    set_claim(other.email, user.id.text);
    release(&user);
    cr_expect(!exists(claim_name(user.email)));
}

Test(email_claim, is_read_without_an_account_too)
{
    in_each_store(read_both_forms);
}

static void lead_elsewhere(void)
{
    struct user_record ana = new_user(&scene.north, true), eve = new_user(&scene.south, true);
    char pair[2 * ID_TEXT_BYTES];

    cr_assert_eq(add(fixture.partitions, &ana), STORE_OK);
    cr_assert_eq(add(fixture.partitions, &eve), STORE_OK);
    snprintf(pair, sizeof pair, "%s %s", eve.id.text, eve.account.text);
    set_claim(ana.email, pair);
    expect_user(ana.email, NULL);
}

/* Whoever writes to Redis gives nobody another's email. */
Test(email_claim, that_was_altered_leads_nowhere)
{
    in_each_store(lead_elsewhere);
}

/* Removals */

static void on_changed(void *arg, enum store_result result, UNUSED const struct person_changed *changed)
{
    answer_done(arg, result);
}

static enum store_result remove_user(const struct user_record *user)
{
    struct answer answer = {0};

    people_store_change(fixture.partitions, &user->account, &user->id, &(struct person_change){.kind = PERSON_REMOVE},
                        &SOMEBODY, &(struct person_observer){NULL, on_changed, &answer});
    return answer_wait(&answer);
}

static void remove_and_create(void)
{
    struct user_record owner = new_user(&scene.north, true), user = new_user(&scene.north, true);
    struct user_record next = rival_of(&user, &scene.south), last = rival_of(&user, &scene.south);

    cr_assert_eq(add(fixture.partitions, &owner), STORE_OK);
    cr_assert_eq(add(fixture.partitions, &user), STORE_OK);
    cr_assert_eq(remove_user(&user), STORE_OK);
    cr_expect(!exists(claim_name(user.email)) && !is_void(&user));
    cr_expect_eq(add(fixture.partitions, &next), STORE_OK);
    release(&user); /* late */
    expect_user(user.email, &next);

    /* Ended before the claim was released. */
    redis_server_tell(&fixture.server, "DEL", name_in(bucket_of_account(&next.account), "user", next.id.text), NULL);
    cr_expect_eq(add(fixture.partitions, &last), STORE_OK);
    cr_expect(is_void(&next));
    expect_user(user.email, &last);
}

Test(email_claim, ends_with_its_user)
{
    in_each_store(remove_and_create);
}

static void on_suspended(void *arg, enum store_result result, UNUSED const struct account_suspension *suspension)
{
    answer_done(arg, result);
}

struct step_answer {
    struct answer answer;
    struct account_close_step step;
};

static void on_step(void *arg, enum store_result result, const struct account_close_step *step)
{
    struct step_answer *answer = arg;

    cr_assert_eq(step != NULL, result == STORE_OK);
    if (step)
        answer->step = *step;
    answer_done(&answer->answer, result);
}

static void close_account(void)
{
    struct store *store = partition_of_account(fixture.partitions, &scene.north);
    struct step_answer step = {0};
    struct answer answer = {0};
    char names[NAME_BYTES];
    unsigned people = 0;

    for (; people < 22; people++) {
        const struct user_record user = new_user(&scene.north, people % 2);

        cr_assert_eq(add(fixture.partitions, &user), STORE_OK);
    }
    account_store_suspend(store, &scene.north, true, &SOMEBODY, on_suspended, &answer);
    cr_assert_eq(answer_wait(&answer), STORE_OK);
    while (!step.step.is_done) {
        step = (struct step_answer){0};
        account_store_close_people(fixture.partitions, &scene.north, &SOMEBODY, on_step, &step);
        cr_assert_eq(answer_wait(&step.answer), STORE_OK);
        people -= (unsigned)step.step.count;
    }
    cr_expect_eq(people, 0);
    redis_server_ask(&fixture.server, names, sizeof names, "KEYS", "t:*email:*", NULL);
    cr_expect_str_eq(names, "");
}

Test(email_claim, ends_with_its_account)
{
    in_each_store(close_account);
}

/* Invitations */

static enum store_result invite(const struct id *account, const char *email, struct link_record *ret_link)
{
    static uint8_t number;
    struct answer answer = {0};

    *ret_link =
        (struct link_record){.id = id_mint(ID_INVITATION, clock_wall_ms()), .account = *account, .role = ROLE_OWNER};
    snprintf(ret_link->email, sizeof ret_link->email, "%s", email);
    ret_link->digest[0] = ++number;
    link_store_invite(fixture.partitions, ret_link, &(struct audit_source){.actor = {"operator", 8}}, answer_inserted,
                      &answer);
    return answer_wait(&answer);
}

static enum store_result join(const struct link_record *link, const struct user_record *user)
{
    struct answer answer = {0};

    link_store_use(fixture.partitions, link, user, &SOMEBODY, answer_done, &answer);
    return answer_wait(&answer);
}

static void invite_and_join(void)
{
    struct user_record first = new_user(&scene.north, true), joined = rival_of(&first, &scene.north);
    struct user_record second = rival_of(&first, &scene.north), third = rival_of(&first, &scene.south);
    struct link_record link, elsewhere;

    cr_assert_eq(claim(&first), STORE_OK);
    cr_assert_eq(invite(&scene.north, first.email, &link), STORE_OK, "a claim without a user");
    cr_assert_eq(invite(&scene.south, first.email, &elsewhere), STORE_OK);
    cr_expect(!is_void(&first));
    cr_expect_eq(join(&link, &joined), STORE_OK);
    cr_expect_eq(join(&link, &joined), STORE_OK, "repeated");
    cr_expect(is_void(&first));
    expect_user(first.email, &joined);
    cr_expect_eq(join(&link, &second), STORE_NOT_FOUND);
    cr_expect_eq(join(&elsewhere, &third), STORE_NOT_FOUND);
    cr_expect(!has_record(&second) && !has_record(&third));
    cr_expect_eq(invite(&scene.south, first.email, &elsewhere), STORE_CONFLICT);
    expect_user(first.email, &joined);
}

Test(email_claim, comes_with_an_invitation_that_is_used)
{
    in_each_store(invite_and_join);
}

static void join_too_late(void)
{
    struct user_record user = new_user(&scene.north, true);
    struct link_record link;

    cr_assert_eq(invite(&scene.north, user.email, &link), STORE_OK);
    snprintf(link.mac.text, sizeof link.mac.text, "as it was before");
    cr_expect_eq(join(&link, &user), STORE_NOT_FOUND);
    cr_expect(!exists(claim_name(user.email)) && !has_record(&user));
}

Test(email_claim, is_released_when_the_invitation_has_ended)
{
    in_each_store(join_too_late);
}

static void reset_too_late(void)
{
    struct user_record user = new_user(&scene.north, true);
    struct link_record link = {.account = user.account, .user = user.id};

    cr_assert_eq(add(fixture.partitions, &user), STORE_OK);
    cr_expect_eq(join(&link, &user), STORE_NOT_FOUND);
    expect_user(user.email, &user);
}

Test(email_claim, stays_when_a_reset_is_refused)
{
    in_each_store(reset_too_late);
}

/* The partitions close */

static bool is_claimed(void *arg)
{
    return exists(claim_name(arg));
}

static void close_in_between(void)
{
    for (unsigned i = 0; i < 2; i++) {
        struct partitions *partitions = fixture_open_partitions("t:", scene.count);
        struct user_record user = new_user(&scene.north, true);
        struct answer answer = {0};

        account_store_add_user(partitions, &user, &SOMEBODY, answer_done, &answer);
        if (i > 0)
            cr_assert(test_loop_until(&fixture.loop, is_claimed, user.email, PATIENCE_MS));
        fixture_close_partitions(partitions);
        cr_expect_eq(answer.calls, 1);
    }
}

Test(email_claim, partitions_close_while_one_is_under_way)
{
    in_each_store(close_in_between);
}
