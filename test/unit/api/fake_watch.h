#pragma once
#include "auth/watch_feed.h"

/* The watcher, as the feed has it. */
struct fake_watch {
    struct watch_events events;
    void *arg;
    bool is_there, has_since, acknowledges;
    struct watch_cursor since, acknowledged;
    unsigned resumptions;
};
extern struct fake_watch fake_watch;
