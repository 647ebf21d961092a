/* Device enrolments in Redis (RFC 8628): a device begins one, a user decides, and the device turns it into a key once.
 * An enrolment is in the partition of its user code, and its device code must be in the same. The user's decision and
 * the key are in the partition of the user's account. Redis stores digests of codes, never the codes. Times are Redis'
 * own. */
#pragma once
#include "core/account.h"
#include "core/device.h"
#include "core/key.h"
#include "engine/partitions.h"

enum {
    DEVICE_LIFETIME_S = 600, /* until a device must begin again (src/api/README.md#device-enrolment) */
    DEVICE_INTERVAL_S = 5,
};

struct device_request {
    uint8_t code_digest[KEYRING_DIGEST_BYTES], user_code_digest[KEYRING_DIGEST_BYTES];
    struct text client, name; /* validated by the caller */
    scope_set scopes;
    struct text ip;
    struct text ip_tag;      /* keyed digest in hex */
    struct text network_tag; /* the same of its IPv4 /24 or IPv6 /48 */
};

/* Kept in all, 70 minutes at most. With one more, the network that has begun the most loses its oldest. */
enum { ENROLMENTS_MAX = 16384 };

/* STORE_OK: begun. STORE_CONFLICT: one of the codes is taken; generate new ones. STORE_REFUSED: the address has begun
 * too many; retry after retry_after_s. The caller keeps the request until done. */
void device_store_begin(const struct partitions *partitions, const struct device_request *request, store_limited *done,
                        void *arg);

enum device_refusal {
    DEVICE_PENDING,
    DEVICE_SLOW_DOWN, /* polled too soon: the interval is 5 s longer from now on */
    DEVICE_DENIED,
    DEVICE_EXPIRED,
    DEVICE_THROTTLED, /* the address sends wrong codes or ignores its intervals */
};
struct device_poll {
    enum device_refusal refusal; /* with STORE_REFUSED */
    uint32_t retry_after_s;      /* with DEVICE_THROTTLED */
    struct id account, approver; /* this and the following with STORE_OK; name is valid during the call */
    struct text name;
    scope_set scopes;
    char account_name[ACCOUNT_NAME_MAX_BYTES + 1]; /* of the account that now owns the device */
};
typedef void device_polled(void *arg, enum store_result result, const struct device_poll *poll);
/* The enrolment is approved and its key is about to be created. Sets last4 of the key, whose account is known by now,
 * and the digest of its secret. */
typedef void device_approved(void *arg, struct key_record *key, uint8_t ret_digest[KEY_DIGEST_BYTES]);

/* A device asks for its key. STORE_OK, once: the enrolment was approved and the key now exists. The caller supplies the
 * id and created_ms of a live device key; the enrolment supplies name, scopes and account; approved, which runs at most
 * once and before done, supplies last4 and digest. The audit event names the approving user as its actor.
 * STORE_REFUSED: poll->refusal gives the reason. STORE_NOT_FOUND: no such code, another client's, already claimed, or
 * the approval's MAC is wrong. STORE_UNKNOWN: the key may exist; discard it. The caller keeps the texts of source,
 * client and ip_tag until done. */
void device_store_poll(const struct partitions *partitions, const struct token_digests *code, struct text client,
                       struct text ip_tag, const struct key_record *key, const struct audit_source *source,
                       device_approved *approved, device_polled *done, void *arg);

enum device_status { DEVICE_IS_PENDING, DEVICE_IS_APPROVED, DEVICE_IS_DENIED };
struct device_enrolment {
    struct text client, name, ip; /* valid during the call */
    scope_set scopes;
    int64_t created_ms, expires_ms;
    enum device_status status;
};
/* STORE_NOT_FOUND: no such code, it has expired or was claimed, or another account has decided. STORE_REFUSED: the user
 * has tried too many wrong codes; retry after retry_after_s. user_tag: keyed digest in hex. The caller keeps user_tag
 * and the texts of source until done. */
typedef void device_found(void *arg, enum store_result result, const struct device_enrolment *enrolment,
                          uint32_t retry_after_s);
void device_store_find(const struct partitions *partitions, const struct token_digests *user_code,
                       const struct id *account, struct text user_tag, device_found *done, void *arg);

/* Approves or denies, and writes the audit event. Repeating a decision changes nothing and gives the same result. An
 * approval can be denied until it is claimed; approving a denied enrolment is STORE_NOT_FOUND. Only an approval can end
 * in STORE_FULL (the account has its maximum of active device keys) or STORE_LIMITED (too many changes by this user;
 * retry after retry_after_s) or STORE_LEAVING. STORE_UNKNOWN: repeat it. If another account decides at the same time,
 * an event device.denied by "system" may follow this account's device.approved. The actor of source is the user. */
void device_store_decide(const struct partitions *partitions, const struct token_digests *user_code,
                         const struct id *account, struct text user_tag, bool approve,
                         const struct audit_source *source, device_found *done, void *arg);
