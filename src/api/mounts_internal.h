/* Maps paths to handlers: one row per folder of the two listeners. Below an API folder, the route table's row for the
 * path decides who may ask. If it has none, the folder's row decides who, and the route policy decides the rest. */
#pragma once
#include "api/routes.h"

enum mount_space {
    MOUNT_PAGES,    /* the public listener; paths as sent, because file paths are not normalised */
    MOUNT_API,      /* the public listener, and requests that gateways ask about; normalised paths */
    MOUNT_INTERNAL, /* the internal listener; paths as sent */
};
enum mount_flags {
    MOUNT_BELOW = 1 << 0,         /* the path and everything below it, not only the path */
    MOUNT_POLICY = 1 << 1,        /* paths without a route may belong to backends; the route policy decides */
    MOUNT_SESSION_REALM = 1 << 2, /* a 401 asks for a session */
    MOUNT_NO_BROWSER = 1 << 3,    /* browsers have no business here; gateways do not pass requests on to it */
};

struct mount {
    struct text path;
    void (*enter)(struct exchange *exchange);
    enum route_who who; /* for MOUNT_API: the principal that paths without a route need */
    unsigned flags;
};

/* The first row that covers the path; NULL if there is none. */
const struct mount *mount_find(enum mount_space space, struct text path);
