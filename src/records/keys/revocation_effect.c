#include "effect_notes.h"

#include "engine/access.h"
#include "trail/audit_events.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/receipt.h"
#include "key_reply.h"
#include "key_revoke.h"
#include "engine/verb.h"

#include <stdlib.h>

struct effect_call {
    struct store *store;
    struct key_view view;
    struct id id;
    struct kept_source source;
    unsigned reads; /* since it has run a barrier of its own; 0: it has not */
    revocation_effect_found *done;
    void *arg;
};

static void call_finish(struct effect_call *call, enum store_result result, const struct revocation_effect *effect)
{
    call->done(call->arg, result, effect);
    free(call);
}

static bool read_event(const struct redis_reply *reply, const struct id *account, struct id *ret_event)
{
    const struct audit_owner owner = audit_owner_of(account);
    struct text name;

    *ret_event = (struct id){0};
    return reply_text(reply, &name) && (name.len == 0 || audit_read_name(name, &owner, ret_event));
}

/* As ending_read() in the prelude returns it, behind the first item. */
static enum store_result read_ending(struct store *store, const struct redis_reply *reply, const struct id *account,
                                     struct revocation_effect *ret_effect)
{
    if (reply_text(reply_at(reply, 1), &ret_effect->store) &&
        read_event(reply_at(reply, 2), account, &ret_effect->event) &&
        reply_integer(reply_at(reply, 3), &ret_effect->effective_ms) &&
        reply_integer(reply_at(reply, 4), &ret_effect->nodes) &&
        reply_integer(reply_at(reply, 5), &ret_effect->waited_for))
        return STORE_OK;
    store_malformed(store, "note about a revocation");
    return STORE_UNAVAILABLE;
}

static enum store_result read_effect(struct store *store, const struct redis_reply *reply,
                                     struct revocation_effect *ret_effect)
{
    struct key_record key;
    enum store_result result = key_reply_read(store, reply_at(reply, 0), &key);

    if (result != STORE_OK)
        return result;
    ret_effect->subject = key.id;
    ret_effect->revoked_ms = key.revoked_ms;
    return read_ending(store, reply, &key.account, ret_effect);
}

static void note_read(void *arg, enum store_result result, const struct redis_reply *reply);

/* Notes that wait are sent first, on the same connection, so what is read there comes after them. If Redis did not know
 * their script, it is sent again before the reply to the first read is read, so the second one comes after it. */
enum { READS_MAX = 2 };

static void call_read(struct effect_call *call)
{
    struct script_args args;

    bool is_noting = effect_notes_flush(call->store);
    enum script_link link = is_noting || call->reads > 0 ? SCRIPT_LEAVES : SCRIPT_READS;
    args_begin(&args);
    args_add_view(&args, &call->view, &call->id);
    store_call_script(call->store, SCRIPT_effect_read, link, args.count, args.argv, note_read, call);
}

static void read_after_note(struct effect_call *call)
{
    call->reads++;
    call_read(call);
}

static void barrier_repeated(void *arg, enum store_result result, UNUSED const struct key_record *key)
{
    struct effect_call *call = arg;

    if (result == STORE_OK)
        read_after_note(call);
    else
        call_finish(call, result, NULL);
}

static void note_read(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct effect_call *call = arg;
    struct revocation_effect effect;

    if (result == STORE_OK)
        result = read_effect(call->store, reply, &effect);
    if (result == STORE_OK && effect.effective_ms == 0) {
        if (call->reads == 0) {
            key_store_revoke(call->store, &call->view, &call->id, &call->source.source, barrier_repeated, call);
            return;
        }
        if (call->reads < READS_MAX) {
            read_after_note(call);
            return;
        }
        result = STORE_UNKNOWN;
    }
    call_finish(call, result, result == STORE_OK ? &effect : NULL);
}

void key_store_revocation(struct store *store, const struct key_view *view, const struct id *id,
                          const struct audit_source *source, revocation_effect_found *done, void *arg)
{
    struct effect_call *call = mem_alloc(sizeof *call);

    call->store = store;
    call->view = *view;
    call->id = *id;
    source_keep(&call->source, source);
    call->reads = 0;
    call->done = done;
    call->arg = arg;
    call_read(call);
}

/* Accounts */

struct suspension_call {
    struct store *store;
    struct id account;
    revocation_effect_found *done;
    void *arg;
};

static void suspension_read(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct suspension_call *call = arg;
    struct revocation_effect effect = {.subject = call->account};

    if (result == STORE_OK && !reply_time(reply_at(reply, 0), &effect.revoked_ms)) {
        store_malformed(call->store, "suspension");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = read_ending(call->store, reply, &call->account, &effect);
    if (result == STORE_OK && effect.effective_ms == 0)
        result = STORE_UNKNOWN;
    call->done(call->arg, result, result == STORE_OK ? &effect : NULL);
    free(call);
}

void account_store_suspension(struct store *store, const struct id *account, revocation_effect_found *done, void *arg)
{
    struct suspension_call *call = mem_alloc(sizeof *call);
    const struct text id = id_text(account);

    *call = (struct suspension_call){store, *account, done, arg};
    store_call_script(store, SCRIPT_suspension_read, SCRIPT_READS, 1, &id, suspension_read, call);
}

/* Receipts */

bool revocation_effect_is_noting(struct store *store)
{
    return effect_notes_flush(store);
}

void revocation_effect_certify(const struct revocation_effect *effect, struct text issuer,
                               const struct keyring *keyring, struct buf *out)
{
    const struct receipt receipt = {
        .issuer = issuer,
        .key = id_text(&effect->subject),
        .store = effect->store,
        .event = id_text(&effect->event),
        .revoked_ms = effect->revoked_ms,
        .effective_ms = effect->effective_ms,
        .nodes = effect->nodes,
        .waited_for = effect->waited_for,
        .issued_s = clock_wall_ms() / 1000,
    };

    receipt_sign(&receipt, keyring, out);
}
