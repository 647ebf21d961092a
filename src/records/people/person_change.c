/* Changes one of an account's people: its steps, each a script. First the keys that go back to the person are looked
 * for, while nothing can be made that would be one of them (person_keys.lua). Then role or state change: this seals the
 * record anew, by what was read of it; if it has changed meanwhile, all begins again. Then keys are revoked in
 * portions. The barrier of the last portion covers all of them, because its message comes behind theirs. A removal
 * comes last, and then the email is released. */
#include "records/people_store.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/id_list.h"
#include "email_claim.h"
#include "keys/key_reply.h"
#include "lease/lease.h"
#include "records/seal_store.h"
#include "person_read.h"
#include "engine/verb.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_AGAIN_MAX = 5, KEYS_LOOKED_AT = 100, KEYS_PER_PORTION = 100, CURSOR_BYTES = 64, KEYS_TOLD = 32 };

struct person_call {
    struct partitions *partitions;
    struct store *store; /* of the account */
    struct id account, user;
    struct person_change change;
    struct person_observer observer;
    struct kept_source kept_source;
    struct person person;
    int64_t sessions_ended;
    unsigned reads;
    struct id mark;            /* names this call while keys are looked for; empty: they are not */
    char cursor[CURSOR_BYTES]; /* of person_keys.lua; empty before its first call, and behind its last one */
    struct id_list revoked, kept;
    size_t portions_at; /* into revoked */
    struct barrier *barrier;
};

static void change_read(struct person_call *call);
static void change_found(void *arg, enum store_result result, const struct person *person);
static void keys_look(struct person_call *call);
static void keys_seen(void *arg, enum store_result result, const struct redis_reply *reply);
static void change_write(void *arg);
static void change_written(void *arg, enum store_result result, const struct redis_reply *reply);
static void keys_end(struct person_call *call);
static void keys_ended(void *arg, enum store_result result, const struct redis_reply *reply);
static void keys_over(void *arg, bool is_over);
static void person_remove(struct person_call *call);
static void person_removed(void *arg, enum store_result result, const struct redis_reply *reply);
static void email_released(void *arg, enum store_result result);
static void change_settle(struct person_call *call);

static void finish(struct person_call *call, enum store_result result)
{
    const struct person_changed changed = {
        .person = call->person,
        .sessions_ended = call->sessions_ended,
        .revoked = call->revoked.ids,
        .revoked_count = call->revoked.count,
        .kept = call->kept.ids,
        .kept_count = call->kept.count,
    };

    if (call->barrier)
        barrier_drop(call->barrier);
    call->observer.done(call->observer.arg, result, result == STORE_OK ? &changed : NULL);
    free(call->revoked.ids);
    free(call->kept.ids);
    free(call);
}

static void finish_malformed(struct person_call *call, const char *what)
{
    store_malformed(call->store, what);
    finish(call, STORE_UNKNOWN);
}

void people_store_change(struct partitions *partitions, const struct id *account, const struct id *user,
                         const struct person_change *change, const struct audit_source *source,
                         const struct person_observer *observer)
{
    struct person_call *call = mem_alloc(sizeof *call);

    *call = (struct person_call){.partitions = partitions,
                                 .store = partition_of_account(partitions, account),
                                 .account = *account,
                                 .user = *user,
                                 .change = *change,
                                 .observer = *observer};
    if (change->kind != PERSON_ENABLE)
        call->mark = id_mint(ID_REQUEST, clock_wall_ms());
    source_keep(&call->kept_source, source);
    change_read(call);
}

static void change_read(struct person_call *call)
{
    if (call->reads++ == READ_AGAIN_MAX) {
        finish(call, STORE_UNAVAILABLE);
        return;
    }
    call->revoked.count = call->kept.count = 0;
    people_store_find(call->store, &call->account, &call->user, call->change.kind == PERSON_REMOVE, change_found, call);
}

static void change_found(void *arg, enum store_result result, const struct person *person)
{
    struct person_call *call = arg;

    if (result == STORE_OK && call->change.spares_owners && person->user.role == ROLE_OWNER)
        result = STORE_ACTOR_ROLE;
    if (result != STORE_OK) {
        finish(call, result);
        return;
    }
    call->person = *person;
    if (call->mark.text[0])
        keys_look(call);
    else
        store_know_clock(call->store, change_write, call);
}

/* What the record becomes. A repeated disabling keeps its time. */
static struct user_record changed_record(const struct person_call *call)
{
    struct user_record user = call->person.user;

