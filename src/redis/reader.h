/* Bytes from Redis into replies: hiredis' parser, building struct redis_reply in memory that is used again for each
 * reply. What a peer can send is bounded in size and depth. */
#pragma once
#include "redis/reply.h"

struct redis_reader;

enum redis_reader_result {
    READER_REPLY,
    READER_MORE,   /* the next reply has not arrived in full */
    READER_BROKEN, /* not the protocol, or beyond the bounds; nothing can be read any more */
};

struct redis_reader *redis_reader_create(void);
void redis_reader_destroy(struct redis_reader *reader);
/* False when more than the bound would wait to be read. The bytes are copied. */
MUST_CHECK bool redis_reader_feed(struct redis_reader *reader, const char *bytes, size_t count);
/* The reply is valid until the next call of redis_reader_next(). */
enum redis_reader_result redis_reader_next(struct redis_reader *reader, const struct redis_reply **ret_reply);
