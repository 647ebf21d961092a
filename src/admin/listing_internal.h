/* Lists that commands print: rows go out as they arrive, so a list may be longer than memory. */
#pragma once
#include "admin/store_client.h"
#include "records/account_store.h"
#include "view/view.h"

enum { LISTING_PAGE = 100 };

struct listing_column {
    const char *title;
    unsigned width; /* in bytes; 0: the last one */
};

/* The first member of what a list command keeps. */
struct listing {
    struct store_client *client;
    bool json;        /* {"data":[…]}, a row on each line; a list that could not be finished is not valid JSON */
    const char *none; /* said on standard error if there was no row: "No key matches." */
    const struct listing_column *columns; /* of rows for people; NULL: none */

    struct buf out;
    struct json_writer writer; /* for rows in JSON */
    size_t rows;
    struct id account, behind; /* behind: the last row of the page, after which the next one begins; empty: none */
    bool has_more;
};

/* On a terminal, the titles of the columns come first. */
void listing_begin(struct listing *listing, const struct command_line *line, struct store_client *client,
                   const char *none, const struct listing_column *columns);
/* The document around the rows, for lists that are only a part of what a command prints. */
void listing_json_begin(struct listing *listing);
void listing_json_end(struct listing *listing);
/* Call first for each row: counts it, and in JSON begins its line. */
void listing_count(struct listing *listing);
/* A row for people. cells: as many as there are columns. */
void listing_row(struct listing *listing, const struct text *cells);
/* Prints pages of the listing's account until there are no more. ask: for rows behind listing->behind. */
MUST_CHECK int listing_pages(struct listing *listing, void (*ask)(struct listing *listing));
/* Call last when a page has come. last: of its rows; NULL: it has none, so nothing can come behind it. */
void listing_paged(struct listing *listing, enum store_result result, const struct id *last, bool has_more);
/* Sends what was printed since. */
MUST_CHECK int listing_flush(struct listing *listing);
/* Ends the list unless code says that it failed, and frees. Returns the exit code. */
MUST_CHECK int listing_end(struct listing *listing, int code);

/* "2026-01-31T12:00:00Z", or `none` for 0. */
enum { TIME_CELL_BYTES = 21 };
struct text time_cell(int64_t ms, const char *none, char storage[TIME_CELL_BYTES]);
/* The same, in 20 columns. */
void print_time_column(struct buf *out, int64_t ms, const char *none);

/* Reads one account. */
MUST_CHECK int account_find(struct store_client *client, const struct id *account, bool *ret_is_known,
                            struct account_row *ret_row);
/* The same; it is an error if there is none. */
MUST_CHECK int account_require(struct store_client *client, const struct id *account, struct account_row *ret_row);
/* The next accounts after that id (empty: from the first). */
enum store_result accounts_page(struct store_client *client, const struct id *behind,
                                struct account_row ret_rows[LISTING_PAGE], size_t *ret_count);
/* Calls visit for one account, which must exist, or for all if account is NULL. Stops when visit returns an exit code
 * other than EXIT_DONE. */
typedef int account_visitor(void *arg, const struct account_row *account);
MUST_CHECK int accounts_walk(struct store_client *client, const struct id *account, account_visitor *visit, void *arg);

/* A command that lists an account (--account) or all: opens the store, prints what visit, whose arg is the listing,
 * adds for each account, and closes it. */
MUST_CHECK int listing_run(struct listing *listing, const struct command_line *line, const char *none,
                           const struct listing_column *columns, account_visitor *visit);

/* --account as an id. ret_account is NULL if the option was not given, else points to storage. */
MUST_CHECK int account_option_read(const struct command_line *line, struct id *storage, const struct id **ret_account);
