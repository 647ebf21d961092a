#include "records/canary_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "core/bucket.h"
#include "records/key_store.h"
#include "engine/verb.h"

#include <stdio.h>
#include <stdlib.h>

/* A run's key is marked by Redis' clock, but never before its creation, which is by the node's. So the creation is long
 * ago, and the mark tells when the key was revoked, whatever the node's clock says. */
enum { CREATED_MS = 1 };

static const struct text FINDINGS[] = {
    [CANARY_NOTHING] = {"", 0},          [CANARY_USED] = {"used", 4},   [CANARY_REFUSED] = {"refused", 7},
    [CANARY_VIOLATED] = {"violated", 8}, [CANARY_ASKED] = {"asked", 5}, [CANARY_LEFT] = {"left", 4},
};

static void args_begin_node(struct script_args *args, const struct canary_node *node)
{
    args_begin(args);
    args_add(args, node->name);
    args_add(args, node->process);
}

/* Visits */

struct visit_call {
    struct store *store;
    bool leaves;
    canary_visited *done;
    void *arg;
};

static bool read_phase(const struct redis_reply *reply, enum canary_phase *ret_phase)
{
    static const struct text PHASES[] = {
        [CANARY_NONE] = {"", 0}, [CANARY_USE] = {"use", 3}, [CANARY_ASK] = {"ask", 3}, [CANARY_OVER] = {"over", 4}};
    struct text name;

    if (!reply_text(reply, &name))
        return false;
    for (size_t i = 0; i < sizeof PHASES / sizeof *PHASES; i++) {
        if (!text_equal(name, PHASES[i]))
            continue;
        *ret_phase = (enum canary_phase)i;
        return true;
    }
    return false;
}

static bool read_flag(const struct redis_reply *reply, bool *ret_flag)
{
    int64_t number;

    if (!reply_integer(reply, &number))
        return false;
    *ret_flag = number != 0;
    return true;
}

static bool read_key(const struct redis_reply *reply, struct id *ret_id)
{
    struct text id;

    return reply_text(reply, &id) && (id.len == 0 || id_parse(ID_KEY, id, ret_id));
}

static bool read_view(const struct redis_reply *reply, struct canary_view *ret_view)
{
    size_t at = 0;

    return reply_integer(reply_at(reply, at++), &ret_view->run) &&
           read_phase(reply_at(reply, at++), &ret_view->phase) && reply_text(reply_at(reply, at++), &ret_view->nonce) &&
           reply_text(reply_at(reply, at++), &ret_view->master_key) &&
           read_key(reply_at(reply, at++), &ret_view->key) &&
           reply_integer(reply_at(reply, at++), &ret_view->revoke_in_ms) &&
           read_flag(reply_at(reply, at++), &ret_view->is_runner) &&
           reply_integer(reply_at(reply, at++), &ret_view->used) &&
           reply_integer(reply_at(reply, at++), &ret_view->answered) &&
           reply_integer(reply_at(reply, at++), &ret_view->due_in_ms) &&
           read_flag(reply_at(reply, at++), &ret_view->may_begin) &&
           reply_integer(reply_at(reply, at++), &ret_view->since_finished_ms);
}

static void visit_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct visit_call call = *(struct visit_call *)arg;
    struct canary_view view = {0};

    free(arg);
    if (result == STORE_OK && !call.leaves && !read_view(reply, &view)) {
        store_malformed(call.store, "canary");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &view : NULL);
}

void canary_store_visit(struct store *store, const struct canary_node *node, int64_t run, enum canary_finding finding,
                        canary_visited *done, void *arg)
{
    struct visit_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct visit_call){store, finding == CANARY_LEFT, done, arg};
    args_begin_node(&args, node);
    args_add_int(&args, node->interval_ms);
    args_add_int(&args, run);
    args_add(&args, FINDINGS[finding]);
    store_call_script(store, SCRIPT_canary_visit, SCRIPT_READS, args.count, args.argv, visit_called, call);
}

/* Runs */

struct begin_call {
    struct store *store;
    canary_began *done;
    void *arg;
};

static void begin_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct begin_call call = *(struct begin_call *)arg;
    bool has_abandoned = false;

    free(arg);
    if (result == STORE_OK && !read_flag(reply_at(reply, 0), &has_abandoned)) {
        store_malformed(call.store, "run of the canary");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, has_abandoned);
}

static void encode_key(struct store *store, const struct canary_key *key, struct buf *out)
{
    struct key_record record = {.id = key->id, .kind = KEY_API, .mode = MODE_TEST, .created_ms = CREATED_MS};

    canary_account(bucket_of_digest(key->digest), &record.account);
    CHECK(key_set_name(&record, TEXT("canary")));
    key_set_last4(&record, key->secret);
    key_encode(&record, store_keyring(store), key->digest, out);
    CHECK(!out->failed);
}

