#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"
#include "key_parts.h"
#include "key_reply.h"
#include "lease/store_time.h"
#include "records/key_store.h"
#include "engine/verb.h"
#include <stdlib.h>

/* Others are confirmed at a later use. */
enum { CONFIRMS_AT_ONCE = 64, PAUSE_MS = 1000 };

struct key_confirm {
    struct list node;
    struct key_confirms *kept_by;
    struct id id;
};

struct key_confirms {
    struct store *store;
    struct list under_way; /* struct key_confirm */
    size_t count;
    uint64_t not_before_ms; /* uv_now(): after a failure */
};

static void *confirms_create(struct store *store)
{
    struct key_confirms *confirms = mem_alloc(sizeof *confirms);

    confirms->store = store;
    list_init(&confirms->under_way);
    return confirms;
}

static void confirms_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct key_confirms *confirms = made;

    CHECK(confirms->count == 0);
    free(confirms);
    closed(arg);
}

const struct store_part KEY_CONFIRMS = {.create = confirms_create, .close = confirms_close};

static void on_confirmed(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct key_confirm *confirm = arg;
    struct key_confirms *confirms = confirm->kept_by;
    const struct store_settings *settings = store_limits(confirms->store);
    struct key_record replaced;

    if (result != STORE_OK && result != STORE_NOT_FOUND)
        confirms->not_before_ms = uv_now(store_loop(confirms->store)) + PAUSE_MS;
    if (result == STORE_OK && reply->count > 0 &&
        key_reply_read(confirms->store, reply_at(reply, 0), &replaced) == STORE_OK && settings->on_key_ended)
        settings->on_key_ended(settings->on_key_ended_arg, &replaced, 0, "replaced");
    list_remove(&confirm->node);
    confirms->count--;
    free(confirm);
}

static bool is_under_way(const struct key_confirms *confirms, const struct id *id)
{
    for (const struct list *node = confirms->under_way.next; node != &confirms->under_way; node = node->next)
        if (id_equal(&LIST_ENTRY(node, struct key_confirm, node)->id, id))
            return true;
    return false;
}

void key_store_confirm(struct store *store, const struct id *id)
{
    struct key_confirms *confirms = store_part(store, &KEY_CONFIRMS);
    struct key_confirm *confirm;
    struct script_args args;

    if (confirms->count == CONFIRMS_AT_ONCE || uv_now(store_loop(store)) < confirms->not_before_ms ||
        is_under_way(confirms, id))
        return;
    confirm = mem_alloc(sizeof *confirm);
    confirm->kept_by = confirms;
    confirm->id = *id;
    list_append(&confirms->under_way, &confirm->node);
    confirms->count++;
    args_begin(&args);
    args_add(&args, id_text(id));
    args_add_int(&args, store_audit_max(store));
    args_add_store_time(&args, store);
    store_call_script(store, SCRIPT_key_confirm, SCRIPT_CHANGES, args.count, args.argv, on_confirmed, confirm);
}
