#include "redis/resolver.h"
#include "base/check.h"
#include <string.h>

enum { ROUND_INTERVAL_MS = 1000 };

/* Followers */

void redis_resolver_follow(struct redis_resolver *resolver, struct redis_follower *follower)
{
    follower->is_asking = false;
    list_append(&resolver->followers, &follower->node);
}

void redis_resolver_ask(struct redis_resolver *resolver, struct redis_follower *follower)
{
    follower->is_asking = true;
    resolver->ask(resolver);
}

/* To all of them, or (has_moved false) to those that are asking. A NULL master is unknown; why: the reason. */
static void tell_all(struct redis_resolver *resolver, bool has_moved, const struct redis_address *master,
                     const char *why)
{
    struct list told, *node;

    list_init(&told);
    while ((node = list_take(&resolver->followers))) {
        struct redis_follower *follower = LIST_ENTRY(node, struct redis_follower, node);

        list_append(&told, node);
        if (has_moved) {
            follower->on_moved(follower->arg, master);
        } else if (follower->is_asking) {
            follower->is_asking = false;
            follower->on_master(follower->arg, master, why);
        }
    }
    list_append_all(&resolver->followers, &told);
}

void redis_resolver_tell_moved(struct redis_resolver *resolver, const struct redis_address *master)
{
    tell_all(resolver, true, master, NULL);
}

void redis_resolver_tell_master(struct redis_resolver *resolver, const struct redis_address *master)
{
    tell_all(resolver, false, master, NULL);
}

void redis_resolver_tell_failure(struct redis_resolver *resolver, const char *why)
{
    tell_all(resolver, false, NULL, why);
}

/* Rounds */

static void on_timer(uv_timer_t *timer)
{
    redis_round_begin(timer->data);
}

static void timer_restart(struct redis_rounds *rounds)
{
    CHECK(uv_timer_start(&rounds->timer, on_timer, ROUND_INTERVAL_MS, 0) == 0);
}

void redis_rounds_start(struct redis_rounds *rounds, uv_loop_t *loop, void (*begin)(void *arg), void (*end)(void *arg),
                        void *arg)
{
    rounds->begin = begin;
    rounds->end = end;
    rounds->arg = arg;
    CHECK(uv_timer_init(loop, &rounds->timer) == 0);
    rounds->timer.data = rounds;
    timer_restart(rounds);
}

void redis_round_begin(struct redis_rounds *rounds)
{
    if (rounds->is_over)
        return;
    rounds->is_asked = rounds->due > 0;
    if (rounds->due > 0)
        return;
    rounds->begin(rounds->arg);
    timer_restart(rounds);
}

void redis_round_expect(struct redis_rounds *rounds, unsigned answers)
{
    rounds->due += answers;
}

void redis_round_answered(struct redis_rounds *rounds)
{
    if (--rounds->due > 0 || rounds->is_over)
        return;
    rounds->end(rounds->arg);
    if (rounds->is_asked)
        redis_round_begin(rounds);
}

void redis_rounds_stop(struct redis_rounds *rounds, uv_close_cb closed)
{
    rounds->is_over = true;
    uv_close((uv_handle_t *)&rounds->timer, closed);
}

bool redis_address_equal(const struct redis_address *a, const struct redis_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}
