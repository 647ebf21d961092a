/* The source of a copy: what it says of itself; how it is left, so that no node serves it beside the target; and how it
 * becomes a store again. */
#include "base/crc32.h"
#include "base/random.h"
#include "copy_internal.h"
#include "engine/copied.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS "30000"

enum { SCRIPT_ARGS_MAX = 8 };

/* Reading */

static void take_id(struct store_copy *copy, struct text id)
{
    if (id.len != STORE_ID_CHARS)
        copy_fail(copy, "The source holds no store, or not all of it: check --prefix and --from-partitions.");
    else if (copy->id[0] && !text_equal(id, text_of(copy->id)))
        copy_fail(copy, "The partitions of the source belong to several stores: restore its data.");
    else
        snprintf(copy->id, sizeof copy->id, "%.*s", TEXT_ARG(id));
}

static void take_schema(struct store_copy *copy, const struct redis_reply *reply)
{
    int64_t schema;

    if (!reply_integer(reply, &schema) || schema < 1)
        copy_malformed(&copy->from, "schema");
    else if (schema > STORE_SCHEMA)
        copy_fail(copy, "The source was written by a newer chatelaine: use that one's 'store copy'.");
    else if (copy->schema > 0 && (uint64_t)schema != copy->schema)
        copy_fail(copy, "The partitions of the source have several schemas: run 'chatelaine store upgrade' first.");
    else
        copy->schema = (uint64_t)schema;
}

/* A store of an earlier version does not say it. */
static void check_partitions(struct store_copy *copy, unsigned partition, const struct redis_reply *reply)
{
    unsigned expected = copy->from.settings->partitions;
    int64_t partitions = 1, number = 0;

    if (reply_at(reply, 1)->type != REPLY_NIL &&
        (!reply_integer(reply_at(reply, 1), &partitions) || !reply_integer(reply_at(reply, 2), &number)))
        copy_malformed(&copy->from, "store");
    if (partitions != (int64_t)expected || number != (int64_t)partition)
        copy_fail(copy, "The source has %" PRId64 " partitions, not %u: set --from-partitions.", partitions, expected);
}

static void on_store(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    unsigned partition = *(const unsigned *)item;
    struct text id, copying, moved, missing;

    if (!reply_text_or_nil(reply_at(reply, 0), &id) || !reply_text_or_nil(reply_at(reply, 3), &copying) ||
        !reply_text_or_nil(reply_at(reply, 4), &moved) || !reply_text_or_nil(reply_at(reply, 6), &missing)) {
        copy_malformed(&copy->from, "store");
        return;
    }
    if (missing.len > 0)
        copy_fail(copy, "The source has lost changes that ended something: let nodes repeat them first, or run "
                        "'chatelaine store accept-loss'.");
    copy->has_moved[partition] = moved.len > 0;
    if (moved.len > 0) {
        copy->moved_to = arena_copy(&copy->arena, moved);
        take_schema(copy, reply_at(reply, 5));
        id = copying;
    } else if (copying.len > 0) {
        copy_fail(copy, "A copy into the source is under way, or was interrupted: it is no whole store.");
    }
    take_id(copy, id);
    check_partitions(copy, partition, reply);
}

/* Asked after its store. */
static void on_schema(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    if (!copy->has_moved[*(const unsigned *)item])
        take_schema(copy, reply);
}

static void on_lease_max(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    int64_t ms;

    if (reply_integer(reply, &ms) && ms > 0 && (uint64_t)ms > copy->lease_max_ms)
        copy->lease_max_ms = (uint64_t)ms;
}

static unsigned *number_kept(struct store_copy *copy, unsigned number)
{
    unsigned *kept = arena_alloc(&copy->arena, sizeof *kept);

    *kept = number;
    return kept;
}

void copy_source_ask(struct store_copy *copy)
{
    for (unsigned i = 0; i < copy->from.settings->partitions; i++) {
        unsigned *number = number_kept(copy, i);

        copy_call_on(&copy->from, i, "HMGET", "store", TEXT(""),
                     COPY_WITH(TEXT("id"), TEXT("partitions"), TEXT("partition"), TEXT("copying"), TEXT("moved"),
                               TEXT("moved_schema"), TEXT("missing")),
                     on_store, number);
        copy_read(&copy->from, i, "GET", "schema", TEXT(""), on_schema, number);
        copy_read(&copy->from, i, "GET", "lease_max", TEXT(""), on_lease_max, NULL);
    }
}

/* Looking whether anything changes there */

static void add_field(uint64_t *sum, struct text field, struct text value)
{
    *sum += ((uint64_t)crc32_of(field) << 1 | 1) * (1 + (uint64_t)crc32_of(value));
}

static bool read_pair(const struct redis_reply *reply, size_t at, struct text *ret_field, struct text *ret_value)
{
    return reply_text(reply->items[at], ret_field) && reply_text(reply->items[at + 1], ret_value);
}

/* A hash, in whatever order its fields and the partitions answer. */
static void on_nodes(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    struct text field, value;

    for (size_t f = 0; reply->type == REPLY_ARRAY && f + 1 < reply->count; f += 2)
        if (read_pair(reply, f, &field, &value))
            add_field(item, field, value);
        else
            copy_malformed(&copy->from, "hash");
}

/* The name that a field has in a store that was not left (store_leave.lua); empty: it has none. So the sum is the same
 * before and after. */
static struct text name_before(struct text field)
{
    static const struct {
        const char *now, *before;
    } FIELDS[] = {{"id", ""}, {"copying", "id"}, {"moved", ""}, {"moved_schema", ""}, {"moved_former", "former"}};

