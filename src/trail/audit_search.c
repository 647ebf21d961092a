#include "trail/audit_search.h"

#include "trail/audit_events.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/list.h"
#include "base/mem.h"
#include "engine/verb.h"
#include <stdlib.h>

enum {
    /* A slice takes about 1 ms of Redis: 9 us for an entry that is read, 34 us for an event that is found, whose names
     * are looked up. */
    SLICE_ENTRIES = 120,
    SLICE_EVENTS = 34,
    SLICES_MAX = 800, /* in one search: some 65,000 entries or more */
    NAME_BYTES = 48,
    TEXTS_FIRST_BYTES = 4096,
    /* After a slice that has not ended its search, Redis is left alone as long as the slice took. */
    PAUSE_MIN_MS = 1,
    PAUSE_MAX_MS = 50,
};

struct audit_searches {
    struct store *store;
    struct list waiting; /* struct audit_search */
    bool is_slice_sent;
    bool is_pausing;
    uint64_t sent_ns;
    uv_timer_t pause;
    void (*closed)(void *arg);
    void *closed_arg;
};

struct audit_search {
    struct list in_waiting;
    struct audit_searches *all;
    struct id account;
    struct audit_owner owner;
    const struct audit_filter *filter;
    unsigned limit, slices;
    char position[NAME_BYTES]; /* where the next slice begins; empty: at the newest event, or the trail has ended */
    struct id reached;         /* the event of that name */
    struct audit_event *events;
    size_t count;
    struct arena texts; /* of the events */
    audit_found *done;
    void *arg;
    _Alignas(16) char first_texts[TEXTS_FIRST_BYTES];
};

static void send_next(struct audit_searches *searches);
static void fail(struct audit_search *search, enum store_result result);
static void on_pause_over(uv_timer_t *timer);
static void slice_called(void *arg, enum store_result result, const struct redis_reply *reply);

static void *searches_create(struct store *store)
{
    struct audit_searches *searches = mem_alloc(sizeof *searches);

    searches->store = store;
    list_init(&searches->waiting);
    CHECK(uv_timer_init(store_loop(store), &searches->pause) == 0);
    searches->pause.data = searches;
    return searches;
}

void audit_store_search(struct store *store, const struct id *account, const struct audit_filter *filter,
                        unsigned limit, const struct id *starting_after, audit_found *done, void *arg)
{
    static const struct audit_filter EVERYTHING = {0};
    struct audit_searches *searches = store_part(store, &AUDIT_SEARCHES);
    struct audit_search *search = mem_alloc(sizeof *search);
    struct buf position;

    CHECK(limit > 0);
    search->all = searches;
    search->account = *account;
    search->owner = audit_owner_of(account);
    search->filter = filter ? filter : &EVERYTHING;
    search->limit = limit;
    search->done = done;
    search->arg = arg;
    search->events = mem_alloc((limit + 1) * sizeof *search->events);
    arena_init(&search->texts, search->first_texts, sizeof search->first_texts);
    buf_init_fixed(&position, search->position, sizeof search->position - 1);
    if (starting_after && starting_after->text[0] != '\0')
        audit_print_name(starting_after, &search->owner, &position);
    list_append(&searches->waiting, &search->in_waiting);
    send_next(searches);
}

/* Slices */

static void add_address(struct script_args *args, const struct audit_filter *filter)
{
    size_t from = args->printed.len;

    buf_printf(&args->printed, "%u ", filter->address_bits);
    encode_hex(&args->printed, filter->address.bytes, sizeof filter->address.bytes);
    args_add(args, text_skip(buf_text(&args->printed), from));
}

static void send_slice(struct audit_search *search)
{
    const struct audit_filter *filter = search->filter;
    const size_t wanted = search->limit + 1 - search->count;
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&search->account));
    args_add_int(&args, wanted < SLICE_EVENTS ? (int64_t)wanted : SLICE_EVENTS);
    args_add(&args, text_of(search->position));
    args_add_int(&args, SLICE_ENTRIES);
    args_add(&args, filter->type);
    args_add(&args, filter->actor);
    args_add(&args, filter->target);
    if (filter->by_address)
        add_address(&args, filter);
    else
        args_add(&args, TEXT(""));
    args_add_time(&args, filter->since_ms);
    args_add_time(&args, filter->until_ms);
    args_add(&args, filter->test_keys_only ? TEXT("1") : TEXT("0"));
    args_add(&args, filter->reader ? filter->reader->actor : TEXT(""));
    if (filter->reader)
        args_add_credential(&args, &filter->reader->credential);
    else
        args_add(&args, TEXT(""));
    search->slices++;
    store_call_script(search->all->store, SCRIPT_audit_search, SCRIPT_WORK, args.count, args.argv, slice_called,
                      search);
}

