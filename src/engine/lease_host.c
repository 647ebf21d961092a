#include "lease_host.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "engine/outcome.h"
#include "engine/part.h"
#include "engine/readiness.h"
#include "state.h"
#include "store_examine.h"
#include "engine/verb.h"
#include <stdlib.h>

/* In node_heartbeat.lua's reply, behind 'ok'. */
enum { HEARTBEAT_TIME, HEARTBEAT_IS_DUE, HEARTBEAT_LAST, HEARTBEAT_JOINED, HEARTBEAT_COUNT, HEARTBEAT_CHAINS };
enum { TIME_BYTES = 120 };

static enum lease_answer answer_of(enum store_result result, const struct redis_reply *reply)
{
    bool has_too_few = result == STORE_REFUSED && !reply;

    return result == STORE_OK ? LEASE_DONE : has_too_few ? LEASE_TOO_FEW : LEASE_FAILED;
}

struct heartbeat_call {
    struct store *store;
    struct redis_clock_question asked;
    uint64_t chains_since;
    lease_heartbeat_answered *done;
    void *arg;
};

/* Each time that it changes: the store's time is ahead of Redis' clock, or behind it, or neither. */
static void tell_apart(struct store *store, int64_t ahead_ms)
{
    int apart = ahead_ms > STORE_TIME_APART_MS ? 1 : ahead_ms < -STORE_TIME_APART_MS ? -1 : 0;
    struct log_field partition = log_partition(store->prefix);

    if (apart == store->time_apart)
        return;
    store->time_apart = apart;
    if (apart > 0)
        LOG(LOG_WARN, "Redis' clock was set back: the store's time goes on ahead of it", log_int("ahead_ms", ahead_ms),
            partition);
    else if (apart < 0)
        LOG(LOG_WARN, "Redis' clock was set forward and is not believed: keys that end before it are answered 503",
            log_int("behind_ms", -ahead_ms), partition);
    else
        LOG(LOG_INFO, "the store's time is Redis' clock again", log_int("ahead_ms", ahead_ms), partition);
}

static void note_time(const struct heartbeat_call *call, const struct redis_reply *reply)
{
    const struct redis_reply *time = reply_at(reply, HEARTBEAT_TIME);
    struct store_time_told told = {.sent_ns = call->asked.sent_ns, .read_ns = clock_boot_ns()};
    struct store *store = call->store;
    enum store_time_how how;
    int64_t is_due;

    if (!store_time_read(time, &told.said) || !store_time_read_how(time, &how) ||
        !reply_integer(reply_at(reply, HEARTBEAT_IS_DUE), &is_due)) {
        store_malformed(store, "time");
        return;
    }
    redis_clock_told(&store->clock, &call->asked, told.said.clock_ms);
    if (store_time_told(&store->time, &told, how) && lease_member(store->lease))
        membership_forget(lease_member(store->lease), "Redis' clock was set forward: scheduled revocations may be due");
    tell_apart(store, store_time_ahead(&told.said));
    parts_beat(store, is_due != 0);
}

/* Enough replicas have acknowledged the heartbeat, and so everything before it. A process that counts fewer changes
 * than before was another's replica meanwhile, and has that one's data. */
static void note_chains(const struct heartbeat_call *call, const struct redis_reply *reply)
{
    struct chains *chains = lease_chains(call->store->lease);
    uint64_t count, joined;

    if (!reply_count(reply_at(reply, HEARTBEAT_COUNT), &count) ||
        !reply_count(reply_at(reply, HEARTBEAT_JOINED), &joined))
        return;
    chains_heard_joined(chains, joined);
    if (chains_count(chains) != call->chains_since)
        return; /* it asked for another part of them; the next heartbeat asks again */
    if (count < call->chains_since)
        identity_behind(lease_identity(call->store->lease));
    for (size_t i = HEARTBEAT_CHAINS; i < reply->count; i++) {
        struct chain_record record;
        struct text maker, packed;

        if (reply_text(reply_at(reply_at(reply, i), 0), &maker) &&
            reply_text(reply_at(reply_at(reply, i), 1), &packed) && chain_read(packed, &record))
            chains_heard(chains, maker, &record);
    }
    chains_heard_all(chains, count);
}

