#include "commands.h"
#include "internal.h"

static void say_fact(struct call *call, const char *name, uint64_t number)
{
    say_text(call, text_of(name));
    say_integer(call, (int64_t)number);
}

static void say_fact_id(struct call *call, const char *name, struct stream_id id)
{
    char storage[NUMBER_BYTES];

    say_text(call, text_of(name));
    say_text(call, print_id(storage, id));
}

static void say_outermost(struct call *call, const char *name, const struct stream *stream, bool is_last)
{
    say_text(call, text_of(name));
    if (stream->length == 0) {
        say_nil(call);
        return;
    }
    say_entry(call, is_last ? stream_last(stream) : stream_at(stream, (struct stream_place){0, 0}));
}

/* How many bytes of two names in the tree of nodes are equal, from the first on: 8 of `ms`, then 8 of `seq`. */
static size_t shared_bytes(struct stream_id a, struct stream_id b)
{
    if (a.ms != b.ms)
        return (size_t)__builtin_clzll(a.ms ^ b.ms) / 8;
    return a.seq == b.seq ? 16 : 8 + (size_t)__builtin_clzll(a.seq ^ b.seq) / 8;
}

/* Of Redis' radix tree, below the byte `depth` that is the same for all of these: what they share makes one node, and
 * where they part there is another, as at each end. */
static size_t count_tree(const struct stream_node *nodes, size_t count, size_t depth)
{
    size_t shared = shared_bytes(nodes[0].first, nodes[count - 1].first), found = 1 + (shared > depth), next;

    for (size_t from = 0; count > 1 && from < count; from = next) {
        for (next = from + 1; next < count && shared_bytes(nodes[from].first, nodes[next].first) > shared; next++)
            continue;
        found += count_tree(nodes + from, next - from, shared + 1);
    }
    return found;
}

void cmd_xinfo_stream(struct call *call)
{
    struct value *value;

    if (!space_read(call, call->argv[2], VALUE_STREAM, &value))
        return;
    if (!value) {
        say_error(call, "ERR no such key");
        return;
    }
    if (call->argc > 3) {
        say_syntax(call);
        return;
    }
    const struct stream *stream = &value->stream;
    say_array(call, 20);
    say_fact(call, "length", stream->length);
    say_fact(call, "radix-tree-keys", stream->node_count);
    say_fact(call, "radix-tree-nodes", stream->node_count > 0 ? count_tree(stream->nodes, stream->node_count, 0) : 1);
    say_fact_id(call, "last-generated-id", stream->last);
    say_fact_id(call, "max-deleted-entry-id", stream->deleted);
    say_fact(call, "entries-added", stream->added);
    say_fact_id(call, "recorded-first-entry-id",
                stream->length > 0 ? stream->nodes[0].entries[0].id : (struct stream_id){0});
    say_fact(call, "groups", 0);
    say_outermost(call, "first-entry", stream, false);
    say_outermost(call, "last-entry", stream, true);
}
