#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "key_parts.h"
#include "key_reply.h"
#include "lease/lease.h"
#include "lease/store_time.h"
#include "records/key_store.h"
#include "engine/verb.h"
#include <stdio.h>
#include <stdlib.h>

/* The end of key_schedule.lua's arguments. ends_ms: 0 for never. changes_max: 0 for any number. */
static void args_add_end(struct script_args *args, const struct store *store, int64_t ends_ms, struct text which,
                         int64_t changes_max)
{
    args_add_time(args, ends_ms);
    args_add_int(args, KEY_SCHEDULE_MAX_MS);
    args_add(args, which);
    args_add_int(args, changes_max);
    args_add_store_time(args, store);
}

/* A call of key_schedule.lua or key_replace.lua, whose replies are alike. */
struct end_call {
    struct store *store;
    struct barrier *barrier;
    key_scheduled *scheduled;
    key_replaced *replaced;
    void *arg;
    struct key_record key; /* that ends, after the change */
    int64_t said_ms;       /* when the change was made, by the store's time */
};

static struct end_call *end_begin(struct store *store, void *arg)
{
    struct end_call *call = mem_alloc(sizeof *call);

    call->store = store;
    call->barrier = barrier_begin(lease_barriers(store_lease(store)));
    call->arg = arg;
    return call;
}

static enum key_schedule_refusal read_refusal(const struct redis_reply *reply)
{
    struct text why;

    if (!reply_text(reply_at(reply, 0), &why))
        return KEY_SCHEDULE_PAST;
    return text_equal(why, TEXT("later")) ? KEY_SCHEDULE_LATER
           : text_equal(why, TEXT("far")) ? KEY_SCHEDULE_FAR
                                          : KEY_SCHEDULE_PAST;
}

static struct text read_id(const struct redis_reply *reply)
{
    struct text id;

    return reply_text(reply_at(reply, 0), &id) ? id : (struct text){0};
}

static void end_finish(struct end_call *call, enum store_result result, const struct redis_reply *reply)
{
    const struct key_record *key = result == STORE_OK ? &call->key : NULL;
    uint32_t retry_after_s = reply_limit(call->store, reply, &result);

    if (call->scheduled)
        call->scheduled(call->arg, result, key, call->said_ms, result == STORE_REFUSED ? read_refusal(reply) : 0,
                        retry_after_s);
    else
        call->replaced(call->arg, result, key, call->said_ms,
                       result == STORE_REFUSED ? read_id(reply) : (struct text){0}, retry_after_s);
    free(call);
}

static void on_barrier(void *arg, bool is_over)
{
    end_finish(arg, is_over ? STORE_OK : STORE_UNKNOWN, NULL);
}

/* What the change has ended, for repeating (rule 13): the key, and perhaps an earlier successor. */
static void keep_ends(struct end_call *call, const struct redis_reply *earlier)
{
    struct heard_ending endings[2] = {ending_of_key(&call->key)};
    struct key_record key;
    size_t count = 1;

    if (earlier && earlier->type == REPLY_ARRAY && key_reply_decode(earlier, &key))
        endings[count++] = ending_of_key(&key);
    store_keep_endings(call->store, endings, count);
}

/* An end that lies behind all leases needs no barrier: whoever does not hear of it has forgotten the key by then. So
 * the secret of a new key does not wait for a node that hangs. */
static bool is_behind_leases(const struct end_call *call, int64_t lease_max_ms)
{
    return call->replaced && lease_max_ms >= 0 && lease_max_ms < UINT32_MAX &&
           call->key.ends_ms - call->said_ms > barrier_wait_ms((uint32_t)lease_max_ms);
}

