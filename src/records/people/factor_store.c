#include "records/factor_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "person_read.h"
#include "throttle.h"
#include "token_search.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

/* Beginning */

static void begin_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct session_record refused = {0};

    if ((result == STORE_REFUSED && !reply_wait(reply_at(reply, 0), &refused.retry_after_s)) ||
        (result == STORE_CONFLICT && !reply_time(reply_at(reply, 0), &refused.totp_step))) {
        store_malformed(asked->store, "new authenticator");
        result = STORE_UNKNOWN;
    }
    ((session_found *)asked->done)(asked->arg, result,
                                   result == STORE_REFUSED || result == STORE_CONFLICT ? &refused : NULL);
}

void factor_store_begin_totp(struct store *store, const struct session_proof *proof, const struct sealed_totp *totp,
                             session_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, proof->digest, KEYRING_DIGEST_BYTES);
    args_add_int(&args, proof->totp_step);
    args_add(&args, proof->attempt.id);
    args_add(&args, proof->attempt.counters);
    args_add_int(&args, proof->limits->idle_ms);
    args_add_int(&args, proof->limits->absolute_ms);
    args_add_int(&args, proof->limits->step_up_ms);
    args_add(&args, totp_text(totp->bytes));
    verb_ask(store, SCRIPT_totp_begin, SCRIPT_CHANGES, &args, begin_answer, (verb_done *)done, arg);
}

/* Finding */

struct find_call {
    struct token_search search; /* by a ticket; else with no digests, but the partition of the session */
    totp_waits *done;
    void *arg;
};

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply);

static bool waiting_read(const struct redis_reply *reply, struct waiting_totp *ret)
{
    return user_record_read(reply_at(reply, 0), false, &ret->user) &&
           value_bytes(reply_at(reply, 1), ret->totp.bytes, sizeof ret->totp.bytes) &&
           reply_chars(reply_at(reply, 2), ret->by, sizeof ret->by);
}

static void find_send(struct find_call *call, const struct script_args *args)
{
    store_call_script(call->search.store, SCRIPT_totp_waiting, SCRIPT_READS, args->count, args->argv, find_called,
                      call);
}

static void find_by_ticket(struct find_call *call)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, TEXT(""));
    args_add_digests(&args, &call->search.digests);
    find_send(call, &args);
}

static void find_finish(struct find_call *call, enum store_result result, const struct waiting_totp *waiting)
{
    call->done(call->arg, result, waiting);
    free(call);
}

static void find_on(void *arg, enum store_result result)
{
    if (result == STORE_OK)
        find_by_ticket(arg);
    else
        find_finish(arg, result, NULL);
}

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call *call = arg;
    struct waiting_totp waiting;

    if (result == STORE_NOT_FOUND) {
        token_search_go_on(&call->search, find_on, call);
        return;
    }
    if (result == STORE_OK && !waiting_read(reply, &waiting)) {
        store_malformed(call->search.store, "waiting authenticator");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        result = user_record_believe(call->search.store, &waiting.user);
    find_finish(call, result, result == STORE_OK ? &waiting : NULL);
}

void factor_store_find_totp(struct store *store, const struct session_record *session, totp_waits *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct find_call){.search.store = store, .done = done, .arg = arg};
    args_begin(&args);
    args_add(&args, id_text(&session->user.id));
    args_add(&args, text_of(session->sid));
    find_send(call, &args);
}

void factor_store_find_recovery(const struct partitions *partitions, const struct token_digests *ticket,
                                totp_waits *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);

    *call = (struct find_call){.done = done, .arg = arg};
    token_search_begin(&call->search, partitions, ticket);
    CHECK(token_search_next(&call->search));
    find_by_ticket(call);
}

/* Confirming */

