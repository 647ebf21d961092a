/* Lists that commands print: rows go out as they arrive, so a list may be longer than memory. */
#pragma once
#include "admin/store_client.h"
#include "base/json.h"
#include "records/account_store.h"

enum { LISTING_PAGE = 100 };

/* Zero it but for the first members. */
struct listing {
    struct store_client *client;
    bool json;        /* {"data":[…]}; a list that could not be finished is not valid JSON */
    const char *none; /* said on standard error if there was no row: "No key matches." */

    struct buf out;
    struct json_writer writer; /* for rows in JSON */
    size_t rows;
    enum store_result result; /* for callbacks */
};

void listing_begin(struct listing *listing, const struct command_line *line, struct store_client *client,
                   const char *none);
/* For people, on a terminal only: the names of the columns. */
void listing_head(struct listing *listing, const char *columns);
/* Sends what was printed since. */
MUST_CHECK int listing_flush(struct listing *listing);
/* Ends the list unless code says that it failed, and frees. Returns the exit code. */
MUST_CHECK int listing_end(struct listing *listing, int code);

/* "2026-01-31T12:00:00Z", or `none` for 0, in 20 columns. */
void print_time_column(struct buf *out, int64_t ms, const char *none);
/* JSON members; 0 is null. */
void put_time_member(struct json_writer *w, const char *name, int64_t ms);
/* Empty is null. */
void put_text_member(struct json_writer *w, const char *name, struct text value);

/* What commands tell of a user and of a key, and an event of the account as a whole object. */
struct key_record;
struct audit_event;
struct person;
void put_person_members(struct json_writer *w, const struct person *person);
void put_key_members(struct json_writer *w, const struct key_record *key);
void put_event(struct json_writer *w, const struct id *account, const struct audit_event *event);

/* Reads one account. */
MUST_CHECK int account_find(struct store_client *client, const struct id *account, bool *ret_is_known,
                            struct account_row *ret_row);
/* The next accounts after that id (empty: from the first). */
enum store_result accounts_page(struct store_client *client, const struct id *behind,
                                struct account_row ret_rows[LISTING_PAGE], size_t *ret_count);
/* Calls visit for one account, which must exist, or for all if account is NULL. Stops when visit returns an exit code
 * other than EXIT_DONE. */
typedef int account_visitor(void *arg, const struct account_row *account);
MUST_CHECK int accounts_walk(struct store_client *client, const struct id *account, account_visitor *visit, void *arg);

/* --account as an id. ret_account is NULL if the option was not given, else points to storage. */
MUST_CHECK int account_option_read(const struct command_line *line, struct id *storage, const struct id **ret_account);