/* NULL: none waits that anybody wants. Each gets a first slice: a search never ends inside the call that begins it. */
static struct audit_search *next_wanted(struct audit_searches *searches)
{
    struct list *node;

    while ((node = list_first(&searches->waiting))) {
        struct audit_search *search = LIST_ENTRY(node, struct audit_search, in_waiting);

        list_remove(node);
        if (search->slices == 0 || !search->filter->is_wanted || search->filter->is_wanted(search->filter->arg))
            return search;
        fail(search, STORE_UNAVAILABLE);
    }
    return NULL;
}

static void send_next(struct audit_searches *searches)
{
    struct audit_search *search = searches->is_slice_sent || searches->is_pausing ? NULL : next_wanted(searches);

    if (!search)
        return;
    searches->is_slice_sent = true;
    searches->sent_ns = clock_boot_ns();
    send_slice(search);
}

static void pause_begin(struct audit_searches *searches)
{
    uint64_t ms = (clock_boot_ns() - searches->sent_ns) / CLOCK_NS_PER_MS + PAUSE_MIN_MS;

    searches->is_pausing = true;
    uv_timer_start(&searches->pause, on_pause_over, ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS, 0);
}

static void on_pause_over(uv_timer_t *timer)
{
    struct audit_searches *searches = timer->data;

    searches->is_pausing = false;
    send_next(searches);
}

/* The reply is freed after its slice, the events are kept until their search ends. */
static void keep_texts(struct audit_search *search, struct audit_event *event)
{
    struct text *const texts[] = {&event->type,       &event->actor,      &event->target,      &event->ip,
                                  &event->request_id, &event->actor_name, &event->target_name, &event->target_kind};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_copy(&search->texts, *texts[i]);
    for (size_t i = 0; i < event->data_count; i++) {
        event->data[i].name = arena_copy(&search->texts, event->data[i].name);
        event->data[i].value = arena_copy(&search->texts, event->data[i].value);
    }
}

static bool read_slice(struct audit_search *search, const struct redis_reply *reply)
{
    struct text position;

    if (reply->count < 1 || reply->count - 1 > search->limit + 1 - search->count ||
        !reply_text(reply_at(reply, 0), &position) || position.len >= sizeof search->position ||
        (position.len > 0 && !audit_read_name(position, &search->owner, &search->reached)))
        return false;
    for (size_t i = 1; i < reply->count; i++) {
        struct audit_event *event = &search->events[search->count];

        if (!audit_read_event(reply_at(reply, i), &search->owner, event))
            return false;
        keep_texts(search, event);
        search->count++;
    }
    memcpy(search->position, position.ptr, position.len);
    search->position[position.len] = '\0';
    return true;
}

/* Ends */

static void search_free(struct audit_search *search)
{
    arena_finish(&search->texts);
    free(search->events);
    free(search);
}

static void fail(struct audit_search *search, enum store_result result)
{
    search->done(search->arg, result, &(struct audit_page){0});
    search_free(search);
}

static void succeed(struct audit_search *search)
{
    struct audit_page page = {.events = search->events, .count = search->count};

    if (search->count > search->limit) {
        page.count = search->limit;
        page.has_more = true;
        page.next = search->events[search->limit - 1].id;
    } else if (search->position[0] != '\0') {
        page.has_more = true;
        page.next = search->reached;
    }
    search->done(search->arg, STORE_OK, &page);
    search_free(search);
}

static bool is_over(const struct audit_search *search)
{
    return search->count > search->limit || search->position[0] == '\0' || search->slices >= SLICES_MAX;
}

static void slice_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct audit_search *search = arg;
    struct audit_searches *searches = search->all;

    searches->is_slice_sent = false;
    if (result == STORE_OK && !read_slice(search, reply)) {
        store_malformed(searches->store, "audit trail");
        result = STORE_UNAVAILABLE;
    }
    if (result != STORE_OK) {
        fail(search, result);
    } else if (is_over(search)) {
        succeed(search);
    } else {
        list_append(&searches->waiting, &search->in_waiting);
        pause_begin(searches);
    }
    send_next(searches);
}

static void on_pause_closed(uv_handle_t *handle)
{
    struct audit_searches *searches = handle->data;
    void (*closed)(void *arg) = searches->closed;
    void *arg = searches->closed_arg;

    free(searches);
    closed(arg);
}

/* Fails the searches that wait for their turn. */
static void searches_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct audit_searches *searches = made;
    struct list *node;

    CHECK(!searches->is_slice_sent);
    searches->closed = closed;
    searches->closed_arg = arg;
    while ((node = list_first(&searches->waiting))) {
        list_remove(node);
        fail(LIST_ENTRY(node, struct audit_search, in_waiting), STORE_UNAVAILABLE);
    }
    uv_close((uv_handle_t *)&searches->pause, on_pause_closed);
}

const struct store_part AUDIT_SEARCHES = {.create = searches_create, .close = searches_close};
