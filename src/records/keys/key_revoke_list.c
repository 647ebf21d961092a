/* Revokes a list of keys, in portions that Redis runs in a few milliseconds each. One portion at a time, so that other
 * calls run between them. If there are several, no portion has a barrier: when all are done, one more call revokes a
 * key of the list again, and its barrier covers all. That is enough, because its message comes behind theirs on the
 * same channel, and a node drops what a message names before it reads the next one. Whoever cannot acknowledge that
 * message, because the portions went to another Redis before, is waited for until its lease has expired
 * (src/lease/README.md, rules 6 to 8). */
#include "key_revoke.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "effect_notes.h"
#include "lease/lease.h"
#include <stdlib.h>
#include <string.h>

enum { PORTION = 128 };

struct list_call {
    struct store *store;
    struct key_view view;
    struct kept_source kept_source;
    struct keys_observer observer;
    struct key_of_list *keys;
    size_t count, next;        /* keys[0, next) were answered by Redis */
    const struct id *covering; /* a key that was revoked: its repetition carries the barrier; NULL: none was */
    bool needs_barrier;
    enum store_result trouble; /* of a key that alone has failed; else STORE_OK */
    struct barrier *barrier;   /* of the call under way, or NULL */
    struct barrier_tally tally;
    uint64_t began_ns; /* before the first script was sent */
};

static void portion_send(struct list_call *call);
static bool is_wanted(const struct list_call *call)
{
    return !call->observer.is_wanted || call->observer.is_wanted(call->observer.arg);
}

static void portion_called(void *arg, enum store_result result, const struct redis_reply *reply);
static void cover(struct list_call *call);
static void covered(void *arg, enum store_result result, const struct redis_reply *reply);
static void list_over(void *arg, bool is_over);

static void finish(struct list_call *call, enum store_result result)
{
    if (call->barrier)
        barrier_drop(call->barrier);
    if (result == STORE_OK)
        result = call->trouble;
    call->observer.done(call->observer.arg, result, result == STORE_OK ? call->keys : NULL, call->count);
    free(call->keys);
    free(call);
}

/* A key that revokes itself comes last, because the rest would be refused after it. */
static void take_ids(struct list_call *call, const struct id *ids, size_t count, struct text actor)
{
    const struct id *own = NULL;

    for (size_t i = 0; i < count; i++) {
        if (text_equal(id_text(&ids[i]), actor))
            own = &ids[i];
        else
            call->keys[call->count++].id = ids[i];
    }
    if (own)
        call->keys[call->count++].id = *own;
}

void key_store_revoke_list(struct store *store, const struct key_view *view, const struct id *ids, size_t count,
                           const struct audit_source *source, const struct keys_observer *observer)
{
    struct list_call *call = mem_alloc(sizeof *call);

    CHECK(count > 0 && count <= REVOKE_LIST_MAX);
    call->store = store;
    call->view = *view;
    call->observer = *observer;
    call->keys = mem_alloc(count * sizeof *call->keys);
    call->trouble = STORE_OK;
    call->began_ns = clock_boot_ns();
    source_keep(&call->kept_source, source);
    take_ids(call, ids, count, source->actor);
    portion_send(call);
}

static size_t portion_size(const struct list_call *call)
{
    return call->count - call->next < PORTION ? call->count - call->next : PORTION;
}

static void barrier_take(struct list_call *call)
{
    call->barrier = barrier_begin(lease_barriers(store_lease(call->store)));
    barrier_tell(call->barrier, &call->tally);
}

static void begin_args(const struct list_call *call, struct script_args *args)
{
    args_begin_revocations(args, call->store, false, call->barrier ? barrier_member(call->barrier) : TEXT("-"),
                           call->barrier ? barrier_name(call->barrier) : TEXT("-"));
}

static void portion_send(struct list_call *call)
{
    struct text argv[REVOCATION_HEAD_ARGS + PORTION * REVOCATION_ARGS];
    struct script_args args;
    size_t argc = REVOCATION_HEAD_ARGS;

    if (call->count <= PORTION)
        barrier_take(call);
    begin_args(call, &args);
    args_add_revocation(&args, &call->view, &call->keys[call->next].id, &call->kept_source.source);
    memcpy(argv, args.argv, REVOCATION_HEAD_ARGS * sizeof *argv);
    for (size_t i = 0; i < portion_size(call); i++, argc += REVOCATION_ARGS) {
        memcpy(argv + argc, args.argv + REVOCATION_HEAD_ARGS, REVOCATION_ARGS * sizeof *argv);
        argv[argc] = id_text(&call->keys[call->next + i].id);
    }
    store_call_script(call->store, SCRIPT_key_revoke, SCRIPT_CHANGES, argc, argv, portion_called, call);
}

