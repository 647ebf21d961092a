#include "listing_internal.h"

#include "admin_internal.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LISTING_MAX_BYTES = 4 * 1024 * 1024, TIME_COLUMNS = 20, SECONDS_CHARS = 19 };

void listing_begin(struct listing *listing, const struct command_line *line, struct store_client *client,
                   const char *none)
{
    *listing = (struct listing){.client = client, .json = line->json, .none = none};
    buf_init(&listing->out, LISTING_MAX_BYTES);
    listing->writer.out = &listing->out;
    if (!listing->json)
        return;
    json_object_begin(&listing->writer);
    json_key(&listing->writer, "data");
    json_array_begin(&listing->writer);
}

void listing_head(struct listing *listing, const char *columns)
{
    if (!listing->json && isatty(STDOUT_FILENO))
        buf_printf(&listing->out, "%s\n", columns);
}

int listing_flush(struct listing *listing)
{
    int code = command_print(buf_text(&listing->out));

    buf_clear(&listing->out);
    return code;
}

int listing_end(struct listing *listing, int code)
{
    if (code == EXIT_DONE && listing->json) {
        json_array_end(&listing->writer);
        json_object_end(&listing->writer);
        buf_append_char(&listing->out, '\n');
    }
    if (code == EXIT_DONE)
        code = listing_flush(listing);
    if (code == EXIT_DONE && listing->rows == 0 && !listing->json)
        fprintf(stderr, "%s\n", listing->none);
    buf_finish(&listing->out);
    return code;
}

void print_time_column(struct buf *out, int64_t ms, const char *none)
{
    char text[CLOCK_RFC3339_BYTES];

    if (ms <= 0) {
        buf_printf(out, "%-*s", TIME_COLUMNS, none);
        return;
    }
    clock_print_rfc3339(ms, text);
    buf_printf(out, "%.*sZ", SECONDS_CHARS, text);
}

void put_time_member(struct json_writer *w, const char *name, int64_t ms)
{
    char text[CLOCK_RFC3339_BYTES];

    if (ms > 0)
        clock_print_rfc3339(ms, text);
    put_text_member(w, name, ms > 0 ? text_of(text) : TEXT(""));
}

void put_text_member(struct json_writer *w, const char *name, struct text value)
{
    json_key(w, name);
    if (value.len > 0)
        json_put_text(w, value);
    else
        json_put_null(w);
}

/* Accounts */

struct search {
    struct store_client *client;
    enum store_result result;
    struct account_row *row;
};

static void account_searched(void *arg, enum store_result result, const struct account_row *account)
{
    struct search *search = arg;

    search->result = result;
    if (result == STORE_OK)
        *search->row = *account;
    store_client_done(search->client);
}

int account_find(struct store_client *client, const struct id *account, bool *ret_is_known, struct account_row *ret_row)
{
    struct search search = {.client = client, .row = ret_row};

    store_client_choose(client, account);
    account_store_find(client->store, account, account_searched, &search);
    store_client_wait(client);
    *ret_is_known = search.result == STORE_OK;
    return search.result == STORE_NOT_FOUND ? EXIT_DONE : store_client_explain(client, search.result, NULL);
}

struct page {
    struct store_client *client;
    enum store_result result;
    struct account_row *rows; /* of all partitions so far */
    size_t count, room;
};

static void accounts_paged(void *arg, enum store_result result, const struct account_row *accounts, size_t count)
{
    struct page *page = arg;

    page->result = result;
    if (count > page->room - page->count)
        count = page->room - page->count;
    if (count > 0)
        memcpy(page->rows + page->count, accounts, count * sizeof *accounts);
    page->count += count;
    store_client_done(page->client);
}

static int compare_accounts(const void *a, const void *b)
{
    return strcmp(((const struct account_row *)a)->id.text, ((const struct account_row *)b)->id.text);
}

enum store_result accounts_page(struct store_client *client, const struct id *behind,
                                struct account_row ret_rows[LISTING_PAGE], size_t *ret_count)
{
    unsigned partitions = partitions_count(client->partitions);
    struct page page = {.client = client, .result = STORE_OK, .room = (size_t)partitions * LISTING_PAGE};

    page.rows = mem_alloc(page.room * sizeof *page.rows);
    for (unsigned i = 0; i < partitions && page.result == STORE_OK; i++) {
        client->store = partitions_at(client->partitions, i);
        account_store_list_page(client->store, behind, LISTING_PAGE, accounts_paged, &page);
        store_client_wait(client);
    }
    if (page.count > 0)
        qsort(page.rows, page.count, sizeof *page.rows, compare_accounts);
    *ret_count = page.count < LISTING_PAGE ? page.count : LISTING_PAGE;
    memcpy(ret_rows, page.rows, *ret_count * sizeof *ret_rows);
    free(page.rows);
    return page.result;
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
    bool is_known;

    if (!account)
        return walk_all(client, visit, arg);
    int code = account_find(client, account, &is_known, &row);
    if (code == EXIT_DONE && !is_known)
        return command_fail(EXIT_FAILED, "there is no account %s; 'chatelaine account list' shows all", account->text);
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
