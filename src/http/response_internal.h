/* How requests are answered. */
#pragma once
#include "cork_internal.h"
#include "http/response.h"
#include "request_internal.h"

/* What the answers of a server share. */
struct answers {
    const struct http_settings *settings;
    struct cork cork;
    struct buf common_lines;
    int64_t common_lines_s; /* the second in their Date */
    bool are_last;          /* each from now on closes its connection */
};

/* send: as cork_init() has it. */
void answers_init(struct answers *answers, const struct http_settings *settings,
                  void (*send)(struct conn *conn, struct text answer, struct text lasting));
void answers_finish(struct answers *answers);

/* Answers what cannot become a request of the handler's, and closes (H13). */
void response_refuse(struct http_request *request, enum http_error error);
/* "OPTIONS *" asks about the server, not about anything that a handler knows (RFC 9110 section 9.3.7). */
void response_answer_options(struct http_request *request);
