/* Timeouts of many objects, with one timer. All of a class have the same timeout, so append order is deadline order. */
#pragma once
#include "base/list.h"
#include "http/settings.h"
#include <uv.h>

/* What a connection waits for. */
enum deadline_class {
    DEADLINE_NONE,
    DEADLINE_HEAD,
    DEADLINE_BODY, /* how often a body is looked at, see conn.c */
    DEADLINE_DISCARD,
    DEADLINE_IDLE,
    DEADLINE_WRITE,
    DEADLINE_DELIVERY,
    DEADLINE_LINGER,
    DEADLINE_CLASSES
};

/* Of one object, a member of it. */
struct deadline {
    struct list in_class;
    uint64_t due_ms;
};

struct deadlines {
    uv_timer_t timer;
    uint64_t timer_due_ms; /* what the timer is set to; UINT64_MAX: it is not */
    struct list classes[DEADLINE_CLASSES];
    uint64_t timeouts_ms[DEADLINE_CLASSES];
    void (*expired)(struct deadline *deadline);
};

/* expired is called for each deadline that has passed, which is in no class then. */
void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop, const struct http_settings *settings,
                    void (*expired)(struct deadline *deadline));
/* Closes the timer: closed gets it, and its data is arg. */
void deadlines_close(struct deadlines *deadlines, uv_close_cb closed, void *arg);

void deadline_init(struct deadline *deadline);
/* Starts the timeout of that class, and leaves the class that the deadline was in. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_class class);
/* The one of its class that is due first; NULL: there is none. */
struct deadline *deadline_first(struct deadlines *deadlines, enum deadline_class class);
