/* Where a path leads: one row for each folder of the two listeners. What is asked for below a folder of the API is said
 * by the row of the path in the route table, by the folder's own row where there is none, and then by the route policy.
 */
#pragma once
#include "api/routes.h"

enum mount_space {
    MOUNT_PAGES,    /* the public listener, paths as they were sent: those of files are not normalised */
    MOUNT_API,      /* the public listener, and what gateways ask about; normalised paths */
    MOUNT_INTERNAL, /* the internal listener, paths as they were sent */
};
enum mount_flags {
    MOUNT_BELOW = 1 << 0,         /* the path and all below it, not the path alone */
    MOUNT_POLICY = 1 << 1,        /* paths without a row may be other backends': the route policy knows */
    MOUNT_SESSION_REALM = 1 << 2, /* a 401 asks for a session */
};

struct mount {
    enum mount_space space;
    struct text path;
    void (*enter)(struct exchange *exchange);
    enum route_who who; /* of MOUNT_API: who is asked for where no row says it */
    unsigned flags;
};

/* The row that counts for a path; NULL: there is none. */
const struct mount *mount_find(enum mount_space space, struct text path);
