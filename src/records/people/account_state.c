#include "records/account_state.h"

#include "base/mem.h"
#include "email_claim.h"
#include "keys/effect_notes.h"
#include "lease/lease.h"
#include "engine/verb.h"
#include <stdlib.h>

static void args_begin_change(struct script_args *args, const struct store *store, const struct id *account,
                              const struct audit_source *source)
{
    args_begin(args);
    args_add(args, id_text(account));
    args_add_source(args, store, source);
}

static void args_add_barrier(struct script_args *args, const struct barrier *barrier)
{
    args_add(args, barrier_member(barrier));
    args_add(args, barrier_name(barrier));
}

/* Suspending */

struct suspend_call {
    struct store *store;
    struct id account;
    struct barrier *barrier;
    struct barrier_tally tally;
    account_was_suspended *done;
    void *arg;
    struct account_suspension suspension;
};

static void suspend_finish(struct suspend_call *call, enum store_result result)
{
    call->done(call->arg, result, result == STORE_OK ? &call->suspension : NULL);
    free(call);
}

static void suspend_over(void *arg, bool is_over)
{
    struct suspend_call *call = arg;
    const struct key_ended ended = {&call->account, &call->account, call->suspension.since_ms,
                                    call->suspension.was_suspended};

    if (is_over)
        effect_notes_add(call->store, &ended, 1, &call->tally);
    suspend_finish(call, is_over ? STORE_OK : STORE_UNKNOWN);
}

/* The account stays suspended even if the barrier fails. Then the result is STORE_UNKNOWN. */
static void suspend_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct suspend_call *call = arg;
    struct account_suspension *suspension = &call->suspension;
    int64_t lease_max_ms;

    if (result != STORE_OK) {
        barrier_drop(call->barrier);
        suspend_finish(call, result);
        return;
    }
    bool is_read = reply_chars(reply_at(reply, 0), suspension->name, sizeof suspension->name) &&
                   reply_time(reply_at(reply, 1), &suspension->since_ms) &&
                   reply_flag(reply_at(reply, 2), &suspension->was_suspended) &&
                   reply_integer(reply_at(reply, 3), &lease_max_ms);
    if (!is_read || !barrier_wait(call->barrier, lease_max_ms, reply_at(reply, 4), suspend_over, call)) {
        store_malformed(call->store, "suspension");
        barrier_drop(call->barrier);
        suspend_finish(call, STORE_UNKNOWN);
    }
}

void account_store_suspend(struct store *store, const struct id *account, bool begins_closing,
                           const struct audit_source *source, account_was_suspended *done, void *arg)
{
    struct suspend_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct suspend_call){.store = store, .account = *account, .done = done, .arg = arg};
    call->barrier = barrier_begin(lease_barriers(store_lease(store)));
    barrier_tell(call->barrier, &call->tally);
    args_begin_change(&args, store, account, source);
    args_add_barrier(&args, call->barrier);
    args_add(&args, begins_closing ? TEXT("1") : TEXT("0"));
    store_call_script(store, SCRIPT_account_suspend, SCRIPT_CHANGES, args.count, args.argv, suspend_called, call);
}

static void resume_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct account_suspension suspension = {0};

    if (result == STORE_OK && (!reply_chars(reply_at(reply, 0), suspension.name, sizeof suspension.name) ||
                               !reply_flag(reply_at(reply, 1), &suspension.was_suspended))) {
        store_malformed(asked->store, "resumption");
        result = STORE_UNKNOWN;
    }
    ((account_was_suspended *)asked->done)(asked->arg, result, result == STORE_OK ? &suspension : NULL);
}

void account_store_resume(struct store *store, const struct id *account, const struct audit_source *source,
                          account_was_suspended *done, void *arg)
{
    struct script_args args;

    args_begin_change(&args, store, account, source);
    verb_ask(store, SCRIPT_account_resume, SCRIPT_CHANGES, &args, resume_answer, (verb_done *)done, arg);
}

/* Closing */

struct close_call {
    struct store *store;
    struct barrier *barrier; /* NULL: none, or ended */
    account_closed_some *done;
    void *arg;
    struct account_close_step step;
};

static void close_finish(struct close_call *call, enum store_result result)
{
    if (call->barrier)
        barrier_drop(call->barrier);
    call->done(call->arg, result, result == STORE_OK ? &call->step : NULL);
    free(call);
}

static bool step_read(const struct redis_reply *reply, struct account_close_step *ret_step)
{
    return reply_integer(reply_at(reply, 0), &ret_step->count) && reply_flag(reply_at(reply, 1), &ret_step->is_done);
}

