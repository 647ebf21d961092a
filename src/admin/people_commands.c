/* user invite, show, role, disable, enable, remove, reset: people as owners manage them in the console, by an operator.
 * Each change is in effect on every node before the command returns. */
#include "admin/commands.h"

#include "listing_internal.h"
#include "user_options_internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/secure.h"
#include "config/settings.h"
#include "records/link_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROW_REVOKE_KEYS                                                                                             \
    ROW_FLAG("revoke-keys", revoke_keys,                                                                            \
             "Also revoke all API keys and device keys that go back to the user: those that the user created, and " \
             "those that such keys created.")
#define ROW_REVOKE_MADE_KEYS                                                                            \
    ROW_FLAG("revoke-made-keys", revoke_made_keys,                                                      \
             "Also revoke the API keys and device keys that the user created, and their replacements. " \
             "Keys that such keys created stay.")

static const struct option_row INVITE_ROWS[] = {
    ROW_TEXT("account", account, "ID", "The account to which the user will belong. Required."),
    ROW_EMAIL,
    ROW_ROLE("developer"),
    ROW_ORIGIN,
    ROW_JSON,
};
static const struct option_row SHOW_ROWS[] = {ROW_EMAIL, ROW_JSON};
static const struct option_row ROLE_ROWS[] = {ROW_EMAIL, ROW_ROLE("developer"), ROW_REVOKE_KEYS, ROW_REVOKE_MADE_KEYS,
                                              ROW_JSON};
static const struct option_row END_ROWS[] = {ROW_EMAIL, ROW_REVOKE_KEYS, ROW_REVOKE_MADE_KEYS, ROW_YES, ROW_JSON};
static const struct option_row RESET_ROWS[] = {ROW_EMAIL, ROW_ORIGIN, ROW_YES, ROW_JSON};

const struct option_group USER_INVITE_OPTIONS[] = ADMIN_OPTIONS(INVITE_ROWS);
const struct option_group USER_SHOW_OPTIONS[] = ADMIN_OPTIONS(SHOW_ROWS);
const struct option_group USER_ROLE_OPTIONS[] = ADMIN_OPTIONS(ROLE_ROWS);
const struct option_group USER_END_OPTIONS[] = ADMIN_OPTIONS(END_ROWS);
const struct option_group USER_RESET_OPTIONS[] = ADMIN_OPTIONS(RESET_ROWS);

/* Links */

static int print_link(const struct people_run *run, const struct link_record *link, const struct token *code)
{
    const char *origin = run->line->settings.public_origin;
    char expires[CLOCK_RFC3339_BYTES];
    struct buf out CLEANUP(buf_wipe) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);

    clock_print_rfc3339(link->expires_ms, expires);
    if (run->line->json)
        buf_printf(&out, "{\"id\":\"%s\",\"url\":\"%s/console/join#%s\",\"expires_at\":\"%s\"}\n",
                   link->user.text[0] ? link->user.text : link->id.text, origin, code->text, expires);
    else
        buf_printf(&out,
                   "Give this link to %s and to nobody else. It works once, until %s, and is shown only now:\n"
                   "%s/console/join#%s\n",
                   link->email, expires, origin, code->text);
    return command_print(buf_text(&out));
}

static int require_origin(const struct command_line *line)
{
    return command_require_origin(line, "the link begins with the nodes' public origin");
}

/* link: with the account set */
static void link_begin(struct people_run *run, struct link_record *link, struct token *ret_code)
{
    token_draw(run->client.settings.keyring, bucket_of_account(&link->account), KEYRING_LINK, ret_code, link->digest);
    link->id = id_mint(ID_INVITATION, clock_wall_ms());
    snprintf(link->email, sizeof link->email, "%s", run->email);
}

static void was_invited(void *arg, enum store_result result, uint32_t retry_after_s)
{
    struct people_run *run = arg;

    (void)retry_after_s;
    store_client_answer(&run->client, result);
}

static int invite(struct people_run *run)
{
    struct link_record link = {.role = (enum role)run->line->role};
    struct token code;
    int exit_code;

    if (!id_parse(ID_ACCOUNT, text_of(run->line->account), &link.account))
        return command_fail(EXIT_USAGE, "--account '%s' is not the id of an account", run->line->account);
    store_client_choose(&run->client, &link.account);
    link_begin(run, &link, &code);
    link_store_invite(run->client.partitions, &link, &OPERATOR, was_invited, run);
    exit_code = store_client_finish(&run->client, &NEW_USER_REFUSALS);
    if (exit_code == EXIT_DONE)
        exit_code = print_link(run, &link, &code);
    token_wipe(&code);
    return exit_code;
}

int user_invite_run(const struct command_line *line)
{
    int code = command_require(line->account, "--account");

    if (code == EXIT_DONE)
        code = require_origin(line);
    return code == EXIT_DONE ? people_run(line, PEOPLE_NEW, invite) : code;
}

static void person_read(void *arg, enum store_result result, const struct person *person)
{
    struct people_run *run = arg;

    if (result == STORE_OK)
        run->person = *person;
    store_client_answer(&run->client, result);
}

static int look(struct people_run *run)
{
    people_store_find(run->client.store, &run->user.account, &run->user.id, false, person_read, run);
    return store_client_finish(&run->client, &USER_REFUSALS);
}

static void was_reset(void *arg, enum store_result result, int64_t sessions_ended)
{
    struct people_run *run = arg;

    run->sessions_ended = sessions_ended;
    store_client_answer(&run->client, result);
}

