#include "store/device_store.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "lease/lease.h"
#include "verb_internal.h"
#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000 };

/* Values */

static bool read_scopes(const struct redis_reply *reply, scope_set *ret_scopes)
{
    int64_t bits;

    if (!reply_integer(reply, &bits) || bits < 1 || bits > SCOPE_ALL)
        return false;
    *ret_scopes = (scope_set)bits;
    return true;
}

/* The index of the word among count others, or count. */
static size_t find_word(const struct redis_reply *reply, const char *const *words, size_t count)
{
    struct text t;
    size_t at = 0;

    if (!reply_text(reply, &t))
        return count;
    while (at < count && !text_equal(t, text_of(words[at])))
        at++;
    return at;
}

/* The parts of an enrolment that its MAC binds, first when it is begun and again when it is approved. The two kinds of
 * MAC differ, so a begun enrolment never passes for an approved one. */

enum { SEAL_PARTS_MAX = 6, SCOPES_TEXT_BYTES = 12 };

struct seal {
    struct record_parts record;
    struct text parts[SEAL_PARTS_MAX];
    char scopes[SCOPES_TEXT_BYTES];
};

static void seal_add(struct seal *seal, struct text part)
{
    CHECK(seal->record.count < SEAL_PARTS_MAX);
    seal->parts[seal->record.count++] = part;
}

/* digest: of the device code, binary */
static void seal_begin(struct seal *seal, enum record_kind kind, const uint8_t digest[KEYRING_DIGEST_BYTES],
                       struct text name, scope_set scopes)
{
    struct buf out;

    buf_init_fixed(&out, seal->scopes, sizeof seal->scopes);
    buf_append_u64(&out, scopes);
    seal->record = (struct record_parts){.kind = kind, .parts = seal->parts};
    seal_add(seal, (struct text){(const char *)digest, KEYRING_DIGEST_BYTES});
    seal_add(seal, name);
    seal_add(seal, buf_text(&out));
}

static void seal_enrolment(struct seal *seal, const uint8_t code_digest[KEYRING_DIGEST_BYTES],
                           const uint8_t user_code_digest[KEYRING_DIGEST_BYTES], struct text client, struct text name,
                           scope_set scopes)
{
    seal_begin(seal, RECORD_ENROLMENT, code_digest, name, scopes);
    seal_add(seal, (struct text){(const char *)user_code_digest, KEYRING_DIGEST_BYTES});
    seal_add(seal, client);
}

static void seal_approval(struct seal *seal, const uint8_t code_digest[KEYRING_DIGEST_BYTES], const struct id *account,
                          const struct id *user, struct text client, struct text name, scope_set scopes)
{
    seal_begin(seal, RECORD_APPROVAL, code_digest, name, scopes);
    seal_add(seal, id_text(account));
    seal_add(seal, id_text(user));
    seal_add(seal, client);
}

/* Beginning */

struct begin_call {
    struct store *store;
    device_begun *done;
    void *arg;
};

static void begin_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct begin_call call = *(struct begin_call *)arg;
    uint32_t retry_after_s = 0;

    free(arg);
    if (result == STORE_REFUSED && !reply_seconds(reply_at(reply, 0), &retry_after_s)) {
        store_malformed(call.store, "enrolment");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, retry_after_s);
}

void device_store_begin(struct store *store, const struct device_request *request, device_begun *done, void *arg)
{
    struct begin_call *call = mem_alloc(sizeof *call);
    struct script_args args;
    struct record_mac mac;
    struct seal seal;

    *call = (struct begin_call){store, done, arg};
    seal_enrolment(&seal, request->code_digest, request->user_code_digest, request->client, request->name,
                   request->scopes);
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
    args_add(&args, request->ip_tag);
    args_add(&args, text_of(mac.text));
    store_call_script(store, SCRIPT_device_begin, SCRIPT_CHANGES, args.count, args.argv, begin_called, call);
}

/* Polling and claiming are two steps, because only a node can seal a key's record, and it must read the approval first
 * to know what to seal. The second step compares again, so that of several polls at once only one makes the key. */

struct poll_call {
    struct store *store;
    uint8_t code_digest[KEYRING_DIGEST_BYTES]; /* under which the enrolment was found */
    uint8_t key_digest[KEY_DIGEST_BYTES];
    struct key_record key;
    char client[CLIENT_ID_MAX_BYTES];
    size_t client_len;
    struct audit_source source; /* the caller keeps its texts until done */
    struct device_poll poll;    /* as approved; name points into key */
    device_approved *approved;
    device_polled *done;
    void *arg;
};

