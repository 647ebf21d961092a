/* session list, session end */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "records/people_store.h"
#include "records/session_store.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What commands call a session: this, then its sid, which a step-up keeps. The sid alone could look like an option. */

#define ROW_USER(what) ROW_TEXT("user", email, "EMAIL", what)

static const struct option_row LIST_ROWS[] = {
    ROW_TEXT("account", account, "ID", "List only sessions of this account's users."),
    ROW_USER("List only sessions of this user."),
    ROW_JSON,
};
static const struct option_row END_ROWS[] = {ROW_USER("End all sessions of this user."), ROW_JSON};

const struct option_group SESSION_LIST_OPTIONS[] = ADMIN_OPTIONS(LIST_ROWS);
const struct option_group SESSION_END_OPTIONS[] = ADMIN_OPTIONS(END_ROWS);

/* Walks the users of an account, some at a time, and looks at their sessions. */

struct session_walk {
    struct store_client *client;
    struct id users[LISTING_PAGE]; /* some of the current account */
    size_t user_count;
    bool has_more;
    void (*visit)(struct session_walk *walk, const struct session_row *row);
    bool is_found; /* session end: found what was looked for, which ends the walk */
    struct listing listing;
    struct text sid;         /* session end: looked for */
    struct known_user owner; /* session end: of that session */
};

static void walk_people_listed(void *arg, enum store_result result, const struct person *people, size_t count,
                               bool has_more)
{
    struct session_walk *walk = arg;

    walk->user_count = count;
    walk->has_more = has_more && count > 0;
    for (size_t i = 0; i < count; i++)
        walk->users[i] = people[i].user.id;
    store_client_answer(walk->client, result);
}

static void walk_sessions_listed(void *arg, enum store_result result, const struct session_row *sessions, size_t count)
{
    struct session_walk *walk = arg;

    for (size_t i = 0; i < count; i++)
        walk->visit(walk, &sessions[i]);
    store_client_answer(walk->client, result);
}

static int walk_users(struct session_walk *walk, const struct id *users, size_t count)
{
    int code = EXIT_DONE;

    for (size_t at = 0; at < count && code == EXIT_DONE && !walk->is_found; at += SESSION_LIST_USERS_MAX) {
        size_t some = count - at < SESSION_LIST_USERS_MAX ? count - at : SESSION_LIST_USERS_MAX;

        session_store_list(walk->client->store, users + at, some, walk_sessions_listed, walk);
        code = store_client_finish(walk->client, NULL);
        if (code == EXIT_DONE && walk->listing.client)
            code = listing_flush(&walk->listing);
    }
    return code;
}

static int walk_account(void *arg, const struct account_row *account)
{
    struct session_walk *walk = arg;
    struct id behind = {0};
    int code;

    walk->has_more = false;
    do {
        if (walk->is_found)
            return EXIT_DONE;
        people_store_list(walk->client->store, &account->id, LISTING_PAGE, &behind, walk_people_listed, walk);
        code = store_client_finish(walk->client, NULL);
        if (code == EXIT_DONE)
            code = walk_users(walk, walk->users, walk->user_count);
        if (walk->has_more)
            behind = walk->users[walk->user_count - 1];
    } while (code == EXIT_DONE && walk->has_more);
    return code;
}

/* --user: must exist. */
static int find_owner(struct store_client *client, const char *email, struct known_user *ret_user)
{
    char normal[EMAIL_MAX_BYTES + 1];

    if (!account_normalise_email(text_of(email), normal))
        return command_fail(EXIT_USAGE, "--user '%s' is not an email address", email);
    return user_require(client, normal, ret_user);
}

/* session list */

static void list_json(struct json_writer *w, const struct session_row *row, struct text id)
{
    json_object_begin(w);
    json_put_member(w, "id", id);
    json_put_member(w, "user_id", id_text(&row->user));
    json_put_member(w, "email", text_of(row->email));
    json_put_member(w, "account_id", id_text(&row->account));
    view_put_time_or_null(w, "created_at", row->created_ms);
    view_put_time_or_null(w, "last_used_at", row->seen_ms);
    view_put_time_or_null(w, "stepped_up_at", row->step_up_ms);
    view_put_time_or_null(w, "idle_expires_at", row->ends_ms);
    json_put_member(w, "ip", text_of(row->ip));
    json_put_member(w, "browser", text_of(row->browser));
    json_object_end(w);
}

static void list_session(struct session_walk *walk, const struct session_row *row)
{
    char id[sizeof SESSION_PREFIX + ID_TEXT_BYTES], created[TIME_CELL_BYTES], seen[TIME_CELL_BYTES];

    snprintf(id, sizeof id, SESSION_PREFIX "%s", row->sid);
    listing_count(&walk->listing);
    if (walk->listing.json) {
        list_json(&walk->listing.writer, row, text_of(id));
        return;
    }
    listing_row(&walk->listing,
                (struct text[]){text_of(id), id_text(&row->account), time_cell(row->created_ms, "unknown", created),
                                time_cell(row->seen_ms, "unknown", seen), text_of(row->email)});
}