    switch (call->change.kind) {
    case PERSON_ROLE:
        user.role = call->change.role;
        break;
    case PERSON_ENABLE:
        user.disabled_ms = 0;
        break;
    case PERSON_DISABLE:
    case PERSON_REMOVE:
        if (user.disabled_ms == 0)
            user.disabled_ms = store_clock_ms(call->store);
        break;
    }
    user_record_seal(store_keyring(call->store), &user);
    return user;
}

/* As keys_told() in the prelude takes them. An event has room for some ids; each revocation is an event, too. */
struct keys_told {
    char revoked[KEYS_TOLD * ID_TEXT_BYTES], kept[KEYS_TOLD * ID_TEXT_BYTES];
};

static void args_add_told(struct script_args *args, const struct person_call *call, struct keys_told *storage)
{
    args_add(args, key_fate_text(call->change.keys));
    args_add(args, id_list_print(&call->revoked, 0, KEYS_TOLD, storage->revoked));
    args_add(args, id_list_print(&call->kept, 0, KEYS_TOLD, storage->kept));
    args_add_int(args, (int64_t)call->revoked.count);
    args_add_int(args, (int64_t)call->kept.count);
}

static void change_write(void *arg)
{
    struct person_call *call = arg;
    const struct user_record user = changed_record(call);
    struct script_args args;
    struct keys_told told;

    args_begin(&args);
    args_add(&args, id_text(&call->user));
    args_add(&args, id_text(&call->person.user.account));
    args_add(&args, text_of(call->person.user.mac.text));
    args_add(&args, text_of(user.mac.text));
    args_add(&args, role_text(user.role));
    args_add_time(&args, user.disabled_ms);
    args_add_actor(&args, call->store, &call->kept_source.source);
    args_add(&args, id_text(&call->mark));
    args_add(&args, call->revoked.count > 0 ? TEXT("1") : TEXT("0"));
    if (call->mark.text[0])
        args_add_told(&args, call, &told);
    store_call_script(call->store, SCRIPT_person_change, SCRIPT_CHANGES, args.count, args.argv, change_written, call);
}

static void change_written(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct person_call *call = arg;

    if (result == STORE_CONFLICT)
        change_read(call);
    else if (result == STORE_OK && (!reply_integer(reply_at(reply, 0), &call->sessions_ended) ||
                                    !person_read(reply_at(reply, 1), &call->person)))
        finish_malformed(call, "person");
    else if (result != STORE_OK)
        finish(call, result);
    else if (call->revoked.count > 0)
        keys_end(call);
    else
        keys_over(call, true);
}

static void keys_look(struct person_call *call)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&call->person.user.account));
    args_add(&args, id_text(&call->user));
    args_add(&args, key_fate_text(call->change.keys));
    args_add(&args, id_text(&call->mark));
    args_add(&args, text_of(call->cursor));
    args_add_int(&args, KEYS_LOOKED_AT);
    /* Nobody keeps his own rights by changing his role again and again. */
    args_add(&args, call->change.kind == PERSON_ROLE ? TEXT("0") : TEXT("1"));
    store_call_script(call->store, SCRIPT_person_keys, SCRIPT_READS, args.count, args.argv, keys_seen, call);
}

/* Sorts what was found into what is revoked and what is kept. */
static bool keys_read(struct person_call *call, const struct redis_reply *reply)
{
    if (!reply_chars(reply_at(reply, 0), call->cursor, sizeof call->cursor))
        return false;
    for (size_t i = 1; i < reply->count; i++) {
        const struct redis_reply *item = reply_at(reply, i);
        int64_t is_wanted;
        struct id id;

        if ((!reply_id(reply_at(item, 0), ID_KEY, &id) && !reply_id(reply_at(item, 0), ID_DEVICE, &id)) ||
            !reply_integer(reply_at(item, 1), &is_wanted))
            return false;
        id_list_add(is_wanted ? &call->revoked : &call->kept, &id);
    }
    return true;
}

static void keys_seen(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct person_call *call = arg;

    if (result == STORE_CONFLICT) {
        call->cursor[0] = '\0';
        change_read(call);
    } else if (result != STORE_OK) {
        finish(call, result);
    } else if (!keys_read(call, reply)) {
        finish_malformed(call, "keys of a person");
    } else if (call->cursor[0]) {
        keys_look(call);
    } else {
        store_know_clock(call->store, change_write, call);
    }
}

static bool is_last_portion(const struct person_call *call)
{
    return call->revoked.count - call->portions_at <= KEYS_PER_PORTION;
}

static size_t portion_size(const struct person_call *call)
{
    return is_last_portion(call) ? call->revoked.count - call->portions_at : KEYS_PER_PORTION;
}