static void keys_over(void *arg, bool is_over)
{
    struct close_call *call = arg;

    call->barrier = NULL;
    close_finish(call, is_over ? STORE_OK : STORE_UNKNOWN);
}

static void close_keys_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct close_call *call = arg;
    int64_t lease_max_ms;

    if (result != STORE_OK) {
        close_finish(call, result);
        return;
    }
    bool is_read = step_read(reply, &call->step) && reply_integer(reply_at(reply, 2), &lease_max_ms);
    if (is_read && !call->step.is_done) {
        close_finish(call, STORE_OK);
    } else if (!is_read || !barrier_wait(call->barrier, lease_max_ms, reply_at(reply, 3), keys_over, call)) {
        store_malformed(call->store, "keys of a closing account");
        close_finish(call, STORE_UNKNOWN);
    }
}

void account_store_close_keys(struct store *store, const struct id *account, const struct audit_source *source,
                              account_closed_some *done, void *arg)
{
    struct close_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct close_call){.store = store, .done = done, .arg = arg};
    call->barrier = barrier_begin(lease_barriers(store_lease(store)));
    args_begin_change(&args, store, account, source);
    args_add_barrier(&args, call->barrier);
    store_call_script(store, SCRIPT_account_close_keys, SCRIPT_CHANGES, args.count, args.argv, close_keys_called, call);
}

/* People, in portions. Their emails are released at once, in any order. */

enum { PEOPLE_PER_PORTION = 20 /* as in account_close_people.lua */ };

struct close_people_call {
    struct partitions *partitions;
    struct store *store; /* of the account */
    account_closed_some *done;
    void *arg;
    struct account_close_step step;
    size_t emails_due;
};

static void close_people_called(void *arg, enum store_result result, const struct redis_reply *reply);
static void close_people_release(struct close_people_call *call, const struct redis_reply *removed);
static void close_people_released(void *arg, enum store_result result);
static void close_people_settled(void *arg, bool is_over);

static void close_people_finish(struct close_people_call *call, enum store_result result)
{
    call->done(call->arg, result, result == STORE_OK ? &call->step : NULL);
    free(call);
}

void account_store_close_people(struct partitions *partitions, const struct id *account,
                                const struct audit_source *source, account_closed_some *done, void *arg)
{
    struct close_people_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct close_people_call){
        .partitions = partitions, .store = partition_of_account(partitions, account), .done = done, .arg = arg};
    args_begin_change(&args, call->store, account, source);
    store_call_script(call->store, SCRIPT_account_close_people, SCRIPT_CHANGES, args.count, args.argv,
                      close_people_called, call);
}

static void close_people_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct close_people_call *call = arg;
    const struct redis_reply *removed = reply_at(reply, 3);

    if (result == STORE_OK && step_read(reply, &call->step) &&
        reply_integer(reply_at(reply, 2), &call->step.sessions) && removed && removed->count <= PEOPLE_PER_PORTION) {
        close_people_release(call, removed);
        return;
    }
    if (result == STORE_OK) {
        store_malformed(call->store, "people of a closing account");
        result = STORE_UNKNOWN;
    }
    close_people_finish(call, result);
}

/* An email that cannot be read is left out: a claim that is left hinders nobody. */
static void close_people_release(struct close_people_call *call, const struct redis_reply *removed)
{
    call->emails_due = 1; /* this loop */
    for (size_t i = 0; i < removed->count && !partitions_are_closing(call->partitions); i++) {
        char email[EMAIL_MAX_BYTES + 1];
        struct id user;

        if (reply_id(reply_at(reply_at(removed, i), 0), ID_USER, &user) &&
            reply_chars(reply_at(reply_at(removed, i), 1), email, sizeof email)) {
            call->emails_due++;
            email_release(call->partitions, &user, text_of(email), close_people_released, call);
        }
    }
    close_people_released(call, STORE_OK);
}

static void close_people_released(void *arg, UNUSED enum store_result result)
{
    struct close_people_call *call = arg;

    if (--call->emails_due > 0)
        return;
    if (partitions_are_closing(call->partitions))
        close_people_finish(call, STORE_UNKNOWN);
    else
        barriers_settle(lease_barriers(store_lease(call->store)), close_people_settled, call);
}

static void close_people_settled(void *arg, bool is_over)
{
    close_people_finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

void account_store_close(struct store *store, const struct id *account, bool erases, const struct audit_source *source,
                         store_done *done, void *arg)
{
    struct script_args args;

    args_begin_change(&args, store, account, source);
    args_add(&args, erases ? TEXT("1") : TEXT("0"));
    verb_call_change(store, SCRIPT_account_close, &args, done, arg);
}
