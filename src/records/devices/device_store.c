/* The device's side of its enrolment: begin and poll. */
#include "records/device_store.h"

#include "base/check.h"
#include "base/mem.h"
#include "device_mark.h"
#include "lease/lease.h"
#include "throttle.h"
#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000 };

/* Beginning */

struct begin_call {
    const struct partitions *partitions;
    const struct device_request *request;
    store_limited *done;
    void *arg;
};

static void begin_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict);
static void begin_write(struct begin_call *call);
static void begin_written(void *arg, enum store_result result, const struct redis_reply *reply);

static void begin_finish(struct begin_call *call, enum store_result result, uint32_t retry_after_s)
{
    call->done(call->arg, result, retry_after_s);
    free(call);
}

void device_store_begin(const struct partitions *partitions, const struct device_request *request, store_limited *done,
                        void *arg)
{
    struct begin_call *call = mem_alloc(sizeof *call);

    *call = (struct begin_call){partitions, request, done, arg};
    throttle_judge_address(partitions, request->ip_tag, THROTTLE_FAIL, begin_counted, call);
}

static void begin_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    if (result == STORE_OK)
        begin_write(arg);
    else
        begin_finish(arg, result, verdict->retry_after_s);
}

static void begin_write(struct begin_call *call)
{
    const struct device_request *request = call->request;
    const struct sealed_device sealed = {request->code_digest, request->client, request->name, request->scopes};
    struct store *store = partition_of_digest(call->partitions, request->user_code_digest);
    struct script_args args;
    struct record_mac mac;
    struct seal seal;

    if (store_is_short(store)) {
        begin_finish(call, STORE_UNAVAILABLE, 0);
        return;
    }
    seal_enrolment(&seal, &sealed, request->user_code_digest);
    record_mac_make(store_keyring(store), &seal.record, &mac);
    args_begin(&args);
    args_add_hex(&args, request->code_digest, KEYRING_DIGEST_BYTES);
    args_add_hex(&args, request->user_code_digest, KEYRING_DIGEST_BYTES);
    args_add(&args, request->client);
    args_add(&args, request->name);
    args_add_int(&args, request->scopes);
    args_add(&args, request->ip);
    args_add_int(&args, DEVICE_LIFETIME_S * MS_PER_S);
    args_add_int(&args, DEVICE_INTERVAL_S * MS_PER_S);
    args_add(&args, text_of(mac.text));
    args_add(&args, request->network_tag);
    args_add_int(&args, store_strangers_most(store, ENROLMENTS_MAX));
    store_call_script(store, SCRIPT_device_begin, SCRIPT_CHANGES, args.count, args.argv, begin_written, call);
}

static void begin_written(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    begin_finish(arg, result, 0);
}

/* Polling. The partition of the enrolment says whether it is approved; the partition of the account creates the key.
 * Only a node can seal a key's record, and it must read the approval first to know what to seal. The claim compares
 * again, so that of several polls at once only one makes the key. */

struct poll_call {
    const struct partitions *partitions;
    struct store *store; /* of the enrolment */
    struct token_digests code;
    size_t tries; /* of the digests; the last one found the enrolment */
    struct text client, ip_tag;
    uint8_t key_digest[KEY_DIGEST_BYTES];
    struct key_record key;
    struct audit_source source;
    struct device_poll poll; /* as approved; name points into key */
    struct record_mac mac;   /* of the approval */
    bool is_hasty;
    device_approved *approved;
    device_polled *done;
    void *arg;
};

static void poll_ask(struct poll_call *call);
static void poll_answered(void *arg, enum store_result result, const struct redis_reply *reply);
static void poll_refused(struct poll_call *call, const struct redis_reply *reply);
static void poll_count(struct poll_call *call);
static void poll_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict);
static void poll_slow_down(struct poll_call *call);
static void poll_slowed_down(void *arg, enum store_result result, const struct redis_reply *reply);
static void poll_approved(struct poll_call *call, const struct redis_reply *reply);
static void poll_claim(struct poll_call *call);
static void poll_claimed(void *arg, enum store_result result, const struct redis_reply *reply);
static void poll_marked(void *arg, enum store_result result);
static void poll_settled(void *arg, bool is_over);

