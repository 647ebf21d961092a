#include "records/key_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "key_reply.h"
#include "lease/lease.h"
#include "engine/verb.h"
#include <stdlib.h>

static bool reply_time_or_none(const struct redis_reply *reply, int64_t *ret_ms)
{
    return !reply || reply->type == REPLY_NIL || reply_time(reply, ret_ms);
}

bool key_reply_decode(const struct redis_reply *reply, struct key_record *ret_key)
{
    struct text packed, origin;

    if (!reply_text(reply_at(reply, 0), &packed) || !key_decode(packed, ret_key) || !reply_at(reply, 1))
        return false;
    if (reply_text(reply_at(reply, 4), &origin))
        key_set_origin(ret_key, origin);
    return reply_time_or_none(reply_at(reply, 1), &ret_key->last_used_ms) &&
           reply_time_or_none(reply_at(reply, 3), &ret_key->ends_ms);
}

enum store_result key_reply_read(struct store *store, const struct redis_reply *reply, void *ret_key)
{
    struct key_record *key = ret_key;
    struct text packed, hex;
    uint8_t digest[KEY_DIGEST_BYTES];

    if (!key_reply_decode(reply, key) || !reply_text(reply_at(reply, 0), &packed) ||
        !reply_text(reply_at(reply, 2), &hex) || !decode_hex(hex, digest, sizeof digest)) {
        store_malformed(store, "key");
        return STORE_UNAVAILABLE;
    }
    return store_believe_key(store, packed, digest, &key->id);
}

/* Changes and reads by id */

struct insert_call {
    struct store *store;
    store_limited *done;
    void *arg;
};

static void on_settled(void *arg, bool is_over)
{
    struct insert_call call = *(struct insert_call *)arg;

    (void)is_over;
    free(arg);
    call.done(call.arg, STORE_OK, 0);
}

static void insert_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct insert_call call = *(struct insert_call *)arg;
    uint32_t retry_after_s = 0;

    if (result == STORE_OK) {
        barriers_settle(lease_barriers(store_lease(call.store)), on_settled, arg);
        return;
    }
    free(arg);
    retry_after_s = reply_limit(call.store, reply, &result);
    call.done(call.arg, result, retry_after_s);
}

void args_add_view(struct script_args *args, const struct key_view *view, const struct id *id)
{
    args_add(args, id_text(id));
    args_add(args, id_text(&view->account));
    args_add(args, view->any_kind ? TEXT("") : key_kind_text(view->kind));
    args_add(args, view->test_only ? TEXT("1") : TEXT("0"));
}

void args_of_key(struct script_args *args, struct store *store, const struct key_record *key,
                 const uint8_t digest[KEY_DIGEST_BYTES], const struct audit_source *source,
                 char storage[KEY_TEXT_MAX_BYTES])
{
    struct buf packed;

    args_begin(args);
    args_add_hex(args, digest, KEY_DIGEST_BYTES);
    buf_init_fixed(&packed, storage, KEY_TEXT_MAX_BYTES);
    key_encode(key, store_keyring(store), digest, &packed);
    CHECK(!packed.failed);
    args_add(args, buf_text(&packed));
    args_add_actor(args, store, source);
    args_add_key_limits(args, store, store_limits(store)->keys_max);
    args_add_int(args, store_limits(store)->changes_per_minute);
}

void key_store_insert(struct store *store, const struct key_record *key, const uint8_t digest[KEY_DIGEST_BYTES],
                      const struct audit_source *source, store_limited *done, void *arg)
{
    struct insert_call *call = mem_alloc(sizeof *call);
    char storage[KEY_TEXT_MAX_BYTES];
    struct script_args args;

    *call = (struct insert_call){.store = store, .done = done, .arg = arg};
    args_of_key(&args, store, key, digest, source, storage);
    store_call_script(store, SCRIPT_key_insert, SCRIPT_CHANGES, args.count, args.argv, insert_called, call);
}

static void key_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct key_record key;

    if (result == STORE_OK)
        result = key_reply_read(asked->store, reply_at(reply, 0), &key);
    ((key_found *)asked->done)(asked->arg, result, result == STORE_OK ? &key : NULL);
}

void key_store_get(struct store *store, const struct key_view *view, const struct id *id, key_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add_view(&args, view, id);
    verb_ask(store, SCRIPT_key_get, SCRIPT_READS, &args, key_answer, (verb_done *)done, arg);
}

static void show_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct key_shown shown;

    if (result == STORE_OK)
        result = key_reply_read(asked->store, reply_at(reply, 0), &shown.key);
    if (result == STORE_OK)
        result = reply_checked(asked->store,
                               reply_text(reply_at(reply, 1), &shown.account_name) &&
                                   reply_text(reply_at(reply, 2), &shown.by_name),
                               "key");
    ((key_was_shown *)asked->done)(asked->arg, result, result == STORE_OK ? &shown : NULL);
}

void key_store_show(struct store *store, const struct id *id, key_was_shown *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(id));
    verb_ask(store, SCRIPT_key_show, SCRIPT_READS, &args, show_answer, (verb_done *)done, arg);
}

/* Lists */

const struct key_set KEY_SETS[SEAL_KEY_SETS] = {
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

static void keys_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((keys_listed *)done)(arg, result, list->records, list->count, list->has_more);
}

static const struct list_form KEYS = {"list of keys", true, sizeof(struct key_record), key_reply_read, keys_done};

void key_store_list(struct store *store, const struct key_query *query, keys_listed *done, void *arg)
{
    bool is_newer = query->starting_after.text[0] == '\0' && query->ending_before.text[0] != '\0';
    struct script_args args;

    CHECK(query->limit >= 1 && query->limit <= LIST_LIMIT_MAX && query->view.account.text[0] != '\0');
    args_begin(&args);
    args_add(&args, id_text(&query->view.account));
    args_add_int(&args, query->limit);
    args_add(&args, is_newer ? TEXT("newer") : TEXT("older"));
    args_add(&args, id_text(is_newer ? &query->ending_before : &query->starting_after));
    for (size_t i = 0; i < sizeof KEY_SETS / sizeof *KEY_SETS; i++)
        if (query_covers(query, &KEY_SETS[i]))
            args_add(&args, KEY_SETS[i].name);
    verb_list(store, SCRIPT_key_list, &args, &KEYS, query->limit, (verb_done *)done, arg);
}
