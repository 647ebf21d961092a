#include "admin/commands.h"

#include "listing_internal.h"
#include "user_options_internal.h"

#include "base/json.h"
#include "base/secure.h"
#include "core/email.h"
#include "core/qr.h"
#include "records/link_store.h"

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
static int print_totp(const struct people_run *run, const struct new_user *user, const char *account)
{
    const char *email = run->email;
    struct buf uri CLEANUP(buf_wipe), out CLEANUP(buf_wipe);

    buf_init(&uri, TOTP_URI_MAX_BYTES);
    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    totp_print_uri(&user->totp, TOTP_ISSUER, text_of(email), &uri);
    if (run->line->json) {
        struct json_writer w = {.out = &out};
        json_object_begin(&w);
        json_put_member(&w, "id", id_text(&user->id));
        if (account) {
            json_put_member(&w, "account_id", text_of(account));
            json_put_member(&w, "email", text_of(email));
        }
        json_put_member(&w, "totp_uri", buf_text(&uri));
        json_line_end(&w);
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
static int password_accept_for(struct people_run *run, const struct id *account)
{
    char name[ACCOUNT_NAME_MAX_BYTES + 1];
    int code = account_name_find(&run->client, account, name);
    const struct password_context context = {text_of(run->email), text_of(name)};

    return code == EXIT_DONE ? password_accept(buf_text(&run->password), &context) : code;
}

static int create(struct people_run *run)
{
    const struct command_line *line = run->line;
    struct new_user user;
    struct id storage;
    const struct id *account;
    int code = account_option_read(line, &storage, &account);

    if (code == EXIT_DONE)
        code = password_accept_for(run, account);
    if (code == EXIT_DONE)
        code = user_add(&run->client, run->keyring, account, run->email, (enum role)line->role,
                        buf_text(&run->password), !line->permanent_password, &user);
    if (code == EXIT_DONE)
        code = print_totp(run, &user, account->text);
    secure_wipe(&user, sizeof user);
    return code;
}

static int create_with_password(const struct command_line *line)
{
    struct id storage;
    const struct id *account;
    int code = command_require(line->account, "--account");

    if (code == EXIT_DONE)
        code = account_option_read(line, &storage, &account);
    return code == EXIT_DONE ? people_run(line, PEOPLE_NEW_WITH_PASSWORD, create) : code;
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

    listing_count(listing);
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

    listing_count(listing);
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

static int reset_totp(struct people_run *run)
{
    struct new_user user = {.id = run->user.id};
    char question[ADMIN_WHY_MAX_BYTES];
    uint8_t sealed[TOTP_SEALED_BYTES];
    int code;

    snprintf(question, sizeof question,
             "%s gets a new secret for one-time codes: the old one stops working, and all sessions end.", run->email);
    code = command_confirm(run->line, question);
    if (code == EXIT_DONE) {
        totp_secret_mint(&user.totp);
        keyring_seal(run->client.settings.keyring, id_text(&user.id), user.totp.bytes, TOTP_SECRET_BYTES, sealed);
        code = user_reset(&run->client, &user.id, NULL, false, sealed);
    }
    if (code == EXIT_DONE)
        code = print_totp(run, &user, NULL);
    secure_wipe(&user, sizeof user);
    return code;
}

int user_reset_totp_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, reset_totp);
}

/* what: follows "User usr_… (email) ". */
static int print_done(const struct people_run *run, const char *what)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    buf_printf(&out, run->line->json ? "{\"id\":\"%s\"}\n" : "User %s (%s) %s\n", run->user.id.text, run->email, what);
    return command_print(buf_text(&out));
}

static int reset_password(struct people_run *run)
{
    char hash[PASSWORD_HASH_BYTES];
    int code = password_accept_for(run, &run->user.account);

    if (code != EXIT_DONE)
        return code;
    user_hash_password(&run->client, run->keyring, &run->user.id, buf_text(&run->password), hash);
    code = user_reset(&run->client, &run->user.id, hash, true, NULL);
    return code == EXIT_DONE
               ? print_done(run, "has a new password, to be changed at the next sign-in; all sessions ended.")
               : code;
}

int user_reset_password_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN_WITH_PASSWORD, reset_password);
}

static int unlock(struct people_run *run)
{
    int code = user_unlock(&run->client, &run->user.id);

    return code == EXIT_DONE ? print_done(run, "is unlocked, and failed attempts are cleared.") : code;
}

int user_unlock_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, unlock);
}