static void poll_finish(struct poll_call *call, enum store_result result)
{
    call->done(call->arg, result, &call->poll);
    free(call);
}

/* Before the claim nothing can have been created. */
static void poll_fail(struct poll_call *call, enum store_result result)
{
    poll_finish(call, result == STORE_UNKNOWN ? STORE_UNAVAILABLE : result);
}

static void poll_refuse(struct poll_call *call, enum device_refusal refusal)
{
    call->poll.refusal = refusal;
    poll_finish(call, STORE_REFUSED);
}

static void poll_malformed(struct poll_call *call, enum store_result result)
{
    store_malformed(call->store, "device poll");
    poll_finish(call, result);
}

void device_store_poll(const struct partitions *partitions, const struct token_digests *code, struct text client,
                       struct text ip_tag, const struct key_record *key, const struct audit_source *source,
                       device_approved *approved, device_polled *done, void *arg)
{
    struct poll_call *call = mem_alloc(sizeof *call);

    call->partitions = partitions;
    call->code = *code;
    call->client = client;
    call->ip_tag = ip_tag;
    key_copy(&call->key, key);
    call->source = *source;
    call->approved = approved;
    call->done = done;
    call->arg = arg;
    poll_ask(call);
}

static const uint8_t *code_digest(const struct poll_call *call)
{
    return call->code.of[call->tries - 1];
}

static void poll_ask(struct poll_call *call)
{
    struct script_args args;

    call->tries++;
    call->store = partition_of_digest(call->partitions, code_digest(call));
    args_begin(&args);
    args_add_hex(&args, code_digest(call), KEYRING_DIGEST_BYTES);
    args_add(&args, call->client);
    store_call_script(call->store, SCRIPT_device_poll, SCRIPT_CHANGES, args.count, args.argv, poll_answered, call);
}

static void poll_answered(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct poll_call *call = arg;

    if (result == STORE_OK)
        poll_approved(call, reply);
    else if (result == STORE_REFUSED)
        poll_refused(call, reply);
    else if (result == STORE_NOT_FOUND && call->tries < call->code.count)
        poll_ask(call);
    else if (result == STORE_NOT_FOUND)
        poll_count(call);
    else
        poll_fail(call, result);
}

static void poll_refused(struct poll_call *call, const struct redis_reply *reply)
{
    enum { PENDING, HASTY, DENIED, EXPIRED, CLAIMED, WORD_COUNT };
    static const char *const WORDS[] = {"pending", "hasty", "denied", "expired", "claimed"};

    switch (reply_word(reply_at(reply, 0), WORDS, WORD_COUNT)) {
    case PENDING:
        poll_refuse(call, DEVICE_PENDING);
        break;
    case HASTY:
        call->is_hasty = true;
        poll_count(call);
        break;
    case DENIED:
        poll_refuse(call, DEVICE_DENIED);
        break;
    case EXPIRED:
        poll_refuse(call, DEVICE_EXPIRED);
        break;
    case CLAIMED:
        poll_finish(call, STORE_NOT_FOUND);
        break;
    default:
        poll_malformed(call, STORE_UNAVAILABLE);
    }
}

static void poll_count(struct poll_call *call)
{
    throttle_judge_address(call->partitions, call->ip_tag, THROTTLE_FAIL, poll_counted, call);
}

static void poll_counted(void *arg, enum store_result result, const struct throttle_verdict *verdict)
{
    struct poll_call *call = arg;

    call->poll.retry_after_s = verdict->retry_after_s;
    if (result == STORE_REFUSED)
        poll_refuse(call, DEVICE_THROTTLED);
    else if (result != STORE_OK)
        poll_fail(call, result);
    else if (call->is_hasty)
        poll_slow_down(call);
    else
        poll_finish(call, STORE_NOT_FOUND);
}

static void poll_slow_down(struct poll_call *call)
{
    struct script_args args;

    args_begin(&args);
    args_add_hex(&args, code_digest(call), KEYRING_DIGEST_BYTES);
    store_call_script(call->store, SCRIPT_device_slow_down, SCRIPT_READS, args.count, args.argv, poll_slowed_down,
                      call);
}

