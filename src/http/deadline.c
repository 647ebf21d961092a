#include "deadline_internal.h"

#include "base/check.h"

enum {
    DELIVERY_LIMIT_MS = 10 * 1000,
    LINGER_MS = 2000,
    /* A body's progress is checked this many times within its shortest limit, and at least once a second. A refusal is
     * late by at most one such interval. */
    BODY_LOOKS = 8,
    BODY_LOOK_MAX_MS = 1000,
};

static uint64_t body_look_ms(const struct http_settings *settings)
{
    int64_t limit_ms = settings->limits.body_timeout_ms < settings->limits.body_total_timeout_ms
                           ? settings->limits.body_timeout_ms
                           : settings->limits.body_total_timeout_ms;
    int64_t look_ms = limit_ms / BODY_LOOKS;

    if (look_ms > BODY_LOOK_MAX_MS)
        return BODY_LOOK_MAX_MS;
    return look_ms > 0 ? (uint64_t)look_ms : 1;
}

void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop, const struct http_settings *settings,
                    void (*expired)(struct deadline *deadline))
{
    CHECK(uv_timer_init(loop, &deadlines->timer) == 0);
    deadlines->timer.data = deadlines;
    deadlines->timer_due_ms = UINT64_MAX;
    deadlines->expired = expired;
    for (int class = 0; class < DEADLINE_CLASSES; class ++)
        list_init(&deadlines->classes[class]);
    deadlines->timeouts_ms[DEADLINE_HEAD] = (uint64_t)settings->limits.head_timeout_ms;
    deadlines->timeouts_ms[DEADLINE_HANDSHAKE] = (uint64_t)settings->limits.head_timeout_ms;
    deadlines->timeouts_ms[DEADLINE_BODY] = body_look_ms(settings);
    deadlines->timeouts_ms[DEADLINE_DISCARD] = (uint64_t)settings->limits.body_timeout_ms;
    deadlines->timeouts_ms[DEADLINE_IDLE] = (uint64_t)settings->limits.idle_timeout_ms;
    deadlines->timeouts_ms[DEADLINE_WRITE] = (uint64_t)settings->limits.write_timeout_ms;
    deadlines->timeouts_ms[DEADLINE_DELIVERY] = DELIVERY_LIMIT_MS;
    deadlines->timeouts_ms[DEADLINE_LINGER] = LINGER_MS;
}

void deadlines_close(struct deadlines *deadlines, uv_close_cb closed, void *arg)
{
    deadlines->timer.data = arg;
    uv_close((uv_handle_t *)&deadlines->timer, closed);
}

void deadline_init(struct deadline *deadline)
{
    list_init(&deadline->in_class);
}

uint64_t deadline_began_ms(const struct deadlines *deadlines, const struct deadline *deadline,
                           enum deadline_class class)
{
    return deadline->due_ms - deadlines->timeouts_ms[class];
}

struct deadline *deadline_first(struct deadlines *deadlines, enum deadline_class class)
{
    struct list *node = list_first(&deadlines->classes[class]);

    return node ? LIST_ENTRY(node, struct deadline, in_class) : NULL;
}

static void on_timer(uv_timer_t *timer);

static void arm(struct deadlines *deadlines, uint64_t due_ms)
{
    uint64_t now_ms = uv_now(deadlines->timer.loop);

    deadlines->timer_due_ms = due_ms;
    uv_timer_start(&deadlines->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct deadlines *deadlines = timer->data;
    uint64_t now_ms = uv_now(timer->loop), next_ms = UINT64_MAX;
    struct deadline *first;

    for (enum deadline_class class = 0; class < DEADLINE_CLASSES; class ++) {
        while ((first = deadline_first(deadlines, class)) && first->due_ms <= now_ms) {
            list_remove(&first->in_class);
            deadlines->expired(first);
        }
    }
    deadlines->timer_due_ms = UINT64_MAX;
    for (enum deadline_class class = 0; class < DEADLINE_CLASSES; class ++) {
        first = deadline_first(deadlines, class);
        if (first && first->due_ms < next_ms)
            next_ms = first->due_ms;
    }
    if (next_ms != UINT64_MAX)
        arm(deadlines, next_ms);
}

void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_class class)
{
    list_remove(&deadline->in_class);
    if (class == DEADLINE_NONE)
        return;
    deadline->due_ms = uv_now(deadlines->timer.loop) + deadlines->timeouts_ms[class];
    ALL_INVARIANT(list_empty(&deadlines->classes[class]) ||
                  LIST_ENTRY(deadlines->classes[class].prev, struct deadline, in_class)->due_ms <= deadline->due_ms);
    list_append(&deadlines->classes[class], &deadline->in_class);
    if (deadline->due_ms < deadlines->timer_due_ms)
        arm(deadlines, deadline->due_ms);
}
