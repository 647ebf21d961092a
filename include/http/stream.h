/* Responses whose body is made while it is sent: chunked (RFC 9112 section 7.1), or, to a client of HTTP/1.0, ended by
 * the end of the connection. One piece is on its way at a time, so a stream holds no more memory than that, however
 * slowly it is read: the limits of http_settings for slow readers apply. A stream has no time limit of its own. When
 * the server drains, streams go on until its grace ends; then they are cut.
 *
 * The handler holds the request until it has called http_stream_end() or http_stream_break(). Once the client is gone
 * these, like all of a reply, do nothing. */
#pragma once
#include "http/request.h"

/* Replies with the head. False: there is nothing to stream, because the client wants no body (HEAD) or is gone. */
MUST_CHECK bool http_stream_begin(struct http_request *request, int status, struct text content_type);
/* Sends a piece, which is copied and not empty. drained runs once, later: the socket has taken all of it, so that the
 * next one may be sent; or the client is gone. */
void http_stream_send(struct http_request *request, struct text piece, void (*drained)(void *arg), void *arg);
/* The body is complete. */
void http_stream_end(struct http_request *request);
/* The body cannot be completed: resets the connection, so that no client takes what it has got for the whole. */
void http_stream_break(struct http_request *request);
