#include "engine/access.h"
#include "engine/script.h"
#include "engine/script_words.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/secure.h"
#include "core/lease_rules.h"
#include "core/limits.h"
#include "engine/part.h"
#include "engine/readiness.h"
#include "redis/command.h"
#include "script_call.h"
#include "state.h"
#include "engine/store.h"
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMAND_MAX_BYTES = 1024 * 1024, /* a full batch of usage takes 120 KiB */
    COMMAND_KEPT_BYTES = 4 * 1024,
    STORE_NAME_BYTES = REDIS_PREFIX_MAX_BYTES + 2 * STORE_ID_CHARS + 64,
    SENDS_MAX = 3, /* of one call: Redis may forget a script twice; if it refuses to load it, further calls are vain */
};

static void call_send(struct script_call *call);
static void script_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void wait_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply);
static void call_finish(struct script_call *call, const struct redis_reply *reply);

void script_init(struct store *store)
{
    list_init(&store->refused);
    list_init(&store->free_calls);
}

/* Made when it is asked for first: of a hundred scripts a command calls few. */
struct text script_sha1(struct store *store, enum script script)
{
    char *hex = store->script_sha1[script];
    struct text body = LUA_SCRIPTS[script].body;
    unsigned char digest[EVP_MAX_MD_SIZE];

    if (!hex[0]) {
        CHECK(EVP_Digest(body.ptr, body.len, digest, NULL, EVP_sha1(), NULL) == 1);
        encode_hex_text(hex, sizeof store->script_sha1[script], digest, SCRIPT_SHA1_HEX_BYTES / 2);
    }
    return (struct text){hex, SCRIPT_SHA1_HEX_BYTES};
}

/* Calls */

static struct script_call *call_take(struct store *store)
{
    struct list *node = list_first(&store->free_calls);
    struct script_call *call;

    if (node) {
        call = LIST_ENTRY(node, struct script_call, node);
        list_remove(node);
    } else {
        call = mem_alloc(sizeof *call);
        list_init(&call->node);
        buf_init(&call->command, COMMAND_MAX_BYTES);
    }
    arena_init(&call->kept, NULL, 0);
    call->store = store;
    call->is_unpromised = call->is_work = call->is_eval = call->must_eval = call->must_repeat = false;
    call->due = call->sends = 0;
    call->numbers = (struct chain_numbers){0};
    call->reply = NULL;
    call->replied = NULL;
    return call;
}

/* The arguments contain digests and password hashes. */
static void call_give_back(struct script_call *call)
{
    REQUIRE(list_empty(&call->node));
    arena_finish(&call->kept);
    secure_wipe(call->command.ptr, call->command.len);
    buf_clear(&call->command);
    if (call->command.capacity > COMMAND_KEPT_BYTES) {
        buf_finish(&call->command);
        buf_init(&call->command, COMMAND_MAX_BYTES);
    }
    list_append(&call->store->free_calls, &call->node);
}

void script_finish(struct store *store)
{
    struct list *node;

    while ((node = list_first(&store->free_calls))) {
        struct script_call *call = LIST_ENTRY(node, struct script_call, node);

        list_remove(node);
        buf_finish(&call->command);
        free(call);
    }
}

static bool has_store(const struct store *store)
{
    return identity_known(lease_identity(store->lease))[0] && RULE(RULE_STORE_ID);
}

/* The chain of the node's audit log, whatever else is told. */
static void append_log(const struct script_call *call, struct buf *out)
{
    const struct store_log *log = call->store->log;
    char name[STORE_NAME_BYTES];

    if (!log)
        return;
    snprintf(name, sizeof name, "%slog:%s", call->store->prefix, log->chain(log->arg));
    redis_command_append(out, text_of(name));
}

/* Every script names a key of its partition's slot, so that a cluster runs it at the primary of the slot or not at all.
 * No such key ever exists, so that the script is refused as a whole while its slot is being moved (ASK): it names its
 * real keys itself, and some of them may have moved already. */
static size_t key_count(const struct store *store)
{
    size_t count = (size_t)has_store(store) + (store->log != NULL);

    return count > 0 ? count : 1;
}

static void append_no_store(const struct script_call *call, struct buf *out)
{
    char name[STORE_NAME_BYTES];

    if (has_store(call->store) || call->store->log)
        return;
    snprintf(name, sizeof name, "%sno_store", call->store->prefix);
    redis_command_append(out, text_of(name));
}

