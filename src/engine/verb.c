#include "engine/verb.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/mem.h"
#include "base/secure.h"
#include "core/lease_rules.h"
#include "lease/lease.h"
#include "lease/store_time.h"
#include "engine/store.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void args_begin(struct script_args *args)
{
    args->count = 0;
    buf_init_fixed(&args->printed, args->storage, sizeof args->storage);
}

void args_add(struct script_args *args, struct text value)
{
    REQUIRE(args->count < SCRIPT_ARGS_MAX);
    args->argv[args->count++] = value;
}

/* What was printed since `from` becomes the next argument. */
static void add_printed(struct script_args *args, size_t from)
{
    REQUIRE(!args->printed.failed); /* what is cut could name something else */
    args_add(args, text_skip(buf_text(&args->printed), from));
}

void args_add_int(struct script_args *args, int64_t value)
{
    size_t from = args->printed.len;

    buf_printf(&args->printed, "%" PRId64, value);
    add_printed(args, from);
}

void args_add_key_limits(struct script_args *args, const struct store *store, int64_t active_max)
{
    size_t from = args->printed.len;

    buf_printf(&args->printed, "%" PRId64 " %" PRId64, active_max, store_limits(store)->keys_per_day);
    add_printed(args, from);
}

void args_add_store_time(struct script_args *args, const struct store *store)
{
    size_t from = args->printed.len;

    store_time_print_known(store_known_time(store), clock_boot_ns(), &args->printed);
    add_printed(args, from);
}

void args_add_hex(struct script_args *args, const void *bytes, size_t count)
{
    size_t from = args->printed.len;

    if (bytes)
        encode_hex(&args->printed, bytes, count);
    add_printed(args, from);
}

void args_add_time(struct script_args *args, int64_t ms)
{
    if (ms > 0)
        args_add_int(args, ms);
    else
        args_add(args, TEXT(""));
}

void args_add_digests(struct script_args *args, const struct token_digests *digests)
{
    size_t from = args->printed.len;

    for (size_t i = 0; i < digests->count; i++) {
        if (i > 0)
            buf_append_char(&args->printed, ',');
        encode_hex(&args->printed, digests->of[i], sizeof digests->of[i]);
    }
    add_printed(args, from);
}

void args_add_source(struct script_args *args, const struct store *store, const struct audit_source *source)
{
    args_add(args, source->actor);
    args_add_client(args, store, source);
}

void args_add_client(struct script_args *args, const struct store *store, const struct audit_source *source)
{
    args_add(args, source->ip);
    args_add(args, source->request_id);
    args_add_int(args, store_audit_max(store));
}

struct text text_keep(struct buf *storage, struct text t)
{
    size_t from = storage->len;

    buf_append_text(storage, t);
    return text_skip(buf_text(storage), from);
}

struct text text_keep_u64(struct buf *storage, uint64_t number)
{
    size_t from = storage->len;

    buf_append_u64(storage, number);
    REQUIRE(!storage->failed);
    return text_skip(buf_text(storage), from);
}

void source_keep(struct kept_source *ret_kept, const struct audit_source *source)
{
    struct buf storage;

    buf_init_fixed(&storage, ret_kept->storage, sizeof ret_kept->storage);
    ret_kept->source = *source;
    ret_kept->source.actor = text_keep(&storage, source->actor);
    ret_kept->source.ip = text_keep(&storage, source->ip);
    ret_kept->source.request_id = text_keep(&storage, source->request_id);
    ENSURE(!storage.failed);
}

static void print_credential(struct buf *out, const struct credential *credential)
{
    const struct session_limits *limits = credential->limits;

    buf_append_str(out, credential->kind == CREDENTIAL_KEY ? "key " : "session ");
    encode_hex(out, credential->digest, sizeof credential->digest);
    if (credential->kind == CREDENTIAL_SESSION)
        buf_printf(out, " %" PRId64 " %" PRId64 " %" PRId64 " %s", limits->idle_ms, limits->absolute_ms,
                   credential->needs_step_up ? limits->step_up_ms : 0, role_text(credential->least_role).ptr);
}

void args_add_credential(struct script_args *args, const struct credential *credential)
{
    size_t from = args->printed.len;

    if (credential->kind != CREDENTIAL_NONE && RULE(RULE_ACTOR))
        print_credential(&args->printed, credential);
    add_printed(args, from);
}

void args_add_actor(struct script_args *args, const struct store *store, const struct audit_source *source)
{
    args_add_source(args, store, source);
    args_add_credential(args, &source->credential);
}

struct change_call {
    struct store *store;
    bool is_ending;
    int64_t count; /* of what was ended, for counted */
    store_done *done;
    store_counted *counted; /* in place of done */
    void *arg;
};

static void change_finish(struct change_call *call, enum store_result result)
{
    if (call->counted)
        call->counted(call->arg, result, call->count);
    else
        call->done(call->arg, result);
    free(call);
}

static void change_settled(void *arg, bool is_over)
{
    change_finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

static void change_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct change_call *call = arg;

    if (result == STORE_OK && call->counted && !reply_integer(reply_at(reply, 0), &call->count)) {
        store_malformed(call->store, "number of endings");
        result = STORE_UNKNOWN;
    }
    if (result == STORE_OK && call->is_ending)
        barriers_settle(lease_barriers(store_lease(call->store)), change_settled, call);
    else
        change_finish(call, result);
}

static void call_change(enum script script, enum script_link link, size_t argc, const struct text *argv,
                        const struct change_call *change)
{
    struct change_call *call = mem_alloc(sizeof *call);

    *call = *change;
    store_call_script(call->store, script, link, argc, argv, change_called, call);
}

