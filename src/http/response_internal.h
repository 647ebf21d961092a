/* How responses are made. */
#pragma once
#include "cork_internal.h"
#include "http/response.h"
#include "request_internal.h"

/* What the responses of a server share. */
struct answers {
    const struct http_settings *settings;
    struct cork cork;
    struct buf common_lines;
    int64_t common_lines_s; /* the second in their Date */
    bool are_last;          /* from now on, each response closes its connection */
};

/* send: see cork_init(). */
void answers_init(struct answers *answers, const struct http_settings *settings,
                  void (*send)(struct conn *conn, struct text answer, struct text lasting));
void answers_finish(struct answers *answers);

/* Begins the one reply of a request. False: the client is gone. */
MUST_CHECK bool response_begin(struct http_request *request, int status);
/* How a reader finds the end of a body. */
enum response_framing { FRAMED_BY_LENGTH, FRAMED_BY_CHUNKS, FRAMED_BY_END };
/* body_bytes: only with FRAMED_BY_LENGTH. */
void response_print_head(const struct http_request *request, int status, struct text content_type,
                         enum response_framing framing, size_t body_bytes, struct buf *out);

/* Refuses the request and closes the connection after the response (H13). */
void response_refuse(struct http_request *request, enum http_error error);
/* Answers "OPTIONS *", which asks about the server as a whole, so no handler is called (RFC 9110 section 9.3.7). */
void response_answer_options(struct http_request *request);