static void keys_end(struct person_call *call)
{
    static const char *const REASONS[] = {
        [PERSON_ROLE] = "user_role_changed", [PERSON_DISABLE] = "user_disabled", [PERSON_REMOVE] = "user_removed"};
    char storage[KEYS_PER_PORTION * ID_TEXT_BYTES];
    struct script_args args;

    if (is_last_portion(call))
        call->barrier = barrier_begin(lease_barriers(store_lease(call->store)));
    args_begin(&args);
    args_add(&args, id_text(&call->person.user.account));
    args_add(&args, id_text(&call->user));
    args_add(&args, id_list_print(&call->revoked, call->portions_at, KEYS_PER_PORTION, storage));
    args_add_source(&args, call->store, &call->kept_source.source);
    args_add(&args, call->barrier ? barrier_member(call->barrier) : TEXT("-"));
    args_add(&args, call->barrier ? barrier_name(call->barrier) : TEXT("-"));
    args_add(&args, text_of(REASONS[call->change.kind]));
    args_add(&args, id_text(&call->mark));
    args_add(&args, call->barrier ? TEXT("1") : TEXT("0"));
    store_call_script(call->store, SCRIPT_person_keys_end, SCRIPT_CHANGES, args.count, args.argv, keys_ended, call);
}

/* Every node has heard of these revocations and keeps them (rule 13). The disabling before them cannot be repeated, so
 * a store that has lost it decides nothing until an operator accepts the loss. An altered record is no key. */
static bool portion_read(struct person_call *call, const struct redis_reply *reply)
{
    for (size_t i = 2; i < reply->count; i++) {
        struct key_record key;
        enum store_result result = key_reply_read(call->store, reply_at(reply, i), &key);

        if (result == STORE_UNAVAILABLE)
            return false;
        if (result == STORE_OK && call->observer.revoked)
            call->observer.revoked(call->observer.arg, &key);
    }
    return reply->count - 2 <= portion_size(call);
}

static void keys_ended(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct person_call *call = arg;
    struct barrier *barrier = call->barrier;
    int64_t lease_max_ms;

    if (result != STORE_OK) {
        finish(call, STORE_UNKNOWN);
        return;
    }
    if (!reply_integer(reply_at(reply, 0), &lease_max_ms) || !portion_read(call, reply)) {
        finish_malformed(call, "revocation");
        return;
    }
    call->portions_at += portion_size(call);
    if (!barrier) {
        keys_end(call);
        return;
    }
    call->barrier = NULL;
    if (!barrier_wait(barrier, lease_max_ms, reply_at(reply, 1), keys_over, call)) {
        call->barrier = barrier;
        finish_malformed(call, "revocation");
    }
}

static void keys_over(void *arg, bool is_over)
{
    struct person_call *call = arg;

    if (!is_over)
        finish(call, STORE_UNKNOWN);
    else if (call->change.kind == PERSON_REMOVE)
        person_remove(call);
    else
        change_settle(call);
}

/* The user is disabled by now, and the change's credential may have been the user's own. */
static void person_remove(struct person_call *call)
{
    struct script_args args;
    struct keys_told told;

    args_begin(&args);
    args_add(&args, id_text(&call->user));
    args_add(&args, id_text(&call->person.user.account));
    args_add_source(&args, call->store, &call->kept_source.source);
    args_add_told(&args, call, &told);
    store_call_script(call->store, SCRIPT_person_remove, SCRIPT_CHANGES, args.count, args.argv, person_removed, call);
}

static void person_removed(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct person_call *call = arg;
    int64_t ended;

    if (result == STORE_OK && reply_integer(reply_at(reply, 0), &ended)) {
        call->sessions_ended += ended;
        if (partitions_are_closing(call->partitions))
            finish(call, STORE_UNKNOWN);
        else
            email_release(call->partitions, &call->user, text_of(call->person.user.email), email_released, call);
    } else if (result == STORE_OK) {
        finish_malformed(call, "removal");
    } else {
        finish(call, result == STORE_UNAVAILABLE ? STORE_UNKNOWN : result);
    }
}

/* A claim that is left hinders nobody. */
static void email_released(void *arg, UNUSED enum store_result result)
{
    struct person_call *call = arg;

    if (partitions_are_closing(call->partitions))
        finish(call, STORE_UNKNOWN);
    else
        change_settle(call);
}

static void settled(void *arg, bool is_over)
{
    finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

static void change_settle(struct person_call *call)
{
    barriers_settle(lease_barriers(store_lease(call->store)), settled, call);
}