/* Folding away the chains of the dead */

enum { FOLDS_AT_ONCE = 32, FOLD_ARGS = 3, RECORD_BYTES = 64 };

struct folding {
    struct store *store;
    struct chain_change changes[FOLDS_AT_ONCE];
    size_t count;
};

static void on_folded(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct folding *folding = arg;

    REQUIRE(folding->store->is_folding && folding->count > 0);
    folding->store->is_folding = false;
    for (size_t i = 0; result == STORE_OK && i < folding->count; i++)
        chains_changed(lease_chains(folding->store->lease), &folding->changes[i]);
    free(folding);
}

/* The arguments of chains_fold.lua for one. storage must live until it is called. */
static void print_change(const struct chain_change *change, char storage[2][RECORD_BYTES], struct text *ret_argv)
{
    struct buf known, to;

    buf_init_fixed(&known, storage[0], RECORD_BYTES);
    buf_init_fixed(&to, storage[1], RECORD_BYTES);
    chain_print(&change->chain.record, &known);
    if (change->to.numbers.all > 0)
        chain_print(&change->to, &to);
    ret_argv[0] = text_of(change->chain.maker);
    ret_argv[1] = buf_text(&known);
    ret_argv[2] = buf_text(&to);
}

static void fold(struct store *store)
{
    char storage[FOLDS_AT_ONCE][2][RECORD_BYTES];
    struct text argv[FOLDS_AT_ONCE * FOLD_ARGS];
    struct folding due = {.store = store}, *folding;

    if (store->is_folding || store->is_closing)
        return;
    due.count = chains_changes_due(lease_chains(store->lease), due.changes, FOLDS_AT_ONCE);
    if (due.count == 0)
        return;
    for (size_t i = 0; i < due.count; i++)
        print_change(&due.changes[i], storage[i], &argv[i * FOLD_ARGS]);
    folding = mem_alloc(sizeof *folding);
    *folding = due;
    store->is_folding = true;
    /* If Redis loses this, a node repeats it a week later. */
    store_call_script(store, SCRIPT_chains_fold, SCRIPT_UNPROMISED, due.count * FOLD_ARGS, argv, on_folded, folding);
}

static void on_heartbeat(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct heartbeat_call call = *(struct heartbeat_call *)arg;
    struct text last = {0};

    free(arg);
    if (result == STORE_OK) {
        note_time(&call, reply);
        note_chains(&call, reply);
        fold(call.store);
    }
    if (result == STORE_OK && !reply_text(reply_at(reply, HEARTBEAT_LAST), &last))
        last.len = 0;
    call.done(call.arg, answer_of(result, reply), last);
}

static void lease_heartbeat(void *arg, size_t argc, const struct text *argv, lease_heartbeat_answered *done,
                            void *done_arg)
{
    enum script_link link = RULE(RULE_HEARTBEAT_WAIT) ? SCRIPT_HEARTBEATS : SCRIPT_LEAVES;
    struct store *store = arg;
    struct heartbeat_call *call = mem_alloc(sizeof *call);
    char storage[2][TIME_BYTES];
    struct buf measured, basis;
    struct script_args args;

    *call = (struct heartbeat_call){store, redis_clock_question(), chains_count(lease_chains(store->lease)), done,
                                    done_arg};
    buf_init_fixed(&measured, storage[0], sizeof storage[0]);
    buf_init_fixed(&basis, storage[1], sizeof storage[1]);
    store_time_print(&store->time, call->asked.sent_ns, &measured, &basis);
    args_begin(&args);
    for (size_t i = 0; i < argc; i++)
        args_add(&args, argv[i]);
    args_add(&args, buf_text(&measured));
    args_add(&args, buf_text(&basis));
    args_add_int(&args, (int64_t)call->chains_since);
    args_add(&args, text_of(gathering_era(lease_gathering(store->lease))));
    store_call_script(store, SCRIPT_node_heartbeat, link, args.count, args.argv, on_heartbeat, call);
}

