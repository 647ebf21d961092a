#include "engine/part.h"
#include "base/check.h"
#include "state.h"

void parts_create(struct store *store, const struct store_part *const *parts)
{
    REQUIRE(parts);
    for (size_t i = 0; parts[i]; i++) {
        REQUIRE(i < STORE_PARTS_MAX);
        store->parts[i] = (struct made_part){parts[i], parts[i]->create(store)};
        store->part_count++;
    }
}

void *store_part(const struct store *store, const struct store_part *part)
{
    size_t i = 0;

    while (i < store->part_count && store->parts[i].part != part)
        i++;
    REQUIRE(i < store->part_count && store->parts[i].made);
    return store->parts[i].made;
}

void store_log_to(struct store *store, const struct store_log *log)
{
    store->log = log;
}

const char *store_log_trouble(const struct store *store)
{
    return store->log ? store->log->trouble(store->log->arg) : NULL;
}

void parts_beat(struct store *store, bool is_due)
{
    for (size_t i = 0; !store->is_closing && i < store->part_count; i++) {
        const struct made_part *part = &store->parts[i];

        if (is_due && part->part->due)
            part->part->due(part->made);
        if (part->part->beat)
            part->part->beat(part->made);
    }
}

static void on_closed(void *arg)
{
    struct store *store = arg;

    REQUIRE(store->parts_closed < store->part_count);
    store->parts[store->parts_closed++].made = NULL;
    parts_close(store, store->on_parts_closed);
}

void parts_close(struct store *store, void (*closed)(struct store *store))
{
    const struct made_part *next = &store->parts[store->parts_closed];

    store->on_parts_closed = closed;
    if (store->parts_closed < store->part_count)
        next->part->close(next->made, on_closed, store);
    else
        closed(store);
}
