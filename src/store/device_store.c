#include "store/device_store.h"

#include "base/mem.h"
#include "verb_internal.h"
#include <stdlib.h>

enum { MS_PER_S = 1000 };

/* Values */

static bool read_seconds(const struct redis_reply *reply, uint32_t *ret_seconds)
{
    int64_t seconds;

    if (!reply_integer(reply, &seconds) || seconds < 1 || seconds > UINT32_MAX)
        return false;
    *ret_seconds = (uint32_t)seconds;
    return true;
}

static bool read_scopes(const struct redis_reply *reply, scope_set *ret_scopes)
{
    int64_t bits;

    if (!reply_integer(reply, &bits) || bits < 1 || bits > SCOPE_ALL)
        return false;
    *ret_scopes = (scope_set)bits;
    return true;
}

/* The word's place among count others; count where it is none. */
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
    if (result == STORE_REFUSED && !read_seconds(reply_at(reply, 0), &retry_after_s)) {
        store_malformed(call.store, "enrolment");
        result = STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, retry_after_s);
}

void device_store_begin(struct store *store, const struct device_request *request, device_begun *done, void *arg)
{
    struct begin_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct begin_call){store, done, arg};
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
    store_call_script(store, SCRIPT_device_begin, SCRIPT_CHANGES, args.count, args.argv, begin_called, call);
}

/* Polling and claiming */

struct poll_call {
    struct store *store;
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
           (word != DEVICE_THROTTLED || read_seconds(reply_at(reply, 1), &ret_poll->retry_after_s));
}

static bool read_claim(const struct redis_reply *reply, struct device_poll *ret_poll)
{
    return reply_id(reply_at(reply, 0), ID_ACCOUNT, &ret_poll->account) &&
           reply_text(reply_at(reply, 1), &ret_poll->name) && read_scopes(reply_at(reply, 2), &ret_poll->scopes) &&
           reply_id(reply_at(reply, 3), ID_USER, &ret_poll->approver);
}

static void poll_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct poll_call call = *(struct poll_call *)arg;
    struct device_poll poll = {0};

    free(arg);
    if ((result == STORE_OK && !read_claim(reply, &poll)) || (result == STORE_REFUSED && !read_refusal(reply, &poll))) {
        store_malformed(call.store, "poll of a device");
        result = STORE_UNKNOWN;
    }
    call.done(call.arg, result, &poll);
}

void device_store_poll(struct store *store, const uint8_t code_digest[KEYRING_DIGEST_BYTES], struct text client,
                       struct text ip_tag, const struct key_record *key, const uint8_t key_digest[KEY_DIGEST_BYTES],
                       const struct audit_origin *origin, device_polled *done, void *arg)
{
    struct poll_call *call = mem_alloc(sizeof *call);
    struct script_args args;

    *call = (struct poll_call){store, done, arg};
    args_begin(&args);
    args_add_hex(&args, code_digest, KEYRING_DIGEST_BYTES);
    args_add(&args, client);
    args_add(&args, ip_tag);
    args_add_hex(&args, key_digest, KEY_DIGEST_BYTES);
    args_add(&args, id_text(&key->id));
    args_add(&args, text_of(key->last4));
    args_add_int(&args, key->created_ms);
    args_add_source(&args, store, origin);
    store_call_script(store, SCRIPT_device_poll, SCRIPT_CHANGES, args.count, args.argv, poll_called, call);
}

/* Finding and deciding */

struct find_call {
    struct store *store;
    bool is_change;
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

static void find_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct find_call call = *(struct find_call *)arg;
    struct device_enrolment enrolment = {0};
    uint32_t retry_after_s = 0;

    free(arg);
    if ((result == STORE_OK && !read_enrolment(reply, &enrolment)) ||
        (result == STORE_REFUSED && !read_seconds(reply_at(reply, 0), &retry_after_s))) {
        store_malformed(call.store, "enrolment");
        result = call.is_change ? STORE_UNKNOWN : STORE_UNAVAILABLE;
    }
    call.done(call.arg, result, result == STORE_OK ? &enrolment : NULL, retry_after_s);
}

static void args_add_seeker(struct script_args *args, const uint8_t *user_code_digest, const struct id *account,
                            struct text user_tag)
{
    args_begin(args);
    args_add_hex(args, user_code_digest, KEYRING_DIGEST_BYTES);
    args_add(args, id_text(account));
    args_add(args, user_tag);
}

static void call_find(struct store *store, enum script script, enum script_link link, const struct script_args *args,
                      device_found *done, void *arg)
{
    struct find_call *call = mem_alloc(sizeof *call);

    *call = (struct find_call){store, link == SCRIPT_CHANGES, done, arg};
    store_call_script(store, script, link, args->count, args->argv, find_called, call);
}

/* The counter of wrong codes need not wait for replicas. */
void device_store_find(struct store *store, const uint8_t user_code_digest[KEYRING_DIGEST_BYTES],
                       const struct id *account, struct text user_tag, device_found *done, void *arg)
{
    struct script_args args;

    args_add_seeker(&args, user_code_digest, account, user_tag);
    call_find(store, SCRIPT_device_find, SCRIPT_READS, &args, done, arg);
}

void device_store_decide(struct store *store, const uint8_t user_code_digest[KEYRING_DIGEST_BYTES],
                         const struct id *account, struct text user_tag, bool approve,
                         const struct audit_origin *origin, device_found *done, void *arg)
{
    struct script_args args;

    args_add_seeker(&args, user_code_digest, account, user_tag);
    args_add(&args, approve ? TEXT("approved") : TEXT("denied"));
    args_add_origin(&args, store, origin);
    args_add_credential(&args, &origin->credential);
    call_find(store, SCRIPT_device_decide, SCRIPT_CHANGES, &args, done, arg);
}
