#include "records/seal_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

/* Named as by key_set() in the prelude. */
static const struct {
    struct text name;
    enum id_kind kind;
} SETS[SEAL_KEY_SETS] = {
    {{"ak-test:active", 14}, ID_KEY},  {{"ak-test:revoked", 15}, ID_KEY}, {{"ak-live:active", 14}, ID_KEY},
    {{"ak-live:revoked", 15}, ID_KEY}, {{"dk:active", 9}, ID_DEVICE},     {{"dk:revoked", 10}, ID_DEVICE},
};

struct list_keys_call {
    struct store *store;
    enum id_kind kind;
    stored_keys_listed *done;
    void *arg;
};

static bool stored_key_read(void *arg, const struct redis_reply *reply, void *ret_key)
{
    const struct list_keys_call *call = arg;
    struct stored_key *key = ret_key;
    struct text hex;

    return reply_id(reply_at(reply, 0), call->kind, &key->id) && reply_text(reply_at(reply, 1), &hex) &&
           (hex.len == 0 || decode_hex(hex, key->digest, sizeof key->digest)) &&
           reply_text(reply_at(reply, 2), &key->packed);
}

static void list_keys_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_keys_call call = *(struct list_keys_call *)arg;
    const struct row_form form = {"list of keys", sizeof(struct stored_key), SEAL_KEYS_AT_ONCE, stored_key_read, &call};
    size_t count;
    struct stored_key *keys = reply_rows(call.store, &form, reply, &result, &count);

    free(arg);
    call.done(call.arg, result, keys, count);
    free(keys);
}

void seal_store_list_keys(struct store *store, const struct id *account, unsigned set, const struct id *behind,
                          stored_keys_listed *done, void *arg)
{
    struct list_keys_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    CHECK(set < SEAL_KEY_SETS);
    *call = (struct list_keys_call){store, SETS[set].kind, done, arg};
    args_begin(&args);
    args_add(&args, id_text(account));
    args_add(&args, SETS[set].name);
    args_add(&args, id_text(behind));
    args_add_int(&args, SEAL_KEYS_AT_ONCE);
    store_call_script(store, SCRIPT_key_walk, SCRIPT_WORK, args.count, args.argv, list_keys_called, call);
}

void seal_store_put_key(struct store *store, const uint8_t digest[KEY_DIGEST_BYTES], struct text was, struct text is,
                        store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, TEXT("key"));
    args_add_hex(&args, digest, KEY_DIGEST_BYTES);
    args_add(&args, was);
    args_add(&args, is);
    verb_call_change(store, SCRIPT_record_seal, &args, done, arg);
}

static void args_add_sealed(struct script_args *args, const struct user_record *user)
{
    args_add(args, text_of(user->password_hash));
    args_add(args, (struct text){(const char *)user->totp_sealed, sizeof user->totp_sealed});
    args_add(args, text_of(user->mac.text));
}

void seal_store_put_user(struct store *store, const struct user_record *was, const struct user_record *is,
                         store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, TEXT("user"));
    args_add(&args, id_text(&was->id));
    args_add_sealed(&args, was);
    args_add_sealed(&args, is);
    verb_call_change(store, SCRIPT_record_seal, &args, done, arg);
}

/* In the form that record.c reads. */
static void print_unsealed(struct keyring *keyring, int64_t until_ms, struct buf *out)
{
    struct record_mac mac;

    buf_append_u64(out, (uint64_t)until_ms);
    const struct text until = buf_text(out);
    const struct record_parts record = {RECORD_GRACE, 1, &until};
    record_mac_make(keyring, &record, &mac);
    buf_append_char(out, ' ');
    buf_append_str(out, mac.text);
    CHECK(!out->failed);
}

void seal_store_note(struct store *store, struct text forget, int64_t unsealed_until_ms, store_done *done, void *arg)
{
    struct keyring *keyring = store_keyring(store);
    char storage[64];
    struct script_args args;
    struct buf unsealed;

    buf_init_fixed(&unsealed, storage, sizeof storage);
    if (unsealed_until_ms > 0)
        print_unsealed(keyring, unsealed_until_ms, &unsealed);
    args_begin(&args);
    args_add(&args, keyring_name(keyring, 0));
    args_add(&args, forget);
    args_add(&args, buf_text(&unsealed));
    verb_call_change(store, SCRIPT_master_key_note, &args, done, arg);
}
