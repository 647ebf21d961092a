/* Links that must all speak to one process of Redis. A name for several servers, a master that was replaced by hand, a
 * Redis that was started again under some of them: a link that differs ends the others. */
#pragma once
#include "redis/link.h"

enum { REDIS_GROUP_MAX = 4 };

struct redis_group { /* starts zeroed */
    struct redis_link *links[REDIS_GROUP_MAX];
    size_t count;
};

/* When the link is made. */
void redis_group_add(struct redis_group *group, struct redis_link *link);
/* Whenever it is ready, before it is used. */
void redis_group_on_ready(struct redis_group *group, const struct redis_link *link);
/* Before it is closed. */
void redis_group_remove(struct redis_group *group, const struct redis_link *link);
/* Those that speak to another process than run_id; why as for redis_link_renew(). */
void redis_group_renew_others(struct redis_group *group, const char *run_id, const char *why);
