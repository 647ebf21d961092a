#include "redis/group.h"
#include "base/check.h"
#include "core/lease_rules.h"
#include <string.h>

static const char ELSEWHERE[] =
    "another connection reached another server: Redis was restarted, or the address leads to several servers";

void redis_group_add(struct redis_group *group, struct redis_link *link)
{
    REQUIRE(group->count < REDIS_GROUP_MAX);
    group->links[group->count++] = link;
}

void redis_group_remove(struct redis_group *group, const struct redis_link *link)
{
    for (size_t i = 0; i < group->count; i++)
        if (group->links[i] == link)
            group->links[i--] = group->links[--group->count];
}

void redis_group_renew_others(struct redis_group *group, const char *run_id, const char *why)
{
    for (size_t i = 0; i < group->count; i++)
        if (redis_link_is_ready(group->links[i]) && strcmp(redis_link_run_id(group->links[i]), run_id) != 0)
            redis_link_renew(group->links[i], why);
}

/* Which of two servers is the right one cannot be known. If the address leads to only one, all links end up there. */
void redis_group_on_ready(struct redis_group *group, const struct redis_link *link)
{
    if (RULE(RULE_RUN_ID))
        redis_group_renew_others(group, redis_link_run_id(link), ELSEWHERE);
}
