#include "key_revocation_note.h"

#include "engine/access.h"
#include "trail/audit_events.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/receipt.h"
#include "key_reply.h"
#include "key_revoke.h"
#include "engine/verb.h"

#include <stdlib.h>

struct revocation_call {
    struct store *store;
    struct key_view view;
    struct id id;
    struct kept_source source;
    unsigned reads; /* since it has run a barrier of its own; 0: it has not */
    key_revocation_found *done;
    void *arg;
};

static void call_finish(struct revocation_call *call, enum store_result result, const struct key_revocation *revocation)
{
    call->done(call->arg, result, revocation);
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
                                     struct key_revocation *ret_revocation)
{
    if (reply_text(reply_at(reply, 1), &ret_revocation->store) &&
        read_event(reply_at(reply, 2), account, &ret_revocation->event) &&
        reply_integer(reply_at(reply, 3), &ret_revocation->effective_ms) &&
        reply_integer(reply_at(reply, 4), &ret_revocation->nodes) &&
        reply_integer(reply_at(reply, 5), &ret_revocation->waited_for))
        return STORE_OK;
    store_malformed(store, "note about a revocation");
    return STORE_UNAVAILABLE;
}

static enum store_result read_revocation(struct store *store, const struct redis_reply *reply,
                                         struct key_revocation *ret_revocation)
{
    struct key_record key;
    enum store_result result = key_reply_read(store, reply_at(reply, 0), &key);

    if (result != STORE_OK)
        return result;
    ret_revocation->subject = key.id;
    ret_revocation->revoked_ms = key.revoked_ms;
    return read_ending(store, reply, &key.account, ret_revocation);
}

static void note_read(void *arg, enum store_result result, const struct redis_reply *reply);

/* Notes that wait are sent first, on the same connection, so what is read there comes after them. If Redis did not know
 * their script, it is sent again before the reply to the first read is read, so the second one comes after it. */
enum { READS_MAX = 2 };

static void call_read(struct revocation_call *call)
{
    struct script_args args;

    bool is_noting = key_notes_flush(call->store);
    enum script_link link = is_noting || call->reads > 0 ? SCRIPT_LEAVES : SCRIPT_READS;
    args_begin(&args);
    args_add_view(&args, &call->view, &call->id);
    store_call_script(call->store, SCRIPT_revocation_read, link, args.count, args.argv, note_read, call);
}

static void read_after_note(struct revocation_call *call)
{
    call->reads++;
    call_read(call);
}

static void barrier_repeated(void *arg, enum store_result result, UNUSED const struct key_record *key)
{
    struct revocation_call *call = arg;

    if (result == STORE_OK)
        read_after_note(call);
    else
        call_finish(call, result, NULL);
}

static void note_read(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct revocation_call *call = arg;
    struct key_revocation revocation;

    if (result == STORE_OK)
        result = read_revocation(call->store, reply, &revocation);
    if (result == STORE_OK && revocation.effective_ms == 0) {
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
    call_finish(call, result, result == STORE_OK ? &revocation : NULL);
}

void key_store_revocation(struct store *store, const struct key_view *view, const struct id *id,
                          const struct audit_source *source, key_revocation_found *done, void *arg)
{
    struct revocation_call *call = mem_alloc(sizeof *call);

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
    key_revocation_found *done;
    void *arg;
};

static void suspension_read(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct suspension_call *call = arg;
    struct key_revocation revocation = {.subject = call->account};

    if (result == STORE_OK && !reply_time(reply_at(reply, 0), &revocation.revoked_ms)) {
        store_malformed(call->store, "suspension");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = read_ending(call->store, reply, &call->account, &revocation);
    if (result == STORE_OK && revocation.effective_ms == 0)
        result = STORE_UNKNOWN;
    call->done(call->arg, result, result == STORE_OK ? &revocation : NULL);
    free(call);
}

void account_store_suspension(struct store *store, const struct id *account, key_revocation_found *done, void *arg)
{
    struct suspension_call *call = mem_alloc(sizeof *call);
    const struct text id = id_text(account);

    *call = (struct suspension_call){store, *account, done, arg};
    store_call_script(store, SCRIPT_suspension_read, SCRIPT_READS, 1, &id, suspension_read, call);
}

/* Receipts */

bool key_revocation_is_noting(struct store *store)
{
    return key_notes_flush(store);
}

void key_revocation_certify(const struct key_revocation *revocation, struct text issuer, const struct keyring *keyring,
                            struct buf *out)
{
    const struct receipt receipt = {
        .issuer = issuer,
        .key = id_text(&revocation->subject),
        .store = revocation->store,
        .event = id_text(&revocation->event),
        .revoked_ms = revocation->revoked_ms,
        .effective_ms = revocation->effective_ms,
        .nodes = revocation->nodes,
        .waited_for = revocation->waited_for,
        .issued_s = clock_wall_ms() / 1000,
    };

    receipt_sign(&receipt, keyring, out);
}
