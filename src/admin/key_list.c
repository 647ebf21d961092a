/* key list, key show, device list: what an operator needs to find a key. Never a secret or a digest. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "key_selection_internal.h"
#include "listing_internal.h"

#include "records/key_store.h"

#include <stdio.h>

#define ROW_ACCOUNT ROW_TEXT("account", account, "ID", "List only keys of this account.")
#define ROW_STATUS                                                                      \
    {                                                                                   \
        .name = "status", A_CHOICE(COMMAND_OFFSET(status), NULL, "any|active|revoked"), \
        .help = "List only keys in this state."                                         \
    }

static const struct option_row LIST_ROWS[] = {
    ROW_STATUS,
    ROW_FLAG("device", device, "List only keys of devices."),
    ROW_JSON,
};
static const struct option_row DEVICE_LIST_ROWS[] = {ROW_ACCOUNT, ROW_STATUS, ROW_JSON};

const struct option_group KEY_LIST_OPTIONS[] = {OPTIONS_OF(LIST_ROWS), KEY_SELECTION_GROUP, CONNECTION_GROUPS, {0}};
const struct option_group DEVICE_LIST_OPTIONS[] = ADMIN_OPTIONS(DEVICE_LIST_ROWS);

struct key_listing {
    struct listing listing;
    struct key_query query;
    struct key_selection selection;
};

static void list_key(struct listing *listing, const struct key_record *key)
{
    char created[TIME_CELL_BYTES], used[TIME_CELL_BYTES], last4[sizeof "…" + sizeof key->last4];

    listing_count(listing);
    if (listing->json) {
        json_object_begin(&listing->writer);
        view_put_key(&listing->writer, key, VIEW_OPERATOR);
        json_object_end(&listing->writer);
        return;
    }
    snprintf(last4, sizeof last4, "…%s", key->last4);
    listing_row(listing,
                (struct text[]){id_text(&key->id), id_text(&key->account), key_mode_text(key->mode),
                                key->revoked_ms > 0 ? TEXT("revoked")
                                : key->ends_ms > 0  ? TEXT("ending")
                                                    : TEXT("active"),
                                time_cell(key->created_ms, "unknown", created),
                                time_cell(key->last_used_ms, "never used", used), text_of(last4), key_name(key)});
}

/* A page of which every record was altered in Redis has no last id to go on from. */
static void keys_came(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    const struct key_listing *listing = arg;

    for (size_t i = 0; i < count; i++)
        if (key_selection_has(&listing->selection, &keys[i]))
            list_key(arg, &keys[i]);
    listing_paged(arg, result, count > 0 ? &keys[count - 1].id : NULL, has_more);
}

static void ask_for_keys(struct listing *listing)
{
    struct key_listing *keys = (struct key_listing *)listing;

    keys->query.view.account = listing->account;
    keys->query.starting_after = listing->behind;
    key_store_list(listing->client->store, &keys->query, keys_came, listing);
}

static int list_account(void *arg, const struct account_row *account)
{
    struct key_listing *keys = arg;
    int code = key_selection_enter(&keys->selection, keys->listing.client, &account->id);

    keys->listing.account = account->id;
    return code == EXIT_DONE ? listing_pages(&keys->listing, ask_for_keys) : code;
}

static int list_keys(const struct command_line *line, bool only_devices)
{
    static const struct listing_column COLUMNS[] = {{"ID", 30},      {"ACCOUNT", 31},   {"MODE", 4},  {"STATUS", 7},
                                                    {"CREATED", 20}, {"LAST USED", 20}, {"LAST4", 1}, {"NAME", 0}};
    struct key_listing keys = {.query = {.view = {.any_kind = !only_devices, .kind = KEY_DEVICE},
                                         .limit = LISTING_PAGE,
                                         .status = (enum key_status_filter)line->status}};
    int code = key_selection_read(line, &keys.selection);

    keys.query.by_mode = keys.selection.by_mode;
    keys.query.mode = keys.selection.mode;
    if (code == EXIT_DONE)
        code = listing_run(&keys.listing, line, only_devices ? "No device matches." : "No key matches.", COLUMNS,
                           list_account);
    key_selection_finish(&keys.selection);
    return code;
}

int key_list_run(const struct command_line *line)
{
    return list_keys(line, line->device);
}