/* Scripts that must run whatever the store has lost: by them it gets it back, or they decide nothing. */
static bool compares(const struct script_call *call)
{
    return call->class == SCRIPT_PLAIN || call->class == SCRIPT_CHANGE || call->class == SCRIPT_HEARTBEAT;
}

/* Commands share a chain for each run of Redis, which no node of another run knows. */
static void name_maker(struct script_call *call)
{
    const struct store *store = call->store;

    snprintf(call->maker, sizeof call->maker, "%.*s", MAKER_CHARS,
             lease_member(store->lease) ? chains_maker_now(lease_chains(store->lease))
                                        : redis_link_run_id(store->changes));
}

/* The first key for epilogue.lua; none if no store is known yet. */
static void append_store(struct script_call *call, struct buf *out)
{
    struct store *store = call->store;
    const struct chains *chains = lease_chains(store->lease);
    bool is_numbered = call->class == SCRIPT_CHANGE && !call->is_unpromised;
    char name[STORE_NAME_BYTES];
    int len = snprintf(name, sizeof name, "%sstore:%s", store->prefix, identity_known(lease_identity(store->lease)));

    if (!has_store(store))
        return;
    name_maker(call);
    if (lease_member(store->lease) ? compares(call) : is_numbered && call->maker[0])
        len += snprintf(name + len, sizeof name - (size_t)len, ":%s:", call->maker);
    if (lease_member(store->lease) && compares(call))
        len += snprintf(name + len, sizeof name - (size_t)len, "%" PRIu64,
                        RULE(RULE_REASSERT) ? chains_answered(chains).ends : 0);
    if (is_numbered && call->maker[0])
        snprintf(name + len, sizeof name - (size_t)len, ":%s", script_ends(call->script) ? "ends" : "other");
    redis_command_append(out, text_of(name));
}

static struct script_call *call_begin(struct store *store, enum script script, enum script_class class, size_t argc,
                                      const struct text *argv, script_done *done, void *arg)
{
    const struct lua_script *declared = &LUA_SCRIPTS[script];
    struct script_call *call = call_take(store);

    REQUIRE(argc >= declared->least && argc <= declared->most && (argc - declared->least) % declared->each == 0);
    call->script = script;
    call->class = class;
    call->done = done;
    call->arg = arg;
    redis_command_append(&call->command, store_prefix(store));
    for (size_t i = 0; i < argc; i++)
        redis_command_append(&call->command, argv[i]);
    call->argument_count = argc + 1;
    /* Clients' input was capped long before, far below this limit. */
    REQUIRE(!call->command.failed);
    return call;
}

static void on_idle(uv_idle_t *idle)
{
    CHECK(uv_idle_stop(idle) == 0);
    script_tell_refused(idle->data);
}

/* Fails the call in the next loop turn. */
static void refuse(struct script_call *call)
{
    uv_idle_t *idle = &call->store->idle;

    list_append(&call->store->refused, &call->node);
    if (!uv_is_closing((uv_handle_t *)idle))
        CHECK(uv_idle_start(idle, on_idle) == 0);
}

void script_tell_refused(struct store *store)
{
    struct list batch, *node;

    /* Only earlier ones: a callback that calls again must not keep the loop in this turn. */
    list_init(&batch);
    while ((node = list_first(&store->refused))) {
        list_remove(node);
        list_append(&batch, node);
    }
    while ((node = list_first(&batch))) {
        struct script_call *call = LIST_ENTRY(node, struct script_call, node);

        list_remove(node);
        call->result = STORE_UNAVAILABLE;
        call_finish(call, NULL);
    }
}

static void call_in_any_case(struct script_call *call)
{
    if (call->store->is_closing)
        refuse(call);
    else
        call_send(call);
}

/* While the audit log cannot be written, only those changes run that also run when Redis is full: they end something,
 * or people need them to get there. */
static bool log_forbids(const struct store *store, enum script script, enum script_link link)
{
    return (link == SCRIPT_CHANGES || link == SCRIPT_UNPROMISED) && store_log_trouble(store) &&
           !text_starts_with(LUA_SCRIPTS[script].body, TEXT("#!lua flags=allow-oom"));
}

