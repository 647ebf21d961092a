#include "listing_internal.h"

#include "admin_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTING_MAX_BYTES = 4 * 1024 * 1024, SECONDS_CHARS = 19 };

static void put_cell(struct buf *out, const struct listing_column *column, struct text cell)
{
    size_t begin = out->len;

    buf_append_printable(out, cell);
    for (size_t bytes = out->len - begin; bytes < column->width; bytes++)
        buf_append_char(out, ' ');
    buf_append_str(out, column->width > 0 ? "  " : "\n");
}

void listing_begin(struct listing *listing, const struct command_line *line, struct store_client *client,
                   const char *none, const struct listing_column *columns)
{
    *listing = (struct listing){.client = client, .json = line->json, .none = none, .columns = columns};
    buf_init(&listing->out, LISTING_MAX_BYTES);
    listing->writer.out = &listing->out;
    if (listing->json)
        listing_json_begin(listing);
    else if (columns && isatty(STDOUT_FILENO))
        do
            put_cell(&listing->out, columns, text_of(columns->title));
        while ((columns++)->width > 0);
}

void listing_json_begin(struct listing *listing)
{
    json_object_begin(&listing->writer);
    json_key_array(&listing->writer, "data");
}

void listing_json_end(struct listing *listing)
{
    if (listing->rows > 0)
        buf_append_char(&listing->out, '\n');
    json_array_end(&listing->writer);
    json_line_end(&listing->writer);
}

void listing_count(struct listing *listing)
{
    listing->rows++;
    if (!listing->json)
        return;
    buf_append_str(&listing->out, listing->writer.need_comma ? ",\n" : "\n");
    listing->writer.need_comma = false;
}

void listing_row(struct listing *listing, const struct text *cells)
{
    const struct listing_column *column = listing->columns;

    do
        put_cell(&listing->out, column, *cells++);
    while ((column++)->width > 0);
}

void listing_paged(struct listing *listing, enum store_result result, const struct id *last, bool has_more)
{
    listing->has_more = has_more && last;
    if (last)
        listing->behind = *last;
    store_client_answer(listing->client, result);
}

int listing_pages(struct listing *listing, void (*ask)(struct listing *listing))
{
    int code;

    listing->behind = (struct id){0};
    do {
        ask(listing);
        code = store_client_finish(listing->client, NULL);
        if (code == EXIT_DONE)
            code = listing_flush(listing);
    } while (code == EXIT_DONE && listing->has_more);
    return code;
}

int listing_flush(struct listing *listing)
{
    int code = command_print(buf_text(&listing->out));

    buf_clear(&listing->out);
    return code;
}

int listing_end(struct listing *listing, int code)
{
    if (code == EXIT_DONE && listing->json)
        listing_json_end(listing);
    if (code == EXIT_DONE)
        code = listing_flush(listing);
    if (code == EXIT_DONE && listing->rows == 0 && !listing->json)
        fprintf(stderr, "%s\n", listing->none);
    buf_finish(&listing->out);
    return code;
}

struct text time_cell(int64_t ms, const char *none, char storage[TIME_CELL_BYTES])
{
    char text[CLOCK_RFC3339_BYTES];

    if (ms <= 0)
        return text_of(none);
    clock_print_rfc3339(ms, text);
    snprintf(storage, TIME_CELL_BYTES, "%.*sZ", SECONDS_CHARS, text);
    return text_of(storage);
}

void print_time_column(struct buf *out, int64_t ms, const char *none)
{
    char storage[TIME_CELL_BYTES];

    buf_printf(out, "%-*s", TIME_CELL_BYTES - 1, time_cell(ms, none, storage).ptr);
}

/* Accounts */

struct account_search {
    struct store_client *client;
    struct account_row *row;
};

static void account_searched(void *arg, enum store_result result, const struct account_row *account)
{
    struct account_search *search = arg;

    if (result == STORE_OK)
        *search->row = *account;
    store_client_answer(search->client, result);
}