int device_list_run(const struct command_line *line)
{
    return list_keys(line, true);
}

/* key show */

struct key_showing {
    struct store_client *client;
    const struct id *id;
    bool json;
    struct buf out;
};

static void show_json(struct buf *out, const struct key_shown *shown)
{
    struct json_writer w = {.out = out};

    json_object_begin(&w);
    view_put_key(&w, &shown->key, VIEW_OPERATOR);
    view_put_text_or_null(&w, "account_name", shown->account_name);
    view_put_text_or_null(&w, "created_by_name", shown->by_name);
    json_line_end(&w);
}

static void show_names(struct buf *out, const char *label, struct text id, struct text name)
{
    buf_printf(out, "%-10s %.*s", label, TEXT_ARG(id));
    if (name.len > 0) {
        buf_append_str(out, " (");
        buf_append_printable(out, name);
        buf_append_char(out, ')');
    }
    buf_append_char(out, '\n');
}

static void show_time(struct buf *out, const char *label, int64_t ms, const char *none)
{
    buf_printf(out, "%-10s ", label);
    print_time_column(out, ms, none);
    while (out->len > 0 && out->ptr[out->len - 1] == ' ')
        out->len--;
    buf_append_char(out, '\n');
}

static void show_lines(struct buf *out, const struct key_shown *shown)
{
    const struct key_record *key = &shown->key;

    show_names(out, "Key", id_text(&key->id), key_name(key));
    show_names(out, "Account", id_text(&key->account), shown->account_name);
    buf_printf(out, "%-10s %s\n", "Kind", key->kind == KEY_DEVICE ? "device key" : "API key");
    buf_printf(out, "%-10s %.*s\n", "Mode", TEXT_ARG(key_mode_text(key->mode)));
    buf_printf(out, "%-10s ", "Scopes");
    scope_print(key->scopes, ' ', out);
    buf_printf(out, "\n%-10s …%s\n", "Secret", key->last4);
    show_time(out, "Created", key->created_ms, "unknown");
    show_names(out, "By", key->by.text[0] ? id_text(&key->by) : TEXT("unknown"), shown->by_name);
    if (key->origin.text[0] && !id_equal(&key->origin, &key->by))
        show_names(out, "Back to", id_text(&key->origin), TEXT(""));
    show_time(out, "Last used", key->last_used_ms, "never");
    show_time(out, "Revoked", key->revoked_ms, "no");
    if (key->ends_ms > 0)
        show_time(out, "Revoke at", key->ends_ms, "");
}

static void key_was_found(void *arg, enum store_result result, const struct key_shown *shown)
{
    struct key_showing *showing = arg;

    if (result == STORE_OK && showing->json)
        show_json(&showing->out, shown);
    else if (result == STORE_OK)
        show_lines(&showing->out, shown);
    store_client_answer(showing->client, result);
}

static enum store_result show_here(struct store_client *client, void *arg)
{
    struct key_showing *showing = arg;

    key_store_show(client->store, showing->id, key_was_found, showing);
    return store_client_result(client);
}

/* Prints what was shown, or explains the result. */
static int showing_end(struct key_showing *showing, enum store_result result)
{
    static const struct store_refusals REFUSALS = {.not_found =
                                                       "there is no key with this id; 'chatelaine key list' shows all"};
    int code = store_client_explain(showing->client, result, &REFUSALS);

    if (code == EXIT_DONE)
        code = command_print(buf_text(&showing->out));
    buf_finish(&showing->out);
    return code;
}

int key_show_by_id(struct store_client *client, const struct command_line *line, const struct id *id)
{
    struct key_showing showing = {.client = client, .id = id, .json = line->json};

    buf_init(&showing.out, ADMIN_OUTPUT_MAX_BYTES);
    return showing_end(&showing, show_here(client, &showing));
}

int key_show_run(const struct command_line *line)
{
    struct store_client client;
    struct id id;
    struct key_showing showing = {.client = &client, .id = &id, .json = line->json};
    int code = key_operand_read(line->operands[0], &id);

    if (code == EXIT_DONE)
        code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    buf_init(&showing.out, ADMIN_OUTPUT_MAX_BYTES);
    code = showing_end(&showing, store_client_ask_each(&client, show_here, &showing));
    store_client_close(&client);
    return code;
}
