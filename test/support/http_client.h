/* A blocking HTTP/1.1 client for tests: raw bytes in and out, with deadlines, and one call for the usual request. A
 * response that it cannot parse stops the test. */
#pragma once
#include "deadline.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_ANSWER_HEAD_BYTES = 8192, HTTP_ANSWER_BODY_BYTES = 512 * 1024, HTTP_CLIENT_BUFFER_BYTES = 16384 };

/* What may lie between a client and its socket (tls_client.h). */
struct http_client_layer;

struct http_client {
    int fd;                          /* -1 when closed */
    struct http_client_layer *layer; /* NULL: nothing */
    char buffer[HTTP_CLIENT_BUFFER_BYTES];
    size_t start, end; /* the bytes read and not yet consumed */
};

struct http_answer {
    int status;
    char head[HTTP_ANSWER_HEAD_BYTES]; /* status line and fields, NUL-terminated */
    char body[HTTP_ANSWER_BODY_BYTES]; /* NUL-terminated */
    size_t body_len;
};

/* Connects to 127.0.0.1; stops the test if it cannot. */
void http_client_connect(struct http_client *client, uint16_t port);
/* False if nothing listens there. */
bool http_client_try_connect(struct http_client *client, uint16_t port);
/* The same to a Unix socket. */
void http_client_connect_socket(struct http_client *client, const char *path);
/* May be called again. */
void http_client_close(struct http_client *client);
/* Resets the connection: what the server has not yet sent cannot be delivered. */
void http_client_reset(struct http_client *client);
/* Ends sending. Responses can still be read. */
void http_client_half_close(struct http_client *client);

/* False if the server has closed; its earlier responses may still be read. */
bool http_client_send(struct http_client *client, const char *bytes, size_t len);

enum http_client_result { HTTP_CLIENT_ANSWER, HTTP_CLIENT_CLOSED, HTTP_CLIENT_TIMEOUT };
/* Reads one response, which may be an interim one (100). without_body: the response to HEAD. CLOSED: the connection
 * ended before the first byte of a response. */
enum http_client_result http_client_read(struct http_client *client, bool without_body, int timeout_ms,
                                         struct http_answer *ret_answer);
/* Whether the server ends the connection within that time, without another byte. */
bool http_client_ended(struct http_client *client, int timeout_ms);

struct http_client_layer {
    bool (*send)(struct http_client *client, const char *bytes, size_t len);
    /* Makes at least one byte available in the client's buffer. */
    enum http_client_result (*fill)(struct http_client *client, struct deadline deadline);
    void (*close)(struct http_client *client); /* frees the layer */
};
/* The same bytes, whatever lies between. */
bool http_client_send_raw(struct http_client *client, const char *bytes, size_t len);

/* One request; NULL members are left out. */
struct http_call {
    const char *method; /* NULL: GET */
    const char *target;
    const char *bearer;
    const char *cookie; /* the session's token */
    const char *csrf;
    const char *origin;
    const char *json;   /* the body */
    const char *form;   /* the body, as application/x-www-form-urlencoded */
    const char *fields; /* more lines, each ended by \r\n */
};
void http_client_send_call(struct http_client *client, const struct http_call *call);
/* Sends and reads on an open connection; stops the test if no response comes within PATIENCE_MS. */
void http_client_call(struct http_client *client, const struct http_call *call, struct http_answer *ret_answer);
/* Does so on a connection of its own. Returns the status. */
int http_call(uint16_t port, const struct http_call *call, struct http_answer *ret_answer);

/* The value of the first field of that name, without surrounding blanks, cut to size - 1 bytes. False if there is
 * none. */
bool http_answer_field(const struct http_answer *answer, const char *name, char *ret_value, size_t size);
/* A value in the JSON body, by a dotted path ("error.code", "data.0.id"): strings as they are; numbers, true, false and
 * null as written; an array of strings joined by blanks. False if there is no such value. */
bool http_answer_json(const struct http_answer *answer, const char *path, char *ret_value, size_t size);
/* The number of elements of the array at that path; -1 if there is none. */
int http_answer_json_count(const struct http_answer *answer, const char *path);
/* error.code of a response; "" if there is none. */
const char *http_answer_code(const struct http_answer *answer);

/* Whether this machine can listen on [::1]; many containers cannot. */
bool machine_has_ipv6(void);
/* IPv6 is off from now on, for this process and those that it starts, as with the kernel's ipv6.disable=1. */
void machine_lose_ipv6(void);
