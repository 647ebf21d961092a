/* The address of Redis, as given by --redis. */
#pragma once
#include "base/attr.h"
#include "base/text.h"

enum {
    REDIS_HOST_BYTES = 256,
    REDIS_USER_BYTES = 128,
    REDIS_PASSWORD_BYTES = 256,
    REDIS_SEEDS_MAX = 9,
    REDIS_MASTER_NAME_BYTES = 64
};

struct redis_address {
    char host[REDIS_HOST_BYTES];
    uint16_t port;
};

enum redis_found {
    REDIS_AT_HOST,     /* `host` is it */
    REDIS_BY_SENTINEL, /* the seeds are Sentinels, which name the master */
    REDIS_BY_CLUSTER,  /* the seeds are nodes of a Redis Cluster, which name the primary of each slot */
};

struct redis_login {
    char user[REDIS_USER_BYTES];
    char password[REDIS_PASSWORD_BYTES];
    unsigned version; /* rises with each change, also of certificates */
};

/* Parsed from redis://[user:password@]host[:port][/db], rediss:// (the same, over TLS),
 * unix:[//]/path[?db=N&user=…&password=…], redis-sentinel://[user:password@]host[:port],…/master-name[/db] or
 * rediss-sentinel://, redis-cluster://[user:password@]host[:port],… or rediss-cluster://. */
struct redis_target {
    enum redis_found found;
    bool is_unix;
    bool tls;                    /* also to the seeds */
    char host[REDIS_HOST_BYTES]; /* or the socket's path; empty with seeds */
    uint16_t port;
    unsigned db; /* 0 in a cluster */
    struct redis_login login;
    unsigned seed_count; /* 0 with REDIS_AT_HOST */
    struct redis_address seeds[REDIS_SEEDS_MAX];
    char master_name[REDIS_MASTER_NAME_BYTES]; /* with Sentinels */
    struct redis_login sentinel_login;         /* of all Sentinels; the one above is the master's, or of all nodes */
    struct redis_access *access; /* NULL: users and passwords stay as they are here; else the present ones are there */
};
/* False: ret_why gets one sentence, which never quotes the password. */
MUST_CHECK bool redis_target_parse(struct text url, struct redis_target *ret_target, struct buf *ret_why);
/* Whether both lead to the same place, whatever their users and passwords. */
bool redis_target_same_place(const struct redis_target *a, const struct redis_target *b);
/* "redis://", "rediss-sentinel://", …; "unix:" */
const char *redis_target_scheme(const struct redis_target *target);
/* Adds what the Sentinels ask for: user:password, or :password for their default user, not escaped. False: as above. */
MUST_CHECK bool redis_target_add_sentinel_auth(struct text line, struct redis_target *target, struct buf *ret_why);
