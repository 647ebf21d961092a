#include "store/key_store.h"

#include "barrier_internal.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/lease_rules.h"
#include "key_internal.h"
#include "verb_internal.h"
#include <stdlib.h>
#include <string.h>

/* Records. The fields of key:<digest>, in the order in which scripts answer them; a check reads the first ones alone,
 * for each one more costs every check. */

enum key_field {
    FIELD_ID,
    FIELD_ACCOUNT,
    FIELD_MODE,
    FIELD_SCOPES,
    FIELD_NAME,
    FIELD_REVOKED,
    FIELDS_OF_CHECK,
    FIELD_LAST4 = FIELDS_OF_CHECK,
    FIELD_CREATED,
    FIELD_KIND,
    FIELD_LAST_USED, /* of the account's hash */
};

/* Prefix and length only: the store holds no other ids than those that were minted, and this is the hot path. */
static bool read_id(const struct redis_reply *reply, struct text prefix, struct id *ret_id)
{
    struct text t;

    if (!reply_text(reply, &t) || t.len != prefix.len + ULID_TEXT_CHARS || !text_starts_with(t, prefix))
        return false;
    memcpy(ret_id->text, t.ptr, t.len);
    ret_id->text[t.len] = '\0';
    return true;
}

/* The prefix tells the kind. */
static bool read_key_id(const struct redis_reply *reply, struct key_record *key)
{
    key->kind = KEY_API;
    if (read_id(reply, TEXT("key_"), &key->id))
        return true;
    key->kind = KEY_DEVICE;
    return read_id(reply, TEXT("dev_"), &key->id);
}

/* The kind is stored too, for whoever looks into Redis and for scripts. */
static bool kind_agrees(const struct redis_reply *reply, enum key_kind kind)
{
    struct text t;

    return reply_text(reply, &t) && text_equal(t, key_kind_text(kind));
}

static bool read_mode(const struct redis_reply *reply, enum key_mode *ret_mode)
{
    struct text t;

    return reply_text(reply, &t) && key_mode_parse(t, ret_mode);
}

static bool read_scopes(const struct redis_reply *reply, scope_set *ret_scopes)
{
    int64_t bits;

    if (!reply_integer(reply, &bits) || bits < 0 || bits > SCOPE_ALL)
        return false;
    *ret_scopes = (scope_set)bits;
    return true;
}

/* The name was judged when it was written; here only that it fits. */
static bool read_name(const struct redis_reply *reply, struct key_record *key)
{
    struct text t;

    if (!reply_text(reply, &t) || t.len < 1 || t.len > KEY_NAME_MAX_BYTES)
        return false;
    memcpy(key->name, t.ptr, t.len);
    key->name_len = (uint16_t)t.len;
    return true;
}

static bool read_last4(const struct redis_reply *reply, struct key_record *key)
{
    struct text t;

    if (!reply_text(reply, &t) || t.len != KEY_LAST4_BYTES - 1)
        return false;
    key_set_last4(key, t);
    return true;
}

/* nil: 0. */
static bool read_time_or_nil(const struct redis_reply *reply, int64_t *ret_ms)
{
    *ret_ms = 0;
    return reply && (reply->type == REPLY_NIL || reply_time(reply, ret_ms));
}

/* A device key acts in live mode and only uploads documents. */
static bool kind_permits(const struct key_record *key)
{
    return key->kind == KEY_API || (key->mode == MODE_LIVE && scope_includes(SCOPE_DOCUMENTS_WRITE, key->scopes));
}

/* What a check needs; the name is written only as far as it goes. */
static bool record_read(const struct redis_reply *fields, struct key_record *ret_key)
{
    return read_key_id(reply_at(fields, FIELD_ID), ret_key) &&
           read_id(reply_at(fields, FIELD_ACCOUNT), TEXT("acct_"), &ret_key->account) &&
           read_mode(reply_at(fields, FIELD_MODE), &ret_key->mode) &&
           read_scopes(reply_at(fields, FIELD_SCOPES), &ret_key->scopes) &&
           read_name(reply_at(fields, FIELD_NAME), ret_key) &&
           read_time_or_nil(reply_at(fields, FIELD_REVOKED), &ret_key->revoked_ms) && kind_permits(ret_key);
}