static bool read_refusal(const struct redis_reply *reply, struct device_poll *ret_poll)
{
    static const char *const WORDS[] = {
        [DEVICE_PENDING] = "pending", [DEVICE_SLOW_DOWN] = "slow_down", [DEVICE_DENIED] = "denied",
        [DEVICE_EXPIRED] = "expired", [DEVICE_THROTTLED] = "throttled",
    };
    size_t word = find_word(reply_at(reply, 0), WORDS, sizeof WORDS / sizeof *WORDS);

    ret_poll->refusal = (enum device_refusal)word;
    return word < sizeof WORDS / sizeof *WORDS &&
           (word != DEVICE_THROTTLED || reply_seconds(reply_at(reply, 1), &ret_poll->retry_after_s));
}

static bool read_digest(const struct redis_reply *reply, uint8_t ret_digest[KEYRING_DIGEST_BYTES])
{
    struct text hex;

    return reply_text(reply, &hex) && decode_hex(hex, ret_digest, KEYRING_DIGEST_BYTES);
}

static bool read_approval(const struct redis_reply *reply, struct device_poll *ret_poll, struct text *ret_mac)
{
    return reply_id(reply_at(reply, 0), ID_ACCOUNT, &ret_poll->account) &&
           reply_text(reply_at(reply, 1), &ret_poll->name) && read_scopes(reply_at(reply, 2), &ret_poll->scopes) &&
           reply_id(reply_at(reply, 3), ID_USER, &ret_poll->approver) && reply_text(reply_at(reply, 4), ret_mac);
}

static void poll_finish(struct poll_call *call, enum store_result result)
{
    call->done(call->arg, result, &call->poll);
    free(call);
}

static void claim_called(void *arg, enum store_result result, const struct redis_reply *reply);

static void claim(struct poll_call *call, struct text mac)
{
    char storage[KEY_TEXT_MAX_BYTES];
    struct script_args args;
    struct buf packed;

    buf_init_fixed(&packed, storage, sizeof storage);
    key_encode(&call->key, store_keyring(call->store), call->key_digest, &packed);
    CHECK(!packed.failed);
    args_begin(&args);
    args_add_hex(&args, call->code_digest, sizeof call->code_digest);
    args_add(&args, id_text(&call->key.account));
    args_add(&args, key_name(&call->key));
    args_add_int(&args, call->key.scopes);
    args_add(&args, id_text(&call->key.by));
    args_add(&args, mac);
    args_add_hex(&args, call->key_digest, sizeof call->key_digest);
    args_add(&args, buf_text(&packed));
    args_add_client(&args, call->store, &call->source);
    args_add_int(&args, store_limits(call->store)->device_keys_max);
    store_call_script(call->store, SCRIPT_device_claim, SCRIPT_CHANGES, args.count, args.argv, claim_called, call);
}

static void claim_settled(void *arg, bool is_over)
{
    (void)is_over;
    poll_finish(arg, STORE_OK);
}

static void claim_called(void *arg, enum store_result result, UNUSED const struct redis_reply *reply)
{
    struct poll_call *call = arg;

    if (result == STORE_OK) {
        barriers_settle(lease_barriers(store_lease(call->store)), claim_settled, call);
        return;
    }
    if (result == STORE_REFUSED ||
        result == STORE_FULL) { /* the account is gone, or other devices took the last place */
        result = STORE_REFUSED;
        call->poll.refusal = DEVICE_DENIED;
    } else if (result == STORE_CONFLICT) { /* the key was discarded before it was created */
        result = STORE_UNAVAILABLE;
    }
    poll_finish(call, result);
}

/* False: the approved name is not valid for a key. */
static bool take_approval(struct poll_call *call)
{
    struct key_record *key = &call->key;

    key->account = call->poll.account;
    key->by = call->poll.approver;
    key->scopes = call->poll.scopes;
    if (!key_set_name(key, call->poll.name))
        return false;
    call->poll.name = key_name(key);
    return true;
}

static void poll_approved(struct poll_call *call, const struct redis_reply *reply)
{
    struct seal seal;
    struct text mac;

    if (!read_approval(reply, &call->poll, &mac) || !read_digest(reply_at(reply, 5), call->code_digest) ||
        !reply_chars(reply_at(reply, 6), call->poll.account_name, sizeof call->poll.account_name) ||
        !take_approval(call)) {
        store_malformed(call->store, "device poll");
        poll_finish(call, STORE_UNAVAILABLE);
        return;
    }
    seal_approval(&seal, call->code_digest, &call->poll.account, &call->poll.approver,
                  (struct text){call->client, call->client_len}, call->poll.name, call->poll.scopes);
    enum store_result result = store_believe(call->store, &seal.record, mac, "enrolment", id_text(&call->poll.account));
    if (result == STORE_OK) {
        call->approved(call->arg, &call->key, call->key_digest);
        claim(call, mac);
    } else {
        poll_finish(call, result);
    }
}

