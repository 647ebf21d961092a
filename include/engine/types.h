/* Types that all verbs of the store share: results, and the actor of a change. */
#pragma once
#include "base/text.h"
#include "core/account.h"
#include "core/keyring.h"

struct store;

enum store_result {
    STORE_OK,
    STORE_NOT_FOUND,
    STORE_CONFLICT, /* exists already or was used already: see the verb */
    STORE_REFUSED,  /* see the verb */
    /* The actor's credential is no longer valid (struct credential). Nothing was changed. */
    STORE_ACTOR_REVOKED,  /* the key was revoked meanwhile */
    STORE_ACTOR_UNKNOWN,  /* the session is over, or the key is gone */
    STORE_ACTOR_UNPROVEN, /* the session's step-up has expired */
    STORE_ACTOR_ROLE,     /* the user's role no longer allows it */
    STORE_SUSPENDED,      /* the account is suspended or closed. Nothing was changed */
    STORE_FULL,           /* the maximum number exists */
    STORE_LIMITED,        /* too many changes per minute; the verb says how long to wait */
    STORE_LEAVING,        /* a person whom it goes back to is just being removed or changed; over in a second or so */
    STORE_UNAVAILABLE,    /* not done: Redis is away, refuses writes, or sends nonsense */
    STORE_UNKNOWN,        /* no answer in time: it may be done */
};

/* For verbs that return nothing but the result. */
typedef void store_done(void *arg, enum store_result result);
/* The same, and the seconds to wait with STORE_LIMITED or STORE_REFUSED; else 0. */
typedef void store_limited(void *arg, enum store_result result, uint32_t retry_after_s);
/* The same, and how many the verb has ended. */
typedef void store_counted(void *arg, enum store_result result, int64_t count);

/* The credential behind a change. A request's credential is checked when its head arrives and may be revoked while its
 * body is under way. So verbs that create, approve, deny or revoke check it again, in the same script as the change. */
enum credential_kind { CREDENTIAL_NONE, CREDENTIAL_KEY, CREDENTIAL_SESSION };
struct session_limits {
    int64_t idle_ms;
    int64_t absolute_ms;
    int64_t step_up_ms;
};
struct credential {
    enum credential_kind kind; /* CREDENTIAL_NONE: commands and the node itself */
    uint8_t digest[KEYRING_DIGEST_BYTES];
    const struct session_limits *limits; /* of a session; must outlive the call */
    bool needs_step_up;                  /* of a session: its step-up must be valid as well */
    enum role least_role;                /* of a session: of its user */
};

/* The holder of a key's secret, who revokes the key: nobody is signed in. The event then has the reason "holder". */
#define ACTOR_HOLDER TEXT("holder")

/* The actor of a change, for its audit event, and the credential that allows it. */
struct audit_source {
    struct text actor;      /* "key_…", "usr_…", "operator" for commands, ACTOR_HOLDER, or "system" */
    struct text ip;         /* empty for commands */
    struct text request_id; /* empty for commands */
    struct credential credential;
};
