/* One HTTP/1 message, whole (RFC 9112), for commands: the response to what one of them asked, or a request that
 * somebody else tells of as message/http (section 10.1). llhttp parses it, in its strict mode. The listeners read
 * requests by stricter rules of their own, and not by this. */
#pragma once
#include "base/text.h"

struct llhttp__internal_s;

enum http_message_kind { HTTP_MESSAGE_REQUEST, HTTP_MESSAGE_RESPONSE };
enum http_message_state {
    HTTP_MESSAGE_MORE,
    HTTP_MESSAGE_DONE,
    HTTP_MESSAGE_BAD, /* not HTTP, or longer than the limit */
};

struct http_message {
    /* Read-only. */
    enum http_message_state state;
    unsigned status;     /* of a response, once its head is complete; 0 before */
    bool asked_for_body; /* a 100 (Continue) came before the response */
    bool head_complete;  /* target, fields and status are known */
    struct buf target;   /* of a request, as it was sent */
    struct buf fields;   /* "name: value\n" for each, in their order */
    struct buf trailers; /* likewise, of those behind a chunked body */
    struct buf body;     /* without the framing */
    /* Private. */
    struct llhttp__internal_s *machine;
};

/* max_bytes: of target, fields, trailers and body each. */
void http_message_init(struct http_message *message, enum http_message_kind kind, size_t max_bytes);
/* Wipes what came, which may hold secrets. */
void http_message_finish(struct http_message *message);
/* Takes the next bytes. Responses with a status of 1xx, but not 101, are skipped. Bytes behind the message are ignored.
 */
enum http_message_state http_message_feed(struct http_message *message, struct text bytes);
/* The peer sends no more, which may be the end of a response's body. */
enum http_message_state http_message_end(struct http_message *message);

/* The value of the first field with that name in "name: value\n" lines; ret_count (NULL: not asked): how many have it.
 * Names are compared without case. Empty if there is none. */
struct text http_message_field(const struct buf *fields, struct text name, size_t *ret_count);
