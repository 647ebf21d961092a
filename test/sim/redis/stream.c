#include "stream.h"

#include "base/mem.h"
#include "dict.h"
#include <stdlib.h>
#include <string.h>

/* Redis' stream-node-max-bytes and stream-node-max-entries, and the bytes of an empty node. */
enum { NODE_MAX_BYTES = 4096, NODE_MAX_ENTRIES = 100, NODE_BYTES = 7 };

int stream_compare(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms)
        return a.ms < b.ms ? -1 : 1;
    return (a.seq > b.seq) - (a.seq < b.seq);
}

static void texts_free(struct text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_release(texts[i]);
    free(texts);
}

static void node_finish(struct stream_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        texts_free(node->entries[i].fields, node->entries[i].count);
    free(node->entries);
    texts_free(node->names, node->name_count);
}

void stream_finish(struct stream *stream)
{
    for (size_t i = 0; i < stream->node_count; i++)
        node_finish(&stream->nodes[i]);
    free(stream->nodes);
    *stream = (struct stream){0};
}

static struct text *texts_copy(const struct text *texts, size_t count)
{
    struct text *copy = mem_alloc((count + 1) * sizeof *copy);

    for (size_t i = 0; i < count; i++)
        copy[i] = text_own(texts[i]);
    return copy;
}

static void node_copy(struct stream_node *to, const struct stream_node *from)
{
    *to = *from;
    to->names = texts_copy(from->names, from->name_count);
    to->room = from->count;
    to->entries = mem_alloc(from->count * sizeof *to->entries);
    for (size_t i = 0; i < from->count; i++) {
        to->entries[i] = from->entries[i];
        to->entries[i].fields = texts_copy(from->entries[i].fields, from->entries[i].count);
    }
}

void stream_copy(struct stream *to, const struct stream *from)
{
    *to = *from;
    to->node_room = from->node_count;
    to->nodes = from->node_count > 0 ? mem_alloc(from->node_count * sizeof *to->nodes) : NULL;
    for (size_t i = 0; i < from->node_count; i++)
        node_copy(&to->nodes[i], &from->nodes[i]);
}

/* What a listpack takes for a number, and for a text. */

static size_t number_bytes(int64_t value)
{
    if (value >= 0 && value <= 127)
        return 2;
    if (value >= -4096 && value <= 4095)
        return 3;
    if (value >= INT16_MIN && value <= INT16_MAX)
        return 4;
    if (value >= -8388608 && value <= 8388607)
        return 5;
    return value >= INT32_MIN && value <= INT32_MAX ? 6 : 10;
}

static size_t length_bytes(size_t len)
{
    size_t bytes = 1;

    for (; len > 127; len >>= 7)
        bytes++;
    return bytes;
}

