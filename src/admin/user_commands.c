#include "admin/commands.h"

#include "listing_internal.h"
#include "user_options_internal.h"

#include "base/json.h"
#include "base/secure.h"
#include "core/email.h"
#include "core/qr.h"
#include "records/link_store.h"
#include "records/people_store.h"

#include <stdio.h>
#include <unistd.h>

#define ROW_PASSWORD_FILE                            \
    ROW_TEXT("password-file", password_file, "PATH", \
             "Read the password from this file ('-': standard input) instead of asking on the terminal.")

static const struct option_row CREATE_ROWS[] = {
    ROW_TEXT("account", account, "ID", "The user's account. Required."),
    ROW_EMAIL,
    ROW_ROLE("owner"),
    ROW_ORIGIN,
    ROW_TEXT("password-file", password_file, "PATH",
             "Instead of making a link, read a password from this file ('-': standard input). The user must change "
             "it at the first sign-in."),
    ROW_FLAG("permanent-password", permanent_password,
             "With --password-file: let the user keep that password, for automation."),
    ROW_JSON,
};
static const struct option_row LIST_ROWS[] = {
    ROW_TEXT("account", account, "ID", "List only the users of this account."),
    ROW_JSON,
};
static const struct option_row RESET_TOTP_ROWS[] = {ROW_EMAIL, ROW_YES, ROW_JSON};
static const struct option_row RESET_PASSWORD_ROWS[] = {ROW_EMAIL, ROW_PASSWORD_FILE, ROW_JSON};

const struct option_group USER_CREATE_OPTIONS[] = ADMIN_OPTIONS(CREATE_ROWS);
const struct option_group USER_RESET_TOTP_OPTIONS[] = ADMIN_OPTIONS(RESET_TOTP_ROWS);
const struct option_group USER_RESET_PASSWORD_OPTIONS[] = ADMIN_OPTIONS(RESET_PASSWORD_ROWS);
const struct option_group USER_LIST_OPTIONS[] = ADMIN_OPTIONS(LIST_ROWS);

/* For people: prints the address as text and, on a terminal, as a QR code. */
static void put_totp(struct buf *out, const char *uri)
{
    if (isatty(STDOUT_FILENO)) {
        buf_append_str(out, "\nScan this with an authenticator app:\n\n");
        if (!qr_print(uri, out))
            buf_append_str(out, "  (The address is too long for a QR code.)\n");
    }
    buf_printf(out, "\nSecret for one-time codes (shown only now): %s\n", uri);
}

/* Prints a user's new TOTP secret. account: not NULL for `user create`, which prints account and email too. */
static int print_totp(const struct command_line *line, const struct new_user *user, const char *account,
                      const char *email)
{
    struct buf uri CLEANUP(buf_wipe), out CLEANUP(buf_wipe);

    buf_init(&uri, TOTP_URI_MAX_BYTES);
    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    totp_print_uri(&user->totp, TOTP_ISSUER, text_of(email), &uri);
    if (line->json) {
        struct json_writer w = {.out = &out};
        json_object_begin(&w);
        json_put_member(&w, "id", id_text(&user->id));
        if (account) {
            json_put_member(&w, "account_id", text_of(account));
            json_put_member(&w, "email", text_of(email));
        }
        json_put_member(&w, "totp_uri", buf_text(&uri));
        json_object_end(&w);
        buf_append_char(&out, '\n');
    } else {
        buf_printf(&out,
                   account ? "User %s created: %s\n" : "User %s (%s) has a new TOTP secret; all sessions ended.\n",
                   user->id.text, email);
        buf_append_char(&uri, '\0');
        put_totp(&out, uri.ptr);
    }
    return command_print(buf_text(&out));
}

/* Checks the password again now that the account's name is known: it must not be made of that. */
static int password_accept_for(struct store_client *client, const struct id *account, const char *email,
                               struct text password)
{
    char name[ACCOUNT_NAME_MAX_BYTES + 1];
    int code = account_name_find(client, account, name);

    return code == EXIT_DONE ? password_accept(password, &(struct password_context){text_of(email), text_of(name)})
                             : code;
}

