#include "records/account_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "email_claim.h"
#include "lease/lease.h"
#include "person_read.h"
#include "records/seal_store.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

void account_store_create(struct store *store, const struct id *account, struct text name, store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    args_add(&args, name);
    args_add_int(&args, id_time_ms(account));
    args_add(&args, identity_offered(lease_identity(store_lease(store))));
    args_add_int(&args, store_partitions(store));
    args_add_int(&args, store_partition(store));
    verb_call_change(store, SCRIPT_account_create, &args, done, arg);
}

struct text totp_text(const uint8_t sealed[TOTP_SEALED_BYTES])
{
    return (struct text){(const char *)sealed, TOTP_SEALED_BYTES};
}

/* The parts of a user that the MAC binds. An active owner has the record that versions without roles know. They refuse
 * any other as altered, so none of them takes an auditor or a disabled user for an owner. */

enum { OWNER_PARTS = 4, PERSON_PARTS = 6 };

struct user_seal {
    struct record_parts record;
    struct text parts[PERSON_PARTS];
    char storage[48]; /* of the times */
};

static void user_seal_fill(struct user_seal *seal, const struct user_record *user)
{
    bool is_owner = user->role == ROLE_OWNER && user->disabled_ms == 0;
    struct buf times;

    buf_init_fixed(&times, seal->storage, sizeof seal->storage);
    seal->parts[0] = id_text(&user->id);
    seal->parts[1] = id_text(&user->account);
    seal->parts[2] = text_of(user->email);
    seal->parts[3] = text_keep_u64(&times, (uint64_t)user->created_ms);
    seal->parts[4] = role_text(user->role);
    seal->parts[5] = text_keep_u64(&times, (uint64_t)user->disabled_ms);
    seal->record = (struct record_parts){is_owner ? RECORD_USER : RECORD_PERSON, is_owner ? OWNER_PARTS : PERSON_PARTS,
                                         seal->parts};
}

void user_record_seal(struct keyring *keyring, struct user_record *user)
{
    struct user_seal seal;

    user_seal_fill(&seal, user);
    record_mac_make(keyring, &seal.record, &user->mac);
}

enum record_seal user_record_verify(struct keyring *keyring, const struct user_record *user, size_t *ret_generation)
{
    struct user_seal seal;

    user_seal_fill(&seal, user);
    return record_mac_verify(keyring, &seal.record, text_of(user->mac.text), ret_generation);
}

enum store_result user_record_believe(struct store *store, const struct user_record *user)
{
    struct user_seal seal;

    user_seal_fill(&seal, user);
    return store_believe(store, &seal.record, text_of(user->mac.text), "user", id_text(&user->id));
}

void account_store_reset_user(struct store *store, const struct id *user, const char *password_hash, bool must_change,
                              const uint8_t *totp_sealed, const struct audit_source *source, store_done *done,
                              void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    args_add(&args, password_hash ? text_of(password_hash) : TEXT(""));
    args_add(&args, totp_sealed ? totp_text(totp_sealed) : TEXT(""));
    args_add_source(&args, store, source);
    args_add_int(&args, must_change);
    verb_call_ending(store, SCRIPT_user_reset, &args, done, arg);
}

void account_store_unlock_user(struct store *store, const struct id *user, const struct audit_source *source,
                               store_done *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(user));
    args_add_source(&args, store, source);
    verb_call_change(store, SCRIPT_user_unlock, &args, done, arg);
}

bool value_role(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    struct text role;

    return reply_text(value, &role) && role_parse(role, ret);
}

/* user_record() in the prelude. */
static const struct reply_field USER_FIELDS[] = {
    REPLY_ID("id", ID_USER, user_record, id),
    REPLY_ID("account", ID_ACCOUNT, user_record, account),
    REPLY_FIELD("email", value_chars, user_record, email),
    REPLY_FIELD("created", value_time, user_record, created_ms),
    REPLY_FIELD("account_name", value_chars, user_record, account_name),
    REPLY_FIELD_OR_NONE("mac", value_chars, user_record, mac.text),
    REPLY_FIELD("role", value_role, user_record, role),
    REPLY_FIELD_OR_NONE("disabled", value_count, user_record, disabled_ms),
};
static const struct reply_field SECRET_FIELDS[] = {
    REPLY_FIELD("password", value_chars, user_record, password_hash),
    REPLY_FIELD("totp", value_bytes, user_record, totp_sealed),
    REPLY_FIELD_OR_NONE("recovery_codes_key", value_chars, user_record, codes_made_with), /* user_list.lua */
};

bool user_record_read(const struct redis_reply *reply, bool with_secrets, struct user_record *ret_user)
{
    *ret_user = (struct user_record){0};
    return REPLY_RECORD(reply, USER_FIELDS, ret_user) &&
           (!with_secrets || REPLY_RECORD(reply, SECRET_FIELDS, ret_user));
}

