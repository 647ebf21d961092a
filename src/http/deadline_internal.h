/* Timeouts of many objects on one timer. All deadlines of a class have the same timeout, so a list in order of arrival
 * is in order of expiry. */
#pragma once
#include "base/list.h"
#include "http/settings.h"
#include <uv.h>

/* What a connection waits for. */
enum deadline_class {
    DEADLINE_NONE,
    DEADLINE_HEAD,
    DEADLINE_HANDSHAKE,
    DEADLINE_BODY, /* when to check a body's progress again, see conn.c */
    DEADLINE_DISCARD,
    DEADLINE_IDLE,
    DEADLINE_WRITE,
    DEADLINE_DELIVERY,
    DEADLINE_LINGER,
    DEADLINE_CLASSES
};

/* Embedded in its object. */
struct deadline {
    struct list in_class;
    uint64_t due_ms;
};

struct deadlines {
    uv_timer_t timer;
    uint64_t timer_due_ms; /* UINT64_MAX: the timer is not running */
    struct list classes[DEADLINE_CLASSES];
    uint64_t timeouts_ms[DEADLINE_CLASSES];
    void (*expired)(struct deadline *deadline);
};

/* expired is called for each deadline that has passed; by then it has left its class. */
void deadlines_init(struct deadlines *deadlines, uv_loop_t *loop, const struct http_settings *settings,
                    void (*expired)(struct deadline *deadline));
/* Closes the timer; closed gets it, with arg as its data. */
void deadlines_close(struct deadlines *deadlines, uv_close_cb closed, void *arg);

void deadline_init(struct deadline *deadline);
/* Moves the deadline to that class and starts its timeout. DEADLINE_NONE: only stops it. */
void deadline_set(struct deadlines *deadlines, struct deadline *deadline, enum deadline_class class);
/* When it was moved to that class, by uv_now(). */
uint64_t deadline_began_ms(const struct deadlines *deadlines, const struct deadline *deadline,
                           enum deadline_class class);
/* The deadline of the class that is due first; NULL if the class is empty. */
struct deadline *deadline_first(struct deadlines *deadlines, enum deadline_class class);
