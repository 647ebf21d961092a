/* usage export: what a bill is made from. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/clock.h"
#include "records/usage_store.h"
#include "view/csv.h"

#include <stdio.h>
#include <string.h>

enum { MS_PER_DAY = 86400000, FIRST_OF_MONTH_AT = 8 };

static const struct option_row ROWS[] = {
    ROW_TEXT("account", account, "ID", "Print only the usage of this account."),
    ROW_TEXT("from", from, "DATE",
             "The first day (UTC): 2026-01-01, 30d. Default, without --to: the first of last month."),
    ROW_TEXT("to", to, "DATE",
             "The last day (UTC): yesterday; at most 366 days in all. Default, without --from: last month's."),
};
const struct option_group USAGE_EXPORT_OPTIONS[] = ADMIN_OPTIONS(ROWS);

struct usage_export {
    struct listing listing;
    struct usage_wanted wanted;
    bool has_head;
};

static void put_row(struct usage_export *export, struct text date, bool is_live, int64_t requests, int64_t refused)
{
    struct csv_writer w = {.out = &export->listing.out};

    if (requests == 0 && refused == 0)
        return;
    export->listing.rows++;
    csv_put(&w, id_text(&export->listing.account));
    csv_put(&w, date);
    csv_put(&w, key_mode_text(is_live ? MODE_LIVE : MODE_TEST));
    csv_put_integer(&w, requests);
    csv_put_integer(&w, view_billable(is_live, requests));
    csv_put_integer(&w, refused);
    csv_end_row(&w);
}

static void usage_came(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                       const struct usage_key *keys UNUSED, size_t key_count UNUSED)
{
    struct usage_export *export = arg;

    for (size_t i = 0; i < day_count; i++) {
        put_row(export, text_of(days[i].date), false, days[i].test_requests, days[i].test_refused);
        put_row(export, text_of(days[i].date), true, days[i].live_requests, days[i].live_refused);
    }
    store_client_answer(export->listing.client, result);
}

static void put_head(struct usage_export *export)
{
    static const char *const COLUMNS[] = {"account", "date", "mode", "requests", "billable", "refused"};
    struct csv_writer w = {.out = &export->listing.out};

    for (size_t i = 0; i < sizeof COLUMNS / sizeof *COLUMNS; i++)
        csv_put(&w, text_of(COLUMNS[i]));
    csv_end_row(&w);
    export->has_head = true;
}

static int export_account(void *arg, const struct account_row *account)
{
    struct usage_export *export = arg;
    struct store_client *client = export->listing.client;

    if (!export->has_head)
        put_head(export);
    export->listing.account = account->id;
    usage_store_read(client->store, &account->id, &export->wanted, usage_came, export);
    const int code = store_client_finish(client, NULL);
    return code == EXIT_DONE ? listing_flush(&export->listing) : code;
}

static int64_t first_of_month(int64_t ms)
{
    char date[CLOCK_DATE_BYTES];
    int64_t first_ms = 0;

    clock_print_date(ms, date);
    memcpy(date + FIRST_OF_MONTH_AT, "01", 2);
    return clock_read_date(text_of(date), &first_ms) ? first_ms : ms;
}

static int read_period(const struct command_line *line, struct usage_wanted *ret)
{
    int64_t to_ms = first_of_month(clock_wall_ms()) - MS_PER_DAY, from_ms = first_of_month(to_ms);

    if (!line->from != !line->to)
        return command_fail(EXIT_USAGE, "give --from and --to, or neither for last month");
    if (line->from) {
        int code = day_option_read("--from", line->from, &from_ms);

        if (code == EXIT_DONE)
            code = day_option_read("--to", line->to, &to_ms);
        if (code != EXIT_DONE)
            return code;
    }
    if (from_ms > to_ms)
        return command_fail(EXIT_USAGE, "--from must not be later than --to");
    if ((to_ms - from_ms) / MS_PER_DAY >= USAGE_DAYS_MAX)
        return command_fail(EXIT_USAGE, "the period has more than %d days", USAGE_DAYS_MAX);
    *ret = (struct usage_wanted){.days = (unsigned)((to_ms - from_ms) / MS_PER_DAY) + 1, .last_ms = to_ms};
    return EXIT_DONE;
}

int usage_export_run(const struct command_line *line)
{
    struct usage_export export = {.has_head = false};
    const int code = read_period(line, &export.wanted);

    if (code != EXIT_DONE)
        return code;
    return listing_run(&export.listing, line, "No usage in this period.", NULL, export_account);
}