/* Only as a number would be printed. */
static bool is_number(struct text text, int64_t *ret_value)
{
    bool is_negative = text.len > 0 && text.ptr[0] == '-';
    uint64_t value;

    if (!text_to_u64(text_skip(text, is_negative), (uint64_t)INT64_MAX + is_negative, &value) ||
        (is_negative && value == 0))
        return false;
    *ret_value = is_negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

static size_t text_bytes(struct text text)
{
    int64_t number;
    size_t bytes;

    if (text.len <= 20 && is_number(text, &number))
        return number_bytes(number);
    bytes = text.len + (text.len < 64 ? 1 : text.len < 4096 ? 2 : 5);
    return bytes + length_bytes(bytes);
}

static bool has_names_of(const struct stream_node *node, size_t count, const struct text *fields)
{
    if (node->name_count * 2 != count)
        return false;
    for (size_t i = 0; i < node->name_count; i++)
        if (!text_equal(node->names[i], fields[2 * i]))
            return false;
    return true;
}

static size_t entry_bytes(const struct stream_node *node, struct stream_id id, size_t count, const struct text *fields)
{
    bool is_same = has_names_of(node, count, fields);
    int64_t elements = (int64_t)count / 2 + 3;
    size_t bytes =
        2 + number_bytes((int64_t)(id.ms - node->first.ms)) + number_bytes((int64_t)(id.seq - node->first.seq));

    if (!is_same) {
        bytes += number_bytes((int64_t)count / 2);
        elements += (int64_t)count / 2 + 1;
    }
    for (size_t i = is_same; i < count; i += is_same ? 2 : 1)
        bytes += text_bytes(fields[i]);
    return bytes + number_bytes(elements);
}

static void node_begin(struct stream *stream, struct stream_id id, size_t count, const struct text *fields)
{
    struct stream_node *node;

    stream->nodes = mem_grow(stream->nodes, stream->node_count, &stream->node_room, sizeof *stream->nodes);
    node = &stream->nodes[stream->node_count++];
    *node = (struct stream_node){.first = id, .name_count = count / 2};
    node->names = mem_alloc((count / 2 + 1) * sizeof *node->names);
    node->bytes = NODE_BYTES + 2 + 2 + number_bytes((int64_t)count / 2) + 2;
    for (size_t i = 0; i < count / 2; i++) {
        node->names[i] = text_own(fields[2 * i]);
        node->bytes += text_bytes(fields[2 * i]);
    }
}

static bool has_room(const struct stream_node *node, size_t count, const struct text *fields)
{
    size_t bytes = node->bytes;

    for (size_t i = 0; i < count; i++)
        bytes += fields[i].len;
    return bytes < NODE_MAX_BYTES && node->all < NODE_MAX_ENTRIES;
}

void stream_append(struct stream *stream, struct stream_id id, size_t count, const struct text *fields)
{
    struct stream_node *node = stream->node_count > 0 ? &stream->nodes[stream->node_count - 1] : NULL;
    struct stream_entry *entry;

    if (!node || !has_room(node, count, fields))
        node_begin(stream, id, count, fields);
    node = &stream->nodes[stream->node_count - 1];
    node->entries = mem_grow(node->entries, node->count, &node->room, sizeof *node->entries);
    entry = &node->entries[node->count++];
    *entry = (struct stream_entry){.id = id, .count = count, .fields = mem_alloc(count * sizeof *entry->fields)};
    for (size_t i = 0; i < count; i++)
        entry->fields[i] = text_own(fields[i]);
    node->bytes += entry_bytes(node, id, count, fields);
    node->all++;
    stream->last = id;
    stream->length++;
    stream->added++;
}

const struct stream_entry *stream_at(const struct stream *stream, struct stream_place place)
{
    return &stream->nodes[place.node].entries[place.entry];
}

const struct stream_entry *stream_last(const struct stream *stream)
{
    const struct stream_node *node = &stream->nodes[stream->node_count - 1];

    return &node->entries[node->count - 1];
}

bool stream_next(const struct stream *stream, struct stream_place *place)
{
    if (++place->entry < stream->nodes[place->node].count)
        return true;
    place->entry = 0;
    return ++place->node < stream->node_count;
}

bool stream_previous(const struct stream *stream, struct stream_place *place)
{
    if (place->entry-- > 0)
        return true;
    if (place->node-- == 0)
        return false;
    place->entry = stream->nodes[place->node].count - 1;
    return true;
}

/* How many nodes begin with that id or a lower one. */
static size_t nodes_until(const struct stream *stream, struct stream_id id)
{
    size_t low = 0, high = stream->node_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (stream_compare(stream->nodes[middle].entries[0].id, id) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool stream_seek(const struct stream *stream, struct stream_id id, struct stream_place *ret_place)
{
    size_t until = nodes_until(stream, id);

    *ret_place = (struct stream_place){until > 0 ? until - 1 : 0, 0};
    if (stream->node_count == 0)
        return false;
    while (stream_compare(stream_at(stream, *ret_place)->id, id) < 0)
        if (!stream_next(stream, ret_place))
            return false;
    return true;
}

bool stream_seek_back(const struct stream *stream, struct stream_id id, struct stream_place *ret_place)
{
    size_t until = nodes_until(stream, id);

    if (until == 0)
        return false;
    *ret_place = (struct stream_place){until - 1, stream->nodes[until - 1].count - 1};
    while (stream_compare(stream_at(stream, *ret_place)->id, id) > 0)
        if (!stream_previous(stream, ret_place))
            return false;
    return true;
}

static void remove_node(struct stream *stream, size_t index)
{
    node_finish(&stream->nodes[index]);
    stream->node_count--;
    memmove(stream->nodes + index, stream->nodes + index + 1, (stream->node_count - index) * sizeof *stream->nodes);
}

static void remove_at(struct stream *stream, struct stream_place place)
{
    struct stream_node *node = &stream->nodes[place.node];

    stream->length--;
    if (node->count == 1) {
        remove_node(stream, place.node);
        return;
    }
    texts_free(node->entries[place.entry].fields, node->entries[place.entry].count);
    node->count--;
    memmove(node->entries + place.entry, node->entries + place.entry + 1,
            (node->count - place.entry) * sizeof *node->entries);
}

bool stream_delete(struct stream *stream, struct stream_id id)
{
    struct stream_place place;

    if (!stream_seek(stream, id, &place) || stream_compare(stream_at(stream, place)->id, id) != 0)
        return false;
    remove_at(stream, place);
    if (stream_compare(id, stream->deleted) > 0)
        stream->deleted = id;
    return true;
}

/* Whether the node's entries all go. */
static bool goes_whole(const struct stream *stream, const struct stream_trim *trim, const struct stream_node *node)
{
    if (trim->by_id)
        return stream_compare(node->entries[node->count - 1].id, trim->id) < 0;
    return stream->length - node->count >= trim->length;
}

static bool goes_first(const struct stream *stream, const struct stream_trim *trim)
{
    if (stream->length == 0)
        return false;
    return trim->by_id ? stream_compare(stream->nodes[0].entries[0].id, trim->id) < 0 : stream->length > trim->length;
}

uint64_t stream_trim(struct stream *stream, const struct stream_trim *trim)
{
    uint64_t before = stream->length;

    while (goes_first(stream, trim)) {
        size_t entries = stream->nodes[0].count;

        if (trim->limit > 0 && before - stream->length + entries > trim->limit)
            break;
        if (goes_whole(stream, trim, &stream->nodes[0])) {
            stream->length -= entries;
            remove_node(stream, 0);
            continue;
        }
        if (trim->is_approximate)
            break;
        while (goes_first(stream, trim))
            remove_at(stream, (struct stream_place){0, 0});
    }
    return before - stream->length;
}
