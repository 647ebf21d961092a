/* Creates a user, by a command or by an invitation: claims the email, then writes the record, and releases the claim if
 * that is refused (email_claim.h). */
#include "base/mem.h"
#include "base/secure.h"
#include "email_claim.h"
#include "person_read.h"
#include "records/account_store.h"
#include "records/link_store.h"
#include "records/seal_store.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

struct creation {
    struct partitions *partitions;
    struct store *store;     /* of the account */
    struct user_record user; /* wiped */
    struct kept_source kept_source;
    bool has_link, is_reset;  /* a reset's link creates nobody: the user exists and has the email */
    struct link_record link;  /* as read */
    enum store_result result; /* once the record is written, or refused */
    store_done *done;
    void *arg;
};

static void creation_claim(struct creation *call);
static void creation_claimed(void *arg, enum store_result result);
static void creation_write(struct creation *call);
static void creation_written(void *arg, enum store_result result, const struct redis_reply *reply);
static void creation_released(void *arg, enum store_result result);

static void finish(struct creation *call, enum store_result result)
{
    call->done(call->arg, result);
    secure_wipe(call, sizeof *call);
    free(call);
}

static struct creation *creation_begin(struct partitions *partitions, const struct user_record *user,
                                       const struct audit_source *source, store_done *done, void *arg)
{
    struct creation *call = mem_alloc(sizeof *call);

    *call = (struct creation){.partitions = partitions,
                              .store = partition_of_account(partitions, &user->account),
                              .user = *user,
                              .done = done,
                              .arg = arg};
    user_record_seal(store_keyring(call->store), &call->user);
    source_keep(&call->kept_source, source);
    return call;
}

void account_store_add_user(struct partitions *partitions, const struct user_record *user,
                            const struct audit_source *source, store_done *done, void *arg)
{
    creation_claim(creation_begin(partitions, user, source, done, arg));
}

void link_store_use(struct partitions *partitions, const struct link_record *link, const struct user_record *user,
                    const struct audit_source *source, store_done *done, void *arg)
{
    struct creation *call = creation_begin(partitions, user, source, done, arg);

    call->has_link = true;
    call->is_reset = link->user.text[0] != '\0';
    call->link = *link;
    if (call->is_reset)
        creation_write(call);
    else
        creation_claim(call);
}

static void creation_claim(struct creation *call)
{
    const struct email_owner owner = {call->user.id, call->user.account};

    email_claim(call->partitions, &owner, text_of(call->user.email), creation_claimed, call);
}

static void creation_claimed(void *arg, enum store_result result)
{
    struct creation *call = arg;

    if (result == STORE_OK)
        creation_write(call);
    else
        finish(call, result == STORE_CONFLICT && call->has_link ? STORE_NOT_FOUND : result);
}

static void add_creation(struct script_args *args, const struct creation *call)
{
    const struct user_record *user = &call->user;

    args_add(args, id_text(&user->id));
    args_add(args, id_text(&user->account));
    args_add(args, text_of(user->email));
    args_add(args, text_of(user->password_hash));
    args_add(args, totp_text(user->totp_sealed));
    args_add_int(args, user->created_ms);
    args_add_source(args, call->store, &call->kept_source.source);
    args_add(args, text_of(user->mac.text));
    args_add(args, role_text(user->role));
    args_add_int(args, user->password_expired);
}

static void add_link_use(struct script_args *args, const struct creation *call)
{
    const struct user_record *user = &call->user;

    args_add_hex(args, call->link.digest, sizeof call->link.digest);
    args_add(args, text_of(call->link.mac.text));
    args_add(args, id_text(&user->id));
    args_add(args, text_of(user->password_hash));
    args_add(args, totp_text(user->totp_sealed));
    args_add(args, text_of(user->mac.text));
    args_add_int(args, user->created_ms);
    args_add_client(args, call->store, &call->kept_source.source);
    args_add(args, call->is_reset ? TEXT("") : id_text(&user->account));
    args_add(args, call->is_reset ? TEXT("") : text_of(user->email));
    args_add(args, call->link.has_totp ? totp_text(call->link.totp_sealed) : TEXT(""));
}

static void creation_write(struct creation *call)
{
    struct script_args args;

    args_begin(&args);
    if (call->has_link)
        add_link_use(&args, call);
    else
        add_creation(&args, call);
    store_call_script(call->store, call->has_link ? SCRIPT_link_use : SCRIPT_user_create, SCRIPT_CHANGES, args.count,
                      args.argv, creation_written, call);
}

/* Without an answer the user may exist, so the claim stays. */
static bool is_refused(enum store_result result)
{
    return result != STORE_OK && result != STORE_UNAVAILABLE && result != STORE_UNKNOWN;
}

static void creation_written(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct creation *call = arg;

    call->result = result;
    if (is_refused(result) && !call->is_reset && !partitions_are_closing(call->partitions))
        email_release(call->partitions, &call->user.id, text_of(call->user.email), creation_released, call);
    else
        finish(call, result);
}

static void creation_released(void *arg, UNUSED enum store_result result)
{
    struct creation *call = arg;

    finish(call, call->result);
}