/* As a revocation: until the barrier is over, a node may have cached the key as one that does not end. */
static void on_end_written(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct end_call *call = arg;
    int64_t lease_max_ms;

    if (result != STORE_OK) {
        barrier_drop(call->barrier);
        end_finish(call, result, reply);
        return;
    }
    result = key_reply_read(call->store, reply_at(reply, 0), &call->key);
    if (result == STORE_OK && reply_integer(reply_at(reply, 3), &call->said_ms))
        keep_ends(call, reply_at(reply, 4));
    else
        result = STORE_UNKNOWN;
    if (result == STORE_OK && reply_integer(reply_at(reply, 1), &lease_max_ms) &&
        is_behind_leases(call, lease_max_ms)) {
        barrier_drop(call->barrier);
        barriers_settle(lease_barriers(store_lease(call->store)), on_barrier, call);
    } else if (result != STORE_OK || !reply_integer(reply_at(reply, 1), &lease_max_ms) ||
               !barrier_wait(call->barrier, lease_max_ms, reply_at(reply, 2), on_barrier, call)) {
        store_malformed(call->store, "scheduled revocation");
        barrier_drop(call->barrier);
        end_finish(call, STORE_UNKNOWN, NULL);
    }
}

void key_store_schedule(struct store *store, const struct key_view *view, const struct id *id, int64_t ends_ms,
                        bool may_delay, const struct audit_source *source, key_scheduled *done, void *arg)
{
    struct end_call *call = end_begin(store, arg);
    struct script_args args;

    call->scheduled = done;
    args_begin(&args);
    args_add_view(&args, view, id);
    args_add_actor(&args, store, source);
    args_add(&args, barrier_member(call->barrier));
    args_add(&args, barrier_name(call->barrier));
    args_add_end(&args, store, ends_ms, may_delay ? TEXT("any") : TEXT("sooner"),
                 source->credential.kind == CREDENTIAL_NONE ? 0 : store_limits(store)->changes_per_minute);
    store_call_script(store, SCRIPT_key_schedule, SCRIPT_CHANGES, args.count, args.argv, on_end_written, call);
}

void key_store_replace(struct store *store, const struct key_replacement *replacement,
                       const struct audit_source *source, key_replaced *done, void *arg)
{
    struct end_call *call = end_begin(store, arg);
    char storage[KEY_TEXT_MAX_BYTES];
    struct script_args args;

    call->replaced = done;
    args_of_key(&args, store, replacement->key, replacement->digest, source, storage);
    args_add_view(&args, &replacement->view, &replacement->replaced);
    args_add(&args, barrier_member(call->barrier));
    args_add(&args, barrier_name(call->barrier));
    args_add_int(&args, replacement->overlap_ms);
    args_add_store_time(&args, store);
    args_add(&args, id_text(&replacement->replaced_by));
    store_call_script(store, SCRIPT_key_replace, SCRIPT_CHANGES, args.count, args.argv, on_end_written, call);
}

/* What is due */

struct key_ends {
    struct store *store;
    bool is_under_way; /* one call at a time */
};

static void *ends_create(struct store *store)
{
    struct key_ends *ends = mem_alloc(sizeof *ends);

    ends->store = store;
    return ends;
}

static void ends_close(void *made, void (*closed)(void *arg), void *arg)
{
    struct key_ends *ends = made;

    CHECK(!ends->is_under_way);
    free(ends);
    closed(arg);
}

static void on_ended(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct key_ends *ends = arg;
    const struct store_settings *settings = store_limits(ends->store);

    ends->is_under_way = false;
    for (size_t i = 0; result == STORE_OK && i < reply->count; i++) {
        struct key_record key;

        if (key_reply_read(ends->store, reply_at(reply, i), &key) != STORE_OK)
            continue;
        if (settings->on_key_ended)
            settings->on_key_ended(settings->on_key_ended_arg, &key, 0, "scheduled");
    }
}

static void key_ends_due(void *made)
{
    struct key_ends *ends = made;
    struct script_args args;

    /* A written revocation is final, so a node that does not know the time writes none. */
    if (ends->is_under_way || store_time_most(store_known_time(ends->store), clock_boot_ns()) == 0)
        return;
    ends->is_under_way = true;
    args_begin(&args);
    args_add_int(&args, store_audit_max(ends->store));
    args_add_store_time(&args, ends->store);
    /* A Redis that has lost this finds again what is due. */
    store_call_script(ends->store, SCRIPT_key_end_due, SCRIPT_UNPROMISED, args.count, args.argv, on_ended, ends);
}

const struct store_part KEY_ENDS = {.create = ends_create, .close = ends_close, .due = key_ends_due};
