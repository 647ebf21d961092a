#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/clock.h"
#include "base/json.h"
#include "core/label.h"
#include "records/account_state.h"

#include <string.h>

static const struct option_row CREATE_ROWS[] = {
    ROW_TEXT("name", name, "NAME", "The name of the account, 1 to 200 characters. Required."),
    ROW_JSON,
};

const struct option_group ACCOUNT_CREATE_OPTIONS[] = ADMIN_OPTIONS(CREATE_ROWS);

static void put_account(struct json_writer *w, const struct id *id, struct text name, enum account_status status)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(id));
    json_put_member(w, "name", name);
    json_put_member(w, "status", account_status_text(status));
    json_object_end(w);
}

/* Without the full stop: errors of commands have none. */
static int refuse_name(const char *name)
{
    struct buf why = BUF_FIXED(LABEL_WHY_BYTES);

    label_explain(text_of(name), "--name", &why);
    return command_fail(EXIT_USAGE, "%.*s", (int)why.len - 1, why.ptr);
}

int account_create_run(const struct command_line *line)
{
    struct store_client client;
    struct buf out CLEANUP(buf_finish) = {0};
    struct id account;
    int code = command_require(line->name, "--name");

    if (code != EXIT_DONE)
        return code;
    if (!label_valid(text_of(line->name)))
        return refuse_name(line->name);
    code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    code = account_add(&client, text_of(line->name), &account);
    store_client_close(&client);
    if (code != EXIT_DONE)
        return code;
    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    if (line->json)
        put_account(&(struct json_writer){.out = &out}, &account, text_of(line->name), ACCOUNT_ACTIVE);
    else
        buf_printf(&out, "Account %s created for %s.\nNext: chatelaine user create --account %s --email EMAIL",
                   account.text, line->name, account.text);
    buf_append_char(&out, '\n');
    return command_print(buf_text(&out));
}

static int list_account(void *arg, const struct account_row *account)
{
    struct listing *listing = arg;

    listing_count(listing);
    if (listing->json)
        put_account(&listing->writer, &account->id, text_of(account->name), account->status);
    else if (account->status == ACCOUNT_ACTIVE)
        buf_printf(&listing->out, "%-31s  %s\n", account->id.text, account->name);
    else
        buf_printf(&listing->out, "%-31s  %s (%.*s)\n", account->id.text, account->name,
                   TEXT_ARG(account_status_text(account->status)));
    return listing->rows % LISTING_PAGE == 0 ? listing_flush(listing) : EXIT_DONE;
}

int account_list_run(const struct command_line *line)
{
    struct listing listing;

    return listing_run(&listing, line, "There are no accounts; make one with 'chatelaine account create'.", NULL,
                       list_account);
}

/* Commands about one account */

static int read_operand(const char *operand, struct id *ret_id)
{
    if (id_parse(ID_ACCOUNT, text_of(operand), ret_id))
        return EXIT_DONE;
    return command_fail(EXIT_USAGE, "'%s' is not an account id (acct_…); 'chatelaine account list' shows them",
                        operand);
}

int account_run(const struct command_line *line, bool needs_keys, account_act *act)
{
    struct keyring *keyring = NULL;
    struct store_client client;
    struct id account;
    int code = read_operand(line->operands[0], &account);

    if (code == EXIT_DONE && needs_keys)
        keyring = command_keyring(line, &code);
    if (code == EXIT_DONE)
        code = command_open(line, &client, keyring);
    if (code == EXIT_DONE) {
        store_client_choose(&client, &account);
        code = act(line, &client, &account);
        store_client_close(&client);
    }
    keyring_destroy(keyring);
    return code;
}

/* account suspend, account resume */

struct state_change {
    struct store_client *client;
    struct account_suspension *suspension;
};

static void state_changed(void *arg, enum store_result result, const struct account_suspension *suspension)
{
    struct state_change *change = arg;

    if (suspension)
        *change->suspension = *suspension;
    store_client_answer(change->client, result);
}

int account_suspend_now(struct store_client *client, const struct id *account, bool begins_closing,
                        struct account_suspension *ret)
{
    static const struct store_refusals REFUSALS = {
        .not_found = "there is no such account; 'chatelaine account list' shows all",
        .conflict = "the account is closed",
        .refused = "nodes of an earlier version may use this store, and they would go on accepting the account's keys. "
                   "Once every node has this version, run 'chatelaine store upgrade', then try again",
    };
    struct state_change change = {client, ret};

    account_store_suspend(client->store, account, begins_closing, &OPERATOR, state_changed, &change);
    return store_client_finish(client, &REFUSALS);
}

static int resume_now(struct store_client *client, const struct id *account, struct account_suspension *ret)
{
    static const struct store_refusals REFUSALS = {
        .not_found = "there is no such account; 'chatelaine account list' shows all",
        .conflict = "the closing of the account has begun; it cannot be resumed",
    };
    struct state_change change = {client, ret};

    account_store_resume(client->store, account, &OPERATOR, state_changed, &change);
    return store_client_finish(client, &REFUSALS);
}

static void print_suspended(const struct account_suspension *suspension, struct buf *out)
{
    char since[CLOCK_RFC3339_BYTES];

    clock_print_rfc3339(suspension->since_ms, since);
    buf_append_str(out, "Account ");
    buf_append_printable(out, text_of(suspension->name));
    buf_printf(out, " is suspended since %s; no node accepts its keys and sessions.\n", since);
}

static void print_resumed(const struct account_suspension *suspension, struct buf *out)
{
    buf_append_str(out, "Account ");
    buf_append_printable(out, text_of(suspension->name));
    buf_append_str(out, suspension->was_suspended ? " is active again.\n" : " was not suspended.\n");
}

static int print_state(const struct command_line *line, const struct id *account, enum account_status status,
                       const struct account_suspension *suspension)
{
    struct buf out CLEANUP(buf_finish) = BUF_UP_TO(ADMIN_OUTPUT_MAX_BYTES);

    if (line->json) {
        put_account(&(struct json_writer){.out = &out}, account, text_of(suspension->name), status);
        buf_append_char(&out, '\n');
    } else if (status == ACCOUNT_SUSPENDED) {
        print_suspended(suspension, &out);
    } else {
        print_resumed(suspension, &out);
    }
    return command_print(buf_text(&out));
}

static int suspend(const struct command_line *line, struct store_client *client, const struct id *account)
{
    struct account_suspension suspension;
    int code = account_suspend_now(client, account, false, &suspension);

    return code == EXIT_DONE ? print_state(line, account, ACCOUNT_SUSPENDED, &suspension) : code;
}

int account_suspend_run(const struct command_line *line)
{
    return account_run(line, false, suspend);
}

static int resume(const struct command_line *line, struct store_client *client, const struct id *account)
{
    struct account_suspension suspension;
    int code = resume_now(client, account, &suspension);

    return code == EXIT_DONE ? print_state(line, account, ACCOUNT_ACTIVE, &suspension) : code;
}

int account_resume_run(const struct command_line *line)
{
    return account_run(line, false, resume);
}
