/* audit tail: the newest events of one account or of all, and with --follow those that come. Reads are bounded: a page
 * at a time, one call under way, and at most READS_PER_PAUSE calls in PAUSE_MS. */
#include "admin/commands.h"

#include "admin_internal.h"
#include "listing_internal.h"

#include "base/mem.h"
#include "trail/audit_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 1000, PAGE = 100, READS_PER_PAUSE = 50, PAUSE_MS = 250, ROUND_MS = 1000, TYPE_COLUMNS = 24 };

static const struct option_row ROWS[] = {
    ROW_TEXT("account", account, "ID", "Print only events of this account."),
    {.name = "follow",
     A_FLAG(COMMAND_OFFSET(follow)),
     .letter = 'f',
     .help = "Go on and print events as they come, until Ctrl+C. Waits while Redis is away, and misses none."},
    {.name = "lines",
     AN_INTEGER(COMMAND_OFFSET(lines), "20", 0, LINES_MAX),
     .letter = 'n',
     .help = "Begin with the N newest events."},
    ROW_FLAG("json", json, "Print JSON, one event per line."),
};
const struct option_group AUDIT_TAIL_OPTIONS[] = ADMIN_OPTIONS(ROWS);

/* An event, printed. */
struct line {
    int64_t ms;
    char *text;
};

struct trail {
    struct id account;
    struct audit_position position;
};

struct audit_tail {
    struct store_client *client;
    const struct command_line *line;
    const struct id *account; /* NULL: all */
    struct trail *trails;     /* sorted by account */
    size_t trail_count, trail_room;
    struct line *lines; /* the newest of all accounts so far, oldest first */
    size_t line_count, lines_max;
    struct buf out;
    unsigned reads; /* since the last pause */
    bool is_first_round;
    bool is_away; /* Redis, as last told */

    struct trail *current;
    bool has_more;
};

/* Printing */

/* "  label id (name)", or nothing if both are empty. */
static void print_who(struct buf *out, const char *label, struct text id, struct text name)
{
    if (id.len == 0)
        return;
    buf_printf(out, "  %s", label);
    buf_append_printable(out, id);
    if (name.len == 0)
        return;
    buf_append_str(out, " (");
    buf_append_printable(out, name);
    buf_append_char(out, ')');
}

static void print_text(struct buf *out, const struct id *account, const struct audit_event *event)
{
    print_time_column(out, event->created_ms, "unknown");
    buf_printf(out, "  %s  ", account->text);
    size_t from = out->len;
    buf_append_printable(out, event->type);
    while (out->len - from < TYPE_COLUMNS)
        buf_append_char(out, ' ');
    print_who(out, "", event->target, event->target_name);
    print_who(out, "by ", event->actor, event->actor_name);
    print_who(out, "from ", event->ip, TEXT(""));
    print_who(out, "request ", event->request_id, TEXT(""));
    if (event->count > 0)
        buf_printf(out, "  %" PRId64 " times", event->count);
    for (size_t i = 0; i < event->data_count; i++) {
        buf_append_str(out, "  ");
        buf_append_printable(out, event->data[i].name);
        buf_append_char(out, '=');
        buf_append_printable(out, event->data[i].value);
    }
}

static void print_event(const struct audit_tail *tail, struct buf *out, const struct audit_event *event)
{
    if (tail->line->json)
        view_event(&(struct json_writer){.out = out}, &tail->current->account, event);
    else
        print_text(out, &tail->current->account, event);
    buf_append_char(out, '\n');
}

/* The newest events: all accounts' are merged, and only as many kept as will be printed. */

static void keep(struct audit_tail *tail, const struct audit_event *event)
{
    size_t at = tail->line_count;
    struct buf out;

    while (at > 0 && tail->lines[at - 1].ms > event->created_ms)
        at--;
    if (tail->line_count == tail->lines_max) {
        if (at == 0)
            return;
        free(tail->lines[0].text);
        memmove(tail->lines, tail->lines + 1, (--at) * sizeof *tail->lines);
    } else {
        memmove(tail->lines + at + 1, tail->lines + at, (tail->line_count++ - at) * sizeof *tail->lines);
    }
    buf_init(&out, ADMIN_OUTPUT_MAX_BYTES);
    print_event(tail, &out, event);
    buf_append_char(&out, '\0');
    tail->lines[at] = (struct line){event->created_ms, out.ptr};
}

static int print_kept(struct audit_tail *tail)
{
    for (size_t i = 0; i < tail->line_count; i++) {
        buf_append_str(&tail->out, tail->lines[i].text);
        free(tail->lines[i].text);
    }
    tail->line_count = 0;
    int code = command_print(buf_text(&tail->out));
    buf_clear(&tail->out);
    return code;
}

/* Calls */

/* Pauses between calls, so that many accounts do not mean many calls a second. */
static void pace(struct audit_tail *tail)
{
    if (++tail->reads < READS_PER_PAUSE)
        return;
    tail->reads = 0;
    store_client_pause(tail->client, PAUSE_MS);
}

/* The first page, newest first. If there are fewer events than asked for, a class that is not among them is empty.
 * Otherwise its entries are all older than the last event here. */
static void newest_listed(void *arg, enum store_result result, const struct audit_page *page)
{
    struct audit_tail *tail = arg;

    for (size_t i = page->count; i-- > 0;) {
        audit_position_note(&tail->current->position, &page->events[i].id);
        if (tail->lines_max > 0)
            keep(tail, &page->events[i]);
    }
    if (page->has_more && page->count > 0)
        audit_position_skip_until(&tail->current->position, page->events[page->count - 1].created_ms);
    store_client_answer(tail->client, result);
}

