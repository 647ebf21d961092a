#include "commands.h"
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stream_id LOWEST = {0, 0}, HIGHEST = {UINT64_MAX, UINT64_MAX};

struct text print_id(char storage[NUMBER_BYTES], struct stream_id id)
{
    return (struct text){storage, (size_t)snprintf(storage, NUMBER_BYTES, "%" PRIu64 "-%" PRIu64, id.ms, id.seq)};
}

static bool parse_number(struct text text, uint64_t *ret_value)
{
    char *end;
    int64_t number;

    if (number_parse_i64(text, &number)) {
        *ret_value = (uint64_t)number;
        return number >= 0;
    }
    char storage[128];
    if (text.len == 0 || text.len >= sizeof storage)
        return false;
    memcpy(storage, text.ptr, text.len);
    storage[text.len] = '\0';
    errno = 0;
    *ret_value = strtoull(storage, &end, 10); /* as Redis does: "+1" and " 01" are numbers */
    return errno == 0 && *end == '\0';
}

/* "ms-seq" or "ms", which stands for ms-seq_missing. *ret_any_seq, if given: it may be "ms-*". */
static bool parse_id(struct text text, uint64_t seq_missing, struct stream_id *ret_id, bool *ret_any_seq)
{
    struct text ms = {0}, rest = text;
    bool is_any = false;

    if (!text_next(&rest, '-', &ms) || !parse_number(ms, &ret_id->ms))
        return false;
    ret_id->seq = seq_missing;
    if (rest.ptr) {
        is_any = ret_any_seq && text_equal(rest, TEXT("*"));
        if (!is_any && !parse_number(rest, &ret_id->seq))
            return false;
    }
    if (ret_any_seq)
        *ret_any_seq = is_any;
    return true;
}

static bool read_id(struct call *call, size_t index, uint64_t seq_missing, struct stream_id *ret_id)
{
    if (parse_id(call->argv[index], seq_missing, ret_id, NULL))
        return true;
    say_error(call, "ERR Invalid stream ID specified as stream command argument");
    return false;
}

static bool step_id(struct stream_id *id, bool up)
{
    if (stream_compare(*id, up ? HIGHEST : LOWEST) == 0)
        return false;
    if (up) {
        id->ms += id->seq == UINT64_MAX;
        id->seq++;
    } else {
        id->ms -= id->seq == 0;
        id->seq--;
    }
    return true;
}

/* One end of XRANGE. */
static bool read_end(struct call *call, size_t index, bool is_low, struct stream_id *ret_id)
{
    struct text text = call->argv[index];
    bool is_exclusive = text.len > 1 && text.ptr[0] == '(';

    if (text_equal(text, TEXT("-")) || text_equal(text, TEXT("+"))) {
        *ret_id = text.ptr[0] == '-' ? LOWEST : HIGHEST;
        return true;
    }
    if (!parse_id(text_skip(text, is_exclusive), is_low ? 0 : UINT64_MAX, ret_id, NULL)) {
        say_error(call, "ERR Invalid stream ID specified as stream command argument");
        return false;
    }
    if (is_exclusive && !step_id(ret_id, is_low)) {
        say_errorf(call, "ERR invalid %s ID for the interval", is_low ? "start" : "end");
        return false;
    }
    return true;
}

struct trim_options {
    struct stream_trim trim;
    bool is_given, no_make, has_limit;
    size_t place; /* of what is trimmed to, in the arguments */
    size_t next;  /* argument behind the options */
};

static bool is_trim_word(const struct call *call, size_t index)
{
    return arg_is(call, index, "MAXLEN") || arg_is(call, index, "MINID");
}

