#include "admin/commands.h"

#include "admin_internal.h"

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

struct listing {
    struct store_client *client;
    bool json;
    enum store_result result;
    struct buf out;
};

static void account_list_json(struct buf *out, const struct account_row *accounts, size_t count)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    json_key(&w, "data");
    json_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        put_account(&w, &accounts[i].id, text_of(accounts[i].name));
    json_array_end(&w);
    json_object_end(&w);
    buf_append_char(out, '\n');
}

static void account_listed(void *arg, enum store_result result, const struct account_row *accounts, size_t count)
{
    struct listing *listing = arg;

    listing->result = result;
    if (result == STORE_OK && listing->json)
        account_list_json(&listing->out, accounts, count);
    else if (result == STORE_OK)
        for (size_t i = 0; i < count; i++)
            buf_printf(&listing->out, "%-31s  %s\n", accounts[i].id.text, accounts[i].name);
    store_client_done(listing->client);
}

int account_list_run(const struct command_line *line)
{
    struct store_client client;
    struct listing listing = {.client = &client, .json = line->json};
    int code = store_client_open(&client, &line->settings, NULL);

    if (code != EXIT_DONE)
        return code;
    buf_init(&listing.out, ADMIN_OUTPUT_MAX_BYTES);
    account_store_list(client.store, account_listed, &listing);
    store_client_wait(&client);
    code = store_client_explain(&client, listing.result, NULL);
    if (code == EXIT_DONE)
        code = command_print(buf_text(&listing.out));
    buf_finish(&listing.out);
    store_client_close(&client);
    return code;
}