/* All of it. Nothing is revoked before it was made. */
static bool script_record_read(const struct redis_reply *fields, struct key_record *ret_key)
{
    return record_read(fields, ret_key) && read_last4(reply_at(fields, FIELD_LAST4), ret_key) &&
           reply_time(reply_at(fields, FIELD_CREATED), &ret_key->created_ms) &&
           (ret_key->revoked_ms == 0 || ret_key->revoked_ms >= ret_key->created_ms) &&
           kind_agrees(reply_at(fields, FIELD_KIND), ret_key->kind) &&
           read_time_or_nil(reply_at(fields, FIELD_LAST_USED), &ret_key->last_used_ms);
}

/* The check path */

/* The one place outside the scripts' prelude that knows the name of a key in Redis. */
void key_find_command_prepare(struct key_find_command *command, struct text prefix)
{
    static const uint8_t NO_DIGEST[KEY_DIGEST_BYTES];
    const struct text record = TEXT("key:");
    struct buf out;

    CHECK(prefix.len <= REDIS_PREFIX_MAX_BYTES);
    buf_init_fixed(&out, command->storage, sizeof command->storage);
    buf_append_text(&out, TEXT("*8\r\n$5\r\nHMGET\r\n$"));
    buf_append_u64(&out, prefix.len + record.len + 2 * KEY_DIGEST_BYTES);
    buf_append_text(&out, TEXT("\r\n"));
    buf_append_text(&out, prefix);
    buf_append_text(&out, record);
    command->digits_at = out.len;
    encode_hex(&out, NO_DIGEST, KEY_DIGEST_BYTES);
    buf_append_text(&out, TEXT("\r\n$2\r\nid\r\n$7\r\naccount\r\n$4\r\nmode\r\n$6\r\nscopes\r\n$4\r\nname\r\n"
                               "$7\r\nrevoked\r\n"));
    CHECK(!out.failed);
    command->len = out.len;
}

/* Valid until the next one. */
static struct text find_command(struct key_find_command *command, const uint8_t digest[KEY_DIGEST_BYTES])
{
    struct buf digits;

    buf_init_fixed(&digits, command->storage + command->digits_at, 2 * KEY_DIGEST_BYTES);
    encode_hex(&digits, digest, KEY_DIGEST_BYTES);
    return (struct text){command->storage, command->len};
}

static struct key_find_call *find_call_take(struct store *store)
{
    struct key_discards *kept_by = key_discards_of(store);
    struct key_find_call *call = kept_by->free_finds;

    if (call)
        kept_by->free_finds = call->next_free;
    else
        call = mem_alloc(sizeof *call);
    call->kept_by = kept_by;
    kept_by->finds++;
    return call;
}

static void find_call_give_back(struct key_find_call *call)
{
    struct key_discards *kept_by = call->kept_by;

    call->next_free = kept_by->free_finds;
    kept_by->free_finds = call;
    kept_by->finds--;
    if (kept_by->is_closing)
        key_discards_try_end(kept_by);
}

static bool is_absent(const struct redis_reply *fields)
{
    for (size_t i = 0; i < FIELDS_OF_CHECK; i++)
        if (fields->items[i]->type != REPLY_NIL)
            return false;
    return true;
}

static enum store_result find_read(struct store *store, const struct redis_reply *fields, struct key_record *ret_key)
{
    if (fields->type == REPLY_ARRAY && fields->count == FIELDS_OF_CHECK) {
        if (record_read(fields, ret_key))
            return STORE_OK;
        if (is_absent(fields))
            return STORE_NOT_FOUND;
    }
    store_malformed(store, "key");
    return STORE_UNAVAILABLE;
}

static void find_replied(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct key_find_call *call = arg;
    struct store *store = call->kept_by->store;
    struct key_record key;
    enum store_result result = store_outcome(store, outcome, reply);

    key.created_ms = key.last_used_ms = 0;
    memset(key.last4, 0, sizeof key.last4);
    if (result == STORE_OK)
        result = find_read(store, reply, &key);
    call->done(call->arg, result, result == STORE_OK ? &key : NULL);
    find_call_give_back(call);
}

