/* Where all audit logs ended at one time, as accounts get it, so that they hold what nobody can take back: a JWS in
 * compact form, signed by the key of receipts (core/receipt.h). Its typ is "audit-heads+jwt", its claims:
 *
 *   iss, store, iat   the public origin, the store, and when it was signed
 *   jti               random, 128 bits in base64url
 *   heads             of each log SHA-256("<jti>.<chain>.<seq>.<first 22 characters of the MAC>") in base64url, sorted
 *
 * Heads count the events of all accounts. So an account gets digests: nobody without the log knows a MAC, and with
 * another jti each time two documents do not tell whether a log has grown between them. The logs have the lines. */
#pragma once
#include "core/audit_line.h"
#include "core/receipt.h"

enum {
    AUDIT_MAC_PART_CHARS = 22, /* 132 bits of a MAC tell lines apart */
    AUDIT_DIGEST_BYTES = 32,
    AUDIT_SALT_CHARS = 22,
    AUDIT_SIGNED_HEADS_MAX = 1000,
    AUDIT_SIGNED_MAX_BYTES = 96 * 1024,
};

typedef uint8_t audit_digest[AUDIT_DIGEST_BYTES];

/* mac: at least AUDIT_MAC_PART_CHARS. */
void audit_digest_of(struct text salt, struct text chain, uint64_t seq, const char *mac, audit_digest ret_digest);
/* For bsearch() and qsort(). */
int audit_digest_compare(const void *left, const void *right);

/* Texts are borrowed. */
struct audit_signing {
    struct text issuer, store;
    int64_t issued_s;
    size_t count; /* at most AUDIT_SIGNED_HEADS_MAX */
    const struct audit_head *heads;
};
/* Appends the JWS, signed with the current master key's key. */
void audit_signed_print(const struct audit_signing *signing, const struct keyring *keyring, struct buf *out);

struct audit_signed {
    char salt[AUDIT_SALT_CHARS + 1];
    int64_t issued_s;
    size_t count;
    audit_digest *digests; /* sorted; the caller frees them */
};
/* On refusal false, and *ret_why is a constant sentence without a full stop. */
MUST_CHECK bool audit_signed_read(struct text jws, const struct receipt_keys *keys, struct audit_signed *ret_signed,
                                  const char **ret_why);
