/* Copies what belongs to no account but to a partition as a whole. The target was empty, so sums and streams of several
 * source partitions can be added up. */
#include "base/mem.h"
#include "copy_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_AT_ONCE "500"

static copy_step streams_begin;

/* Single values */

static void set_everywhere(struct store_copy *copy, const char *kind, struct text value)
{
    for (unsigned i = 0; i < copy->to.settings->partitions; i++)
        copy_write(copy, i, "SET", kind, TEXT(""), 1, &value);
}

/* The field and value of a hash that follow, from *at = 0 on; false: there are no more. */
static bool next_pair(const struct redis_reply *hash, size_t *at, struct text *ret_field, struct text *ret_value)
{
    for (; hash->type == REPLY_ARRAY && *at + 1 < hash->count; *at += 2)
        if (reply_text(hash->items[*at], ret_field) && reply_text(hash->items[*at + 1], ret_value)) {
            *at += 2;
            return true;
        }
    return false;
}

static void on_master_keys(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text key;

    for (size_t k = 0; reply->type == REPLY_ARRAY && k < reply->count; k++)
        for (unsigned i = 0; reply_text(reply->items[k], &key) && i < copy->to.settings->partitions; i++)
            copy_write(copy, i, "SADD", "master_keys", TEXT(""), 1, &key);
}

static void on_unsealed(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text value;

    if (reply_text(reply, &value))
        set_everywhere(copy, "unsealed", value);
}

static void on_lease_max(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    int64_t ms;

    if (reply_integer(reply, &ms) && ms > 0 && (uint64_t)ms > copy->lease_max_ms)
        copy->lease_max_ms = (uint64_t)ms;
}

/* The first partition's heads count, whichever answers first: those of the others differ by moments. */
static void on_log_heads(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    const char *command = *(const unsigned *)item == 0 ? "HSET" : "HSETNX";
    struct text chain, head;

    for (unsigned i = 0; i < copy->to.settings->partitions; i++)
        for (size_t at = 0; next_pair(reply, &at, &chain, &head);)
            copy_write(copy, i, command, "log_heads", TEXT(""), COPY_WITH(chain, head));
}

static void on_log_heads_expiry(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    char expires[24];
    int64_t ms;

    if (!reply_integer(reply, &ms) || ms <= 0)
        return;
    snprintf(expires, sizeof expires, "%" PRId64, ms);
    for (unsigned i = 0; i < copy->to.settings->partitions; i++)
        copy_write(copy, i, "PEXPIREAT", "log_heads", TEXT(""), COPY_WITH(text_of(expires)));
}

/* item: the number of the source partition, as a pointer into a table. */
static unsigned counterpart_of(const struct store_copy *copy, const void *item)
{
    return copy_counterpart(copy, *(const unsigned *)item);
}

static void on_log_dropped(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    struct text value;

    if (reply_text(reply, &value))
        copy_write(copy, counterpart_of(copy, item), "INCRBY", "log_dropped", TEXT(""), 1, &value);
}

static void on_strangers_counts(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    unsigned to = counterpart_of(copy, item);
    struct text field, value;

    for (size_t at = 0; next_pair(reply, &at, &field, &value);)
        copy_write(copy, to, "HINCRBY", "strangers:counts", TEXT(""), COPY_WITH(field, value));
}

static void note_suspensions(struct store_copy *copy, struct text version)
{
    uint64_t number;

    if (text_to_u64(version, INT64_MAX, &number) && number > copy->suspensions)
        copy->suspensions = number;
}

static void on_suspended(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text field, since;
    struct id account;

    for (size_t at = 0; next_pair(reply, &at, &field, &since);)
        if (text_equal(field, TEXT("version")))
            note_suspensions(copy, since);
        else if (id_parse(ID_ACCOUNT, field, &account))
            copy_write(copy, bucket_of_account(&account) & (copy->to.settings->partitions - 1), "HSET", "suspended",
                       TEXT(""), COPY_WITH(field, since));
        else
            copy_malformed(&copy->from, "suspended account");
}

/* What one Redis has lost, that this was accepted, and that its clock was proved wrong says nothing of another. The
 * copy itself sets the other fields. */
static bool is_of_one_place(struct text field)
{
    static const char *const FIELDS[] = {
        "id",  "partitions", "partition", "copying",  "aliased",      "ahead",        "unsure", "settlement",
        "era", "changes",    "missing",   "accepted", "accepted_era", "lost_changes", "joined", "era_joined",
    };

    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (text_equal(field, text_of(FIELDS[i])))
            return true;
    return false;
}

/* A node that knows a chain finds it at the target too (rule 13): it has all that the source had. Which chain grew last
 * does not matter, because another era begins there. */