static int reset(struct people_run *run)
{
    char question[ADMIN_WHY_MAX_BYTES];
    struct link_record link = {0};
    struct token code;
    int exit_code = look(run);

    snprintf(question, sizeof question,
             "%s gets a link to set a new password and authenticator: the old ones stop working, and all sessions "
             "end.",
             run->email);
    if (exit_code == EXIT_DONE)
        exit_code = command_confirm(run->line, question);
    if (exit_code != EXIT_DONE)
        return exit_code;
    link.user = run->user.id;
    link.account = run->user.account;
    link.role = run->person.user.role;
    link_begin(run, &link, &code);
    link_store_reset(run->client.store, &link, &OPERATOR, was_reset, run);
    exit_code = store_client_finish(&run->client, &USER_REFUSALS);
    if (exit_code == EXIT_DONE)
        exit_code = print_link(run, &link, &code);
    token_wipe(&code);
    return exit_code;
}

int user_reset_run(const struct command_line *line)
{
    int code = require_origin(line);

    return code == EXIT_DONE ? people_run(line, PEOPLE_KNOWN, reset) : code;
}

/* Showing */

static int show(struct people_run *run)
{
    const struct person *person = &run->person;
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_WHY_MAX_BYTES);
    int code;

    code = look(run);
    if (code != EXIT_DONE)
        return code;
    if (run->line->json) {
        struct json_writer w = {.out = &out};

        json_object_begin(&w);
        view_put_person(&w, person, VIEW_OPERATOR);
        json_line_end(&w);
    } else {
        view_print_person(&out, person);
    }
    return command_print(buf_text(&out));
}

int user_show_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, show);
}

/* Changing */

static void list_ids(struct buf *out, const struct id *ids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s ", ids[i].text);
}

static void was_changed(void *arg, enum store_result result, const struct person_changed *changed)
{
    struct people_run *run = arg;

    if (result == STORE_OK) {
        run->person = changed->person;
        run->sessions_ended = changed->sessions_ended;
        list_ids(&run->revoked, changed->revoked, changed->revoked_count);
        list_ids(&run->kept, changed->kept, changed->kept_count);
    }
    store_client_answer(&run->client, result);
}

static int change(struct people_run *run, const struct person_change *wanted)
{
    const struct person_observer observer = {NULL, was_changed, run};

    people_store_change(run->client.partitions, &run->user.account, &run->user.id, wanted, &OPERATOR, &observer);
    return store_client_finish(&run->client, &USER_REFUSALS);
}

static void put_ids(struct json_writer *w, const char *name, const struct buf *ids)
{
    struct text rest = buf_text(ids), id;

    json_key_array(w, name);
    while (text_next(&rest, ' ', &id))
        if (id.len)
            json_put_text(w, id);
    json_array_end(w);
}

/* done: follows "User usr_… (email) ". */
static int print_changed(const struct people_run *run, const char *done)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_OUTPUT_MAX_BYTES);

    if (run->line->json) {
        struct json_writer w = {.out = &out};

        json_object_begin(&w);
        view_put_person(&w, &run->person, VIEW_OPERATOR);
        json_put_number(&w, "sessions_ended", run->sessions_ended);
        put_ids(&w, "keys_revoked", &run->revoked);
        put_ids(&w, "keys_kept", &run->kept);
        json_line_end(&w);
        return command_print(buf_text(&out));
    }
    buf_printf(&out, "User %s (%s) %s\n", run->user.id.text, run->email, done);
    if (run->sessions_ended)
        buf_printf(&out, "Sessions ended: %" PRId64 "\n", run->sessions_ended);
    if (run->revoked.len)
        buf_printf(&out, "Keys revoked: %.*s\n", TEXT_ARG(buf_text(&run->revoked)));
    if (run->kept.len)
        buf_printf(&out, "Keys kept: %.*s\n", TEXT_ARG(buf_text(&run->kept)));
    return command_print(buf_text(&out));
}

static enum key_fate key_fate(const struct command_line *line)
{
    return line->revoke_keys ? KEYS_ALL : line->revoke_made_keys ? KEYS_MADE : KEYS_NONE;
}

static int set_role(struct people_run *run)
{
    char done[64];
    int code = change(run, &(struct person_change){
                               .kind = PERSON_ROLE, .role = (enum role)run->line->role, .keys = key_fate(run->line)});

    snprintf(done, sizeof done, "is now %s.", role_text((enum role)run->line->role).ptr);
    return code == EXIT_DONE ? print_changed(run, done) : code;
}

int user_role_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, set_role);
}

static int enable(struct people_run *run)
{
    int code = change(run, &(struct person_change){.kind = PERSON_ENABLE});

    return code == EXIT_DONE ? print_changed(run, "can sign in again.") : code;
}

int user_enable_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, enable);
}

static int end_user(struct people_run *run, enum person_change_kind kind, const char *what, const char *done)
{
    static const char *const FATES[] = {
        [KEYS_NONE] = "",
        [KEYS_MADE] = ", and all keys that the user created are revoked for good",
        [KEYS_ALL] = ", and all keys that go back to the user are revoked for good",
    };
    char question[ADMIN_WHY_MAX_BYTES];
    int code;

    snprintf(question, sizeof question, "%s %s. All sessions end%s.", run->email, what, FATES[key_fate(run->line)]);
    code = command_confirm(run->line, question);
    if (code == EXIT_DONE)
        code = change(run, &(struct person_change){.kind = kind, .keys = key_fate(run->line)});
    return code == EXIT_DONE ? print_changed(run, done) : code;
}

static int disable(struct people_run *run)
{
    return end_user(run, PERSON_DISABLE, "cannot sign in any more", "is disabled.");
}

static int remove_user(struct people_run *run)
{
    return end_user(run, PERSON_REMOVE, "is removed", "is removed.");
}

int user_disable_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, disable);
}

int user_remove_run(const struct command_line *line)
{
    return people_run(line, PEOPLE_KNOWN, remove_user);
}