static int user_create_with(const struct command_line *line, struct keyring *keyring, const struct id *account,
                            const char *email, struct text password)
{
    struct store_client client;
    struct new_user user;
    int code = command_open(line, &client, keyring);

    if (code != EXIT_DONE)
        return code;
    code = user_refuse_known(&client, line->email, email);
    if (code == EXIT_DONE)
        code = password_accept_for(&client, account, email, password);
    if (code == EXIT_DONE)
        code = user_add(&client, keyring, account, email, (enum role)line->role, password, !line->permanent_password,
                        &user);
    store_client_close(&client);
    if (code == EXIT_DONE)
        code = print_totp(line, &user, account->text, email);
    secure_wipe(&user, sizeof user);
    return code;
}

static int create_with_password(const struct command_line *line)
{
    char email[EMAIL_MAX_BYTES + 1];
    struct buf password CLEANUP(buf_wipe) = BUF_UP_TO(PASSWORD_MAX_BYTES + 1);
    struct id account;
    const struct id *given;
    int code = command_require(line->account, "--account");

    if (code == EXIT_DONE)
        code = account_option_read(line, &account, &given);
    if (code == EXIT_DONE)
        code = email_option_read_new(line, email);
    if (code != EXIT_DONE)
        return code;
    struct keyring *keyring = command_keyring(line, &code);
    if (keyring)
        code = password_obtain(line->password_file, &(struct password_context){.email = text_of(email)}, &password);
    if (code == EXIT_DONE)
        code = user_create_with(line, keyring, &account, email, buf_text(&password));
    keyring_destroy(keyring);
    return code;
}

int user_create_run(const struct command_line *line)
{
    if (line->password_file)
        return create_with_password(line);
    if (line->permanent_password)
        return command_fail(EXIT_USAGE, "--permanent-password needs --password-file");
    return user_invite_run(line);
}

static void list_user(struct listing *listing, const struct person *person)
{
    const struct user_record *user = &person->user;

    listing->rows++;
    if (!listing->json) {
        listing_row(listing, (struct text[]){id_text(&user->id), id_text(&user->account), role_text(user->role),
                                             text_of(person_status(person)), text_of(user->email)});
        return;
    }
    json_object_begin(&listing->writer);
    view_put_person(&listing->writer, person, VIEW_OPERATOR);
    json_object_end(&listing->writer);
}

static void users_came(void *arg, enum store_result result, const struct person *people, size_t count, bool has_more)
{
    for (size_t i = 0; i < count; i++)
        list_user(arg, &people[i]);
    listing_paged(arg, result, count > 0 ? &people[count - 1].user.id : NULL, has_more);
}

static void list_invitation(struct listing *listing, const struct link_record *link)
{
    struct json_writer *w = &listing->writer;

    listing->rows++;
    if (!listing->json) {
        listing_row(listing, (struct text[]){id_text(&link->id), id_text(&link->account), role_text(link->role),
                                             TEXT("invited"), text_of(link->email)});
        return;
    }
    json_object_begin(w);
    json_put_member(w, "id", id_text(&link->id));
    json_put_member(w, "account_id", id_text(&link->account));
    json_put_member(w, "email", text_of(link->email));
    json_put_member(w, "role", role_text(link->role));
    json_put_member(w, "status", TEXT("invited"));
    view_put_time_or_null(w, "created_at", link->created_ms);
    view_put_time_or_null(w, "expires_at", link->expires_ms);
    json_object_end(w);
}

static void invitations_came(void *arg, enum store_result result, const struct link_record *links, size_t count,
                             bool has_more)
{
    for (size_t i = 0; i < count; i++)
        list_invitation(arg, &links[i]);
    listing_paged(arg, result, count > 0 ? &links[count - 1].id : NULL, has_more);
}

static void ask_for_users(struct listing *listing)
{
    people_store_list(listing->client->store, &listing->account, LISTING_PAGE, &listing->behind, users_came, listing);
}

static void ask_for_invitations(struct listing *listing)
{
    link_store_list(listing->client->store, &listing->account, LISTING_PAGE, &listing->behind, invitations_came,
                    listing);
}

static int list_users_of(void *arg, const struct account_row *account)
{
    struct listing *listing = arg;

    listing->account = account->id;
    int code = listing_pages(listing, ask_for_users);
    return code == EXIT_DONE ? listing_pages(listing, ask_for_invitations) : code;
}

