#include "engine/access.h"
#include "state.h"
#include "engine/store.h"
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

struct text store_id(const struct store *store)
{
    return text_of(identity_known(lease_identity(store->lease)));
}

bool store_asserts_durability(const struct store *store)
{
    return store->settings.durability_asserted;
}

unsigned store_partitions(const struct store *store)
{
    return store->settings.partitions > 0 ? store->settings.partitions : 1;
}

unsigned store_partition(const struct store *store)
{
    return store->settings.partition;
}

const char *store_server(const struct store *store)
{
    return store->server;
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

bool store_is_short(const struct store *store)
{
    return store->is_short;
}

int64_t store_strangers_most(const struct store *store, int64_t in_all)
{
    return in_all / store_partitions(store) / (store->is_short ? 8 : 1);
}

struct lease *store_lease(const struct store *store)
{
    return store->lease;
}

void store_keep_endings(struct store *store, const struct heard_ending *endings, size_t count)
{
    if (lease_member(store->lease))
        kept_add(lease_kept(store->lease), chains_last_change(lease_chains(store->lease)), endings, count);
}

struct heard_ending ending_of_key(const struct key_record *key)
{
    return (struct heard_ending){.subject = key->id,
                                 .account = key->account,
                                 .what = key->revoked_ms > 0 ? ENDING_REVOKED
                                         : key->ends_ms > 0  ? ENDING_SCHEDULED
                                                             : ENDING_WITHDRAWN,
                                 .at_ms = key->revoked_ms > 0 ? key->revoked_ms : key->ends_ms,
                                 .said_ms = key->revoked_ms > 0 ? 0 : key->end_said_ms,
                                 .by_replacement = key->ends_ms > 0 && key->ends_ms == key->replaced_ends_ms};
}

const struct store_time *store_known_time(const struct store *store)
{
    return &store->time;
}

bool store_may_log(struct store *store, struct log_pause *pause)
{
    return log_pause_is_over(pause, uv_now(store->loop), LOG_PAUSE_MS);
}
