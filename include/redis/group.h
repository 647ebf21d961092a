/* Links that must all reach one Redis process. They can diverge when a name covers several servers, a master is
 * replaced by hand, or Redis restarts between two connects. A link that becomes ready disconnects those that reach
 * another process. */
#pragma once
#include "redis/link.h"

enum { REDIS_GROUP_MAX = 5 };

struct redis_group { /* starts zeroed */
    struct redis_link *links[REDIS_GROUP_MAX];
    size_t count;
};

/* Call when the link is created. */
void redis_group_add(struct redis_group *group, struct redis_link *link);
/* Call whenever the link becomes ready, before using it. */
void redis_group_on_ready(struct redis_group *group, const struct redis_link *link);
/* Call before the link is closed. */
void redis_group_remove(struct redis_group *group, const struct redis_link *link);
/* Renews the links that reach another process than run_id. why: as for redis_link_renew(). */
void redis_group_renew_others(struct redis_group *group, const char *run_id, const char *why);