static void call_in_fitting_state(struct script_call *call, enum script_link link)
{
    struct store *store = call->store;

    /* A member may always leave, because it uses nothing any more, and look what a Redis holds. */
    if (link == SCRIPT_REPORTS || (link == SCRIPT_LEAVES && call->script != SCRIPT_node_heartbeat)) {
        call_in_any_case(call);
        return;
    }
    /* A Redis that is not durable must not acknowledge a change or grant a lease. Reading from it is harmless if it
     * holds our store. */
    if (store->is_closing || identity_strange(lease_identity(store->lease)) ||
        (link != SCRIPT_READS && link != SCRIPT_WORK && store->unfit) || log_forbids(store, call->script, link))
        refuse(call);
    else
        call_send(call);
}

void store_call_script(struct store *store, enum script script, enum script_link link, size_t argc,
                       const struct text *argv, script_done *done, void *arg)
{
    static const enum script_class CLASSES[] = {
        [SCRIPT_READS] = SCRIPT_PLAIN,       [SCRIPT_WORK] = SCRIPT_PLAIN,           [SCRIPT_CHANGES] = SCRIPT_CHANGE,
        [SCRIPT_UNPROMISED] = SCRIPT_CHANGE, [SCRIPT_HEARTBEATS] = SCRIPT_HEARTBEAT, [SCRIPT_LEAVES] = SCRIPT_LEAVE,
        [SCRIPT_REPORTS] = SCRIPT_REPORT,
    };
    struct script_call *call = call_begin(store, script, CLASSES[link], argc, argv, done, arg);

    call->is_unpromised = link == SCRIPT_UNPROMISED;
    call->is_work = link == SCRIPT_WORK;
    call_in_fitting_state(call, link);
}

void store_call_change(struct store *store, enum script script, size_t argc, const struct text *argv,
                       void (*replied)(void *arg), script_done *done, void *arg)
{
    struct script_call *call = call_begin(store, script, SCRIPT_CHANGE, argc, argv, done, arg);

    call->replied = replied;
    call_in_fitting_state(call, SCRIPT_CHANGES);
}

void store_refuse(struct store *store, script_done *done, void *arg)
{
    refuse(call_begin(store, SCRIPT_store_time, SCRIPT_PLAIN, 0, NULL, done, arg));
}

void script_call_probe(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg)
{
    call_in_any_case(call_begin(store, script, SCRIPT_PROBE, argc, argv, done, arg));
}

void script_call_again(struct store *store, enum script script, size_t argc, const struct text *argv, script_done *done,
                       void *arg)
{
    call_in_any_case(call_begin(store, script, SCRIPT_AGAIN, argc, argv, done, arg));
}

/* Sending */

static bool is_plain(const struct script_call *call)
{
    return call->class == SCRIPT_PLAIN || call->class == SCRIPT_REPORT;
}

static struct redis_link *call_link(const struct script_call *call)
{
    struct redis_link *plain = call->is_work ? call->store->work : call->store->scripts;

    return is_plain(call) ? plain : call->store->changes;
}

/* A text takes 50 KB and a link's output is bounded. So of all calls that met NOSCRIPT one sends the text, and the
 * others follow it on the same link, where Redis knows the script by then. */
static bool *text_under_way(const struct script_call *call)
{
    REQUIRE(!call->is_work || is_plain(call));
    return &call->store->texts_under_way[is_plain(call) + call->is_work][call->script];
}

static void send_script(struct script_call *call)
{
    struct buf out;

    buf_init(&out, 2 * COMMAND_MAX_BYTES);
    redis_command_begin(&out, call->argument_count + 3 + key_count(call->store));
    if (call->is_eval) {
        redis_command_append(&out, TEXT("EVAL"));
        redis_command_append(&out, LUA_SCRIPTS[call->script].body);
    } else {
        redis_command_append(&out, TEXT("EVALSHA"));
        redis_command_append(&out, script_sha1(call->store, call->script));
    }
    redis_command_append(&out, (struct text[]){TEXT("1"), TEXT("2")}[key_count(call->store) - 1]);
    append_store(call, &out);
    append_log(call, &out);
    append_no_store(call, &out);
    buf_append_text(&out, buf_text(&call->command));
    ENSURE(!out.failed);
    redis_link_call_raw(call_link(call), buf_text(&out), script_answered, call);
    buf_wipe(&out);
}