void key_store_find(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], key_found *done, void *arg)
{
    struct key_find_call *call = find_call_take(store);

    call->done = done;
    call->arg = arg;
    redis_link_call_raw(store_reads(store), find_command(&call->kept_by->find_command, digest), find_replied, call);
}

/* Changes and reads by id */

void key_store_insert(struct store *store, const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES],
                      const struct audit_origin *origin, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, digest, KEY_DIGEST_BYTES);
    args_add(&args, id_text(&key->id));
    args_add(&args, key_kind_text(key->kind));
    args_add(&args, id_text(&key->account));
    args_add(&args, key_mode_text(key->mode));
    args_add_int(&args, key->scopes);
    args_add(&args, text_of(key->last4));
    args_add(&args, key_name(key));
    args_add_int(&args, key->created_ms);
    args_add_origin(&args, store, origin);
    verb_call_change(store, SCRIPT_key_insert, &args, done, arg);
}

struct key_call {
    struct store *store;
    key_found *done;
    void *arg;
};

static void key_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct key_call call = *(struct key_call *)arg;
    struct key_record key;

    free(arg);
    if (result == STORE_OK && !script_record_read(reply_at(reply, 0), &key)) {
        store_malformed(call.store, "key");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &key : NULL);
}

static void args_add_view(struct script_args *args, const struct key_view *view, const struct id *id)
{
    args_add(args, id_text(id));
    args_add(args, id_text(&view->account));
    args_add(args, view->any_kind ? TEXT("") : key_kind_text(view->kind));
    args_add(args, view->test_only ? TEXT("1") : TEXT("0"));
}

void key_store_get(struct store *store, const struct key_view *view, const struct id *id, key_found *done, void *arg)
{
    struct key_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct key_call){store, done, arg};
    args_begin(&args);
    args_add_view(&args, view, id);
    store_call_script(store, SCRIPT_key_get, SCRIPT_READS, args.count, args.argv, key_called, call);
}

struct revocation {
    struct store *store;
    struct barrier *barrier;
    key_found *done;
    void *arg;
    struct key_record key;
};

static void revocation_finish(struct revocation *revocation, enum store_result result)
{
    revocation->done(revocation->arg, result, result == STORE_OK ? &revocation->key : NULL);
    free(revocation);
}

static void barrier_over(void *arg, bool is_over)
{
    revocation_finish(arg, is_over ? STORE_OK : STORE_UNKNOWN);
}

/* What was marked stays marked; what can't be promised is not answered as done. */
static void revoke_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct revocation *revocation = arg;
    int64_t again, lease_max_ms;

    if (result != STORE_OK) {
        barrier_drop(revocation->barrier);
        revocation_finish(revocation, result);
        return;
    }
    bool is_read = script_record_read(reply_at(reply, 0), &revocation->key) &&
                   reply_integer(reply_at(reply, 1), &again) && reply_integer(reply_at(reply, 2), &lease_max_ms);
    if (is_read && again && !RULE(RULE_AGAIN)) {
        barrier_drop(revocation->barrier);
        revocation_finish(revocation, STORE_OK);
    } else if (!is_read ||
               !barrier_wait(revocation->barrier, lease_max_ms, reply_at(reply, 3), barrier_over, revocation)) {
        store_malformed(revocation->store, "revocation");
        barrier_drop(revocation->barrier);
        revocation_finish(revocation, STORE_UNKNOWN);
    }
}

static void args_add_revocation(struct script_args *args, const struct store *store, const struct key_view *view,
                                const struct id *id, const struct audit_origin *origin)
{
    args_begin(args);
    args_add_view(args, view, id);
    args_add_origin(args, store, origin);
}

void key_store_revoke(struct store *store, const struct key_view *view, const struct id *id,
                      const struct audit_origin *origin, key_found *done, void *arg)
{
    struct revocation *revocation = mem_alloc(sizeof *revocation);
    struct script_args args;

    revocation->store = store;
    revocation->barrier = barrier_begin(store_barriers(store));
    revocation->done = done;
    revocation->arg = arg;
    args_add_revocation(&args, store, view, id, origin);
    args_add(&args, TEXT("0"));
    args_add(&args, barrier_session(revocation->barrier));
    args_add(&args, barrier_name(revocation->barrier));
    store_call_script(store, SCRIPT_key_revoke, SCRIPT_CHANGES, args.count, args.argv, revoke_called, revocation);
}

