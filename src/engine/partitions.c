#include "engine/partitions.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/secure.h"
#include "core/limits.h"
#include "redis/cluster.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Partitions with the same trouble: the numbers that are listed, and room for them and the longest text. Room for the
 * sentence about those that are left out. */
enum { NUMBERS_MAX = 16, GROUP_BYTES = 32 + 5 * NUMBERS_MAX + 512, REST_BYTES = 48 };

struct partition {
    struct partitions *partitions;
    struct store *store;
};

struct partitions {
    void (*changed)(void *arg, struct store *store);
    void *arg;
    struct redis_cluster *cluster; /* NULL: --redis names none */
    unsigned open;                 /* partitions that are not closed yet */
    void (*closed)(void *arg);
    void *closed_arg;
    unsigned count; /* a power of two */
    struct partition at[];
};

static void on_ready(void *arg)
{
    const struct partition *partition = arg;

    partition->partitions->changed(partition->partitions->arg, partition->store);
}

static bool has_tag(const struct store_settings *settings)
{
    return settings->partitions > 1 || settings->target.found == REDIS_BY_CLUSTER;
}

/* The part of a name in braces decides its slot. A store of one partition on one Redis has none, as ever. */
void partition_prefix(const struct store_settings *settings, unsigned number, struct buf *out)
{
    buf_append_str(out, settings->prefix);
    if (has_tag(settings))
        buf_printf(out, "{%u}:", number);
}

static struct store *open_partition(uv_loop_t *loop, const struct store_settings *all, unsigned number,
                                    struct partition *partition)
{
    struct redis_cluster *cluster = partition->partitions->cluster;
    char prefix[REDIS_PREFIX_MAX_BYTES + 1];
    struct store_settings settings = *all;
    struct buf out;

    settings.partition = number;
    buf_init_fixed(&out, prefix, sizeof prefix - 1);
    partition_prefix(all, number, &out);
    prefix[out.len] = '\0';
    settings.prefix = prefix;
    if (cluster)
        settings.resolver = redis_cluster_resolver(cluster, redis_slot_of(text_of(prefix)));
    struct store *store = store_create(loop, &settings, on_ready, partition);
    secure_wipe(&settings.target, sizeof settings.target);
    return store;
}

struct partitions *partitions_create(uv_loop_t *loop, const struct store_settings *settings,
                                     void (*changed)(void *arg, struct store *store), void *arg)
{
    unsigned count = settings->partitions;
    struct partitions *partitions = mem_alloc(sizeof *partitions + count * sizeof *partitions->at);

    REQUIRE(count >= 1 && count <= PARTITIONS_MAX && (count & (count - 1)) == 0);
    partitions->changed = changed;
    partitions->arg = arg;
    partitions->count = count;
    if (settings->target.found == REDIS_BY_CLUSTER)
        partitions->cluster = redis_cluster_create(loop, &settings->target, settings->tls, settings->timeout_ms);
    for (unsigned i = 0; i < count; i++) {
        partitions->at[i].partitions = partitions;
        partitions->at[i].store = open_partition(loop, settings, i, &partitions->at[i]);
    }
    return partitions;
}

static void on_cluster_closed(void *arg)
{
    struct partitions *partitions = arg;
    void (*closed)(void *arg) = partitions->closed;
    void *closed_arg = partitions->closed_arg;

    free(partitions);
    closed(closed_arg);
}

/* The cluster last: links ask it until they are closed. */
static void on_closed(void *arg)
{
    struct partitions *partitions = arg;

    INVARIANT(partitions->open > 0);
    if (--partitions->open > 0)
        return;
    if (partitions->cluster)
        redis_cluster_close(partitions->cluster, on_cluster_closed, partitions);
    else
        on_cluster_closed(partitions);
}

void partitions_close(struct partitions *partitions, void (*closed)(void *arg), void *arg)
{
    partitions->closed = closed;
    partitions->closed_arg = arg;
    partitions->open = partitions->count;
    for (unsigned i = 0; i < partitions->count; i++)
        store_close(partitions->at[i].store, on_closed, partitions);
}

bool partitions_are_closing(const struct partitions *partitions)
{
    return partitions->closed != NULL;
}

