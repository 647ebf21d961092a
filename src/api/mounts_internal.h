/* Maps paths to handlers: one row per folder of the two listeners. Below an API folder, the route table's row for the
 * path decides who may ask. If it has none, the folder's row decides who, and the route policy decides the rest. */
#pragma once
#include "api/routes.h"

enum mount_flags {
    MOUNT_BELOW = 1 << 0,         /* the path and everything below it, not only the path */
    MOUNT_POLICY = 1 << 1,        /* paths without a route may belong to backends; the route policy decides */
    MOUNT_SESSION_REALM = 1 << 2, /* a 401 asks for a session */
    MOUNT_NO_BROWSER = 1 << 3,    /* browsers have no business here; gateways do not pass requests on to it */
    MOUNT_READ = 1 << 4,          /* takes GET and HEAD alone */
    MOUNT_BODY = 1 << 5,          /* of the internal listener: reads a body */
};

struct mount {
    struct text path;
    exchange_handler *enter;
    enum route_who who; /* for mount_of_api(): the principal that paths without a route need */
    unsigned flags;
};

/* The first of the rows that covers the path; NULL if there is none, as for the next three. */
const struct mount *mount_find(const struct mount *rows, size_t count, struct text path);
/* The API, for the public listener and for requests that gateways ask about. path: normalised. */
const struct mount *mount_of_api(struct text path);
/* In listeners.c: the pages of the public listener, and the internal listener. path: as sent, because file paths are
 * not normalised. */
const struct mount *mount_of_page(struct text path);
const struct mount *mount_of_internal(struct text path);
