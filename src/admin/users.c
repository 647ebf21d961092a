#include "admin/users.h"

#include "listing_internal.h"
#include "user_options_internal.h"

#include "auth/password.h"
#include "base/clock.h"
#include "base/secure.h"
#include "core/email.h"

#include <stdio.h>
#include <string.h>

const struct audit_source OPERATOR = {.actor = TEXT("operator")};

/* A store of one partition is founded by its first account. */
static int found(struct store_client *client)
{
    static const struct store_refusals REFUSALS = {
        .conflict = "a partition of this store belongs to another one; 'chatelaine doctor' shows more"};
    if (partitions_count(client->partitions) == 1)
        return EXIT_DONE;
    partitions_found(client->partitions, store_client_answered, client);
    return store_client_finish(client, &REFUSALS);
}

int account_add(struct store_client *client, struct text name, struct id *ret_account)
{
    static const struct store_refusals REFUSALS = {.conflict = "this account exists already; try again"};
    struct id account = id_mint(ID_ACCOUNT, clock_wall_ms());
    int code = found(client);

    if (code != EXIT_DONE)
        return code;
    store_client_choose(client, &account);
    account_store_create(client->store, &account, name, store_client_answered, client);
    code = store_client_finish(client, &REFUSALS);
    if (code == EXIT_DONE)
        *ret_account = account;
    return code;
}

int account_name_find(struct store_client *client, const struct id *account, char ret_name[ACCOUNT_NAME_MAX_BYTES + 1])
{
    struct account_row row;
    bool is_known;
    int code = account_find(client, account, &is_known, &row);

    ret_name[0] = '\0';
    if (code == EXIT_DONE && is_known)
        snprintf(ret_name, ACCOUNT_NAME_MAX_BYTES + 1, "%s", row.name);
    return code;
}

/* Updates the loop's time, which stood still while the hash was computed: call deadlines count from it. */
void user_hash_password(struct store_client *client, struct keyring *keyring, const struct id *user,
                        struct text password, char ret_hash[PASSWORD_HASH_BYTES])
{
    password_hash_now(keyring, id_text(user), password, ret_hash);
    uv_update_time(&client->loop);
}

const struct store_refusals NEW_USER_REFUSALS = {
    .refused = "there is no such account; 'chatelaine account list' shows all",
    .conflict = "a user with this email exists already; 'chatelaine user list' shows all",
};
const struct store_refusals USER_REFUSALS = {
    .not_found = "the user no longer exists",
    .refused = "the account would be left without an owner who can sign in: make somebody else an owner first",
};

int user_add(struct store_client *client, struct keyring *keyring, const struct id *account, const char *email,
             enum role role, struct text password, bool must_change, struct new_user *ret_user)
{
    struct user_record user = {
        .id = id_mint(ID_USER, clock_wall_ms()), .account = *account, .role = role, .password_expired = must_change};

    user.created_ms = id_time_ms(&user.id);
    snprintf(user.email, sizeof user.email, "%s", email);
    user_hash_password(client, keyring, &user.id, password, user.password_hash);
    totp_secret_mint(&ret_user->totp);
    keyring_seal(keyring, id_text(&user.id), ret_user->totp.bytes, TOTP_SECRET_BYTES, user.totp_sealed);
    account_store_add_user(client->partitions, &user, &OPERATOR, store_client_answered, client);
    ret_user->id = user.id;
    return store_client_finish(client, &NEW_USER_REFUSALS);
}

struct user_search {
    struct store_client *client;
    struct known_user *user;
};

static void user_searched(void *arg, enum store_result result, const struct user_record *user)
{
    struct user_search *search = arg;

    if (result == STORE_OK)
        *search->user = (struct known_user){user->id, user->account};
    store_client_answer(search->client, result);
}

static enum store_result search_user(struct store_client *client, const char *email, struct known_user *ret_user)
{
    struct user_search search = {client, ret_user};

    account_store_find_user(client->partitions, text_of(email), user_searched, &search);
    return store_client_result(client);
}

