/* The credentials that this process shows to Redis and to Sentinels on each new connection, and the links that show
 * them. The files that hold passwords and certificates may change at any time: a link looks at them before it connects,
 * and once a second all links that still use what was there before are renewed, one after another. A link that cannot
 * be renewed stays in use. Loop thread only. */
#pragma once
#include "base/callback.h"
#include "base/list.h"
#include "base/text.h"
#include "redis/target.h"
#include <uv.h>

enum redis_peer { REDIS_PEER_SERVER, REDIS_PEER_SENTINEL, REDIS_PEERS };
enum { ACCESS_WHY_BYTES = 512 };

/* The owner of the files makes and destroys it, and alone writes the first members. It outlives the links. */
struct redis_access {
    void (*look)(struct redis_access *access); /* reads again what has changed */
    struct redis_login now[REDIS_PEERS];       /* as the files say */
    char refused_file[ACCESS_WHY_BYTES];       /* why a file cannot be used, a sentence; empty: all can */

    struct list links;

    /* For redis_access_start() */
    uv_timer_t timer;
    struct redis_renewal *renewal; /* under way; NULL: none */
    char refused_login[ACCESS_WHY_BYTES];
    unsigned refused_version;           /* the sum of versions that was logged */
    char down_finder[ACCESS_WHY_BYTES]; /* the first Sentinel or node of a cluster that does not answer */
    unsigned finders_down;
    bool is_timer_closed;
    struct callback closed; /* NULL: not closing */
};

/* look and now are set. */
void redis_access_init(struct redis_access *access);
/* Begins to look once a second. A process that ends soon can do without. */
void redis_access_start(struct redis_access *access, uv_loop_t *loop);
/* Renews every link, even if nothing has changed (SIGHUP). */
void redis_access_renew(struct redis_access *access);
/* No link is renewed any more. closed runs later. */
void redis_access_close(struct redis_access *access, void (*closed)(void *arg), void *arg);
/* Passes each trouble that the next connection, or the next failover, would have, as a sentence. */
void redis_access_troubles(const struct redis_access *access, void (*tell)(void *arg, struct text sentence), void *arg);
