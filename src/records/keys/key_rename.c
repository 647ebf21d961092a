/* Renaming a key. The MAC of its record binds the name, so the record is read, sealed anew and put in place of what was
 * read. Whatever else has changed meanwhile stays as it is by then. */
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/label.h"
#include "engine/verb.h"
#include "key_reply.h"
#include "records/key_store.h"
#include <stdlib.h>
#include <string.h>

/* Each further reading needs another renaming, or a new seal, since the one before. */
enum { READS_MAX = 8 };

struct rename_call {
    struct store *store;
    struct key_view view;
    struct id id;
    struct kept_source kept_source;
    key_renamed *done;
    void *arg;
    unsigned reads;
    size_t name_len;
    char name[KEY_NAME_MAX_BYTES];
};

static void rename_read(struct rename_call *call);

static void finish(struct rename_call *call, enum store_result result, const struct key_record *key,
                   uint32_t retry_after_s)
{
    call->done(call->arg, result, key, retry_after_s);
    free(call);
}

static void on_written(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct rename_call *call = arg;
    struct key_record key;
    const uint32_t retry_after_s = reply_limit(call->store, reply, &result);

    if (result == STORE_CONFLICT) {
        rename_read(call);
        return;
    }
    if (result == STORE_OK && key_reply_read(call->store, reply_at(reply, 0), &key) != STORE_OK)
        result = STORE_UNKNOWN;
    finish(call, result, result == STORE_OK ? &key : NULL, retry_after_s);
}

static void rename_write(struct rename_call *call, const struct key_renaming *renaming)
{
    struct script_args args;

    args_begin(&args);
    args_add_view(&args, &call->view, &call->id);
    args_add_actor(&args, call->store, &call->kept_source.source);
    args_add_int(&args, call->kept_source.source.credential.kind == CREDENTIAL_NONE
                            ? 0
                            : store_limits(call->store)->changes_per_minute);
    args_add(&args, renaming->was);
    args_add(&args, renaming->is);
    store_call_script(call->store, SCRIPT_key_rename, SCRIPT_CHANGES, args.count, args.argv, on_written, call);
}

/* False if the key's record is not what key_reply_read() has read. */
static bool seal_anew(struct rename_call *call, const struct redis_reply *key, struct buf *storage,
                      struct key_renaming *ret)
{
    const struct text name = {call->name, call->name_len};
    uint8_t digest[KEY_DIGEST_BYTES];
    struct text packed, hex;

    return reply_text(reply_at(key, 0), &packed) && reply_text(reply_at(key, 2), &hex) &&
           decode_hex(hex, digest, sizeof digest) &&
           key_rename(packed, store_keyring(call->store), digest, name, storage, ret);
}

static void on_read(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct rename_call *call = arg;
    char storage[KEY_TEXT_MAX_BYTES];
    struct key_renaming renaming;
    struct key_record key;
    struct buf renamed;

    buf_init_fixed(&renamed, storage, sizeof storage);
    if (result == STORE_OK)
        result = key_reply_read(call->store, reply_at(reply, 0), &key);
    if (result == STORE_OK && !seal_anew(call, reply_at(reply, 0), &renamed, &renaming))
        result = STORE_UNAVAILABLE;
    if (result == STORE_OK)
        rename_write(call, &renaming);
    else
        finish(call, result, NULL, 0);
}

static void rename_read(struct rename_call *call)
{
    struct script_args args;

    if (call->reads++ == READS_MAX) {
        finish(call, STORE_UNAVAILABLE, NULL, 0);
        return;
    }
    args_begin(&args);
    args_add_view(&args, &call->view, &call->id);
    store_call_script(call->store, SCRIPT_key_get, SCRIPT_READS, args.count, args.argv, on_read, call);
}

void key_store_rename(struct store *store, const struct key_view *view, const struct id *id, struct text name,
                      const struct audit_source *source, key_renamed *done, void *arg)
{
    struct rename_call *call = mem_alloc(sizeof *call);

    CHECK(label_valid(name) && name.len <= sizeof call->name);
    *call =
        (struct rename_call){.store = store, .view = *view, .id = *id, .done = done, .arg = arg, .name_len = name.len};
    memcpy(call->name, name.ptr, name.len);
    source_keep(&call->kept_source, source);
    rename_read(call);
}