void key_store_revoke_discarded(struct store *store, const struct id *id, const struct audit_origin *origin,
                                script_done *done, void *arg)
{
    const struct key_view everything = {.any_kind = true};
    struct script_args args;

    args_add_revocation(&args, store, &everything, id, origin);
    args_add(&args, TEXT("1"));
    args_add(&args, TEXT("-"));
    args_add(&args, TEXT("-"));
    store_call_script(store, SCRIPT_key_revoke, SCRIPT_CHANGES, args.count, args.argv, done, arg);
}

/* Lists */

/* The sorted sets of an account's keys, as key_set() in the scripts' prelude names them. */
static const struct key_set {
    enum key_kind kind;
    enum key_mode mode;
    enum key_status_filter status;
    struct text name;
} KEY_SETS[] = {
    {KEY_API, MODE_TEST, KEYS_ACTIVE, {"ak-test:active", 14}},
    {KEY_API, MODE_TEST, KEYS_REVOKED, {"ak-test:revoked", 15}},
    {KEY_API, MODE_LIVE, KEYS_ACTIVE, {"ak-live:active", 14}},
    {KEY_API, MODE_LIVE, KEYS_REVOKED, {"ak-live:revoked", 15}},
    {KEY_DEVICE, MODE_LIVE, KEYS_ACTIVE, {"dk:active", 9}},
    {KEY_DEVICE, MODE_LIVE, KEYS_REVOKED, {"dk:revoked", 10}},
};

static bool query_covers(const struct key_query *query, const struct key_set *set)
{
    return (query->view.any_kind || set->kind == query->view.kind) &&
           (!query->view.test_only || set->mode == MODE_TEST) && (!query->by_mode || set->mode == query->mode) &&
           (query->status == KEYS_ANY || set->status == query->status);
}

struct list_call {
    struct store *store;
    unsigned limit;
    keys_listed *done;
    void *arg;
};

static bool list_read(const struct redis_reply *reply, unsigned limit, struct key_record *keys, bool *ret_has_more)
{
    int64_t has_more;

    if (!reply_integer(reply_at(reply, 0), &has_more) || reply->count - 1 > limit)
        return false;
    *ret_has_more = has_more != 0;
    for (size_t i = 1; i < reply->count; i++)
        if (!script_record_read(reply_at(reply, i), &keys[i - 1]))
            return false;
    return true;
}

static void list_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_call call = *(struct list_call *)arg;
    struct key_record *keys = mem_alloc(call.limit * sizeof *keys);
    bool has_more = false;

    free(arg);
    if (result == STORE_OK && !list_read(reply, call.limit, keys, &has_more)) {
        store_malformed(call.store, "list of keys");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK)
        call.done(call.arg, result, keys, reply->count - 1, has_more);
    else
        call.done(call.arg, result, NULL, 0, false);
    free(keys);
}

void key_store_list(struct store *store, const struct key_query *query, keys_listed *done, void *arg)
{
    struct list_call *call = mem_alloc(sizeof *call);
    bool is_newer = query->starting_after.text[0] == '\0' && query->ending_before.text[0] != '\0';
    struct script_args args;

    CHECK(query->limit >= 1 && query->limit <= LIST_LIMIT_MAX && query->view.account.text[0] != '\0');
    *call = (struct list_call){store, query->limit, done, arg};
    args_begin(&args);
    args_add(&args, id_text(&query->view.account));
    args_add_int(&args, query->limit);
    args_add(&args, is_newer ? TEXT("newer") : TEXT("older"));
    args_add(&args, id_text(is_newer ? &query->ending_before : &query->starting_after));
    for (size_t i = 0; i < sizeof KEY_SETS / sizeof *KEY_SETS; i++)
        if (query_covers(query, &KEY_SETS[i]))
            args_add(&args, KEY_SETS[i].name);
    store_call_script(store, SCRIPT_key_list, SCRIPT_READS, args.count, args.argv, list_called, call);
}
