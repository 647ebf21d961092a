/* What all verbs of the store share: how they end, and who asks for a change. */
#pragma once
#include "base/text.h"
#include "core/id.h"
#include "core/keyring.h"

struct store;

enum store_result {
    STORE_OK,
    STORE_NOT_FOUND,
    STORE_CONFLICT, /* exists already, was used already: the verb says which */
    STORE_REFUSED,  /* the verb says when */
    /* The actor's credential is no longer valid (struct credential); nothing was changed. */
    STORE_ACTOR_REVOKED,  /* a key that was revoked meanwhile */
    STORE_ACTOR_UNKNOWN,  /* a session that is over, a key that is gone */
    STORE_ACTOR_UNPROVEN, /* a session whose step-up is over */
    STORE_FULL,           /* as many as there may be */
    STORE_LIMITED,        /* too many changes a minute: the verb says for how long */
    STORE_UNAVAILABLE,    /* surely not done: Redis is away, refuses writes, answers nonsense */
    STORE_UNKNOWN,        /* no answer in time: it may have been done */
};

/* For verbs that only tell whether it was done. */
typedef void store_done(void *arg, enum store_result result);

/* The credential of a change. It is checked when a request's head has come, and may die while the body is on
 * its way: verbs that make, approve, deny or revoke something check it again, in the same step as the change. */
enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_KEY, CREDENTIAL_SESSION };
struct session_limits;
struct credential {
    enum credential_kind kind; /* none: the command line, and the node itself, which need none */
    uint8_t digest[KEYRING_DIGEST_BYTES];
    const struct session_limits *limits; /* of a session; they outlive the call */
    bool needs_step_up;                  /* of a session: and a step-up that is not over */
};

/* Who did it, for the audit event that is written with each change, and what shows that he may. */
struct audit_source {
    struct text actor;      /* "key_…", "usr_…", or "operator" for the command line, "system" */
    struct text ip;         /* empty for the command line */
    struct text request_id; /* empty for the command line */
    struct credential credential;
};