void factor_store_confirm_totp(struct store *store, const struct waiting_totp *waiting, int64_t step,
                               const uint8_t *session, const struct audit_source *source, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&waiting->user.id));
    args_add(&args, text_of(waiting->by));
    args_add(&args, totp_text(waiting->totp.bytes));
    args_add_int(&args, step);
    args_add_hex(&args, session, KEYRING_DIGEST_BYTES);
    args_add_client(&args, store, source);
    args_add_credential(&args, &source->credential);
    verb_call_ending(store, SCRIPT_totp_confirm, &args, done, arg);
}

/* Recovery */

struct recovery_call {
    const struct partitions *partitions;
    struct store *store; /* of the user's account */
    struct recovery_start start;
    store_limited *done;
    void *arg;
};

static void recovery_checked(void *arg, enum store_result result, const struct throttle_verdict *verdict);
static void recovery_called(void *arg, enum store_result result, const struct redis_reply *reply);

static void recovery_finish(struct recovery_call *call, enum store_result result, uint32_t retry_after_s)
{
    call->done(call->arg, result, retry_after_s);
    free(call);
}

void factor_store_begin_recovery(const struct partitions *partitions, const struct recovery_start *start,
                                 store_limited *done, void *arg)
{
    struct recovery_call *call = mem_alloc(sizeof *call);

    *call =
        (struct recovery_call){partitions, partition_of_account(partitions, &start->user->account), *start, done, arg};
    throttle_judge(partitions, &start->attempt, THROTTLE_CHECK, recovery_checked, call);
}

static void recovery_checked(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    struct recovery_call *call = arg;
    const struct recovery_start *start = &call->start;
    struct script_args args;

    if (result != STORE_OK) {
        recovery_finish(call, result, verdict->retry_after_s);
        return;
    }
    args_begin(&args);
    args_add(&args, id_text(&start->user->id));
    args_add(&args, start->attempt.id);
    args_add(&args, throttle_counters_at_home(&start->attempt));
    args_add(&args, text_of(start->user->password_hash));
    args_add_digests(&args, start->code);
    args_add_hex(&args, start->ticket, KEYRING_DIGEST_BYTES);
    args_add(&args, totp_text(start->totp->bytes));
    store_call_script(call->store, SCRIPT_recovery_begin, SCRIPT_CHANGES, args.count, args.argv, recovery_called, call);
}

static void recovery_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct recovery_call *call = arg;
    uint32_t retry_after_s = 0;

    if (result == STORE_REFUSED && !reply_wait(reply_at(reply, 0), &retry_after_s)) {
        store_malformed(call->store, "recovery");
        result = STORE_UNKNOWN;
    }
    if (result == STORE_OK)
        throttle_succeed(call->partitions, &call->start.attempt);
    recovery_finish(call, result, retry_after_s);
}

void factor_store_set_recovery_codes(struct store *store, const struct id *account,
                                     const uint8_t (*digests)[KEYRING_DIGEST_BYTES], const struct audit_source *source,
                                     store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_source(&args, store, source);
    args_add(&args, id_text(account));
    args_add_credential(&args, &source->credential);
    args_add(&args, keyring_short_name(store_keyring(store), 0));
    for (size_t i = 0; i < RECOVERY_CODES; i++)
        args_add_hex(&args, digests[i], KEYRING_DIGEST_BYTES);
    verb_call_ending(store, SCRIPT_recovery_codes_set, &args, done, arg);
}

static void left_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    int64_t count = 0, made_ms = 0;

    if (result == STORE_OK)
        result = reply_checked(asked->store,
                               value_count(reply_at(reply, 0), &count, sizeof count) &&
                                   value_count(reply_at(reply, 1), &made_ms, sizeof made_ms),
                               "recovery codes");
    ((recovery_codes_left *)asked->done)(asked->arg, result, count, made_ms);
}

void factor_store_count_recovery_codes(struct store *store, const struct id *user, recovery_codes_left *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    verb_ask(store, SCRIPT_recovery_codes_left, SCRIPT_READS, &args, left_answer, (verb_done *)done, arg);
}
