/* Answering a request: exactly one reply each; a second one is a programming error and stops the node. Replies to a
 * client that is gone do nothing. HEAD is answered as GET without the body. */
#pragma once
#include "http/request.h"
#include "http/settings.h"

/* Adds one header line to the reply to come; the value is copied, and refused (CHECK) if it holds a control
 * character. */
void http_response_header(struct http_request *request, struct text name, struct text value);
/* Complete lines ("A: b\r\n…") that this reply carries in place of the server's fixed headers, http_settings; they
 * outlive the request. */
void http_response_fixed_headers(struct http_request *request, struct text lines);
/* content_type {NULL, 0}: no body and no Content-Type (with 204 no Content-Length either). The body is copied into
 * what is sent, and what is sent is wiped after. */
void http_reply(struct http_request *request, int status, struct text content_type, struct text body);
/* The same for a body that is never freed nor changed: however slowly it is read, no copy of it is kept. */
void http_reply_lasting(struct http_request *request, int status, struct text content_type, struct text body);
/* A JSON body; a buffer that failed becomes HTTP_ERROR_INTERNAL. */
void http_reply_json(struct http_request *request, int status, const struct buf *json);
/* Replies with an error, as http_settings.print_error has it. With HTTP_ERROR_METHOD_NOT_ALLOWED the caller has set
 * Allow (RFC 9110 section 15.5.6). */
void http_refuse(struct http_request *request, enum http_error error);
/* Answer and then close the connection. */
void http_response_close(struct http_request *request);
/* To be called before the reply: done runs exactly once, later. delivered: the peer's TCP has acknowledged the whole
 * answer (on a unix socket: it was read), whatever became of the connection then. Not delivered: the connection failed
 * before, or 10 s passed. */
void http_response_on_delivered(struct http_request *request, void (*done)(void *arg, bool delivered), void *arg);
bool http_request_replied(const struct http_request *request);