static void key_done(struct list_call *call, struct key_of_list *of_list, const struct key_record *key, bool again)
{
    of_list->outcome = again ? KEY_WAS_REVOKED_BEFORE : KEY_WAS_REVOKED;
    of_list->account = key->account;
    of_list->revoked_ms = key->revoked_ms;
    call->covering = &of_list->id;
    call->needs_barrier |= !again || RULE(RULE_AGAIN);
    if (call->observer.revoked)
        call->observer.revoked(call->observer.arg, key);
}

/* Returns what ends the whole list: the actor may no longer revoke. */
static enum store_result read_portion(struct list_call *call, const struct redis_reply *reply)
{
    struct heard_ending endings[PORTION];
    size_t kept = 0;

    for (size_t i = 0; i < portion_size(call); i++) {
        struct key_of_list *of_list = &call->keys[call->next + i];
        struct key_record key;
        bool again;
        enum store_result result = revocation_read(call->store, reply, i, &key, &again);

        if (result == STORE_OK) {
            key_done(call, of_list, &key, again);
            endings[kept++] = ending_of_key(&key);
        } else if (result == STORE_NOT_FOUND) {
            of_list->outcome = KEY_WAS_NOT_FOUND;
        } else if (result == STORE_UNKNOWN) {
            call->trouble = result;
        } else {
            return result;
        }
    }
    store_keep_endings(call->store, endings, kept);
    call->next += portion_size(call);
    return STORE_OK;
}

static void portion_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_call *call = arg;
    struct barrier *barrier = call->barrier;

    if (result == STORE_OK || result == STORE_REFUSED)
        result = read_portion(call, reply);
    if (result == STORE_OK && call->next < call->count && !is_wanted(call))
        result = STORE_UNKNOWN;
    if (result != STORE_OK) {
        finish(call, result);
    } else if (call->next < call->count) {
        portion_send(call);
    } else if (!call->needs_barrier) {
        finish(call, STORE_OK);
    } else if (!barrier) {
        cover(call);
    } else {
        call->barrier = NULL;
        if (!revocation_wait(call->store, barrier, reply, list_over, call))
            finish(call, STORE_UNKNOWN);
    }
}

/* Without a credential: it was checked with the key's own portion, and the list may have ended it. */
static void cover(struct list_call *call)
{
    struct audit_source source = call->kept_source.source;
    struct script_args args;

    source.credential.kind = CREDENTIAL_NONE;
    barrier_take(call);
    begin_args(call, &args);
    args_add_revocation(&args, &call->view, call->covering, &source);
    store_call_script(call->store, SCRIPT_key_revoke, SCRIPT_CHANGES, args.count, args.argv, covered, call);
}

static void covered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_call *call = arg;
    struct barrier *barrier = call->barrier;

    if (result != STORE_OK) {
        finish(call, STORE_UNKNOWN);
        return;
    }
    call->barrier = NULL;
    if (!revocation_wait(call->store, barrier, reply, list_over, call))
        finish(call, STORE_UNKNOWN);
}

static void note_endings(const struct list_call *call)
{
    struct key_ended ended[REVOKED_TOGETHER_MAX];
    struct barrier_tally tally = call->tally;
    size_t count = 0;

    tally.took_ns = clock_boot_ns() - call->began_ns; /* keys were marked before the barrier that covers them all */

    for (size_t i = 0; i < call->count; i++) {
        const struct key_of_list *key = &call->keys[i];

        if (key->outcome != KEY_WAS_NOT_FOUND)
            ended[count++] =
                (struct key_ended){&key->id, &key->account, key->revoked_ms, key->outcome == KEY_WAS_REVOKED_BEFORE};
        if (count > 0 && (count == REVOKED_TOGETHER_MAX || i + 1 == call->count)) {
            effect_notes_add(call->store, ended, count, &tally);
            count = 0;
        }
    }
}

static void list_over(void *arg, bool is_over)
{
    if (is_over)
        note_endings(arg);
    finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}