    for (size_t i = 0; i < sizeof FIELDS / sizeof *FIELDS; i++)
        if (text_equal(field, text_of(FIELDS[i].now)))
            return text_of(FIELDS[i].before);
    return field;
}

static bool says_moved(const struct redis_reply *reply)
{
    struct text field, value;

    for (size_t f = 0; reply->type == REPLY_ARRAY && f + 1 < reply->count; f += 2)
        if (read_pair(reply, f, &field, &value) && text_equal(field, TEXT("moved")))
            return true;
    return false;
}

static void on_changes(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    bool has_moved = says_moved(reply);
    struct text field, value;

    for (size_t f = 0; reply->type == REPLY_ARRAY && f + 1 < reply->count; f += 2) {
        if (!read_pair(reply, f, &field, &value))
            copy_malformed(&copy->from, "hash");
        else if (!has_moved)
            add_field(item, field, value);
        else if (name_before(field).len > 0)
            add_field(item, name_before(field), value);
    }
}

static void on_listening(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    int64_t *sum = item, count;

    if (reply_integer(reply_at(reply, 1), &count))
        *sum += count;
    else
        copy_malformed(&copy->from, "number of subscriptions");
}

void copy_source_look(struct store_copy *copy, unsigned nth)
{
    struct copy_seen *seen = &copy->seen[nth];
    struct copy_name name;

    *seen = (struct copy_seen){0};
    for (unsigned i = 0; i < copy->from.settings->partitions; i++) {
        struct text channel = copy_name(&name, &copy->from, i, "inv", TEXT(""));

        copy_read(&copy->from, i, "HGETALL", "nodes", TEXT(""), on_nodes, &seen->nodes);
        copy_read(&copy->from, i, "HGETALL", "store", TEXT(""), on_changes, &seen->changes);
        copy_call(&copy->from, i, COPY_WITH(TEXT("PUBSUB"), TEXT("NUMSUB"), channel), on_listening,
                  &seen->nodes_listening);
        copy_call(&copy->from, i, COPY_WITH(TEXT("PUBSUB"), TEXT("SHARDNUMSUB"), channel), on_listening,
                  &seen->nodes_listening);
    }
}

/* Leaving it */

/* argv: what follows the prefix. */
static void call_script(struct store_copy *copy, unsigned partition, struct text script, size_t argc,
                        const struct text *argv, copy_answered *answered)
{
    struct copy_name no_store, prefix;
    struct text all[SCRIPT_ARGS_MAX + 4] = {TEXT("EVAL"), script, TEXT("1"),
                                            copy_name(&no_store, &copy->from, partition, "no_store", TEXT("")),
                                            copy_name(&prefix, &copy->from, partition, "", TEXT(""))};

    for (size_t i = 0; i < argc; i++)
        all[5 + i] = argv[i];
    copy_call(&copy->from, partition, 5 + argc, all, answered, NULL);
}

static void on_left(struct store_copy *copy, UNUSED void *item, const struct redis_reply *reply)
{
    struct text word;

    if (!reply_text(reply_at(reply, 0), &word) || !text_equal(word, TEXT("ok")))
        copy_fail(copy, "Something changes the source: stop it, and run the copy again.");
}

static void on_replicas(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    const unsigned *expected = item;
    int64_t replicas;

    if (!reply_integer(reply, &replicas) || replicas < *expected)
        copy_fail(copy, "Not all replicas of the source have heard that it was copied: bring them back, or take them "
                        "away, and run the copy again.");
}

/* Also in a failover of the source, nobody may find it as it was. */
static void on_role(struct store_copy *copy, void *item, const struct redis_reply *reply)
{
    const struct redis_reply *replicas = reply_at(reply, 2);
    unsigned partition = *(const unsigned *)item, count = replicas ? (unsigned)replicas->count : 0;
    char number[24];

    if (!replicas || replicas->type != REPLY_ARRAY || count == 0)
        return;
    snprintf(number, sizeof number, "%u", count);
    copy_call(&copy->from, partition, 3, (struct text[]){TEXT("WAIT"), text_of(number), TEXT(WAIT_MS)}, on_replicas,
              number_kept(copy, count));
}

void copy_source_leave(struct store_copy *copy)
{
    char id[STORE_ID_CHARS + 1], schema[16];

    random_hex(id, sizeof id);
    snprintf(schema, sizeof schema, "%d", STORE_COPY_SCHEMA);
    copy->may_have_left = true;
    if (copy->finished == 0)
        copy->failed = copy_source_return; /* nobody serves the target */
    for (unsigned i = 0; i < copy->from.settings->partitions; i++) {
        call_script(copy, i, store_leave_script(), 4,
                    (struct text[]){text_of(copy->id), text_of(copy->place), text_of(id), text_of(schema)}, on_left);
        copy_call(&copy->from, i, 1, (struct text[]){TEXT("ROLE")}, on_role, number_kept(copy, i));
    }
    copy_next(copy);
}

static void returned(struct store_copy *copy)
{
    copy->may_have_left = false;
    copy->end(copy);
}

void copy_source_return(struct store_copy *copy)
{
    copy->failed = copy->end;
    memcpy(copy->cause, copy->trouble, sizeof copy->cause);
    copy->trouble[0] = '\0';
    for (unsigned i = 0; i < copy->from.settings->partitions; i++)
        call_script(copy, i, store_return_script(), 0, NULL, NULL);
    copy_then(copy, returned);
}
