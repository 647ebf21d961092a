/* The points at which an answer is lost, for several scenes at a time. */
#pragma once
#include "lost_scene.h"
#include "redis_proxy.h"

enum { LOST_SCENES_MAX = 64 };

/* Node 0, which is asked, reaches Redis through the proxy; node 1 directly. The store is open. */
struct lost_site {
    struct fixture fixture;
    struct redis_proxy *proxy;
    const char *const *node_args;
    struct lost_scene *scenes[LOST_SCENES_MAX]; /* NULL: a gap */
    size_t scene_count;                         /* gaps included */
};

/* long_leases: so that a barrier can wait for a node for longer than the test takes to look at it. */
struct lost_site *lost_site_start(bool long_leases);
/* Frees it, and the scenes that are left. */
void lost_site_stop(struct lost_site *site);
/* Frees the scenes. */
void lost_site_clear(struct lost_site *site);

struct lost_point {
    const char *name;
    void (*prepare)(struct lost_site *site); /* after which the requests are sent */
    void (*await)(struct lost_site *site);   /* until they are where they shall be when their clients leave */
    void (*heal)(struct lost_site *site);
    bool may_be_delivered;
};

/* LOST_IN_SCRIPT: for rows that show what they did. LOST_IN_BARRIER: for these, too; those that wait for a barrier must
 * not be answered before it is over. */
enum lost_where {
    LOST_BEFORE_SCRIPT,
    LOST_IN_SCRIPT,
    LOST_IN_BARRIER,
    LOST_AT_ONCE,
    LOST_UNREAD,
    LOST_READ,
    LOST_POINT_COUNT
};
extern const struct lost_point LOST_POINTS[LOST_POINT_COUNT];

/* Sends the scenes' requests to node 0, and has their clients leave at that point. */
void lost_site_lose(struct lost_site *site, const struct lost_point *point);
/* Sends them, and kills node 0 a few random milliseconds later. Node 1 answers until node 0 is started again. */
void lost_site_kill(struct lost_site *site);
void lost_site_restart(struct lost_site *site);