unsigned partitions_count(const struct partitions *partitions)
{
    return partitions->count;
}

struct store *partitions_at(const struct partitions *partitions, unsigned number)
{
    REQUIRE(number < partitions->count);
    return partitions->at[number].store;
}

struct store *partition_of_bucket(const struct partitions *partitions, unsigned bucket)
{
    ALL_REQUIRE(bucket < BUCKETS);
    return partitions->at[bucket & (partitions->count - 1)].store;
}

struct store *partition_of_account(const struct partitions *partitions, const struct id *account)
{
    return partition_of_bucket(partitions, bucket_of_account(account));
}

struct store *partition_of_digest(const struct partitions *partitions, const uint8_t digest[KEYRING_DIGEST_BYTES])
{
    return partition_of_bucket(partitions, bucket_of_digest(digest));
}

unsigned partitions_ready(const struct partitions *partitions)
{
    unsigned ready = 0;

    for (unsigned i = 0; i < partitions->count; i++)
        ready += store_is_ready(partitions->at[i].store);
    return ready;
}

/* The number of partitions from `first` on with the same trouble as that one. 0: an earlier one has it too. */
static unsigned count_alike(const struct partitions *partitions, unsigned first)
{
    const char *trouble = store_trouble(partitions->at[first].store);
    unsigned count = 0;

    for (unsigned i = 0; i < partitions->count; i++) {
        bool is_alike = strcmp(store_trouble(partitions->at[i].store), trouble) == 0;

        if (is_alike && i < first)
            return 0;
        count += is_alike;
    }
    return count;
}

static void print_numbers(const struct partitions *partitions, unsigned first, unsigned count, struct buf *out)
{
    const char *trouble = store_trouble(partitions->at[first].store);
    unsigned listed = 1;

    buf_printf(out, count == 1 ? "Partition %u" : "Partitions %u", first);
    for (unsigned i = first + 1; i < partitions->count && listed < NUMBERS_MAX; i++) {
        if (strcmp(store_trouble(partitions->at[i].store), trouble) != 0)
            continue;
        buf_printf(out, ", %u", i);
        listed++;
    }
    if (count > listed)
        buf_printf(out, " and %u more", count - listed);
    buf_append_str(out, ": ");
}

static void print_group(const struct partitions *partitions, unsigned first, unsigned count, struct buf *out)
{
    if (count < partitions->count)
        print_numbers(partitions, first, count, out);
    buf_append_str(out, store_trouble(partitions->at[first].store));
}

static unsigned count_troubled(const struct partitions *partitions)
{
    unsigned count = 0;

    for (unsigned i = 0; i < partitions->count; i++)
        count += store_trouble(partitions->at[i].store)[0] != '\0';
    return count;
}

/* Leaves out each group that does not fit as a whole, and keeps room to say so. Only the first group may be cut. */
void partitions_trouble(const struct partitions *partitions, struct buf *out)
{
    const size_t from = out->len;
    unsigned left = count_troubled(partitions);

    for (unsigned i = 0; i < partitions->count && left > 0; i++) {
        const char *trouble = store_trouble(partitions->at[i].store);
        unsigned count = trouble[0] ? count_alike(partitions, i) : 0;
        struct buf group = BUF_FIXED(GROUP_BYTES);

        if (count == 0)
            continue;
        if (out->len > from)
            buf_append_char(&group, ' ');
        print_group(partitions, i, count, &group);
        const size_t room = out->max - out->len;
        if (out->len > from && group.len + (left > count ? REST_BYTES : 0) > room)
            break;
        buf_append(out, group.ptr, group.len < room ? group.len : room);
        left -= count;
    }
    if (left > 0 && out->max - out->len >= REST_BYTES)
        buf_printf(out, " %u more partitions have other troubles.", left);
}

const char *partitions_refusal(const struct partitions *partitions, enum store_result result)
{
    const char *refusal = NULL;

    for (unsigned i = 0; i < partitions->count && !refusal; i++)
        refusal = store_refusal(partitions->at[i].store, result);
    return refusal;
}

bool partitions_are_empty(const struct partitions *partitions)
{
    return store_is_empty(partitions->at[0].store);
}