static int list_of_user(struct session_walk *walk, const char *email, const struct id *account)
{
    struct known_user user;
    int code = find_owner(walk->client, email, &user);

    if (code == EXIT_DONE && account && !id_equal(account, &user.account))
        return command_fail(EXIT_FAILED, "%s is not a user of account %s", email, account->text);
    return code == EXIT_DONE ? walk_users(walk, &user.id, 1) : code;
}

int session_list_run(const struct command_line *line)
{
    static const struct listing_column COLUMNS[] = {
        {"ID", 27}, {"ACCOUNT", 31}, {"CREATED", 20}, {"LAST USED", 20}, {"USER", 0}};
    struct store_client client;
    struct session_walk walk = {.client = &client, .visit = list_session};
    struct id storage;
    const struct id *account;
    int code = account_option_read(line, &storage, &account);

    if (code == EXIT_DONE)
        code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    listing_begin(&walk.listing, line, &client, "No session matches.", COLUMNS);
    code =
        line->email ? list_of_user(&walk, line->email, account) : accounts_walk(&client, account, walk_account, &walk);
    code = listing_end(&walk.listing, code);
    store_client_close(&client);
    return code;
}

/* session end */

struct session_ending {
    struct store_client *client;
    int64_t *count;
};

static void sessions_were_stopped(void *arg, enum store_result result, int64_t count)
{
    struct session_ending *ending = arg;

    *ending->count = count;
    store_client_answer(ending->client, result);
}

static int stop_sessions(struct store_client *client, const struct id *user, struct text sid, int64_t *ret_count)
{
    static const struct store_refusals REFUSALS = {
        .not_found = "there is no such session any more; 'chatelaine session list' shows all"};
    struct session_ending ending = {client, ret_count};

    session_store_stop(client->store, user, sid, NULL, &OPERATOR, sessions_were_stopped, &ending);
    return store_client_finish(client, &REFUSALS);
}

static void look_for_sid(struct session_walk *walk, const struct session_row *row)
{
    if (!text_equal(text_of(row->sid), walk->sid))
        return;
    walk->is_found = true;
    walk->owner = (struct known_user){row->user, row->account};
}

static int end_one(struct store_client *client, struct text sid, int64_t *ret_count)
{
    struct session_walk walk = {.client = client, .visit = look_for_sid, .sid = sid};
    int code = accounts_walk(client, NULL, walk_account, &walk);

    if (code == EXIT_DONE && !walk.is_found)
        return command_fail(EXIT_FAILED,
                            "there is no session " SESSION_PREFIX "%.*s; 'chatelaine session list' shows "
                            "all",
                            TEXT_ARG(sid));
    if (code == EXIT_DONE)
        store_client_choose(client, &walk.owner.account);
    return code == EXIT_DONE ? stop_sessions(client, &walk.owner.id, sid, ret_count) : code;
}

static int end_all(struct store_client *client, const char *email, int64_t *ret_count)
{
    struct known_user user;
    int code = find_owner(client, email, &user);

    return code == EXIT_DONE ? stop_sessions(client, &user.id, TEXT(""), ret_count) : code;
}

static int print_ended(const struct command_line *line, int64_t count)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    if (line->json)
        buf_printf(&out, "{\"ended\":%" PRId64 "}\n", count);
    else if (count == 1)
        buf_append_str(&out, "1 session ended; no node accepts it.\n");
    else
        buf_printf(&out, "%" PRId64 " sessions ended; no node accepts them.\n", count);
    return command_print(buf_text(&out));
}

static bool is_sid(struct text t)
{
    size_t fitting = 0;

    while (fitting < t.len && (isalnum((unsigned char)t.ptr[fitting]) || strchr("-_", t.ptr[fitting])))
        fitting++;
    return t.len > 0 && t.len < ID_TEXT_BYTES && fitting == t.len;
}

/* The operand or --user, and not both. */
static int read_what_to_end(const struct command_line *line, struct text *ret_sid)
{
    struct text operand;

    *ret_sid = TEXT("");
    if ((line->operand_count > 0) == (line->email != NULL))
        return command_fail(EXIT_USAGE, "'session end' needs the id of a session, or --user for all of a user");
    if (line->operand_count == 0)
        return EXIT_DONE;
    operand = text_of(line->operands[0]);
    if (text_starts_with(operand, TEXT(SESSION_PREFIX)))
        *ret_sid = text_skip(operand, strlen(SESSION_PREFIX));
    if (is_sid(*ret_sid))
        return EXIT_DONE;
    return command_fail(EXIT_USAGE, "'%s' is not the id of a session (" SESSION_PREFIX "…)", line->operands[0]);
}

int session_end_run(const struct command_line *line)
{
    struct store_client client;
    struct text sid = {0};
    int64_t count = 0;
    int code = read_what_to_end(line, &sid);

    if (code == EXIT_DONE)
        code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    code = line->email ? end_all(&client, line->email, &count) : end_one(&client, sid, &count);
    store_client_close(&client);
    return code == EXIT_DONE ? print_ended(line, count) : code;
}