static void poll_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct poll_call *call = arg;

    if (result == STORE_OK) {
        poll_approved(call, reply);
        return;
    }
    if (result == STORE_REFUSED && !read_refusal(reply, &call->poll)) {
        store_malformed(call->store, "device poll");
        result = STORE_UNAVAILABLE;
    }
    poll_finish(call, result);
}

void device_store_poll(struct store *store, const struct token_digests *code, struct text client, struct text ip_tag,
                       const struct key_record *key, const struct audit_source *source, device_approved *approved,
                       device_polled *done, void *arg)
{
    struct poll_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    CHECK(client.len <= sizeof call->client);
    call->store = store;
    key_copy(&call->key, key);
    memcpy(call->client, client.ptr, client.len);
    call->client_len = client.len;
    call->source = *source;
    call->approved = approved;
    call->done = done;
    call->arg = arg;
    args_begin(&args);
    args_add_digests(&args, code);
    args_add(&args, client);
    args_add(&args, ip_tag);
    store_call_script(store, SCRIPT_device_poll, SCRIPT_CHANGES, args.count, args.argv, poll_called, call);
}

/* Finding and deciding */

struct find_call {
    struct store *store;
    bool is_change;
    struct token_digests user_code;
    device_found *done;
    void *arg;
};

static bool read_enrolment(const struct redis_reply *reply, struct device_enrolment *ret_enrolment)
{
    static const char *const WORDS[] = {
        [DEVICE_IS_PENDING] = "pending",
        [DEVICE_IS_APPROVED] = "approved",
        [DEVICE_IS_DENIED] = "denied",
    };
    size_t word = find_word(reply_at(reply, 6), WORDS, sizeof WORDS / sizeof *WORDS);

    ret_enrolment->status = (enum device_status)word;
    return word < sizeof WORDS / sizeof *WORDS && reply_text(reply_at(reply, 0), &ret_enrolment->client) &&
           reply_text(reply_at(reply, 1), &ret_enrolment->name) &&
           read_scopes(reply_at(reply, 2), &ret_enrolment->scopes) &&
           reply_text(reply_at(reply, 3), &ret_enrolment->ip) &&
           reply_time(reply_at(reply, 4), &ret_enrolment->created_ms) &&
           reply_time(reply_at(reply, 5), &ret_enrolment->expires_ms);
}

/* The MAC of an enrolment, and the digest that it binds. */
struct found_seal {
    uint8_t digest[KEYRING_DIGEST_BYTES]; /* of the device code */
    struct text mac;
};

static bool read_seal(const struct redis_reply *reply, struct found_seal *ret)
{
    return read_digest(reply_at(reply, 7), ret->digest) && reply_text(reply_at(reply, 8), &ret->mac);
}

/* Finds the seal that matches. The enrolment does not say under which master key its user code's digest was made. */
static void seal_found(const struct find_call *call, const struct device_enrolment *enrolment,
                       const struct found_seal *found, struct seal *ret_seal)
{
    size_t i = call->user_code.count;

    do {
        i--;
        seal_enrolment(ret_seal, found->digest, call->user_code.of[i], enrolment->client, enrolment->name,
                       enrolment->scopes);
    } while (i > 0 &&
             record_mac_verify(store_keyring(call->store), &ret_seal->record, found->mac, NULL) != RECORD_SEALED);
}

/* A pending enrolment must match the MAC of its beginning: that proves that it belongs to this code and what it asks
 * for. A decided one is only shown, and nothing depends on that. */
static enum store_result believe_enrolment(const struct find_call *call, const struct device_enrolment *enrolment,
                                           const struct found_seal *found)
{
    struct seal seal;

    if (enrolment->status != DEVICE_IS_PENDING)
        return STORE_OK;
    seal_found(call, enrolment, found, &seal);
    return store_believe(call->store, &seal.record, found->mac, "enrolment", enrolment->name);
}

static enum store_result found_read(const struct find_call *call, enum store_result result,
                                    const struct redis_reply *reply, struct device_enrolment *ret_enrolment,
                                    struct found_seal *ret_seal, uint32_t *ret_retry_after_s)
{
    if ((result == STORE_OK && (!read_enrolment(reply, ret_enrolment) || !read_seal(reply, ret_seal))) ||
        ((result == STORE_REFUSED || result == STORE_LIMITED) &&
         !reply_seconds(reply_at(reply, 0), ret_retry_after_s))) {
        store_malformed(call->store, "enrolment");
        return call->is_change ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    }
    return result == STORE_OK ? believe_enrolment(call, ret_enrolment, ret_seal) : result;
}

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call call = *(struct find_call *)arg;
    struct device_enrolment enrolment = {0};
    struct found_seal seal = {0};
    uint32_t retry_after_s = 0;

    free(arg);
    result = found_read(&call, result, reply, &enrolment, &seal, &retry_after_s);
    call.done(call.arg, result, result == STORE_OK ? &enrolment : NULL, retry_after_s);
}

