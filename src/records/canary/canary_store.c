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

static bool value_phase(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    static const char *const PHASES[] = {
        [CANARY_NONE] = "", [CANARY_USE] = "use", [CANARY_ASK] = "ask", [CANARY_OVER] = "over"};
    const size_t phase = reply_word(value, PHASES, sizeof PHASES / sizeof *PHASES);

    *(enum canary_phase *)ret = (enum canary_phase)phase;
    return phase < sizeof PHASES / sizeof *PHASES;
}

/* canary_visit.lua */
static const struct reply_field VIEW_FIELDS[] = {
    REPLY_FIELD("run", value_count, canary_view, run),
    REPLY_FIELD_OR_NONE("phase", value_phase, canary_view, phase),
    REPLY_FIELD_OR_NONE("nonce", value_text, canary_view, nonce),
    REPLY_FIELD_OR_NONE("master_key", value_text, canary_view, master_key),
    REPLY_ROW("key", true, value_id, canary_view, key, ID_KEY),
    REPLY_FIELD("revoke_in", value_count, canary_view, revoke_in_ms),
    REPLY_FIELD("is_runner", value_flag, canary_view, is_runner),
    REPLY_FIELD("used", value_count, canary_view, used),
    REPLY_FIELD("answered", value_count, canary_view, answered),
    REPLY_FIELD("due_in", value_count, canary_view, due_in_ms),
    REPLY_FIELD("may_begin", value_flag, canary_view, may_begin),
    REPLY_FIELD_OR_NONE("since_finished", value_count, canary_view, since_finished_ms),
};

static void visit_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct canary_view view = {.since_finished_ms = -1};

    if (result == STORE_OK)
        result = reply_checked(asked->store, REPLY_RECORD(reply_at(reply, 0), VIEW_FIELDS, &view), "canary");
    ((canary_visited *)asked->done)(asked->arg, result, result == STORE_OK ? &view : NULL);
}

static void left_answer(const struct verb_asked *asked, enum store_result result,
                        UNUSED const struct redis_reply *reply)
{
    static const struct canary_view NOTHING = {0};

    ((canary_visited *)asked->done)(asked->arg, result, result == STORE_OK ? &NOTHING : NULL);
}

void canary_store_visit(struct store *store, const struct canary_node *node, int64_t run, enum canary_finding finding,
                        canary_visited *done, void *arg)
{
    struct script_args args;

    args_begin_node(&args, node);
    args_add_int(&args, node->interval_ms);
    args_add_int(&args, run);
    args_add(&args, FINDINGS[finding]);
    verb_ask(store, SCRIPT_canary_visit, SCRIPT_READS, &args, finding == CANARY_LEFT ? left_answer : visit_answer,
             (verb_done *)done, arg);
}

/* Runs */

static void begin_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    bool has_abandoned = false;

    if (result == STORE_OK)
        result = reply_checked(asked->store, reply_flag(reply_at(reply, 0), &has_abandoned), "run of the canary");
    ((canary_began *)asked->done)(asked->arg, result, has_abandoned);
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
    struct script_args args;
    struct buf packed = BUF_FIXED(KEY_TEXT_MAX_BYTES);

    args_begin_node(&args, node);
    args_add_int(&args, node->interval_ms);
    args_add_int(&args, key->revoke_in_ms);
    args_add(&args, key->nonce);
    args_add(&args, keyring_short_name(store_keyring(store), 0));
    args_add(&args, id_text(&key->id));
    args_add_hex(&args, key->digest, KEY_DIGEST_BYTES);
    encode_key(store, key, &packed);
    args_add(&args, buf_text(&packed));
    verb_ask(store, SCRIPT_canary_begin, SCRIPT_READS, &args, begin_answer, (verb_done *)done, arg);
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

/* canary_read.lua */
static const struct reply_field STATE_FIELDS[] = {
    REPLY_FIELD_OR_NONE("interval", value_count, canary_state, interval_ms),
    REPLY_FIELD_OR_NONE("finished_runs", value_count, canary_state, finished),
    REPLY_FIELD_OR_NONE("since_finished", value_count, canary_state, since_finished_ms),
    REPLY_FIELD_OR_NONE("finished_by", value_text, canary_state, finished_by),
    REPLY_FIELD_OR_NONE("finished_us", value_count, canary_state, took_us),
    REPLY_FIELD_OR_NONE("refused", value_count, canary_state, refused),
    REPLY_FIELD_OR_NONE("accepted", value_count, canary_state, accepted),
    REPLY_FIELD_OR_NONE("silent", value_count, canary_state, silent),
    REPLY_FIELD_OR_NONE("slowest", value_text, canary_state, slowest),
    REPLY_FIELD_OR_NONE("slowest_ms", value_integer, canary_state, slowest_ms),
    REPLY_FIELD_OR_NONE("unfinished", value_count, canary_state, unfinished),
    REPLY_FIELD_OR_NONE("since_unfinished", value_count, canary_state, since_unfinished_ms),
    REPLY_FIELD_OR_NONE("unfinished_why", value_text, canary_state, unfinished_why),
    REPLY_FIELD_OR_NONE("violations", value_count, canary_state, violations),
    REPLY_FIELD_OR_NONE("since_violated", value_count, canary_state, since_violation_ms),
    REPLY_FIELD_OR_NONE("violated_by", value_text, canary_state, violated_by),
};

static void read_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct canary_state state = {.since_finished_ms = -1, .since_unfinished_ms = -1, .since_violation_ms = -1};

    if (result == STORE_OK)
        result =
            reply_checked(asked->store, REPLY_RECORD(reply_at(reply, 0), STATE_FIELDS, &state), "state of the canary");
    ((canary_was_read *)asked->done)(asked->arg, result, result == STORE_OK ? &state : NULL);
}

void canary_store_read(struct store *store, canary_was_read *done, void *arg)
{
    verb_ask(store, SCRIPT_canary_read, SCRIPT_READS, NULL, read_answer, (verb_done *)done, arg);
}
