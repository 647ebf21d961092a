/* The rules of leases and barriers (src/lease/README.md) that a build for tests can break, one at a time, to show that
 * the fault bench finds it: cmake -DCHATELAINE_BREAKABLE=ON, then CHATELAINE_BREAK=<name> in the environment. In every
 * other build RULE() is the constant true, and the compiler removes the other branch. test/model/README.md ties each
 * name to the model and to the code. */
#pragma once
#include <stdbool.h>

/* X(id, name, what happens without it) */
#define LEASE_RULES_TABLE(X)                                                                                      \
    X(RULE_FLUSH, "flush", "a lost subscription keeps cache and lease")                                           \
    X(RULE_FROM_SEND, "from-send", "the lease runs from the receipt of the echo")                                 \
    X(RULE_NONCE, "nonce", "the echo of a heartbeat that was given up counts for the newest")                     \
    X(RULE_SAME_CONNECTION, "same-connection", "the heartbeat's reply grants the lease, not its echo")            \
    X(RULE_FILL_INVALIDATION, "fill-invalidation", "a read fills the cache although an invalidation came since")  \
    X(RULE_FILL_SESSION, "fill-session", "a read fills the cache although a new membership began since")          \
    X(RULE_USE, "use", "the cache answers without a running lease")                                               \
    X(RULE_JOIN, "join", "a check is decided by a read that was sent before it came")                             \
    X(RULE_REGISTER, "register", "a heartbeat does not keep its member in the registry")                          \
    X(RULE_WAIT, "wait", "a revocation is answered without waiting for those that do not acknowledge")            \
    X(RULE_MARGIN, "margin", "a revoker waits half the lease")                                                    \
    X(RULE_AGAIN, "again", "a key that was revoked before is answered at once")                                   \
    X(RULE_HEARTBEAT_WAIT, "heartbeat-wait", "a heartbeat grants a lease that no replica knows of")               \
    X(RULE_ACTOR, "actor", "a key that was revoked while a body was on its way makes another one")                \
    X(RULE_FENCE, "fence", "a revocation at a new master does not wait for leases of the old one")                \
    X(RULE_FENCE_READS, "fence-reads", "a read decides without a lease, though its Redis may have been replaced") \
    X(RULE_RUN_ID, "run-id", "a replica is believed, and links that ended at different servers")                  \
    X(RULE_STORE_ID, "store-id", "a store is believed that was emptied or exchanged under the node")              \
    X(RULE_REASSERT, "reassert", "a master that lacks what was acknowledged is believed, and not told again")

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
