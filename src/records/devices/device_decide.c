/* The user's side of an enrolment: find it by its user code, and decide. The enrolment is in one partition, the user's
 * account in another, so a decision takes several steps. Each can be repeated. The decision in the account's partition
 * alone allows or forbids the key; the mark at the enrolment tells the device which account to ask. */
#include "records/device_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "device_mark.h"
#include <stdlib.h>

enum verification_kind { VERIFICATION_SHOWS, VERIFICATION_APPROVES, VERIFICATION_DENIES };

enum { IP_TEXT_MAX_BYTES = 64, FOUND_TEXTS_BYTES = CLIENT_ID_MAX_BYTES + KEY_NAME_MAX_BYTES + IP_TEXT_MAX_BYTES };

struct verification {
    const struct partitions *partitions;
    struct store *account_store, *enrolment_store; /* the partition of each */
    enum verification_kind kind;
    struct id account, user; /* user: who approved, if anybody */
    struct text user_tag;
    struct audit_source source;
    struct token_digests user_code;
    size_t tries; /* of the digests; the last one found the enrolment */
    struct device_enrolment enrolment;
    char texts[FOUND_TEXTS_BYTES];             /* of the enrolment */
    uint8_t code_digest[KEYRING_DIGEST_BYTES]; /* of the enrolment's device code */
    struct record_mac mac;                     /* of the enrolment, then of the approval */
    enum store_result result;                  /* of the search */
    uint32_t retry_after_s;
    device_found *done;
    void *arg;
};

static void user_code_reserve(struct verification *call);
static void user_code_reserved(void *arg, enum store_result result, const struct redis_reply *reply);
static void enrolment_find(struct verification *call);
static void enrolment_found(void *arg, enum store_result result, const struct redis_reply *reply);
static void user_code_return(struct verification *call, enum store_result result);
static void user_code_returned(void *arg, enum store_result result, const struct redis_reply *reply);
static void approval_write(struct verification *call);
static void approval_written(void *arg, enum store_result result, const struct redis_reply *reply);
static void approval_marked(void *arg, enum store_result result);
static void approval_undo(struct verification *call);
static void approval_undone(void *arg, enum store_result result);
static void denial_write(struct verification *call);
static void denial_written(void *arg, enum store_result result);
static void denial_marked(void *arg, enum store_result result);

static void verification_finish(struct verification *call, enum store_result result)
{
    call->done(call->arg, result, result == STORE_OK ? &call->enrolment : NULL, call->retry_after_s);
    free(call);
}

/* A reply that tells how long to wait. False: malformed. */
static bool retry_after_read(struct verification *call, const struct redis_reply *reply)
{
    if (reply_seconds(reply_at(reply, 0), &call->retry_after_s))
        return true;
    store_malformed(call->account_store, "enrolment");
    return false;
}

static void verification_begin(const struct verification *from)
{
    struct verification *call = mem_alloc(sizeof *call);

    *call = *from;
    call->account_store = partition_of_account(call->partitions, &call->account);
    user_code_reserve(call);
}

void device_store_find(const struct partitions *partitions, const struct token_digests *user_code,
                       const struct id *account, struct text user_tag, device_found *done, void *arg)
{
    verification_begin(&(struct verification){.partitions = partitions,
                                              .kind = VERIFICATION_SHOWS,
                                              .account = *account,
                                              .user_tag = user_tag,
                                              .user_code = *user_code,
                                              .done = done,
                                              .arg = arg});
}

void device_store_decide(const struct partitions *partitions, const struct token_digests *user_code,
                         const struct id *account, struct text user_tag, bool approve,
                         const struct audit_source *source, device_found *done, void *arg)
{
    struct verification verification = {.partitions = partitions,
                                        .kind = approve ? VERIFICATION_APPROVES : VERIFICATION_DENIES,
                                        .account = *account,
                                        .user_tag = user_tag,
                                        .source = *source,
                                        .user_code = *user_code,
                                        .done = done,
                                        .arg = arg};

    CHECK(id_parse(ID_USER, source->actor, &verification.user));
    verification_begin(&verification);
}

/* Finding. SCRIPT_READS, because the counter of wrong codes need not wait for replicas. */

static void user_code_reserve(struct verification *call)
{
    struct script_args args;

    args_begin(&args);
    args_add(&args, call->user_tag);
    args_add(&args, call->source.actor);
    args_add(&args, id_text(&call->account));
    args_add_credential(&args, &call->source.credential);
    store_call_script(call->account_store, SCRIPT_device_seek, SCRIPT_READS, args.count, args.argv, user_code_reserved,
                      call);
}