void canary_store_begin(struct store *store, const struct canary_node *node, const struct canary_key *key,
                        canary_began *done, void *arg)
{
    struct begin_call *call = mem_alloc(sizeof *call);
    char storage[KEY_TEXT_MAX_BYTES];
    struct script_args args;
    struct buf packed;

    *call = (struct begin_call){store, done, arg};
    args_begin_node(&args, node);
    args_add_int(&args, node->interval_ms);
    args_add_int(&args, key->revoke_in_ms);
    args_add(&args, key->nonce);
    args_add(&args, keyring_short_name(store_keyring(store), 0));
    args_add(&args, id_text(&key->id));
    args_add_hex(&args, key->digest, KEY_DIGEST_BYTES);
    buf_init_fixed(&packed, storage, sizeof storage);
    encode_key(store, key, &packed);
    args_add(&args, buf_text(&packed));
    store_call_script(store, SCRIPT_canary_begin, SCRIPT_READS, args.count, args.argv, begin_called, call);
}

struct step_call {
    store_done *done;
    void *arg;
};

static void call_step(struct store *store, const struct canary_node *node, int64_t run, struct text phase,
                      int64_t took_us, struct text why, store_done *done, void *arg)
{
    struct script_args args;

    args_begin_node(&args, node);
    args_add_int(&args, run);
    args_add(&args, phase);
    args_add_int(&args, took_us);
    args_add(&args, why);
    verb_call(store, SCRIPT_canary_step, SCRIPT_READS, args.count, args.argv, done, arg);
}

void canary_store_ask(struct store *store, const struct canary_node *node, int64_t run, int64_t took_us,
                      store_done *done, void *arg)
{
    call_step(store, node, run, TEXT("ask"), took_us, TEXT(""), done, arg);
}

void canary_store_end(struct store *store, const struct canary_node *node, int64_t run, const char *why,
                      store_done *done, void *arg)
{
    call_step(store, node, run, TEXT("over"), 0, why ? text_of(why) : TEXT(""), done, arg);
}

static void revoked(void *arg, enum store_result result, UNUSED const struct key_record *key)
{
    struct step_call call = *(struct step_call *)arg;

    free(arg);
    call.done(call.arg, result);
}

void canary_store_revoke(struct store *store, const struct id *key, store_done *done, void *arg)
{
    static const struct key_view ANY = {.any_kind = true};
    struct step_call *call = mem_alloc(sizeof *call);

    *call = (struct step_call){done, arg};
    key_store_revoke(store, &ANY, key, &(struct audit_source){.actor = TEXT("system")}, revoked, call);
}

/* For operators */

struct read_call {
    struct store *store;
    canary_was_read *done;
    void *arg;
};

static bool read_last_run(const struct redis_reply *reply, struct canary_state *ret_state)
{
    return reply_integer(reply_at(reply, 0), &ret_state->interval_ms) &&
           reply_integer(reply_at(reply, 1), &ret_state->finished) &&
           reply_integer(reply_at(reply, 2), &ret_state->since_finished_ms) &&
           reply_text(reply_at(reply, 3), &ret_state->finished_by) &&
           reply_integer(reply_at(reply, 4), &ret_state->took_us) &&
           reply_integer(reply_at(reply, 5), &ret_state->refused) &&
           reply_integer(reply_at(reply, 6), &ret_state->accepted) &&
           reply_integer(reply_at(reply, 7), &ret_state->silent) &&
           reply_text(reply_at(reply, 8), &ret_state->slowest) &&
           reply_integer(reply_at(reply, 9), &ret_state->slowest_ms);
}

static bool read_troubles(const struct redis_reply *reply, struct canary_state *ret_state)
{
    return reply_integer(reply_at(reply, 10), &ret_state->unfinished) &&
           reply_integer(reply_at(reply, 11), &ret_state->since_unfinished_ms) &&
           reply_text(reply_at(reply, 12), &ret_state->unfinished_why) &&
           reply_integer(reply_at(reply, 13), &ret_state->violations) &&
           reply_integer(reply_at(reply, 14), &ret_state->since_violation_ms) &&
           reply_text(reply_at(reply, 15), &ret_state->violated_by);
}

static void read_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct read_call call = *(struct read_call *)arg;
    struct canary_state state = {0};

    free(arg);
    if (result == STORE_OK && (!read_last_run(reply, &state) || !read_troubles(reply, &state))) {
        store_malformed(call.store, "state of the canary");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &state : NULL);
}

void canary_store_read(struct store *store, canary_was_read *done, void *arg)
{
    struct read_call *call = mem_alloc(sizeof *call);

    *call = (struct read_call){store, done, arg};
    store_call_script(store, SCRIPT_canary_read, SCRIPT_READS, 0, NULL, read_called, call);
}
