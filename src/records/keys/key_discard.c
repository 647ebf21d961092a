#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "key_parts.h"
#include "key_reply.h"
#include "key_revoke.h"
#include "records/key_store.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

enum {
    DISCARDS_MAX = 10000, /* about 2 MB: Redis is away for long during a flood of creations */
    DISCARDS_AT_ONCE = 16,
    PAUSE_FIRST_MS = 250,
    PAUSE_MAX_MS = 5000,
    SOURCE_TEXT_BYTES = 72,
};

struct kept_text {
    uint8_t len;
    char chars[SOURCE_TEXT_BYTES];
};

struct key_discard {
    struct list node; /* in waiting, or alone while under way */
    struct key_discards *kept_by;
    struct id id;
    struct kept_text actor, ip, request_id;
};

struct key_discards {
    struct store *store;
    struct list waiting;     /* struct key_discard */
    size_t count, in_flight; /* unanswered ones; those of them that are under way */
    uint64_t pause_ms;       /* the next pause after a failure */
    bool is_pausing;
    bool is_closing;
    uv_timer_t timer;
    bool is_timer_closed;
    void (*closed)(void *arg);
    void *closed_arg;
};

static void discards_send(struct key_discards *discards);
static void on_revoked(void *arg, enum store_result result, const struct redis_reply *reply);
static void on_pause_over(uv_timer_t *timer);
static void on_timer_closed(uv_handle_t *handle);
static void try_end(struct key_discards *discards);

static void *discards_create(struct store *store)
{
    struct key_discards *discards = mem_alloc(sizeof *discards);

    discards->store = store;
    discards->pause_ms = PAUSE_FIRST_MS;
    list_init(&discards->waiting);
    CHECK(uv_timer_init(store_loop(store), &discards->timer) == 0);
    discards->timer.data = discards;
    return discards;
}

size_t key_store_discards(const struct store *store)
{
    const struct key_discards *discards = store_part(store, &KEY_DISCARDS);

    return discards->count;
}

static void kept_text_set(struct kept_text *kept, struct text t)
{
    kept->len = (uint8_t)(t.len < SOURCE_TEXT_BYTES ? t.len : SOURCE_TEXT_BYTES);
    if (kept->len > 0)
        memcpy(kept->chars, t.ptr, kept->len);
}

static struct text kept_text_get(const struct kept_text *kept)
{
    return (struct text){kept->chars, kept->len};
}

static void log_lost(const struct id *id, const char *why)
{
    LOG(LOG_ERROR, "undelivered key not revoked: run 'chatelaine key revoke'", log_text("id", id_text(id)),
        log_str("why", why));
}

void key_store_discard(struct store *store, const struct id *id, const struct audit_source *source)
{
    struct key_discards *discards = store_part(store, &KEY_DISCARDS);
    struct key_discard *discard;

    if (discards->is_closing || discards->count >= DISCARDS_MAX) {
        log_lost(id, discards->is_closing ? "the node is stopping" : "too many keys are waiting for Redis");
        return;
    }
    discard = mem_alloc(sizeof *discard);
    discard->kept_by = discards;
    discard->id = *id;
    kept_text_set(&discard->actor, source->actor);
    kept_text_set(&discard->ip, source->ip);
    kept_text_set(&discard->request_id, source->request_id);
    list_append(&discards->waiting, &discard->node);
    discards->count++;
    discards_send(discards);
}

static void discards_send(struct key_discards *discards)
{
    static const struct key_view EVERYTHING = {.any_kind = true};
    struct list *node;

    while (!discards->is_pausing && !discards->is_closing && discards->in_flight < DISCARDS_AT_ONCE &&
           (node = list_first(&discards->waiting))) {
        struct key_discard *discard = LIST_ENTRY(node, struct key_discard, node);
        const struct audit_source source = {.actor = kept_text_get(&discard->actor),
                                            .ip = kept_text_get(&discard->ip),
                                            .request_id = kept_text_get(&discard->request_id)};
        struct script_args args;

        list_remove(node);
        discards->in_flight++;
        args_begin_revocations(&args, discards->store, true, TEXT("-"), TEXT("-"));
        args_add_revocation(&args, &EVERYTHING, &discard->id, &source);
        store_call_script(discards->store, SCRIPT_key_revoke, SCRIPT_CHANGES, args.count, args.argv, on_revoked,
                          discard);
    }
}

static void pause_begin(struct key_discards *discards)
{
    if (discards->is_pausing)
        return;
    discards->is_pausing = true;
    CHECK(uv_timer_start(&discards->timer, on_pause_over, discards->pause_ms, 0) == 0);
    discards->pause_ms = discards->pause_ms * 2 < PAUSE_MAX_MS ? discards->pause_ms * 2 : PAUSE_MAX_MS;
}

/* The end that was withdrawn with a key, for the log: a replay would bring it back. */
static void tell_withdrawn(struct store *store, const struct redis_reply *item)
{
    const struct store_settings *settings = store_limits(store);
    const struct redis_reply *record = reply_at(item, 3);
    struct key_record key;
    int64_t said_ms;

    if (settings->on_key_ended && record && reply_integer(reply_at(item, 4), &said_ms) &&
        key_reply_read(store, record, &key) == STORE_OK)
        settings->on_key_ended(settings->on_key_ended_arg, &key, said_ms, "not delivered");
}

static void on_revoked(void *arg, enum store_result called, const struct redis_reply *reply)
{
    struct key_discard *discard = arg;
    struct key_discards *discards = discard->kept_by;
    enum store_result result = revocation_result(discards->store, called, reply);
    bool is_answered = result == STORE_OK || result == STORE_NOT_FOUND;

    discards->in_flight--;
    if (called == STORE_OK)
        tell_withdrawn(discards->store, revocation_reply(reply, 0));
    if (is_answered || discards->is_closing) {
        if (!is_answered)
            log_lost(&discard->id, "the node is stopping");
        discards->count--;
        free(discard);
    } else {
        list_append(&discards->waiting, &discard->node);
        pause_begin(discards);
    }
    if (is_answered && !discards->is_pausing)
        discards->pause_ms = PAUSE_FIRST_MS;
    discards_send(discards);
    try_end(discards);
}

static void on_pause_over(uv_timer_t *timer)
{
    struct key_discards *discards = timer->data;

    discards->is_pausing = false;
    discards_send(discards);
}

/* Closing */

static void discards_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct key_discards *discards = made;
    struct list *node;

    discards->is_closing = true;
    discards->closed = closed;
    discards->closed_arg = arg;
    while ((node = list_first(&discards->waiting))) {
        struct key_discard *discard = LIST_ENTRY(node, struct key_discard, node);

        log_lost(&discard->id, "the node is stopping");
        list_remove(node);
        discards->count--;
        free(discard);
    }
    uv_close((uv_handle_t *)&discards->timer, on_timer_closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct key_discards *discards = handle->data;

    discards->is_timer_closed = true;
    try_end(discards);
}

static void try_end(struct key_discards *discards)
{
    void (*closed)(void *arg) = discards->closed;
    void *closed_arg = discards->closed_arg;

    if (!discards->is_closing || !discards->is_timer_closed || discards->in_flight > 0)
        return;
    free(discards);
    closed(closed_arg);
}

const struct store_part KEY_DISCARDS = {.create = discards_create, .close = discards_close};
