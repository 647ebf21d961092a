/* A blocking HTTP/1.1 client for tests: raw bytes in and out with deadlines, and one call for the usual request. What
 * it cannot read as an answer stops the test. */
#pragma once
#include "deadline.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_ANSWER_HEAD_BYTES = 8192, HTTP_ANSWER_BODY_BYTES = 192 * 1024, HTTP_CLIENT_BUFFER_BYTES = 16384 };

struct http_client {
    int fd; /* -1 when closed */
    char buffer[HTTP_CLIENT_BUFFER_BYTES];
    size_t start, end; /* what was read and not yet consumed */
};

struct http_answer {
    int status;
    char head[HTTP_ANSWER_HEAD_BYTES]; /* status line and fields, NUL-terminated */
    char body[HTTP_ANSWER_BODY_BYTES]; /* NUL-terminated */
    size_t body_len;
};

/* Connects to 127.0.0.1; stops the test when it cannot. */
void http_client_connect(struct http_client *client, uint16_t port);
/* The same for where nothing may listen. */
bool http_client_try_connect(struct http_client *client, uint16_t port);
/* A closed one may be closed again. */
void http_client_close(struct http_client *client);
/* Ends the connection by a reset: what the server has not yet sent is undeliverable. */
void http_client_reset(struct http_client *client);
/* No more will be sent; answers can still be read. */
void http_client_half_close(struct http_client *client);

/* False when the server has closed: then what it answered before may still be read. */
bool http_client_send(struct http_client *client, const char *bytes, size_t len);

enum http_client_result { HTTP_CLIENT_ANSWER, HTTP_CLIENT_CLOSED, HTTP_CLIENT_TIMEOUT };
/* Reads one answer, an interim one (100) too. without_body: the answer to a HEAD. CLOSED: the connection ended before
 * the first byte of an answer. */
enum http_client_result http_client_read(struct http_client *client, bool without_body, int timeout_ms,
                                         struct http_answer *ret_answer);
/* Whether the server ends the connection within that time without a byte more. */
bool http_client_ended(struct http_client *client, int timeout_ms);

/* One request; NULL members are left out. */
struct http_call {
    const char *method; /* NULL: GET */
    const char *target;
    const char *bearer;
    const char *cookie; /* the session's token */
    const char *csrf;
    const char *origin;
    const char *json;   /* the body */
    const char *form;   /* the same, of application/x-www-form-urlencoded */
    const char *fields; /* more lines, each ended by \r\n */
};
void http_client_send_call(struct http_client *client, const struct http_call *call);
/* Sends and reads on an open connection; stops the test when no answer comes within PATIENCE_MS. */
void http_client_call(struct http_client *client, const struct http_call *call, struct http_answer *ret_answer);
/* The same on a connection of its own. Returns the status. */
int http_call(uint16_t port, const struct http_call *call, struct http_answer *ret_answer);

/* The value of the first field of that name, blanks trimmed, cut to size - 1 bytes; false where there is none. */
bool http_answer_field(const struct http_answer *answer, const char *name, char *ret_value, size_t size);
/* A value in the JSON body by a dotted path ("error.code", "data.0.id"); strings as they are, numbers, true, false and
 * null as written, an array of strings joined by blanks. False where there is no such value. */
bool http_answer_json(const struct http_answer *answer, const char *path, char *ret_value, size_t size);
/* The number of elements of the array at that path, -1 where there is none. */
int http_answer_json_count(const struct http_answer *answer, const char *path);
/* error.code of an answer, "" where there is none. */
const char *http_answer_code(const struct http_answer *answer);