static void poll_slowed_down(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    if (result == STORE_OK)
        poll_refuse(arg, DEVICE_SLOW_DOWN);
    else
        poll_fail(arg, result);
}

/* False: malformed, or the approved name is not valid for a key. */
static bool read_approval(struct poll_call *call, const struct redis_reply *reply)
{
    struct device_poll *poll = &call->poll;
    struct key_record *key = &call->key;

    if (!reply_id(reply_at(reply, 0), ID_ACCOUNT, &poll->account) || !reply_text(reply_at(reply, 1), &poll->name) ||
        !reply_scopes(reply_at(reply, 2), &poll->scopes) || !reply_id(reply_at(reply, 3), ID_USER, &poll->approver) ||
        !reply_chars(reply_at(reply, 4), call->mac.text, sizeof call->mac.text) || !key_keep_name(key, poll->name))
        return false;
    key->account = poll->account;
    key->by = poll->approver;
    key->scopes = poll->scopes;
    poll->name = key_name(key);
    return true;
}

static void poll_approved(struct poll_call *call, const struct redis_reply *reply)
{
    struct seal seal;

    if (!read_approval(call, reply)) {
        poll_malformed(call, STORE_UNAVAILABLE);
        return;
    }
    const struct sealed_device sealed = {code_digest(call), call->client, call->poll.name, call->poll.scopes};
    seal_approval(&seal, &sealed, &call->poll.account, &call->poll.approver);
    enum store_result result =
        store_believe(call->store, &seal.record, text_of(call->mac.text), "enrolment", id_text(&call->poll.account));
    if (result == STORE_OK) {
        call->approved(call->arg, &call->key, call->key_digest);
        poll_claim(call);
    } else {
        poll_finish(call, result);
    }
}

static void poll_claim(struct poll_call *call)
{
    struct store *store = partition_of_account(call->partitions, &call->key.account);
    struct script_args args;
    struct buf packed = BUF_FIXED(KEY_TEXT_MAX_BYTES);

    key_encode(&call->key, store_keyring(store), call->key_digest, &packed);
    CHECK(!packed.failed);
    args_begin(&args);
    args_add_hex(&args, code_digest(call), KEYRING_DIGEST_BYTES);
    args_add(&args, id_text(&call->key.account));
    args_add(&args, key_name(&call->key));
    args_add_int(&args, call->key.scopes);
    args_add(&args, id_text(&call->key.by));
    args_add(&args, text_of(call->mac.text));
    args_add_hex(&args, call->key_digest, sizeof call->key_digest);
    args_add(&args, buf_text(&packed));
    args_add_client(&args, store, &call->source);
    args_add_key_limits(&args, store, store_limits(store)->device_keys_max);
    store_call_script(store, SCRIPT_device_claim, SCRIPT_CHANGES, args.count, args.argv, poll_claimed, call);
}

static void poll_claimed(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct poll_call *call = arg;
    const struct device_mark mark = {"claimed", code_digest(call), &call->key.account, &call->key.by,
                                     text_of(call->mac.text)};

    if (result == STORE_OK && !reply_chars(reply_at(reply, 0), call->poll.account_name, sizeof call->poll.account_name))
        poll_malformed(call, STORE_UNKNOWN);
    else if (result == STORE_OK)
        device_mark(call->store, &mark, poll_marked, call);
    else if (result == STORE_REFUSED || result == STORE_FULL) /* no such account, or others took the last place */
        poll_refuse(call, DEVICE_DENIED);
    else /* conflict: the key was discarded before it was created */
        poll_finish(call, result == STORE_CONFLICT ? STORE_UNAVAILABLE : result);
}

/* The key exists, whatever the enrolment shows: no poll can claim another one. */
static void poll_marked(void *arg, UNUSED enum store_result result)
{
    struct poll_call *call = arg;
    struct store *store = partition_of_account(call->partitions, &call->key.account);

    barriers_settle(lease_barriers(store_lease(store)), poll_settled, call);
}

static void poll_settled(void *arg, UNUSED bool is_over)
{
    poll_finish(arg, STORE_OK);
}
