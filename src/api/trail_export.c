/* The audit trail as CSV or NDJSON: everything that a search finds, page by page, as fast as the client reads. */
#include "admission_internal.h"
#include "base/clock.h"
#include "core/audit_line.h"
#include "view/csv.h"
#include "http/stream.h"
#include "trail_export_internal.h"
#include "views_internal.h"

#include <string.h>

enum {
    PAGE = LIST_LIMIT_MAX,
    PIECE_MAX_BYTES = 1024 * 1024,
    PER_ACCOUNT_MAX = 2, /* one account must not use up the places of all */
    RETRY_AFTER_S = 10,
};
/* A client that reads as slowly as it may must not keep its place for ever. */
#define EXPORT_MAX_NS (UINT64_C(3600) * 1000 * CLOCK_NS_PER_MS)

struct trail_export {
    struct exchange *exchange;
    const struct event_query *query;
    enum trail_form form;
    struct id next; /* where the next page begins */
    bool has_begun, has_more;
    struct id *place; /* in service.exports */
};

static void page_found(void *arg, enum store_result result, const struct audit_page *page);
static void piece_sent(void *arg);
static void fail(struct trail_export *export, enum store_result result);

/* NULL: the exchange has been refused. */
static struct id *take_place(struct exchange *exchange)
{
    struct id *free_place = NULL;
    unsigned own = 0;

    for (size_t i = 0; i < SERVICE_EXPORTS; i++) {
        struct id *place = &exchange->service->exports[i];

        if (place->text[0] == '\0')
            free_place = place;
        else if (id_equal(place, exchange_account(exchange)))
            own++;
    }
    if (own >= PER_ACCOUNT_MAX) {
        exchange_refuse_throttled(exchange, RETRY_AFTER_S);
        return NULL;
    }
    if (!free_place)
        exchange_refuse(exchange, PROBLEM_OVERLOADED);
    else
        *free_place = *exchange_account(exchange);
    return free_place;
}

/* Also for further pages: while the client reads one, the export has no place at the gate. */
static void find_page(void *arg, enum gate_result result)
{
    struct trail_export *export = arg;
    struct exchange *exchange = export->exchange;

    if (result != GATE_RUN) {
        fail(export, STORE_UNAVAILABLE);
        return;
    }
    audit_store_search(exchange_store(exchange), exchange_account(exchange), &export->query->filter, PAGE,
                       &export->next, page_found, export);
}

void trail_export_begin(struct exchange *exchange, const struct event_query *query, enum trail_form form)
{
    struct id *place = take_place(exchange);
    struct trail_export *export;

    if (!place)
        return;
    export = http_request_alloc(exchange->request, sizeof *export);
    *export = (struct trail_export){exchange, query, form, query->starting_after, .place = place};
    http_request_hold(exchange->request);
    find_page(export, GATE_RUN);
}

static void end(struct trail_export *export)
{
    export->place->text[0] = '\0';
    http_request_release(export->exchange->request);
}

/* Once a part is sent, all that can be said is that it is not the whole. */
static void fail(struct trail_export *export, enum store_result result)
{
    if (export->has_begun)
        http_stream_break(export->exchange->request);
    else if (result == STORE_NOT_FOUND)
        exchange_refuse_value(export->exchange, NO_SUCH_EVENT);
    else
        exchange_refuse_store(export->exchange, result);
    end(export);
}

/* Columns keep their places; new ones are added at the end. */
static void print_csv_head(struct buf *out)
{
    buf_append_str(out, "id,created_at,type,actor,actor_kind,actor_name,target,target_kind,target_name,ip,request_id,"
                        "count,data\r\n");
}

static void print_csv(const struct audit_event *event, struct buf *out)
{
    char created_at[CLOCK_RFC3339_BYTES];
    struct csv_writer w = {.out = out};
    struct buf data CLEANUP(buf_finish);

    buf_init(&data, PIECE_MAX_BYTES);
    if (event->data_count > 0)
        view_event_data(&(struct json_writer){.out = &data}, event);
    clock_print_rfc3339(event->created_ms, created_at);
    const struct text cells[] = {id_text(&event->id),
                                 text_of(created_at),
                                 event->type,
                                 event->actor,
                                 audit_actor_kind(event->actor),
                                 event->actor_name,
                                 event->target,
                                 event->target_kind,
                                 event->target_name,
                                 event->ip,
                                 event->request_id};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        csv_put(&w, cells[i]);
    if (event->count > 0)
        csv_put_integer(&w, event->count);
    else
        csv_put(&w, TEXT(""));
    csv_put(&w, buf_text(&data));
    csv_end_row(&w);
}

static void print_ndjson(const struct audit_event *event, struct buf *out)
{
    view_event(&(struct json_writer){.out = out}, NULL, event);
    buf_append_char(out, '\n');
}

static const char *extension_of(enum trail_form form)
{
    return form == TRAIL_CSV ? "csv" : "ndjson";
}

/* attachment; filename="audit-2026-01-31T120000Z.csv" */
static void name_file(struct trail_export *export)
{
    char now[CLOCK_RFC3339_BYTES];
    struct buf out = BUF_FIXED(96);

    clock_print_rfc3339(http_request_wall_ms(export->exchange->request), now);
    buf_printf(&out, "attachment; filename=\"audit-%.13s%.2s%.2sZ.%s\"", now, now + 14, now + 17,
               extension_of(export->form));
    http_response_header(export->exchange->request, TEXT("Content-Disposition"), buf_text(&out));
}

/* False: the client wants no body. */
static bool begin_body(struct trail_export *export)
{
    static const struct text TYPES[] = {
        [TRAIL_CSV] = TEXT("text/csv; charset=utf-8; header=present"), [TRAIL_NDJSON] = TEXT("application/x-ndjson")};

    name_file(export);
    export->has_begun = true;
    return http_stream_begin(export->exchange->request, 200, TYPES[export->form]);
}

static void print_page(const struct trail_export *export, const struct audit_page *page, bool is_first, struct buf *out)
{
    if (is_first && export->form == TRAIL_CSV)
        print_csv_head(out);
    for (size_t i = 0; i < page->count; i++) {
        if (export->form == TRAIL_CSV)
            print_csv(&page->events[i], out);
        else
            print_ndjson(&page->events[i], out);
    }
}

static void page_found(void *arg, enum store_result result, const struct audit_page *page)
{
    struct trail_export *export = arg;
    bool is_first = !export->has_begun;
    struct buf out CLEANUP(buf_finish);

    admission_rest(export->exchange);
    buf_init(&out, PIECE_MAX_BYTES);
    if (result != STORE_OK) {
        fail(export, result);
        return;
    }
    if (is_first && !begin_body(export)) {
        end(export);
        return;
    }
    print_page(export, page, is_first, &out);
    export->next = page->next;
    export->has_more = page->has_more;
    if (out.failed)
        fail(export, STORE_UNAVAILABLE);
    else if (out.len > 0)
        http_stream_send(export->exchange->request, buf_text(&out), piece_sent, export);
    else
        piece_sent(export);
}

static void piece_sent(void *arg)
{
    struct trail_export *export = arg;
    struct http_request *request = export->exchange->request;

    if (export->has_more && !http_request_gone(request) && http_request_age_ns(request) < EXPORT_MAX_NS) {
        admission_go_on(export->exchange, find_page, export);
        return;
    }
    if (export->has_more)
        http_stream_break(request);
    else
        http_stream_end(request);
    end(export);
}
