/* The address of Redis, as given by --redis. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

enum { REDIS_HOST_BYTES = 256, REDIS_SENTINELS_MAX = 9, REDIS_MASTER_NAME_BYTES = 64 };

struct redis_address {
    char host[REDIS_HOST_BYTES];
    uint16_t port;
};

/* Parsed from redis://[user:password@]host[:port][/db], rediss:// (the same, over TLS),
 * unix:[//]/path[?db=N&user=…&password=…] or redis-sentinel://[user:password@]host[:port],…/master-name[/db] or
 * rediss-sentinel://. */
struct redis_target {
    bool is_unix;
    bool tls;                    /* also to the Sentinels */
    char host[REDIS_HOST_BYTES]; /* or the socket's path; empty with Sentinels */
    uint16_t port;
    unsigned db;
    char user[128];
    char password[256];
    char master_name[REDIS_MASTER_NAME_BYTES];
    unsigned sentinel_count; /* 0: connect to host */
    struct redis_address sentinels[REDIS_SENTINELS_MAX];
    char sentinel_user[128]; /* of all Sentinels; user and password above are the master's */
    char sentinel_password[256];
};
/* False: ret_why gets one sentence, which never quotes the password. */
MUST_CHECK bool redis_target_parse(struct text url, struct redis_target *ret_target, struct buf *ret_why);
/* Adds what the Sentinels ask for: user:password, or :password for their default user, not escaped. False: as above. */
MUST_CHECK bool redis_target_add_sentinel_auth(struct text line, struct redis_target *target, struct buf *ret_why);