/* Nothing was changed yet. */
static enum store_result unchanged(enum store_result result)
{
    return result == STORE_UNKNOWN ? STORE_UNAVAILABLE : result;
}

static void user_code_reserved(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct verification *call = arg;

    if (result == STORE_OK)
        enrolment_find(call);
    else if (result == STORE_REFUSED && !retry_after_read(call, reply))
        verification_finish(call, STORE_UNAVAILABLE);
    else
        verification_finish(call, unchanged(result));
}

static void enrolment_find(struct verification *call)
{
    const uint8_t *digest = call->user_code.of[call->tries++];
    struct script_args args;

    call->enrolment_store = partition_of_digest(call->partitions, digest);
    args_begin(&args);
    args_add_hex(&args, digest, KEYRING_DIGEST_BYTES);
    args_add(&args, id_text(&call->account));
    store_call_script(call->enrolment_store, SCRIPT_device_find, SCRIPT_READS, args.count, args.argv, enrolment_found,
                      call);
}

static bool read_status(const struct redis_reply *reply, enum device_status *ret_status)
{
    static const char *const WORDS[] = {
        [DEVICE_IS_PENDING] = "pending",
        [DEVICE_IS_APPROVED] = "approved",
        [DEVICE_IS_DENIED] = "denied",
    };
    size_t word = reply_word(reply, WORDS, sizeof WORDS / sizeof *WORDS);

    *ret_status = (enum device_status)word;
    return word < sizeof WORDS / sizeof *WORDS;
}

/* Copies a text, which later steps need. */
static bool read_kept(const struct redis_reply *reply, struct buf *texts, struct text *ret)
{
    size_t from = texts->len;
    struct text t;

    if (!reply_text(reply, &t))
        return false;
    buf_append_text(texts, t);
    *ret = text_skip(buf_text(texts), from);
    return !texts->failed;
}

static bool read_enrolment(struct verification *call, const struct redis_reply *reply)
{
    struct device_enrolment *enrolment = &call->enrolment;
    struct text digest;
    struct buf texts;

    buf_init_fixed(&texts, call->texts, sizeof call->texts);
    return read_kept(reply_at(reply, 0), &texts, &enrolment->client) &&
           read_kept(reply_at(reply, 1), &texts, &enrolment->name) &&
           reply_scopes(reply_at(reply, 2), &enrolment->scopes) &&
           read_kept(reply_at(reply, 3), &texts, &enrolment->ip) &&
           reply_time(reply_at(reply, 4), &enrolment->created_ms) &&
           reply_time(reply_at(reply, 5), &enrolment->expires_ms) &&
           read_status(reply_at(reply, 6), &enrolment->status) && reply_text(reply_at(reply, 7), &digest) &&
           decode_hex(digest, call->code_digest, sizeof call->code_digest) &&
           reply_chars(reply_at(reply, 8), call->mac.text, sizeof call->mac.text);
}

static struct sealed_device enrolment_sealed(const struct verification *call)
{
    return (struct sealed_device){call->code_digest, call->enrolment.client, call->enrolment.name,
                                  call->enrolment.scopes};
}

/* A pending enrolment must match the MAC of its beginning: that proves that it belongs to this code and what it asks
 * for. A decided one is only shown, and nothing depends on that. Nor does a denial depend on it. */
static enum store_result enrolment_verify(const struct verification *call)
{
    const struct sealed_device sealed = enrolment_sealed(call);
    struct seal seal;

    if (call->enrolment.status != DEVICE_IS_PENDING || call->kind == VERIFICATION_DENIES)
        return STORE_OK;
    seal_enrolment(&seal, &sealed, call->user_code.of[call->tries - 1]);
    return store_believe(call->enrolment_store, &seal.record, text_of(call->mac.text), "enrolment",
                         call->enrolment.name);
}

static void enrolment_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct verification *call = arg;

    if (result == STORE_NOT_FOUND && call->tries < call->user_code.count) {
        enrolment_find(call);
    } else if (result == STORE_NOT_FOUND) {
        verification_finish(call, STORE_NOT_FOUND);
    } else if (result == STORE_OK && !read_enrolment(call, reply)) {
        store_malformed(call->enrolment_store, "enrolment");
        user_code_return(call, STORE_UNAVAILABLE);
    } else if (result == STORE_OK) {
        user_code_return(call, enrolment_verify(call));
    } else {
        user_code_return(call, result == STORE_REFUSED ? STORE_NOT_FOUND : unchanged(result));
    }
}

static void user_code_return(struct verification *call, enum store_result result)
{
    struct script_args args;

    call->result = result;
    args_begin(&args);
    args_add(&args, call->user_tag);
    store_call_script(call->account_store, SCRIPT_device_found, SCRIPT_READS, args.count, args.argv, user_code_returned,
                      call);
}