int account_find(struct store_client *client, const struct id *account, bool *ret_is_known, struct account_row *ret_row)
{
    struct account_search search = {.client = client, .row = ret_row};

    store_client_choose(client, account);
    account_store_find(client->store, account, account_searched, &search);
    *ret_is_known = store_client_result(client) == STORE_OK;
    return client->result == STORE_NOT_FOUND ? EXIT_DONE : store_client_explain(client, client->result, NULL);
}

int account_require(struct store_client *client, const struct id *account, struct account_row *ret_row)
{
    bool is_known;
    int code = account_find(client, account, &is_known, ret_row);

    if (code == EXIT_DONE && !is_known)
        return command_fail(EXIT_FAILED, "there is no account %s; 'chatelaine account list' shows all", account->text);
    return code;
}

struct accounts_page {
    struct store_client *client;
    struct account_row *rows; /* of all partitions so far */
    size_t count, room;
};

static void accounts_paged(void *arg, enum store_result result, const struct account_row *accounts, size_t count)
{
    struct accounts_page *page = arg;

    if (count > page->room - page->count)
        count = page->room - page->count;
    if (count > 0)
        memcpy(page->rows + page->count, accounts, count * sizeof *accounts);
    page->count += count;
    store_client_answer(page->client, result);
}

static int compare_accounts(const void *a, const void *b)
{
    return strcmp(((const struct account_row *)a)->id.text, ((const struct account_row *)b)->id.text);
}

enum store_result accounts_page(struct store_client *client, const struct id *behind,
                                struct account_row ret_rows[LISTING_PAGE], size_t *ret_count)
{
    unsigned partitions = partitions_count(client->partitions);
    struct accounts_page page = {.client = client, .room = (size_t)partitions * LISTING_PAGE};

    client->result = STORE_OK;
    page.rows = mem_alloc(page.room * sizeof *page.rows);
    for (unsigned i = 0; i < partitions && client->result == STORE_OK; i++) {
        client->store = partitions_at(client->partitions, i);
        account_store_list_page(client->store, behind, LISTING_PAGE, accounts_paged, &page);
        store_client_wait(client);
    }
    if (page.count > 0)
        qsort(page.rows, page.count, sizeof *page.rows, compare_accounts);
    *ret_count = page.count < LISTING_PAGE ? page.count : LISTING_PAGE;
    memcpy(ret_rows, page.rows, *ret_count * sizeof *ret_rows);
    free(page.rows);
    return client->result;
}

static int walk_all(struct store_client *client, account_visitor *visit, void *arg)
{
    struct account_row *rows = mem_alloc(LISTING_PAGE * sizeof *rows);
    struct id behind = {0};
    size_t count;
    int code;

    do {
        code = store_client_explain(client, accounts_page(client, &behind, rows, &count), NULL);
        for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
            store_client_choose(client, &rows[i].id);
            code = visit(arg, &rows[i]);
            behind = rows[i].id;
        }
    } while (code == EXIT_DONE && count == LISTING_PAGE);
    free(rows);
    return code;
}

int accounts_walk(struct store_client *client, const struct id *account, account_visitor *visit, void *arg)
{
    struct account_row row;

    if (!account)
        return walk_all(client, visit, arg);
    int code = account_require(client, account, &row);
    return code == EXIT_DONE ? visit(arg, &row) : code;
}

int account_option_read(const struct command_line *line, struct id *storage, const struct id **ret_account)
{
    *ret_account = NULL;
    if (!line->account)
        return EXIT_DONE;
    if (!id_parse(ID_ACCOUNT, text_of(line->account), storage))
        return command_fail(EXIT_USAGE,
                            "--account '%s' is not an account id (acct_…); 'chatelaine account list' shows them",
                            line->account);
    *ret_account = storage;
    return EXIT_DONE;
}

int listing_run(struct listing *listing, const struct command_line *line, const char *none,
                const struct listing_column *columns, account_visitor *visit)
{
    struct store_client client;
    struct id storage;
    const struct id *account;
    int code = account_option_read(line, &storage, &account);

    if (code == EXIT_DONE)
        code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    listing_begin(listing, line, &client, none, columns);
    code = listing_end(listing, accounts_walk(&client, account, visit, listing));
    store_client_close(&client);
    return code;
}
