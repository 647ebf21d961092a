/* What the answer of a script means: its result, or what the store, its rights or its place have lost. */
#include "base/check.h"
#include "base/loss.h"
#include "engine/access.h"
#include "engine/outcome.h"
#include "engine/readiness.h"
#include "engine/script_words.h"
#include "engine/store.h"
#include "script_call.h"
#include "state.h"
#include <string.h>

static void note_refusal(const struct script_call *call, const struct script_refusal *refusal)
{
    struct store *store = call->store;

    if (call->class == SCRIPT_PROBE)
        store->examination.refusal = refusal ? refusal->reason : NULL;
    else if (refusal && refusal->is_full)
        store_note_full(store, true);
    else if (refusal && call->class == SCRIPT_CHANGE && !refusal->is_of_rights)
        store_doubt(store, refusal->reason);
}

/* The user of Redis lacks a right: to run scripts at all, or a command of this one. */
static void note_denial(const struct script_call *call, enum redis_outcome outcome, const struct redis_reply *reply)
{
    static const struct text WITHIN = TEXT("user executing the script can't run");
    struct store *store = call->store;
    struct text error = outcome == REDIS_REPLIED && reply->type == REPLY_ERROR ? reply->text : TEXT("");

    if (!text_equal(reply_error_kind(reply), TEXT("NOPERM")) &&
        (error.len == 0 || !memmem(error.ptr, error.len, WITHIN.ptr, WITHIN.len)))
        return;
    if (store_may_log(store, &store->denial_pause))
        LOSS_TELL(LOSS_RIGHTS, log_str("script", LUA_SCRIPTS[call->script].name),
                  log_text("error", reply_error_shown(reply)), log_int("suppressed", store->denial_pause.suppressed));
    else
        metric_add(METRIC_REDIS_DENIED, 1);
}

/* A store that lacks something says so in place of a result. */
static bool has_lost(struct identity *identity, struct text word)
{
    if (text_equal(word, TEXT("behind")))
        identity_behind(identity);
    else if (text_equal(word, TEXT("missing")))
        identity_misses(identity);
    else
        return false;
    return true;
}

const struct redis_reply *script_take_numbers(struct script_call *call, const struct redis_reply *reply)
{
    struct text word;
    int64_t ends, all;

    if (!reply_text(reply_at(reply, 0), &word) || !text_equal(word, TEXT("numbered")) ||
        !reply_integer(reply_at(reply, 1), &ends) || !reply_integer(reply_at(reply, 2), &all) || ends < 0 || all < 0)
        return reply; /* which is no result, so it is malformed */
    call->numbers = (struct chain_numbers){(uint64_t)ends, (uint64_t)all};
    return reply_at(reply, 3);
}

enum store_result script_result(struct script_call *call, enum redis_outcome outcome, const struct redis_reply *reply,
                                struct redis_reply *ret_rest)
{
    enum store_result result = store_outcome(call->store, outcome, reply);
    struct identity *identity = lease_identity(call->store->lease);
    struct text word;

    if (call->class == SCRIPT_REPORT)
        return result;
    note_refusal(call, outcome == REDIS_REPLIED ? script_refusal_of(reply_error_kind(reply)) : NULL);
    note_denial(call, outcome, reply);
    if (outcome == REDIS_REPLIED && text_equal(reply_error_kind(reply), TEXT("READONLY")))
        identity_demoted(identity);
    if (result != STORE_OK)
        return result;
    if (reply_text(reply_at(reply, 0), &word) && text_equal(word, TEXT("moved")) &&
        reply_text(reply_at(reply, 1), &word)) {
        identity_moved(identity, word);
        if (call->class == SCRIPT_PROBE)
            call->store->examination.refusal = identity_strange(identity);
        return STORE_UNAVAILABLE;
    }
    if (reply_text(reply_at(reply, 0), &word) && text_equal(word, TEXT("other_store")) &&
        reply_text(reply_at(reply, 1), &word) && !identity_found(identity, word))
        return STORE_UNAVAILABLE;
    if (reply_text(reply_at(reply, 0), &word) && has_lost(identity, word))
        return STORE_UNAVAILABLE;
    if (!reply_text(reply_at(reply, 0), &word) || !script_result_read(word, &result)) {
        store_malformed(call->store, LUA_SCRIPTS[call->script].name);
        return STORE_UNAVAILABLE;
    }
    INVARIANT(reply->count > 0);
    *ret_rest = (struct redis_reply){.type = REPLY_ARRAY, .count = reply->count - 1, .items = reply->items + 1};
    return result;
}