struct leave_call {
    lease_answered *done;
    void *arg;
};

static void on_leave(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct leave_call call = *(struct leave_call *)arg;

    free(arg);
    call.done(call.arg, answer_of(result, reply));
}

static void lease_leave(void *arg, size_t argc, const struct text *argv, lease_answered *done, void *done_arg)
{
    struct leave_call *call = mem_alloc(sizeof *call);

    *call = (struct leave_call){done, done_arg};
    store_call_script(arg, SCRIPT_node_leave, SCRIPT_LEAVES, argc, argv, on_leave, call);
}

struct lease_call {
    lease_called *done;
    void *arg;
};

static void on_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct lease_call call = *(struct lease_call *)arg;

    free(arg);
    call.done(call.arg, result == STORE_OK ? reply : NULL);
}

static void lease_call(void *arg, enum lease_script script, size_t argc, const struct text *argv, lease_called *done,
                       void *done_arg)
{
    static const enum script SCRIPTS[] = {
        [LEASE_DECLARE] = SCRIPT_chains_declare,
        [LEASE_TELL] = SCRIPT_endings_tell,
        [LEASE_TOLD] = SCRIPT_changes_told,
        [LEASE_SUSPEND_AGAIN] = SCRIPT_account_suspend_again,
        [LEASE_ACCEPT_LOSS] = SCRIPT_store_accept_loss,
        [LEASE_LOWER] = SCRIPT_store_lower_lease,
    };
    struct lease_call *call = mem_alloc(sizeof *call);

    REQUIRE(script == LEASE_GATHER || (size_t)script < sizeof SCRIPTS / sizeof *SCRIPTS);
    *call = (struct lease_call){done, done_arg};
    if (script == LEASE_GATHER) /* what it says need not be on replicas, which may not have come yet */
        store_call_script(arg, SCRIPT_node_gather, SCRIPT_LEAVES, argc, argv, on_called, call);
    else
        script_call_again(arg, SCRIPTS[script], argc, argv, on_called, call);
}

static void on_lease(void *arg)
{
    readiness_tell(arg);
}

static void on_doubt(void *arg)
{
    store_look_again(arg);
}

static void on_settled(void *arg)
{
    struct store *store = arg;

    if (!store->is_closing && store->changes_up)
        examination_start(store);
}

static void on_malformed(void *arg, const char *what)
{
    store_malformed(arg, what);
}

struct lease *lease_host_create(struct store *store)
{
    const struct lease_settings settings = {
        .loop = store->loop,
        .prefix = store->prefix,
        .timeout_ms = store->settings.timeout_ms,
        .min_replicas = store->settings.min_replicas,
        .resolver = store->resolver,
        .tls = store->settings.tls,
        .may_be_replaced = store->resolver || store->settings.durability_asserted,
        .group = &store->links,
        .accepts_loss = store->settings.unsafe_redis,
        .reads = store->reads,
        .scripts = store->scripts,
        .changes = store->changes,
        .heartbeat = lease_heartbeat,
        .leave = lease_leave,
        .call = lease_call,
        .on_lease = on_lease,
        .on_doubt = on_doubt,
        .on_settled = on_settled,
        .on_malformed = on_malformed,
        .arg = store,
    };

    struct lease *lease = lease_create(&settings);
    struct fence *fence = lease_fence(lease);

    fence->is_cluster = store->settings.resolver != NULL;
    if (store->settings.durability_asserted)
        fence->resolver = NULL; /* whichever takes over knows what was acknowledged */
    return lease;
}
