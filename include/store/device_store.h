/* Enrolments of devices in Redis (RFC 8628): begun by a device, decided by a user, turned into a key once. Codes are
 * known by their digests alone. Times are Redis' own. */
#pragma once
#include "core/account.h"
#include "core/device.h"
#include "core/key.h"
#include "store/store.h"

enum {
    DEVICE_LIFETIME_S = 600, /* of a device that is not enrolled yet (src/api/README.md#device-enrolment) */
    DEVICE_INTERVAL_S = 5,
};

struct device_request {
    uint8_t code_digest[KEYRING_DIGEST_BYTES], user_code_digest[KEYRING_DIGEST_BYTES];
    struct text client, name; /* judged */
    scope_set scopes;
    struct text ip;
    struct text ip_tag; /* keyed digest in hex */
};

/* STORE_OK: begun. STORE_CONFLICT: one of the codes is taken, make others. STORE_REFUSED: the address has begun too
 * many, retry_after_s says for how long. */
typedef void device_begun(void *arg, enum store_result result, uint32_t retry_after_s);
void device_store_begin(struct store *store, const struct device_request *request, device_begun *done, void *arg);

enum device_refusal {
    DEVICE_PENDING,
    DEVICE_SLOW_DOWN, /* asked too soon: its interval is 5 s longer from now on */
    DEVICE_DENIED,
    DEVICE_EXPIRED,
    DEVICE_THROTTLED, /* the address sends wrong codes, or does not keep its intervals */
};
struct device_poll {
    enum device_refusal refusal; /* with STORE_REFUSED */
    uint32_t retry_after_s;      /* with DEVICE_THROTTLED */
    struct id account, approver; /* these with STORE_OK, the name valid during the call */
    struct text name;
    scope_set scopes;
    char account_name[ACCOUNT_NAME_MAX_BYTES + 1]; /* whose the device is from now on */
};
typedef void device_polled(void *arg, enum store_result result, const struct device_poll *poll);

/* A device asks for its key. STORE_OK: it was approved, and the key now exists, as this call gave it: id, last4,
 * created_ms (of a live device key) and digest; name, scopes and account are the enrolment's; with the audit event,
 * whose actor is the user who approved. That happens once. STORE_REFUSED: poll->refusal says why not. STORE_NOT_FOUND:
 * no such code, another client's, claimed before, or approved by nobody who knows a master key. STORE_UNKNOWN: the key
 * may exist; discard it. The texts of source are kept by the caller until done. */
void device_store_poll(struct store *store, const struct token_digests *code, struct text client, struct text ip_tag,
                       const struct key_record *key, const uint8_t key_digest[KEY_DIGEST_BYTES],
                       const struct audit_source *source, device_polled *done, void *arg);

enum device_status { DEVICE_IS_PENDING, DEVICE_IS_APPROVED, DEVICE_IS_DENIED };
struct device_enrolment {
    struct text client, name, ip; /* valid during the call */
    scope_set scopes;
    int64_t created_ms, expires_ms;
    enum device_status status;
};
/* STORE_NOT_FOUND: no such code; or it is over, or another account has decided. STORE_REFUSED: the user has tried too
 * many codes that do not exist, retry_after_s says for how long. user_tag: keyed digest in hex. */
typedef void device_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                          uint32_t retry_after_s);
void device_store_find(struct store *store, const struct token_digests *user_code, const struct id *account,
                       struct text user_tag, device_found *done, void *arg);

/* STORE_FULL: the account has as many active device keys as it may; STORE_LIMITED: the user made too many changes,
 * retry_after_s says for how long; neither is ever said to who denies.
 * Approves, or denies with the audit event. Again: the same answer. What was approved can be denied until it is
 * claimed; what was denied can't be approved: STORE_NOT_FOUND. The actor of source is the user; its texts are kept by
 * the caller until done. */
void device_store_decide(struct store *store, const struct token_digests *user_code, const struct id *account,
                         struct text user_tag, bool approve, const struct audit_source *source, device_found *done,
                         void *arg);
