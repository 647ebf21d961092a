#include "reader.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/mem.h"
#include <hiredis/hiredis.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* For unread bytes, and for the memory of one reply: far above our largest page. */
    REPLY_MAX_BYTES = 64 * 1024 * 1024,
    REPLY_MAX_DEPTH = 7,          /* the maximum of hiredis 0.14; scripts use 3 */
    REPLY_FIRST_BYTES = 8 * 1024, /* most replies fit without a heap allocation */
};

struct redis_reader {
    redisReader *parser;
    struct arena arena;
    size_t reply_bytes;
    bool is_reply_out; /* the arena holds a reply that the caller may still use */
    alignas(16) char first[REPLY_FIRST_BYTES];
};

/* hiredis takes NULL as "out of memory" and stops reading for good. Returning NULL is how we refuse a reply. */
static void *reserve(struct redis_reader *reader, size_t bytes)
{
    INVARIANT(reader->reply_bytes <= REPLY_MAX_BYTES && !reader->is_reply_out);
    if (bytes > REPLY_MAX_BYTES - reader->reply_bytes)
        return NULL;
    reader->reply_bytes += bytes;
    return arena_alloc(&reader->arena, bytes);
}

/* A reply with space for its text after it. */
static struct redis_reply *create_reply(const redisReadTask *task, enum reply_type type, size_t text_bytes)
{
    struct redis_reply *reply = reserve(task->privdata, sizeof *reply + text_bytes);

    if (!reply)
        return NULL;
    reply->type = type;
    if (task->parent) {
        const struct redis_reply *parent = task->parent->obj;

        CHECK(parent->type == REPLY_ARRAY && task->idx >= 0 && (size_t)task->idx < parent->count);
        ((const struct redis_reply **)(uintptr_t)parent->items)[task->idx] = reply;
    }
    return reply;
}

static void *create_string(const redisReadTask *task, char *bytes, size_t count)
{
    enum reply_type type = task->type == REDIS_REPLY_STATUS  ? REPLY_STATUS
                           : task->type == REDIS_REPLY_ERROR ? REPLY_ERROR
                                                             : REPLY_STRING;
    /* We never ask for RESP3, so verbatim strings and big numbers are refused. */
    if (type == REPLY_STRING && task->type != REDIS_REPLY_STRING)
        return NULL;

    struct redis_reply *reply = create_reply(task, type, count + 1);
    if (!reply)
        return NULL;
    char *copy = memcpy(reply + 1, bytes, count);
    reply->text = (struct text){copy, count};
    return reply;
}

static void *create_array_of(const redisReadTask *task, size_t count)
{
    unsigned depth = 1;

    for (const redisReadTask *outer = task->parent; outer; outer = outer->parent)
        depth++;
    if (task->type != REDIS_REPLY_ARRAY || depth > REPLY_MAX_DEPTH || count > REPLY_MAX_BYTES / sizeof(void *))
        return NULL;

    struct redis_reply *reply = create_reply(task, REPLY_ARRAY, 0);
    if (!reply)
        return NULL;
    reply->count = count;
    reply->items = reserve(task->privdata, (count ? count : 1) * sizeof *reply->items);
    return reply->items ? reply : NULL;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct redis_reply *reply = create_reply(task, REPLY_INTEGER, 0);

    if (reply)
        reply->integer = value;
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    return create_reply(task, REPLY_NIL, 0);
}

/* The arena owns all replies, including one that hiredis abandons half-built. */
static void free_nothing(UNUSED void *reply)
{
}

#if HIREDIS_MAJOR >= 1
static void *create_array(const redisReadTask *task, size_t count)
{
    return create_array_of(task, count);
}
static void *refuse_double(UNUSED const redisReadTask *task, UNUSED double value, UNUSED char *bytes,
                           UNUSED size_t count)
{
    return NULL;
}
static void *refuse_bool(UNUSED const redisReadTask *task, UNUSED int value)
{
    return NULL;
}
static const redisReplyObjectFunctions REPLY_FUNCTIONS = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createDouble = refuse_double,
    .createNil = create_nil,
    .createBool = refuse_bool,
    .freeObject = free_nothing,
};
#else
static void *create_array(const redisReadTask *task, int count)
{
    return count < 0 ? NULL : create_array_of(task, (size_t)count);
}
static const redisReplyObjectFunctions REPLY_FUNCTIONS = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_nothing,
};
#endif

struct redis_reader *redis_reader_create(void)
{
    struct redis_reader *reader = mem_alloc(sizeof *reader);

    arena_init(&reader->arena, reader->first, sizeof reader->first);
    /* hiredis only reads the table, although its type is not const. */
    reader->parser = redisReaderCreateWithFunctions((redisReplyObjectFunctions *)(uintptr_t)&REPLY_FUNCTIONS);
    CHECK(reader->parser);
    reader->parser->privdata = reader;
    return reader;
}

void redis_reader_destroy(struct redis_reader *reader)
{
    if (!reader)
        return;
    redisReaderFree(reader->parser);
    arena_finish(&reader->arena);
    free(reader);
}

bool redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t count)
{
    size_t unread = reader->parser->len - reader->parser->pos;

    CHECK(reader->parser->pos <= reader->parser->len && unread <= REPLY_MAX_BYTES);
    return count <= REPLY_MAX_BYTES - unread && redisReaderFeed(reader->parser, bytes, count) == REDIS_OK;
}

enum redis_reader_result redis_reader_next(struct redis_reader *reader, const struct redis_reply **ret_reply)
{
    void *reply = NULL;

    /* Not earlier: a half-read reply from an earlier feed also lives in the arena. */
    if (reader->is_reply_out) {
        arena_finish(&reader->arena);
        reader->reply_bytes = 0;
        reader->is_reply_out = false;
    }
    if (redisReaderGetReply(reader->parser, &reply) != REDIS_OK)
        return READER_BROKEN;
    if (!reply)
        return READER_MORE;
    reader->is_reply_out = true;
    *ret_reply = reply;
    return READER_REPLY;
}
