/* The head of a request and the rules for it that llhttp leaves to us (README.md: H1 to H8, H10, H12). Pure functions
 * of bytes: no loop, no connection, no llhttp. Views point into the head, which the request owns. */
#pragma once
#include "base/text.h"
#include "http/settings.h"

struct http_field {
    struct text name, value;
};

struct http_head {
    struct text method, target, path, query;
    int known_method;      /* enum http_method; an int, because llhttp.h, included beside this, uses the same names */
    struct text authority; /* of an absolute-form target */
    struct http_field *fields;
    size_t field_count;
    uint64_t content_length;
    bool is_http_1_0;
    bool is_chunked;
    bool keeps_alive;
    bool expects_continue;
};

/* How far the search for the end of a head has come. Zero it before the first byte. Input may arrive in pieces of any
 * size, as long as each call sees it from the head's first byte. */
struct head_scan {
    size_t line_start;
    size_t scanned;
    size_t lines;
};

enum head_scan_result { HEAD_PARTIAL, HEAD_WHOLE, HEAD_REFUSED };
/* Finds the empty line that ends the head. Refuses at once, without waiting for the end: control characters other than
 * line ends and tabs within a line (H1), a line that begins with a blank (H2), an endless method, and anything too
 * large (H12). ret_bytes: the length of a whole head; ret_error: why it is refused. */
enum head_scan_result head_scan(struct head_scan *scan, struct text input, const struct http_settings *settings,
                                size_t *ret_bytes, enum http_error *ret_error);

/* H3 and H4: sets method, target, path, query, authority and version from the first line. */
enum http_error head_read_request_line(struct http_head *head, struct text whole_head,
                                       const struct http_settings *settings);
/* H5 to H8 and H10; and refuses a repeated header if its two readings could be used against us (H12). Call it when the
 * field table is complete. */
enum http_error head_validate_fields(struct http_head *head, const struct http_settings *settings);
