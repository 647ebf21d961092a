#include "email_claim.h"

#include "base/check.h"
#include "base/mem.h"
#include "engine/verb.h"
#include <stdlib.h>
#include <string.h>

/* Each further try is because another operation has just claimed the email. */
enum { CLAIM_TRIES_MAX = 8, CLAIM_BYTES = 2 * ID_TEXT_BYTES };

/* One operation. */
struct email_call {
    struct partitions *partitions;
    char email[EMAIL_MAX_BYTES + 1];
    struct email_owner owner;   /* who claims it, for email_claim(); else as found */
    struct email_owner found;   /* whose claim is in the way */
    char replaced[CLAIM_BYTES]; /* that claim; its user is void; empty: none */
    unsigned tries;
    email_owner_found *owner_found;
    store_done *done;
    void *arg;
};

static struct email_call *call_begin(struct partitions *partitions, struct text email, store_done *done, void *arg)
{
    struct email_call *call = mem_alloc(sizeof *call);

    *call = (struct email_call){.partitions = partitions, .done = done, .arg = arg};
    CHECK(email.len < sizeof call->email);
    memcpy(call->email, email.ptr, email.len);
    return call;
}

/* STORE_OK: the caller may go on in another partition. */
static void finish(struct email_call *call, enum store_result result)
{
    if (result == STORE_OK && partitions_are_closing(call->partitions))
        result = STORE_UNAVAILABLE;
    call->done(call->arg, result);
    free(call);
}

static struct store *partition_of_email(const struct email_call *call)
{
    return partition_of_bucket(call->partitions, bucket_of_text(text_of(call->email)));
}

static bool owner_read(const struct redis_reply *reply, struct email_owner *ret_owner)
{
    return reply_id(reply_at(reply, 0), ID_USER, &ret_owner->user) &&
           reply_id(reply_at(reply, 1), ID_ACCOUNT, &ret_owner->account);
}

/* Whose it is */

static void owner_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct email_call *call = arg;

    if (result == STORE_OK && !owner_read(reply, &call->found)) {
        store_malformed(partition_of_email(call), "owner of an email");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_OK && partitions_are_closing(call->partitions))
        result = STORE_UNAVAILABLE;
    call->owner_found(call->arg, result, result == STORE_OK ? &call->found : NULL);
    free(call);
}

void email_find_owner(struct partitions *partitions, struct text email, email_owner_found *done, void *arg)
{
    struct email_call *call = call_begin(partitions, email, NULL, arg);

    call->owner_found = done;
    store_call_script(partition_of_email(call), SCRIPT_email_find, SCRIPT_READS, 1, &email, owner_answered, call);
}

static void check_found(void *arg, enum store_result result, const struct email_owner *owner);
static void check_answered(void *arg, enum store_result result, const struct redis_reply *reply);

void email_check_free(struct partitions *partitions, struct text email, store_done *done, void *arg)
{
    email_find_owner(partitions, email, check_found, call_begin(partitions, email, done, arg));
}

static void check_found(void *arg, enum store_result result, const struct email_owner *owner)
{
    struct email_call *call = arg;

    if (result == STORE_OK) {
        const struct text argv[] = {id_text(&owner->account), id_text(&owner->user), TEXT("0")};

        store_call_script(partition_of_account(call->partitions, &owner->account), SCRIPT_person_find, SCRIPT_READS,
                          sizeof argv / sizeof *argv, argv, check_answered, call);
    } else {
        finish(call, result == STORE_NOT_FOUND ? STORE_OK : STORE_UNAVAILABLE);
    }
}

/* The email in reply, person_reply() in the prelude. */
static bool has_email(const struct redis_reply *reply, const char *email)
{
    struct text found;

    return reply_text(reply_named(reply, TEXT("email")), &found) && text_equal(found, text_of(email));
}

static void check_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct email_call *call = arg;

    if (result == STORE_OK)
        finish(call, has_email(reply_at(reply, 0), call->email) ? STORE_CONFLICT : STORE_OK);
    else
        finish(call, result == STORE_NOT_FOUND ? STORE_OK : STORE_UNAVAILABLE);
}

/* Claiming it */

static void claim_write(struct email_call *call);
static void claim_written(void *arg, enum store_result result, const struct redis_reply *reply);
static void owner_void(struct email_call *call);
static void owner_voided(void *arg, enum store_result result, const struct redis_reply *reply);

void email_claim(struct partitions *partitions, const struct email_owner *owner, struct text email, store_done *done,
                 void *arg)
{
    struct email_call *call = call_begin(partitions, email, done, arg);

    call->owner = *owner;
    claim_write(call);
}

/* Where there is one partition, nodes of earlier versions read the user alone. */
static struct text claim_print(const struct email_call *call, char storage[CLAIM_BYTES])
{
    struct buf out;

    buf_init_fixed(&out, storage, CLAIM_BYTES);
    buf_append_text(&out, id_text(&call->owner.user));
    if (partitions_count(call->partitions) > 1) {
        buf_append_char(&out, ' ');
        buf_append_text(&out, id_text(&call->owner.account));
    }
    CHECK(!out.failed);
    return buf_text(&out);
}

static void claim_write(struct email_call *call)
{
    char storage[CLAIM_BYTES];
    struct script_args args;

    call->tries++;
    args_begin(&args);
    args_add(&args, text_of(call->email));
    args_add(&args, id_text(&call->owner.user));
    args_add(&args, claim_print(call, storage));
    args_add(&args, text_of(call->replaced));
    store_call_script(partition_of_email(call), SCRIPT_email_claim, SCRIPT_CHANGES, args.count, args.argv,
                      claim_written, call);
}

static void claim_written(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct email_call *call = arg;

    if (result == STORE_CONFLICT &&
        (!owner_read(reply, &call->found) || !reply_chars(reply_at(reply, 2), call->replaced, sizeof call->replaced))) {
        store_malformed(partition_of_email(call), "claim to an email");
        result = STORE_UNAVAILABLE;
    }
    if (result == STORE_CONFLICT && call->tries < CLAIM_TRIES_MAX && !partitions_are_closing(call->partitions))
        owner_void(call);
    else
        finish(call, result == STORE_OK ? STORE_OK : STORE_UNAVAILABLE);
}

static void owner_void(struct email_call *call)
{
    const struct text argv[] = {id_text(&call->found.user), text_of(call->email)};

    store_call_script(partition_of_account(call->partitions, &call->found.account), SCRIPT_user_void, SCRIPT_CHANGES,
                      sizeof argv / sizeof *argv, argv, owner_voided, call);
}

static void owner_voided(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct email_call *call = arg;

    if (result == STORE_OK && !partitions_are_closing(call->partitions))
        claim_write(call);
    else
        finish(call, result == STORE_CONFLICT ? STORE_CONFLICT : STORE_UNAVAILABLE);
}

/* Releasing it */

static void released(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    finish(arg, result);
}

void email_release(struct partitions *partitions, const struct id *user, struct text email, store_done *done, void *arg)
{
    struct email_call *call = call_begin(partitions, email, done, arg);
    const struct text argv[] = {email, id_text(user)};

    store_call_script(partition_of_email(call), SCRIPT_email_release, SCRIPT_CHANGES, sizeof argv / sizeof *argv, argv,
                      released, call);
}