static void args_add_seeker(struct script_args *args, const struct token_digests *user_code, const struct id *account,
                            struct text user_tag)
{
    args_begin(args);
    args_add_digests(args, user_code);
    args_add(args, id_text(account));
    args_add(args, user_tag);
}

static struct find_call *find_call_make(struct store *store, const struct token_digests *user_code, bool is_change,
                                        device_found *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);

    *call = (struct find_call){.store = store, .is_change = is_change, .done = done, .arg = arg};
    call->user_code = *user_code;
    return call;
}

/* SCRIPT_READS, because the counter of wrong codes need not wait for replicas. */
void device_store_find(struct store *store, const struct token_digests *user_code, const struct id *account,
                       struct text user_tag, device_found *done, void *arg)
{
    struct find_call *call = find_call_make(store, user_code, false, done, arg);
    struct script_args args;

    args_add_seeker(&args, user_code, account, user_tag);
    store_call_script(store, SCRIPT_device_find, SCRIPT_READS, args.count, args.argv, find_called, call);
}

/* A decision. Before an approval is sealed, the enrolment is read, to know what to seal. */
struct decision {
    struct find_call *call; /* of the second step */
    struct id account;
    char user_tag[2 * KEYRING_DIGEST_BYTES];
    size_t user_tag_len;
    struct audit_source source; /* the caller keeps its texts until done */
};

static void send_decision(const struct decision *decision, struct text status, struct text mac)
{
    struct find_call *call = decision->call;
    struct script_args args;

    args_add_seeker(&args, &call->user_code, &decision->account,
                    (struct text){decision->user_tag, decision->user_tag_len});
    args_add(&args, status);
    args_add_source(&args, call->store, &decision->source);
    args_add_credential(&args, &decision->source.credential);
    args_add(&args, mac);
    args_add_int(&args, store_limits(call->store)->device_keys_max);
    args_add_int(&args, store_limits(call->store)->changes_per_minute);
    store_call_script(call->store, SCRIPT_device_decide, SCRIPT_CHANGES, args.count, args.argv, find_called, call);
}

static void send_approval(const struct decision *decision, const struct device_enrolment *enrolment,
                          const struct found_seal *found)
{
    struct record_mac mac;
    struct seal seal;
    struct id user;

    if (enrolment->status != DEVICE_IS_PENDING) { /* decided already: nothing was verified, so nothing is sealed */
        send_decision(decision, TEXT("approved"), TEXT(""));
        return;
    }
    CHECK(id_parse(ID_USER, decision->source.actor, &user));
    seal_approval(&seal, found->digest, &decision->account, &user, enrolment->client, enrolment->name,
                  enrolment->scopes);
    record_mac_make(store_keyring(decision->call->store), &seal.record, &mac);
    send_decision(decision, TEXT("approved"), text_of(mac.text));
}

static void approval_found(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct decision decision = *(struct decision *)arg;
    struct device_enrolment enrolment = {0};
    struct found_seal seal = {0};
    uint32_t retry_after_s = 0;

    free(arg);
    result = found_read(decision.call, result, reply, &enrolment, &seal, &retry_after_s);
    if (result == STORE_OK) {
        send_approval(&decision, &enrolment, &seal);
        return;
    }
    if (result == STORE_UNKNOWN) /* nothing was changed yet */
        result = STORE_UNAVAILABLE;
    decision.call->done(decision.call->arg, result, NULL, retry_after_s);
    free(decision.call);
}

static void read_before_approval(struct store *store, const struct decision *decision)
{
    struct decision *kept = mem_alloc(sizeof *kept);
    struct script_args args;

    *kept = *decision;
    args_add_seeker(&args, &kept->call->user_code, &kept->account, (struct text){kept->user_tag, kept->user_tag_len});
    store_call_script(store, SCRIPT_device_find, SCRIPT_READS, args.count, args.argv, approval_found, kept);
}

void device_store_decide(struct store *store, const struct token_digests *user_code, const struct id *account,
                         struct text user_tag, bool approve, const struct audit_source *source, device_found *done,
                         void *arg)
{
    struct decision decision = {.call = find_call_make(store, user_code, true, done, arg),
                                .account = *account,
                                .user_tag_len = user_tag.len,
                                .source = *source};

    CHECK(user_tag.len <= sizeof decision.user_tag);
    memcpy(decision.user_tag, user_tag.ptr, user_tag.len);
    if (approve)
        read_before_approval(store, &decision);
    else
        send_decision(&decision, TEXT("denied"), TEXT(""));
}
