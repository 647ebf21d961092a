#include "access.h"
#include "state.h"
#include "store/store.h"
#include <string.h>

enum { LOG_PAUSE_MS = 5000 };

struct redis_link *store_reads(struct store *store)
{
    return store->reads;
}

uv_loop_t *store_loop(struct store *store)
{
    return store->loop;
}

void store_print_prefix_beside(const struct store *store, struct buf *out)
{
    size_t len = strlen(store->prefix);

    if (store->settings.resolver || store->settings.may_lie_beside)
        return;
    if (store_partitions(store) > 1)
        len = (size_t)(strrchr(store->prefix, '{') - store->prefix);
    buf_append_text(out, (struct text){store->prefix, len});
    if (store_partitions(store) == 1)
        buf_append_str(out, "{0}:");
}

struct text store_prefix(const struct store *store)
{
    return text_of(store->prefix);
}

const struct store_settings *store_limits(const struct store *store)
{
    return &store->settings;
}

int64_t store_audit_max(const struct store *store)
{
    return store->settings.audit_max;
}

struct key_finder *store_key_finder(const struct store *store)
{
    return store->finder;
}

struct key_revocations *store_key_revocations(const struct store *store)
{
    return store->revocations;
}

struct key_notes *store_key_notes(const struct store *store)
{
    return store->notes;
}

struct key_discards *store_key_discards(const struct store *store)
{
    return store->discards;
}

struct audit_searches *store_audit_searches(const struct store *store)
{
    return store->searches;
}

struct lease *store_lease(const struct store *store)
{
    return store->lease;
}

uint64_t store_take_number(struct store *store)
{
    return lease_member(store->lease) ? promises_take(lease_promises(store->lease)) : 0;
}

uint64_t store_last_number(const struct store *store)
{
    return lease_member(store->lease) ? promises_last(lease_promises(store->lease)) : 0;
}

void store_keep_revocation(struct store *store, uint64_t number, const struct id *key, int64_t ends_ms,
                           struct text actor)
{
    promises_keep_revocation(lease_promises(store->lease), number, key, ends_ms, actor);
}

const struct store_time *store_known_time(const struct store *store)
{
    return &store->time;
}

bool store_may_log(struct store *store, struct log_pause *pause)
{
    return log_pause_is_over(pause, uv_now(store->loop), LOG_PAUSE_MS);
}
