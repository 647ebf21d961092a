/* Responses. Each request gets exactly one reply; a second one is a programming error and aborts. Replies to a client
 * that is gone do nothing. HEAD is answered like GET, without the body. */
#pragma once
#include "http/request.h"
#include "http/settings.h"

/* Adds a header line to the coming reply. The value is copied; it must not hold a control character (CHECK). */
void http_response_header(struct http_request *request, struct text name, struct text value);
/* Complete lines ("A: b\r\n…") that replace http_settings.fixed_headers in this reply. Must outlive the request. */
void http_response_fixed_headers(struct http_request *request, struct text lines);
/* content_type {NULL, 0}: no body and no Content-Type. With 204 and 304 there is no Content-Length either. The body is
 * copied, and the copy wiped once it is sent. */
void http_reply(struct http_request *request, int status, struct text content_type, struct text body);
/* Like http_reply(), for a body that is never freed or changed: no copy is kept for a slow reader. */
void http_reply_lasting(struct http_request *request, int status, struct text content_type, struct text body);
/* A JSON body. If the buffer has failed, replies with HTTP_ERROR_INTERNAL. */
void http_reply_json(struct http_request *request, int status, const struct buf *json);
/* Replies with an error, printed by http_settings.print_error. With HTTP_ERROR_METHOD_NOT_ALLOWED the caller sets Allow
 * first (RFC 9110 section 15.5.6). */
void http_refuse(struct http_request *request, enum http_error error);
/* Closes the connection after the reply. */
void http_response_close(struct http_request *request);
/* Call it before the reply. replied runs inside the reply, with its status; never if the client is gone by then.
 * Any number may ask. */
void http_response_on_replied(struct http_request *request, void (*replied)(void *arg, int status), void *arg);
/* Call it before the reply. done runs exactly once, later. delivered: the peer's TCP acknowledged the whole response
 * (on a Unix socket: the peer read it), whatever happened to the connection afterwards. Not delivered: the connection
 * failed first, or 10 s passed. */
void http_response_on_delivered(struct http_request *request, void (*done)(void *arg, bool delivered), void *arg);