void verb_call(struct store *store, enum script script, enum script_link link, size_t argc, const struct text *argv,
               store_done *done, void *arg)
{
    call_change(script, link, argc, argv, &(struct change_call){.store = store, .done = done, .arg = arg});
}

void verb_call_change(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg)
{
    verb_call(store, script, SCRIPT_CHANGES, args->count, args->argv, done, arg);
}

void verb_call_ending(struct store *store, enum script script, const struct script_args *args, store_done *done,
                      void *arg)
{
    call_change(script, SCRIPT_CHANGES, args->count, args->argv,
                &(struct change_call){.store = store, .is_ending = true, .done = done, .arg = arg});
}

void verb_call_endings(struct store *store, enum script script, const struct script_args *args, store_counted *done,
                       void *arg)
{
    call_change(script, SCRIPT_CHANGES, args->count, args->argv,
                &(struct change_call){.store = store, .is_ending = true, .counted = done, .arg = arg});
}

static void ask_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    const struct verb_asked asked = *(struct verb_asked *)arg;

    free(arg);
    asked.answer(&asked, result, reply);
}

static void ask(enum script script, enum script_link link, const struct script_args *args,
                const struct verb_asked *asked)
{
    struct verb_asked *kept = mem_alloc(sizeof *kept);

    *kept = *asked;
    store_call_script(asked->store, script, link, args ? args->count : 0, args ? args->argv : NULL, ask_called, kept);
}

void verb_ask(struct store *store, enum script script, enum script_link link, const struct script_args *args,
              verb_answer *answer, verb_done *done, void *arg)
{
    ask(script, link, args, &(struct verb_asked){.store = store, .done = done, .arg = arg, .answer = answer});
}

static void limited_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    uint32_t retry_after_s = reply_limit(asked->store, reply, &result);

    ((store_limited *)asked->done)(asked->arg, result, retry_after_s);
}

void verb_call_limited(struct store *store, enum script script, enum script_link link, const struct script_args *args,
                       store_limited *done, void *arg)
{
    verb_ask(store, script, link, args, limited_answer, (verb_done *)done, arg);
}

static enum store_result read_list(const struct verb_asked *asked, const struct redis_reply *reply, char *records,
                                   struct record_list *ret_list)
{
    const struct list_form *form = asked->form;
    const size_t head = form->is_page ? 1 : 0;
    enum store_result result = STORE_OK;
    int64_t has_more = 0;

    if ((form->is_page && !reply_integer(reply_at(reply, 0), &has_more)) || reply->count - head > asked->most)
        return reply_checked(asked->store, false, form->what);
    *ret_list = (struct record_list){.records = records, .has_more = has_more != 0};
    for (size_t i = head; i < reply->count && result != STORE_UNAVAILABLE; i++) {
        ENSURE(ret_list->count < asked->most);
        result = form->read(asked->store, reply_at(reply, i), records + ret_list->count * form->record_bytes);
        ret_list->count += result == STORE_OK;
    }
    return result == STORE_UNAVAILABLE ? result : STORE_OK;
}

static void list_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    static const struct record_list NONE = {0};
    struct record_list list;
    char *records = NULL;
    size_t room = 0;

    if (result == STORE_OK) {
        /* No room for what a false Redis sends beyond the most: it is refused. */
        room = ((reply->count < asked->most ? reply->count : asked->most) + 1) * asked->form->record_bytes;
        records = mem_alloc(room);
        result = read_list(asked, reply, records, &list);
    }
    asked->form->listed(asked->done, asked->arg, result, result == STORE_OK ? &list : &NONE);
    if (records)
        secure_wipe(records, room); /* there may be secrets among them */
    free(records);
}

void verb_list(struct store *store, enum script script, const struct script_args *args, const struct list_form *form,
               size_t most, verb_done *done, void *arg)
{
    ask(script, SCRIPT_WORK, args, &(struct verb_asked){store, done, arg, list_answer, form, most});
}

enum store_result reply_checked(struct store *store, bool is_well_formed, const char *what)
{
    if (!is_well_formed)
        store_malformed(store, what);
    return is_well_formed ? STORE_OK : STORE_UNAVAILABLE;
}

bool reply_time(const struct redis_reply *reply, int64_t *ret_ms)
{
    return reply_integer(reply, ret_ms) && *ret_ms > 0;
}

bool reply_wait(const struct redis_reply *reply, uint32_t *ret_seconds)
{
    int64_t seconds;

    if (!reply_integer(reply, &seconds) || seconds < 0 || seconds > UINT32_MAX)
        return false;
    *ret_seconds = (uint32_t)seconds;
    return true;
}

bool reply_seconds(const struct redis_reply *reply, uint32_t *ret_seconds)
{
    return reply_wait(reply, ret_seconds) && *ret_seconds > 0;
}

uint32_t reply_limit(struct store *store, const struct redis_reply *reply, enum store_result *result)
{
    uint32_t retry_after_s = 0;

    if (*result == STORE_LIMITED && !reply_seconds(reply_at(reply, 0), &retry_after_s)) {
        store_malformed(store, "change limit");
        *result = STORE_UNAVAILABLE;
    }
    return retry_after_s;
}

size_t reply_word(const struct redis_reply *reply, const char *const *words, size_t count)
{
    struct text t;
    size_t at = 0;

    if (!reply_text(reply, &t))
        return count;
    while (at < count && !text_equal(t, text_of(words[at])))
        at++;
    return at;
}

bool reply_flag(const struct redis_reply *reply, bool *ret_flag)
{
    int64_t number;

    if (!reply_integer(reply, &number))
        return false;
    *ret_flag = number != 0;
    return true;
}

bool reply_id(const struct redis_reply *reply, enum id_kind kind, struct id *ret_id)
{
    struct text t;

    return reply_text(reply, &t) && id_parse(kind, t, ret_id);
}
