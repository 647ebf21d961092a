#include "mounts_internal.h"
#include "api/service.h"
#include "core/path.h"
#include "handlers_internal.h"

#include <string.h>

/* clang-format off */
static const struct mount API[] = {
    {TEXT("/v1/console"),                 guard_enter,         WHO_SESSION, MOUNT_BELOW | MOUNT_POLICY | MOUNT_SESSION_REALM},
    {TEXT("/v1/auth"),                    guard_enter,         WHO_ANYONE,  MOUNT_BELOW | MOUNT_SESSION_REALM},
    {TEXT("/v1"),                         guard_enter,         WHO_API_KEY, MOUNT_BELOW | MOUNT_POLICY},
    {TEXT("/.well-known"),                guard_enter,         WHO_ANYONE,  MOUNT_BELOW},
};
/* clang-format on */
enum { API_COUNT = sizeof API / sizeof *API };

static bool mount_covers(const struct mount *mount, struct text path)
{
    bool ends_there = path.len == mount->path.len ||
                      ((mount->flags & MOUNT_BELOW) && path.len > mount->path.len && path.ptr[mount->path.len] == '/');

    return ends_there && text_starts_with(path, mount->path);
}

const struct mount *mount_find(const struct mount *rows, size_t count, struct text path)
{
    for (size_t i = 0; i < count; i++)
        if (mount_covers(&rows[i], path))
            return &rows[i];
    return NULL;
}

const struct mount *mount_of_api(struct text path)
{
    return mount_find(API, API_COUNT, path);
}

/* A backend that ignores case must not get our paths in another spelling. So a path below a policy folder belongs to
 * backends only if it spells the folder as here. */
static bool mount_owns(const struct mount *mount, struct text path)
{
    bool is_exact;

    if (!path_covers(mount->path, path, &is_exact))
        return false;
    return !(mount->flags & MOUNT_POLICY) || !is_exact || path.len == mount->path.len;
}

/* Covers the row's path up to its id, and everything below. */
static bool route_owns(const struct route *route, struct text path)
{
    const char *id = strstr(route->path, "/{id}");
    struct text folder = {route->path, id ? (size_t)(id - route->path) : strlen(route->path)};
    bool is_exact;

    return path_covers(folder, path, &is_exact);
}

bool api_owns_path(struct text path)
{
    for (size_t i = 0; i < API_COUNT; i++)
        if (mount_owns(&API[i], path))
            return true;
    for (size_t i = 0; i < ROUTE_COUNT; i++)
        if (!(ROUTES[i].flags & ROUTE_YIELDS) && route_owns(&ROUTES[i], path))
            return true;
    return false;
}