int user_find(struct store_client *client, const char *email, bool *ret_is_known, struct known_user *ret_user)
{
    char meant[EMAIL_MAX_BYTES + 1];
    enum store_result result = search_user(client, email, ret_user);

    if (result == STORE_NOT_FOUND && email_read(text_of(email), meant) && strcmp(email, meant) != 0)
        result = search_user(client, meant, ret_user);
    *ret_is_known = result == STORE_OK;
    if (result == STORE_OK)
        store_client_choose(client, &ret_user->account);
    return result == STORE_NOT_FOUND ? EXIT_DONE : store_client_explain(client, result, NULL);
}

int user_require(struct store_client *client, const char *email, struct known_user *ret_user)
{
    bool is_known;
    int code = user_find(client, email, &is_known, ret_user);

    if (code == EXIT_DONE && !is_known)
        return command_fail(EXIT_FAILED, "no user has the email %s; 'chatelaine user list' shows them", email);
    return code;
}

int user_reset(struct store_client *client, const struct id *user, const char *password_hash, bool must_change,
               const uint8_t *totp_sealed)
{
    account_store_reset_user(client->store, user, password_hash, must_change, totp_sealed, &OPERATOR,
                             store_client_answered, client);
    return store_client_finish(client, &USER_REFUSALS);
}

int user_unlock(struct store_client *client, const struct id *user)
{
    account_store_unlock_user(client->store, user, &OPERATOR, store_client_answered, client);
    return store_client_finish(client, &USER_REFUSALS);
}

static int read_email(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1])
{
    int code = command_require(line->email, "--email");

    if (code == EXIT_DONE && !account_normalise_email(text_of(line->email), ret_email))
        return command_fail(EXIT_USAGE, "--email '%s' is not an email address", line->email);
    return code;
}

static int read_new_email(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1])
{
    struct buf why = BUF_FIXED(EMAIL_WHY_BYTES);
    int code = command_require(line->email, "--email");

    if (code != EXIT_DONE || email_read(text_of(line->email), ret_email))
        return code;
    email_explain(text_of(line->email), &why);
    return command_fail(EXIT_USAGE, "--%.*s", (int)why.len - 1, why.ptr); /* without the full stop */
}

static int read_password(struct people_run *run)
{
    const struct password_context context = {.email = text_of(run->email)};
    int code;

    run->keyring = command_keyring(run->line, &code);
    return run->keyring ? password_obtain(run->line->password_file, &context, &run->password) : code;
}

/* Users of versions before 0.4 have their email as it was written: an error, if one of them has this one. The store
 * refuses those who have it as it is meant. */
static int refuse_known(struct people_run *run)
{
    char before[EMAIL_MAX_BYTES + 1];
    bool is_known = false;
    int code = EXIT_DONE;

    if (account_normalise_email(text_of(run->line->email), before) && strcmp(before, run->email) != 0)
        code = user_find(&run->client, before, &is_known, &run->user);
    return is_known && code == EXIT_DONE ? command_fail(EXIT_FAILED, "%s", NEW_USER_REFUSALS.conflict) : code;
}

static int run_in_store(struct people_run *run, bool is_new, people_act *act)
{
    int code = command_open(run->line, &run->client, run->keyring);

    if (code != EXIT_DONE)
        return code;
    code = is_new ? refuse_known(run) : user_require(&run->client, run->email, &run->user);
    if (code == EXIT_DONE)
        code = act(run);
    store_client_close(&run->client);
    return code;
}

int people_run(const struct command_line *line, enum people_need need, people_act *act)
{
    struct people_run run = {.line = line};
    bool is_new = need == PEOPLE_NEW || need == PEOPLE_NEW_WITH_PASSWORD;
    int code = is_new ? read_new_email(line, run.email) : read_email(line, run.email);

    buf_init(&run.revoked, ADMIN_OUTPUT_MAX_BYTES);
    buf_init(&run.kept, ADMIN_OUTPUT_MAX_BYTES);
    buf_init(&run.password, PASSWORD_MAX_BYTES + 1);
    if (code == EXIT_DONE && (need == PEOPLE_KNOWN_WITH_PASSWORD || need == PEOPLE_NEW_WITH_PASSWORD))
        code = read_password(&run);
    if (code == EXIT_DONE)
        code = run_in_store(&run, is_new, act);
    keyring_destroy(run.keyring);
    buf_finish(&run.revoked);
    buf_finish(&run.kept);
    buf_wipe(&run.password);
    return code;
}
