#include "engine/alias.h"

#include "engine/access.h"
#include "base/check.h"
#include "base/encode.h"
#include "base/mem.h"
#include "core/limits.h"
#include "lease/lease.h"
#include "engine/outcome.h"
#include "engine/readiness.h"
#include "engine/record.h"
#include "state.h"

#include <stdlib.h>

enum { ALIAS_NAME_BYTES = REDIS_PREFIX_MAX_BYTES + 8 + 2 * KEYRING_DIGEST_BYTES };

struct alias_call {
    struct store *store;
    alias_found *done;
    void *arg;
};

bool store_has_aliases(const struct store *store)
{
    return store->has_aliases;
}

/* An alias names the bucket of an account, so it stays true however many partitions there are. */
static enum store_result read_alias(const struct alias_call *call, const struct redis_reply *reply,
                                    unsigned *ret_bucket)
{
    int64_t bucket;

    if (!store_may_decide(call->store))
        return STORE_UNAVAILABLE;
    if (reply->type == REPLY_NIL)
        return store_absent(call->store);
    if (!reply_integer(reply, &bucket) || bucket < 0 || bucket >= BUCKETS) {
        store_malformed(call->store, "alias");
        return STORE_UNAVAILABLE;
    }
    *ret_bucket = (unsigned)bucket;
    return STORE_OK;
}

static void alias_answered(void *arg, enum redis_outcome outcome, const struct redis_reply *reply)
{
    struct alias_call call = *(struct alias_call *)arg;
    enum store_result result = store_outcome(call.store, outcome, reply);
    unsigned bucket = 0;

    free(arg);
    if (result == STORE_OK)
        result = read_alias(&call, reply, &bucket);
    call.done(call.arg, result, bucket);
}

void alias_find(struct store *store, const uint8_t digest[KEYRING_DIGEST_BYTES], alias_found *done, void *arg)
{
    struct alias_call *call = mem_alloc(sizeof *call);
    struct buf name = BUF_FIXED(ALIAS_NAME_BYTES);

    *call = (struct alias_call){store, done, arg};
    buf_append_text(&name, store_prefix(store));
    buf_append_str(&name, "alias:");
    encode_hex(&name, digest, KEYRING_DIGEST_BYTES);
    ENSURE(!name.failed); /* what is cut could be another key's */
    identity_witness(lease_identity(store_lease(store)), store_reads(store));
    redis_link_call(store_reads(store), 2, (struct text[]){TEXT("GET"), buf_text(&name)}, alias_answered, call);
}
