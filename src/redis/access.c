#include "redis/access.h"

#include "base/check.h"
#include "base/log.h"
#include "base/metrics.h"
#include "link_internal.h"
#include "renewal.h"
#include <stdio.h>
#include <string.h>

enum { TICK_MS = 1000, DOWN_MS = 10000 };

static void on_tick(uv_timer_t *timer);

void redis_access_init(struct redis_access *access)
{
    list_init(&access->links);
}

void redis_access_start(struct redis_access *access, uv_loop_t *loop)
{
    CHECK(uv_timer_init(loop, &access->timer) == 0);
    access->timer.data = access;
    CHECK(uv_timer_start(&access->timer, on_tick, TICK_MS, TICK_MS) == 0);
}

/* Renewing */

static unsigned version_of(const struct redis_access *access)
{
    return access->now[REDIS_PEER_SERVER].version + access->now[REDIS_PEER_SENTINEL].version;
}

static struct redis_link *link_of(struct list *node)
{
    return LIST_ENTRY(node, struct redis_link, access_node);
}

static bool is_old(const struct redis_access *access, const struct redis_link *link)
{
    return link->target.login.version !=
           access->now[link->to_sentinel ? REDIS_PEER_SENTINEL : REDIS_PEER_SERVER].version;
}

/* A ready one that was connected with what the files said before; NULL: none. ret_any: one is left, ready or not. */
static struct redis_link *find_old(struct redis_access *access, bool *ret_any)
{
    *ret_any = false;
    for (struct list *node = access->links.next; node != &access->links; node = node->next) {
        struct redis_link *link = link_of(node);

        *ret_any |= is_old(access, link);
        if (is_old(access, link) && redis_link_is_ready(link) && !link->successor)
            return link;
    }
    return NULL;
}

static void note_refused(struct redis_access *access, const char *why)
{
    bool is_told = access->refused_login[0] && access->refused_version == version_of(access);

    snprintf(access->refused_login, sizeof access->refused_login, "%s", why);
    access->refused_version = version_of(access);
    if (!is_told)
        LOG(LOG_ERROR, "a connection to Redis cannot be renewed: the old one stays in use", log_str("why", why));
}

static void note_all_renewed(struct redis_access *access)
{
    if (access->refused_login[0])
        LOG(LOG_INFO, "all connections to Redis are renewed", log_str("before", access->refused_login));
    access->refused_login[0] = '\0';
}

static void finish_close(struct redis_access *access)
{
    if (access->closed.run && access->is_timer_closed && !access->renewal)
        callback_run(access->closed);
}

static void on_renewal_ended(void *arg, const struct redis_renewal_result *result)
{
    struct redis_access *access = arg;

    access->renewal = NULL;
    if (access->closed.run) {
        finish_close(access);
        return;
    }
    if (result->is_refused)
        note_refused(access, result->why);
    else if (result->is_renewed)
        CHECK(uv_timer_start(&access->timer, on_tick, 0, TICK_MS) == 0);
}

/* One that was refused is tried again after the others. */
static void renew_next(struct redis_access *access)
{
    bool is_any_old = false;
    struct redis_link *link = access->renewal ? NULL : find_old(access, &is_any_old);

    if (link) {
        list_remove(&link->access_node);
        list_append(&access->links, &link->access_node);
        access->renewal = redis_renewal_begin(link, on_renewal_ended, access);
    } else if (!access->renewal && !is_any_old) {
        note_all_renewed(access);
    }
}

void redis_access_renew(struct redis_access *access)
{
    if (access->closed.run)
        return;
    access->look(access);
    for (size_t i = 0; i < REDIS_PEERS; i++)
        access->now[i].version++;
    LOG(LOG_INFO, "connections to Redis are renewed, one after another", log_str("signal", "SIGHUP"));
    CHECK(uv_timer_start(&access->timer, on_tick, 0, TICK_MS) == 0);
}

/* Who is to name the next master */

static bool is_down(const struct redis_link *link)
{
    return link->is_finder && !redis_link_is_ready(link) && uv_now(link->loop) - link->down_since_ms >= DOWN_MS;
}

/* Several links may lead to one Sentinel. */
static bool is_first_down(const struct redis_access *access, const struct redis_link *link)
{
    for (struct list *node = access->links.next; node != &link->access_node; node = node->next)
        if (is_down(link_of(node)) && strcmp(link_of(node)->where, link->where) == 0)
            return false;
    return true;
}

static void count_down(struct redis_access *access)
{
    unsigned count = 0;

    access->down_finder[0] = '\0';
    for (struct list *node = access->links.next; node != &access->links; node = node->next) {
        const struct redis_link *link = link_of(node);

        if (!is_down(link) || !is_first_down(access, link))
            continue;
        if (count++ == 0)
            snprintf(access->down_finder, sizeof access->down_finder, "%s", link->trouble);
    }
    if (count > access->finders_down)
        LOG(LOG_ERROR, "a Sentinel or a node of the cluster has not been reached for 10 s: a failover may fail",
            log_str("why", access->down_finder), log_int("down", count));
    access->finders_down = count;
}

static void on_tick(uv_timer_t *timer)
{
    struct redis_access *access = timer->data;

    access->look(access);
    count_down(access);
    renew_next(access);
    metric_set(METRIC_REDIS_FINDERS_DOWN, access->finders_down);
    metric_set(METRIC_REDIS_ACCESS_REFUSED, access->refused_file[0] || access->refused_login[0]);
}

void redis_access_troubles(const struct redis_access *access, void (*tell)(void *arg, struct text sentence), void *arg)
{
    struct buf out = BUF_FIXED(ACCESS_WHY_BYTES + 128);

    if (access->refused_file[0])
        tell(arg, text_of(access->refused_file));
    if (access->refused_login[0]) {
        buf_printf(&out, "New connections fail, the old ones still work: %s.", access->refused_login);
        tell(arg, buf_text(&out));
    }
    buf_clear(&out);
    if (access->finders_down > 0) {
        buf_printf(&out, "Down for 10 s, %u of those who name the master: %s.", access->finders_down,
                   access->down_finder);
        tell(arg, buf_text(&out));
    }
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct redis_access *access = handle->data;

    access->is_timer_closed = true;
    finish_close(access);
}

void redis_access_close(struct redis_access *access, void (*closed)(void *arg), void *arg)
{
    access->closed = (struct callback){closed, arg};
    if (access->renewal)
        redis_renewal_cancel(access->renewal);
    uv_close((uv_handle_t *)&access->timer, on_timer_closed);
}