/* WAIT ends before our own deadline, so that the link is free again by then. For a heartbeat it ends after one lease,
 * because a later acknowledgement grants nothing and changes queue behind it. Never 0, which means for ever. */
static uint32_t wait_ms(const struct script_call *call)
{
    uint32_t timeout_ms = call->store->settings.timeout_ms, most_ms = timeout_ms - timeout_ms / 4;
    uint32_t lease_ms = lease_member_ms(call->store->lease);

    return call->class == SCRIPT_HEARTBEAT && lease_ms > 0 && lease_ms < most_ms ? lease_ms : most_ms;
}

static bool must_wait(const struct script_call *call)
{
    return (call->class == SCRIPT_CHANGE || call->class == SCRIPT_HEARTBEAT || call->class == SCRIPT_AGAIN) &&
           call->store->settings.min_replicas > 0;
}

/* WAIT covers all writes on its connection so far, and so the script right before it. */
static void send_wait(struct script_call *call)
{
    char replicas[24], timeout[24];

    snprintf(replicas, sizeof replicas, "%lld", (long long)call->store->settings.min_replicas);
    snprintf(timeout, sizeof timeout, "%u", wait_ms(call));
    redis_link_call(call_link(call), 3, (struct text[]){TEXT("WAIT"), text_of(replicas), text_of(timeout)},
                    wait_answered, call);
}

static void call_send(struct script_call *call)
{
    bool *is_under_way = text_under_way(call);

    REQUIRE(call->due == 0 && call->sends < SENDS_MAX);
    call->is_eval = call->must_eval && !*is_under_way;
    *is_under_way = *is_under_way || call->is_eval;
    call->must_eval = call->must_repeat = false;
    call->sends++;
    call->due = must_wait(call) ? 2 : 1;
    call->trust = identity_trust(lease_identity(call->store->lease));
    if (call->class == SCRIPT_PLAIN)
        identity_witness(lease_identity(call->store->lease), call_link(call));
    send_script(call);
    if (must_wait(call))
        send_wait(call);
}

/* Answers */

static const struct redis_reply *copy_reply(struct arena *arena, const struct redis_reply *reply)
{
    struct redis_reply *copy = arena_alloc(arena, sizeof *copy);
    const struct redis_reply **items;

    *copy = *reply;
    if (reply->text.ptr)
        copy->text = arena_copy(arena, reply->text);
    if (reply->type == REPLY_ARRAY) {
        items = arena_alloc(arena, reply->count * sizeof(struct redis_reply *) + 1);
        /* The reader bounds the depth. */
        for (size_t i = 0; i < reply->count; i++)
            items[i] = copy_reply(arena, reply->items[i]);
        copy->items = items;
    }
    return copy;
}

/* Sign-ins and step-ups are answered although the log cannot be written: whoever fills a disk must not lock everyone
 * out, and a right password must not differ from a wrong one. Their events wait in Redis. */
static bool may_go_unlogged(enum script script)
{
    return script == SCRIPT_session_create || script == SCRIPT_login_fail || script == SCRIPT_session_step_up;
}

static void on_logged(void *arg, bool is_synced)
{
    struct script_call *call = arg;
    struct store *store = call->store;

    REQUIRE(call->due > 0 && store->logging > 0);
    if (!is_synced && call->result == STORE_OK && !may_go_unlogged(call->script))
        call->result = STORE_UNKNOWN;
    /* The other partitions did not wait for this log and may be gone, so the operation must not go on there. */
    if (call->result == STORE_OK && store->is_closing && store_partitions(store) > 1)
        call->result = STORE_UNKNOWN;
    if (--call->due == 0)
        call_finish(call, call->reply);
    if (--store->logging == 0 && store->on_log_quiet)
        store->on_log_quiet(store);
}

/* What scripts wrote is on disk before it is answered. */
static void log_events(struct script_call *call, const struct redis_reply *events)
{
    const struct store_log *log = call->store->log;

    if (!events || !log)
        return;
    call->due++;
    call->store->logging++;
    log->append(log->arg, events, on_logged, call);
}

/* If the reply is preceded by events (epilogue.lua): those, and *reply becomes what the script returned. Else NULL. */
static const struct redis_reply *take_events(const struct redis_reply **reply)
{
    const struct redis_reply *events = reply_at(*reply, 1), *rest = reply_at(*reply, 2);
    struct text word;

    if (!rest || (*reply)->count != 3 || !reply_text(reply_at(*reply, 0), &word) || !text_equal(word, TEXT("events")) ||
        events->type != REPLY_ARRAY || events->count == 0)
        return NULL;
    *reply = rest;
    return events;
}