/* If that failed, one wrong code too many is counted. */
static void user_code_returned(void *arg, UNUSED enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct verification *call = arg;

    if (call->result != STORE_OK || call->kind == VERIFICATION_SHOWS)
        verification_finish(call, call->result);
    else if (call->kind == VERIFICATION_APPROVES)
        approval_write(call);
    else
        denial_write(call);
}

/* Denies in the account's partition. */
static void enrolment_deny(struct verification *call, store_done *done)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, call->code_digest, sizeof call->code_digest);
    args_add(&args, id_text(&call->account));
    args_add(&args, call->enrolment.name);
    args_add_actor(&args, call->account_store, &call->source);
    verb_call_change(call->account_store, SCRIPT_device_deny, &args, done, call);
}

/* Approving */

static void approval_write(struct verification *call)
{
    const struct sealed_device sealed = enrolment_sealed(call);
    const struct store_settings *limits = store_limits(call->account_store);
    struct script_args args;
    struct seal seal;

    if (call->enrolment.status == DEVICE_IS_DENIED) {
        verification_finish(call, STORE_NOT_FOUND);
        return;
    }
    call->mac.text[0] = '\0'; /* approved already: nothing was verified, so nothing is sealed */
    if (call->enrolment.status == DEVICE_IS_PENDING) {
        seal_approval(&seal, &sealed, &call->account, &call->user);
        record_mac_make(store_keyring(call->account_store), &seal.record, &call->mac);
    }
    args_begin(&args);
    args_add_hex(&args, call->code_digest, sizeof call->code_digest);
    args_add(&args, id_text(&call->account));
    args_add(&args, sealed.name);
    args_add_int(&args, sealed.scopes);
    args_add(&args, text_of(call->mac.text));
    args_add_actor(&args, call->account_store, &call->source);
    args_add_key_limits(&args, call->account_store, limits->device_keys_max);
    args_add_int(&args, limits->changes_per_minute);
    store_call_script(call->account_store, SCRIPT_device_approve, SCRIPT_CHANGES, args.count, args.argv,
                      approval_written, call);
}

static void approval_mark(struct verification *call)
{
    const struct device_mark mark = {"approved", call->code_digest, &call->account, &call->user,
                                     text_of(call->mac.text)};

    device_mark(call->enrolment_store, &mark, approval_marked, call);
}

static void approval_written(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct verification *call = arg;

    if (result == STORE_LIMITED && !retry_after_read(call, reply)) {
        verification_finish(call, STORE_UNKNOWN);
    } else if (result != STORE_OK || call->enrolment.status == DEVICE_IS_APPROVED) {
        verification_finish(call, result);
    } else if (!reply_id(reply_at(reply, 0), ID_USER, &call->user) ||
               !reply_chars(reply_at(reply, 1), call->mac.text, sizeof call->mac.text)) {
        store_malformed(call->account_store, "approval");
        verification_finish(call, STORE_UNKNOWN);
    } else {
        approval_mark(call);
    }
}

static void approval_marked(void *arg, enum store_result result)
{
    struct verification *call = arg;

    if (result == STORE_NOT_FOUND) {
        approval_undo(call);
        return;
    }
    call->enrolment.status = DEVICE_IS_APPROVED;
    verification_finish(call, result == STORE_OK ? STORE_OK : STORE_UNKNOWN);
}

/* Another account was faster, or it was denied meanwhile. */
static void approval_undo(struct verification *call)
{
    call->source.actor = TEXT("system");
    call->source.credential.kind = CREDENTIAL_NONE;
    enrolment_deny(call, approval_undone);
}

static void approval_undone(void *arg, UNUSED enum store_result result)
{
    verification_finish(arg, STORE_NOT_FOUND);
}

/* Denying */

static void denial_write(struct verification *call)
{
    if (call->enrolment.status == DEVICE_IS_DENIED)
        verification_finish(call, STORE_OK);
    else
        enrolment_deny(call, denial_written);
}

static void denial_written(void *arg, enum store_result result)
{
    struct verification *call = arg;
    const struct device_mark mark = {"denied", call->code_digest, &call->account, &call->user, TEXT("")};

    if (result == STORE_OK)
        device_mark(call->enrolment_store, &mark, denial_marked, call);
    else
        verification_finish(call, result);
}

static void denial_marked(void *arg, enum store_result result)
{
    struct verification *call = arg;

    call->enrolment.status = DEVICE_IS_DENIED;
    verification_finish(call, result == STORE_OK || result == STORE_NOT_FOUND ? result : STORE_UNKNOWN);
}