static void newer_listed(void *arg, enum store_result result, const struct audit_event *events, size_t count,
                         bool has_more)
{
    struct audit_tail *tail = arg;

    tail->has_more = has_more;
    for (size_t i = 0; i < count; i++) {
        audit_position_note(&tail->current->position, &events[i].id);
        print_event(tail, &tail->out, &events[i]);
    }
    store_client_answer(tail->client, result);
}

/* --follow outlasts a Redis that is away; it is told once each way. */
static int note_result(struct audit_tail *tail)
{
    bool is_away = tail->client->result == STORE_UNAVAILABLE || tail->client->result == STORE_UNKNOWN;

    if (!tail->line->follow || !(is_away || tail->client->result == STORE_OK))
        return store_client_explain(tail->client, tail->client->result, NULL);
    if (is_away && !tail->is_away)
        fprintf(stderr, "Redis is away. %s Waiting; no event will be missed.\n", store_trouble(tail->client->store));
    else if (!is_away && tail->is_away)
        fprintf(stderr, "Redis answers again.\n");
    tail->is_away = is_away;
    return EXIT_DONE;
}

static int read_newest(struct audit_tail *tail)
{
    unsigned wanted = tail->line->lines > 0 ? (unsigned)tail->line->lines : 1;

    audit_store_search(tail->client->store, &tail->current->account, NULL, wanted, NULL, newest_listed, tail);
    store_client_wait(tail->client);
    pace(tail);
    return store_client_explain(tail->client, tail->client->result, NULL);
}

static int read_newer(struct audit_tail *tail)
{
    int code;

    do {
        tail->has_more = false;
        audit_store_follow(tail->client->store, &tail->current->account, PAGE, &tail->current->position, newer_listed,
                           tail);
        store_client_wait(tail->client);
        pace(tail);
        code = note_result(tail);
        if (code == EXIT_DONE && tail->out.len > 0)
            code = command_print(buf_text(&tail->out));
        buf_clear(&tail->out);
    } while (code == EXIT_DONE && tail->has_more);
    return code;
}

/* Accounts */

static int compare(const void *account, const void *trail)
{
    return strcmp(((const struct id *)account)->text, ((const struct trail *)trail)->account.text);
}

/* Accounts come in order, so a new one nearly always goes to the end. */
static struct trail *add_trail(struct audit_tail *tail, const struct id *account)
{
    size_t at = tail->trail_count;

    tail->trails = mem_grow(tail->trails, at, &tail->trail_room, sizeof *tail->trails);
    while (at > 0 && compare(account, &tail->trails[at - 1]) < 0)
        at--;
    memmove(tail->trails + at + 1, tail->trails + at, (tail->trail_count++ - at) * sizeof *tail->trails);
    tail->trails[at] = (struct trail){.account = *account};
    return &tail->trails[at];
}

/* An account that was made after the first round is followed from its first event. */
static int visit_account(void *arg, const struct account_row *account)
{
    struct audit_tail *tail = arg;
    struct trail *known = tail->trail_count == 0
                              ? NULL
                              : bsearch(&account->id, tail->trails, tail->trail_count, sizeof *tail->trails, compare);

    store_client_choose(tail->client, &account->id);
    tail->current = known ? known : add_trail(tail, &account->id);
    return tail->is_first_round ? read_newest(tail) : read_newer(tail);
}

/* Ends early while Redis is away: the next round starts again. */
static int follow_all(struct audit_tail *tail)
{
    struct account_row *rows = mem_alloc(LISTING_PAGE * sizeof *rows);
    struct id behind = {0};
    size_t count;
    int code;

    do {
        tail->client->result = accounts_page(tail->client, &behind, rows, &count);
        code = note_result(tail);
        for (size_t i = 0; i < count && code == EXIT_DONE && !tail->is_away; i++) {
            code = visit_account(tail, &rows[i]);
            behind = rows[i].id;
        }
        pace(tail);
    } while (code == EXIT_DONE && !tail->is_away && count == LISTING_PAGE);
    free(rows);
    return code;
}

static int follow(struct audit_tail *tail)
{
    int code = EXIT_DONE;

    tail->is_first_round = false;
    while (code == EXIT_DONE) {
        store_client_pause(tail->client, ROUND_MS);
        if (tail->account) {
            tail->current = tail->trails;
            code = read_newer(tail);
        } else {
            code = follow_all(tail);
        }
    }
    return code;
}

int audit_tail_run(const struct command_line *line)
{
    struct store_client client;
    struct audit_tail tail = {.client = &client, .line = line, .is_first_round = true};
    struct id storage;
    int code = account_option_read(line, &storage, &tail.account);

    if (code == EXIT_DONE)
        code = command_open(line, &client, NULL);
    if (code != EXIT_DONE)
        return code;
    buf_init(&tail.out, ADMIN_OUTPUT_MAX_BYTES);
    tail.lines_max = (size_t)line->lines;
    tail.lines = mem_alloc((tail.lines_max + 1) * sizeof *tail.lines);
    code = accounts_walk(&client, tail.account, visit_account, &tail);
    if (code == EXIT_DONE)
        code = print_kept(&tail);
    if (code == EXIT_DONE && line->follow)
        code = follow(&tail);
    for (size_t i = 0; i < tail.line_count; i++)
        free(tail.lines[i].text);
    free(tail.lines);
    free(tail.trails);
    buf_finish(&tail.out);
    store_client_close(&client);
    return code;
}