static void take_chain(struct store_copy *copy, unsigned to, struct text maker, struct text numbers)
{
    char order[24];

    snprintf(order, sizeof order, "%u", ++copy->chains[to]);
    copy_write(copy, to, "HSET", "chains", TEXT(""), COPY_WITH(maker, numbers));
    copy_write(copy, to, "ZADD", "chain_order", TEXT(""), COPY_WITH(text_of(order), maker));
}

static void on_chains(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    struct text maker, numbers;

    for (size_t at = 0; next_pair(reply, &at, &maker, &numbers);)
        for (unsigned i = 0; i < copy->to.settings->partitions; i++)
            if (copy_takes_over(copy, *(const unsigned *)item, i))
                take_chain(copy, i, maker, numbers);
}

static void take_over(struct store_copy *copy, unsigned from, struct text field, struct text value)
{
    for (unsigned i = 0; i < copy->to.settings->partitions; i++)
        if (copy_takes_over(copy, from, i))
            copy_write(copy, i, "HSET", "store", TEXT(""), COPY_WITH(field, value));
}

static void on_store(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    struct text field, value;

    for (size_t at = 0; next_pair(reply, &at, &field, &value);)
        if (text_equal(field, TEXT("suspensions")))
            note_suspensions(copy, value);
        else if (!is_of_one_place(field))
            take_over(copy, *(const unsigned *)item, field, value);
}

static const struct {
    const char *command, *name;
    copy_answered *answered;
} VALUES[] = {
    {"SMEMBERS", "master_keys", on_master_keys},
    {"GET", "unsealed", on_unsealed},
    {"GET", "lease_max", on_lease_max},
    {"HGETALL", "log_heads", on_log_heads},
    {"PEXPIRETIME", "log_heads", on_log_heads_expiry},
    {"GET", "log_dropped", on_log_dropped},
    {"HGETALL", "strangers:counts", on_strangers_counts},
    {"HGETALL", "suspended", on_suspended},
    {"HGETALL", "chains", on_chains},
    {"HGETALL", "store", on_store},
};

static void values_read(struct store_copy *copy, unsigned partition)
{
    unsigned *item = arena_alloc(&copy->arena, sizeof *item);

    *item = partition;
    for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
        copy_read(&copy->from, partition, VALUES[i].command, VALUES[i].name, TEXT(""), VALUES[i].answered, item);
}

static void hash_set(struct store_copy *copy, unsigned to, const char *kind, const char *field, uint64_t value)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, value);
    copy_write(copy, to, "HSET", kind, TEXT(""), COPY_WITH(text_of(field), text_of(number)));
}

static void values_write(struct store_copy *copy)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, copy->lease_max_ms);
    if (copy->lease_max_ms > 0)
        set_everywhere(copy, "lease_max", text_of(number));
    for (unsigned i = 0; i < copy->to.settings->partitions; i++) {
        if (copy->suspensions > 0) {
            hash_set(copy, i, "suspended", "version", copy->suspensions);
            hash_set(copy, i, "store", "suspensions", copy->suspensions);
        }
        if (copy->has_aliases[i])
            hash_set(copy, i, "store", "aliased", 1);
        if (copy->chains[i] > 0)
            hash_set(copy, i, "store", "changes", copy->chains[i]);
    }
    copy_then(copy, streams_begin);
}

/* Streams: the entries of all source partitions, in the order of their time. */

struct copy_entry {
    uint64_t ms, sequence;
    unsigned from;
    size_t count; /* of the fields and values */
    struct text *fields;
};

struct copy_streams {
    size_t stream; /* index into STREAMS */
    unsigned partition;
    char after[48]; /* the last entry read */
    size_t read;    /* by the last call */
    struct arena arena;
    struct copy_entry *entries;
    size_t count, capacity, next;
    struct {
        uint64_t ms, sequence;
    } last[PARTITIONS_MAX]; /* written to the target */
};

static const char *const STREAMS[] = {"audit",         "strangers",     "unlogged:people",
                                      "unlogged:live", "unlogged:test", "unlogged:refused"};

static copy_step stream_read, stream_write;

void copy_whole_finish(struct store_copy *copy)
{
    if (!copy->streams)
        return;
    arena_finish(&copy->streams->arena);
    free(copy->streams->entries);
    free(copy->streams);
    copy->streams = NULL;
}

void copy_whole(struct store_copy *copy)
{
    copy->streams = mem_alloc(sizeof *copy->streams);
    arena_init(&copy->streams->arena, NULL, 0);
    for (unsigned i = 0; i < copy->from.settings->partitions; i++)
        values_read(copy, i);
    copy_then(copy, values_write);
}

static void stream_restart(struct copy_streams *streams, unsigned partition)
{
    streams->partition = partition;
    snprintf(streams->after, sizeof streams->after, "-");
}

static void streams_begin(struct store_copy *copy)
{
    struct copy_streams *streams = copy->streams;

    arena_finish(&streams->arena);
    streams->count = streams->next = 0;
    memset(streams->last, 0, sizeof streams->last);
    stream_restart(streams, 0);
    if (streams->stream < sizeof STREAMS / sizeof *STREAMS)
        stream_read(copy);
    else
        copy_next(copy);
}