int user_list_run(const struct command_line *line)
{
    static const struct listing_column COLUMNS[] = {
        {"ID", 30}, {"ACCOUNT", 31}, {"ROLE", 9}, {"STATUS", 8}, {"EMAIL", 0}};
    struct listing users;

    return listing_run(&users, line, "There are no users.", COLUMNS, list_users_of);
}

/* Leaves nothing open on failure. */
static int open_and_find(const struct command_line *line, struct store_client *client, struct keyring *keyring,
                         const char *email, struct known_user *ret_user)
{
    int code = command_open(line, client, keyring);

    if (code != EXIT_DONE)
        return code;
    code = user_require(client, email, ret_user);
    if (code != EXIT_DONE)
        store_client_close(client);
    return code;
}

static int reset_totp_with(const struct command_line *line, struct keyring *keyring, const char *email)
{
    struct store_client client;
    struct known_user known;
    struct new_user user = {0};
    char question[ADMIN_WHY_MAX_BYTES];
    uint8_t sealed[TOTP_SEALED_BYTES];
    int code = open_and_find(line, &client, keyring, email, &known);

    if (code != EXIT_DONE)
        return code;
    snprintf(question, sizeof question,
             "%s gets a new secret for one-time codes: the old one stops working, and all sessions end.", email);
    code = command_confirm(line, question);
    if (code == EXIT_DONE) {
        user.id = known.id;
        totp_secret_mint(&user.totp);
        keyring_seal(keyring, id_text(&user.id), user.totp.bytes, TOTP_SECRET_BYTES, sealed);
        code = user_reset(&client, &user.id, NULL, false, sealed);
    }
    store_client_close(&client);
    if (code == EXIT_DONE)
        code = print_totp(line, &user, NULL, email);
    secure_wipe(&user, sizeof user);
    return code;
}

/* what: follows "User usr_… (email) ". */
static int print_done(const struct command_line *line, const struct id *user, const char *email, const char *what)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    buf_printf(&out, line->json ? "{\"id\":\"%s\"}\n" : "User %s (%s) %s\n", user->text, email, what);
    return command_print(buf_text(&out));
}

static int reset_password_with(const struct command_line *line, struct keyring *keyring, const char *email)
{
    char hash[PASSWORD_HASH_BYTES];
    struct store_client client;
    struct buf password CLEANUP(buf_wipe) = BUF_UP_TO(PASSWORD_MAX_BYTES + 1);
    struct known_user user;

    int code = password_obtain(line->password_file, &(struct password_context){.email = text_of(email)}, &password);
    if (code == EXIT_DONE)
        code = open_and_find(line, &client, keyring, email, &user);
    if (code != EXIT_DONE)
        return code;
    code = password_accept_for(&client, &user.account, email, buf_text(&password));
    if (code == EXIT_DONE) {
        user_hash_password(&client, keyring, &user.id, buf_text(&password), hash);
        code = user_reset(&client, &user.id, hash, true, NULL);
    }
    store_client_close(&client);
    if (code == EXIT_DONE)
        code = print_done(line, &user.id, email,
                          "has a new password, to be changed at the next sign-in; all sessions ended.");
    return code;
}

static int unlock_with(const struct command_line *line, struct keyring *keyring, const char *email)
{
    struct store_client client;
    struct known_user user;
    int code = open_and_find(line, &client, keyring, email, &user);

    if (code != EXIT_DONE)
        return code;
    code = user_unlock(&client, &user.id);
    store_client_close(&client);
    if (code == EXIT_DONE)
        code = print_done(line, &user.id, email, "is unlocked, and failed attempts are cleared.");
    return code;
}

typedef int reset_with(const struct command_line *line, struct keyring *keyring, const char *email);

static int reset_run(const struct command_line *line, reset_with *reset)
{
    char email[EMAIL_MAX_BYTES + 1];
    int code = email_option_read(line, email);

    if (code != EXIT_DONE)
        return code;
    struct keyring *keyring = command_keyring(line, &code);
    if (keyring)
        code = reset(line, keyring, email);
    keyring_destroy(keyring);
    return code;
}

int user_reset_totp_run(const struct command_line *line)
{
    return reset_run(line, reset_totp_with);
}

int user_reset_password_run(const struct command_line *line)
{
    return reset_run(line, reset_password_with);
}

int user_unlock_run(const struct command_line *line)
{
    return reset_run(line, unlock_with);
}
