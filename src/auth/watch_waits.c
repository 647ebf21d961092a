#include "watch_waits_internal.h"

void watch_waits_add(struct watch_waits *waits, const struct watch_wait *wait)
{
    if (waits->count < WATCH_WAITS_MAX)
        waits->items[waits->count++] = *wait;
}

void watch_waits_place(struct watch_waits *waits, unsigned partition, uint64_t heard, struct log_position position)
{
    for (size_t i = 0; i < waits->count; i++) {
        struct watch_wait *wait = &waits->items[i];

        if (wait->is_placed || wait->partition != partition || wait->heard > heard)
            continue;
        wait->is_placed = true;
        wait->position = position;
    }
}

bool watch_wait_covers(const struct watch_wait *wait, uint64_t number, struct log_position acknowledged)
{
    return number > wait->watchers || (wait->is_placed && !log_position_is_after(wait->position, acknowledged));
}

void watch_waits_remove(struct watch_waits *waits, bool (*is_over)(void *arg, const struct watch_wait *wait),
                        void (*removed)(void *arg, const struct watch_wait *wait), void *arg)
{
    size_t kept = 0;

    for (size_t i = 0; i < waits->count; i++) {
        const struct watch_wait wait = waits->items[i];

        if (is_over(arg, &wait))
            removed(arg, &wait);
        else
            waits->items[kept++] = wait;
    }
    waits->count = kept;
}