static bool is_part(enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct text word;

    return outcome == REDIS_REPLIED && reply_text(reply_at(reply, 0), &word) && text_equal(word, TEXT("again"));
}

static void note_replied(struct script_call *call)
{
    void (*replied)(void *arg) = call->replied;

    call->replied = NULL;
    if (replied)
        replied(call->arg);
}

static bool may_decide(const struct script_call *call)
{
    return store_may_decide(call->store) && call->trust == identity_trust(lease_identity(call->store->lease));
}

static void script_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct script_call *call = arg;
    const struct redis_reply *events = outcome == REDIS_REPLIED ? take_events(&reply) : NULL;
    struct redis_reply rest = {.type = REPLY_ARRAY};
    bool is_unknown = outcome == REDIS_REPLIED && text_equal(reply_error_kind(reply), TEXT("NOSCRIPT"));

    REQUIRE(call->due > 0);
    if (outcome == REDIS_REPLIED)
        reply = script_take_numbers(call, reply);
    call->due--;
    if (call->is_eval)
        *text_under_way(call) = false;
    if (is_part(outcome, reply))
        call->sends = 0;
    call->must_eval = is_unknown && !call->is_eval && call->sends < SENDS_MAX;
    call->must_repeat = call->must_eval || is_part(outcome, reply);
    if (call->must_repeat) {
        if (call->due == 0)
            call_send(call);
        return;
    }
    call->result = script_result(call, outcome, reply, &rest);
    /* Some of these scripts write counters, so STORE_UNAVAILABLE (not done) would claim too much. */
    if (call->class == SCRIPT_PLAIN && outcome == REDIS_REPLIED && !may_decide(call))
        call->result = STORE_UNKNOWN;
    if (call->due == 0)
        note_replied(call);
    log_events(call, events);
    if (call->due == 0)
        call_finish(call, &rest);
    else if (outcome == REDIS_REPLIED)
        call->reply = copy_reply(&call->kept, &rest);
}

/* Too few replicas acknowledged. A heartbeat then grants no lease and has no other effect: replicas may be slow for a
 * moment while changes still find enough of them in time. */
static void note_too_few(struct script_call *call, enum redis_outcome outcome, const struct redis_reply *reply)
{
    bool is_refused = outcome == REDIS_REPLIED && reply->type == REPLY_ERROR;

    if (call->class == SCRIPT_HEARTBEAT) {
        call->result = outcome == REDIS_REPLIED ? STORE_REFUSED : STORE_UNKNOWN;
        call->reply = NULL;
        return;
    }
    call->result = STORE_UNKNOWN;
    store_doubt(call->store, is_refused ? "Redis refuses WAIT, which --min-replicas needs: grant its user +wait."
                                        : "Too few replicas acknowledge changes: bring them back, or lower "
                                          "--min-replicas.");
}

static void wait_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct script_call *call = arg;
    int64_t replicas;
    bool is_enough =
        outcome == REDIS_REPLIED && reply_integer(reply, &replicas) && replicas >= call->store->settings.min_replicas;

    REQUIRE(call->due > 0);
    call->due--;
    if (call->must_repeat) {
        call_send(call);
        return;
    }
    if (is_enough)
        fence_on_followed(lease_fence(call->store->lease));
    /* A script that changed nothing need not wait for replicas. */
    if (call->result == STORE_OK && !is_enough)
        note_too_few(call, outcome, reply);
    note_replied(call);
    if (call->due == 0)
        call_finish(call, call->reply);
}

static void call_finish(struct script_call *call, const struct redis_reply *reply)
{
    bool has_reply = call->result == STORE_OK || call->result == STORE_CONFLICT || call->result == STORE_REFUSED ||
                     call->result == STORE_LIMITED;

    REQUIRE(call->due == 0 && !call->must_repeat); /* the script, the replicas and the audit log have answered */
    if (call->class == SCRIPT_CHANGE && call->numbers.all > 0 && call->result == STORE_OK)
        chains_answer(lease_chains(call->store->lease), call->maker, call->numbers);
    note_replied(call);
    call->done(call->arg, call->result, has_reply ? reply : NULL);
    call_give_back(call);
}
