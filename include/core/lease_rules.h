/* The rules of leases and barriers (src/lease/README.md) that a test build can break, one at a time, to prove that the
 * fault bench notices: cmake -DCHATELAINE_BREAKABLE=ON, then CHATELAINE_BREAK=<name> in the environment. In every other
 * build RULE() is the constant true, and the compiler removes the other branch. test/model/RULES.md ties each name to
 * the model and to the code. */
#pragma once
#include <stdbool.h>

/* X(id, name, what happens without it) */
#define LEASE_RULES_TABLE(X)                                                                                           \
    X(RULE_FLUSH, "flush", "losing the subscription keeps cache and lease")                                            \
    X(RULE_CATCH_UP, "catch-up", "a node that reconnects keeps its cache, whatever it missed")                         \
    X(RULE_HEARD, "heard", "it has heard what a heartbeat's reply names, although the echo has not come")              \
    X(RULE_KNOWN, "known", "it catches up from a stream that lacks the entry up to which it had heard")                \
    X(RULE_FROM_SEND, "from-send", "the lease starts when the echo arrives, not when the heartbeat is sent")           \
    X(RULE_NONCE, "nonce", "the echo of an abandoned heartbeat counts as the newest one's")                            \
    X(RULE_SAME_CONNECTION, "same-connection", "the heartbeat's reply grants the lease, not its echo")                 \
    X(RULE_FILL_INVALIDATION, "fill-invalidation", "a read fills the cache despite an invalidation since it was sent") \
    X(RULE_FILL_SESSION, "fill-session", "a read fills the cache although a new membership has begun since")           \
    X(RULE_USE, "use", "the cache answers without a valid lease")                                                      \
    X(RULE_JOIN, "join", "a check is decided by a read that was sent before the check began")                          \
    X(RULE_REGISTER, "register", "a heartbeat does not keep its member in the registry")                               \
    X(RULE_WAIT, "wait", "a revocation does not wait for nodes that have not acknowledged")                            \
    X(RULE_MARGIN, "margin", "a revocation waits for less than half the lease")                                        \
    X(RULE_DROP_ALL, "drop-all", "of keys that are revoked together, a node drops only the first")                     \
    X(RULE_AGAIN, "again", "revoking a revoked key is answered at once")                                               \
    X(RULE_HEARTBEAT_WAIT, "heartbeat-wait", "a heartbeat grants a lease before replicas have it")                     \
    X(RULE_ACTOR, "actor", "a key revoked while its request's body arrives can still create keys")                     \
    X(RULE_FENCE, "fence", "a revocation at a new master does not wait for the old one's leases")                      \
    X(RULE_FENCE_READS, "fence-reads", "a read decides without a lease, although its Redis may be replaced")           \
    X(RULE_RUN_ID, "run-id", "a replica is trusted, and so are links to different servers")                            \
    X(RULE_STORE_ID, "store-id", "a store that was emptied or replaced is trusted")                                    \
    X(RULE_REASSERT, "reassert", "a master that lost acknowledged changes is trusted, and does not get them again")    \
    X(RULE_KEEP, "keep", "a node repeats only what it has answered itself, and acknowledges without keeping it")       \
    X(RULE_GATHER, "gather", "a node decides by a new master before the others have told what they know")              \
    X(RULE_ENDS_SOON, "ends-soon", "a key that will be revoked soon is cached like any other")                         \
    X(RULE_SUSPEND_HEAR, "suspend-hear", "a suspension is acknowledged, but its account is not added to the set")      \
    X(RULE_SUSPEND_VERSION, "suspend-version", "a read is decided by a set of suspended accounts that is older")       \
    X(RULE_TABLE_CLEAR, "table-clear", "a key that leaves the cache stays in the shared table")                        \
    X(RULE_TABLE_SESSION, "table-session", "the shared table keeps its keys when a membership ends")                   \
    X(RULE_TABLE_ACCOUNT, "table-account", "the shared table keeps the keys of an account that is suspended")          \
    X(RULE_TABLE_SUSPENDED, "table-suspended", "a key that the node refuses is shared")                                \
    X(RULE_TABLE_FROM, "table-from", "the shared table's lease starts when it is written")

enum lease_rule {
#define LEASE_RULE_ENUM(id, name, without) id,
    LEASE_RULES_TABLE(LEASE_RULE_ENUM)
#undef LEASE_RULE_ENUM
        LEASE_RULE_COUNT
};

#ifdef CHATELAINE_BREAKABLE
/* Whether the rule holds in this process. */
bool lease_rule_holds(enum lease_rule rule);
#define RULE(rule) lease_rule_holds(rule)
#else
#define RULE(rule) true
#endif
