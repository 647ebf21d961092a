#include "admin/users.h"

#include "listing_internal.h"
#include "user_options_internal.h"

#include "auth/password.h"
#include "base/clock.h"
#include "base/secure.h"
#include "core/email.h"
#include "store/people_store.h"

#include <stdio.h>
#include <string.h>

const struct audit_source OPERATOR = {.actor = TEXT("operator")};

struct stored {
    struct store_client *client;
    enum store_result result;
};

static void user_stored(void *arg, enum store_result result)
{
    struct stored *stored = arg;

    stored->result = result;
    store_client_done(stored->client);
}

/* A store of one partition is founded by its first account. */
static int found(struct store_client *client)
{
    static const struct store_refusals REFUSALS = {
        .conflict = "a partition of this store belongs to another one; 'chatelaine doctor' shows more"};
    struct stored stored = {.client = client};

    if (partitions_count(client->partitions) == 1)
        return EXIT_DONE;
    partitions_found(client->partitions, user_stored, &stored);
    store_client_wait(client);
    return store_client_explain(client, stored.result, &REFUSALS);
}

int account_add(struct store_client *client, struct text name, struct id *ret_account)
{
    static const struct store_refusals REFUSALS = {.conflict = "this account exists already; try again"};
    struct stored stored = {.client = client};
    struct id account = id_mint(ID_ACCOUNT, clock_wall_ms());
    int code = found(client);

    if (code != EXIT_DONE)
        return code;
    store_client_choose(client, &account);
    account_store_create(client->store, &account, name, user_stored, &stored);
    store_client_wait(client);
    code = store_client_explain(client, stored.result, &REFUSALS);
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
    struct stored stored = {.client = client};
    struct user_record user = {
        .id = id_mint(ID_USER, clock_wall_ms()), .account = *account, .role = role, .password_expired = must_change};

    user.created_ms = id_time_ms(&user.id);
    snprintf(user.email, sizeof user.email, "%s", email);
    user_hash_password(client, keyring, &user.id, password, user.password_hash);
    totp_secret_mint(&ret_user->totp);
    keyring_seal(keyring, id_text(&user.id), ret_user->totp.bytes, TOTP_SECRET_BYTES, user.totp_sealed);
    account_store_add_user(client->partitions, &user, &OPERATOR, user_stored, &stored);
    store_client_wait(client);
    ret_user->id = user.id;
    return store_client_explain(client, stored.result, &NEW_USER_REFUSALS);
}

struct search {
    struct store_client *client;
    enum store_result result;
    struct known_user user;
};

static void user_searched(void *arg, enum store_result result, const struct user_record *user)
{
    struct search *search = arg;

    search->result = result;
    if (result == STORE_OK)
        search->user = (struct known_user){user->id, user->account};
    store_client_done(search->client);
}

int user_find(struct store_client *client, const char *email, bool *ret_is_known, struct known_user *ret_user)
{
    static const struct store_refusals NONE = {0};
    struct search search = {.client = client};
    char meant[EMAIL_MAX_BYTES + 1];

    account_store_find_user(client->partitions, text_of(email), user_searched, &search);
    store_client_wait(client);
    if (search.result == STORE_NOT_FOUND && email_read(text_of(email), meant) && strcmp(email, meant) != 0) {
        account_store_find_user(client->partitions, text_of(meant), user_searched, &search);
        store_client_wait(client);
    }
    *ret_is_known = search.result == STORE_OK;
    if (search.result == STORE_NOT_FOUND)
        return EXIT_DONE;
    *ret_user = search.user;
    if (*ret_is_known)
        store_client_choose(client, &search.user.account);
    return store_client_explain(client, search.result, &NONE);
}

int user_require(struct store_client *client, const char *email, struct known_user *ret_user)
{
    bool is_known;
    int code = user_find(client, email, &is_known, ret_user);

    if (code == EXIT_DONE && !is_known)
        return command_fail(EXIT_FAILED, "no user has the email %s; 'chatelaine user list' shows them", email);
    return code;
}

int user_refuse_known(struct store_client *client, const char *written, const char *meant)
{
    char before[EMAIL_MAX_BYTES + 1];
    struct known_user user;
    bool is_known = false;
    int code = EXIT_DONE;

    if (account_normalise_email(text_of(written), before) && strcmp(before, meant) != 0)
        code = user_find(client, before, &is_known, &user);
    return is_known && code == EXIT_DONE ? command_fail(EXIT_FAILED, "%s", NEW_USER_REFUSALS.conflict) : code;
}

int user_reset(struct store_client *client, const struct id *user, const char *password_hash, bool must_change,
               const uint8_t *totp_sealed)
{
    struct stored stored = {.client = client};

    account_store_reset_user(client->store, user, password_hash, must_change, totp_sealed, &OPERATOR, user_stored,
                             &stored);
    store_client_wait(client);
    return store_client_explain(client, stored.result, &USER_REFUSALS);
}

int user_unlock(struct store_client *client, const struct id *user)
{
    struct stored stored = {.client = client};

    account_store_unlock_user(client->store, user, &OPERATOR, user_stored, &stored);
    store_client_wait(client);
    return store_client_explain(client, stored.result, &USER_REFUSALS);
}

int email_option_read(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1])
{
    int code = command_require(line->email, "--email");

    if (code == EXIT_DONE && !account_normalise_email(text_of(line->email), ret_email))
        return command_fail(EXIT_USAGE, "--email '%s' is not an email address", line->email);
    return code;
}

int email_option_read_new(const struct command_line *line, char ret_email[EMAIL_MAX_BYTES + 1])
{
    char storage[EMAIL_WHY_BYTES];
    struct buf why;
    int code = command_require(line->email, "--email");

    if (code != EXIT_DONE || email_read(text_of(line->email), ret_email))
        return code;
    buf_init_fixed(&why, storage, sizeof storage);
    email_explain(text_of(line->email), &why);
    return command_fail(EXIT_USAGE, "--%.*s", (int)why.len - 1, storage); /* without the full stop */
}

void put_person_members(struct json_writer *w, const struct person *person)
{
    json_put_member(w, "id", id_text(&person->user.id));
    json_put_member(w, "account_id", id_text(&person->user.account));
    json_put_member(w, "email", text_of(person->user.email));
    json_put_member(w, "role", role_text(person->user.role));
    json_put_member(w, "status", text_of(person_status(person)));
    put_time_member(w, "created_at", person->user.created_ms);
    put_time_member(w, "last_sign_in_at", person->last_sign_in_ms);
    put_time_member(w, "disabled_at", person->user.disabled_ms);
}
