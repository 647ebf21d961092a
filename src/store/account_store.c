#include "store/account_store.h"

#include "base/mem.h"
#include "base/secure.h"
#include "verb_internal.h"
#include <stdlib.h>
#include <string.h>

void account_store_create(struct store *store, const struct id *account, struct text name, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    args_add(&args, name);
    args_add_int(&args, id_time_ms(account));
    args_add(&args, store_offered_id(store));
    verb_call_change(store, SCRIPT_account_create, &args, done, arg);
}

static struct text sealed_text(const uint8_t *totp_sealed)
{
    return (struct text){(const char *)totp_sealed, TOTP_SEALED_BYTES};
}

void account_store_add_user(struct store *store, const struct user_record *user, const struct audit_origin *origin,
                            store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(&user->id));
    args_add(&args, id_text(&user->account));
    args_add(&args, text_of(user->email));
    args_add(&args, text_of(user->password_hash));
    args_add(&args, sealed_text(user->totp_sealed));
    args_add_int(&args, user->created_ms);
    args_add_origin(&args, store, origin);
    verb_call_change(store, SCRIPT_user_create, &args, done, arg);
}

void account_store_reset_user(struct store *store, const struct id *user, const char *password_hash,
                              const uint8_t *totp_sealed, const struct audit_origin *origin, store_done *done,
                              void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    args_add(&args, password_hash ? text_of(password_hash) : TEXT(""));
    args_add(&args, totp_sealed ? sealed_text(totp_sealed) : TEXT(""));
    args_add_origin(&args, store, origin);
    verb_call_change(store, SCRIPT_user_reset, &args, done, arg);
}

static bool read_secrets(const struct redis_reply *reply, struct user_record *user)
{
    struct text totp;

    if (!reply_chars(reply_at(reply, 5), user->password_hash, sizeof user->password_hash) ||
        !reply_text(reply_at(reply, 6), &totp) || totp.len != TOTP_SEALED_BYTES)
        return false;
    memcpy(user->totp_sealed, totp.ptr, TOTP_SEALED_BYTES);
    return true;
}

bool user_record_read(const struct redis_reply *reply, bool with_secrets, struct user_record *ret_user)
{
    *ret_user = (struct user_record){0};
    return reply_id(reply_at(reply, 0), ID_USER, &ret_user->id) &&
           reply_id(reply_at(reply, 1), ID_ACCOUNT, &ret_user->account) &&
           reply_chars(reply_at(reply, 2), ret_user->email, sizeof ret_user->email) &&
           reply_time(reply_at(reply, 3), &ret_user->created_ms) &&
           reply_chars(reply_at(reply, 4), ret_user->account_name, sizeof ret_user->account_name) &&
           (!with_secrets || read_secrets(reply, ret_user));
}

struct find_user_call {
    struct store *store;
    user_found *done;
    void *arg;
};

static void find_user_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_user_call call = *(struct find_user_call *)arg;
    struct user_record user;

    free(arg);
    if (result == STORE_OK && !user_record_read(reply_at(reply, 0), true, &user)) {
        store_malformed(call.store, "user");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &user : NULL);
    secure_wipe(&user, sizeof user);
}

void account_store_find_user(struct store *store, struct text email, user_found *done, void *arg)
{
    struct find_user_call *call = mem_alloc(sizeof *call);

    *call = (struct find_user_call){store, done, arg};
    store_call_script(store, SCRIPT_user_find, SCRIPT_READS, 1, &email, find_user_called, call);
}

struct list_users_call {
    struct store *store;
    users_listed *done;
    void *arg;
};

static void list_users_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_users_call call = *(struct list_users_call *)arg;
    size_t count = result == STORE_OK ? reply->count : 0;
    struct user_record *users = mem_alloc((count + 1) * sizeof *users);

    free(arg);
    for (size_t i = 0; i < count; i++) {
        if (user_record_read(reply_at(reply, i), false, &users[i]))
            continue;
        store_malformed(call.store, "list of users");
        result = STORE_UNAVAILABLE;
        count = 0;
    }
    call.done(call.arg, result, users, count);
    free(users);
}

void account_store_list_users(struct store *store, const struct id *account, users_listed *done, void *arg)
{
    struct list_users_call *call = mem_alloc(sizeof *call);
    struct text of = account ? id_text(account) : TEXT("");

    *call = (struct list_users_call){store, done, arg};
    store_call_script(store, SCRIPT_user_list, SCRIPT_READS, 1, &of, list_users_called, call);
}

struct list_accounts_call {
    struct store *store;
    accounts_listed *done;
    void *arg;
};

static bool account_row_read(const struct redis_reply *reply, struct account_row *ret_row)
{
    return reply_id(reply_at(reply, 0), ID_ACCOUNT, &ret_row->id) &&
           reply_chars(reply_at(reply, 1), ret_row->name, sizeof ret_row->name);
}

static void list_accounts_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct list_accounts_call call = *(struct list_accounts_call *)arg;
    size_t count = result == STORE_OK ? reply->count : 0;
    struct account_row *rows = mem_alloc((count + 1) * sizeof *rows);

    free(arg);
    for (size_t i = 0; i < count; i++) {
        if (account_row_read(reply_at(reply, i), &rows[i]))
            continue;
        store_malformed(call.store, "list of accounts");
        result = STORE_UNAVAILABLE;
        count = 0;
    }
    call.done(call.arg, result, rows, count);
    free(rows);
}

void account_store_list(struct store *store, accounts_listed *done, void *arg)
{
    struct list_accounts_call *call = mem_alloc(sizeof *call);

    *call = (struct list_accounts_call){store, done, arg};
    store_call_script(store, SCRIPT_account_list, SCRIPT_READS, 0, NULL, list_accounts_called, call);
}
