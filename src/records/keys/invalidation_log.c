#include "records/invalidation_log.h"

#include "base/mem.h"
#include "engine/verb.h"

#include <stdlib.h>

struct read_call {
    struct store *store;
    invalidations_read *done;
    void *arg;
};

static void log_called(void *arg, enum store_result result, const struct redis_reply *reply);

void invalidation_log_read(struct store *store, const struct log_position *after, invalidations_read *done, void *arg)
{
    struct read_call *call = mem_alloc(sizeof *call);
    char position[LOG_POSITION_BYTES] = "";
    struct script_args args;

    *call = (struct read_call){store, done, arg};
    if (after)
        log_position_print(*after, position);
    args_begin(&args);
    args_add(&args, text_of(position));
    args_add_int(&args, INVALIDATIONS_PER_PAGE);
    store_call_script(store, SCRIPT_invalidations_read, SCRIPT_READS, args.count, args.argv, log_called, call);
}

static bool read_position(const struct redis_reply *reply, struct log_position *ret_position)
{
    struct text text;

    return reply_text(reply, &text) && log_position_parse(text, ret_position);
}

static struct text field_of(const struct redis_reply *fields, struct text wanted)
{
    struct text name, value;

    for (size_t i = 0; fields && i + 1 < fields->count; i += 2)
        if (reply_text(reply_at(fields, i), &name) && text_equal(name, wanted) &&
            reply_text(reply_at(fields, i + 1), &value))
            return value;
    return (struct text){0};
}

static enum invalidation_kind kind_of_key(struct text id, struct text at, struct invalidation *invalidation)
{
    uint64_t at_ms;

    if (!id_parse(ID_KEY, id, &invalidation->key) && !id_parse(ID_DEVICE, id, &invalidation->key))
        return INVALIDATION_UNREADABLE;
    if (!at.ptr)
        return INVALIDATION_REVOKED;
    if (at.len == 0)
        return INVALIDATION_UNSCHEDULED;
    if (!text_to_u64(at, INT64_MAX, &at_ms))
        return INVALIDATION_UNREADABLE;
    invalidation->at_ms = (int64_t)at_ms;
    return INVALIDATION_SCHEDULED;
}

static struct text end_of(const struct redis_reply *fields)
{
    struct text replaced = field_of(fields, TEXT("replaced_at"));

    return replaced.ptr ? replaced : field_of(fields, TEXT("at"));
}

static enum invalidation_kind kind_of(const struct redis_reply *fields, struct invalidation *invalidation)
{
    struct text key = field_of(fields, TEXT("id")), state = field_of(fields, TEXT("state"));

    if (!id_parse(ID_ACCOUNT, field_of(fields, TEXT("account")), &invalidation->account))
        return INVALIDATION_UNREADABLE;
    if (key.ptr)
        return kind_of_key(key, end_of(fields), invalidation);
    if (text_equal(state, TEXT("suspended")))
        return INVALIDATION_SUSPENDED;
    return text_equal(state, TEXT("resumed")) ? INVALIDATION_RESUMED : INVALIDATION_UNREADABLE;
}

static bool read_entry(const struct redis_reply *entry, struct invalidation *ret_invalidation)
{
    if (!read_position(reply_at(entry, 0), &ret_invalidation->position) || ret_invalidation->position.ms > INT64_MAX)
        return false;
    ret_invalidation->at_ms = (int64_t)ret_invalidation->position.ms;
    ret_invalidation->kind = kind_of(reply_at(entry, 1), ret_invalidation);
    return true;
}

static bool read_page(const struct redis_reply *reply, struct invalidation items[INVALIDATIONS_PER_PAGE],
                      struct invalidation_page *ret_page)
{
    enum { HEAD = 2 };
    int64_t more;

    if (reply->count < HEAD || reply->count - HEAD > INVALIDATIONS_PER_PAGE ||
        !read_position(reply_at(reply, 0), &ret_page->last) || !reply_integer(reply_at(reply, 1), &more))
        return false;
    ret_page->has_more = more != 0;
    ret_page->items = items;
    ret_page->count = reply->count - HEAD;
    for (size_t i = 0; i < ret_page->count; i++)
        if (!read_entry(reply_at(reply, i + HEAD), &items[i]))
            return false;
    return true;
}

static void log_called(void *arg, enum store_result result, const struct redis_reply *reply)
{
    struct read_call *call = arg;
    struct invalidation items[INVALIDATIONS_PER_PAGE] = {0};
    struct invalidation_page page = {0};
    bool is_read = result == STORE_OK        ? read_page(reply, items, &page)
                   : result == STORE_REFUSED ? read_position(reply_at(reply, 0), &page.last)
                                             : true;

    if (!is_read) {
        store_malformed(call->store, "log of invalidations");
        result = STORE_UNAVAILABLE;
    }
    call->done(call->arg, result, result == STORE_OK || result == STORE_REFUSED ? &page : NULL);
    free(call);
}