struct find_user_call {
    struct partitions *partitions;
    struct store *store; /* of the account, once that is known */
    user_found *done;
    void *arg;
    struct email_owner owner;
    char email[EMAIL_MAX_BYTES + 1];
};

static void find_user_finish(struct find_user_call *call, enum store_result result, const struct user_record *user)
{
    call->done(call->arg, result, user);
    free(call);
}

/* An email that leads to another user's record, or account, was altered too. */
static enum store_result find_user_read(const struct find_user_call *call, const struct redis_reply *reply,
                                        struct user_record *ret_user)
{
    if (!user_record_read(reply_at(reply, 0), true, ret_user)) {
        store_malformed(call->store, "user");
        return STORE_UNAVAILABLE;
    }
    if (!text_equal(text_of(call->email), text_of(ret_user->email)) ||
        !id_equal(&call->owner.account, &ret_user->account))
        return store_altered(call->store, "email", id_text(&ret_user->id));
    return user_record_believe(call->store, ret_user);
}

static void find_user_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_user_call *call = arg;
    struct user_record user = {0};

    if (result == STORE_OK)
        result = find_user_read(call, reply, &user);
    find_user_finish(call, result, result == STORE_OK ? &user : NULL);
    secure_wipe(&user, sizeof user);
}

static void find_user_owned(void *arg, enum store_result result, const struct email_owner *owner)
{
    struct find_user_call *call = arg;

    if (result != STORE_OK) {
        find_user_finish(call, result, NULL);
        return;
    }
    const struct text user = id_text(&owner->user);
    call->owner = *owner;
    call->store = partition_of_account(call->partitions, &owner->account);
    store_call_script(call->store, SCRIPT_user_find, SCRIPT_READS, 1, &user, find_user_called, call);
}

void account_store_find_user(struct partitions *partitions, struct text email, user_found *done, void *arg)
{
    struct find_user_call *call = mem_alloc(sizeof *call);

    CHECK(email.len < sizeof call->email);
    *call = (struct find_user_call){.partitions = partitions, .done = done, .arg = arg};
    memcpy(call->email, email.ptr, email.len);
    email_find_owner(partitions, email, find_user_owned, call);
}

static enum store_result listed_user_read(struct store *store, const struct redis_reply *item, void *ret_user)
{
    return reply_checked(store, user_record_read(item, true, ret_user), "list of users");
}

static void users_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((users_listed *)done)(arg, result, list->records, list->count);
}

static const struct list_form USERS = {"list of users", false, sizeof(struct user_record), listed_user_read,
                                       users_done};

void seal_store_list_users(struct store *store, const struct id *account, const struct id *behind, users_listed *done,
                           void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    args_add_int(&args, SEAL_USERS_AT_ONCE);
    args_add(&args, id_text(behind));
    verb_list(store, SCRIPT_user_list, &args, &USERS, SEAL_USERS_AT_ONCE, (verb_done *)done, arg);
}

static bool value_status(const struct redis_reply *value, void *ret, UNUSED size_t size)
{
    struct text status;

    return reply_text(value, &status) && account_status_parse(status, ret);
}

/* account_list.lua, account_find.lua */
static const struct reply_field ACCOUNT_FIELDS[] = {
    REPLY_ID("id", ID_ACCOUNT, account_row, id),
    REPLY_FIELD("name", value_chars, account_row, name),
    REPLY_FIELD("status", value_status, account_row, status),
};

static enum store_result account_read(struct store *store, const struct redis_reply *item, void *ret_row)
{
    return reply_checked(store, REPLY_RECORD(item, ACCOUNT_FIELDS, ret_row), "account");
}

static void accounts_done(verb_done *done, void *arg, enum store_result result, const struct record_list *list)
{
    ((accounts_listed *)done)(arg, result, list->records, list->count);
}

static const struct list_form ACCOUNTS = {"list of accounts", false, sizeof(struct account_row), account_read,
                                          accounts_done};

void account_store_list(struct store *store, accounts_listed *done, void *arg)
{
    verb_list(store, SCRIPT_account_list, NULL, &ACCOUNTS, SIZE_MAX, (verb_done *)done, arg);
}

void account_store_list_page(struct store *store, const struct id *behind, unsigned limit, accounts_listed *done,
                             void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(behind));
    args_add_int(&args, limit);
    verb_list(store, SCRIPT_account_list, &args, &ACCOUNTS, SIZE_MAX, (verb_done *)done, arg);
}

static void account_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct account_row row;

    if (result == STORE_OK)
        result = account_read(asked->store, reply_at(reply, 0), &row);
    ((account_found *)asked->done)(asked->arg, result, result == STORE_OK ? &row : NULL);
}

void account_store_find(struct store *store, const struct id *account, account_found *done, void *arg)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, id_text(account));
    verb_ask(store, SCRIPT_account_find, SCRIPT_READS, &args, account_answer, (verb_done *)done, arg);
}
