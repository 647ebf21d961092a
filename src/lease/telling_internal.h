/* Repeating endings at a Redis that may have lost them (rule 13), a portion at a time. Leaves out what other nodes have
 * told there meanwhile. One list at a time. Loop thread only. */
#pragma once
#include "lease/kept.h"
#include "lease/settings.h"

struct telling;

/* settings must outlive it. */
struct telling *telling_create(const struct lease_settings *settings);
/* With no call pending. done of a list that is told does not run. */
void telling_destroy(struct telling *telling);

struct told {
    bool is_done;           /* false: Redis did not answer; the counts are of what it had answered */
    uint64_t lost, unknown; /* how many it had lost, and how many are of keys that it does not know */
};
typedef void telling_done(void *arg, const struct told *told);

/* Tells a list of kept_list(), or one without places in chains; takes it over. done runs once, at once or later. */
void telling_run(struct telling *telling, struct kept_ending *list, size_t count, telling_done *done, void *arg);
