#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/json.h"

static const struct option_row CREATE_ROWS[] = {
    {.name = "name",
     .type = OPTION_TEXT,
     .offset = COMMAND_OFFSET(name),
     .value_name = "NAME",
     .help = "The name of the account, 1 to 200 characters. Required."},
    ROW_JSON,
};
static const struct option_row LIST_ROWS[] = {
    ROW_JSON,
};
static const struct option_table CREATE_TABLE = OPTION_TABLE(CREATE_ROWS);
static const struct option_table LIST_TABLE = OPTION_TABLE(LIST_ROWS);

const struct option_group ACCOUNT_CREATE_OPTIONS[] = ADMIN_OPTIONS(CREATE_TABLE);
const struct option_group ACCOUNT_LIST_OPTIONS[] = ADMIN_OPTIONS(LIST_TABLE);

static void put_account(struct json_writer *w, const struct id *id, struct text name)
{
    json_object_begin(w);
    json_put_member(w, "id", id_text(id));
    json_put_member(w, "name", name);
    json_object_end(w);
}

int account_create_run(const struct command_line *line)
{
    struct store_client client;
    struct buf out CLEANUP(buf_finish) = {0};
    struct id account;
    int code = command_require(line->name, "--name");

    if (code != EXIT_DONE)
        return code;
    if (!account_name_valid(text_of(line->name)))
        return command_fail(
            EXIT_USAGE, "--name must have 1 to 200 characters, not only blanks, and no control or format characters");
    code = store_client_open(&client, &line->settings, NULL);
    if (code != EXIT_DONE)
        return code;
    code = account_add(&client, text_of(line->name), &account);
    store_client_close(&client);
    if (code != EXIT_DONE)
        return code;
    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    if (line->json)
        put_account(&(struct json_writer){.out = &out}, &account, text_of(line->name));
    else
        buf_printf(&out, "Account %s created for %s.\nNext: chatelaine user create --account %s --email EMAIL",
                   account.text, line->name, account.text);
    buf_append_char(&out, '\n');
    return command_print(buf_text(&out));
}

static int list_account(void *arg, const struct account_row *account)
{
    struct listing *listing = arg;

    listing->rows++;
    if (listing->json)
        put_account(&listing->writer, &account->id, text_of(account->name));
    else
        buf_printf(&listing->out, "%-31s  %s\n", account->id.text, account->name);
    return listing->rows % LISTING_PAGE == 0 ? listing_flush(listing) : EXIT_DONE;
}

int account_list_run(const struct command_line *line)
{
    struct store_client client;
    struct listing listing;
    int code = store_client_open(&client, &line->settings, NULL);

    if (code != EXIT_DONE)
        return code;
    listing_begin(&listing, line, &client, "There are no accounts; make one with 'chatelaine account create'.");
    code = listing_end(&listing, accounts_walk(&client, NULL, list_account, &listing));
    store_client_close(&client);
    return code;
}