static bool read_entry_id(struct text id, struct copy_entry *entry)
{
    struct text ms;

    return text_next(&id, '-', &ms) && text_to_u64(ms, UINT64_MAX, &entry->ms) &&
           text_to_u64(id, UINT64_MAX, &entry->sequence);
}

static bool take_entry(struct copy_streams *streams, const struct redis_reply *reply)
{
    const struct redis_reply *fields = reply_at(reply, 1);
    struct copy_entry entry = {.from = streams->partition};
    struct text id;

    if (!reply_text(reply_at(reply, 0), &id) || !read_entry_id(id, &entry) || !fields || fields->type != REPLY_ARRAY ||
        fields->count + 1 > COPY_ARGS_MAX)
        return false;
    snprintf(streams->after, sizeof streams->after, "(%.*s", TEXT_ARG(id));
    entry.count = fields->count;
    entry.fields = arena_alloc(&streams->arena, (entry.count + 1) * sizeof *entry.fields);
    for (size_t i = 0; i < fields->count; i++) {
        if (!reply_text(fields->items[i], &entry.fields[i]))
            return false;
        entry.fields[i] = arena_copy(&streams->arena, entry.fields[i]);
    }
    streams->entries = mem_grow(streams->entries, streams->count, &streams->capacity, sizeof *streams->entries);
    streams->entries[streams->count++] = entry;
    return true;
}

static void on_entries(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct copy_streams *streams = copy->streams;

    streams->read = reply->type == REPLY_ARRAY ? reply->count : 0;
    for (size_t i = 0; i < streams->read; i++)
        if (!take_entry(streams, reply->items[i])) {
            copy_malformed(&copy->from, "event");
            return;
        }
}

static int compare_entries(const void *a, const void *b)
{
    const struct copy_entry *left = a, *right = b;

    if (left->ms != right->ms)
        return left->ms < right->ms ? -1 : 1;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    return (left->from > right->from) - (left->from < right->from);
}

static void stream_was_read(struct store_copy *copy)
{
    struct copy_streams *streams = copy->streams;

    if (streams->read == 0)
        stream_restart(streams, streams->partition + 1);
    if (streams->partition < copy->from.settings->partitions) {
        stream_read(copy);
        return;
    }
    if (streams->count > 0)
        qsort(streams->entries, streams->count, sizeof *streams->entries, compare_entries);
    stream_write(copy);
}

static void stream_read(struct store_copy *copy)
{
    struct copy_streams *streams = copy->streams;

    copy_call_on(&copy->from, streams->partition, "XRANGE", STREAMS[streams->stream], TEXT(""),
                 COPY_WITH(text_of(streams->after), TEXT("+"), TEXT("COUNT"), TEXT(READ_AT_ONCE)), on_entries, NULL);
    copy_then(copy, stream_was_read);
}

/* An event of an account goes with the account. */
static unsigned entry_target(const struct store_copy *copy, const struct copy_entry *entry)
{
    struct id account;

    if (entry->count > 1 && text_equal(entry->fields[0], TEXT("account")) &&
        id_parse(ID_ACCOUNT, entry->fields[1], &account))
        return bucket_of_account(&account) & (copy->to.settings->partitions - 1);
    return copy_counterpart(copy, entry->from);
}

/* Two partitions may have used one id, which is then moved on by one. */
static void entry_write(struct store_copy *copy, struct copy_entry *entry)
{
    struct copy_streams *streams = copy->streams;
    unsigned to = entry_target(copy, entry);
    struct text argv[COPY_ARGS_MAX];
    char id[48];

    if (entry->ms == streams->last[to].ms && entry->sequence <= streams->last[to].sequence)
        entry->sequence = streams->last[to].sequence + 1;
    streams->last[to].ms = entry->ms;
    streams->last[to].sequence = entry->sequence;
    snprintf(id, sizeof id, "%" PRIu64 "-%" PRIu64, entry->ms, entry->sequence);
    argv[0] = text_of(id);
    memcpy(argv + 1, entry->fields, entry->count * sizeof *argv);
    copy_write(copy, to, "XADD", STREAMS[streams->stream], TEXT(""), 1 + entry->count, argv);
}

static void stream_write(struct store_copy *copy)
{
    struct copy_streams *streams = copy->streams;
    size_t bytes = 0;

    for (; streams->next < streams->count && bytes < COPY_BATCH_BYTES; streams->next++) {
        struct copy_entry *entry = &streams->entries[streams->next];

        entry_write(copy, entry);
        bytes += COPY_NAME_BYTES;
        for (size_t i = 0; i < entry->count; i++)
            bytes += entry->fields[i].len;
    }
    if (streams->next == streams->count)
        streams->stream++;
    copy_then(copy, streams->next == streams->count ? streams_begin : stream_write);
}
