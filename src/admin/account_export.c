/* account export: what the store holds of an account, without a secret, one JSON object a line. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/mem.h"
#include "trail/audit_store.h"
#include "records/key_store.h"
#include "records/people_store.h"
#include "records/usage_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option_row ROWS[] = {
    ROW_TEXT("output", file, "PATH",
             "Write to this new file, which only its owner can read. Without it: to standard output."),
};
const struct option_group ACCOUNT_EXPORT_OPTIONS[] = ADMIN_OPTIONS(ROWS);

enum { PAGE_MAX_BYTES = 4 * 1024 * 1024, FILE_MODE = 0600 };

struct export
{
    struct store_client *client;
    const struct id *account;
    FILE *file;
    struct buf out; /* a page */
    bool has_more;
    struct id last; /* of the page, behind which the next one begins */
};

/* Lines */

static struct json_writer line_begin(struct export *export, const char *type)
{
    struct json_writer w = {.out = &export->out};

    json_object_begin(&w);
    json_put_member(&w, "type", text_of(type));
    return w;
}

static int flush(struct export *export)
{
    bool is_whole = !export->out.failed;
    bool is_written = fwrite(export->out.ptr, 1, export->out.len, export->file) == export->out.len;

    buf_clear(&export->out);
    if (is_whole && is_written && fflush(export->file) == 0)
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "cannot write the export: %s", is_whole ? strerror(errno) : "a page is too long");
}

/* Asks for pages, and writes them. */
static int export_pages(struct export *export, void (*ask)(struct export *export))
{
    int code;

    export->last = (struct id){0};
    do {
        export->has_more = false;
        ask(export);
        code = store_client_finish(export->client, NULL);
        if (code == EXIT_DONE)
            code = flush(export);
    } while (code == EXIT_DONE && export->has_more);
    return code;
}

static int export_account(struct export *export, const struct account_row *row)
{
    struct json_writer w = line_begin(export, "account");

    json_put_member(&w, "id", id_text(&row->id));
    json_put_member(&w, "name", text_of(row->name));
    json_put_member(&w, "status", account_status_text(row->status));
    view_put_time_or_null(&w, "created_at", id_time_ms(&row->id));
    json_line_end(&w);
    return flush(export);
}

static void people_came(void *arg, enum store_result result, const struct person *people, size_t count, bool has_more)
{
    struct export *export = arg;

    export->has_more = has_more && count > 0;
    for (size_t i = 0; i < count; i++) {
        struct json_writer w = line_begin(export, "user");

        view_put_person(&w, &people[i], VIEW_OPERATOR);
        json_line_end(&w);
        export->last = people[i].user.id;
    }
    store_client_answer(export->client, result);
}

static void ask_for_users(struct export *export)
{
    people_store_list(export->client->store, export->account, LISTING_PAGE, &export->last, people_came, export);
}

static void keys_came(void *arg, enum store_result result, const struct key_record *keys, size_t count, bool has_more)
{
    struct export *export = arg;

    export->has_more = has_more && count > 0;
    for (size_t i = 0; i < count; i++) {
        struct json_writer w = line_begin(export, "key");

        view_put_key(&w, &keys[i], VIEW_OPERATOR);
        json_line_end(&w);
        export->last = keys[i].id;
    }
    store_client_answer(export->client, result);
}

static void ask_for_keys(struct export *export)
{
    const struct key_query query = {
        .view = {.account = *export->account, .any_kind = true}, .limit = LISTING_PAGE, .starting_after = export->last};

    key_store_list(export->client->store, &query, keys_came, export);
}

static void events_came(void *arg, enum store_result result, const struct audit_page *page)
{
    struct export *export = arg;

    export->has_more = page->has_more;
    export->last = page->next;
    for (size_t i = 0; i < page->count; i++) {
        struct json_writer w = line_begin(export, "event");

        json_key(&w, "event");
        view_event(&w, export->account, &page->events[i]);
        json_line_end(&w);
    }
    store_client_answer(export->client, result);
}

static void ask_for_events(struct export *export)
{
    audit_store_search(export->client->store, export->account, NULL, LISTING_PAGE, &export->last, events_came, export);
}

static void put_day(struct export *export, const char *date, enum key_mode mode, int64_t requests, int64_t refused)
{
    struct json_writer w;

    if (requests == 0 && refused == 0)
        return;
    w = line_begin(export, "usage");
    json_put_member(&w, "date", text_of(date));
    json_put_member(&w, "mode", key_mode_text(mode));
    json_put_number(&w, "requests", requests);
    json_put_number(&w, "refused", refused);
    json_line_end(&w);
}

static void usage_came(void *arg, enum store_result result, const struct usage_day *days, size_t day_count,
                       const struct usage_key *keys, size_t key_count)
{
    struct export *export = arg;

    (void)keys;
    (void)key_count;
    for (size_t i = 0; i < day_count; i++) {
        put_day(export, days[i].date, MODE_TEST, days[i].test_requests, days[i].test_refused);
        put_day(export, days[i].date, MODE_LIVE, days[i].live_requests, days[i].live_refused);
    }
    store_client_answer(export->client, result);
}

static void ask_for_usage(struct export *export)
{
    usage_store_read(export->client->store, export->account, &(struct usage_wanted){.days = USAGE_DAYS_MAX}, usage_came,
                     export);
}

/* The whole. Pages are read one after the other, so what changes meanwhile may be missing. */

static int export_all(struct store_client *client, const struct id *account, FILE *file)
{
    static void (*const PARTS[])(struct export * export) = {ask_for_users, ask_for_keys, ask_for_events, ask_for_usage};
    struct export export = {.client = client, .account = account, .file = file};
    struct account_row row;
    int code = account_require(client, account, &row);

    buf_init(&export.out, PAGE_MAX_BYTES);
    if (code == EXIT_DONE)
        code = export_account(&export, &row);
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS && code == EXIT_DONE; i++)
        code = export_pages(&export, PARTS[i]);
    buf_wipe(&export.out);
    return code;
}

static int sync_and_close(FILE *file, const char *path)
{
    errno = 0;
    bool is_synced = fsync(fileno(file)) == 0;

    if (fclose(file) == 0 && is_synced)
        return EXIT_DONE;
    return command_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
}

/* A file that exists is whole: one that was begun and not finished is removed. */
int account_export_to(struct store_client *client, const struct id *account, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);

    if (fd < 0)
        return command_fail(EXIT_FAILED, "cannot create %s: %s", path, strerror(errno));
    FILE *file = fdopen(fd, "w");
    if (!file) {
        close(fd);
        unlink(path);
        return command_fail(EXIT_FAILED, "cannot write %s: %s", path, strerror(errno));
    }
    int code = export_all(client, account, file);
    int closed = sync_and_close(file, path);
    code = code == EXIT_DONE ? closed : code;
    if (code != EXIT_DONE)
        unlink(path);
    return code;
}

static int write_export(const struct command_line *line, struct store_client *client, const struct id *account)
{
    return line->file ? account_export_to(client, account, line->file) : export_all(client, account, stdout);
}

/* Altered records are left out, by the master keys. */
int account_export_run(const struct command_line *line)
{
    return account_run(line, false, write_export);
}
