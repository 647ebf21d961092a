#include "records/seal_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "key_reply.h"
#include "engine/verb.h"

static enum store_result stored_read(struct store *store, const struct redis_reply *item, enum id_kind kind,
                                     struct stored_key *ret_key)
{
    struct text hex;

    return reply_checked(store,
                         reply_id(reply_at(item, 0), kind, &ret_key->id) && reply_text(reply_at(item, 1), &hex) &&
                             (hex.len == 0 || decode_hex(hex, ret_key->digest, sizeof ret_key->digest)) &&
                             reply_text(reply_at(item, 2), &ret_key->packed),
                         "list of keys");
}

static enum store_result stored_key_read(struct store *store, const struct redis_reply *item, void *ret_key)
{
    return stored_read(store, item, ID_KEY, ret_key);
}

static enum store_result stored_device_read(struct store *store, const struct redis_reply *item, void *ret_key)
{
    return stored_read(store, item, ID_DEVICE, ret_key);
}

static void stored_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((stored_keys_listed *)done)(arg, result, list->records, list->count);
}

static const struct list_form KEYS = {"list of keys", false, sizeof(struct stored_key), stored_key_read, stored_done},
                              DEVICES = {"list of keys", false, sizeof(struct stored_key), stored_device_read,
                                         stored_done};

void seal_store_list_keys(struct store *store, const struct id *account, unsigned set, const struct id *behind,
                          stored_keys_listed *done, void *arg)
{
    struct script_args args;

    CHECK(set < SEAL_KEY_SETS);
    args_begin(&args);
    args_add(&args, id_text(account));
    args_add(&args, KEY_SETS[set].name);
    args_add(&args, id_text(behind));
    args_add_int(&args, SEAL_KEYS_AT_ONCE);
    verb_list(store, SCRIPT_key_walk, &args, KEY_SETS[set].kind == KEY_API ? &KEYS : &DEVICES, SEAL_KEYS_AT_ONCE,
              (verb_done *)done, arg);
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
    struct script_args args;
    struct buf unsealed = BUF_FIXED(64);

    if (unsealed_until_ms > 0)
        print_unsealed(keyring, unsealed_until_ms, &unsealed);
    args_begin(&args);
    args_add(&args, keyring_name(keyring, 0));
    args_add(&args, forget);
    args_add(&args, buf_text(&unsealed));
    verb_call_change(store, SCRIPT_master_key_note, &args, done, arg);
}