/* MAXLEN or MINID at *index, with what follows. */
static bool read_trim(struct call *call, size_t *index, struct trim_options *options)
{
    struct stream_trim *trim = &options->trim;
    int64_t length;
    bool by_id = arg_is(call, *index, "MINID");

    if (options->is_given) {
        say_error(call, "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
        return false;
    }
    trim->is_approximate = false;
    if (*index + 2 < call->argc && (arg_is(call, *index + 1, "~") || arg_is(call, *index + 1, "=")))
        trim->is_approximate = arg_is(call, ++*index, "~");
    options->place = ++*index;
    options->is_given = true;
    trim->by_id = by_id;
    if (by_id)
        return read_id(call, *index, 0, &trim->id);
    if (!arg_i64(call, *index, &length))
        return false;
    if (length < 0) {
        say_error(call, "ERR The MAXLEN argument must be >= 0.");
        return false;
    }
    trim->length = (uint64_t)length;
    return true;
}

static bool read_limit(struct call *call, size_t index, struct trim_options *options)
{
    int64_t limit;

    if (!arg_i64(call, index, &limit))
        return false;
    if (limit < 0) {
        say_error(call, "ERR The LIMIT argument must be >= 0.");
        return false;
    }
    options->trim.limit = (uint64_t)limit;
    options->has_limit = true;
    return true;
}

/* The options of XADD and XTRIM from argument 2 on. */
static bool read_options(struct call *call, bool is_add, struct trim_options *options)
{
    size_t i = 2;

    for (; i < call->argc; i++) {
        bool is_more = i + 1 < call->argc;

        if (is_add && arg_is(call, i, "*"))
            break;
        if (is_more && is_trim_word(call, i)) {
            if (!read_trim(call, &i, options))
                return false;
        } else if (is_more && arg_is(call, i, "LIMIT")) {
            if (!read_limit(call, ++i, options))
                return false;
        } else if (is_add && arg_is(call, i, "NOMKSTREAM"))
            options->no_make = true;
        else if (is_add)
            break;
        else {
            say_syntax(call);
            return false;
        }
    }
    options->next = i;
    return true;
}

/* Whether they fit together. */
static bool check_options(struct call *call, bool is_add, struct trim_options *options)
{
    enum { LIMIT_USUAL = 10000 };

    if (options->has_limit && !options->is_given) {
        say_error(call, "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
        return false;
    }
    if (!is_add && !options->is_given) {
        say_error(call, "ERR syntax error, XTRIM must be called with a trimming strategy");
        return false;
    }
    if (options->has_limit && !options->trim.is_approximate) {
        say_error(call, "ERR syntax error, LIMIT cannot be used without the special ~ option");
        return false;
    }
    if (!options->has_limit && options->trim.is_approximate)
        options->trim.limit = LIMIT_USUAL;
    return true;
}

/* The id that the stream gives to an entry for `id`, whose seq may be missing, or for now. False: the error is said. */
static bool choose_id(struct call *call, const struct stream *stream, bool is_any, bool is_any_seq,
                      struct stream_id *id)
{
    if (is_any) {
        *id = (struct stream_id){(uint64_t)sim_now_ms(call->server), 0};
        if (id->ms <= stream->last.ms) {
            *id = stream->last;
            if (!step_id(id, true)) {
                say_error(call, "ERR The stream has exhausted the last possible ID, unable to add more items");
                return false;
            }
        }
        return true;
    }
    if (is_any_seq) {
        id->seq = id->ms == stream->last.ms ? stream->last.seq + 1 : 0;
        if (id->ms == stream->last.ms && stream->last.seq == UINT64_MAX)
            id->seq = 0;
    }
    if (stream_compare(*id, stream->last) > 0)
        return true;
    say_error(call, "ERR The ID specified in XADD is equal or smaller than the target stream top item");
    return false;
}

static void log_added(struct call *call, const struct trim_options *options, struct text id)
{
    struct text *argv = mem_alloc(call->argc * sizeof *argv);

    for (size_t i = 0; i < call->argc; i++)
        argv[i] = i == options->next ? id : call->argv[i];
    log_argv(call->server, (unsigned)(call->db - call->server->databases), call->argc, argv);
    free(argv);
}

static void add_entry(struct call *call, const struct trim_options *options, bool is_any, bool is_any_seq,
                      struct stream_id id)
{
    struct value *value, *made = NULL;
    char storage[NUMBER_BYTES];

    if (!space_read(call, call->argv[1], VALUE_STREAM, &value))
        return;
    if (!value && options->no_make) {
        say_nil(call);
        return;
    }
    if (!value)
        value = made = value_new(VALUE_STREAM);
    if (!choose_id(call, &value->stream, is_any, is_any_seq, &id)) {
        value_free(made);
        return;
    }
    if (made)
        space_put(call, call->argv[1], made);
    stream_append(&value->stream, id, call->argc - options->next - 1, call->argv + options->next + 1);
    if (options->is_given)
        stream_trim(&value->stream, &options->trim);
    log_added(call, options, print_id(storage, id));
    say_text(call, print_id(storage, id));
}

void cmd_xadd(struct call *call)
{
    struct trim_options options = {0};
    struct stream_id id = {0};
    bool is_any, is_any_seq = false;

    if (!read_options(call, true, &options))
        return;
    is_any = arg_is(call, options.next, "*");
    if (!is_any && options.next < call->argc && !parse_id(call->argv[options.next], 0, &id, &is_any_seq)) {
        say_error(call, "ERR Invalid stream ID specified as stream command argument");
        return;
    }
    if (!check_options(call, true, &options))
        return;
    if (call->argc < options.next + 3 || (call->argc - options.next) % 2 == 0)
        say_errorf(call, "ERR wrong number of arguments for '%s' command", call->command->name);
    else if (!is_any && !is_any_seq && stream_compare(id, LOWEST) == 0)
        say_error(call, "ERR The ID specified in XADD must be greater than 0-0");
    else
        add_entry(call, &options, is_any, is_any_seq, id);
}

void cmd_xtrim(struct call *call)
{
    struct trim_options options = {0};
    struct value *value;

    if (read_options(call, false, &options) && check_options(call, false, &options) &&
        space_read(call, call->argv[1], VALUE_STREAM, &value))
        say_integer(call, value ? (int64_t)stream_trim(&value->stream, &options.trim) : 0);
}

void cmd_xlen(struct call *call)
{
    struct value *value;

    if (space_read(call, call->argv[1], VALUE_STREAM, &value))
        say_integer(call, value ? (int64_t)value->stream.length : 0);
}

void say_entry(struct call *call, const struct stream_entry *entry)
{
    char storage[NUMBER_BYTES];

    say_array(call, 2);
    say_text(call, print_id(storage, entry->id));
    say_array(call, entry->count);
    for (size_t i = 0; i < entry->count; i++)
        say_text(call, entry->fields[i]);
}

static bool is_inside(const struct stream_entry *entry, struct stream_id last, bool is_reverse)
{
    int order = stream_compare(entry->id, last);

    return is_reverse ? order >= 0 : order <= 0;
}

static void say_range(struct call *call, const struct stream *stream, struct stream_id from, struct stream_id to,
                      uint64_t most, bool is_reverse)
{
    struct stream_place place;
    struct buf *out = call->out, entries;
    uint64_t count = 0;
    bool is_there = is_reverse ? stream_seek_back(stream, from, &place) : stream_seek(stream, from, &place);

    buf_init(&entries, SIZE_MAX / 2);
    call->out = &entries;
    while (is_there && count < most && is_inside(stream_at(stream, place), to, is_reverse)) {
        say_entry(call, stream_at(stream, place));
        count++;
        is_there = is_reverse ? stream_previous(stream, &place) : stream_next(stream, &place);
    }
    call->out = out;
    say_array(call, count);
    buf_append_text(out, buf_text(&entries));
    buf_finish(&entries);
}

static void run_range(struct call *call, bool is_reverse)
{
    struct stream_id low, high;
    int64_t count = -1;
    struct value *value;

    if (!read_end(call, is_reverse ? 3 : 2, true, &low) || !read_end(call, is_reverse ? 2 : 3, false, &high))
        return;
    for (size_t i = 4; i < call->argc; i += 2) {
        if (!arg_is(call, i, "COUNT") || i + 1 == call->argc) {
            say_syntax(call);
            return;
        }
        if (!arg_i64(call, i + 1, &count))
            return;
        count = count < 0 ? 0 : count;
    }
    if (!space_read(call, call->argv[1], VALUE_STREAM, &value))
        return;
    if (!value)
        say_array(call, 0);
    else if (count == 0)
        say_nil_array(call);
    else
        say_range(call, &value->stream, is_reverse ? high : low, is_reverse ? low : high,
                  count < 0 ? UINT64_MAX : (uint64_t)count, is_reverse);
}

void cmd_xrange(struct call *call)
{
    run_range(call, false);
}

void cmd_xrevrange(struct call *call)
{
    run_range(call, true);
}

void cmd_xdel(struct call *call)
{
    struct value *value;
    struct stream_id id;
    int64_t deleted = 0;

    if (!space_read(call, call->argv[1], VALUE_STREAM, &value))
        return;
    if (!value) {
        say_integer(call, 0);
        return;
    }
    for (size_t i = 2; i < call->argc; i++)
        if (!read_id(call, i, 0, &id))
            return;
    for (size_t i = 2; i < call->argc; i++) {
        (void)!parse_id(call->argv[i], 0, &id, NULL);
        deleted += stream_delete(&value->stream, id);
    }
    say_integer(call, deleted);
}

/* The options of XSETID. False: the error is said. */
static bool read_facts(struct call *call, struct stream_id id, int64_t *added, struct stream_id *deleted)
{
    for (size_t i = 3; i < call->argc; i += 2) {
        if (arg_is(call, i, "ENTRIESADDED") && i + 1 < call->argc) {
            if (!arg_i64(call, i + 1, added))
                return false;
            if (*added < 0) {
                say_error(call, "ERR entries_added must be positive");
                return false;
            }
        } else if (arg_is(call, i, "MAXDELETEDID") && i + 1 < call->argc) {
            if (!read_id(call, i + 1, 0, deleted))
                return false;
            if (stream_compare(id, *deleted) < 0) {
                say_error(call, "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
                return false;
            }
        } else {
            say_syntax(call);
            return false;
        }
    }
    return true;
}

static const char *facts_error(const struct stream *stream, struct stream_id id, int64_t added)
{
    if (stream_compare(id, stream->deleted) < 0)
        return "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id";
    if (stream->length == 0)
        return NULL;
    if (stream_compare(id, stream_last(stream)->id) < 0)
        return "ERR The ID specified in XSETID is smaller than the target stream top item";
    if (added >= 0 && stream->length > (uint64_t)added)
        return "ERR The entries_added specified in XSETID is smaller than the target stream length";
    return NULL;
}

void cmd_xsetid(struct call *call)
{
    struct value *value;
    struct stream_id id, deleted = LOWEST;
    int64_t added = -1;

    if (!read_id(call, 2, 0, &id) || !read_facts(call, id, &added, &deleted))
        return;
    if (!space_read(call, call->argv[1], VALUE_STREAM, &value))
        return;
    if (!value) {
        say_error(call, "ERR no such key");
        return;
    }
    const char *trouble = facts_error(&value->stream, id, added);
    if (trouble) {
        say_error(call, trouble);
        return;
    }
    value->stream.last = id;
    if (stream_compare(deleted, LOWEST) != 0)
        value->stream.deleted = deleted;
    value->stream.added = added >= 0 ? (uint64_t)added : value->stream.added;
    say_ok(call);
}
