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
    say_fact(call, "radix-tree-nodes", stream->node_count + 1);
    say_fact_id(call, "last-generated-id", stream->last);
    say_fact_id(call, "max-deleted-entry-id", stream->deleted);
    say_fact(call, "entries-added", stream->added);
    say_fact_id(call, "recorded-first-entry-id",
                stream->length > 0 ? stream->nodes[0].entries[0].id : (struct stream_id){0});
    say_fact(call, "groups", 0);
    say_outermost(call, "first-entry", stream, false);
    say_outermost(call, "last-entry", stream, true);
}
