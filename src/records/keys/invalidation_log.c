#include "records/invalidation_log.h"

#include "engine/verb.h"

static bool read_position(const struct redis_reply *reply, struct log_position *ret_position)
{
    struct text text;

    return reply_text(reply, &text) && log_position_parse(text, ret_position);
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
    struct text replaced = reply_named_text(fields, TEXT("replaced_at"));

    return replaced.ptr ? replaced : reply_named_text(fields, TEXT("at"));
}

static enum invalidation_kind kind_of(const struct redis_reply *fields, struct invalidation *invalidation)
{
    struct text key = reply_named_text(fields, TEXT("id")), state = reply_named_text(fields, TEXT("state"));

    if (!id_parse(ID_ACCOUNT, reply_named_text(fields, TEXT("account")), &invalidation->account))
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

    if (reply->count < HEAD || reply->count - HEAD > INVALIDATIONS_PER_PAGE ||
        !read_position(reply_at(reply, 0), &ret_page->last) || !reply_flag(reply_at(reply, 1), &ret_page->has_more))
        return false;
    ret_page->items = items;
    ret_page->count = reply->count - HEAD;
    for (size_t i = 0; i < ret_page->count; i++)
        if (!read_entry(reply_at(reply, i + HEAD), &items[i]))
            return false;
    return true;
}

static void log_answer(const struct verb_asked *asked, enum store_result result, const struct redis_reply *reply)
{
    struct invalidation items[INVALIDATIONS_PER_PAGE] = {0};
    struct invalidation_page page = {0};
    bool is_read = result == STORE_OK        ? read_page(reply, items, &page)
                   : result == STORE_REFUSED ? read_position(reply_at(reply, 0), &page.last)
                                             : true;

    if (!is_read)
        result = reply_checked(asked->store, false, "log of invalidations");
    ((invalidations_read *)asked->done)(asked->arg, result,
                                        result == STORE_OK || result == STORE_REFUSED ? &page : NULL);
}

void invalidation_log_read(struct store *store, const struct log_position *after, invalidations_read *done, void *arg)
{
    char position[LOG_POSITION_BYTES] = "";
    struct script_args args;

    if (after)
        log_position_print(*after, position);
    args_begin(&args);
    args_add(&args, text_of(position));
    args_add_int(&args, INVALIDATIONS_PER_PAGE);
    verb_ask(store, SCRIPT_invalidations_read, SCRIPT_READS, &args, log_answer, (verb_done *)done, arg);
}
