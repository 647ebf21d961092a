/* Parses bytes from Redis with hiredis, building struct redis_reply in memory that is reused for each reply. Bounds the
 * size and depth of a reply. */
#pragma once
#include "redis/reply.h"

struct redis_reader;

enum redis_reader_result {
    READER_REPLY,
    READER_MORE,   /* the next reply is incomplete */
    READER_BROKEN, /* not Redis' protocol, or over the bounds; the reader is unusable */
};

struct redis_reader *redis_reader_create(void);
void redis_reader_destroy(struct redis_reader *reader);
/* Copies the bytes. False: too many unread bytes. */
MUST_CHECK bool redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t count);
/* The reply is valid until the next call. */
enum redis_reader_result redis_reader_next(struct redis_reader *reader, const struct redis_reply **ret_reply);
